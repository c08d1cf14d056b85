//! Lengths that only the device knows, of calls that need their elements in memory: sorts, merges and set operations.
//!
//! What lies beyond the length is uninitialised, so that the checked device finds who reads it, and what lies beyond the result
//! must stay as it was.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, cases, is_checked, native_devices, run};
use gpu_primitives::compare::{Compare, Less};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::Sum;
use gpu_primitives::operator::{Record, operator, predicate};
use gpu_primitives::sort::{self, Options, RadixKey, Side};
use gpu_primitives::source::{Counted, counted};
use gpu_primitives::{
    Device, DeviceSlice, DeviceValue, DeviceVec, Error, Limits, Stream, merge, merge_sort, runs, select, sets, top_k,
};
use std::fmt::Debug;
use std::process::ExitCode;

/// The lengths from which on a radix sort takes short chunks, and distributes digits; the tile of the distribution.
const BLOCK: usize = 4096;
const CHUNKS: usize = 16 * BLOCK;
const SMALL_TILE: usize = 2048;

fn main() -> ExitCode {
    run(cases![
        small_sorts,
        sorts_in_chunks,
        sorts_by_digits,
        sorts_of_other_sizes,
        sorts_in_place,
        sorts_double_buffered,
        merges_of_two,
        merges_of_many,
        merges_of_other_sizes,
        merges_to_new_memory,
        runs_that_are_too_long_together,
        merge_sorts,
        set_operations,
        largest_elements,
        orders_and_ranks,
        runs_of_elements,
        written_on_the_same_stream,
        changed_between_launches,
        lengths_that_differ,
        adversarial_schedules,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32 % 10_000).collect()
}

/// The first elements of memory for `room` elements. The others are uninitialised.
fn first<T: Pod>(stream: &Stream, elements: &[T], room: usize) -> DeviceVec<T> {
    let mut memory = stream.uninit::<T>(room).unwrap();
    memory.slice_mut(..elements.len()).unwrap().copy_from_host(stream, elements).unwrap();
    memory
}

/// Memory whose bytes are all 0xAB.
fn marked<T: Pod>(stream: &Stream, len: usize) -> DeviceVec<T> {
    stream.upload(&vec![mark::<T>(); len]).unwrap()
}

fn mark<T: Pod>() -> T {
    let mut mark = T::zeroed();
    bytemuck::bytes_of_mut(&mut mark).fill(0xAB);
    mark
}

/// Checks the first elements, and that the others are as they were.
#[track_caller]
fn expect<T: Pod + Debug>(stream: &Stream, found: &DeviceVec<T>, expected: &[T], what: &str) {
    let found = found.to_vec(stream).unwrap();
    let (result, rest) = found.split_at(expected.len());
    for (i, (found, expected)) in result.iter().zip(expected).enumerate() {
        assert_eq!(bytemuck::bytes_of(found), bytemuck::bytes_of(expected), "{what}: element {i}");
    }
    assert!(rest.iter().all(|x| bytemuck::bytes_of(x).iter().all(|&byte| byte == 0xAB)), "{what}: beyond the result");
}

/// Returns lengths around the ends of tiles, of `most` at most.
fn lengths(most: usize, tile: usize) -> Vec<usize> {
    let mut lengths = vec![0, 1, 33, tile - 1, tile, tile + 1, most.saturating_sub(1), most];
    lengths.retain(|&len| len <= most);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Sorts pairs and keys whose number only the device knows. The device may say more than there is room for.
fn check_sort<K, V>(
    stream: &Stream,
    room: usize,
    len: usize,
    key: impl Fn(u32) -> K,
    value: impl Fn(u32) -> V,
    options: &Options,
) where
    K: RadixKey + Debug + Ord,
    V: Pod + Debug,
{
    let there = len.min(room);
    let keys: Vec<K> = numbers(len as u64, there).into_iter().map(key).collect();
    let values: Vec<V> = (0..there as u32).map(value).collect();
    let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|pair| pair.0);
    let (sorted_keys, sorted_values): (Vec<K>, Vec<V>) = pairs.into_iter().unzip();
    let count = DeviceValue::new(stream, len as u64).unwrap();
    let (from_keys, from_values) = (first(stream, &keys, room), first(stream, &values, room));
    let (mut to_keys, mut to_values) = (marked::<K>(stream, room), marked::<V>(stream, room));
    let what = format!("{len} of {room}");

    let from = (counted(&from_keys, &count), &from_values);
    sort::pairs(stream, from, (&mut to_keys, &mut to_values), options.clone()).unwrap();
    expect(stream, &to_keys, &sorted_keys, &what);
    expect(stream, &to_values, &sorted_values, &what);
    let mut to_keys = marked::<K>(stream, room);
    sort::keys(stream, counted(&from_keys, &count), &mut to_keys, options.clone()).unwrap();
    expect(stream, &to_keys, &sorted_keys, &what);
}

fn small_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    for room in [0, 1, 100, BLOCK] {
        for len in lengths(room, 32).into_iter().chain([room + 5]) {
            check_sort(&stream, room, len, |x| x, |x| x, &Options::new());
        }
    }
}

