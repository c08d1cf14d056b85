//! The buckets of a table, and searches in them.

use super::atomics;
use crate::hash::{Choices, Map};
use crate::seek::{Seek, Sought};
use crate::view::{Bucket, CuckooView, Position, Slots, TableMut, bucket_bytes, key_index, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use std::ops::Range;

/// The buckets of a table in the memory of the host.
pub struct Table<C, V, const WIDTH: usize> {
    keys: *mut C,
    values: *mut V,
    pub map: Map<C>,
}

// Derived impls would require `Copy` of the type parameters.
impl<C: KeyCode, V, const WIDTH: usize> Clone for Table<C, V, WIDTH> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: KeyCode, V, const WIDTH: usize> Copy for Table<C, V, WIDTH> {}

/// What is known of a key after a search in some of its buckets.
pub enum Search<T> {
    /// It is there.
    Found(T),
    /// It is not in the table.
    Absent,
    /// It may be in a later bucket.
    Open,
}

impl<T> Search<T> {
    /// Returns where the key is.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::Open => None,
        }
    }
}

/// Where a key is, and what marks its slot if the key is deleted.
pub struct FoundSlot<C> {
    pub bucket: u32,
    pub slot: u32,
    free: C,
}

/// Requests the memory at an address, which need not exist.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not fault, and every x86-64 processor has it.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> Table<C, V, WIDTH> {
    /// Makes it of the argument of a kernel.
    ///
    /// # Panics
    /// If the memory does not have all buckets.
    pub fn new(table: TableMut<C, V, WIDTH>) -> Self {
        let TableMut { keys, values, map } = table;
        assert!(key_index::<C, V>(WIDTH, map.hash.buckets) <= keys.len(), "the memory has all buckets");
        Self { keys: keys.as_mut_ptr(), values: values.as_mut_ptr(), map }
    }

    /// Makes it of the argument of a kernel that does not change the table.
    ///
    /// # Panics
    /// If the memory does not have all buckets.
    ///
    /// # Safety
    /// The result is used for reading.
    pub unsafe fn of_view(table: CuckooView<C, V, WIDTH>) -> Self {
        let CuckooView { keys, values, map } = table;
        assert!(key_index::<C, V>(WIDTH, map.hash.buckets) <= keys.len(), "the memory has all buckets");
        Self { keys: keys.as_ptr().cast_mut(), values: values.as_ptr().cast_mut(), map }
    }

    /// Returns the number of buckets.
    pub fn buckets(self) -> usize {
        self.map.hash.buckets as usize
    }

    /// Returns the address of the first key of a bucket.
    #[inline(always)]
    pub fn keys(self, bucket: u32) -> *mut C {
        self.keys.wrapping_add(key_index::<C, V>(WIDTH, bucket))
    }

    /// Returns the address of the first value of a bucket, unless values are zero-sized.
    #[inline(always)]
    pub fn values(self, bucket: u32) -> *mut V {
        if size_of::<V>() == 0 { self.values } else { self.values.wrapping_add(value_index::<C, V>(WIDTH, bucket)) }
    }

    /// Returns the value of a slot.
    ///
    /// # Safety
    /// The slot exists, and nothing else writes it.
    #[inline(always)]
    pub unsafe fn value(self, bucket: u32, slot: u32) -> V {
        // SAFETY: guaranteed by the caller.
        if size_of::<V>() == 0 { V::zeroed() } else { unsafe { self.values(bucket).add(slot as usize).read() } }
    }

    /// Sets the value of a slot.
    ///
    /// # Safety
    /// The slot exists, and nothing else uses its value.
    #[inline(always)]
    pub unsafe fn set_value(self, bucket: u32, slot: u32, value: V) {
        if size_of::<V>() > 0 {
            // SAFETY: guaranteed by the caller.
            unsafe { self.values(bucket).add(slot as usize).write(value) };
        }
    }

    /// Loads the keys of a bucket.
    ///
    /// # Safety
    /// The bucket exists, and nothing writes its keys.
    #[inline(always)]
    pub unsafe fn load(self, bucket: u32) -> Bucket<C, WIDTH> {
        // SAFETY: guaranteed by the caller.
        Bucket(unsafe { self.keys(bucket).cast::<[C; WIDTH]>().read() })
    }

    /// Loads the keys of a bucket while other threads change them.
    ///
    /// # Safety
    /// The bucket exists, and other threads change its keys only atomically.
    #[inline(always)]
    pub unsafe fn load_atomic(self, bucket: u32) -> Bucket<C, WIDTH> {
        let keys = self.keys(bucket);
        // SAFETY: guaranteed by the caller: the bucket has so many keys.
        Bucket(std::array::from_fn(|slot| unsafe { atomics::load(keys.add(slot)) }))
    }

    /// Returns the empty slots of a bucket, and the dead ones.
    #[inline(always)]
    pub fn free(self, bucket: u32, keys: &Bucket<C, WIDTH>) -> (Slots, Slots) {
        (keys.slots_with(self.map.empty.of(bucket)), keys.slots_with(self.map.dead.of(bucket)))
    }

    /// Requests a bucket.
    #[inline(always)]
    pub fn prefetch(self, bucket: u32) {
        /// The bytes of a cache line.
        const LINE: usize = 64;
        let base = self.keys(bucket).cast::<u8>();
        for line in 0..bucket_bytes::<C, V>(WIDTH).div_ceil(LINE) {
            prefetch(base.wrapping_add(line * LINE));
        }
    }

    /// Calls `visit` with the positions of some keys, with the keys and their buckets, and with `false`. The first buckets
    /// are requested some time before, and what `request` requests for these. If the call returns `false`, the first bucket
    /// did not suffice: it is repeated some time later with `true`, and the second bucket is requested.
    #[inline(always)]
    pub fn each_key(
        self,
        keys: &[C],
        range: Range<usize>,
        request: impl Fn(u32),
        mut visit: impl FnMut(usize, C, Choices, bool) -> bool,
    ) {
        /// The keys whose buckets are requested together.
        const TOGETHER: usize = 32;
        let mut choices = [self.map.hash.choices(C::MIN); TOGETHER];
        let mut open = [0; TOGETHER];
        for start in range.clone().step_by(TOGETHER) {
            let keys = &keys[start..range.end.min(start + TOGETHER)];
            for (choices, &key) in choices.iter_mut().zip(keys) {
                *choices = self.map.hash.choices(key);
                self.prefetch(choices.get(0));
                request(choices.get(0));
            }
            let mut count = 0;
            for i in 0..keys.len() {
                if !visit(start + i, keys[i], choices[i], false) {
                    self.prefetch(choices[i].get(1));
                    open[count] = i;
                    count += 1;
                }
            }
            open[..count].iter().for_each(|&i| _ = visit(start + i, keys[i], choices[i], true));
        }
    }

    /// Returns which of a key's buckets to search: the first one, or the others.
    #[inline(always)]
    pub fn choices(self, others: bool) -> Range<u32> {
        if others { 1..self.map.hash.hashes } else { 0..1 }
    }

    /// Finds a key, in all of its buckets.
    ///
    /// # Safety
    /// Nothing changes the keys of the table.
    #[inline(always)]
    pub unsafe fn find(self, key: C) -> Option<Position> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.find_in(key, self.map.hash.choices(key), 0..self.map.hash.hashes) }.found()
    }

    /// Finds a key in some of its buckets.
    ///
    /// # Safety
    /// `choices` are those of the key, and nothing changes the keys of the table.
    #[inline(always)]
    pub unsafe fn find_in(self, key: C, choices: Choices, which: Range<u32>) -> Search<Position> {
        for choice in which {
            let bucket = choices.get(choice);
            // SAFETY: a bucket of a key exists. The caller guarantees the rest.
            let keys = unsafe { self.load(bucket) };
            let slots = keys.slots_with(key);
            if slots != 0 {
                return Search::Found(Position { bucket, slot: slots.trailing_zeros() });
            }
            if keys.slots_with(self.map.empty.of(bucket)) != 0 {
                return Search::Absent;
            }
        }
        Search::Open
    }

    /// Finds a key in some of its buckets while other threads delete keys.
    ///
    /// # Safety
    /// `choices` are those of the key. Meanwhile keys are changed only by [`erase`](Self::erase).
    #[inline(always)]
    pub unsafe fn hold(self, key: C, choices: Choices, which: Range<u32>) -> Search<FoundSlot<C>> {
        for choice in which {
            let bucket = choices.get(choice);
            let empty = self.map.empty.of(bucket);
            // SAFETY: a bucket of a key exists. The caller guarantees the rest.
            let keys = unsafe { self.load_atomic(bucket) };
            let (slots, has_empty) = (keys.slots_with(key), keys.slots_with(empty) != 0);
            if slots != 0 {
                let free = if has_empty { empty } else { self.map.dead.of(bucket) };
                return Search::Found(FoundSlot { bucket, slot: slots.trailing_zeros(), free });
            }
            if has_empty {
                return Search::Absent;
            }
        }
        Search::Open
    }

    /// Deletes a key if it is in some of its buckets. Finds `true` if this call has deleted it.
    ///
    /// # Safety
    /// The requirements of [`hold`](Self::hold).
    #[inline(always)]
    pub unsafe fn erase(self, key: C, choices: Choices, which: Range<u32>) -> Search<bool> {
        // SAFETY: guaranteed by the caller. The slot exists, and is changed only in this way.
        unsafe {
            match self.hold(key, choices, which) {
                Search::Found(FoundSlot { bucket, slot, free }) => {
                    let at = self.keys(bucket).add(slot as usize);
                    Search::Found(atomics::compare_exchange(at, key, free) == key)
                }
                Search::Absent => Search::Absent,
                Search::Open => Search::Open,
            }
        }
    }

    /// Finds a key, or claims the first free slot of its buckets: see [`TableMut::seek`] for why this needs no locks.
    ///
    /// # Safety
    /// `choices` are those of the key. Meanwhile the keys are changed only in this way.
    pub unsafe fn seek(self, key: C, choices: Choices) -> Sought {
        let hashes = self.map.hash.hashes;
        let found = |bucket: u32, slots: Slots| Sought { outcome: Seek::Found, bucket, slot: slots.trailing_zeros() };
        // Looks for the key, and for the first bucket with a free slot on the way.
        let (mut free_choice, mut free) = (hashes, (0, 0));
        for choice in 0..hashes {
            let bucket = choices.get(choice);
            // SAFETY: a bucket of a key exists. The caller guarantees the rest.
            let keys = unsafe { self.load_atomic(bucket) };
            let slots = keys.slots_with(key);
            if slots != 0 {
                return found(bucket, slots);
            }
            let (empties, deads) = self.free(bucket, &keys);
            if free_choice == hashes && empties | deads != 0 {
                (free_choice, free) = (choice, (empties, deads));
            }
            if empties != 0 {
                break;
            }
        }
        // The slots that were free may have been claimed since. No others have become free.
        for choice in free_choice..hashes {
            let bucket = choices.get(choice);
            if choice > free_choice {
                // SAFETY: as above.
                let keys = unsafe { self.load_atomic(bucket) };
                let slots = keys.slots_with(key);
                if slots != 0 {
                    return found(bucket, slots);
                }
                free = self.free(bucket, &keys);
            }
            // SAFETY: as above.
            if let Some((slot, seen)) = unsafe { self.claim(bucket, free, key, |seen| seen == key) } {
                let outcome = if seen == key { Seek::Found } else { Seek::Claimed };
                return Sought { outcome, bucket, slot };
            }
        }
        Sought { outcome: Seek::Full, bucket: 0, slot: 0 }
    }

    /// Claims the first of the free slots of a bucket that is still free, or stops at one whose key will do as well. Returns
    /// the slot, and what was in it.
    ///
    /// # Safety
    /// The bucket exists. Its slots were empty and dead as `free` says. Meanwhile they are changed only in this way.
    #[inline(always)]
    pub unsafe fn claim(
        self,
        bucket: u32,
        (empties, deads): (Slots, Slots),
        key: C,
        will_do: impl Fn(C) -> bool,
    ) -> Option<(u32, C)> {
        let mut free = empties | deads;
        while free != 0 {
            let slot = free.trailing_zeros();
            let is_empty = (empties >> slot) & 1 != 0;
            let marker = if is_empty { self.map.empty.of(bucket) } else { self.map.dead.of(bucket) };
            // SAFETY: guaranteed by the caller.
            let seen = unsafe { atomics::compare_exchange(self.keys(bucket).add(slot as usize), marker, key) };
            if seen == marker || will_do(seen) {
                return Some((slot, seen));
            }
            free &= free - 1;
        }
        None
    }
}
