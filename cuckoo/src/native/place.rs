//! Places pairs one by one.

use super::append::{put, value_at};
use super::atomics::counter;
use super::locks::Locks;
use super::table::Table;
use crate::device::{NO_BUCKET, PlacePairs};
use crate::hash::{Choices, Hash};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use std::sync::atomic::Ordering;

/// A pair on its way to a slot.
struct Walker<C, V> {
    key: C,
    value: V,
    choices: Choices,
    /// Which of its buckets is next, and which is the last that it tries.
    choice: u32,
    last: u32,
    /// The bucket it was displaced from, which it does not try again.
    origin: u32,
    /// The number of pairs that were displaced on the way.
    displaced: u32,
}

impl<C: KeyCode, V> Walker<C, V> {
    /// A pair that comes from this bucket, which it does not try again.
    #[inline(always)]
    fn new(key: C, value: V, hash: Hash, first: u32, origin: u32, displaced: u32) -> Self {
        let choices = hash.choices(key);
        // Its last bucket that is not the origin. If all are, it tries the origin once more.
        let mut last = hash.hashes - 1;
        while last > 0 && choices.get(last) == origin {
            last -= 1;
        }
        let mut walker = Self { key, value, choices, choice: first, last, origin, displaced };
        walker.pass_origin();
        walker
    }

    /// Goes to the next bucket that is not the origin.
    #[inline(always)]
    fn pass_origin(&mut self) {
        while self.choice < self.last && self.bucket() == self.origin {
            self.choice += 1;
        }
    }

    #[inline(always)]
    fn bucket(&self) -> u32 {
        self.choices.get(self.choice)
    }
}

/// One thread alone locks nothing. A part has several pairs on their way, and goes on with another one while a bucket comes
/// from memory.
///
/// # Safety
/// The contract of [`PlacePairs`].
pub unsafe fn place_pairs<C: KeyCode, V: Pod, const WIDTH: usize>(kernel: PlacePairs<C, V, WIDTH>, team: Team) {
    /// The pairs on their way at the same time.
    const WALKERS: usize = 16;
    /// A pair takes as long as so many elements of other kernels.
    const WEIGHT: usize = 8;
    let PlacePairs { pairs, count, table, locks, skip_first, limit, leftovers, unplaced, cleared, .. } = kernel;
    let (table, hash) = (Table::new(table), table.map.hash);
    // SAFETY: nothing writes the inputs. The locks and the counter are used only in this way.
    let (keys, values, count, locks, unplaced) = unsafe {
        cleared.as_mut_ptr().write_bytes(0, cleared.len());
        let count = count.as_slice().first().map_or(0, |&count| count as usize);
        (pairs.keys.as_slice(), pairs.values.as_slice(), count, Locks::new(locks), counter(unplaced, 0))
    };
    let keys = &keys[..keys.len().min(count)];
    let parts = team.parts(WEIGHT * keys.len());
    let is_alone = parts == 1;
    let place = |part: usize| {
        let end = |part: usize| (keys.len() as u64 * part as u64 / parts as u64) as usize;
        let mut positions = end(part)..end(part + 1);
        // The slot whose key is displaced is chosen at random.
        let mut random = positions.start as u32;
        let mut next = || {
            let at = positions.next()?;
            let walker = Walker::new(keys[at], value_at(values, at), hash, skip_first, NO_BUCKET, 0);
            table.prefetch(walker.bucket());
            Some(walker)
        };
        let mut walkers: [Option<Walker<C, V>>; WALKERS] = core::array::from_fn(|_| next());
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for place in &mut walkers {
                let Some(walker) = place else { continue };
                is_done = false;
                let bucket = walker.bucket();
                if !is_alone {
                    locks.lock(bucket);
                }
                // SAFETY: the bucket exists. Only the holder of its lock uses it.
                let there = unsafe { table.load(bucket) };
                let (empties, deads) = table.free(bucket, &there);
                let free = empties | deads;
                let displaces = free == 0 && walker.choice == walker.last && walker.displaced < limit;
                let mut old = (walker.key, walker.value);
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
                        table.keys(bucket).add(slot as usize).write(walker.key);
                        table.set_value(bucket, slot, walker.value);
                    }
                }
                if !is_alone {
                    locks.unlock(bucket);
                }
                if free != 0 {
                    *place = next();
                } else if displaces {
                    *walker = Walker::new(old.0, old.1, hash, 0, bucket, walker.displaced + 1);
                    table.prefetch(walker.bucket());
                } else if walker.choice < walker.last {
                    walker.choice += 1;
                    walker.pass_origin();
                    table.prefetch(walker.bucket());
                } else {
                    let index = unplaced.fetch_add(1, Ordering::Relaxed) as usize;
                    if index < leftovers.keys.len() {
                        // SAFETY: positions in the list are given once.
                        unsafe { put(leftovers, index, walker.key, walker.value) };
                    }
                    *place = next();
                }
            }
        }
    };
    // SAFETY: the body captures arguments, locks and a counter. Buckets are used under their locks.
    unsafe { team.each(parts, place) };
}
