//! The body of the histogram's kernel for the CPU. See [`kernel`](super::device::kernel) for what it does and for its contract.

#![deny(unsafe_op_in_unsafe_fn)]

pub(super) mod totals;

use super::device::bins::Bins;
use super::device::kernel::CountBins;
use crate::hole::RegisterRepr;
use crate::host::executor::chunks;
use crate::input::Input;
use crate::kernel::Team;
use std::ops::Range;
use std::sync::Mutex;

/// Each worker counts its part, and adds the sums to the counts at the end.
///
/// # Safety
/// The contract of [`count_bins`](super::device::kernel::CountBins).
pub(super) unsafe fn count_bins<H: RegisterRepr, I: Input<H>, B: Bins<H>, const VEC: usize>(
    kernel: CountBins<H, I, B, VEC>,
    team: Team,
) {
    let CountBins { input, bins, counts, .. } = kernel;
    /// The elements whose bins are found at once.
    const CHUNK: usize = 1024;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let added = Mutex::new(());
    let count = |_: usize, range: Range<usize>| {
        let (mut sums, mut room) = (vec![0u64; counts.len()], Vec::new());
        let mut found = [0; CHUNK];
        for Range { start, end } in chunks(range, CHUNK) {
            let found = &mut found[..end - start];
            // SAFETY: the elements exist, and nothing writes them or the memory of the bins.
            unsafe { bins.bins(input.elements(start, found.len(), &mut room), found) };
            for &mut bin in found {
                // An element whose bin there is no count for is not counted.
                if let Some(sum) = sums.get_mut(bin as usize) {
                    *sum += 1;
                }
            }
        }
        let _guard = added.lock();
        for (bin, &sum) in sums.iter().enumerate() {
            if sum > 0 {
                // SAFETY: there is a count for each bin, and one worker at a time adds.
                unsafe {
                    if counts.long.is_empty() {
                        let count = counts.short.as_mut_ptr().add(bin);
                        count.write(count.read().wrapping_add(sum as u32));
                    } else {
                        let count = counts.long.as_mut_ptr().add(bin);
                        count.write(count.read().wrapping_add(sum));
                    }
                }
            }
        }
    };
    // SAFETY: the body captures arguments and a lock. Workers write the counts one at a time.
    unsafe { team.divide(len, count) };
}
