//! Host functions of the sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::chunks::Chunks;
use super::distribute::{Passes, Source, Spare, Target, expect_len, no_values, no_values_mut};
use super::{Buckets, Digits, RadixCode, RadixKey, as_codes, as_codes_mut};
use crate::runtime::carrier::carried;
use crate::transfer;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream};
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

    /// Returns the digits for a key type; `None` if the bit range is empty.
    fn digits<K: RadixKey>(&self) -> Result<Option<Digits>, Error> {
        let bits = self.bits.clone().unwrap_or(0..K::Code::BITS);
        if bits.start > bits.end || bits.end > K::Code::BITS {
            return Err(Error::BitRange { start: bits.start, end: bits.end, bits: K::Code::BITS });
        }
        Ok((!bits.is_empty()).then(|| Digits::new(K::SIGN, bits.start, bits.end, self.descending)))
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
/// [`Error::LengthMismatch`], [`Error::BitRange`], or [`Error::OutOfMemory`] for the second buffer: nothing is written
/// in these cases. Any launch error.
pub fn keys<'a, K: RadixKey>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    options: Options,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    expect_len("the output of a sort", input.len(), output.len())?;
    let from = Source { keys: input.raw_view(stream)?, values: no_values() };
    let to = Target { keys: output.raw_view_mut(stream)?, values: no_values_mut() };
    sort_to::<K, ()>(stream, from, to, &options)
}

/// Sorts keys together with their values into other buffers.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, K: RadixKey, V: Pod>(
    stream: &Stream,
    keys_in: impl Into<DeviceSlice<'a, K>>,
    values_in: impl Into<DeviceSlice<'a, V>>,
    keys_out: impl Into<DeviceSliceMut<'a, K>>,
    values_out: impl Into<DeviceSliceMut<'a, V>>,
    options: Options,
) -> Result<(), Error> {
    let (keys_in, values_in) = (keys_in.into(), values_in.into());
    let (mut keys_out, mut values_out) = (keys_out.into(), values_out.into());
    expect_len("the values of a sort", keys_in.len(), values_in.len())?;
    expect_len("the output of a sort", keys_in.len(), keys_out.len())?;
    expect_len("the values' output of a sort", keys_in.len(), values_out.len())?;
    let from = Source { keys: keys_in.raw_view(stream)?, values: values_in.raw_view(stream)? };
    let to = Target { keys: keys_out.raw_view_mut(stream)?, values: values_out.raw_view_mut(stream)? };
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
    let mut keys = keys.into();
    let data = Target { keys: keys.raw_view_mut(stream)?, values: no_values_mut() };
    sort_in_place::<K, ()>(stream, data, &options)
}

/// Sorts keys and values in place, with second buffers of the same size from the device's pool.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_in_place<'a, K: RadixKey, V: Pod>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    values: impl Into<DeviceSliceMut<'a, V>>,
    options: Options,
) -> Result<(), Error> {
    let (mut keys, mut values) = (keys.into(), values.into());
    expect_len("the values of a sort", keys.len(), values.len())?;
    let data = Target { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? };
    sort_in_place(stream, data, &options)
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
    let (mut first, mut second) = (first.into(), second.into());
    expect_len("the second buffer of a sort", first.len(), second.len())?;
    let first = Target { keys: first.raw_view_mut(stream)?, values: no_values_mut() };
    let second = Target { keys: second.raw_view_mut(stream)?, values: no_values_mut() };
    sort_between::<K, ()>(stream, first, second, &options)
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
    let (mut first_keys, mut first_values) = (first.0.into(), first.1.into());
    let (mut second_keys, mut second_values) = (second.0.into(), second.1.into());
    for (what, found) in [
        ("the values of a sort", first_values.len()),
        ("the second buffer of a sort", second_keys.len()),
        ("the values' second buffer of a sort", second_values.len()),
    ] {
        expect_len(what, first_keys.len(), found)?;
    }
    let first = Target { keys: first_keys.raw_view_mut(stream)?, values: first_values.raw_view_mut(stream)? };
    let second = Target { keys: second_keys.raw_view_mut(stream)?, values: second_values.raw_view_mut(stream)? };
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
    if keys.len() > 1 << 32 {
        return Err(Error::TooLong { what: "argsort with 32-bit indices", len: keys.len(), limit: 1 << 32 });
    }
    let mut indices = stream.uninit::<u32>(keys.len())?;
    transfer::iota(stream, &mut indices, 0)?;
    let mut order = stream.uninit::<u32>(keys.len())?;
    let mut sorted = stream.uninit::<K>(keys.len())?;
    pairs(stream, keys, &indices, &mut sorted, &mut order, options)?;
    Ok(order)
}

