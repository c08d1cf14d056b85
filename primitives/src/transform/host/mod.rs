//! Host functions of transformations.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod in_memory;
pub(crate) mod laid_out;

use super::device::{TILE, TransformTiles, transform_tiles};
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::ColumnMut;
use crate::host::source::{self, AnySource, Number, Source};
use crate::input::SourceArg;
use crate::map::{Map, Map2, Map3, Map4};
use crate::{DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;
use laid_out::ReprOutput;

/// Writes the elements of a source to memory.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ; any launch error.
pub fn write<'a, 'b, T: Pod>(
    stream: &Stream,
    source: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let source = source.into_parts()?.lower();
    let _span = crate::span!(stream, "transform::write", source.len());
    let mut output = output.into();
    write_column(stream, &source, output.raw_view_mut(stream)?.into())
}

/// Writes the elements of a source to new memory of exactly their number. If only the device knows the number, it is the most that it
/// can be, and the elements after it are zeros.
///
/// ```
/// use gpu_primitives::operator::map;
/// use gpu_primitives::source::map;
/// use gpu_primitives::{Device, Error, transform};
///
/// let stream = Device::default()?.stream()?;
/// let numbers = stream.upload(&[1u32, 2, 3])?;
/// let halves = transform::collect(&stream, map(&numbers, map!(|x: u32| -> f32 { x as f32 / 2.0 })))?;
/// assert_eq!(halves.to_vec(&stream)?, [0.5, 1.0, 1.5]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`]; any launch error.
pub fn collect<'a, T: Pod>(stream: &Stream, source: impl Source<'a, T>) -> Result<DeviceVec<T>, Error> {
    let source = source.into_parts()?;
    let len = source.len();
    let mut output = if source.is_counted() { stream.zeroed(len)? } else { stream.uninit(len)? };
    write(stream, source, &mut output)?;
    Ok(output)
}

/// [`write`] for elements of 1 to 32 bytes. A slice of the source is not the output, or is the same slice.
pub(crate) fn write_column(stream: &Stream, source: &AnySource<'_>, output: ColumnMut) -> Result<(), Error> {
    expect_len("the output of a transformation", source.len(), output.len())?;
    write_arg(stream, source.open(stream)?.fused(), output)
}

/// Writes the elements of a source, of which there are at most as many as the output has. They have 1 to 32 bytes.
pub(crate) fn write_arg(stream: &Stream, source: SourceArg, output: ColumnMut) -> Result<(), Error> {
    let len = output.len();
    if len == 0 {
        return Ok(());
    }
    transform_tiles!(repr_size_or_bytes(output.size()) => H, {
        let output = ReprOutput::<H>::new(stream, output)?;
        let kernel = TransformTiles::<H>::new(source, output.view);
        // SAFETY: one block per tile; the output is as long as the source. A slice of the source is not the output, or is
        // the slice of `map_in_place`, whose element is read before it is written, by the same thread.
        unsafe { stream.launch(kernel, len.div_ceil(TILE))? };
        output.finish_first(stream, source.counted())
    })
}

/// Writes the indices of the first places, as many as the device says, of `len` at most. The others stay as they are.
pub(crate) fn write_indices(
    stream: &Stream,
    len: usize,
    count: Global<u64>,
    output: GlobalMut<u32>,
) -> Result<(), Error> {
    if len == 0 {
        return Ok(());
    }
    let kernel = TransformTiles::<u32>::new(source::first_indices(len, count), output);
    // SAFETY: one block per tile; the output has room for `len` indices.
    unsafe { stream.launch(kernel, len.div_ceil(TILE)) }
}

/// Computes `output[i] = function(a[i])`.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ; any launch error.
pub fn map<'a, 'b, A: Pod, F: Map<A>>(
    stream: &Stream,
    a: impl Source<'a, A>,
    output: impl Into<DeviceSliceMut<'b, F::Output>>,
    function: F,
) -> Result<(), Error>
where
    F::Output: Pod,
{
    let a = a.into_parts()?;
    let _span = crate::span!(stream, "transform::map", a.len());
    write(stream, source::map(a, function), output)
}

/// Computes `output[i] = function(a[i], b[i])`.
///
/// # Errors
/// Same as [`map`].
pub fn map2<'a, 'b, 'c, A: Pod, B: Pod, F: Map2<A, B>>(
    stream: &Stream,
    a: impl Source<'a, A>,
    b: impl Source<'b, B>,
    output: impl Into<DeviceSliceMut<'c, F::Output>>,
    function: F,
) -> Result<(), Error>
where
    F::Output: Pod,
{
    let a = a.into_parts()?;
    let _span = crate::span!(stream, "transform::map2", a.len());
    write(stream, source::map2(a, b.into_parts()?, function), output)
}

/// Computes `output[i] = function(a[i], b[i], c[i])`.
///
/// # Errors
/// Same as [`map`].
pub fn map3<'a, 'b, 'c, 'd, A: Pod, B: Pod, C: Pod, F: Map3<A, B, C>>(
    stream: &Stream,
    a: impl Source<'a, A>,
    b: impl Source<'b, B>,
    c: impl Source<'c, C>,
    output: impl Into<DeviceSliceMut<'d, F::Output>>,
    function: F,
) -> Result<(), Error>
where
    F::Output: Pod,
{
    let a = a.into_parts()?;
    let _span = crate::span!(stream, "transform::map3", a.len());
    write(stream, source::map3(a, b.into_parts()?, c.into_parts()?, function), output)
}

/// Computes `output[i] = function(a[i], b[i], c[i], d[i])`.
///
/// # Errors
/// Same as [`map`].
pub fn map4<'a, 'b, 'c, 'd, 'e, A: Pod, B: Pod, C: Pod, D: Pod, F: Map4<A, B, C, D>>(
    stream: &Stream,
    a: impl Source<'a, A>,
    b: impl Source<'b, B>,
    c: impl Source<'c, C>,
    d: impl Source<'d, D>,
    output: impl Into<DeviceSliceMut<'e, F::Output>>,
    function: F,
) -> Result<(), Error>
where
    F::Output: Pod,
{
    let a = a.into_parts()?;
    let _span = crate::span!(stream, "transform::map4", a.len());
    write(stream, source::map4(a, b.into_parts()?, c.into_parts()?, d.into_parts()?, function), output)
}

/// Replaces each element by the result of a function: [`map`] in place.
///
/// # Errors
/// Any launch error.
pub fn map_in_place<'a, T: Pod, F: Map<T, Output = T>>(
    stream: &Stream,
    data: impl Into<DeviceSliceMut<'a, T>>,
    function: F,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let mut data = data.into();
    let _span = crate::span!(stream, "transform::map_in_place", data.len());
    let output = data.raw_view_mut(stream)?;
    write_column(stream, &source::map(data.as_slice(), function).into_parts()?.lower(), output.into())
}

/// Writes numbers in sequence: `start`, `start + 1`, … They wrap.
///
/// # Errors
/// Any launch error.
pub fn sequence<'a, T: Number>(
    stream: &Stream,
    output: impl Into<DeviceSliceMut<'a, T>>,
    start: T,
) -> Result<(), Error> {
    let output = output.into();
    let _span = crate::span!(stream, "transform::sequence", output.len());
    let len = output.len();
    write(stream, source::counting(start, len), output)
}
