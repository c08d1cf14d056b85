//! A table into which the threads of your own kernels insert.

use crate::view::{Bucket, Slots, TableMut, key_index, value_index};
use bytemuck::Pod;
use core::mem::transmute_copy;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::kernel::{Buffer, Param};
use gpu_primitives::{GlobalMut, thread};

/// The number of counters of new keys. Threads that insert at the same time mostly use different ones.
pub const COUNTERS: usize = 512;

/// A table as an argument of your own kernels, whose threads call [`insert`](Self::insert), [`upsert`](Self::upsert) and
/// [`get`](Self::get), also for the same key at the same time.
///
/// A kernel sees a key as `C`, the unsigned integer with the same bits: `u32` or `u64`. It sees a value as `V`, its
/// [carrier](gpu_dictionary::Value::Carrier): `()`, `u32` or `u64`. `WIDTH` is the bucket width of the table.
///
/// A thread takes the first free slot of a key's buckets and moves no other key. If there is none, the call returns
/// [`Insertion::Full`], and the table is as before. How often that happens depends on the load after all insertions:
///
/// | load | buckets of 8, 2 hashes | buckets of 8, 4 hashes | buckets of 4, 2 hashes |
/// | --- | --- | --- | --- |
/// | 0.25 | less than 1 in a million | less than 1 in a million | 1 in 16,000 |
/// | 0.5 | 1 in 3,000 | less than 1 in a million | 1 in 280 |
/// | 0.6 | 1 in 600 | 1 in 80,000 | 1 in 100 |
/// | 0.8 | 1 in 60 | 1 in 600 | 1 in 23 |
///
/// So reserve room on the host before the launch, and have the kernel keep the pairs that found none. The host then inserts
/// these, and the table grows if it must.
#[repr(C)]
#[derive(Debug)]
pub struct CuckooMut<C, V, const WIDTH: usize = 8> {
    pub(crate) table: TableMut<C, V, WIDTH>,
    /// One bit per bucket, zero unless a thread is changing the bucket.
    pub(crate) locks: GlobalMut<u32>,
    /// The number of new keys is the sum of these.
    pub(crate) counters: GlobalMut<u64>,
}

// Derived impls would require `Copy` of the type parameters.
impl<C: KeyCode, V, const WIDTH: usize> Clone for CuckooMut<C, V, WIDTH> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C: KeyCode, V, const WIDTH: usize> Copy for CuckooMut<C, V, WIDTH> {}

// SAFETY: a `repr(C)` struct of parameters.
unsafe impl<C: KeyCode, V: Pod, const WIDTH: usize> Param for CuckooMut<C, V, WIDTH> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.table.buffers(name, visit);
        self.locks.buffers(name, visit);
        self.counters.buffers(name, visit);
    }
}

/// What became of a pair that a kernel inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the pair may have found no room"]
pub enum Insertion {
    /// The key was absent, and has this value now.
    New,
    /// The key was present, and its value has been replaced or combined.
    Present,
    /// The key is absent, and its buckets have no free slot. Nothing has changed.
    Full,
}

