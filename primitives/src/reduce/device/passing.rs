//! The kernels that look for elements that pass a test, and count them.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::block::last::is_last;
use crate::block::{scan, warp};
use crate::form::{Buffer, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::{Min, Sum};
use crate::select::device::predicate::{HolePredicate, Keep};
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The warps per block.
const WARPS: usize = (THREADS / LANES) as usize;

/// The blocks per multiprocessor that keep its memory accesses in flight: as many as its threads have room for.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const BLOCKS: usize = 8;

/// A warp's way through the elements: runs of `32 * ROWS`, which the warps of all blocks take in turn.
struct Runs {
    start: usize,
    step: usize,
}

impl Runs {
    #[inline(always)]
    unsafe fn new<const ROWS: usize>() -> Self {
        let run = LANES as usize * ROWS;
        let warp = thread::block_idx_x() as usize * WARPS + warp_id() as usize;
        Self { start: warp * run, step: thread::grid_dim_x() as usize * WARPS * run }
    }

    /// Loads the lane's elements of the run. Neighbouring lanes have neighbours; all loads are in flight at once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<H: RegisterRepr, const ROWS: usize>(&self, input: SourceArg, len: usize) -> [H; ROWS] {
        let mut items = [H::zeroed(); ROWS];
        for row in 0..ROWS {
            let index = self.index(row);
            if index < len {
                items[row] = input.item(index);
            }
        }
        items
    }

    /// Returns the index of one of the lane's elements.
    #[inline(always)]
    fn index(&self, row: usize) -> usize {
        self.start + row * LANES as usize + lane_id() as usize
    }
}

/// What the blocks of a launch share while they look at elements: two words that are zero before and after it. It is a kernel
/// argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    words: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, and a `Param`.
unsafe impl Param for Progress {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

impl Progress {
    /// The number of words.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const WORDS: usize = 2;

    /// Creates a state with such words.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(words: GlobalMut<u64>) -> Self {
        Self { words }
    }

    /// Returns the result of all blocks if this block is the last one, and sets the words to zero again.
    ///
    /// # Safety
    /// All threads of the block must call this once.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn result(self, flag: Shared<u32>) -> Option<u64> {
        if !is_last(self.words.slice(1, 1), thread::grid_dim_x(), flag) || thread::thread_idx_x() != 0 {
            return None;
        }
        let result = self.words.atomic_load(0, Scope::Gpu, Order::Relaxed);
        self.words.atomic_store(0, 0, Scope::Gpu, Order::Relaxed);
        Some(result)
    }
}

/// Where the result of a search goes: one of both has an element, and the other is empty. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The position of the first element, or `u64::MAX`.
    pub(crate) position: GlobalMut<u64>,
    /// 1 if there is an element that passes; or if there is none that does not.
    pub(crate) flag: GlobalMut<u8>,
}

// SAFETY: `repr(C)`, and both fields are `Param`s.
unsafe impl Param for Found {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.position.buffers(name, visit);
        self.flag.buffers(name, visit);
    }
}

impl Found {
    /// Writes the position of the first element whose test has the result `wanted`, 1 or 0; `u64::MAX` for none.
    ///
    /// # Safety
    /// Nothing else uses the result.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn set(self, position: u64, wanted: u32) {
        if self.flag.is_empty() {
            self.position.set(0, position);
        } else {
            self.flag.set(0, ((position != u64::MAX) == (wanted != 0)) as u8);
        }
    }

    /// [`set`](Self::set) for a native body.
    ///
    /// # Safety
    /// Same as [`set`](Self::set).
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) unsafe fn set_natively(self, position: u64, wanted: u32) {
        // SAFETY: the one that is not empty has an element.
        unsafe {
            if self.flag.is_empty() {
                self.position.as_mut_ptr().write(position);
            } else {
                self.flag.as_mut_ptr().write(u8::from((position != u64::MAX) == (wanted != 0)));
            }
        }
    }
}

