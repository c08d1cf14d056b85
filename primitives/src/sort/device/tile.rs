//! How a block distributes the items of a tile to their buckets.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, sync_warp};
use crate::arch::{Order, Scope, opaque, thread};
use crate::block::radix::{self, HALF, PackedBuckets, RADIX, RankMemory};
use crate::buckets::{Buckets, bucket_of, last_bucket};
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, Shared, SharedMemory};
use bytemuck::Pod;

/// Returns a position in a tile, clamped to the tile unless the bucket function is known to be pure.
#[inline(always)]
pub(super) fn in_tile<K, B: Buckets<K>>(place: usize, tile_len: usize) -> usize {
    if B::PURITY.is_promised() { place } else { place.min(tile_len - 1) }
}

/// The flags of a look-back word, above 30 bits of count.
const PARTIAL: u32 = 1 << 30;
const INCLUSIVE: u32 = 2 << 30;
const COUNT: u32 = PARTIAL - 1;

/// The number of look-back words read at once, so that their latencies overlap. (Eight made no difference, and sixteen for
/// small tiles took 10 % longer.)
const WINDOW: usize = 4;

/// The place of a tile among the others, and where its items go.
pub(super) trait Place<V: Pod>: Copy {
    /// Returns the number of the tile: it looks back at lower ones.
    ///
    /// # Safety
    /// All threads of the block have [taken](super::kernel::take_tile) the tile.
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

/// What a block of a pass works on: its tile, and the kernel's other arguments.
#[derive(Clone, Copy)]
pub(super) struct Tile<K: Pod, V: Pod, B, P> {
    pub keys_in: Global<K>,
    pub to: PairsMut<K, V>,
    pub buckets: B,
    pub pass: u32,
    pub place: P,
    pub lookback: GlobalMut<u32>,
    pub ranking: RankMemory<HALF>,
}

/// Distributes the items of a tile, in the way that is the fastest for it.
///
/// # Safety
/// The contract of [`bucket_pass`](super::kernel::bucket_pass). All threads of the block call this with the same arguments. The ranking memory was zeroed by
/// [`take_tile`](super::kernel::take_tile), for the same order.
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
    if tile.keys_in.len() == THREADS as usize * ITEMS && tile.to.keys.len() <= u32::MAX as usize {
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
            RankMemory::<HALF>::cleared::<THREADS>(memory.take::<u32>(RankMemory::<HALF>::words(THREADS)), false);
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
/// The contract of [`bucket_pass`](super::kernel::bucket_pass). All threads of the block call this with the same arguments; the
/// ranking memory is zeroed. A whole tile has `THREADS * ITEMS` items and an output of fewer than 2^32.
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
    let tile_len = THREADS as usize * ITEMS;
    let own = OwnItems::<ITEMS, IS_WHOLE>::of(tile_len, tile.keys_in.len());
    let last = last_bucket(&tile.buckets, tile.pass);
    let keys = own.load(tile.keys_in, own.here);
    // Missing items rank in the last bucket. They are last in the tile, so they stay behind all existing items.
    let bucket = |j: usize, here: u32| {
        if own.exists(j, here) { bucket_of(&tile.buckets, keys[j], tile.pass, last) } else { last }
    };
    let missing = tile_len as u32 - own.valid;
    let publish = |count: u32| tile.publish(existing::<K, B>(count, missing, last));
    let now = opaque(own.here);
    let (ranks, counted) = if ANY_ORDER {
        // The places take only half of their memory.
        let firsts = Places::<IS_WHOLE>::unused();
        radix::rank_in_any_order::<THREADS, HALF, ITEMS>(|j| bucket(j, now), tile.ranking, firsts, publish)
    } else {
        radix::count::<HALF, ITEMS>(|j| bucket(j, now), tile.ranking);
        thread::sync_threads();
        let counted = radix::place::<THREADS, HALF>(tile.ranking, publish);
        thread::sync_threads();
        let now = opaque(own.here);
        let ranks = radix::rank::<ITEMS>(|j| bucket(j, now), tile.ranking);
        // The ranking memory is free now: the items reuse it.
        thread::sync_threads();
        (ranks, counted)
    };
    let sorted_keys = overlay::<K>(tile_len);
    for j in 0..ITEMS {
        sorted_keys.set(in_tile::<K, B>(ranks.get(j), tile_len), keys[j]);
    }
    // The values arrive while the block looks back and writes the keys. The conditions of the last tile would take too
    // many registers for that.
    let are_early = IS_WHOLE && size_of::<V>() > 0;
    let load_values = || own.load(tile.place.values(tile.keys_in.len()), opaque(own.here));
    let mut values = if are_early { load_values() } else { [V::zeroed(); ITEMS] };
    let places = Places::<IS_WHOLE>::of_block();
    tile.find_places(places, counted.before, existing::<K, B>(counted.count, missing, last));
    thread::sync_threads();

    // The compiler must not keep ranks, or comparisons of them, from phase to phase.
    let valid = opaque(own.valid);
    let buckets = tile.write_keys::<THREADS, ITEMS, IS_WHOLE>(sorted_keys, places, valid, last);
    if size_of::<V>() == 0 {
        return;
    }
    if !are_early {
        values = load_values();
    }
    thread::sync_threads();
    let sorted_values = overlay::<V>(tile_len);
    for j in 0..ITEMS {
        sorted_values.set(in_tile::<K, B>(ranks.get(j), tile_len), values[j]);
    }
    thread::sync_threads();
    tile.write_values::<THREADS, ITEMS, IS_WHOLE>(sorted_values, places, valid, buckets);
}

/// The items of a thread: `first`, `first + HALF`, and so on. Every phase recomputes which of them exist: keeping that from phase
/// to phase would take a register per item.
#[derive(Clone, Copy)]
struct OwnItems<const ITEMS: usize, const IS_WHOLE: bool> {
    first: usize,
    /// The items that exist are less than this behind the first one.
    here: u32,
    /// The items of the tile that exist.
    valid: u32,
    /// The items of the tile from the first one on, if all exist.
    after: usize,
}

impl<const ITEMS: usize, const IS_WHOLE: bool> OwnItems<ITEMS, IS_WHOLE> {
    /// Returns this thread's items of a tile with room for `tile_len`, of which `len` exist.
    #[inline(always)]
    fn of(tile_len: usize, len: usize) -> Self {
        let valid = if IS_WHOLE { tile_len as u32 } else { len as u32 };
        let first = radix::first_item::<HALF, ITEMS>();
        Self { first: first as usize, here: valid.saturating_sub(first), valid, after: tile_len - first as usize }
    }

