//! Host functions of the sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::chunks::Chunks;
use super::distribute::{Passes, Spare};
use super::encode::{EncodeKeys, THREADS as ENCODE_THREADS};
use super::{Buckets, Digits, HoleCode, RadixCode, RadixKey, Sign, SortBy, bits_of, sign_of};
use crate::code::U256;
use crate::merge_sort;
use crate::runtime::carrier::{Carry, carried};
use crate::runtime::held::{HeldIn, HeldOut, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::transfer::{self, Line};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, GlobalMut, Stream, expect_len};
use bytemuck::Pod;
use std::ops::Range;

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

    /// Returns the digits of codes of `most` bits; `None` if the bit range is empty.
    fn digits(&self, sign: Sign, most: u32) -> Result<Option<Digits>, Error> {
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

/// Sorts keys into another buffer.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::BitRange`], [`Error::OutOfMemory`] for the second buffer, or [`Error::TooLong`] for
/// 2^32 items or more of sizes that are [moved by index](super): nothing is written in these cases. Any launch error.
pub fn keys<'a, K: RadixKey>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    options: Options,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "sort::keys", input.len());
    expect_len("the output of a sort", input.len(), output.len())?;
    sort_to::<K, ()>(stream, Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?, &options)
}

/// Sorts keys together with their values into other buffers.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, K: RadixKey, V: Pod>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    options: Options,
) -> Result<(), Error> {
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "sort::pairs", input.0.len());
    let from = Pairs::new(stream, input.0, input.1.into(), "the values of a sort")?;
    let to = sorted_pairs(stream, from.keys.len(), output.0.into(), output.1.into())?;
    sort_to(stream, from, to, &options)
}

/// Sorts keys in place, with a second buffer of the same size from the device's pool.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_in_place<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    options: Options,
) -> Result<(), Error> {
    let keys: DeviceSliceMut<'a, K> = keys.into();
    let _span = crate::span!(stream, "sort::keys_in_place", keys.len());
    sort_in_place::<K, ()>(stream, PairsMut::keys(stream, keys)?, &options)
}

/// Sorts keys and values in place, with second buffers of the same size from the device's pool.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_in_place<'a, K: RadixKey, V: Pod>(
    stream: &Stream,
    pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    options: Options,
) -> Result<(), Error> {
    let pairs: (DeviceSliceMut<'a, K>, _) = (pairs.0.into(), pairs.1);
    let _span = crate::span!(stream, "sort::pairs_in_place", pairs.0.len());
    sort_in_place(stream, PairsMut::new(stream, pairs.0, pairs.1.into(), "the values of a sort")?, &options)
}

/// Sorts keys between two buffers and returns which one holds the result. Both buffers are overwritten. Needs no
/// additional memory except for the look-back.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_double_buffered<'a, K: RadixKey>(
    stream: &Stream,
    first: impl Into<DeviceSliceMut<'a, K>>,
    second: impl Into<DeviceSliceMut<'a, K>>,
    options: Options,
) -> Result<Side, Error> {
    let (first, second) = (first.into(), second.into());
    let _span = crate::span!(stream, "sort::keys_double_buffered", first.len());
    expect_len("the second buffer of a sort", first.len(), second.len())?;
    sort_between::<K, ()>(stream, PairsMut::keys(stream, first)?, PairsMut::keys(stream, second)?, &options)
}

/// [`keys_double_buffered`] with values.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_double_buffered<'a, K: RadixKey, V: Pod>(
    stream: &Stream,
    first: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    second: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    options: Options,
) -> Result<Side, Error> {
    let first: (DeviceSliceMut<'a, K>, _) = (first.0.into(), first.1);
    let _span = crate::span!(stream, "sort::pairs_double_buffered", first.0.len());
    let (first_keys, second_keys) = (first.0, second.0.into());
    expect_len("the second buffer of a sort", first_keys.len(), second_keys.len())?;
    let first = PairsMut::new(stream, first_keys, first.1.into(), "the values of a sort")?;
    let second = PairsMut::new(stream, second_keys, second.1.into(), "the values' second buffer of a sort")?;
    sort_between(stream, first, second, &options)
}

/// Returns the permutation that sorts the keys: element `i` of the result is the index of the key at sorted position
/// `i`. The keys are not changed.
///
/// # Errors
/// Same as [`keys`], and [`Error::TooLong`] for more than 2^32 keys.
pub fn argsort<'a, K: RadixKey>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, K>>,
    options: Options,
) -> Result<DeviceVec<u32>, Error> {
    let keys = keys.into();
    let _span = crate::span!(stream, "sort::argsort", keys.len());
    if keys.len() > 1 << 32 {
        return Err(Error::TooLong { what: "argsort with 32-bit indices", len: keys.len(), limit: 1 << 32 });
    }
    let mut indices = stream.uninit::<u32>(keys.len())?;
    transfer::iota(stream, &mut indices, 0)?;
    let mut order = stream.uninit::<u32>(keys.len())?;
    let mut sorted = stream.uninit::<K>(keys.len())?;
    pairs(stream, (keys, &indices), (&mut sorted, &mut order), options)?;
    Ok(order)
}

