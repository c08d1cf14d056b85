//! The reduction kernel.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::input::{Fused, Input};
use crate::monoid::{Combine, HoleMonoid};
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block.
pub(super) const THREADS: u32 = 256;

/// Returns the shared memory of a block: the warps' exchange, and one value per warp.
#[must_use]
pub const fn shared<T>(vec: usize, rows: usize) -> usize {
    shared_bytes::<T>(THREADS as usize * vec * rows) + shared_bytes::<T>((THREADS / LANES) as usize)
}

/// Combines the elements of `tiles` consecutive tiles of `256 * VEC * ROWS` elements per block, and writes one value per
/// block.
///
/// The elements must be combined in order, and a lane that loads rows has elements of every part of the tile. So a warp
/// exchanges its rows through shared memory, as in the scan, and each lane combines `VEC * ROWS` consecutive elements.
/// Lanes are combined by shuffles, and warps through shared memory.
///
/// Cost: every element is read once, `size_of::<T>()` bytes: 2^27 elements of 4 bytes take 131 µs at 4.1 TB/s. Beyond that,
/// one access to shared memory each way, and 5 shuffles per lane and tile.
///
/// # Safety
/// `output` has one element per block, and the blocks' tiles cover the input. While the kernel runs,
/// nothing writes the input, and nothing else uses the output.
#[kernel(threads = THREADS, shared = shared::<T>(VEC, ROWS), native = super::native::reduce_tiles)]
pub unsafe fn reduce_tiles<T: Pod, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    output: GlobalMut<T>,
    op: Op,
    tiles: u32,
) {
    let mut memory = SharedMemory::new();
    let warps = (THREADS / LANES) as usize;
    let run_len = WarpExchange::<T, VEC, ROWS>::LEN;
    let exchange = WarpExchange::<T, VEC, ROWS>::new(memory.take(warps * run_len));
    let warp_totals = memory.take::<T>(warps);

    let len = input.count();
    let mut total = op.identity();
    let mut tile = 0;
    while tile < tiles {
        let first = thread::block_idx_x() as usize * tiles as usize + tile as usize;
        let start = (first * warps + warp_id() as usize) * run_len;
        let run = len.saturating_sub(start).min(run_len);
        exchange.load_from(input, start.min(len), run, op.identity());
        exchange.sync();
        let mut own = op.identity();
        for row in 0..ROWS {
            let items = exchange.blocked_row(row);
            for i in 0..VEC {
                own = op.combine(own, items[i]);
            }
        }
        // `scan_warps` takes the value of a warp's last lane; all lanes have it.
        let block = scan::scan_warps::<T, Op, THREADS>(warp::reduce(own, op), op, warp_totals);
        total = op.combine(total, block.total);
        // The next tile reuses the memory.
        thread::sync_threads();
        tile += 1;
    }
    if thread::thread_idx_x() == 0 {
        output.set(thread::block_idx_x() as usize, total);
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for T in [u8, u16, u32], I in [Global<T>, Fused]: ReduceTiles<T, I, HoleMonoid<T>, 4, 9>;
    for I in [Global<u64>, Fused]: ReduceTiles<u64, I, HoleMonoid<u64>, 2, 9>;
    for T in [[u32; 3], [u64; 2]], I in [Global<T>, Fused]: ReduceTiles<T, I, HoleMonoid<T>, 1, 9>;
    for I in [Global<[u64; 4]>, Fused]: ReduceTiles<[u64; 4], I, HoleMonoid<[u64; 4]>, 1, 7>;
}
