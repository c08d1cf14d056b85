//! The bulk build: makes buckets of pairs that are sorted by tile.
//!
//! A *tile* is a range of buckets that fits into the shared memory of a block. The pairs are first sorted by tile, in
//! one or two passes of the radix sort kernel, which is stable. Then one block per tile builds its buckets in shared
//! memory and writes them once. No bucket is ever read, and no atomic leaves the multiprocessor. Only the keys whose
//! first bucket is full, one in 15 at load 0.8 with buckets of 8, are placed afterwards: if there are many, step by step
//! (see `walk_pairs`), and the rest one by one (see `place_pairs`).
//!
//! Bytes per pair of 4 + 4 bytes at load 0.8: 4 to count, 16 per pass, 8 to read the tile, 10 to write the table. That
//! is 54 with two passes. Placing pairs one by one takes about 200: four sectors of 32 bytes read and written, and
//! their atomics.

use super::thin::{CHUNK, LONG_TILE};
use crate::hash::{Hash, Map};
use crate::view::{TableMut, key_index, value_index};
use bytemuck::{Pod, Zeroable};
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::kernel::{Pairs, PairsMut, kernel};
use gpu_primitives::sort::{Buckets, Purity};
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, Shared, SharedMemory, thread, warp};

/// Threads per block of [`FillTiles`].
const THREADS: u32 = 512;
/// Threads per block of [`TileStarts`].
pub const START_THREADS: u32 = 256;

/// Returns the number of slots in a tile. Each takes a key and 4 bytes of shared memory: 32 KiB in all for 4-byte keys
/// and 24 KiB for 8-byte keys.
pub const fn tile_slots<C>() -> usize {
    if size_of::<C>() == 4 { 4096 } else { 2048 }
}

/// Returns the number of buckets in a tile.
pub const fn tile_buckets<C>(width: usize) -> usize {
    tile_slots::<C>() / width
}

/// Returns how many keys of a tile may find their first bucket full. At load 0.95 with buckets of 4, 18 of 100 keys do,
/// or 0.17 of the slots; with wider buckets fewer do. If more than this limit do, the seed is bad.
pub const fn spill_slots<C>() -> usize {
    tile_slots::<C>() / 4
}

/// The tile of a key's first bucket, as the digits of a radix sort.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct TileDigits {
    hash: Hash,
    /// A tile has `1 << shift` buckets.
    shift: u32,
    last_tile: u32,
    /// The number of digits in a tile number; 0 if there is only one tile.
    passes: u32,
    /// The uppermost digit of the last tile. No tile has a larger one.
    last_digit: u32,
}

impl TileDigits {
    /// Divides the buckets into tiles of `tile_buckets` buckets, which is a power of two.
    pub const fn new(hash: Hash, tile_buckets: usize) -> Self {
        let shift = tile_buckets.trailing_zeros();
        let last_tile = (hash.buckets - 1) >> shift;
        let passes = (u32::BITS - last_tile.leading_zeros()).div_ceil(8);
        let last_digit = if passes == 0 { 0 } else { last_tile >> (8 * (passes - 1)) };
        Self { hash, shift, last_tile, passes, last_digit }
    }

    /// Returns the number of tiles.
    pub const fn tiles(&self) -> usize {
        self.last_tile as usize + 1
    }

    /// Returns the number of digits in a tile number; 0 if there is only one tile.
    pub const fn passes(&self) -> u32 {
        self.passes
    }

    /// Returns the tile of a key.
    #[inline(always)]
    pub fn tile<C: KeyCode>(&self, key: C) -> u32 {
        self.hash.choices(key).get(0) >> self.shift
    }

    /// Returns bits that do not depend on the tile of a key.
    #[inline(always)]
    pub fn spread<C: KeyCode>(&self, key: C) -> u32 {
        self.hash.choices(key).salt()
    }
}

impl<C: KeyCode> Buckets<C> for TileDigits {
    // 2^24 tiles of 2^11 slots are more than any GPU holds.
    const MAX_PASSES: usize = 3;
    const IS_COSTLY: bool = true;
    // SAFETY: the tile depends only on the key and the hash, and a digit has 8 bits.
    const PURITY: Purity = unsafe { Purity::promised() };

    #[inline(always)]
    fn bucket(&self, key: C, pass: u32) -> u32 {
        (self.tile(key) >> (8 * pass)) & 0xFF
    }

    #[inline(always)]
    fn last(&self, pass: u32) -> u32 {
        if pass + 1 == self.passes { self.last_digit } else { 0xFF }
    }
}

