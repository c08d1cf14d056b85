//! Host functions of scans that restart: by key, and of segments.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::block::lookback;
use crate::equality::{Equality, HoleEquality};
use crate::host::repr::{expect_both, expect_repr, narrowed, repr_size_or_bytes, widened};
use crate::host::runtime::column::{AnySlice, AnySliceMut};
use crate::host::runtime::offsets::expect_offsets;
use crate::host::source::{AnySource, Opened, Source};
use crate::monoid::{Combine as _, HoleMonoid};
use crate::scan::Monoid;
use crate::scan::device::segments::{ScanSegments, THREADS, scan_by_key, scan_segments};
use crate::segments::{Flagged, HeadFlags, Heads, KeyHeads, OffsetHeads, find_edges, flag_heads, row_offsets};
use crate::select::Offset;
use crate::transform::laid_out::ReprOutput;
use crate::{DeviceSlice, DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Scans each run of equal keys on its own: `output[i] = init ∘ values[first] ∘ … ∘ values[i - 1]`, where `first` is the first
/// of the neighbours of `i` whose keys equal that of `i`.
///
/// Each key is compared with the one before it. Equal keys that are not neighbours belong to different runs.
///
/// ```
/// use gpu_primitives::equality::Same;
/// use gpu_primitives::scan::{self, Sum};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let keys = stream.upload(&[7u32, 7, 7, 2, 7])?;
/// let values = stream.upload(&[3u32, 1, 4, 1, 5])?;
/// let mut output = stream.uninit::<u32>(5)?;
/// scan::exclusive_by_key(&stream, (&keys, &values), &mut output, Same, Sum, 100)?;
/// assert_eq!(output.to_vec(&stream)?, [100, 103, 104, 100, 100]);
/// scan::inclusive_by_key(&stream, (&keys, &values), &mut output, Same, Sum)?;
/// assert_eq!(output.to_vec(&stream)?, [3, 4, 8, 1, 5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if keys, values and output differ in length: nothing is written in this case.
/// [`Error::OutOfMemory`]; any launch error.
pub fn exclusive_by_key<'a, 'b, 'c, K: Pod, T: Pod, E: Equality<K>, Op: Monoid<T>>(
    stream: &Stream,
    (keys, values): (impl Source<'a, K>, impl Source<'b, T>),
    output: impl Into<DeviceSliceMut<'c, T>>,
    equality: E,
    op: Op,
    init: T,
) -> Result<(), Error> {
    const { expect_both::<K, T>() };
    let keys = keys.into_parts()?.lower();
    let _span = crate::span!(stream, "scan::exclusive_by_key", keys.len());
    let (values, output, op) = (values.into_parts()?.lower(), output.into(), HoleMonoid::of::<T, Op>(op));
    let keys = (keys, HoleEquality::of::<K, E>(equality));
    by_key(stream, keys, values, output.into(), op, widened(init), false)
}

/// Scans each run of equal keys on its own: `output[i] = values[first] ∘ … ∘ values[i]`. See [`exclusive_by_key`].
///
/// # Errors
/// Same as [`exclusive_by_key`].
pub fn inclusive_by_key<'a, 'b, 'c, K: Pod, T: Pod, E: Equality<K>, Op: Monoid<T>>(
    stream: &Stream,
    (keys, values): (impl Source<'a, K>, impl Source<'b, T>),
    output: impl Into<DeviceSliceMut<'c, T>>,
    equality: E,
    op: Op,
) -> Result<(), Error> {
    const { expect_both::<K, T>() };
    let keys = keys.into_parts()?.lower();
    let _span = crate::span!(stream, "scan::inclusive_by_key", keys.len());
    let (values, output, op) = (values.into_parts()?.lower(), output.into(), HoleMonoid::of::<T, Op>(op));
    let keys = (keys, HoleEquality::of::<K, E>(equality));
    by_key(stream, keys, values, output.into(), op, op.identity(), true)
}

