//! Selection, partition and segmented compaction.

use bytemuck::Pod;
use gpu_conformance::data::{edge_sizes, random};
use gpu_conformance::kernels::Between;
use gpu_conformance::{adversarial_streams, cases, is_checked, is_gpu, is_simulated, run};
use gpu_primitives::select::{self, Masked, Offset, Predicate};
use gpu_primitives::source::counted;
use gpu_primitives::{Device, DeviceKind, DeviceValue, Error, Offsets, Stream, testing};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestRunner};
use std::fmt::Debug;
use std::process::ExitCode;

/// The number of items of a tile: of 32-bit keys, and of pairs of 32-bit keys and values.
const TILE: usize = 256 * 4 * 8;
const TILE_PAIRS: usize = 256 * 4 * 5;

/// Selects odd numbers.
const ODD: Masked<u32> = Masked::equal(1, 1);

fn main() -> ExitCode {
    run(cases![
        small_select,
        small_partition,
        small_flags,
        small_segments,
        select_patterns,
        pairs_of_every_width,
        flagged_pairs_of_every_width,
        values_of_other_types,
        misaligned_slices,
        custom_predicate,
        another_type,
        partition_is_stable,
        segments_of_all_lengths,
        segments_pairs,
        segments_counted,
        invalid_offsets,
        length_mismatch,
        empty_input,
        random_inputs,
        random_segments,
        deterministic,
        large,
        adversarial_schedules_of_select,
        adversarial_schedules_of_partition,
        adversarial_schedules_of_segments,
    ])
}

/// `assert_eq!` that names the first difference instead of printing everything.
fn assert_same<T: Debug + PartialEq>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    if let Some(i) = (0..found.len()).find(|&i| found[i] != expected[i]) {
        panic!("{what} of {} elements, at {i}: found {:?}, expected {:?}", found.len(), found[i], expected[i]);
    }
}

/// Returns the selected items, then `filler` up to the length of the input.
fn selected<T: Pod>(host: &[T], filler: T, mut passes: impl FnMut(usize, T) -> bool) -> (Vec<T>, usize) {
    let mut kept: Vec<T> = host.iter().enumerate().filter(|&(i, &x)| passes(i, x)).map(|(_, &x)| x).collect();
    let count = kept.len();
    kept.resize(host.len(), filler);
    (kept, count)
}

/// Returns the selected items, then the rest.
fn split<T: Pod>(host: &[T], mut passes: impl FnMut(usize, T) -> bool) -> (Vec<T>, usize) {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for (i, &item) in host.iter().enumerate() {
        if passes(i, item) { front.push(item) } else { back.push(item) }
    }
    let count = front.len();
    front.extend(back);
    (front, count)
}

fn check_select<T: Pod + Debug + PartialEq, P: Predicate<T>>(stream: &Stream, host: &[T], predicate: P) {
    let filler = T::zeroed();
    let input = stream.upload(host).unwrap();
    let mut output = stream.upload(&vec![filler; host.len()]).unwrap();
    let count = select::select(stream, &input, &mut output, predicate).unwrap();
    let (expected, expected_count) = selected(host, filler, |_, item| predicate.test(item));
    assert_same(&output.to_vec(stream).unwrap(), &expected, "selection");
    assert_eq!(count.get(stream).unwrap(), expected_count as u64);
}

fn check_partition<T: Pod + Debug + PartialEq, P: Predicate<T>>(stream: &Stream, host: &[T], predicate: P) {
    let input = stream.upload(host).unwrap();
    let mut output = stream.uninit::<T>(host.len()).unwrap();
    let count = select::partition(stream, &input, &mut output, predicate).unwrap();
    let (expected, expected_count) = split(host, |_, item| predicate.test(item));
    assert_same(&output.to_vec(stream).unwrap(), &expected, "partition");
    assert_eq!(count.get(stream).unwrap(), expected_count as u64);
}

