//! Sorts of slices in host memory, compared with the stable sort of `std`. Little device memory makes many parts of few elements.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::{Case, cases, is_checked, run};
use gpu_primitives::host_sort::{self, Options, Progress};
use gpu_primitives::operator::{Record, operator, sort_by};
use gpu_primitives::sort::{self, RadixKey, U256};
use gpu_primitives::{CpuOptions, Device, Error};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

fn main() -> ExitCode {
    let own = cases![lengths_at_edges, page_locked_memory];
    // What failures leave is up to host code. And kernels are those of the sort, which its own tests simulate for all types and options.
    let of_host_code = [
        Case::new("keys_of_all_kinds", keys_of_all_kinds).of_host_code(),
        Case::new("directions_and_bits", directions_and_bits).of_host_code(),
        Case::new("values_of_all_sizes", values_of_all_sizes).of_host_code(),
        Case::new("equal_keys_keep_their_order", equal_keys_keep_their_order).of_host_code(),
        Case::new("memory_that_runs_out", memory_that_runs_out).of_host_code(),
        Case::new("panics_of_the_caller", panics_of_the_caller).of_host_code(),
        Case::new("progress_reaches_all", progress_reaches_all).of_host_code(),
        Case::new("wrong_lengths_and_bits", wrong_lengths_and_bits).of_host_code(),
        Case::new("one_part", one_part).of_host_code(),
        Case::new("several_threads", several_threads).of_host_code(),
    ];
    run(&[&own[..], &of_host_code].concat())
}

/// Returns so many numbers, made of random ones.
fn random<T>(len: usize, seed: u64, of: impl Fn(u64) -> T) -> Vec<T> {
    gpu_conformance::data::random(seed).take(len).map(of).collect()
}

/// The fewest elements of a part: with no memory to speak of, all parts have so many.
const PART: usize = 64;

/// Options with almost no device memory.
fn tiny<'a>() -> Options<'a> {
    Options::new().memory(1)
}

/// Compares all four functions with what a stable sort gives.
fn check<K: RadixKey<Code: Debug> + Debug + PartialEq, V: Pod + Debug + PartialEq>(
    device: &Device,
    keys: &[K],
    value: impl Fn(usize) -> V,
    options: &Options<'_>,
    order: impl Fn(&K, &K) -> std::cmp::Ordering,
) {
    let values: Vec<V> = (0..keys.len()).map(value).collect();
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    expected.sort_by(|a, b| order(&a.0, &b.0));
    let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let what = format!("{} keys, {options:?}", keys.len());

    let (mut to_keys, mut to_values) = (vec![K::zeroed(); keys.len()], vec![V::zeroed(); keys.len()]);
    host_sort::keys(device, keys, &mut to_keys, options.clone()).unwrap();
    assert_eq!(to_keys, expected_keys, "{what}");
    to_keys.fill(K::zeroed());
    host_sort::pairs(device, (keys, &values), (&mut to_keys, &mut to_values), options.clone()).unwrap();
    assert_eq!((&to_keys, &to_values), (&expected_keys, &expected_values), "{what}");

    let (mut own_keys, mut own_values) = (keys.to_vec(), values.clone());
    host_sort::keys_in_place(device, &mut own_keys, &mut to_keys, options.clone()).unwrap();
    assert_eq!(own_keys, expected_keys, "{what}");
    own_keys.copy_from_slice(keys);
    let second = (&mut to_keys[..], &mut to_values[..]);
    host_sort::pairs_in_place(device, (&mut own_keys, &mut own_values), second, options.clone()).unwrap();
    assert_eq!((own_keys, own_values), (expected_keys, expected_values), "{what}");
}

fn lengths_at_edges(device: &Device) {
    let lengths: &[usize] = if is_checked(device) {
        &[0, 1, PART, PART + 1, 3 * PART - 1]
    } else {
        &[0, 1, 2, PART - 1, PART, PART + 1, 2 * PART, 3 * PART - 1, 10 * PART + 7, 40 * PART]
    };
    for &len in lengths {
        let keys = random(len, len as u64, |x| x as u32);
        check(device, &keys, |i| i as u32, &tiny(), u32::cmp);
    }
}

/// A key whose code is a function of it, and does not give it back.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Person {
    name: [u32; 2],
    age: u32,
}

#[operator]
impl RadixKey for Person {
    type Code = u32;
    const BITS: u32 = 7;
    fn code(key: Self) -> u32 {
        key.age
    }
}

/// A key with a code of 256 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Long([u64; 4]);

#[operator]
impl RadixKey for Long {
    type Code = U256;
    fn code(key: Self) -> U256 {
        U256 { high: (key.0[0] as u128) << 64 | key.0[1] as u128, low: (key.0[2] as u128) << 64 | key.0[3] as u128 }
    }
}

