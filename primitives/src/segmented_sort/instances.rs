//! The instances for GPUs.

use super::{CutSegments, shape};
use crate::compare::{IgnoreLowBit, Less};

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for ITEMS in [15, 9]: CutSegments<{ shape::THREADS }, ITEMS, { shape::slack(ITEMS) }>;
}
crate::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    keys [u32, u64], values [(), u32, u64, u128], orders [Less, IgnoreLowBit];
}
