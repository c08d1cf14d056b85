//! The kernel that makes one sorted whole of sorted chunks.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::shape::MAX_CHUNKS;
use super::{Digits, RadixCode};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Threads of a block; a chunk is so many items, or a multiple of it.
pub const PLACE_THREADS: u32 = 256;
/// Chunks that a thread searches at once: their loads do not depend on each other.
const AT_ONCE: usize = 8;

/// Searches several windows of sorted items at once, for a key each: moves each `low` up to the first item of its window that
/// does not come before the key. `width` is a power of two, and above the half of the longest window.
#[inline(always)]
unsafe fn bisect<K: RadixCode, const N: usize>(
    items: Global<K>,
    low: &mut [u32; N],
    high: [u32; N],
    mut width: u32,
    comes_before: impl Fn(usize, K) -> bool,
) {
    while width > 0 {
        let mut pivots = [K::zeroed(); N];
        for j in 0..N {
            pivots[j] = nearest(items, low[j] + width - 1);
        }
        for j in 0..N {
            let goes_up = (low[j] + width <= high[j]) & comes_before(j, pivots[j]);
            low[j] += if goes_up { width } else { 0 };
        }
        width /= 2;
    }
}

/// Item `at`, or the last one: all pivots are loaded, those beyond a window too, so that none waits for a decision about another.
#[inline(always)]
unsafe fn nearest<K: Pod>(items: Global<K>, at: u32) -> K {
    let last = items.len() as u32 - 1;
    items.get(if at < last { at } else { last } as usize)
}

/// Moves the items of sorted chunks of `1 << log_chunk` items each, the last one perhaps shorter, to their places in the whole.
///
/// A thread has one item. Its place is its index in its own chunk, and from each other chunk the number of items that come
/// before it: in earlier chunks those that are equal come before it, in later ones they do not. So no two items have the same
/// place. A warp has 32 neighbours of a chunk: its lanes find, a chunk each, what comes before the first of them and before the
/// last; then each thread has to search between these, which is about 32 items if the chunks are alike.
///
/// The cost is a bisection of some items per item and chunk, where merging would take a logarithm of the chunks; but it is a
/// single launch, without a search for boundaries before it. That is worth it while there are few chunks. There are few blocks
/// then, so registers are spent on loads under way rather than on more warps.
///
/// Launch with a thread per item, for at least one item and at most 32 chunks, which have a multiple of 256 items. The output is as
/// long as the input, and not the same memory.
#[kernel(threads = PLACE_THREADS, shared = shared_bytes::<u32>(2 * PLACE_THREADS as usize), min_blocks = 1)]
pub unsafe fn place_chunks<K: RadixCode, V: Pod>(
    keys_in: Global<K>,
    keys_out: GlobalMut<K>,
    values_in: Global<V>,
    values_out: GlobalMut<V>,
    digits: Digits,
    log_chunk: u32,
) {
    const { assert!(MAX_CHUNKS <= LANES as usize && MAX_CHUNKS % AT_ONCE == 0) };
    let len = keys_in.len() as u32;
    let clamp = |at: u32| if at < len { at } else { len };
    let first = thread::block_idx_x() * PLACE_THREADS + warp_id() * LANES;
    if first >= len {
        return;
    }
    let index = first + lane_id();
    let own = first >> log_chunk;
    let at = clamp(index + 1) as usize - 1;
    let key = keys_in.get(at);
    let value = if size_of::<V>() > 0 { values_in.get(at) } else { V::zeroed() };
    let comes_before =
        |key: K, chunk: u32, other: K| other.is_below(key, &digits) | ((chunk < own) & !key.is_below(other, &digits));

    // The windows of the warp's items in each chunk, none in the own one and in those that are not there.
    let mut memory = SharedMemory::new();
    let lows = memory.take::<u32>(PLACE_THREADS as usize).slice((warp_id() * LANES) as usize, LANES as usize);
    let highs = memory.take::<u32>(PLACE_THREADS as usize).slice((warp_id() * LANES) as usize, LANES as usize);
    let edges = [keys_in.get(first as usize), keys_in.get(clamp(first + LANES) as usize - 1)];
    let start = clamp(lane_id() << log_chunk);
    let end = if lane_id() == own { start } else { clamp((lane_id() + 1) << log_chunk) };
    let mut found = [start; 2];
    bisect(keys_in, &mut found, [end; 2], 1 << log_chunk, |j, other| comes_before(edges[j], lane_id(), other));
    lows.set(lane_id() as usize, found[0]);
    highs.set(lane_id() as usize, found[1]);
    sync_warp(FULL);

    let mut place = index & ((1 << log_chunk) - 1);
    let mut group = 0;
    while group << log_chunk < len {
        let mut low = [0; AT_ONCE];
        let mut high = [0; AT_ONCE];
        let mut widest = 0;
        for j in 0..AT_ONCE {
            low[j] = lows.get(group as usize + j);
            high[j] = highs.get(group as usize + j);
            widest |= high[j] - low[j];
        }
        let width = if widest == 0 { 0 } else { 1 << (31 - widest.leading_zeros()) };
        bisect(keys_in, &mut low, high, width, |j, other| comes_before(key, group + j as u32, other));
        for j in 0..AT_ONCE {
            place += low[j] - clamp((group + j as u32) << log_chunk);
        }
        group += AT_ONCE as u32;
    }
    if index < len {
        keys_out.set(place as usize, key);
        if size_of::<V>() > 0 {
            values_out.set(place as usize, value);
        }
    }
}
