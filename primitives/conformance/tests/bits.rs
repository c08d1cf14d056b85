//! Packed bits against vectors of `bool` on the host.

use gpu_conformance::data::random;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::operator::predicate;
use gpu_primitives::source::{counted, counting};
use gpu_primitives::{Bits, Device, DeviceValue, Error, Stream, bits, select};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        packs_and_counts,
        positions_ascend,
        every_start,
        combinations,
        selections_of_every_size,
        misaligned_bytes,
        other_bits_do_not_count,
        lengths_on_the_device,
        wrong_lengths,
        in_a_graph,
        large,
    ])
}

/// The lengths around a byte, a word, the run of a warp, and the tiles.
const LENGTHS: [usize; 17] = [0, 1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 8191, 8193, 3 * 8192 + 5];

/// Bits of which one in `rarity` is set.
fn flags(seed: u64, len: usize, rarity: u64) -> Vec<bool> {
    random(seed).take(len).map(|x| x % rarity == 0).collect()
}

/// The bytes of bits that begin at bit `start`. The others are random.
fn packed(flags: &[bool], start: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = random(99).take((start + flags.len()).div_ceil(8) + 2).map(|x| x as u8).collect();
    for (i, &flag) in flags.iter().enumerate() {
        let (byte, bit) = ((start + i) / 8, (start + i) % 8);
        bytes[byte] = bytes[byte] & !(1 << bit) | u8::from(flag) << bit;
    }
    bytes
}

/// The bytes that the library writes: they begin at bit 0, and end with zeros.
fn clean(flags: &[bool]) -> Vec<u8> {
    flags.chunks(8).map(|byte| byte.iter().rev().fold(0, |bits, &flag| bits << 1 | u8::from(flag))).collect()
}

fn expected_positions(flags: &[bool]) -> Vec<u64> {
    (0..flags.len()).filter(|&i| flags[i]).map(|i| i as u64).collect()
}

/// Returns what was written to the front of 64-bit positions, and checks that nothing else was.
fn found(stream: &Stream, bits: Bits<'_>) -> Vec<u64> {
    let mut output = stream.upload(&vec![u64::MAX; bits.len() + 3]).unwrap();
    let count = bits::positions(stream, bits, &mut output).unwrap().get(stream).unwrap() as usize;
    let mut all = output.to_vec(stream).unwrap();
    assert!(all.split_off(count).iter().all(|&rest| rest == u64::MAX), "only positions are written");
    all
}

fn packs_and_counts(device: &Device) {
    let stream = device.stream().unwrap();
    for len in LENGTHS {
        let host: Vec<u32> = random(1).take(len).map(|x| x as u32).collect();
        let expected: Vec<bool> = host.iter().map(|x| x % 3 == 0).collect();
        let input = stream.upload(&host).unwrap();
        let mut bytes = stream.upload(&vec![0xffu8; len.div_ceil(8)]).unwrap();
        bits::pack(&stream, &input, &mut bytes, predicate!(|x: u32| x % 3 == 0)).unwrap();
        assert_eq!(bytes.to_vec(&stream).unwrap(), clean(&expected), "{len}");
        let count = bits::count(&stream, Bits::new(&bytes, 0, len).unwrap()).unwrap().get(&stream).unwrap();
        assert_eq!(count as usize, expected.iter().filter(|&&flag| flag).count(), "{len}");
    }
    // Elements of other types, and of a source.
    let host: Vec<[u8; 5]> = random(2).take(300).map(|x| x.to_le_bytes()[..5].try_into().unwrap()).collect();
    let input = stream.upload(&host).unwrap();
    let mut bytes = stream.uninit::<u8>(38).unwrap();
    bits::pack(&stream, &input, &mut bytes, predicate!(|x: [u8; 5]| x[4] < 100)).unwrap();
    assert_eq!(bytes.to_vec(&stream).unwrap(), clean(&host.iter().map(|x| x[4] < 100).collect::<Vec<_>>()));
    bits::pack(&stream, counting(5u64, 300), &mut bytes, predicate!(|x: u64| x % 7 == 1)).unwrap();
    assert_eq!(bytes.to_vec(&stream).unwrap(), clean(&(5..305).map(|x| x % 7 == 1).collect::<Vec<_>>()));
}

