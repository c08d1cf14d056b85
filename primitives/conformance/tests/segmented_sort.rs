//! The segmented sort of keys and of pairs.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::{CyclicFrom, NotAnOrder};
use gpu_conformance::{cases, is_checked, is_gpu, is_simulated, run};
use gpu_primitives::compare::{Compare, Greater, IgnoreLowBit, Less};
use gpu_primitives::sort;
use gpu_primitives::source::counted;
use gpu_primitives::testing::{SegmentShape, segmented_pairs_shaped};
use gpu_primitives::{CpuOptions, Device, DeviceKind, DeviceValue, DeviceVec, Error, Offsets, Schedule, Stream};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, TestRunner};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::process::ExitCode;

/// The most items of a tile, and the distance from tile to tile; both for items of up to 8 bytes.
const TILE: usize = 128 * 15;
const STRIDE: usize = TILE - 128;

fn main() -> ExitCode {
    run(cases![
        small_lengths,
        small_custom_comparator,
        small_bad_comparators,
        small_bad_offsets,
        edge_lengths,
        mixtures,
        random_cuts,
        types,
        equal_sorted_and_reversed,
        low_bit_is_ignored,
        items_outside_segments,
        misaligned_slices,
        unchecked,
        random_segments,
        tiny_tiles,
        bad_comparators_across_tiles,
        large,
        deterministic,
        wrong_lengths,
        another_order,
        argsort,
        lengths_on_the_device,
        small_lengths_on_the_device,
        lengths_change_between_launches,
    ])
}

/// Sorts every segment stably with `std`.
fn oracle<K: Copy, V: Copy, C: Compare<K>>(offsets: &[u32], keys: &[K], values: &[V], compare: C) -> (Vec<K>, Vec<V>) {
    let mut items: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).collect();
    for pair in offsets.windows(2) {
        items[pair[0] as usize..pair[1] as usize].sort_by(|a, b| {
            if compare.less(a.0, b.0) {
                Ordering::Less
            } else if compare.less(b.0, a.0) {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        });
    }
    items.into_iter().unzip()
}

