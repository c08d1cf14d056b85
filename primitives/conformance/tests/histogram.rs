//! Histograms against loops on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::kernels::Modulo;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_primitives::histogram::{self, Bucket, Sample};
use gpu_primitives::operator::{bucket, map, predicate};
use gpu_primitives::source::{counted, counting, map};
use gpu_primitives::{Device, Error, Stream, select};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        small_histograms,
        numbers_of_bins,
        lengths_around_accesses,
        even_bins_of_integers,
        even_bins_at_the_ends_of_types,
        even_bins_of_floats,
        not_a_number,
        empty_ranges,
        levels,
        levels_of_every_type,
        many_levels,
        every_byte,
        elements_of_every_size,
        skewed_data,
        bins_beyond_the_counts,
        counts_are_written,
        misaligned_slices,
        sources,
        lengths_on_the_device,
        wrong_lengths,
        in_a_graph,
        large,
        sums_of_every_type,
        sums_that_carry,
        sums_of_lengths_and_bins,
        sums_of_odd_slices,
        first_elements,
        totals_of_wrong_lengths,
    ])
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// Returns the counts of bins that are there.
fn count(bins: usize, found: impl IntoIterator<Item = Option<usize>>) -> Vec<u32> {
    let mut counts = vec![0; bins];
    for bin in found.into_iter().flatten() {
        if bin < bins {
            counts[bin] += 1;
        }
    }
    counts
}

/// Compares the histogram by a function with a loop, for counts of both types.
fn check<T: Pod + Debug, B: Bucket<T>>(stream: &Stream, host: &[T], bins: usize, bucket: B) {
    let expected = count(bins, host.iter().map(|&x| Some(bucket.bucket(x) as usize)));
    let input = stream.upload(host).unwrap();
    let mut counts = stream.uninit::<u32>(bins).unwrap();
    histogram::by(stream, &input, &mut counts, bucket).unwrap();
    assert_eq!(counts.to_vec(stream).unwrap(), expected, "{} elements, {bins} bins", host.len());
    let mut counts = stream.uninit::<u64>(bins).unwrap();
    histogram::by(stream, &input, &mut counts, bucket).unwrap();
    let expected: Vec<u64> = expected.into_iter().map(u64::from).collect();
    assert_eq!(counts.to_vec(stream).unwrap(), expected, "{} elements, {bins} bins", host.len());
}

/// Compares bins of equal width with what a function says.
fn check_even<T: Sample + Debug>(
    stream: &Stream,
    host: &[T],
    bins: usize,
    (lower, upper): (T, T),
    bin: impl Fn(T) -> Option<usize>,
) {
    let input = stream.upload(host).unwrap();
    let mut counts = stream.uninit::<u32>(bins).unwrap();
    histogram::even(stream, &input, &mut counts, lower, upper).unwrap();
    let expected = count(bins, host.iter().map(|&x| bin(x)));
    assert_eq!(counts.to_vec(stream).unwrap(), expected, "{bins} bins from {lower:?} to {upper:?}");
}

fn small_histograms(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 31, 32, 33, 1000] {
        check(&stream, &numbers(1, len), 7, Modulo { divisor: 7 });
    }
}

/// Counters in shared memory with 32 copies to one, and counters in global memory.
fn numbers_of_bins(device: &Device) {
    let stream = device.stream().unwrap();
    for bins in [0, 1, 2, 3, 31, 255, 256, 257, 512, 1000, 4096, 4097, 8191, 8192, 8193, 65_536, 100_003] {
        let len = if is_checked(device) { 3000 } else { 50_000 };
        check(&stream, &numbers(2, len), bins, Modulo { divisor: bins as u32 + 1 });
    }
}

