//! Kernels that merge levels tile by tile: for counts, ranges, cleanups, exports, and merges with tombstones.
//!
//! # Algorithm
//! The *overlapping elements* of an interval are the elements of all levels within it. All intervals, one after the
//! other, each with its overlapping elements in merged order, make one long sequence. It is cut into tiles.
//!
//! A block does these steps for a tile:
//! 1. It finds where the tile begins and ends: see [`cuts`].
//! 2. It finds the [`pieces`] of the tile, one per interval and level, oldest first.
//! 3. It [loads](load) the elements of the pieces into shared memory.
//! 4. It [merges](merge) the pieces of each interval pairwise.
//! 5. It finds the [`live`] elements.
//! 6. It [counts](count) them for each interval, or it compacts them and [writes](emit) them after those of earlier
//!    tiles, whose number a [look-back](gpu_primitives::block::lookback) gives.
//!
//! A third kernel [keeps](keep) all elements instead, with their tombstone marks.
//!
//! # Tiles
//! An interval with fewer elements than a quarter of a tile's [room] is never cut: a cut that would fall into it is
//! moved to its beginning. So a tile has at most a third more than its [nominal] length, which is three quarters of the
//! room. Longer intervals are cut anywhere, by [splitting](block::split) the windows of the levels. If whole levels are
//! merged, there is one interval of everything. Then a partition has split the levels before, and all tiles but the last
//! have the same length.
//!
//! # Cost
//! Reads every overlapping element once, and writes every live one once. The merge takes one round per factor of two in
//! the number of levels.

mod count;
mod cuts;
mod emit;
mod keep;
mod live;
mod load;
mod merge;
mod pieces;
mod workspace;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use count::{CountLive, count_items};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use cuts::Cuts;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use emit::EmitLive;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use keep::MergeMarked;

use super::table::MAX_LEVELS;
use gpu_primitives::block::runs as block;

/// Threads per block. Two blocks share a multiprocessor, with 80 registers per thread.
const THREADS: u32 = 384;

/// Blocks per multiprocessor.
pub(crate) const BLOCKS_AT_ONCE: u32 = 2;

/// The least weight of an interval, in elements per piece. It limits the number of pieces in a tile.
pub(crate) const LEAST_PER_PIECE: usize = 2;

/// Returns the number of items per thread: an odd number, to avoid bank conflicts.
#[must_use]
pub(crate) const fn items<C, P>() -> usize {
    match size_of::<C>() + size_of::<P>() {
        0..=8 => 13,
        9..=12 => 9,
        13..=16 => 7,
        17..=24 => 5,
        25..=40 => 3,
        _ => 1,
    }
}

/// Returns how many elements a tile has room for: whole lines of 32, and enough fewer than the threads could take that
/// they suffice for up to 32 pieces. See [`block::room`].
#[must_use]
pub(crate) const fn room(items: usize) -> usize {
    block::room(THREADS, items, MAX_LEVELS.ilog2())
}

/// Returns the nominal length of a tile of intervals. Intervals longer than the rest of the room may be cut.
#[must_use]
pub(crate) const fn nominal(items: usize) -> usize {
    room(items) / 4 * 3
}
