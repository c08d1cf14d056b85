//! `reduce_by_key`.

use crate::common::{TILE, TILE_PAIRS, assert_same, at_edges, filler, front, heads, in_runs, spread};
use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{adversarial_streams, assert_deterministic, is_checked, is_gpu};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::monoid::{Max, Monoid, Sum};
use gpu_primitives::operator::{equality, monoid};
use gpu_primitives::runs;
use gpu_primitives::{Device, Stream, testing};
use std::fmt::Debug;

/// Returns the total of each run.
pub fn totals<V: Pod, M: Monoid<V>>(heads: &[usize], values: &[V], operation: M) -> Vec<V> {
    heads
        .windows(2)
        .map(|run| values[run[0]..run[1]].iter().copied().reduce(|a, b| operation.combine(a, b)).unwrap())
        .collect()
}

pub fn check_reduce<K, V, E, M>(stream: &Stream, keys: &[K], values: &[V], equality: E, operation: M)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    E: Equality<K>,
    M: Monoid<V>,
{
    let heads = heads(keys, equality);
    let (on_keys, on_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let mut to = stream.upload(&vec![filler::<K>(); keys.len()]).unwrap();
    let mut sums = stream.upload(&vec![filler::<V>(); keys.len()]).unwrap();
    let count = runs::reduce_by_key(stream, (&on_keys, &on_values), (&mut to, &mut sums), equality, operation).unwrap();
    let what = format!("{} + {} bytes", size_of::<K>(), size_of::<V>());
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1, "{what}");
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| keys[i]), filler(), keys.len());
    assert_same(&to.to_vec(stream).unwrap(), &expected, &what);
    let expected = front(totals(&heads, values, operation).into_iter(), filler(), keys.len());
    assert_same(&sums.to_vec(stream).unwrap(), &expected, &what);
}

pub fn small_reduce_by_key(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_reduce(&stream, &in_runs(8, len, 5), &in_runs(9, len, 1), Same, Sum);
        check_reduce(&stream, &in_runs(8, len, 50), &in_runs(9, len, 1), Same, Max);
    }
}

pub fn reduce_patterns(device: &Device) {
    at_edges(device, TILE_PAIRS, |stream, keys| check_reduce(stream, keys, &in_runs(24, keys.len(), 1), Same, Sum));
    at_edges(device, TILE_PAIRS / 2, |stream, keys| {
        let keys: Vec<u64> = keys.iter().map(|&x| u64::from(x)).collect();
        check_reduce(stream, &keys, &random(25).take(keys.len()).collect::<Vec<_>>(), Same, Sum);
    });
}

pub fn reduce_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    // No value begins with a zero: that is the identity.
    let (runs_of, numbers) = (in_runs(26, len, 20), in_runs(27, len, 1).into_iter().map(|x| x | 1).collect::<Vec<_>>());
    macro_rules! check {
        ($($key:ty, $value:ty, $operation:expr;)*) => { $(
            let keys: Vec<$key> = runs_of.iter().map(|&x| spread(x)).collect();
            let values: Vec<$value> = numbers.iter().map(|&x| spread(x)).collect();
            check_reduce(&stream, &keys, &values, equality!(|a: $key, b: $key| a == b), $operation);
        )* };
    }
    check! {
        u32, u64, Sum; u64, u32, Sum; i32, i64, Max; u32, u8, Sum; u32, i16, Sum; u32, u128, Sum; u8, u32, Sum; u128, u64, Sum;
        [u8; 5], u32, Max; [u32; 3], u128, Max;
        u32, [u8; 3], monoid!([0; 3], |a: [u8; 3], b: [u8; 3]| if b[0] == 0 { a } else { b });
        u64, [u8; 5], monoid!([0; 5], |a: [u8; 5], b: [u8; 5]| if b[0] == 0 { a } else { b });
        u32, [u32; 3], monoid!([0; 3], |a: [u32; 3], b: [u32; 3]| if a[0] < b[0] { b } else { a });
        [u64; 4], [u64; 4], monoid!([0; 4], |a: [u64; 4], b: [u64; 4]| if a[0] < b[0] { b } else { a });
    }
}

/// The composition of maps is not commutative.
pub fn reduce_in_order(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [100, TILE_PAIRS, 3 * TILE_PAIRS + 5] {
        if !is_checked(device) || len <= 100 {
            for longest in [3, 50, 20_000] {
                let numbers = in_runs(28, 2 * len, 1);
                let maps: Vec<Affine> =
                    numbers.chunks(2).map(|pair| Affine { scale: pair[0] | 1, shift: pair[1] }).collect();
                check_reduce(&stream, &in_runs(29, len, longest), &maps, Same, Compose);
                let keys: Vec<u8> = in_runs(29, len, longest).into_iter().map(|x| x as u8).collect();
                check_reduce(&stream, &keys, &maps, Same, Compose);
            }
        }
    }
}

pub fn floats_are_deterministic(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 60_000 };
    let values: Vec<f32> = random(30).take(len).map(|x| (x >> 40) as f32 / 3.0).collect();
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&in_runs(31, len, 9000)).unwrap(), stream.upload(&values).unwrap());
    let (mut to, mut sums) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<f32>(len).unwrap());
    assert_deterministic(device, || {
        runs::reduce_by_key(&stream, (&keys, &values), (&mut to, &mut sums), Same, Sum).unwrap();
        bytemuck::cast_slice(&sums.to_vec(&stream).unwrap()).to_vec()
    });
}

pub fn adversarial_schedules_of_reduce(device: &Device) {
    if is_gpu(device) {
        return;
    }
    for (seed, stream) in adversarial_streams(device, 8) {
        let (keys, values) = (in_runs(seed, 3000, if seed % 2 == 0 { 4 } else { 400 }), in_runs(42, 3000, 1));
        let heads = heads(&keys, Same);
        let (on_keys, on_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let (mut to, mut sums) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
        let count = testing::reduce_by_key_shaped::<_, _, _, _, 64, 1, 1>(
            &stream,
            (on_keys.as_slice(), on_values.as_slice()),
            (to.as_mut_slice(), sums.as_mut_slice()),
            Same,
            Sum,
        )
        .unwrap();
        assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1, "{seed}");
        let expected = front(totals(&heads, &values, Sum).into_iter(), 0, 3000);
        assert_same(&sums.to_vec(&stream).unwrap(), &expected, &format!("totals with seed {seed}"));
    }
}
