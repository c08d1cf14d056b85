//! The kernels of the two-way merge.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::shape::{THREADS, items};
use super::tile::{Tile, TileSplits, Walk};
use crate::arch::warp::{FULL, all, any, ballot, lane_id};
use crate::arch::{IS_RECORDED, Rmw, thread};
use crate::block::merge::Chain;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::input::{Prefix, PrefixPairs};
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block that searches for boundaries.
pub(crate) const PARTITION_THREADS: u32 = 256;

/// The boundaries that a block of a partition searches for. They are consecutive, and the last one is the next block's
/// first, so that some block sees each pair of neighbours together.
pub(crate) struct Boundary {
    /// The index in the block.
    pub group: u32,
    /// The number of boundaries of the block.
    pub groups: u32,
    /// The index among all boundaries.
    pub index: usize,
    /// The index of the very last boundary.
    last: usize,
}

impl Boundary {
    /// Returns the boundary of this thread, if `1 << log_lanes` threads work on each; there are `last + 1` boundaries.
    #[inline(always)]
    pub fn of_thread(log_lanes: u32, last: usize) -> Self {
        let groups = PARTITION_THREADS >> log_lanes;
        let group = thread::thread_idx_x() >> log_lanes;
        let index = thread::block_idx_x() as usize * (groups - 1) as usize + group as usize;
        Self { group, groups, index, last }
    }

    /// Returns whether this block writes the boundary: exactly one block writes each boundary.
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        self.index == self.last || (self.group < self.groups - 1 && self.index < self.last)
    }

    /// Returns whether this block also has the next boundary.
    #[inline(always)]
    pub fn has_next(&self) -> bool {
        self.group < self.groups - 1 && self.index < self.last
    }
}

/// Writes whether any thread of the block found a contradiction, as one byte per block. There may be thousands of
/// bytes, and every block of the merge reads all of them, eight at a time. The last block therefore fills up the last
/// word.
///
/// # Safety
/// All threads of the block must call this; `word` was set to 0 before the last barrier; `verdicts` has whole words.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn write_verdict(contradiction: bool, word: Shared<u32>, verdicts: GlobalMut<u8>) {
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

/// Returns, to every lane, whether any block of the partition found a contradiction, as far as the threads of this warp
/// see. Each of `threads` threads looks at its share of the verdicts, from `own` on.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn is_contradictory(verdicts: Global<u64>, own: u32, threads: u32) -> bool {
    let mut found = 0;
    let mut at = own as usize;
    while at < verdicts.len() {
        found |= verdicts.get(at);
        at += threads as usize;
    }
    any(FULL, found != 0)
}

/// Finds, for each boundary between tiles of `tile` outputs, how many of the outputs before it come from `a`.
///
/// `1 << log_lanes` lanes search one diagonal together. In each step they probe that many positions at once and keep
/// the gap that contains the answer. One lane performs a binary search. More lanes need fewer dependent loads but more
/// memory traffic, which suits short inputs, where threads are free and latency dominates. Two probes come first, for long
/// sides that are alike.
///
/// Neighbouring boundaries are compared. If there are not between zero and `tile` items of each side between them, the
/// comparator has contradicted itself, and the block's verdict is 1.
///
/// # Safety
/// The launch has at least one block per `(256 >> log_lanes) - 1` tiles. `tile` is not 0, `log_lanes` is at most 5.
/// `splits` has one word per boundary; there is one more boundary than tiles. Boundaries beyond the last item are where
/// the sides end. `verdicts` has one byte per block, padded
/// to whole words. While the kernel runs, nothing writes `a` or `b`, and nothing else uses the other buffers.
#[kernel(
    listed,
    threads = PARTITION_THREADS,
    shared = shared_bytes::<u64>(PARTITION_THREADS as usize) + shared_bytes::<u32>(1),
    native = crate::merge::native::splits::merge_partition
)]
pub unsafe fn merge_partition<K: Pod, C: KeyOrder<K>>(
    a: Prefix<K>,
    b: Prefix<K>,
    compare: C,
    tile: u32,
    log_lanes: u32,
    splits: GlobalMut<u64>,
    verdicts: GlobalMut<u8>,
) {
    let (a, b) = (a.get(), b.get());
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
    let takes_a = |i: usize| !compare.less(b.get(diagonal - 1 - i), a.get(i));
    // If the sides are alike, each has its share of the outputs, give or take the square root. Two probes tell.
    let margin = 2usize << ((usize::BITS - diagonal.leading_zeros()) / 2);
    if high - low > 8 * margin {
        let share = (diagonal as f32 * (a.len() as f32 / total as f32)) as usize;
        let left = if share > low + margin { share - margin } else { low };
        let left = if left < high { left } else { high - 1 };
        let right = if high - left > 2 * margin { left + 2 * margin } else { high - 1 };
        let (takes_left, takes_right) = (takes_a(left), takes_a(right));
        high = match (takes_left, takes_right) {
            (false, _) => left,
            (true, false) => right,
            (true, true) => high,
        };
        low = match (takes_left, takes_right) {
            (false, _) => low,
            (true, false) => left + 1,
            (true, true) => right + 1,
        };
    }
    // Each step moves `low` above or `high` below a position between them, so the loop ends.
    while any(FULL, low < high) {
        // An order that changes its mind from one probe to the next.
        if !IS_RECORDED && low > high {
            low = high;
        }
        let gap = high - low;
        let place = |lane: u32| low + ((gap * (2 * lane + 1) as usize) >> (log_lanes + 1));
        let mut from_a = false;
        if low < high {
            from_a = takes_a(place(lane));
        }
        // The number of agreeing lanes before the first that disagrees.
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
        let step = if position + (tile as usize) < total { tile as usize } else { total - diagonal };
        contradiction = next < low || next - low > step;
    }
    write_verdict(contradiction, word, verdicts);
}

