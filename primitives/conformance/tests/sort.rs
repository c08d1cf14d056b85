//! The radix sort.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Address;
use gpu_conformance::{adversarial_streams, cases, is_checked, is_gpu, run};
use gpu_primitives::operator::{Record, map, sort_by};
use gpu_primitives::sort::{self, Options, RadixKey, Side, U256};
use gpu_primitives::source::{at, counted, counting, map};
use gpu_primitives::{CpuOptions, Device, DeviceKind, DeviceValue, Error, Stream};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The number of elements that one block sorts; the most elements that are sorted in short chunks, of half that length; the
/// most that are sorted in chunks and put together, with one digit and with two or more; the tile size of the distribution
/// for more elements, and the length from which tiles are larger.
const BLOCK: usize = 4096;
const SHORT_CHUNKS: usize = 16 * BLOCK / 2;
const CHUNKS_OF_ONE_DIGIT: usize = 8 * BLOCK;
const CHUNKS: usize = 16 * BLOCK;
const SMALL_TILE: usize = 2048;
const LARGE: usize = 1 << 19;

fn main() -> ExitCode {
    run(cases![
        small_pairs_of_u32,
        chunks,
        small_tiles,
        keys_of_every_type,
        values_of_every_size,
        distributions,
        floats_in_total_order,
        descending_is_stable,
        bit_ranges,
        argsort,
        in_place,
        double_buffered,
        own_keys,
        keys_of_256_bits,
        misaligned_slices,
        random_lengths_and_values,
        large_tiles,
        computed_elements,
        computed_keys_of_other_types,
        bad_input,
        adversarial_schedules,
    ])
}

/// Sorts pairs of key and index, and compares with a stable sort.
fn check<K: RadixKey + Debug>(stream: &Stream, keys: &[K], options: &Options, compare: impl Fn(&K, &K) -> Ordering) {
    let mut expected: Vec<(K, u32)> = keys.iter().copied().zip(0..).collect();
    expected.sort_by(|a, b| compare(&a.0, &b.0));
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (keys_in, values_in) = (stream.upload(keys).unwrap(), stream.upload(&values).unwrap());
    let mut keys_out = stream.uninit::<K>(keys.len()).unwrap();
    let mut values_out = stream.uninit::<u32>(keys.len()).unwrap();
    sort::pairs(stream, (&keys_in, &values_in), (&mut keys_out, &mut values_out), options.clone()).unwrap();
    let (keys_found, values_found) = (keys_out.to_vec(stream).unwrap(), values_out.to_vec(stream).unwrap());
    for (i, (key, value)) in expected.iter().enumerate() {
        let found = bytemuck::bytes_of(&keys_found[i]);
        assert_eq!((found, values_found[i]), (bytemuck::bytes_of(key), *value), "position {i} of {}", keys.len());
    }
    sort::keys(stream, &keys_in, &mut keys_out, options.clone()).unwrap();
    let alone = keys_out.to_vec(stream).unwrap();
    let same = expected.iter().zip(&alone).all(|(e, f)| bytemuck::bytes_of(&e.0) == bytemuck::bytes_of(f));
    assert!(same, "{} keys alone", keys.len());
}

fn small_pairs_of_u32(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(BLOCK) {
        let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &keys, &Options::new(), u32::cmp);
    }
}

