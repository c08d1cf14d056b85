//! Elements by their rank, against a stable sort on the host.

use bytemuck::Pod;
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Address;
use gpu_conformance::{adversarial_streams, assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::operator::{map, predicate};
use gpu_primitives::order_statistics::{self, Position, Rows};
use gpu_primitives::sort::{RadixKey, ShortCode};
use gpu_primitives::source::{constant, counted, map};
use gpu_primitives::{Device, Error, Stream, select};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a tile.
const TILE: usize = 8 * 32 * 16;

fn main() -> ExitCode {
    run(cases![
        small_inputs,
        tile_edges,
        every_type,
        floats_by_total_order,
        own_keys,
        equal_keys_by_position,
        in_order,
        distant_clusters,
        one_bucket,
        many_ranks,
        fractions,
        keys_alone,
        misaligned_slices,
        sources,
        device_lengths,
        wrong_arguments,
        any_schedule,
        deterministic,
        in_a_graph,
        large,
        small_rows,
        rows_at_tile_edges,
        rows_of_every_type,
        rows_at_offsets,
        ranks_in_rows,
        rows_of_sources,
        wrong_rows,
        rows_in_a_graph,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// Ranks of all kinds, with repeats: the ends, the middle, and random ones.
fn ranks(count: usize, len: usize) -> Vec<usize> {
    let special = [0, len - 1, len / 2, len / 2, (len / 2 + 1).min(len - 1)];
    let random = random(count as u64 + 99).map(|x| (x % len as u64) as usize);
    special.into_iter().skip(usize::from(count == 1) * 2).chain(random).take(count).collect()
}

/// The positions of the elements, in order.
fn sorted<K: RadixKey>(host: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..host.len()).collect();
    order.sort_by_key(|&at| K::code(host[at]));
    order
}

/// Floats are compared by their bits.
fn bytes<T: Pod>(items: &[T]) -> Vec<u8> {
    items.iter().flat_map(|item| bytemuck::bytes_of(item).to_vec()).collect()
}

/// Names the first difference: these may be long.
fn assert_same<T: PartialEq + Debug>(found: &[T], expected: &[T], about: &str) {
    assert_eq!(found.len(), expected.len(), "{about}");
    if let Some(first) = (0..found.len()).find(|&at| found[at] != expected[at]) {
        panic!("{about}: element {first} is {:?} instead of {:?}", found[first], expected[first]);
    }
}

fn check_as<K: RadixKey<Code: ShortCode>, P: Position + Debug>(stream: &Stream, host: &[K], ranks: &[usize]) {
    let input = stream.upload(host).unwrap();
    let (mut keys, mut positions) =
        (stream.uninit::<K>(ranks.len()).unwrap(), stream.uninit::<P>(ranks.len()).unwrap());
    order_statistics::select_kth(stream, &input, ranks, (&mut keys, &mut positions)).unwrap();
    let order = sorted(host);
    let expected: Vec<P> = ranks.iter().map(|&rank| P::of(order[rank])).collect();
    let about = format!("{} ranks of {}", ranks.len(), host.len());
    assert_same(&positions.to_vec(stream).unwrap(), &expected, &about);
    let expected: Vec<K> = ranks.iter().map(|&rank| host[order[rank]]).collect();
    assert_same(&bytes(&keys.to_vec(stream).unwrap()), &bytes(&expected), &about);
}

/// Checks 1, 2 and 16 ranks.
fn check<K: RadixKey<Code: ShortCode>>(stream: &Stream, host: &[K]) {
    for count in [1, 2, 16] {
        check_as::<K, u32>(stream, host, &ranks(count, host.len()));
    }
}

fn small_inputs(device: &Device) {
    let stream = device.stream().unwrap();
    check_as::<u32, u32>(&stream, &[], &[]);
    for len in [1, 2, 3, 31, 33, 700] {
        check(&stream, &numbers(1, len));
        check_as::<u32, u32>(&stream, &numbers(2, len), &[]);
        check_as::<u32, u64>(&stream, &numbers(2, len), &ranks(33, len));
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in edge_sizes(TILE) {
        if len > 0 && (!is_checked(device) || len <= TILE + 1) {
            check(&stream, &numbers(3, len));
        }
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u128> = random(4)
        .zip(random(5))
        .take(if is_checked(device) { 700 } else { 9000 })
        .map(|(a, b)| (a as u128) << 64 | b as u128)
        .collect();
    macro_rules! check {
        ($($type:ty: $from:expr;)*) => { $(
            let host: Vec<$type> = bits.iter().map($from).collect();
            check_as::<$type, u32>(&stream, &host, &ranks(1, host.len()));
            check_as::<$type, u64>(&stream, &host, &ranks(20, host.len()));
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

fn floats_by_total_order(device: &Device) {
    let stream = device.stream().unwrap();
    let host = [0.0f32, -0.0, f32::NAN, -f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, f32::MIN_POSITIVE];
    let all: Vec<usize> = (0..host.len()).collect();
    check_as::<f32, u32>(&stream, &host, &all);
    let mut sorted = host;
    sorted.sort_by(f32::total_cmp);
    let (input, mut keys) = (stream.upload(&host).unwrap(), stream.uninit::<f32>(host.len()).unwrap());
    order_statistics::select_kth(&stream, &input, &all, &mut keys).unwrap();
    assert_eq!(bytes(&keys.to_vec(&stream).unwrap()), bytes(&sorted));
    let wide: Vec<f64> = host.iter().map(|&x| f64::from(x)).collect();
    check_as::<f64, u64>(&stream, &wide, &all);
}

fn own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<Address> =
        numbers(6, 900).into_iter().map(|x| Address::new(u64::from(x % 3), x >> 8 & 7, x >> 20)).collect();
    check(&stream, &host);
    check_as::<_, u64>(&stream, &host, &ranks(70, 900));
}

/// The length of inputs that are more than the temporary memory holds.
fn beyond_temporary(device: &Device) -> usize {
    if is_checked(device) { TILE + 100 } else { 5 * TILE + 3 }
}

fn equal_keys_by_position(device: &Device) {
    let stream = device.stream().unwrap();
    for distinct in [1, 2, 7] {
        let host: Vec<u32> =
            numbers(7, beyond_temporary(device)).into_iter().map(|x| x % distinct * 0x0101_0101).collect();
        check(&stream, &host);
    }
    check(&stream, &vec![-1.5f64; beyond_temporary(device)]);
    check(&stream, &vec![u128::MAX; 300]);
}

fn in_order(device: &Device) {
    let stream = device.stream().unwrap();
    let len = beyond_temporary(device);
    check(&stream, &(0..len as u32).collect::<Vec<_>>());
    check(&stream, &(0..len as u64).rev().collect::<Vec<_>>());
    check(&stream, &(0..len as u32).map(|x| x << 12).collect::<Vec<_>>());
}

fn distant_clusters(device: &Device) {
    let stream = device.stream().unwrap();
    let len = beyond_temporary(device);
    // Ranks on both sides of the gap, whose elements share no digit.
    let host: Vec<u64> = random(8).take(len).map(|x| if x & 1 == 0 { x % 1000 } else { u64::MAX - x % 1000 }).collect();
    check(&stream, &host);
    let low = host.iter().filter(|&&x| x < 1000).count();
    check_as::<u64, u32>(&stream, &host, &[low - 1, low, 0, len - 1]);
}

fn one_bucket(device: &Device) {
    let stream = device.stream().unwrap();
    let len = beyond_temporary(device);
    for shift in [0, 10, 21] {
        let host: Vec<u32> = numbers(9, len).into_iter().map(|x| 0xABCD_EF01 ^ (x % 64) << shift).collect();
        check(&stream, &host);
    }
    let host: Vec<u128> = random(10).take(len / 2).map(|x| 7 << 100 | u128::from(x % 5000) << 30).collect();
    check(&stream, &host);
}

/// Several searches, and the sort.
fn many_ranks(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 3 * TILE + 77 };
    let host = numbers(11, len);
    for count in [63, 64, 65, 256, 257, 1000] {
        check_as::<u32, u32>(&stream, &host, &ranks(count, len));
    }
    let host: Vec<i64> = random(12).take(len).map(|x| x as i64 % 100).collect();
    check_as::<i64, u64>(&stream, &host, &ranks(1000, len));
    let host: Vec<Address> =
        numbers(13, 300).into_iter().map(|x| Address::new(u64::from(x % 3), x % 5, x % 2)).collect();
    check_as::<_, u32>(&stream, &host, &(0..300).rev().collect::<Vec<_>>());
}

/// The rule of the documentation.
fn rank_of(fraction: f64, len: usize) -> usize {
    (fraction * (len - 1) as f64) as usize
}

fn fractions(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [1, 2, 3, 10, 11, 1000] {
        let host = numbers(14, len);
        let (input, order) = (stream.upload(&host).unwrap(), sorted(&host));
        let few = [0.0, 0.1, 0.25, 0.5, 0.7, 0.999, 1.0];
        // So many that the input is sorted.
        let many: Vec<f64> = (0..=300).map(|i| f64::from(i) / 300.0).collect();
        for fractions in [&few[..], &many] {
            let count = fractions.len();
            let (mut keys, mut positions) =
                (stream.uninit::<u32>(count).unwrap(), stream.uninit::<u64>(count).unwrap());
            order_statistics::quantiles(&stream, &input, fractions, (&mut keys, &mut positions)).unwrap();
            let expected: Vec<usize> = fractions.iter().map(|&fraction| order[rank_of(fraction, len)]).collect();
            let found: Vec<usize> = positions.to_vec(&stream).unwrap().into_iter().map(|at| at as usize).collect();
            assert_same(&found, &expected, &format!("{count} fractions of {len}"));
            assert_eq!(keys.to_vec(&stream).unwrap(), expected.iter().map(|&at| host[at]).collect::<Vec<_>>());
        }
        let median = order_statistics::median(&stream, &input).unwrap().get(&stream).unwrap();
        assert_eq!(median, host[order[(len - 1) / 2]], "the median of {len}");
    }
}

fn keys_alone(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<i16> = numbers(15, 2000).into_iter().map(|x| x as i16).collect();
    let (input, mut order) = (stream.upload(&host).unwrap(), host);
    order.sort_unstable();
    let ranks = ranks(9, 2000);
    let mut keys = stream.uninit::<i16>(9).unwrap();
    order_statistics::select_kth(&stream, &input, &ranks, &mut keys).unwrap();
    assert_eq!(keys.to_vec(&stream).unwrap(), ranks.iter().map(|&rank| order[rank]).collect::<Vec<_>>());
    let mut quartiles = stream.uninit::<i16>(3).unwrap();
    order_statistics::quantiles(&stream, &input, &[0.25, 0.5, 0.75], &mut quartiles).unwrap();
    assert_eq!(quartiles.to_vec(&stream).unwrap(), [order[499], order[999], order[1499]]);
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(16, TILE / 4 + 9);
    let input = stream.upload(&host).unwrap();
    for start in 1..4 {
        let (mut keys, mut positions) = (stream.zeroed::<u32>(20).unwrap(), stream.zeroed::<u32>(20).unwrap());
        let ranks = ranks(10, host.len() - start);
        let (to, at) = (keys.slice_mut(start..start + 10).unwrap(), positions.slice_mut(3..13).unwrap());
        let from = input.slice(start..).unwrap();
        order_statistics::select_kth(&stream, from, &ranks, (to, at)).unwrap();
        let order = sorted(&host[start..]);
        let found = positions.to_vec(&stream).unwrap();
        assert_eq!(found[3..13], ranks.iter().map(|&rank| order[rank] as u32).collect::<Vec<_>>());
        assert!(found[..3].iter().chain(&found[13..]).all(|&x| x == 0));
        let keys = keys.to_vec(&stream).unwrap();
        assert_eq!(keys[start..start + 10], ranks.iter().map(|&rank| host[start + order[rank]]).collect::<Vec<_>>());
        assert!(keys[..start].iter().chain(&keys[start + 10..]).all(|&x| x == 0));
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<i32> = numbers(17, 2000).into_iter().map(|x| x as i32 % 5000).collect();
    let input = stream.upload(&host).unwrap();
    let squares: Vec<i32> = host.iter().map(|x| x * x).collect();
    let order = sorted(&squares);
    // Some are searched for; for others, the squares are sorted.
    for count in [12, 300] {
        let ranks = ranks(count, 2000);
        let (mut keys, mut positions) = (stream.uninit::<i32>(count).unwrap(), stream.uninit::<u64>(count).unwrap());
        let squared = map(&input, map!(|x: i32| -> i32 { x * x }));
        order_statistics::select_kth(&stream, squared, &ranks, (&mut keys, &mut positions)).unwrap();
        let expected: Vec<usize> = ranks.iter().map(|&rank| order[rank]).collect();
        assert_eq!(positions.to_vec(&stream).unwrap(), expected.iter().map(|&at| at as u64).collect::<Vec<_>>());
        assert_eq!(keys.to_vec(&stream).unwrap(), expected.iter().map(|&at| squares[at]).collect::<Vec<_>>());
    }
    assert_eq!(order_statistics::median(&stream, constant(7u8, 1000)).unwrap().get(&stream).unwrap(), 7);
}

fn device_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(18, 2000);
    let input = stream.upload(&host).unwrap();
    for divisor in [2, 100, 5000] {
        let mut kept = stream.uninit::<u32>(2000).unwrap();
        let rest = u32::from(divisor == 5000) * u32::MAX;
        let keep = predicate!(divisor: u32 = divisor, rest: u32 = rest; |x: u32| x % divisor == rest);
        let count = select::select(&stream, &input, &mut kept, keep).unwrap();
        let passing: Vec<u32> = host.iter().copied().filter(|x| x % divisor == rest).collect();
        let (order, len) = (sorted(&passing), passing.len());

        // Ranks that exist, and ranks that do not; also more than are sorted if the host knows the length.
        for ranks in [vec![0, 3, 19, 500, 1999], (0..300).map(|i| i * 5).collect()] {
            let wanted = ranks.len();
            let (mut keys, mut positions) =
                (stream.zeroed::<u32>(wanted).unwrap(), stream.uninit::<u32>(wanted).unwrap());
            let source = counted(&kept, &count);
            order_statistics::select_kth(&stream, source, &ranks, (&mut keys, &mut positions)).unwrap();
            let expected: Vec<Option<usize>> = ranks.iter().map(|&rank| order.get(rank).copied()).collect();
            let expected_positions = expected.iter().map(|at| at.map_or(u32::NONE, |at| at as u32));
            assert_eq!(positions.to_vec(&stream).unwrap(), expected_positions.collect::<Vec<_>>(), "{len} elements");
            let expected_keys = expected.iter().map(|at| at.map_or(0, |at| passing[at]));
            assert_eq!(keys.to_vec(&stream).unwrap(), expected_keys.collect::<Vec<_>>(), "{len} elements");
        }
        let mut ends = stream.upload(&[9u32; 3]).unwrap();
        order_statistics::quantiles(&stream, counted(&kept, &count), &[0.0, 0.3, 1.0], &mut ends).unwrap();
        let expected =
            [0.0, 0.3, 1.0].map(|fraction| if len == 0 { 9 } else { passing[order[rank_of(fraction, len)]] });
        assert_eq!(ends.to_vec(&stream).unwrap(), expected, "{len} elements");
        let median = order_statistics::median(&stream, counted(&kept, &count)).unwrap().get(&stream).unwrap();
        assert_eq!(median, if len == 0 { 0 } else { passing[order[(len - 1) / 2]] });
    }
}

fn wrong_arguments(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2]).unwrap();
    let empty = stream.uninit::<u32>(0).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(2).unwrap(), stream.zeroed::<u32>(1).unwrap());
    let rank = order_statistics::select_kth(&stream, &input, &[2, 3], &mut keys).unwrap_err();
    assert_eq!(rank.to_string(), "a rank is 3, of 3 elements, but it must be less than the number of elements");
    let fewer = order_statistics::select_kth(&stream, &input, &[0, 1], (&mut keys, &mut positions));
    assert!(matches!(fewer, Err(Error::LengthMismatch { expected: 2, found: 1, .. })));
    let more = order_statistics::select_kth(&stream, &input, &[0], &mut keys);
    assert!(matches!(more, Err(Error::LengthMismatch { expected: 1, found: 2, .. })));
    for fraction in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let outside = order_statistics::quantiles(&stream, &input, &[0.5, fraction], &mut keys);
        assert!(matches!(outside, Err(Error::InvalidOption { .. })), "{fraction}");
    }
    assert!(matches!(
        order_statistics::quantiles(&stream, &empty, &[0.0, 1.0], &mut keys),
        Err(Error::InvalidOption { .. })
    ));
    assert!(matches!(order_statistics::median(&stream, &empty), Err(Error::InvalidOption { .. })));
    let long = constant(1u32, 1 << 40);
    let long = order_statistics::select_kth(&stream, long, &[5], (keys.slice_mut(..1).unwrap(), &mut positions));
    assert!(matches!(long, Err(Error::TooLong { .. })));
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![0; 2], vec![0]));
    order_statistics::quantiles(&stream, &empty, &[], keys.slice_mut(..0).unwrap()).unwrap();
}

fn any_schedule(device: &Device) {
    let host: Vec<u32> = numbers(19, TILE + 50).into_iter().map(|x| x % 1000).collect();
    for (_, stream) in adversarial_streams(device, 1).take(10) {
        check_as::<u32, u32>(&stream, &host, &ranks(5, host.len()));
    }
}

fn deterministic(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 20_000 };
    let host: Vec<f32> = random(20).take(len).map(|x| (x % 50) as f32).collect();
    let stream = device.stream().unwrap();
    let input = stream.upload(&host).unwrap();
    let ranks = ranks(16, len);
    assert_deterministic(device, || {
        let (mut keys, mut positions) = (stream.uninit::<f32>(16).unwrap(), stream.uninit::<u32>(16).unwrap());
        order_statistics::select_kth(&stream, &input, &ranks, (&mut keys, &mut positions)).unwrap();
        [bytes(&keys.to_vec(&stream).unwrap()), bytes(&positions.to_vec(&stream).unwrap())].concat()
    });
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(21, 3000);
    let (input, order) = (stream.upload(&host).unwrap(), sorted(&host));
    let mut keys = stream.uninit::<u32>(3).unwrap();
    let capture =
        stream.capture(|stream| order_statistics::quantiles(stream, &input, &[0.0, 0.5, 1.0], &mut keys)).unwrap();
    let (mut graph, ()) = capture;
    for _ in 0..2 {
        // SAFETY: the input and the output are still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    assert_eq!(keys.to_vec(&stream).unwrap(), [0, 1499, 2999].map(|rank| host[order[rank]]));
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 22) + 321 } else { 40_000 };
    if !is_checked(device) {
        check(&stream, &numbers(22, len));
        check(&stream, &vec![5u64; len]);
        check(&stream, &(0..len as u32).collect::<Vec<_>>());
        check(&stream, &numbers(23, len).into_iter().map(|x| x as f32 / u32::MAX as f32).collect::<Vec<_>>());
        check_as::<u32, u32>(&stream, &numbers(24, len), &ranks(1000, len));
    }
}

