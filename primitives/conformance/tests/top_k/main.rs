//! The largest and smallest elements, against a stable sort on the host.

mod rows;
mod sifted;

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Address;
use gpu_conformance::{Case, adversarial_streams, assert_deterministic, cases, is_checked, is_gpu, is_long, run};
use gpu_primitives::operator::{Record, map, operator, predicate};
use gpu_primitives::sort::{RadixKey, ShortCode};
use gpu_primitives::source::{constant, counted, map};
use gpu_primitives::top_k::{self, Position, RowCounts, Rows};
use gpu_primitives::{CpuOptions, Device, Error, Stream, reduce, select};
use rows::{
    counts_in_a_graph, counts_of_rows_of_one_block, counts_of_sifted_rows, few_of_rows, few_of_rows_in_any_schedule,
    long_rows, rows_at_offsets, rows_at_tile_edges, rows_in_a_graph, rows_in_order_of_many, rows_nearly_all_wanted,
    rows_of_every_type, sifted_row_adversaries, sifted_row_sources, sifted_rows, sifted_rows_at_offsets,
    sifted_rows_of_every_type, small_counts_of_rows, small_rows, wrong_rows,
};
use sifted::{sifted_adversaries, sifted_device_lengths, sifted_edges, sifted_schedules, sifted_sources, sifted_types};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a tile, for 32-bit elements.
const TILE: usize = 256 * 4 * 3;

fn main() -> ExitCode {
    let cases = cases![
        small_inputs,
        tile_edges,
        every_type,
        own_keys,
        equal_keys_by_position,
        skewed_digits,
        misaligned_slices,
        sources,
        device_lengths,
        wrong_lengths,
        any_schedule,
        deterministic,
        in_a_graph,
        large,
        nearly_all_wanted,
        nearly_all_of_wide_types,
        nearly_all_of_a_slice,
        nearly_all_of_a_device_length,
        sifted_edges,
        sifted_types,
        sifted_adversaries,
        sifted_sources,
        sifted_device_lengths,
        sifted_schedules,
        small_rows,
        rows_at_tile_edges,
        rows_of_every_type,
        long_rows,
        rows_at_offsets,
        rows_in_order_of_many,
        rows_nearly_all_wanted,
        few_of_rows,
        few_of_rows_in_any_schedule,
        wrong_rows,
        rows_in_a_graph,
        sifted_rows,
        sifted_rows_of_every_type,
        sifted_rows_at_offsets,
        sifted_row_adversaries,
        sifted_row_sources,
        small_counts_of_rows,
        counts_of_rows_of_one_block,
        counts_of_sifted_rows,
        counts_in_a_graph,
    ];
    // It makes its own devices, so once is enough.
    let workers = Case::new("numbers_of_workers", numbers_of_workers).of_host_code();
    run(&[&cases[..], &[workers]].concat())
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// The positions of the `k` largest or smallest elements.
fn expected<K: RadixKey>(host: &[K], k: usize, smallest: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..host.len()).collect();
    order.sort_by(|&a, &b| {
        let order = K::code(host[a]).cmp(&K::code(host[b]));
        if smallest { order } else { order.reverse() }
    });
    order.truncate(k);
    order
}

fn check_as<K: RadixKey<Code: ShortCode> + Debug, P: Position + Debug>(stream: &Stream, host: &[K], k: usize) {
    let input = stream.upload(host).unwrap();
    for smallest in [false, true] {
        let (mut keys, mut positions) = (stream.uninit::<K>(k).unwrap(), stream.uninit::<P>(k).unwrap());
        if smallest {
            top_k::smallest(stream, &input, (&mut keys, &mut positions)).unwrap();
        } else {
            top_k::largest(stream, &input, (&mut keys, &mut positions)).unwrap();
        }
        let order = expected(host, k, smallest);
        let found: Vec<usize> = positions.to_vec(stream).unwrap().into_iter().map(Position::index).collect();
        let about = format!("{k} of {}, smallest: {smallest}", host.len());
        assert_same(&found, &order, &about);
        let expected: Vec<K> = order.iter().map(|&at| host[at]).collect();
        assert_same(&bytes(&keys.to_vec(stream).unwrap()), &bytes(&expected), &about);
    }
}

