//! Segmented reductions and scans, and scans by key, against loops on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::operator::{equality, map, monoid, predicate};
use gpu_primitives::reduce::{self, Max, Min, Monoid, Sum};
use gpu_primitives::source::{Source, counted, map, map2, strided};
use gpu_primitives::{Device, DeviceValue, Error, Stream, scan, select};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a tile, for 32-bit elements.
const TILE: usize = 256 * 4 * 7;

fn main() -> ExitCode {
    run(cases![
        small_segments,
        segments_at_tile_edges,
        mixed_lengths,
        offsets_of_64_bits,
        elements_outside_of_segments,
        empty_inputs,
        elements_of_every_size,
        order_matters,
        many_tiles,
        small_runs_of_keys,
        runs_at_tile_edges,
        keys_of_every_size,
        values_of_every_size,
        keys_from_zero_to_one_run,
        another_equality,
        an_initial_value,
        misaligned_slices,
        sources,
        lengths_on_the_device,
        floats_are_deterministic,
        invalid_offsets_do_no_harm,
        wrong_lengths,
        in_a_graph,
        rows,
        rows_of_a_part_of_a_matrix,
        rows_of_wrong_lengths,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// Returns offsets of segments with these lengths.
fn offsets(lengths: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let mut end = 0;
    let ends = lengths.into_iter().map(|len| {
        end += len as u32;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Returns offsets of segments of random lengths from 0 to `longest`, which cover `len` elements.
fn random_offsets(seed: u64, len: usize, longest: u64) -> Vec<u32> {
    let mut offsets = vec![0];
    for x in random(seed) {
        let last = *offsets.last().unwrap();
        if last as usize == len {
            break;
        }
        offsets.push((last + (x % (longest + 1)) as u32).min(len as u32));
    }
    offsets
}

/// `assert_eq!` that names the first difference instead of printing everything.
fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what}, {} elements, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Returns the exclusive and the inclusive scan that restart at heads.
fn oracle<T: Copy, M: Monoid<T>>(input: &[T], is_head: impl Fn(usize) -> bool, op: M, init: T) -> (Vec<T>, Vec<T>) {
    let mut sum = init;
    let pairs = input.iter().enumerate().map(|(i, &item)| {
        let before = if is_head(i) { init } else { sum };
        sum = op.combine(before, item);
        (before, sum)
    });
    pairs.unzip()
}

/// Compares the reduction and the scans of segments with loops.
fn check<T: Pod + Debug + PartialEq, M: Monoid<T>>(stream: &Stream, host: &[T], offsets: &[u32], op: M) {
    let input = stream.upload(host).unwrap();
    let on_device = stream.upload(offsets).unwrap();
    let parts = || offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize);

    let mut output = stream.uninit::<T>(offsets.len() - 1).unwrap();
    reduce::segmented(stream, &input, &on_device, &mut output, op).unwrap();
    let expected: Vec<T> =
        parts().map(|part| host[part].iter().fold(op.identity(), |a, &b| op.combine(a, b))).collect();
    assert_same(&output.to_vec(stream).unwrap(), &expected, "reduction");

    let is_head = |i: usize| i == 0 || offsets.binary_search(&(i as u32)).is_ok();
    let (exclusive, inclusive) = oracle(host, is_head, op, op.identity());
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    scan::segmented_exclusive(stream, &input, &on_device, &mut output, op).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &exclusive, "exclusive scan");
    scan::segmented_inclusive(stream, &input, &on_device, &mut output, op).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &inclusive, "inclusive scan");
}

/// Compares the scans by key with loops.
fn check_keys<K: Pod, T: Pod + Debug + PartialEq, E: Equality<K>, M: Monoid<T>>(
    stream: &Stream,
    (keys, values): (&[K], &[T]),
    equality: E,
    (op, init): (M, T),
) {
    let is_head = |i: usize| i == 0 || !equality.equal(keys[i - 1], keys[i]);
    let (on_keys, on_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let mut output = stream.uninit::<T>(keys.len()).unwrap();
    scan::exclusive_by_key(stream, (&on_keys, &on_values), &mut output, equality, op, init).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &oracle(values, is_head, op, init).0, "exclusive scan by key");
    scan::inclusive_by_key(stream, (&on_keys, &on_values), &mut output, equality, op).unwrap();
    assert_same(
        &output.to_vec(stream).unwrap(),
        &oracle(values, is_head, op, op.identity()).1,
        "inclusive scan by key",
    );
}

/// Returns keys in runs of random lengths from 1 to `longest`.
fn runs(seed: u64, len: usize, longest: u64) -> Vec<u32> {
    let lengths = random(seed).map(|x| 1 + x % longest);
    lengths.zip(0u32..).flat_map(|(run, key)| std::iter::repeat_n(key % 5, run as usize)).take(len).collect()
}

fn small_segments(device: &Device) {
    let stream = device.stream().unwrap();
    for lengths in [vec![0], vec![1], vec![0, 0, 0], vec![5, 0, 1, 64, 0], vec![31, 32, 33, 1000], vec![3; 300]] {
        let offsets = offsets(lengths);
        let host = numbers(1, *offsets.last().unwrap() as usize);
        check(&stream, &host, &offsets, Sum);
        check(&stream, &host, &offsets, Max);
    }
}

fn segments_at_tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for edge in [TILE - 1, TILE, TILE + 1] {
        let host = numbers(2, 2 * TILE + 5);
        let rest = host.len() - edge;
        check(&stream, &host, &offsets([edge, rest]), Sum);
        check(&stream, &host, &offsets([edge, 0, 0, rest, 0]), Sum);
        check(&stream, &host, &offsets([edge - 1, 1, 1, rest - 1]), Sum);
        check(&stream, &host[..edge], &offsets([edge]), Sum);
    }
    check(&stream, &numbers(3, 2 * TILE), &offsets([TILE, TILE]), Sum);
}

fn mixed_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2 * TILE + 77 } else { 5 * TILE + 77 };
    let host = numbers(4, len);
    for longest in [1, 2, 8, 64, 500, 2 * TILE as u64] {
        check(&stream, &host, &random_offsets(longest, len, longest), Sum);
    }
    check(&stream, &host, &offsets(std::iter::repeat_n(1, len)), Sum);
    check(&stream, &host, &offsets([1, len - 2, 1]), Sum);
    // Many empty segments in one place.
    check(&stream, &host, &offsets([100].into_iter().chain(std::iter::repeat_n(0, 3000)).chain([len - 100])), Sum);
}

