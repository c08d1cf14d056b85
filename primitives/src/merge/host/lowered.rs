//! The merge of keys and values whose types are known by their sizes alone. Ordered dictionaries merge their codes with it.

#![deny(unsafe_op_in_unsafe_fn)]

use super::splits::{expect_runs, limits, partition, rounds, split_runs, untyped, views};
use crate::code::U256;
use crate::compare::{HoleOrder, Less};
use crate::host::repr::repr_layout;
use crate::host::runtime::call::Reach;
use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec, Column, ColumnMut};
use crate::host::runtime::loading::{Next, Upcoming};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::merge::device::kernel::{MergeTiles, merge_tiles};
use crate::merge::device::place::{MAX_PLACED, PLACE_THREADS, PlaceRuns, place_runs};
use crate::merge::device::runs::{RunsTiles, SLACK, runs_tiles, tile_len as runs_tile_len};
use crate::merge::device::shape::{RUNS_THREADS, THREADS};
use crate::merge::{RunsSplits, Splits};
use crate::sized;
use crate::transform::laid_out::{Indices, LaidOut, LaidOutMut};
use crate::{Error, Stream, expect_len};

pub use super::pieces::codes_in_pieces;

/// A sorted run: codes, and values.
pub type Run<'a> = (AnySlice<'a>, AnySlice<'a>);

/// The kernels that merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Tiles of the output, one block each.
    Tiles,
    /// The place of each item, for short runs: see [`small_runs_pairs`](crate::merge::small_runs_pairs).
    Places,
}

