//! Where the tiles of a sequence of intervals begin and end.

use crate::arch::warp::{FULL, LANES, any, ballot, lane_id};
use crate::block::warp;
use crate::view::Global;

/// Where a tile begins or ends: before interval `interval`, or within it, after `rank` of its candidates.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub interval: u64,
    pub rank: u64,
}

/// Finds the cuts at two places of the sequence: within an interval only if it is longer than `longest`.
///
/// # Safety
/// All lanes of the warp call it; `weights` has the places of all intervals and the end.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn find_cuts(weights: Global<u64>, places: [u64; 2], longest: u64) -> [Cut; 2] {
    let intervals = weights.len() as u64 - 1;
    // Half of the lanes look for each.
    let half = LANES / 2;
    let is_upper = lane_id() >= half;
    let place = if is_upper { places[1] } else { places[0] };
    // The last interval that begins at the place or before it: between `low` and `high`, which is not one.
    let (mut low, mut high) = (0, intervals + 1);
    while any(FULL, high - low > 1) {
        let step = (high - low).div_ceil(half as u64);
        let probe = low + (lane_id() % half) as u64 * step;
        let begins_before = probe < high && weights.get(probe as usize) <= place;
        let ballots = ballot(FULL, begins_before);
        let count = (if is_upper { ballots >> half } else { ballots & ((1 << half) - 1) }).count_ones() as u64;
        low += (count - 1) * step;
        high = if high - low < step { high } else { low + step };
    }
    let mut rank = 0;
    if low < intervals {
        let begin = weights.get(low as usize);
        let len = weights.get(low as usize + 1) - begin;
        rank = if len > longest { place - begin } else { 0 };
    }
    let cut = |lane: u32| Cut { interval: warp::broadcast(low, lane), rank: warp::broadcast(rank, lane) };
    [cut(0), cut(half)]
}
