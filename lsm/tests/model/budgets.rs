//! Budgets of device memory: the common suite with levels in host memory, and what only a budget can break.

use crate::levels::{BUDGET, BUFFER, Lsm, Modelled};
use gpu_conformance::{Case, is_checked, is_gpu};
use gpu_dictionary_conformance::{OwnFolder, Random, cases, combining_cases, fail, ordered_cases, saved};
use gpu_lsm::{GpuLsm, GpuMultimap, Options, Stats};
use gpu_primitives::scan::Sum;
use gpu_primitives::{CpuOptions, Device, Error, Stream};
use std::collections::BTreeMap;

/// Restores the options of the tests that follow on this thread.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        BUFFER.set(0);
        BUDGET.set(None);
    }
}

/// Runs cases of the common suite with dictionaries that have a budget and a buffer.
fn with_budget(device: &Device, budget: usize, buffer: usize, cases: Vec<Case>, names: &[&str]) {
    let _restore = Restore;
    BUFFER.set(buffer);
    BUDGET.set(Some(budget));
    for name in names {
        let case = cases.iter().find(|case| case.name == *name).unwrap_or_else(|| panic!("there is no case `{name}`"));
        eprintln!("{name} with {budget} bytes and a buffer of {buffer}");
        (case.run)(device);
    }
}

pub fn budgets_of_nothing(device: &Device) {
    let names: &[&str] = if is_checked(device) {
        &["small_history"]
    } else {
        &[
            "small_history",
            "batches_of_several_tiles",
            "signed_and_float_keys",
            "wide_keys_and_values",
            "sets",
            "pairs_of_operations_on_two_streams",
            "failed_updates",
            "failed_queries",
            "updates_are_not_recorded",
            "copies_are_queried_while_updates_go_on",
        ]
    };
    with_budget(device, 0, 0, cases::<Lsm>(), names);
}

pub fn budgets_of_little(device: &Device) {
    let names: &[&str] = if is_checked(device) {
        &["small_history"]
    } else {
        &[
            "small_history",
            "batches_of_several_tiles",
            "wide_keys_and_values",
            "sets",
            "failed_updates",
            "failed_constructions",
        ]
    };
    with_budget(device, 600, 33, cases::<Lsm>(), names);
    if !is_checked(device) {
        with_budget(device, 1 << 30, 33, cases::<Lsm>(), &["small_history"]);
        with_budget(
            device,
            600,
            0,
            cases::<Lsm>(),
            &["copies_are_queried_while_updates_go_on", "threads_and_streams_at_random"],
        );
    }
}

pub fn upserts_with_budgets(device: &Device) {
    let names: &[&str] = if is_checked(device) { &["small_upserts"] } else { &["small_upserts", "failed_upserts"] };
    with_budget(device, 0, 0, combining_cases::<Lsm>(), names);
    if !is_checked(device) {
        with_budget(device, 600, 33, combining_cases::<Lsm>(), &["upserts_of_few_keys"]);
    }
}

pub fn ordered_queries_with_budgets(device: &Device) {
    let names = ["intervals_of_different_lengths", "failed_ordered_queries", "intervals_are_reduced"];
    let names = if is_checked(device) { &names[..0] } else { &names[..] };
    with_budget(device, 0, 0, ordered_cases::<Lsm>(), names);
    with_budget(device, 600, 33, ordered_cases::<Lsm>(), names);
}

fn budgeted(stream: &Stream, batch: usize, bytes: usize) -> Modelled<u32, u32> {
    Modelled::with_options(stream, Options::new().batch_size(batch).buffer(0).device_memory(bytes))
}

fn stats(both: &Modelled<u32, u32>, stream: &Stream) -> Stats {
    both.dictionary.stats(stream).unwrap()
}

