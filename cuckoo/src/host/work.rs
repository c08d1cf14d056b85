//! What an insertion works with: counters, locks, marks and lists. The table keeps them from call to call.

use super::build::lock_words;
use super::pairs::{self, PairSlices, PairVec, Sizes, typed, typed_mut};
use super::storage::{PlaceJob, Storage, probe_blocks, with_table};
use crate::device::{Claim, Claims, ENTRIES_PER_POSITION, Entries, Latest, Marks, Raise, Revert, Settle, Sweep, Take};
use crate::hash::Hash;
use gpu_dictionary::{Carrier, WordCode as KeyCode};
use gpu_primitives::kernel::View;
use gpu_primitives::monoid::{Combine, HoleMonoid};
use gpu_primitives::{
    AnySlice, AnyVec, DeviceSlice, DeviceSliceMut, DeviceValue, DeviceVec, Error, Stream, sized, transfer,
};

/// What an insertion does with the value of a key that is present.
#[derive(Clone, Copy)]
pub enum Operation {
    /// Replaces it by the new one.
    Latest,
    /// Combines it with the new one, of 4 bytes.
    Four(HoleMonoid<u32>),
    /// Combines it with the new one, of 8 bytes.
    Eight(HoleMonoid<u64>),
}

/// Pairs to insert.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub pairs: PairSlices<'a>,
    pub equal_keys: EqualKeys,
}

/// What a batch does about equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EqualKeys {
    /// All keys are known to be different.
    None,
    /// The last one counts.
    LastCounts,
    /// All of them count.
    AllCount,
}

impl Batch<'_> {
    /// Returns whether all keys are known to be different.
    pub fn is_distinct(&self) -> bool {
        self.equal_keys == EqualKeys::None
    }
}

/// What an insertion works with.
///
/// Nothing of it has to be cleared for a batch. Locks are free when they are not in use. Marks and entries carry numbers
/// that say which batch they are of. There are two sets of counters, and the kernel that places pairs clears the one that
/// is not in use.
#[derive(Debug)]
pub struct Work {
    counters: DeviceVec<u64>,
    uses_second_set: bool,
    /// One bit per bucket.
    locks: DeviceVec<u32>,
    /// The words of [`Marks`].
    marks: DeviceVec<u32>,
    /// The largest number of a batch among the marks.
    batches: u32,
    /// The hash functions of the table when the batch was inserted.
    hash: Hash,
    lists: Lists,
}

/// Memory whose size depends on the batch.
#[derive(Debug)]
struct Lists {
    /// The last positions of keys.
    entries: DeviceVec<u32>,
    /// Entries up to this one are of earlier batches.
    base: u32,
    /// The length of the batch: entries are at most the sum of both.
    positions: u32,
    /// What became of the pairs of the batch, and the old values.
    history: PairVec,
    /// Room for the pairs that find all of their buckets full.
    overflow: PairVec,
    /// Room for the pairs that cannot be placed.
    leftovers: PairVec,
}

/// The counters, read back.
pub struct Counts {
    /// Pairs that have the key of another pair.
    pub repeats: u64,
    /// Keys that were absent.
    pub new: u64,
    pub unplaced: u64,
}

/// The counters in use, each of one element, and the others.
struct Counters<'a> {
    moved: DeviceSliceMut<'a, u64>,
    unplaced: DeviceSliceMut<'a, u64>,
    /// Those of [`Claims`].
    claims: DeviceSliceMut<'a, u64>,
    /// The set that is not in use.
    others: DeviceSliceMut<'a, u64>,
}

/// The number of counters in a set.
const SET: usize = 2 + Claims::ALL;

/// Returns the counters.
fn counters(both: &mut DeviceVec<u64>, uses_second_set: bool) -> Result<Counters<'_>, Error> {
    let (first, second) = both.as_mut_slice().split_at_mut(SET)?;
    let (used, others) = if uses_second_set { (second, first) } else { (first, second) };
    let (moved, rest) = used.split_at_mut(1)?;
    let (unplaced, claims) = rest.split_at_mut(1)?;
    Ok(Counters { moved, unplaced, claims, others })
}