/// The maximum number of chunks, with windows of every width: one chunk has its keys in two clusters far apart, another
/// has all keys between them. Also a last chunk that is as long as a narrow window, or a little shorter or longer.
fn chunks(device: &Device) {
    let stream = device.stream().unwrap();
    let low_digit = |a: &u32, b: &u32| (a & 0xFF).cmp(&(b & 0xFF));
    for n in [CHUNKS_OF_ONE_DIGIT - 1, CHUNKS_OF_ONE_DIGIT] {
        let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &keys, &Options::new().bits(0..8), low_digit);
    }
    for n in [62, 63, 64].map(|last| 2 * BLOCK + last) {
        let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &keys, &Options::new(), u32::cmp);
    }
    if !is_checked(device) {
        for n in [SHORT_CHUNKS - 1, SHORT_CHUNKS, SHORT_CHUNKS + 1, SHORT_CHUNKS + 63] {
            let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
            check(&stream, &keys, &Options::new(), u32::cmp);
            check(&stream, &keys, &Options::new().bits(1..32), |a, b| (a >> 1).cmp(&(b >> 1)));
        }
    }
    let n = if is_checked(device) { 3 * BLOCK + 33 } else { CHUNKS };
    let mut keys: Vec<u32> = random(14).take(n).map(|x| x as u32).collect();
    for (i, key) in keys[..BLOCK].iter_mut().enumerate() {
        *key = if i % 3 == 0 { *key % 8 } else { u32::MAX - *key % 8 };
    }
    keys[BLOCK..2 * BLOCK].iter_mut().for_each(|key| *key = 1_000_000 + *key % 100);
    check(&stream, &keys, &Options::new(), u32::cmp);
    check(&stream, &keys, &Options::new().descending(), |a, b| b.cmp(a));
    let floats: Vec<f32> = keys.iter().map(|&key| f32::from_bits(key)).collect();
    check(&stream, &floats, &Options::new().descending(), |a, b| b.total_cmp(a));
}

/// Distribution digit by digit: one digit, and, where there is time, an even and an odd number of several digits.
fn small_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let past = CHUNKS_OF_ONE_DIGIT;
    for n in [past + 1, past + SMALL_TILE - 1, past + SMALL_TILE, past + SMALL_TILE + 1] {
        let keys: Vec<u32> = random(n as u64).take(n).map(|x| x as u32).collect();
        check(&stream, &keys, &Options::new().bits(0..8), |a, b| (a & 0xFF).cmp(&(b & 0xFF)));
    }
    // The first pass over keys alone keeps no order.
    let mut keys: Vec<u32> = random(16).take(CHUNKS + SMALL_TILE + 1).map(|x| x as u32 % 5000).collect();
    let mut sorted = stream.upload(&keys).unwrap();
    sort::keys_in_place(&stream, &mut sorted, Options::new()).unwrap();
    keys.sort_unstable();
    assert!(sorted.to_vec(&stream).unwrap() == keys, "keys alone");
    if is_checked(device) {
        return;
    }
    let numbers = || random(15).take(CHUNKS + 1);
    check(&stream, &numbers().map(|x| x as i32).collect::<Vec<_>>(), &Options::new(), i32::cmp);
    check(&stream, &numbers().map(f64::from_bits).collect::<Vec<_>>(), &Options::new().descending(), |a, b| {
        b.total_cmp(a)
    });
    for bits in [16, 24] {
        let part = |key: &u64| key & (u64::MAX >> (64 - bits));
        let host: Vec<u64> = numbers().collect();
        check(&stream, &host, &Options::new().bits(0..bits), |a, b| part(a).cmp(&part(b)));
        let mut expected = host.clone();
        expected.sort_by_key(part);
        let (mut keys, mut other) = (stream.upload(&host).unwrap(), stream.uninit::<u64>(host.len()).unwrap());
        sort::keys_in_place(&stream, &mut keys, Options::new().bits(0..bits)).unwrap();
        assert_eq!(keys.to_vec(&stream).unwrap(), expected);
        let mut keys = stream.upload(&host).unwrap();
        let side = sort::keys_double_buffered(&stream, &mut keys, &mut other, Options::new().bits(0..bits)).unwrap();
        let found = if side == Side::First { &keys } else { &other }.to_vec(&stream).unwrap();
        assert_eq!(found, expected);
    }
}

fn keys_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [100, BLOCK + 700] {
        let numbers = || random(n as u64).take(n);
        check(&stream, &numbers().map(|x| x as i32).collect::<Vec<_>>(), &Options::new(), i32::cmp);
        check(&stream, &numbers().collect::<Vec<u64>>(), &Options::new(), u64::cmp);
        check(&stream, &numbers().map(|x| x as i64).collect::<Vec<_>>(), &Options::new(), i64::cmp);
        let singles: Vec<f32> = numbers().map(|x| f32::from_bits(x as u32)).collect();
        check(&stream, &singles, &Options::new(), f32::total_cmp);
        let doubles: Vec<f64> = numbers().map(f64::from_bits).collect();
        check(&stream, &doubles, &Options::new(), f64::total_cmp);
    }
}

