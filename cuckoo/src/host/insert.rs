//! The table: insertions.

use super::build::{MAX_KEYS, NAME};
use super::claim::{Batch, Claiming, EqualKeys, Operation, Repeats};
use super::options::WhenFull;
use super::pairs::{Given, PairSlices, PairVec, typed, typed_mut};
use super::repeats::{AtLast, CombineRuns};
use super::storage::with_table;
use super::table::{GpuCuckoo, RawTable, of_caller};
use super::work::{Counts, InUse, Lists, Work, counter, entry_slice};
use crate::device::{Claim, Claims, Erase, Fate, Latest, PlacePairs};
use gpu_dictionary::{Upsertion, Value, WordKey as Key};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::HoleMonoid;
use gpu_primitives::{DeviceKind, DeviceSlice, Error, Stream, runs, sized, transfer};

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Inserts pairs: keys, and as many values. Inserting a key that is already present replaces its value. If a key
    /// occurs more than once, the last pair wins. For zero-sized values, pass an empty slice. Waits once, to learn whether
    /// all keys have found a slot.
    ///
    /// New keys take free slots. If some find none, and the load would pass 0.85 (or the load factor, if that is higher), the
    /// table doubles, and the call waits three times. A table that may not grow fails at a load of 0.95 instead.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut table = GpuCuckoo::<u32, u32>::new(&stream, Options::new().capacity(100))?;
    /// table.insert(&stream, (&stream.upload(&[1u32, 2, 1])?, &stream.upload(&[10u32, 20, 30])?))?;
    /// table.insert(&stream, (&stream.upload(&[2u32])?, &stream.upload(&[40u32])?))?;
    /// assert_eq!(table.export(&stream)?.to_vec(&stream)?, [(1, 30), (2, 40)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TooLong`] for 2^32 - 1 keys or more.
    /// - [`Error::TableFull`] if there is no room and the table may not grow.
    /// - [`Error::OutOfMemory`].
    /// - [`Error::NotRecordable`] while the stream is recording.
    /// - Any launch error.
    ///
    /// After an error the table holds the same pairs as before.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        self.raw.insert(stream, of_caller(pairs))
    }

    /// Inserts pairs, and combines the value of a key that is already present with the new one: `combine(old, new)`. If a
    /// key occurs more than once, its values are combined in the order of the pairs. Waits once; more often if keys occur more
    /// than once, or if the table grows.
    ///
    /// The operation is one of the library ([`Sum`](gpu_primitives::scan::Sum), [`Max`](gpu_primitives::scan::Max),
    /// [`Min`](gpu_primitives::scan::Min)) or your own [`Monoid`](gpu_primitives::monoid::Monoid). If it is not associative, keys that occur more than once
    /// get some value.
    ///
    /// If all keys of the batch are different, this costs as much as an insertion. Otherwise the pairs that share their keys
    /// with others are sorted and combined, and inserted after the others.
    ///
    /// ```
    /// use gpu_cuckoo::{GpuCuckoo, Options};
    /// use gpu_primitives::operator::monoid;
    /// use gpu_primitives::scan::Sum;
    /// use gpu_primitives::{Device, Error};
    ///
    /// // Counts words.
    /// let stream = Device::cpu().stream()?;
    /// let mut counts = GpuCuckoo::<u32, u32>::new(&stream, Options::new())?;
    /// for words in [[7, 3, 7, 7], [3, 5, 5, 3]] {
    ///     counts.upsert(&stream, (&stream.upload(&words)?, &stream.upload(&[1; 4])?), Sum)?;
    /// }
    /// assert_eq!(counts.export(&stream)?.to_vec(&stream)?, [(3, 3), (5, 2), (7, 3)]);
    ///
    /// // An operation of your own.
    /// let (keys, flags) = (stream.upload(&[3, 9])?, stream.upload(&[8, 16])?);
    /// counts.upsert(&stream, (&keys, &flags), monoid!(0, |a: u32, b: u32| a | b))?;
    /// assert_eq!(counts.lookup(&stream, &keys)?.to_vec(&stream)?, [Some(11), Some(16)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// - The errors of [`insert`](Self::insert).
    /// - [`Error::KernelFault`] on a CPU if the operation panics.
    ///
    /// After an error the table holds the same pairs as before. (On a CPU device that simulates threads in a random order, some
    /// pairs of the batch may remain after a panic: other threads stop where they are.)
    pub fn upsert<'a, M: Upsertion<V>>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: M,
    ) -> Result<(), Error> {
        // The sizes are compared as constants, so that only one of these is compiled.
        let carried = if const { size_of::<V>() == 0 } {
            return self.insert(stream, pairs);
        } else if const { size_of::<V>() == 4 } {
            Operation::Four(HoleMonoid::of::<V, M>(operation))
        } else {
            Operation::Eight(HoleMonoid::of::<V, M>(operation))
        };
        let combine_runs = |sorted: PairSlices<'_>, to: &mut PairVec| {
            let (values, totals) = (typed::<V>(sorted.1), typed_mut::<V>(&mut to.values));
            // The equality of numbers is one of `u32` and of `u64`, not of all codes.
            if const { size_of::<K>() == size_of::<u32>() } {
                let keys = (typed::<u32>(sorted.0), typed_mut::<u32>(&mut to.keys));
                runs::reduce_by_key(stream, (keys.0, values), (keys.1, totals), Same, operation)
            } else {
                let keys = (typed::<u64>(sorted.0), typed_mut::<u64>(&mut to.keys));
                runs::reduce_by_key(stream, (keys.0, values), (keys.1, totals), Same, operation)
            }
        };
        // SAFETY: the operation is one of `V`.
        unsafe { self.raw.upsert(stream, of_caller(pairs), carried, &combine_runs) }
    }
}