/// Where levels go when there is exactly enough, one byte less, and when new ones take the room of old ones.
pub fn levels_that_just_fit(device: &Device) {
    let stream = device.stream().unwrap();
    let keys = |batch: u32| (100 * batch..100 * batch + 10).collect::<Vec<u32>>();
    for (budget, expected) in [
        // Levels of 10, 20 and 40 pairs have 80, 160 and 320 bytes.
        (560, [0, 0, 0, 0, 0, 0, 0]),
        (559, [0, 0, 0, 0, 0, 0, 320]),
        (320, [0, 0, 0, 0, 320, 320, 320]),
        (319, [0, 0, 0, 320, 320, 320, 320]),
        (160, [0, 0, 160, 320, 320, 320, 480]),
        (80, [0, 160, 160, 320, 320, 480, 480]),
        (79, [80, 160, 240, 320, 400, 480, 560]),
        (0, [80, 160, 240, 320, 400, 480, 560]),
    ] {
        if is_checked(device) && ![560, 319].contains(&budget) {
            continue;
        }
        let mut both = budgeted(&stream, 10, budget);
        let mut found = Vec::new();
        for batch in 0..7u32 {
            both.insert(&stream, &keys(batch), &keys(batch));
            found.push(stats(&both, &stream).host_bytes);
        }
        assert_eq!(found, expected, "a budget of {budget} bytes");
        both.check(&stream, &[0, 9, 300, 605, 700], &format!("a budget of {budget} bytes"));
        // A cleanup knows only in the end how much there is.
        both.delete(&stream, &(0..400).collect::<Vec<u32>>());
        both.dictionary.cleanup(&stream).unwrap();
        assert_eq!(stats(&both, &stream).host_bytes, if budget >= 240 { 0 } else { 240 }, "a budget of {budget} bytes");
        both.check(&stream, &[0, 9, 300, 605, 700], "cleaned up");
    }
    // All at once.
    let all = stream.upload(&(0..100u32).collect::<Vec<_>>()).unwrap();
    for (budget, expected) in [(800, 0), (799, 800)] {
        let options = Options::new().device_memory(budget);
        let lsm = GpuLsm::bulk_build(&stream, (&all, &all), options).unwrap();
        assert_eq!(lsm.stats(&stream).unwrap().host_bytes, expected);
        assert_eq!(lsm.options(), options);
        assert_eq!(lsm.len(&stream).unwrap(), 100);
    }
}

/// A budget that changes moves levels both ways. Contents, ids and files stay.
pub fn budgets_that_change(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::with_options(&stream, Options::new().batch_size(8).buffer(33));
    for round in 0..7u32 {
        let keys: Vec<u32> = (0..8).map(|i| (5 * i + 3 * round) % 40).collect();
        both.update(&stream, &keys, &[round; 8], &[round]);
    }
    both.upsert(&stream, &[1, 2, 50], &[1000; 3], Sum);
    let keys: Vec<u32> = (0..60).collect();
    both.check(&stream, &keys, "without a budget");
    let ids = |both: &Modelled<u32, u32>| -> Vec<u128> {
        both.dictionary.levels(&stream).unwrap().map(|(_, level)| level.id()).collect()
    };
    let (before, file) = (ids(&both), saved(&stream, &both.dictionary));
    let total: usize = both.dictionary.levels(&stream).unwrap().map(|(_, level)| 8 * level.len()).sum();
    let budgets = [Some(0), Some(100), None, Some(total), Some(total - 1), Some(0), None];
    for budget in budgets.into_iter().take(if is_checked(device) { 3 } else { 7 }) {
        both.dictionary.set_device_memory(&stream, budget).unwrap();
        let host = stats(&both, &stream).host_bytes;
        let all = budget.is_none_or(|budget| budget >= total);
        assert_eq!((host == 0, host == total), (all, budget == Some(0)), "{budget:?}: {host} of {total}");
        both.check(&stream, &keys, &format!("{budget:?}"));
        assert_eq!(ids(&both), before, "{budget:?}");
        assert!(saved(&stream, &both.dictionary) == file, "{budget:?}");
    }
    if is_checked(device) {
        return;
    }
    for (from, to) in [(None, Some(0)), (Some(0), None), (Some(0), Some(200))] {
        let allocations = fail::<Lsm>(device, "a change of the budget", (7, 1), |both, stream, _| {
            both.dictionary.set_device_memory(&stream.device().stream()?, from)?;
            let now = |lsm: &GpuLsm<u32, u32>| (lsm.stats(stream).unwrap().host_bytes, lsm.options());
            let before = now(&both.dictionary);
            let changed = both.dictionary.set_device_memory(stream, to);
            assert_eq!(now(&both.dictionary) == before, changed.is_err());
            changed
        });
        assert!(allocations >= 2, "keys and values of some levels: {allocations}");
    }
}

