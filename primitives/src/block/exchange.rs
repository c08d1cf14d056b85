//! Rearranges a warp's items between the order that suits memory and the order that suits algorithms.
//!
//! *Striped*: row by row. Each row is one coalesced access of the warp, and each lane holds `VEC` adjacent items of it.
//! *Blocked*: each lane holds `VEC * ROWS` consecutive items. The exchange goes through the warp's own region of shared
//! memory.
//!
//! Banks: every access has `VEC` items, at most 16 bytes, so 8 lanes are served at once. Striped accesses are
//! consecutive. Blocked accesses are `ROWS` accesses apart: with an odd number of rows, the 8 lanes hit 8 different
//! groups of 4 banks.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::Cache;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::input::Input;
use crate::monoid::Combine;
use crate::view::{Global, GlobalMut, Shared};
use bytemuck::Pod;

/// Returns the position of the lane's first item of a striped row.
#[inline(always)]
fn striped<const VEC: usize>(row: usize) -> usize {
    (row * LANES as usize + lane_id() as usize) * VEC
}

/// Returns the position of the lane's first item of a blocked row.
#[inline(always)]
fn blocked<const VEC: usize, const ROWS: usize>(row: usize) -> usize {
    (lane_id() as usize * ROWS + row) * VEC
}

/// A warp's region of shared memory, for `VEC * ROWS` items per lane.
///
/// The warp loads, calls [`sync`](Self::sync), and reads blocked rows, possibly several times: reading twice costs less
/// than keeping everything in registers. Each lane may then write its blocked rows back, where no other lane has read.
/// After another `sync` the warp stores.
#[derive(Clone, Copy)]
pub struct WarpExchange<T, const VEC: usize, const ROWS: usize> {
    memory: Shared<T>,
}

impl<T: Pod, const VEC: usize, const ROWS: usize> WarpExchange<T, VEC, ROWS> {
    /// The number of items of a warp.
    pub const LEN: usize = LANES as usize * VEC * ROWS;

    /// Returns this warp's region of the memory for all warps of the block.
    ///
    /// # Safety
    /// `memory` has [`LEN`](Self::LEN) items per warp and starts at a multiple of 16 bytes.
    #[inline(always)]
    pub unsafe fn new(memory: Shared<T>) -> Self {
        Self { memory: memory.slice(warp_id() as usize * Self::LEN, Self::LEN) }
    }

