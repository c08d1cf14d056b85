//! Common structures on one thread of the host: what a program without a GPU would use.

use super::{Answer, Contender, Flat, OrderedContender};
use crate::Error;
use crate::both::{PairSlice, Slice};
use crate::data::{Datum, Number};
use crate::measure::Clock;
use gpu_primitives::Stream;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// The standard library's B-tree.
pub struct Tree<K, V>(BTreeMap<K, V>);

/// The hash table of hashbrown, with its own hash function.
pub struct Hash<K, V>(hashbrown::HashMap<K, V>);

/// A sorted vector: updates merge, and queries use binary search.
pub struct Sorted<K, V>(Vec<(K, V)>);

/// The pairs of a batch.
fn zipped<'a, K: Copy, V: Copy>(pairs: PairSlice<'a, K, V>) -> impl Iterator<Item = (K, V)> + 'a {
    pairs.keys.host.iter().copied().zip(pairs.values.host.iter().copied())
}

fn now<T: 'static>(answer: T) -> Answer<T> {
    Box::new(|_| Ok(answer))
}

macro_rules! maps {
    ($($name:ident, $title:expr, |$map:ident| $sorted:expr, $bytes:expr;)*) => { $(
        impl<K: Number, V: Datum> Contender for $name<K, V> {
            type Key = K;
            type Value = V;
            const NAME: &'static str = $title;
            const CLOCK: Clock = Clock::Host;

            fn empty(_: &Stream, _: usize) -> Result<Self, Error> {
                Ok(Self(Default::default()))
            }

            fn build(_: &Stream, pairs: PairSlice<'_, K, V>, _: usize) -> Result<Self, Error> {
                Ok(Self(zipped(pairs).collect()))
            }

            fn insert(&mut self, _: &Stream, pairs: PairSlice<'_, K, V>) -> Result<(), Error> {
                for (key, value) in zipped(pairs) {
                    self.0.insert(key, value);
                }
                Ok(())
            }

            fn delete(&mut self, _: &Stream, keys: Slice<'_, K>) -> Result<(), Error> {
                for key in keys.host {
                    self.0.remove(key);
                }
                Ok(())
            }

            fn update(&mut self, stream: &Stream, insert: PairSlice<'_, K, V>, delete: Slice<'_, K>) -> Result<(), Error> {
                self.insert(stream, insert)?;
                self.delete(stream, delete)
            }

            fn lookup(&self, _: &Stream, keys: Slice<'_, K>) -> Result<Answer<Vec<Option<V>>>, Error> {
                Ok(now(keys.host.iter().map(|key| self.0.get(key).copied()).collect()))
            }

            fn contents(&self, _: &Stream) -> Result<Vec<(K, V)>, Error> {
                let $map = &self.0;
                Ok($sorted)
            }

            fn bytes(&self, _: &Stream) -> Result<Option<usize>, Error> {
                let $map = &self.0;
                Ok($bytes)
            }
        }
    )* };
}

maps! {
    Tree, "CPU BTreeMap", |map| map.iter().map(|(&key, &value)| (key, value)).collect(), {
        // The standard library does not expose it.
        let _ = map;
        None
    };
    Hash, "CPU hashbrown", |map| {
        let mut pairs: Vec<(K, V)> = map.iter().map(|(&key, &value)| (key, value)).collect();
        pairs.sort_unstable_by_key(|pair| pair.0);
        pairs
    }, Some(map.allocation_size());
}

/// Keeps the last of adjacent pairs with equal keys.
fn keep_last<K: PartialEq + Copy, V: Copy>(pairs: &mut Vec<(K, V)>) {
    pairs.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            *kept = *next;
        }
        same
    });
}

impl<K: Number, V: Datum> Contender for Sorted<K, V> {
    type Key = K;
    type Value = V;
    const NAME: &'static str = "CPU sorted Vec";
    const CLOCK: Clock = Clock::Host;

    fn empty(_: &Stream, _: usize) -> Result<Self, Error> {
        Ok(Self(Vec::new()))
    }

    fn build(_: &Stream, pairs: PairSlice<'_, K, V>, _: usize) -> Result<Self, Error> {
        let mut sorted: Vec<(K, V)> = zipped(pairs).collect();
        sorted.sort_by_key(|pair| pair.0);
        keep_last(&mut sorted);
        Ok(Self(sorted))
    }

    fn insert(&mut self, stream: &Stream, pairs: PairSlice<'_, K, V>) -> Result<(), Error> {
        let new = Self::build(stream, pairs, 0)?.0;
        let mut merged = Vec::with_capacity(self.0.len() + new.len());
        let mut old = self.0.iter().copied().peekable();
        for pair in new {
            while let Some(smaller) = old.next_if(|old| old.0 < pair.0) {
                merged.push(smaller);
            }
            old.next_if(|old| old.0 == pair.0);
            merged.push(pair);
        }
        merged.extend(old);
        self.0 = merged;
        Ok(())
    }

