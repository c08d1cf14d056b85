//! The body of the scan's kernel for the CPU. See [`kernel`](super::device::kernel) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod segments;

use super::device::kernel::ScanTiles;
use crate::block::native::{Tile, WARP, fold, scan_lanes, tile_prefixes};
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use bytemuck::Pod;

/// First combines the elements of each thread and scans the threads of each warp, then goes over the elements again.
///
/// # Safety
/// The contract of [`scan_tiles`](super::device::kernel::ScanTiles).
pub(super) unsafe fn scan_tiles<
    T: Pod,
    I: Input<T>,
    Op: Combine<T>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: ScanTiles<T, I, Op, THREADS, VEC, ROWS>,
    team: Team,
) {
    let ScanTiles { input, output, op, init, inclusive, .. } = kernel;
    let (threads, items) = (THREADS as usize, VEC * ROWS);
    let tile_len = threads * items;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let tiles = len.div_ceil(tile_len);

    // For each thread, the combination of its elements and those of the lanes before it.
    let mut lanes = vec![op.identity(); tiles * threads];
    let to_lanes = lanes.as_mut_ptr();
    let combine = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: only this tile writes the elements, later.
        let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
        // SAFETY: each tile has its own lanes.
        let lanes = unsafe { std::slice::from_raw_parts_mut(to_lanes.add(tile * threads), threads) };
        for (thread, lane) in lanes.iter_mut().enumerate() {
            *lane = fold(&elements[thread * items..][..items], op);
        }
        for warp in lanes.chunks_mut(WARP) {
            scan_lanes(warp, op);
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes lanes of its own.
    unsafe { team.each(tiles, combine) };

    let mut totals = vec![op.identity(); tiles];
    for (tile, total) in totals.iter_mut().enumerate() {
        for warp in lanes[tile * threads..][..threads].chunks(WARP) {
            // The value of a warp is that of its last lane.
            *total = op.combine(*total, warp[WARP - 1]);
        }
    }
    let prefixes = tile_prefixes(totals, op);
    let scan = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: only this tile writes the elements, after they were copied.
        let mut elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) }.to_vec();
        let lanes = &lanes[tile * threads..][..threads];
        let prefix = op.combine(init, prefixes[tile]);
        let mut before_warp = op.identity();
        for (thread, elements) in elements.chunks_mut(items).enumerate() {
            let mut running = op.combine(prefix, before_warp);
            if thread % WARP > 0 {
                running = op.combine(running, lanes[thread - 1]);
            }
            op.scan(running, elements, inclusive != 0);
            if thread % WARP == WARP - 1 {
                before_warp = op.combine(before_warp, lanes[thread]);
            }
        }
        let start = tile * tile_len;
        let count = (len - start).min(tile_len);
        // SAFETY: the output is no shorter than the input, and no other tile writes this part.
        unsafe { output.as_mut_ptr().add(start).copy_from_nonoverlapping(elements.as_ptr(), count) };
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(tiles, scan) };
}
