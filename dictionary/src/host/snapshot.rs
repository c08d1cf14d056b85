//! Snapshots of dictionaries.

use core::ops::Deref;

/// A dictionary as it was at one moment, for reading.
///
/// All queries of the dictionary can be called on its snapshot, while the dictionary itself is updated, also by other
/// threads and on other streams. The memory that only the snapshot needs is freed when its last clone is dropped.
///
/// Structures whose parts never change share them with their snapshots, so that a snapshot is cheap: see
/// `GpuLsm::snapshot` and `GpuSortedArray::snapshot`.
#[derive(Clone, Debug)]
pub struct Snapshot<D>(D);

impl<D> Snapshot<D> {
    /// Makes a snapshot of a copy of the dictionary, which can then no longer be updated.
    pub fn new(copy: D) -> Self {
        Self(copy)
    }

    /// Returns the dictionary of the snapshot, which can be updated independently of the one it was taken from.
    pub fn into_inner(self) -> D {
        self.0
    }
}

impl<D> Deref for Snapshot<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}