impl<C: KeyCode, V: Pod, const WIDTH: usize> CuckooMut<C, V, WIDTH> {
    /// Makes the argument of its parts.
    ///
    /// # Safety
    /// `locks` has a bit for every bucket, all zero. `counters` has [`COUNTERS`] elements.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) unsafe fn new(table: TableMut<C, V, WIDTH>, locks: GlobalMut<u32>, counters: GlobalMut<u64>) -> Self {
        const { assert!(matches!(size_of::<V>(), 0 | 4 | 8)) };
        Self { table, locks, counters }
    }

    /// Returns the value of a key, if the key is in the table. Takes no lock.
    ///
    /// Sees what the calling thread has inserted. Of what other threads insert at the same time it sees all of a pair or
    /// nothing.
    ///
    /// # Safety
    /// The caller is a kernel, and while it runs the table is used only through this argument.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, key: C) -> Option<V> {
        let position = self.search(key).ok()?;
        let slot = key_index::<C, V>(WIDTH, position.bucket) + position.slot as usize;
        // A slot that has the key keeps it. Reading it once more orders the reading of the value after its writing.
        self.table.keys.atomic_load(slot, Scope::Gpu, Order::Acquire);
        Some(self.value(position))
    }

    /// Inserts a pair, or replaces the value of a key that is present. If several threads insert the same key at the same
    /// time, the table has it once, with one of their values, and exactly one of them gets [`Insertion::New`].
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn insert(self, key: C, value: V) -> Insertion {
        self.upsert(key, value, |_, new| new)
    }

    /// Inserts a pair, or replaces the value of a key that is present by `combine(old, value)`. The change is atomic: threads
    /// that upsert the same key do so one after the other, in any order.
    ///
    /// Cost of a pair: the sectors of a lookup twice, the sector of the value, two atomics on a lock. Threads that change the
    /// same bucket wait for each other. The work is bounded: a key has at most four buckets, and no thread waits while it
    /// holds a lock. `combine` runs while its thread does, so it should be short.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get). `combine` does not use the table, and contains no barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn upsert(self, key: C, value: V, combine: impl Fn(V, V) -> V) -> Insertion {
        let map = self.table.map;
        let choices = map.hash.choices(key);
        // No slot becomes free while the kernel runs: a bucket without the key and without room stays so. Threads with the
        // same key go through its buckets in the same order, so they meet in the same one.
        let mut choice = match self.search(key) {
            Ok(position) => position.choice,
            Err(first_with_room) => first_with_room,
        };
        let mut outcome = Insertion::Full;
        while choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let (word, bit) = (bucket as usize / 32, 1 << (bucket % 32));
            if self.locks.atomic_rmw(Rmw::Or, word, bit, Scope::Gpu, Order::Acquire) & bit != 0 {
                thread::spin_hint();
                continue;
            }
            let at = key_index::<C, V>(WIDTH, bucket);
            let keys = Bucket::<C, WIDTH>::load_atomic(self.table.keys, at);
            let (own, free) = (keys.slots_with(key), self.free_slots(&keys, bucket));
            if own != 0 {
                let position = Found { choice, bucket, slot: own.trailing_zeros() };
                self.set_value(position, combine(self.value(position), value));
                outcome = Insertion::Present;
            } else if free != 0 {
                let position = Found { choice, bucket, slot: free.trailing_zeros() };
                self.set_value(position, value);
                // Whoever sees the key sees the value, too.
                self.table.keys.atomic_store(at + position.slot as usize, key, Scope::Gpu, Order::Release);
                outcome = Insertion::New;
            }
            self.locks.atomic_rmw(Rmw::And, word, !bit, Scope::Gpu, Order::Release);
            if outcome != Insertion::Full {
                break;
            }
            choice += 1;
        }
        if outcome == Insertion::New {
            let counter = choices.spread() as usize % COUNTERS;
            self.counters.atomic_add(counter, 1, Scope::Gpu, Order::Relaxed);
        }
        outcome
    }

    /// Finds a key. If it is absent, returns the first of its buckets that has room, or their number if none has.
    ///
    /// # Safety
    /// The requirements of [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn search(self, key: C) -> Result<Found, u32> {
        let map = self.table.map;
        let choices = map.hash.choices(key);
        let mut first_with_room = map.hash.hashes;
        let mut choice = 0;
        while choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let keys = Bucket::<C, WIDTH>::load_atomic(self.table.keys, key_index::<C, V>(WIDTH, bucket));
            let own = keys.slots_with(key);
            if own != 0 {
                return Ok(Found { choice, bucket, slot: own.trailing_zeros() });
            }
            if first_with_room == map.hash.hashes && self.free_slots(&keys, bucket) != 0 {
                first_with_room = choice;
            }
            // No search continues past a bucket with an empty slot.
            if keys.slots_with(map.empty.of(bucket)) != 0 {
                break;
            }
            choice += 1;
        }
        Err(first_with_room)
    }

    /// Returns the free slots of a bucket.
    #[inline(always)]
    fn free_slots(self, keys: &Bucket<C, WIDTH>, bucket: u32) -> Slots {
        keys.slots_with(self.table.map.empty.of(bucket)) | keys.slots_with(self.table.map.dead.of(bucket))
    }

    /// Reads a value atomically.
    ///
    /// # Safety
    /// The slot exists. Other threads write it only atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn value(self, Found { bucket, slot, .. }: Found) -> V {
        if size_of::<V>() == 0 {
            return V::zeroed();
        }
        let (base, len) = (self.table.values.as_mut_ptr(), self.table.values.len());
        let at = value_index::<C, V>(WIDTH, bucket) + slot as usize;
        if size_of::<V>() == 4 {
            transmute_copy(&GlobalMut::<u32>::from_raw(base.cast(), len).atomic_load(at, Scope::Gpu, Order::Relaxed))
        } else {
            transmute_copy(&GlobalMut::<u64>::from_raw(base.cast(), len).atomic_load(at, Scope::Gpu, Order::Relaxed))
        }
    }

    /// Writes a value atomically.
    ///
    /// # Safety
    /// The slot exists. Other threads use it only atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn set_value(self, Found { bucket, slot, .. }: Found, value: V) {
        if size_of::<V>() == 0 {
            return;
        }
        let (base, len) = (self.table.values.as_mut_ptr(), self.table.values.len());
        let at = value_index::<C, V>(WIDTH, bucket) + slot as usize;
        if size_of::<V>() == 4 {
            let values = GlobalMut::<u32>::from_raw(base.cast(), len);
            values.atomic_store(at, transmute_copy(&value), Scope::Gpu, Order::Relaxed);
        } else {
            let values = GlobalMut::<u64>::from_raw(base.cast(), len);
            values.atomic_store(at, transmute_copy(&value), Scope::Gpu, Order::Relaxed);
        }
    }
}

/// Where a key is.
#[derive(Clone, Copy)]
struct Found {
    /// Which of the key's buckets it is in.
    choice: u32,
    bucket: u32,
    slot: u32,
}