/// Sorts keys by a number computed from each. Keys with equal numbers keep their order.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_by<'a, K: Pod, B: SortBy<K>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    by: B,
    options: Options,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "sort::keys_by", input.len());
    expect_len("the output of a sort", input.len(), output.len())?;
    let (from, to) = (Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?);
    match options.digits(Sign::NONE, B::Code::BITS)? {
        Some(digits) => sort_coded::<K, (), B::Code>(stream, from, to, HoleCode::of::<K, B>(by), digits),
        None => copy_all(stream, from, to),
    }
}

/// Sorts keys together with their values by a number computed from each key. Pairs with equal numbers keep their order.
///
/// # Errors
/// Same as [`keys_by`].
pub fn pairs_by<'a, K: Pod, V: Pod, B: SortBy<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    by: B,
    options: Options,
) -> Result<(), Error> {
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "sort::pairs_by", input.0.len());
    let from = Pairs::new(stream, input.0, input.1.into(), "the values of a sort")?;
    let to = sorted_pairs(stream, from.keys.len(), output.0.into(), output.1.into())?;
    match options.digits(Sign::NONE, B::Code::BITS)? {
        Some(digits) => sort_coded::<K, V, B::Code>(stream, from, to, HoleCode::of::<K, B>(by), digits),
        None => copy_all(stream, from, to),
    }
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
pub fn pairs_by_digits<'a, K: RadixCode, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    digits: B,
    passes: u32,
) -> Result<(), Error> {
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "sort::pairs_by_digits", input.0.len());
    let from = Pairs::new(stream, input.0, input.1.into(), "the values of a sort")?;
    let to = sorted_pairs(stream, from.keys.len(), output.0.into(), output.1.into())?;
    if passes == 0 || passes as usize > B::MAX_PASSES {
        return Err(Error::TooMany { what: "passes of a sort", asked: passes as usize, limit: B::MAX_PASSES });
    }
    if from.keys.is_empty() {
        return Ok(());
    }
    if passes == 1 {
        return run_passes(stream, from, [to, to], digits, passes);
    }
    let mut spare = Spare::new(stream, from.keys.len())?;
    let spare = spare.target(stream)?;
    // The last pass writes to the output, so with an odd number of passes the first one does too.
    run_passes(stream, from, if passes % 2 == 1 { [to, spare] } else { [spare, to] }, digits, passes)
}

/// Returns the output of a sort of `len` pairs.
fn sorted_pairs<K: Pod, V: Pod>(
    stream: &Stream,
    len: usize,
    keys: DeviceSliceMut<'_, K>,
    values: DeviceSliceMut<'_, V>,
) -> Result<PairsMut<K, V>, Error> {
    expect_len("the output of a sort", len, keys.len())?;
    PairsMut::new(stream, keys, values, "the values' output of a sort")
}

/// Sorts in the form in which kernels exist: numbers in the type of their codes, other keys by their codes.
fn sort_to<K: RadixKey, V: Pod>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    options: &Options,
) -> Result<(), Error> {
    let Some(digits) = options.digits(sign_of::<K>(), bits_of::<K>())? else {
        return copy_all(stream, from, to);
    };
    if K::NUMBER.is_none() {
        return sort_coded::<K, V, K::Code>(stream, from, to, HoleCode::of_key::<K>(), digits);
    }
    let keys = HeldIn::<K::Code>::new(stream, from.keys)?;
    let to_keys = HeldOut::<K::Code>::new(stream, to.keys)?;
    let from = Pairs { keys: keys.view, values: from.values };
    sort_values(stream, from, PairsMut { keys: to_keys.view, values: to.values }, digits)?;
    to_keys.finish(stream)
}

/// Sorts codes of `bits` bits, the largest first, with their values. Equal ones keep their order.
pub(crate) fn descending_codes<C: RadixCode, V: Pod>(
    stream: &Stream,
    from: Pairs<C, V>,
    to: PairsMut<C, V>,
    bits: u32,
) -> Result<(), Error> {
    sort_values(stream, from, to, Digits::new(Sign::NONE, 0, bits, true))
}

