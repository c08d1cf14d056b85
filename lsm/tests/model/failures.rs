//! Failed allocations: a call that fails leaves the dictionary as it was.

use crate::model::{Modelled, Random};
use gpu_conformance::is_checked;
use gpu_lsm::{CleanupPolicy, GpuLsm};
use gpu_primitives::{Device, DeviceVec, Error, Stream};

const BATCH: usize = 16;
const KEYS: u32 = 64;

/// What the calls under test are given.
struct Input {
    keys: Vec<u32>,
    values: Vec<u32>,
    keys_on_device: DeviceVec<u32>,
    values_on_device: DeviceVec<u32>,
}

impl Input {
    fn new(stream: &Stream, len: usize) -> Self {
        let mut random = Random(77);
        let keys: Vec<u32> = (0..len).map(|_| random.below(KEYS as usize) as u32).collect();
        let values = random.values(len);
        let (keys_on_device, values_on_device) = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
        Self { keys, values, keys_on_device, values_on_device }
    }
}

type Both = Modelled<u32, u32>;

/// A dictionary of so many batches, with tombstones in some.
fn dictionary(stream: &Stream, batches: u32) -> Both {
    let mut both = Both::new(BATCH);
    for batch in 0..batches {
        let keys: Vec<u32> = (0..12).map(|i| (7 * i + batch) % KEYS).collect();
        let values: Vec<u32> = keys.iter().map(|key| 1000 * batch + key).collect();
        let deleted = if batch % 2 == 0 { vec![] } else { vec![batch, batch + 20] };
        both.update(stream, &keys, &values, &deleted);
    }
    both
}

/// Lets the first allocation of a call fail, then the second one and so on, until it succeeds: `call` changes the model only
/// then.
fn fail(
    device: &Device,
    what: &str,
    batches: u32,
    input_len: usize,
    call: impl Fn(&mut Both, &Stream, &Input) -> Result<(), Error>,
) {
    let keys: Vec<u32> = (0..KEYS).collect();
    let home = device.stream().unwrap();
    let original = dictionary(&home, batches);
    let mut file = Vec::new();
    original.lsm.save(&home, &mut file).unwrap();
    for successes in 0.. {
        let mut both = Both { lsm: GpuLsm::load(&home, &file[..]).unwrap(), model: original.model.clone() };
        let input = Input::new(&home, input_len);
        home.synchronize().unwrap();
        // A stream of its own: one that was used before would have its scratch already.
        let stream = device.stream().unwrap();
        stream.fail_allocation_after(Some(successes));
        let outcome = call(&mut both, &stream, &input);
        stream.fail_allocation_after(None);
        stream.synchronize().unwrap();
        both.check(&home, &keys, &format!("{what}, after {successes} allocations: {outcome:?}"));
        match outcome {
            Err(Error::OutOfMemory { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
            Ok(()) => {
                assert!(successes > 0, "{what} allocates something");
                return;
            }
        }
    }
}

fn insert(both: &mut Both, stream: &Stream, input: &Input) -> Result<(), Error> {
    both.lsm.insert(stream, &input.keys_on_device, &input.values_on_device)?;
    both.model_insert(&input.keys, &input.values);
    Ok(())
}

pub fn failed_updates(device: &Device) {
    fail(device, "a mixed update with carries", 3, 12, |both, stream, input| {
        let deleted = input.keys_on_device.slice(8..)?;
        both.lsm.update(stream, (&input.keys_on_device, &input.values_on_device), deleted)?;
        both.model_insert(&input.keys, &input.values);
        both.model_delete(&input.keys[8..]);
        Ok(())
    });
    if is_checked(device) {
        return; // what the host does is the same there
    }
    fail(device, "an insertion without carry", 2, 10, insert);
    fail(device, "an insertion with carries", 3, 10, insert);
    fail(device, "an insertion of several batches", 3, 5 * BATCH + 3, insert);
    fail(device, "a deletion", 3, 10, |both, stream, input| {
        both.lsm.delete(stream, &input.keys_on_device)?;
        both.model_delete(&input.keys);
        Ok(())
    });
    fail(device, "a cleanup", 3, 1, |both, stream, _| both.lsm.cleanup(stream));
    // The cleanup may fail; then the insertion has succeeded all the same.
    fail(device, "an insertion that asks for a cleanup", 2, 10, |both, stream, input| {
        both.lsm.set_cleanup_policy(Some(CleanupPolicy { stale_share: 0.0, max_levels: 1 }));
        insert(both, stream, input)
    });
}

pub fn failed_queries(device: &Device) {
    fail(device, "a lookup", 3, 10, |both, stream, input| both.lsm.lookup(stream, &input.keys_on_device).map(drop));
    if is_checked(device) {
        return;
    }
    fail(device, "contains", 3, 10, |both, stream, input| both.lsm.contains(stream, &input.keys_on_device).map(drop));
    fail(device, "a count", 3, 10, |both, stream, input| {
        both.lsm.count(stream, &input.keys_on_device, &input.values_on_device).map(drop)
    });
    fail(device, "a range", 3, 10, |both, stream, input| {
        both.lsm.range(stream, &input.keys_on_device, &input.values_on_device).map(drop)
    });
    fail(device, "successors", 3, 10, |both, stream, input| {
        both.lsm.successor(stream, &input.keys_on_device).map(drop)
    });
    fail(device, "predecessors", 3, 10, |both, stream, input| {
        both.lsm.predecessor(stream, &input.keys_on_device).map(drop)
    });
    fail(device, "the length", 3, 1, |both, stream, _| both.lsm.len(stream).map(drop));
    fail(device, "an export", 3, 1, |both, stream, _| both.lsm.export(stream).map(drop));
    fail(device, "a view", 3, 1, |both, stream, _| both.lsm.view::<u32>(stream).map(drop));
}

pub fn failed_constructions(device: &Device) {
    fail(device, "a bulk build", 1, 100, |both, stream, input| {
        both.lsm = GpuLsm::bulk_build(stream, BATCH, &input.keys_on_device, &input.values_on_device)?;
        both.model.clear();
        both.model_insert(&input.keys, &input.values);
        Ok(())
    });
    fail(device, "a load", 3, 1, |both, stream, _| {
        let mut file = Vec::new();
        both.lsm.save(stream, &mut file)?;
        both.lsm = GpuLsm::load(stream, &file[..])?;
        Ok(())
    });
}
