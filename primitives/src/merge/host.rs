//! Host functions of the merge.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{MergePartition, MergeTiles, PARTITION_THREADS};
use super::place::{MAX_PLACED, PLACE_THREADS, PlaceRuns};
use super::runs::{MAX_RUNS, Runs, RunsPartition, RunsTiles, SLACK, TABLE_WORDS, tile_len as runs_tile_len};
use super::shape::{RUNS_THREADS, THREADS, items, runs_items};
use crate::compare::{Compare, HoleOrder, KeyOrder};
use crate::form::Kernel;
use crate::hole::Held;
use crate::runtime::call::{Reach, View};
use crate::runtime::carrier::carried;
use crate::runtime::held::{HeldIn, HeldOut, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut, no_values};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Global, GlobalMut, Stream, expect_len};
use bytemuck::Pod;

/// Merges two sorted sequences.
///
/// # Errors
/// [`Error::LengthMismatch`] if the output is not as long as both inputs together: nothing is written in this case.
/// [`Error::TooLong`] for 2^32 keys or more of over 16 bytes; [`Error::OutOfMemory`]; any launch error.
pub fn keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    a: impl Into<DeviceSlice<'a, K>>,
    b: impl Into<DeviceSlice<'a, K>>,
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    let (runs, out) = key_runs(stream, &[a.into(), b.into()], out.into())?;
    run(stream, &runs, out, compare, Way::Tiles)
}

/// Merges two sorted sequences of keys together with their values.
///
/// # Errors
/// Same as [`keys`], and if there is not one value per key; [`Error::TooLong`] for 2^32 values or more of a size that is
/// [moved by index](super).
pub fn pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    a: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    b: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    let a = Pairs::new(stream, a.0.into(), a.1.into(), "the first values of a merge")?;
    let b = Pairs::new(stream, b.0.into(), b.1.into(), "the second values of a merge")?;
    let out = output(stream, out.0.into(), out.1.into(), a.keys.len() + b.keys.len())?;
    run(stream, &[a, b], out, compare, Way::Tiles)
}

/// Merges up to 32 sorted runs in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn runs_keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[DeviceSlice<'_, K>],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    expect_runs(runs.len())?;
    let (runs, out) = key_runs(stream, runs, out.into())?;
    run(stream, &runs, out, compare, Way::Tiles)
}

/// Merges up to 32 sorted runs of keys together with their values, in one pass.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`pairs`].
pub fn runs_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[(DeviceSlice<'_, K>, DeviceSlice<'_, V>)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    expect_runs(runs.len())?;
    let (runs, out) = pair_runs(stream, runs, (out.0.into(), out.1.into()))?;
    run(stream, &runs, out, compare, Way::Tiles)
}

/// Merges up to [`MAX_PLACED`] short runs of keys in a single launch: each item searches the other runs for its own
/// position. For three runs or more of up to about 2^18 items in all, this is faster than [`runs_keys`]. (Keys of more
/// than 8 bytes are merged as [`runs_keys`] does it.)
///
/// The runs must be sorted by a strict weak order. Otherwise items may be lost, and others may appear more than once.
///
/// # Errors
/// [`Error::TooMany`] for more runs; otherwise the same as [`keys`].
pub fn place_keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[DeviceSlice<'_, K>],
    out: impl Into<DeviceSliceMut<'a, K>>,
    compare: C,
) -> Result<(), Error> {
    expect_placed(runs.iter().map(DeviceSlice::len))?;
    let (runs, out) = key_runs(stream, runs, out.into())?;
    run(stream, &runs, out, compare, Way::Places)
}

/// [`place_keys`] with values.
///
/// # Errors
/// The errors of [`place_keys`] and [`pairs`].
pub fn place_pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[(DeviceSlice<'_, K>, DeviceSlice<'_, V>)],
    out: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    compare: C,
) -> Result<(), Error> {
    expect_placed(runs.iter().map(|(keys, _)| keys.len()))?;
    let (runs, out) = pair_runs(stream, runs, (out.0.into(), out.1.into()))?;
    run(stream, &runs, out, compare, Way::Places)
}

/// Runs to merge, and the output.
type Operands<K, V> = (Vec<Pairs<K, V>>, PairsMut<K, V>);

