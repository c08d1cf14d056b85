//! The file format that all dictionaries share.
//!
//! # Format
//! Numbers are little-endian. A *section* is a sequence of bytes followed by its CRC-32, in 4 bytes.
//!
//! The first section is the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | the name of the structure: [`Format::magic`] |
//! | 4 | [`Format::version`] |
//! | 1, 1 | type of the keys, size of a key |
//! | 1, 1 | type of the values, size of a value |
//! | | the structure's own fields |
//!
//! Dictionaries of levels store the codes of keys: 4, 8, 16 or 32 bytes each. The type of keys that are not numbers is 0, so that
//! only their size is compared.
//!
//! Arrays follow, each in sections of 1 MiB; the last section of an array may be shorter. The lengths of the arrays
//! follow from the header.
//!
//! This is version 2. Version 1 did not state the type of the values, only their size. Files of version 1 still load.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::Key;
use bytemuck::Pod;
use gpu_primitives::lowered::Place;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::any::TypeId;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::time::SystemTime;

/// Bytes of a data section: the part of an array that the host holds at a time.
const SECTION_BYTES: usize = 1 << 20;
/// The oldest version that can be read. Its header states the size of the values, but not their type.
const OLDEST_VERSION: u32 = 1;
/// The names of the types, by number. Types that are not numbers are distinguished only by size.
const TYPES: [&str; 13] =
    ["plain data", "u32", "u64", "i32", "i64", "f32", "f64", "u8", "u16", "i8", "i16", "u128", "i128"];

/// The structures that have a file format: the first bytes of their files, and their names for error messages.
const STRUCTURES: [([u8; 8], &str); 15] = [
    (*b"gpu-lsm\n", "an LSM"),
    (*b"gpu-arr\n", "a sorted array"),
    (*b"gpu-cuc\n", "a cuckoo table"),
    (*b"gpu-pln\n", "a cuckoo table of plain keys"),
    (*b"gpu-val\n", "a dictionary of large values"),
    (*b"gpu-mul\n", "a multimap"),
    (*b"gpu-man\n", "the manifest of a checkpoint of an LSM"),
    (*b"gpu-mmn\n", "the manifest of a checkpoint of a multimap"),
    (*b"gpu-one\n", "the manifest of a checkpoint in one part"),
    (*b"gpu-shm\n", "the manifest of a checkpoint of a sharded dictionary"),
    (*b"gpu-prt\n", "a part of a checkpoint"),
    (*b"gpu-lvl\n", "a level of a checkpoint"),
    (*b"gpu-shd\n", "a sharded dictionary"),
    (*b"gpu-set\n", "the list of a set of files"),
    (*b"gpu-blm\n", "a filter"),
];

/// Says what a file with these first bytes holds.
fn structure(magic: [u8; 8]) -> Option<&'static str> {
    STRUCTURES.iter().find(|(known, _)| *known == magic).map(|&(_, name)| name)
}

/// The structure that a file holds, and the version of its format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The first bytes of the file, which name the structure.
    pub magic: [u8; 8],
    /// The version of the rest of the format.
    pub version: u32,
}

impl Format {
    /// Returns the common part of the header. The structure appends its own fields.
    #[must_use]
    pub fn header<K: Key, V: Pod>(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([type_number::<K>(), size_of::<K>() as u8, type_number::<V>(), size_of::<V>() as u8]);
        bytes
    }
}

/// Returns the number of a type.
fn type_number<T: 'static>() -> u8 {
    let known = [
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<i8>(),
        TypeId::of::<i16>(),
        TypeId::of::<u128>(),
        TypeId::of::<i128>(),
    ];
    known.iter().position(|&known| known == TypeId::of::<T>()).map_or(0, |index| index as u8 + 1)
}

/// Returns the name of a type for error messages, from its number and size.
fn type_name(number: u8, bytes: u8) -> String {
    match TYPES.get(usize::from(number)) {
        Some(_) if number == 0 => format!("plain data of {bytes} bytes"),
        Some(name) => (*name).to_owned(),
        None => "an unknown type".to_owned(),
    }
}

/// Returns how many elements fit into a section.
const fn section_len<T>() -> usize {
    match size_of::<T>() {
        0 => SECTION_BYTES,
        SECTION_BYTES.. => 1,
        bytes => SECTION_BYTES / bytes,
    }
}

/// Returns how many elements to allocate for an array of `len` elements when `read` have arrived. The length in the
/// file may be false, so this is at most sixteen times what has arrived. When the array grows for the last time, its
/// previous allocation was a sixteenth of the final one.
fn room(len: usize, read: usize) -> usize {
    let mut room = len;
    while room > read && room.div_ceil(16) >= read {
        room = room.div_ceil(16);
    }
    room
}