fn lengths_around_accesses(device: &Device) {
    let stream = device.stream().unwrap();
    // A block takes 4096 elements of 4 bytes at a time, and 16,384 bytes.
    for len in [3, 4, 5, 4095, 4096, 4097, 9000] {
        check(&stream, &numbers(3, len), 10, Modulo { divisor: 10 });
    }
    for len in [15, 16, 17, 16_383, 16_384, 16_385] {
        let bytes: Vec<u8> = numbers(4, len).into_iter().map(|x| x as u8).collect();
        check(&stream, &bytes, 10, bucket!(|x: u8| (x % 10) as u32));
    }
}

fn even_bins_of_integers(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(5).take(2000).collect();
    macro_rules! check {
        ($($type:ty: [$($lower:expr => $upper:expr, $bins:expr);+])*) => { $( $(
            let host: Vec<$type> = bits.iter().map(|&x| x as $type)
                .chain([$lower, $upper, <$type>::MIN, <$type>::MAX])
                .chain(bits.iter().map(|&x| ($lower as $type).wrapping_add((x % 1000) as $type)))
                .collect();
            let (lower, upper, bins): ($type, $type, usize) = ($lower, $upper, $bins);
            check_even(&stream, &host, bins, (lower, upper), |x| {
                let (low, high) = (lower as i128, upper as i128);
                (low..high).contains(&(x as i128)).then(|| ((x as i128 - low) * bins as i128 / (high - low)) as usize)
            });
        )+ )* };
    }
    check! {
        u8: [0 => 255, 10; 10 => 20, 3; 10 => 20, 100; 7 => 8, 1]
        i8: [-128 => 127, 256; -5 => 100, 7]
        u16: [0 => 65_535, 77; 100 => 65_000, 1000]
        i16: [-32_768 => 32_767, 13; -10 => 10, 20]
        u32: [0 => u32::MAX, 256; 5 => u32::MAX - 5, 1000; 1u32 << 31 => u32::MAX, 3; 0 => 1000, 7; 3 => 5, 60_000]
        i32: [i32::MIN => i32::MAX, 256; -1000 => 1000, 77; i32::MIN => 0, 10_000]
        u64: [0 => u64::MAX, 256; 0 => u64::MAX - 1, 1000; 3 => 1 << 40, 8192; 1u64 << 63 => u64::MAX, 65_537; 5 => 8, 100]
        i64: [i64::MIN => i64::MAX, 256; -1000 => 1000, 77; i64::MIN => -1, 12_345]
    }
}

/// Samples at the edges of bins, where a rounding error would show.
fn even_bins_at_the_ends_of_types(device: &Device) {
    let stream = device.stream().unwrap();
    for bins in [3u64, 7, 255, 256, 1000, 8191] {
        let range = u32::MAX as u64;
        let edges = (0..bins).flat_map(|bin| {
            let first = (bin * range).div_ceil(bins);
            [first.saturating_sub(1), first, first + 1]
        });
        let host: Vec<u32> = edges.filter(|&x| x < range).map(|x| x as u32).collect();
        let bin = |x: u32| Some((u64::from(x) * bins / range) as usize).filter(|_| x < u32::MAX);
        check_even(&stream, &host, bins as usize, (0, u32::MAX), bin);

        let range = u64::MAX as u128;
        let edges = (0..bins as u128).flat_map(|bin| {
            let first = (bin * range).div_ceil(bins as u128);
            [first.saturating_sub(1), first, first + 1]
        });
        let host: Vec<u64> = edges.filter(|&x| x < range).map(|x| x as u64).collect();
        let bin = |x: u64| Some((u128::from(x) * bins as u128 / range) as usize).filter(|_| x < u64::MAX);
        check_even(&stream, &host, bins as usize, (0, u64::MAX), bin);
    }
}

