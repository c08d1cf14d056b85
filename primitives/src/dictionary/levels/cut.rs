//! Finds where the tiles of a sequence of intervals begin and end.

use crate::arch::warp::{FULL, LANES, any, ballot, lane_id};
use crate::block::warp;
use crate::view::Global;

/// Where a tile begins or ends: before interval `interval`, or within it, after `rank` of its overlapping elements.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub interval: u64,
    pub rank: u64,
}

/// Returns, for each of two positions, the index of the last of `len` ascending numbers that is not greater than it.
/// The first number must not be greater than either position.
///
/// Half of the lanes search for each, sixteen numbers at a time.
///
/// # Safety
/// All lanes of the warp call it with the same arguments.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn last_not_after(len: u64, places: [u64; 2], number: impl Fn(u64) -> u64) -> [u64; 2] {
    let half = LANES / 2;
    let is_upper = lane_id() >= half;
    let place = if is_upper { places[1] } else { places[0] };
    // The index is at least `low` and less than `high`.
    let (mut low, mut high) = (0, len);
    while any(FULL, high - low > 1) {
        let step = (high - low).div_ceil(half as u64);
        let probe = low + (lane_id() % half) as u64 * step;
        let ballots = ballot(FULL, probe < high && number(probe) <= place);
        let count = (if is_upper { ballots >> half } else { ballots & ((1 << half) - 1) }).count_ones() as u64;
        low += (count - 1) * step;
        high = if high - low < step { high } else { low + step };
    }
    [warp::broadcast(low, 0), warp::broadcast(low, half)]
}

/// Finds the cuts at two positions of the sequence. A cut falls within an interval only if the interval is longer than
/// `longest`.
///
/// # Safety
/// All lanes of the warp call it with the same arguments. `weights` has the positions of all intervals, and of the end.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn find_cuts(weights: Global<u64>, places: [u64; 2], longest: u64) -> [Cut; 2] {
    let found = last_not_after(weights.len() as u64, places, |at| weights.get(at as usize));
    let cut = |which: usize| {
        let interval = found[which];
        let mut rank = 0;
        if interval + 1 < weights.len() as u64 {
            let begin = weights.get(interval as usize);
            let len = weights.get(interval as usize + 1) - begin;
            rank = if len > longest { places[which] - begin } else { 0 };
        }
        Cut { interval, rank }
    };
    [cut(0), cut(1)]
}
