//! Lookups, and the other kernels that run one thread per key or slot.

use super::append::{Appender, appender_shared};
use super::marks::Marks;
use crate::view::{Bucket, CuckooView, Position, TableMut, key_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Cache, Order, Scope};
use gpu_primitives::kernel::{PairsMut, kernel};
use gpu_primitives::{Global, GlobalMut, SharedMemory, thread, warp};

/// Threads per block.
pub const THREADS: u32 = 256;

/// Returns the index of this thread in the grid.
#[inline(always)]
pub fn index() -> usize {
    thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize
}

/// Looks up every key: writes whether it is present, and its value.
///
/// One thread per key: see [`CuckooView::get`]. Memory latency is hidden by many threads, not by work within a thread:
/// the 2,048 threads of a multiprocessor have as many bucket reads in flight.
///
/// Cost per 4-byte key with a 4-byte value, with buckets of 8 and load 0.8: 4 bytes read and 5 bytes written
/// sequentially. For a present key, 1.1 random sectors of keys, and the sector of the value, which is next to the last
/// of them. For an absent key, 1.4 random sectors.
///
/// # Safety
/// The launch has at least one thread per key. `found` is as long as `keys`. `values` is as long as `keys`, or empty.
/// While the kernel runs, nobody changes the table or writes the keys, and nobody else uses the outputs.
#[kernel(listed = super::FIND_PTX, threads = THREADS, native = crate::native::probe::find)]
pub unsafe fn find<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: CuckooView<C, V, WIDTH>,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let i = index();
    if i >= keys.len() {
        return;
    }
    let key = keys.load(i, Cache::Streaming);
    if values.is_empty() || size_of::<V>() == 0 {
        found.store(i, table.find(key).is_some() as u8, Cache::Streaming);
    } else {
        let answer = table.get(key);
        found.store(i, answer.is_some() as u8, Cache::Streaming);
        values.store(i, answer.unwrap_or(V::zeroed()), Cache::Streaming);
    }
}

/// Looks up every key, and marks the slots of those that are present: see [`Find`]. [`Sweep`](super::Sweep) then deletes them.
///
/// Cost: that of [`Find`], and a mark per key that is present: an atomic in L2, where the marks of 2^26 slots stay.
///
/// # Safety
/// The requirements of [`Find`]. There is a mark for every bucket, and no slot is marked before.
#[kernel(listed = super::TAKE_PTX, threads = THREADS, native = crate::native::probe::take)]
pub unsafe fn take<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: CuckooView<C, V, WIDTH>,
    marks: Marks,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let i = index();
    if i >= keys.len() {
        return;
    }
    let key = keys.load(i, Cache::Streaming);
    // Most keys are in their first bucket. Its mark is on the way while the bucket is.
    let first = table.map.hash.choices(key).get(0);
    let guess = marks.load(first);
    let position = table.find(key);
    found.store(i, position.is_some() as u8, Cache::Streaming);
    let mut value = V::zeroed();
    if let Some(Position { bucket, slot }) = position {
        value = table.value(bucket, slot as usize);
        marks.mark(bucket, slot, if bucket == first { guess } else { 0 });
    }
    values.store(i, value, Cache::Streaming);
}

/// Deletes keys that are in the table, and counts them.
///
/// In a bucket with an empty slot, the deleted slot becomes empty, because no search continues past this bucket. In
/// other buckets it becomes dead. The threads need no locks: a deletion does not change whether a bucket has an empty
/// slot, and of several threads with the same key only one compare-and-exchange succeeds.
///
/// # Safety
/// The launch has at least one thread per key. `erased` has one element, to which the number of deleted keys is added.
/// While the kernel runs, nobody writes the keys, and nobody else uses the table or `erased`.
#[kernel(listed = super::ERASE_PTX, threads = THREADS, native = crate::native::probe::erase)]
pub unsafe fn erase<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    keys: Global<C>,
    erased: GlobalMut<u64>,
) {
    let i = index();
    let is_erased = i < keys.len() && erase_one(table, keys.get(i));
    let erased_here = warp::ballot(warp::FULL, is_erased).count_ones();
    if warp::lane_id() == 0 && erased_here != 0 {
        erased.atomic_add(0, erased_here as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Where a key is, while other threads delete keys.
pub struct FoundSlot<C> {
    pub bucket: u32,
    pub slot: u32,
    /// What marks the slot if its key is deleted.
    free: C,
}

/// Finds a key while other threads delete keys.
///
/// # Safety
/// The caller is a kernel that changes keys only by [`erase_one`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn hold<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    key: C,
) -> Option<FoundSlot<C>> {
    let map = table.map;
    let choices = map.hash.choices(key);
    let mut choice = 0;
    while choice < map.hash.hashes {
        let bucket = choices.get(choice);
        let empty = map.empty.of(bucket);
        let keys = Bucket::<C, WIDTH>::load_atomic(table.keys, key_index::<C, V>(WIDTH, bucket));
        let (slots, has_empty) = (keys.slots_with(key), keys.slots_with(empty) != 0);
        if slots != 0 {
            let free = if has_empty { empty } else { map.dead.of(bucket) };
            return Some(FoundSlot { bucket, slot: slots.trailing_zeros(), free });
        }
        if has_empty {
            return None;
        }
        choice += 1;
    }
    None
}

/// Deletes a key. Returns whether this thread has done so.
///
/// # Safety
/// The requirements of [`hold`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn erase_one<C: KeyCode, V: Pod, const WIDTH: usize>(table: TableMut<C, V, WIDTH>, key: C) -> bool {
    let Some(FoundSlot { bucket, slot, free }) = hold(table, key) else { return false };
    let at = key_index::<C, V>(WIDTH, bucket) + slot as usize;
    table.keys.compare_exchange(at, key, free, Scope::Gpu, Order::Relaxed) == key
}

/// Writes all pairs of the table, in any order. Pairs for which `pairs` has no room are only counted.
///
/// Cost: reads the table once and writes the pairs once. One atomic per block that has any pairs.
///
/// # Safety
/// The launch has at least one thread per slot. `count` has one element, which is zero before and the number of pairs
/// after. While the kernel runs, nobody changes the table, and nobody else uses the outputs.
#[kernel(listed = super::COLLECT_PTX, threads = THREADS, shared = appender_shared(), native = crate::native::probe::collect)]
pub unsafe fn collect<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: CuckooView<C, V, WIDTH>,
    pairs: PairsMut<C, V>,
    count: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let appender = Appender::new(&mut memory);
    let i = index();
    let (bucket, slot) = ((i / WIDTH) as u32, i % WIDTH);
    let mut key = C::MIN;
    let mut is_live = false;
    if i / WIDTH < table.map.hash.buckets as usize {
        key = table.key(bucket, slot);
        is_live = key != table.map.empty.of(bucket) && key != table.map.dead.of(bucket);
    }
    let position = appender.reserve(count, is_live);
    if is_live && position < pairs.keys.len() {
        pairs.set(position, key, table.value(bucket, slot));
    }
}
