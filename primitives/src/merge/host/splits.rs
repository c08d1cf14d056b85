//! Where the tiles of a merge begin: found by a kernel before the one that merges.

#![deny(unsafe_op_in_unsafe_fn)]

use crate::compare::{Compare, HoleOrder};
use crate::form::Kernel;
use crate::host::repr::{expect_repr, repr_layout};
use crate::host::runtime::call::{Reach, View};
use crate::host::runtime::column::{AnySlice, Column};
use crate::host::runtime::loading::Next;
use crate::host::runtime::pairs::{Columns, no_values};
use crate::input::Limit;
use crate::merge::device::kernel::{MergePartition, PARTITION_THREADS, merge_partition};
use crate::merge::device::runs::{
    BoundarySearch, MAX_RUNS, RunLimits, Runs, RunsPartition, TABLE_WORDS, runs_partition,
};
use crate::merge::device::tile::TileSplits;
use crate::transform::laid_out::LaidOut;
use crate::{DeviceSlice, DeviceVec, Error, Global, GlobalMut, Stream};
use bytemuck::Pod;

/// Returns the logarithm of the number of lanes that search for one boundary: fewer lanes if there are many boundaries.
fn log_lanes(boundaries: usize) -> u32 {
    const THREADS_WORTHWHILE: usize = 1 << 15;
    (THREADS_WORTHWHILE / boundaries).max(1).ilog2().min(5)
}

/// The tile boundaries of a two-way merge, for a merge kernel of your own: its blocks find their items with
/// [`Tile::nth`](crate::merge::Tile::nth).
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
        const { expect_repr::<K>() };
        Self::lowered(stream, a.into(), b.into(), HoleOrder::of::<K, C>(compare), tile)
    }

    /// [`find`](Self::find) for keys that are known by their size alone.
    pub(crate) fn lowered(
        stream: &Stream,
        a: AnySlice<'_>,
        b: AnySlice<'_>,
        order: HoleOrder,
        tile: usize,
    ) -> Result<Self, Error> {
        expect_tile(tile)?;
        assert_eq!(a.size(), b.size(), "both sides of a merge have keys of the same size");
        let layout = repr_layout(a.size());
        let a = LaidOut::new(stream, a.raw_view(stream)?, layout)?;
        let b = LaidOut::new(stream, b.raw_view(stream)?, layout)?;
        partition(stream, a.view, b.view, order, tile, |_| {})
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

    /// Returns both, for the kernels of this crate.
    pub(crate) fn view(&self, stream: &Stream) -> Result<View<'_, TileSplits>, Error> {
        let (boundaries, verdicts) = (self.boundaries(stream)?, self.verdicts(stream)?);
        let mut reach = Reach::none();
        boundaries.add_to(&mut reach);
        verdicts.add_to(&mut reach);
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe {
            let splits = TileSplits { boundaries: boundaries.into_param(), verdicts: verdicts.into_param() };
            Ok(View::new(splits, reach))
        }
    }

    /// Returns, in its bytes, whether the comparator contradicted itself: see [`Tile::nth`](crate::merge::Tile::nth).
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

/// Finds the tile boundaries, for keys that are held. There must be at least one item.
pub(crate) fn partition(
    stream: &Stream,
    a: Column,
    b: Column,
    order: HoleOrder,
    tile: usize,
    next: Next,
) -> Result<Splits, Error> {
    let tiles = (a.len() + b.len()).div_ceil(tile);
    let lanes = log_lanes(tiles + 1);
    let blocks = tiles.div_ceil((PARTITION_THREADS as usize >> lanes) - 1);
    let verdict_words = blocks.div_ceil(8);
    let mut words = stream.uninit::<u64>(tiles + 1 + verdict_words)?;
    let view = words.raw_view_mut(stream)?;
    // SAFETY: both slices lie within the scratch memory.
    let (splits, verdicts) = unsafe { (view.slice(0, tiles + 1), view.slice(tiles + 1, verdict_words)) };
    merge_partition!(a.size() => H, {
        let (a, b) = (a.prefix::<H>(), b.prefix::<H>());
        let kernel =
            MergePartition::new(a, b, order, tile as u32, lanes, splits, bytes(verdicts)).followed_by(next);
        // SAFETY: one split per boundary, one verdict per block, and as many blocks as the boundaries need.
        unsafe { stream.launch(kernel, blocks)? };
    });
    Ok(Splits { words, boundaries: tiles + 1 })
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
        const { expect_repr::<K>() };
        Self::lowered(stream, &AnySlice::all(runs), HoleOrder::of::<K, C>(compare), tile)
    }

    /// [`find`](Self::find) for keys that are known by their size alone.
    pub(crate) fn lowered(
        stream: &Stream,
        runs: &[AnySlice<'_>],
        order: HoleOrder,
        tile: usize,
    ) -> Result<Self, Error> {
        expect_runs(runs.len())?;
        expect_tile(tile)?;
        if runs.iter().all(AnySlice::is_empty) {
            return Err(Error::EmptyLaunch { kernel: RunsPartition::<u32, HoleOrder>::NAME });
        }
        let layout = repr_layout(runs[0].size());
        assert!(runs.iter().all(|run| run.size() == runs[0].size()), "all runs of a merge have keys of the same size");
        let held = |run: &AnySlice<'_>| LaidOut::new(stream, run.raw_view(stream)?, layout);
        let held = runs.iter().map(held).collect::<Result<Vec<_>, _>>()?;
        let runs =
            held.iter().map(|run| Columns { keys: run.view, values: no_values(run.view.len()).as_const().into() });
        split_runs(stream, &runs.collect::<Vec<_>>(), tile, 0, order, |_| {})
    }

    /// Returns, for each boundary in order, how many of the outputs before it come from each run.
    ///
    /// # Errors
    /// The errors of [`DeviceSlice::view`].
    pub fn boundaries(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(TABLE_WORDS..self.verdicts)?.view(stream)
    }

    /// Returns the [`boundaries`](Self::boundaries). Waits for the stream.
    pub(crate) fn to_vec(&self, stream: &Stream) -> Result<Vec<u64>, Error> {
        self.words.slice(TABLE_WORDS..self.verdicts)?.to_vec(stream)
    }

    /// Returns the table of runs and the boundaries.
    pub(crate) fn table(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(..self.verdicts)?.view(stream)
    }

    pub(crate) fn verdicts(&self, stream: &Stream) -> Result<View<'_, Global<u64>>, Error> {
        self.words.slice(self.verdicts..)?.view(stream)
    }
}

