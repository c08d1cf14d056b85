//! Lookups, and the other kernels that run one thread per key or slot.

use super::append::{Appender, appender_shared};
use super::pairs::PairsMut;
use crate::view::{Bucket, CuckooView, TableMut, key_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Cache, Order, Scope};
use gpu_primitives::kernel::kernel;
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
#[kernel(threads = THREADS)]
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

/// Deletes keys that are in the table, and counts them.
///
/// In a bucket with an empty slot, the deleted slot becomes empty, because no search continues past this bucket. In
/// other buckets it becomes dead. The threads need no locks: a deletion does not change whether a bucket has an empty
/// slot, and of several threads with the same key only one compare-and-exchange succeeds.
///
/// # Safety
/// The launch has at least one thread per key. `erased` has one element, to which the number of deleted keys is added.
/// While the kernel runs, nobody writes the keys, and nobody else uses the table or `erased`.
#[kernel(threads = THREADS)]
pub unsafe fn erase<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    keys: Global<C>,
    erased: GlobalMut<u64>,
) {
    let i = index();
    let map = table.map;
    let mut is_erased = false;
    if i < keys.len() {
        let key = keys.get(i);
        let choices = map.hash.choices(key);
        let mut choice = 0;
        while choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let empty = map.empty.of(bucket);
            let at = key_index::<C, V>(WIDTH, bucket);
            let keys = Bucket::<C, WIDTH>::load_atomic(table.keys, at);
            let (slots, has_empty) = (keys.slots_with(key), keys.slots_with(empty) != 0);
            if slots != 0 {
                let free = if has_empty { empty } else { map.dead.of(bucket) };
                let slot = at + slots.trailing_zeros() as usize;
                is_erased = table.keys.compare_exchange(slot, key, free, Scope::Gpu, Order::Relaxed) == key;
                break;
            }
            if has_empty {
                break;
            }
            choice += 1;
        }
    }
    let erased_here = warp::ballot(warp::FULL, is_erased).count_ones();
    if warp::lane_id() == 0 && erased_here != 0 {
        erased.atomic_add(0, erased_here as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Writes all pairs of the table, in any order.
///
/// Cost: reads the table once and writes the pairs once. One atomic per block that has any pairs.
///
/// # Safety
/// The launch has at least one thread per slot. `pairs` has room for all pairs. `count` has one element, which is zero
/// before and the number of pairs after. While the kernel runs, nobody changes the table, and nobody else uses the
/// outputs.
#[kernel(threads = THREADS, shared = appender_shared())]
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
    if is_live {
        pairs.set(position, key, table.value(bucket, slot));
    }
}