/// Values of 4, 8 and 16 bytes, of types without kernels of their own.
fn values_of_every_size(device: &Device) {
    fn with<V: Pod + Debug + PartialEq>(stream: &Stream, n: usize, value: impl Fn(usize) -> V) {
        let keys: Vec<u64> = random(1).take(n).map(|x| x % 1000).collect();
        let values: Vec<V> = (0..n).map(value).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| keys[i]);
        let mut sorted = stream.upload(&keys).unwrap();
        let mut along = stream.upload(&values).unwrap();
        sort::pairs_in_place(stream, (&mut sorted, &mut along), Options::new()).unwrap();
        let expected: Vec<V> = order.iter().map(|&i| values[i]).collect();
        assert!(along.to_vec(stream).unwrap() == expected, "values of {} bytes", size_of::<V>());
        let narrow: Vec<u32> = keys.iter().map(|&key| key as u32).collect();
        let mut sorted = stream.upload(&narrow).unwrap();
        let mut along = stream.upload(&values).unwrap();
        sort::pairs_in_place(stream, (&mut sorted, &mut along), Options::new()).unwrap();
        assert!(along.to_vec(stream).unwrap() == expected, "values of {} bytes", size_of::<V>());
    }
    let stream = device.stream().unwrap();
    for n in [1500, BLOCK + 333] {
        with(&stream, n, |i| i as f32);
        with(&stream, n, |i| i as f64);
        with(&stream, n, |i| [i as u32, 7]);
        with(&stream, n, |i| [i as u32, 1, 2, 3]);
        with(&stream, n, |i| i as u128);
    }
}

fn distributions(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 3 * SMALL_TILE + 57;
    let numbers = || random(2).take(n);
    let cases: [Vec<u32>; 6] = [
        vec![0xABCD_EF01; n],
        (0..n as u32).collect(),
        (0..n as u32).rev().collect(),
        numbers().map(|x| (x % 3) as u32).collect(),
        // Zipf: the frequency of key k is about 1 / k.
        numbers().map(|x| ((n as f64).powf((x >> 11) as f64 / (1u64 << 53) as f64)) as u32).collect(),
        numbers().map(|x| (x as u32) & 0xFF00_0000).collect(),
    ];
    for keys in cases {
        check(&stream, &keys, &Options::new(), u32::cmp);
    }
}

fn floats_in_total_order(device: &Device) {
    let stream = device.stream().unwrap();
    let keys =
        [f32::NAN, 0.0, -0.0, f32::NEG_INFINITY, -f32::NAN, f32::INFINITY, 1.0, -1.0, f32::MIN_POSITIVE, -0.0, 0.0];
    check(&stream, &keys, &Options::new(), f32::total_cmp);
    check(&stream, &keys, &Options::new().descending(), |a, b| b.total_cmp(a));
}

fn descending_is_stable(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1000, BLOCK + 1000] {
        let keys: Vec<i64> = random(3).take(n).map(|x| x as i64 % 50).collect();
        check(&stream, &keys, &Options::new().descending(), |a, b| b.cmp(a));
    }
}

fn bit_ranges(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [500, BLOCK + 500] {
        let keys: Vec<u32> = random(4).take(n).map(|x| x as u32).collect();
        for (start, end) in [(0, 32), (0, 8), (5, 6), (4, 17), (24, 32), (0, 24), (31, 32), (7, 7)] {
            let part = |x: &u32| (u64::from(*x) >> start) & ((1 << (end - start)) - 1);
            check(&stream, &keys, &Options::new().bits(start..end), |a, b| part(a).cmp(&part(b)));
            let down = Options::new().bits(start..end).descending();
            check(&stream, &keys, &down, |a, b| part(b).cmp(&part(a)));
        }
    }
}

fn argsort(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 1, 777, BLOCK + 77] {
        let host: Vec<i32> = random(5).take(n).map(|x| x as i32 % 100).collect();
        let keys = stream.upload(&host).unwrap();
        let order = sort::argsort(&stream, &keys, Options::new()).unwrap().to_vec(&stream).unwrap();
        let mut expected: Vec<u32> = (0..n as u32).collect();
        expected.sort_by_key(|&i| host[i as usize]);
        assert_eq!(order, expected);
        assert_eq!(keys.to_vec(&stream).unwrap(), host);
    }
}

