//! Rearranging a warp's items between the order in which memory likes them and the order in which algorithms do.
//!
//! *Striped*: row by row, each row one coalesced access of the warp, a lane holding `VEC` neighbours of it. *Blocked*: a
//! lane holds `VEC * ROWS` consecutive items. The exchange goes through the warp's own piece of shared memory.
//!
//! Banks: all accesses have `VEC` items, 16 bytes at the widest, so 8 lanes are served at once. Striped ones are
//! consecutive. Blocked ones are `ROWS` accesses apart: for an odd number of rows the 8 lanes meet 8 different groups of
//! 4 banks.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::Cache;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::view::{Global, GlobalMut, Shared};
use bytemuck::Pod;

/// Where the lane's first item of a striped row lies.
#[inline(always)]
fn striped<const VEC: usize>(row: usize) -> usize {
    (row * LANES as usize + lane_id() as usize) * VEC
}

/// Where the first item of a blocked row lies.
#[inline(always)]
fn blocked<const VEC: usize, const ROWS: usize>(row: usize) -> usize {
    (lane_id() as usize * ROWS + row) * VEC
}

/// A warp's piece of shared memory, for `VEC * ROWS` items per lane.
///
/// The warp loads, calls [`sync`](Self::sync), and reads blocked rows, as often as it likes: reading twice costs less than
/// keeping everything in registers meanwhile. Each lane may then write its blocked rows back where it alone has read, and
/// after another `sync` the warp stores.
#[derive(Clone, Copy)]
pub struct WarpExchange<T, const VEC: usize, const ROWS: usize> {
    memory: Shared<T>,
}

impl<T: Pod, const VEC: usize, const ROWS: usize> WarpExchange<T, VEC, ROWS> {
    /// Items of a warp.
    pub const LEN: usize = LANES as usize * VEC * ROWS;

    /// The piece of this warp in memory for all warps of the block.
    ///
    /// # Safety
    /// `memory` has [`LEN`](Self::LEN) items per warp and starts at a multiple of 16 bytes.
    #[inline(always)]
    pub unsafe fn new(memory: Shared<T>) -> Self {
        Self { memory: memory.slice(warp_id() as usize * Self::LEN, Self::LEN) }
    }

    /// Reads the warp's items from global memory. `from` are those of the warp; what is missing at its end reads as `filler`.
    ///
    /// Whole and aligned runs take the way of rows, `ROWS` wide accesses at once; others go item by item, in a loop that is
    /// not unrolled, so that the rare case takes no registers from the frequent one.
    ///
    /// # Safety
    /// All lanes of the warp call it; `from` has at most [`LEN`](Self::LEN) items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, from: Global<T>, filler: T) {
        if from.len() == Self::LEN && is_aligned::<T, VEC>(from.as_ptr()) {
            let mut rows = [[filler; VEC]; ROWS];
            for row in 0..ROWS {
                rows[row] = from.load_vec(striped::<VEC>(row), Cache::Default);
            }
            for row in 0..ROWS {
                self.memory.store_vec(striped::<VEC>(row), rows[row]);
            }
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

    /// Writes the warp's items to global memory; those beyond the end of `to` are left out.
    ///
    /// # Safety
    /// As [`load`](Self::load), for `to`.
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

    /// Lets the lanes see what the others have written.
    ///
    /// # Safety
    /// All lanes of the warp call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync(self) {
        sync_warp(FULL);
    }

    /// The lane's consecutive items `row * VEC ..`.
    ///
    /// # Safety
    /// After [`sync`](Self::sync).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn blocked_row(self, row: usize) -> [T; VEC] {
        self.memory.load_vec(blocked::<VEC, ROWS>(row))
    }

    /// Writes the lane's consecutive items `row * VEC ..`.
    ///
    /// # Safety
    /// After [`sync`](Self::sync).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set_blocked_row(self, row: usize, items: [T; VEC]) {
        self.memory.store_vec(blocked::<VEC, ROWS>(row), items);
    }
}

/// Whether accesses of `VEC` elements may start here.
#[inline(always)]
fn is_aligned<T, const VEC: usize>(address: *const T) -> bool {
    address.addr().is_multiple_of(size_of::<[T; VEC]>())
}
