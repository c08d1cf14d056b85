//! Random histories against a `BTreeMap`, on every device.

use gpu_conformance::{cases, is_checked, run};
use gpu_lsm::{GpuLsm, Key};
use gpu_primitives::{Device, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        small_history,
        tiny_batches,
        batches_of_several_tiles,
        signed_and_float_keys,
        wide_keys_and_values,
        sets,
    ])
}

/// A small generator: what it gives depends on the seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// What a value of the dictionary is made of.
trait Value: bytemuck::Pod + PartialEq + Debug {
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

/// How a history goes.
struct Plan<K> {
    batch: usize,
    steps: usize,
    /// The most operations of a call.
    most: usize,
    /// The keys that there may be.
    domain: Vec<K>,
}

fn history<K: Key + Debug, V: Value>(stream: &Stream, seed: u64, plan: &Plan<K>) {
    let mut random = Random(seed);
    let mut lsm = GpuLsm::<K, V>::new(plan.batch).unwrap();
    let mut model: BTreeMap<K::Code, V> = BTreeMap::new();
    let values_of = |values: &[V]| stream.upload(if size_of::<V>() == 0 { &values[..0] } else { values }).unwrap();
    for step in 0..plan.steps {
        let pick = |random: &mut Random| plan.domain[random.below(plan.domain.len())];
        let some_keys = |random: &mut Random, most: usize| {
            let count = random.below(most + 1);
            (0..count).map(|_| pick(random)).collect::<Vec<K>>()
        };
        match random.below(8) {
            0..=2 => {
                let keys = some_keys(&mut random, plan.most);
                let values: Vec<V> = keys.iter().map(|_| V::of(random.next())).collect();
                lsm.insert(stream, &stream.upload(&keys).unwrap(), &values_of(&values)).unwrap();
                model.extend(keys.iter().map(|key| key.code()).zip(values));
            }
            3 => {
                let keys = some_keys(&mut random, plan.most);
                lsm.delete(stream, &stream.upload(&keys).unwrap()).unwrap();
                for key in &keys {
                    model.remove(&key.code());
                }
            }
            4..=5 => {
                let keys = some_keys(&mut random, plan.most);
                let deleted = some_keys(&mut random, plan.most / 2);
                let values: Vec<V> = keys.iter().map(|_| V::of(random.next())).collect();
                let insert = (&stream.upload(&keys).unwrap(), &values_of(&values));
                lsm.update(stream, insert, &stream.upload(&deleted).unwrap()).unwrap();
                model.extend(keys.iter().map(|key| key.code()).zip(values));
                for key in &deleted {
                    model.remove(&key.code());
                }
            }
            6 => lsm.cleanup(stream).unwrap(),
            _ => {
                let keys = some_keys(&mut random, 4 * plan.most);
                let values: Vec<V> = keys.iter().map(|_| V::of(random.next())).collect();
                lsm = GpuLsm::bulk_build(stream, plan.batch, &stream.upload(&keys).unwrap(), &values_of(&values))
                    .unwrap();
                model = keys.iter().map(|key| key.code()).zip(values).collect();
            }
        }
        check(stream, &lsm, &model, &mut random, plan, &format!("seed {seed}, step {step}"));
    }
}

/// Asks everything.
fn check<K: Key + Debug, V: Value>(
    stream: &Stream,
    lsm: &GpuLsm<K, V>,
    model: &BTreeMap<K::Code, V>,
    random: &mut Random,
    plan: &Plan<K>,
    when: &str,
) {
    let asked: Vec<K> = (0..random.below(300)).map(|_| plan.domain[random.below(plan.domain.len())]).collect();
    let on_device = stream.upload(&asked).unwrap();
    let expected: Vec<Option<V>> = asked.iter().map(|key| model.get(&key.code()).copied()).collect();
    assert_eq!(lsm.lookup(stream, &on_device).unwrap().to_vec(stream).unwrap(), expected, "lookup, {when}");
    let contains: Vec<u8> = expected.iter().map(|value| u8::from(value.is_some())).collect();
    assert_eq!(lsm.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), contains, "contains, {when}");

    let pair = |(&code, &value): (&K::Code, &V)| (code, value);
    let coded = |found: Vec<Option<(K, V)>>| -> Vec<_> {
        found.into_iter().map(|found| found.map(|(key, value)| (key.code(), value))).collect()
    };
    let above: Vec<_> =
        asked.iter().map(|key| model.range((Bound::Excluded(key.code()), Bound::Unbounded)).next().map(pair)).collect();
    assert_eq!(coded(lsm.successor(stream, &on_device).unwrap().to_vec(stream).unwrap()), above, "successor, {when}");
    let below: Vec<_> = asked.iter().map(|key| model.range(..key.code()).next_back().map(pair)).collect();
    assert_eq!(
        coded(lsm.predecessor(stream, &on_device).unwrap().to_vec(stream).unwrap()),
        below,
        "predecessor, {when}"
    );