fn check_segments<O: Offset + Debug + PartialEq, P: Predicate<u32>>(
    stream: &Stream,
    offsets: &[usize],
    host: &[u32],
    predicate: P,
) {
    let convert = |offsets: &[usize]| offsets.iter().map(|&x| O::new(x as u64)).collect::<Vec<_>>();
    let (expected, new_offsets) = kept_segments(offsets, host, |item| predicate.test(item));
    let device_offsets = stream.upload(&convert(offsets)).unwrap();
    let input = stream.upload(host).unwrap();
    let mut output = stream.upload(&vec![7; host.len()]).unwrap();
    let found = select::segmented(stream, &input, &device_offsets, &mut output, predicate).unwrap();
    assert_same(&found.to_vec(stream).unwrap(), &convert(&new_offsets), "new offsets");
    assert_same(&output.to_vec(stream).unwrap(), &expected, "segments");
}

/// Returns the selected items of all segments, then sevens; and the new offsets.
fn kept_segments(offsets: &[usize], host: &[u32], passes: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<usize>) {
    let (mut kept, mut new_offsets) = (Vec::new(), vec![0]);
    for segment in offsets.windows(2) {
        kept.extend(host[segment[0]..segment[1]].iter().copied().filter(|&x| passes(x)));
        new_offsets.push(kept.len());
    }
    kept.resize(host.len(), 7);
    (kept, new_offsets)
}

fn numbers(seed: u64, n: usize) -> Vec<u32> {
    random(seed).take(n).map(|x| x as u32).collect()
}

fn small_select(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 33, 1000, TILE + 1] {
        check_select(&stream, &numbers(n as u64, n), ODD);
    }
}

fn small_partition(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 33, 1000, TILE + 1] {
        check_partition(&stream, &numbers(n as u64, n), ODD);
    }
}

fn small_flags(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [1, 33, 1000, TILE + 1] {
        let host = numbers(n as u64, n);
        let flags: Vec<u8> = random(3).take(n).map(|x| if x % 3 == 0 { (x >> 8) as u8 | 1 } else { 0 }).collect();
        let (input, device_flags) = (stream.upload(&host).unwrap(), stream.upload(&flags).unwrap());
        let mut output = stream.upload(&vec![0; n]).unwrap();
        let count = select::flagged(&stream, &input, &device_flags, &mut output).unwrap();
        let (expected, expected_count) = selected(&host, 0, |i, _| flags[i] != 0);
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "flagged");
        assert_eq!(count.get(&stream).unwrap(), expected_count as u64);
    }
}

fn small_segments(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(4, 1000);
    check_segments::<u32, _>(&stream, &[0, 10, 10, 11, 500, 1000], &host, ODD);
    check_segments::<u64, _>(&stream, &[3, 130, 999], &host, ODD);
}

/// No item, all, every other, the first, the last, half and few, at the edges of tiles.
fn select_patterns(device: &Device) {
    let stream = device.stream().unwrap();
    for n in edge_sizes(TILE) {
        let counting: Vec<u32> = (0..n as u32).collect();
        check_select(&stream, &numbers(n as u64, n), ODD);
        check_partition(&stream, &numbers(n as u64, n), ODD);
        if is_checked(device) && n > TILE + 1 {
            continue;
        }
        let last = n.saturating_sub(1) as u32;
        for predicate in [
            Masked::equal(0, 1), // none
            Masked::equal(0, 0), // all
            ODD,
            Masked::equal(u32::MAX, 0),    // the first
            Masked::equal(u32::MAX, last), // the last
            Masked::differ(u32::MAX, 0),   // all but the first
            Masked::equal(63, 5),
        ] {
            check_select(&stream, &counting, predicate);
            check_partition(&stream, &counting, predicate);
        }
    }
    for n in edge_sizes(TILE / 2) {
        let host: Vec<u64> = random(n as u64).take(n).collect();
        check_select(&stream, &host, Masked::equal(1 << 40, 0));
        check_partition(&stream, &host, Masked::differ(1 << 40, 0));
    }
}

