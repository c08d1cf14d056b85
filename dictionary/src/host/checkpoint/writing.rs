//! The order in which a checkpoint is written, and in which it is read.

use super::disk::Disk;
use super::folder::{Folder, MANIFEST, garbage};
use super::history::{History, Refusal};
use super::manifest::{Body, Manifest};
use gpu_primitives::Error;
use std::collections::BTreeSet;
use std::io::{BufWriter, ErrorKind};

/// A checkpoint that is being written: the folder is locked, and its last checkpoint may be replaced.
#[derive(Debug)]
pub struct Writing<'a, D: Disk, B> {
    folder: Folder<'a, D>,
    history: &'a History,
    _lock: D::Lock,
    last: Option<Manifest<B>>,
    /// The names of the parts that the last checkpoint has.
    in_use: BTreeSet<String>,
    /// Those of them whose files are there.
    present: BTreeSet<String>,
    has_new_parts: bool,
}

impl<'a, D: Disk, B: Body> Writing<'a, D, B> {
    /// Locks the folder, checks that the dictionary with this history may replace what is there, and removes what a killed writer
    /// left. `state` is what will be written; its parts may still be unknown if `has_parts` says that there will be some.
    ///
    /// # Errors
    /// - [`Error::Io`] if a file operation fails, if someone else is using the folder
    ///   ([`WouldBlock`](ErrorKind::WouldBlock)), or if the dictionary does not continue the last checkpoint
    ///   ([`AlreadyExists`](ErrorKind::AlreadyExists)).
    /// - [`Error::NewerCheckpoint`], [`Error::DamagedFolder`], [`Error::InvalidFile`].
    pub fn begin(disk: &'a D, history: &'a History, state: &B, has_parts: bool) -> Result<Self, Error> {
        let folder = Folder::new(disk);
        let lock = folder.lock()?;
        let found = Manifest::<B>::find(folder)?;
        let is_new = found.is_none();
        let last = found.filter(|found| found.is_finished);
        match last.as_ref().and_then(|last| Some((last, history.refuses(last.id, last.writer, last.updates)?))) {
            None => {}
            Some((last, Refusal::IsNewer)) => {
                let (folder, held, given) = (folder.path().to_owned(), last.updates, history.updates());
                return Err(Error::NewerCheckpoint { folder, held, given });
            }
            Some((_, Refusal::IsOfAnother)) => {
                let what = "this folder holds a checkpoint of another dictionary, or one that is newer than this \
                            dictionary: recover from it, or use another folder";
                return Err(folder.error(ErrorKind::AlreadyExists, what));
            }
        }
        if last.is_none() {
            // No checkpoint was finished here, so the folder may be new.
            folder.sync_parents()?;
            if has_parts {
                if is_new {
                    let unfinished = Manifest::new(history, state.unfinished(), false);
                    folder.publish(MANIFEST, |writer| unfinished.write(writer))?;
                }
                // Also if the manifest was there: its writer may have been killed before it did this.
                folder.sync()?;
            }
        }

        let in_use = last.as_ref().map(Manifest::names).unwrap_or_default();
        let mut present = folder.names()?;
        if garbage(present.iter(), &in_use).next().is_some() {
            // A writer was killed. It may have renamed the manifest, but not made the new name durable.
            folder.sync()?;
            folder.collect(present.iter(), &in_use);
        }
        present.retain(|name| in_use.contains(name));
        Ok(Self { folder, history, _lock: lock, last, in_use, present, has_new_parts: false })
    }

    /// Returns whether the folder holds this part, as part of the last checkpoint.
    #[must_use]
    pub fn holds(&self, part: u128) -> bool {
        self.present.contains(&B::PARTS.name(part))
    }

    /// Writes a new part.
    ///
    /// # Errors
    /// [`Error::Io`], and those of `write`.
    pub fn part(
        &mut self,
        part: u128,
        write: impl FnOnce(&mut BufWriter<D::Writer>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.folder.publish(&B::PARTS.name(part), write)?;
        self.has_new_parts = true;
        Ok(())
    }

    /// Makes the new parts durable, then replaces the manifest, then removes the parts that only the last checkpoint had.
    ///
    /// # Errors
    /// [`Error::Io`]. Then the folder holds the last checkpoint or this one, complete in both cases.
    pub fn finish(self, state: B) -> Result<(), Error> {
        let folder = self.folder;
        if self.has_new_parts {
            folder.sync()?;
        }
        let state = Manifest::new(self.history, state, true);
        if !self.last.is_some_and(|last| last.is_same_state(&state)) {
            folder.publish(MANIFEST, |writer| state.write(writer))?;
        }
        // Also if the manifest was there: its writer may have been killed before it did this.
        folder.sync()?;
        folder.collect(self.in_use.iter(), &state.names());
        Ok(())
    }
}

/// Reads the last finished checkpoint in a folder, locked, or returns `None` if none was ever finished there. `read` makes the
/// dictionary of what the manifest says, and of the files that the folder holds.
///
/// # Errors
/// Those of [`Manifest::of`] and of `read`.
pub fn read_finished<D: Disk, B: Body, T>(
    disk: &D,
    read: impl Fn(Folder<'_, D>, &Manifest<B>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let folder = Folder::new(disk);
    let read = || Manifest::of(folder)?.map(|manifest| read(folder, &manifest)).transpose();
    let lock = folder.lock_shared()?;
    match read() {
        // There was nothing to lock. Perhaps the first writer came since then, and has already removed a part.
        Err(Error::DamagedFolder { .. }) if lock.is_none() => {
            let _lock = folder.lock_shared()?;
            read()
        }
        read => read,
    }
}
