//! The table: insertion in place, growth, and how a failed insertion is undone.

use super::build::{Built, MAX_KEYS, NAME, buckets_for, build, full, lock_words};
use super::options::{MAX_LOAD, Options, WhenFull};
use super::pairs::{Given, PairSlices, PairVec, sort_by_key};
use super::storage::{ClaimJob, PlaceJob, Storage};
use super::table::GpuCuckoo;
use crate::kernel::{Claims, ENTRIES_PER_POSITION, Fate, Latest};
use gpu_dictionary::{Carrier, Value, WordCode as KeyCode, WordKey as Key};
use gpu_primitives::equality::Same;
use gpu_primitives::kernel::Held;
use gpu_primitives::monoid::{Combine, HoleMonoid, Monoid};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, runs, transfer};

/// Pairs to insert.
#[derive(Clone, Copy)]
struct Batch<'a, C: KeyCode, V: Carrier> {
    pairs: PairSlices<'a, C, V>,
    /// Whether all keys are known to be different. Otherwise, of equal keys the last one counts.
    is_distinct: bool,
}

/// What a batch needs while it is inserted.
struct Work<C: KeyCode, V: Carrier> {
    scratch: Scratch,
    /// What became of the pairs of the batch, and the old values. Empty if the call cannot have to undo anything.
    history: PairVec<u8, V>,
    /// Room for the pairs that find all of their buckets full.
    overflow: PairVec<C, V>,
    /// Room for the pairs that cannot be placed.
    leftovers: PairVec<C, V>,
}

/// Zeroed memory: counters, locks, and the table that finds the last one of equal keys.
struct Scratch {
    counters: DeviceVec<u64>,
    /// The locks, then the entries: one allocation, which is zeroed at once.
    words: DeviceVec<u32>,
    lock_words: usize,
}

/// The parts of the scratch memory.
struct Parts<'a> {
    /// The number of pairs that a split has moved: one element.
    moved: DeviceSliceMut<'a, u64>,
    /// The number of keys in the batch that are repeated: one element.
    repeats: DeviceSliceMut<'a, u64>,
    /// The counters of [`Claims`].
    claims: DeviceSliceMut<'a, u64>,
    /// The number of pairs that could not be placed: one element.
    unplaced: DeviceSliceMut<'a, u64>,
    /// One bit per bucket.
    locks: DeviceSliceMut<'a, u32>,
    /// The entries of the last positions; empty if the batch needs none.
    entries: DeviceSliceMut<'a, u32>,
}

/// The counters, read back.
struct Counts {
    repeats: u64,
    /// Keys that were absent, including those that a split has moved.
    new: u64,
    moved: u64,
    unplaced: u64,
}

impl Scratch {
    /// The number of words that are counters.
    const COUNTERS: usize = 3 + Claims::ALL;

    /// Allocates the memory for a batch, and for a table of so many buckets.
    fn new<C: KeyCode, V: Carrier>(stream: &Stream, batch: &Batch<'_, C, V>, buckets: u32) -> Result<Self, Error> {
        let lock_words = lock_words(buckets);
        // A hash has 32 bits, so more entries than 2^32 do not help. They are still more than a batch has keys.
        let entries = if batch.is_distinct { 0 } else { (ENTRIES_PER_POSITION * batch.pairs.0.len()).min(1 << 32) };
        let (counters, words) = (stream.zeroed(Self::COUNTERS)?, stream.zeroed(lock_words + entries)?);
        Ok(Self { counters, words, lock_words })
    }

    fn parts(&mut self) -> Result<Parts<'_>, Error> {
        let (moved, rest) = self.counters.as_mut_slice().split_at_mut(1)?;
        let (repeats, rest) = rest.split_at_mut(1)?;
        let (claims, unplaced) = rest.split_at_mut(Claims::ALL)?;
        let (locks, entries) = self.words.as_mut_slice().split_at_mut(self.lock_words)?;
        Ok(Parts { moved, repeats, claims, unplaced, locks, entries })
    }

    /// Reads the counters. Waits.
    fn counts(&self, stream: &Stream) -> Result<Counts, Error> {
        let mut counts = [0; Self::COUNTERS];
        self.counters.copy_to_host(stream, &mut counts)?;
        let [moved, repeats, new, _overflowed, unplaced] = counts;
        Ok(Counts { repeats, new, moved, unplaced })
    }
}

