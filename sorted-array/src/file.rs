//! Saves arrays to files and loads them.
//!
//! # Format
//! [`gpu_dictionary::file`] describes the common format. The sorted array adds the number of pairs to the
//! header, in 8 bytes. Two arrays follow: the key codes and the values.

use crate::{GpuSortedArray, Key, Level, Options, Value};
use gpu_dictionary::file::{Format, Source, write_section};
use gpu_dictionary::levels::Stored;
use gpu_primitives::lowered::Place;
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-arr\n", version: 2 };

impl<K: Key, V: Value> GpuSortedArray<K, V> {
    /// Writes the array to a file. [`load`](Self::load) reads the file on any device. Waits for the stream. Needs 1 MiB
    /// of host memory and no device memory.
    ///
    /// ```
    /// # use gpu_primitives::{Device, Error};
    /// # use gpu_sorted_array::{GpuSortedArray, Options};
    /// # let stream = Device::default()?.stream()?;
    /// let (keys, values) = (stream.upload(&[3, 1])?, stream.upload(&[30, 10])?);
    /// let array = GpuSortedArray::<u32, u32>::bulk_build(&stream, (&keys, &values), Options::new())?;
    /// let mut file = Vec::new();
    /// array.save(&stream, &mut file)?;
    ///
    /// let again = GpuSortedArray::<u32, u32>::load(&stream, &file[..])?;
    /// assert_eq!(again.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or any error of a copy to the host.
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        let mut header = FORMAT.header::<K, V>();
        header.extend((self.stack.len() as u64).to_le_bytes());
        write_section(&mut writer, &header)?;
        if let Some(level) = self.level() {
            level.write(stream, &mut writer)?;
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads an array written by [`save`](Self::save). Reads exactly to the end of the array. Checks everything: it
    /// returns a complete array or an error.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has other key or value types. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - [`Error::OutOfMemory`].
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let len = source.header::<K, V, _>(FORMAT, Source::u64)?;
        let too_long = || source.invalid(format!("it has {len} elements, but an array has less than 2^32"));
        let len = u32::try_from(len).map_err(|_| too_long())? as usize;
        let stored = Stored { of: "", len, has_marks: false, is_distinct: true };
        let (level, _) = Level::read(&mut source, stream, Place::Device, stored)?;
        Ok(Self::of(level, Options::new()))
    }
}
