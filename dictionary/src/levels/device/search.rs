//! A search by a whole warp.

use gpu_primitives::arch::warp::{FULL, LANES, any, ballot, lane_id};
use gpu_primitives::block::warp;

/// Returns, for each of two positions, the index of the last of `len` ascending numbers that is not greater than it.
/// The first number must not be greater than either position.
///
/// Half of the lanes search for each, sixteen numbers at a time.
///
/// # Safety
/// All lanes of the warp call it with the same arguments.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn last_not_after(len: u64, positions: [u64; 2], number: impl Fn(u64) -> u64) -> [u64; 2] {
    let half = LANES / 2;
    let is_upper = lane_id() >= half;
    let position = if is_upper { positions[1] } else { positions[0] };
    // The index is at least `low` and less than `high`.
    let (mut low, mut high) = (0, len);
    while any(FULL, high - low > 1) {
        let step = (high - low).div_ceil(half as u64);
        let probe = low + (lane_id() % half) as u64 * step;
        let ballots = ballot(FULL, probe < high && number(probe) <= position);
        let count = (if is_upper { ballots >> half } else { ballots & ((1 << half) - 1) }).count_ones() as u64;
        low += (count - 1) * step;
        high = if high - low < step { high } else { low + step };
    }
    [warp::broadcast(low, 0), warp::broadcast(low, half)]
}