fn positions_ascend(device: &Device) {
    let stream = device.stream().unwrap();
    for len in LENGTHS {
        for rarity in [1, 2, 100, u64::MAX] {
            let host = flags(3, len, rarity);
            let bytes = stream.upload(&packed(&host, 0)).unwrap();
            assert_eq!(found(&stream, Bits::new(&bytes, 0, len).unwrap()), expected_positions(&host), "{len} {rarity}");
        }
    }
    let host = flags(4, 9000, 2);
    let bytes = stream.upload(&packed(&host, 0)).unwrap();
    let mut output = stream.zeroed::<u32>(9000).unwrap();
    let count = bits::positions(&stream, Bits::new(&bytes, 0, 9000).unwrap(), &mut output).unwrap();
    let count = count.get(&stream).unwrap() as usize;
    let positions: Vec<u64> = output.to_vec(&stream).unwrap()[..count].iter().map(|&at| u64::from(at)).collect();
    assert_eq!(positions, expected_positions(&host));
}

fn every_start(device: &Device) {
    let stream = device.stream().unwrap();
    for start in 0..17 {
        for len in [1, 8, 31, 33, 100, 2049] {
            let host = flags(5 + start as u64, len, 2);
            let bytes = stream.upload(&packed(&host, start)).unwrap();
            let view = Bits::new(&bytes, start, len).unwrap();
            assert_eq!(found(&stream, view), expected_positions(&host), "{start} {len}");
            let items: Vec<u32> = (0..len as u32).collect();
            let input = stream.upload(&items).unwrap();
            let mut output = stream.zeroed::<u32>(len).unwrap();
            let count = select::by_bits(&stream, &input, view, &mut output).unwrap().get(&stream).unwrap() as usize;
            let kept: Vec<u64> = output.to_vec(&stream).unwrap()[..count].iter().map(|&at| u64::from(at)).collect();
            assert_eq!(kept, expected_positions(&host), "{start} {len}");
        }
    }
}

fn combinations(device: &Device) {
    let stream = device.stream().unwrap();
    for (len, start_a, start_b) in [(0, 0, 3), (1, 7, 0), (77, 3, 3), (4096, 0, 0), (5001, 5, 2)] {
        let (a, b) = (flags(6, len, 2), flags(7, len, 3));
        let (bytes_a, bytes_b) =
            (stream.upload(&packed(&a, start_a)).unwrap(), stream.upload(&packed(&b, start_b)).unwrap());
        let (view_a, view_b) = (Bits::new(&bytes_a, start_a, len).unwrap(), Bits::new(&bytes_b, start_b, len).unwrap());
        let pairs = || a.iter().copied().zip(b.iter().copied());
        let mut out = stream.uninit::<u8>(len.div_ceil(8)).unwrap();
        bits::and(&stream, view_a, view_b, &mut out).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), clean(&pairs().map(|(a, b)| a && b).collect::<Vec<_>>()));
        bits::or(&stream, view_a, view_b, &mut out).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), clean(&pairs().map(|(a, b)| a || b).collect::<Vec<_>>()));
        bits::xor(&stream, view_a, view_b, &mut out).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), clean(&pairs().map(|(a, b)| a != b).collect::<Vec<_>>()));
        bits::and_not(&stream, view_a, view_b, &mut out).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), clean(&pairs().map(|(a, b)| a && !b).collect::<Vec<_>>()));
        bits::not(&stream, view_a, &mut out).unwrap();
        assert_eq!(out.to_vec(&stream).unwrap(), clean(&a.iter().map(|a| !a).collect::<Vec<_>>()));
    }
}

