//! The host entries of the searches.

use super::kernel::{BuildIndex, IndexOut, STEP, SearchDirectly, SearchIndexed, SearchSorted, THREADS};
use super::kernel::{index_len, top_level};
use super::shape::{sorted_items, vector};
use crate::compare::Compare;
use crate::merge::{Partition, partition};
use crate::{DeviceSlice, DeviceSliceMut, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;

/// For each needle the number of elements less than it: where it would go, before all that are equal to it.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is not as long as the needles; [`Error::TooMany`] if the haystack is longer than
/// the positions' type can say; in both cases nothing is written. [`Error::NoInstance`] on a GPU for a key type or comparator
/// that was not instantiated there; what a launch can give.
pub fn lower_bound<'a, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, I>>,
    compare: C,
) -> Result<(), Error> {
    let (haystack, needles, mut out) = (haystack.into(), needles.into(), out.into());
    let query = Query::new(stream, haystack, needles, &mut out, compare, false)?;
    any_order(stream, query)
}

/// For each needle the number of elements not greater than it: where it would go, after all that are equal to it.
///
/// # Errors
/// As [`lower_bound`].
pub fn upper_bound<'a, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, I>>,
    compare: C,
) -> Result<(), Error> {
    let (haystack, needles, mut out) = (haystack.into(), needles.into(), out.into());
    let query = Query::new(stream, haystack, needles, &mut out, compare, true)?;
    any_order(stream, query)
}

/// For each needle [`lower_bound`] and [`upper_bound`]: the elements from the one to the other are equal to it.
///
/// # Errors
/// As [`lower_bound`], for both outputs.
pub fn equal_range<'a, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Into<DeviceSlice<'a, K>>,
    lower: impl Into<DeviceSliceMut<'a, I>>,
    upper: impl Into<DeviceSliceMut<'a, I>>,
    compare: C,
) -> Result<(), Error> {
    let (haystack, needles, mut lower, mut upper) = (haystack.into(), needles.into(), lower.into(), upper.into());
    let lower = Query::new(stream, haystack, needles, &mut lower, compare, false)?;
    let upper = Query::new(stream, haystack, needles, &mut upper, compare, true)?;
    any_order(stream, lower)?;
    any_order(stream, upper)
}

/// [`lower_bound`] for needles that are sorted: one pass over both sequences, so for needles that are not many fewer than
/// the elements.
///
/// # Errors
/// As [`lower_bound`].
pub fn lower_bound_sorted<'a, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, I>>,
    compare: C,
) -> Result<(), Error> {
    let (haystack, needles, mut out) = (haystack.into(), needles.into(), out.into());
    sorted(stream, Query::new(stream, haystack, needles, &mut out, compare, false)?)
}

/// [`upper_bound`] for needles that are sorted: see [`lower_bound_sorted`].
///
/// # Errors
/// As [`lower_bound`].
pub fn upper_bound_sorted<'a, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, I>>,
    compare: C,
) -> Result<(), Error> {
    let (haystack, needles, mut out) = (haystack.into(), needles.into(), out.into());
    sorted(stream, Query::new(stream, haystack, needles, &mut out, compare, true)?)
}

/// What is looked for, and where the answers go.
#[derive(Clone, Copy)]
struct Query<K, C, I> {
    haystack: Global<K>,
    needles: Global<K>,
    out: GlobalMut<I>,
    compare: C,
    upper: u32,
}

impl<K: Pod, C, I: IndexOut> Query<K, C, I> {
    fn new(
        stream: &Stream,
        haystack: DeviceSlice<'_, K>,
        needles: DeviceSlice<'_, K>,
        out: &mut DeviceSliceMut<'_, I>,
        compare: C,
        upper: bool,
    ) -> Result<Self, Error> {
        if out.len() != needles.len() {
            let what = "the output of a search";
            return Err(Error::LengthMismatch { what, expected: needles.len(), found: out.len() });
        }
        if haystack.len() > I::LIMIT {
            let what = "elements to search in, with positions of this type,";
            return Err(Error::TooMany { what, asked: haystack.len(), limit: I::LIMIT });
        }
        Ok(Self {
            haystack: haystack.view(stream)?,
            needles: needles.view(stream)?,
            out: out.view_mut(stream)?,
            compare,
            upper: u32::from(upper),
        })
    }
}

