//! Who sends how much to whom.

use crate::transport::{Incoming, Outgoing};
use crate::world::World;
use bytemuck::Pod;
use core::ops::Range;
use gpu_dictionary::cast::Input;
use gpu_dictionary::values_for;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};

/// How many items each rank has for each shard, and so where they lie.
///
/// A rank has its items in the order of the shards. A rank's shards have theirs one shard after the other, and those of a shard
/// in the order of the ranks. If there is only one rank, both are the same memory.
#[derive(Debug)]
pub(crate) struct Plan<'w> {
    world: &'w World,
    /// By rank, then by shard.
    counts: Vec<Vec<usize>>,
}

fn sum<'a>(counts: impl IntoIterator<Item = &'a usize>) -> usize {
    counts.into_iter().sum()
}

impl<'w> Plan<'w> {
    /// `counts` has for each rank, and then for each shard, the number of items.
    pub fn new(world: &'w World, counts: &[Vec<u64>]) -> Self {
        let shards = world.shards();
        let counts = counts.iter().map(|words| words[..shards].iter().map(|&count| count as usize).collect());
        Self { world, counts: counts.collect() }
    }

    /// Returns the number of items of all ranks.
    pub fn total(&self) -> usize {
        self.counts.iter().map(sum).sum()
    }

    /// Returns the number of items of this rank.
    pub fn own(&self) -> usize {
        sum(&self.counts[self.world.rank()])
    }

    /// Returns where a rank that has its items in the order of the shards has those of one shard.
    fn at_rank(&self, shard: usize) -> Range<usize> {
        let counts = &self.counts[self.world.rank()];
        let start = sum(&counts[..shard]);
        start..start + counts[shard]
    }

    /// Returns how many items a shard is sent.
    pub fn of_shard(&self, shard: usize) -> usize {
        self.counts.iter().map(|counts| counts[shard]).sum()
    }

    /// Returns where the items that a rank has for a shard lie among those of the shard.
    pub fn within_shard(&self, shard: usize, rank: usize) -> Range<usize> {
        let start = self.counts[..rank].iter().map(|counts| counts[shard]).sum();
        start..start + self.counts[rank][shard]
    }

    /// Returns this rank's shards.
    fn own_shards(&self) -> Range<usize> {
        let first = self.world.first_shard();
        first..first + self.world.own_shards()
    }

    /// Returns where the items of one of this rank's shards begin among those of all of its shards.
    fn start_of(&self, shard: usize) -> usize {
        (self.world.first_shard()..shard).map(|shard| self.of_shard(shard)).sum()
    }

