//! Sorts of rows of equal length, against stable sorts of each row on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, cases, is_checked, is_gpu, run};
use gpu_primitives::operator::Record;
use gpu_primitives::sort::{self, Options, RadixKey, U256};
use gpu_primitives::{Device, Error, Stream, transfer};
use half::{bf16, f16};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The most items of a tile that sorts whole rows: of 8 bytes, and of 12. The most that one block sorts by digits. The items of a tile
/// that distributes them: keys of 4 bytes, and of 8.
const TILE: usize = 128 * 15;
const TILE_12: usize = 128 * 9;
const BLOCK: usize = 4096;
const PASS: usize = 8192;
const PASS_8: usize = 4096;

fn main() -> ExitCode {
    run(cases![
        short_rows,
        rows_of_a_block,
        long_rows,
        long_rows_of_wide_keys,
        keys_of_every_type,
        halves,
        values_of_every_size,
        bit_ranges,
        in_place,
        misaligned_slices,
        bad_input,
        without_memory,
        in_a_graph,
        adversarial_schedules,
    ])
}

/// Returns the position, within its row, of each key of a row that is sorted stably.
fn order_of<K>(keys: &[K], row: usize, compare: impl Fn(&K, &K) -> Ordering) -> Vec<u32> {
    let mut all = Vec::with_capacity(keys.len());
    for keys in keys.chunks(row.max(1)) {
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_by(|&a, &b| compare(&keys[a as usize], &keys[b as usize]));
        all.extend(order);
    }
    all
}

/// Returns elements in the order of their rows.
fn moved<T: Copy>(elements: &[T], row: usize, order: &[u32]) -> Vec<T> {
    order.iter().enumerate().map(|(at, &position)| elements[at / row.max(1) * row + position as usize]).collect()
}

#[track_caller]
fn assert_same<T: Pod>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(at) = (0..found.len()).find(|&at| bytemuck::bytes_of(&found[at]) != bytemuck::bytes_of(&expected[at])) {
        panic!("{what}: another element at {at} of {}", found.len());
    }
}

/// Sorts keys, pairs of key and number, and positions.
#[track_caller]
fn check<K: RadixKey>(
    stream: &Stream,
    keys: &[K],
    row: usize,
    options: &Options,
    compare: impl Fn(&K, &K) -> Ordering,
) {
    let what = format!("{} keys, rows of {row}", keys.len());
    let order = order_of(keys, row, compare);
    let expected = moved(keys, row, &order);
    let numbers: Vec<u32> = (0..keys.len() as u32).collect();
    let (input, values) = (stream.upload(keys).unwrap(), stream.upload(&numbers).unwrap());
    let mut sorted = stream.uninit::<K>(keys.len()).unwrap();
    sort::row_keys(stream, &input, row, &mut sorted, options.clone()).unwrap();
    assert_same(&sorted.to_vec(stream).unwrap(), &expected, &what);

    let (mut sorted, mut along) = (stream.uninit::<K>(keys.len()).unwrap(), stream.uninit(keys.len()).unwrap());
    sort::row_pairs(stream, (&input, &values), row, (&mut sorted, &mut along), options.clone()).unwrap();
    assert_same(&sorted.to_vec(stream).unwrap(), &expected, &format!("pairs: {what}"));
    assert_same(&along.to_vec(stream).unwrap(), &moved(&numbers, row, &order), &format!("values: {what}"));

    sort::row_argsort(stream, &input, row, &mut along, options.clone()).unwrap();
    assert_same(&along.to_vec(stream).unwrap(), &order, &format!("positions: {what}"));
    assert_same(&input.to_vec(stream).unwrap(), keys, &format!("the input: {what}"));
}

