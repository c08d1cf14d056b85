//! Upserts: what is there is combined with what comes.

use crate::{Pair, bits, numbers, pairs, seeded};
use bytemuck::{Pod, Zeroable};
use gpu_conformance::{adversarial_streams, is_checked};
use gpu_cuckoo::{Key, Value, WhenFull};
use gpu_dictionary::Upsertion;
use gpu_primitives::operator::{monoid, operator};
use gpu_primitives::scan::{Max, Min, Monoid, Sum};
use gpu_primitives::{Device, Error};
use std::fmt::Debug;

impl<K: Key + Debug, V: Value + Debug + PartialEq> Pair<K, V> {
    fn upsert<M: Upsertion<V>>(&mut self, keys: &[K], values: &[V], operation: M) -> Result<(), Error> {
        let pairs = (&self.stream.upload(keys).unwrap(), &self.stream.upload(values).unwrap());
        self.table.upsert(&self.stream, pairs, operation)?;
        for (&key, &value) in keys.iter().zip(values) {
            let old = self.model.get(&bits(key)).copied();
            self.model.insert(bits(key), old.map_or(value, |old| operation.combine(old, value)));
        }
        Ok(())
    }
}

/// Functions `x -> a * x + b`, one after the other: associative, but not commutative.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Compose;

#[operator]
impl Monoid<[u16; 2]> for Compose {
    fn identity(&self) -> [u16; 2] {
        [1, 0]
    }

    fn combine(&self, f: [u16; 2], g: [u16; 2]) -> [u16; 2] {
        [f[0].wrapping_mul(g[0]), g[0].wrapping_mul(f[1]).wrapping_add(g[1])]
    }
}

/// New keys, present keys, keys that are repeated and keys that are not; buckets of both widths.
pub fn upsert_combines(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        let options = seeded().bucket_width(width).load_factor(0.5);
        let mut pair = Pair::build(&stream, &numbers(0..300), &numbers(0..300), options.clone());
        pair.upsert(&numbers(200..400), &numbers(1000..1200), Sum).unwrap();
        pair.check(&numbers(0..500));
        let (keys, values) = pairs::<u32, u32>(3, 700, 450);
        pair.upsert(&keys, &values, Sum).unwrap();
        pair.upsert(&keys, &values, Max).unwrap();
        pair.upsert(&keys[..200], &values[300..500], Min).unwrap();
        pair.upsert(&keys, &values, monoid!(0, |a: u32, b: u32| a ^ b)).unwrap();
        pair.upsert(&[], &[], Sum).unwrap();
        pair.check(&numbers(0..500));
    }
}

/// The operation need not be commutative: values are combined in the order of the pairs, after what is there.
pub fn upsert_in_order(device: &Device) {
    let stream = device.stream().unwrap();
    let values: Vec<[u16; 2]> = (0..600).map(|x| [2 * x + 1, x]).collect();
    let (keys, _) = pairs::<u32, u32>(8, 600, 60);
    let mut pair = Pair::build(&stream, &numbers(0..20), &values[..20], seeded());
    pair.upsert(&keys, &values, Compose).unwrap();
    pair.check(&numbers(0..80));
}

/// All types of keys, and values of both sizes.
pub fn upsert_types(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u64, u64>(2, 300, 200);
    let mut pair = Pair::build(&stream, &keys[..100], &values[..100], seeded());
    pair.upsert(&keys, &values, Sum).unwrap();
    pair.check(&keys);
    let floats: Vec<f32> = keys.iter().map(|&key| key as f32 - 100.0).collect();
    let addends: Vec<f64> = (0..300).map(f64::from).collect();
    let mut pair = Pair::build(&stream, &floats[..100], &addends[..100], seeded().bucket_width(4));
    pair.upsert(&floats, &addends, Sum).unwrap();
    pair.check(&floats);
    let signed: Vec<i64> = keys.iter().map(|&key| key as i64 - 100).collect();
    let values: Vec<i32> = (-150..150).collect();
    let mut pair = Pair::build(&stream, &signed[..100], &values[..100], seeded());
    pair.upsert(&signed, &values, Min).unwrap();
    pair.check(&signed);
}

