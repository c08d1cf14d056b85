//! Merge sorts against a stable sort on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::compare::{Compare, Greater, IgnoreLowBit, Less};
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::{Device, Error, Stream, merge_sort};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The items of a run that one block sorts, for pairs of 32 bits.
const RUN: usize = 128 * 15;

fn main() -> ExitCode {
    run(cases![
        small_sorts,
        run_edges,
        many_runs,
        two_merge_passes,
        stable,
        every_size,
        values_of_any_size,
        misaligned_slices,
        any_comparator_gives_a_permutation,
        wrong_lengths,
        deterministic,
        in_a_graph,
        large,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// Checks all four calls.
fn check<K, V, C>(stream: &Stream, keys: &[K], values: &[V], order: C)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    C: Compare<K>,
{
    let len = keys.len();
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    expected.sort_by(|&(a, _), &(b, _)| match (order.less(a, b), order.less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    });
    let (sorted_keys, sorted_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let (mut device_keys, mut device_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let (mut out_keys, mut out_values) = (stream.uninit::<K>(len).unwrap(), stream.uninit::<V>(len).unwrap());

    merge_sort::keys(stream, &device_keys, &mut out_keys, order).unwrap();
    assert_eq!(out_keys.to_vec(stream).unwrap(), sorted_keys, "{len} keys");
    let mut out_keys = stream.uninit::<K>(len).unwrap();
    merge_sort::pairs(stream, (&device_keys, &device_values), (&mut out_keys, &mut out_values), order).unwrap();
    assert_eq!(out_keys.to_vec(stream).unwrap(), sorted_keys, "{len} pairs");
    assert_eq!(out_values.to_vec(stream).unwrap(), sorted_values, "{len} pairs");
    assert_eq!(device_keys.to_vec(stream).unwrap(), keys, "the input is not changed");

    let mut copy = stream.upload(keys).unwrap();
    merge_sort::keys_in_place(stream, &mut copy, order).unwrap();
    assert_eq!(copy.to_vec(stream).unwrap(), sorted_keys, "{len} keys in place");
    merge_sort::pairs_in_place(stream, (&mut device_keys, &mut device_values), order).unwrap();
    assert_eq!(device_keys.to_vec(stream).unwrap(), sorted_keys, "{len} pairs in place");
    assert_eq!(device_values.to_vec(stream).unwrap(), sorted_values, "{len} pairs in place");
}

fn check_numbers(stream: &Stream, seed: u64, len: usize) {
    check(stream, &numbers(seed, len), &(0..len as u32).collect::<Vec<_>>(), Less);
}

fn small_sorts(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 15, 16, 31, 33, 1000] {
        check_numbers(&stream, 1, len);
    }
}

fn run_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for runs in [1, 2, 3] {
        for len in [runs * RUN - 1, runs * RUN, runs * RUN + 1] {
            if !is_checked(device) || runs < 3 {
                check_numbers(&stream, 2, len);
            }
        }
    }
}

fn many_runs(device: &Device) {
    let stream = device.stream().unwrap();
    for runs in [4, 5, 7, 9, 17, 31, 32] {
        if !is_checked(device) || runs < 6 {
            check_numbers(&stream, 3, runs * RUN - runs);
        }
    }
}

/// Groups of runs, of which the last is not complete.
fn two_merge_passes(device: &Device) {
    let stream = device.stream().unwrap();
    if !is_checked(device) {
        for runs in [33, 41, 70, 128] {
            check_numbers(&stream, 4, runs * RUN + 7);
        }
        let ascending: Vec<u32> = (0..40 * RUN as u32).collect();
        check(&stream, &ascending, &ascending, Greater);
        check(&stream, &vec![7u32; 40 * RUN], &ascending, Less);
    }
}

fn stable(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 3 * RUN } else { 36 * RUN };
    let keys: Vec<u32> = numbers(5, len).into_iter().map(|x| x % 10).collect();
    check(&stream, &keys, &(0..len as u32).collect::<Vec<_>>(), IgnoreLowBit);
}

/// Bytes, compared by the last one first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct LastByte;

macro_rules! last_byte {
    ($($len:literal)*) => { $(
        #[operator]
        impl Compare<[u8; $len]> for LastByte {
            fn less(&self, a: [u8; $len], b: [u8; $len]) -> bool {
                a[$len - 1] < b[$len - 1] || a[$len - 1] == b[$len - 1] && a[0] < b[0]
            }
        }
    )* };
}

last_byte!(1 2 3 5 12 16 20 32);

fn items<const N: usize>(seed: u64, len: usize) -> Vec<[u8; N]> {
    random(seed).take(len).map(|x| std::array::from_fn(|i| (x >> (8 * (i % 8))) as u8)).collect()
}

fn every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 2 * RUN + 3 };
    let values: Vec<u32> = (0..len as u32).collect();
    macro_rules! check {
        ($($len:literal)*) => { $( check(&stream, &items::<$len>(6, len), &values, LastByte); )* };
    }
    check!(1 2 3 5 12 16 20 32);
    let numbers: Vec<u64> = random(7).take(len).collect();
    check(&stream, &numbers, &values, Less);
    check(&stream, &numbers.iter().map(|&x| f64::from_bits(x >> 2)).collect::<Vec<_>>(), &values, Greater);
}