    /// Returns the part of what was [sent](Self::send) that is for shard `own` of this rank.
    pub fn part<'a, T: Pod>(&self, sent: DeviceSlice<'a, T>, own: usize) -> Result<DeviceSlice<'a, T>, Error> {
        let shard = self.world.first_shard() + own;
        let start = self.start_of(shard);
        if size_of::<T>() == 0 { sent.slice(..0) } else { sent.slice(start..start + self.of_shard(shard)) }
    }

    /// Makes room for what this rank's shards will be [sent](Self::send), if that comes from other ranks.
    pub fn room<T: Pod>(&self, stream: &Stream) -> Result<Option<DeviceVec<T>>, Error> {
        if self.world.is_alone() {
            return Ok(None);
        }
        let len = self.own_shards().map(|shard| self.of_shard(shard)).sum();
        stream.uninit(values_for::<T>(len)).map(Some)
    }

    /// Sends items to the shards.
    pub fn send<'a, T: Pod>(
        &self,
        stream: &Stream,
        items: DeviceSlice<'a, T>,
        room: Option<DeviceVec<T>>,
    ) -> Result<Input<'a, T>, Error> {
        let Some(mut room) = room else { return Ok(Input::Same(items)) };
        // All ranks know that there is nothing to send.
        if size_of::<T>() == 0 || self.total() == 0 {
            return Ok(Input::Copy(room));
        }
        let here = self.world.rank();
        let mut send = Vec::new();
        for shard in (0..self.world.shards()).filter(|&shard| self.world.rank_of(shard) != here) {
            send.push(Outgoing { to: self.world.rank_of(shard), bytes: items.slice(self.at_rank(shard))?.bytes() });
        }
        let mut receive = Vec::new();
        let mut rest = room.as_mut_slice();
        for shard in self.own_shards() {
            for (from, counts) in self.counts.iter().enumerate() {
                let (mut part, after) = rest.split_at_mut(counts[shard])?;
                rest = after;
                match from == here {
                    true => part.copy_from(stream, items.slice(self.at_rank(shard))?)?,
                    false => receive.push(Incoming { from, bytes: part.bytes() }),
                }
            }
        }
        drop_empty(&mut send, &mut receive);
        // SAFETY: all ranks know the counts of all, so each lists what the others do.
        unsafe { self.world.exchange(stream, &send, &mut receive)? };
        drop(receive);
        Ok(Input::Copy(room))
    }

    /// Makes room for what the shards will [return](Self::bring_back), if some of it comes from other ranks.
    pub fn room_back<T: Pod>(&self, stream: &Stream) -> Result<Option<DeviceVec<T>>, Error> {
        if self.world.is_alone() { Ok(None) } else { stream.uninit(values_for::<T>(self.own())).map(Some) }
    }

    /// Returns items from the shards to the ranks, in the order in which they [sent](Self::send) theirs. The parts of the result
    /// follow each other. `results` are those of this rank's shards.
    pub fn bring_back<T: Pod>(
        &self,
        stream: &Stream,
        results: Vec<DeviceVec<T>>,
        room: Option<DeviceVec<T>>,
    ) -> Result<Vec<DeviceVec<T>>, Error> {
        let Some(mut room) = room else { return Ok(results) };
        if size_of::<T>() == 0 || self.total() == 0 {
            return Ok(vec![room]);
        }
        let here = self.world.rank();
        let mut send = Vec::new();
        for (shard, results) in self.own_shards().zip(&results) {
            for to in (0..self.world.ranks()).filter(|&to| to != here) {
                send.push(Outgoing { to, bytes: results.slice(self.within_shard(shard, to))?.bytes() });
            }
        }
        let mut receive = Vec::new();
        let mut rest = room.as_mut_slice();
        for shard in 0..self.world.shards() {
            let (mut part, after) = rest.split_at_mut(self.counts[here][shard])?;
            rest = after;
            let from = self.world.rank_of(shard);
            match from == here {
                true => {
                    let own = &results[shard - self.world.first_shard()];
                    part.copy_from(stream, own.slice(self.within_shard(shard, here))?)?;
                }
                false => receive.push(Incoming { from, bytes: part.bytes() }),
            }
        }
        drop_empty(&mut send, &mut receive);
        // SAFETY: all ranks know the counts of all, so each lists what the others do.
        unsafe { self.world.exchange(stream, &send, &mut receive)? };
        drop(receive);
        Ok(vec![room])
    }
}

/// Messages without bytes are not sent. Both sides know the lengths.
fn drop_empty(send: &mut Vec<Outgoing<'_>>, receive: &mut Vec<Incoming<'_>>) {
    send.retain(|message| !message.bytes.is_empty());
    receive.retain(|message| !message.bytes.is_empty());
}

/// Returns memory that the device of `to` can use: the same memory, or a copy through the host.
pub(crate) fn reach<'a, T: Pod>(slice: DeviceSlice<'a, T>, from: &Stream, to: &Stream) -> Result<Input<'a, T>, Error> {
    match from.device() == to.device() {
        true => Ok(Input::Same(slice)),
        false => Ok(Input::Copy(to.upload(&slice.to_vec(from)?)?)),
    }
}

/// Moves a vector to the device of `to`, if it is not there.
pub(crate) fn fetch<T: Pod>(vector: DeviceVec<T>, from: &Stream, to: &Stream) -> Result<DeviceVec<T>, Error> {
    if from.device() == to.device() { Ok(vector) } else { to.upload(&vector.to_vec(from)?) }
}

/// Copies vectors of one device into one vector, one after the other.
pub(crate) fn concatenated<T: Pod>(stream: &Stream, mut parts: Vec<DeviceVec<T>>) -> Result<DeviceVec<T>, Error> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let mut all = stream.uninit(parts.iter().map(DeviceVec::len).sum())?;
    let mut rest = all.as_mut_slice();
    for part in &parts {
        let (mut place, after) = rest.split_at_mut(part.len())?;
        place.copy_from(stream, part)?;
        rest = after;
    }
    Ok(all)
}