fn even_bins_of_floats(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<f32> = numbers(6, 5000).into_iter().map(|x| (x as i32) as f32 / 1e6).collect();
    for (lower, upper, bins) in [(0.0, 1000.0, 10), (-2000.0, 2000.0, 256), (-1.5, 700.25, 77), (0.0, 1e-3, 5)] {
        let bin = |x: f32| {
            let bin = ((x - lower) * (bins as f32 / (upper - lower))) as usize;
            (x >= lower && x < upper).then_some(bin.min(bins - 1))
        };
        check_even(&stream, &host, bins, (lower, upper), bin);
    }
    let host: Vec<f64> = random(7).take(5000).map(|x| x as i64 as f64 / 1e15).collect();
    for (lower, upper, bins) in [(0.0, 1000.0, 10), (-9000.0, 9000.0, 256), (-1.5, 700.25, 77)] {
        let bin = |x: f64| {
            let bin = ((x - lower) * (bins as f64 / (upper - lower))) as usize;
            (x >= lower && x < upper).then_some(bin.min(bins - 1))
        };
        check_even(&stream, &host, bins, (lower, upper), bin);
    }
    // Just below the upper end, the product rounds to the number of bins.
    check_even(&stream, &[0.1f32.next_down(), 0.3f32.next_down()], 3, (0.0, 0.3), |x| {
        Some(if x < 0.2 { 0 } else { 2 })
    });
}

fn not_a_number(device: &Device) {
    let stream = device.stream().unwrap();
    let host = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5, -0.0, 0.0, 1.0];
    let input = stream.upload(&host).unwrap();
    let mut counts = stream.uninit::<u32>(2).unwrap();
    histogram::even(&stream, &input, &mut counts, 0.0, 1.0).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [2, 1]);
    let levels = stream.upload(&[0.0f32, 0.5, 1.0]).unwrap();
    histogram::ranges(&stream, &input, &mut counts, &levels).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [2, 1]);
}

fn empty_ranges(device: &Device) {
    let stream = device.stream().unwrap();
    check_even(&stream, &numbers(8, 100), 5, (7, 7), |_| None);
    check_even(&stream, &numbers(8, 100), 5, (u32::MAX, 0), |_| None);
    check_even(&stream, &[1i64, 2, 3], 5, (3, 1), |_| None);
    check_even(&stream, &[1.0f32, 2.0], 5, (2.0, 1.0), |_| None);
    check_even(&stream, &[1.0f64, 2.0], 5, (1.0, 1.0), |_| None);
    check_even(&stream, &[1.0f64, 2.0], 5, (f64::NAN, 5.0), |_| None);
    check_even::<u32>(&stream, &[], 5, (0, 9), |_| None);
}

fn check_levels<T: Sample + Debug + PartialOrd>(stream: &Stream, host: &[T], levels: &[T]) {
    let (input, on_device) = (stream.upload(host).unwrap(), stream.upload(levels).unwrap());
    let bins = levels.len() - 1;
    let mut counts = stream.uninit::<u64>(bins).unwrap();
    histogram::ranges(stream, &input, &mut counts, &on_device).unwrap();
    let bin = |x: &T| levels.partition_point(|level| level <= x).checked_sub(1);
    let expected: Vec<u64> = count(bins, host.iter().map(bin)).into_iter().map(u64::from).collect();
    assert_eq!(counts.to_vec(stream).unwrap(), expected, "{bins} bins");
}

fn levels(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u32> = numbers(9, 3000).into_iter().map(|x| x % 1000).collect();
    check_levels(&stream, &host, &[0]);
    check_levels(&stream, &host, &[0, 1000]);
    check_levels(&stream, &host, &[3, 3, 4, 100, 100, 100, 900]);
    check_levels(&stream, &host, &(0..=100).map(|x| x * x / 10).collect::<Vec<_>>());
    // Levels that decrease do no harm.
    let (input, levels) = (stream.upload(&host).unwrap(), stream.upload(&[500u32, 3, 900, 0, 7]).unwrap());
    let mut counts = stream.uninit::<u32>(4).unwrap();
    histogram::ranges(&stream, &input, &mut counts, &levels).unwrap();
    assert!(counts.to_vec(&stream).unwrap().iter().sum::<u32>() <= 3000);
}

fn levels_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(10).take(1500).collect();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = bits.iter().map(|&x| x as i64 as $type).collect();
            let mut levels = host[..40].to_vec();
            levels.sort_by(|a, b| a.partial_cmp(b).unwrap());
            check_levels(&stream, &host, &levels);
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);
}

