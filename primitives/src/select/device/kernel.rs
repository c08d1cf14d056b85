//! The kernels of selection and partition.

use super::predicate::{BitFlags, Flags, HolePredicate, Keep};
use super::segments::Within;
use super::tile::{self, Places, Ranks, run_len, shared};
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::block::lookback::LookBack;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::monoid::Sum;
use crate::shape::is_for_use;
use crate::view::{Global, GlobalMut, Shared, SharedMemory};
use bytemuck::Pod;

/// The regions of a block's shared memory; [`shared`] counts their bytes.
struct Pieces<K, V> {
    keys: Shared<K>,
    values: Shared<V>,
    warp_totals: Shared<u32>,
    place: Shared<u64>,
}

impl<K: Pod, V: Pod> Pieces<K, V> {
    /// Divides the block's shared memory into regions.
    ///
    /// # Safety
    /// The kernel's shared memory has the bytes that [`shared`] counts for this shape.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn carve<const THREADS: u32, const VEC: usize, const ROWS: usize>(memory: &mut SharedMemory) -> Self {
        let items = THREADS as usize * VEC * ROWS;
        Self {
            keys: memory.take(items),
            values: memory.take(items),
            warp_totals: memory.take((THREADS / LANES) as usize),
            place: memory.take(1),
        }
    }

    /// Returns the part of the keys that belongs to this warp until the tile is compacted.
    ///
    /// # Safety
    /// The memory was [carved](Self::carve) for this shape.
    #[inline(always)]
    unsafe fn stage<const VEC: usize, const ROWS: usize>(&self) -> Shared<K> {
        self.keys.slice(warp_id() as usize * run_len(VEC, ROWS), run_len(VEC, ROWS))
    }
}

/// Compacts the kept items of tiles of `THREADS * VEC * ROWS` items, in one pass.
///
/// A warp loads its rows, tests the items, stores them in shared memory and counts. One count per warp goes through
/// shared memory, and thread 0 announces the count of the tile. Then each warp compacts its run in place, the first
/// warp looks back, and each warp writes its run. What matters is how soon a tile announces, and that few registers are
/// held meanwhile, so that many blocks can load.
///
/// Cost: every item is read once, every kept item is written once; 12 shuffles per lane; the look-back.
///
/// # Safety
/// The launch has one block per tile. Unless values are zero-sized, there are as many as keys. Outputs are at least as
/// long as the input; `count` has one element. `scratch` comes from the stream's look-back words, for one `u64` per
/// tile. The buffers of `keep` satisfy the requirements of its type. While the kernel runs, nothing writes the inputs,
/// and nothing else uses the other buffers; no output overlaps another buffer.
#[kernel(
    listed, listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<K, V>(THREADS, VEC, ROWS),
    min_blocks = F::MIN_BLOCKS,
    native = crate::select::native::select_tiles
)]
pub unsafe fn select_tiles<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    input: Global<K>,
    values: Global<V>,
    output: GlobalMut<K>,
    output_values: GlobalMut<V>,
    keep: F,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let pieces = Pieces::<K, V>::carve::<THREADS, VEC, ROWS>(&mut memory);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let run = (look_back.tile() as u32 * (THREADS / LANES) + warp_id()) as usize;
    let start = run * run_len(VEC, ROWS);

    let stage = pieces.stage::<VEC, ROWS>();
    let rows = tile::load::<K, F, VEC, ROWS>(input, start, keep, stage);
    rows.park(stage);
    let ranks = Ranks::of::<VEC, ROWS>(rows.flags);
    let kept = ranks.total::<ROWS>();
    let block = scan::scan_warps::<u32, Sum, THREADS>(kept, Sum, pieces.warp_totals);
    look_back.announce(block.total as u64);
    let note = keep.record::<ROWS>(run, rows.flags, ranks.in_row, ranks.row_totals);
    let places = Places::<VEC, ROWS, false> { flags: rows.flags, ranks, before: 0, total: 0 };
    let value_stage = pieces.values.slice(warp_id() as usize * run_len(VEC, ROWS), run_len(VEC, ROWS));
    places.compact(stage);
    if size_of::<V>() > 0 {
        places.move_values(values, start, value_stage);
    }
    look_back.look_back(block.total as u64, Sum, |before| {
        if lane_id() == 0 {
            pieces.place.set(0, before);
            if look_back.is_last() {
                count.set(0, before + block.total as u64);
            }
        }
    });
    thread::sync_threads();

    let before = pieces.place.get(0) as usize + block.before as usize;
    tile::write_run(stage, output.slice(before, kept as usize), lane_id(), LANES);
    if size_of::<V>() > 0 {
        tile::write_run(value_stage, output_values.slice(before, kept as usize), lane_id(), LANES);
    }
    keep.record_place::<ROWS>(run, note, before);
}