fn offsets_of_64_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(5, TILE + 100);
    let offsets: Vec<u64> = random_offsets(6, host.len(), 90).into_iter().map(u64::from).collect();
    let (input, on_device) = (stream.upload(&host).unwrap(), stream.upload(&offsets).unwrap());
    let mut output = stream.uninit::<u32>(offsets.len() - 1).unwrap();
    reduce::segmented(&stream, &input, &on_device, &mut output, Max).unwrap();
    let expected = |pair: &[u64]| host[pair[0] as usize..pair[1] as usize].iter().fold(0, |a: u32, &b| a.max(b));
    assert_same(&output.to_vec(&stream).unwrap(), &offsets.windows(2).map(expected).collect::<Vec<_>>(), "maxima");
    let mut output = stream.uninit::<u32>(host.len()).unwrap();
    scan::segmented_inclusive(&stream, &input, &on_device, &mut output, Sum).unwrap();
    let is_head = |i: usize| offsets.binary_search(&(i as u64)).is_ok();
    assert_same(&output.to_vec(&stream).unwrap(), &oracle(&host, is_head, Sum, 0).1, "scan");
}

/// What is before the first offset and after the last one belongs to no result of a reduction, and scans on its own.
fn elements_outside_of_segments(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(7, 2 * TILE + 9);
    let last = host.len() as u32;
    for offsets in [vec![5, 9], vec![100, 100, 3000, last - 1], vec![TILE as u32, TILE as u32 + 5], vec![last], vec![3]]
    {
        check(&stream, &host, &offsets, Sum);
    }
    let bytes: Vec<[u8; 3]> = host.iter().map(|&x| [x as u8; 3]).collect();
    check(
        &stream,
        &bytes,
        &[7, 90, 90, 200],
        monoid!([0; 3], |a: [u8; 3], b: [u8; 3]| if a[0] < b[0] { b } else { a }),
    );
}

