//! The kernels of the two-way merge.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::tile::{Tile, Walk};
use crate::arch::warp::{FULL, any, ballot, lane_id};
use crate::arch::{Rmw, thread};
use crate::block::merge::Chain;
use crate::compare::{Compare, IgnoreLowBit, Less};
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Threads of a block that looks for boundaries.
pub(super) const PARTITION_THREADS: u32 = 256;

/// The boundaries that a block of a partition looks for: consecutive ones, the last of which is the next block's first, so
/// that each pair of neighbours is seen together by some block.
pub(super) struct Boundary {
    /// Index in the block.
    pub group: u32,
    /// Boundaries of the block.
    pub groups: u32,
    /// Index among all.
    pub index: usize,
    /// Index of the very last one.
    last: usize,
}

impl Boundary {
    /// The boundary of this thread, if `1 << log_lanes` threads work on each; there are `last + 1`.
    #[inline(always)]
    pub fn of_thread(log_lanes: u32, last: usize) -> Self {
        let groups = PARTITION_THREADS >> log_lanes;
        let group = thread::thread_idx_x() >> log_lanes;
        let index = thread::block_idx_x() as usize * (groups - 1) as usize + group as usize;
        Self { group, groups, index, last }
    }

    /// Whether this block writes it: every boundary has one block that does.
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        self.index == self.last || (self.group < self.groups - 1 && self.index < self.last)
    }

    /// Whether there is a next one, in this block too.
    #[inline(always)]
    pub fn has_next(&self) -> bool {
        self.group < self.groups - 1 && self.index < self.last
    }
}

/// Writes whether any thread of the block found a contradiction: a byte per block. There may be thousands, and every block of
/// the merge reads all of them, eight at a time: the last block fills up the last word.
///
/// # Safety
/// All threads of the block call it; `word` was set to 0 before the last barrier; `verdicts` has whole words.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn write_verdict(contradiction: bool, word: Shared<u32>, verdicts: GlobalMut<u8>) {
    if contradiction {
        word.atomic_rmw(Rmw::Or, 0, 1);
    }
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        let mut at = thread::block_idx_x();
        verdicts.set(at as usize, word.get(0) as u8);
        if at == thread::grid_dim_x() - 1 {
            at += 1;
            while (at as usize) < verdicts.len() {
                verdicts.set(at as usize, 0);
                at += 1;
            }
        }
    }
}

/// Whether any block of the partition found a contradiction: what the warp's threads see of the verdicts, if each of
/// `threads` looks at its share from `own` on. Every lane gets the answer.
///
/// # Safety
/// All lanes of the warp call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn is_contradictory(verdicts: Global<u64>, own: u32, threads: u32) -> bool {
    let mut found = 0;
    let mut at = own as usize;
    while at < verdicts.len() {
        found |= verdicts.get(at);
        at += threads as usize;
    }
    any(FULL, found != 0)
}

