//! The expected contents of a dictionary, computed by sorting on the host, and queries with known answers.

use crate::Error;
use crate::both::Both;
use crate::check;
use crate::contender::Flat;
use crate::data::{Datum, Number, random_below, random_below_at};
use gpu_primitives::Stream;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

/// The expected contents of a dictionary: each key once, with its last inserted value, in key order.
#[derive(Clone)]
pub struct Oracle<K, V> {
    /// The pairs.
    pub pairs: Vec<(K, V)>,
}

impl<K: Number, V: Datum> Oracle<K, V> {
    /// Returns the contents after the insertion of these pairs.
    #[must_use]
    pub fn new(keys: &[K], values: &[V]) -> Self {
        let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
        pairs.par_sort_by_key(|pair| pair.0);
        let mut oracle = Self { pairs };
        oracle.keep_last();
        oracle
    }

    /// Keeps the last pair of each key. A stable sort has left equal keys in their original order.
    fn keep_last(&mut self) {
        self.pairs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                *kept = *next;
            }
            same
        });
    }

    /// Inserts pairs.
    pub fn insert(&mut self, keys: &[K], values: &[V]) {
        let mut new = Self::new(keys, values).pairs;
        self.pairs.append(&mut new);
        // Both runs are already sorted, so this is a merge.
        self.pairs.sort_by_key(|pair| pair.0);
        self.keep_last();
    }

    /// Deletes keys.
    pub fn delete(&mut self, keys: &[K]) {
        let mut keys = keys.to_vec();
        keys.par_sort_unstable();
        let mut next = keys.into_iter().peekable();
        self.pairs.retain(|pair| {
            while next.next_if(|key| *key < pair.0).is_some() {}
            next.peek() != Some(&pair.0)
        });
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn find(&self, key: K) -> Option<V> {
        self.pairs.binary_search_by_key(&key, |pair| pair.0).ok().map(|place| self.pairs[place].1)
    }

    /// Checks the contents of a dictionary.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    pub fn check(&self, what: &str, found: &[(K, V)]) -> Result<(), Error> {
        check::equal(what, found, &self.pairs, |found, expected| found == expected)
    }
}

/// Keys to look up, and the expected values.
pub struct Lookups<K: Number, V: Datum> {
    /// The keys.
    pub keys: Both<K>,
    /// The values of the keys that are present.
    pub expected: Vec<Option<V>>,
}

impl<K: Number, V: Datum> Lookups<K, V> {
    /// Creates lookups of these keys.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(stream: &Stream, queries: impl IndexedParallelIterator<Item = (K, Option<V>)>) -> Result<Self, Error> {
        let (mut keys, mut expected) = (Vec::new(), Vec::new());
        queries.unzip_into_vecs(&mut keys, &mut expected);
        Ok(Self { keys: Both::new(stream, keys)?, expected })
    }

    /// Creates lookups of random keys among the first `len` keys of the uniform distribution, which are present.
    ///
    /// # Errors
    /// Any device error.
    pub fn present(stream: &Stream, len: usize, queries: usize) -> Result<Self, Error> {
        let places = (0..queries).into_par_iter().map(|index| random_below_at(5, len, index) as u64);
        Self::new(stream, places.map(|place| (K::of(place, true), Some(V::of(place)))))
    }

    /// Creates lookups of absent keys.
    ///
    /// # Errors
    /// Any device error.
    pub fn absent(stream: &Stream, queries: usize) -> Result<Self, Error> {
        let places = (0..queries).into_par_iter().map(|index| random_below_at(6, 1 << 32, index) as u64);
        Self::new(stream, places.map(|place| (K::of(place, false), None)))
    }

    /// Whether these are the answers.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    pub fn check(&self, what: &str, found: &[Option<V>]) -> Result<(), Error> {
        check::equal(what, found, &self.expected, |found, expected| found == expected)
    }
}

/// Intervals, and where their keys are in the oracle.
pub struct Intervals<K: Number> {
    /// The first key of each.
    pub low: Both<K>,
    /// The last key of each.
    pub high: Both<K>,
    places: Vec<(usize, usize)>,
}

impl<K: Number> Intervals<K> {
    /// Creates intervals of `len` keys each, or of all keys if there are fewer. Each starts at a random key.
    ///
    /// # Errors
    /// Any device error.
    pub fn of_keys<V: Datum>(
        stream: &Stream,
        oracle: &Oracle<K, V>,
        len: usize,
        queries: usize,
    ) -> Result<Self, Error> {
        let len = len.min(oracle.pairs.len());
        let starts = random_below(9, oracle.pairs.len() - len + 1).take(queries);
        let places: Vec<(usize, usize)> = starts.map(|start| (start, start + len)).collect();
        let low = places.iter().map(|&(from, _)| oracle.pairs[from].0).collect();
        let high = places.iter().map(|&(_, to)| oracle.pairs[to - 1].0).collect();
        Ok(Self { low: Both::new(stream, low)?, high: Both::new(stream, high)?, places })
    }

