//! Lower and upper bounds of unsorted and sorted needles.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{ByAddress, CyclicFrom, Dice, Place};
use gpu_conformance::{cases, is_checked, is_simulated, run};
use gpu_primitives::compare::{Compare, IgnoreLowBit, Less};
use gpu_primitives::search::{self, IndexOut};
use gpu_primitives::{Device, DeviceKind, Error, Stream};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The number of elements and needles in a tile of the search for sorted needles.
const TILE: usize = 256 * 15;
/// The number of elements that fit into shared memory without an index.
const TOP: usize = 4096;

fn main() -> ExitCode {
    run(cases![
        small_haystacks,
        small_instances,
        levels_of_the_index,
        tile_edges,
        all_equal,
        beyond_both_ends,
        custom_keys,
        comparators_with_state,
        misaligned_slices,
        random_lengths_and_keys,
        contradictory_comparators,
        large,
        lengths_must_agree,
        another_type,
    ])
}

fn ordering<K: Copy, C: Compare<K>>(compare: C) -> impl Fn(&K, &K) -> Ordering {
    move |&a, &b| match (compare.less(a, b), compare.less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

fn sorted<K: Copy, C: Compare<K>>(keys: impl Iterator<Item = K>, compare: C) -> Vec<K> {
    let mut keys: Vec<K> = keys.collect();
    keys.sort_by(ordering(compare));
    keys
}

fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} needles, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Checks all searches, with positions of type `I`, for the needles as given and sorted.
fn check_as<K: Pod, C: Compare<K>, I: IndexOut + Debug + PartialEq>(
    stream: &Stream,
    haystack: &[K],
    needles: &[K],
    compare: C,
) {
    let bounds = |needles: &[K]| -> (Vec<I>, Vec<I>) {
        let bounds = needles.iter().map(|&needle| {
            let lower = haystack.partition_point(|&key| compare.less(key, needle));
            let upper = haystack.partition_point(|&key| !compare.less(needle, key));
            (I::from_position(lower), I::from_position(upper))
        });
        bounds.unzip()
    };
    let hay = stream.upload(haystack).unwrap();
    let mut lower = stream.uninit::<I>(needles.len()).unwrap();
    let mut upper = stream.uninit::<I>(needles.len()).unwrap();

    let expected = bounds(needles);
    let wanted = stream.upload(needles).unwrap();
    search::equal_range(stream, &hay, &wanted, &mut lower, &mut upper, compare).unwrap();
    assert_same(&lower.to_vec(stream).unwrap(), &expected.0, "lower bounds");
    assert_same(&upper.to_vec(stream).unwrap(), &expected.1, "upper bounds");

    let in_order = sorted(needles.iter().copied(), compare);
    let expected = bounds(&in_order);
    let wanted = stream.upload(&in_order).unwrap();
    search::lower_bound_sorted(stream, &hay, &wanted, &mut lower, compare).unwrap();
    assert_same(&lower.to_vec(stream).unwrap(), &expected.0, "lower bounds of sorted needles");
    search::upper_bound_sorted(stream, &hay, &wanted, &mut upper, compare).unwrap();
    assert_same(&upper.to_vec(stream).unwrap(), &expected.1, "upper bounds of sorted needles");
}

fn check<K: Pod, C: Compare<K>>(stream: &Stream, haystack: &[K], needles: &[K], compare: C) {
    check_as::<K, C, u32>(stream, haystack, needles, compare);
}

/// Returns `len` numbers below `below`.
fn numbers(seed: u64, len: usize, below: u64) -> impl Iterator<Item = u32> {
    random(seed).take(len).map(move |x| (x % below) as u32)
}

fn small_haystacks(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 7, 8, 9, 31, 100] {
        for needles in [0, 1, 33, 600] {
            let haystack = sorted(numbers(1, len, 60), Less);
            check(&stream, &haystack, &numbers(2, needles, 64).collect::<Vec<_>>(), Less);
        }
    }
}