fn sorts_in_chunks(device: &Device) {
    let stream = device.stream().unwrap();
    for room in [BLOCK + 1, 3 * BLOCK + 77] {
        for len in lengths(room, BLOCK / 2).into_iter().chain([BLOCK, room + 5, usize::MAX]) {
            check_sort(&stream, room, len, |x| x, u64::from, &Options::new());
        }
    }
    if !is_checked(device) {
        for len in lengths(CHUNKS, BLOCK) {
            check_sort(&stream, CHUNKS, len, |x| x, |x| x, &Options::new());
        }
    }
}

fn sorts_by_digits(device: &Device) {
    let stream = device.stream().unwrap();
    let by_one_digit = 8 * BLOCK + 1;
    for len in lengths(by_one_digit, SMALL_TILE).into_iter().chain([by_one_digit + 1]) {
        check_sort(&stream, by_one_digit, len, |x| x as u8, |x| x, &Options::new());
    }
    if !is_checked(device) {
        let room = CHUNKS + SMALL_TILE + 1;
        for len in lengths(room, SMALL_TILE).into_iter().chain([CHUNKS]) {
            check_sort(&stream, room, len, |x| x, |x| x, &Options::new());
        }
    }
}

/// Keys and values that are copied to memory of another layout, encoded, or moved by index.
fn sorts_of_other_sizes(device: &Device) {
    let stream = device.stream().unwrap();
    let room = 3000;
    for len in [0, 1, 2047, 2049, room, room + 1] {
        let options = Options::new();
        check_sort(&stream, room, len, |x| x as i16 as i64, |x| [x as u8; 3], &options);
        check_sort(&stream, room, len, |x| x as u8, |x| [x; 5], &options);
        check_sort(&stream, room, len, |x| x as i16, |x| x as u16, &options);
        check_sort(&stream, room, len, u128::from, |x| x, &options);
        check_sort(&stream, room, len, |x| sort::U256 { high: u128::from(x), low: 7 }, |x| x, &options);
    }
}

fn sorts_in_place(device: &Device) {
    let stream = device.stream().unwrap();
    let checked = is_checked(device);
    let rooms: &[usize] = if checked { &[BLOCK, BLOCK + 9] } else { &[BLOCK, BLOCK + 9, 9 * BLOCK, CHUNKS + 77] };
    for &room in rooms {
        for len in [0, 1, BLOCK / 2 + 1, BLOCK, room - 1, room, room + 1] {
            let there = len.min(room);
            // One, three and four digits: the last pass ends in either buffer.
            for (keep, bits) in [(0xFF, 8), (0xFF_FFFF, 24), (u32::MAX, 32)] {
                let keys: Vec<u32> = random(len as u64).take(there).map(|x| x as u32 & keep).collect();
                let mut sorted: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
                sorted.sort_unstable();
                let (sorted_keys, order): (Vec<u32>, Vec<u32>) = sorted.into_iter().unzip();
                let count = DeviceValue::new(&stream, len as u64).unwrap();
                let (mut held_keys, mut held_values) = (marked::<u32>(&stream, room), marked::<u32>(&stream, room));
                held_keys.slice_mut(..there).unwrap().copy_from_host(&stream, &keys).unwrap();
                let values: Vec<u32> = (0..there as u32).collect();
                held_values.slice_mut(..there).unwrap().copy_from_host(&stream, &values).unwrap();
                let options = Options::new().bits(0..bits);
                let pairs = (counted(&mut held_keys, &count), &mut held_values);
                sort::pairs_in_place(&stream, pairs, options.clone()).unwrap();
                let what = format!("{len} of {room}, {bits} bits");
                expect(&stream, &held_keys, &sorted_keys, &what);
                expect(&stream, &held_values, &order, &what);
                held_keys.slice_mut(..there).unwrap().copy_from_host(&stream, &keys).unwrap();
                sort::keys_in_place(&stream, counted(&mut held_keys, &count), options).unwrap();
                expect(&stream, &held_keys, &sorted_keys, &what);
            }
        }
    }
    // Keys that are encoded and copied.
    let mut keys = stream.upload(&[3i16, -2, 9, 5, 1]).unwrap();
    let count = DeviceValue::new(&stream, 3u64).unwrap();
    sort::keys_in_place(&stream, counted(&mut keys, &count), Options::new().descending()).unwrap();
    assert_eq!(keys.to_vec(&stream).unwrap(), [9, 3, -2, 5, 1]);
    // No digit: nothing moves.
    sort::keys_in_place(&stream, counted(&mut keys, &count), Options::new().bits(4..4)).unwrap();
    assert_eq!(keys.to_vec(&stream).unwrap(), [9, 3, -2, 5, 1]);
    let mut out = marked::<i16>(&stream, 5);
    sort::keys(&stream, counted(&keys, &count), &mut out, Options::new().bits(4..4)).unwrap();
    expect(&stream, &out, &[9, 3, -2], "no digits");
}

