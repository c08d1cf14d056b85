//! The bodies of the kernels that go over the input for the CPU. See [`rows`](super::device::rows) and [`sift`](super::device::sift) for what
//! they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod digits;

use super::device::best_of_rows::BestOfRows;
use super::device::code::{Coding, Position};
use super::device::layout::Row;
use super::device::rows::SelectRows;
use super::device::sample_rows::SampleRows;
use super::device::sift::{MAXIMA_PER_RUN, SampleMaxima, Sift, sampled};
use super::device::tile::run_len;
use crate::host::executor::chunks;
use crate::input::Input;
use crate::kernel::Team;
use crate::sort::ShortCode;
use std::cmp::Reverse;
use std::ops::Range;

/// The best elements of a row: the largest first, and of equal ones the one with the lowest position.
struct BestOfRow<C>(Vec<(Reverse<C>, u32)>);

impl<C: ShortCode> BestOfRow<C> {
    /// Finds the `wanted` best elements, or all if they are fewer.
    ///
    /// # Safety
    /// Nothing writes the input.
    unsafe fn find<I: Input<C::Repr>>(input: I, coding: Coding, Row { first, len }: Row, wanted: usize) -> Self {
        let mut room = Vec::new();
        // SAFETY: the elements exist, and nothing writes them.
        let elements = unsafe { input.elements(first, len, &mut room) };
        let mut items: Vec<(Reverse<C>, u32)> = Vec::with_capacity(elements.len());
        for (position, &key) in elements.iter().enumerate() {
            items.push((Reverse(coding.encode(key)), position as u32));
        }
        if wanted < items.len() {
            items.select_nth_unstable(wanted);
            items.truncate(wanted);
        }
        items.sort_unstable();
        Self(items)
    }

    /// Returns the element at a place, and its position.
    fn get(&self, place: usize) -> Option<(C, u32)> {
        self.0.get(place).map(|&(Reverse(code), position)| (code, position))
    }
}

