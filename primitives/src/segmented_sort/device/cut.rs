//! The kernel that cuts the input into tiles and checks the offsets.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::shape::Shape;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, shuffle_idx};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::form::kernel;
use crate::input::{Count, SegmentOffsets};
use crate::operator::Record;
use crate::shape::is_for_use;
use crate::view::GlobalMut;
use bytemuck::{Pod, Zeroable};

/// The threads per block that processes offsets.
pub(crate) const CUT_THREADS: u32 = 256;
/// The offsets per thread.
const CUT_ROWS: usize = 4;
/// The offsets per block.
pub(crate) const CUT_TILE: usize = CUT_THREADS as usize * CUT_ROWS;
/// The maximum number of edges that a thread writes alone; the warp writes longer rows together.
const FEW: u32 = 4;

/// The positions of the status words. All are zero at first, and only grow.
pub(crate) mod status {
    /// `!index` of the first offset that decreases or exceeds the input; 0 if there is none.
    pub const BAD_OFFSET: usize = 0;
    /// The maximum number of pieces that a segment has been cut into.
    pub const PIECES: usize = 1;
    /// One more than the pass that found that the comparator is not an order; 0 if none has.
    pub const BROKEN_PASS: usize = 2;
    /// The number of items.
    pub const ITEMS: usize = 3;
    /// The number of status words.
    pub const WORDS: usize = 4;
}

/// An edge between two tiles: the position, and the first offset that is not below it.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub struct Edge {
    /// The first item after the edge.
    pub position: u32,
    /// The index of the first offset at or after the position; one past the last offset if there is none.
    pub offset: u32,
}

/// Cuts the input into tiles, at the end of a segment if one is near.
///
/// Edge `t` lies at `t * stride`, or at the next offset if that is at most `SLACK` away, so short segments are never
/// cut. Every edge lies between exactly one pair of adjacent offsets, and the thread of that pair writes it; no search
/// is needed. The kernel also checks the offsets and computes the number of pieces of each segment. If only the device
/// knows the number of items, the tiles beyond the last segment are empty.
///
/// Reads 4 bytes per segment.
///
/// # Safety
/// The launch has at least one block per 1024 (`CUT_TILE`) of `offsets.len() + 1`, and there are fewer than 2^32
/// offsets. `edges` has one element more than there are tiles of the most items that there can be. `status` has four words
/// (`status::WORDS`), which are zero. While the kernel runs, nothing writes the offsets, and nothing else uses the
/// other buffers.
#[kernel(
    listed = super::instances::CUT_SEGMENTS_PTX,
    listed_if = is_for_use(THREADS),
    threads = CUT_THREADS,
    native = crate::segmented_sort::native::cut_segments
)]
pub unsafe fn cut_segments<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    offsets: SegmentOffsets<u32>,
    edges: GlobalMut<Edge>,
    status: GlobalMut<u32>,
    items: Count,
) {
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    let (offsets, len) = (offsets.get(), items.get() as u32);
    let count = offsets.len();
    // With decreasing offsets, several threads may write the same edge; this is detected and reported later. Atomic
    // stores of whole words avoid a data race.
    let words: GlobalMut<u64> = GlobalMut::from_raw(edges.as_const().as_ptr().cast_mut().cast(), edges.len());
    let set_edge = |tile: u32, edge: Edge| {
        let word = edge.position as u64 | (edge.offset as u64) << 32;
        words.atomic_store(tile as usize, word, Scope::Gpu, Order::Relaxed);
    };
    let start = thread::block_idx_x() as usize * CUT_TILE + thread::thread_idx_x() as usize;
    if start == 0 {
        status.atomic_store(status::ITEMS, len, Scope::Gpu, Order::Relaxed);
    }
    let mut before = [0; CUT_ROWS];
    let mut here = [0; CUT_ROWS];
    for row in 0..CUT_ROWS {
        let i = start + row * CUT_THREADS as usize;
        if i <= count {
            before[row] = if i > 0 { offsets.get(i - 1) } else { 0 };
            here[row] = if i < count { offsets.get(i) } else { before[row] };
        }
    }
    for row in 0..CUT_ROWS {
        let i = start + row * CUT_THREADS as usize;
        let (before, here) = (before[row], here[row]);
        // The edges in `before + 1 ..= here`. Those beyond the last offset belong to the thread after it.
        let (mut from, mut to) = (1, 0);
        if i <= count {
            if here < before || here > len {
                status.atomic_rmw(Rmw::Max, status::BAD_OFFSET, !(i as u32), Scope::Gpu, Order::Relaxed);
            } else {
                from = if i == 0 { 0 } else { shape.nominal_tile(before) + 1 };
                to = if i < count { shape.nominal_tile(here) } else { shape.tiles(items.most() as u32) };
                let pieces = shape.pieces(before, here);
                if i > 0 && pieces > 1 {
                    status.atomic_rmw(Rmw::Max, status::PIECES, pieces, Scope::Gpu, Order::Relaxed);
                }
            }
        }
        // Before the first offset and after the last one there is nothing to do: those tiles are empty.
        let snap = i == 0 || i >= count;
        let many = to + 1 > from + FEW;
        if !many {
            let mut tile = from;
            while tile <= to {
                set_edge(tile, shape.edge(tile, here, i as u32, snap));
                tile += 1;
            }
        }
        let mut pending = ballot(FULL, many);
        while pending != 0 {
            let lane = pending.trailing_zeros();
            pending &= pending - 1;
            let last = shuffle_idx(FULL, to, lane);
            let offset = shuffle_idx(FULL, i as u32, lane);
            let here = shuffle_idx(FULL, here, lane);
            let snap = shuffle_idx(FULL, u32::from(snap), lane) != 0;
            let mut tile = shuffle_idx(FULL, from, lane) + lane_id();
            while tile <= last {
                set_edge(tile, shape.edge(tile, here, offset, snap));
                tile += LANES;
            }
        }
    }
}