fn in_place(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 1, 100, BLOCK + 100] {
        let host: Vec<u32> = random(6).take(n).map(|x| x as u32).collect();
        // Even and odd numbers of passes.
        for bits in [32, 24] {
            let part = |x: u32| u64::from(x) & ((1 << bits) - 1);
            let mut expected = host.clone();
            expected.sort_by_key(|&x| part(x));
            let mut keys = stream.upload(&host).unwrap();
            sort::keys_in_place(&stream, &mut keys, Options::new().bits(0..bits)).unwrap();
            assert_eq!(keys.to_vec(&stream).unwrap(), expected);
        }
    }
}

fn double_buffered(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 50, BLOCK + 50] {
        let host: Vec<u64> = random(7).take(n).collect();
        for bits in [64, 56] {
            let mut expected: Vec<(u64, u32)> = host.iter().copied().zip(0..).collect();
            expected.sort_by_key(|&(key, _)| key & (u64::MAX >> (64 - bits)));
            let options = Options::new().bits(0..bits);
            let (mut a, mut b) = (stream.upload(&host).unwrap(), stream.uninit::<u64>(n).unwrap());
            let side = sort::keys_double_buffered(&stream, &mut a, &mut b, options.clone()).unwrap();
            let found = if side == Side::First { &a } else { &b }.to_vec(&stream).unwrap();
            assert!(found.iter().eq(expected.iter().map(|(key, _)| key)));

            let mut a = stream.upload(&host).unwrap();
            let mut values = stream.upload(&(0..n as u32).collect::<Vec<_>>()).unwrap();
            let mut other = stream.uninit::<u32>(n).unwrap();
            let side =
                sort::pairs_double_buffered(&stream, (&mut a, &mut values), (&mut b, &mut other), options).unwrap();
            let found = if side == Side::First { &values } else { &other }.to_vec(&stream).unwrap();
            assert!(found.iter().eq(expected.iter().map(|(_, value)| value)));
        }
    }
}

/// A 16-byte key with its own order, defined outside the crate.
fn own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [300, BLOCK + 300] {
        let numbers: Vec<u64> = random(8).take(4 * n).collect();
        let keys: Vec<Address> =
            numbers.chunks(4).map(|x| Address::new(x[0] % 7, (x[1] % 5) as u32, x[2] as u32)).collect();
        check(&stream, &keys, &Options::new(), Address::compare);
    }
}

/// A key of 25 bytes, whose code has 200 bits.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Pod, Zeroable, Record, RadixKey)]
struct Document {
    owner: [u8; 8],
    page: i8,
    id: u128,
}

fn keys_of_256_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let lengths: &[usize] = if is_checked(device) { &[0, 1, 33, 700] } else { &[0, 1, 700, 5000] };
    for &n in lengths {
        let document = |x: u64| {
            let id = u128::from(x) << (x % 60);
            Document { owner: ((x >> 20) % 3).to_be_bytes(), page: (x >> 40) as i8 % 3, id }
        };
        let keys: Vec<Document> = random(n as u64).take(n).map(document).collect();
        let in_order = |a: &Document, b: &Document| a.partial_cmp(b).unwrap();
        check(&stream, &keys, &Options::new(), in_order);
        check(&stream, &keys, &Options::new().descending(), |a, b| in_order(b, a));
        // The lower bits of the number, and all that is above it.
        check(&stream, &keys, &Options::new().bits(0..16), |a, b| (a.id as u16).cmp(&(b.id as u16)));
        let upper = |key: &Document| (key.owner, key.page);
        check(&stream, &keys, &Options::new().bits(128..200), |a, b| upper(a).cmp(&upper(b)));
        let numbers: Vec<U256> = random(9).take(n).map(|x| U256 { high: x as u128 % 5, low: x as u128 }).collect();
        check(&stream, &numbers, &Options::new(), U256::cmp);
    }
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = random(9).take(BLOCK + 500).map(|x| x as u32).collect();
    let input = stream.upload(&host).unwrap();
    for (from, to, n) in [(1, 3, 1000), (3, 0, BLOCK + 400)] {
        let mut output = stream.upload(&vec![5u32; host.len()]).unwrap();
        let source = input.slice(from..from + n).unwrap();
        sort::keys(&stream, source, output.slice_mut(to..to + n).unwrap(), Options::new()).unwrap();
        let mut expected = vec![5; host.len()];
        expected[to..to + n].copy_from_slice(&host[from..from + n]);
        expected[to..to + n].sort_unstable();
        assert_eq!(output.to_vec(&stream).unwrap(), expected);
    }
}

