//! The dictionary traits for [`PlainCuckoo`]. They ask for an order of the keys, which [`PlainCuckoo`] itself does not.

use super::super::options::Options;
use super::PlainCuckoo;
use bytemuck::Pod;
use gpu_dictionary::{Contents, Dictionary, Key, Lookup, PlainKey, Stats, Updatable, Upsertable, Upsertion};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::io::{Read, Write};

impl<K: PlainKey + Key, V: Pod> Dictionary for PlainCuckoo<K, V> {
    type Key = K;
    type Value = V;
    type Options = Options;

    const NAME: &'static str = "cuckoo of plain keys";

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

    fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        self.stats(stream)
    }
}

impl<K: PlainKey + Key, V: Pod> Updatable for PlainCuckoo<K, V> {
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

impl<K: PlainKey + Key, V: Pod> Upsertable for PlainCuckoo<K, V> {
    fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        self.upsert(stream, pairs, operation)
    }
}
