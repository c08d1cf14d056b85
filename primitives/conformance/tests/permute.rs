//! Gather, scatter, reverse and copies of ranges, to places in a row and to free ones, against loops on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, run};
use gpu_primitives::operator::map;
use gpu_primitives::source::{counted, counting, map};
use gpu_primitives::{Device, DeviceValue, Error, Stream, permute, ranges};
use std::fmt::Debug;
use std::process::ExitCode;

/// The words of a block.
const TILE: usize = 1024;

fn main() -> ExitCode {
    run(cases![
        small_gathers,
        tile_edges,
        elements_of_every_size,
        misaligned_slices,
        the_last_one_wins,
        few_elements_to_many_places,
        elements_without_a_size,
        scatter_without_checks,
        indices_from_sources,
        reversed,
        rotations,
        shifts,
        interleaved,
        arrangements_of_wrong_lengths,
        ranges_in_a_row,
        ranges_out_of_range,
        small_ranges,
        ranges_at_tile_edges,
        ranges_of_every_size,
        ranges_in_many_tiles,
        ranges_in_a_graph,
        ranges_of_wrong_lengths,
        wrong_lengths,
        in_a_graph,
    ])
}

fn elements<T: Pod>(seed: u64, len: usize) -> Vec<T> {
    let bytes: Vec<u64> = random(seed).take((len * size_of::<T>()).div_ceil(8)).collect();
    bytemuck::cast_slice::<_, u8>(&bytes)
        .chunks_exact(size_of::<T>())
        .take(len)
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

/// Indices, of which some are out of range.
fn indices(seed: u64, len: usize, range: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| (x % (range as u64 + 2)) as u32).collect()
}

fn check<T: Pod + Debug + PartialEq>(stream: &Stream, from: &[T], indices: &[u32]) {
    let places = elements::<T>(99, from.len());
    let (input, on_device) = (stream.upload(from).unwrap(), stream.upload(indices).unwrap());
    let wide = stream.upload(&indices.iter().map(|&i| u64::from(i)).collect::<Vec<_>>()).unwrap();
    let outside = indices.iter().filter(|&&i| i as usize >= from.len()).count() as u64;

    let filler = elements::<T>(98, indices.len());
    let expected: Vec<T> =
        indices.iter().zip(&filler).map(|(&i, &filler)| from.get(i as usize).copied().unwrap_or(filler)).collect();
    let mut gathered = stream.upload(&filler).unwrap();
    assert_eq!(permute::gather(stream, &input, &on_device, &mut gathered).unwrap().get(stream).unwrap(), outside);
    assert_eq!(gathered.to_vec(stream).unwrap(), expected);
    let mut gathered = stream.upload(&filler).unwrap();
    assert_eq!(permute::gather(stream, &input, &wide, &mut gathered).unwrap().get(stream).unwrap(), outside);
    assert_eq!(gathered.to_vec(stream).unwrap(), expected);

    let from = elements::<T>(97, indices.len());
    let input = stream.upload(&from).unwrap();
    let mut expected = places.clone();
    for (&index, &element) in indices.iter().zip(&from) {
        if let Some(place) = expected.get_mut(index as usize) {
            *place = element;
        }
    }
    let mut scattered = stream.upload(&places).unwrap();
    assert_eq!(permute::scatter(stream, &input, &on_device, &mut scattered).unwrap().get(stream).unwrap(), outside);
    assert_eq!(scattered.to_vec(stream).unwrap(), expected);
    let mut scattered = stream.upload(&places).unwrap();
    assert_eq!(permute::scatter(stream, &input, &wide, &mut scattered).unwrap().get(stream).unwrap(), outside);
    assert_eq!(scattered.to_vec(stream).unwrap(), expected);
}

fn small_gathers(device: &Device) {
    let stream = device.stream().unwrap();
    for (len, range) in [(0, 0), (0, 3), (3, 0), (1, 1), (33, 7), (200, 1000)] {
        check(&stream, &elements::<u32>(1, range), &indices(2, len, range));
    }
}

fn tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
        check(&stream, &elements::<u32>(3, 500), &indices(4, len, 500));
    }
}

