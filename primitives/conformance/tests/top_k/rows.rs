//! The largest and smallest elements of rows.

use super::*;

/// Checks both ends of each row.
fn check_rows<K: RadixKey<Code: ShortCode> + Debug>(
    stream: &Stream,
    host: &[K],
    lens: &[usize],
    k: usize,
    are_equal: bool,
) {
    let input = stream.upload(host).unwrap();
    let ends = lens.iter().scan(0, |end, len| {
        *end += *len as u32;
        Some(*end)
    });
    let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
    let device_offsets = stream.upload(&offsets).unwrap();
    let rows = if are_equal { Rows::of_len(lens[0]) } else { Rows::at(&device_offsets) };
    for smallest in [false, true] {
        let mut keys = stream.zeroed::<K>(k * lens.len()).unwrap();
        let mut positions = stream.zeroed::<u32>(k * lens.len()).unwrap();
        if smallest {
            top_k::segmented_smallest(stream, &input, rows, k, (&mut keys, &mut positions)).unwrap();
        } else {
            top_k::segmented_largest(stream, &input, rows, k, (&mut keys, &mut positions)).unwrap();
        }
        let (keys, positions) = (keys.to_vec(stream).unwrap(), positions.to_vec(stream).unwrap());
        for (row, (&start, &len)) in offsets.iter().zip(lens).enumerate() {
            let here = &host[start as usize..start as usize + len];
            let order = expected(here, k, smallest);
            let mut expected_positions: Vec<u32> = order.iter().map(|&at| at as u32).collect();
            let mut expected_keys: Vec<K> = order.iter().map(|&at| here[at]).collect();
            expected_positions.resize(k, u32::NONE);
            expected_keys.resize(k, K::zeroed());
            let about = format!("{k} of {len} in row {row}, smallest: {smallest}");
            assert_same(&positions[row * k..(row + 1) * k], &expected_positions, &about);
            assert_same(&bytes(&keys[row * k..(row + 1) * k]), &bytes(&expected_keys), &about);
        }
    }
}

pub fn small_rows(device: &Device) {
    let stream = device.stream().unwrap();
    for (rows, len, k) in [(1, 1, 1), (3, 10, 4), (5, 33, 33), (7, 100, 1), (2, 700, 50)] {
        check_rows(&stream, &numbers(20, rows * len), &vec![len; rows], k, true);
    }
}

pub fn rows_at_tile_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [TILE - 1, TILE, TILE + 1, 2 * TILE + 5] {
        check_rows(&stream, &numbers(21, 2 * len), &[len; 2], 50, true);
        // Many in question: the row is read again, digit by digit.
        let skewed: Vec<u32> = numbers(22, 2 * len).into_iter().map(|x| 0xABCD_0000 ^ (x % 16)).collect();
        check_rows(&stream, &skewed, &[len; 2], 70, true);
    }
}

pub fn rows_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u128> = random(23).zip(random(24)).take(1200).map(|(a, b)| (a as u128) << 64 | b as u128).collect();
    macro_rules! check {
        ($($type:ty: $from:expr;)*) => { $(
            let host: Vec<$type> = bits.iter().map($from).collect();
            check_rows(&stream, &host, &[400; 3], 30, true);
        )* };
    }
    check! {
        u8: |&x| x as u8;
        i16: |&x| x as i16;
        i64: |&x| x as i64;
        u128: |&x| x;
        f32: |&x| f32::from_bits(x as u32);
        half::bf16: |&x| half::bf16::from_bits(x as u16);
        Address: |&x| Address::new(x as u64 % 2, (x >> 70) as u32 % 3, (x >> 90) as u32);
    }
}

/// Rows for which a block has 512 threads.
pub fn long_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let rows = if is_gpu(device) { 64 } else { 1 };
    let host: Vec<f32> = numbers(25, rows * 20_000).into_iter().map(|x| (x as f32).sqrt().sin()).collect();
    check_rows(&stream, &host, &vec![20_000; rows], 50, true);
}

pub fn rows_at_offsets(device: &Device) {
    let stream = device.stream().unwrap();
    let lens = [0, 5, 300, 1, 0, 0, 1000, 49, 50, 51];
    check_rows(&stream, &numbers(26, lens.iter().sum()), &lens, 50, false);
    check_rows(&stream, &vec![7u32; lens.iter().sum()], &lens, 50, false);
    // Offsets that make no rows: nothing is read or written out of bounds.
    let input = stream.upload(&numbers(27, 10)).unwrap();
    let offsets = stream.upload(&[8u32, 3, 50, 60]).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(6).unwrap(), stream.zeroed::<u32>(6).unwrap());
    top_k::segmented_largest(&stream, &input, Rows::at(&offsets), 2, (&mut keys, &mut positions)).unwrap();
    let found = positions.to_vec(&stream).unwrap();
    assert_eq!((&found[..2], &found[4..]), (&[u32::NONE; 2][..], &[u32::NONE; 2][..]));
}

