//! Fill and copy.

use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::{cases, is_checked, run};
use gpu_primitives::transfer::{copy, fill};
use gpu_primitives::{Device, Error, Stream, transform};
use std::process::ExitCode;

/// The number of 16-byte lines that a block of the transfer kernels fills. It is a multiple of the number that it
/// copies.
const TILE_LINES: usize = 1024;

fn main() -> ExitCode {
    run(cases![
        small_fill,
        small_copy,
        copy_at_every_alignment,
        fill_at_every_alignment,
        fill_wide_values,
        fill_any_size,
        large,
        length_mismatch,
    ])
}

fn small_fill(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(4 * TILE_LINES) {
        let mut data = stream.uninit::<u32>(n).unwrap();
        fill(&stream, &mut data, 0xDEAD_BEEF).unwrap();
        assert_eq!(data.to_vec(&stream).unwrap(), vec![0xDEAD_BEEF; n], "n = {n}");
    }
}

fn small_copy(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(4 * TILE_LINES) {
        let host: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        let from = stream.upload(&host).unwrap();
        let mut to = stream.uninit::<u32>(n).unwrap();
        copy(&stream, &from, &mut to).unwrap();
        assert_eq!(to.to_vec(&stream).unwrap(), host, "n = {n}");
    }
}

/// Bytes outside the target do not change.
fn copy_at_every_alignment(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u8> = random(1).take(400).map(|x| x as u8).collect();
    let from = stream.upload(&host).unwrap();
    for start in 0..17 {
        for target in 0..17 {
            for len in [0, 1, 15, 16, 17, 33, 300] {
                let mut to = stream.upload(&[7u8; 400]).unwrap();
                let source = from.slice(start..start + len).unwrap();
                copy(&stream, source, to.slice_mut(target..target + len).unwrap()).unwrap();
                let mut expected = [7u8; 400];
                expected[target..target + len].copy_from_slice(&host[start..start + len]);
                assert_eq!(to.to_vec(&stream).unwrap(), expected, "{len} bytes from {start} to {target}");
            }
        }
    }
}

fn fill_at_every_alignment(device: &Device) {
    let stream = device.stream().unwrap();
    for start in 0..17 {
        for len in [0, 1, 7, 15, 16, 17, 40, 300] {
            let mut data = stream.upload(&[7u16; 400]).unwrap();
            fill(&stream, data.slice_mut(start..start + len).unwrap(), 0xABCD).unwrap();
            let mut expected = [7u16; 400];
            expected[start..start + len].fill(0xABCD);
            assert_eq!(data.to_vec(&stream).unwrap(), expected, "{len} from {start}");
        }
    }
}

/// Elements whose alignment is less than their size: the pattern need not start at a line.
fn fill_wide_values(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes: [u8; 16] = std::array::from_fn(|i| i as u8);
    let mut data = stream.uninit::<[u8; 16]>(3000).unwrap();
    fill(&stream, &mut data, bytes).unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), vec![bytes; 3000]);
    for start in 1..5 {
        let mut data = stream.upload(&[[0u32; 2]; 100]).unwrap();
        fill(&stream, data.slice_mut(start..90).unwrap(), [1, 2]).unwrap();
        let mut expected = [[0; 2]; 100];
        expected[start..90].fill([1, 2]);
        assert_eq!(data.to_vec(&stream).unwrap(), expected);
    }
    let mut data = stream.uninit::<f64>(777).unwrap();
    fill(&stream, &mut data, -1.5).unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), vec![-1.5; 777]);
}

/// Sizes that do not divide a line, also longer ones.
fn fill_any_size(device: &Device) {
    fn check<const SIZE: usize>(stream: &Stream) {
        let value: [u8; SIZE] = std::array::from_fn(|i| i as u8 + 1);
        for (start, end) in [(0, 1), (1, 2), (1, 3), (3, 100), (0, 100), (7, 7)] {
            let mut data = stream.upload(&[[0; SIZE]; 100]).unwrap();
            let mut expected = vec![[0; SIZE]; 100];
            for value in [value, [9; SIZE]] {
                fill(stream, data.slice_mut(start..end).unwrap(), value).unwrap();
                expected[start..end].fill(value);
                assert_eq!(data.to_vec(stream).unwrap(), expected, "{SIZE} bytes, {start}..{end}");
            }
        }
    }
    let stream = device.stream().unwrap();
    check::<3>(&stream);
    check::<6>(&stream);
    check::<12>(&stream);
    check::<17>(&stream);
    check::<24>(&stream);
    check::<40>(&stream);
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let n = if is_checked(device) { 50_001 } else { 3_000_001 };
    let mut a = stream.uninit::<u64>(n).unwrap();
    let mut b = stream.uninit::<u64>(n).unwrap();
    transform::sequence(&stream, &mut a, 1 << 40).unwrap();
    copy(&stream, &a, &mut b).unwrap();
    assert!(b.to_vec(&stream).unwrap().into_iter().eq((1 << 40)..(1 << 40) + n as u64));
}

fn length_mismatch(device: &Device) {
    let stream = device.stream().unwrap();
    let from = stream.upload(&[1u32, 2, 3]).unwrap();
    let mut to = stream.upload(&[0u32; 2]).unwrap();
    let error = copy(&stream, &from, &mut to).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
    assert_eq!(to.to_vec(&stream).unwrap(), [0, 0]);
}