impl<C: KeyCode, V: Carrier> Work<C, V> {
    /// Allocates what an insertion into a table of so many buckets needs. `moved` is the number of pairs that may be
    /// inserted in addition to the batch.
    fn new(
        stream: &Stream,
        batch: &Batch<'_, C, V>,
        buckets: u32,
        moved: usize,
        with_history: bool,
    ) -> Result<Self, Error> {
        let len = batch.pairs.0.len();
        Ok(Self {
            scratch: Scratch::new(stream, batch, buckets)?,
            history: PairVec::uninit(stream, if with_history { len } else { 0 })?,
            overflow: PairVec::uninit(stream, len + moved)?,
            leftovers: PairVec::uninit(stream, len + moved)?,
        })
    }

    /// Inserts a batch. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The work was made for this batch and at least so many buckets. If the batch says that its keys are different, they
    /// are. The operation is one of values that `V` carries.
    unsafe fn insert<O: Combine<V>>(
        &mut self,
        stream: &Stream,
        storage: &mut Storage<C, V>,
        batch: &Batch<'_, C, V>,
        operation: O,
        limit: u32,
    ) -> Result<(), Error> {
        let Parts { repeats, claims, mut entries, .. } = self.scratch.parts()?;
        if !batch.is_distinct {
            storage.mark_last(stream, batch.pairs.0, entries.reborrow(), repeats)?;
        }
        let job = ClaimJob {
            pairs: batch.pairs,
            count: None,
            entries: (!batch.is_distinct).then(|| entries.as_slice()),
            history: &mut self.history,
            overflow: &mut self.overflow,
            counts: claims,
        };
        // SAFETY: the entries are those of the batch. The history is as long as the batch, or empty. There is room for the
        // overflow of the batch after that of the moved pairs. The caller guarantees the rest.
        unsafe { storage.claim(stream, job, operation)? };
        // SAFETY: the overflow has as many pairs as were counted. Their keys are different and not in the table.
        unsafe { self.place(stream, storage, limit) }
    }

    /// Inserts the pairs that a split has moved. Does not wait.
    ///
    /// All of them have slots afterwards, or are leftovers: a batch that has some of their keys must find them in the table.
    ///
    /// # Safety
    /// These are the moved pairs, and the work was made for them and for at least so many buckets.
    unsafe fn insert_moved(
        &mut self,
        stream: &Stream,
        storage: &mut Storage<C, V>,
        moved: PairSlices<'_, C, V>,
        limit: u32,
    ) -> Result<(), Error> {
        let Parts { moved: count, claims, .. } = self.scratch.parts()?;
        let job = ClaimJob {
            pairs: moved,
            count: Some(count.as_slice()),
            entries: None,
            history: &mut PairVec::uninit(stream, 0)?,
            overflow: &mut self.overflow,
            counts: claims,
        };
        // SAFETY: the keys of a table are different, and the split has counted them. There is room for their overflow, whose
        // keys are not in the table.
        unsafe {
            storage.claim(stream, job, Latest)?;
            self.place(stream, storage, limit)?;
        }
        // The overflow of the batch begins anew.
        let Parts { claims, .. } = self.scratch.parts()?;
        transfer::fill(stream, claims.slice_mut(Claims::Overflowed as usize..)?, 0)
    }

