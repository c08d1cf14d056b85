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
use super::pairs::{Given, Sizes, typed};
use super::table::{GpuCuckoo, RawTable};
use gpu_dictionary::checkpoint::{Disk, recover_whole, write_whole};
use gpu_dictionary::file::{Format, Source, ascending, write_array, write_section};
use gpu_dictionary::{Contents, Durable, Value, WordKey as Key};
use gpu_primitives::code::Sign;
use gpu_primitives::lowered::{AnySlice, AnyVec};
use gpu_primitives::{Error, Stream, sized};
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
        let Contents { keys, values } = self.export(stream)?;
        let pairs = [AnySlice::from(keys.as_slice()), AnySlice::from(values.as_slice())];
        self.raw.save(stream, &mut writer, FORMAT.header::<K, V>(), pairs)
    }

    /// Reads a table written by [`save`](Self::save) and builds it at its load factor. Reads exactly to the end of the
    /// table. Checks everything: it returns a complete table or an error. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has other key or value types. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - The errors of [`bulk_build`](Self::bulk_build) with a table that may grow.
    pub fn load(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        let mut source = Source::new(&mut reader as &mut dyn Read);
        let stated = source.header::<K, V, _>(FORMAT, own_header)?;
        RawTable::load(stream, source, stated, Self::SIZES, K::SIGN).map(Self::of)
    }
}

/// A checkpoint writes all pairs and the options, as [`save`](Self::save) does, and needs the memory of an
/// [`export`](Self::export). A table that is recovered has the options of the checkpoint.
impl<K: Key, V: Value> Durable for GpuCuckoo<K, V> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        write_whole(self, &self.history, stream, disk)
    }

    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&Options>) -> Result<Option<Self>, Error> {
        recover_whole(stream, disk, options, |table: &mut Self| &mut table.history)
    }
}

impl RawTable {
    /// Writes the options and all pairs, in the order of their keys.
    fn save(
        &self,
        stream: &Stream,
        mut writer: &mut dyn Write,
        mut header: Vec<u8>,
        pairs: [AnySlice<'_>; 2],
    ) -> Result<(), Error> {
        let options = &self.options;
        header.extend(options.load_factor.to_le_bytes());
        header.extend(options.any_seed().to_le_bytes());
        let refuses = u32::from(options.when_full == WhenFull::Refuse);
        for number in [options.hashes, options.bucket_width as u32, options.reseeds, options.evictions, refuses] {
            header.extend(number.to_le_bytes());
        }
        header.extend((pairs[0].len() as u64).to_le_bytes());
        write_section(&mut writer, &header)?;
        for array in pairs {
            sized!(array.size() => T in u32 | u64, write_array(stream, &mut writer, typed::<T>(array))?, else ());
        }
        writer.flush()?;
        Ok(())
    }

    /// Reads the pairs and builds the table with what the header has stated.
    fn load(
        stream: &Stream,
        mut source: Source<&mut dyn Read>,
        (options, len): (Options, u64),
        sizes: Sizes,
        sign: Sign,
    ) -> Result<Self, Error> {
        options.check().map_err(|error| source.invalid(error.to_string()))?;
        let too_many = || source.invalid(format!("it states {len} keys, but a table has at most {MAX_KEYS}"));
        let len = usize::try_from(len).ok().filter(|&len| len <= MAX_KEYS).ok_or_else(too_many)?;
        let keys: AnyVec = sized!(sizes.key => C in u32 | u64, {
            let mut check = ascending(true);
            let codes = |part: &[C]| part.iter().map(|&key| sign.encode(key)).collect::<Vec<_>>();
            source.array(stream, "the keys", len, |part| check(&codes(part)))?.into()
        }, else unreachable!("{sizes:?}"));
        let values: AnyVec = sized!(sizes.value => V in () | u32 | u64, {
            source.values::<V>(stream, "the values", len)?.into()
        }, else unreachable!("{sizes:?}"));
        // A full table may be hard to rebuild, so this build may grow it, whatever its options say about later growth.
        // A file must not decide how long a build tries.
        let Options { reseeds, evictions, when_full, .. } = Options::new();
        let building = Options { reseeds, evictions, when_full, ..options };
        let buckets = buckets_for(len, &building)?;
        let given = Given::new(stream, (keys.as_slice(), values.as_slice()))?;
        Self::from_built(stream, build(stream, given.slices(), buckets, &building)?, options)
    }
}

/// Reads what the table adds to the header: the options, and the number of pairs.
fn own_header(source: &mut Source<&mut dyn Read>) -> Result<(Options, u64), Error> {
    let (load_factor, seed) = (f64::from_bits(source.u64()?), Some(source.u64()?));
    let (hashes, bucket_width) = (source.u32()?, source.u32()? as usize);
    let (reseeds, evictions) = (source.u32()?, source.u32()?);
    let when_full = if source.u32()? == 0 { WhenFull::Grow } else { WhenFull::Refuse };
    let options = Options { capacity: 0, load_factor, hashes, bucket_width, seed, reseeds, evictions, when_full };
    Ok((options, source.u64()?))
}
