//! The parts of levels in intervals, and the counts of short ones: see [`windows`](crate::levels::device::intervals::windows) and
//! [`few`](crate::levels::device::query::small).

use super::level::{CHUNK, NativeLevel, newest_first, oldest_first};
use super::lookup::{Codes, QUERY};
use super::{chunks, divide};
use crate::KeyCode;
use crate::levels::device::intervals::windows::FindWindows;
use crate::levels::device::query::small::CountFew;
use crate::levels::device::tiles::LEAST_PER_PIECE;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// The most overlapping elements of an interval that is counted at once.
const FEW_ELEMENTS: usize = 32;

/// The windows of some intervals in a level.
struct Windows {
    starts: [u32; CHUNK],
    lens: [u32; CHUNK],
}

impl Windows {
    /// Finds the windows of intervals from `low` to `high`.
    fn find<C: KeyCode>(level: &NativeLevel<'_, C>, low: &Codes<C>, high: &Codes<C>) -> Self {
        let (mut starts, mut lens) = ([0; CHUNK], [0; CHUNK]);
        level.count_before(low.as_slice(), false, &mut starts);
        level.count_before(high.as_slice(), true, &mut lens);
        for (i, (low, high)) in low.as_slice().iter().zip(high.as_slice()).enumerate() {
            (starts[i], lens[i]) = if low <= high { (starts[i], lens[i].saturating_sub(starts[i])) } else { (0, 0) };
        }
        Self { starts, lens }
    }
}

/// # Safety
/// The contract of [`find_windows`](FindWindows).
pub unsafe fn find_windows<C: KeyCode>(kernel: FindWindows<C>, team: Team) {
    let FindWindows { levels, low, high, left, log_pieces, windows, weights, overlapping, .. } = kernel;
    let sign = levels.sign();
    // SAFETY: nobody changes the levels or writes the intervals.
    let (levels, low, high, left) = unsafe { (oldest_first(levels), low.as_slice(), high.as_slice(), left.as_slice()) };
    let pieces = 1usize << log_pieces;
    let least = (pieces * LEAST_PER_PIECE) as u64;
    let work = |range: Range<usize>| {
        for chunk in chunks(range, CHUNK) {
            let (low, high) = (Codes::new(&low[chunk.clone()], sign), Codes::new(&high[chunk.clone()], sign));
            let mut totals = [0u64; CHUNK];
            for piece in 0..pieces {
                let mut found = match levels.get(piece) {
                    Some(level) => Windows::find(level, &low, &high),
                    None => Windows { starts: [0; CHUNK], lens: [0; CHUNK] },
                };
                for (i, at) in chunk.clone().enumerate() {
                    if left.get(at) == Some(&0) {
                        (found.starts[i], found.lens[i]) = (0, 0);
                    }
                    totals[i] += u64::from(found.lens[i]);
                    if !windows.is_empty() {
                        let to = windows.as_mut_ptr().wrapping_add(2 * (at * pieces + piece));
                        // SAFETY: there are two words per interval and piece, and each interval is in one chunk.
                        unsafe { to.cast::<[u32; 2]>().write([found.starts[i], found.lens[i]]) };
                    }
                }
            }
            for (at, total) in chunk.zip(totals) {
                // SAFETY: there is an element per interval, and each interval is in one chunk.
                unsafe {
                    if !weights.is_empty() {
                        weights.as_mut_ptr().add(at).write(total.max(least));
                    }
                    if !overlapping.is_empty() {
                        overlapping.as_mut_ptr().add(at).write(total);
                    }
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, low.len(), 2 * QUERY * levels.len().max(1), work) };
    for output in [weights, overlapping] {
        if low.len() < output.len() {
            // SAFETY: the output has this element.
            unsafe { output.as_mut_ptr().add(low.len()).write(0) };
        }
    }
}

/// # Safety
/// The contract of [`count_few`](CountFew).
pub unsafe fn count_few<C: KeyCode>(kernel: CountFew<C>, team: Team) {
    let CountFew { levels, low, high, counts, left, .. } = kernel;
    let sign = levels.sign();
    // SAFETY: nobody changes the levels or writes the intervals.
    let (levels, low, high) = unsafe { (newest_first(levels), low.as_slice(), high.as_slice()) };
    let work = |range: Range<usize>| {
        let mut windows = Vec::with_capacity(levels.len());
        for chunk in chunks(range, CHUNK) {
            let (low, high) = (Codes::new(&low[chunk.clone()], sign), Codes::new(&high[chunk.clone()], sign));
            windows.clear();
            windows.extend(levels.iter().map(|level| Windows::find(level, &low, &high)));
            for (i, at) in chunk.enumerate() {
                let total = windows.iter().map(|windows| u64::from(windows.lens[i])).sum::<u64>();
                let is_few = total <= FEW_ELEMENTS as u64;
                let count = if is_few { count_live(&levels, &windows, i) } else { 0 };
                // SAFETY: the outputs are as long as the intervals, and each interval is in one chunk.
                unsafe {
                    counts.as_mut_ptr().add(at).write(count);
                    left.as_mut_ptr().add(at).write(if is_few { 0 } else { total });
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, low.len(), 2 * QUERY * levels.len().max(1), work) };
}

/// Counts the live elements of an interval, which has at most [`FEW_ELEMENTS`]: those that are not tombstones, and of which no
/// newer element has the key.
fn count_live<C: KeyCode>(levels: &[NativeLevel<'_, C>], windows: &[Windows], interval: usize) -> u64 {
    let mut seen = [C::MIN; FEW_ELEMENTS];
    let (mut len, mut live) = (0, 0);
    for (level, windows) in levels.iter().zip(windows) {
        let start = windows.starts[interval];
        // The last element of a window is the newest one of its key.
        for position in (start..start + windows.lens[interval]).rev() {
            let key = level.keys[position as usize];
            let is_newest = !seen[..len].contains(&key);
            live += u64::from(is_newest && !level.is_dead(position));
            seen[len] = key;
            len += 1;
        }
    }
    live
}
