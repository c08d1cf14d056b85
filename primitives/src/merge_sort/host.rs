//! Host functions of the merge sort.

#![deny(unsafe_op_in_unsafe_fn)]

use super::kernel::{BOUNDARY_SLACK, MergeGroups, Plan, SplitGroups, outputs};
use crate::compare::{Compare, HoleOrder, KeyOrder};
use crate::hole::Held;
use crate::merge::{MAX_RUNS, PARTITION_THREADS, RUNS_THREADS, runs_items};
use crate::runtime::carrier::carried_with;
use crate::runtime::held::{HeldIn, HeldOut, Indices, held};
use crate::runtime::pairs::{Pairs, PairsMut};
use crate::segmented_sort::{gather_values, run_len, sort_runs};
use crate::with_shape;
use crate::{DeviceSlice, DeviceSliceMut, Error, Stream, expect_len};
use bytemuck::Pod;

/// Sorts keys into another buffer.
///
/// # Errors
/// [`Error::LengthMismatch`] if the lengths differ: nothing is written in this case. [`Error::TooLong`] for 2^32 keys or
/// more of over 16 bytes; [`Error::OutOfMemory`]; any launch error.
pub fn keys<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    input: impl Into<DeviceSlice<'a, K>>,
    output: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<(), Error> {
    let (input, output) = (input.into(), output.into());
    let _span = crate::span!(stream, "merge_sort::keys", input.len());
    expect_len("the output of a merge sort", input.len(), output.len())?;
    sort(stream, Pairs::keys(stream, input)?, PairsMut::keys(stream, output)?, order)
}

/// Sorts keys in place.
///
/// # Errors
/// Same as [`keys`].
pub fn keys_in_place<'a, K: Pod, C: Compare<K>>(
    stream: &Stream,
    keys: impl Into<DeviceSliceMut<'a, K>>,
    order: C,
) -> Result<(), Error> {
    let keys: DeviceSliceMut<'a, K> = keys.into();
    let _span = crate::span!(stream, "merge_sort::keys_in_place", keys.len());
    let keys = PairsMut::keys(stream, keys)?;
    sort(stream, keys.as_const(), keys, order)
}

/// Sorts keys together with their values into other buffers.
///
/// # Errors
/// Same as [`keys`], and [`Error::TooLong`] for 2^32 values or more of a size that is [moved by index](super).
pub fn pairs<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    input: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    output: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<(), Error> {
    let input: (DeviceSlice<'a, K>, _) = (input.0.into(), input.1);
    let _span = crate::span!(stream, "merge_sort::pairs", input.0.len());
    let from = Pairs::new(stream, input.0, input.1.into(), "the values of a merge sort")?;
    let keys = output.0.into();
    expect_len("the output of a merge sort", from.keys.len(), keys.len())?;
    sort(stream, from, PairsMut::new(stream, keys, output.1.into(), "the values' output of a merge sort")?, order)
}

/// Sorts keys and values in place.
///
/// # Errors
/// Same as [`pairs`].
pub fn pairs_in_place<'a, K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    pairs: (impl Into<DeviceSliceMut<'a, K>>, impl Into<DeviceSliceMut<'a, V>>),
    order: C,
) -> Result<(), Error> {
    let pairs: (DeviceSliceMut<'a, K>, _) = (pairs.0.into(), pairs.1);
    let _span = crate::span!(stream, "merge_sort::pairs_in_place", pairs.0.len());
    let pairs = PairsMut::new(stream, pairs.0, pairs.1.into(), "the values of a merge sort")?;
    sort(stream, pairs.as_const(), pairs, order)
}

/// Sorts in the form in which kernels exist: keys in the type that holds them, values by a carrier or by index.
pub(crate) fn sort<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    order: C,
) -> Result<(), Error> {
    if from.keys.is_empty() {
        return Ok(());
    }
    let order = HoleOrder::of::<K, C>(order);
    held!(K as H, {
        let (keys, to_keys) = (HeldIn::<H>::new(stream, from.keys)?, HeldOut::<H>::new(stream, to.keys)?);
        let from = Pairs { keys: keys.view, values: from.values };
        sort_held(stream, from, PairsMut { keys: to_keys.view, values: to.values }, order)?;
        to_keys.finish(stream)
    })
}

