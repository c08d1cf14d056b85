//! The bodies of the kernels that move elements for the CPU. See [`kernel`](super::device) for what they do and for their
//! contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{
    ClaimPlaces, CopyRanges, GatherElements, Index, ReverseElements, ScatterElements, ScatterFirst, SwapEnds, is_idle,
};
use crate::input::{Input, SourceArg};
use crate::kernel::Team;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Calls `visit` with the elements of a range, and with their indices.
///
/// # Safety
/// The indices exist. Nothing writes what they are read from.
unsafe fn each_index<I: Index>(indices: SourceArg, range: Range<usize>, visit: impl Fn(usize, usize)) {
    /// The indices that are loaded at once.
    const CHUNK: usize = 1024;
    let mut room: Vec<I> = Vec::new();
    for start in range.clone().step_by(CHUNK) {
        // SAFETY: guaranteed by the caller.
        let chunk = unsafe { indices.elements(start, CHUNK.min(range.end - start), &mut room) };
        chunk.iter().enumerate().for_each(|(i, index)| visit(start + i, index.index()));
    }
}

/// Copies one element.
///
/// # Safety
/// Both exist, and nothing else uses the target.
#[inline(always)]
unsafe fn copy_element<W: Pod>(from: Global<W>, element: usize, to: GlobalMut<W>, place: usize, words: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (from, to) = (from.as_ptr().add(element * words), to.as_mut_ptr().add(place * words));
        if words == 1 {
            // The usual case as one access.
            to.write(from.read());
        } else {
            to.copy_from_nonoverlapping(from, words);
        }
    }
}

/// Adds to the number of indices that are out of range.
///
/// # Safety
/// `outside` has one element, which nothing else uses, or none.
unsafe fn add_outside(number: AtomicU64, outside: GlobalMut<u64>) {
    if !outside.is_empty() {
        // SAFETY: guaranteed by the caller.
        unsafe { *outside.as_mut_ptr() += number.into_inner() };
    }
}

/// # Safety
/// The contract of [`gather_elements`](super::device::GatherElements).
pub(super) unsafe fn gather_elements<W: Pod, I: Index>(kernel: GatherElements<W, I>, team: Team) {
    let GatherElements { from, indices, to, words, outside, .. } = kernel;
    let words = words as usize;
    let (available, missed) = (from.len() / words, AtomicU64::new(0));
    let gather = |place: usize, index: usize| {
        if index < available {
            // SAFETY: the element exists, and there is a place for each index.
            unsafe { copy_element(from, index, to, place, words) };
        } else {
            missed.fetch_add(1, Ordering::Relaxed);
        }
    };
    // SAFETY: the body captures arguments and a counter, and each place is written once. Nothing writes the indices.
    unsafe {
        team.divide(Input::<I>::count(&indices), |_, range| each_index::<I>(indices, range, gather));
        add_outside(missed, outside);
    }
}

/// # Safety
/// The contract of [`scatter_first`](super::device::ScatterFirst).
pub(super) unsafe fn scatter_first<W: Pod, I: Index>(kernel: ScatterFirst<W, I>, team: Team) {
    let ScatterFirst { from, indices, to, words, claimed, last, outside, .. } = kernel;
    let (missed, is_repeated) = (AtomicU64::new(0), AtomicBool::new(false));
    let scatter = |element: usize, place: usize| {
        if place >= last.len() {
            missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let bit = 1 << (place % 32);
        // SAFETY: there is a bit for each place, and all accesses to the words are atomic.
        let word = unsafe { AtomicU32::from_ptr(claimed.as_mut_ptr().add(place / 32)) };
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            // SAFETY: the element exists, and so does the place, which no other element has claimed.
            unsafe { copy_element(from, element, to, place, words as usize) };
        } else {
            is_repeated.store(true, Ordering::Relaxed);
        }
    };
    let clear = |_: usize, places: Range<usize>| {
        // SAFETY: the places exist, and no other call has them.
        unsafe { last.as_mut_ptr().add(places.start).write_bytes(0, places.len()) };
    };
    // SAFETY: the bodies capture arguments and flags, and each place is written once. Nothing writes the indices. The last word of
    // `claimed` has no place.
    unsafe {
        team.divide(Input::<I>::count(&indices), |_, range| each_index::<I>(indices, range, scatter));
        team.divide(last.len(), clear);
        claimed.as_mut_ptr().add(claimed.len() - 1).write(u32::from(is_repeated.into_inner()));
        add_outside(missed, outside);
    }
}

/// # Safety
/// The contract of [`claim_places`](super::device::ClaimPlaces).
pub(super) unsafe fn claim_places<I: Index>(kernel: ClaimPlaces<I>, team: Team) {
    let ClaimPlaces { indices, last, repeated, .. } = kernel;
    // SAFETY: nothing writes the word, nor the length.
    let (is_idle, count) = unsafe { (is_idle(repeated), Input::<I>::count(&indices)) };
    if is_idle {
        return;
    }
    // Each worker has some places, and goes over all indices in order: the last one that is noted counts.
    let claim = |_: usize, places: Range<usize>| {
        let note = |element: usize, place: usize| {
            if places.contains(&place) {
                // SAFETY: the place exists, and no other call has it.
                unsafe { last.as_mut_ptr().add(place).write(element as u64 + 1) };
            }
        };
        // SAFETY: nothing writes what the indices are read from.
        unsafe { each_index::<I>(indices, 0..count, note) };
    };
    // SAFETY: the body captures arguments. Each call writes places of its own.
    unsafe { team.divide(last.len(), claim) };
}

