//! Runs of equal neighbours in elements that are spread over ranks. A run may go on from one shard to the next.
//!
//! ```
//! use gpu_primitives::equality::Same;
//! use gpu_primitives::scan::Sum;
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::{runs, sort};
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3);
//! let (keys, values) = (stream.upload(b"abbaba")?, stream.upload(&[1u32, 2, 3, 4, 5, 6])?);
//! // To group equal keys that are no neighbours, sort first.
//! let (keys, values) = sort::pairs(&stream, &world, (&keys, &values))?;
//! let (keys, totals) = runs::reduce_by_key(&stream, &world, (&keys, &values), Same, Sum)?;
//! assert_eq!(keys.to_vec(&stream)?, b"ab");
//! assert_eq!(totals.to_vec(&stream)?, [11, 10]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Each shard finds its own runs. One step tells the ends of all shards to all ranks; then a run that goes on is joined on the shard where it
//! begins, and left out on those that follow. No elements are exchanged, so the results are spread as the beginnings of the runs are.

use super::call::Turn;
use super::spread::{Parts, Spread};
use crate::world::World;
use bytemuck::{Pod, Zeroable};
use core::any::type_name;
use gpu_dictionary::cast::Input;
use gpu_dictionary::values_for;
use gpu_primitives::equality::Equality;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceValue, DeviceVec, Error, Stream, expect_len, runs};

/// Returns the first element of each run. Waits.
///
/// The equality must be the same on all ranks, with the same state.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], or any launch error, and
/// [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is changed.
pub fn unique<'a, T: Pod, E: Equality<T>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, T>>,
    equality: E,
) -> Result<Spread<T>, Error> {
    let turn = Turn::begin(stream, world, "runs::unique", (type_name::<T>(), type_name::<E>()))?;
    let inputs = turn.inputs(elements.into()).and_then(|elements| {
        let nothing = turn.on_shards(|(_, home)| Ok(Input::Copy(home.uninit::<()>(0)?)))?;
        Ok((elements, nothing))
    });
    let own = |home: &Stream, elements: DeviceSlice<'_, T>, _: DeviceSlice<'_, ()>| {
        let mut kept = home.uninit(elements.len())?;
        let count = runs::unique(home, elements, &mut kept, equality)?;
        Ok((kept, home.uninit(0)?, count))
    };
    Ok(joined(&turn, inputs, own, |a, b| equality.equal(a, b), |(), ()| ())?.0)
}

/// Returns the first key of each run of equal keys, and the combination of its values, in order: the operation need not be commutative.
/// Waits.
///
/// The operators must be the same on all ranks, with the same state. Sums of floats depend on how the pairs are spread.
///
/// # Errors
/// Those of [`unique`], and [`Error::LengthMismatch`] if a shard has not one value per key.
pub fn reduce_by_key<'a, K: Pod, V: Pod, E: Equality<K>, M: Monoid<V>>(
    stream: &Stream,
    world: &World,
    pairs: (impl Into<Parts<'a, K>>, impl Into<Parts<'a, V>>),
    equality: E,
    operation: M,
) -> Result<(Spread<K>, Spread<V>), Error> {
    let types = (type_name::<K>(), type_name::<V>(), type_name::<E>(), type_name::<M>());
    let turn = Turn::begin(stream, world, "runs::reduce_by_key", types)?;
    let inputs = turn.inputs(pairs.0.into()).and_then(|keys| Ok((keys, turn.inputs(pairs.1.into())?)));
    let own = |home: &Stream, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>| {
        let (mut kept, mut totals) = (home.uninit(keys.len())?, home.uninit(values.len())?);
        let count = match size_of::<V>() {
            0 => runs::unique(home, keys, &mut kept, equality)?,
            _ => runs::reduce_by_key(home, (keys, values), (&mut kept, &mut totals), equality, operation)?,
        };
        Ok((kept, totals, count))
    };
    joined(&turn, inputs, own, |a, b| equality.equal(a, b), |a, b| operation.combine(a, b))
}

/// What a shard tells the others: how many runs it has, its first and its last key, and the totals of its first and its last run.
#[derive(Clone, Copy)]
struct Ends<K, V> {
    runs: usize,
    keys: [K; 2],
    totals: [V; 2],
}

/// How the runs of a shard change because of those of its neighbours.
#[derive(Clone, Copy)]
struct Change<V> {
    /// Its first run began on a shard before it.
    drops_first: bool,
    /// Its last run goes on, so it has another total.
    last_total: Option<V>,
}

impl<K: Pod, V: Pod> Ends<K, V> {
    const BYTES: usize = size_of::<u64>() + 2 * size_of::<K>() + 2 * size_of::<V>();

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = (self.runs as u64).to_le_bytes().to_vec();
        self.keys.iter().for_each(|key| bytes.extend(bytemuck::bytes_of(key)));
        self.totals.iter().for_each(|total| bytes.extend(bytemuck::bytes_of(total)));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let (runs, rest) = bytes.split_at(size_of::<u64>());
        let (keys, totals) = rest.split_at(2 * size_of::<K>());
        let key = |i: usize| bytemuck::pod_read_unaligned(&keys[i * size_of::<K>()..(i + 1) * size_of::<K>()]);
        let total = |i: usize| bytemuck::pod_read_unaligned(&totals[i * size_of::<V>()..(i + 1) * size_of::<V>()]);
        let runs = u64::from_le_bytes(runs.try_into().unwrap_or_default()) as usize;
        Self { runs, keys: [key(0), key(1)], totals: [total(0), total(1)] }
    }
}