/// Sorts keys together with their values by digits computed from the keys. The digit of the last pass is the most
/// significant, then that of the pass before it, and so on. Pairs with equal digits keep their order.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::sort::{self, Buckets};
/// use gpu_primitives::{Device, Error};
///
/// /// Orders keys by their remainder.
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Modulo {
///     divisor: u32,
/// }
///
/// impl Buckets<u32> for Modulo {
///     const MAX_PASSES: usize = 1;
///     fn bucket(&self, key: u32, _: u32) -> u32 {
///         key % self.divisor
///     }
///     fn last(&self, _: u32) -> u32 {
///         self.divisor - 1
///     }
/// }
///
/// let stream = Device::cpu().stream()?;
/// let keys = stream.upload(&[15u32, 7, 20, 2])?;
/// let (mut sorted, mut order) = (stream.uninit::<u32>(4)?, stream.uninit::<u32>(4)?);
/// let positions = stream.upload(&[0u32, 1, 2, 3])?;
/// sort::pairs_by(&stream, &keys, &positions, &mut sorted, &mut order, Modulo { divisor: 10 }, 1)?;
/// assert_eq!(sorted.to_vec(&stream)?, [20, 2, 15, 7]);
/// assert_eq!(order.to_vec(&stream)?, [2, 3, 0, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`keys`]; [`Error::TooMany`] for zero passes, or for more passes than there are digits;
/// [`Error::NoInstance`] on a GPU if the digits type was not instantiated there.
#[allow(clippy::too_many_arguments, reason = "two inputs, two outputs, and what is asked for")]
pub fn pairs_by<'a, K: RadixKey, V: Pod, B: Buckets<K::Code>>(
    stream: &Stream,
    keys_in: impl Into<DeviceSlice<'a, K>>,
    values_in: impl Into<DeviceSlice<'a, V>>,
    keys_out: impl Into<DeviceSliceMut<'a, K>>,
    values_out: impl Into<DeviceSliceMut<'a, V>>,
    digits: B,
    passes: u32,
) -> Result<(), Error> {
    let (keys_in, values_in) = (keys_in.into(), values_in.into());
    let (mut keys_out, mut values_out) = (keys_out.into(), values_out.into());
    expect_len("the values of a sort", keys_in.len(), values_in.len())?;
    expect_len("the output of a sort", keys_in.len(), keys_out.len())?;
    expect_len("the values' output of a sort", keys_in.len(), values_out.len())?;
    if passes == 0 || passes as usize > B::MAX_PASSES {
        return Err(Error::TooMany { what: "passes of a sort", asked: passes as usize, limit: B::MAX_PASSES });
    }
    let from = Source { keys: keys_in.raw_view(stream)?, values: values_in.raw_view(stream)? }.coded();
    let to = Target { keys: keys_out.raw_view_mut(stream)?, values: values_out.raw_view_mut(stream)? }.coded();
    if from.keys.is_empty() {
        return Ok(());
    }
    carried!(V, from.values, to.values, |from_values, to_values| {
        let from = Source { keys: from.keys, values: from_values };
        let to = Target { keys: to.keys, values: to_values };
        if passes == 1 {
            return run_passes(stream, from, [to, to], digits, passes);
        }
        let mut spare = Spare::new(stream, from.keys.len())?;
        let spare = spare.target(stream)?;
        // The last pass writes to the output, so with an odd number of passes the first one does too.
        run_passes(stream, from, if passes % 2 == 1 { [to, spare] } else { [spare, to] }, digits, passes)
    })
}

