//! The dictionary: updates, queries, cleanup.

use crate::checkpoint::History;
use crate::options::Options;
use crate::{CleanupPolicy, Key, Level, Snapshot, Stats, Value};
use gpu_dictionary::levels::Stack;
use gpu_dictionary::{Upsertion, values_for};
use gpu_primitives::{DeviceSlice, Error, Stream, expect_len};

/// A dynamic dictionary: see the [crate documentation](crate).
#[derive(Debug)]
pub struct GpuLsm<K: Key, V: Value> {
    pub(crate) batch_size: usize,
    /// The number of batches. Its binary digits say which levels exist.
    pub(crate) batches: u64,
    pub(crate) stack: Stack<K, V>,
    pub(crate) tombstones: usize,
    policy: Option<CleanupPolicy>,
    /// Why the last cleanup that the policy asked for failed.
    cleanup_failure: Option<Error>,
    /// The checkpoints that this dictionary continues.
    pub(crate) history: History,
}

/// The levels as an update will leave them. The dictionary's own levels stay unchanged until the whole update has
/// succeeded.
struct Draft<'a, K: Key, V: Value> {
    stack: &'a Stack<K, V>,
    batch_size: usize,
    batches: u64,
    /// The new contents of each slot that changed.
    changed: Vec<Option<Option<Level<K, V>>>>,
    tombstones: usize,
}

/// What a draft leaves: the fields of the dictionary that an update changes.
struct Finished<K: Key, V: Value> {
    batches: u64,
    changed: Vec<Option<Option<Level<K, V>>>>,
    tombstones: usize,
}

/// Returns the error for more batches than there are slots.
fn too_many_batches(batch_size: usize, batches: u64) -> Error {
    let elements = |batches: u64| batch_size.saturating_mul(batches as usize);
    let limit = elements(u32::MAX.into());
    Error::TooLong { what: "a dictionary of this batch size", len: elements(batches), limit }
}

/// Merges `older` levels with newer `runs`. Both are ordered from oldest to newest.
fn merge_runs<K: Key, V: Value>(
    stream: &Stream,
    older: Vec<&Level<K, V>>,
    mut runs: Vec<Level<K, V>>,
) -> Result<Level<K, V>, Error> {
    if older.len() + runs.len() > Stack::<K, V>::SLOTS {
        // A mixed batch whose carry runs through all slots: more inputs than one merge takes.
        runs = vec![Level::merge(stream, &runs.iter().collect::<Vec<_>>())?];
    }
    if older.is_empty() && runs.len() == 1 {
        return Ok(runs.remove(0));
    }
    let all: Vec<&Level<K, V>> = older.into_iter().chain(&runs).collect();
    Level::merge(stream, &all)
}

impl<'a, K: Key, V: Value> Draft<'a, K, V> {
    fn new(lsm: &'a GpuLsm<K, V>) -> Self {
        Self {
            stack: &lsm.stack,
            batch_size: lsm.batch_size,
            batches: lsm.batches,
            changed: std::iter::repeat_with(|| None).take(Stack::<K, V>::SLOTS).collect(),
            tombstones: lsm.tombstones,
        }
    }

    fn finish(self) -> Finished<K, V> {
        Finished { batches: self.batches, changed: self.changed, tombstones: self.tombstones }
    }

    fn level(&self, slot: usize) -> Option<&Level<K, V>> {
        match &self.changed[slot] {
            Some(changed) => changed.as_ref(),
            None => self.stack.level(slot),
        }
    }

    /// Returns how many of the `left` operations to add next, and the base-2 logarithm of the number of batches they
    /// count as. A chunk of several batches fills the lowest slots, which are free, and makes one level.
    fn next_chunk(&self, left: usize) -> (usize, u32) {
        let full = left / self.batch_size;
        if full == 0 {
            return (left, 0);
        }
        let log_batches = full.ilog2().min(self.batches.trailing_zeros());
        (self.batch_size << log_batches, log_batches)
    }

    /// Adds `1 << log_batches` batches. The slots below `log_batches` are free. `merge` makes one level of the new
    /// batches and of the levels in their way, which it is given oldest first.
    fn add(
        &mut self,
        log_batches: u32,
        merge: impl FnOnce(Vec<&Level<K, V>>) -> Result<Level<K, V>, Error>,
    ) -> Result<(), Error> {
        let carries = (self.batches >> log_batches).trailing_ones();
        let (from, slot) = (log_batches as usize, (log_batches + carries) as usize);
        if slot >= self.changed.len() {
            return Err(too_many_batches(self.batch_size, self.batches + (1 << log_batches)));
        }
        let level = merge((from..slot).rev().filter_map(|slot| self.level(slot)).collect())?;
        for cleared in from..slot {
            self.changed[cleared] = Some(None);
        }
        self.changed[slot] = Some(Some(level));
        self.batches += 1 << log_batches;
        Ok(())
    }