/// `assert_eq!` that names the first difference instead of printing everything.
#[track_caller]
fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} items, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Sorts pairs into separate outputs and compares with the oracle. All items belong to segments.
#[track_caller]
fn check<K, V, C>(stream: &Stream, offsets: &[u32], keys: &[K], values: &[V], compare: C)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    C: Compare<K>,
{
    let (expected_keys, expected_values) = oracle(offsets, keys, values, compare);
    let offsets = stream.upload(offsets).unwrap();
    let (input_keys, input_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let mut output_keys = stream.uninit::<K>(keys.len()).unwrap();
    let mut output_values = stream.uninit::<V>(keys.len()).unwrap();
    sort::segmented_pairs(
        stream,
        (&input_keys, &input_values),
        &offsets,
        (&mut output_keys, &mut output_values),
        compare,
    )
    .unwrap();
    assert_same(&output_keys.to_vec(stream).unwrap(), &expected_keys, "keys");
    assert_same(&output_values.to_vec(stream).unwrap(), &expected_values, "values");
}

/// [`check`] with 32-bit keys, where each value is the item's index. Also in place, and with keys alone.
#[track_caller]
fn check_all_ways<C: Compare<u32>>(stream: &Stream, offsets: &[u32], keys: &[u32], compare: C) {
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    check(stream, offsets, keys, &values, compare);
    let (expected_keys, expected_values) = oracle(offsets, keys, &values, compare);
    let offsets = stream.upload(offsets).unwrap();
    let input = stream.upload(keys).unwrap();
    let mut in_place = stream.upload(keys).unwrap();
    let mut in_place_values = stream.upload(&values).unwrap();
    sort::segmented_pairs_in_place(stream, (&mut in_place, &mut in_place_values), &offsets, compare).unwrap();
    assert_same(&in_place.to_vec(stream).unwrap(), &expected_keys, "keys in place");
    assert_same(&in_place_values.to_vec(stream).unwrap(), &expected_values, "values in place");
    let mut output = stream.uninit::<u32>(keys.len()).unwrap();
    sort::segmented_keys(stream, &input, &offsets, &mut output, compare).unwrap();
    assert_same(&output.to_vec(stream).unwrap(), &expected_keys, "keys alone");
    let mut in_place = stream.upload(keys).unwrap();
    sort::segmented_keys_in_place(stream, &mut in_place, &offsets, compare).unwrap();
    assert_same(&in_place.to_vec(stream).unwrap(), &expected_keys, "keys alone in place");
}

/// Returns the offsets of consecutive segments of these lengths.
fn offsets_of(lengths: &[usize]) -> Vec<u32> {
    let ends = lengths.iter().scan(0, |end, &length| {
        *end += length as u32;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Splits `len` items into `len / mean` segments at random offsets.
fn cuts(seed: u64, len: usize, mean: usize) -> Vec<u32> {
    let mut offsets: Vec<u32> =
        random(seed).take(len / mean - 1).map(|x| (x % (len as u64 + 1)) as u32).chain([0, len as u32]).collect();
    offsets.sort_unstable();
    offsets
}

fn keys_32(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// Keys with many duplicates.
fn few_keys(seed: u64, len: usize, kinds: u64) -> Vec<u32> {
    random(seed).take(len).map(|x| (x % kinds) as u32).collect()
}

fn last(offsets: &[u32]) -> usize {
    offsets[offsets.len() - 1] as usize
}

fn small_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    check_all_ways(&stream, &[0], &[], Less);
    check_all_ways(&stream, &[0, 0, 0], &[], Less);
    check_all_ways(&stream, &[0, 1], &[7], Less);
    check_all_ways(&stream, &[0, 2], &[7, 3], Less);
    let lengths = [0, 1, 2, 31, 0, 0, 32, 33, 3, 14, 15, 16, 17, 1, 1, 1, 100, 0];
    let offsets = offsets_of(&lengths);
    check_all_ways(&stream, &offsets, &few_keys(1, last(&offsets), 20), Less);
    // Across tiles, twice.
    let offsets = offsets_of(&[STRIDE + 200, 3, STRIDE + 140]);
    check_all_ways(&stream, &offsets, &few_keys(2, last(&offsets), 1000), Less);
}

fn edge_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let sizes = [STRIDE - 1, STRIDE, STRIDE + 1, TILE - 1, TILE, TILE + 1, 2 * STRIDE, 3 * STRIDE + 128, 5 * TILE + 77];
    for size in sizes {
        let offsets = offsets_of(&[size]);
        check_all_ways(&stream, &offsets, &keys_32(size as u64, size), Less);
        let offsets = offsets_of(&[5, size, 0, 9]);
        check(&stream, &offsets, &keys_32(3, size + 14), &keys_32(4, size + 14), Less);
    }
}

fn mixtures(device: &Device) {
    let stream = device.stream().unwrap();
    let lengths = [1, 0, 33, TILE + 1, 2, 2, 2, 3 * TILE, 0, 0, 0, 31, 700, 800, 900, 6 * STRIDE, 1, STRIDE, 64, 65];
    let offsets = offsets_of(&lengths);
    check_all_ways(&stream, &offsets, &keys_32(5, last(&offsets)), Less);
    check_all_ways(&stream, &offsets, &few_keys(6, last(&offsets), 7), Less);
}

fn random_cuts(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_simulated(device) { 20_000 } else { 1 << 20 };
    for mean in [8, 64, 1024] {
        let offsets = cuts(mean as u64, len, mean);
        let (keys, values) = (keys_32(mean as u64, len), keys_32(17, len));
        check(&stream, &offsets, &keys, &values, Less);
        check(&stream, &offsets, &few_keys(9, len, 5), &values, Less);
    }
}

/// All sizes of keys and values that a GPU supports, and types that are moved as words.
fn types(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 6_000 } else { 60_000 };
    let mut offsets = cuts(1, len / 2, 100);
    offsets.push(len as u32);
    let keys: Vec<u64> = random(2).take(len).map(|x| (x % 50_000) << 20).collect();
    let short_keys: Vec<u32> = keys.iter().map(|&x| (x >> 20) as u32).collect();
    let wide: Vec<u64> = random(3).take(len).collect();
    let widest: Vec<[u64; 2]> = wide.iter().map(|&x| [x, !x]).collect();
    let narrow = keys_32(4, len);
    check(&stream, &offsets, &keys, &wide, Less);
    check(&stream, &offsets, &keys, &narrow, Less);
    check(&stream, &offsets, &short_keys, &wide, Less);
    check(&stream, &offsets, &short_keys, &vec![(); len], Less);
    check(&stream, &offsets, &keys, &vec![(); len], Less);
    check(&stream, &offsets, &keys, &wide, IgnoreLowBit);
    check(&stream, &offsets, &keys, &narrow, IgnoreLowBit);
    check(&stream, &offsets, &short_keys, &wide, IgnoreLowBit);
    check(&stream, &offsets, &keys, &vec![(); len], IgnoreLowBit);
    check(&stream, &offsets, &keys, &widest, Less);
    check(&stream, &offsets, &short_keys, &widest, Less);
    check(&stream, &offsets, &keys, &widest, IgnoreLowBit);
    check(&stream, &offsets, &short_keys, &widest, IgnoreLowBit);
    check(&stream, &offsets, &short_keys, &wide.iter().map(|&x| x as u16 as f32).collect::<Vec<_>>(), Less);
    check(&stream, &offsets, &short_keys, &wide.iter().map(|&x| x as i64).collect::<Vec<_>>(), Less);
    check(&stream, &offsets, &wide.iter().map(|&x| x as u8).collect::<Vec<_>>(), &narrow, Greater);
    check(&stream, &offsets, &wide.iter().map(|&x| x as i32 as f32).collect::<Vec<_>>(), &wide, Less);
}

fn equal_sorted_and_reversed(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 3 * STRIDE + 500;
    for offsets in [offsets_of(&[len]), offsets_of(&[100, len - 100]), cuts(4, len, 40)] {
        check_all_ways(&stream, &offsets, &vec![5; len], Less);
        check_all_ways(&stream, &offsets, &(0..len as u32).collect::<Vec<_>>(), Less);
        check_all_ways(&stream, &offsets, &(0..len as u32).rev().collect::<Vec<_>>(), Less);
        check_all_ways(&stream, &offsets, &vec![u32::MAX; len], Less);
    }
}

fn low_bit_is_ignored(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 2 * TILE;
    for offsets in [offsets_of(&[len]), cuts(6, len, 20)] {
        check_all_ways(&stream, &offsets, &few_keys(7, len, 12), IgnoreLowBit);
    }
}

fn small_custom_comparator(device: &Device) {
    let stream = device.stream().unwrap();
    let offsets = offsets_of(&[40, 0, 500, STRIDE + 300]);
    let keys = few_keys(8, last(&offsets), 300);
    for start in [0, 100, 299] {
        check(&stream, &offsets, &keys, &keys_32(1, keys.len()), CyclicFrom { start });
    }
}

/// In the output, items before the first offset and after the last one do not change.
fn items_outside_segments(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 4 * TILE;
    for (first, end) in [(0, 100), (1, len - 1), (3000, 3100), (STRIDE, 3 * STRIDE), (len, len), (77, 77), (2000, 7000)]
    {
        let middle = (first + end) / 2;
        let offsets = [first as u32, middle as u32, end as u32];
        let keys = keys_32(9, len);
        let (sorted, _) = oracle(&offsets, &keys, &keys, Less);
        let mut expected = vec![9; len];
        expected[first..end].copy_from_slice(&sorted[first..end]);
        let offsets = stream.upload(&offsets).unwrap();
        let input = stream.upload(&keys).unwrap();
        let (mut output, mut values) = (stream.upload(&vec![9; len]).unwrap(), stream.upload(&vec![9; len]).unwrap());
        sort::segmented_pairs(&stream, (&input, &input), &offsets, (&mut output, &mut values), Less).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "keys");
        assert_same(&values.to_vec(&stream).unwrap(), &expected, "values");
    }
}

/// Slices at any offset. The memory around the target does not change.
fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let len = STRIDE + 400;
    let keys = keys_32(10, len + 8);
    let input = stream.upload(&keys).unwrap();
    let offsets = [0, 300, len as u32];
    let device_offsets = stream.upload(&[99, 0, 300, len as u32]).unwrap();
    for (from, to) in [(0, 1), (1, 0), (3, 5)] {
        let mut output = stream.upload(&vec![9; len + 8]).unwrap();
        let source = input.slice(from..from + len).unwrap();
        let target = output.slice_mut(to..to + len).unwrap();
        sort::segmented_keys(&stream, source, device_offsets.slice(1..).unwrap(), target, Less).unwrap();
        let mut expected = vec![9; len + 8];
        let source = &keys[from..from + len];
        expected[to..to + len].copy_from_slice(&oracle(&offsets, source, source, Less).0);
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "from a slice to a slice");
    }
}