/// Merges sorted runs of codes of 4, 8, 16 or 32 bytes, in their natural order, together with values of any size. Values of
/// no size are not moved.
///
/// # Errors
/// Those of [`runs_pairs`](crate::merge::runs_pairs) and [`small_runs_pairs`](crate::merge::small_runs_pairs).
pub fn codes(
    stream: &Stream,
    runs: &[Run<'_>],
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    way: Way,
) -> Result<(), Error> {
    let order = order_of_codes(out.0.size());
    if out.1.size() == 0 {
        let runs: Vec<_> = runs.iter().map(|run| run.0).collect();
        keys(stream, &runs, out.0, order, way)
    } else {
        pairs(stream, runs, out, order, way)
    }
}

/// [`Splits::find`] for codes of 4, 8, 16 or 32 bytes in their natural order.
///
/// # Errors
/// Those of [`Splits::find`].
pub fn splits(stream: &Stream, a: AnySlice<'_>, b: AnySlice<'_>, tile: usize) -> Result<Splits, Error> {
    Splits::lowered(stream, a, b, order_of_codes(a.size()), tile)
}

/// [`RunsSplits::find`] for codes of 4, 8, 16 or 32 bytes in their natural order.
///
/// # Errors
/// Those of [`RunsSplits::find`].
pub fn runs_splits(stream: &Stream, runs: &[AnySlice<'_>], tile: usize) -> Result<RunsSplits, Error> {
    RunsSplits::lowered(stream, runs, order_of_codes(runs.first().map_or(4, AnySlice::size)), tile)
}

/// Returns the natural order of codes.
fn order_of_codes(size: usize) -> HoleOrder {
    sized!(
        size => C in u32 | u64 | u128 | U256, HoleOrder::of::<C, Less>(Less),
        else unreachable!("codes have 4, 8, 16 or 32 bytes")
    )
}

pub(crate) fn keys(
    stream: &Stream,
    runs: &[AnySlice<'_>],
    out: AnySliceMut<'_>,
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    expect_way(way, runs.iter().map(AnySlice::len))?;
    expect_len("the output of a merge", runs.iter().map(AnySlice::len).sum(), out.len())?;
    let runs = runs.iter().map(|&keys| Columns::keys(stream, keys)).collect::<Result<_, _>>()?;
    run(stream, runs, ColumnsMut::keys(stream, out)?, order, way)
}

pub(crate) fn pairs(
    stream: &Stream,
    runs: &[Run<'_>],
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
    way: Way,
) -> Result<(), Error> {
    expect_way(way, runs.iter().map(|run| run.0.len()))?;
    let out = output(stream, out, runs.iter().map(|run| run.0.len()).sum())?;
    let runs = runs.iter().map(|&run| Columns::new(stream, run, "the values of a run")).collect::<Result<_, _>>()?;
    run(stream, runs, out, order, way)
}

pub(crate) fn two_pairs(
    stream: &Stream,
    a: Run<'_>,
    b: Run<'_>,
    out: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
) -> Result<(), Error> {
    let a = Columns::new(stream, a, "the first values of a merge")?;
    let b = Columns::new(stream, b, "the second values of a merge")?;
    let out = output(stream, out, a.keys.len() + b.keys.len())?;
    run(stream, vec![a, b], out, order, Way::Tiles)
}

/// Creates the output views for `len` keys and values.
fn output(stream: &Stream, out: (AnySliceMut<'_>, AnySliceMut<'_>), len: usize) -> Result<ColumnsMut, Error> {
    expect_len("the output of a merge", len, out.0.len())?;
    ColumnsMut::new(stream, out, "the output of a merge's values")
}

/// Checks the number and the lengths of runs.
fn expect_way(way: Way, lengths: impl ExactSizeIterator<Item = usize> + Clone) -> Result<(), Error> {
    /// The kernel computes positions in 32 bits.
    const MAX_LEN: usize = (1 << 30) - 1;
    const MAX_TOTAL: usize = (1 << 31) - 1;
    if way == Way::Tiles {
        return expect_runs(lengths.len());
    }
    if lengths.len() > MAX_PLACED {
        return Err(Error::TooMany { what: "runs to place", asked: lengths.len(), limit: MAX_PLACED });
    }
    if let Some(len) = lengths.clone().max().filter(|&longest| longest > MAX_LEN) {
        return Err(Error::TooLong { what: "a run to place", len, limit: MAX_LEN });
    }
    match lengths.sum() {
        len if len > MAX_TOTAL => Err(Error::TooLong { what: "runs to place, together,", len, limit: MAX_TOTAL }),
        _ => Ok(()),
    }
}

/// Merges runs in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
fn run(stream: &Stream, mut runs: Vec<Columns>, out: ColumnsMut, order: HoleOrder, way: Way) -> Result<(), Error> {
    assert!(runs.iter().all(|run| run.sizes() == out.sizes()), "all runs of a merge have elements of the same sizes");
    let layout = repr_layout(out.keys.size());
    let originals = runs.clone();
    // The copies of keys that are not in this form.
    let mut held = Vec::new();
    for run in runs.iter_mut().filter(|run| !run.keys.has_layout(layout)) {
        let keys = LaidOut::new(stream, run.keys, layout)?;
        run.keys = keys.view;
        held.push(keys);
    }
    if !out.keys.as_const().has_layout(layout) && runs.iter().any(|run| run.limit().is_some()) {
        // What follows the items that count stays as it is, so the copy must not be written back as a whole.
        let mut merged = AnyVec::uninit(stream, layout.size(), out.keys.len())?;
        let indices = merge_indices(stream, &runs, merged.raw_view_mut(stream)?, order, way)?;
        let keys: Vec<_> = originals.iter().map(|run| run.keys).collect();
        indices.gather(stream, &keys, out.keys)?;
        return gather_values(stream, &indices, &runs, out.values);
    }
    let out_keys = LaidOutMut::new(stream, out.keys, layout)?;
    merge_held(stream, &runs, ColumnsMut { keys: out_keys.view, values: out.values }, order, way)?;
    out_keys.finish(stream)
}

/// Returns whether both merges have kernels that move these values with keys of `key` bytes.
fn is_moved(key: usize, values: Column) -> bool {
    let sizes = (key, values.size());
    merge_tiles!(sizes => (K, V, ITEMS), values.fits::<V>(), else false)
        && runs_tiles!(sizes => (K, V, ITEMS), values.fits::<V>(), else false)
}

/// Merges runs of keys that are held. Where no kernel moves the values, it moves their indices, and then the values.
fn merge_held(stream: &Stream, runs: &[Columns], out: ColumnsMut, order: HoleOrder, way: Way) -> Result<(), Error> {
    let key = out.keys.size();
    if is_moved(key, out.values.as_const()) && runs.iter().all(|run| is_moved(key, run.values)) {
        return merge_moved(stream, runs, out, order, way);
    }
    let indices = merge_indices(stream, runs, out.keys, order, way)?;
    gather_values(stream, &indices, runs, out.values)
}

/// Merges runs of keys that are held, and the indices of their items.
fn merge_indices(
    stream: &Stream,
    runs: &[Columns],
    out: ColumnMut,
    order: HoleOrder,
    way: Way,
) -> Result<Indices, Error> {
    let mut indices = Indices::new(stream, out.len(), out.len())?;
    let from = indices.from.raw_view(stream)?;
    let mut start = 0;
    let mut indexed = Vec::with_capacity(runs.len());
    for run in runs {
        // SAFETY: there is an index for each value.
        let values = unsafe { from.slice(start, run.keys.len()) };
        indexed.push(Columns { values: values.into(), ..*run });
        start += run.keys.len();
    }
    let moved = ColumnsMut { keys: out, values: indices.to.raw_view_mut(stream)?.into() };
    merge_moved(stream, &indexed, moved, order, way)?;
    Ok(indices)
}

/// Moves the values of runs to where their indices are.
fn gather_values(stream: &Stream, indices: &Indices, runs: &[Columns], out: ColumnMut) -> Result<(), Error> {
    let sources: Vec<_> = runs.iter().map(|run| run.values.limited(run.limit())).collect();
    indices.gather(stream, &sources, out)
}

fn merge_moved(stream: &Stream, runs: &[Columns], out: ColumnsMut, order: HoleOrder, way: Way) -> Result<(), Error> {
    match way {
        Way::Places if place_runs!(out.keys.size() => K, true, else false) => place(stream, runs, out, order),
        _ => many(stream, runs, out, order),
    }
}

fn two(stream: &Stream, a: Columns, b: Columns, out: ColumnsMut, order: HoleOrder) -> Result<(), Error> {
    let (per_thread, next): (_, Next) = merge_tiles!(out.sizes() => (K, V, ITEMS), {
        (ITEMS, Upcoming::kernel::<MergeTiles<K, V, HoleOrder, THREADS, ITEMS>>)
    });
    let tile = THREADS as usize * per_thread;
    let tiles = out.keys.len().div_ceil(tile);
    if tiles == 0 {
        return Ok(());
    }
    let splits = partition(stream, a.keys, b.keys, order, tile, next)?;
    let splits = splits.view(stream)?;
    merge_tiles!(out.sizes() => (K, V, ITEMS), {
        let (a, b) = (a.prefix(), b.prefix());
        let merge = MergeTiles::<K, V, HoleOrder, THREADS, ITEMS>::new(a, b, out.as_types(), order, splits);
        // SAFETY: one block per tile, and the splits were computed for this tile size. The output is as long as both
        // inputs, and there are as many values as keys, if there are any. The scratch memory is freed in stream order.
        unsafe { stream.launch(merge, tiles) }
    })
}

fn many(stream: &Stream, runs: &[Columns], out: ColumnsMut, order: HoleOrder) -> Result<(), Error> {
    if let &[a, b] = runs {
        return two(stream, a, b, out, order);
    }
    let rounds = rounds(runs.len());
    let (per_thread, next): (_, Next) = runs_tiles!(out.sizes() => (K, V, ITEMS), {
        (ITEMS, Upcoming::kernel::<RunsTiles<K, V, HoleOrder, RUNS_THREADS, ITEMS>>)
    });
    let tile = runs_tile_len(RUNS_THREADS, per_thread, rounds);
    let tiles = out.keys.len().div_ceil(tile);
    if tiles == 0 {
        return Ok(());
    }
    let splits = split_runs(stream, runs, tile, SLACK, order, next)?;
    let (table, verdicts) = (splits.table(stream)?, splits.verdicts(stream)?);
    let count = runs.len() as u32;
    // The kernel finds the runs through the table.
    let reach = Reach::when_checked(stream, || {
        let columns = runs.iter().flat_map(|run| [run.keys, run.values]);
        Reach::of(&columns.map(|column| column.words::<u8>()).collect::<Vec<_>>())
    });
    runs_tiles!(out.sizes() => (K, V, ITEMS), {
        let out = out.as_types();
        let merge =
            RunsTiles::<K, V, HoleOrder, RUNS_THREADS, ITEMS>::new(count, rounds, out, order, table, verdicts);
        // SAFETY: one block per tile, and the splits were computed for this tile size and these runs. The output is as
        // long as all runs, and there are as many values as keys, if there are any. The scratch memory is freed in stream
        // order.
        unsafe { stream.launch(merge.reaching(reach), tiles) }
    })
}

/// Names the kernel of [`place`] for codes of `size` bytes in their natural order.
pub(crate) fn placed(size: usize, next: &mut Upcoming) {
    place_runs!(size => C, next.filled::<PlaceRuns<C, HoleOrder>>(HoleOrder::filling::<C, Less>()), else ());
}

/// Merges one to [`MAX_PLACED`] runs of keys that are held in 4 or 8 bytes, in one launch that is fast for few items. Values
/// are aligned and have 0, 4, 8 or 16 bytes. The output is as long as all runs together, and each run has fewer than 2^30
/// items. A comparator that is not a strict weak order would lose items.
pub(crate) fn place(stream: &Stream, runs: &[Columns], out: ColumnsMut, order: HoleOrder) -> Result<(), Error> {
    let blocks = runs.iter().map(|run| run.keys.len().div_ceil(PLACE_THREADS as usize)).sum();
    if blocks == 0 {
        return Ok(());
    }
    let (values, value_bytes) = (untyped(runs), out.values.size() as u32);
    assert!(matches!(value_bytes, 0 | 4 | 8 | 16), "values are carried by a type of these sizes");
    let (count, out_values) = (runs.len() as u32, out.values.words::<u8>());
    place_runs!(out.keys.size() => K, {
        let (keys, out_keys) = (views::<K>(runs), out.keys.as_type());
        let kernel = PlaceRuns::new(keys, limits(runs), values, value_bytes, count, out_keys, out_values, order);
        // SAFETY: one block per 256 items of each run. The output is as long as all runs and does not overlap them, and
        // there are as many values as keys, if there are any.
        unsafe { stream.launch(kernel, blocks) }
    })
}

/// Deliberate bugs where kernels compute addresses: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::{Device, FaultKind};
    use crate::{DeviceVec, Global};

    const ITEMS: usize = crate::merge::runs_items::<u32, ()>();

    fn sorted_runs(stream: &Stream) -> [DeviceVec<u32>; 3] {
        [0u32, 1, 2].map(|first| stream.upload(&(0..2000).map(|i| 3 * i + first).collect::<Vec<_>>()).unwrap())
    }

    fn order() -> HoleOrder {
        HoleOrder::of::<u32, Less>(Less)
    }

    fn columns(stream: &Stream, runs: &[DeviceVec<u32>; 3]) -> [Columns; 3] {
        runs.each_ref().map(|run| Columns::keys(stream, run.as_slice().into()).unwrap())
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
        let pairs = columns(&stream, &runs);
        let rounds = rounds(runs.len());
        let tile = runs_tile_len(RUNS_THREADS, ITEMS, rounds);
        let splits = split_runs(&stream, &pairs, tile, SLACK, order(), |_| {}).unwrap();
        let mut out = stream.uninit::<u32>(6000).unwrap();
        let out = ColumnsMut::keys(&stream, out.as_mut_slice().into()).unwrap().as_types::<u32, ()>();
        let kernel = RunsTiles::<u32, (), HoleOrder, RUNS_THREADS, ITEMS>::new(
            3,
            rounds,
            out,
            order(),
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
        let mut pairs = columns(&stream, &runs);
        // SAFETY: the checked device refuses the access; that is what the test checks.
        pairs[1].keys = unsafe { Global::from_raw(runs[1].as_slice().as_ptr(), 2100) }.into();
        pairs[1].values = crate::host::runtime::pairs::no_values(2100).as_const().into();
        let mut out = stream.uninit::<u32>(6100).unwrap();
        // Another run may lie behind the memory.
        let is_beyond = |kind: &FaultKind| matches!(kind, FaultKind::NotGiven { .. } | FaultKind::OtherBuffer { .. });
        for merge in [many as fn(&_, &_, _, _) -> _, place] {
            let out = ColumnsMut::keys(&stream, out.as_mut_slice().into()).unwrap();
            assert!(is_beyond(&fault(merge(&stream, &pairs, out, order()))));
        }
        let out = ColumnsMut::keys(&stream, out.slice_mut(..4100).unwrap().into()).unwrap();
        assert!(is_beyond(&fault(two(&stream, pairs[0], pairs[1], out, order()))));
    }

    /// The memory of the runs is freed, but the views remain.
    #[test]
    fn runs_that_were_freed() {
        let stream = Device::cpu_checked().stream().unwrap();
        let runs = sorted_runs(&stream);
        let pairs = columns(&stream, &runs);
        drop(runs);
        let mut out = stream.uninit::<u32>(6000).unwrap();
        for merge in [many, place] {
            let out = ColumnsMut::keys(&stream, out.as_mut_slice().into()).unwrap();
            let FaultKind::Freed { allocated, by, .. } = fault(merge(&stream, &pairs, out, order())) else {
                panic!("another fault")
            };
            assert!(allocated.is_some_and(|line| line.file().ends_with("lowered.rs")));
            // Without line information the function is known, and in a stripped executable nothing.
            let is_here = |by: String| by.contains("merge/host/lowered.rs") || by.contains("runs_that_were_freed");
            assert!(by.is_none_or(is_here));
        }
    }
}
