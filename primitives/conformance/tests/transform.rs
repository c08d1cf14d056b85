//! Transformations and sources against iterators on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::equality::Same;
use gpu_primitives::map::Map;
use gpu_primitives::operator::{Record, map, monoid, operator, predicate};
use gpu_primitives::scan::{self, Max, Sum};
use gpu_primitives::source::{Source, at, constant, counted, counting, map, map2, map3, map4, strided};
use gpu_primitives::top_k::{self, Rows};
use gpu_primitives::{Device, DeviceValue, Error, Stream, permute, reduce, runs, select, transform};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a block.
const TILE: usize = 2048;

fn main() -> ExitCode {
    run(cases![
        small_transforms,
        tile_edges,
        one_to_four_inputs,
        elements_of_every_size,
        packed_structs,
        in_place,
        sequences,
        constants,
        nested_sources,
        scans_of_sources,
        reductions_of_sources,
        selections_of_sources,
        selections_of_every_size,
        gathered_sources,
        strided_sources,
        positions_of_a_condition,
        lifetimes_of_their_own,
        misaligned_slices,
        lengths_on_the_device,
        odd_sizes_with_lengths_on_the_device,
        a_length_that_is_too_long,
        wrong_lengths,
        in_a_graph,
        large,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

fn small_transforms(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        let host = numbers(1, len);
        let mut output = stream.zeroed::<u64>(len).unwrap();
        let input = stream.upload(&host).unwrap();
        transform::map(&stream, &input, &mut output, map!(|x: u32| -> u64 { x as u64 * 3 })).unwrap();
        let expected: Vec<u64> = host.iter().map(|&x| u64::from(x) * 3).collect();
        assert_eq!(output.to_vec(&stream).unwrap(), expected);
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
        let host = numbers(2, len);
        let mut output = stream.zeroed::<u32>(len).unwrap();
        let input = stream.upload(&host).unwrap();
        transform::map(&stream, &input, &mut output, map!(|x: u32| -> u32 { x ^ 0xff })).unwrap();
        assert_eq!(output.to_vec(&stream).unwrap(), host.iter().map(|x| x ^ 0xff).collect::<Vec<_>>(), "{len}");
    }
}

fn one_to_four_inputs(device: &Device) {
    let stream = device.stream().unwrap();
    let len = TILE + 77;
    let a: Vec<f32> = numbers(3, len).iter().map(|&x| x as f32).collect();
    let b = numbers(4, len);
    let c: Vec<i64> = random(5).take(len).map(|x| x as i64).collect();
    let d: Vec<u8> = numbers(6, len).iter().map(|&x| x as u8).collect();
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let (on_c, on_d) = (stream.upload(&c).unwrap(), stream.upload(&d).unwrap());
    let mut two = stream.zeroed::<f32>(len).unwrap();
    let saxpy = map!(factor: f32 = 2.5; |a: f32, b: u32| -> f32 { factor * a + b as f32 });
    transform::map2(&stream, &on_a, &on_b, &mut two, saxpy).unwrap();
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, &b)| 2.5 * a + b as f32).collect();
    assert_eq!(two.to_vec(&stream).unwrap(), expected);

    let mut three = stream.zeroed::<i64>(len).unwrap();
    let function = map!(|b: u32, c: i64, d: u8| -> i64 { c.wrapping_add(b as i64) ^ d as i64 });
    transform::map3(&stream, &on_b, &on_c, &on_d, &mut three, function).unwrap();
    let expected = |i: usize| c[i].wrapping_add(i64::from(b[i])) ^ i64::from(d[i]);
    assert_eq!(three.to_vec(&stream).unwrap(), (0..len).map(expected).collect::<Vec<_>>());

    let mut four = stream.zeroed::<u8>(len).unwrap();
    let function = map!(|a: f32, b: u32, c: i64, d: u8| -> u8 { (a < b as f32) as u8 + 2 * (c < d as i64) as u8 });
    transform::map4(&stream, &on_a, &on_b, &on_c, &on_d, &mut four, function).unwrap();
    let expected = |i: usize| u8::from(a[i] < b[i] as f32) + 2 * u8::from(c[i] < i64::from(d[i]));
    assert_eq!(four.to_vec(&stream).unwrap(), (0..len).map(expected).collect::<Vec<_>>());
}

