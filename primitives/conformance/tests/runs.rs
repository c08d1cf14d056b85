//! Runs of equal neighbours against loops on the host.

use bytemuck::Pod;
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::{Affine, Compose};
use gpu_conformance::{adversarial_streams, assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::map::Map2;
use gpu_primitives::monoid::{Max, Monoid, Sum};
use gpu_primitives::operator::{equality, map, monoid};
use gpu_primitives::runs::{self, Length, Shape, Which};
use gpu_primitives::source::{constant, counted, counting, map};
use gpu_primitives::{Device, DeviceSlice, DeviceValue, Error, Stream};
use std::fmt::Debug;
use std::process::ExitCode;

/// The elements of a tile of 32-bit elements, and of pairs of 32-bit keys and values.
const TILE: usize = 256 * 4 * 8;
const TILE_PAIRS: usize = 256 * 4 * 5;

fn main() -> ExitCode {
    run(cases![
        small_unique,
        small_encode,
        small_decode,
        small_reduce_by_key,
        small_differences,
        unique_patterns,
        unique_of_every_size,
        unique_by_key_of_every_size,
        custom_equalities,
        not_a_number,
        encode_patterns,
        encode_of_every_size,
        decode_of_every_size,
        decode_lengths_of_all_kinds,
        decode_into_less_room_and_more,
        decode_sums_that_overflow,
        reduce_patterns,
        reduce_of_every_size,
        reduce_in_order,
        floats_are_deterministic,
        differences_of_every_size,
        misaligned_slices,
        sources,
        lengths_on_the_device,
        wrong_lengths,
        in_a_graph,
        large,
        adversarial_schedules_of_encode,
        adversarial_schedules_of_reduce,
    ])
}

/// `assert_eq!` that names the first difference instead of printing everything.
fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} elements, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Returns the first position of each run, and the number of elements.
fn heads<T: Pod, E: Equality<T>>(host: &[T], equality: E) -> Vec<usize> {
    (0..host.len()).filter(|&i| i == 0 || !equality.equal(host[i - 1], host[i])).chain([host.len()]).collect()
}

/// Returns the elements, then what was there before.
fn front<T: Pod>(elements: impl Iterator<Item = T>, filler: T, len: usize) -> Vec<T> {
    let mut all: Vec<T> = elements.collect();
    all.resize(len, filler);
    all
}

fn filler<T: Pod>() -> T {
    let mut filler = T::zeroed();
    bytemuck::bytes_of_mut(&mut filler).fill(0xa5);
    filler
}

/// Returns numbers in runs of up to `longest`, neighbours different.
fn in_runs(seed: u64, len: usize, longest: u64) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(len);
    for x in random(seed) {
        if numbers.len() == len {
            break;
        }
        let number = numbers.last().copied().unwrap_or(0u32).wrapping_add(1 + (x >> 32) as u32 % 5);
        numbers.extend(std::iter::repeat_n(number, ((x % longest) as usize + 1).min(len - numbers.len())));
    }
    numbers
}

/// Returns an element whose bytes are those of the number, repeated.
fn spread<T: Pod>(number: u32) -> T {
    let mut element = T::zeroed();
    for (i, byte) in bytemuck::bytes_of_mut(&mut element).iter_mut().enumerate() {
        *byte = (number >> (8 * (i % 4))) as u8 ^ (i / 4) as u8;
    }
    element
}

fn check_unique<T: Pod + Debug + PartialEq, E: Equality<T>>(stream: &Stream, host: &[T], equality: E) {
    let heads = heads(host, equality);
    let input = stream.upload(host).unwrap();
    let mut output = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let count = runs::unique(stream, &input, &mut output, equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| host[i]), filler(), host.len());
    assert_same(&output.to_vec(stream).unwrap(), &expected, "first elements");

    let mut output = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let count = runs::unique_last(stream, &input, &mut output, equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[1..].iter().map(|&i| host[i - 1]), filler(), host.len());
    assert_same(&output.to_vec(stream).unwrap(), &expected, "last elements");
}

