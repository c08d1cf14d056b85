//! Copies of many ranges at once, each to a place of its own.
//!
//! [`permute::batched_copy`](crate::permute::batched_copy) copies to places that follow each other, and needs less for that.

#![deny(unsafe_op_in_unsafe_fn)]

use super::runtime::column::{AnySlice, AnySliceMut};
use super::source::at;
use crate::operator::map;
use crate::permute::{self, RangePlaces};
use crate::sort::{self, Options};
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Stream, expect_len, reduce, scan, transfer, transform};
use bytemuck::Pod;

/// Copies many ranges, each to a place of its own: `output[places[r] + i] = input[starts[r] + i]` for all `i` below `lengths[r]`.
/// All other elements of the output stay as they are. Returns how many elements were left out. Does not wait.
///
/// Ranges have any lengths, also 0, and may be in any order. Elements out of range of the input or of the output are left out. Ranges
/// may share elements of the input. They should not overlap in the output; but if they do, a range ends where the next one
/// begins, and of those that begin at the same place only the last one is copied. What they lose is left out, too.
///
/// ```
/// use gpu_primitives::{Device, Error, ranges};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(b"onetwothree")?;
/// let starts = stream.upload(&[6u64, 0, 3])?;
/// let places = stream.upload(&[0u64, 10, 6])?;
/// let lengths = stream.upload(&[5u64, 3, 3])?;
/// let mut output = stream.upload(&[b'-'; 12])?;
/// let left_out = ranges::copy(&stream, &input, &starts, &mut output, &places, &lengths)?;
/// assert_eq!(output.to_vec(&stream)?, b"three-two-on");
/// assert_eq!(left_out.get(&stream)?, 1); // the last letter has no place
/// # Ok::<(), Error>(())
/// ```
///
/// # Cost
/// Each element is read and written once, whatever the lengths of the ranges are. The ranges are sorted by their places: some 60
/// bytes of temporary memory per range, and about ten launches.
///
/// # Errors
/// [`Error::LengthMismatch`] if there are not as many places and lengths as starts; [`Error::TooLong`] for 2^32 ranges or more;
/// [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn copy<'a, 'b, 'c, 'd, 'e, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    starts: impl Into<DeviceSlice<'b, u64>>,
    output: impl Into<DeviceSliceMut<'c, T>>,
    places: impl Into<DeviceSlice<'d, u64>>,
    lengths: impl Into<DeviceSlice<'e, u64>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, starts, output) = (input.into(), starts.into(), output.into());
    let _span = crate::span!(stream, "ranges::copy", starts.len());
    let ranges = Ranges { starts, places: places.into(), lengths: lengths.into() };
    ranges.copy(stream, input.into(), output.into())
}

/// The ranges, as the caller gives them.
struct Ranges<'b, 'd, 'e> {
    starts: DeviceSlice<'b, u64>,
    places: DeviceSlice<'d, u64>,
    lengths: DeviceSlice<'e, u64>,
}

impl Ranges<'_, '_, '_> {
    fn copy(self, stream: &Stream, input: AnySlice<'_>, output: AnySliceMut<'_>) -> Result<DeviceValue<u64>, Error> {
        let Self { starts, places, lengths } = self;
        let (count, limit) = (starts.len(), u32::MAX as usize);
        expect_len("the places of ranges to copy", count, places.len())?;
        expect_len("the lengths of ranges to copy", count, lengths.len())?;
        if count > limit {
            return Err(Error::TooLong { what: "ranges to copy", len: count, limit });
        }
        if count == 0 || output.size() == 0 {
            return DeviceValue::new(stream, 0);
        }
        // By place. Ranges without an element in the output come last: they must not end others.
        let room = output.len() as u64;
        let bits = (u64::BITS - room.leading_zeros()).max(1);
        let clamped = map!(room: u64 = room; |place: u64, len: u64| -> u64 {
            if len == 0 { room } else { place.min(room) }
        });
        let (mut keys, mut numbers) = (stream.uninit::<u64>(count)?, stream.uninit::<u32>(count)?);
        transform::map2(stream, places, lengths, &mut keys, clamped)?;
        transform::sequence(stream, &mut numbers, 0)?;
        let (mut sorted, mut order) = (stream.uninit::<u64>(count + 1)?, stream.uninit::<u32>(count)?);
        let to = (sorted.slice_mut(..count)?, &mut order);
        sort::pairs(stream, (&keys, &numbers), to, Options::new().bits(0..bits))?;
        transfer::fill(stream, sorted.slice_mut(count..)?, room)?;

        // A range ends where the next one begins, so that no two write the same place.
        let (begins, ends) = (sorted.slice(..count)?, sorted.slice(1..)?);
        let kept = map!(|begin: u64, end: u64, len: u64| -> u64 { len.min(end - begin) });
        let lost = map!(|begin: u64, end: u64, len: u64| -> u64 { len - len.min(end - begin) });
        let mut offsets = stream.zeroed::<u64>(count + 1)?;
        let kept = super::source::map3(begins, ends, at(lengths, &order), kept);
        scan::inclusive_sum(stream, kept, offsets.slice_mut(1..)?)?;
        let lost = super::source::map3(begins, ends, at(lengths, &order), lost);
        let mut left_out = reduce::sum(stream, lost)?;
        let mut sorted_starts = stream.uninit::<u64>(count)?;
        transform::write(stream, at(starts, &order), &mut sorted_starts)?;

        let places = RangePlaces { starts: sorted_starts.as_slice(), offsets: offsets.as_slice(), places: begins };
        // SAFETY: the ranges do not overlap: each ends where the next one begins, at the latest.
        unsafe { permute::copy_to_places(stream, input, output, &places, &mut left_out)? };
        Ok(left_out)
    }
}
