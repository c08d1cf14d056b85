//! The body of the reduction's kernel for the CPU. See [`kernel`](super::kernel) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::THREADS;
use crate::block::native::{Tile, WARP, fold, reduce_lanes};
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use crate::view::GlobalMut;
use bytemuck::Pod;

/// # Safety
/// The contract of [`reduce_tiles`](super::kernel::ReduceTiles).
pub(super) unsafe fn reduce_tiles<T: Pod, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    output: GlobalMut<T>,
    op: Op,
    tiles: u32,
    team: Team,
) {
    let (threads, items) = (THREADS as usize, VEC * ROWS);
    let tile_len = threads * items;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let reduce = |block: usize| {
        let (mut total, mut loaded) = (op.identity(), Tile::new());
        for tile in block * tiles as usize..(block + 1) * tiles as usize {
            // SAFETY: nothing writes the input.
            let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
            let mut warps = op.identity();
            for warp in elements.chunks(items * WARP) {
                let lanes = std::array::from_fn(|lane| fold(&warp[lane * items..][..items], op));
                warps = op.combine(warps, reduce_lanes(lanes, op));
            }
            total = op.combine(total, warps);
        }
        // SAFETY: there is an output per block.
        unsafe { output.as_mut_ptr().add(block).write(total) };
    };
    // SAFETY: the body captures arguments. Each call writes an output of its own.
    unsafe { team.each(output.len(), reduce) };
}
