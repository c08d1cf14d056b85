//! The multimap compared with a `BTreeMap` of vectors, on every device.

use gpu_conformance::{cases, is_checked, is_gpu, run};
use gpu_dictionary::file::write_section;
use gpu_dictionary_conformance::{Random, Value, sections, upload_values};
use gpu_lsm::{GpuLsm, GpuMultimap, Key, Options};
use gpu_primitives::{Device, Error, Stream};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(cases![
        small_multimaps,
        histories,
        other_types,
        hot_keys,
        room_that_does_not_suffice,
        snapshots,
        files,
        emptied_levels_are_saved,
        files_that_count_emptied_levels,
        bad_input_changes_nothing,
        failed_allocations,
        failed_queries,
        sums_of_intervals,
        keys_without_values,
    ])
}

/// A multimap and its model.
struct Both<K: Key, V: Value> {
    map: GpuMultimap<K, V>,
    model: BTreeMap<K::Code, Vec<V>>,
}

impl<K: Key + Debug, V: Value> Both<K, V> {
    fn new(stream: &Stream, batch: usize) -> Self {
        Self { map: GpuMultimap::new(stream, Options::new().batch_size(batch)).unwrap(), model: BTreeMap::new() }
    }

    fn insert(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        self.map.insert(stream, (&stream.upload(keys).unwrap(), &upload_values(stream, values))).unwrap();
        for (key, &value) in keys.iter().zip(values) {
            self.model.entry(key.code()).or_default().push(value);
        }
    }

    fn delete(&mut self, stream: &Stream, keys: &[K]) {
        self.map.delete(stream, &stream.upload(keys).unwrap()).unwrap();
        keys.iter().for_each(|key| _ = self.model.remove(&key.code()));
    }

    fn delete_pairs(&mut self, stream: &Stream, keys: &[K], values: &[V]) {
        self.map.delete_pairs(stream, (&stream.upload(keys).unwrap(), &upload_values(stream, values))).unwrap();
        for (key, value) in keys.iter().zip(values) {
            if let Some(all) = self.model.get_mut(&key.code()) {
                all.retain(|other| other != value);
            }
        }
        self.model.retain(|_, values| !values.is_empty());
    }

    /// Replaces the multimap by one that is loaded from its file.
    fn reload(&mut self, stream: &Stream) {
        let mut file = Vec::new();
        self.map.save(stream, &mut file).unwrap();
        self.map = GpuMultimap::load(stream, &file[..]).unwrap();
    }

    fn check(&self, stream: &Stream, asked: &[K], when: &str) {
        let of = |key: &K| self.model.get(&key.code()).cloned().unwrap_or_default();
        let expected: Vec<Vec<V>> = asked.iter().map(of).collect();
        let counts: Vec<u64> = expected.iter().map(|values| values.len() as u64).collect();
        let on_device = stream.upload(asked).unwrap();
        assert_eq!(self.map.count_values(stream, &on_device).unwrap().to_vec(stream).unwrap(), counts, "count, {when}");
        assert_eq!(self.map.get(stream, &on_device).unwrap().to_vec(stream).unwrap(), expected, "get, {when}");
        let len = self.model.values().map(Vec::len).sum::<usize>();
        let found = (self.map.len(stream).unwrap(), self.map.is_empty(stream).unwrap());
        assert_eq!(found, (len, len == 0), "len, {when}");
        let all = self.map.export(stream).unwrap().to_vec(stream).unwrap();
        let pairs = self.model.iter().flat_map(|(&code, values)| values.iter().map(move |&value| (code, value)));
        assert!(all.into_iter().map(|(key, value)| (key.code(), value)).eq(pairs), "export, {when}");
        let found: Vec<u8> = counts.iter().map(|&count| u8::from(count > 0)).collect();
        assert_eq!(self.map.contains(stream, &on_device).unwrap().to_vec(stream).unwrap(), found, "contains, {when}");
        self.check_order(stream, asked, when);
    }