fn unchecked(device: &Device) {
    let stream = device.stream().unwrap();
    for lengths in [vec![], vec![10, 20], vec![10, 3 * TILE, 1], vec![STRIDE, 9 * STRIDE + 300, 40]] {
        let offsets = offsets_of(&lengths);
        let keys = few_keys(11, last(&offsets), 900);
        let values = keys_32(12, keys.len());
        let (expected_keys, expected_values) = oracle(&offsets, &keys, &values, Less);
        let offsets = stream.upload(&offsets).unwrap();
        let (input_keys, input_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let (mut in_place, mut in_place_values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let mut output_keys = stream.uninit::<u32>(keys.len()).unwrap();
        let mut output_values = stream.uninit::<u32>(keys.len()).unwrap();
        // SAFETY: the offsets ascend.
        let offsets = unsafe { Offsets::unchecked(&offsets) };
        let (input, output) = ((&input_keys, &input_values), (&mut output_keys, &mut output_values));
        sort::segmented_pairs(&stream, input, offsets, output, Less).unwrap();
        sort::segmented_pairs_in_place(&stream, (&mut in_place, &mut in_place_values), offsets, Less).unwrap();
        for (found_keys, found_values) in [(&output_keys, &output_values), (&in_place, &in_place_values)] {
            assert_same(&found_keys.to_vec(&stream).unwrap(), &expected_keys, "keys");
            assert_same(&found_values.to_vec(&stream).unwrap(), &expected_values, "values");
        }
        let mut in_place = stream.upload(&keys).unwrap();
        sort::segmented_keys(&stream, &input_keys, offsets, &mut output_keys, Less).unwrap();
        sort::segmented_keys_in_place(&stream, &mut in_place, offsets, Less).unwrap();
        assert_same(&output_keys.to_vec(&stream).unwrap(), &expected_keys, "keys alone");
        assert_same(&in_place.to_vec(&stream).unwrap(), &expected_keys, "keys alone in place");
    }
}

/// Wrong offsets give an error and do not change the output. Unchecked, the output is arbitrary, but nothing else
/// changes.
fn small_bad_offsets(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 3 * STRIDE;
    let end = len as u32;
    let keys = keys_32(13, len);
    let input = stream.upload(&keys).unwrap();
    let wrong: [(&[u32], usize, u64, u64); 5] = [
        (&[0, 5, 3, end], 2, 3, 5),
        (&[0, end + 1], 1, u64::from(end) + 1, 0),
        (&[end + 7], 0, u64::from(end) + 7, 0),
        (&[9, 8, 7, 6], 1, 8, 9),
        (&[0, u32::MAX, 2, end], 1, u64::from(u32::MAX), 0),
    ];
    for (offsets, bad_index, bad_offset, bad_previous) in wrong {
        let offsets = stream.upload(offsets).unwrap();
        let mut output = stream.upload(&vec![9; len]).unwrap();
        match sort::segmented_keys(&stream, &input, &offsets, &mut output, Less).unwrap_err() {
            Error::InvalidOffsets { index, offset, previous, len: items } => {
                assert_eq!((index, offset, previous, items), (bad_index, bad_offset, bad_previous, len));
            }
            other => panic!("{other}"),
        }
        assert_same(&output.to_vec(&stream).unwrap(), &vec![9; len], "the output");
    }
    // Not in checked mode, which reports two writers of one item as a race.
    if !is_checked(device) {
        for (offsets, ..) in wrong {
            let offsets = stream.upload(offsets).unwrap();
            let mut output = stream.upload(&vec![9; len + 200]).unwrap();
            let target = output.slice_mut(100..100 + len).unwrap();
            // SAFETY: the offsets break the contract on purpose. The test checks the memory around the output.
            let offsets = unsafe { Offsets::unchecked(&offsets) };
            sort::segmented_keys(&stream, &input, offsets, target, Less).unwrap();
            let output = output.to_vec(&stream).unwrap();
            assert_same(&output[..100], &[9; 100], "before the output");
            assert_same(&output[100 + len..], &[9; 100], "after the output");

            // Values of this size are moved by their indices, and nobody may have written some of these.
            let mut keys = stream.upload(&keys).unwrap();
            let mut values = stream.upload(&vec![[7u8; 3]; len + 200]).unwrap();
            let target = values.slice_mut(100..100 + len).unwrap();
            sort::segmented_pairs_in_place(&stream, (&mut keys, target), offsets, Less).unwrap();
            assert!(
                values.to_vec(&stream).unwrap().iter().all(|value| *value == [7; 3]),
                "values, and those around them"
            );
        }
    }
}

/// Random lengths, including empty and long segments.
fn random_segments(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (12, 30) } else { (64, 300) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let length = (any::<u32>(), 0u32..12).prop_map(|(bits, log)| (bits % (1 << log)) as usize);
    let strategy = (vec(length, 0..longest), any::<u64>(), 1u64..2000);
    runner
        .run(&strategy, |(lengths, seed, kinds)| {
            let offsets = offsets_of(&lengths);
            let keys = few_keys(seed, last(&offsets), kinds);
            let values: Vec<u32> = (0..keys.len() as u32).collect();
            check(&stream, &offsets, &keys, &values, Less);
            Ok(())
        })
        .unwrap();
}

/// Small tiles, so that few items need many passes; in adversarial orders of threads.
fn tiny_tiles(device: &Device) {
    if matches!(device.kind(), DeviceKind::Cuda { .. }) {
        return;
    }
    for seed in 0..if is_checked(device) { 60 } else { 300 } {
        let schedule = if seed % 2 == 0 { Schedule::Random { seed } } else { Schedule::default() };
        let options = CpuOptions { checked: is_checked(device), schedule, ..CpuOptions::default() };
        let stream = Device::cpu_with(options).stream().unwrap();
        let lengths: Vec<usize> = random(seed)
            .take(12)
            .map(|x| (x >> 8) as usize % (1 << (x % 11)))
            .chain([(seed as usize % 7) * 300])
            .collect();
        let offsets = offsets_of(&lengths);
        let keys = few_keys(seed, last(&offsets), 50);
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let (expected_keys, expected_values) = oracle(&offsets, &keys, &values, Less);
        let offsets = stream.upload(&offsets).unwrap();
        let (mut keys, mut values) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        let shape = SegmentShape::<64, 2, 20>;
        segmented_pairs_shaped(&stream, ((&mut keys).into(), (&mut values).into()), (&offsets).into(), Less, shape)
            .unwrap();
        assert_same(&keys.to_vec(&stream).unwrap(), &expected_keys, "keys");
        assert_same(&values.to_vec(&stream).unwrap(), &expected_values, "values");
    }
}

/// Checks that every segment holds the same items as before, in any order.
#[track_caller]
fn assert_permutation(offsets: &[u32], keys: &[u32], found_keys: &[u32], found_values: &[u32]) {
    for pair in offsets.windows(2) {
        let range = pair[0] as usize..pair[1] as usize;
        let mut indices = found_values[range.clone()].to_vec();
        indices.sort_unstable();
        assert!(indices.iter().map(|&i| i as usize).eq(range.clone()), "not a permutation of {range:?}");
    }
    for (i, &value) in found_values.iter().enumerate() {
        assert_eq!(found_keys[i], keys[value as usize], "the key of value {value} at {i}");
    }
}

fn small_bad_comparators(device: &Device) {
    let stream = device.stream().unwrap();
    let offsets = offsets_of(&[3, 70, 0, 500, STRIDE + 500, 30]);
    let keys = keys_32(14, last(&offsets));
    let indices: Vec<u32> = (0..keys.len() as u32).collect();
    for order in NotAnOrder::KINDS {
        let device_offsets = stream.upload(&offsets).unwrap();
        let (mut found, mut values) = (stream.upload(&keys).unwrap(), stream.upload(&indices).unwrap());
        sort::segmented_pairs_in_place(&stream, (&mut found, &mut values), &device_offsets, order).unwrap();
        assert_permutation(&offsets, &keys, &found.to_vec(&stream).unwrap(), &values.to_vec(&stream).unwrap());
    }
}

/// Many passes. In each of them, the parts of a merge may be inconsistent.
fn bad_comparators_across_tiles(device: &Device) {
    // The CPU takes small tiles, for which there is no PTX.
    let checked = is_checked(device);
    let cpu = || Device::cpu_with(CpuOptions { checked, ..CpuOptions::default() });
    let stream = if is_gpu(device) { device.clone() } else { cpu() }.stream().unwrap();
    let offsets = offsets_of(&[700, 20_000, 3, 9000, 40]);
    let keys = keys_32(15, last(&offsets));
    let indices: Vec<u32> = (0..keys.len() as u32).collect();
    for order in NotAnOrder::KINDS {
        let device_offsets = stream.upload(&offsets).unwrap();
        let (mut found, mut values) = (stream.upload(&keys).unwrap(), stream.upload(&indices).unwrap());
        if matches!(device.kind(), DeviceKind::Cuda { .. }) {
            sort::segmented_pairs_in_place(&stream, (&mut found, &mut values), &device_offsets, order).unwrap();
        } else {
            let (keys, values) = ((&mut found).into(), (&mut values).into());
            let shape = SegmentShape::<64, 3, 30>;
            segmented_pairs_shaped(&stream, (keys, values), (&device_offsets).into(), order, shape).unwrap();
        }
        assert_permutation(&offsets, &keys, &found.to_vec(&stream).unwrap(), &values.to_vec(&stream).unwrap());
    }
}

fn large(device: &Device) {
    let len = match device.kind() {
        DeviceKind::CpuChecked => 30_000,
        DeviceKind::Cpu if is_simulated(device) => (1 << 17) + 12_345,
        DeviceKind::Cpu => (1 << 20) + 12_345,
        DeviceKind::Cuda { .. } => (1 << 24) + 12_345,
    };
    let stream = device.stream().unwrap();
    let keys = keys_32(16, len);
    let values: Vec<u32> = (0..len as u32).collect();
    check(&stream, &[0, len as u32], &keys, &values, Less);
    check(&stream, &[0, 9, (len / 3) as u32, len as u32], &keys, &values, IgnoreLowBit);
}

/// The same bytes on every run and on the CPU, even for a comparator that is not an order.
fn deterministic(device: &Device) {
    let len = 20_000;
    let offsets = cuts(17, len, 400);
    let keys = few_keys(18, len, 40);
    let sort_on = |device: &Device| {
        let stream = device.stream().unwrap();
        let offsets = stream.upload(&offsets).unwrap();
        let (mut found, mut values) = (stream.upload(&keys).unwrap(), stream.upload(&keys_32(1, len)).unwrap());
        sort::segmented_pairs_in_place(&stream, (&mut found, &mut values), &offsets, Less).unwrap();
        values.to_vec(&stream).unwrap()
    };
    let reference = sort_on(&Device::cpu());
    for _ in 0..if is_checked(device) { 1 } else { 20 } {
        assert_same(&sort_on(device), &reference, "values");
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let offsets = stream.upload(&[0u32, 3]).unwrap();
    let none = stream.upload::<u32>(&[]).unwrap();
    let input = stream.upload(&[3u32, 2, 1]).unwrap();
    let mut output = stream.upload(&[5u32; 4]).unwrap();
    let error = sort::segmented_keys(&stream, &input, &offsets, &mut output, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 4, .. }), "{error}");
    let error =
        sort::segmented_pairs_in_place(&stream, (&mut output, &mut input.try_clone(&stream).unwrap()), &offsets, Less)
            .unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 4, found: 3, .. }), "{error}");
    let error = sort::segmented_keys_in_place(&stream, &mut output, &none, Less).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 1, found: 0, .. }), "{error}");
    assert_eq!(output.to_vec(&stream).unwrap(), [5; 4]);
}

