//! Host functions of histograms.

#![deny(unsafe_op_in_unsafe_fn)]

mod totals;

pub use totals::{Summand, counts_and_firsts, sums};

use super::device::bins::{Bins, ByteBins, HoleBins, RangeBins};
use super::device::kernel::{AT_ONCE, CountBins, Counts, THREADS, count_bins, count_bytes, count_ranges};
use super::device::sample::NONE;
use super::{Bucket, Count, Sample};
use crate::compare::HoleOrder;
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{AnySlice, AnySliceMut};
use crate::host::source::{AnySource, Opened, Source};
use crate::input::SourceArg;
use crate::operator::operator;
use crate::transfer;
use crate::transform::laid_out::ReprInput;
use crate::{DeviceSlice, DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
use bytemuck::{Pod, Zeroable};

/// Counts the elements in bins of equal width: the range from `lower` up to `upper` is divided into `counts.len()` bins. Elements
/// outside of it, and NaN, are not counted. If `lower` is not less than `upper`, nothing is.
///
/// Bin `b` of `n` has the integers from `lower + b * (upper - lower) / n`, rounded up, up to the beginning of the next bin. For
/// floats, the bin is `(x - lower) * (n / (upper - lower))` without its fraction, computed in their type, but no more than the
/// last bin; the width of the range must be finite.
///
/// # Errors
/// [`Error::TooMany`] for 2^32 - 1 bins or more: nothing is written in this case. Any launch error.
pub fn even<'a, 'b, T: Sample, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'b, C>>,
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
pub fn ranges<'a, 'b, 'c, T: Sample, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'b, C>>,
    levels: impl Into<DeviceSlice<'c, T>>,
) -> Result<(), Error> {
    let (input, counts, levels) = (input.into_parts()?.lower(), counts.into(), levels.into());
    let _span = crate::span!(stream, "histogram::ranges", input.len());
    count_ranges(stream, &input, counts.into(), levels.into(), HoleOrder::of::<T, T::Order>(T::Order::default()))
}

fn count_ranges(
    stream: &Stream,
    input: &AnySource<'_>,
    counts: AnySliceMut<'_>,
    levels: AnySlice<'_>,
    order: HoleOrder,
) -> Result<(), Error> {
    expect_len("the levels of a histogram", counts.len() + 1, levels.len())?;
    number_of_bins(counts.len())?;
    let (len, input, levels) = (input.len(), input.open(stream)?, levels.raw_view(stream)?);
    count_ranges!(levels.size() => (H, VEC), {
        let levels = ReprInput::<H>::new(stream, levels)?;
        count::<H, _, VEC>(stream, &input, len, RangeBins { order, levels: levels.view }, counts)
    })
}

/// Counts how often each byte occurs. There are 256 counts.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not 256 counts: nothing is written in this case. Any launch error.
pub fn bytes<'a, 'b, C: Count>(
    stream: &Stream,
    input: impl Source<'a, u8>,
    counts: impl Into<DeviceSliceMut<'b, C>>,
) -> Result<(), Error> {
    let (input, counts) = (input.into_parts()?.lower(), counts.into());
    let _span = crate::span!(stream, "histogram::bytes", input.len());
    count_bytes(stream, &input, counts.into())
}

fn count_bytes(stream: &Stream, input: &AnySource<'_>, counts: AnySliceMut<'_>) -> Result<(), Error> {
    expect_len("the counts of a histogram of bytes", 256, counts.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    count_bytes!(input.size() => (H, VEC), count::<H, _, VEC>(stream, &input, len, ByteBins, counts))
}

/// Counts the elements in the bins of any function: count `b` is that of the elements whose bin is `b`. Elements whose bin has no
/// count are not counted. For one-liners, there is [`bucket!`](crate::operator::bucket).
///
/// # Errors
/// [`Error::TooMany`] for 2^32 - 1 bins or more: nothing is written in this case. Any launch error.
pub fn by<'a, 'b, T: Pod, C: Count, B: Bucket<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'b, C>>,
    bucket: B,
) -> Result<(), Error> {
    const { expect_repr::<T>() };
    let (input, counts) = (input.into_parts()?.lower(), counts.into());
    let _span = crate::span!(stream, "histogram::by", input.len());
    count_by(stream, &input, counts.into(), HoleBins::of::<T, B>(bucket))
}

