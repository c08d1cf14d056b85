//! Places many pairs step by step.

use super::append::{Appender, put, value_at};
use super::atomics::{self, counter};
use super::table::Table;
use crate::device::{WalkPairs, last_but, random_slot};
use crate::hash::Choices;
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// # Safety
/// The contract of [`WalkPairs`].
pub unsafe fn walk_pairs<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: WalkPairs<C, V, WIDTH>, team: Team) {
    /// So many pairs before its turn, the bucket of a pair is requested.
    const AHEAD: usize = 8;
    let WalkPairs { pairs, targets, count, table, turns, turn, next, next_targets, next_count, .. } = kernel;
    let (table, hash) = (Table::new(table), table.map.hash);
    // SAFETY: nothing writes the inputs. The turns and the counter are used only in this way.
    let (keys, values, targets, turns, next_count) = unsafe {
        let count = count.as_slice().first().map_or(0, |&count| count as usize);
        let keys = pairs.keys.as_slice();
        let keys = &keys[..keys.len().min(count)];
        let targets = targets.as_slice();
        (keys, pairs.values.as_slice(), targets, atomics::words(turns), counter(next_count, 0))
    };
    let step = |_: usize, range: Range<usize>| {
        let write = |at: usize, (key, value, target): (C, V, u32)| {
            assert!(at < next_targets.len(), "there is room for target {at}");
            // SAFETY: the target exists, and positions in the list are given once.
            unsafe {
                next_targets.as_mut_ptr().add(at).write(target);
                put(next, at, key, value);
            }
        };
        let mut list = Appender::new(next_count, (C::MIN, V::zeroed(), 0), write);
        for at in range {
            if let Some(&later) = keys.get(at + AHEAD) {
                // Without targets, the first bucket is full, and the second one is next.
                let bucket = targets.get(at + AHEAD).map_or_else(|| hash.choices(later).get(1), |&target| target);
                table.prefetch(bucket);
            }
            let (mut key, mut value) = (keys[at], value_at(values, at));
            let mut target;
            if targets.is_empty() {
                target = hash.choices(key).get(0);
            } else {
                target = targets[at];
                assert!(target < hash.buckets, "the target is a bucket");
                if turns[target as usize].fetch_max(turn, Ordering::Relaxed) >= turn {
                    list.push((key, value, target));
                    continue;
                }
                let slot = random_slot::<WIDTH>(target, turn);
                // SAFETY: the slot exists. Others read its key meanwhile, and only this thread uses the value.
                unsafe {
                    key = atomics::swap(table.keys(target).add(slot as usize), key);
                    let old = table.value(target, slot);
                    table.set_value(target, slot, value);
                    value = old;
                }
            }
            let choices = hash.choices(key);
            // SAFETY: the buckets are those of the key, which is in no slot.
            if !unsafe { claim_slot(table, choices, target, key, value) } {
                target = last_but(choices, hash.hashes, target);
                list.push((key, value, target));
            }
        }
        list.finish();
    };
    // SAFETY: the body captures arguments, words and a counter. Keys are written atomically, values by who has the slot.
    unsafe { team.divide(keys.len(), step) };
}

/// Places a pair in the first of its key's buckets that has a free slot, without looking at `full`. Returns whether there was
/// one.
///
/// # Safety
/// The buckets are those of the key, which is in no slot. Other threads change keys only atomically, and free slots only in
/// this way.
unsafe fn claim_slot<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: Table<C, V, WIDTH>,
    choices: Choices,
    full: u32,
    key: C,
    value: V,
) -> bool {
    for bucket in (0..table.map.hash.hashes).map(|choice| choices.get(choice)).filter(|&bucket| bucket != full) {
        // SAFETY: a bucket of a key exists. Whoever claims a slot is the only one that uses its value.
        unsafe {
            let free = table.free(bucket, &table.load_atomic(bucket));
            if let Some((slot, _)) = table.claim(bucket, free, key, |_| false) {
                table.set_value(bucket, slot, value);
                return true;
            }
        }
    }
    false
}
