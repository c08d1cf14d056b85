//! Every primitive with every type of the library, its orders and operations, and values of many sizes: what compiles runs
//! on every device.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::compare::{Compare, Greater, Less};
use gpu_primitives::multisplit::{self, Bucket};
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::scan::{self, Max, Min, Monoid, Sum};
use gpu_primitives::select::{self, Predicate};
use gpu_primitives::sort::{self, Options, RadixKey};
use gpu_primitives::{Device, Stream, merge, search};
use half::{bf16, f16};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![orders_of_numbers, orders_of_structs, values_of_all_sizes, operations, predicates, buckets, radix_keys])
}

/// An element, from random bits; few of them are distinct.
trait Element: Pod + Debug + PartialEq {
    fn of(bits: u64) -> Self;
}

macro_rules! elements {
    ($($type:ty: $bits:ident => $of:expr;)*) => { $(
        impl Element for $type {
            fn of($bits: u64) -> Self {
                $of
            }
        }
    )* };
}

elements! {
    (): _bits => ();
    u8: bits => bits as u8;
    i8: bits => bits as i8;
    u16: bits => (bits % 500) as u16;
    i16: bits => (bits % 500) as i16 - 250;
    u32: bits => (bits % 900) as u32 * 4_000_000;
    i32: bits => ((bits % 900) as u32 * 4_000_000) as i32;
    u64: bits => (bits % 900) << 54;
    i64: bits => ((bits % 900) << 54) as i64;
    u128: bits => u128::from(bits % 900) << 110;
    i128: bits => (u128::from(bits % 900) << 120) as i128;
    f32: bits => (bits % 900) as f32 / 8.0 - 50.0;
    f64: bits => (bits % 900) as f64 / 8.0 - 50.0;
    f16: bits => f16::from_f32((bits % 300) as f32 / 4.0 - 30.0);
    bf16: bits => bf16::from_f32((bits % 200) as f32 / 2.0 - 50.0);
    [u8; 3]: bits => [bits as u8, (bits >> 8) as u8, 7];
    [u8; 5]: bits => [bits as u8, (bits >> 8) as u8, 7, 1, 2];
    [u16; 3]: bits => [bits as u16, 1, 2];
    [u64; 3]: bits => [bits, 1, 2];
    [u8; 31]: bits => std::array::from_fn(|i| (bits >> i) as u8);
    [u64; 5]: bits => [bits, 1, 2, 3, 4];
    [u8; 101]: bits => std::array::from_fn(|i| (bits >> (i % 64)) as u8);
}

/// Words, of which the first and the last differ.
impl<const N: usize> Element for [u32; N]
where
    [u32; N]: Pod,
{
    fn of(bits: u64) -> Self {
        let mut words = [9; N];
        words[0] = (bits % 20) as u32;
        words[N - 1] = (bits >> 8) as u32 % 20;
        words
    }
}

/// A struct of an odd size.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Odd {
    high: u8,
    low: [u8; 6],
}

impl Element for Odd {
    fn of(bits: u64) -> Self {
        Self { high: bits as u8 % 16, low: [(bits >> 8) as u8 % 16; 6] }
    }
}

/// Upwards by the first field, then downwards by the last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct ByFields {
    /// Added to the last field before it is compared: the operator has state.
    shift: u32,
}

macro_rules! by_fields {
    ($($words:literal)*) => { $(
        #[operator]
        impl Compare<[u32; $words]> for ByFields {
            fn less(&self, a: [u32; $words], b: [u32; $words]) -> bool {
                let (last_a, last_b) = (a[$words - 1] + self.shift, b[$words - 1] + self.shift);
                if a[0] != b[0] { a[0] < b[0] } else { last_a > last_b }
            }
        }
    )* };
}

by_fields!(2 3 4 5 6 7 8);

#[operator]
impl Compare<Odd> for ByFields {
    fn less(&self, a: Odd, b: Odd) -> bool {
        let (low_a, low_b) = (a.low[5] as u32 + self.shift, b.low[5] as u32 + self.shift);
        if a.high != b.high { a.high < b.high } else { low_a > low_b }
    }
}