/// Snapshots, copies and views keep levels that are moved or merged away, and all memory is freed in the end.
pub fn snapshots_over_moves(device: &Device) {
    let devices = if is_gpu(device) {
        vec![device.clone()]
    } else {
        let schedule = gpu_primitives::Schedule::Random { seed: 3 };
        let checked = is_checked(device);
        vec![
            Device::cpu_with(CpuOptions { checked, ..CpuOptions::default() }),
            Device::cpu_with(CpuOptions { checked, schedule, ..CpuOptions::default() }),
        ]
    };
    for device in devices {
        let before = device.host_memory_used();
        {
            let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
            let mut both = budgeted(&stream, 8, 100);
            let mut snapshots = Vec::new();
            for round in 0..if is_checked(&device) { 5 } else { 9u32 } {
                let keys: Vec<u32> = (0..8).map(|i| (7 * i + round) % 50).collect();
                both.update(&stream, &keys, &[round; 8], &[round + 3]);
                let at = if round % 2 == 0 { &stream } else { &other };
                snapshots.push((both.dictionary.snapshot(), both.model.clone()));
                // Work on both streams, on levels that the next update drops.
                let asked = at.upload(&(0..50).collect::<Vec<u32>>()).unwrap();
                let found = both.dictionary.lookup(at, &asked).unwrap();
                if round == 4 {
                    both.dictionary.cleanup(&other).unwrap();
                }
                let expected: Vec<_> = (0..50u32).map(|key| both.model.get(&key).copied()).collect();
                both.insert(&other, &[round], &[round]);
                assert_eq!(found.to_vec(at).unwrap(), expected, "round {round}");
            }
            for (round, (snapshot, model)) in snapshots.into_iter().enumerate() {
                let pairs: Vec<(u32, u32)> = snapshot.iter(&other).unwrap().collect();
                assert!(pairs.iter().copied().eq(model), "round {round}");
            }
            assert!(is_gpu(&device) || device.host_memory_used() > before);
            both.check(&stream, &[0, 1, 2, 3, 49, 50], "in the end");
        }
        // Other tests share a GPU.
        assert!(is_gpu(&device) || device.host_memory_used() == before, "all host memory is freed");
    }
}

/// Folders and files are read to where a budget has the levels, whatever they were written with.
pub fn recovery_into_a_budget(device: &Device) {
    let stream = device.stream().unwrap();
    let folder = OwnFolder::new();
    let keys: Vec<u32> = (0..70).collect();
    let mut both = budgeted(&stream, 8, 100);
    for round in 0..7u32 {
        let keys: Vec<u32> = (0..8).map(|i| 9 * i + round).collect();
        both.update(&stream, &keys, &keys, &[round * 2]);
        both.dictionary.checkpoint(&stream, folder.path()).unwrap();
    }
    assert!(stats(&both, &stream).host_bytes > 0);
    let file = saved(&stream, &both.dictionary);
    for budget in if is_checked(device) { vec![100] } else { vec![0, 100, 1 << 20] } {
        let options = Options::new().batch_size(8).device_memory(budget);
        let recovered = GpuLsm::<u32, u32>::recover_or_new(&stream, folder.path(), options).unwrap();
        assert_eq!(recovered.options(), options);
        let loaded = GpuLsm::<u32, u32>::load_with(&stream, &file[..], options).unwrap();
        for lsm in [recovered, loaded] {
            let Stats { host_bytes, resident, .. } = lsm.stats(&stream).unwrap();
            assert_eq!(
                (host_bytes == 0, host_bytes == 8 * resident),
                (budget > 100, budget == 0),
                "{budget}: {host_bytes}"
            );
            assert!(saved(&stream, &lsm) == file);
            both.dictionary = lsm;
            both.check(&stream, &keys, &format!("recovered into {budget} bytes"));
        }
    }
    // Without options there is no budget, and with the next update it is obeyed.
    let mut plain = GpuLsm::<u32, u32>::recover(&stream, folder.path()).unwrap();
    assert_eq!(plain.stats(&stream).unwrap().host_bytes, 0);
    gpu_dictionary::Durable::adopt(&mut plain, &Options::new().buffer(0).device_memory(0));
    assert_eq!(plain.stats(&stream).unwrap().host_bytes, 0);
    both.dictionary = plain;
    both.insert(&stream, &[1], &[1]);
    let Stats { host_bytes, resident, .. } = stats(&both, &stream);
    assert_eq!(host_bytes, 8 * resident);
    both.check(&stream, &keys, "adopted");
    let invalid = GpuLsm::<u32, u32>::load_with(&stream, &file[..], Options::new().batch_size(0));
    assert!(matches!(invalid, Err(Error::InvalidOption { .. })));
}

