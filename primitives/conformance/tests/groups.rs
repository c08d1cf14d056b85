//! Counts, offsets and positions of small integers against loops on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::histogram::{self, Bucket, Value};
use gpu_primitives::multisplit::{self, GroupKey};
use gpu_primitives::source::{counted, counting};
use gpu_primitives::{Device, DeviceValue, Error, Stream};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        every_length,
        every_type,
        every_number_of_groups,
        sources,
        negative_keys_and_large_ones,
        wrong_lengths,
        in_a_graph,
    ])
}

/// Checks counts, offsets and positions. `host` has each key as a number, or nothing for one that is in no group.
fn check<T: Pod + GroupKey>(stream: &Stream, keys: &[T], groups: usize, host: &[Option<u64>])
where
    Value: Bucket<T>,
{
    let of = |place: usize| host[place].map_or(groups, |key| (key as usize).min(groups));
    let mut counts = vec![0u32; groups + 1];
    (0..keys.len()).for_each(|place| counts[of(place)] += 1);
    let mut offsets = vec![0u64];
    for &count in &counts[..groups] {
        offsets.push(offsets[offsets.len() - 1] + u64::from(count));
    }
    let mut positions: Vec<u32> = (0..keys.len() as u32).collect();
    positions.sort_by_key(|&place| of(place as usize));

    let what = format!("{} keys, {groups} groups", keys.len());
    let input = stream.upload(keys).unwrap();
    let mut found = stream.upload(&vec![9u32; groups]).unwrap();
    histogram::bincount(stream, &input, &mut found).unwrap();
    assert_eq!(found.to_vec(stream).unwrap(), counts[..groups], "{what}");
    let mut found = stream.upload(&vec![9u64; groups + 1]).unwrap();
    multisplit::group_offsets(stream, &input, &mut found).unwrap();
    assert_eq!(found.to_vec(stream).unwrap(), offsets, "{what}");
    let mut found = stream.upload(&vec![9u32; groups + 1]).unwrap();
    multisplit::group_offsets(stream, &input, &mut found).unwrap();
    assert!(found.to_vec(stream).unwrap().into_iter().map(u64::from).eq(offsets.iter().copied()), "{what}");
    let found = multisplit::group_by(stream, &input, groups as u32).unwrap();
    assert_eq!(found.offsets.to_vec(stream).unwrap(), offsets, "{what}");
    assert!(found.positions.to_vec(stream).unwrap() == positions, "{what}");
}

fn check_unsigned(stream: &Stream, keys: &[u32], groups: usize) {
    let host: Vec<_> = keys.iter().map(|&key| Some(u64::from(key))).collect();
    check(stream, keys, groups, &host);
}

fn every_length(device: &Device) {
    let stream = device.stream().unwrap();
    let most = if is_gpu(device) { 70_000 } else { 2049 };
    for len in [0, 1, 2, 33, 2047, 2048, most] {
        let keys: Vec<u32> = random(1).take(len).map(|x| x as u32 % 70).collect();
        check_unsigned(&stream, &keys, 64);
        check_unsigned(&stream, &keys, 300);
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let keys: Vec<$type> = random(2).take(700).map(|x| (x % 140) as $type).collect();
            let host: Vec<_> = keys.iter().map(|&key| u64::try_from(key).ok()).collect();
            for groups in [100, 300] {
                check(&stream, &keys, groups, &host);
            }
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64);
}

fn every_number_of_groups(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = random(3).take(1000).map(|x| (x % 70_000) as u32 >> (x >> 60)).collect();
    for groups in [0, 1, 2, 255, 256, 257, 65_535, 65_536] {
        // A count per group: thousands are slow where every access is checked.
        if is_checked(device) && groups > 300 {
            continue;
        }
        check_unsigned(&stream, &keys, groups);
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let mut counts = stream.uninit::<u32>(4).unwrap();
    histogram::bincount(&stream, counting(2u32, 1000), &mut counts).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [0, 0, 1, 1]);
    let keys = stream.upload(&[1u8, 0, 1, 1, 2]).unwrap();
    let count = DeviceValue::new(&stream, 3).unwrap();
    multisplit::group_offsets(&stream, counted(&keys, &count), &mut counts).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [0, 1, 3, 3]);
}

fn negative_keys_and_large_ones(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = [3i64, -1, i64::MIN, 1 << 32, (1 << 32) + 3, i64::MAX, 0, 3];
    let host: Vec<_> = keys.iter().map(|&key| u64::try_from(key).ok()).collect();
    check(&stream, &keys, 5, &host);
    check(&stream, &keys, 5000, &host);
    let keys = [3i8, -1, i8::MIN, 127, 0];
    let host: Vec<_> = keys.iter().map(|&key| u64::try_from(key).ok()).collect();
    check(&stream, &keys, 200, &host);
    check(&stream, &keys, 400, &host);
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[1u32, 2]).unwrap();
    let mut none = stream.uninit::<u32>(0).unwrap();
    let error = multisplit::group_offsets(&stream, &keys, &mut none).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&random(4).take(3000).map(|x| x as u32 % 5).collect::<Vec<_>>()).unwrap();
    let (mut graph, groups) = stream.capture(|stream| multisplit::group_by(stream, &keys, 5)).unwrap();
    // SAFETY: the keys and the results are still there.
    unsafe { graph.launch(&stream).unwrap() };
    let keys = keys.to_vec(&stream).unwrap();
    let positions = groups.positions.to_vec(&stream).unwrap();
    assert!(positions.is_sorted_by_key(|&place| (keys[place as usize], place)));
    assert_eq!(groups.offsets.to_vec(&stream).unwrap()[5], 3000);
}
