//! Random histories of ranks that have different keys.

use gpu_dictionary::{Dictionary, Key, Ordered, Updatable};
use gpu_dictionary_conformance::{Questions, Random, check_order};
use gpu_primitives::Stream;
use gpu_primitives::scan::Max;
use gpu_sharded::{Options, Shard, Sharded, World};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A dictionary and its model: what all ranks together have done.
struct Both<D: Dictionary> {
    all: D,
    model: BTreeMap<<D::Key as gpu_primitives::sort::RadixKey>::Code, u32>,
    random: Random,
    ranks: usize,
    rank: usize,
}

impl<D: Shard + Updatable<Value = u32>> Both<Sharded<D>>
where
    D::Key: Debug + PartialEq,
{
    fn new(world: World, stream: &Stream, seed: u64) -> Self {
        let (rank, ranks) = (world.rank(), world.ranks());
        let all = Sharded::new(stream, Options::new(world).balance_from(64)).unwrap();
        Self { all, model: BTreeMap::new(), random: Random(seed), ranks, rank }
    }

    /// Makes a batch of keys for each rank. Returns those of this rank, and adds them to the model in the order of the ranks.
    fn keys(&mut self, most: usize, key: impl Fn(u64) -> D::Key) -> Vec<Vec<D::Key>> {
        let random = &mut self.random;
        (0..self.ranks).map(|_| (0..random.below(most + 1)).map(|_| key(random.number())).collect()).collect()
    }

    fn step(&mut self, stream: &Stream, key: &impl Fn(u64) -> D::Key) {
        let (batches, deleted) = (self.keys(60, key), self.keys(20, key));
        let values: Vec<Vec<u32>> = batches.iter().map(|keys| self.random.values(keys.len())).collect();
        let (own, own_values, own_deleted) = (&batches[self.rank], &values[self.rank], &deleted[self.rank]);
        let [own, own_deleted] = [own, own_deleted].map(|keys| stream.upload(keys).unwrap());
        let own_values = stream.upload(own_values).unwrap();
        let what = self.random.below(4);
        match what {
            0 => self.all.insert(stream, (&own, &own_values)).unwrap(),
            1 => self.all.delete(stream, &own_deleted).unwrap(),
            _ => self.all.update(stream, (&own, &own_values), &own_deleted).unwrap(),
        }
        if what != 1 {
            let pairs = batches.iter().flatten().zip(values.iter().flatten());
            self.model.extend(pairs.map(|(key, &value)| (key.code(), value)));
        }
        if what != 0 {
            deleted.iter().flatten().for_each(|key| _ = self.model.remove(&key.code()));
        }
    }

    fn check(&mut self, stream: &Stream, key: &impl Fn(u64) -> D::Key) -> Vec<D::Key> {
        let asked = self.keys(50, key).swap_remove(self.rank);
        let on_device = stream.upload(&asked).unwrap();
        let expected: Vec<_> = asked.iter().map(|key| self.model.get(&key.code()).copied()).collect();
        assert_eq!(self.all.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap(), expected);
        let contains: Vec<u8> = expected.iter().map(|value| value.is_some().into()).collect();
        assert_eq!(self.all.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), contains);
        assert_eq!(self.all.len(stream).unwrap(), self.model.len());
        let all = self.all.export(stream).unwrap().to_vec(stream).unwrap().into_iter();
        assert!(all.map(|(key, value)| (key.code(), value)).eq(self.model.iter().map(|(&code, &value)| (code, value))));
        asked
    }
}

pub fn history<D: Shard + Updatable<Value = u32>>(world: World, stream: &Stream, key: impl Fn(u64) -> D::Key)
where
    D::Key: Debug + PartialEq,
{
    let mut both = Both::<Sharded<D>>::new(world, stream, 5);
    both.check(stream, &key);
    for _ in 0..8 {
        both.step(stream, &key);
        both.check(stream, &key);
    }
}

pub fn ordered_history<D: Shard + Updatable<Value = u32> + Ordered>(
    world: World,
    stream: &Stream,
    key: impl Fn(u64) -> D::Key,
) where
    D::Key: Debug + PartialEq,
{
    let mut both = Both::<Sharded<D>>::new(world, stream, 6);
    for round in 0..7 {
        let asked = both.check(stream, &key);
        let low = both.keys(12, &key).swap_remove(both.rank);
        let high: Vec<D::Key> = low.iter().map(|_| key(both.random.number())).collect();
        let questions = Questions { keys: &asked, low: &low, high: &high };
        check_order(&both.all, &both.model, stream, &questions, &format!("round {round}"));
        let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
        let largest = both.all.reduce(stream, &low, &high, Max).unwrap().to_vec(stream).unwrap();
        let bounds = low.to_vec(stream).unwrap().into_iter().zip(high.to_vec(stream).unwrap());
        let expected: Vec<u32> = bounds
            .map(|(low, high)| match low.code() <= high.code() {
                true => both.model.range(low.code()..=high.code()).map(|(_, &value)| value).max().unwrap_or(0),
                false => 0,
            })
            .collect();
        assert_eq!(largest, expected);
        // The random numbers of the ranks must not drift apart.
        both.random = Random(100 + round);
        both.step(stream, &key);
        both.random = Random(200 + round);
    }
}