fn sort_to<K: RadixKey, V: Pod>(
    stream: &Stream,
    from: Source<K, V>,
    to: Target<K, V>,
    options: &Options,
) -> Result<(), Error> {
    let digits = options.digits::<K>()?;
    let (from, to) = (from.coded(), to.coded());
    carried!(V, from.values, to.values, |from_values, to_values| {
        let from = Source { keys: from.keys, values: from_values };
        let to = Target { keys: to.keys, values: to_values };
        match digits {
            None => copy_all(stream, from, to),
            Some(digits) => {
                let chunks = Chunks::of(from, digits);
                if let Some(chunk) = chunks.filter(|chunks| from.keys.len() <= chunks.len) {
                    return chunk.sort(stream, from, to);
                }
                let mut spare = Spare::new(stream, from.keys.len())?;
                let spare = spare.target(stream)?;
                if let Some(chunks) = chunks {
                    chunks.sort(stream, from, spare)?;
                    return chunks.place(stream, spare.as_source(), to);
                }
                // The last pass writes to the output, so with an odd number of passes the first one does too.
                let turns = if digits.passes() % 2 == 1 { [to, spare] } else { [spare, to] };
                run_passes(stream, from, turns, digits, digits.passes())
            }
        }
    })
}

fn sort_in_place<K: RadixKey, V: Pod>(stream: &Stream, data: Target<K, V>, options: &Options) -> Result<(), Error> {
    let Some(digits) = options.digits::<K>()? else { return Ok(()) };
    let data = data.coded();
    carried!(V, data.values.as_const(), data.values, |_from, values| {
        let data = Target { keys: data.keys, values };
        let chunks = Chunks::of(data.as_source(), digits);
        if let Some(chunk) = chunks.filter(|chunks| data.keys.len() <= chunks.len) {
            return chunk.sort(stream, data.as_source(), data);
        }
        let mut spare = Spare::new(stream, data.keys.len())?;
        let spare = spare.target(stream)?;
        if let Some(chunks) = chunks {
            chunks.sort(stream, data.as_source(), spare)?;
            return chunks.place(stream, spare.as_source(), data);
        }
        run_passes(stream, data.as_source(), [spare, data], digits, digits.passes())?;
        if digits.passes() % 2 == 1 { copy_all(stream, spare.as_source(), data) } else { Ok(()) }
    })
}

fn sort_between<K: RadixKey, V: Pod>(
    stream: &Stream,
    first: Target<K, V>,
    second: Target<K, V>,
    options: &Options,
) -> Result<Side, Error> {
    let Some(digits) = options.digits::<K>()? else { return Ok(Side::First) };
    let (first, second) = (first.coded(), second.coded());
    carried!(V, first.values.as_const(), second.values, |first_values, second_values| {
        let first = Target { keys: first.keys, values: writable(first_values) };
        let second = Target { keys: second.keys, values: second_values };
        if let Some(chunks) = Chunks::of(first.as_source(), digits) {
            chunks.sort(stream, first.as_source(), first)?;
            if first.keys.len() <= chunks.len {
                return Ok(Side::First);
            }
            chunks.place(stream, first.as_source(), second)?;
            return Ok(Side::Second);
        }
        run_passes(stream, first.as_source(), [second, first], digits, digits.passes())?;
        Ok(if digits.passes() % 2 == 1 { Side::Second } else { Side::First })
    })
}

/// Returns the writable view that a read-only view was made from.
fn writable<T: Pod>(view: Global<T>) -> GlobalMut<T> {
    // SAFETY: the caller made the view from a `Target`, which is writable.
    unsafe { GlobalMut::from_raw(view.as_ptr().cast_mut(), view.len()) }
}

/// Runs all passes. The first one reads `from`; each later one reads what the previous one wrote. They write to the two
/// targets in turn.
fn run_passes<K: Pod, V: Pod, B: Buckets<K>>(
    stream: &Stream,
    from: Source<K, V>,
    targets: [Target<K, V>; 2],
    digits: B,
    count: u32,
) -> Result<(), Error> {
    let mut passes = Passes::count::<K, V>(stream, from.keys, digits, count)?;
    let mut source = from;
    for pass in 0..count {
        let target = targets[pass as usize % 2];
        passes.run(stream, count, pass, source, target)?;
        source = target.as_source();
    }
    Ok(())
}

fn copy_all<K: Pod, V: Pod>(stream: &Stream, from: Source<K, V>, to: Target<K, V>) -> Result<(), Error> {
    transfer::copy_views(stream, from.keys, to.keys)?;
    transfer::copy_views(stream, from.values, to.values)
}

impl<K: RadixKey, V: Pod> Source<K, V> {
    /// Returns the same keys as codes.
    fn coded(self) -> Source<K::Code, V> {
        Source { keys: as_codes(self.keys), values: self.values }
    }
}

impl<K: RadixKey, V: Pod> Target<K, V> {
    fn coded(self) -> Target<K::Code, V> {
        Target { keys: as_codes_mut(self.keys), values: self.values }
    }
}
