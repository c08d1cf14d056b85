//! The dictionary: updates and queries.

use crate::{Contents, Key, Level, SortedArrayView, Stats};
use bytemuck::Pod;
use gpu_primitives::dictionary::levels::Stack;
use gpu_primitives::kernel::View;
use gpu_primitives::{DeviceSlice, Error, Stream};

/// Elements per bucket of the directory. The directory thus takes half a byte per element.
const BUCKET: usize = 16;

/// The stack slot of the only level.
const SLOT: usize = 0;

/// A sorted array: see the [crate documentation](crate).
#[derive(Debug)]
pub struct GpuSortedArray<K: Key, V: Pod> {
    /// At most one level, without tombstones or duplicate keys.
    stack: Stack<K, V>,
}

impl<K: Key, V: Pod> Default for GpuSortedArray<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Pod> GpuSortedArray<K, V> {
    /// Creates an empty array. It lives on the device of the first stream it is used with.
    #[must_use]
    pub fn new() -> Self {
        Self { stack: Stack::with_bucket(BUCKET) }
    }

    /// Builds an array from these pairs. If a key occurs more than once, the last pair wins. Waits for the stream, to
    /// learn the number of distinct keys.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
    ) -> Result<Self, Error> {
        let sorted = Level::from_pairs(stream, keys.into(), values.into())?;
        Ok(Self::of(Level::live(stream, &[&sorted])?))
    }

    /// Makes an array of `level`, which must have no tombstones and no duplicate keys.
    pub(crate) fn of(mut level: Level<K, V>) -> Self {
        level.set_distinct();
        let mut array = Self::new();
        array.stack.set(SLOT, Some(level));
        array
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
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
    ) -> Result<(), Error> {
        self.merge(stream, &[Level::from_pairs(stream, keys.into(), values.into())?])
    }

    /// Deletes keys. Ignores absent keys. Waits, as [`insert`](Self::insert) does.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.merge(stream, &[Level::tombstones(stream, keys.into())?])
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
        let inserted = Level::from_pairs(stream, insert.0.into(), insert.1.into())?;
        self.merge(stream, &[inserted, Level::tombstones(stream, delete.into())?])
    }

    /// Merges newer levels, oldest first, into the array and drops stale elements.
    fn merge(&mut self, stream: &Stream, newer: &[Level<K, V>]) -> Result<(), Error> {
        let newer = newer.iter().filter(|level| !level.is_empty());
        let levels: Vec<&Level<K, V>> = self.stack.level(SLOT).into_iter().chain(newer).collect();
        if levels.len() > usize::from(!self.is_empty()) {
            let merged = Level::live(stream, &levels)?;
            self.stack.set(SLOT, Some(merged));
        }
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.stack.clear();
    }

    /// Checks whether there is memory to insert `additional` more elements; reserves nothing. The check covers the
    /// sorted batch and the new array. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not enough memory.
    pub fn try_reserve(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let element = size_of::<K>() + size_of::<V>();
        let bytes = self.len().saturating_add(additional.saturating_mul(3)).saturating_mul(element);
        stream.uninit::<u8>(bytes).map(drop)
    }

    gpu_primitives::queries_of_levels! { K, V, "Does not wait." }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Returns whether the array has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Returns a copy of all pairs in key order, on the device. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let (keys, values, len) = self.stack.export(stream)?;
        Ok(Contents { keys, values, len })
    }

    /// Returns all pairs in key order, on the host. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Returns statistics of the array. Does not wait.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { resident: self.len(), live: Some(self.len()), bytes: self.stack.bytes() }
    }

    /// Returns the array itself, to inspect, or `None` if it is empty. It has no tombstones and no duplicate keys.
    #[must_use]
    pub fn level(&self) -> Option<&Level<K, V>> {
        self.stack.level(SLOT)
    }

    /// Returns the array as an argument for a kernel of your own, which looks up single keys with
    /// [`SortedArrayView::get`]. The kernel sees a key as the unsigned integer with the same bits. It sees a value as
    /// `W`: an unsigned integer of the same size, or `()`. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If the size of `W` differs from the size of the values.
    pub fn view<W: Pod>(&self, stream: &Stream) -> Result<View<'_, SortedArrayView<K::Code, W>>, Error> {
        self.stack.view(stream)
    }
}
