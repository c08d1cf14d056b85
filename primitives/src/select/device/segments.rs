//! The kernels of segmented compaction: a selection that records notes, and the lookup of positions in them.

use super::predicate::Keep;
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id};
use crate::arch::{Order, Rmw, Scope};
use crate::form::{Buffer, Holes, Param, kernel};
use crate::input::SegmentOffsets;
use crate::sealed::Sealed;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// A segment offset, a position among the items: `u32` or `u64`.
///
/// No other type can implement it: offsets are checked once, and must be the same numbers when they are read again.
///
/// ```compile_fail,E0277
/// #[repr(transparent)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// struct Unsteady(u32);
///
/// impl From<Unsteady> for u64 {
///     fn from(_: Unsteady) -> u64 {
///         std::time::Instant::now().elapsed().as_nanos() as u64 // another one each time
///     }
/// }
///
/// impl gpu_primitives::select::Offset for Unsteady {
///     fn new(position: u64) -> Self {
///         Self(position as u32)
///     }
/// }
/// ```
pub trait Offset: Pod + Into<u64> + Sealed {
    /// Creates an offset from a number of items, which does not exceed an existing offset.
    fn new(position: u64) -> Self;
}

impl Offset for u32 {
    #[inline(always)]
    fn new(position: u64) -> Self {
        position as Self
    }
}

impl Offset for u64 {
    #[inline(always)]
    fn new(position: u64) -> Self {
        position
    }
}

/// Keeps the items within a segment that another test keeps, and records what was kept: by each lane, and before each row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Within<F> {
    /// The test.
    pub test: F,
    /// The first and the last offset, clamped to the items.
    pub range: Global<u64>,
    /// One per lane of a run, for all runs of all tiles: which of its items are kept, as bit `row * VEC + i`.
    pub flags: GlobalMut<u32>,
    /// One per lane of a run: the number of items kept in lower lanes, as byte `row` for each row.
    pub lanes: GlobalMut<u64>,
    /// `ROWS` per run: the number of items kept before the row.
    pub rows: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<F: Param> Param for Within<F> {
    const HOLES: Holes = Holes::NONE.and(core::mem::offset_of!(Self, test), F::HOLES);

    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.test.buffers(name, visit);
        self.range.buffers("range", visit);
        self.flags.buffers("flags", visit);
        self.lanes.buffers("lanes", visit);
        self.rows.buffers("rows", visit);
    }
}

impl<K, F: Keep<K>> Keep<K> for Within<F> {
    /// The notes take registers: without this bound, the assembler spills rather than use more than 48.
    const MIN_BLOCKS: u32 = 4;

    #[inline(always)]
    unsafe fn range(&self, _: usize) -> (usize, usize) {
        (self.range.get(0) as usize, self.range.get(1) as usize)
    }

    #[inline(always)]
    unsafe fn item(&self, index: usize, item: K) -> bool {
        self.test.item(index, item)
    }

    /// The note is the number of items kept in the run before row `lane`.
    #[inline(always)]
    unsafe fn record<const ROWS: usize>(&self, run: usize, flags: u32, in_row: u64, row_totals: u64) -> u32 {
        let lane = run * LANES as usize + lane_id() as usize;
        self.flags.set(lane, flags);
        self.lanes.set(lane, in_row);
        let mut row_before = 0;
        for row in 0..ROWS {
            if lane_id() as usize > row {
                row_before += (row_totals >> (8 * row)) as u32 & 0xff;
            }
        }
        row_before
    }

