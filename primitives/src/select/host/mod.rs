//! Host functions of selection and partition.

#![deny(unsafe_op_in_unsafe_fn)]

#[doc(hidden)]
pub mod lowered;

pub(crate) mod segments;

use super::device::kernel::{CountTiles, PartitionTiles, SelectTiles};
use super::device::kernel::{partition_flagged, partition_tiles, select_by_bits, select_flagged, select_tiles};
use super::device::predicate::{BitFlags, Flags, HolePredicate, Keep, Predicate};
use super::device::source::{self, SelectSource, select_source};
use crate::block::lookback;
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_size_or_bytes};
use crate::host::runtime::column::{AnySlice, AnySliceMut, Column, ColumnMut, only_one};
use crate::host::runtime::pairs::{Columns, ColumnsMut, no_values};
use crate::host::source::{AnySource, Elements, Source, results_of};
use crate::input::SourceArg;
use crate::pairs::{Pairs, PairsMut};
use crate::search::IndexOut;
use crate::transform::InMemory;
use crate::transform::laid_out::Indices;
use crate::{
    Bits, DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, GlobalMut, Stream, bits, expect_len, expect_room,
    transform,
};
use bytemuck::Pod;

/// Writes the items that pass to the front of `output`, in order, and returns their number. Does not wait.
///
/// `output` has at least as many elements as `input`. Elements after the kept items are not changed.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::TooLong`] for 2^32 items or more of other sizes than 1, 2, 4,
/// 8, 12, 16 and 32 bytes; any launch error.
pub fn select<'a, 'b, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let (input, output) = (input.into_parts()?.lower(), output.into());
    let _span = crate::span!(stream, "select::select", input.len());
    select_any(stream, &input, output.into(), HolePredicate::of::<T, P>(predicate))
}

fn select_any(
    stream: &Stream,
    input: &AnySource<'_>,
    mut output: AnySliceMut<'_>,
    keep: HolePredicate,
) -> Result<DeviceValue<u64>, Error> {
    expect_room("the output of a selection", input.len(), output.len())?;
    let (len, input, to) = (input.len(), input.open(stream)?, output.raw_view_mut(stream)?);
    // Items of the sizes that kernels move, in memory: these have wide accesses.
    select_tiles!((input.size(), 0) => (K, V, VEC, ROWS), {
        if let (Ok(keys), Some(to)) = (input.held::<K>(), to.typed::<K>()) {
            let values = no_values(len);
            let (from, to) = (Pairs { keys, values: values.as_const() }, PairsMut { keys: to, values });
            return run_select::<K, _, _, 256, VEC, ROWS>(stream, from, to, keep);
        }
    }, else ());
    select_source!(repr_size_or_bytes(input.size()) => (H, ROWS), {
        select_held::<H, ROWS>(stream, input.fused(), len, to, keep)
    })
}

/// Selects items of a source that are held in an `H`.
fn select_held<H: RegisterRepr, const ROWS: usize>(
    stream: &Stream,
    input: SourceArg,
    len: usize,
    to: ColumnMut,
    keep: HolePredicate,
) -> Result<DeviceValue<u64>, Error> {
    if len == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    if let Some(output) = to.typed::<H>() {
        launch_source::<H, ROWS>(stream, input, len, output, keep, &mut count)?;
        return Ok(count);
    }
    // Items of other sizes are selected in the next larger one, and then copied: as many as the count says.
    let mut selected = stream.uninit::<H>(len)?;
    launch_source::<H, ROWS>(stream, input, len, selected.raw_view_mut(stream)?, keep, &mut count)?;
    let places = Indices::first(stream, len, count.as_slice().raw_view(stream)?)?;
    places.gather_held(stream, selected.raw_view(stream)?, to.slice(0, len))?;
    Ok(count)
}

/// Launches the kernel for a source that is not empty.
fn launch_source<H: RegisterRepr, const ROWS: usize>(
    stream: &Stream,
    input: SourceArg,
    len: usize,
    output: GlobalMut<H>,
    keep: HolePredicate,
    count: &mut DeviceValue<u64>,
) -> Result<(), Error> {
    let tiles = len.div_ceil(source::THREADS as usize * ROWS);
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let count = count.as_mut_slice().raw_view_mut(stream)?;
    let kernel = SelectSource::<H, ROWS>::new(input, output, keep, count, scratch);
    // SAFETY: one block per tile; the output has room for all items; the scratch memory has the words that the tiles need.
    unsafe { stream.launch(kernel, tiles) }
}