/// More than a block orders in shared memory.
pub fn rows_in_order_of_many(device: &Device) {
    let stream = device.stream().unwrap();
    let k = if is_checked(device) { 600 } else { 2100 };
    let host: Vec<u128> = random(28).take(3 * (k + 100)).map(|x| u128::from(x) << 40).collect();
    check_rows(&stream, &host, &[k + 100; 3], k, true);
    if !is_checked(device) {
        check_rows(&stream, &numbers(29, 3 * (k + 100)), &[k + 100; 3], k, true);
    }
}

/// Rows of several tiles, whose smallest wanted elements come last.
pub fn rows_nearly_all_wanted(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 2 * TILE / 4 + 7;
    with_late_extremes(device, len, |x| i128::from(x) << 90, |host, k| check_rows(&stream, host, &[len], k, true));
    if !is_checked(device) {
        // Blocks of 256 threads, and of 512.
        for len in [2 * TILE + 7, 20_000] {
            let lens = [len - 9, 9];
            with_late_extremes(device, len, |x| x, |host, k| check_rows(&stream, host, &lens, k, false));
        }
    }
}

pub fn wrong_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let input = stream.upload(&[3u32, 1, 2, 5, 4]).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(4).unwrap(), stream.zeroed::<u32>(4).unwrap());
    let none = stream.uninit::<u32>(0).unwrap();
    for rows in [Rows::of_len(2), Rows::of_len(0), Rows::of_len(5), Rows::at(&none)] {
        let result = top_k::segmented_largest(&stream, &input, rows, 2, (&mut keys, &mut positions));
        assert!(matches!(result, Err(Error::LengthMismatch { .. })));
    }
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![0; 4], vec![0; 4]));
}

pub fn rows_in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(30, 1000);
    let input = stream.upload(&host).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<u32>(20).unwrap(), stream.uninit::<u32>(20).unwrap());
    let record =
        |stream: &Stream| top_k::segmented_largest(stream, &input, Rows::of_len(500), 10, (&mut keys, &mut positions));
    let (mut graph, ()) = stream.capture(record).unwrap();
    // SAFETY: the input and the outputs are still there.
    unsafe { graph.launch(&stream).unwrap() };
    let order = expected(&host[500..], 10, false);
    assert_eq!(positions.to_vec(&stream).unwrap()[10..], order.iter().map(|&at| at as u32).collect::<Vec<_>>());
}

/// Rows of which so few are wanted that one launch finds them: around the tiles of small and large blocks, with one block per row
/// and several; and such that many elements reach the threshold of a block.
pub fn few_of_rows(device: &Device) {
    let stream = device.stream().unwrap();
    for (len, k) in [(1023, 64), (1024, 63), (1025, 64), (2049, 1), (4097, 64), (4100, 65), (300, 256), (255, 256)] {
        check_rows(&stream, &numbers(31, 2 * len), &[len; 2], k, true);
    }
    let lens = [5000, 0, 2048, 70];
    let all: usize = lens.iter().sum();
    for k in [64, 256] {
        check_rows(&stream, &vec![7u32; all], &lens, k, false);
        check_rows(&stream, &(0..all as u32).collect::<Vec<_>>(), &lens, k, false);
        check_rows(&stream, &(0..all as u32).rev().collect::<Vec<_>>(), &lens, k, false);
        // The largest are all in the same lanes, and many are equal.
        let in_lanes: Vec<u32> = (0..all as u32).map(|i| u32::from(i % 128 < 8) * (i % 1000)).collect();
        check_rows(&stream, &in_lanes, &lens, k, false);
    }
    // Nothing is larger than the smallest of the best ones.
    check_rows(&stream, &vec![u32::MAX; 5000], &[5000], 3, true);
    check_rows(&stream, &vec![u128::MAX; 1300], &[1300], 3, true);
    if is_gpu(device) || is_long() {
        for (rows, len, k) in [(1, 300_000, 256), (3, 100_001, 100), (500, 1000, 8), (40, 8193, 64)] {
            check_rows(&stream, &numbers(32, rows * len), &vec![len; rows], k, true);
            let floats: Vec<f32> = numbers(33, rows * len).into_iter().map(f32::from_bits).collect();
            check_rows(&stream, &floats, &vec![len; rows], k, true);
            let wide: Vec<u64> = random(34).take(rows * len).collect();
            check_rows(&stream, &wide, &vec![len; rows], k, true);
            let few: Vec<u32> = numbers(35, rows * len).into_iter().map(|x| x % 7).collect();
            check_rows(&stream, &few, &vec![len; rows], k, true);
        }
    }
}

