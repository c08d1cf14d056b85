//! The kernels that look for elements that pass a test, and count them.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::{Min, Sum};
use crate::select::device::predicate::{HolePredicate, Keep};
use crate::view::{GlobalMut, SharedMemory, shared_bytes};

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

/// Lowers `position` to that of the first element whose test has the result `wanted`, 1 or 0, if it is higher.
///
/// The warps of all blocks take runs in turn, so that the input is read from its beginning to its end. A warp ends when it has
/// found an element, or when its next run lies after one that another warp has found. Runs before that are all read, so the
/// result does not depend on which warp is faster.
///
/// Cost: each element up to the first that passes is read once, and those of the runs that are in flight meanwhile: on 132
/// multiprocessors 2^21 elements of 4 bytes, 8 MiB.
///
/// # Safety
/// There is a block. `position` has one element. While the kernel runs, nothing writes what the source reads, and nothing else
/// uses the position.
#[kernel(listed, threads = THREADS, native = crate::reduce::native::passing::find_passing)]
pub unsafe fn find_passing<H: RegisterRepr, const ROWS: usize>(
    input: SourceArg,
    keep: HolePredicate,
    wanted: u32,
    position: GlobalMut<u64>,
) {
    let len = Input::<H>::count(&input);
    let mut runs = Runs::new::<ROWS>();
    while runs.start < len {
        // The lanes may read different values. They must decide the same.
        let is_over = position.atomic_load(0, Scope::Gpu, Order::Relaxed) <= runs.start as u64;
        if ballot(FULL, is_over) != 0 {
            return;
        }
        let items = runs.load::<H, ROWS>(input, len);
        let mut own = u64::MAX;
        for row in 0..ROWS {
            let index = runs.index(row);
            // Predicates are only called with items.
            if index < len && keep.item(index, items[row]) as u32 == wanted && own == u64::MAX {
                own = index as u64;
            }
        }
        if ballot(FULL, own != u64::MAX) != 0 {
            let first = warp::reduce(own, Min);
            if lane_id() == 0 {
                position.atomic_rmw(Rmw::Min, 0, first, Scope::Gpu, Order::Relaxed);
            }
            return;
        }
        runs.start += runs.step;
    }
}

/// Adds the number of elements that pass to `count`.
///
/// Cost: each element is read once; one addition per block.
///
/// # Safety
/// There is a block. `count` has one element. While the kernel runs, nothing writes what the source reads, and nothing else uses
/// the count.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared_bytes::<u64>(WARPS),
    native = crate::reduce::native::passing::count_passing
)]
pub unsafe fn count_passing<H: RegisterRepr, const ROWS: usize>(
    input: SourceArg,
    keep: HolePredicate,
    count: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let warp_totals = memory.take::<u64>(WARPS);
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
        count.atomic_add(0, block.total, Scope::Gpu, Order::Relaxed);
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
