//! The same bytes on every device: each primitive on the device of the case, and on the CPU with all threads simulated.
//! Sums of floats included, which depend on the shape of the combination. (For the simulated device itself, this compares
//! two runs.)

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{cases, is_checked, run};
use gpu_primitives::compare::Less;
use gpu_primitives::monoid::{Max, Sum};
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{CpuOptions, Device, Stream, merge, reduce, scan};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![scans, reductions, selections, sorts, merges])
}

/// Few elements, the edges of tiles and of warps, and several groups of the look-back's tree.
fn lens(device: &Device) -> Vec<usize> {
    let most = if is_checked(device) { 20_000 } else { 700_000 };
    [0, 1, 31, 33, 1151, 1152, 9215, 9216, 9217, 20_000, 33 * 9216 + 5, 700_000]
        .into_iter()
        .filter(|&n| n <= most)
        .collect()
}

/// Runs on the device, and on the CPU with all threads simulated, and compares the bytes.
fn compare(device: &Device, n: usize, f: impl Fn(&Stream) -> Vec<u8>) {
    let simulated = Device::cpu_with(CpuOptions { simulated: true, ..CpuOptions::default() });
    let [found, expected] = [device, &simulated].map(|device| f(&device.stream().unwrap()));
    assert!(
        found == expected,
        "{n} elements: {} bytes differ",
        found.iter().zip(&expected).filter(|(a, b)| a != b).count()
    );
}

fn floats(n: usize) -> Vec<f32> {
    random(n as u64).take(n).map(|x| x as i32 as f32 * 1e-3).collect()
}

fn bytes<T: Pod>(stream: &Stream, results: &[&gpu_primitives::DeviceVec<T>]) -> Vec<u8> {
    results.iter().flat_map(|result| bytemuck::cast_slice::<T, u8>(&result.to_vec(stream).unwrap()).to_vec()).collect()
}

fn scans(device: &Device) {
    for n in lens(device) {
        let doubles: Vec<f64> = floats(n).into_iter().map(|x| f64::from(x) / 3.0).collect();
        let maps: Vec<Affine> =
            random(2).take(n).map(|x| Affine { scale: x as u32 | 1, shift: (x >> 32) as u32 }).collect();
        compare(device, n, |stream| {
            let (input, doubles, maps) =
                (stream.upload(&floats(n)).unwrap(), stream.upload(&doubles).unwrap(), stream.upload(&maps).unwrap());
            let mut inclusive = stream.uninit::<f32>(n).unwrap();
            let mut exclusive = stream.uninit::<f64>(n).unwrap();
            let mut composed = stream.uninit::<Affine>(n).unwrap();
            scan::inclusive_sum(stream, &input, &mut inclusive).unwrap();
            scan::exclusive(stream, &doubles, &mut exclusive, Sum, 0.1).unwrap();
            scan::exclusive(stream, &maps, &mut composed, Compose, Affine { scale: 3, shift: 1 }).unwrap();
            let mut in_place = stream.upload(&floats(n)).unwrap();
            scan::inclusive_in_place(stream, &mut in_place, Max).unwrap();
            [bytes(stream, &[&inclusive, &in_place]), bytes(stream, &[&exclusive]), bytes(stream, &[&composed])]
                .concat()
        });
    }
}

fn reductions(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            let input = stream.upload(&floats(n)).unwrap();
            let doubles = stream.upload(&floats(n).into_iter().map(f64::from).collect::<Vec<_>>()).unwrap();
            let sum = reduce::reduce(stream, &input, Sum).unwrap().get(stream).unwrap();
            let double = reduce::reduce(stream, &doubles, Sum).unwrap().get(stream).unwrap();
            [sum.to_le_bytes().to_vec(), double.to_le_bytes().to_vec()].concat()
        });
    }
}

fn selections(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            let keys: Vec<u32> = random(5).take(n).map(|x| x as u32).collect();
            let keys = stream.upload(&keys).unwrap();
            let mut kept = stream.zeroed::<u32>(n).unwrap();
            let count = select::select(stream, &keys, &mut kept, Masked::equal(3, 1)).unwrap().get(stream).unwrap();
            [bytes(stream, &[&kept]), count.to_le_bytes().to_vec()].concat()
        });
    }
}

fn sorts(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            let keys: Vec<u64> = random(6).take(n).map(|x| x % 1000).collect();
            let values: Vec<u32> = (0..n as u32).collect();
            let (keys, values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            let (mut keys_out, mut values_out) = (stream.uninit::<u64>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
            let options = Options::new().descending();
            sort::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), options).unwrap();
            [bytes(stream, &[&keys_out]), bytes(stream, &[&values_out])].concat()
        });
    }
}

fn merges(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            let run = |seed: u64, len: usize| {
                let mut keys: Vec<u32> = random(seed).take(len).map(|x| (x % 500) as u32).collect();
                keys.sort_unstable();
                (stream.upload(&keys).unwrap(), stream.upload(&vec![seed as u32; len]).unwrap())
            };
            let runs: Vec<_> =
                [n / 2, n / 3, n - n / 2 - n / 3].into_iter().zip(7..).map(|(len, seed)| run(seed, len)).collect();
            let (mut keys, mut values) = (stream.uninit::<u32>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
            let slices: Vec<_> = runs.iter().map(|(keys, values)| (keys.as_slice(), values.as_slice())).collect();
            merge::runs_pairs(stream, &slices, (&mut keys, &mut values), Less).unwrap();
            let of_runs = bytes(stream, &[&keys, &values]);
            let two = runs[0].0.len() + runs[1].0.len();
            let (mut keys, mut values) = (stream.uninit::<u32>(two).unwrap(), stream.uninit::<u32>(two).unwrap());
            merge::pairs(stream, slices[0], slices[1], (&mut keys, &mut values), Less).unwrap();
            [of_runs, bytes(stream, &[&keys, &values])].concat()
        });
    }
}