/// Scans each segment on its own: `output[i] = input[first] ∘ … ∘ input[i - 1]`, where `first` is the first element of the
/// segment of `i`. The first element gives the identity.
///
/// Segment `s` is `offsets[s] .. offsets[s + 1]`: there is one offset more than segments. The offsets are `u32` or `u64`, do
/// not decrease, and do not exceed the input. Elements before the first offset and after the last one are scanned like two more
/// segments. Offsets that break these rules give unspecified results, but nothing outside of the slices is read or written.
///
/// ```
/// use gpu_primitives::scan::{self, Sum};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[3u32, 1, 4, 1, 5])?;
/// let offsets = stream.upload(&[0u32, 3, 3, 5])?; // three segments, the second one empty
/// let mut output = stream.uninit::<u32>(5)?;
/// scan::segmented_exclusive(&stream, &input, &offsets, &mut output, Sum)?;
/// assert_eq!(output.to_vec(&stream)?, [0, 3, 4, 0, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is no offset, or input and output differ in length: nothing is written in these cases.
/// [`Error::OutOfMemory`]; any launch error.
pub fn segmented_exclusive<'a, 'b, 'c, T: Pod, O: Offset, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    offsets: impl Into<DeviceSlice<'b, O>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "scan::segmented_exclusive", input.len());
    let (offsets, output) = (offsets.into(), output.into());
    segmented(stream, &input, offsets.into(), output.into(), HoleMonoid::of::<T, Op>(op), false)
}

/// Scans each segment on its own: `output[i] = input[first] ∘ … ∘ input[i]`. See [`segmented_exclusive`].
///
/// # Errors
/// Same as [`segmented_exclusive`].
pub fn segmented_inclusive<'a, 'b, 'c, T: Pod, O: Offset, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    offsets: impl Into<DeviceSlice<'b, O>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.lower();
    let _span = crate::span!(stream, "scan::segmented_inclusive", input.len());
    let (offsets, output) = (offsets.into(), output.into());
    segmented(stream, &input, offsets.into(), output.into(), HoleMonoid::of::<T, Op>(op), true)
}

/// Scans each row of `row_len` elements on its own: `output[i] = input[first] ∘ … ∘ input[i - 1]`, where `first` is the first
/// element of the row of `i`. The first element gives the identity. Does not wait.
///
/// Rows lie one after the other, as in a matrix, and so does the output. A part of a matrix, whose rows are some elements apart, is a
/// [`strided`](crate::source::strided) source.
///
/// ```
/// use gpu_primitives::scan::{self, Sum};
/// use gpu_primitives::source::strided;
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let matrix = stream.upload(&[3u32, 1, 4, 1, 5, 9])?; // two rows of three
/// let mut output = stream.uninit::<u32>(6)?;
/// scan::row_exclusive(&stream, &matrix, 3, &mut output, Sum)?;
/// assert_eq!(output.to_vec(&stream)?, [0, 3, 4, 0, 1, 6]);
///
/// let mut output = stream.uninit::<u32>(4)?;
/// let columns = strided(matrix.slice(1..)?, 2, 3); // the last two columns
/// scan::row_inclusive(&stream, columns, 2, &mut output, Sum)?;
/// assert_eq!(output.to_vec(&stream)?, [1, 5, 5, 14]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if input and output differ in length, or the input does not consist of whole rows;
/// [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn row_exclusive<'a, 'b, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    row_len: usize,
    output: impl Into<DeviceSliceMut<'b, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "scan::row_exclusive", input.len());
    rows(stream, &input, row_len, output.into(), HoleMonoid::of::<T, Op>(op), false)
}

/// Scans each row of `row_len` elements on its own: `output[i] = input[first] ∘ … ∘ input[i]`. See [`row_exclusive`].
///
/// # Errors
/// Same as [`row_exclusive`].
pub fn row_inclusive<'a, 'b, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    row_len: usize,
    output: impl Into<DeviceSliceMut<'b, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "scan::row_inclusive", input.len());
    rows(stream, &input, row_len, output.into(), HoleMonoid::of::<T, Op>(op), true)
}

