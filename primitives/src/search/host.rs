//! Host functions of the searches.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::kernel::{BuildIndex, IndexOut, STEP, SearchDirectly, SearchIndexed, SearchSorted, THREADS};
use super::device::kernel::{index_len, search_directly, search_indexed, search_sorted, top_level};
use crate::compare::{Compare, HoleOrder};
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size};
use crate::host::runtime::column::{AnySlice, AnySliceMut, Column, ColumnMut, number};
use crate::host::runtime::loading::Upcoming;
use crate::host::source::{Elements, Source};
use crate::merge::partition;
use crate::transform::InMemory;
use crate::transform::laid_out::ReprInput;
use crate::{DeviceSlice, DeviceSliceMut, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Finds, for each needle, the number of elements less than it: its insertion position before all equal elements.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is not as long as the needles, or [`Error::TooLong`] if the haystack is too
/// long for the position type: nothing is written in these cases. [`Error::OutOfMemory`]; any launch error.
pub fn lower_bound<'a, 'b, 'c, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, I>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let (haystack, needles, out) = (haystack.into(), needles.into_parts()?.elements(), out.into());
    let _span = crate::span!(stream, "search::lower_bound", haystack.len());
    let needles = in_memory(stream, needles)?;
    let query = Query::new(stream, haystack.into(), needles.as_slice(), HoleOrder::of::<K, C>(compare))?;
    query.any_order(stream, &[query.answer(stream, Bound::Lower, out.into())?])
}

/// Finds, for each needle, the number of elements not greater than it: its insertion position after all equal elements.
///
/// # Errors
/// Same as [`lower_bound`].
pub fn upper_bound<'a, 'b, 'c, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, I>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let (haystack, needles, out) = (haystack.into(), needles.into_parts()?.elements(), out.into());
    let _span = crate::span!(stream, "search::upper_bound", haystack.len());
    let needles = in_memory(stream, needles)?;
    let query = Query::new(stream, haystack.into(), needles.as_slice(), HoleOrder::of::<K, C>(compare))?;
    query.any_order(stream, &[query.answer(stream, Bound::Upper, out.into())?])
}

/// Finds [`lower_bound`] and [`upper_bound`] for each needle: the elements between them are equal to it.
///
/// # Errors
/// Same as [`lower_bound`], for both outputs.
pub fn equal_range<'a, 'b, 'c, 'd, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Source<'b, K>,
    lower: impl Into<DeviceSliceMut<'c, I>>,
    upper: impl Into<DeviceSliceMut<'d, I>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let (haystack, needles) = (haystack.into(), needles.into_parts()?.elements());
    let (lower, upper) = (lower.into(), upper.into());
    let _span = crate::span!(stream, "search::equal_range", haystack.len());
    let needles = in_memory(stream, needles)?;
    let query = Query::new(stream, haystack.into(), needles.as_slice(), HoleOrder::of::<K, C>(compare))?;
    let lower = query.answer(stream, Bound::Lower, lower.into())?;
    let upper = query.answer(stream, Bound::Upper, upper.into())?;
    query.any_order(stream, &[lower, upper])
}

/// [`lower_bound`] for sorted needles: one pass over both sequences. Use it if there are not far fewer needles than
/// elements.
///
/// # Errors
/// Same as [`lower_bound`].
pub fn lower_bound_sorted<'a, 'b, 'c, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, I>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let (haystack, needles, out) = (haystack.into(), needles.into_parts()?.elements(), out.into());
    let _span = crate::span!(stream, "search::lower_bound_sorted", haystack.len());
    let needles = in_memory(stream, needles)?;
    let query = Query::new(stream, haystack.into(), needles.as_slice(), HoleOrder::of::<K, C>(compare))?;
    query.sorted(stream, query.answer(stream, Bound::Lower, out.into())?)
}

