//! Values that are combined with those that are present.

use super::failures::fail;
use super::files::saved;
use super::model::{Family, Modelled, Random, Value, upload_values};
use bytemuck::{Pod, Zeroable};
use gpu_conformance::{is_checked, is_gpu};
use gpu_dictionary::{Dictionary, Ordered, Updatable, Upsertion, WordKey as Key};
use gpu_primitives::operator::{Recorded, operator};
use gpu_primitives::scan::{Max, Monoid, Sum};
use gpu_primitives::{Device, DeviceVec, Error, Stream};
use std::fmt::Debug;

/// A structure whose values can be combined.
pub trait Combining: Family {
    /// Calls the structure's `upsert`.
    ///
    /// # Errors
    /// Its errors.
    fn upsert<K: Key + Debug, V: Value>(
        dictionary: &mut Self::Of<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error>;
}

impl<F: Combining, K: Key + Debug, V: Value> Modelled<F, K, V> {
    /// Combines values with those that are present.
    pub fn upsert(&mut self, stream: &Stream, keys: &[K], values: &[V], operation: impl Upsertion<V>) {
        let pairs = (&stream.upload(keys).unwrap(), &upload_values(stream, values));
        F::upsert(&mut self.dictionary, stream, pairs, operation).unwrap();
        self.model_upsert(keys, values, operation);
    }

    fn model_upsert(&mut self, keys: &[K], values: &[V], operation: impl Monoid<V>) {
        for (key, &value) in keys.iter().zip(values) {
            let entry = self.model.entry(key.code());
            entry.and_modify(|present| *present = operation.combine(*present, value)).or_insert(value);
        }
    }
}

/// Functions `x -> a * x + b`, one after the other: associative, but the order matters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Compose;

#[operator]
impl Monoid<[u32; 2]> for Compose {
    fn identity(&self) -> [u32; 2] {
        [1, 0]
    }

    fn combine(&self, first: [u32; 2], second: [u32; 2]) -> [u32; 2] {
        [first[0] * second[0], first[1] * second[0] + second[1]]
    }
}

/// The lengths around the edges of warps and of the tiles that kernels combine.
fn lengths(device: &Device) -> &'static [usize] {
    if is_checked(device) { &[1, 2, 33, 1281] } else { &[1, 31, 32, 33, 257, 1279, 1281, 2303, 2304, 2305, 4609] }
}

/// All keys equal, all different, and runs of equal ones: alone, and onto what is there.
pub fn small_upserts<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    for &len in lengths(device) {
        for run in [1, 3, 1000, usize::MAX] {
            let keys: Vec<u32> = (0..len).map(|i| (i / run) as u32).collect();
            let values: Vec<u32> = (0..len as u32).map(|i| i * i + 1).collect();
            let mut both = Modelled::<F, u32, u32>::new(&stream, len);
            both.upsert(&stream, &keys, &values, Sum);
            both.check(&stream, &keys, &format!("{len} values, runs of {run}"));
            both.delete(&stream, &keys[..len / 2]);
            both.upsert(&stream, &keys[len / 3..], &values[len / 3..], Sum);
            both.insert(&stream, &keys[..len / 4], &values[..len / 4]);
            both.upsert(&stream, &keys[len / 5..], &values[len / 5..], Sum);
            both.check(&stream, &keys, &format!("{len} values, runs of {run}, after other updates"));
        }
    }
}

/// Random updates of all kinds, with copies that are queried later.
pub fn upserts_among_other_updates<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, batch, rounds) = match device {
        device if is_checked(device) => (40, 16, 50),
        device if is_gpu(device) => (20_000, 3000, 300),
        _ => (300, 64, 100),
    };
    let domain: Vec<u32> = (0..keys).map(|i| i * 3).collect();
    for seed in 0..2 {
        let mut random = Random(seed);
        let mut both = Modelled::<F, u32, u32>::new(&stream, batch);
        let mut copies = Vec::new();
        for round in 0..rounds {
            let keys = random.keys(&domain, 3 * batch);
            let values = random.values::<u32>(keys.len());
            match random.below(12) {
                0 => both.insert(&stream, &keys, &values),
                1 => both.delete(&stream, &keys),
                2 => both.update(&stream, &keys, &values, &random.keys(&domain, batch)),
                3 if random.below(8) == 0 => both.tidy(&stream),
                // Another operation: what is there must be combined before.
                4 => both.upsert(&stream, &keys, &values, Max),
                _ => both.upsert(&stream, &keys, &values, Sum),
            }
            if round % 10 == 9 {
                both.check_all(&stream, &mut random, &domain, &format!("seed {seed}, round {round}"));
                copies.push(both.copy(&stream));
            }
            if copies.len() > 3 {
                let copy = copies.remove(0);
                copy.check_all(&stream, &mut random, &domain, &format!("seed {seed}, a copy before round {round}"));
            }
        }
    }
}

/// Counters that are hot: runs of equal keys longer than a tile, in every level.
pub fn upserts_of_few_keys<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 10_000 };
    let mut both = Modelled::<F, u64, u32>::new(&stream, len);
    let mut random = Random(5);
    for round in 0..if is_checked(device) { 3 } else { 7 } {
        let keys: Vec<u64> = (0..len).map(|_| random.below(3) as u64 * 1000).collect();
        both.upsert(&stream, &keys, &vec![1; len], Sum);
        both.check(&stream, &[0, 1000, 2000, 3000], &format!("round {round}"));
    }
}

