//! The kernels of segmented compaction: a selection that leaves notes, and the look-up of positions in them.

use super::predicate::{Keep, Predicate};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, ballot, lane_id};
use crate::arch::{Order, Rmw, Scope};
use crate::kernel::{Buffer, Param, kernel};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// A position among the items, as segment offsets are written: `u32` or `u64`.
pub trait Offset: Pod {
    /// As a number of items.
    fn get(self) -> u64;
    /// From a number of items, which was an offset's bound.
    fn new(position: u64) -> Self;
}

impl Offset for u32 {
    #[inline(always)]
    fn get(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn new(position: u64) -> Self {
        position as Self
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn get(self) -> u64 {
        self
    }
    #[inline(always)]
    fn new(position: u64) -> Self {
        position
    }
}

/// Decides by a predicate about the items that lie in a segment, and notes what was kept: a ballot per item of a lane's
/// row, and the items kept before each row.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Within<P> {
    /// The predicate.
    pub predicate: P,
    /// The first and the last offset, within the items.
    pub range: Global<u64>,
    /// 32 words per run: word `row * VEC + i` has the lanes whose item `i` of that row stays.
    pub ballots: GlobalMut<u32>,
    /// `ROWS` per run: items kept before the row.
    pub rows: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, of `Param`s.
unsafe impl<P: Param> Param for Within<P> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.predicate.buffers(name, visit);
        self.range.buffers("range", visit);
        self.ballots.buffers("ballots", visit);
        self.rows.buffers("rows", visit);
    }
}

impl<K, P: Predicate<K>> Keep<K> for Within<P> {
    #[inline(always)]
    unsafe fn range(&self, _: usize) -> (usize, usize) {
        (self.range.get(0) as usize, self.range.get(1) as usize)
    }

    #[inline(always)]
    unsafe fn item(&self, _: usize, item: K) -> bool {
        self.predicate.test(item)
    }

    #[inline(always)]
    unsafe fn record<const VEC: usize, const ROWS: usize>(
        &self,
        run: usize,
        flags: u32,
        row_totals: u64,
        before: usize,
    ) {
        let mut mine = 0;
        for bit in 0..VEC * ROWS {
            let lanes = ballot(FULL, flags >> bit & 1 != 0);
            if lane_id() as usize == bit {
                mine = lanes;
            }
        }
        self.ballots.set(run * LANES as usize + lane_id() as usize, mine);

        let (mut running, mut row_before) = (before as u64, 0);
        for row in 0..ROWS {
            if lane_id() as usize == row {
                row_before = running;
            }
            running += row_totals >> (8 * row) & 0xff;
        }
        if (lane_id() as usize) < ROWS {
            self.rows.set(run * ROWS + lane_id() as usize, row_before);
        }
    }
}

/// Checks that offsets do not decrease and stay within `len`, and notes the first and the last one, cut off there.
///
/// `invalid` holds `u64::MAX` before, and the first offset that is larger than `len` or than its successor after. Launch
/// with one thread per offset.
#[kernel(threads = THREADS)]
pub unsafe fn check_offsets<O: Offset>(offsets: Global<O>, len: u64, range: GlobalMut<u64>, invalid: GlobalMut<u64>) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i < offsets.len() {
        let offset = offsets.get(i).get();
        let is_last = i + 1 == offsets.len();
        let limit = if is_last { len } else { offsets.get(i + 1).get() };
        if offset > limit || offset > len {
            invalid.atomic_rmw(Rmw::Min, 0, i as u64, Scope::Gpu, Order::Relaxed);
        }
        if i == 0 {
            range.set(0, offset.min(len));
        }
        if is_last {
            range.set(1, offset.min(len));
        }
    }
}

/// The tile shape that notes were written with.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct NoteShape {
    /// Items of a lane in a row.
    pub vec: u32,
    /// Rows of a run.
    pub rows: u32,
}

/// The new offset of each segment: how many items were kept before the old one.
///
/// Reads one row's notes per offset, `8 + 4 * VEC` bytes. Offsets beyond the `len` items count as `len`. Launch with one
/// thread per offset.
#[kernel(threads = THREADS)]
pub unsafe fn move_offsets<O: Offset>(
    offsets: Global<O>,
    output: GlobalMut<O>,
    len: u64,
    shape: NoteShape,
    ballots: Global<u32>,
    rows: Global<u64>,
    count: Global<u64>,
) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i < offsets.len() {
        let offset = offsets.get(i).get();
        let mut kept;
        if offset >= len {
            kept = count.get(0);
        } else {
            let row_len = LANES * shape.vec;
            let row = offset / row_len as u64;
            let at = (offset % row_len as u64) as u32;
            let (lane, item) = (at / shape.vec, at % shape.vec);
            let run = row / shape.rows as u64;
            let first = run as usize * LANES as usize + (row % shape.rows as u64) as usize * shape.vec as usize;
            kept = rows.get(row as usize);
            let mut k = 0;
            while k < shape.vec {
                // The items `k` of the lanes below, and of this lane if it comes before.
                let before = (1u64 << (lane + (k < item) as u32)) - 1;
                kept += (ballots.get(first + k as usize) & before as u32).count_ones() as u64;
                k += 1;
            }
        }
        output.set(i, O::new(kept));
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    check_offsets_u32: CheckOffsets<u32>;
    check_offsets_u64: CheckOffsets<u64>;
    move_offsets_u32: MoveOffsets<u32>;
    move_offsets_u64: MoveOffsets<u64>;
}
