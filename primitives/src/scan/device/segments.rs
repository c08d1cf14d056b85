//! The kernel of scans that restart: by key, and of segments.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, lane_mask_lt, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::lookback::LookBack;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::input::{Input, SourceArg};
use crate::monoid::{Combine, HoleMonoid};
use crate::segments::{Flagged, HeadFlags, HeadMemory, Heads, KeyHeads, OffsetHeads, Part, Restart, scan_lanes};
use crate::view::{GlobalMut, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Returns the shared memory of a block: the heads and the elements of the tile, one value per warp, the prefix of the tile,
/// and the ticket.
#[must_use]
pub const fn shared<T: Flagged>(vec: usize, rows: usize) -> usize {
    let tile = THREADS as usize * vec * rows;
    shared_bytes::<u8>(tile)
        + shared_bytes::<T>(tile)
        + shared_bytes::<T::Since>((THREADS / LANES) as usize)
        + shared_bytes::<T>(1)
        + LookBack::BYTES
}

/// Returns the number of blocks that must fit on a multiprocessor, or 0 for any. Code that computes elements takes registers:
/// without a bound, the assembler spills some of them rather than let fewer blocks share a multiprocessor.
const fn blocks_at_once<T, S: Heads>() -> u32 {
    match size_of::<T>() {
        4 if S::COMPARES => 4,
        8 => 4,
        12 | 16 => 3,
        _ => 0,
    }
}

/// Scans tiles of `256 * VEC * ROWS` elements, from `init` at each head.
///
/// This is the scan of [`ScanTiles`](super::kernel::ScanTiles), with one byte of shared memory per element that says whether
/// it is a head. What moves between lanes, warps and tiles is the combination since the last head: it includes `init` if
/// there is a head.
///
/// Keys are compared while they are in registers, as they were loaded, and only the bytes are exchanged.
///
/// Cost: each element is read and written once, and each key, flag or offset is read once. For 2^26 keys and elements of 4
/// bytes, these are 768 MiB: 196 µs at 4.1 TB/s.
///
/// # Safety
/// The launch has one block per tile. `output` is no shorter than `input`. `heads` are those of as many elements, and satisfy
/// the requirements of their type. `scratch` comes from the stream's look-back words, for one `T::Since` per tile. While the
/// kernel runs, nothing writes the input and the heads, and nothing else uses the other buffers.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared::<T>(VEC, ROWS),
    min_blocks = blocks_at_once::<T, S>(),
    native = crate::scan::native::segments::scan_segments
)]
pub unsafe fn scan_segments<T: Flagged, I: Input<T>, S: Heads, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    segments: S,
    output: GlobalMut<T>,
    op: Op,
    init: T,
    inclusive: u32,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let warps = (THREADS / LANES) as usize;
    let run_len = WarpExchange::<T, VEC, ROWS>::LEN;
    let heads = HeadMemory::<VEC, ROWS>::take(&mut memory, THREADS);
    let exchange = WarpExchange::<T, VEC, ROWS>::new(memory.take(warps * run_len));
    let warp_totals = memory.take::<T::Since>(warps);
    let tile_prefix = memory.take::<T>(1);
    segments.clear(heads);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let tile = look_back.tile();
    let len = input.count();
    if tile * warps * run_len >= len {
        // The host did not know the length. No tile waits for those after the last element.
        return;
    }

    let found = segments.find(tile);
    let start = ((tile * warps + warp_id() as usize) * run_len).min(len);
    let run = (len - start).min(run_len);
    exchange.load_from(input, start, run, op.identity());
    segments.mark(heads, Part { tile, start, run }, found);
    exchange.sync();

    let mut own = op.identity();
    let mut starts = 0;
    for row in 0..ROWS {
        let items = exchange.blocked_row(row);
        let is_head = heads.exchange.blocked_row(row);
        for i in 0..VEC {
            own = op.combine(if is_head[i] != 0 { init } else { own }, items[i]);
            starts |= is_head[i];
        }
    }
    let restart = Restart::<T, Op>::new(op);
    let (lanes, head_lanes) = scan_lanes(own, starts != 0, op);
    let below = warp::shuffle_up(lanes, 1);
    let block = scan::scan_warps::<T::Since, _, THREADS>(lanes.since(head_lanes != 0), restart, warp_totals);
    look_back.exchange(block.total, restart, |before_tile| {
        if lane_id() == 0 {
            tile_prefix.set(0, T::parts(before_tile).0);
        }
    });
    thread::sync_threads();

    let (before_warp, is_head_before) = T::parts(block.before);
    let continued = op.combine(tile_prefix.get(0), before_warp);
    let before_warp = if is_head_before { before_warp } else { continued };
    let continued = op.combine(before_warp, below);
    let before = if head_lanes & lane_mask_lt() != 0 { below } else { continued };
    let mut running = if lane_id() == 0 { before_warp } else { before };
    for row in 0..ROWS {
        let mut items = exchange.blocked_row(row);
        let is_head = heads.exchange.blocked_row(row);
        for i in 0..VEC {
            let before = if is_head[i] != 0 { init } else { running };
            running = op.combine(before, items[i]);
            items[i] = if inclusive != 0 { running } else { before };
        }
        exchange.set_blocked_row(row, items);
    }
    exchange.sync();
    exchange.store(output.slice(start, run));
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes by the wider type, but not more than 4 elements. An odd number of rows, for the exchange. With the heads,
    // a tile takes as much shared memory as one of a scan, which has nine rows. Not all GPUs have room for seven rows of
    // 32 bytes.
    family scan_segments(T, VEC, ROWS) {
        for T in [u8, u16, u32], VEC = 4, ROWS = 7, S in [HeadFlags, OffsetHeads]:
            ScanSegments<T, SourceArg, S, HoleMonoid<T>, VEC, ROWS>;
        for T in [u64], VEC = 2, ROWS = 7, S in [HeadFlags, OffsetHeads]:
            ScanSegments<T, SourceArg, S, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u32; 3], [u64; 2]], VEC = 1, ROWS = 7, S in [HeadFlags, OffsetHeads]:
            ScanSegments<T, SourceArg, S, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u64; 4]], VEC = 1, ROWS = 5, S in [HeadFlags, OffsetHeads]:
            ScanSegments<T, SourceArg, S, HoleMonoid<T>, VEC, ROWS>;
    }
    // The scan reads the keys itself.
    family scan_by_key(K, T, VEC, ROWS) {
        for K in [u32], T in [u32], VEC = 4, ROWS = 7:
            ScanSegments<T, SourceArg, KeyHeads<K>, HoleMonoid<T>, VEC, ROWS>;
        for K in [u64], T in [u32], VEC = 2, ROWS = 7:
            ScanSegments<T, SourceArg, KeyHeads<K>, HoleMonoid<T>, VEC, ROWS>;
        for K in [u32, u64], T in [u64], VEC = 2, ROWS = 7:
            ScanSegments<T, SourceArg, KeyHeads<K>, HoleMonoid<T>, VEC, ROWS>;
    }
}
