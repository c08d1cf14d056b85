//! The same bytes on every device: each primitive on the device of the case, and on the CPU with all threads simulated.
//! Sums of floats included, which depend on the shape of the combination. (For the simulated device itself, this compares
//! two runs.)
//!
//! Native bodies run with each number of workers, also with lengths at which one more worker gets a part.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{WORKERS, cases, is_checked, is_long, native_devices, run};
use gpu_primitives::compare::{Greater, Less};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::{Max, Sum};
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{
    CpuOptions, Device, Stream, histogram, merge, merge_sort, permute, reduce, runs, scan, search, sets, top_k,
    transfer,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![scans, reductions, segments, selections, sorts, merges, sets_and_searches, moves])
}

/// Few elements, the edges of tiles, of warps and of the chunks of native bodies, and two groups of the look-back's tree.
fn lens(device: &Device) -> Vec<usize> {
    let most = if is_checked(device) { 20_000 } else { usize::MAX };
    let edges_of_tiles =
        [0, 1, 31, 33, 511, 512, 513, 1023, 1024, 1025, 1151, 1152, 9215, 9216, 9217, 20_000, 33 * 9216 + 5];
    let edges_of_parts = if native_devices(device).is_empty() { Vec::new() } else { edges_of_parts() };
    edges_of_tiles.into_iter().filter(|&n| n <= most).chain(edges_of_parts).collect()
}

/// A worker gets a part of a native body if there are at least this many elements for each.
const LEAST_PART: usize = 1 << 13;

/// The last lengths at which a number of workers has no part for everyone, and the first ones at which it has.
fn edges_of_parts() -> Vec<usize> {
    WORKERS[1..].iter().flat_map(|workers| [workers * LEAST_PART - 1, workers * LEAST_PART]).collect()
}

/// Returns the devices with native bodies to compare at a length, or the device itself if it has none. Where the number of workers
/// makes no difference to the parts, that is all of them; at an edge of parts, the one whose edge it is.
fn subjects(device: &Device, n: usize) -> Vec<Device> {
    let natives = native_devices(device);
    let is_edge = |workers: &usize| n == workers * LEAST_PART || n + 1 == workers * LEAST_PART;
    match (natives, WORKERS.iter().position(is_edge)) {
        ([], _) => vec![device.clone()],
        _ if is_long() || n < 2 * LEAST_PART - 1 => natives.to_vec(),
        (_, Some(index)) => vec![natives[index].clone()],
        ([.., most], None) => vec![device.clone(), most.clone()],
    }
}

