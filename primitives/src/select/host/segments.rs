//! Host functions of segmented compaction.

#![deny(unsafe_op_in_unsafe_fn)]

use super::{Items, Job, by_predicate, key_operands, pair_operands, run_select};
use crate::arch::warp::LANES;
#[cfg(feature = "testing")]
use crate::hole::RegisterRepr;
use crate::host::repr::expect_repr;
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec, number};
use crate::host::runtime::offsets::{Offsets, Trust, expect_offsets, invalid_offset};
use crate::host::source::{Elements, Source};
use crate::pairs::{Pairs, PairsMut};
use crate::select::device::kernel::{select_segments, select_segments_flagged};
use crate::select::device::predicate::{Flags, HolePredicate, Keep, Predicate};
use crate::select::device::segments::{CheckOffsets, MoveOffsets, NoteShape, Offset, THREADS, Within};
use crate::transform::InMemory;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream};
use bytemuck::Pod;

/// Keeps the items that pass, segment by segment, and returns the new offsets: as many as before, starting with 0.
///
/// Segment `s` is `input[offsets[s]..offsets[s + 1]]`. Its kept items become `output[new[s]..new[s + 1]]`. Items before
/// the first offset and after the last one belong to no segment and are dropped. `output` has at least as many elements
/// as `input`. Elements after the last segment are not changed. If only the device knows how many segments there are, the offsets
/// are [counted](crate::source::counted) by this number, and new offsets beyond it are those of empty segments.
///
/// Waits for the stream: the offsets are checked on the device before anything is written. With [`Offsets::unchecked`] it
/// does not wait. If that promise is broken, the contents of the output and the new offsets are unspecified, although no
/// new offset exceeds the number of items kept.
///
/// ```
/// use gpu_primitives::select::{self, Masked};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[1u32, 2, 3, 4, 5, 6])?;
/// let offsets = stream.upload(&[0u32, 3, 3, 6])?;
/// let mut output = stream.zeroed::<u32>(6)?;
/// let offsets = select::segmented(&stream, &input, &offsets, &mut output, Masked::equal(1, 0))?;
/// assert_eq!(offsets.to_vec(&stream)?, [0, 1, 1, 3]);
/// assert_eq!(output.slice(..3)?.to_vec(&stream)?, [2, 4, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOffsets`] if an offset is less than the previous one or greater than `input.len()`, or
/// [`Error::LengthMismatch`] if there is no offset or the output is too short: nothing is written in these cases.
/// The errors of [`select`](super::select); any launch error.
pub fn segmented<'a, 'b, 'c, T: Pod, O: Offset, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    offsets: impl Into<Offsets<'b, O>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    const { expect_repr::<T>() };
    let (input, offsets) = (input.into_parts()?.elements(), offsets.into());
    let _span = crate::span!(stream, "select::segmented", offsets.len());
    let keep = HolePredicate::of::<T, P>(predicate);
    Ok(keys_by_segments(stream, input, AnyOffsets::of(offsets), output.into().into(), keep)?.into_typed())
}

/// [`segmented`] for pairs whose keys pass.
///
/// # Errors
/// Same as [`segmented`], and [`Error::LengthMismatch`] if there are not as many values as keys.
pub fn segmented_pairs<'a, 'b, 'c, 'd, 'e, K: Pod, V: Pod, O: Offset, P: Predicate<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    offsets: impl Into<Offsets<'c, O>>,
    output: (impl Into<DeviceSliceMut<'d, K>>, impl Into<DeviceSliceMut<'e, V>>),
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "select::segmented_pairs", offsets.len());
    let input = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let output = (output.0.into().into(), output.1.into().into());
    let keep = HolePredicate::of::<K, P>(predicate);
    Ok(pairs_by_segments(stream, input, AnyOffsets::of(offsets), output, keep)?.into_typed())
}

/// What error messages call the input.
const INPUT: &str = "the input of a selection in segments";