fn key_runs<K: Pod>(
    stream: &Stream,
    runs: &[DeviceSlice<'_, K>],
    out: DeviceSliceMut<'_, K>,
) -> Result<Operands<K, ()>, Error> {
    expect_len("the output of a merge", runs.iter().map(DeviceSlice::len).sum(), out.len())?;
    let runs = runs.iter().map(|&keys| Pairs::keys(stream, keys)).collect::<Result<_, _>>()?;
    Ok((runs, PairsMut::keys(stream, out)?))
}

fn pair_runs<K: Pod, V: Pod>(
    stream: &Stream,
    runs: &[(DeviceSlice<'_, K>, DeviceSlice<'_, V>)],
    out: (DeviceSliceMut<'_, K>, DeviceSliceMut<'_, V>),
) -> Result<Operands<K, V>, Error> {
    let out = output(stream, out.0, out.1, runs.iter().map(|(keys, _)| keys.len()).sum())?;
    let runs = runs.iter().map(|&(keys, values)| Pairs::new(stream, keys, values, "the values of a run"));
    Ok((runs.collect::<Result<_, _>>()?, out))
}

/// The kernels that merge.
#[derive(Clone, Copy)]
enum Way {
    /// Tiles of the output, one block each.
    Tiles,
    /// The place of each item, for short runs.
    Places,
}

/// Merges runs in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
fn run<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[Pairs<K, V>],
    out: PairsMut<K, V>,
    compare: C,
    way: Way,
) -> Result<(), Error> {
    let order = HoleOrder::of::<K, C>(compare);
    held!(K as H, {
        let keys = runs.iter().map(|run| HeldIn::<H>::new(stream, run.keys)).collect::<Result<Vec<_>, _>>()?;
        let out_keys = HeldOut::<K, H>::new(stream, out.keys)?;
        let held = keys.iter().zip(runs).map(|(keys, run)| Pairs { keys: keys.view, values: run.values }).collect();
        merge_held(stream, held, PairsMut { keys: out_keys.view, values: out.values }, order, way)?;
        out_keys.finish(stream)
    })
}

fn merge_held<H: Held, V: Pod>(
    stream: &Stream,
    runs: Vec<Pairs<H, V>>,
    out: PairsMut<H, V>,
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    if const { size_of::<H>() <= 8 } {
        carried!(
            V => () | u32 | u64, (runs, out),
            |(runs, out)| merge_carried(stream, &runs, out, order, way),
            else |(runs, out)| merge_indexed(stream, &runs, out, order, way)
        )
    } else if const { size_of::<H>() > 16 } {
        carried!(
            V => u32, (runs, out),
            |(runs, out)| merge_carried(stream, &runs, out, order, way),
            else |(runs, out)| merge_indexed(stream, &runs, out, order, way)
        )
    } else {
        carried!(
            V => () | u32, (runs, out),
            |(runs, out)| merge_carried(stream, &runs, out, order, way),
            else |(runs, out)| merge_indexed(stream, &runs, out, order, way)
        )
    }
}

/// Moves the indices of the values, and then the values.
fn merge_indexed<H: Held, V: Pod>(
    stream: &Stream,
    runs: &[Pairs<H, V>],
    out: PairsMut<H, V>,
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    let mut indices = Indices::new(stream, out.keys.len(), out.keys.len())?;
    let from = indices.from.raw_view(stream)?;
    let mut start = 0;
    let mut indexed = Vec::with_capacity(runs.len());
    for run in runs {
        // SAFETY: there is an index for each value.
        indexed.push(Pairs { keys: run.keys, values: unsafe { from.slice(start, run.keys.len()) } });
        start += run.keys.len();
    }
    let moved = PairsMut { keys: out.keys, values: indices.to.raw_view_mut(stream)? };
    merge_carried(stream, &indexed, moved, order, way)?;
    let sources: Vec<_> = runs.iter().map(|run| run.values).collect();
    indices.gather(stream, &sources, out.values)
}

fn merge_carried<H: Held, V: Pod>(
    stream: &Stream,
    runs: &[Pairs<H, V>],
    out: PairsMut<H, V>,
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    match way {
        Way::Places if const { size_of::<H>() <= 8 } => place(stream, runs, out, order),
        _ => many(stream, runs, out, order),
    }
}