fn elements_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 150 } else { 700 };
    macro_rules! check {
        ($($type:ty)*) => { $( check(&stream, &elements::<$type>(5, 99), &indices(6, len, 99)); )* };
    }
    check!(u8 u16 [u8; 3] u32 [u8; 5] [u16; 3] u64 [u32; 3] u128 [u64; 3] [u64; 4] [u8; 31] [u32; 25]);
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host = elements::<u8>(7, 300);
    let (input, on_device) = (stream.upload(&host).unwrap(), stream.upload(&[5u32, 0, 9]).unwrap());
    for start in 0..5 {
        let mut output = stream.zeroed::<u8>(8).unwrap();
        let place = output.slice_mut(start..start + 3).unwrap();
        permute::gather(&stream, input.slice(start..).unwrap(), &on_device, place).unwrap();
        let found = output.to_vec(&stream).unwrap();
        assert_eq!(found[start..start + 3], [host[start + 5], host[start], host[start + 9]]);
    }
}

fn the_last_one_wins(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 3000;
    let input = stream.upload(&(0..len as u32).collect::<Vec<_>>()).unwrap();
    let same = stream.upload(&vec![1u32; len]).unwrap();
    let mut output = stream.zeroed::<u32>(3).unwrap();
    permute::scatter(&stream, &input, &same, &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), [0, len as u32 - 1, 0]);
}

/// The places have more numbers to clear than the elements have blocks. One place is repeated, or none.
fn few_elements_to_many_places(device: &Device) {
    let stream = device.stream().unwrap();
    let places = if is_checked(device) { 16 * TILE + 1 } else { 100 * TILE + 1 };
    for indices in [vec![places as u32 - 1, 0, 7, places as u32 - 2], vec![31, 32, places as u32, 31, 32, 63]] {
        check(&stream, &elements::<[u16; 3]>(9, places), &indices);
        check(&stream, &elements::<u64>(9, places), &indices);
    }
}

fn elements_without_a_size(device: &Device) {
    let stream = device.stream().unwrap();
    let (input, indices) = (stream.upload(&[(); 3]).unwrap(), stream.upload(&[0u32, 9, 1]).unwrap());
    let mut output = stream.zeroed::<()>(2).unwrap();
    assert_eq!(permute::scatter(&stream, &input, &indices, &mut output).unwrap().get(&stream).unwrap(), 0);
    let mut output = stream.zeroed::<()>(3).unwrap();
    assert_eq!(permute::gather(&stream, &input, &indices, &mut output).unwrap().get(&stream).unwrap(), 0);
}

fn scatter_without_checks(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 2 * TILE + 3;
    let host = elements::<[u32; 3]>(8, len);
    let input = stream.upload(&host).unwrap();
    let backwards: Vec<u32> = (0..len as u32).rev().collect();
    let on_device = stream.upload(&backwards).unwrap();
    let mut output = stream.zeroed::<[u32; 3]>(len).unwrap();
    // SAFETY: the indices are a permutation.
    unsafe { permute::scatter_unchecked(&stream, &input, &on_device, &mut output).unwrap() };
    let expected: Vec<_> = host.iter().rev().copied().collect();
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
    // SAFETY: as above.
    unsafe { permute::gather_unchecked(&stream, &input, &on_device, &mut output).unwrap() };
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
}

/// Indices that are computed, and whose number only the device knows.
fn indices_from_sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host = elements::<u64>(9, 900);
    let input = stream.upload(&host).unwrap();
    let every_third = map(counting(0u32, 300), map!(|i: u32| -> u32 { 3 * i }));
    let mut output = stream.zeroed::<u64>(300).unwrap();
    permute::gather(&stream, &input, every_third, &mut output).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap(), host.iter().copied().step_by(3).collect::<Vec<_>>());

    let count = DeviceValue::new(&stream, 10).unwrap();
    let mut output = stream.zeroed::<u64>(300).unwrap();
    permute::gather(&stream, &input, counted(every_third, &count), &mut output).unwrap();
    let mut expected: Vec<u64> = host.iter().copied().step_by(3).take(10).collect();
    expected.resize(300, 0);
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
}

