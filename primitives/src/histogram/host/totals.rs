//! Host functions of the sums of bins.

#![deny(unsafe_op_in_unsafe_fn)]

use super::{BLOCKS, number_of_bins};
use crate::histogram::device::kernel::{AT_ONCE, THREADS};
use crate::histogram::device::totals::{FindBins, NO_ELEMENT, SumBins};
use crate::host::runtime::column::AnySliceMut;
use crate::host::source::{AnySource, Source, counting, map2};
use crate::map::Map2;
use crate::operator::{map, operator};
use crate::sealed::Sealed;
use crate::{DeviceSliceMut, Error, Stream, expect_len, transfer};
use bytemuck::{Pod, Zeroable};

/// An integer of 8 to 64 bits, which can be added up exactly.
pub trait Summand: Pod + Sealed {
    /// The type of the totals: `u128`, or `i128` for integers with a sign.
    type Total: Pod;

    /// The sign bit of the upper half of a word of 64 bits; 0 if there is none.
    #[doc(hidden)]
    const SIGN: u32;

    #[doc(hidden)]
    type Words: Map2<u32, Self, Output = [u32; 3]> + Default;
}

/// A bin, and both halves of an integer of 64 bits.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Words;

macro_rules! summands {
    ($($type:ident as $wide:ident: $total:ident $sign:literal;)*) => { $(
        #[operator]
        impl Map2<u32, $type> for Words {
            type Output = [u32; 3];

            #[inline(always)]
            fn map(&self, bin: u32, number: $type) -> [u32; 3] {
                let number = number as $wide as u64;
                [bin, number as u32, (number >> 32) as u32]
            }
        }

        impl Summand for $type {
            type Total = $total;
            type Words = Words;
            const SIGN: u32 = $sign;
        }
    )* };
}

summands! {
    u8 as u64: u128 0;
    u16 as u64: u128 0;
    u32 as u64: u128 0;
    u64 as u64: u128 0;
    i8 as i64: i128 0x8000_0000;
    i16 as i64: i128 0x8000_0000;
    i32 as i64: i128 0x8000_0000;
    i64 as i64: i128 0x8000_0000;
}

/// Adds up the integers of each bin, exactly: total `b` is the sum of the values whose bin is `b`. Values whose bin has no total are left
/// out. Does not wait.
///
/// It reads each bin and each value once. Up to 4096 totals are added up in shared memory; more take an access to global memory per value.
///
/// ```
/// use gpu_primitives::{Device, Error, histogram};
///
/// let stream = Device::default()?.stream()?;
/// let (shops, sales) = (stream.upload(&[1u32, 0, 1, 9])?, stream.upload(&[i64::MAX, -5, i64::MAX, 7])?);
/// let mut totals = stream.uninit::<i128>(3)?;
/// histogram::sums(&stream, &shops, &sales, &mut totals)?;
/// assert_eq!(totals.to_vec(&stream)?, [-5, 2 * i128::from(i64::MAX), 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not a value for each bin; [`Error::TooMany`] for 2^32 - 1 totals or more: nothing is written in
/// these cases. Any launch error.
pub fn sums<'a, 'b, T: Summand>(
    stream: &Stream,
    bins: impl Source<'a, u32>,
    values: impl Source<'a, T>,
    totals: impl Into<DeviceSliceMut<'b, T::Total>>,
) -> Result<(), Error> {
    let input = map2(bins, values, T::Words::default()).into_parts()?.lower();
    let _span = crate::span!(stream, "histogram::sums", input.len());
    sum(stream, &input, totals.into().into(), T::SIGN)
}

fn sum(stream: &Stream, input: &AnySource<'_>, mut totals: AnySliceMut<'_>, sign: u32) -> Result<(), Error> {
    number_of_bins(totals.len())?;
    if totals.is_empty() {
        return Ok(());
    }
    let (len, input) = (input.len(), input.open(stream)?);
    let totals = totals.raw_view_mut(stream)?;
    transfer::fill_column(stream, totals, &[0])?;
    if len == 0 {
        return Ok(());
    }
    let kernel = SumBins::new(input.fused(), totals.words::<u64>(), sign);
    // SAFETY: at least one block, each of which takes fewer than 2^32 elements; two words for each bin, which are zero.
    unsafe { stream.launch(kernel, blocks(stream, len, 1)) }
}

/// Counts the elements of each bin, and finds the index of the first one: `u32::MAX` for a bin without elements. Elements whose bin has no
/// count are left out. Does not wait.
///
/// ```
/// use gpu_primitives::{Device, Error, histogram};
///
/// let stream = Device::default()?.stream()?;
/// let shops = stream.upload(&[2u32, 0, 2, 9])?;
/// let (mut counts, mut firsts) = (stream.uninit::<u32>(3)?, stream.uninit::<u32>(3)?);
/// histogram::counts_and_firsts(&stream, &shops, &mut counts, &mut firsts)?;
/// assert_eq!(counts.to_vec(&stream)?, [1, 0, 2]);
/// assert_eq!(firsts.to_vec(&stream)?, [1, u32::MAX, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if there is not an index for each count; [`Error::TooMany`] for 2^32 - 1 counts or more;
/// [`Error::TooLong`] for 2^32 - 1 elements or more: nothing is written in these cases. Any launch error.
pub fn counts_and_firsts<'a, 'b, 'c>(
    stream: &Stream,
    bins: impl Source<'a, u32>,
    counts: impl Into<DeviceSliceMut<'b, u32>>,
    firsts: impl Into<DeviceSliceMut<'c, u32>>,
) -> Result<(), Error> {
    let bins = bins.into_parts()?;
    let (len, limit) = (bins.len(), NO_ELEMENT as usize - 1);
    let _span = crate::span!(stream, "histogram::counts_and_firsts", len);
    if len > limit {
        return Err(Error::TooLong { what: "elements with indices of 32 bits", len, limit });
    }
    let numbered = map!(|bin: u32, index: u32| -> u64 { (bin as u64) << 32 | index as u64 });
    let input = map2(bins, counting(0u32, len), numbered).into_parts()?.lower();
    find(stream, &input, counts.into().into(), firsts.into().into())
}

fn find(
    stream: &Stream,
    input: &AnySource<'_>,
    mut counts: AnySliceMut<'_>,
    mut firsts: AnySliceMut<'_>,
) -> Result<(), Error> {
    expect_len("the first elements of bins", counts.len(), firsts.len())?;
    number_of_bins(counts.len())?;
    if counts.is_empty() {
        return Ok(());
    }
    let (len, input) = (input.len(), input.open(stream)?);
    let (counts, firsts) = (counts.raw_view_mut(stream)?, firsts.raw_view_mut(stream)?);
    transfer::fill_column(stream, counts, &[0])?;
    transfer::fill_column(stream, firsts, &[0xFF])?;
    if len == 0 {
        return Ok(());
    }
    let kernel = FindBins::new(input.fused(), counts.as_type(), firsts.as_type());
    // SAFETY: at least one block, each of which takes fewer than 2^32 elements; the counts are zero, and the first elements are none.
    unsafe { stream.launch(kernel, blocks(stream, len, 2)) }
}

/// Returns the number of blocks for elements of which a thread takes `vec` in an access.
fn blocks(stream: &Stream, len: usize, vec: usize) -> usize {
    let tiles = len.div_ceil(THREADS as usize * vec * AT_ONCE);
    // A block takes fewer than 2^32 elements.
    let wave = BLOCKS * stream.device().limits().multiprocessors as usize;
    tiles.clamp(1, wave.max(len >> 31))
}