/// Returns views of the keys of runs as kernel arguments. There must be at least one run.
pub(crate) fn views<K: Pod>(runs: &[Columns]) -> Runs<K> {
    // SAFETY: the view is empty.
    let none = unsafe { Global::from_raw(runs[0].keys.as_type::<K>().as_ptr(), 0) };
    Runs::new(std::array::from_fn(|i| runs.get(i).map_or(none, |run| run.keys.as_type())))
}

/// Returns what limits the lengths of runs.
pub(crate) fn limits(runs: &[Columns]) -> RunLimits {
    RunLimits::new(std::array::from_fn(|i| runs.get(i).map_or(Limit::NONE, |run| run.limit())))
}

/// Returns views of the values of runs, as bytes. There must be at least one run.
pub(crate) fn untyped(runs: &[Columns]) -> Runs<u8> {
    Runs::new(std::array::from_fn(|i| runs.get(i).unwrap_or(&runs[0].slice(0, 0)).values.words()))
}

/// Returns how many rounds of pairwise merges this number of runs needs; at least one.
pub(crate) fn rounds(runs: usize) -> u32 {
    runs.next_power_of_two().ilog2().max(1)
}

/// Finds the boundaries of tiles of `tile` outputs; each boundary may be up to `slack` outputs off. There must be at
/// least one item, and at most [`MAX_RUNS`] runs.
pub(crate) fn split_runs(
    stream: &Stream,
    runs: &[Columns],
    tile: usize,
    slack: usize,
    order: HoleOrder,
    next: Next,
) -> Result<RunsSplits, Error> {
    let total = runs.iter().map(|run| run.keys.len()).sum::<usize>();
    let tiles = total.div_ceil(tile);
    let values = untyped(runs);
    let log_lanes = rounds(runs.len());
    let blocks = tiles.div_ceil((PARTITION_THREADS as usize >> log_lanes) - 1);
    let table_words = TABLE_WORDS + (tiles + 1) * runs.len();
    let verdict_words = blocks.div_ceil(8);
    let mut words = stream.uninit::<u64>(table_words + verdict_words)?;
    let view = words.raw_view_mut(stream)?;
    // SAFETY: both slices lie within the scratch memory.
    let (table, verdicts) = unsafe { (view.slice(0, table_words), view.slice(table_words, verdict_words)) };
    let search = BoundarySearch {
        most: total as u64,
        runs: runs.len() as u32,
        tile: tile as u32,
        slack: slack as u32,
        log_lanes,
        // With this many blocks, memory bandwidth limits the search, not its latency.
        edges_first: u64::from(blocks > 8 * stream.device().limits().multiprocessors as usize),
    };
    runs_partition!(runs[0].keys.size() => H, {
        let keys = views::<H>(runs);
        let partition = RunsPartition::new(keys, limits(runs), values, search, order, table, bytes(verdicts));
        // SAFETY: one split per boundary and run, one verdict per block, one lane per run, and as many blocks as the
        // boundaries need.
        unsafe { stream.launch(partition.followed_by(next), blocks)? };
    });
    Ok(RunsSplits { words, verdicts: table_words })
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

/// Checks the number of runs.
pub(crate) fn expect_runs(asked: usize) -> Result<(), Error> {
    if asked <= MAX_RUNS { Ok(()) } else { Err(Error::TooMany { what: "runs to merge", asked, limit: MAX_RUNS }) }
}

#[cfg(test)]
mod tests {
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
            let found = splits.to_vec(&stream).unwrap();
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