/// Writes the positions of the elements that pass to the front of `output`, in order, and returns their number. Does not wait.
///
/// The condition may be over several columns, which a [source](crate::source) combines:
///
/// ```
/// use gpu_primitives::operator::{map, predicate};
/// use gpu_primitives::source::map2;
/// use gpu_primitives::{Device, Error, select};
///
/// let stream = Device::default()?.stream()?;
/// let (price, sold) = (stream.upload(&[5.0f32, 70.0, 80.0])?, stream.upload(&[9u32, 3, 8])?);
/// let mut rows = stream.uninit::<u32>(3)?;
/// let keep = map2(&price, &sold, map!(|price: f32, sold: u32| -> u8 { u8::from(price > 10.0 && sold > 5) }));
/// let count = select::positions(&stream, keep, &mut rows, predicate!(|keep: u8| keep != 0))?;
/// assert_eq!(rows.slice(..count.get(&stream)? as usize)?.to_vec(&stream)?, [2]);
/// # Ok::<(), Error>(())
/// ```
///
/// It takes temporary memory of a bit per element.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::TooLong`] if 32 bits do not hold the positions;
/// [`Error::OutOfMemory`]: nothing is written in these cases. Any launch error.
pub fn positions<'a, 'b, T: Pod, I: IndexOut, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, I>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let (input, output) = (input.into_parts()?, output.into());
    let len = input.len();
    let _span = crate::span!(stream, "select::positions", len);
    expect_room("the output of a selection", len, output.len())?;
    let mut packed = stream.uninit::<u8>(len.div_ceil(8))?;
    bits::pack(stream, input, &mut packed, predicate)?;
    bits::positions(stream, Bits::new(&packed, 0, len)?, output)
}

/// [`positions`] in new memory of exactly their number. Waits for the number.
///
/// ```
/// use gpu_primitives::operator::predicate;
/// use gpu_primitives::{Device, Error, select};
///
/// let stream = Device::default()?.stream()?;
/// let numbers = stream.upload(&[3u32, 80, 5, 90])?;
/// let rows = select::collect_positions::<_, u32, _>(&stream, &numbers, predicate!(|x: u32| x > 10))?;
/// assert_eq!(rows.to_vec(&stream)?, [1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Those of [`positions`] and of [`DeviceValue::get`].
pub fn collect_positions<'a, T: Pod, I: IndexOut, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    predicate: P,
) -> Result<DeviceVec<I>, Error> {
    let input = input.into_parts()?;
    let mut all = stream.uninit::<I>(input.len())?;
    let count = positions(stream, input, &mut all, predicate)?.get(stream)? as usize;
    if count == all.len() {
        return Ok(all);
    }
    let mut exact = stream.uninit::<I>(count)?;
    exact.copy_from(stream, all.slice(..count)?)?;
    Ok(exact)
}

/// [`select`] for pairs whose keys pass.
///
/// # Errors
/// Same as [`select`], and [`Error::LengthMismatch`] if there are not as many values as keys.
pub fn select_pairs<'a, 'b, 'c, 'd, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let input = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let _span = crate::span!(stream, "select::select_pairs", input.0.len());
    let output = (output.0.into().into(), output.1.into().into());
    pairs_by(stream, input, output, HolePredicate::of::<K, P>(predicate), Rest::Drop)
}

/// [`select`] by flags: keeps item `i` if `flags[i]` is not 0.
///
/// # Errors
/// Same as [`select`], and [`Error::LengthMismatch`] if there are not as many flags as items.
pub fn flagged<'a, 'b, 'c, T: Pod>(
    stream: &Stream,
    input: impl Source<'a, T>,
    flags: impl Source<'b, u8>,
    output: impl Into<DeviceSliceMut<'c, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, flags) = (input.into_parts()?.elements(), flags.into_parts()?.elements());
    let _span = crate::span!(stream, "select::flagged", input.len());
    flagged_elements(stream, input, flags, output.into().into())
}

