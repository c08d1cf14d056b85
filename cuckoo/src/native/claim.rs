//! Insertion in place.

use super::append::{put, value_at};
use super::atomics::{add, counter};
use super::table::Table;
use crate::device::{Claim, Claims, Fate, PairsMut};
use crate::hash::Choices;
use crate::seek::{Seek, Sought};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::kernel::Team;
use gpu_primitives::monoid::Combine;
use std::ops::Range;
use std::sync::Mutex;

/// Every part has a range of buckets, and inserts the keys whose first bucket is one of them, in their order. So equal keys
/// come one after the other, and each of them finds what the one before has done: no pair is recorded in the entries, and
/// nothing is left for later kernels. A key whose first bucket has no empty slot comes later: its other buckets belong to
/// any part.
///
/// # Safety
/// The contract of [`Claim`].
pub unsafe fn claim<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(kernel: Claim<C, V, WIDTH, O>, team: Team) {
    let Claim { table, pairs, count, marks, operation, history, overflow, counts, .. } = kernel;
    let table = Table::new(table);
    // SAFETY: nothing writes the inputs, and the counters are used only in this way.
    let (keys, values, count, [new, overflowed]) = unsafe {
        let counters = [Claims::New, Claims::Overflowed].map(|at| counter(counts, at as usize));
        (pairs.keys.as_slice(), pairs.values.as_slice(), count.as_slice().first(), counters)
    };
    let keys = &keys[..count.map_or(keys.len(), |&count| keys.len().min(count as usize))];
    assert!(marks.is_empty() || marks.words.len() >= table.buckets(), "there is a mark for each bucket");
    let parts = team.parts(keys.len());
    let later: Vec<Mutex<Vec<u32>>> = (0..parts).map(|_| Mutex::default()).collect();
    let gives_way = |i: usize| marks.may_give_way() && keys.get(i + 1) == Some(&keys[i]);

    let insert = |part: usize| {
        let end = |part: usize| (table.buckets() as u64 * part as u64 / parts as u64) as u32;
        let mut later_here = Vec::new();
        let mut new_here = 0;
        let mut fates = Fates::new(history);
        each_owned(
            table,
            keys,
            end(part)..end(part + 1),
            |bucket| marks.prefetch(bucket),
            |i, bucket| {
                let (key, value) = (keys[i], value_at(values, i));
                if gives_way(i) {
                    return fates.push(i, Fate::Superseded, None);
                }
                // SAFETY: the bucket exists, and only this part uses it and its mark meanwhile.
                unsafe {
                    let there = table.load(bucket);
                    let own = there.slots_with(key);
                    if own != 0 {
                        let slot = own.trailing_zeros();
                        let is_first = marks.is_empty() || marks.mark_alone(bucket, slot);
                        let old = combine_at(table, bucket, slot, value, &operation);
                        let (fate, old) = if is_first { (Fate::Merged, Some(old)) } else { (Fate::Superseded, None) };
                        return fates.push(i, fate, old);
                    }
                    let (empties, deads) = table.free(bucket, &there);
                    if empties == 0 {
                        return later_here.push(i as u32);
                    }
                    let slot = (empties | deads).trailing_zeros();
                    table.keys(bucket).add(slot as usize).write(key);
                    table.set_value(bucket, slot, value);
                    if !marks.is_empty() {
                        marks.mark_alone(bucket, slot);
                    }
                }
                new_here += 1;
                fates.push(i, Fate::Claimed, None);
            },
        );
        drop(fates);
        add(new, new_here);
        *later[part].lock().expect("no part has panicked") = later_here;
    };
    // SAFETY: the body captures arguments, a counter and locks. Each call writes buckets and pairs of its own.
    unsafe { team.each(parts, insert) };

    let insert_later = |part: usize| {
        let later = std::mem::take(&mut *later[part].lock().expect("no part has panicked"));
        let mut list = Overflow::new(if marks.is_empty() { 0 } else { later.len() });
        let mut new_here = 0;
        let choices_of = |i: u32| table.map.hash.choices(keys[i as usize]);
        for (at, &i) in later.iter().enumerate() {
            if let Some(&next) = later.get(at + AHEAD) {
                let choices = choices_of(next);
                table.prefetch(choices.get(0));
                table.prefetch(choices.get(1));
                list.prefetch(choices);
            }
            let (key, value, choices) = (keys[i as usize], value_at(values, i as usize), choices_of(i));
            // SAFETY: the buckets are those of the key. Keys are changed only in this way, marks atomically, and the value
            // of a slot only by the part that has its key.
            let (fate, old) = unsafe {
                let Sought { outcome, bucket, slot } = table.seek(key, choices);
                let is_first = outcome == Seek::Full || marks.is_empty() || marks.mark_natively(bucket, slot);
                match outcome {
                    Seek::Full => (list.push(key, value, choices, &operation), None),
                    Seek::Claimed => {
                        table.set_value(bucket, slot, value);
                        (Fate::Claimed, None)
                    }
                    Seek::Found => {
                        let old = combine_at(table, bucket, slot, value, &operation);
                        if is_first { (Fate::Merged, Some(old)) } else { (Fate::Superseded, None) }
                    }
                }
            };
            new_here += u64::from(matches!(fate, Fate::Claimed | Fate::Overflowed));
            // SAFETY: no other part has this position.
            unsafe { note(history, i as usize, fate, old) };
        }
        add(new, new_here);
        let start = overflowed.fetch_add(list.pairs.len() as u64, std::sync::atomic::Ordering::Relaxed) as usize;
        // SAFETY: positions in the list are given once.
        list.pairs.iter().enumerate().for_each(|(i, &(key, value))| unsafe { put(overflow, start + i, key, value) });
    };
    // SAFETY: the body captures arguments, counters and locks. Each call writes pairs of its own, and slots as the kernel does.
    unsafe { team.each(parts, insert_later) };
}