/// Finds where each tile begins among keys sorted by tile, with one binary search per thread.
///
/// # Safety
/// The launch has at least one thread per element of `starts`, which has one element per tile and one more for the end.
/// There are fewer than 2^32 keys, sorted by tile. While the kernel runs, nobody writes the keys, and nobody else uses
/// `starts`.
#[kernel(listed = super::TILE_STARTS_PTX, threads = START_THREADS, native = crate::native::tile::tile_starts)]
pub unsafe fn tile_starts<C: KeyCode>(keys: Global<C>, digits: TileDigits, starts: GlobalMut<u32>) {
    let tile = thread::block_idx_x() * START_THREADS + thread::thread_idx_x();
    if tile as usize >= starts.len() {
        return;
    }
    // The start is in `from..=to`, which shrinks with every step.
    let (mut from, mut to) = (0, keys.len());
    while from < to {
        let middle = from + (to - from) / 2;
        if digits.tile(keys.get(middle)) < tile {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    starts.set(tile as usize, from as u32);
}

/// The counters that the kernels of a build share; the discriminant is the index.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Keys placed in their first bucket.
    Placed,
    /// Keys that found their first bucket full: the length of the spill.
    Spilled,
    /// Keys that could not be placed at all.
    Unplaced,
}

impl Count {
    pub const ALL: usize = 3;
}

const fn tile_shared<C>() -> usize {
    shared_bytes::<C>(tile_slots::<C>())
        + shared_bytes::<u32>(tile_slots::<C>())
        + shared_bytes::<u32>(spill_slots::<C>())
        + shared_bytes::<u32>(4)
}

/// The indices of a block's counters.
const PLACED: usize = 0;
const SPILLED: usize = 1;
const WRITTEN: usize = 2;
const SPILL_START: usize = 3;

/// Builds the buckets of a tile and writes them.
///
/// Each thread takes pairs of the tile, one after the other. It probes the slots of the key's first bucket, from some
/// slot on and cyclically, with one compare-and-exchange per slot. Each of these finds the key, or finds an empty slot
/// and takes it, or moves on. Keys are never removed, so all threads with the same key end at the same slot. There the
/// latest position wins: if a key is given several times, its last value is kept, whatever the order of the threads.
/// Keys that find the bucket full do the same in a small open-addressing hash table of positions, so each of them is
/// spilled only once. At the end the block fetches the values at the winning positions, and writes the buckets and the
/// spill.
///
/// A long tile has repeated keys. Other blocks have removed most of them ([`ThinTiles`](super::ThinTiles)): the warps take
/// what is left of the chunks.
///
/// Which keys of an overfull bucket are spilled depends on the order of the threads; the contents of the table do not.
///
/// # Safety
/// - The launch has one block per tile.
/// - There are fewer than 2^32 - 1 pairs, sorted by tile.
/// - `starts` says where each tile begins and where the last one ends.
/// - `kept` is empty, or [`ThinTiles`](super::ThinTiles) wrote it for these pairs.
/// - `spill` has room for `spill_slots` keys of each tile, or for all keys.
/// - `counts` has the counters of [`Count`], all zero before.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the table, `spill` or `counts`.
#[kernel(listed = super::FILL_TILES_PTX, threads = THREADS, shared = tile_shared::<C>(), native = crate::native::tile::fill_tiles)]
pub unsafe fn fill_tiles<C: KeyCode, V: Pod, const WIDTH: usize>(
    pairs: Pairs<C, V>,
    starts: Global<u32>,
    kept: Global<u32>,
    table: TableMut<C, V, WIDTH>,
    spill: PairsMut<C, V>,
    counts: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let slot_keys = memory.take::<C>(tile_slots::<C>());
    // The position in the tile of the pair that won the slot, plus one; 0 if there is none.
    let slot_latest = memory.take::<u32>(tile_slots::<C>());
    let spilled = memory.take::<u32>(spill_slots::<C>());
    let local = memory.take::<u32>(4);

    let thread = thread::thread_idx_x() as usize;
    let tile = thread::block_idx_x() as usize;
    let first_bucket = (tile * tile_buckets::<C>(WIDTH)) as u32;
    let map = table.map;
    let buckets_here = (map.hash.buckets - first_bucket).min(tile_buckets::<C>(WIDTH) as u32);
    let slots_here = buckets_here as usize * WIDTH;
    let mut slot = thread;
    while slot < slots_here {
        slot_keys.set(slot, map.empty.of(first_bucket + (slot / WIDTH) as u32));
        slot_latest.set(slot, 0);
        slot += THREADS as usize;
    }
    let mut entry = thread;
    while entry < spill_slots::<C>() {
        spilled.set(entry, 0);
        entry += THREADS as usize;
    }
    if thread < 4 {
        local.set(thread, 0);
    }
    thread::sync_threads();

    let start = starts.get(tile) as usize;
    let len = starts.get(tile + 1) as usize - start;
    let Pairs { keys, values } = pairs.slice(start, len);
    let tile_build = TileBuild::<C, WIDTH> { keys, map, first_bucket, slot_keys, slot_latest, spilled, counts };
    let is_long = len > LONG_TILE && !kept.is_empty();
    // All threads go through a tile together. Each warp goes through its own chunks of a long one.
    let (first, step) = if is_long { (warp::lane_id(), warp::LANES) } else { (thread as u32, THREADS) };
    let mut chunk = (start / CHUNK) as u32 + warp::warp_id();
    let (mut from, mut end) = (0, len as u32);
    loop {
        if is_long {
            let chunk_start = chunk as usize * CHUNK;
            if chunk_start >= start + len {
                break;
            }
            from = (chunk_start.max(start) - start) as u32;
            end = ((chunk_start + kept.get(chunk as usize) as usize).min(start + len) - start) as u32;
            chunk += THREADS / warp::LANES;
        }
        let mut position = from + first;
        while position < end {
            tile_build.put(position as usize);
            position += step;
        }
        if !is_long {
            break;
        }
    }
    thread::sync_threads();

    // Writes every slot, including free ones, so no sector has to be read first.
    let mut placed = 0;
    let mut slot = thread;
    while slot < slots_here {
        let bucket = first_bucket + (slot / WIDTH) as u32;
        let latest = slot_latest.get(slot) as usize;
        placed += (latest != 0) as u32;
        table.keys.set(key_index::<C, V>(WIDTH, bucket) + slot % WIDTH, slot_keys.get(slot));
        let value = if latest == 0 { V::zeroed() } else { values.get(latest - 1) };
        table.values.set(value_index::<C, V>(WIDTH, bucket) + slot % WIDTH, value);
        slot += THREADS as usize;
    }
    let mut entry = thread;
    let mut spilled_here = 0;
    while entry < spill_slots::<C>() {
        spilled_here += (spilled.get(entry) != 0) as u32;
        entry += THREADS as usize;
    }
    add_up(local, PLACED, placed);
    add_up(local, SPILLED, spilled_here);
    thread::sync_threads();
    if thread == 0 {
        counts.atomic_add(Count::Placed as usize, local.get(PLACED) as u64, Scope::Gpu, Order::Relaxed);
        let count = local.get(SPILLED) as u64;
        if count != 0 {
            let start = counts.atomic_add(Count::Spilled as usize, count, Scope::Gpu, Order::Relaxed);
            // Less than the number of keys, which fits into 32 bits.
            local.set(SPILL_START, start as u32);
        }
    }
    thread::sync_threads();
    let mut entry = thread;
    while entry < spill_slots::<C>() {
        let latest = spilled.get(entry) as usize;
        if latest != 0 {
            let at = local.get(SPILL_START) + local.atomic_add(WRITTEN, 1);
            spill.set(at as usize, keys.get(latest - 1), values.get(latest - 1));
        }
        entry += THREADS as usize;
    }
}

/// A tile while its buckets are built in shared memory.
#[derive(Clone, Copy)]
struct TileBuild<C, const WIDTH: usize> {
    /// The keys of the tile.
    keys: Global<C>,
    map: Map<C>,
    first_bucket: u32,
    slot_keys: Shared<C>,
    slot_latest: Shared<u32>,
    spilled: Shared<u32>,
    counts: GlobalMut<u64>,
}

impl<C: KeyCode, const WIDTH: usize> TileBuild<C, WIDTH> {
    /// Places the key at `position` in its first bucket, or among the spilled keys.
    ///
    /// # Safety
    /// The position is in the tile. Between the barriers around this call, the shared memory is used only in this way.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(self, position: usize) {
        let key = self.keys.get(position);
        let choices = self.map.hash.choices(key);
        let bucket = choices.get(0);
        let empty = self.map.empty.of(bucket);
        let base = (bucket - self.first_bucket) as usize * WIDTH;
        let mut probe = 0;
        while probe < WIDTH {
            let slot = base + (choices.salt() as usize + probe) % WIDTH;
            let there = self.slot_keys.compare_exchange(slot, empty, key);
            if there == empty || there == key {
                self.slot_latest.atomic_rmw(Rmw::Max, slot, position as u32 + 1);
                return;
            }
            probe += 1;
        }
        // A hash table of positions; the keys are read from the input. A taken entry keeps its key.
        let mut probe = 0;
        while probe < spill_slots::<C>() {
            let entry = (choices.salt() as usize + probe) % spill_slots::<C>();
            let there = self.spilled.compare_exchange(entry, 0, position as u32 + 1);
            if there == 0 {
                return;
            }
            if self.keys.get(there as usize - 1) == key {
                self.spilled.atomic_rmw(Rmw::Max, entry, position as u32 + 1);
                return;
            }
            probe += 1;
        }
        self.counts.atomic_add(Count::Unplaced as usize, 1, Scope::Gpu, Order::Relaxed);
    }
}

/// Adds the counts of all lanes to a counter of the block.
///
/// # Safety
/// All lanes of the warp call it. The counter exists, and all threads of the block use it only atomically until the
/// next barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn add_up(counters: Shared<u32>, counter: usize, count: u32) {
    let sum = gpu_primitives::block::warp::inclusive_scan(count, gpu_primitives::scan::Sum);
    if warp::lane_id() == warp::LANES - 1 && sum != 0 {
        counters.atomic_add(counter, sum);
    }
}