/// Checks the number of outputs of a tile that the caller chose.
fn expect_tile(tile: usize) -> Result<(), Error> {
    let limit = u32::MAX as usize;
    if (1..=limit).contains(&tile) {
        Ok(())
    } else {
        Err(Error::TooMany { what: "outputs of a tile", asked: tile, limit })
    }
}

/// Checks the number and the lengths of runs to place.
fn expect_placed(lengths: impl ExactSizeIterator<Item = usize>) -> Result<(), Error> {
    /// The kernel computes positions in 32 bits.
    const MAX_LEN: usize = (1 << 30) - 1;
    if lengths.len() > MAX_PLACED {
        return Err(Error::TooMany { what: "runs to place", asked: lengths.len(), limit: MAX_PLACED });
    }
    match lengths.max().filter(|&longest| longest > MAX_LEN) {
        Some(len) => Err(Error::TooLong { what: "a run to place", len, limit: MAX_LEN }),
        None => Ok(()),
    }
}

/// Creates the output views for `len` keys and values.
fn output<K: Pod, V: Pod>(
    stream: &Stream,
    keys: DeviceSliceMut<'_, K>,
    values: DeviceSliceMut<'_, V>,
    len: usize,
) -> Result<PairsMut<K, V>, Error> {
    expect_len("the output of a merge", len, keys.len())?;
    PairsMut::new(stream, keys, values, "the output of a merge's values")
}

fn expect_runs(asked: usize) -> Result<(), Error> {
    if asked <= MAX_RUNS { Ok(()) } else { Err(Error::TooMany { what: "runs to merge", asked, limit: MAX_RUNS }) }
}

fn two<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    a: Pairs<K, V>,
    b: Pairs<K, V>,
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    with_shape!(ITEMS in 15 | 9 | 5 = items::<K, V>(), two_shaped::<K, V, C, ITEMS>(stream, a, b, out, compare))
}

/// Returns the logarithm of the number of lanes that search for one boundary: fewer lanes if there are many boundaries.
fn log_lanes(boundaries: usize) -> u32 {
    const THREADS_WORTHWHILE: usize = 1 << 15;
    (THREADS_WORTHWHILE / boundaries).max(1).ilog2().min(5)
}

/// The tile boundaries of a two-way merge, for a merge kernel of your own: its blocks find their items with
/// [`Tile::nth`](super::Tile::nth).
#[derive(Debug)]
pub struct Splits {
    /// For each boundary, the number of outputs before it that come from the first side. Then, in bytes, whether the
    /// comparator contradicted itself.
    words: DeviceVec<u64>,
    boundaries: usize,
}

impl Splits {
    /// Finds the boundaries of tiles of `tile` outputs. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooMany`] if `tile` is 0 or does not fit into 32 bits; [`Error::EmptyLaunch`] if there are no items;
    /// [`Error::OutOfMemory`], or any launch error.
    pub fn find<K: Pod, C: Compare<K>>(
        stream: &Stream,
        a: DeviceSlice<'_, K>,
        b: DeviceSlice<'_, K>,
        compare: C,
        tile: usize,
    ) -> Result<Self, Error> {
        expect_tile(tile)?;
        let (a, b, order) = (a.raw_view(stream)?, b.raw_view(stream)?, HoleOrder::of::<K, C>(compare));
        held!(K as H, {
            let (a, b) = (HeldIn::<H>::new(stream, a)?, HeldIn::<H>::new(stream, b)?);
            partition(stream, a.view, b.view, order, tile)
        })
    }

    /// Returns the number of tiles.
    #[must_use]
    pub fn tiles(&self) -> usize {
        self.boundaries - 1
    }

    /// Returns the boundaries: how many of the outputs before each come from the first side.
    ///
    /// # Errors
    /// The errors of [`DeviceSlice::view`].
    pub fn boundaries(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(..self.boundaries)?.view(stream)
    }

    /// Returns, in its bytes, whether the comparator contradicted itself: see [`Tile::nth`](super::Tile::nth).
    ///
    /// # Errors
    /// The errors of [`DeviceSlice::view`].
    pub fn verdicts(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(self.boundaries..)?.view(stream)
    }
}

