//! Stable merges of two sequences and of many.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{ByAddress, CyclicFrom, Dice, Place};
use gpu_conformance::{cases, is_checked, is_simulated, run};
use gpu_primitives::compare::{Compare, IgnoreLowBit, Less};
use gpu_primitives::lowered::{self, Place as Memory};
use gpu_primitives::{Device, DeviceKind, DeviceVec, Error, Stream, merge};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The number of outputs per tile of two-way and of many-way merges, with items of 4 bytes.
const TILE: usize = 256 * 15;
const RUNS_TILE: usize = (160 - 4) * 17 / 32 * 32 - 128;

fn main() -> ExitCode {
    run(cases![
        small_two,
        small_runs,
        small_instances,
        tile_edges,
        all_equal,
        one_side_first,
        few_distinct,
        every_number_of_runs,
        custom_keys,
        comparators_with_state,
        values_of_other_types,
        misaligned_slices,
        random_lengths_and_keys,
        contradictory_comparators,
        large,
        lengths_must_agree,
        too_many_runs,
        another_type,
        runs_in_host_memory,
        runs_in_host_memory_of_other_streams,
        failing_allocations_of_pieces,
    ])
}

/// Converts the comparator to an `Ordering`.
fn ordering<K: Copy, C: Compare<K>>(compare: C) -> impl Fn(&K, &K) -> Ordering {
    move |&a, &b| match (compare.less(a, b), compare.less(b, a)) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Returns runs of these lengths, sorted by the comparator, with values that identify run and position.
fn sorted_runs<K: Copy, C: Compare<K>>(
    lens: &[usize],
    compare: C,
    mut key: impl FnMut(usize, usize) -> K,
) -> Vec<(Vec<K>, Vec<u32>)> {
    let runs = lens.iter().enumerate().map(|(run, &len)| {
        let mut keys: Vec<K> = (0..len).map(|i| key(run, i)).collect();
        keys.sort_by(ordering(compare));
        (keys, (0..len).map(|i| (run << 26 | i) as u32).collect())
    });
    runs.collect()
}

/// Returns the stable merge: a stable sort of all runs, concatenated.
fn oracle<K: Copy, V: Copy, C: Compare<K>>(runs: &[(Vec<K>, Vec<V>)], compare: C) -> (Vec<K>, Vec<V>) {
    let mut all: Vec<(K, V)> = runs.iter().flat_map(|(k, v)| k.iter().copied().zip(v.iter().copied())).collect();
    all.sort_by(|a, b| ordering(compare)(&a.0, &b.0));
    all.into_iter().unzip()
}

/// Merges on the device: by the two-way merge if there are two runs, else by the many-way merge.
fn merged<K: Pod, V: Pod, C: Compare<K>>(
    stream: &Stream,
    runs: &[(Vec<K>, Vec<V>)],
    compare: C,
    as_runs: bool,
) -> Result<(Vec<K>, Vec<V>), Error> {
    let on_device: Vec<_> = runs.iter().map(|(k, v)| (stream.upload(k).unwrap(), stream.upload(v).unwrap())).collect();
    let total = runs.iter().map(|(k, _)| k.len()).sum();
    let mut keys = stream.uninit::<K>(total)?;
    let mut values = stream.uninit::<V>(total)?;
    if as_runs {
        let slices: Vec<_> = on_device.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
        merge::runs_pairs(stream, &slices, (&mut keys, &mut values), compare)?;
    } else {
        let [a, b] = &on_device[..] else { panic!("two runs") };
        merge::pairs(stream, (&a.0, &a.1), (&b.0, &b.1), (&mut keys, &mut values), compare)?;
    }
    Ok((keys.to_vec(stream)?, values.to_vec(stream)?))
}

fn merged_keys<K: Pod, C: Compare<K>, V>(stream: &Stream, runs: &[(Vec<K>, V)], compare: C) -> Vec<K> {
    let on_device: Vec<_> = runs.iter().map(|(k, _)| stream.upload(k).unwrap()).collect();
    let mut keys = stream.uninit::<K>(runs.iter().map(|(k, _)| k.len()).sum()).unwrap();
    if let [a, b] = &on_device[..] {
        merge::keys(stream, a, b, &mut keys, compare).unwrap();
    } else {
        let slices: Vec<_> = on_device.iter().map(|run| run.as_slice()).collect();
        merge::runs_keys(stream, &slices, &mut keys, compare).unwrap();
    }
    keys.to_vec(stream).unwrap()
}

fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} items, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Checks pairs with every merge that supports this number of runs.
fn check_pairs<K: Pod + Debug + PartialEq, V: Pod + Debug + PartialEq, C: Compare<K>>(
    stream: &Stream,
    runs: &[(Vec<K>, Vec<V>)],
    compare: C,
) {
    let expected = oracle(runs, compare);
    let found = merged(stream, runs, compare, runs.len() != 2).unwrap();
    assert_same(&found.0, &expected.0, "merged keys");
    assert_same(&found.1, &expected.1, "merged values");
}

