//! Places pairs one by one: those whose first bucket was full in a build, and those inserted later.

use crate::view::{Bucket, TableMut, key_index, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Cache, Order, Rmw, Scope};
use gpu_primitives::kernel::{Pairs, PairsMut, kernel};
use gpu_primitives::{Global, GlobalMut, thread};

/// Threads per block.
pub const THREADS: u32 = 256;
/// Blocks per multiprocessor.
#[cfg(not(target_arch = "nvptx64"))]
pub const BLOCKS_PER_MULTIPROCESSOR: usize = 8;

/// Stands for no bucket.
pub const NO_BUCKET: u32 = u32::MAX;

/// Places distinct keys that are not in the table. A key goes to the first of its buckets that has a free slot. If none
/// has one, it displaces some key of its last bucket, which is then placed in the same way (cuckoo hashing).
///
/// A thread holds one pair at a time and *visits* one bucket per step. A visit locks the bucket, reads its keys, writes
/// a pair, possibly takes the old pair of that slot, and unlocks. The lock is a bit of a temporary bitmap that stays in
/// the L2 cache. A thread that has placed its pair takes the next one at once, so long walks do not make other threads
/// wait.
///
/// **Termination.** A thread never waits while it holds a lock, and never takes a second one. Between locking and
/// unlocking it makes a fixed number of accesses. So some thread that wants a lock gets it. The number of visits is
/// bounded: a pair displaces at most `limit` others, each of which visits at most four buckets. A pair that is then
/// unplaced goes to the `leftovers`, so nothing is lost.
///
/// **Searches stay correct.** A key is placed in a bucket only after all earlier buckets of that key were seen without
/// a free slot. Slots do not become empty again: a full bucket stays full, because a displaced key is replaced by
/// another.
///
/// Cost of a visit: the sectors of the bucket's keys, the sectors of the slot that is written, two atomics and a fence
/// in L2.
///
/// # Safety
/// - The launch has any number of blocks.
/// - `count` has one element: the number of pairs to place, from the first one on. It is at most the number of `pairs`.
///   Their keys are distinct and not in the table.
/// - `skip_first` is 0 or 1. If it is 1, the first bucket of every pair is known to be full.
/// - `locks` has one bit per bucket, all zero.
/// - `leftovers` is other memory, with room for as many pairs as `pairs` from the position that `unplaced` says on, or for
///   none. If it has none, unplaced pairs are only counted.
/// - `unplaced` has one element, to which the number of unplaced pairs is added.
/// - `cleared` has fewer elements than a block has threads. They become zero: counters that the next call will need.
/// - While the kernel runs, nobody writes the pairs or `count`, and nobody else uses the other buffers.
#[kernel(listed = super::PLACE_PAIRS_PTX, threads = THREADS, native = crate::native::place::place_pairs)]
pub unsafe fn place_pairs<C: KeyCode, V: Pod, const WIDTH: usize>(
    pairs: Pairs<C, V>,
    count: Global<u64>,
    table: TableMut<C, V, WIDTH>,
    locks: GlobalMut<u32>,
    skip_first: u32,
    limit: u32,
    leftovers: PairsMut<C, V>,
    unplaced: GlobalMut<u64>,
    cleared: GlobalMut<u64>,
) {
    let map = table.map;
    let count = count.get(0) as usize;
    let stride = thread::grid_dim_x() as usize * THREADS as usize;
    if thread::block_idx_x() == 0 && (thread::thread_idx_x() as usize) < cleared.len() {
        cleared.set(thread::thread_idx_x() as usize, 0);
    }
    let mut next = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    // The slot whose key is displaced is chosen at random.
    let mut random = next as u32;

    let (mut key, mut value) = (C::MIN, V::zeroed());
    let mut choices = map.hash.choices(key);
    // Which of the pair's buckets is next and which is last, and the bucket it was displaced from, which it does not
    // try again.
    let (mut choice, mut last, mut origin) = (0, 0, NO_BUCKET);
    let mut displaced = 0;
    let mut holds = false;
    loop {
        if !holds {
            if next >= count {
                break;
            }
            (key, value) = pairs.get(next);
            next += stride;
            choices = map.hash.choices(key);
            (choice, last, origin) = (skip_first, map.hash.hashes - 1, NO_BUCKET);
            displaced = 0;
            holds = true;
        }
        let bucket = choices.get(choice);
        if bucket == origin && choice < last {
            choice += 1;
            continue;
        }
        let (word, bit) = (bucket as usize / 32, 1 << (bucket % 32));
        if locks.atomic_rmw(Rmw::Or, word, bit, Scope::Gpu, Order::Acquire) & bit != 0 {
            thread::spin_hint();
            continue;
        }
        let at = key_index::<C, V>(WIDTH, bucket);
        let keys = Bucket::<C, WIDTH>::load(table.keys.as_const(), at, Cache::Default);
        let free = keys.slots_with(map.empty.of(bucket)) | keys.slots_with(map.dead.of(bucket));
        let displaces = free == 0 && choice == last && displaced < limit;
        let (mut old_key, mut old_value) = (key, value);
        if free != 0 || displaces {
            random = random.wrapping_mul(0x2C92_77B5).wrapping_add(0xAC56_4B05);
            // A bucket has fewer than 32 slots, a power of two: the shift takes the upper bits of `random` as a slot
            // number.
            let slot = if free != 0 { free.trailing_zeros() } else { random >> (32 - WIDTH.trailing_zeros()) } as usize;
            if displaces {
                old_key = table.keys.get(at + slot);
            }
            table.keys.set(at + slot, key);
            let value_at = value_index::<C, V>(WIDTH, bucket) + slot;
            if displaces {
                old_value = table.values.get(value_at);
            }
            table.values.set(value_at, value);
        }
        locks.atomic_rmw(Rmw::And, word, !bit, Scope::Gpu, Order::Release);

        if free != 0 {
            holds = false;
        } else if displaces {
            (key, value) = (old_key, old_value);
            choices = map.hash.choices(key);
            displaced += 1;
            origin = bucket;
            (choice, last) = (0, map.hash.hashes - 1);
            // Its last bucket that is not the origin. If all are, it tries the origin once more.
            while last > 0 && choices.get(last) == origin {
                last -= 1;
            }
        } else if choice < last {
            choice += 1;
        } else {
            let index = unplaced.atomic_add(0, 1, Scope::Gpu, Order::Relaxed) as usize;
            if index < leftovers.keys.len() {
                leftovers.set(index, key, value);
            }
            holds = false;
        }
    }
}
