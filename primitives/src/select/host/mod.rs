//! Host functions of selection and partition.

#![deny(unsafe_op_in_unsafe_fn)]

pub(super) mod segments;

use super::tile::{rows, vector};
use super::{By, CountTiles, Flags, Keep, PartitionTiles, Predicate, SelectTiles};
use crate::block::lookback;
use crate::runtime::carrier::carried;
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Stream, expect_len, expect_room};
use bytemuck::Pod;

/// Writes the items that pass to the front of `output`, in order, and returns their number. Does not wait.
///
/// `output` has at least as many elements as `input`. Elements after the kept items are not changed.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::NoInstance`] on a GPU for a predicate or type that
/// was not instantiated there; any launch error.
pub fn select<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input.into(), output.into())?;
    shaped(from, to, Select { stream, keep: By(predicate) })
}

/// [`select`] for pairs whose keys pass.
///
/// # Errors
/// Same as [`select`], and [`Error::LengthMismatch`] if there are not as many values as keys.
pub fn select_pairs<'a, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = pair_operands(stream, input.0.into(), input.1.into(), output.0.into(), output.1.into())?;
    carrying(operands, Select { stream, keep: By(predicate) })
}

/// [`select`] by flags: keeps item `i` if `flags[i]` is not 0.
///
/// # Errors
/// Same as [`select`], and [`Error::LengthMismatch`] if there are not as many flags as items.
pub fn flagged<'a, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    flags: impl Into<DeviceSlice<'a, u8>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, flags) = (input.into(), flags.into());
    expect_len("the flags", input.len(), flags.len())?;
    let operands = key_operands(stream, input, output.into())?;
    carrying_all(operands, Select { stream, keep: Flags(flags.raw_view(stream)?) })
}

/// [`flagged`] for pairs.
///
/// # Errors
/// Same as [`flagged`], and [`Error::LengthMismatch`] if there are not as many values as keys.
pub fn flagged_pairs<'a, K: Pod, V: Pod>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    flags: impl Into<DeviceSlice<'a, u8>>,
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
) -> Result<DeviceValue<u64>, Error> {
    let (keys, flags) = (input.0.into(), flags.into());
    expect_len("the flags", keys.len(), flags.len())?;
    let operands = pair_operands(stream, keys, input.1.into(), output.0.into(), output.1.into())?;
    carrying_all(operands, Select { stream, keep: Flags(flags.raw_view(stream)?) })
}

/// Writes the items that pass to the front of `output` and the others after them, both in order, and returns the number
/// of items that pass. Does not wait.
///
/// # Errors
/// Same as [`select`].
pub fn partition<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input.into(), output.into())?;
    shaped(from, to, Partition { stream, keep: By(predicate) })
}

/// [`partition`] for pairs, by their keys.
///
/// # Errors
/// Same as [`select_pairs`].
pub fn partition_pairs<'a, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = pair_operands(stream, input.0.into(), input.1.into(), output.0.into(), output.1.into())?;
    carrying(operands, Partition { stream, keep: By(predicate) })
}

/// The input, and the output, which has room for all items.
pub(super) type Operands<K, V> = (Pairs<K, V>, PairsMut<K, V>);

pub(super) fn key_operands<K: Pod>(
    stream: &Stream,
    input: DeviceSlice<'_, K>,
    output: DeviceSliceMut<'_, K>,
) -> Result<Operands<K, ()>, Error> {
    expect_room("the output of a selection", input.len(), output.len())?;
    Ok((Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?))
}

pub(super) fn pair_operands<K: Pod, V: Pod>(
    stream: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
    mut output_keys: DeviceSliceMut<'_, K>,
    mut output_values: DeviceSliceMut<'_, V>,
) -> Result<Operands<K, V>, Error> {
    expect_room("the output keys of a selection", keys.len(), output_keys.len())?;
    expect_room("the output values of a selection", keys.len(), output_values.len())?;
    let from = Pairs::new(stream, keys, values, "the values of a selection")?;
    // There may be more room for keys than for values, or the other way round.
    Ok((from, PairsMut { keys: output_keys.raw_view_mut(stream)?, values: output_values.raw_view_mut(stream)? }))
}

/// Work that is generic over the tile shape and the carrier of the values.
pub(super) trait Job<K: Pod> {
    type Output;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<Self::Output, Error>;
}

/// Selects the shape.
pub(super) fn shaped<K: Pod, V: Pod, J: Job<K>>(
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    job: J,
) -> Result<J::Output, Error> {
    with_shape!(VEC in 4 | 2 | 1 = vector::<K, V>(), with_shape!(
        ROWS in 8 | 5 = rows::<V>(),
        job.run::<V, 256, VEC, ROWS>(from, to)
    ))
}

/// Selects the carrier of the values, and the shape.
pub(super) fn carrying<K: Pod, V: Pod, J: Job<K>>(operands: Operands<K, V>, job: J) -> Result<J::Output, Error> {
    carried!(V => () | u32 | u64, operands, |(from, to)| shaped(from, to, job))
}

/// Selects the carriers of values and of keys that are not compared, and the shape.
fn carrying_all<K: Pod, V: Pod, F>((from, to): Operands<K, V>, job: Select<'_, F>) -> Result<DeviceValue<u64>, Error>
where
    F: Keep<K> + Keep<u32> + Keep<u64>,
{
    carried!(K => u32 | u64, (from.keys, to.keys), |(from_keys, to_keys)| {
        let from = Pairs { keys: from_keys, values: from.values };
        let to = PairsMut { keys: to_keys, values: to.values };
        carrying((from, to), job)
    })
}

struct Select<'a, F> {
    stream: &'a Stream,
    keep: F,
}

impl<K: Pod, F: Keep<K>> Job<K> for Select<'_, F> {
    type Output = DeviceValue<u64>;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<DeviceValue<u64>, Error> {
        run_select::<K, V, F, THREADS, VEC, ROWS>(self.stream, from, to, self.keep)
    }
}

struct Partition<'a, F> {
    stream: &'a Stream,
    keep: F,
}

impl<K: Pod, F: Keep<K>> Job<K> for Partition<'_, F> {
    type Output = DeviceValue<u64>;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
    ) -> Result<DeviceValue<u64>, Error> {
        run_partition::<K, V, F, THREADS, VEC, ROWS>(self.stream, from, to, self.keep)
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

/// A tile shape for tests that need many tiles of few items.
#[doc(hidden)]
pub struct Shape<const THREADS: u32, const VEC: usize, const ROWS: usize>;

/// [`select`] with a given tile shape.
#[doc(hidden)]
pub fn select_shaped<T: Pod, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input, output)?;
    run_select::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, By(predicate))
}

/// [`partition`] with a given tile shape.
#[doc(hidden)]
pub fn partition_shaped<T: Pod, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input, output)?;
    run_partition::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, By(predicate))
}
