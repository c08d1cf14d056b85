//! The bodies of the selection's kernels for the CPU. See [`kernel`](super::device::kernel), [`segments`](super::device::segments) and
//! [`source`](super::device::source) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::kernel::{CountTiles, PartitionTiles, SelectTiles};
use super::device::predicate::Keep;
use super::device::segments::{CheckOffsets, MoveOffsets, Offset};
use super::device::source::SelectSource;
use crate::hole::RegisterRepr;
use crate::host::executor::chunks;
use crate::input::Input;
use crate::kernel::Team;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The items that are tested at once.
const CHUNK: usize = 1024;

/// Writes items: gets their indices, the bytes of all items, and the places of those that are kept.
type Write<'a> = dyn Fn(Range<usize>, &[u8], Range<usize>) + 'a;

/// Finds the items to keep: `test` gets the indices of some items, and room for a byte each, which it sets to 1 or 0. Then
/// calls `write` with some indices again, with the bytes of all items and with the places of those that are kept. Returns the
/// bytes, and how many are kept.
///
/// Each worker first tests the items of its part, then writes them from where those of the parts before end.
///
/// # Safety
/// Several threads can call the functions, and `write` for different places, at the same time.
pub(crate) unsafe fn compact(
    team: Team,
    len: usize,
    test: &dyn Fn(Range<usize>, &mut [u8]),
    write: &Write<'_>,
) -> (Vec<u8>, usize) {
    let mut flags = vec![0u8; len];
    let to_flags = flags.as_mut_ptr();
    let counts: Vec<AtomicUsize> = (0..team.parts(len)).map(|_| AtomicUsize::new(0)).collect();
    let count = |part: usize, range: Range<usize>| {
        let mut kept = 0;
        for chunk in chunks(range, CHUNK) {
            // SAFETY: each item is in one chunk of one part.
            let flags = unsafe { std::slice::from_raw_parts_mut(to_flags.add(chunk.start), chunk.len()) };
            test(chunk, flags);
            kept += flags.iter().map(|&flag| usize::from(flag)).sum::<usize>();
        }
        counts[part].store(kept, Ordering::Relaxed);
    };
    // SAFETY: guaranteed by the caller.
    unsafe { team.divide(len, count) };
    let mut total = 0;
    let starts: Vec<usize> = counts
        .into_iter()
        .map(|count| {
            let start = total;
            total += count.into_inner();
            start
        })
        .collect();
    let compact = |part: usize, range: Range<usize>| {
        let mut place = starts[part];
        for chunk in chunks(range, CHUNK) {
            let kept = flags[chunk.clone()].iter().map(|&flag| usize::from(flag)).sum::<usize>();
            write(chunk, &flags, place..place + kept);
            place += kept;
        }
    };
    // SAFETY: guaranteed by the caller: the places of the parts differ.
    unsafe { team.divide(len, compact) };
    (flags, total)
}

/// Writes the items whose flag is 1 one after the other.
///
/// # Safety
/// There is room for as many items as flags are 1, and nothing else uses it.
pub(crate) unsafe fn write_kept<T: Copy>(items: &[T], flags: &[u8], room: *mut T, kept: usize) {
    let mut at = 0;
    for (&item, &flag) in items.iter().zip(flags) {
        if at == kept {
            break;
        }
        // Written in any case, and overwritten if it is not kept: no jump has to be predicted.
        // SAFETY: `at` is less than the number of kept items.
        unsafe { room.add(at).write(item) };
        at += usize::from(flag);
    }
}

/// # Safety
/// The contract of [`select_tiles`](super::device::kernel::SelectTiles).
pub(super) unsafe fn select_tiles<
    K: Pod,
    V: Pod,
    F: Keep<K>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: SelectTiles<K, V, F, THREADS, VEC, ROWS>,
    team: Team,
) {
    let SelectTiles { input, values, output, output_values, keep, count, .. } = kernel;
    // SAFETY: nothing writes the inputs.
    let (keys, values) = unsafe { (input.as_slice(), values.as_slice()) };
    // SAFETY: guaranteed by the caller.
    let (start, end) = unsafe { keep.range(keys.len()) };
    let test = |range: Range<usize>, flags: &mut [u8]| {
        let range = start + range.start..start + range.end;
        // SAFETY: the indices are those of the range.
        unsafe { keep.items(range.start, &keys[range], flags) };
    };
    let write = |range: Range<usize>, flags: &[u8], places: Range<usize>| {
        let flags = &flags[range.clone()];
        let range = start + range.start..start + range.end;
        // SAFETY: the outputs are as long as the input, and each place is written by one call.
        unsafe {
            write_kept(&keys[range.clone()], flags, output.as_mut_ptr().add(places.start), places.len());
            if size_of::<V>() > 0 {
                write_kept(&values[range], flags, output_values.as_mut_ptr().add(places.start), places.len());
            }
        }
    };
    // SAFETY: the functions capture arguments and plain data, and places are written once.
    let (flags, total) = unsafe { compact(team, end.saturating_sub(start), &test, &write) };
    // SAFETY: there is one count. The flags are those of the range.
    unsafe {
        count.as_mut_ptr().write(total as u64);
        keep.record_natively(start, &flags, VEC * ROWS);
    }
}