/// Returns whether keys have values.
const fn has_values<V>() -> bool {
    size_of::<V>() != 0
}

/// Returns the shared memory of a block that merges a tile.
#[must_use]
pub const fn tile_shared<K, V>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    let merged = if has_values::<V>() { shared_bytes::<u16>(tile) } else { shared_bytes::<K>(tile) };
    shared_bytes::<K>(tile) + shared_bytes::<V>(tile) + merged + shared_bytes::<u32>(Chain::words(threads))
}

/// For items of 8 and 12 bytes, `ptxas` would spill rather than use more than 40 registers, unless it is told that four or
/// five blocks are enough.
#[must_use]
pub const fn min_blocks<K, V>() -> u32 {
    match size_of::<K>() + size_of::<V>() {
        8 => 4,
        12 => 5,
        _ => 0,
    }
}

/// Merges tiles of `THREADS * ITEMS` outputs.
///
/// The block loads its pieces of both sides into shared memory, one after the other. Each thread finds where its
/// `ITEMS` outputs begin and merges them one by one. It writes not the items but the position of each one (for keys
/// alone, the keys). Then the block writes the outputs in order. The values are loaded from global memory while the
/// keys are merged.
///
/// The only register array holds the values in flight. Shared memory accesses are free of bank conflicts when loading
/// and storing and, for an odd number of items, when merging.
///
/// If the verdict of [`MergePartition`] is that the comparator contradicts itself, the sides are split as if all of `a`
/// came before all of `b`.
///
/// # Safety
/// The launch has at least one block per tile. `splits` are what [`MergePartition`] has written for these
/// sides, for this tile size and the same `compare`. `out` has room for both sides together. Unless values are
/// zero-sized, there are as many as keys, on both sides and in the output, and a tile has at most 65,536 outputs. While
/// the kernel runs, nothing writes the inputs, and nothing else uses the outputs; no output overlaps another buffer.
#[kernel(
    listed,
    threads = THREADS,
    shared = tile_shared::<K, V>(THREADS, ITEMS),
    min_blocks = min_blocks::<K, V>(),
    native = crate::merge::native::merge_tiles
)]
pub unsafe fn merge_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    a: PrefixPairs<K, V>,
    b: PrefixPairs<K, V>,
    out: PairsMut<K, V>,
    compare: C,
    splits: TileSplits,
) {
    let (a_keys, b_keys) = (a.keys.get(), b.keys.get());
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let keys = memory.take::<K>(tile);
    let values = memory.take::<V>(tile);
    let sources = if has_values::<V>() { memory.take::<u16>(tile) } else { memory.take::<u16>(0) };
    let merged = if has_values::<V>() { memory.take::<K>(0) } else { memory.take::<K>(tile) };
    let chain = Chain::new(memory.take::<u32>(Chain::words(THREADS)));

    let total = a_keys.len() + b_keys.len();
    if thread::block_idx_x() as usize * tile >= total {
        // The device has fewer items than the launch has room for.
        return;
    }
    let part = Tile::nth(thread::block_idx_x() as usize, tile, a_keys.len(), total, splits.boundaries, splits.verdicts);
    let Tile { start, count, a_len, .. } = part;
    let is_full = count as usize == tile;
    let own = thread::thread_idx_x() as usize;
    part.of_sides(a_keys, b_keys).load::<THREADS, ITEMS>(keys, count);
    let mut under_way = [V::zeroed(); ITEMS];
    if has_values::<V>() && is_full {
        let from = part.of_sides(a.values, b.values);
        for i in 0..ITEMS {
            under_way[i] = from.get(own + i * THREADS as usize);
        }
    }
    thread::sync_threads();

    let first = if own * ITEMS < count as usize { (own * ITEMS) as u32 } else { count };
    let mut walk = Walk::new(keys, part, first, compare);
    let share = walk.a;
    // With values, memory takes longer than this.
    if !has_values::<V>() && all(FULL, walk.is_inner(ITEMS as u32)) {
        for i in 0..ITEMS {
            let takes_a = walk.takes_a_inside(compare);
            merged.set(first as usize + i, walk.item(takes_a).1);
            walk.step_inside(keys, takes_a);
        }
    } else {
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
    }
    chain.post(share, walk.a);
    if has_values::<V>() {
        if is_full {
            for i in 0..ITEMS {
                values.set(own + i * THREADS as usize, under_way[i]);
            }
        } else {
            let from = part.of_sides(a.values, b.values);
            let mut at = own;
            while at < count as usize {
                values.set(at, from.get(at));
                at += THREADS as usize;
            }
        }
    }
    thread::sync_threads();

    let fits = chain.holds(a_len);
    let out_keys = out.keys.slice(start, count as usize);
    if has_values::<V>() {
        let out_values = out.values.slice(start, count as usize);
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

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family merge_partition(K) {
        for K in [u32, u64, [u32; 3], [u64; 2], [u64; 4]]: MergePartition<K, HoleOrder>;
    }
    family merge_tiles(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32, u64], ITEMS = items::<K, V>():
            MergeTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
        for K in [[u32; 3], [u64; 2]], V in [(), u32], ITEMS = items::<K, V>():
            MergeTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
        for K in [[u64; 4]], V in [u32], ITEMS = items::<K, V>(): MergeTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
    }
}
