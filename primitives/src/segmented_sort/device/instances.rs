//! The instances for GPUs.

use super::cut::CutSegments;
use super::pass::MergeSegments;
use super::shape::{THREADS, items, slack};
use super::tile::SortSegments;
use crate::compare::HoleOrder;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for ITEMS in [15, 9, 5]: CutSegments<{ THREADS }, ITEMS, { slack(ITEMS) }>;
    family sort_and_merge(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32, u64], ITEMS = items::<K, V>():
            SortSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>,
            MergeSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>;
        for K in [[u32; 3], [u64; 2]], V in [(), u32], ITEMS = items::<K, V>():
            SortSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>,
            MergeSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>;
        for K in [[u64; 4]], V in [u32], ITEMS = 5:
            SortSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>,
            MergeSegments<K, V, HoleOrder, { THREADS }, ITEMS, { slack(ITEMS) }>;
    }
}