fn sorts_double_buffered(device: &Device) {
    let stream = device.stream().unwrap();
    for (room, bits) in [(100, 32), (2 * BLOCK, 32), (9 * BLOCK, 8)] {
        for len in [0, 50, room, room + 1] {
            let there = len.min(room);
            let keys: Vec<u32> = random(room as u64).take(there).map(|x| x as u32 % 256).collect();
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            let (mut a, mut b) = (first(&stream, &keys, room), stream.uninit::<u32>(room).unwrap());
            let count = DeviceValue::new(&stream, len as u64).unwrap();
            let options = Options::new().bits(0..bits);
            let side = sort::keys_double_buffered(&stream, counted(&mut a, &count), &mut b, options).unwrap();
            let found = if side == Side::First { &a } else { &b };
            assert_eq!(found.slice(..there).unwrap().to_vec(&stream).unwrap(), sorted, "{len} of {room}");
        }
    }
}

fn sorted(seed: u64, len: usize) -> Vec<u32> {
    let mut numbers = numbers(seed, len);
    numbers.sort_unstable();
    numbers
}

/// A merge into these keys and values.
type Call<'a, K, V> = &'a dyn Fn(&mut DeviceVec<K>, &mut DeviceVec<V>) -> Result<(), Error>;

/// Merges sequences of pairs and keys, each with its own length, in all ways that there are.
fn check_merge<K, V, C>(
    stream: &Stream,
    shapes: &[(usize, usize)],
    key: impl Fn(u32) -> K,
    value: impl Fn(u32) -> V,
    order: C,
) where
    K: Pod + Debug,
    V: Pod + Debug,
    C: Compare<K>,
{
    let mut all: Vec<(u32, u32)> = Vec::new();
    let (mut keys, mut values, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (seed, &(room, len)) in shapes.iter().enumerate() {
        let numbers = sorted(seed as u64 + 1, len.min(room));
        let own: Vec<(u32, u32)> = numbers.iter().copied().zip(100_000 * seed as u32..).collect();
        keys.push(first(stream, &numbers.iter().map(|&x| key(x)).collect::<Vec<K>>(), room));
        values.push(first(stream, &own.iter().map(|&(_, x)| value(x)).collect::<Vec<V>>(), room));
        counts.push(DeviceValue::new(stream, len as u64).unwrap());
        all.extend(own);
    }
    all.sort_by_key(|pair| pair.0);
    let merged_keys: Vec<K> = all.iter().map(|&(x, _)| key(x)).collect();
    let merged_values: Vec<V> = all.iter().map(|&(_, x)| value(x)).collect();
    let room = shapes.iter().map(|shape| shape.0).sum();
    let what = format!("{shapes:?}");
    let of_keys: Vec<Counted<'_, DeviceSlice<'_, K>>> =
        keys.iter().zip(&counts).map(|(keys, count)| counted(keys.as_slice(), count)).collect();
    let of_pairs: Vec<_> = of_keys.iter().copied().zip(values.iter().map(DeviceVec::as_slice)).collect();
    let check = |call: Call<'_, K, V>, has_values: bool| {
        let (mut out_keys, mut out_values) = (marked::<K>(stream, room), marked::<V>(stream, room));
        call(&mut out_keys, &mut out_values).unwrap();
        expect(stream, &out_keys, &merged_keys, &what);
        expect(stream, &out_values, if has_values { &merged_values } else { &[] }, &what);
    };
    check(&|keys, _| merge::runs_keys(stream, &of_keys, keys, order), false);
    check(&|keys, values| merge::runs_pairs(stream, &of_pairs, (keys, values), order), true);
    if shapes.len() <= 16 {
        check(&|keys, _| merge::small_runs_keys(stream, &of_keys, keys, order), false);
        check(&|keys, values| merge::small_runs_pairs(stream, &of_pairs, (keys, values), order), true);
    }
    if let (&[a, b], &[(a_keys, a_values), (b_keys, b_values)]) = (&of_keys[..], &of_pairs[..]) {
        check(&|keys, _| merge::keys(stream, a, b, keys, order), false);
        let (a, b) = ((a_keys, a_values), (b_keys, b_values));
        check(&|keys, values| merge::pairs(stream, a, b, (keys, values), order), true);
    }
}

