//! Host functions of the segmented sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::crossing::passes;
use super::cut::{CUT_TILE, CutSegments, Edge, status};
use super::number::{NUMBER_TILE, NumberItems};
use super::pass::{MergeSegments, REPAIR};
use super::shape::{Shape, THREADS, items, slack};
use super::tile::SortSegments;
use crate::compare::{Compare, HoleOrder, KeyOrder};
use crate::hole::Held;
use crate::operator::map;
use crate::runtime::carrier::{Carry, carried_with};
use crate::runtime::held::{HeldIn, Indices, held};
use crate::runtime::offsets::{Trust, expect_offsets, invalid_offset};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::source;
use crate::transfer;
use crate::transform;
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Sorts the keys of each segment into `output`. Waits for the check of the offsets.
///
/// # Errors
/// [`Error::InvalidOffsets`] if the offsets decrease or exceed the input: nothing is written in this case.
/// [`Error::LengthMismatch`] if the slices differ in length or there is no offset at all; [`Error::TooLong`] for more
/// than 2^32 - 1 keys; any launch or allocation error.
pub fn keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let offsets: DeviceSlice<'a, u32> = offsets.into();
    let _span = crate::span!(stream, "segmented_sort::keys", offsets.len());
    let operands = keys_apart(stream, input.into(), output.into())?;
    sort(stream, offsets, operands, compare, Trust::Check)
}

/// Runs [`keys`] in place.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_in_place<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let offsets: DeviceSlice<'a, u32> = offsets.into();
    let _span = crate::span!(stream, "segmented_sort::keys_in_place", offsets.len());
    let operands = in_place(PairsMut::keys(stream, keys.into())?);
    sort(stream, offsets, operands, compare, Trust::Check)
}

/// Sorts each segment by its keys and moves the values along. Waits for the check of the offsets.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    let offsets: DeviceSlice<'a, u32> = offsets.into();
    let _span = crate::span!(stream, "segmented_sort::pairs", offsets.len());
    let operands = pairs_apart(stream, input.0.into(), input.1.into(), output.0.into(), output.1.into())?;
    sort(stream, offsets, operands, compare, Trust::Check)
}

/// Runs [`pairs`] in place.
///
/// # Errors
/// Same as [`keys`].
pub fn pairs_in_place<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    let offsets: DeviceSlice<'a, u32> = offsets.into();
    let _span = crate::span!(stream, "segmented_sort::pairs_in_place", offsets.len());
    let operands = pairs_same(stream, pairs.0.into(), pairs.1.into())?;
    sort(stream, offsets, operands, compare, Trust::Check)
}

/// [`keys`] without the check and without waiting. It launches the passes that the longest possible segment would need,
/// and allocates temporary memory for all keys if they exceed one tile.
///
/// # Errors
/// Same as [`keys`], except for the offsets.
///
/// # Safety
/// The offsets do not decrease and do not exceed the input. Otherwise the contents of the output are unspecified, but
/// nothing outside of it is read or written.
pub unsafe fn keys_unchecked<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let operands = keys_apart(stream, input.into(), output.into())?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`keys_in_place`] without the check and without waiting: see [`keys_unchecked`].
///
/// # Errors
/// Same as [`keys_unchecked`].
///
/// # Safety
/// Same as [`keys_unchecked`].
pub unsafe fn keys_in_place_unchecked<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let operands = in_place(PairsMut::keys(stream, keys.into())?);
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`pairs`] without the check and without waiting: see [`keys_unchecked`].
///
/// # Errors
/// Same as [`keys_unchecked`].
///
/// # Safety
/// Same as [`keys_unchecked`].
pub unsafe fn pairs_unchecked<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    let operands = pairs_apart(stream, input.0.into(), input.1.into(), output.0.into(), output.1.into())?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// [`pairs_in_place`] without the check and without waiting: see [`keys_unchecked`].
///
/// # Errors
/// Same as [`keys_unchecked`].
///
/// # Safety
/// Same as [`keys_unchecked`].
pub unsafe fn pairs_in_place_unchecked<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    let operands = pairs_same(stream, pairs.0.into(), pairs.1.into())?;
    sort(stream, offsets.into(), operands, compare, Trust::Promised)
}

