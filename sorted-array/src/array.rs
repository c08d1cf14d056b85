//! The dictionary: updates and queries.

use crate::{Key, Level, Options, Snapshot, Stats, Value};
use gpu_dictionary::Upsertion;
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::levels::{AnyLevel, AnyStack, Stack};
use gpu_primitives::lowered::Place;
use gpu_primitives::{DeviceSlice, Error, Stream};

/// The stack slot of the only level.
const SLOT: usize = 0;

/// A sorted array: see the [crate documentation](crate).
///
/// A clone shares the array until one of the two is updated. It costs no device memory, and does not wait. It has checkpoints of
/// its own.
#[derive(Clone, Debug)]
pub struct GpuSortedArray<K: Key, V: Value> {
    /// At most one level, without tombstones or duplicate keys.
    pub(crate) stack: Stack<K, V>,
    pub(crate) history: History,
}

impl<K: Key, V: Value> Default for GpuSortedArray<K, V> {
    fn default() -> Self {
        Self::empty(Options::new())
    }
}

impl<K: Key, V: Value> GpuSortedArray<K, V> {
    /// Creates an empty array. It takes no memory yet, and lives on the device of the first stream that something is inserted with.
    ///
    /// # Errors
    /// None.
    pub fn new(_: &Stream, options: Options) -> Result<Self, Error> {
        Ok(Self::empty(options))
    }

    fn empty(options: Options) -> Self {
        Self { stack: Stack::with_bucket(options.bucket), history: History::default() }
    }

    /// Returns the levels, for a query.
    #[expect(clippy::unnecessary_wraps, reason = "other dictionaries may have something to merge before")]
    pub(crate) fn stack(&self, _: &Stream) -> Result<&Stack<K, V>, Error> {
        Ok(&self.stack)
    }

    /// Returns the options that the array has. A new one with them behaves in the same way.
    #[must_use]
    pub fn options(&self) -> Options {
        Options::new().keys_per_bucket(self.stack.keys_per_bucket())
    }