    /// Returns whether item `j` exists. `here` is that of the thread.
    #[inline(always)]
    fn exists(self, j: usize, here: u32) -> bool {
        IS_WHOLE || j as u32 * HALF < here
    }

    /// Loads the items that exist. `here` is that of the thread.
    ///
    /// # Safety
    /// `items` are those of the tile, and nothing writes them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<T: Pod>(self, items: Global<T>, here: u32) -> [T; ITEMS] {
        let mut loaded = [T::zeroed(); ITEMS];
        let own = items.slice(self.first, if IS_WHOLE { self.after } else { here as usize });
        for j in 0..ITEMS {
            if self.exists(j, here) {
                loaded[j] = own.get(j * HALF as usize);
            }
        }
        loaded
    }
}

/// Returns how many items of this thread's bucket exist, of those that were counted. Those that are `missing` were counted in
/// the last bucket.
#[inline(always)]
fn existing<K, B: Buckets<K>>(count: u32, missing: u32, last: u32) -> u32 {
    let missing = if thread::thread_idx_x() == last { missing } else { 0 };
    // Threads may disagree about the last bucket.
    if B::PURITY.is_promised() { count - missing } else { count.saturating_sub(missing) }
}

/// Where the items of each bucket go: to this position plus their rank in the tile. Those of whole tiles have 32 bits.
#[derive(Clone, Copy)]
struct Places<const IS_WHOLE: bool> {
    short: Shared<u32>,
    long: Shared<u64>,
}

impl<const IS_WHOLE: bool> Places<IS_WHOLE> {
    /// Returns the memory of the block's places.
    ///
    /// # Safety
    /// The kernel's shared memory begins with 256 positions.
    #[inline(always)]
    unsafe fn of_block() -> Self {
        Self { short: SharedMemory::new().take(2 * RADIX), long: SharedMemory::new().take(RADIX) }
    }

    /// Returns the memory that the places of a whole tile do not use: a word per bucket.
    ///
    /// # Safety
    /// As for [`of_block`](Self::of_block).
    #[inline(always)]
    unsafe fn unused() -> Shared<u32> {
        Self::of_block().short.slice(RADIX, RADIX)
    }

