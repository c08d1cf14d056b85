//! Distinct keys of unsorted input against a sort on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_gpu, run};
use gpu_primitives::operator::Record;
use gpu_primitives::sort::{FromCode, RadixKey, U256};
use gpu_primitives::{Device, Error, Stream, runs};
use half::f16;
use std::cmp::Ordering;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![every_length, every_type, own_keys, keys_of_256_bits, wrong_lengths, in_a_graph])
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
    let count = runs::distinct_counts(stream, &input, &mut output, &mut found).unwrap().get(stream).unwrap();
    assert_eq!(count, keys.len() as u64, "{len}");
    assert!(bytes(&output.to_vec(stream).unwrap()) == bytes(&expected), "{len} keys with counts");
    counts.resize(len, 9);
    assert_eq!(found.to_vec(stream).unwrap(), counts, "{len}");
    let mut found = stream.upload(&vec![0u64; len]).unwrap();
    runs::distinct_counts(stream, &input, &mut output, &mut found).unwrap();
    let found = found.to_vec(stream).unwrap();
    assert!(found[..keys.len()].iter().zip(&counts).all(|(&found, &count)| found == u64::from(count)), "{len}");

    let mut output = stream.upload(&filler).unwrap();
    let mut found = stream.uninit::<u32>(len).unwrap();
    let count = runs::distinct_inverse(stream, &input, &mut output, &mut found).unwrap().get(stream).unwrap();
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

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 3]).unwrap();
    let mut short = stream.upload(&[7u32; 2]).unwrap();
    let mut output = stream.upload(&[7u32; 3]).unwrap();
    let error = runs::distinct(&stream, &input, &mut short).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let mut counts = stream.uninit::<u32>(2).unwrap();
    let error = runs::distinct_counts(&stream, &input, &mut output, &mut counts).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    let mut inverse = stream.uninit::<u32>(4).unwrap();
    let error = runs::distinct_inverse(&stream, &input, &mut output, &mut inverse).unwrap_err();
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
        stream.capture(|stream| runs::distinct_inverse(stream, &input, &mut output, &mut inverse)).unwrap();
    // SAFETY: the input and the results are still there.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(count.get(&stream).unwrap(), 40);
    let (keys, inverse) = (output.slice(..40).unwrap().to_vec(&stream).unwrap(), inverse.to_vec(&stream).unwrap());
    assert!(inverse.into_iter().map(|i| keys[i as usize]).eq(host));
}