/// All built-in instances, with and without an index.
fn small_instances(device: &Device) {
    fn check_both<K: Pod, C: Compare<K>>(stream: &Stream, keys: impl Fn(u64) -> K, compare: C) {
        let haystack = sorted(random(3).take(4500).map(&keys), compare);
        for needles in [20, 600] {
            check_as::<K, C, u32>(stream, &haystack, &random(4).take(needles).map(&keys).collect::<Vec<_>>(), compare);
        }
    }
    fn check_wide<K: Pod, C: Compare<K>>(stream: &Stream, keys: impl Fn(u64) -> K, compare: C) {
        let haystack = sorted(random(3).take(4500).map(&keys), compare);
        for needles in [20, 600] {
            check_as::<K, C, u64>(stream, &haystack, &random(4).take(needles).map(&keys).collect::<Vec<_>>(), compare);
        }
    }
    let stream = device.stream().unwrap();
    check_both(&stream, |x| (x % 3000) as u32, Less);
    check_both(&stream, |x| x, Less);
    check_both(&stream, |x| (x % 3000) as u32, IgnoreLowBit);
    check_both(&stream, |x| x % 3000, IgnoreLowBit);
    check_wide(&stream, |x| (x % 3000) as u32, Less);
    check_wide(&stream, |x| x, Less);
    check_wide(&stream, |x| (x % 3000) as u32, IgnoreLowBit);
    check_wide(&stream, |x| x % 3000, IgnoreLowBit);
    // Signed numbers: only unsorted needles.
    let haystack = sorted(random(5).take(5000).map(|x| x as i32), Less);
    let needles: Vec<i32> = random(6).take(700).map(|x| x as i32).collect();
    let hay = stream.upload(&haystack).unwrap();
    let mut out = stream.uninit::<u32>(700).unwrap();
    search::lower_bound(&stream, &hay, &stream.upload(&needles).unwrap(), &mut out, Less).unwrap();
    let expected: Vec<u32> = needles.iter().map(|n| haystack.partition_point(|k| k < n) as u32).collect();
    assert_same(&out.to_vec(&stream).unwrap(), &expected, "signed numbers");
    let floats: Vec<f32> = haystack.iter().map(|&x| x as f32).collect();
    let wanted: Vec<f32> = needles.iter().map(|&x| x as f32).collect();
    let hay = stream.upload(&floats).unwrap();
    search::upper_bound(&stream, &hay, &stream.upload(&wanted).unwrap(), &mut out, Less).unwrap();
    let expected: Vec<u32> = wanted.iter().map(|n| floats.partition_point(|k| k <= n) as u32).collect();
    assert_same(&out.to_vec(&stream).unwrap(), &expected, "floats");
}

/// Haystacks at the edges of the index's levels.
fn levels_of_the_index(device: &Device) {
    let stream = device.stream().unwrap();
    let mut lens = vec![TOP - 1, TOP, TOP + 1, TOP + 9, 8 * TOP - 1, 8 * TOP, 8 * TOP + 1];
    if !is_checked(device) {
        lens.extend([64 * TOP, 64 * TOP + 1, 64 * TOP + 63, 64 * TOP + 4097]);
    }
    for len in lens {
        let haystack = sorted(numbers(7, len, 100_000), Less);
        let needles: Vec<u32> = numbers(8, len / 64 + 520, 100_010).collect();
        check(&stream, &haystack, &needles, Less);
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for total in [TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1] {
        for needles in [1, total / 2, total - 1, total] {
            let haystack = sorted(numbers(9, total - needles, 5000), Less);
            check(&stream, &haystack, &numbers(10, needles, 5000).collect::<Vec<_>>(), Less);
        }
    }
}

fn all_equal(device: &Device) {
    let stream = device.stream().unwrap();
    for needle in [6, 7, 8] {
        check(&stream, &vec![7u32; TOP + 500], &vec![needle; 1200], Less);
    }
}

fn beyond_both_ends(device: &Device) {
    let stream = device.stream().unwrap();
    let haystack: Vec<u32> = (0..TOP as u32 + 77).map(|i| 10 + 2 * i).collect();
    let needles: Vec<u32> = (0..600).map(|i| [0, 9, 10, 11, u32::MAX, 10 + 2 * (TOP as u32 + 76)][i % 6]).collect();
    check(&stream, &haystack, &needles, Less);
}

fn custom_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let place = |x: u64| Place { city: (x % 13) as u32, street: (x >> 20) as u32 % 29, note: x };
    let haystack = sorted(random(11).take(1500).map(place), ByAddress);
    for needles in [10, 700] {
        check(&stream, &haystack, &random(12).take(needles).map(place).collect::<Vec<_>>(), ByAddress);
    }
}

fn comparators_with_state(device: &Device) {
    let stream = device.stream().unwrap();
    for start in [0, 1 << 31] {
        let compare = CyclicFrom { start };
        let haystack = sorted(random(13).take(TOP + 9).map(|x| x as u32), compare);
        for needles in [10, 600] {
            let needles: Vec<u32> = random(14).take(needles).map(|x| x as u32).collect();
            check(&stream, &haystack, &needles, compare);
        }
    }
}