    #[inline(always)]
    unsafe fn record_place<const ROWS: usize>(&self, run: usize, note: u32, before: usize) {
        if (lane_id() as usize) < ROWS {
            self.rows.set(run * ROWS + lane_id() as usize, before as u64 + note as u64);
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn items(&self, index: usize, items: &[K], kept: &mut [u8])
    where
        K: Copy,
    {
        // SAFETY: guaranteed by the caller.
        unsafe { self.test.items(index, items, kept) }
    }

    /// Natively, the flags of `items` consecutive items are a word, and `lanes` has the number of items kept before each word.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn record_natively(&self, start: usize, kept: &[u8], items: usize) {
        let mut before = 0;
        for word in 0..self.flags.len() {
            let mut flags = 0;
            for bit in 0..items {
                let flag = (word * items + bit).checked_sub(start).and_then(|at| kept.get(at)).copied().unwrap_or(0);
                flags |= u32::from(flag) << bit;
            }
            // SAFETY: there are as many numbers as words, and nothing else uses them.
            unsafe {
                self.flags.as_mut_ptr().add(word).write(flags);
                self.lanes.as_mut_ptr().add(word).write(before);
            }
            before += u64::from(flags.count_ones());
        }
    }
}

/// Checks that offsets do not decrease and stay within `len`. Also records the first and the last one, clamped to
/// `len`.
///
/// `invalid` holds `u64::MAX` before, and the index of the first offset that is less than the previous one or greater
/// than `len` after.
///
/// # Safety
/// The launch has at least one thread per offset. `range` has two elements, `invalid` has one. While the kernel runs,
/// nothing writes the offsets, and nothing else uses the other buffers.
#[kernel(listed, threads = THREADS, native = crate::select::native::check_offsets)]
pub unsafe fn check_offsets<O: Offset>(
    offsets: SegmentOffsets<O>,
    len: u64,
    range: GlobalMut<u64>,
    invalid: GlobalMut<u64>,
) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let offsets = offsets.get();
    if i < offsets.len() {
        let offset = offsets.get(i).into();
        let previous = if i > 0 { offsets.get(i - 1).into() } else { 0 };
        if offset < previous || offset > len {
            invalid.atomic_rmw(Rmw::Min, 0, i as u64, Scope::Gpu, Order::Relaxed);
        }
        if i == 0 {
            range.set(0, offset.min(len));
        }
        if i + 1 == offsets.len() {
            range.set(1, offset.min(len));
        }
    }
}

/// The tile shape that notes were written with.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct NoteShape {
    /// The number of items of a lane in a row.
    pub vec: u32,
    /// The number of rows of a run.
    pub rows: u32,
}

/// Computes the new offset of each segment: the number of items kept before the old one.
///
/// Reads the notes of one row and lane per offset, 20 bytes. Offsets beyond the `len` items count as `len`. If only the device
/// knows the number of segments, the outputs beyond their offsets are the number of all items kept: these segments are empty.
///
/// # Safety
/// The launch has at least one thread per output, and `output` is as long as all `offsets`. `flags`, `lanes`, `rows` and
/// the one element of `count` are what [`SelectTiles`](crate::select::SelectTiles) of this shape has written about `len` items,
/// with [`Within`]. While the kernel runs, nothing else uses the output, and nothing writes the other buffers.
#[kernel(listed, threads = THREADS, native = crate::select::native::move_offsets)]
pub unsafe fn move_offsets<O: Offset>(
    offsets: SegmentOffsets<O>,
    output: GlobalMut<O>,
    len: u64,
    shape: NoteShape,
    flags: Global<u32>,
    lanes: Global<u64>,
    rows: Global<u64>,
    count: Global<u64>,
) {
    let i = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if i < output.len() {
        let offsets = offsets.get();
        let offset = if i < offsets.len() { offsets.get(i).into() } else { len };
        let kept = if offset >= len {
            count.get(0)
        } else {
            let row_len = LANES * shape.vec;
            let row = offset / row_len as u64;
            let at = (offset % row_len as u64) as u32;
            let (lane, item) = (at / shape.vec, at % shape.vec);
            let (run, row_of_run) = (row / shape.rows as u64, (row % shape.rows as u64) as u32);
            let lane = run as usize * LANES as usize + lane as usize;
            // The items of this lane in this row that come before the offset.
            let own = flags.get(lane) >> (row_of_run * shape.vec) & ((1 << item) - 1);
            rows.get(row as usize) + (lanes.get(lane) >> (8 * row_of_run) & 0xff) + own.count_ones() as u64
        };
        output.set(i, O::new(kept));
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for O in [u32, u64]: CheckOffsets<O>;
    for O in [u32, u64]: MoveOffsets<O>;
}