fn values_of_any_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 2 * RUN + 3 };
    let keys = numbers(8, len);
    macro_rules! check {
        ($($len:literal)*) => { $( check(&stream, &keys, &items::<$len>(9, len), Less); )* };
    }
    check!(1 3 5 8 16 20);
    check(&stream, &keys, &random(10).take(len).collect::<Vec<_>>(), Less);
    check(&stream, &keys, &vec![(); len], Less);
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(11, RUN + 20);
    let mut keys = stream.upload(&host).unwrap();
    merge_sort::keys_in_place(&stream, keys.slice_mut(3..RUN + 7).unwrap(), Less).unwrap();
    let mut expected = host;
    expected[3..RUN + 7].sort_unstable();
    assert_eq!(keys.to_vec(&stream).unwrap(), expected);
}

/// Not an order: it depends on both keys in an arbitrary way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct Arbitrary {
    factor: u32,
}

#[operator]
impl Compare<u32> for Arbitrary {
    fn less(&self, a: u32, b: u32) -> bool {
        (a * self.factor ^ b * 0x9E37_79B9) & 8 == 0
    }
}

fn any_comparator_gives_a_permutation(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 3 * RUN } else { 40 * RUN };
    for factor in [1, 0x1234_5677] {
        let mut keys = stream.upload(&(0..len as u32).collect::<Vec<_>>()).unwrap();
        merge_sort::keys_in_place(&stream, &mut keys, Arbitrary { factor }).unwrap();
        let mut found = keys.to_vec(&stream).unwrap();
        found.sort_unstable();
        assert!(found.into_iter().eq(0..len as u32));
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = stream.upload(&[3u32, 1, 2]).unwrap();
    let values = stream.upload(&[1u8, 2]).unwrap();
    let (mut out, mut out_values) = (stream.zeroed::<u32>(3).unwrap(), stream.zeroed::<u8>(3).unwrap());
    let short = merge_sort::keys(&stream, &keys, out.slice_mut(..2).unwrap(), Less);
    assert!(matches!(short, Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    let few = merge_sort::pairs(&stream, (&keys, &values), (&mut out, &mut out_values), Less);
    assert!(matches!(few, Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    assert_eq!(out.to_vec(&stream).unwrap(), [0; 3]);
}

fn deterministic(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2000 } else { 5 * RUN };
    let keys: Vec<u32> = numbers(12, len).into_iter().map(|x| x % 100).collect();
    let keys = stream.upload(&keys).unwrap();
    let values = stream.upload(&(0..len as u32).collect::<Vec<_>>()).unwrap();
    assert_deterministic(device, || {
        let (mut out, mut moved) = (stream.uninit::<u32>(len).unwrap(), stream.uninit::<u32>(len).unwrap());
        merge_sort::pairs(&stream, (&keys, &values), (&mut out, &mut moved), Less).unwrap();
        bytemuck::cast_slice(&moved.to_vec(&stream).unwrap()).to_vec()
    });
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(13, 2 * RUN + 5);
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<u32>(host.len()).unwrap();
    let (mut graph, ()) = stream.capture(|stream| merge_sort::keys(stream, &input, &mut output, Less)).unwrap();
    // SAFETY: the input and the output are still there.
    unsafe { graph.launch(&stream).unwrap() };
    let mut expected = host;
    expected.sort_unstable();
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
}

fn large(device: &Device) {
    if is_gpu(device) {
        check_numbers(&device.stream().unwrap(), 14, (1 << 24) + 321);
    }
}
