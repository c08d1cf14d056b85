//! Distinct keys of unsorted input against a sort on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_gpu, run};
use gpu_primitives::operator::Record;
use gpu_primitives::sort::{FromCode, RadixKey, U256};
use gpu_primitives::source::counted;
use gpu_primitives::{Device, DeviceValue, Error, Stream, runs};
use half::f16;
use std::cmp::Ordering;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        every_length,
        every_type,
        own_keys,
        keys_of_256_bits,
        hashed,
        hashed_keys_that_are_all_ones,
        full_tables_and_all_ones,
        counted_keys_of_256_bits,
        more_keys_than_expected,
        wrong_lengths,
        in_a_graph
    ])
}

/// Checks the distinct keys, their counts and the inverse, byte by byte.
fn check<K: FromCode>(stream: &Stream, host: &[K], compare: impl Fn(&K, &K) -> Ordering) {
    let len = host.len();
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(&host[a], &host[b]));
    let (mut keys, mut counts, mut inverse) = (Vec::<K>::new(), Vec::new(), vec![0; len]);
    for place in order {
        if keys.last().is_none_or(|last| compare(last, &host[place]) != Ordering::Equal) {
            keys.push(host[place]);
            counts.push(0);
        }
        *counts.last_mut().unwrap() += 1;
        inverse[place] = keys.len() as u32 - 1;
    }
    // What follows the keys is not changed.
    let filler = vec![K::zeroed(); len + 2];
    let mut expected = keys.clone();
    expected.resize(len + 2, K::zeroed());
    let bytes = |keys: &[K]| -> Vec<u8> { keys.iter().flat_map(|key| bytemuck::bytes_of(key).to_vec()).collect() };
    let input = stream.upload(host).unwrap();

    let mut output = stream.upload(&filler).unwrap();
    let count = runs::distinct(stream, &input, &mut output).unwrap().get(stream).unwrap();
    assert_eq!(count, keys.len() as u64, "{len}");
    assert!(bytes(&output.to_vec(stream).unwrap()) == bytes(&expected), "{len} keys");

    let mut output = stream.upload(&filler).unwrap();
    let mut found = stream.upload(&vec![9u32; len]).unwrap();
    let count = runs::distinct_counts(stream, &input, (&mut output, &mut found)).unwrap().get(stream).unwrap();
    assert_eq!(count, keys.len() as u64, "{len}");
    assert!(bytes(&output.to_vec(stream).unwrap()) == bytes(&expected), "{len} keys with counts");
    counts.resize(len, 9);
    assert_eq!(found.to_vec(stream).unwrap(), counts, "{len}");
    let mut found = stream.upload(&vec![0u64; len]).unwrap();
    runs::distinct_counts(stream, &input, (&mut output, &mut found)).unwrap();
    let found = found.to_vec(stream).unwrap();
    assert!(found[..keys.len()].iter().zip(&counts).all(|(&found, &count)| found == u64::from(count)), "{len}");

    let mut output = stream.upload(&filler).unwrap();
    let mut found = stream.uninit::<u32>(len).unwrap();
    let count = runs::distinct_inverse(stream, &input, (&mut output, &mut found)).unwrap().get(stream).unwrap();
    assert_eq!(count, keys.len() as u64, "{len}");
    assert!(bytes(&output.to_vec(stream).unwrap()) == bytes(&expected), "{len} keys with inverse");
    assert_eq!(found.to_vec(stream).unwrap(), inverse, "{len}");
}

fn every_length(device: &Device) {
    let stream = device.stream().unwrap();
    let most = if is_gpu(device) { 70_000 } else { 2049 };
    for len in [0, 1, 2, 33, 1000, most] {
        for distinct in [1, 20, u64::MAX] {
            let host: Vec<u32> = random(1).take(len).map(|x| (x % distinct) as u32).collect();
            check(&stream, &host, u32::cmp);
        }
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty: $of:expr, $compare:expr;)*) => { $(
            let host: Vec<$type> = random(2).take(600).map(|x| x % 200).map($of).collect();
            check(&stream, &host, $compare);
        )* };
    }
    check! {
        u8: |x| x as u8, u8::cmp;
        i8: |x| x as i8, i8::cmp;
        u16: |x| x as u16, u16::cmp;
        i16: |x| x as i16 - 100, i16::cmp;
        i32: |x| x as i32 - 100, i32::cmp;
        f32: |x| if x < 10 { -0.0 } else if x < 20 { f32::NAN } else { (x % 100) as f32 - 50.0 }, f32::total_cmp;
        u64: |x| x << 40, u64::cmp;
        i64: |x| (x << 55) as i64, i64::cmp;
        f64: |x| x as f64 - 150.5, f64::total_cmp;
        u128: |x| u128::from(x) << 90, u128::cmp;
        i128: |x| (i128::from(x) - 150) << 90, i128::cmp;
        f16: |x| f16::from_bits((x * 219) as u16), f16::total_cmp;
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Record, RadixKey)]
struct Version {
    major: u16,
    minor: u8,
    patch: u8,
}