/// For each boundary between tiles of `tile` outputs: how many of the outputs before it come from `a`.
///
/// `1 << log_lanes` lanes search one diagonal together: each step they look at that many places at once and keep the gap in
/// which the answer lies. One lane is a binary search; more lanes take fewer dependent loads and more memory traffic, which
/// suits short inputs, where there are threads to spare and the time is all latency.
///
/// Neighbouring boundaries are compared: if they do not leave between zero and `tile` items of each side, the comparator
/// has contradicted itself, and the block's verdict is 1.
///
/// # Safety
/// The launch has at least one block per `(256 >> log_lanes) - 1` tiles. `tile` is not 0, `log_lanes` is at most 5.
/// `splits` has one word per boundary, of which there is one more than tiles; `verdicts` has one byte per block, and
/// as many as make whole words. Nobody writes `a` or `b`, and nobody else uses the other buffers, while the kernel
/// runs.
#[kernel(threads = PARTITION_THREADS, shared = shared_bytes::<u64>(PARTITION_THREADS as usize) + shared_bytes::<u32>(1))]
pub unsafe fn merge_partition<K: Pod, C: Compare<K>>(
    a: Global<K>,
    b: Global<K>,
    compare: C,
    tile: u32,
    log_lanes: u32,
    splits: GlobalMut<u64>,
    verdicts: GlobalMut<u8>,
) {
    let mut memory = SharedMemory::new();
    let found = memory.take::<u64>(PARTITION_THREADS as usize);
    let word = memory.take::<u32>(1);

    let boundary = Boundary::of_thread(log_lanes, splits.len() - 1);
    let total = a.len() + b.len();
    let position = boundary.index * tile as usize;
    let diagonal = if position < total { position } else { total };
    let mut low = diagonal.saturating_sub(b.len());
    let mut high = if diagonal < a.len() { diagonal } else { a.len() };
    let lanes = 1u32 << log_lanes;
    let lane = lane_id() & (lanes - 1);
    let first_lane = lane_id() - lane;
    // Each step moves `low` above or `high` below a place that was between them, so this ends.
    while any(FULL, low < high) {
        let gap = high - low;
        let place = |lane: u32| low + ((gap * (2 * lane + 1) as usize) >> (log_lanes + 1));
        let mut from_a = false;
        if low < high {
            let i = place(lane);
            from_a = !compare.less(b.get(diagonal - 1 - i), a.get(i));
        }
        // The lanes that say so before the first that does not.
        let votes = ballot(FULL, from_a) >> first_lane;
        let agreeing = (!votes).trailing_zeros().min(lanes);
        if low < high {
            let (old_low, old_high) = (low, high);
            let place = |lane: u32| old_low + ((gap * (2 * lane + 1) as usize) >> (log_lanes + 1));
            low = if agreeing == 0 { old_low } else { place(agreeing - 1) + 1 };
            high = if agreeing == lanes { old_high } else { place(agreeing) };
        }
    }

    if thread::thread_idx_x() == 0 {
        word.set(0, 0);
    }
    if lane == 0 {
        found.set(boundary.group as usize, low as u64);
        if boundary.is_own() {
            splits.set(boundary.index, low as u64);
        }
    }
    thread::sync_threads();
    let mut contradiction = false;
    if lane == 0 && boundary.has_next() {
        let next = found.get(boundary.group as usize + 1) as usize;
        let step = if position + (tile as usize) < total { tile as usize } else { total - position };
        contradiction = next < low || next - low > step;
    }
    write_verdict(contradiction, word, verdicts);
}

/// Whether values travel with the keys.
const fn has_values<V>() -> bool {
    size_of::<V>() != 0
}

/// Shared memory of a block that merges a tile.
#[must_use]
pub const fn tile_shared<K, V>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    let merged = if has_values::<V>() { shared_bytes::<u16>(tile) } else { shared_bytes::<K>(tile) };
    shared_bytes::<K>(tile) + shared_bytes::<V>(tile) + merged + shared_bytes::<u32>(Chain::words(threads))
}

/// With items of 12 bytes `ptxas` would rather spill than use more than 40 registers, unless it is told that five blocks
/// are enough.
#[must_use]
pub const fn min_blocks<K, V>() -> u32 {
    if size_of::<K>() + size_of::<V>() == 12 { 5 } else { 0 }
}