/// Names the first difference: these may be long.
fn assert_same<T: PartialEq + Debug>(found: &[T], expected: &[T], about: &str) {
    assert_eq!(found.len(), expected.len(), "{about}");
    let mut different = (0..found.len()).filter(|&at| found[at] != expected[at]);
    if let Some(first) = different.next() {
        let (is, should) = (&found[first], &expected[first]);
        panic!("{about}: element {first} is {is:?} instead of {should:?}, {} differ", 1 + different.count());
    }
}

/// Floats are compared by their bits.
fn bytes<T: Pod>(items: &[T]) -> Vec<u8> {
    items.iter().flat_map(|item| bytemuck::bytes_of(item).to_vec()).collect()
}

fn check<K: RadixKey<Code: ShortCode> + Debug>(stream: &Stream, host: &[K], k: usize) {
    check_as::<K, u32>(stream, host, k);
}

fn small_inputs(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 33, 700] {
        for k in [0, 1, 5, len / 2, len] {
            if k <= len {
                check(&stream, &numbers(1, len), k);
            }
        }
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in edge_sizes(TILE) {
        for k in [1, 100, len / 3, len] {
            if k <= len && (!is_checked(device) || len <= TILE + 1) {
                check(&stream, &numbers(2, len), k);
            }
        }
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u128> = random(3)
        .zip(random(4))
        .take(if is_checked(device) { 1500 } else { 6000 })
        .map(|(a, b)| (a as u128) << 64 | b as u128)
        .collect();
    macro_rules! check {
        ($($type:ty: $from:expr;)*) => { $(
            let host: Vec<$type> = bits.iter().map($from).collect();
            check(&stream, &host, 60);
            check_as::<$type, u64>(&stream, &host, 1000);
        )* };
    }
    check! {
        u8: |&x| x as u8;
        i8: |&x| x as i8;
        u16: |&x| x as u16;
        i16: |&x| x as i16;
        u32: |&x| x as u32;
        i32: |&x| x as i32;
        u64: |&x| x as u64;
        i64: |&x| x as i64;
        u128: |&x| x;
        i128: |&x| x as i128;
        f32: |&x| f32::from_bits(x as u32);
        f64: |&x| f64::from_bits(x as u64);
        half::f16: |&x| half::f16::from_bits(x as u16);
        half::bf16: |&x| half::bf16::from_bits(x as u16);
    }
}

fn own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<Address> =
        numbers(5, 2500).into_iter().map(|x| Address::new(u64::from(x % 3), x >> 8 & 7, x >> 20)).collect();
    check(&stream, &host, 77);
    check_as::<_, u64>(&stream, &host, 2500);
}

fn equal_keys_by_position(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 3000 } else { 5 * TILE + 3 };
    for distinct in [1, 2, 7] {
        let host: Vec<u32> = numbers(6, len).into_iter().map(|x| x % distinct).collect();
        for k in [1, 1000, len - 1] {
            check(&stream, &host, k);
        }
    }
}

