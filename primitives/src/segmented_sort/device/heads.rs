//! The segment starts in a tile.

use crate::arch::warp::{FULL, LANES, ballot, lane_id};
use crate::arch::{Rmw, thread};
use crate::view::{Global, Shared};

/// The number of head words: one per 32 items, at most 2048 items.
pub(crate) const HEAD_WORDS: usize = 64;

/// Marks the items of a tile that start a segment: one bit per item, and a summary bit per non-zero word.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub words: Shared<u32>,
    pub summary: u64,
}

/// Sets bit 0 and all bits from the tile's end on, and clears the others.
///
/// # Safety
/// All threads of the block call this, and then the barrier. There are [`HEAD_WORDS`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn clear<const THREADS: u32>(words: Shared<u32>, len: u32) {
    let mut word = thread::thread_idx_x();
    while word < HEAD_WORDS as u32 {
        let below = (32 * word).min(len);
        let inside = (len - below).min(32);
        let beyond = if inside == 32 { 0 } else { !0 << inside };
        words.set(word as usize, beyond | u32::from(word == 0));
        word += THREADS;
    }
}

/// Sets the bits of the segments that begin in a tile: `range` are the first of their offsets, and the one after the last.
///
/// # Safety
/// All threads of the block call this, after a barrier behind [`clear`], and then the barrier. The tile has `len` items, from `start`
/// on. Nothing writes the offsets.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn mark<const THREADS: u32>(
    words: Shared<u32>,
    offsets: Global<u32>,
    range: (u32, u32),
    start: u32,
    len: u32,
) {
    let mut i = range.0 as usize + thread::thread_idx_x() as usize;
    while i < (range.1 as usize).min(offsets.len()) {
        let head = offsets.get(i).wrapping_sub(start);
        if head < len {
            words.atomic_rmw(Rmw::Or, (head / 32) as usize, 1 << (head % 32));
        }
        i += THREADS as usize;
    }
}

impl Heads {
    /// Returns the bits with their summary.
    ///
    /// # Safety
    /// All lanes of the warp call this, after a barrier behind [`mark`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn summarize(words: Shared<u32>) -> Self {
        let low = ballot(FULL, words.get(lane_id() as usize) != 0);
        let high = ballot(FULL, words.get((lane_id() + LANES) as usize) != 0);
        Self { words, summary: u64::from(high) << 32 | u64::from(low) }
    }

    /// Returns the bits `from .. from + count`; `count` is at most 32.
    ///
    /// # Safety
    /// The word of bit `from` and the one after it exist and were written before the last barrier. `count` is at least
    /// 1.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn mask(self, from: u32, count: u32) -> u32 {
        let word = (from / 32) as usize;
        let two = u64::from(self.words.get(word)) | u64::from(self.words.get(word + 1)) << 32;
        (two >> (from % 32)) as u32 & (!0 >> (32 - count))
    }

    /// Returns the last head at or before `at`. There is one, at 0.
    ///
    /// # Safety
    /// The bits up to `at` exist and were written before the last barrier, and bit 0 is set. The summary matches the
    /// words.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn last(self, at: u32) -> u32 {
        let mut word = at / 32;
        let mut bits = self.words.get(word as usize) & (!0 >> (31 - at % 32));
        if bits == 0 {
            word = 63 - (self.summary & ((1 << word) - 1)).leading_zeros();
            bits = self.words.get(word as usize);
        }
        word * 32 + 31 - bits.leading_zeros()
    }

    /// Returns the first head at or after `at`. There is one, since all bits from the tile's end on are set.
    ///
    /// # Safety
    /// The bits exist and were written before the last barrier, and one at or after `at` is set. The summary matches
    /// the words.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn next(self, at: u32) -> u32 {
        let mut word = at / 32;
        let mut bits = self.words.get(word as usize) & (!0 << (at % 32));
        if bits == 0 {
            word = (self.summary & (!1 << word)).trailing_zeros();
            bits = self.words.get(word as usize);
        }
        word * 32 + bits.trailing_zeros()
    }
}