/// Reinterprets words as bytes.
fn bytes(words: GlobalMut<u64>) -> GlobalMut<u8> {
    // SAFETY: this is the same memory, with the length in bytes.
    unsafe { GlobalMut::from_raw(words.as_const().as_ptr().cast_mut().cast(), 8 * words.len()) }
}

/// Finds the tile boundaries. There must be at least one item.
pub(crate) fn partition<K: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    a: Global<K>,
    b: Global<K>,
    compare: C,
    tile: usize,
) -> Result<Splits, Error> {
    let tiles = (a.len() + b.len()).div_ceil(tile);
    let lanes = log_lanes(tiles + 1);
    let blocks = tiles.div_ceil((PARTITION_THREADS as usize >> lanes) - 1);
    let verdict_words = blocks.div_ceil(8);
    let mut words = stream.uninit::<u64>(tiles + 1 + verdict_words)?;
    let view = words.raw_view_mut(stream)?;
    // SAFETY: both slices lie within the scratch memory.
    let (splits, verdicts) = unsafe { (view.slice(0, tiles + 1), view.slice(tiles + 1, verdict_words)) };
    let kernel = MergePartition::new(a, b, compare, tile as u32, lanes, splits, bytes(verdicts));
    // SAFETY: one split per boundary, one verdict per block, and as many blocks as the boundaries need.
    unsafe { stream.launch(kernel, blocks)? };
    Ok(Splits { words, boundaries: tiles + 1 })
}

fn two_shaped<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    stream: &Stream,
    a: Pairs<K, V>,
    b: Pairs<K, V>,
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    let tile = THREADS as usize * ITEMS;
    let tiles = out.keys.len().div_ceil(tile);
    if tiles == 0 {
        return Ok(());
    }
    let splits = partition(stream, a.keys, b.keys, compare, tile)?;
    let (boundaries, verdicts) = (splits.boundaries(stream)?, splits.verdicts(stream)?);
    let merge = MergeTiles::<K, V, C, THREADS, ITEMS>::new(
        a.keys, a.values, b.keys, b.values, out.keys, out.values, compare, boundaries, verdicts,
    );
    // SAFETY: one block per tile, and the splits were computed for this tile size. The output is as long as both
    // inputs, and there are as many values as keys, if there are any. The scratch memory is freed in stream order.
    unsafe { stream.launch(merge, tiles) }
}

fn many<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    runs: &[Pairs<K, V>],
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    if let &[a, b] = runs {
        return two(stream, a, b, out, compare);
    }
    with_shape!(
        ITEMS in 17 | 11 | 9 | 5 = runs_items::<K, V>(),
        many_shaped::<K, V, C, ITEMS>(stream, runs, out, compare)
    )
}

/// The tile boundaries of a merge of many runs, for a merge kernel of your own.
#[derive(Debug)]
pub struct RunsSplits {
    /// The table of runs, then the boundaries, then, in bytes, whether the comparator contradicted itself.
    words: DeviceVec<u64>,
    verdicts: usize,
}