fn any_order<K: Pod, C: Compare<K>, I: IndexOut>(stream: &Stream, query: Query<K, C, I>) -> Result<(), Error> {
    match vector::<K>() {
        8 => any_order_shaped::<K, C, I, 8>(stream, query),
        4 => any_order_shaped::<K, C, I, 4>(stream, query),
        2 => any_order_shaped::<K, C, I, 2>(stream, query),
        _ => any_order_shaped::<K, C, I, 1>(stream, query),
    }
}

fn any_order_shaped<K: Pod, C: Compare<K>, I: IndexOut, const VEC: usize>(
    stream: &Stream,
    query: Query<K, C, I>,
) -> Result<(), Error> {
    /// Blocks that share a multiprocessor.
    const BLOCKS_AT_ONCE: usize = 8;
    /// With fewer needles than this share of the elements, an index costs more than it saves.
    const ELEMENTS_PER_NEEDLE: usize = 64;

    let Query { haystack, needles, out, compare, upper } = query;
    if needles.is_empty() {
        return Ok(());
    }
    if haystack.is_empty() || needles.len() < haystack.len() / ELEMENTS_PER_NEEDLE || needles.len() < STEP {
        let kernel = SearchDirectly::new(haystack, needles, out, compare, upper);
        // SAFETY: a thread per needle; as many outputs.
        return unsafe { stream.launch(kernel, needles.len().div_ceil(THREADS as usize)) };
    }
    let top = top_level::<K>(haystack.len());
    let mut index = stream.uninit::<K>(index_len(haystack.len(), top))?;
    let index = index.view_mut(stream)?;
    if top > 0 {
        // SAFETY: a thread per key; the index has the levels' lengths.
        unsafe {
            stream.launch(BuildIndex::new(haystack, index), index.len().div_ceil(THREADS as usize))?;
        };
    }
    let blocks = needles.len().div_ceil(STEP).min(stream.device().limits().multiprocessors as usize * BLOCKS_AT_ONCE);
    let kernel = SearchIndexed::<K, C, I, VEC>::new(haystack, index.as_const(), needles, out, compare, upper, top);
    // SAFETY: the index is that of the haystack, which is not empty; as many outputs as needles.
    unsafe { stream.launch(kernel, blocks) }
}

fn sorted<K: Pod, C: Compare<K>, I: IndexOut>(stream: &Stream, query: Query<K, C, I>) -> Result<(), Error> {
    match sorted_items::<K>() {
        15 => sorted_shaped::<K, C, I, 15>(stream, query),
        9 => sorted_shaped::<K, C, I, 9>(stream, query),
        _ => sorted_shaped::<K, C, I, 5>(stream, query),
    }
}

fn sorted_shaped<K: Pod, C: Compare<K>, I: IndexOut, const ITEMS: usize>(
    stream: &Stream,
    query: Query<K, C, I>,
) -> Result<(), Error> {
    let Query { haystack, needles, out, compare, upper } = query;
    if needles.is_empty() {
        return Ok(());
    }
    let tile = THREADS as usize * ITEMS;
    let (a, b) = if upper == 0 { (needles, haystack) } else { (haystack, needles) };
    let Partition { splits, verdicts, .. } = &partition(stream, a, b, compare, tile)?;
    let kernel = SearchSorted::<K, C, I, ITEMS>::new(haystack, needles, out, compare, upper, *splits, *verdicts);
    // SAFETY: a block per tile, and the splits are those of this tile; as many outputs as needles. The scratch is freed in
    // stream order.
    unsafe { stream.launch(kernel, (a.len() + b.len()).div_ceil(tile)) }
}