/// [`upper_bound`] for sorted needles: see [`lower_bound_sorted`].
///
/// # Errors
/// Same as [`lower_bound`].
pub fn upper_bound_sorted<'a, 'b, 'c, K: Pod, C: Compare<K>, I: IndexOut>(
    stream: &Stream,
    haystack: impl Into<DeviceSlice<'a, K>>,
    needles: impl Source<'b, K>,
    out: impl Into<DeviceSliceMut<'c, I>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let (haystack, needles, out) = (haystack.into(), needles.into_parts()?.elements(), out.into());
    let _span = crate::span!(stream, "search::upper_bound_sorted", haystack.len());
    let needles = in_memory(stream, needles)?;
    let query = Query::new(stream, haystack.into(), needles.as_slice(), HoleOrder::of::<K, C>(compare))?;
    query.sorted(stream, query.answer(stream, Bound::Upper, out.into())?)
}

fn in_memory<'a>(stream: &Stream, needles: Elements<'a>) -> Result<InMemory<'a>, Error> {
    InMemory::new(stream, needles.of_known_len("the needles of a search")?)
}

/// Whether elements equal to a needle count as before its position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
}

/// Which bound to find, and where to write it: checked.
#[derive(Clone, Copy)]
struct Answer {
    bound: Bound,
    out: ColumnMut,
}

impl Answer {
    /// Returns the flag for the kernels.
    fn upper(&self) -> u32 {
        u32::from(self.bound == Bound::Upper)
    }

    /// Returns where the positions are written. They have this type.
    fn out<I: IndexOut>(&self) -> GlobalMut<I> {
        self.out.typed().expect("positions are aligned")
    }
}

/// The needles, the haystack and the order.
#[derive(Clone, Copy)]
struct Query {
    haystack: Column,
    needles: Column,
    order: HoleOrder,
}

impl Query {
    fn new(stream: &Stream, haystack: AnySlice<'_>, needles: AnySlice<'_>, order: HoleOrder) -> Result<Self, Error> {
        Ok(Self { haystack: haystack.raw_view(stream)?, needles: needles.raw_view(stream)?, order })
    }

    /// Checks `out` and returns the answer that goes there.
    fn answer(&self, stream: &Stream, bound: Bound, mut out: AnySliceMut<'_>) -> Result<Answer, Error> {
        expect_len("the output of a search", self.needles.len(), out.len())?;
        let limit = number!(out.size() => I, I::LIMIT);
        if self.haystack.len() > limit {
            let what = "a search with positions of this type";
            return Err(Error::TooLong { what, len: self.haystack.len(), limit });
        }
        Ok(Answer { bound, out: out.raw_view_mut(stream)? })
    }

    /// Returns the bytes of the keys as kernels have them, and those of the positions.
    fn sizes(&self, answer: &Answer) -> (usize, usize) {
        (repr_size(self.haystack.size()), answer.out.size())
    }

    /// Searches for needles in any order: with an index, unless there are few needles for the haystack, or no kernel for such
    /// keys and positions.
    fn any_order(self, stream: &Stream, answers: &[Answer]) -> Result<(), Error> {
        /// With fewer needles than the number of elements divided by this, an index costs more than it saves.
        const ELEMENTS_PER_NEEDLE: usize = 64;

        let (elements, needles) = (self.haystack.len(), self.needles.len());
        if needles == 0 {
            return Ok(());
        }
        let sizes = self.sizes(&answers[0]);
        if elements > 0 && needles >= (elements / ELEMENTS_PER_NEEDLE).max(STEP) {
            search_indexed!(sizes => (H, I, VEC), {
                let (haystack, needles) = self.held::<H>(stream)?;
                let query = HeldQuery { haystack: haystack.view, needles: needles.view, order: self.order };
                return query.indexed::<I, VEC>(stream, answers);
            }, else ());
        }
        search_directly!(sizes => (H, I), {
            let (haystack, needles) = self.held::<H>(stream)?;
            let query = HeldQuery { haystack: haystack.view, needles: needles.view, order: self.order };
            query.directly::<I>(stream, answers)
        })
    }

