//! Spreading pairs over shards: building, and balancing.

use crate::options::Options;
use crate::partition::{Partition, at};
use crate::plan::{Plan, reach};
use crate::shard::Shard;
use crate::sharded::{Code, Sharded, words};
use crate::world::{Call, World};
use gpu_dictionary::{Key, values_for};
use gpu_primitives::{DeviceSlice, Error, Stream, expect_len};

/// How many keys are looked at per shard to find splitters: shards then differ by a few percent.
const SAMPLES_PER_SHARD: usize = 512;

/// When shards are balanced.
#[derive(Debug, Default)]
pub(crate) struct Balance {
    /// The number of operations since the shards were last balanced, or found to be.
    pub operations: u64,
    /// How often they were.
    pub times: u64,
    /// Why that failed the last time, if it did.
    pub failure: Option<Error>,
}

impl Balance {
    pub fn of_copy(&self) -> Self {
        // The failure is about an update of the original.
        Self { operations: self.operations, times: self.times, failure: None }
    }
}

/// Returns whether one of the shards has more than 1.2 times as much as they have on average.
fn is_uneven(sizes: &[u64]) -> bool {
    let (total, largest) = (sizes.iter().sum::<u64>() as u128, sizes.iter().max().copied().unwrap_or(0) as u128);
    5 * largest * sizes.len() as u128 > 6 * total
}

/// Returns the positions of samples: one at a random place in each of `samples` equal parts.
fn sample_positions(len: usize, samples: usize) -> Vec<u32> {
    let (len, samples) = (len as u64, samples as u64);
    // No overflow: there are at most 2^17 samples.
    let start = |i: u64| i * len / samples;
    let of_part = |i: u64| {
        let random = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        start(i) + (random >> 32) % (start(i + 1) - start(i)).max(1)
    };
    (0..samples).map(|i| of_part(i).min(len - 1) as u32).collect()
}

/// Chooses a partition for the keys that all ranks have: one that gives each shard about as many different keys. `part` is how
/// this rank's part of the call went so far. `old` says how keys are divided, and how they were before, if they were.
pub(crate) fn choose<K: Key>(
    world: &World,
    stream: &Stream,
    call: &Call,
    keys: DeviceSlice<'_, K>,
    part: Result<(), Error>,
    old: &Partition<K::Code>,
) -> Result<Partition<K::Code>, Error> {
    let lens = world.agree(call, part.map(|()| vec![keys.len() as u64]))?;
    if let &Partition::Hash { seed } = old {
        return Ok(Partition::Hash { seed });
    }
    let lens: Vec<usize> = lens.iter().map(|words| words[0] as usize).collect();
    let (total, shards) = (lens.iter().sum::<usize>(), world.shards());
    if total == 0 {
        return Ok(Partition::Ranges { splitters: Vec::new() });
    }
    let samples = |len: usize| {
        let share = (SAMPLES_PER_SHARD * shards) as u128 * len as u128 / total as u128;
        len.min((share as usize).max(1))
    };
    let own = || {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let positions = stream.upload(&sample_positions(keys.len(), samples(keys.len())))?;
        at(stream, keys, &positions)?.to_vec(stream)
    };
    let own = world.vote(call, own())?;
    let own: Vec<K::Code> = own.into_iter().map(Key::code).collect();
    let all = world.gather(bytemuck::cast_slice(&own))?;
    let of_rank = |bytes: &Vec<u8>| {
        bytes.chunks_exact(size_of::<K::Code>()).map(bytemuck::pod_read_unaligned).collect::<Vec<K::Code>>()
    };
    let mut codes: Vec<K::Code> = all.iter().flat_map(of_rank).collect();
    codes.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(core::cmp::Ordering::Equal));
    // A key that occurs often takes the place of one.
    codes.dedup();
    if codes.is_empty() {
        return Ok(Partition::Ranges { splitters: Vec::new() });
    }
    let splitters = (1..shards).map(|shard| codes[shard * codes.len() / shards]).collect();
    Ok(Partition::Ranges { splitters })
}

/// Builds shards from the pairs that all ranks have. `old` says how keys are divided, and for hashes, how they will be.
pub(crate) fn distribute<D: Shard>(
    world: &World,
    stream: &Stream,
    call: &Call,
    (keys, values): (DeviceSlice<'_, D::Key>, DeviceSlice<'_, D::Value>),
    options: &Options<D::Options>,
    old: Partition<Code<D>>,
) -> Result<(Partition<Code<D>>, Vec<D>), Error> {
    let check = || {
        world.expect_shards()?;
        stream.refuse_recording("the construction of a dictionary")?;
        expect_len("the values of a dictionary", values_for::<D::Value>(keys.len()), values.len())
    };
    if world.shards() == 1 {
        let shard = check().and_then(|()| D::bulk_build(world.home(0, stream), (keys, values), options.of_shard()));
        return Ok((old, vec![shard?]));
    }
    let partition = choose(world, stream, call, keys, check(), &old)?;
    let split = partition.split(stream, world.shards(), keys, values);
    let counts = match &split {
        Ok(split) => world.agree(call, Ok(words(&split.counts)))?,
        Err(_) => Vec::new(),
    };
    let split = match split {
        Ok(split) => split,
        Err(error) => return world.vote(call, Err(error)),
    };
    let plan = Plan::new(world, &counts);
    let rooms = || Ok((plan.room(stream)?, plan.room(stream)?));
    let (keys_room, values_room) = world.vote(call, rooms())?;
    let keys = plan.send(stream, split.keys.as_slice(), keys_room)?;
    let values = plan.send(stream, split.along.as_slice(), values_room)?;
    let build = |own: usize| {
        let home = &world.lane(own, stream);
        let keys = reach(plan.part(keys.slice(), own)?, stream, home)?;
        let values = reach(plan.part(values.slice(), own)?, stream, home)?;
        D::bulk_build(home, (keys.slice(), values.slice()), options.of_shard())
    };
    let shards: Result<Vec<D>, Error> = (0..world.own_shards()).map(build).collect();
    let shards = world.vote(call, shards.and_then(|shards| world.join(stream).map(|()| shards)))?;
    Ok((partition, shards))
}

