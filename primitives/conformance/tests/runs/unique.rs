//! `unique` and `unique_by_key`.

use crate::common::{TILE, assert_same, at_edges, filler, front, heads, in_runs, spread};
use crate::reduce::check_reduce;
use bytemuck::Pod;
use gpu_conformance::is_checked;
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::monoid::Sum;
use gpu_primitives::operator::equality;
use gpu_primitives::runs::{self, Which};
use gpu_primitives::{Device, Stream};
use std::fmt::Debug;

pub fn check_unique<T: Pod + Debug + PartialEq, E: Equality<T>>(stream: &Stream, host: &[T], equality: E) {
    let heads = heads(host, equality);
    let input = stream.upload(host).unwrap();
    let mut output = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let count = runs::unique(stream, &input, &mut output, equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| host[i]), filler(), host.len());
    assert_same(&output.to_vec(stream).unwrap(), &expected, "first elements");

    let mut output = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let count = runs::unique_last(stream, &input, &mut output, equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[1..].iter().map(|&i| host[i - 1]), filler(), host.len());
    assert_same(&output.to_vec(stream).unwrap(), &expected, "last elements");
}

pub fn check_pairs<K, V, E>(stream: &Stream, keys: &[K], values: &[V], equality: E)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    E: Equality<K>,
{
    let heads = heads(keys, equality);
    let (from, from_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    for which in [Which::First, Which::Last] {
        let mut to = stream.upload(&vec![filler::<K>(); keys.len()]).unwrap();
        let mut to_values = stream.upload(&vec![filler::<V>(); keys.len()]).unwrap();
        let count =
            runs::unique_by_key(stream, (&from, &from_values), (&mut to, &mut to_values), equality, which).unwrap();
        assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
        let kept = || heads.windows(2).map(|run| if which == Which::First { run[0] } else { run[1] - 1 });
        let what = format!("{} + {} bytes, {which:?}", size_of::<K>(), size_of::<V>());
        assert_same(&to.to_vec(stream).unwrap(), &front(kept().map(|i| keys[i]), filler(), keys.len()), &what);
        let expected = front(kept().map(|i| values[i]), filler(), keys.len());
        assert_same(&to_values.to_vec(stream).unwrap(), &expected, &what);
    }
}

pub fn small_unique(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_unique(&stream, &in_runs(1, len, 5), Same);
        check_pairs(&stream, &in_runs(2, len, 5), &in_runs(3, len, 1), Same);
    }
}

pub fn unique_patterns(device: &Device) {
    at_edges(device, TILE, |stream, host| check_unique(stream, host, Same));
    at_edges(device, TILE / 2, |stream, host| {
        check_unique(stream, &host.iter().map(|&x| u64::from(x) << 20).collect::<Vec<_>>(), Same);
    });
}

pub fn unique_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            for len in [1, 300, 8 * 256 + 1, 3 * 8 * 256 - 1] {
                if !is_checked(device) || len <= 300 {
                    let host: Vec<$type> = in_runs(13, len, 6).into_iter().map(spread).collect();
                    check_unique(&stream, &host, equality!(|a: $type, b: $type| a == b));
                }
            }
        )* };
    }
    check!(u8 i16 f32 i64 u128 [u8; 2] [u8; 3] [u8; 5] [u16; 3] [u32; 2] [u32; 3] [u16; 7] [u32; 5] [u64; 3] [u8; 31] [u64; 4]);
}

pub fn unique_by_key_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    let (runs_of, numbers) = (in_runs(14, len, 6), in_runs(15, len, 1));
    macro_rules! check {
        ($($key:ty, $value:ty;)*) => { $(
            let keys: Vec<$key> = runs_of.iter().map(|&x| spread(x)).collect();
            let values: Vec<$value> = numbers.iter().map(|&x| spread(x)).collect();
            check_pairs(&stream, &keys, &values, equality!(|a: $key, b: $key| a == b));
        )* };
    }
    check! {
        u32, u32; u32, u64; u64, u32; u64, f64; u32, [u8; 3]; u32, u8; i64, [u64; 5]; u8, u32; u16, u64; u128, u16;
        [u8; 5], [u8; 5]; [u32; 3], u128; [u64; 4], [u64; 4];
    }
}

pub fn custom_equalities(device: &Device) {
    let stream = device.stream().unwrap();
    let host = in_runs(16, 3000, 3);
    check_unique(&stream, &host, equality!(|a: u32, b: u32| a / 16 == b / 16));
    check_unique(&stream, &host, equality!(divisor: u32 = 100; |a: u32, b: u32| a / divisor == b / divisor));
    // It is called with elements of the input only.
    let positive: Vec<u32> = host.iter().map(|x| x + 1).collect();
    check_unique(&stream, &positive, equality!(|a: u32, b: u32| 1000 / a == 1000 / b));
    check_reduce(&stream, &positive, &host, equality!(|a: u32, b: u32| 10_000 / a == 10_000 / b), Sum);
    // Not an equality: it yields some runs.
    let strange = equality!(|a: u32, b: u32| (a ^ b.wrapping_mul(3)) % 3 == 1);
    let input = stream.upload(&host).unwrap();
    let (mut elements, mut lengths) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u64>(3000).unwrap());
    let count =
        runs::run_length_encode(&stream, &input, (&mut elements, &mut lengths), strange).unwrap().get(&stream).unwrap();
    assert_eq!(lengths.to_vec(&stream).unwrap()[..count as usize].iter().sum::<u64>(), 3000);
}

/// NaN equals nothing, and -0 equals +0: the first one is kept.
pub fn not_a_number(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[0.0f32, -0.0, f32::NAN, f32::NAN, 1.0, 1.0]).unwrap();
    let mut output = stream.zeroed::<f32>(6).unwrap();
    let count = runs::unique(&stream, &input, &mut output, Same).unwrap();
    assert_eq!(count.get(&stream).unwrap(), 4);
    let bits: Vec<u32> = output.to_vec(&stream).unwrap().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, [0.0, f32::NAN, f32::NAN, 1.0, 0.0, 0.0].map(f32::to_bits));
}