/// Checks selection and partition of pairs.
fn check_pairs<K, V, P>(stream: &Stream, keys: &[K], values: &[V], predicate: P)
where
    K: Pod + Debug + PartialEq,
    V: Pod + Debug + PartialEq,
    P: Predicate<K>,
{
    let n = keys.len();
    let (device_keys, device_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let mut out_keys = stream.upload(&vec![K::zeroed(); n]).unwrap();
    let mut out_values = stream.upload(&vec![V::zeroed(); n]).unwrap();
    let count =
        select::select_pairs(stream, (&device_keys, &device_values), (&mut out_keys, &mut out_values), predicate)
            .unwrap();
    let (expected, expected_count) = selected(keys, K::zeroed(), |_, key| predicate.test(key));
    assert_same(&out_keys.to_vec(stream).unwrap(), &expected, "selected keys");
    let (expected, _) = selected(values, V::zeroed(), |i, _| predicate.test(keys[i]));
    assert_same(&out_values.to_vec(stream).unwrap(), &expected, "selected values");
    assert_eq!(count.get(stream).unwrap(), expected_count as u64);

    let count =
        select::partition_pairs(stream, (&device_keys, &device_values), (&mut out_keys, &mut out_values), predicate)
            .unwrap();
    let (expected, expected_count) = split(keys, |_, key| predicate.test(key));
    assert_same(&out_keys.to_vec(stream).unwrap(), &expected, "split keys");
    let (expected, _) = split(values, |i, _| predicate.test(keys[i]));
    assert_same(&out_values.to_vec(stream).unwrap(), &expected, "split values");
    assert_eq!(count.get(stream).unwrap(), expected_count as u64);
}

fn pair_sizes(device: &Device) -> Vec<usize> {
    if is_checked(device) { vec![0, 1, 700, TILE_PAIRS + 1] } else { edge_sizes(TILE_PAIRS) }
}

fn pairs_of_every_width(device: &Device) {
    let stream = device.stream().unwrap();
    for n in pair_sizes(device) {
        let narrow = numbers(n as u64, n);
        let wide: Vec<u64> = random(n as u64).take(n).collect();
        let places: Vec<u32> = (0..n as u32).collect();
        let wide_places: Vec<u64> = (0..n as u64).map(|i| i << 20 | 5).collect();
        check_pairs(&stream, &narrow, &places, ODD);
        check_pairs(&stream, &narrow, &wide_places, ODD);
        check_pairs(&stream, &wide, &places, Masked::equal(3u64, 1));
        check_pairs(&stream, &wide, &wide_places, Masked::differ(3u64, 1));
    }
}

fn check_flagged_pairs<K: Pod + Debug + PartialEq, V: Pod + Debug + PartialEq>(
    stream: &Stream,
    keys: &[K],
    values: &[V],
    flags: &[u8],
) {
    let n = keys.len();
    let (device_keys, device_values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
    let device_flags = stream.upload(flags).unwrap();
    let mut out_keys = stream.upload(&vec![K::zeroed(); n]).unwrap();
    let mut out_values = stream.upload(&vec![V::zeroed(); n]).unwrap();
    select::flagged_pairs(stream, (&device_keys, &device_values), &device_flags, (&mut out_keys, &mut out_values))
        .unwrap();
    assert_same(&out_keys.to_vec(stream).unwrap(), &selected(keys, K::zeroed(), |i, _| flags[i] != 0).0, "keys");
    assert_same(&out_values.to_vec(stream).unwrap(), &selected(values, V::zeroed(), |i, _| flags[i] != 0).0, "values");
}

fn flagged_pairs_of_every_width(device: &Device) {
    let stream = device.stream().unwrap();
    for n in [700, TILE_PAIRS + 1] {
        let flags: Vec<u8> = random(9).take(n).map(|x| (x % 4) as u8 & 2).collect();
        let narrow = numbers(n as u64, n);
        let wide: Vec<u64> = random(n as u64).take(n).collect();
        check_flagged_pairs(&stream, &narrow, &narrow, &flags);
        check_flagged_pairs(&stream, &narrow, &wide, &flags);
        check_flagged_pairs(&stream, &wide, &narrow, &flags);
        check_flagged_pairs(&stream, &wide, &wide, &flags);
    }
}

/// Values and flagged keys are only moved: any plain type works on every device.
fn values_of_other_types(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 1500;
    let keys = numbers(1, n);
    check_pairs(&stream, &keys, &keys.iter().map(|&x| (x >> 8) as f32).collect::<Vec<_>>(), ODD);
    check_pairs(&stream, &keys, &keys.iter().map(|&x| [x, !x]).collect::<Vec<_>>(), ODD);
    check_pairs(&stream, &keys, &keys.iter().map(|&x| x.to_le_bytes()).collect::<Vec<_>>(), ODD);
    let flags: Vec<u8> = keys.iter().map(|&x| x as u8 & 1).collect();
    let floats: Vec<f64> = keys.iter().map(|&x| f64::from(x) / 3.0).collect();
    check_flagged_pairs(&stream, &floats, &keys.iter().map(|&x| x as i32).collect::<Vec<_>>(), &flags);
    check_pairs(&stream, &keys, &keys.iter().map(|&x| x as u16).collect::<Vec<_>>(), ODD);
    check_pairs(&stream, &keys, &keys.iter().map(|&x| [x; 3]).collect::<Vec<_>>(), ODD);
    check_select(&stream, &keys.iter().map(|&x| x as u8).collect::<Vec<_>>(), Masked::equal(1u8, 1));
    let wide: Vec<_> = keys.iter().map(|&x| u128::from(x) << 70).collect();
    check_select(&stream, &wide, Masked::differ(1u128 << 70, 0));
}

/// Slices at any offset. The memory around the target does not change.
fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(5, TILE + 300);
    let flags: Vec<u8> = host.iter().map(|&x| (x & 1) as u8).collect();
    let (input, device_flags) = (stream.upload(&host).unwrap(), stream.upload(&flags).unwrap());
    for (from, to) in [(0, 1), (1, 0), (3, 3), (4, 2)] {
        let n = TILE + 200;
        let kept: Vec<u32> = host[from..from + n].iter().copied().filter(|x| x & 1 == 1).collect();
        let mut expected = vec![9; host.len()];
        expected[to..to + kept.len()].copy_from_slice(&kept);
        let mut output = stream.upload(&vec![9u32; host.len()]).unwrap();
        let source = input.slice(from..from + n).unwrap();
        select::select(&stream, source, output.slice_mut(to..to + n).unwrap(), ODD).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "selection");
        let mut output = stream.upload(&vec![9u32; host.len()]).unwrap();
        let flags = device_flags.slice(from..from + n).unwrap();
        select::flagged(&stream, source, flags, output.slice_mut(to..).unwrap()).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "flagged");

        let mut output = stream.upload(&vec![9u32; host.len()]).unwrap();
        select::partition(&stream, source, output.slice_mut(to..to + n).unwrap(), ODD).unwrap();
        expected[to..to + n].copy_from_slice(&split(&host[from..from + n], |_, x| x & 1 == 1).0);
        assert_same(&output.to_vec(&stream).unwrap(), &expected, "partition");

        let mut output = stream.upload(&vec![9u32; host.len()]).unwrap();
        let mut output_values = stream.upload(&vec![9u32; host.len()]).unwrap();
        let values = input.slice(from + 1..from + 1 + n).unwrap();
        let (out_keys, out_values) = (output.slice_mut(..n).unwrap(), output_values.slice_mut(to..to + n).unwrap());
        select::partition_pairs(&stream, (source, values), (out_keys, out_values), ODD).unwrap();
        let split_values = split(&host[from + 1..from + 1 + n], |i, _| host[from + i] & 1 == 1).0;
        assert_same(&output_values.slice(to..to + n).unwrap().to_vec(&stream).unwrap(), &split_values, "values");
    }
}