/// So many keys before its turn, the bucket of a key is requested.
const AHEAD: usize = 16;

/// Calls `visit` with the positions of keys whose first bucket is one of these, in their order, and with that bucket. It is
/// requested some time before, and what `request` requests for it.
#[inline(always)]
fn each_owned<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: Table<C, V, WIDTH>,
    keys: &[C],
    buckets: Range<u32>,
    request: impl Fn(u32),
    mut visit: impl FnMut(usize, u32),
) {
    /// The keys of which those are found that belong to the part.
    const TOGETHER: usize = 256;
    let mut owned = [(0u32, 0u32); TOGETHER];
    for start in (0..keys.len()).step_by(TOGETHER) {
        let mut count = 0;
        for (i, &key) in keys[start..].iter().take(TOGETHER).enumerate() {
            let bucket = table.map.hash.choices(key).get(0);
            // Without a branch: whose key this is cannot be foreseen.
            owned[count] = ((start + i) as u32, bucket);
            count += usize::from(buckets.contains(&bucket));
        }
        let owned = &owned[..count];
        let request = |&(_, bucket): &(u32, u32)| {
            table.prefetch(bucket);
            request(bucket);
        };
        owned.iter().take(AHEAD).for_each(request);
        for (at, &(i, bucket)) in owned.iter().enumerate() {
            if let Some(next) = owned.get(at + AHEAD) {
                request(next);
            }
            visit(i as usize, bucket);
        }
    }
}

/// Combines the value of a slot with a new one. Returns the old one.
///
/// # Safety
/// The slot exists, and nothing else uses its value.
#[inline(always)]
unsafe fn combine_at<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: Table<C, V, WIDTH>,
    bucket: u32,
    slot: u32,
    value: V,
    operation: &O,
) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let old = table.value(bucket, slot);
        if size_of::<V>() > 0 {
            table.set_value(bucket, slot, operation.combine(old, value));
        }
        old
    }
}

/// Notes what became of a pair, if there is a history.
///
/// # Safety
/// Nothing else uses this position.
#[inline(always)]
unsafe fn note<V: Pod>(history: PairsMut<u8, V>, at: usize, fate: Fate, old: Option<V>) {
    if !history.keys.is_empty() {
        // SAFETY: guaranteed by the caller.
        unsafe { put(history, at, fate as u8, old.unwrap_or(V::zeroed())) };
    }
}

/// The number of fates that wait.
const WAITING: usize = 128;

/// Fates that wait. Several are noted at once: other parts note those of neighbouring pairs. The last ones are noted at the end of
/// the part, also if the operation panics: the insertion is then undone by them.
struct Fates<V: Pod> {
    history: PairsMut<u8, V>,
    waiting: [(u32, Fate, Option<V>); WAITING],
    count: usize,
}

impl<V: Pod> Fates<V> {
    fn new(history: PairsMut<u8, V>) -> Self {
        Self { history, waiting: [(0, Fate::Superseded, None); WAITING], count: 0 }
    }

    #[inline(always)]
    fn push(&mut self, at: usize, fate: Fate, old: Option<V>) {
        self.waiting[self.count] = (at as u32, fate, old);
        self.count += 1;
        if self.count == WAITING {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let count = std::mem::take(&mut self.count);
        // SAFETY: each pair has one part, which notes it once.
        self.waiting[..count].iter().for_each(|&(at, fate, old)| unsafe { note(self.history, at as usize, fate, old) });
    }
}

impl<V: Pod> Drop for Fates<V> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Pairs that find no slot: each key once.
struct Overflow<C, V> {
    pairs: Vec<(C, V)>,
    /// A hash table: 0, or the index of a pair plus one. Empty if all keys are different.
    entries: Vec<u32>,
}

impl<C: KeyCode, V: Pod> Overflow<C, V> {
    /// Makes a list that finds equal keys among so many. If there are none, keys are known to be different.
    fn new(keys: usize) -> Self {
        let entries = if keys == 0 { 0 } else { (2 * keys).next_power_of_two() };
        Self { pairs: Vec::new(), entries: vec![0; entries] }
    }

    /// Returns where the search for a key begins. The keys of a part have similar first hashes.
    #[inline(always)]
    fn home(&self, choices: Choices) -> usize {
        let mixed = (choices.spread() ^ choices.salt().wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
        ((u64::from(mixed) * self.entries.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn prefetch(&self, choices: Choices) {
        if !self.entries.is_empty() {
            super::table::prefetch(&raw const self.entries[self.home(choices)]);
        }
    }

    /// Adds a pair, or combines its value with that of its key. Returns its fate.
    #[inline(always)]
    fn push<O: Combine<V>>(&mut self, key: C, value: V, choices: Choices, operation: &O) -> Fate {
        if !self.entries.is_empty() {
            let mut entry = self.home(choices);
            // Ends: there are more entries than keys.
            while self.entries[entry] != 0 {
                let (known, old) = &mut self.pairs[self.entries[entry] as usize - 1];
                if *known == key {
                    *old = operation.combine(*old, value);
                    return Fate::Superseded;
                }
                entry = (entry + 1) & (self.entries.len() - 1);
            }
            self.entries[entry] = self.pairs.len() as u32 + 1;
        }
        self.pairs.push((key, value));
        Fate::Overflowed
    }
}