fn reversed(device: &Device) {
    let stream = device.stream().unwrap();
    macro_rules! check {
        ($($type:ty)*) => { $(
            for len in [0, 1, 2, 3, TILE, 2 * TILE + 1] {
                let host = elements::<$type>(10, len);
                let expected: Vec<$type> = host.iter().rev().copied().collect();
                let mut data = stream.upload(&host).unwrap();
                let mut output = stream.zeroed::<$type>(len).unwrap();
                permute::reverse(&stream, &data, &mut output).unwrap();
                assert_eq!(output.to_vec(&stream).unwrap(), expected, "{len}");
                permute::reverse_in_place(&stream, &mut data).unwrap();
                assert_eq!(data.to_vec(&stream).unwrap(), expected, "{len}");
            }
        )* };
    }
    check!(u8 u32 [u8; 3] u128 [u32; 5]);
}

fn ranges_in_a_row(device: &Device) {
    let stream = device.stream().unwrap();
    let host = elements::<[u16; 3]>(11, 4000);
    let lengths = [0u64, 1, 0, 5, 1000, 0, 33, 700];
    let starts = [7u64, 3999, 0, 0, 2500, 4000, 100, 3];
    let offsets: Vec<u64> = std::iter::once(2)
        .chain(lengths.iter().scan(2, |sum, x| {
            *sum += x;
            Some(*sum)
        }))
        .collect();
    let total = *offsets.last().unwrap() as usize;
    let mut expected = vec![[9u16; 3]; total + 4];
    for (r, &start) in starts.iter().enumerate() {
        for i in 0..lengths[r] {
            expected[(offsets[r] + i) as usize] = host[(start + i) as usize];
        }
    }
    let input = stream.upload(&host).unwrap();
    let (starts, offsets) = (stream.upload(&starts).unwrap(), stream.upload(&offsets).unwrap());
    let mut output = stream.upload(&vec![[9u16; 3]; total + 4]).unwrap();
    let outside = permute::batched_copy(&stream, &input, &starts, &mut output, &offsets).unwrap();
    assert_eq!(outside.get(&stream).unwrap(), 0);
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
}

fn ranges_out_of_range(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[1u8, 2, 3]).unwrap();
    let (starts, offsets) = (stream.upload(&[2u64, u64::MAX]).unwrap(), stream.upload(&[0u64, 2, 5]).unwrap());
    let mut output = stream.upload(&[9u8; 6]).unwrap();
    let outside = permute::batched_copy(&stream, &input, &starts, &mut output, &offsets).unwrap();
    // The second range begins at the largest number, and does not come around.
    assert_eq!(output.to_vec(&stream).unwrap(), [3, 9, 9, 9, 9, 9]);
    assert_eq!(outside.get(&stream).unwrap(), 4);
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.zeroed::<u32>(5).unwrap();
    let indices = stream.zeroed::<u32>(4).unwrap();
    let mut output = stream.upload(&[9u32; 5]).unwrap();
    let error = permute::gather(&stream, &input, &indices, &mut output).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 4, found: 5, .. }), "{error}");
    let error = permute::scatter(&stream, &input, &indices, &mut output).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 5, found: 4, .. }), "{error}");
    let error = permute::reverse(&stream, &indices, &mut output).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 4, found: 5, .. }), "{error}");
    let (starts, offsets) = (stream.zeroed::<u64>(2).unwrap(), stream.zeroed::<u64>(2).unwrap());
    let error = permute::batched_copy(&stream, &input, &starts, &mut output, &offsets).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 5]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = elements::<u32>(12, 100);
    let (input, on_device) = (stream.upload(&host).unwrap(), stream.upload(&[5u32, 99, 100]).unwrap());
    let mut output = stream.zeroed::<u32>(3).unwrap();
    let (mut graph, outside) =
        stream.capture(|stream| permute::gather(stream, &input, &on_device, &mut output)).unwrap();
    // SAFETY: the buffers are still there.
    unsafe { graph.launch(&stream).unwrap() };
    assert_eq!(output.to_vec(&stream).unwrap(), [host[5], host[99], 0]);
    assert_eq!(outside.get(&stream).unwrap(), 1);
}

/// Lengths around a line of 16 bytes and the tiles of copies.
const LENGTHS: [usize; 9] = [0, 1, 2, 15, 16, 17, 1000, 4095, 4097];

