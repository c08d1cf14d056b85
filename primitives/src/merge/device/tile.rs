//! A block's tile of a two-way merge: which items it takes, how they are loaded into shared memory, and how a thread
//! walks through its share of them. The search for sorted needles uses the same merge.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::kernel::is_contradictory;
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id};
use crate::block::merge::{Pieces, path};
use crate::compare::KeyOrder;
use crate::form::{Buffer, Param, ReadParam};
use crate::view::{Global, Shared};
use bytemuck::Pod;

/// Two pieces of global memory, indexed as one.
#[derive(Clone, Copy)]
pub struct Joined<T> {
    a: Global<T>,
    /// Shifted so that its first element has the index after the last one of `a`.
    b: Global<T>,
}

impl<T: Pod> Joined<T> {
    /// Returns item `index`.
    ///
    /// # Safety
    /// The item exists.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        let view = if index < self.a.len() { self.a } else { self.b };
        view.get_shifted(index)
    }

    /// Copies the first `count` items, at most `THREADS * ITEMS`, to shared memory.
    ///
    /// # Safety
    /// The items exist, and `to` has room for them; all `THREADS` threads of the block must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load<const THREADS: u32, const ITEMS: usize>(self, to: Shared<T>, count: u32) {
        let own = thread::thread_idx_x() as usize;
        if count as usize == THREADS as usize * ITEMS {
            let mut items = [T::zeroed(); ITEMS];
            for i in 0..ITEMS {
                items[i] = self.get(own + i * THREADS as usize);
            }
            for i in 0..ITEMS {
                to.set(own + i * THREADS as usize, items[i]);
            }
        } else {
            let mut at = own;
            while at < count as usize {
                to.set(at, self.get(at));
                at += THREADS as usize;
            }
        }
    }
}

/// The items of both sides that a block merges.
#[derive(Clone, Copy)]
pub struct Tile {
    /// The first output.
    pub start: usize,
    /// The number of outputs: a whole tile, except for the last block.
    pub count: u32,
    /// The first item of the first side.
    pub a_start: usize,
    /// The number of items from the first side.
    pub a_len: u32,
    /// The first item of the second side.
    pub b_start: usize,
    /// The number of items from the second side.
    pub b_len: u32,
}

/// What [`MergePartition`](super::kernel::MergePartition) has written, as a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TileSplits {
    /// How many of the outputs before each tile come from the first side.
    pub(crate) boundaries: Global<u64>,
    /// In its bytes, whether the comparator contradicts itself.
    pub(crate) verdicts: Global<u64>,
}

