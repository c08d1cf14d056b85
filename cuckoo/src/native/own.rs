//! Kernels that use a table as a user's own would. Only tests use them.

use super::locks::Locks;
use super::table::Table;
use crate::tally::{Enrol, Tally, counted_once};
use crate::translate::Translate;
use crate::view_mut::{COUNTERS, CuckooMut};
use crate::{Insertion, view::Position};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// A table into which threads insert. Every access to a bucket is under its lock.
struct Shared<'a, C, V, const WIDTH: usize> {
    table: Table<C, V, WIDTH>,
    locks: Locks<'a>,
    argument: CuckooMut<C, V, WIDTH>,
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> Shared<'_, C, V, WIDTH> {
    /// Makes it of the argument of a kernel.
    ///
    /// # Safety
    /// While the result is used, the table is used only by it.
    unsafe fn new(argument: CuckooMut<C, V, WIDTH>) -> Self {
        // SAFETY: guaranteed by the caller.
        Self { table: Table::new(argument.table), locks: unsafe { Locks::new(argument.locks) }, argument }
    }

    /// Calls a function with each bucket of a key, from some on, and with the slots that have the key, are empty and are
    /// dead, until it returns something.
    fn visit<R>(&self, key: C, from: u32, visit: impl Fn(u32, u32, [u32; 3]) -> Option<R>) -> Option<R> {
        let choices = self.table.map.hash.choices(key);
        (from..self.table.map.hash.hashes).find_map(|choice| {
            let bucket = choices.get(choice);
            self.locks.lock(bucket);
            // SAFETY: the bucket exists, and is used under its lock.
            let keys = unsafe { self.table.load(bucket) };
            let (empties, deads) = self.table.free(bucket, &keys);
            let result = visit(choice, bucket, [keys.slots_with(key), empties, deads]);
            self.locks.unlock(bucket);
            result
        })
    }

    /// Returns the value of a key, if it is in the table.
    fn get(&self, key: C) -> Option<V> {
        let found = self.visit(key, 0, |_, bucket, [own, empties, _]| match (own, empties) {
            (0, 0) => None,
            (0, _) => Some(None),
            // SAFETY: the slot exists, and is used under the lock of its bucket.
            _ => Some(Some(unsafe { self.table.value(bucket, own.trailing_zeros()) })),
        });
        found.flatten()
    }

    /// Inserts a pair, or combines the values: see [`CuckooMut::upsert`].
    fn upsert(&self, key: C, value: V, combine: impl Fn(V, V) -> V) -> Insertion {
        let hashes = self.table.map.hash.hashes;
        // The bucket that has the key, or else the first one with room: if a bucket has an empty slot, no later one has
        // the key.
        let first = std::cell::Cell::new(hashes);
        self.visit(key, 0, |choice, _, [own, empties, deads]| {
            if own != 0 || (first.get() == hashes && empties | deads != 0) {
                first.set(choice);
            }
            (own | empties != 0).then_some(())
        });
        let outcome = self.visit(key, first.get(), |_, bucket, [own, empties, deads]| {
            let free = empties | deads;
            let slot = if own != 0 { own } else { free }.trailing_zeros();
            // SAFETY: the slot exists, if there is one, and is used under the lock of its bucket.
            unsafe {
                if own != 0 {
                    self.table.set_value(bucket, slot, combine(self.table.value(bucket, slot), value));
                    return Some(Insertion::Present);
                }
                (free != 0).then(|| {
                    self.table.set_value(bucket, slot, value);
                    self.table.keys(bucket).add(slot as usize).write(key);
                    Insertion::New
                })
            }
        });
        if outcome == Some(Insertion::New) {
            let at = self.table.map.hash.choices(key).spread() as usize % COUNTERS;
            // SAFETY: there are so many counters, which are used only in this way.
            unsafe { super::atomics::counter(self.argument.counters, at) }.fetch_add(1, Ordering::Relaxed);
        }
        outcome.unwrap_or(Insertion::Full)
    }
}

/// # Safety
/// The contract of [`Tally`].
pub unsafe fn tally<C: KeyCode, const WIDTH: usize>(kernel: Tally<C, WIDTH>, team: Team) {
    let Tally { keys, table, outcomes, wrong, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    let (keys, table, wrong) = unsafe { (keys.as_slice(), Shared::new(table), super::atomics::words(wrong)) };
    let work = |_: usize, range: Range<usize>| {
        for i in range {
            let (key, other) = (keys[i], keys[(i * 7 + 3) % keys.len()]);
            let outcome = table.upsert(key, counted_once(key), |old, _| old + 1);
            // SAFETY: there is an outcome for each key, and no other part has this one.
            unsafe { outcomes.as_mut_ptr().add(i).write(outcome as u8) };
            let is_torn = table.get(other).is_some_and(|value| value >> 32 != counted_once(other) >> 32);
            let is_lost = (outcome == Insertion::Full) != table.get(key).is_none();
            wrong[0].fetch_add(u32::from(is_torn || is_lost), Ordering::Relaxed);
        }
    };
    // SAFETY: the body captures arguments. Buckets are used under their locks, counters atomically.
    unsafe { team.divide(keys.len(), work) };
}

/// # Safety
/// The contract of [`Enrol`].
pub unsafe fn enrol(kernel: Enrol, team: Team) {
    let Enrol { keys, set, positions, new, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    let (keys, set, positions, new) =
        unsafe { (keys.as_slice(), Shared::new(set), Shared::new(positions), super::atomics::words(new)) };
    let count = |counter: &AtomicU32, outcome: Insertion| {
        counter.fetch_add(u32::from(outcome == Insertion::New), Ordering::Relaxed);
    };
    let work = |_: usize, range: Range<usize>| {
        for i in range {
            count(&new[0], set.upsert(keys[i], (), |_, ()| ()));
            count(&new[1], positions.upsert(keys[i], i as u32, |_, new| new));
        }
    };
    // SAFETY: the body captures arguments. Buckets are used under their locks, counters atomically.
    unsafe { team.divide(keys.len(), work) };
}

/// # Safety
/// The contract of [`Translate`].
pub unsafe fn translate(kernel: Translate, team: Team) {
    let Translate { table, steps, numbers, .. } = kernel;
    // SAFETY: the table is only read.
    let table = unsafe { Table::of_view(table) };
    let work = |_: usize, range: Range<usize>| {
        for i in range {
            // SAFETY: the number exists, and no other part has it. Nothing changes the table.
            unsafe {
                let number = numbers.as_mut_ptr().add(i);
                for _ in 0..steps {
                    let Some(Position { bucket, slot }) = table.find(*number) else { break };
                    *number = table.value(bucket, slot);
                }
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes numbers of its own.
    unsafe { team.divide(numbers.len(), work) };
}
