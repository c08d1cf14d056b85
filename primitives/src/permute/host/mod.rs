//! Host functions that move elements.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod arrange;

use super::device::{
    ClaimPlaces, CopyRanges, GatherElements, Index, ReverseElements, ScatterElements, ScatterFirst, SwapEnds, TILE,
};
use super::device::{by_index, in_words};
use crate::host::runtime::column::{AnySlice, AnySliceMut, Column, ColumnMut, number};
use crate::host::source::{AnySource, Opened, Source};
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Global, GlobalMut, Stream, expect_len, transfer};
use bytemuck::Pod;

/// A number that says where an element is: `u32` or `u64`.
pub trait Position: Index {}

impl Position for u32 {}
impl Position for u64 {}

/// Returns the bytes of the largest word that divides the elements and their addresses.
fn word(from: Column, to: Column) -> usize {
    let bits = from.size() | from.address().addr() | to.address().addr();
    1 << bits.trailing_zeros().min(4)
}

/// Returns how many words an element has.
fn words<W>(elements: Column) -> u32 {
    (elements.size() / size_of::<W>()) as u32
}

/// Returns how often indices were out of range: no time yet.
fn none_outside(stream: &Stream) -> Result<DeviceValue<u64>, Error> {
    let mut count = DeviceValue::uninit(stream)?;
    transfer::fill(stream, count.as_mut_slice(), 0u64)?;
    Ok(count)
}

/// Computes `output[i] = input[indices[i]]`. A place whose index is out of range stays as it is. Returns how many there
/// were.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many indices as outputs; any launch error.
pub fn gather<'a, 'b, 'c, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'b, P>,
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "permute::gather", input.len());
    let mut outside = none_outside(stream)?;
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    run_gather(stream, input.into(), &indices.into_parts()?.lower(), output.into(), count)?;
    Ok(outside)
}

/// [`gather`] with indices that are in range.
///
/// # Safety
/// All indices are less than the length of the input.
///
/// # Errors
/// Same as [`gather`].
pub unsafe fn gather_unchecked<'a, 'b, 'c, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'b, P>,
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    run_gather(stream, input.into(), &indices.into_parts()?.lower(), output.into(), GlobalMut::empty())
}

fn run_gather(
    stream: &Stream,
    input: AnySlice<'_>,
    indices: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
    outside: GlobalMut<u64>,
) -> Result<(), Error> {
    expect_len("the output of a gather", indices.len(), output.len())?;
    let indices = indices.open(stream)?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.len() == 0 || to.size() == 0 {
        return Ok(());
    }
    by_index!((word(from, to.as_const()), indices.size()) => (W, P), {
        let to = to.words();
        let kernel = GatherElements::<W, P>::new(from.words(), indices.fused(), to, words::<W>(from), outside);
        // SAFETY: one block per tile; there is an index for each output. The output is borrowed mutably.
        unsafe { stream.launch(kernel, to.len().div_ceil(TILE)) }
    })
}

/// Computes `output[indices[i]] = input[i]`. Other places stay as they are. If several elements have the same index, the
/// last one wins. Elements whose index is out of range are left out. Returns how many there were.
///
/// It takes 8 bytes and a bit of memory per output, and two more passes over the indices if some are equal.
/// [`scatter_unchecked`] takes neither.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many indices as inputs; [`Error::OutOfMemory`]; any launch error.
pub fn scatter<'a, 'b, 'c, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'b, P>,
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, indices, output) = (input.into(), indices.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "permute::scatter", input.len());
    scatter_last(stream, input.into(), &indices, output.into())
}

