//! The kernels that distribute items to buckets, for the radix sort and the multisplit.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::arch::{Order, Rmw, Scope, opaque, thread};
use crate::block::radix::{self, PackedBuckets, RADIX, RankMemory};
use crate::block::warp;
use crate::buckets::{Buckets, bucket_of, last_bucket};
use crate::form::kernel;
use crate::input::Prefix;
use crate::monoid::Sum;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Returns a position in a tile, clamped to the tile unless the bucket function is known to be pure.
#[inline(always)]
pub(super) fn in_tile<K, B: Buckets<K>>(place: usize, tile_len: usize) -> usize {
    if B::PURITY.is_promised() { place } else { place.min(tile_len - 1) }
}

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
/// room for `passes * 256` positions. `lookback` is the memory that the passes will use, including tickets. While the
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
            bases.set(place(row), upto - totals[row]);
            before = warp::broadcast(upto, LANES - 1);
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

/// The flags of a look-back word, above 30 bits of count.
const PARTIAL: u32 = 1 << 30;
const INCLUSIVE: u32 = 2 << 30;
const COUNT: u32 = PARTIAL - 1;

/// The maximum number of elements of one launch of a pass: counts have 30 bits.
pub const MAX_CHUNK: usize = 1 << 29;

/// The number of look-back words read at once, so that their latencies overlap. (Eight made no difference, and sixteen for
/// small tiles took 10 % longer.)
const WINDOW: usize = 4;

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
    shared_bytes::<u64>(RADIX) + shared_bytes::<u32>(1) + max(exchange, shared_bytes::<u32>(RankMemory::words(threads)))
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
/// least 256 and a tile has at most 65,536 items. There are at most 2^29 keys (`MAX_CHUNK`), and as many elements of
/// `values_in`, unless values are zero-sized.
///
/// `bases` holds the 256 first positions of this launch's items, counted with the same `buckets` and pass. All
/// positions that the items take from there on lie within `keys_out` and, unless values are zero-sized, `values_out`.
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
    keys_out: GlobalMut<K>,
    values_in: Global<V>,
    values_out: GlobalMut<V>,
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
        keys_out,
        values_out,
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
) -> (Shared<u32>, RankMemory) {
    let mut memory = SharedMemory::new();
    memory.take::<u64>(RADIX);
    let ticket = memory.take::<u32>(1);
    if thread::thread_idx_x() == 0 {
        let next = thread::grid_dim_x() as usize * RADIX;
        ticket.set(0, lookback.atomic_add(next, 1, Scope::Gpu, Order::Relaxed));
    }
    let ranking = RankMemory::cleared::<THREADS>(memory.take::<u32>(RankMemory::words(THREADS)), any_order);
    thread::sync_threads();
    (ticket, ranking)
}

/// The place of a tile among the others, and where its items go.
pub(super) trait Place<V: Pod>: Copy {
    /// Returns the number of the tile: it looks back at lower ones.
    ///
    /// # Safety
    /// All threads of the block have [taken](take_tile) the tile.
    unsafe fn number(self) -> u32;

    /// Returns the `len` values of the tile.
    ///
    /// # Safety
    /// As for [`number`](Self::number), and the tile has as many items.
    unsafe fn values(self, len: usize) -> Global<V>;

    /// Returns the position of the first item of a bucket.
    ///
    /// # Safety
    /// The positions exist, and nothing writes them.
    unsafe fn first(self, bucket: usize) -> u64;

    /// Passes on where the items of a bucket end in the tile.
    ///
    /// # Safety
    /// As for [`first`](Self::first).
    unsafe fn pass_on(self, bucket: usize, end: u64);
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
        self.bases.get(bucket)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn pass_on(self, bucket: usize, end: u64) {
        if self.number() == thread::grid_dim_x() - 1 {
            self.next_bases.set(bucket, end);
        }
    }
}

/// What a block of a pass works on: its tile, and the kernel's other arguments.
#[derive(Clone, Copy)]
pub(super) struct Tile<K: Pod, V: Pod, B, P> {
    pub keys_in: Global<K>,
    pub keys_out: GlobalMut<K>,
    pub values_out: GlobalMut<V>,
    pub buckets: B,
    pub pass: u32,
    pub place: P,
    pub lookback: GlobalMut<u32>,
    pub ranking: RankMemory,
}

/// Distributes the items of a tile, in the way that is the fastest for it.
///
/// # Safety
/// The contract of [`bucket_pass`]. All threads of the block call this with the same arguments. The ranking memory was zeroed by
/// [`take_tile`], for the same order.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn distribute_tile<
    K: Pod,
    V: Pod,
    B: Buckets<K>,
    P: Place<V>,
    const THREADS: u32,
    const ITEMS: usize,
