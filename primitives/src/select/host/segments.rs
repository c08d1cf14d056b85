//! The host entries of segmented compaction.

use super::super::segments::{NoteShape, THREADS};
use super::super::{CheckOffsets, MoveOffsets, Offset, Predicate, Within};
use super::{KeysJob, Operands, PairsJob, Shape, for_keys, for_pairs, run_select};
use crate::arch::warp::LANES;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Global, Stream};
use bytemuck::Pod;

/// Keeps the items that pass, segment by segment, and gives the new offsets: as many as there were, beginning with 0.
///
/// Segment `s` is `input[offsets[s]..offsets[s + 1]]`; its items that pass become `output[new[s]..new[s + 1]]`. Items
/// before the first and behind the last offset belong to no segment and are dropped. `output` has at least as many elements
/// as `input`; those behind the last segment stay as they were.
///
/// Waits for the stream: the offsets are checked on the device before anything is written.
/// [`segments_assume_valid`] does not wait.
///
/// ```
/// use gpu_primitives::select::{self, Masked};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[1u32, 2, 3, 4, 5, 6])?;
/// let offsets = stream.upload(&[0u32, 3, 3, 6])?;
/// let mut output = stream.zeroed::<u32>(6)?;
/// let offsets = select::segments(&stream, &offsets, &input, &mut output, Masked::equal(1, 0))?;
/// assert_eq!(offsets.to_vec(&stream)?, [0, 1, 1, 3]);
/// assert_eq!(output.slice(..3)?.to_vec(&stream)?, [2, 4, 6]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOffsets`] if an offset is larger than the next one or than `input.len()`; [`Error::LengthMismatch`] if
/// there is no offset or the output is too short; [`Error::NoInstance`] on a GPU for a predicate or type that was not
/// instantiated there; what a launch can give. Nothing has been written then.
pub fn segments<'a, T: Pod, O: Offset, P: Predicate<T>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, O>>,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    let operands = Operands::keys(stream, input.into(), output.into())?;
    let offsets = Offsets::new(stream, offsets.into(), operands.input.len())?;
    offsets.verdict()?;
    for_keys::<T, _>(Segments { offsets, operands, predicate })
}

/// [`segments`] without waiting for the verdict about the offsets.
///
/// Offsets that are not valid give some new offsets, none larger than the number of items kept, and some selection; never
/// an access out of bounds.
///
/// # Errors
/// As [`segments`], except for the offsets.
pub fn segments_assume_valid<'a, T: Pod, O: Offset, P: Predicate<T>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, O>>,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    let operands = Operands::keys(stream, input.into(), output.into())?;
    let offsets = Offsets::new(stream, offsets.into(), operands.input.len())?;
    for_keys::<T, _>(Segments { offsets, operands, predicate })
}

/// [`segments`] of the pairs whose keys pass.
///
/// # Errors
/// As [`segments`]; [`Error::LengthMismatch`] also if there are not as many values as keys.
pub fn segments_pairs<'a, K: Pod, V: Pod, O: Offset, P: Predicate<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, O>>,
    keys: impl Into<DeviceSlice<'a, K>>,
    values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    let operands = Operands::pairs(stream, keys.into(), values.into(), output_keys.into(), output_values.into())?;
    let offsets = Offsets::new(stream, offsets.into(), operands.input.len())?;
    offsets.verdict()?;
    for_pairs(operands, SegmentsPairs { offsets, predicate })
}

/// [`segments_pairs`] without waiting for the verdict about the offsets, as [`segments_assume_valid`].
///
/// # Errors
/// As [`segments_pairs`], except for the offsets.
pub fn segments_pairs_assume_valid<'a, K: Pod, V: Pod, O: Offset, P: Predicate<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, O>>,
    keys: impl Into<DeviceSlice<'a, K>>,
    values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    predicate: P,
) -> Result<DeviceVec<O>, Error> {
    let operands = Operands::pairs(stream, keys.into(), values.into(), output_keys.into(), output_values.into())?;
    let offsets = Offsets::new(stream, offsets.into(), operands.input.len())?;
    for_pairs(operands, SegmentsPairs { offsets, predicate })
}

/// Offsets that the device is checking.
struct Offsets<'a, O> {
    stream: &'a Stream,
    offsets: Global<O>,
    /// The first and the last one, within the items.
    range: DeviceVec<u64>,
    /// The first one that is not valid, or `u64::MAX`.
    invalid: DeviceValue<u64>,
    len: usize,
}

