//! The table's own features: options, growth, refusal, layouts. Compared with `HashMap`, on every device.

mod builds;
mod devices;
mod updates;
mod upserts;
mod whole;

use builds::*;
use devices::*;
use gpu_conformance::data::random;
use gpu_conformance::{cases, run};
use gpu_cuckoo::{GpuCuckoo, Key, Options, Value};
use gpu_dictionary::WordCode;
use gpu_dictionary_conformance::upload_values;
use gpu_primitives::{Error, Stream};
use std::collections::HashMap;
use std::fmt::Debug;
use std::process::ExitCode;
use updates::*;
use upserts::*;
use whole::*;

/// The default options with a seed: whether a table grows or refuses must not depend on chance.
fn seeded() -> Options {
    Options::new().seed(0)
}

fn main() -> ExitCode {
    run(cases![
        small_empty_table,
        small_one_key,
        small_shapes,
        small_keys_and_values,
        extreme_keys,
        duplicates,
        one_key_many_times,
        long_tiles,
        many_tiles,
        room_ahead,
        insert_replaces,
        insert_repeats,
        insert_one_key_many_times,
        insert_allocates_once,
        insert_grows,
        insert_doubles,
        insert_doubles_under_its_own_keys,
        insert_refuses,
        insert_undoes,
        build_refuses,
        deleted_slots_are_reused,
        clear_and_rebuild,
        random_histories,
        any_order_of_threads,
        upsert_combines,
        upsert_in_order,
        upsert_types,
        upsert_grows_or_refuses,
        upsert_without_associativity,
        upsert_in_any_order_of_threads,
        upsert_repeats_in_order,
        retain_keeps_some,
        retain_in_sets,
        for_each_changes_values,
        keys_values_and_drain,
        remove_returns_values,
        misaligned_values,
        invalid_options,
        memory,
        same_histories,
        same_repeats,
        same_refusals,
        same_operations,
        same_plain_keys,
        same_bits,
        large,
    ])
}

/// A table, and a `HashMap` that must have the same contents.
struct Pair<K: Key, V: Value> {
    stream: Stream,
    table: GpuCuckoo<K, V>,
    model: HashMap<u64, V>,
}

/// Returns a key as the model's key.
fn bits<K: Key>(key: K) -> u64 {
    key.code().to_u64()
}

impl<K: Key + Debug, V: Value + Debug + PartialEq> Pair<K, V> {
    fn new(stream: &Stream, options: Options) -> Self {
        let table = GpuCuckoo::new(stream, options).unwrap();
        Self { stream: stream.clone(), table, model: HashMap::new() }
    }

    fn build(stream: &Stream, keys: &[K], values: &[V], options: Options) -> Self {
        let pairs = (&stream.upload(keys).unwrap(), &upload_values(stream, values));
        let table = GpuCuckoo::bulk_build(stream, pairs, options).unwrap();
        let model = keys.iter().zip(values).map(|(&key, &value)| (bits(key), value)).collect();
        Self { stream: stream.clone(), table, model }
    }

    fn insert(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        let pairs = (&self.stream.upload(keys).unwrap(), &upload_values(&self.stream, values));
        self.table.insert(&self.stream, pairs)?;
        self.model.extend(keys.iter().zip(values).map(|(&key, &value)| (bits(key), value)));
        Ok(())
    }

    fn delete(&mut self, keys: &[K]) {
        self.table.delete(&self.stream, &self.stream.upload(keys).unwrap()).unwrap();
        for &key in keys {
            self.model.remove(&bits(key));
        }
    }

    /// Compares lookups of these keys, the number of keys, and all pairs.
    fn check(&self, asked: &[K]) {
        let (stream, table) = (&self.stream, &self.table);
        let on_device = stream.upload(asked).unwrap();
        let answers = table.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap();
        let found = table.contains(stream, &on_device).unwrap().to_vec(stream).unwrap();
        for (i, &key) in asked.iter().enumerate() {
            let expected = self.model.get(&bits(key)).copied();
            assert_eq!(answers[i], expected, "key {i} of {}: {key:?}", asked.len());
            assert_eq!(found[i], u8::from(expected.is_some()), "key {i} of {}: {key:?}", asked.len());
        }
        assert_eq!(table.len(stream).unwrap(), self.model.len());
        let all = table.export(stream).unwrap().to_vec(stream).unwrap();
        let mut expected: Vec<u64> = self.model.keys().copied().collect();
        expected.sort_unstable();
        assert_eq!(all.iter().map(|&(key, _)| bits(key)).collect::<Vec<_>>(), expected);
        assert!(all.iter().all(|&(key, value)| self.model[&bits(key)] == value), "values of all pairs");
    }
}

/// Returns `len` random keys below a limit, and values.
fn pairs<K: Key, V: Value>(seed: u64, len: usize, below: u64) -> (Vec<K>, Vec<V>) {
    let key = |x: u64| K::from_code(K::Code::from_u64(x % below));
    (random(seed).take(len).map(key).collect(), random(seed + 1).take(len).map(value).collect())
}

/// Returns the value with the lower bits of a number.
fn value<V: Value>(x: u64) -> V {
    let bytes = x.to_le_bytes();
    bytemuck::pod_read_unaligned(&bytes[..size_of::<V>()])
}

/// Returns the numbers of a range.
fn numbers(range: std::ops::Range<u64>) -> Vec<u32> {
    range.map(|x| x as u32).collect()
}
