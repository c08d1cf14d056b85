//! What all calls have in common: slices, sources, lengths, errors, graphs, large inputs.

use crate::common::{TILE, assert_same, front, heads, in_runs, spread};
use crate::encode::check_encode;
use crate::reduce::{check_reduce, totals};
use crate::unique::check_unique;
use gpu_conformance::data::random;
use gpu_conformance::{is_checked, is_gpu};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::Sum;
use gpu_primitives::operator::{equality, map};
use gpu_primitives::runs::{self, Which};
use gpu_primitives::source::{constant, counted, counting, map};
use gpu_primitives::{Device, DeviceSlice, DeviceValue, Error};

pub fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1100 } else { TILE + 9 };
    let (host, numbers) = (in_runs(33, len, 4), in_runs(34, len, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    for start in 1..4 {
        let heads = heads(&host[start..], Same);
        let (mut to, mut sums) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<u32>(len).unwrap());
        let room = 4 - start..len;
        let count = runs::reduce_by_key(
            &stream,
            (input.slice(start..).unwrap(), values.slice(start..).unwrap()),
            (to.slice_mut(room.clone()).unwrap(), sums.slice_mut(..len - start).unwrap()),
            Same,
            Sum,
        )
        .map(|count| count.get(&stream).unwrap() as usize);
        if start < 2 {
            assert!(matches!(count.unwrap_err(), Error::LengthMismatch { .. }), "from {start}");
            continue;
        }
        let count = count.unwrap();
        assert_eq!(count, heads.len() - 1);
        let expected: Vec<u32> = heads[..count].iter().map(|&i| host[start + i]).collect();
        assert_same(&to.slice(room.start..room.start + count).unwrap().to_vec(&stream).unwrap(), &expected, "keys");
        let expected = totals(&heads, &numbers[start..], Sum);
        assert_same(&sums.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "totals");

        let mut lengths = stream.zeroed::<u32>(len).unwrap();
        let output = to.slice_mut(room.clone()).unwrap();
        runs::run_length_encode(&stream, input.slice(start..).unwrap(), (output, &mut lengths), Same).unwrap();
        let expected: Vec<u32> = heads.windows(2).map(|run| (run[1] - run[0]) as u32).collect();
        assert_same(&lengths.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "lengths");
        let mut decoded = stream.zeroed::<u32>(len).unwrap();
        let (elements, lengths) = (to.slice(room.start..room.start + count).unwrap(), lengths.slice(..count).unwrap());
        runs::run_length_decode(&stream, (elements, lengths), decoded.slice_mut(start..).unwrap()).unwrap();
        assert_same(&decoded.to_vec(&stream).unwrap()[start..], &host[start..], "decoded");
    }
    // Elements that are aligned to less than their size.
    let pairs: Vec<[u16; 2]> = host.iter().map(|&x| spread(x)).collect();
    let words: Vec<u16> = std::iter::once(0).chain(pairs.iter().flatten().copied()).collect();
    let words = stream.upload(&words).unwrap();
    let address = words.slice(1..).unwrap().as_ptr().cast::<[u16; 2]>();
    // SAFETY: they lie in the vector, which stays until the test ends, and are aligned for their type.
    let input = unsafe { DeviceSlice::from_raw_parts(device, address, len) };
    let mut output = stream.zeroed::<[u16; 2]>(len).unwrap();
    let equality = equality!(|a: [u16; 2], b: [u16; 2]| a == b);
    let count = runs::unique(&stream, input, &mut output, equality).unwrap().get(&stream).unwrap() as usize;
    let heads = heads(&pairs, equality);
    let expected: Vec<[u16; 2]> = heads[..heads.len() - 1].iter().map(|&i| pairs[i]).collect();
    assert_same(&output.slice(..count).unwrap().to_vec(&stream).unwrap(), &expected, "misaligned elements");
}

