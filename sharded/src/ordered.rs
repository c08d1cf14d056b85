//! Ordered queries: counts, ranges, reductions, neighbours.

use crate::partition::{Partition, at, positions, split_by_number};
use crate::plan::{Plan, concatenated, fetch, reach};
use crate::shard::Shard;
use crate::sharded::{Sharded, place, words};
use crate::world::Call;
use bytemuck::{Pod, Zeroable};
use gpu_dictionary::{Key, Neighbour, Ordered, Ranges, values_for};
use gpu_primitives::compare::Less;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::operator::map;
use gpu_primitives::scan::Sum;
use gpu_primitives::sort::FromCode;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream, expect_len, permute, reduce, scan, search, source};
use gpu_primitives::{transfer, transform};

/// Intervals in pieces, one for each shard that an interval touches. A piece is the whole interval: a shard has no keys beyond
/// its own anyway.
struct Pieces<K: Pod> {
    /// Where the pieces of each interval begin; one more entry says where the last ones end.
    offsets: DeviceVec<u64>,
    /// The pieces in the order of the shards.
    order: DeviceVec<u32>,
    low: DeviceVec<K>,
    high: DeviceVec<K>,
    /// How many pieces each shard has.
    counts: Vec<usize>,
}

/// Returns offsets: the sums of the lengths before each, and of all.
fn offsets(stream: &Stream, lens: &DeviceVec<u64>) -> Result<DeviceVec<u64>, Error> {
    let mut offsets = stream.zeroed::<u64>(lens.len() + 1)?;
    scan::inclusive_sum(stream, lens, offsets.slice_mut(1..)?)?;
    Ok(offsets)
}

/// Returns the last of some offsets. Waits.
fn last(stream: &Stream, offsets: &DeviceVec<u64>) -> Result<usize, Error> {
    let last = offsets.slice(offsets.len() - 1..)?.to_vec(stream)?;
    Ok(last[0] as usize)
}

impl<K: Key> Pieces<K> {
    /// Cuts intervals into pieces. Waits.
    fn cut(
        stream: &Stream,
        partition: &Partition<K::Code>,
        shards: usize,
        low: DeviceSlice<'_, K>,
        high: DeviceSlice<'_, K>,
    ) -> Result<Self, Error> {
        stream.refuse_recording("a query of several shards")?;
        expect_len("the ends of the intervals", low.len(), high.len())?;
        let [first, end] = [low, high].map(|keys| partition.shards_of(stream, shards, keys));
        let (first, end) = (first?, end?);
        // An interval that ends before it begins is one piece, and empty.
        let pieces = map!(|first: u32, end: u32| -> u64 { (end.max(first) - first) as u64 + 1 });
        let mut lens = stream.uninit(low.len())?;
        transform::map2(stream, &first, &end, &mut lens, pieces)?;
        let offsets = offsets(stream, &lens)?;
        let total = last(stream, &offsets)?;
        // Fails if there are too many.
        let numbers = positions(stream, total)?;
        let mut wide = stream.uninit::<u64>(total)?;
        transform::sequence(stream, &mut wide, 0u64)?;
        let mut interval = stream.uninit::<u32>(total)?;
        search::upper_bound_sorted(stream, offsets.slice(1..)?, &wide, &mut interval, Less)?;
        drop(wide);
        let (first, start) = (at(stream, &first, &interval)?, at(stream, offsets.slice(..low.len())?, &interval)?);
        let mut shard = stream.uninit::<u32>(total)?;
        let of_piece = map!(|piece: u32, first: u32, start: u64| -> u32 { first + (piece - start as u32) });
        transform::map3(stream, &numbers, &first, &start, &mut shard, of_piece)?;
        let (order, counts) = split_by_number(stream, shards, &shard)?;
        let interval = at(stream, &interval, &order)?;
        let (low, high) = (at(stream, low, &interval)?, at(stream, high, &interval)?);
        Ok(Self { offsets, order, low, high, counts })
    }
}

/// A pair that a shard has at one of its ends, if it has one.
type End<D> = Option<(<D as gpu_dictionary::Dictionary>::Key, <D as gpu_dictionary::Dictionary>::Value)>;

