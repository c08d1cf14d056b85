//! The host entries of the segmented sort.

use super::kernel::{CUT_TILE, CutSegments, Edge, MergeTiles, REPAIR, SortTiles, passes, status};
use super::shape::Shape;
use crate::compare::Compare;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;
use core::ptr::NonNull;

/// The name in errors.
const WHAT: &str = "a segmented sort";

/// Sorts the keys of every segment into `output`. Waits for the check of the offsets.
///
/// # Errors
/// [`Error::BadOffsets`] if the offsets decrease or leave the input, and then nothing is written;
/// [`Error::LengthMismatch`] if the slices differ in length or there is no offset at all; [`Error::TooManyItems`] for more
/// than 2^32 - 1 keys; [`Error::NoInstance`] on a GPU for an order or type that was not instantiated there; what a launch
/// and an allocation can give.
pub fn keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    let operands = Operands::keys_apart(stream, input, &mut output)?;
    sort(stream, offsets.into(), operands, compare, Trust::Check)
}

/// [`keys`] that writes over its input.
///
/// # Errors
/// As [`keys`].
pub fn keys_in_place<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let mut keys = keys.into();
    let operands = Operands::keys_same(stream, &mut keys)?;
    sort(stream, offsets.into(), operands, compare, Trust::Check)
}

/// Sorts every segment by its keys, and moves each key's value along. Waits for the check of the offsets.
///
/// # Errors
/// As [`keys`].
pub fn pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input_keys: impl Into<DeviceSlice<'a, K>>,
    input_values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    compare: C,
) -> Result<(), Error> {
    let (input_keys, input_values) = (input_keys.into(), input_values.into());
    let (mut output_keys, mut output_values) = (output_keys.into(), output_values.into());
    let operands = Operands::apart(stream, input_keys, input_values, &mut output_keys, &mut output_values)?;
    sort(stream, offsets.into(), operands, compare, Trust::Check)
}

/// [`pairs`] that writes over its input.
///
/// # Errors
/// As [`keys`].
pub fn pairs_in_place<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    values: impl Into<DeviceSliceMut<'a, V>>,
    compare: C,
) -> Result<(), Error> {
    let (mut keys, mut values) = (keys.into(), values.into());
    let operands = Operands::same(stream, &mut keys, &mut values)?;
    sort(stream, offsets.into(), operands, compare, Trust::Check)
}

/// [`keys`] that does not wait. It launches the passes that the longest possible segment would need, and takes temporary
/// memory for all keys if they are more than a tile.
///
/// # Errors
/// As [`keys`], except for the offsets.
///
/// # Safety
/// The offsets do not decrease and do not leave the input. If they do, what is in the output is not specified, but
/// nothing outside of it is written or read.
pub unsafe fn keys_unchecked<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let (input, mut output) = (input.into(), output.into());
    let operands = Operands::keys_apart(stream, input, &mut output)?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`keys_in_place`] that does not wait: see [`keys_unchecked`].
///
/// # Errors
/// As [`keys_unchecked`].
///
/// # Safety
/// As [`keys_unchecked`].
pub unsafe fn keys_in_place_unchecked<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let mut keys = keys.into();
    let operands = Operands::keys_same(stream, &mut keys)?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`pairs`] that does not wait: see [`keys_unchecked`].
///
/// # Errors
/// As [`keys_unchecked`].
///
/// # Safety
/// As [`keys_unchecked`].
pub unsafe fn pairs_unchecked<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input_keys: impl Into<DeviceSlice<'a, K>>,
    input_values: impl Into<DeviceSlice<'a, V>>,
    output_keys: impl Into<DeviceSliceMut<'a, K>>,
    output_values: impl Into<DeviceSliceMut<'a, V>>,
    compare: C,
) -> Result<(), Error> {
    let (input_keys, input_values) = (input_keys.into(), input_values.into());
    let (mut output_keys, mut output_values) = (output_keys.into(), output_values.into());
    let operands = Operands::apart(stream, input_keys, input_values, &mut output_keys, &mut output_values)?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`pairs_in_place`] that does not wait: see [`keys_unchecked`].
///
/// # Errors
/// As [`keys_unchecked`].
///
/// # Safety
/// As [`keys_unchecked`].
pub unsafe fn pairs_in_place_unchecked<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    values: impl Into<DeviceSliceMut<'a, V>>,
    compare: C,
) -> Result<(), Error> {
    let (mut keys, mut values) = (keys.into(), values.into());
    let operands = Operands::same(stream, &mut keys, &mut values)?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`pairs_in_place`] with a tile shape of the caller's: for tests that want many tiles of few items.
