//! Placing keys one by one: those that a build has left over, and those that are inserted later.

use super::tile::Spill;
use crate::map::{Bucket, NOWHERE, TableMut, key_index, value_index};
use bytemuck::Pod;
use gpu_primitives::arch::{Cache, Order, Rmw, Scope};
use gpu_primitives::dictionary::KeyCode;
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, thread};

/// Threads of a block.
pub const THREADS: u32 = 256;
/// Blocks that share a multiprocessor.
#[cfg(not(target_arch = "nvptx64"))]
pub const SETTLED_AT_ONCE: usize = 8;

/// Places keys that are not in the table, each once: in the first of its buckets that has a free slot, or else in its last one,
/// in place of some other key, which then goes the same way (cuckoo).
///
/// A thread holds one pair at a time and *visits* one bucket per step. A visit locks the bucket, by a bit of a temporary bitmap
/// that stays in the L2 cache, reads its keys, writes a pair, maybe takes the old pair of that slot along, and unlocks. A thread
/// whose pair is settled takes its next one at once, so that long walks keep nobody waiting.
///
/// **It ends.** A thread never waits while it holds a lock, and takes no second one; between locking and unlocking it does a fixed
/// number of accesses. So some thread that wants a lock gets it, and each visit is one of a bounded number: a pair
/// displaces at most `limit` others, each of which visits at most four buckets. Whoever then has a pair left adds it to the
/// `orphans`, so that nothing is lost.
///
/// **Searches stay right.** A key lies in a bucket only after all buckets before it in the key's own order were seen without
/// a free slot; and slots that are empty do not come back: a full bucket stays full, since a displaced key is replaced.
///
/// Cost of a visit: the sectors of a bucket's keys, and those of the slot that is written; two atomics and a fence in L2.
///
/// # Safety
/// The launch has any number of blocks. The first `count` pairs, at most those that there are, are settled; with
/// `skip_first`, which is 0 or 1, their first buckets are known to be full. `locks` are zero, a bit per bucket.
/// `orphans` has room for as many as `pairs`, in other memory, or for none: they are then counted only. `unplaced` has
/// one element, to which their number is added; it is zero at first, if they have room. Nobody writes the pairs or
/// `count`, and nobody else uses the other buffers, while the kernel runs.
#[kernel(threads = THREADS)]
pub unsafe fn settle<C: KeyCode, V: Pod, const WIDTH: usize>(
    pairs: Spill<C, V>,
    count: Global<u64>,
    table: TableMut<C, V, WIDTH>,
    locks: GlobalMut<u32>,
    skip_first: u32,
    limit: u32,
    orphans: Spill<C, V>,
    unplaced: GlobalMut<u64>,
) {
    let map = table.map;
    let count = count.get(0) as usize;
    let stride = thread::grid_dim_x() as usize * THREADS as usize;
    let mut next = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    // Which slot a displaced key loses is a throw of dice.
    let mut dice = next as u32;

    let (mut key, mut value) = (C::MIN, V::zeroed());
    let mut choices = map.hash.choices(key);
    // The pair's next bucket, its last one, and the bucket that it was taken from, which is not asked again.
    let (mut turn, mut last, mut origin) = (0, 0, NOWHERE);
    let mut displaced = 0;
    let mut holds = false;
    loop {
        if !holds {
            if next >= count {
                break;
            }
            key = pairs.keys.get(next);
            if size_of::<V>() > 0 {
                value = pairs.values.get(next);
            }
            next += stride;
            choices = map.hash.choices(key);
            (turn, last, origin) = (skip_first, map.hash.hashes - 1, NOWHERE);
            displaced = 0;
            holds = true;
        }
        let bucket = choices.get(turn);
        if bucket == origin && turn < last {
            turn += 1;
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
        let displaces = free == 0 && turn == last && displaced < limit;
        let (mut old_key, mut old_value) = (key, value);
        if free != 0 || displaces {
            dice = dice.wrapping_mul(0x2C92_77B5).wrapping_add(0xAC56_4B05);
            // Fewer than 32 slots, so the shift takes the number below their count: the uppermost bits of the dice.
            let slot = if free != 0 { free.trailing_zeros() } else { dice >> (32 - WIDTH.trailing_zeros()) } as usize;
            if displaces {
                old_key = table.keys.get(at + slot);
            }
            table.keys.set(at + slot, key);
            if size_of::<V>() > 0 {
                let values_at = value_index::<C, V>(WIDTH, bucket);
                if displaces {
                    old_value = table.values.get(values_at + slot);
                }
                table.values.set(values_at + slot, value);
            }
        }
        locks.atomic_rmw(Rmw::And, word, !bit, Scope::Gpu, Order::Release);

        if free != 0 {
            holds = false;
        } else if displaces {
            (key, value) = (old_key, old_value);
            choices = map.hash.choices(key);
            displaced += 1;
            origin = bucket;
            (turn, last) = (0, map.hash.hashes - 1);
            // Its last bucket that is another one; if there is none, this one once more.
            while last > 0 && choices.get(last) == origin {
                last -= 1;
            }
        } else if turn < last {
            turn += 1;
        } else {
            let index = unplaced.atomic_add(0, 1, Scope::Gpu, Order::Relaxed) as usize;
            if index < orphans.keys.len() {
                orphans.set(index, key, value);
            }
            holds = false;
        }
    }
}
