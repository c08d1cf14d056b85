//! More than 2^32 elements, if the device has enough memory: positions and counts must not be truncated to 32 bits.
//!
//! Otherwise the same cases run with few elements, which at least checks the arithmetic of the tests.

use gpu_conformance::{cases, run};
use gpu_primitives::compare::Less;
use gpu_primitives::select::{self, Masked};
use gpu_primitives::sort::{self, Options};
use gpu_primitives::{Bits, Device, DeviceKind, DeviceVec, Stream, bits, merge, scan, transfer, transform};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![scans, sorts, merges, selects, packed_bits])
}

/// A little more than 2^32 with 72 GB of free memory on a GPU, else a few thousand.
fn len(device: &Device) -> usize {
    let room = device.memory_free().is_ok_and(|(free, _)| free > 72_000_000_000);
    if matches!(device.kind(), DeviceKind::Cuda { .. }) && room { (1 << 32) + 12_345 } else { 12_345 }
}

/// Checks the elements around the ends, the middle and 2^32.
fn check(stream: &Stream, data: &DeviceVec<u32>, expected: impl Fn(usize) -> u32) {
    for around in [0, data.len() / 2, (1 << 32).min(data.len()), data.len()] {
        let (start, end) = (around.saturating_sub(5000), (around + 5000).min(data.len()));
        let found = data.slice(start..end).unwrap().to_vec(stream).unwrap();
        for (i, &value) in (start..end).zip(&found) {
            assert_eq!(value, expected(i), "element {i} of {}", data.len());
        }
    }
}

fn counting(stream: &Stream, len: usize, start: u32) -> DeviceVec<u32> {
    let mut data = stream.uninit::<u32>(len).unwrap();
    transform::sequence(stream, &mut data, start).unwrap();
    data
}

fn scans(device: &Device) {
    let stream = device.stream().unwrap();
    let mut data = stream.uninit::<u32>(len(device)).unwrap();
    transfer::fill(&stream, &mut data, 3).unwrap();
    scan::exclusive_in_place(&stream, &mut data, scan::Sum, 1).unwrap();
    check(&stream, &data, |i| (3 * i + 1) as u32);
}

/// Ascending numbers, sorted in descending order. Beyond 2^32 they wrap around, so that the smallest occur twice.
fn sorts(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let input = counting(&stream, n, 0);
    let mut output = stream.uninit::<u32>(n).unwrap();
    sort::keys(&stream, &input, &mut output, Options::new().descending()).unwrap();
    let twice = n.saturating_sub(1 << 32);
    let once = n - 2 * twice;
    check(
        &stream,
        &output,
        |i| if i < once { (n - twice - 1 - i) as u32 } else { (twice - 1 - (i - once) / 2) as u32 },
    );
}

fn merges(device: &Device) {
    let stream = device.stream().unwrap();
    let half = len(device) / 2;
    let (a, b) = (counting(&stream, half, 0), counting(&stream, half, 0));
    let mut output = stream.uninit::<u32>(2 * half).unwrap();
    merge::keys(&stream, &a, &b, &mut output, Less).unwrap();
    check(&stream, &output, |i| (i / 2) as u32);
}

fn selects(device: &Device) {
    let stream = device.stream().unwrap();
    let n = len(device);
    let input = counting(&stream, n, 7);
    let mut output = stream.zeroed::<u32>(n).unwrap();
    // One in four is not selected.
    let count = select::select(&stream, &input, &mut output, Masked::differ(3, 3)).unwrap().get(&stream).unwrap();
    // The first number, 7, is not selected; then three of four are.
    let kept = |i: usize| (8 + i / 3 * 4 + i % 3) as u32;
    assert_eq!(count as usize, (n - 1) / 4 * 3 + ((n - 1) % 4).min(3));
    check(&stream, &output, |i| if i < count as usize { kept(i) } else { 0 });
}

/// More than 2^32 bytes of bits, that is more than 2^35 bits, of which the last ones are set.
fn packed_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let bytes = len(device);
    let mut data = stream.zeroed::<u8>(bytes).unwrap();
    data.slice_mut(bytes - 3..).unwrap().copy_from_host(&stream, &[0b1000_0000, 0, 0b0000_0001]).unwrap();
    let (start, len) = (5, 8 * bytes - 10);
    let mut opposite = stream.uninit::<u8>(len.div_ceil(8)).unwrap();
    bits::not(&stream, Bits::new(&data, start, len).unwrap(), &mut opposite).unwrap();
    let count = |data: &DeviceVec<u8>, start, len| {
        bits::count(&stream, Bits::new(data, start, len).unwrap()).unwrap().get(&stream).unwrap() as usize
    };
    assert_eq!((count(&data, start, len), count(&opposite, 0, len)), (2, len - 2));

    // As many positions as bits would take all memory: those of a part around the end.
    let part = len.min(1 << 20);
    let mut positions = stream.uninit::<u64>(part).unwrap();
    let last = Bits::new(&data, start + len - part, part).unwrap();
    let found = bits::positions(&stream, last, &mut positions).unwrap().get(&stream).unwrap();
    assert_eq!(found, 2);
    let expected = [bytes * 8 - 17, bytes * 8 - 8].map(|bit| (bit - (start + len - part)) as u64);
    assert_eq!(positions.slice(..2).unwrap().to_vec(&stream).unwrap(), expected);
}
