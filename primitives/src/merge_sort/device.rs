//! The kernels that merge neighbouring runs, many groups of them at once.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, any, lane_id, warp_id};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::block::runs::{self as block, Items, MAX_PIECES, Table};
use crate::block::warp;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::input::Prefix;
use crate::merge::{Boundary, PARTITION_THREADS, RUNS_THREADS, SLACK, run_at, runs_items, tile_len};
use crate::monoid::Sum;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// How a pass divides the items: into runs of equal length, these into groups that are merged, and these into tiles. The
/// last of each may be shorter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Plan {
    /// The items of a run.
    pub(super) run: u64,
    /// The tiles of a group.
    pub(super) tiles: u64,
    /// The planned outputs of a tile.
    pub(super) tile: u32,
    /// A group has `1 << rounds` runs: 2 to 32.
    pub(super) rounds: u32,
}

/// A tile's group, and where the tile lies in it.
#[derive(Clone, Copy)]
struct Place {
    /// The first item of the group.
    group: u64,
    /// The number of items of the group.
    len: u64,
    /// The planned number of outputs of the group before the tile.
    before: u64,
}

impl Plan {
    /// Returns the place of tile `index`; one after the last tile has a group without items.
    #[inline(always)]
    fn place(self, index: u64, items: u64) -> Place {
        let group = index / self.tiles * (self.run << self.rounds);
        let group = if group < items { group } else { items };
        let (rest, most) = (items - group, self.run << self.rounds);
        let len = if rest < most { rest } else { most };
        let before = index % self.tiles * self.tile as u64;
        Place { group, len, before: if before < len { before } else { len } }
    }

    /// Returns where run `index` of a group of `len` items begins.
    #[inline(always)]
    fn run_start(self, index: u32, len: u64) -> u64 {
        let start = index as u64 * self.run;
        if start < len { start } else { len }
    }
}

/// Finds, for each tile and each run of its group, how many of the outputs before the tile come from that run.
///
/// It works like the partition of a merge of many runs: see [`block::split`]. A group of `1 << rounds` lanes searches for
/// one boundary, which may be up to `slack` outputs off.
///
/// If a contradictory comparator makes shares decrease from one boundary to the next, `broken` becomes 1.
///
/// # Safety
/// The launch has at least one block per `(256 >> rounds) - 1` tiles. `splits` has `1 << rounds` words per tile. `broken`
/// has one word, which is zero. While the kernel runs, nothing writes the keys, and nothing else uses the other buffers.
#[kernel(
    listed,
    threads = PARTITION_THREADS,
    shared = shared_bytes::<u64>(PARTITION_THREADS as usize),
    // Wide keys take more registers.
    min_blocks = if size_of::<K>() > 8 { 2 } else { 4 },
    native = super::native::split_groups
)]
pub unsafe fn split_groups<K: Pod, C: KeyOrder<K>>(
    keys: Prefix<K>,
    compare: C,
    plan: Plan,
    slack: u32,
    splits: GlobalMut<u64>,
    broken: GlobalMut<u32>,
) {
    let keys = keys.get();
    let found = SharedMemory::new().take::<u64>(PARTITION_THREADS as usize);

    let lanes = 1u32 << plan.rounds;
    let lane = lane_id() & (lanes - 1);
    let tiles = splits.len() >> plan.rounds;
    let boundary = Boundary::of_thread(plan.rounds, tiles);
    let place = plan.place(boundary.index as u64, keys.len() as u64);
    let (start, end) = (plan.run_start(lane, place.len), plan.run_start(lane + 1, place.len));
    let run = keys.slice((place.group + start) as usize, (end - start) as usize);
    let low = block::split(run, place.before, slack as u64, plan.rounds, compare);

    found.set(thread::thread_idx_x() as usize, low);
    if boundary.is_own() && boundary.index < tiles {
        splits.set((boundary.index << plan.rounds) + lane as usize, low);
    }
    thread::sync_threads();
    if boundary.has_next() {
        let is_last = place.before + plan.tile as u64 >= place.len;
        let next = if is_last { end - start } else { found.get((thread::thread_idx_x() + lanes) as usize) };
        if next < low {
            broken.atomic_rmw(Rmw::Max, 0, 1, Scope::Gpu, Order::Relaxed);
        }
    }
}

/// Returns whether keys have values.
const fn has_values<V>() -> bool {
    size_of::<V>() != 0
}

/// Returns the number of blocks that fit in a multiprocessor's shared memory; without this bound, `ptxas` would use too many
/// registers. With five, it spills some of those of pairs of 4 and 4 bytes on `sm_120`.
const fn blocks_at_once<K, V>() -> u32 {
    if size_of::<K>() == 4 && size_of::<V>() == 4 { 4 } else { 5 }
}

/// Returns the shared memory of a block: the items twice, the tables of the pieces, and where the tile begins.
#[must_use]
pub const fn shared<K: Pod, V: Pod>(threads: u32, items: usize) -> usize {
    Items::<K, V>::bytes(2 * block::room(threads, items, 1))
        + Table::bytes(threads)
        + 2 * shared_bytes::<u64>(MAX_PIECES)
        + shared_bytes::<u64>(1)
}