/// The direction to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl<D: Shard + Ordered> Sharded<D> {
    /// Asks the shards about the intervals that touch them. Returns one result per piece, in the order of the pieces, and the
    /// offsets of the intervals' pieces. Waits.
    fn ask_pieces<R: Pod>(
        &self,
        stream: &Stream,
        name: &'static str,
        low: DeviceSlice<'_, D::Key>,
        high: DeviceSlice<'_, D::Key>,
        ask: impl Fn(&D, &Stream, DeviceSlice<'_, D::Key>, DeviceSlice<'_, D::Key>) -> Result<DeviceVec<R>, Error>,
    ) -> Result<(DeviceVec<R>, DeviceVec<u64>), Error> {
        let call = self.call(name);
        let _turn = self.begin()?;
        let (plan, pieces, results) = self.send_pieces(stream, &call, low, high, |shard, home, low, high| {
            fetch(ask(shard, home, low, high)?, home, stream)
        })?;
        let part = results.and_then(|results| Ok((results, plan.room_back(stream)?)));
        let (results, room) = self.world().vote(&call, part)?;
        let results = place(stream, &pieces.order, plan.bring_back(stream, results, room)?)?;
        Ok((results, pieces.offsets))
    }

    /// Sends pieces to the shards, and returns what the shards of this rank answer.
    #[allow(clippy::type_complexity, reason = "three things that belong together for a moment")]
    fn send_pieces<R>(
        &self,
        stream: &Stream,
        call: &Call,
        low: DeviceSlice<'_, D::Key>,
        high: DeviceSlice<'_, D::Key>,
        ask: impl Fn(&D, &Stream, DeviceSlice<'_, D::Key>, DeviceSlice<'_, D::Key>) -> Result<R, Error>,
    ) -> Result<(Plan<'_>, Pieces<D::Key>, Result<Vec<R>, Error>), Error> {
        let world = self.world();
        let (pieces, counts) = match Pieces::cut(stream, &self.partition, world.shards(), low, high) {
            Ok(pieces) => {
                let counts = world.agree(call, Ok(words(&pieces.counts)))?;
                (pieces, counts)
            }
            Err(error) => return world.vote(call, Err(error)),
        };
        let plan = Plan::new(world, &counts);
        let rooms = || Ok((plan.room(stream)?, plan.room(stream)?));
        let (low_room, high_room) = world.vote(call, rooms())?;
        let low = plan.send(stream, pieces.low.as_slice(), low_room)?;
        let high = plan.send(stream, pieces.high.as_slice(), high_room)?;
        let of_shard = |(own, shard): (usize, &D)| {
            let home = &world.lane(own, stream);
            let low = reach(plan.part(low.slice(), own)?, stream, home)?;
            let high = reach(plan.part(high.slice(), own)?, stream, home)?;
            ask(shard, home, low.slice(), high.slice())
        };
        let results = self.shards.iter().enumerate().map(of_shard).collect();
        drop((low, high));
        Ok((plan, pieces, results))
    }

    /// Returns the first pair of each shard but the first, or the last pair of each but the last. Waits.
    fn ends(&self, stream: &Stream, call: &Call, direction: Direction) -> Result<Vec<End<D>>, Error> {
        let Partition::Ranges { splitters } = &self.partition else { return Ok(Vec::new()) };
        let world = self.world();
        let of_shard = |(own, shard): (usize, &D)| -> Result<End<D>, Error> {
            let (home, number) = (world.home(own, stream), world.first_shard() + own);
            let border = match direction {
                // All of its keys are at least this one.
                Direction::Up => number.checked_sub(1),
                // All of its keys are less than this one.
                Direction::Down => Some(number),
            };
            let Some(&code) = border.and_then(|border| splitters.get(border)) else { return Ok(None) };
            let border = D::Key::from_code(code);
            let asked = home.upload(&[border])?;
            let first = match direction {
                Direction::Up => shard.lookup(home, &asked)?.to_vec(home)?[0].map(|value| (border, value)),
                Direction::Down => None,
            };
            match (first, direction) {
                (Some(first), _) => Ok(Some(first)),
                (None, Direction::Up) => Ok(shard.successor(home, &asked)?.to_vec(home)?[0]),
                (None, Direction::Down) => Ok(shard.predecessor(home, &asked)?.to_vec(home)?[0]),
            }
        };
        let own: Result<Vec<End<D>>, Error> = self.shards.iter().enumerate().map(of_shard).collect();
        let own = world.vote(call, own)?;
        let mut bytes = Vec::new();
        for end in &own {
            let (key, value) = end.unwrap_or_else(|| (D::Key::zeroed(), D::Value::zeroed()));
            bytes.push(u8::from(end.is_some()));
            bytes.extend(bytemuck::bytes_of(&key));
            bytes.extend(bytemuck::bytes_of(&value));
        }
        let all = world.gather_equal(&bytes)?;
        let read = |bytes: &[u8]| {
            let (key, value) = bytes[1..].split_at(size_of::<D::Key>());
            (bytes[0] != 0).then(|| (bytemuck::pod_read_unaligned(key), bytemuck::pod_read_unaligned(value)))
        };
        Ok(all.chunks_exact(1 + size_of::<D::Key>() + size_of::<D::Value>()).map(read).collect())
    }

    /// Finds the neighbours of keys. A key whose shard has none in this direction has the end of the next shard that has keys.
    fn neighbours(
        &self,
        stream: &Stream,
        name: &'static str,
        keys: DeviceSlice<'_, D::Key>,
        direction: Direction,
    ) -> Result<Neighbour<D::Key, D::Value>, Error> {
        let call = self.call(name);
        let _turn = self.begin()?;
        let world = self.world();
        let (plan, split, room) = self.route(stream, &call, keys)?;
        let sent = plan.send(stream, split.keys.as_slice(), room)?;
        let ends = self.ends(stream, &call, direction)?;
        let beyond = |shard: usize| match direction {
            Direction::Up => ends.iter().skip(shard + 1).find_map(|&end| end),
            Direction::Down => ends.iter().take(shard).rev().find_map(|&end| end),
        };
        let part = || {
            let mut results = (Vec::new(), Vec::new(), Vec::new());
            for (own, shard) in self.shards.iter().enumerate() {
                let home = &world.lane(own, stream);
                let keys = reach(plan.part(sent.slice(), own)?, stream, home)?;
                let mut found = match direction {
                    Direction::Up => shard.successor(home, keys.slice())?,
                    Direction::Down => shard.predecessor(home, keys.slice())?,
                };
                if let Some(beyond) = beyond(world.first_shard() + own) {
                    complete(home, &mut found, beyond)?;
                }
                results.0.push(fetch(found.keys, home, stream)?);
                results.1.push(fetch(found.values, home, stream)?);
                results.2.push(fetch(found.found, home, stream)?);
            }
            Ok((results, plan.room_back(stream)?, plan.room_back(stream)?, plan.room_back(stream)?))
        };
        let ((keys, values, found), keys_room, values_room, found_room) = world.vote(&call, part())?;
        let keys = plan.bring_back(stream, keys, keys_room)?;
        let values = plan.bring_back(stream, values, values_room)?;
        let found = plan.bring_back(stream, found, found_room)?;
        let order = &split.along;
        let (keys, values) = (place(stream, order, keys)?, place(stream, order, values)?);
        Ok(Neighbour { keys, values, found: place(stream, order, found)? })
    }
}