/// Returns one of the counters of [`Claims`].
fn counter(claims: DeviceSliceMut<'_, u64>, counter: Claims) -> Result<DeviceSliceMut<'_, u64>, Error> {
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

/// Returns no room for what became of pairs.
fn no_history(stream: &Stream, sizes: Sizes) -> Result<PairVec, Error> {
    PairVec::uninit(stream, Sizes { key: 1, ..sizes }, 0)
}

/// What finds equal keys, if there can be any.
enum Repeats<'a> {
    /// All keys are different.
    None,
    /// Keys may be equal.
    Possible {
        /// A mark for every bucket.
        marks: &'a mut DeviceVec<u32>,
        /// A number that no mark has, from 1 to [`Marks::LAST_BATCH`].
        batch: u32,
        entries: EntrySlice<'a>,
        /// Whether all pairs with equal keys are to be recorded in the entries, or at least the last one.
        all_count: bool,
    },
}

/// Entries for the last positions of keys: more of them than keys, all at most `base` before. The base plus the number of
/// keys is less than 2^32.
struct EntrySlice<'a> {
    words: DeviceSliceMut<'a, u32>,
    /// Decides where the search for a key begins.
    hash: Hash,
    base: u32,
}

impl EntrySlice<'_> {
    /// Returns the entries as an argument for kernels on `stream`.
    fn view(&mut self, stream: &Stream) -> Result<View<'_, Entries>, Error> {
        Entries::view(stream, &mut self.words, self.hash, self.base)
    }
}

/// An insertion that displaces no pairs. Of equal keys one takes part; [`Work::settle`] corrects its value.
struct ClaimJob<'a> {
    pairs: PairSlices<'a>,
    /// The number of pairs to insert, from the first one on: one element. All pairs if there is none.
    count: Option<DeviceSlice<'a, u64>>,
    /// What finds equal keys.
    repeats: Repeats<'a>,
    /// Room for the fate of every pair and for the old values; or none.
    history: &'a mut PairVec,
    /// Room for the pairs that find all of their buckets full.
    overflow: &'a mut PairVec,
    /// The counters of [`Claims`], to which the numbers are added.
    counts: DeviceSliceMut<'a, u64>,
}

impl ClaimJob<'_> {
    /// Inserts the pairs. The old value of a key and the new one are combined. Does not wait.
    ///
    /// # Safety
    /// The buffers are as [`ClaimJob`] describes them. `count` is at most the number of pairs. If there can be no repeats,
    /// the keys are different. There is room for the overflow. The operation is one of the table's values.
    unsafe fn launch(self, stream: &Stream, storage: &mut Storage, operation: Operation) -> Result<(), Error> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match operation {
                Operation::Latest => {
                    with_table!(storage => C, V, self.launch_typed::<C, V, WIDTH, _>(stream, storage, Latest))
                }
                Operation::Four(operation) => {
                    with_table!(storage => C, V in u32, self.launch_typed::<C, V, WIDTH, _>(stream, storage, operation))
                }
                Operation::Eight(operation) => {
                    with_table!(storage => C, V in u64, self.launch_typed::<C, V, WIDTH, _>(stream, storage, operation))
                }
            }
        }
    }

    /// # Safety
    /// The requirements of [`launch`](Self::launch). The types are those of the table.
    unsafe fn launch_typed<C: KeyCode, V: Carrier, const WIDTH: usize, O: Combine<V>>(
        self,
        stream: &Stream,
        storage: &mut Storage,
        operation: O,
    ) -> Result<(), Error> {
        let ClaimJob { pairs, count, repeats, history, overflow, mut counts } = self;
        let len = pairs.0.len();
        if len == 0 {
            return Ok(());
        }
        let (no_count, mut no_marks, mut no_entries) = (stream.uninit(0)?, stream.uninit(0)?, stream.uninit(0)?);
        let count = count.unwrap_or(no_count.as_slice());
        let (marks, batch, mut entries, all_count) = match repeats {
            Repeats::None => {
                let entries = EntrySlice { words: no_entries.as_mut_slice(), hash: storage.hash(), base: 0 };
                (&mut no_marks, 0, entries, false)
            }
            Repeats::Possible { marks, batch, entries, all_count } => (marks, batch, entries, all_count),
        };
        let kernel = Claim::new(
            storage.view_mut::<C, V, WIDTH>(stream)?,
            pairs::view(stream, pairs)?,
            count.view(stream)?,
            Marks::view(stream, marks, batch, all_count)?,
            entries.view(stream)?,
            operation,
            history.view_mut(stream)?,
            overflow.view_mut(stream)?,
            counts.view_mut(stream)?,
        );
        // SAFETY: there is a thread per pair. The rest is guaranteed by the caller.
        unsafe { stream.launch(kernel, probe_blocks(len)) }
    }
}

