//! The host entries of selection and partition.

pub(super) mod segments;

use super::{By, CountTiles, Flags, Keep, PartitionTiles, Predicate, SelectTiles};
use crate::block::lookback;
use crate::{DeviceSlice, DeviceSliceMut, DeviceValue, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;

/// Writes the items that pass to the front of `output`, in order, and gives their number. Does not wait.
///
/// `output` has at least as many elements as `input`; those behind the items that pass stay as they were.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is too short; [`Error::NoInstance`] on a GPU for a predicate or type that was
/// not instantiated there; what a launch can give.
pub fn select<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::keys(stream, input.into(), output.into())?;
    for_keys::<T, _>(Select { stream, operands, keep: By(predicate) })
}

/// [`select`] of the pairs whose keys pass.
///
/// # Errors
/// As [`select`]; [`Error::LengthMismatch`] also if there are not as many values as keys.
pub fn select_pairs<'a, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, K>>,
    values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::pairs(stream, keys.into(), values.into(), output_keys.into(), output_values.into())?;
    for_pairs(operands, SelectPairs { stream, keep: By(predicate) })
}

/// [`select`] by flags: item `i` stays if `flags[i]` is not 0.
///
/// # Errors
/// As [`select`]; [`Error::LengthMismatch`] also if there are not as many flags as items.
pub fn flagged<'a, T: Pod>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    flags: impl Into<DeviceSlice<'a, u8>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
) -> Result<DeviceValue<u64>, Error> {
    let (input, flags) = (input.into(), flags.into());
    equal_len("the flags", input.len(), flags.len())?;
    let operands = Operands::keys(stream, input, output.into())?;
    let keep = Flags(flags.view(stream)?);
    match carrier::<T>(&[operands.input.as_ptr().addr(), operands.output.as_const().as_ptr().addr()]) {
        // SAFETY: 4 or 8 plain bytes, aligned as such.
        Carrier::U32 => for_keys::<u32, _>(Select { stream, operands: unsafe { operands.keys_as::<u32>() }, keep }),
        // SAFETY: as above.
        Carrier::U64 => for_keys::<u64, _>(Select { stream, operands: unsafe { operands.keys_as::<u64>() }, keep }),
        Carrier::Own => for_keys::<T, _>(Select { stream, operands, keep }),
    }
}

/// [`flagged`] for pairs.
///
/// # Errors
/// As [`flagged`]; [`Error::LengthMismatch`] also if there are not as many values as keys.
pub fn flagged_pairs<'a, K: Pod, V: Pod>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, K>>,
    values: impl Into<DeviceSlice<'a, V>>,
    flags: impl Into<DeviceSlice<'a, u8>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
) -> Result<DeviceValue<u64>, Error> {
    let (keys, flags) = (keys.into(), flags.into());
    equal_len("the flags", keys.len(), flags.len())?;
    let operands = Operands::pairs(stream, keys, values.into(), output_keys.into(), output_values.into())?;
    let job = SelectPairs { stream, keep: Flags(flags.view(stream)?) };
    match carrier::<K>(&[operands.input.as_ptr().addr(), operands.output.as_const().as_ptr().addr()]) {
        // SAFETY: 4 or 8 plain bytes, aligned as such.
        Carrier::U32 => for_pairs(unsafe { operands.keys_as::<u32>() }, job),
        // SAFETY: as above.
        Carrier::U64 => for_pairs(unsafe { operands.keys_as::<u64>() }, job),
        Carrier::Own => for_pairs(operands, job),
    }
}

/// Writes the items that pass to the front of `output` and the others behind them, both in order, and gives the number of
/// those that pass. Does not wait.
///
/// # Errors
/// As [`select`].
pub fn partition<'a, T: Pod, P: Predicate<T>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, T>>,
    output: impl Into<DeviceSliceMut<'a, T>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::keys(stream, input.into(), output.into())?;
    for_keys::<T, _>(Partition { stream, operands, keep: By(predicate) })
}

/// [`partition`] of pairs by their keys.
///
/// # Errors
/// As [`select_pairs`].
pub fn partition_pairs<'a, K: Pod, V: Pod, P: Predicate<K>>(
    stream: &Stream,
    keys: impl Into<DeviceSlice<'a, K>>,
    values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    predicate: P,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::pairs(stream, keys.into(), values.into(), output_keys.into(), output_values.into())?;
    for_pairs(operands, PartitionPairs { stream, keep: By(predicate) })
}

/// Inputs and outputs of one selection; values of no bytes are none.
#[derive(Clone, Copy)]
pub(super) struct Operands<K, V> {
    input: Global<K>,
    values: Global<V>,
    output: GlobalMut<K>,
    output_values: GlobalMut<V>,
}

