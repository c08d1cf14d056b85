//! The parts of a merge within a block: the merge path, and the check that the threads' pieces fit together.

use crate::arch::warp::{FULL, LANES, all, any, lane_id, shuffle_down, warp_id};
use crate::compare::KeyOrder;
use crate::view::Shared;
use bytemuck::Pod;

/// Two sorted pieces of the same memory.
#[derive(Clone, Copy)]
pub struct Pieces {
    /// The start of the first piece.
    pub a: u32,
    /// The length of the first piece.
    pub a_len: u32,
    /// The start of the second piece.
    pub b: u32,
    /// The length of the second piece.
    pub b_len: u32,
}

/// Returns how many of the first `diagonal` items of the stable merge come from the first piece.
///
/// For any comparator, the result lies between `diagonal - b_len` and `a_len`, so that both shares exist.
///
/// # Safety
/// `key` returns the keys of the pieces; `diagonal <= a_len + b_len`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn path<K: Pod, C: KeyOrder<K>>(key: impl Fn(u32) -> K, pieces: Pieces, diagonal: u32, compare: C) -> u32 {
    // How far the shares of a thousand random items deviate from the expected ones, with a margin.
    const REACH: u32 = 32;
    let mut low = diagonal.saturating_sub(pieces.b_len);
    let mut high = if diagonal < pieces.a_len { diagonal } else { pieces.a_len };
    let is_more = |share: u32| !compare.less(key(pieces.b + diagonal - 1 - share), key(pieces.a + share));
    if high - low > 4 * REACH {
        let expected = (diagonal as f32 * (pieces.a_len as f32 / (pieces.a_len + pieces.b_len) as f32)) as u32;
        // At least one position within the window on each side, whatever was expected.
        let left = expected.saturating_sub(REACH).clamp(low, high - 1);
        let right = (expected + REACH).clamp(low, high - 1);
        if is_more(right) {
            low = right + 1;
        } else {
            high = right;
            if left < right && is_more(left) {
                low = left + 1;
            } else if left < right {
                high = left;
            }
        }
    }
    while low < high {
        let middle = (low + high) / 2;
        if is_more(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Checks whether each thread's merge ends where the next one begins.
///
/// With a strict weak order it always does. With any other comparator, pieces might overlap or leave gaps. The block
/// detects this and takes the items in their original order, so that none is lost.
#[derive(Clone, Copy)]
pub struct Chain {
    ends: Shared<u32>,
}

impl Chain {
    /// Returns the words of shared memory for a block.
    #[must_use]
    pub const fn words(threads: u32) -> usize {
        2 * (threads / LANES) as usize
    }

    /// The end of a broken piece: no thread begins there.
    const BROKEN: u32 = u32::MAX;

    /// Creates the chain in [`words`](Self::words) words.
    #[inline(always)]
    #[must_use]
    pub const fn new(ends: Shared<u32>) -> Self {
        Self { ends }
    }

    /// Posts where this thread's piece begins and ends. Both are below `u32::MAX`.
    ///
    /// # Safety
    /// All threads of the block must call this. A barrier separates it from [`holds`](Self::holds), and another one
    /// separates that from the next call on the same words.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn post(self, start: u32, end: u32) {
        let next = shuffle_down(FULL, start, 1);
        let broken = any(FULL, lane_id() < LANES - 1 && next != end);
        let at = 2 * warp_id() as usize;
        if lane_id() == 0 {
            self.ends.set(at, start);
        }
        if lane_id() == LANES - 1 {
            self.ends.set(at + 1, if broken { Self::BROKEN } else { end });
        }
    }

    /// Returns whether all pieces fit together and the last one ends at `last`.
    ///
    /// # Safety
    /// Same as [`post`](Self::post).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn holds(self, last: u32) -> bool {
        let at = 2 * lane_id() as usize;
        let mut fits = true;
        if at < self.ends.len() {
            let next = if at + 2 < self.ends.len() { self.ends.get(at + 2) } else { last };
            fits = self.ends.get(at + 1) == next;
        }
        all(FULL, fits)
    }
}
