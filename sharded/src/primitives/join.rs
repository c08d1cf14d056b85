//! Joins of two tables that are spread over ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::join;
//!
//! let stream = Device::default()?.stream()?;
//! let (customers, names) = (stream.upload(&[10u32, 20, 30])?, stream.upload(b"abc")?);
//! let (orders, amounts) = (stream.upload(&[20u32, 10, 20, 99])?, stream.upload(&[5u32, 6, 7, 8])?);
//! let rows = join::inner(&stream, &World::local(1), (&orders, &amounts), (&customers, &names))?;
//! assert_eq!(rows.keys.to_vec(&stream)?, [10, 20, 20]);
//! assert_eq!(rows.left.to_vec(&stream)?, [6, 5, 7]);
//! assert_eq!(rows.right.to_vec(&stream)?, b"abb");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Steps
//! 1. Each shard splits both sides by the hashes of their keys.
//! 2. One exchange moves keys and values of both sides: equal keys meet on one shard.
//! 3. Each shard sorts what it has got, and joins it.
//!
//! Nothing of the exchange overlaps with the work before and after it. A key that occurs very often makes the shard of its hash busy.

use super::call::{Turn, numbers};
use super::routes::{Column, Routes};
use super::spread::{Parts, Spread};
use crate::partition::{Partition, Split};
use crate::world::World;
use bytemuck::Pod;
use core::any::type_name;
use gpu_dictionary::cast::{Input, codes, keys_of};
use gpu_dictionary::{Key, KeyCode, values_for};
use gpu_primitives::operator::map;
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, expect_len, permute, scan, search, transform};

/// The rows of a join: each shard has those of the keys whose hashes belong to it.
#[derive(Debug)]
pub struct Joined<K: Pod, L: Pod, R: Pod> {
    /// The keys. On a shard they ascend.
    pub keys: Spread<K>,
    /// The values of the left side.
    pub left: Spread<L>,
    /// The values of the right side.
    pub right: Spread<R>,
}

