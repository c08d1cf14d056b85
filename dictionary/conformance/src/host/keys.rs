//! A short suite for keys of every size: all operations, compared with a `BTreeMap`. The other cases run for numbers of 32
//! and 64 bits.

use super::files::saved;
use super::model::{Questions, Random, Value, check_order, extremes, upload_values};
use gpu_conformance::is_checked;
use gpu_dictionary::{DictionaryOptions, Key, Ordered, Updatable, Upsertable};
use gpu_primitives::scan::Sum;
use gpu_primitives::sort::RadixKey;
use gpu_primitives::{Device, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The expected contents of a dictionary.
type Model<D, V> = BTreeMap<<D as RadixKey>::Code, V>;

/// A dictionary and its model.
struct Both<D: Ordered> {
    dictionary: D,
    model: Model<D::Key, D::Value>,
    domain: Vec<D::Key>,
    /// The most keys of an update.
    most: usize,
    random: Random,
}

impl<D: Ordered<Key: Debug, Value: Value> + Updatable> Both<D> {
    /// Makes an empty dictionary for keys that `key` makes of numbers, and for the smallest and the largest ones. There are
    /// several tiles of them, except on the checked device.
    fn new(stream: &Stream, key: impl Fn(u64) -> D::Key) -> Self {
        let (keys, most, batch) = if is_checked(stream.device()) { (60, 40, 16) } else { (5000, 3000, 800) };
        let mut random = Random(7);
        let domain = (0..keys).map(|_| key(random.number())).chain(extremes()).collect();
        let options = D::Options::default().expected_operations(batch);
        Self { dictionary: D::new(stream, options).unwrap(), model: BTreeMap::new(), domain, most, random }
    }

    fn insert(&mut self, stream: &Stream) {
        let (keys, values) = self.pairs();
        self.dictionary.insert(stream, (&stream.upload(&keys).unwrap(), &upload_values(stream, &values))).unwrap();
        self.model.extend(keys.iter().map(|key| key.code()).zip(values));
    }

    fn delete(&mut self, stream: &Stream) {
        let keys = self.random.keys(&self.domain, self.most / 2);
        self.dictionary.delete(stream, &stream.upload(&keys).unwrap()).unwrap();
        keys.iter().for_each(|key| _ = self.model.remove(&key.code()));
    }

    fn update(&mut self, stream: &Stream) {
        let (keys, values) = self.pairs();
        let deleted = self.random.keys(&self.domain, self.most / 2);
        let pairs = (&stream.upload(&keys).unwrap(), &upload_values(stream, &values));
        self.dictionary.update(stream, pairs, &stream.upload(&deleted).unwrap()).unwrap();
        self.model.extend(keys.iter().map(|key| key.code()).zip(values));
        deleted.iter().for_each(|key| _ = self.model.remove(&key.code()));
    }

    fn rebuild(&mut self, stream: &Stream) {
        let (keys, values) = self.pairs();
        let pairs = (&stream.upload(&keys).unwrap(), &upload_values(stream, &values));
        self.dictionary = D::bulk_build(stream, pairs, self.dictionary.options()).unwrap();
        self.model = keys.iter().map(|key| key.code()).zip(values).collect();
    }

    fn pairs(&mut self) -> (Vec<D::Key>, Vec<D::Value>) {
        let keys = self.random.keys(&self.domain, self.most);
        let values = self.random.values(keys.len());
        (keys, values)
    }

    /// Saves the dictionary and continues with what is loaded.
    fn reload(&mut self, stream: &Stream) {
        let file = saved(stream, &self.dictionary);
        self.dictionary = D::load(stream, &file[..]).unwrap();
        assert!(saved(stream, &self.dictionary) == file, "the file differs when saved again");
    }

    /// Makes all queries.
    fn check(&mut self, stream: &Stream, when: &str) {
        let Self { dictionary, model, domain, most, random } = self;
        let mut asked = random.keys(domain, *most / 8);
        asked.extend(extremes::<D::Key>());
        let all = dictionary.export(stream).unwrap().to_vec(stream).unwrap();
        let all = all.into_iter().map(|(key, value)| (key.code(), value));
        assert!(all.eq(model.iter().map(|(&code, &value)| (code, value))), "export, {when}");
        let on_device = stream.upload(&asked).unwrap();
        let expected: Vec<_> = asked.iter().map(|key| model.get(&key.code()).copied()).collect();
        let found = dictionary.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap();
        assert_eq!(found, expected, "lookup, {when}");
        let are_present: Vec<u8> = expected.iter().map(|value| value.is_some().into()).collect();
        let found = dictionary.contains(stream, &on_device).unwrap().to_vec(stream).unwrap();
        assert_eq!(found, are_present, "contains, {when}");
        assert_eq!(dictionary.len(stream).unwrap(), model.len(), "len, {when}");
        let low = &asked[..asked.len().min(6)];
        let high: Vec<D::Key> = low.iter().map(|_| domain[random.below(domain.len())]).collect();
        check_order(dictionary, model, stream, &Questions { keys: &asked, low, high: &high }, when);
    }
}

/// Runs every operation on a dictionary of keys that `key` makes of numbers. `tidy` removes stale elements.
pub fn all_operations<D: Ordered<Key: Debug, Value: Value> + Updatable>(
    device: &Device,
    key: impl Fn(u64) -> D::Key,
    tidy: impl Fn(&mut D, &Stream) -> Result<(), Error>,
) {
    let stream = &device.stream().unwrap();
    let mut both = Both::<D>::new(stream, key);
    both.check(stream, "empty");
    both.insert(stream);
    both.check(stream, "after an insertion");
    both.delete(stream);
    both.check(stream, "after a deletion");
    both.update(stream);
    both.check(stream, "after a mixed update");

    let copy = both.dictionary.try_clone(stream).unwrap();
    let model = both.model.clone();
    both.insert(stream);
    both.reload(stream);
    both.check(stream, "loaded");
    let newer = (std::mem::replace(&mut both.dictionary, copy), std::mem::replace(&mut both.model, model));
    both.check(stream, "a copy, after the original has changed");
    (both.dictionary, both.model) = newer;

    tidy(&mut both.dictionary, stream).unwrap();
    both.check(stream, "tidied up");
    both.rebuild(stream);
    both.check(stream, "built anew");
    both.dictionary.clear(stream).unwrap();
    both.model.clear();
    both.check(stream, "cleared");
}

/// Combines values with those of keys that `key` makes of numbers.
pub fn upserts_of<D: Ordered<Key: Debug, Value = u32> + Upsertable>(device: &Device, key: impl Fn(u64) -> D::Key) {
    let stream = &device.stream().unwrap();
    let mut both = Both::<D>::new(stream, key);
    both.insert(stream);
    for round in 0..3 {
        let (keys, values) = both.pairs();
        let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
        both.dictionary.upsert(stream, pairs, Sum).unwrap();
        for (key, value) in keys.iter().zip(values) {
            let sum = both.model.entry(key.code()).or_default();
            *sum = sum.wrapping_add(value);
        }
        both.check(stream, &format!("round {round}"));
        both.delete(stream);
    }
    both.check(stream, "after a deletion");
}
