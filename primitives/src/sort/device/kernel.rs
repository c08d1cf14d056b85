//! The kernels that distribute items to buckets, for the radix sort and the multisplit.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::tile::{Place, Tile, distribute_tile};
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::arch::{Order, Rmw, Scope, opaque, thread};
use crate::block::radix::{HALF, RADIX, RankMemory};
use crate::block::warp;
use crate::buckets::{Buckets, bucket_of, last_bucket};
use crate::form::kernel;
use crate::input::Prefix;
use crate::monoid::Sum;
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Returns the number of blocks that must fit on a multiprocessor, where `blocks` are wanted. It is one if a costly
/// function meets keys and values of different sizes, which take more registers than those of one size.
const fn blocks_at_once<K, V, B: Buckets<K>>(blocks: u32) -> u32 {
    let is_mixed = size_of::<V>() > 0 && size_of::<V>() != size_of::<K>();
    // The checks of functions that cannot be relied on take registers, too.
    let is_costly = B::IS_COSTLY && is_mixed || !B::PURITY.is_promised();
    if is_costly && blocks > 0 { 1 } else { blocks }
}

/// The threads per block of the histogram.
pub const HISTOGRAM_THREADS: u32 = 512;
/// The keys that a thread of the histogram loads at once.
const HISTOGRAM_ITEMS: usize = 4;
/// The keys that a block of the histogram takes at a time.
pub const HISTOGRAM_TILE: usize = HISTOGRAM_THREADS as usize * HISTOGRAM_ITEMS;
/// The counters per bucket in a block of the histogram: with a single one, lanes with equal buckets would serialize.
pub(super) const PARTS: usize = 4;

/// Counts the buckets of all passes in one read, and prepares the scratch memory of the passes.
///
/// The last block to finish turns the counts into first positions, with an exclusive scan per pass, one warp each. It
/// also zeroes the counts for the next launch. Meanwhile the blocks have zeroed the look-back words of all passes.
///
/// Cost: reads every key once; writes the look-back words, 1 KiB per tile and pass.
///
/// # Safety
/// The launch has any number of blocks, at least one, each of which takes fewer than 2^32 keys. `passes` is at most
/// [`Buckets::MAX_PASSES`]. `counts` has `passes * 256` zeros and one more that counts finished blocks. `bases` has
/// room for `passes * 256` positions; after these, and of fewer buckets than 256, it gets the number of keys. With one pass it may
/// also have room for fewer positions, which then are those of the first buckets. `lookback` is the memory that the passes will use, including tickets. While the
/// kernel runs, nothing writes the keys, and nothing else uses the other buffers.
#[kernel(
    listed = super::instances::BUCKET_HISTOGRAM_PTX,
    threads = HISTOGRAM_THREADS,
    min_blocks = 2,
    native = crate::sort::native::bucket_histogram,
    shared = shared_bytes::<u32>(B::MAX_PASSES * RADIX * PARTS) + shared_bytes::<u32>(1)
)]
pub unsafe fn bucket_histogram<K: Pod, B: Buckets<K>>(
    keys: Prefix<K>,
    buckets: B,
    passes: u32,
    counts: GlobalMut<u64>,
    bases: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
) {
    let keys = keys.get();
    let mut memory = SharedMemory::new();
    let local = memory.take::<u32>(B::MAX_PASSES * RADIX * PARTS);
    let is_last = memory.take::<u32>(1);
    let thread = thread::thread_idx_x() as usize;
    let counters = passes as usize * RADIX;

    let mut i = thread;
    while i < counters * PARTS {
        local.set(i, 0);
        i += HISTOGRAM_THREADS as usize;
    }
    let mut i = thread::block_idx_x() as usize * HISTOGRAM_THREADS as usize + thread;
    while i < lookback.len() {
        lookback.set(i, 0);
        i += thread::grid_dim_x() as usize * HISTOGRAM_THREADS as usize;
    }
    thread::sync_threads();

    let (first, stride) = (thread::block_idx_x() as usize, thread::grid_dim_x() as usize);
    count_digits(keys, (first * HISTOGRAM_TILE, stride * HISTOGRAM_TILE), buckets, passes, local);

    let mut i = thread;
    while i < counters {
        let mut count = 0;
        for part in 0..PARTS {
            count += local.get(i * PARTS + part);
        }
        if count != 0 {
            counts.atomic_add(i, count as u64, Scope::Gpu, Order::Relaxed);
        }
        i += HISTOGRAM_THREADS as usize;
    }
    // Makes this block's counts visible to any block that sees it counted as finished.
    thread::fence(Scope::Gpu);
    thread::sync_threads();
    if thread == 0 {
        let finished = counts.atomic_add(counters, 1, Scope::Gpu, Order::AcqRel);
        let last = finished + 1 == thread::grid_dim_x() as u64;
        if last {
            counts.atomic_store(counters, 0, Scope::Gpu, Order::Relaxed);
        }
        is_last.set(0, last as u32);
    }
    thread::sync_threads();
    if is_last.get(0) == 0 {
        return;
    }
    thread::fence(Scope::Gpu);
    let mut pass = warp_id();
    while pass < passes {
        let first = pass as usize * RADIX;
        let place = |row: usize| first + row * LANES as usize + lane_id() as usize;
        // All of them are on the way together.
        let mut totals = [0; RADIX / LANES as usize];
        for row in 0..totals.len() {
            totals[row] = counts.atomic_rmw(Rmw::Exchange, place(row), 0, Scope::Gpu, Order::Relaxed);
        }
        let mut before = 0;
        for row in 0..totals.len() {
            let upto = before + warp::inclusive_scan(totals[row], Sum);
            if place(row) < bases.len() {
                bases.set(place(row), upto - totals[row]);
            }
            before = warp::broadcast(upto, LANES - 1);
        }
        let end = first + RADIX;
        if end == counters && end < bases.len() && lane_id() == 0 {
            bases.set(end, before);
        }
        pass += HISTOGRAM_THREADS / LANES;
    }
}