pub fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 1500 } else { 2 * TILE + 77 };
    let keys: Vec<u32> = (0..len as u32).map(|i| i / 7).collect();
    let sevenths = || map(counting(0u32, len), map!(|i: u32| -> u32 { i / 7 }));
    let heads = heads(&keys, Same);
    let runs = heads.len() - 1;
    let expected: Vec<u32> = (0..runs as u32).collect();
    let (mut to, mut lengths) = (stream.zeroed::<u32>(len).unwrap(), stream.zeroed::<u64>(len).unwrap());
    let count = runs::unique(&stream, sevenths(), &mut to, Same).unwrap();
    assert_eq!(count.get(&stream).unwrap(), runs as u64);
    assert_same(&to.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected, "unique");

    runs::run_length_encode(&stream, sevenths(), (&mut to, &mut lengths), Same).unwrap();
    let expected_lengths: Vec<u64> = heads.windows(2).map(|run| (run[1] - run[0]) as u64).collect();
    assert_same(&lengths.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected_lengths, "lengths");

    // Keys, values and both.
    let on_keys = stream.upload(&keys).unwrap();
    let numbers: Vec<u64> = (0..len as u64).map(|i| i * i).collect();
    let on_numbers = stream.upload(&numbers).unwrap();
    let squares = || map(counting(0u64, len), map!(|i: u64| -> u64 { i * i }));
    let expected = totals(&heads, &numbers, Sum);
    let mut sums = stream.zeroed::<u64>(len).unwrap();
    for which in 0..3 {
        let count = match which {
            0 => runs::reduce_by_key(&stream, (sevenths(), &on_numbers), (&mut to, &mut sums), Same, Sum),
            1 => runs::reduce_by_key(&stream, (&on_keys, squares()), (&mut to, &mut sums), Same, Sum),
            _ => runs::reduce_by_key(&stream, (sevenths(), squares()), (&mut to, &mut sums), Same, Sum),
        };
        assert_eq!(count.unwrap().get(&stream).unwrap(), runs as u64);
        assert_same(&sums.slice(..runs).unwrap().to_vec(&stream).unwrap(), &expected, "totals of sources");
        assert_eq!(to.slice(runs - 1..runs).unwrap().to_vec(&stream).unwrap(), [runs as u32 - 1]);
    }
    // All lengths are 3.
    let mut threes = stream.zeroed::<u32>(3 * runs).unwrap();
    runs::run_length_decode(&stream, (to.slice(..runs).unwrap(), constant(3u32, runs)), &mut threes).unwrap();
    assert_same(&threes.to_vec(&stream).unwrap(), &(0..3 * runs as u32).map(|i| i / 3).collect::<Vec<_>>(), "threes");
}

pub fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 2000 } else { 3 * TILE + 5 };
    let (host, numbers) = (in_runs(35, len, 5), in_runs(36, len, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    let wide: Vec<u128> = host.iter().map(|&x| x.into()).collect();
    let wide = stream.upload(&wide).unwrap();
    for known in [0, 1, len / 3, len - 1, len, 5 * len] {
        let count = DeviceValue::new(&stream, known as u64).unwrap();
        let known = known.min(len);
        let heads = heads(&host[..known], Same);
        let runs = heads.len() - 1;
        let expected = front(heads[..runs].iter().map(|&i| host[i]), 99, len);
        let expected_lengths = front(heads.windows(2).map(|run| (run[1] - run[0]) as u32), 99, len);
        let expected_totals = front(totals(&heads, &numbers[..known], Sum).into_iter(), 99, len);
        let filled = || stream.upload(&vec![99u32; len]).unwrap();

        let (mut to, mut lengths) = (filled(), filled());
        let found = runs::run_length_encode(&stream, counted(&input, &count), (&mut to, &mut lengths), Same).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&to.to_vec(&stream).unwrap(), &expected, "elements");
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected_lengths, "lengths");
        let mut decoded = filled();
        let total = runs::run_length_decode(&stream, (&to, counted(&lengths, &found)), &mut decoded).unwrap();
        assert_eq!(total.get(&stream).unwrap(), known as u64);
        assert_same(&decoded.to_vec(&stream).unwrap(), &front(host[..known].iter().copied(), 99, len), "decoded");

        for which in 0..3 {
            let (mut to, mut sums) = (filled(), filled());
            let (keys, all) = (counted(&input, &count), counted(&values, &count));
            let found = match which {
                0 => runs::reduce_by_key(&stream, (keys, &values), (&mut to, &mut sums), Same, Sum),
                1 => runs::reduce_by_key(&stream, (&input, all), (&mut to, &mut sums), Same, Sum),
                _ => runs::reduce_by_key(&stream, (keys, all), (&mut to, &mut sums), Same, Sum),
            };
            assert_eq!(found.unwrap().get(&stream).unwrap(), runs as u64);
            assert_same(&to.to_vec(&stream).unwrap(), &expected, "keys");
            assert_same(&sums.to_vec(&stream).unwrap(), &expected_totals, "totals");
        }

        let (mut to, mut to_values) = (filled(), filled());
        let keys = counted(&input, &count);
        let found =
            runs::unique_by_key(&stream, (keys, &values), (&mut to, &mut to_values), Same, Which::Last).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&to.to_vec(&stream).unwrap(), &expected, "keys");
        let expected = front(heads[1..].iter().map(|&i| numbers[i - 1]), 99, len);
        assert_same(&to_values.to_vec(&stream).unwrap(), &expected, "values");

        let (mut to, mut lengths) = (stream.zeroed::<u128>(len).unwrap(), filled());
        let found = runs::run_length_encode(&stream, counted(&wide, &count), (&mut to, &mut lengths), Same).unwrap();
        assert_eq!(found.get(&stream).unwrap(), runs as u64);
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected_lengths, "lengths of wide elements");
    }
}