fn rows(
    stream: &Stream,
    input: &AnySource<'_>,
    row_len: usize,
    output: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
    inclusive: bool,
) -> Result<(), Error> {
    let len = input.len();
    let rows = len.checked_div(row_len).unwrap_or(0);
    expect_len("an input of whole rows", rows * row_len, len)?;
    expect_len("the output of a scan of rows", len, output.len())?;
    if len == 0 {
        return Ok(());
    }
    let offsets = row_offsets(stream, rows, row_len)?;
    segmented(stream, input, offsets.as_slice(), output, op, inclusive)
}

fn by_key(
    stream: &Stream,
    (keys, equality): (AnySource<'_>, HoleEquality),
    values: AnySource<'_>,
    mut output: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
    init: [u64; 4],
    inclusive: bool,
) -> Result<(), Error> {
    expect_len("the values of a scan by key", keys.len(), values.len())?;
    expect_len("the output of a scan by key", keys.len(), output.len())?;
    let len = values.len();
    let (keys, values) = keys.in_step(values)?;
    let (keys, values) = (keys.open(stream)?, values.open(stream)?);
    let output = output.raw_view_mut(stream)?;
    let held = repr_size_or_bytes(output.size());
    scan_by_key!((keys.size(), held) => (K, H, VEC, ROWS), {
        if let Ok(keys) = keys.held::<K>() {
            let output = ReprOutput::<H>::new(stream, output)?;
            let scan = Scan { len, output: output.view, op: op.held_in(), init: narrowed(init), inclusive };
            scan.run::<_, VEC, ROWS>(stream, &values, KeyHeads { keys, equality })?;
            return output.finish_first(stream, values.count());
        }
    }, else ());
    let flags = flag_heads(stream, &keys, len, equality)?;
    scan_segments!(held => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::new(stream, output)?;
        let scan = Scan { len, output: output.view, op: op.held_in(), init: narrowed(init), inclusive };
        scan.run::<_, VEC, ROWS>(stream, &values, HeadFlags { flags: flags.raw_view(stream)? })?;
        output.finish_first(stream, values.count())
    })
}

fn segmented(
    stream: &Stream,
    input: &AnySource<'_>,
    offsets: AnySlice<'_>,
    mut output: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
    inclusive: bool,
) -> Result<(), Error> {
    expect_offsets(offsets.len())?;
    expect_len("the output of a segmented scan", input.len(), output.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    let (offsets, output) = (offsets.raw_view(stream)?, output.raw_view_mut(stream)?);
    scan_segments!(repr_size_or_bytes(output.size()) => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::new(stream, output)?;
        let op = op.held_in::<H>();
        let scan = Scan { len, output: output.view, op, init: op.identity(), inclusive };
        let tile_len = THREADS as usize * VEC * ROWS;
        let (offsets, edges) = find_edges(stream, offsets, len.div_ceil(tile_len), tile_len)?;
        scan.run::<_, VEC, ROWS>(stream, &input, OffsetHeads { offsets, edges: edges.raw_view(stream)? })?;
        output.finish_first(stream, input.count())
    })
}

/// A scan that restarts, except for its input and the heads.
struct Scan<H> {
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    output: GlobalMut<H>,
    op: HoleMonoid<H>,
    init: H,
    inclusive: bool,
}

impl<H: Flagged> Scan<H> {
    fn run<S: Heads, const VEC: usize, const ROWS: usize>(
        self,
        stream: &Stream,
        input: &Opened,
        heads: S,
    ) -> Result<(), Error> {
        let tiles = self.len.div_ceil(THREADS as usize * VEC * ROWS);
        if tiles == 0 {
            return Ok(());
        }
        let scratch = stream.lookback_words(lookback::scratch_words::<H::Since>(tiles))?;
        let Self { output, op, init, inclusive, .. } = self;
        let kernel = ScanSegments::<H, _, S, _, VEC, ROWS>::new(
            input.fused(),
            heads,
            output,
            op,
            init,
            u32::from(inclusive),
            scratch,
        );
        // SAFETY: one block per tile; the output is no shorter than the input; the heads are those of these elements and
        // tiles; the scratch memory has the words that the tiles need.
        unsafe { stream.launch(kernel, tiles) }
    }
}
