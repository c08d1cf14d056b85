//! The kernel that merges a batch into a level of distinct keys and drops stale elements.
//!
//! # Algorithm
//! A two-way merge by tiles. In the merged order an element is live if the next one has a different key, because the
//! newest comes last, and if it is not a tombstone. A thread sees this while it merges its items. For the last item of
//! a tile, the first items after the tile on both sides decide. The live items are counted. A
//! [look-back](crate::block::lookback) gives the number of live items before the tile, and the block writes its own
//! after them.
//!
//! # Cost
//! Reads every element once, and writes it once if it is live. The values are in flight while the keys are merged.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::block::lookback::{Ticket, announce, look_back, take_ticket};
use crate::block::scan;
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::merge::{Tile, Walk};
use crate::scan::Sum;
use crate::sort::Sign;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Threads per block.
const THREADS: u32 = 256;

/// Returns the number of items per thread: an odd number, to avoid bank conflicts.
#[must_use]
pub const fn renew_items<C, V>() -> usize {
    if size_of::<C>() > 4 || size_of::<V>() > 4 { 9 } else { 15 }
}

/// Returns the number of items per tile.
#[must_use]
pub const fn renew_tile(items: usize) -> usize {
    THREADS as usize * items
}

/// Returns the shared memory of a block in bytes.
const fn shared<C, V>(items: usize) -> usize {
    let tile = renew_tile(items);
    shared_bytes::<C>(tile)
        + shared_bytes::<V>(tile)
        + shared_bytes::<u16>(tile)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
        + shared_bytes::<u64>(2)
}

/// Returns the number of blocks per multiprocessor. With more, `ptxas` would spill registers.
const fn min_blocks<V>() -> u32 {
    if size_of::<V>() > 4 { 2 } else { 3 }
}

/// Merges a batch into a level of distinct keys without tombstones. Writes the live elements of both to `out_keys`,
/// decoded by `sign`, and `out_values`, and their number to the only element of `live`.
///
/// `batch_marks` has one bit per element of the batch, set for tombstones, or is empty.
///
/// # Safety
/// - The launch has one block per tile of `renew_tile(ITEMS)` elements. There is at least one element.
/// - `splits` and `verdicts` are what [`MergePartition`](crate::merge::MergePartition) has written for `keys`,
///   `batch_keys`, such tiles and the order of `C`.
/// - Unless values are zero-sized, there are as many values as keys, in the level and in the batch.
/// - The outputs have room for all elements.
/// - `scratch` comes from the stream's look-back words, for one `u64` per tile.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the outputs or `scratch`.
#[kernel(threads = THREADS, shared = shared::<C, V>(ITEMS), min_blocks = min_blocks::<V>())]
pub unsafe fn renew_level<C: KeyCode, V: Pod, const ITEMS: usize>(
    keys: Global<C>,
    values: Global<V>,
    batch_keys: Global<C>,
    batch_values: Global<V>,
    batch_marks: Global<u32>,
    sign: Sign,
    splits: Global<u64>,
    verdicts: Global<u64>,
    out_keys: GlobalMut<C>,
    out_values: GlobalMut<V>,
    live: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let tile = renew_tile(ITEMS);
    let has_values = size_of::<V>() > 0;
    let mut memory = SharedMemory::new();
    let tile_keys = memory.take::<C>(tile);
    let tile_values = memory.take::<V>(tile);
    // The positions of the live items in the tile.
    let sources = memory.take::<u16>(tile);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let words = memory.take::<u64>(2);

    let own = thread::thread_idx_x();
    let total = keys.len() + batch_keys.len();
    let tiles = total.div_ceil(tile) as u32;
    if own == 0 {
        let taken = take_ticket(scratch, tiles);
        words.set(0, taken.tile as u64 | (taken.tag as u64) << 32);
    }
    thread::sync_threads();
    let ticket = Ticket { tile: words.get(0) as u32, tag: (words.get(0) >> 32) as u32 };

    let part = Tile::nth(ticket.tile as usize, tile, keys.len(), total, splits, verdicts);
    let count = part.count;
    part.of_sides(keys, batch_keys).load::<THREADS, ITEMS>(tile_keys, count);
    let from = part.of_sides(values, batch_values);
    let mut under_way = [V::zeroed(); ITEMS];
    if has_values {
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                under_way[i] = from.get(at as usize);
            }
        }
    }
    // The items that follow the tile on both sides.
    let (a_next, b_next) = (part.a_start + part.a_len as usize, part.b_start + part.b_len as usize);
    thread::sync_threads();

    let first = if own * (ITEMS as u32) < count { own * ITEMS as u32 } else { count };
    let mut walk = Walk::new(tile_keys, part, first, C::ORDER);
    let mut takes_a = walk.takes_a(C::ORDER);
    let mut taken = [0; ITEMS];
    let mut lives = 0u32;
    for i in 0..ITEMS {
        let (source, key) = walk.item(takes_a);
        let is_batch = !takes_a;
        walk.step(tile_keys, takes_a);
        takes_a = walk.takes_a(C::ORDER);
        taken[i] = source;
        let at = first + i as u32;
        let mut is_newest = walk.item(takes_a).1 != key;
        if at + 1 == count {
            let is_followed = (a_next < keys.len() && keys.get(a_next) == key)
                || (b_next < batch_keys.len() && batch_keys.get(b_next) == key);
            is_newest = !is_followed;
        }
        let mut is_dead = false;
        if is_batch && !batch_marks.is_empty() && at < count {
            let place = part.b_start + (source - part.a_len) as usize;
            is_dead = batch_marks.get(place / 32) >> (place % 32) & 1 == 1;
        }
        lives |= u32::from(at < count && is_newest && !is_dead) << i;
    }
    let local = scan::exclusive_scan::<u32, Sum, THREADS>(lives.count_ones(), Sum, warp_totals);
    if own == 0 {
        announce(scratch, ticket, local.total as u64);
    }
    let mut index = local.before;
    for i in 0..ITEMS {
        if lives >> i & 1 == 1 {
            sources.set(index as usize, taken[i] as u16);
            index += 1;
        }
    }
    if has_values {
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                tile_values.set(at as usize, under_way[i]);
            }
        }
    }
    if warp_id() == 0 {
        let prefix = look_back(scratch, ticket, tiles, local.total as u64, Sum);
        if lane_id() == 0 {
            words.set(1, prefix);
            if ticket.tile == tiles - 1 {
                live.set(0, prefix + local.total as u64);
            }
        }
    }
    thread::sync_threads();

    let start = words.get(1) as usize;
    let out_keys = out_keys.slice(start, local.total as usize);
    let out_values = if has_values { out_values.slice(start, local.total as usize) } else { out_values };
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < local.total {
            let source = sources.get(at as usize) as usize;
            out_keys.set(at as usize, sign.decode(tile_keys.get(source)));
            if has_values {
                out_values.set(at as usize, tile_values.get(source));
            }
        }
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    levels_renew_u32: RenewLevel<u32, (), { renew_items::<u32, ()>() }>;
    levels_renew_u32_u32: RenewLevel<u32, u32, { renew_items::<u32, u32>() }>;
    levels_renew_u32_u64: RenewLevel<u32, u64, { renew_items::<u32, u64>() }>;
    levels_renew_u64: RenewLevel<u64, (), { renew_items::<u64, ()>() }>;
    levels_renew_u64_u32: RenewLevel<u64, u32, { renew_items::<u64, u32>() }>;
    levels_renew_u64_u64: RenewLevel<u64, u64, { renew_items::<u64, u64>() }>;
}
