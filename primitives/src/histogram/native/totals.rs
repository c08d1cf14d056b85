//! The bodies of the kernels that add up the elements of bins, for the CPU. See [`totals`](crate::histogram::device::totals) for what they
//! do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::histogram::device::totals::{FindBins, NO_ELEMENT, SumBins};
use crate::host::executor::chunks;
use crate::input::Input;
use crate::kernel::Team;
use std::ops::Range;
use std::sync::Mutex;

/// The elements that are computed at once.
const CHUNK: usize = 1024;

/// Each worker adds up its part, and adds its sums to the totals at the end.
///
/// # Safety
/// The contract of [`sum_bins`](crate::histogram::device::totals::sum_bins).
pub unsafe fn sum_bins<I: Input<[u32; 3]>>(kernel: SumBins<I>, team: Team) {
    let SumBins { input, totals, sign, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let added = Mutex::new(());
    let add = |_: usize, range: Range<usize>| {
        let (mut sums, mut room) = (vec![0u128; totals.len() / 2], Vec::new());
        for Range { start, end } in chunks(range, CHUNK) {
            // SAFETY: the elements exist, and nothing writes them.
            for &[bin, low, high] in unsafe { input.elements(start, end - start, &mut room) } {
                // An element of a bin that there is no total for does not count.
                if let Some(sum) = sums.get_mut(bin as usize) {
                    let number = u64::from(high) << 32 | u64::from(low);
                    let number = if high & sign != 0 { number as i64 as u128 } else { u128::from(number) };
                    *sum = sum.wrapping_add(number);
                }
            }
        }
        let _guard = added.lock();
        for (bin, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum != 0) {
            // SAFETY: there are two words for each bin, and one worker at a time adds.
            unsafe {
                let words = totals.as_mut_ptr().add(2 * bin);
                let total = u128::from(words.read()) | u128::from(words.add(1).read()) << 64;
                let total = total.wrapping_add(sum);
                words.write(total as u64);
                words.add(1).write((total >> 64) as u64);
            }
        }
    };
    // SAFETY: the body captures arguments and a lock. Workers write the totals one at a time.
    unsafe { team.divide(len, add) };
}

/// Each worker counts its part, and adds what it found at the end.
///
/// # Safety
/// The contract of [`find_bins`](crate::histogram::device::totals::find_bins).
pub unsafe fn find_bins<I: Input<u64>>(kernel: FindBins<I>, team: Team) {
    let FindBins { input, counts, firsts, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let added = Mutex::new(());
    let find = |_: usize, range: Range<usize>| {
        let (mut found, mut room) = (vec![(0u32, NO_ELEMENT); counts.len()], Vec::new());
        for Range { start, end } in chunks(range, CHUNK) {
            // SAFETY: the elements exist, and nothing writes them.
            for &element in unsafe { input.elements(start, end - start, &mut room) } {
                if let Some((count, first)) = found.get_mut((element >> 32) as usize) {
                    (*count, *first) = (*count + 1, (*first).min(element as u32));
                }
            }
        }
        let _guard = added.lock();
        for (bin, &(count, first)) in found.iter().enumerate().filter(|(_, (count, _))| *count > 0) {
            // SAFETY: there is an element of both for each bin, and one worker at a time writes.
            unsafe {
                let (counts, firsts) = (counts.as_mut_ptr().add(bin), firsts.as_mut_ptr().add(bin));
                counts.write(counts.read() + count);
                firsts.write(firsts.read().min(first));
            }
        }
    };
    // SAFETY: the body captures arguments and a lock. Workers write one at a time.
    unsafe { team.divide(len, find) };
}