fn sort_held<H: Held, V: Pod>(
    stream: &Stream,
    from: Pairs<H, V>,
    to: PairsMut<H, V>,
    order: HoleOrder,
) -> Result<(), Error> {
    carried_with!(
        H, V, (from, to),
        |(from, to)| shaped(stream, from, to, order),
        else |(from, to)| {
            let len = to.keys.len();
            let mut indices = Indices::new(stream, len, len)?;
            let indexed = Pairs { keys: from.keys, values: indices.from.raw_view(stream)? };
            let moved = PairsMut { keys: to.keys, values: indices.to.raw_view_mut(stream)? };
            shaped(stream, indexed, moved, order)?;
            gather_values(stream, &indices, from.values, to.values)
        }
    )
}

fn shaped<K: Pod, V: Pod, C: KeyOrder<K>>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    order: C,
) -> Result<(), Error> {
    with_shape!(ITEMS in 17 | 11 | 9 | 5 = runs_items::<K, V>(), passes::<K, V, C, ITEMS>(stream, from, to, order))
}

/// Sorts runs, and merges them in as few passes as possible. The passes write to two buffers in turn, and the last one to
/// the output.
fn passes<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    stream: &Stream,
    from: Pairs<K, V>,
    to: PairsMut<K, V>,
    order: C,
) -> Result<(), Error> {
    let len = to.keys.len();
    let mut run = run_len::<K, V>();
    let rounds = len.div_ceil(run).next_power_of_two().ilog2();
    let passes = rounds.div_ceil(MAX_RUNS.ilog2());
    if passes == 0 {
        return sort_runs(stream, (from, to), order);
    }
    let (mut keys, mut values) = (stream.uninit::<K>(len)?, stream.uninit::<V>(len)?);
    let spare = PairsMut::new(stream, keys.as_mut_slice(), values.as_mut_slice(), "the second buffer")?;
    let buffers = [to, spare];
    let target = |pass: u32| buffers[(passes - pass) as usize % 2];
    sort_runs(stream, (from, target(0)), order)?;
    let mut broken = stream.zeroed::<u32>(passes as usize)?;
    let broken = broken.raw_view_mut(stream)?;
    let mut left = rounds;
    for pass in 0..passes {
        // As even as possible: narrow groups have larger tiles.
        let rounds = left.div_ceil(passes - pass);
        left -= rounds;
        let (tile, group) = (outputs::<ITEMS>(rounds), run << rounds);
        let tiles_per_group = group.div_ceil(tile);
        let tiles = len / group * tiles_per_group + (len % group).div_ceil(tile);
        let plan = Plan { run: run as u64, tiles: tiles_per_group as u64, tile: tile as u32, rounds };
        let (from, to) = (target(pass).as_const(), target(pass + 1));
        let mut splits = stream.uninit::<u64>(tiles << rounds)?;
        // SAFETY: there is a word for each pass.
        let broken = unsafe { broken.slice(pass as usize, 1) };
        let split = SplitGroups::new(from.keys, order, plan, BOUNDARY_SLACK, splits.raw_view_mut(stream)?, broken);
        // SAFETY: as many blocks as the tiles need, and a split per tile and run. The word is zero.
        unsafe { stream.launch(split, tiles.div_ceil((PARTITION_THREADS as usize >> rounds) - 1))? };
        let merge = MergeGroups::<K, V, C, RUNS_THREADS, ITEMS>::new(
            from.keys,
            from.values,
            to.keys,
            to.values,
            order,
            plan,
            splits.raw_view(stream)?,
            broken.as_const(),
        );
        // SAFETY: one block per tile, and the splits were computed for this plan. The two buffers do not overlap and have
        // the same length; there are as many values as keys, if there are any.
        unsafe { stream.launch(merge, tiles)? };
        run = group;
    }
    Ok(())
}
