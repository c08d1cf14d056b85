//! Checkpoints: one manifest over the shards of all ranks.
//!
//! # Format
//! [`gpu_dictionary::checkpoint`] describes the folder. The parts are the shards, each as it is saved. The name of the manifest is
//! `gpu-shm`. Its body is:
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | shards |
//! | 4, 4, 32 each | how keys are divided: the seed of hashes, the number of splitters, the splitters |
//! | 4, 16 each | the number of parts, which is 0 or that of the shards; their ids, shard by shard |
//!
//! # Two phases
//! 1. The first rank locks the folder, checks that the checkpoint there may be replaced, and names the new parts. Every rank
//!    writes the parts of its shards, and makes them and their names durable.
//! 2. When all ranks have told each other that they succeeded, the first rank replaces the manifest.
//!
//! Whoever dies, and whenever: the manifest names parts that are complete. Those of an attempt that was not finished are removed
//! by the next one.

use crate::files::{Saved, expect_possible, read_partition, write_partition};
use crate::options::Options;
use crate::partition::{MAX_SHARDS, Partition};
use crate::shard::Shard;
use crate::sharded::{Code, Sharded, unset};
use crate::world::{Call, World};
use gpu_dictionary::checkpoint::{
    Body, Disk, Folder, History, Manifest, Parts, Writing, read_id, read_part, write_part,
};
use gpu_dictionary::file::{Format, Source, unique_id};
use gpu_dictionary::{Dictionary, Durable};
use gpu_primitives::{Error, Stream};
use std::collections::BTreeSet;
use std::io::{self, Read};

/// The state of a sharded dictionary.
struct State<D: Shard> {
    shards: u64,
    partition: Partition<Code<D>>,
    parts: Vec<u128>,
}

impl<D: Shard> Body for State<D> {
    type Key = D::Key;
    type Value = D::Value;
    type Fields = Self;

    const FORMAT: Format = Format { magic: *b"gpu-shm\n", version: 3 };
    const PARTS: Parts = Parts::Files;

    fn parts(&self) -> &[u128] {
        &self.parts
    }

    fn unfinished(&self) -> Self {
        Self { shards: self.shards, partition: unset::<D>(), parts: Vec::new() }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.shards.to_le_bytes());
        write_partition(bytes, &self.partition);
        bytes.extend((self.parts.len() as u32).to_le_bytes());
        bytes.extend(self.parts.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn read(source: &mut Source<impl Read>) -> Result<Self, Error> {
        let (shards, partition) = (source.u64()?, read_partition::<D, _>(source)?);
        let parts = (source.u32()? as usize).min(MAX_SHARDS);
        let parts = (0..parts).map(|_| read_id(source)).collect::<Result<_, Error>>()?;
        Ok(Self { shards, partition, parts })
    }

    fn checked(source: &Source<impl Read>, state: Self) -> Result<Self, Error> {
        expect_possible(source, state.shards)?;
        match state.parts.len() as u64 {
            0 => Ok(state),
            parts if parts == state.shards => Ok(state),
            _ => Err(source.invalid("its header contradicts itself")),
        }
    }
}

/// Returns a number in two words.
fn words(id: u128) -> Vec<u64> {
    vec![id as u64, (id >> 64) as u64]
}

/// A step of a call in which a rank makes something, and tells the others some numbers.
fn agreed<T>(
    world: &World,
    call: &Call,
    part: Result<T, Error>,
    words: impl FnOnce(&T) -> Vec<u64>,
) -> Result<(T, Vec<Vec<u64>>), Error> {
    match part {
        Ok(made) => {
            let all = world.agree(call, Ok(words(&made)))?;
            Ok((made, all))
        }
        Err(error) => world.vote(call, Err(error)),
    }
}

impl<D: Shard + Durable> Sharded<D> {
    /// Writes the parts of this rank's shards, and makes them durable.
    fn write_parts(&self, stream: &Stream, folder: Folder<'_, impl Disk>, ids: &[u128]) -> Result<(), Error> {
        let world = self.world();
        for (own, shard) in self.shards.iter().enumerate() {
            let id = ids[world.first_shard() + own];
            folder.publish(&Parts::Files.name(id), |writer| {
                write_part::<D::Key, D::Value>(writer, id, |writer| shard.save(world.home(own, stream), writer))
            })?;
        }
        folder.sync()
    }

    /// Returns an error unless the folder has the parts of all ranks.
    fn expect_parts(&self, folder: Folder<'_, impl Disk>, ids: &[u128]) -> Result<(), Error> {
        let names = folder.names()?;
        match ids.iter().position(|&id| !names.contains(&Parts::Files.name(id))) {
            None => Ok(()),
            Some(shard) => {
                let (rank, path) = (self.world().rank_of(shard), folder.path().display());
                let what = format!(
                    "{path}: rank {rank} has written to another folder than rank 0: pass the same one, of a file system that \
                     all ranks share"
                );
                Err(Error::Io(io::Error::other(what)))
            }
        }
    }

