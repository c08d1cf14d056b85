//! The dictionary traits for [`GpuCuckoo`].

use super::options::Options;
use super::table::GpuCuckoo;
use gpu_dictionary::{
    self as dictionary, Contents, Dictionary, Lookup, Updatable, Upsertable, Upsertion, Value, WordKey as Key,
};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::io::{Read, Write};

impl<K: Key, V: Value> Dictionary for GpuCuckoo<K, V> {
    type Key = K;
    type Value = V;
    type Options = Options;

    const NAME: &'static str = "cuckoo";

    fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        Self::new(stream, options)
    }

    fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        Self::bulk_build(stream, pairs, options)
    }

    fn options(&self) -> Options {
        self.options()
    }

    fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        self.try_clone(stream)
    }

    fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<Lookup<V>, Error> {
        self.lookup(stream, keys)
    }

    fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        self.contains(stream, keys)
    }

    fn len(&self, stream: &Stream) -> Result<usize, Error> {
        self.len(stream)
    }

    fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        self.is_empty(stream)
    }

    fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        self.export(stream)
    }

    fn save(&self, stream: &Stream, writer: impl Write) -> Result<(), Error> {
        self.save(stream, writer)
    }

    fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        Self::load(stream, reader)
    }

    fn stats(&self, stream: &Stream) -> Result<dictionary::Stats, Error> {
        let stats = self.stats(stream)?;
        Ok(dictionary::Stats { resident: stats.len, live: Some(stats.len), bytes: stats.bytes })
    }
}

impl<K: Key, V: Value> Updatable for GpuCuckoo<K, V> {
    fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        self.insert(stream, pairs)
    }

    fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.delete(stream, keys)
    }

    fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        self.update(stream, insert, delete)
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.clear(stream)
    }
}

impl<K: Key, V: Value> Upsertable for GpuCuckoo<K, V> {
    fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        self.upsert(stream, pairs, operation)
    }
}