fn identity<T: Pod + Debug + PartialEq, F: Map<T, Output = T>>(stream: &Stream, bytes: &[u64], function: F) {
    let host: Vec<T> = bytemuck::cast_slice::<_, u8>(bytes)
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .take(TILE + 9)
        .collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.zeroed::<T>(host.len()).unwrap();
    transform::map(stream, &input, &mut output, function).unwrap();
    assert_eq!(output.to_vec(stream).unwrap(), host, "{} bytes", size_of::<T>());
    // A slice alone, and a slice alone of another size than kernels hold.
    transform::write(stream, &input, &mut output).unwrap();
    assert_eq!(output.to_vec(stream).unwrap(), host, "{} bytes", size_of::<T>());
}

fn elements_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes: Vec<u64> = random(7).take(4 * (TILE + 9)).collect();
    macro_rules! check {
        ($($type:ty)*) => { $( identity(&stream, &bytes, map!(|x: $type| -> $type { x })); )* };
    }
    check!(u8 i16 u32 i64 u128 [u8; 3] [u8; 5] [u16; 3] [u8; 7] [u32; 3] [u16; 7] [u32; 5] [u64; 3] [u8; 31] [u64; 4]);
}

#[repr(C, packed)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
struct Packed {
    kind: u8,
    amount: u32,
}

/// A struct whose fields are misaligned can be written and read, as a constant and from memory.
fn packed_structs(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<Packed> = numbers(8, 300).iter().map(|&x| Packed { kind: x as u8, amount: x }).collect();
    let input = stream.upload(&host).unwrap();
    let mut output = stream.zeroed::<Packed>(300).unwrap();
    transform::write(&stream, &input, &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), host);
    transform::write(&stream, constant(host[7], 300), &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [host[7]; 300]);
}

fn in_place(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(9, TILE + 3);
    let mut data = stream.upload(&host).unwrap();
    transform::map_in_place(&stream, &mut data, map!(|x: u32| -> u32 { x / 7 })).unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), host.iter().map(|x| x / 7).collect::<Vec<_>>());
    let host: Vec<[u8; 3]> = host.iter().map(|&x| [x as u8, (x >> 8) as u8, (x >> 16) as u8]).collect();
    let mut data = stream.upload(&host).unwrap();
    transform::map_in_place(&stream, &mut data, map!(|x: [u8; 3]| -> [u8; 3] { [x[2], x[0], x[1]] })).unwrap();
    assert_eq!(data.to_vec(&stream).unwrap(), host.iter().map(|x| [x[2], x[0], x[1]]).collect::<Vec<_>>());
}

fn sequences(device: &Device) {
    let stream = device.stream().unwrap();
    let mut numbers = stream.zeroed::<u8>(300).unwrap();
    transform::sequence(&stream, &mut numbers, 250).unwrap();
    assert_eq!(numbers.to_vec(&stream).unwrap(), (0..300).map(|i| (250 + i) as u8).collect::<Vec<_>>());
    let mut numbers = stream.zeroed::<i64>(1000).unwrap();
    transform::sequence(&stream, &mut numbers, -500).unwrap();
    assert_eq!(numbers.to_vec(&stream).unwrap(), (-500..500).collect::<Vec<_>>());
}

fn constants(device: &Device) {
    let stream = device.stream().unwrap();
    let mut output = stream.zeroed::<[u32; 3]>(100).unwrap();
    transform::write(&stream, constant([1, 2, 3], 100), &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [[1, 2, 3]; 100]);
    let mut output = stream.zeroed::<[u8; 5]>(100).unwrap();
    transform::write(&stream, constant([1, 2, 3, 4, 5], 100), &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [[1, 2, 3, 4, 5]; 100]);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Point {
    x: f64,
    id: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable, Record)]
struct Shift {
    by: f64,
    factor: f64,
}

#[operator]
impl Map<Point> for Shift {
    type Output = Point;

    fn map(&self, point: Point) -> Point {
        Point { x: point.x * self.factor + self.by, id: point.id }
    }
}

