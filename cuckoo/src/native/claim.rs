//! Insertion in place.

use super::append::{Appender, put, value_at};
use super::atomics::{add, counter};
use super::entries::Batch;
use super::table::Table;
use crate::kernel::{Claim, Claims, Fate, Marks};
use crate::seek::{Seek, Sought};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use gpu_primitives::monoid::Combine;
use std::ops::Range;

/// A pair gives way to the next one if that has the same key, wherever it is: the last one of a row takes part, or is
/// recorded.
///
/// # Safety
/// The contract of [`Claim`].
pub unsafe fn claim<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(kernel: Claim<C, V, WIDTH, O>, team: Team) {
    let Claim { table, pairs, count, marks, entries, operation, history, overflow, counts, .. } = kernel;
    let table = Table::new(table);
    // SAFETY: nothing writes the inputs. The entries and the counters are used only in this way.
    let (keys, values, count, batch, [new, overflowed, repeats]) = unsafe {
        let keys = pairs.keys.as_slice();
        let counters = [Claims::New, Claims::Overflowed, Claims::Repeats].map(|at| counter(counts, at as usize));
        (keys, pairs.values.as_slice(), count.as_slice().first(), Batch::new(entries, keys), counters)
    };
    let keys = &keys[..count.map_or(keys.len(), |&count| keys.len().min(count as usize))];
    let has_history = !history.keys.is_empty();
    let insert = |_: usize, range: Range<usize>| {
        let (mut new_here, mut repeats_here) = (0, 0);
        // SAFETY: positions in the list are given once.
        let write = |at: usize, (key, value)| unsafe { put(overflow, at, key, value) };
        let mut list = Appender::new(overflowed, (C::MIN, V::zeroed()), write);
        let request = |bucket: u32| marks.prefetch(bucket);
        table.each_key(keys, range, request, |i, key, choices, others| {
            let (mut fate, mut old) = (Fate::Superseded, V::zeroed());
            if !marks.may_give_way() || keys.get(i + 1) != Some(&key) {
                // SAFETY: the buckets are those of the key. The caller guarantees the rest.
                let sought =
                    unsafe { if others { Some(table.seek(key, choices)) } else { table.seek_first(key, choices) } };
                let Some(sought) = sought else { return false };
                let value = value_at(values, i);
                // SAFETY: the same.
                (fate, old) = unsafe { insert_one(table, marks, sought, value, &operation) };
                let mut is_repeat = matches!(fate, Fate::Superseded | Fate::Yielded);
                if !marks.is_empty() && (is_repeat || fate == Fate::Overflowed) {
                    let is_first = batch.record(i, key).is_none();
                    if fate == Fate::Overflowed && !is_first {
                        (fate, is_repeat) = (Fate::Superseded, true);
                    }
                }
                repeats_here += u64::from(is_repeat);
                new_here += u64::from(matches!(fate, Fate::Claimed | Fate::Yielded | Fate::Overflowed));
                if fate == Fate::Overflowed {
                    list.push((key, value));
                }
            }
            if has_history {
                // SAFETY: no other part has this position.
                unsafe { put(history, i, fate as u8, old) };
            }
            true
        });
        list.finish();
        add(new, new_here);
        add(repeats, repeats_here);
    };
    // SAFETY: the body captures arguments and counters. Each call writes pairs of its own, and slots as the kernel does.
    unsafe { team.divide(keys.len(), insert) };
}

/// Inserts the value of one pair, whose key was sought. Returns what became of it, and the old value if there was one.
///
/// # Safety
/// The table is changed only in this way. Unless no two pairs have the same key, there is a mark for every bucket.
#[inline(always)]
unsafe fn insert_one<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: Table<C, V, WIDTH>,
    marks: Marks,
    Sought { outcome, bucket, slot }: Sought,
    value: V,
    operation: &O,
) -> (Fate, V) {
    let is_new = match outcome {
        Seek::Full => return (Fate::Overflowed, V::zeroed()),
        Seek::Claimed => true,
        Seek::Found => false,
    };
    // SAFETY: guaranteed by the caller.
    if !marks.is_empty() && !unsafe { marks.mark_natively(bucket, slot) } {
        return (if is_new { Fate::Yielded } else { Fate::Superseded }, V::zeroed());
    }
    // SAFETY: the slot exists. Whoever marks it first is the only one that uses its value.
    unsafe {
        if is_new {
            table.set_value(bucket, slot, value);
            return (Fate::Claimed, V::zeroed());
        }
        let old = table.value(bucket, slot);
        if size_of::<V>() > 0 {
            table.set_value(bucket, slot, operation.combine(old, value));
        }
        (Fate::Merged, old)
    }
}
