//! Moves whose places need no indices: rotations, shifts, and columns that are interleaved.

#![deny(unsafe_op_in_unsafe_fn)]

use super::scatter_distinct;
use crate::host::runtime::column::{AnySlice, AnySliceMut};
use crate::host::source::{Source, counting, map};
use crate::operator::map;
use crate::{DeviceSlice, DeviceSliceMut, Error, Stream, expect_len, transfer};
use bytemuck::Pod;

/// Rotates to the left: `output[i] = input[(i + by) % n]`. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, permute};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[1u32, 2, 3, 4, 5])?;
/// let mut output = stream.uninit::<u32>(5)?;
/// permute::rotate(&stream, &input, &mut output, 2)?;
/// assert_eq!(output.to_vec(&stream)?, [3, 4, 5, 1, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ: nothing is written in this case. Any launch error.
pub fn rotate<'a, 'b, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    by: usize,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "permute::rotate", input.len());
    run_rotate(stream, input.into(), output.into(), by)
}

fn run_rotate(stream: &Stream, input: AnySlice<'_>, mut output: AnySliceMut<'_>, by: usize) -> Result<(), Error> {
    expect_len("the output of a rotation", input.len(), output.len())?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    let len = from.len();
    if len == 0 {
        return Ok(());
    }
    let first = by % len;
    transfer::copy_columns(stream, from.slice(first, len - first), to.slice(0, len - first))?;
    transfer::copy_columns(stream, from.slice(0, first), to.slice(len - first, first))
}

/// Shifts to the right, or by a negative number to the left: `output[i] = input[i - by]`. Places without such an element get `fill`.
/// Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, permute};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[1u32, 2, 3, 4])?;
/// let mut output = stream.uninit::<u32>(4)?;
/// permute::shift(&stream, &input, &mut output, 1, 0)?;
/// assert_eq!(output.to_vec(&stream)?, [0, 1, 2, 3]);
/// permute::shift(&stream, &input, &mut output, -2, 9)?;
/// assert_eq!(output.to_vec(&stream)?, [3, 4, 9, 9]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ: nothing is written in this case. Any launch error.
pub fn shift<'a, 'b, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    by: isize,
    fill: T,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "permute::shift", input.len());
    run_shift(stream, input.into(), output.into(), by, bytemuck::bytes_of(&fill))
}

fn run_shift(
    stream: &Stream,
    input: AnySlice<'_>,
    mut output: AnySliceMut<'_>,
    by: isize,
    fill: &[u8],
) -> Result<(), Error> {
    expect_len("the output of a shift", input.len(), output.len())?;
    let (from, to) = (input.raw_view(stream)?, output.raw_view_mut(stream)?);
    let len = from.len();
    let filled = by.unsigned_abs().min(len);
    let kept = len - filled;
    // Where the kept elements are, where they go, and where the filled places begin.
    let (source, target, rest) = if by >= 0 { (0, filled, 0) } else { (filled, 0, kept) };
    transfer::copy_columns(stream, from.slice(source, kept), to.slice(target, kept))?;
    transfer::fill_column(stream, to.slice(rest, filled), fill)
}

/// Interleaves columns of equal lengths: `output[i * k + c] = columns[c][i]` for `k` columns. Does not wait.
///
/// One launch per column.
///
/// ```
/// use gpu_primitives::{Device, Error, permute};
///
/// let stream = Device::default()?.stream()?;
/// let (red, green) = (stream.upload(&[1u8, 2, 3])?, stream.upload(&[10u8, 20, 30])?);
/// let mut pixels = stream.uninit::<u8>(6)?;
/// permute::interleave(&stream, &[red.as_slice(), green.as_slice()], &mut pixels)?;
/// assert_eq!(pixels.to_vec(&stream)?, [1, 10, 2, 20, 3, 30]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if the columns differ in length, or the output has not as many elements as all of them together: nothing
/// is written in these cases. Any launch error.
pub fn interleave<'a, T: Pod>(
    stream: &Stream,
    columns: &[DeviceSlice<'_, T>],
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<(), Error> {
    let output = output.into();
    let _span = crate::span!(stream, "permute::interleave", output.len());
    run_interleave(stream, &AnySlice::all(columns), output.into())
}

fn run_interleave(stream: &Stream, columns: &[AnySlice<'_>], mut output: AnySliceMut<'_>) -> Result<(), Error> {
    let len = columns.first().map_or(0, AnySlice::len);
    for column in columns {
        expect_len("a column to interleave", len, column.len())?;
    }
    expect_len("the output of interleaved columns", len.saturating_mul(columns.len()), output.len())?;
    // Memory of another device is an error before anything is written.
    for column in columns {
        column.raw_view(stream)?;
    }
    let step = columns.len() as u64;
    for (number, &column) in columns.iter().enumerate() {
        let places = map!(step: u64 = step, first: u64 = number as u64; |i: u64| -> u64 { i * step + first });
        let places = map(counting(0u64, len), places).into_parts()?.lower();
        // The places are distinct, and less than the product that is the length of the output.
        scatter_distinct(stream, column, &places, output.reborrow())?;
    }
    Ok(())
}