fn own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let version = |x: u64| Version { major: x as u16 % 7, minor: (x >> 20) as u8 % 5, patch: (x >> 30) as u8 % 3 };
    check(&stream, &random(3).take(1500).map(version).collect::<Vec<_>>(), Version::cmp);
}

fn keys_of_256_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let key =
        |x: u64| U256 { high: u128::from(x % 5) << 70, low: u128::from(x >> 20 & 3) << 64 | u128::from(x >> 30 & 1) };
    check(&stream, &random(4).take(600).map(key).collect::<Vec<_>>(), U256::cmp);
}

/// Checks the distinct keys and their counts, by a hash table for so many keys.
fn check_hashed<K: FromCode>(stream: &Stream, host: &[K], most: usize, compare: impl Fn(&K, &K) -> Ordering) {
    let len = host.len();
    let mut sorted = host.to_vec();
    sorted.sort_by(&compare);
    let (mut keys, mut counts) = (Vec::<K>::new(), Vec::<u64>::new());
    for key in sorted {
        if keys.last().is_none_or(|last| compare(last, &key) != Ordering::Equal) {
            keys.push(key);
            counts.push(0);
        }
        *counts.last_mut().unwrap() += 1;
    }
    let different = keys.len();
    // What follows the keys is not changed.
    keys.resize(len + 2, K::zeroed());
    counts.resize(len, 9);
    let input = stream.upload(host).unwrap();
    let mut output = stream.zeroed::<K>(len + 2).unwrap();
    let mut found = stream.upload(&vec![9u64; len]).unwrap();
    let count = runs::distinct_counts_hashed(stream, &input, (&mut output, &mut found), most).unwrap();
    assert_eq!(count.get(stream).unwrap(), different as u64, "{len} keys, {most} expected");
    let bytes = |keys: &[K]| -> Vec<u8> { keys.iter().flat_map(|key| bytemuck::bytes_of(key).to_vec()).collect() };
    assert!(bytes(&output.to_vec(stream).unwrap()) == bytes(&keys), "{len} keys, {most} expected");
    assert_eq!(found.to_vec(stream).unwrap(), counts, "{len} keys, {most} expected");
    let mut found = stream.upload(&vec![9u32; len]).unwrap();
    runs::distinct_counts_hashed(stream, &input, (&mut output, &mut found), most).unwrap();
    assert!(found.to_vec(stream).unwrap().into_iter().map(u64::from).eq(counts), "{len} keys, 32 bits");
}

fn hashed(device: &Device) {
    let stream = device.stream().unwrap();
    for (len, kinds) in [(0, 1), (1, 1), (513, 3000), (1025, 1), (3000, 400)] {
        let host: Vec<u32> = random(len as u64).take(len).map(|x| (x % kinds) as u32 * 7).collect();
        check_hashed(&stream, &host, 400, u32::cmp);
    }
    let numbers = |seed: u64| random(seed).take(1100).map(|x| x % 300);
    let host: Vec<f32> = numbers(1).map(|x| x as f32 - 150.0).collect();
    check_hashed(&stream, &host, 300, f32::total_cmp);
    let host: Vec<i64> = numbers(2).map(|x| (x as i64 - 150) << 40).collect();
    check_hashed(&stream, &host, 300, i64::cmp);
    let host: Vec<f64> = numbers(3).map(|x| (x as f64 - 150.0) / 7.0).collect();
    check_hashed(&stream, &host, 300, f64::total_cmp);
    let host: Vec<i16> = numbers(4).map(|x| x as i16 - 150).collect();
    check_hashed(&stream, &host, 300, i16::cmp);
    let host: Vec<f16> = numbers(5).map(|x| f16::from_f32(x as f32 - 150.0)).collect();
    check_hashed(&stream, &host, 300, f16::total_cmp);
    // Codes of more than 64 bits are sorted.
    let host: Vec<i128> = numbers(6).map(|x| (x as i128 - 150) << 90).collect();
    check_hashed(&stream, &host, 300, i128::cmp);
    if is_gpu(device) {
        let host: Vec<u32> = random(7).take(1 << 24).map(|x| (x % (1 << 16)) as u32).collect();
        check_hashed(&stream, &host, 1 << 16, u32::cmp);
        check_hashed(&stream, &vec![5u64; 1 << 24], 1 << 16, u64::cmp);
    }
}