    /// Compares queries in key order. Some of the intervals end before they begin.
    fn check_order(&self, stream: &Stream, asked: &[K], when: &str) {
        let (low, high) = (asked, asked.iter().rev().copied().collect::<Vec<K>>());
        let pairs_in = |low: &K, high: &K| -> Vec<(K::Code, V)> {
            let inside = |code: &K::Code| (low.code()..=high.code()).contains(code);
            let keys = self.model.iter().filter(|(code, _)| inside(code));
            keys.flat_map(|(&code, values)| values.iter().map(move |&value| (code, value))).collect()
        };
        let expected: Vec<_> = low.iter().zip(&high).map(|(low, high)| pairs_in(low, high)).collect();
        let (low, high) = (stream.upload(low).unwrap(), stream.upload(&high).unwrap());
        let ranges = self.map.range(stream, &low, &high).unwrap().to_vec(stream).unwrap();
        let coded = |range: Vec<(K, V)>| range.into_iter().map(|(key, value)| (key.code(), value)).collect::<Vec<_>>();
        assert_eq!(ranges.into_iter().map(coded).collect::<Vec<_>>(), expected, "range, {when}");
        let counts: Vec<u64> = expected.iter().map(|range| range.len() as u64).collect();
        assert_eq!(self.map.count(stream, &low, &high).unwrap().to_vec(stream).unwrap(), counts, "count, {when}");

        let latest = |(&code, values): (&K::Code, &Vec<V>)| (code, values[values.len() - 1]);
        let above = |key: &K| self.model.range((Bound::Excluded(key.code()), Bound::Unbounded)).next().map(latest);
        let below = |key: &K| self.model.range(..key.code()).next_back().map(latest);
        let coded = |found: Option<(K, V)>| found.map(|(key, value)| (key.code(), value));
        let found = self.map.successor(stream, &low).unwrap().to_vec(stream).unwrap();
        assert!(found.into_iter().map(coded).eq(asked.iter().map(above)), "successor, {when}");
        let found = self.map.predecessor(stream, &low).unwrap().to_vec(stream).unwrap();
        assert!(found.into_iter().map(coded).eq(asked.iter().map(below)), "predecessor, {when}");
    }
}

/// One key and many keys, around the edges of warps.
fn small_multimaps(device: &Device) {
    let stream = device.stream().unwrap();
    for len in if is_checked(device) { vec![0, 1, 33] } else { vec![0, 1, 2, 31, 32, 33, 64, 255, 257] } {
        for different in [1, 3, 1000] {
            let keys: Vec<u32> = (0..len).map(|i| i * 7 % different).collect();
            let values: Vec<u32> = (0..len).map(|i| i / 2).collect();
            let mut both = Both::new(&stream, 8);
            both.insert(&stream, &keys, &values);
            both.insert(&stream, &keys, &values);
            let asked: Vec<u32> = keys.iter().copied().chain([5000, 0]).collect();
            both.check(&stream, &asked, &format!("{len} pairs of {different} keys"));
            both.delete_pairs(&stream, &keys[..keys.len() / 3], &values[..keys.len() / 3]);
            both.check(&stream, &asked, &format!("{len} pairs of {different} keys, some deleted"));
            both.delete(&stream, &asked[..asked.len() / 2]);
            both.check(&stream, &asked, &format!("{len} pairs of {different} keys, more deleted"));
        }
    }
}

fn history<K: Key + Debug, V: Value>(device: &Device, domain: &[K], seed: u64) {
    let stream = device.stream().unwrap();
    let mut random = Random(seed);
    let (batch, most) = if is_gpu(device) { (1000, 5000) } else { (16, 60) };
    let mut both = Both::<K, V>::new(&stream, batch);
    let mut last = Vec::new();
    // Few different values, so that pairs occur more than once.
    let values = |random: &mut Random, len: usize| (0..len).map(|_| V::of(random.number() % 5)).collect::<Vec<_>>();
    for round in 0..if is_checked(device) { 12 } else { 40 } {
        let keys = random.keys(domain, most);
        let with = values(&mut random, keys.len());
        match random.below(8) {
            0 => both.delete(&stream, &keys[..keys.len() / 4]),
            1 => both.delete_pairs(&stream, &keys, &with),
            2 if random.below(6) == 0 => {
                both.map.clear(&stream).unwrap();
                both.model.clear();
            }
            // All or most of it, or what came last: levels become empty.
            2 => both.delete(&stream, &domain[..domain.len() - random.below(2)]),
            3 => both.delete(&stream, &last),
            _ => {
                both.insert(&stream, &keys, &with);
                last = keys;
            }
        }
        if random.below(3) == 0 {
            both.reload(&stream);
        }
        both.check(&stream, &random.keys(domain, 100), &format!("seed {seed}, round {round}"));
    }
}

