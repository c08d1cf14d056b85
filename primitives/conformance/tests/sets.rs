//! Set operations against a merge on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::compare::{Compare, Greater, IgnoreLowBit, Less};
use gpu_primitives::operator::operator;
use gpu_primitives::{Device, DeviceValue, DeviceVec, Error, Stream, sets};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The items of a tile, for 32-bit keys.
const TILE: usize = 256 * 15;

fn main() -> ExitCode {
    run(cases![
        small_sets,
        equal_items,
        tile_edges,
        long_rows_of_equal_items,
        unequal_sides,
        other_orders,
        every_size,
        values_of_any_size,
        new_memory,
        misaligned_slices,
        unsorted_inputs_do_no_harm,
        wrong_lengths,
        any_schedule,
        deterministic,
        in_a_graph,
        large,
    ])
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Union,
    Intersection,
    Difference,
    SymmetricDifference,
}

const ALL: [Operation; 4] =
    [Operation::Union, Operation::Intersection, Operation::Difference, Operation::SymmetricDifference];

type Pair<K, V> = (K, V);

/// What C++ defines: equal items of both sides are matched one by one.
fn expected<K: Pod, V: Pod, C: Compare<K>>(
    operation: Operation,
    a: &[Pair<K, V>],
    b: &[Pair<K, V>],
    order: C,
) -> Vec<Pair<K, V>> {
    let (mut i, mut j, mut result) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let takes_a = j == b.len() || i < a.len() && order.less(a[i].0, b[j].0);
        let takes_b = i == a.len() || j < b.len() && order.less(b[j].0, a[i].0);
        let keeps = match operation {
            Operation::Union => true,
            Operation::Intersection => !takes_a && !takes_b,
            Operation::Difference => takes_a,
            Operation::SymmetricDifference => takes_a || takes_b,
        };
        if keeps {
            result.push(if takes_b { b[j] } else { a[i] });
        }
        i += usize::from(!takes_b);
        j += usize::from(!takes_a);
    }
    // Equal items of a union: those of the first side come first. Matching them one by one gives that order.
    result
}

fn most(operation: Operation, a: usize, b: usize) -> usize {
    match operation {
        Operation::Union | Operation::SymmetricDifference => a + b,
        Operation::Intersection => a.min(b),
        Operation::Difference => a,
    }
}

fn of_keys<K: Pod, C: Compare<K>>(
    stream: &Stream,
    operation: Operation,
    [a, b]: [&DeviceVec<K>; 2],
    out: &mut DeviceVec<K>,
    order: C,
) -> DeviceValue<u64> {
    match operation {
        Operation::Union => sets::union(stream, a, b, out, order),
        Operation::Intersection => sets::intersection(stream, a, b, out, order),
        Operation::Difference => sets::difference(stream, a, b, out, order),
        Operation::SymmetricDifference => sets::symmetric_difference(stream, a, b, out, order),
    }
    .unwrap()
}

/// Sorts both sides, and checks all operations on keys and pairs.
fn check<K, V, C>(stream: &Stream, mut a: Vec<Pair<K, V>>, mut b: Vec<Pair<K, V>>, order: C)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    C: Compare<K>,
{
    for side in [&mut a, &mut b] {
        side.sort_by(|&(a, _), &(b, _)| match (order.less(a, b), order.less(b, a)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        });
    }
    let a_host: (Vec<K>, Vec<V>) = a.iter().copied().unzip();
    let b_host: (Vec<K>, Vec<V>) = b.iter().copied().unzip();
    let (a_keys, b_keys) = (stream.upload(&a_host.0).unwrap(), stream.upload(&b_host.0).unwrap());
    let (a_values, b_values) = (stream.upload(&a_host.1).unwrap(), stream.upload(&b_host.1).unwrap());
    for operation in ALL {
        let expected = expected(operation, &a, &b, order);
        let room = most(operation, a.len(), b.len());
        let about = format!("{operation:?} of {} and {}", a.len(), b.len());
        let mut out = stream.zeroed::<K>(room + 3).unwrap();
        let count = of_keys(stream, operation, [&a_keys, &b_keys], &mut out, order).get(stream).unwrap() as usize;
        assert_eq!(count, expected.len(), "{about}");
        let found = out.to_vec(stream).unwrap();
        assert!(found[..count].iter().eq(expected.iter().map(|(key, _)| key)), "{about}");
        assert!(found[count..].iter().all(|key| *key == K::zeroed()), "{about}: the rest is not changed");

        let (mut keys, mut values) = (stream.zeroed::<K>(room).unwrap(), stream.zeroed::<V>(room + 1).unwrap());
        let (to, a, b) = ((&mut keys, &mut values), (&a_keys, &a_values), (&b_keys, &b_values));
        let count = match operation {
            Operation::Union => sets::union_pairs(stream, a, b, to, order),
            Operation::Intersection => sets::intersection_pairs(stream, a, &b_keys, to, order),
            Operation::Difference => sets::difference_pairs(stream, a, &b_keys, to, order),
            Operation::SymmetricDifference => sets::symmetric_difference_pairs(stream, a, b, to, order),
        };
        let count = count.unwrap().get(stream).unwrap() as usize;
        let pairs: Vec<Pair<K, V>> =
            keys.to_vec(stream).unwrap().into_iter().zip(values.to_vec(stream).unwrap()).take(count).collect();
        assert_eq!(pairs, expected, "{about}, pairs");
        assert!(values.to_vec(stream).unwrap()[count..].iter().all(|value| *value == V::zeroed()), "{about}");
    }
}