fn empty_inputs(device: &Device) {
    let stream = device.stream().unwrap();
    check::<u32, _>(&stream, &[], &[0], Sum);
    check::<u32, _>(&stream, &[], &[0, 0, 0], Min);
    check::<f64, _>(&stream, &[], &[0; 1000], Max);
    check_keys::<u32, u32, _, _>(&stream, (&[], &[]), Same, (Sum, 7));
}

/// Elements of a size, filled with bytes, and the operation that keeps the last of them that is not zero: it is not
/// commutative.
fn check_size<T: Pod + Debug + PartialEq, M: Monoid<T>>(stream: &Stream, bytes: &[u64], len: usize, op: M) {
    let host: Vec<T> = bytemuck::cast_slice::<_, u8>(bytes)
        .chunks_exact(size_of::<T>())
        .map(bytemuck::pod_read_unaligned)
        .take(len)
        .collect();
    check(stream, &host, &random_offsets(8, host.len(), 70), op);
    let keys = runs(9, host.len(), 40);
    check_keys(stream, (&keys, &host), Same, (op, host[0]));
}

fn elements_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes: Vec<u64> = random(10).take(4 * 4000).collect();
    let len = 3000;
    macro_rules! numbers {
        ($($type:ty)*) => { $( check_size::<$type, _>(&stream, &bytes, len, Max); )* };
    }
    numbers!(u8 i16 u32 i64 u128);
    macro_rules! arrays {
        ($($type:ty: $n:literal)*) => { $(
            let later = monoid!([0; $n], |a: [$type; $n], b: [$type; $n]| if b[0] % 3 == 0 { a } else { b });
            check_size::<[$type; $n], _>(&stream, &bytes, len, later);
        )* };
    }
    arrays!(u8: 3 u8: 5 u32: 3 u16: 7 u64: 2 u32: 5 u64: 4);
}

/// The composition of maps is not commutative.
fn order_matters(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 4000 } else { 3 * TILE };
    let maps: Vec<Affine> =
        numbers(11, 2 * len).chunks(2).map(|pair| Affine { scale: pair[0] | 1, shift: pair[1] }).collect();
    for longest in [3, 100, 3000] {
        check(&stream, &maps, &random_offsets(12, len, longest), Compose);
        check_keys(&stream, (&runs(13, len, longest), &maps), Same, (Compose, Affine { scale: 3, shift: 4 }));
    }
}

fn many_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) {
        (1 << 24) + 4321
    } else if is_checked(device) {
        6 * TILE + 1
    } else {
        70 * TILE + 1
    };
    let host = numbers(14, len);
    for longest in [64, 30 * TILE as u64, len as u64] {
        check(&stream, &host, &random_offsets(15, len, longest), Sum);
    }
    check(&stream, &host, &[0, len as u32], Sum);
    check_keys(&stream, (&runs(16, len, 8), &host), Same, (Sum, 1));
    check_keys(&stream, (&runs(16, len, 5 * TILE as u64), &host), Same, (Sum, 1));
}

fn small_runs_of_keys(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        for longest in [1, 2, 8, 600] {
            check_keys(&stream, (&runs(17, len, longest), &numbers(18, len)), Same, (Sum, 5));
        }
    }
}

