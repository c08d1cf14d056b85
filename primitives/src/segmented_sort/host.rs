//! Host functions of the segmented sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::crossing::passes;
use super::device::cut::{CUT_TILE, CutSegments, Edge, status};
use super::device::instances::sort_and_merge;
use super::device::number::{NUMBER_TILE, NumberItems};
use super::device::pass::{MergeSegments, REPAIR};
use super::device::shape::{Shape, THREADS, slack};
use super::device::tile::SortSegments;
use crate::compare::{Compare, HoleOrder};
use crate::hole::RegisterRepr;
use crate::host::repr::{expect_repr, repr_layout};
use crate::host::runtime::column::{AnySliceMut, AnyVec, Column, ColumnMut};
use crate::host::runtime::offsets::{Offsets, Trust, expect_offsets, invalid_offset};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::{self, Elements, SliceTarget, Source};
use crate::input::{Count, SegmentOffsets};
use crate::operator::map;
use crate::transform;
use crate::transform::InMemory;
use crate::transform::laid_out::{Indices, LaidOut, copy_first};
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;
use std::marker::PhantomData;

/// Sorts the keys of each segment into `output`.
///
/// Segment `i` is `offsets[i]..offsets[i + 1]`. Items before the first offset and after the last one belong to no segment:
/// they are neither read nor written. Equal keys keep their order. See [segments](crate::sort#segments).
///
/// Waits for the check of the offsets. With [`Offsets::unchecked`] it does not wait: it launches the passes that the
/// longest possible segment would need, and allocates temporary memory for all keys.
///
/// Computed keys are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
///
/// The keys may be [counted](crate::source::counted), and so may be the [offsets](Offsets): by the number of segments. With both on the
/// device, and unchecked offsets, a graph records the call once, and each launch sorts as many segments of as many keys as there
/// are then. Keys beyond their number are not read, and segments must not reach them.
///
/// ```
/// use gpu_primitives::compare::Less;
/// use gpu_primitives::{Device, Error, sort};
///
/// let stream = Device::cpu().stream()?;
/// let keys = stream.upload(&[5u32, 1, 3, 2, 9, 2, 0])?;
/// let offsets = stream.upload(&[0u32, 3, 3, 7])?; // three segments, the second one empty
/// let mut sorted = stream.uninit::<u32>(7)?;
/// sort::segmented_keys(&stream, &keys, &offsets, &mut sorted, Less)?;
/// assert_eq!(sorted.to_vec(&stream)?, [1, 3, 5, 0, 2, 2, 9]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidOffsets`] if the offsets decrease or exceed the input: nothing is written in this case.
/// [`Error::LengthMismatch`] if the slices differ in length or there is no offset at all; [`Error::TooLong`] for more
/// than 2^32 - 1 keys; any launch or allocation error.
pub fn segmented_keys<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    offsets: impl Into<Offsets<'b, u32>>,
    output: impl Into<DeviceSliceMut<'c, K>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "sort::segmented_keys", offsets.len());
    let (from, to) = (input.into_parts()?.elements(), output.into().into());
    sort_keys(stream, offsets, from, to, HoleOrder::of::<K, C>(compare))
}

/// Runs [`segmented_keys`] in place.
///
/// # Errors
/// Same as [`segmented_keys`].
pub fn segmented_keys_in_place<'a, 'b, K: Pod, C: Compare<K>>(
    stream: &Stream,
    keys: impl SliceTarget<'a, K>,
    offsets: impl Into<Offsets<'b, u32>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "sort::segmented_keys_in_place", offsets.len());
    let operands = in_place(ColumnsMut::keys(stream, keys.into_first().lower())?);
    sort(stream, offsets, operands, HoleOrder::of::<K, C>(compare))
}