fn keys_of_all_kinds(device: &Device) {
    let numbers = random(7 * PART + 9, 3, |x| x);
    let of = |f: &dyn Fn(u64) -> u64| numbers.iter().map(|&x| f(x)).collect::<Vec<_>>();
    let index = |i: usize| i as u32;
    check(device, &numbers.iter().map(|&x| x as u8).collect::<Vec<_>>(), index, &tiny(), u8::cmp);
    check(device, &numbers.iter().map(|&x| x as i16).collect::<Vec<_>>(), index, &tiny(), i16::cmp);
    check(device, &numbers.iter().map(|&x| x as i32).collect::<Vec<_>>(), index, &tiny(), i32::cmp);
    let floats: Vec<f32> = numbers.iter().map(|&x| (x as i64 >> 40) as f32 / 8.0).collect();
    check(device, &floats, index, &tiny(), f32::total_cmp);
    check(device, &of(&|x| x), |i| i as u64, &tiny(), u64::cmp);
    check(device, &of(&|x| x % 5), |i| i as u64, &tiny(), u64::cmp);
    check(device, &numbers.iter().map(|&x| f64::from_bits(x)).collect::<Vec<_>>(), index, &tiny(), |a, b| {
        a.total_cmp(b)
    });
    check(device, &numbers.iter().map(|&x| u128::from(x) << 60).collect::<Vec<_>>(), index, &tiny(), u128::cmp);
    check(device, &numbers.iter().map(|&x| Long([x % 3, 7, x, 1])).collect::<Vec<_>>(), index, &tiny(), |a, b| {
        a.0.cmp(&b.0)
    });
    let people: Vec<Person> = (0..).zip(&numbers).map(|(i, &x)| Person { name: [i, i], age: x as u32 % 100 }).collect();
    check(device, &people, index, &tiny(), |a, b| a.age.cmp(&b.age));
}

fn directions_and_bits(device: &Device) {
    let len = 7 * PART + 9;
    let numbers = random(len, 4, |x| x as u32);
    let order = sort::Options::new().descending();
    check(device, &numbers, |i| i as u8, &tiny().order(order), |a, b| b.cmp(a));
    for bits in [4..9, 0..1, 31..32, 7..7, 3..32] {
        let cut = |x: &u32| u64::from(*x) >> bits.start & ((1 << bits.len()) - 1);
        let order = sort::Options::new().bits(bits.clone());
        check(device, &numbers, |i| i as u16, &tiny().order(order.clone()), |a, b| cut(a).cmp(&cut(b)));
        check(device, &numbers, |i| i as u16, &tiny().order(order.descending()), |a, b| cut(b).cmp(&cut(a)));
    }
    let (mut sorted, mut values) = (vec![0; len], vec![0; len]);
    let mut expected = numbers.clone();
    expected.sort_by_key(|x| x % 10);
    host_sort::keys_by(device, &numbers, &mut sorted, sort_by!(|x: u32| -> u32 { x % 10 }), tiny()).unwrap();
    assert_eq!(sorted, expected);
    let pairs = (&numbers[..], &numbers[..]);
    let to = (&mut sorted[..], &mut values[..]);
    host_sort::pairs_by(device, pairs, to, sort_by!(ten: u32 = 10; |x: u32| -> u32 { x % ten }), tiny()).unwrap();
    assert_eq!((&sorted, &values), (&expected, &expected));
}

fn values_of_all_sizes(device: &Device) {
    let keys = random(3 * PART, 5, |x| x as u16);
    check(device, &keys, |i| i as u8, &tiny(), u16::cmp);
    check(device, &keys, |i| [i as u8; 3], &tiny(), u16::cmp);
    check(device, &keys, |i| [i as u64; 2], &tiny(), u16::cmp);
    check(device, &keys, |i| [i as u32; 25], &tiny(), u16::cmp);
    check(device, &keys, |_| (), &tiny(), u16::cmp);
}

fn page_locked_memory(device: &Device) {
    let keys = random(5 * PART + 3, 6, |x| x);
    let mut expected = keys.clone();
    expected.sort_unstable();
    let (mut data, mut second) = (device.pinned(keys.len()).unwrap(), device.pinned(keys.len()).unwrap());
    data.copy_from_slice(&keys);
    host_sort::keys_in_place(device, &mut data, &mut second, tiny()).unwrap();
    assert_eq!(*data, expected);
}

fn equal_keys_keep_their_order(device: &Device) {
    for different in [1u32, 2, 3, 50] {
        let keys = random(33 * PART + 5, 7, |x| x as u32 % different);
        check(device, &keys, |i| i as u32, &tiny(), u32::cmp);
    }
}