/// Counts the buckets of all passes of some tiles: `first`, and those after it at a distance of `stride` keys. The counters of a
/// bucket are [`PARTS`] neighbours of `local`. A barrier follows.
///
/// # Safety
/// All threads of a block of [`HISTOGRAM_THREADS`] call this. `local` has `PARTS * 256` counters for each pass, of which there are at
/// most [`Buckets::MAX_PASSES`]. Nothing writes the keys.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn count_digits<K: Pod, B: Buckets<K>>(
    keys: Global<K>,
    (first, stride): (usize, usize),
    buckets: B,
    passes: u32,
    local: Shared<u32>,
) {
    let thread = thread::thread_idx_x() as usize;
    let mut start = first;
    while start < keys.len() {
        let tile = keys.slice(start, (keys.len() - start).min(HISTOGRAM_TILE));
        let count = |key: K, pass: usize| {
            let last = last_bucket(&buckets, pass as u32);
            let bucket = bucket_of(&buckets, key, pass as u32, last) as usize;
            local.atomic_add((pass * RADIX + bucket) * PARTS + lane_id() as usize % PARTS, 1);
        };
        if size_of::<K>() <= 8 {
            // All loads are in flight together.
            let mut items = [K::zeroed(); HISTOGRAM_ITEMS];
            for j in 0..HISTOGRAM_ITEMS {
                if j * HISTOGRAM_THREADS as usize + thread < tile.len() {
                    items[j] = tile.get(j * HISTOGRAM_THREADS as usize + thread);
                }
            }
            let now = opaque(tile.len() as u32);
            for j in 0..HISTOGRAM_ITEMS {
                if j as u32 * HISTOGRAM_THREADS + (thread as u32) < now {
                    for pass in 0..B::MAX_PASSES {
                        if pass < passes as usize {
                            count(items[j], pass);
                        }
                    }
                }
            }
        } else {
            // Wide keys would take too many registers: handle one at a time, pass after pass.
            let mut index = thread;
            while index < tile.len() {
                let key = tile.get(index);
                let mut pass = 0;
                while pass < passes as usize {
                    count(key, pass);
                    pass += 1;
                }
                index += HISTOGRAM_THREADS as usize;
            }
        }
        start += stride;
    }
    thread::sync_threads();
}

/// The maximum number of elements of one launch of a pass: counts have 30 bits.
pub const MAX_CHUNK: usize = 1 << 29;

/// Returns the number of look-back words of a pass over `tiles` tiles: one row per tile, and the ticket.
#[must_use]
pub const fn lookback_len(tiles: usize) -> usize {
    tiles * RADIX + 1
}

/// Returns the shared memory of a block of [`bucket_pass`].
#[must_use]
pub const fn pass_shared<K, V>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    let exchange = max(shared_bytes::<K>(tile), shared_bytes::<V>(tile));
    shared_bytes::<u64>(RADIX)
        + shared_bytes::<u32>(1)
        + max(exchange, shared_bytes::<u32>(RankMemory::<HALF>::words(threads)))
}