/// Many numbers share all digits but one with the smallest that is wanted.
fn skewed_digits(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2500 } else { 6 * TILE + 1 };
    for shift in [0, 10, 21] {
        let host: Vec<u32> = numbers(7, len).into_iter().map(|x| 0xABCD_EF01 ^ (x % 64) << shift).collect();
        check(&stream, &host, 50);
        let host: Vec<u64> = random(8).take(len).map(|x| 0x0123_4567_89AB_CDEF ^ (x % 1024) << shift).collect();
        check(&stream, &host, 300);
    }
    let host: Vec<f32> = numbers(9, len).into_iter().map(|x| x as f32 / u32::MAX as f32).collect();
    check(&stream, &host, 20);
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(10, TILE + 9);
    let input = stream.upload(&host).unwrap();
    for start in 1..4 {
        let (mut keys, mut positions) = (stream.zeroed::<u32>(20).unwrap(), stream.zeroed::<u32>(20).unwrap());
        let (to, at) = (keys.slice_mut(start..start + 10).unwrap(), positions.slice_mut(3..13).unwrap());
        top_k::largest(&stream, input.slice(start..).unwrap(), (to, at)).unwrap();
        let order = expected(&host[start..], 10, false);
        let found = positions.to_vec(&stream).unwrap();
        assert_eq!(found[3..13], order.iter().map(|&at| at as u32).collect::<Vec<_>>());
        assert!(found[..3].iter().chain(&found[13..]).all(|&x| x == 0));
        let keys = keys.to_vec(&stream).unwrap();
        assert_eq!(keys[start..start + 10], order.iter().map(|&at| host[start + at]).collect::<Vec<_>>());
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<i32> = numbers(11, 3000).into_iter().map(|x| x as i32 % 5000).collect();
    let input = stream.upload(&host).unwrap();
    let squares: Vec<i32> = host.iter().map(|x| x * x).collect();
    let (mut keys, mut positions) = (stream.uninit::<i32>(40).unwrap(), stream.uninit::<u64>(40).unwrap());
    top_k::smallest(&stream, map(&input, map!(|x: i32| -> i32 { x * x })), (&mut keys, &mut positions)).unwrap();
    let order = expected(&squares, 40, true);
    assert_eq!(positions.to_vec(&stream).unwrap(), order.iter().map(|&at| at as u64).collect::<Vec<_>>());
    assert_eq!(keys.to_vec(&stream).unwrap(), order.iter().map(|&at| squares[at]).collect::<Vec<_>>());
}

fn device_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(12, 2000);
    let input = stream.upload(&host).unwrap();
    for divisor in [2, 100, 5000] {
        let mut kept = stream.uninit::<u32>(2000).unwrap();
        let rest = u32::from(divisor == 5000) * u32::MAX;
        let keep = predicate!(divisor: u32 = divisor, rest: u32 = rest; |x: u32| x % divisor == rest);
        let count = select::select(&stream, &input, &mut kept, keep).unwrap();
        let passing: Vec<u32> = host.iter().copied().filter(|x| x % divisor == rest).collect();
        let (mut keys, mut positions) = (stream.zeroed::<u32>(50).unwrap(), stream.uninit::<u32>(50).unwrap());
        top_k::largest(&stream, counted(&kept, &count), (&mut keys, &mut positions)).unwrap();
        let order = expected(&passing, 50, false);
        let mut expected_positions: Vec<u32> = order.iter().map(|&at| at as u32).collect();
        expected_positions.resize(50, u32::NONE);
        assert_eq!(positions.to_vec(&stream).unwrap(), expected_positions, "{} elements", passing.len());
        let mut expected_keys: Vec<u32> = order.iter().map(|&at| passing[at]).collect();
        expected_keys.resize(50, 0);
        assert_eq!(keys.to_vec(&stream).unwrap(), expected_keys, "{} elements", passing.len());
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2]).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(4).unwrap(), stream.zeroed::<u32>(4).unwrap());
    let many = top_k::largest(&stream, &input, (&mut keys, &mut positions));
    assert!(matches!(many, Err(Error::LengthMismatch { expected: 3, found: 4, .. })));
    let fewer = top_k::largest(&stream, &input, (keys.slice_mut(..2).unwrap(), positions.slice_mut(..1).unwrap()));
    assert!(matches!(fewer, Err(Error::LengthMismatch { expected: 2, found: 1, .. })));
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![0; 4], vec![0; 4]));
}

fn any_schedule(device: &Device) {
    let host: Vec<u32> = numbers(13, 3 * TILE).into_iter().map(|x| x % 1000).collect();
    for (_, stream) in adversarial_streams(device, 1).take(20) {
        check(&stream, &host, 500);
    }
}