/// Returns the number of elements of a case. It is above a tile where that is cheap.
fn len(stream: &Stream) -> usize {
    match () {
        () if is_gpu(stream.device()) => 20_011,
        () if is_checked(stream.device()) => 311,
        () => 2_311,
    }
}

fn elements<T: Element>(seed: u64, len: usize) -> Vec<T> {
    random(seed).take(len).map(T::of).collect()
}

/// Converts an order to an `Ordering`.
fn ordering<K: Copy, C: Compare<K>>(compare: C) -> impl Fn(&K, &K) -> Ordering + Copy {
    move |&a, &b| match (compare.less(a, b), compare.less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Merges two runs and three, sorts segments, and searches.
fn check_order<K: Element, V: Element, C: Compare<K>>(stream: &Stream, compare: C) {
    let n = len(stream);
    let what = std::any::type_name::<(K, V, C)>();
    let order = ordering(compare);
    let (keys, values) = (elements::<K>(1, n), elements::<V>(2, n));
    let mut pairs: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    for cuts in [vec![0, n / 3, n], vec![0, n / 5, n / 4, n]] {
        for cut in cuts.windows(2) {
            pairs[cut[0]..cut[1]].sort_by(|a, b| order(&a.0, &b.0));
        }
        let mut expected = pairs.clone();
        expected.sort_by(|a, b| order(&a.0, &b.0));
        let (sorted_keys, sorted_values): (Vec<K>, Vec<V>) = pairs.iter().copied().unzip();
        let runs: Vec<_> = cuts
            .windows(2)
            .map(|cut| {
                let range = cut[0]..cut[1];
                (stream.upload(&sorted_keys[range.clone()]).unwrap(), stream.upload(&sorted_values[range]).unwrap())
            })
            .collect();
        let slices: Vec<_> = runs.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
        let mut out = (stream.uninit::<K>(n).unwrap(), stream.uninit::<V>(n).unwrap());
        merge::runs_pairs(stream, &slices, (&mut out.0, &mut out.1), compare).unwrap();
        let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
        assert!(out.0.to_vec(stream).unwrap() == expected_keys, "merge of {} runs: keys of {what}", runs.len());
        assert!(out.1.to_vec(stream).unwrap() == expected_values, "merge of {} runs: values of {what}", runs.len());
        let key_slices: Vec<_> = runs.iter().map(|(k, _)| k.as_slice()).collect();
        let mut placed = stream.uninit::<K>(n).unwrap();
        merge::small_runs_keys(stream, &key_slices, &mut placed, compare).unwrap();
        assert!(placed.to_vec(stream).unwrap() == expected_keys, "place of {what}");

        let needles = stream.upload(&keys).unwrap();
        let mut places = stream.uninit::<u32>(n).unwrap();
        search::lower_bound(stream, &out.0, &needles, &mut places, compare).unwrap();
        let place = |needle: &K| expected_keys.partition_point(|key| order(key, needle).is_lt()) as u32;
        assert!(places.to_vec(stream).unwrap().into_iter().eq(keys.iter().map(place)), "search of {what}");
        let mut places = stream.uninit::<u64>(n).unwrap();
        search::upper_bound_sorted(stream, &out.0, &out.0, &mut places, compare).unwrap();
        let place = |needle: &K| expected_keys.partition_point(|key| order(key, needle).is_le()) as u64;
        assert!(places.to_vec(stream).unwrap().into_iter().eq(expected_keys.iter().map(place)), "search in {what}");
    }

    // The items before the first segment and after the last one stay as they are.
    let cuts = [3, n / 7, n / 7, n / 2, n - 2];
    let offsets = stream.upload(&cuts.map(|cut| cut as u32)).unwrap();
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    for cut in cuts.windows(2) {
        expected[cut[0]..cut[1]].sort_by(|a, b| order(&a.0, &b.0));
    }
    let mut sorted = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    sort::segmented_pairs_in_place(stream, (&mut sorted.0, &mut sorted.1), &offsets, compare).unwrap();
    let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    assert!(sorted.0.to_vec(stream).unwrap() == expected_keys, "segmented sort: keys of {what}");
    assert!(sorted.1.to_vec(stream).unwrap() == expected_values, "segmented sort: values of {what}");
}

fn orders_of_numbers(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            check_order::<$type, (), _>(&stream, Less);
            check_order::<$type, u32, _>(&stream, Greater);
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 f16 bf16);
}

fn orders_of_structs(device: &Device) {
    let stream = device.stream().unwrap();
    let by = ByFields { shift: 1 << 31 };
    macro_rules! check {
        ($($words:literal)*) => { $(check_order::<[u32; $words], u64, _>(&stream, by);)* };
    }
    check!(2 3 4 5 6 7 8);
    check_order::<Odd, [u8; 3], _>(&stream, by);
}

fn values_of_all_sizes(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($value:ty)*) => { $(
            check_order::<u32, $value, _>(&stream, Less);
            check_sort::<f32, $value>(&stream);
            check_multisplit::<u64, $value>(&stream);
            check_multisplit::<[u32; 3], $value>(&stream);
            check_select::<u16, $value>(&stream);
            check_select::<f64, $value>(&stream);
        )* };
    }
    check!(() u8 u16 [u8; 3] f32 [u8; 5] [u16; 3] f64 [u32; 3] u128 [u64; 3] [u8; 31] [u64; 5] [u8; 101]);
    // Keys of more than 8 bytes move fewer sizes.
    check_order::<i128, u16, _>(&stream, Greater);
    check_order::<i128, u64, _>(&stream, Greater);
    check_order::<i128, [u8; 101], _>(&stream, Greater);
}

