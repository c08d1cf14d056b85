//! The exclusive and the inclusive scan.

use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::{Affine, Compose, SumModulo};
use gpu_conformance::{cases, is_checked, is_gpu, is_long, is_simulated, run};
use gpu_primitives::scan::{self, Max, Min, Monoid, Sum};
use gpu_primitives::{CpuOptions, Device, DeviceKind, Error, Schedule, Stream, testing};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};
use std::fmt::Debug;
use std::process::ExitCode;

/// The number of elements of a tile, for 32-bit and for 64-bit values.
const TILE_32: usize = 256 * 4 * 9;
const TILE_64: usize = 256 * 2 * 9;

fn main() -> ExitCode {
    run(cases![
        small_sums_of_u32,
        sums_of_every_type,
        small_custom_operators,
        with_initial_value,
        in_place,
        misaligned_slices,
        random_lengths_and_values,
        floats_are_deterministic,
        repeated_launches_share_scratch,
        large,
        length_mismatch,
        another_type,
        adversarial_schedules,
    ])
}

/// Returns the sequential scans.
fn oracle<T: Copy, Op: Monoid<T>>(input: &[T], op: Op, init: T) -> (Vec<T>, Vec<T>) {
    let mut sum = init;
    let pairs = input.iter().map(|&item| {
        let before = sum;
        sum = op.combine(sum, item);
        (before, sum)
    });
    pairs.unzip()
}

/// Compares both scans with the oracle.
fn check<T: bytemuck::Pod + Debug + PartialEq, Op: Monoid<T>>(stream: &Stream, host: &[T], op: Op) {
    let (exclusive, inclusive) = oracle(host, op, op.identity());
    let input = stream.upload(host).unwrap();
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    scan::exclusive(stream, &input, &mut output, op, op.identity()).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &exclusive, "exclusive");
    scan::inclusive(stream, &input, &mut output, op).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &inclusive, "inclusive");
}

/// `assert_eq!` that names the first difference instead of printing everything.
fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} elements, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

fn small_sums_of_u32(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(TILE_32) {
        let host: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &host, Sum);
    }
}

fn sums_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(TILE_64) {
        let numbers = || random(n as u64).take(n);
        check(&stream, &numbers().collect::<Vec<u64>>(), Sum);
        check(&stream, &numbers().map(|x| x as i64).collect::<Vec<_>>(), Sum);
        check(&stream, &numbers().map(|x| x as i32).collect::<Vec<_>>(), Sum);
        // Small integers, so that every grouping of the sum is exact.
        check(&stream, &numbers().map(|x| (x % 64) as f32 - 32.0).collect::<Vec<_>>(), Sum);
        check(&stream, &numbers().map(|x| (x % 1024) as f64 - 512.0).collect::<Vec<_>>(), Sum);
    }
}

fn small_custom_operators(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 1, 33, TILE_64 - 1, TILE_64 + 1, 3 * TILE_64 + 5] {
        let maps = random(7).take(n).map(|x| Affine { scale: x as u32 | 1, shift: (x >> 32) as u32 });
        check(&stream, &maps.collect::<Vec<_>>(), Compose);
        let residues = random(8).take(n).map(|x| (x % 1_000_003) as u32);
        check(&stream, &residues.collect::<Vec<_>>(), SumModulo { modulus: 1_000_003 });
    }
}

fn with_initial_value(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 5, TILE_32 + 1] {
        let host: Vec<u32> = random(3).take(n).map(|x| x as u32).collect();
        let input = stream.upload(&host).unwrap();
        let mut output = stream.uninit::<u32>(n).unwrap();
        scan::exclusive(&stream, &input, &mut output, Sum, 100).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &oracle(&host, Sum, 100).0, "exclusive from 100");
    }
}

fn in_place(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u64> = random(4).take(3 * TILE_64 + 9).collect();
    let (exclusive, inclusive) = oracle(&host, Sum, 0);
    let mut data = stream.upload(&host).unwrap();
    scan::exclusive_in_place(&stream, &mut data, Sum, 0).unwrap();
    assert_same(&data.to_vec(&stream).unwrap(), &exclusive, "exclusive in place");
    let mut data = stream.upload(&host).unwrap();
    scan::inclusive_in_place(&stream, &mut data, Sum).unwrap();
    assert_same(&data.to_vec(&stream).unwrap(), &inclusive, "inclusive in place");
}

/// Slices at any offset. The memory around the target does not change.
fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = random(5).take(2 * TILE_32 + 40).map(|x| x as u32).collect();
    let input = stream.upload(&host).unwrap();
    for (from, to) in [(0, 1), (1, 0), (3, 3), (4, 2)] {
        for n in [TILE_32, 2 * TILE_32 + 30] {
            let mut output = stream.upload(&vec![9u32; host.len()]).unwrap();
            let source = input.slice(from..from + n).unwrap();
            scan::inclusive_sum(&stream, source, output.slice_mut(to..to + n).unwrap()).unwrap();
            let mut expected = vec![9; host.len()];
            expected[to..to + n].copy_from_slice(&oracle(&host[from..from + n], Sum, 0).1);
            assert_same(&output.to_vec(&stream).unwrap(), &expected, "from a slice to a slice");
        }
    }
}

fn random_lengths_and_values(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (12, 6000) } else { (64, 40_000) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&vec(any::<u32>(), 0..longest), |host| {
            check(&stream, &host, Sum);
            Ok(())
        })
        .unwrap();
}

