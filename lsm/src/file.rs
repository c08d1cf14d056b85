//! Saves dictionaries to files and loads them.
//!
//! # Format
//! [`gpu_dictionary::file`] describes the common format. The LSM adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 1 | number of levels |
//! | 8, 8, 8 | batch size, batches, tombstones |
//! | 4, 4, 8 per level, oldest first | slot, 0 if the level has no marks, length |
//!
//! For each level follow three arrays: the key codes, the values and, if the level has marks, the words of its marks.

use crate::budget::Budget;
use crate::levels::Levels;
use crate::options::MAX_BATCH;
use crate::{GpuLsm, Key, Level, Options, Value};
use gpu_dictionary::file::{Format, Source, write_section};
use gpu_dictionary::levels::{AnyLevel, AnyStack, Stored, Types};
use gpu_primitives::lowered::Place;
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-lsm\n", version: 2 };

/// What a file says about one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LevelHeader {
    pub slot: usize,
    pub has_marks: bool,
    pub len: usize,
}

/// What a file says about the dictionary. It is consistent.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    pub batch_size: usize,
    pub batches: u64,
    pub tombstones: usize,
    pub levels: Vec<LevelHeader>,
}

/// Which batches the header of a file may count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Batches {
    /// Those of the levels, which all have elements.
    OfLevels,
    /// Also those of levels that a deletion has emptied, which are not in the file. Earlier versions of this library counted
    /// them in multimaps.
    WithEmptied,
}

/// The fields of a header, as read: unchecked.
pub(crate) struct Fields {
    /// Batch size, batches, tombstones.
    numbers: [u64; 3],
    /// Slot, whether there are marks, length.
    levels: Vec<(u32, u32, u64)>,
}

impl Fields {
    /// Reads the fields.
    pub fn read(source: &mut Source<impl Read>) -> Result<Self, Error> {
        let [levels] = source.bytes()?;
        let numbers = [source.u64()?, source.u64()?, source.u64()?];
        let levels = (0..levels).map(|_| Ok((source.u32()?, source.u32()?, source.u64()?)));
        Ok(Self { numbers, levels: levels.collect::<Result<_, Error>>()? })
    }

    /// Returns the number of levels.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }
}

impl LevelHeader {
    /// Reads the arrays of the level into a place. Also returns how many of its elements are tombstones.
    pub fn read<K: Key, V: Value>(
        &self,
        source: &mut Source<impl Read>,
        stream: &Stream,
        place: Place,
    ) -> Result<(Level<K, V>, usize), Error> {
        let &Self { slot, has_marks, len } = self;
        let of = format!(" of level {slot}");
        Level::read(source, stream, place, Stored { of: &of, len, has_marks, is_distinct: false })
    }
}

impl Header {
    pub fn of(levels: &Levels) -> Self {
        let &Levels { batch_size, batches, ref stack, tombstones } = levels;
        let header =
            |(slot, level): (_, &AnyLevel)| LevelHeader { slot, has_marks: level.has_tombstones(), len: level.len() };
        Self { batch_size, batches, tombstones, levels: stack.oldest_first().map(header).collect() }
    }

    /// Returns where a budget has the levels, from the oldest to the newest.
    pub fn places<K: Key, V: Value>(&self, budget: Budget) -> Vec<Place> {
        let stored = Types::of::<K, V>().stored_bytes();
        let newest_first = self.levels.iter().rev().map(|level| level.len.saturating_mul(stored));
        let mut places: Vec<Place> = budget.places(newest_first).collect();
        places.reverse();
        places
    }