/// A predicate with state from another crate.
fn custom_predicate(device: &Device) {
    let stream = device.stream().unwrap();
    let between = Between { low: -1000, high: 700 };
    for n in [0, 1, 1000, TILE + 3] {
        let host: Vec<i32> = random(6).take(n).map(|x| (x % 5000) as i32 - 2500).collect();
        check_select(&stream, &host, between);
        check_partition(&stream, &host, between);
    }
}

fn another_type(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u16, 8, 5]).unwrap();
    let mut output = stream.zeroed::<u16>(3).unwrap();
    let select = select::select(&stream, &input, &mut output, Masked::equal(1u16, 1));
    assert_eq!(select.unwrap().get(&stream).unwrap(), 2);
    assert_eq!(output.to_vec(&stream).unwrap(), [3, 5, 0]);
}

/// Equal keys, distinguished by their values.
fn partition_is_stable(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 2 * TILE_PAIRS + 55;
    let keys: Vec<u32> = random(8).take(n).map(|x| (x % 2) as u32).collect();
    let places: Vec<u32> = (0..n as u32).collect();
    check_pairs(&stream, &keys, &places, ODD);
}

fn segments_of_all_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 2 * TILE + 77;
    let host = numbers(11, n);
    // No segment, one segment, empty segments at both ends, a huge one in the middle, and segments of one item.
    for offsets in [
        vec![0],
        vec![500],
        vec![n],
        vec![0, n],
        vec![0, 0, 0, n, n, n],
        vec![5, 6, 7, TILE + 9, TILE + 9, n - 1],
        vec![TILE, TILE, 2 * TILE],
        (0..=n).collect(),
    ] {
        check_segments::<u32, _>(&stream, &offsets, &host, ODD);
        check_segments::<u64, _>(&stream, &offsets, &host, Masked::equal(3, 1));
    }
    // Lengths around those of a row and of a run, with none or all of the items selected.
    let mut offsets = vec![3];
    for length in [0usize, 1, 127, 128, 129, 31, 32, 33, 1023, 1024, 1025, 0, 0, 300].iter().cycle() {
        let next = offsets.last().unwrap() + length;
        if next > n {
            break;
        }
        offsets.push(next);
    }
    for predicate in [Masked::equal(0, 0), Masked::equal(0, 1), ODD] {
        check_segments::<u32, _>(&stream, &offsets, &host, predicate);
    }
}

