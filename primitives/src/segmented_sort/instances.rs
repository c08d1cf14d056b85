//! The instances for GPUs.

use super::cut::CutSegments;
use super::pass::MergeSegments;
use super::shape::{THREADS, items, slack};
use super::tile::SortSegments;
use crate::compare::HoleOrder;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for ITEMS in [15, 9, 5]: CutSegments<{ THREADS }, ITEMS, { slack(ITEMS) }>;
    for K in [u32, u64], V in [(), u32, u64]: SortSegments<
        K, V, HoleOrder, { THREADS }, { items::<K, V>() }, { slack(items::<K, V>()) }
    >;
    for K in [u32, u64], V in [(), u32, u64]: MergeSegments<
        K, V, HoleOrder, { THREADS }, { items::<K, V>() }, { slack(items::<K, V>()) }
    >;
    for K in [[u32; 3], [u64; 2]], V in [(), u32]: SortSegments<
        K, V, HoleOrder, { THREADS }, { items::<K, V>() }, { slack(items::<K, V>()) }
    >;
    for K in [[u32; 3], [u64; 2]], V in [(), u32]: MergeSegments<
        K, V, HoleOrder, { THREADS }, { items::<K, V>() }, { slack(items::<K, V>()) }
    >;
    SortSegments<[u64; 4], u32, HoleOrder, { THREADS }, 5, { slack(5) }>;
    MergeSegments<[u64; 4], u32, HoleOrder, { THREADS }, 5, { slack(5) }>;
}