fn another_order(device: &Device) {
    let stream = device.stream().unwrap();
    let offsets = stream.upload(&[0u32, 3]).unwrap();
    let mut keys = stream.upload(&[1u32, 3, 2]).unwrap();
    sort::segmented_keys_in_place(&stream, &mut keys, &offsets, Greater).unwrap();
    assert_eq!(keys.to_vec(&stream).unwrap(), [3, 2, 1]);
}

/// Positions within the segments, for both directions; items outside of all segments are left alone.
fn argsort(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2500 } else { 4 * TILE };
    let offsets = [3u32, 3, 20, 21, 21, 21, 900, len as u32 - 5];
    let host: Vec<f32> = random(90).take(len).map(|x| (x % 700) as f32 - 300.0).collect();
    let keys = stream.upload(&host).unwrap();
    let device_offsets = stream.upload(&offsets).unwrap();
    for descending in [false, true] {
        let mut expected = vec![7; len];
        for pair in offsets.windows(2) {
            let (start, end) = (pair[0] as usize, pair[1] as usize);
            let mut order: Vec<u32> = (0..(end - start) as u32).collect();
            order.sort_by(|&a, &b| {
                let order = host[start + a as usize].total_cmp(&host[start + b as usize]);
                if descending { order.reverse() } else { order }
            });
            expected[start..end].copy_from_slice(&order);
        }
        let mut positions = stream.upload(&vec![7u32; len]).unwrap();
        if descending {
            sort::segmented_argsort(&stream, &keys, &device_offsets, &mut positions, Greater).unwrap();
        } else {
            // SAFETY: the offsets are in order.
            let offsets = unsafe { Offsets::unchecked(&device_offsets) };
            sort::segmented_argsort(&stream, &keys, offsets, &mut positions, Less).unwrap();
        }
        assert_eq!(positions.to_vec(&stream).unwrap(), expected);
    }
    let mut short = stream.zeroed::<u32>(4).unwrap();
    let result = sort::segmented_argsort(&stream, &keys, &device_offsets, &mut short, Less);
    assert!(matches!(result, Err(Error::LengthMismatch { .. })));
    let bad = stream.upload(&[5u32, 3]).unwrap();
    let mut positions = stream.zeroed::<u32>(len).unwrap();
    let result = sort::segmented_argsort(&stream, &keys, &bad, &mut positions, Less);
    assert!(matches!(result, Err(Error::InvalidOffsets { .. })));
    assert!(positions.to_vec(&stream).unwrap().iter().all(|&x| x == 0));
}