fn deterministic(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 20_000 };
    let host: Vec<f32> = random(14).take(len).map(|x| (x % 50) as f32).collect();
    let stream = device.stream().unwrap();
    let input = stream.upload(&host).unwrap();
    assert_deterministic(device, || {
        let (mut keys, mut positions) = (stream.uninit::<f32>(99).unwrap(), stream.uninit::<u32>(99).unwrap());
        top_k::largest(&stream, &input, (&mut keys, &mut positions)).unwrap();
        [bytes(&keys.to_vec(&stream).unwrap()), bytes(&positions.to_vec(&stream).unwrap())].concat()
    });
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(15, 5000);
    let input = stream.upload(&host).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<u32>(9).unwrap(), stream.uninit::<u32>(9).unwrap());
    let (mut graph, ()) =
        stream.capture(|stream| top_k::smallest(stream, &input, (&mut keys, &mut positions))).unwrap();
    for _ in 0..2 {
        // SAFETY: the input and the outputs are still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let order = expected(&host, 9, true);
    assert_eq!(positions.to_vec(&stream).unwrap(), order.iter().map(|&at| at as u32).collect::<Vec<_>>());
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 22) + 321 } else { 60_000 };
    if !is_checked(device) {
        check(&stream, &numbers(16, len), 100);
        check(&stream, &numbers(17, len), len / 2);
    }
}

/// A length for which some blocks that count digits take two tiles, and the last tile is not full.
fn two_tiles_per_block(device: &Device, bytes: usize) -> usize {
    const BLOCKS_PER_MULTIPROCESSOR: usize = 3;
    let tile = TILE * 4 / bytes.max(4);
    3 * BLOCKS_PER_MULTIPROCESSOR * device.limits().multiprocessors as usize * tile / 2 + 3
}

/// Calls `check` with inputs whose smallest or largest elements come late, so that a block meets them after many others,
/// and with numbers of wanted elements from half of the input on. `of` makes an element of a number below `u32::MAX`, and keeps
/// their order.
///
/// Threads that are simulated take long, so each input comes with one number there, unless long tests were asked for. The
/// checked device has the input that shows most.
fn with_late_extremes<K>(device: &Device, len: usize, of: impl Fn(u32) -> K, check: impl Fn(&[K], usize)) {
    let (step, last) = (u32::MAX / len as u32, len - 1);
    let numbers_at: [&dyn Fn(usize) -> u32; 5] = [
        &|i| (last - i) as u32 * step,
        &|i| i as u32 * step,
        &|i| if i == last { 0 } else { u32::MAX - 1 },
        &|i| if i == last { u32::MAX - 1 } else { 0 },
        // Many equal ones, fewer distinct ones than digits, falling and rising.
        &|i| ((len - i) * 7 / len) as u32 * 1000 + (i % 3) as u32,
    ];
    let wanted = [len - 1, len, len / 2 + 1];
    let inputs = if is_checked(device) { 1 } else { numbers_at.len() };
    for (input, number_at) in numbers_at[..inputs].iter().enumerate() {
        let host: Vec<K> = (0..len).map(|i| of(number_at(i))).collect();
        if is_gpu(device) || is_long() {
            wanted.iter().for_each(|&k| check(&host, k));
        } else {
            check(&host, wanted[input % wanted.len()]);
        }
    }
}

/// The largest and the smallest elements are those of a stable sort, also if they come last in the input of every block.
fn nearly_all_wanted(device: &Device) {
    let stream = device.stream().unwrap();
    if is_gpu(device) || is_long() {
        let len = two_tiles_per_block(device, 4);
        with_late_extremes(device, len, |x| x, |host, k| check(&stream, host, k));
        let numbers = |x| (x >> 16) as i16 ^ i16::MIN;
        with_late_extremes(device, len, numbers, |host, k| check_as::<_, u64>(&stream, host, k));
    }
    let len = two_tiles_per_block(device, 8);
    with_late_extremes(device, len, |x| f64::from(x) - 1e9, |host, k| check(&stream, host, k));
}

fn nearly_all_of_wide_types(device: &Device) {
    let stream = device.stream().unwrap();
    let len = two_tiles_per_block(device, 16);
    let wide = |x| (i128::from(x) - i128::from(u32::MAX / 2)) << 90;
    with_late_extremes(device, len, wide, |host, k| check(&stream, host, k));
    if is_gpu(device) || is_long() {
        let own = |x: u32| Address::new(u64::from(x >> 16), x >> 8 & 255, x & 255);
        with_late_extremes(device, len, own, |host, k| check_as::<_, u64>(&stream, host, k));
        let len = two_tiles_per_block(device, 4);
        with_late_extremes(device, len, Tagged::with_ties, |host, k| check(&stream, host, k));
    }
}

