//! What there is, and when it is cleaned up.

/// When an update is followed by a [cleanup](crate::GpuLsm::cleanup).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanupPolicy {
    /// At this share of elements that are stale, as [`Stats::stale_estimate`] estimates it: between 0 and 1.
    pub stale_share: f64,
    /// With more levels than this.
    pub max_levels: usize,
}

impl CleanupPolicy {
    pub(crate) fn asks_for_cleanup(&self, stats: &Stats) -> bool {
        stats.levels > self.max_levels.max(1)
            || (stats.stale_estimate > 0 && stats.stale_estimate as f64 >= self.stale_share * stats.resident as f64)
    }
}

/// What a dictionary holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Elements of a batch.
    pub batch_size: usize,
    /// Batches that count for the levels.
    pub batches: u64,
    /// Levels that there are.
    pub levels: usize,
    /// Elements in them, dead or alive.
    pub resident: usize,
    /// Tombstones that were put in since the last cleanup.
    pub tombstones: usize,
    /// Elements that are probably stale: the tombstones, and as many that they delete. Keys that were inserted again are not
    /// known; [`GpuLsm::len`](crate::GpuLsm::len) tells exactly.
    pub stale_estimate: usize,
    /// Bytes of device memory, with those of the index as far as it is built.
    pub bytes: usize,
}