fn runs_at_tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
        for longest in [1, 8, 3000] {
            check_keys(&stream, (&runs(19, len, longest), &numbers(20, len)), Same, (Sum, 5));
        }
    }
    for edge in [TILE - 1, TILE, TILE + 1] {
        let keys: Vec<u32> = (0..2 * TILE).map(|i| u32::from(i >= edge)).collect();
        check_keys(&stream, (&keys, &numbers(21, 2 * TILE)), Same, (Sum, 0));
    }
}

fn keys_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 256 * 2 * 7 + 50;
    let numbered = runs(22, len, 30);
    let (values, wide) = (numbers(23, len), random(24).take(len).collect::<Vec<u64>>());
    macro_rules! check {
        ($($type:ty: $same:expr;)*) => { $(
            let widened = |&key: &u32| [u64::from(key); 4];
            let narrowed = |x: [u64; 4]| bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&x)[..size_of::<$type>()]);
            let keys: Vec<$type> = numbered.iter().map(widened).map(narrowed).collect();
            check_keys(&stream, (&keys, &values), $same, (Sum, 3));
            check_keys(&stream, (&keys, &wide), $same, (Sum, 3));
        )* };
    }
    check! {
        u8: Same;
        i16: Same;
        i32: Same;
        f32: Same;
        u64: Same;
        f64: Same;
        u128: Same;
        [u8; 3]: equality!(|a: [u8; 3], b: [u8; 3]| a == b);
        [u8; 5]: equality!(|a: [u8; 5], b: [u8; 5]| a == b);
        [u32; 3]: equality!(|a: [u32; 3], b: [u32; 3]| a == b);
        [u64; 4]: equality!(|a: [u64; 4], b: [u64; 4]| a == b);
    }
}

fn values_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u64> = runs(25, 2500, 30).into_iter().map(u64::from).collect();
    let bits: Vec<u64> = random(26).take(keys.len()).collect();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let values: Vec<$type> = bits.iter().map(|&x| x as $type).collect();
            check_keys(&stream, (&keys, &values), Same, (Min, values[0]));
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);
}

fn keys_from_zero_to_one_run(device: &Device) {
    let stream = device.stream().unwrap();
    let values = numbers(27, 2 * TILE + 3);
    check_keys(&stream, (&vec![0u32; values.len()], &values), Same, (Sum, 9));
    let all_different: Vec<u32> = (0..values.len() as u32).collect();
    check_keys(&stream, (&all_different, &values), Same, (Sum, 9));
    // NaN equals nothing, so each is a run.
    check_keys(&stream, (&vec![f32::NAN; values.len()], &values), Same, (Sum, 9));
}

fn another_equality(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = (0..4000).map(|i| i / 3).collect();
    let tens = equality!(size: u32 = 10; |a: u32, b: u32| a / size == b / size);
    check_keys(&stream, (&keys, &numbers(28, keys.len())), tens, (Sum, 2));
    // One that is not an equality does no harm.
    let less = equality!(|a: u32, b: u32| a < b);
    check_keys(&stream, (&numbers(29, 4000), &numbers(30, 4000)), less, (Sum, 2));
}

