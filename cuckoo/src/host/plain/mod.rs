//! A table with keys of any plain type.

mod file;
mod index;
mod query;
#[cfg(test)]
mod tests;
mod traits;
mod update;
mod whole;

use super::hasher::Hasher;
use super::options::Options;
use super::table::GpuCuckoo;
use bytemuck::Pod;
use gpu_dictionary::checkpoint::History;
use gpu_dictionary::column::{Column, expect_values};
use gpu_dictionary::{Contents, PlainKey};
use gpu_primitives::{DeviceSlice, Error, Stream};
use index::{Found, Index};

/// The name of the table in error messages.
pub(super) const NAME: &str = "a cuckoo table of plain keys";

/// A hash table on the device with keys of any plain type of 1 to 32 bytes, and values of any plain type.
///
/// Two keys are equal if their bytes are equal. Of equal keys in one call the last one wins.
///
/// The pairs are in two arrays, where they stay. A [`GpuCuckoo`] has their indices, by a hash of 64 bits of the key. All keys
/// that are present have different hashes: an insertion that would break this chooses another hash function at random and
/// rebuilds the table, which practically never happens. A lookup compares the whole key, so answers are exact. A pair that is
/// replaced or deleted keeps its place until the arrays are full; then the others are moved together, if they are less than
/// half. [`compact`](Self::compact) does so at once.
///
/// Cost for keys of `K` bytes and values of `V` bytes, in addition to a `GpuCuckoo<u64, u32>`: an answer reads `K` bytes in
/// order, and `K` and `V` at random places; an insertion does so too, and writes both. The arrays take up to twice the memory
/// of their pairs.
///
/// ```
/// use gpu_cuckoo::{Options, PlainCuckoo};
/// use gpu_primitives::{Device, Error};
///
/// // Keys are points of a grid.
/// let stream = Device::cpu().stream()?;
/// let points = stream.upload(&[[1i32, 2, 3], [1, 2, -3], [1, 2, 3]])?;
/// let colours = stream.upload(&[[255u8, 0, 0], [0, 255, 0], [0, 0, 255]])?;
/// let mut grid = PlainCuckoo::bulk_build(&stream, (&points, &colours), Options::new())?;
/// assert_eq!(grid.len(&stream)?, 2); // of equal keys, the last one wins
///
/// let asked = stream.upload(&[[1, 2, 3], [0, 0, 0]])?;
/// assert_eq!(grid.lookup(&stream, &asked)?.to_vec(&stream)?, [Some([0, 0, 255]), None]);
/// grid.delete(&stream, &asked)?;
/// assert_eq!(grid.contains(&stream, &asked)?.to_vec(&stream)?, [0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// Longer keys do not compile: see [`PlainKey`]. If the keys have an order, which [`Key`](trait@gpu_dictionary::Key) says, the table
/// has the dictionary traits, and [`export`](Self::export).
#[derive(Debug)]
pub struct PlainCuckoo<K: PlainKey, V: Pod> {
    index: Index,
    keys: Column<K>,
    values: Column<V>,
    /// Which checkpoints the table may replace.
    history: History,
}

impl<K: PlainKey, V: Pod> PlainCuckoo<K, V> {
    /// Creates an empty table with room for as many keys as the options [say](Options::capacity). Waits.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::new`].
    pub fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        const { assert!(matches!(size_of::<K>(), 1..=32), "implement `PlainKey` by `gpu_dictionary::plain_key!`") };
        let options = options.with_any_seed();
        let hasher = Hasher::new(options.any_seed());
        let index = Index { table: GpuCuckoo::new(stream, options)?, hasher };
        Ok(Self { index, keys: Column::empty(stream)?, values: Column::empty(stream)?, history: History::default() })
    }

    /// Builds a table from these pairs: keys, and as many values. If a key occurs more than once, the last pair wins. For
    /// zero-sized values, pass an empty slice. Waits.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - The errors of [`GpuCuckoo::bulk_build`].
    /// - [`Error::TableFull`] if no hash function is found that tells all keys apart, which practically never happens.
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "plain_cuckoo::bulk_build", pairs.0.len());
        let (keys, values) = (pairs.0, pairs.1.into());
        expect_values::<V>(keys.len(), values.len())?;
        let empty = Self::new(stream, options)?;
        empty.with_pairs(stream, (keys, values), empty.index.hasher)
    }

    /// Returns the options that the table has. A new one with them behaves in the same way.
    #[must_use]
    pub fn options(&self) -> Options {
        self.index.table.raw.options.clone()
    }

    /// Makes a copy of the table, which can be queried and updated independently. The two share their pairs until one of
    /// them changes. Does not wait.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::try_clone`].
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let index = Index { table: self.index.table.try_clone(stream)?, hasher: self.index.hasher };
        Ok(Self { index, keys: self.keys.clone(), values: self.values.clone(), history: History::default() })
    }

    /// Deletes all keys. Waits.
    ///
    /// # Errors
    /// The errors of [`GpuCuckoo::clear`]. After an error the table is unchanged.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        let empty = (Column::empty(stream)?, Column::empty(stream)?);
        self.index.table.clear(stream)?;
        (self.keys, self.values) = empty;
        Ok(())
    }

    /// Moves the pairs together and builds the table of their indices anew. Waits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the table is unchanged.
    pub fn compact(&mut self, stream: &Stream) -> Result<(), Error> {
        let none = (stream.uninit(0)?, stream.uninit(0)?);
        let compact = self.with_pairs(stream, (none.0.as_slice(), none.1.as_slice()), self.index.hasher)?;
        self.replace(compact);
        Ok(())
    }

    /// Goes on with a copy, which has other contents or another layout. It is still the same table, so the copy may replace the
    /// same checkpoints.
    fn replace(&mut self, copy: Self) {
        *self = Self { history: std::mem::take(&mut self.history), ..copy };
    }

    /// Finds keys. Does not wait.
    fn find(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Found, Error> {
        self.index.find(stream, self.keys.values()?.into(), keys.into())
    }

    /// Returns a compact table with further pairs, by this hash function, or else by the first random one that tells all keys
    /// apart. Waits.
    fn with_pairs(
        &self,
        stream: &Stream,
        (more_keys, more_values): (DeviceSlice<'_, K>, DeviceSlice<'_, V>),
        hasher: Hasher,
    ) -> Result<Self, Error> {
        let Contents { values: live, .. } = self.index.table.export(stream)?;
        let keys = self.keys.compacted(stream, &live, more_keys, 0)?;
        let values = self.values.compacted(stream, &live, more_values, 0)?;
        let index = self.index.of_keys(stream, keys.values()?.into(), hasher)?;
        Ok(Self { index, keys, values, history: History::default() })
    }
}

gpu_dictionary::methods_of_sets! {
    /// ```
    /// use gpu_cuckoo::{Options, PlainCuckoo};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let mut set = PlainCuckoo::build_set(&stream, &stream.upload(&[[1u8, 2, 3], [4, 5, 6]])?, Options::new())?;
    /// set.insert_keys(&stream, &stream.upload(&[[7, 8, 9]])?)?;
    /// assert_eq!(set.contains(&stream, &stream.upload(&[[7, 8, 9], [0; 3]])?)?.to_vec(&stream)?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    PlainCuckoo<K, ()>: [K: PlainKey], K, Options
}
