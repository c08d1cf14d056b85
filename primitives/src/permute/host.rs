//! Host functions that move elements.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{ClaimPlaces, CopyRanges, GatherElements, Index, ReverseElements, ScatterElements, SwapEnds, TILE};
use crate::input::Fused;
use crate::source::Source;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Global, GlobalMut, Stream, expect_len, transfer};
use bytemuck::Pod;

/// A number that says where an element is: `u32` or `u64`.
pub trait Position: Index {}

impl Position for u32 {}
impl Position for u64 {}

/// Evaluates an expression with the largest word that divides the elements and their addresses.
macro_rules! in_words {
    ($element:ty, $addresses:expr, $word:ident => $body:expr) => {
        match $addresses | size_of::<$element>() {
            bits if bits % 16 == 0 => {
                type $word = [u64; 2];
                $body
            }
            bits if bits % 8 == 0 => {
                type $word = u64;
                $body
            }
            bits if bits % 4 == 0 => {
                type $word = u32;
                $body
            }
            bits if bits % 2 == 0 => {
                type $word = u16;
                $body
            }
            _ => {
                type $word = u8;
                $body
            }
        }
    };
}

/// Returns the words of elements, and how many words an element has.
///
/// # Safety
/// The word's size divides that of the elements and their address.
unsafe fn words<T: Pod, W: Pod>(elements: Global<T>) -> (Global<W>, u32) {
    let words = size_of::<T>() / size_of::<W>();
    // SAFETY: this is the same memory.
    (unsafe { Global::from_raw(elements.as_ptr().cast(), elements.len() * words) }, words as u32)
}

/// As [`words`], for memory that is written.
///
/// # Safety
/// Same as [`words`].
unsafe fn words_mut<T: Pod, W: Pod>(elements: GlobalMut<T>) -> GlobalMut<W> {
    // SAFETY: guaranteed by the caller.
    let (words, _) = unsafe { words::<T, W>(elements.as_const()) };
    // SAFETY: this is the same memory.
    unsafe { GlobalMut::from_raw(words.as_ptr().cast_mut(), words.len()) }
}

fn address<T: Pod>(view: Global<T>) -> usize {
    view.as_ptr().addr()
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
pub fn gather<'a, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'a, P>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let input: DeviceSlice<'a, T> = input.into();
    let _span = crate::span!(stream, "permute::gather", input.len());
    let mut outside = none_outside(stream)?;
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    run_gather(stream, input, indices, output.into(), count)?;
    Ok(outside)
}

/// [`gather`] with indices that are in range.
///
/// # Safety
/// All indices are less than the length of the input.
///
/// # Errors
/// Same as [`gather`].
pub unsafe fn gather_unchecked<'a, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'a, P>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error> {
    run_gather(stream, input.into(), indices, output.into(), GlobalMut::empty())
}

fn run_gather<'a, T: Pod, P: Position>(
    stream: &Stream,
    input: DeviceSlice<'a, T>,
    indices: impl Source<'a, P>,
    mut output: DeviceSliceMut<'a, T>,
    outside: GlobalMut<u64>,
) -> Result<(), Error> {
    let indices = indices.into_parts()?;
    expect_len("the output of a gather", indices.len(), output.len())?;
    let indices = indices.open(stream)?.fused();
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.is_empty() || size_of::<T>() == 0 {
        return Ok(());
    }
    in_words!(T, address(from) | address(to.as_const()), W => {
        // SAFETY: the word divides the elements and their addresses.
        let ((from, words), to) = unsafe { (words::<T, W>(from), words_mut::<T, W>(to)) };
        let kernel = GatherElements::<W, P>::new(from, indices, to, words, outside);
        // SAFETY: one block per tile; there is an index for each output. The output is borrowed mutably.
        unsafe { stream.launch(kernel, to.len().div_ceil(TILE)) }
    })
}

/// Computes `output[indices[i]] = input[i]`. Other places stay as they are. If several elements have the same index, the
/// last one wins. Elements whose index is out of range are left out. Returns how many there were.
///
/// It takes 8 bytes of memory per output, and two passes over the indices. [`scatter_unchecked`] takes neither.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many indices as inputs; [`Error::OutOfMemory`]; any launch error.
pub fn scatter<'a, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'a, P>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, indices, mut output) = (input.into(), indices.into_parts()?, output.into());
    let _span = crate::span!(stream, "permute::scatter", input.len());
    expect_len("the indices of a scatter", input.len(), indices.len())?;
    let (len, indices) = (indices.len(), indices.open(stream)?.fused());
    let mut outside = none_outside(stream)?;
    if len == 0 {
        return Ok(outside);
    }
    let mut last = stream.zeroed::<u64>(output.len())?;
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    let kernel = ClaimPlaces::<P>::new(indices, last.raw_view_mut(stream)?, count);
    // SAFETY: one block per tile; the numbers are zero, one per place.
    unsafe { stream.launch(kernel, len.div_ceil(TILE))? };
    if !output.is_empty() {
        let last = last.raw_view(stream)?;
        run_scatter::<T, P>(stream, input.raw_view(stream)?, indices, output.raw_view_mut(stream)?, last)?;
    }
    Ok(outside)
}