fn an_initial_value(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (runs(31, 3000, 20), numbers(32, 3000));
    check_keys(&stream, (&keys, &values), Same, (Max, 1 << 31));
    check_keys(&stream, (&keys, &values), Same, (Min, 1 << 31));
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let len = TILE + 9;
    let (keys, values) = (runs(33, len, 20), numbers(34, len));
    let (on_keys, on_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    for (k, v) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        let n = len - 5;
        let mut output = stream.upload(&vec![9u32; len]).unwrap();
        let (part_keys, part_values) = (on_keys.slice(k..k + n).unwrap(), on_values.slice(v..v + n).unwrap());
        let target = output.slice_mut(1..1 + n).unwrap();
        scan::inclusive_by_key(&stream, (part_keys, part_values), target, Same, Sum).unwrap();
        let is_head = |i: usize| i == 0 || keys[k + i - 1] != keys[k + i];
        let mut expected = vec![9; len];
        expected[1..1 + n].copy_from_slice(&oracle(&values[v..v + n], is_head, Sum, 0).1);
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "scan by key");

        let all = random_offsets(35, n, 100);
        let offsets = stream.upload(&all).unwrap();
        let mut output = stream.upload(&vec![9u32; all.len() + 1]).unwrap();
        let (input, target) = (on_values.slice(v..v + n).unwrap(), output.slice_mut(1..all.len()).unwrap());
        reduce::segmented(&stream, input, &offsets, target, Max).unwrap();
        let expected =
            |pair: &[u32]| values[v + pair[0] as usize..v + pair[1] as usize].iter().fold(0, |a: u32, &b| a.max(b));
        let mut all_expected = vec![9];
        all_expected.extend(all.windows(2).map(expected));
        all_expected.push(9);
        assert_same(&output.to_vec(&stream).unwrap(), &all_expected, "reduction");
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let len = TILE + 33;
    let (a, b) = (numbers(36, len), numbers(37, len));
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let host_offsets = random_offsets(38, len, 80);
    let offsets = stream.upload(&host_offsets).unwrap();
    let mut output = stream.uninit::<u64>(host_offsets.len() - 1).unwrap();
    let product = map!(|a: u32, b: u32| -> u64 { a as u64 * b as u64 });
    reduce::segmented(&stream, map2(&on_a, &on_b, product), &offsets, &mut output, Sum).unwrap();
    let products: Vec<u64> = a.iter().zip(&b).map(|(&a, &b)| u64::from(a) * u64::from(b)).collect();
    let expected =
        |pair: &[u32]| products[pair[0] as usize..pair[1] as usize].iter().fold(0u64, |a, &b| a.wrapping_add(b));
    assert_same(&output.to_vec(&stream).unwrap(), &host_offsets.windows(2).map(expected).collect::<Vec<_>>(), "sums");

    let mut output = stream.uninit::<u64>(len).unwrap();
    scan::segmented_exclusive(&stream, map2(&on_a, &on_b, product), &offsets, &mut output, Sum).unwrap();
    let is_head = |i: usize| host_offsets.binary_search(&(i as u32)).is_ok();
    assert_same(&output.to_vec(&stream).unwrap(), &oracle(&products, is_head, Sum, 0).0, "segmented scan");

    // Keys and values that are computed.
    let tens = map!(|a: u32| -> u32 { a >> 30 });
    for keys_are_computed in [false, true] {
        if keys_are_computed {
            let (keys, values) = (map(&on_a, tens), map2(&on_a, &on_b, product));
            scan::inclusive_by_key(&stream, (keys, values), &mut output, Same, Sum).unwrap();
        } else {
            let quarters: Vec<u32> = a.iter().map(|a| a >> 30).collect();
            let keys = stream.upload(&quarters).unwrap();
            scan::inclusive_by_key(&stream, (&keys, map2(&on_a, &on_b, product)), &mut output, Same, Sum).unwrap();
        }
        let is_head = |i: usize| i == 0 || a[i - 1] >> 30 != a[i] >> 30;
        assert_same(&output.to_vec(&stream).unwrap(), &oracle(&products, is_head, Sum, 0).1, "scan by key");
    }
}

