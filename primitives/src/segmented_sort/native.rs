//! The bodies of the segmented sort's kernels for the CPU. See [`tile`](super::tile) and [`pass`](super::pass) for what they do
//! and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::pass::MergeSegments;
use super::tile::SortSegments;
use crate::compare::KeyOrder;
use crate::kernel::Team;
use bytemuck::Pod;

/// Sorts each segment, whatever its length. So nothing is left to merge.
///
/// # Safety
/// The contract of [`sort_segments`](super::tile::SortSegments).
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
    let SortSegments { offsets, input_keys, input_values, keys, values, compare, .. } = kernel;
    let items = input_keys.len();
    // SAFETY: nothing writes the offsets.
    let offsets = unsafe { offsets.as_slice() };
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
/// The contract of [`merge_segments`](super::pass::MergeSegments).
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