/// Numbers below `range`, with values that tell them apart.
fn numbers(seed: u64, len: usize, range: u32) -> Vec<Pair<u32, u32>> {
    random(seed).take(len).enumerate().map(|(i, x)| (x as u32 % range, (seed as u32) << 24 | (i as u32 + 1))).collect()
}

fn small_sets(device: &Device) {
    let stream = device.stream().unwrap();
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1), (5, 3), (33, 31), (200, 100), (700, 900)] {
        check(&stream, numbers(1, a, 1000), numbers(2, b, 1000), Less);
    }
}

fn equal_items(device: &Device) {
    let stream = device.stream().unwrap();
    for range in [1, 2, 3, 10, 100] {
        for (a, b) in [(60, 40), (400, 700)] {
            check(&stream, numbers(3, a, range), numbers(4, b, range), Less);
        }
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for total in [TILE - 1, TILE, TILE + 1, 3 * TILE, 3 * TILE + 1] {
        if !is_checked(device) || total <= TILE + 1 {
            for range in [700, u32::MAX] {
                check(&stream, numbers(5, total / 2, range), numbers(6, total - total / 2, range), Less);
            }
        }
    }
}

/// Rows that cross several tiles, so that ranks and partners lie far outside of a tile.
fn long_rows_of_equal_items(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { TILE } else { 4 * TILE };
    for (a, b) in [(len, len), (len, len / 3), (len / 4, len + 5)] {
        check(&stream, numbers(7, a, 1), numbers(8, b, 1), Less);
        check(&stream, numbers(9, a, 3), numbers(10, b, 2), Less);
    }
}

fn unequal_sides(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { TILE } else { 3 * TILE };
    for few in [0, 1, 20] {
        check(&stream, numbers(11, len, 5000), numbers(12, few, 5000), Less);
        check(&stream, numbers(13, few, 5000), numbers(14, len, 5000), Less);
    }
    // All of one side before all of the other.
    let after = numbers(15, 500, 100).into_iter().map(|(key, value)| (key + 100, value)).collect::<Vec<_>>();
    check(&stream, numbers(16, 400, 100), after.clone(), Less);
    check(&stream, after, numbers(17, 400, 100), Less);
}

fn other_orders(device: &Device) {
    let stream = device.stream().unwrap();
    check(&stream, numbers(18, 900, 300), numbers(19, 800, 300), Greater);
    check(&stream, numbers(20, 900, 300), numbers(21, 800, 300), IgnoreLowBit);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct LastByte;

macro_rules! last_byte {
    ($($len:literal)*) => { $(
        #[operator]
        impl Compare<[u8; $len]> for LastByte {
            fn less(&self, a: [u8; $len], b: [u8; $len]) -> bool {
                a[$len - 1] < b[$len - 1]
            }
        }
    )* };
}

last_byte!(1 3 5 12 16 32);

fn items<const N: usize>(seed: u64, len: usize) -> Vec<[u8; N]> {
    random(seed).take(len).map(|x| std::array::from_fn(|i| 1 + (x >> (8 * (i % 8))) as u8 % 200)).collect()
}

fn every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 900 } else { 2000 };
    macro_rules! check {
        ($($len:literal)*) => { $(
            let side = |seed, len| items::<$len>(seed, len).into_iter().zip(1u32..).collect::<Vec<_>>();
            check(&stream, side(22, len), side(23, len - 100), LastByte);
        )* };
    }
    check!(1 3 5 12 16 32);
    let side = |seed, len| random(seed).take(len).map(|x| x % 2000).zip(1u32..).collect::<Vec<(u64, u32)>>();
    check(&stream, side(24, len), side(25, len), Less);
}

fn values_of_any_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 900 } else { 2000 };
    macro_rules! check {
        ($($len:literal)*) => { $(
            let side = |seed, len| {
                let keys = numbers(seed, len, 500).into_iter().map(|(key, _)| key);
                keys.zip(items::<$len>(seed + 1, len)).collect::<Vec<_>>()
            };
            check(&stream, side(26, len), side(28, len - 100), Less);
        )* };
    }
    check!(1 3 8 16 20);
    let side = |seed, len| numbers(seed, len, 500).into_iter().map(|(key, x)| (key, u64::from(x))).collect::<Vec<_>>();
    check(&stream, side(30, len), side(31, len), Less);
}

