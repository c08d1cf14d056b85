//! Pairs for a buffer: see [`append`](crate::levels::device::merge::append).

use super::divide;
use crate::levels::device::merge::append::AppendPairs;
use gpu_primitives::kernel::Team;
use gpu_primitives::view::{Global, GlobalMut};
use std::ops::Range;

/// # Safety
/// The contract of [`append_pairs`](AppendPairs).
pub unsafe fn append_pairs(kernel: AppendPairs, team: Team) {
    let AppendPairs { keys, values, to_keys, to_values, .. } = kernel;
    for (from, to) in [(keys, to_keys), (values, to_values)] {
        // SAFETY: guaranteed by the caller.
        unsafe { copy(from, to, team) };
    }
}

/// # Safety
/// There are as many words in both, which do not overlap.
unsafe fn copy(from: Global<u32>, to: GlobalMut<u32>, team: Team) {
    let work = |range: Range<usize>| {
        // SAFETY: both have these words, and do not overlap.
        unsafe {
            let from = from.as_ptr().add(range.start);
            to.as_mut_ptr().add(range.start).copy_from_nonoverlapping(from, range.len());
        }
    };
    // SAFETY: the body captures arguments. Each call writes words of its own.
    unsafe { divide(team, to.len(), 1, work) };
}
