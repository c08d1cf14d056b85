//! Host functions of the merge.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::MergeTiles;
use super::place::{MAX_PLACED, PLACE_THREADS, PlaceRuns};
use super::runs::{RunsTiles, SLACK, tile_len as runs_tile_len};
use super::shape::{RUNS_THREADS, THREADS, items, runs_items};
use super::splits::{expect_runs, partition, rounds, split_runs, untyped, views};
use crate::compare::{Compare, HoleOrder, KeyOrder};
use crate::hole::Held;
use crate::runtime::call::Reach;
use crate::runtime::carrier::carried_with;
use crate::runtime::held::{HeldIn, HeldOut, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, Error, GlobalMut, Stream, expect_len};
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
    let a: DeviceSlice<'a, K> = a.into();
    let _span = crate::span!(stream, "merge::keys", a.len());
    let (runs, out) = key_runs(stream, &[a, b.into()], out.into())?;
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
    let a: (DeviceSlice<'a, K>, _) = (a.0.into(), a.1);
    let _span = crate::span!(stream, "merge::pairs", a.0.len());
    let a = Pairs::new(stream, a.0, a.1.into(), "the first values of a merge")?;
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
    let _span = crate::span!(stream, "merge::runs_keys", runs.iter().map(DeviceSlice::len).sum::<usize>());
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
    let _span = crate::span!(stream, "merge::runs_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
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
    let _span = crate::span!(stream, "merge::place_keys", runs.iter().map(DeviceSlice::len).sum::<usize>());
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
    let _span = crate::span!(stream, "merge::place_pairs", runs.iter().map(|run| run.0.len()).sum::<usize>());
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
        let out_keys = HeldOut::<H>::new(stream, out.keys)?;
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
    carried_with!(
        H, V, (runs, out),
        |(runs, out)| merge_carried(stream, &runs, out, order, way),
        else |(runs, out)| merge_indexed(stream, &runs, out, order, way)
    )
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
    let sources: Vec<_> = runs.iter().map(|run| run.values.into()).collect();
    indices.gather(stream, &sources, out.values.into())
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

fn two<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    a: Pairs<K, V>,
    b: Pairs<K, V>,
    out: PairsMut<K, V>,
    compare: C,
) -> Result<(), Error> {
    with_shape!(ITEMS in 15 | 9 | 5 = items::<K, V>(), two_shaped::<K, V, C, ITEMS>(stream, a, b, out, compare))
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

/// Deliberate bugs where kernels compute addresses: the checked device must find them.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::compare::Less;
    use crate::{Device, FaultKind};
    use crate::{DeviceVec, Global};

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
        // Another run may lie behind the memory.
        let is_beyond = |kind: &FaultKind| matches!(kind, FaultKind::NotGiven { .. } | FaultKind::OtherBuffer { .. });
        for merge in [many::<u32, (), Less>, place::<u32, (), Less>] {
            let out = PairsMut::keys(&stream, out.as_mut_slice()).unwrap();
            assert!(is_beyond(&fault(merge(&stream, &pairs, out, Less))));
        }
        let out = PairsMut::keys(&stream, out.slice_mut(..4100).unwrap()).unwrap();
        assert!(is_beyond(&fault(two(&stream, pairs[0], pairs[1], out, Less))));
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
            let FaultKind::Freed { allocated, by, .. } = fault(merge(&stream, &pairs, out, Less)) else {
                panic!("another fault")
            };
            assert!(allocated.is_some_and(|line| line.file().ends_with("host.rs")));
            // Without line information the function is known, and in a stripped executable nothing.
            let is_here = |by: String| by.contains("merge/host.rs") || by.contains("runs_that_were_freed");
            assert!(by.is_none_or(is_here));
        }
    }
}