#[doc(hidden)]
pub fn pairs_shaped<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    mut keys: DeviceSliceMut<'_, K>,
    mut values: DeviceSliceMut<'_, V>,
    compare: C,
    shape: Shape<THREADS, ITEMS, SLACK>,
) -> Result<(), Error> {
    let operands = Operands::same(stream, &mut keys, &mut values)?;
    run(stream, offsets, operands, compare, Trust::Check, shape)
}

/// Whether the offsets are looked at before anything is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Check,
    Promised,
}

/// Keys and values of equal length, and where they go: other buffers, or the same.
#[derive(Clone, Copy)]
struct Operands<K, V> {
    input_keys: Global<K>,
    input_values: Global<V>,
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
}

impl<K: Pod> Operands<K, ()> {
    fn keys_apart(
        stream: &Stream,
        input: DeviceSlice<'_, K>,
        output: &mut DeviceSliceMut<'_, K>,
    ) -> Result<Self, Error> {
        expect_len("the output keys of a segmented sort", input.len(), output.len())?;
        Ok(Self::without_values(input.view(stream)?, output.view_mut(stream)?))
    }

    fn keys_same(stream: &Stream, keys: &mut DeviceSliceMut<'_, K>) -> Result<Self, Error> {
        let keys = keys.view_mut(stream)?;
        Ok(Self::without_values(keys.as_const(), keys))
    }

    fn without_values(input_keys: Global<K>, keys: GlobalMut<K>) -> Self {
        let values = nothing(keys.len());
        Self { input_keys, input_values: values.as_const(), keys, values }
    }
}

impl<K: Pod, V: Pod> Operands<K, V> {
    fn apart(
        stream: &Stream,
        input_keys: DeviceSlice<'_, K>,
        input_values: DeviceSlice<'_, V>,
        keys: &mut DeviceSliceMut<'_, K>,
        values: &mut DeviceSliceMut<'_, V>,
    ) -> Result<Self, Error> {
        expect_len("the input values of a segmented sort", input_keys.len(), input_values.len())?;
        expect_len("the output keys of a segmented sort", input_keys.len(), keys.len())?;
        expect_len("the output values of a segmented sort", input_keys.len(), values.len())?;
        Ok(Self {
            input_keys: input_keys.view(stream)?,
            input_values: input_values.view(stream)?,
            keys: keys.view_mut(stream)?,
            values: values.view_mut(stream)?,
        })
    }

    /// A tile is read before it is written, and by the same block, so input and output may be the same memory.
    fn same(
        stream: &Stream,
        keys: &mut DeviceSliceMut<'_, K>,
        values: &mut DeviceSliceMut<'_, V>,
    ) -> Result<Self, Error> {
        expect_len("the values of a segmented sort", keys.len(), values.len())?;
        let (keys, values) = (keys.view_mut(stream)?, values.view_mut(stream)?);
        Ok(Self { input_keys: keys.as_const(), input_values: values.as_const(), keys, values })
    }

    /// The same values as plain words `W` of the same size, if they lie where words may lie.
    fn with_words<W: Pod>(self) -> Option<Operands<K, W>> {
        let (from, to) = (self.input_values.as_ptr(), self.values.as_const().as_ptr());
        if size_of::<V>() != size_of::<W>() || !(from.addr() | to.addr()).is_multiple_of(align_of::<W>()) {
            return None;
        }
        // SAFETY: the same memory; any bytes are good for plain data, and the addresses are aligned.
        unsafe {
            Some(Operands {
                input_keys: self.input_keys,
                input_values: Global::from_raw(from.cast(), self.input_values.len()),
                keys: self.keys,
                values: GlobalMut::from_raw(to.cast_mut().cast(), self.values.len()),
            })
        }
    }
}

/// So many values without size.
fn nothing<V: Pod>(len: usize) -> GlobalMut<V> {
    // SAFETY: values without size have no memory, and kernels do not touch them.
    unsafe { GlobalMut::from_raw(NonNull::<V>::dangling().as_ptr(), len) }
}

fn expect_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::LengthMismatch { what, expected, found }) }
}

/// Values are moved and not looked at, so those of one size share a kernel.
fn sort<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<K, V>,
    compare: C,
    trust: Trust,
) -> Result<(), Error> {
    match size_of::<V>() {
        0 => {
            let values = nothing::<()>(operands.keys.len());
            let Operands { input_keys, keys, .. } = operands;
            let operands = Operands { input_keys, input_values: values.as_const(), keys, values };
            sort_sized(stream, offsets, operands, compare, trust)
        }
        4 => match operands.with_words::<u32>() {
            Some(words) => sort_sized(stream, offsets, words, compare, trust),
            None => sort_sized(stream, offsets, operands, compare, trust),
        },
        8 => match operands.with_words::<u64>() {
            Some(words) => sort_sized(stream, offsets, words, compare, trust),
            None => sort_sized(stream, offsets, operands, compare, trust),
        },
        _ => sort_sized(stream, offsets, operands, compare, trust),
    }
}

