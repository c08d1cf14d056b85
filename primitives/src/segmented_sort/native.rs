//! The bodies of the segmented sort's kernels for the CPU. See [`tile`](super::device::tile), [`pass`](super::device::pass),
//! [`cut`](super::device::cut) and [`number`](super::device::number) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::cut::{CutSegments, status};
use super::device::number::NumberItems;
use super::device::pass::MergeSegments;
use super::device::shape::Shape;
use super::device::tile::SortSegments;
use crate::compare::KeyOrder;
use crate::kernel::Team;
use crate::pairs::PairsMut;
use bytemuck::Pod;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Sorts each segment, whatever its length. So nothing is left to merge.
///
/// # Safety
/// The contract of [`sort_segments`](super::device::tile::SortSegments).
pub(super) unsafe fn sort_segments<
    K: Pod,
    V: Pod,
    C: KeyOrder<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const SLACK: u32,
>(
    kernel: SortSegments<K, V, C, THREADS, ITEMS, SLACK>,
    team: Team,
) {
    let SortSegments { offsets, input_keys, input_values, output, compare, .. } = kernel;
    let PairsMut { keys, values } = output;
    // SAFETY: nothing writes the number of keys.
    let input_keys = unsafe { input_keys.get() };
    let items = input_keys.len();
    // SAFETY: nothing writes the offsets, nor their number.
    let offsets = unsafe { offsets.get().as_slice() };
    let sort = |segment: &[u32]| {
        let (start, end) = ((segment[0] as usize).min(items), (segment[1] as usize).min(items));
        if start >= end {
            return;
        }
        let len = end - start;
        // Only the caller's words move along: the values are moved once, at the end.
        let mut positions: Vec<u32> = (0..len as u32).collect();
        // SAFETY: the items exist, and only this call writes them, after they were copied.
        unsafe {
            let mut sorted = input_keys.slice(start, len).as_slice().to_vec();
            compare.sort(&mut sorted, &mut positions);
            keys.as_mut_ptr().add(start).copy_from_nonoverlapping(sorted.as_ptr(), len);
            if size_of::<V>() > 0 {
                let from = input_values.slice(start, len).as_slice();
                let moved: Vec<V> = positions.iter().map(|&position| from[position as usize]).collect();
                values.as_mut_ptr().add(start).copy_from_nonoverlapping(moved.as_ptr(), len);
            }
        }
    };
    // Each part has about as many items. Segments of offsets that are out of order may overlap: one worker sorts them.
    let parts = if offsets.is_sorted() { 8 * team.parts(items) } else { 1 };
    let boundary = |part: usize| match part {
        0 => 0,
        part if part == parts => offsets.len() - 1,
        part => offsets[..offsets.len() - 1].partition_point(|&offset| (offset as usize) < items / parts * part),
    };
    // SAFETY: the body captures arguments and plain data. Each call writes segments of its own.
    unsafe { team.each(parts, |part| offsets[boundary(part)..=boundary(part + 1)].windows(2).for_each(sort)) };
}

/// All segments are sorted already.
///
/// # Safety
/// The contract of [`merge_segments`](super::device::pass::MergeSegments).
pub(super) unsafe fn merge_segments<
    K: Pod,
    V: Pod,
    C: KeyOrder<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const SLACK: u32,
>(
    _: MergeSegments<K, V, C, THREADS, ITEMS, SLACK>,
    _: Team,
) {
}

/// # Safety
/// The contract of [`cut_segments`](super::device::cut::CutSegments).
pub(super) unsafe fn cut_segments<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    kernel: CutSegments<THREADS, ITEMS, SLACK>,
    team: Team,
) {
    let CutSegments { offsets, edges, status, items, .. } = kernel;
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    // SAFETY: nothing writes the offsets, nor the numbers of offsets and items.
    let (offsets, len) = unsafe { (offsets.get().as_slice(), items.get() as u32) };
    let count = offsets.len();
    // SAFETY: the word exists, and all accesses of the kernel are atomic.
    let status = |word: usize| unsafe { AtomicU32::from_ptr(status.as_mut_ptr().add(word)) };
    status(status::ITEMS).store(len, Ordering::Relaxed);
    let cut: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let (mut bad, mut most_pieces) = (0, 0);
        let mut before = if range.start > 0 { offsets[range.start - 1] } else { 0 };
        for i in range {
            let here = if i < count { offsets[i] } else { before };
            let start = std::mem::replace(&mut before, here);
            if here < start || here > len {
                bad = bad.max(!(i as u32));
                continue;
            }
            if i > 0 {
                most_pieces = most_pieces.max(shape.pieces(start, here));
            }
            let from = if i == 0 { 0 } else { shape.nominal_tile(start) + 1 };
            let to = if i < count { shape.nominal_tile(here) } else { shape.tiles(items.most() as u32) };
            for tile in from..=to {
                let edge = shape.edge(tile, here, i as u32, i == 0 || i == count);
                let word = u64::from(edge.position) | u64::from(edge.offset) << 32;
                // With decreasing offsets, several parts may write the same edge.
                // SAFETY: there is an edge more than tiles, each of them a word, and all accesses are atomic.
                let to_edge = unsafe { AtomicU64::from_ptr(edges.as_mut_ptr().add(tile as usize).cast()) };
                to_edge.store(word, Ordering::Relaxed);
            }
        }
        status(status::BAD_OFFSET).fetch_max(bad, Ordering::Relaxed);
        if most_pieces > 1 {
            status(status::PIECES).fetch_max(most_pieces, Ordering::Relaxed);
        }
    };
    // SAFETY: the body captures arguments and plain data. What several calls write is atomic.
    unsafe { team.divide(count + 1, cut) };
}