fn merges_of_two(device: &Device) {
    let stream = device.stream().unwrap();
    let tile = 128 * 15;
    for room in [(1, 0), (0, 5), (100, 300)] {
        for (a, b) in [(0, 0), (1, usize::MAX), (room.0, room.1), (room.0 + 1, 7), (0, room.1)] {
            check_merge(&stream, &[(room.0, a), (room.1, b)], |x| x, |x| x, Less);
        }
    }
    for (a, b) in [(0, 0), (tile - 1, 0), (tile, 1), (tile + 1, tile + 5), (2 * tile, usize::MAX)] {
        check_merge(&stream, &[(2 * tile, a), (tile + 5, b)], |x| x, |x| x, Less);
    }
    if !is_checked(device) {
        check_merge(&stream, &[(200_000, 123_456), (100_000, 77)], |x| x, |x| x, Less);
    }
    // One length from the host.
    let (a, b) = (stream.upload(&[1u32, 3, 5]).unwrap(), first(&stream, &[2u32, 4], 9));
    let count = DeviceValue::new(&stream, 2u64).unwrap();
    let mut out = marked::<u32>(&stream, 12);
    merge::keys(&stream, &a, counted(&b, &count), &mut out, Less).unwrap();
    expect(&stream, &out, &[1, 2, 3, 4, 5], "one length from the host");
}

fn merges_of_many(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in [[0, 0, 0], [0, 700, 0], [1000, 0, 3], [1000, 2000, 500], [5000, 5000, 5000]] {
        let shapes: Vec<(usize, usize)> = [1000, 2000, 500].into_iter().zip(lens).collect();
        check_merge(&stream, &shapes, |x| x, |x| x, Less);
    }
    let shapes: Vec<(usize, usize)> = (0..32).map(|i| (100 + i, if i % 3 == 0 { 0 } else { 7 * i })).collect();
    check_merge(&stream, &shapes, |x| x, |x| x, Less);
    check_merge(&stream, &[(300, 200)], |x| x, |x| x, Less);
    if !native_devices(device).is_empty() {
        // So many tiles that blocks search for their edges first.
        let (a, b) = (first(&stream, &sorted(1, 300), 400_000), first(&stream, &sorted(2, 900_000), 1_000_000));
        let counts = [300, 900_000].map(|len| DeviceValue::new(&stream, len).unwrap());
        let runs =
            [counted(a.as_slice(), &counts[0]), counted(b.as_slice(), &counts[1]), counted(b.as_slice(), &counts[0])];
        let mut out = marked::<u32>(&stream, 2_400_000);
        merge::runs_keys(&stream, &runs, &mut out, Less).unwrap();
        let mut expected = [sorted(1, 300), sorted(2, 900_000), sorted(2, 900_000)[..300].to_vec()].concat();
        expected.sort_unstable();
        expect(&stream, &out, &expected, "many tiles");
    }
}

/// An order of keys that no kernel holds in a register of their size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct ByFirst;

#[operator]
impl Compare<[u16; 5]> for ByFirst {
    fn less(&self, a: [u16; 5], b: [u16; 5]) -> bool {
        a[0] < b[0]
    }
}

fn merges_of_other_sizes(device: &Device) {
    let stream = device.stream().unwrap();
    for (a, b) in [(0, 0), (20, 900), (1500, 0), (2000, 2000)] {
        let shapes = [(1500, a), (1000, b)];
        check_merge(&stream, &shapes, |x| [x as u16, 1, 2, 3, 4], |x| x, ByFirst);
        check_merge(&stream, &shapes, |x| x as u16, |x| [x as u8; 3], Less);
        check_merge(&stream, &shapes, u64::from, |x| [u64::from(x); 5], Less);
    }
}

/// Nobody has written the output, and no kernel reads it, whatever the size of the keys.
fn merges_to_new_memory(device: &Device) {
    fn check<T: Pod + Ord + Debug>(stream: &Stream, a: &[T], b: &[T])
    where
        Less: Compare<T>,
    {
        let (first, second) = (stream.upload(a).unwrap(), stream.upload(b).unwrap());
        let count = DeviceValue::new(stream, 2u64).unwrap();
        let mut out = stream.uninit::<T>(a.len() + b.len()).unwrap();
        merge::keys(stream, counted(&first, &count), &second, &mut out, Less).unwrap();
        let mut expected = [&a[..2], b].concat();
        expected.sort();
        assert_eq!(out.slice(..expected.len()).unwrap().to_vec(stream).unwrap(), expected);
    }
    let stream = device.stream().unwrap();
    check(&stream, &[1u32, 5, 9], &[3, 4, 5]);
    check(&stream, &[1u16, 5, 9], &[3, 4, 5]);
    check(&stream, &[1u8, 5, 9], &[3, 4, 5]);
}

