//! The guarantees of the LSM in addition to those of all dictionaries.

use crate::levels::{Lsm, Modelled};
use gpu_conformance::data::random;
use gpu_conformance::is_checked;
use gpu_dictionary_conformance::{a_join, a_kernel_of_ones_own};
use gpu_lsm::{CleanupPolicy, GpuLsm, Options, suggest_batch_size};
use gpu_primitives::scan::Sum;
use gpu_primitives::{CpuOptions, Device, Error};
use std::path::PathBuf;

pub fn a_policy_asks_for_cleanups(device: &Device) {
    let stream = device.stream().unwrap();
    let keys: Vec<u32> = (0..8).collect();
    let mut both = Modelled::new(&stream, 8);
    both.dictionary.set_cleanup_policy(Some(CleanupPolicy::new().stale_share(0.5).max_levels(2)));
    for round in 0..3u32 {
        both.insert(&stream, &keys, &[round; 8]);
        both.check(&stream, &keys, "as many levels as allowed");
    }
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().levels, both.dictionary.stats(&stream).unwrap().resident),
        (2, 24),
        "no cleanup is due"
    );
    for round in 3..7u32 {
        both.insert(&stream, &keys, &[round; 8]);
    }
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().levels, both.dictionary.stats(&stream).unwrap().resident),
        (1, 8),
        "the seventh batch makes three levels"
    );
    both.check(&stream, &keys, "one level");

    both.delete(&stream, &keys[..2]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().tombstones, 2, "4 of 10 are stale");
    both.delete(&stream, &keys[2..4]);
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().tombstones, both.dictionary.stats(&stream).unwrap().resident),
        (0, 4),
        "8 of 12 would be stale"
    );
    both.check(&stream, &keys, "cleaned up");

    both.dictionary.set_cleanup_policy(None);
    for _ in 0..7 {
        both.delete(&stream, &keys);
    }
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().levels, both.dictionary.stats(&stream).unwrap().tombstones),
        (1, 56),
        "there is no policy"
    );
    both.check(&stream, &keys, "all deleted");
}

pub fn reserving_and_clearing(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 4);
    assert_eq!(both.dictionary.stats(&stream).unwrap().bytes, 0);
    both.dictionary.check_memory(&stream, 1000).unwrap();
    assert!(matches!(both.dictionary.check_memory(&stream, usize::MAX), Err(Error::OutOfMemory { .. })));
    both.update(&stream, &[1, 2, 3], &[10, 20, 30], &[2]);
    let before = both.dictionary.stats(&stream).unwrap();
    assert_eq!((before.batch_size, before.batches, before.levels, before.resident), (4, 1, 1, 4));
    assert_eq!((before.tombstones, before.stale_estimate), (1, 2));
    assert!(before.bytes >= 4 * 8, "{before:?}");
    both.check(&stream, &[1, 2, 3, 4], "before");
    assert!(both.dictionary.stats(&stream).unwrap().bytes > before.bytes, "a query must build the index");
    both.dictionary.check_memory(&stream, 1000).unwrap();

    both.dictionary.clear(&stream).unwrap();
    both.model.clear();
    both.check(&stream, &[1, 2, 3, 4], "cleared");
    assert_eq!(
        (both.dictionary.stats(&stream).unwrap().batches, both.dictionary.stats(&stream).unwrap().tombstones),
        (0, 0)
    );
    both.insert(&stream, &[5], &[50]);
    both.check(&stream, &[1, 5], "in use again");

    for (operations, expected) in [(0, 1 << 14), (100_000, 1 << 17), (1 << 20, 1 << 20), (usize::MAX, 1 << 27)] {
        assert_eq!(suggest_batch_size(operations), expected);
    }
}

/// So many queries that the levels are merged first.
pub fn many_neighbours(device: &Device) {
    if is_checked(device) {
        return; // a unit test of the levels has a few queries
    }
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 1000);
    let numbers: Vec<u32> = random(3).take(7000).map(|x| x as u32 % 20_000).collect();
    for batch in numbers.chunks(1000) {
        both.insert(&stream, batch, &vec![batch[0]; 1000]);
    }
    both.delete(&stream, &numbers[100..700]);
    let asked: Vec<u32> = (0..1 << 18).map(|i| i % 20_011).collect();
    let on_device = stream.upload(&asked).unwrap();
    let above = both.dictionary.successor(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
    let below = both.dictionary.predecessor(&stream, &on_device).unwrap().to_vec(&stream).unwrap();
    for (i, &key) in asked.iter().enumerate() {
        let pair = |(&key, &value): (&u32, &u32)| (key, value);
        assert_eq!(above[i], both.model.range(key + 1..).next().map(pair), "successor of {key}");
        assert_eq!(below[i], both.model.range(..key).next_back().map(pair), "predecessor of {key}");
    }
}

