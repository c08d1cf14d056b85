//! Files of all dictionaries with random damage: a load gives a consistent dictionary, or says that the file is invalid. It
//! never panics, hangs, or allocates what the file does not hold.
//!
//! `GPU_PRIMITIVES_FUZZ=SECONDS` runs each test for this time on each device. A failure prints its seed, and
//! `GPU_PRIMITIVES_SEED=SEED` runs that one alone.

use gpu_cuckoo::{GpuCuckoo, Options, PlainCuckoo};
use gpu_dictionary::{Dictionary, DictionaryOptions, Key, LargeValues, Ordered, Updatable};
use gpu_dictionary_conformance::{
    Mutator, Questions, Random, Round, Value, check_order, extremes, fuzz_seeds, saved, upload_values,
};
use gpu_lsm::{GpuLsm, GpuMultimap};
use gpu_primitives::sort::{FromCode as _, RadixKey};
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use gpu_sorted_array::GpuSortedArray;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The CPU, the checked CPU and a GPU, if there is one. Each with the number of rounds that it does in a second or so. The
/// CPUs have little memory, so that allocations of what a file only claims are noticed.
fn devices() -> Vec<(Device, u64)> {
    let small = CpuOptions { memory_limit: Some(64 << 20), ..CpuOptions::default() };
    let checked = CpuOptions { checked: true, ..small.clone() };
    let cpus = [(Device::cpu_with(small), 200), (Device::cpu_with(checked), 30)];
    cpus.into_iter().chain(Device::cuda(0).ok().map(|gpu| (gpu, 200))).collect()
}