/// Nobody has written the output, and no kernel reads it, whatever the size of the keys.
fn new_memory(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (stream.upload(&[1u16, 2, 7]).unwrap(), stream.upload(&[3u16]).unwrap());
    let mut out = stream.uninit::<u16>(4).unwrap();
    let count = sets::union(&stream, &a, &b, &mut out, Less).unwrap().get(&stream).unwrap();
    assert_eq!((count, out.to_vec(&stream).unwrap()), (4, vec![1, 2, 3, 7]));
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b): (Vec<u32>, Vec<u32>) = ((0..900).collect(), (0..900).map(|x| 2 * x).collect());
    let (device_a, device_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut out = stream.zeroed::<u32>(900).unwrap();
    let (a, b) = (&a[1..], &b[3..]);
    let to = out.slice_mut(1..).unwrap();
    let count =
        sets::intersection(&stream, device_a.slice(1..).unwrap(), device_b.slice(3..).unwrap(), to, Less).unwrap();
    let expected: Vec<u32> = a.iter().copied().filter(|x| b.contains(x)).collect();
    assert_eq!(count.get(&stream).unwrap() as usize, expected.len());
    assert_eq!(out.to_vec(&stream).unwrap()[1..=expected.len()], expected);
}

fn unsorted_inputs_do_no_harm(device: &Device) {
    let stream = device.stream().unwrap();
    let side = |seed| numbers(seed, 3000, 50).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let (a, b) = (stream.upload(&side(32)).unwrap(), stream.upload(&side(33)).unwrap());
    for operation in ALL {
        let room = most(operation, a.len(), b.len());
        let mut out = stream.zeroed::<u32>(room).unwrap();
        let count = of_keys(&stream, operation, [&a, &b], &mut out, Less).get(&stream).unwrap();
        assert!(count as usize <= room);
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (stream.upload(&[1u32, 2, 3]).unwrap(), stream.upload(&[2u32, 3]).unwrap());
    let mut out = stream.zeroed::<u32>(4).unwrap();
    let short = |result: Result<DeviceValue<u64>, Error>, needed, room| {
        assert!(matches!(
            result, Err(Error::LengthMismatch { expected, found, .. }) if expected == needed && found == room
        ));
    };
    short(sets::union(&stream, &a, &b, &mut out, Less), 5, 4);
    short(sets::symmetric_difference(&stream, &a, &b, &mut out, Less), 5, 4);
    short(sets::difference(&stream, &a, &b, out.slice_mut(..2).unwrap(), Less), 3, 2);
    short(sets::intersection(&stream, &a, &b, out.slice_mut(..1).unwrap(), Less), 2, 1);
    let values = stream.upload(&[1u32]).unwrap();
    let mut moved = stream.zeroed::<u32>(4).unwrap();
    short(sets::difference_pairs(&stream, (&a, &values), &b, (&mut out, &mut moved), Less), 3, 1);
    assert_eq!(out.to_vec(&stream).unwrap(), [0; 4]);
}

fn any_schedule(device: &Device) {
    let len = if is_checked(device) { 2000 } else { 2 * TILE };
    for (_, stream) in adversarial_streams(device, 1).take(10) {
        check(&stream, numbers(34, len, 500), numbers(35, len, 600), Less);
    }
}

fn deterministic(device: &Device) {
    let stream = device.stream().unwrap();
    let side = |seed| {
        let mut keys: Vec<u32> = numbers(seed, 2500, 900).into_iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        stream.upload(&keys).unwrap()
    };
    let (a, b) = (side(36), side(37));
    assert_deterministic(device, || {
        let mut out = stream.zeroed::<u32>(5000).unwrap();
        sets::union(&stream, &a, &b, &mut out, Less).unwrap();
        bytemuck::cast_slice(&out.to_vec(&stream).unwrap()).to_vec()
    });
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b): (Vec<u32>, Vec<u32>) = ((0..4000).collect(), (0..2000).map(|x| 3 * x).collect());
    let (a, b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut out = stream.uninit::<u32>(4000).unwrap();
    let (mut graph, count) = stream.capture(|stream| sets::difference(stream, &a, &b, &mut out, Less)).unwrap();
    // SAFETY: the inputs and the output are still there.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(count.get(&stream).unwrap(), 4000 - 1334);
}

fn large(device: &Device) {
    if is_gpu(device) {
        let stream = device.stream().unwrap();
        check(&stream, numbers(38, 1 << 21, 1 << 22), numbers(39, (1 << 21) + 77, 1 << 22), Less);
    }
}
