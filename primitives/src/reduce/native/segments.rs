//! The body of the segmented reduction's kernel for the CPU. See [`segments_kernel`](crate::reduce::device::segments) for what it does
//! and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::native::{Tile, WARP, fold, tile_prefixes};
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use crate::reduce::device::segments::{ReduceSegments, THREADS};
use crate::segments::native::{before_threads, scan_warp};
use crate::segments::{Flagged, Heads as _, OffsetHeads, Restart};
use crate::view::GlobalMut;

/// First combines the elements of each thread since its last head, and from these what comes before each tile. Then each tile
/// writes the segments that end in it.
///
/// # Safety
/// The contract of [`reduce_segments`](crate::reduce::device::segments::ReduceSegments).
pub(crate) unsafe fn reduce_segments<T: Flagged, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    kernel: ReduceSegments<T, I, Op, VEC, ROWS>,
    team: Team,
) {
    let ReduceSegments { input, segments, output, op, .. } = kernel;
    let (threads, items) = (THREADS as usize, VEC * ROWS);
    let tile_len = threads * items;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    if op.is_exact() && len / output.len() < tile_len {
        // SAFETY: guaranteed by the caller.
        return unsafe { reduce_each(input, len, segments, output, op, team) };
    }
    let tiles = len.div_ceil(tile_len).max(1);
    let restart = Restart::<T, Op>::new(op);
    // SAFETY: the launch has at least as many tiles, and there is an edge for each, and for the end.
    let found = |tile: usize| unsafe { segments.find(tile) };
    // SAFETY: it is called with indices of offsets.
    let offset = |index: usize| unsafe { segments.offsets.read(index) };

    // What comes before each thread of a tile, within the tile; and the tile's total.
    let threads_of = |tile: usize, elements: &[T]| {
        let tile_start = tile * tile_len;
        // The last head of each thread, if it has one.
        let mut last_heads = vec![None; threads];
        let (first, end) = found(tile);
        for index in first.saturating_sub(1)..end {
            let at = offset(index).wrapping_sub(tile_start as u64);
            if at < tile_len as u64 {
                let head: &mut Option<usize> = &mut last_heads[at as usize / items];
                *head = (*head).max(Some(at as usize));
            }
        }
        let mut warps = Vec::with_capacity(threads / WARP);
        for (warp, heads) in last_heads.chunks(WARP).enumerate() {
            let (mut lanes, mut lanes_with_heads) = ([op.identity(); WARP], 0);
            for (lane, &head) in heads.iter().enumerate() {
                let thread = warp * WARP + lane;
                lanes[lane] = fold(&elements[head.unwrap_or(thread * items)..(thread + 1) * items], op);
                lanes_with_heads |= u32::from(head.is_some()) << lane;
            }
            warps.push(scan_warp(lanes, lanes_with_heads, op));
        }
        before_threads(&warps, restart, op, &|before| T::parts(before).0)
    };
    let mut totals = vec![restart.identity(); tiles];
    let to_totals = totals.as_mut_ptr();
    let mut before = vec![op.identity(); tiles * threads];
    let to_before = before.as_mut_ptr();
    let combine = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: nothing writes the input.
        let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
        let (threads_before, total) = threads_of(tile, elements);
        // SAFETY: each tile has its own places.
        unsafe {
            to_totals.add(tile).write(total);
            to_before.add(tile * threads).copy_from_nonoverlapping(threads_before.as_ptr(), threads);
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes places of its own.
    unsafe { team.each(tiles, combine) };

    let prefixes = tile_prefixes(totals, restart);
    let clamped = |index: usize| offset(index).min(len as u64) as usize;
    let write = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: nothing writes the input.
        let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
        let before = &before[tile * threads..][..threads];
        let (tile_start, found) = (tile * tile_len, found(tile));
        let first = if tile == 0 { 1 } else { found.0.max(1) };
        let end = if tile_start + tile_len >= len { segments.offsets.len() } else { found.1 };
        let result = |index: usize| {
            let (from, to) = (clamped(index - 1), clamped(index));
            // Offsets that decrease give some value.
            if from >= to || to <= tile_start || to - tile_start > tile_len {
                return op.identity();
            }
            let last = to - tile_start - 1;
            let thread = last / items;
            let own = fold(&elements[from.saturating_sub(tile_start).max(thread * items)..=last], op);
            if from >= tile_start + thread * items { own } else { op.combine(before[thread], own) }
        };
        for index in first..end {
            let mut result = result(index);
            if index == first && clamped(first - 1) < tile_start {
                result = op.combine(T::parts(prefixes[tile]).0, result);
            }
            // SAFETY: there is an output per segment, and the tiles' segments differ: see below.
            unsafe { output.as_mut_ptr().add(index - 1).write(result) };
        }
    };
    // SAFETY: the body captures arguments and plain data. Edges never decrease, whatever the offsets are, so that each call
    // writes outputs of its own.
    unsafe { team.each(tiles, write) };
}

/// Combines the elements of one segment after the other.
///
/// # Safety
/// Same as [`reduce_segments`]. The input has `len` elements.
unsafe fn reduce_each<T: Flagged>(
    input: impl Input<T>,
    len: usize,
    segments: OffsetHeads,
    output: GlobalMut<T>,
    op: impl Combine<T>,
    team: Team,
) {
    /// The segments that a worker takes at once.
    const CHUNK: usize = 256;
    // SAFETY: it is called with indices of offsets.
    let clamped = |index: usize| unsafe { segments.offsets.read(index) }.min(len as u64) as usize;
    let reduce = |chunk: usize| {
        let mut computed = Vec::new();
        for segment in chunk * CHUNK..output.len().min((chunk + 1) * CHUNK) {
            let (from, to) = (clamped(segment), clamped(segment + 1));
            // SAFETY: the elements exist, and nothing writes them. No other call has this output.
            unsafe {
                let elements = input.elements(from, to.saturating_sub(from), &mut computed);
                output.as_mut_ptr().add(segment).write(fold(elements, op));
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.each(output.len().div_ceil(CHUNK), reduce) };
}