/// Items of more than 8 bytes take fewer per thread, so that they fit into registers.
fn sort_sized<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<K, V>,
    compare: C,
    trust: Trust,
) -> Result<(), Error> {
    if size_of::<K>() + size_of::<V>() <= 8 {
        run(stream, offsets, operands, compare, trust, Shape::<128, 15, 128>)
    } else {
        run(stream, offsets, operands, compare, trust, Shape::<128, 9, 96>)
    }
}

fn run<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<K, V>,
    compare: C,
    trust: Trust,
    shape: Shape<THREADS, ITEMS, SLACK>,
) -> Result<(), Error> {
    let items = operands.keys.len();
    let limit = u32::MAX as usize;
    for found in [items, offsets.len()] {
        if found > limit {
            return Err(Error::TooManyItems { what: WHAT, limit, found });
        }
    }
    if offsets.is_empty() {
        return Err(Error::LengthMismatch {
            what: "the slice of offsets (one per segment, and the end)",
            expected: 1,
            found: 0,
        });
    }
    let tiles = shape.tiles(items as u32) as usize;
    let offsets_view = offsets.view(stream)?;
    // Offsets that are out of order leave some edges unwritten: unless that is checked, they must be anything but garbage.
    let mut edges: DeviceVec<Edge> = match trust {
        Trust::Check => stream.uninit(tiles + 1)?,
        Trust::Promised => stream.zeroed(tiles + 1)?,
    };
    let mut state = stream.zeroed::<u32>(status::WORDS)?;
    let cut = CutSegments::<THREADS, ITEMS, SLACK>::new(
        offsets_view,
        edges.view_mut(stream)?,
        state.view_mut(stream)?,
        items as u32,
    );
    // SAFETY: one block per tile of the offsets and the end; one edge more than tiles; the status is zero.
    unsafe { stream.launch(cut, (offsets.len() + 1).div_ceil(CUT_TILE))? };

    let pass_count = match trust {
        Trust::Promised => passes(tiles as u32),
        Trust::Check => {
            let state = state.to_vec(stream)?;
            if state[status::BAD_OFFSET] != 0 {
                return Err(bad_offset(stream, offsets, !state[status::BAD_OFFSET] as usize, items));
            }
            passes(state[status::PIECES])
        }
    };
    if tiles == 0 {
        return Ok(());
    }

    // Without checking, even one tile may seem to be crossed by a segment that is out of order.
    let held = if pass_count > 0 || trust == Trust::Promised { items } else { 0 };
    let mut temporary_keys = stream.uninit::<K>(held)?;
    let mut temporary_values = if size_of::<V>() == 0 { stream.uninit::<V>(0)? } else { stream.uninit::<V>(held)? };
    let temporary_keys = temporary_keys.view_mut(stream)?;
    let temporary_values = if size_of::<V>() == 0 { nothing(items) } else { temporary_values.view_mut(stream)? };
    let edges = edges.view(stream)?;
    let Operands { input_keys, input_values, keys, values } = operands;
    let sort = SortTiles::<K, V, C, THREADS, ITEMS, SLACK>::new(
        offsets_view,
        edges,
        input_keys,
        input_values,
        keys,
        values,
        temporary_keys,
        temporary_values,
        compare,
    );
    // SAFETY: one block per tile; the edges were cut with the same shape; all slices have equal lengths, the temporary ones
    // where any segment goes across tiles.
    unsafe { stream.launch(sort, tiles)? };
    // The last launch repairs what a comparator that is no order has broken; else it does nothing.
    let repair = (pass_count > 0).then_some(REPAIR);
    for pass in (0..pass_count).chain(repair) {
        let merge = MergeTiles::<K, V, C, THREADS, ITEMS, SLACK>::new(
            offsets_view,
            edges,
            state.view_mut(stream)?,
            keys,
            values,
            temporary_keys,
            temporary_values,
            compare,
            pass,
        );
        // SAFETY: two blocks per tile, after the sort of the tiles, with the same arguments.
        unsafe { stream.launch(merge, 2 * tiles)? };
    }
    Ok(())
}

/// The error for the offset `index`; what made it so is read for the message.
fn bad_offset(stream: &Stream, offsets: DeviceSlice<'_, u32>, index: usize, len: usize) -> Error {
    let start = index.saturating_sub(1);
    match offsets.slice(start..=index).and_then(|pair| pair.to_vec(stream)) {
        Ok(pair) => Error::BadOffsets {
            index,
            offset: pair[index - start],
            previous: if index == 0 { 0 } else { pair[0] },
            len,
        },
        Err(error) => error,
    }
}