    /// Places the pairs of the overflow, as many as are counted. Those that cannot be placed become the leftovers, and are
    /// counted. Does not wait; allocates nothing.
    ///
    /// # Safety
    /// The count is right. The keys are different and not in the table. The work was made for at least so many buckets.
    unsafe fn place(&mut self, stream: &Stream, storage: &mut Storage<C, V>, limit: u32) -> Result<(), Error> {
        let Parts { claims, unplaced, locks, .. } = self.scratch.parts()?;
        let job = PlaceJob {
            pairs: self.overflow.slices(),
            count: claims.slice(Claims::Overflowed as usize..)?,
            skip_first: false,
            limit,
            locks,
            leftovers: &mut self.leftovers,
            unplaced,
        };
        // SAFETY: there is a lock for every bucket. Each pair leaves at most one pair over, and there is room for them. The
        // caller guarantees the rest.
        unsafe { storage.place(stream, job) }
    }

    /// Makes the leftovers the overflow, and places them. Returns how many are left over. Waits; allocates nothing.
    ///
    /// # Safety
    /// The first `len` leftovers have different keys, which are not in the table. The work was made for at least so many
    /// buckets.
    unsafe fn place_leftovers(
        &mut self,
        stream: &Stream,
        storage: &mut Storage<C, V>,
        len: usize,
        limit: u32,
    ) -> Result<usize, Error> {
        std::mem::swap(&mut self.overflow, &mut self.leftovers);
        let Parts { claims, mut unplaced, .. } = self.scratch.parts()?;
        claims.slice_mut(Claims::Overflowed as usize..)?.copy_from_host(stream, &[len as u64])?;
        unplaced.copy_from_host(stream, &[0])?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.place(stream, storage, limit)? };
        Ok(self.scratch.counts(stream)?.unplaced as usize)
    }
}

