//! Saves tables to files and loads them.
//!
//! # Format
//! [`gpu_dictionary::file`] describes the common format. The table adds to the header:
//!
//! | bytes | |
//! | --- | --- |
//! | 8, 8 | the load factor, as a float; the seed |
//! | 4, 4, 4, 4, 4 | hash functions, bucket width, reseeds, evictions, 0 if a full table grows |
//! | 8 | the number of pairs |
//!
//! Two arrays follow: the keys, ascending, and the values. Loading builds a new table from them, so it does not have to
//! trust the file about the positions of keys.

use super::build::{MAX_KEYS, buckets_for, build};
use super::options::{Options, WhenFull};
use super::pairs::Given;
use super::table::GpuCuckoo;
use gpu_dictionary::file::{Format, Source, ascending, write_array, write_section};
use gpu_dictionary::{Value, WordKey as Key};
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-cuc\n", version: 2 };

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Writes the table to a file: its pairs and its options. [`load`](Self::load) reads the file on any device. Waits.
    /// Needs the device memory of an [`export`](Self::export), and 1 MiB of host memory.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let keys = stream.upload(&[3, 1])?;
    /// let table = GpuCuckoo::<u32, u32>::bulk_build(&stream, (&keys, &stream.upload(&[30, 10])?), Options::new())?;
    /// let mut file = Vec::new();
    /// table.save(&stream, &mut file)?;
    ///
    /// let again = GpuCuckoo::<u32, u32>::load(&stream, &file[..])?;
    /// assert_eq!(again.lookup(&stream, &keys)?.to_vec(&stream)?, [Some(30), Some(10)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or the errors of [`export`](Self::export).
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        let contents = self.export(stream)?;
        let options = &self.options;
        let mut header = FORMAT.header::<K, V>();
        header.extend(options.load_factor.to_le_bytes());
        header.extend(options.any_seed().to_le_bytes());
        let refuses = u32::from(options.when_full == WhenFull::Refuse);
        for number in [options.hashes, options.bucket_width as u32, options.reseeds, options.evictions, refuses] {
            header.extend(number.to_le_bytes());
        }
        header.extend((contents.keys.len() as u64).to_le_bytes());
        write_section(&mut writer, &header)?;
        write_array(stream, &mut writer, contents.keys.as_slice())?;
        write_array(stream, &mut writer, contents.values.as_slice())?;
        writer.flush()?;
        Ok(())
    }

    /// Reads a table written by [`save`](Self::save) and builds it at its load factor. Reads exactly to the end of the
    /// table. Checks everything: it returns a complete table or an error. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has other key or value types. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - The errors of [`bulk_build`](Self::bulk_build) with a table that may grow.
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(reader);
        let (options, len) = source.header::<K, V, _>(FORMAT, |source| {
            let (load_factor, seed) = (f64::from_bits(source.u64()?), Some(source.u64()?));
            let (hashes, bucket_width) = (source.u32()?, source.u32()? as usize);
            let (reseeds, evictions) = (source.u32()?, source.u32()?);
            let when_full = if source.u32()? == 0 { WhenFull::Grow } else { WhenFull::Refuse };
            let options =
                Options { capacity: 0, load_factor, hashes, bucket_width, seed, reseeds, evictions, when_full };
            Ok((options, source.u64()?))
        })?;
        options.check().map_err(|error| source.invalid(error.to_string()))?;
        let too_many = || source.invalid(format!("it states {len} keys, but a table has at most {MAX_KEYS}"));
        let len = usize::try_from(len).ok().filter(|&len| len <= MAX_KEYS).ok_or_else(too_many)?;
        let mut check = ascending(true);
        let keys = source.array(stream, "the keys", len, |part: &[K]| {
            check(&part.iter().map(|key| key.code()).collect::<Vec<_>>())
        })?;
        let values = source.values::<V>(stream, "the values", len)?;
        // A full table may be hard to rebuild, so this build may grow it, whatever its options say about later growth.
        // A file must not decide how long a build tries.
        let Options { reseeds, evictions, when_full, .. } = Options::new();
        let building = Options { reseeds, evictions, when_full, ..options };
        let buckets = buckets_for(len, &building)?;
        let given = Given::<K, V>::new(stream, keys.as_slice(), values.as_slice())?;
        Self::from_built(stream, build(stream, given.slices(), buckets, &building)?, options)
    }
}