fn keys_32(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

fn short_rows(device: &Device) {
    let stream = device.stream().unwrap();
    for (row, rows) in [(0, 0), (7, 0), (1, 5), (2, 3), (3, 700), (32, 61), (33, 60), (1000, 3)] {
        check(&stream, &keys_32(row as u64, row * rows), row, &Options::new(), u32::cmp);
    }
    for row in [TILE / 2, TILE / 2 + 1, TILE] {
        check(&stream, &keys_32(row as u64, row * 2), row, &Options::new().descending(), |a, b| b.cmp(a));
    }
    for row in [TILE_12 / 2 + 1, TILE_12] {
        let keys: Vec<u64> = random(row as u64).take(3 * row).map(|x| x % 50).collect();
        check(&stream, &keys, row, &Options::new(), u64::cmp);
    }
}

fn rows_of_a_block(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [TILE + 1, BLOCK - 1, BLOCK] {
        let keys: Vec<u32> = keys_32(row as u64, row * 2).iter().map(|x| x % 1000).collect();
        check(&stream, &keys, row, &Options::new().bits(0..10), u32::cmp);
    }
    let keys: Vec<u64> = random(3).take(2 * (TILE_12 + 1)).collect();
    check(&stream, &keys, TILE_12 + 1, &Options::new().bits(50..64), |a, b| (a >> 50).cmp(&(b >> 50)));
}

/// Rows of one tile that is not whole, of whole tiles, and of more; one pass, and several.
fn long_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let low = |a: &u32, b: &u32| (a & 0xFF).cmp(&(b & 0xFF));
    for row in [BLOCK + 1, PASS, PASS + 1] {
        check(&stream, &keys_32(row as u64, row * 2), row, &Options::new().bits(0..8), low);
    }
    let (row, rows) = if is_checked(device) { (BLOCK + 3, 2) } else { (2 * PASS + 3, 3) };
    let floats: Vec<f32> = random(9).take(row * rows).map(|x| f32::from_bits(x as u32 & 0xFFFF_0FFF)).collect();
    check(&stream, &floats, row, &Options::new(), f32::total_cmp);
    check(&stream, &floats, row, &Options::new().descending(), |a, b| b.total_cmp(a));
    if is_gpu(device) {
        for (row, rows) in [(1 << 15, 64), (1 << 17, 100), (1 << 20, 3), (5000, 3000), (1024, 20_000)] {
            let floats: Vec<f32> = random(9).take(row * rows).map(|x| f32::from_bits(x as u32)).collect();
            check(&stream, &floats, row, &Options::new(), f32::total_cmp);
        }
    }
}

fn long_rows_of_wide_keys(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [PASS_8 + 1, 2 * PASS_8] {
        let keys: Vec<u64> = random(row as u64).take(2 * row).collect();
        check(&stream, &keys, row, &Options::new().bits(30..42), |a, b| (a >> 30 & 0xFFF).cmp(&(b >> 30 & 0xFFF)));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Record, RadixKey, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Version {
    major: u16,
    minor: u16,
    patch: i32,
}

fn keys_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let row = 300;
    let up = Options::new();
    macro_rules! numbers {
        ($($type:ty)*) => { $(
            let keys: Vec<$type> = random(4).take(3 * row).map(|x| x as $type).collect();
            check(&stream, &keys, row, &up, <$type>::cmp);
        )* };
    }
    numbers!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128);
    let keys: Vec<f64> = random(5).take(3 * row).map(f64::from_bits).collect();
    check(&stream, &keys, row, &up, f64::total_cmp);
    check(&stream, &keys, row, &Options::new().descending(), |a, b| b.total_cmp(a));
    let keys: Vec<U256> =
        random(6).take(3 * row).map(|x| U256 { high: (x % 3) as u128, low: (x as u128) << 64 }).collect();
    check(&stream, &keys, row, &up, U256::cmp);
    let keys: Vec<Version> = random(7)
        .take(3 * row)
        .map(|x| Version { major: (x % 3) as u16, minor: (x >> 8) as u16 % 5, patch: (x >> 32) as i32 })
        .collect();
    let compare = |a: &Version, b: &Version| (a.major, a.minor, a.patch).cmp(&(b.major, b.minor, b.patch));
    check(&stream, &keys, row, &up, compare);
}

/// All floats of two bytes, in rows and as a whole.
fn halves(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1 << 11 } else { 1 << 16 };
    let bits = random(8).take(len).map(|x| x as u16);
    let (f16s, bf16s): (Vec<f16>, Vec<bf16>) = bits.map(|bits| (f16::from_bits(bits), bf16::from_bits(bits))).unzip();
    for row in [len, len / 4] {
        check(&stream, &f16s, row, &Options::new(), f16::total_cmp);
        check(&stream, &bf16s, row, &Options::new().descending(), |a, b| b.total_cmp(a));
    }
}