fn check_arrangements<T: Pod + Debug + PartialEq>(stream: &Stream, len: usize) {
    let host = elements::<T>(20, len);
    let input = stream.upload(&host).unwrap();
    let mut output = stream.uninit::<T>(len).unwrap();
    for by in [0, 1, 7, len / 2, len.saturating_sub(1), len, len + 3, usize::MAX] {
        permute::rotate(stream, &input, &mut output, by).unwrap();
        let mut expected = host.clone();
        expected.rotate_left(by.checked_rem(len).unwrap_or(0));
        assert_eq!(output.to_vec(stream).unwrap(), expected, "{len} by {by}");
    }
    let fill = elements::<T>(21, 1)[0];
    for by in [0, 1, -1, 7, -7, len as isize, -(len as isize), isize::MAX, isize::MIN] {
        permute::shift(stream, &input, &mut output, by, fill).unwrap();
        let from = |i: usize| i.checked_add_signed(by.checked_neg()?).and_then(|i| host.get(i).copied());
        let expected: Vec<T> = (0..len).map(|i| from(i).unwrap_or(fill)).collect();
        assert_eq!(output.to_vec(stream).unwrap(), expected, "{len} by {by}");
    }
}

fn rotations(device: &Device) {
    let stream = device.stream().unwrap();
    for len in LENGTHS {
        check_arrangements::<u32>(&stream, len);
    }
}

fn shifts(device: &Device) {
    let stream = device.stream().unwrap();
    check_arrangements::<u8>(&stream, 1000);
    check_arrangements::<u16>(&stream, 1000);
    check_arrangements::<[u8; 3]>(&stream, 1000);
    check_arrangements::<u64>(&stream, 1000);
    check_arrangements::<[u64; 5]>(&stream, 300);
}

fn interleaved(device: &Device) {
    fn check<T: Pod + Debug + PartialEq>(stream: &Stream, columns: usize, len: usize) {
        let host: Vec<Vec<T>> = (0..columns).map(|column| elements::<T>(30 + column as u64, len)).collect();
        let on_device: Vec<_> = host.iter().map(|column| stream.upload(column).unwrap()).collect();
        let slices: Vec<_> = on_device.iter().map(|column| column.as_slice()).collect();
        let mut output = stream.uninit::<T>(columns * len).unwrap();
        permute::interleave(stream, &slices, &mut output).unwrap();
        let expected: Vec<T> = (0..len).flat_map(|i| host.iter().map(move |column| column[i])).collect();
        assert_eq!(output.to_vec(stream).unwrap(), expected, "{columns} of {len}");
    }
    let stream = device.stream().unwrap();
    for columns in [0, 1, 2, 3, 4, 9] {
        for len in [0, 1, 33, 1025] {
            check::<u32>(&stream, columns, len);
        }
    }
    check::<u8>(&stream, 3, 500);
    check::<[u8; 3]>(&stream, 2, 500);
    check::<[u64; 2]>(&stream, 5, 500);
}

fn arrangements_of_wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (three, two) = (stream.upload(&[1u32, 2, 3]).unwrap(), stream.upload(&[1u32, 2]).unwrap());
    let mut output = stream.upload(&[9u32; 4]).unwrap();
    let columns = [three.as_slice(), two.as_slice()];
    let errors = [
        permute::rotate(&stream, &three, &mut output, 1).unwrap_err(),
        permute::shift(&stream, &three, &mut output, 1, 0).unwrap_err(),
        permute::interleave(&stream, &columns[1..], &mut output).unwrap_err(),
        permute::interleave(&stream, &columns, &mut output).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    }
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 4]);
}

/// A range: where it begins in the input and in the output, and its length.
type Range = (u64, u64, u64);

