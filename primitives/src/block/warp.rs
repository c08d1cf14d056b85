//! Full-warp collectives over values of any plain type.

use crate::arch::warp::{self, FULL};
use crate::monoid::Combine;
use bytemuck::Pod;

/// The maximum size of a value that moves between lanes, in 32-bit words: an element of 32 bytes, and a flag.
pub const MAX_WORDS: usize = 9;

/// Applies `f` to a value's 32-bit words.
#[inline(always)]
pub(crate) fn map_words<T: Pod>(value: T, mut f: impl FnMut(usize, u32) -> u32) -> T {
    const { assert!(size_of::<T>() <= 4 * MAX_WORDS, "values that cross lanes or blocks have at most 36 bytes") };
    let mut words = [0u32; MAX_WORDS];
    let mut result = value;
    // SAFETY: both sides are plain data, and `words` has room for the whole value.
    unsafe {
        (&raw const value).cast::<u8>().copy_to_nonoverlapping(words.as_mut_ptr().cast(), size_of::<T>());
        let mut i = 0;
        while i < word_count::<T>() {
            words[i] = f(i, words[i]);
            i += 1;
        }
        words.as_ptr().cast::<u8>().copy_to_nonoverlapping((&raw mut result).cast(), size_of::<T>());
    }
    result
}

/// Returns how many 32-bit words hold a `T`.
#[inline(always)]
pub(crate) const fn word_count<T>() -> usize {
    size_of::<T>().div_ceil(4)
}

/// Returns the value of lane `source`.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn broadcast<T: Pod>(value: T, source: u32) -> T {
    map_words(value, |_, word| warp::shuffle_idx(FULL, word, source))
}

/// Returns the value of the lane `delta` below, or the lane's own value if there is none.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
pub unsafe fn shuffle_up<T: Pod>(value: T, delta: u32) -> T {
    map_words(value, |_, word| warp::shuffle_up(FULL, word, delta))
}

/// Returns the value of the lane `delta` above, or the lane's own value if there is none.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
pub unsafe fn shuffle_down<T: Pod>(value: T, delta: u32) -> T {
    map_words(value, |_, word| warp::shuffle_down(FULL, word, delta))
}

/// Combines the values of the lanes up to and including this one, in lane order, in five steps.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
pub unsafe fn inclusive_scan<T: Pod, Op: Combine<T>>(value: T, op: Op) -> T {
    let lane = warp::lane_id();
    let mut sum = value;
    let mut step = 0;
    while step < 5 {
        let below = shuffle_up(sum, 1 << step);
        if lane >= 1 << step {
            sum = op.combine(below, sum);
        }
        step += 1;
    }
    sum
}

/// Combines the values of all lanes, in lane order, and returns the result to every lane.
///
/// The shape of the combination is fixed, so floating-point results do not vary.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
pub unsafe fn reduce<T: Pod, Op: Combine<T>>(value: T, op: Op) -> T {
    // After step s, lane i holds the combination of lanes i ..= i + 2^(s+1) - 1, as far as they exist; lane 0 ends with
    // all.
    let lane = warp::lane_id();
    let mut sum = value;
    let mut step = 0;
    while step < 5 {
        let above = shuffle_down(sum, 1 << step);
        if lane + (1 << step) < warp::LANES {
            sum = op.combine(sum, above);
        }
        step += 1;
    }
    broadcast(sum, 0)
}