impl<K: Pod> Operands<K, ()> {
    pub(super) fn keys(
        stream: &Stream,
        input: DeviceSlice<'_, K>,
        mut output: DeviceSliceMut<'_, K>,
    ) -> Result<Self, Error> {
        room_for("the output of a selection", input.len(), output.len())?;
        let none = core::ptr::NonNull::<()>::dangling().as_ptr();
        Ok(Self {
            input: input.view(stream)?,
            // SAFETY: no elements.
            values: unsafe { Global::from_raw(none, 0) },
            output: output.view_mut(stream)?,
            // SAFETY: no elements.
            output_values: unsafe { GlobalMut::from_raw(none, 0) },
        })
    }
}

impl<K: Pod, V: Pod> Operands<K, V> {
    pub(super) fn pairs(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        mut output_keys: DeviceSliceMut<'_, K>,
        mut output_values: DeviceSliceMut<'_, V>,
    ) -> Result<Self, Error> {
        equal_len("the values", keys.len(), values.len())?;
        room_for("the output keys of a selection", keys.len(), output_keys.len())?;
        room_for("the output values of a selection", keys.len(), output_values.len())?;
        Ok(Self {
            input: keys.view(stream)?,
            values: values.view(stream)?,
            output: output_keys.view_mut(stream)?,
            output_values: output_values.view_mut(stream)?,
        })
    }

    /// The same with keys seen as another type.
    ///
    /// # Safety
    /// As [`cast`].
    unsafe fn keys_as<W: Pod>(self) -> Operands<W, V> {
        let Self { input, values, output, output_values } = self;
        Operands { input: cast(input), values, output: cast_mut(output), output_values }
    }

    /// The same with values seen as another type.
    ///
    /// # Safety
    /// As [`cast`].
    unsafe fn values_as<W: Pod>(self) -> Operands<K, W> {
        let Self { input, values, output, output_values } = self;
        Operands { input, values: cast(values), output, output_values: cast_mut(output_values) }
    }
}

/// The elements as others of the same size.
///
/// # Safety
/// The sizes agree, and the address is aligned for `W`.
unsafe fn cast<T: Pod, W: Pod>(view: Global<T>) -> Global<W> {
    Global::from_raw(view.as_ptr().cast(), view.len())
}

/// [`cast`] for writing.
///
/// # Safety
/// As there.
unsafe fn cast_mut<T: Pod, W: Pod>(view: GlobalMut<T>) -> GlobalMut<W> {
    GlobalMut::from_raw(view.as_const().as_ptr().cast_mut().cast(), view.len())
}

/// The type that carries elements which only travel: kernels exist for the integers, whatever the bytes mean.
enum Carrier {
    U32,
    U64,
    Own,
}

/// The carrier of `T` at these addresses.
fn carrier<T>(addresses: &[usize]) -> Carrier {
    let aligned = addresses.iter().all(|address| address.is_multiple_of(size_of::<T>().max(1)));
    match size_of::<T>() {
        4 if aligned => Carrier::U32,
        8 if aligned => Carrier::U64,
        _ => Carrier::Own,
    }
}

/// Work for tiles of some shape, on keys alone.
pub(super) trait KeysJob {
    type Output;
    fn run<const THREADS: u32, const VEC: usize, const ROWS: usize>(self) -> Result<Self::Output, Error>;
}

/// Work for tiles of some shape and values of some carrier.
pub(super) trait PairsJob<K: Pod> {
    type Output;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        operands: Operands<K, V>,
    ) -> Result<Self::Output, Error>;
}

/// Picks the shape: rows of 16 bytes per lane, 128 bytes per thread.
pub(super) fn for_keys<K: Pod, J: KeysJob>(job: J) -> Result<J::Output, Error> {
    match size_of::<K>() {
        0..=4 => job.run::<256, 4, 8>(),
        5..=8 => job.run::<256, 2, 8>(),
        _ => job.run::<256, 1, 8>(),
    }
}

/// Picks carrier and shape: rows of 16 bytes per lane of the wider type, 120 or 160 bytes per thread.
pub(super) fn for_pairs<K: Pod, V: Pod, J: PairsJob<K>>(operands: Operands<K, V>, job: J) -> Result<J::Output, Error> {
    match carrier::<V>(&[operands.values.as_ptr().addr(), operands.output_values.as_const().as_ptr().addr()]) {
        // SAFETY: 4 or 8 plain bytes, aligned as such.
        Carrier::U32 => shape_pairs(unsafe { operands.values_as::<u32>() }, job),
        // SAFETY: as above.
        Carrier::U64 => shape_pairs(unsafe { operands.values_as::<u64>() }, job),
        Carrier::Own => shape_pairs(operands, job),
    }
}

fn shape_pairs<K: Pod, V: Pod, J: PairsJob<K>>(operands: Operands<K, V>, job: J) -> Result<J::Output, Error> {
    match (size_of::<K>(), size_of::<V>()) {
        (0..=4, 0..=4) => job.run::<V, 256, 4, 5>(operands),
        (0..=8, 0..=8) => job.run::<V, 256, 2, 5>(operands),
        _ => job.run::<V, 256, 1, 5>(operands),
    }
}

struct Select<'a, K, F> {
    stream: &'a Stream,
    operands: Operands<K, ()>,
    keep: F,
}

