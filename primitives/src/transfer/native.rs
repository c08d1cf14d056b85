//! The bodies of the transfers' kernels for the CPU. See [`kernel`](super::device) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{CopyElements, CopyLines, FillLines, GatherWords};
use crate::kernel::Team;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use std::ops::Range;

/// # Safety
/// The contract of [`copy_lines`](super::device::CopyLines).
pub(super) unsafe fn copy_lines(kernel: CopyLines, team: Team) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy(kernel.from, kernel.to, team) };
}

/// # Safety
/// The contract of [`copy_elements`](super::device::CopyElements).
pub(super) unsafe fn copy_elements<T: Pod>(kernel: CopyElements<T>, team: Team) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy(kernel.from, kernel.to, team) };
}

/// # Safety
/// There are as many elements in both, which do not overlap.
unsafe fn copy<T: Pod>(from: Global<T>, to: GlobalMut<T>, team: Team) {
    let copy = |_: usize, range: Range<usize>| {
        // SAFETY: both have these elements, and do not overlap.
        unsafe {
            let from = from.as_ptr().add(range.start);
            to.as_mut_ptr().add(range.start).copy_from_nonoverlapping(from, range.len());
        }
    };
    // SAFETY: the body captures arguments. Each call writes elements of its own.
    unsafe { team.divide(to.len(), copy) };
}

/// # Safety
/// The contract of [`fill_lines`](super::device::FillLines).
pub(super) unsafe fn fill_lines(kernel: FillLines, team: Team) {
    let FillLines { to, to_lines, line, edges, .. } = kernel;
    let fill = |_: usize, range: Range<usize>| {
        for index in range {
            // SAFETY: the line exists, and no other call has it.
            unsafe { to_lines.as_mut_ptr().add(index).write(line) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes lines of its own.
    unsafe { team.divide(to_lines.len(), fill) };
    for index in (0..edges.head as usize).chain(to.len() - edges.tail as usize..to.len()) {
        // SAFETY: the bytes exist, and are in no line.
        unsafe {
            let byte = to.as_mut_ptr().add(index);
            byte.write(bytemuck::bytes_of(&line)[byte.addr() % 16]);
        }
    }
}

/// # Safety
/// The contract of [`gather_words`](super::device::GatherWords).
pub(super) unsafe fn gather_words<W: Pod>(kernel: GatherWords<W>, team: Team) {
    let GatherWords { from, from_words, to, to_words, indices, .. } = kernel;
    let (from_words, to_words) = (from_words as usize, to_words as usize);
    // SAFETY: nothing writes these.
    let (from, indices) = unsafe { (from.as_slice(), indices.as_slice()) };
    let gather = |_: usize, range: Range<usize>| {
        for place in range {
            let source = indices.get(place).map_or(place, |&index| index as usize);
            // The index that leaves a place as it is lies beyond the source. So may one that nobody has written: see the kernel.
            if !indices.is_empty() && source >= from.len() / from_words {
                continue;
            }
            let element = &from[source * from_words..][..from_words.min(to_words)];
            // SAFETY: the place exists, and no other call has it.
            let to = unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr().add(place * to_words), to_words) };
            to[..element.len()].copy_from_slice(element);
            to[element.len()..].fill(W::zeroed());
        }
    };
    // SAFETY: the body captures arguments. Each call writes places of its own.
    unsafe { team.divide(to.len() / to_words, gather) };
}