impl RunsSplits {
    /// Finds the boundaries of tiles of `tile` outputs. Does not wait.
    ///
    /// # Errors
    /// [`Error::TooMany`] for more than 32 runs, or if `tile` is 0 or does not fit into 32 bits; [`Error::EmptyLaunch`] if
    /// there are no items; [`Error::OutOfMemory`], or any launch error.
    pub fn find<K: Pod, C: Compare<K>>(
        stream: &Stream,
        runs: &[DeviceSlice<'_, K>],
        compare: C,
        tile: usize,
    ) -> Result<Self, Error> {
        expect_runs(runs.len())?;
        expect_tile(tile)?;
        if runs.iter().all(DeviceSlice::is_empty) {
            return Err(Error::EmptyLaunch { kernel: RunsPartition::<u32, HoleOrder>::NAME });
        }
        let order = HoleOrder::of::<K, C>(compare);
        held!(K as H, {
            let held = |run: &DeviceSlice<'_, K>| HeldIn::<H>::new(stream, run.raw_view(stream)?);
            let held = runs.iter().map(held).collect::<Result<Vec<_>, _>>()?;
            let runs = held.iter().map(|run| Pairs { keys: run.view, values: no_values(run.view.len()).as_const() });
            split_runs(stream, &runs.collect::<Vec<_>>(), tile, 0, order)
        })
    }

    /// Returns, for each boundary in order, how many of the outputs before it come from each run.
    ///
    /// # Errors
    /// The errors of [`DeviceSlice::view`].
    pub fn boundaries(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(TABLE_WORDS..self.verdicts)?.view(stream)
    }

    /// Returns the table of runs and the boundaries.
    fn table(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(..self.verdicts)?.view(stream)
    }

    fn verdicts(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(self.verdicts..)?.view(stream)
    }
}

/// Returns views of the keys of runs as kernel arguments. There must be at least one run.
fn views<K: Pod, V: Pod>(runs: &[Pairs<K, V>]) -> Runs<K> {
    // SAFETY: the view is empty.
    let none = unsafe { Global::from_raw(runs[0].keys.as_ptr(), 0) };
    Runs::new(std::array::from_fn(|i| runs.get(i).map_or(none, |run| run.keys)))
}

/// Returns views of the values of runs, as bytes. There must be at least one run.
fn untyped<K: Pod, V: Pod>(runs: &[Pairs<K, V>]) -> Runs<u8> {
    Runs::new(std::array::from_fn(|i| {
        let values = runs.get(i).unwrap_or(&runs[0]).values;
        let len = if i < runs.len() { values.len() * size_of::<V>() } else { 0 };
        // SAFETY: this is the same memory, as bytes.
        unsafe { Global::from_raw(values.as_ptr().cast(), len) }
    }))
}

/// Merges one to [`MAX_PLACED`](super::place::MAX_PLACED) runs in one launch that is fast for few items. The output is
/// as long as all runs together, and each run has fewer than 2^30 items. A comparator that is not a strict weak order
/// would lose items.
pub(crate) fn place<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    runs: &[Pairs<K, V>],
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    let blocks = runs.iter().map(|run| run.keys.len().div_ceil(PLACE_THREADS as usize)).sum();
    if blocks == 0 {
        return Ok(());
    }
    const { assert!(matches!(size_of::<V>(), 0 | 4 | 8 | 16), "values are carried by a type of these sizes") };
    let (keys, values) = (views(runs), untyped(runs));
    // SAFETY: this is the same memory, as bytes.
    let out_values = unsafe {
        GlobalMut::from_raw(out.values.as_const().as_ptr().cast_mut().cast(), out.values.len() * size_of::<V>())
    };
    let (count, value_bytes) = (runs.len() as u32, size_of::<V>() as u32);
    let kernel = PlaceRuns::new(keys, values, value_bytes, count, out.keys, out_values, compare);
    // SAFETY: one block per 256 items of each run. The output is as long as all runs and does not overlap them, and
    // there are as many values as keys, if there are any.
    unsafe { stream.launch(kernel, blocks) }
}

/// Returns how many rounds of pairwise merges this number of runs needs; at least one.
fn rounds(runs: usize) -> u32 {
    runs.next_power_of_two().ilog2().max(1)
}

/// Finds the boundaries of tiles of `tile` outputs; each boundary may be up to `slack` outputs off. There must be at
/// least one item, and at most [`MAX_RUNS`] runs.
fn split_runs<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    runs: &[Pairs<K, V>],
    tile: usize,
    slack: usize,
    compare: C,
) -> Result<RunsSplits, Error> {
    let total = runs.iter().map(|run| run.keys.len()).sum::<usize>();
    let tiles = total.div_ceil(tile);
    let (keys, untyped) = (views(runs), untyped(runs));
    let log_lanes = rounds(runs.len());
    let blocks = tiles.div_ceil((PARTITION_THREADS as usize >> log_lanes) - 1);
    let table_words = TABLE_WORDS + (tiles + 1) * runs.len();
    let verdict_words = blocks.div_ceil(8);
    let mut words = stream.uninit::<u64>(table_words + verdict_words)?;
    let view = words.raw_view_mut(stream)?;
    // SAFETY: both slices lie within the scratch memory.
    let (table, verdicts) = unsafe { (view.slice(0, table_words), view.slice(table_words, verdict_words)) };
    let count = runs.len() as u32;
    // With this many blocks, memory bandwidth limits the search, not its latency.
    let edges_first = u32::from(blocks > 8 * stream.device().limits().multiprocessors as usize);
    let partition = RunsPartition::new(
        keys,
        untyped,
        count,
        total as u64,
        compare,
        tile as u32,
        slack as u32,
        log_lanes,
        edges_first,
        table,
        bytes(verdicts),
    );
    // SAFETY: one split per boundary and run, one verdict per block, one lane per run, and as many blocks as the
    // boundaries need.
    unsafe { stream.launch(partition, blocks)? };
    Ok(RunsSplits { words, verdicts: table_words })
}

