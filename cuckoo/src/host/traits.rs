//! The dictionary traits for [`GpuCuckoo`].

use super::options::Options;
use super::table::GpuCuckoo;
use bytemuck::Pod;
use gpu_primitives::dictionary::{self, Dictionary, Key, Updatable};
use gpu_primitives::{DeviceSlice, Error, Stream, delegate_to_own_methods};

impl<K: Key, V: Pod> Dictionary for GpuCuckoo<K, V> {
    type Key = K;
    type Value = V;
    type Options = Options;

    const NAME: &'static str = "cuckoo";

    fn new(stream: &Stream, options: &Options) -> Result<Self, Error> {
        Self::new(stream, 0, options.clone())
    }

    fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
        options: &Options,
    ) -> Result<Self, Error> {
        Self::bulk_build(stream, keys, values, options.clone())
    }

    delegate_to_own_methods! { lookup, contains, len, is_empty, export, save, load }

    fn stats(&self, stream: &Stream) -> Result<dictionary::Stats, Error> {
        let stats = self.stats(stream)?;
        Ok(dictionary::Stats { resident: stats.len, live: Some(stats.len), bytes: stats.bytes })
    }
}

impl<K: Key, V: Pod> Updatable for GpuCuckoo<K, V> {
    delegate_to_own_methods! { insert, delete, update }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.clear(stream)
    }
}
