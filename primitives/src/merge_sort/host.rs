//! Host functions of the merge sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::{BOUNDARY_SLACK, MergeGroups, Plan, SplitGroups, merge_groups, outputs, split_groups};
use crate::compare::{Compare, HoleOrder};
use crate::host::repr::{expect_repr, repr_layout};
use crate::host::runtime::column::{AnySliceMut, AnyVec, Column};
use crate::host::runtime::pairs::{Columns, ColumnsMut};
use crate::host::source::{Elements, SliceTarget, Source};
use crate::merge::{MAX_RUNS, PARTITION_THREADS, RUNS_THREADS};
use crate::segmented_sort::{GatheredValues, moves_values, run_len, sort_runs};
use crate::transform::InMemory;
use crate::transform::laid_out::{Indices, LaidOut, LaidOutMut};
use crate::{DeviceSliceMut, Error, Stream, expect_len};
use bytemuck::Pod;

/// Sorts keys into another buffer.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ: nothing is written in this case. [`Error::TooLong`] for 2^32 keys or
/// more of over 16 bytes; [`Error::OutOfMemory`]; any launch error.
pub fn keys<'a, 'b, K: Pod, C: Compare<K>>(
    stream: &Stream,
    input: impl Source<'a, K>,
    output: impl Into<DeviceSliceMut<'b, K>>,
    order: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let input = input.into_parts()?.elements();
    let _span = crate::span!(stream, "merge_sort::keys", input.len());
    sort_keys(stream, input, output.into().into(), HoleOrder::of::<K, C>(order))
}

/// Sorts keys in place.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_in_place<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    keys: impl SliceTarget<'a, K>,
    order: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let keys = keys.into_first().lower();
    let _span = crate::span!(stream, "merge_sort::keys_in_place", keys.len());
    let keys = ColumnsMut::keys(stream, keys)?;
    sort(stream, keys.as_const(), keys, HoleOrder::of::<K, C>(order))
}

/// Sorts keys together with their values into other buffers.
///
/// # Errors
/// Same as [`keys`], and [`Error::TooLong`] for 2^32 values or more of a size that is [moved by index](super).
pub fn pairs<'a, 'b, 'c, 'd, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    input: (impl Source<'a, K>, impl Source<'b, V>),
    output: (impl Into<DeviceSliceMut<'c, K>>, impl Into<DeviceSliceMut<'d, V>>),
    order: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let from = (input.0.into_parts()?.elements(), input.1.into_parts()?.elements());
    let to = (output.0.into().into(), output.1.into().into());
    let _span = crate::span!(stream, "merge_sort::pairs", from.0.len());
    sort_pairs(stream, from, to, HoleOrder::of::<K, C>(order))
}

/// Sorts keys and values in place.
///
/// # Errors
/// Same as [`pairs`].
pub fn pairs_in_place<'a, 'b, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    pairs: (impl SliceTarget<'a, K>, impl SliceTarget<'b, V>),
    order: C,
) -> Result<(), Error> {
    const { expect_repr::<K>() };
    let pairs = (pairs.0.into_first().lower(), pairs.1.into_first().lower());
    let _span = crate::span!(stream, "merge_sort::pairs_in_place", pairs.0.len());
    let pairs = ColumnsMut::new(stream, pairs, "the values of a merge sort")?;
    sort(stream, pairs.as_const(), pairs, HoleOrder::of::<K, C>(order))
}

fn sort_keys(stream: &Stream, from: Elements<'_>, to: AnySliceMut<'_>, order: HoleOrder) -> Result<(), Error> {
    expect_len("the output of a merge sort", from.len(), to.len())?;
    let from = InMemory::new(stream, from)?;
    sort(stream, Columns::keys(stream, from.as_slice())?, ColumnsMut::keys(stream, to)?, order)
}

fn sort_pairs(
    stream: &Stream,
    from: (Elements<'_>, Elements<'_>),
    to: (AnySliceMut<'_>, AnySliceMut<'_>),
    order: HoleOrder,
) -> Result<(), Error> {
    let (keys, values) = InMemory::pairs(stream, from)?;
    let from = Columns::new(stream, (keys.as_slice(), values.as_slice()), "the values of a merge sort")?;
    expect_len("the output of a merge sort", from.keys.len(), to.0.len())?;
    sort(stream, from, ColumnsMut::new(stream, to, "the values' output of a merge sort")?, order)
}

