//! The multisplit.

use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Modulo;
use gpu_conformance::{adversarial_streams, cases, is_checked, run};
use gpu_primitives::multisplit::{self, Bucket, Shift};
use gpu_primitives::operator::map;
use gpu_primitives::source::{counted, counting, map};
use gpu_primitives::{Device, DeviceKind, DeviceValue, Error, Stream};
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
        computed_elements,
        lengths_on_the_device,
        lengths_on_the_device_of_other_sizes,
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

fn computed_elements(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 1, 1000, 2 * TILE + 7] {
        let host: Vec<u32> = random(7).take(n).map(|x| x as u32 >> 1).collect();
        let doubled: Vec<u32> = host.iter().map(|x| x * 2).collect();
        let (expected, bounds) = oracle(&doubled, 16, Shift::by(28));
        let (input, plain) = (stream.upload(&host).unwrap(), stream.upload(&doubled).unwrap());
        let keys = || map(&input, map!(|x: u32| -> u32 { x * 2 }));
        let mut to = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
        let offsets = multisplit::keys(&stream, keys(), &mut to.0, 16, Shift::by(28)).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds);
        assert!(to.0.to_vec(&stream).unwrap().into_iter().eq(expected.iter().map(|pair| pair.0)), "{n} keys");
        let pairs = (&mut to.0, &mut to.1);
        multisplit::pairs(&stream, (keys(), counting(0u32, n)), pairs, 16, Shift::by(28)).unwrap();
        let found = to.0.to_vec(&stream).unwrap().into_iter().zip(to.1.to_vec(&stream).unwrap());
        assert!(found.eq(expected.iter().copied()), "{n} computed pairs");
        multisplit::pairs(&stream, (&plain, counting(0u32, n)), (&mut to.0, &mut to.1), 16, Shift::by(28)).unwrap();
        let found = to.0.to_vec(&stream).unwrap().into_iter().zip(to.1.to_vec(&stream).unwrap());
        assert!(found.eq(expected.iter().copied()), "{n} computed values");
    }
}

/// As many keys as the device says, which may be none, or more than there are. What lies beyond stays as it was.
fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let room = 2 * TILE + 5;
    for (len, buckets) in [(0, 7), (1, 256), (TILE, 255), (TILE + 1, 256), (room, 3), (room + 9, 256)] {
        let there = len.min(room);
        let host: Vec<u32> = random(8).take(there).map(|x| x as u32).collect();
        let (expected, bounds) = oracle(&host, buckets, Shift::by(24));
        let mut input = stream.uninit::<u32>(room).unwrap();
        input.slice_mut(..there).unwrap().copy_from_host(&stream, &host).unwrap();
        let count = DeviceValue::new(&stream, len as u64).unwrap();
        let mut keys = stream.upload(&vec![9u32; room]).unwrap();
        let offsets = multisplit::keys(&stream, counted(&input, &count), &mut keys, buckets, Shift::by(24)).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds, "{len} of {room}");
        let rest = |from: usize| (from..room).map(|_| 9);
        assert!(keys.to_vec(&stream).unwrap().into_iter().eq(expected.iter().map(|pair| pair.0).chain(rest(there))));

        let mut places = stream.upload(&vec![9u32; room]).unwrap();
        let from = (&input, counted(counting(0u32, room), &count));
        let offsets = multisplit::pairs(&stream, from, (&mut keys, &mut places), buckets, Shift::by(24)).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds, "{len} of {room}");
        let found = places.to_vec(&stream).unwrap();
        assert!(found.into_iter().eq(expected.iter().map(|pair| pair.1).chain(rest(there))), "{len} of {room}");
    }
}

/// The same with keys and values that no kernel moves.
fn lengths_on_the_device_of_other_sizes(device: &Device) {
    let stream = device.stream().unwrap();
    let room = TILE + 100;
    for len in [0, 700, TILE + 1, room] {
        let host: Vec<u32> = random(9).take(len).map(|x| x as u32).collect();
        let (expected, bounds) = oracle(&host, 200, Shift::by(24));
        let count = DeviceValue::new(&stream, len as u64).unwrap();
        let mut tags = stream.uninit::<[u16; 3]>(room).unwrap();
        let host_tags: Vec<[u16; 3]> = (0..len).map(|i| [i as u16, 1, 2]).collect();
        tags.slice_mut(..len).unwrap().copy_from_host(&stream, &host_tags).unwrap();
        let mut words = stream.uninit::<u32>(room).unwrap();
        words.slice_mut(..len).unwrap().copy_from_host(&stream, &host).unwrap();
        let mut bytes = stream.uninit::<u8>(room).unwrap();
        let upper: Vec<u8> = host.iter().map(|x| (x >> 24) as u8).collect();
        bytes.slice_mut(..len).unwrap().copy_from_host(&stream, &upper).unwrap();

        let mut keys = stream.upload(&vec![9u32; room]).unwrap();
        let mut moved = stream.upload(&vec![[9u16; 3]; room]).unwrap();
        let from = (counted(&words, &count), &tags);
        let offsets = multisplit::pairs(&stream, from, (&mut keys, &mut moved), 200, Shift::by(24)).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds, "{len} of {room}");
        let by_order = expected.iter().map(|&(_, at)| [at as u16, 1, 2]).chain((len..room).map(|_| [9; 3]));
        assert!(moved.to_vec(&stream).unwrap().into_iter().eq(by_order.clone()), "{len} of {room}");

        let mut keys = stream.upload(&vec![9u8; room]).unwrap();
        let mut moved = stream.upload(&vec![[9u16; 3]; room]).unwrap();
        let from = (counted(&bytes, &count), &tags);
        let offsets = multisplit::pairs(&stream, from, (&mut keys, &mut moved), 200, Shift::by(0)).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), bounds, "{len} bytes of {room}");
        assert!(moved.to_vec(&stream).unwrap().into_iter().eq(by_order), "{len} bytes of {room}");
        let in_order = expected.iter().map(|&(key, _)| (key >> 24) as u8).chain((len..room).map(|_| 9));
        assert!(keys.to_vec(&stream).unwrap().into_iter().eq(in_order), "{len} bytes of {room}");
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
    let result = multisplit::keys(&stream, counting(0u32, 3), &mut out, 0, Shift::by(0));
    assert!(matches!(result, Err(Error::TooMany { limit: 256, .. })));
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