/// [`scatter`] with indices that are distinct and in range.
///
/// # Safety
/// All indices are less than the length of the output, and no two are equal.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many indices as inputs; any launch error.
pub unsafe fn scatter_unchecked<'a, T: Pod, P: Position>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    indices: impl Source<'a, P>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error> {
    let (input, indices, mut output) = (input.into(), indices.into_parts()?, output.into());
    expect_len("the indices of a scatter", input.len(), indices.len())?;
    let indices = indices.open(stream)?.fused();
    run_scatter::<T, P>(stream, input.raw_view(stream)?, indices, output.raw_view_mut(stream)?, Global::empty())
}

fn run_scatter<T: Pod, P: Position>(
    stream: &Stream,
    from: Global<T>,
    indices: Fused,
    to: GlobalMut<T>,
    last: Global<u64>,
) -> Result<(), Error> {
    if from.is_empty() || size_of::<T>() == 0 {
        return Ok(());
    }
    in_words!(T, address(from) | address(to.as_const()), W => {
        // SAFETY: the word divides the elements and their addresses.
        let ((from, words), to) = unsafe { (words::<T, W>(from), words_mut::<T, W>(to)) };
        let kernel = ScatterElements::<W, P>::new(from, indices, to, words, last);
        // SAFETY: one block per tile; there is an index for each input; each place is claimed once, or the caller
        // guarantees it. The output is borrowed mutably.
        unsafe { stream.launch(kernel, from.len().div_ceil(TILE)) }
    })
}

/// Computes `output[i] = input[n - 1 - i]`.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ; any launch error.
pub fn reverse<'a, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    let _span = crate::span!(stream, "permute::reverse", input.len());
    expect_len("the output of a reversal", input.len(), output.len())?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.is_empty() || size_of::<T>() == 0 {
        return Ok(());
    }
    in_words!(T, address(from) | address(to.as_const()), W => {
        // SAFETY: the word divides the elements and their addresses.
        let ((from, words), to) = unsafe { (words::<T, W>(from), words_mut::<T, W>(to)) };
        // SAFETY: one block per tile; both have the same length. The output is borrowed mutably.
        unsafe { stream.launch(ReverseElements::<W>::new(from, to, words), to.len().div_ceil(TILE)) }
    })
}

/// Reverses the elements where they are.
///
/// # Errors
/// Any launch error.
pub fn reverse_in_place<'a, T: Pod>(stream: &Stream, data: impl Into<DeviceSliceMut<'a, T>>) -> Result<(), Error> {
    let data = data.into().raw_view_mut(stream)?;
    let _span = crate::span!(stream, "permute::reverse_in_place", data.len());
    let half = data.len() / 2;
    if half == 0 || size_of::<T>() == 0 {
        return Ok(());
    }
    in_words!(T, address(data.as_const()), W => {
        // SAFETY: the word divides the elements and their addresses.
        let (words, data) = unsafe { (words::<T, W>(data.as_const()).1, words_mut::<T, W>(data)) };
        // SAFETY: one block per tile of the first half. The memory is borrowed mutably.
        unsafe { stream.launch(SwapEnds::<W>::new(data, words), (half * words as usize).div_ceil(TILE)) }
    })
}

/// Copies many ranges in one launch: range `r` of the output, from `offsets[r]` to `offsets[r + 1]`, is copied from the
/// input, from `starts[r]` on. Elements out of range of the input are left out, and their places stay as they are, like
/// those in no range. Returns how many there were.
///
/// The ranges may have any lengths, also 0. If the offsets decrease, some elements are copied from some range.
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not one offset more than there are starts; any launch error.
pub fn batched_copy<'a, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    starts: impl Into<DeviceSlice<'a, u64>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    offsets: impl Into<DeviceSlice<'a, u64>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, starts, mut output, offsets) = (input.into(), starts.into(), output.into(), offsets.into());
    let _span = crate::span!(stream, "permute::batched_copy", input.len());
    expect_len("the offsets of ranges to copy", starts.len() + 1, offsets.len())?;
    let mut outside = none_outside(stream)?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    if to.is_empty() || size_of::<T>() == 0 {
        return Ok(outside);
    }
    let (starts, offsets) = (starts.raw_view(stream)?, offsets.raw_view(stream)?);
    let count = outside.as_mut_slice().raw_view_mut(stream)?;
    in_words!(T, address(from) | address(to.as_const()), W => {
        // SAFETY: the word divides the elements and their addresses.
        let ((from, words), to) = unsafe { (words::<T, W>(from), words_mut::<T, W>(to)) };
        let kernel = CopyRanges::<W>::new(from, starts, to, offsets, words, count);
        // SAFETY: one block per tile; there is one offset more than starts. The output is borrowed mutably.
        unsafe { stream.launch(kernel, to.len().div_ceil(TILE))? };
    });
    Ok(outside)
}