    /// # Safety
    /// The bucket is below [`RADIX`]. A barrier separates this from reading.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn set(self, bucket: usize, place: u64) {
        if IS_WHOLE {
            self.short.set(bucket, place as u32);
        } else {
            self.long.set(bucket, place);
        }
    }

    /// Returns where an item goes.
    ///
    /// # Safety
    /// The place of the bucket was set.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn target(self, bucket: usize, rank: usize) -> usize {
        if IS_WHOLE {
            self.short.get(bucket).wrapping_add(rank as u32) as usize
        } else {
            self.long.get(bucket).wrapping_add(rank as u64) as usize
        }
    }
}

impl<K: Pod, V: Pod, B: Buckets<K>, P: Place<V>> Tile<K, V, B, P> {
    /// Publishes the tile's count of this thread's bucket.
    ///
    /// # Safety
    /// The contract of [`distribute`]. The thread is one of the first [`RADIX`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn publish(&self, count: u32) {
        let number = self.place.number();
        let flag = if number == 0 { INCLUSIVE } else { PARTIAL };
        self.lookback.atomic_store(
            word(number, thread::thread_idx_x() as usize),
            flag | count,
            Scope::Gpu,
            Order::Relaxed,
        );
    }

    /// Finds where the items of each bucket go, one bucket per thread: looks back, and publishes what includes this tile. `before` and
    /// `count` are the items of lower buckets in the tile, with those that are missing, and the items of the bucket that exist.
    ///
    /// # Safety
    /// The contract of [`distribute`]. All tiles [publish](Self::publish) their counts.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn find_places<const IS_WHOLE: bool>(&self, places: Places<IS_WHOLE>, in_lower: u32, count: u32) {
        let bucket = thread::thread_idx_x() as usize;
        if bucket < RADIX {
            let number = self.place.number();
            let mut before = 0;
            if number > 0 {
                before = look_back(self.lookback, number, bucket);
                let all = INCLUSIVE | (before + count);
                self.lookback.atomic_store(word(number, bucket), all, Scope::Gpu, Order::Relaxed);
            }
            let base = self.place.first(bucket);
            self.place.pass_on(bucket, base + (before + count) as u64);
            places.set(bucket, (base + before as u64).wrapping_sub(in_lower as u64));
        }
    }

    /// Writes the keys, which lie in the order of their ranks. The thread writes those of rank `thread`, `thread + THREADS`, and so
    /// on. Returns their buckets.
    ///
    /// # Safety
    /// The contract of [`distribute`]. A barrier separates this from what fills `keys` and `places`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write_keys<const THREADS: u32, const ITEMS: usize, const IS_WHOLE: bool>(
        &self,
        keys: Shared<K>,
        places: Places<IS_WHOLE>,
        valid: u32,
        last: u32,
    ) -> PackedBuckets<ITEMS> {
        let thread = thread::thread_idx_x() as usize;
        let mut buckets = PackedBuckets::<ITEMS>::new();
        let at_once = if IS_WHOLE { 8 } else { 4 };
        for j in 0..ITEMS {
            let rank = thread + j * THREADS as usize;
            let key = keys.get(rank);
            let bucket = bucket_of(&self.buckets, key, self.pass, last);
            buckets.set(j, bucket);
            let target = places.target(bucket as usize, rank);
            if is_written::<K, B, IS_WHOLE>(rank, valid, target, self.to.keys.len()) {
                self.to.keys.set(target, key);
            }
            // The compiler would hold the addresses of all items at once, for which some GPUs have too few registers.
            if j % at_once == at_once - 1 {
                sync_warp(FULL);
            }
        }
        buckets
    }

    /// Writes the values, which lie in the order of their ranks, to where their keys are.
    ///
    /// # Safety
    /// As for [`write_keys`](Self::write_keys), which has returned the buckets.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write_values<const THREADS: u32, const ITEMS: usize, const IS_WHOLE: bool>(
        &self,
        values: Shared<V>,
        places: Places<IS_WHOLE>,
        valid: u32,
        buckets: PackedBuckets<ITEMS>,
    ) {
        let thread = opaque(thread::thread_idx_x()) as usize;
        for j in 0..ITEMS {
            let rank = thread + j * THREADS as usize;
            let target = places.target(buckets.get(j), rank);
            if is_written::<K, B, IS_WHOLE>(rank, valid, target, self.to.values.len()) {
                self.to.values.set(target, values.get(rank));
            }
        }
    }
}

/// Returns whether an item exists and its place is in the output. The latter goes without saying if the bucket function is pure.
#[inline(always)]
fn is_written<K, B: Buckets<K>, const IS_WHOLE: bool>(rank: usize, valid: u32, target: usize, len: usize) -> bool {
    (IS_WHOLE || (rank as u32) < valid) && (B::PURITY.is_promised() || target < len)
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
