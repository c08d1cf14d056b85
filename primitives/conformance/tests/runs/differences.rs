//! Differences of neighbours.

use crate::common::{assert_same, in_runs, spread};
use bytemuck::Pod;
use gpu_primitives::map::Map2;
use gpu_primitives::operator::map;
use gpu_primitives::runs;
use gpu_primitives::{Device, Stream};
use std::fmt::Debug;

pub fn check_difference<T, F>(stream: &Stream, host: &[T], function: F)
where
    T: Pod + Debug + PartialEq,
    F: Map2<T, T, Output = T>,
{
    let expected: Vec<T> =
        (0..host.len()).map(|i| if i == 0 { host[0] } else { function.map(host[i], host[i - 1]) }).collect();
    let mut input = stream.upload(host).unwrap();
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    runs::adjacent_difference(stream, &input, &mut output, function).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &expected, "differences");
    runs::adjacent_difference_in_place(stream, &mut input, function).unwrap();
    assert_same(&input.to_vec(stream).unwrap(), &expected, "differences in place");
}

pub fn small_differences(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 33, 1000] {
        check_difference(&stream, &in_runs(10, len, 2), map!(|a: u32, b: u32| -> u32 { a.wrapping_sub(b) }));
    }
}

pub fn differences_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty, $function:expr;)*) => { $(
            let host: Vec<$type> = in_runs(32, 2500, 1).into_iter().map(spread).collect();
            check_difference(&stream, &host, $function);
        )* };
    }
    check! {
        u8, map!(|a: u8, b: u8| -> u8 { a.wrapping_sub(b) });
        u64, map!(|a: u64, b: u64| -> u64 { a.wrapping_sub(b) });
        [u8; 3], map!(|a: [u8; 3], b: [u8; 3]| -> [u8; 3] { [a[0], b[1], a[2]] });
        [u32; 3], map!(|a: [u32; 3], b: [u32; 3]| -> [u32; 3] { [a[0], b[1], a[2]] });
        u128, map!(|a: u128, b: u128| -> u128 { a ^ b });
        [u64; 4], map!(|a: [u64; 4], b: [u64; 4]| -> [u64; 4] { [a[0], b[1], a[2], b[3]] });
    }
}
