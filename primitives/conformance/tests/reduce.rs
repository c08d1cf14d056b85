//! Reductions against a fold on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose, SumModulo};
use gpu_conformance::{assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::operator::{Record, monoid, operator};
use gpu_primitives::reduce::{self, Max, Min, Monoid, Sum};
use gpu_primitives::{Device, Stream};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a tile, for 32-bit elements.
const TILE: usize = 256 * 4 * 9;

fn main() -> ExitCode {
    run(cases![
        small_sums,
        tile_edges,
        every_type,
        order_matters,
        state,
        position_of_the_least,
        positions,
        positions_of_halves,
        both_extremes,
        extremes_of_zeros,
        misaligned_slices,
        floats_are_deterministic,
        large,
        in_a_graph,
    ])
}

fn check<T: Pod + Debug + PartialEq, M: Monoid<T>>(stream: &Stream, host: &[T], operation: M) {
    let expected = host.iter().fold(operation.identity(), |a, &b| operation.combine(a, b));
    let found = reduce::reduce(stream, &stream.upload(host).unwrap(), operation).unwrap().get(stream).unwrap();
    assert_eq!(found, expected, "{} elements", host.len());
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

fn small_sums(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check(&stream, &numbers(1, len), Sum);
        check(&stream, &numbers(2, len), Max);
    }
    assert_eq!(reduce::sum(&stream, &stream.upload(&[1u8; 300]).unwrap()).unwrap().get(&stream).unwrap(), 44);
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for tiles in [1, 2, 8, 9] {
        for len in [tiles * TILE - 1, tiles * TILE, tiles * TILE + 1] {
            if !is_checked(device) || tiles <= 2 {
                check(&stream, &numbers(3, len), Sum);
            }
        }
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(4).take(3000).collect();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = bits.iter().map(|&x| x as $type).collect();
            check(&stream, &host, Max);
            check(&stream, &host, Min);
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);
    let host: Vec<[u8; 5]> = bits.iter().map(|&x| [x as u8; 5]).collect();
    check(&stream, &host, monoid!([0; 5], |a: [u8; 5], b: [u8; 5]| if a[0] < b[0] { b } else { a }));
}

/// The composition of maps is not commutative.
fn order_matters(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [100, TILE, 3 * TILE + 5] {
        if !is_checked(device) || len <= TILE {
            let maps = numbers(5, 2 * len);
            let maps: Vec<Affine> = maps.chunks(2).map(|pair| Affine { scale: pair[0] | 1, shift: pair[1] }).collect();
            check(&stream, &maps, Compose);
        }
    }
}

fn state(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = numbers(6, 5000).into_iter().map(|x| x % 1009).collect();
    check(&stream, &host, SumModulo { modulus: 1009 });
}

/// A number and its position.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct At {
    number: f32,
    position: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct First;

#[operator]
impl Monoid<At> for First {
    fn identity(&self) -> At {
        At { number: f32::INFINITY, position: u32::MAX }
    }

    fn combine(&self, a: At, b: At) -> At {
        if b.number < a.number || b.number == a.number && b.position < a.position { b } else { a }
    }
}

fn position_of_the_least(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<At> = numbers(7, 4000)
        .into_iter()
        .enumerate()
        .map(|(i, x)| At { number: (x % 100) as f32, position: i as u32 })
        .collect();
    check(&stream, &host, First);
}

/// The first of the smallest and of the largest numbers.
fn positions(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty: $order:expr;)*) => { $(
            for len in [0, 1, 2, 1000, 5000] {
                let host: Vec<$type> = random(12).take(len).map(|x| ((x % 201) as i64 - 100) as $type).collect();
                let input = stream.upload(&host).unwrap();
                let first = |wanted: Option<&$type>| {
                    wanted.map_or(u64::MAX, |&wanted| host.iter().position(|&x| x == wanted).unwrap() as u64)
                };
                let (min, max) = (host.iter().min_by($order), host.iter().max_by($order));
                assert_eq!(reduce::argmin(&stream, &input).unwrap().get(&stream).unwrap(), first(min), "{len}");
                assert_eq!(reduce::argmax(&stream, &input).unwrap().get(&stream).unwrap(), first(max), "{len}");
            }
        )* };
    }
    check! {
        i8: |a, b| a.cmp(b);
        u16: |a, b| a.cmp(b);
        i32: |a, b| a.cmp(b);
        u32: |a, b| a.cmp(b);
        i64: |a, b| a.cmp(b);
        f32: |a, b| a.total_cmp(b);
        f64: |a, b| a.total_cmp(b);
    }
}