    /// Appends the fields to the bytes of a header.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.levels.len() as u8);
        for number in [self.batch_size as u64, self.batches, self.tombstones as u64] {
            bytes.extend(number.to_le_bytes());
        }
        for level in &self.levels {
            bytes.extend((level.slot as u32).to_le_bytes());
            bytes.extend(u32::from(level.has_marks).to_le_bytes());
            bytes.extend((level.len as u64).to_le_bytes());
        }
    }

    /// Checks that the fields from this source are consistent.
    pub fn checked(source: &Source<impl Read>, fields: Fields, counted: Batches) -> Result<Self, Error> {
        let Fields { numbers: [batch_size, batches, tombstones], levels: described } = fields;
        let contradiction = || source.invalid("its header contradicts itself");
        let batch_size = usize::try_from(batch_size).ok().filter(|size| (1..=MAX_BATCH).contains(size));
        let batch_size = batch_size.ok_or_else(contradiction)?;
        let mut header = Self { batch_size, batches: 0, tombstones: 0, levels: Vec::new() };
        let mut newer_than = AnyStack::SLOTS;
        for (slot, has_marks, len) in described {
            let slot = slot as usize;
            if slot >= newer_than {
                return Err(contradiction());
            }
            newer_than = slot;
            header.batches |= 1 << slot;
            let most = (batch_size << slot).min(u32::MAX as usize);
            let len = usize::try_from(len).ok().filter(|len| (1..=most).contains(len)).ok_or_else(contradiction)?;
            header.levels.push(LevelHeader { slot, has_marks: has_marks != 0, len });
        }
        let is_counted = match counted {
            Batches::OfLevels => batches == header.batches,
            Batches::WithEmptied => batches & header.batches == header.batches && batches >> AnyStack::SLOTS == 0,
        };
        if !is_counted {
            return Err(contradiction());
        }
        // The caller compares this with the marks it reads.
        header.tombstones = usize::try_from(tombstones).map_err(|_| contradiction())?;
        Ok(header)
    }
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Writes the dictionary to a file: its levels as they are, without the buffer's size and the cleanup policy.
    /// [`load`](Self::load) reads the file on any device. [Flushes](Self::flush) the buffer first. Waits for the stream. Needs
    /// 1 MiB of host memory and, after the flush, no device memory.
    ///
    /// If there are [upserts](Self::upsert) that are not combined yet, combines them in a temporary copy, and writes that.
    ///
    /// ```
    /// # use gpu_lsm::GpuLsm;
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// let mut file = Vec::new();
    /// lsm.save(&stream, &mut file)?;
    ///
    /// let again = GpuLsm::<u32, u32>::load(&stream, &file[..])?;
    /// assert_eq!(again.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or any error of a copy to the host. With upserts, the errors of
    /// [`cleanup`](Self::cleanup).
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        if let Some(combined) = self.combined(stream)? {
            return combined.save(stream, writer);
        }
        let mut header = FORMAT.header::<K, V>();
        Header::of(self.any.levels(stream)?).write(&mut header);
        write_section(&mut writer, &header)?;
        for (_, level) in self.levels(stream)? {
            level.write(stream, &mut writer)?;
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads a dictionary written by [`save`](Self::save), by this version of the library or an older one: format
    /// versions 1 and 2. Version 1 does not state the type of the values, so only their size is checked. Reads exactly
    /// to the end of the dictionary. Checks everything: it returns a complete dictionary or an error.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has other key or value types. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - [`Error::OutOfMemory`].
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        Self::load_counted(stream, reader, Batches::OfLevels, Budget::default())
    }

    /// [Loads](Self::load) a dictionary, and gives it these options: levels are read to where its
    /// [budget of device memory](Options::device_memory) has them. The batch size is that of the file.
    ///
    /// ```
    /// # use gpu_lsm::{GpuLsm, Options};
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// # let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// # lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// # let mut file = Vec::new();
    /// lsm.save(&stream, &mut file)?;
    /// let again = GpuLsm::<u32, u32>::load_with(&stream, &file[..], Options::new().device_memory(0))?;
    /// assert_eq!(again.stats(&stream)?.host_bytes, 16);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`load`](Self::load) and [`new`](Self::new).
    pub fn load_with(stream: &Stream, reader: impl Read, options: Options) -> Result<Self, Error> {
        let options = options.checked()?;
        let mut loaded = Self::load_counted(stream, reader, Batches::OfLevels, options.device_memory)?;
        loaded.any.adopt(&options);
        Ok(loaded)
    }

    /// Reads a dictionary whose header counts these batches, to where a budget has its levels.
    pub(crate) fn load_counted(
        stream: &Stream,
        reader: impl Read,
        counted: Batches,
        budget: Budget,
    ) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let fields = source.header::<K, V, _>(FORMAT, Fields::read)?;
        let header = Header::checked(&source, fields, counted)?;
        let levels = header.levels.iter().zip(header.places::<K, V>(budget));
        let levels = levels.map(|(described, place)| described.read(&mut source, stream, place));
        let levels = levels.collect::<Result<_, Error>>()?;
        Self::of_levels(&header, levels).map_err(|wrong| source.invalid(wrong))
    }

    /// Makes a dictionary of the levels that a header describes, each with its number of tombstones. Returns what is
    /// wrong if their tombstones are not as many as stated.
    pub(crate) fn of_levels(header: &Header, levels: Vec<(Level<K, V>, usize)>) -> Result<Self, String> {
        let mut lsm = Self::with_batch_size(header.batch_size).map_err(|error| error.to_string())?;
        let mut loaded = Levels::new(Types::of::<K, V>(), header.batch_size);
        for (described, (level, tombstones)) in header.levels.iter().zip(levels) {
            loaded.stack.set(described.slot, Some(level.into_any()));
            loaded.tombstones += tombstones;
        }
        if loaded.tombstones != header.tombstones {
            let (found, stated) = (loaded.tombstones, header.tombstones);
            return Err(format!("it has {found} tombstones, but its header says {stated}"));
        }
        loaded.batches = header.batches;
        lsm.any.put(loaded);
        Ok(lsm)
    }
}