/// The first elements of memory for `room` elements. The others are uninitialised, so that the checked device finds who reads them.
fn first<T: Pod>(stream: &Stream, elements: &[T], room: usize) -> DeviceVec<T> {
    let mut memory = stream.uninit::<T>(room).unwrap();
    memory.slice_mut(..elements.len()).unwrap().copy_from_host(stream, elements).unwrap();
    memory
}

/// The first elements of memory for `room` elements. All bytes of the others are 0xAB.
fn marked<T: Pod>(stream: &Stream, elements: &[T], room: usize) -> DeviceVec<T> {
    let mut mark = T::zeroed();
    bytemuck::bytes_of_mut(&mut mark).fill(0xAB);
    let mut all = elements.to_vec();
    all.resize(room, mark);
    stream.upload(&all).unwrap()
}

/// Checks the first elements, and that the others are marked.
#[track_caller]
fn assert_first<T: Pod + Debug>(stream: &Stream, found: &DeviceVec<T>, expected: &[T], what: &str) {
    let found = found.to_vec(stream).unwrap();
    let (result, rest) = found.split_at(expected.len());
    let bytes = |items: &[T]| items.iter().flat_map(|item| bytemuck::bytes_of(item).to_vec()).collect::<Vec<u8>>();
    assert_same(&bytes(result), &bytes(expected), what);
    assert!(bytes(rest).iter().all(|&byte| byte == 0xAB), "{what}: beyond the items");
}

