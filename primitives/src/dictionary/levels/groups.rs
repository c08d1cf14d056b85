//! Merges many short groups of pieces inside a block.

use crate::arch::thread;
use crate::block::merge::{Pieces, path};
use crate::block::runs::{Items, first_half};
use crate::dictionary::KeyCode;
use crate::view::Shared;
use bytemuck::Pod;

/// The pieces of a tile.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Where each piece begins in the tile; one more entry says where the last one ends.
    pub offsets: Shared<u16>,
    /// For each piece, what to add to an index in the tile to get the position in the level.
    pub starts: Shared<u32>,
    pub pieces: u32,
}

impl Table {
    /// Returns where a piece begins in the tile or, for one past the last piece, where the last one ends.
    ///
    /// # Safety
    /// That entry was written before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn offset(self, piece: u32) -> u32 {
        self.offsets.get(piece as usize) as u32
    }

    /// Returns the piece that contains item `at`, which is `piece` or a later one.
    ///
    /// # Safety
    /// The table was written before the last barrier. `piece` is one of its pieces.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn piece(self, at: u32, piece: u32) -> u32 {
        // If pieces are long, it is often the same piece or the next.
        if self.offset(piece + 1) > at {
            return piece;
        }
        if piece + 2 <= self.pieces && self.offset(piece + 2) > at {
            return piece + 1;
        }
        self.group(at, 0)
    }

    /// Returns the last group of `1 << log_width` pieces that begins at or before `at`.
    ///
    /// # Safety
    /// The table was written before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn group(self, at: u32, log_width: u32) -> u32 {
        let (mut low, mut high) = (0, self.pieces >> log_width);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.offset(middle << log_width) <= at {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Merges the pieces of each interval: the form of [`block::merge`] for many short groups. Each thread makes `ITEMS`
/// outputs, which may belong to several pairs of pieces.
///
/// # Safety
/// The requirements of [`block::merge`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn merge_groups<C: KeyCode, P: Pod, const ITEMS: usize>(
    both: Items<C, P>,
    room: usize,
    table: Table,
    rounds: u32,
    count: u32,
) {
    let own = thread::thread_idx_x() * ITEMS as u32;
    let last = count - 1;
    let mut from = first_half(rounds, room);
    let mut round = 0;
    while round < rounds {
        let items = both.slice(from, room);
        let merged = both.slice(room - from, room);
        if own < count {
            let mut pair = table.group(own, round + 1);
            let start = table.offset(pair << (round + 1));
            let mut a_end = table.offset((2 * pair + 1) << round);
            let mut end = table.offset((pair + 1) << (round + 1));
            let diagonal = own - start;
            let pieces = Pieces { a: start, a_len: a_end - start, b: a_end, b_len: end - a_end };
            let share = path(|at| items.key(at as usize), pieces, diagonal, C::ORDER);
            let mut a = start + share;
            let mut b = a_end + diagonal - share;
            let (mut key_a, mut payload_a) = items.get(a.min(last) as usize);
            let (mut key_b, mut payload_b) = items.get(b.min(last) as usize);
            for i in 0..ITEMS as u32 {
                let at = own + i;
                if at < count {
                    if at == end {
                        while at == end {
                            pair += 1;
                            a = end;
                            a_end = table.offset((2 * pair + 1) << round);
                            end = table.offset((pair + 1) << (round + 1));
                        }
                        b = a_end;
                        (key_a, payload_a) = items.get(a as usize);
                        (key_b, payload_b) = items.get(b.min(last) as usize);
                    }
                    let takes_a = a < a_end && (b >= end || key_a <= key_b);
                    let (source, key, payload) = if takes_a { (a, key_a, payload_a) } else { (b, key_b, payload_b) };
                    merged.set(at as usize, key, payload);
                    let next = items.get((source + 1).min(last) as usize);
                    if takes_a {
                        a += 1;
                        (key_a, payload_a) = next;
                    } else {
                        b += 1;
                        (key_b, payload_b) = next;
                    }
                }
            }
        }
        thread::sync_threads();
        from = room - from;
        round += 1;
    }
}
