//! Run-length encoding and decoding.

use super::compact::{Kept, Which};
use super::reduce::Values;
#[cfg(feature = "testing")]
use crate::DeviceSlice;
use crate::equality::{Equality, HoleEquality};
#[cfg(feature = "testing")]
use crate::hole::RegisterRepr;
use crate::host::repr::expect_repr;
use crate::host::runtime::column::{AnySliceMut, Column, ColumnMut, number};
use crate::host::source::{self, AnySource, Elements, Source};
use crate::input::Count;
use crate::map::Map;
use crate::monoid::{HoleMonoid, Sum};
use crate::operator::{monoid, operator};
use crate::runs::device::compact::compact_lengths;
use crate::runs::device::expand::{ExpandRuns, SplitRuns, THREADS, TILE};
use crate::runs::device::run_outputs::Lengths;
use crate::select::Offset;
use crate::transform::InMemory;
use crate::{DeviceSliceMut, DeviceValue, Error, Global, Stream, expect_len, expect_room, scan};
use bytemuck::{Pod, Zeroable};

/// The length of a run: `u32` or `u64`.
pub trait Length: Offset {
    /// Converts it to 64 bits.
    #[doc(hidden)]
    type Widen: Map<Self, Output = u64>;

    #[doc(hidden)]
    fn widen() -> Self::Widen;
}

/// Converts a length to 64 bits.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Widen;

macro_rules! lengths {
    ($($type:ty)*) => { $(
        #[operator]
        impl Map<$type> for Widen {
            type Output = u64;

            #[inline(always)]
            fn map(&self, length: $type) -> u64 {
                length as u64
            }
        }

        impl Length for $type {
            type Widen = Widen;

            fn widen() -> Widen {
                Widen
            }
        }
    )* };
}

lengths!(u32 u64);

/// Run-length encodes: writes the first element and the length of each run, in order, and returns the number of runs. Does
/// not wait.
///
/// Both outputs have at least as many elements as `input`. What follows the last run is not changed. A length that a `u32`
/// cannot hold is truncated.
///
/// Elements of 4 and 8 bytes take one pass. Others are marked first, which takes temporary memory of a byte per element, and
/// the marks are counted.
///
/// # Errors
/// [`Error::LengthMismatch`] if an output is too short; any launch error.
pub fn run_length_encode<'a, 'b, 'c, T: Pod, C: Length, E: Equality<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    (elements, lengths): (impl Into<DeviceSliceMut<'b, T>>, impl Into<DeviceSliceMut<'c, C>>),
    equality: E,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let (input, elements, lengths) = (input.into_parts()?.lower(), elements.into(), lengths.into());
    let _span = crate::span!(stream, "runs::run_length_encode", input.len());
    encode_runs(stream, &input, elements.into(), lengths.into(), HoleEquality::of::<T, E>(equality))
}

pub(super) fn encode_runs(
    stream: &Stream,
    input: &AnySource<'_>,
    mut elements: AnySliceMut<'_>,
    mut lengths: AnySliceMut<'_>,
    equality: HoleEquality,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the elements of encoded runs", input.len(), elements.len())?;
    expect_room("the lengths of encoded runs", input.len(), lengths.len())?;
    let (len, counted, input) = (input.len(), input.counted(stream)?, input.open(stream)?);
    let kept = Kept { len, which: Which::First, equality };
    let elements = elements.raw_view_mut(stream)?;
    let lengths = lengths.raw_view_mut(stream)?;
    compact_lengths!((elements.size(), lengths.size()) => (H, C, VEC, ROWS), {
        if let (Some(elements), Some(lengths)) = (elements.typed::<H>(), lengths.typed::<C>()) {
            return kept.launch_from::<H, _, VEC, ROWS>(stream, &input, elements, Lengths(lengths));
        }
    }, else ());
    number!(lengths.size() => C, {
        let mut marks = stream.uninit(len)?;
        let count = kept.mark(stream, &input, elements, &mut marks)?;
        let ones = source::constant::<C>(1, len).into_parts()?.lower().open(stream)?;
        let values = Values { len, input: &ones, totals: lengths, operation: HoleMonoid::of::<C, Sum>(Sum) };
        values.reduce(stream, &marks, Count::new(len, counted))?;
        Ok(count)
    })
}

