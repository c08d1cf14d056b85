//! Few wanted elements of one long input: a sample leaves out nearly all others.

use super::*;

/// The shortest input of which a sample is taken, if few elements are wanted.
const SIFTED: usize = 1 << 17;

/// Inputs and numbers of wanted elements at the limits of sampling.
pub fn sifted_edges(device: &Device) {
    let stream = device.stream().unwrap();
    for (len, k) in [(SIFTED - 1, 100), (SIFTED, 1), (SIFTED + 1, 128), (SIFTED + TILE / 8, 129)] {
        check(&stream, &numbers(40, len), k);
    }
    if is_gpu(device) {
        // The most for which a sample is taken, and the most that a block puts in order.
        for k in [1023, 1024, 1025, 2048, 2049] {
            check(&stream, &numbers(41, 1 << 21), k);
        }
    }
}

pub fn sifted_types(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(42).take(SIFTED + 77).collect();
    if is_checked(device) {
        return check_as::<_, u64>(&stream, &bits, 50);
    }
    check_as::<_, u64>(&stream, &bits.iter().map(|&x| u128::from(x) << 50).collect::<Vec<_>>(), 100);
    check(&stream, &bits.iter().map(|&x| x as i64).collect::<Vec<_>>(), 128);
    // Only the lowest digits differ.
    check(&stream, &bits.iter().map(|&x| x >> 34).collect::<Vec<_>>(), 20);
    check(&stream, &bits.iter().map(|&x| f32::from_bits(x as u32)).collect::<Vec<_>>(), 100);
    check(&stream, &bits.iter().map(|&x| (x >> 40) as f32 / 1e9).collect::<Vec<_>>(), 100);
    check(&stream, &bits.iter().map(|&x| half::f16::from_bits(x as u16)).collect::<Vec<_>>(), 30);
    check(&stream, &bits.iter().map(|&x| x as u8).collect::<Vec<_>>(), 30);
    check(&stream, &bits.iter().map(|&x| Address::new(x % 3, x as u32 >> 8, (x >> 40) as u32)).collect::<Vec<_>>(), 40);
}

/// Inputs whose samples say little about them.
pub fn sifted_adversaries(device: &Device) {
    let stream = device.stream().unwrap();
    let (len, k) = (SIFTED + 5, 100);
    let random = numbers(43, len);
    let mut sorted = random.clone();
    sorted.sort_unstable();
    let inputs: [Vec<u32>; 7] = [
        // Too many equal ones: the list of candidates is full from the beginning.
        vec![7; len],
        random.iter().map(|x| x % 5).collect(),
        sorted.clone(),
        sorted.iter().rev().copied().collect(),
        // All large ones in one place.
        (0..len).map(|i| u32::from(i / 1000 == 77) << 20 | random[i] >> 16).collect(),
        // Fewer groups of the sample than are wanted have large ones, which are equal.
        (0..len).map(|i| u32::from(i > 20_000 && i < 40_000) * 9).collect(),
        // The period of the input is a run of a warp.
        (0..len).map(|i| (i % 384 * 1000 + i / 4096) as u32).collect(),
    ];
    let checked = if is_checked(device) { 2 } else { inputs.len() };
    for host in &inputs[..checked] {
        check(&stream, host, k);
    }
    // The list has room for the 5042 equal ones, but the block that orders them has not: it takes several rounds.
    if !is_checked(device) {
        let some: Vec<u32> = (0..len).map(|i| if i % 26 == 0 { 1 << 31 } else { random[i] >> 1 }).collect();
        check(&stream, &some, 128);
    }
}

pub fn sifted_sources(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<i32> = numbers(44, SIFTED + 3).into_iter().map(|x| x as i32 % 40_000).collect();
    let squares: Vec<i32> = host.iter().map(|x| x * x).collect();
    let input = stream.upload(&host).unwrap();
    let (mut keys, mut positions) = (stream.uninit::<i32>(64).unwrap(), stream.uninit::<u64>(64).unwrap());
    top_k::largest(&stream, map(&input, map!(|x: i32| -> i32 { x * x })), (&mut keys, &mut positions)).unwrap();
    let order = expected(&squares, 64, false);
    assert_eq!(positions.to_vec(&stream).unwrap(), order.iter().map(|&at| at as u64).collect::<Vec<_>>());
    assert_eq!(keys.to_vec(&stream).unwrap(), order.iter().map(|&at| squares[at]).collect::<Vec<_>>());
    // A misaligned slice.
    let (mut keys, mut positions) = (stream.uninit::<i32>(64).unwrap(), stream.uninit::<u64>(64).unwrap());
    top_k::smallest(&stream, input.slice(1..).unwrap(), (&mut keys, &mut positions)).unwrap();
    let order = expected(&host[1..], 64, true);
    assert_eq!(positions.to_vec(&stream).unwrap(), order.iter().map(|&at| at as u64).collect::<Vec<_>>());
}

/// Lengths that only the device knows, from none to all.
pub fn sifted_device_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(45, SIFTED);
    let input = stream.upload(&host).unwrap();
    for len in [0, 1, 99, 5000, 100_000] {
        if is_checked(device) && len > 99 {
            continue;
        }
        let count = reduce::sum(&stream, constant(1u64, len)).unwrap();
        let (mut keys, mut positions) = (stream.zeroed::<u32>(100).unwrap(), stream.uninit::<u32>(100).unwrap());
        top_k::largest(&stream, counted(&input, &count), (&mut keys, &mut positions)).unwrap();
        let order = expected(&host[..len], 100, false);
        let mut expected_positions: Vec<u32> = order.iter().map(|&at| at as u32).collect();
        expected_positions.resize(100, u32::NONE);
        assert_eq!(positions.to_vec(&stream).unwrap(), expected_positions, "{len} elements");
        let mut expected_keys: Vec<u32> = order.iter().map(|&at| host[at]).collect();
        expected_keys.resize(100, 0);
        assert_eq!(keys.to_vec(&stream).unwrap(), expected_keys, "{len} elements");
    }
}

/// The order of the candidates depends on the schedule; the result does not.
pub fn sifted_schedules(device: &Device) {
    let host: Vec<u32> = numbers(46, SIFTED).into_iter().map(|x| x % 3000).collect();
    for (_, stream) in adversarial_streams(device, 1).take(if is_checked(device) { 1 } else { 4 }) {
        check(&stream, &host, 128);
    }
}
