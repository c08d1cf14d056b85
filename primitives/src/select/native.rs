//! The bodies of the selection's kernels for the CPU. See [`kernel`](super::kernel) and [`source`](super::source) for what
//! they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::predicate::{HolePredicate, Keep};
use crate::hole::Held;
use crate::input::{Fused, Input};
use crate::kernel::Team;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `write` with the indices for which `is_kept` returns `true`, in order, and with where each one goes. Returns how
/// many there are.
///
/// Each worker first counts those of its part, then writes them from where those of the parts before end. If a predicate
/// changes its mind in between, a part still writes no more than it has counted.
///
/// # Safety
/// Several threads can call the functions, and `write` for different places, at the same time.
unsafe fn compact(team: Team, len: usize, is_kept: impl Fn(usize) -> bool, write: impl Fn(usize, usize)) -> usize {
    let counts: Vec<AtomicUsize> = (0..team.parts(len)).map(|_| AtomicUsize::new(0)).collect();
    let count = |part: usize, range: Range<usize>| {
        counts[part].store(range.filter(|&index| is_kept(index)).count(), Ordering::Relaxed);
    };
    // SAFETY: guaranteed by the caller.
    unsafe { team.divide(len, count) };
    let mut total = 0;
    let places: Vec<Range<usize>> = counts
        .into_iter()
        .map(|count| {
            let start = total;
            total += count.into_inner();
            start..total
        })
        .collect();
    let compact = |part: usize, range: Range<usize>| {
        places[part].clone().zip(range.filter(|&index| is_kept(index))).for_each(|(place, index)| write(index, place));
    };
    // SAFETY: guaranteed by the caller: the places of the parts differ.
    unsafe { team.divide(len, compact) };
    total
}

/// # Safety
/// The contract of [`select_tiles`](super::kernel::SelectTiles). The predicate records nothing.
#[allow(clippy::too_many_arguments, reason = "the arguments of the kernel")]
pub(super) unsafe fn select_tiles<
    K: Pod,
    V: Pod,
    F: Keep<K>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    input: Global<K>,
    values: Global<V>,
    output: GlobalMut<K>,
    output_values: GlobalMut<V>,
    keep: F,
    count: GlobalMut<u64>,
    _: GlobalMut<u64>,
    team: Team,
) {
    // SAFETY: nothing writes the inputs.
    let (keys, values) = unsafe { (input.as_slice(), values.as_slice()) };
    // SAFETY: guaranteed by the caller.
    let (start, end) = unsafe { keep.range(keys.len()) };
    // SAFETY: the index is one of the range.
    let is_kept = |index: usize| unsafe { keep.item(start + index, keys[start + index]) };
    let write = |index: usize, place: usize| {
        // SAFETY: the outputs are as long as the input, and each place is written once.
        unsafe {
            output.as_mut_ptr().add(place).write(keys[start + index]);
            if size_of::<V>() > 0 {
                output_values.as_mut_ptr().add(place).write(values[start + index]);
            }
        }
    };
    // SAFETY: the functions capture arguments and plain data, and places are written once.
    let total = unsafe { compact(team, end.saturating_sub(start), is_kept, write) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total as u64) };
}

/// # Safety
/// The contract of [`select_source`](super::source::SelectSource).
pub(super) unsafe fn select_source<H: Held, const ROWS: usize>(
    input: Fused,
    output: GlobalMut<H>,
    keep: HolePredicate,
    count: GlobalMut<u64>,
    _: GlobalMut<u64>,
    team: Team,
) {
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    // SAFETY: the item exists, and nothing writes what the source reads.
    let item = |index: usize| -> H { unsafe { input.item(index) } };
    // SAFETY: the item exists.
    let is_kept = |index: usize| unsafe { keep.item(index, item(index)) };
    // SAFETY: the output is as long as the source, and each place is written once.
    let write = |index: usize, place: usize| unsafe { output.as_mut_ptr().add(place).write(item(index)) };
    // SAFETY: the functions capture arguments, and places are written once.
    let total = unsafe { compact(team, len, is_kept, write) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total as u64) };
}
