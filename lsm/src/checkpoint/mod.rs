//! Checkpoints: the dictionary in a folder, of which only new levels are written.
//!
//! # Format
//! A folder holds one dictionary:
//!
//! | file | |
//! | --- | --- |
//! | `manifest` | the state of the dictionary, and which levels it consists of |
//! | `level-ID` | a level; `ID` is its id, as 32 hexadecimal digits |
//! | `lock` | empty; locked by those who use the folder |
//! | `manifest.tmp`, `level-ID.tmp` | a file that was not finished |
//!
//! The manifest and the levels have the format that [`gpu_dictionary::file`] describes: version 3 of the manifest, version 2
//! of the levels. Their names in the header are `gpu-man` and `gpu-lvl`, each with a line feed. There never was a version 1
//! of them. Manifests of version 2 can still be read.
//!
//! The manifest adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 16, 16 | the id of the checkpoint, the id of the dictionary that wrote it |
//! | 8 | the number of updates of that dictionary before this state; not in version 2 |
//! | 1 | 0 until the first checkpoint of the folder is finished, then 1; not in version 2 |
//! | 1 | number of levels |
//! | 8, 8, 8 | batch size, batches, tombstones |
//! | 4, 4, 8 per level, oldest first | slot, 0 if the level has no marks, length |
//! | 16 per level, oldest first | the level's id |
//!
//! No arrays follow. A level adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 16 | its id |
//! | 4, 8 | 0 if it has no marks, length |
//!
//! Its arrays follow: the key codes, the values and, if it has marks, the words of its marks.
//!
//! # Why a crash loses nothing
//! The manifest alone says what the dictionary is. It is replaced by a rename, which is atomic. Before the rename, the
//! new levels, their names in the folder, and the contents of the new manifest are durable. So whichever manifest
//! survives a crash, all its levels are complete. No file is removed before the manifest that does not name it is
//! durable.
//!
//! # Why a lost file is noticed
//! A manifest names all levels, and each level states its id. The first checkpoint of a folder writes a manifest that says
//! that nothing is finished, and makes it durable before it writes a level. So a folder with levels always has a manifest,
//! however its writers ended: if it has none, the manifest was lost.
//!
//! # Why an older state never replaces a newer one
//! Each dictionary has an id of its own, and counts its updates. Both are in the manifest. A dictionary may replace the
//! checkpoint that it was recovered from, and those that it wrote itself with no more updates than it has now. A snapshot
//! has the id and the count of its dictionary. A clone has a new id, and so has a snapshot that is taken apart and updated:
//! its updates are not those that the dictionary counts.
//!
//! An id is random and names contents that never change. So a level that the current manifest names is not written
//! again, whoever wrote it, and a copy of a folder can be used like the original.

mod disk;
mod folder;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

#[cfg(doc)]
use crate::Snapshot;
use crate::file::{Batches, Fields, Header, LevelHeader, read_level, write_level};
use crate::{GpuLsm, Key, Level, Options, Value};
use disk::{Disk, OsDisk};
use folder::{Folder, MANIFEST, garbage, is_part_of_level, level_name};
use gpu_dictionary::file::{Format, Source, unique_id, write_section};
use gpu_primitives::{Error, Stream};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::OnceLock;

const MANIFEST_FORMAT: Format = Format { magic: *b"gpu-man\n", version: 3 };
/// The last version of manifests that did not count updates.
const WITHOUT_UPDATES: u32 = 2;
const LEVEL_FORMAT: Format = Format { magic: *b"gpu-lvl\n", version: 2 };

/// Which checkpoints a dictionary continues. It may replace only these: any other one may hold updates that this
/// dictionary never saw.
#[derive(Debug, Default)]
pub struct History {
    /// The id of the dictionary; chosen when it is first needed.
    writer: OnceLock<u128>,
    /// The number of updates so far. The dictionary may replace checkpoints that it wrote with no more updates.
    updates: u64,
    /// The checkpoint that the dictionary was recovered from.
    recovered: Option<u128>,
    /// Whether this is the history of a snapshot. Its next update is none of the dictionary that it was taken from.
    is_of_snapshot: bool,
}