/// Checks quantiles of rows: `starts` has the starts of rows, and the end of the last one.
fn check_rows<K: RadixKey<Code: ShortCode>>(
    stream: &Stream,
    host: &[K],
    rows: Rows<'_>,
    starts: &[usize],
    fractions: &[f64],
) {
    let input = stream.upload(host).unwrap();
    let (per_row, count) = (fractions.len(), starts.len() - 1);
    // Keys that are not written stay.
    let old: Vec<K> = vec![K::zeroed(); count * per_row];
    let (mut keys, mut positions) = (stream.upload(&old).unwrap(), stream.uninit::<u32>(count * per_row).unwrap());
    order_statistics::segmented_quantiles(stream, &input, rows, fractions, (&mut keys, &mut positions)).unwrap();
    let (mut expected, mut expected_keys) = (Vec::new(), Vec::new());
    for row in starts.windows(2) {
        let start = row[0].min(host.len());
        let row = &host[start..row[1].min(host.len()).max(start)];
        let order = sorted(row);
        for &fraction in fractions {
            let at = (!row.is_empty()).then(|| order[rank_of(fraction, row.len())]);
            expected.push(at.map_or(u32::NONE, |at| at as u32));
            expected_keys.push(at.map_or(K::zeroed(), |at| row[at]));
        }
    }
    let about = format!("{count} rows of {} elements", host.len());
    assert_same(&positions.to_vec(stream).unwrap(), &expected, &about);
    assert_same(&bytes(&keys.to_vec(stream).unwrap()), &bytes(&expected_keys), &about);
}