    /// Makes a copy that can be queried and updated independently: [`clone`](Clone::clone), which cannot fail.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self, _: &Stream) -> Result<Self, Error> {
        Ok(self.clone())
    }

    /// Builds an array from these pairs. If a key occurs more than once, the last pair wins. Waits for the stream, to
    /// learn the number of distinct keys.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "sorted_array::bulk_build", pairs.0.len());
        let sorted = Level::from_pairs(stream, pairs.0, pairs.1.into())?;
        Ok(Self::of(Level::live(stream, &[&sorted])?, options))
    }

    /// Makes an array of `level`, which must have no tombstones and no duplicate keys.
    pub(crate) fn of(mut level: Level<K, V>, options: Options) -> Self {
        level.set_distinct();
        let mut array = Self::empty(options);
        array.stack.set(SLOT, Some(level));
        array
    }

    /// Takes a snapshot: the array as it is now, for queries while updates go on. It shares the array and costs no device
    /// memory until an update replaces the array. Does not wait. Its [checkpoint](gpu_dictionary::Durable::checkpoint) is one
    /// of the array.
    ///
    /// ```
    /// # use gpu_primitives::{Device, Error};
    /// # use gpu_sorted_array::GpuSortedArray;
    /// # let stream = Device::default()?.stream()?;
    /// let mut array = GpuSortedArray::<u32, u32>::default();
    /// array.insert(&stream, (&stream.upload(&[1, 2])?, &stream.upload(&[10, 20])?))?;
    /// let before = array.snapshot();
    /// array.delete(&stream, &stream.upload(&[1])?)?;
    /// assert_eq!((before.len(&stream)?, array.len(&stream)?), (2, 1));
    ///
    /// let mut again = before.into_inner(); // can be updated, independently of the first one
    /// again.clear(&stream)?;
    /// assert_eq!((again.len(&stream)?, array.len(&stream)?), (0, 1));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<Self> {
        Snapshot::new(Self { stack: self.stack.clone(), history: self.history.of_snapshot() })
    }

    /// Inserts pairs. Replaces the values of keys that are already present. Rewrites the whole array. Waits for the
    /// stream, to learn the new length.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::OutOfMemory`].
    /// - [`Error::TooLong`] for 2^32 elements or more.
    /// - Any launch error.
    ///
    /// After an error the array is unchanged.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "sorted_array::insert", pairs.0.len());
        self.merge(stream, &[Level::<K, V>::from_pairs(stream, pairs.0, pairs.1.into())?.into_any()])
    }

    /// Deletes keys. Ignores absent keys. Waits, as [`insert`](Self::insert) does.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "sorted_array::delete", keys.len());
        self.merge(stream, &[Level::<K, V>::tombstones(stream, keys)?.into_any()])
    }

    /// Inserts pairs and deletes keys in one call, at the cost of a single merge. If a key is in both, the deletion
    /// wins. Waits, as [`insert`](Self::insert) does.
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
        let _span = gpu_primitives::span!(stream, "sorted_array::update", insert.0.len());
        let inserted = Level::<K, V>::from_pairs(stream, insert.0, insert.1.into())?;
        let deleted = Level::<K, V>::tombstones(stream, delete.into())?;
        self.merge(stream, &[inserted.into_any(), deleted.into_any()])
    }

    /// Combines values with those that are present: the value of a key becomes `operation.combine(present, new)`, and the new
    /// value if the key is absent. Equal keys of a call are combined in order. The operation must be associative; one that is
    /// not gives some values. Waits, as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # use gpu_primitives::scan::Sum;
    /// # use gpu_primitives::{Device, Error};
    /// # use gpu_sorted_array::GpuSortedArray;
    /// # let stream = Device::default()?.stream()?;
    /// let mut counts = GpuSortedArray::<u32, u32>::default();
    /// counts.upsert(&stream, (&stream.upload(&[7, 8, 7])?, &stream.upload(&[1, 1, 1])?), Sum)?;
    /// counts.upsert(&stream, (&stream.upload(&[8, 9])?, &stream.upload(&[10, 20])?), Sum)?;
    /// assert_eq!(counts.iter(&stream)?.collect::<Vec<_>>(), [(7, 2), (8, 11), (9, 20)]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn upsert<'a, M: Upsertion<V>>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        operation: M,
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "sorted_array::upsert", pairs.0.len());
        let operands = Level::<K, V>::operands(stream, pairs.0, pairs.1.into(), operation)?;
        self.merge(stream, &[operands.into_any()])
    }

    /// Merges newer levels, oldest first, into the array.
    fn merge(&mut self, stream: &Stream, newer: &[AnyLevel]) -> Result<(), Error> {
        merge(self.stack.any_mut(), stream, newer)?;
        self.history.advance();
        Ok(())
    }

    /// Removes everything. Does not wait.
    ///
    /// # Errors
    /// None.
    pub fn clear(&mut self, _: &Stream) -> Result<(), Error> {
        self.history.advance();
        self.stack.clear();
        Ok(())
    }

    /// Checks whether there is memory to insert `additional` more elements; reserves nothing. The check covers the
    /// sorted batch and the new array. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn check_memory(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let element = size_of::<K>() + size_of::<V>();
        let bytes = self.stack.len().saturating_add(additional.saturating_mul(3)).saturating_mul(element);
        stream.uninit::<u8>(bytes).map(drop)
    }

    /// Returns the number of keys. Does not wait: the host knows it.
    ///
    /// # Errors
    /// None.
    pub fn len(&self, _: &Stream) -> Result<usize, Error> {
        Ok(self.stack.len())
    }

    /// Returns whether the array has no keys. Does not wait.
    ///
    /// # Errors
    /// None.
    pub fn is_empty(&self, _: &Stream) -> Result<bool, Error> {
        Ok(self.stack.is_empty())
    }

    /// Returns statistics of the array. Does not wait.
    ///
    /// # Errors
    /// None.
    pub fn stats(&self, _: &Stream) -> Result<Stats, Error> {
        let len = self.stack.len();
        Ok(Stats { resident: len, live: Some(len), bytes: self.stack.bytes() })
    }

    /// Returns the array itself, to inspect, or `None` if it is empty. It has no tombstones and no duplicate keys.
    #[must_use]
    pub fn level(&self) -> Option<&Level<K, V>> {
        self.stack.level(SLOT)
    }
}

gpu_dictionary::methods_of_sets! {
    /// ```
    /// use gpu_primitives::{Device, Error};
    /// use gpu_sorted_array::{GpuSortedArray, Options};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut set = GpuSortedArray::build_set(&stream, &stream.upload(&[3u32, 1])?, Options::new())?;
    /// set.insert_keys(&stream, &stream.upload(&[2, 3])?)?;
    /// assert_eq!(set.len(&stream)?, 3);
    /// assert_eq!(set.contains(&stream, &stream.upload(&[2, 4])?)?.to_vec(&stream)?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    GpuSortedArray<K, ()>: [K: Key], K, Options
}

/// Merges newer levels, oldest first, into the array and drops stale elements. Compiled once: levels have no types here.
fn merge(stack: &mut AnyStack, stream: &Stream, newer: &[AnyLevel]) -> Result<(), Error> {
    let newer = newer.iter().filter(|level| !level.is_empty());
    let levels: Vec<&AnyLevel> = stack.level(SLOT).into_iter().chain(newer).collect();
    if levels.len() > usize::from(!stack.is_empty()) {
        let merged = AnyLevel::live(stack.types(), stream, Place::Device, &levels)?;
        stack.set(SLOT, Some(merged));
    }
    Ok(())
}
