//! The parts that all cases use: random numbers, and the model that answers are compared with.

use super::files::saved;
use gpu_dictionary::{Dictionary, DictionaryOptions, KeyCode, Ordered, Updatable, WordKey as Key};
use gpu_primitives::{DeviceVec, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A structure, for keys and values of any type.
pub trait Family: 'static {
    /// The options of the structure.
    type Options: DictionaryOptions + Send + Sync;
    /// The structure.
    type Of<K: Key + Debug, V: Value>: Updatable<Key = K, Value = V, Options = Self::Options> + Debug;

    /// Returns the options for calls of about `batch` operations.
    fn options(batch: usize) -> Self::Options;

    /// Removes stale elements, if the structure can. The answers to queries do not change.
    ///
    /// # Errors
    /// The errors of that operation.
    fn tidy<K: Key + Debug, V: Value>(dictionary: &mut Self::Of<K, V>, stream: &Stream) -> Result<(), Error>;

    /// Gives a dictionary that was loaded the options that files do not have. By default there are none that matter.
    fn loaded<K: Key + Debug, V: Value>(dictionary: &mut Self::Of<K, V>, stream: &Stream) {
        let _ = (dictionary, stream);
    }

    /// Writes the dictionary, and returns what is read again: a file, unless the structure can do more. A history has one
    /// `folder` for all its dictionaries, which is missing at first.
    fn persist<K: Key + Debug, V: Value>(
        dictionary: &Self::Of<K, V>,
        stream: &Stream,
        folder: &Path,
        random: &mut Random,
    ) -> Self::Of<K, V> {
        let _ = (folder, random);
        <Self::Of<K, V>>::load(stream, &saved(stream, dictionary)[..]).unwrap()
    }

    /// Checks the invariants of the structure.
    fn check_structure<K: Key + Debug, V: Value>(dictionary: &Self::Of<K, V>, stream: &Stream, when: &str);

    /// Makes the queries that only some structures support: [`check_order`] if the structure keeps its keys in order, else nothing.
    /// [`keys_in_order!`](crate::keys_in_order) writes it.
    fn check_order<K: Key + Debug, V: Value>(
        dictionary: &Self::Of<K, V>,
        model: &BTreeMap<K::Code, V>,
        stream: &Stream,
        questions: &Questions<'_, K>,
        when: &str,
    );
}

/// Writes [`Family::check_order`]: `keys_in_order!(true)` for a structure that keeps its keys in order, `keys_in_order!(false)` for one
/// that does not.
#[macro_export]
macro_rules! keys_in_order {
    (true) => {
        $crate::keys_in_order!($crate::check_order);
    };
    (false) => {
        $crate::keys_in_order!((|_, _, _, _, _| ()));
    };
    ($check:expr) => {
        fn check_order<K: ::gpu_dictionary::WordKey + ::std::fmt::Debug, V: $crate::Value>(
            dictionary: &Self::Of<K, V>,
            model: &::std::collections::BTreeMap<K::Code, V>,
            stream: &::gpu_primitives::Stream,
            questions: &$crate::Questions<'_, K>,
            when: &str,
        ) {
            $check(dictionary, model, stream, questions, when);
        }
    };
}

/// A small random number generator that depends only on its seed.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns the next number, below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    /// Returns up to `most` keys of a domain.
    pub fn keys<K: Copy>(&mut self, domain: &[K], most: usize) -> Vec<K> {
        (0..self.below(most + 1)).map(|_| domain[self.below(domain.len())]).collect()
    }

    /// Returns `len` values.
    pub fn values<V: Value>(&mut self, count: usize) -> Vec<V> {
        (0..count).map(|_| V::of(self.number())).collect()
    }
}

/// A value type of the tests.
pub trait Value: gpu_dictionary::Value + PartialEq + Debug {
    /// Creates a value from bits.
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
impl Value for f64 {
    fn of(bits: u64) -> Self {
        bits as f64
    }
}
impl Value for [u32; 2] {
    fn of(bits: u64) -> Self {
        [bits as u32, (bits >> 32) as u32]
    }
}
impl Value for () {
    fn of(_: u64) -> Self {}
}

/// Queries for a dictionary that keeps its keys in order.
#[derive(Debug)]
pub struct Questions<'a, K> {
    /// The keys whose neighbours are queried.
    pub keys: &'a [K],
    /// The starts of the intervals.
    pub low: &'a [K],
    /// The ends of the intervals.
    pub high: &'a [K],
}

/// A dictionary and its model.
#[derive(Debug)]
pub struct Modelled<F: Family, K: Key + Debug, V: Value> {
    /// The dictionary.
    pub dictionary: F::Of<K, V>,
    /// The expected contents.
    pub model: BTreeMap<K::Code, V>,
    options: F::Options,
}