fn keys_by_segments(
    stream: &Stream,
    input: Elements<'_>,
    offsets: AnyOffsets<'_>,
    output: AnySliceMut<'_>,
    keep: HolePredicate,
) -> Result<AnyVec, Error> {
    let input = InMemory::new(stream, input.of_known_len(INPUT)?)?;
    by_segments(stream, key_operands(stream, input.as_slice(), output)?, offsets, keep)
}

fn pairs_by_segments(
    stream: &Stream,
    (keys, values): (Elements<'_>, Elements<'_>),
    offsets: AnyOffsets<'_>,
    output: (AnySliceMut<'_>, AnySliceMut<'_>),
    keep: HolePredicate,
) -> Result<AnyVec, Error> {
    let input = InMemory::pairs(stream, (keys.of_known_len(INPUT)?, values.of_known_len(INPUT)?))?;
    by_segments(stream, pair_operands(stream, (input.0.as_slice(), input.1.as_slice()), output)?, offsets, keep)
}

fn by_segments(stream: &Stream, items: Items, offsets: AnyOffsets<'_>, keep: HolePredicate) -> Result<AnyVec, Error> {
    let bounds = Bounds::new(stream, offsets, items.0.keys.len())?;
    by_predicate(stream, items, keep, Segments { bounds: &bounds })
}

/// [`Offsets`] whose type is known by its size alone.
#[derive(Clone, Copy)]
struct AnyOffsets<'a> {
    slice: AnySlice<'a>,
    segments: Option<DeviceSlice<'a, u64>>,
    trust: Trust,
}

impl<'a> AnyOffsets<'a> {
    fn of<O: Offset>(offsets: Offsets<'a, O>) -> Self {
        Self { slice: offsets.as_slice().into(), segments: offsets.segments(), trust: offsets.trust() }
    }

    /// Returns the offsets as a type of their size.
    fn typed<O: Offset>(self) -> Offsets<'a, O> {
        Offsets::promised(self.slice.typed().expect("offsets are aligned")).counted(self.segments)
    }
}

/// Offsets that the device has checked, or will check.
struct Bounds<'a> {
    stream: &'a Stream,
    offsets: AnyOffsets<'a>,
    /// The first and the last offset, clamped to the items.
    range: DeviceVec<u64>,
    /// The number of items.
    len: usize,
}

/// Evaluates an expression with offsets in their type.
macro_rules! typed {
    ($offsets:expr, |$typed:ident: $name:ident| $body:expr) => {
        number!($offsets.slice.size() => $name, {
            let $typed = $offsets.typed::<$name>();
            $body
        })
    };
}

impl<'a> Bounds<'a> {
    fn new(stream: &'a Stream, offsets: AnyOffsets<'a>, len: usize) -> Result<Self, Error> {
        expect_offsets(offsets.slice.len())?;
        let mut range = stream.uninit::<u64>(2)?;
        let mut invalid = DeviceValue::new(stream, u64::MAX)?;
        let (range_view, invalid_view) = (range.raw_view_mut(stream)?, invalid.as_mut_slice().raw_view_mut(stream)?);
        typed!(offsets, |offsets: O| {
            let kernel = CheckOffsets::<O>::new(offsets.open(stream)?, len as u64, range_view, invalid_view);
            // SAFETY: one thread per offset.
            unsafe { stream.launch(kernel, offsets.len().div_ceil(THREADS as usize))? };
        });
        if offsets.trust == Trust::Check {
            let invalid = invalid.get(stream)?;
            if invalid != u64::MAX {
                return Err(typed!(offsets, |offsets: O| invalid_offset(
                    stream,
                    offsets.as_slice(),
                    invalid as usize,
                    len
                )));
            }
        }
        Ok(Self { stream, offsets, range, len })
    }
}