impl<K: Key, V: Value> GpuCuckoo<K, V> {
    /// Inserts pairs: keys, and as many values. Inserting a key that is already present replaces its value. If a key
    /// occurs more than once, the last pair wins. For zero-sized values, pass an empty slice. Waits once, to learn whether
    /// all keys have found a slot.
    ///
    /// New keys take free slots, up to a load of 0.95. If there may not be enough of them, the call also waits for the
    /// number of new keys. If there are not enough, the table doubles, or the call fails, as the options say.
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
        stream.refuse_recording("an insertion")?;
        let given = Given::<K, V>::new(stream, pairs.0.into(), pairs.1.into())?;
        let batch = Batch { pairs: given.slices(), is_distinct: false };
        // SAFETY: the new value replaces the old one, whatever they are.
        unsafe { self.add(stream, batch, Latest) }
    }

    /// Inserts pairs, and combines the value of a key that is already present with the new one: `combine(old, new)`. If a
    /// key occurs more than once, its values are combined in the order of the pairs. Waits twice.
    ///
    /// The operation is one of the library ([`Sum`](gpu_primitives::scan::Sum), [`Max`](gpu_primitives::scan::Max),
    /// [`Min`](gpu_primitives::scan::Min)) or your own [`Monoid`]. If it is not associative, keys that occur more than once
    /// get some value.
    ///
    /// If all keys of the batch are different, this costs as much as an insertion. Otherwise the batch is sorted and its
    /// equal keys are combined first.
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
    pub fn upsert<'a, M: Monoid<V>>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: M,
    ) -> Result<(), Error>
    where
        V: Value<Carrier: Held>,
    {
        stream.refuse_recording("an insertion")?;
        let given = Given::<K, V>::new(stream, pairs.0.into(), pairs.1.into())?;
        let mut batch = Batch { pairs: given.slices(), is_distinct: false };
        if batch.pairs.0.is_empty() {
            return Ok(());
        }
        let different = batch.pairs.0.len() - self.count_repeats(stream, &batch)?;
        let combined;
        if different < batch.pairs.0.len() {
            combined = combine_by_key::<K, V, M>(stream, batch.pairs, operation)?;
            batch.pairs = combined.first(different)?;
        }
        batch.is_distinct = true;
        // SAFETY: the operation is one of `V`.
        unsafe { self.add(stream, batch, HoleMonoid::<V::Carrier>::of::<V, M>(operation)) }
    }

    /// Inserts a batch.
    ///
    /// # Safety
    /// The operation is one of values that the carrier carries. If the batch says that its keys are different, they are.
    unsafe fn add<O: Combine<V::Carrier>>(
        &mut self,
        stream: &Stream,
        batch: Batch<'_, K::Code, V::Carrier>,
        operation: O,
    ) -> Result<(), Error> {
        let batch_len = batch.pairs.0.len();
        if batch_len > MAX_KEYS {
            return Err(Error::TooLong { what: NAME, len: batch_len, limit: MAX_KEYS });
        }
        if batch_len == 0 {
            return Ok(());
        }
        let slots = self.storage.slots();
        let most = (slots as f64 * MAX_LOAD) as u64;
        // The host knows at most how many keys there are. It asks only if these may be too many.
        if self.placed - self.known_erased + batch_len as u64 > most {
            self.known_erased = self.erased.get(stream)?;
            let len = self.placed - self.known_erased;
            if len + batch_len as u64 > most {
                let total = len + self.count_new(stream, &batch)?;
                if total > most {
                    if self.options.when_full == WhenFull::Refuse {
                        return Err(full(total - most, total, slots));
                    }
                    // SAFETY: guaranteed by the caller.
                    return unsafe { self.add_growing(stream, &batch, operation, total) };
                }
            }
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.add_in_place(stream, &batch, operation) }
    }

    /// Counts the keys of the batch that are repeated: all but one of each key. Waits.
    fn count_repeats(&self, stream: &Stream, batch: &Batch<'_, K::Code, V::Carrier>) -> Result<usize, Error> {
        let mut scratch = Scratch::new(stream, batch, 0)?;
        let Parts { repeats, entries, .. } = scratch.parts()?;
        self.storage.mark_last(stream, batch.pairs.0, entries, repeats)?;
        Ok(scratch.counts(stream)?.repeats as usize)
    }

    /// Counts the different keys of the batch that are not in the table. Waits.
    fn count_new(&self, stream: &Stream, batch: &Batch<'_, K::Code, V::Carrier>) -> Result<u64, Error> {
        let mut scratch = Scratch::new(stream, batch, 0)?;
        let Parts { repeats, claims, mut entries, .. } = scratch.parts()?;
        let keys = batch.pairs.0;
        if !batch.is_distinct {
            self.storage.mark_last(stream, keys, entries.reborrow(), repeats)?;
        }
        let new = claims.slice_mut(..=Claims::New as usize)?;
        self.storage.count_absent(stream, keys, (!batch.is_distinct).then(|| entries.as_slice()), new)?;
        Ok(scratch.counts(stream)?.new)
    }

    /// Inserts a batch into a table with enough slots. If some pairs cannot be placed, rebuilds the table. If that fails,
    /// restores the previous contents. Waits.
    ///
    /// # Safety
    /// The requirements of [`add`](Self::add).
    unsafe fn add_in_place<O: Combine<V::Carrier>>(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_, K::Code, V::Carrier>,
        operation: O,
    ) -> Result<(), Error> {
        let mut work = Work::new(stream, batch, self.storage.buckets(), 0, true)?;
        // SAFETY: the work is for this batch and this table. The caller guarantees the rest.
        unsafe { work.insert(stream, &mut self.storage, batch, operation, self.options.evictions)? };
        let counts = work.scratch.counts(stream)?;
        self.placed += counts.new - counts.unplaced;
        if counts.unplaced == 0 {
            return Ok(());
        }
        let unplaced = counts.unplaced as usize;
        let result = self.build_with(stream, work.leftovers.first(unplaced)?, self.options.clone());
        if result.is_err() {
            self.undo(stream, batch, work, unplaced)?;
        }
        result
    }

    /// Inserts a batch into a larger copy of the table, which then replaces the table. `total` is the number of keys
    /// afterwards. Waits.
    ///
    /// # Safety
    /// The requirements of [`add`](Self::add).
    unsafe fn add_growing<O: Combine<V::Carrier>>(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_, K::Code, V::Carrier>,
        operation: O,
        total: u64,
    ) -> Result<(), Error> {
        /// Each attempt makes the table a quarter larger: 15 times as large after the last one.
        const ATTEMPTS: u32 = 13;

        let len = self.len(stream)?;
        let mut unplaced = 0;
        if total as f64 <= 2.0 * self.storage.slots() as f64 * self.options.load_factor {
            // SAFETY: guaranteed by the caller.
            unplaced = unsafe { self.add_splitting(stream, batch, operation, len)? };
            if unplaced == 0 {
                return Ok(());
            }
        }
        // At least twice the room, so a table that grows by many batches is not rebuilt for each of them.
        let mut capacity = (total as usize).max(2 * len);
        let mut failures = 0;
        for attempt in 0..ATTEMPTS {
            // A different seed: the current one may have failed.
            let seed = self.options.seed.wrapping_add(self.rebuilds + 1 + u64::from(attempt));
            let options = self.options.clone().seed(seed);
            let pairs = self.collect(stream, 0)?;
            let mut built = build(stream, pairs.slices(), buckets_for(capacity, &options)?, &options)?;
            drop(pairs);
            let mut work = Work::new(stream, batch, built.storage.buckets(), 0, false)?;
            // SAFETY: the work is for this batch and this table. The caller guarantees the rest.
            unsafe { work.insert(stream, &mut built.storage, batch, operation, options.evictions)? };
            let counts = work.scratch.counts(stream)?;
            failures += 1 + u64::from(built.failures);
            unplaced = counts.unplaced;
            if unplaced == 0 {
                built.len += counts.new;
                self.install(stream, built)?;
                self.rebuilds += failures;
                return Ok(());
            }
            capacity += capacity / 4 + 1;
        }
        Err(full(unplaced, total, self.storage.slots()))
    }

    /// Inserts a batch into a copy of the table with twice as many buckets, which then replaces the table of `len` keys.
    /// Returns how many pairs could not be placed: if any, the table is unchanged. Waits.
    ///
    /// # Safety
    /// The requirements of [`add`](Self::add).
    unsafe fn add_splitting<O: Combine<V::Carrier>>(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_, K::Code, V::Carrier>,
        operation: O,
        len: usize,
    ) -> Result<u64, Error> {
        let mut work = Work::new(stream, batch, self.storage.buckets().saturating_mul(2), len, false)?;
        let mut moved = PairVec::uninit(stream, len)?;
        // SAFETY: there is room for all pairs.
        let storage = unsafe { self.storage.split(stream, &mut moved, work.scratch.parts()?.moved)? };
        let Some(mut storage) = storage else { return Ok(len as u64) };
        // SAFETY: these are the pairs that were moved. The work is for them, for this batch and this table. The caller
        // guarantees the rest.
        unsafe {
            work.insert_moved(stream, &mut storage, moved.slices(), self.options.evictions)?;
            work.insert(stream, &mut storage, batch, operation, self.options.evictions)?;
        }
        let counts = work.scratch.counts(stream)?;
        if counts.unplaced == 0 {
            let len = len as u64 + counts.new - counts.moved;
            self.install(stream, Built { storage, len, failures: 0 })?;
            self.rebuilds += 1;
        }
        Ok(counts.unplaced)
    }

    /// Rebuilds the table together with other pairs.
    fn build_with(
        &mut self,
        stream: &Stream,
        others: PairSlices<'_, K::Code, V::Carrier>,
        options: Options,
    ) -> Result<(), Error> {
        let more = others.0.len();
        let mut all = self.collect(stream, more)?;
        let len = all.len();
        all.copy_from(stream, len - more, others)?;
        let capacity = (self.storage.slots() as f64 * self.options.load_factor) as usize;
        self.build_anew(stream, all.slices(), capacity.max(len), options)
    }

    /// Removes the new keys, puts back the pairs they displaced, and restores the old values. The first `unplaced`
    /// leftovers are the displaced pairs and new ones.
    ///
    /// Allocates nothing on the device, except as a last resort: the cause may be a lack of memory.
    fn undo(
        &mut self,
        stream: &Stream,
        batch: &Batch<'_, K::Code, V::Carrier>,
        mut work: Work<K::Code, V::Carrier>,
        unplaced: usize,
    ) -> Result<(), Error> {
        // The displaced pairs had slots before, and there is as much room again, so a high limit finds it. Each round
        // combines the random choices with other keys.
        const LIMIT: u32 = 1 << 16;
        const ROUNDS: u32 = 32;

        let keys = batch.pairs.0.to_vec(stream)?;
        let (fates, old_values) = (work.history.keys.to_vec(stream)?, work.history.values.to_vec(stream)?);
        let positions_of = |some: &[Fate]| {
            let some: Vec<u8> = some.iter().map(|&fate| fate as u8).collect();
            fates.iter().enumerate().filter(move |(_, fate)| some.contains(fate)).map(|(position, _)| position)
        };
        let mut new_keys: Vec<_> = positions_of(&[Fate::Claimed, Fate::Overflowed]).map(|i| keys[i]).collect();
        work.overflow.keys.slice_mut(..new_keys.len())?.copy_from_host(stream, &new_keys)?;
        self.storage.erase(stream, work.overflow.keys.slice(..new_keys.len())?, &mut self.erased)?;

        new_keys.sort_unstable();
        let (left_keys, left_values) = work.leftovers.first(unplaced)?;
        let leftovers = left_keys.to_vec(stream)?.into_iter().zip(left_values.to_vec(stream)?);
        let displaced: Vec<_> = leftovers.filter(|(key, _)| new_keys.binary_search(key).is_err()).collect();
        let mut displaced_len = displaced.len();
        work.leftovers.fill_from_host(stream, displaced)?;
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
            self.build_with(stream, work.leftovers.first(displaced_len)?, growing)?;
        }

        let merged: Vec<_> = positions_of(&[Fate::Merged]).map(|i| (keys[i], old_values[i])).collect();
        let merged_len = merged.len();
        work.leftovers.fill_from_host(stream, merged)?;
        let job = ClaimJob {
            pairs: work.leftovers.first(merged_len)?,
            count: None,
            entries: None,
            history: &mut PairVec::uninit(stream, 0)?,
            overflow: &mut work.overflow,
            counts: work.scratch.parts()?.claims,
        };
        // SAFETY: all of these keys are different, and in the table again. So there is no overflow.
        unsafe { self.storage.claim(stream, job, Latest) }
    }
}

