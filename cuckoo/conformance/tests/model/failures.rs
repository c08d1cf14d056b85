//! Updates during which memory runs out, also when keys have already been displaced.

use crate::Modelled;
use gpu_conformance::{is_checked, is_gpu};
use gpu_cuckoo::{Options, WhenFull};
use gpu_primitives::operator::map;
use gpu_primitives::scan::Sum;
use gpu_primitives::{CpuOptions, Device, DeviceVec, Error, Stream};

/// Options with which an insertion of many keys gives up soon, so that some keys are unplaced.
fn options() -> impl Iterator<Item = Options> {
    let each = |when_full| [3, 0].map(|evictions| (when_full, evictions));
    let all = [WhenFull::Refuse, WhenFull::Grow].into_iter().flat_map(each);
    all.map(|(when_full, evictions)| {
        Options::new().seed(0).bucket_width(4).evictions(evictions).reseeds(0).when_full(when_full)
    })
}

/// A table of 50 keys with room for more.
fn table(stream: &Stream, options: Options) -> Modelled<u32, u32> {
    let mut both = Modelled::with_options(stream, options.capacity(170));
    let keys: Vec<u32> = (0..50).collect();
    both.insert(stream, &keys, &keys);
    assert_eq!(both.dictionary.stats(stream).unwrap().rebuilds, 0);
    both
}

/// Keys some of which are present, and some of which will find no slot.
fn input() -> (Vec<u32>, Vec<u32>) {
    ((40..201).collect(), (3000..3161).collect())
}

/// Every allocation fails once.
pub fn failed_displacements(device: &Device) {
    let home = device.stream().unwrap();
    let (keys, values) = input();
    let domain: Vec<u32> = (0..210).collect();
    let (on_device, with) = (home.upload(&keys).unwrap(), home.upload(&values).unwrap());
    // The host does the same in checked mode.
    for options in options().take(if is_checked(device) { 1 } else { usize::MAX }) {
        for successes in 0.. {
            let mut both = table(&home, options.clone());
            home.synchronize().unwrap();
            let stream = device.stream().unwrap();
            stream.fail_allocation_after(Some(successes));
            let outcome = both.dictionary.insert(&stream, (&on_device, &with));
            stream.fail_allocation_after(None);
            stream.synchronize().unwrap();
            if outcome.is_ok() {
                both.model_insert(&keys, &values);
            }
            both.check(&home, &domain, &format!("{options:?}, after {successes} allocations: {outcome:?}"));
            match outcome {
                Err(Error::OutOfMemory { .. }) => {}
                Err(Error::TableFull { .. }) => break,
                Ok(()) => {
                    let stats = both.dictionary.stats(&home).unwrap();
                    assert!(stats.rebuilds > 0, "{options:?}: some keys were unplaced, {stats:?}");
                    break;
                }
                Err(error) => panic!("{options:?}: {error}"),
            }
        }
    }
}