/// Sorts each segment by its keys and moves the values along. Waits like [`segmented_keys`].
///
/// # Errors
/// Same as [`segmented_keys`].
pub fn segmented_pairs<'a, 'b, 'c, 'd, 'e, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    offsets: impl Into<Offsets<'c, u32>>,
    output: (impl Into<DeviceSliceMut<'d, K>>, impl Into<DeviceSliceMut<'e, V>>),
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "sort::segmented_pairs", offsets.len());
    let from = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let to = (output.0.into().into(), output.1.into().into());
    sort_pairs(stream, offsets, from, to, HoleOrder::of::<K, C>(compare))
}

/// Runs [`segmented_pairs`] in place.
///
/// # Errors
/// Same as [`segmented_keys`].
pub fn segmented_pairs_in_place<'a, 'b, 'c, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    pairs: (impl SliceTarget<'a, K>, impl SliceTarget<'b, V>),
    offsets: impl Into<Offsets<'c, u32>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "sort::segmented_pairs_in_place", offsets.len());
    let operands = pairs_same(stream, (pairs.0.into_first().lower(), pairs.1.into_first().lower()))?;
    sort(stream, offsets, operands, HoleOrder::of::<K, C>(compare))
}

/// Finds the order of each segment's keys: element `i` of `positions` is the position, within its segment, of the key that
/// comes to place `i` when the segment is sorted. Equal keys keep their order. The keys are not changed. Waits like
/// [`segmented_keys`].
///
/// ```
/// use gpu_primitives::compare::{Greater, Less};
/// use gpu_primitives::{Device, Error, sort};
///
/// let stream = Device::default()?.stream()?;
/// let keys = stream.upload(&[0.5f32, -1.0, 2.0, 4.0, 1.0, 3.0, 1.0])?;
/// let offsets = stream.upload(&[0u32, 3, 7])?;
/// let mut positions = stream.uninit::<u32>(7)?;
/// sort::segmented_argsort(&stream, &keys, &offsets, &mut positions, Less)?;
/// assert_eq!(positions.to_vec(&stream)?, [1, 0, 2, 1, 3, 2, 0]);
/// sort::segmented_argsort(&stream, &keys, &offsets, &mut positions, Greater)?;
/// assert_eq!(positions.to_vec(&stream)?, [2, 0, 1, 0, 2, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Same as [`segmented_keys`].
pub fn segmented_argsort<'a, 'b, 'c, K: Pod, C: Compare<K>>(
    stream: &Stream,
    keys: impl Source<'a, K>,
    offsets: impl Into<Offsets<'b, u32>>,
    positions: impl Into<DeviceSliceMut<'c, u32>>,
    compare: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let offsets = offsets.into();
    let _span = crate::span!(stream, "sort::segmented_argsort", offsets.len());
    positions_sorted(stream, keys.into_parts()?.elements(), offsets, positions.into(), HoleOrder::of::<K, C>(compare))
}

/// [`segmented_pairs_in_place`] with a given tile shape.
///
/// # Errors
/// Those of [`segmented_pairs_in_place`].
#[cfg(feature = "testing")]
pub fn segmented_pairs_shaped<
    K: RegisterRepr,
    V: Pod,
    C: Compare<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const SLACK: u32,
>(
    stream: &Stream,
    pairs: (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, V>),
    offsets: Offsets<'_, u32>,
    compare: C,
    shape: Shape<THREADS, ITEMS, SLACK>,
) -> Result<(), Error> {
    let operands = pairs_same(stream, (pairs.0.into(), pairs.1.into()))?;
    let kernels = Typed::<K, V, THREADS, ITEMS, SLACK> { shape, types: PhantomData };
    run(stream, offsets, operands, HoleOrder::of::<K, C>(compare), &kernels)
}