fn values_of_every_size(device: &Device) {
    fn check_values<V: Pod + Debug>(stream: &Stream, row: usize, value: impl Fn(u32) -> V) {
        let keys: Vec<u32> = keys_32(2, 2 * row).iter().map(|x| x % 50).collect();
        let order = order_of(&keys, row, u32::cmp);
        let values: Vec<V> = (0..keys.len() as u32).map(value).collect();
        let (from, along) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let (mut to, mut moved_along) =
            (stream.uninit::<u32>(keys.len()).unwrap(), stream.uninit::<V>(keys.len()).unwrap());
        let options = Options::new().bits(0..6);
        sort::row_pairs(stream, (&from, &along), row, (&mut to, &mut moved_along), options.clone()).unwrap();
        let expected = moved(&values, row, &order);
        assert_same(&moved_along.to_vec(stream).unwrap(), &expected, &format!("values of {} bytes", size_of::<V>()));
        let (mut keys, mut values) = (from, along);
        sort::row_pairs_in_place(stream, (&mut keys, &mut values), row, options).unwrap();
        assert_same(&values.to_vec(stream).unwrap(), &expected, &format!("{} bytes in place", size_of::<V>()));
        assert_same(&keys.to_vec(stream).unwrap(), &to.to_vec(stream).unwrap(), "keys in place");
    }
    let stream = device.stream().unwrap();
    for row in [50, BLOCK + 1] {
        check_values(&stream, row, |i| i as u8);
        check_values(&stream, row, |i| [i as u8; 3]);
        check_values(&stream, row, |i| i);
        check_values(&stream, row, u64::from);
        check_values(&stream, row, |i| [i; 5]);
    }
}

fn bit_ranges(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [100, TILE + 100, BLOCK + 100] {
        let keys = keys_32(12, 2 * row);
        for (start, end) in [(0, 0), (5, 14)] {
            let part = |x: &u32| (x >> start) & ((1 << (end - start)) - 1);
            check(&stream, &keys, row, &Options::new().bits(start..end), |a, b| part(a).cmp(&part(b)));
            let down = Options::new().bits(start..end).descending();
            check(&stream, &keys, row, &down, |a, b| part(b).cmp(&part(a)));
        }
    }
}

/// Even and odd numbers of passes, rows of all kinds, and a single row.
fn in_place(device: &Device) {
    let stream = device.stream().unwrap();
    for (row, rows) in [(100, 1), (1, 9), (100, 7), (BLOCK, 2), (BLOCK + 9, 2)] {
        let host = keys_32(6, row * rows);
        for bits in [16, 8] {
            let compare = |a: &u32, b: &u32| (a & ((1 << bits) - 1)).cmp(&(b & ((1 << bits) - 1)));
            let order = order_of(&host, row, compare);
            let mut keys = stream.upload(&host).unwrap();
            sort::row_keys_in_place(&stream, &mut keys, row, Options::new().bits(0..bits)).unwrap();
            assert_same(&keys.to_vec(&stream).unwrap(), &moved(&host, row, &order), &format!("{rows} rows of {row}"));
        }
    }
    let host: Vec<i16> = random(1).take(600).map(|x| x as i16).collect();
    let mut keys = stream.upload(&host).unwrap();
    sort::row_keys_in_place(&stream, &mut keys, 200, Options::new()).unwrap();
    let order = order_of(&host, 200, i16::cmp);
    assert_same(&keys.to_vec(&stream).unwrap(), &moved(&host, 200, &order), "i16 in place");
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [99, BLOCK + 7] {
        let host = keys_32(1, 2 * row + 3);
        let input = stream.upload(&host).unwrap();
        let mut output = stream.zeroed::<u32>(2 * row + 3).unwrap();
        let options = Options::new().bits(24..32);
        let to = output.slice_mut(1..2 * row + 1).unwrap();
        sort::row_keys(&stream, input.slice(3..).unwrap(), row, to, options).unwrap();
        let found = output.to_vec(&stream).unwrap();
        let order = order_of(&host[3..], row, |a, b| (a >> 24).cmp(&(b >> 24)));
        assert_same(&found[1..2 * row + 1], &moved(&host[3..], row, &order), "slices");
        assert_eq!([found[0], found[2 * row + 1], found[2 * row + 2]], [0; 3]);
    }
}

