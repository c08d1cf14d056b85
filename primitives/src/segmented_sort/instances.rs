//! The instances for GPUs.

use super::CutSegments;
use super::shape::{THREADS, slack};
use crate::compare::{IgnoreLowBit, Less};

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    cut_segments_15: CutSegments<THREADS, 15, { slack(15) }>;
    cut_segments_9: CutSegments<THREADS, 9, { slack(9) }>;
}
crate::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Less;
    (): segsort_u32, segmerge_u32;
    u32: segsort_u32_u32, segmerge_u32_u32;
    u64: segsort_u32_u64, segmerge_u32_u64;
    u128: segsort_u32_u128, segmerge_u32_u128;
}
crate::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, Less;
    (): segsort_u64, segmerge_u64;
    u32: segsort_u64_u32, segmerge_u64_u32;
    u64: segsort_u64_u64, segmerge_u64_u64;
    u128: segsort_u64_u128, segmerge_u64_u128;
}
crate::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, IgnoreLowBit;
    (): segsort_low_u32, segmerge_low_u32;
    u32: segsort_low_u32_u32, segmerge_low_u32_u32;
    u64: segsort_low_u32_u64, segmerge_low_u32_u64;
    u128: segsort_low_u32_u128, segmerge_low_u32_u128;
}
crate::segmented_sort_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, IgnoreLowBit;
    (): segsort_low_u64, segmerge_low_u64;
    u32: segsort_low_u64_u32, segmerge_low_u64_u32;
    u64: segsort_low_u64_u64, segmerge_low_u64_u64;
    u128: segsort_low_u64_u128, segmerge_low_u64_u128;
}