/// Slices at any offset.
fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let haystack = sorted(numbers(15, TOP + 100, 9000), Less);
    let needles: Vec<u32> = numbers(16, 700, 9000).collect();
    let (hay, wanted) = (stream.upload(&haystack).unwrap(), stream.upload(&needles).unwrap());
    for skip in [1, 2, 3] {
        let mut out = stream.upload(&[9u32; 704]).unwrap();
        let target = out.slice_mut(skip..skip + 690).unwrap();
        search::lower_bound(&stream, hay.slice(skip..).unwrap(), wanted.slice(3..693).unwrap(), target, Less).unwrap();
        let mut expected = vec![9u32; 704];
        for i in 0..690 {
            expected[skip + i] = haystack[skip..].partition_point(|&key| key < needles[3 + i]) as u32;
        }
        assert_same(&out.to_vec(&stream).unwrap(), &expected, "search in a slice");
    }
}

fn random_lengths_and_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (8, 1500) } else { (60, 20_000) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&(vec(0u32..5000, 0..longest), vec(0u32..5000, 0..longest)), |(mut haystack, needles)| {
            haystack.sort_unstable();
            check(&stream, &haystack, &needles, Less);
            Ok(())
        })
        .unwrap();
}

/// Comparators that are not orders: the positions are in range, and no access is out of bounds (as the checked device
/// verifies).
fn contradictory_comparators(device: &Device) {
    fn in_range<C: Compare<u32>>(stream: &Stream, haystack: usize, needles: usize, compare: C) {
        let hay = stream.upload(&random(17).take(haystack).map(|x| x as u32).collect::<Vec<_>>()).unwrap();
        let wanted = stream.upload(&random(18).take(needles).map(|x| x as u32).collect::<Vec<_>>()).unwrap();
        for search in 0..4 {
            let mut out = stream.uninit::<u32>(needles).unwrap();
            match search {
                0 => search::lower_bound(stream, &hay, &wanted, &mut out, compare),
                1 => search::upper_bound(stream, &hay, &wanted, &mut out, compare),
                2 => search::lower_bound_sorted(stream, &hay, &wanted, &mut out, compare),
                _ => search::upper_bound_sorted(stream, &hay, &wanted, &mut out, compare),
            }
            .unwrap();
            assert!(out.to_vec(stream).unwrap().into_iter().all(|position| position as usize <= haystack));
        }
    }
    let stream = device.stream().unwrap();
    for (haystack, needles) in [(0, 5), (1, 1), (500, 20), (TOP + 100, 600), (TILE, TILE)] {
        in_range(&stream, haystack, needles, Dice::ALWAYS);
        in_range(&stream, haystack, needles, Dice { seed: 1 });
        in_range(&stream, haystack, needles, Less);
    }
}

fn large(device: &Device) {
    let len = match device.kind() {
        DeviceKind::CpuChecked => 9 * TOP,
        DeviceKind::Cpu if is_simulated(device) => 1 << 16,
        DeviceKind::Cpu => 1 << 18,
        DeviceKind::Cuda { .. } => 1 << 23,
    };
    let stream = device.stream().unwrap();
    let haystack = sorted(random(19).take(len).map(|x| x as u32), Less);
    let needles: Vec<u32> = random(20).take(len / 4).map(|x| x as u32).collect();
    check(&stream, &haystack, &needles, Less);
}

fn lengths_must_agree(device: &Device) {
    let stream = device.stream().unwrap();
    let hay = stream.upload(&[1u32, 2, 3]).unwrap();
    let mut out = stream.upload(&[7u32; 4]).unwrap();
    let error = search::lower_bound(&stream, &hay, &hay, &mut out, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 4, .. }), "{error}");
    let error = search::upper_bound_sorted(&stream, &hay, &hay, &mut out, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 4, .. }), "{error}");
    assert_eq!(out.to_vec(&stream).unwrap(), [7; 4]);
}

fn another_type(device: &Device) {
    let stream = device.stream().unwrap();
    let hay = stream.upload(&[3i16, 5]).unwrap();
    let needles = stream.upload(&[5i16]).unwrap();
    let mut out = stream.upload(&[9u32]).unwrap();
    search::lower_bound(&stream, &hay, &needles, &mut out, Less).unwrap();
    assert_eq!(out.to_vec(&stream).unwrap(), [1]);
}
