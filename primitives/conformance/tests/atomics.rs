//! Atomics on floats, in global and in shared memory.

use gpu_conformance::data::random;
use gpu_conformance::kernels::CollectFloats;
use gpu_conformance::{cases, run};
use gpu_primitives::Device;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![small_floats, small_doubles, small_zeros])
}

macro_rules! check {
    ($device:expr, $type:ty, $numbers:expr) => {{
        let (numbers, stream): (Vec<$type>, _) = ($numbers, $device.stream().unwrap());
        let input = stream.upload(&numbers).unwrap();
        let mut results = stream.upload(&[numbers[0]; 6]).unwrap();
        let kernel = CollectFloats::new(input.view(&stream).unwrap(), results.view_mut(&stream).unwrap());
        // SAFETY: one block; there are 256 numbers and six results.
        unsafe { stream.launch(kernel, 1).unwrap() };
        let sum = numbers.iter().sum::<$type>();
        let min = numbers.iter().copied().min_by(|a, b| a.total_cmp(b)).unwrap();
        let max = numbers.iter().copied().max_by(|a, b| a.total_cmp(b)).unwrap();
        let found = results.to_vec(&stream).unwrap();
        assert_eq!([found[0], found[3]], [sum; 2]);
        assert_eq!([1, 2, 4, 5].map(|i| found[i].to_bits()), [min, max, min, max].map(<$type>::to_bits));
    }};
}

/// Small whole numbers: their sum is exact in any order.
fn small_floats(device: &Device) {
    check!(device, f32, random(1).take(256).map(|x| (x % 2001) as f32 - 1000.0).collect());
}

fn small_doubles(device: &Device) {
    check!(device, f64, random(2).take(256).map(|x| (x % (1 << 40)) as f64 - (1u64 << 39) as f64).collect());
}

/// The negative zero is the smaller one.
fn small_zeros(device: &Device) {
    check!(device, f32, (0..256).map(|i| if i % 3 == 0 { 0.0 } else { -0.0 }).collect());
    check!(device, f64, (0..256).map(|i| if i % 3 == 1 { -0.0 } else { 0.0 }).collect());
}