/// Levels in shared memory, and more than it has room for; counts in shared memory, and more than that.
fn many_levels(device: &Device) {
    let stream = device.stream().unwrap();
    for bins in [1023, 1024, 1025, 5000, 9000] {
        let mut levels = numbers(11, bins + 1);
        levels.sort_unstable();
        check_levels(&stream, &numbers(12, 3000), &levels);
    }
}

fn every_byte(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 100, 16_384 + 5, 50_000] {
        let host: Vec<u8> = numbers(13, len).into_iter().map(|x| x as u8).collect();
        let input = stream.upload(&host).unwrap();
        let expected = count(256, host.iter().map(|&x| Some(x as usize)));
        let mut counts = stream.uninit::<u32>(256).unwrap();
        histogram::bytes(&stream, &input, &mut counts).unwrap();
        assert_eq!(counts.to_vec(&stream).unwrap(), expected, "{len}");
        let mut counts = stream.uninit::<u64>(256).unwrap();
        histogram::bytes(&stream, &input, &mut counts).unwrap();
        assert_eq!(counts.to_vec(&stream).unwrap().iter().sum::<u64>(), len as u64);
    }
}

fn elements_of_every_size(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(14).take(4 * 2500).collect();
    macro_rules! check {
        ($($type:ty: |$x:ident| $bin:expr;)*) => { $(
            let host: Vec<$type> = bytemuck::cast_slice::<_, u8>(&bits)
                .chunks_exact(size_of::<$type>()).map(bytemuck::pod_read_unaligned).take(2500).collect();
            check(&stream, &host, 50, bucket!(|$x: $type| $bin));
        )* };
    }
    check! {
        u8: |x| x as u32 % 51;
        i16: |x| x as u32 % 51;
        [u8; 3]: |x| x[2] as u32 % 51;
        f32: |x| x.to_bits() % 51;
        [u8; 5]: |x| x[4] as u32 % 51;
        u64: |x| (x % 51) as u32;
        [u32; 3]: |x| x[2] % 51;
        u128: |x| (x >> 64) as u32 % 51;
        [u64; 3]: |x| x[2] as u32 % 51;
        [u64; 4]: |x| x[3] as u32 % 51;
    }
}

fn skewed_data(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 5000 } else { 100_000 };
    for bins in [2, 256, 8192, 20_000] {
        check(&stream, &vec![1u32; len], bins, Modulo { divisor: 1 << 31 });
        let mostly: Vec<u32> = numbers(15, len).into_iter().map(|x| if x % 10 == 0 { x } else { 1 }).collect();
        check(&stream, &mostly, bins, Modulo { divisor: bins as u32 });
    }
}

fn bins_beyond_the_counts(device: &Device) {
    let stream = device.stream().unwrap();
    for bins in [1, 10, 9000] {
        check(&stream, &numbers(16, 3000), bins, bucket!(|x: u32| x));
        check(&stream, &numbers(16, 3000), bins, bucket!(|x: u32| x >> 10));
    }
}

