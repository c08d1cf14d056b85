//! Host functions of the segmented reduction.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::lookback;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{AnySlice, AnySliceMut, Column};
use crate::host::runtime::offsets::expect_offsets;
use crate::host::source::{AnySource, Source};
use crate::input::SourceArg;
use crate::monoid::HoleMonoid;
use crate::reduce::Monoid;
use crate::reduce::device::segments::{ReduceSegments, THREADS, reduce_segments};
use crate::segments::{Flagged, OffsetHeads, find_edges, row_offsets};
use crate::select::Offset;
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceSlice, DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Writes the combination of each segment, in order: `output[s]` is that of the elements
/// `offsets[s] .. offsets[s + 1]`. An empty segment gives the identity. Does not wait.
///
/// There is one offset more than segments; the offsets are `u32` or `u64`, do not decrease, and do not exceed the input.
/// Elements before the first offset and after the last one belong to no segment. Offsets that break these rules give
/// unspecified results, but nothing outside of the slices is read or written.
///
/// ```
/// use gpu_primitives::reduce::{self, Sum};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[3u32, 1, 4, 1, 5])?;
/// let offsets = stream.upload(&[0u32, 2, 2, 5])?; // three segments, the second one empty
/// let mut sums = stream.uninit::<u32>(3)?;
/// reduce::segmented(&stream, &input, &offsets, &mut sums, Sum)?;
/// assert_eq!(sums.to_vec(&stream)?, [4, 0, 10]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is no offset, or not one output per segment: nothing is written in these cases.
/// [`Error::OutOfMemory`]; any launch error.
pub fn segmented<'a, 'b, 'c, T: Pod, O: Offset, M: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    offsets: impl Into<DeviceSlice<'b, O>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    operation: M,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, offsets, output) = (input.into_parts()?.lower(), offsets.into(), output.into());
    let _span = crate::span!(stream, "reduce::segmented", input.len());
    reduce_segments(stream, &input, offsets.into(), output.into(), HoleMonoid::of::<T, M>(operation))
}

/// Writes the combination of each row of `row_len` elements, in order. Does not wait.
///
/// Rows lie one after the other, as in a matrix. There is one output per row, so that rows without elements give the identity. A part of
/// a matrix, whose rows are some elements apart, is a [`strided`](crate::source::strided) source.
///
/// ```
/// use gpu_primitives::reduce::{self, Sum};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let matrix = stream.upload(&[3u32, 1, 4, 1, 5, 9])?; // two rows of three
/// let mut sums = stream.uninit::<u32>(2)?;
/// reduce::rows(&stream, &matrix, 3, &mut sums, Sum)?;
/// assert_eq!(sums.to_vec(&stream)?, [8, 15]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the input does not consist of one whole row per output; [`Error::OutOfMemory`]: nothing is written in
/// these cases. Any launch error.
pub fn rows<'a, 'b, T: Pod, M: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    row_len: usize,
    output: impl Into<DeviceSliceMut<'b, T>>,
    operation: M,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "reduce::rows", input.len());
    reduce_rows(stream, &input, row_len, output.into(), HoleMonoid::of::<T, M>(operation))
}

fn reduce_rows(
    stream: &Stream,
    input: &AnySource<'_>,
    row_len: usize,
    output: AnySliceMut<'_>,
    operation: HoleMonoid<[u64; 4]>,
) -> Result<(), Error> {
    let rows = output.len();
    expect_len("an input of one whole row per output", rows.saturating_mul(row_len), input.len())?;
    if rows == 0 {
        return Ok(());
    }
    let offsets = row_offsets(stream, rows, row_len)?;
    reduce_segments(stream, input, offsets.as_slice(), output, operation)
}

fn reduce_segments(
    stream: &Stream,
    input: &AnySource<'_>,
    offsets: AnySlice<'_>,
    mut output: AnySliceMut<'_>,
    operation: HoleMonoid<[u64; 4]>,
) -> Result<(), Error> {
    expect_offsets(offsets.len())?;
    expect_len("the output of a segmented reduction", offsets.len() - 1, output.len())?;
    if output.is_empty() {
        return Ok(());
    }
    let (len, input) = (input.len(), input.open(stream)?);
    let (offsets, output) = (offsets.raw_view(stream)?, output.raw_view_mut(stream)?);
    reduce_segments!(repr_size_or_bytes(output.size()) => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::new(stream, output)?;
        let segments = Segments { len, offsets, output: output.view, operation: operation.held_in() };
        segments.run::<VEC, ROWS>(stream, input.fused())?;
        output.finish(stream)
    })
}

/// A segmented reduction, except for its input.
struct Segments<H: Pod> {
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    offsets: Column,
    output: GlobalMut<H>,
    operation: HoleMonoid<H>,
}

impl<H: Flagged> Segments<H> {
    fn run<const VEC: usize, const ROWS: usize>(self, stream: &Stream, input: SourceArg) -> Result<(), Error> {
        let tile_len = THREADS as usize * VEC * ROWS;
        // Without elements, the only tile writes the results of empty segments.
        let tiles = self.len.div_ceil(tile_len).max(1);
        let (offsets, edges) = find_edges(stream, self.offsets, tiles, tile_len)?;
        let scratch = stream.lookback_words(lookback::scratch_words::<H::Since>(tiles))?;
        let segments = OffsetHeads { offsets, edges: edges.raw_view(stream)? };
        let kernel = ReduceSegments::<H, _, _, VEC, ROWS>::new(input, segments, self.output, self.operation, scratch);
        // SAFETY: one block per tile; the edges belong to these tiles; there are at least two offsets, and one output less;
        // the scratch memory has the words that the tiles need.
        unsafe { stream.launch(kernel, tiles) }
    }
}
