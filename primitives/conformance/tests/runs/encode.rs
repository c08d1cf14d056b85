//! Run-length encoding and decoding.

use crate::common::{TILE, assert_same, at_edges, filler, front, heads, in_runs, spread};
use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, is_checked, is_gpu};
use gpu_primitives::equality::{Equality, Same};
use gpu_primitives::operator::equality;
use gpu_primitives::runs::{self, Length};
use gpu_primitives::{Device, Stream, testing};
use std::fmt::Debug;

pub fn check_encode<T, C, E>(stream: &Stream, host: &[T], equality: E)
where
    T: Pod + Debug + PartialEq,
    C: Length + Debug + PartialEq,
    E: Equality<T>,
{
    let heads = heads(host, equality);
    let input = stream.upload(host).unwrap();
    let mut elements = stream.upload(&vec![filler::<T>(); host.len()]).unwrap();
    let mut lengths = stream.upload(&vec![filler::<C>(); host.len()]).unwrap();
    let count = runs::run_length_encode(stream, &input, (&mut elements, &mut lengths), equality).unwrap();
    assert_eq!(count.get(stream).unwrap(), heads.len() as u64 - 1);
    let expected = front(heads[..heads.len() - 1].iter().map(|&i| host[i]), filler(), host.len());
    assert_same(&elements.to_vec(stream).unwrap(), &expected, "elements");
    let expected = front(heads.windows(2).map(|run| C::new((run[1] - run[0]) as u64)), filler(), host.len());
    assert_same(&lengths.to_vec(stream).unwrap(), &expected, "lengths");
}

/// Decodes, with this much room.
pub fn check_decode<T: Pod + Debug + PartialEq, C: Length>(
    stream: &Stream,
    elements: &[T],
    lengths: &[C],
    room: usize,
) {
    let decoded = elements.iter().zip(lengths).flat_map(|(&x, &n)| std::iter::repeat_n(x, n.into() as usize));
    let expected = front(decoded.take(room), filler(), room);
    let (from, counts) = (stream.upload(elements).unwrap(), stream.upload(lengths).unwrap());
    let mut output = stream.upload(&vec![filler::<T>(); room]).unwrap();
    let total = runs::run_length_decode(stream, (&from, &counts), &mut output).unwrap();
    assert_eq!(total.get(stream).unwrap(), lengths.iter().map(|&n| n.into()).sum::<u64>());
    assert_same(&output.to_vec(stream).unwrap(), &expected, &format!("{} bytes", size_of::<T>()));
}

pub fn small_encode(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check_encode::<_, u32, _>(&stream, &in_runs(4, len, 5), Same);
        check_encode::<_, u64, _>(&stream, &in_runs(5, len, 70), Same);
    }
}

pub fn small_decode(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 33, 400] {
        let lengths: Vec<u32> = random(6).take(len).map(|x| x as u32 % 5).collect();
        let total = lengths.iter().sum::<u32>() as usize;
        check_decode(&stream, &in_runs(7, len, 1), &lengths, total);
    }
}

pub fn encode_patterns(device: &Device) {
    at_edges(device, TILE, |stream, host| check_encode::<_, u32, _>(stream, host, Same));
    at_edges(device, TILE / 2, |stream, host| {
        check_encode::<_, u64, _>(stream, &host.iter().map(|&x| i64::from(x) - 9).collect::<Vec<_>>(), Same);
    });
}

pub fn encode_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 2 * TILE + 77 };
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = in_runs(17, len, 40).into_iter().map(spread).collect();
            check_encode::<_, u32, _>(&stream, &host, equality!(|a: $type, b: $type| a == b));
            check_encode::<_, u64, _>(&stream, &host, equality!(|a: $type, b: $type| a == b));
        )* };
    }
    check!(u8 u16 u32 f64 u128 [u8; 3] [u8; 5] [u16; 2] [u32; 3] [u64; 4]);
}

