//! The multisplit.

use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Modulo;
use gpu_conformance::{adversarial_streams, cases, is_checked, run};
use gpu_primitives::multisplit::{self, Bucket, Shift};
use gpu_primitives::{Device, DeviceKind, Error, Stream};
use std::process::ExitCode;

/// The tile of small inputs.
const TILE: usize = 2048;

fn main() -> ExitCode {
    run(cases![
        small_splits,
        every_number_of_buckets,
        keys_of_64_bits,
        own_bucket_function,
        buckets_beyond_the_last,
        large,
        bad_input,
        adversarial_schedules,
    ])
}

/// Returns the keys with their indices, stably ordered by bucket, and the starts of the buckets.
fn oracle<B: Bucket<u32>>(keys: &[u32], buckets: u32, bucket: B) -> (Vec<(u32, u32)>, Vec<u64>) {
    let number = |key: u32| bucket.bucket(key).min(buckets - 1);
    let mut pairs: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
    pairs.sort_by_key(|&(key, _)| number(key));
    let bounds = (0..=buckets).map(|b| pairs.partition_point(|&(key, _)| number(key) < b) as u64).collect();
    (pairs, bounds)
}

/// Splits keys alone.
fn check_keys<B: Bucket<u32>>(stream: &Stream, keys: &[u32], buckets: u32, bucket: B) {
    let (expected, bounds) = oracle(keys, buckets, bucket);
    let input = stream.upload(keys).unwrap();
    let mut output = stream.uninit::<u32>(keys.len()).unwrap();
    let offsets = multisplit::keys(stream, &input, &mut output, buckets, bucket).unwrap();
    assert_eq!(offsets.to_vec(stream).unwrap(), bounds, "{} keys, {buckets} buckets", keys.len());
    let found = output.to_vec(stream).unwrap();
    assert!(found.into_iter().eq(expected.into_iter().map(|(key, _)| key)), "{} keys, {buckets} buckets", keys.len());
}

/// Splits pairs of key and index, and the keys alone.
fn check<B: Bucket<u32>>(stream: &Stream, keys: &[u32], buckets: u32, bucket: B) {
    let (expected, bounds) = oracle(keys, buckets, bucket);
    let (keys_in, values_in) =
        (stream.upload(keys).unwrap(), stream.upload(&(0..keys.len() as u32).collect::<Vec<_>>()).unwrap());
    let mut keys_out = stream.uninit::<u32>(keys.len()).unwrap();
    let mut values_out = stream.uninit::<u32>(keys.len()).unwrap();
    let offsets =
        multisplit::pairs(stream, (&keys_in, &values_in), (&mut keys_out, &mut values_out), buckets, bucket).unwrap();
    assert_eq!(offsets.to_vec(stream).unwrap(), bounds, "{} pairs, {buckets} buckets", keys.len());
    let found: Vec<(u32, u32)> =
        keys_out.to_vec(stream).unwrap().into_iter().zip(values_out.to_vec(stream).unwrap()).collect();
    assert!(found == expected, "{} pairs, {buckets} buckets", keys.len());
    check_keys(stream, keys, buckets, bucket);
}

fn small_splits(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(TILE) {
        let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &keys, 8, Shift::by(29));
    }
}

fn every_number_of_buckets(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = random(1).take(TILE + 300).map(|x| (x % 256) as u32).collect();
    for buckets in [1, 2, 3, 31, 32, 33, 255, 256] {
        check(&stream, &keys, buckets, Shift::by(0));
    }
}

fn keys_of_64_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u64> = random(2).take(TILE + 99).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<u64>(host.len()).unwrap();
    multisplit::keys(&stream, &input, &mut output, 32, Shift::by(59)).unwrap();
    let mut expected = host;
    expected.sort_by_key(|key| key >> 59);
    assert!(output.to_vec(&stream).unwrap() == expected);
}

fn own_bucket_function(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = random(3).take(2 * TILE + 5).map(|x| x as u32).collect();
    check(&stream, &keys, 10, Modulo { divisor: 10 });
}

fn buckets_beyond_the_last(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = random(4).take(3000).map(|x| x as u32).collect();
    check(&stream, &keys, 5, Shift::by(20));
}

fn large(device: &Device) {
    let n = match device.kind() {
        DeviceKind::CpuChecked => 4 * TILE + 1,
        DeviceKind::Cpu => (1 << 19) + 321,
        DeviceKind::Cuda { .. } => (1 << 23) + 321,
    };
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = random(5).take(n).map(|x| x as u32).collect();
    for (buckets, bits) in [(256, 24), (2, 31)] {
        check(&stream, &keys, buckets, Shift::by(bits));
        if is_checked(device) {
            break;
        }
    }
}

fn bad_input(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[3u32, 1, 2]).unwrap();
    let mut out = stream.upload(&[9u32; 3]).unwrap();
    for buckets in [0, 257, u32::MAX] {
        let result = multisplit::keys(&stream, &keys, &mut out, buckets, Shift::by(0));
        assert!(matches!(result, Err(Error::TooMany { limit: 256, .. })));
    }
    let mut short = stream.upload(&[9u32; 2]).unwrap();
    let result = multisplit::keys(&stream, &keys, &mut short, 4, Shift::by(0));
    assert!(matches!(result, Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    assert_eq!(out.to_vec(&stream).unwrap(), [9; 3]);
}

/// Adversarial orders of blocks and threads: the tiles find the same positions in all of them.
fn adversarial_schedules(device: &Device) {
    let keys: Vec<u32> = random(6).take(2 * TILE + 100).map(|x| x as u32).collect();
    for (seed, stream) in adversarial_streams(device, 20) {
        check_keys(&stream, &keys, 1 + seed as u32, Shift::by(24));
    }
}
