//! Host functions of the scan.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod by_key;

use super::device::kernel::{ScanTiles, scan_tiles};
use super::{Monoid, Sum};
use crate::block::lookback;
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, narrowed, repr_size_or_bytes, widened};
use crate::host::runtime::column::AnySliceMut;
#[cfg(feature = "testing")]
use crate::host::runtime::column::{Column, ColumnMut};
use crate::host::source::{AnySource, Source, of_view};
use crate::input::Input;
use crate::monoid::{Combine, HoleMonoid};
use crate::transform::laid_out::ReprOutput;
#[cfg(feature = "testing")]
use crate::{DeviceSlice, sized};
use crate::{DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Computes `output[i] = input[0] + … + input[i - 1]`, with `output[0] = 0`. Integers wrap.
///
/// # Errors
/// [`Error::LengthMismatch`] if the slices differ in length; any launch error.
pub fn exclusive_sum<'a, 'b, T>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<(), Error>
where
    T: Pod,
    Sum: Monoid<T>,
{
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "scan::exclusive_sum", input.len());
    exclusive(stream, input, output, Sum, Monoid::identity(&Sum))
}

/// Computes `output[i] = input[0] + … + input[i]`. Integers wrap.
///
/// # Errors
/// Same as [`exclusive_sum`].
pub fn inclusive_sum<'a, 'b, T>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<(), Error>
where
    T: Pod,
    Sum: Monoid<T>,
{
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "scan::inclusive_sum", input.len());
    inclusive(stream, input, output, Sum)
}

/// Computes `output[i] = init ∘ input[0] ∘ … ∘ input[i - 1]`.
///
/// # Errors
/// Same as [`exclusive_sum`].
pub fn exclusive<'a, 'b, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    op: Op,
    init: T,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "scan::exclusive", input.len());
    apart(stream, &input, output.into(), HoleMonoid::of::<T, Op>(op), widened(init), false)
}

/// Computes `output[i] = input[0] ∘ … ∘ input[i]`.
///
/// # Errors
/// Same as [`exclusive`].
pub fn inclusive<'a, 'b, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    inclusive_any(stream, &input, output.into(), HoleMonoid::of::<T, Op>(op))
}

/// Runs [`exclusive`] in place.
///
/// # Errors
/// Same as [`exclusive`].
pub fn exclusive_in_place<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
    init: T,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let data: DeviceSliceMut<'_, T> = data.into();
    let _span = crate::span!(stream, "scan::exclusive_in_place", data.len());
    in_place(stream, data.into(), HoleMonoid::of::<T, Op>(op), widened(init), false)
}

/// Runs [`inclusive`] in place.
///
/// # Errors
/// Same as [`exclusive`].
pub fn inclusive_in_place<'a, T: Pod, Op: Monoid<T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    op: Op,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let data: DeviceSliceMut<'_, T> = data.into();
    let _span = crate::span!(stream, "scan::inclusive_in_place", data.len());
    let op = HoleMonoid::of::<T, Op>(op);
    in_place(stream, data.into(), op, op.identity(), true)
}

/// [`inclusive`] of elements of 1 to 32 bytes.
pub(crate) fn inclusive_any(
    stream: &Stream,
    input: &AnySource<'_>,
    output: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
) -> Result<(), Error> {
    let _span = crate::span!(stream, "scan::inclusive", input.len());
    apart(stream, input, output, op, op.identity(), true)
}

/// Scans a source into memory of its own.
fn apart(
    stream: &Stream,
    input: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
    init: [u64; 4],
    inclusive: bool,
) -> Result<(), Error> {
    expect_len("the output of a scan", input.len(), output.len())?;
    let (len, input, output) = (input.len(), input.open(stream)?, output.raw_view_mut(stream)?);
    scan_tiles!(repr_size_or_bytes(output.size()) => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::new(stream, output)?;
        let scan = Scan { len, output: output.view, op: op.held_in(), init: narrowed(init), inclusive };
        scan.run::<_, 256, VEC, ROWS>(stream, input.fused())?;
        output.finish_first(stream, input.count())
    })
}

/// Scans elements where they are. Each tile is read before it is written, by the same block.
fn in_place(
    stream: &Stream,
    mut data: AnySliceMut<'_>,
    op: HoleMonoid<[u64; 4]>,
    init: [u64; 4],
    inclusive: bool,
) -> Result<(), Error> {
    let data = data.raw_view_mut(stream)?;
    scan_tiles!(repr_size_or_bytes(data.size()) => (H, VEC, ROWS), {
        let output = ReprOutput::<H>::with_contents(stream, data)?;
        let scan = Scan { len: data.len(), output: output.view, op: op.held_in(), init: narrowed(init), inclusive };
        scan.run::<_, 256, VEC, ROWS>(stream, of_view(output.view.as_const()))?;
        output.finish(stream)
    })
}

/// A scan, except for its input.
struct Scan<H> {
    /// The number of elements; the most that it can be, if only the device knows it.
    len: usize,
    output: GlobalMut<H>,
    op: HoleMonoid<H>,
    init: H,
    inclusive: bool,
}

impl<H: RegisterRepr> Scan<H> {
    fn run<I: Input<H>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        stream: &Stream,
        input: I,
    ) -> Result<(), Error> {
        let tiles = self.len.div_ceil(THREADS as usize * VEC * ROWS);
        if tiles == 0 {
            return Ok(());
        }
        let scratch = stream.lookback_words(lookback::scratch_words::<H>(tiles))?;
        let Self { output, op, init, inclusive, .. } = self;
        let kernel =
            ScanTiles::<H, I, _, THREADS, VEC, ROWS>::new(input, output, op, init, u32::from(inclusive), scratch);
        // SAFETY: one block per tile; the output is no shorter than the input; the scratch memory has the words that the
        // tiles need.
        unsafe { stream.launch(kernel, tiles) }
    }
}

/// Runs [`exclusive`] or [`inclusive`] with a given tile shape.
///
/// # Errors
/// Those of [`inclusive`].
#[cfg(feature = "testing")]
pub fn scan_shaped<T: Pod, Op: Monoid<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    mut output: DeviceSliceMut<'_, T>,
    op: Op,
    inclusive: bool,
) -> Result<(), Error> {
    expect_len("the output of a scan", input.len(), output.len())?;
    let (input, output) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    let (from, to, op) = (Column::from(input), ColumnMut::from(output), HoleMonoid::of::<T, Op>(op));
    sized!(size_of::<T>() => H in u32 | u64, {
        let (from, output) = (from.typed::<H>().expect("aligned"), to.typed().expect("aligned"));
        let op = op.held_in::<H>();
        let scan = Scan { len: input.len(), output, op, init: op.identity(), inclusive };
        scan.run::<_, THREADS, VEC, ROWS>(stream, from)
    }, else unreachable!("tests scan elements of 4 and 8 bytes"))
}