/// Positions have 32 bits where each item is placed by itself.
fn runs_that_are_too_long_together(_: &Device) {
    let stream = Device::planned(Limits::of_gpu((9, 0), 132)).stream().unwrap();
    let run = stream.uninit::<u32>((1 << 30) - 1).unwrap();
    let mut out = stream.uninit::<u32>(3 * run.len()).unwrap();
    let error = merge::small_runs_keys(&stream, &[&run, &run, &run], &mut out, Less).unwrap_err();
    assert!(matches!(error, Error::TooLong { len, .. } if len == 3 * run.len()), "{error}");
}

fn merge_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let run = 128 * 15;
    let rooms: &[usize] = if is_checked(device) { &[0, 100, 3 * run + 5] } else { &[0, 100, 3 * run + 5, 40 * run] };
    for &room in rooms {
        for len in lengths(room, run).into_iter().chain([2 * run + 1, room + 9]) {
            let there = len.min(room);
            let keys = numbers(len as u64, there);
            let mut sorted: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
            sorted.sort_unstable();
            let (sorted_keys, order): (Vec<u32>, Vec<u32>) = sorted.into_iter().unzip();
            let count = DeviceValue::new(&stream, len as u64).unwrap();
            let values: Vec<u32> = (0..there as u32).collect();
            let (from_keys, from_values) = (first(&stream, &keys, room), first(&stream, &values, room));
            let (mut to_keys, mut to_values) = (marked::<u32>(&stream, room), marked::<u32>(&stream, room));
            let what = format!("{len} of {room}");
            let from = (&from_keys, counted(&from_values, &count));
            merge_sort::pairs(&stream, from, (&mut to_keys, &mut to_values), Less).unwrap();
            expect(&stream, &to_keys, &sorted_keys, &what);
            expect(&stream, &to_values, &order, &what);
            let mut to_keys = marked::<u32>(&stream, room);
            merge_sort::keys(&stream, counted(&from_keys, &count), &mut to_keys, Less).unwrap();
            expect(&stream, &to_keys, &sorted_keys, &what);

            // In place, with values that are moved by index.
            let (mut held, mut wide) = (marked::<u32>(&stream, room), marked::<[u8; 3]>(&stream, room));
            held.slice_mut(..there).unwrap().copy_from_host(&stream, &keys).unwrap();
            let values: Vec<[u8; 3]> = values.iter().map(|&x| [x as u8, (x >> 8) as u8, 0]).collect();
            wide.slice_mut(..there).unwrap().copy_from_host(&stream, &values).unwrap();
            merge_sort::pairs_in_place(&stream, (counted(&mut held, &count), &mut wide), Less).unwrap();
            expect(&stream, &held, &sorted_keys, &what);
            let moved: Vec<[u8; 3]> = order.iter().map(|&x| [x as u8, (x >> 8) as u8, 0]).collect();
            expect(&stream, &wide, &moved, &what);
            held.slice_mut(..there).unwrap().copy_from_host(&stream, &keys).unwrap();
            merge_sort::keys_in_place(&stream, counted(&mut held, &count), Less).unwrap();
            expect(&stream, &held, &sorted_keys, &what);
        }
    }
}

fn set_operations(device: &Device) {
    let stream = device.stream().unwrap();
    let tile = 256 * 15;
    for (room_a, room_b) in [(0, 0), (1, 1), (700, 300)] {
        for (a_len, b_len) in [(0, 0), (1, 0), (room_a, 1), (0, room_b), (room_a + 1, usize::MAX)] {
            check_sets(&stream, (room_a, a_len), (room_b, b_len));
        }
    }
    for (a_len, b_len) in [(0, 0), (tile, 0), (10, tile + 1)] {
        check_sets(&stream, (tile, a_len), (2 * tile, b_len));
    }
}

