//! The kernel that sorts chunks, one block each.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::kernel::max;
use super::tile::in_tile;
use crate::arch::warp::LANES;
use crate::arch::{opaque, thread};
use crate::block::radix::{self, RankMemory};
use crate::buckets::{Buckets, bucket_of, last_bucket};
use crate::form::kernel;
use crate::input::Prefix;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Returns the shared memory of a block of [`sort_block`].
#[must_use]
pub const fn block_shared<K, V>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    let exchange = shared_bytes::<K>(tile) + shared_bytes::<V>(tile);
    max(exchange, shared_bytes::<u32>(RankMemory::<LANES>::words(threads)))
}

/// Sorts chunks of `THREADS * ITEMS` items, one block each; the last chunk may be shorter. All passes run in registers
/// and shared memory: one read and one write of everything, and one launch. The output may be the same memory as the
/// input.
///
/// # Safety
/// The launch has at least one block per chunk: `keys_in.get().len()` by `THREADS * ITEMS`, rounded up. `THREADS` is at
/// least 256 and a chunk has fewer than 65,536 items. `keys_out` is at least as long as the keys; so are `values_in` and `values_out`, unless
/// values are zero-sized. Each output is the memory of its input, or overlaps no other buffer. While the kernel runs,
/// nothing else writes the inputs or uses the outputs.
#[kernel(
    listed = [super::instances::BLOCK_SORT_PTX, super::instances::SHORT_SORT_PTX],
    threads = THREADS,
    shared = block_shared::<K, V>(THREADS, ITEMS),
    min_blocks = 1,
    native = crate::sort::native::block::sort_block
)]
pub unsafe fn sort_block<K: Pod, V: Pod, B: Buckets<K>, const THREADS: u32, const ITEMS: usize>(
    keys_in: Prefix<K>,
    keys_out: GlobalMut<K>,
    values_in: Global<V>,
    values_out: GlobalMut<V>,
    buckets: B,
    passes: u32,
) {
    let keys_in = keys_in.get();
    let tile_len = THREADS as usize * ITEMS;
    let start = thread::block_idx_x() as usize * tile_len;
    if start >= keys_in.len() {
        return;
    }
    let len = if keys_in.len() - start < tile_len { keys_in.len() - start } else { tile_len };
    let chunk = BlockItems { keys_in, keys_out, values_in, values_out, start, len };
    sort_items::<K, V, B, THREADS, ITEMS>(chunk, buckets, passes);
}

/// What one block sorts.
#[derive(Clone, Copy)]
pub(super) struct BlockItems<K: Pod, V: Pod> {
    pub keys_in: Global<K>,
    pub keys_out: GlobalMut<K>,
    pub values_in: Global<V>,
    pub values_out: GlobalMut<V>,
    pub start: usize,
    pub len: usize,
}

/// Sorts the items of a block.
///
/// # Safety
/// The contract of [`sort_block`]. The shared memory is that of [`block_shared`], and there are at most `THREADS * ITEMS` items.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn sort_items<K: Pod, V: Pod, B: Buckets<K>, const THREADS: u32, const ITEMS: usize>(
    items: BlockItems<K, V>,
    buckets: B,
    passes: u32,
) {
    let BlockItems { keys_in, keys_out, values_in, values_out, start, len } = items;
    let tile_len = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let exchange_keys = memory.take::<K>(tile_len);
    let exchange_values = memory.take::<V>(tile_len);
    let ranking = SharedMemory::new().take::<u32>(RankMemory::<LANES>::words(THREADS));

    let first = radix::first_item::<LANES, ITEMS>() as usize;
    let here = len.saturating_sub(first) as u32;
    let mut keys = [K::zeroed(); ITEMS];
    let mut values = [V::zeroed(); ITEMS];
    for j in 0..ITEMS {
        let index = start + first + j * LANES as usize;
        if (j as u32 * LANES) < here {
            keys[j] = keys_in.get(index);
            values[j] = values_in.get(index);
        }
    }
    let mut pass = 0;
    while pass < passes {
        // Missing items stay behind all existing ones in every pass, since they were there before: they are last in the
        // last bucket.
        let last = last_bucket(&buckets, pass);
        let bucket =
            |j: usize, here: u32| if j as u32 * LANES < here { bucket_of(&buckets, keys[j], pass, last) } else { last };
        let memory = RankMemory::<LANES>::cleared::<THREADS>(ranking, false);
        thread::sync_threads();
        // No other block waits for the counts, so the ranking itself counts.
        let now = opaque(here);
        let ranks = radix::rank_by_warps::<ITEMS>(|j| bucket(j, now), memory);
        thread::sync_threads();
        radix::place::<THREADS, LANES>(memory, |_| ());
        thread::sync_threads();
        let now = opaque(here);
        let mut places = [0; ITEMS];
        for j in 0..ITEMS {
            places[j] = in_tile::<K, B>(memory.first_place(bucket(j, now)) + ranks.get(j), tile_len);
        }
        thread::sync_threads();
        for j in 0..ITEMS {
            exchange_keys.set(places[j], keys[j]);
            exchange_values.set(places[j], values[j]);
        }
        thread::sync_threads();
        for j in 0..ITEMS {
            keys[j] = exchange_keys.get(first + j * LANES as usize);
            values[j] = exchange_values.get(first + j * LANES as usize);
        }
        thread::sync_threads();
        pass += 1;
    }
    for j in 0..ITEMS {
        let index = start + first + j * LANES as usize;
        if (j as u32 * LANES) < here {
            keys_out.set(index, keys[j]);
            values_out.set(index, values[j]);
        }
    }
}
