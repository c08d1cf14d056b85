//! Keys with optional values.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, Shared};
use bytemuck::Pod;
use core::mem::MaybeUninit;

/// Keys and values in one kind of memory. Zero-sized values are not accessed.
#[derive(Clone, Copy)]
pub(crate) struct Items<K, V> {
    pub keys: K,
    pub values: V,
}

macro_rules! reading {
    ($view:ident) => {
        impl<K: Pod, V: Pod> Items<$view<K>, $view<V>> {
            /// Returns the `len` items from `start`.
            ///
            /// # Safety
            /// The items exist.
            #[inline(always)]
            pub(crate) unsafe fn slice(self, start: usize, len: usize) -> Self {
                Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
            }

            /// Returns item `index`.
            ///
            /// # Safety
            /// The item exists, and no other thread writes it at the same time.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn get(self, index: usize) -> (K, V) {
                (self.keys.get(index), self.value(index))
            }

            /// Returns value `index`.
            ///
            /// # Safety
            /// Same as [`get`](Self::get).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn value(self, index: usize) -> V {
                if size_of::<V>() == 0 { V::zeroed() } else { self.values.get(index) }
            }
        }
    };
}

macro_rules! writing {
    ($view:ident) => {
        impl<K: Pod, V: Pod> Items<$view<K>, $view<V>> {
            /// Writes item `index`.
            ///
            /// # Safety
            /// The item exists, and no other thread uses it at the same time.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn set(self, index: usize, key: K, value: V) {
                self.keys.set(index, key);
                if size_of::<V>() > 0 {
                    self.values.set(index, value);
                }
            }
        }
    };
}

reading!(Global);
reading!(GlobalMut);
reading!(Shared);
writing!(GlobalMut);
writing!(Shared);

/// The items of a tile in shared memory: `capacity` of them, and one key more.
impl<K: Pod, V: Pod> Items<Shared<K>, Shared<V>> {
    /// Fills the tile. Each thread brings items that are as many apart as the block has threads: `item(j)` is that of row `j`. All of
    /// them are read before the first is written.
    ///
    /// # Safety
    /// All threads of the block call this, and then the barrier. The tile has `THREADS * ITEMS` items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn fill<const THREADS: u32, const ITEMS: usize>(self, item: impl Fn(u32) -> (K, V)) {
        let me = thread::thread_idx_x() as usize;
        let capacity = THREADS as usize * ITEMS;
        let mut row_keys = [K::zeroed(); ITEMS];
        let mut row_values = [V::zeroed(); ITEMS];
        for j in 0..ITEMS {
            (row_keys[j], row_values[j]) = item(j as u32);
        }
        let column = self.slice(me, capacity - me);
        for j in 0..ITEMS {
            column.set(j * THREADS as usize, row_keys[j], row_values[j]);
        }
        if me == 0 {
            self.keys.set(capacity, row_keys[0]);
        }
    }

    /// Writes the first `len` items of the tile to the output, from `start` on: see [`fill`](Self::fill).
    ///
    /// # Safety
    /// All threads of the block call this, after a barrier. There is room for the items, which nothing else uses.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn write<const THREADS: u32, const ITEMS: usize>(
        self,
        output: Items<GlobalMut<K>, GlobalMut<V>>,
        start: u32,
        len: u32,
    ) {
        let me = thread::thread_idx_x();
        let rest = len.saturating_sub(me);
        let column = output.slice((start + me.min(len)) as usize, rest as usize);
        let items = self.slice(me as usize, THREADS as usize * ITEMS - me as usize);
        for j in 0..ITEMS {
            if (j as u32 * THREADS) < rest {
                let (key, value) = items.get(j * THREADS as usize);
                column.set(j * THREADS as usize, key, value);
            }
        }
    }

    /// Writes the items of the thread's chunk, all of which were merged.
    ///
    /// # Safety
    /// The chunk begins at `chunk`, and no other thread uses it at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn set_chunk<const ITEMS: usize>(self, chunk: u32, merged: &[MaybeUninit<(K, V)>; ITEMS]) {
        let own = self.slice(chunk as usize, ITEMS);
        for j in 0..ITEMS {
            let (key, value) = merged[j].assume_init();
            own.set(j, key, value);
        }
    }
}

impl<K: Pod, V: Pod> From<PairsMut<K, V>> for Items<GlobalMut<K>, GlobalMut<V>> {
    #[inline(always)]
    fn from(pairs: PairsMut<K, V>) -> Self {
        Self { keys: pairs.keys, values: pairs.values }
    }
}