/// How much the device says that there is: of items, and of segments. It may be more than there is room for.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    room: usize,
    items: u64,
    segment_room: usize,
    segments: u64,
}

/// Sorts pairs whose number, and the number of whose segments, only the device knows.
fn check_lengths<K: Pod + Debug, V: Pod + Debug>(
    stream: &Stream,
    lengths: Lengths,
    key: impl Fn(u32) -> K,
    value: impl Fn(u32) -> V,
) where
    Less: Compare<K>,
{
    let Lengths { room, items, segment_room, segments } = lengths;
    let (there, parts) = (room.min(items as usize), segment_room.min(segments as usize));
    let what = format!("{lengths:?}");
    // The first segment is long. A tenth of the items, at the end, belongs to none.
    let end = (there - there / 10) as u32;
    let mut offsets: Vec<u32> = (0..=parts as u32)
        .map(|i| if i < 2 { i * end / 2 } else { end / 2 + end / 2 * i / 3 % (end / 2 + 1) })
        .collect();
    offsets.sort_unstable();
    let keys: Vec<K> = few_keys(20, there, 5000).into_iter().map(&key).collect();
    let values: Vec<V> = (0..there as u32).map(value).collect();
    let (sorted_keys, sorted_values) = oracle(&offsets, &keys, &values, Less);
    let inside = offsets[0] as usize..last(&offsets);
    let (items, segments) = (DeviceValue::new(stream, items).unwrap(), DeviceValue::new(stream, segments).unwrap());
    let all_offsets = first(stream, &offsets, segment_room + 1);
    // SAFETY: the offsets are in order, and those that count are there.
    let promised = unsafe { Offsets::unchecked(&all_offsets) };

    let (from_keys, from_values) = (first(stream, &keys, room), first(stream, &values, room));
    let (mut to_keys, mut to_values) = (marked::<K>(stream, &[], room), marked::<V>(stream, &[], room));
    let from = (counted(&from_keys, &items), &from_values);
    sort::segmented_pairs(stream, from, counted(&all_offsets, &segments), (&mut to_keys, &mut to_values), Less)
        .unwrap();
    assert_first(stream, &to_keys, &sorted_keys[inside.clone()], &what);
    assert_first(stream, &to_values, &sorted_values[inside.clone()], &what);

    let (mut in_keys, mut in_values) = (marked(stream, &keys, room), marked(stream, &values, room));
    let pairs = (&mut in_keys, counted(&mut in_values, &items));
    sort::segmented_pairs_in_place(stream, pairs, counted(promised, &segments), Less).unwrap();
    assert_first(stream, &in_keys, &sorted_keys, &what);
    assert_first(stream, &in_values, &sorted_values, &what);

    let mut to_keys = marked::<K>(stream, &[], room);
    sort::segmented_keys(stream, counted(&from_keys, &items), counted(promised, &segments), &mut to_keys, Less)
        .unwrap();
    assert_first(stream, &to_keys, &sorted_keys[inside.clone()], &what);
    let mut in_keys = marked(stream, &keys, room);
    sort::segmented_keys_in_place(stream, counted(&mut in_keys, &items), counted(&all_offsets, &segments), Less)
        .unwrap();
    assert_first(stream, &in_keys, &sorted_keys, &what);

    let mut positions = marked::<u32>(stream, &[], room);
    sort::segmented_argsort(stream, counted(&from_keys, &items), counted(promised, &segments), &mut positions, Less)
        .unwrap();
    let numbers: Vec<u32> = offsets.windows(2).flat_map(|pair| 0..pair[1] - pair[0]).collect();
    let (_, order) = oracle(&offsets, &keys[inside.clone()], &numbers, Less);
    assert_first(stream, &positions, &order, &what);
}