/// A table that grows while it counts, and one that may not.
pub fn upsert_grows_or_refuses(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::<u32, u64>::new(&stream, seeded());
    for round in 0..5 {
        let (keys, values) = pairs::<u32, u64>(round, 500, 3000);
        pair.upsert(&keys, &values, Sum).unwrap();
        pair.check(&numbers(0..3100));
    }
    assert!(pair.table.stats(&stream).unwrap().rebuilds > 1);

    // No key may be displaced, so some cannot be placed: the sums must be what they were.
    for evictions in [0, 3] {
        let options = seeded().bucket_width(4).evictions(evictions).reseeds(0).when_full(WhenFull::Refuse);
        let mut pair = Pair::<u32, u32>::new(&stream, options.capacity(1700));
        pair.upsert(&numbers(0..500), &numbers(7..507), Sum).unwrap();
        let error = pair.upsert(&numbers(400..2010), &numbers(3000..4610), Sum).unwrap_err();
        assert!(matches!(error, Error::TableFull { unplaced: 1.., keys: 2010, .. }), "{error}");
        pair.check(&numbers(0..2100));
    }
}

/// An operation that is not associative gives some values, and loses no key.
pub fn upsert_without_associativity(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u32, u32>(5, 900, 300);
    let mut pair = Pair::build(&stream, &keys[..200], &values[..200], seeded());
    let on_device = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let broken = monoid!(1, |a: u32, b: u32| a.wrapping_mul(3).wrapping_sub(b));
    pair.table.upsert(&stream, (&on_device.0, &on_device.1), broken).unwrap();
    let mut expected: Vec<u32> = keys.clone();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(pair.table.keys(&stream).unwrap().to_vec(&stream).unwrap(), expected);
    pair.table.delete(&stream, &on_device.0).unwrap();
    pair.model.clear();
    pair.check(&keys);
}

pub fn upsert_in_any_order_of_threads(device: &Device) {
    let (keys, values) = pairs::<u32, u32>(11, 300, 200);
    for (seed, stream) in adversarial_streams(device, 5).take(if is_checked(device) { 40 } else { 10 }) {
        let options = seeded().bucket_width(4).load_factor(0.9).seed(seed);
        let mut pair = Pair::build(&stream, &keys[..150], &values[..150], options);
        pair.upsert(&keys, &values, Sum).unwrap();
        pair.check(&numbers(0..250));
    }
}

/// A table with room: a few keys are repeated, or all of them are, in any order of threads. Some find all of their buckets
/// full. The values of a key are still combined in the order of the pairs.
pub fn upsert_repeats_in_order(device: &Device) {
    for (seed, stream) in adversarial_streams(device, 2).take(if is_checked(device) { 40 } else { 8 }) {
        for (width, every) in [(4, 1), (8, 1), (4, 50)] {
            let options = seeded().bucket_width(width).load_factor(0.9).seed(seed).capacity(3000);
            let mut pair = Pair::<u32, [u16; 2]>::new(&stream, options);
            let function = |x: u32| [2 * x as u16 + 1, x as u16];
            let present = numbers(0..1500);
            pair.upsert(&present, &present.iter().map(|&x| function(x)).collect::<Vec<_>>(), Compose).unwrap();
            // 300 present keys and 600 new ones; then some of them again, neighbours and far apart.
            let mut keys = numbers(1200..2100);
            keys.extend(numbers(1200..2100).into_iter().filter(|key| key % every == 0));
            keys.extend([1300, 1300, 2050, 2050, 2050]);
            let values: Vec<_> = (0..keys.len() as u32).map(|i| function(i + 7)).collect();
            pair.upsert(&keys, &values, Compose).unwrap();
            pair.check(&numbers(0..2300));
            let stats = pair.table.stats(&stream).unwrap();
            assert_eq!((stats.len, stats.rebuilds), (2100, 0), "seed {seed}");
        }
    }
}