/// Where the blocks of a row end first depends on the schedule; the result does not.
pub fn few_of_rows_in_any_schedule(device: &Device) {
    let lens = [9000, 4100];
    let host: Vec<u32> = numbers(36, 13_100).into_iter().map(|x| x % 50).collect();
    for (_, stream) in adversarial_streams(device, 2).take(3) {
        check_rows(&stream, &host, &lens, 64, false);
    }
}

/// The shortest rows that are read by several blocks, if so many are wanted that several launches are needed.
const LONG_ROW: usize = 32 * MANY;

/// The fewest wanted elements for which several launches are needed.
const MANY: usize = 257;

pub fn sifted_rows(device: &Device) {
    let stream = device.stream().unwrap();
    check_rows(&stream, &numbers(60, 2 * (LONG_ROW + 1)), &[LONG_ROW + 1; 2], MANY, true);
    if !is_checked(device) {
        check_rows(&stream, &numbers(60, LONG_ROW), &[LONG_ROW], MANY, true);
        check_rows(&stream, &numbers(60, LONG_ROW + 130), &[LONG_ROW + 130], 1, true);
    }
    // Threads are simulated slowly.
    if is_gpu(device) || is_long() {
        for (rows, len) in [(1, LONG_ROW), (3, LONG_ROW + 1), (2, LONG_ROW + 130)] {
            for k in [1, 2, 64, 255, 256, 257] {
                check_rows(&stream, &numbers(60, rows * len), &vec![len; rows], k, true);
            }
        }
        for k in [64, 1000, 1024, 1025] {
            check_rows(&stream, &numbers(61, 2 * 40_000), &[40_000; 2], k, true);
        }
    }
}

pub fn sifted_rows_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (random(62), random(63));
    let bits: Vec<u128> = a.zip(b).take(2 * LONG_ROW).map(|(a, b)| (a as u128) << 64 | b as u128).collect();
    macro_rules! check {
        ($($type:ty: $from:expr;)*) => { $(
            let host: Vec<$type> = bits.iter().map($from).collect();
            check_rows(&stream, &host, &[LONG_ROW; 2], if is_checked(device) { 30 } else { MANY }, true);
        )* };
    }
    check! {
        f32: |&x| f32::from_bits(x as u32);
        u128: |&x| x;
        Address: |&x| Address::new(x as u64 % 2, (x >> 70) as u32 % 3, (x >> 90) as u32);
    }
    if is_gpu(device) || is_long() {
        check! {
            i32: |&x| x as i32;
            i64: |&x| x as i64;
            f64: |&x| f64::from_bits(x as u64);
            half::bf16: |&x| half::bf16::from_bits(x as u16);
        }
    }
}

/// Rows that are too short for a sample among long ones, rows that begin at any address, and none.
pub fn sifted_rows_at_offsets(device: &Device) {
    let stream = device.stream().unwrap();
    let lens = [LONG_ROW + 7, 0, 3 * LONG_ROW, 5, 1000, 2 * LONG_ROW + 1, 4 * LONG_ROW, 29, 30];
    let lens = if is_gpu(device) || is_long() { &lens[..] } else { &lens[..4] };
    // The mean decides for all.
    let lens: Vec<usize> = lens.iter().copied().chain([4 * LONG_ROW]).collect();
    for k in [30, MANY] {
        check_rows(&stream, &numbers(64, lens.iter().sum()), &lens, k, false);
    }
}

/// Rows whose lists are of no use, beside others.
pub fn sifted_row_adversaries(device: &Device) {
    let stream = device.stream().unwrap();
    let len = LONG_ROW;
    let mixed: Vec<u32> = numbers(65, len)
        .into_iter()
        .chain(std::iter::repeat_n(7, len))
        .chain(0..len as u32)
        .chain((0..len as u32).rev())
        .collect();
    check_rows(&stream, &mixed, &[len; 4], 40, true);
    if !is_checked(device) {
        check_rows(&stream, &mixed, &[len; 4], MANY, true);
    }
    if !(is_gpu(device) || is_long()) {
        return;
    }
    // All large elements where no sample looks, and many equal ones at the border.
    let late: Vec<u32> = (0..4 * len as u32).map(|i| if i % 97 == 0 { 5 } else { u32::from(i % 128 > 120) }).collect();
    check_rows(&stream, &late, &[4 * len], 100, true);
    check_rows(&stream, &late, &[4 * len], MANY, true);
    for (_, stream) in adversarial_streams(device, 1).take(3) {
        check_rows(&stream, &mixed, &[len; 4], 40, true);
        check_rows(&stream, &mixed, &[len; 4], MANY, true);
    }
}