fn check_equal_rows<K: RadixKey<Code: ShortCode>>(stream: &Stream, host: &[K], row: usize, fractions: &[f64]) {
    let starts: Vec<usize> = (0..=host.len() / row).map(|i| i * row).collect();
    check_rows(stream, host, Rows::of_len(row), &starts, fractions);
}

fn small_rows(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [1, 2, 3, 31, 100] {
        for count in [0, 1, 7] {
            check_equal_rows(&stream, &numbers(25, row * count), row, &[0.5]);
            check_equal_rows(&stream, &numbers(26, row * count), row, &[1.0, 0.0, 0.3]);
        }
    }
}

fn rows_at_tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [255, 256, 257, 1023, 1024, 1025, 2049, 4500] {
        check_equal_rows(&stream, &numbers(27, 2 * row), row, &[0.0, 0.5, 1.0]);
        // Equal ones are found by their positions.
        check_equal_rows(&stream, &vec![1u32; 2 * row], row, &[0.0, 0.5, 1.0]);
        let few: Vec<u32> = numbers(28, 2 * row).into_iter().map(|x| x % 3).collect();
        check_equal_rows(&stream, &few, row, &[0.1, 0.9]);
    }
}

fn rows_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(29).take(600).collect();
    macro_rules! check {
        ($($type:ty: $from:expr;)*) => { $(
            check_equal_rows::<$type>(&stream, &bits.iter().map($from).collect::<Vec<_>>(), 150, &[0.25, 0.5]);
        )* };
    }
    check! {
        u8: |&x| x as u8;
        i16: |&x| x as i16;
        i32: |&x| x as i32;
        f32: |&x| f32::from_bits(x as u32);
        f64: |&x| f64::from_bits(x);
        i64: |&x| x as i64;
        i128: |&x| i128::from(x as i64) << 60;
        half::f16: |&x| half::f16::from_bits(x as u16);
        Address: |&x| Address::new(x % 3, x as u32 >> 8 & 7, x as u32 >> 20);
    }
}