fn random_lengths_and_values(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (6, 6000) } else { (40, 30_000) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&vec(any::<u32>(), 0..longest), |keys| {
            check(&stream, &keys, &Options::new(), u32::cmp);
            Ok(())
        })
        .unwrap();
}

/// Tiles of every size, for keys and values of 4, 8 and 16 bytes. In checked mode, there is time only for one digit of
/// 32-bit keys.
fn large_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let n = if is_gpu(device) { (1 << 24) + 12_345 } else { LARGE + 12_345 };
    let digit = Options::new().bits(0..8);
    let keys: Vec<u32> = random(11).take(n).map(|x| x as u32).collect();
    if is_checked(device) {
        return check(&stream, &keys[..LARGE], &digit, |a, b| (a & 0xFF).cmp(&(b & 0xFF)));
    }
    check(&stream, &keys, &Options::new(), u32::cmp);
    let keys: Vec<u64> = random(12).take(n).collect();
    check(&stream, &keys, &Options::new().bits(0..24), |a, b| (a & 0xFF_FFFF).cmp(&(b & 0xFF_FFFF)));
    let keys: Vec<Address> = keys.iter().map(|&x| Address::new(x, x as u32, (x >> 32) as u32)).collect();
    // The lowest digit is that of the number, which is the last field.
    check(&stream, &keys, &digit, |a, b| bytemuck::bytes_of(a)[12].cmp(&bytemuck::bytes_of(b)[12]));
}

/// Keys and values that are computed, each alone and both, also as many as the device says. What lies beyond stays as it was.
fn computed_elements(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lengths = vec![0, 1, 777, BLOCK + 77];
    if !is_checked(device) {
        lengths.push(CHUNKS + 1);
    }
    for n in lengths {
        let host: Vec<u32> = random(17 + n as u64).take(n).map(|x| x as u32 % 1000).collect();
        let input = stream.upload(&host).unwrap();
        let keys = || map(&input, map!(|x: u32| -> u32 { x.wrapping_mul(747_796_405) }));
        let values = || counting(5u32, n);
        // An even and an odd number of passes, and none.
        for bits in [0..32, 3..24, 7..7] {
            let options = Options::new().bits(bits.clone());
            let part = |key: u32| (u64::from(key) >> bits.start) & ((1 << bits.len()) - 1);
            let mut pairs: Vec<(u32, u32)> = host.iter().map(|x| x.wrapping_mul(747_796_405)).zip(5..).collect();
            let (plain_keys, plain_values): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
            let (plain_keys, plain_values) =
                (stream.upload(&plain_keys).unwrap(), stream.upload(&plain_values).unwrap());
            let there = n - n / 3;
            let count = DeviceValue::new(&stream, there as u64).unwrap();
            let mut first = pairs[..there].to_vec();
            pairs.sort_by_key(|pair| part(pair.0));
            first.sort_by_key(|pair| part(pair.0));

            let mut to = (stream.upload(&vec![9u32; n]).unwrap(), stream.upload(&vec![9u32; n]).unwrap());
            let expect = |expected: &[(u32, u32)], to: &mut (_, _), what: &str| {
                let (keys, values): &mut (gpu_primitives::DeviceVec<u32>, gpu_primitives::DeviceVec<u32>) = to;
                let found = keys.to_vec(&stream).unwrap().into_iter().zip(values.to_vec(&stream).unwrap());
                let rest = (expected.len()..n).map(|_| (9, 9));
                assert!(found.eq(expected.iter().copied().chain(rest)), "{what}: {n} elements, bits {bits:?}");
                keys.copy_from_host(&stream, &vec![9; n]).unwrap();
                values.copy_from_host(&stream, &vec![9; n]).unwrap();
            };
            sort::pairs(&stream, (keys(), values()), (&mut to.0, &mut to.1), options.clone()).unwrap();
            expect(&pairs, &mut to, "both");
            sort::pairs(&stream, (&plain_keys, values()), (&mut to.0, &mut to.1), options.clone()).unwrap();
            expect(&pairs, &mut to, "values");
            sort::pairs(&stream, (keys(), &plain_values), (&mut to.0, &mut to.1), options.clone()).unwrap();
            expect(&pairs, &mut to, "keys");
            let from = (counted(keys(), &count), values());
            sort::pairs(&stream, from, (&mut to.0, &mut to.1), options.clone()).unwrap();
            expect(&first, &mut to, "counted keys");
            let from = (&plain_keys, counted(values(), &count));
            sort::pairs(&stream, from, (&mut to.0, &mut to.1), options.clone()).unwrap();
            expect(&first, &mut to, "counted values");

            let mut alone = stream.uninit::<u32>(n).unwrap();
            sort::keys(&stream, keys(), &mut alone, options.clone()).unwrap();
            assert!(alone.to_vec(&stream).unwrap().into_iter().eq(pairs.iter().map(|pair| pair.0)), "{n} keys");
            let order = sort::argsort(&stream, keys(), options.clone()).unwrap().to_vec(&stream).unwrap();
            assert!(order.iter().eq(pairs.iter().map(|pair| pair.1 - 5).collect::<Vec<_>>().iter()), "order of {n}");
            let ranks = sort::rank(&stream, keys(), options).unwrap().to_vec(&stream).unwrap();
            assert!(order.iter().zip(0..).all(|(&i, rank)| ranks[i as usize] == rank), "ranks of {n}");
        }
    }
}