impl<D: Shard> Sharded<D> {
    /// Returns how often the shards were balanced.
    #[must_use]
    pub fn times_balanced(&self) -> u64 {
        self.balance.times
    }

    /// Returns why the last attempt to balance the shards after an update failed, if it did. The update itself succeeded.
    #[must_use]
    pub fn balance_failure(&self) -> Option<&Error> {
        self.balance.failure.as_ref()
    }

    /// Gives all shards about the same number of keys: with other splitters, or another hash. Every rank must call it. Updates do
    /// so by themselves when a shard has more than 1.2 times the mean. Waits.
    ///
    /// It holds a copy of all pairs while it builds new shards.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the dictionary is unchanged.
    pub fn rebalance(&mut self, stream: &Stream) -> Result<(), Error> {
        let world = self.options.world.clone();
        self.expect_whole()?;
        let _turn = world.turn()?;
        self.rebalance_in_turn(stream, &world)
    }

    fn rebalance_in_turn(&mut self, stream: &Stream, world: &World) -> Result<(), Error> {
        let call = self.call("rebalance");
        let pairs = world.vote(&call, self.export_own(stream))?;
        let old = match self.partition {
            Partition::Hash { seed } => Partition::Hash { seed: seed + 1 },
            Partition::Ranges { .. } => Partition::Ranges { splitters: Vec::new() },
        };
        let mut options = self.options();
        (options.expected_keys, options.expected_operations) = (None, None);
        let pairs = (pairs.keys.as_slice(), pairs.values.as_slice());
        let (partition, shards) = distribute::<D>(world, stream, &call, pairs, &options, old)?;
        (self.partition, self.shards) = (partition, shards);
        self.balance.operations = 0;
        self.balance.times += 1;
        Ok(())
    }

    /// Balances new shards, if they need it: samples of keys that occur several times do not tell how many there are.
    pub(crate) fn balance_new(&mut self, stream: &Stream, world: &World) -> Result<(), Error> {
        if world.shards() == 1 {
            return Ok(());
        }
        let of_shard = |(own, shard): (usize, &D)| Ok(shard.stats(world.home(own, stream))?.resident as u64);
        let resident: Result<Vec<u64>, Error> = self.shards.iter().enumerate().map(of_shard).collect();
        let resident = world.agree(&self.call("the sizes of shards"), resident)?;
        let resident: Vec<u64> = resident.iter().flat_map(|words| words[..world.own_shards()].to_vec()).collect();
        let operations = resident.iter().sum::<u64>() as usize;
        self.balance_if_uneven(stream, world, &resident, operations);
        Ok(())
    }

    /// Balances the shards after an update, if they need it. `resident` has the number of elements of each shard, with stale
    /// ones.
    pub(crate) fn balance_if_uneven(&mut self, stream: &Stream, world: &World, resident: &[u64], operations: usize) {
        self.balance.operations += operations as u64;
        let (total, largest) = (resident.iter().sum::<u64>(), resident.iter().max().copied().unwrap_or(0));
        // Fewer operations than this cannot make shards uneven that were even. If they were not, they cannot be.
        let is_due = 5 * self.balance.operations * resident.len() as u64 >= total;
        if largest < self.options.balance_from as u64 || !is_due || !is_uneven(resident) {
            return;
        }
        self.balance.failure = self.balance_if_keys_are_uneven(stream, world).err();
    }

    /// Stale elements go by themselves. What counts is the number of keys.
    fn balance_if_keys_are_uneven(&mut self, stream: &Stream, world: &World) -> Result<(), Error> {
        let of_shard = |(own, shard): (usize, &D)| Ok(shard.len(world.home(own, stream))? as u64);
        let lens: Result<Vec<u64>, Error> = self.shards.iter().enumerate().map(of_shard).collect();
        let lens = world.agree(&self.call("the lengths of shards"), lens)?;
        let lens: Vec<u64> = lens.iter().flat_map(|words| words[..world.own_shards()].to_vec()).collect();
        self.balance.operations = 0;
        if is_uneven(&lens) { self.rebalance_in_turn(stream, world) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_uneven, sample_positions};

    #[test]
    fn uneven_is_more_than_a_fifth_above_the_mean() {
        assert!(!is_uneven(&[100, 100, 100]) && !is_uneven(&[0, 0]) && !is_uneven(&[120, 80, 100]));
        assert!(is_uneven(&[121, 79, 100]) && is_uneven(&[1, 0, 0]) && is_uneven(&[0, 0, 0, 5]));
    }

    #[test]
    fn samples_lie_in_their_parts() {
        for (len, samples) in [(1, 1), (10, 10), (10, 3), (1000, 7), (u32::MAX as usize, 4096)] {
            let positions = sample_positions(len, samples);
            assert_eq!(positions.len(), samples);
            for (i, &position) in positions.iter().enumerate() {
                let part = i as u64 * len as u64 / samples as u64..(i as u64 + 1) * len as u64 / samples as u64;
                assert!(part.contains(&u64::from(position)), "{position} of {len}, part {part:?}");
            }
        }
    }
}
