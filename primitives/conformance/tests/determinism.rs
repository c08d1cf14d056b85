//! Determinism: for every primitive, the same input gives the same bytes on every run, over many tiles.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::compare::{IgnoreLowBit, Less};
use gpu_primitives::multisplit::{self, Shift};
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{Device, DeviceVec, Stream, merge, scan, search};
use std::process::ExitCode;

const ODD: Masked<u32> = Masked::equal(1, 1);

fn main() -> ExitCode {
    run(cases![
        scans_of_floats,
        scans_of_maps,
        sorts,
        argsorts,
        merges,
        merges_of_runs,
        segmented_sorts,
        multisplits,
        selections,
        partitions,
        segmented_compactions,
        searches_in_any_order,
        searches_of_sorted_needles,
    ])
}

/// Many tiles of every primitive; on a GPU more than can run concurrently.
fn len(device: &Device) -> usize {
    match device {
        gpu if is_gpu(gpu) => (1 << 22) + 1234,
        checked if is_checked(checked) => 10_000,
        _ => 20_000,
    }
}

fn numbers(seed: u64, n: usize) -> Vec<u32> {
    random(seed).take(n).map(|x| x as u32).collect()
}

/// Sorted keys with many duplicates.
fn sorted(seed: u64, n: usize) -> Vec<u32> {
    let mut keys: Vec<u32> = random(seed).take(n).map(|x| (x % 1000) as u32).collect();
    keys.sort_unstable();
    keys
}

fn bytes<T: Pod>(stream: &Stream, results: &[&DeviceVec<T>]) -> Vec<u8> {
    let of_each: Vec<Vec<T>> = results.iter().map(|result| result.to_vec(stream).unwrap()).collect();
    of_each.iter().map(|result| bytemuck::cast_slice(result)).collect::<Vec<&[u8]>>().concat()
}

/// Rounding depends on the grouping of a sum.
fn scans_of_floats(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<f32> = numbers(1, len(device)).into_iter().map(|x| x as i32 as f32 * 1e-3).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<f32>(host.len()).unwrap();
    assert_deterministic(device, || {
        scan::inclusive_sum(&stream, &input, &mut output).unwrap();
        bytes(&stream, &[&output])
    });
}

/// The order of the operands matters.
fn scans_of_maps(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<Affine> =
        random(2).take(len(device)).map(|x| Affine { scale: x as u32 | 1, shift: (x >> 32) as u32 }).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<Affine>(host.len()).unwrap();
    assert_deterministic(device, || {
        scan::exclusive(&stream, &input, &mut output, Compose, Affine { scale: 1, shift: 0 }).unwrap();
        bytes(&stream, &[&output])
    });
}

fn sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let keys = stream.upload(&numbers(3, n).into_iter().map(|x| x % 1000).collect::<Vec<_>>()).unwrap();
    let values = stream.upload(&numbers(4, n)).unwrap();
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
    assert_deterministic(device, || {
        let options = Options::new().bits(0..16);
        sort::pairs(&stream, (&keys, &values), (&mut keys_out, &mut values_out), options).unwrap();
        bytes(&stream, &[&keys_out, &values_out])
    });
}

fn argsorts(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&random(5).take(len(device)).map(|x| x % 77).collect::<Vec<_>>()).unwrap();
    assert_deterministic(device, || {
        let order = sort::argsort(&stream, &keys, Options::new().bits(0..8).descending()).unwrap();
        bytes(&stream, &[&order])
    });
}

fn merges(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (a, b) = (stream.upload(&sorted(6, n / 3)).unwrap(), stream.upload(&sorted(7, n)).unwrap());
    let (a_values, b_values) = (stream.upload(&numbers(8, n / 3)).unwrap(), stream.upload(&numbers(9, n)).unwrap());
    let total = n / 3 + n;
    let (mut keys, mut values) = (stream.uninit::<u32>(total).unwrap(), stream.uninit::<u32>(total).unwrap());
    assert_deterministic(device, || {
        merge::pairs(&stream, (&a, &a_values), (&b, &b_values), (&mut keys, &mut values), IgnoreLowBit).unwrap();
        bytes(&stream, &[&keys, &values])
    });
}

fn merges_of_runs(device: &Device) {
    let stream = device.stream().unwrap();
    let lens: Vec<usize> = (0..7).map(|run| len(device) / 28 * run).collect();
    let runs: Vec<_> = lens
        .iter()
        .zip(10..)
        .map(|(&n, seed)| (stream.upload(&sorted(seed, n)).unwrap(), stream.upload(&numbers(seed, n)).unwrap()))
        .collect();
    let slices: Vec<_> = runs.iter().map(|(keys, values)| (keys.as_slice(), values.as_slice())).collect();
    let total = lens.iter().sum();
    let (mut keys, mut values) = (stream.uninit::<u32>(total).unwrap(), stream.uninit::<u32>(total).unwrap());
    assert_deterministic(device, || {
        merge::runs_pairs(&stream, &slices, (&mut keys, &mut values), Less).unwrap();
        bytes(&stream, &[&keys, &values])
    });
}

