//! The body of the search for sorted needles for the CPU. See [`kernel`](super::kernel) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{IndexOut, SearchSorted, precedes};
use crate::compare::KeyOrder;
use crate::kernel::Team;
use bytemuck::Pod;
use std::ops::Range;

/// Each needle is searched for from where the one before was found, by steps that double, then by bisection.
///
/// # Safety
/// The contract of [`search_sorted`](super::kernel::SearchSorted).
pub(super) unsafe fn search_sorted<K: Pod, C: KeyOrder<K>, I: IndexOut, const ITEMS: usize>(
    kernel: SearchSorted<K, C, I, ITEMS>,
    team: Team,
) {
    let SearchSorted { haystack, needles, out, compare, upper, .. } = kernel;
    // SAFETY: nothing writes these.
    let (haystack, needles) = unsafe { (haystack.as_slice(), needles.as_slice()) };
    let is_before = |at: usize, needle: K| precedes(compare, haystack[at], needle, upper != 0);
    let search = |_: usize, range: Range<usize>| {
        let mut place = 0;
        for index in range.clone() {
            let needle = needles[index];
            let (mut low, mut high) = (place, haystack.len());
            // The first needle of a part may be anywhere.
            let mut step = if index == range.start { 0 } else { 1 };
            while step > 0 && low < high {
                let probe = (low + step - 1).min(high - 1);
                if is_before(probe, needle) {
                    (low, step) = (probe + 1, 2 * step);
                } else {
                    (high, step) = (probe, 0);
                }
            }
            while low < high {
                let middle = low + (high - low) / 2;
                (low, high) = if is_before(middle, needle) { (middle + 1, high) } else { (low, middle) };
            }
            place = low;
            // SAFETY: the output is as long as the needles, and no other call has this place.
            unsafe { out.as_mut_ptr().add(index).write(I::from_position(place)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(needles.len(), search) };
}
