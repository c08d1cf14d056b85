//! The dictionary: updates and cleanup.

use crate::any::AnyLsm;
use crate::budget::Budget;
use crate::options::Options;
use crate::{CleanupPolicy, Key, Level, Snapshot, Stats, Value};
use core::fmt::{self, Debug, Formatter};
use core::marker::PhantomData;
use gpu_dictionary::Upsertion;
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::levels::{Operation, Operations, Stack, Types};
use gpu_primitives::{DeviceSlice, Error, Stream};

/// A dynamic dictionary: see the [crate documentation](crate).
pub struct GpuLsm<K: Key, V: Value> {
    /// All of it, without the types.
    pub(crate) any: AnyLsm,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Debug for GpuLsm<K, V> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GpuLsm").field(&self.any).finish()
    }
}

/// Makes a dictionary that shares the levels, which never change, and the buffer. Costs no device memory, and does not wait. Both
/// dictionaries can be queried and updated independently, and have checkpoints of their own. What is in the buffer is flushed by
/// the first query or update of either: once for both.
impl<K: Key, V: Value> Clone for GpuLsm<K, V> {
    fn clone(&self) -> Self {
        self.with_history(History::default())
    }
}

impl<K: Key, V: Value> GpuLsm<K, V> {
    fn of(any: AnyLsm) -> Self {
        Self { any, types: PhantomData }
    }

    /// Makes a clone with this history.
    fn with_history(&self, history: History) -> Self {
        Self::of(self.any.with_history(history))
    }

    /// Returns the levels with their types, for a query. Flushes the buffer first.
    pub(crate) fn stack(&self, stream: &Stream) -> Result<&Stack<K, V>, Error> {
        self.any.levels(stream).map(|levels| Stack::of_ref(&levels.stack))
    }

    /// Creates an empty dictionary. It takes no memory yet, and lives on the device of the first stream that something is inserted
    /// with.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the batch size or the buffer is out of range.
    pub fn new(_: &Stream, options: Options) -> Result<Self, Error> {
        Self::empty(options)
    }

    /// Creates an empty dictionary for batches of up to `batch_size` operations: see [`Options::batch_size`].
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_batch_size(batch_size: usize) -> Result<Self, Error> {
        Self::empty(Options::new().batch_size(batch_size))
    }

    pub(crate) fn empty(options: Options) -> Result<Self, Error> {
        AnyLsm::new(Types::of::<K, V>(), options).map(Self::of)
    }

    /// Returns the options that the dictionary has. A new one with them behaves in the same way.
    #[must_use]
    pub fn options(&self) -> Options {
        let AnyLsm { batch_size, buffer, budget: device_memory, policy, .. } = self.any;
        Options { batch_size, buffer, device_memory, cleanup_policy: policy }
    }