fn histories(device: &Device) {
    for seed in 0..if is_checked(device) { 1 } else { 3 } {
        history::<u32, u32>(device, &(0..40).collect::<Vec<u32>>(), seed);
    }
}

fn other_types(device: &Device) {
    history::<i64, u64>(device, &(-20..20).map(|i| i << 40).collect::<Vec<i64>>(), 11);
    history::<f32, f64>(device, &(-20..20).map(|i| i as f32 / 3.0).collect::<Vec<f32>>(), 12);
    history::<u64, ()>(device, &(0..30).collect::<Vec<u64>>(), 13);
}

/// One key has nearly all values.
fn hot_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 500 } else { 20_000 };
    let mut both = Both::<u32, u32>::new(&stream, len / 3);
    for round in 0..3 {
        let keys: Vec<u32> = (0..len as u32).map(|i| if i % 100 == 0 { i } else { 7 }).collect();
        both.insert(&stream, &keys, &keys.iter().map(|key| key * 2 + round).collect::<Vec<_>>());
    }
    both.check(&stream, &[7, 0, 100, 7], "hot");
    both.delete_pairs(&stream, &[7], &[15]);
    both.check(&stream, &[7, 0, 100, 7], "without a third of it");
}

/// What does not fit is left out, and the offsets say how much there is.
fn room_that_does_not_suffice(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1, 3, 1, 2, 2], &[10, 20, 11, 30, 12, 21, 22]);
    let asked = stream.upload(&[2, 1, 9, 3]).unwrap();
    let all = [20, 21, 22, 10, 11, 12, 30];
    for room in 0..10 {
        let mut offsets = stream.uninit::<u64>(5).unwrap();
        let mut values = stream.upload(&vec![99u32; room]).unwrap();
        both.map.get_into(&stream, &asked, &mut offsets, &mut values).unwrap();
        assert_eq!(offsets.to_vec(&stream).unwrap(), [0, 3, 6, 6, 7]);
        let expected: Vec<u32> = all.into_iter().chain([99; 3]).take(room).collect();
        assert_eq!(values.to_vec(&stream).unwrap(), expected, "room for {room}");
    }
}

fn snapshots(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1], &[10, 20, 11]);
    let before = both.map.snapshot();
    both.delete(&stream, &[1]);
    both.insert(&stream, &[2], &[21]);
    both.check(&stream, &[1, 2], "after the snapshot");
    let asked = stream.upload(&[1, 2]).unwrap();
    assert_eq!(before.get(&stream, &asked).unwrap().to_vec(&stream).unwrap(), [vec![10, 11], vec![20]]);
}

fn files(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1, 5, 1, 2], &[10, 20, 10, 50, 12, 21]);
    let mut file = Vec::new();
    both.map.save(&stream, &mut file).unwrap();
    both.map = GpuMultimap::load(&stream, &file[..]).unwrap();
    both.check(&stream, &[1, 2, 5], "loaded");
    both.insert(&stream, &[1], &[13]);
    both.check(&stream, &[1, 2, 5], "loaded and updated");
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        let loaded = GpuMultimap::<u32, u32>::load(&stream, &damaged[..]).map(drop);
        assert!(matches!(loaded, Err(Error::InvalidFile { .. })), "byte {at}: {loaded:?}");
    }
    let other = GpuLsm::<u32, u32>::load(&stream, &file[..]).map(drop).unwrap_err();
    assert!(other.to_string().contains("it holds a multimap, but an LSM was expected"), "{other}");
}