/// Merges groups of up to 32 neighbouring runs, in tiles of outputs.
///
/// The block loads its piece of each run into shared memory, one after the other, and [merges](block::merge) them there,
/// pairwise in rounds. So a pass with groups of 32 runs takes the place of five passes that merge two.
///
/// If the comparator contradicts itself between tiles, runs are copied as they are; if it does within a tile, that tile is.
///
/// Cost: every item is read once and written once: 2^24 pairs of 32 bits take 65 µs at 4.1 TB/s. Per round, an item takes one
/// dependent read and one write of shared memory, and about 20 instructions: with 4 or 5 rounds, these are the limit.
///
/// # Safety
/// The launch has at least one block per tile. `splits` and `broken` are what [`SplitGroups`] has written for this plan, with a slack
/// of at most 64. The plan's tiles have `tile_len(THREADS, ITEMS, rounds)` outputs. Unless values are zero-sized, there are
/// as many as keys. The output has room for the input and does not overlap it. While the kernel runs, nothing writes the
/// inputs, and nothing else uses the output.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared::<K, V>(THREADS, ITEMS),
    min_blocks = blocks_at_once::<K, V>(),
    native = super::native::merge_groups
)]
pub unsafe fn merge_groups<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    keys: Prefix<K>,
    values: Global<V>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    compare: C,
    plan: Plan,
    splits: Global<u64>,
    broken: Global<u32>,
) {
    let keys = keys.get();
    let room = block::room(THREADS, ITEMS, 1);
    let mut memory = SharedMemory::new();
    let both = Items::<K, V>::take(&mut memory, 2 * room);
    let table = Table::take(&mut memory, THREADS);
    // The addresses of the pieces wait in shared memory, so that they take no registers while items are merged.
    let key_addresses = memory.take::<u64>(MAX_PIECES);
    let value_addresses = memory.take::<u64>(MAX_PIECES);
    let word = memory.take::<u64>(1);

    let tile = thread::block_idx_x() as u64;
    let own = thread::thread_idx_x();
    let place = plan.place(tile, keys.len() as u64);
    let is_broken = broken.get(0) != 0;
    if warp_id() == 0 {
        let lane = lane_id();
        let (start, end) = (plan.run_start(lane, place.len), plan.run_start(lane + 1, place.len));
        let (mut low, mut high) = (0, 0);
        if lane < 1 << plan.rounds {
            let is_last = place.before + plan.tile as u64 >= place.len;
            let split = ((tile as usize) << plan.rounds) + lane as usize;
            low = splits.get(split);
            high = if is_last { end - start } else { splits.get(split + (1 << plan.rounds)) };
        }
        // Boundaries may also be out of order because two blocks got different results for one of them.
        if is_broken || any(FULL, high < low) {
            let until = place.before + plan.tile as u64;
            low = place.before.clamp(start, end) - start;
            high = until.clamp(start, end) - start;
        }
        // The tile begins after everything that comes before it in its group.
        let before = warp::reduce(low, Sum);
        if lane == 0 {
            word.set(0, place.group + before);
        }
        let offset = table.write::<ITEMS>((high - low) as u32, plan.rounds);
        let moved = (place.group + start + low).wrapping_sub(offset as u64);
        let address = |of: usize, size: usize| (of as u64).wrapping_add(moved.wrapping_mul(size as u64));
        key_addresses.set(lane as usize, address(keys.as_ptr().expose_provenance(), size_of::<K>()));
        value_addresses.set(lane as usize, address(values.as_ptr().expose_provenance(), size_of::<V>()));
    }
    thread::sync_threads();
    let count = table.count();
    if count == 0 {
        // The boundary after it came early.
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
    let unmerged = both.slice(block::first_half(plan.rounds, room), room);
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < count {
            unmerged.set(at as usize, loaded[i].0, loaded[i].1);
        }
    }
    thread::sync_threads();

    let rounds = plan.rounds;
    let fits = block::merge::<K, V, C, THREADS, ITEMS, true>(both, room, table, rounds, rounds, count, compare);

    // Read only now, so that it takes no registers before.
    let start = word.get(0) as usize;
    let out_keys = out_keys.slice(start, count as usize);
    let out_values =
        out_values.slice(if has_values::<V>() { start } else { 0 }, if has_values::<V>() { count as usize } else { 0 });
    let put = |at: usize, (key, value): (K, V)| {
        out_keys.set(at, key);
        if has_values::<V>() {
            out_values.set(at, value);
        }
    };
    if fits {
        for i in 0..ITEMS {
            let at = (own + i as u32 * THREADS) as usize;
            if at < count as usize {
                put(at, both.get(at));
            }
        }
    } else {
        let mut piece = 0;
        let mut at = own;
        while at < count {
            piece = table.piece(at, piece);
            put(at as usize, item(at, piece));
            at += THREADS;
        }
    }
}

/// Returns the planned outputs of a tile of [`MergeGroups`] of `1 << rounds` runs.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const fn outputs<const ITEMS: usize>(rounds: u32) -> usize {
    tile_len(RUNS_THREADS, ITEMS, rounds)
}

/// How many outputs a boundary may be off.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const BOUNDARY_SLACK: u32 = SLACK as u32;

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family split_groups(K) {
        for K in [u32, u64, [u32; 3], [u64; 2], [u64; 4]]: SplitGroups<K, HoleOrder>;
    }
    family merge_groups(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32, u64], ITEMS = runs_items::<K, V>():
            MergeGroups<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
        for K in [[u32; 3], [u64; 2]], V in [(), u32], ITEMS = runs_items::<K, V>():
            MergeGroups<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
        for K in [[u64; 4]], V in [u32], ITEMS = runs_items::<K, V>():
            MergeGroups<K, V, HoleOrder, { RUNS_THREADS }, ITEMS>;
    }
}
