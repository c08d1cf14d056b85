//! The table: insertion in place, growth, and how a failed insertion is undone.

use super::build::{Built, MAX_KEYS, NAME, full};
use super::options::{GROWTH_LOAD, MAX_LOAD, Options, WhenFull};
use super::pairs::{Given, PairSlices, PairVec, download, sizes_of, sort_by_key, typed, typed_mut, upload};
use super::table::{GpuCuckoo, RawTable, of_caller};
use super::work::{Batch, EqualKeys, Operation, Work};
use crate::device::Fate;
use gpu_dictionary::{Upsertion, Value, WordKey as Key};
use gpu_primitives::equality::Same;
use gpu_primitives::monoid::HoleMonoid;
use gpu_primitives::{DeviceSlice, DeviceValue, Error, Stream, runs, select};

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
    /// The errors of [`insert`](Self::insert). After an error the table holds the same pairs as before.
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
                runs::reduce_by_key(stream, keys.0, values, keys.1, totals, Same, operation)
            } else {
                let keys = (typed::<u64>(sorted.0), typed_mut::<u64>(&mut to.keys));
                runs::reduce_by_key(stream, keys.0, values, keys.1, totals, Same, operation)
            }
        };
        // SAFETY: the operation is one of `V`.
        unsafe { self.raw.upsert(stream, of_caller(pairs), carried, &combine_runs) }
    }
}