/// Finds the order of each segment's keys: element `i` of `positions` is the position, within its segment, of the key that
/// comes to place `i` when the segment is sorted. Equal keys keep their order. The keys are not changed. Waits for the check
/// of the offsets.
///
/// ```
/// use gpu_primitives::compare::{Greater, Less};
/// use gpu_primitives::{Device, Error, segmented_sort};
///
/// let stream = Device::default()?.stream()?;
/// let offsets = stream.upload(&[0u32, 3, 7])?;
/// let keys = stream.upload(&[0.5f32, -1.0, 2.0, 4.0, 1.0, 3.0, 1.0])?;
/// let mut positions = stream.uninit::<u32>(7)?;
/// segmented_sort::argsort(&stream, &offsets, &keys, &mut positions, Less)?;
/// assert_eq!(positions.to_vec(&stream)?, [1, 0, 2, 1, 3, 2, 0]);
/// segmented_sort::argsort(&stream, &offsets, &keys, &mut positions, Greater)?;
/// assert_eq!(positions.to_vec(&stream)?, [2, 0, 1, 0, 2, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`keys`].
pub fn argsort<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSlice<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, u32>>,
    compare: C,
) -> Result<(), Error> {
    let offsets: DeviceSlice<'a, u32> = offsets.into();
    let _span = crate::span!(stream, "segmented_sort::argsort", offsets.len());
    positions_sorted(stream, offsets, keys.into(), positions.into(), compare, Trust::Check)
}

/// [`argsort`] without the check and without waiting: see [`keys_unchecked`].
///
/// # Errors
/// Same as [`keys_unchecked`].
///
/// # Safety
/// Same as [`keys_unchecked`].
pub unsafe fn argsort_unchecked<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: impl Into<DeviceSlice<'a, u32>>,
    keys: impl Into<DeviceSlice<'a, K>>,
    positions: impl Into<DeviceSliceMut<'a, u32>>,
    compare: C,
) -> Result<(), Error> {
    positions_sorted(stream, offsets.into(), keys.into(), positions.into(), compare, Trust::Promised)
}

/// Numbers the items of each segment, and sorts the numbers with the keys.
fn positions_sorted<K: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    keys: DeviceSlice<'_, K>,
    positions: DeviceSliceMut<'_, u32>,
    compare: C,
    trust: Trust,
) -> Result<(), Error> {
    let len = keys.len();
    expect_len("the positions of a segmented sort", len, positions.len())?;
    expect_offsets(offsets.len())?;
    let mut numbers = stream.uninit::<u32>(len)?;
    if len > 0 {
        let kernel = NumberItems::new(offsets.raw_view(stream)?, numbers.raw_view_mut(stream)?);
        // SAFETY: one block per tile.
        unsafe { stream.launch(kernel, len.div_ceil(NUMBER_TILE))? };
    }
    let mut sorted = stream.uninit::<K>(len)?;
    let operands = pairs_apart(stream, keys, numbers.as_slice(), sorted.as_mut_slice(), positions)?;
    sort(stream, offsets, operands, compare, trust)
}

/// [`pairs_in_place`] with a given tile shape: for tests that need many tiles of few items.
#[doc(hidden)]
pub fn pairs_shaped<K: Held, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    keys: DeviceSliceMut<'_, K>,
    values: DeviceSliceMut<'_, V>,
    compare: C,
    shape: Shape<THREADS, ITEMS, SLACK>,
) -> Result<(), Error> {
    let operands = pairs_same(stream, keys, values)?;
    run(stream, offsets, operands, HoleOrder::of::<K, C>(compare), Trust::Check, shape)
}

/// Keys and values of equal length, and their destination: other buffers, or the same ones.
type Operands<K, V> = (Pairs<K, V>, PairsMut<K, V>);

fn keys_apart<K: Pod>(
    stream: &Stream,
    input: DeviceSlice<'_, K>,
    output: DeviceSliceMut<'_, K>,
) -> Result<Operands<K, ()>, Error> {
    expect_len("the output keys of a segmented sort", input.len(), output.len())?;
    Ok((Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?))
}

fn pairs_apart<K: Pod, V: Pod>(
    stream: &Stream,
    input_keys: DeviceSlice<'_, K>,
    input_values: DeviceSlice<'_, V>,
    keys: DeviceSliceMut<'_, K>,
    values: DeviceSliceMut<'_, V>,
) -> Result<Operands<K, V>, Error> {
    expect_len("the output keys of a segmented sort", input_keys.len(), keys.len())?;
    let input = Pairs::new(stream, input_keys, input_values, "the input values of a segmented sort")?;
    Ok((input, PairsMut::new(stream, keys, values, "the output values of a segmented sort")?))
}

fn pairs_same<K: Pod, V: Pod>(
    stream: &Stream,
    keys: DeviceSliceMut<'_, K>,
    values: DeviceSliceMut<'_, V>,
) -> Result<Operands<K, V>, Error> {
    Ok(in_place(PairsMut::new(stream, keys, values, "the values of a segmented sort")?))
}