/// [`flagged`] for pairs.
///
/// # Errors
/// Same as [`flagged`], and [`Error::LengthMismatch`] if there are not as many values as keys.
pub fn flagged_pairs<'a, 'b, 'c, 'd, 'e, K: Pod, V: Pod>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    flags: impl Source<'c, u8>,
    output: (impl Into<DeviceSliceMut<'d, K>>, impl Into<DeviceSliceMut<'e, V>>),
) -> Result<DeviceValue<u64>, Error> {
    let (input, flags) =
        ((input.0.into_parts()?.elements(), input.1.into_parts()?.elements()), flags.into_parts()?.elements());
    let _span = crate::span!(stream, "select::flagged_pairs", input.0.len());
    flagged_pair_elements(stream, input, flags, (output.0.into().into(), output.1.into().into()))
}

/// [`select`] by packed bits: keeps item `i` if bit `i` is set. The bits may begin at any bit of their bytes.
///
/// ```
/// use gpu_primitives::{Bits, Device, Error, select};
///
/// let stream = Device::default()?.stream()?;
/// let words = stream.upload(&[[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
/// let bytes = stream.upload(&[0b1010_0000u8])?;
/// let mut kept = stream.uninit::<[f64; 2]>(3)?;
/// let count = select::by_bits(&stream, &words, Bits::new(&bytes, 5, 3)?, &mut kept)?;
/// assert_eq!(count.get(&stream)?, 2);
/// assert_eq!(kept.slice(..2)?.to_vec(&stream)?, [[1.0, 2.0], [5.0, 6.0]]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`select`], and [`Error::LengthMismatch`] if there are not as many bits as items.
pub fn by_bits<'a, 'b, T: Pod>(
    stream: &Stream,
    input: impl Source<'a, T>,
    bits: Bits<'a>,
    output: impl Into<DeviceSliceMut<'b, T>>,
) -> Result<DeviceValue<u64>, Error> {
    by_bits_any(stream, input.into_parts()?.elements(), bits, output.into().into())
}

fn by_bits_any(
    stream: &Stream,
    input: Elements<'_>,
    bits: Bits<'_>,
    output: AnySliceMut<'_>,
) -> Result<DeviceValue<u64>, Error> {
    let _span = crate::span!(stream, "select::by_bits", input.len());
    expect_len("the bits", input.len(), bits.len())?;
    let input = InMemory::new(stream, input.of_known_len("the input of a selection by bits")?)?;
    let (from, to) = key_operands(stream, input.as_slice(), output)?;
    let (bytes, start, _) = bits.raw_parts(stream)?;
    let flags = BitFlags { bytes, start };
    select_by_bits!(from.sizes() => (K, V, VEC, ROWS), {
        if let (Some(from), Some(to)) = (from.typed(), to.typed()) {
            return run_select::<K, V, _, 256, VEC, ROWS>(stream, from, to, flags);
        }
    }, else ());
    // The indices of items of other sizes, and then the items.
    let len = from.keys.len();
    let mut indices = Indices::new(stream, len, len)?;
    let indexed = index_operands(stream, &mut indices)?;
    let count = select_by_bits!(indexed.0.sizes() => (K, V, VEC, ROWS), {
        run_select::<K, V, _, 256, VEC, ROWS>(stream, indexed.0.as_types(), indexed.1.as_types(), flags)?
    });
    indices.gather_held(stream, from.keys, to.keys.slice(0, len))?;
    Ok(count)
}

/// [`flagged`] of elements of any size. If only the device knows the number of items or flags, it is that of both.
fn flagged_elements(
    stream: &Stream,
    input: Elements<'_>,
    flags: Elements<'_>,
    output: AnySliceMut<'_>,
) -> Result<DeviceValue<u64>, Error> {
    let count = only_one(input.count(), flags.count())?;
    let (input, flags) = (InMemory::new(stream, input.counted(count)?)?, flags.counted(count)?);
    let flags = InMemory::with_zeros(stream, flags)?;
    flagged_any(stream, input.as_slice(), flags_of(&flags), output)
}

