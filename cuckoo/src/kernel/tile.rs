//! The bulk build: pairs that were brought to their tiles become buckets.
//!
//! A *tile* is a stretch of buckets that fits into the shared memory of a block. The pairs are first distributed to tiles by
//! one or two passes of the radix sort's kernel, which is stable; then a block per tile makes its buckets in shared memory and
//! writes them once. No bucket is ever read, and no atomic leaves the multiprocessor. Only keys that found their first
//! bucket full, one of 15 at load 0.8 with buckets of 8, are placed one by one afterwards (see `settle`).
//!
//! Bytes per pair of 4 + 4 bytes at load 0.8: 4 to count, 16 per pass, 8 to read the tile, 10 to write the table: 54 with two
//! passes, against some 200 (four sectors of 32 bytes read and written, and their atomics) for placing pairs one by one.

use crate::map::{Hash, TableMut, key_index, value_index};
use bytemuck::{Pod, Zeroable};
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::dictionary::KeyCode;
use gpu_primitives::kernel::{Buffer, Param, kernel};
use gpu_primitives::sort::{Buckets, Purity};
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, SharedMemory, thread, warp};

/// Threads of a block.
const THREADS: u32 = 512;

/// Slots of a tile: a key and 4 bytes each in shared memory, 32 KiB for 4-byte keys and 24 KiB for 8-byte keys.
pub const fn tile_slots<C>() -> usize {
    if size_of::<C>() == 4 { 4096 } else { 2048 }
}

/// Buckets of a tile.
pub const fn tile_buckets<C>(width: usize) -> usize {
    tile_slots::<C>() / width
}

/// Keys of a tile that may find their first bucket full. At load 0.95, 18 of 100 keys do with buckets of 4, fewer with wider
/// ones: a share of 0.17 of the slots. More than this share is a bad seed.
pub const fn spill_slots<C>() -> usize {
    tile_slots::<C>() / 4
}

/// The tile of a key's first bucket, digit by digit, for the passes of a radix sort.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct TileDigits {
    hash: Hash,
    /// Buckets of a tile are `1 << shift`.
    shift: u32,
    last_tile: u32,
    /// Digits of a tile's number; none if there is one tile.
    passes: u32,
    /// The uppermost digit of the last tile: other tiles have none larger.
    last_digit: u32,
}

impl TileDigits {
    /// Tiles of so many buckets each, a power of two.
    pub const fn new(hash: Hash, tile_buckets: usize) -> Self {
        let shift = tile_buckets.trailing_zeros();
        let last_tile = (hash.buckets - 1) >> shift;
        let passes = (u32::BITS - last_tile.leading_zeros()).div_ceil(8);
        let last_digit = if passes == 0 { 0 } else { last_tile >> (8 * (passes - 1)) };
        Self { hash, shift, last_tile, passes, last_digit }
    }

    /// How many tiles there are.
    pub const fn tiles(&self) -> usize {
        self.last_tile as usize + 1
    }

    /// How many digits their numbers have; none if there is one tile.
    pub const fn passes(&self) -> u32 {
        self.passes
    }

    #[inline(always)]
    fn tile<C: KeyCode>(&self, key: C) -> u32 {
        self.hash.choices(key).get(0) >> self.shift
    }
}

