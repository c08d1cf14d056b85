//! The largest or smallest elements of all ranks.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sharded::World;
//! use gpu_sharded::primitives::top_k;
//!
//! let stream = Device::default()?.stream()?;
//! let world = World::local(3);
//! let logits = stream.upload(&[0.5f32, 2.0, -1.0, 3.5, 0.0, 3.5])?;
//! let best = top_k::largest(&stream, &world, &logits, 2)?;
//! assert_eq!(best.keys.to_vec(&stream)?, [3.5, 3.5]);
//! assert_eq!(best.positions.to_vec(&stream)?, [3, 5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Each shard finds its own `k`. Every rank gets those of all shards, with their positions, and finds the `k` best among them. So few bytes
//! are exchanged as long as `k` is small: a key and 8 bytes for each of `k` elements per shard, to every rank.

use super::call::{Turn, lens};
use super::spread::Parts;
use crate::partition::at;
use crate::plan::{concatenated, fetch};
use crate::sharded::gather_column;
use crate::world::World;
use bytemuck::Pod;
use core::any::type_name;
use gpu_primitives::operator::map;
use gpu_primitives::sort::{RadixKey, ShortCode};
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, top_k, transform};

/// The best elements: the same on all ranks.
#[derive(Debug)]
pub struct Best<K: Pod> {
    /// The elements, the best one first.
    pub keys: DeviceVec<K>,
    /// Their positions among the elements of all ranks, in the order of the ranks and of their shards.
    pub positions: DeviceVec<u64>,
}

/// Which end of the order is wanted.
#[derive(Clone, Copy)]
enum End {
    Largest,
    Smallest,
}

/// Returns the `k` largest elements of all ranks, the largest first; all elements if there are not so many. Of equal elements, the one with
/// the lowest position comes first, and is chosen first. `k` must be the same on all ranks. Waits.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::RanksDisagree`], [`Error::RankFailed`], [`Error::NotRecordable`], or any launch error;
/// [`Error::TooLong`] if `k` elements of every shard are 2^32 or more; [`Error::DictionaryLost`] if a rank is lost. No memory of the caller is
/// changed.
pub fn largest<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, K>>,
    k: usize,
) -> Result<Best<K>, Error> {
    best(&Turn::begin(stream, world, "top_k::largest", (type_name::<K>(), k))?, elements.into(), k, End::Largest)
}

/// Returns the `k` smallest elements of all ranks, the smallest first: see [`largest`].
///
/// # Errors
/// Those of [`largest`].
pub fn smallest<'a, K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    world: &World,
    elements: impl Into<Parts<'a, K>>,
    k: usize,
) -> Result<Best<K>, Error> {
    best(&Turn::begin(stream, world, "top_k::smallest", (type_name::<K>(), k))?, elements.into(), k, End::Smallest)
}

fn best<K: RadixKey<Code: ShortCode>>(
    turn: &Turn<'_>,
    elements: Parts<'_, K>,
    k: usize,
    end: End,
) -> Result<Best<K>, Error> {
    let part = || {
        let inputs = turn.inputs(elements)?;
        let own = turn.on_shards(|(own, home)| select::<K, u64>(&home, inputs[own].slice(), k, end))?;
        Ok((lens(&inputs), own))
    };
    let (lens, own) = match part() {
        Ok((lens, own)) => (turn.share_each::<u64>(Ok(lens))?, own),
        Err(error) => return turn.vote(Err(error)),
    };

    // From positions on a shard to those among all elements.
    let (world, stream) = (turn.world, turn.stream);
    let (first, own_shards) = (world.first_shard(), turn.own_shards());
    let part = || {
        let (mut keys, mut positions) = (Vec::new(), Vec::new());
        for (shard, (own_keys, mut own_positions)) in own.into_iter().enumerate() {
            let home = turn.lane(shard);
            let start: u64 = lens[..first + shard].iter().sum();
            let from_start = map!(start: u64 = start; |at: u64| -> u64 { start + at });
            transform::map_in_place(&home, &mut own_positions, from_start)?;
            keys.push(fetch(own_keys, &home, stream)?);
            positions.push(fetch(own_positions, &home, stream)?);
        }
        Ok((concatenated(stream, keys)?, concatenated(stream, positions)?))
    };
    let of_rank = |lens: &[u64]| lens.iter().map(|&len| k.min(len as usize)).sum();
    let counts: Vec<usize> = lens.chunks(own_shards).map(of_rank).collect();
    let total = counts.iter().sum();
    let part = part().and_then(|own| Ok((own, (stream.uninit::<K>(total)?, stream.uninit::<u64>(total)?))));
    let ((keys, positions), (mut all_keys, mut all_positions)) = turn.vote(part)?;
    gather_column(world, stream, keys.as_slice(), &mut all_keys, &counts)?;
    gather_column(world, stream, positions.as_slice(), &mut all_positions, &counts)?;

    // The elements of lower shards come first, so of equal ones the position decides here, too.
    let part = || {
        let (keys, chosen) = select::<K, u32>(stream, all_keys.as_slice(), k, end)?;
        Ok(Best { keys, positions: at(stream, &all_positions, &chosen)? })
    };
    turn.finish(part())
}

/// Returns the best of some elements, with their positions among these. Does not wait.
fn select<K: RadixKey<Code: ShortCode>, P: top_k::Position>(
    home: &Stream,
    elements: DeviceSlice<'_, K>,
    k: usize,
    end: End,
) -> Result<(DeviceVec<K>, DeviceVec<P>), Error> {
    let wanted = k.min(elements.len());
    let (mut keys, mut positions) = (home.uninit::<K>(wanted)?, home.uninit::<P>(wanted)?);
    match end {
        End::Largest => top_k::largest(home, elements, (&mut keys, &mut positions))?,
        End::Smallest => top_k::smallest(home, elements, (&mut keys, &mut positions))?,
    }
    Ok((keys, positions))
}