/// A deletion empties one of the levels, or all. What is left is saved and loaded, and updated as before.
fn emptied_levels_are_saved(device: &Device) {
    let stream = device.stream().unwrap();
    let (old, new): ([u32; 8], [u32; 4]) =
        (core::array::from_fn(|i| i as u32), core::array::from_fn(|i| 20 + i as u32));
    for (levels, deleted) in [
        (vec![&old[..]], &old[..]),
        (vec![&old, &new], &old),
        (vec![&old, &new], &new),
        (vec![&old, &new], &[&old[..], &new].concat()),
    ] {
        for by_pair in [false, true] {
            let mut both = Both::<u32, u32>::new(&stream, 4);
            for keys in &levels {
                both.insert(&stream, keys, keys);
            }
            match by_pair {
                true => both.delete_pairs(&stream, deleted, deleted),
                false => both.delete(&stream, deleted),
            }
            for round in 0..if is_checked(device) { 2 } else { 6 } {
                let when = format!("{} levels, {} deleted, round {round}", levels.len(), deleted.len());
                both.reload(&stream);
                both.check(&stream, &[0, 7, 20, 23, 30], &when);
                both.insert(&stream, &[30, 7, 20], &[round, round, round]);
                both.check(&stream, &[0, 7, 20, 23, 30], &when);
            }
        }
    }
}

/// Earlier versions counted the batches of levels that a deletion had emptied. Their files are loaded; those of an LSM, where
/// no deletion empties a level, are not.
fn files_that_count_emptied_levels(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1, 5], &[10, 20, 11, 50]);
    let mut file = Vec::new();
    both.map.save(&stream, &mut file).unwrap();
    let parts = sections(&file).unwrap();
    // After the common header of 16 bytes, the number of levels and the batch size; in the file of the levels, which follows
    // the header of the multimap.
    let with_batches = |batches: u64| {
        let mut parts = parts.clone();
        assert_eq!(parts[1][25..33], 1u64.to_le_bytes());
        parts[1][25..33].copy_from_slice(&batches.to_le_bytes());
        let mut file = Vec::new();
        parts.iter().for_each(|part| write_section(&mut file, part).unwrap());
        file
    };
    for batches in [0b1, 0b11, 0b101, u64::from(u32::MAX)] {
        both.map = GpuMultimap::load(&stream, &with_batches(batches)[..]).unwrap();
        both.check(&stream, &[1, 2, 5, 7], "with emptied levels");
        let mut again = Vec::new();
        both.map.save(&stream, &mut again).unwrap();
        assert_eq!(again, file, "it is saved without them");
    }
    // The level itself must be counted, and there are only so many slots.
    let header = file.len() - parts[1..].iter().map(|part| part.len() + 4).sum::<usize>();
    for batches in [0, 0b10, 1 << 32 | 1] {
        let loaded = GpuMultimap::<u32, u32>::load(&stream, &with_batches(batches)[..]).map(drop);
        assert!(matches!(loaded, Err(Error::InvalidFile { .. })), "{batches}: {loaded:?}");
    }
    let lsm = GpuLsm::<u32, u32>::load(&stream, &with_batches(0b11)[header..]).map(drop);
    assert!(matches!(lsm, Err(Error::InvalidFile { .. })), "{lsm:?}");
}

