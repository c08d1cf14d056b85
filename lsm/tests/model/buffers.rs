//! Buffers: the common suite with several sizes, and what only buffers can break.

use crate::levels::{BUFFER, Lsm, Modelled};
use gpu_conformance::{Case, is_checked, is_gpu, is_simulated};
use gpu_dictionary_conformance::{Random, cases, combining_cases, fail, ordered_cases, saved};
use gpu_lsm::{CleanupPolicy, GpuLsm, GpuMultimap, Options};
use gpu_primitives::scan::{Max, Sum};
use gpu_primitives::{CpuOptions, Device, DeviceSlice, Error, Stream};
use std::collections::BTreeMap;

/// A buffer that no test fills.
const LARGE: usize = 1 << 20;

/// Restores the buffer of the tests that follow on this thread.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        BUFFER.set(0);
    }
}

/// Runs cases of the common suite with dictionaries that have a buffer.
fn with_buffer(device: &Device, operations: usize, cases: Vec<Case>, is_meant: impl Fn(&str) -> bool) {
    let _restore = Restore;
    BUFFER.set(operations);
    for case in cases {
        // Misuse is refused before a buffer sees it.
        if case.is_for(device) && !case.is_alone && !case.name.starts_with("misused") && is_meant(case.name) {
            eprintln!("{} with a buffer of {operations}", case.name);
            (case.run)(device);
        }
    }
}

pub fn buffers_of_1(device: &Device) {
    with_buffer(device, 1, cases::<Lsm>(), |name| ["small_history", "tiny_batches"].contains(&name));
}

pub fn buffers_of_33(device: &Device) {
    // What simulates kernels takes long, and their use of a buffer does not depend on the types.
    let is_meant = |name: &str| !is_simulated(device) || ["small_history", "sets", "failed_updates"].contains(&name);
    with_buffer(device, 33, cases::<Lsm>(), is_meant);
}

pub fn upserts_with_buffers_of_33(device: &Device) {
    let is_meant =
        |name: &str| !is_simulated(device) || ["small_upserts", "upserts_among_other_updates"].contains(&name);
    with_buffer(device, 33, combining_cases::<Lsm>(), is_meant);
}

pub fn large_buffers(device: &Device) {
    let is_meant = |name: &str| {
        let few = ["tiny_batches", "copies_are_independent", "updates_are_not_recorded"];
        few.contains(&name) || !is_simulated(device) && !["a_long_history", "failed_constructions"].contains(&name)
    };
    with_buffer(device, LARGE, cases::<Lsm>(), is_meant);
}

pub fn upserts_with_large_buffers(device: &Device) {
    with_buffer(device, LARGE, combining_cases::<Lsm>(), |name| !is_checked(device) || name == "failed_upserts");
}

pub fn ordered_queries_with_large_buffers(device: &Device) {
    with_buffer(device, LARGE, ordered_cases::<Lsm>(), |_| !is_checked(device));
}

fn buffered(stream: &Stream, batch: usize, buffer: usize) -> Modelled<u32, u32> {
    Modelled::with_options(stream, Options::new().batch_size(batch).buffer(buffer))
}

fn in_buffer(both: &Modelled<u32, u32>, stream: &Stream) -> usize {
    both.dictionary.stats(stream).unwrap().buffered
}

/// Every kind of operation after every other one, without queries between: compared with a dictionary without a buffer, after
/// each number of calls, and around the words of marks.
pub fn mixed_operations(device: &Device) {
    let stream = device.stream().unwrap();
    let lens = if is_checked(device) { &[33][..] } else { &[1, 31, 32, 33, 64, 1000] };
    for &len in lens {
        let domain: Vec<u32> = (0..len as u32 / 2 + 3).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        for calls in 1..=7usize {
            let mut random = Random((1000 * len + calls) as u64);
            let mut one = GpuLsm::<u32, u64>::new(&stream, Options::new().batch_size(64)).unwrap();
            let mut other = GpuLsm::<u32, u64>::new(&stream, Options::new().batch_size(64).buffer(0)).unwrap();
            for call in 0..calls {
                let mut some = || {
                    let keys: Vec<u32> = (0..len).map(|_| domain[random.below(domain.len())]).collect();
                    stream.upload(&keys).unwrap()
                };
                let (keys, others) = (some(), some());
                let values = stream.upload(&random.values::<u64>(len)).unwrap();
                let kind = random.below(4);
                for lsm in [&mut one, &mut other] {
                    match kind {
                        0 => lsm.insert(&stream, (&keys, &values)),
                        1 => lsm.delete(&stream, &keys),
                        2 => lsm.update(&stream, (&keys, &values), others.slice(..len.min(5)).unwrap()),
                        _ => lsm.upsert(&stream, (&keys, &values), Sum),
                    }
                    .unwrap();
                }
                assert!(one.stats(&stream).unwrap().levels == 0, "call {call}: nobody has asked yet");
            }
            let all = stream.upload(&domain).unwrap();
            let found = [&one, &other].map(|lsm| lsm.lookup(&stream, &all).unwrap().to_vec(&stream).unwrap());
            assert_eq!(found[0], found[1], "{calls} calls of {len}");
            let counts = [&one, &other].map(|lsm| lsm.count(&stream, &all, &all).unwrap().to_vec(&stream).unwrap());
            assert_eq!(counts[0], counts[1], "{calls} calls of {len}");
            let pairs = [&one, &other].map(|lsm| lsm.export(&stream).unwrap().to_vec(&stream).unwrap());
            assert_eq!(pairs[0], pairs[1], "{calls} calls of {len}");
            // The combined file is the same, too: of all that it says, only the number of tombstones may differ.
            let loaded = GpuLsm::<u32, u64>::load(&stream, &saved(&stream, &one)[..]).unwrap();
            assert!(loaded.iter(&stream).unwrap().eq(pairs[0].iter().copied()));
        }
    }
}