>(
    tile: Tile<K, V, B, P>,
    any_order: bool,
) {
    if tile.keys_in.len() == THREADS as usize * ITEMS && tile.keys_out.len() <= u32::MAX as usize {
        if any_order {
            distribute::<K, V, B, P, THREADS, ITEMS, true, true>(tile);
        } else {
            distribute::<K, V, B, P, THREADS, ITEMS, true, false>(tile);
        }
    } else {
        if any_order {
            // This one keeps the order, for which more has to be zero.
            let mut memory = SharedMemory::new();
            memory.take::<u64>(RADIX);
            memory.take::<u32>(1);
            RankMemory::cleared::<THREADS>(memory.take::<u32>(RankMemory::words(THREADS)), false);
            thread::sync_threads();
        }
        distribute::<K, V, B, P, THREADS, ITEMS, false, false>(tile);
    }
}

/// Distributes the items of one tile. If it `IS_WHOLE`, all its items exist, and positions have 32 bits. Then nothing
/// depends on conditions, and the accesses of a thread overlap. All tiles but the last are whole, unless the output has
/// more than 2^32 elements.
///
/// # Safety
/// The contract of [`bucket_pass`]. All threads of the block call this with the same arguments; the ranking memory is
/// zeroed. A whole tile has `THREADS * ITEMS` items and an output of fewer than 2^32.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn distribute<
    K: Pod,
    V: Pod,
    B: Buckets<K>,
    P: Place<V>,
    const THREADS: u32,
    const ITEMS: usize,
    const IS_WHOLE: bool,
    const ANY_ORDER: bool,
>(
    tile: Tile<K, V, B, P>,
) {
    let Tile { keys_in, keys_out, values_out, buckets, pass, place, lookback, ranking } = tile;
    let tile_len = THREADS as usize * ITEMS;
    // Per bucket: its items go to this position plus their rank in the tile.
    let (places, short_places) = (SharedMemory::new().take::<u64>(RADIX), SharedMemory::new().take::<u32>(2 * RADIX));
    let exchange_keys = overlay::<K>(tile_len);
    let exchange_values = overlay::<V>(tile_len);
    let thread = thread::thread_idx_x() as usize;

    // The lane's items are `first`, `first + 32`, …; those below `here` exist. Every phase recomputes its conditions:
    // keeping them from phase to phase would take a register per item.
    let valid = if IS_WHOLE { tile_len as u32 } else { keys_in.len() as u32 };
    let first = warp_id() * LANES * ITEMS as u32 + lane_id();
    let here = valid.saturating_sub(first);
    let exists = |j: usize, here: u32| IS_WHOLE || j as u32 * LANES < here;
    let last = last_bucket(&buckets, pass);
    let mut keys = [K::zeroed(); ITEMS];
    let mine = keys_in.slice(first as usize, if IS_WHOLE { tile_len - first as usize } else { here as usize });
    for j in 0..ITEMS {
        if exists(j, here) {
            keys[j] = mine.get(j * LANES as usize);
        }
    }
    // Missing items rank in the last bucket. They are last in the tile, so they stay behind all existing items.
    let bucket = |j: usize, here: u32| if exists(j, here) { bucket_of(&buckets, keys[j], pass, last) } else { last };

    let there = |count: u32| {
        let missing = if thread as u32 == last { tile_len as u32 - valid } else { 0 };
        // Threads may disagree about the last bucket.
        if B::PURITY.is_promised() { count - missing } else { count.saturating_sub(missing) }
    };
    let publish = |count: u32| {
        let number = place.number();
        let flag = if number == 0 { INCLUSIVE } else { PARTIAL };
        lookback.atomic_store(word(number, thread), flag | there(count), Scope::Gpu, Order::Relaxed);
    };
    let now = opaque(here);
    let (ranks, own) = if ANY_ORDER {
        // The places take only half of their memory.
        let firsts = short_places.slice(RADIX, RADIX);
        radix::rank_in_any_order::<THREADS, ITEMS>(|j| bucket(j, now), ranking, firsts, publish)
    } else {
        radix::count::<ITEMS>(|j| bucket(j, now), ranking);
        thread::sync_threads();
        let own = radix::place::<THREADS>(ranking, publish);
        thread::sync_threads();
        let now = opaque(here);
        let ranks = radix::rank::<ITEMS>(|j| bucket(j, now), ranking);
        // The ranking memory is free now: the items reuse it.
        thread::sync_threads();
        (ranks, own)
    };
    for j in 0..ITEMS {
        exchange_keys.set(in_tile::<K, B>(ranks.get(j), tile_len), keys[j]);
    }
    let load_values = || {
        let mut values = [V::zeroed(); ITEMS];
        let now = opaque(here);
        let mine = place
            .values(keys_in.len())
            .slice(first as usize, if IS_WHOLE { tile_len - first as usize } else { here as usize });
        for j in 0..ITEMS {
            if exists(j, now) {
                values[j] = mine.get(j * LANES as usize);
            }
        }
        values
    };
    // The values arrive while the block looks back and writes the keys. The conditions of the last tile would take too
    // many registers for that.
    let is_early = IS_WHOLE && size_of::<V>() > 0;
    let mut values = if is_early { load_values() } else { [V::zeroed(); ITEMS] };
    if thread < RADIX {
        let count = there(own.count);
        let number = place.number();
        let mut before = 0;
        if number > 0 {
            before = look_back(lookback, number, thread);
            lookback.atomic_store(word(number, thread), INCLUSIVE | (before + count), Scope::Gpu, Order::Relaxed);
        }
        let base = place.first(thread);
        place.pass_on(thread, base + (before + count) as u64);
        let place = (base + before as u64).wrapping_sub(own.before as u64);
        if IS_WHOLE {
            short_places.set(thread, place as u32);
        } else {
            places.set(thread, place);
        }
    }
    thread::sync_threads();

    // From here on, the thread's items are those of rank `thread`, `thread + THREADS`, …
    // The compiler must not keep ranks, or comparisons of them, from phase to phase.
    let valid = opaque(valid);
    let target = |bucket: usize, rank: usize| {
        if IS_WHOLE {
            short_places.get(bucket).wrapping_add(rank as u32) as usize
        } else {
            places.get(bucket).wrapping_add(rank as u64) as usize
        }
    };
    let is_written = |rank: usize, target: usize, len: usize| {
        (IS_WHOLE || (rank as u32) < valid) && (B::PURITY.is_promised() || target < len)
    };
    let mut sorted = PackedBuckets::<ITEMS>::new();
    let at_once = if IS_WHOLE { 8 } else { 4 };
    for j in 0..ITEMS {
        let rank = thread + j * THREADS as usize;
        let key = exchange_keys.get(rank);
        let bucket = bucket_of(&buckets, key, pass, last);
        sorted.set(j, bucket);
        let target = target(bucket as usize, rank);
        if is_written(rank, target, keys_out.len()) {
            keys_out.set(target, key);
        }
        // The compiler would hold the addresses of all items at once, for which some GPUs have too few registers.
        if j % at_once == at_once - 1 {
            sync_warp(FULL);
        }
    }
    if size_of::<V>() == 0 {
        return;
    }
    if !is_early {
        values = load_values();
    }
    thread::sync_threads();
    for j in 0..ITEMS {
        exchange_values.set(in_tile::<K, B>(ranks.get(j), tile_len), values[j]);
    }
    thread::sync_threads();
    let thread = opaque(thread as u32) as usize;
    for j in 0..ITEMS {
        let rank = thread + j * THREADS as usize;
        let target = target(sorted.get(j), rank);
        if is_written(rank, target, values_out.len()) {
            values_out.set(target, exchange_values.get(rank));
        }
    }
}