fn counts_are_written(device: &Device) {
    let stream = device.stream().unwrap();
    let mut counts = stream.upload(&[7u32; 5]).unwrap();
    let input = stream.upload(&[1u32, 1, 2]).unwrap();
    histogram::by(&stream, &input, counts.slice_mut(1..4).unwrap(), bucket!(|x: u32| x)).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [7, 0, 2, 1, 7]);
    let none = stream.zeroed::<u32>(0).unwrap();
    histogram::by(&stream, &none, counts.slice_mut(1..4).unwrap(), bucket!(|x: u32| x)).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [7, 0, 0, 0, 7]);
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u8> = numbers(17, 5000).into_iter().map(|x| x as u8).collect();
    let input = stream.upload(&host).unwrap();
    let mut counts = stream.uninit::<u32>(256).unwrap();
    for (start, end) in [(1, 5000), (15, 4999), (16, 4000), (3, 10), (3, 3), (7, 39)] {
        histogram::bytes(&stream, input.slice(start..end).unwrap(), &mut counts).unwrap();
        let expected = count(256, host[start..end].iter().map(|&x| Some(x as usize)));
        assert_eq!(counts.to_vec(&stream).unwrap(), expected, "{start} to {end}");
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let mut counts = stream.uninit::<u32>(10).unwrap();
    histogram::even(&stream, counting(0u32, 5000), &mut counts, 0, 1000).unwrap();
    assert_eq!(counts.to_vec(&stream).unwrap(), [100; 10]);
    let host = numbers(18, 5000);
    let input = stream.upload(&host).unwrap();
    let tenths = map(&input, map!(|x: u32| -> u8 { (x % 10) as u8 }));
    histogram::by(&stream, tenths, &mut counts, bucket!(|x: u8| x as u32)).unwrap();
    let expected = count(10, host.iter().map(|&x| Some(x as usize % 10)));
    assert_eq!(counts.to_vec(&stream).unwrap(), expected);
    let mut counts = stream.uninit::<u64>(256).unwrap();
    histogram::bytes(&stream, map(&input, map!(|x: u32| -> u8 { x as u8 })), &mut counts).unwrap();
    let expected: Vec<u64> =
        count(256, host.iter().map(|&x| Some(x as usize % 256))).into_iter().map(u64::from).collect();
    assert_eq!(counts.to_vec(&stream).unwrap(), expected);
}

/// What a selection returns is the number of samples.
fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(19, 9000);
    let input = stream.upload(&host).unwrap();
    for limit in [0u32, 1 << 31, u32::MAX] {
        let mut kept = stream.zeroed::<u32>(host.len()).unwrap();
        let below = predicate!(limit: u32 = limit; |x: u32| x < limit);
        let selected = select::select(&stream, &input, &mut kept, below).unwrap();
        let mut counts = stream.uninit::<u32>(10).unwrap();
        histogram::by(&stream, counted(&kept, &selected), &mut counts, Modulo { divisor: 10 }).unwrap();
        let expected = count(10, host.iter().filter(|&&x| x < limit).map(|&x| Some(x as usize % 10)));
        assert_eq!(counts.to_vec(&stream).unwrap(), expected, "{limit}");
    }
}

fn wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes = stream.upload(&[1u8, 2, 3]).unwrap();
    let mut counts = stream.upload(&[5u32; 4]).unwrap();
    let error = histogram::bytes(&stream, &bytes, &mut counts).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 256, found: 4, .. }), "{error}");
    let levels = stream.upload(&[1u8, 2, 3]).unwrap();
    let error = histogram::ranges(&stream, &bytes, &mut counts, &levels).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 5, found: 3, .. }), "{error}");
    assert_eq!(counts.to_vec(&stream).unwrap(), [5; 4]);
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let host = numbers(20, 5000);
    let input = stream.upload(&host).unwrap();
    let mut counts = stream.uninit::<u32>(16).unwrap();
    let capture = stream.capture(|stream| histogram::by(stream, &input, &mut counts, Modulo { divisor: 16 }));
    let (mut graph, ()) = capture.unwrap();
    for _ in 0..2 {
        // SAFETY: the memory is still there.
        unsafe { graph.launch(&stream).unwrap() };
    }
    let expected = count(16, host.iter().map(|&x| Some(x as usize % 16)));
    assert_eq!(counts.to_vec(&stream).unwrap(), expected);
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 60_000 };
    check(&stream, &numbers(21, len), 256, bucket!(|x: u32| x >> 24));
    check(&stream, &numbers(22, len), 1 << 16, bucket!(|x: u32| x >> 16));
}

