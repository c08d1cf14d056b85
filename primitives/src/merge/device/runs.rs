//! The kernels that merge many runs.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::kernel::{Boundary, PARTITION_THREADS, is_contradictory, write_verdict};
use super::shape::{RUNS_THREADS, runs_items};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, any, lane_id, warp_id};
use crate::block::runs::{self as block, Items, MAX_PIECES, Table};
use crate::block::warp;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::{Buffer, Param, kernel};
use crate::input::Limit;
use crate::monoid::Sum;
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// The maximum number of runs that one pass merges.
pub const MAX_RUNS: usize = MAX_PIECES;

/// The number of blocks that fit in a multiprocessor's shared memory; without this bound, `ptxas` would use too many
/// registers.
const BLOCKS_AT_ONCE: u32 = 5;

/// The runs to merge, as a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Runs<T> {
    views: [Global<T>; MAX_RUNS],
}

// SAFETY: a `repr(C)` array of views.
unsafe impl<T: Pod> Param for Runs<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        for view in self.views {
            if !view.is_empty() {
                view.buffers(name, visit);
            }
        }
    }
}

impl<T: Pod> Runs<T> {
    /// Creates the argument; missing runs are empty views.
    #[must_use]
    pub const fn new(views: [Global<T>; MAX_RUNS]) -> Self {
        Self { views }
    }

    /// Returns run `index`.
    #[inline(always)]
    pub(crate) fn get(self, index: u32) -> Global<T> {
        self.get_of_first::<MAX_RUNS>(index)
    }

    /// Returns run `index`, one of the first `N`. It uses a chain of selects: a run-time index would force the array
    /// into memory.
    #[inline(always)]
    pub(crate) fn get_of_first<const N: usize>(self, index: u32) -> Global<T> {
        let mut view = self.views[0];
        for i in 1..N {
            if index as usize == i {
                view = self.views[i];
            }
        }
        view
    }
}

/// The limits of runs whose lengths only the device knows, as a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    limits: [Limit; MAX_RUNS],
    /// Whether there are any: 0 or 1.
    are_some: u64,
}

// SAFETY: `repr(C)`: an array of `Param`s, and a number.
unsafe impl Param for RunLimits {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        for limit in self.limits {
            limit.buffers(name, visit);
        }
    }
}

impl RunLimits {
    /// Creates the argument; runs without a limit are as long as their views.
    #[must_use]
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(limits: [Limit; MAX_RUNS]) -> Self {
        Self { limits, are_some: u64::from(limits.iter().any(Limit::is_some)) }
    }

    /// Returns whether there are limits.
    #[inline(always)]
    pub(crate) fn are_some(&self) -> bool {
        self.are_some != 0
    }

    /// Returns the items of run `index` that count.
    ///
    /// # Safety
    /// Nothing writes the lengths at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn first<T: Pod>(&self, run: Global<T>, index: u32) -> Global<T> {
        self.first_in::<T, MAX_RUNS>(run, index)
    }

    /// Returns the items of run `index`, one of the first `N`, that count. Without limits this is one branch; the chain of
    /// selects is that of [`Runs::get_of_first`].
    ///
    /// # Safety
    /// Same as [`first`](Self::first).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn first_in<T: Pod, const N: usize>(&self, run: Global<T>, index: u32) -> Global<T> {
        if !self.are_some() {
            return run;
        }
        let mut limit = self.limits[0];
        for i in 1..N {
            if index as usize == i {
                limit = self.limits[i];
            }
        }
        limit.first(run)
    }
}

/// The number of words in the table that [`RunsPartition`] writes before the splits: the addresses of the keys and
/// values of each run, and its length. A lane of the tiles' kernel finds its run there; in the arguments it would have
/// to look at all runs.
pub(crate) const TABLE_WORDS: usize = 3 * MAX_RUNS;

/// How the boundaries between tiles are searched, as a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct BoundarySearch {
    /// The sum of the lengths of the runs' views.
    pub most: u64,
    /// The number of runs.
    pub runs: u32,
    /// The outputs of a tile.
    pub tile: u32,
    /// How many outputs more or fewer may come before a boundary.
    pub slack: u32,
    /// The lanes that search one boundary are `1 << log_lanes`.
    pub log_lanes: u32,
    /// Whether a block first searches its first and its last boundary: 0 or 1.
    pub edges_first: u64,
}

