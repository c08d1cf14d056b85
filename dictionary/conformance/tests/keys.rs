//! Ordered dictionaries with keys that are not numbers of 32 or 64 bits: short and long numbers, and types of one's own.

use bytemuck::{Pod, Zeroable};
use gpu_conformance::{cases, run};
use gpu_dictionary::{Key, LargeValues, Updatable};
use gpu_dictionary_conformance::{Random, all_operations, extremes, refused, saved, upserts_of};
use gpu_lsm::{GpuLsm, GpuMultimap, Options};
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::sort::{FromCode, RadixKey};
use gpu_primitives::{Device, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

fn main() -> ExitCode {
    run(cases![
        short_keys,
        short_floats,
        long_keys,
        sets_of_long_keys,
        own_keys,
        own_keys_of_three_bytes,
        own_keys_of_256_bits,
        sorted_arrays,
        upserts,
        large_values_of_own_keys,
        multimaps,
        checkpoints,
        long_keys_that_share_bits,
        files_of_other_keys,
        files_with_codes_that_no_key_has,
    ])
}

/// The key of a time series: sorted by tenant, then by time. 12 bytes, which is no power of two.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, RadixKey)]
struct Event {
    tenant: u32,
    time: i64,
}

/// An event of a few tenants and times, so that keys have common parts.
fn event(number: u64) -> Event {
    Event { tenant: number as u32 % 5, time: (number >> 8) as i64 % 1000 }
}

/// A colour: sorted by blue, then by green, then by red.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
struct Colour {
    red: u8,
    green: u8,
    blue: u8,
}

#[operator]
impl RadixKey for Colour {
    type Code = u32;
    const BITS: u32 = 24;

    fn code(key: Self) -> u32 {
        (key.blue as u32) << 16 | (key.green as u32) << 8 | key.red as u32
    }
}

#[operator]
impl FromCode for Colour {
    fn from_code(code: u32) -> Self {
        Colour { red: code as u8, green: (code >> 8) as u8, blue: (code >> 16) as u8 }
    }
}

/// A key of 27 bytes, whose code has 216 bits.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, RadixKey)]
struct Document {
    owner: u64,
    name: [u8; 15],
    page: i32,
}

/// A document of a few owners, whose names and pages have common parts.
fn document(number: u64) -> Document {
    let mut name = [b'x'; 15];
    name[(number % 15) as usize] = (number >> 8) as u8;
    Document { owner: number % 3, name, page: (number >> 16) as i32 % 50 }
}

/// A number of 128 bits, of which some keys differ only in the lower half and others only in the upper one.
fn long(number: u64) -> u128 {
    let part = u128::from(number % 3000);
    match number % 3 {
        0 => part,
        1 => part << 100,
        _ => part << 62 | part,
    }
}

/// Runs all operations on an LSM.
fn lsm<K: Key + std::fmt::Debug, V: gpu_dictionary_conformance::Value>(device: &Device, key: impl Fn(u64) -> K) {
    all_operations::<GpuLsm<K, V>>(device, key, |lsm, stream| lsm.cleanup(stream));
}

fn short_keys(device: &Device) {
    lsm::<u8, u32>(device, |number| number as u8);
    lsm::<i16, u32>(device, |number| number as i16);
}

fn short_floats(device: &Device) {
    lsm::<half::f16, u32>(device, |number| half::f16::from_bits(number as u16));
}

fn long_keys(device: &Device) {
    lsm::<u128, u64>(device, long);
    lsm::<i128, u32>(device, |number| long(number) as i128 - (1 << 80));
}

fn sets_of_long_keys(device: &Device) {
    lsm::<u128, ()>(device, long);
}

fn own_keys(device: &Device) {
    lsm::<Event, u32>(device, event);
}

fn own_keys_of_three_bytes(device: &Device) {
    let colour = |number: u64| Colour { red: number as u8, green: (number >> 8) as u8 % 4, blue: (number >> 16) as u8 };
    lsm::<Colour, u32>(device, colour);
}

fn own_keys_of_256_bits(device: &Device) {
    lsm::<Document, u32>(device, document);
    lsm::<Document, u64>(device, document);
    all_operations::<GpuSortedArray<Document, ()>>(device, document, |_, _| Ok(()));
    upserts_of::<GpuLsm<Document, u32>>(device, document);
}

fn sorted_arrays(device: &Device) {
    all_operations::<GpuSortedArray<u8, u32>>(device, |number| number as u8, |_, _| Ok(()));
    all_operations::<GpuSortedArray<u128, u32>>(device, long, |_, _| Ok(()));
    all_operations::<GpuSortedArray<Event, u32>>(device, event, |_, _| Ok(()));
}

fn upserts(device: &Device) {
    upserts_of::<GpuLsm<u128, u32>>(device, long);
    upserts_of::<GpuLsm<Event, u32>>(device, event);
    upserts_of::<GpuSortedArray<Event, u32>>(device, event);
}

fn large_values_of_own_keys(device: &Device) {
    type Large = LargeValues<GpuLsm<Event, u32>, [u32; 2]>;
    all_operations::<Large>(device, event, LargeValues::compact);
}

fn multimaps(device: &Device) {
    fn check<K: Key>(stream: &Stream, domain: &[K]) {
        let mut random = Random(3);
        let mut map = GpuMultimap::<K, u32>::new(stream, Options::new().batch_size(16)).unwrap();
        let mut model = BTreeMap::<K::Code, Vec<u32>>::new();
        for round in 0..4 {
            let keys = random.keys(domain, 100);
            let values: Vec<u32> = keys.iter().map(|_| random.below(5) as u32).collect();
            map.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
            for (key, &value) in keys.iter().zip(&values) {
                model.entry(key.code()).or_default().push(value);
            }
            let (deleted, pairs) = (&keys[..keys.len() / 8], keys.len() / 2..);
            map.delete(stream, &stream.upload(deleted).unwrap()).unwrap();
            deleted.iter().for_each(|key| _ = model.remove(&key.code()));
            let (keys, values) = (&keys[pairs.clone()], &values[pairs]);
            map.delete_pairs(stream, (&stream.upload(keys).unwrap(), &stream.upload(values).unwrap())).unwrap();
            for (key, value) in keys.iter().zip(values) {
                model.entry(key.code()).and_modify(|all| all.retain(|other| other != value));
            }
            let found = map.get(stream, &stream.upload(domain).unwrap()).unwrap().to_vec(stream).unwrap();
            let expected: Vec<_> =
                domain.iter().map(|key| model.get(&key.code()).cloned().unwrap_or_default()).collect();
            assert_eq!(found, expected, "round {round}");
        }
        let all = map.export(stream).unwrap().keys.to_vec(stream).unwrap();
        let expected = model.iter().flat_map(|(&code, values)| std::iter::repeat_n(code, values.len()));
        assert!(all.iter().map(|key| key.code()).eq(expected), "export");
    }
    let stream = device.stream().unwrap();
    check(&stream, &(0..40).map(|i| long(i * 77)).collect::<Vec<_>>());
    check(&stream, &(0..40).map(|i| event(i * 77)).collect::<Vec<_>>());
    check(&stream, &(0..40).map(|i| document(i * 77)).collect::<Vec<_>>());
    check(&stream, &(0..40).collect::<Vec<u8>>());
}

fn checkpoints(device: &Device) {
    let stream = device.stream().unwrap();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("gpu-dictionary-keys-{number}-{}", std::process::id()));
    let events: Vec<Event> = (0..100).map(|i| event(i * 77)).collect();
    let mut lsm = GpuLsm::<Event, u64>::with_batch_size(16).unwrap();
    let values: Vec<u64> = (0..100).collect();
    for part in 0..2 {
        let part = 50 * part..50 * part + 50;
        let pairs = (&stream.upload(&events[part.clone()]).unwrap(), &stream.upload(&values[part]).unwrap());
        lsm.insert(&stream, pairs).unwrap();
        lsm.checkpoint(&stream, &folder).unwrap();
    }
    let recovered = GpuLsm::<Event, u64>::recover(&stream, &folder).unwrap();
    let [before, after] = [&lsm, &recovered].map(|lsm| lsm.iter(&stream).unwrap().collect::<Vec<_>>());
    assert!(!before.is_empty() && before == after);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The directory of a level counts buckets from its first key. Keys that differ in a few bits only still have buckets of
/// their own, wherever these bits are.
fn long_keys_that_share_bits(device: &Device) {
    let stream = device.stream().unwrap();
    for shift in [0, 40, 63, 64, 65, 119] {
        let keys: Vec<u128> = (0..200).map(|i| 7 << 125 | i << shift).collect();
        let values: Vec<u32> = (0..200).collect();
        let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
        let array = GpuSortedArray::bulk_build(&stream, pairs, gpu_sorted_array::Options::new()).unwrap();
        let asked: Vec<u128> = keys.iter().flat_map(|key| [key - 1, *key, key + 1]).chain(extremes()).collect();
        let model: BTreeMap<u128, u32> = keys.iter().copied().zip(values).collect();
        let on_device = stream.upload(&asked).unwrap();
        let found = array.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
        assert!(found.iter().eq(asked.iter().map(|key| model.get(key).copied()).collect::<Vec<_>>().iter()), "{shift}");
        let above = array.successor(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
        let expected = asked.iter().map(|&key| model.range(key..).find(|&(&other, _)| other > key));
        assert!(above.into_iter().eq(expected.map(|found| found.map(|(&key, &value)| (key, value)))), "{shift}");
    }
}

fn array_of<K: Key + std::fmt::Debug>(stream: &Stream, keys: &[K]) -> GpuSortedArray<K, u32> {
    let mut array = GpuSortedArray::default();
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    Updatable::insert(&mut array, stream, (&stream.upload(keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
    array
}

fn files_of_other_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let file = saved(&stream, &array_of(&stream, &[1u8, 2]));
    let other = refused::<GpuSortedArray<i8, u32>>(&stream, &file);
    assert_eq!(other, "its keys are of type u8, but i8 was expected");
    let own = refused::<GpuSortedArray<Event, u32>>(&stream, &file);
    assert_eq!(own, "its keys are of type u8, but plain data of 12 bytes was expected");
    let file = saved(&stream, &array_of(&stream, &[event(1)]));
    let number = refused::<GpuSortedArray<u128, u32>>(&stream, &file);
    assert_eq!(number, "its keys are of type plain data of 12 bytes, but u128 was expected");
}

/// A file whose checksums are right, but which has a code of more bits than its keys.
fn files_with_codes_that_no_key_has(device: &Device) {
    let stream = device.stream().unwrap();
    // A file of 4-byte codes is made for one type, and its header replaced by that of another.
    let header = |file: &[u8]| file[..28].to_vec();
    let bytes = saved(&stream, &array_of(&stream, &[1u8, 200]));
    let numbers = saved(&stream, &array_of(&stream, &[1u32, 256]));
    let crafted = [header(&bytes), numbers[28..].to_vec()].concat();
    let what = refused::<GpuSortedArray<u8, u32>>(&stream, &crafted);
    assert_eq!(what, "the keys: some are no codes of keys of this type");
    let crafted = [header(&bytes), saved(&stream, &array_of(&stream, &[1u32, 255]))[28..].to_vec()].concat();
    let loaded = GpuSortedArray::<u8, u32>::load(&stream, &crafted[..]).unwrap();
    assert_eq!(loaded.iter(&stream).unwrap().collect::<Vec<_>>(), [(1, 0), (255, 1)]);
}
