//! Builds a table from pairs.

use super::fill::{Filled, fill, walk};
use super::options::{Options, WhenFull, Width};
use super::pairs::{PairSlices, PairVec};
use super::place::Placement;
use super::storage::{AnyMap, Storage};
use crate::device::Count;
use crate::hash::{Hash, MIN_BUCKETS};
use gpu_primitives::{Error, Stream};

/// The name of the table in error messages.
pub const NAME: &str = "a cuckoo table";

/// The most keys in a build: positions have 32 bits.
pub const MAX_KEYS: usize = u32::MAX as usize - 1;

/// The result of a build.
pub struct Built {
    pub storage: Storage,
    /// The number of keys in the table.
    pub len: u64,
    /// The number of failed attempts before this one.
    pub failures: u32,
}

/// Returns the number of buckets for `keys` keys.
pub fn buckets_for(keys: usize, options: &Options) -> Result<u32, Error> {
    let buckets = (keys as f64 / options.load_factor / options.bucket_width as f64).ceil();
    if keys > MAX_KEYS || buckets >= f64::from(u32::MAX) {
        return Err(Error::TooLong { what: NAME, len: keys, limit: MAX_KEYS });
    }
    Ok((buckets as u32).max(MIN_BUCKETS))
}

/// Builds a table of at least `buckets` buckets. Waits once per attempt.
pub fn build(stream: &Stream, pairs: PairSlices<'_>, buckets: u32, options: &Options) -> Result<Built, Error> {
    /// Each growth makes the table a quarter larger: 18 times as large after the last one.
    const MAX_GROWTHS: u32 = 13;

    let width = options.checked_width()?;
    let keys = pairs.0.len();
    if keys > MAX_KEYS {
        return Err(Error::TooLong { what: NAME, len: keys, limit: MAX_KEYS });
    }
    let first_seed = options.any_seed();
    let (mut buckets, mut failures, mut growths) = (buckets, 0, 0);
    loop {
        let mut unplaced = 0;
        for _ in 0..=options.reseeds {
            let seed = first_seed.wrapping_add(u64::from(failures) << 32);
            let hash = Hash::new(seed, buckets, options.hashes);
            let steps = steps(keys, hash, width).min(options.evictions);
            match attempt(stream, pairs, hash, width, options.evictions, steps)? {
                Attempt::Built { storage, len } => return Ok(Built { storage, len, failures }),
                Attempt::Failed { keys } => unplaced = keys,
            }
            failures += 1;
        }
        let larger = u64::from(buckets) + u64::from(buckets / 4) + 1;
        if options.when_full == WhenFull::Refuse || growths == MAX_GROWTHS || larger > u64::from(u32::MAX) {
            return Err(full(unplaced, keys as u64, u64::from(buckets) * width.keys() as u64));
        }
        buckets = larger as u32;
        growths += 1;
    }
}

/// Returns the error for a table that cannot take more keys.
pub fn full(unplaced: u64, keys: u64, slots: u64) -> Error {
    Error::TableFull { what: NAME, unplaced, keys, slots }
}

/// Returns how many words the locks have that placing pairs one by one needs: one bit per bucket.
pub const fn lock_words(buckets: u32) -> usize {
    (buckets as usize).div_ceil(u32::BITS as usize)
}

enum Attempt {
    Built { storage: Storage, len: u64 },
    Failed { keys: u64 },
}

/// Returns how many steps to take with all pairs together, before the rest is placed one by one. A step is a launch: it pays
/// off if there are many pairs. The more buckets are full, the more steps a pair takes.
fn steps(keys: usize, hash: Hash, width: Width) -> u32 {
    let load = keys as f64 / (f64::from(hash.buckets) * width.keys() as f64);
    match (load > 0.9, keys) {
        (_, ..0x20_0000) | (false, ..0x40_0000) => 0,
        (false, _) => 10,
        (true, ..0x80_0000) => 16,
        (true, _) => 32,
    }
}

