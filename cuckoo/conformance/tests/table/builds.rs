//! Builds: shapes, types, keys, options, memory.

use crate::{Pair, numbers, pairs, seeded};
use gpu_conformance::{is_checked, is_gpu};
use gpu_cuckoo::{GpuCuckoo, Key, Value, WhenFull};
use gpu_primitives::{Device, DeviceSlice, Error, Stream};
use std::fmt::Debug;

pub fn small_empty_table(device: &Device) {
    let stream = device.stream().unwrap();
    let asked = [0u32, 1, 2, u32::MAX, 77];
    for options in [seeded(), seeded().hashes(4).bucket_width(4), seeded().hashes(3)] {
        let built = Pair::<u32, u32>::build(&stream, &[], &[], options.clone());
        built.check(&asked);
        built.check(&[]);
        let mut pair = Pair::<u32, u32>::new(&stream, options.capacity(100));
        assert!(pair.table.is_empty(&stream).unwrap());
        pair.check(&asked);
        pair.delete(&asked);
        pair.insert(&[], &[]).unwrap();
        pair.delete(&[]);
        pair.check(&asked);
    }
}

pub fn small_one_key(device: &Device) {
    let stream = device.stream().unwrap();
    for key in [0, 1, 1000, u32::MAX] {
        let mut pair = Pair::build(&stream, &[key], &[key ^ 5], seeded());
        let asked = [0, 1, 2, 999, 1000, 1001, u32::MAX];
        pair.check(&asked);
        pair.delete(&[key]);
        pair.check(&asked);
        pair.insert(&[key], &[9]).unwrap();
        pair.check(&asked);
    }
}