fn check_pairs<K, V, E>(stream: &Stream, keys: &[K], values: &[V], equality: E)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    E: Equality<K>,
{
    let heads = heads(keys, equality);
    let (from, from_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    for which in [Which::First, Which::Last] {
        let mut to = stream.upload(&vec![filler::<K>(); keys.len()]).unwrap();
        let mut to_values = stream.upload(&vec![filler::<V>(); keys.len()]).unwrap();
        let count =
            runs::unique_by_key(stream, (&from, &from_values), (&mut to, &mut to_values), equality, which).unwrap();
        assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
        let kept = || heads.windows(2).map(|run| if which == Which::First { run[0] } else { run[1] - 1 });
        let what = format!("{} + {} bytes, {which:?}", size_of::<K>(), size_of::<V>());
        assert_same(&to.to_vec(stream).unwrap(), &front(kept().map(|i| keys[i]), filler(), keys.len()), &what);
        let expected = front(kept().map(|i| values[i]), filler(), keys.len());
        assert_same(&to_values.to_vec(stream).unwrap(), &expected, &what);
    }
}

fn check_encode<T, C, E>(stream: &Stream, host: &[T], equality: E)
where
    T: Pod + Debug + PartialEq,
    C: Length + Debug + PartialEq,
    E: Equality<T>,
{
    let heads = heads(host, equality);
    let input = stream.upload(host).unwrap();
    let mut elements = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let mut lengths = stream.upload(&vec![filler::<C>(); host.len()]).unwrap();
    let count = runs::encode(stream, &input, &mut elements, &mut lengths, equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| host[i]), filler(), host.len());
    assert_same(&elements.to_vec(stream).unwrap(), &expected, "elements");
    let expected = front(heads.windows(2).map(|run| C::new((run[1] - run[0]) as u64)), filler(), host.len());
    assert_same(&lengths.to_vec(stream).unwrap(), &expected, "lengths");
}

/// Decodes, with this much room.
fn check_decode<T: Pod + Debug + PartialEq, C: Length>(stream: &Stream, elements: &[T], lengths: &[C], room: usize) {
    let decoded = elements.iter().zip(lengths).flat_map(|(&x, &n)| std::iter::repeat_n(x, n.into() as usize));
    let expected = front(decoded.take(room), filler(), room);
    let (from, counts) = (stream.upload(elements).unwrap(), stream.upload(lengths).unwrap());
    let mut output = stream.upload(&vec![filler::<T>(); room]).unwrap();
    let total = runs::decode(stream, &from, &counts, &mut output).unwrap();
    assert_eq!(total.get(stream).unwrap(), lengths.iter().map(|&n| n.into()).sum::<u64>());
    assert_same(&output.to_vec(stream).unwrap(), &expected, &format!("{} bytes", size_of::<T>()));
}

/// Returns the total of each run.
fn totals<V: Pod, M: Monoid<V>>(heads: &[usize], values: &[V], operation: M) -> Vec<V> {
    heads
        .windows(2)
        .map(|run| values[run[0]..run[1]].iter().copied().reduce(|a, b| operation.combine(a, b)).unwrap())
        .collect()
}

fn check_reduce<K, V, E, M>(stream: &Stream, keys: &[K], values: &[V], equality: E, operation: M)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    E: Equality<K>,
    M: Monoid<V>,
{
    let heads = heads(keys, equality);
    let (on_keys, on_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let mut to = stream.upload(&vec![filler::<K>(); keys.len()]).unwrap();
    let mut sums = stream.upload(&vec![filler::<V>(); keys.len()]).unwrap();
    let count = runs::reduce_by_key(stream, &on_keys, &on_values, &mut to, &mut sums, equality, operation).unwrap();
    let what = format!("{} + {} bytes", size_of::<K>(), size_of::<V>());
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1, "{what}");
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| keys[i]), filler(), keys.len());
    assert_same(&to.to_vec(stream).unwrap(), &expected, &what);
    let expected = front(totals(&heads, values, operation).into_iter(), filler(), keys.len());
    assert_same(&sums.to_vec(stream).unwrap(), &expected, &what);
}

fn check_difference<T, F>(stream: &Stream, host: &[T], function: F)
where
    T: Pod + Debug + PartialEq,
    F: Map2<T, T, Output = T>,
{
    let expected: Vec<T> =
        (0..host.len()).map(|i| if i == 0 { host[0] } else { function.map(host[i], host[i - 1]) }).collect();
    let mut input = stream.upload(host).unwrap();
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    runs::adjacent_difference(stream, &input, &mut output, function).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &expected, "differences");
    runs::adjacent_difference_in_place(stream, &mut input, function).unwrap();
    assert_same(&input.to_vec(stream).unwrap(), &expected, "differences in place");
}

fn small_unique(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_unique(&stream, &in_runs(1, len, 5), Same);
        check_pairs(&stream, &in_runs(2, len, 5), &in_runs(3, len, 1), Same);
    }
}

fn small_encode(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_encode::<_, u32, _>(&stream, &in_runs(4, len, 5), Same);
        check_encode::<_, u64, _>(&stream, &in_runs(5, len, 70), Same);
    }
}