fn rows_at_offsets(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(30, 3000);
    let offsets = [0u32, 0, 5, 5, 700, 701, 2900, 3000, 3000];
    let starts = offsets.map(|at| at as usize);
    let on_device = stream.upload(&offsets).unwrap();
    check_rows(&stream, &host, Rows::at(&on_device), &starts, &[0.5]);
    check_rows(
        &stream,
        &host,
        Rows::at(&on_device),
        &starts,
        &(0..=10).map(|i| f64::from(i) / 10.0).collect::<Vec<_>>(),
    );
    // Offsets beyond the input count as its end, and a row that ends before its start is empty.
    let offsets = [10u32, 4000, 20, 30, u32::MAX];
    let on_device = stream.upload(&offsets).unwrap();
    check_rows(&stream, &host, Rows::at(&on_device), &offsets.map(|at| at as usize), &[0.0, 0.5]);
}

fn ranks_in_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<f64> = random(31).take(400).map(|x| (x % 40) as f64 - 20.0).collect();
    let (input, row) = (stream.upload(&host).unwrap(), 100);
    for per_row in [1, 3] {
        // Some are beyond the row.
        let ranks: Vec<u32> = random(32).take(4 * per_row).map(|x| (x % 130) as u32).collect();
        let on_device = stream.upload(&ranks).unwrap();
        let (mut keys, mut positions) =
            (stream.zeroed::<f64>(ranks.len()).unwrap(), stream.uninit::<u32>(ranks.len()).unwrap());
        let rows = Rows::of_len(row);
        order_statistics::segmented_select_kth(&stream, &input, rows, &on_device, (&mut keys, &mut positions)).unwrap();
        let (positions, keys) = (positions.to_vec(&stream).unwrap(), keys.to_vec(&stream).unwrap());
        for (at, &rank) in ranks.iter().enumerate() {
            let row = &host[at / per_row * row..][..row];
            let found = sorted(row).get(rank as usize).copied();
            let expected = (found.map_or(u32::NONE, |at| at as u32), found.map_or(0.0, |at| row[at]));
            assert_eq!((positions[at], keys[at]), expected, "rank {rank}, {per_row} per row");
        }
    }
}

