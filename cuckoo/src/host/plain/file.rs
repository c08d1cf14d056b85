//! The table of plain keys: files.

use super::super::options::Options;
use super::super::table::GpuCuckoo;
use super::PlainCuckoo;
use bytemuck::Pod;
use gpu_dictionary::checkpoint::{Disk, recover_whole, write_whole};
use gpu_dictionary::file::{Format, Source, write_array, write_section};
use gpu_dictionary::{Durable, Key, PlainKey};
use gpu_primitives::{Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-pln\n", version: 2 };

impl<K: PlainKey, V: Pod> PlainCuckoo<K, V> {
    /// Writes the table to a file: its pairs and its options. [`load`](Self::load) reads the file on any device. Waits.
    ///
    /// After the header with the sizes of keys and values and their number come an empty `GpuCuckoo` with the options, the
    /// keys, and the values.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or the errors of [`pairs`](Self::pairs).
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        let mut writer: &mut dyn Write = &mut writer;
        let (keys, values) = self.pairs(stream)?;
        let mut header = FORMAT.header::<u64, V>();
        for number in [size_of::<K>(), size_of::<V>(), keys.len()] {
            header.extend((number as u64).to_le_bytes());
        }
        write_section(&mut writer, &header)?;
        GpuCuckoo::<u64, u32>::new(stream, self.index.table.raw.options.clone().capacity(0))?
            .save(stream, &mut writer)?;
        write_array(stream, &mut writer, keys.as_slice())?;
        write_array(stream, &mut writer, values.as_slice())?;
        writer.flush()?;
        Ok(())
    }

    /// Reads a table written by [`save`](Self::save) and builds it anew. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or has keys or values of other sizes. The error says what
    ///   is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - The errors of [`bulk_build`](Self::bulk_build).
    pub fn load(stream: &Stream, mut reader: impl Read) -> Result<Self, Error> {
        let mut reader: &mut dyn Read = &mut reader;
        let mut source = Source::new(&mut reader);
        let own = |source: &mut Source<_>| Ok([source.u64()?, source.u64()?, source.u64()?]);
        let [key_bytes, value_bytes, len] = source.header::<u64, V, _>(FORMAT, own)?;
        for (what, bytes, expected) in [("keys", key_bytes, size_of::<K>()), ("values", value_bytes, size_of::<V>())] {
            if bytes != expected as u64 {
                return Err(source.invalid(format!("its {what} have {bytes} bytes, but {expected} were expected")));
            }
        }
        let options = GpuCuckoo::<u64, u32>::load(stream, &mut reader)?.raw.options;
        let mut source = Source::new(&mut reader);
        let keys = source.array::<K>(stream, "the keys", len as usize, |_| Ok(()))?;
        let values = source.values::<V>(stream, "the values", len as usize)?;
        // As in a `GpuCuckoo`: this build may grow the table, and the file does not decide how long it tries.
        let Options { reseeds, evictions, when_full, .. } = Options::new();
        let building = Options { reseeds, evictions, when_full, ..options.clone() };
        let mut table = Self::bulk_build(stream, (&keys, &values), building)?;
        if table.len(stream)? != keys.len() {
            return Err(source.invalid("it has some key more than once"));
        }
        let Options { reseeds, evictions, when_full, .. } = options;
        let of_table = &mut table.index.table.raw.options;
        *of_table = Options { reseeds, evictions, when_full, ..of_table.clone() };
        Ok(table)
    }
}

/// For keys with an order, as all traits. A checkpoint holds what [`save`](PlainCuckoo::save) writes.
impl<K: PlainKey + Key, V: Pod> Durable for PlainCuckoo<K, V> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        write_whole(self, &self.history, stream, disk)
    }

    /// Takes nothing from the options: a table keeps its own.
    fn recover_from(stream: &Stream, disk: &impl Disk, options: Option<&Options>) -> Result<Option<Self>, Error> {
        recover_whole(stream, disk, options, |table: &mut Self| &mut table.history)
    }
}