/// Counts the items that pass in each tile and in all tiles after it: `following[tile]`.
///
/// Tiles are taken from the last to the first. So the first ones are still in the cache when the partition begins,
/// which goes the other way.
///
/// # Safety
/// The launch has one block per tile; `following` has one element per tile. `scratch` and `keep` are as for
/// [`SelectTiles`]. While the kernel runs, nothing writes the input, and nothing else uses `following` or `scratch`.
#[kernel(
    listed,
    listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<K, ()>(THREADS, VEC, ROWS),
    native = crate::select::native::count_tiles
)]
pub unsafe fn count_tiles<K: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    input: Global<K>,
    keep: F,
    following: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let pieces = Pieces::<K, ()>::carve::<THREADS, VEC, ROWS>(&mut memory);
    let tiles = thread::grid_dim_x();
    let look_back = LookBack::begin(&mut memory, scratch, tiles);
    let tile = tiles - 1 - look_back.tile() as u32;
    let start = (tile * (THREADS / LANES) + warp_id()) as usize * run_len(VEC, ROWS);

    let rows = tile::load::<K, F, VEC, ROWS>(input, start, keep, pieces.stage::<VEC, ROWS>());
    let passing = warp::reduce(rows.flags.count_ones(), Sum);
    let block = scan::scan_warps::<u32, Sum, THREADS>(passing, Sum, pieces.warp_totals);
    look_back.exchange(block.total as u64, Sum, |behind| {
        if lane_id() == 0 {
            following.set(tile as usize, behind + block.total as u64);
        }
    });
}