fn segments_pairs(device: &Device) {
    let stream = device.stream().unwrap();
    let n = TILE_PAIRS + 100;
    let host = numbers(12, n);
    let offsets = [2usize, 2, 400, 401, TILE_PAIRS - 1, TILE_PAIRS + 1, n - 3];
    let (expected, new_offsets) = kept_segments(&offsets, &host, |x| x & 1 == 1);
    let count = *new_offsets.last().unwrap();
    let new_offsets: Vec<u32> = new_offsets.iter().map(|&x| x as u32).collect();
    let device_offsets = stream.upload(&offsets.map(|x| x as u32)).unwrap();
    let input = stream.upload(&host).unwrap();
    let values = stream.upload(&host.iter().map(|&x| u64::from(x) << 9).collect::<Vec<_>>()).unwrap();
    for wait in [true, false] {
        let mut out_keys = stream.upload(&vec![7; n]).unwrap();
        let mut out_values = stream.uninit::<u64>(n).unwrap();
        let (keys, values_out) = (&mut out_keys, &mut out_values);
        let offsets = if wait {
            Offsets::checked(&device_offsets)
        } else {
            // SAFETY: the offsets ascend.
            unsafe { Offsets::unchecked(&device_offsets) }
        };
        let found = select::segmented_pairs(&stream, (&input, &values), offsets, (keys, values_out), ODD).unwrap();
        assert_same(&found.to_vec(&stream).unwrap(), &new_offsets, "new offsets");
        assert_same(&out_keys.to_vec(&stream).unwrap(), &expected, "keys");
        let found_values = out_values.slice(..count).unwrap().to_vec(&stream).unwrap();
        let expected_values: Vec<u64> = expected[..count].iter().map(|&x| u64::from(x) << 9).collect();
        assert_same(&found_values, &expected_values, "values");
    }
}

