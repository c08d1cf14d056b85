//! The dictionary traits for [`GpuLsm`].

use crate::{GpuLsm, Key, Options, Stats, Value};

gpu_dictionary::forward_traits!(ordered impl<K: [Key], V: [Value]> for GpuLsm, "LSM", Options);

impl From<Stats> for gpu_dictionary::Stats {
    /// How many of the elements are live is not known without a search.
    fn from(stats: Stats) -> Self {
        Self { resident: stats.resident, live: None, bytes: stats.bytes + stats.host_bytes }
    }
}
