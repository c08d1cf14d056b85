//! The same answers from native bodies, with each number of workers, and from simulated threads.
//!
//! Which slot a key has depends on the order of the threads. What a table answers does not.

use crate::{bits, pairs, seeded, value};
use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::native_devices;
use gpu_cuckoo::{GpuCuckoo, Key, Options, PlainCuckoo, PlainKey, Value, WhenFull};
use gpu_dictionary_conformance::upload_values;
use gpu_primitives::operator::map;
use gpu_primitives::scan::{Monoid, Sum};
use gpu_primitives::{CpuOptions, Device, Stream};
use std::fmt::Debug;

/// Bytes that describe what a table has answered.
#[derive(Default)]
struct Answers(Vec<u8>);

impl Answers {
    fn add<T: Pod>(&mut self, answers: &[T]) {
        self.0.extend((answers.len() as u64).to_le_bytes());
        self.0.extend(bytemuck::cast_slice(answers));
    }

    /// Adds the number of keys, all pairs, and the answers to lookups.
    fn look<K: Key, V: Value>(&mut self, stream: &Stream, table: &GpuCuckoo<K, V>, asked: &[K]) {
        let on_device = stream.upload(asked).unwrap();
        let found = table.lookup(stream, &on_device).unwrap();
        self.add(&found.values.to_vec(stream).unwrap());
        self.add(&found.found.to_vec(stream).unwrap());
        self.add(&table.contains(stream, &on_device).unwrap().to_vec(stream).unwrap());
        let all = table.export(stream).unwrap();
        self.add(&all.keys.to_vec(stream).unwrap());
        self.add(&all.values.to_vec(stream).unwrap());
        self.add(&[table.len(stream).unwrap() as u64]);
    }
}

/// Runs with simulated threads, and with native bodies and each number of workers, and compares.
fn compare(device: &Device, what: &str, f: impl Fn(&Stream) -> Answers) {
    let natives = native_devices(device);
    if natives.is_empty() {
        return;
    }
    let simulated = Device::cpu_with(CpuOptions { simulated: true, ..CpuOptions::default() });
    let expected = f(&simulated.stream().unwrap()).0;
    for device in natives {
        let found = f(&device.stream().unwrap()).0;
        let different = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
        assert!(found == expected, "{what}, on {}: {different} bytes differ", device.name());
    }
}

/// The edges of warps, blocks, tiles, chunks and parts.
const LENS: [usize; 17] = [0, 1, 7, 8, 9, 31, 257, 2047, 2048, 2049, 3277, 4095, 4096, 4097, 8193, 16_383, 2 * 8192];

/// Builds, inserts, updates and deletes with repeated keys, and asks in between. The table grows, or the load is high.
fn history<K: Key + Debug, V: Value + Debug + PartialEq>(stream: &Stream, n: usize, options: Options) -> Answers {
    let mut answers = Answers::default();
    let below = (n as u64).max(2) * 3 / 2;
    let (keys, values) = pairs::<K, V>(n as u64, n, below);
    let (others, other_values) = pairs::<K, V>(n as u64 + 7, n / 2 + 1, 2 * below);
    let asked: Vec<K> = [&keys[..n.min(500)], &others].concat();
    let upload = |keys: &[K], values: &[V]| (stream.upload(keys).unwrap(), upload_values(stream, values));
    let pairs = upload(&keys, &values);
    let mut table = GpuCuckoo::bulk_build(stream, (&pairs.0, &pairs.1), options).unwrap();
    answers.look(stream, &table, &asked);
    let gone: Vec<K> = [&keys[..n / 3], &others[..n / 9], &keys[..n / 9]].concat();
    let gone = stream.upload(&gone).unwrap();
    table.delete(stream, &gone).unwrap();
    answers.look(stream, &table, &asked);
    let other_pairs = upload(&others, &other_values);
    answers.add(&[u8::from(table.insert(stream, (&other_pairs.0, &other_pairs.1)).is_ok())]);
    answers.look(stream, &table, &asked);
    answers.add(&[u8::from(table.update(stream, (&pairs.0, &pairs.1), &gone).is_ok())]);
    answers.look(stream, &table, &asked);
    let removed = table.remove(stream, &other_pairs.0).unwrap();
    answers.add(&removed.values.to_vec(stream).unwrap());
    answers.add(&removed.found.to_vec(stream).unwrap());
    answers.look(stream, &table, &asked);
    table.rebuild(stream, 0).unwrap();
    answers.look(stream, &table, &asked);
    answers
}