/// A file being read: the position, and the checksum of the current section so far.
#[derive(Debug)]
pub struct Source<R> {
    reader: R,
    at: u64,
    checksum: crc32fast::Hasher,
    /// The version of the format, once it has been read.
    version: u32,
}

impl<R: Read> Source<R> {
    /// Starts at the beginning of a file.
    pub fn new(reader: R) -> Self {
        Self { reader, at: 0, checksum: crc32fast::Hasher::new(), version: 0 }
    }

    /// Returns the error for an invalid file: what is wrong, at the current position.
    pub fn invalid(&self, what: impl Into<String>) -> Error {
        Error::InvalidFile { what: what.into(), at: self.at }
    }

    /// Returns the version of the format that the file has; 0 before [`header`](Self::header) reads the structure's own
    /// fields.
    pub fn version(&self) -> u32 {
        self.version
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

    /// Reads the next bytes.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the file ends too early, or [`Error::Io`]. All reads can return these.
    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the next 4-byte number.
    ///
    /// # Errors
    /// The errors of [`bytes`](Self::bytes).
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// Reads the next 8-byte number.
    ///
    /// # Errors
    /// The errors of [`bytes`](Self::bytes).
    pub fn u64(&mut self) -> Result<u64, Error> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn end_section(&mut self, what: &str) -> Result<(), Error> {
        let found = std::mem::take(&mut self.checksum).finalize();
        let stated = self.u32()?;
        self.checksum.reset();
        if found == stated { Ok(()) } else { Err(self.invalid(format!("the checksum of {what} is wrong"))) }
    }

    /// Reads the header of a dictionary with these types, of this version of the format or an older one. `own` reads the
    /// structure's own fields, which must not be relied on before this method returns.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the file holds another structure or other types, or the errors of
    /// [`bytes`](Self::bytes).
    pub fn header<K: Key, V: Pod, T>(
        &mut self,
        format: Format,
        own: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let magic = self.bytes::<8>()?;
        if magic != format.magic {
            let expected = structure(format.magic).unwrap_or("another structure");
            return Err(self.invalid(match structure(magic) {
                Some(found) => format!("it holds {found}, but {expected} was expected"),
                None => format!("it does not hold a dictionary; {expected} was expected"),
            }));
        }
        let (version, known) = (self.u32()?, format.version);
        if !(OLDEST_VERSION..=known).contains(&version) {
            let hint = if version > known { "a newer version of this library wrote it" } else { "it is too old" };
            return Err(self.invalid(format!("its format version is {version}, but {known} was expected: {hint}")));
        }
        self.version = version;
        let [key, key_bytes] = self.bytes()?;
        // Where the type is not stated, it counts as the expected one.
        let [value] = if version == OLDEST_VERSION { [type_number::<V>()] } else { self.bytes()? };
        let [value_bytes] = self.bytes()?;
        let own = own(self)?;
        self.end_section("the header")?;

        if version == OLDEST_VERSION && usize::from(value_bytes) != size_of::<V>() {
            let expected = size_of::<V>();
            return Err(self.invalid(format!("its values have {value_bytes} bytes, but {expected} were expected")));
        }
        let expected_key = (type_number::<K>(), size_of::<K>() as u8);
        let expected_value = (type_number::<V>(), size_of::<V>() as u8);
        for (what, found, expected) in
            [("keys", (key, key_bytes), expected_key), ("values", (value, value_bytes), expected_value)]
        {
            if found != expected {
                let (found, expected) = (type_name(found.0, found.1), type_name(expected.0, expected.1));
                return Err(self.invalid(format!("its {what} are of type {found}, but {expected} was expected")));
            }
        }
        Ok(own)
    }

    /// Reads an array of `len` elements onto the device. Passes each section to `check`, which returns what is wrong
    /// with it. The device allocation grows with the data that has been read, so a false length does not use up all
    /// memory.
    ///
    /// # Errors
    /// - The errors of [`bytes`](Self::bytes).
    /// - [`Error::InvalidFile`] with the message from `check`.
    /// - [`Error::OutOfMemory`].
    pub fn array<T: Pod>(
        &mut self,
        stream: &Stream,
        what: &str,
        len: usize,
        check: impl FnMut(&[T]) -> Result<(), &'static str>,
    ) -> Result<DeviceVec<T>, Error> {
        self.array_in(stream, Place::Device, what, len, check)
    }

    /// [`array`](Self::array) in a place.
    ///
    /// # Errors
    /// The errors of `array`.
    #[doc(hidden)]
    pub fn array_in<T: Pod>(
        &mut self,
        stream: &Stream,
        place: Place,
        what: &str,
        len: usize,
        mut check: impl FnMut(&[T]) -> Result<(), &'static str>,
    ) -> Result<DeviceVec<T>, Error> {
        // The caller uses the data right after this call, but recorded work would run only later.
        stream.refuse_recording("loading a dictionary")?;
        let mut host = vec![T::zeroed(); len.min(section_len::<T>())];
        let mut array = stream.uninit_in::<T>(place, room(len, host.len()))?;
        let mut done = 0;
        while done < len {
            let end = len.min(done + host.len());
            let part = &mut host[..end - done];
            self.fill(bytemuck::cast_slice_mut(part))?;
            self.end_section(what)?;
            check(part).map_err(|wrong| self.invalid(format!("{what}: {wrong}")))?;
            if end > array.len() {
                let mut longer = stream.uninit_in(place, room(len, end))?;
                longer.slice_mut(..done)?.copy_from(stream, array.slice(..done)?)?;
                array = longer;
            }
            array.slice_mut(done..end)?.copy_from_host(stream, part)?;
            done = end;
        }
        Ok(array)
    }

    /// Reads the values of `len` keys; reads nothing if values are zero-sized.
    ///
    /// # Errors
    /// The errors of [`array`](Self::array).
    pub fn values<V: Pod>(&mut self, stream: &Stream, what: &str, len: usize) -> Result<DeviceVec<V>, Error> {
        self.array(stream, what, if size_of::<V>() == 0 { 0 } else { len }, |_| Ok(()))
    }
}

/// Returns a check that an array, passed part by part, ascends. If `strict`, it must not have duplicates.
pub fn ascending<T: Copy + PartialOrd>(strict: bool) -> impl FnMut(&[T]) -> Result<(), &'static str> {
    let mut last = None;
    move |part| {
        let in_order = |a: &T, b: &T| if strict { a < b } else { a <= b };
        let follows = last.as_ref().zip(part.first()).is_none_or(|(last, first)| in_order(last, first));
        last = part.last().copied().or(last);
        match follows && part.is_sorted_by(in_order) {
            true => Ok(()),
            false if strict => Err("they do not ascend"),
            false => Err("they are not sorted"),
        }
    }
}

