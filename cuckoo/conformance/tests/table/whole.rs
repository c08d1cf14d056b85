//! Operations on all pairs, and removal.

use crate::{Pair, numbers, pairs, seeded};
use gpu_cuckoo::GpuCuckoo;
use gpu_primitives::Device;
use gpu_primitives::operator::map;

/// A table with dead slots: full buckets from which keys were deleted.
fn worn(stream: &gpu_primitives::Stream, width: usize) -> Pair<u32, u32> {
    let options = seeded().bucket_width(width).load_factor(0.95);
    let mut pair = Pair::build(stream, &numbers(0..1000), &numbers(5000..6000), options);
    pair.delete(&numbers(100..200));
    pair
}

pub fn retain_keeps_some(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        let mut pair = worn(&stream, width);
        let limit = 5900;
        pair.table
            .retain(
                &stream,
                map!(limit: u32 = limit; |key: u32, value: u32| -> u8 { (key % 3 == 0 && value < limit) as u8 }),
            )
            .unwrap();
        pair.model.retain(|key, value| key % 3 == 0 && *value < 5900);
        pair.check(&numbers(0..1100));
        // The slots that became free are used again.
        pair.insert(&numbers(0..900), &numbers(0..900)).unwrap();
        pair.check(&numbers(0..1100));
        assert_eq!(pair.table.stats(&stream).unwrap().rebuilds, 0);
        pair.table.retain(&stream, map!(|_key: u32, _value: u32| -> u8 { 1 })).unwrap();
        pair.check(&numbers(0..1100));
        pair.table.retain(&stream, map!(|_key: u32, _value: u32| -> u8 { 0 })).unwrap();
        pair.model.clear();
        pair.check(&numbers(0..1100));
    }
    let mut empty = Pair::<u32, u32>::new(&stream, seeded());
    empty.table.retain(&stream, map!(|_key: u32, _value: u32| -> u8 { 0 })).unwrap();
    empty.check(&[0, 1]);
}

pub fn retain_in_sets(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u64, ()>(4, 500, u64::MAX);
    let mut pair = Pair::build(&stream, &keys, &values, seeded());
    pair.table.retain_keys(&stream, map!(|key: u64| -> u8 { (key & 1) as u8 })).unwrap();
    pair.model.retain(|key, ()| key & 1 == 1);
    pair.check(&keys);
}

pub fn for_each_changes_values(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        let mut pair = worn(&stream, width);
        pair.table.for_each(&stream, map!(|key: u32, value: u32| -> u32 { value * 2 + key })).unwrap();
        pair.model.iter_mut().for_each(|(key, value)| *value = *value * 2 + *key as u32);
        pair.check(&numbers(0..1100));
    }
    let (keys, values) = pairs::<u64, f64>(6, 300, u64::MAX);
    let mut pair = Pair::build(&stream, &keys, &values, seeded());
    pair.table.for_each(&stream, map!(|_key: u64, value: f64| -> f64 { 1.0 - value })).unwrap();
    pair.model.values_mut().for_each(|value| *value = 1.0 - *value);
    pair.check(&keys);
}

pub fn keys_values_and_drain(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        let mut pair = worn(&stream, width);
        let mut expected: Vec<(u32, u32)> = pair.model.iter().map(|(&key, &value)| (key as u32, value)).collect();
        expected.sort_unstable();
        let (keys, values): (Vec<u32>, Vec<u32>) = expected.iter().copied().unzip();
        assert_eq!(pair.table.keys(&stream).unwrap().to_vec(&stream).unwrap(), keys);
        assert_eq!(pair.table.values(&stream).unwrap().to_vec(&stream).unwrap(), values);
        let slots = pair.table.stats(&stream).unwrap().slots;
        assert_eq!(pair.table.drain(&stream).unwrap().to_vec(&stream).unwrap(), expected);
        pair.model.clear();
        pair.check(&numbers(0..1100));
        assert_eq!(pair.table.stats(&stream).unwrap().slots, slots);
        pair.insert(&numbers(0..900), &numbers(0..900)).unwrap();
        pair.check(&numbers(0..1100));
    }
    let set = GpuCuckoo::build_set(&stream, &stream.upload(&[3u32, 1]).unwrap(), seeded()).unwrap();
    assert_eq!(set.keys(&stream).unwrap().to_vec(&stream).unwrap(), [1, 3]);
    assert!(set.values(&stream).unwrap().is_empty());
}

pub fn remove_returns_values(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        let mut pair = worn(&stream, width);
        // A few keys one by one, then many in the order of their slots; all with repetitions.
        let few: Vec<u32> = (50..110).chain(1020..1050).chain(60..70).collect();
        let many: Vec<u32> = (0..700).chain(950..1100).chain(650..750).collect();
        for asked in [&few, &many, &few, &many] {
            let removed = pair.table.remove(&stream, &stream.upload(asked).unwrap()).unwrap().to_vec(&stream).unwrap();
            let expected: Vec<_> = asked.iter().map(|&key| pair.model.get(&u64::from(key)).copied()).collect();
            assert_eq!(removed, expected);
            pair.model.retain(|&key, _| !asked.contains(&(key as u32)));
            pair.check(&numbers(0..1100));
            pair.insert(&numbers(300..800), &numbers(0..500)).unwrap();
            pair.check(&numbers(0..1100));
        }
    }
    let mut set = Pair::build(&stream, &numbers(0..500), &[(); 500], seeded());
    let asked = stream.upload(&numbers(100..600)).unwrap();
    let removed = set.table.remove(&stream, &asked).unwrap().found.to_vec(&stream).unwrap();
    assert_eq!(removed, [[1; 400].as_slice(), &[0; 100]].concat());
    set.model.retain(|key, _| *key < 100);
    set.check(&numbers(0..600));
}