impl<C: KeyCode> Buckets<C> for TileDigits {
    // 2^24 tiles of 2^11 slots are more than fit into any GPU.
    const MAX_PASSES: usize = 3;
    const IS_COSTLY: bool = true;
    // SAFETY: the tile follows from the key and the hash, and a digit has 8 bits.
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

/// Finds where each tile begins among keys that are ordered by tile: a binary search per thread.
///
/// # Safety
/// The launch has at least one thread per element of `starts`, of which there are as many as tiles and one more for the
/// end. There are fewer than 2^32 keys, ordered by tile. Nobody writes them, and nobody else uses `starts`, while the
/// kernel runs.
#[kernel(threads = 256)]
pub unsafe fn tile_starts<C: KeyCode>(keys: Global<C>, digits: TileDigits, starts: GlobalMut<u32>) {
    let tile = thread::block_idx_x() * 256 + thread::thread_idx_x();
    if tile as usize >= starts.len() {
        return;
    }
    // The start lies in `from..=to`; the interval shrinks with every step.
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

/// A list of pairs that grows on the device.
#[repr(C)]
#[derive(Debug)]
pub struct Spill<C, V> {
    pub keys: GlobalMut<C>,
    pub values: GlobalMut<V>,
}

impl<C, V> Clone for Spill<C, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, V> Copy for Spill<C, V> {}

// SAFETY: `repr(C)` of views.
unsafe impl<C: Pod, V: Pod> Param for Spill<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

impl<C: Pod, V: Pod> Spill<C, V> {
    /// Writes pair `index`.
    ///
    /// # Safety
    /// The index is within the list, and no other thread uses it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, key: C, value: V) {
        self.keys.set(index, key);
        if size_of::<V>() > 0 {
            self.values.set(index, value);
        }
    }
}

/// Counters that the kernels of a build share, by their index.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Keys that lie in their first bucket.
    Placed,
    /// Keys that found it full: the length of the spill.
    Spilled,
    /// Keys that found no place at all.
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

/// The counters of a block, by their index.
const PLACED: usize = 0;
const SPILLED: usize = 1;
const WRITTEN: usize = 2;
const SPILL_START: usize = 3;

/// Makes the buckets of a tile, and writes them.
///
/// Each thread takes pairs of the tile, one after the other. It looks for its key in the key's first bucket, from some slot on
/// and around, with one compare-and-exchange per slot that finds the key, or an empty slot and takes it. Keys are never taken
/// out, so all threads with the same key end at the same slot, and there the latest position wins: of a key that is given several
/// times the last value counts, in whichever order the threads run. Keys that find the bucket full go through the same
/// dance in a small open hash table of positions, so that they are told once each, too. At the end the values are fetched by the
/// positions that won, and buckets and spill are written.
///
/// Which keys of an overfull bucket are spilled depends on the order of the threads; what the table holds does not.
///
/// # Safety
/// The launch has one block per tile. There are fewer than 2^32 - 1 keys, ordered by tile, and, unless values have no
/// size, as many values; `starts` says where each tile begins and where the last one ends. `spill` has room for
/// `spill_slots` keys of each tile, or for all keys; `counts` are those of [`Count`], zero at first. Nobody writes the
/// inputs, and nobody else uses the table, `spill` or `counts`, while the kernel runs.
#[kernel(threads = THREADS, shared = tile_shared::<C>())]
pub unsafe fn fill_tiles<C: KeyCode, V: Pod, const WIDTH: usize>(
    keys: Global<C>,
    values: Global<V>,
    starts: Global<u32>,
    table: TableMut<C, V, WIDTH>,
    spill: Spill<C, V>,
    counts: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let slot_keys = memory.take::<C>(tile_slots::<C>());
    // The position in the tile of the pair that won the slot, plus one; 0 while there is none.
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
    let (keys, values) = (keys.slice(start, len), if size_of::<V>() == 0 { values } else { values.slice(start, len) });
    let mut position = thread;
    while position < len {
        let key = keys.get(position);
        let choices = map.hash.choices(key);
        let bucket = choices.get(0);
        let empty = map.empty.of(bucket);
        let base = (bucket - first_bucket) as usize * WIDTH;
        let mut probe = 0;
        while probe < WIDTH {
            let slot = base + (choices.salt() as usize + probe) % WIDTH;
            let there = slot_keys.compare_exchange(slot, empty, key);
            if there == empty || there == key {
                slot_latest.atomic_rmw(Rmw::Max, slot, position as u32 + 1);
                break;
            }
            probe += 1;
        }
        if probe == WIDTH {
            // A table of positions, whose keys are those of the input. An entry that is taken keeps its key.
            let mut probe = 0;
            while probe < spill_slots::<C>() {
                let entry = (choices.salt() as usize + probe) % spill_slots::<C>();
                let there = spilled.compare_exchange(entry, 0, position as u32 + 1);
                if there == 0 {
                    break;
                }
                if keys.get(there as usize - 1) == key {
                    spilled.atomic_rmw(Rmw::Max, entry, position as u32 + 1);
                    break;
                }
                probe += 1;
            }
            if probe == spill_slots::<C>() {
                counts.atomic_add(Count::Unplaced as usize, 1, Scope::Gpu, Order::Relaxed);
            }
        }
        position += THREADS as usize;
    }
    thread::sync_threads();

    // Every slot is written, free ones as well: whole sectors need not be read first.
    let mut placed = 0;
    let mut slot = thread;
    while slot < slots_here {
        let bucket = first_bucket + (slot / WIDTH) as u32;
        let latest = slot_latest.get(slot) as usize;
        placed += (latest != 0) as u32;
        table.keys.set(key_index::<C, V>(WIDTH, bucket) + slot % WIDTH, slot_keys.get(slot));
        if size_of::<V>() > 0 {
            let value = if latest == 0 { V::zeroed() } else { values.get(latest - 1) };
            table.values.set(value_index::<C, V>(WIDTH, bucket) + slot % WIDTH, value);
        }
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
            // Less than the number of keys, which has 32 bits.
            local.set(SPILL_START, start as u32);
        }
    }
    thread::sync_threads();
    let mut entry = thread;
    while entry < spill_slots::<C>() {
        let latest = spilled.get(entry) as usize;
        if latest != 0 {
            let at = local.get(SPILL_START) + local.atomic_add(WRITTEN, 1);
            let value = if size_of::<V>() == 0 { V::zeroed() } else { values.get(latest - 1) };
            spill.set(at as usize, keys.get(latest - 1), value);
        }
        entry += THREADS as usize;
    }
}

/// Adds the lanes' counts to a counter of the block.
///
/// # Safety
/// All lanes of the warp call it. The counter is there, and all threads of the block use it atomically until the next
/// barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn add_up(counters: gpu_primitives::Shared<u32>, counter: usize, count: u32) {
    let sum = gpu_primitives::block::warp::inclusive_scan(count, gpu_primitives::scan::Sum);
    if warp::lane_id() == warp::LANES - 1 && sum != 0 {
        counters.atomic_add(counter, sum);
    }
}