/// Each tile is read before it is written, by the same block, so input and output may be the same memory.
fn in_place<K: Pod, V: Pod>(data: PairsMut<K, V>) -> Operands<K, V> {
    (data.as_const(), data)
}

/// Sorts in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
fn sort<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    (from, to): Operands<K, V>,
    compare: C,
    trust: Trust,
) -> Result<(), Error> {
    let order = HoleOrder::of::<K, C>(compare);
    held!(K as H, {
        let keys = (from.keys, to.keys);
        if let Some((from_keys, to_keys)) = keys.carried::<H>() {
            let from = Pairs { keys: from_keys, values: from.values };
            let to = PairsMut { keys: to_keys, values: to.values };
            return sort_held(stream, offsets, (from, to), order, trust);
        }
        // Items outside of all segments stay as they are, so that keys are gathered, too.
        let len = to.keys.len();
        let held = HeldIn::<H>::new(stream, from.keys)?;
        let mut sorted = stream.uninit::<H>(len)?;
        let mut indices = Indices::new(stream, len, len)?;
        let indexed = Pairs { keys: held.view, values: indices.from.raw_view(stream)? };
        let moved = PairsMut { keys: sorted.raw_view_mut(stream)?, values: indices.to.raw_view_mut(stream)? };
        shaped(stream, offsets, (indexed, moved), order, trust)?;
        indices.gather_held(stream, held.view, to.keys)?;
        gather_values(stream, &indices, from.values, to.values)
    })
}

/// Moves the values, which may be in place.
pub(crate) fn gather_values<V: Pod>(
    stream: &Stream,
    indices: &Indices,
    from: Global<V>,
    to: GlobalMut<V>,
) -> Result<(), Error> {
    if from.as_ptr() != to.as_const().as_ptr() {
        return indices.gather_held(stream, from, to);
    }
    let mut copy = stream.uninit::<V>(from.len())?;
    transfer::copy_columns(stream, from.into(), copy.raw_view_mut(stream)?.into())?;
    indices.gather_held(stream, copy.raw_view(stream)?, to)
}

fn sort_held<H: Held, V: Pod>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<H, V>,
    order: HoleOrder,
    trust: Trust,
) -> Result<(), Error> {
    carried_with!(
        H, V, operands,
        |operands| shaped(stream, offsets, operands, order, trust),
        else |operands| sort_indexed(stream, offsets, operands, order, trust)
    )
}

/// Moves the indices of the values, and then the values.
fn sort_indexed<H: Held, V: Pod>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    (from, to): Operands<H, V>,
    order: HoleOrder,
    trust: Trust,
) -> Result<(), Error> {
    let len = to.keys.len();
    let mut indices = Indices::new(stream, len, len)?;
    let indexed = Pairs { keys: from.keys, values: indices.from.raw_view(stream)? };
    let moved = PairsMut { keys: to.keys, values: indices.to.raw_view_mut(stream)? };
    shaped(stream, offsets, (indexed, moved), order, trust)?;
    gather_values(stream, &indices, from.values, to.values)
}

/// Sorts each segment in place by an order of held keys. The offsets are in order.
pub(crate) fn sort_promised<H: Held, V: Pod>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    pairs: PairsMut<H, V>,
    order: HoleOrder,
) -> Result<(), Error> {
    sort_held(stream, offsets, in_place(pairs), order, Trust::Promised)
}

/// Returns the items of a run of [`sort_runs`].
pub(crate) const fn run_len<K, V>() -> usize {
    THREADS as usize * items::<K, V>()
}

/// Sorts runs of [`run_len`] items separately; the last one may be shorter. Input and output are the same memory, or do
/// not overlap.
pub(crate) fn sort_runs<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    (from, to): Operands<K, V>,
    compare: C,
) -> Result<(), Error> {
    with_shape!(ITEMS in 15 | 9 | 5 = items::<K, V>(), {
        const RUN: usize = THREADS as usize * ITEMS;
        /// The runs of a launch: the kernel has 32-bit positions.
        const MOST: usize = u32::MAX as usize / RUN;
        let len = to.keys.len();
        let runs = len.div_ceil(RUN).min(MOST);
        let (mut starts, mut edges) = (stream.uninit::<u32>(runs + 1)?, stream.uninit::<Edge>(runs + 1)?);
        transform::map(stream, source::counting(0u32, runs + 1), &mut starts, map!(|i: u32| -> u32 { i * RUN as u32 }))?;
        let edge = map!(|i: u32| -> Edge { Edge { position: i * RUN as u32, offset: i } });
        transform::map(stream, source::counting(0u32, runs + 1), &mut edges, edge)?;
        for first in (0..len).step_by(MOST * RUN) {
            let count = (len - first).min(MOST * RUN);
            // SAFETY: the items exist. Each run is a segment that is a tile, so that there is nothing to merge and no
            // temporary memory is used; the last edge may lie beyond the last item.
            unsafe {
                let sort = SortSegments::<K, V, C, THREADS, ITEMS, { slack(ITEMS) }>::new(
                    starts.raw_view(stream)?,
                    edges.raw_view(stream)?,
                    from.keys.slice(first, count),
                    from.values.slice(first, count),
                    to.keys.slice(first, count),
                    to.values.slice(first, count),
                    GlobalMut::empty(),
                    GlobalMut::empty(),
                    compare,
                );
                stream.launch(sort, count.div_ceil(RUN))?;
            }
        }
        Ok(())
    })
}

