//! Host functions of selection and partition.

#![deny(unsafe_op_in_unsafe_fn)]

pub(super) mod segments;

use super::kernel::{CountTiles, FLAG_THREADS, FlagItems, PartitionTiles, SelectTiles};
use super::predicate::{Flags, HolePredicate, Keep, Predicate};
use super::source::{self, SelectSource};
use super::tile::{rows, vector};
use crate::block::lookback;
use crate::hole::Held;
use crate::input::Fused;
use crate::runtime::carrier::{carried, reinterpret_mut};
use crate::runtime::column::ColumnMut;
use crate::runtime::held::{HeldIn, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut, no_values};
use crate::source::Source;
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, GlobalMut, Stream, expect_len, expect_room};
use bytemuck::Pod;

/// Writes the items that pass to the front of `output`, in order, and returns their number. Does not wait.
///
/// `output` has at least as many elements as `input`. Elements after the kept items are not changed.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::TooLong`] for 2^32 items or more of other sizes than 1, 2, 4,
/// 8, 12, 16 and 32 bytes; any launch error.
pub fn select<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Source<'a, T>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let (input, mut output) = (input.into_parts()?, output.into());
    let _span = crate::span!(stream, "select::select", input.len());
    expect_room("the output of a selection", input.len(), output.len())?;
    let (len, input, to) = (input.len(), input.open(stream)?, output.raw_view_mut(stream)?);
    let keep = HolePredicate::of::<T, P>(predicate);
    held!(T as H or bytes, {
        match input.held::<H>() {
            // There are kernels with wide accesses for these sizes.
            Ok(keys) if const { size_of::<H>() <= 8 } && ColumnMut::from(to).fits::<H>() => {
                let values = no_values(len);
                // SAFETY: size and alignment fit.
                let to = PairsMut { keys: unsafe { reinterpret_mut::<T, H>(to) }, values };
                select_words(stream, Pairs { keys, values: values.as_const() }, to, keep)
            }
            _ => run_source::<T, H>(stream, input.fused(), len, to, keep),
        }
    })
}

/// Selects keys of 1, 2, 4 or 8 bytes.
fn select_words<H: Held>(
    stream: &Stream,
    from: Pairs<H, ()>,
    to: PairsMut<H, ()>,
    keep: HolePredicate,
) -> Result<DeviceValue<u64>, Error> {
    carried!(
        H => u8 | u16 | u32 | u64, (from.keys, to.keys),
        |(keys, to_keys)| shaped(
            (Pairs { keys, values: from.values }, PairsMut { keys: to_keys, values: to.values }), keep, Select { stream }
        ),
        else |_| unreachable!("larger items are selected from a source")
    )
}

/// Selects from a source.
fn run_source<T: Pod, H: Held>(
    stream: &Stream,
    input: Fused,
    len: usize,
    to: GlobalMut<T>,
    keep: HolePredicate,
) -> Result<DeviceValue<u64>, Error> {
    if len == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    if ColumnMut::from(to).fits::<H>() {
        // SAFETY: size and alignment fit.
        let output = unsafe { reinterpret_mut::<T, H>(to) };
        launch_source(stream, input, len, output, keep, &mut count)?;
        return Ok(count);
    }
    // Items of other sizes are selected in the next larger one, and then copied: as many as the count says.
    let mut selected = stream.uninit::<H>(len)?;
    launch_source(stream, input, len, selected.raw_view_mut(stream)?, keep, &mut count)?;
    let places = Indices::first(stream, len, count.as_slice().raw_view(stream)?)?;
    // SAFETY: the output has room for all items.
    places.gather_held(stream, selected.raw_view(stream)?, unsafe { to.slice(0, len) })?;
    Ok(count)
}