    fn insert(&mut self, stream: &Stream, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<(), Error> {
        let mut done = 0;
        while done < keys.len() {
            let (count, log_batches) = self.next_chunk(keys.len() - done);
            let values = if size_of::<V>() == 0 { values } else { values.slice(done..done + count)? };
            let keys = keys.slice(done..done + count)?;
            self.add(log_batches, |older| Level::merge_pairs(stream, &older, keys, values))?;
            done += count;
        }
        Ok(())
    }

    fn upsert<M: Upsertion<V>>(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        operation: M,
    ) -> Result<(), Error> {
        let mut done = 0;
        while done < keys.len() {
            let (count, log_batches) = self.next_chunk(keys.len() - done);
            let values = if size_of::<V>() == 0 { values } else { values.slice(done..done + count)? };
            let run = Level::operands(stream, keys.slice(done..done + count)?, values, operation)?;
            self.add(log_batches, |older| merge_runs(stream, older, vec![run]))?;
            done += count;
        }
        Ok(())
    }

    fn delete(&mut self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<(), Error> {
        let mut done = 0;
        while done < keys.len() {
            let (count, log_batches) = self.next_chunk(keys.len() - done);
            let run = Level::tombstones(stream, keys.slice(done..done + count)?)?;
            self.add(log_batches, |older| merge_runs(stream, older, vec![run]))?;
            done += count;
        }
        self.tombstones += keys.len();
        Ok(())
    }
}

/// Makes a dictionary that shares the levels, which never change. Costs no device memory, and does not wait. Both
/// dictionaries can be queried and updated independently, and have checkpoints of their own.
impl<K: Key, V: Value> Clone for GpuLsm<K, V> {
    fn clone(&self) -> Self {
        self.with_history(History::default())
    }
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    /// Makes a clone with this history.
    fn with_history(&self, history: History) -> Self {
        Self {
            batch_size: self.batch_size,
            batches: self.batches,
            stack: self.stack.clone(),
            tombstones: self.tombstones,
            policy: self.policy,
            // It is about an update of the original.
            cleanup_failure: None,
            history,
        }
    }

    /// Creates an empty dictionary. It lives on the device of the first stream it is used with.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the batch size is out of range.
    pub fn new(options: Options) -> Result<Self, Error> {
        let Options { batch_size, cleanup_policy: policy } = options.checked()?;
        Ok(Self {
            batch_size,
            batches: 0,
            stack: Stack::new(),
            tombstones: 0,
            policy,
            cleanup_failure: None,
            history: History::default(),
        })
    }

    /// Creates an empty dictionary for batches of up to `batch_size` operations: see [`Options::batch_size`].
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_batch_size(batch_size: usize) -> Result<Self, Error> {
        Self::new(Options::new().batch_size(batch_size))
    }

    /// Builds a dictionary from these pairs, as a single level. If a key occurs more than once, the last pair wins.
    /// Does not wait.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new) and [`insert`](Self::insert).
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "lsm::bulk_build", pairs.0.len());
        let mut lsm = Self::new(options)?;
        let level = Level::from_pairs(stream, pairs.0, pairs.1.into())?;
        lsm.put_only(level)?;
        Ok(lsm)
    }

    /// Makes `level` the only level, in the first slot it fits into. It must have no tombstones.
    fn put_only(&mut self, level: Level<K, V>) -> Result<(), Error> {
        let batches = (level.len().div_ceil(self.batch_size) as u64).next_power_of_two();
        let slot = batches.ilog2() as usize;
        if slot >= Stack::<K, V>::SLOTS {
            return Err(too_many_batches(self.batch_size, batches));
        }
        self.clear();
        if !level.is_empty() {
            self.stack.set(slot, Some(level));
            self.batches = batches;
        }
        Ok(())
    }

