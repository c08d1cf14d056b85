//! Checkpoints of multimaps.

use super::{read_levels, write_levels};
use crate::budget::Budget;
use crate::{GpuMultimap, Key, Options, Value};
use gpu_dictionary::checkpoint::{Disk, Folder, OsDisk};
use gpu_primitives::{Error, Stream};
#[cfg(doc)]
use std::io::ErrorKind;
use std::path::Path;

/// Checkpoints. The methods are those of [`Durable`](gpu_dictionary::Durable), which only dictionaries with one value per key
/// implement.
impl<K: Key, V: Value> GpuMultimap<K, V> {
    /// Saves the multimap in a folder, durably. Writes only the levels that the folder does not hold yet. Gives the guarantees of
    /// [`GpuLsm::checkpoint`](crate::GpuLsm::checkpoint): about crashes, about others who use the folder, and about snapshots. A
    /// deletion rewrites all levels, so the next checkpoint writes everything. Waits.
    ///
    /// ```
    /// use gpu_lsm::{GpuMultimap, Options};
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// # let folder = std::env::temp_dir().join(format!("multimap-example-{}", std::process::id()));
    /// let mut edges = GpuMultimap::<u32, u32>::recover_or_new(&stream, &folder, Options::new())?;
    /// edges.insert(&stream, (&stream.upload(&[1, 1])?, &stream.upload(&[20, 10])?))?;
    /// edges.checkpoint(&stream, &folder)?;
    /// drop(edges);
    ///
    /// let again = GpuMultimap::<u32, u32>::recover(&stream, &folder)?;
    /// assert_eq!(again.export(&stream)?.to_vec(&stream)?, [(1, 20), (1, 10)]);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`GpuLsm::checkpoint`](crate::GpuLsm::checkpoint).
    pub fn checkpoint(&self, stream: &Stream, path: impl AsRef<Path>) -> Result<(), Error> {
        self.checkpoint_to(stream, &OsDisk::new(path))
    }

    /// Writes a checkpoint to a disk of any kind.
    pub(super) fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        write_levels::<K, V, true>(&self.lsm, stream, disk)
    }

    /// Reads the multimap that the last finished [`checkpoint`](Self::checkpoint) left in a folder. Checks everything, and changes
    /// nothing in the folder.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::recover`](crate::GpuLsm::recover).
    pub fn recover(stream: &Stream, path: impl AsRef<Path>) -> Result<Self, Error> {
        let disk = OsDisk::new(path);
        Self::recover_from(stream, &disk, Budget::default())?.ok_or_else(|| Folder::new(&disk).without_checkpoint())
    }

    /// Reads the last finished checkpoint of a disk to where a budget has its levels, or returns `None` if none was ever finished there.
    pub(super) fn recover_from(stream: &Stream, disk: &impl Disk, budget: Budget) -> Result<Option<Self>, Error> {
        Ok(read_levels::<K, V, true>(stream, disk, budget)?.map(|lsm| Self { lsm }))
    }

    /// [Recovers](Self::recover) the multimap of a folder, or creates an empty one with these options if no checkpoint was ever
    /// finished there. A multimap that is recovered keeps its batch size; its buffer and its
    /// [budget of device memory](Options::device_memory) are those of the options. Writes nothing.
    ///
    /// # Errors
    /// The errors of [`recover`](Self::recover), without [`NotFound`](ErrorKind::NotFound), and of [`new`](Self::new).
    pub fn recover_or_new(stream: &Stream, path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let new = Self::new(stream, options)?;
        let mut recovered = Self::recover_from(stream, &OsDisk::new(path), options.device_memory)?;
        if let Some(recovered) = &mut recovered {
            recovered.lsm.any.adopt(&Options { cleanup_policy: None, ..options });
        }
        Ok(recovered.unwrap_or(new))
    }
}