/// # Safety
/// The contract of [`best_of_rows`](super::device::best_of_rows::BestOfRows).
pub(super) unsafe fn best_of_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const THREADS: u32>(
    kernel: BestOfRows<C, I, VEC, THREADS>,
    team: Team,
) {
    let BestOfRows { input, coding, layout, wanted, positions, keys, .. } = kernel;
    // SAFETY: nothing writes the length.
    let (all, most) = (unsafe { input.count() }, wanted.most());
    let find = |row: usize| {
        // SAFETY: there are so many rows, and nothing writes these.
        let best =
            unsafe { BestOfRow::<C>::find(input, coding, layout.row_natively(row, all), wanted.of_natively(row)) };
        for at in row * most..(row + 1) * most {
            let found = best.get(at - row * most);
            // SAFETY: each row has room for so many elements, and no other row has this place.
            unsafe {
                positions.as_mut_ptr().add(at).write(found.map_or(u32::NONE, |(_, position)| position));
                if let Some((code, _)) = found {
                    keys.set_natively(at, coding.decode(code));
                }
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes places of its own.
    unsafe { team.each(positions.len() / most, find) };
}

/// # Safety
/// The contract of [`select_rows`](super::device::rows::SelectRows).
pub(super) unsafe fn select_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    kernel: SelectRows<C, I, VEC>,
    team: Team,
) {
    let SelectRows { input, coding, layout, wanted, selected, sifted, .. } = kernel;
    // SAFETY: nothing writes the length.
    let (all, room_of_row) = (unsafe { input.count() }, wanted.most());
    let select = |row: usize| {
        // SAFETY: there are so many rows. Earlier launches have finished their lists, and nothing writes what is wanted.
        let best = unsafe {
            if sifted.row(row).enough_natively().is_some() {
                return;
            }
            BestOfRow::<C>::find(input, coding, layout.row_natively(row, all), wanted.of_natively(row))
        };
        for at in row * room_of_row..(row + 1) * room_of_row {
            let (code, position) = best.get(at - row * room_of_row).unwrap_or((C::zeroed(), u32::NONE));
            // SAFETY: each row has room for so many elements, and no other row has this place.
            unsafe {
                selected.codes.as_mut_ptr().add(at).write(code);
                selected.positions.as_mut_ptr().add(at).write(position);
            }
        }
    };
    // SAFETY: the body captures arguments. Each call writes places of its own.
    unsafe { team.each(selected.positions.len() / room_of_row.max(1), select) };
}

/// # Safety
/// The contract of [`sample_maxima`](super::device::sift::SampleMaxima).
pub(super) unsafe fn sample_maxima<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    kernel: SampleMaxima<C, I, VEC>,
    team: Team,
) {
    let SampleMaxima { input, coding, stride, maxima, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let sampled_len = run_len(VEC) * stride as usize;
    let groups = maxima.len();
    // A group is a sequence of parts of the sampled runs, not one of lanes: any elements that differ from those of the other
    // groups will do.
    let part_len = run_len(VEC).div_ceil(MAXIMA_PER_RUN);
    let find = |_: usize, range: Range<usize>| {
        let mut room = Vec::new();
        for group in range {
            let mut largest = C::zeroed();
            let mut sample = group / MAXIMA_PER_RUN;
            while sample * sampled_len < len {
                let run = sample * sampled_len + sampled(sample, stride) * run_len(VEC);
                let start = (run + group % MAXIMA_PER_RUN * part_len).min(len);
                let end = (start + part_len).min(run + run_len(VEC)).clamp(start, len);
                // SAFETY: the elements exist, and nothing writes them.
                let elements = unsafe { input.elements(start, end - start, &mut room) };
                for &key in elements {
                    largest = largest.max(coding.encode(key));
                }
                sample += groups / MAXIMA_PER_RUN;
            }
            // SAFETY: the maximum exists, and no other call has it.
            unsafe { maxima.as_mut_ptr().add(group).write(largest) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes maxima of its own.
    unsafe { team.divide(groups, find) };
}

/// Finds no thresholds: on a CPU, each row is best read once, by the kernel that selects without them.
///
/// # Safety
/// The contract of [`sample_rows`](super::device::sample_rows::SampleRows).
pub(super) unsafe fn sample_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const PER: usize>(
    kernel: SampleRows<C, I, VEC, PER>,
    _: Team,
) {
    for row in 0..kernel.sifted.rows() {
        // SAFETY: the row exists, and nothing else uses its words.
        unsafe { kernel.sifted.row(row).start_full() };
    }
}

/// # Safety
/// The contract of [`sift`](super::device::sift::Sift).
pub(super) unsafe fn sift<C: ShortCode, I: Input<C::Repr>, P: Position, const VEC: usize>(
    kernel: Sift<C, I, P, VEC>,
    team: Team,
) {
    let Sift { input, coding, layout, sifted: all_rows, candidates: all_candidates, .. } = kernel;
    /// The elements that are loaded at once.
    const CHUNK: usize = 1024;
    for row in 0..all_rows.rows() {
        // SAFETY: there are so many rows, nothing writes the length, and an earlier launch has found the threshold.
        let (Row { first: row_start, len }, sifted, candidates) = unsafe {
            (layout.row_natively(row, input.count()), all_rows.row(row), all_candidates.row(row, all_rows.room()))
        };
        // SAFETY: the words exist, and nothing else uses them before the row is divided.
        if unsafe { sifted.enough_natively() }.is_none() {
            continue;
        }
        // SAFETY: it was found.
        let threshold = unsafe { sifted.threshold::<C>() };
        let sift = |_: usize, range: Range<usize>| {
            let (mut room, mut found) = (Vec::new(), Vec::new());
            for Range { start, end } in chunks(range, CHUNK) {
                // SAFETY: the elements exist, and nothing writes them.
                let elements = unsafe { input.elements(row_start + start, end - start, &mut room) };
                // Nearly all chunks have no candidates: the first look has no jumps.
                let mut largest = C::zeroed();
                for &key in elements {
                    largest = largest.max(coding.encode(key));
                }
                if largest < threshold {
                    continue;
                }
                for (at, &key) in elements.iter().enumerate() {
                    let code = coding.encode::<C>(key);
                    if code >= threshold {
                        found.push((at, code));
                    }
                }
                // SAFETY: the words exist.
                let Some(first) = (unsafe { sifted.take_natively(found.len() as u64) }) else { return };
                for (taken, &(at, code)) in found.iter().enumerate() {
                    let place = first as usize + taken;
                    // SAFETY: the list has room for the places that were taken, and no other call has taken them.
                    unsafe {
                        candidates.codes.as_mut_ptr().add(place).write(code);
                        candidates.positions.as_mut_ptr().add(place).write(P::of(start + at));
                    }
                }
                found.clear();
            }
        };
        // SAFETY: the body captures arguments. Each call writes candidates of its own.
        unsafe { team.divide(len, sift) };
    }
}