/// Runs on the device, and on the CPU with all threads simulated, and compares the bytes. Native bodies also run with other numbers
/// of workers. At the edges of parts, the bytes are compared with those of a single worker, which takes less time than a
/// simulation.
fn compare(device: &Device, n: usize, f: impl Fn(&Stream) -> Vec<u8>) {
    let result_of = |device: &Device| f(&device.stream().unwrap());
    let expected = match native_devices(device) {
        [single, ..] if edges_of_parts().contains(&n) => result_of(single),
        _ => result_of(&Device::cpu_with(CpuOptions { simulated: true, ..CpuOptions::default() })),
    };
    for device in subjects(device, n) {
        let found = result_of(&device);
        assert!(
            found == expected,
            "{n} elements on {}: {} bytes differ",
            device.name(),
            found.iter().zip(&expected).filter(|(a, b)| a != b).count()
        );
    }
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

/// Keys in runs of all lengths, some of them long.
fn runs_of_keys(n: usize) -> Vec<u32> {
    let mut key = 0;
    let mut next = |x: u64| {
        key += u32::from(x.is_multiple_of(if key % 64 < 60 { 4 } else { 3000 }));
        key
    };
    random(3).take(n).map(|x| next(x >> 7)).collect()
}

/// Offsets of segments, some of which are empty. Some elements are before the first one and after the last one.
fn offsets(n: usize) -> Vec<u32> {
    let mut offsets: Vec<u32> = random(4).take(n / 40 + 2).map(|x| (x % (n as u64 + 1)) as u32).collect();
    offsets.extend([n as u32 / 2; 3]);
    offsets.sort_unstable();
    offsets
}

fn segments(device: &Device) {
    for n in lens(device) {
        let (keys, offsets) = (runs_of_keys(n), offsets(n));
        compare(device, n, |stream| {
            let (input, keys) = (stream.upload(&floats(n)).unwrap(), stream.upload(&keys).unwrap());
            let offsets = stream.upload(&offsets).unwrap();
            let mut totals = stream.uninit::<f32>(offsets.len() - 1).unwrap();
            reduce::segmented(stream, &input, &offsets, &mut totals, Sum).unwrap();
            let mut scans = [0; 4].map(|_| stream.uninit::<f32>(n).unwrap());
            scan::segmented_exclusive(stream, &input, &offsets, &mut scans[0], Sum).unwrap();
            scan::segmented_inclusive(stream, &input, &offsets, &mut scans[1], Sum).unwrap();
            scan::exclusive_by_key(stream, (&keys, &input), &mut scans[2], Same, Sum, 0.1).unwrap();
            scan::inclusive_by_key(stream, (&keys, &input), &mut scans[3], Same, Sum).unwrap();
            let (mut heads, mut sums) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<f32>(n).unwrap());
            let found =
                runs::reduce_by_key(stream, (&keys, &input), (&mut heads, &mut sums), Same, Sum).unwrap().get(stream);
            let (mut elements, mut lengths) = (stream.zeroed::<u32>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
            runs::run_length_encode(stream, &keys, (&mut elements, &mut lengths), Same).unwrap();
            let mut last = stream.zeroed::<u32>(n).unwrap();
            runs::unique_last(stream, &keys, &mut last, Same).unwrap();
            let mut decoded = stream.zeroed::<u32>(n).unwrap();
            runs::run_length_decode(stream, (&elements, &lengths), &mut decoded).unwrap();
            let integers = bytes(stream, &[&heads, &elements, &lengths, &last, &decoded]);
            let [a, b, c, d] = &scans;
            [bytes(stream, &[&totals, a, b, c, d, &sums]), integers, found.unwrap().to_le_bytes().to_vec()].concat()
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
            let mut parted = stream.zeroed::<u32>(n).unwrap();
            select::partition(stream, &keys, &mut parted, Masked::equal(3, 1)).unwrap();
            let mut of_segments = stream.zeroed::<u32>(n).unwrap();
            let offsets = stream.upload(&offsets(n)).unwrap();
            let moved = select::segmented(stream, &keys, &offsets, &mut of_segments, Masked::equal(3, 1)).unwrap();
            let mut bins = stream.uninit::<u32>(100).unwrap();
            histogram::even(stream, &keys, &mut bins, 1 << 20, 1 << 31).unwrap();
            let (mut best, mut places) = (stream.uninit::<u32>(n.min(50)).unwrap(), stream.uninit(n.min(50)).unwrap());
            top_k::largest(stream, &keys, (&mut best, &mut places)).unwrap();
            [
                bytes(stream, &[&kept, &parted, &of_segments, &moved, &bins, &best, &places]),
                count.to_le_bytes().to_vec(),
            ]
            .concat()
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
            let sorted = [bytes(stream, &[&keys_out]), bytes(stream, &[&values_out])].concat();
            merge_sort::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), Greater).unwrap();
            let merged = [bytes(stream, &[&keys_out]), bytes(stream, &[&values_out])].concat();
            assert!(sorted == merged, "both are stable");
            let offsets = stream.upload(&offsets(n)).unwrap();
            let outputs = (&mut keys_out, &mut values_out);
            sort::segmented_pairs(stream, (&keys, &values), &offsets, outputs, Less).unwrap();
            [sorted, bytes(stream, &[&keys_out]), bytes(stream, &[&values_out])].concat()
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

fn sets_and_searches(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            let side = |seed: u64, len: usize| {
                let mut keys: Vec<u32> = random(seed).take(len).map(|x| (x % (n as u64 + 1)) as u32).collect();
                keys.sort_unstable();
                stream.upload(&keys).unwrap()
            };
            let (a, b) = (side(8, n / 2), side(9, n - n / 2));
            let mut results = [0; 4].map(|_| stream.zeroed::<u32>(n).unwrap());
            sets::union(stream, &a, &b, &mut results[0], Less).unwrap();
            sets::intersection(stream, &a, &b, &mut results[1], Less).unwrap();
            sets::difference(stream, &a, &b, &mut results[2], Less).unwrap();
            sets::symmetric_difference(stream, &a, &b, &mut results[3], Less).unwrap();
            let (mut lower, mut upper) = (stream.uninit::<u32>(a.len()).unwrap(), stream.uninit(a.len()).unwrap());
            search::lower_bound_sorted(stream, &b, &a, &mut lower, Less).unwrap();
            search::upper_bound_sorted(stream, &b, &a, &mut upper, Less).unwrap();
            let [union, both, first, either] = &results;
            bytes(stream, &[union, both, first, either, &lower, &upper])
        });
    }
}

fn moves(device: &Device) {
    for n in lens(device) {
        compare(device, n, |stream| {
            // Words, and elements of three of them, whose places are gathered and scattered; some are out of range.
            let elements: Vec<[u16; 3]> = random(10).take(n).map(|x| [x as u16, 1, (x >> 16) as u16]).collect();
            let indices: Vec<u32> = random(11).take(n).map(|x| (x % (n as u64 + 7)) as u32).collect();
            let (elements, indices) = (stream.upload(&elements).unwrap(), stream.upload(&indices).unwrap());
            let mut results = [0; 4].map(|_| stream.zeroed::<[u16; 3]>(n).unwrap());
            let outside = permute::gather(stream, &elements, &indices, &mut results[0]).unwrap().get(stream).unwrap();
            let missed = permute::scatter(stream, &elements, &indices, &mut results[1]).unwrap().get(stream).unwrap();
            assert_eq!(outside, missed);
            permute::reverse(stream, &elements, &mut results[2]).unwrap();
            transfer::copy(stream, &elements, &mut results[3]).unwrap();
            permute::reverse_in_place(stream, &mut results[3]).unwrap();
            let [gathered, scattered, reversed, in_place] = &results;
            [bytes(stream, &[gathered, scattered, reversed, in_place]), outside.to_le_bytes().to_vec()].concat()
        });
    }
}