fn positions_of_halves(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = random(13).take(3000).map(|x| <$type>::from_bits(x as u16)).collect();
            let input = stream.upload(&host).unwrap();
            let first = |wanted: u16| host.iter().position(|x| x.to_bits() == wanted).unwrap() as u64;
            let min = host.iter().min_by(|a, b| a.total_cmp(b)).unwrap().to_bits();
            let max = host.iter().max_by(|a, b| a.total_cmp(b)).unwrap().to_bits();
            assert_eq!(reduce::argmin(&stream, &input).unwrap().get(&stream).unwrap(), first(min));
            assert_eq!(reduce::argmax(&stream, &input).unwrap().get(&stream).unwrap(), first(max));
        )* };
    }
    check!(half::f16 half::bf16);
}

fn both_extremes(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty: $of:expr;)*) => { $(
            for len in [0, 1, 33, 1000, 5000] {
                let host: Vec<$type> = random(14).take(len).map($of).collect();
                let input = stream.upload(&host).unwrap();
                let fold = |with: &dyn Fn($type, $type) -> $type, of| host.iter().fold(of, |a, &b| with(a, b));
                let expected = [
                    fold(&|a, b| Min.combine(a, b), Monoid::<$type>::identity(&Min)),
                    fold(&|a, b| Max.combine(a, b), Monoid::<$type>::identity(&Max)),
                ];
                let found = reduce::min_max(&stream, &input).unwrap().get(&stream).unwrap();
                assert_eq!(found, expected, "{len} of {}", stringify!($type));
            }
        )* };
    }
    check! {
        u8: |x| x as u8;
        i8: |x| x as i8;
        u16: |x| x as u16;
        i16: |x| x as i16;
        u32: |x| x as u32;
        i32: |x| x as i32;
        u64: |x| x;
        i64: |x| x as i64;
        u128: |x| u128::from(x) << 40;
        i128: |x| i128::from(x as i64) << 40;
        f32: |x| f32::from_bits(x as u32);
        f64: f64::from_bits;
        half::f16: |x| half::f16::from_bits(x as u16);
        half::bf16: |x| half::bf16::from_bits(x as u16);
    }
}

/// Of zeros, the negative one is the smaller one, wherever it is. Without numbers, there are the identities.
fn extremes_of_zeros(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [2, 33, 20_000] {
        for place in [0, 1, len / 2, len - 1] {
            let mut host = vec![f32::NAN; len];
            host[place] = -0.0;
            host[(place + 1) % len] = 0.0;
            let input = stream.upload(&host).unwrap();
            let [least, most] = reduce::min_max(&stream, &input).unwrap().get(&stream).unwrap();
            assert_eq!([least.to_bits(), most.to_bits()], [(-0.0f32).to_bits(), 0], "{len}, {place}");
        }
        let none = stream.upload(&vec![f32::from_bits(0xFFC0_1234); len]).unwrap();
        let found = reduce::min_max(&stream, &none).unwrap().get(&stream).unwrap();
        assert_eq!(found, [f32::INFINITY, f32::NEG_INFINITY]);
    }
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(8, TILE + 9);
    let on_device = stream.upload(&host).unwrap();
    for start in 1..5 {
        let found = reduce::sum(&stream, on_device.slice(start..).unwrap()).unwrap().get(&stream).unwrap();
        assert_eq!(found, host[start..].iter().fold(0u32, |a, &b| a.wrapping_add(b)), "from {start}");
    }
}

fn floats_are_deterministic(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 100_000 };
    let host: Vec<f32> = random(9).take(len).map(|x| (x >> 40) as f32 / 3.0).collect();
    let stream = device.stream().unwrap();
    let input = stream.upload(&host).unwrap();
    assert_deterministic(device, || {
        let sum = reduce::sum(&stream, &input).unwrap().get(&stream).unwrap();
        sum.to_bits().to_le_bytes().to_vec()
    });
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 20_000 };
    check(&stream, &random(10).take(len).collect::<Vec<u64>>(), Sum);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&numbers(11, 5000)).unwrap();
    let (mut graph, sum) = stream.capture(|stream| reduce::sum(stream, &input)).unwrap();
    // SAFETY: the input and the result are still there.
    unsafe { graph.launch(&stream).unwrap() };
    let expected = numbers(11, 5000).into_iter().fold(0u32, u32::wrapping_add);
    assert_eq!(sum.get(&stream).unwrap(), expected);
}