/// Damages files and loads them. `load` checks what it has loaded.
fn fuzz(valid: impl Fn(&Stream) -> Vec<Vec<u8>>, load: impl Fn(&Stream, &[u8], &mut Random) -> Result<(), Error>) {
    for (device, few) in devices() {
        let stream = device.stream().unwrap();
        let files = valid(&stream);
        load(&stream, files.last().unwrap(), &mut Random(0)).unwrap();
        let mutator = Mutator::new(files);
        let (mut loaded, mut refused) = (0, 0);
        for seed in fuzz_seeds(few) {
            let _round = Round(seed);
            let random = &mut Random(seed);
            let file = mutator.file(random);
            let started = Instant::now();
            match load(&stream, &file, random) {
                Ok(()) => loaded += 1,
                Err(Error::InvalidFile { what, at }) => {
                    assert!(!what.is_empty() && at <= file.len() as u64, "{what}: byte {at} of {}", file.len());
                    refused += 1;
                }
                Err(error) => panic!("{}: {error}", device.kind()),
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        }
        assert!(loaded + refused < 100 || loaded > 0 && refused > 0, "{loaded} files were loaded, {refused} refused");
        println!("{}: {loaded} files were loaded, {refused} refused", device.kind());
    }
}

/// Returns files of a dictionary: empty, with few and many batches, after deletions, and of few keys.
fn files_of<D: Updatable<Key: Debug, Value: Value>>(stream: &Stream, key: impl Fn(u64) -> D::Key) -> Vec<Vec<u8>> {
    let mut dictionary = D::new(stream, D::Options::default().expected_operations(4)).unwrap();
    let mut files = vec![saved(stream, &dictionary)];
    let mut random = Random(1);
    for (inserted, deleted) in [(0..3, 0..0), (3..40, 0..5), (20..45, 30..35), (50..51, 0..0), (0..0, 0..60)] {
        let keys: Vec<D::Key> = inserted.map(&key).collect();
        let values = upload_values(stream, &random.values::<D::Value>(keys.len()));
        let deleted: Vec<D::Key> = deleted.map(&key).collect();
        let insert = (&stream.upload(&keys).unwrap(), &values);
        dictionary.update(stream, insert, &stream.upload(&deleted).unwrap()).unwrap();
        files.push(saved(stream, &dictionary));
    }
    files
}

/// Checks that the answers of a dictionary agree with its own contents, and that it can be updated, saved and loaded.
/// `order` makes the queries of ordered dictionaries.
fn check<D: Updatable<Key: Debug, Value: Value>>(
    stream: &Stream,
    mut dictionary: D,
    random: &mut Random,
    order: impl Fn(&D, &BTreeMap<Code<D>, D::Value>, &[D::Key]),
) {
    let upload = |keys: &[D::Key]| stream.upload(keys).unwrap();
    let contents = |dictionary: &D| {
        let all = dictionary.export(stream).unwrap().to_vec(stream).unwrap();
        assert!(all.is_sorted_by(|a, b| a.0.code() < b.0.code()), "a key occurs twice");
        all.into_iter().map(|(key, value)| (key.code(), value)).collect::<BTreeMap<_, _>>()
    };
    let mut model = contents(&dictionary);
    let present: Vec<D::Key> = model.keys().take(60).map(|&code| D::Key::from_code(code)).collect();
    let asked: Vec<D::Key> = present.iter().copied().chain(extremes()).collect();
    for step in 0..3 {
        let found = dictionary.lookup(stream, &upload(&asked)).unwrap().to_vec(stream).unwrap();
        let expected: Vec<_> = asked.iter().map(|key| model.get(&key.code()).copied()).collect();
        assert!(found == expected, "step {step}");
        let found = dictionary.contains(stream, &upload(&asked)).unwrap().to_vec(stream).unwrap();
        assert!(
            found.iter().zip(&expected).all(|(&found, expected)| (found != 0) == expected.is_some()),
            "step {step}"
        );
        assert_eq!(dictionary.len(stream).unwrap(), model.len(), "step {step}");
        assert!(contents(&dictionary) == model, "step {step}");
        match step {
            0 => {
                order(&dictionary, &model, &asked);
                let (keys, deleted) = (random.keys(&asked, 9), random.keys(&asked, 5));
                let values = random.values(keys.len());
                let insert = (&upload(&keys), &upload_values(stream, &values));
                dictionary.update(stream, insert, &upload(&deleted)).unwrap();
                model.extend(keys.iter().map(|key| key.code()).zip(values));
                for key in deleted {
                    model.remove(&key.code());
                }
            }
            _ => dictionary = D::load(stream, &saved(stream, &dictionary)[..]).unwrap(),
        }
    }
}

type Code<D> = <<D as Dictionary>::Key as RadixKey>::Code;

/// Fuzzes the files of a dictionary that keeps its keys in order.
fn fuzz_ordered<D: Updatable<Key: Debug, Value: Value> + Ordered>(key: impl Fn(u64) -> D::Key) {
    fuzz(
        |stream| files_of::<D>(stream, &key),
        |stream, file, random| {
            let order = |dictionary: &D, model: &BTreeMap<_, _>, asked: &[D::Key]| {
                let few = &asked[..asked.len().min(8)];
                let high: Vec<D::Key> = few.iter().rev().copied().collect();
                check_order(dictionary, model, stream, &Questions { keys: few, low: few, high: &high }, "loaded");
            };
            check(stream, D::load(stream, file)?, random, order);
            Ok(())
        },
    );
}

#[test]
fn lsm_files() {
    fuzz_ordered::<GpuLsm<u32, u32>>(|i| i as u32 * 3);
}

#[test]
fn lsm_files_of_sets() {
    fuzz_ordered::<GpuLsm<i64, ()>>(|i| (i as i64 - 20) << 40);
}

#[test]
fn sorted_array_files() {
    fuzz_ordered::<GpuSortedArray<f64, u64>>(|i| i as f64 / 3.0 - 5.0);
}

#[test]
fn files_of_large_values() {
    fuzz_ordered::<LargeValues<GpuLsm<u32, u32>, [u32; 2]>>(|i| i as u32 * 3);
}

#[test]
fn cuckoo_files() {
    type Table = GpuCuckoo<u32, u64>;
    fuzz(
        |stream| files_of::<Table>(stream, |i| i as u32 * 3),
        |stream, file, random| {
            check(stream, Table::load(stream, file)?, random, |_, _, _| ());
            Ok(())
        },
    );
}

#[test]
fn files_of_plain_keys() {
    type Table = PlainCuckoo<[u16; 3], [u8; 5]>;
    let key = |i: u64| [i as u16, 7, i as u16 / 3];
    let valid = |stream: &Stream| {
        let file = |table: &Table| {
            let mut file = Vec::new();
            table.save(stream, &mut file).unwrap();
            file
        };
        let mut table = Table::new(stream, Options::new()).unwrap();
        let mut files = vec![file(&table)];
        let keys: Vec<_> = (0..30).map(key).collect();
        let values: Vec<_> = (0..30).map(|i| [i; 5]).collect();
        table.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
        files.push(file(&table));
        table.delete(stream, &stream.upload(&keys[3..]).unwrap()).unwrap();
        files.push(file(&table));
        files
    };
    fuzz(valid, |stream, file, random| {
        let mut table = Table::load(stream, file)?;
        let contents = |table: &Table| {
            let (keys, values) = table.pairs(stream).unwrap();
            let (keys, values) = (keys.to_vec(stream).unwrap(), values.to_vec(stream).unwrap());
            assert_eq!(keys.len(), table.len(stream).unwrap());
            let model: BTreeMap<_, _> = keys.iter().copied().zip(values).collect();
            assert_eq!(model.len(), keys.len(), "a key occurs twice");
            model
        };
        let mut model = contents(&table);
        let asked: Vec<_> = model.keys().copied().chain((0..4).map(|i| key(25 + i))).collect();
        for step in 0..3 {
            let found = table.lookup(stream, &stream.upload(&asked).unwrap()).unwrap().to_vec(stream).unwrap();
            let expected: Vec<_> = asked.iter().map(|key| model.get(key).copied()).collect();
            assert!(found == expected && contents(&table) == model, "step {step}");
            if step == 0 {
                let (keys, deleted) = (random.keys(&asked, 6), random.keys(&asked, 3));
                let values = vec![[9; 5]; keys.len()];
                table.insert(stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
                table.delete(stream, &stream.upload(&deleted).unwrap()).unwrap();
                model.extend(keys.into_iter().zip(values));
                deleted.iter().for_each(|key| _ = model.remove(key));
            } else {
                let mut file = Vec::new();
                table.save(stream, &mut file).unwrap();
                table = Table::load(stream, &file[..]).unwrap();
            }
        }
        Ok(())
    });
}

#[test]
fn multimap_files() {
    type Map = GpuMultimap<u32, u32>;
    let file = |stream: &Stream, map: &Map| {
        let mut file = Vec::new();
        map.save(stream, &mut file).unwrap();
        file
    };
    let valid = |stream: &Stream| {
        let mut map = Map::new(stream, gpu_lsm::Options::new().batch_size(4)).unwrap();
        let mut files = vec![file(stream, &map)];
        for keys in [&[1, 2, 1, 3][..], &[1, 1, 5, 9, 9, 2, 3, 4, 1], &[1, 70]] {
            let keys = stream.upload(keys).unwrap();
            map.insert(stream, (&keys, &keys)).unwrap();
            files.push(file(stream, &map));
        }
        map.delete(stream, &stream.upload(&[70, 1]).unwrap()).unwrap();
        files.push(file(stream, &map));
        files
    };
    fuzz(valid, |stream, bytes, random| {
        let mut map = Map::load(stream, bytes)?;
        let contents = |map: &Map| {
            let all = map.export(stream).unwrap().to_vec(stream).unwrap();
            assert!(all.len() == map.len(stream).unwrap() && all.is_sorted_by_key(|pair| pair.0));
            let mut model = BTreeMap::<u32, Vec<u32>>::new();
            all.into_iter().for_each(|(key, value)| model.entry(key).or_default().push(value));
            model
        };
        let mut model = contents(&map);
        let asked: Vec<u32> = model.keys().copied().chain([0, 4, u32::MAX]).collect();
        for step in 0..3 {
            let found = map.get(stream, &stream.upload(&asked).unwrap()).unwrap().to_vec(stream).unwrap();
            let expected: Vec<_> = asked.iter().map(|key| model.get(key).cloned().unwrap_or_default()).collect();
            assert!(found == expected && contents(&map) == model, "step {step}");
            if step == 0 {
                let (keys, deleted) = (random.keys(&asked, 6), random.keys(&asked, 6));
                let on_device = stream.upload(&keys).unwrap();
                map.insert(stream, (&on_device, &on_device)).unwrap();
                map.delete(stream, &stream.upload(&deleted).unwrap()).unwrap();
                keys.into_iter().for_each(|key| model.entry(key).or_default().push(key));
                deleted.iter().for_each(|key| _ = model.remove(key));
            } else {
                map = Map::load(stream, &file(stream, &map)[..]).unwrap();
            }
        }
        Ok(())
    });
}