/// Device memory runs out at every point, one after the other. No element is lost.
fn memory_that_runs_out(device: &Device) {
    if device.kind() != gpu_primitives::DeviceKind::Cpu {
        return;
    }
    let keys = random(5 * PART, 8, |x| x as u32);
    let values: Vec<[u8; 3]> = (0..keys.len()).map(|i| [i as u8, (i >> 8) as u8, 1]).collect();
    let all = |keys: &[u32], values: &[[u8; 3]]| {
        let mut all: Vec<_> = keys.iter().copied().zip(values.iter().copied()).collect();
        all.sort_unstable();
        all
    };
    let (mut failed, mut sorted) = (0, 0);
    // How much is needed at once depends on how the threads of the sort happen to overlap.
    for limit in (0..2_000).step_by(100).chain((2_000..60_000).step_by(2_000)) {
        let small = Device::cpu_with(CpuOptions { memory_limit: Some(limit), ..CpuOptions::default() });
        let (mut own_keys, mut own_values) = (keys.clone(), values.clone());
        let mut second = (vec![0; keys.len()], vec![[0; 3]; keys.len()]);
        let second = (&mut second.0[..], &mut second.1[..]);
        match host_sort::pairs_in_place(&small, (&mut own_keys, &mut own_values), second, tiny()) {
            Ok(()) => {
                assert!(own_keys.is_sorted());
                sorted += 1;
            }
            Err(Error::OutOfMemory { .. }) => failed += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(all(&own_keys, &own_values) == all(&keys, &values), "{limit} bytes of device memory");
    }
    assert!(failed > 3 && sorted > 3, "{failed} failed, {sorted} sorted");
}

/// A function of the caller panics in either pass. No element is lost.
fn panics_of_the_caller(device: &Device) {
    let keys = random(4 * PART, 9, |x| x as u32);
    let mut expected = keys.clone();
    expected.sort_unstable();
    for at in 1..=8 {
        let note = |progress: Progress| assert!(progress.moved < at * PART, "enough of this");
        let (mut own, mut second) = (keys.clone(), vec![0; keys.len()]);
        let sort = || host_sort::keys_in_place(device, &mut own, &mut second, tiny().progress(&note));
        assert!(catch_unwind(AssertUnwindSafe(sort)).is_err());
        own.sort_unstable();
        assert_eq!(own, expected, "a panic at part {at}");
    }
}

fn progress_reaches_all(device: &Device) {
    let keys = random(3 * PART + 1, 10, |x| x as u32);
    let steps = Mutex::new(Vec::new());
    let note = |progress: Progress| steps.lock().unwrap().push((progress.moved, progress.all));
    host_sort::keys(device, &keys, &mut vec![0; keys.len()], tiny().progress(&note)).unwrap();
    let all = 2 * keys.len();
    let expected = [64, 128, 192, 193, 257, 321, 385, 386].map(|moved| (moved, all));
    assert_eq!(steps.into_inner().unwrap(), expected);
}

fn wrong_lengths_and_bits(device: &Device) {
    let (mut data, mut short) = (vec![3u32, 1, 2], vec![0u32; 2]);
    let mismatch = |result| assert!(matches!(result, Err(Error::LengthMismatch { .. })));
    mismatch(host_sort::keys(device, &data, &mut short, tiny()));
    mismatch(host_sort::keys_in_place(device, &mut data, &mut short, tiny()));
    mismatch(host_sort::pairs(device, (&data, &short), (&mut [0; 3], &mut [0; 3]), tiny()));
    mismatch(host_sort::pairs(device, (&data, &data), (&mut [0; 3], &mut short), tiny()));
    mismatch(host_sort::pairs_in_place(device, (&mut data, &mut [0; 3]), (&mut [0; 3], &mut short), tiny()));
    let order = sort::Options::new().bits(30..33);
    let error = host_sort::keys_in_place(device, &mut data, &mut [9; 3], tiny().order(order)).unwrap_err();
    assert!(matches!(error, Error::BitRange { start: 30, end: 33, bits: 32 }), "{error}");
    assert_eq!(data, [3, 1, 2]);
}

/// With all memory, few elements are one part.
fn one_part(device: &Device) {
    let keys = random(5000, 11, |x| x as i64);
    check(device, &keys, |i| i as u32, &Options::new(), i64::cmp);
}

fn several_threads(device: &Device) {
    let keys = random(6 * PART, 12, |x| x as u32);
    let mut expected = keys.clone();
    expected.sort_unstable();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut sorted = vec![0; keys.len()];
                host_sort::keys(device, &keys, &mut sorted, tiny()).unwrap();
                assert_eq!(sorted, expected);
            });
        }
    });
}