fn small_lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    for (room, items) in [(0, 0), (0, 7), (1, 0), (1, 1), (100, 0), (100, 99), (100, u64::MAX)] {
        for (segment_room, segments) in [(0, 0), (0, 3), (1, 0), (1, 1), (9, 5), (9, 9), (9, u64::MAX)] {
            let lengths = Lengths { room, items, segment_room, segments };
            check_lengths(&stream, lengths, |x| x, |x| x);
        }
    }
    // The offsets are checked against the number of items that there are.
    let keys = stream.upload(&[3u32, 2, 1, 0]).unwrap();
    let offsets = stream.upload(&[0u32, 2, 4, 1]).unwrap();
    let [one, two, three] = [1, 2, 3u64].map(|count| DeviceValue::new(&stream, count).unwrap());
    let mut output = stream.upload(&[9u32; 4]).unwrap();
    let result = sort::segmented_keys(&stream, counted(&keys, &three), counted(&offsets, &two), &mut output, Less);
    assert!(matches!(result, Err(Error::InvalidOffsets { index: 2, offset: 4, previous: 2, len: 3 })), "{result:?}");
    let result = sort::segmented_keys(&stream, &keys, counted(&offsets, &three), &mut output, Less);
    assert!(matches!(result, Err(Error::InvalidOffsets { index: 3, offset: 1, previous: 4, len: 4 })), "{result:?}");
    let mut values = stream.upload(&[9u32; 4]).unwrap();
    let pairs = (counted(&mut output, &one), counted(&mut values, &two));
    let result = sort::segmented_pairs_in_place(&stream, pairs, counted(&offsets, &one), Less);
    assert!(matches!(result, Err(Error::InvalidOption { .. })), "{result:?}");
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 4]);
    sort::segmented_keys(&stream, counted(&keys, &three), counted(&offsets, &one), &mut output, Less).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [2, 3, 9, 9]);
}