    /// Searches for sorted needles.
    fn sorted(self, stream: &Stream, answer: Answer) -> Result<(), Error> {
        search_sorted!(self.sizes(&answer) => (H, I, ITEMS), {
            let (haystack, needles) = self.held::<H>(stream)?;
            let query = HeldQuery { haystack: haystack.view, needles: needles.view, order: self.order };
            query.sorted::<I, ITEMS>(stream, answer)
        }, else self.any_order(stream, &[answer]))
    }

    /// Returns the haystack and the needles in the type that holds them.
    fn held<H: RegisterRepr>(&self, stream: &Stream) -> Result<(ReprInput<H>, ReprInput<H>), Error> {
        Ok((ReprInput::new(stream, self.haystack)?, ReprInput::new(stream, self.needles)?))
    }
}

/// A query in the form in which kernels exist.
#[derive(Clone, Copy)]
struct HeldQuery<K> {
    haystack: Global<K>,
    needles: Global<K>,
    order: HoleOrder,
}

impl<K: RegisterRepr> HeldQuery<K> {
    fn directly<I: IndexOut>(self, stream: &Stream, answers: &[Answer]) -> Result<(), Error> {
        let Self { haystack, needles, order } = self;
        for answer in answers {
            let kernel = SearchDirectly::new(haystack, needles, answer.out::<I>(), order, answer.upper());
            // SAFETY: one thread per needle, and as many outputs.
            unsafe { stream.launch(kernel, needles.len().div_ceil(THREADS as usize))? };
        }
        Ok(())
    }

    /// Searches with an index. There are elements and needles.
    fn indexed<I: IndexOut, const VEC: usize>(self, stream: &Stream, answers: &[Answer]) -> Result<(), Error> {
        /// The number of blocks that share a multiprocessor.
        const BLOCKS_AT_ONCE: usize = 8;

        let Self { haystack, needles, order } = self;
        let top = top_level::<K>(haystack.len());
        let mut index = stream.uninit::<K>(index_len(haystack.len(), top))?;
        let index = index.raw_view_mut(stream)?;
        if top > 0 {
            // SAFETY: one thread per key of the index; the index is as long as its levels together.
            unsafe { stream.launch(BuildIndex::new(haystack, index), index.len().div_ceil(THREADS as usize))? };
        }
        let index = index.as_const();
        let at_once = stream.device().limits().multiprocessors as usize * BLOCKS_AT_ONCE;
        for answer in answers {
            let (out, upper) = (answer.out(), answer.upper());
            let kernel = SearchIndexed::<K, HoleOrder, I, VEC>::new(haystack, index, needles, out, order, upper, top);
            // SAFETY: the index was built from this haystack, which is not empty; there are as many outputs as needles.
            unsafe { stream.launch(kernel, needles.len().div_ceil(STEP).min(at_once))? };
        }
        Ok(())
    }

    fn sorted<I: IndexOut, const ITEMS: usize>(self, stream: &Stream, answer: Answer) -> Result<(), Error> {
        let Self { haystack, needles, order } = self;
        if needles.is_empty() {
            return Ok(());
        }
        let tile = THREADS as usize * ITEMS;
        let (a, b) = match answer.bound {
            Bound::Lower => (needles, haystack),
            Bound::Upper => (haystack, needles),
        };
        let next = Upcoming::kernel::<SearchSorted<K, HoleOrder, I, ITEMS>>;
        let splits = partition(stream, a.into(), b.into(), order, tile, next)?;
        let (splits, out, upper) = (splits.view(stream)?, answer.out(), answer.upper());
        let kernel = SearchSorted::<K, HoleOrder, I, ITEMS>::new(haystack, needles, out, order, upper, splits);
        // SAFETY: one block per tile, and the splits were computed for this tile size; there are as many outputs as
        // needles. The scratch memory is freed in stream order.
        unsafe { stream.launch(kernel, (a.len() + b.len()).div_ceil(tile)) }
    }
}
