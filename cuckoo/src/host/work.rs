//! What an insertion works with: counters, locks, marks and lists. The table keeps them from call to call.

use super::build::lock_words;
use super::claim::{Batch, EntrySlice};
use super::pairs::{self, PairSlices, PairVec, Sizes};
use super::storage::Storage;
use crate::device::{Claims, ENTRIES_PER_POSITION, Marks};
use crate::hash::Hash;
use gpu_primitives::{DeviceSliceMut, DeviceVec, Error, Stream, transfer};

/// What an insertion works with.
///
/// Nothing of it has to be cleared for a batch. Locks are free when they are not in use. Marks and entries carry numbers
/// that say which batch they are of. There are two sets of counters, and the kernel that places pairs clears the one that
/// is not in use.
#[derive(Debug)]
pub struct Work {
    pub counters: Counters,
    /// One bit per bucket.
    pub locks: DeviceVec<u32>,
    /// The words of [`Marks`].
    pub marks: DeviceVec<u32>,
    /// The largest number of a batch among the marks.
    pub batches: u32,
    /// The hash functions of the table when the batch was inserted.
    pub hash: Hash,
    pub lists: Lists,
}

/// Memory whose size depends on the batch.
#[derive(Debug)]
pub struct Lists {
    /// The last positions of keys.
    pub entries: DeviceVec<u32>,
    /// Entries up to this one are of earlier batches.
    pub base: u32,
    /// The length of the batch: entries are at most the sum of both.
    pub positions: u32,
    /// What became of the pairs of the batch, and the old values.
    pub history: PairVec,
    /// Room for the pairs that find all of their buckets full.
    pub overflow: PairVec,
    /// Room for the pairs that cannot be placed.
    pub leftovers: PairVec,
}

/// Two sets of counters.
#[derive(Debug)]
pub struct Counters {
    words: DeviceVec<u64>,
    uses_second_set: bool,
}

/// The counters in use, each of one element, and the others.
pub struct InUse<'a> {
    pub moved: DeviceSliceMut<'a, u64>,
    pub unplaced: DeviceSliceMut<'a, u64>,
    /// Those of [`Claims`].
    pub claims: DeviceSliceMut<'a, u64>,
    /// The set that is not in use.
    pub others: DeviceSliceMut<'a, u64>,
}

/// The counters, read back.
pub struct Counts {
    /// Pairs that have the key of another pair.
    pub repeats: u64,
    /// Keys that were absent.
    pub new: u64,
    pub unplaced: u64,
}

/// The number of counters in a set.
const SET: usize = 2 + Claims::ALL;

impl Counters {
    fn new(stream: &Stream) -> Result<Self, Error> {
        Ok(Self { words: stream.zeroed(2 * SET)?, uses_second_set: false })
    }

    /// Returns the counters.
    pub fn in_use(&mut self) -> Result<InUse<'_>, Error> {
        let (first, second) = self.words.as_mut_slice().split_at_mut(SET)?;
        let (used, others) = if self.uses_second_set { (second, first) } else { (first, second) };
        let (moved, rest) = used.split_at_mut(1)?;
        let (unplaced, claims) = rest.split_at_mut(1)?;
        Ok(InUse { moved, unplaced, claims, others })
    }

    /// Reads the counters, and begins to count anew. At least one list of pairs has been placed since the last time. Waits.
    pub fn read(&mut self, stream: &Stream) -> Result<Counts, Error> {
        let start = if self.uses_second_set { SET } else { 0 };
        let mut counts = [0; SET];
        self.words.slice(start..start + SET)?.copy_to_host(stream, &mut counts)?;
        self.uses_second_set = !self.uses_second_set;
        let [_, unplaced, claims @ ..] = counts;
        Ok(Counts { unplaced, new: claims[Claims::New as usize], repeats: claims[Claims::Repeats as usize] })
    }
}