/// The code that stands for an empty slot is also the code of a key.
fn hashed_keys_that_are_all_ones(device: &Device) {
    let stream = device.stream().unwrap();
    for ones in [1, 1100] {
        let host: Vec<u64> = (0..1100).map(|i| if i < ones { u64::MAX } else { i % 10 }).collect();
        check_hashed(&stream, &host, 20, u64::cmp);
        let host: Vec<u32> = (0..1100).map(|i| if i < ones { u32::MAX } else { i as u32 % 10 }).collect();
        check_hashed(&stream, &host, 20, u32::cmp);
        // The greatest code of a float is a NaN.
        let host: Vec<f64> = (0..1100).map(|i| if i < ones { f64::from_bits(u64::MAX >> 1) } else { 1.0 }).collect();
        check_hashed(&stream, &host, 20, f64::total_cmp);
    }
}

/// There are as many keys as slots, and in addition the one that is no key of a slot: all are counted to the end.
fn full_tables_and_all_ones(device: &Device) {
    let stream = device.stream().unwrap();
    for last in [1023, 1024, 1025] {
        let host: Vec<u64> = [u64::MAX].into_iter().chain(0..last).chain([5, 5, 7_000, u64::MAX]).collect();
        check_hashed(&stream, &host, 20, u64::cmp);
    }
}

/// The keys after those that count are not looked at.
fn counted_keys_of_256_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let key = |low: u128| U256 { high: low % 3, low };
    let host: Vec<U256> = (0..700).map(|i| key(i % 50)).collect();
    let input = stream.upload(&host).unwrap();
    for len in [0, 1, 20, 699, 700, 900] {
        let count = DeviceValue::new(&stream, len).unwrap();
        let mut expected = host[..host.len().min(len as usize)].to_vec();
        expected.sort();
        expected.dedup();
        let (mut keys, mut counts) = (stream.zeroed::<U256>(700).unwrap(), stream.zeroed::<u32>(700).unwrap());
        let found = runs::distinct(&stream, counted(&input, &count), &mut keys).unwrap().get(&stream).unwrap();
        assert_eq!(found as usize, expected.len(), "{len}");
        assert_eq!(keys.to_vec(&stream).unwrap()[..expected.len()], expected, "{len}");
        let found = runs::distinct_counts(&stream, counted(&input, &count), (&mut keys, &mut counts));
        assert_eq!(found.unwrap().get(&stream).unwrap() as usize, expected.len(), "{len}");
        assert_eq!(counts.to_vec(&stream).unwrap().iter().sum::<u32>() as u64, len.min(700), "{len}");
    }
}

/// The table is full, and the keys are sorted.
fn more_keys_than_expected(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = random(8).take(3000).map(|x| x as u32).collect();
    for most in [0, usize::MAX] {
        check_hashed(&stream, &host, most, u32::cmp);
    }
    let host: Vec<u64> = random(8).take(3000).collect();
    check_hashed(&stream, &host, 10, u64::cmp);
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 3]).unwrap();
    let mut short = stream.upload(&[7u32; 2]).unwrap();
    let mut output = stream.upload(&[7u32; 3]).unwrap();
    let error = runs::distinct(&stream, &input, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let mut counts = stream.uninit::<u32>(2).unwrap();
    let error = runs::distinct_counts(&stream, &input, (&mut output, &mut counts)).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let mut inverse = stream.uninit::<u32>(4).unwrap();
    let error = runs::distinct_inverse(&stream, &input, (&mut output, &mut inverse)).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    assert_eq!(short.to_vec(&stream).unwrap(), [7; 2]);
    assert_eq!(output.to_vec(&stream).unwrap(), [7; 3]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = random(5).take(3000).map(|x| x as u32 % 40).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<u32>(3000).unwrap();
    let mut inverse = stream.uninit::<u32>(3000).unwrap();
    let (mut graph, count) =
        stream.capture(|stream| runs::distinct_inverse(stream, &input, (&mut output, &mut inverse))).unwrap();
    // SAFETY: the input and the results are still there.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(count.get(&stream).unwrap(), 40);
    let (keys, inverse) = (output.slice(..40).unwrap().to_vec(&stream).unwrap(), inverse.to_vec(&stream).unwrap());
    assert!(inverse.into_iter().map(|i| keys[i as usize]).eq(host));
}