/// Moves the items that pass to the front and the rest behind them, both in order, using the counts of [`CountTiles`].
///
/// Since all counts are known, no tile waits for another.
///
/// Cost: every item is read once and written once; 12 shuffles per lane.
///
/// # Safety
/// The launch has one block per tile. `following` is what [`CountTiles`] of the same shape has written for this input
/// and `keep`. Unless values are zero-sized, there are as many as keys. Outputs are at least as long as the input;
/// `count` has one element. The buffers of `keep` satisfy the requirements of its type. While the kernel runs, nothing
/// writes the inputs or `following`, and nothing else uses the other buffers; no output overlaps another buffer.
#[kernel(
    listed,
    listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<K, V>(THREADS, VEC, ROWS),
    native = crate::select::native::partition_tiles
)]
pub unsafe fn partition_tiles<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    input: Global<K>,
    values: Global<V>,
    output: GlobalMut<K>,
    output_values: GlobalMut<V>,
    keep: F,
    following: Global<u64>,
    count: GlobalMut<u64>,
) {
    let pieces = Pieces::<K, V>::carve::<THREADS, VEC, ROWS>(&mut SharedMemory::new());
    let tile = thread::block_idx_x() as usize;
    let tile_len = THREADS as usize * VEC * ROWS;
    let start = tile * tile_len + warp_id() as usize * run_len(VEC, ROWS);
    let passing = following.get(0) as usize;
    let before = passing - following.get(tile) as usize;

    let rows = tile::load::<K, F, VEC, ROWS>(input, start, keep, pieces.stage::<VEC, ROWS>());
    let ranks = Ranks::of::<VEC, ROWS>(rows.flags);
    let block = scan::scan_warps::<u32, Sum, THREADS>(ranks.total::<ROWS>(), Sum, pieces.warp_totals);
    let places = Places::<VEC, ROWS, true> { flags: rows.flags, ranks, before: block.before, total: block.total };
    places.scatter(rows.items, pieces.keys);
    if size_of::<V>() > 0 {
        places.move_values(values, start, pieces.values);
    }
    thread::sync_threads();

    // Positions are clamped to the number of items, so that an inconsistent predicate does no harm.
    let len = input.len();
    let first = tile * tile_len;
    let (kept, all) = (block.total as usize, tile_len.min(len - first));
    let rest = passing + (first - before);
    let (kept_len, rest_len) = (kept.min(len - before), (all - kept).min(len.saturating_sub(rest)));
    tile::write_run(pieces.keys, output.slice(before, kept_len), thread::thread_idx_x(), THREADS);
    tile::write_run(pieces.keys.slice(kept, all - kept), output.slice(rest, rest_len), thread::thread_idx_x(), THREADS);
    if size_of::<V>() > 0 {
        tile::write_run(pieces.values, output_values.slice(before, kept_len), thread::thread_idx_x(), THREADS);
        tile::write_run(
            pieces.values.slice(kept, all - kept),
            output_values.slice(rest, rest_len),
            thread::thread_idx_x(),
            THREADS,
        );
    }
    if tile == 0 && thread::thread_idx_x() == 0 {
        count.set(0, passing as u64);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family select_tiles(K, V, VEC, ROWS) {
        for K in [u32, u64], V in [(), u32, u64], VEC = tile::vector::<K, V>(), ROWS = tile::rows::<V>():
            SelectTiles<K, V, HolePredicate, 256, VEC, ROWS>;
        for K in [u8, u16], V in [()], VEC = 4, ROWS = 8: SelectTiles<K, V, HolePredicate, 256, VEC, ROWS>;
    }
    family select_flagged(K, V, VEC, ROWS) {
        for K in [u32], V in [(), u32], VEC = 4, ROWS = tile::rows::<V>(): SelectTiles<K, V, Flags, 256, VEC, ROWS>;
        for K in [u64], V in [()], VEC = 2, ROWS = 8: SelectTiles<K, V, Flags, 256, VEC, ROWS>;
    }
    family select_by_bits(K, V, VEC, ROWS) {
        for K in [u8, u16, u32, u64], V in [()], VEC = tile::vector::<K, V>(), ROWS = tile::rows::<V>():
            SelectTiles<K, V, BitFlags, 256, VEC, ROWS>;
    }
    family select_segments(K, V, VEC, ROWS) {
        for K in [u32, u64], V in [()], VEC = tile::vector::<K, V>(), ROWS = 8:
            SelectTiles<K, V, Within<HolePredicate>, 256, VEC, ROWS>;
    }
    family select_segments_flagged(K, V, VEC, ROWS) {
        for K in [u32], V in [()], VEC = 4, ROWS = 8: SelectTiles<K, V, Within<Flags>, 256, VEC, ROWS>;
    }
    // The shapes of `select_tiles`.
    family partition_tiles(K, V, VEC, ROWS) {
        for K in [u32], V in [()], VEC = 4, ROWS = 8:
            PartitionTiles<K, V, HolePredicate, 256, VEC, ROWS>, CountTiles<K, HolePredicate, 256, VEC, ROWS>;
        for K in [u32], V in [u32], VEC = 4, ROWS = 5:
            PartitionTiles<K, V, HolePredicate, 256, VEC, ROWS>, CountTiles<K, HolePredicate, 256, VEC, ROWS>;
        for K in [u64], V in [()], VEC = 2, ROWS = 8:
            PartitionTiles<K, V, HolePredicate, 256, VEC, ROWS>, CountTiles<K, HolePredicate, 256, VEC, ROWS>;
        for K in [u64], V in [u32], VEC = 2, ROWS = 5:
            PartitionTiles<K, V, HolePredicate, 256, VEC, ROWS>, CountTiles<K, HolePredicate, 256, VEC, ROWS>;
    }
    family partition_flagged(K, V, VEC, ROWS) {
        for K in [u32], V in [()], VEC = 4, ROWS = 8:
            PartitionTiles<K, V, Flags, 256, VEC, ROWS>, CountTiles<K, Flags, 256, VEC, ROWS>;
    }
}
