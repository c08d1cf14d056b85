//! Elements that pass a test: whether there are any, how many, and the first one, against iterators on the host.

use bytemuck::Pod;
use gpu_conformance::data::random;
use gpu_conformance::{adversarial_streams, assert_deterministic, cases, is_checked, is_gpu, run};
use gpu_primitives::operator::{Record, operator, predicate};
use gpu_primitives::select::Predicate;
use gpu_primitives::source::{counted, counting, map};
use gpu_primitives::{Device, DeviceValue, Stream, reduce};
use half::{bf16, f16};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        small_lengths,
        every_place,
        every_type,
        state,
        sources,
        lengths_on_the_device,
        misaligned_slices,
        many_hits_are_deterministic,
        adversarial_schedules,
        in_a_graph,
        large,
    ])
}

/// Checks all calls against the host.
fn check<T: Pod, P: Predicate<T>>(stream: &Stream, host: &[T], predicate: P) {
    let passing = || host.iter().map(|&x| predicate.test(x));
    let input = stream.upload(host).unwrap();
    let count = reduce::count_if(stream, &input, predicate).unwrap().get(stream).unwrap();
    assert_eq!(count, passing().filter(|&passes| passes).count() as u64, "{} elements", host.len());
    let any = reduce::any(stream, &input, predicate).unwrap().get(stream).unwrap();
    assert_eq!(any, u8::from(passing().any(|passes| passes)), "{} elements", host.len());
    let all = reduce::all(stream, &input, predicate).unwrap().get(stream).unwrap();
    assert_eq!(all, u8::from(passing().all(|passes| passes)), "{} elements", host.len());
    let first = reduce::find_first(stream, &input, predicate).unwrap().get(stream).unwrap();
    let expected = passing().position(|passes| passes).map_or(reduce::NOT_FOUND, |place| place as u64);
    assert_eq!(first, expected, "{} elements", host.len());
}

fn numbers(seed: u64, len: usize) -> Vec<u32> {
    random(seed).take(len).map(|x| x as u32).collect()
}

/// The lengths around a warp, its run, and a block.
const LENGTHS: [usize; 14] = [0, 1, 2, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4097, 10_000];

fn small_lengths(device: &Device) {
    let stream = device.stream().unwrap();
    for len in LENGTHS {
        let host = numbers(1, len);
        check(&stream, &host, predicate!(|x: u32| x % 3 == 0));
        check(&stream, &host, predicate!(|x: u32| x % 1000 == 7));
        check(&stream, &host, predicate!(|_x: u32| true));
        check(&stream, &host, predicate!(|_x: u32| false));
    }
}

/// One element that passes, and one that does not, at every place of interest.
fn every_place(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 5000 } else { 50_000 };
    for place in [0, 1, 31, 32, 255, 256, 2047, 2048, 4095, 4999, len / 2, len - 1] {
        let mut host = vec![0u32; len];
        host[place] = 1;
        check(&stream, &host, predicate!(|x: u32| x == 1));
        check(&stream, &host, predicate!(|x: u32| x == 0));
        // Another one behind it is not found.
        host[len - 1] = 1;
        check(&stream, &host, predicate!(|x: u32| x == 1));
    }
}

fn every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let bits: Vec<u64> = random(4).take(3000).collect();
    macro_rules! check {
        ($($type:ty)*) => { $(
            let host: Vec<$type> = bits.iter().map(|&x| (x % 100) as $type).collect();
            check(&stream, &host, predicate!(|x: $type| x > 98 as $type));
        )* };
    }
    check!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 f32 f64);
    let host: Vec<f16> = bits.iter().map(|&x| f16::from_f32((x % 100) as f32)).collect();
    check(&stream, &host, predicate!(|x: f16| x.is_nan()));
    let host: Vec<bf16> = bits.iter().map(|&x| bf16::from_f32((x % 100) as f32)).collect();
    check(&stream, &host, predicate!(|x: bf16| x.to_f32() > 97.0));
    let host: Vec<[u8; 5]> = bits.iter().map(|&x| x.to_le_bytes()[..5].try_into().unwrap()).collect();
    check(&stream, &host, predicate!(|x: [u8; 5]| x[3] > 250));
    let host: Vec<[u64; 4]> = bits.iter().map(|&x| [x, 1, 2, x % 50]).collect();
    check(&stream, &host, predicate!(|x: [u64; 4]| x[3] == 49));
    let host: Vec<[u32; 3]> = bits.iter().map(|&x| [x as u32, 1, (x % 50) as u32]).collect();
    check(&stream, &host, predicate!(|x: [u32; 3]| x[2] == 49));
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable, Record)]
struct Above(f64);

