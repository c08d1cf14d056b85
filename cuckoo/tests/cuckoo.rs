//! What is the table's own: options, growth, refusal, layouts; against `HashMap`, on every device.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::dictionary::upload_values;
use gpu_conformance::{adversarial_streams, cases, is_checked, is_gpu, run};
use gpu_cuckoo::translate::{self, Translate};
use gpu_cuckoo::{GpuCuckoo, Options, WhenFull};
use gpu_primitives::dictionary::Key;
use gpu_primitives::{Device, DeviceSlice, Error, Stream};
use std::collections::HashMap;
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        small_empty_table,
        small_one_key,
        small_shapes,
        small_keys_and_values,
        extreme_keys,
        duplicates,
        one_key_many_times,
        many_tiles,
        insert_replaces,
        insert_grows,
        insert_refuses,
        insert_undoes,
        build_refuses,
        deleted_slots_are_reused,
        clear_and_rebuild,
        random_histories,
        any_order_of_threads,
        inside_a_kernel,
        misaligned_values,
        bad_options,
        memory,
        large,
    ])
}

/// What both sides can be asked.
struct Pair<K: Key, V: Pod> {
    stream: Stream,
    table: GpuCuckoo<K, V>,
    model: HashMap<u64, V>,
}

fn bits<K: Key>(key: K) -> u64 {
    use gpu_primitives::dictionary::KeyCode;
    key.code().to_u64()
}

impl<K: Key + Debug, V: Pod + Debug + PartialEq> Pair<K, V> {
    fn build(stream: &Stream, keys: &[K], values: &[V], options: Options) -> Self {
        let (on_device, with) = (stream.upload(keys).unwrap(), upload_values(stream, values));
        let table = GpuCuckoo::bulk_build(stream, &on_device, &with, options).unwrap();
        let model = keys.iter().zip(values).map(|(&key, &value)| (bits(key), value)).collect();
        Self { stream: stream.clone(), table, model }
    }

    fn insert(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        let (on_device, with) = (self.stream.upload(keys).unwrap(), upload_values(&self.stream, values));
        self.table.insert(&self.stream, &on_device, &with)?;
        self.model.extend(keys.iter().zip(values).map(|(&key, &value)| (bits(key), value)));
        Ok(())
    }

    fn delete(&mut self, keys: &[K]) {
        self.table.delete(&self.stream, &self.stream.upload(keys).unwrap()).unwrap();
        for &key in keys {
            self.model.remove(&bits(key));
        }
    }

    /// Asks for these keys, for the number of keys, and for all pairs.
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

/// So many keys of a type, and values.
fn pairs<K: Key, V: Pod>(seed: u64, len: usize, below: u64) -> (Vec<K>, Vec<V>) {
    use gpu_primitives::dictionary::KeyCode;
    let key = |x: u64| K::from_code(K::Code::from_u64(x % below));
    (random(seed).take(len).map(key).collect(), random(seed + 1).take(len).map(value).collect())
}

/// A value of a number's bits, of up to 8 bytes.
fn value<V: Pod>(x: u64) -> V {
    let bytes = x.to_le_bytes();
    bytemuck::pod_read_unaligned(&bytes[..size_of::<V>()])
}

/// The numbers below.
fn numbers(range: std::ops::Range<u64>) -> Vec<u32> {
    range.map(|x| x as u32).collect()
}

fn small_empty_table(device: &Device) {
    let stream = device.stream().unwrap();
    let asked = [0u32, 1, 2, u32::MAX, 77];
    for options in [Options::new(), Options::new().hashes(4).bucket_width(4), Options::new().hashes(3)] {
        let built = Pair::<u32, u32>::build(&stream, &[], &[], options.clone());
        built.check(&asked);
        built.check(&[]);
        let table = GpuCuckoo::<u32, u32>::new(&stream, 100, options).unwrap();
        assert!(table.is_empty(&stream).unwrap());
        let mut pair = Pair { stream: stream.clone(), table, model: HashMap::new() };
        pair.check(&asked);
        pair.delete(&asked);
        pair.insert(&[], &[]).unwrap();
        pair.delete(&[]);
        pair.check(&asked);
    }
}

fn small_one_key(device: &Device) {
    let stream = device.stream().unwrap();
    for key in [0, 1, 1000, u32::MAX] {
        let mut pair = Pair::build(&stream, &[key], &[key ^ 5], Options::new());
        let asked = [0, 1, 2, 999, 1000, 1001, u32::MAX];
        pair.check(&asked);
        pair.delete(&[key]);
        pair.check(&asked);
        pair.insert(&[key], &[9]).unwrap();
        pair.check(&asked);
    }
}

/// Every width and number of hash functions, all small numbers: those that mark free slots are among them.
fn small_shapes(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        for hashes in [2, 3, 4] {
            let options = Options::new().bucket_width(width).hashes(hashes).load_factor(0.9);
            let (keys, values) = (numbers(0..700), numbers(1000..1700));
            let mut pair = Pair::build(&stream, &keys, &values, options);
            pair.check(&numbers(0..2100));
            pair.delete(&numbers(0..500));
            pair.check(&numbers(0..1000));
            pair.insert(&numbers(300..600), &numbers(5000..5300)).unwrap();
            pair.check(&numbers(0..1000));
        }
    }
}