impl<K: Pod, F: Keep<K>> KeysJob for Select<'_, K, F> {
    type Output = DeviceValue<u64>;
    fn run<const THREADS: u32, const VEC: usize, const ROWS: usize>(self) -> Result<DeviceValue<u64>, Error> {
        run_select::<K, (), F, THREADS, VEC, ROWS>(self.stream, self.operands, self.keep)
    }
}

struct SelectPairs<'a, F> {
    stream: &'a Stream,
    keep: F,
}

impl<K: Pod, F: Keep<K>> PairsJob<K> for SelectPairs<'_, F> {
    type Output = DeviceValue<u64>;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        operands: Operands<K, V>,
    ) -> Result<DeviceValue<u64>, Error> {
        run_select::<K, V, F, THREADS, VEC, ROWS>(self.stream, operands, self.keep)
    }
}

struct Partition<'a, K, F> {
    stream: &'a Stream,
    operands: Operands<K, ()>,
    keep: F,
}

impl<K: Pod, F: Keep<K>> KeysJob for Partition<'_, K, F> {
    type Output = DeviceValue<u64>;
    fn run<const THREADS: u32, const VEC: usize, const ROWS: usize>(self) -> Result<DeviceValue<u64>, Error> {
        run_partition::<K, (), F, THREADS, VEC, ROWS>(self.stream, self.operands, self.keep)
    }
}

struct PartitionPairs<'a, F> {
    stream: &'a Stream,
    keep: F,
}

impl<K: Pod, F: Keep<K>> PairsJob<K> for PartitionPairs<'_, F> {
    type Output = DeviceValue<u64>;
    fn run<V: Pod, const THREADS: u32, const VEC: usize, const ROWS: usize>(
        self,
        operands: Operands<K, V>,
    ) -> Result<DeviceValue<u64>, Error> {
        run_partition::<K, V, F, THREADS, VEC, ROWS>(self.stream, operands, self.keep)
    }
}

pub(super) fn run_select<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    operands: Operands<K, V>,
    keep: F,
) -> Result<DeviceValue<u64>, Error> {
    let Operands { input, values, output, output_values } = operands;
    let tiles = input.len().div_ceil(THREADS as usize * VEC * ROWS);
    if tiles == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let count_view = count.as_mut_slice().view_mut(stream)?;
    let kernel = SelectTiles::<K, V, F, THREADS, VEC, ROWS>::new(
        input,
        values,
        output,
        output_values,
        keep,
        count_view,
        scratch,
    );
    // SAFETY: one block per tile; the outputs have room for everything; the scratch has the words that the tiles need.
    unsafe { stream.launch(kernel, tiles)? };
    Ok(count)
}

fn run_partition<K: Pod, V: Pod, F: Keep<K>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    operands: Operands<K, V>,
    keep: F,
) -> Result<DeviceValue<u64>, Error> {
    let Operands { input, values, output, output_values } = operands;
    let tiles = input.len().div_ceil(THREADS as usize * VEC * ROWS);
    if tiles == 0 {
        return DeviceValue::new(stream, 0);
    }
    let mut count = DeviceValue::uninit(stream)?;
    let mut following = stream.uninit::<u64>(tiles)?;
    let scratch = stream.lookback_words(lookback::scratch_words::<u64>(tiles))?;
    let counting = CountTiles::<K, F, THREADS, VEC, ROWS>::new(input, keep, following.view_mut(stream)?, scratch);
    let count_view = count.as_mut_slice().view_mut(stream)?;
    let moving = PartitionTiles::<K, V, F, THREADS, VEC, ROWS>::new(
        input,
        values,
        output,
        output_values,
        keep,
        following.view(stream)?,
        count_view,
    );
    // SAFETY: one block per tile; the scratch has the words that the tiles need.
    unsafe { stream.launch(counting, tiles)? };
    // SAFETY: one block per tile, the counts are of the same tiles; the outputs have room for everything.
    unsafe { stream.launch(moving, tiles)? };
    Ok(count)
}

fn equal_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

fn room_for(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found >= expected { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

/// A tile shape of the caller's: for tests that want many tiles of few items.
#[doc(hidden)]
pub struct Shape<const THREADS: u32, const VEC: usize, const ROWS: usize>;

/// [`select`] with a tile shape of the caller's.
#[doc(hidden)]
pub fn select_shaped<T: Pod, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::keys(stream, input, output)?;
    run_select::<_, _, _, THREADS, VEC, ROWS>(stream, operands, By(predicate))
}

/// [`partition`] with a tile shape of the caller's.
#[doc(hidden)]
pub fn partition_shaped<T: Pod, P: Predicate<T>, const THREADS: u32, const VEC: usize, const ROWS: usize>(
    stream: &Stream,
    input: DeviceSlice<'_, T>,
    output: DeviceSliceMut<'_, T>,
    predicate: P,
    _: Shape<THREADS, VEC, ROWS>,
) -> Result<DeviceValue<u64>, Error> {
    let operands = Operands::keys(stream, input, output)?;
    run_partition::<_, _, _, THREADS, VEC, ROWS>(stream, operands, By(predicate))
}