/// Keys and values that the one kernel for both does not take: short keys, wide ones, and memory that is misaligned for words.
pub fn keys_that_are_not_words(device: &Device) {
    let stream = device.stream().unwrap();
    let mut narrow = GpuLsm::<u8, f32>::with_batch_size(16).unwrap();
    let mut wide = GpuLsm::<u128, ()>::with_batch_size(16).unwrap();
    for round in 0..5u8 {
        let keys: Vec<u8> = (0..7).map(|i| i * 3 + round).collect();
        let values: Vec<f32> = keys.iter().map(|&key| f32::from(key) + f32::from(round) * 1000.0).collect();
        narrow.insert(&stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
        let keys: Vec<u128> = keys.iter().map(|&key| u128::from(key) << 100).collect();
        wide.insert_keys(&stream, &stream.upload(&keys).unwrap()).unwrap();
    }
    assert_eq!((narrow.stats(&stream).unwrap().buffered, wide.stats(&stream).unwrap().buffered), (35, 35));
    let mut model = BTreeMap::new();
    for round in 0..5u8 {
        model.extend((0..7).map(|i| i * 3 + round).map(|key| (key, f32::from(key) + f32::from(round) * 1000.0)));
    }
    assert!(narrow.iter(&stream).unwrap().eq(model.iter().map(|(&key, &value)| (key, value))));
    assert!(wide.iter(&stream).unwrap().eq(model.keys().map(|&key| (u128::from(key) << 100, ()))));

    if is_gpu(device) {
        return;
    }
    // Memory of another library, at an odd address.
    let bytes: Vec<u8> = (0..41).collect();
    // SAFETY: within the vector, which outlives the slice; bytes may lie anywhere.
    let values = unsafe { DeviceSlice::<[u8; 4]>::from_raw_parts(device, bytes.as_ptr().add(1).cast(), 10) };
    let keys = stream.upload(&(0..10u32).collect::<Vec<_>>()).unwrap();
    let mut lsm = GpuLsm::<u32, [u8; 4]>::with_batch_size(16).unwrap();
    for _ in 0..2 {
        lsm.insert(&stream, (&keys, values)).unwrap();
    }
    let expected: Vec<[u8; 4]> = (0..10).map(|i| [1, 2, 3, 4].map(|j| 4 * i + j)).collect();
    assert!(lsm.iter(&stream).unwrap().map(|(_, value)| value).eq(expected));
}

/// The buffer is sorted when it is full, when somebody asks, or by hand; and it is left out by calls that fill it alone, and where
/// updates and queries alternate.
pub fn when_buffers_are_flushed(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = buffered(&stream, 8, 20);
    both.insert(&stream, &[1, 2, 3, 4, 5, 6, 7, 8], &[1; 8]);
    both.insert(&stream, &[1, 2, 3, 4, 5, 6, 7, 8], &[2; 8]);
    assert_eq!((in_buffer(&both, &stream), both.dictionary.stats(&stream).unwrap().levels), (16, 0));
    both.delete(&stream, &[3, 4, 5, 6]);
    assert_eq!(in_buffer(&both, &stream), 20, "full, but nothing follows");
    let stats = both.dictionary.stats(&stream).unwrap();
    assert_eq!((stats.resident, stats.tombstones, stats.stale_estimate), (20, 4, 8));
    both.update(&stream, &[9], &[9], &[]);
    let stats = both.dictionary.stats(&stream).unwrap();
    assert_eq!((stats.buffered, stats.levels, stats.batches), (1, 1, 4), "20 elements are less than 4 batches");
    let many: Vec<u32> = (100..120).collect();
    both.insert(&stream, &many, &many);
    assert_eq!(in_buffer(&both, &stream), 0, "it fills the buffer alone");
    both.insert(&stream, &[200], &[1]);
    both.check(&stream, &[1, 3, 9, 100, 200], "as ever");
    both.dictionary.flush(&stream).unwrap();

    // Several updates between queries are buffered. One update between queries is not, from the second one on.
    let mut both = buffered(&stream, 8, 1000);
    let mut found = Vec::new();
    for calls in [2, 1, 1, 1, 3, 2, 1] {
        for call in 0..calls {
            both.insert(&stream, &[call], &[calls]);
            found.push(in_buffer(&both, &stream));
        }
        both.check(&stream, &[0, 1, 2, 3], "alternating");
    }
    assert_eq!(found, [1, 2, 1, 0, 0, 0, 1, 2, 1, 2, 1]);

    // A policy sees what is in the buffer.
    let mut both = buffered(&stream, 8, 1000);
    both.dictionary.set_cleanup_policy(Some(CleanupPolicy::new().stale_share(0.5)));
    both.insert(&stream, &[1, 2, 3, 4], &[1; 4]);
    both.delete(&stream, &[1]);
    assert_eq!(in_buffer(&both, &stream), 5);
    both.delete(&stream, &[2]);
    let stats = both.dictionary.stats(&stream).unwrap();
    assert_eq!((stats.buffered, stats.resident, stats.tombstones), (0, 2, 0));
    both.check(&stream, &[1, 2, 3, 4], "cleaned up");
    both.insert(&stream, &[5], &[5]);
    both.dictionary.clear(&stream).unwrap();
    both.model.clear();
    both.check(&stream, &[5], "cleared");
    both.insert(&stream, &[6], &[6]);
    both.check(&stream, &[5, 6], "in use again");

    let refused = GpuLsm::<u32, u32>::new(&stream, Options::new().buffer(usize::MAX));
    assert!(matches!(refused, Err(Error::InvalidOption { what: "the size of the buffer", .. })));
}

/// An operation other than that of the buffer: what is there is combined first.
pub fn operations_change(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = buffered(&stream, 8, 1000);
    both.upsert(&stream, &[1, 2, 1], &[10, 20, 30], Sum);
    both.insert(&stream, &[2], &[5]);
    both.upsert(&stream, &[2, 3], &[1, 7], Sum);
    assert_eq!(in_buffer(&both, &stream), 6);
    both.upsert(&stream, &[1, 2, 3], &[100, 0, 3], Max);
    assert_eq!(in_buffer(&both, &stream), 3);
    both.delete(&stream, &[3]);
    both.upsert(&stream, &[3], &[4], Max);
    both.check(&stream, &[1, 2, 3], "combined");
    let file = saved(&stream, &both.dictionary);
    both.upsert(&stream, &[1], &[1000], Max);
    assert_eq!(GpuLsm::<u32, u32>::load(&stream, &file[..]).unwrap().len(&stream).unwrap(), 3);
    both.check(&stream, &[1, 2, 3], "combined again");
}

/// Two threads, each with a stream of its own, ask at once, while the stream of the insertions is gone: one of them flushes, for
/// both, and for a snapshot.
pub fn two_threads_flush_once(device: &Device) {
    let devices = if is_checked(device) {
        let schedule = gpu_primitives::Schedule::Random { seed: 5 };
        vec![Device::cpu_with(CpuOptions { checked: true, schedule, ..CpuOptions::default() })]
    } else {
        vec![device.clone()]
    };
    for device in devices {
        for round in 0..if is_checked(&device) { 3 } else { 30u32 } {
            let len = if is_gpu(&device) { 5000 } else { 70 };
            let keys: Vec<u32> = (0..len).map(|i| i * 3).collect();
            let mut both = {
                let stream = device.stream().unwrap();
                let mut both = buffered(&stream, 16, LARGE);
                both.insert(&stream, &keys, &keys);
                both.check(&stream, &keys, "a level");
                both.insert(&stream, &keys[..40], &[round; 40]);
                both.delete(&stream, &keys[5..9]);
                both
            };
            let snapshot = both.dictionary.snapshot();
            let asked = |which: &GpuLsm<u32, u32>| {
                let stream = device.stream().unwrap();
                let found = which.lookup(&stream, &stream.upload(&keys).unwrap()).unwrap().to_vec(&stream).unwrap();
                let ids: Vec<u128> = which.levels(&stream).unwrap().map(|(_, level)| level.id()).collect();
                (found, ids)
            };
            let answers = std::thread::scope(|scope| {
                let asked = &asked;
                let threads = [&both.dictionary, &both.dictionary, &snapshot].map(|it| scope.spawn(move || asked(it)));
                threads.map(|thread| thread.join().unwrap())
            });
            let expected: Vec<_> = keys.iter().map(|key| both.model.get(key).copied()).collect();
            for (found, ids) in &answers {
                assert_eq!((found, ids), (&expected, &answers[0].1), "round {round}");
            }
            // Both go on independently.
            let stream = device.stream().unwrap();
            both.insert(&stream, &[1], &[1]);
            both.check(&stream, &keys, "after the snapshot");
            assert_eq!(snapshot.len(&stream).unwrap() + 1, both.model.len());
        }
    }
}

/// Copies that share a buffer, and then change.
pub fn copies_with_a_buffer(device: &Device) {
    let stream = device.stream().unwrap();
    for flushed_by in ["the copy", "the original", "an update", "nobody"] {
        let mut both = buffered(&stream, 8, 1000);
        both.insert(&stream, &[1, 2, 3], &[1, 2, 3]);
        both.insert(&stream, &[3, 4], &[30, 40]);
        let mut copy = both.copy(&stream);
        assert_eq!((in_buffer(&both, &stream), in_buffer(&copy, &stream)), (5, 5));
        match flushed_by {
            "the copy" => copy.check(&stream, &[1, 4], flushed_by),
            "the original" => both.check(&stream, &[1, 4], flushed_by),
            "an update" => both.insert(&stream, &[5], &[5]),
            _ => {}
        }
        let mut third = copy.copy(&stream);
        copy.insert(&stream, &[6, 1], &[6, 6]);
        third.delete(&stream, &[2]);
        both.upsert(&stream, &[2], &[5], Sum);
        for (which, name) in [(&both, "the original"), (&copy, "the copy"), (&third, "the copy of the copy")] {
            which.check(&stream, &[1, 2, 3, 4, 5, 6], &format!("{name}, flushed by {flushed_by}"));
        }
    }
    // The copy stays when the original is gone before anybody has asked.
    let mut both = buffered(&stream, 8, 1000);
    both.insert(&stream, &[1, 2, 3], &[1, 2, 3]);
    let mut copy = both.copy(&stream);
    drop(both);
    copy.insert(&stream, &[4], &[4]);
    assert_eq!(in_buffer(&copy, &stream), 4, "nobody else has the buffer");
    copy.check(&stream, &[1, 4], "alone");
}

/// Every allocation of a flush fails, whoever flushes: the buffer stays, and nothing is lost.
pub fn failed_flushes(device: &Device) {
    let _restore = Restore;
    BUFFER.set(LARGE);
    // The dictionary of the harness is loaded, and its buffer is empty. So a call of another stream fills it.
    let fill = |both: &mut Modelled<u32, u32>, stream: &Stream| {
        let other = stream.device().stream().unwrap();
        both.insert(&other, &[1, 2, 3, 1], &[100, 200, 300, 400]);
        both.delete(&other, &[2, 9]);
        both.upsert(&other, &[5, 1], &[1, 1], Sum);
        assert_eq!(in_buffer(both, &other), 8);
    };
    type Call = fn(&mut Modelled<u32, u32>, &Stream) -> Result<(), Error>;
    let calls: [(&str, Call); 8] = [
        ("a flush", |both, stream| both.dictionary.flush(stream)),
        ("a lookup", |both, stream| {
            both.dictionary.lookup(stream, &stream.device().stream()?.upload(&[1, 2])?).map(drop)
        }),
        ("saving", |both, stream| both.dictionary.save(stream, std::io::sink())),
        ("the levels", |both, stream| both.dictionary.levels(stream).map(drop)),
        ("a cleanup", |both, stream| both.dictionary.cleanup(stream)),
        ("statistics", |both, stream| both.dictionary.stats(stream).map(drop)),
        ("an insertion of as much as the buffer holds", |both, stream| {
            let keys: Vec<u32> = (0..LARGE as u32).map(|i| i % 64).collect();
            let on_device = stream.device().stream()?.upload(&keys)?;
            both.dictionary.insert(stream, (&on_device, &on_device))?;
            both.model_insert(&keys[..64], &keys[..64]);
            Ok(())
        }),
        ("an update after a snapshot", |both, stream| {
            let snapshot = both.dictionary.snapshot();
            let one = stream.device().stream()?.upload(&[7])?;
            both.dictionary.delete(stream, &one)?;
            both.model_delete(&[7]);
            drop(snapshot);
            Ok(())
        }),
    ];
    for (what, call) in calls {
        let is_long = what.starts_with("an insertion");
        if is_checked(device) && (is_long || what != "a flush") {
            continue;
        }
        let allocations = fail::<Lsm>(device, what, (3, 1), |both, stream, _| {
            fill(both, stream);
            call(both, stream)
        });
        assert_eq!(allocations == 0, what == "statistics", "{what}");
    }
    // Appending to what is there, with more room and with the kinds of operations.
    fail::<Lsm>(device, "more of everything", (3, 1), |both, stream, _| {
        fill(both, stream);
        let other = stream.device().stream()?;
        let keys: Vec<u32> = (0..9000).map(|i| i % 64).collect();
        let (on_device, deleted) = (other.upload(&keys)?, other.upload(&[3, 4])?);
        both.dictionary.update(stream, (&on_device, &on_device), &deleted)?;
        both.model_insert(&keys, &keys);
        both.model_delete(&[3, 4]);
        assert_eq!(in_buffer(both, stream), 8 + 9002);
        Ok(())
    });
}

/// What is recorded would flush only later. A flush before the recording is enough for the buffer, and a query for the index.
pub fn flushes_are_not_recorded(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = buffered(&stream, 8, 1000);
    both.insert(&stream, &[1, 2], &[10, 20]);
    both.insert(&stream, &[2, 3], &[21, 30]);
    let recorded = stream.capture(|stream| both.dictionary.flush(stream));
    let message = recorded.unwrap_err().to_string();
    assert!(message.contains("`flush`") && message.contains("before the recording"), "{message}");
    assert_eq!(in_buffer(&both, &stream), 4);
    both.dictionary.flush(&stream).unwrap();
    stream.capture(|stream| both.dictionary.flush(stream)).unwrap();
    both.check(&stream, &[1, 2, 3, 4], "flushed");
}

/// A stream of another device.
pub fn buffers_of_another_device(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = buffered(&stream, 8, 1000);
    both.insert(&stream, &[1, 2], &[10, 20]);
    let other = Device::cpu_with(CpuOptions::default()).stream().unwrap();
    let one = other.upload(&[5]).unwrap();
    let is_refused =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
    is_refused(both.dictionary.insert(&other, (&one, &one)));
    is_refused(both.dictionary.delete(&other, &one));
    is_refused(both.dictionary.lookup(&other, &one).map(drop));
    is_refused(both.dictionary.flush(&other));
    is_refused(both.dictionary.len(&other).map(drop));
    assert_eq!(in_buffer(&both, &stream), 2);
    both.check(&stream, &[1, 2, 5], "unchanged");
}

/// A multimap keeps the order of insertions, within a call and over calls, and counts what is in the buffer.
pub fn multimaps_with_a_buffer(device: &Device) {
    let stream = device.stream().unwrap();
    for buffer in [0, 5, LARGE] {
        let mut map = GpuMultimap::<u32, u32>::new(&stream, Options::new().batch_size(4).buffer(buffer)).unwrap();
        let mut model: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for round in 0..6u32 {
            let keys: Vec<u32> = (0..3).map(|i| (i + round) % 4).collect();
            let values: Vec<u32> = (0..3).map(|i| 10 * round + i).collect();
            map.insert(&stream, (&stream.upload(&keys).unwrap(), &stream.upload(&values).unwrap())).unwrap();
            for (key, value) in keys.iter().zip(values) {
                model.entry(*key).or_default().push(value);
            }
            assert_eq!(map.len(&stream).unwrap(), 3 * (round as usize + 1));
        }
        let copy = map.snapshot();
        let asked = stream.upload(&[0, 1, 2, 3]).unwrap();
        let expected: Vec<Vec<u32>> = model.values().cloned().collect();
        assert_eq!(copy.get(&stream, &asked).unwrap().to_vec(&stream).unwrap(), expected, "buffer of {buffer}");
        map.insert(&stream, (&stream.upload(&[2]).unwrap(), &stream.upload(&[99]).unwrap())).unwrap();
        map.delete(&stream, &stream.upload(&[1]).unwrap()).unwrap();
        map.delete_pairs(&stream, (&stream.upload(&[2]).unwrap(), &stream.upload(&[99]).unwrap())).unwrap();
        model.remove(&1);
        assert_eq!(map.len(&stream).unwrap(), model.values().map(Vec::len).sum::<usize>());
        assert_eq!(copy.get(&stream, &asked).unwrap().to_vec(&stream).unwrap(), expected, "buffer of {buffer}");
    }
}