/// Checks pairs, and keys alone.
fn check<K: Pod + Debug + PartialEq, C: Compare<K>>(stream: &Stream, runs: &[(Vec<K>, Vec<u32>)], compare: C) {
    check_pairs(stream, runs, compare);
    assert_same(&merged_keys(stream, runs, compare), &oracle(runs, compare).0, "merged keys alone");
}

/// Returns numbers below `below`.
fn numbers(seed: u64, below: u64) -> impl FnMut(usize, usize) -> u32 {
    let mut numbers = random(seed);
    move |_, _| (numbers.next().unwrap() % below) as u32
}

fn small_two(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in [[0, 0], [1, 0], [0, 1], [1, 1], [2, 3], [31, 33], [0, 100], [100, 0], [500, 7]] {
        check(&stream, &sorted_runs(&lens, Less, numbers(1, 50)), Less);
    }
}

fn small_runs(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in [&[][..], &[0], &[5], &[3, 0, 4], &[0, 0, 0, 0], &[10, 1, 0, 25, 7], &[300, 200, 500, 1, 2, 3, 4, 5]] {
        check(&stream, &sorted_runs(lens, Less, numbers(2, 50)), Less);
    }
}

/// All built-in instances.
fn small_instances(device: &Device) {
    fn with_values<K: Pod + Debug + PartialEq, C: Compare<K>>(
        stream: &Stream,
        runs: &[(Vec<K>, Vec<u32>)],
        compare: C,
    ) {
        check(stream, runs, compare);
        let wide: Vec<_> =
            runs.iter().map(|(k, v)| (k.clone(), v.iter().map(|&v| u64::from(v) << 20).collect())).collect();
        check_pairs::<K, u64, C>(stream, &wide, compare);
    }
    let stream = device.stream().unwrap();
    for lens in [&[700, 500][..], &[300, 100, 400]] {
        let mut wide = random(4);
        with_values(&stream, &sorted_runs(lens, Less, numbers(3, 200)), Less);
        with_values(&stream, &sorted_runs(lens, IgnoreLowBit, numbers(3, 200)), IgnoreLowBit);
        with_values(&stream, &sorted_runs(lens, Less, |_, _| wide.next().unwrap()), Less);
        with_values(&stream, &sorted_runs(lens, IgnoreLowBit, |_, i| (i % 90) as u64), IgnoreLowBit);
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for total in [TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1] {
        for a in [0, total / 2, total - 1] {
            check(&stream, &sorted_runs(&[a, total - a], Less, numbers(total as u64, 5000)), Less);
        }
    }
    for total in [RUNS_TILE - 1, RUNS_TILE, RUNS_TILE + 1, 2 * RUNS_TILE, 2 * RUNS_TILE + 1] {
        for lens in [[total - 2, 1, 1], [total / 3, 0, total - total / 3]] {
            check(&stream, &sorted_runs(&lens, Less, numbers(total as u64, 5000)), Less);
        }
    }
}

/// Only the values show whether the merge is stable.
fn all_equal(device: &Device) {
    let stream = device.stream().unwrap();
    check(&stream, &sorted_runs(&[TILE + 5, TILE + 99], Less, |_, _| 7u32), Less);
    check(&stream, &sorted_runs(&[RUNS_TILE, 5, 0, RUNS_TILE + 9, 1], Less, |_, _| 7u32), Less);
    check(&stream, &sorted_runs(&[TILE, TILE + 3], IgnoreLowBit, |run, _| 6 + run as u32), IgnoreLowBit);
}

fn one_side_first(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in [[TILE + 7, TILE - 9], [10, TILE + 5]] {
        check(&stream, &sorted_runs(&lens, Less, |run, i| (i + run * 100_000) as u32), Less);
        check(&stream, &sorted_runs(&lens, Less, |run, i| (i + (1 - run) * 100_000) as u32), Less);
    }
    let lens = [RUNS_TILE, 100, RUNS_TILE + 50, 3];
    check(&stream, &sorted_runs(&lens, Less, |run, i| (i + run * 100_000) as u32), Less);
    check(&stream, &sorted_runs(&lens, Less, |run, i| (i + (3 - run) * 100_000) as u32), Less);
}

fn few_distinct(device: &Device) {
    let stream = device.stream().unwrap();
    for below in [2, 10] {
        check(&stream, &sorted_runs(&[TILE + 50, TILE + 60], Less, numbers(5, below)), Less);
        check(&stream, &sorted_runs(&[RUNS_TILE, 500, 0, RUNS_TILE, 77], Less, numbers(6, below)), Less);
    }
}

fn every_number_of_runs(device: &Device) {
    let stream = device.stream().unwrap();
    let longest = match device.kind() {
        DeviceKind::CpuChecked => 200,
        DeviceKind::Cpu => 800,
        DeviceKind::Cuda { .. } => 3000,
    };
    for count in (1..=32).filter(|count| !is_checked(device) || count % 3 == 2 || *count < 10) {
        let lens: Vec<usize> = random(count).take(count as usize).map(|x| (x % longest) as usize).collect();
        let lens: Vec<usize> = lens.iter().map(|&len| if len % 5 == 0 { 0 } else { len }).collect();
        check(&stream, &sorted_runs(&lens, Less, numbers(count, 1000)), Less);
    }
}

fn custom_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let place = |_: usize, i: usize| Place { city: (i % 13) as u32, street: (i * 7 % 29) as u32, note: i as u64 };
    for lens in [&[1500, 1300][..], &[900, 10, 800, 700, 0]] {
        check_pairs(&stream, &sorted_runs(lens, ByAddress, place), ByAddress);
    }
}