    /// Makes a copy that can be queried and updated independently: [`clone`](Clone::clone), which cannot fail.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self, _: &Stream) -> Result<Self, Error> {
        Ok(self.clone())
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
        let mut lsm = Self::empty(options)?;
        let level = Level::from_pairs(stream, pairs.0, pairs.1.into())?;
        lsm.any.put_only(stream, level.into_any())?;
        Ok(lsm)
    }

    /// Takes a snapshot: the dictionary as it is now, for queries while updates go on. It shares the levels with the
    /// dictionary and costs no device memory. Does not wait.
    ///
    /// It shares the [buffer](Options::buffer), too. If there is something in it, the next update flushes it, unless a query of
    /// the snapshot or of the dictionary has done so: once for both. A snapshot right after a [`flush`](Self::flush) causes no
    /// work on the device at all.
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
        Snapshot::new(self.with_history(self.any.history.of_snapshot()))
    }

    /// Inserts any number of pairs. Replaces the values of keys that are already present. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
    ///
    /// A small call only copies the pairs into the [buffer](Options::buffer).
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
        let (keys, values) = (pairs.0.into(), pairs.1.into().into());
        self.any.change(stream, Operations { keys, values, operation: None, deleted: None })
    }

    /// Deletes keys. Ignores absent keys. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys = keys.into();
        let _span = gpu_primitives::span!(stream, "lsm::delete", keys.len());
        let (no_keys, no_values) = (stream.uninit::<K>(0)?, stream.uninit::<V>(0)?);
        let (no_keys, no_values) = (no_keys.as_slice().into(), no_values.as_slice().into());
        let deleted = Some(keys.into());
        self.any.change(stream, Operations { keys: no_keys, values: no_values, operation: None, deleted })
    }

    /// Inserts pairs and deletes keys in one call: as a single mixed batch if they fit into one. If a key is in both, the
    /// deletion wins. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
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
        let deleted = Some(delete.into()).filter(|delete| !delete.is_empty()).map(Into::into);
        let (keys, values) = (insert.0.into(), insert.1.into().into());
        self.any.change(stream, Operations { keys, values, operation: None, deleted })
    }

    /// Combines values with those that are present: the value of a key becomes `operation.combine(present, new)`, and the new
    /// value if the key is absent. Equal keys of a call are combined in order. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
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
        let operation = Operation::of::<V, M>(operation);
        let (keys, values) = (pairs.0.into(), pairs.1.into().into());
        self.any.change(stream, Operations { keys, values, operation: operation.as_ref(), deleted: None })
    }

    /// Returns a copy without values that are still to be combined, or `None` if there are none. Waits.
    pub(crate) fn combined(&self, stream: &Stream) -> Result<Option<Self>, Error> {
        Ok(self.any.combined(stream)?.map(Self::of))
    }

    /// Removes elements from the levels. After an error of `remove`, which changes nothing then, the dictionary is
    /// unchanged.
    pub(crate) fn remove(
        &mut self,
        stream: &Stream,
        remove: impl FnOnce(&mut Stack<K, V>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let levels = self.any.levels_mut(stream)?;
        remove(Stack::of_mut(&mut levels.stack))?;
        levels.removed();
        self.any.history.advance();
        Ok(())
    }

    /// Sorts what is in the [buffer](Options::buffer), as one batch, and merges it with the levels. Every query does this first,
    /// so there is need for it only to choose the moment: before work is recorded in a graph, to learn early whether there is
    /// enough memory, or to leave nothing to the first query. If the buffer is empty, does nothing. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// assert_eq!(lsm.stats(&stream)?.buffered, 2);
    /// lsm.flush(&stream)?;
    /// assert_eq!(lsm.stats(&stream)?.buffered, 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::WrongDevice`], or any launch error. After an error the dictionary is unchanged, and a
    /// later call can succeed. On the CPU, an operation or a key that panics is a launch error, [`Error::KernelFault`], and a later
    /// call panics again: [`discard_buffer`](Self::discard_buffer) is the way out.
    pub fn flush(&self, stream: &Stream) -> Result<(), Error> {
        self.any.flush(stream)
    }

    /// Drops what is in the [buffer](Options::buffer), and returns how many operations there were. Does not wait.
    ///
    /// It is the way out if a flush fails each time: on the CPU, an operation or the code of a key may panic for some values. The
    /// levels are left, without the updates since the last flush: [`Stats::buffered`] says how many these are. Copies and snapshots that
    /// share the buffer keep it.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// lsm.flush(&stream)?;
    /// lsm.delete(&stream, &stream.upload(&[3])?)?;
    /// assert_eq!(lsm.discard_buffer(&stream)?, 1);
    /// assert_eq!(lsm.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::HostCallInKernel`] if an operator calls this from inside a kernel on the CPU.
    pub fn discard_buffer(&mut self, _: &Stream) -> Result<usize, Error> {
        self.any.discard_buffer()
    }

    /// Removes all stale elements and leaves a single level. Waits for the stream, to learn how many elements are left.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the dictionary is unchanged.
    pub fn cleanup(&mut self, stream: &Stream) -> Result<(), Error> {
        self.any.cleanup(stream)
    }

    /// Returns why the cleanup after the last update failed. Returns `None` if it succeeded, or if the
    /// [policy](Self::set_cleanup_policy) asked for none. The update itself has succeeded in any case, and the next one
    /// tries the cleanup again.
    #[must_use]
    pub fn cleanup_failure(&self) -> Option<&Error> {
        self.any.cleanup_failure.as_ref()
    }

    /// Sets when an update is followed by a cleanup: when `policy` asks for it, or never, which is the default. An
    /// update that is followed by a cleanup waits for the stream. If the cleanup fails,
    /// [`cleanup_failure`](Self::cleanup_failure) says why.
    pub fn set_cleanup_policy(&mut self, policy: Option<CleanupPolicy>) {
        self.any.policy = policy;
    }

    /// Returns when an update is followed by a cleanup; `None` if it never is.
    #[must_use]
    pub fn cleanup_policy(&self) -> Option<CleanupPolicy> {
        self.any.policy
    }

    /// Sets how much device memory the keys and values of levels may take, `None` for no limit, and moves levels from and to the host
    /// accordingly: see [`Options::device_memory`]. [Flushes](Self::flush) the buffer first. Does not wait.
    ///
    /// ```
    /// use gpu_lsm::GpuLsm;
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
    /// lsm.insert(&stream, (&stream.upload(&[3, 1])?, &stream.upload(&[30, 10])?))?;
    /// lsm.set_device_memory(&stream, Some(0))?;
    /// assert_eq!(lsm.stats(&stream)?.host_bytes, 16);
    /// assert_eq!(lsm.iter(&stream)?.collect::<Vec<_>>(), [(1, 10), (3, 30)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::WrongDevice`], or any error of a copy. After an error the dictionary is unchanged, and so is its
    /// budget.
    pub fn set_device_memory(&mut self, stream: &Stream, bytes: Option<usize>) -> Result<(), Error> {
        self.any.set_budget(stream, Budget(bytes))
    }

    /// Removes everything. Does not wait.
    ///
    /// # Errors
    /// None.
    pub fn clear(&mut self, _: &Stream) -> Result<(), Error> {
        self.any.clear();
        Ok(())
    }

    /// Checks whether there is memory for `additional` more elements; reserves nothing. Does not wait.
    ///
    /// The check is an estimate: can all elements that are there be allocated once more, with three times the additional ones? That
    /// is about what a flush and the merges along the way take in addition to the dictionary. It does not include the room that the
    /// buffer takes for operations that are still to come, which is less if there is no memory for it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn check_memory(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        self.any.check_memory(stream, additional)
    }

    /// Returns what the host knows about the dictionary's contents. Does not wait, and does not flush the buffer.
    ///
    /// # Errors
    /// [`Error::HostCallInKernel`] if an operator calls this from inside a kernel on the CPU.
    pub fn stats(&self, _: &Stream) -> Result<Stats, Error> {
        self.any.stats()
    }

    /// Returns the existing levels, oldest first, each with its slot: to inspect, or to copy elsewhere. A level in slot
    /// `i` holds at most `2^i` batches, and the slots in use are the binary digits of [`Stats::batches`]. Does not wait.
    ///
    /// # Errors
    /// The errors of [`flush`](Self::flush).
    #[allow(clippy::type_complexity, reason = "an iterator of pairs")]
    pub fn levels<'a>(
        &'a self,
        stream: &Stream,
    ) -> Result<impl Iterator<Item = (usize, &'a Level<K, V>)> + use<'a, K, V>, Error> {
        Ok(self.stack(stream)?.oldest_first())
    }
}

gpu_dictionary::methods_of_sets! {
    /// ```
    /// use gpu_lsm::{GpuLsm, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut set = GpuLsm::build_set(&stream, &stream.upload(&[3u32, 1])?, Options::new())?;
    /// set.insert_keys(&stream, &stream.upload(&[2, 3])?)?;
    /// assert_eq!(set.contains(&stream, &stream.upload(&[2, 4])?)?.to_vec(&stream)?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    GpuLsm<K, ()>: [K: Key], K, Options
}
