//! Offsets of segments, and shared code of the calls that take them.

use super::foreign::{Lent, LentMut};
use super::memory::DeviceVec;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::error::Error;
use crate::input::{Limit, SegmentOffsets};
use bytemuck::Pod;
use core::fmt;

/// The offsets of segments, and whether a call checks them.
///
/// Segment `s` is `offsets[s]..offsets[s + 1]`: there is one offset more than segments. Offsets must not decrease and must
/// not exceed the length of the input.
///
/// The segmented sorts and selections take `impl Into<Offsets>`. A vector or a slice of offsets is
/// [checked](Self::checked). [`Offsets::unchecked`] is for calls that must not wait, for example because a
/// [graph](crate::Graph) records them.
///
/// ```
/// use gpu_primitives::compare::Less;
/// use gpu_primitives::{Device, Error, Offsets, sort};
///
/// let stream = Device::cpu().stream()?;
/// let offsets = stream.upload(&[0u32, 3, 5])?;
/// let mut keys = stream.upload(&[3u32, 1, 2, 5, 4])?;
/// sort::segmented_keys_in_place(&stream, &mut keys, &offsets, Less)?; // checks the offsets, and waits
/// assert_eq!(keys.to_vec(&stream)?, [1, 2, 3, 4, 5]);
///
/// let mut keys = stream.upload(&[3u32, 1, 2, 5, 4])?;
/// // SAFETY: the offsets do not decrease, and the last one is the number of keys. Nothing changes them.
/// let offsets = unsafe { Offsets::unchecked(&offsets) };
/// sort::segmented_keys_in_place(&stream, &mut keys, offsets, Less)?; // does not wait
/// assert_eq!(keys.to_vec(&stream)?, [1, 2, 3, 4, 5]);
/// # Ok::<(), Error>(())
/// ```
///
/// If only the device knows how many segments there are, [`counted`](crate::source::counted) takes the offsets, checked or not,
/// and this number. With `n` segments, only the first `n + 1` offsets are read:
///
/// ```
/// use gpu_primitives::compare::Less;
/// use gpu_primitives::equality::Same;
/// use gpu_primitives::source::counted;
/// use gpu_primitives::{Device, Error, runs, scan, sort};
///
/// let stream = Device::default()?.stream()?;
/// let (rows, mut scores) = (stream.upload(&[4u32, 4, 4, 7, 7])?, stream.upload(&[3.0f32, 1.0, 2.0, 9.0, 8.0])?);
/// // A segment is a run of equal rows. How many there are stays on the device.
/// let (mut found, mut lengths) = (stream.uninit::<u32>(5)?, stream.uninit::<u32>(5)?);
/// let segments = runs::run_length_encode(&stream, &rows, (&mut found, &mut lengths), Same)?;
/// let mut offsets = stream.zeroed::<u32>(6)?;
/// scan::inclusive_sum(&stream, counted(&lengths, &segments), offsets.slice_mut(1..)?)?;
/// sort::segmented_keys_in_place(&stream, &mut scores, counted(&offsets, &segments), Less)?;
/// assert_eq!(scores.to_vec(&stream)?, [1.0, 2.0, 3.0, 8.0, 9.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// Without `unsafe` this does not compile:
///
/// ```compile_fail,E0133
/// # use gpu_primitives::{Device, Error, Offsets};
/// let stream = Device::cpu().stream()?;
/// let offsets = stream.upload(&[0u32, 3, 5])?;
/// let offsets = Offsets::unchecked(&offsets);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Offsets<'a, O> {
    slice: DeviceSlice<'a, O>,
    /// The number of segments, if only the device knows it.
    segments: Option<DeviceSlice<'a, u64>>,
    trust: Trust,
}

impl<'a, O: Pod> Offsets<'a, O> {
    /// Returns offsets that each call checks on the device before it writes anything. The call waits for the result of the
    /// check. Invalid offsets are [`Error::InvalidOffsets`].
    pub fn checked(offsets: impl Into<DeviceSlice<'a, O>>) -> Self {
        Self { slice: offsets.into(), segments: None, trust: Trust::Check }
    }