fn comparators_with_state(device: &Device) {
    let stream = device.stream().unwrap();
    for start in [0, 1 << 31, 12345] {
        let compare = CyclicFrom { start };
        for lens in [&[TILE, 500][..], &[900, 10, 800]] {
            let mut keys = random(u64::from(start));
            check_pairs(&stream, &sorted_runs(lens, compare, |_, _| keys.next().unwrap() as u32), compare);
        }
    }
}

/// Types of the same size share the kernels.
fn values_of_other_types(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in [&[300, 400][..], &[100, 200, 300]] {
        let runs = sorted_runs(lens, Less, numbers(8, 100));
        let floats: Vec<_> =
            runs.iter().map(|(k, v)| (k.clone(), v.iter().map(|&v| v as f32).collect::<Vec<f32>>())).collect();
        check_pairs(&stream, &floats, Less);
        let signed: Vec<_> =
            runs.iter().map(|(k, v)| (k.clone(), v.iter().map(|&v| -i64::from(v)).collect::<Vec<i64>>())).collect();
        check_pairs(&stream, &signed, Less);
    }
}

/// Slices at any offset. The memory around the target does not change.
fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let (len, total) = (TILE + 3, 2 * TILE + 6);
    let runs = sorted_runs(&[len + 10, len + 10], Less, numbers(9, 10_000));
    let a = stream.upload(&runs[0].0).unwrap();
    let b = stream.upload(&runs[1].0).unwrap();
    for (from_a, from_b, to) in [(0, 1, 2), (3, 2, 1), (1, 1, 0)] {
        let mut out = stream.upload(&vec![9u32; total + 8]).unwrap();
        let (part_a, part_b) = (a.slice(from_a..from_a + len).unwrap(), b.slice(from_b..from_b + len).unwrap());
        merge::keys(&stream, part_a, part_b, out.slice_mut(to..to + total).unwrap(), Less).unwrap();
        let mut expected = vec![9; total + 8];
        expected[to..to + len].copy_from_slice(&runs[0].0[from_a..from_a + len]);
        expected[to + len..to + total].copy_from_slice(&runs[1].0[from_b..from_b + len]);
        expected[to..to + total].sort_unstable();
        assert_same(&out.to_vec(&stream).unwrap(), &expected, "merge of slices");
    }
}

