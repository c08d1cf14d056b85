//! Updates: on all shards, or on none.

use crate::build::choose;
use crate::partition::Partition;
use crate::plan::{Plan, reach};
use crate::shard::Shard;
use crate::sharded::{Sharded, fingerprint, unset, words};
use crate::world::{Call, World};
use bytemuck::Pod;
use gpu_dictionary::cast::Input;
use gpu_dictionary::{Dictionary, Lookup, Updatable, Upsertable, Upsertion, values_for};
use gpu_primitives::{DeviceSlice, Error, Stream, expect_len};

/// What an update gives to a shard.
struct Given<'a, K: Pod, V: Pod> {
    keys: Input<'a, K>,
    values: Input<'a, V>,
    deleted: Input<'a, K>,
}

/// What the keys of an update had before it: nothing, if the shard was empty.
struct Before<V: Pod> {
    keys: Option<Lookup<V>>,
    deleted: Option<Lookup<V>>,
}

/// Shards that an update has changed.
enum Changed<D: Dictionary> {
    /// Copies, which will replace the shards.
    Copies(Vec<D>),
    /// The first shards themselves. What their keys had before.
    InPlace(Vec<Before<D::Value>>),
}

impl<V: Pod> Before<V> {
    /// Remembers what a shard has.
    fn of<D: Dictionary<Value = V>>(shard: &D, home: &Stream, given: &Given<'_, D::Key, V>) -> Result<Self, Error> {
        let is_empty = shard.stats(home)?.resident == 0;
        let look_up = |keys: &Input<'_, D::Key>| match is_empty || keys.slice().is_empty() {
            true => Ok(None),
            false => shard.lookup(home, keys.slice()).map(Some),
        };
        Ok(Self { keys: look_up(&given.keys)?, deleted: look_up(&given.deleted)? })
    }

    /// Gives a shard what it had.
    fn restore<D: Updatable<Value = V>>(
        &self,
        shard: &mut D,
        home: &Stream,
        given: &Given<'_, D::Key, V>,
    ) -> Result<(), Error> {
        let (mut present, mut values, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for (keys, had) in [(&given.keys, &self.keys), (&given.deleted, &self.deleted)] {
            let keys = keys.slice().to_vec(home)?;
            let had = had.as_ref().map_or_else(|| Ok(vec![None; keys.len()]), |had| had.to_vec(home))?;
            for (key, had) in keys.into_iter().zip(had) {
                match had {
                    Some(value) => {
                        present.push(key);
                        values.push(value);
                    }
                    None => absent.push(key),
                }
            }
        }
        values.truncate(values_for::<V>(present.len()));
        shard.update(home, (&home.upload(&present)?, &home.upload(&values)?), &home.upload(&absent)?)
    }
}

/// Pairs to insert or combine, and keys to delete.
struct Change<'a, K, V> {
    keys: DeviceSlice<'a, K>,
    values: DeviceSlice<'a, V>,
    deleted: DeviceSlice<'a, K>,
}