/// All types of keys, values of all sizes: what the GPU has kernels for.
fn small_keys_and_values(device: &Device) {
    fn check<K: Key + Debug, V: Pod + Debug + PartialEq>(stream: &Stream) {
        let (keys, values) = pairs::<K, V>(1, 300, u64::MAX);
        for width in [4, 8] {
            let mut pair = Pair::build(stream, &keys[..200], &values[..200], Options::new().bucket_width(width));
            pair.insert(&keys[100..], &values[..200]).unwrap();
            pair.delete(&keys[..50]);
            pair.check(&keys);
        }
    }
    fn check_key<K: Key + Debug>(stream: &Stream) {
        check::<K, ()>(stream);
        check::<K, i32>(stream);
        check::<K, [u8; 4]>(stream);
        check::<K, i64>(stream);
        check::<K, [u16; 4]>(stream);
    }
    let stream = device.stream().unwrap();
    check_key::<u32>(&stream);
    check_key::<u64>(&stream);
    check::<i32, u32>(&stream);
    check::<i64, u32>(&stream);
    check::<f32, u64>(&stream);
    check::<f64, u32>(&stream);
}

fn extreme_keys(device: &Device) {
    fn check<K: Key + Debug>(stream: &Stream, keys: &[K], others: &[K]) {
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let mut pair = Pair::build(stream, keys, &values, Options::new());
        pair.check(keys);
        pair.check(others);
        pair.delete(&keys[..2]);
        pair.check(keys);
        pair.insert(others, &vec![7; others.len()]).unwrap();
        pair.check(keys);
        pair.check(others);
    }
    let stream = device.stream().unwrap();
    check(&stream, &[0, u32::MAX, 1, 1 << 31], &[2, u32::MAX - 1]);
    check(&stream, &[0, u64::MAX, 1, 1 << 63, 1 << 32], &[2, u64::MAX - 1, 1 << 31]);
    check(&stream, &[0, i32::MIN, i32::MAX, -1], &[1, -2]);
    check(&stream, &[0, i64::MIN, i64::MAX, -1], &[1, -2]);
    let other_nan = f32::from_bits(f32::NAN.to_bits() + 1);
    check(&stream, &[0.0f32, -0.0, f32::NAN, f32::INFINITY], &[-f32::NAN, other_nan, f32::MIN_POSITIVE]);
    check(&stream, &[0.0f64, -0.0, f64::NAN, f64::NEG_INFINITY], &[-f64::NAN, f64::MIN_POSITIVE]);
    // All of the small keys, and the same number of large ones.
    let len = if is_checked(device) { 500 } else { 3000 };
    let mut keys = numbers(0..len);
    keys.extend((0..len as u32).map(|x| u32::MAX - x));
    let values = keys.clone();
    Pair::build(&stream, &keys, &values, Options::new()).check(&keys);
}

/// Few keys, many times each: the last one counts, wherever its fellows are.
fn duplicates(device: &Device) {
    let stream = device.stream().unwrap();
    let lens: &[usize] = if is_checked(device) { &[3000] } else { &[3000, 20_000] };
    for &len in lens {
        for below in [1, 7, 100, len as u64 / 2] {
            for options in [Options::new(), Options::new().bucket_width(4).load_factor(0.95)] {
                let (keys, values) = pairs::<u32, u32>(len as u64 + below, len, below);
                let mut pair = Pair::build(&stream, &keys, &values, options);
                pair.check(&numbers(0..2 * below));
                let (keys, values) = pairs::<u32, u32>(below, len / 3, 2 * below);
                pair.insert(&keys, &values).unwrap();
                pair.check(&numbers(0..3 * below));
            }
        }
    }
}