fn random_lengths_and_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (6, 1500) } else { (60, 8000) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&vec(vec(0u32..3000, 0..longest), 1..7), |mut keys| {
            keys.iter_mut().for_each(|run| run.sort_unstable());
            let runs: Vec<_> = keys.into_iter().map(|run| (run.clone(), (0..run.len() as u32).collect())).collect();
            check(&stream, &runs, Less);
            Ok(())
        })
        .unwrap();
}

/// Checks that the output is a permutation of the input.
fn permutes<C: Compare<u32>>(stream: &Stream, lens: &[usize], compare: C) {
    let mut keys = random(lens.len() as u64);
    let runs: Vec<(Vec<u32>, Vec<u32>)> = lens
        .iter()
        .enumerate()
        .map(|(run, &len)| {
            let keys = keys.by_ref().take(len).map(|x| x as u32).collect();
            (keys, (0..len).map(|i| (run << 26 | i) as u32).collect())
        })
        .collect();
    let mut expected: Vec<(u32, u32)> =
        runs.iter().flat_map(|(k, v)| k.iter().copied().zip(v.iter().copied())).collect();
    let (keys, values) = merged(stream, &runs, compare, lens.len() != 2).unwrap();
    let mut found: Vec<(u32, u32)> = keys.into_iter().zip(values).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_same(&found, &expected, "a permutation");
}

/// Comparators that are not orders: every item arrives once, and no access is out of bounds (as the checked device
/// verifies).
fn contradictory_comparators(device: &Device) {
    let stream = device.stream().unwrap();
    for lens in
        [&[0, 5][..], &[40, 50], &[TILE, TILE + 9], &[10, TILE + 100], &[5, 0, 90], &[RUNS_TILE, 500, 900, 1, 0]]
    {
        permutes(&stream, lens, Dice::ALWAYS);
        for seed in 0..2 {
            permutes(&stream, lens, Dice { seed });
        }
        // A valid order, and keys that are not sorted by it.
        permutes(&stream, lens, Less);
    }
}

fn large(device: &Device) {
    let total = match device.kind() {
        DeviceKind::CpuChecked => 3 * TILE,
        DeviceKind::Cpu if is_simulated(device) => 1 << 17,
        DeviceKind::Cpu => 1 << 20,
        DeviceKind::Cuda { .. } => 1 << 24,
    };
    let stream = device.stream().unwrap();
    let key = |_: usize, i: usize| (i as u32).wrapping_mul(2_654_435_769);
    check(&stream, &sorted_runs(&[total / 3, total - total / 3], IgnoreLowBit, key), IgnoreLowBit);
    let lens: Vec<usize> = (0..8).map(|run| total / 40 * (run + 1)).collect();
    check(&stream, &sorted_runs(&lens, Less, key), Less);
    // So many that a block finds the first and the last of its boundaries before the others.
    let total = if matches!(device.kind(), DeviceKind::Cuda { .. }) { 20 << 20 } else { total };
    let lens: Vec<usize> = (0..32).map(|run| total / 560 * (run + 2)).collect();
    check(&stream, &sorted_runs(&lens, Less, key), Less);
    if !is_checked(device) {
        permutes(&stream, &lens, Dice { seed: 1 });
    }
}

