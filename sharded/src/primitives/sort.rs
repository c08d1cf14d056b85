//! Sorts of keys, and of keys with values, that are spread over ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::sort;
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3); // or World::new(an engine): then every rank makes the call, with keys of its own
//! let (keys, values) = (stream.upload(&[7i32, -2, 7, 0, 7])?, stream.upload(b"abcde")?);
//! let (keys, values) = sort::pairs(&stream, &world, (&keys, &values))?;
//! assert_eq!(keys.to_vec(&stream)?, [-2, 0, 7, 7, 7]);
//! assert_eq!(values.to_vec(&stream)?, b"bdace"); // stable: a before c before e
//! assert_eq!(keys.parts().iter().map(|part| part.len()).collect::<Vec<_>>(), [1, 2, 2]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//! - The first shard has the smallest keys, the next one those that follow, and so on.
//! - Every shard has as many as every other, or one more, whatever the keys are: equal ones may be in several shards.
//! - Stable: of equal keys, those of the lower rank come first; those of a shard keep their order.
//! - The order is that of the [radix sort](gpu_primitives::sort): floats as `total_cmp` orders them.
//! - The input is not changed. All ranks get their result, or all get an error.
//!
//! # Steps
//! 1. Each shard sorts its own keys.
//! 2. The ranks find where to cut all shards, by samples. This takes a few rounds of small messages.
//! 3. One exchange moves keys and values: a shard gets a sorted run from each other.
//! 4. Each shard merges its runs, 32 at a time.
//!
//! Nothing of the exchange overlaps with the sorts and merges of the same call. A shard holds its input, what it gets, and a sorted
//! copy before that or what it has merged after it: three times its part, and what the radix sort needs.

use super::call::{Turn, lens};
use super::routes::{Column, Routes};
use super::splitters::cuts;
use super::spread::{Parts, Spread, share_of};
use crate::world::World;
use bytemuck::Pod;
use core::any::type_name;
use gpu_dictionary::cast::{Input, codes, keys_of};
use gpu_dictionary::{Key, KeyCode, values_for};
use gpu_primitives::merge::{self, MAX_RUNS};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, expect_len};

/// Sorts the keys of all ranks. Waits.
///
/// Keys are numbers, and types of your own whose code gives the key back. Other types are sorted as the values of their
/// [codes](gpu_primitives::sort::encode), by [`pairs`].
///
/// ```
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::primitives::sort;
/// use gpu_sharded::{Threads, World};
///
/// // Three ranks, which are threads.
/// let parts = std::thread::scope(|scope| {
///     let rank = |transport| {
///         scope.spawn(move || -> Result<Vec<f32>, Error> {
///             let (stream, world) = (Device::cpu().stream()?, World::new(transport));
///             let own = stream.upload(&[9.5, -1.0, world.rank() as f32])?;
///             sort::keys(&stream, &world, &own)?.to_vec(&stream)
///         })
///     };
///     let ranks: Vec<_> = Threads::ranks(3).into_iter().map(rank).collect();
///     ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect::<Result<Vec<_>, _>>()
/// })?;
/// assert_eq!(parts, [[-1.0, -1.0, -1.0], [0.0, 1.0, 2.0], [9.5, 9.5, 9.5]]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], or any launch error, and
/// [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is changed.
pub fn keys<'a, K: Key>(stream: &Stream, world: &World, keys: impl Into<Parts<'a, K>>) -> Result<Spread<K>, Error> {
    let turn = Turn::begin(stream, world, "sort::keys", type_name::<K>())?;
    let inputs = turn.inputs(keys.into()).and_then(|keys| {
        let nothing = turn.on_shards(|(_, home)| Ok(Input::Copy(home.uninit::<()>(0)?)))?;
        Ok((keys, nothing))
    });
    Ok(sorted(&turn, inputs)?.0)
}

/// Sorts the keys of all ranks together with their values. Waits.
///
/// # Errors
/// Those of [`keys`], and [`Error::LengthMismatch`] if a shard has not one value per key.
pub fn pairs<'a, K: Key, V: Pod>(
    stream: &Stream,
    world: &World,
    pairs: (impl Into<Parts<'a, K>>, impl Into<Parts<'a, V>>),
) -> Result<(Spread<K>, Spread<V>), Error> {
    let turn = Turn::begin(stream, world, "sort::pairs", (type_name::<K>(), type_name::<V>()))?;
    let inputs = turn.inputs(pairs.0.into()).and_then(|keys| Ok((keys, turn.inputs(pairs.1.into())?)));
    sorted(&turn, inputs)
}

/// The keys and values of the shards of this rank.
type Pairs<'a, K, V> = (Vec<Input<'a, K>>, Vec<Input<'a, V>>);