pub fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&[1u32, 1, 2]).unwrap(), stream.upload(&[1u32, 2]).unwrap());
    let mut three = stream.upload(&[9u32; 3]).unwrap();
    let mut more = stream.upload(&[9u32; 3]).unwrap();
    let mut two = stream.upload(&[9u32; 2]).unwrap();
    macro_rules! refused {
        ($($call:expr),* $(,)?) => { $(
            let error = $call.unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
        )* };
    }
    refused!(
        runs::unique(&stream, &keys, &mut two, Same),
        runs::unique_last(&stream, &keys, &mut two, Same),
        runs::unique_by_key(&stream, (&keys, &values), (&mut three, &mut more), Same, Which::First),
        runs::unique_by_key(&stream, (&keys, &keys), (&mut two, &mut more), Same, Which::First),
        runs::unique_by_key(&stream, (&keys, &keys), (&mut more, &mut two), Same, Which::First),
        runs::run_length_encode(&stream, &keys, (&mut two, &mut three), Same),
        runs::run_length_encode(&stream, &keys, (&mut three, &mut two), Same),
        runs::run_length_decode(&stream, (&keys, &values), &mut three),
        runs::reduce_by_key(&stream, (&keys, &values), (&mut three, &mut more), Same, Sum),
        runs::reduce_by_key(&stream, (&keys, &keys), (&mut two, &mut more), Same, Sum),
        runs::reduce_by_key(&stream, (&keys, &keys), (&mut more, &mut two), Same, Sum),
        runs::adjacent_difference(&stream, &keys, &mut two, map!(|a: u32, b: u32| -> u32 { a ^ b })),
    );
    assert_eq!(three.to_vec(&stream).unwrap(), [9; 3]);
    assert_eq!(more.to_vec(&stream).unwrap(), [9; 3]);
    assert_eq!(two.to_vec(&stream).unwrap(), [9; 2]);
}

pub fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let (host, numbers) = (in_runs(37, 3000, 5), in_runs(38, 3000, 1));
    let (input, values) = (stream.upload(&host).unwrap(), stream.upload(&numbers).unwrap());
    let mut elements = stream.zeroed::<u32>(3000).unwrap();
    let mut lengths = stream.zeroed::<u32>(3000).unwrap();
    let mut decoded = stream.zeroed::<u32>(3000).unwrap();
    let (mut to, mut sums) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
    let (mut graph, (count, _total)) = stream
        .capture(|stream| {
            let count = runs::run_length_encode(stream, &input, (&mut elements, &mut lengths), Same)?;
            let total = runs::run_length_decode(stream, (&elements, counted(&lengths, &count)), &mut decoded)?;
            runs::reduce_by_key(stream, (&input, &values), (&mut to, &mut sums), Same, Sum)?;
            Ok((count, total))
        })
        .unwrap();
    for _ in 0..2 {
        // SAFETY: the inputs and the results are still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let heads = heads(&host, Same);
    assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1);
    assert_same(&decoded.to_vec(&stream).unwrap(), &host, "decoded");
    let expected = totals(&heads, &numbers, Sum);
    assert_same(&sums.to_vec(&stream).unwrap()[..expected.len()], &expected, "totals");
}

pub fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 20_000 };
    let host = in_runs(39, len, 15);
    check_unique(&stream, &host, Same);
    check_encode::<_, u32, _>(&stream, &host, Same);
    check_reduce(&stream, &host, &in_runs(40, len, 1), Same, Sum);
    check_reduce(&stream, &host, &random(41).take(len).map(u128::from).collect::<Vec<_>>(), Same, Sum);
    let input = stream.upload(&host).unwrap();
    let (mut elements, mut lengths) = (stream.uninit::<u32>(len).unwrap(), stream.uninit::<u64>(len).unwrap());
    let count = runs::run_length_encode(&stream, &input, (&mut elements, &mut lengths), Same).unwrap();
    let mut decoded = stream.uninit::<u32>(len).unwrap();
    runs::run_length_decode(&stream, (&elements, counted(&lengths, &count)), &mut decoded).unwrap();
    assert_same(&decoded.to_vec(&stream).unwrap(), &host, "decoded");
}