/// The order of the combined values is that of the calls, and within a call that of the positions.
pub fn operations_that_are_not_commutative<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let (len, domain) = (if is_checked(device) { 300 } else { 3000 }, (0..25).collect::<Vec<u32>>());
    let mut both = Modelled::<F, u32, [u32; 2]>::new(&stream, len / 2);
    let mut random = Random(6);
    for round in 0..if is_checked(device) { 5 } else { 10 } {
        let keys = random.keys(&domain, len);
        let values = random.values(keys.len());
        both.upsert(&stream, &keys, &values, Compose);
        if round % 5 == 4 {
            both.delete(&stream, &random.keys(&domain, 5));
        }
        both.check_all(&stream, &mut random, &domain, &format!("round {round}"));
    }
}

pub fn upserts_of_floats<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<i64> = (-20..20).map(|i| i << 40).collect();
    let mut both = Modelled::<F, i64, f64>::new(&stream, 32);
    let mut random = Random(7);
    for round in 0..8 {
        let keys = random.keys(&domain, 100);
        let values = random.values(keys.len());
        both.upsert(&stream, &keys, &values, Max);
        both.check_all(&stream, &mut random, &domain, &format!("round {round}"));
    }
}

/// The only operation on nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Nothing;

impl Monoid<()> for Nothing {
    fn identity(&self) {}

    fn combine(&self, (): (), (): ()) {}

    /// Kernels do not combine what has no size, so they never ask for this.
    fn recorded() -> Recorded {
        <Sum as Monoid<u32>>::recorded()
    }
}

/// In a set, nothing is combined: the keys are inserted.
pub fn upserts_of_sets<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, ()>::new(&stream, 16);
    let domain: Vec<u32> = (0..50).collect();
    let mut random = Random(12);
    both.upsert(&stream, &[], &[], Nothing);
    for round in 0..6 {
        let keys = random.keys(&domain, 40);
        both.upsert(&stream, &keys, &vec![(); keys.len()], Nothing);
        both.delete(&stream, &random.keys(&domain, 5));
        both.check_all(&stream, &mut random, &domain, &format!("round {round}"));
    }
}

/// Too few values, and each allocation that fails.
pub fn failed_upserts<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 16);
    both.upsert(&stream, &[1, 2], &[10, 20], Sum);
    let pairs = (&stream.upload(&[1, 2, 3]).unwrap(), &stream.upload(&[1, 2]).unwrap());
    let error = F::upsert(&mut both.dictionary, &stream, pairs, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
    both.check(&stream, &[1, 2, 3], "after bad input");

    for (batches, len) in if is_checked(device) { vec![(3, 10)] } else { vec![(0, 10), (3, 10), (3, 83)] } {
        let what = format!("an upsert of {len} after {batches} batches");
        let allocations = fail::<F>(device, &what, (batches, len), |both, stream, input| {
            F::upsert(&mut both.dictionary, stream, (&input.keys_on_device, &input.values_on_device), Sum)?;
            both.model_upsert(&input.keys, &input.values, Sum);
            Ok(())
        });
        assert!(allocations > 0, "{what}");
    }
}

/// A file has the combined values.
pub fn upserts_are_saved<F: Combining>(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<F, u32, u32>::new(&stream, 8);
    let keys: Vec<u32> = (0..20).collect();
    for round in 0..3 {
        both.upsert(&stream, &keys[round..], &keys[round..], Sum);
    }
    let file = saved(&stream, &both.dictionary);
    both.dictionary = Dictionary::load(&stream, &file[..]).unwrap();
    both.check(&stream, &keys, "after a round trip");
    both.upsert(&stream, &keys, &keys, Sum);
    both.check(&stream, &keys, "after an upsert into what was loaded");
}

/// Sums and maxima of intervals, against the same of a model.
pub fn intervals_are_reduced<F: Family<Of<u32, u32>: Ordered>>(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..if is_checked(device) { 60 } else { 2000 }).map(|i| i * 2).collect();
    let mut both = Modelled::<F, u32, u32>::new(&stream, domain.len() / 8);
    let mut random = Random(8);
    for round in 0..4 {
        let keys = random.keys(&domain, domain.len());
        let values = random.values(keys.len());
        both.update(&stream, &keys, &values, &random.keys(&domain, domain.len() / 8));
        let (low, high) = (random.keys(&domain, 50), domain.len());
        let high: Vec<u32> = low.iter().map(|_| domain[random.below(high)] + 1).collect();
        let model = |low: u32, high: u32| both.model.iter().filter(move |(key, _)| (low..=high).contains(*key));
        let intervals = || low.iter().zip(&high);
        let sums: Vec<u32> =
            intervals().map(|(&a, &b)| model(a, b).fold(0, |sum: u32, (_, value)| sum.wrapping_add(*value))).collect();
        let most: Vec<u32> =
            intervals().map(|(&a, &b)| model(a, b).map(|(_, value)| *value).max().unwrap_or(0)).collect();
        let (low, high) = (stream.upload(&low).unwrap(), stream.upload(&high).unwrap());
        let found = both.dictionary.reduce(&stream, &low, &high, Sum).unwrap().to_vec(&stream).unwrap();
        assert_eq!(found, sums, "sums, round {round}");
        let found = both.dictionary.reduce(&stream, &low, &high, Max).unwrap().to_vec(&stream).unwrap();
        assert_eq!(found, most, "maxima, round {round}");
        both.dictionary.delete(&stream, &stream.upload(&[domain[0]]).unwrap()).unwrap();
        both.model.remove(&domain[0]);
    }
}