fn small_decode(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 33, 400] {
        let lengths: Vec<u32> = random(6).take(len).map(|x| x as u32 % 5).collect();
        let total = lengths.iter().sum::<u32>() as usize;
        check_decode(&stream, &in_runs(7, len, 1), &lengths, total);
    }
}

fn small_reduce_by_key(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_reduce(&stream, &in_runs(8, len, 5), &in_runs(9, len, 1), Same, Sum);
        check_reduce(&stream, &in_runs(8, len, 50), &in_runs(9, len, 1), Same, Max);
    }
}

fn small_differences(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 33, 1000] {
        check_difference(&stream, &in_runs(10, len, 2), map!(|a: u32, b: u32| -> u32 { a.wrapping_sub(b) }));
    }
}

/// All different, all equal, short runs and long ones, and runs that begin where tiles and rows do.
fn patterns(len: usize) -> Vec<Vec<u32>> {
    vec![
        (0..len as u32).collect(),
        vec![7; len],
        in_runs(11, len, 16),
        in_runs(12, len, 9000),
        (0..len as u32).map(|i| i / 128).collect(),
        (0..len as u32).map(|i| i / 1024).collect(),
        (0..len as u32).map(|i| (i + 1) / 1024).collect(),
        (0..len).map(|i| (i + 1 == len) as u32).collect(),
    ]
}

/// Calls `check` with patterns at the edges of tiles.
fn at_edges(device: &Device, tile: usize, check: impl Fn(&Stream, &[u32])) {
    let stream = device.stream().unwrap();
    for len in edge_sizes(tile).into_iter().filter(|&len| len > 33) {
        let patterns = patterns(len);
        let few = if is_checked(device) { if len > tile + 1 { 0..1 } else { 2..4 } } else { 0..patterns.len() };
        patterns[few].iter().for_each(|host| check(&stream, host));
    }
}

fn unique_patterns(device: &Device) {
    at_edges(device, TILE, |stream, host| check_unique(stream, host, Same));
    at_edges(device, TILE / 2, |stream, host| {
        check_unique(stream, &host.iter().map(|&x| u64::from(x) << 20).collect::<Vec<_>>(), Same);
    });
}

fn unique_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            for len in [1, 300, 8 * 256 + 1, 3 * 8 * 256 - 1] {
                if !is_checked(device) || len <= 300 {
                    let host: Vec<$type> = in_runs(13, len, 6).into_iter().map(spread).collect();
                    check_unique(&stream, &host, equality!(|a: $type, b: $type| a == b));
                }
            }
        )* };
    }
    check!(u8 i16 f32 i64 u128 [u8; 2] [u8; 3] [u8; 5] [u16; 3] [u32; 2] [u32; 3] [u16; 7] [u32; 5] [u64; 3] [u8; 31] [u64; 4]);
}

fn unique_by_key_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    let (runs_of, numbers) = (in_runs(14, len, 6), in_runs(15, len, 1));
    macro_rules! check {
        ($($key:ty, $value:ty;)*) => { $(
            let keys: Vec<$key> = runs_of.iter().map(|&x| spread(x)).collect();
            let values: Vec<$value> = numbers.iter().map(|&x| spread(x)).collect();
            check_pairs(&stream, &keys, &values, equality!(|a: $key, b: $key| a == b));
        )* };
    }
    check! {
        u32, u32; u32, u64; u64, u32; u64, f64; u32, [u8; 3]; u32, u8; i64, [u64; 5]; u8, u32; u16, u64; u128, u16;
        [u8; 5], [u8; 5]; [u32; 3], u128; [u64; 4], [u64; 4];
    }
}

fn custom_equalities(device: &Device) {
    let stream = device.stream().unwrap();
    let host = in_runs(16, 3000, 3);
    check_unique(&stream, &host, equality!(|a: u32, b: u32| a / 16 == b / 16));
    check_unique(&stream, &host, equality!(divisor: u32 = 100; |a: u32, b: u32| a / divisor == b / divisor));
    // It is called with elements of the input only.
    let positive: Vec<u32> = host.iter().map(|x| x + 1).collect();
    check_unique(&stream, &positive, equality!(|a: u32, b: u32| 1000 / a == 1000 / b));
    check_reduce(&stream, &positive, &host, equality!(|a: u32, b: u32| 10_000 / a == 10_000 / b), Sum);
    // Not an equality: it yields some runs.
    let strange = equality!(|a: u32, b: u32| (a ^ b.wrapping_mul(3)) % 3 == 1);
    let input = stream.upload(&host).unwrap();
    let (mut elements, mut lengths) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u64>(3000).unwrap());
    let count = runs::encode(&stream, &input, &mut elements, &mut lengths, strange).unwrap().get(&stream).unwrap();
    assert_eq!(lengths.to_vec(&stream).unwrap()[..count as usize].iter().sum::<u64>(), 3000);
}

