//! What all cases use: random numbers, the model that answers are compared with, and the invariants of levels.

use gpu_lsm::{GpuLsm, Key};
use gpu_primitives::Stream;
use gpu_primitives::dictionary::KeyCode;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// A small generator: what it gives depends on the seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Up to `most` keys of a domain.
    pub fn keys<K: Copy>(&mut self, domain: &[K], most: usize) -> Vec<K> {
        (0..self.below(most + 1)).map(|_| domain[self.below(domain.len())]).collect()
    }

    pub fn values<V: Value>(&mut self, count: usize) -> Vec<V> {
        (0..count).map(|_| V::of(self.next())).collect()
    }
}

/// What a value of the dictionary is made of.
pub trait Value: bytemuck::Pod + PartialEq + Debug {
    fn of(bits: u64) -> Self;
}
impl Value for u32 {
    fn of(bits: u64) -> Self {
        bits as u32
    }
}
impl Value for u64 {
    fn of(bits: u64) -> Self {
        bits
    }
}
impl Value for () {
    fn of(_: u64) -> Self {}
}

/// A dictionary and what it must answer.
pub struct Modelled<K: Key, V: Value> {
    pub lsm: GpuLsm<K, V>,
    pub model: BTreeMap<K::Code, V>,
}

impl<K: Key + Debug, V: Value> Modelled<K, V> {
    pub fn new(batch: usize) -> Self {
        Self { lsm: GpuLsm::new(batch).unwrap(), model: BTreeMap::new() }
    }

    pub fn insert(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        self.lsm.insert(stream, &stream.upload(keys).unwrap(), &upload_values(stream, values)).unwrap();
        self.model_insert(keys, values);
    }

    pub fn delete(&mut self, stream: &Stream, keys: &[K]) {
        self.lsm.delete(stream, &stream.upload(keys).unwrap()).unwrap();
        self.model_delete(keys);
    }

    pub fn update(&mut self, stream: &Stream, keys: &[K], values: &[V], deleted: &[K]) {
        let insert = (&stream.upload(keys).unwrap(), &upload_values(stream, values));
        self.lsm.update(stream, insert, &stream.upload(deleted).unwrap()).unwrap();
        self.model_insert(keys, values);
        self.model_delete(deleted);
    }

    pub fn rebuild(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        let batch = self.lsm.stats().batch_size;
        let (on_device, values_on_device) = (stream.upload(keys).unwrap(), upload_values(stream, values));
        self.lsm = GpuLsm::bulk_build(stream, batch, &on_device, &values_on_device).unwrap();
        self.model.clear();
        self.model_insert(keys, values);
    }

    pub fn model_insert(&mut self, keys: &[K], values: &[V]) {
        self.model.extend(keys.iter().map(|key| key.code()).zip(values.iter().copied()));
    }

    pub fn model_delete(&mut self, keys: &[K]) {
        for key in keys {
            self.model.remove(&key.code());
        }
    }

    /// All pairs, the levels, and lookups of these keys: what any damage would show in.
    pub fn check(&self, stream: &Stream, keys: &[K], when: &str) {
        let all: Vec<(K::Code, V)> = self.lsm.iter(stream).unwrap().map(|(key, value)| (key.code(), value)).collect();
        assert!(all.iter().copied().eq(self.model.iter().map(|(&code, &value)| (code, value))), "iter, {when}");
        let found = self.lsm.lookup(stream, &stream.upload(keys).unwrap()).unwrap().to_vec(stream).unwrap();
        let expected: Vec<Option<V>> = keys.iter().map(|key| self.model.get(&key.code()).copied()).collect();
        assert_eq!(found, expected, "lookup, {when}");
        self.check_levels(stream, when);
    }

    /// The invariants of levels.
    pub fn check_levels(&self, stream: &Stream, when: &str) {
        let stats = self.lsm.stats();
        let (mut slots, mut resident, mut tombstones) = (0, 0, 0);
        for (slot, level) in self.lsm.levels() {
            let (codes, values, marks) = level.parts().unwrap();
            assert!(codes.to_vec(stream).unwrap().is_sorted(), "level {slot} is sorted, {when}");
            assert!((1..=stats.batch_size << slot).contains(&level.len()), "the length of level {slot}, {when}");
            assert_eq!(values.len(), if size_of::<V>() == 0 { 0 } else { codes.len() }, "values, {when}");
            let marks = marks.map_or(Vec::new(), |marks| marks.to_vec(stream).unwrap());
            let dead =
                (0..level.len()).filter(|i| marks.get(i / 32).is_some_and(|word| word >> (i % 32) & 1 == 1)).count();
            assert_eq!(level.has_tombstones(), dead > 0, "level {slot} has marks for tombstones alone, {when}");
            slots |= 1 << slot;
            resident += level.len();
            tombstones += dead;
        }
        assert_eq!(stats.batches, slots, "levels are the digits of the number of batches, {when}");
        assert_eq!((stats.resident, stats.tombstones), (resident, tombstones), "{when}");
        assert_eq!(stats.levels, self.lsm.levels().count(), "{when}");
    }