/// Functions of functions, with state at every level.
fn nested_sources(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 777;
    let (a, b) = (numbers(10, len), numbers(11, len));
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let differences =
        map2(&on_a, &on_b, map!(scale: f64 = 0.5; |a: u32, b: u32| -> f64 { (a as f64 - b as f64) * scale }));
    let points = map2(differences, counting(100u64, len), map!(|x: f64, id: u64| -> [u64; 2] { [x.to_bits(), id] }));
    let points = map(points, map!(|p: [u64; 2]| -> Point { Point { x: f64::from_bits(p[0]), id: p[1] } }));
    let shifted = map(points, Shift { by: 1.0, factor: 3.0 });
    let mut output = stream.zeroed::<Point>(len).unwrap();
    transform::write(&stream, shifted, &mut output).unwrap();
    let expected = |i: usize| Point { x: (f64::from(a[i]) - f64::from(b[i])) * 0.5 * 3.0 + 1.0, id: 100 + i as u64 };
    assert_eq!(output.to_vec(&stream).unwrap(), (0..len).map(expected).collect::<Vec<_>>());

    let sum = map4(
        &on_a,
        constant(7u32, len),
        map(&on_b, map!(|b: u32| -> u32 { b >> 3 })),
        counting(0u32, len),
        map!(|a: u32, b: u32, c: u32, d: u32| -> u32 { a.wrapping_add(b).wrapping_add(c) ^ d }),
    );
    let mut output = stream.zeroed::<u32>(len).unwrap();
    transform::write(&stream, sum, &mut output).unwrap();
    let expected = |i: usize| a[i].wrapping_add(7).wrapping_add(b[i] >> 3) ^ i as u32;
    assert_eq!(output.to_vec(&stream).unwrap(), (0..len).map(expected).collect::<Vec<_>>());
}

fn scans_of_sources(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 100, 256 * 36, 256 * 36 + 1, 30_000] {
        if is_checked(device) && len > 10_000 {
            continue;
        }
        let host = numbers(12, len);
        let input = stream.upload(&host).unwrap();
        let mut output = stream.zeroed::<u32>(len).unwrap();
        let odd = map(&input, map!(|x: u32| -> u32 { x % 2 }));
        scan::exclusive_sum(&stream, odd, &mut output).unwrap();
        let expected: Vec<u32> = host.iter().scan(0, |sum, x| Some(std::mem::replace(sum, *sum + x % 2))).collect();
        assert_eq!(output.to_vec(&stream).unwrap(), expected, "{len}");

        let mut output = stream.zeroed::<[u8; 5]>(len).unwrap();
        let bytes = map(&input, map!(|x: u32| -> [u8; 5] { [x as u8, 1, 2, 3, 4] }));
        let greatest = monoid!([0; 5], |a: [u8; 5], b: [u8; 5]| if a[0] < b[0] { b } else { a });
        scan::inclusive(&stream, bytes, &mut output, greatest).unwrap();
        let mut running = 0u8;
        for (found, x) in output.to_vec(&stream).unwrap().iter().zip(&host) {
            running = running.max(*x as u8);
            assert_eq!(found[0], running);
        }
    }
}

fn reductions_of_sources(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 100, 20_000] {
        let (a, b) = (numbers(13, len), numbers(14, len));
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let products = map2(&on_a, &on_b, map!(|a: u32, b: u32| -> u64 { a as u64 * b as u64 }));
        let expected = a.iter().zip(&b).fold(0u64, |sum, (&a, &b)| sum.wrapping_add(u64::from(a) * u64::from(b)));
        assert_eq!(reduce::sum(&stream, products).unwrap().get(&stream).unwrap(), expected, "{len}");
        let three = map3(&on_a, &on_b, counting(0u32, len), map!(|a: u32, b: u32, i: u32| -> u32 { a ^ b ^ i }));
        let expected = (0..len).map(|i| a[i] ^ b[i] ^ i as u32).max().unwrap_or(0);
        assert_eq!(reduce::reduce(&stream, three, Max).unwrap().get(&stream).unwrap(), expected, "{len}");
    }
    assert_eq!(reduce::sum(&stream, counting(1u64, 100_000)).unwrap().get(&stream).unwrap(), 5_000_050_000);
}