fn lengths_must_agree(device: &Device) {
    let stream = device.stream().unwrap();
    let three = stream.upload(&[1u32, 2, 3]).unwrap();
    let two = stream.upload(&[1u32, 2]).unwrap();
    let mut six = stream.upload(&[7u32; 6]).unwrap();
    let mut values = stream.upload(&[7u32; 6]).unwrap();
    let is_mismatch = |result| matches!(result, Err(Error::LengthMismatch { .. }));
    assert!(is_mismatch(merge::keys(&stream, &three, &two, &mut six, Less)));
    assert!(is_mismatch(merge::pairs(&stream, (&three, &two), (&three, &three), (&mut six, &mut values), Less)));
    let runs = [three.as_slice(), two.as_slice(), two.as_slice()];
    assert!(is_mismatch(merge::runs_keys(&stream, &runs, &mut six, Less)));
    let runs = [(three.as_slice(), three.as_slice()), (three.as_slice(), two.as_slice())];
    assert!(is_mismatch(merge::runs_pairs(&stream, &runs, (&mut six, &mut values), Less)));
    assert_eq!(six.to_vec(&stream).unwrap(), [7; 6]);
    assert_eq!(values.to_vec(&stream).unwrap(), [7; 6]);
}

fn too_many_runs(device: &Device) {
    let stream = device.stream().unwrap();
    let run = stream.upload(&[1u32]).unwrap();
    let mut out = stream.upload(&[7u32; 33]).unwrap();
    let error = merge::runs_keys(&stream, &[run.as_slice(); 33], &mut out, Less).unwrap_err();
    assert!(matches!(error, Error::TooMany { asked: 33, limit: 32, .. }), "{error}");
    assert_eq!(out.to_vec(&stream).unwrap(), [7; 33]);
}

fn another_type(device: &Device) {
    let stream = device.stream().unwrap();
    let runs = vec![(vec![3i16, 5], vec![1u8, 2]), (vec![4i16], vec![3u8])];
    assert_eq!(merged(&stream, &runs, Less, false).unwrap(), (vec![3, 4, 5], vec![1, 3, 2]));
}

/// Sorted runs in device and in host memory.
type Mixed<K, V> = Vec<(DeviceVec<K>, DeviceVec<V>, Memory)>;

/// Returns runs of these lengths, of which those with an odd number are in host memory, and what they give when merged.
fn mixed<K: Pod + Ord, V: Pod>(
    stream: &Stream,
    lens: &[usize],
    key: impl Fn(u64) -> K,
    value: impl Fn(u64) -> V,
) -> (Mixed<K, V>, Vec<K>, Vec<V>) {
    let mut numbers = random(lens.len() as u64);
    let mut all = Vec::new();
    let runs = lens.iter().enumerate().map(|(run, &len)| {
        let mut keys: Vec<K> = (0..len).map(|_| key(numbers.next().unwrap())).collect();
        keys.sort();
        let values: Vec<V> = (0..len).map(|i| value((run << 20 | i) as u64)).collect();
        all.extend(keys.iter().copied().zip(values.iter().copied()));
        let memory = if run % 2 == 0 { Memory::Device } else { Memory::Host };
        let mut run = (stream.uninit_in(memory, len).unwrap(), stream.uninit_in(memory, len).unwrap(), memory);
        run.0.copy_from_host(stream, &keys).unwrap();
        run.1.copy_from_host(stream, &values).unwrap();
        run
    });
    let runs = runs.collect();
    all.sort_by_key(|pair| pair.0);
    let (keys, values) = all.into_iter().unzip();
    (runs, keys, values)
}