/// What was kept of the items, as the kernel noted it.
struct Notes {
    shape: NoteShape,
    flags: DeviceVec<u32>,
    lanes: DeviceVec<u64>,
    rows: DeviceVec<u64>,
}

#[derive(Clone, Copy)]
struct Segments<'a> {
    bounds: &'a Bounds<'a>,
}

impl Segments<'_> {
    /// Writes the new offsets.
    fn moved(self, notes: &Notes, count: &DeviceValue<u64>, output: &mut AnyVec) -> Result<(), Error> {
        let &Bounds { stream, offsets, len, .. } = self.bounds;
        typed!(offsets, |offsets: O| {
            let mut output = output.as_mut_slice().typed::<O>().expect("the new offsets have the type of the old ones");
            let kernel = MoveOffsets::new(
                offsets.open(stream)?,
                output.raw_view_mut(stream)?,
                len as u64,
                notes.shape,
                notes.flags.raw_view(stream)?,
                notes.lanes.raw_view(stream)?,
                notes.rows.raw_view(stream)?,
                count.as_slice().raw_view(stream)?,
            );
            // SAFETY: one thread per offset; the notes come from this selection and have the same shape.
            unsafe { stream.launch(kernel, offsets.len().div_ceil(THREADS as usize)) }
        })
    }

    /// Selects the items, and returns the new offsets.
    fn run<K: Pod, V: Pod, F: Keep<K>, const BLOCK: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
        test: F,
    ) -> Result<AnyVec, Error> {
        let Bounds { stream, range, len, offsets } = self.bounds;
        let mut moved = AnyVec::uninit(stream, offsets.slice.size(), offsets.slice.len())?;
        let runs = len.div_ceil(BLOCK as usize * VEC * ROWS) * (BLOCK / LANES) as usize;
        let mut notes = Notes {
            shape: NoteShape { vec: VEC as u32, rows: ROWS as u32 },
            flags: stream.uninit(runs * LANES as usize)?,
            lanes: stream.uninit(runs * LANES as usize)?,
            rows: stream.uninit(runs * ROWS)?,
        };
        let keep = Within {
            test,
            range: range.raw_view(stream)?,
            flags: notes.flags.raw_view_mut(stream)?,
            lanes: notes.lanes.raw_view_mut(stream)?,
            rows: notes.rows.raw_view_mut(stream)?,
        };
        let count = run_select::<K, V, Within<F>, BLOCK, VEC, ROWS>(stream, from, to, keep)?;
        self.moved(&notes, &count, &mut moved)?;
        Ok(moved)
    }
}

impl Job for Segments<'_> {
    type Output = AnyVec;

    fn by_predicate(self, items: Items, keep: HolePredicate) -> Result<Option<AnyVec>, Error> {
        select_segments!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            self.run::<K, V, _, 256, VEC, ROWS>(from, to, keep).map(Some)
        }, else Ok(None))
    }

    fn by_flags(self, items: Items, flags: Flags) -> Result<Option<AnyVec>, Error> {
        select_segments_flagged!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            self.run::<K, V, _, 256, VEC, ROWS>(from, to, flags).map(Some)
        }, else Ok(None))
    }
}

/// [`segmented`] with a given tile shape.
///
/// # Errors
/// Those of [`segmented`].
#[cfg(feature = "testing")]
pub fn segmented_shaped<
    T: RegisterRepr,
    O: Offset,
    P: Predicate<T>,
    const BLOCK: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    offsets: Offsets<'_, O>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    let items = key_operands(stream, input.into(), output.into())?;
    let (from, to) = (items.0.as_types::<T, ()>(), items.1.as_types());
    let bounds = Bounds::new(stream, AnyOffsets::of(offsets), from.keys.len())?;
    let test = HolePredicate::of::<T, P>(predicate);
    Ok(Segments { bounds: &bounds }.run::<T, (), HolePredicate, BLOCK, VEC, ROWS>(from, to, test)?.into_typed())
}
