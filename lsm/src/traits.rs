//! The dictionary traits for [`GpuLsm`].

use crate::{CleanupPolicy, GpuLsm, Key, suggest_batch_size};
use bytemuck::Pod;
use gpu_primitives::dictionary::{self, Dictionary, Ordered, Updatable};
use gpu_primitives::{DeviceSlice, Error, Stream, delegate_to_own_methods};

/// The options of an LSM that is created through [`Dictionary`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The largest number of operations in a batch: see [`GpuLsm::new`].
    pub batch_size: usize,
    /// When updates are followed by a cleanup: see [`GpuLsm::set_cleanup_policy`].
    pub cleanup_policy: Option<CleanupPolicy>,
}

impl Default for Options {
    /// Returns a batch size for calls of about a million operations, which also suits smaller calls, and no automatic
    /// cleanup.
    fn default() -> Self {
        Self { batch_size: suggest_batch_size(1 << 20), cleanup_policy: None }
    }
}

impl<K: Key, V: Pod> Dictionary for GpuLsm<K, V> {
    type Key = K;
    type Value = V;
    type Options = Options;

    const NAME: &'static str = "LSM";

    fn new(_: &Stream, options: &Options) -> Result<Self, Error> {
        let mut lsm = Self::new(options.batch_size)?;
        lsm.set_cleanup_policy(options.cleanup_policy);
        Ok(lsm)
    }

    fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut lsm = Self::bulk_build(stream, options.batch_size, keys, values)?;
        lsm.set_cleanup_policy(options.cleanup_policy);
        Ok(lsm)
    }

    delegate_to_own_methods! { lookup, contains, len, is_empty, export, save, load }

    fn stats(&self, _: &Stream) -> Result<dictionary::Stats, Error> {
        let stats = self.stats();
        Ok(dictionary::Stats { resident: stats.resident, live: None, bytes: stats.bytes })
    }
}

impl<K: Key, V: Pod> Updatable for GpuLsm<K, V> {
    delegate_to_own_methods! { insert, delete, update }

    fn clear(&mut self, _: &Stream) -> Result<(), Error> {
        self.clear();
        Ok(())
    }
}

impl<K: Key, V: Pod> Ordered for GpuLsm<K, V> {
    delegate_to_own_methods! { count, range, successor, predecessor }
}