/// Compares sums with those of the host.
macro_rules! check_sums {
    ($stream:expr, $type:ty as $total:ty, $bins:expr, $keys:expr, $values:expr) => {{
        let (stream, keys, values): (&Stream, &[u32], &[$type]) = ($stream, $keys, $values);
        let bins: usize = $bins;
        let mut expected = vec![<$total>::default(); bins];
        for (&key, &value) in keys.iter().zip(values) {
            if let Some(total) = expected.get_mut(key as usize) {
                *total += <$total>::from(value);
            }
        }
        let mut totals = stream.upload(&vec![<$total>::MAX; bins]).unwrap();
        let (keys, values) = (stream.upload(keys).unwrap(), stream.upload(values).unwrap());
        histogram::sums(stream, &keys, &values, &mut totals).unwrap();
        assert_eq!(totals.to_vec(stream).unwrap(), expected, "{} values, {bins} bins", values.len());
    }};
}

fn sums_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 700 } else { 5000 };
    let (bits, keys): (Vec<u64>, Vec<u32>) = random(30).take(len).map(|x| (x, (x >> 40) as u32 % 11)).unzip();
    macro_rules! check {
        ($($type:ident as $total:ident)*) => { $({
            let values: Vec<$type> = bits.iter().map(|&x| x as $type).chain([$type::MIN, $type::MAX, 0]).collect();
            let keys: Vec<u32> = keys.iter().copied().chain([3, 3, 9]).collect();
            check_sums!(&stream, $type as $total, 10, &keys, &values);
        })* };
    }
    check!(u8 as u128 u16 as u128 u32 as u128 u64 as u128 i8 as i128 i16 as i128 i32 as i128 i64 as i128);
}

/// Numbers whose halves are zero, or wrap with each addition.
fn sums_that_carry(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 600 } else { 20_000 };
    let odd = [0, 1, -1, i64::MIN, i64::MAX, 0xFFFF_FFFF, -0xFFFF_FFFF, 1 << 32, -(1 << 32), 0xFFFF_FFFF_0000, -7];
    for bins in [1, 3, 4096, 4097] {
        for extreme in odd {
            let keys: Vec<u32> = (0..len as u32 / 5).map(|i| i % 2).collect();
            check_sums!(&stream, i64 as i128, bins, &keys, &vec![extreme; keys.len()]);
            check_sums!(&stream, u64 as u128, bins, &keys, &vec![extreme as u64; keys.len()]);
        }
        let numbers: Vec<u64> = random(31).take(len).collect();
        let keys: Vec<u32> = numbers.iter().map(|x| (x >> 20) as u32 % bins as u32).collect();
        let values: Vec<i64> = numbers.iter().map(|x| odd[*x as usize % odd.len()]).collect();
        check_sums!(&stream, i64 as i128, bins, &keys, &values);
    }
}

/// Bins for which there are 32 copies to one, and lengths around what a block takes.
fn sums_of_lengths_and_bins(device: &Device) {
    let stream = device.stream().unwrap();
    for bins in [0, 1, 2, 127, 128, 129, 1000, 2047, 2048, 2049, 4095, 4096, 4097, 10_000] {
        let len = if is_checked(device) { 1500 } else { 30_000 };
        let keys: Vec<u32> = numbers(32, len).into_iter().map(|x| x % (bins as u32 + 1)).collect();
        let values: Vec<i32> = numbers(33, len).into_iter().map(|x| x as i32).collect();
        check_sums!(&stream, i32 as i128, bins, &keys, &values);
    }
    for len in [0, 1, 31, 33, 1023, 1024, 1025, 2048, 2049] {
        let values: Vec<i64> = random(34).take(len).map(|x| x as i64).collect();
        check_sums!(&stream, i64 as i128, 5, &numbers(35, len).iter().map(|x| x % 5).collect::<Vec<_>>(), &values);
    }
}