fn count_by(stream: &Stream, input: &AnySource<'_>, counts: AnySliceMut<'_>, bins: HoleBins) -> Result<(), Error> {
    number_of_bins(counts.len())?;
    let (len, input) = (input.len(), input.open(stream)?);
    let size = repr_size_or_bytes(input.size());
    count_bins!(size => (H, VEC), count::<H, _, VEC>(stream, &input, len, bins, counts))
}

/// Counts how often each small integer occurs: count `b` is that of the elements that are `b`. Negative ones, and those that have no
/// count, are not counted. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, histogram};
///
/// let stream = Device::default()?.stream()?;
/// let labels = stream.upload(&[2i64, 0, 2, -1, 7])?;
/// let mut counts = stream.uninit::<u32>(4)?;
/// histogram::bincount(&stream, &labels, &mut counts)?;
/// assert_eq!(counts.to_vec(&stream)?, [1, 0, 2, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`by`].
pub fn bincount<'a, 'b, T: Pod, C: Count>(
    stream: &Stream,
    input: impl Source<'a, T>,
    counts: impl Into<DeviceSliceMut<'b, C>>,
) -> Result<(), Error>
where
    Value: Bucket<T>,
{
    let input = input.into_parts()?;
    let _span = crate::span!(stream, "histogram::bincount", input.len());
    by(stream, input, counts, Value)
}

/// The bin of a small integer is the integer. Negative ones, and those of more than 32 bits, have the last bin that there could be.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Value;

macro_rules! values {
    ($($type:ty: $x:ident => $bin:expr;)*) => { $(
        #[operator]
        impl Bucket<$type> for Value {
            #[inline(always)]
            fn bucket(&self, $x: $type) -> u32 {
                $bin
            }
        }
    )* };
}

values! {
    u8: x => x as u32;
    u16: x => x as u32;
    u32: x => x;
    u64: x => if x < 0xFFFF_FFFF { x as u32 } else { 0xFFFF_FFFF };
    i8: x => if x < 0 { 0xFFFF_FFFF } else { x as u32 };
    i16: x => if x < 0 { 0xFFFF_FFFF } else { x as u32 };
    i32: x => if x < 0 { 0xFFFF_FFFF } else { x as u32 };
    // Negative numbers become large ones.
    i64: x => if (x as u64) < 0xFFFF_FFFF { x as u32 } else { 0xFFFF_FFFF };
}

/// Returns the number of bins as kernels have it.
fn number_of_bins(bins: usize) -> Result<u32, Error> {
    let limit = NONE as usize - 1;
    match u32::try_from(bins) {
        Ok(number) if bins <= limit => Ok(number),
        _ => Err(Error::TooMany { what: "bins", asked: bins, limit }),
    }
}

/// The blocks per multiprocessor: as many as its threads have room for.
const BLOCKS: usize = 4;

/// Writes the counts of elements that are held in an `H`.
fn count<H: RegisterRepr, B: Bins<H>, const VEC: usize>(
    stream: &Stream,
    input: &Opened,
    len: usize,
    bins: B,
    mut counts: AnySliceMut<'_>,
) -> Result<(), Error> {
    if counts.is_empty() {
        return Ok(());
    }
    let counts = counts.raw_view_mut(stream)?;
    transfer::fill_column(stream, counts, &[0])?;
    if len == 0 {
        return Ok(());
    }
    let none = Counts { short: GlobalMut::empty(), long: GlobalMut::empty() };
    let counts = match counts.size() {
        4 => Counts { short: counts.as_type(), ..none },
        _ => Counts { long: counts.as_type(), ..none },
    };
    let tiles = len.div_ceil(THREADS as usize * VEC * AT_ONCE);
    // A block counts in 32 bits.
    let wave = BLOCKS * stream.device().limits().multiprocessors as usize;
    let blocks = tiles.clamp(1, wave.max(len >> 31));
    let kernel = CountBins::<H, SourceArg, B, VEC>::new(input.fused(), bins, counts);
    // SAFETY: at least one block, each of which takes fewer than 2^32 elements; the bins are those of these elements.
    unsafe { stream.launch(kernel, blocks) }
}
