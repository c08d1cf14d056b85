//! Checkpoints of LSMs and multimaps, of which only new levels are written.
//!
//! # Format
//! [`gpu_dictionary::checkpoint`] describes the folder, and why a crash loses nothing. The parts of an LSM are its levels.
//!
//! The name of the manifest is `gpu-man`, that of a multimap `gpu-mmn`. Its body is:
//!
//! | bytes | |
//! | --- | --- |
//! | 1 | number of levels |
//! | 8, 8, 8 | batch size, batches, tombstones |
//! | 4, 4, 8 per level, oldest first | slot, 0 if the level has no marks, length |
//! | 16 per level, oldest first | the level's id |
//!
//! The name of a level is `gpu-lvl`. It adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 16 | its id |
//! | 4, 8 | 0 if it has no marks, length |
//!
//! Its arrays follow: the key codes, the values and, if it has marks, the words of its marks.

#[cfg(test)]
mod buffer_tests;
#[cfg(test)]
mod fuzz;
mod multimap;
#[cfg(test)]
mod multimap_tests;
#[cfg(test)]
mod tests;

#[cfg(doc)]
use crate::Snapshot;
use crate::budget::Budget;
use crate::file::{Batches, Fields, Header, LevelHeader};
use crate::levels::Levels;
use crate::{GpuLsm, Key, Level, Options, Value};
use core::marker::PhantomData;
use gpu_dictionary::Durable;
use gpu_dictionary::checkpoint::{
    Body, Disk, Folder, History, MANIFEST, Manifest, OsDisk, Parts, Writing, read_finished, read_id,
};
use gpu_dictionary::file::{Format, Source, write_section};
use gpu_primitives::lowered::Place;
use gpu_primitives::{Error, Stream};
#[cfg(doc)]
use std::io::ErrorKind;
use std::io::{Read, Write};
use std::path::Path;

const LEVEL_FORMAT: Format = Format { magic: *b"gpu-lvl\n", version: 2 };

/// The state of an LSM or, if `EVERY` value of a key counts, of a multimap.
struct State<K, V, const EVERY: bool> {
    header: Header,
    /// The ids of the levels, oldest first.
    levels: Vec<u128>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value, const EVERY: bool> State<K, V, EVERY> {
    fn of(levels: &Levels) -> Self {
        let ids = levels.stack.oldest_first().map(|(_, level)| level.id()).collect();
        Self { header: Header::of(levels), levels: ids, types: PhantomData }
    }
}

impl<K: Key, V: Value, const EVERY: bool> Body for State<K, V, EVERY> {
    type Key = K;
    type Value = V;
    type Fields = (Fields, Vec<u128>);

    const FORMAT: Format = Format { magic: if EVERY { *b"gpu-mmn\n" } else { *b"gpu-man\n" }, version: 3 };
    const PARTS: Parts = Parts::Levels;

    fn parts(&self) -> &[u128] {
        &self.levels
    }