/// NaN equals nothing, and -0 equals +0: the first one is kept.
fn not_a_number(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[0.0f32, -0.0, f32::NAN, f32::NAN, 1.0, 1.0]).unwrap();
    let mut output = stream.zeroed::<f32>(6).unwrap();
    let count = runs::unique(&stream, &input, &mut output, Same).unwrap();
    assert_eq!(count.get(&stream).unwrap(), 4);
    let bits: Vec<u32> = output.to_vec(&stream).unwrap().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, [0.0, f32::NAN, f32::NAN, 1.0, 0.0, 0.0].map(f32::to_bits));
}

fn encode_patterns(device: &Device) {
    at_edges(device, TILE, |stream, host| check_encode::<_, u32, _>(stream, host, Same));
    at_edges(device, TILE / 2, |stream, host| {
        check_encode::<_, u64, _>(stream, &host.iter().map(|&x| i64::from(x) - 9).collect::<Vec<_>>(), Same);
    });
}

fn encode_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = in_runs(17, len, 40).into_iter().map(spread).collect();
            check_encode::<_, u32, _>(&stream, &host, equality!(|a: $type, b: $type| a == b));
            check_encode::<_, u64, _>(&stream, &host, equality!(|a: $type, b: $type| a == b));
        )* };
    }
    check!(u8 u16 u32 f64 u128 [u8; 3] [u8; 5] [u16; 2] [u32; 3] [u64; 4]);
}

fn decode_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 200 } else { 3000 };
    let lengths: Vec<u32> = random(18).take(len).map(|x| x as u32 % 9).collect();
    let total = lengths.iter().sum::<u32>() as usize;
    macro_rules! check {
        ($($type:ty)*) => { $(
            let elements: Vec<$type> = in_runs(19, len, 1).into_iter().map(spread).collect();
            check_decode(&stream, &elements, &lengths, total);
        )* };
    }
    check!(u8 u16 u32 u64 u128 [u8; 3] [u8; 5] [u16; 3] [u32; 3] [u64; 4] [u8; 41] [u64; 5]);
}

/// No element, one long run, many empty runs, and everything at the edges of tiles, which have 5120 runs and outputs.
fn decode_lengths_of_all_kinds(device: &Device) {
    let stream = device.stream().unwrap();
    let long = if is_checked(device) { 6000 } else { 100_000 };
    let mut of_all_kinds: Vec<Vec<u64>> =
        vec![vec![0; 10], vec![long], vec![0; long as usize], vec![1; long as usize / 10], vec![long / 2, 0, long / 2]];
    of_all_kinds.push([vec![3; 20], vec![0; long as usize], vec![2; 20], vec![long], vec![0; 7]].concat());
    of_all_kinds.push(random(20).take(500).map(|x| if x % 50 == 0 { x % (long / 20) } else { x % 3 / 2 }).collect());
    for end in 5116..5124 {
        of_all_kinds.push(vec![end, 1]);
        of_all_kinds.push(vec![1, end]);
    }
    let checked = if is_checked(device) { 9 } else { of_all_kinds.len() };
    for lengths in &of_all_kinds[..checked] {
        let total: u64 = lengths.iter().sum();
        check_decode(&stream, &in_runs(21, lengths.len(), 1), lengths, total as usize);
    }
}

fn decode_into_less_room_and_more(device: &Device) {
    let stream = device.stream().unwrap();
    let lengths: Vec<u32> = random(22).take(500).map(|x| x as u32 % 7).collect();
    let elements = in_runs(23, 500, 1);
    let total = lengths.iter().sum::<u32>() as usize;
    for room in [0, 1, 100, total - 1, total + 1, 2 * total + 6000] {
        if !is_checked(device) || room < total + 2 {
            check_decode(&stream, &elements, &lengths, room);
        }
    }
}

fn decode_sums_that_overflow(device: &Device) {
    let stream = device.stream().unwrap();
    let elements = stream.upload(&[1u32, 2, 3, 4]).unwrap();
    let lengths = stream.upload(&[5u64, u64::MAX - 2, u64::MAX, 3]).unwrap();
    let mut output = stream.zeroed::<u32>(100).unwrap();
    let total = runs::decode(&stream, &elements, &lengths, &mut output).unwrap();
    assert_eq!(total.get(&stream).unwrap(), u64::MAX);
    assert_eq!(output.to_vec(&stream).unwrap(), [vec![1; 5], vec![2; 95]].concat());
}