/// Why a dictionary may not replace a checkpoint.
#[derive(Debug, PartialEq)]
enum Refusal {
    /// It is a newer one of the same dictionary.
    IsNewer,
    /// It is one of another dictionary, or continues this one elsewhere.
    IsOfAnother,
}

impl History {
    /// Returns the history of a snapshot: its checkpoints are checkpoints of the dictionary, as it is now.
    pub(crate) fn of_snapshot(&self) -> Self {
        Self { writer: self.writer().into(), updates: self.updates, recovered: self.recovered, is_of_snapshot: true }
    }

    /// Counts an update. What was a snapshot becomes a dictionary with a history of its own.
    pub(crate) fn advance(&mut self) {
        if self.is_of_snapshot {
            *self = Self::default();
        }
        self.updates += 1;
    }

    fn writer(&self) -> u128 {
        *self.writer.get_or_init(unique_id)
    }

    /// Returns why the dictionary may not replace a checkpoint, or `None` if it may.
    fn refuses(&self, manifest: &Manifest) -> Option<Refusal> {
        if manifest.writer == self.writer() {
            return (manifest.updates > self.updates).then_some(Refusal::IsNewer);
        }
        (self.recovered != Some(manifest.id)).then_some(Refusal::IsOfAnother)
    }
}

/// What a folder says about its dictionary.
#[derive(Debug)]
struct Manifest {
    id: u128,
    writer: u128,
    /// The number of updates of the writer before this state.
    updates: u64,
    /// Whether a checkpoint was finished. If not, there are no levels.
    is_finished: bool,
    header: Header,
    /// The ids of the levels, oldest first.
    levels: Vec<u128>,
}

impl Manifest {
    /// Describes the state of a dictionary.
    fn of<K: Key, V: Value>(lsm: &GpuLsm<K, V>) -> Self {
        let levels = lsm.levels().map(|(_, level)| level.id()).collect();
        let History { updates, .. } = lsm.any.history;
        let (id, writer) = (unique_id(), lsm.any.history.writer());
        Self { id, writer, updates, is_finished: true, header: Header::of(lsm), levels }
    }

    /// Says that the first checkpoint of a dictionary is not finished.
    fn unfinished<K: Key, V: Value>(lsm: &GpuLsm<K, V>) -> Self {
        let header = Header { batch_size: lsm.any.batch_size, batches: 0, tombstones: 0, levels: Vec::new() };
        Self { is_finished: false, header, levels: Vec::new(), ..Self::of(lsm) }
    }

    fn write<K: Key, V: Value>(&self, writer: &mut impl Write) -> Result<(), Error> {
        let mut bytes = MANIFEST_FORMAT.header::<K, V>();
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.writer.to_le_bytes());
        bytes.extend(self.updates.to_le_bytes());
        bytes.push(self.is_finished.into());
        self.header.write(&mut bytes);
        bytes.extend(self.levels.iter().flat_map(|id| id.to_le_bytes()));
        write_section(writer, &bytes)
    }

    fn read<K: Key, V: Value>(reader: &mut impl Read) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let (id, writer, updates, is_finished, fields, levels) =
            source.header::<K, V, _>(MANIFEST_FORMAT, |source| {
                let (id, writer) = (read_id(source)?, read_id(source)?);
                let (updates, [is_finished]) =
                    if source.version() <= WITHOUT_UPDATES { (0, [1]) } else { (source.u64()?, source.bytes()?) };
                let fields = Fields::read(source)?;
                let levels = (0..fields.level_count()).map(|_| read_id(source)).collect::<Result<Vec<_>, Error>>()?;
                Ok((id, writer, updates, is_finished, fields, levels))
            })?;
        let is_finished = match is_finished {
            0 if levels.is_empty() => false,
            1 => true,
            _ => return Err(source.invalid("its header contradicts itself")),
        };
        let header = Header::checked(&source, fields, Batches::OfLevels)?;
        Ok(Self { id, writer, updates, is_finished, header, levels })
    }

    /// Returns whether both describe the same state.
    fn is_same_state(&self, other: &Self) -> bool {
        (&self.header, &self.levels) == (&other.header, &other.levels)
    }

    /// Returns the names of the levels' files.
    fn names(&self) -> BTreeSet<String> {
        self.levels.iter().copied().map(level_name).collect()
    }
}