/// Scans inclusively and exclusively, in place.
fn check_scan<T: Element, M: Monoid<T>>(stream: &Stream, operation: M) {
    let n = len(stream);
    let what = std::any::type_name::<(T, M)>();
    let input = elements::<T>(3, n);
    let first = input[0];
    let mut running = first;
    let (mut exclusive, mut inclusive) = (Vec::new(), Vec::new());
    for &item in &input {
        exclusive.push(running);
        running = operation.combine(running, item);
    }
    running = operation.identity();
    for &item in &input {
        running = operation.combine(running, item);
        inclusive.push(running);
    }
    let on_device = stream.upload(&input).unwrap();
    let mut found = stream.uninit::<T>(n).unwrap();
    scan::inclusive(stream, &on_device, &mut found, operation).unwrap();
    assert!(found.to_vec(stream).unwrap() == inclusive, "inclusive scan of {what}");
    let mut found = stream.upload(&input).unwrap();
    scan::exclusive_in_place(stream, &mut found, operation, first).unwrap();
    assert!(found.to_vec(stream).unwrap() == exclusive, "exclusive scan of {what}");
}

/// The maps `x -> scale * x + shift` of two numbers; two of them, one after the other, are a third.
macro_rules! compositions {
    ($($name:ident of $type:ty;)*) => { $(
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
        struct $name {
            scale: $type,
            shift: [$type; 2],
        }

        impl Element for $name {
            fn of(bits: u64) -> Self {
                Self { scale: bits as $type | 1, shift: [(bits >> 9) as $type; 2] }
            }
        }

        #[operator]
        impl Monoid<$name> for Compose {
            fn identity(&self) -> $name {
                $name { scale: 1, shift: [0; 2] }
            }

            fn combine(&self, a: $name, b: $name) -> $name {
                let mut shift = b.shift;
                for i in 0..2 {
                    shift[i] += a.shift[i] * b.scale;
                }
                $name { scale: a.scale * b.scale, shift }
            }
        }
    )* };
}

/// First the one map, then the other: associative, not commutative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Compose;

compositions! {
    Affine8 of u8;
    Affine16 of u16;
    Affine32 of u32;
    Affine64 of u64;
}

