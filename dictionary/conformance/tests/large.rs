//! Dictionaries of values of any size: the suite that all dictionaries share, and values of sizes that only they have.

use bytemuck::Pod;
use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_cuckoo::GpuCuckoo;
use gpu_dictionary::file::write_section;
use gpu_dictionary::{DictionaryOptions, LargeValues, Updatable, Upsertion, WordKey as Key};
use gpu_dictionary_conformance::{self as dictionary, Combining, Family, Random, Value, sections};
use gpu_lsm::GpuLsm;
use gpu_primitives::operator::{Record, operator};
use gpu_primitives::scan::Monoid;
use gpu_primitives::{Device, DeviceVec, Error, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::ExitCode;

/// The cases of the shared suite that are about the files of a structure: their versions and types, and that a file has its stale
/// elements, too. A file of large values is compact.
const OF_STRUCTURES: [&str; 2] = ["values_of_other_types", "round_trips"];

fn main() -> ExitCode {
    let own = cases![
        values_of_many_sizes,
        replaced_values_make_room,
        sums_of_large_values,
        large_values_are_combined,
        sets_of_indices,
        files_of_other_sizes,
        files_with_other_indices
    ];
    let of_structure = [dictionary::cases::<Large>(), dictionary::ordered_cases::<Large>()];
    let shared = [of_structure.concat(), dictionary::combining_cases::<Large>()].concat();
    let shared = shared.into_iter().filter(|case| !OF_STRUCTURES.contains(&case.name)).collect();
    run(&[&dictionary::composed(shared)[..], own].concat())
}

/// Large values of an LSM.
#[derive(Debug)]
struct Large;

impl Family for Large {
    type Options = gpu_lsm::Options;
    type Of<K: Key + Debug, V: Value> = LargeValues<GpuLsm<K, u32>, V>;

    fn options(batch: usize) -> gpu_lsm::Options {
        gpu_lsm::Options::new().batch_size(batch)
    }

    fn tidy<K: Key + Debug, V: Value>(large: &mut Self::Of<K, V>, stream: &Stream) -> Result<(), Error> {
        large.compact(stream)
    }

    fn check_structure<K: Key + Debug, V: Value>(large: &Self::Of<K, V>, stream: &Stream, when: &str) {
        let indices = large.indices().export(stream).unwrap().values.to_vec(stream).unwrap();
        let mut used = indices.clone();
        used.sort_unstable();
        used.dedup();
        let is_set = size_of::<V>() == 0;
        assert!(is_set || used.len() == indices.len(), "two keys have the same value, {when}");
    }

    dictionary::keys_in_order!(true);
}

impl Combining for Large {
    fn upsert<K: Key + Debug, V: Value>(
        large: &mut Self::Of<K, V>,
        stream: &Stream,
        pairs: (&DeviceVec<K>, &DeviceVec<V>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        large.upsert(stream, pairs, operation)
    }
}

/// Returns a value that depends on a number.
fn value<V: Pod>(number: u64) -> V {
    let mut value = V::zeroed();
    let mut random = Random(number);
    for byte in bytemuck::bytes_of_mut(&mut value) {
        *byte = random.number() as u8;
    }
    value
}

/// A random history.
fn history<D: Updatable<Key = u32, Value = u32>, V: Pod + PartialEq + Debug>(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = if is_gpu(device) { 3000 } else { 60 };
    let options = D::Options::default().expected_keys(keys).expected_operations(keys / 4);
    let mut large = LargeValues::<D, V>::new(&stream, options).unwrap();
    let mut model = BTreeMap::new();
    let (domain, mut random) = ((0..keys as u32).collect::<Vec<_>>(), Random(size_of::<V>() as u64));
    let name = format!("{}, values of {} bytes", D::NAME, size_of::<V>());
    let mut old = None;
    for round in 0..if is_checked(device) { 6 } else { 12 } {
        let (keys, deleted) = (random.keys(&domain, keys), random.keys(&domain, keys / 4));
        let values: Vec<V> = keys.iter().map(|_| value(random.number())).collect();
        let insert = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
        large.update(&stream, insert, &stream.upload(&deleted).unwrap()).unwrap();
        model.extend(keys.into_iter().zip(values));
        deleted.iter().for_each(|key| _ = model.remove(key));
        let found = large.lookup(&stream, &stream.upload(&domain).unwrap()).unwrap().to_vec(&stream).unwrap();
        assert!(
            found.iter().eq(domain.iter().map(|key| model.get(key).copied()).collect::<Vec<_>>().iter()),
            "{name}, {round}"
        );
        if round == 4 {
            old = Some((large.try_clone(&stream).unwrap(), model.clone()));
        }
        if round % 3 == 2 {
            large.compact(&stream).unwrap();
        }
    }
    let mut file = Vec::new();
    large.save(&stream, &mut file).unwrap();
    let again = LargeValues::<D, V>::load(&stream, &file[..]).unwrap();
    for (dictionary, model) in [(&large, &model), (&again, &model)].into_iter().chain(old.as_ref().map(|(a, b)| (a, b)))
    {
        let all = dictionary.export(&stream).unwrap().to_vec(&stream).unwrap();
        assert!(all.into_iter().eq(model.iter().map(|(&key, &value)| (key, value))), "{name}");
    }
}

fn values_of_many_sizes(device: &Device) {
    history::<GpuLsm<u32, u32>, [u8; 1]>(device);
    history::<GpuLsm<u32, u32>, [u64; 3]>(device);
    history::<GpuLsm<u32, u32>, [u16; 501]>(device);
    history::<GpuSortedArray<u32, u32>, [u8; 3]>(device);
    history::<GpuSortedArray<u32, u32>, [u32; 64]>(device);
    history::<GpuCuckoo<u32, u32>, [u8; 13]>(device);
    history::<GpuCuckoo<u32, u32>, [u64; 512]>(device);
}

/// The memory of values that were replaced is used again.
fn replaced_values_make_room(device: &Device) {
    let stream = device.stream().unwrap();
    // The memory of a buffer counts, too.
    let options = Large::options(16).buffer(0);
    let mut large = LargeValues::<GpuLsm<u32, u32>, [u32; 8]>::new(&stream, options).unwrap();
    let keys: Vec<u32> = (0..16).collect();
    for round in 0..100u32 {
        let values: Vec<[u32; 8]> = keys.iter().map(|key| [100 * round + key; 8]).collect();
        large.insert(&stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
    }
    let stats = large.stats(&stream).unwrap();
    assert!(stats.bytes < 16 * 32 * 8, "{stats:?}");
    let found = large.lookup(&stream, &stream.upload(&[3]).unwrap()).unwrap().to_vec(&stream).unwrap();
    assert_eq!(found, [Some([9903; 8])]);
}

/// Numbers and their sum.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable, Record)]
struct Totals {
    count: u64,
    sum: u64,
    most: u64,
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Union;

#[operator]
impl Monoid<Totals> for Union {
    fn identity(&self) -> Totals {
        Totals { count: 0, sum: 0, most: 0 }
    }

    fn combine(&self, a: Totals, b: Totals) -> Totals {
        Totals { count: a.count + b.count, sum: a.sum + b.sum, most: a.most.max(b.most) }
    }
}

fn sums_of_large_values(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = (0..100).collect();
    let values: Vec<Totals> = (0..100).map(|i| Totals { count: 1, sum: i, most: i * i % 17 }).collect();
    let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
    let array =
        LargeValues::<GpuSortedArray<u32, u32>, Totals>::bulk_build(&stream, pairs, Default::default()).unwrap();
    let (low, high) = (stream.upload(&[0, 50, 90, 7]).unwrap(), stream.upload(&[9, 59, 200, 6]).unwrap());
    let found = array.reduce(&stream, &low, &high, Union).unwrap().to_vec(&stream).unwrap();
    let expected = [0..10, 50..60, 90..100, 7..7]
        .map(|range| values[range].iter().fold(Union.identity(), |a, &b| Union.combine(a, b)));
    assert_eq!(found, expected);
}

/// Upserts of values of 24 bytes, with lengths around those of tiles, onto what is there.
fn large_values_are_combined(device: &Device) {
    fn check<D: Updatable<Key = u32, Value = u32>>(device: &Device) {
        let stream = &device.stream().unwrap();
        let mut random = Random(4);
        let mut large = LargeValues::<D, Totals>::new(stream, D::Options::default()).unwrap();
        let mut model = BTreeMap::<u32, Totals>::new();
        for len in if is_checked(device) { vec![0, 1, 33] } else { vec![0, 1, 31, 32, 33, 255, 256, 257, 1281] } {
            let keys: Vec<u32> = (0..len).map(|_| random.below(len / 2 + 1) as u32).collect();
            let values: Vec<Totals> =
                keys.iter().map(|_| Totals { count: 1, sum: random.number() >> 32, most: random.number() }).collect();
            large.upsert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap()), Union).unwrap();
            for (&key, &value) in keys.iter().zip(&values) {
                model.entry(key).and_modify(|old| *old = Union.combine(*old, value)).or_insert(value);
            }
            assert!(large.iter(stream).unwrap().eq(model.clone()), "{}, {len} pairs", D::NAME);
            let gone: Vec<u32> = keys.iter().copied().step_by(3).collect();
            large.delete(stream, &stream.upload(&gone).unwrap()).unwrap();
            gone.iter().for_each(|key| _ = model.remove(key));
        }
    }
    check::<GpuLsm<u32, u32>>(device);
    check::<GpuSortedArray<u32, u32>>(device);
    check::<GpuCuckoo<u32, u32>>(device);
}

fn sets_of_indices(device: &Device) {
    let stream = device.stream().unwrap();
    let upload = |keys: &[u32]| stream.upload(keys).unwrap();
    let mut set = LargeValues::<GpuLsm<u32, u32>, ()>::build_set(&stream, &upload(&[3, 1]), Large::options(4)).unwrap();
    set.insert_keys(&stream, &upload(&[2, 3])).unwrap();
    assert_eq!(set.contains(&stream, &upload(&[1, 2, 4])).unwrap().to_vec(&stream).unwrap(), [1, 1, 0]);
    assert_eq!(set.len(&stream).unwrap(), 3);
}

/// A file says which size of values it has, also where one byte does not hold it.
fn files_of_other_sizes(device: &Device) {
    let stream = device.stream().unwrap();
    let pairs = (&stream.upload(&[1, 2]).unwrap(), &stream.upload(&[[1u8; 300], [2; 300]]).unwrap());
    let large = LargeValues::<GpuLsm<u32, u32>, [u8; 300]>::bulk_build(&stream, pairs, Large::options(4)).unwrap();
    let mut file = Vec::new();
    large.save(&stream, &mut file).unwrap();
    let refused = LargeValues::<GpuLsm<u32, u32>, [u8; 44]>::load(&stream, &file[..]).map(drop).unwrap_err();
    assert!(refused.to_string().contains("its values have 300 bytes, but 44 were expected"), "{refused}");
    let refused = GpuLsm::<u32, u32>::load(&stream, &file[..]).map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("it holds a dictionary of large values, but an LSM was expected"),
        "{refused}"
    );
}

/// Queries read the values at the indices of a file, so a file with others is refused, although its checksums are right.
fn files_with_other_indices(device: &Device) {
    type Pairs = LargeValues<GpuSortedArray<u32, u32>, [u8; 5]>;
    let stream = device.stream().unwrap();
    let pairs = (&stream.upload(&[1, 2, 3]).unwrap(), &stream.upload(&[[1u8; 5], [2; 5], [3; 5]]).unwrap());
    let large = Pairs::bulk_build(&stream, pairs, Default::default()).unwrap();
    let mut file = Vec::new();
    large.save(&stream, &mut file).unwrap();
    // The headers of the values and of the array, the keys, the indices, the values.
    let parts = sections(&file).unwrap();
    let with_indices = |indices: [u32; 3]| {
        let mut parts = parts.clone();
        parts[3] = bytemuck::cast_slice(&indices).to_vec();
        let mut file = Vec::new();
        parts.iter().for_each(|part| write_section(&mut file, part).unwrap());
        file
    };
    assert_eq!(with_indices([0, 1, 2]), file);
    for indices in [[0, 1, 3], [0, 1, u32::MAX], [0, 2, 1], [0, 0, 1], [1, 2, 3]] {
        let refused = Pairs::load(&stream, &with_indices(indices)[..]).map(drop).unwrap_err();
        assert!(refused.to_string().contains("the indices of the values"), "{indices:?}: {refused}");
    }
}
