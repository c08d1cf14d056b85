//! The trait of dictionaries that survive a crash.

use super::checkpoint::{Disk, Folder, OsDisk};
use super::traits::Dictionary;
use gpu_primitives::{Error, Stream};
#[cfg(doc)]
use std::io::ErrorKind;
use std::path::Path;

/// A dictionary that can be kept in a folder, durably.
///
/// - **Durable**: when [`checkpoint`](Self::checkpoint) returns `Ok`, the state is on disk.
/// - **Crashes**: a process that is killed, or a machine that loses power, at any moment loses nothing that a finished checkpoint
///   held. [`recover`](Self::recover) returns the last finished state or, if a crash interrupted a checkpoint, possibly the state of
///   that checkpoint. It never returns a mixture.
/// - **Damage**: a file that is missing, truncated or changed is an error that names it. A folder that has lost files is never taken
///   for a new one.
/// - **One folder, one dictionary**: a dictionary may replace only a checkpoint that it wrote itself or was recovered from. Any
///   other one may hold updates that it never saw.
///
/// What a checkpoint writes depends on the structure: an LSM only the levels that are new, others everything.
///
/// # Examples
/// ```
/// use gpu_dictionary::{Dictionary, Durable, Updatable};
/// use gpu_primitives::{Error, Stream};
/// use std::path::Path;
///
/// /// Goes on where the last run ended, however it ended. Works with any dictionary.
/// fn run<D: Durable + Updatable<Key = u32, Value = u32>>(
///     stream: &Stream,
///     folder: &Path,
///     batches: &[&[u32]],
/// ) -> Result<usize, Error> {
///     let mut dictionary = D::recover_or_new(stream, folder, D::Options::default())?;
///     for keys in batches {
///         let keys = stream.upload(keys)?;
///         dictionary.insert(stream, (&keys, &keys))?;
///         dictionary.checkpoint(stream, folder)?;
///     }
///     dictionary.len(stream)
/// }
/// ```
///
/// To implement the trait, keep a [`History`](crate::checkpoint::History) in the dictionary, and call
/// [`write_whole`](crate::checkpoint::write_whole) and [`read_whole`](crate::checkpoint::read_whole).
pub trait Durable: Dictionary {
    /// Writes a checkpoint to a disk of any kind: what [`checkpoint`](Self::checkpoint) does with a folder of the operating
    /// system.
    ///
    /// # Errors
    /// The errors of [`checkpoint`](Self::checkpoint).
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error>;

    /// Reads the last finished checkpoint of a disk, or returns `None` if none was ever finished there. A dictionary that is made
    /// with options [adopts](Self::adopt) them.
    ///
    /// # Errors
    /// The errors of [`recover`](Self::recover), without [`NotFound`](ErrorKind::NotFound).
    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&Self::Options>) -> Result<Option<Self>, Error>;

    /// Takes from the options what a checkpoint does not hold. If nothing else is said, that is nothing.
    fn adopt(&mut self, options: &Self::Options) {
        let _ = options;
    }

    /// Saves the dictionary in a folder, durably. Creates the folder if it is missing. Waits.
    ///
    /// # Errors
    /// - [`Error::Io`] if a file operation fails, if someone else is using the folder
    ///   ([`WouldBlock`](ErrorKind::WouldBlock)), or if the dictionary does not continue the last checkpoint there
    ///   ([`AlreadyExists`](ErrorKind::AlreadyExists)): use another folder, or delete it if you no longer need what is there.
    /// - [`Error::NewerCheckpoint`] if this is a snapshot, and the folder holds a newer checkpoint of its dictionary.
    /// - [`Error::DamagedFolder`] if the folder has lost its manifest.
    /// - [`Error::InvalidFile`] if the folder's manifest is damaged, or that of another structure or of other key or value types.
    /// - The errors of [`save`](Dictionary::save).
    ///
    /// After an error the dictionary is unchanged, and the folder holds the last finished checkpoint or this one. A later
    /// checkpoint can succeed.
    fn checkpoint(&self, stream: &Stream, folder: impl AsRef<Path>) -> Result<(), Error> {
        self.checkpoint_to(stream, &OsDisk::new(folder))
    }

    /// Reads the dictionary that the last finished [`checkpoint`](Self::checkpoint) left in a folder, on any device. Waits for a
    /// checkpoint that someone else is writing. Checks everything: it returns a complete dictionary or an error. Changes nothing in
    /// the folder, which may be read-only.
    ///
    /// # Errors
    /// - [`Error::Io`] if reading fails, or if no checkpoint was ever finished in this folder
    ///   ([`NotFound`](ErrorKind::NotFound)).
    /// - [`Error::DamagedFolder`] if the folder has lost a file.
    /// - [`Error::InvalidFile`] if a file is damaged, truncated, or of another structure or other key or value types. The error says
    ///   which file, what is wrong and where.
    /// - [`Error::OutOfMemory`], or any error of building the dictionary.
    fn recover(stream: &Stream, folder: impl AsRef<Path>) -> Result<Self, Error> {
        let disk = OsDisk::new(folder);
        Self::recover_from(stream, &disk, None)?.ok_or_else(|| Folder::new(&disk).without_checkpoint())
    }

    /// [Recovers](Self::recover) the dictionary of a folder, or creates an empty one with these options if no checkpoint was ever
    /// finished there. What a checkpoint does not hold is taken from the options in both cases. Writes nothing.
    ///
    /// # Errors
    /// The errors of [`recover`](Self::recover), without [`NotFound`](ErrorKind::NotFound), and of [`new`](Dictionary::new).
    fn recover_or_new(stream: &Stream, folder: impl AsRef<Path>, options: Self::Options) -> Result<Self, Error> {
        match Self::recover_from(stream, &OsDisk::new(folder), Some(&options))? {
            Some(recovered) => Ok(recovered),
            None => Self::new(stream, options),
        }
    }
}
