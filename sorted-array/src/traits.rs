//! The dictionary traits for [`GpuSortedArray`].

use crate::{GpuSortedArray, Key, Stats};
use bytemuck::Pod;
use gpu_primitives::dictionary::{Dictionary, Ordered, Updatable};
use gpu_primitives::{DeviceSlice, Error, Stream, delegate_to_own_methods};

impl<K: Key, V: Pod> Dictionary for GpuSortedArray<K, V> {
    type Key = K;
    type Value = V;
    type Options = ();

    const NAME: &'static str = "sorted array";

    fn new(_: &Stream, (): &()) -> Result<Self, Error> {
        Ok(Self::new())
    }

    fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
        (): &(),
    ) -> Result<Self, Error> {
        Self::bulk_build(stream, keys, values)
    }

    delegate_to_own_methods! { lookup, contains, export, save, load }

    fn len(&self, _: &Stream) -> Result<usize, Error> {
        Ok(self.len())
    }

    fn is_empty(&self, _: &Stream) -> Result<bool, Error> {
        Ok(self.is_empty())
    }

    fn stats(&self, _: &Stream) -> Result<Stats, Error> {
        Ok(self.stats())
    }
}

impl<K: Key, V: Pod> Updatable for GpuSortedArray<K, V> {
    delegate_to_own_methods! { insert, delete, update }

    fn clear(&mut self, _: &Stream) -> Result<(), Error> {
        self.clear();
        Ok(())
    }
}

impl<K: Key, V: Pod> Ordered for GpuSortedArray<K, V> {
    delegate_to_own_methods! { count, range, successor, predecessor }
}