fn operations(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            check_scan::<$type, _>(&stream, Max);
            check_scan::<$type, _>(&stream, Min);
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 f16 bf16);
    macro_rules! check_sums {
        ($($type:ty)*) => { $(check_scan::<$type, _>(&stream, Sum);)* };
    }
    // Sums of floats depend on the grouping.
    check_sums!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128);
    check_scan::<Affine8, _>(&stream, Compose);
    check_scan::<Affine16, _>(&stream, Compose);
    check_scan::<Affine32, _>(&stream, Compose);
    check_scan::<Affine64, _>(&stream, Compose);
}

/// Passes what is at least some element, in another sense for each type.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct AtLeast {
    least: u32,
}

const AT_LEAST: AtLeast = AtLeast { least: 77 };

macro_rules! at_least {
    ($($type:ty: $item:ident, $least:ident => $test:expr;)*) => { $(
        #[operator]
        impl Predicate<$type> for AtLeast {
            fn test(&self, $item: $type) -> bool {
                let $least = self.least;
                $test
            }
        }
    )* };
}

at_least! {
    u8: item, least => item as u32 >= least;
    i8: item, least => item as i32 >= least as i32;
    u16: item, least => item as u32 >= least;
    i16: item, least => item as i32 >= least as i32;
    u32: item, least => item >= least << 24;
    i32: item, least => item >= least as i32;
    u64: item, least => item >= (least as u64) << 56;
    i64: item, least => item >= least as i64;
    u128: item, least => item >> 110 >= least as u128;
    i128: item, least => item >= least as i128;
    f32: item, least => item >= least as f32 - 60.0;
    f64: item, least => item >= least as f64 - 60.0;
    f16: item, least => item.to_f32() >= least as f32 - 60.0;
    bf16: item, least => item.to_f32() >= least as f32 - 60.0;
    [u8; 5]: item, least => item[0] as u32 + item[1] as u32 >= least;
    [u32; 3]: item, least => item[2] * 10 >= least;
    [u32; 7]: item, least => item[6] * 10 >= least;
    [u32; 8]: item, least => item[7] * 10 >= least;
}

/// Selects and partitions, keys alone and with values; also in segments.
fn check_select<T: Element, V: Element>(stream: &Stream)
where
    AtLeast: Predicate<T>,
{
    let n = len(stream);
    let what = std::any::type_name::<(T, V)>();
    let (keys, values) = (elements::<T>(4, n), elements::<V>(5, n));
    let passes = |key: &T| AT_LEAST.test(*key);
    let kept: Vec<usize> = (0..n).filter(|&i| passes(&keys[i])).collect();
    let rest: Vec<usize> = (0..n).filter(|&i| !passes(&keys[i])).collect();
    let of = |indices: &[usize]| -> (Vec<T>, Vec<V>) { indices.iter().map(|&i| (keys[i], values[i])).unzip() };
    let on_device = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let from = (&on_device.0, &on_device.1);
    let mut out = (stream.uninit::<T>(n).unwrap(), stream.uninit::<V>(n).unwrap());

    let count = select::select(stream, from.0, &mut out.0, AT_LEAST).unwrap().get(stream).unwrap() as usize;
    assert_eq!(count, kept.len(), "select of {what}");
    assert!(out.0.slice(..count).unwrap().to_vec(stream).unwrap() == of(&kept).0, "select of {what}");
    let count = select::select_pairs(stream, from, (&mut out.0, &mut out.1), AT_LEAST).unwrap();
    assert_eq!(count.get(stream).unwrap() as usize, kept.len(), "select of {what}");
    assert!(out.0.slice(..kept.len()).unwrap().to_vec(stream).unwrap() == of(&kept).0, "keys of {what}");
    assert!(out.1.slice(..kept.len()).unwrap().to_vec(stream).unwrap() == of(&kept).1, "values of {what}");

    let flags: Vec<u8> = keys.iter().map(|key| u8::from(passes(key))).collect();
    let flags = stream.upload(&flags).unwrap();
    let mut out = (stream.uninit::<T>(n).unwrap(), stream.uninit::<V>(n).unwrap());
    select::flagged_pairs(stream, from, &flags, (&mut out.0, &mut out.1)).unwrap();
    assert!(out.0.slice(..kept.len()).unwrap().to_vec(stream).unwrap() == of(&kept).0, "flagged keys of {what}");
    assert!(out.1.slice(..kept.len()).unwrap().to_vec(stream).unwrap() == of(&kept).1, "flagged values of {what}");

    let both = [&kept[..], &rest[..]].concat();
    select::partition_pairs(stream, from, (&mut out.0, &mut out.1), AT_LEAST).unwrap();
    assert!(out.0.to_vec(stream).unwrap() == of(&both).0, "partitioned keys of {what}");
    assert!(out.1.to_vec(stream).unwrap() == of(&both).1, "partitioned values of {what}");

    let cuts = [2, n / 3, n - 5];
    let offsets = stream.upload(&cuts.map(|cut| cut as u32)).unwrap();
    let found = select::segmented_pairs(stream, from, &offsets, (&mut out.0, &mut out.1), AT_LEAST).unwrap();
    let within: Vec<usize> = kept.iter().copied().filter(|i| (cuts[0]..cuts[2]).contains(i)).collect();
    let before = |cut: usize| within.iter().filter(|&&i| i < cut).count() as u32;
    assert_eq!(found.to_vec(stream).unwrap(), cuts.map(before), "segments of {what}");
    assert!(out.0.slice(..within.len()).unwrap().to_vec(stream).unwrap() == of(&within).0, "segments of {what}");
    assert!(out.1.slice(..within.len()).unwrap().to_vec(stream).unwrap() == of(&within).1, "segments of {what}");
}

