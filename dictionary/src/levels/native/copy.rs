//! Copies of the elements of intervals: see [`copy`](crate::levels::device::intervals::copy) and [`gather`](crate::levels::device::intervals::gather).

use super::divide;
use super::level::oldest_first;
use crate::KeyCode;
use crate::levels::device::intervals::copy::CopyWindows;
use crate::levels::device::intervals::gather::GatherWindows;
use bytemuck::Pod;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`copy_windows`](CopyWindows).
pub unsafe fn copy_windows<C: KeyCode, V: Pod>(kernel: CopyWindows<C, V>, team: Team) {
    let CopyWindows { keys, values, sign, windows, offsets, out_keys, out_values, .. } = kernel;
    // SAFETY: nobody writes the inputs.
    let (keys, values) = unsafe { (keys.as_slice(), values.as_slice()) };
    // SAFETY: the same.
    let (windows, offsets) = unsafe { (windows.as_slice(), offsets.as_slice()) };
    let Some(&total) = offsets.last().filter(|&&total| total <= out_keys.len() as u64) else { return };
    let work = |range: Range<usize>| {
        // A part of the outputs: it begins and ends anywhere in a window.
        let first = offsets.partition_point(|&offset| offset as usize <= range.start).saturating_sub(1);
        for (window, ends) in offsets.windows(2).enumerate().skip(first) {
            let (begin, end) = (ends[0] as usize, ends[1] as usize);
            if begin >= range.end {
                break;
            }
            let (from, to) = (begin.max(range.start), end.min(range.end));
            if from >= to {
                continue;
            }
            let source = windows[2 * window] as usize + (from - begin);
            let source = source..source + (to - from);
            for (i, &key) in keys[source.clone()].iter().enumerate() {
                // SAFETY: the output has room for all elements, and each is in one part.
                unsafe { out_keys.as_mut_ptr().add(from + i).write(sign.decode(key)) };
            }
            if size_of::<V>() > 0 {
                let values = &values[source];
                // SAFETY: the same.
                unsafe { out_values.as_mut_ptr().add(from).copy_from_nonoverlapping(values.as_ptr(), values.len()) };
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, total as usize, 1, work) };
}

/// # Safety
/// The contract of [`gather_windows`](GatherWindows).
pub unsafe fn gather_windows<C: KeyCode, V: Pod>(kernel: GatherWindows<C, V>, team: Team) {
    let GatherWindows { levels, windows, log_pieces, offsets, out, .. } = kernel;
    // SAFETY: nobody changes the levels, which have values of this type, or writes the inputs.
    let (values, windows, offsets) = unsafe {
        let values: Vec<&[V]> = oldest_first(levels).iter().map(|level| level.values()).collect();
        (values, windows.as_slice(), offsets.as_slice())
    };
    let words = 2usize << log_pieces;
    let work = |range: Range<usize>| {
        for (windows, &offset) in windows.chunks_exact(words).zip(offsets).skip(range.start).take(range.len()) {
            let mut to = offset as usize;
            for (values, window) in values.iter().zip(windows.chunks_exact(2)) {
                let values = &values[window[0] as usize..][..window[1] as usize];
                let fitting = values.len().min(out.len().saturating_sub(to));
                // SAFETY: the output has room for these, and no other interval writes there.
                unsafe {
                    let room = out.as_mut_ptr().wrapping_add(to);
                    room.copy_from_nonoverlapping(values.as_ptr(), fitting);
                }
                to += values.len();
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, windows.len() / words, words, work) };
}