/// Around the edges of tiles. Several sizes, also such as are moved by index.
fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let room = if is_checked(device) { 2 * STRIDE + 1 } else { 5 * STRIDE + 1 };
    for items in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, TILE, room - 1, room, room + 1] {
        for (segment_room, segments) in [(1, 1), (3, 2), (2000, 1023), (2000, 1024), (2000, 2000)] {
            if is_checked(device) && segment_room > 3 && items != TILE {
                continue;
            }
            let lengths = Lengths { room, items: items as u64, segment_room, segments };
            check_lengths(&stream, lengths, |x| x, u64::from);
        }
    }
    for items in [0, 1, 700, 1150, 1200] {
        let lengths = Lengths { room: 1200, items, segment_room: 40, segments: 30 };
        check_lengths(&stream, lengths, |x| x as u16, |x| [x as u8; 3]);
        check_lengths(&stream, lengths, u64::from, |x| [u64::from(x); 2]);
        check_lengths(&stream, lengths, u128::from, |x| x);
    }
}

/// One graph, and other lengths for each launch.
fn lengths_change_between_launches(device: &Device) {
    let stream = device.stream().unwrap();
    let room = 2 * STRIDE + 300;
    let host = few_keys(21, room, 3000);
    let input = stream.upload(&host).unwrap();
    let mut output = marked::<u32>(&stream, &[], room);
    let mut offsets = stream.zeroed::<u32>(10).unwrap();
    let mut now = stream.zeroed::<u64>(2).unwrap();
    let (mut items, mut segments) =
        (DeviceValue::new(&stream, 0u64).unwrap(), DeviceValue::new(&stream, 0u64).unwrap());
    let (mut graph, ()) = stream
        .capture(|stream| {
            items.as_mut_slice().copy_from(stream, now.slice(..1)?)?;
            segments.as_mut_slice().copy_from(stream, now.slice(1..)?)?;
            // SAFETY: each launch has offsets that are in order.
            let offsets = unsafe { Offsets::unchecked(&offsets) };
            sort::segmented_keys(stream, counted(&input, &items), counted(offsets, &segments), &mut output, Less)
        })
        .unwrap();
    for cut in [vec![0, 5, 9], vec![0], vec![0, room as u32], vec![0, 1, 7, 7, 2000, 2001, 3000, 3001, 3002, 3050]] {
        let end = last(&cut);
        now.copy_from_host(&stream, &[end as u64, cut.len() as u64 - 1]).unwrap();
        // The offsets that do not count are out of order.
        let mut all = cut.clone();
        all.resize(10, 1);
        offsets.copy_from_host(&stream, &all).unwrap();
        output.copy_from(&stream, &marked::<u32>(&stream, &[], room)).unwrap();
        // SAFETY: all memory of the graph still exists, and is used on this stream only.
        unsafe { graph.launch(&stream).unwrap() };
        let (expected, _) = oracle(&cut, &host, &host, Less);
        assert_first(&stream, &output, &expected[..end], &format!("{cut:?}"));
    }
}