impl RawTable {
    pub(super) fn insert(&mut self, stream: &Stream, pairs: PairSlices<'_>) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::insert", pairs.0.len());
        stream.refuse_recording("an insertion")?;
        let given = Given::new(stream, pairs)?;
        let batch = Batch { pairs: given.slices(), equal_keys: EqualKeys::LastCounts };
        // SAFETY: the new value replaces the old one, whatever they are.
        unsafe { self.add(stream, &batch, Operation::Latest, AtLast::Settle) }
    }

    /// # Safety
    /// The operation is one of the table's values.
    unsafe fn upsert(
        &mut self,
        stream: &Stream,
        pairs: PairSlices<'_>,
        operation: Operation,
        combine_runs: CombineRuns<'_>,
    ) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "cuckoo::upsert", pairs.0.len());
        stream.refuse_recording("an insertion")?;
        let given = Given::new(stream, pairs)?;
        let batch = Batch { pairs: given.slices(), equal_keys: EqualKeys::AllCount };
        // SAFETY: guaranteed by the caller.
        unsafe { self.add(stream, &batch, operation, AtLast::Combine(combine_runs)) }
    }

    /// Inserts a batch. Finds more slots for the pairs that cannot be placed. If that fails, restores the previous contents.
    /// At last gives equal keys their values, if there are any. Waits.
    ///
    /// Nothing is counted beforehand: most batches find their slots at once, whatever the load.
    ///
    /// # Safety
    /// The operation is one of the table's values. If the batch says that its keys are different, they are. The new value is the
    /// operation's result if equal keys are to be settled.
    pub(super) unsafe fn add(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_>,
        operation: Operation,
        at_last: AtLast<'_>,
    ) -> Result<(), Error> {
        let batch_len = batch.pairs.0.len();
        expect_at_most(batch_len)?;
        if batch_len == 0 {
            return Ok(());
        }
        self.count_additions(stream)?;
        self.load_kernels(stream)?;
        let mut work = self.take_work(stream)?;
        work.prepare(stream, batch, self.storage.buckets())?;
        let limit = self.has_room_for(batch_len).then_some(self.options.evictions);
        if limit.is_none() {
            // No kernel places pairs, which would clear these.
            transfer::fill(stream, work.counters.in_use()?.others, 0)?;
        }
        // SAFETY: the work is for this batch and this table. The caller guarantees the rest.
        let inserted = match unsafe { self.claim_slots(stream, &mut work, batch, operation) } {
            // SAFETY: the overflow has as many pairs as were counted. Their keys are different and not in the table.
            Ok(()) => unsafe { self.place_or_set_aside(stream, &mut work, limit) },
            // The kernel has run, up to the operation that panicked.
            Err(fault @ Error::KernelFault(_)) => Err(fault),
            Err(error) => return Err(error),
        };
        let counts = match inserted {
            Ok(counts) => counts,
            Err(error) => {
                self.undo_uncounted(stream, batch, work)?;
                return Err(error);
            }
        };
        self.placed += counts.new - counts.unplaced;
        let mut unplaced = counts.unplaced as usize;
        if unplaced > 0 || (self.options.when_full == WhenFull::Refuse && !self.has_room_for(0)) {
            let result = self.make_room(stream, &mut work, &mut unplaced);
            if result.is_err() {
                self.undo(stream, batch, work, unplaced)?;
                return result;
            }
        }
        if counts.repeats > 0 {
            let result = match at_last {
                AtLast::Nothing => Ok(()),
                // SAFETY: all keys of the batch are in the table, and the operation was the right one.
                AtLast::Settle => unsafe { self.settle(stream, &mut work, batch) },
                AtLast::Combine(runs) => self.combine_repeats(stream, batch, &mut work, operation, runs),
            };
            if result.is_err() {
                self.undo(stream, batch, work, 0)?;
                return result;
            }
        }
        self.keep_work(stream, work);
        Ok(())
    }

    /// Loads the kernels that an insertion launches after it has changed the table: those that place pairs, and those that undo
    /// it. On a GPU, loading a kernel needs memory, and may fail for lack of it: then nothing has changed yet.
    fn load_kernels(&mut self, stream: &Stream) -> Result<(), Error> {
        if !self.has_kernels {
            with_table!(self.storage => C, V, {
                stream.load(|kernels| {
                    kernels.kernel::<Claim<C, V, WIDTH, Latest>>();
                    kernels.kernel::<PlacePairs<C, V, WIDTH>>();
                    kernels.kernel::<Erase<C, V, WIDTH>>();
                })?;
            });
            self.has_kernels = true;
        }
        Ok(())
    }

    /// Inserts those pairs of a batch that find a free slot. The others become the overflow. Does not wait. Allocates nothing,
    /// once the operation's kernel is loaded. Changes nothing if it fails, unless with a fault.
    ///
    /// # Safety
    /// The work was prepared for this batch and at least so many buckets, and has not been used since then. If the batch says that
    /// its keys are different, they are. The operation is one of the table's values.
    unsafe fn claim_slots(
        &mut self,
        stream: &Stream,
        work: &mut Work,
        batch: &Batch<'_>,
        operation: Operation,
    ) -> Result<(), Error> {
        if !matches!(operation, Operation::Latest) && !matches!(stream.device().kind(), DeviceKind::Cuda { .. }) {
            // On a CPU the operation may panic: then some pairs get no fate, and count as superseded.
            let fates = typed_mut::<u8>(&mut work.lists.history.keys).slice_mut(..batch.pairs.0.len())?;
            transfer::fill(stream, fates, Fate::Superseded as u8)?;
            // They have no old values, which are read with those of the others.
            let values = &mut work.lists.history.values;
            sized!(values.size() => W in u32 | u64, {
                transfer::fill(stream, typed_mut::<W>(values).slice_mut(..batch.pairs.0.len())?, 0)?;
            }, else {});
        }
        work.hash = self.storage.hash();
        let Lists { entries, base, positions, history, overflow, .. } = &mut work.lists;
        let repeats = if batch.is_distinct() {
            Repeats::None
        } else {
            let entries = entry_slice(entries, *base, *positions, work.hash)?;
            let all_count = batch.equal_keys == EqualKeys::AllCount;
            Repeats::Possible { marks: &mut work.marks, batch: work.batches, entries, all_count }
        };
        let InUse { claims, .. } = work.counters.in_use()?;
        let claiming = Claiming { pairs: batch.pairs, count: None, repeats, history, overflow, counts: claims };
        // SAFETY: marks and entries were prepared for the batch, and so was the history. There is room for the overflow of
        // the batch. The caller guarantees the rest.
        unsafe { claiming.launch(stream, &mut self.storage, operation) }
    }

    /// Places the pairs of the overflow. Each displaces at most `limit` others. Without a limit, they become leftovers at once:
    /// threads that displace keys wait for each other, which takes long in a table that is too small. Returns what was counted.
    /// Waits. Allocates nothing, once the kernels are [loaded](Self::load_kernels).
    ///
    /// # Safety
    /// The requirements of [`Work::place_overflow`].
    unsafe fn place_or_set_aside(
        &mut self,
        stream: &Stream,
        work: &mut Work,
        limit: Option<u32>,
    ) -> Result<Counts, Error> {
        if let Some(limit) = limit {
            // SAFETY: guaranteed by the caller.
            unsafe { work.place_overflow(stream, &mut self.storage, limit)? };
        } else {
            std::mem::swap(&mut work.lists.overflow, &mut work.lists.leftovers);
            let InUse { claims, mut unplaced, .. } = work.counters.in_use()?;
            unplaced.copy_from(stream, counter(claims, Claims::Overflowed)?.as_slice())?;
        }
        work.counters.read(stream)
    }

    /// Returns what an insertion works with. If the call fails, it is not kept.
    pub(super) fn take_work(&mut self, stream: &Stream) -> Result<Work, Error> {
        self.work.take().map_or_else(|| Work::new(stream, &self.storage), Ok)
    }

    /// Keeps for the next call what an insertion worked with, except for lists that are large compared with the table.
    pub(super) fn keep_work(&mut self, stream: &Stream, mut work: Work) {
        // Keeping it is no more than a saving of time.
        self.work = work.trim(stream, self.storage.bytes() / 2).is_ok().then_some(work);
    }
}

/// Checks the number of keys in a batch.
fn expect_at_most(len: usize) -> Result<(), Error> {
    if len <= MAX_KEYS { Ok(()) } else { Err(Error::TooLong { what: NAME, len, limit: MAX_KEYS }) }
}