fn reduce_patterns(device: &Device) {
    at_edges(device, TILE_PAIRS, |stream, keys| check_reduce(stream, keys, &in_runs(24, keys.len(), 1), Same, Sum));
    at_edges(device, TILE_PAIRS / 2, |stream, keys| {
        let keys: Vec<u64> = keys.iter().map(|&x| u64::from(x)).collect();
        check_reduce(stream, &keys, &random(25).take(keys.len()).collect::<Vec<_>>(), Same, Sum);
    });
}

fn reduce_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    // No value begins with a zero: that is the identity.
    let (runs_of, numbers) = (in_runs(26, len, 20), in_runs(27, len, 1).into_iter().map(|x| x | 1).collect::<Vec<_>>());
    macro_rules! check {
        ($($key:ty, $value:ty, $operation:expr;)*) => { $(
            let keys: Vec<$key> = runs_of.iter().map(|&x| spread(x)).collect();
            let values: Vec<$value> = numbers.iter().map(|&x| spread(x)).collect();
            check_reduce(&stream, &keys, &values, equality!(|a: $key, b: $key| a == b), $operation);
        )* };
    }
    check! {
        u32, u64, Sum; u64, u32, Sum; i32, i64, Max; u32, u8, Sum; u32, i16, Sum; u32, u128, Sum; u8, u32, Sum; u128, u64, Sum;
        [u8; 5], u32, Max; [u32; 3], u128, Max;
        u32, [u8; 3], monoid!([0; 3], |a: [u8; 3], b: [u8; 3]| if b[0] == 0 { a } else { b });
        u64, [u8; 5], monoid!([0; 5], |a: [u8; 5], b: [u8; 5]| if b[0] == 0 { a } else { b });
        u32, [u32; 3], monoid!([0; 3], |a: [u32; 3], b: [u32; 3]| if a[0] < b[0] { b } else { a });
        [u64; 4], [u64; 4], monoid!([0; 4], |a: [u64; 4], b: [u64; 4]| if a[0] < b[0] { b } else { a });
    }
}

/// The composition of maps is not commutative.
fn reduce_in_order(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [100, TILE_PAIRS, 3 * TILE_PAIRS + 5] {
        if !is_checked(device) || len <= 100 {
            for longest in [3, 50, 20_000] {
                let numbers = in_runs(28, 2 * len, 1);
                let maps: Vec<Affine> =
                    numbers.chunks(2).map(|pair| Affine { scale: pair[0] | 1, shift: pair[1] }).collect();
                check_reduce(&stream, &in_runs(29, len, longest), &maps, Same, Compose);
                let keys: Vec<u8> = in_runs(29, len, longest).into_iter().map(|x| x as u8).collect();
                check_reduce(&stream, &keys, &maps, Same, Compose);
            }
        }
    }
}

fn floats_are_deterministic(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 60_000 };
    let values: Vec<f32> = random(30).take(len).map(|x| (x >> 40) as f32 / 3.0).collect();
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&in_runs(31, len, 9000)).unwrap(), stream.upload(&values).unwrap());
    let (mut to, mut sums) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<f32>(len).unwrap());
    assert_deterministic(device, || {
        runs::reduce_by_key(&stream, &keys, &values, &mut to, &mut sums, Same, Sum).unwrap();
        bytemuck::cast_slice(&sums.to_vec(&stream).unwrap()).to_vec()
    });
}