/// Computed keys that are sorted by a code or a number, or copied to another layout, with values of odd sizes.
fn computed_keys_of_other_types(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [0, 300, BLOCK + 300] {
        let numbers: Vec<u64> = random(18).take(n).collect();
        let all: Vec<Address> = numbers.iter().map(|&x| Address::new(x % 7, (x >> 8) as u32 % 5, x as u32)).collect();
        let rows: Vec<u32> = (0..n as u32).rev().collect();
        let (addresses, rows) = (stream.upload(&all).unwrap(), stream.upload(&rows).unwrap());
        let tags: Vec<[u8; 50]> = (0..n).map(|i| [i as u8; 50]).collect();
        let tags_in = stream.upload(&tags).unwrap();
        let (mut keys, mut along) = (stream.uninit::<Address>(n).unwrap(), stream.uninit::<[u8; 50]>(n).unwrap());
        sort::pairs(&stream, (at(&addresses, &rows), &tags_in), (&mut keys, &mut along), Options::new()).unwrap();
        let mut expected: Vec<(Address, [u8; 50])> = all.iter().rev().copied().zip(tags).collect();
        expected.sort_by(|a, b| a.0.compare(&b.0));
        let found = keys.to_vec(&stream).unwrap().into_iter().zip(along.to_vec(&stream).unwrap());
        for (found, expected) in found.zip(&expected) {
            assert_eq!(bytemuck::bytes_of(&found.0), bytemuck::bytes_of(&expected.0));
            assert_eq!(found.1, expected.1);
        }

        let input = stream.upload(&numbers).unwrap();
        let bytes = map(&input, map!(|x: u64| -> i8 { (x >> 9) as i8 }));
        let mut sorted = stream.uninit::<i8>(n).unwrap();
        sort::keys(&stream, bytes, &mut sorted, Options::new().descending()).unwrap();
        let mut expected: Vec<i8> = numbers.iter().map(|&x| (x >> 9) as i8).collect();
        expected.sort_by(|a, b| b.cmp(a));
        assert_eq!(sorted.to_vec(&stream).unwrap(), expected);

        let halved = || map(&input, map!(|x: u64| -> u64 { x >> 40 }));
        let by = sort_by!(|x: u64| -> u32 { x as u32 & 0xFFF });
        let (mut by_keys, mut places) = (stream.uninit::<u64>(n).unwrap(), stream.uninit::<u32>(n).unwrap());
        let mut expected: Vec<(u64, u32)> = numbers.iter().map(|x| x >> 40).zip(0..).collect();
        expected.sort_by_key(|pair| pair.0 & 0xFFF);
        sort::keys_by(&stream, halved(), &mut by_keys, by, Options::new()).unwrap();
        assert!(by_keys.to_vec(&stream).unwrap().into_iter().eq(expected.iter().map(|pair| pair.0)));
        let to = (&mut by_keys, &mut places);
        sort::pairs_by(&stream, (halved(), counting(0u32, n)), to, by, Options::new()).unwrap();
        let found = by_keys.to_vec(&stream).unwrap().into_iter().zip(places.to_vec(&stream).unwrap());
        assert!(found.eq(expected));
    }
}