fn one_key_many_times(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 5000 } else { 100_000 };
    let values: Vec<u64> = (0..len).collect();
    let pair = Pair::build(&stream, &vec![42u64; len as usize], &values, Options::new());
    pair.check(&[41, 42, 43]);
    assert_eq!(pair.model[&42], len - 1);
}

/// More tiles than one, than 256 (two passes), and lengths around them.
fn many_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lens = vec![3270, 3280, 6500, 10_000];
    if !is_checked(device) {
        lens.push(1 << 16);
    }
    for len in lens {
        let (keys, values) = pairs::<u32, u32>(5, len, u64::MAX);
        let pair = Pair::build(&stream, &keys, &values, Options::new());
        pair.check(&keys);
        pair.check(&numbers(0..1000));
    }
    // Almost empty: many tiles of few keys.
    if !is_checked(device) {
        let (keys, values) = pairs::<u64, u32>(6, 6000, u64::MAX);
        let pair = Pair::build(&stream, &keys, &values, Options::new().load_factor(0.01));
        pair.check(&keys);
    }
}

fn insert_replaces(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &numbers(0..1000), &numbers(0..1000), Options::new().load_factor(0.6));
    // Half of them are there already; all come twice.
    let keys: Vec<u32> = (500..1200).chain(500..1200).collect();
    let values: Vec<u32> = (0..1400).map(|x| 10_000 + x).collect();
    pair.insert(&keys, &values).unwrap();
    assert_eq!(pair.model[&500], 10_700);
    pair.check(&numbers(0..2000));
    assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0);
}

fn insert_grows(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &[5u32], &[50u64], Options::new());
    let before = pair.table.stats(&stream).unwrap().capacity;
    for round in 0..6 {
        let (keys, values) = pairs::<u32, u64>(round, 400, 100_000);
        pair.insert(&keys, &values).unwrap();
        pair.check(&keys);
        pair.check(&[5]);
    }
    let stats = pair.table.stats(&stream).unwrap();
    assert!(stats.capacity > before && stats.rebuilds > 0 && stats.load <= 0.95, "{stats:?}");
}

fn insert_refuses(device: &Device) {
    let stream = device.stream().unwrap();
    let options = Options::new().when_full(WhenFull::Refuse);
    let mut pair = Pair::build(&stream, &numbers(0..800), &numbers(0..800), options);
    let slots = pair.table.stats(&stream).unwrap().capacity as u64;
    let model = pair.model.clone();
    // Replaces some, and has too many new ones.
    let error = pair.insert(&numbers(700..2000), &numbers(0..1300)).unwrap_err();
    let Error::TableFull { unplaced, keys: 2000, slots: told, .. } = error else { panic!("{error}") };
    assert_eq!((unplaced, told), (2000 - (slots as f64 * 0.95) as u64, slots));
    assert_eq!(pair.model, model);
    pair.check(&numbers(0..2000));
    pair.insert(&numbers(700..900), &numbers(0..200)).unwrap();
    pair.check(&numbers(0..2000));
}

/// Insertions that fail half-way, since nobody may be displaced: the table grows, or is as before.
fn insert_undoes(device: &Device) {
    let stream = device.stream().unwrap();
    for when_full in [WhenFull::Grow, WhenFull::Refuse] {
        for evictions in [0, 3] {
            let options = Options::new().bucket_width(4).evictions(evictions).reseeds(1).when_full(when_full);
            let table = GpuCuckoo::<u32, u32>::new(&stream, 1700, options).unwrap();
            let mut pair = Pair { stream: stream.clone(), table, model: HashMap::new() };
            pair.insert(&numbers(0..500), &numbers(7..507)).unwrap();
            assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0);
            pair.check(&numbers(0..1100));
            let result = pair.insert(&numbers(400..2010), &numbers(3000..4610));
            match when_full {
                WhenFull::Grow => {
                    result.unwrap();
                    assert!(pair.table.stats(&stream).unwrap().rebuilds > 0);
                }
                WhenFull::Refuse => {
                    let error = result.unwrap_err();
                    assert!(matches!(error, Error::TableFull { unplaced: 1.., keys: 2010, .. }), "{error}");
                    assert_eq!(pair.model.len(), 500);
                }
            }
            pair.check(&numbers(0..2100));
        }
    }
}

