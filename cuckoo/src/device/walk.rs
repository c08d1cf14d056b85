//! Places many pairs step by step: all of them take one step per launch.
//!
//! [`PlacePairs`](super::PlacePairs) moves a pair until it has a slot. It locks every bucket that it changes, and a fence
//! comes before every unlock. Here nothing is locked: the end of a launch is the fence. (A build of 2^24 pairs at load 0.8
//! placed one key in 15 in 750 us with locks, and in 190 us in this way.)

use super::append::{Appender, appender_shared};
use crate::hash::Choices;
use crate::view::{Bucket, TableMut, key_index, value_index};
use bytemuck::Pod;
use core::mem::transmute_copy;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::kernel::{Pairs, PairsMut, kernel};
use gpu_primitives::{Global, GlobalMut, SharedMemory, thread};

/// Threads per block.
pub const THREADS: u32 = 256;

/// Takes a step with each of some distinct keys that are not in the table. A key displaces some key of its target, a full
/// bucket, and takes its slot. The displaced key goes to the first of its other buckets that has a free slot. If they are
/// all full, it is written to `next`, and the last of them is its target.
///
/// Only one key per launch displaces another from the same bucket. Those that come later wait for the next launch.
///
/// **Nothing is read while it is written.** A target was full before the launch, and a full bucket stays full. So no thread
/// claims a slot in it. The one thread that may displace a key there is the only one that uses the values of the bucket. A
/// thread that claims a slot does so by a compare-and-exchange of its key, and is the only one that uses its value.
///
/// **Searches stay correct.** A key is placed in a bucket only after all earlier buckets of that key were seen without a
/// free slot.
///
/// Cost of a step: the sectors of a key and its value in the target, read and written; the sectors of the other bucket's
/// keys, read; those of the slot there, written; a word of `turns`. At load 0.8 with buckets of 8, one key in three takes
/// another step.
///
/// # Safety
/// - The launch has any number of blocks.
/// - `count` has one element: the number of keys, at most that of `pairs`. They are distinct and not in the table.
/// - `targets` is empty, or has a full bucket of each key. If it is empty, the first bucket of every key is full, no key is
///   displaced, and the keys themselves are to be placed.
/// - `turns` has a word per bucket, less than `turn`.
/// - `next` and `next_targets` are other memory, with room for as many keys. `next_count` has one element, zero before.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the other buffers.
#[kernel(listed = super::WALK_PAIRS_PTX, threads = THREADS, shared = appender_shared(), native = crate::native::walk::walk_pairs)]
pub unsafe fn walk_pairs<C: KeyCode, V: Pod, const WIDTH: usize>(
    pairs: Pairs<C, V>,
    targets: Global<u32>,
    count: Global<u64>,
    table: TableMut<C, V, WIDTH>,
    turns: GlobalMut<u32>,
    turn: u32,
    next: PairsMut<C, V>,
    next_targets: GlobalMut<u32>,
    next_count: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let appender = Appender::new(&mut memory);
    let map = table.map;
    let count = count.get(0) as usize;
    let mut start = thread::block_idx_x() as usize * THREADS as usize;
    // The threads of a block take the same number of steps.
    while start < count {
        let at = start + thread::thread_idx_x() as usize;
        let (mut key, mut value) = (C::MIN, V::zeroed());
        let mut target = 0;
        let mut is_left = false;
        if at < count {
            (key, value) = pairs.get(at);
            is_left = true;
            let mut may_go = true;
            if targets.is_empty() {
                target = map.hash.choices(key).get(0);
            } else {
                target = targets.get(at);
                may_go = turns.atomic_rmw(Rmw::Max, target as usize, turn, Scope::Gpu, Order::Relaxed) < turn;
                if may_go {
                    (key, value) = displace(table, target, key, value, turn);
                }
            }
            if may_go {
                let choices = map.hash.choices(key);
                is_left = !claim_slot(table, choices, target, key, value);
                if is_left {
                    target = last_but(choices, map.hash.hashes, target);
                }
            }
        }
        let position = appender.reserve(next_count, is_left);
        if is_left {
            next.set(position, key, value);
            next_targets.set(position, target);
        }
        start += thread::grid_dim_x() as usize * THREADS as usize;
    }
}

/// Returns the slot whose key is displaced. Any slot will do, but not always the same one: a key that comes back should find
/// another way.
#[inline(always)]
pub fn random_slot<const WIDTH: usize>(bucket: u32, turn: u32) -> u32 {
    let random = (bucket ^ turn.wrapping_mul(0x9E37_79B9)).wrapping_mul(0x2C92_77B5);
    random >> (32 - WIDTH.trailing_zeros())
}

/// Puts a pair in the place of some other pair of a full bucket. Returns that one.
///
/// # Safety
/// The bucket was full before the launch, and no other thread changes it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn displace<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    bucket: u32,
    key: C,
    value: V,
    turn: u32,
) -> (C, V) {
    let slot = random_slot::<WIDTH>(bucket, turn) as usize;
    let at = key_index::<C, V>(WIDTH, bucket) + slot;
    // Other threads look for free slots here meanwhile, and see none.
    let old_key = table.keys.atomic_rmw(Rmw::Exchange, at, key, Scope::Gpu, Order::Relaxed);
    let (values, len) = (table.values.as_mut_ptr(), table.values.len());
    let at = value_index::<C, V>(WIDTH, bucket) + slot;
    // One access instead of a load and a store: with these, steps measured twice as long.
    let old_value = match size_of::<V>() {
        4 => {
            let values = GlobalMut::<u32>::from_raw(values.cast(), len);
            let old = values.atomic_rmw(Rmw::Exchange, at, transmute_copy(&value), Scope::Gpu, Order::Relaxed);
            transmute_copy(&old)
        }
        8 => {
            let values = GlobalMut::<u64>::from_raw(values.cast(), len);
            let old = values.atomic_rmw(Rmw::Exchange, at, transmute_copy(&value), Scope::Gpu, Order::Relaxed);
            transmute_copy(&old)
        }
        _ => value,
    };
    (old_key, old_value)
}

/// Places a pair in the first of its key's buckets that has a free slot, without looking at `full`. Returns whether there was
/// one.
///
/// # Safety
/// The key is not in the table, and no other thread has it. Other threads change the table only in this way and by
/// [`displace`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn claim_slot<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    choices: Choices,
    full: u32,
    key: C,
    value: V,
) -> bool {
    let map = table.map;
    let mut choice = 0;
    while choice < map.hash.hashes {
        let bucket = choices.get(choice);
        choice += 1;
        if bucket == full {
            continue;
        }
        let at = key_index::<C, V>(WIDTH, bucket);
        let keys = Bucket::<C, WIDTH>::load_atomic(table.keys, at);
        let (empty, dead) = (map.empty.of(bucket), map.dead.of(bucket));
        let empties = keys.slots_with(empty);
        let mut free = empties | keys.slots_with(dead);
        while free != 0 {
            let slot = free.trailing_zeros();
            let marker = if (empties >> slot) & 1 != 0 { empty } else { dead };
            if table.keys.compare_exchange(at + slot as usize, marker, key, Scope::Gpu, Order::Relaxed) == marker {
                table.values.set(value_index::<C, V>(WIDTH, bucket) + slot as usize, value);
                return true;
            }
            free &= free - 1;
        }
    }
    false
}

/// Returns the last bucket of a key that is not `full`, or `full` if there is no other.
#[inline(always)]
pub fn last_but(choices: Choices, hashes: u32, full: u32) -> u32 {
    let mut last = hashes - 1;
    while last > 0 && choices.get(last) == full {
        last -= 1;
    }
    choices.get(last)
}