fn sorted<K: Key, V: Pod>(
    turn: &Turn<'_>,
    inputs: Result<Pairs<'_, K, V>, Error>,
) -> Result<(Spread<K>, Spread<V>), Error> {
    let check = |(keys, values): Pairs<'_, K, V>| {
        for (keys, values) in keys.iter().zip(&values) {
            let expected = values_for::<V>(keys.slice().len());
            expect_len("the values of keys on a shard", expected, values.slice().len())?;
        }
        let own = |(own, home): (usize, Stream)| sort_own(&home, keys[own].slice(), values[own].slice());
        Ok((lens(&keys), turn.on_shards(own)?))
    };
    let (lens, own) = match inputs.and_then(check) {
        Ok((lens, own)) => (turn.share_each(Ok(lens))?, own),
        Err(error) => return turn.vote(Err(error)),
    };
    let lens: Vec<usize> = lens.into_iter().map(|len: u64| len as usize).collect();
    let (codes, values): (Vec<DeviceVec<K::Code>>, Vec<DeviceVec<V>>) = own.into_iter().unzip();

    let (shards, total) = (turn.world.shards(), lens.iter().sum());
    let (codes, values, runs, moved) = if shards > 1 {
        let targets: Vec<usize> = (0..shards).map(|shard| share_of(total, shard, shards).start).collect();
        let cuts = cuts(turn, &codes, &lens, &targets)?;
        let count = |from: usize, to: usize| cuts.get(to + 1).map_or(lens[from], |next| next[from]) - cuts[to][from];
        let routes = Routes::new((0..shards).map(|from| (0..shards).map(|to| count(from, to)).collect()).collect());
        let rooms = || Ok((routes.rooms::<K::Code>(turn)?, routes.rooms::<V>(turn)?));
        let (mut codes_to, mut values_to) = turn.vote(rooms())?;
        let columns = vec![Column::new(&codes, &mut codes_to), Column::new(&values, &mut values_to)];
        let moved = routes.exchange(turn, columns)?;
        drop((codes, values));
        let first = turn.world.first_shard();
        let runs = (0..turn.own_shards()).map(|own| routes.runs_of(first + own)).collect();
        (codes_to, values_to, runs, moved)
    } else {
        (codes, values, vec![lens], Ok(()))
    };

    let received = codes.into_iter().zip(values).zip(runs).enumerate();
    let finish = |(own, ((codes, values), runs))| {
        let home = turn.lane(own);
        let (codes, values) = merged(&home, codes, values, runs)?;
        Ok((keys_of::<K>(&home, codes)?, values))
    };
    let own: Vec<_> = turn.finish(moved.and_then(|()| received.map(finish).collect()))?;
    let (keys, values) = own.into_iter().unzip();
    Ok((turn.spread(keys), turn.spread(values)))
}

/// Sorts the keys of a shard by their codes. Does not wait.
fn sort_own<K: Key, V: Pod>(
    home: &Stream,
    keys: DeviceSlice<'_, K>,
    values: DeviceSlice<'_, V>,
) -> Result<(DeviceVec<K::Code>, DeviceVec<V>), Error> {
    let (mut sorted, mut along) = (home.uninit::<K::Code>(keys.len())?, home.uninit::<V>(values.len())?);
    let codes = codes(home, keys)?;
    match size_of::<V>() {
        0 => sort::keys(home, codes.slice(), &mut sorted, Options::new())?,
        _ => sort::pairs(home, (codes.slice(), values), (&mut sorted, &mut along), Options::new())?,
    }
    Ok((sorted, along))
}

/// Merges sorted runs of these lengths, which lie one after the other. Does not wait.
fn merged<C: KeyCode, V: Pod>(
    home: &Stream,
    mut codes: DeviceVec<C>,
    mut values: DeviceVec<V>,
    mut runs: Vec<usize>,
) -> Result<(DeviceVec<C>, DeviceVec<V>), Error> {
    runs.retain(|&len| len > 0);
    while runs.len() > 1 {
        let (mut codes_to, mut values_to) = (home.uninit::<C>(codes.len())?, home.uninit::<V>(values.len())?);
        let mut start = 0;
        for group in runs.chunks(MAX_RUNS) {
            let end = start + group.iter().sum::<usize>();
            let mut at = start;
            let mut pieces = Vec::new();
            for len in group {
                let values = values.slice(values_for::<V>(at)..values_for::<V>(at + len))?;
                pieces.push((codes.slice(at..at + len)?, values));
                at += len;
            }
            let to = codes_to.slice_mut(start..end)?;
            match size_of::<V>() {
                0 => {
                    let pieces: Vec<_> = pieces.into_iter().map(|(codes, _)| codes).collect();
                    merge::runs_keys(home, &pieces, to, C::ORDER)?;
                }
                _ => merge::runs_pairs(home, &pieces, (to, values_to.slice_mut(start..end)?), C::ORDER)?,
            }
            start = end;
        }
        (codes, values) = (codes_to, values_to);
        runs = runs.chunks(MAX_RUNS).map(|group| group.iter().sum()).collect();
    }
    Ok((codes, values))
}