/// Merges them in pieces.
fn merge_pieces<K: Pod, V: Pod>(
    stream: &Stream,
    runs: &Mixed<K, V>,
    out: (&mut DeviceVec<K>, &mut DeviceVec<V>),
    piece: usize,
) -> Result<(), Error> {
    let runs: Vec<_> = runs.iter().map(|run| ((run.0.as_slice().into(), run.1.as_slice().into()), run.2)).collect();
    let out = (out.0.as_mut_slice().into(), out.1.as_mut_slice().into());
    lowered::merge::codes_in_pieces(stream, &runs, out, piece)
}

fn check_pieces<K: Pod + Ord + Debug, V: Pod + PartialEq + Debug>(
    stream: &Stream,
    lens: &[usize],
    key: impl Fn(u64) -> K,
    value: impl Fn(u64) -> V,
) {
    let (runs, keys, values) = mixed(stream, lens, key, value);
    let total = keys.len();
    for piece in [1 << 9, 1000, total.max(2) - 1, total, total + 1] {
        for memory in [Memory::Device, Memory::Host] {
            let mut out = (stream.uninit_in(memory, total).unwrap(), stream.uninit_in(memory, total).unwrap());
            merge_pieces(stream, &runs, (&mut out.0, &mut out.1), piece).unwrap();
            assert_eq!(out.0.to_vec(stream).unwrap(), keys, "{lens:?} in pieces of {piece}");
            assert_eq!(out.1.to_vec(stream).unwrap(), values, "{lens:?} in pieces of {piece}");
        }
    }
}

fn runs_in_host_memory(device: &Device) {
    let stream = &device.stream().unwrap();
    check_pieces(stream, &[900, 1100], |n| n as u32, |n| n as u32);
    check_pieces(stream, &[900, 1500, 0, 3, 700], |n| (n % 50) as u32, |n| n);
    check_pieces(stream, &[0, 1200, 1], |n| n, |_| ());
    check_pieces(stream, &[300, 1400, 200], |n| u128::from(n) << 60, |n| [n as u8; 3]);
    check_pieces(stream, &[0, 1 << 11, 1 << 10, 1 << 12], |_| 7u32, |n| n as u32);
}

/// The runs were written by another stream just before, and are dropped right after.
fn runs_in_host_memory_of_other_streams(device: &Device) {
    let (writer, stream) = (&device.stream().unwrap(), &device.stream().unwrap());
    for _ in 0..3 {
        let (runs, keys, values) = mixed(writer, &[2000, 3000, 1000], |n| n as u32, |n| n as u32);
        let mut out = (writer.uninit::<u32>(6000).unwrap(), writer.uninit::<u32>(6000).unwrap());
        merge_pieces(stream, &runs, (&mut out.0, &mut out.1), 1 << 10).unwrap();
        drop(runs);
        let other = mixed(writer, &[2000, 3000, 1000], |n| n as u32 / 2, |n| n as u32);
        assert_eq!((out.0.to_vec(writer).unwrap(), out.1.to_vec(writer).unwrap()), (keys, values));
        drop(other);
    }
}

/// Wherever memory runs out, the merge is right or an error, and the next one is right.
fn failing_allocations_of_pieces(device: &Device) {
    let stream = &device.stream().unwrap();
    let (runs, keys, values) = mixed(stream, &[600, 800], |n| n as u32, |n| n as u32);
    let mut out = (stream.uninit::<u32>(1400).unwrap(), stream.uninit::<u32>(1400).unwrap());
    for successes in 0.. {
        stream.fail_allocation_after(Some(successes));
        let result = merge_pieces(stream, &runs, (&mut out.0, &mut out.1), 512);
        let is_used = stream.uninit::<u32>(1).is_err();
        stream.fail_allocation_after(None);
        match result {
            Ok(()) => assert_eq!(
                (out.0.to_vec(stream).unwrap(), out.1.to_vec(stream).unwrap()),
                (keys.clone(), values.clone())
            ),
            Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
        }
        if is_used {
            break;
        }
    }
    merge_pieces(stream, &runs, (&mut out.0, &mut out.1), 512).unwrap();
    assert_eq!((out.0.to_vec(stream).unwrap(), out.1.to_vec(stream).unwrap()), (keys, values));
}