/// Makes one attempt, with one seed. The first `steps` steps are those of all pairs together. Waits.
fn attempt(
    stream: &Stream,
    pairs: PairSlices<'_>,
    hash: Hash,
    width: Width,
    evictions: u32,
    steps: u32,
) -> Result<Attempt, Error> {
    let Some(map) = AnyMap::new(hash, pairs.0.size()) else {
        return Ok(Attempt::Failed { keys: pairs.0.len() as u64 });
    };
    let Filled { mut storage, mut spill, mut counts } = fill(stream, map, width, pairs)?;
    let mut locks = stream.zeroed::<u32>(lock_words(hash.buckets))?;
    let mut no_counters = stream.uninit(0)?;
    let (counted, unplaced) = counts.as_mut_slice().split_at_mut(Count::Unplaced as usize)?;
    let spilled = counted.slice(Count::Spilled as usize..)?;
    let mut left = None;
    if steps > 0 {
        // SAFETY: the spill has as many pairs as were counted. Their keys are distinct, and their first buckets are full.
        let (pairs, counts) = unsafe { walk(stream, &mut storage, spill, spilled, steps)? };
        (spill, left) = (pairs, Some(counts));
    }
    let count = match &left {
        Some(counts) => counts.slice(steps as usize - 1..)?,
        None => spilled,
    };
    let placement = Placement {
        pairs: spill.slices(),
        count,
        skip_first: left.is_none(),
        limit: evictions,
        locks: locks.as_mut_slice(),
        leftovers: &mut PairVec::uninit(stream, storage.sizes(), 0)?,
        unplaced,
        cleared: no_counters.as_mut_slice(),
    };
    // SAFETY: the spill has as many pairs as were counted. Their keys are distinct. If no step was taken, their
    // first buckets are full. There is a lock for every bucket. Unplaced pairs are only counted.
    unsafe { placement.launch(stream, &mut storage)? };
    let counts = counts.to_vec(stream)?;
    let [placed, spilled, unplaced] =
        [Count::Placed, Count::Spilled, Count::Unplaced].map(|count| counts[count as usize]);
    Ok(match unplaced {
        0 => Attempt::Built { storage, len: placed + spilled },
        keys => Attempt::Failed { keys },
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::RawTable;
    use super::{AnyMap, Attempt, Built, Filled, attempt, fill, walk};
    use crate::Options;
    use crate::device::Count;
    use crate::hash::Hash;
    use gpu_dictionary::{Carrier, WordCode};
    use gpu_primitives::{Device, Stream};
    use std::collections::HashMap;

    /// Builds tables at load 0.93, with any number of steps, and looks up everything.
    fn check<C: WordCode, V: Carrier + PartialEq + core::fmt::Debug>(stream: &Stream, value: impl Fn(u64) -> V) {
        for (width, hashes) in [(8, 2), (4, 3), (8, 4)] {
            let options = Options::new().bucket_width(width).hashes(hashes);
            let keys: Vec<C> = (0..2400u64).map(|key| C::from_u64(key * 0x9E37_79B1 + 5)).collect();
            let values: Vec<V> = if size_of::<V>() == 0 { Vec::new() } else { (0..2400).map(&value).collect() };
            let buckets = (keys.len() as f64 / 0.93 / width as f64) as u32;
            let pairs = (stream.upload(&keys).unwrap(), stream.upload(&values).unwrap());
            for steps in [0, 1, 2, 3, 20] {
                let hash = Hash::new(7, buckets, hashes);
                let pairs = (pairs.0.as_slice().into(), pairs.1.as_slice().into());
                let built = attempt(stream, pairs, hash, options.checked_width().unwrap(), 500, steps).unwrap();
                let Attempt::Built { storage, len } = built else { panic!("keys without a slot after {steps} steps") };
                assert_eq!(len, keys.len() as u64);
                let built = Built { storage, len, failures: 0 };
                let table = RawTable::from_built(stream, built, options.clone()).unwrap();
                let (found_values, found) = table.lookup(stream, pairs.0).unwrap();
                assert!(found.to_vec(stream).unwrap().iter().all(|&found| found == 1), "{steps} steps");
                if size_of::<V>() > 0 {
                    assert_eq!(found_values.into_typed::<V>().to_vec(stream).unwrap(), values, "{steps} steps");
                }
                // No key is there twice.
                let slots = table.unpack(stream).unwrap().keys.into_typed::<C>().to_vec(stream).unwrap();
                let mut times = HashMap::<u64, u32>::new();
                slots.iter().for_each(|slot| *times.entry(slot.to_u64()).or_default() += 1);
                assert!(keys.iter().all(|key| times[&key.to_u64()] == 1), "{steps} steps");
            }
        }
    }

    /// The steps themselves place nearly all pairs that were spilled. (What they leave is placed one by one, so the contents of
    /// a table do not show it.)
    #[test]
    fn steps_leave_few_pairs() {
        let stream = Device::cpu().stream().unwrap();
        let keys = stream.upload(&(0..2400u32).map(|key| key.wrapping_mul(0x9E37_79B1)).collect::<Vec<_>>()).unwrap();
        let map = AnyMap::new(Hash::new(7, 2400 * 5 / 4 / 8, 2), 4).unwrap();
        let width = Options::new().checked_width().unwrap();
        let pairs = (keys.as_slice().into(), keys.as_slice().into());
        let Filled { mut storage, spill, counts } = fill(&stream, map, width, pairs).unwrap();
        let spilled = counts.slice(Count::Spilled as usize..Count::Unplaced as usize).unwrap();
        // SAFETY: the spill of a table that was just filled.
        let (_, left) = unsafe { walk(&stream, &mut storage, spill, spilled, 12).unwrap() };
        let (spilled, left) = (counts.to_vec(&stream).unwrap()[Count::Spilled as usize], left.to_vec(&stream).unwrap());
        assert!(left[0] < spilled / 2 && left[11] <= spilled / 50, "{spilled} spilled, left: {left:?}");
    }

    #[test]
    fn pairs_are_placed_step_by_step() {
        let gpus = (0..Device::cuda_count()).map(|index| Device::cuda(index).unwrap());
        for device in [Device::cpu_checked(), Device::cpu()].into_iter().chain(gpus) {
            let stream = device.stream().unwrap();
            check::<u32, ()>(&stream, |_| ());
            check::<u32, u32>(&stream, |key| key as u32 ^ 0x5555);
            check::<u64, u32>(&stream, |key| key as u32 + 1);
            check::<u32, u64>(&stream, |key| key << 40);
            check::<u64, u64>(&stream, |key| key.wrapping_mul(0x1234_5678_9ABC));
        }
    }
}
