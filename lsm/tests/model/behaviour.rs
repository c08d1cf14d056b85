//! What the dictionary promises beside its answers.

use crate::model::{Modelled, Random, extremes};
use gpu_conformance::is_checked;
use gpu_conformance::kernels::SumValues;
use gpu_lsm::{CleanupPolicy, GpuLsm, suggest_batch_size};
use gpu_primitives::{Device, Error};

pub fn extreme_keys(device: &Device) {
    let stream = device.stream().unwrap();
    let all = extremes::<u32>();
    let mut both = Modelled::new(2);
    both.check_intervals(&stream, &[0], &[u32::MAX], "empty");
    both.check(&stream, &all, "empty");
    both.insert(&stream, &all, &[1u32, 2, 3, 4]);
    // From everywhere to everywhere, half of it backwards.
    let low: Vec<u32> = all.iter().flat_map(|&low| [low; 4]).collect();
    let high = all.repeat(4);
    both.check_intervals(&stream, &low, &high, "all");
    both.delete(&stream, &[0, u32::MAX, 7]);
    both.check_intervals(&stream, &low, &high, "without the first and the last");
    both.check_all(&stream, &mut Random(1), &all, "without the first and the last");
    both.delete(&stream, &all);
    both.check_all(&stream, &mut Random(2), &all, "all deleted");
    assert!(both.lsm.is_empty(&stream).unwrap());
    both.lsm.cleanup(&stream).unwrap();
    assert_eq!((both.lsm.stats().batches, both.lsm.stats().resident), (0, 0));
    both.check_all(&stream, &mut Random(3), &all, "cleaned up");
}

pub fn a_policy_asks_for_cleanups(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = (0..8).collect();
    let mut both = Modelled::new(8);
    both.lsm.set_cleanup_policy(Some(CleanupPolicy { stale_share: 0.5, max_levels: 2 }));
    for round in 0..3u32 {
        both.insert(&stream, &keys, &[round; 8]);
        both.check(&stream, &keys, "as many levels as allowed");
    }
    assert_eq!((both.lsm.stats().levels, both.lsm.stats().resident), (2, 24), "not asked for");
    for round in 3..7u32 {
        both.insert(&stream, &keys, &[round; 8]);
    }
    assert_eq!((both.lsm.stats().levels, both.lsm.stats().resident), (1, 8), "the seventh batch makes three levels");
    both.check(&stream, &keys, "one level");

    both.delete(&stream, &keys[..2]);
    assert_eq!(both.lsm.stats().tombstones, 2, "4 of 10 are stale");
    both.delete(&stream, &keys[2..4]);
    assert_eq!((both.lsm.stats().tombstones, both.lsm.stats().resident), (0, 4), "8 of 12 would be stale");
    both.check(&stream, &keys, "cleaned up");

    both.lsm.set_cleanup_policy(None);
    for _ in 0..7 {
        both.delete(&stream, &keys);
    }
    assert_eq!((both.lsm.stats().levels, both.lsm.stats().tombstones), (1, 56), "nobody asks");
    both.check(&stream, &keys, "all deleted");
}

pub fn reserving_and_clearing(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(4);
    assert_eq!(both.lsm.stats().bytes, 0);
    both.lsm.try_reserve(&stream, 1000).unwrap();
    assert!(matches!(both.lsm.try_reserve(&stream, usize::MAX), Err(Error::OutOfMemory { .. })));
    both.update(&stream, &[1, 2, 3], &[10, 20, 30], &[2]);
    let before = both.lsm.stats();
    assert_eq!((before.batch_size, before.batches, before.levels, before.resident), (4, 1, 1, 4));
    assert_eq!((before.tombstones, before.stale_estimate), (1, 2));
    assert!(before.bytes >= 4 * 8, "{before:?}");
    both.check(&stream, &[1, 2, 3, 4], "before");
    assert!(both.lsm.stats().bytes > before.bytes, "a query builds the index");
    both.lsm.try_reserve(&stream, 1000).unwrap();

    both.lsm.clear();
    both.model.clear();
    both.check(&stream, &[1, 2, 3, 4], "cleared");
    assert_eq!((both.lsm.stats().batches, both.lsm.stats().tombstones), (0, 0));
    both.insert(&stream, &[5], &[50]);
    both.check(&stream, &[1, 5], "in use again");

    for (operations, expected) in [(0, 1 << 14), (100_000, 1 << 17), (1 << 20, 1 << 20), (usize::MAX, 1 << 27)] {
        assert_eq!(suggest_batch_size(operations), expected);
    }
}