/// Merges tiles of `THREADS * ITEMS` outputs.
///
/// The block loads its pieces of both sides into shared memory, one after the other. Each thread finds where its `ITEMS`
/// outputs begin and merges them one by one, writing not the items but where each of them lies (for keys alone, the keys).
/// Then the block writes the outputs in order. The values travel from global memory while the keys are merged.
///
/// There are no register arrays but the values under way; shared memory is read without conflicts when loading and
/// storing, and for an odd number of items written without conflicts when merging.
///
/// Where the verdict of [`MergePartition`] is that the comparator contradicts itself, the sides are split as if all of
/// `a` came before all of `b`.
///
/// # Safety
/// The launch has one block per tile. `splits` and `verdicts` are what [`MergePartition`] has written for these sides,
/// such tiles and the same `compare`. `out_keys` is as long as both sides together. Unless values have no size, there
/// are as many as keys, on both sides and in the output, and a tile has at most 65,536 outputs. Nobody writes the
/// inputs, and nobody else uses the outputs, while the kernel runs; no output overlaps another buffer.
#[kernel(threads = THREADS, shared = tile_shared::<K, V>(THREADS, ITEMS), min_blocks = min_blocks::<K, V>())]
pub unsafe fn merge_tiles<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize>(
    a_keys: Global<K>,
    a_values: Global<V>,
    b_keys: Global<K>,
    b_values: Global<V>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    compare: C,
    splits: Global<u64>,
    verdicts: Global<u64>,
) {
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let keys = memory.take::<K>(tile);
    let values = memory.take::<V>(tile);
    let sources = if has_values::<V>() { memory.take::<u16>(tile) } else { memory.take::<u16>(0) };
    let merged = if has_values::<V>() { memory.take::<K>(0) } else { memory.take::<K>(tile) };
    let chain = Chain::new(memory.take::<u32>(Chain::words(THREADS)));

    let part = Tile::nth(thread::block_idx_x() as usize, tile, a_keys.len(), out_keys.len(), splits, verdicts);
    let Tile { start, count, a_len, .. } = part;
    let is_full = count as usize == tile;
    let own = thread::thread_idx_x() as usize;
    part.of_sides(a_keys, b_keys).load::<THREADS, ITEMS>(keys, count);
    let mut under_way = [V::zeroed(); ITEMS];
    if has_values::<V>() && is_full {
        let from = part.of_sides(a_values, b_values);
        for i in 0..ITEMS {
            under_way[i] = from.get(own + i * THREADS as usize);
        }
    }
    thread::sync_threads();

    let first = if own * ITEMS < count as usize { (own * ITEMS) as u32 } else { count };
    let mut walk = Walk::new(keys, part, first, compare);
    let share = walk.a;
    for i in 0..ITEMS {
        let takes_a = walk.takes_a(compare);
        let (source, key) = walk.item(takes_a);
        if first as usize + i < count as usize {
            if has_values::<V>() {
                sources.set(first as usize + i, source as u16);
            } else {
                merged.set(first as usize + i, key);
            }
        }
        walk.step(keys, takes_a);
    }
    chain.post(share, walk.a);
    if has_values::<V>() {
        if is_full {
            for i in 0..ITEMS {
                values.set(own + i * THREADS as usize, under_way[i]);
            }
        } else {
            let from = part.of_sides(a_values, b_values);
            let mut at = own;
            while at < count as usize {
                values.set(at, from.get(at));
                at += THREADS as usize;
            }
        }
    }
    thread::sync_threads();

    let fits = chain.holds(a_len);
    let out_keys = out_keys.slice(start, count as usize);
    if has_values::<V>() {
        let out_values = out_values.slice(start, count as usize);
        if is_full && fits {
            for i in 0..ITEMS {
                let at = own + i * THREADS as usize;
                let source = sources.get(at) as usize;
                out_keys.set(at, keys.get(source));
                out_values.set(at, values.get(source));
            }
        } else {
            let mut at = own;
            while at < count as usize {
                let source = if fits { sources.get(at) as usize } else { at };
                out_keys.set(at, keys.get(source));
                out_values.set(at, values.get(source));
                at += THREADS as usize;
            }
        }
    } else if is_full && fits {
        for i in 0..ITEMS {
            let at = own + i * THREADS as usize;
            out_keys.set(at, merged.get(at));
        }
    } else {
        let mut at = own;
        while at < count as usize {
            out_keys.set(at, if fits { merged.get(at) } else { keys.get(at) });
            at += THREADS as usize;
        }
    }
}

crate::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Less, merge_partition_u32;
    (): merge_u32;
    u32: merge_u32_u32;
    u64: merge_u32_u64;
}
crate::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, IgnoreLowBit, merge_partition_u32_low;
    (): merge_u32_low;
    u32: merge_u32_u32_low;
    u64: merge_u32_u64_low;
}
crate::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, Less, merge_partition_u64;
    (): merge_u64;
    u32: merge_u64_u32;
    u64: merge_u64_u64;
}
crate::merge_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, IgnoreLowBit, merge_partition_u64_low;
    (): merge_u64_low;
    u32: merge_u64_u32_low;
    u64: merge_u64_u64_low;
}
