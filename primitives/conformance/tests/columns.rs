//! The order of rows by several columns, and ranks, against stable sorts on the host.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::data::random;
use gpu_conformance::{cases, is_gpu, run};
use gpu_primitives::operator::Record;
use gpu_primitives::sort::{self, Options, RadixKey, SortColumn, U256};
use gpu_primitives::{Bits, Device, DeviceVec, Error, Stream, permute};
use half::f16;
use std::cmp::Ordering;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        ranks,
        two_columns_of_every_length,
        columns_of_every_type,
        directions,
        nulls,
        nulls_of_64_bits,
        wide_codes,
        eight_columns,
        own_keys,
        one_column,
        rows_can_be_gathered,
        wrong_columns,
        in_a_graph,
    ])
}

/// Returns the stable order of rows by a comparison.
fn order_by(len: usize, compare: impl Fn(usize, usize) -> Ordering) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    order.sort_by(|&a, &b| compare(a as usize, b as usize));
    order
}

fn found(stream: &Stream, columns: &[SortColumn<'_>]) -> Vec<u32> {
    sort::by_columns(stream, columns).unwrap().to_vec(stream).unwrap()
}

fn numbers(seed: u64, len: usize, limit: u64) -> Vec<u64> {
    random(seed).take(len).map(|x| x % limit).collect()
}

/// Validity bits, which begin at bit 3 of their bytes.
fn bits(stream: &Stream, valid: &[bool]) -> DeviceVec<u8> {
    let mut bytes = vec![0u8; (valid.len() + 3).div_ceil(8)];
    bytes[0] = 0b101;
    for (i, &valid) in valid.iter().enumerate() {
        bytes[(i + 3) / 8] |= u8::from(valid) << ((i + 3) % 8);
    }
    stream.upload(&bytes).unwrap()
}

fn ranks(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [0, 1, 2, 777, 5000] {
        let host: Vec<i16> = numbers(1, len, 100).iter().map(|&x| x as i16 - 50).collect();
        let keys = stream.upload(&host).unwrap();
        for (options, sign) in [(Options::new(), 1), (Options::new().descending(), -1)] {
            let ranks = sort::rank(&stream, &keys, options).unwrap().to_vec(&stream).unwrap();
            let order = order_by(len, |a, b| (sign * host[a]).cmp(&(sign * host[b])));
            for (position, &row) in order.iter().enumerate() {
                assert_eq!(ranks[row as usize] as usize, position, "{len}");
            }
        }
    }
}

fn two_columns_of_every_length(device: &Device) {
    let stream = device.stream().unwrap();
    let most = if is_gpu(device) { 70_000 } else { 4097 };
    for len in [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 2049, most] {
        let a: Vec<u32> = numbers(2, len, 50).iter().map(|&x| x as u32).collect();
        let b: Vec<u32> = random(3).take(len).map(|x| x as u32).collect();
        let (on_device_a, on_device_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let columns = [SortColumn::new(&on_device_a), SortColumn::new(&on_device_b)];
        assert_eq!(found(&stream, &columns), order_by(len, |x, y| (a[x], b[x]).cmp(&(a[y], b[y]))), "{len}");
    }
}

fn columns_of_every_type(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 1500;
    let tie: Vec<u64> = numbers(4, len, 3);
    let first = stream.upload(&tie.iter().map(|&x| x as u8).collect::<Vec<_>>()).unwrap();
    macro_rules! check {
        ($($type:ty: $host:expr, $compare:expr;)*) => { $(
            let host: Vec<$type> = random(5).take(len).map($host).collect();
            let second = stream.upload(&host).unwrap();
            let compare: fn(&$type, &$type) -> Ordering = $compare;
            let columns = [SortColumn::new(&first), SortColumn::new(&second)];
            let expected = order_by(len, |a, b| tie[a].cmp(&tie[b]).then(compare(&host[a], &host[b])));
            assert_eq!(found(&stream, &columns), expected, stringify!($type));
            let columns = [SortColumn::new(&second).descending(), SortColumn::new(&first)];
            let expected = order_by(len, |a, b| compare(&host[b], &host[a]).then(tie[a].cmp(&tie[b])));
            assert_eq!(found(&stream, &columns), expected, stringify!($type));
        )* };
    }
    check! {
        u8: |x| x as u8, u8::cmp;
        i8: |x| x as i8, i8::cmp;
        u16: |x| x as u16, u16::cmp;
        i16: |x| x as i16, i16::cmp;
        u32: |x| x as u32, u32::cmp;
        i32: |x| x as i32, i32::cmp;
        f32: |x| f32::from_bits(x as u32), f32::total_cmp;
        u64: |x| x, u64::cmp;
        i64: |x| x as i64, i64::cmp;
        f64: f64::from_bits, f64::total_cmp;
        u128: |x| u128::from(x) << 50 | 7, u128::cmp;
        i128: |x| i128::from(x as i64) << 50, i128::cmp;
        f16: |x| f16::from_bits(x as u16), f16::total_cmp;
    }
}

fn directions(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 2000;
    let (a, b, c) = (numbers(6, len, 4), numbers(7, len, 5), numbers(8, len, 6));
    let a: Vec<i32> = a.iter().map(|&x| x as i32 - 2).collect();
    let b: Vec<f32> = b.iter().map(|&x| x as f32 - 2.5).collect();
    let on_device = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap(), stream.upload(&c).unwrap());
    for directions in 0..8 {
        let turn = |column: usize, order: Ordering| if directions >> column & 1 == 1 { order.reverse() } else { order };
        let mut columns = [SortColumn::new(&on_device.0), SortColumn::new(&on_device.1), SortColumn::new(&on_device.2)];
        for (i, column) in columns.iter_mut().enumerate() {
            if directions >> i & 1 == 1 {
                *column = column.descending();
            }
        }
        let expected = order_by(len, |x, y| {
            let first = turn(0, a[x].cmp(&a[y]));
            first.then(turn(1, b[x].total_cmp(&b[y]))).then(turn(2, c[x].cmp(&c[y])))
        });
        assert_eq!(found(&stream, &columns), expected, "{directions:b}");
    }
}

fn nulls(device: &Device) {
    let stream = device.stream().unwrap();
    for len in [1, 33, 1500] {
        let a: Vec<i16> = numbers(9, len, 7).iter().map(|&x| x as i16 - 3).collect();
        let b: Vec<u32> = numbers(10, len, 9).iter().map(|&x| x as u32).collect();
        let valid_a: Vec<bool> = random(11).take(len).map(|x| x % 4 != 0).collect();
        let valid_b: Vec<bool> = random(12).take(len).map(|x| x % 3 != 0).collect();
        let (bits_a, bits_b) = (bits(&stream, &valid_a), bits(&stream, &valid_b));
        let (bits_a, bits_b) = (Bits::new(&bits_a, 3, len).unwrap(), Bits::new(&bits_b, 3, len).unwrap());
        let (on_device_a, on_device_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let columns = [
            SortColumn::new(&on_device_a).descending().nulls_first(bits_a),
            SortColumn::new(&on_device_b).nulls_last(bits_b),
        ];
        let key = |row: usize| {
            let first = (valid_a[row], if valid_a[row] { -i32::from(a[row]) } else { 0 });
            (first, (!valid_b[row], if valid_b[row] { b[row] } else { 0 }))
        };
        assert_eq!(found(&stream, &columns), order_by(len, |x, y| key(x).cmp(&key(y))), "{len}");
    }
}

/// The bits of nulls do not fit into the number that has the codes.
fn nulls_of_64_bits(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 1200;
    let host: Vec<i64> = random(13).take(len).map(|x| (x % 40) as i64 * (1 << 55) - (20 << 55)).collect();
    let valid: Vec<bool> = random(14).take(len).map(|x| x % 3 != 0).collect();
    let bytes = bits(&stream, &valid);
    let (keys, valid_bits) = (stream.upload(&host).unwrap(), Bits::new(&bytes, 3, len).unwrap());
    let key = |row: usize| valid[row].then_some(host[row]);
    let first = found(&stream, &[SortColumn::new(&keys).nulls_first(valid_bits)]);
    assert_eq!(first, order_by(len, |a, b| key(a).cmp(&key(b))));
    let last = found(&stream, &[SortColumn::new(&keys).nulls_last(valid_bits)]);
    assert_eq!(last, order_by(len, |a, b| (!valid[a], key(a)).cmp(&(!valid[b], key(b)))));
    let twice = [SortColumn::new(&keys).nulls_first(valid_bits), SortColumn::new(&keys).descending()];
    assert_eq!(found(&stream, &twice), order_by(len, |a, b| key(a).cmp(&key(b)).then(host[b].cmp(&host[a]))));
}

fn wide_codes(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 700;
    let parts: Vec<[u64; 4]> = random(15).take(len).map(|x| [x % 2, x >> 3 & 1, x >> 5 & 1, x >> 9 & 1]).collect();
    let wide = |a: u64, b: u64| u128::from(a) << 100 | u128::from(b) << 20;
    let host: Vec<U256> = parts.iter().map(|x| U256 { high: wide(x[0], x[1]), low: wide(x[2], x[3]) }).collect();
    let small: Vec<u16> = random(16).take(len).map(|x| x as u16 % 5).collect();
    let valid: Vec<bool> = random(17).take(len).map(|x| x % 3 != 0).collect();
    let (keys, others, bytes) = (stream.upload(&host).unwrap(), stream.upload(&small).unwrap(), bits(&stream, &valid));
    let columns =
        [SortColumn::new(&keys).descending().nulls_last(Bits::new(&bytes, 3, len).unwrap()), SortColumn::new(&others)];
    let key = |row: usize| (!valid[row], if valid[row] { parts[row].map(|x| 1 - x) } else { [0; 4] }, small[row]);
    assert_eq!(found(&stream, &columns), order_by(len, |a, b| key(a).cmp(&key(b))));
}

/// Sixteen fields: more than one number takes, though their bits would fit.
fn eight_columns(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 1100;
    let valid: Vec<bool> = random(18).take(len).map(|x| x % 2 == 0).collect();
    let bytes = bits(&stream, &valid);
    let valid_bits = Bits::new(&bytes, 3, len).unwrap();
    let host: Vec<Vec<u8>> = (0..8).map(|seed| numbers(20 + seed, len, 2).iter().map(|&x| x as u8).collect()).collect();
    let on_device: Vec<DeviceVec<u8>> = host.iter().map(|column| stream.upload(column).unwrap()).collect();
    let plain: Vec<_> = on_device.iter().map(SortColumn::new::<u8>).collect();
    let key = |row: usize| host.iter().map(|column| column[row]).collect::<Vec<_>>();
    assert_eq!(found(&stream, &plain), order_by(len, |a, b| key(a).cmp(&key(b))));
    let with_nulls: Vec<_> = plain.iter().map(|column| column.nulls_first(valid_bits)).collect();
    let key = |row: usize| valid[row].then(|| key(row));
    assert_eq!(found(&stream, &with_nulls), order_by(len, |a, b| key(a).cmp(&key(b))));
}

/// A key whose code is computed.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Record, RadixKey)]
struct Version {
    major: u8,
    minor: u8,
    patch: u16,
}

fn own_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let len = 1500;
    let host: Vec<Version> = random(30)
        .take(len)
        .map(|x| Version { major: x as u8 % 3, minor: (x >> 8) as u8 % 3, patch: (x >> 16) as u16 % 4 })
        .collect();
    let time: Vec<i64> = numbers(31, len, 6).iter().map(|&x| x as i64 - 3).collect();
    let (versions, times) = (stream.upload(&host).unwrap(), stream.upload(&time).unwrap());
    let columns = [SortColumn::new(&times).descending(), SortColumn::new(&versions)];
    let expected = order_by(len, |a, b| time[b].cmp(&time[a]).then(host[a].cmp(&host[b])));
    assert_eq!(found(&stream, &columns), expected);
    let columns = [SortColumn::new(&versions).descending(), SortColumn::new(&times)];
    let expected = order_by(len, |a, b| host[b].cmp(&host[a]).then(time[a].cmp(&time[b])));
    assert_eq!(found(&stream, &columns), expected);
}

fn one_column(device: &Device) {
    let stream = device.stream().unwrap();
    let host: Vec<f32> = random(32).take(900).map(|x| (x % 50) as f32 - 25.0).collect();
    let keys = stream.upload(&host).unwrap();
    let expected = order_by(900, |a, b| host[b].total_cmp(&host[a]));
    assert_eq!(found(&stream, &[SortColumn::new(&keys).descending()]), expected);
}

fn rows_can_be_gathered(device: &Device) {
    let stream = device.stream().unwrap();
    let a: Vec<u32> = numbers(33, 2000, 5).iter().map(|&x| x as u32).collect();
    let b: Vec<u64> = random(34).take(2000).collect();
    let (on_device_a, on_device_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let order = sort::by_columns(&stream, &[SortColumn::new(&on_device_a), SortColumn::new(&on_device_b)]).unwrap();
    let (mut sorted_a, mut sorted_b) = (stream.uninit::<u32>(2000).unwrap(), stream.uninit::<u64>(2000).unwrap());
    permute::gather(&stream, &on_device_a, &order, &mut sorted_a).unwrap();
    permute::gather(&stream, &on_device_b, &order, &mut sorted_b).unwrap();
    let mut expected: Vec<(u32, u64)> = a.into_iter().zip(b).collect();
    expected.sort_unstable();
    let (sorted_a, sorted_b) = (sorted_a.to_vec(&stream).unwrap(), sorted_b.to_vec(&stream).unwrap());
    assert!(sorted_a.into_iter().zip(sorted_b).eq(expected));
}

fn wrong_columns(device: &Device) {
    let stream = device.stream().unwrap();
    let (short, long) = (stream.upload(&[1u32, 2]).unwrap(), stream.upload(&[1u64, 2, 3]).unwrap());
    let bytes = stream.upload(&[0b11u8]).unwrap();
    let error = sort::by_columns(&stream, &[]).unwrap_err();
    assert!(matches!(error, Error::TooMany { asked: 0, limit: 8, .. }), "{error}");
    let error = sort::by_columns(&stream, &[SortColumn::new(&short); 9]).unwrap_err();
    assert!(matches!(error, Error::TooMany { asked: 9, limit: 8, .. }), "{error}");
    let error = sort::by_columns(&stream, &[SortColumn::new(&short), SortColumn::new(&long)]).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 2, found: 3, .. }), "{error}");
    let two = Bits::new(&bytes, 0, 2).unwrap();
    let error = sort::by_columns(&stream, &[SortColumn::new(&long).nulls_last(two)]).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. }), "{error}");
}

fn in_a_graph(device: &Device) {
    let stream = device.stream().unwrap();
    let (a, b) = (numbers(35, 3000, 10), numbers(36, 3000, 1000));
    let (on_device_a, on_device_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let columns = [SortColumn::new(&on_device_a), SortColumn::new(&on_device_b)];
    let (mut graph, order) = stream.capture(|stream| sort::by_columns(stream, &columns)).unwrap();
    // SAFETY: the columns and the result are still there.
    unsafe { graph.launch(&stream).unwrap() };
    let expected = order_by(3000, |x, y| (a[x], b[x]).cmp(&(a[y], b[y])));
    assert_eq!(order.to_vec(&stream).unwrap(), expected);
}