pub fn batches_are_counted(device: &Device) {
    for size in [0, (1 << 31) + 1, usize::MAX] {
        assert!(
            matches!(GpuLsm::<u32, u32>::with_batch_size(size), Err(Error::InvalidOption { asked, .. }) if asked == size.to_string())
        );
    }
    let stream = device.stream().unwrap();
    let one = &stream.upload(&[1u32]).unwrap();
    let built = GpuLsm::<u32, u32>::bulk_build(&stream, (one, one), Options::new().batch_size(0));
    assert!(matches!(built, Err(Error::InvalidOption { .. })));

    // Empty calls do not count as batches.
    let mut both = Modelled::<u32, u32>::new(&stream, 2);
    both.insert(&stream, &[1, 2, 3], &[10, 20, 30]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().batches, 2);
    both.insert(&stream, &[], &[]);
    both.delete(&stream, &[]);
    both.update(&stream, &[], &[], &[]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().batches, 2);
    both.update(&stream, &[4], &[40], &[]);
    assert_eq!(both.dictionary.stats(&stream).unwrap().batches, 3);
    both.check(&stream, &[0, 1, 2, 3, 4], "after empty calls");
}

pub fn kernels_of_ones_own(device: &Device) {
    a_kernel_of_ones_own::<Lsm>(device, GpuLsm::view);
    a_join::<Lsm>(device, GpuLsm::view);
}

/// A batch from another device would make the dictionary unusable.
pub fn insertions_of_another_device(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 2);
    both.insert(&stream, &[1, 2, 3, 4], &[10, 20, 30, 40]);
    let other = Device::cpu_with(CpuOptions::default()).stream().unwrap();
    let (keys, values) = (other.upload(&[5]).unwrap(), other.upload(&[50]).unwrap());
    let inserted = both.dictionary.insert(&other, (&keys, &values));
    assert!(matches!(inserted, Err(Error::WrongDevice { .. })), "{inserted:?}");
    assert!(matches!(both.dictionary.delete(&other, &keys), Err(Error::WrongDevice { .. })));
    both.check(&stream, &[1, 2, 3, 4, 5], "after insertions of another device");
    both.insert(&stream, &[5], &[50]);
    both.check(&stream, &[1, 2, 3, 4, 5], "in use again");
}

/// A failed cleanup is reported, although the update succeeded.
pub fn failed_cleanups_are_told(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 4);
    both.dictionary.set_cleanup_policy(Some(CleanupPolicy::new().stale_share(1.0).max_levels(1)));
    both.insert(&stream, &[1, 2, 3, 4], &[10, 20, 30, 40]);
    both.insert(&stream, &[5, 6, 7, 8], &[50, 60, 70, 80]);
    assert!(both.dictionary.cleanup_failure().is_none());
    // The number of allocations of an insertion without a cleanup.
    let mut allocations = 0;
    loop {
        let (keys, values) = (stream.upload(&[9]).unwrap(), stream.upload(&[90]).unwrap());
        stream.fail_allocation_after(Some(allocations));
        let inserted = both.dictionary.insert(&stream, (&keys, &values));
        stream.fail_allocation_after(None);
        if inserted.is_ok() {
            both.model_insert(&[9], &[90]);
            break;
        }
        allocations += 1;
    }
    assert!(matches!(both.dictionary.cleanup_failure(), Some(Error::OutOfMemory { .. })), "{allocations} allocations");
    both.check(&stream, &[1, 5, 9, 10], "without the cleanup");
    both.insert(&stream, &[10], &[100]);
    assert!(both.dictionary.cleanup_failure().is_none() && both.dictionary.stats(&stream).unwrap().levels == 1);
    both.check(&stream, &[1, 5, 9, 10], "with the cleanup");
}

/// A kernel of one's own cannot combine values, and says so. A checkpoint combines them.
pub fn views_and_checkpoints_after_upserts(device: &Device) {
    let stream = device.stream().unwrap();
    let mut both = Modelled::<u32, u32>::new(&stream, 4);
    let keys = [1, 2, 3, 4, 5];
    both.insert(&stream, &keys, &keys);
    both.upsert(&stream, &keys[1..], &keys[1..], Sum);
    let refused = both.dictionary.view(&stream).map(drop);
    assert!(matches!(refused, Err(Error::PendingUpserts { .. })), "{refused:?}");

    let folder = tempfile(device);
    both.dictionary.checkpoint(&stream, &folder).unwrap();
    both.upsert(&stream, &keys, &keys, Sum);
    both.dictionary.checkpoint(&stream, &folder).unwrap();
    both.check(&stream, &keys, "after checkpoints");
    both.dictionary = GpuLsm::recover(&stream, &folder).unwrap();
    both.check(&stream, &keys, "recovered");
    std::fs::remove_dir_all(&folder).unwrap();

    both.upsert(&stream, &keys, &keys, Sum);
    both.tidy(&stream);
    assert!(both.dictionary.view(&stream).is_ok(), "a cleanup combines everything");
    both.check(&stream, &keys, "tidy");
}

/// Returns a folder that no other process and no other device uses.
fn tempfile(device: &Device) -> PathBuf {
    std::env::temp_dir().join(format!("gpu-lsm-upserts-{}-{device:p}", std::process::id()))
}