/// Finds, for each boundary between tiles of `tile` outputs, or up to `slack` more or fewer, and for each run, how many
/// of the outputs before the boundary come from that run.
///
/// A group of `1 << log_lanes` lanes searches for one boundary, one lane per run: see [`block::split`]. If
/// `edges_first` is not 0, the block first searches for its first and its last boundary, and then for the others
/// between them. That takes longer, but all blocks together read half as much memory, which matters if there are many.
///
/// The shares of a boundary always add up, for any comparator, since they are counted that way. If a contradictory
/// comparator makes them decrease from one boundary to the next, the block's verdict is 1.
///
/// Only the addresses of the values are used, whatever the values are.
///
/// # Safety
/// The launch has at least one block per `(256 >> log_lanes) - 1` tiles. `tile` is not 0; `log_lanes` is at most 5;
/// `1 <= runs <= 1 << log_lanes`; `most` is the sum of the lengths of the runs' views. `splits` has a table of 96 words and then
/// `runs` words per boundary; there is one more boundary than tiles of `most` outputs. `verdicts` has one byte per block, padded to whole
/// words. While the kernel runs, nothing writes the keys, and nothing else uses `splits` or `verdicts`.
#[kernel(
    listed,
    threads = PARTITION_THREADS,
    shared = shared_bytes::<u64>(PARTITION_THREADS as usize)
        + shared_bytes::<u64>(2 * MAX_RUNS)
        + shared_bytes::<u32>(1),
    // Wide keys take more registers.
    min_blocks = if size_of::<K>() > 8 { 2 } else { 4 },
    native = crate::merge::native::splits::runs_partition
)]
pub unsafe fn runs_partition<K: Pod, C: KeyOrder<K>>(
    keys: Runs<K>,
    limits: RunLimits,
    values: Runs<u8>,
    search: BoundarySearch,
    compare: C,
    splits: GlobalMut<u64>,
    verdicts: GlobalMut<u8>,
) {
    let BoundarySearch { most, runs, tile, slack, log_lanes, edges_first } = search;
    let mut memory = SharedMemory::new();
    let found = memory.take::<u64>(PARTITION_THREADS as usize);
    let edges = memory.take::<u64>(2 * MAX_RUNS);
    let word = memory.take::<u32>(1);

    let tiles = most.div_ceil(tile as u64) as usize;
    let boundary = Boundary::of_thread(log_lanes, tiles);
    let lanes = 1u32 << log_lanes;
    let lane = lane_id() & (lanes - 1);
    let run = limits.first(keys.get(lane), lane);
    let total =
        if limits.are_some() { block::sum(if lane < runs { run.len() as u64 } else { 0 }, log_lanes) } else { most };
    let before = |index: usize| {
        let position = index as u64 * tile as u64;
        if position < total { position } else { total }
    };

    if thread::block_idx_x() == 0 && thread::thread_idx_x() < runs {
        let at = 3 * lane as usize;
        splits.set(at, run.as_ptr().expose_provenance() as u64);
        splits.set(at + 1, values.get(lane).as_ptr().expose_provenance() as u64);
        splits.set(at + 2, run.len() as u64);
    }
    let run = if lane < runs { run } else { run.slice(0, 0) };
    let first = boundary.index - boundary.group as usize;
    let mut window = run;
    let mut skipped = 0;
    let mut needed = before(boundary.index);
    let mut low = 0;
    let mut are_edges_known = edges_first == 0;
    loop {
        // The edges belong to the first groups; their warps take part as a whole.
        let is_edge = warp_id() * LANES < 2 * lanes;
        if are_edges_known || is_edge {
            let edge = before(first + if boundary.group == 0 { 0 } else { boundary.groups as usize - 1 });
            let needed = if are_edges_known { needed } else { edge };
            low = skipped + block::split(window, needed, slack as u64, log_lanes, compare);
        }
        if are_edges_known {
            break;
        }
        if boundary.group < 2 {
            edges.set((boundary.group * lanes + lane) as usize, low);
        }
        thread::sync_threads();
        let (from, to) = (edges.get(lane as usize), edges.get((lanes + lane) as usize));
        // If the comparator contradicts itself, the edges may be out of order.
        if !any(FULL, from > to) {
            window = run.slice(from as usize, (to - from) as usize);
            skipped = from;
            // The edges themselves are not searched again: the next block must find the same ones.
            let (start, end) = (block::sum(from, log_lanes), block::sum(to, log_lanes));
            needed = match boundary.group {
                0 => 0,
                group if group == boundary.groups - 1 => end - start,
                _ => needed.saturating_sub(start).min(end - start),
            };
        }
        are_edges_known = true;
    }

    if thread::thread_idx_x() == 0 {
        word.set(0, 0);
    }
    found.set(thread::thread_idx_x() as usize, low);
    if lane < runs && boundary.is_own() {
        splits.set(TABLE_WORDS + boundary.index * runs as usize + lane as usize, low);
    }
    thread::sync_threads();
    let is_contradiction = boundary.has_next() && found.get((thread::thread_idx_x() + lanes) as usize) < low;
    write_verdict(is_contradiction, word, verdicts);
}