fn build_refuses(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&numbers(0..5000)).unwrap();
    let options = Options::new().bucket_width(4).load_factor(0.95).evictions(0).reseeds(2);
    let error = GpuCuckoo::bulk_build(&stream, &keys, &keys, options.clone().when_full(WhenFull::Refuse)).unwrap_err();
    assert!(matches!(error, Error::TableFull { unplaced: 1.., keys: 5000, .. }), "{error}");
    let table = GpuCuckoo::bulk_build(&stream, &keys, &keys, options).unwrap();
    let pair = Pair { stream: stream.clone(), table, model: (0..5000).map(|x| (u64::from(x), x)).collect() };
    pair.check(&numbers(0..6000));
    assert!(pair.table.stats(&stream).unwrap().rebuilds >= 3);
}

/// Deleting and inserting again and again takes no more slots.
fn deleted_slots_are_reused(device: &Device) {
    let stream = device.stream().unwrap();
    let options = Options::new().load_factor(0.9).when_full(WhenFull::Refuse);
    let mut pair = Pair::build(&stream, &numbers(0..2000), &numbers(0..2000), options);
    for round in 1..if is_checked(device) { 5 } else { 20 } {
        let (old, new) = (2000 * (round - 1), 2000 * round);
        pair.delete(&numbers(old..old + 2000));
        pair.insert(&numbers(new..new + 2000), &numbers(0..2000)).unwrap();
    }
    pair.check(&numbers(0..10_000));
}

fn clear_and_rebuild(device: &Device) {
    let stream = device.stream().unwrap();
    let mut pair = Pair::build(&stream, &numbers(0..3000), &numbers(0..3000), Options::new());
    pair.delete(&numbers(100..3000));
    pair.table.rebuild(&stream, 0).unwrap();
    pair.check(&numbers(0..3000));
    let stats = pair.table.stats(&stream).unwrap();
    assert!(stats.capacity < 300, "{stats:?}");
    pair.table.clear(&stream).unwrap();
    pair.model.clear();
    pair.check(&numbers(0..3000));
    assert_eq!(pair.table.stats(&stream).unwrap().capacity, stats.capacity);
    pair.insert(&numbers(0..1000), &numbers(0..1000)).unwrap();
    pair.check(&numbers(0..3000));
}

fn random_histories(device: &Device) {
    let long = std::env::var_os("GPU_PRIMITIVES_LONG").is_some();
    let (histories, steps) = match (long, is_checked(device)) {
        (true, false) => (60, 40),
        (true, true) => (10, 30),
        (false, false) => (6, 10),
        (false, true) => (2, 6),
    };
    let stream = device.stream().unwrap();
    for history in 0..histories {
        let mut dice = random(1000 + history);
        let mut throw = |below: u64| dice.next().unwrap() % below;
        // Few different keys, so that much happens to each.
        let below = [50, 2000, 1 << 40][history as usize % 3];
        let options = Options::new()
            .load_factor([0.5, 0.8, 0.95][throw(3) as usize])
            .bucket_width([4, 8][throw(2) as usize])
            .hashes(2 + throw(3) as u32)
            .seed(history);
        let (keys, values) = pairs::<u64, u64>(throw(1 << 40), throw(2000) as usize, below);
        let mut pair = Pair::build(&stream, &keys, &values, options);
        for _ in 0..steps {
            let (mut keys, values) = pairs::<u64, u64>(throw(1 << 40), throw(1000) as usize, below);
            // Half of them keys that are there.
            let known: Vec<u64> = pair.model.keys().copied().take(keys.len() / 2).collect();
            keys[..known.len()].copy_from_slice(&known);
            match throw(8) {
                0..4 => pair.insert(&keys, &values).unwrap(),
                4..7 => pair.delete(&keys),
                _ => pair.table.rebuild(&stream, throw(3000) as usize).unwrap(),
            }
            pair.check(&keys);
        }
    }
}