/// Numbers the items of each segment, and sorts the numbers with the keys.
fn positions_sorted(
    stream: &Stream,
    keys: Elements<'_>,
    offsets: Offsets<'_, u32>,
    positions: DeviceSliceMut<'_, u32>,
    order: HoleOrder,
) -> Result<(), Error> {
    let len = keys.len();
    expect_len("the positions of a segmented sort", len, positions.len())?;
    expect_offsets(offsets.len())?;
    let mut numbers = stream.uninit::<u32>(len)?;
    if len > 0 {
        let kernel = NumberItems::new(offsets.open(stream)?, numbers.raw_view_mut(stream)?);
        // SAFETY: one block per tile.
        unsafe { stream.launch(kernel, len.div_ceil(NUMBER_TILE))? };
    }
    let keys = InMemory::new(stream, keys)?;
    let mut sorted = AnyVec::uninit(stream, keys.as_slice().size(), len)?;
    let from = Columns::new(stream, (keys.as_slice(), numbers.as_slice().into()), VALUES)?;
    let to = ColumnsMut::new(stream, (sorted.as_mut_slice(), positions.into()), VALUES)?;
    sort(stream, offsets, (from, to), order)
}

/// Keys and values of equal length, and their destination: other buffers, or the same ones.
type Operands = (Columns, ColumnsMut);

/// What error messages call the values.
const VALUES: &str = "the values of a segmented sort";

fn sort_keys(
    stream: &Stream,
    offsets: Offsets<'_, u32>,
    from: Elements<'_>,
    to: AnySliceMut<'_>,
    order: HoleOrder,
) -> Result<(), Error> {
    expect_len("the output keys of a segmented sort", from.len(), to.len())?;
    let from = InMemory::new(stream, from)?;
    sort(stream, offsets, (Columns::keys(stream, from.as_slice())?, ColumnsMut::keys(stream, to)?), order)
}