fn bad_input(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[3u32, 1, 2]).unwrap();
    let mut out = stream.upload(&[9u32; 3]).unwrap();
    let mut short = stream.upload(&[9u32; 2]).unwrap();
    assert!(matches!(sort::keys(&stream, &keys, &mut short, Options::new()), Err(Error::LengthMismatch { .. })));
    let values = stream.upload(&[9u32; 4]).unwrap();
    let result = sort::pairs(&stream, (&keys, &values), (&mut out, &mut short), Options::new());
    assert!(matches!(result, Err(Error::LengthMismatch { expected: 3, found: 4, .. })));
    let computed = || map(&keys, map!(|x: u32| -> u32 { x + 1 }));
    assert!(matches!(sort::keys(&stream, computed(), &mut short, Options::new()), Err(Error::LengthMismatch { .. })));
    let result = sort::pairs(
        &stream,
        (&keys, map(&values, map!(|x: u32| -> u32 { x }))),
        (&mut out, &mut short),
        Options::new(),
    );
    assert!(matches!(result, Err(Error::LengthMismatch { expected: 3, found: 4, .. })));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is tested")]
    for bits in [0..33, 5..4, 33..40] {
        let result = sort::keys(&stream, &keys, &mut out, Options::new().bits(bits));
        assert!(matches!(result, Err(Error::BitRange { bits: 32, .. })));
    }
    assert_eq!(out.to_vec(&stream).unwrap(), [9; 3]);
    assert_eq!(short.to_vec(&stream).unwrap(), [9; 2]);
    if device.kind() == DeviceKind::Cpu {
        let tight = Device::cpu_with(CpuOptions { memory_limit: Some(100_000), ..CpuOptions::default() });
        let stream = tight.stream().unwrap();
        let host: Vec<u32> = (0..20_000).rev().collect();
        let mut keys = stream.upload(&host).unwrap();
        assert!(matches!(sort::keys_in_place(&stream, &mut keys, Options::new()), Err(Error::OutOfMemory { .. })));
        assert_eq!(keys.to_vec(&stream).unwrap(), host);
    }
}

/// Adversarial orders of blocks and threads, for tiles that look back. With values of 16 bytes a chunk is half as long,
/// and so is the input that needs such tiles.
fn adversarial_schedules(device: &Device) {
    let n = CHUNKS_OF_ONE_DIGIT / 2 + 100;
    let keys: Vec<u64> = random(13).take(n).collect();
    let values: Vec<u128> = (0..n as u128).collect();
    let mut expected: Vec<(u64, u128)> = keys.iter().copied().zip(0..).collect();
    expected.sort_by_key(|&(key, _)| key & 0xFF);
    for (seed, stream) in adversarial_streams(device, 6) {
        let mut sorted = stream.upload(&keys).unwrap();
        let mut along = stream.upload(&values).unwrap();
        sort::pairs_in_place(&stream, (&mut sorted, &mut along), Options::new().bits(0..8)).unwrap();
        let found = sorted.to_vec(&stream).unwrap().into_iter().zip(along.to_vec(&stream).unwrap());
        assert!(found.eq(expected.iter().copied()), "order {seed}");
    }
}