fn differences_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty, $function:expr;)*) => { $(
            let host: Vec<$type> = in_runs(32, 2500, 1).into_iter().map(spread).collect();
            check_difference(&stream, &host, $function);
        )* };
    }
    check! {
        u8, map!(|a: u8, b: u8| -> u8 { a.wrapping_sub(b) });
        u64, map!(|a: u64, b: u64| -> u64 { a.wrapping_sub(b) });
        [u8; 3], map!(|a: [u8; 3], b: [u8; 3]| -> [u8; 3] { [a[0], b[1], a[2]] });
        [u32; 3], map!(|a: [u32; 3], b: [u32; 3]| -> [u32; 3] { [a[0], b[1], a[2]] });
        u128, map!(|a: u128, b: u128| -> u128 { a ^ b });
        [u64; 4], map!(|a: [u64; 4], b: [u64; 4]| -> [u64; 4] { [a[0], b[1], a[2], b[3]] });
    }
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1100 } else { TILE + 9 };
    let (host, numbers) = (in_runs(33, len, 4), in_runs(34, len, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    for start in 1..4 {
        let heads = heads(&host[start..], Same);
        let (mut to, mut sums) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<u32>(len).unwrap());
        let room = 4 - start..len;
        let count = runs::reduce_by_key(
            &stream,
            input.slice(start..).unwrap(),
            values.slice(start..).unwrap(),
            to.slice_mut(room.clone()).unwrap(),
            sums.slice_mut(..len - start).unwrap(),
            Same,
            Sum,
        )
        .map(|count| count.get(&stream).unwrap() as usize);
        if start < 2 {
            assert!(matches!(count.unwrap_err(), Error::LengthMismatch { .. }), "from {start}");
            continue;
        }
        let count = count.unwrap();
        assert_eq!(count, heads.len() - 1);
        let expected: Vec<u32> = heads[..count].iter().map(|&i| host[start + i]).collect();
        assert_same(&to.slice(room.start..room.start + count).unwrap().to_vec(&stream).unwrap(), &expected, "keys");
        let expected = totals(&heads, &numbers[start..], Sum);
        assert_same(&sums.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "totals");

        let mut lengths = stream.zeroed::<u32>(len).unwrap();
        let output = to.slice_mut(room.clone()).unwrap();
        runs::encode(&stream, input.slice(start..).unwrap(), output, &mut lengths, Same).unwrap();
        let expected: Vec<u32> = heads.windows(2).map(|run| (run[1] - run[0]) as u32).collect();
        assert_same(&lengths.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "lengths");
        let mut decoded = stream.zeroed::<u32>(len).unwrap();
        let (elements, lengths) = (to.slice(room.start..room.start + count).unwrap(), lengths.slice(..count).unwrap());
        runs::decode(&stream, elements, lengths, decoded.slice_mut(start..).unwrap()).unwrap();
        assert_same(&decoded.to_vec(&stream).unwrap()[start..], &host[start..], "decoded");
    }
    // Elements that are aligned to less than their size.
    let pairs: Vec<[u16; 2]> = host.iter().map(|&x| spread(x)).collect();
    let words: Vec<u16> = std::iter::once(0).chain(pairs.iter().flatten().copied()).collect();
    let words = stream.upload(&words).unwrap();
    let address = words.slice(1..).unwrap().as_ptr().cast::<[u16; 2]>();
    // SAFETY: they lie in the vector, which stays until the test ends, and are aligned for their type.
    let input = unsafe { DeviceSlice::from_raw_parts(device, address, len) };
    let mut output = stream.zeroed::<[u16; 2]>(len).unwrap();
    let equality = equality!(|a: [u16; 2], b: [u16; 2]| a == b);
    let count = runs::unique(&stream, input, &mut output, equality).unwrap().get(&stream).unwrap() as usize;
    let heads = heads(&pairs, equality);
    let expected: Vec<[u16; 2]> = heads[..heads.len() - 1].iter().map(|&i| pairs[i]).collect();
    assert_same(&output.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "misaligned elements");
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 2 * TILE + 77 };
    let keys: Vec<u32> = (0..len as u32).map(|i| i / 7).collect();
    let sevenths = || map(counting(0u32, len), map!(|i: u32| -> u32 { i / 7 }));
    let heads = heads(&keys, Same);
    let runs = heads.len() - 1;
    let expected: Vec<u32> = (0..runs as u32).collect();
    let (mut to, mut lengths) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<u64>(len).unwrap());
    let count = runs::unique(&stream, sevenths(), &mut to, Same).unwrap();
    assert_eq!(count.get(&stream).unwrap(), runs as u64);
    assert_same(&to.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected, "unique");

    runs::encode(&stream, sevenths(), &mut to, &mut lengths, Same).unwrap();
    let expected_lengths: Vec<u64> = heads.windows(2).map(|run| (run[1] - run[0]) as u64).collect();
    assert_same(&lengths.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected_lengths, "lengths");

    // Keys, values and both.
    let on_keys = stream.upload(&keys).unwrap();
    let numbers: Vec<u64> = (0..len as u64).map(|i| i * i).collect();
    let on_numbers = stream.upload(&numbers).unwrap();
    let squares = || map(counting(0u64, len), map!(|i: u64| -> u64 { i * i }));
    let expected = totals(&heads, &numbers, Sum);
    let mut sums = stream.zeroed::<u64>(len).unwrap();
    for which in 0..3 {
        let count = match which {
            0 => runs::reduce_by_key(&stream, sevenths(), &on_numbers, &mut to, &mut sums, Same, Sum),
            1 => runs::reduce_by_key(&stream, &on_keys, squares(), &mut to, &mut sums, Same, Sum),
            _ => runs::reduce_by_key(&stream, sevenths(), squares(), &mut to, &mut sums, Same, Sum),
        };
        assert_eq!(count.unwrap().get(&stream).unwrap(), runs as u64);
        assert_same(&sums.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected, "totals of sources");
        assert_eq!(to.slice(runs - 1..runs).unwrap().to_vec(&stream).unwrap(), [runs as u32 - 1]);
    }
    // All lengths are 3.
    let mut threes = stream.zeroed::<u32>(3 * runs).unwrap();
    runs::decode(&stream, to.slice(..runs).unwrap(), constant(3u32, runs), &mut threes).unwrap();
    assert_same(&threes.to_vec(&stream).unwrap(), &(0..3 * runs as u32).map(|i| i / 3).collect::<Vec<_>>(), "threes");
}

fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2000 } else { 3 * TILE + 5 };
    let (host, numbers) = (in_runs(35, len, 5), in_runs(36, len, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    let wide: Vec<u128> = host.iter().map(|&x| x.into()).collect();
    let wide = stream.upload(&wide).unwrap();
    for known in [0, 1, len / 3, len - 1, len, 5 * len] {
        let count = DeviceValue::new(&stream, known as u64).unwrap();
        let known = known.min(len);
        let heads = heads(&host[..known], Same);
        let runs = heads.len() - 1;
        let expected = front(heads[..runs].iter().map(|&i| host[i]), 99, len);
        let expected_lengths = front(heads.windows(2).map(|run| (run[1] - run[0]) as u32), 99, len);
        let expected_totals = front(totals(&heads, &numbers[..known], Sum).into_iter(), 99, len);
        let filled = || stream.upload(&vec![99u32; len]).unwrap();

        let (mut to, mut lengths) = (filled(), filled());
        let found = runs::encode(&stream, counted(&input, &count), &mut to, &mut lengths, Same).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&to.to_vec(&stream).unwrap(), &expected, "elements");
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected_lengths, "lengths");
        let mut decoded = filled();
        let total = runs::decode(&stream, &to, counted(&lengths, &found), &mut decoded).unwrap();
        assert_eq!(total.get(&stream).unwrap(), known as u64);
        assert_same(&decoded.to_vec(&stream).unwrap(), &front(host[..known].iter().copied(), 99, len), "decoded");

        for which in 0..3 {
            let (mut to, mut sums) = (filled(), filled());
            let (keys, all) = (counted(&input, &count), counted(&values, &count));
            let found = match which {
                0 => runs::reduce_by_key(&stream, keys, &values, &mut to, &mut sums, Same, Sum),
                1 => runs::reduce_by_key(&stream, &input, all, &mut to, &mut sums, Same, Sum),
                _ => runs::reduce_by_key(&stream, keys, all, &mut to, &mut sums, Same, Sum),
            };
            assert_eq!(found.unwrap().get(&stream).unwrap(), runs as u64);
            assert_same(&to.to_vec(&stream).unwrap(), &expected, "keys");
            assert_same(&sums.to_vec(&stream).unwrap(), &expected_totals, "totals");
        }

        let (mut to, mut to_values) = (filled(), filled());
        let keys = counted(&input, &count);
        let found =
            runs::unique_by_key(&stream, (keys, &values), (&mut to, &mut to_values), Same, Which::Last).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&to.to_vec(&stream).unwrap(), &expected, "keys");
        let expected = front(heads[1..].iter().map(|&i| numbers[i - 1]), 99, len);
        assert_same(&to_values.to_vec(&stream).unwrap(), &expected, "values");

        let (mut to, mut lengths) = (stream.zeroed::<u128>(len).unwrap(), filled());
        let found = runs::encode(&stream, counted(&wide, &count), &mut to, &mut lengths, Same).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected_lengths, "lengths of wide elements");
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&[1u32, 1, 2]).unwrap(), stream.upload(&[1u32, 2]).unwrap());
    let mut three = stream.upload(&[9u32; 3]).unwrap();
    let mut more = stream.upload(&[9u32; 3]).unwrap();
    let mut two = stream.upload(&[9u32; 2]).unwrap();
    macro_rules! refused {
        ($($call:expr),* $(,)?) => { $(
            let error = $call.unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
        )* };
    }
    refused!(
        runs::unique(&stream, &keys, &mut two, Same),
        runs::unique_last(&stream, &keys, &mut two, Same),
        runs::unique_by_key(&stream, (&keys, &values), (&mut three, &mut more), Same, Which::First),
        runs::unique_by_key(&stream, (&keys, &keys), (&mut two, &mut more), Same, Which::First),
        runs::unique_by_key(&stream, (&keys, &keys), (&mut more, &mut two), Same, Which::First),
        runs::encode(&stream, &keys, &mut two, &mut three, Same),
        runs::encode(&stream, &keys, &mut three, &mut two, Same),
        runs::decode(&stream, &keys, &values, &mut three),
        runs::reduce_by_key(&stream, &keys, &values, &mut three, &mut more, Same, Sum),
        runs::reduce_by_key(&stream, &keys, &keys, &mut two, &mut more, Same, Sum),
        runs::reduce_by_key(&stream, &keys, &keys, &mut more, &mut two, Same, Sum),
        runs::adjacent_difference(&stream, &keys, &mut two, map!(|a: u32, b: u32| -> u32 { a ^ b })),
    );
    assert_eq!(three.to_vec(&stream).unwrap(), [9; 3]);
    assert_eq!(more.to_vec(&stream).unwrap(), [9; 3]);
    assert_eq!(two.to_vec(&stream).unwrap(), [9; 2]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let (host, numbers) = (in_runs(37, 3000, 5), in_runs(38, 3000, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    let mut elements = stream.zeroed::<u32>(3000).unwrap();
    let mut lengths = stream.zeroed::<u32>(3000).unwrap();
    let mut decoded = stream.zeroed::<u32>(3000).unwrap();
    let (mut to, mut sums) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
    let (mut graph, (count, _total)) = stream
        .capture(|stream| {
            let count = runs::encode(stream, &input, &mut elements, &mut lengths, Same)?;
            let total = runs::decode(stream, &elements, counted(&lengths, &count), &mut decoded)?;
            runs::reduce_by_key(stream, &input, &values, &mut to, &mut sums, Same, Sum)?;
            Ok((count, total))
        })
        .unwrap();
    for _ in 0..2 {
        // SAFETY: the inputs and the results are still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let heads = heads(&host, Same);
    assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1);
    assert_same(&decoded.to_vec(&stream).unwrap(), &host, "decoded");
    let expected = totals(&heads, &numbers, Sum);
    assert_same(&sums.to_vec(&stream).unwrap()[..expected.len()], &expected, "totals");
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 20_000 };
    let host = in_runs(39, len, 15);
    check_unique(&stream, &host, Same);
    check_encode::<_, u32, _>(&stream, &host, Same);
    check_reduce(&stream, &host, &in_runs(40, len, 1), Same, Sum);
    check_reduce(&stream, &host, &random(41).take(len).map(u128::from).collect::<Vec<_>>(), Same, Sum);
    let input = stream.upload(&host).unwrap();
    let (mut elements, mut lengths) = (stream.uninit::<u32>(len).unwrap(), stream.uninit::<u64>(len).unwrap());
    let count = runs::encode(&stream, &input, &mut elements, &mut lengths, Same).unwrap();
    let mut decoded = stream.uninit::<u32>(len).unwrap();
    runs::decode(&stream, &elements, counted(&lengths, &count), &mut decoded).unwrap();
    assert_same(&decoded.to_vec(&stream).unwrap(), &host, "decoded");
}

/// Many tiles of few elements, in many orders. A GPU has no kernels for such tiles.
fn adversarial_schedules_of_encode(device: &Device) {
    if is_gpu(device) {
        return;
    }
    for (seed, stream) in adversarial_streams(device, 8) {
        let host = in_runs(seed, 3000, if seed % 2 == 0 { 4 } else { 400 });
        let heads = heads(&host, Same);
        let input = stream.upload(&host).unwrap();
        let (mut elements, mut lengths) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
        let (to, to_lengths) = (elements.as_mut_slice(), lengths.as_mut_slice());
        let count = runs::encode_shaped(&stream, input.as_slice(), to, to_lengths, Same, Shape::<32, 1, 2>).unwrap();
        assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1, "{seed}");
        let expected = front(heads.windows(2).map(|run| (run[1] - run[0]) as u32), 0, 3000);
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected, &format!("lengths with seed {seed}"));
    }
}

fn adversarial_schedules_of_reduce(device: &Device) {
    if is_gpu(device) {
        return;
    }
    for (seed, stream) in adversarial_streams(device, 8) {
        let (keys, values) = (in_runs(seed, 3000, if seed % 2 == 0 { 4 } else { 400 }), in_runs(42, 3000, 1));
        let heads = heads(&keys, Same);
        let (on_keys, on_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let (mut to, mut sums) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
        let count = runs::reduce_by_key_shaped(
            &stream,
            on_keys.as_slice(),
            on_values.as_slice(),
            to.as_mut_slice(),
            sums.as_mut_slice(),
            Same,
            Sum,
            Shape::<64, 1, 1>,
        )
        .unwrap();
        assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1, "{seed}");
        let expected = front(totals(&heads, &values, Sum).into_iter(), 0, 3000);
        assert_same(&sums.to_vec(&stream).unwrap(), &expected, &format!("totals with seed {seed}"));
    }
}
