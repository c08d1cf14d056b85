//! The distinct keys of a sequence in any order, by sorting.

#![deny(unsafe_op_in_unsafe_fn)]

use super::Length;
use super::codec::encode_runs;
use super::compact::{Kept, Which, keep};
use crate::equality::{HoleEquality, Same};
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec};
use crate::host::source::{AnySource, Counted, Elements, Source, counted, counting, map2};
use crate::operator::{equality, map};
use crate::sort::host::lowered::{self, Coding};
use crate::sort::{FromCode, Options};
use crate::transform::InMemory;
use crate::{
    DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, expect_len, expect_room, permute, scan, sized,
    sort,
};

/// What is found besides the distinct keys.
enum ExtraOutput<'a> {
    Nothing,
    Counts(AnySliceMut<'a>),
    Inverse(DeviceSliceMut<'a, u32>),
}

/// Writes each key that occurs once to the front of `output`, in ascending order, and returns how many there are. The input need not
/// be sorted. Does not wait.
///
/// Keys are equal if their [codes](sort::RadixKey) are: floats by their bits, so -0 and +0 differ, and NaN equals itself. `output`
/// has at least as many elements as `input`; those after the keys are not changed.
///
/// ```
/// use gpu_primitives::{Device, Error, runs};
///
/// let stream = Device::default()?.stream()?;
/// let input = stream.upload(&[7i32, -2, 7, 5, -2, 7])?;
/// let mut keys = stream.uninit::<i32>(6)?;
/// let count = runs::distinct(&stream, &input, &mut keys)?.get(&stream)? as usize;
/// assert_eq!(keys.slice(..count)?.to_vec(&stream)?, [-2, 5, 7]);
///
/// let mut counts = stream.uninit::<u32>(6)?;
/// runs::distinct_counts(&stream, &input, (&mut keys, &mut counts))?;
/// assert_eq!(counts.slice(..count)?.to_vec(&stream)?, [2, 1, 3]);
///
/// let mut inverse = stream.uninit::<u32>(6)?;
/// runs::distinct_inverse(&stream, &input, (&mut keys, &mut inverse))?;
/// assert_eq!(inverse.to_vec(&stream)?, [2, 0, 2, 1, 0, 2]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] if an output is too short: nothing is written in this case. Those of [`sort::keys`]; any launch error.
pub fn distinct<'a, 'b, K: FromCode>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Into<DeviceSliceMut<'b, K>>,
) -> Result<DeviceValue<u64>, Error> {
    let input = input.into_parts()?.elements();
    let _span = crate::span!(stream, "runs::distinct", input.len());
    find::<K>(stream, input, output.into(), ExtraOutput::Nothing)
}

/// [`distinct`], and how often each key occurs. A count that a `u32` cannot hold is truncated.
///
/// # Errors
/// Same as [`distinct`].
pub fn distinct_counts<'a, 'b, 'c, K: FromCode, C: Length>(
    stream: &Stream,
    input: impl Source<'a, K>,
    (output, counts): (impl Into<DeviceSliceMut<'b, K>>, impl Into<DeviceSliceMut<'c, C>>),
) -> Result<DeviceValue<u64>, Error> {
    let (input, counts) = (input.into_parts()?.elements(), counts.into());
    let _span = crate::span!(stream, "runs::distinct_counts", input.len());
    find::<K>(stream, input, output.into(), ExtraOutput::Counts(counts.into()))
}

/// [`distinct`], and the inverse: `output[inverse[i]]` is `input[i]`. If only the device knows how many keys there are, the inverse is
/// not changed after theirs.
///
/// # Errors
/// Same as [`distinct`]; [`Error::LengthMismatch`] if the inverse is not as long as the input; [`Error::TooLong`] for more than 2^32
/// keys.
pub fn distinct_inverse<'a, 'b, 'c, K: FromCode>(
    stream: &Stream,
    input: impl Source<'a, K>,
    (output, inverse): (impl Into<DeviceSliceMut<'b, K>>, impl Into<DeviceSliceMut<'c, u32>>),
) -> Result<DeviceValue<u64>, Error> {
    let input = input.into_parts()?.elements();
    let _span = crate::span!(stream, "runs::distinct_inverse", input.len());
    find::<K>(stream, input, output.into(), ExtraOutput::Inverse(inverse.into()))
}

