//! Values that restart at the heads of segments, in the shape in which blocks combine them, for the native bodies of kernels.

use super::device::edges::FindEdges;
use super::device::heads::FlagHeads;
use super::{Flagged, Restart};
use crate::block::native::WARP;
use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use std::ops::Range;

/// A warp after [`scan_warp`].
pub(crate) struct Warp<T> {
    /// For each lane, the combination up to and including it, since the last lane with a head.
    lanes: [T; WARP],
    /// The lanes with heads.
    heads: u32,
}

/// Combines the values of the lanes as [`scan_lanes`](super::scan_lanes) does. `heads` has a bit for each lane with a head.
pub(crate) fn scan_warp<T: Flagged>(mut lanes: [T; WARP], heads: u32, op: impl Combine<T>) -> Warp<T> {
    let reaches = reaches(heads);
    let mut both = [T::zeroed(); WARP];
    for step in 0..WARP.ilog2() {
        let distance = 1 << step;
        op.combine_each(&lanes, &lanes[distance..], &mut both[distance..]);
        for lane in distance..WARP {
            if distance <= reaches[lane] {
                lanes[lane] = both[lane];
            }
        }
    }
    Warp { lanes, heads }
}

/// Returns how many lanes there are between each lane and the last one up to it that has a head; or the first lane.
fn reaches(heads: u32) -> [usize; WARP] {
    std::array::from_fn(|lane| {
        let up_to = heads & (u32::MAX >> (WARP - 1 - lane));
        lane - (WARP as u32 - up_to.leading_zeros()).saturating_sub(1) as usize
    })
}

/// Returns what comes before each thread of a block, since the last head; and the total of the block. `before_warp` makes the
/// first of what comes before a warp within the block.
pub(crate) fn before_threads<T: Flagged, Op: Combine<T>>(
    warps: &[Warp<T>],
    restart: Restart<T, Op>,
    op: Op,
    before_warp: &dyn Fn(T::Since) -> T,
) -> (Vec<T>, T::Since) {
    let mut block = restart.identity();
    let mut before = Vec::with_capacity(warps.len() * WARP);
    for warp in warps {
        let before_warp = before_warp(block);
        before.push(before_warp);
        // The lanes up to the first head continue what comes before the warp.
        let continuing = (warp.heads.trailing_zeros() as usize).min(WARP - 1);
        let mut continued = [T::zeroed(); WARP];
        op.combine_each(&[before_warp; WARP][..continuing], &warp.lanes, &mut continued);
        before.extend_from_slice(&continued[..continuing]);
        before.extend_from_slice(&warp.lanes[continuing..WARP - 1]);
        block = restart.combine(block, warp.lanes[WARP - 1].since(warp.heads != 0));
    }
    (before, block)
}

/// Returns the pieces of a range that begin at its start and at the heads in it, and whether each begins with a head. `heads`
/// has a byte for each index, which is not 0 for a head.
pub(crate) fn pieces(heads: &[u8], range: Range<usize>) -> impl Iterator<Item = (Range<usize>, bool)> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        if start >= range.end {
            return None;
        }
        let rest = &heads[start + 1..range.end];
        let end = start + 1 + rest.iter().position(|&head| head != 0).unwrap_or(rest.len());
        let piece = (start..end, heads[start] != 0);
        start = end;
        Some(piece)
    })
}

/// Makes zeros of ones, and the other way round.
pub(crate) fn invert(flags: &mut [u8]) {
    flags.iter_mut().for_each(|flag| *flag ^= 1);
}

/// # Safety
/// The contract of [`flag_heads`](super::device::heads::FlagHeads).
pub(super) unsafe fn flag_heads<H: RegisterRepr, I: Input<H>>(kernel: FlagHeads<H, I>, team: Team) {
    let FlagHeads { keys, equality, flags, .. } = kernel;
    // SAFETY: nothing writes the length.
    let count = unsafe { keys.count() };
    let flag = |_: usize, range: Range<usize>| {
        // SAFETY: there are as many flags, and each part writes its own.
        let flags = unsafe { std::slice::from_raw_parts_mut(flags.as_mut_ptr().add(range.start), range.len()) };
        flags.fill(0);
        let (first, end) = (range.start.saturating_sub(1), range.end.min(count));
        if end <= range.start {
            return;
        }
        let mut room = Vec::new();
        // SAFETY: the keys exist, and nothing writes them.
        let keys = unsafe { keys.elements(first, end - first, &mut room) };
        let compared = &mut flags[usize::from(range.start == 0)..end - range.start];
        equality.neighbours(keys, compared);
        invert(compared);
        if range.start == 0 {
            flags[0] = 1;
        }
    };
    // SAFETY: the body captures arguments. Each call writes flags of its own.
    unsafe { team.divide(flags.len(), flag) };
}

/// # Safety
/// The contract of [`find_edges`](super::device::edges::FindEdges).
pub(super) unsafe fn find_edges(kernel: FindEdges, team: Team) {
    let FindEdges { offsets, edges, tile_len, .. } = kernel;
    let find = |tile: usize| {
        let (mut low, mut high) = (0, offsets.len());
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: there is such an offset, and nothing writes it.
            let is_before = unsafe { offsets.read(middle) } <= tile as u64 * tile_len;
            (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
        }
        // SAFETY: the edge exists, and no other call writes it.
        unsafe { edges.as_mut_ptr().add(tile).write(low as u64) };
    };
    // SAFETY: the body captures arguments. Each call writes edges of its own.
    unsafe { team.divide(edges.len(), |_, range| range.for_each(find)) };
}