/// # Safety
/// The contract of [`scatter_elements`](super::device::ScatterElements).
pub(super) unsafe fn scatter_elements<W: Pod, I: Index>(kernel: ScatterElements<W, I>, team: Team) {
    let ScatterElements { from, indices, to, words, last, repeated, .. } = kernel;
    // SAFETY: nothing writes these.
    let (is_idle, last) = unsafe { (is_idle(repeated), last.as_slice()) };
    if is_idle {
        return;
    }
    let scatter = |element: usize, place: usize| {
        if last.is_empty() || last.get(place) == Some(&(element as u64 + 1)) {
            // SAFETY: the element exists, and so does the place, which no other element is scattered to.
            unsafe { copy_element(from, element, to, place, words as usize) };
        }
    };
    // SAFETY: the body captures arguments, and each place is written once. Nothing writes the indices.
    unsafe { team.divide(Input::<I>::count(&indices), |_, range| each_index::<I>(indices, range, scatter)) };
}

/// # Safety
/// The contract of [`reverse_elements`](super::device::ReverseElements).
pub(super) unsafe fn reverse_elements<W: Pod>(kernel: ReverseElements<W>, team: Team) {
    let ReverseElements { from, to, words, .. } = kernel;
    let len = to.len() / words as usize;
    let reverse = |_: usize, range: Range<usize>| {
        for place in range {
            // SAFETY: both have this number of elements, and each place is written once.
            unsafe { copy_element(from, len - 1 - place, to, place, words as usize) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes places of its own.
    unsafe { team.divide(len, reverse) };
}

/// # Safety
/// The contract of [`swap_ends`](super::device::SwapEnds).
pub(super) unsafe fn swap_ends<W: Pod>(kernel: SwapEnds<W>, team: Team) {
    let SwapEnds { data, words, .. } = kernel;
    let words = words as usize;
    let len = data.len() / words;
    let swap = |_: usize, range: Range<usize>| {
        for element in range {
            let (first, second) = (element * words, (len - 1 - element) * words);
            for word in 0..words {
                // SAFETY: both words exist, and no other call has them.
                unsafe { data.as_mut_ptr().add(first + word).swap(data.as_mut_ptr().add(second + word)) };
            }
        }
    };
    // SAFETY: the body captures arguments. Each call swaps elements of its own.
    unsafe { team.divide(len / 2, swap) };
}

/// Each worker has a part of the elements, and copies what the ranges have of it.
///
/// # Safety
/// The contract of [`copy_ranges`](super::device::CopyRanges).
pub(super) unsafe fn copy_ranges<W: Pod>(kernel: CopyRanges<W>, team: Team) {
    let CopyRanges { from, starts, to, offsets, places, words, outside, .. } = kernel;
    let words = words as usize;
    let (available, room) = ((from.len() / words) as u64, (to.len() / words) as u64);
    let missed = AtomicU64::new(0);
    // SAFETY: nothing writes these.
    let (starts, offsets, places) = unsafe { (starts.as_slice(), offsets.as_slice(), places.as_slice()) };
    let len = if places.is_empty() { room } else { offsets[starts.len()] };
    let copy = |_: usize, part: Range<usize>| {
        let mut at = part.start as u64;
        let end = part.end as u64;
        while at < end {
            // The last range that begins at or before this element. Offsets that are out of order give some range.
            let range = offsets[..starts.len()].partition_point(|&offset| offset <= at).checked_sub(1);
            let range_end = range.map_or(0, |range| offsets[range + 1].min(end));
            let Some(range) = range.filter(|_| range_end > at) else {
                // No range has it: the next one begins later, if there is one.
                let next = range.map_or(0, |range| range + 1);
                at = if next < starts.len() { offsets[next].clamp(at + 1, end) } else { end };
                continue;
            };
            // A range that would wrap ends beyond every input.
            let first = starts[range].saturating_add(at - offsets[range]);
            let place = places.get(range).map_or(at, |place| place.wrapping_add(at - offsets[range]));
            let count = range_end - at;
            let inside = available.saturating_sub(first).min(room.saturating_sub(place)).min(count);
            missed.fetch_add(count - inside, Ordering::Relaxed);
            if inside > 0 {
                let (from, to) = (from.as_ptr().wrapping_add(first as usize * words), to.as_mut_ptr());
                // SAFETY: the source has these elements, and no other call has these places.
                unsafe { to.add(place as usize * words).copy_from_nonoverlapping(from, inside as usize * words) };
            }
            at = range_end;
        }
    };
    // SAFETY: the body captures arguments and a counter. Each call writes places of its own.
    unsafe {
        team.divide(len as usize, copy);
        add_outside(missed, outside);
    }
}