fn scatter_last(
    stream: &Stream,
    input: AnySlice<'_>,
    indices: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the indices of a scatter", input.len(), indices.len())?;
    let (len, indices) = (indices.len(), indices.open(stream)?);
    let mut outside = none_outside(stream)?;
    if len == 0 || input.size() == 0 {
        return Ok(outside);
    }
    let places = output.len();
    let mut claimed = stream.zeroed::<u32>(places.div_ceil(32) + 1)?;
    let mut last = stream.uninit::<u64>(places)?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    let free = (claimed.raw_view_mut(stream)?, last.raw_view_mut(stream)?);
    by_index!((word(from, to.as_const()), indices.size()) => (W, P), {
        let kernel = ScatterFirst::<W, P>::new(
            from.words(), indices.fused(), to.words(), words::<W>(from), free.0, free.1, count,
        );
        // A few elements may go to one of many places, whose numbers are to be cleared.
        let blocks = len.div_ceil(TILE).max(places.div_ceil(16 * TILE));
        // SAFETY: at least one block per tile of elements; there is an index for each input. The bits are zero, one per place and a
        // word. The output is borrowed mutably.
        unsafe { stream.launch(kernel, blocks)? };
    });
    if places == 0 {
        return Ok(outside);
    }
    let repeated = claimed.slice(places.div_ceil(32)..)?.raw_view(stream)?;
    number!(indices.size() => P, {
        let kernel = ClaimPlaces::<P>::new(indices.fused(), last.raw_view_mut(stream)?, repeated);
        // SAFETY: one block per tile; the numbers are zero, one per place.
        unsafe { stream.launch(kernel, len.div_ceil(TILE))? };
    });
    run_scatter(stream, from, &indices, to, last.raw_view(stream)?, repeated)?;
    Ok(outside)
}

/// [`scatter`] with indices that are distinct and in range.
///
/// # Safety
/// All indices are less than the length of the output, and no two are equal.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many indices as inputs; any launch error.
pub unsafe fn scatter_unchecked<'a, 'b, 'c, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'b, P>,
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<(), Error> {
    let (input, indices, output) = (input.into(), indices.into_parts()?.lower(), output.into());
    scatter_distinct(stream, input.into(), &indices, output.into())
}

fn scatter_distinct(
    stream: &Stream,
    input: AnySlice<'_>,
    indices: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
) -> Result<(), Error> {
    expect_len("the indices of a scatter", input.len(), indices.len())?;
    let indices = indices.open(stream)?;
    run_scatter(
        stream,
        input.raw_view(stream)?,
        &indices,
        output.raw_view_mut(stream)?,
        Global::empty(),
        Global::empty(),
    )
}

fn run_scatter(
    stream: &Stream,
    from: Column,
    indices: &Opened,
    to: ColumnMut,
    last: Global<u64>,
    repeated: Global<u32>,
) -> Result<(), Error> {
    if from.len() == 0 || from.size() == 0 {
        return Ok(());
    }
    by_index!((word(from, to.as_const()), indices.size()) => (W, P), {
        let (words, from) = (words::<W>(from), from.words());
        let kernel = ScatterElements::<W, P>::new(from, indices.fused(), to.words(), words, last, repeated);
        // SAFETY: one block per tile; there is an index for each input; each place is claimed once, or the caller
        // guarantees it. The output is borrowed mutably.
        unsafe { stream.launch(kernel, from.len().div_ceil(TILE)) }
    })
}

/// Computes `output[i] = input[n - 1 - i]`.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ; any launch error.
pub fn reverse<'a, 'b, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "permute::reverse", input.len());
    run_reverse(stream, input.into(), output.into())
}

fn run_reverse(stream: &Stream, input: AnySlice<'_>, mut output: AnySliceMut<'_>) -> Result<(), Error> {
    expect_len("the output of a reversal", input.len(), output.len())?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.len() == 0 || to.size() == 0 {
        return Ok(());
    }
    in_words!(word(from, to.as_const()) => W, {
        let to = to.words();
        let kernel = ReverseElements::<W>::new(from.words(), to, words::<W>(from));
        // SAFETY: one block per tile; both have the same length. The output is borrowed mutably.
        unsafe { stream.launch(kernel, to.len().div_ceil(TILE)) }
    })
}

/// Reverses the elements where they are.
///
/// # Errors
/// Any launch error.
pub fn reverse_in_place<'a, T: Pod>(stream: &Stream, data: impl Into<DeviceSliceMut<'a, T>>) -> Result<(), Error> {
    let data = data.into().raw_view_mut(stream)?;
    let _span = crate::span!(stream, "permute::reverse_in_place", data.len());
    swap_ends(stream, data.into())
}