    fn delete(&mut self, _: &Stream, keys: Slice<'_, K>) -> Result<(), Error> {
        let mut keys = keys.host.to_vec();
        keys.sort_unstable();
        let mut next = keys.into_iter().peekable();
        self.0.retain(|pair| {
            while next.next_if(|key| *key < pair.0).is_some() {}
            next.peek() != Some(&pair.0)
        });
        Ok(())
    }

    fn update(&mut self, stream: &Stream, insert: PairSlice<'_, K, V>, delete: Slice<'_, K>) -> Result<(), Error> {
        self.insert(stream, insert)?;
        self.delete(stream, delete)
    }

    fn lookup(&self, _: &Stream, keys: Slice<'_, K>) -> Result<Answer<Vec<Option<V>>>, Error> {
        let find = |key| self.0.binary_search_by_key(key, |pair| pair.0).ok().map(|place| self.0[place].1);
        Ok(now(keys.host.iter().map(find).collect()))
    }

    fn contents(&self, _: &Stream) -> Result<Vec<(K, V)>, Error> {
        Ok(self.0.clone())
    }

    fn bytes(&self, _: &Stream) -> Result<Option<usize>, Error> {
        Ok(Some(self.0.capacity() * size_of::<(K, V)>()))
    }
}

/// Returns the pairs of intervals. `put` appends the pairs of one interval to the vectors.
fn flat<K: Number, V: Datum>(
    low: Slice<'_, K>,
    high: Slice<'_, K>,
    mut put: impl FnMut(K, K, &mut Flat<K, V>),
) -> Flat<K, V> {
    let mut flat = Flat { offsets: vec![0], keys: Vec::new(), values: Vec::new() };
    for (&low, &high) in low.host.iter().zip(high.host) {
        put(low, high, &mut flat);
        flat.offsets.push(flat.keys.len() as u64);
    }
    flat
}

impl<K: Number, V: Datum> OrderedContender for Tree<K, V> {
    fn count(&self, _: &Stream, low: Slice<'_, K>, high: Slice<'_, K>) -> Result<Answer<Vec<u64>>, Error> {
        let count = |(&low, &high)| self.0.range(low..=high).count() as u64;
        Ok(now(low.host.iter().zip(high.host).map(count).collect()))
    }

    fn range(&self, _: &Stream, low: Slice<'_, K>, high: Slice<'_, K>) -> Result<Answer<Flat<K, V>>, Error> {
        Ok(now(flat(low, high, |low, high, flat| {
            for (&key, &value) in self.0.range(low..=high) {
                flat.keys.push(key);
                flat.values.push(value);
            }
        })))
    }

    fn successor(&self, _: &Stream, keys: Slice<'_, K>) -> Result<Answer<Vec<Option<(K, V)>>>, Error> {
        let next = |key: &K| self.0.range((Excluded(*key), Unbounded)).next().map(|(&key, &value)| (key, value));
        Ok(now(keys.host.iter().map(next).collect()))
    }
}

impl<K: Number, V: Datum> Sorted<K, V> {
    /// Returns the pairs from the key `low` to the key `high`.
    fn between(&self, low: K, high: K) -> &[(K, V)] {
        let pairs = &self.0;
        let from = pairs.partition_point(|pair| pair.0 < low);
        &pairs[from..pairs.partition_point(|pair| pair.0 <= high)]
    }
}

impl<K: Number, V: Datum> OrderedContender for Sorted<K, V> {
    fn count(&self, _: &Stream, low: Slice<'_, K>, high: Slice<'_, K>) -> Result<Answer<Vec<u64>>, Error> {
        let count = |(&low, &high)| self.between(low, high).len() as u64;
        Ok(now(low.host.iter().zip(high.host).map(count).collect()))
    }

    fn range(&self, _: &Stream, low: Slice<'_, K>, high: Slice<'_, K>) -> Result<Answer<Flat<K, V>>, Error> {
        Ok(now(flat(low, high, |low, high, flat| {
            for &(key, value) in self.between(low, high) {
                flat.keys.push(key);
                flat.values.push(value);
            }
        })))
    }

    fn successor(&self, _: &Stream, keys: Slice<'_, K>) -> Result<Answer<Vec<Option<(K, V)>>>, Error> {
        let pairs = &self.0;
        let next = |key: &K| pairs.get(pairs.partition_point(|pair| pair.0 <= *key)).copied();
        Ok(now(keys.host.iter().map(next).collect()))
    }
}