/// Finds the first element whose test has the result `wanted`, 1 or 0.
///
/// The warps of all blocks take runs in turn, so that the input is read from its beginning to its end. A warp ends when it has
/// found an element, or when its run lies after one that another warp has found. Runs before that are all read, so the
/// result does not depend on which warp is faster. The position that all share is read together with the elements of a run: to wait
/// for one and then for the others would take longer. It is one word for all warps, whose reads wait for each other. So a warp
/// looks at it less often as it goes on: at most a quarter more is read than without this.
///
/// The position is kept as its complement, so that zero means none, and larger means earlier. The last block writes the
/// result.
///
/// Cost: each element up to the first that passes is read once, and those of the runs that are in flight meanwhile: on 132
/// multiprocessors 2^21 elements of 4 bytes, 8 MiB.
///
/// # Safety
/// There is a block. While the kernel runs, nothing writes what the source reads, and nothing else uses the shared words and the
/// result.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared_bytes::<u32>(1),
    native = crate::reduce::native::passing::find_passing
)]
pub unsafe fn find_passing<H: RegisterRepr, const ROWS: usize>(
    input: SourceArg,
    keep: HolePredicate,
    wanted: u32,
    progress: Progress,
    found: Found,
) {
    let flag = SharedMemory::new().take::<u32>(1);
    let len = Input::<H>::count(&input);
    let mut runs = Runs::new::<ROWS>();
    let (mut tested, mut next_look) = (0u32, 0);
    while runs.start < len {
        let looks = tested == next_look;
        let first = if looks { !progress.words.atomic_load(0, Scope::Gpu, Order::Relaxed) } else { u64::MAX };
        let items = runs.load::<H, ROWS>(input, len);
        // The lanes may read different values. They must decide the same.
        if looks && ballot(FULL, first <= runs.start as u64) != 0 {
            break;
        }
        if looks {
            next_look = tested + 1 + tested / 4;
        }
        tested += 1;
        let mut marked = 0u32;
        for row in 0..ROWS {
            let index = runs.index(row);
            // Predicates are only called with items.
            marked |= u32::from(index < len && keep.item(index, items[row]) as u32 == wanted) << row;
        }
        if ballot(FULL, marked != 0) != 0 {
            let own = if marked != 0 { runs.index(marked.trailing_zeros() as usize) as u64 } else { u64::MAX };
            let first = warp::reduce(own, Min);
            if lane_id() == 0 {
                progress.words.atomic_rmw(Rmw::Max, 0, !first, Scope::Gpu, Order::Relaxed);
            }
            break;
        }
        runs.start += runs.step;
    }
    if let Some(first) = progress.result(flag) {
        found.set(!first, wanted);
    }
}

/// Counts the elements that pass.
///
/// Cost: each element is read once; one addition per block.
///
/// # Safety
/// There is a block. `count` has one element. While the kernel runs, nothing writes what the source reads, and nothing else uses
/// the shared words and the count.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared_bytes::<u64>(WARPS) + shared_bytes::<u32>(1),
    native = crate::reduce::native::passing::count_passing
)]
pub unsafe fn count_passing<H: RegisterRepr, const ROWS: usize>(
    input: SourceArg,
    keep: HolePredicate,
    progress: Progress,
    count: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let (warp_totals, flag) = (memory.take::<u64>(WARPS), memory.take::<u32>(1));
    let len = Input::<H>::count(&input);
    let mut runs = Runs::new::<ROWS>();
    let mut own = 0u64;
    while runs.start < len {
        let items = runs.load::<H, ROWS>(input, len);
        for row in 0..ROWS {
            let index = runs.index(row);
            own += (index < len && keep.item(index, items[row])) as u64;
        }
        runs.start += runs.step;
    }
    let in_warp = warp::reduce(own, Sum);
    let block = scan::scan_warps::<u64, Sum, THREADS>(in_warp, Sum, warp_totals);
    if thread::thread_idx_x() == 0 && block.total > 0 {
        progress.words.atomic_add(0, block.total, Scope::Gpu, Order::Relaxed);
    }
    if let Some(total) = progress.result(flag) {
        count.set(0, total);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Up to 64 bytes per lane in flight.
    family find_passing(H, ROWS) {
        for H in [u8, u16], ROWS = 16: FindPassing<H, ROWS>;
        for H in [u32, u64], ROWS = 8: FindPassing<H, ROWS>;
        for H in [[u32; 3], [u64; 2]], ROWS = 4: FindPassing<H, ROWS>;
        for H in [[u64; 4]], ROWS = 2: FindPassing<H, ROWS>;
    }
    family count_passing(H, ROWS) {
        for H in [u8, u16], ROWS = 16: CountPassing<H, ROWS>;
        for H in [u32, u64], ROWS = 8: CountPassing<H, ROWS>;
        for H in [[u32; 3], [u64; 2]], ROWS = 4: CountPassing<H, ROWS>;
        for H in [[u64; 4]], ROWS = 2: CountPassing<H, ROWS>;
    }
}
