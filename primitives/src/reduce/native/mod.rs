//! The body of the reduction's kernel for the CPU. See [`kernel`](super::device::kernel) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod passing;
pub(crate) mod segments;

use super::device::kernel::{ReduceTiles, THREADS};
use crate::block::native::{Tile, WARP, fold, reduce_lanes};
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use crate::view::Global;
use bytemuck::Pod;

/// # Safety
/// The contract of [`reduce_tiles`](super::device::kernel::ReduceTiles).
pub(super) unsafe fn reduce_tiles<T: Pod, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    kernel: ReduceTiles<T, I, Op, VEC, ROWS>,
    team: Team,
) {
    let ReduceTiles { input, partial, output, op, tiles, .. } = kernel;
    let total = if partial.is_empty() {
        // SAFETY: nothing writes the input.
        unsafe { combine::<T, I, Op, VEC, ROWS>(input, 0, tiles as usize, op) }
    } else {
        let reduce = |block: usize| {
            // SAFETY: nothing writes the input. There is an element per block.
            unsafe {
                let total = combine::<T, I, Op, VEC, ROWS>(input, block * tiles as usize, tiles as usize, op);
                partial.as_mut_ptr().add(block).write(total);
            }
        };
        // SAFETY: the body captures arguments. Each call writes an element of its own.
        unsafe { team.each(partial.len(), reduce) };
        let tiles = partial.len().div_ceil(THREADS as usize * VEC * ROWS);
        // SAFETY: all elements are written by now.
        unsafe { combine::<T, Global<T>, Op, VEC, ROWS>(partial.as_const(), 0, tiles, op) }
    };
    // SAFETY: there is one output.
    unsafe { output.as_mut_ptr().write(total) };
}

/// Returns the combination of the elements of `tiles` tiles, beginning with tile `first`.
///
/// # Safety
/// Nothing writes the input meanwhile.
unsafe fn combine<T: Pod, I: Input<T>, Op: Combine<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    first: usize,
    tiles: usize,
    op: Op,
) -> T {
    let items = VEC * ROWS;
    let tile_len = THREADS as usize * items;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let (mut total, mut loaded) = (op.identity(), Tile::new());
    for tile in first..first + tiles {
        // SAFETY: nothing writes the input.
        let elements = unsafe { loaded.load(input, len, tile * tile_len, tile_len, op) };
        let mut warps = op.identity();
        for warp in elements.chunks(items * WARP) {
            let mut lanes = [op.identity(); WARP];
            for (lane, own) in lanes.iter_mut().enumerate() {
                *own = fold(&warp[lane * items..][..items], op);
            }
            warps = op.combine(warps, reduce_lanes(lanes, op));
        }
        total = op.combine(total, warps);
    }
    total
}