/// The partition counts itself.
///
/// # Safety
/// The contract of [`count_tiles`](super::device::kernel::CountTiles).
pub(super) unsafe fn count_tiles<K: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    _: CountTiles<K, F, THREADS, VEC, ROWS>,
    _: Team,
) {
}

/// # Safety
/// The contract of [`partition_tiles`](super::device::kernel::PartitionTiles).
pub(super) unsafe fn partition_tiles<
    K: Pod,
    V: Pod,
    F: Keep<K>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: PartitionTiles<K, V, F, THREADS, VEC, ROWS>,
    team: Team,
) {
    let PartitionTiles { input, values, output, output_values, keep, count, .. } = kernel;
    // SAFETY: nothing writes the inputs.
    let (keys, values) = unsafe { (input.as_slice(), values.as_slice()) };
    // SAFETY: the indices are those of items.
    let test = |range: Range<usize>, flags: &mut [u8]| unsafe { keep.items(range.start, &keys[range], flags) };
    // SAFETY: the test captures arguments.
    let (mut flags, passing) = unsafe { compact(team, keys.len(), &test, &|_, _, _| {}) };
    // SAFETY: guaranteed by the caller.
    let write = |flags: &[u8], first: usize| unsafe {
        let flag = |range: Range<usize>, to: &mut [u8]| to.copy_from_slice(&flags[range]);
        let write = |range: Range<usize>, flags: &[u8], places: Range<usize>| {
            let (flags, place) = (&flags[range.clone()], first + places.start);
            write_kept(&keys[range.clone()], flags, output.as_mut_ptr().add(place), places.len());
            if size_of::<V>() > 0 {
                write_kept(&values[range], flags, output_values.as_mut_ptr().add(place), places.len());
            }
        };
        compact(team, keys.len(), &flag, &write);
    };
    write(&flags, 0);
    flags.iter_mut().for_each(|flag| *flag ^= 1);
    write(&flags, passing);
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(passing as u64) };
}

/// # Safety
/// The contract of [`check_offsets`](super::device::segments::CheckOffsets).
pub(super) unsafe fn check_offsets<O: Offset>(kernel: CheckOffsets<O>, _: Team) {
    let CheckOffsets { offsets, len, range, invalid, .. } = kernel;
    // SAFETY: nothing writes the offsets, nor their number.
    let offsets = unsafe { offsets.get().as_slice() };
    let mut previous = 0;
    let is_invalid = |&offset: &O| {
        let before = std::mem::replace(&mut previous, offset.into());
        previous < before || previous > len
    };
    let first_invalid = offsets.iter().position(is_invalid);
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return };
    // SAFETY: there are two ends of the range, and one number.
    unsafe {
        if let Some(index) = first_invalid {
            invalid.as_mut_ptr().write(index as u64);
        }
        range.as_mut_ptr().write(first.into().min(len));
        range.as_mut_ptr().add(1).write(last.into().min(len));
    }
}

/// Reads the notes that [`Within`](super::device::segments::Within) makes natively.
///
/// # Safety
/// The contract of [`move_offsets`](super::device::segments::MoveOffsets).
pub(super) unsafe fn move_offsets<O: Offset>(kernel: MoveOffsets<O>, team: Team) {
    let MoveOffsets { offsets, output, len, shape, flags, lanes: before, count, .. } = kernel;
    // SAFETY: nothing writes these.
    let (offsets, flags, before) = unsafe { (offsets.get().as_slice(), flags.as_slice(), before.as_slice()) };
    // SAFETY: there is one count.
    let count = unsafe { count.as_ptr().read() };
    let items = u64::from(shape.vec * shape.rows);
    let work = |_: usize, range: Range<usize>| {
        for index in range {
            let offset = offsets.get(index).map_or(len, |&offset| offset.into());
            let kept = if offset >= len {
                count
            } else {
                let word = (offset / items) as usize;
                let own = flags[word] & ((1 << (offset % items)) - 1);
                before[word] + u64::from(own.count_ones())
            };
            // SAFETY: there are as many outputs as offsets, and no other call has this one.
            unsafe { output.as_mut_ptr().add(index).write(O::new(kept)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(output.len(), work) };
}

/// # Safety
/// The contract of [`select_source`](super::device::source::SelectSource).
pub(super) unsafe fn select_source<H: RegisterRepr, const ROWS: usize>(kernel: SelectSource<H, ROWS>, team: Team) {
    let SelectSource { input, output, keep, count, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { Input::<H>::count(&input) };
    let test = |range: Range<usize>, flags: &mut [u8]| {
        let mut room: Vec<H> = Vec::new();
        // SAFETY: the items exist, and nothing writes what the source reads.
        unsafe { keep.items(range.start, input.elements(range.start, range.len(), &mut room), flags) };
    };
    let write = |range: Range<usize>, flags: &[u8], places: Range<usize>| {
        let mut room: Vec<H> = Vec::new();
        // SAFETY: the same; the output is as long as the source, and each place is written by one call.
        unsafe {
            let items = input.elements(range.start, range.len(), &mut room);
            write_kept(items, &flags[range], output.as_mut_ptr().add(places.start), places.len());
        }
    };
    // SAFETY: the functions capture arguments, and places are written once.
    let (_, total) = unsafe { compact(team, len, &test, &write) };
    // SAFETY: there is one count.
    unsafe { count.as_mut_ptr().write(total as u64) };
}
