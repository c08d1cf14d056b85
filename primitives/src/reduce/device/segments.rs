//! The kernel of segmented reductions.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, lane_mask_lt, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::lookback::TicketSlot;
use crate::block::{lookback, scan, warp};
use crate::form::kernel;
use crate::input::{Input, SourceArg};
use crate::monoid::{Combine, HoleMonoid};
use crate::segments::{Flagged, HeadMemory, Heads as _, OffsetHeads, Part, Restart, scan_lanes};
use crate::view::{GlobalMut, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Returns the shared memory of a block: the heads and the elements of the tile, what comes before each thread and each warp,
/// and the ticket.
#[must_use]
pub const fn shared<T: Flagged>(vec: usize, rows: usize) -> usize {
    let tile = THREADS as usize * vec * rows;
    shared_bytes::<u8>(tile)
        + shared_bytes::<T>(tile)
        + shared_bytes::<T>(THREADS as usize)
        + shared_bytes::<T::Since>((THREADS / LANES) as usize)
        + TicketSlot::BYTES
}

/// Combines the elements of each segment, in tiles of `256 * VEC * ROWS` elements, whatever the lengths of the segments.
///
/// A block loads its tile as a scan does, and marks the heads of segments in shared memory. Each thread goes once over its
/// `VEC * ROWS` consecutive elements and replaces each by the combination since the last head, or since the thread's first
/// element. Shuffles and shared memory bring what comes before each thread. Then the block takes the segments that end in the
/// tile, neighbouring threads neighbouring segments. The last element of a segment has its result, except for what comes
/// before the thread that has gone over it, which one more combination adds. Only the first of these segments can have begun
/// in an earlier tile: its beginning comes from [`lookback`], and no other result waits for it.
///
/// Short and long segments, and empty ones, therefore take the same time per element. A segment adds the reads of its two
/// offsets and the write of its result.
///
/// Cost: each element, each offset and each result once. For 2^26 elements of 4 bytes in segments of 64, these are 264 MiB: 68
/// µs at 4.1 TB/s. Beyond that, two accesses to shared memory each way, and one combination per element.
///
/// # Safety
/// The launch has one block per tile, at least one. `segments` has at least two offsets, and edges for these tiles. `output`
/// has one element per segment. `scratch` comes from the stream's look-back words, for one `T::Since` per tile. While the
/// kernel runs, nothing writes the input and the segments, and nothing else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = shared::<T>(VEC, ROWS), native = crate::reduce::native::segments::reduce_segments)]
pub unsafe fn reduce_segments<T: Flagged, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    segments: OffsetHeads,
    output: GlobalMut<T>,
    op: Op,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let warps = (THREADS / LANES) as usize;
    let run_len = WarpExchange::<T, VEC, ROWS>::LEN;
    let heads = HeadMemory::<VEC, ROWS>::take(&mut memory, THREADS);
    let elements = memory.take::<T>(warps * run_len);
    let exchange = WarpExchange::<T, VEC, ROWS>::new(elements);
    let before_threads = memory.take::<T>(THREADS as usize);
    let warp_totals = memory.take::<T::Since>(warps);
    let slot = TicketSlot::take(&mut memory);

    let tiles = thread::grid_dim_x();
    segments.clear(heads);
    // Not a `LookBack`, which reads its ticket again: there are too few registers for that here.
    let ticket = slot.next(scratch, tiles);
    let tile = ticket.tile as usize;
    let (tile_len, lane_len) = (warps * run_len, VEC * ROWS);
    let tile_start = tile * tile_len;
    let len = input.count();
    if tile > 0 && tile_start >= len {
        // The host did not know the length. No tile waits for those after the last element.
        return;
    }

    let found = segments.find(tile);
    let start = (tile_start + warp_id() as usize * run_len).min(len);
    let part = Part { tile, start, run: (len - start).min(run_len) };
    exchange.load_from(input, start, part.run, op.identity());
    segments.mark(heads, part, found);
    exchange.sync();

    let mut own = op.identity();
    let mut starts = 0;
    for row in 0..ROWS {
        let mut items = exchange.blocked_row(row);
        let is_head = heads.exchange.blocked_row(row);
        for i in 0..VEC {
            own = op.combine(if is_head[i] != 0 { op.identity() } else { own }, items[i]);
            items[i] = own;
            starts |= is_head[i];
        }
        exchange.set_blocked_row(row, items);
    }
    let restart = Restart::<T, Op>::new(op);
    let (lanes, head_lanes) = scan_lanes(own, starts != 0, op);
    let below = warp::shuffle_up(lanes, 1);
    // The barrier of `scan_warps` also makes the elements visible to all threads.
    let block = scan::scan_warps::<T::Since, _, THREADS>(lanes.since(head_lanes != 0), restart, warp_totals);
    if thread::thread_idx_x() == 0 {
        lookback::announce(scratch, ticket, block.total);
    }
    let (before_warp, _) = T::parts(block.before);
    let continued = op.combine(before_warp, below);
    let before = if head_lanes & lane_mask_lt() != 0 { below } else { continued };
    before_threads.set(thread::thread_idx_x() as usize, if lane_id() == 0 { before_warp } else { before });
    thread::sync_threads();

    // The segments that end in this tile are those before these offsets. The first tile also has the empty ones before it, and
    // the last one all that are left.
    let first = if tile == 0 { 1 } else { found.0.max(1) };
    let end = if tile_start + tile_len >= len { segments.offsets.len() } else { found.1 };
    let clamped = |i: usize| segments.offsets.get(i).min(len as u64) as usize;
    let result = |i: usize| {
        let (from, to) = (clamped(i - 1), clamped(i));
        // Offsets that decrease give some value.
        if from >= to || to <= tile_start || to - tile_start > tile_len {
            return op.identity();
        }
        let last = to - tile_start - 1;
        let thread = last / lane_len;
        let own = elements.get(last);
        let with_before = op.combine(before_threads.get(thread), own);
        if from >= tile_start + thread * lane_len { own } else { with_before }
    };
    let mut i = first + 1 + thread::thread_idx_x() as usize;
    while i < end {
        output.set(i - 1, result(i));
        i += THREADS as usize;
    }
    if warp_id() == 0 {
        let (before_tile, _) = T::parts(lookback::look_back(scratch, ticket, tiles, block.total, restart));
        if lane_id() == 0 && first < end {
            let own = result(first);
            let with_before = op.combine(before_tile, own);
            output.set(first - 1, if clamped(first - 1) < tile_start { with_before } else { own });
        }
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, but not more than 4 elements. An odd number of rows, which the exchange requires. With the heads, a tile
    // takes as much shared memory as one of a scan, which has nine rows. Not all GPUs have room for seven rows of 32 bytes.
    family reduce_segments(T, VEC, ROWS) {
        for T in [u8, u16, u32], VEC = 4, ROWS = 7:
            ReduceSegments<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [u64], VEC = 2, ROWS = 7: ReduceSegments<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u32; 3], [u64; 2]], VEC = 1, ROWS = 7:
            ReduceSegments<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
        for T in [[u64; 4]], VEC = 1, ROWS = 5: ReduceSegments<T, SourceArg, HoleMonoid<T>, VEC, ROWS>;
    }
}