    fn unfinished(&self) -> Self {
        let header = Header { batch_size: self.header.batch_size, batches: 0, tombstones: 0, levels: Vec::new() };
        Self { header, levels: Vec::new(), types: PhantomData }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.header.write(bytes);
        bytes.extend(self.levels.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn read(source: &mut Source<impl Read>) -> Result<Self::Fields, Error> {
        let fields = Fields::read(source)?;
        let levels = (0..fields.level_count()).map(|_| read_id(source)).collect::<Result<_, Error>>()?;
        Ok((fields, levels))
    }

    fn checked(source: &Source<impl Read>, (fields, levels): Self::Fields) -> Result<Self, Error> {
        let header = Header::checked(source, fields, Batches::OfLevels)?;
        Ok(Self { header, levels, types: PhantomData })
    }
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
    level.write(stream, writer)
}

/// Reads a level that the manifest describes into a place. Also returns how many of its elements are tombstones.
fn read_level_file<K: Key, V: Value>(
    stream: &Stream,
    reader: &mut impl Read,
    id: u128,
    place: Place,
    described: &LevelHeader,
) -> Result<(Level<K, V>, usize), Error> {
    let mut source = Source::new(reader);
    let own = |source: &mut Source<_>| Ok((read_id(source)?, source.u32()? != 0, source.u64()?));
    let found = source.header::<K, V, _>(LEVEL_FORMAT, own)?;
    if found != (id, described.has_marks, described.len as u64) {
        return Err(source.invalid("it is not the level that the manifest names"));
    }
    let (level, tombstones) = described.read::<K, V>(&mut source, stream, place)?;
    Ok((level.with_id(id), tombstones))
}

/// Writes a checkpoint of levels: those that the folder does not hold yet, and the manifest.
fn write_levels<K: Key, V: Value, const EVERY: bool>(
    lsm: &GpuLsm<K, V>,
    stream: &Stream,
    disk: &impl Disk,
) -> Result<(), Error> {
    let levels = lsm.any.levels(stream)?;
    levels.stack.expect_device(stream)?;
    let state = State::<K, V, EVERY>::of(levels);
    let mut writing = Writing::begin(disk, &lsm.any.history, &state, !state.levels.is_empty())?;
    for (_, level) in lsm.levels(stream)? {
        if !writing.holds(level.id()) {
            writing.part(level.id(), |writer| write_level_file(stream, writer, level))?;
        }
    }
    writing.finish(state)
}

/// Reads the levels of the last finished checkpoint to where a budget has them, or returns `None` if there is none.
fn read_levels<K: Key, V: Value, const EVERY: bool>(
    stream: &Stream,
    disk: &impl Disk,
    budget: Budget,
) -> Result<Option<GpuLsm<K, V>>, Error> {
    read_finished(disk, |folder, manifest: &Manifest<State<K, V, EVERY>>| {
        let State { header, levels: ids, .. } = &manifest.body;
        let mut levels = Vec::new();
        for ((&id, described), place) in ids.iter().zip(&header.levels).zip(header.places::<K, V>(budget)) {
            let name = Parts::Levels.name(id);
            let level = folder.read(&name, |reader| read_level_file(stream, reader, id, place, described))?;
            levels.push(level.ok_or_else(|| folder.lacks(&name))?);
        }
        let mut lsm = GpuLsm::of_levels(header, levels).map_err(|wrong| folder.invalid(MANIFEST, wrong))?;
        if EVERY && lsm.levels(stream)?.any(|(_, level)| level.has_tombstones()) {
            return Err(folder.invalid(MANIFEST, "the levels of a multimap have tombstones".to_owned()));
        }
        lsm.any.history = History::recovered_from(manifest.id);
        Ok(lsm)
    })
}

/// A checkpoint writes only the levels that the folder does not hold yet.
impl<K: Key, V: Value> Durable for GpuLsm<K, V> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        match self.combined(stream)? {
            Some(combined) => write_levels::<K, V, false>(&combined, stream, disk),
            None => write_levels::<K, V, false>(self, stream, disk),
        }
    }

    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&Options>) -> Result<Option<Self>, Error> {
        let budget = options.map_or_else(Budget::default, |options| options.device_memory);
        let mut recovered = read_levels::<K, V, false>(stream, disk, budget)?;
        if let (Some(recovered), Some(options)) = (&mut recovered, options) {
            recovered.adopt(options);
        }
        Ok(recovered)
    }

    /// Takes the buffer, the budget of device memory and the cleanup policy. The batch size stays as it is. Levels that are on the device
    /// already leave it with the next update.
    fn adopt(&mut self, options: &Options) {
        self.any.adopt(options);
    }
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Saves the dictionary in a folder, durably: its levels as they are, without the buffer's size and the cleanup policy.
    /// [Flushes](Self::flush) the buffer first. Writes only the levels that the folder does not hold yet.
    /// [`recover`](Self::recover) reads them on any device. Creates the folder if it is missing. Waits for the stream. Needs
    /// 1 MiB of host memory and, after the flush, no device memory.
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
        self.checkpoint_to(stream, &OsDisk::new(path))
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
        let disk = OsDisk::new(path);
        Self::recover_from(stream, &disk, None)?.ok_or_else(|| Folder::new(&disk).without_checkpoint())
    }

    /// [Recovers](Self::recover) the dictionary of a folder, or creates an empty one with these options if no
    /// checkpoint was ever finished there. A folder that has lost files is an error: it is never taken for a new one.
    ///
    /// A dictionary that is recovered keeps its batch size. The buffer, the cleanup policy and the
    /// [budget of device memory](Options::device_memory) are those of the options. Writes nothing:
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
        Ok(Self::recover_from(stream, &OsDisk::new(path), Some(&options))?.unwrap_or(new))
    }
}