/// Only the device knows how many segments there are. The offsets beyond them are uninitialised.
fn segments_counted(device: &Device) {
    let stream = device.stream().unwrap();
    let n = TILE_PAIRS + 100;
    let host = numbers(12, n);
    let input = stream.upload(&host).unwrap();
    let mut all: Vec<u64> = random(31).take(600).map(|x| x % (n as u64 + 1)).collect();
    all.sort_unstable();
    for (room, count) in [(1, 0), (1, 5), (600, 0), (600, 1), (600, 255), (600, 256), (600, 599), (600, 600)] {
        let there = count.min(room as u64 - 1) as usize;
        let offsets: Vec<usize> = all[..=there].iter().map(|&x| x as usize).collect();
        let (expected, new_offsets) = kept_segments(&offsets, &host, |x| x & 1 == 1);
        let mut new_offsets: Vec<u64> = new_offsets.iter().map(|&x| x as u64).collect();
        new_offsets.resize(room, new_offsets[there]);
        let mut device_offsets = stream.uninit::<u64>(room).unwrap();
        device_offsets.slice_mut(..=there).unwrap().copy_from_host(&stream, &all[..=there]).unwrap();
        let segments = DeviceValue::new(&stream, count).unwrap();
        // SAFETY: the offsets that count ascend.
        let promised = unsafe { Offsets::unchecked(&device_offsets) };
        let ways: [Offsets<'_, u64>; 2] =
            [counted(&device_offsets, &segments).into(), counted(promised, &segments).into()];
        for offsets in ways {
            let mut output = stream.upload(&vec![7; n]).unwrap();
            let found = select::segmented(&stream, &input, offsets, &mut output, ODD).unwrap();
            assert_same(&found.to_vec(&stream).unwrap(), &new_offsets, "new offsets");
            assert_same(&output.to_vec(&stream).unwrap(), &expected, "keys");
        }
    }
}

/// A typed error, and nothing is written. Without the check, nothing is written out of bounds.
fn invalid_offsets(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 1000;
    let input = stream.upload(&numbers(13, n)).unwrap();
    let mut output = stream.upload(&vec![7; n]).unwrap();
    for (offsets, bad_index, bad_offset, bad_previous) in [
        (vec![0u32, 10, 5, 1000], 2, 5, 10),
        (vec![0, 10, 20, 1001], 3, 1001, 20),
        (vec![u32::MAX], 0, u64::from(u32::MAX), 0),
        (vec![0, u32::MAX, 20], 1, u64::from(u32::MAX), 0),
        (vec![900, 100], 1, 100, 900),
    ] {
        let device_offsets = stream.upload(&offsets).unwrap();
        match select::segmented(&stream, &input, &device_offsets, &mut output, ODD).unwrap_err() {
            Error::InvalidOffsets { index, offset, previous, len } => {
                assert_eq!((index, offset, previous, len), (bad_index, bad_offset, bad_previous, n));
            }
            other => panic!("{other}"),
        }
        assert_eq!(output.to_vec(&stream).unwrap(), vec![7; n]);
        let mut other = stream.uninit::<u32>(n).unwrap();
        // SAFETY: the offsets break the contract on purpose. The test checks the new offsets.
        let offsets = unsafe { Offsets::unchecked(&device_offsets) };
        let moved = select::segmented(&stream, &input, offsets, &mut other, ODD).unwrap();
        assert!(moved.to_vec(&stream).unwrap().iter().all(|&x| x <= 1000));
    }
    let none = stream.upload::<u32>(&[]).unwrap();
    let error = select::segmented(&stream, &input, &none, &mut output, ODD).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 1, found: 0, .. }), "{error}");
}