/// Returns the entries of a batch of so many positions.
fn entry_slice(entries: &mut DeviceVec<u32>, base: u32, positions: u32, hash: Hash) -> Result<EntrySlice<'_>, Error> {
    let len = (ENTRIES_PER_POSITION * positions as usize).min(entries.len());
    Ok(EntrySlice { words: entries.as_mut_slice().slice_mut(..len)?, hash, base })
}

impl Work {
    /// Makes what the first insertion starts from.
    pub fn new(stream: &Stream, storage: &Storage) -> Result<Self, Error> {
        Ok(Self {
            counters: stream.zeroed(2 * SET)?,
            uses_second_set: false,
            locks: stream.uninit(0)?,
            marks: stream.uninit(0)?,
            batches: 0,
            hash: storage.hash(),
            lists: Lists::new(stream, storage.sizes())?,
        })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.counters.len() * size_of::<u64>()
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
    fn prepare_locks(&mut self, stream: &Stream, buckets: u32) -> Result<(), Error> {
        if self.locks.len() < lock_words(buckets) {
            self.locks = stream.zeroed(lock_words(buckets))?;
        }
        Ok(())
    }

    /// Makes sure that there is a mark for every bucket, and that no slot is marked. Does not wait.
    fn prepare_marks(&mut self, stream: &Stream, buckets: u32) -> Result<(), Error> {
        if self.marks.len() < buckets as usize {
            (self.marks, self.batches) = (stream.zeroed(buckets as usize)?, 0);
        } else if self.batches == Marks::LAST_BATCH {
            transfer::fill(stream, &mut self.marks, 0)?;
            self.batches = 0;
        }
        self.batches += 1;
        Ok(())
    }

    /// Looks up keys, and deletes those that are present. Returns the values, and 1 or 0 for each key. Adds the number of
    /// deleted keys to `erased`. Does not wait.
    pub fn take(
        &mut self,
        stream: &Stream,
        storage: &mut Storage,
        keys: AnySlice<'_>,
        erased: &mut DeviceValue<u64>,
    ) -> Result<(AnyVec, DeviceVec<u8>), Error> {
        self.prepare_marks(stream, storage.buckets())?;
        let Sizes { value, .. } = storage.sizes();
        let mut values = AnyVec::uninit(stream, value, if value == 0 { 0 } else { keys.len() })?;
        let mut found = stream.uninit(keys.len())?;
        if keys.is_empty() {
            return Ok((values, found));
        }
        let (marks, batch, mut erased) = (&mut self.marks, self.batches, erased.as_mut_slice());
        with_table!(storage => C, V, {
            let mut written = typed_mut::<V>(&mut values);
            let take = Take::new(
                storage.view::<C, V, WIDTH>(stream)?,
                Marks::view(stream, marks, batch, false)?,
                typed::<C>(keys).view(stream)?,
                written.view_mut(stream)?,
                found.view_mut(stream)?,
            );
            // SAFETY: there is a thread per key, and there are as many results, or no values if they are zero-sized. There is a
            // mark for every bucket, and none is of this batch.
            unsafe { stream.launch(take, probe_blocks(keys.len()))? };
            let (slots, table) = (storage.slots() as usize, storage.view_mut::<C, V, WIDTH>(stream)?);
            let sweep = Sweep::new(table, Marks::view(stream, marks, batch, false)?, erased.view_mut(stream)?);
            // SAFETY: there is a thread per slot. The marks are those of keys that were found.
            unsafe { stream.launch(sweep, probe_blocks(slots))? };
        });
        Ok((values, found))
    }

    /// Inserts a batch. Each key displaces at most `limit` others. Without a limit, keys that find no free slot become
    /// leftovers at once: threads that displace keys wait for each other, which takes long in a table that is too small. Does
    /// not wait; allocates nothing.
    ///
    /// # Safety
    /// The work was prepared for this batch and at least so many buckets, and has not been used since then. If the batch says that
    /// its keys are different, they are. The operation is one of the table's values.
    pub unsafe fn insert(
        &mut self,
        stream: &Stream,
        storage: &mut Storage,
        batch: &Batch<'_>,
        operation: Operation,
        limit: Option<u32>,
    ) -> Result<(), Error> {
        self.hash = storage.hash();
        let Lists { entries, base, positions, history, overflow, .. } = &mut self.lists;
        let repeats = if batch.is_distinct() {
            Repeats::None
        } else {
            let entries = entry_slice(entries, *base, *positions, self.hash)?;
            let all_count = batch.equal_keys == EqualKeys::AllCount;
            Repeats::Possible { marks: &mut self.marks, batch: self.batches, entries, all_count }
        };
        let Counters { claims, .. } = counters(&mut self.counters, self.uses_second_set)?;
        let job = ClaimJob { pairs: batch.pairs, count: None, repeats, history, overflow, counts: claims };
        // SAFETY: marks and entries were prepared for the batch, and so was the history. There is room for the overflow of
        // the batch. The caller guarantees the rest.
        unsafe { job.launch(stream, storage, operation)? };
        if let Some(limit) = limit {
            // SAFETY: the overflow has as many pairs as were counted. Their keys are different and not in the table.
            return unsafe { self.place(stream, storage, limit) };
        }
        std::mem::swap(&mut self.lists.overflow, &mut self.lists.leftovers);
        let Counters { claims, mut unplaced, others, .. } = counters(&mut self.counters, self.uses_second_set)?;
        unplaced.copy_from(stream, counter(claims, Claims::Overflowed)?.as_slice())?;
        transfer::fill(stream, others, 0)
    }

    /// Gives equal keys of the batch the value of the last one. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The batch was inserted with the operation [`Latest`], and the work was not used since then except for leftovers. All
    /// its keys are in the table.
    pub unsafe fn settle(&mut self, stream: &Stream, storage: &mut Storage, batch: &Batch<'_>) -> Result<(), Error> {
        let sizes = storage.sizes();
        if sizes.value == 0 {
            return Ok(());
        }
        let (keys, blocks) = (batch.pairs.0, probe_blocks(batch.pairs.0.len()));
        let Lists { entries, base, positions, history, .. } = &mut self.lists;
        let mut entries = entry_slice(entries, *base, *positions, self.hash)?;
        let fates = typed::<u8>(history.keys.as_slice().slice(0..keys.len())?);
        sized!(sizes.key => C in u32 | u64, {
            let raise = Raise::new(typed::<C>(keys).view(stream)?, fates.view(stream)?, entries.view(stream)?);
            // SAFETY: there is a thread per key. The fates and the entries are what the insertion wrote.
            unsafe { stream.launch(raise, blocks)? };
        }, else unreachable!("{sizes:?}"));
        with_table!(storage => C, V in u32 | u64, {
            let (table, pairs) = (storage.view_mut::<C, V, WIDTH>(stream)?, pairs::view(stream, batch.pairs)?);
            let settle = Settle::new(table, pairs, fates.view(stream)?, entries.view(stream)?);
            // SAFETY: there is a thread per pair. The fates and the entries are what the insertion wrote. The caller guarantees
            // the rest.
            unsafe { stream.launch(settle, blocks) }
        })
    }

    /// Takes back what the batch has done to its equal keys. Returns 1 for each of their pairs, and 0 for the others. Adds the
    /// number of keys that are absent again to `erased`. Does not wait.
    ///
    /// # Safety
    /// The batch was inserted, and all of its equal keys count. The work was not used since then except for leftovers. All keys
    /// of the batch are in the table.
    pub unsafe fn revert(
        &mut self,
        stream: &Stream,
        storage: &mut Storage,
        batch: &Batch<'_>,
        erased: &mut DeviceValue<u64>,
    ) -> Result<DeviceVec<u8>, Error> {
        let keys = batch.pairs.0;
        let mut reverted = stream.uninit(keys.len())?;
        let Lists { entries, base, positions, history, .. } = &mut self.lists;
        let mut entries = entry_slice(entries, *base, *positions, self.hash)?;
        let mut erased = erased.as_mut_slice();
        with_table!(storage => C, V in u32 | u64, {
            let kernel = Revert::new(
                storage.view_mut::<C, V, WIDTH>(stream)?,
                typed::<C>(keys).view(stream)?,
                history.view_mut(stream)?,
                entries.view(stream)?,
                reverted.view_mut(stream)?,
                erased.view_mut(stream)?,
            );
            // SAFETY: there is a thread and a result per key. The history and the entries are what the insertion wrote. The
            // caller guarantees the rest.
            unsafe { stream.launch(kernel, probe_blocks(keys.len()))? };
        });
        Ok(reverted)
    }

    /// Copies a table of `len` keys to one with twice as many buckets, and inserts the first `unplaced` leftovers there.
    /// Returns `None` if there can be no such table, or if some pairs cannot be placed. The leftovers stay as they are. Waits.
    ///
    /// # Safety
    /// The leftovers have different keys, which are not in the table.
    pub unsafe fn split_with_leftovers(
        &mut self,
        stream: &Stream,
        storage: &Storage,
        len: usize,
        unplaced: usize,
        limit: u32,
    ) -> Result<Option<Storage>, Error> {
        self.lists.overflow.reserve(stream, len + unplaced)?;
        let others = PairVec::uninit(stream, storage.sizes(), len + unplaced)?;
        let leftovers = std::mem::replace(&mut self.lists.leftovers, others);
        // SAFETY: there is room for the overflow of all pairs, and for those that cannot be placed. The caller guarantees the
        // rest.
        let result =
            leftovers.first(unplaced).and_then(|pairs| unsafe { self.split(stream, storage, len, pairs, limit) });
        self.lists.leftovers = leftovers;
        result
    }

    /// Copies a table of `len` keys to one with twice as many buckets, and inserts the pairs that this moves, and others.
    /// Returns `None` if there can be no such table, or if some pairs cannot be placed. Waits.
    ///
    /// # Safety
    /// The overflow and the leftovers have room for all pairs. The others have different keys, which are not in the table.
    unsafe fn split(
        &mut self,
        stream: &Stream,
        storage: &Storage,
        len: usize,
        others: PairSlices<'_>,
        limit: u32,
    ) -> Result<Option<Storage>, Error> {
        self.prepare_locks(stream, storage.buckets().saturating_mul(2))?;
        let mut moved = PairVec::uninit(stream, storage.sizes(), len)?;
        let Counters { moved: mut count, mut claims, .. } = counters(&mut self.counters, self.uses_second_set)?;
        // SAFETY: there is room for all pairs.
        let Some(mut larger) = (unsafe { storage.split(stream, &mut moved, count.reborrow())? }) else {
            return Ok(None);
        };
        for (pairs, count) in [(moved.slices(), Some(count.as_slice())), (others, None)] {
            let job = ClaimJob {
                pairs,
                count,
                repeats: Repeats::None,
                history: &mut no_history(stream, storage.sizes())?,
                overflow: &mut self.lists.overflow,
                counts: claims.reborrow(),
            };
            // SAFETY: the keys of a table are different, and the split has counted those that it moves. The others are not
            // among them. There is room for their overflow.
            unsafe { job.launch(stream, &mut larger, Operation::Latest)? };
        }
        // SAFETY: the overflow has as many pairs as were counted. Their keys are not in the table.
        unsafe { self.place(stream, &mut larger, limit)? };
        Ok((self.counts(stream)?.unplaced == 0).then_some(larger))
    }

    /// Places the pairs of the overflow, as many as are counted. Those that cannot be placed become the leftovers, and are
    /// counted. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The count is right. The keys are different and not in the table. The work was prepared for at least so many buckets.
    unsafe fn place(&mut self, stream: &Stream, storage: &mut Storage, limit: u32) -> Result<(), Error> {
        let Counters { claims, unplaced, others, .. } = counters(&mut self.counters, self.uses_second_set)?;
        let overflowed = counter(claims, Claims::Overflowed)?;
        let job = PlaceJob {
            pairs: self.lists.overflow.slices(),
            count: overflowed.as_slice(),
            skip_first: false,
            limit,
            locks: self.locks.as_mut_slice(),
            leftovers: &mut self.lists.leftovers,
            unplaced,
            cleared: others,
        };
        // SAFETY: there is a lock for every bucket. Each pair leaves at most one pair over, and there is room for them. The
        // caller guarantees the rest.
        unsafe { storage.place(stream, job) }
    }

    /// Places the first `len` leftovers. Returns how many are left over again. Waits; allocates nothing.
    ///
    /// # Safety
    /// The leftovers have different keys, which are not in the table. The work was prepared for at least so many buckets.
    pub unsafe fn place_leftovers(
        &mut self,
        stream: &Stream,
        storage: &mut Storage,
        len: usize,
        limit: u32,
    ) -> Result<usize, Error> {
        std::mem::swap(&mut self.lists.overflow, &mut self.lists.leftovers);
        let Counters { claims, mut unplaced, .. } = counters(&mut self.counters, self.uses_second_set)?;
        counter(claims, Claims::Overflowed)?.copy_from_host(stream, &[len as u64])?;
        unplaced.copy_from_host(stream, &[0])?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.place(stream, storage, limit)? };
        Ok(self.counts(stream)?.unplaced as usize)
    }

