//! The dictionary: construction, and queries of single keys.

use crate::build::{Balance, distribute};
use crate::options::Options;
use crate::partition::{Partition, Split, positions};
use crate::plan::{Plan, concatenated, fetch, reach};
use crate::shard::Shard;
use crate::transport::{Incoming, Outgoing};
use crate::world::{Call, World};
use bytemuck::Pod;
use core::fmt::{self, Debug, Formatter};
use gpu_dictionary::cast::Input;
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::{Contents, Dictionary, Lookup, Stats, values_for};
use gpu_primitives::sort::RadixKey;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, permute, sort};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::sync::MutexGuard;

pub(crate) type Code<D> = <<D as Dictionary>::Key as RadixKey>::Code;

/// One dictionary made of many: see the [crate documentation](crate).
pub struct Sharded<D: Shard> {
    pub(crate) options: Options<D::Options>,
    /// The shards of this rank.
    pub(crate) shards: Vec<D>,
    pub(crate) partition: Partition<Code<D>>,
    /// Its number among the dictionaries of the world.
    pub(crate) number: u64,
    /// Why the shards are not as they should be, if they are not.
    pub(crate) lost: Option<String>,
    pub(crate) balance: Balance,
    /// Which checkpoints the dictionary continues. That of the first rank counts.
    pub(crate) history: History,
}

impl<D: Shard + Debug> Debug for Sharded<D> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let world = &self.options.world;
        f.debug_struct("Sharded").field("world", world).field("own shards", &self.shards).finish_non_exhaustive()
    }
}

