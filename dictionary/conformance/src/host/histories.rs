//! Random histories, compared with the model.

use super::model::{Family, Modelled, OwnFolder, Random, Value, extremes, is_long};
use gpu_conformance::{is_checked, is_simulated};
use gpu_dictionary::WordKey as Key;
use gpu_primitives::{Device, Stream};
use std::fmt::Debug;

/// The parameters of a history.
struct Plan<K> {
    batch: usize,
    /// The approximate number of operations.
    operations: usize,
    /// The most operations per call.
    most: usize,
    /// The possible keys, in addition to the smallest and the largest.
    domain: Vec<K>,
}

impl<K: Key + Debug> Plan<K> {
    /// Runs a history, and makes all queries after every step. Sometimes all or most keys are deleted. Sometimes the
    /// dictionary is written, and goes on as it is read again.
    fn run<F: Family, V: Value>(&self, stream: &Stream, seed: u64) {
        let domain: Vec<K> = self.domain.iter().copied().chain(extremes()).collect();
        let mut random = Random(seed);
        let mut both = Modelled::<F, K, V>::new(stream, self.batch);
        let folder = OwnFolder::new();
        let is_short = is_simulated(stream.device()) && !is_long();
        let operations = if is_short { self.operations / 3 } else { self.operations };
        let mut done = 0;
        let mut step = 0;
        while done < operations {
            let keys = random.keys(&domain, self.most);
            let values = random.values::<V>(keys.len());
            done += keys.len();
            match random.below(20) {
                0..=6 => both.insert(stream, &keys, &values),
                7..=9 => both.delete(stream, &keys),
                10..=13 => {
                    let deleted = random.keys(&domain, self.most / 2);
                    both.update(stream, &keys, &values, &deleted);
                }
                14 => both.tidy(stream),
                15 => both.rebuild(stream, &keys, &values),
                16 => both.delete(stream, &domain[random.below(3)..]),
                _ => both.persist(stream, folder.path(), &mut random),
            }
            both.check_all(stream, &mut random, &domain, &format!("seed {seed}, step {step}"));
            step += 1;
        }
    }
}

/// Returns the seeds of a case's histories: `few` on the CPU, and half as many where they are slow. With
/// `GPU_PRIMITIVES_LONG`, the case's share of 10,000, and a hundredth where they are slow.
fn seeds(device: &Device, few: u64, share: u64) -> std::ops::Range<u64> {
    0..match (is_long(), is_simulated(device)) {
        (false, false) => few,
        (false, true) => few / 2,
        (true, false) => share,
        (true, true) => share / 100,
    }
    .max(1)
}

pub fn small_history<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let plan = Plan { batch: 16, operations: 300, most: 40, domain: (0..200u32).chain([1 << 31]).collect() };
    for seed in seeds(device, 2, 4000) {
        plan.run::<F, u32>(&stream, seed);
    }
}

pub fn tiny_batches<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in seeds(device, 3, 3000) {
        let batch = 1 + seed as usize % 3;
        let plan = Plan { batch, operations: 40, most: 8, domain: (0..30u32).map(|i| i << 27).collect() };
        plan.run::<F, u32>(&stream, 100 + seed);
    }
}

pub fn batches_of_several_tiles<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut random = Random(7);
    let domain: Vec<u32> = (0..20_000).map(|_| random.number() as u32).collect();
    for seed in seeds(device, 1, 200) {
        let plan = Plan { batch: 1000, operations: 12_000, most: 5000, domain: domain.clone() };
        plan.run::<F, u32>(&stream, 200 + seed);
    }
}

pub fn signed_and_float_keys<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in seeds(device, 1, 600) {
        let plan = Plan { batch: 32, operations: 200, most: 60, domain: (-100..100).collect::<Vec<i32>>() };
        plan.run::<F, u32>(&stream, 300 + seed);
        let domain = (-50..50).map(|i| f64::from(i) * 1.5).chain([-0.0, f64::INFINITY, f64::MIN, f64::NAN]).collect();
        Plan::<f64> { batch: 32, operations: 200, most: 60, domain }.run::<F, u64>(&stream, 400 + seed);
    }
}

pub fn wide_keys_and_values<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in seeds(device, 1, 400) {
        let domain: Vec<u64> = (0..150).map(|i| i << 57 | i).collect();
        let plan = Plan { batch: 50, operations: 300, most: 120, domain };
        plan.run::<F, u64>(&stream, 500 + seed);
        plan.run::<F, u32>(&stream, 600 + seed);
        let domain: Vec<u32> = (0..150).map(|i| i * 7).collect();
        Plan { batch: 50, operations: 300, most: 120, domain }.run::<F, u64>(&stream, 700 + seed);
    }
}

pub fn sets<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    for seed in seeds(device, 1, 200) {
        let domain: Vec<u32> = (0..150).map(|i| i * i).collect();
        Plan { batch: 20, operations: 150, most: 50, domain }.run::<F, ()>(&stream, 800 + seed);
        if is_simulated(device) && !is_long() {
            return; // keys with a sign have histories of their own
        }
        let domain: Vec<i64> = (-70..70).map(|i| i * i * i).collect();
        Plan { batch: 20, operations: 150, most: 50, domain }.run::<F, ()>(&stream, 900 + seed);
    }
}

/// One dictionary for a million operations, which is never rebuilt.
pub fn a_long_history<F: Family>(device: &Device) {
    let stream = device.stream().unwrap();
    let operations = match (is_long(), is_checked(device)) {
        (true, false) => 1_000_000,
        (true, true) => 10_000,
        (false, false) if is_simulated(device) => 1000,
        (false, false) => 6000,
        (false, true) => 200,
    };
    let mut random = Random(1);
    let domain: Vec<u32> = (0..operations as u32 / 4).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let mut both = Modelled::<F, u32, u32>::new(&stream, (operations / 100).max(8));
    let most = operations / 40;
    let (mut done, mut step) = (0, 0);
    while done < operations {
        let keys = random.keys(&domain, most);
        let values = random.values(keys.len());
        let deleted = random.keys(&domain, most / 2);
        both.update(&stream, &keys, &values, &deleted);
        done += keys.len() + deleted.len();
        step += 1;
        if step % 20 == 0 {
            both.check_all(&stream, &mut random, &domain, &format!("step {step}"));
        }
        if step % 64 == 0 {
            both.tidy(&stream);
        }
    }
    assert!(step > 8 && both.model.len() > domain.len() / 4, "{} keys after {step} steps", both.model.len());
    both.check_all(&stream, &mut random, &domain, "at the end");
}
