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

use crate::options::MAX_BATCH;
use crate::{GpuLsm, Key, Level, Parts, Value};
use gpu_dictionary::file::{Format, Source, ascending, write_array, write_section};
use gpu_dictionary::levels::Stack;
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-lsm\n", version: 2 };

/// What the file header says about one level.
struct LevelHeader {
    slot: usize,
    has_marks: bool,
    len: usize,
}

struct Header {
    batch_size: usize,
    batches: u64,
    tombstones: usize,
    levels: Vec<LevelHeader>,
}

impl Header {
    fn of<K: Key, V: Value>(lsm: &GpuLsm<K, V>) -> Self {
        let levels =
            lsm.levels().map(|(slot, level)| LevelHeader { slot, has_marks: level.has_tombstones(), len: level.len() });
        Self { batch_size: lsm.batch_size, batches: lsm.batches, tombstones: lsm.tombstones, levels: levels.collect() }
    }

    fn to_bytes<K: Key, V: Value>(&self) -> Vec<u8> {
        let mut bytes = FORMAT.header::<K, V>();
        bytes.push(self.levels.len() as u8);
        for number in [self.batch_size as u64, self.batches, self.tombstones as u64] {
            bytes.extend(number.to_le_bytes());
        }
        for level in &self.levels {
            bytes.extend((level.slot as u32).to_le_bytes());
            bytes.extend(u32::from(level.has_marks).to_le_bytes());
            bytes.extend((level.len as u64).to_le_bytes());
        }
        bytes
    }

    /// Reads the header of a dictionary with these types, and checks that it is consistent.
    fn read<K: Key, V: Value>(source: &mut Source<impl Read>) -> Result<Self, Error> {
        let (batch_size, batches, tombstones, described) = source.header::<K, V, _>(FORMAT, |source| {
            let [levels] = source.bytes()?;
            let numbers = (source.u64()?, source.u64()?, source.u64()?);
            let levels = (0..levels).map(|_| Ok((source.u32()?, source.u32()?, source.u64()?)));
            Ok((numbers.0, numbers.1, numbers.2, levels.collect::<Result<Vec<_>, Error>>()?))
        })?;
        let contradiction = || source.invalid("its header contradicts itself");
        let batch_size = usize::try_from(batch_size).ok().filter(|size| (1..=MAX_BATCH).contains(size));
        let batch_size = batch_size.ok_or_else(contradiction)?;
        let mut header = Self { batch_size, batches, tombstones: 0, levels: Vec::new() };
        let mut slots = 0;
        let mut newer_than = Stack::<K, V>::SLOTS;
        for (slot, has_marks, len) in described {
            let slot = slot as usize;
            if slot >= newer_than {
                return Err(contradiction());
            }
            newer_than = slot;
            slots |= 1 << slot;
            let most = (batch_size << slot).min(u32::MAX as usize);
            let len = usize::try_from(len).ok().filter(|len| (1..=most).contains(len)).ok_or_else(contradiction)?;
            header.levels.push(LevelHeader { slot, has_marks: has_marks != 0, len });
        }
        if batches != slots {
            return Err(contradiction());
        }
        // The caller compares this with the marks it reads.
        header.tombstones = usize::try_from(tombstones).map_err(|_| contradiction())?;
        Ok(header)
    }
}

/// Reads a level. Also returns how many of its elements are tombstones.
fn read_level<K: Key, V: Value>(
    source: &mut Source<impl Read>,
    stream: &Stream,
    &LevelHeader { slot, has_marks, len }: &LevelHeader,
) -> Result<(Level<K, V>, usize), Error> {
    let keys = source.array(stream, &format!("the keys of level {slot}"), len, ascending::<K::Code>(false))?;
    let values = source.values(stream, &format!("the values of level {slot}"), len)?;
    let mut tombstones = 0;
    let marks = has_marks.then(|| {
        let mut bits_left = len;
        source.array(stream, &format!("the marks of level {slot}"), len.div_ceil(32), |part: &[u32]| {
            for &word in part {
                // Bits past the last element have no meaning.
                let bits = bits_left.min(32);
                tombstones += (u64::from(word) & ((1 << bits) - 1)).count_ones() as usize;
                bits_left -= bits;
            }
            Ok(())
        })
    });
    // SAFETY: the codes were checked to ascend. All parts were read onto the stream's device by copies, which are not
    // recorded.
    Ok((unsafe { Level::from_parts(keys, values, marks.transpose()?)? }, tombstones))
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Writes the dictionary to a file: its levels as they are, without the cleanup policy. [`load`](Self::load) reads
    /// the file on any device. Waits for the stream. Needs 1 MiB of host memory and no device memory.
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
    /// [`Error::Io`] if writing fails, or any error of a copy to the host.
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        write_section(&mut writer, &Header::of(self).to_bytes::<K, V>())?;
        for (_, level) in self.levels() {
            let Parts { codes, values, marks } = level.parts();
            write_array(stream, &mut writer, codes)?;
            write_array(stream, &mut writer, values)?;
            if let Some(marks) = marks {
                write_array(stream, &mut writer, marks)?;
            }
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads a dictionary written by [`save`](Self::save). Reads exactly to the end of the dictionary. Checks
    /// everything: it returns a complete dictionary or an error.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has other key or value types. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - [`Error::OutOfMemory`].
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let header = Header::read::<K, V>(&mut source)?;
        let mut lsm = Self::with_batch_size(header.batch_size)?;
        for described in &header.levels {
            let (level, tombstones) = read_level(&mut source, stream, described)?;
            lsm.stack.set(described.slot, Some(level));
            lsm.tombstones += tombstones;
        }
        if lsm.tombstones != header.tombstones {
            let (found, stated) = (lsm.tombstones, header.tombstones);
            return Err(source.invalid(format!("it has {found} tombstones, but its header says {stated}")));
        }
        lsm.batches = header.batches;
        Ok(lsm)
    }
}