impl<'a, O: Offset> Offsets<'a, O> {
    fn new(stream: &'a Stream, offsets: DeviceSlice<'_, O>, len: usize) -> Result<Self, Error> {
        if offsets.is_empty() {
            return Err(Error::LengthMismatch { what: "the segment offsets", expected: 1, found: 0 });
        }
        let offsets = offsets.view(stream)?;
        let mut range = stream.uninit::<u64>(2)?;
        let mut invalid = DeviceValue::new(stream, u64::MAX)?;
        let invalid_view = invalid.as_mut_slice().view_mut(stream)?;
        let kernel = CheckOffsets::new(offsets, len as u64, range.view_mut(stream)?, invalid_view);
        // SAFETY: one thread per offset.
        unsafe { stream.launch(kernel, offsets.len().div_ceil(THREADS as usize))? };
        Ok(Self { stream, offsets, range, invalid, len })
    }

    /// Waits until they are checked.
    fn verdict(&self) -> Result<(), Error> {
        match self.invalid.get(self.stream)? {
            u64::MAX => Ok(()),
            index => Err(Error::InvalidOffsets { index: index as usize, len: self.len }),
        }
    }
}

struct Segments<'a, K, O, P> {
    offsets: Offsets<'a, O>,
    operands: Operands<K, ()>,
    predicate: P,
}

impl<K: Pod, O: Offset, P: Predicate<K>> KeysJob for Segments<'_, K, O, P> {
    type Output = DeviceVec<O>;
    fn run<const THREADS: u32, const VEC: usize, const ROWS: usize>(self) -> Result<DeviceVec<O>, Error> {
        run::<K, (), O, P, THREADS, VEC, ROWS>(&self.offsets, self.operands, self.predicate)
    }
}

struct SegmentsPairs<'a, O, P> {
    offsets: Offsets<'a, O>,
    predicate: P,
}

impl<K: Pod, O: Offset, P: Predicate<K>> PairsJob<K> for SegmentsPairs<'_, O, P> {
    type Output = DeviceVec<O>;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        operands: Operands<K, V>,
    ) -> Result<DeviceVec<O>, Error> {
        run::<K, V, O, P, THREADS, VEC, ROWS>(&self.offsets, operands, self.predicate)
    }
}

fn run<K, V, O, P, const BLOCK: u32, const VEC: usize, const ROWS: usize>(
    offsets: &Offsets<'_, O>,
    operands: Operands<K, V>,
    predicate: P,
) -> Result<DeviceVec<O>, Error>
where
    K: Pod,
    V: Pod,
    O: Offset,
    P: Predicate<K>,
{
    let stream = offsets.stream;
    let runs = offsets.len.div_ceil(BLOCK as usize * VEC * ROWS) * (BLOCK / LANES) as usize;
    let mut flags = stream.uninit::<u32>(runs * LANES as usize)?;
    let mut lanes = stream.uninit::<u64>(runs * LANES as usize)?;
    let mut rows = stream.uninit::<u64>(runs * ROWS)?;
    let keep = Within {
        predicate,
        range: offsets.range.view(stream)?,
        flags: flags.view_mut(stream)?,
        lanes: lanes.view_mut(stream)?,
        rows: rows.view_mut(stream)?,
    };
    let count = run_select::<K, V, Within<P>, BLOCK, VEC, ROWS>(stream, operands, keep)?;
    let mut output = stream.uninit::<O>(offsets.offsets.len())?;
    let kernel = MoveOffsets::new(
        offsets.offsets,
        output.view_mut(stream)?,
        offsets.len as u64,
        NoteShape { vec: VEC as u32, rows: ROWS as u32 },
        flags.view(stream)?,
        lanes.view(stream)?,
        rows.view(stream)?,
        count.as_slice().view(stream)?,
    );
    // SAFETY: one thread per offset; the notes are those of the selection, of the same shape.
    unsafe { stream.launch(kernel, offsets.offsets.len().div_ceil(THREADS as usize))? };
    Ok(output)
}

/// [`segments`] with a tile shape of the caller's.
#[doc(hidden)]
pub fn segments_shaped<T: Pod, O: Offset, P: Predicate<T>, const BLOCK: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    offsets: DeviceSlice<'_, O>,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<BLOCK, VEC, ROWS>,
) -> Result<DeviceVec<O>, Error> {
    let operands = Operands::keys(stream, input, output)?;
    let offsets = Offsets::new(stream, offsets, operands.input.len())?;
    offsets.verdict()?;
    run::<T, (), O, P, BLOCK, VEC, ROWS>(&offsets, operands, predicate)
}