    /// Returns offsets that are not checked. A call that takes them does not wait.
    ///
    /// # Safety
    /// The offsets do not decrease and do not exceed the input of any call that takes this value or a copy of it. This is
    /// about their contents when the call runs on the device, which may be later than when it returns. If a graph records
    /// the call, it is about each launch of the graph.
    ///
    /// Otherwise the contents of the outputs are unspecified. Nothing outside of the slices that the call takes is read or
    /// written. The functions that take offsets say more.
    pub unsafe fn unchecked(offsets: impl Into<DeviceSlice<'a, O>>) -> Self {
        Self::promised(offsets.into())
    }

    /// The same as [`unchecked`](Self::unchecked), for offsets that this crate has made itself.
    pub(crate) fn promised(slice: DeviceSlice<'a, O>) -> Self {
        Self { slice, segments: None, trust: Trust::Promised }
    }

    /// Returns the offsets of the first segments, as many as the device says.
    pub(crate) fn counted(self, segments: Option<DeviceSlice<'a, u64>>) -> Self {
        Self { segments: segments.or(self.segments), ..self }
    }

    /// Returns the number of segments, if only the device knows it.
    pub(crate) fn segments(self) -> Option<DeviceSlice<'a, u64>> {
        self.segments
    }

    /// Returns the offsets in the form in which kernels read them. There is at least one.
    pub(crate) fn open(self, stream: &Stream) -> Result<SegmentOffsets<O>, Error> {
        expect_offsets(self.len())?;
        let limit = match self.segments {
            Some(segments) => Limit::new(segments.raw_view(stream)?),
            None => Limit::NONE,
        };
        Ok(SegmentOffsets::new(self.slice.raw_view(stream)?, limit))
    }

    /// Returns the number of offsets: one more than segments. If only the device knows that, the most that it can be.
    pub(crate) fn len(self) -> usize {
        self.slice.len()
    }

    /// Returns the offsets alone.
    pub(crate) fn as_slice(self) -> DeviceSlice<'a, O> {
        self.slice
    }

    /// Returns whether they are to be checked.
    pub(crate) fn trust(self) -> Trust {
        self.trust
    }
}

impl<O> fmt::Debug for Offsets<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offsets")
            .field("slice", &self.slice)
            .field("segments", &self.segments)
            .field("trust", &self.trust)
            .finish()
    }
}

impl<'a, O: Pod> From<DeviceSlice<'a, O>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: DeviceSlice<'a, O>) -> Self {
        Self::checked(offsets)
    }
}

impl<'a, O: Pod> From<&DeviceSlice<'a, O>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: &DeviceSlice<'a, O>) -> Self {
        Self::checked(offsets)
    }
}

impl<'a, O: Pod> From<&'a DeviceSliceMut<'_, O>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: &'a DeviceSliceMut<'_, O>) -> Self {
        Self::checked(offsets)
    }
}

impl<'a, O: Pod> From<&'a DeviceVec<O>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: &'a DeviceVec<O>) -> Self {
        Self::checked(offsets)
    }
}

impl<'a, O: Pod, G> From<&'a Lent<O, G>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: &'a Lent<O, G>) -> Self {
        Self::checked(offsets)
    }
}

impl<'a, O: Pod, G> From<&'a LentMut<O, G>> for Offsets<'a, O> {
    /// The same as [`Offsets::checked`].
    fn from(offsets: &'a LentMut<O, G>) -> Self {
        Self::checked(offsets)
    }
}

/// Whether the offsets are checked before anything is written. The check requires a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The offsets are checked.
    Check,
    /// The caller guarantees that the offsets are valid.
    Promised,
}

/// Checks that there is at least one offset: that of the end.
pub(crate) fn expect_offsets(found: usize) -> Result<(), Error> {
    let what = "the slice of offsets (one per segment, and the end)";
    if found > 0 { Ok(()) } else { Err(Error::LengthMismatch { what, expected: 1, found }) }
}

/// Returns the error for offset `index`; reads the offset for the message.
pub(crate) fn invalid_offset<O: Pod + Into<u64>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, O>,
    index: usize,
    len: usize,
) -> Error {
    let start = index.saturating_sub(1);
    match offsets.slice(start..=index).and_then(|read| read.to_vec(stream)) {
        Ok(read) => {
            let previous = if index == 0 { 0 } else { read[0].into() };
            Error::InvalidOffsets { index, offset: read[index - start].into(), previous, len }
        }
        Err(error) => error,
    }
}
