//! Host functions of the sort.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod chunks;
pub(crate) mod codes;
pub(crate) mod columns;
pub(crate) mod distribute;
#[doc(hidden)]
pub mod lowered;
pub(crate) mod rows;

use super::{Buckets, Digits, RadixCode, RadixKey, Sign, SortBy, bits_of, sign_of};
use crate::host::repr::expect_repr;
use crate::host::source::{SliceTarget, Source};
use crate::key::HoleCode;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream};
use bytemuck::Pod;
use distribute::Typed;
use lowered::Coding;
use std::any::TypeId;
use std::ops::Range;

pub(crate) use lowered::descending_codes;

/// The sort direction, and the bits to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    descending: bool,
    bits: Option<Range<u32>>,
}

impl Options {
    /// Ascending, by all bits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sorts in descending order. Equal keys keep their order.
    #[must_use]
    pub fn descending(self) -> Self {
        Self { descending: true, ..self }
    }

    /// Compares only these bits of the key's code; bit 0 is the least significant. The code of an unsigned number is
    /// the number itself. A signed number has its sign bit flipped; a negative float has all bits flipped.
    #[must_use]
    pub fn bits(self, bits: Range<u32>) -> Self {
        Self { bits: Some(bits), ..self }
    }

    /// Returns the bits that are compared, of codes of `most` bits, and what flips 8 of them if the order descends.
    pub(crate) fn compared(&self, most: u32) -> (Range<u32>, u8) {
        let bits = self.bits.clone().unwrap_or(0..most);
        (bits.start..bits.end.min(most), if self.descending { !0 } else { 0 })
    }

    /// Returns the digits of codes of `most` bits; `None` if the bit range is empty.
    pub(super) fn digits(&self, sign: Sign, most: u32) -> Result<Option<Digits>, Error> {
        let bits = self.bits.clone().unwrap_or(0..most);
        if bits.start > bits.end || bits.end > most {
            return Err(Error::BitRange { start: bits.start, end: bits.end, bits: most });
        }
        Ok((!bits.is_empty()).then(|| Digits::new(sign, bits.start, bits.end, self.descending)))
    }
}

/// The buffer that holds the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The buffer that held the input.
    First,
    /// The other buffer.
    Second,
}

/// Sorts keys into another buffer. Those of a source that is no slice are first written to temporary memory.
///
/// ```
/// use gpu_primitives::operator::map;
/// use gpu_primitives::sort::{self, Options};
/// use gpu_primitives::source::map;
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let numbers = stream.upload(&[3i32, -4, 1])?;
/// let mut sorted = stream.uninit::<i32>(3)?;
/// let squares = map(&numbers, map!(|x: i32| -> i32 { x * x }));
/// sort::keys(&stream, squares, &mut sorted, Options::new())?;
/// assert_eq!(sorted.to_vec(&stream)?, [1, 9, 16]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::BitRange`], [`Error::OutOfMemory`] for the second buffer, or [`Error::TooLong`] for
/// 2^32 items or more of sizes that are [moved by index](super): nothing is written in these cases. Any launch error.
pub fn keys<'a, 'b, K: RadixKey>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Into<DeviceSliceMut<'b, K>>,
    options: Options,
) -> Result<(), Error> {
    let (input, output) = (input.into_parts()?.elements(), output.into().into());
    let _span = crate::span!(stream, "sort::keys", input.len());
    lowered::keys(stream, input, output, &Coding::of::<K>(), &options)
}

/// Sorts keys together with their values into other buffers. Either of them may be computed: see [`keys`].
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, 'b, 'c, 'd, K: RadixKey, V: Pod>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    options: Options,
) -> Result<(), Error> {
    let from = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sort::pairs", from.0.len());
    let to = (output.0.into().into(), output.1.into().into());
    lowered::pairs(stream, from, to, &Coding::of::<K>(), &options)
}

/// Sorts keys in place, with a second buffer of the same size from the device's pool.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_in_place<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl SliceTarget<'a, K>,
    options: Options,
) -> Result<(), Error> {
    let keys = keys.into_first().lower();
    let _span = crate::span!(stream, "sort::keys_in_place", keys.len());
    lowered::keys_in_place(stream, keys, &Coding::of::<K>(), &options)
}

/// Sorts keys and values in place, with second buffers of the same size from the device's pool.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_in_place<'a, 'b, K: RadixKey, V: Pod>(
    stream: &Stream,
    pairs: (impl SliceTarget<'a, K>, impl SliceTarget<'b, V>),
    options: Options,
) -> Result<(), Error> {
    let pairs = (pairs.0.into_first().lower(), pairs.1.into_first().lower());
    let _span = crate::span!(stream, "sort::pairs_in_place", pairs.0.len());
    lowered::pairs_in_place(stream, pairs, &Coding::of::<K>(), &options)
}

/// Sorts keys between two buffers and returns which one holds the result. Both buffers are overwritten. Needs no
/// additional memory except for the look-back.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_double_buffered<'a, 'b, K: RadixKey>(
    stream: &Stream,
    first: impl SliceTarget<'a, K>,
    second: impl Into<DeviceSliceMut<'b, K>>,
    options: Options,
) -> Result<Side, Error> {
    let (first, second) = (first.into_first().lower(), second.into().into());
    let _span = crate::span!(stream, "sort::keys_double_buffered", first.len());
    lowered::keys_double_buffered(stream, first, second, &Coding::of::<K>(), &options)
}