/// Returns one of the counters of [`Claims`].
pub fn counter(claims: DeviceSliceMut<'_, u64>, counter: Claims) -> Result<DeviceSliceMut<'_, u64>, Error> {
    claims.slice_mut(counter as usize..=counter as usize)
}

impl Lists {
    fn new(stream: &Stream, sizes: Sizes) -> Result<Self, Error> {
        Ok(Self {
            entries: stream.uninit(0)?,
            base: 0,
            positions: 0,
            history: PairVec::uninit(stream, Sizes { key: 1, ..sizes }, 0)?,
            overflow: PairVec::uninit(stream, sizes, 0)?,
            leftovers: PairVec::uninit(stream, sizes, 0)?,
        })
    }

    /// Returns the size in bytes.
    fn bytes(&self) -> usize {
        let pairs = self.history.bytes() + self.overflow.bytes() + self.leftovers.bytes();
        self.entries.len() * size_of::<u32>() + pairs
    }

    /// Makes sure of room and of free entries for a batch.
    fn prepare(&mut self, stream: &Stream, len: usize) -> Result<(), Error> {
        // A hash has 32 bits, so more entries than 2^32 do not help. They are still more than a batch has keys.
        let entries = (ENTRIES_PER_POSITION * len).min(1 << 32);
        if self.entries.len() < entries {
            (self.entries, self.base) = (stream.zeroed(entries)?, 0);
        } else {
            self.base += self.positions;
            if u32::MAX - self.base <= len as u32 {
                transfer::fill(stream, &mut self.entries, 0)?;
                self.base = 0;
            }
        }
        self.positions = len as u32;
        self.history.reserve(stream, len)?;
        self.overflow.reserve(stream, len)?;
        self.leftovers.reserve(stream, len)
    }
}

impl Work {
    /// Makes what the first insertion starts from.
    pub fn new(stream: &Stream, storage: &Storage) -> Result<Self, Error> {
        Ok(Self {
            counters: Counters::new(stream)?,
            locks: stream.uninit(0)?,
            marks: stream.uninit(0)?,
            batches: 0,
            hash: storage.hash(),
            lists: Lists::new(stream, storage.sizes())?,
        })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.counters.words.len() * size_of::<u64>()
            + (self.locks.len() + self.marks.len()) * size_of::<u32>()
            + self.lists.bytes()
    }

    /// Frees the lists if they are larger than this.
    pub fn trim(&mut self, stream: &Stream, bytes: usize) -> Result<(), Error> {
        if self.lists.bytes() > bytes {
            self.lists = Lists::new(stream, pairs::sizes_of(self.lists.overflow.slices()))?;
        }
        Ok(())
    }

    /// Prepares the insertion of a batch into a table of so many buckets. Allocates what is missing; does not wait.
    pub fn prepare(&mut self, stream: &Stream, batch: &Batch<'_>, buckets: u32) -> Result<(), Error> {
        self.lists.prepare(stream, batch.pairs.0.len())?;
        self.prepare_locks(stream, buckets)?;
        if batch.is_distinct() { Ok(()) } else { self.prepare_marks(stream, buckets) }
    }

    /// Makes sure that there is a lock for every bucket. Does not wait.
    pub fn prepare_locks(&mut self, stream: &Stream, buckets: u32) -> Result<(), Error> {
        if self.locks.len() < lock_words(buckets) {
            self.locks = stream.zeroed(lock_words(buckets))?;
        }
        Ok(())
    }

    /// Makes sure that there is a mark for every bucket, and that no slot is marked. Does not wait.
    pub fn prepare_marks(&mut self, stream: &Stream, buckets: u32) -> Result<(), Error> {
        if self.marks.len() < buckets as usize {
            (self.marks, self.batches) = (stream.zeroed(buckets as usize)?, 0);
        } else if self.batches == Marks::LAST_BATCH {
            transfer::fill(stream, &mut self.marks, 0)?;
            self.batches = 0;
        }
        self.batches += 1;
        Ok(())
    }

    /// Returns the entries of the batch, and the list of what became of its pairs.
    pub fn entries_and_history(&mut self) -> Result<(EntrySlice<'_>, &mut PairVec), Error> {
        let Lists { entries, base, positions, history, .. } = &mut self.lists;
        Ok((entry_slice(entries, *base, *positions, self.hash)?, history))
    }

    /// Returns the fates and the old values of the first `len` pairs of the batch.
    pub fn history(&self, len: usize) -> Result<PairSlices<'_>, Error> {
        self.lists.history.first(len)
    }

    /// Returns the first `len` leftovers.
    pub fn leftovers(&self, len: usize) -> Result<PairSlices<'_>, Error> {
        self.lists.leftovers.first(len)
    }
}

