//! The part of a tile that one thread sorts and merges: its chunk of consecutive items.

use super::heads::Heads;
use super::merge::CoRank;
use crate::arch::warp::{FULL, any};
use crate::compare::KeyOrder;
use bytemuck::Pod;

/// Sorts the runs of a chunk, which begin where `heads` has a bit set. It uses odd-even transposition, with as many
/// phases as the longest run of the warp has items.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn sort_chunk<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    heads: u32,
    compare: C,
) {
    // A run of `m` items has `m - 1` joints and needs `m` phases; each shift removes one joint from each run.
    let mut joints = !heads & ((1 << ITEMS) - 2);
    let mut pairs_of_phases = 0;
    while any(FULL, joints != 0) {
        // The number is small, so the shift yields 0, but the compiler does not know that. Otherwise it would test each
        // bit once, outside of the loop, and keep a register for each.
        let heads = heads ^ pairs_of_phases >> 16;
        for parity in 0..2 {
            let mut right = 1 + parity;
            while right < ITEMS {
                let left = right - 1;
                // Selects, not a branch.
                let swap = compare.less(keys[right], keys[left]) & (heads >> right & 1 == 0);
                (keys[left], keys[right]) = select(swap, keys[left], keys[right]);
                (values[left], values[right]) = select(swap, values[left], values[right]);
                right += 2;
            }
        }
        joints &= joints << 1;
        if pairs_of_phases > 0 {
            joints &= joints << 1;
        }
        pairs_of_phases += 1;
    }
}

/// Returns the two values, swapped if `swap` is set.
#[inline(always)]
fn select<T: Copy>(swap: bool, left: T, right: T) -> (T, T) {
    (if swap { right } else { left }, if swap { left } else { right })
}

/// A segment of a tile that spans chunks.
#[derive(Clone, Copy)]
pub(crate) struct ChunkSegment {
    pub start: u32,
    pub end: u32,
}

/// The segments that a chunk shares with others: that which comes in from the left, and that which goes out to the right. One that does
/// not is empty.
#[derive(Clone, Copy)]
pub(crate) struct Crossings {
    pub incoming: ChunkSegment,
    pub outgoing: ChunkSegment,
}

impl Crossings {
    /// Returns those of the chunk that begins at `chunk`, whose heads are `mask`.
    ///
    /// # Safety
    /// Same as [`Heads::last`] and [`Heads::next`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn of_chunk<const ITEMS: usize>(heads: Heads, chunk: u32, mask: u32) -> Self {
        let chunk_end = chunk + ITEMS as u32;
        let incoming = if mask & 1 == 0 {
            ChunkSegment { start: heads.last(chunk), end: heads.next(chunk + 1) }
        } else {
            ChunkSegment { start: chunk, end: chunk }
        };
        let outgoing = if mask != 0 {
            ChunkSegment { start: chunk + 31 - mask.leading_zeros(), end: heads.next(chunk_end) }
        } else {
            ChunkSegment { start: chunk_end, end: chunk_end }
        };
        Self { incoming, outgoing }
    }
}

impl ChunkSegment {
    /// Returns the merge that chunk `chunk` of the segment takes part in: two adjacent groups of `2^round` pieces.
    #[inline(always)]
    pub(crate) fn merge_of<const ITEMS: usize>(self, chunk: u32, round: u32) -> CoRank {
        let first = self.start / ITEMS as u32;
        let group = chunk.saturating_sub(first) >> (round + 1) << (round + 1);
        let border = |piece: u32| if piece == 0 { self.start } else { ((first + piece) * ITEMS as u32).min(self.end) };
        let middle = border(group + (1 << round));
        CoRank { a: border(group), a_end: middle, b: middle, b_end: border(group + (2 << round)) }
    }
}