fn length_mismatch(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[1u32, 2, 3]).unwrap();
    let short = stream.upload(&[1u32, 2]).unwrap();
    let flags = stream.upload(&[1u8, 2]).unwrap();
    let mut output = stream.upload(&[5u32; 3]).unwrap();
    let mut small = stream.upload(&[5u32; 2]).unwrap();
    let mut other = stream.upload(&[5u32; 3]).unwrap();
    let is_mismatch =
        |result: Result<_, Error>| matches!(result, Err(Error::LengthMismatch { expected: 3, found: 2, .. }));
    assert!(is_mismatch(select::select(&stream, &input, &mut small, ODD)));
    assert!(is_mismatch(select::partition(&stream, &input, &mut small, ODD)));
    assert!(is_mismatch(select::flagged(&stream, &input, &flags, &mut output)));
    assert!(is_mismatch(select::select_pairs(&stream, (&input, &short), (&mut output, &mut other), ODD)));
    assert!(is_mismatch(select::partition_pairs(&stream, (&input, &input), (&mut output, &mut small), ODD)));
    assert_eq!(output.to_vec(&stream).unwrap(), [5; 3]);
    assert_eq!(small.to_vec(&stream).unwrap(), [5; 2]);
}

fn empty_input(device: &Device) {
    let stream = device.stream().unwrap();
    check_select(&stream, &[], ODD);
    check_partition(&stream, &[], ODD);
    check_segments::<u32, _>(&stream, &[0, 0, 0], &[], ODD);
}

fn random_inputs(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (8, 6000) } else { (48, 40_000) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&(vec(any::<u32>(), 0..longest), any::<u32>()), |(host, mask)| {
            let mask = 1 << (mask % 32) | 1 << (mask / 32 % 32);
            check_select(&stream, &host, Masked::equal(mask, 0));
            check_partition(&stream, &host, Masked::differ(mask, 0));
            Ok(())
        })
        .unwrap();
}

fn random_segments(device: &Device) {
    let stream = device.stream().unwrap();
    let (cases, longest) = if is_checked(device) { (8, 40) } else { (48, 400) };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&(vec(0usize..200, 1..longest), any::<u64>()), |(lengths, seed)| {
            let mut end = 0;
            let offsets: Vec<usize> = lengths
                .iter()
                .map(|length| {
                    end += length;
                    end
                })
                .collect();
            let host = numbers(seed, end + (seed % 100) as usize);
            check_segments::<u32, _>(&stream, &offsets, &host, ODD);
            Ok(())
        })
        .unwrap();
}

/// The same bytes on every run, and counts that are used without waiting.
fn deterministic(device: &Device) {
    let stream = device.stream().unwrap();
    let n = 6 * TILE + 123;
    let host = numbers(14, n);
    let input = stream.upload(&host).unwrap();
    let (kept, count) = selected(&host, 0, |_, x| x & 1 == 1);
    let (parts, _) = split(&host, |_, x| x & 1 == 1);
    for _ in 0..if is_checked(device) { 1 } else { 20 } {
        let mut output = stream.upload(&vec![0; n]).unwrap();
        let first = select::select(&stream, &input, &mut output, ODD).unwrap();
        let mut parted = stream.uninit::<u32>(n).unwrap();
        let second = select::partition(&stream, &input, &mut parted, ODD).unwrap();
        assert_same(&output.to_vec(&stream).unwrap(), &kept, "selection");
        assert_same(&parted.to_vec(&stream).unwrap(), &parts, "partition");
        assert_eq!(first.get(&stream).unwrap(), count as u64);
        assert_eq!(second.as_slice().to_vec(&stream).unwrap(), [count as u64]);
    }
}