/// [`flagged_pairs`] of elements of any size: see [`flagged_elements`].
fn flagged_pair_elements(
    stream: &Stream,
    input: (Elements<'_>, Elements<'_>),
    flags: Elements<'_>,
    output: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<DeviceValue<u64>, Error> {
    let count = only_one(only_one(input.0.count(), input.1.count())?, flags.count())?;
    let (keys, values) = InMemory::pairs(stream, (input.0.counted(count)?, input.1))?;
    let flags = InMemory::with_zeros(stream, flags.counted(count)?)?;
    flagged_pairs_any(stream, (keys.as_slice(), values.as_slice()), flags_of(&flags), output)
}

fn flags_of<'a>(flags: &'a InMemory<'_>) -> DeviceSlice<'a, u8> {
    flags.as_slice().typed().expect("flags are bytes")
}

/// [`flagged`] of items of any size. If only the device knows their number, the flags after it are zeros.
pub(crate) fn flagged_any(
    stream: &Stream,
    input: AnySlice<'_>,
    flags: DeviceSlice<'_, u8>,
    output: AnySliceMut<'_>,
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the flags", input.len(), flags.len())?;
    let operands = key_operands(stream, input, output)?;
    by_flags(stream, operands, Flags(flags.raw_view(stream)?))
}

/// [`flagged_pairs`] of items of any size: see [`flagged_any`].
pub(super) fn flagged_pairs_any(
    stream: &Stream,
    input: (AnySlice<'_>, AnySlice<'_>),
    flags: DeviceSlice<'_, u8>,
    output: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<DeviceValue<u64>, Error> {
    expect_len("the flags", input.0.len(), flags.len())?;
    let operands = pair_operands(stream, input, output)?;
    by_flags(stream, operands, Flags(flags.raw_view(stream)?))
}

/// Writes the items that pass to the front of `output` and the others after them, both in order, and returns the number
/// of items that pass. Does not wait.
///
/// # Errors
/// Same as [`select`].
pub fn partition<'a, 'b, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'b, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<T>() };
    let input = input.into_parts()?.elements();
    let _span = crate::span!(stream, "select::partition", input.len());
    keys_by(stream, input, output.into().into(), HolePredicate::of::<T, P>(predicate), Rest::Append)
}

/// [`partition`] for pairs, by their keys.
///
/// # Errors
/// Same as [`select_pairs`].
pub fn partition_pairs<'a, 'b, 'c, 'd, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    const { expect_repr::<K>() };
    let input = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let _span = crate::span!(stream, "select::partition_pairs", input.0.len());
    let output = (output.0.into().into(), output.1.into().into());
    pairs_by(stream, input, output, HolePredicate::of::<K, P>(predicate), Rest::Append)
}

/// What becomes of the items that do not pass.
#[derive(Clone, Copy)]
enum Rest {
    Drop,
    Append,
}

fn keys_by(
    stream: &Stream,
    input: Elements<'_>,
    output: AnySliceMut<'_>,
    keep: HolePredicate,
    rest: Rest,
) -> Result<DeviceValue<u64>, Error> {
    let input = InMemory::new(stream, rest.expect_len_of(input)?)?;
    by(stream, key_operands(stream, input.as_slice(), output)?, keep, rest)
}

fn pairs_by(
    stream: &Stream,
    (keys, values): (Elements<'_>, Elements<'_>),
    output: (AnySliceMut<'_>, AnySliceMut<'_>),
    keep: HolePredicate,
    rest: Rest,
) -> Result<DeviceValue<u64>, Error> {
    let (keys, values) = InMemory::pairs(stream, (rest.expect_len_of(keys)?, rest.expect_len_of(values)?))?;
    by(stream, pair_operands(stream, (keys.as_slice(), values.as_slice()), output)?, keep, rest)
}