pub fn sifted_row_sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(66, 2 * LONG_ROW + 1);
    let input = stream.upload(&host).unwrap();
    // From an address that wide accesses cannot begin at.
    let slice = input.slice(1..).unwrap();
    for (mapped, k) in [(false, 20), (true, 20), (false, MANY), (true, MANY)] {
        let (mut keys, mut positions) = (stream.uninit::<u32>(2 * k).unwrap(), stream.uninit::<u32>(2 * k).unwrap());
        let rows = Rows::of_len(LONG_ROW);
        if mapped {
            let flipped = map(slice, map!(|x: u32| -> u32 { x ^ 0xFFFF }));
            top_k::segmented_largest(&stream, flipped, rows, k, (&mut keys, &mut positions)).unwrap();
        } else {
            top_k::segmented_largest(&stream, slice, rows, k, (&mut keys, &mut positions)).unwrap();
        }
        let elements: Vec<u32> = host[1..].iter().map(|&x| if mapped { x ^ 0xFFFF } else { x }).collect();
        for (row, elements) in elements.chunks(LONG_ROW).enumerate() {
            let order = expected(elements, k, false);
            let found = &positions.to_vec(&stream).unwrap()[row * k..][..k];
            assert_eq!(found, order.iter().map(|&at| at as u32).collect::<Vec<_>>(), "row {row}, {mapped}");
            let best: Vec<u32> = order.iter().map(|&at| elements[at]).collect();
            assert_eq!(&keys.to_vec(&stream).unwrap()[row * k..][..k], best, "row {row}, {mapped}");
        }
    }
}

/// Wants another number of each row, and checks both ends. The numbers may be above `most`.
fn check_counts<K: RadixKey<Code: ShortCode> + Debug>(
    stream: &Stream,
    host: &[K],
    lens: &[usize],
    counts: &[u32],
    most: usize,
) {
    let (input, wanted) = (stream.upload(host).unwrap(), stream.upload(counts).unwrap());
    let ends = lens.iter().scan(0, |end, len| {
        *end += *len as u32;
        Some(*end)
    });
    let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
    let device_offsets = stream.upload(&offsets).unwrap();
    let (rows, k) = (Rows::at(&device_offsets), RowCounts::each(&wanted, most));
    for smallest in [false, true] {
        let mut keys = stream.zeroed::<K>(most * lens.len()).unwrap();
        let mut positions = stream.zeroed::<u32>(most * lens.len()).unwrap();
        if smallest {
            top_k::segmented_smallest(stream, &input, rows, k, (&mut keys, &mut positions)).unwrap();
        } else {
            top_k::segmented_largest(stream, &input, rows, k, (&mut keys, &mut positions)).unwrap();
        }
        let mut keys_alone = stream.zeroed::<K>(most * lens.len()).unwrap();
        if smallest {
            top_k::segmented_smallest(stream, &input, rows, k, &mut keys_alone).unwrap();
        } else {
            top_k::segmented_largest(stream, &input, rows, k, &mut keys_alone).unwrap();
        }
        let (keys, positions) = (keys.to_vec(stream).unwrap(), positions.to_vec(stream).unwrap());
        assert_same(&bytes(&keys), &bytes(&keys_alone.to_vec(stream).unwrap()), "keys alone");
        for (row, (&start, &len)) in offsets.iter().zip(lens).enumerate() {
            let here = &host[start as usize..start as usize + len];
            let order = expected(here, most.min(counts[row] as usize), smallest);
            let mut expected_positions: Vec<u32> = order.iter().map(|&at| at as u32).collect();
            let mut expected_keys: Vec<K> = order.iter().map(|&at| here[at]).collect();
            expected_positions.resize(most, u32::NONE);
            expected_keys.resize(most, K::zeroed());
            let about = format!("{} (at most {most}) of {len} in row {row}, smallest: {smallest}", counts[row]);
            assert_same(&positions[row * most..(row + 1) * most], &expected_positions, &about);
            assert_same(&bytes(&keys[row * most..(row + 1) * most]), &bytes(&expected_keys), &about);
        }
    }
}