pub(super) const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Distributes items to their buckets, stably: one read and one write of everything.
///
/// A block takes a tile of `THREADS * ITEMS` items. Its warps count their buckets. Thread `b` publishes the tile's
/// count of bucket `b` and, after the ranking, looks back at the counts of earlier tiles, until it finds a tile that
/// knows its own prefix. The items go through shared memory in the order of their ranks, so that each bucket's run is
/// written to consecutive addresses.
///
/// Cost: `2 * (size_of::<K>() + size_of::<V>())` bytes per item; 1 KiB of look-back words per tile, written twice and
/// read at least once.
///
/// Waiting cannot deadlock: tiles are handed out as tickets, in the order in which blocks start, and a tile waits only
/// for earlier tickets. Counts are integers, so the order of their addition does not affect the result.
///
/// # Safety
/// The launch has one block per tile: the most keys that there can be by `THREADS * ITEMS`, rounded up. `THREADS` is at
/// least 256 and a tile has fewer than 65,536 items. There are at most 2^29 keys (`MAX_CHUNK`), and as many elements of
/// `values_in`, unless values are zero-sized.
///
/// `bases` holds the first positions of this launch's items, of 256 buckets or of as many as there are, counted with the same
/// `buckets` and pass. All
/// positions that the items take from there on lie within the keys of `to` and, unless values are zero-sized, within its values.
/// `next_bases` has room for 256 positions and receives those of the items that follow (the next chunk of an input too
/// long for one launch), unless the device has fewer keys than the launch has tiles for: then none follow. `lookback` has 256 zeros per tile and one more (`lookback_len`).
///
/// While the kernel runs, nothing writes the inputs or `bases`, and nothing else uses the other buffers. No output
/// overlaps another buffer.
#[kernel(
    listed = [super::instances::LARGE_PASS_PTX, super::instances::SMALL_PASS_PTX],
    threads = THREADS,
    shared = pass_shared::<K, V>(THREADS, ITEMS),
    min_blocks = blocks_at_once::<K, V, B>(MIN_BLOCKS),
    native = crate::sort::native::bucket_pass
)]
pub unsafe fn bucket_pass<
    K: Pod,
    V: Pod,
    B: Buckets<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const MIN_BLOCKS: u32,
>(
    keys_in: Prefix<K>,
    values_in: Global<V>,
    to: PairsMut<K, V>,
    buckets: B,
    pass: u32,
    bases: Global<u64>,
    next_bases: GlobalMut<u64>,
    lookback: GlobalMut<u32>,
) {
    let any_order = size_of::<V>() == 0 && B::PURITY.is_promised() && buckets.is_any_order(pass);
    let (ticket, ranking) = take_tile::<THREADS>(lookback, any_order);
    let tile_len = THREADS as usize * ITEMS;
    let start = ticket.get(0) as usize * tile_len;
    let keys_in = keys_in.get();
    if start >= keys_in.len() {
        // The device has fewer keys than the launch has room for. No tile waits for this one.
        return;
    }
    let valid = (keys_in.len() - start).min(tile_len);
    let tile = Tile {
        keys_in: keys_in.slice(start, valid),
        to,
        buckets,
        pass,
        place: ChunkTile { ticket, tile_len, values_in, bases, next_bases },
        lookback,
        ranking,
    };
    distribute_tile::<K, V, B, _, THREADS, ITEMS>(tile, any_order);
}

/// Takes the next tile. Returns where the block finds its number, and the zeroed memory of the ranking. The number can be read again
/// where it is needed, so that it takes no register meanwhile.
///
/// # Safety
/// All threads of the block call this, once. The shared memory is that of [`pass_shared`]. `lookback` has the words of one tile per
/// block, and the ticket after them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn take_tile<const THREADS: u32>(
    lookback: GlobalMut<u32>,
    any_order: bool,
) -> (Shared<u32>, RankMemory<HALF>) {
    let mut memory = SharedMemory::new();
    memory.take::<u64>(RADIX);
    let ticket = memory.take::<u32>(1);
    if thread::thread_idx_x() == 0 {
        let next = thread::grid_dim_x() as usize * RADIX;
        ticket.set(0, lookback.atomic_add(next, 1, Scope::Gpu, Order::Relaxed));
    }
    let ranking =
        RankMemory::<HALF>::cleared::<THREADS>(memory.take::<u32>(RankMemory::<HALF>::words(THREADS)), any_order);
    thread::sync_threads();
    (ticket, ranking)
}

/// A tile of a part of the items. The last tile writes the positions of the items that follow.
#[derive(Clone, Copy)]
struct ChunkTile<V> {
    ticket: Shared<u32>,
    tile_len: usize,
    values_in: Global<V>,
    bases: Global<u64>,
    next_bases: GlobalMut<u64>,
}

impl<V: Pod> Place<V> for ChunkTile<V> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn number(self) -> u32 {
        self.ticket.get(0)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn values(self, len: usize) -> Global<V> {
        self.values_in.slice(self.number() as usize * self.tile_len, len)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn first(self, bucket: usize) -> u64 {
        // A bucket that does not exist has no items.
        if bucket < self.bases.len() { self.bases.get(bucket) } else { 0 }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn pass_on(self, bucket: usize, end: u64) {
        if self.number() == thread::grid_dim_x() - 1 {
            self.next_bases.set(bucket, end);
        }
    }
}