fn selections_of_sources(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 31, 4095, 4096, 4097, 13_000] {
        let host = numbers(18, len);
        let input = stream.upload(&host).unwrap();
        let mut output = stream.upload(&vec![7u64; len]).unwrap();
        let tripled = map(&input, map!(|x: u32| -> u64 { x as u64 * 3 }));
        let count = select::select(&stream, tripled, &mut output, predicate!(|x: u64| x % 2 == 0)).unwrap();
        let mut expected: Vec<u64> = host.iter().map(|&x| u64::from(x) * 3).filter(|x| x % 2 == 0).collect();
        assert_eq!(count.get(&stream).unwrap(), expected.len() as u64);
        expected.resize(len, 7);
        assert_eq!(output.to_vec(&stream).unwrap(), expected, "{len}");
    }
    // Positions of the numbers that pass: what a selection of indices is.
    let host = numbers(19, 5000);
    let input = stream.upload(&host).unwrap();
    let mut positions = stream.zeroed::<u32>(5000).unwrap();
    let tagged =
        map2(&input, counting(0u32, 5000), map!(|x: u32, i: u32| -> u32 { if x < 1 << 30 { i } else { u32::MAX } }));
    let count = select::select(&stream, tagged, &mut positions, predicate!(|i: u32| i != u32::MAX)).unwrap();
    let expected: Vec<u32> = (0..5000).filter(|&i| host[i as usize] < 1 << 30).collect();
    let count = count.get(&stream).unwrap() as usize;
    assert_eq!(positions.slice(..count).unwrap().to_vec(&stream).unwrap(), expected);
}

fn selections_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes: Vec<u64> = random(20).take(20_000).collect();
    macro_rules! check {
        ($($type:ty: $len:literal, $first:expr, $test:expr;)*) => { $(
            let host: Vec<$type> = bytemuck::cast_slice::<_, u8>(&bytes)
                .chunks_exact(size_of::<$type>())
                .map(bytemuck::pod_read_unaligned)
                .take($len)
                .collect();
            let input = stream.upload(&host).unwrap();
            let mut output = stream.zeroed::<$type>(host.len()).unwrap();
            let count = select::select(&stream, &input, &mut output, $test).unwrap();
            let expected: Vec<$type> = host.iter().copied().filter(|&x| $first(x) % 3 == 0).collect();
            assert_eq!(count.get(&stream).unwrap(), expected.len() as u64, "{}", stringify!($type));
            let found = output.to_vec(&stream).unwrap();
            assert_eq!(found[..expected.len()], expected, "{}", stringify!($type));
            assert!(found[expected.len()..].iter().all(|x| *x == <$type>::zeroed()), "{}", stringify!($type));
        )* };
    }
    check! {
        [u8; 3]: 5000, |x: [u8; 3]| x[0], predicate!(|x: [u8; 3]| x[0] % 3 == 0);
        [u8; 5]: 4097, |x: [u8; 5]| x[0], predicate!(|x: [u8; 5]| x[0] % 3 == 0);
        [u32; 3]: 4097, |x: [u32; 3]| x[1], predicate!(|x: [u32; 3]| x[1] % 3 == 0);
        u128: 4100, |x: u128| x as u32, predicate!(|x: u128| x as u32 % 3 == 0);
        [u64; 3]: 2049, |x: [u64; 3]| x[2], predicate!(|x: [u64; 3]| x[2] % 3 == 0);
        [u64; 4]: 2047, |x: [u64; 4]| x[3], predicate!(|x: [u64; 4]| x[3] % 3 == 0);
    }
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u8> = numbers(15, 5000).iter().map(|&x| x as u8).collect();
    let input = stream.upload(&host).unwrap();
    for start in 1..5 {
        let part = input.slice(start..).unwrap();
        let sum = reduce::sum(&stream, map(part, map!(|x: u8| -> u32 { x as u32 }))).unwrap();
        assert_eq!(sum.get(&stream).unwrap(), host[start..].iter().map(|&x| u32::from(x)).sum::<u32>(), "from {start}");
    }
}