fn swap_ends(stream: &Stream, data: ColumnMut) -> Result<(), Error> {
    let half = data.len() / 2;
    if half == 0 || data.size() == 0 {
        return Ok(());
    }
    in_words!(word(data.as_const(), data.as_const()) => W, {
        let words = words::<W>(data.as_const());
        // SAFETY: one block per tile of the first half. The memory is borrowed mutably.
        unsafe { stream.launch(SwapEnds::<W>::new(data.words(), words), (half * words as usize).div_ceil(TILE)) }
    })
}

/// Copies many ranges in one launch: range `r` of the output, from `offsets[r]` to `offsets[r + 1]`, is copied from the
/// input, from `starts[r]` on. Elements out of range of the input are left out, and their places stay as they are, like
/// those in no range. Returns how many there were.
///
/// The ranges may have any lengths, also 0. If the offsets decrease, some elements are copied from some range. For ranges whose places
/// do not follow each other, see [`ranges::copy`](crate::ranges::copy).
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not one offset more than there are starts; any launch error.
pub fn batched_copy<'a, 'b, 'c, 'd, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    starts: impl Into<DeviceSlice<'b, u64>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    offsets: impl Into<DeviceSlice<'d, u64>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, starts, output, offsets) = (input.into(), starts.into(), output.into(), offsets.into());
    let _span = crate::span!(stream, "permute::batched_copy", input.len());
    copy_ranges(stream, input.into(), starts, output.into(), offsets)
}

fn copy_ranges(
    stream: &Stream,
    input: AnySlice<'_>,
    starts: DeviceSlice<'_, u64>,
    mut output: AnySliceMut<'_>,
    offsets: DeviceSlice<'_, u64>,
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the offsets of ranges to copy", starts.len() + 1, offsets.len())?;
    let mut outside = none_outside(stream)?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.len() == 0 || to.size() == 0 {
        return Ok(outside);
    }
    let (starts, offsets) = (starts.raw_view(stream)?, offsets.raw_view(stream)?);
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    in_words!(word(from, to.as_const()) => W, {
        let to = to.words();
        let none = Global::empty();
        let kernel = CopyRanges::<W>::new(from.words(), starts, to, offsets, none, words::<W>(from), count);
        // SAFETY: one block per tile; there is one offset more than starts. The output is borrowed mutably.
        unsafe { stream.launch(kernel, to.len().div_ceil(TILE))? };
    });
    Ok(outside)
}

/// Ranges that are copied to places of their own, of which there is at least one.
pub(crate) struct RangePlaces<'a> {
    /// Where the ranges begin in the input.
    pub starts: DeviceSlice<'a, u64>,
    /// The sums of the lengths before each range, and of all lengths.
    pub offsets: DeviceSlice<'a, u64>,
    /// Where the ranges begin in the output.
    pub places: DeviceSlice<'a, u64>,
}

/// Copies each range to its place. What is out of range is left out, and added to `left_out`.
///
/// # Safety
/// The ranges do not overlap in the output, and have no more elements than it has. The offsets begin with 0 and ascend.
pub(crate) unsafe fn copy_to_places(
    stream: &Stream,
    input: AnySlice<'_>,
    mut output: AnySliceMut<'_>,
    ranges: &RangePlaces<'_>,
    left_out: &mut DeviceValue<u64>,
) -> Result<(), Error> {
    /// The blocks of a multiprocessor: some waves, so that the last one costs little.
    const BLOCKS: usize = 32;
    let &RangePlaces { starts, offsets, places } = ranges;
    debug_assert!(starts.len() == places.len() && starts.len() + 1 == offsets.len() && !starts.is_empty());
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.len() == 0 || to.size() == 0 {
        return Ok(());
    }
    let (starts, offsets, places) = (starts.raw_view(stream)?, offsets.raw_view(stream)?, places.raw_view(stream)?);
    let left_out = left_out.as_mut_slice().raw_view_mut(stream)?;
    in_words!(word(from, to.as_const()) => W, {
        let to = to.words();
        let blocks = to.len().div_ceil(TILE).min(BLOCKS * stream.device().limits().multiprocessors as usize);
        let kernel = CopyRanges::<W>::new(from.words(), starts, to, offsets, places, words::<W>(from), left_out);
        // SAFETY: there is an offset more than starts, and a place for each. The rest is guaranteed by the caller.
        unsafe { stream.launch(kernel, blocks) }
    })
}
