//! The body of the transformation's kernel for the CPU. See [`kernel`](super::device) for what it does and for its
//! contract.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::TransformTiles;
use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`transform_tiles`](super::device::TransformTiles).
pub(super) unsafe fn transform_tiles<H: RegisterRepr>(kernel: TransformTiles<H>, team: Team) {
    let TransformTiles { input, output, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    let transform = |_: usize, range: Range<usize>| {
        // SAFETY: the elements exist. The output is no shorter than the source, and has them alone.
        unsafe { input.compute(range.start, range.len(), output.as_mut_ptr().add(range.start)) };
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(len, transform) };
}