/// What a selection returns is the length of the next calls.
fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    for limit in [0u32, 1, 1 << 20, 1 << 31, u32::MAX] {
        let host = numbers(16, 12_000);
        let input = stream.upload(&host).unwrap();
        let mut kept = stream.zeroed::<u32>(host.len()).unwrap();
        let below = predicate!(limit: u32 = limit; |x: u32| x < limit);
        let count = select::select(&stream, &input, &mut kept, below).unwrap();
        let expected: Vec<u32> = host.iter().copied().filter(|&x| x < limit).collect();

        let sum = reduce::sum(&stream, counted(&kept, &count)).unwrap();
        assert_eq!(sum.get(&stream).unwrap(), expected.iter().fold(0u32, |a, &b| a.wrapping_add(b)), "{limit}");

        let mut sums = stream.upload(&vec![77u32; host.len()]).unwrap();
        scan::inclusive(&stream, counted(&kept, &count), &mut sums, Sum).unwrap();
        let mut expected_sums: Vec<u32> = expected
            .iter()
            .scan(0u32, |sum, x| {
                *sum = sum.wrapping_add(*x);
                Some(*sum)
            })
            .collect();
        expected_sums.resize(host.len(), 77);
        assert_eq!(sums.to_vec(&stream).unwrap(), expected_sums, "{limit}");

        let mut even = stream.zeroed::<u32>(host.len()).unwrap();
        let fewer =
            select::select(&stream, counted(&kept, &count), &mut even, predicate!(|x: u32| x % 2 == 0)).unwrap();
        let expected_even: Vec<u32> = expected.iter().copied().filter(|x| x % 2 == 0).collect();
        assert_eq!(fewer.get(&stream).unwrap(), expected_even.len() as u64, "{limit}");
        assert_eq!(even.to_vec(&stream).unwrap()[..expected_even.len()], expected_even, "{limit}");

        let mut halves = stream.upload(&vec![5u32; host.len()]).unwrap();
        let source = counted(map(&kept, map!(|x: u32| -> u32 { x / 2 })), &count);
        transform::write(&stream, source, &mut halves).unwrap();
        let mut expected_halves: Vec<u32> = expected.iter().map(|x| x / 2).collect();
        expected_halves.resize(host.len(), 5);
        assert_eq!(halves.to_vec(&stream).unwrap(), expected_halves, "{limit}");
    }
}

/// Elements of a size that kernels do not hold: what is beyond the length stays as it is.
fn odd_sizes_with_lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<[u8; 3]> = numbers(21, 3000).iter().map(|&x| [x as u8, (x >> 8) as u8, 1]).collect();
    let input = stream.upload(&host).unwrap();
    let count = DeviceValue::new(&stream, 1234).unwrap();
    let mut output = stream.upload(&vec![[9u8; 3]; 3000]).unwrap();
    transform::write(&stream, counted(&input, &count), &mut output).unwrap();
    let mut expected = host[..1234].to_vec();
    expected.resize(3000, [9; 3]);
    assert_eq!(output.to_vec(&stream).unwrap(), expected);

    let greatest = monoid!([0; 3], |a: [u8; 3], b: [u8; 3]| if a[0] < b[0] { b } else { a });
    let mut output = stream.upload(&vec![[9u8; 3]; 3000]).unwrap();
    scan::inclusive(&stream, counted(&input, &count), &mut output, greatest).unwrap();
    let found = output.to_vec(&stream).unwrap();
    assert_eq!(found[1233][0], host[..1234].iter().map(|x| x[0]).max().unwrap());
    assert!(found[1234..].iter().all(|x| *x == [9; 3]));
}

fn a_length_that_is_too_long(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap();
    let count = DeviceValue::new(&stream, u64::MAX).unwrap();
    assert_eq!(reduce::sum(&stream, counted(&input, &count)).unwrap().get(&stream).unwrap(), 6);
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (stream.zeroed::<u32>(5).unwrap(), stream.zeroed::<u32>(6).unwrap());
    let mut output = stream.upload(&[9u32; 5]).unwrap();
    let add = map!(|a: u32, b: u32| -> u32 { a + b });
    let error = transform::map2(&stream, &a, &b, &mut output, add).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 5, found: 6, .. }), "{error}");
    let error = transform::write(&stream, &b, &mut output).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 6, found: 5, .. }), "{error}");
    let count = DeviceValue::new(&stream, 3).unwrap();
    let other = DeviceValue::new(&stream, 3).unwrap();
    let twice = counted(counted(&a, &count), &other);
    assert!(matches!(transform::write(&stream, twice, &mut output).unwrap_err(), Error::InvalidOption { .. }));
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 5]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(17, 3000);
    let input = stream.upload(&host).unwrap();
    let mut output = stream.zeroed::<u32>(3000).unwrap();
    let (mut graph, ()) =
        stream.capture(|stream| transform::map(stream, &input, &mut output, map!(|x: u32| -> u32 { x + 1 }))).unwrap();
    // SAFETY: input and output are still there.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(output.to_vec(&stream).unwrap(), host.iter().map(|x| x.wrapping_add(1)).collect::<Vec<_>>());
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 20_000 };
    let sum = reduce::sum(&stream, map(counting(0u64, len), map!(|i: u64| -> u64 { i * i }))).unwrap();
    let expected = (0..len as u64).fold(0u64, |sum, i| sum.wrapping_add(i * i));
    assert_eq!(sum.get(&stream).unwrap(), expected);
}