fn many_shaped<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    stream: &Stream,
    runs: &[Pairs<K, V>],
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    let rounds = rounds(runs.len());
    let tile = runs_tile_len(RUNS_THREADS, ITEMS, rounds);
    let tiles = out.keys.len().div_ceil(tile);
    if tiles == 0 {
        return Ok(());
    }
    let splits = split_runs(stream, runs, tile, SLACK, compare)?;
    let (table, verdicts) = (splits.table(stream)?, splits.verdicts(stream)?);
    let count = runs.len() as u32;
    // The kernel finds the runs through the table.
    let reach = Reach::when_checked(stream, || {
        let mut reach = Reach::of(runs.iter().map(|run| &run.keys));
        reach.extend(runs.iter().map(|run| &run.values));
        reach
    });
    let merge =
        RunsTiles::<K, V, C, RUNS_THREADS, ITEMS>::new(count, rounds, out.keys, out.values, compare, table, verdicts)
            .reaching(reach);
    // SAFETY: one block per tile, and the splits were computed for this tile size and these runs. The output is as long
    // as all runs, and there are as many values as keys, if there are any. The scratch memory is freed in stream order.
    unsafe { stream.launch(merge, tiles) }
}

#[cfg(test)]
mod splits {
    use super::*;
    use crate::Device;
    use crate::compare::Less;

    /// The boundaries are those that a merge on the host gives, for every tile size.
    #[test]
    fn boundaries_are_where_tiles_begin() {
        let stream = Device::cpu_checked().stream().unwrap();
        let [a, b]: [Vec<u32>; 2] = [(0..37).map(|i| 3 * i).collect(), (0..23).map(|i| 5 * i).collect()];
        // Of equal keys, those of the first side come first.
        let mut merged: Vec<(u32, usize)> =
            a.iter().map(|&key| (key, 0)).chain(b.iter().map(|&key| (key, 1))).collect();
        merged.sort();
        let on_device = [&a, &b].map(|keys| stream.upload(keys).unwrap());
        let slices = on_device.each_ref().map(DeviceVec::as_slice);
        for tile in [1, 7, 59, 60, 61, 1000] {
            let ends = (0..=merged.len().div_ceil(tile)).map(|boundary| (boundary * tile).min(merged.len()));
            let of_side = |end: usize, side| merged[..end].iter().filter(|(_, from)| *from == side).count() as u64;
            let splits = Splits::find(&stream, slices[0], slices[1], Less, tile).unwrap();
            assert_eq!(splits.tiles(), merged.len().div_ceil(tile));
            let found = splits.words.slice(..splits.boundaries).unwrap().to_vec(&stream).unwrap();
            assert_eq!(found, ends.clone().map(|end| of_side(end, 0)).collect::<Vec<_>>(), "tiles of {tile}");
            let splits = RunsSplits::find(&stream, &slices, Less, tile).unwrap();
            let found = splits.words.slice(TABLE_WORDS..splits.verdicts).unwrap().to_vec(&stream).unwrap();
            let expected: Vec<u64> = ends.flat_map(|end| [of_side(end, 0), of_side(end, 1)]).collect();
            assert_eq!(found, expected, "tiles of {tile}, runs");
        }
    }

    #[test]
    fn tiles_and_runs_that_cannot_be() {
        let stream = Device::cpu().stream().unwrap();
        let (some, none) = (stream.upload(&[1u32, 2]).unwrap(), stream.uninit::<u32>(0).unwrap());
        let (some, none) = (some.as_slice(), none.as_slice());
        for tile in [0, 1 << 32] {
            assert!(matches!(Splits::find(&stream, some, some, Less, tile), Err(Error::TooMany { .. })));
            assert!(matches!(RunsSplits::find(&stream, &[some], Less, tile), Err(Error::TooMany { .. })));
        }
        assert!(matches!(Splits::find(&stream, none, none, Less, 8), Err(Error::EmptyLaunch { .. })));
        for runs in [&[][..], &[none, none]] {
            assert!(matches!(RunsSplits::find(&stream, runs, Less, 8), Err(Error::EmptyLaunch { .. })));
        }
    }
}