impl<F: Family, K: Key + Debug, V: Value> Modelled<F, K, V> {
    /// Creates an empty dictionary for calls of about `batch` operations.
    pub fn new(stream: &Stream, batch: usize) -> Self {
        Self::with_options(stream, F::options(batch))
    }

    /// Creates an empty dictionary with these options.
    pub fn with_options(stream: &Stream, options: F::Options) -> Self {
        let dictionary = <F::Of<K, V> as Dictionary>::new(stream, options.clone()).unwrap();
        Self { dictionary, model: BTreeMap::new(), options }
    }

    /// Makes a copy of the dictionary, with a model of its own.
    pub fn copy(&self, stream: &Stream) -> Self {
        let dictionary = self.dictionary.try_clone(stream).unwrap();
        Self { dictionary, model: self.model.clone(), options: self.options.clone() }
    }

    /// Inserts pairs.
    pub fn insert(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        self.dictionary.insert(stream, (&stream.upload(keys).unwrap(), &upload_values(stream, values))).unwrap();
        self.model_insert(keys, values);
    }

    /// Deletes keys.
    pub fn delete(&mut self, stream: &Stream, keys: &[K]) {
        self.dictionary.delete(stream, &stream.upload(keys).unwrap()).unwrap();
        self.model_delete(keys);
    }

    /// Inserts pairs and deletes keys in one call.
    pub fn update(&mut self, stream: &Stream, keys: &[K], values: &[V], deleted: &[K]) {
        let insert = (&stream.upload(keys).unwrap(), &upload_values(stream, values));
        self.dictionary.update(stream, insert, &stream.upload(deleted).unwrap()).unwrap();
        self.model_insert(keys, values);
        self.model_delete(deleted);
    }

    /// Replaces the dictionary by one that is built from these pairs.
    pub fn rebuild(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        let (on_device, with) = (stream.upload(keys).unwrap(), upload_values(stream, values));
        self.dictionary = <F::Of<K, V>>::bulk_build(stream, (&on_device, &with), self.options.clone()).unwrap();
        self.model.clear();
        self.model_insert(keys, values);
    }

    /// Replaces the dictionary by one that is read from where it was written.
    pub fn persist(&mut self, stream: &Stream, folder: &Path, random: &mut Random) {
        self.dictionary = F::persist(&self.dictionary, stream, folder, random);
    }

    /// Removes stale elements.
    pub fn tidy(&mut self, stream: &Stream) {
        F::tidy(&mut self.dictionary, stream).unwrap();
    }

    /// Inserts pairs into the model only.
    pub fn model_insert(&mut self, keys: &[K], values: &[V]) {
        self.model.extend(keys.iter().map(|key| key.code()).zip(values.iter().copied()));
    }

    /// Deletes keys from the model only.
    pub fn model_delete(&mut self, keys: &[K]) {
        for key in keys {
            self.model.remove(&key.code());
        }
    }

    /// Checks all pairs, the structure, and lookups of these keys, which together reveal any damage.
    pub fn check(&self, stream: &Stream, keys: &[K], when: &str) {
        let contents = self.dictionary.export(stream).unwrap();
        assert_eq!(contents.keys.len(), self.model.len(), "the length of an export, {when}");
        let all = contents.to_vec(stream).unwrap().into_iter().map(|(key, value)| (key.code(), value));
        assert!(all.eq(self.model.iter().map(|(&code, &value)| (code, value))), "export, {when}");
        let found = self.dictionary.lookup(stream, &stream.upload(keys).unwrap()).unwrap().to_vec(stream).unwrap();
        let expected: Vec<Option<V>> = keys.iter().map(|key| self.model.get(&key.code()).copied()).collect();
        assert_eq!(found, expected, "lookup, {when}");
        F::check_structure(&self.dictionary, stream, when);
    }