    /// Reads the last finished checkpoint, in a world of any size. Every rank calls it. Returns `None` on all ranks if none was
    /// ever finished.
    fn recover_in(
        stream: &Stream,
        disk: &impl Disk,
        options: Options<D::Options>,
        adopted: Option<&D::Options>,
    ) -> Result<Option<Self>, Error> {
        let (folder, world) = (Folder::new(disk), options.world.clone());
        let _turn = world.turn()?;
        let number = world.count_dictionary();
        let call = Call { options: options.fingerprint::<D>(), ..Call::of::<D>("recover", number) };
        // No rank reads before all have locked the folder. So all read the same.
        let locked = world.expect_shards().and_then(|()| folder.lock_shared());
        let mut lock = world.vote(&call, locked)?;
        let mut find = || {
            let mut found = Manifest::<State<D>>::of(folder)?;
            if lock.is_none() && found.is_some() {
                // There was nothing to lock. Perhaps the first writer came since then.
                lock = folder.lock_shared()?;
                found = Manifest::of(folder)?;
            }
            Ok(found)
        };
        let id = |found: &Option<Manifest<State<D>>>| words(found.as_ref().map_or(0, |manifest| manifest.id));
        let (found, ids) = agreed(&world, &call, find(), id)?;
        if ids.iter().any(|id| id[..2] != ids[0][..2]) {
            let what = "they found different checkpoints: pass the same folder, of a file system that all ranks share";
            return Err(Error::RanksDisagree { what: what.to_owned() });
        }
        let Some(Manifest { id, body: State { shards, partition, parts }, .. }) = found else { return Ok(None) };
        let load = |shard: usize, home: &Stream| {
            let part = parts.get(shard).copied().unwrap_or_default();
            let mut shard = read_part::<D::Key, D::Value, _>(folder, part, |reader| D::load(home, reader))?;
            adopted.inspect(|options| shard.adopt(options));
            Ok(shard)
        };
        let saved = Saved { shards: shards as usize, partition };
        let recovered = Self::of_saved(stream, (number, &call), saved, options, load)?;
        drop(lock);
        Ok(Some(Self { history: History::recovered_from(id), ..recovered }))
    }
}

/// Every rank must make the same calls, with the same folder, of a file system that all of them reach.
///
/// A checkpoint writes all shards, each as it is [saved](Dictionary::save): also those of an LSM. If a rank fails or dies, on all
/// ranks the folder holds the last finished checkpoint or this one.
///
/// [`recover`](Durable::recover) makes a dictionary of one rank, with as many shards as the one that was written, all on the device
/// of the stream. [`recover_or_new`](Durable::recover_or_new) makes one in the world of its options, of any size: if it has as many
/// shards, each is read as it is, otherwise all pairs are divided anew.
///
/// ```
/// use gpu_dictionary::{Dictionary, Durable, Updatable};
/// use gpu_lsm::GpuLsm;
/// use gpu_primitives::{Device, Error};
/// use gpu_sharded::{Options, Sharded, World};
///
/// # let folder = std::env::temp_dir().join(format!("sharded-example-{}", std::process::id()));
/// let stream = Device::default()?.stream()?;
/// for shards in [4, 3] {
///     // In a program of its own, this goes on where the last run ended.
///     let options = Options::new(World::local(shards));
///     let mut all = Sharded::<GpuLsm<u32, u32>>::recover_or_new(&stream, &folder, options)?;
///     let keys = stream.upload(&[1, shards as u32])?;
///     all.insert(&stream, (&keys, &keys))?;
///     all.checkpoint(&stream, &folder)?;
/// }
/// let all = Sharded::<GpuLsm<u32, u32>>::recover(&stream, &folder)?;
/// assert_eq!((all.len(&stream)?, all.shards().len()), (3, 3));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Error>(())
/// ```
impl<D: Shard + Durable> Durable for Sharded<D> {
    fn checkpoint_to(&self, stream: &Stream, disk: &impl Disk) -> Result<(), Error> {
        let (folder, world) = (Folder::new(disk), self.world());
        let call = self.call("checkpoint");
        let _turn = self.begin()?;
        let shards = world.shards();
        let (partition, parts) = (self.partition.clone(), Vec::new());
        let mut state = State::<D> { shards: shards as u64, partition, parts };
        // The first rank names the parts, and keeps the folder locked.
        let writing = match world.rank() {
            0 => Writing::begin(disk, &self.history, &state, true).map(Some),
            _ => Ok(None),
        };
        let (writing, first) = agreed(world, &call, writing, |_| words(unique_id()))?;
        let first = u128::from(first[0][1]) << 64 | u128::from(first[0][0]);
        state.parts = (0..shards as u128).map(|shard| first.wrapping_add(shard)).collect();

        let written = world.vote(&call, self.write_parts(stream, folder, &state.parts));
        if let Err(error) = written {
            // If a rank is lost, the first one may not have noticed yet, and is about to use the parts.
            if !matches!(error, Error::DictionaryLost { .. }) {
                let own = world.first_shard()..world.first_shard() + world.own_shards();
                let names: Vec<String> = state.parts[own].iter().map(|&id| Parts::Files.name(id)).collect();
                folder.collect(names.iter(), &BTreeSet::new());
            }
            return Err(error);
        }
        let switch = |writing: Writing<'_, _, State<D>>| {
            self.expect_parts(folder, &state.parts)?;
            writing.finish(state)
        };
        world.vote(&call, writing.map_or(Ok(()), switch))
    }

    fn recover_from(
        stream: &Stream,
        disk: &impl Disk,
        options: Option<&Options<D::Options>>,
    ) -> Result<Option<Self>, Error> {
        if let Some(options) = options {
            return Self::recover_in(stream, disk, options.clone(), Some(&options.shard));
        }
        let manifest = {
            let _lock = Folder::new(disk).lock_shared()?;
            Manifest::<State<D>>::of(Folder::new(disk))?
        };
        let Some(manifest) = manifest else { return Ok(None) };
        let world = World::local(manifest.body.shards as usize);
        let Some(recovered) = Self::recover_in(stream, disk, Options::new(world), None)? else { return Ok(None) };
        let shard = recovered.shards.first().map(Dictionary::options).unwrap_or_default();
        Ok(Some(Self { options: recovered.options.clone().shard(shard), ..recovered }))
    }

    fn adopt(&mut self, options: &Options<D::Options>) {
        self.shards.iter_mut().for_each(|shard| shard.adopt(&options.shard));
    }
}