fn sort_pairs(
    stream: &Stream,
    offsets: Offsets<'_, u32>,
    from: (Elements<'_>, Elements<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
) -> Result<(), Error> {
    expect_len("the output keys of a segmented sort", from.0.len(), to.0.len())?;
    let (keys, values) = InMemory::pairs(stream, from)?;
    let from = Columns::new(stream, (keys.as_slice(), values.as_slice()), "the input values of a segmented sort")?;
    let to = ColumnsMut::new(stream, to, "the output values of a segmented sort")?;
    sort(stream, offsets, (from, to), order)
}

fn pairs_same(stream: &Stream, pairs: (AnySliceMut<'_>, AnySliceMut<'_>)) -> Result<Operands, Error> {
    Ok(in_place(ColumnsMut::new(stream, pairs, VALUES)?))
}

/// Each tile is read before it is written, by the same block, so input and output may be the same memory.
fn in_place(data: ColumnsMut) -> Operands {
    (data.as_const(), data)
}

/// Sorts in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
fn sort(stream: &Stream, offsets: Offsets<'_, u32>, (from, to): Operands, order: HoleOrder) -> Result<(), Error> {
    let layout = repr_layout(from.keys.size());
    if from.keys.has_layout(layout) && to.keys.as_const().has_layout(layout) {
        return sort_held(stream, offsets, (from, to), order);
    }
    // Items outside of all segments stay as they are, so that keys are gathered, too.
    let len = to.keys.len();
    let held = LaidOut::new(stream, from.keys, layout)?;
    let mut sorted = AnyVec::uninit(stream, layout.size(), len)?;
    let values = GatheredValues::new(stream, from.values.limited(from.limit()), to.values)?;
    let indices = sort_indices(stream, offsets, held.view, sorted.raw_view_mut(stream)?, order)?;
    indices.gather_held(stream, held.view, to.keys)?;
    values.gather(stream, &indices)
}

/// Values that are gathered by their indices, perhaps to where they are. Those are copied first: what takes memory happens before any
/// output is written.
#[must_use]
pub(crate) struct GatheredValues {
    from: Column,
    to: ColumnMut,
    /// It is freed in stream order.
    _copy: Option<AnyVec>,
}

impl GatheredValues {
    pub(crate) fn new(stream: &Stream, from: Column, to: ColumnMut) -> Result<Self, Error> {
        if from.address() != to.as_const().address() {
            return Ok(Self { from, to, _copy: None });
        }
        let mut copy = AnyVec::uninit(stream, from.size(), from.len())?;
        let view = copy.raw_view_mut(stream)?;
        copy_first(stream, from, view)?;
        Ok(Self { from: view.as_const(), to, _copy: Some(copy) })
    }

    /// Moves the values to where their indices are.
    pub(crate) fn gather(self, stream: &Stream, indices: &Indices) -> Result<(), Error> {
        indices.gather_held(stream, self.from, self.to)
    }
}

/// Sorts keys that are held. Where no kernel moves the values, it moves their indices, and then the values.
fn sort_held(stream: &Stream, offsets: Offsets<'_, u32>, (from, to): Operands, order: HoleOrder) -> Result<(), Error> {
    let key = from.keys.size();
    if moves_values(key, from.values) && moves_values(key, to.values.as_const()) {
        return run(stream, offsets, (from, to), order, kernels(from.sizes()));
    }
    let values = GatheredValues::new(stream, from.values.limited(from.limit()), to.values)?;
    let indices = sort_indices(stream, offsets, from.keys, to.keys, order)?;
    values.gather(stream, &indices)
}

/// Sorts keys that are held, and returns where the items go.
fn sort_indices(
    stream: &Stream,
    offsets: Offsets<'_, u32>,
    keys: Column,
    sorted: ColumnMut,
    order: HoleOrder,
) -> Result<Indices, Error> {
    let mut indices = Indices::new(stream, keys.len(), keys.len())?;
    let indexed = Columns { keys, values: indices.from.raw_view(stream)?.into() };
    let moved = ColumnsMut { keys: sorted, values: indices.to.raw_view_mut(stream)?.into() };
    run(stream, offsets, (indexed, moved), order, kernels(indexed.sizes()))?;
    Ok(indices)
}

/// Sorts each segment in place by an order of held keys. The offsets are in order.
pub(crate) fn sort_promised(
    stream: &Stream,
    offsets: DeviceSlice<'_, u32>,
    pairs: ColumnsMut,
    order: HoleOrder,
) -> Result<(), Error> {
    sort_held(stream, Offsets::promised(offsets), in_place(pairs), order)
}

/// The kernels for keys and values of some types, in tiles of some shape.
trait Kernels {
    /// Returns the most items of a tile.
    fn tile(&self) -> usize;

    /// Returns the number of tiles that `items` items are cut into.
    fn tiles(&self, items: u32) -> usize;

    /// Launches the kernel that cuts the input into tiles.
    ///
    /// # Safety
    /// The buffers satisfy its contract.
    unsafe fn cut(&self, stream: &Stream, cut: Cut, blocks: usize) -> Result<(), Error>;

    /// Launches the kernel that sorts the tiles.
    ///
    /// # Safety
    /// The buffers satisfy its contract.
    unsafe fn sort(&self, stream: &Stream, from: Columns, job: &Job, blocks: usize) -> Result<(), Error>;

    /// Launches a pass that merges tiles.
    ///
    /// # Safety
    /// The buffers satisfy its contract.
    unsafe fn merge(
        &self,
        stream: &Stream,
        state: GlobalMut<u32>,
        job: &Job,
        pass: u32,
        blocks: usize,
    ) -> Result<(), Error>;
}

/// What [`CutSegments`] takes.
struct Cut {
    offsets: SegmentOffsets<u32>,
    edges: GlobalMut<Edge>,
    state: GlobalMut<u32>,
    items: Count,
}

/// What the kernels that sort and merge take.
struct Job {
    offsets: SegmentOffsets<u32>,
    edges: Global<Edge>,
    to: ColumnsMut,
    temporary: ColumnsMut,
    order: HoleOrder,
}

struct Typed<K, V, const THREADS: u32, const ITEMS: usize, const SLACK: u32> {
    shape: Shape<THREADS, ITEMS, SLACK>,
    types: PhantomData<fn(K, V)>,
}

impl<K: RegisterRepr, V: Pod, const THREADS: u32, const ITEMS: usize, const SLACK: u32> Kernels
    for Typed<K, V, THREADS, ITEMS, SLACK>
{
    fn tile(&self) -> usize {
        THREADS as usize * ITEMS
    }

    fn tiles(&self, items: u32) -> usize {
        self.shape.tiles(items) as usize
    }

    unsafe fn cut(&self, stream: &Stream, cut: Cut, blocks: usize) -> Result<(), Error> {
        let kernel = CutSegments::<THREADS, ITEMS, SLACK>::new(cut.offsets, cut.edges, cut.state, cut.items);
        // SAFETY: guaranteed by the caller.
        unsafe { stream.launch(kernel, blocks) }
    }

    unsafe fn sort(&self, stream: &Stream, from: Columns, job: &Job, blocks: usize) -> Result<(), Error> {
        let (keys, from) = (from.keys.prefix::<K>(), from.as_types::<K, V>());
        let (to, temporary) = (job.to.as_types::<K, V>(), job.temporary.as_types::<K, V>());
        let kernel = SortSegments::<K, V, HoleOrder, THREADS, ITEMS, SLACK>::new(
            job.offsets,
            job.edges,
            keys,
            from.values,
            to,
            temporary,
            job.order,
        );
        // SAFETY: guaranteed by the caller.
        unsafe { stream.launch(kernel, blocks) }
    }

    unsafe fn merge(
        &self,
        stream: &Stream,
        state: GlobalMut<u32>,
        job: &Job,
        pass: u32,
        blocks: usize,
    ) -> Result<(), Error> {
        let (to, temporary) = (job.to.as_types::<K, V>(), job.temporary.as_types::<K, V>());
        let kernel = MergeSegments::<K, V, HoleOrder, THREADS, ITEMS, SLACK>::new(
            job.offsets,
            job.edges,
            state,
            to,
            temporary,
            job.order,
            pass,
        );
        // SAFETY: guaranteed by the caller.
        unsafe { stream.launch(kernel, blocks) }
    }
}

/// Returns the kernels for keys and values of these sizes.
fn kernels(sizes: (usize, usize)) -> &'static dyn Kernels {
    sort_and_merge!(sizes => (K, V, ITEMS), {
        &Typed::<K, V, THREADS, ITEMS, { slack(ITEMS) }> { shape: Shape, types: PhantomData }
    })
}