impl<D: Shard + Updatable> Sharded<D> {
    /// Applies a change to all shards, or to none: `apply` does it to one shard.
    ///
    /// 1. Each rank splits its keys by shard, and tells the others how many it has for each.
    /// 2. Each makes room for what its shards will get. If one cannot, all stop here.
    /// 3. The ranks exchange their keys and values.
    /// 4. Each changes its shards, so that it can take that back, and tells the others how it went.
    /// 5. If it went well everywhere, the changes stand. Otherwise each takes them back.
    fn change(
        &mut self,
        stream: &Stream,
        call: &Call,
        change: Change<'_, D::Key, D::Value>,
        apply: impl Fn(&mut D, &Stream, &Given<'_, D::Key, D::Value>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Change { keys, values, deleted } = change;
        let world = self.options.world.clone();
        self.expect_whole()?;
        if world.shards() == 1 {
            let given = Given { keys: Input::Same(keys), values: Input::Same(values), deleted: Input::Same(deleted) };
            return self.shards.iter_mut().try_for_each(|shard| apply(shard, stream, &given));
        }
        let _turn = world.turn()?;
        let check = || {
            stream.refuse_recording("an update of a dictionary")?;
            expect_len("the values of a dictionary", values_for::<D::Value>(keys.len()), values.len())
        };
        // The first keys decide the splitters.
        let (check, partition) = match self.partition == unset::<D>() && D::IN_RANGES {
            true => (Ok(()), choose(&world, stream, call, keys, check(), &self.partition)?),
            false => (check(), self.partition.clone()),
        };
        let split = |check: Result<(), Error>| {
            check?;
            let nothing = stream.uninit::<()>(0)?;
            let inserted = partition.split(stream, world.shards(), keys, values)?;
            Ok((inserted, partition.split(stream, world.shards(), deleted, nothing.as_slice())?))
        };
        let (inserted, removed, counts) = match split(check) {
            Ok((inserted, removed)) => {
                let counts = words(&[&inserted.counts[..], &removed.counts[..]].concat());
                (inserted, removed, world.agree(call, Ok(counts))?)
            }
            Err(error) => return world.vote(call, Err(error)),
        };
        let insertions = Plan::new(&world, &counts);
        let counts: Vec<Vec<u64>> = counts.iter().map(|words| words[world.shards()..].to_vec()).collect();
        let deletions = Plan::new(&world, &counts);
        let operations = insertions.total() + deletions.total();
        if operations == 0 {
            return Ok(());
        }

        let rooms = || Ok((insertions.room(stream)?, insertions.room(stream)?, deletions.room(stream)?));
        let (keys_room, values_room, deleted_room) = world.vote(call, rooms())?;
        let keys = insertions.send(stream, inserted.keys.as_slice(), keys_room)?;
        let values = insertions.send(stream, inserted.along.as_slice(), values_room)?;
        let deleted = deletions.send(stream, removed.keys.as_slice(), deleted_room)?;

        let give = |own: usize| {
            let home = &world.lane(own, stream);
            Ok(Given {
                keys: reach(insertions.part(keys.slice(), own)?, stream, home)?,
                values: reach(insertions.part(values.slice(), own)?, stream, home)?,
                deleted: reach(deletions.part(deleted.slice(), own)?, stream, home)?,
            })
        };
        let given: Result<Vec<_>, Error> = (0..world.own_shards()).map(give).collect();
        let (changed, given, part) = match given {
            Ok(given) => {
                let (changed, part) = self.try_change(stream, &world, &given, apply);
                (changed, given, part)
            }
            Err(error) => (Changed::InPlace(Vec::new()), Vec::new(), Err(error)),
        };
        match world.agree(call, part) {
            Ok(resident) => {
                if let Changed::Copies(copies) = changed {
                    self.shards = copies;
                }
                self.partition = partition;
                let resident: Vec<u64> =
                    resident.iter().flat_map(|words| words[..world.own_shards()].to_vec()).collect();
                self.balance_if_uneven(stream, &world, &resident, operations);
                Ok(())
            }
            Err(error) => Err(self.take_back(stream, &world, call, changed, &given, error)),
        }
    }

    /// Changes copies of this rank's shards, or the shards. Returns what was changed, and the number of elements of each shard
    /// afterwards, or the first error.
    fn try_change(
        &mut self,
        stream: &Stream,
        world: &World,
        given: &[Given<'_, D::Key, D::Value>],
        apply: impl Fn(&mut D, &Stream, &Given<'_, D::Key, D::Value>) -> Result<(), Error>,
    ) -> (Changed<D>, Result<Vec<u64>, Error>) {
        let resident = |shard: &D, home: &Stream| Ok(shard.stats(home)?.resident as u64);
        if D::COPIES_SHARE {
            let copy = |(own, shard): (usize, &D)| {
                let home = &world.lane(own, stream);
                let mut copy = shard.try_clone(home)?;
                apply(&mut copy, home, &given[own])?;
                let resident = resident(&copy, home)?;
                Ok((copy, resident))
            };
            let copies: Result<(Vec<D>, Vec<u64>), Error> = self.shards.iter().enumerate().map(copy).collect();
            return match copies {
                Ok((copies, resident)) => (Changed::Copies(copies), world.join(stream).map(|()| resident)),
                Err(error) => (Changed::Copies(Vec::new()), Err(error)),
            };
        }
        let mut before = Vec::new();
        let mut change = |(own, shard): (usize, &mut D)| {
            let home = &world.lane(own, stream);
            let had = Before::of(shard, home, &given[own])?;
            apply(shard, home, &given[own])?;
            before.push(had);
            resident(shard, home)
        };
        let part: Result<Vec<u64>, Error> = self.shards.iter_mut().enumerate().map(&mut change).collect();
        (Changed::InPlace(before), part.and_then(|resident| world.join(stream).map(|()| resident)))
    }

    /// Takes a change back that failed somewhere. Returns the error of the call.
    fn take_back(
        &mut self,
        stream: &Stream,
        world: &World,
        call: &Call,
        changed: Changed<D>,
        given: &[Given<'_, D::Key, D::Value>],
        error: Error,
    ) -> Error {
        if D::COPIES_SHARE {
            return error;
        }
        let Changed::InPlace(before) = changed else { return error };
        let mut restored = Ok(());
        for (own, before) in before.iter().enumerate() {
            let outcome = before.restore(&mut self.shards[own], world.home(own, stream), &given[own]);
            restored = restored.and(outcome);
        }
        // If a rank is gone, nobody can be told.
        let outcome = match &error {
            Error::DictionaryLost { .. } => restored,
            _ => world.vote(call, restored),
        };
        match outcome {
            Ok(()) => error,
            Err(failure) => {
                let cause = format!("`{}` failed ({error}), and could not be taken back: {failure}", call.name);
                self.lost = Some(cause.clone());
                Error::DictionaryLost { cause }
            }
        }
    }
}

/// All shards are changed, or none. If a rank fails, for lack of memory for example, the call returns an error on all ranks, and
/// all of them have what they had.
impl<D: Shard + Updatable> Updatable for Sharded<D> {
    fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
    ) -> Result<(), Error> {
        let none = stream.uninit(0)?;
        let change = Change { keys: pairs.0.into(), values: pairs.1.into(), deleted: none.as_slice() };
        self.change(stream, &self.call("insert"), change, |shard, home, given| {
            shard.insert(home, (given.keys.slice(), given.values.slice()))
        })
    }

    fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, Self::Key>>) -> Result<(), Error> {
        let (no_keys, no_values) = (stream.uninit(0)?, stream.uninit(0)?);
        let change = Change { keys: no_keys.as_slice(), values: no_values.as_slice(), deleted: keys.into() };
        self.change(stream, &self.call("delete"), change, |shard, home, given| {
            shard.delete(home, given.deleted.slice())
        })
    }

    fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        delete: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<(), Error> {
        let change = Change { keys: insert.0.into(), values: insert.1.into(), deleted: delete.into() };
        self.change(stream, &self.call("update"), change, |shard, home, given| {
            shard.update(home, (given.keys.slice(), given.values.slice()), given.deleted.slice())
        })
    }

    fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let world = self.options.world.clone();
        self.expect_whole()?;
        if let [only] = &mut self.shards[..]
            && world.shards() == 1
        {
            return only.clear(stream);
        }
        let _turn = world.turn()?;
        let call = self.call("clear");
        // New shards: those that there are stay as they are if one fails.
        let options = self.options().of_shard();
        let empty = (0..world.own_shards()).map(|own| D::new(world.home(own, stream), options.clone()));
        self.shards = world.vote(&call, empty.collect())?;
        if let Partition::Ranges { splitters } = &mut self.partition {
            splitters.clear();
        }
        Ok(())
    }
}

impl<D: Shard + Upsertable> Upsertable for Sharded<D> {
    fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        operation: impl Upsertion<Self::Value>,
    ) -> Result<(), Error> {
        let none = stream.uninit(0)?;
        let change = Change { keys: pairs.0.into(), values: pairs.1.into(), deleted: none.as_slice() };
        // The ranks must agree on the operation, too.
        let which = (core::any::type_name_of_val(&operation), bytemuck::bytes_of(&operation).to_vec());
        let call = self.call("upsert");
        let call = Call { fingerprint: fingerprint((call.fingerprint, which)), ..call };
        self.change(stream, &call, change, |shard, home, given| {
            shard.upsert(home, (given.keys.slice(), given.values.slice()), operation)
        })
    }
}
