//! The scan kernel.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::lookback::LookBack;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::input::{Input, SourceArg};
use crate::monoid::{Combine, HoleMonoid};
use crate::shape::is_for_use;
use crate::view::{GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Returns the shared memory of a block: the warps' exchange, one value per warp, the prefix of the tile, and the
/// ticket.
#[must_use]
pub const fn shared<T>(threads: u32, vec: usize, rows: usize) -> usize {
    let warps = (threads / LANES) as usize;
    shared_bytes::<T>(threads as usize * vec * rows) + shared_bytes::<T>(warps) + shared_bytes::<T>(1) + LookBack::BYTES
}

/// Scans tiles of `THREADS * VEC * ROWS` elements.
///
/// A warp loads `ROWS` rows of `32 * VEC` consecutive elements, one coalesced access each. It exchanges them through
/// shared memory, so that each lane holds `VEC * ROWS` consecutive elements. Each lane combines its own elements, and a
/// shuffle scan combines the lanes. One value per warp goes through shared memory, and one value per tile through
/// [`LookBack`]. Then each lane goes over its elements again, starting from the prefix before them, and the rows are
/// stored in the way they were loaded.
///
/// A tile waits for all tiles before it. What matters is therefore how soon a tile publishes, and how many bytes are in
/// flight meanwhile: the elements stay in shared memory while the look-back waits, and the registers are free for
/// blocks that load. (Letting a block load its next tile in the meantime cost a quarter of the throughput when
/// measured: that tile is loaded early but publishes late, and all others wait for it.)
///
/// Cost: every element is read and written once, `2 * size_of::<T>()` bytes; 6 shuffles per lane; about 32 words of 8
/// bytes per tile and level for the look-back, which is 1 % of the traffic for a tile of 9216 words.
///
/// # Safety
/// The launch has one block per tile. `output` is no shorter than `input`; they are the same memory or do not overlap.
/// `scratch` comes from the stream's look-back words, for one `T` per tile. While the kernel runs, nothing else writes
/// the input or uses the other buffers.
#[kernel(
    listed,
    listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<T>(THREADS, VEC, ROWS),
    native = crate::scan::native::scan_tiles
)]
pub unsafe fn scan_tiles<
    T: Pod,
    I: Input<T>,
    Op: Combine<T>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    input: I,
    output: GlobalMut<T>,
    op: Op,
    init: T,
    inclusive: u32,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let warps = (THREADS / LANES) as usize;
    let exchange = WarpExchange::<T, VEC, ROWS>::new(memory.take(warps * WarpExchange::<T, VEC, ROWS>::LEN));
    let warp_totals = memory.take::<T>(warps);
    let tile_prefix = memory.take::<T>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());

    let run_len = WarpExchange::<T, VEC, ROWS>::LEN;
    let start = (look_back.tile() * warps + warp_id() as usize) * run_len;
    let len = input.count();
    if look_back.tile() * warps * run_len >= len {
        // The host did not know the length. No tile waits for those after the last element.
        return;
    }
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
    let lanes = warp::inclusive_scan(own, op);
    let below = warp::shuffle_up(lanes, 1);
    let block = scan::scan_warps::<T, Op, THREADS>(lanes, op, warp_totals);
    look_back.exchange(block.total, op, |prefix| {
        if lane_id() == 0 {
            tile_prefix.set(0, op.combine(init, prefix));
        }
    });
    thread::sync_threads();

    let mut running = op.combine(tile_prefix.get(0), block.before);
    if lane_id() > 0 {
        running = op.combine(running, below);
    }
    for row in 0..ROWS {
        let mut items = exchange.blocked_row(row);
        for i in 0..VEC {
            let before = running;
            running = op.combine(running, items[i]);
            items[i] = if inclusive != 0 { running } else { before };
        }
        exchange.set_blocked_row(row, items);
    }
    exchange.sync();
    exchange.store(output.slice(start.min(len), run));
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, but not more than 4 elements. An odd number of rows, which the exchange requires. 144 bytes per
    // thread measured best. Not all GPUs have room for nine rows of 32 bytes.
    family scan_tiles(T, VEC, ROWS) {
        for T in [u8, u16, u32], VEC = 4, ROWS = 9:
            ScanTiles<T, SourceArg, HoleMonoid<T>, 256, VEC, ROWS>;
        for T in [u64], VEC = 2, ROWS = 9: ScanTiles<T, SourceArg, HoleMonoid<T>, 256, VEC, ROWS>;
        for T in [[u32; 3], [u64; 2]], VEC = 1, ROWS = 9:
            ScanTiles<T, SourceArg, HoleMonoid<T>, 256, VEC, ROWS>;
        for T in [[u64; 4]], VEC = 1, ROWS = 7:
            ScanTiles<T, SourceArg, HoleMonoid<T>, 256, VEC, ROWS>;
    }
}