/// [`keys_double_buffered`] with values.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_double_buffered<'a, 'b, 'c, 'd, K: RadixKey, V: Pod>(
    stream: &Stream,
    first: (impl SliceTarget<'a, K>, impl SliceTarget<'b, V>),
    second: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    options: Options,
) -> Result<Side, Error> {
    let first = (first.0.into_first().lower(), first.1.into_first().lower());
    let _span = crate::span!(stream, "sort::pairs_double_buffered", first.0.len());
    let second = (second.0.into().into(), second.1.into().into());
    lowered::pairs_double_buffered(stream, first, second, &Coding::of::<K>(), &options)
}

/// Returns the permutation that sorts the keys: element `i` of the result is the index of the key at sorted position
/// `i`. The keys are not changed. If only the device knows how many keys there are, what follows their indices is undefined.
///
/// # Errors
/// Same as [`keys`], and [`Error::TooLong`] for more than 2^32 keys.
pub fn argsort<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl Source<'a, K>,
    options: Options,
) -> Result<DeviceVec<u32>, Error> {
    let keys = keys.into_parts()?.elements();
    let _span = crate::span!(stream, "sort::argsort", keys.len());
    lowered::argsort(stream, keys, &Coding::of::<K>(), &options)
}

/// Returns the position that each key takes in the sorted order: the inverse of [`argsort`]. Equal keys have different positions, in
/// their order. The keys are not changed. If only the device knows how many keys there are, what follows their ranks is undefined.
/// Does not wait.
///
/// ```
/// use gpu_primitives::sort::{self, Options};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let keys = stream.upload(&[30i32, -10, 20, -10])?;
/// assert_eq!(sort::rank(&stream, &keys, Options::new())?.to_vec(&stream)?, [3, 0, 2, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`argsort`].
pub fn rank<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl Source<'a, K>,
    options: Options,
) -> Result<DeviceVec<u32>, Error> {
    let keys = keys.into_parts()?.elements();
    let _span = crate::span!(stream, "sort::rank", keys.len());
    lowered::rank(stream, keys, &Coding::of::<K>(), &options)
}

/// Sorts keys by a number computed from each. Keys with equal numbers keep their order.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_by<'a, 'b, K: Pod, B: SortBy<K>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Into<DeviceSliceMut<'b, K>>,
    by: B,
    options: Options,
) -> Result<(), Error> {
    let (input, output) = (input.into_parts()?.elements(), output.into().into());
    let _span = crate::span!(stream, "sort::keys_by", input.len());
    lowered::keys(stream, input, output, &Coding::by::<K, B>(by), &options)
}

/// Sorts keys together with their values by a number computed from each key. Pairs with equal numbers keep their order.
///
/// # Errors
/// Same as [`keys_by`].
pub fn pairs_by<'a, 'b, 'c, 'd, K: Pod, V: Pod, B: SortBy<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    by: B,
    options: Options,
) -> Result<(), Error> {
    let from = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let _span = crate::span!(stream, "sort::pairs_by", from.0.len());
    let to = (output.0.into().into(), output.1.into().into());
    lowered::pairs(stream, from, to, &Coding::by::<K, B>(by), &options)
}

/// Sorts keys together with their values by digits that a kernel crate computes in its own way, in place of
/// [`pairs_by`]: the digits are computed again in each pass, and no codes are stored. The digit of the last pass is the
/// most significant. Pairs with equal digits keep their order.
///
/// On a GPU the crate must [instantiate](crate::instances) [`BucketHistogram`](super::BucketHistogram) and
/// [`BucketPass`](super::BucketPass) for its digits.
///
/// # Errors
/// Same as [`keys`]; [`Error::TooMany`] for zero passes, or for more passes than there are digits;
/// [`Error::NoInstance`] on a GPU if the digits type was not instantiated there.
pub fn pairs_by_digits<'a, 'b, 'c, 'd, K: RadixCode, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'b, V>>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    digits: B,
    passes: u32,
) -> Result<(), Error> {
    let input: (DeviceSlice<'_, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "sort::pairs_by_digits", input.0.len());
    let from = (input.0.into(), input.1.into().into());
    let to = (output.0.into().into(), output.1.into().into());
    lowered::pairs_by_digits(stream, from, to, &Typed::<K, V, B>::new(digits), passes, B::MAX_PASSES)
}

impl Coding {
    /// How keys of this type become codes.
    pub(crate) fn of<K: RadixKey>() -> Self {
        let code = if const { K::NUMBER.is_none() } {
            const { expect_repr::<K>() };
            Some(HoleCode::of_key::<K>())
        } else {
            None
        };
        let is_half = is_half_float::<K>();
        Self { size: size_of::<K::Code>(), bits: bits_of::<K>(), sign: sign_of::<K>(), code, is_half }
    }

    /// How keys become the numbers that they are sorted by.
    pub(crate) fn by<K: Pod, B: SortBy<K>>(by: B) -> Self {
        const { expect_repr::<K>() };
        let code = Some(HoleCode::of::<K, B>(by));
        Self { size: size_of::<B::Code>(), bits: B::Code::BITS, sign: Sign::NONE, code, is_half: false }
    }
}

/// Returns whether keys are floats of two bytes, whose codes give them back.
fn is_half_float<K: 'static>() -> bool {
    let halves: &[TypeId] = &[
        #[cfg(feature = "half")]
        TypeId::of::<half::f16>(),
        #[cfg(feature = "half")]
        TypeId::of::<half::bf16>(),
    ];
    halves.contains(&TypeId::of::<K>())
}
