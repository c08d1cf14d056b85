//! The dictionary traits for [`GpuCuckoo`].

use super::options::Options;
use super::table::{GpuCuckoo, Stats};
use gpu_dictionary::{Value, WordKey};

gpu_dictionary::forward_traits!(impl<K: [WordKey], V: [Value]> for GpuCuckoo, "cuckoo", Options);

impl From<Stats> for gpu_dictionary::Stats {
    /// All pairs are live.
    fn from(stats: Stats) -> Self {
        Self { resident: stats.len, live: Some(stats.len), bytes: stats.bytes }
    }
}
