//! The dictionaries have the same methods of their own: one type's name can replace another's, without the traits.

use gpu_conformance::{cases, run};
use gpu_cuckoo::{GpuCuckoo, PlainCuckoo};
use gpu_dictionary::LargeValues;
use gpu_lsm::{GpuLsm, GpuMultimap};
use gpu_primitives::scan::Sum;
use gpu_primitives::{Device, DeviceVec, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        lsm,
        sorted_array,
        cuckoo,
        plain_cuckoo,
        large_values,
        sets_of_an_lsm,
        sets_of_a_sorted_array,
        sets_of_a_cuckoo_table,
        sets_of_plain_keys,
        multimap,
    ])
}

fn upload(stream: &Stream, numbers: &[u32]) -> DeviceVec<u32> {
    stream.upload(numbers).unwrap()
}

/// Calls what all types have. A multimap has no `update` and no `upsert`.
macro_rules! calls {
    ($stream:ident, $map:ident, $type:ty, $options:expr) => {
        let $stream = &$stream.stream().unwrap();
        let mut $map = <$type>::new($stream, $options).unwrap();
        assert!($map.is_empty($stream).unwrap());
        $map.insert($stream, (&upload($stream, &[5, 1, 3]), &upload($stream, &[50, 10, 30]))).unwrap();
        $map.delete($stream, &upload($stream, &[3, 4])).unwrap();
        assert_eq!($map.contains($stream, &upload($stream, &[1, 3])).unwrap().to_vec($stream).unwrap(), [1, 0]);
        assert_eq!($map.len($stream).unwrap(), 2);
        assert_eq!($map.export($stream).unwrap().to_vec($stream).unwrap(), [(1, 10), (5, 50)]);
        assert!($map.iter($stream).unwrap().eq([(1, 10), (5, 50)]));
        assert!($map.stats($stream).unwrap().bytes > 0);
        let mut copy = $map.try_clone($stream).unwrap();
        copy.clear($stream).unwrap();
        assert!(copy.is_empty($stream).unwrap());
        let mut file = Vec::new();
        $map.save($stream, &mut file).unwrap();
        assert_eq!(<$type>::load($stream, &file[..]).unwrap().len($stream).unwrap(), 2);
        let pairs = (&upload($stream, &[1]), &upload($stream, &[2]));
        assert_eq!(<$type>::bulk_build($stream, pairs, $map.options()).unwrap().len($stream).unwrap(), 1);
    };
}

/// Calls what all dictionaries with one value per key have.
macro_rules! calls_of_dictionaries {
    ($device:ident, $type:ty, $options:expr) => {
        let stream = $device;
        calls!(stream, map, $type, $options);
        map.update(stream, (&upload(stream, &[1, 7]), &upload(stream, &[11, 70])), &upload(stream, &[5])).unwrap();
        map.upsert(stream, (&upload(stream, &[7, 8, 7]), &upload(stream, &[1, 2, 3])), Sum).unwrap();
        let found = map.lookup(stream, &upload(stream, &[1, 5, 7, 8])).unwrap().to_vec(stream).unwrap();
        assert_eq!(found, [Some(11), None, Some(74), Some(2)]);
    };
}

macro_rules! calls_of_sets {
    ($device:ident, $type:ty, $options:expr) => {
        let stream = &$device.stream().unwrap();
        let mut set = <$type>::build_set(stream, &upload(stream, &[3, 1, 3]), $options).unwrap();
        set.insert_keys(stream, &upload(stream, &[])).unwrap();
        set.insert_keys(stream, &upload(stream, &[7, 1, 7])).unwrap();
        assert_eq!(set.contains(stream, &upload(stream, &[1, 2, 3, 7])).unwrap().to_vec(stream).unwrap(), [1, 0, 1, 1]);
        assert_eq!(set.len(stream).unwrap(), 3);
        assert!(set.iter(stream).unwrap().map(|(key, ())| key).eq([1, 3, 7]));
    };
}

fn lsm(device: &Device) {
    calls_of_dictionaries!(device, GpuLsm::<u32, u32>, gpu_lsm::Options::new());
}

fn sorted_array(device: &Device) {
    calls_of_dictionaries!(device, GpuSortedArray::<u32, u32>, gpu_sorted_array::Options::new());
}

fn cuckoo(device: &Device) {
    calls_of_dictionaries!(device, GpuCuckoo::<u32, u32>, gpu_cuckoo::Options::new());
}

fn plain_cuckoo(device: &Device) {
    calls_of_dictionaries!(device, PlainCuckoo::<u32, u32>, gpu_cuckoo::Options::new());
}

fn large_values(device: &Device) {
    calls_of_dictionaries!(device, LargeValues::<GpuLsm<u32, u32>, u32>, gpu_lsm::Options::new());
}

fn multimap(device: &Device) {
    let stream = device;
    calls!(stream, map, GpuMultimap::<u32, u32>, gpu_lsm::Options::new());
    map.insert(stream, (&upload(stream, &[1]), &upload(stream, &[11]))).unwrap();
    assert_eq!(map.get(stream, &upload(stream, &[1])).unwrap().to_vec(stream).unwrap(), [[10, 11]]);
}

fn sets_of_an_lsm(device: &Device) {
    calls_of_sets!(device, GpuLsm::<u32, ()>, gpu_lsm::Options::new());
}

fn sets_of_a_sorted_array(device: &Device) {
    calls_of_sets!(device, GpuSortedArray::<u32, ()>, gpu_sorted_array::Options::new());
}

fn sets_of_a_cuckoo_table(device: &Device) {
    calls_of_sets!(device, GpuCuckoo::<u32, ()>, gpu_cuckoo::Options::new());
}

fn sets_of_plain_keys(device: &Device) {
    calls_of_sets!(device, PlainCuckoo::<u32, ()>, gpu_cuckoo::Options::new());
}