fn large(device: &Device) {
    let n = match device.kind() {
        DeviceKind::CpuChecked => 33 * TILE + 1,
        DeviceKind::Cpu if is_simulated(device) => (1 << 17) + 12_345,
        DeviceKind::Cpu => (1 << 20) + 12_345,
        // Three levels of the look-back tree.
        DeviceKind::Cuda { .. } => 1100 * TILE + 17,
    };
    let stream = device.stream().unwrap();
    let host = numbers(15, n);
    check_select(&stream, &host, ODD);
    check_partition(&stream, &host, ODD);
    let offsets: Vec<usize> = (0..n).step_by(1000).collect();
    check_segments::<u64, _>(&stream, &offsets, &host, Masked::equal(7, 1));
}

/// A GPU has tiles of one shape. On the CPU they are tiny, so that 40 tiles of few items make two levels of the
/// look-back tree.
fn forty_tiles(device: &Device) -> usize {
    if is_gpu(device) { 40 * TILE + 3 } else { 40 * 64 + 3 }
}

/// Adversarial orders of blocks and threads: the look-back finds the same positions in all of them.
fn adversarial_schedules_of_select(device: &Device) {
    let host = numbers(16, forty_tiles(device));
    let (kept, count) = selected(&host, 0, |_, x| x & 1 == 1);
    for (seed, stream) in adversarial_streams(device, 30) {
        let input = stream.upload(&host).unwrap();
        let mut output = stream.zeroed::<u32>(host.len()).unwrap();
        let found = if is_gpu(device) {
            select::select(&stream, &input, &mut output, ODD)
        } else {
            testing::select_shaped::<_, _, 32, 1, 2>(&stream, (&input).into(), (&mut output).into(), ODD)
        };
        assert_eq!(found.unwrap().get(&stream).unwrap(), count as u64, "order {seed}");
        assert_same(&output.to_vec(&stream).unwrap(), &kept, "selection");
    }
}

fn adversarial_schedules_of_partition(device: &Device) {
    let host = numbers(17, forty_tiles(device));
    let (parts, count) = split(&host, |_, x| x & 1 == 1);
    for (seed, stream) in adversarial_streams(device, 30) {
        let input = stream.upload(&host).unwrap();
        let mut output = stream.uninit::<u32>(host.len()).unwrap();
        let found = if is_gpu(device) {
            select::partition(&stream, &input, &mut output, ODD)
        } else {
            testing::partition_shaped::<_, _, 64, 1, 1>(&stream, (&input).into(), (&mut output).into(), ODD)
        };
        assert_eq!(found.unwrap().get(&stream).unwrap(), count as u64, "order {seed}");
        assert_same(&output.to_vec(&stream).unwrap(), &parts, "partition");
    }
}

fn adversarial_schedules_of_segments(device: &Device) {
    let host = numbers(18, forty_tiles(device));
    let offsets: Vec<usize> = (0..host.len()).step_by(37).collect();
    let (kept, new_offsets) = kept_segments(&offsets, &host, |x| x & 1 == 1);
    let offsets: Vec<u64> = offsets.iter().map(|&x| x as u64).collect();
    let new_offsets: Vec<u64> = new_offsets.iter().map(|&x| x as u64).collect();
    for (seed, stream) in adversarial_streams(device, 30) {
        let input = stream.upload(&host).unwrap();
        let offsets = stream.upload(&offsets).unwrap();
        let mut output = stream.upload(&vec![7; host.len()]).unwrap();
        let found = if is_gpu(device) {
            select::segmented(&stream, &input, &offsets, &mut output, ODD)
        } else {
            testing::segmented_select_shaped::<_, _, _, 32, 2, 1>(
                &stream,
                (&input).into(),
                (&offsets).into(),
                (&mut output).into(),
                ODD,
            )
        };
        assert_same(&found.unwrap().to_vec(&stream).unwrap(), &new_offsets, &format!("order {seed}: new offsets"));
        assert_same(&output.to_vec(&stream).unwrap(), &kept, "segments");
    }
}