fn predicates(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(check_select::<$type, u32>(&stream);)* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 f16 bf16 [u8; 5] [u32; 3] [u32; 7] [u32; 8]);
}

/// Bucket functions of all types, with state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
struct Spread {
    divisor: u32,
}

const SPREAD: Spread = Spread { divisor: 37 };

macro_rules! spread {
    ($($type:ty: $key:ident => $number:expr;)*) => { $(
        #[operator]
        impl Bucket<$type> for Spread {
            fn bucket(&self, $key: $type) -> u32 {
                let number: u32 = $number;
                number % self.divisor
            }
        }
    )* };
}

spread! {
    u8: key => key as u32;
    i8: key => key as u8 as u32;
    u16: key => key as u32;
    i16: key => key as u16 as u32;
    u32: key => key >> 20;
    i32: key => key as u32 >> 20;
    u64: key => (key >> 50) as u32;
    i64: key => (key >> 50) as u32;
    u128: key => (key >> 105) as u32;
    i128: key => (key >> 115) as u32;
    f32: key => (key + 60.0) as u32;
    f64: key => (key + 60.0) as u32;
    f16: key => (key.to_f32() + 60.0) as u32;
    bf16: key => (key.to_f32() + 60.0) as u32;
    [u8; 5]: key => key[0] as u32;
    [u32; 3]: key => key[2];
    [u32; 8]: key => key[7];
}

fn check_multisplit<K: Element, V: Element>(stream: &Stream)
where
    Spread: Bucket<K>,
{
    let n = len(stream);
    let what = std::any::type_name::<(K, V)>();
    // Numbers beyond the last bucket count as the last one.
    let buckets = 30;
    let (keys, values) = (elements::<K>(6, n), elements::<V>(7, n));
    let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    let bucket = |key: K| SPREAD.bucket(key).min(buckets - 1);
    expected.sort_by_key(|pair| bucket(pair.0));
    let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
    let (on_device, values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let mut out = (stream.uninit::<K>(n).unwrap(), stream.uninit::<V>(n).unwrap());
    let offsets = multisplit::pairs(stream, (&on_device, &values), (&mut out.0, &mut out.1), buckets, SPREAD).unwrap();
    assert!(out.0.to_vec(stream).unwrap() == expected_keys, "multisplit: keys of {what}");
    assert!(out.1.to_vec(stream).unwrap() == expected_values, "multisplit: values of {what}");
    let before = |b| expected_keys.partition_point(|&key| bucket(key) < b) as u64;
    assert!(offsets.to_vec(stream).unwrap().into_iter().eq((0..=buckets).map(before)), "multisplit of {what}");
}

fn buckets(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(check_multisplit::<$type, u32>(&stream);)* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 f16 bf16 [u8; 5] [u32; 3] [u32; 8]);
}