/// Joins the pairs of all ranks with equal keys: one row for each pair of the left side and each of the right side that has the
/// same key. Waits.
///
/// Rows of the same key are in the order of the left side, in the order of the ranks; those of one pair of the left side, in the order of the
/// right side. For the positions of rows instead of values, pass these as values.
///
/// # Errors
/// [`Error::LengthMismatch`] if a shard has not one value per key; [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`],
/// [`Error::NotRecordable`], or any launch error, and [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is changed.
pub fn inner<'a, K: Key, L: Pod, R: Pod>(
    stream: &Stream,
    world: &World,
    left: (impl Into<Parts<'a, K>>, impl Into<Parts<'a, L>>),
    right: (impl Into<Parts<'a, K>>, impl Into<Parts<'a, R>>),
) -> Result<Joined<K, L, R>, Error> {
    let types = (type_name::<K>(), type_name::<L>(), type_name::<R>());
    let turn = &Turn::begin(stream, world, "join::inner", types)?;
    let part = || {
        let left = Side::split(turn, turn.inputs(left.0.into())?, turn.inputs(left.1.into())?)?;
        Ok((left, Side::split(turn, turn.inputs(right.0.into())?, turn.inputs(right.1.into())?)?))
    };
    let (left, right, counts) = match part() {
        Ok((left, right)) => {
            let words: Vec<u64> = left.counts.iter().chain(&right.counts).map(|&count| count as u64).collect();
            (left, right, turn.share(Ok(bytemuck::cast_slice(&words).to_vec()))?)
        }
        Err(error) => return turn.vote(Err(error)),
    };
    let (shards, own_shards) = (world.shards(), turn.own_shards());
    world.expect_lengths(&counts, 2 * own_shards * shards * size_of::<u64>())?;
    let counts: Vec<Vec<usize>> = counts.iter().map(|bytes| numbers(bytes)).collect();
    let side = |side: usize| {
        let of_rank = |counts: &Vec<usize>| {
            let own = &counts[side * own_shards * shards..(side + 1) * own_shards * shards];
            own.chunks(shards).map(<[usize]>::to_vec).collect::<Vec<_>>()
        };
        Routes::new(counts.iter().flat_map(of_rank).collect())
    };
    let routes = [side(0), side(1)];

    let rooms = || {
        let left = (routes[0].rooms::<K>(turn)?, routes[0].rooms::<L>(turn)?);
        Ok((left, (routes[1].rooms::<K>(turn)?, routes[1].rooms::<R>(turn)?)))
    };
    let ((mut left_keys, mut left_values), (mut right_keys, mut right_values)) = turn.vote(rooms())?;
    let columns = [
        vec![Column::new(&left.keys, &mut left_keys), Column::new(&left.values, &mut left_values)],
        vec![Column::new(&right.keys, &mut right_keys), Column::new(&right.values, &mut right_values)],
    ];
    let moved = Routes::exchange_all(turn, routes.iter().zip(columns))?;
    drop((left, right));

    let own = |(own, home): (usize, Stream)| {
        let left = (left_keys[own].as_slice(), left_values[own].as_slice());
        join_own::<K, L, R>(&home, left, (right_keys[own].as_slice(), right_values[own].as_slice()))
    };
    let rows = turn.finish(moved.and_then(|()| turn.on_shards(own)))?;
    let (mut keys, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    for (of_keys, of_left, of_right) in rows {
        keys.push(of_keys);
        left.push(of_left);
        right.push(of_right);
    }
    Ok(Joined { keys: turn.spread(keys), left: turn.spread(left), right: turn.spread(right) })
}

/// The pairs of one side, on each shard of this rank in the order of the shards that they go to.
struct Side<K: Pod, V: Pod> {
    keys: Vec<DeviceVec<K>>,
    values: Vec<DeviceVec<V>>,
    /// For each shard of this rank, how many go to each shard.
    counts: Vec<usize>,
}

impl<K: Key, V: Pod> Side<K, V> {
    /// Waits.
    fn split(turn: &Turn<'_>, keys: Vec<Input<'_, K>>, values: Vec<Input<'_, V>>) -> Result<Self, Error> {
        let partition = Partition::<K::Code>::Hash { seed: 0 };
        let mut side = Self { keys: Vec::new(), values: Vec::new(), counts: Vec::new() };
        let splits = turn.on_shards(|(own, home)| {
            let (keys, values) = (keys[own].slice(), values[own].slice());
            expect_len("the values of keys on a shard", values_for::<V>(keys.len()), values.len())?;
            partition.split(&home, turn.world.shards(), keys, values)
        })?;
        for Split { keys, along, counts } in splits {
            side.keys.push(keys);
            side.values.push(along);
            side.counts.extend(counts);
        }
        Ok(side)
    }
}

/// Pairs of a shard.
type Pairs<'a, K, V> = (DeviceSlice<'a, K>, DeviceSlice<'a, V>);

/// Joins the pairs of a shard: sorts both sides, finds the equal keys of the right side for each key of the left one, and writes a row for each of
/// them. Waits, for the number of rows.
#[allow(clippy::type_complexity, reason = "the three columns of the rows")]
fn join_own<K: Key, L: Pod, R: Pod>(
    home: &Stream,
    left: Pairs<'_, K, L>,
    right: Pairs<'_, K, R>,
) -> Result<(DeviceVec<K>, DeviceVec<L>, DeviceVec<R>), Error> {
    let (left_codes, left_values) = sorted(home, left)?;
    let (right_codes, right_values) = sorted(home, right)?;
    let len = left_codes.len();
    let (mut low, mut high) = (home.uninit::<u64>(len)?, home.uninit::<u64>(len)?);
    let order = <K::Code as KeyCode>::ORDER;
    search::lower_bound_sorted(home, &right_codes, &left_codes, &mut low, order)?;
    search::upper_bound_sorted(home, &right_codes, &left_codes, &mut high, order)?;
    // Where the rows of each pair begin. One more says where the last ones end.
    let mut offsets = home.zeroed::<u64>(len + 1)?;
    let mut counts = home.uninit::<u64>(len)?;
    transform::map2(home, &low, &high, &mut counts, map!(|low: u64, high: u64| -> u64 { high - low }))?;
    scan::inclusive_sum(home, &counts, offsets.slice_mut(1..)?)?;
    let rows = offsets.slice(len..)?.to_vec(home)?[0] as usize;

    let mut row = home.uninit::<u64>(rows)?;
    transform::sequence(home, &mut row, 0u64)?;
    let mut of_left = home.uninit::<u64>(rows)?;
    search::upper_bound_sorted(home, offsets.slice(1..)?, &row, &mut of_left, gpu_primitives::compare::Less)?;
    let (start, low) = (at(home, offsets.slice(..len)?, &of_left)?, at(home, low.as_slice(), &of_left)?);
    let mut of_right = home.uninit::<u64>(rows)?;
    let position = map!(|row: u64, start: u64, low: u64| -> u64 { low + (row - start) });
    transform::map3(home, &row, &start, &low, &mut of_right, position)?;
    let keys = keys_of::<K>(home, at(home, left_codes.as_slice(), &of_left)?)?;
    Ok((keys, at(home, left_values.as_slice(), &of_left)?, at(home, right_values.as_slice(), &of_right)?))
}

/// Sorts pairs by the codes of their keys. Does not wait.
fn sorted<K: Key, V: Pod>(
    home: &Stream,
    (keys, values): Pairs<'_, K, V>,
) -> Result<(DeviceVec<K::Code>, DeviceVec<V>), Error> {
    let codes = codes(home, keys)?;
    let (mut sorted, mut along) = (home.uninit::<K::Code>(keys.len())?, home.uninit::<V>(values.len())?);
    match size_of::<V>() {
        0 => sort::keys(home, codes.slice(), &mut sorted, Options::new())?,
        _ => sort::pairs(home, (codes.slice(), values), (&mut sorted, &mut along), Options::new())?,
    }
    Ok((sorted, along))
}

/// Returns the elements at some positions, which are in range; none if they have no size.
fn at<T: Pod>(home: &Stream, elements: DeviceSlice<'_, T>, positions: &DeviceVec<u64>) -> Result<DeviceVec<T>, Error> {
    let mut out = home.uninit(values_for::<T>(positions.len()))?;
    if size_of::<T>() > 0 {
        permute::gather(home, elements, positions, &mut out)?;
    }
    Ok(out)
}
