//! Statistics, and the policy for cleanups.

/// When an update is followed by a [cleanup](crate::GpuLsm::cleanup): when any of its conditions holds.
///
/// ```
/// use gpu_lsm::CleanupPolicy;
///
/// let policy = CleanupPolicy::new().stale_share(0.5).max_levels(12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanupPolicy {
    stale_share: f64,
    max_levels: usize,
}

impl Default for CleanupPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl CleanupPolicy {
    /// Returns a policy without conditions: it never asks for a cleanup.
    #[must_use]
    pub const fn new() -> Self {
        Self { stale_share: f64::INFINITY, max_levels: usize::MAX }
    }

    /// Cleans up if at least this share of the elements is stale, by [`Stats::stale_estimate`]: between 0 and 1.
    #[must_use]
    pub const fn stale_share(self, stale_share: f64) -> Self {
        Self { stale_share, ..self }
    }

    /// Cleans up if there are more levels than this. Zero counts as one.
    #[must_use]
    pub const fn max_levels(self, max_levels: usize) -> Self {
        Self { max_levels, ..self }
    }

    pub(crate) fn asks_for_cleanup(&self, stats: &Stats) -> bool {
        stats.levels > self.max_levels.max(1)
            || (stats.stale_estimate > 0 && stats.stale_estimate as f64 >= self.stale_share * stats.resident as f64)
    }
}

/// Statistics of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The largest number of operations in a batch.
    pub batch_size: usize,
    /// The number of batches that the levels stand for: its binary digits say which levels exist.
    pub batches: u64,
    /// The number of levels.
    pub levels: usize,
    /// The number of operations in the [buffer](crate::Options::buffer), which the levels do not have yet.
    pub buffered: usize,
    /// The number of elements in all levels and in the buffer, live or stale.
    pub resident: usize,
    /// The number of tombstones inserted since the last cleanup, also those in the buffer.
    pub tombstones: usize,
    /// An estimate of the stale elements: the tombstones, and as many elements that they delete. Keys that were
    /// inserted more than once are not counted. [`GpuLsm::len`](crate::GpuLsm::len) gives the exact number of keys.
    pub stale_estimate: usize,
    /// The device memory in bytes, including the buffer and the part of the index that has been built.
    pub bytes: usize,
    /// The page-locked memory of the host in bytes: the keys and values of levels that the
    /// [budget](crate::Options::device_memory) keeps off the device.
    pub host_bytes: usize,
}