/// Launches the kernel for a source that is not empty.
fn launch_source<H: Held>(
    stream: &Stream,
    input: Fused,
    len: usize,
    output: GlobalMut<H>,
    keep: HolePredicate,
    count: &mut DeviceValue<u64>,
) -> Result<(), Error> {
    with_shape!(ROWS in 16 | 8 | 4 = source::rows::<H>(), {
        let tiles = len.div_ceil(source::THREADS as usize * ROWS);
        let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
        let count = count.as_mut_slice().raw_view_mut(stream)?;
        let kernel = SelectSource::<H, ROWS>::new(input, output, keep, count, scratch);
        // SAFETY: one block per tile; the output has room for all items; the scratch memory has the words that the tiles
        // need.
        unsafe { stream.launch(kernel, tiles) }
    })
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
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "select::select_pairs", input.0.len());
    let operands = pair_operands(stream, input.0, input.1.into(), output.0.into(), output.1.into())?;
    by_predicate(stream, operands, predicate, Select { stream })
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
    let _span = crate::span!(stream, "select::flagged", input.len());
    expect_len("the flags", input.len(), flags.len())?;
    let operands = key_operands(stream, input, output.into())?;
    by_flags(stream, operands, Flags(flags.raw_view(stream)?), Select { stream })
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
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "select::flagged_pairs", input.0.len());
    let (keys, flags) = (input.0, flags.into());
    expect_len("the flags", keys.len(), flags.len())?;
    let operands = pair_operands(stream, keys, input.1.into(), output.0.into(), output.1.into())?;
    by_flags(stream, operands, Flags(flags.raw_view(stream)?), Select { stream })
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
    let input: DeviceSlice<'a, T> = input.into();
    let _span = crate::span!(stream, "select::partition", input.len());
    let operands = key_operands(stream, input, output.into())?;
    by_predicate(stream, operands, predicate, Partition { stream })
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
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "select::partition_pairs", input.0.len());
    let operands = pair_operands(stream, input.0, input.1.into(), output.0.into(), output.1.into())?;
    by_predicate(stream, operands, predicate, Partition { stream })
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

/// Work that is generic over the items, the test and the tile shape.
pub(super) trait Job {
    type Output;

    /// Whether there are kernels for keys of 1 and 2 bytes, for values of 8 bytes, and for flags of other items than keys
    /// of 4 bytes.
    const HAS_ALL_KERNELS: bool;

    /// Whether there are kernels for values of 4 bytes.
    const HAS_PAIRS: bool;

    fn run<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
        keep: F,
    ) -> Result<Self::Output, Error>;
}

/// Selects the shape.
fn shaped<K: Pod, V: Pod, F: Keep<K>, J: Job>((from, to): Operands<K, V>, keep: F, job: J) -> Result<J::Output, Error> {
    with_shape!(VEC in 4 | 2 | 1 = vector::<K, V>(), with_shape!(
        ROWS in 8 | 5 = rows::<V>(),
        job.run::<K, V, F, 256, VEC, ROWS>(from, to, keep)
    ))
}

/// Selects by a predicate, in the form in which kernels exist: items of the sizes that kernels move, or their indices.
pub(super) fn by_predicate<T: Pod, V: Pod, P: Predicate<T>, J: Job>(
    stream: &Stream,
    (from, to): Operands<T, V>,
    predicate: P,
    job: J,
) -> Result<J::Output, Error> {
    let keep = HolePredicate::of::<T, P>(predicate);
    let keys = (from.keys, to.keys);
    let (values, to_values) = (from.values, to.values);
    carried!(
        T => u32 | u64, keys,
        |(from, to)| {
            let operands = (Pairs { keys: from, values }, PairsMut { keys: to, values: to_values });
            if const { J::HAS_ALL_KERNELS } {
                carried!(
                    V => () | u32 | u64, operands,
                    |operands| shaped(operands, keep, job),
                    else |operands| by_test(stream, operands, keep, job)
                )
            } else if const { !J::HAS_PAIRS } {
                carried!(
                    V => (), operands,
                    |operands| shaped(operands, keep, job),
                    else |operands| by_test(stream, operands, keep, job)
                )
            } else {
                carried!(
                    V => () | u32, operands,
                    |operands| shaped(operands, keep, job),
                    else |operands| by_test(stream, operands, keep, job)
                )
            }
        },
        else |_| {
            if const { J::HAS_ALL_KERNELS && size_of::<V>() == 0 } {
                let values = no_values(from.keys.len());
                carried!(
                    T => u8 | u16, keys,
                    |(from, to)| shaped(
                        (Pairs { keys: from, values: values.as_const() }, PairsMut { keys: to, values }), keep, job
                    ),
                    else |_| by_test(stream, (from, to), keep, job)
                )
            } else {
                by_test(stream, (from, to), keep, job)
            }
        }
    )
}