/// Elements at rows, inside and outside of the slice, of every size; rows of both types, in rows of elements or not.
fn gathered_sources(device: &Device) {
    fn check<T: Pod + Debug + PartialEq>(stream: &Stream, of: impl Fn(u64) -> T) {
        let column: Vec<T> = (0..1000).map(of).collect();
        for len in [0, 1, 3, 4097] {
            let rows: Vec<u32> = random(len as u64).take(len).map(|x| (x % 1010) as u32).collect();
            let expected: Vec<T> =
                rows.iter().map(|&row| column.get(row as usize).copied().unwrap_or(T::zeroed())).collect();
            let long: Vec<u64> = rows.iter().map(|&row| if row < 1000 { row.into() } else { u64::MAX }).collect();
            let (column, rows, long) =
                (stream.upload(&column).unwrap(), stream.upload(&rows).unwrap(), stream.upload(&long).unwrap());
            let mut output = stream.uninit::<T>(len).unwrap();
            transform::write(stream, at(&column, &rows), &mut output).unwrap();
            assert_eq!(output.to_vec(stream).unwrap(), expected);
            transform::write(stream, at(&column, &long), &mut output).unwrap();
            assert_eq!(output.to_vec(stream).unwrap(), expected);
        }
    }
    let stream = &device.stream().unwrap();
    check(stream, |x| x as u8);
    check(stream, |x| x as u16);
    check(stream, |x| [x as u8, 1, 2]);
    check(stream, |x| x as u32 + 7);
    check(stream, |x| x + (1 << 40));
    check(stream, |x| [x as u32, 5, 6]);
    check(stream, |x| [x, 5]);

    // Rows of rows, beside a slice, and a number of rows that only the device knows.
    let (prices, inner) = (stream.upload(&[10u64, 20, 30]).unwrap(), stream.upload(&[2u32, 0, 1, 9]).unwrap());
    let (outer, weights) = (stream.upload(&[3u32, 1, 0]).unwrap(), stream.upload(&[100u64, 1000, 10_000]).unwrap());
    let nested = map2(at(&prices, at(&inner, &outer)), &weights, map!(|a: u64, b: u64| -> u64 { a * b }));
    assert_eq!(reduce::sum(stream, nested).unwrap().get(stream).unwrap(), 10 * 1000 + 30 * 10_000);
    let count = DeviceValue::new(stream, 2).unwrap();
    let first = reduce::sum(stream, at(&prices, counted(&inner, &count))).unwrap();
    assert_eq!(first.get(stream).unwrap(), 40);
}

