//! Builds a table from pairs.

use super::options::{Options, WhenFull, Width};
use super::pairs::{PairSlices, PairVec};
use super::storage::{Filled, PlaceJob, Storage};
use crate::hash::{Hash, MIN_BUCKETS, Map};
use crate::kernel::Count;
use gpu_dictionary::{Carrier, WordCode as KeyCode};
use gpu_primitives::{Error, Stream};

/// The name of the table in error messages.
pub const NAME: &str = "a cuckoo table";

/// The most keys in a build: positions have 32 bits.
pub const MAX_KEYS: usize = u32::MAX as usize - 1;

/// The result of a build.
pub struct Built<C: KeyCode, V: Carrier> {
    pub storage: Storage<C, V>,
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
pub fn build<C: KeyCode, V: Carrier>(
    stream: &Stream,
    pairs: PairSlices<'_, C, V>,
    buckets: u32,
    options: &Options,
) -> Result<Built<C, V>, Error> {
    /// Each growth makes the table a quarter larger: 18 times as large after the last one.
    const MAX_GROWTHS: u32 = 13;

    let width = options.checked_width()?;
    let keys = pairs.0.len();
    if keys > MAX_KEYS {
        return Err(Error::TooLong { what: NAME, len: keys, limit: MAX_KEYS });
    }
    let (mut buckets, mut failures, mut growths) = (buckets, 0, 0);
    loop {
        let mut unplaced = 0;
        for _ in 0..=options.reseeds {
            let seed = options.seed.wrapping_add(u64::from(failures) << 32);
            let hash = Hash::new(seed, buckets, options.hashes);
            match attempt(stream, pairs, hash, width, options.evictions)? {
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

enum Attempt<C: KeyCode, V: Carrier> {
    Built { storage: Storage<C, V>, len: u64 },
    Failed { keys: u64 },
}

/// Makes one attempt, with one seed. Waits.
fn attempt<C: KeyCode, V: Carrier>(
    stream: &Stream,
    pairs: PairSlices<'_, C, V>,
    hash: Hash,
    width: Width,
    evictions: u32,
) -> Result<Attempt<C, V>, Error> {
    let Some(map) = Map::new(hash) else { return Ok(Attempt::Failed { keys: pairs.0.len() as u64 }) };
    let Filled { mut storage, spill, mut counts } = Storage::fill(stream, map, width, pairs)?;
    let mut locks = stream.zeroed::<u32>(lock_words(hash.buckets))?;
    let mut no_counters = stream.uninit(0)?;
    let (counted, unplaced) = counts.as_mut_slice().split_at_mut(Count::Unplaced as usize)?;
    let job = PlaceJob {
        pairs: spill.slices(),
        count: counted.slice(Count::Spilled as usize..)?,
        skip_first: true,
        limit: evictions,
        locks: locks.as_mut_slice(),
        leftovers: &mut PairVec::uninit(stream, 0)?,
        unplaced,
        cleared: no_counters.as_mut_slice(),
    };
    // SAFETY: the spill has as many pairs as were counted. Their keys are distinct, and their first buckets are full.
    // There is a lock for every bucket. Unplaced pairs are only counted.
    unsafe { storage.place(stream, job)? };
    let counts = counts.to_vec(stream)?;
    let [placed, spilled, unplaced] =
        [Count::Placed, Count::Spilled, Count::Unplaced].map(|count| counts[count as usize]);
    Ok(match unplaced {
        0 => Attempt::Built { storage, len: placed + spilled },
        keys => Attempt::Failed { keys },
    })
}
