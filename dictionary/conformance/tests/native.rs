//! The native bodies of the levels' kernels leave the same bytes as the simulated grids.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_dictionary::levels::{Intervals, Level, RangesMut, Stack};
use gpu_dictionary::{Key, Upsertion, Value, values_for};
use gpu_primitives::monoid::Sum;
use gpu_primitives::sort::U256;
use gpu_primitives::{CpuOptions, Device, DeviceSlice, Stream};

/// What the levels have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    /// One level of distinct keys.
    Distinct,
    /// Values, with duplicates within levels and among them.
    Values,
    /// Values and tombstones.
    Tombstones,
    /// Operands of a sum, tombstones and values.
    Operands,
}

/// The results of one call after the other, as bytes.
#[derive(Default)]
struct Results(Vec<(&'static str, Vec<u8>)>);

impl Results {
    fn add<T: Pod>(&mut self, what: &'static str, stream: &Stream, slice: DeviceSlice<'_, T>) {
        let bytes = if size_of::<T>() == 0 {
            Vec::new()
        } else {
            bytemuck::cast_slice(&slice.to_vec(stream).unwrap()).to_vec()
        };
        self.0.push((what, bytes));
    }
}

/// Makes a level of keys and values.
type MakeLevel<K, V> = fn(&Stream, DeviceSlice<'_, K>, DeviceSlice<'_, V>) -> Level<K, V>;

/// How keys and values are made of numbers.
struct Types<K: Key, V: Value> {
    key: fn(u64) -> K,
    value: fn(u64) -> V,
    /// Makes a level of operands. Values without a size have none.
    operands: Option<MakeLevel<K, V>>,
}

fn operands<K: Key, V: Value>(stream: &Stream, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Level<K, V>
where
    Sum: Upsertion<V>,
{
    Level::operands(stream, keys, values, Sum).unwrap()
}

impl<K: Key, V: Value> Types<K, V> {
    /// Makes a stack of levels with `len` elements in the oldest one.
    fn stack(&self, stream: &Stream, len: usize, with: With) -> Stack<K, V> {
        let numbers =
            |seed: u64, len: usize| random(seed).map(|number| number % 1_000_000).take(len).collect::<Vec<_>>();
        // Some keys of each level are those of the oldest, and some occur several times.
        let oldest = numbers(1, len);
        let keys = |seed: u64, len: usize| {
            let mut keys: Vec<K> = numbers(seed, len).into_iter().map(self.key).collect();
            for (i, key) in keys.iter_mut().enumerate() {
                match i % 4 {
                    0 if !oldest.is_empty() => *key = (self.key)(oldest[i * 7 % oldest.len()]),
                    1 => *key = (self.key)(i as u64 / 40),
                    _ => {}
                }
            }
            stream.upload(&keys).unwrap()
        };
        let values = |seed: u64, len: usize| {
            let values: Vec<V> = numbers(seed, values_for::<V>(len)).into_iter().map(self.value).collect();
            stream.upload(&values).unwrap()
        };
        let mut stack = Stack::new();
        let mut pairs = |slot: usize, len: usize, is_oldest: bool| {
            let keys = if is_oldest {
                let mut numbers = oldest.clone();
                if with == With::Distinct {
                    numbers.sort_unstable();
                    numbers.dedup();
                }
                stream.upload(&numbers.into_iter().map(self.key).collect::<Vec<_>>()).unwrap()
            } else {
                keys(slot as u64, len)
            };
            let values = values(10 + slot as u64, keys.len());
            let mut level = Level::from_pairs(stream, keys.as_slice(), values.as_slice()).unwrap();
            if with == With::Distinct {
                level.set_distinct();
            }
            stack.set(slot, Some(level));
        };
        pairs(9, len, true);
        if with == With::Distinct {
            return stack;
        }
        pairs(7, len / 2 + 1, false);
        pairs(4, len / 16, false);
        if with == With::Values {
            return stack;
        }
        let dead = keys(6, len / 3 + 2);
        stack.set(6, Some(Level::tombstones(stream, dead.as_slice()).unwrap()));
        if let Some(operands) = self.operands.filter(|_| with == With::Operands) {
            for (slot, len) in [(8, len / 4 + 1), (2, len / 8 + 3)] {
                let (keys, values) = (keys(20 + slot as u64, len), values(30 + slot as u64, len));
                stack.set(slot, Some(operands(stream, keys.as_slice(), values.as_slice())));
            }
        }
        stack
    }

    /// Calls everything that has a native body.
    fn results(&self, stream: &Stream, len: usize, with: With) -> Vec<(&'static str, Vec<u8>)> {
        let mut results = Results::default();
        let stack = self.stack(stream, len, with);
        // All but the last number are few for the device.
        for queries in [1, 3, 33, 1200] {
            let low: Vec<u64> = random(50).take(queries).map(|number| number % 1_100_000).collect();
            let high = low.iter().enumerate().map(|(i, low)| match i % 8 {
                // Reversed, of one key, of everything above, long, of some elements.
                0 => low.saturating_sub(1000),
                1 => *low,
                2 => u64::from(u32::MAX / 4),
                3 => low + 30_000,
                _ => low + 3_000_000 / (len as u64 + 1),
            });
            let high: Vec<K> = high.map(self.key).collect();
            let keys: Vec<K> = low.iter().map(|&number| (self.key)(number)).collect();
            let (keys, high) = (stream.upload(&keys).unwrap(), stream.upload(&high).unwrap());
            self.query(stream, &stack, Intervals { low: keys.as_slice(), high: high.as_slice() }, &mut results);
        }
        results.add("live_len", stream, stack.live_len(stream).unwrap().as_slice());
        let all = stack.export(stream).unwrap();
        results.add("export: keys", stream, all.keys.as_slice());
        results.add("export: values", stream, all.values.as_slice());
        let levels: Vec<&Level<K, V>> = stack.oldest_first().map(|(_, level)| level).collect();
        let merged = [Level::merge(stream, &levels).unwrap(), Level::live(stream, &levels).unwrap()];
        for level in &merged {
            let parts = level.parts();
            results.add("merge: codes", stream, parts.codes);
            results.add("merge: values", stream, parts.values);
            if let Some(marks) = parts.marks {
                results.add("merge: marks", stream, marks);
            }
        }
        if with == With::Values {
            self.all_values(stream, stack, &mut results);
        }
        results.0
    }

    fn query(&self, stream: &Stream, stack: &Stack<K, V>, intervals: Intervals<'_, K>, results: &mut Results) {
        let keys = intervals.low;
        let found = stack.lookup(stream, keys).unwrap();
        results.add("lookup: values", stream, found.values.as_slice());
        results.add("lookup: found", stream, found.found.as_slice());
        results.add("contains", stream, stack.contains(stream, keys).unwrap().as_slice());
        for below in [false, true] {
            let found = stack.neighbours(stream, keys, below).unwrap();
            results.add("neighbours: keys", stream, found.keys.as_slice());
            results.add("neighbours: values", stream, found.values.as_slice());
            results.add("neighbours: found", stream, found.found.as_slice());
        }
        results.add("count", stream, stack.count(stream, intervals).unwrap().as_slice());
        let mut counts = stream.uninit(keys.len()).unwrap();
        stack.count_into(stream, intervals, counts.as_mut_slice()).unwrap();
        results.add("count_into", stream, counts.as_slice());
        let ranges = stack.ranges(stream, intervals).unwrap();
        results.add("ranges: offsets", stream, ranges.offsets.as_slice());
        results.add("ranges: keys", stream, ranges.keys.as_slice());
        results.add("ranges: values", stream, ranges.values.as_slice());
        // Exactly as much room as needed, and too little for anything.
        let mut room = 0;
        for _ in 0..2 {
            let mut offsets = stream.zeroed::<u64>(keys.len() + 1).unwrap();
            let (mut keys, mut values) =
                (stream.zeroed::<K>(room).unwrap(), stream.zeroed::<V>(values_for::<V>(room)).unwrap());
            let to =
                RangesMut { offsets: offsets.as_mut_slice(), keys: keys.as_mut_slice(), values: values.as_mut_slice() };
            room = stack.ranges_into(stream, intervals, to).unwrap().get(stream).unwrap() as usize;
            results.add("ranges_into: offsets", stream, offsets.as_slice());
            results.add("ranges_into: keys", stream, keys.as_slice());
            results.add("ranges_into: values", stream, values.as_slice());
        }
    }

    /// The operations on all elements, live or not.
    fn all_values(&self, stream: &Stream, mut stack: Stack<K, V>, results: &mut Results) {
        let asked: Vec<K> = random(1).take(100).map(|number| (self.key)(number % 1_000_000)).collect();
        let asked = stream.upload(&asked).unwrap();
        let points = Intervals { low: asked.as_slice(), high: asked.as_slice() };
        results.add("count_every", stream, stack.count_every(stream, points).unwrap().as_slice());
        let every = stack.every(stream, asked.as_slice()).unwrap();
        results.add("every: offsets", stream, every.offsets.as_slice());
        results.add("every: values", stream, every.values.as_slice());
        let none = stream.upload(&vec![(self.value)(3); values_for::<V>(100)]).unwrap();
        for by_pairs in [true, false] {
            if by_pairs {
                stack.remove_pairs(stream, asked.as_slice(), none.as_slice()).unwrap();
            } else {
                stack.remove_keys(stream, asked.as_slice()).unwrap();
            }
            for (_, level) in stack.oldest_first() {
                results.add("remove: codes", stream, level.parts().codes);
                results.add("remove: values", stream, level.parts().values);
            }
        }
    }

    fn compare(&self, lens: &[usize]) {
        let devices = [
            Device::cpu_with(CpuOptions { simulated: true, ..CpuOptions::default() }),
            Device::cpu(),
            Device::cpu_with(CpuOptions { workers: Some(5), ..CpuOptions::default() }),
        ];
        for &len in lens {
            for with in [With::Distinct, With::Values, With::Tombstones, With::Operands] {
                let [simulated, rest @ ..] =
                    devices.each_ref().map(|device| self.results(&device.stream().unwrap(), len, with));
                for native in rest {
                    assert_eq!(native.len(), simulated.len());
                    for ((what, native), (_, simulated)) in native.iter().zip(&simulated) {
                        let differs = native.iter().zip(simulated).position(|(a, b)| a != b);
                        let lens = (native.len(), simulated.len());
                        assert!(native == simulated, "{what}: {len} elements, {with:?}: byte {differs:?} of {lens:?}");
                    }
                }
            }
        }
    }
}

/// Lengths with which the levels together have about as many elements as a tile, or several.
const TILES: [usize; 6] = [0, 1, 33, 2400, 4784, 12_000];

#[test]
fn keys_and_values_of_32_bits() {
    let types = Types { key: |number| number as u32, value: |number| number as u32, operands: Some(operands) };
    types.compare(&TILES);
    // One level whose length is that of a tile, or one less or more: see `tiles::room`.
    types.compare(&[4783, 4785]);
}

#[test]
fn signed_keys_and_long_values() {
    let key = |number: u64| number as i64 - 500_000;
    Types { key, value: |number| number, operands: Some(operands) }.compare(&[1, 40, 9000]);
}

#[test]
fn float_keys_without_values() {
    Types::<f32, ()> { key: |number| 4e5 - number as f32, value: |_| (), operands: None }.compare(&[1, 33, 9000]);
}

#[test]
fn keys_of_128_bits() {
    let key = |number: u64| u128::from(number) << 70 | u128::from(number);
    Types { key, value: |number| number as u32, operands: Some(operands) }.compare(&[1, 100, 3000]);
}

#[test]
fn keys_of_256_bits() {
    let key = |number: u64| U256 { high: u128::from(number % 1000), low: u128::from(number / 1000) << 100 };
    Types { key, value: |number| number, operands: Some(operands) }.compare(&[1, 100, 1500]);
}