/// Rows that are some elements apart, of every size, from any address.
fn strided_sources(device: &Device) {
    fn check<T: Pod + Debug + PartialEq>(stream: &Stream, of: impl Fn(u64) -> T) {
        let column: Vec<T> = (0..3000).map(of).collect();
        let on_device = stream.upload(&column).unwrap();
        for (start, row_len, stride) in [(0, 8, 16), (1, 7, 9), (3, 5, 5), (0, 1, 3), (2, 100, 7), (0, 3000, 1)] {
            let expected: Vec<T> = column[start..].windows(row_len).step_by(stride).flatten().copied().collect();
            let mut output = stream.uninit::<T>(expected.len()).unwrap();
            transform::write(stream, strided(on_device.slice(start..).unwrap(), row_len, stride), &mut output).unwrap();
            assert_eq!(output.to_vec(stream).unwrap(), expected, "{row_len} of {stride} from {start}");
        }
    }
    let stream = &device.stream().unwrap();
    check(stream, |x| x as u8);
    check(stream, |x| x as u16);
    check(stream, |x| [x as u8, 1, 2]);
    check(stream, |x| x as u32 + 7);
    check(stream, |x| x + (1 << 40));
    check(stream, |x| [x, 5]);

    // Without a row, with rows of no elements, and with a number of elements that only the device knows.
    let column = stream.upload(&[5u32, 1, 9, 2, 8, 3]).unwrap();
    let mut none = stream.uninit::<u32>(0).unwrap();
    transform::write(stream, strided(&column, 7, 1), &mut none).unwrap();
    transform::write(stream, strided(&column, 0, 2), &mut none).unwrap();
    let refused = transform::write(stream, strided(&column, 0, 0), &mut none);
    assert!(matches!(refused, Err(Error::InvalidOption { .. })), "{refused:?}");
    let count = DeviceValue::new(stream, 3).unwrap();
    let first = reduce::sum(stream, counted(strided(&column, 2, 3), &count)).unwrap();
    assert_eq!(first.get(stream).unwrap(), 5 + 1 + 2);
    // The largest of each row, and where it is in the row.
    let (mut best, mut positions) = (stream.uninit::<u32>(2).unwrap(), stream.uninit::<u32>(2).unwrap());
    let output = (&mut best, &mut positions);
    top_k::segmented_largest(stream, strided(&column, 2, 3), Rows::of_len(2), 1, output).unwrap();
    assert_eq!((best.to_vec(stream).unwrap(), positions.to_vec(stream).unwrap()), (vec![5, 8], vec![0, 1]));
}

/// The positions of elements that pass, of sources over several slices.
fn positions_of_a_condition(device: &Device) {
    let stream = &device.stream().unwrap();
    for len in [0, 1, 31, 2048, 8193] {
        let (a, b): (Vec<u32>, Vec<u64>) =
            (random(1).take(len).map(|x| x as u32 % 10).collect(), random(2).take(len).map(|x| x % 10).collect());
        let expected: Vec<u32> = (0..len).filter(|&i| u64::from(a[i]) < b[i]).map(|i| i as u32).collect();
        let (a, b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let keep = map2(&a, &b, map!(|a: u32, b: u64| -> u8 { u8::from((a as u64) < b) }));
        let mut rows = stream.upload(&vec![77u32; len + 1]).unwrap();
        let count = select::positions(stream, keep, &mut rows, predicate!(|keep: u8| keep != 0)).unwrap();
        let (count, rows) = (count.get(stream).unwrap() as usize, rows.to_vec(stream).unwrap());
        assert_eq!(rows[..count], expected);
        assert!(rows[count..].iter().all(|&rest| rest == 77));
        let mut short = stream.uninit::<u32>(len / 2).unwrap();
        if len > 0 {
            let error = select::positions(stream, &a, &mut short, predicate!(|a: u32| a > 0)).unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
        }
    }
}

/// Functions around primitives: a source of the caller's lifetime, and memory of their own. That they compile is the test.
fn lifetimes_of_their_own(device: &Device) {
    fn kept<'a>(stream: &Stream, source: impl Source<'a, u32> + Copy, len: usize) -> Result<Vec<u32>, Error> {
        let (mut kept, mut doubled) = (stream.zeroed::<u32>(len)?, stream.uninit::<u32>(len)?);
        let count = select::select(stream, source, &mut kept, predicate!(|x: u32| x > 1))?;
        transform::map2(
            stream,
            source,
            &kept,
            &mut doubled,
            map!(|a: u32, b: u32| -> u32 { if b > 1_000_000 { a + a } else { a * 2 } }),
        )?;
        permute::gather(stream, &doubled, source, &mut kept)?;
        let (mut keys, mut totals) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
        runs::reduce_by_key(stream, (source, &doubled), (&mut keys, &mut totals), Same, Sum)?;
        let mut scanned = stream.uninit::<u32>(len)?;
        scan::inclusive(stream, source, &mut scanned, Sum)?;
        let kept = count.get(stream)? as usize;
        totals.slice(..kept)?.to_vec(stream)
    }
    let stream = &device.stream().unwrap();
    let numbers = stream.upload(&[1u32, 2, 3, 0]).unwrap();
    assert_eq!(kept(stream, &numbers, 4).unwrap(), [2, 4]);
    assert_eq!(kept(stream, map(&numbers, map!(|x: u32| -> u32 { x % 2 + 1 })), 4).unwrap(), [4, 2]);
}