/// # Safety
/// The contract of [`number_items`](super::device::number::NumberItems).
pub(super) unsafe fn number_items(kernel: NumberItems, team: Team) {
    let NumberItems { offsets, output, .. } = kernel;
    // SAFETY: nothing writes the offsets, nor their number.
    let offsets = unsafe { offsets.get().as_slice() };
    let number: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let mut passed = offsets.partition_point(|&offset| offset as usize <= range.start);
        for at in range {
            while passed < offsets.len() && offsets[passed] as usize <= at {
                passed += 1;
            }
            let start = if passed > 0 { offsets[passed - 1] } else { 0 };
            // SAFETY: the output has this item, and no other call has it.
            unsafe { output.as_mut_ptr().add(at).write((at as u32).wrapping_sub(start)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes items of its own.
    unsafe { team.divide(output.len(), number) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::native::tests::{compare, random};
    use crate::input::{Count, SegmentOffsets};
    use crate::segmented_sort::device::cut::{CUT_TILE, Edge};
    use crate::segmented_sort::device::number::NUMBER_TILE;

    /// Returns offsets into `len` items, in order. Some are equal.
    fn offsets(count: usize, len: usize) -> Vec<u32> {
        let mut offsets: Vec<u32> = random(count).map(|x| (x % (len as u64 + 1)) as u32).collect();
        offsets.sort_unstable();
        offsets.dedup_by_key(|offset| *offset / 3 * 3);
        offsets.resize(count, len as u32);
        offsets
    }

    #[test]
    fn items_are_numbered_as_by_the_threads() {
        for len in [1, 7, NUMBER_TILE - 1, NUMBER_TILE, NUMBER_TILE + 1, (3 << 13) + 1] {
            for count in [1, 2, 50, len] {
                compare(&format!("{len} items, {count} offsets"), |stream| {
                    let offsets = stream.upload(&offsets(count, len)).unwrap();
                    let mut output = stream.uninit::<u32>(len).unwrap();
                    let (from, to) = (offsets.raw_view(stream).unwrap(), output.raw_view_mut(stream).unwrap());
                    // SAFETY: one block per tile.
                    unsafe {
                        stream
                            .launch(NumberItems::new(SegmentOffsets::from(from), to), len.div_ceil(NUMBER_TILE))
                            .unwrap()
                    };
                    output.to_vec(stream).unwrap()
                });
            }
        }
    }

    /// Returns the edges and the status.
    fn cut(stream: &crate::Stream, offsets: &[u32], len: usize) -> (Vec<Edge>, Vec<u32>) {
        let shape = Shape::<32, 3, 10>;
        let from = stream.upload(offsets).unwrap();
        let mut edges = stream.zeroed::<Edge>(shape.tiles(len as u32) as usize + 1).unwrap();
        let mut state = stream.zeroed::<u32>(status::WORDS).unwrap();
        let kernel = CutSegments::<32, 3, 10>::new(
            SegmentOffsets::from(from.raw_view(stream).unwrap()),
            edges.raw_view_mut(stream).unwrap(),
            state.raw_view_mut(stream).unwrap(),
            Count::new(len, None),
        );
        // SAFETY: one block per tile of the offsets and the end; an edge more than tiles; the status is zero.
        unsafe { stream.launch(kernel, (offsets.len() + 1).div_ceil(CUT_TILE)).unwrap() };
        (edges.to_vec(stream).unwrap(), state.to_vec(stream).unwrap())
    }

    #[test]
    fn segments_are_cut_as_by_the_threads() {
        for len in [0, 1, 85, 86, 87, 96, 97, 172, 5000, 100_000] {
            for count in [1, 2, 3, CUT_TILE - 2, CUT_TILE - 1, CUT_TILE, (3 << 13) + 1] {
                let offsets = offsets(count, len);
                compare(&format!("{len} items, {count} offsets"), |stream| {
                    let (edges, status) = cut(stream, &offsets, len);
                    (bytemuck::cast_slice::<Edge, u32>(&edges).to_vec(), status)
                });
            }
        }
    }

    /// Which edges are written then depends on the order of the threads.
    #[test]
    fn bad_offsets_are_found_as_by_the_threads() {
        let good = offsets(20_000, 1 << 17);
        for (index, offset) in [(0, 1 << 18), (3, 0), (10_000, 1 << 18), (19_998, 5), (19_999, (1 << 17) + 1)] {
            let mut offsets = good.clone();
            offsets[index] = offset;
            compare(&format!("offset {index}"), |stream| cut(stream, &offsets, 1 << 17).1);
        }
    }
}