#[operator]
impl Predicate<f64> for Above {
    fn test(&self, item: f64) -> bool {
        item > self.0
    }
}

fn state(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<f64> = random(5).take(3000).map(|x| (x >> 40) as f64).collect();
    for limit in [-1.0, 1e5, 16e6, 1e9] {
        check(&stream, &host, Above(limit));
    }
}

fn sources(device: &Device) {
    let stream = device.stream().unwrap();
    let is_square = predicate!(|x: u64| x == 5041);
    let squares = map(counting(0u64, 5000), gpu_primitives::operator::map!(|i: u64| -> u64 { i * i }));
    assert_eq!(reduce::find_first(&stream, squares, is_square).unwrap().get(&stream).unwrap(), 71);
    assert_eq!(reduce::count_if(&stream, squares, is_square).unwrap().get(&stream).unwrap(), 1);
    // A source that no memory would hold: only its beginning is read.
    let endless = counting(0u64, 1 << 36);
    let found = reduce::find_first(&stream, endless, predicate!(|x: u64| x == 3000)).unwrap();
    assert_eq!(found.get(&stream).unwrap(), 3000);
}

fn lengths_on_the_device(device: &Device) {
    let stream = device.stream().unwrap();
    let mut host = vec![1u32; 5000];
    host[4000] = 2;
    let input = stream.upload(&host).unwrap();
    for (len, place) in [(0, u64::MAX), (4000, u64::MAX), (4001, 4000), (9999, 4000)] {
        let count = DeviceValue::new(&stream, len).unwrap();
        let input = counted(&input, &count);
        let found = reduce::find_first(&stream, input, predicate!(|x: u32| x == 2)).unwrap();
        assert_eq!(found.get(&stream).unwrap(), place, "{len}");
        let ones = reduce::count_if(&stream, input, predicate!(|x: u32| x == 1)).unwrap();
        assert_eq!(ones.get(&stream).unwrap(), len.min(5000) - u64::from(len > 4000), "{len}");
    }
}

fn misaligned_slices(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<u8> = random(8).take(5000).map(|x| (x % 200) as u8).collect();
    let input = stream.upload(&host).unwrap();
    for start in 1..5 {
        let found = reduce::count_if(&stream, input.slice(start..).unwrap(), predicate!(|x: u8| x < 50)).unwrap();
        assert_eq!(found.get(&stream).unwrap(), host[start..].iter().filter(|&&x| x < 50).count() as u64);
    }
}

fn many_hits_are_deterministic(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 4000 } else { 300_000 };
    let mut host = vec![1u32; len];
    host[..3000].fill(0);
    let input = stream.upload(&host).unwrap();
    assert_deterministic(device, || {
        let found = reduce::find_first(&stream, &input, predicate!(|x: u32| x == 1)).unwrap().get(&stream).unwrap();
        assert_eq!(found, 3000);
        found.to_le_bytes().to_vec()
    });
}

fn adversarial_schedules(device: &Device) {
    for (seed, stream) in adversarial_streams(device, 5) {
        let mut host = vec![0u32; 20_000];
        for place in [2500 + seed as usize * 7, 9000, 17_000] {
            host[place] = 1;
        }
        check(&stream, &host, predicate!(|x: u32| x == 1));
    }
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let mut input = stream.upload(&[7u32; 5000]).unwrap();
    let calls = |stream: &Stream, input: &_| {
        let first = reduce::find_first(stream, input, predicate!(|x: u32| x == 7))?;
        Ok((first, reduce::all(stream, input, predicate!(|x: u32| x == 7))?))
    };
    let (mut graph, (first, all)) = stream.capture(|stream| calls(stream, &input)).unwrap();
    // Each launch begins anew.
    for expected in [(0, 1), (10, 0)] {
        // SAFETY: the input and the results are still there.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!((first.get(&stream).unwrap(), all.get(&stream).unwrap()), expected);
        input.slice_mut(..10).unwrap().copy_from_host(&stream, &[1; 10]).unwrap();
    }
}

fn large(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_gpu(device) { (1 << 24) + 321 } else { 40_000 };
    let host: Vec<u32> = (0..len as u32).collect();
    check(&stream, &host, predicate!(|x: u32| x % 3000 == 2999));
    check(&stream, &host, predicate!(last: u32 = len as u32 - 1; |x: u32| x >= last));
}