    /// Replaces the values of keys by those of the first `len` leftovers. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The leftovers have different keys, which are all in the table.
    pub unsafe fn assign_leftovers(&mut self, stream: &Stream, storage: &mut Storage, len: usize) -> Result<(), Error> {
        let Counters { claims, .. } = counters(&mut self.counters, self.uses_second_set)?;
        let job = ClaimJob {
            pairs: self.lists.leftovers.first(len)?,
            count: None,
            repeats: Repeats::None,
            history: &mut no_history(stream, storage.sizes())?,
            overflow: &mut self.lists.overflow,
            counts: claims,
        };
        // SAFETY: the keys are different and in the table. So there is no overflow.
        unsafe { job.launch(stream, storage, Operation::Latest) }
    }

    /// Reads the counters, and begins to count anew. At least one list of pairs has been placed since the last time. Waits.
    pub fn counts(&mut self, stream: &Stream) -> Result<Counts, Error> {
        let start = if self.uses_second_set { SET } else { 0 };
        let mut counts = [0; SET];
        self.counters.slice(start..start + SET)?.copy_to_host(stream, &mut counts)?;
        self.uses_second_set = !self.uses_second_set;
        let [_, unplaced, claims @ ..] = counts;
        Ok(Counts { unplaced, new: claims[Claims::New as usize], repeats: claims[Claims::Repeats as usize] })
    }

    /// Returns the fates and the old values of the first `len` pairs of the batch.
    pub fn history(&self, len: usize) -> Result<PairSlices<'_>, Error> {
        self.lists.history.first(len)
    }

    /// Returns the first `len` leftovers.
    pub fn leftovers(&self, len: usize) -> Result<PairSlices<'_>, Error> {
        self.lists.leftovers.first(len)
    }

    /// Returns the lists of the overflow and of the leftovers. They have room for as many pairs as the batch.
    pub fn lists(&mut self) -> (&mut PairVec, &mut PairVec) {
        (&mut self.lists.overflow, &mut self.lists.leftovers)
    }
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