impl Rest {
    /// Returns elements whose number the host knows, if the rest is written after those that pass.
    fn expect_len_of(self, elements: Elements<'_>) -> Result<Elements<'_>, Error> {
        match self {
            Self::Drop => Ok(elements),
            Self::Append => elements.of_known_len("the input of a partition"),
        }
    }
}

/// Selects items by a predicate.
fn by(stream: &Stream, items: Items, keep: HolePredicate, rest: Rest) -> Result<DeviceValue<u64>, Error> {
    match rest {
        Rest::Drop => by_predicate(stream, items, keep, Select { stream }),
        Rest::Append => by_predicate(stream, items, keep, Partition { stream }),
    }
}

/// What a selection reads, and where it writes.
pub(super) type Items = (Columns, ColumnsMut);

/// Checks that the output has room for all items.
pub(super) fn key_operands(stream: &Stream, input: AnySlice<'_>, output: AnySliceMut<'_>) -> Result<Items, Error> {
    expect_room("the output of a selection", input.len(), output.len())?;
    Ok((Columns::keys(stream, input)?, ColumnsMut::keys(stream, output)?))
}

/// Checks that the outputs have room for all items. There may be more room for keys than for values, or the other way round.
pub(super) fn pair_operands(
    stream: &Stream,
    input: (AnySlice<'_>, AnySlice<'_>),
    output: (AnySliceMut<'_>, AnySliceMut<'_>),
) -> Result<Items, Error> {
    let len = input.0.len();
    expect_room("the output keys of a selection", len, output.0.len())?;
    expect_room("the output values of a selection", len, output.1.len())?;
    expect_len("the values of a selection", len, input.1.len())?;
    Ok((Columns::of_any(stream, input)?, ColumnsMut::of_any(stream, output)?))
}

/// Work on items that pass a test.
pub(super) trait Job: Copy {
    type Output;

    /// Works with a kernel for these items that tests them, if there is one.
    fn by_predicate(self, items: Items, keep: HolePredicate) -> Result<Option<Self::Output>, Error>;

    /// Works with a kernel for these items that reads flags, if there is one. There is one for indices.
    fn by_flags(self, items: Items, flags: Flags) -> Result<Option<Self::Output>, Error>;
}

/// Selects by a predicate, in the form in which kernels exist: items of the sizes that kernels move, or their indices.
pub(super) fn by_predicate<J: Job>(
    stream: &Stream,
    items: Items,
    keep: HolePredicate,
    job: J,
) -> Result<J::Output, Error> {
    match if is_limited(items) { None } else { job.by_predicate(items, keep)? } {
        Some(output) => Ok(output),
        None => by_test(stream, items, keep, job),
    }
}

/// Returns whether only the device knows the number of items. Kernels that move items read all of them.
fn is_limited(items: Items) -> bool {
    items.0.limit().is_some()
}

/// Tests the items first, and then selects by flags.
fn by_test<J: Job>(stream: &Stream, items: Items, keep: HolePredicate, job: J) -> Result<J::Output, Error> {
    let flags = test(stream, items.0.keys, keep)?;
    by_index(stream, items, Flags(flags.raw_view(stream)?), job)
}

/// Returns a flag for each item: whether it passes. What is beyond a number that only the device knows does not.
fn test(stream: &Stream, items: Column, keep: HolePredicate) -> Result<DeviceVec<u8>, Error> {
    let len = items.len();
    let mut flags = if items.limit().is_some() { stream.zeroed::<u8>(len)? } else { stream.uninit::<u8>(len)? };
    transform::write_arg(stream, results_of(keep.hole(), items), flags.raw_view_mut(stream)?.into())?;
    Ok(flags)
}

/// Selects by flags.
fn by_flags(stream: &Stream, items: Items, flags: Flags) -> Result<DeviceValue<u64>, Error> {
    let job = Select { stream };
    match if is_limited(items) { None } else { job.by_flags(items, flags)? } {
        Some(count) => Ok(count),
        None => by_index(stream, items, flags, job),
    }
}

/// Selects the indices of the items, and gathers the items by them.
fn by_index<J: Job>(stream: &Stream, (from, to): Items, flags: Flags, job: J) -> Result<J::Output, Error> {
    let len = from.keys.len();
    let mut indices = Indices::new(stream, len, len)?;
    let indexed = index_operands(stream, &mut indices)?;
    let output = job.by_flags(indexed, flags)?.expect("there is a kernel for indices");
    indices.gather_held(stream, from.keys, to.keys.slice(0, len))?;
    indices.gather_held(stream, from.values, to.values.slice(0, len))?;
    Ok(output)
}

/// Returns indices as items to select.
fn index_operands(stream: &Stream, indices: &mut Indices) -> Result<Items, Error> {
    let len = indices.from.len();
    let from = Columns { keys: indices.from.raw_view(stream)?.into(), values: no_values(len).as_const().into() };
    Ok((from, ColumnsMut { keys: indices.to.raw_view_mut(stream)?.into(), values: no_values(len).into() }))
}

#[derive(Clone, Copy)]
struct Select<'a> {
    stream: &'a Stream,
}