/// Combines the values of equal keys, which are next to each other. The first pairs of the result are those of the different
/// keys, as many as the number says. Does not wait.
type CombineRuns<'a> = &'a dyn Fn(PairSlices<'_>, &mut PairVec) -> Result<DeviceValue<u64>, Error>;

/// What an insertion does about equal keys after it, if there are any.
#[derive(Clone, Copy)]
enum AtLast<'a> {
    /// Nothing: there are none.
    Nothing,
    /// Gives them the value of the last one.
    Settle,
    /// Combines all of their values.
    Combine(CombineRuns<'a>),
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
    unsafe fn add(
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
        let mut work = self.take_work(stream)?;
        work.prepare(stream, batch, self.storage.buckets())?;
        let limit = self.has_room_for(batch_len).then_some(self.options.evictions);
        // SAFETY: the work is for this batch and this table. The caller guarantees the rest.
        unsafe { work.insert(stream, &mut self.storage, batch, operation, limit)? };
        let counts = work.counts(stream)?;
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
                AtLast::Settle => unsafe { work.settle(stream, &mut self.storage, batch) },
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

    /// Finds slots for the first `unplaced` leftovers of an insertion: in this table if its load allows, otherwise in a
    /// larger one, which then replaces the table. Waits. After an error, `unplaced` is the number of leftovers then.
    fn make_room(&mut self, stream: &Stream, work: &mut Work, unplaced: &mut usize) -> Result<(), Error> {
        self.known_erased = self.erased.get(stream)?;
        let (len, slots, most) = ((self.placed - self.known_erased) as usize, self.storage.slots(), self.most_keys());
        let total = (len + *unplaced) as u64;
        if total <= most {
            // SAFETY: the leftovers have different keys, which are not in the table. The work is for this table.
            let left = unsafe { work.place_leftovers(stream, &mut self.storage, *unplaced, self.options.evictions)? };
            self.placed += (*unplaced - left) as u64;
            *unplaced = left;
            if left == 0 {
                return Ok(());
            }
            let capacity = (slots as f64 * self.options.load_factor) as usize;
            return self.build_with(stream, work.leftovers(left)?, capacity, self.options.clone());
        }
        if self.options.when_full == WhenFull::Refuse {
            return Err(full(total - most, total, slots));
        }
        if total as f64 <= 2.0 * slots as f64 * self.options.load_factor {
            let limit = self.options.evictions;
            // SAFETY: the leftovers have different keys, which are not in the table.
            if let Some(storage) = unsafe { work.split_with_leftovers(stream, &self.storage, len, *unplaced, limit)? } {
                self.install(stream, Built { storage, len: total, failures: 0 })?;
                self.rebuilds += 1;
                return Ok(());
            }
        }
        // At least twice the room, so a table that grows by many batches is not rebuilt for each of them.
        let capacity = (total as usize).max(2 * len);
        self.build_with(stream, work.leftovers(*unplaced)?, capacity, self.options.clone())
    }

    /// Returns how many keys the table may have before it grows, or fails.
    fn most_keys(&self) -> u64 {
        let load = match self.options.when_full {
            WhenFull::Grow => self.options.load_factor.max(GROWTH_LOAD),
            WhenFull::Refuse => MAX_LOAD,
        };
        (self.storage.slots() as f64 * load) as u64
    }

    /// Returns whether there is certainly room for more keys. The host knows at most how many there are.
    fn has_room_for(&self, more: usize) -> bool {
        self.placed - self.known_erased + more as u64 <= self.most_keys()
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

    /// Combines the values of equal keys in their order, after a batch was inserted of which all equal keys count: takes back
    /// what it did to them, combines them, and inserts the results. Waits. After an error, what was taken back is not part of
    /// the batch's history any more.
    fn combine_repeats(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_>,
        work: &mut Work,
        operation: Operation,
        combine_runs: CombineRuns<'_>,
    ) -> Result<(), Error> {
        let sizes = sizes_of(batch.pairs);
        let mut repeated = PairVec::uninit(stream, sizes, batch.pairs.0.len())?;
        // SAFETY: the batch was inserted with this work, and its keys are in the table.
        let flags = unsafe { work.revert(stream, &mut self.storage, batch, &mut self.erased)? };
        let to = (repeated.keys.as_mut_slice(), repeated.values.as_mut_slice());
        let count = select::lowered::flagged(stream, batch.pairs, flags.as_slice(), to)?.get(stream)? as usize;
        let sorted = sort_by_key(stream, repeated.first(count)?)?;
        let mut combined = PairVec::uninit(stream, sizes, count)?;
        let different = combine_runs(sorted.slices(), &mut combined)?.get(stream)? as usize;
        let different = Batch { pairs: combined.first(different)?, equal_keys: EqualKeys::None };
        // SAFETY: the keys of these pairs are different. The operation is that of the batch.
        unsafe { self.add(stream, &different, operation, AtLast::Nothing) }
    }

    /// Rebuilds the table together with other pairs, with room for at least `capacity` keys.
    fn build_with(
        &mut self,
        stream: &Stream,
        others: PairSlices<'_>,
        capacity: usize,
        options: Options,
    ) -> Result<(), Error> {
        let more = others.0.len();
        let mut all = self.collect(stream, more)?;
        let len = all.len();
        all.copy_from(stream, len - more, others)?;
        self.build_anew(stream, all.slices(), capacity.max(len), options)
    }

    /// Removes the new keys, puts back the pairs they displaced, and restores the old values. The first `unplaced`
    /// leftovers are the displaced pairs and new ones.
    ///
    /// Allocates nothing on the device, except as a last resort: the cause may be a lack of memory.
    fn undo(&mut self, stream: &Stream, batch: &Batch<'_>, mut work: Work, unplaced: usize) -> Result<(), Error> {
        // The displaced pairs had slots before, and there is as much room again, so a high limit finds it. Each round
        // combines the random choices with other keys.
        const LIMIT: u32 = 1 << 16;
        const ROUNDS: u32 = 32;

        let keys = download(stream, batch.pairs.0)?;
        let (fates, old_values) = work.history(keys.len())?;
        let (fates, old_values) = (download(stream, fates)?, download(stream, old_values)?);
        let positions_of = |some: &[Fate]| {
            let some: Vec<u64> = some.iter().map(|&fate| fate as u64).collect();
            fates.iter().enumerate().filter(move |(_, fate)| some.contains(fate)).map(|(position, _)| position)
        };
        let new_fates = [Fate::Claimed, Fate::Yielded, Fate::Overflowed];
        let mut new_keys: Vec<_> = positions_of(&new_fates).map(|i| keys[i]).collect();
        let (overflow, _) = work.lists();
        upload(stream, overflow.keys.as_mut_slice(), &new_keys)?;
        self.storage.erase(stream, overflow.first(new_keys.len())?.0, &mut self.erased)?;

        new_keys.sort_unstable();
        let is_old = |key: &u64| new_keys.binary_search(key).is_err();
        let (left_keys, left_values) = work.leftovers(unplaced)?;
        let leftovers = download(stream, left_keys)?.into_iter().zip(download(stream, left_values)?);
        let displaced: Vec<_> = leftovers.filter(|(key, _)| is_old(key)).collect();
        let mut displaced_len = displaced.len();
        work.lists().1.fill_from_host(stream, displaced)?;
        for _ in 0..ROUNDS {
            if displaced_len == 0 {
                break;
            }
            // SAFETY: the displaced keys were in the table before, and are not in it now. The work is for this table.
            let left = unsafe { work.place_leftovers(stream, &mut self.storage, displaced_len, LIMIT)? };
            self.placed += (displaced_len - left) as u64;
            displaced_len = left;
        }
        if displaced_len > 0 {
            // Grow the table despite its options rather than lose a pair. This does allocate.
            let growing = self.options.clone().when_full(WhenFull::Grow);
            self.build_with(stream, work.leftovers(displaced_len)?, 0, growing)?;
        }

        let merged = positions_of(&[Fate::Merged]).map(|i| (keys[i], old_values[i])).filter(|(key, _)| is_old(key));
        let merged: Vec<_> = merged.collect();
        let merged_len = merged.len();
        work.lists().1.fill_from_host(stream, merged)?;
        // SAFETY: all of these keys are different, and in the table again.
        unsafe { work.assign_leftovers(stream, &mut self.storage, merged_len) }
    }
}

/// Checks the number of keys in a batch.
fn expect_at_most(len: usize) -> Result<(), Error> {
    if len <= MAX_KEYS { Ok(()) } else { Err(Error::TooLong { what: NAME, len, limit: MAX_KEYS }) }
}
