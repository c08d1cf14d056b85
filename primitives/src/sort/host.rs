//! Host functions of the sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::chunks::Chunks;
use super::distribute::{Passes, Spare};
use super::{Buckets, Digits, RadixCode, RadixKey, as_codes, as_codes_mut};
use crate::runtime::carrier::carried;
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::transfer::{self, Line};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len};
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
    let (input, output) = (input.into(), output.into());
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
    let from = Pairs::new(stream, input.0.into(), input.1.into(), "the values of a sort")?;
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
    sort_in_place::<K, ()>(stream, PairsMut::keys(stream, keys.into())?, &options)
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
    sort_in_place(stream, PairsMut::new(stream, pairs.0.into(), pairs.1.into(), "the values of a sort")?, &options)
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
    let (first_keys, second_keys) = (first.0.into(), second.0.into());
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
/// sort::pairs_by(&stream, (&keys, &positions), (&mut sorted, &mut order), Modulo { divisor: 10 }, 1)?;
/// assert_eq!(sorted.to_vec(&stream)?, [20, 2, 15, 7]);
/// assert_eq!(order.to_vec(&stream)?, [2, 3, 0, 1]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`keys`]; [`Error::TooMany`] for zero passes, or for more passes than there are digits;
/// [`Error::NoInstance`] on a GPU if the digits type was not instantiated there.
pub fn pairs_by<'a, K: RadixKey, V: Pod, B: Buckets<K::Code>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    digits: B,
    passes: u32,
) -> Result<(), Error> {
    let from = Pairs::new(stream, input.0.into(), input.1.into(), "the values of a sort")?;
    let to = sorted_pairs(stream, from.keys.len(), output.0.into(), output.1.into())?;
    if passes == 0 || passes as usize > B::MAX_PASSES {
        return Err(Error::TooMany { what: "passes of a sort", asked: passes as usize, limit: B::MAX_PASSES });
    }
    let (from, to) = (from.coded(), to.coded());
    if from.keys.is_empty() {
        return Ok(());
    }
    carried!(V => () | u32 | u64 | Line, (from, to), |(from, to)| {
        if passes == 1 {
            return run_passes(stream, from, [to, to], digits, passes);
        }
        let mut spare = Spare::new(stream, from.keys.len())?;
        let spare = spare.target(stream)?;
        // The last pass writes to the output, so with an odd number of passes the first one does too.
        run_passes(stream, from, if passes % 2 == 1 { [to, spare] } else { [spare, to] }, digits, passes)
    })
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

fn sort_to<K: RadixKey, V: Pod>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    options: &Options,
) -> Result<(), Error> {
    let digits = options.digits::<K>()?;
    let (from, to) = (from.coded(), to.coded());
    carried!(V => () | u32 | u64 | Line, (from, to), |(from, to)| {
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
                    return chunks.place(stream, spare.as_const(), to);
                }
                // The last pass writes to the output, so with an odd number of passes the first one does too.
                let turns = if digits.passes() % 2 == 1 { [to, spare] } else { [spare, to] };
                run_passes(stream, from, turns, digits, digits.passes())
            }
        }
    })
}

fn sort_in_place<K: RadixKey, V: Pod>(stream: &Stream, data: PairsMut<K, V>, options: &Options) -> Result<(), Error> {
    let Some(digits) = options.digits::<K>()? else { return Ok(()) };
    let data = data.coded();
    carried!(V => () | u32 | u64 | Line, data, |data| {
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
    })
}

fn sort_between<K: RadixKey, V: Pod>(
    stream: &Stream,
    first: PairsMut<K, V>,
    second: PairsMut<K, V>,
    options: &Options,
) -> Result<Side, Error> {
    let Some(digits) = options.digits::<K>()? else { return Ok(Side::First) };
    let (first, second) = (first.coded(), second.coded());
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
    })
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
    transfer::copy_views(stream, from.keys, to.keys)?;
    transfer::copy_views(stream, from.values, to.values)
}

impl<K: RadixKey, V: Pod> Pairs<K, V> {
    /// Returns the same keys as codes.
    fn coded(self) -> Pairs<K::Code, V> {
        Pairs { keys: as_codes(self.keys), values: self.values }
    }
}

impl<K: RadixKey, V: Pod> PairsMut<K, V> {
    fn coded(self) -> PairsMut<K::Code, V> {
        PairsMut { keys: as_codes_mut(self.keys), values: self.values }
    }
}