    /// Asks everything, about some keys of the domain.
    pub fn check_all(&self, stream: &Stream, random: &mut Random, domain: &[K], when: &str) {
        let (lsm, model) = (&self.lsm, &self.model);
        let asked = random.keys(domain, 120);
        self.check(stream, &asked, when);
        let on_device = stream.upload(&asked).unwrap();
        let contains: Vec<u8> = asked.iter().map(|key| u8::from(model.contains_key(&key.code()))).collect();
        assert_eq!(lsm.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), contains, "contains, {when}");
        assert_eq!(lsm.len(stream).unwrap(), model.len(), "len, {when}");

        let pair = |(&code, &value): (&K::Code, &V)| (code, value);
        let coded = |found: Vec<Option<(K, V)>>| -> Vec<_> {
            found.into_iter().map(|found| found.map(|(key, value)| (key.code(), value))).collect()
        };
        let after = |code: K::Code| model.range((Bound::Excluded(code), Bound::Unbounded)).next().map(pair);
        let above: Vec<_> = asked.iter().map(|key| after(key.code())).collect();
        let found = lsm.successor(stream, &on_device).unwrap().to_vec(stream).unwrap();
        assert_eq!(coded(found), above, "successor, {when}");
        let below: Vec<_> = asked.iter().map(|key| model.range(..key.code()).next_back().map(pair)).collect();
        let found = lsm.predecessor(stream, &on_device).unwrap().to_vec(stream).unwrap();
        assert_eq!(coded(found), below, "predecessor, {when}");

        // Half of them end before they begin. They reach over a third of all keys: the more there are, the fewer will do.
        let low = &asked[..asked.len().min(4 + 6000 / domain.len())];
        let high: Vec<K> = low.iter().map(|_| domain[random.below(domain.len())]).collect();
        self.check_intervals(stream, low, &high, when);
    }

    /// Counts and ranges of intervals.
    pub fn check_intervals(&self, stream: &Stream, low: &[K], high: &[K], when: &str) {
        let ranges: Vec<Vec<(K::Code, V)>> = low
            .iter()
            .zip(high)
            .map(|(low, high)| match (low.code(), high.code()) {
                (low, high) if low > high => Vec::new(),
                (low, high) => self.model.range(low..=high).map(|(&code, &value)| (code, value)).collect(),
            })
            .collect();
        let counts: Vec<u64> = ranges.iter().map(|range| range.len() as u64).collect();
        let (low, high) = (stream.upload(low).unwrap(), stream.upload(high).unwrap());
        assert_eq!(self.lsm.count(stream, &low, &high).unwrap().to_vec(stream).unwrap(), counts, "count, {when}");
        let found = self.lsm.range(stream, &low, &high).unwrap().to_vec(stream).unwrap();
        let found: Vec<Vec<(K::Code, V)>> = found
            .into_iter()
            .map(|range| range.into_iter().map(|(key, value)| (key.code(), value)).collect())
            .collect();
        assert!(found == ranges, "range, {when}");
    }
}

/// Whether there is time for everything.
pub fn is_long() -> bool {
    std::env::var_os("GPU_PRIMITIVES_LONG").is_some()
}

/// Values as the dictionary takes them: none if they have no size.
pub fn upload_values<V: Value>(stream: &Stream, values: &[V]) -> gpu_primitives::DeviceVec<V> {
    stream.upload(if size_of::<V>() == 0 { &values[..0] } else { values }).unwrap()
}

/// The smallest and the largest key, and their neighbours.
pub fn extremes<K: Key>() -> Vec<K> {
    let (min, max) = (K::Code::MIN.to_u64(), K::Code::MAX.to_u64());
    [min, min + 1, max - 1, max].map(|bits| K::from_code(K::Code::from_u64(bits))).to_vec()
}