    /// Takes a snapshot: the dictionary as it is now, for queries while updates go on. It shares the levels with the
    /// dictionary and costs no device memory. Does not wait.
    ///
    /// A level that an update merges away stays allocated until no snapshot has it.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let device = Device::default()?;
    /// let stream = device.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[1, 2])?, &stream.upload(&[10, 20])?))?;
    /// let before = lsm.snapshot();
    /// std::thread::scope(|scope| {
    ///     let queries = scope.spawn(|| -> Result<_, Error> {
    ///         let stream = device.stream()?;
    ///         before.lookup(&stream, &stream.upload(&[1, 2])?)?.to_vec(&stream)
    ///     });
    ///     lsm.delete(&stream, &stream.upload(&[1])?)?;
    ///     assert_eq!(queries.join().expect("no panic")?, [Some(10), Some(20)]);
    ///     Ok::<(), Error>(())
    /// })?;
    /// assert_eq!(lsm.len(&stream)?, 1);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<Self> {
        Snapshot::new(self.with_history(self.history.of_snapshot()))
    }

    /// Inserts any number of pairs. Replaces the values of keys that are already present. Does not wait.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::OutOfMemory`].
    /// - [`Error::TooLong`] for a level of 2^32 elements or more.
    /// - Any launch error.
    ///
    /// After an error the dictionary is unchanged.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "lsm::insert", pairs.0.len());
        self.change(stream, pairs.0, pairs.1.into(), None)
    }

    /// Deletes keys. Ignores absent keys. Does not wait.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::delete", keys.len());
        let (no_keys, no_values) = (stream.uninit::<K>(0)?, stream.uninit::<V>(0)?);
        self.change(stream, no_keys.as_slice(), no_values.as_slice(), Some(keys))
    }

    /// Inserts pairs and deletes keys in one call: as a single mixed batch if they fit into one. If a key is in both, the
    /// deletion wins. Does not wait.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        let insert: (DeviceSlice<'a, K>, _) = (insert.0.into(), insert.1);
        let _span = gpu_primitives::span!(stream, "lsm::update", insert.0.len());
        let delete = delete.into();
        self.change(stream, insert.0, insert.1.into(), Some(delete).filter(|delete| !delete.is_empty()))
    }

    /// Combines values with those that are present: the value of a key becomes `operation.combine(present, new)`, and the new
    /// value if the key is absent. Equal keys of a call are combined in order. Does not wait.
    ///
    /// The new values are stored as they are, like those of an [insertion](Self::insert). They are combined when levels are
    /// merged, and by queries that meet them before. The operation must be associative; one that is not gives some values.
    ///
    /// A call with another operation than the one before first [cleans up](Self::cleanup) if some values are not combined yet,
    /// and waits for that.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::scan::{Max, Sum};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut counts = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// counts.upsert(&stream, (&stream.upload(&[7, 8, 7])?, &stream.upload(&[1, 1, 1])?), Sum)?;
    /// counts.upsert(&stream, (&stream.upload(&[8, 7])?, &stream.upload(&[10, 20])?), Sum)?;
    /// assert_eq!(counts.iter(&stream)?.collect::<Vec<_>>(), [(7, 22), (8, 11)]);
    ///
    /// counts.upsert(&stream, (&stream.upload(&[7, 8])?, &stream.upload(&[15, 15])?), Max)?;
    /// assert_eq!(counts.lookup(&stream, &stream.upload(&[7, 8])?)?.to_vec(&stream)?, [Some(22), Some(15)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert), and of [`cleanup`](Self::cleanup). After an error the dictionary has the
    /// contents that it had.
    pub fn upsert<'a, M: Upsertion<V>>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: M,
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "lsm::upsert", pairs.0.len());
        let (keys, values) = (pairs.0, pairs.1.into());
        expect_len("the values to upsert", values_for::<V>(keys.len()), values.len())?;
        self.stack.expect_device(stream)?;
        if self.levels().any(|(_, level)| level.has_other_operands(&operation)) {
            self.cleanup(stream)?;
        }
        let mut draft = Draft::new(self);
        draft.upsert(stream, keys, values, operation)?;
        let finished = draft.finish();
        self.install(stream, finished)
    }

    /// Returns a copy without values that are still to be combined, or `None` if there are none. Waits.
    pub(crate) fn combined(&self, stream: &Stream) -> Result<Option<Self>, Error> {
        if !self.stack.has_operands() {
            return Ok(None);
        }
        let mut combined = self.clone();
        combined.cleanup(stream)?;
        // It has the contents of this dictionary, so its checkpoint is one of this dictionary, as it is now.
        combined.history = self.history.of_snapshot();
        Ok(Some(combined))
    }

    fn change(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        deleted: Option<DeviceSlice<'_, K>>,
    ) -> Result<(), Error> {
        expect_len("the values to insert", values_for::<V>(keys.len()), values.len())?;
        self.stack.expect_device(stream)?;
        let mut draft = Draft::new(self);
        match deleted {
            Some(deleted) if !keys.is_empty() && keys.len() + deleted.len() <= self.batch_size => {
                let runs = vec![Level::from_pairs(stream, keys, values)?, Level::tombstones(stream, deleted)?];
                draft.add(0, |older| merge_runs(stream, older, runs))?;
                draft.tombstones += deleted.len();
            }
            _ => {
                draft.insert(stream, keys, values)?;
                if let Some(deleted) = deleted {
                    draft.delete(stream, deleted)?;
                }
            }
        }
        let finished = draft.finish();
        self.install(stream, finished)
    }

    /// Removes elements from the levels. After an error of `remove`, which changes nothing then, the dictionary is
    /// unchanged.
    pub(crate) fn remove(&mut self, remove: impl FnOnce(&mut Stack<K, V>) -> Result<(), Error>) -> Result<(), Error> {
        remove(&mut self.stack)?;
        self.history.advance();
        // A level that is empty now counts as none: its slot is free, and its batches are gone.
        self.batches = self.levels().map(|(slot, _)| 1 << slot).sum();
        Ok(())
    }

    /// Makes the levels of a draft those of the dictionary. Then cleans up if the policy asks for it.
    fn install(&mut self, stream: &Stream, finished: Finished<K, V>) -> Result<(), Error> {
        let Finished { batches, changed, tombstones } = finished;
        self.history.advance();
        (self.batches, self.tombstones) = (batches, tombstones);
        for (slot, level) in changed.into_iter().enumerate() {
            if let Some(level) = level {
                self.stack.set(slot, level);
            }
        }
        let is_due = self.policy.is_some_and(|policy| policy.asks_for_cleanup(&self.stats()));
        // The update has succeeded, so it returns `Ok`. The next update retries a failed cleanup.
        self.cleanup_failure = if is_due { self.cleanup(stream).err() } else { None };
        Ok(())
    }

    /// Removes all stale elements and leaves a single level. Waits for the stream, to learn how many elements are left.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the dictionary is unchanged.
    pub fn cleanup(&mut self, stream: &Stream) -> Result<(), Error> {
        let _span = gpu_primitives::span!(stream, "lsm::cleanup", self.stack.len());
        let levels: Vec<&Level<K, V>> = self.stack.oldest_first().map(|(_, level)| level).collect();
        let live = Level::live(stream, &levels)?;
        self.put_only(live)?;
        self.cleanup_failure = None;
        Ok(())
    }

    /// Returns why the cleanup after the last update failed. Returns `None` if it succeeded, or if the
    /// [policy](Self::set_cleanup_policy) asked for none. The update itself has succeeded in any case, and the next one
    /// tries the cleanup again.
    #[must_use]
    pub fn cleanup_failure(&self) -> Option<&Error> {
        self.cleanup_failure.as_ref()
    }

    /// Sets when an update is followed by a cleanup: when `policy` asks for it, or never, which is the default. An
    /// update that is followed by a cleanup waits for the stream. If the cleanup fails,
    /// [`cleanup_failure`](Self::cleanup_failure) says why.
    pub fn set_cleanup_policy(&mut self, policy: Option<CleanupPolicy>) {
        self.policy = policy;
    }

    /// Returns when an update is followed by a cleanup; `None` if it never is.
    #[must_use]
    pub fn cleanup_policy(&self) -> Option<CleanupPolicy> {
        self.policy
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.history.advance();
        self.stack.clear();
        (self.batches, self.tombstones) = (0, 0);
    }

    /// Checks whether there is memory for `additional` more elements; reserves nothing. The check covers the new levels
    /// and the levels merged along the way. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn check_memory(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let element = size_of::<K>() + size_of::<V>();
        let bytes = self.stack.len().saturating_add(additional.saturating_mul(3)).saturating_mul(element);
        stream.uninit::<u8>(bytes).map(drop)
    }

    /// Returns what the host knows about the dictionary's contents. Does not wait.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let resident = self.stack.len();
        Stats {
            batch_size: self.batch_size,
            batches: self.batches,
            levels: self.stack.oldest_first().count(),
            resident,
            tombstones: self.tombstones,
            stale_estimate: (2 * self.tombstones).min(resident),
            bytes: self.stack.bytes(),
        }
    }

    /// Returns the existing levels, oldest first, each with its slot: to inspect, or to copy elsewhere. A level in slot
    /// `i` holds at most `2^i` batches, and the slots in use are the binary digits of [`Stats::batches`].
    pub fn levels(&self) -> impl Iterator<Item = (usize, &Level<K, V>)> {
        self.stack.oldest_first()
    }
}