pub fn bad_input_changes_nothing(device: &Device) {
    for size in [0, (1 << 31) + 1, usize::MAX] {
        assert!(matches!(GpuLsm::<u32, u32>::new(size), Err(Error::TooMany { asked, .. }) if asked == size));
    }
    let stream = device.stream().unwrap();
    let (none, one, two) = (stream.upload::<u32>(&[]), stream.upload(&[1u32]), stream.upload(&[1u32, 2]));
    let (none, one, two) = (&none.unwrap(), &one.unwrap(), &two.unwrap());
    assert!(matches!(GpuLsm::<u32, u32>::bulk_build(&stream, 0, one, one), Err(Error::TooMany { asked: 0, .. })));
    let built = GpuLsm::<u32, u32>::bulk_build(&stream, 4, two, one);
    assert!(matches!(built, Err(Error::LengthMismatch { expected: 2, found: 1, .. })));

    let mut both = Modelled::<u32, u32>::new(2);
    both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    let mismatch = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    };
    mismatch(both.lsm.insert(&stream, one, two));
    mismatch(both.lsm.insert(&stream, two, none));
    mismatch(both.lsm.update(&stream, (one, two), one));
    mismatch(both.lsm.update(&stream, (none, one), two));
    mismatch(both.lsm.count(&stream, one, two).map(drop));
    mismatch(both.lsm.range(&stream, two, none).map(drop));
    both.check(&stream, &[0, 1, 2, 3, 4], "after all that");

    // Nothing to do is no error, and no batch.
    let batches = both.lsm.stats().batches;
    both.insert(&stream, &[], &[]);
    both.delete(&stream, &[]);
    both.update(&stream, &[], &[], &[]);
    assert_eq!(both.lsm.stats().batches, batches);
    both.update(&stream, &[4], &[40], &[]);
    assert_eq!(both.lsm.stats().batches, batches + 1);
    both.check(&stream, &[0, 1, 2, 3, 4], "after nothing");

    let mut set = Modelled::<u32, ()>::new(2);
    set.insert(&stream, &[1, 2, 3], &[(); 3]);
    mismatch(set.lsm.insert(&stream, one, &stream.upload(&[(), ()]).unwrap()));
    set.check(&stream, &[0, 1, 2, 3, 4], "a set");
}

/// The first query builds the index, and both streams come first.
pub fn two_streams_ask_at_once(device: &Device) {
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let keys: Vec<u32> = (0..if is_checked(device) { 100 } else { 3000 }).collect();
    let mut random = Random(5);
    let mut both = Modelled::<u32, u32>::new(keys.len() / 7);
    for round in 0..3 {
        let some = random.keys(&keys, keys.len());
        both.update(&streams[0], &some, &random.values(some.len()), &random.keys(&keys, keys.len() / 2));
        streams[1].wait(&streams[0].record().unwrap()).unwrap();
        std::thread::scope(|scope| {
            for (i, stream) in streams.iter().enumerate() {
                let (both, keys) = (&both, &keys);
                scope.spawn(move || {
                    for again in 0..2 {
                        let when = format!("stream {i}, round {round}, {again}");
                        both.check_all(stream, &mut Random(again), keys, &when);
                    }
                });
            }
        });
        // The next update comes after what both have asked.
        streams[0].wait(&streams[1].record().unwrap()).unwrap();
    }
}

pub fn a_kernel_of_ones_own(device: &Device) {
    let stream = device.stream().unwrap();
    let domain: Vec<u32> = (0..300u32).map(|i| i * i).chain(extremes()).collect();
    let mut random = Random(9);
    let mut both = Modelled::<u32, u32>::new(32);
    for sums in [1, 63, 64, 100] {
        let keys = random.keys(&domain, 100);
        both.update(&stream, &keys, &random.values(keys.len()), &random.keys(&domain, 30));
        let asked = random.keys(&domain, 1000);
        let mut expected = vec![0u64; sums];
        for (i, key) in asked.iter().enumerate() {
            expected[i % sums] += both.model.get(key).map_or(0, |&value| u64::from(value));
        }
        let on_device = stream.upload(&asked).unwrap();
        let mut out = stream.uninit::<u64>(sums).unwrap();
        let kernel = SumValues::new(
            both.lsm.view(&stream).unwrap(),
            on_device.as_slice().view(&stream).unwrap(),
            out.view_mut(&stream).unwrap(),
        );
        // SAFETY: as many threads as sums, and the dictionary is borrowed.
        unsafe { stream.launch(kernel, sums.div_ceil(64)).unwrap() };
        assert_eq!(out.to_vec(&stream).unwrap(), expected, "{sums} threads");
    }
}