/// Tests the items first, and then selects by flags.
fn by_test<T: Pod, V: Pod, J: Job>(
    stream: &Stream,
    operands: Operands<T, V>,
    keep: HolePredicate,
    job: J,
) -> Result<J::Output, Error> {
    let len = operands.0.keys.len();
    let mut flags = stream.uninit::<u8>(len)?;
    if len > 0 {
        held!(T as H or bytes, {
            let items = HeldIn::<H>::new(stream, operands.0.keys)?;
            let kernel = FlagItems::<H, HolePredicate>::new(items.view, keep, flags.raw_view_mut(stream)?);
            // SAFETY: one thread per item, and as many flags.
            unsafe { stream.launch(kernel, len.div_ceil(FLAG_THREADS as usize))? };
        });
    }
    by_index(stream, operands, Flags(flags.raw_view(stream)?), job)
}

/// Selects by flags.
fn by_flags<K: Pod, V: Pod, J: Job>(
    stream: &Stream,
    (from, to): Operands<K, V>,
    flags: Flags,
    job: J,
) -> Result<J::Output, Error> {
    let (values, to_values) = (from.values, to.values);
    if const { !J::HAS_ALL_KERNELS } {
        return by_index(stream, (from, to), flags, job);
    }
    carried!(
        K => u32, (from.keys, to.keys),
        |(from, to)| carried!(
            V => () | u32, (Pairs { keys: from, values }, PairsMut { keys: to, values: to_values }),
            |operands| shaped(operands, flags, job),
            else |operands| by_index(stream, operands, flags, job)
        ),
        else |_| if const { size_of::<V>() == 0 } {
            carried!(
                K => u64, (from.keys, to.keys),
                |(keys, to)| {
                    let values = no_values(keys.len());
                    let to = PairsMut { keys: to, values };
                    shaped((Pairs { keys, values: values.as_const() }, to), flags, job)
                },
                else |_| by_index(stream, (from, to), flags, job)
            )
        } else {
            by_index(stream, (from, to), flags, job)
        }
    )
}

/// Selects the indices of the items, and gathers the items by them.
fn by_index<K: Pod, V: Pod, J: Job>(
    stream: &Stream,
    (from, to): Operands<K, V>,
    flags: Flags,
    job: J,
) -> Result<J::Output, Error> {
    let len = from.keys.len();
    let mut indices = Indices::new(stream, len, len)?;
    let moved = PairsMut { keys: indices.to.raw_view_mut(stream)?, values: no_values(len) };
    let indexed = Pairs { keys: indices.from.raw_view(stream)?, values: no_values(len).as_const() };
    let output = shaped((indexed, moved), flags, job)?;
    // SAFETY: the outputs have room for all items.
    let (keys, values) = unsafe { (to.keys.slice(0, len), to.values.slice(0, len)) };
    indices.gather_held(stream, from.keys, keys)?;
    indices.gather_held(stream, from.values, values)?;
    Ok(output)
}

struct Select<'a> {
    stream: &'a Stream,
}

impl Job for Select<'_> {
    type Output = DeviceValue<u64>;
    const HAS_ALL_KERNELS: bool = true;
    const HAS_PAIRS: bool = true;

    fn run<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
        keep: F,
    ) -> Result<DeviceValue<u64>, Error> {
        run_select::<K, V, F, THREADS, VEC, ROWS>(self.stream, from, to, keep)
    }
}

struct Partition<'a> {
    stream: &'a Stream,
}

impl Job for Partition<'_> {
    type Output = DeviceValue<u64>;
    const HAS_ALL_KERNELS: bool = false;
    const HAS_PAIRS: bool = true;

    fn run<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        from: Pairs<K, V>,
        to: PairsMut<K, V>,
        keep: F,
    ) -> Result<DeviceValue<u64>, Error> {
        run_partition::<K, V, F, THREADS, VEC, ROWS>(self.stream, from, to, keep)
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
pub fn select_shaped<T: Held, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input, output)?;
    run_select::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, HolePredicate::of::<T, P>(predicate))
}

/// [`partition`] with a given tile shape.
#[doc(hidden)]
pub fn partition_shaped<T: Held, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let (from, to) = key_operands(stream, input, output)?;
    run_partition::<_, _, _, THREADS, VEC, ROWS>(stream, from, to, HolePredicate::of::<T, P>(predicate))
}