/// Returns a check that an array of codes, passed part by part, ascends, and that each is the code of a key. If `strict`, it
/// must not have duplicates.
pub fn ascending_codes<K: Key>(strict: bool) -> impl FnMut(&[K::Code]) -> Result<(), &'static str> {
    let mut in_order = ascending(strict);
    let is_code = |&code: &K::Code| K::IS_PLAIN || K::from_code(code).code() == code;
    move |part| {
        in_order(part)?;
        if part.iter().all(is_code) { Ok(()) } else { Err("some are no codes of keys of this type") }
    }
}

/// Returns a random number that no one else has: for names that must be unique among processes and machines.
#[must_use]
pub fn unique_id() -> u128 {
    // The keys of `RandomState` come from the operating system. A forked process inherits them, but its id differs.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let half = || RandomState::new().hash_one((std::process::id(), std::thread::current().id(), now));
    u128::from(half()) << 64 | u128::from(half())
}

/// Writes a section.
///
/// # Errors
/// [`Error::Io`].
pub fn write_section(writer: &mut impl Write, bytes: &[u8]) -> Result<(), Error> {
    writer.write_all(bytes)?;
    writer.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
    Ok(())
}

/// Writes an array. Waits for the stream.
///
/// # Errors
/// [`Error::Io`], or any error of a copy to the host.
pub fn write_array<T: Pod>(stream: &Stream, writer: &mut impl Write, array: DeviceSlice<'_, T>) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::{ascending, room, unique_id};
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique() {
        let of_a_thread = || (0..1000).map(|_| unique_id()).collect::<Vec<_>>();
        let other = std::thread::spawn(of_a_thread);
        let ids: BTreeSet<u128> = of_a_thread().into_iter().chain(other.join().unwrap()).collect();
        assert_eq!(ids.len(), 2000);
    }

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

    #[test]
    fn order_is_seen_across_parts() {
        for strict in [false, true] {
            let mut check = ascending(strict);
            assert!([&[1, 2][..], &[], &[3, 7]].iter().all(|part| check(part).is_ok()));
            assert_eq!(check(&[7, 8]).is_ok(), !strict);
            assert!(check(&[7]).is_err());
            assert_eq!(ascending(strict)(&[1, 1]).is_ok(), !strict);
            assert!(ascending(strict)(&[2, 1]).is_err());
        }
    }
}