fn bad_input_changes_nothing(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1], &[10, 20, 11]);
    let pairs = (&stream.upload(&[1, 2]).unwrap(), &stream.upload(&[10]).unwrap());
    assert!(matches!(both.map.insert(&stream, pairs), Err(Error::LengthMismatch { .. })));
    assert!(matches!(both.map.delete_pairs(&stream, pairs), Err(Error::LengthMismatch { .. })));
    let mut offsets = stream.uninit::<u64>(2).unwrap();
    let mut values = stream.uninit::<u32>(2).unwrap();
    let asked = both.map.get_into(&stream, pairs.0, &mut offsets, &mut values);
    assert!(matches!(asked, Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    both.check(&stream, &[1, 2], "after bad input");
}

/// Each allocation of a deletion fails once.
fn failed_allocations(device: &Device) {
    let home = device.stream().unwrap();
    for by_pair in [false, true] {
        for successes in 0.. {
            let mut both = Both::<u32, u32>::new(&home, 4);
            both.insert(&home, &[1, 2, 1, 5, 1, 2, 8], &[10, 20, 10, 50, 12, 21, 80]);
            let (keys, values) = (home.upload(&[1, 8]).unwrap(), home.upload(&[10, 80]).unwrap());
            home.synchronize().unwrap();
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let deleted = match by_pair {
                true => both.map.delete_pairs(&stream, (&keys, &values)),
                false => both.map.delete(&stream, &keys),
            };
            stream.fail_allocation_after(None);
            match deleted {
                Ok(()) => {
                    assert!(successes > 0);
                    match by_pair {
                        true => both.delete_pairs(&home, &[1, 8], &[10, 80]),
                        false => both.delete(&home, &[1, 8]),
                    }
                    both.check(&home, &[1, 2, 5, 8], "after the deletion");
                    break;
                }
                Err(error) => {
                    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
                    both.check(&home, &[1, 2, 5, 8], "after a failed deletion");
                }
            }
        }
    }
}

/// Each allocation of a query fails once. The next query has the right answer.
fn failed_queries(device: &Device) {
    let home = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&home, 4);
    both.insert(&home, &[1, 2, 1, 5, 1, 2, 8], &[10, 20, 10, 50, 12, 21, 80]);
    let (low, high) = (home.upload(&[1, 3]).unwrap(), home.upload(&[2, 9]).unwrap());
    home.synchronize().unwrap();
    for ranges in [false, true] {
        let mut failures = 0;
        for successes in 0.. {
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let result = match ranges {
                true => both.map.range(&stream, &low, &high).map(drop),
                false => both.map.count(&stream, &low, &high).map(drop),
            };
            stream.fail_allocation_after(None);
            match result {
                Ok(()) => break,
                Err(error) => assert!(matches!(error, Error::OutOfMemory { .. }), "{error}"),
            }
            failures += 1;
            both.check(&home, &[1, 2, 5, 8], "after a failed query");
        }
        assert!(failures > 0);
    }
    let error = both.map.range(&home, &low, low.slice(..1).unwrap()).map(drop).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 2, found: 1, .. }), "{error}");
    let error = both.map.count(&home, &low, low.slice(..1).unwrap()).map(drop).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 2, found: 1, .. }), "{error}");
}

fn sums_of_intervals(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Both::<u32, u32>::new(&stream, 4);
    both.insert(&stream, &[1, 2, 1, 5, 1, 2, 8], &[10, 20, 10, 50, 12, 21, 80]);
    let (low, high) = (stream.upload(&[1, 3, 6]).unwrap(), stream.upload(&[2, 9, 7]).unwrap());
    let sums = both.map.reduce(&stream, &low, &high, gpu_primitives::scan::Sum).unwrap();
    assert_eq!(sums.to_vec(&stream).unwrap(), [73, 130, 0]);
}

fn keys_without_values(device: &Device) {
    let stream = device.stream().unwrap();
    let upload = |keys: &[u32]| stream.upload(keys).unwrap();
    let mut bag = GpuMultimap::build_set(&stream, &upload(&[3, 1, 3]), Options::new()).unwrap();
    bag.insert_keys(&stream, &upload(&[1, 7])).unwrap();
    bag.insert_keys(&stream, &upload(&[])).unwrap();
    let asked = upload(&[1, 2, 3, 7]);
    assert_eq!(bag.contains(&stream, &asked).unwrap().to_vec(&stream).unwrap(), [1, 0, 1, 1]);
    assert_eq!(bag.count_values(&stream, &asked).unwrap().to_vec(&stream).unwrap(), [2, 0, 2, 1]);
    assert!(bag.iter(&stream).unwrap().map(|(key, ())| key).eq([1, 1, 3, 3, 7]));
    assert_eq!(bag.try_clone(&stream).unwrap().stats(&stream).unwrap().resident, 5);
}
