//! Places pairs one by one.

use super::append::{put, value_at};
use super::atomics::counter;
use super::locks::Locks;
use super::table::Table;
use crate::kernel::{NO_BUCKET, PlacePairs};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// One thread alone locks nothing.
///
/// # Safety
/// The contract of [`PlacePairs`].
pub unsafe fn place_pairs<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: PlacePairs<C, V, WIDTH>, team: Team) {
    /// So many pairs before its turn, the first bucket of a pair is requested.
    const AHEAD: usize = 8;
    let PlacePairs { pairs, count, table, locks, skip_first, limit, leftovers, unplaced, cleared, .. } = kernel;
    let (table, hash) = (Table::new(table), table.map.hash);
    // SAFETY: nothing writes the inputs. The locks and the counter are used only in this way.
    let (keys, values, count, locks, unplaced) = unsafe {
        cleared.as_mut_ptr().write_bytes(0, cleared.len());
        let count = count.as_slice().first().map_or(0, |&count| count as usize);
        (pairs.keys.as_slice(), pairs.values.as_slice(), count, Locks::new(locks), counter(unplaced, 0))
    };
    let keys = &keys[..keys.len().min(count)];
    let is_alone = team.parts(keys.len()) == 1;
    let place = |_: usize, range: Range<usize>| {
        // The slot whose key is displaced is chosen at random.
        let mut random = range.start as u32;
        for at in range {
            if let Some(&later) = keys.get(at + AHEAD) {
                table.prefetch(hash.choices(later).get(skip_first));
            }
            let (mut key, mut value) = (keys[at], value_at(values, at));
            let mut choices = hash.choices(key);
            // Which of the pair's buckets is next and which is last, and the bucket it was displaced from, which it does
            // not try again.
            let (mut choice, mut last, mut origin) = (skip_first, hash.hashes - 1, NO_BUCKET);
            let mut displaced = 0;
            loop {
                let bucket = choices.get(choice);
                if bucket == origin && choice < last {
                    choice += 1;
                    continue;
                }
                if !is_alone {
                    locks.lock(bucket);
                }
                // SAFETY: the bucket exists. Only the holder of its lock uses it.
                let there = unsafe { table.load(bucket) };
                let (empties, deads) = table.free(bucket, &there);
                let free = empties | deads;
                let displaces = free == 0 && choice == last && displaced < limit;
                let mut old = (key, value);
                if free != 0 || displaces {
                    random = random.wrapping_mul(0x2C92_77B5).wrapping_add(0xAC56_4B05);
                    // The width is a power of two: the shift takes the upper bits as the number of a slot.
                    let any = random >> (32 - WIDTH.trailing_zeros());
                    let slot = if free != 0 { free.trailing_zeros() } else { any };
                    // SAFETY: the slot exists. Only the holder of the lock uses it.
                    unsafe {
                        if displaces {
                            old = (there.0[slot as usize], table.value(bucket, slot));
                        }
                        table.keys(bucket).add(slot as usize).write(key);
                        table.set_value(bucket, slot, value);
                    }
                }
                if !is_alone {
                    locks.unlock(bucket);
                }
                if free != 0 {
                    break;
                } else if displaces {
                    (key, value) = old;
                    choices = hash.choices(key);
                    displaced += 1;
                    origin = bucket;
                    (choice, last) = (0, hash.hashes - 1);
                    // Its last bucket that is not the origin. If all are, it tries the origin once more.
                    while last > 0 && choices.get(last) == origin {
                        last -= 1;
                    }
                } else if choice < last {
                    choice += 1;
                } else {
                    let index = unplaced.fetch_add(1, Ordering::Relaxed) as usize;
                    if index < leftovers.keys.len() {
                        // SAFETY: positions in the list are given once.
                        unsafe { put(leftovers, index, key, value) };
                    }
                    break;
                }
            }
        }
    };
    // SAFETY: the body captures arguments, locks and a counter. Buckets are used under their locks.
    unsafe { team.divide(keys.len(), place) };
}