/// Returns the entries of a batch of so many positions.
pub fn entry_slice(
    entries: &mut DeviceVec<u32>,
    base: u32,
    positions: u32,
    hash: Hash,
) -> Result<EntrySlice<'_>, Error> {
    let len = (ENTRIES_PER_POSITION * positions as usize).min(entries.len());
    Ok(EntrySlice { words: entries.as_mut_slice().slice_mut(..len)?, hash, base })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GpuCuckoo, Options, WhenFull};
    use gpu_primitives::Device;
    use gpu_primitives::scan::Sum;

    /// The numbers of batches and the positions in the entries are used up, and begin anew.
    #[test]
    fn numbers_begin_anew() {
        for device in [Device::cpu_checked(), Device::cpu()] {
            let stream = device.stream().unwrap();
            let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0).capacity(20_000)).unwrap();
            let keys: Vec<u32> = (0..300).chain(100..400).collect();
            let on_device = stream.upload(&keys).unwrap();
            let insert = |table: &mut GpuCuckoo<u32, u32>, round: u32| {
                let values: Vec<u32> = (0..600).map(|i| 1000 * round + i).collect();
                table.insert(&stream, (&on_device, &stream.upload(&values).unwrap())).unwrap();
                let all = table.export(&stream).unwrap().to_vec(&stream).unwrap();
                let expected = |key| 1000 * round + if key < 100 { key } else { 200 + key };
                assert_eq!(all, (0..400).map(|key| (key, expected(key))).collect::<Vec<_>>(), "round {round}");
            };
            insert(&mut table, 0);
            let work = table.raw.work.as_mut().unwrap();
            work.batches = Marks::LAST_BATCH - 2;
            work.lists.base = u32::MAX - 2000;
            for round in 1..8 {
                insert(&mut table, round);
            }
            let work = table.raw.work.as_ref().unwrap();
            assert!(work.batches < 8 && work.lists.base < 8000);
        }
    }

    /// Marks all slots as if other threads with the same keys had marked them just before. This is how a thread that has
    /// claimed a slot yields to one that has seen its key and was faster, which only a GPU brings about.
    fn mark_all(stream: &Stream, table: &mut GpuCuckoo<u32, u32>) {
        let work = table.raw.work.as_mut().unwrap();
        transfer::fill(stream, &mut work.marks, ((work.batches + 1) << 8) | 0xFF).unwrap();
    }

    #[test]
    fn pairs_yield() {
        for device in [Device::cpu_checked(), Device::cpu()] {
            let stream = device.stream().unwrap();
            let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().seed(0).capacity(20_000)).unwrap();
            let present = stream.upload(&(0..300).collect::<Vec<u32>>()).unwrap();
            table.insert(&stream, (&present, &present)).unwrap();

            // Some are present, and all come twice.
            let keys = stream.upload(&(200..500).chain(200..500).collect::<Vec<u32>>()).unwrap();
            let values = stream.upload(&(1000..1600).collect::<Vec<u32>>()).unwrap();
            mark_all(&stream, &mut table);
            table.insert(&stream, (&keys, &values)).unwrap();
            let inserted = |key| if key < 200 { key } else { 1100 + key };
            let all = table.export(&stream).unwrap().to_vec(&stream).unwrap();
            assert_eq!(all, (0..500).map(|key| (key, inserted(key))).collect::<Vec<_>>());
            assert_eq!(table.len(&stream).unwrap(), 500);

            // The same with keys from 400 on.
            let keys = stream.upload(&(400..700).chain(400..700).collect::<Vec<u32>>()).unwrap();
            mark_all(&stream, &mut table);
            table.upsert(&stream, (&keys, &values), Sum).unwrap();
            let upserted = |key| match key {
                0..400 => inserted(key),
                400..500 => inserted(key) + 2 * key + 1500,
                _ => 2 * key + 1500,
            };
            let all = table.export(&stream).unwrap().to_vec(&stream).unwrap();
            assert_eq!(all, (0..700).map(|key| (key, upserted(key))).collect::<Vec<_>>());
            assert_eq!(table.len(&stream).unwrap(), 700);
        }
    }

    /// An insertion in which all pairs yield, and some find no room, is undone.
    #[test]
    fn pairs_that_yielded_are_removed() {
        for device in [Device::cpu_checked(), Device::cpu()] {
            let stream = device.stream().unwrap();
            let options = Options::new().seed(0).bucket_width(4).evictions(0).reseeds(0).when_full(WhenFull::Refuse);
            let mut table = GpuCuckoo::<u32, u32>::new(&stream, options.capacity(1700)).unwrap();
            let present = stream.upload(&(0..500).collect::<Vec<u32>>()).unwrap();
            table.insert(&stream, (&present, &present)).unwrap();
            let keys = stream.upload(&(400..2010).collect::<Vec<u32>>()).unwrap();
            mark_all(&stream, &mut table);
            let error = table.insert(&stream, (&keys, &keys)).unwrap_err();
            assert!(matches!(error, Error::TableFull { .. }), "{error}");
            let all = table.export(&stream).unwrap().to_vec(&stream).unwrap();
            assert_eq!(all, (0..500).map(|key| (key, key)).collect::<Vec<_>>());
        }
    }
}
