//! The bodies of the kernels that sort rows, for the CPU: a row at a time.

#![deny(unsafe_op_in_unsafe_fn)]

use super::block::sort_range;
use crate::block::radix::RADIX;
use crate::buckets::{bucket_of, last_bucket};
use crate::kernel::Team;
use crate::sort::RadixCode;
use crate::sort::device::rows::{RowHistogram, RowPass, SortRows};
use bytemuck::Pod;

/// # Safety
/// The contract of [`sort_rows`](crate::sort::device::rows::SortRows).
pub(crate) unsafe fn sort_rows<K: RadixCode, V: Pod, const ITEMS: usize>(kernel: SortRows<K, V, ITEMS>, team: Team) {
    let SortRows { keys_in, keys_out, values_in, values_out, digits, row_len, .. } = kernel;
    let row_len = row_len as usize;
    let work = |row: usize| {
        let items = row * row_len..(row + 1) * row_len;
        // SAFETY: guaranteed by the caller. No other row has these items.
        unsafe { sort_range((keys_in, keys_out), (values_in, values_out), items, &digits, digits.passes()) };
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.each(keys_in.len() / row_len, work) };
}

/// The passes count by themselves.
///
/// # Safety
/// The contract of [`row_histogram`](crate::sort::device::rows::RowHistogram).
pub(crate) unsafe fn row_histogram<K: RadixCode>(_: RowHistogram<K>, _: Team) {}

/// # Safety
/// The contract of [`row_pass`](crate::sort::device::rows::RowPass).
pub(crate) unsafe fn row_pass<K: RadixCode, V: Pod, const ITEMS: usize>(kernel: RowPass<K, V, ITEMS>, team: Team) {
    let RowPass { keys_in, keys_out, values_in, values_out, rows, digits, pass, .. } = kernel;
    let last = last_bucket::<K, _>(&digits, pass);
    // SAFETY: nothing writes the inputs.
    let (keys, values) = unsafe { (keys_in.as_slice(), values_in.as_slice()) };
    let len = rows.len as usize;
    let work = |row: usize| {
        let first = row * len;
        let mut places = [first; RADIX];
        let mut counts = [0; RADIX];
        for &key in &keys[first..first + len] {
            counts[bucket_of(&digits, key, pass, last) as usize % RADIX] += 1;
        }
        for bucket in 1..RADIX {
            places[bucket] = places[bucket - 1] + counts[bucket - 1];
        }
        for at in first..first + len {
            let place = &mut places[bucket_of(&digits, keys[at], pass, last) as usize % RADIX];
            // SAFETY: the counts are those of these items, so each has a place of its own in its row.
            unsafe {
                keys_out.as_mut_ptr().add(*place).write(keys[at]);
                if size_of::<V>() > 0 {
                    values_out.as_mut_ptr().add(*place).write(values[at]);
                }
            }
            *place += 1;
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(keys.len() / len, work) };
}