/// Sorts pairs by key and combines the values of equal keys, in their order. The first pairs of the result are those of the
/// different keys. Does not wait.
fn combine_by_key<K: Key, V: Value, M: Monoid<V>>(
    stream: &Stream,
    pairs: PairSlices<'_, K::Code, V::Carrier>,
    operation: M,
) -> Result<PairVec<K::Code, V::Carrier>, Error> {
    const SAME: &str = "the same size and alignment";

    let len = pairs.0.len();
    let mut sorted = PairVec::uninit(stream, len)?;
    sort_by_key::<K, _>(stream, pairs, &mut sorted)?;
    let mut combined = PairVec::<K::Code, V::Carrier>::uninit(stream, len)?;
    let values: DeviceSlice<'_, V> = sorted.values.as_slice().cast().expect(SAME);
    let totals: DeviceSliceMut<'_, V> = combined.values.as_mut_slice().cast().expect(SAME);
    let (from, to) = (sorted.keys.as_slice(), combined.keys.as_mut_slice());
    // The equality of numbers is one of `u32` and of `u64`, not of all codes.
    if size_of::<K::Code>() == size_of::<u32>() {
        let (from, to) = (from.cast::<u32>().expect(SAME), to.cast::<u32>().expect(SAME));
        runs::reduce_by_key(stream, from, values, to, totals, Same, operation)?;
    } else {
        let (from, to) = (from.cast::<u64>().expect(SAME), to.cast::<u64>().expect(SAME));
        runs::reduce_by_key(stream, from, values, to, totals, Same, operation)?;
    }
    Ok(combined)
}