/// Finds distinct numbers as they are, and other keys by their codes, which give them back.
fn find<K: FromCode>(
    stream: &Stream,
    input: Elements<'_>,
    mut output: DeviceSliceMut<'_, K>,
    extra: ExtraOutput<'_>,
) -> Result<DeviceValue<u64>, Error> {
    let input = InMemory::new(stream, input)?;
    let (input, coding) = (input.as_slice(), Coding::of::<K>());
    if coding.code.is_none() {
        return find_numbers(stream, input, output.into(), &coding, extra);
    }
    let len = input.len();
    expect_room("the output of distinct keys", len, output.len())?;
    // Memory of another device is an error before anything is written.
    output.raw_view_mut(stream)?;
    let (mut codes, mut found) = (stream.uninit::<K::Code>(len)?, stream.uninit::<K::Code>(len)?);
    let keys = input.typed::<K>().expect("the door has this type");
    sort::encode(stream, Counted::by(keys, input.count()), &mut codes)?;
    let coding = Coding { code: None, ..coding };
    let codes = AnySlice::from(codes.as_slice()).counted(input.count());
    let count = find_numbers(stream, codes, found.as_mut_slice().into(), &coding, extra)?;
    sort::decode(stream, counted(&found, &count), output.slice_mut(..len)?)?;
    Ok(count)
}

fn find_numbers(
    stream: &Stream,
    input: AnySlice<'_>,
    output: AnySliceMut<'_>,
    coding: &Coding,
    mut extra: ExtraOutput<'_>,
) -> Result<DeviceValue<u64>, Error> {
    let len = input.len();
    expect_room("the output of distinct keys", len, output.len())?;
    match &mut extra {
        ExtraOutput::Nothing => {}
        ExtraOutput::Counts(counts) => expect_room("the counts of distinct keys", len, counts.len())?,
        ExtraOutput::Inverse(inverse) => {
            expect_len("the inverse of distinct keys", len, inverse.len())?;
            // Memory of another device is an error before anything is written.
            inverse.raw_view_mut(stream)?;
        }
    }
    let mut sorted = AnyVec::uninit(stream, input.size(), len)?;
    let options = Options::new();
    match extra {
        ExtraOutput::Nothing => {
            lowered::keys(stream, input.into(), sorted.as_mut_slice(), coding, &options)?;
            let (sorted, equality) = by_bits(sorted.as_slice().counted(input.count()))?;
            keep(stream, &sorted, output, equality, Which::First)
        }
        ExtraOutput::Counts(counts) => {
            lowered::keys(stream, input.into(), sorted.as_mut_slice(), coding, &options)?;
            let (sorted, equality) = by_bits(sorted.as_slice().counted(input.count()))?;
            encode_runs(stream, &sorted, output, counts, equality)
        }
        ExtraOutput::Inverse(inverse) => {
            let indices = lowered::indices(stream, len)?;
            let mut order = stream.uninit::<u32>(len)?;
            let to = (sorted.as_mut_slice(), order.as_mut_slice().into());
            lowered::pairs(stream, (input.into(), indices.as_slice().into()), to, coding, &options)?;
            let (sorted, equality) = by_bits(sorted.as_slice().counted(input.count()))?;
            let (count, numbers) = number_runs(stream, &sorted, input.count(), output, equality)?;
            let order = Counted::by(&order, input.count());
            // SAFETY: the order has each index once: it is what a sort made of all of them. There is an inverse for each.
            unsafe { permute::scatter_unchecked(stream, &numbers, order, inverse)? };
            Ok(count)
        }
    }
}

/// Writes the first element of each run. Returns how many there are, and for each element the number of its run.
fn number_runs(
    stream: &Stream,
    sorted: &AnySource<'_>,
    len_on_device: Option<DeviceSlice<'_, u64>>,
    mut output: AnySliceMut<'_>,
    equality: HoleEquality,
) -> Result<(DeviceValue<u64>, DeviceVec<u32>), Error> {
    let len = sorted.len();
    let (mut marks, mut numbers) = (stream.uninit::<u8>(len)?, stream.uninit::<u32>(len)?);
    let kept = Kept { len, which: Which::First, equality };
    let count = kept.mark(stream, &sorted.open(stream)?, output.raw_view_mut(stream)?, &mut marks)?;
    // The first run begins at the first element, and its number is 0.
    let begins = map!(|mark: u8, index: u32| -> u32 { (mark != 0 && index != 0) as u32 });
    let begins = Counted::by(map2(&marks, counting(0u32, len), begins), len_on_device);
    scan::inclusive_sum(stream, begins, &mut numbers)?;
    Ok((count, numbers))
}

/// Returns numbers as a source, and the equality of their bits.
fn by_bits(numbers: AnySlice<'_>) -> Result<(AnySource<'_>, HoleEquality), Error> {
    let count = numbers.count();
    sized!(numbers.size() => T in u8 | u16 | u32 | u64 | u128, {
        let numbers = numbers.typed::<T>().expect("allocated memory is aligned");
        Ok((Counted::by(numbers, count).into_parts()?.lower(), HoleEquality::of::<T, Same>(Same)))
    }, else {
        let numbers = numbers.typed::<[u64; 4]>().expect("codes have up to 256 bits");
        let equality =
            equality!(|a: [u64; 4], b: [u64; 4]| a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3]);
        Ok((Counted::by(numbers, count).into_parts()?.lower(), HoleEquality::of::<[u64; 4], _>(equality)))
    })
}