/// The same bytes on every run and on the CPU, although rounding depends on the grouping.
fn floats_are_deterministic(device: &Device) {
    let n = 40 * TILE_32 + 123;
    let host: Vec<f32> = random(6).take(n).map(|x| (x as i32) as f32 * 1e-3).collect();
    let scan_on = |device: &Device| {
        let stream = device.stream().unwrap();
        let input = stream.upload(&host).unwrap();
        let mut output = stream.uninit::<f32>(n).unwrap();
        scan::inclusive_sum(&stream, &input, &mut output).unwrap();
        output.to_vec(&stream).unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let reference = scan_on(&Device::cpu());
    for _ in 0..if is_checked(device) { 1 } else { 20 } {
        assert_same(&scan_on(device), &reference, "sums of f32");
    }
    let mut exact = 0.0f64;
    let mut magnitude = 0.0f64;
    for (i, &x) in host.iter().enumerate() {
        exact += f64::from(x);
        magnitude += f64::from(x).abs();
        let found = f64::from(f32::from_bits(reference[i]));
        assert!((found - exact).abs() <= 1e-5 * magnitude, "sum {i}: found {found}, exactly {exact}");
    }
}

/// The data that one launch leaves in the stream's scratch memory does not affect the next one, whether it is longer,
/// shorter or of another type.
fn repeated_launches_share_scratch(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [5 * TILE_32, 1, 2 * TILE_32 + 1, 9 * TILE_32, 40] {
        let host: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &host, Sum);
        check(&stream, &host.iter().map(|&x| u64::from(x)).collect::<Vec<_>>(), Sum);
    }
}

fn large(device: &Device) {
    let n = match device.kind() {
        DeviceKind::CpuChecked => 70 * TILE_32 + 1,
        DeviceKind::Cpu if is_simulated(device) => (1 << 18) + 12_345,
        DeviceKind::Cpu => (1 << 21) + 12_345,
        // Three levels of the look-back tree.
        DeviceKind::Cuda { .. } => 1100 * TILE_32 + 17,
    };
    let stream = device.stream().unwrap();
    let host: Vec<u32> = random(9).take(n).map(|x| x as u32).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<u32>(n).unwrap();
    scan::exclusive_sum(&stream, &input, &mut output).unwrap();
    assert_same(&output.to_vec(&stream).unwrap(), &oracle(&host, Sum, 0).0, "exclusive");
}

fn length_mismatch(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap();
    let mut output = stream.upload(&[5u32; 4]).unwrap();
    let error = scan::exclusive_sum(&stream, &input, &mut output).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 4, .. }), "{error}");
    assert_eq!(output.to_vec(&stream).unwrap(), [5; 4]);
}

fn another_type(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3i16, -1, 4]).unwrap();
    let mut output = stream.zeroed::<i16>(3).unwrap();
    scan::inclusive(&stream, &input, &mut output, Min).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [3, -1, -1]);
    scan::inclusive(&stream, &input, &mut output, Max).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [3, 3, 4]);
}

/// Adversarial orders of blocks and threads: the look-back computes the same sums in all of them.
///
/// The tiles are tiny, so that 70 tiles of few elements make three levels of the look-back tree. Even the rounding of a
/// scan of floats must be the same.
fn adversarial_schedules(device: &Device) {
    if !is_checked(device) {
        return adversarial_timing(device);
    }
    const TILE: usize = 32;
    let n = 70 * TILE + 3;
    let integers: Vec<u64> = random(10).take(n).collect();
    let floats: Vec<f32> = random(11).take(n).map(|x| x as i32 as f32 * 1e-3).collect();
    let mut first_bits: Option<Vec<u32>> = None;
    let expected = oracle(&integers, Sum, 0).1;
    for seed in 0..if is_long() { 1000 } else { 150 } {
        let options = CpuOptions { checked: true, schedule: Schedule::Random { seed }, ..CpuOptions::default() };
        let stream = Device::cpu_with(options).stream().unwrap();
        if seed % 2 == 0 {
            let input = stream.upload(&integers).unwrap();
            let mut output = stream.uninit::<u64>(n).unwrap();
            testing::scan_shaped::<_, _, 32, 1, 1>(&stream, (&input).into(), (&mut output).into(), Sum, true).unwrap();
            assert_same(&output.to_vec(&stream).unwrap(), &expected, "inclusive");
        } else {
            let input = stream.upload(&floats).unwrap();
            let mut output = stream.uninit::<f32>(n).unwrap();
            testing::scan_shaped::<_, _, 32, 1, 1>(&stream, (&input).into(), (&mut output).into(), Sum, false).unwrap();
            let bits: Vec<u32> = output.to_vec(&stream).unwrap().into_iter().map(f32::to_bits).collect();
            assert_same(&bits, first_bits.get_or_insert_with(|| bits.clone()), "bits");
        }
    }
}

/// On devices with their own schedule: many launches, so that blocks run in many orders.
fn adversarial_timing(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 70 * TILE_32 + 3;
    let host: Vec<u32> = random(12).take(n).map(|x| x as u32).collect();
    let expected = oracle(&host, Sum, 0).0;
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<u32>(n).unwrap();
    for _ in 0..if is_gpu(device) || is_long() { 100 } else { 20 } {
        scan::exclusive_sum(&stream, &input, &mut output).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "exclusive");
    }
}