/// Returns whether keys have values.
const fn has_values<V>() -> bool {
    size_of::<V>() != 0
}

/// How many items more or fewer than planned may come before a boundary. The less exact it has to be, the sooner it is
/// found.
pub(crate) const SLACK: usize = 64;

/// Returns the planned number of items of a tile of `1 << rounds` runs, at least two.
#[must_use]
#[inline(always)]
pub const fn tile_len(threads: u32, items: usize, rounds: u32) -> usize {
    block::room(threads, items, rounds) - 2 * SLACK
}

/// Returns the shared memory of a block: the items twice, and the tables of the pieces.
#[must_use]
pub const fn tile_shared<K: Pod, V: Pod>(threads: u32, items: usize) -> usize {
    Items::<K, V>::bytes(2 * block::room(threads, items, 1))
        + Table::bytes(threads)
        + 2 * shared_bytes::<u64>(MAX_RUNS)
        + shared_bytes::<u32>((threads / LANES) as usize)
        + shared_bytes::<u64>(1)
}

/// Returns a piece's run, shifted so that the items of the tile have the same indices as in the tile, from its table
/// entry.
///
/// # Safety
/// The elements that the view is used for, at most `count` from `address` on, are device memory whose address was
/// exposed. They are aligned for `T` and stay valid while the kernel runs.
#[inline(always)]
pub(crate) unsafe fn run_at<T: Pod>(address: u64, count: u32) -> Global<T> {
    Global::from_raw(core::ptr::with_exposed_provenance(address as usize), count as usize)
}