/// Returns a number that differs if two things differ. It is the same in all processes of a program.
pub(crate) fn fingerprint(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl Call {
    /// Describes a call of a dictionary with shards `D`.
    pub(crate) fn of<D: Dictionary>(name: &'static str, dictionary: u64) -> Self {
        let sizes = (size_of::<D::Key>(), size_of::<D::Value>());
        Self { name, dictionary, fingerprint: fingerprint((core::any::type_name::<D>(), sizes)), options: 0 }
    }
}

/// How many bytes of results are placed at a time: they should stay in the cache of a GPU.
const PLACED_AT_A_TIME: usize = 16 << 20;

/// Writes the parts of results to the places of their questions.
///
/// The questions of a shard are in order, but those in between went to other shards: each part writes a few bytes of every sector of
/// the result. So all parts advance together, and a sector is still in the cache when the next part writes to it.
pub(crate) fn place<T: Pod>(
    stream: &Stream,
    positions: &DeviceVec<u32>,
    parts: Vec<DeviceVec<T>>,
) -> Result<DeviceVec<T>, Error> {
    let mut placed = stream.uninit::<T>(values_for::<T>(positions.len()))?;
    if size_of::<T>() == 0 {
        return Ok(placed);
    }
    let step = (PLACED_AT_A_TIME / size_of::<T>() / parts.len().max(1)).max(1 << 16);
    let longest = parts.iter().map(DeviceVec::len).max().unwrap_or(0);
    for from in (0..longest).step_by(step) {
        let mut start = 0;
        for part in &parts {
            let piece = from.min(part.len())..(from + step).min(part.len());
            let places = positions.slice(start + piece.start..start + piece.end)?;
            // SAFETY: the positions are a permutation of those of the questions, one for each result.
            unsafe { permute::scatter_unchecked(stream, part.slice(piece)?, places, &mut placed)? };
            start += part.len();
        }
    }
    Ok(placed)
}

impl<D: Shard> Sharded<D> {
    /// Returns the world that the dictionary lives in.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.options.world
    }

    /// Returns the shards of this rank. They stay as they are when another rank is lost.
    #[must_use]
    pub fn shards(&self) -> &[D] {
        &self.shards
    }

    /// Calls a function on each shard of this rank: for operations that only its kind of dictionary has, such as a cleanup. It
    /// must not change which keys and values there are. Other ranks need not do the same.
    ///
    /// # Errors
    /// The first error of the function. Later shards are left out.
    pub fn each_shard(
        &mut self,
        stream: &Stream,
        mut function: impl FnMut(&mut D, &Stream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let world = self.options.world.clone();
        self.shards.iter_mut().enumerate().try_for_each(|(own, shard)| function(shard, world.home(own, stream)))
    }

    /// Returns the only shard there is, if nothing is divided.
    pub(crate) fn only(&self) -> Option<&D> {
        if self.world().shards() == 1 { self.shards.first() } else { None }
    }

    /// Describes a call of this dictionary.
    pub(crate) fn call(&self, name: &'static str) -> Call {
        Call::of::<D>(name, self.number)
    }

    /// Returns an error if the shards are not as they should be.
    pub(crate) fn expect_whole(&self) -> Result<(), Error> {
        self.lost.as_ref().map_or(Ok(()), |cause| Err(Error::DictionaryLost { cause: cause.clone() }))
    }

    /// Begins a query.
    pub(crate) fn begin(&self) -> Result<Option<MutexGuard<'_, ()>>, Error> {
        self.expect_whole()?;
        self.world().turn()
    }

    /// Prepares to send keys to their shards, with their positions, which stay here. Waits.
    #[allow(clippy::type_complexity, reason = "three things that belong together for a moment")]
    pub(crate) fn route(
        &self,
        stream: &Stream,
        call: &Call,
        keys: DeviceSlice<'_, D::Key>,
    ) -> Result<(Plan<'_>, Split<D::Key, u32>, Option<DeviceVec<D::Key>>), Error> {
        let split = || {
            stream.refuse_recording("a query of several shards")?;
            self.partition.split(stream, self.world().shards(), keys, positions(stream, keys.len())?.as_slice())
        };
        let split = split();
        let counts = match &split {
            Ok(split) => self.world().agree(call, Ok(words(&split.counts)))?,
            Err(_) => Vec::new(),
        };
        let split = match split {
            Ok(split) => split,
            Err(error) => return self.world().vote(call, Err(error)),
        };
        let plan = Plan::new(self.world(), &counts);
        let room = self.world().vote(call, plan.room(stream))?;
        Ok((plan, split, room))
    }

    /// Calls a function on each shard of this rank, with the keys that it was sent.
    fn on_shards<R>(
        &self,
        stream: &Stream,
        plan: &Plan<'_>,
        sent: &Input<'_, D::Key>,
        ask: impl Fn(&D, &Stream, DeviceSlice<'_, D::Key>) -> Result<R, Error>,
    ) -> Result<Vec<R>, Error> {
        let of_shard = |(own, shard): (usize, &D)| {
            let home = &self.world().lane(own, stream);
            ask(shard, home, reach(plan.part(sent.slice(), own)?, stream, home)?.slice())
        };
        self.shards.iter().enumerate().map(of_shard).collect()
    }

    /// Answers questions about keys with one column per question. Waits.
    fn ask<R: Pod>(
        &self,
        stream: &Stream,
        name: &'static str,
        keys: DeviceSlice<'_, D::Key>,
        ask: impl Fn(&D, &Stream, DeviceSlice<'_, D::Key>) -> Result<DeviceVec<R>, Error>,
    ) -> Result<DeviceVec<R>, Error> {
        let call = self.call(name);
        let _turn = self.begin()?;
        let (plan, split, room) = self.route(stream, &call, keys)?;
        let sent = plan.send(stream, split.keys.as_slice(), room)?;
        let part = || {
            let ask = |shard: &D, home: &Stream, keys: DeviceSlice<'_, _>| fetch(ask(shard, home, keys)?, home, stream);
            Ok((self.on_shards(stream, &plan, &sent, ask)?, plan.room_back(stream)?))
        };
        let (results, room) = self.world().vote(&call, part())?;
        place(stream, &split.along, plan.bring_back(stream, results, room)?)
    }

    /// Adds numbers of all shards of all ranks. A number that is not known anywhere is not known.
    pub(crate) fn add<const N: usize>(
        &self,
        stream: &Stream,
        name: &'static str,
        of_shard: impl Fn(&D, &Stream) -> Result<[Option<usize>; N], Error>,
    ) -> Result<[Option<usize>; N], Error> {
        let _turn = self.begin()?;
        let numbers = |(own, shard): (usize, &D)| of_shard(shard, self.world().home(own, stream));
        let part: Result<Vec<_>, Error> = self.shards.iter().enumerate().map(numbers).collect();
        let part = part.map(|numbers| {
            let sum = |i: usize| numbers.iter().map(|numbers| numbers[i]).sum::<Option<usize>>();
            (0..N).map(|i| sum(i).map_or(u64::MAX, |sum| sum as u64)).collect()
        });
        let all = self.world().agree(&self.call(name), part)?;
        let known = |number: u64| (number != u64::MAX).then_some(number as usize);
        let sum = |i: usize| all.iter().map(|words| known(words[i])).sum();
        Ok(core::array::from_fn(sum))
    }

    /// Returns the pairs of this rank's shards: in key order, if shards have ranges of keys. Waits.
    ///
    /// # Errors
    /// Those of an export.
    pub fn export_own(&self, stream: &Stream) -> Result<Contents<D::Key, D::Value>, Error> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (own, shard) in self.shards.iter().enumerate() {
            let home = self.world().home(own, stream);
            let contents = shard.export(home)?;
            keys.push(fetch(contents.keys, home, stream)?);
            values.push(fetch(contents.values, home, stream)?);
        }
        Ok(Contents { keys: concatenated(stream, keys)?, values: concatenated(stream, values)? })
    }

    /// Gives every rank the pairs of all of them, in the order of the ranks.
    fn gather_pairs(
        &self,
        stream: &Stream,
        call: &Call,
        part: Result<Contents<D::Key, D::Value>, Error>,
    ) -> Result<Contents<D::Key, D::Value>, Error> {
        let world = self.world();
        if world.is_alone() {
            return part;
        }
        let words = part.as_ref().map(|own| vec![own.keys.len() as u64]);
        let lens = match words {
            Ok(words) => world.agree(call, Ok(words))?,
            Err(_) => return world.vote(call, part),
        };
        let own = part?;
        let lens: Vec<usize> = lens.iter().map(|words| words[0] as usize).collect();
        let total = lens.iter().sum();
        let room = || Ok((stream.uninit(total)?, stream.uninit(values_for::<D::Value>(total))?));
        let (mut keys, mut values) = world.vote(call, room())?;
        gather_column(world, stream, own.keys.as_slice(), &mut keys, &lens)?;
        if size_of::<D::Value>() > 0 {
            gather_column(world, stream, own.values.as_slice(), &mut values, &lens)?;
        }
        Ok(Contents { keys, values })
    }
}

/// Gives every rank the elements of all of them.
pub(crate) fn gather_column<T: Pod>(
    world: &World,
    stream: &Stream,
    own: DeviceSlice<'_, T>,
    all: &mut DeviceVec<T>,
    lens: &[usize],
) -> Result<(), Error> {
    let others = |rank: &usize| *rank != world.rank();
    let send: Vec<_> = (0..lens.len()).filter(others).map(|to| Outgoing { to, bytes: own.bytes() }).collect();
    let send = if own.is_empty() { Vec::new() } else { send };
    let mut receive = Vec::new();
    let mut rest = all.as_mut_slice();
    for (from, &len) in lens.iter().enumerate() {
        let (mut part, after) = rest.split_at_mut(len)?;
        rest = after;
        match others(&from) {
            false => part.copy_from(stream, own)?,
            true if len > 0 => receive.push(Incoming { from, bytes: part.bytes() }),
            true => {}
        }
    }
    // SAFETY: all ranks know the lengths of all, so each lists what the others do.
    unsafe { world.exchange(stream, &send, &mut receive) }
}

/// Returns numbers as ranks tell them to each other.
pub(crate) fn words(counts: &[usize]) -> Vec<u64> {
    counts.iter().map(|&count| count as u64).collect()
}

/// Returns the partition of a dictionary that has never had a key.
pub(crate) fn unset<D: Shard>() -> Partition<Code<D>> {
    if D::IN_RANGES { Partition::Ranges { splitters: Vec::new() } } else { Partition::Hash { seed: 0 } }
}

/// Every rank makes the same calls, with its own keys; their results are about these. The keys of an update count in the order of
/// the ranks: if two ranks insert the same key, the value of the higher rank wins.
///
/// With several shards, queries wait, and cannot be recorded in a graph.
impl<D: Shard> Dictionary for Sharded<D> {
    type Key = D::Key;
    type Value = D::Value;
    type Options = Options<D::Options>;

    const NAME: &'static str = D::NAME;

    fn new(stream: &Stream, options: Self::Options) -> Result<Self, Error> {
        let world = options.world.clone();
        let _turn = world.turn()?;
        let number = world.count_dictionary();
        let call = Call { options: options.fingerprint::<D>(), ..Call::of::<D>("new", number) };
        let of_shard = |own: usize| D::new(world.home(own, stream), options.of_shard());
        let shards = || world.expect_shards().and_then(|()| (0..world.own_shards()).map(of_shard).collect());
        let shards = world.vote(&call, shards())?;
        let (partition, balance, history) = (unset::<D>(), Balance::default(), History::default());
        Ok(Self { options, shards, partition, number, lost: None, balance, history })
    }

    fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        options: Self::Options,
    ) -> Result<Self, Error> {
        let world = options.world.clone();
        let _turn = world.turn()?;
        let number = world.count_dictionary();
        let call = Call { options: options.fingerprint::<D>(), ..Call::of::<D>("bulk_build", number) };
        let (keys, values) = (pairs.0.into(), pairs.1.into());
        let (partition, shards) = distribute::<D>(&world, stream, &call, (keys, values), &options, unset::<D>())?;
        let (balance, history) = (Balance::default(), History::default());
        let mut all = Self { options, shards, partition, number, lost: None, balance, history };
        all.balance_new(stream, &world)?;
        Ok(all)
    }

    fn options(&self) -> Self::Options {
        let shard = self.shards.first().map_or_else(|| self.options.shard.clone(), Dictionary::options);
        Options { shard, expected_keys: None, expected_operations: None, ..self.options.clone() }
    }

    fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let _turn = self.begin()?;
        let number = self.world().count_dictionary();
        let of_shard = |(own, shard): (usize, &D)| shard.try_clone(self.world().home(own, stream));
        let copies = self.shards.iter().enumerate().map(of_shard).collect();
        let shards = self.world().vote(&self.call("try_clone"), copies)?;
        let (options, partition, balance) = (self.options.clone(), self.partition.clone(), self.balance.of_copy());
        Ok(Self { options, shards, partition, number, lost: None, balance, history: History::default() })
    }

    fn lookup<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Lookup<Self::Value>, Error> {
        let keys = keys.into();
        if let Some(only) = self.only() {
            return only.lookup(stream, keys);
        }
        let call = self.call("lookup");
        let _turn = self.begin()?;
        let (plan, split, room) = self.route(stream, &call, keys)?;
        let sent = plan.send(stream, split.keys.as_slice(), room)?;
        let part = || {
            let results = self.on_shards(stream, &plan, &sent, |shard, home, keys| {
                let Lookup { values, found } = shard.lookup(home, keys)?;
                Ok((fetch(values, home, stream)?, fetch(found, home, stream)?))
            })?;
            Ok((results, plan.room_back(stream)?, plan.room_back(stream)?))
        };
        let (results, values_room, found_room) = self.world().vote(&call, part())?;
        let (values, found): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let values = plan.bring_back(stream, values, values_room)?;
        let found = plan.bring_back(stream, found, found_room)?;
        Ok(Lookup { values: place(stream, &split.along, values)?, found: place(stream, &split.along, found)? })
    }

    fn contains<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u8>, Error> {
        match self.only() {
            Some(only) => only.contains(stream, keys),
            None => self.ask(stream, "contains", keys.into(), |shard, home, keys| shard.contains(home, keys)),
        }
    }

    fn len(&self, stream: &Stream) -> Result<usize, Error> {
        let [len] = self.add(stream, "len", |shard, home| Ok([Some(shard.len(home)?)]))?;
        Ok(len.unwrap_or_default())
    }

    fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        let is_empty = |shard: &D, home: &Stream| Ok([Some(usize::from(!shard.is_empty(home)?))]);
        let [with_keys] = self.add(stream, "is_empty", is_empty)?;
        Ok(with_keys == Some(0))
    }

    /// Every rank gets all pairs. [`export_own`](Self::export_own) returns those of its own shards.
    fn export(&self, stream: &Stream) -> Result<Contents<Self::Key, Self::Value>, Error> {
        if let Some(only) = self.only() {
            return only.export(stream);
        }
        let _turn = self.begin()?;
        let all = self.gather_pairs(stream, &self.call("export"), self.export_own(stream))?;
        if D::IN_RANGES {
            return Ok(all);
        }
        let (mut keys, mut values) = (stream.uninit(all.keys.len())?, stream.uninit(all.values.len())?);
        match size_of::<D::Value>() {
            0 => sort::keys(stream, &all.keys, &mut keys, sort::Options::new())?,
            _ => sort::pairs(stream, (&all.keys, &all.values), (&mut keys, &mut values), sort::Options::new())?,
        }
        Ok(Contents { keys, values })
    }

    /// Writes the shards of this rank: of all, if there is only one rank. [`save_set`](Self::save_set) writes a set of files
    /// that any number of ranks can load.
    fn save(&self, stream: &Stream, writer: impl Write) -> Result<(), Error> {
        self.expect_whole()?;
        self.write(stream, writer)
    }

    /// Makes a dictionary of one rank, with as many shards as the one that was saved, all on the device of the stream.
    fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        Self::read(stream, reader)
    }

    fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        let of_shard = |shard: &D, home: &Stream| {
            let Stats { resident, live, bytes } = shard.stats(home)?;
            Ok([Some(resident), live, Some(bytes)])
        };
        let [resident, live, bytes] = self.add(stream, "stats", of_shard)?;
        Ok(Stats { resident: resident.unwrap_or_default(), live, bytes: bytes.unwrap_or_default() })
    }
}
