//! The kernel that cuts the input into tiles and checks the offsets.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::shape::Shape;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, shuffle_idx};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut};
use bytemuck::{Pod, Zeroable};

/// Threads of a block that looks at offsets.
pub(super) const CUT_THREADS: u32 = 256;
/// Offsets that one thread looks at.
const CUT_ROWS: usize = 4;
/// Offsets that one block looks at.
pub(super) const CUT_TILE: usize = CUT_THREADS as usize * CUT_ROWS;
/// Edges that a thread writes alone; longer rows of them are written by its warp.
const FEW: u32 = 4;

/// Where the words of the status lie. All are zero at first, and only grow.
pub(super) mod status {
    /// `!index` of the first offset that decreases or leaves the input; 0 if there is none.
    pub const BAD_OFFSET: usize = 0;
    /// The most pieces that a segment has been cut into.
    pub const PIECES: usize = 1;
    /// One more than the pass that found the comparator to be no order; 0 if none has.
    pub const BROKEN_PASS: usize = 2;
    /// How many words there are.
    pub const WORDS: usize = 4;
}

/// An edge between two tiles: the position, and the first offset that is not below it.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Edge {
    /// The first item after the edge.
    pub position: u32,
    /// Index of the first offset at or after the position; one past the last offset if there is none.
    pub offset: u32,
}

/// Cuts the input into tiles, at ends of segments where one is near.
///
/// Edge `t` lies at `t * stride`, or at the next offset if that is at most `SLACK` away: so short segments are never cut.
/// Every edge belongs to the one pair of neighbouring offsets that it lies between, and the thread of that pair writes it;
/// there is no search. The offsets are checked on the way, and the number of pieces of each segment is found.
///
/// Reads 4 bytes per segment.
///
/// # Safety
/// The launch has at least one block per 1024 (`CUT_TILE`) of `offsets.len() + 1`, and there are fewer than 2^32
/// offsets. `edges` has one more than the tiles of `len` items; `status` has four words (`status::WORDS`), which are
/// zero. Nobody writes the offsets, and nobody else uses the other buffers, while the kernel runs.
#[kernel(threads = CUT_THREADS)]
pub unsafe fn cut_segments<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    offsets: Global<u32>,
    edges: GlobalMut<Edge>,
    status: GlobalMut<u32>,
    len: u32,
) {
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    let count = offsets.len();
    // Offsets that decrease give an edge to several threads, which is seen and told later: whole words, so that it is no race.
    let words: GlobalMut<u64> = GlobalMut::from_raw(edges.as_const().as_ptr().cast_mut().cast(), edges.len());
    let set_edge = |tile: u32, edge: Edge| {
        let word = edge.position as u64 | (edge.offset as u64) << 32;
        words.atomic_store(tile as usize, word, Scope::Gpu, Order::Relaxed);
    };
    let start = thread::block_idx_x() as usize * CUT_TILE + thread::thread_idx_x() as usize;
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
        // The edges in `before + 1 ..= here`; what lies beyond the last offset belongs to the thread after it.
        let (mut from, mut to) = (1, 0);
        if i <= count {
            if here < before || here > len {
                status.atomic_rmw(Rmw::Max, status::BAD_OFFSET, !(i as u32), Scope::Gpu, Order::Relaxed);
            } else {
                from = if i == 0 { 0 } else { shape.nominal_tile(before) + 1 };
                to = if i < count { shape.nominal_tile(here) } else { shape.tiles(len) };
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