/// Sorts upwards and downwards, to another buffer, in place, and between two buffers. Where each access is checked, which takes long, each of
/// these is done once.
fn check_sort<K: Element + RadixKey, V: Element>(stream: &Stream) {
    let n = len(stream);
    let what = std::any::type_name::<(K, V)>();
    let (keys, values) = (elements::<K>(8, n), elements::<V>(9, n));
    let on_device = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    let is_thorough = !is_checked(stream.device());
    for options in [Options::new(), Options::new().descending()] {
        let ascends = options == Options::new();
        let mut expected: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
        match ascends {
            true => expected.sort_by_key(|pair| K::code(pair.0)),
            false => expected.sort_by_key(|pair| std::cmp::Reverse(K::code(pair.0))),
        }
        let (expected_keys, expected_values): (Vec<K>, Vec<V>) = expected.into_iter().unzip();
        if ascends || is_thorough {
            let mut out = (stream.uninit::<K>(n).unwrap(), stream.uninit::<V>(n).unwrap());
            sort::pairs(stream, (&on_device.0, &on_device.1), (&mut out.0, &mut out.1), options.clone()).unwrap();
            assert!(out.0.to_vec(stream).unwrap() == expected_keys, "sort: keys of {what}");
            assert!(out.1.to_vec(stream).unwrap() == expected_values, "sort: values of {what}");
        }
        if !ascends || is_thorough {
            let mut out = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            sort::pairs_in_place(stream, (&mut out.0, &mut out.1), options.clone()).unwrap();
            assert!(out.0.to_vec(stream).unwrap() == expected_keys, "sort in place: keys of {what}");
            assert!(out.1.to_vec(stream).unwrap() == expected_values, "sort in place: values of {what}");
        }
        if (ascends && size_of::<V>() == 0) || is_thorough {
            let mut first = stream.upload(&keys).unwrap();
            let mut second = stream.uninit::<K>(n).unwrap();
            let side = sort::keys_double_buffered(stream, &mut first, &mut second, options).unwrap();
            let found = if side == sort::Side::First { first } else { second };
            assert!(found.to_vec(stream).unwrap() == expected_keys, "double-buffered sort of {what}");
        }
    }
}

/// Words as a number of 64 or 128 bits, the first word first.
macro_rules! coded {
    ($($name:ident, [$word:ty; $words:literal], $code:ty, $key:ident => $of:expr;)*) => { $(
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
        struct $name([$word; $words]);

        impl Element for $name {
            fn of(bits: u64) -> Self {
                let mut words = [3; $words];
                words[0] = (bits % 9) as $word;
                words[$words - 1] = (bits >> 9) as $word % 100;
                Self(words)
            }
        }

        #[operator]
        impl RadixKey for $name {
            type Code = $code;
            fn code($key: Self) -> $code {
                $of
            }
        }
    )* };
}

coded! {
    Coded3, [u8; 3], u32, key => (key.0[0] as u32) << 8 | key.0[2] as u32;
    Coded8, [u16; 4], u32, key => (key.0[0] as u32) << 16 | key.0[3] as u32;
    Coded12, [u32; 3], u64, key => (key.0[0] as u64) << 32 | key.0[2] as u64;
    Coded16, [u32; 4], u128, key => (key.0[0] as u128) << 96 | key.0[3] as u128;
    Coded20, [u32; 5], u64, key => (key.0[0] as u64) << 32 | key.0[4] as u64;
    Coded32, [u64; 4], u128, key => (key.0[0] as u128) << 64 | key.0[3] as u128;
}

fn radix_keys(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            check_sort::<$type, ()>(&stream);
            check_sort::<$type, u32>(&stream);
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64 f16 bf16 Coded3 Coded8 Coded12 Coded16 Coded20 Coded32);
}