/// Short segments, and one that has half of all items.
fn segmented_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let offsets: Vec<u32> = (0..n / 2).step_by(97).chain([n / 2, n]).map(|x| x as u32).collect();
    let offsets = stream.upload(&offsets).unwrap();
    let keys = stream.upload(&numbers(20, n).into_iter().map(|x| x % 50).collect::<Vec<_>>()).unwrap();
    let values = stream.upload(&numbers(21, n)).unwrap();
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
    assert_deterministic(device, || {
        sort::segmented_pairs(&stream, (&keys, &values), &offsets, (&mut keys_out, &mut values_out), Less).unwrap();
        bytes(&stream, &[&keys_out, &values_out])
    });
}

fn multisplits(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (keys, values) = (stream.upload(&numbers(22, n)).unwrap(), stream.upload(&numbers(23, n)).unwrap());
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
    assert_deterministic(device, || {
        let by = Shift::by(27);
        let offsets = multisplit::pairs(&stream, (&keys, &values), (&mut keys_out, &mut values_out), 32, by).unwrap();
        [bytes(&stream, &[&keys_out, &values_out]), bytes(&stream, &[&offsets])].concat()
    });
}

fn selections(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (keys, values) = (stream.upload(&numbers(24, n)).unwrap(), stream.upload(&numbers(25, n)).unwrap());
    let flags = stream.upload(&random(26).take(n).map(|x| (x % 3) as u8).collect::<Vec<_>>()).unwrap();
    let (mut keys_out, mut values_out) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let mut flagged = stream.zeroed::<u32>(n).unwrap();
    assert_deterministic(device, || {
        let count = select::select_pairs(&stream, (&keys, &values), (&mut keys_out, &mut values_out), ODD).unwrap();
        select::flagged(&stream, &keys, &flags, &mut flagged).unwrap();
        let count = count.get(&stream).unwrap().to_le_bytes().to_vec();
        [count, bytes(&stream, &[&keys_out, &values_out, &flagged])].concat()
    });
}

fn partitions(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (keys, values) = (stream.upload(&numbers(27, n)).unwrap(), stream.upload(&numbers(28, n)).unwrap());
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
    assert_deterministic(device, || {
        let count = select::partition_pairs(&stream, (&keys, &values), (&mut keys_out, &mut values_out), ODD).unwrap();
        let count = count.get(&stream).unwrap().to_le_bytes().to_vec();
        [count, bytes(&stream, &[&keys_out, &values_out])].concat()
    });
}

fn segmented_compactions(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let offsets = stream.upload(&(0..n as u32).step_by(61).collect::<Vec<_>>()).unwrap();
    let keys = stream.upload(&numbers(29, n)).unwrap();
    let mut output = stream.zeroed::<u32>(n).unwrap();
    assert_deterministic(device, || {
        let new_offsets = select::segmented(&stream, &keys, &offsets, &mut output, ODD).unwrap();
        bytes(&stream, &[&new_offsets, &output])
    });
}

fn searches_in_any_order(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let haystack = stream.upload(&sorted(30, n)).unwrap();
    let needles = stream.upload(&numbers(31, n / 4).into_iter().map(|x| x % 1010).collect::<Vec<_>>()).unwrap();
    let (mut lower, mut upper) = (stream.uninit::<u32>(n / 4).unwrap(), stream.uninit::<u32>(n / 4).unwrap());
    assert_deterministic(device, || {
        search::equal_range(&stream, &haystack, &needles, &mut lower, &mut upper, Less).unwrap();
        bytes(&stream, &[&lower, &upper])
    });
}

fn searches_of_sorted_needles(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let (haystack, needles) = (stream.upload(&sorted(32, n)).unwrap(), stream.upload(&sorted(33, n / 2)).unwrap());
    let (mut lower, mut upper) = (stream.uninit::<u32>(n / 2).unwrap(), stream.uninit::<u32>(n / 2).unwrap());
    assert_deterministic(device, || {
        search::lower_bound_sorted(&stream, &haystack, &needles, &mut lower, IgnoreLowBit).unwrap();
        search::upper_bound_sorted(&stream, &haystack, &needles, &mut upper, IgnoreLowBit).unwrap();
        bytes(&stream, &[&lower, &upper])
    });
}