fn check_sets(stream: &Stream, (room_a, a_len): (usize, usize), (room_b, b_len): (usize, usize)) {
    // Each number once.
    let unique = |seed, len| {
        let mut numbers: Vec<u32> = sorted(seed, len);
        numbers.dedup();
        numbers
    };
    let (a, b) = (unique(1, a_len.min(room_a)), unique(2, b_len.min(room_b)));
    let (device_a, device_b) = (first(stream, &a, room_a), first(stream, &b, room_b));
    let tags = |of: &[u32], tag: u32| of.iter().map(|x| [*x as u8, tag as u8, 1]).collect::<Vec<[u8; 3]>>();
    let (a_tags, b_tags) = (first(stream, &tags(&a, 1), room_a), first(stream, &tags(&b, 2), room_b));
    let mut a_count = DeviceValue::new(stream, a.len() as u64).unwrap();
    let b_count = DeviceValue::new(stream, if b_len > room_b { b_len } else { b.len() } as u64);
    let mut b_count = b_count.unwrap();
    // A length beyond the room counts as the room, which these numbers must then fill.
    if b.len() < room_b {
        b_count = DeviceValue::new(stream, b.len() as u64).unwrap();
    }
    if a_len > room_a && a.len() == room_a {
        a_count = DeviceValue::new(stream, a_len as u64).unwrap();
    }
    let in_b = |x: &u32| b.binary_search(x).is_ok();
    let both: Vec<u32> = a.iter().copied().filter(in_b).collect();
    let only_a: Vec<u32> = a.iter().copied().filter(|x| !in_b(x)).collect();
    let only_b: Vec<u32> = b.iter().copied().filter(|x| a.binary_search(x).is_err()).collect();
    let ordered = |parts: &[&[u32]]| {
        let mut all = parts.concat();
        all.sort_unstable();
        all
    };
    let what = format!("{a_len} of {room_a}, {b_len} of {room_b}");
    let (of_a, of_b) = (counted(&device_a, &a_count), counted(&device_b, &b_count));
    let room = room_a + room_b;
    let mut out = marked::<u32>(stream, room);
    let expect_set = |count: Result<DeviceValue<u64>, Error>, out: &mut DeviceVec<u32>, expected: &[u32]| {
        assert_eq!(count.unwrap().get(stream).unwrap(), expected.len() as u64, "{what}");
        expect(stream, out, expected, &what);
        *out = marked::<u32>(stream, room);
    };
    let union = ordered(&[&a, &only_b]);
    let count = sets::union(stream, of_a, of_b, &mut out, Less);
    expect_set(count, &mut out, &union);
    let count = sets::intersection(stream, of_a, of_b, &mut out, Less);
    expect_set(count, &mut out, &both);
    let count = sets::difference(stream, of_a, of_b, &mut out, Less);
    expect_set(count, &mut out, &only_a);
    let count = sets::symmetric_difference(stream, of_a, of_b, &mut out, Less);
    expect_set(count, &mut out, &ordered(&[&only_a, &only_b]));

    let mut out_tags = marked::<[u8; 3]>(stream, room);
    let count = sets::union_pairs(stream, (of_a, &a_tags), (of_b, &b_tags), (&mut out, &mut out_tags), Less);
    expect_set(count, &mut out, &union);
    let expected: Vec<_> =
        union.iter().map(|x| [*x as u8, if a.binary_search(x).is_ok() { 1 } else { 2 }, 1]).collect();
    expect(stream, &out_tags, &expected, &what);
    let mut out_tags = marked::<[u8; 3]>(stream, room);
    let count = sets::difference_pairs(stream, (of_a, &a_tags), of_b, (&mut out, &mut out_tags), Less);
    expect_set(count, &mut out, &only_a);
    expect(stream, &out_tags, &tags(&only_a, 1), &what);
}

/// The largest elements of as many as the device says; where there are fewer than wanted, no position follows.
fn largest_elements(device: &Device) {
    let stream = device.stream().unwrap();
    let (room, wanted) = (5000, 20);
    for len in [0, 1, 19, 20, 4096, room, room + 1] {
        let there = len.min(room);
        let host = numbers(3, there);
        let input = first(&stream, &host, room);
        let count = DeviceValue::new(&stream, len as u64).unwrap();
        let (mut keys, mut positions) = (marked::<u32>(&stream, wanted), marked::<u32>(&stream, wanted));
        top_k::largest(&stream, counted(&input, &count), (&mut keys, &mut positions)).unwrap();
        let mut expected: Vec<(u32, u32)> = host.iter().copied().zip(0..).collect();
        expected.sort_by_key(|&(key, at)| (std::cmp::Reverse(key), at));
        expected.truncate(wanted);
        let (found_keys, mut found) = expected.iter().copied().unzip::<_, _, Vec<u32>, Vec<u32>>();
        found.resize(wanted, u32::MAX);
        expect(&stream, &keys, &found_keys, &format!("{len} of {room}"));
        assert_eq!(positions.to_vec(&stream).unwrap(), found, "{len} of {room}");
    }
}