fn read_id(source: &mut Source<impl Read>) -> Result<u128, Error> {
    source.bytes().map(u128::from_le_bytes)
}

fn write_level_file<K: Key, V: Value>(
    stream: &Stream,
    writer: &mut impl Write,
    level: &Level<K, V>,
) -> Result<(), Error> {
    let mut header = LEVEL_FORMAT.header::<K, V>();
    header.extend(level.id().to_le_bytes());
    header.extend(u32::from(level.has_tombstones()).to_le_bytes());
    header.extend((level.len() as u64).to_le_bytes());
    write_section(writer, &header)?;
    write_level(stream, writer, level)
}

/// Reads a level that the manifest describes. Also returns how many of its elements are tombstones.
fn read_level_file<K: Key, V: Value>(
    stream: &Stream,
    reader: &mut impl Read,
    id: u128,
    described: &LevelHeader,
) -> Result<(Level<K, V>, usize), Error> {
    let mut source = Source::new(reader);
    let own = |source: &mut Source<_>| Ok((read_id(source)?, source.u32()? != 0, source.u64()?));
    let found = source.header::<K, V, _>(LEVEL_FORMAT, own)?;
    if found != (id, described.has_marks, described.len as u64) {
        return Err(source.invalid("it is not the level that the manifest names"));
    }
    let (level, tombstones) = read_level(&mut source, stream, described)?;
    Ok((level.with_id(id), tombstones))
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Saves the dictionary in a folder, durably: its levels as they are, without the cleanup policy. Writes only the
    /// levels that the folder does not hold yet. [`recover`](Self::recover) reads them on any device. Creates the
    /// folder if it is missing. Waits for the stream. Needs 1 MiB of host memory and no device memory.
    ///
    /// When this returns `Ok`, the state is on disk. If the process is killed or the machine crashes before that,
    /// [`recover`](Self::recover) finds this state or that of the last finished checkpoint, complete in both cases.
    ///
    /// A folder holds one dictionary. While a checkpoint runs, the folder is locked, and another checkpoint of it is
    /// refused. So is a dictionary that does not continue the last checkpoint in the folder, because it would discard
    /// updates that it never saw: one that was built anew, or one that was recovered before another process wrote a
    /// checkpoint. Give it a folder of its own, or delete the folder if you no longer need what is there.
    ///
    /// To write a checkpoint while updates go on, write one of a [snapshot](Self::snapshot), on another thread: it counts
    /// as one of the dictionary. If threads write snapshots out of order, the newest one stays, and the older ones are
    /// refused. A clone, in contrast, has a history of its own, and so has a snapshot that was
    /// [taken apart](Snapshot::into_inner) and updated.
    ///
    /// ```
    /// # use gpu_lsm::GpuLsm;
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// # let folder = std::env::temp_dir().join(format!("checkpoint-example-{}", std::process::id()));
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// lsm.checkpoint(&stream, &folder)?;
    /// lsm.insert(&stream, (&stream.upload(&[5])?, &stream.upload(&[50])?))?;
    /// drop(lsm); // The process ends, without another checkpoint.
    ///
    /// let again = GpuLsm::<u32, u32>::recover(&stream, &folder)?;
    /// assert_eq!(again.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Io`] if a file operation fails, if someone else is using the folder
    ///   ([`WouldBlock`](ErrorKind::WouldBlock)), or if the dictionary does not continue the last checkpoint
    ///   ([`AlreadyExists`](ErrorKind::AlreadyExists)).
    /// - [`Error::NewerCheckpoint`] if the folder holds a checkpoint of this dictionary with more updates.
    /// - [`Error::DamagedFolder`] if the folder has levels, but has lost its manifest.
    /// - [`Error::InvalidFile`] if the folder's manifest is damaged, or has other key or value types.
    /// - [`Error::WrongDevice`], or any error of a copy to the host.
    /// - With upserts, the errors of [`cleanup`](Self::cleanup).
    ///
    /// After an error the dictionary is unchanged, and the folder holds the last finished checkpoint or this one. A
    /// later checkpoint can succeed.
    pub fn checkpoint(&self, stream: &Stream, path: impl AsRef<Path>) -> Result<(), Error> {
        self.checkpoint_in(stream, &Folder::new(OsDisk::new(path.as_ref())))
    }

    fn checkpoint_in(&self, stream: &Stream, folder: &Folder<impl Disk>) -> Result<(), Error> {
        if let Some(combined) = self.combined(stream)? {
            return combined.checkpoint_in(stream, folder);
        }
        self.any.stack.expect_device(stream)?;
        let _lock = folder.lock()?;
        let found = manifest_in::<K, V>(folder)?;
        let is_new = found.is_none();
        let last = found.filter(|found| found.is_finished);
        match last.as_ref().and_then(|last| Some((last, self.any.history.refuses(last)?))) {
            None => {}
            Some((last, Refusal::IsNewer)) => {
                let (folder, held, given) = (folder.path().to_owned(), last.updates, self.any.history.updates);
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
            if !self.any.stack.is_empty() {
                if is_new {
                    folder.publish(MANIFEST, |writer| Manifest::unfinished(self).write::<K, V>(writer))?;
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
            present.retain(|name| in_use.contains(name));
        }

        let is_new = |level: &Level<K, V>| {
            let name = level_name(level.id());
            !in_use.contains(&name) || !present.contains(&name)
        };
        let new: Vec<_> = self.levels().map(|(_, level)| level).filter(|level| is_new(level)).collect();
        for level in &new {
            folder.publish(&level_name(level.id()), |writer| write_level_file(stream, writer, level))?;
        }
        if !new.is_empty() {
            folder.sync()?;
        }
        let state = Manifest::of(self);
        if !last.is_some_and(|last| last.is_same_state(&state)) {
            folder.publish(MANIFEST, |writer| state.write::<K, V>(writer))?;
        }
        // Also if the manifest was there: its writer may have been killed before it did this.
        folder.sync()?;
        folder.collect(in_use.iter(), &state.names());
        Ok(())
    }

    /// Reads the dictionary that the last finished [`checkpoint`](Self::checkpoint) left in a folder. Further
    /// checkpoints in the same folder write only levels that are newer. Waits for a checkpoint that another process is
    /// writing. Checks everything: it returns a complete dictionary or an error. Changes nothing in the folder, which
    /// may be read-only.
    ///
    /// To start with an empty dictionary if there is no checkpoint yet, use [`recover_or_new`](Self::recover_or_new).
    ///
    /// # Errors
    /// - [`Error::Io`] if reading fails, or if no checkpoint was ever finished in this folder
    ///   ([`NotFound`](ErrorKind::NotFound)).
    /// - [`Error::DamagedFolder`] if the folder has lost its manifest or a level.
    /// - [`Error::InvalidFile`] if a file is damaged, truncated, or has other key or value types. The error says which
    ///   file, what is wrong and where.
    /// - [`Error::OutOfMemory`].
    pub fn recover(stream: &Stream, path: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = Folder::new(OsDisk::new(path.as_ref()));
        Self::recover_from(stream, &folder)?.ok_or_else(|| {
            let what =
                "there is no finished checkpoint in this folder: check the path, or start with an empty dictionary";
            folder.error(ErrorKind::NotFound, what)
        })
    }

    /// [Recovers](Self::recover) the dictionary of a folder, or creates an empty one with these options if no
    /// checkpoint was ever finished there. A folder that has lost files is an error: it is never taken for a new one.
    ///
    /// A dictionary that is recovered keeps its batch size. The cleanup policy is that of the options. Writes nothing:
    /// the first [`checkpoint`](Self::checkpoint) creates the folder.
    ///
    /// ```
    /// use gpu_lsm::{GpuLsm, Options};
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// # let folder = std::env::temp_dir().join(format!("recover-example-{}", std::process::id()));
    /// for run in 0..3 {
    ///     // In a program of its own, this goes on where the last run ended.
    ///     let mut visits = GpuLsm::<u32, u32>::recover_or_new(&stream, &folder, Options::new())?;
    ///     assert_eq!(visits.len(&stream)?, run);
    ///     let visitor = stream.upload(&[run as u32])?;
    ///     visits.insert(&stream, (&visitor, &visitor))?;
    ///     visits.checkpoint(&stream, &folder)?;
    /// }
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`recover`](Self::recover), without [`NotFound`](ErrorKind::NotFound), and of [`new`](Self::new).
    pub fn recover_or_new(stream: &Stream, path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let new = Self::empty(options)?;
        match Self::recover_from(stream, &Folder::new(OsDisk::new(path.as_ref())))? {
            Some(mut recovered) => {
                recovered.set_cleanup_policy(new.cleanup_policy());
                Ok(recovered)
            }
            None => Ok(new),
        }
    }

    /// Reads the dictionary in a folder, or returns `None` if no checkpoint was ever finished there.
    fn recover_from(stream: &Stream, folder: &Folder<impl Disk>) -> Result<Option<Self>, Error> {
        let lock = folder.lock_shared()?;
        match Self::read_from(stream, folder) {
            // There was nothing to lock. Perhaps the first writer came since then, and has already removed a level.
            Err(Error::DamagedFolder { .. }) if lock.is_none() => {
                let _lock = folder.lock_shared()?;
                Self::read_from(stream, folder)
            }
            read => read,
        }
    }

    fn read_from(stream: &Stream, folder: &Folder<impl Disk>) -> Result<Option<Self>, Error> {
        let Some(manifest) = manifest_in::<K, V>(folder)?.filter(|manifest| manifest.is_finished) else {
            return Ok(None);
        };
        let mut levels = Vec::new();
        for (&id, described) in manifest.levels.iter().zip(&manifest.header.levels) {
            let name = level_name(id);
            let level = folder.read(&name, |reader| read_level_file(stream, reader, id, described))?;
            levels.push(level.ok_or_else(|| folder.lacks(&name))?);
        }
        let mut lsm = Self::of_levels(&manifest.header, levels).map_err(|wrong| folder.invalid(MANIFEST, wrong))?;
        lsm.any.history.recovered = Some(manifest.id);
        Ok(Some(lsm))
    }
}

/// Reads the manifest of a folder, or returns `None` if the folder is new: it has no files of a dictionary.
fn manifest_in<K: Key, V: Value>(folder: &Folder<impl Disk>) -> Result<Option<Manifest>, Error> {
    let read = || folder.read(MANIFEST, |reader| Manifest::read::<K, V>(reader));
    if let Some(manifest) = read()? {
        return Ok(Some(manifest));
    }
    if !folder.names()?.iter().any(|name| is_part_of_level(name)) {
        return Ok(None);
    }
    // A level is never there before a manifest. But where there is no lock, both may be new.
    read()?.map(Some).ok_or_else(|| folder.lacks(MANIFEST))
}
