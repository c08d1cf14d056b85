//! The distinct keys of a sequence in any order, by a hash table.

#![deny(unsafe_op_in_unsafe_fn)]

use super::Length;
use super::distinct::distinct_counts;
use crate::code::Sign;
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec};
use crate::host::source::{Counted, Source, counted, map};
use crate::operator::{map, predicate};
use crate::runs::device::hashed::{CountDistinct, EMPTY, THREADS, count_distinct};
use crate::sort::FromCode;
use crate::sort::host::lowered::{self, Coding};
use crate::transform::{InMemory, write_column};
use crate::{
    DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, expect_room, reduce, sized, sort, transfer,
};

/// [`distinct_counts`] by a hash table, for inputs with few different keys: about `most`, or fewer. The result is the same, byte for byte.
///
/// If there are many more, the keys are sorted after all, as they are if their codes have more than 64 bits. So `most` has an effect
/// on the time alone: the table has two to four slots for each of so many keys. Waits until the keys are counted.
///
/// ```
/// use gpu_primitives::{Device, Error, runs};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[7i32, -2, 7, 5, -2, 7])?;
/// let (mut keys, mut counts) = (stream.uninit::<i32>(6)?, stream.uninit::<u32>(6)?);
/// let count = runs::distinct_counts_hashed(&stream, &input, (&mut keys, &mut counts), 100)?.get(&stream)? as usize;
/// assert_eq!(keys.slice(..count)?.to_vec(&stream)?, [-2, 5, 7]);
/// assert_eq!(counts.slice(..count)?.to_vec(&stream)?, [2, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`distinct_counts`].
pub fn distinct_counts_hashed<'a, 'b, 'c, K: FromCode, C: Length>(
    stream: &Stream,
    input: impl Source<'a, K>,
    (output, counts): (impl Into<DeviceSliceMut<'b, K>>, impl Into<DeviceSliceMut<'c, C>>),
    most: usize,
) -> Result<DeviceValue<u64>, Error> {
    let (input, mut output, mut counts) = (input.into_parts()?.elements(), output.into(), counts.into());
    let _span = crate::span!(stream, "runs::distinct_counts_hashed", input.len());
    let len = input.len();
    expect_room("the output of distinct keys", len, output.len())?;
    expect_room("the counts of distinct keys", len, counts.len())?;
    // Memory of another device is an error before anything is written.
    output.raw_view_mut(stream)?;
    counts.raw_view_mut(stream)?;
    let input = InMemory::new(stream, input)?;
    let (count, input) = (input.as_slice().count(), input.as_slice().typed::<K>().expect("the door has this type"));
    // The table counts all keys.
    let found = if count.is_some() { None } else { find::<K>(stream, input, most)? };
    let Some(found) = found else {
        return distinct_counts(stream, Counted::by(input, count), (output, counts));
    };
    let most = found.codes.len().min(len);
    let codes = found.codes.as_slice().typed::<K::Code>().expect("the codes are of this size");
    sort::decode(stream, counted(codes.slice(..most)?, &found.count), output.slice_mut(..most)?)?;
    write_counts(stream, &found, counts.slice_mut(..most)?.into())?;
    Ok(found.count)
}

/// Distinct codes in order, how often each occurs, and how many there are. Others follow, which occur 0 times.
struct Found {
    codes: AnyVec,
    counts: DeviceVec<u64>,
    count: DeviceValue<u64>,
}

/// Counts the distinct keys. Returns `None` if they are better sorted.
fn find<K: FromCode>(stream: &Stream, input: DeviceSlice<'_, K>, most: usize) -> Result<Option<Found>, Error> {
    /// With more slots than keys, a sort is faster.
    const MIN_LEN_PER_SLOT: usize = 1;
    let slots = most.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX).max(1 << 10);
    if size_of::<K::Code>() > 8 || input.is_empty() || slots > (input.len() / MIN_LEN_PER_SLOT).max(1 << 10) {
        return Ok(None);
    }
    let coding = Coding::of::<K>();
    if coding.code.is_none() && size_of::<K>() == coding.size {
        return count(stream, input.into(), coding.sign, coding.size, slots);
    }
    let mut codes = stream.uninit::<K::Code>(input.len())?;
    sort::encode(stream, input, &mut codes)?;
    count(stream, codes.as_slice().into(), Sign::NONE, coding.size, slots)
}

/// Counts codes of up to 64 bits, given by numbers with a sign, and sorts them. Returns `None` if the table is full.
fn count(stream: &Stream, keys: AnySlice<'_>, sign: Sign, size: usize, slots: usize) -> Result<Option<Found>, Error> {
    /// The blocks per multiprocessor.
    const BLOCKS: usize = 4;
    let mut codes = stream.uninit::<u64>(slots + 1)?;
    transfer::fill(stream, &mut codes, EMPTY)?;
    let mut counts = stream.zeroed::<u64>(slots + 1)?;
    let mut is_full = stream.zeroed::<u32>(1)?;
    let wave = BLOCKS * stream.device().limits().multiprocessors as usize;
    // A block takes fewer than 2^32 keys.
    let blocks = keys.len().div_ceil(THREADS as usize).min(wave.max(keys.len() >> 31));
    count_distinct!(size => K, {
        let kernel = CountDistinct::<K>::new(
            keys.raw_view(stream)?.as_type(),
            sign,
            codes.raw_view_mut(stream)?,
            counts.raw_view_mut(stream)?,
            is_full.raw_view_mut(stream)?,
        );
        // SAFETY: the table is empty, and has a power of two of slots and one more.
        unsafe { stream.launch(kernel, blocks)? };
    });
    if is_full.to_vec(stream)?[0] != 0 {
        return Ok(None);
    }
    // Empty slots come last. Slot 0, which counts the code that stands for them, is the first of these: the sort is stable.
    let (mut sorted, mut sorted_counts) = (stream.uninit::<u64>(slots + 1)?, stream.uninit::<u64>(slots + 1)?);
    let from = (codes.as_slice().into(), counts.as_slice().into());
    let bits = if size == 4 { 33 } else { 64 };
    lowered::codes(stream, from, (sorted.as_mut_slice().into(), sorted_counts.as_mut_slice().into()), bits)?;
    let count = reduce::count_if(stream, &counts, predicate!(|count: u64| count != 0))?;
    let mut narrowed = AnyVec::uninit(stream, size, slots + 1)?;
    sized!(size => C in u32 | u64, {
        let narrow = map!(|code: u64| -> C { code as C });
        write_column(stream, &map(&sorted, narrow).into_parts()?.lower(), narrowed.raw_view_mut(stream)?)?;
    }, else unreachable!("longer codes are sorted"));
    Ok(Some(Found { codes: narrowed, counts: sorted_counts, count }))
}

/// Writes the counts of the distinct keys, as `u32` or `u64`.
fn write_counts(stream: &Stream, found: &Found, mut to: AnySliceMut<'_>) -> Result<(), Error> {
    let from = counted(found.counts.slice(..to.len())?, &found.count);
    sized!(to.size() => C in u32 | u64, {
        let narrow = map!(|count: u64| -> C { count as C });
        write_column(stream, &map(from, narrow).into_parts()?.lower(), to.raw_view_mut(stream)?)
    }, else unreachable!("lengths have 4 or 8 bytes"))
}