/// Slices at odd addresses, sources, a length that the device knows, and totals among others.
fn sums_of_odd_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (numbers(36, 900), numbers(37, 900));
    let (on_device, amounts) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
    for start in [0, 1, 3] {
        let mut totals = stream.upload(&[7u128; 6]).unwrap();
        let (bins, amounts) = (on_device.slice(start..890).unwrap(), amounts.slice(4..894 - start).unwrap());
        let bins = map(bins, map!(|x: u32| -> u32 { x >> 30 }));
        let mut expected = [7u128, 0, 0, 0, 0, 7];
        for (key, value) in keys[start..890].iter().zip(&values[4..]) {
            expected[1 + (key >> 30) as usize] += u128::from(*value);
        }
        histogram::sums(&stream, bins, amounts, totals.slice_mut(1..5).unwrap()).unwrap();
        assert_eq!(totals.to_vec(&stream).unwrap(), expected, "from {start}");
    }
    let mut kept = stream.uninit::<u32>(900).unwrap();
    let count = select::select(&stream, &on_device, &mut kept, predicate!(|x: u32| x >= 1 << 31)).unwrap();
    let mut totals = stream.uninit::<u128>(4).unwrap();
    let bins = map(counted(&kept, &count), map!(|x: u32| -> u32 { x >> 30 }));
    histogram::sums(&stream, bins, counting(0u32, 900), &mut totals).unwrap();
    let mut expected = [0u128; 4];
    for (i, key) in keys.iter().filter(|key| **key >= 1 << 31).enumerate() {
        expected[(key >> 30) as usize] += i as u128;
    }
    assert_eq!(totals.to_vec(&stream).unwrap(), expected);
}

fn first_elements(device: &Device) {
    let stream = device.stream().unwrap();
    let long = if is_checked(device) { 3000 } else { 60_000 };
    for (len, bins) in
        [(0, 3), (1, 1), (5, 9), (2047, 33), (2048, 256), (2049, 257), (5000, 4096), (long, 4097), (long, 7)]
    {
        // Bin `n` is about `n` times rarer than the first one.
        let key = |x: u32| (f64::from(bins).powf(f64::from(x) / 2f64.powi(32)) - 0.5) as u32;
        let keys: Vec<u32> = numbers(38, len).into_iter().map(key).collect();
        let mut expected = vec![(0u32, u32::MAX); bins as usize];
        for (&key, i) in keys.iter().zip(0..) {
            if let Some((count, first)) = expected.get_mut(key as usize) {
                (*count, *first) = (*count + 1, (*first).min(i));
            }
        }
        let keys = stream.upload(&keys).unwrap();
        let (mut counts, mut firsts) =
            (stream.uninit::<u32>(bins as usize).unwrap(), stream.uninit::<u32>(bins as usize).unwrap());
        histogram::counts_and_firsts(&stream, &keys, &mut counts, &mut firsts).unwrap();
        let found: Vec<(u32, u32)> =
            counts.to_vec(&stream).unwrap().into_iter().zip(firsts.to_vec(&stream).unwrap()).collect();
        assert_eq!(found, expected, "{len} elements, {bins} bins");
    }
}

fn totals_of_wrong_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    let (keys, values) = (stream.upload(&[0u32, 1]).unwrap(), stream.upload(&[5i64]).unwrap());
    let mut totals = stream.upload(&[9i128; 2]).unwrap();
    let wrong = histogram::sums(&stream, &keys, &values, &mut totals);
    assert!(matches!(wrong, Err(Error::LengthMismatch { .. })), "{wrong:?}");
    assert_eq!(totals.to_vec(&stream).unwrap(), [9; 2]);
    let (mut counts, mut firsts) = (stream.upload(&[3u32; 2]).unwrap(), stream.upload(&[4u32]).unwrap());
    let wrong = histogram::counts_and_firsts(&stream, &keys, &mut counts, &mut firsts);
    assert!(matches!(wrong, Err(Error::LengthMismatch { .. })), "{wrong:?}");
    assert_eq!((counts.to_vec(&stream).unwrap(), firsts.to_vec(&stream).unwrap()), (vec![3; 2], vec![4]));
    let many = counting(0u32, u32::MAX as usize);
    let wrong = histogram::counts_and_firsts(&stream, many, &mut counts, &mut stream.zeroed::<u32>(2).unwrap());
    assert!(matches!(wrong, Err(Error::TooLong { .. })), "{wrong:?}");
}