/// [`run_length_encode`] with a given tile shape.
///
/// # Errors
/// Those of [`run_length_encode`].
#[cfg(feature = "testing")]
pub fn run_length_encode_shaped<
    H: RegisterRepr,
    C: Length,
    E: Equality<H>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    stream: &Stream,
    input: DeviceSlice<'_, H>,
    (mut elements, mut lengths): (DeviceSliceMut<'_, H>, DeviceSliceMut<'_, C>),
    equality: E,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the elements of encoded runs", input.len(), elements.len())?;
    expect_room("the lengths of encoded runs", input.len(), lengths.len())?;
    let kept = Kept { len: input.len(), which: Which::First, equality: HoleEquality::of::<H, E>(equality) };
    let (elements, lengths) = (elements.raw_view_mut(stream)?, Lengths(lengths.raw_view_mut(stream)?));
    kept.launch::<_, _, _, THREADS, VEC, ROWS>(stream, input.raw_view(stream)?, elements, lengths)
}

/// Run-length decodes: writes each element as often as its length says, in order, and returns the sum of the lengths. Does
/// not wait.
///
/// If the output is shorter than that, it gets what it has room for. If it is longer, the rest is not changed. Lengths may
/// be 0. A sum that a `u64` cannot hold is given as `u64::MAX`.
///
/// Elements have any size from 1 byte to 64 KiB. Temporary memory: 8 bytes per run.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many lengths as elements; any launch error.
pub fn run_length_decode<'a, 'b, 'c, T: Pod, C: Length>(
    stream: &Stream,
    (elements, lengths): (impl Source<'a, T>, impl Source<'b, C>),
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<DeviceValue<u64>, Error> {
    const { assert!(size_of::<T>() > 0 && size_of::<T>() <= 1 << 16, "decoded elements have 1 byte to 64 KiB") };
    let (elements, output) = (elements.into_parts()?.elements(), output.into());
    let _span = crate::span!(stream, "runs::run_length_decode", elements.len());
    let lengths = source::map(lengths, C::widen()).into_parts()?.lower();
    decode_runs(stream, elements, lengths, output.into())
}

fn decode_runs(
    stream: &Stream,
    elements: Elements<'_>,
    lengths: AnySource<'_>,
    mut output: AnySliceMut<'_>,
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the lengths of runs", elements.len(), lengths.len())?;
    let runs = lengths.len();
    if runs == 0 {
        return DeviceValue::new(stream, 0);
    }
    let (lengths, elements) = lengths.in_step_with(elements)?;
    let elements = InMemory::new(stream, elements)?;
    let count = Count::new(runs, lengths.counted(stream)?);
    let mut ends = stream.uninit::<u64>(runs)?;
    let sum = monoid!(0, |a: u64, b: u64| if a.wrapping_add(b) < a { u64::MAX } else { a.wrapping_add(b) });
    scan::inclusive_any(stream, &lengths, ends.as_mut_slice().into(), HoleMonoid::of::<u64, _>(sum))?;

    let tiles = (runs + output.len()).div_ceil(TILE);
    let mut splits = stream.uninit::<u64>(tiles + 1)?;
    let mut total = DeviceValue::uninit(stream)?;
    let room = output.len() as u64;
    let kernel = SplitRuns::new(
        ends.raw_view(stream)?,
        count,
        room,
        splits.raw_view_mut(stream)?,
        total.as_mut_slice().raw_view_mut(stream)?,
    );
    // SAFETY: one thread per split; the ends do not decrease, since their sum does not wrap.
    unsafe { stream.launch(kernel, (tiles + 1).div_ceil(THREADS as usize))? };
    let expansion = Expansion { tiles, count, room, ends: ends.raw_view(stream)?, splits: splits.raw_view(stream)? };
    let (elements, output) = (elements.as_slice().raw_view(stream)?, output.raw_view_mut(stream)?);
    match elements.address().addr() | output.as_const().address().addr() | elements.size() {
        bits if bits % 8 == 0 => expansion.run::<u64>(stream, elements, output)?,
        bits if bits % 4 == 0 => expansion.run::<u32>(stream, elements, output)?,
        bits if bits % 2 == 0 => expansion.run::<u16>(stream, elements, output)?,
        _ => expansion.run::<u8>(stream, elements, output)?,
    }
    Ok(total)
}

/// The last step of decoding, except for the elements.
struct Expansion {
    tiles: usize,
    count: Count,
    room: u64,
    ends: Global<u64>,
    splits: Global<u64>,
}

impl Expansion {
    /// Writes the elements, in words that divide their size and both addresses.
    fn run<W: Pod>(&self, stream: &Stream, elements: Column, output: ColumnMut) -> Result<(), Error> {
        let words = (elements.size() / size_of::<W>()) as u32;
        let Self { tiles, count, room, ends, splits } = *self;
        let kernel = ExpandRuns::<W>::new(elements.words(), words, ends, count, room, splits, output.words());
        // SAFETY: one block per tile; the splits are those of these runs, and there is an element for each run.
        unsafe { stream.launch(kernel, tiles) }
    }
}
