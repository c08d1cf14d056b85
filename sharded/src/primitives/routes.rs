//! Elements that move from shards to shards.

use super::call::Turn;
use crate::transport::{Incoming, Outgoing};
use crate::world::World;
use bytemuck::Pod;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error};

/// How many elements each shard has for each other, known to all ranks.
///
/// A shard has its elements in the order of the shards that they go to. It gets elements in the order of the shards that they come
/// from.
pub(crate) struct Routes {
    /// By the shard that has them, then by the shard that they go to.
    counts: Vec<Vec<usize>>,
}

/// A column of elements that moves.
pub(crate) struct Column<'a> {
    /// Bytes per element.
    size: usize,
    from: Vec<DeviceSlice<'a, u8>>,
    to: Vec<DeviceSliceMut<'a, u8>>,
}

impl<'a> Column<'a> {
    /// A column that moves from some vectors to others, of which this rank has one for each of its shards.
    pub fn new<T: Pod>(from: &'a [DeviceVec<T>], to: &'a mut [DeviceVec<T>]) -> Self {
        Self {
            size: size_of::<T>(),
            from: from.iter().map(|part| part.as_slice().bytes()).collect(),
            to: to.iter_mut().map(|part| part.as_mut_slice().bytes()).collect(),
        }
    }
}

impl Routes {
    pub fn new(counts: Vec<Vec<usize>>) -> Self {
        Self { counts }
    }

    /// Returns how many elements a shard gets from each shard.
    pub fn runs_of(&self, to: usize) -> Vec<usize> {
        self.counts.iter().map(|counts| counts[to]).collect()
    }

    /// Makes room for what the shards of this rank get. Elements without a size are not stored.
    pub fn rooms<T: Pod>(&self, turn: &Turn<'_>) -> Result<Vec<DeviceVec<T>>, Error> {
        let first = turn.world.first_shard();
        turn.on_shards(|(own, home)| {
            home.uninit(gpu_dictionary::values_for::<T>(self.runs_of(first + own).iter().sum()))
        })
    }

    /// Moves columns, all in one step: see [`exchange_all`](Self::exchange_all).
    pub fn exchange(&self, turn: &Turn<'_>, columns: Vec<Column<'_>>) -> Result<Result<(), Error>, Error> {
        Self::exchange_all(turn, [(self, columns)].into_iter())
    }

    /// Moves columns by several routes, all in one step.
    ///
    /// The outer result is an error if a rank is lost. The inner one is an error of this rank's device, which the other ranks do
    /// not know yet.
    pub fn exchange_all<'r, 'a>(
        turn: &Turn<'_>,
        routes: impl Iterator<Item = (&'r Self, Vec<Column<'a>>)>,
    ) -> Result<Result<(), Error>, Error> {
        let mut messages = Messages { send: Vec::new(), receive: Vec::new(), staying: Vec::new(), is_needed: false };
        for (routes, columns) in routes {
            columns.into_iter().try_for_each(|column| messages.add(turn, routes, column))?;
        }
        let copied = messages.staying.into_iter().try_for_each(|elements| elements.copy(turn));
        if messages.is_needed {
            // SAFETY: all ranks have the same counts: they follow from what all have told all others, by the same code. So each
            // lists what the others do.
            unsafe { turn.world.exchange(turn.stream, &messages.send, &mut messages.receive)? };
        }
        Ok(copied)
    }

    /// Returns whether something goes from one rank to another. All ranks know that.
    fn cross_ranks(&self, world: &World) -> bool {
        let crosses = |(from, counts): (usize, &Vec<usize>)| {
            (0..counts.len()).any(|to| counts[to] > 0 && world.rank_of(from) != world.rank_of(to))
        };
        self.counts.iter().enumerate().any(crosses)
    }
}

/// What this rank does in an exchange.
struct Messages<'a> {
    send: Vec<Outgoing<'a>>,
    receive: Vec<Incoming<'a>>,
    staying: Vec<Staying<'a>>,
    is_needed: bool,
}

/// Elements that go from one shard of this rank to another, or stay where they are.
struct Staying<'a> {
    from: usize,
    to: usize,
    elements: DeviceSlice<'a, u8>,
    room: DeviceSliceMut<'a, u8>,
}

impl Staying<'_> {
    /// Copies them, on the device if both shards are on the same.
    fn copy(mut self, turn: &Turn<'_>) -> Result<(), Error> {
        let (from, to) = (turn.lane(self.from), turn.lane(self.to));
        match from.device() == to.device() {
            _ if self.elements.is_empty() => Ok(()),
            true => self.room.copy_from(&to, self.elements),
            false => self.room.copy_from_host(&to, &self.elements.to_vec(&from)?),
        }
    }
}

impl<'a> Messages<'a> {
    /// Adds those of a column. Messages without bytes are left out: both sides know the lengths.
    fn add(&mut self, turn: &Turn<'_>, routes: &Routes, column: Column<'a>) -> Result<(), Error> {
        let world = turn.world;
        let (shards, first, size) = (world.shards(), world.first_shard(), column.size);
        let is_own = |shard: usize| world.rank_of(shard) == world.rank();
        self.is_needed |= size > 0 && routes.cross_ranks(world);
        let mut here = Vec::new();
        for (own, mut rest) in column.from.into_iter().enumerate() {
            for to in 0..shards {
                let (elements, after) = rest.split_at(size * routes.counts[first + own][to])?;
                rest = after;
                match is_own(to) {
                    true => here.push(elements),
                    false if elements.is_empty() => {}
                    false => self.send.push(Outgoing { to: world.rank_of(to), bytes: elements }),
                }
            }
        }
        let mut incoming = Vec::new();
        for (to, mut rest) in column.to.into_iter().enumerate() {
            for from in 0..shards {
                let (room, after) = rest.split_at_mut(size * routes.counts[from][first + to])?;
                rest = after;
                match is_own(from) {
                    true => {
                        let from = from - first;
                        let elements = here[from * turn.own_shards() + to];
                        self.staying.push(Staying { from, to, elements, room });
                    }
                    false if room.is_empty() => {}
                    false => incoming.push((from, Incoming { from: world.rank_of(from), bytes: room })),
                }
            }
        }
        // In the order in which a rank sends: by the shard that has them, then by the shard that they go to.
        incoming.sort_by_key(|&(from, _)| from);
        self.receive.extend(incoming.into_iter().map(|(_, message)| message));
        Ok(())
    }
}