/// Upserts and operations on all pairs: every allocation fails once. The table has its old pairs then.
pub fn failed_operations(device: &Device) {
    type Operation = fn(&mut Modelled<u32, u32>, &Stream, &[DeviceVec<u32>; 2]) -> Result<(), Error>;
    let upsert: Operation = |both, stream, [keys, values]| {
        both.dictionary.upsert(stream, (keys, values), Sum)?;
        let (keys, values) = input();
        for (&key, &value) in keys.iter().zip(&values) {
            *both.model.entry(key).or_default() += value;
        }
        Ok(())
    };
    // All keys three times, once next to each other.
    let upsert_repeats: Operation = |both, stream, _| {
        let (keys, values) = input();
        let keys: Vec<u32> = [&keys[..], &keys.iter().flat_map(|&key| [key, key]).collect::<Vec<_>>()].concat();
        let values = values.repeat(3);
        both.dictionary.upsert(stream, (&stream.upload(&keys)?, &stream.upload(&values)?), Sum)?;
        for (&key, &value) in keys.iter().zip(&values) {
            *both.model.entry(key).or_default() += value;
        }
        Ok(())
    };
    let retain: Operation = |both, stream, _| {
        both.dictionary.retain(stream, map!(|key: u32, _value: u32| -> u8 { (key % 3 == 0) as u8 }))?;
        both.model.retain(|key, _| key % 3 == 0);
        Ok(())
    };
    let for_each: Operation = |both, stream, _| {
        both.dictionary.for_each(stream, map!(|_key: u32, value: u32| -> u32 { value + 1 }))?;
        both.model.values_mut().for_each(|value| *value += 1);
        Ok(())
    };
    let drain: Operation = |both, stream, _| {
        assert_eq!(both.dictionary.drain(stream)?.keys.len(), both.model.len());
        both.model.clear();
        Ok(())
    };
    let remove: Operation = |both, stream, [keys, _]| {
        both.dictionary.remove(stream, keys)?;
        both.model_delete(&input().0);
        Ok(())
    };
    let home = device.stream().unwrap();
    let (keys, values) = input();
    let domain: Vec<u32> = (0..210).collect();
    let on_device = [home.upload(&keys).unwrap(), home.upload(&values).unwrap()];
    // A table that displaces few keys and rebuilds, one that doubles, and one with room.
    for (options, capacity) in
        [(options().last().unwrap(), 170), (Options::new().seed(0), 110), (Options::new().seed(0), 900)]
    {
        for (name, operation) in [
            ("upsert", upsert),
            ("upsert of repeated keys", upsert_repeats),
            ("retain", retain),
            ("for_each", for_each),
            ("drain", drain),
            ("remove", remove),
        ] {
            for successes in 0.. {
                let mut both = Modelled::with_options(&home, options.clone().capacity(capacity));
                let present: Vec<u32> = (0..50).collect();
                both.insert(&home, &present, &present);
                home.synchronize().unwrap();
                let stream = device.stream().unwrap();
                stream.fail_allocation_after(Some(successes));
                let outcome = operation(&mut both, &stream, &on_device);
                stream.fail_allocation_after(None);
                stream.synchronize().unwrap();
                both.check(&home, &domain, &format!("{name}, after {successes} allocations: {outcome:?}"));
                match outcome {
                    Err(Error::OutOfMemory { .. }) => {}
                    Ok(()) if successes > 0 => break,
                    other => panic!("{name}: {other:?}"),
                }
            }
        }
    }
}

/// From some moment on there is no memory at all: not even for undoing the insertion.
pub fn displacements_without_memory(device: &Device) {
    if is_gpu(device) {
        return; // its memory cannot be limited
    }
    let (keys, values) = input();
    let domain: Vec<u32> = (0..210).collect();
    let limited = CpuOptions { checked: is_checked(device), memory_limit: Some(1 << 20), ..CpuOptions::default() };
    for options in options().take(if is_checked(device) { 1 } else { usize::MAX }) {
        let mut failures = 0;
        for free in (1..).map(|step| step << 9) {
            let device = Device::cpu_with(limited.clone());
            let stream = device.stream().unwrap();
            let mut both = table(&stream, options.clone());
            let (on_device, with) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            let ballast = stream.uninit::<u8>((1 << 20) - device.memory_used() - free).unwrap();
            let outcome = both.dictionary.insert(&stream, (&on_device, &with));
            drop(ballast);
            if outcome.is_ok() {
                both.model_insert(&keys, &values);
            }
            both.check(&stream, &domain, &format!("{options:?}, {free} bytes free: {outcome:?}"));
            match outcome {
                Err(Error::OutOfMemory { .. }) => failures += 1,
                Ok(()) | Err(Error::TableFull { .. }) => break,
                Err(error) => panic!("{options:?}: {error}"),
            }
        }
        assert!(failures > 2, "{options:?}: {failures} failures");
    }
}