/// Every bucket width and number of hash functions, with all small keys. Some of these mark free slots.
pub fn small_shapes(device: &Device) {
    let stream = device.stream().unwrap();
    for width in [4, 8] {
        for hashes in [2, 3, 4] {
            let options = seeded().bucket_width(width).hashes(hashes).load_factor(0.9);
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

/// All types of keys, and values of all sizes.
pub fn small_keys_and_values(device: &Device) {
    fn check<K: Key + Debug, V: Value + Debug + PartialEq>(stream: &Stream) {
        let (keys, values) = pairs::<K, V>(1, 300, u64::MAX);
        for width in [4, 8] {
            let mut pair = Pair::build(stream, &keys[..200], &values[..200], seeded().bucket_width(width));
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

pub fn extreme_keys(device: &Device) {
    fn check<K: Key + Debug>(stream: &Stream, keys: &[K], others: &[K]) {
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let mut pair = Pair::build(stream, keys, &values, seeded());
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
    Pair::build(&stream, &keys, &values, seeded()).check(&keys);
}

/// Few keys, many times each: the last one wins, wherever the others are.
pub fn duplicates(device: &Device) {
    let stream = device.stream().unwrap();
    let lens: &[usize] = if is_checked(device) { &[3000] } else { &[3000, 20_000] };
    for &len in lens {
        for below in [1, 7, 100, len as u64 / 2] {
            for options in [seeded(), seeded().bucket_width(4).load_factor(0.95)] {
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

pub fn one_key_many_times(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 10_000 } else { 100_000 };
    let values: Vec<u64> = (0..len).collect();
    let pair = Pair::build(&stream, &vec![42u64; len as usize], &values, seeded());
    pair.check(&[41, 42, 43]);
    assert_eq!(pair.model[&42], len - 1);
}

/// Tiles of more pairs than one block should work through: one or a few keys make up half of the pairs. The lengths are
/// around those of chunks and of long tiles.
pub fn long_tiles(device: &Device) {
    fn check<K: Key + Debug, V: Value + Debug + PartialEq>(stream: &Stream, len: usize, often: u64) {
        let (mut keys, values) = pairs::<K, V>(len as u64, len, u64::MAX);
        let (frequent, _) = pairs::<K, V>(1, len, often);
        for i in (0..len).filter(|i| i % 16 != 5) {
            keys[i] = frequent[i];
        }
        let pair = Pair::build(stream, &keys, &values, seeded());
        pair.check(&keys[..len.min(2000)]);
    }
    let stream = device.stream().unwrap();
    check::<u32, u32>(&stream, 3 * 4096 + 1, 1);
    if is_checked(device) {
        return;
    }
    for len in [8191, 8192, 8193, 9000, 3 * 4096 - 1, 3 * 4096, 40_000] {
        check::<u32, u64>(&stream, len, 1);
        check::<u64, u32>(&stream, len, 3);
        check::<u32, ()>(&stream, len, 100);
    }
}

/// More tiles than one, than 256 (two passes), and lengths around them.
pub fn many_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lens = vec![3270, 3280, 6500, 10_000];
    if !is_checked(device) {
        lens.push(1 << 16);
    }
    for len in lens {
        let (keys, values) = pairs::<u32, u32>(5, len, u64::MAX);
        let pair = Pair::build(&stream, &keys, &values, seeded());
        pair.check(&keys);
        pair.check(&numbers(0..1000));
    }
    // Almost empty: many tiles with few keys.
    if !is_checked(device) {
        let (keys, values) = pairs::<u64, u32>(6, 6000, u64::MAX);
        let pair = Pair::build(&stream, &keys, &values, seeded().load_factor(0.01));
        pair.check(&keys);
    }
}

/// A table is built with room for more keys than it gets, or for all it gets if they are more.
pub fn room_ahead(device: &Device) {
    let stream = device.stream().unwrap();
    for (capacity, room) in [(0, 500), (300, 500), (2000, 2000)] {
        let options = seeded().capacity(capacity).when_full(WhenFull::Refuse);
        let mut pair = Pair::build(&stream, &numbers(0..500), &numbers(0..500), options);
        let slots = pair.table.stats(&stream).unwrap().slots;
        assert!((room * 5 / 4..room * 5 / 4 + 8).contains(&slots), "{slots} slots for {room} keys");
        pair.insert(&numbers(500..room as u64), &numbers(500..room as u64)).unwrap();
        pair.check(&numbers(0..3000));
    }
}

pub fn build_refuses(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&numbers(0..5000)).unwrap();
    let options = seeded().bucket_width(4).load_factor(0.95).evictions(0).reseeds(2);
    let refusing = options.clone().when_full(WhenFull::Refuse);
    let error = GpuCuckoo::bulk_build(&stream, (&keys, &keys), refusing).unwrap_err();
    assert!(matches!(error, Error::TableFull { unplaced: 1.., keys: 5000, .. }), "{error}");
    let table = GpuCuckoo::bulk_build(&stream, (&keys, &keys), options).unwrap();
    let pair = Pair { stream: stream.clone(), table, model: (0..5000).map(|x| (u64::from(x), x)).collect() };
    pair.check(&numbers(0..6000));
    assert!(pair.table.stats(&stream).unwrap().rebuilds >= 3);
}

/// Memory of another library, at an odd address.
pub fn misaligned_values(device: &Device) {
    if is_gpu(device) {
        return;
    }
    let stream = device.stream().unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    // SAFETY: within the vector, which outlives the slice; bytes may lie anywhere.
    let values = unsafe { DeviceSlice::<[u8; 4]>::from_raw_parts(device, bytes.as_ptr().add(1).cast(), 60) };
    let keys = numbers(0..60);
    let on_device = stream.upload(&keys).unwrap();
    let mut table = GpuCuckoo::bulk_build(&stream, (&on_device, values), seeded()).unwrap();
    table.insert(&stream, (&on_device, values)).unwrap();
    let expected: Vec<_> = (0..60).map(|i| Some([1, 2, 3, 4].map(|byte| 4 * i + byte))).collect();
    assert_eq!(table.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap(), expected);
}

pub fn invalid_options(device: &Device) {
    let stream = device.stream().unwrap();
    let three = stream.upload(&[1u32, 2, 3]).unwrap();
    for options in [
        seeded().load_factor(0.0),
        seeded().load_factor(-1.0),
        seeded().load_factor(0.96),
        seeded().load_factor(f64::NAN),
        seeded().hashes(1),
        seeded().hashes(5),
        seeded().bucket_width(0),
        seeded().bucket_width(16),
    ] {
        let error = GpuCuckoo::bulk_build(&stream, (&three, &three), options.clone()).unwrap_err();
        assert!(matches!(error, Error::InvalidOption { .. }), "{options:?}: {error}");
        assert!(GpuCuckoo::<u32, ()>::new(&stream, options).is_err());
    }
    let error = GpuCuckoo::<u32, u32>::new(&stream, seeded().capacity(usize::MAX)).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
}

/// 10.1 bytes per pair of 4 + 4 bytes at load 0.8.
pub fn memory(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = pairs::<u32, u32>(12, 10_000, u64::MAX);
    let pair = Pair::build(&stream, &keys, &values, seeded());
    let stats = pair.table.stats(&stream).unwrap();
    let per_key = stats.bytes as f64 / stats.len as f64;
    assert!((9.9..10.1).contains(&per_key), "{per_key}");
    assert_eq!((stats.len, stats.rebuilds), (pair.model.len(), 0));
    assert!((stats.load - 0.8).abs() < 0.01, "{stats:?}");
}

pub fn large(device: &Device) {
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
        let mut pair = Pair::build(&stream, &keys, &values, seeded().bucket_width(width).load_factor(0.9));
        pair.delete(&keys[..len / 3]);
        pair.insert(&keys[len / 4..len / 2], &values[..len / 4]).unwrap();
        if width == 8 {
            pair.check(&keys);
        }
    }
}