/// Gives keys without a neighbour this one.
fn complete<K: Pod, V: Pod>(stream: &Stream, found: &mut Neighbour<K, V>, beyond: (K, V)) -> Result<(), Error> {
    // A place whose index is out of range keeps what it has.
    let missing = map!(|found: u8| -> u32 { if found != 0 { u32::MAX } else { 0 } });
    let (key, value) = (stream.upload(&[beyond.0])?, stream.upload(&[beyond.1])?);
    permute::gather(stream, &key, source::map(&found.found, missing), &mut found.keys)?;
    if size_of::<V>() > 0 {
        permute::gather(stream, &value, source::map(&found.found, missing), &mut found.values)?;
    }
    transfer::fill(stream, &mut found.found, 1)
}

/// A query of an interval goes to the shards that it touches.
impl<D: Shard + Ordered> Ordered for Sharded<D> {
    fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u64>, Error> {
        if let Some(only) = self.only() {
            return only.count(stream, low, high);
        }
        let count =
            |shard: &D, home: &Stream, low: DeviceSlice<'_, _>, high: DeviceSlice<'_, _>| shard.count(home, low, high);
        let (counts, offsets) = self.ask_pieces(stream, "count", low.into(), high.into(), count)?;
        let mut sums = stream.uninit(offsets.len() - 1)?;
        reduce::segmented(stream, &counts, &offsets, &mut sums, Sum)?;
        Ok(sums)
    }

    fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Ranges<Self::Key, Self::Value>, Error> {
        if let Some(only) = self.only() {
            return only.range(stream, low, high);
        }
        let call = self.call("range");
        let _turn = self.begin()?;
        let world = self.world();
        let first = world.first_shard();
        let (plan, pieces, found) =
            self.send_pieces(stream, &call, low.into(), high.into(), |shard, home, low, high| {
                let Ranges { offsets, keys, values } = shard.range(home, low, high)?;
                let offsets = fetch(offsets, home, stream)?;
                Ok((offsets, fetch(keys, home, stream)?, fetch(values, home, stream)?))
            })?;
        // How many elements each of this rank's shards has for each rank.
        let part = || {
            let found = found?;
            let (mut lens, mut elements) = (Vec::new(), vec![0; world.ranks() * world.own_shards()]);
            for (own, (offsets, ..)) in found.iter().enumerate() {
                let pieces = plan.of_shard(first + own);
                let mut lens_of_shard = stream.uninit::<u64>(pieces)?;
                let difference = map!(|start: u64, end: u64| -> u64 { end - start });
                let (starts, ends) = (offsets.slice(..pieces)?, offsets.slice(1..)?);
                transform::map2(stream, starts, ends, &mut lens_of_shard, difference)?;
                lens.push(lens_of_shard);
                let offsets = offsets.to_vec(stream)?;
                for rank in 0..world.ranks() {
                    let of_rank = plan.within_shard(first + own, rank);
                    elements[rank * world.own_shards() + own] = offsets[of_rank.end] - offsets[of_rank.start];
                }
            }
            Ok((found, lens, elements, plan.room_back::<u64>(stream)?))
        };
        let (found, lens, room, elements) = match part() {
            Ok((found, lens, elements, room)) => (found, lens, room, world.agree(&call, Ok(elements))?),
            Err(error) => return world.vote(&call, Err(error)),
        };
        // By rank, then by shard.
        let of_pair = |rank: usize, shard: usize| {
            let (owner, own) = (world.rank_of(shard), shard % world.own_shards());
            elements[owner][rank * world.own_shards() + own]
        };
        let of_rank = |rank: usize| (0..world.shards()).map(|shard| of_pair(rank, shard)).collect();
        let elements: Vec<Vec<u64>> = (0..world.ranks()).map(of_rank).collect();
        let elements = Plan::new(world, &elements);
        let rooms = || Ok((elements.room_back(stream)?, elements.room_back(stream)?));
        let (keys_room, values_room) = world.vote(&call, rooms())?;

        let lens = plan.bring_back(stream, lens, room)?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (_, keys_of_shard, values_of_shard) in found {
            keys.push(keys_of_shard);
            values.push(values_of_shard);
        }
        let keys = elements.bring_back(stream, keys, keys_room)?;
        let values = elements.bring_back(stream, values, values_room)?;

        // The elements are here, in the order of the shards. They go to the order of the pieces.
        let (lens, keys, values) =
            (concatenated(stream, lens)?, concatenated(stream, keys)?, concatenated(stream, values)?);
        let mut starts = stream.uninit::<u64>(lens.len())?;
        scan::exclusive_sum(stream, &lens, &mut starts)?;
        let starts = place(stream, &pieces.order, vec![starts])?;
        let ends = offsets(stream, &place(stream, &pieces.order, vec![lens])?)?;
        let mut out_keys = stream.uninit(keys.len())?;
        permute::batched_copy(stream, &keys, &starts, &mut out_keys, &ends)?;
        let mut out_values = stream.uninit(values_for::<D::Value>(keys.len()))?;
        if size_of::<D::Value>() > 0 {
            permute::batched_copy(stream, &values, &starts, &mut out_values, &ends)?;
        }
        let mut offsets = stream.uninit(pieces.offsets.len())?;
        permute::gather(stream, &ends, &pieces.offsets, &mut offsets)?;
        Ok(Ranges { offsets, keys: out_keys, values: out_values })
    }

    fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
        operation: impl Monoid<Self::Value>,
    ) -> Result<DeviceVec<Self::Value>, Error> {
        if let Some(only) = self.only() {
            return only.reduce(stream, low, high, operation);
        }
        let reduce = |shard: &D, home: &Stream, low: DeviceSlice<'_, _>, high: DeviceSlice<'_, _>| {
            shard.reduce(home, low, high, operation)
        };
        let (parts, offsets) = self.ask_pieces(stream, "reduce", low.into(), high.into(), reduce)?;
        let mut reduced = stream.uninit(offsets.len() - 1)?;
        reduce::segmented(stream, &parts, &offsets, &mut reduced, operation)?;
        Ok(reduced)
    }

    fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error> {
        match self.only() {
            Some(only) => only.successor(stream, keys),
            None => self.neighbours(stream, "successor", keys.into(), Direction::Up),
        }
    }

    fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error> {
        match self.only() {
            Some(only) => only.predecessor(stream, keys),
            None => self.neighbours(stream, "predecessor", keys.into(), Direction::Down),
        }
    }
}