    /// Makes all queries, for some keys of the domain.
    pub fn check_all(&self, stream: &Stream, random: &mut Random, domain: &[K], when: &str) {
        let (dictionary, model) = (&self.dictionary, &self.model);
        let asked = random.keys(domain, 120);
        self.check(stream, &asked, when);
        let on_device = stream.upload(&asked).unwrap();
        let contains: Vec<u8> = asked.iter().map(|key| u8::from(model.contains_key(&key.code()))).collect();
        let found = dictionary.contains(stream, &on_device).unwrap().to_vec(stream).unwrap();
        assert_eq!(found, contains, "contains, {when}");
        assert_eq!(dictionary.len(stream).unwrap(), model.len(), "len, {when}");
        assert_eq!(dictionary.is_empty(stream).unwrap(), model.is_empty(), "is_empty, {when}");
        let stats = dictionary.stats(stream).unwrap();
        assert!(
            stats.resident >= model.len() && stats.live.is_none_or(|live| live == model.len()),
            "{stats:?}, {when}"
        );
        assert!(stats.bytes >= model.len() * (size_of::<K>() + size_of::<V>()), "{stats:?}, {when}");

        // Half of the intervals end before they begin. They span a third of all keys on average: with more keys, fewer
        // intervals suffice.
        let low = &asked[..asked.len().min(4 + 6000 / domain.len())];
        let high: Vec<K> = low.iter().map(|_| domain[random.below(domain.len())]).collect();
        self.check_order(stream, &Questions { keys: &asked, low, high: &high }, when);
    }

    /// Makes the queries that only some structures support.
    pub fn check_order(&self, stream: &Stream, questions: &Questions<'_, K>, when: &str) {
        F::check_order(&self.dictionary, &self.model, stream, questions, when);
    }
}

/// Checks the neighbours of keys, and the counts and ranges of intervals.
pub fn check_order<D: Ordered<Key: Debug, Value: Value>>(
    dictionary: &D,
    model: &BTreeMap<<D::Key as gpu_primitives::sort::RadixKey>::Code, D::Value>,
    stream: &Stream,
    questions: &Questions<'_, D::Key>,
    when: &str,
) {
    use gpu_dictionary::Key as _;

    let coded = |(key, value): (D::Key, D::Value)| (key.code(), value);
    let pair = |(&code, &value): (&_, &_)| (code, value);
    let asked = stream.upload(questions.keys).unwrap();
    let codes = || questions.keys.iter().map(|key| key.code());

    let above: Vec<_> =
        codes().map(|code| model.range((Bound::Excluded(code), Bound::Unbounded)).next().map(pair)).collect();
    let found = dictionary.successor(stream, &asked).unwrap().to_vec(stream).unwrap();
    assert_eq!(found.into_iter().map(|found| found.map(coded)).collect::<Vec<_>>(), above, "successor, {when}");
    let below: Vec<_> = codes().map(|code| model.range(..code).next_back().map(pair)).collect();
    let found = dictionary.predecessor(stream, &asked).unwrap().to_vec(stream).unwrap();
    assert_eq!(found.into_iter().map(|found| found.map(coded)).collect::<Vec<_>>(), below, "predecessor, {when}");

    // All intervals together overlap so much that levels may be merged as a whole. Two intervals never do, and single
    // keys seldom.
    let two = questions.low.len().min(2);
    for (low, high) in [
        (questions.low, questions.high),
        (&questions.low[..two], &questions.high[..two]),
        (questions.keys, questions.keys),
    ] {
        let ranges: Vec<Vec<_>> = low
            .iter()
            .zip(high)
            .map(|(low, high)| match (low.code(), high.code()) {
                (low, high) if low > high => Vec::new(),
                (low, high) => model.range(low..=high).map(pair).collect(),
            })
            .collect();
        let counts: Vec<u64> = ranges.iter().map(|range| range.len() as u64).collect();
        let (low, high) = (stream.upload(low).unwrap(), stream.upload(high).unwrap());
        assert_eq!(dictionary.count(stream, &low, &high).unwrap().to_vec(stream).unwrap(), counts, "count, {when}");
        let found = dictionary.range(stream, &low, &high).unwrap().to_vec(stream).unwrap();
        let found: Vec<Vec<_>> = found.into_iter().map(|range| range.into_iter().map(coded).collect()).collect();
        assert!(found == ranges, "range, {when}");
    }
}

/// The path of a folder that no other test uses. It is missing at first, and removed at the end.
#[derive(Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// Chooses a path.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gpu-dictionary-test-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns whether the long tests are enabled.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("GPU_PRIMITIVES_LONG").is_some()
}

/// Returns the values as a dictionary takes them: an empty slice if they are zero-sized.
pub fn upload_values<V: bytemuck::Pod>(stream: &Stream, values: &[V]) -> DeviceVec<V> {
    stream.upload(if size_of::<V>() == 0 { &values[..0] } else { values }).unwrap()
}

/// Returns the smallest and the largest key, and their neighbours. (Of a key of 256 bits, the second last is a key in
/// between.)
#[must_use]
pub fn extremes<K: gpu_dictionary::Key>() -> Vec<K> {
    let second = K::Code::from_words([1, 0]);
    let second_last = K::Code::from_words([u64::MAX - 1, u64::MAX]);
    [K::Code::MIN, second, second_last, K::Code::MAX].map(K::from_code).to_vec()
}