/// Selects `len` elements of `SIZE` bytes.
fn selection<const SIZE: usize>(stream: &Stream, len: usize) {
    let host: Vec<[u8; SIZE]> =
        random(8).take(len).map(|x| std::array::from_fn(|i| (x >> (8 * (i % 8))) as u8 ^ i as u8)).collect();
    let kept = flags(9, len, 2);
    let (input, bytes) = (stream.upload(&host).unwrap(), stream.upload(&packed(&kept, 11)).unwrap());
    let mut output = stream.upload(&vec![[0xa5u8; SIZE]; len]).unwrap();
    let view = Bits::new(&bytes, 11, len).unwrap();
    let count = select::by_bits(stream, &input, view, &mut output).unwrap().get(stream).unwrap() as usize;
    let expected: Vec<_> = (0..len).filter(|&i| kept[i]).map(|i| host[i]).collect();
    let output = output.to_vec(stream).unwrap();
    assert_eq!(count, expected.len(), "{SIZE} {len}");
    assert!(output[..count] == expected, "{SIZE} {len}");
    assert!(output[count..].iter().all(|rest| *rest == [0xa5; SIZE]), "{SIZE} {len}: only what is kept is written");
}

fn selections_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 33, 8191, 8193] {
        selection::<1>(&stream, len);
        selection::<2>(&stream, len);
        selection::<3>(&stream, len);
        selection::<4>(&stream, len);
        selection::<8>(&stream, len);
        selection::<12>(&stream, len);
        selection::<16>(&stream, len);
        selection::<32>(&stream, len);
        selection::<40>(&stream, len);
    }
    // In the types whose alignment kernels ask for.
    let host: Vec<u64> = random(10).take(5000).collect();
    let kept = flags(11, 5000, 3);
    let (input, bytes) = (stream.upload(&host).unwrap(), stream.upload(&packed(&kept, 0)).unwrap());
    let mut output = stream.uninit::<u64>(5000).unwrap();
    let count = select::by_bits(&stream, &input, Bits::new(&bytes, 0, 5000).unwrap(), &mut output).unwrap();
    let expected: Vec<_> = (0..5000).filter(|&i| kept[i]).map(|i| host[i]).collect();
    let count = count.get(&stream).unwrap() as usize;
    assert!(output.slice(..count).unwrap().to_vec(&stream).unwrap() == expected);
}

/// Neither the bytes nor the output begin at an address that a word divides.
fn misaligned_bytes(device: &Device) {
    let stream = device.stream().unwrap();
    let host = flags(12, 3000, 2);
    let mut with_front = vec![0u8; 3];
    with_front.extend(packed(&host, 0));
    let bytes = stream.upload(&with_front).unwrap();
    let view = Bits::new(bytes.slice(3..).unwrap(), 0, 3000).unwrap();
    assert_eq!(found(&stream, view), expected_positions(&host));
    let mut output = stream.zeroed::<u8>(376).unwrap();
    bits::not(&stream, view, output.slice_mut(1..).unwrap()).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap()[1..], clean(&host.iter().map(|flag| !flag).collect::<Vec<_>>()));
    bits::pack(&stream, counting(0u32, 3000), output.slice_mut(1..).unwrap(), predicate!(|x: u32| x % 2 == 0)).unwrap();
    assert_eq!(output.to_vec(&stream).unwrap()[1..], clean(&(0..3000).map(|x| x % 2 == 0).collect::<Vec<_>>()));
}

/// All bits around the view are set.
fn other_bits_do_not_count(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes = stream.upload(&[0xffu8; 1024]).unwrap();
    for (start, len) in [(0, 0), (3, 1), (7, 2), (13, 31), (13, 32), (13, 33), (1, 8189)] {
        let view = Bits::new(&bytes, start, len).unwrap();
        assert_eq!(bits::count(&stream, view).unwrap().get(&stream).unwrap() as usize, len);
        assert_eq!(found(&stream, view), (0..len as u64).collect::<Vec<_>>());
    }
}

fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = (0..5000).collect();
    let input = stream.upload(&host).unwrap();
    for len in [0u64, 1, 100, 2048, 5000] {
        let count = DeviceValue::new(&stream, len).unwrap();
        let mut bytes = stream.upload(&vec![0xffu8; 625]).unwrap();
        bits::pack(&stream, counted(&input, &count), &mut bytes, predicate!(|x: u32| x % 2 == 1)).unwrap();
        let expected: Vec<bool> = host.iter().map(|&x| x % 2 == 1 && u64::from(x) < len).collect();
        assert_eq!(bytes.to_vec(&stream).unwrap(), clean(&expected), "{len}");
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes = stream.upload(&[0xffu8; 4]).unwrap();
    for (start, len) in [(0, 33), (32, 1), (33, 0), (usize::MAX, 2), (2, usize::MAX)] {
        assert!(matches!(Bits::new(&bytes, start, len), Err(Error::RangeOutside { .. })), "{start} {len}");
    }
    let view = Bits::new(&bytes, 1, 30).unwrap();
    let input = stream.upload(&[1u32; 29]).unwrap();
    let mut output = stream.upload(&[7u32; 29]).unwrap();
    let mut short = stream.upload(&[7u8; 3]).unwrap();
    assert!(matches!(bits::positions(&stream, view, &mut output), Err(Error::LengthMismatch { .. })));
    assert!(matches!(select::by_bits(&stream, &input, view, &mut output), Err(Error::LengthMismatch { .. })));
    assert!(matches!(bits::not(&stream, view, &mut short), Err(Error::LengthMismatch { .. })));
    let other = Bits::new(&bytes, 0, 29).unwrap();
    assert!(matches!(bits::and(&stream, view, other, &mut short), Err(Error::LengthMismatch { .. })));
    let odd = predicate!(|x: u32| x % 2 == 1);
    assert!(matches!(bits::pack(&stream, &input, &mut short, odd), Err(Error::LengthMismatch { .. })));
    assert_eq!(output.to_vec(&stream).unwrap(), [7; 29]);
    assert_eq!(short.to_vec(&stream).unwrap(), [7; 3]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let mut bytes = stream.upload(&packed(&flags(13, 3000, 2), 0)).unwrap();
    let mut output = stream.zeroed::<u32>(3000).unwrap();
    let mut count = DeviceValue::new(&stream, 0u64).unwrap();
    let (mut graph, ()) = stream
        .capture(|stream| {
            let found = bits::positions(stream, Bits::new(&bytes, 0, 3000)?, &mut output)?;
            count.as_mut_slice().copy_from(stream, found.as_slice())
        })
        .unwrap();
    for seed in [14, 15] {
        let host = flags(seed, 3000, 3);
        bytes.copy_from_host(&stream, &packed(&host, 0)).unwrap();
        // SAFETY: the memory of the recorded calls is still there, and on this stream.
        unsafe { graph.launch(&stream).unwrap() };
        let expected: Vec<u32> = expected_positions(&host).into_iter().map(|at| at as u32).collect();
        assert_eq!(count.get(&stream).unwrap() as usize, expected.len());
        assert_eq!(output.to_vec(&stream).unwrap()[..expected.len()], expected);
    }
}

fn large(device: &Device) {
    if is_checked(device) {
        return;
    }
    let len = if is_gpu(device) { (1 << 26) + 12_345 } else { (1 << 20) + 12_345 };
    let stream = device.stream().unwrap();
    let host = flags(16, len, 5);
    let bytes = stream.upload(&packed(&host, 3)).unwrap();
    let view = Bits::new(&bytes, 3, len).unwrap();
    let expected = expected_positions(&host);
    assert_eq!(bits::count(&stream, view).unwrap().get(&stream).unwrap() as usize, expected.len());
    assert!(found(&stream, view) == expected);
}