pub fn decode_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 200 } else { 3000 };
    let lengths: Vec<u32> = random(18).take(len).map(|x| x as u32 % 9).collect();
    let total = lengths.iter().sum::<u32>() as usize;
    macro_rules! check {
        ($($type:ty)*) => { $(
            let elements: Vec<$type> = in_runs(19, len, 1).into_iter().map(spread).collect();
            check_decode(&stream, &elements, &lengths, total);
        )* };
    }
    check!(u8 u16 u32 u64 u128 [u8; 3] [u8; 5] [u16; 3] [u32; 3] [u64; 4] [u8; 41] [u64; 5]);
}

/// No element, one long run, many empty runs, and everything at the edges of tiles, which have 5120 runs and outputs.
pub fn decode_lengths_of_all_kinds(device: &Device) {
    let stream = device.stream().unwrap();
    let long = if is_checked(device) { 6000 } else { 100_000 };
    let mut of_all_kinds: Vec<Vec<u64>> =
        vec![vec![0; 10], vec![long], vec![0; long as usize], vec![1; long as usize / 10], vec![long / 2, 0, long / 2]];
    of_all_kinds.push([vec![3; 20], vec![0; long as usize], vec![2; 20], vec![long], vec![0; 7]].concat());
    of_all_kinds.push(random(20).take(500).map(|x| if x % 50 == 0 { x % (long / 20) } else { x % 3 / 2 }).collect());
    for end in 5116..5124 {
        of_all_kinds.push(vec![end, 1]);
        of_all_kinds.push(vec![1, end]);
    }
    let checked = if is_checked(device) { 9 } else { of_all_kinds.len() };
    for lengths in &of_all_kinds[..checked] {
        let total: u64 = lengths.iter().sum();
        check_decode(&stream, &in_runs(21, lengths.len(), 1), lengths, total as usize);
    }
}

pub fn decode_into_less_room_and_more(device: &Device) {
    let stream = device.stream().unwrap();
    let lengths: Vec<u32> = random(22).take(500).map(|x| x as u32 % 7).collect();
    let elements = in_runs(23, 500, 1);
    let total = lengths.iter().sum::<u32>() as usize;
    for room in [0, 1, 100, total - 1, total + 1, 2 * total + 6000] {
        if !is_checked(device) || room < total + 2 {
            check_decode(&stream, &elements, &lengths, room);
        }
    }
}

pub fn decode_sums_that_overflow(device: &Device) {
    let stream = device.stream().unwrap();
    let elements = stream.upload(&[1u32, 2, 3, 4]).unwrap();
    let lengths = stream.upload(&[5u64, u64::MAX - 2, u64::MAX, 3]).unwrap();
    let mut output = stream.zeroed::<u32>(100).unwrap();
    let total = runs::run_length_decode(&stream, (&elements, &lengths), &mut output).unwrap();
    assert_eq!(total.get(&stream).unwrap(), u64::MAX);
    assert_eq!(output.to_vec(&stream).unwrap(), [vec![1; 5], vec![2; 95]].concat());
}

/// Many tiles of few elements, in many orders. A GPU has no kernels for such tiles.
pub fn adversarial_schedules_of_encode(device: &Device) {
    if is_gpu(device) {
        return;
    }
    for (seed, stream) in adversarial_streams(device, 8) {
        let host = in_runs(seed, 3000, if seed % 2 == 0 { 4 } else { 400 });
        let heads = heads(&host, Same);
        let input = stream.upload(&host).unwrap();
        let (mut elements, mut lengths) = (stream.zeroed::<u32>(3000).unwrap(), stream.zeroed::<u32>(3000).unwrap());
        let (to, to_lengths) = (elements.as_mut_slice(), lengths.as_mut_slice());
        let count =
            testing::run_length_encode_shaped::<_, _, _, 32, 1, 2>(&stream, input.as_slice(), (to, to_lengths), Same)
                .unwrap();
        assert_eq!(count.get(&stream).unwrap(), heads.len() as u64 - 1, "{seed}");
        let expected = front(heads.windows(2).map(|run| (run[1] - run[0]) as u32), 0, 3000);
        assert_same(&lengths.to_vec(&stream).unwrap(), &expected, &format!("lengths with seed {seed}"));
    }
}