    /// Reads the warp's items: `len` of them, from `start` on. Missing items read as `filler`.
    ///
    /// # Safety
    /// All lanes of the warp must call this; `len` is at most [`LEN`](Self::LEN), and the input has these items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn load_from<I: Input<T>>(self, input: I, start: usize, len: usize, filler: T) {
        if Self::has_rows(&input, start, len) {
            return self.put_rows(Self::rows_of(input, start));
        }
        // Neighbouring lanes read neighbouring items, `group` of them at once: more would take too many registers.
        const MOST: usize = 4;
        let group = const { if size_of::<T>() > 8 { 2 } else { MOST } };
        let mut first = lane_id() as usize;
        while first < Self::LEN {
            let mut items = [filler; MOST];
            for i in 0..group {
                let at = first + i * LANES as usize;
                if at < len {
                    items[i] = input.item(start + at);
                }
            }
            for i in 0..group {
                let at = first + i * LANES as usize;
                if at < Self::LEN {
                    self.memory.set(at, items[i]);
                }
            }
            first += group * LANES as usize;
        }
    }

    /// Returns the combination of those of the warp's items that the lane reads: of `len` of them, from `start` on.
    ///
    /// # Safety
    /// Same as [`load_from`](Self::load_from).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn combine_lane<I: Input<T>, Op: Combine<T>>(
        self,
        input: I,
        start: usize,
        len: usize,
        op: Op,
    ) -> T {
        let mut total = op.identity();
        if Self::has_rows(&input, start, len) {
            let rows = Self::rows_of(input, start);
            for row in 0..ROWS {
                for i in 0..VEC {
                    total = op.combine(total, rows[row][i]);
                }
            }
            return total;
        }
        const GROUP: usize = 4;
        let mut first = lane_id() as usize;
        while first < len {
            let mut items = [op.identity(); GROUP];
            for i in 0..GROUP {
                let at = first + i * LANES as usize;
                if at < len {
                    items[i] = input.item(start + at);
                }
            }
            for i in 0..GROUP {
                total = op.combine(total, items[i]);
            }
            first += GROUP * LANES as usize;
        }
        total
    }

    /// Returns whether these items can be read by rows: they are all, and aligned.
    #[inline(always)]
    pub(crate) fn has_rows<I: Input<T>>(input: &I, start: usize, len: usize) -> bool {
        len == Self::LEN && input.lead::<VEC>() == start % VEC
    }

    /// Reads the lane's striped rows. They need not be waited for until they are [put](Self::put_rows) into shared memory.
    ///
    /// # Safety
    /// The input [has the rows](Self::has_rows).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn rows_of<I: Input<T>>(input: I, start: usize) -> [[T; VEC]; ROWS] {
        let mut rows = [[T::zeroed(); VEC]; ROWS];
        for row in 0..ROWS {
            rows[row] = input.row(start + striped::<VEC>(0), row * LANES as usize * VEC);
        }
        rows
    }

    /// Reads the warp's items from global memory. `from` holds only this warp's items; missing items at its end read as
    /// `filler`.
    ///
    /// Complete and aligned runs are read by rows, with `ROWS` wide accesses at once. Others are read item by item, in
    /// a loop that is not unrolled, so that the rare case takes no registers from the common one.
    ///
    /// # Safety
    /// All lanes of the warp must call this; `from` has at most [`LEN`](Self::LEN) items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, from: Global<T>, filler: T) {
        if Self::is_whole(from) {
            self.put_rows(Self::rows(from));
        } else {
            let mut at = lane_id() as usize;
            while at < from.len() {
                self.memory.set(at, from.get(at));
                at += LANES as usize;
            }
            while at < Self::LEN {
                self.memory.set(at, filler);
                at += LANES as usize;
            }
        }
    }

    /// Returns whether `from` can be read by rows: it is complete and aligned.
    #[inline(always)]
    pub(crate) fn is_whole(from: Global<T>) -> bool {
        from.len() == Self::LEN && is_aligned::<T, VEC>(from.as_ptr())
    }

    /// Reads the lane's striped rows from global memory. They need not be waited for until they are
    /// [put](Self::put_rows) into shared memory.
    ///
    /// # Safety
    /// `from` is [whole](Self::is_whole).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn rows(from: Global<T>) -> [[T; VEC]; ROWS] {
        let mut rows = [[T::zeroed(); VEC]; ROWS];
        for row in 0..ROWS {
            rows[row] = from.load_vec(striped::<VEC>(row), Cache::Default);
        }
        rows
    }

    /// Writes the lane's striped rows.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn put_rows(self, rows: [[T; VEC]; ROWS]) {
        for row in 0..ROWS {
            self.memory.store_vec(striped::<VEC>(row), rows[row]);
        }
    }

    /// Writes the warp's items to global memory, except for those beyond the end of `to`.
    ///
    /// # Safety
    /// Same as [`load`](Self::load), for `to`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, to: GlobalMut<T>) {
        if to.len() == Self::LEN && is_aligned::<T, VEC>(to.as_const().as_ptr()) {
            for row in 0..ROWS {
                to.store_vec::<VEC>(striped::<VEC>(row), self.memory.load_vec(striped::<VEC>(row)), Cache::Default);
            }
        } else {
            let mut at = lane_id() as usize;
            while at < to.len() {
                to.set(at, self.memory.get(at));
                at += LANES as usize;
            }
        }
    }

    /// Writes the lane's items of a striped row: instead of [`load`](Self::load), for items that are computed.
    ///
    /// # Safety
    /// No other lane accesses the items until the next [`sync`](Self::sync).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set_striped_row(self, row: usize, items: [T; VEC]) {
        self.memory.store_vec(striped::<VEC>(row), items);
    }

    /// Writes the warp's item `at`.
    ///
    /// # Safety
    /// `at` is less than [`LEN`](Self::LEN), and no other lane accesses the item until the next [`sync`](Self::sync).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, at: usize, item: T) {
        self.memory.set(at, item);
    }

    /// Makes all lanes' writes visible to the warp.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync(self) {
        sync_warp(FULL);
    }

    /// Reads the lane's consecutive items `row * VEC ..`.
    ///
    /// # Safety
    /// [`sync`](Self::sync) was called after the last write.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn blocked_row(self, row: usize) -> [T; VEC] {
        self.memory.load_vec(blocked::<VEC, ROWS>(row))
    }

    /// Writes the lane's consecutive items `row * VEC ..`.
    ///
    /// # Safety
    /// [`sync`](Self::sync) was called after the last access by other lanes.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set_blocked_row(self, row: usize, items: [T; VEC]) {
        self.memory.store_vec(blocked::<VEC, ROWS>(row), items);
    }
}

/// Returns whether accesses of `VEC` elements may start here.
#[inline(always)]
fn is_aligned<T, const VEC: usize>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<[T; VEC]>())
}