/// Sorts in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
pub(crate) fn sort(stream: &Stream, from: Columns, to: ColumnsMut, order: HoleOrder) -> Result<(), Error> {
    let len = from.keys.len();
    if len == 0 {
        return Ok(());
    }
    let layout = repr_layout(from.keys.size());
    let keys = LaidOut::new(stream, from.keys, layout)?;
    let to_keys = LaidOutMut::first(stream, to.keys, layout, from.limit().counted())?;
    if is_moved(layout.size(), from.values) && is_moved(layout.size(), to.values.as_const()) {
        let held = Columns { keys: keys.view, values: from.values };
        passes(stream, held, ColumnsMut { keys: to_keys.view, values: to.values }, order)?;
    } else {
        let mut indices = Indices::new(stream, len, len)?;
        let values = GatheredValues::new(stream, from.values.limited(from.limit()), to.values)?;
        let indexed = Columns { keys: keys.view, values: indices.from.raw_view(stream)?.into() };
        let moved = ColumnsMut { keys: to_keys.view, values: indices.to.raw_view_mut(stream)?.into() };
        passes(stream, indexed, moved, order)?;
        values.gather(stream, &indices)?;
    }
    to_keys.finish(stream)
}

/// Returns whether kernels sort runs, and merge them, with these values and keys of `key` bytes.
fn is_moved(key: usize, values: Column) -> bool {
    moves_values(key, values) && merge_groups!((key, values.size()) => (K, V, ITEMS), values.fits::<V>(), else false)
}

/// Sorts runs, and merges them in as few passes as possible. The passes write to two buffers in turn, and the last one to
/// the output.
fn passes(stream: &Stream, from: Columns, to: ColumnsMut, order: HoleOrder) -> Result<(), Error> {
    let len = to.keys.len();
    let (key, value) = to.sizes();
    let mut run = run_len(to.sizes());
    let rounds = len.div_ceil(run).next_power_of_two().ilog2();
    let passes = rounds.div_ceil(MAX_RUNS.ilog2());
    if passes == 0 {
        return sort_runs(stream, from, to, order, run);
    }
    let (mut keys, mut values) = (AnyVec::uninit(stream, key, len)?, AnyVec::uninit(stream, value, len)?);
    let spare = ColumnsMut { keys: keys.raw_view_mut(stream)?, values: values.raw_view_mut(stream)? };
    let buffers = [to, spare];
    let target = |pass: u32| buffers[(passes - pass) as usize % 2];
    // As even as possible: narrow groups have larger tiles.
    let mut left = rounds;
    let mut plans = Vec::with_capacity(passes as usize);
    for pass in 0..passes {
        let rounds = left.div_ceil(passes - pass);
        left -= rounds;
        let tile = merge_groups!(to.sizes() => (K, V, ITEMS), outputs::<ITEMS>(rounds));
        let group = run << rounds;
        let tiles_per_group = group.div_ceil(tile);
        let tiles = len / group * tiles_per_group + (len % group).div_ceil(tile);
        plans.push((Plan { run: run as u64, tiles: tiles_per_group as u64, tile: tile as u32, rounds }, tiles));
        run = group;
    }
    // All memory is allocated before anything is written: the output may be the input.
    let mut broken = stream.zeroed::<u32>(passes as usize)?;
    let broken = broken.raw_view_mut(stream)?;
    let splits = plans.iter().map(|(plan, tiles)| tiles << plan.rounds).max();
    let mut splits = stream.uninit::<u64>(splits.unwrap_or(0))?;
    let splits_view = splits.raw_view_mut(stream)?;
    sort_runs(stream, from, target(0), order, run_len(to.sizes()))?;
    for (pass, (plan, tiles)) in plans.into_iter().enumerate() {
        let (rounds, pass) = (plan.rounds, pass as u32);
        let (from, to) = (target(pass).as_const().limited(from.limit()), target(pass + 1));
        // SAFETY: there is a word for each pass.
        let broken = unsafe { broken.slice(pass as usize, 1) };
        split_groups!(key => K, {
            let split = SplitGroups::new(from.keys.prefix::<K>(), order, plan, BOUNDARY_SLACK, splits_view, broken);
            // SAFETY: as many blocks as the tiles need, and a split per tile and run. The word is zero.
            unsafe { stream.launch(split, tiles.div_ceil((PARTITION_THREADS as usize >> rounds) - 1))? };
        });
        merge_groups!(to.sizes() => (K, V, ITEMS), {
            let (keys, from, to) = (from.keys.prefix::<K>(), from.as_types::<K, V>(), to.as_types::<K, V>());
            let merge = MergeGroups::<K, V, HoleOrder, RUNS_THREADS, ITEMS>::new(
                keys,
                from.values,
                to.keys,
                to.values,
                order,
                plan,
                splits_view.as_const(),
                broken.as_const(),
            );
            // SAFETY: one block per tile, and the splits were computed for this plan. The two buffers do not overlap and
            // have the same length; there are as many values as keys, if there are any.
            unsafe { stream.launch(merge, tiles)? };
        });
    }
    Ok(())
}