/// Returns whether the kernels move these values with keys that are held in `key` bytes.
pub(crate) fn moves_values(key: usize, values: Column) -> bool {
    sort_and_merge!((key, values.size()) => (K, V, ITEMS), values.fits::<V>(), else false)
}

/// Returns the items of a run of [`sort_runs`].
pub(crate) fn run_len(sizes: (usize, usize)) -> usize {
    kernels(sizes).tile()
}

/// Sorts runs of `run` items separately; the last one may be shorter. A run has at most [`run_len`] items, and tiles have as many runs
/// as they have room for. Input and output are the same memory, or do not overlap. Keys are held, and values are of a size that
/// kernels move.
pub(crate) fn sort_runs(
    stream: &Stream,
    from: Columns,
    to: ColumnsMut,
    order: HoleOrder,
    run: usize,
) -> Result<(), Error> {
    let kernels = kernels(to.sizes());
    let (len, runs_per_tile) = (to.keys.len(), kernels.tile() / run);
    let tile = runs_per_tile * run;
    // The tiles of a launch: the kernel has 32-bit positions.
    let most = u32::MAX as usize / tile;
    let tiles = len.div_ceil(tile).min(most);
    let runs = len.div_ceil(run).min(most * runs_per_tile);
    let (mut starts, mut edges) = (stream.uninit::<u32>(runs + 1)?, stream.uninit::<Edge>(tiles + 1)?);
    let start = map!(run: u32 = run as u32; |i: u32| -> u32 { i * run });
    transform::map(stream, source::counting(0u32, runs + 1), &mut starts, start)?;
    let edge = map!(tile: u32 = tile as u32, runs: u32 = runs_per_tile as u32; |i: u32| -> Edge {
        Edge { position: i * tile, offset: i * runs }
    });
    transform::map(stream, source::counting(0u32, tiles + 1), &mut edges, edge)?;
    for first in (0..len).step_by(most * tile) {
        let count = (len - first).min(most * tile);
        let job = Job {
            offsets: starts.raw_view(stream)?.into(),
            edges: edges.raw_view(stream)?,
            to: to.slice(first, count),
            temporary: to.slice(0, 0),
            order,
        };
        // SAFETY: each run is a segment that lies in a tile, so that there is nothing to merge and no temporary memory is used;
        // the last edge may lie beyond the last item.
        unsafe { kernels.sort(stream, from.slice(first, count), &job, count.div_ceil(tile))? };
    }
    Ok(())
}