/// Large batches of lookups are sorted, and pass filters. Present keys, absent ones, deleted ones, keys that are in several levels, equal
/// ones; answers come in the order of the keys.
pub fn large_lookups_in_host_memory(device: &Device) {
    let stream = device.stream().unwrap();
    let (batch, asked) = if is_checked(device) { (40, 150) } else { (3000, 20_000) };
    for budget in [0, 8 * batch * 2] {
        let mut random = Random(budget as u64);
        let mut lsm =
            GpuLsm::<i64, u32>::new(&stream, Options::new().batch_size(batch).buffer(0).device_memory(budget)).unwrap();
        let mut model = BTreeMap::new();
        let domain = 4 * batch;
        let some = |random: &mut Random, len: usize| -> Vec<i64> {
            (0..len).map(|_| random.below(domain) as i64 - domain as i64 / 2).collect()
        };
        for round in 0..7u32 {
            let (keys, deleted) = (some(&mut random, batch / 2), some(&mut random, batch / 8));
            let values: Vec<u32> = keys.iter().map(|_| random.number() as u32).collect();
            let pairs = (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap());
            if round == 5 {
                lsm.upsert(&stream, pairs, Sum).unwrap();
                for (key, value) in keys.iter().zip(values) {
                    let present: &mut u32 = model.entry(*key).or_default();
                    *present = present.wrapping_add(value);
                }
            } else {
                lsm.update(&stream, pairs, &stream.upload(&deleted).unwrap()).unwrap();
                model.extend(keys.iter().copied().zip(values));
                model.retain(|key, _| !deleted.contains(key));
            }
            let mut keys = some(&mut random, asked);
            keys.extend([i64::MIN, i64::MAX, 0, -1]);
            let on_device = stream.upload(&keys).unwrap();
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).copied()).collect();
            let found = lsm.lookup(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
            assert!(found == expected, "{budget} bytes, round {round}");
            let is_there: Vec<u8> = expected.iter().map(|found| u8::from(found.is_some())).collect();
            assert_eq!(lsm.contains(&stream, &on_device).unwrap().to_vec(&stream).unwrap(), is_there);
            // None of them.
            let absent = stream.upload(&(0..asked as i64).map(|i| i + 1_000_000).collect::<Vec<_>>()).unwrap();
            assert_eq!(lsm.contains(&stream, &absent).unwrap().to_vec(&stream).unwrap(), vec![0; asked]);
            if is_checked(device) && round == 2 {
                break;
            }
        }
        assert!(lsm.stats(&stream).unwrap().host_bytes > 0);
        if budget == 0 {
            // What has been built can be recorded: then keys are not sorted.
            let keys = some(&mut random, asked);
            let on_device = stream.upload(&keys).unwrap();
            let (mut graph, found) = stream.capture(|stream| lsm.contains(stream, &on_device)).unwrap();
            // SAFETY: everything that was recorded is still there.
            unsafe { graph.launch(&stream).unwrap() };
            let expected: Vec<u8> = keys.iter().map(|key| u8::from(model.contains_key(key))).collect();
            assert_eq!(found.to_vec(&stream).unwrap(), expected);
        }
    }
}

/// Large lookups in sets, in dictionaries with wide keys, with floats, and with values of 8 bytes.
pub fn large_lookups_of_other_types(device: &Device) {
    let stream = device.stream().unwrap();
    let len = if is_checked(device) { 60 } else { 5000u32 };
    let options = Options::new().batch_size(len as usize / 2).device_memory(0);
    let numbers: Vec<u32> = (0..len).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let expected = |i: usize| i < len as usize / 2;

    let wide: Vec<u128> = numbers.iter().map(|&n| u128::from(n) << 77 | u128::from(n)).collect();
    let all = stream.upload(&wide).unwrap();
    let set = GpuLsm::build_set(&stream, all.slice(..len as usize / 2).unwrap(), options).unwrap();
    set.contains(&stream, all.slice(..5).unwrap()).unwrap();
    let before = set.stats(&stream).unwrap().bytes;
    let found = set.contains(&stream, &all).unwrap().to_vec(&stream).unwrap();
    let filter = set.stats(&stream).unwrap().bytes - before;
    assert!(filter >= len as usize / 2, "a large lookup builds a filter of a byte per key: {filter}");
    assert!(found.iter().enumerate().all(|(i, &found)| (found == 1) == expected(i)));

    let floats: Vec<f32> = numbers.iter().map(|&n| n as i32 as f32).collect();
    let all = stream.upload(&floats).unwrap();
    let values: Vec<[u32; 2]> = numbers.iter().map(|&n| [n, !n]).collect();
    let half = stream.upload(&values[..len as usize / 2]).unwrap();
    let lsm = GpuLsm::bulk_build(&stream, (all.slice(..len as usize / 2).unwrap(), &half), options).unwrap();
    let model: BTreeMap<u32, [u32; 2]> =
        floats.iter().map(|f| f.to_bits()).zip(values).take(len as usize / 2).collect();
    let found = lsm.lookup(&stream, &all).unwrap().to_vec(&stream).unwrap();
    assert!(floats.iter().zip(found).all(|(key, found)| found == model.get(&key.to_bits()).copied()));
}

