//! The bodies of the search kernels for the CPU. See [`kernel`](super::device::kernel) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::kernel::{BuildIndex, IndexOut, SearchDirectly, SearchIndexed, SearchSorted};
use super::device::kernel::{LOG_NODE, NODE, level_len, padded_len, precedes};
use crate::compare::KeyOrder;
use crate::kernel::Team;
use bytemuck::Pod;
use std::ops::Range;

/// Each needle is searched for from where the one before was found, by steps that double, then by bisection.
///
/// # Safety
/// The contract of [`search_sorted`](super::device::kernel::SearchSorted).
pub(super) unsafe fn search_sorted<K: Pod, C: KeyOrder<K>, I: IndexOut, const ITEMS: usize>(
    kernel: SearchSorted<K, C, I, ITEMS>,
    team: Team,
) {
    let SearchSorted { haystack, needles, out, compare, upper, .. } = kernel;
    // SAFETY: nothing writes these.
    let (haystack, needles) = unsafe { (haystack.as_slice(), needles.as_slice()) };
    let is_before = |at: usize, needle: K| precedes(compare, haystack[at], needle, upper != 0);
    let search = |_: usize, range: Range<usize>| {
        let mut place = 0;
        for index in range.clone() {
            let needle = needles[index];
            let (mut low, mut high) = (place, haystack.len());
            // The first needle of a part may be anywhere.
            let mut step = if index == range.start { 0 } else { 1 };
            while step > 0 && low < high {
                let probe = (low + step - 1).min(high - 1);
                if is_before(probe, needle) {
                    (low, step) = (probe + 1, 2 * step);
                } else {
                    (high, step) = (probe, 0);
                }
            }
            while low < high {
                let middle = low + (high - low) / 2;
                (low, high) = if is_before(middle, needle) { (middle + 1, high) } else { (low, middle) };
            }
            place = low;
            // SAFETY: the output is as long as the needles, and no other call has this place.
            unsafe { out.as_mut_ptr().add(index).write(I::from_position(place)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(needles.len(), search) };
}

/// Returns how many of `len` keys come before a bound, where `is_before` tells it for each. It takes the steps of the kernels.
#[inline(always)]
fn bisect(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut place, mut width) = (0, len);
    while width > 1 {
        let half = width / 2;
        // Selected, not branched to: which half comes next cannot be predicted.
        place += if is_before(place + half - 1) { half } else { 0 };
        width -= half;
    }
    place + usize::from(width == 1 && is_before(place))
}

/// # Safety
/// The contract of [`search_directly`](super::device::kernel::SearchDirectly).
pub(super) unsafe fn search_directly<K: Pod, C: KeyOrder<K>, I: IndexOut>(kernel: SearchDirectly<K, C, I>, team: Team) {
    let SearchDirectly { haystack, needles, out, compare, upper, .. } = kernel;
    // SAFETY: nothing writes these.
    let (haystack, needles) = unsafe { (haystack.as_slice(), needles.as_slice()) };
    let search: &dyn Fn(usize, Range<usize>) = &|_, range| {
        for index in range {
            let place = bisect(haystack.len(), |at| precedes(compare, haystack[at], needles[index], upper != 0));
            // SAFETY: the output is as long as the needles, and no other call has this place.
            unsafe { out.as_mut_ptr().add(index).write(I::from_position(place)) };
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(needles.len(), search) };
}

/// # Safety
/// The contract of [`build_index`](super::device::kernel::BuildIndex).
pub(super) unsafe fn build_index<K: Pod>(kernel: BuildIndex<K>, team: Team) {
    let BuildIndex { haystack, index, .. } = kernel;
    // SAFETY: nothing writes the haystack.
    let haystack = unsafe { haystack.as_slice() };
    let build: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let (mut level, mut place) = (1, range.start);
        for at in range {
            while place >= padded_len(haystack.len(), level) {
                (level, place) = (level + 1, place - padded_len(haystack.len(), level));
            }
            let last = ((place + 1) << (LOG_NODE * level)) - 1;
            // SAFETY: the index has this key, and no other call has it.
            unsafe { index.as_mut_ptr().add(at).write(haystack[last.min(haystack.len() - 1)]) };
            place += 1;
        }
    };
    // SAFETY: the body captures arguments. Each call writes keys of its own.
    unsafe { team.divide(index.len(), build) };
}

/// A node is searched by bisection: a comparison costs more than a dependent load that hits the cache.
///
/// # Safety
/// The contract of [`search_indexed`](super::device::kernel::SearchIndexed).
pub(super) unsafe fn search_indexed<K: Pod, C: KeyOrder<K>, I: IndexOut, const VEC: usize>(
    kernel: SearchIndexed<K, C, I, VEC>,
    team: Team,
) {
    let SearchIndexed { haystack, index, needles, out, compare, upper, top, .. } = kernel;
    // SAFETY: nothing writes these.
    let (haystack, index, needles) = unsafe { (haystack.as_slice(), index.as_slice(), needles.as_slice()) };
    // From the haystack to the top, without the padding.
    let mut levels = vec![haystack];
    let mut start = 0;
    for level in 1..=top {
        levels.push(&index[start..][..level_len(haystack.len(), level)]);
        start += padded_len(haystack.len(), level);
    }
    let search: &dyn Fn(usize, Range<usize>) = &|_, range| {
        for at in range {
            let (mut place, mut is_top) = (0, true);
            for keys in levels.iter().rev() {
                // A place beyond the last key also leads to the last node.
                let first = (place * NODE).min(keys.len().saturating_sub(1) / NODE * NODE);
                let node = if is_top { keys } else { &keys[first..keys.len().min(first + NODE)] };
                let within = bisect(node.len(), |i| precedes(compare, node[i], needles[at], upper != 0));
                (place, is_top) = (first + within, false);
            }
            // SAFETY: the output is as long as the needles, and no other call has this place.
            unsafe { out.as_mut_ptr().add(at).write(I::from_position(place)) };
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.divide(needles.len(), search) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::native::tests::{compare, random};
    use crate::compare::{Compare, HoleOrder, Less};
    use crate::hole::RegisterRepr;
    use crate::search::device::kernel::{THREADS, index_len, top_level, top_limit};
    use crate::search::device::shape::vector;
    use crate::with_shape;

    /// Builds an index of a haystack that begins at element `skipped` of its memory, and searches with it and without it.
    /// Returns the index, and the positions.
    fn search<K: Pod, H: RegisterRepr, I: IndexOut>(len: usize, skipped: usize, of: impl Fn(u64) -> H)
    where
        Less: Compare<K>,
    {
        compare(&format!("{len} elements, {skipped} skipped"), |stream| {
            let order = HoleOrder::of::<K, Less>(Less);
            // Every key three times, and needles between them.
            let mut keys: Vec<H> = (0..len as u64).map(|i| of(i / 3 * 2)).collect();
            keys.splice(0..0, vec![of(0); skipped]);
            let needles: Vec<H> = random(1500).map(|x| of(x % (len as u64 + 4))).collect();
            let (keys, needles) = (stream.upload(&keys).unwrap(), stream.upload(&needles).unwrap());
            let haystack = keys.slice(skipped..).unwrap().raw_view(stream).unwrap();
            let from = needles.raw_view(stream).unwrap();
            let top = top_level::<H>(len);
            let mut index = stream.uninit::<H>(index_len(len, top)).unwrap();
            let to_index = index.raw_view_mut(stream).unwrap();
            if top > 0 {
                let blocks = to_index.len().div_ceil(THREADS as usize);
                // SAFETY: one thread per key of the index.
                unsafe { stream.launch(BuildIndex::<H>::new(haystack, to_index), blocks).unwrap() };
            }
            let mut found: Vec<u8> = bytemuck::cast_slice(&index.to_vec(stream).unwrap()).to_vec();
            for upper in [0, 1] {
                let mut out = stream.uninit::<I>(from.len()).unwrap();
                let to = out.raw_view_mut(stream).unwrap();
                let direct = SearchDirectly::<H, HoleOrder, I>::new(haystack, from, to, order, upper);
                // SAFETY: one thread per needle, and as many outputs.
                unsafe { stream.launch(direct, from.len().div_ceil(THREADS as usize)).unwrap() };
                let directly = out.to_vec(stream).unwrap();
                found.extend_from_slice(bytemuck::cast_slice(&directly));
                if len > 0 {
                    let to = out.raw_view_mut(stream).unwrap();
                    let index = to_index.as_const();
                    with_shape!(VEC in 4 | 2 | 1 = vector::<H>(), {
                        let kernel = SearchIndexed::<H, HoleOrder, I, VEC>::new(haystack, index, from, to, order, upper, top);
                        // SAFETY: the index was built for this haystack; as many outputs.
                        unsafe { stream.launch(kernel, 2).unwrap() };
                    });
                    let indexed = out.to_vec(stream).unwrap();
                    assert!(bytemuck::cast_slice::<I, u8>(&indexed) == bytemuck::cast_slice::<I, u8>(&directly));
                }
            }
            found
        });
    }

    #[test]
    fn positions_are_those_of_the_threads() {
        let top = top_limit::<u32>();
        for len in [0, 1, 2, 7, 8, 9, 1000, top - 1, top, top + 1, 8 * top - 7, 8 * top, 8 * top + 1, 8 * top + 9] {
            search::<u32, u32, u32>(len, 0, |x| x as u32);
        }
        search::<u32, u32, u64>(20_001, 1, |x| x as u32);
        search::<u64, u64, u32>(40_000, 1, |x| x);
        let top = top_limit::<u128>();
        for len in [top, 8 * top, 64 * top + 1] {
            search::<u128, [u64; 2], u32>(len, 0, |x| [x, 7]);
        }
    }
}