/// Follows the runs from shard to shard.
fn changes<K: Copy, V: Copy>(
    shards: &[Ends<K, V>],
    equal: impl Fn(K, K) -> bool,
    combine: impl Fn(V, V) -> V,
) -> Vec<Change<V>> {
    let mut changes = vec![Change { drops_first: false, last_total: None }; shards.len()];
    // The shard where the last run began, its last key so far, and its total.
    let mut open: Option<(usize, K, V)> = None;
    for (shard, ends) in shards.iter().enumerate().filter(|(_, ends)| ends.runs > 0) {
        let goes_on = open.filter(|&(_, last, _)| equal(last, ends.keys[0]));
        if let Some((from, _, total)) = goes_on {
            let total = combine(total, ends.totals[0]);
            changes[shard].drops_first = true;
            changes[from].last_total = Some(total);
            open = Some((from, ends.keys[1], total));
        }
        if goes_on.is_none() || ends.runs > 1 {
            open = Some((shard, ends.keys[1], ends.totals[1]));
        }
    }
    changes
}

/// The runs of a shard: keys, totals, and how many there are.
type Own<K, V> = (DeviceVec<K>, DeviceVec<V>, DeviceValue<u64>);

#[allow(clippy::type_complexity, reason = "keys and values, three times")]
fn joined<K: Pod, V: Pod>(
    turn: &Turn<'_>,
    inputs: Result<(Vec<Input<'_, K>>, Vec<Input<'_, V>>), Error>,
    own: impl Fn(&Stream, DeviceSlice<'_, K>, DeviceSlice<'_, V>) -> Result<Own<K, V>, Error>,
    equal: impl Fn(K, K) -> bool,
    combine: impl Fn(V, V) -> V,
) -> Result<(Spread<K>, Spread<V>), Error> {
    let part = || {
        let (keys, values) = inputs?;
        for (keys, values) in keys.iter().zip(&values) {
            let expected = values_for::<V>(keys.slice().len());
            expect_len("the values of keys on a shard", expected, values.slice().len())?;
        }
        // All shards work before the first one is waited for.
        let found = turn.on_shards(|(shard, home)| own(&home, keys[shard].slice(), values[shard].slice()))?;
        let ends = turn.on_shards(|(shard, home)| ends(&home, keys[shard].slice(), &found[shard]))?;
        Ok((found, ends))
    };
    let (found, ends) = match part() {
        Ok((found, ends)) => {
            let bytes: Vec<u8> = ends.iter().flat_map(|ends| ends.to_bytes()).collect();
            (found, turn.share(Ok(bytes))?)
        }
        Err(error) => return turn.vote(Err(error)),
    };
    turn.world.expect_lengths(&ends, turn.own_shards() * Ends::<K, V>::BYTES)?;
    let ends: Vec<Ends<K, V>> =
        ends.iter().flat_map(|bytes| bytes.chunks_exact(Ends::<K, V>::BYTES)).map(Ends::from_bytes).collect();
    let changes = changes(&ends, equal, combine);

    let first = turn.world.first_shard();
    let part = turn.on_shards(|(shard, home)| {
        let (keys, totals, _) = &found[shard];
        let (runs, change) = (ends[first + shard].runs, changes[first + shard]);
        let kept = usize::from(change.drops_first)..runs;
        let keys = exact(&home, keys.slice(kept.clone())?)?;
        let mut totals = exact(&home, totals.slice(values_for::<V>(kept.start)..values_for::<V>(kept.end))?)?;
        if let (Some(total), Some(last)) = (change.last_total, totals.len().checked_sub(1)) {
            totals.slice_mut(last..)?.copy_from_host(&home, &[total])?;
        }
        Ok((keys, totals))
    });
    let (keys, totals) = turn.finish(part)?.into_iter().unzip();
    Ok((turn.spread(keys), turn.spread(totals)))
}

/// Returns what a shard tells the others. Waits.
fn ends<K: Pod, V: Pod>(
    home: &Stream,
    keys: DeviceSlice<'_, K>,
    (_, totals, count): &Own<K, V>,
) -> Result<Ends<K, V>, Error> {
    let runs = count.get(home)? as usize;
    let (Some(last), Some(last_run)) = (keys.len().checked_sub(1), runs.checked_sub(1)) else {
        return Ok(Ends { runs: 0, keys: [K::zeroed(); 2], totals: [V::zeroed(); 2] });
    };
    let keys = [element(home, keys, 0)?, element(home, keys, last)?];
    let totals = match size_of::<V>() {
        0 => [V::zeroed(); 2],
        _ => [element(home, totals.as_slice(), 0)?, element(home, totals.as_slice(), last_run)?],
    };
    Ok(Ends { runs, keys, totals })
}

/// Reads an element. Waits.
fn element<T: Pod + Zeroable>(home: &Stream, elements: DeviceSlice<'_, T>, at: usize) -> Result<T, Error> {
    let mut element = [T::zeroed()];
    elements.slice(at..at + 1)?.copy_to_host(home, &mut element)?;
    Ok(element[0])
}

/// Copies elements into memory of their length.
fn exact<T: Pod>(home: &Stream, elements: DeviceSlice<'_, T>) -> Result<DeviceVec<T>, Error> {
    let mut copy = home.uninit(elements.len())?;
    copy.copy_from(home, elements)?;
    Ok(copy)
}