/// Copies the ranges, and compares with a loop over the places: each belongs to the range that begins last, at or before it.
fn check_ranges<T: Pod + Debug + PartialEq>(stream: &Stream, from: &[T], to: &[T], ranges_to_copy: &[Range]) {
    let mut expected = to.to_vec();
    let mut copied = 0;
    for (place, element) in expected.iter_mut().enumerate() {
        let begins_before = |&(_, at, len): &Range| len > 0 && at <= place as u64;
        let last =
            ranges_to_copy.iter().copied().filter(begins_before).enumerate().max_by_key(|&(r, (_, at, _))| (at, r));
        let Some((_, (start, at, len))) = last else { continue };
        let within = place as u64 - at;
        if within < len
            && let Some(&found) = start.checked_add(within).and_then(|at| from.get(at as usize))
        {
            (*element, copied) = (found, copied + 1);
        }
    }
    let all = ranges_to_copy.iter().fold(0u64, |sum, range| sum.wrapping_add(range.2));
    let [starts, places, lengths] = [0, 1, 2].map(|what| {
        let numbers: Vec<u64> = ranges_to_copy.iter().map(|&(start, at, len)| [start, at, len][what]).collect();
        stream.upload(&numbers).unwrap()
    });
    let (input, mut output) = (stream.upload(from).unwrap(), stream.upload(to).unwrap());
    let left_out = ranges::copy(stream, &input, &starts, &mut output, &places, &lengths).unwrap();
    assert!(output.to_vec(stream).unwrap() == expected, "{ranges_to_copy:?}");
    assert_eq!(left_out.get(stream).unwrap(), all.wrapping_sub(copied), "{ranges_to_copy:?}");
}

fn small_ranges(device: &Device) {
    let stream = device.stream().unwrap();
    let (from, to) = (elements::<u32>(20, 100), elements::<u32>(21, 90));
    let many = u64::MAX;
    let cases: [&[Range]; 12] = [
        &[],
        &[(0, 0, 0)],
        &[(0, 0, 90)],
        &[(99, 89, 1), (5, 0, 1), (7, 1, 0)],
        // Not in order, and next to each other.
        &[(50, 60, 30), (0, 0, 30), (30, 30, 30)],
        // Empty ones within others, and at the same places.
        &[(0, 10, 20), (90, 15, 0), (90, 10, 0), (90, 30, 0), (40, 30, 5)],
        // Overlaps: one inside of another, some that begin at the same place, and all of them.
        &[(0, 10, 40), (70, 20, 5), (60, 48, 9)],
        &[(0, 10, 5), (10, 10, 9), (20, 10, 3), (30, 10, 0)],
        &[(0, 0, 90), (1, 0, 90), (2, 0, 90)],
        // Out of range: of the output, of the input, of both.
        &[(0, 85, 10), (0, 90, 1), (0, many, 1), (0, 1 << 40, 5)],
        &[(95, 0, 10), (100, 20, 3), (many, 30, 3), (many - 1, 40, 2), (1 << 33, 50, 1)],
        &[(0, 5, many), (98, 80, many - 5)],
    ];
    for ranges in cases {
        check_ranges(&stream, &from, &to, ranges);
        check_ranges(&stream, &from, &[], ranges);
        check_ranges(&stream, &[], &to, ranges);
    }
    // Any ranges.
    for seed in 0..if is_checked(device) { 10 } else { 40 } {
        let numbers: Vec<u64> = random(seed).take(3 * 15).collect();
        let any = numbers.chunks(3).map(|x| (x[0] % 110, x[1] % 100, (x[2] % 20).saturating_sub(5)));
        check_ranges(&stream, &from, &to, &any.collect::<Vec<_>>());
    }
}

/// Ranges that follow each other in another order, each with a gap after it.
fn shuffled(seed: u64, lengths: &[u64], gap: u64) -> (Vec<Range>, usize) {
    let mut at = 0;
    let mut ranges: Vec<Range> = lengths
        .iter()
        .zip(random(seed))
        .map(|(&len, x)| {
            let place = at;
            at += len + gap;
            (x % 500, place, len)
        })
        .collect();
    for (i, x) in random(seed + 1).take(ranges.len()).enumerate() {
        ranges.swap(i, x as usize % lengths.len());
    }
    (ranges, at as usize)
}

fn ranges_at_tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    let tile = TILE as u64;
    for lengths in [&[tile - 1, 1, tile][..], &[tile, tile], &[tile + 1, 5, 2 * tile - 6], &[3; 700]] {
        for gap in [0, 1, 7] {
            let (ranges, room) = shuffled(22, lengths, gap);
            check_ranges(&stream, &elements::<u32>(23, 3 * TILE), &elements::<u32>(24, room), &ranges);
        }
    }
}