/// Sorts codes with values of any size.
fn sort_values<C: RadixCode, V: Pod>(
    stream: &Stream,
    from: Pairs<C, V>,
    to: PairsMut<C, V>,
    digits: Digits,
) -> Result<(), Error> {
    if const { size_of::<C>() > 16 } {
        sort_long(stream, from, to, digits)
    } else if const { size_of::<C>() <= 8 } {
        carried!(
            V => () | u32 | u64 | Line, (from, to),
            |(from, to)| sort_codes(stream, from, to, digits),
            else |(from, to)| sort_indexed(stream, from, to, digits)
        )
    } else {
        carried!(
            V => () | u32, (from, to),
            |(from, to)| sort_codes(stream, from, to, digits),
            else |(from, to)| sort_indexed(stream, from, to, digits)
        )
    }
}

/// Moves the indices of the values, and then the values.
fn sort_indexed<C: RadixCode, V: Pod>(
    stream: &Stream,
    from: Pairs<C, V>,
    to: PairsMut<C, V>,
    digits: Digits,
) -> Result<(), Error> {
    let mut indices = Indices::new(stream, from.keys.len(), from.keys.len())?;
    let indexed = Pairs { keys: from.keys, values: indices.from.raw_view(stream)? };
    let moved = PairsMut { keys: to.keys, values: indices.to.raw_view_mut(stream)? };
    sort_codes(stream, indexed, moved, digits)?;
    indices.gather_held(stream, from.values, to.values)
}

/// Sorts keys by their codes: computes the codes, and sorts them with the keys as values (keys alone, of a size that
/// kernels move) or with the indices of keys and values.
fn sort_coded<K: Pod, V: Pod, C: RadixCode>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    code: HoleCode,
    digits: Digits,
) -> Result<(), Error> {
    let len = from.keys.len();
    if len == 0 {
        return Ok(());
    }
    let (mut codes, mut sorted) = (stream.uninit::<C>(len)?, stream.uninit::<C>(len)?);
    let (codes, sorted) = (codes.raw_view_mut(stream)?, sorted.raw_view_mut(stream)?);
    held!(K as H or bytes, {
        let keys = HeldIn::<H>::new(stream, from.keys)?;
        let kernel = EncodeKeys::<H, C>::new(keys.view, code, codes);
        // SAFETY: one thread per key, and as many codes; the function is one for these keys.
        unsafe { stream.launch(kernel, len.div_ceil(ENCODE_THREADS as usize))? };
    });
    let codes = codes.as_const();
    let by_index = || {
        let mut indices = Indices::new(stream, len, len)?;
        let indexed = Pairs { keys: codes, values: indices.from.raw_view(stream)? };
        let moved = PairsMut { keys: sorted, values: indices.to.raw_view_mut(stream)? };
        sort_codes(stream, indexed, moved, digits)?;
        indices.gather_held(stream, from.keys, to.keys)?;
        indices.gather_held(stream, from.values, to.values)
    };
    if size_of::<V>() > 0 {
        return by_index();
    }
    if const { size_of::<C>() <= 8 } {
        carried!(
            K => u32 | u64 | Line, (from.keys, to.keys),
            |(values, to)| {
                sort_codes(stream, Pairs { keys: codes, values }, PairsMut { keys: sorted, values: to }, digits)
            },
            else |_| by_index()
        )
    } else {
        by_index()
    }
}

/// Sorts codes of 256 bits, with values of any size: a merge takes fewer passes than there are digits.
fn sort_long<C: RadixCode, V: Pod>(
    stream: &Stream,
    from: Pairs<C, V>,
    to: PairsMut<C, V>,
    digits: Digits,
) -> Result<(), Error> {
    let keys = from.keys.carried::<U256>().zip(to.keys.carried::<U256>());
    let (from_keys, to_keys) = keys.expect("a code of more than 128 bits is a `U256`");
    let from = Pairs { keys: from_keys, values: from.values };
    merge_sort::sort(stream, from, PairsMut { keys: to_keys, values: to.values }, digits.order_of_long())
}

/// Sorts codes with values that kernels move.
fn sort_codes<C: RadixCode, V: Pod>(
    stream: &Stream,
    from: Pairs<C, V>,
    to: PairsMut<C, V>,
    digits: Digits,
) -> Result<(), Error> {
    if const { size_of::<C>() > 16 } {
        return sort_long(stream, from, to, digits);
    }
    let chunks = Chunks::of(from, digits);
    if let Some(chunk) = chunks.filter(|chunks| from.keys.len() <= chunks.len) {
        return chunk.sort(stream, from, to);
    }
    let mut spare = Spare::new(stream, from.keys.len())?;
    let spare = spare.target(stream)?;
    if let Some(chunks) = chunks {
        chunks.sort(stream, from, spare)?;
        return chunks.place(stream, spare.as_const(), to);
    }
    // The last pass writes to the output, so with an odd number of passes the first one does too.
    let turns = if digits.passes() % 2 == 1 { [to, spare] } else { [spare, to] };
    run_passes(stream, from, turns, digits, digits.passes())
}

