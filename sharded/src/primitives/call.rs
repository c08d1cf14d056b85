//! What all calls have in common: their steps, and where their work is done.

use super::spread::{Parts, Spread};
use crate::sharded::fingerprint;
use crate::world::{Call, World};
use bytemuck::Pod;
use gpu_dictionary::cast::Input;
use gpu_primitives::{DeviceVec, Error, Stream};
use std::hash::Hash;
use std::sync::MutexGuard;

/// In place of the number of a dictionary.
const NO_DICTIONARY: u64 = u64::MAX;

/// A call that is going on. All ranks take the same steps; a part that fails on one rank ends the call on all.
pub(crate) struct Turn<'w> {
    pub world: &'w World,
    pub stream: &'w Stream,
    call: Call,
    _turn: Option<MutexGuard<'w, ()>>,
}

impl<'w> Turn<'w> {
    /// Begins a call. `operation` must be the same on all ranks: its types, for example.
    pub fn begin(
        stream: &'w Stream,
        world: &'w World,
        name: &'static str,
        operation: impl Hash,
    ) -> Result<Self, Error> {
        let turn = world.turn()?;
        let call = Call { name, dictionary: NO_DICTIONARY, fingerprint: fingerprint(operation), options: 0 };
        Ok(Self { world, stream, call, _turn: turn })
    }

    /// Returns the number of shards of this rank.
    pub fn own_shards(&self) -> usize {
        self.world.own_shards()
    }

    /// Returns the stream for work on shard `own` of this rank.
    pub fn lane(&self, own: usize) -> Stream {
        self.world.lane(own, self.stream)
    }

    /// Opens an argument: one piece of memory for each shard of this rank, on the device of the shard.
    pub fn inputs<'a, T: Pod>(&self, parts: Parts<'a, T>) -> Result<Vec<Input<'a, T>>, Error> {
        self.stream.refuse_recording("a primitive on many GPUs")?;
        self.world.expect_shards()?;
        parts.open(self.stream, self.world)
    }

    /// A step in which every rank tells all others some bytes.
    pub fn share(&self, part: Result<Vec<u8>, Error>) -> Result<Vec<Vec<u8>>, Error> {
        self.world.share(&self.call, part)
    }

    /// A step in which every rank tells all others something about each of its shards. Returns it for all shards.
    pub fn share_each<T: Pod>(&self, part: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
        let all = self.share(part.map(|own| bytemuck::cast_slice(&own).to_vec()))?;
        self.world.expect_lengths(&all, self.own_shards() * size_of::<T>())?;
        let of_rank =
            |bytes: &Vec<u8>| bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect::<Vec<T>>();
        Ok(all.iter().flat_map(of_rank).collect())
    }

    /// A step that has a result: it is returned if the parts of all ranks went well.
    pub fn vote<T>(&self, part: Result<T, Error>) -> Result<T, Error> {
        self.world.vote(&self.call, part)
    }

    /// The last step of a call. Later work of the stream waits for that of all shards.
    pub fn finish<T>(&self, part: Result<T, Error>) -> Result<T, Error> {
        self.vote(part.and_then(|result| self.world.join(self.stream).map(|()| result)))
    }

    /// Calls a function for each shard of this rank, with the stream of the shard.
    pub fn on_shards<R>(&self, work: impl FnMut((usize, Stream)) -> Result<R, Error>) -> Result<Vec<R>, Error> {
        (0..self.own_shards()).map(|own| (own, self.lane(own))).map(work).collect()
    }

    /// Makes the result of a call.
    pub fn spread<T: Pod>(&self, parts: Vec<DeviceVec<T>>) -> Spread<T> {
        Spread::of(self.world, parts)
    }
}

/// Returns the lengths of pieces of memory.
pub(crate) fn lens<T: Pod>(inputs: &[Input<'_, T>]) -> Vec<u64> {
    inputs.iter().map(|input| input.slice().len() as u64).collect()
}

/// Reads numbers that another rank has sent.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<usize> {
    bytes.chunks_exact(size_of::<u64>()).map(|word| bytemuck::pod_read_unaligned::<u64>(word) as usize).collect()
}