pub fn small_counts_of_rows(device: &Device) {
    let stream = device.stream().unwrap();
    check_counts(&stream, &numbers(70, 50), &[50], &[7], 9);
    let lens = [10, 0, 33, 32, 5, 64, 100, 31];
    let host = numbers(71, lens.iter().sum());
    check_counts(&stream, &host, &lens, &[0, 3, 33, 1, 5, 40, u32::MAX, 30], 33);
    check_counts(&stream, &host, &lens, &[0; 8], 4);
    check_counts(&stream, &host, &lens, &[1; 8], 1);
    // Zeros are wanted elements, too, and differ from places of none.
    check_counts(&stream, &[0u32; 275], &lens, &[2, 0, 5, 6, 6, 1, 4, 6], 6);
    let signed: Vec<i16> = host.iter().map(|&x| x as i16).collect();
    check_counts(&stream, &signed, &lens, &[2, 0, 5, 6, 9, 1, 4, 6], 6);
    let addresses: Vec<Address> = host.iter().map(|&x| Address::new(u64::from(x % 2), x % 3, x)).collect();
    check_counts(&stream, &addresses, &lens, &[2, 0, 5, 6, 9, 1, 4, 6], 6);

    // Nothing is written if there is not a number for each row.
    let input = stream.upload(&[3u32, 1, 2, 5]).unwrap();
    let short = stream.upload(&[1u32]).unwrap();
    let (mut keys, mut positions) = (stream.zeroed::<u32>(4).unwrap(), stream.zeroed::<u32>(4).unwrap());
    let k = RowCounts::each(&short, 2);
    let result = top_k::segmented_largest(&stream, &input, Rows::of_len(2), k, (&mut keys, &mut positions));
    assert!(matches!(result, Err(Error::LengthMismatch { expected: 2, found: 1, .. })), "{result:?}");
    assert_eq!((keys.to_vec(&stream).unwrap(), positions.to_vec(&stream).unwrap()), (vec![0; 4], vec![0; 4]));
}

/// Rows of one block, around the edges of tiles; and more than a block orders in shared memory.
pub fn counts_of_rows_of_one_block(device: &Device) {
    let stream = device.stream().unwrap();
    let lens = [TILE - 1, TILE, TILE + 1, 70];
    let host = numbers(72, lens.iter().sum());
    check_counts(&stream, &host, &lens, &[49, 50, 51, 1], 50);
    let most = if is_checked(device) { 600 } else { 700 };
    let wide: Vec<u128> = random(73).take(3 * (most + 9)).map(|x| u128::from(x) << 40).collect();
    check_counts(&stream, &wide, &[most + 9; 3], &[most as u32, 0, 511], most);
}

/// Rows that many blocks read, and such whose list is of no use.
pub fn counts_of_sifted_rows(device: &Device) {
    let stream = device.stream().unwrap();
    let equal = std::iter::repeat_n(7, LONG_ROW);
    let host: Vec<u32> = numbers(74, 2 * LONG_ROW).into_iter().chain(equal.clone()).chain(equal).collect();
    check_counts(&stream, &host, &[LONG_ROW; 4], &[64, 0, 33, 0], 64);
    if !is_checked(device) {
        check_counts(&stream, &host, &[LONG_ROW; 4], &[1, 255, 300, 2], 256);
    }
}

/// Each launch of a graph reads the numbers that are there then.
pub fn counts_in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(75, 1000);
    let input = stream.upload(&host).unwrap();
    let mut wanted = stream.upload(&[0u32, 0]).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<u32>(20).unwrap(), stream.uninit::<u32>(20).unwrap());
    let record = |stream: &Stream| {
        let k = RowCounts::each(&wanted, 10);
        top_k::segmented_largest(stream, &input, Rows::of_len(500), k, (&mut keys, &mut positions))
    };
    let (mut graph, ()) = stream.capture(record).unwrap();
    for counts in [[3, 10], [0, 1], [11, 9]] {
        wanted.copy_from_host(&stream, &counts).unwrap();
        // SAFETY: the input, the numbers and the outputs are still there.
        unsafe { graph.launch(&stream).unwrap() };
        let found = positions.to_vec(&stream).unwrap();
        for (row, &count) in counts.iter().enumerate() {
            let order = expected(&host[row * 500..(row + 1) * 500], 10.min(count as usize), false);
            let mut best: Vec<u32> = order.iter().map(|&at| at as u32).collect();
            best.resize(10, u32::NONE);
            assert_eq!(found[row * 10..(row + 1) * 10], best, "row {row}, {counts:?}");
        }
    }
}