fn shaped<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<K, V>,
    compare: C,
    trust: Trust,
) -> Result<(), Error> {
    with_shape!(ITEMS in 15 | 9 | 5 = items::<K, V>(), {
        run(stream, offsets, operands, compare, trust, Shape::<THREADS, ITEMS, { slack(ITEMS) }>)
    })
}

fn run<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    operands: Operands<K, V>,
    compare: C,
    trust: Trust,
    shape: Shape<THREADS, ITEMS, SLACK>,
) -> Result<(), Error> {
    let (from, to) = operands;
    let items = to.keys.len();
    let limit = u32::MAX as usize;
    for len in [items, offsets.len()] {
        if len > limit {
            return Err(Error::TooLong { what: "a segmented sort", len, limit });
        }
    }
    expect_offsets(offsets.len())?;
    let tiles = shape.tiles(items as u32) as usize;
    let offsets_view = offsets.raw_view(stream)?;
    // Offsets that are out of order leave some edges unwritten. If they are not checked, those edges must not be
    // garbage.
    let mut edges: DeviceVec<Edge> = match trust {
        Trust::Check => stream.uninit(tiles + 1)?,
        Trust::Promised => stream.zeroed(tiles + 1)?,
    };
    let mut state = stream.zeroed::<u32>(status::WORDS)?;
    let cut = CutSegments::<THREADS, ITEMS, SLACK>::new(
        offsets_view,
        edges.raw_view_mut(stream)?,
        state.raw_view_mut(stream)?,
        items as u32,
    );
    // SAFETY: one block per tile of the offsets plus the end; one edge more than tiles; the status is zero.
    unsafe { stream.launch(cut, (offsets.len() + 1).div_ceil(CUT_TILE))? };

    let pass_count = match trust {
        Trust::Promised => passes(tiles as u32),
        Trust::Check => {
            let state = state.to_vec(stream)?;
            if state[status::BAD_OFFSET] != 0 {
                return Err(invalid_offset(stream, offsets, !state[status::BAD_OFFSET] as usize, items));
            }
            passes(state[status::PIECES])
        }
    };
    if tiles == 0 {
        return Ok(());
    }

    // Without the check, even a single tile may appear to be crossed by a segment that is out of order.
    let held = if pass_count > 0 || trust == Trust::Promised { items } else { 0 };
    let mut temporary_keys = stream.uninit::<K>(held)?;
    let mut temporary_values = stream.uninit::<V>(held)?;
    let temporary =
        PairsMut::new(stream, temporary_keys.as_mut_slice(), temporary_values.as_mut_slice(), "temporary values")?;
    let edges = edges.raw_view(stream)?;
    let sort = SortSegments::<K, V, C, THREADS, ITEMS, SLACK>::new(
        offsets_view,
        edges,
        from.keys,
        from.values,
        to.keys,
        to.values,
        temporary.keys,
        temporary.values,
        compare,
    );
    // SAFETY: one block per tile; the edges were cut with the same shape; all slices have equal lengths, and so do the
    // temporary ones if any segment spans tiles.
    unsafe { stream.launch(sort, tiles)? };
    // The last launch repairs the output if the comparator is not an order; otherwise it does nothing.
    let repair = (pass_count > 0).then_some(REPAIR);
    for pass in (0..pass_count).chain(repair) {
        let merge = MergeSegments::<K, V, C, THREADS, ITEMS, SLACK>::new(
            offsets_view,
            edges,
            state.raw_view_mut(stream)?,
            to.keys,
            to.values,
            temporary.keys,
            temporary.values,
            compare,
            pass,
        );
        // SAFETY: two blocks per tile, after the sort of the tiles, with the same arguments.
        unsafe { stream.launch(merge, 2 * tiles)? };
    }
    Ok(())
}