fn ranges_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let (ranges, room) = shuffled(25, &[0, 1, 40, 300, 0, 7, 33], 2);
    macro_rules! check {
        ($($type:ty)*) => { $(
            check_ranges(&stream, &elements::<$type>(26, 700), &elements::<$type>(27, room), &ranges);
        )* };
    }
    check!(u8 u16 [u16; 3] u32 u64 [u64; 2] [u32; 5] [u8; 33]);
    // Elements without a size.
    let (input, mut output) = (stream.upload(&[(); 5]).unwrap(), stream.upload(&[(); 5]).unwrap());
    let ones = stream.upload(&[1u64]).unwrap();
    ranges::copy(&stream, &input, &ones, &mut output, &ones, &ones).unwrap();
    // Slices that are not aligned to words; what is around them stays.
    let (input, mut output) = (stream.upload(&elements::<u8>(28, 100)).unwrap(), stream.upload(&[9u8; 100]).unwrap());
    let [starts, places, lengths] = [[3u64, 0], [50, 2], [20, 30]].map(|numbers| stream.upload(&numbers).unwrap());
    let (from, to) = (input.slice(1..90).unwrap(), output.slice_mut(3..90).unwrap());
    ranges::copy(&stream, from, &starts, to, &places, &lengths).unwrap();
    let (input, mut expected) = (input.to_vec(&stream).unwrap(), vec![9; 100]);
    expected[53..73].copy_from_slice(&input[4..24]);
    expected[5..35].copy_from_slice(&input[1..31]);
    assert_eq!(output.to_vec(&stream).unwrap(), expected);
}

/// More tiles than blocks, which take some in turn.
fn ranges_in_many_tiles(device: &Device) {
    let stream = device.stream().unwrap();
    let blocks = 32 * device.limits().multiprocessors as usize;
    let room = (blocks + 2) * TILE + 5;
    if is_checked(device) && room > 50_000 {
        return;
    }
    let host = elements::<u16>(29, room + 50);
    let half = room as u64 / 2;
    let [starts, places, lengths] = [[half + 40, 9], [1, half + 1], [half - 1, room as u64 - half - 1]]
        .map(|numbers| stream.upload(&numbers).unwrap());
    let (input, mut output) = (stream.upload(&host).unwrap(), stream.zeroed::<u16>(room).unwrap());
    let left_out = ranges::copy(&stream, &input, &starts, &mut output, &places, &lengths).unwrap();
    let (found, half) = (output.to_vec(&stream).unwrap(), half as usize);
    assert!(found[1..half] == host[half + 40..2 * half + 39] && (found[0], found[half]) == (0, 0));
    assert!(found[half + 1..] == host[9..9 + room - half - 1]);
    assert_eq!(left_out.get(&stream).unwrap(), 0);
}

/// Each launch copies the ranges that are there then.
fn ranges_in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&(0..100u32).collect::<Vec<_>>()).unwrap();
    let mut output = stream.zeroed::<u32>(10).unwrap();
    let [starts, places, mut lengths] = [[50u64, 70], [6, 1], [0, 0]].map(|numbers| stream.upload(&numbers).unwrap());
    let (mut graph, left_out) =
        stream.capture(|stream| ranges::copy(stream, &input, &starts, &mut output, &places, &lengths)).unwrap();
    for (now, expected, left) in [
        ([0, 3], [0, 70, 71, 72, 0, 0, 0, 0, 0, 0], 0),
        ([5, 1], [0, 70, 71, 72, 0, 0, 50, 51, 52, 53], 1),
        ([1, 9], [0, 70, 71, 72, 73, 74, 50, 51, 52, 53], 4),
    ] {
        lengths.copy_from_host(&stream, &now).unwrap();
        // SAFETY: all memory of the graph still exists, and is used on this stream only.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(output.to_vec(&stream).unwrap(), expected);
        assert_eq!(left_out.get(&stream).unwrap(), left);
    }
}

fn ranges_of_wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.zeroed::<u32>(5).unwrap();
    let (two, three) = (stream.zeroed::<u64>(2).unwrap(), stream.upload(&[1u64; 3]).unwrap());
    let mut output = stream.upload(&[9u32; 5]).unwrap();
    for (starts, places, lengths) in [(&two, &three, &three), (&three, &two, &three), (&three, &three, &two)] {
        let error = ranges::copy(&stream, &input, starts, &mut output, places, lengths).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    }
    assert_eq!(output.to_vec(&stream).unwrap(), [9; 5]);
}