impl Job for Select<'_> {
    type Output = DeviceValue<u64>;

    fn by_predicate(self, items: Items, keep: HolePredicate) -> Result<Option<DeviceValue<u64>>, Error> {
        select_tiles!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            run_select::<K, V, _, 256, VEC, ROWS>(self.stream, from, to, keep).map(Some)
        }, else Ok(None))
    }

    fn by_flags(self, items: Items, flags: Flags) -> Result<Option<DeviceValue<u64>>, Error> {
        select_flagged!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            run_select::<K, V, _, 256, VEC, ROWS>(self.stream, from, to, flags).map(Some)
        }, else Ok(None))
    }
}

#[derive(Clone, Copy)]
struct Partition<'a> {
    stream: &'a Stream,
}

impl Job for Partition<'_> {
    type Output = DeviceValue<u64>;

    fn by_predicate(self, items: Items, keep: HolePredicate) -> Result<Option<DeviceValue<u64>>, Error> {
        partition_tiles!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            run_partition::<K, V, _, 256, VEC, ROWS>(self.stream, from, to, keep).map(Some)
        }, else Ok(None))
    }

    fn by_flags(self, items: Items, flags: Flags) -> Result<Option<DeviceValue<u64>>, Error> {
        partition_flagged!(items.0.sizes() => (K, V, VEC, ROWS), {
            let (Some(from), Some(to)) = (items.0.typed(), items.1.typed()) else { return Ok(None) };
            run_partition::<K, V, _, 256, VEC, ROWS>(self.stream, from, to, flags).map(Some)
        }, else Ok(None))
    }
}

pub(super) fn run_select<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    keep: F,
) -> Result<DeviceValue<u64>, Error> {
    let tiles = from.keys.len().div_ceil(THREADS as usize * VEC * ROWS);
    if tiles == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let count_view = count.as_mut_slice().raw_view_mut(stream)?;
    let kernel = SelectTiles::<K, V, F, THREADS, VEC, ROWS>::new(
        from.keys,
        from.values,
        to.keys,
        to.values,
        keep,
        count_view,
        scratch,
    );
    // SAFETY: one block per tile; the outputs have room for all items; the scratch memory has the words that the tiles
    // need.
    unsafe { stream.launch(kernel, tiles)? };
    Ok(count)
}

fn run_partition<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    keep: F,
) -> Result<DeviceValue<u64>, Error> {
    let tiles = from.keys.len().div_ceil(THREADS as usize * VEC * ROWS);
    if tiles == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    let mut following = stream.uninit::<u64>(tiles)?;
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let counting =
        CountTiles::<K, F, THREADS, VEC, ROWS>::new(from.keys, keep, following.raw_view_mut(stream)?, scratch);
    let count_view = count.as_mut_slice().raw_view_mut(stream)?;
    let moving = PartitionTiles::<K, V, F, THREADS, VEC, ROWS>::new(
        from.keys,
        from.values,
        to.keys,
        to.values,
        keep,
        following.raw_view(stream)?,
        count_view,
    );
    // SAFETY: one block per tile; the scratch memory has the words that the tiles need.
    unsafe { stream.launch(counting, tiles)? };
    // SAFETY: one block per tile; the counts belong to the same tiles; the outputs have room for all items.
    unsafe { stream.launch(moving, tiles)? };
    Ok(count)
}

/// [`select`] with a given tile shape.
///
/// # Errors
/// Those of [`select`].
#[cfg(feature = "testing")]
pub fn select_shaped<T: RegisterRepr, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let items = key_operands(stream, input.into(), output.into())?;
    let (from, to) = (items.0.as_types::<T, ()>(), items.1.as_types());
    run_select::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, HolePredicate::of::<T, P>(predicate))
}

/// [`partition`] with a given tile shape.
///
/// # Errors
/// Those of [`partition`].
#[cfg(feature = "testing")]
pub fn partition_shaped<T: RegisterRepr, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let items = key_operands(stream, input.into(), output.into())?;
    let (from, to) = (items.0.as_types::<T, ()>(), items.1.as_types());
    run_partition::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, HolePredicate::of::<T, P>(predicate))
}