/// Orders and ranks of keys whose number only the device knows.
fn orders_and_ranks(device: &Device) {
    let stream = device.stream().unwrap();
    for (room, len) in [(0, 0), (1, 0), (100, 33), (100, 105), (BLOCK + 1, BLOCK)] {
        let there = len.min(room);
        let keys = numbers(len as u64, there);
        let mut order: Vec<u32> = (0..there as u32).collect();
        order.sort_by_key(|&i| keys[i as usize]);
        let mut ranks = vec![0; there];
        order.iter().zip(0..).for_each(|(&i, rank)| ranks[i as usize] = rank);
        let (from, count) = (first(&stream, &keys, room), DeviceValue::new(&stream, len as u64).unwrap());
        let found = sort::argsort(&stream, counted(&from, &count), Options::new()).unwrap();
        assert_eq!(found.slice(..there).unwrap().to_vec(&stream).unwrap(), order, "order of {len} of {room}");
        let found = sort::rank(&stream, counted(&from, &count), Options::new()).unwrap();
        assert_eq!(found.slice(..there).unwrap().to_vec(&stream).unwrap(), ranks, "ranks of {len} of {room}");
    }
}

fn runs_of_elements(device: &Device) {
    let stream = device.stream().unwrap();
    let room = 3000;
    for len in [0, 1, 2048, room, room + 1] {
        let there = len.min(room);
        let host: Vec<u32> = (0..there as u32).map(|i| i / 3).collect();
        let (input, ones) = (first(&stream, &host, room), first(&stream, &vec![2u64; there], room));
        let count = DeviceValue::new(&stream, len as u64).unwrap();
        let (mut keys, mut lens) = (marked::<u32>(&stream, room), marked::<u32>(&stream, room));
        let found = runs::run_length_encode(&stream, counted(&input, &count), (&mut keys, &mut lens), Same).unwrap();
        let expected: Vec<u32> = (0..there.div_ceil(3) as u32).collect();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &keys, &expected, "keys of runs");
        let mut sums = marked::<u64>(&stream, room);
        let mut keys = marked::<u32>(&stream, room);
        let source = (counted(&input, &count), &ones);
        let found = runs::reduce_by_key(&stream, source, (&mut keys, &mut sums), Same, Sum).unwrap();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &keys, &expected, "keys that are reduced by");
        let mut out = marked::<u32>(&stream, room);
        let found = runs::unique(&stream, counted(&input, &count), &mut out, Same).unwrap();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &out, &expected, "unique");
        let (mut out, mut counts) = (marked::<u32>(&stream, room), marked::<u64>(&stream, room));
        let found = runs::distinct_counts(&stream, counted(&input, &count), (&mut out, &mut counts)).unwrap();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &out, &expected, "distinct");
        let (mut out, mut inverse) = (marked::<u32>(&stream, room), marked::<u32>(&stream, room));
        let found = runs::distinct_inverse(&stream, counted(&input, &count), (&mut out, &mut inverse)).unwrap();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &out, &expected, "distinct, with the inverse");
        let of = |x| expected.binary_search(x).unwrap() as u32;
        expect(&stream, &inverse, &host.iter().map(of).collect::<Vec<_>>(), "the inverse");
        let coded = first(&stream, &host.iter().map(|&x| x as i16).collect::<Vec<_>>(), room);
        let mut out = marked::<i16>(&stream, room);
        let found = runs::distinct(&stream, counted(&coded, &count), &mut out).unwrap();
        assert_eq!(found.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &out, &expected.iter().map(|&x| x as i16).collect::<Vec<_>>(), "distinct, by codes");
    }
}

/// A chain of calls, of which each has the length of the one before: nothing waits until the end.
fn written_on_the_same_stream(device: &Device) {
    let stream = device.stream().unwrap();
    for most in [0, 1, 3000, 6000] {
        let host = numbers(9, 6000);
        let input = stream.upload(&host).unwrap();
        let mut kept = stream.uninit::<u32>(6000).unwrap();
        let below = predicate!(most: u32 = most; |x: u32| x < most);
        let count = select::select(&stream, &input, &mut kept, below).unwrap();
        let mut sorted = marked::<u32>(&stream, 6000);
        sort::keys(&stream, counted(&kept, &count), &mut sorted, Options::new()).unwrap();
        let mut unique = marked::<u32>(&stream, 6000);
        let different = runs::unique(&stream, counted(&sorted, &count), &mut unique, Same).unwrap();
        let thousands = stream.upload(&(0..10).map(|i| 1000 * i).collect::<Vec<u32>>()).unwrap();
        let mut without = marked::<u32>(&stream, 6000);
        let left = sets::difference(&stream, counted(&unique, &different), &thousands, &mut without, Less).unwrap();
        drop((count, different, kept));
        let mut expected: Vec<u32> = host.iter().copied().filter(|&x| x < most).collect();
        expected.sort_unstable();
        expect(&stream, &sorted, &expected, "sorted");
        expected.dedup();
        expected.retain(|x| x % 1000 != 0);
        assert_eq!(left.get(&stream).unwrap(), expected.len() as u64);
        expect(&stream, &without, &expected, "without thousands");
    }
}

