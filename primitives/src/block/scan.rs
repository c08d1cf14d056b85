//! The block scan: one value per thread.

use super::warp;
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::monoid::Combine;
use crate::view::Shared;
use bytemuck::Pod;

/// The combination of what precedes a warp (or thread) in its block, and of the whole block.
#[derive(Clone, Copy)]
pub struct WarpPrefix<T> {
    /// The combination of everything before.
    pub before: T,
    /// The combination of the whole block.
    pub total: T,
}

/// Combines one value per warp: returns what comes before this warp, and the total.
///
/// Every thread reads the values of all warps from shared memory and folds them itself. For up to 32 warps that takes
/// fewer steps than a second shuffle scan followed by a second barrier, and the shape is the same in every thread.
///
/// # Safety
/// All threads of the block must call this. The value of a warp is that of its last lane. `scratch` has room for one
/// value per warp, and nothing else uses it until the next barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn scan_warps<T: Pod, Op: Combine<T>, const THREADS: u32>(
    value: T,
    op: Op,
    scratch: Shared<T>,
) -> WarpPrefix<T> {
    let warp = warp_id();
    if lane_id() == LANES - 1 {
        scratch.set(warp as usize, value);
    }
    thread::sync_threads();
    let mut before = op.identity();
    let mut total = op.identity();
    let mut i = 0;
    while i < THREADS / LANES {
        if i == warp {
            before = total;
        }
        total = op.combine(total, scratch.get(i as usize));
        i += 1;
    }
    WarpPrefix { before, total }
}

/// Returns the exclusive scan of one value per thread, and the total.
///
/// # Safety
/// All threads of the block must call this. `scratch` has room for one value per warp, and nothing else uses it until
/// the next barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn exclusive_scan<T: Pod, Op: Combine<T>, const THREADS: u32>(
    value: T,
    op: Op,
    scratch: Shared<T>,
) -> WarpPrefix<T> {
    let inclusive = warp::inclusive_scan(value, op);
    let warps = scan_warps::<T, Op, THREADS>(inclusive, op, scratch);
    let below = warp::shuffle_up(inclusive, 1);
    let before = if lane_id() == 0 { warps.before } else { op.combine(warps.before, below) };
    WarpPrefix { before, total: warps.total }
}