/// What a selection returns is the length of the next calls.
fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(39, 2 * TILE + 100);
    let input = stream.upload(&host).unwrap();
    for limit in [0u32, 1 << 22, 1 << 31, u32::MAX] {
        let mut kept = stream.zeroed::<u32>(host.len()).unwrap();
        let below = predicate!(limit: u32 = limit; |x: u32| x < limit);
        let count = select::select(&stream, &input, &mut kept, below).unwrap();
        let expected: Vec<u32> = host.iter().copied().filter(|&x| x < limit).collect();

        // Segments of 50 elements, as far as there are any.
        let host_offsets: Vec<u32> = (0..=host.len() as u32 / 50).map(|i| i * 50).collect();
        let offsets = stream.upload(&host_offsets).unwrap();
        let mut output = stream.uninit::<u32>(host_offsets.len() - 1).unwrap();
        reduce::segmented(&stream, counted(&kept, &count), &offsets, &mut output, Max).unwrap();
        let mut maxima: Vec<u32> = expected.chunks(50).map(|part| *part.iter().max().unwrap()).collect();
        maxima.resize(host_offsets.len() - 1, 0);
        maxima.truncate(host_offsets.len() - 1);
        assert_same(&output.to_vec(&stream).unwrap(), &maxima, "maxima");

        let mut output = stream.upload(&vec![77u32; host.len()]).unwrap();
        scan::segmented_inclusive(&stream, counted(&kept, &count), &offsets, &mut output, Sum).unwrap();
        let mut sums = oracle(&expected, |i| i % 50 == 0, Sum, 0).1;
        sums.resize(host.len(), 77);
        assert_same(&output.to_vec(&stream).unwrap(), &sums, "segmented scan");

        let keys: Vec<u8> = (0..host.len()).map(|i| (i / 7) as u8).collect();
        let on_keys = stream.upload(&keys).unwrap();
        let mut output = stream.upload(&vec![77u32; host.len()]).unwrap();
        scan::inclusive_by_key(&stream, (&on_keys, counted(&kept, &count)), &mut output, Same, Sum).unwrap();
        let mut sums = oracle(&expected, |i| i % 7 == 0, Sum, 0).1;
        sums.resize(host.len(), 77);
        assert_same(&output.to_vec(&stream).unwrap(), &sums, "scan by key");
    }
}

fn floats_are_deterministic(device: &Device) {
    let len = if is_checked(device) { 2 * TILE + 1 } else { 40 * TILE + 1 };
    let host: Vec<f32> = random(40).take(len).map(|x| x as i32 as f32 * 1e-3).collect();
    let stream = device.stream().unwrap();
    let (input, keys) = (stream.upload(&host).unwrap(), stream.upload(&runs(41, len, 9000)).unwrap());
    let host_offsets = random_offsets(42, len, 9000);
    let offsets = stream.upload(&host_offsets).unwrap();
    let mut sums = stream.uninit::<f32>(host_offsets.len() - 1).unwrap();
    let mut scanned = stream.uninit::<f32>(len).unwrap();
    assert_deterministic(device, || {
        reduce::segmented(&stream, &input, &offsets, &mut sums, Sum).unwrap();
        let mut bytes = bytemuck::cast_slice::<_, u8>(&sums.to_vec(&stream).unwrap()).to_vec();
        scan::segmented_inclusive(&stream, &input, &offsets, &mut scanned, Sum).unwrap();
        bytes.extend_from_slice(bytemuck::cast_slice(&scanned.to_vec(&stream).unwrap()));
        scan::exclusive_by_key(&stream, (&keys, &input), &mut scanned, Same, Sum, 1.5).unwrap();
        bytes.extend_from_slice(bytemuck::cast_slice(&scanned.to_vec(&stream).unwrap()));
        bytes
    });
}

