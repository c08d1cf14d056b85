//! The tile shapes of sort and multisplit. They are part of the kernel types, so they are known when kernels are
//! instantiated.

use super::block::SortBlock;
use super::kernel::BucketPass;

/// The threads per block for large inputs: as many as leave enough registers for the items. (A pass over 2^27 keys takes 610 µs in tiles
/// of 320 threads with 25 items, 590 in those of 384 with 23, and 573 in those of 512 with 21, but the last two need a few
/// registers more than some GPUs have.)
pub const THREADS: u32 = 320;
/// The number of blocks of `THREADS` that must fit on a multiprocessor.
pub const MIN_BLOCKS: u32 = 2;
/// The threads per block for small inputs: many small tiles, so that every multiprocessor has one.
pub const SMALL_THREADS: u32 = 256;
/// The items per thread for small inputs: see `SMALL_THREADS`.
pub const SMALL_ITEMS: usize = 8;
/// The threads per block that sorts a chunk.
pub const BLOCK_THREADS: u32 = 512;

/// Returns the items per thread of `THREADS`: as many as fit in registers without spills, since longer runs are written
/// faster.
#[must_use]
pub const fn items<K, V>() -> usize {
    match (size_of::<K>(), size_of::<V>()) {
        (0..=4, 0..=4) => 25,
        (0..=4, 0..=8) | (0..=8, 0) => 17,
        (0..=8, 0..=8) => 13,
        (0..=8, _) => 9,
        _ => 7,
    }
}

/// Returns the items per thread of `BLOCK_THREADS`: keys and values are in shared memory together.
#[must_use]
pub const fn block_items<K, V>() -> usize {
    if size_of::<K>() + size_of::<V>() <= 16 { 8 } else { 4 }
}

/// The pass over large inputs.
pub type LargePass<K, V, B, const ITEMS: usize> = BucketPass<K, V, B, THREADS, ITEMS, MIN_BLOCKS>;
/// The pass over small inputs. Requiring only one block per multiprocessor tells the compiler not to save registers:
/// small inputs wait for loads, and more registers keep more loads in flight.
pub type SmallPass<K, V, B> = BucketPass<K, V, B, SMALL_THREADS, SMALL_ITEMS, 1>;
/// The sort of short chunks, one block each.
pub type ShortSort<K, V, B> = SortBlock<K, V, B, SMALL_THREADS, SMALL_ITEMS>;
/// The sort of long chunks, one block each.
pub type BlockSort<K, V, B, const ITEMS: usize> = SortBlock<K, V, B, BLOCK_THREADS, ITEMS>;