/// Every allocation of a large lookup fails: it may be answered without, and nothing is lost.
pub fn failed_large_lookups(device: &Device) {
    if is_checked(device) {
        return; // the host does the same on other devices
    }
    let allocations = fail::<Lsm>(device, "a large lookup", (3, 100), |both, stream, input| {
        let other = stream.device().stream()?;
        both.dictionary.set_device_memory(&other, Some(0))?;
        let found = both.dictionary.lookup(stream, &input.keys_on_device)?.to_vec(&other)?;
        assert!(input.keys.iter().zip(found).all(|(key, found)| found == both.model.get(key).copied()));
        Ok(())
    });
    assert!(is_gpu(device) || allocations > 10, "sorts and filters need memory: {allocations}");
    let _restore = Restore;
    BUDGET.set(Some(300));
    fail::<Lsm>(device, "an insertion that moves a level", (3, 40), |both, stream, input| {
        both.dictionary.insert(stream, (&input.keys_on_device, &input.values_on_device))?;
        both.model_insert(&input.keys, &input.values);
        Ok(())
    });
}

/// The multimap has the levels of the LSM.
pub fn multimaps_with_a_budget(device: &Device) {
    let stream = device.stream().unwrap();
    let options = [(0, 0), (100, 5), (0, 1 << 20)];
    for (budget, buffer) in options.into_iter().take(if is_checked(device) { 1 } else { 3 }) {
        let options = Options::new().batch_size(4).buffer(buffer).device_memory(budget);
        let mut map = GpuMultimap::<u32, u32>::new(&stream, options).unwrap();
        let mut model: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for round in 0..7u32 {
            let keys: Vec<u32> = (0..3).map(|i| (i + round) % 4).collect();
            let values: Vec<u32> = (0..3).map(|i| 10 * round + i).collect();
            map.insert(&stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
            for (key, value) in keys.iter().zip(values) {
                model.entry(*key).or_default().push(value);
            }
        }
        let asked = stream.upload(&[0, 1, 2, 3]).unwrap();
        let all = |map: &GpuMultimap<u32, u32>| map.get(&stream, &asked).unwrap().to_vec(&stream).unwrap();
        let copy = map.snapshot();
        assert_eq!(all(&map), model.values().cloned().collect::<Vec<_>>());
        assert!(map.stats(&stream).unwrap().host_bytes > 0, "{budget}");
        map.delete(&stream, &stream.upload(&[1]).unwrap()).unwrap();
        map.delete_pairs(&stream, (&stream.upload(&[2]).unwrap(), &stream.upload(&[model[&2][0]]).unwrap())).unwrap();
        assert_eq!(all(&copy), model.values().cloned().collect::<Vec<_>>());
        model.get_mut(&1).unwrap().clear();
        let first = model[&2][0];
        model.get_mut(&2).unwrap().retain(|&value| value != first);
        assert_eq!(all(&map), model.values().cloned().collect::<Vec<_>>());
        let pairs: Vec<_> =
            model.iter().flat_map(|(&key, values)| values.iter().map(move |&value| (key, value))).collect();
        assert!(map.iter(&stream).unwrap().eq(pairs));
        let folder = OwnFolder::new();
        map.checkpoint(&stream, folder.path()).unwrap();
        let again = GpuMultimap::<u32, u32>::recover_or_new(&stream, folder.path(), options).unwrap();
        assert_eq!((all(&again), again.options()), (all(&map), map.options()));
        let mut file = Vec::new();
        map.save(&stream, &mut file).unwrap();
        let mut again = GpuMultimap::<u32, u32>::load_with(&stream, &file[..], options).unwrap();
        assert!(again.options() == options && again.stats(&stream).unwrap().host_bytes > 0);
        again.set_device_memory(&stream, None).unwrap();
        assert_eq!((all(&again), again.stats(&stream).unwrap().host_bytes), (all(&map), 0));
    }
}