/// Blocks and threads in orders that no GPU would show: locks and compare-and-exchange do not depend on it.
fn any_order_of_threads(device: &Device) {
    let (keys, values) = pairs::<u32, u32>(11, 900, 600);
    let tight = Options::new().bucket_width(4).load_factor(0.9);
    for (seed, stream) in adversarial_streams(device, 4).take(if is_checked(device) { 200 } else { 20 }) {
        let mut pair = Pair::build(&stream, &keys, &values, tight.clone().seed(seed));
        pair.insert(&numbers(500..800), &numbers(0..300)).unwrap();
        pair.delete(&numbers(0..100));
        pair.check(&numbers(0..900));
    }
}

/// A kernel of somebody's own that asks the table.
fn inside_a_kernel(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&numbers(0..1000)).unwrap();
    let values = stream.upload(&numbers(1..1001)).unwrap();
    let table = GpuCuckoo::bulk_build(&stream, &keys, &values, Options::new()).unwrap();
    let mut walkers = stream.upload(&numbers(0..1500)).unwrap();
    let kernel = Translate::new(table.view(&stream).unwrap(), 10, walkers.view_mut(&stream).unwrap());
    // SAFETY: a thread per number; the table is not changed.
    unsafe { stream.launch(kernel, 1500usize.div_ceil(translate::THREADS as usize)).unwrap() };
    let expected: Vec<u32> = (0..1500).map(|x: u32| if x < 1000 { (x + 10).min(1000) } else { x }).collect();
    assert_eq!(walkers.to_vec(&stream).unwrap(), expected);
    assert!(matches!(table.view::<u32, 4>(&stream).unwrap_err(), Error::InvalidOption { .. }));
    assert!(matches!(table.view::<u64, 8>(&stream).unwrap_err(), Error::InvalidOption { .. }));
}

/// Memory of others, at an odd address.
fn misaligned_values(device: &Device) {
    if is_gpu(device) {
        return;
    }
    let stream = device.stream().unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    // SAFETY: within the vector, which outlives the slice; bytes may lie anywhere.
    let values = unsafe { DeviceSlice::<[u8; 4]>::from_raw_parts(device, bytes.as_ptr().add(1).cast(), 60) };
    let keys = numbers(0..60);
    let on_device = stream.upload(&keys).unwrap();
    let mut table = GpuCuckoo::bulk_build(&stream, &on_device, values, Options::new()).unwrap();
    table.insert(&stream, &on_device, values).unwrap();
    let expected: Vec<_> = (0..60).map(|i| Some([1, 2, 3, 4].map(|byte| 4 * i + byte))).collect();
    assert_eq!(table.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap(), expected);
}

fn bad_options(device: &Device) {
    let stream = device.stream().unwrap();
    let three = stream.upload(&[1u32, 2, 3]).unwrap();
    for options in [
        Options::new().load_factor(0.0),
        Options::new().load_factor(-1.0),
        Options::new().load_factor(0.96),
        Options::new().load_factor(f64::NAN),
        Options::new().hashes(1),
        Options::new().hashes(5),
        Options::new().bucket_width(0),
        Options::new().bucket_width(16),
    ] {
        let error = GpuCuckoo::bulk_build(&stream, &three, &three, options.clone()).unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. }), "{options:?}: {error}");
        assert!(GpuCuckoo::<u32, ()>::new(&stream, 5, options).is_err());
    }
    let error = GpuCuckoo::<u32, u32>::new(&stream, usize::MAX, Options::new()).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

/// 10.1 bytes per pair of 4 + 4 bytes at load 0.8.
fn memory(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u32, u32>(12, 10_000, u64::MAX);
    let pair = Pair::build(&stream, &keys, &values, Options::new());
    let stats = pair.table.stats(&stream).unwrap();
    let per_key = stats.bytes as f64 / stats.len as f64;
    assert!((9.9..10.1).contains(&per_key), "{per_key}");
    assert_eq!((stats.len, stats.rebuilds), (pair.model.len(), 0));
    assert!((stats.load - 0.8).abs() < 0.01, "{stats:?}");
}

fn large(device: &Device) {
    let len = if is_gpu(device) {
        1 << 23
    } else if is_checked(device) {
        1 << 14
    } else {
        1 << 17
    };
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u32, u32>(13, len, u64::MAX);
    for width in [4, 8] {
        let mut pair = Pair::build(&stream, &keys, &values, Options::new().bucket_width(width).load_factor(0.9));
        pair.delete(&keys[..len / 3]);
        pair.insert(&keys[len / 4..len / 2], &values[..len / 4]).unwrap();
        if width == 8 {
            pair.check(&keys);
        }
    }
}
