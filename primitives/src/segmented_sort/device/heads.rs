//! The segment starts in a tile.

use crate::view::Shared;

/// The number of head words: one per 32 items, at most 2048 items.
pub(crate) const HEAD_WORDS: usize = 64;

/// Marks the items of a tile that start a segment: one bit per item, and a summary bit per non-zero word.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub words: Shared<u32>,
    pub summary: u64,
}

impl Heads {
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