    let other: Vec<K> = asked.iter().map(|_| plan.domain[random.below(plan.domain.len())]).collect();
    let high = stream.upload(&other).unwrap();
    let ranges: Vec<Vec<(K::Code, V)>> = asked
        .iter()
        .zip(&other)
        .map(|(low, high)| {
            if low.code() > high.code() {
                Vec::new()
            } else {
                model.range(low.code()..=high.code()).map(pair).collect()
            }
        })
        .collect();
    let counts: Vec<u64> = ranges.iter().map(|range| range.len() as u64).collect();
    assert_eq!(lsm.count(stream, &on_device, &high).unwrap().to_vec(stream).unwrap(), counts, "count, {when}");
    let found: Vec<Vec<(K::Code, V)>> = lsm
        .range(stream, &on_device, &high)
        .unwrap()
        .to_vec(stream)
        .unwrap()
        .into_iter()
        .map(|range| range.into_iter().map(|(key, value)| (key.code(), value)).collect())
        .collect();
    assert!(found == ranges, "range, {when}");
    assert_eq!(lsm.len(stream).unwrap(), model.len(), "len, {when}");
    let all: Vec<(K::Code, V)> = lsm.iter(stream).unwrap().map(|(key, value)| (key.code(), value)).collect();
    assert!(all.iter().copied().eq(model.iter().map(pair)), "iter, {when}");
}

/// Histories on a device: few where they are slow.
fn histories(device: &Device, few: u64) -> u64 {
    let times = if std::env::var_os("GPU_PRIMITIVES_LONG").is_some() { 100 } else { 1 };
    if is_checked(device) { few.div_ceil(2) * times } else { few * times }
}

fn small_history(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..200).chain([u32::MAX, u32::MAX - 1, 1 << 31]).collect();
    for seed in 0..histories(device, 4) {
        history::<u32, u32>(&stream, seed, &Plan { batch: 16, steps: 12, most: 40, domain: domain.clone() });
    }
}

fn tiny_batches(device: &Device) {
    let stream = device.stream().unwrap();
    for batch in [1, 2, 3] {
        for seed in 0..histories(device, 2) {
            let domain = (0..30u32).map(|i| i << 27).collect();
            history::<u32, u32>(&stream, 100 + seed, &Plan { batch, steps: 12, most: 8, domain });
        }
    }
}

fn batches_of_several_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let mut random = Random(7);
    let domain: Vec<u32> = (0..20_000).map(|_| random.next() as u32).collect();
    for seed in 0..histories(device, 1) {
        history::<u32, u32>(&stream, 200 + seed, &Plan { batch: 1000, steps: 8, most: 5000, domain: domain.clone() });
    }
}

fn signed_and_float_keys(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in 0..histories(device, 2) {
        let plan = Plan { batch: 32, steps: 8, most: 60, domain: (-100..100).chain([i32::MIN, i32::MAX]).collect() };
        history::<i32, u32>(&stream, 300 + seed, &plan);
        let domain = (-50..50).map(|i| f64::from(i) * 1.5).chain([-0.0, f64::INFINITY, f64::MIN, f64::NAN]).collect();
        history::<f64, u64>(&stream, 400 + seed, &Plan { batch: 32, steps: 8, most: 60, domain });
    }
}

fn wide_keys_and_values(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in 0..histories(device, 2) {
        let domain: Vec<u64> = (0..150).map(|i| i << 57 | i).chain([u64::MAX, 0]).collect();
        history::<u64, u64>(&stream, 500 + seed, &Plan { batch: 50, steps: 8, most: 120, domain: domain.clone() });
        history::<u64, u32>(&stream, 600 + seed, &Plan { batch: 50, steps: 6, most: 120, domain });
        let domain: Vec<u32> = (0..150).map(|i| i * 7).collect();
        history::<u32, u64>(&stream, 700 + seed, &Plan { batch: 50, steps: 6, most: 120, domain });
    }
}

fn sets(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in 0..histories(device, 2) {
        let domain: Vec<u32> = (0..150).map(|i| i * i).collect();
        history::<u32, ()>(&stream, 800 + seed, &Plan { batch: 20, steps: 8, most: 50, domain });
        let domain: Vec<i64> = (-70..70).map(|i| i * i * i).collect();
        history::<i64, ()>(&stream, 900 + seed, &Plan { batch: 20, steps: 8, most: 50, domain });
    }
}