fn bad_input(device: &Device) {
    let stream = device.stream().unwrap();
    let host = [3u32, 1, 2, 0, 5, 4];
    let (input, mut six, mut five) =
        (stream.upload(&host).unwrap(), stream.upload(&host).unwrap(), stream.zeroed::<u32>(5).unwrap());
    let is_length =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::LengthMismatch { .. })), "{result:?}");
    for row in [0, 4, 5, 7, usize::MAX] {
        is_length(sort::row_keys(&stream, &input, row, &mut six, Options::new()));
        is_length(sort::row_keys_in_place(&stream, &mut six, row, Options::new()));
        is_length(sort::row_argsort(&stream, &input, row, &mut six, Options::new()));
        let mut values = stream.upload(&host).unwrap();
        is_length(sort::row_pairs_in_place(&stream, (&mut six, &mut values), row, Options::new()));
    }
    is_length(sort::row_keys(&stream, &input, 3, &mut five, Options::new()));
    is_length(sort::row_argsort(&stream, &input, 3, &mut five, Options::new()));
    is_length(sort::row_pairs_in_place(&stream, (&mut six, &mut five), 3, Options::new()));
    let beyond = sort::row_keys(&stream, &input, 3, &mut six, Options::new().bits(0..33));
    assert!(matches!(beyond, Err(Error::BitRange { .. })));
    assert_eq!(six.to_vec(&stream).unwrap(), host);
    assert_eq!(five.to_vec(&stream).unwrap(), [0; 5]);
}

/// Each allocation fails in turn. Rows that are sorted in place are then as they were.
fn without_memory(device: &Device) {
    fn check<K: RadixKey>(device: &Device, host: &[K], row: usize) {
        let values: Vec<u32> = (0..host.len() as u32).collect();
        for successes in 0.. {
            let stream = device.stream().unwrap();
            let (mut keys, mut moved) = (stream.upload(host).unwrap(), stream.upload(&values).unwrap());
            stream.fail_allocation_after(Some(successes));
            let result = sort::row_pairs_in_place(&stream, (&mut keys, &mut moved), row, Options::new());
            stream.fail_allocation_after(None);
            match result {
                Ok(()) => break,
                Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
            }
            let when = format!("after {successes} allocations");
            assert_same(&keys.to_vec(&stream).unwrap(), host, &when);
            assert_same(&moved.to_vec(&stream).unwrap(), &values, &when);
        }
    }
    let keys = keys_32(5, 2 * (PASS + 3));
    check(device, &keys, PASS + 3);
    check(device, &keys[..200], 100);
    check(device, &keys[..2 * (BLOCK + 1)].iter().map(|&key| (key % 100) as u8).collect::<Vec<_>>(), BLOCK + 1);
    check(device, &keys[..300].iter().map(|&key| u128::from(key) << 90).collect::<Vec<_>>(), 150);
    check(device, &keys[..300].iter().map(|&key| f16::from_bits(key as u16)).collect::<Vec<_>>(), 150);
}

/// No kind of row waits, and the same graph sorts what is there when it runs.
fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    for row in [64, TILE + 1, BLOCK + 1] {
        let len = 2 * row;
        let mut keys = stream.zeroed::<u32>(len).unwrap();
        let mut sorted = stream.zeroed::<u32>(len).unwrap();
        let options = Options::new().bits(8..16);
        sort::row_keys(&stream, &keys, row, &mut sorted, options.clone()).unwrap();
        let (mut graph, ()) =
            stream.capture(|stream| sort::row_keys(stream, &keys, row, &mut sorted, options)).unwrap();
        for seed in 0..2 {
            let host = keys_32(seed, len);
            transfer::copy(&stream, &stream.upload(&host).unwrap(), &mut keys).unwrap();
            // SAFETY: the keys and the output are still there.
            unsafe { graph.launch(&stream).unwrap() };
            let order = order_of(&host, row, |a, b| (a >> 8 & 0xFF).cmp(&(b >> 8 & 0xFF)));
            assert_same(&sorted.to_vec(&stream).unwrap(), &moved(&host, row, &order), "a graph");
        }
    }
}

fn adversarial_schedules(device: &Device) {
    let row = 2 * PASS_8 + 100;
    let keys: Vec<u64> = random(13).take(3 * row).collect();
    let order = order_of(&keys, row, |a, b| (a & 0xFF).cmp(&(b & 0xFF)));
    let expected = moved(&keys, row, &order);
    for (seed, stream) in adversarial_streams(device, 4) {
        let mut sorted = stream.upload(&keys).unwrap();
        sort::row_keys_in_place(&stream, &mut sorted, row, Options::new().bits(0..8)).unwrap();
        assert_same(&sorted.to_vec(&stream).unwrap(), &expected, &format!("order {seed}"));
    }
}