/// Deliberate bugs where kernels compute addresses: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::compare::Less;
    use crate::{Device, FaultKind};

    const ITEMS: usize = runs_items::<u32, ()>();

    fn sorted_runs(stream: &Stream) -> [DeviceVec<u32>; 3] {
        [0u32, 1, 2].map(|first| stream.upload(&(0..2000).map(|i| 3 * i + first).collect::<Vec<_>>()).unwrap())
    }

    fn fault(result: Result<(), Error>) -> FaultKind {
        match result {
            Err(Error::KernelFault(fault)) => fault.kind,
            other => panic!("the bug was not found: {other:?}"),
        }
    }

    #[test]
    fn runs_that_the_launch_was_not_given() {
        let stream = Device::cpu_checked().stream().unwrap();
        let runs = sorted_runs(&stream);
        let pairs = runs.each_ref().map(|run| Pairs::keys(&stream, run.as_slice()).unwrap());
        let rounds = rounds(runs.len());
        let tile = runs_tile_len(RUNS_THREADS, ITEMS, rounds);
        let splits = split_runs(&stream, &pairs, tile, SLACK, Less).unwrap();
        let mut out = stream.uninit::<u32>(6000).unwrap();
        let out = PairsMut::keys(&stream, out.as_mut_slice()).unwrap();
        let kernel = RunsTiles::<u32, (), Less, RUNS_THREADS, ITEMS>::new(
            3,
            rounds,
            out.keys,
            out.values,
            Less,
            splits.table(&stream).unwrap(),
            splits.verdicts(&stream).unwrap(),
        );
        // SAFETY: the checked device refuses the access; that is what the test checks.
        let result = unsafe { stream.launch(kernel, 6000usize.div_ceil(tile)) };
        let FaultKind::NotGiven { what } = fault(result) else { panic!("another fault") };
        assert!(what.contains("of an allocation of 8000 bytes that the launch was not given"), "{what}");
    }

    /// The view of the second run is longer than the run itself.
    #[test]
    fn runs_that_are_shorter_than_their_views() {
        let stream = Device::cpu_checked().stream().unwrap();
        let runs = sorted_runs(&stream);
        let mut pairs = runs.each_ref().map(|run| Pairs::keys(&stream, run.as_slice()).unwrap());
        // SAFETY: the checked device refuses the access; that is what the test checks.
        pairs[1].keys = unsafe { Global::from_raw(runs[1].as_slice().as_ptr(), 2100) };
        pairs[1].values = crate::runtime::pairs::no_values(2100).as_const();
        let mut out = stream.uninit::<u32>(6100).unwrap();
        for merge in [many::<u32, (), Less>, place::<u32, (), Less>] {
            let out = PairsMut::keys(&stream, out.as_mut_slice()).unwrap();
            assert!(matches!(fault(merge(&stream, &pairs, out, Less)), FaultKind::NotGiven { .. }));
        }
        let out = PairsMut::keys(&stream, out.slice_mut(..4100).unwrap()).unwrap();
        assert!(matches!(fault(two(&stream, pairs[0], pairs[1], out, Less)), FaultKind::NotGiven { .. }));
    }

    /// The memory of the runs is freed, but the views remain.
    #[test]
    fn runs_that_were_freed() {
        let stream = Device::cpu_checked().stream().unwrap();
        let runs = sorted_runs(&stream);
        let pairs = runs.each_ref().map(|run| Pairs::keys(&stream, run.as_slice()).unwrap());
        drop(runs);
        let mut out = stream.uninit::<u32>(6000).unwrap();
        for merge in [many::<u32, (), Less>, place::<u32, (), Less>] {
            let out = PairsMut::keys(&stream, out.as_mut_slice()).unwrap();
            let FaultKind::Freed { by, .. } = fault(merge(&stream, &pairs, out, Less)) else { panic!("another fault") };
            // A stripped executable has no line information.
            assert!(by.is_none_or(|by| by.contains("merge/host.rs")));
        }
    }
}
