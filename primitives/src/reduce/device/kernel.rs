//! The kernel of the reduction.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::last::is_last;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::input::{Input, SourceArg};
use crate::monoid::{Combine, HoleMonoid};
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Returns the shared memory of a block: the warps' exchange, one value per warp, and a flag.
#[must_use]
pub const fn shared<T>(vec: usize, rows: usize) -> usize {
    let warps = (THREADS / LANES) as usize;
    shared_bytes::<T>(THREADS as usize * vec * rows) + shared_bytes::<T>(warps) + shared_bytes::<u32>(1)
}

/// Combines all elements in one launch.
///
/// A block combines `tiles` consecutive tiles of `256 * VEC * ROWS` elements to one value. The last block to finish
/// combines the values of all blocks in the same way.
///
/// Without `commutes`, the elements must be combined in order, and a lane that loads rows has elements of every part of the tile. So a warp
/// exchanges its rows through shared memory, as in the scan, and each lane combines `VEC * ROWS` consecutive elements.
/// Lanes are combined by shuffles, and warps through shared memory. With `commutes`, a lane combines what it loads, of all tiles
/// of the block, and nothing is exchanged before the end.
///
/// Cost: every element is read once, `size_of::<T>()` bytes: 2^27 elements of 4 bytes take 131 µs at 4.1 TB/s. Beyond that,
/// one access to shared memory each way, and 5 shuffles per lane and tile.
///
/// # Safety
/// The blocks' tiles cover the input. `output` has one element. If there is more than one block, `partial` has one element
/// per block, and `finished` is one zero. While the kernel runs, nothing writes the input, and nothing else uses the other
/// buffers.
// One block at least: without a number, the compiler saves registers for more blocks than it needs, and spills on sm_80.
#[kernel(
    listed,
    threads = THREADS,
    min_blocks = 1,
    shared = shared::<T>(VEC, ROWS),
    native = crate::reduce::native::reduce_tiles
)]
pub unsafe fn reduce_tiles<T: Pod, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    partial: GlobalMut<T>,
    output: GlobalMut<T>,
    finished: GlobalMut<u64>,
    op: Op,
    tiles: u32,
    commutes: u32,
) {
    let mut memory = SharedMemory::new();
    let warps = (THREADS / LANES) as usize;
    let block = Block {
        exchange: WarpExchange::<T, VEC, ROWS>::new(memory.take(warps * WarpExchange::<T, VEC, ROWS>::LEN)),
        warp_totals: memory.take::<T>(warps),
    };
    let flag = memory.take::<u32>(1);

    let total =
        block.combine(input, thread::block_idx_x() as usize * tiles as usize, tiles as usize, op, commutes != 0);
    let blocks = thread::grid_dim_x();
    if blocks == 1 {
        if thread::thread_idx_x() == 0 {
            output.set(0, total);
        }
        return;
    }
    if thread::thread_idx_x() == 0 {
        partial.set(thread::block_idx_x() as usize, total);
    }
    if !is_last(finished, blocks, flag) {
        return;
    }
    let total = block.combine(
        partial.as_const(),
        0,
        (blocks as usize).div_ceil(warps * LANES as usize * VEC * ROWS),
        op,
        false,
    );
    if thread::thread_idx_x() == 0 {
        output.set(0, total);
    }
}

/// The shared memory of a block.
#[derive(Clone, Copy)]
struct Block<T: Pod, const VEC: usize, const ROWS: usize> {
    exchange: WarpExchange<T, VEC, ROWS>,
    warp_totals: Shared<T>,
}

impl<T: Pod, const VEC: usize, const ROWS: usize> Block<T, VEC, ROWS> {
    /// Returns the combination of the elements of `tiles` tiles, beginning with tile `first`. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block call this with the same arguments. Nothing writes the input meanwhile, and nothing else
    /// uses the shared memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn combine<I: Input<T>, Op: Combine<T>>(
        self,
        input: I,
        first: usize,
        tiles: usize,
        op: Op,
        commutes: bool,
    ) -> T {
        let run_len = WarpExchange::<T, VEC, ROWS>::LEN;
        let len = input.count();
        let run_of = |tile: usize| {
            let start = ((tile * (THREADS / LANES) as usize + warp_id() as usize) * run_len).min(len);
            (start, (len - start).min(run_len))
        };
        let mut total = op.identity();
        let mut tile = first;
        if commutes {
            while tile < first + tiles {
                let (start, run) = run_of(tile);
                total = op.combine(total, self.exchange.combine_lane(input, start, run, op));
                tile += 1;
            }
            total = scan::scan_warps::<T, Op, THREADS>(warp::reduce(total, op), op, self.warp_totals).total;
            thread::sync_threads();
            return total;
        }
        while tile < first + tiles {
            let (start, run) = run_of(tile);
            self.exchange.load_from(input, start, run, op.identity());
            self.exchange.sync();
            let mut own = op.identity();
            for row in 0..ROWS {
                let items = self.exchange.blocked_row(row);
                for i in 0..VEC {
                    own = op.combine(own, items[i]);
                }
            }
            // `scan_warps` takes the value of a warp's last lane; all lanes have it.
            let block = scan::scan_warps::<T, Op, THREADS>(warp::reduce(own, op), op, self.warp_totals);
            total = op.combine(total, block.total);
            // The next tile reuses the memory.
            thread::sync_threads();
            tile += 1;
        }
        total
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, but not more than 4 elements. An odd number of rows, for the exchange; fewer for elements of 32 bytes,
    // since shared memory is short.
    family reduce_tiles(T, VEC, ROWS) {
        for T in [u8, u16, u32], VEC = 4, ROWS = 9: ReduceTiles<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [u64], VEC = 2, ROWS = 9: ReduceTiles<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u32; 3], [u64; 2]], VEC = 1, ROWS = 9:
            ReduceTiles<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u64; 4]], VEC = 1, ROWS = 7: ReduceTiles<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
    }
}
