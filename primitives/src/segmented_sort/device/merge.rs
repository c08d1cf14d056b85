//! Merges two runs with many threads, safely for comparators that are not an order.
//!
//! A search finds where a thread starts (the *split* of the runs after a number of outputs). Where it ends follows from
//! its merge. If the comparator is a strict weak order, each thread ends where the next one starts. Otherwise they may
//! not fit together, and items would be lost. So the threads of a block compare their positions. If any two disagree,
//! no thread writes, and the runs stay as they are.

use super::items::Items;
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, shuffle_up};
use crate::compare::KeyOrder;
use crate::view::{Global, Shared};
use bytemuck::Pod;

/// No position.
pub(crate) const NONE: u32 = !0;
/// A position that matches no other.
const WRONG: u32 = !0 - 1;

/// Two runs, or what is left of them: `a .. a_end` and `b .. b_end`. Among equal keys, those of the first run come
/// first.
#[derive(Clone, Copy)]
pub(crate) struct CoRank {
    pub a: u32,
    pub a_end: u32,
    pub b: u32,
    pub b_end: u32,
}

impl CoRank {
    /// Returns the minimum and maximum number of the first `done` outputs that can come from the first run.
    #[inline(always)]
    fn bounds(self, done: u32) -> (u32, u32) {
        (done.saturating_sub(self.b_end - self.b), done.min(self.a_end - self.a))
    }
}

/// Returns how many of the first `done` outputs come from the first run: a binary search by one thread.
///
/// # Safety
/// The runs lie in `keys`; `done` is at most their combined length.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn split<K: Pod, C: KeyOrder<K>>(keys: Shared<K>, runs: CoRank, done: u32, compare: C) -> u32 {
    let (mut low, mut high) = runs.bounds(done);
    while low < high {
        let middle = (low + high) / 2;
        let from_a = keys.get((runs.a + middle) as usize);
        let from_b = keys.get((runs.b + (done - 1 - middle)) as usize);
        if compare.less(from_b, from_a) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// [`split`] for runs in global memory: a warp probes 32 positions at a time. All lanes get the result.
///
/// # Safety
/// Same as [`split`]; all lanes of the warp must call this with the same arguments.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn split_by_warp<K: Pod, C: KeyOrder<K>>(
    keys: Global<K>,
    runs: CoRank,
    done: u32,
    compare: C,
) -> u32 {
    let (mut low, mut high) = runs.bounds(done);
    while low < high {
        let step = (high - low).div_ceil(LANES);
        // The last position of each lane's share; the shares of high lanes may be empty.
        let share = lane_id().saturating_mul(step).min(high - low);
        let place = (high - low - share).min(step);
        let mut before = false;
        if place == step {
            let probe = low + share + step - 1;
            let from_a = keys.get((runs.a + probe) as usize);
            let from_b = keys.get((runs.b + (done - 1 - probe)) as usize);
            before = !compare.less(from_b, from_a);
        }
        let whole = ballot(FULL, place == step);
        let passed = ballot(FULL, before).trailing_ones();
        // The lane that said no has found an upper bound, unless its share was cut short.
        let next = (passed * step).min(high - low);
        if passed < LANES && whole >> passed & 1 == 1 {
            high = low + next + step - 1;
        }
        low += next;
    }
    low
}

/// A merge that one thread performs step by step.
#[derive(Clone, Copy)]
pub(crate) struct Merge<K> {
    rest: CoRank,
    /// Below this position, the first run goes first without a comparison.
    in_place: u32,
    key_a: K,
    key_b: K,
}

impl<K: Pod> Merge<K> {
    /// Starts a merge.
    ///
    /// # Safety
    /// The runs lie in `keys`, all of which have been written, and there is one more key after them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn new(keys: Shared<K>, rest: CoRank, in_place: u32) -> Self {
        let key_a = keys.get(rest.a as usize);
        let key_b = keys.get(rest.b as usize);
        Self { rest, in_place, key_a, key_b }
    }

    /// Returns how far the first run is consumed.
    #[inline(always)]
    pub(crate) fn position(self) -> u32 {
        self.rest.a
    }

    /// Returns the next output.
    ///
    /// # Safety
    /// There is a next output.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn next<V: Pod, C: KeyOrder<K>>(
        &mut self,
        items: Items<Shared<K>, Shared<V>>,
        compare: C,
    ) -> (K, V) {
        let rest = &mut self.rest;
        let in_order = !compare.less(self.key_b, self.key_a) | (rest.a < self.in_place);
        let take_a = (rest.b >= rest.b_end) | ((rest.a < rest.a_end) & in_order);
        let key = if take_a { self.key_a } else { self.key_b };
        let at = if take_a { rest.a } else { rest.b };
        let value = items.value(at as usize);
        let following = items.keys.get(at as usize + 1);
        if take_a {
            rest.a = at + 1;
            self.key_a = following;
        } else {
            rest.b = at + 1;
            self.key_b = following;
        }
        (key, value)
    }
}

/// Returns the words of shared memory of a [`Vote`].
pub(crate) const fn vote_words(threads: u32) -> usize {
    2 * (threads / LANES) as usize
}

/// A check whether each thread of the block ended where the next one started.
#[derive(Clone, Copy)]
pub(crate) struct Vote<const THREADS: u32> {
    /// Where the last lane of each warp ended, followed by where the first lane of each started.
    words: Shared<u32>,
}

impl<const THREADS: u32> Vote<THREADS> {
    const WARPS: usize = (THREADS / LANES) as usize;

    /// Creates the vote in `words`.
    ///
    /// # Safety
    /// `words` has [`vote_words`].
    #[inline(always)]
    pub(crate) unsafe fn new(words: Shared<u32>) -> Self {
        Self { words }
    }

    /// Records where this thread started, or [`NONE`] if it need not match the thread before it, and where it ended.
    ///
    /// # Safety
    /// All threads of the block call this, then the barrier, then [`agreed`](Self::agreed), then the barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn cast(self, started: u32, ended: u32) {
        let before = shuffle_up(FULL, ended, 1);
        let wrong = any(FULL, (lane_id() > 0) & (started != NONE) & (started != before));
        let warp = thread::thread_idx_x() / LANES;
        if lane_id() == LANES - 1 {
            self.words.set(warp as usize, ended);
        }
        if lane_id() == 0 {
            self.words.set(Self::WARPS + warp as usize, if wrong { WRONG } else { started });
        }
    }

    /// Returns whether all threads fit together.
    ///
    /// # Safety
    /// See [`cast`](Self::cast).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn agreed(self) -> bool {
        let mut agreed = self.words.get(Self::WARPS) == NONE;
        for warp in 1..Self::WARPS {
            let started = self.words.get(Self::WARPS + warp);
            agreed &= (started == NONE) | (started == self.words.get(warp - 1));
        }
        agreed
    }
}
