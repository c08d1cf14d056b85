//! The instances for GPUs.

use super::digits::Digits;
use super::kernel::BucketHistogram;
use super::shape::{BlockSort, LargePass, ShortSort, SmallPass, block_items, items};
use crate::buckets::HoleBuckets;
use crate::transfer::Line;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family sort_digits(K, V, ITEMS, BLOCK_ITEMS) {
        for K in [u32, u64], V in [(), u32, u64, Line], ITEMS = items::<K, V>(), BLOCK_ITEMS = block_items::<K, V>():
            BucketHistogram<K, Digits>, LargePass<K, V, Digits, ITEMS>, SmallPass<K, V, Digits>,
            BlockSort<K, V, Digits, BLOCK_ITEMS>;
        // There are no small tiles for keys of 16 bytes.
        for K in [u128], V in [(), u32], ITEMS = items::<K, V>(), BLOCK_ITEMS = block_items::<K, V>():
            BucketHistogram<K, Digits>, LargePass<K, V, Digits, ITEMS>, BlockSort<K, V, Digits, BLOCK_ITEMS>;
    }
    // Keys of 16 bytes are not merged, so they come in one long chunk.
    family sort_short(K, V) {
        for K in [u32, u64], V in [(), u32, u64]: ShortSort<K, V, Digits>;
    }
    family split_buckets(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32], ITEMS = items::<K, V>():
            BucketHistogram<K, HoleBuckets>, LargePass<K, V, HoleBuckets, ITEMS>, SmallPass<K, V, HoleBuckets>;
    }
}
