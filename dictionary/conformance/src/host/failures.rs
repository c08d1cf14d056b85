//! Failed allocations: a failed call leaves the dictionary unchanged.

use super::model::{Family, Modelled, Random};
use gpu_conformance::is_checked;
use gpu_dictionary::{Dictionary, Ordered, Updatable};
use gpu_primitives::{Device, DeviceVec, Error, Stream};

const BATCH: usize = 16;
const KEYS: u32 = 64;

/// The input of the calls under test.
#[derive(Debug)]
pub struct Input {
    /// The keys, some of them twice.
    pub keys: Vec<u32>,
    /// The values, one per key.
    pub values: Vec<u32>,
    /// The keys on the device.
    pub keys_on_device: DeviceVec<u32>,
    /// The values on the device.
    pub values_on_device: DeviceVec<u32>,
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

type Both<F> = Modelled<F, u32, u32>;

/// Returns a dictionary after `batches` batches, some with deletions.
fn dictionary<F: Family>(stream: &Stream, batches: u32) -> Both<F> {
    let mut both = Both::<F>::new(stream, BATCH);
    for batch in 0..batches {
        let keys: Vec<u32> = (0..12).map(|i| (7 * i + batch) % KEYS).collect();
        let values: Vec<u32> = keys.iter().map(|key| 1000 * batch + key).collect();
        let deleted = if batch % 2 == 0 { vec![] } else { vec![batch, batch + 20] };
        both.update(stream, &keys, &values, &deleted);
    }
    both
}

/// Makes the first allocation of a call fail, then the second one and so on, until the call makes no more. A call may cope with a
/// failure and succeed. `call` must change the model only on success. The pair of numbers is the number of batches of 16 in the dictionary, and the
/// number of operations in the input. Returns the number of allocations of the call.
pub fn fail<F: Family>(
    device: &Device,
    what: &str,
    (batches, input_len): (u32, usize),
    call: impl Fn(&mut Both<F>, &Stream, &Input) -> Result<(), Error>,
) -> u32 {
    let keys: Vec<u32> = (0..KEYS).collect();
    let home = device.stream().unwrap();
    let original = dictionary::<F>(&home, batches);
    let mut file = Vec::new();
    original.dictionary.save(&home, &mut file).unwrap();
    for successes in 0.. {
        let mut both = Both::<F>::new(&home, BATCH);
        both.dictionary = Dictionary::load(&home, &file[..]).unwrap();
        F::loaded(&mut both.dictionary, &home);
        both.model = original.model.clone();
        let input = Input::new(&home, input_len);
        home.synchronize().unwrap();
        // A new stream: a used one would already have its scratch memory.
        let stream = device.stream().unwrap();
        stream.fail_allocation_after(Some(successes));
        let outcome = call(&mut both, &stream, &input);
        // If the call made fewer allocations, this is the one that fails.
        let all_were_tried = stream.uninit::<u8>(1).is_err();
        stream.fail_allocation_after(None);
        stream.synchronize().unwrap();
        both.check(&home, &keys, &format!("{what}, after {successes} allocations: {outcome:?}"));
        match outcome {
            Err(Error::OutOfMemory { .. }) => {}
            Err(error) => panic!("{what}: {error}"),
            Ok(()) if all_were_tried => return successes,
            Ok(()) => {}
        }
    }
    unreachable!("the loop above ends only by returning")
}

fn insert<F: Family>(both: &mut Both<F>, stream: &Stream, input: &Input) -> Result<(), Error> {
    both.dictionary.insert(stream, (&input.keys_on_device, &input.values_on_device))?;
    both.model_insert(&input.keys, &input.values);
    Ok(())
}

pub fn failed_updates<F: Family>(device: &Device) {
    // Each access is checked once for each allocation: fewer levels, and the other devices have the rest.
    let batches = if is_checked(device) { 1 } else { 3 };
    let allocations = fail::<F>(device, "a mixed update", (batches, 12), |both, stream, input| {
        let deleted = input.keys_on_device.slice(8..)?;
        both.dictionary.update(stream, (&input.keys_on_device, &input.values_on_device), deleted)?;
        both.model_insert(&input.keys, &input.values);
        both.model_delete(&input.keys[8..]);
        Ok(())
    });
    assert!(allocations > 0);
    if is_checked(device) {
        return; // the host does the same on other devices
    }
    for (batches, len) in [(0, 10), (2, 10), (3, 10), (3, 5 * BATCH + 3), (3, 50 * BATCH)] {
        let what = format!("an insertion of {len} after {batches} batches");
        assert!(fail::<F>(device, &what, (batches, len), insert) > 0, "{what}");
    }
    fail::<F>(device, "a deletion", (3, 10), |both, stream, input| {
        both.dictionary.delete(stream, &input.keys_on_device)?;
        both.model_delete(&input.keys);
        Ok(())
    });
    fail::<F>(device, "clearing", (3, 1), |both, stream, _| {
        both.dictionary.clear(stream)?;
        both.model.clear();
        Ok(())
    });
    fail::<F>(device, "tidying up", (3, 1), |both, stream, _| F::tidy(&mut both.dictionary, stream));
}

pub fn failed_queries<F: Family>(device: &Device) {
    let lookup =
        |both: &mut Both<F>, stream: &_, input: &Input| both.dictionary.lookup(stream, &input.keys_on_device).map(drop);
    assert!(fail::<F>(device, "a lookup", (3, 10), lookup) > 0);
    if is_checked(device) {
        return;
    }
    fail::<F>(device, "contains", (3, 10), |both, stream, input| {
        both.dictionary.contains(stream, &input.keys_on_device).map(drop)
    });
    fail::<F>(device, "the length", (3, 1), |both, stream, _| both.dictionary.len(stream).map(drop));
    fail::<F>(device, "is_empty", (3, 1), |both, stream, _| both.dictionary.is_empty(stream).map(drop));
    fail::<F>(device, "statistics", (3, 1), |both, stream, _| both.dictionary.stats(stream).map(drop));
    assert!(fail::<F>(device, "an export", (3, 1), |both, stream, _| both.dictionary.export(stream).map(drop)) > 0);
    fail::<F>(device, "saving", (3, 1), |both, stream, _| both.dictionary.save(stream, std::io::sink()));
}

pub fn failed_ordered_queries<F: Family<Of<u32, u32>: Ordered>>(device: &Device) {
    fail::<F>(device, "a count", (3, 10), |both, stream, input| {
        both.dictionary.count(stream, &input.keys_on_device, &input.values_on_device).map(drop)
    });
    if is_checked(device) {
        return;
    }
    fail::<F>(device, "a range", (3, 10), |both, stream, input| {
        both.dictionary.range(stream, &input.keys_on_device, &input.values_on_device).map(drop)
    });
    fail::<F>(device, "successors", (3, 10), |both, stream, input| {
        both.dictionary.successor(stream, &input.keys_on_device).map(drop)
    });
    fail::<F>(device, "predecessors", (3, 10), |both, stream, input| {
        both.dictionary.predecessor(stream, &input.keys_on_device).map(drop)
    });
}

pub fn failed_constructions<F: Family>(device: &Device) {
    fail::<F>(device, "an empty dictionary", (1, 1), |both, stream, _| {
        both.dictionary = Dictionary::new(stream, F::options(BATCH))?;
        both.model.clear();
        Ok(())
    });
    let allocations = fail::<F>(device, "a bulk build", (1, 100), |both, stream, input| {
        let options = F::options(BATCH);
        both.dictionary = Dictionary::bulk_build(stream, (&input.keys_on_device, &input.values_on_device), options)?;
        both.model.clear();
        both.model_insert(&input.keys, &input.values);
        Ok(())
    });
    assert!(allocations > 0);
    let allocations = fail::<F>(device, "a load", (3, 1), |both, stream, _| {
        let mut file = Vec::new();
        both.dictionary.save(stream, &mut file)?;
        both.dictionary = Dictionary::load(stream, &file[..])?;
        Ok(())
    });
    assert!(allocations > 0);
}