fn changed_between_launches(device: &Device) {
    let stream = device.stream().unwrap();
    let room = if is_checked(device) { BLOCK + 100 } else { CHUNKS + 100 };
    let host = numbers(4, room);
    let input = stream.upload(&host).unwrap();
    let other = stream.upload(&sorted(5, 3000)).unwrap();
    let mut length = stream.zeroed::<u64>(1).unwrap();
    let mut count = DeviceValue::new(&stream, 0u64).unwrap();
    let (mut out, mut by_merging, mut both) =
        (marked::<u32>(&stream, room), marked::<u32>(&stream, room), marked::<u32>(&stream, room + 3000));
    let (mut graph, found) = stream
        .capture(|stream| {
            count.as_mut_slice().copy_from(stream, &length)?;
            sort::keys(stream, counted(&input, &count), &mut out, Options::new())?;
            merge_sort::keys(stream, counted(&input, &count), &mut by_merging, Less)?;
            merge::keys(stream, counted(&out, &count), &other, &mut both, Less)?;
            let mut union = stream.uninit::<u32>(room + 3000)?;
            sets::union(stream, counted(&by_merging, &count), &other, &mut union, Less)
        })
        .unwrap();
    let other = sorted(5, 3000);
    for len in [100, 0, room, 5000, room + 5, 1] {
        let there = len.min(room);
        length.copy_from_host(&stream, &[len as u64]).unwrap();
        out.copy_from_host(&stream, &vec![mark(); room]).unwrap();
        both.copy_from_host(&stream, &vec![mark(); room + 3000]).unwrap();
        // SAFETY: all memory of the graph still exists, and is used on this stream only.
        unsafe { graph.launch(&stream).unwrap() };
        let mut expected = host[..there].to_vec();
        expected.sort_unstable();
        expect(&stream, &out, &expected, &format!("{len} keys"));
        assert!(by_merging.slice(..there).unwrap().to_vec(&stream).unwrap() == expected, "{len} keys");
        expected.extend_from_slice(&other);
        expected.sort_unstable();
        expect(&stream, &both, &expected, &format!("{len} keys and others"));
        assert!(found.get(&stream).unwrap() <= expected.len() as u64);
    }
}

/// Two different lengths of one input are an error, and nothing is written.
fn lengths_that_differ(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&[2u32, 1]).unwrap(), stream.upload(&[5u32, 6]).unwrap());
    let (one, two) = (DeviceValue::new(&stream, 1u64).unwrap(), DeviceValue::new(&stream, 2u64).unwrap());
    let (mut out_keys, mut out_values) = (marked::<u32>(&stream, 2), marked::<u32>(&stream, 2));
    let from = (counted(&keys, &one), counted(&values, &two));
    let result = sort::pairs(&stream, from, (&mut out_keys, &mut out_values), Options::new());
    assert!(matches!(result, Err(Error::InvalidOption { .. })), "{result:?}");
    expect(&stream, &out_keys, &[], "keys");
    // The same length twice is one.
    let from = (counted(&keys, &two), counted(&values, &two));
    sort::pairs(&stream, from, (&mut out_keys, &mut out_values), Options::new()).unwrap();
    expect(&stream, &out_values, &[6, 5], "values");
    // The output has room for all that there may be.
    let mut short = marked::<u32>(&stream, 1);
    let result = sort::keys(&stream, counted(&keys, &one), &mut short, Options::new());
    assert!(matches!(result, Err(Error::LengthMismatch { .. })), "{result:?}");
}

/// Blocks without items end early. Those that look back must not wait for them, in whatever order blocks run.
fn adversarial_schedules(device: &Device) {
    for (_, stream) in adversarial_streams(device, 2) {
        let room = 8 * BLOCK + 1;
        check_sort(&stream, room, 3 * SMALL_TILE + 5, |x| x as u8, |x| x, &Options::new());
        check_sets(&stream, (2000, 1500), (6000, 10));
        check_merge(&stream, &[(2000, 1000), (4000, 17)], |x| x, |x| x, Less);
    }
}