fn run(
    stream: &Stream,
    offsets: Offsets<'_, u32>,
    (from, to): Operands,
    order: HoleOrder,
    kernels: &dyn Kernels,
) -> Result<(), Error> {
    let trust = offsets.trust();
    let items = to.keys.len();
    let limit = u32::MAX as usize;
    for len in [items, offsets.len()] {
        if len > limit {
            return Err(Error::TooLong { what: "a segmented sort", len, limit });
        }
    }
    let offsets_view = offsets.open(stream)?;
    let tiles = kernels.tiles(items as u32);
    // Offsets that are out of order leave some edges unwritten. If they are not checked, those edges must not be
    // garbage.
    let mut edges: DeviceVec<Edge> = match trust {
        Trust::Check => stream.uninit(tiles + 1)?,
        Trust::Promised => stream.zeroed(tiles + 1)?,
    };
    let mut state = stream.zeroed::<u32>(status::WORDS)?;
    let cut = Cut {
        offsets: offsets_view,
        edges: edges.raw_view_mut(stream)?,
        state: state.raw_view_mut(stream)?,
        items: Count::new(items, from.limit().counted()),
    };
    // SAFETY: one block per tile of the offsets plus the end; one edge more than tiles; the status is zero.
    unsafe { kernels.cut(stream, cut, (offsets.len() + 1).div_ceil(CUT_TILE))? };

    let pass_count = match trust {
        Trust::Promised => passes(tiles as u32),
        Trust::Check => {
            let state = state.to_vec(stream)?;
            if state[status::BAD_OFFSET] != 0 {
                let (index, items) = (!state[status::BAD_OFFSET] as usize, state[status::ITEMS] as usize);
                return Err(invalid_offset(stream, offsets.as_slice(), index, items));
            }
            passes(state[status::PIECES])
        }
    };
    if tiles == 0 {
        return Ok(());
    }

    // Without the check, even a single tile may appear to be crossed by a segment that is out of order.
    let held = if pass_count > 0 || trust == Trust::Promised { items } else { 0 };
    let mut temporary_keys = AnyVec::uninit(stream, to.keys.size(), held)?;
    let mut temporary_values = AnyVec::uninit(stream, to.values.size(), held)?;
    let temporary =
        ColumnsMut { keys: temporary_keys.raw_view_mut(stream)?, values: temporary_values.raw_view_mut(stream)? };
    let job = Job { offsets: offsets_view, edges: edges.raw_view(stream)?, to, temporary, order };
    // SAFETY: one block per tile; the edges were cut with the same shape; all slices have equal lengths, and so do the
    // temporary ones if any segment spans tiles.
    unsafe { kernels.sort(stream, from, &job, tiles)? };
    // The last launch repairs the output if the comparator is not an order; otherwise it does nothing.
    let repair = (pass_count > 0).then_some(REPAIR);
    for pass in (0..pass_count).chain(repair) {
        // SAFETY: two blocks per tile, after the sort of the tiles, with the same arguments.
        unsafe { kernels.merge(stream, state.raw_view_mut(stream)?, &job, pass, 2 * tiles)? };
    }
    Ok(())
}