/// Returns the keys as codes, if kernels can sort them in place.
fn as_codes<K: RadixKey>(keys: GlobalMut<K>) -> Option<GlobalMut<K::Code>> {
    if size_of::<K>() <= 8 { K::NUMBER.and_then(|_| keys.carried::<K::Code>()) } else { None }
}

fn sort_in_place<K: RadixKey, V: Pod>(stream: &Stream, data: PairsMut<K, V>, options: &Options) -> Result<(), Error> {
    let Some(digits) = options.digits(sign_of::<K>(), bits_of::<K>())? else { return Ok(()) };
    let Some(keys) = as_codes(data.keys) else { return sort_copy(stream, data, options) };
    carried!(V => () | u32 | u64 | Line, PairsMut { keys, values: data.values }, |data| {
        let chunks = Chunks::of(data.as_const(), digits);
        if let Some(chunk) = chunks.filter(|chunks| data.keys.len() <= chunks.len) {
            return chunk.sort(stream, data.as_const(), data);
        }
        let mut spare = Spare::new(stream, data.keys.len())?;
        let spare = spare.target(stream)?;
        if let Some(chunks) = chunks {
            chunks.sort(stream, data.as_const(), spare)?;
            return chunks.place(stream, spare.as_const(), data);
        }
        run_passes(stream, data.as_const(), [spare, data], digits, digits.passes())?;
        if digits.passes() % 2 == 1 { copy_all(stream, spare.as_const(), data) } else { Ok(()) }
    }, else |_| sort_copy(stream, data, options))
}

/// Sorts a copy back into its place.
fn sort_copy<K: RadixKey, V: Pod>(stream: &Stream, data: PairsMut<K, V>, options: &Options) -> Result<(), Error> {
    let mut copy = Spare::new(stream, data.keys.len())?;
    let copy = copy.target(stream)?;
    let from = if size_of::<V>() == 0 { PairsMut { keys: copy.keys, values: data.values } } else { copy };
    copy_all(stream, data.as_const(), from)?;
    sort_to(stream, from.as_const(), data, options)
}

fn sort_between<K: RadixKey, V: Pod>(
    stream: &Stream,
    first: PairsMut<K, V>,
    second: PairsMut<K, V>,
    options: &Options,
) -> Result<Side, Error> {
    let Some(digits) = options.digits(sign_of::<K>(), bits_of::<K>())? else { return Ok(Side::First) };
    let to_second = || sort_to(stream, first.as_const(), second, options).map(|()| Side::Second);
    let (Some(first_keys), Some(second_keys)) = (as_codes(first.keys), as_codes(second.keys)) else {
        return to_second();
    };
    let first = PairsMut { keys: first_keys, values: first.values };
    let second = PairsMut { keys: second_keys, values: second.values };
    carried!(V => () | u32 | u64 | Line, (first, second), |(first, second)| {
        if let Some(chunks) = Chunks::of(first.as_const(), digits) {
            chunks.sort(stream, first.as_const(), first)?;
            if first.keys.len() <= chunks.len {
                return Ok(Side::First);
            }
            chunks.place(stream, first.as_const(), second)?;
            return Ok(Side::Second);
        }
        run_passes(stream, first.as_const(), [second, first], digits, digits.passes())?;
        Ok(if digits.passes() % 2 == 1 { Side::Second } else { Side::First })
    }, else |_| to_second())
}

/// Runs all passes. The first one reads `from`; each later one reads what the previous one wrote. They write to the two
/// targets in turn.
fn run_passes<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    targets: [PairsMut<K, V>; 2],
    digits: B,
    count: u32,
) -> Result<(), Error> {
    let mut passes = Passes::count::<K, V>(stream, from.keys, digits, count)?;
    let mut source = from;
    for pass in 0..count {
        let target = targets[pass as usize % 2];
        passes.run(stream, count, pass, source, target)?;
        source = target.as_const();
    }
    Ok(())
}

fn copy_all<K: Pod, V: Pod>(stream: &Stream, from: Pairs<K, V>, to: PairsMut<K, V>) -> Result<(), Error> {
    transfer::copy_columns(stream, from.keys.into(), to.keys.into())?;
    transfer::copy_columns(stream, from.values.into(), to.values.into())
}