/// Compares histories of tables with two widths of buckets.
fn compare_histories<K: Key + Debug, V: Value + Debug + PartialEq>(device: &Device, lens: &[usize]) {
    for &n in lens {
        for (width, hashes, load) in [(8, 2, 0.8), (4, 3, 0.95)] {
            let options = seeded().bucket_width(width).hashes(hashes).load_factor(load);
            compare(device, &format!("{n} keys, buckets of {width}"), |stream| {
                history::<K, V>(stream, n, options.clone())
            });
        }
    }
}

pub fn same_histories(device: &Device) {
    compare_histories::<u32, u32>(device, &LENS);
    compare_histories::<u64, u64>(device, &[0, 1, 9, 1638, 2048, 4097, 17_000]);
    compare_histories::<u32, ()>(device, &[0, 1, 9, 3276, 4097, 17_000]);
    compare_histories::<u64, ()>(device, &[1, 2049]);
    compare_histories::<i64, f32>(device, &[0, 9, 4097]);
    compare_histories::<f32, u64>(device, &[1, 2049, 17_000]);
    compare_histories::<u32, u32>(device, &[5 * 8192]);
}

/// Few different keys in a table of many tiles, and in one of one tile.
pub fn same_repeats(device: &Device) {
    for (n, different, capacity) in [(20_000, 5, 10_000), (40_000, 300, 20_000), (9000, 1, 0), (20_000, 3000, 20_000)] {
        compare(device, &format!("{n} pairs of {different} keys"), |stream| {
            let mut answers = Answers::default();
            let (keys, values) = pairs::<u32, u64>(3, n, different);
            let (on_device, values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            let options = seeded().capacity(capacity);
            let table = GpuCuckoo::bulk_build(stream, (&on_device, &values), options.clone()).unwrap();
            answers.look(stream, &table, &keys[..50]);
            let mut table = GpuCuckoo::<u32, u64>::new(stream, options).unwrap();
            table.insert(stream, (&on_device, &values)).unwrap();
            answers.look(stream, &table, &keys[..50]);
            table.delete(stream, &on_device).unwrap();
            answers.look(stream, &table, &keys[..50]);
            answers
        });
    }
}

/// A table that may not grow takes batches until it is full, and stays as it is after a failure.
pub fn same_refusals(device: &Device) {
    for (width, hashes) in [(8, 2), (4, 4)] {
        compare(device, &format!("a full table with buckets of {width}"), |stream| {
            let mut answers = Answers::default();
            let options = seeded().bucket_width(width).hashes(hashes).when_full(WhenFull::Refuse).capacity(3000);
            let mut table = GpuCuckoo::<u32, u32>::new(stream, options.load_factor(0.9)).unwrap();
            for batch in 0..7 {
                let (keys, values) = pairs::<u32, u32>(batch, 700, 20_000);
                let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
                answers.add(&[u8::from(table.insert(stream, pairs).is_ok())]);
                answers.look(stream, &table, &keys);
            }
            answers
        });
    }
}

/// Upserts with repeated keys, and operations on all pairs.
pub fn same_operations(device: &Device) {
    fn upserts<K: Key + Debug, V: Value + Debug + PartialEq>(
        stream: &Stream,
        n: usize,
        table: &mut GpuCuckoo<K, V>,
        answers: &mut Answers,
    ) where
        Sum: Monoid<V>,
    {
        for (seed, below) in [(1, n as u64 / 3 + 2), (2, 1 << 40), (3, n as u64 + 2)] {
            let keys: Vec<K> = pairs::<K, V>(seed, n, below).0;
            let values: Vec<V> = random(seed).take(n).map(|x| value(x % 1000)).collect();
            let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
            table.upsert(stream, pairs, Sum).unwrap();
            answers.look(stream, table, &keys);
        }
    }

    for n in [0, 1, 9, 257, 4097, 17_000] {
        compare(device, &format!("{n} pairs"), |stream| {
            let mut answers = Answers::default();
            let mut table = GpuCuckoo::<u32, u32>::new(stream, seeded()).unwrap();
            upserts(stream, n, &mut table, &mut answers);
            table.retain(stream, map!(|key: u32, value: u32| -> u8 { (key ^ value) as u8 & 1 })).unwrap();
            answers.look(stream, &table, &[0, 1, 2, 3]);
            table.for_each(stream, map!(|key: u32, value: u32| -> u32 { key + 3 * value })).unwrap();
            answers.look(stream, &table, &[0, 1, 2, 3]);
            let mut table = GpuCuckoo::<u64, u64>::new(stream, seeded().bucket_width(4)).unwrap();
            upserts(stream, n, &mut table, &mut answers);
            table.for_each(stream, map!(|key: u64, value: u64| -> u64 { key ^ value })).unwrap();
            table.retain(stream, map!(|key: u64, _value: u64| -> u8 { (key % 3) as u8 })).unwrap();
            answers.look(stream, &table, &[0, 1, 2, 3]);
            answers
        });
    }
}

/// Keys of any plain type: of one to eight words, and of bytes that are no whole words.
pub fn same_plain_keys(device: &Device) {
    fn compare_keys<K: PlainKey + Debug, V: Pod + Debug>(
        device: &Device,
        key: impl Fn(u64) -> K + Copy,
        value: impl Fn(u64) -> V + Copy,
    ) {
        for n in [0, 1, 9, 257, 4097, 17_000] {
            compare(device, &format!("{n} keys of {} bytes", size_of::<K>()), |stream| {
                let mut answers = Answers::default();
                let mut table = PlainCuckoo::<K, V>::new(stream, seeded()).unwrap();
                for seed in 0..3 {
                    let keys: Vec<K> = random(seed).take(n).map(|x| key(x % (n as u64 + 3))).collect();
                    let values: Vec<V> = random(seed + 9).take(n).map(value).collect();
                    let values = if size_of::<V>() == 0 { Vec::new() } else { values };
                    let on_device = stream.upload(&keys).unwrap();
                    table.insert(stream, (&on_device, &stream.upload(&values).unwrap())).unwrap();
                    table.delete(stream, &stream.upload(&keys[..n / 5]).unwrap()).unwrap();
                    let found = table.lookup(stream, &on_device).unwrap();
                    answers.add(&found.values.to_vec(stream).unwrap());
                    answers.add(&found.found.to_vec(stream).unwrap());
                    answers.add(&[table.len(stream).unwrap() as u64]);
                }
                answers
            });
        }
    }

    compare_keys::<[u32; 8], [u8; 5]>(device, |x| [x as u32; 8], |x| x.to_le_bytes()[..5].try_into().unwrap());
    compare_keys::<[u8; 7], u32>(device, |x| (x << 8).to_le_bytes()[..7].try_into().unwrap(), |x| x as u32);
    compare_keys::<[u16; 3], ()>(device, |x| [x as u16, 7, (x >> 16) as u16], |_| ());
    compare_keys::<u64, u64>(device, |x| x << 32 | 5, |x| x);
}

/// Keys with the same bits are the same keys, on every device.
pub fn same_bits(device: &Device) {
    let keys = [0.0f64, -0.0, f64::NAN, f64::INFINITY, 5e-324];
    compare(device, "floats", |stream| {
        let mut answers = Answers::default();
        let on_device = stream.upload(&keys).unwrap();
        let table = GpuCuckoo::build_set(stream, &on_device, seeded()).unwrap();
        answers.look(stream, &table, &keys);
        answers.add(&keys.map(bits));
        answers
    });
}
