//! Dictionaries in files.
//!
//! # Format
//! Numbers are little-endian. A *section* is some bytes and their CRC-32 in 4 more.
//!
//! The first section is the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | `gpu-lsm` and a line feed |
//! | 4 | the version of the format: 1 |
//! | 1, 1, 1 | the type of the keys, their size, the size of the values |
//! | 1 | how many levels there are |
//! | 8, 8, 8 | batch size, batches, tombstones |
//! | 4, 4, 8 per level, the oldest first | its slot, 0 if it has no marks, its length |
//!
//! Then come, for every level, the keys' codes, the values, and the words of marks if there are any: each in sections of
//! 1 MiB, the last of which may be shorter.

use crate::lsm::MAX_BATCH;
use crate::{GpuLsm, Key, Level};
use bytemuck::Pod;
use gpu_primitives::dictionary::levels::Stack;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::any::TypeId;
use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"gpu-lsm\n";
const VERSION: u32 = 1;
/// Bytes of a section of data: what the host holds of a level at a time.
const SECTION_BYTES: usize = 1 << 20;
/// Names of the key types, by their numbers.
const KEY_TYPES: [&str; 7] = ["another type", "u32", "u64", "i32", "i64", "f32", "f64"];

/// The number of a key type.
fn key_type<K: Key>() -> u8 {
    let known = [
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
    ];
    known.iter().position(|&known| known == TypeId::of::<K>()).map_or(0, |place| place as u8 + 1)
}

/// Elements of a section.
const fn section_len<T>() -> usize {
    if size_of::<T>() == 0 { SECTION_BYTES } else { SECTION_BYTES / size_of::<T>() }
}

/// The room for an array of `len` elements of which `read` have come. What a file says about lengths may be a lie, so there
/// is room for sixteen times as many as have come at most; and when it has to grow for the last time, what was there before
/// is a sixteenth.
fn room(len: usize, read: usize) -> usize {
    let mut room = len;
    while room > read && room.div_ceil(16) >= read {
        room = room.div_ceil(16);
    }
    room
}

/// What a file says about a level.
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
    fn of<K: Key, V: Pod>(lsm: &GpuLsm<K, V>) -> Self {
        let levels =
            lsm.levels().map(|(slot, level)| LevelHeader { slot, has_marks: level.has_tombstones(), len: level.len() });
        Self { batch_size: lsm.batch_size, batches: lsm.batches, tombstones: lsm.tombstones, levels: levels.collect() }
    }

    fn to_bytes<K: Key, V: Pod>(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([key_type::<K>(), size_of::<K>() as u8, size_of::<V>() as u8, self.levels.len() as u8]);
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

    /// Reads the header of a dictionary of these types. What it says can be true of one.
    fn read<K: Key, V: Pod>(source: &mut Source<impl Read>) -> Result<Self, Error> {
        if source.bytes::<8>()? != MAGIC {
            return Err(source.invalid("it is no dictionary"));
        }
        let version = source.u32()?;
        if version != VERSION {
            return Err(source.invalid(format!("its version is {version}, and only {VERSION} is known")));
        }
        let [key, key_bytes, value_bytes, levels] = source.bytes()?;
        let (batch_size, batches, tombstones) = (source.u64()?, source.u64()?, source.u64()?);
        let mut described = Vec::with_capacity(levels.into());
        for _ in 0..levels {
            described.push((source.u32()?, source.u32()?, source.u64()?));
        }
        source.end_section("the header")?;

        let name = |key: u8| KEY_TYPES.get(usize::from(key)).copied().unwrap_or("an unknown type");
        if key != key_type::<K>() || usize::from(key_bytes) != size_of::<K>() {
            let (found, expected) = (name(key), name(key_type::<K>()));
            return Err(source.invalid(format!("its keys are of type {found}, and not {expected}")));
        }
        if usize::from(value_bytes) != size_of::<V>() {
            let expected = size_of::<V>();
            return Err(source.invalid(format!("its values have {value_bytes} bytes, and not {expected}")));
        }
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
        // Whether there are so many will be seen.
        header.tombstones = usize::try_from(tombstones).map_err(|_| contradiction())?;
        Ok(header)
    }
}

/// A file that is read: where it is, and the checksum of the section so far.
struct Source<R> {
    reader: R,
    at: u64,
    checksum: crc32fast::Hasher,
}