/// Results are unspecified, but all outputs of a reduction are written, and nothing else is.
fn invalid_offsets_do_no_harm(device: &Device) {
    let stream = device.stream().unwrap();
    let host = vec![1u32; 2 * TILE + 50];
    let input = stream.upload(&host).unwrap();
    let sequences: [Vec<u32>; 5] = [
        (0..500).rev().collect(),
        numbers(43, 1000),
        numbers(44, 1000).into_iter().map(|x| x % host.len() as u32).collect(),
        vec![u32::MAX; 300],
        vec![5, 3, 5, 3, 5, 3, 8000, 5],
    ];
    for sequence in sequences {
        let offsets = stream.upload(&sequence).unwrap();
        let mut sums = stream.upload(&vec![u32::MAX; sequence.len() - 1]).unwrap();
        reduce::segmented(&stream, &input, &offsets, &mut sums, Sum).unwrap();
        assert!(sums.to_vec(&stream).unwrap().iter().all(|&sum| sum as usize <= host.len()));
        let mut output = stream.zeroed::<u32>(host.len()).unwrap();
        scan::segmented_exclusive(&stream, &input, &offsets, &mut output, Sum).unwrap();
        assert!(output.to_vec(&stream).unwrap().iter().all(|&sum| sum as usize <= host.len()));
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (input, offsets) = (stream.zeroed::<u32>(10).unwrap(), stream.upload(&[0u32, 5, 10]).unwrap());
    let none = stream.zeroed::<u32>(0).unwrap();
    let mut output = stream.upload(&[5u32; 3]).unwrap();
    let error = reduce::segmented(&stream, &input, &offsets, &mut output, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 2, found: 3, .. }), "{error}");
    let error = reduce::segmented(&stream, &input, &none, &mut output, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 1, found: 0, .. }), "{error}");
    let error = scan::segmented_inclusive(&stream, &input, &offsets, &mut output, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 10, found: 3, .. }), "{error}");
    let error = scan::segmented_exclusive(&stream, &input, &none, &mut output, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 1, found: 0, .. }), "{error}");
    let error = scan::inclusive_by_key(&stream, (&input, &offsets), &mut output, Same, Sum).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 10, found: 3, .. }), "{error}");
    let error = scan::exclusive_by_key(&stream, (&input, &input), &mut output, Same, Sum, 0).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 10, found: 3, .. }), "{error}");
    assert_eq!(output.to_vec(&stream).unwrap(), [5; 3]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (runs(45, 5000, 10), numbers(46, 5000));
    let (on_keys, on_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let offsets = stream.upload(&[0u32, 100, 5000]).unwrap();
    let mut scanned = stream.uninit::<u32>(5000).unwrap();
    let mut sums = stream.uninit::<u32>(2).unwrap();
    let (mut graph, ()) = stream
        .capture(|stream| {
            scan::inclusive_by_key(stream, (&on_keys, &on_values), &mut scanned, Same, Sum)?;
            reduce::segmented(stream, &on_values, &offsets, &mut sums, Sum)
        })
        .unwrap();
    // SAFETY: the memory is still there.
    unsafe { graph.launch(&stream).unwrap() };
    let is_head = |i: usize| i == 0 || keys[i - 1] != keys[i];
    assert_same(&scanned.to_vec(&stream).unwrap(), &oracle(&values, is_head, Sum, 0).1, "scan by key");
    let sum = |part: &[u32]| part.iter().fold(0u32, |a, &b| a.wrapping_add(b));
    assert_eq!(sums.to_vec(&stream).unwrap(), [sum(&values[..100]), sum(&values[100..])]);
}

/// Compares the reduction and the scans of rows with loops. The source has these elements.
fn check_rows<'a, T: Pod + Debug + PartialEq, M: Monoid<T>>(
    stream: &Stream,
    source: impl Source<'a, T> + Copy,
    host: &[T],
    (rows, row_len): (usize, usize),
    op: M,
) {
    let mut output = stream.uninit::<T>(rows).unwrap();
    reduce::rows(stream, source, row_len, &mut output, op).unwrap();
    let combined =
        |row: usize| host[row * row_len..(row + 1) * row_len].iter().fold(op.identity(), |a, &b| op.combine(a, b));
    assert_same(&output.to_vec(stream).unwrap(), &(0..rows).map(combined).collect::<Vec<T>>(), "reduction of rows");
    let (exclusive, inclusive) = oracle(host, |i| i % row_len == 0, op, op.identity());
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    scan::row_exclusive(stream, source, row_len, &mut output, op).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &exclusive, "exclusive scan of rows");
    scan::row_inclusive(stream, source, row_len, &mut output, op).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &inclusive, "inclusive scan of rows");
}