fn rows_of_sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<i32> = numbers(33, 600).into_iter().map(|x| x as i32 % 1000).collect();
    let input = stream.upload(&host).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<i32>(6).unwrap(), stream.uninit::<u32>(6).unwrap());
    let negated = map(&input, map!(|x: i32| -> i32 { -x }));
    order_statistics::segmented_median(&stream, negated, Rows::of_len(100), (&mut keys, &mut positions)).unwrap();
    let (keys, positions) = (keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap());
    for (at, row) in host.chunks(100).enumerate() {
        let row: Vec<i32> = row.iter().map(|x| -x).collect();
        let median = sorted(&row)[49];
        assert_eq!((keys[at], positions[at] as usize), (row[median], median), "row {at}");
    }
}

fn wrong_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2, 6, 5, 4]).unwrap();
    let ranks = stream.upload(&[0u32, 1, 2]).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(3).unwrap(), stream.zeroed::<u32>(3).unwrap());
    let rows = Rows::of_len(3);
    let uneven = order_statistics::segmented_select_kth(&stream, &input, rows, &ranks, (&mut keys, &mut positions));
    assert!(matches!(uneven, Err(Error::LengthMismatch { expected: 2, found: 3, .. })), "{uneven:?}");
    let three = order_statistics::segmented_median(&stream, &input, rows, (&mut keys, &mut positions));
    assert!(matches!(three, Err(Error::LengthMismatch { expected: 2, found: 3, .. })));
    let parts = order_statistics::segmented_median(&stream, &input, Rows::of_len(4), (&mut keys, &mut positions));
    assert!(matches!(parts, Err(Error::LengthMismatch { .. })));
    let fraction = order_statistics::segmented_quantiles(&stream, &input, rows, &[2.0], (&mut keys, &mut positions));
    assert!(matches!(fraction, Err(Error::InvalidOption { .. })));
    let none = stream.uninit::<u32>(0).unwrap();
    let no_offsets = order_statistics::segmented_median(&stream, &input, Rows::at(&none), (&mut keys, &mut positions));
    assert!(matches!(no_offsets, Err(Error::LengthMismatch { .. })));
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![0; 3], vec![0; 3]));
}

fn rows_in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2, 6, 5, 4]).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<u32>(2).unwrap(), stream.uninit::<u32>(2).unwrap());
    let record = |stream: &Stream| {
        order_statistics::segmented_median(stream, &input, Rows::of_len(3), (&mut keys, &mut positions))
    };
    let (mut graph, ()) = stream.capture(record).unwrap();
    for _ in 0..2 {
        // SAFETY: the input and the outputs are still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![2, 5], vec![2, 1]));
}
