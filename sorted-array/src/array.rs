//! The dictionary: updates and queries.

use crate::{Contents, Key, Level, SortedArrayView, Stats};
use bytemuck::Pod;
use gpu_primitives::dictionary::levels::Stack;
use gpu_primitives::kernel::View;
use gpu_primitives::{DeviceSlice, Error, Stream};

/// Elements per bucket of the directory, which so takes half a byte per element.
const BUCKET: usize = 16;

/// Where the level is.
const SLOT: usize = 0;

/// The sorted array: see the [crate](crate).
#[derive(Debug)]
pub struct GpuSortedArray<K: Key, V: Pod> {
    /// One level, or none: without tombstones, and with every key once.
    stack: Stack<K, V>,
}

impl<K: Key, V: Pod> Default for GpuSortedArray<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V: Pod> GpuSortedArray<K, V> {
    /// An empty array. It is on the device of the stream that it is first used with.
    #[must_use]
    pub fn new() -> Self {
        Self { stack: Stack::with_bucket(BUCKET) }
    }

    /// The array of these pairs: of equal keys the last one counts. Waits for the stream, to know how many are different.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
    ) -> Result<Self, Error> {
        let sorted = Level::from_pairs(stream, keys.into(), values.into())?;
        Ok(Self::of(Level::live(stream, &[&sorted])?))
    }

    /// The array of this level, which has no tombstones and every key once.
    pub(crate) fn of(mut level: Level<K, V>) -> Self {
        level.set_distinct();
        let mut array = Self::new();
        array.stack.set(SLOT, Some(level));
        array
    }

    /// Inserts pairs, or replaces the values of keys that are there. Writes the array anew. Waits for the stream, to know how
    /// long it is now.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not a value for each key (for values of no size, if there are any);
    /// [`Error::OutOfMemory`]; [`Error::TooLong`] for 2^32 elements; what a launch can give. Then the array is as it was.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        values: impl Into<DeviceSlice<'a, V>>,
    ) -> Result<(), Error> {
        self.merge(stream, &[Level::from_pairs(stream, keys.into(), values.into())?])
    }

    /// Deletes keys; those that are not there are no error. Waits, as [`insert`](Self::insert) does.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        self.merge(stream, &[Level::tombstones(stream, keys.into())?])
    }

    /// Inserts pairs and deletes keys at once, which costs as much as one of them. What is in both is deleted. Waits, as
    /// [`insert`](Self::insert) does.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<(), Error> {
        let inserted = Level::from_pairs(stream, insert.0.into(), insert.1.into())?;
        self.merge(stream, &[inserted, Level::tombstones(stream, delete.into())?])
    }

    /// Merges newer levels into the array, the older first, and leaves out what is stale.
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

    /// Sees whether there is memory for so many more elements, as an update needs it: for the sorted batch and the new array.
    /// Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not.
    pub fn try_reserve(&self, stream: &Stream, additional: usize) -> Result<(), Error> {
        let element = size_of::<K>() + size_of::<V>();
        let bytes = self.len().saturating_add(additional.saturating_mul(3)).saturating_mul(element);
        stream.uninit::<u8>(bytes).map(drop)
    }

    gpu_primitives::queries_of_levels! { K, V, "Does not wait." }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// All pairs in the order of the keys, on the device: a copy. Waits for the stream.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let (keys, values, len) = self.stack.export(stream)?;
        Ok(Contents { keys, values, len })
    }

    /// All pairs in the order of the keys, on the host. Waits for the stream.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// How much there is. Does not wait.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { resident: self.len(), live: Some(self.len()), bytes: self.stack.bytes() }
    }

    /// The array itself, to look at; `None` if it is empty. It has no tombstones, and every key once.
    #[must_use]
    pub fn level(&self) -> Option<&Level<K, V>> {
        self.stack.level(SLOT)
    }

    /// The array as an argument of a kernel of your own, which looks up single keys with [`SortedArrayView::get`]. Keys are seen
    /// as the unsigned numbers of their bits, and values as `W`, an unsigned number of the same size, or `()`. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If `W` has another size than the values.
    pub fn view<W: Pod>(&self, stream: &Stream) -> Result<View<'_, SortedArrayView<K::Code, W>>, Error> {
        self.stack.view(stream)
    }
}