    /// Checks the numbers of keys in the intervals.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    pub fn check_counts(&self, what: &str, counts: &[u64]) -> Result<(), Error> {
        check::equal(what, counts, &self.places, |&&count, &&(from, to)| count == (to - from) as u64)
    }

    /// Checks the pairs in the intervals.
    ///
    /// # Errors
    /// [`Error::WrongResult`] names the first wrong interval.
    pub fn check_ranges<V: Datum>(&self, what: &str, oracle: &Oracle<K, V>, found: &Flat<K, V>) -> Result<(), Error> {
        let is_right = |index: usize, (from, to): (usize, usize)| {
            let [start, end] = [index, index + 1].map(|at| found.offsets.get(at).map(|&offset| offset as usize));
            let range = start.zip(end).map(|(start, end)| start..end);
            let pairs = range.and_then(|range| Some((found.keys.get(range.clone())?, found.values.get(range)?)));
            pairs.is_some_and(|(keys, values)| {
                let found = keys.iter().copied().zip(values.iter().copied());
                keys.len() == to - from && found.eq(oracle.pairs[from..to].iter().copied())
            })
        };
        let places = self.places.par_iter().enumerate();
        let wrong = places.map(|(index, &place)| is_right(index, place)).position_first(|is_right| !is_right);
        let end = found.offsets.last().map_or(0, |&offset| offset as usize);
        let is_more = found.offsets.len() > self.places.len() + 1 || found.keys.len() > end;
        match wrong.or(is_more.then_some(self.places.len())) {
            Some(index) => Err(Error::WrongResult { what: what.into(), index }),
            None => Ok(()),
        }
    }
}

impl Intervals<u32> {
    /// Creates intervals of `expected` keys on average, which start at random values of the key type. The oracle's keys
    /// are evenly spread.
    ///
    /// # Errors
    /// Any device error.
    pub fn of_width<V: Datum>(
        stream: &Stream,
        oracle: &Oracle<u32, V>,
        expected: usize,
        queries: usize,
    ) -> Result<Self, Error> {
        let width = ((1u64 << 32) as f64 / oracle.pairs.len() as f64 * expected as f64) as u32;
        let low: Vec<u32> =
            random_below(9, (u32::MAX - width) as usize + 1).take(queries).map(|low| low as u32).collect();
        let high: Vec<u32> = low.iter().map(|&low| low + width - 1).collect();
        let place = |low: u32, high: u32| {
            let from = oracle.pairs.partition_point(|pair| pair.0 < low);
            (from, from + oracle.pairs[from..].partition_point(|pair| pair.0 <= high))
        };
        let places = low.iter().zip(&high).map(|(&low, &high)| place(low, high)).collect();
        Ok(Self { low: Both::new(stream, low)?, high: Both::new(stream, high)?, places })
    }
}

/// Successor queries, and the expected answers.
pub struct Successors<K: Number, V: Datum> {
    /// The keys.
    pub keys: Both<K>,
    expected: Vec<Option<(K, V)>>,
}

impl<K: Number, V: Datum> Successors<K, V> {
    /// Creates queries of random keys of the oracle.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(stream: &Stream, oracle: &Oracle<K, V>, queries: usize) -> Result<Self, Error> {
        let places = random_below(10, oracle.pairs.len()).take(queries);
        let (keys, expected) =
            places.map(|place| (oracle.pairs[place].0, oracle.pairs.get(place + 1).copied())).unzip();
        Ok(Self { keys: Both::new(stream, keys)?, expected })
    }

    /// Whether these are the answers.
    ///
    /// # Errors
    /// [`Error::WrongResult`].
    pub fn check(&self, what: &str, found: &[Option<(K, V)>]) -> Result<(), Error> {
        check::equal(what, found, &self.expected, |found, expected| found == expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_counts_and_deleted_ones_are_gone() {
        let mut oracle = Oracle::<u32, u32>::new(&[3, 1, 3], &[1, 2, 3]);
        assert_eq!(oracle.pairs, [(1, 2), (3, 3)]);
        oracle.insert(&[4, 1], &[5, 6]);
        assert_eq!(oracle.pairs, [(1, 6), (3, 3), (4, 5)]);
        oracle.delete(&[9, 0, 3, 3]);
        assert_eq!(oracle.pairs, [(1, 6), (4, 5)]);
        assert!(oracle.check("pairs", &[(1, 6), (4, 5)]).is_ok() && oracle.check("pairs", &[(1, 6)]).is_err());
    }

    #[test]
    fn the_first_wrong_interval_is_named() {
        let stream = gpu_primitives::Device::cpu().stream().unwrap();
        let oracle = Oracle::<u32, u32>::new(&[1, 2, 3], &[4, 5, 6]);
        let none = || Both::new(&stream, Vec::new()).unwrap();
        let intervals = Intervals { low: none(), high: none(), places: vec![(0, 2), (1, 1), (1, 3)] };
        let wrong = |offsets: &[u64], keys: &[u32], values: &[u32]| {
            let found = Flat { offsets: offsets.to_vec(), keys: keys.to_vec(), values: values.to_vec() };
            match intervals.check_ranges("x", &oracle, &found) {
                Err(Error::WrongResult { index, .. }) => Some(index),
                _ => None,
            }
        };
        let (keys, values) = ([1, 2, 2, 3], [4, 5, 5, 6]);
        assert_eq!(wrong(&[0, 2, 2, 4], &keys, &values), None);
        assert_eq!(wrong(&[0, 2, 2, 4], &[1, 2, 2, 4], &values), Some(2));
        assert_eq!(wrong(&[0, 2, 2, 4], &keys, &[4, 0, 5, 6]), Some(0));
        assert_eq!(wrong(&[0, 2, 3, 4], &keys, &values), Some(1));
        assert_eq!(wrong(&[0, 2, 2], &keys, &values), Some(2));
        assert_eq!(wrong(&[0, 2, 2, 5], &keys, &values), Some(2));
        assert_eq!(wrong(&[0, 2, 2, 4, 4], &keys, &values), Some(3));
        assert_eq!(wrong(&[0, 2, 2, 4], &[1, 2, 2, 3, 3], &values), Some(3));
    }
}