/// Returns the number of items of a bucket in all tiles before `tile`. Adds up what they have published, a window of
/// tiles at a time, back to one that knows its own prefix. Tile 0 always does, eventually.
///
/// # Safety
/// `tile` is at least 1, `bucket` is below [`RADIX`], and `lookback` has the words of all tiles before `tile`, which
/// are only accessed atomically. Those tiles publish their counts without waiting for this one.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn look_back(lookback: GlobalMut<u32>, tile: u32, bucket: usize) -> u32 {
    let mut before = 0;
    // The tiles below `end` are still to be added.
    let mut end = tile;
    loop {
        let mut words = [0; WINDOW];
        for i in 0..WINDOW {
            if (i as u32) < end {
                words[i] = lookback.atomic_load(word(end - 1 - i as u32, bucket), Scope::Gpu, Order::Relaxed);
            }
        }
        let mut reading = true;
        for i in 0..WINDOW {
            if reading && words[i] & (INCLUSIVE | PARTIAL) != 0 {
                before += words[i] & COUNT;
                end -= 1;
                if words[i] & INCLUSIVE != 0 {
                    return before;
                }
            } else {
                reading = false;
            }
        }
        if !reading {
            thread::spin_hint();
        }
    }
}

/// Returns the position of the look-back word of a tile and bucket.
#[inline(always)]
fn word(tile: u32, bucket: usize) -> usize {
    tile as usize * RADIX + bucket
}

/// Returns the exchange buffer, which overlaps the memory of the ranking.
///
/// # Safety
/// The kernel's shared memory holds the positions, the ticket and `len` elements after them. A barrier separates the
/// last use of the ranking from the first use of the buffer.
#[inline(always)]
unsafe fn overlay<T: Pod>(len: usize) -> Shared<T> {
    let mut memory = SharedMemory::new();
    memory.take::<u64>(RADIX);
    memory.take::<u32>(1);
    memory.take::<T>(len)
}
