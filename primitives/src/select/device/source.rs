//! Selection from a source, or of items of other sizes than 1, 2, 4 and 8 bytes.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::predicate::{HolePredicate, Keep};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::block::lookback::LookBack;
use crate::block::scan;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::Sum;
use crate::view::{GlobalMut, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Returns the items per thread: at most 32 registers of them.
#[must_use]
pub(crate) const fn rows<H>() -> usize {
    match size_of::<H>() {
        0..=8 => 16,
        9..=16 => 8,
        _ => 4,
    }
}

/// Returns the shared memory of a block: the kept items, one count per warp, the tile's position, and the ticket.
#[must_use]
pub const fn shared<H>(rows: usize) -> usize {
    shared_bytes::<H>(THREADS as usize * rows)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
        + shared_bytes::<u64>(1)
        + LookBack::BYTES
}

/// Compacts the kept items of tiles of `256 * ROWS` items, in one pass.
///
/// A warp reads rows of 32 items, one per lane, and tests them. A ballot per row ranks the kept items. One count per warp
/// goes through shared memory, and thread 0 announces the count of the tile. Then the kept items are compacted in shared
/// memory while the first warp looks back, and the block writes them in coalesced accesses.
///
/// Cost: every item is read once, every kept item is written once; one ballot per row; the look-back.
///
/// # Safety
/// The launch has one block per tile. The output is at least as long as the source; `count` has one element. `scratch`
/// comes from the stream's look-back words, for one `u64` per tile. While the kernel runs, nothing writes what the source
/// reads, and nothing else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = shared::<H>(ROWS), native = crate::select::native::select_source)]
pub unsafe fn select_source<H: RegisterRepr, const ROWS: usize>(
    input: SourceArg,
    output: GlobalMut<H>,
    keep: HolePredicate,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let stage = memory.take::<H>(THREADS as usize * ROWS);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let place = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());

    let len = Input::<H>::count(&input);
    let tile_len = THREADS as usize * ROWS;
    let tile_start = look_back.tile() * tile_len;
    if tile_start >= len {
        // The host did not know the length. No tile waits for those after the last item.
        if tile_start == 0 && thread::thread_idx_x() == 0 {
            count.set(0, 0);
        }
        return;
    }
    let start = tile_start + (warp_id() as usize * ROWS * LANES as usize) + lane_id() as usize;
    let mut items = [H::zeroed(); ROWS];
    for row in 0..ROWS {
        let index = start + row * LANES as usize;
        if index < len {
            items[row] = input.item(index);
        }
    }
    let mut kept = [0u32; ROWS];
    let mut total = 0;
    for row in 0..ROWS {
        let index = start + row * LANES as usize;
        // Predicates are only called with items.
        let passes = index < len && keep.item(index, items[row]);
        kept[row] = ballot(FULL, passes);
        total += kept[row].count_ones();
    }
    let block = scan::scan_warps::<u32, Sum, THREADS>(total, Sum, warp_totals);
    look_back.announce(u64::from(block.total));
    let lower = (1u32 << lane_id()) - 1;
    let mut before = block.before;
    for row in 0..ROWS {
        if kept[row] >> lane_id() & 1 != 0 {
            stage.set((before + (kept[row] & lower).count_ones()) as usize, items[row]);
        }
        before += kept[row].count_ones();
    }
    look_back.look_back(u64::from(block.total), Sum, |before| {
        if lane_id() == 0 {
            place.set(0, before);
            if tile_start + tile_len >= len {
                count.set(0, before + u64::from(block.total));
            }
        }
    });
    thread::sync_threads();

    let to = output.slice(place.get(0) as usize, block.total as usize);
    let mut at = thread::thread_idx_x() as usize;
    while at < to.len() {
        to.set(at, stage.get(at));
        at += THREADS as usize;
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family select_source(H, ROWS) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]], ROWS = rows::<H>(): SelectSource<H, ROWS>;
    }
}