impl<R: Read> Source<R> {
    fn invalid(&self, what: impl Into<String>) -> Error {
        Error::InvalidFile { what: what.into(), at: self.at }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.invalid("it ends too early"),
            _ => Error::Io(error),
        })?;
        self.checksum.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn end_section(&mut self, what: &str) -> Result<(), Error> {
        let found = std::mem::take(&mut self.checksum).finalize();
        let stated = self.u32()?;
        self.checksum.reset();
        if found == stated { Ok(()) } else { Err(self.invalid(format!("the checksum of {what} is wrong"))) }
    }

    /// Reads an array of `len` elements onto the device. Each section of it is shown to `check`, which says what is wrong.
    fn array<T: Pod>(
        &mut self,
        stream: &Stream,
        what: &str,
        len: usize,
        mut check: impl FnMut(&[T]) -> Result<(), &'static str>,
    ) -> Result<DeviceVec<T>, Error> {
        let mut host = vec![T::zeroed(); len.min(section_len::<T>())];
        let mut array = stream.uninit::<T>(room(len, host.len()))?;
        let mut done = 0;
        while done < len {
            let end = len.min(done + host.len());
            let part = &mut host[..end - done];
            self.fill(bytemuck::cast_slice_mut(part))?;
            self.end_section(what)?;
            check(part).map_err(|wrong| self.invalid(format!("{what}: {wrong}")))?;
            if end > array.len() {
                let mut longer = stream.uninit(room(len, end))?;
                longer.slice_mut(..done)?.copy_from(stream, array.slice(..done)?)?;
                array = longer;
            }
            array.slice_mut(done..end)?.copy_from_host(stream, part)?;
            done = end;
        }
        Ok(array)
    }

    /// Reads a level, and how many of its elements are tombstones.
    fn level<K: Key, V: Pod>(
        &mut self,
        stream: &Stream,
        &LevelHeader { slot, has_marks, len }: &LevelHeader,
    ) -> Result<(Level<K, V>, usize), Error> {
        let mut last = None;
        let keys = self.array(stream, &format!("the keys of level {slot}"), len, |part: &[K::Code]| {
            let is_sorted = last <= part.first().copied() && part.is_sorted();
            last = part.last().copied();
            if is_sorted { Ok(()) } else { Err("they are not sorted") }
        })?;
        let values = if size_of::<V>() == 0 { 0 } else { len };
        let values = self.array(stream, &format!("the values of level {slot}"), values, |_: &[V]| Ok(()))?;
        let mut tombstones = 0;
        let marks = has_marks.then(|| {
            let mut bits_left = len;
            self.array(stream, &format!("the marks of level {slot}"), len.div_ceil(32), |part: &[u32]| {
                for &word in part {
                    // Bits beyond the last element mean nothing.
                    let bits = bits_left.min(32);
                    tombstones += (u64::from(word) & ((1 << bits) - 1)).count_ones() as usize;
                    bits_left -= bits;
                }
                Ok(())
            })
        });
        Ok((Level::from_parts(keys, values, marks.transpose()?)?, tombstones))
    }
}

fn write_section(writer: &mut impl Write, bytes: &[u8]) -> Result<(), Error> {
    writer.write_all(bytes)?;
    writer.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
    Ok(())
}

fn write_array<T: Pod>(stream: &Stream, writer: &mut impl Write, array: DeviceSlice<'_, T>) -> Result<(), Error> {
    let mut host = vec![T::zeroed(); array.len().min(section_len::<T>())];
    let mut done = 0;
    while done < array.len() {
        let end = array.len().min(done + host.len());
        let part = &mut host[..end - done];
        array.slice(done..end)?.copy_to_host(stream, part)?;
        write_section(writer, bytemuck::cast_slice(part))?;
        done = end;
    }
    Ok(())
}

impl<K: Key, V: Pod> GpuLsm<K, V> {
    /// Writes the dictionary to a file: its levels as they are, without the cleanup policy. [`load`](Self::load) reads it
    /// again, on any device. Waits for the stream; takes 1 MiB of host memory and none of the device.
    ///
    /// ```
    /// # use gpu_lsm::GpuLsm;
    /// # use gpu_primitives::{Device, Error};
    /// # let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::new(1024)?;
    /// lsm.insert(&stream, &stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?)?;
    /// let mut file = Vec::new();
    /// lsm.save(&stream, &mut file)?;
    ///
    /// let again = GpuLsm::<u32, u32>::load(&stream, &file[..])?;
    /// assert_eq!(again.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails; what a copy to the host can give.
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        write_section(&mut writer, &Header::of(self).to_bytes::<K, V>())?;
        for (_, level) in self.levels() {
            let (keys, values, marks) = level.parts()?;
            write_array(stream, &mut writer, keys)?;
            write_array(stream, &mut writer, values)?;
            if let Some(marks) = marks {
                write_array(stream, &mut writer, marks)?;
            }
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads a dictionary that [`save`](Self::save) has written. It is read to its end and no further, and everything it says
    /// is checked: what it loads is a whole dictionary, or nothing.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the file is damaged, cut off, or one of other keys or values, with what is wrong and where;
    /// [`Error::Io`] if reading fails; [`Error::OutOfMemory`].
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        let mut source = Source { reader, at: 0, checksum: crc32fast::Hasher::new() };
        let header = Header::read::<K, V>(&mut source)?;
        let mut lsm = Self::new(header.batch_size)?;
        for described in &header.levels {
            let (level, tombstones) = source.level(stream, described)?;
            lsm.stack.set(described.slot, Some(level));
            lsm.tombstones += tombstones;
        }
        if lsm.tombstones != header.tombstones {
            let (found, stated) = (lsm.tombstones, header.tombstones);
            return Err(source.invalid(format!("it has {found} tombstones, and says that there are {stated}")));
        }
        lsm.batches = header.batches;
        Ok(lsm)
    }
}

#[cfg(test)]
mod tests {
    use super::room;

    #[test]
    fn room_grows_with_what_has_come() {
        for (len, read, expected) in [(0, 0, 0), (1, 1, 1), (16, 1, 1), (17, 1, 1), (17, 2, 2), (1600, 100, 100)] {
            assert_eq!(room(len, read), expected, "{read} of {len}");
        }
        for len in [1, 100, 12_345, 1 << 32] {
            let mut read = 1;
            while read < len {
                let room = room(len, read);
                assert!(read <= room && room <= len && room < 16 * read, "{read} of {len}: {room}");
                read = room + 1;
            }
        }
    }
}
