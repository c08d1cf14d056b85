//! The body of the kernel of scans that restart for the CPU. See [`segments_kernel`](crate::scan::device::segments) for what it does
//! and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::native::{Tile, WARP, tile_prefixes};
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use crate::scan::device::segments::{ScanSegments, THREADS};
use crate::segments::native::{Warp, before_threads, pieces, scan_warp};
use crate::segments::{Flagged, Heads, Restart};

/// First combines the elements of each thread since its last head, and from these what comes before each tile. Then goes over
/// the elements again.
///
/// # Safety
/// The contract of [`scan_segments`](crate::scan::device::segments::ScanSegments).
pub(crate) unsafe fn scan_segments<
    T: Flagged,
    I: Input<T>,
    S: Heads,
    Op: Combine<T>,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: ScanSegments<T, I, S, Op, VEC, ROWS>,
    team: Team,
) {
    let ScanSegments { input, segments, output, op, init, inclusive, .. } = kernel;
    let (threads, items) = (THREADS as usize, VEC * ROWS);
    let tile_len = threads * items;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let tiles = len.div_ceil(tile_len);
    let restart = Restart::<T, Op>::new(op);
    // SAFETY: the tile exists, and nothing writes what the heads are read from.
    let heads_of = |tile: usize| unsafe { segments.of_tile(tile, tile_len, (len - tile * tile_len).min(tile_len)) };
    let warps_of = |elements: &[T], heads: &[u8]| -> Vec<Warp<T>> {
        let mut warps = Vec::with_capacity(threads / WARP);
        for warp in 0..threads / WARP {
            let (mut lanes, mut lanes_with_heads) = ([op.identity(); WARP], 0);
            for (lane, own) in lanes.iter_mut().enumerate() {
                let thread = warp * WARP + lane;
                for (piece, is_head) in pieces(heads, thread * items..(thread + 1) * items) {
                    *own = op.fold(if is_head { init } else { *own }, &elements[piece]);
                    lanes_with_heads |= u32::from(is_head) << lane;
                }
            }
            warps.push(scan_warp(lanes, lanes_with_heads, op));
        }
        warps
    };

    let mut totals = vec![restart.identity(); tiles];
    let to_totals = totals.as_mut_ptr();
    let mut warps: Vec<Vec<Warp<T>>> = Vec::new();
    warps.resize_with(tiles, Vec::new);
    let to_warps = warps.as_mut_ptr();
    let combine = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: only this tile writes the elements, later.
        let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
        let warps = warps_of(elements, &heads_of(tile));
        let (_, total) = before_threads(&warps, restart, op, &|before| T::parts(before).0);
        // SAFETY: each tile has its own places.
        unsafe {
            to_totals.add(tile).write(total);
            *to_warps.add(tile) = warps;
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes places of its own.
    unsafe { team.each(tiles, combine) };

    let prefixes = tile_prefixes(totals, restart);
    let scan = |tile: usize| {
        let start = tile * tile_len;
        let mut loaded = Tile::new();
        // SAFETY: only this tile writes the elements, after they were copied.
        let mut elements = unsafe { loaded.load(input, len, start, tile_len, op) }.to_vec();
        let heads = heads_of(tile);
        let (before_tile, _) = T::parts(prefixes[tile]);
        let (before, _) = before_threads(&warps[tile], restart, op, &|before| {
            let (before_warp, has_head) = T::parts(before);
            if has_head { before_warp } else { op.combine(before_tile, before_warp) }
        });
        let count = (len - start).min(tile_len);
        for (thread, &before) in before[..count.div_ceil(items)].iter().enumerate() {
            let mut running = before;
            for (piece, is_head) in pieces(&heads, thread * items..(thread + 1) * items) {
                running = op.scan(if is_head { init } else { running }, &mut elements[piece], inclusive != 0);
            }
        }
        // SAFETY: the output is no shorter than the input, and no other tile writes this part.
        unsafe { output.as_mut_ptr().add(start).copy_from_nonoverlapping(elements.as_ptr(), count) };
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(tiles, scan) };
}
