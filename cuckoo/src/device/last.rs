//! Finds the last one of equal keys in a batch, without sorting it.
//!
//! A temporary hash table with open addressing holds one position per key. It has two entries of 4 bytes per position
//! of the batch, so that of a batch of 2^20 keys stays in the L2 cache.

use crate::hash::Hash;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::kernel::{Buffer, Param};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::{DeviceSliceMut, Error, Stream};
use gpu_primitives::{Global, GlobalMut};

/// The number of entries per position. A half-full table has short probe sequences.
#[cfg(not(target_arch = "nvptx64"))]
pub const ENTRIES_PER_POSITION: usize = 2;

/// The temporary hash table: the latest position of some keys of a batch.
///
/// An entry is a position plus one plus `base`. Entries up to `base` are free: they are zero, or from an earlier batch. So
/// the entries need not be cleared between batches, as long as the base grows by the length of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    pub(crate) words: GlobalMut<u32>,
    hash: Hash,
    pub(crate) base: u32,
    padding: u32,
}

// SAFETY: a `repr(C)` struct of parameters without padding.
unsafe impl Param for Entries {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Entries {
    /// Returns these entries as an argument for kernels on `stream`. The hash functions decide where a key's search begins.
    pub fn view<'a>(
        stream: &Stream,
        words: &'a mut DeviceSliceMut<'_, u32>,
        hash: Hash,
        base: u32,
    ) -> Result<View<'a, Self>, Error> {
        let words = words.view_mut(stream)?;
        // SAFETY: the result borrows the same memory as the view.
        Ok(unsafe { View::new(Self { words: words.into_param(), hash, base, padding: 0 }, Reach::none()) })
    }
}

impl Entries {
    /// Returns the first entry that a key may have.
    #[inline(always)]
    pub fn home<C: KeyCode>(self, key: C) -> usize {
        ((self.spread(key) as u64 * self.words.len() as u64) >> 32) as usize
    }

    /// Returns 32 bits that depend on every bit of the key.
    #[inline(always)]
    pub fn spread<C: KeyCode>(self, key: C) -> u32 {
        self.hash.choices(key).spread()
    }

    /// Returns the entry after this one, cyclically.
    #[inline(always)]
    pub fn after(self, entry: usize) -> usize {
        if entry + 1 == self.words.len() { 0 } else { entry + 1 }
    }

    /// Returns the key whose position an entry holds.
    ///
    /// # Safety
    /// The entry is not free, and `keys` are those of the batch.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn key<C: KeyCode>(self, keys: Global<C>, there: u32) -> C {
        keys.get((there - self.base) as usize - 1)
    }

    /// Records a position of its key. Returns another position that was recorded of this key, or `None` if it is the first.
    ///
    /// A taken entry keeps its key: a thread with the same key only raises the position.
    ///
    /// # Safety
    /// There are more entries than keys. `key` is the key at `position`. The entries are of this batch.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn record<C: KeyCode>(self, keys: Global<C>, position: usize, key: C) -> Option<usize> {
        let mine = self.base + position as u32 + 1;
        let mut entry = self.home(key);
        // Ends: there are more entries than keys.
        loop {
            let mut there = self.words.atomic_load(entry, Scope::Gpu, Order::Relaxed);
            if there <= self.base {
                let seen = self.words.compare_exchange(entry, there, mine, Scope::Gpu, Order::Relaxed);
                if seen == there {
                    return None;
                }
                there = seen;
            }
            if self.key(keys, there) == key {
                if there < mine {
                    self.words.atomic_rmw(Rmw::Max, entry, mine, Scope::Gpu, Order::Relaxed);
                }
                return Some((there - self.base) as usize - 1);
            }
            entry = self.after(entry);
        }
    }

    /// Raises the position of a key to this one, if the key has an entry.
    ///
    /// # Safety
    /// The requirements of [`record`](Self::record). While the kernel runs, no key gets its first entry.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn raise<C: KeyCode>(self, keys: Global<C>, position: usize, key: C) {
        let mine = self.base + position as u32 + 1;
        let mut entry = self.home(key);
        // Ends: there are more entries than keys.
        loop {
            let there = self.words.atomic_load(entry, Scope::Gpu, Order::Relaxed);
            if there <= self.base {
                return;
            }
            if self.key(keys, there) == key {
                if there < mine {
                    self.words.atomic_rmw(Rmw::Max, entry, mine, Scope::Gpu, Order::Relaxed);
                }
                return;
            }
            entry = self.after(entry);
        }
    }

    /// Returns whether a position of this key is recorded.
    ///
    /// # Safety
    /// The requirements of [`record`](Self::record). While the kernel runs, nobody changes the entries.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn has<C: KeyCode>(self, keys: Global<C>, key: C) -> bool {
        let mut entry = self.home(key);
        // Ends: there are more entries than keys.
        loop {
            let there = self.words.get(entry);
            if there <= self.base {
                return false;
            }
            if self.key(keys, there) == key {
                return true;
            }
            entry = self.after(entry);
        }
    }

    /// Returns whether `position` is the last one recorded of its key.
    ///
    /// # Safety
    /// The requirements of [`record`](Self::record). While the kernel runs, nobody changes the entries.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn is_last<C: KeyCode>(self, keys: Global<C>, position: usize, key: C) -> bool {
        let mine = self.base + position as u32 + 1;
        let mut entry = self.home(key);
        // Ends: there are more entries than keys.
        loop {
            let there = self.words.get(entry);
            if there == mine {
                return true;
            }
            if there <= self.base || self.key(keys, there) == key {
                return false;
            }
            entry = self.after(entry);
        }
    }
}
