//! Host functions of histograms.

#![deny(unsafe_op_in_unsafe_fn)]

use super::bins::{Bins, ByteBins, HoleBins, RangeBins};
use super::kernel::{AT_ONCE, CountBins, THREADS};
use super::sample::NONE;
use super::{Bucket, Count, Sample};
use crate::compare::HoleOrder;
use crate::hole::Held;
use crate::input::Input;
use crate::runtime::held::{HeldIn, held};
use crate::source::{Opened, Source};
use crate::transfer;
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Counts the elements in bins of equal width: the range from `lower` up to `upper` is divided into `counts.len()` bins. Elements
/// outside of it, and NaN, are not counted. If `lower` is not less than `upper`, nothing is.
///
/// Bin `b` of `n` has the integers from `lower + b * (upper - lower) / n`, rounded up, up to the beginning of the next bin. For
/// floats, the bin is `(x - lower) * (n / (upper - lower))` without its fraction, computed in their type, but no more than the
/// last bin; the width of the range must be finite.
///
/// # Errors
/// [`Error::TooMany`] for 2^32 - 1 bins or more: nothing is written in this case. Any launch error.
pub fn even<'a, T: Sample, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'a, C>>,
    lower: T,
    upper: T,
) -> Result<(), Error> {
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "histogram::even", input.len());
    let counts = counts.into();
    let bins = number_of_bins(counts.len())?;
    by(stream, input, counts, T::even(lower, upper, bins))
}

/// Counts the elements between levels: count `b` is that of the elements from `levels[b]` up to `levels[b + 1]`, which is
/// excluded. There is one level more than counts. Elements outside of all levels, and NaN, are not counted.
///
/// The levels do not decrease; otherwise some elements are counted in other bins or not at all.
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not one level more than counts, and [`Error::TooMany`] for 2^32 - 1 bins or more: nothing
/// is written in these cases. Any launch error.
pub fn ranges<'a, T: Sample, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'a, C>>,
    levels: impl Into<DeviceSlice<'a, T>>,
) -> Result<(), Error> {
    let (input, counts, levels) = (input.into_parts()?, counts.into(), levels.into());
    let _span = crate::span!(stream, "histogram::ranges", input.len());
    expect_len("the levels of a histogram", counts.len() + 1, levels.len())?;
    number_of_bins(counts.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    let levels = levels.raw_view(stream)?;
    let order = HoleOrder::of::<T, T::Order>(T::Order::default());
    held!(T as H or bytes, {
        let levels = HeldIn::<H>::new(stream, levels)?;
        count::<T, H, _, C>(stream, &input, len, RangeBins { order, levels: levels.view }, counts)
    })
}

/// Counts how often each byte occurs. There are 256 counts.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not 256 counts: nothing is written in this case. Any launch error.
pub fn bytes<'a, C: Count>(
    stream: &Stream,
    input: impl Source<'a, u8>,
    counts: impl Into<DeviceSliceMut<'a, C>>,
) -> Result<(), Error> {
    let (input, counts) = (input.into_parts()?, counts.into());
    let _span = crate::span!(stream, "histogram::bytes", input.len());
    expect_len("the counts of a histogram of bytes", 256, counts.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    count::<u8, u8, _, C>(stream, &input, len, ByteBins, counts)
}

/// Counts the elements in the bins of any function: count `b` is that of the elements whose bin is `b`. Elements whose bin has no
/// count are not counted. For one-liners, there is [`bucket!`](crate::operator::bucket).
///
/// # Errors
/// [`Error::TooMany`] for 2^32 - 1 bins or more: nothing is written in this case. Any launch error.
pub fn by<'a, T: Pod, C: Count, B: Bucket<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'a, C>>,
    bucket: B,
) -> Result<(), Error> {
    let (input, counts) = (input.into_parts()?, counts.into());
    let _span = crate::span!(stream, "histogram::by", input.len());
    number_of_bins(counts.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    let bins = HoleBins::of::<T, B>(bucket);
    held!(T as H or bytes, count::<T, H, _, C>(stream, &input, len, bins, counts))
}

/// Returns the number of bins as kernels have it.
fn number_of_bins(bins: usize) -> Result<u32, Error> {
    let limit = NONE as usize - 1;
    match u32::try_from(bins) {
        Ok(number) if bins <= limit => Ok(number),
        _ => Err(Error::TooMany { what: "bins", asked: bins, limit }),
    }
}

/// Returns the elements of an access of 16 bytes.
const fn vector<H>() -> usize {
    match size_of::<H>() {
        1 => 16,
        2 => 8,
        4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Writes the counts of elements `T`, which are held in an `H`.
fn count<T: Pod, H: Held, B: Bins<H>, C: Count>(
    stream: &Stream,
    input: &Opened<T>,
    len: usize,
    bins: B,
    mut counts: DeviceSliceMut<'_, C>,
) -> Result<(), Error> {
    if counts.is_empty() {
        return Ok(());
    }
    let view = counts.raw_view_mut(stream)?;
    transfer::fill(stream, counts, C::zeroed())?;
    if len == 0 {
        return Ok(());
    }
    match input.held::<H>() {
        Ok(input) => launch(stream, input, len, bins, view),
        Err(input) => launch(stream, input, len, bins, view),
    }
}

fn launch<H: Held, I: Input<H>, B: Bins<H>, C: Count>(
    stream: &Stream,
    input: I,
    len: usize,
    bins: B,
    counts: GlobalMut<C>,
) -> Result<(), Error> {
    /// The blocks per multiprocessor: as many as its threads have room for.
    const BLOCKS: usize = 4;

    with_shape!(VEC in 16 | 8 | 4 | 2 | 1 = vector::<H>(), {
        let tiles = len.div_ceil(THREADS as usize * VEC * AT_ONCE);
        let blocks = tiles.clamp(1, BLOCKS * stream.device().limits().multiprocessors as usize);
        let kernel = CountBins::<H, I, B, C, VEC>::new(input, bins, counts);
        // SAFETY: at least one block; memory has no room for 2^32 elements per block; the bins are those of these elements.
        unsafe { stream.launch(kernel, blocks) }
    })
}