/// Merges tiles of outputs from many runs.
///
/// The block loads its piece of each run into shared memory, one after the other, and [merges](block::merge) them
/// there.
///
/// If the comparator contradicts itself, between tiles or within one, the items are taken in the order of the runs.
///
/// # Safety
/// The launch has one block per tile. `1 << rounds` is at least `runs` and at most 32. `splits` and `verdicts` are what
/// [`RunsPartition`] has written for `runs` runs, tiles of `tile_len(THREADS, ITEMS, rounds)` items and a slack of at
/// most 64. The runs that it was given are still valid. Their values are `V`s and, unless these are zero-sized, there
/// are as many as keys. The output is as long as all runs and does not overlap them. While the kernel runs, nothing
/// writes the runs, `splits` or `verdicts`, and nothing else uses the output.
#[kernel(
    listed,
    threads = THREADS,
    shared = tile_shared::<K, V>(THREADS, ITEMS),
    min_blocks = BLOCKS_AT_ONCE,
    native = crate::merge::native::runs_tiles
)]
pub unsafe fn runs_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    runs: u32,
    rounds: u32,
    out: PairsMut<K, V>,
    compare: C,
    splits: Global<u64>,
    verdicts: Global<u64>,
) {
    let room = block::room(THREADS, ITEMS, 1);
    let mut memory = SharedMemory::new();
    let both = Items::<K, V>::take(&mut memory, 2 * room);
    let table = Table::take(&mut memory, THREADS);
    let key_addresses = memory.take::<u64>(MAX_RUNS);
    let value_addresses = memory.take::<u64>(MAX_RUNS);
    let warp_verdicts = memory.take::<u32>((THREADS / LANES) as usize);
    let word = memory.take::<u64>(1);

    let block = thread::block_idx_x() as usize;
    let own = thread::thread_idx_x();
    // The first warp's data is in flight before the wait for the verdicts.
    let is_run = warp_id() == 0 && lane_id() < runs;
    let (mut low, mut high) = (0, 0);
    let (mut key_address, mut value_address, mut len) = (0, 0, 0);
    if is_run {
        let lane = lane_id() as usize;
        let boundary = TABLE_WORDS + block * runs as usize + lane;
        low = splits.get(boundary);
        high = splits.get(boundary + runs as usize);
        key_address = splits.get(3 * lane);
        value_address = splits.get(3 * lane + 1);
        len = splits.get(3 * lane + 2);
    }
    // There may be thousands of verdicts: every warp looks at some.
    let is_contradiction = is_contradictory(verdicts, own, THREADS);
    if lane_id() == 0 {
        warp_verdicts.set(warp_id() as usize, u32::from(is_contradiction));
    }
    thread::sync_threads();
    if warp_id() == 0 {
        let lane = lane_id();
        let warps = THREADS / LANES;
        // Boundaries may also be out of order because two blocks got different results for one of them.
        if any(FULL, warp_verdicts.get((lane % warps) as usize) != 0 || high < low) {
            let tile = tile_len(THREADS, ITEMS, rounds) as u64;
            let start = block as u64 * tile;
            let before = warp::inclusive_scan(len, Sum) - len;
            low = start.saturating_sub(before).min(len);
            high = (start + tile).saturating_sub(before).min(len);
        }
        // The tile begins after everything that comes before it.
        let start = warp::reduce(low, Sum);
        if lane == 0 {
            word.set(0, start);
        }
        let offset = table.write::<ITEMS>((high - low) as u32, rounds);
        let moved = low.wrapping_sub(offset as u64);
        let lane = lane as usize;
        key_addresses.set(lane, key_address.wrapping_add(moved.wrapping_mul(size_of::<K>() as u64)));
        value_addresses.set(lane, value_address.wrapping_add(moved.wrapping_mul(size_of::<V>() as u64)));
    }
    thread::sync_threads();
    let start = word.get(0) as usize;
    let count = table.count();
    if count == 0 {
        // The last boundary but one came late.
        return;
    }

    let item = |at: u32, piece: u32| {
        let key = run_at::<K>(key_addresses.get(piece as usize), count).get_shifted(at as usize);
        let value = if has_values::<V>() {
            run_at::<V>(value_addresses.get(piece as usize), count).get_shifted(at as usize)
        } else {
            V::zeroed()
        };
        (key, value)
    };
    // All loads are in flight before the first wait.
    let mut loaded = [(K::zeroed(), V::zeroed()); ITEMS];
    let ends = table.ends();
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        let piece = ends.piece(at);
        if at < count {
            loaded[i] = item(at, piece);
        }
    }
    let unmerged = both.slice(block::first_half(rounds, room), room);
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < count {
            unmerged.set(at as usize, loaded[i].0, loaded[i].1);
        }
    }
    thread::sync_threads();

    let fits = block::merge::<K, V, C, THREADS, ITEMS, true>(both, room, table, rounds, rounds, count, compare);

    let out = out.slice(start, count as usize);
    if fits {
        for i in 0..ITEMS {
            let at = (own + i as u32 * THREADS) as usize;
            if at < count as usize {
                let (key, value) = both.get(at);
                out.set(at, key, value);
            }
        }
    } else {
        let mut piece = 0;
        let mut at = own;
        while at < count {
            piece = table.piece(at, piece);
            let (key, value) = item(at, piece);
            out.set(at as usize, key, value);
            at += THREADS;
        }
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family runs_partition(K) {
        for K in [u32, u64, [u32; 3], [u64; 2], [u64; 4]]: RunsPartition<K, HoleOrder>;
    }
    family runs_tiles(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32, u64], ITEMS = runs_items::<K, V>():
            RunsTiles<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
        for K in [[u32; 3], [u64; 2]], V in [(), u32], ITEMS = runs_items::<K, V>():
            RunsTiles<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
        for K in [[u64; 4]], V in [u32], ITEMS = runs_items::<K, V>():
            RunsTiles<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
    }
}