fn rows(device: &Device) {
    let stream = device.stream().unwrap();
    for (rows, row_len) in
        [(0, 5), (1, 1), (4, 0), (1000, 1), (7, 33), (3, TILE - 1), (2, TILE), (2, TILE + 1), (TILE + 1, 2)]
    {
        let host = numbers(80, rows * row_len);
        let input = stream.upload(&host).unwrap();
        check_rows(&stream, input.as_slice(), &host, (rows, row_len), Sum);
    }
    let host: Vec<Affine> = numbers(81, 300).into_iter().map(|x| Affine { scale: x | 1, shift: x >> 7 }).collect();
    let input = stream.upload(&host).unwrap();
    check_rows(&stream, input.as_slice(), &host, (20, 15), Compose);
    // Only the device knows where the last row ends.
    let (host, count) = (numbers(82, 100), DeviceValue::new(&stream, 77u64).unwrap());
    let (input, mut sums) = (stream.upload(&host).unwrap(), stream.uninit::<u32>(4).unwrap());
    reduce::rows(&stream, counted(&input, &count), 25, &mut sums, Max).unwrap();
    let largest = |part: &[u32]| part.iter().copied().max().unwrap_or(0);
    let expected = [0..25, 25..50, 50..75, 75..77].map(|row| largest(&host[row]));
    assert_eq!(sums.to_vec(&stream).unwrap(), expected);
}

/// Rows that are farther apart than they are long, that touch, and that overlap.
fn rows_of_a_part_of_a_matrix(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(83, 3 * TILE + 17);
    let input = stream.upload(&host).unwrap();
    for (start, row_len, stride) in [
        (0, 5, 8),
        (3, 5, 5),
        (1, 64, 100),
        (0, 1, 64),
        (2, TILE - 5, TILE + 3),
        (0, 7, 3),
        (5, host.len() - 5, 1),
        (0, 1, 1),
    ] {
        let part = input.slice(start..).unwrap();
        let rows: Vec<&[u32]> = host[start..].windows(row_len).step_by(stride).collect();
        let elements = rows.concat();
        check_rows(&stream, strided(part, row_len, stride), &elements, (rows.len(), row_len), Sum);
    }
    // Rows longer than the matrix: there are none. Other sizes, and a function of two parts.
    check_rows(&stream, strided(&input, host.len() + 1, 5), &[], (0, host.len() + 1), Sum);
    let bytes: Vec<u8> = host.iter().map(|&x| x as u8).collect();
    let longs: Vec<u64> = host.iter().map(|&x| u64::from(x) << 20 | 7).collect();
    let (on_bytes, on_longs) = (stream.upload(&bytes).unwrap(), stream.upload(&longs).unwrap());
    let of_bytes: Vec<u8> = bytes.chunks_exact(10).flat_map(|row| row[..6].to_vec()).collect();
    check_rows(&stream, strided(&on_bytes, 6, 10), &of_bytes, (of_bytes.len() / 6, 6), Max);
    let of_longs: Vec<u64> = longs.chunks_exact(10).flat_map(|row| row[..6].to_vec()).collect();
    let product = map!(|a: u8, b: u64| -> u64 { a as u64 * b });
    let products: Vec<u64> = of_bytes.iter().zip(&of_longs).map(|(&a, &b)| u64::from(a).wrapping_mul(b)).collect();
    let both = map2(strided(&on_bytes, 6, 10), strided(&on_longs, 6, 10), product);
    // The last rows of a slice may be shorter than the stride: here both have as many.
    check_rows(&stream, both, &products, (products.len() / 6, 6), Sum);
}

fn rows_of_wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[1u32, 2, 3, 4, 5]).unwrap();
    let mut output = stream.upload(&[9u32; 4]).unwrap();
    for row_len in [0, 1, 2, usize::MAX] {
        let error = reduce::rows(&stream, &input, row_len, &mut output, Sum).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
        let error = scan::row_inclusive(&stream, &input, row_len, &mut output, Sum).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    }
    let error = reduce::rows(&stream, strided(&input, 1, 0), 1, &mut output, Sum).unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 4]);
}