/// A slice that is not aligned to a row of a tile, with one element that differs from the others.
fn nearly_all_of_a_slice(device: &Device) {
    let stream = device.stream().unwrap();
    let len = two_tiles_per_block(device, 16);
    for outlier in if is_checked(device) { vec![len] } else { vec![1, len / 2, len] } {
        let mut host = vec![i128::MAX - 1; len + 1];
        host[outlier] = 0;
        let input = stream.upload(&host).unwrap();
        let (mut keys, mut positions) = (stream.uninit::<i128>(len).unwrap(), stream.uninit::<u32>(len).unwrap());
        top_k::largest(&stream, input.slice(1..).unwrap(), (&mut keys, &mut positions)).unwrap();
        let order = expected(&host[1..], len, false);
        let (keys, positions) = (keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap());
        let about = format!("all of {len}, of which number {outlier} is an outlier");
        assert_same(&positions, &order.iter().map(|&at| at as u32).collect::<Vec<_>>(), &about);
        assert_same(&keys, &order.iter().map(|&at| host[at + 1]).collect::<Vec<_>>(), &about);
    }
}

/// More elements are wanted than there are.
fn nearly_all_of_a_device_length(device: &Device) {
    let stream = device.stream().unwrap();
    let room = two_tiles_per_block(device, 8);
    let host: Vec<u64> = (0..room as u64).rev().map(|i| i << 40).collect();
    let input = stream.upload(&host).unwrap();
    let len = room - 1;
    let count = reduce::sum(&stream, constant(1u64, len)).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u64>(room).unwrap(), stream.uninit::<u32>(room).unwrap());
    top_k::largest(&stream, counted(&input, &count), (&mut keys, &mut positions)).unwrap();
    let about = format!("{room} of {len} elements");
    let expected_positions: Vec<u32> = (0..len as u32).chain([u32::NONE]).collect();
    assert_same(&positions.to_vec(&stream).unwrap(), &expected_positions, &about);
    let expected_keys: Vec<u64> = host[..len].iter().copied().chain([0]).collect();
    assert_same(&keys.to_vec(&stream).unwrap(), &expected_keys, &about);
}

/// The number of workers decides how many blocks there are, and where the parts of native bodies begin and end. The results
/// are the same.
fn numbers_of_workers(device: &Device) {
    /// The fewest elements for which a native body begins another part.
    const PART: usize = 1 << 13;
    if is_gpu(device) {
        return;
    }
    for workers in [1, 2, 3, 5, 16] {
        let device = Device::cpu_with(CpuOptions { workers: Some(workers), ..CpuOptions::default() });
        let stream = device.stream().unwrap();
        let two_parts = 2 * PART;
        for len in [two_parts - 1, two_parts, two_parts + 1] {
            check(&stream, &falling(len, |x| x << 15), len - 1);
        }
        let len = two_tiles_per_block(&device, 2);
        check(&stream, &falling(len, |x| x as i16), len - 1);
        if workers == 2 || is_long() {
            check(&stream, &falling(len, Tagged::with_ties), len);
        }
        if is_long() {
            for len in [workers * PART - 1, workers * PART, 70_001, (1 << 20) + 3] {
                check(&stream, &falling(len, Tagged::with_ties), len);
                check(&stream, &falling(len, |x| x as i16), len - 1);
            }
        }
    }
}

/// A key of 12 bytes, of which 4 count. The others tell equal keys apart.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct Tagged {
    rank: u32,
    tag: [u32; 2],
}

impl Tagged {
    /// Many numbers share a rank.
    fn with_ties(number: u32) -> Self {
        Self { rank: number >> 7 << 16, tag: [number; 2] }
    }
}

#[operator]
impl RadixKey for Tagged {
    type Code = u32;

    #[inline(always)]
    fn code(key: Self) -> u32 {
        key.rank
    }
}

/// Returns what `of` makes of falling numbers.
fn falling<K>(len: usize, of: impl Fn(u32) -> K) -> Vec<K> {
    (0..len as u32).rev().map(of).collect()
}