// SAFETY: `repr(C)`: two views.
unsafe impl Param for TileSplits {
    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.boundaries.buffers("splits", visit);
        self.verdicts.buffers("verdicts", visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl ReadParam for TileSplits {}

impl Tile {
    /// Returns tile `index`, where tiles have `tile` outputs, the first side has `a_len` items and both sides have
    /// `total`.
    ///
    /// `splits` and `verdicts` are what `MergePartition` has written for this tile size. If its verdict is that the
    /// comparator contradicts itself, the sides are split as if all of the first came before all of the second.
    ///
    /// # Safety
    /// The boundaries of the tile were written; all lanes of the warp must call this. A tile beyond the last item has no
    /// outputs, and nothing else is said about it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn nth(
        index: usize,
        tile: usize,
        a_len: usize,
        total: usize,
        splits: Global<u64>,
        verdicts: Global<u64>,
    ) -> Self {
        let start = index * tile;
        let left = total.saturating_sub(start);
        let count = if left < tile { left as u32 } else { tile as u32 };
        let (mut a_start, mut a_end) = (splits.get(index) as usize, splits.get(index + 1) as usize);
        if is_contradictory(verdicts, lane_id(), LANES) {
            a_start = if start < a_len { start } else { a_len };
            let end = start + count as usize;
            a_end = if end < a_len { end } else { a_len };
        }
        // Two blocks may have been given different answers about a boundary, so that the two of this tile leave less than
        // nothing, or more than a tile; no verdict says that. Each of them lies within the sides, so every length up to
        // `most` is one that both sides have. No branch: it would wait for the boundaries.
        let rest = a_len.wrapping_sub(a_start);
        let most = if rest < count as usize { rest as u32 } else { count };
        let a_len = (a_end as u32).wrapping_sub(a_start as u32).min(most);
        Self { start, count, a_start, a_len, b_start: start.wrapping_sub(a_start), b_len: count - a_len }
    }

    /// Returns the tile's items of both sides.
    ///
    /// # Safety
    /// The sides are those of the tile.
    #[inline(always)]
    pub unsafe fn of_sides<T: Pod>(self, a: Global<T>, b: Global<T>) -> Joined<T> {
        let a = a.slice(self.a_start, self.a_len as usize);
        let b = b.slice(self.b_start, self.b_len as usize);
        Joined { a, b: Global::from_raw(b.as_ptr().wrapping_sub(a.len()), a.len() + b.len()) }
    }
}

/// A thread's share of a tile, merged item by item.
#[derive(Clone, Copy)]
pub struct Walk<K> {
    /// The position of the next item of the first piece in shared memory.
    pub a: u32,
    /// The position of the next item of the second piece.
    pub b: u32,
    a_end: u32,
    b_end: u32,
    key_a: K,
    key_b: K,
}

impl<K: Pod> Walk<K> {
    /// Starts at output `first` of the tile. The tile's keys are in shared memory, those of the first side before the
    /// others.
    ///
    /// # Safety
    /// `first` is at most `tile.count`, which is not 0.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn new<C: KeyOrder<K>>(keys: Shared<K>, tile: Tile, first: u32, compare: C) -> Self {
        let Tile { a_len, b_len, count, .. } = tile;
        let share = path(|at| keys.get(at as usize), Pieces { a: 0, a_len, b: a_len, b_len }, first, compare);
        let (a, b) = (share, a_len + first - share);
        let last = count - 1;
        let key_a = keys.get(a.min(last) as usize);
        let key_b = keys.get(b.min(last) as usize);
        Self { a, b, a_end: a_len, b_end: count, key_a, key_b }
    }

    /// Returns whether the next item comes from the first side.
    #[inline(always)]
    pub fn takes_a<C: KeyOrder<K>>(&self, compare: C) -> bool {
        // No branch around the comparison, which the compiler does not remove.
        (self.a < self.a_end) & ((self.b >= self.b_end) | !compare.less(self.key_b, self.key_a))
    }

    /// [`takes_a`](Self::takes_a) for an order that is known when the kernel is compiled. The compiler chooses where to
    /// branch, which takes fewer registers.
    #[inline(always)]
    pub fn takes_a_by_known<C: KeyOrder<K>>(&self, compare: C) -> bool {
        self.a < self.a_end && (self.b >= self.b_end || !compare.less(self.key_b, self.key_a))
    }

    /// Returns whether the next `items` items can be taken without looking at the ends of the sides: none of them is the last
    /// one of its side.
    #[inline(always)]
    pub fn is_inner(&self, items: u32) -> bool {
        (self.a + items < self.a_end) & (self.b + items < self.b_end)
    }

    /// [`takes_a`](Self::takes_a) between the ends of the sides.
    #[inline(always)]
    pub fn takes_a_inside<C: KeyOrder<K>>(&self, compare: C) -> bool {
        !compare.less(self.key_b, self.key_a)
    }

    /// Returns the position of the next item, and its key.
    #[inline(always)]
    pub fn item(&self, takes_a: bool) -> (u32, K) {
        if takes_a { (self.a, self.key_a) } else { (self.b, self.key_b) }
    }

    /// Advances past the next item.
    ///
    /// # Safety
    /// `keys` are those of the tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn step(&mut self, keys: Shared<K>, takes_a: bool) {
        let (source, _) = self.item(takes_a);
        self.advance(keys.get((source + 1).min(self.b_end - 1) as usize), takes_a);
    }

    /// [`step`](Self::step) between the ends of the sides.
    ///
    /// # Safety
    /// Same as [`step`](Self::step), and the item is not the last one of its side.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn step_inside(&mut self, keys: Shared<K>, takes_a: bool) {
        let (source, _) = self.item(takes_a);
        self.advance(keys.get(source as usize + 1), takes_a);
    }

    /// Advances to the next item of a side.
    #[inline(always)]
    fn advance(&mut self, next: K, takes_a: bool) {
        if takes_a {
            self.a += 1;
            self.key_a = next;
        } else {
            self.b += 1;
            self.key_b = next;
        }
    }
}
