//! A dictionary that keeps all values of a key.

use crate::budget::Budget;
use crate::file::Batches;
use crate::{Contents, GpuLsm, Key, Neighbour, Options, Ranges, Snapshot, Stats, Value};
use gpu_dictionary::file::{Format, Source, write_section};
use gpu_dictionary::levels::{AllValues, Intervals, Level};
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream};
use std::io::{Read, Write};

const FORMAT: Format = Format { magic: *b"gpu-mul\n", version: 2 };

/// A dictionary that keeps all values of a key, in the order in which they were inserted, also equal ones.
///
/// It has the levels of a [`GpuLsm`], whose merges keep all elements. An insertion is the same, and costs the same. A deletion
/// rewrites the levels.
///
/// ```
/// use gpu_lsm::{GpuMultimap, Options};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let mut edges = GpuMultimap::<u32, u32>::new(&stream, Options::new())?;
/// edges.insert(&stream, (&stream.upload(&[1, 2, 1, 1])?, &stream.upload(&[20, 30, 10, 20])?))?;
/// edges.insert(&stream, (&stream.upload(&[2, 1])?, &stream.upload(&[40, 50])?))?;
///
/// let asked = stream.upload(&[1, 2, 3])?;
/// assert_eq!(edges.count_values(&stream, &asked)?.to_vec(&stream)?, [4, 2, 0]);
/// assert_eq!(edges.get(&stream, &asked)?.to_vec(&stream)?, [vec![20, 10, 20, 50], vec![30, 40], vec![]]);
///
/// edges.delete_pairs(&stream, (&stream.upload(&[1])?, &stream.upload(&[20])?))?;
/// edges.delete(&stream, &stream.upload(&[2])?)?;
/// assert_eq!(edges.export(&stream)?.to_vec(&stream)?, [(1, 10), (1, 50)]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct GpuMultimap<K: Key, V: Value> {
    /// Nothing in it is stale: there are no tombstones, and all elements of a key count.
    pub(crate) lsm: GpuLsm<K, V>,
}

/// Makes a multimap that shares the levels, which never change. Costs no device memory, and does not wait.
impl<K: Key, V: Value> Clone for GpuMultimap<K, V> {
    fn clone(&self) -> Self {
        Self { lsm: self.lsm.clone() }
    }
}

impl<K: Key, V: Value> GpuMultimap<K, V> {
    /// Creates an empty multimap. It lives on the device of the first stream it is used with. A cleanup policy has no effect:
    /// nothing is ever stale.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the batch size or the buffer is out of range.
    pub fn new(stream: &Stream, options: Options) -> Result<Self, Error> {
        Ok(Self { lsm: GpuLsm::new(stream, Options { cleanup_policy: None, ..options })? })
    }

    /// Builds a multimap from these pairs, as a single level. Does not wait.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new) and [`insert`](Self::insert).
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
        options: Options,
    ) -> Result<Self, Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "multimap::bulk_build", pairs.0.len());
        Ok(Self { lsm: GpuLsm::bulk_build(stream, pairs, Options { cleanup_policy: None, ..options })? })
    }

    /// Inserts pairs, after all that are there. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::insert`]. After an error the multimap is unchanged.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "multimap::insert", pairs.0.len());
        self.lsm.insert(stream, pairs)
    }

    /// Deletes all values of keys. Ignores absent keys. Rewrites all levels, and waits for each, to learn its length.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. After an error the multimap is unchanged.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<(), Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "multimap::delete", keys.len());
        self.lsm.remove(stream, |levels| levels.remove_keys(stream, keys))
    }

    /// Deletes pairs: all that have this key and this value. Ignores absent ones. Rewrites all levels, and waits for each, to
    /// learn its length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not empty.
    /// [`Error::OutOfMemory`], or any launch error. After an error the multimap is unchanged.
    pub fn delete_pairs<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, K>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        let pairs: (DeviceSlice<'a, K>, _) = (pairs.0.into(), pairs.1);
        let _span = gpu_primitives::span!(stream, "multimap::delete_pairs", pairs.0.len());
        let values = pairs.1.into();
        self.lsm.remove(stream, |levels| levels.remove_pairs(stream, pairs.0, values))
    }

    /// Returns which keys are present: 1 or 0 for each. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. All queries can return these.
    pub fn contains<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<DeviceVec<u8>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "multimap::contains", keys.len());
        self.lsm.stack(stream)?.contains(stream, keys)
    }

    /// Returns the number of values of each key. Does not wait.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn count_values<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<DeviceVec<u64>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "multimap::count_values", keys.len());
        self.lsm.stack(stream)?.count_every(stream, Intervals { low: keys, high: keys })
    }

    /// Returns all values of each key, the oldest first. Waits for the stream, to learn how many there are.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn get<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, K>>) -> Result<AllValues<V>, Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "multimap::get", keys.len());
        self.lsm.stack(stream)?.every(stream, keys)
    }

    /// Writes all values of each key into given memory, the oldest first. `offsets`, one more than keys, receives where the values
    /// of each key begin, and how many there are in all. Values for which there is no room are left out. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one more offset than keys, or the errors of [`contains`](Self::contains).
    pub fn get_into<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
        offsets: impl Into<DeviceSliceMut<'a, u64>>,
        values: impl Into<DeviceSliceMut<'a, V>>,
    ) -> Result<(), Error> {
        let keys: DeviceSlice<'a, K> = keys.into();
        let _span = gpu_primitives::span!(stream, "multimap::get_into", keys.len());
        self.lsm.stack(stream)?.every_into(stream, keys, offsets.into(), values.into())
    }

    /// Returns all pairs in key order, those of a key in the order in which they were inserted. Does not wait.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn export(&self, stream: &Stream) -> Result<Contents<K, V>, Error> {
        let levels: Vec<&Level<K, V>> = self.lsm.levels(stream)?.map(|(_, level)| level).collect();
        Level::merge(stream, &levels)?.into_contents(stream)
    }

    /// Returns all pairs in key order, on the host. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Returns the number of pairs. Does not wait: the host knows it.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::stats`].
    pub fn len(&self, _: &Stream) -> Result<usize, Error> {
        self.lsm.any.len()
    }

    /// Returns whether there are no pairs. Does not wait.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::stats`].
    pub fn is_empty(&self, _: &Stream) -> Result<bool, Error> {
        Ok(self.lsm.any.len()? == 0)
    }

    /// Removes everything. Does not wait.
    ///
    /// # Errors
    /// None.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        self.lsm.clear(stream)
    }

    /// Returns what the host knows about the contents. Does not wait.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::stats`].
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        self.lsm.stats(stream)
    }

    /// Sorts what is in the [buffer](Options::buffer) and merges it with the levels. Every query does this first. Does not wait, unless
    /// [levels in host memory](Options::device_memory) are merged.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::flush`].
    pub fn flush(&self, stream: &Stream) -> Result<(), Error> {
        self.lsm.flush(stream)
    }

    /// Drops what is in the [buffer](Options::buffer), and returns how many pairs there were: see [`GpuLsm::discard_buffer`].
    ///
    /// # Errors
    /// The errors of [`GpuLsm::discard_buffer`].
    pub fn discard_buffer(&mut self, stream: &Stream) -> Result<usize, Error> {
        self.lsm.discard_buffer(stream)
    }

    /// Sets how much device memory the keys and values of levels may take, `None` for no limit, and moves levels from and to the host
    /// accordingly: see [`GpuLsm::set_device_memory`].
    ///
    /// # Errors
    /// Those of [`GpuLsm::set_device_memory`]. After an error the multimap is unchanged.
    pub fn set_device_memory(&mut self, stream: &Stream, bytes: Option<usize>) -> Result<(), Error> {
        self.lsm.set_device_memory(stream, bytes)
    }

    /// Returns the options that the multimap has. A new one with them behaves in the same way.
    #[must_use]
    pub fn options(&self) -> Options {
        self.lsm.options()
    }

    /// Makes a copy that can be queried and updated independently: [`clone`](Clone::clone), which cannot fail.
    ///
    /// # Errors
    /// None.
    pub fn try_clone(&self, _: &Stream) -> Result<Self, Error> {
        Ok(self.clone())
    }

    /// Takes a snapshot: the multimap as it is now, for queries while updates go on. Costs no device memory. Does not wait.
    /// Its [checkpoint](Self::checkpoint) is one of the multimap.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<Self> {
        Snapshot::new(Self { lsm: self.lsm.snapshot().into_inner() })
    }

    /// Writes the multimap to a file: a header, and the file of its levels. [`load`](Self::load) reads it on any device. Waits.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or any error of a copy to the host.
    pub fn save(&self, stream: &Stream, mut writer: impl Write) -> Result<(), Error> {
        write_section(&mut writer, &FORMAT.header::<K, V>())?;
        self.lsm.save(stream, writer)
    }

    /// Reads a multimap written by [`save`](Self::save). Checks everything: it returns a complete multimap or an error.
    ///
    /// # Errors
    /// The errors of [`GpuLsm::load`].
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        Self::load_into(stream, reader, Budget::default())
    }

    /// [Loads](Self::load) a multimap, and gives it these options: see [`GpuLsm::load_with`].
    ///
    /// # Errors
    /// Those of [`load`](Self::load) and [`new`](Self::new).
    pub fn load_with(stream: &Stream, reader: impl Read, options: Options) -> Result<Self, Error> {
        let options = Options { cleanup_policy: None, ..options.checked()? };
        let mut loaded = Self::load_into(stream, reader, options.device_memory)?;
        loaded.lsm.any.adopt(&options);
        Ok(loaded)
    }

    fn load_into(stream: &Stream, mut reader: impl Read, budget: Budget) -> Result<Self, Error> {
        let mut source = Source::new(&mut reader);
        source.header::<K, V, _>(FORMAT, |_| Ok(()))?;
        let lsm = GpuLsm::load_counted(stream, reader, Batches::WithEmptied, budget)?;
        if lsm.levels(stream)?.any(|(_, level)| level.has_tombstones()) {
            return Err(Error::InvalidFile { what: "its levels have tombstones".to_owned(), at: 0 });
        }
        Ok(Self { lsm })
    }
}

/// Queries in key order.
impl<K: Key, V: Value> GpuMultimap<K, V> {
    /// Counts the pairs in each interval from `low` to `high`, both inclusive. An interval that ends before it begins is empty.
    /// Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length, or the errors of [`contains`](Self::contains).
    pub fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<DeviceVec<u64>, Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "multimap::count", low.len());
        self.lsm.stack(stream)?.count_every(stream, Intervals { low, high: high.into() })
    }

    /// Returns the pairs in each interval from `low` to `high`, both inclusive, in key order, those of a key in the order in which
    /// they were inserted. Waits for the stream, to learn how many there are.
    ///
    /// If there is more than one level, all of them are merged first, into temporary memory. So ask for many intervals in one
    /// call.
    ///
    /// ```
    /// use gpu_lsm::{GpuMultimap, Options};
    /// use gpu_primitives::{Device, Error};
    ///
    /// let stream = Device::default()?.stream()?;
    /// let mut edges = GpuMultimap::<u32, u32>::new(&stream, Options::new())?;
    /// edges.insert(&stream, (&stream.upload(&[5, 2, 5, 9])?, &stream.upload(&[50, 20, 51, 90])?))?;
    /// let (low, high) = (stream.upload(&[0, 3])?, stream.upload(&[5, 4])?);
    /// assert_eq!(edges.range(&stream, &low, &high)?.to_vec(&stream)?, [vec![(2, 20), (5, 50), (5, 51)], vec![]]);
    /// assert_eq!(edges.count(&stream, &low, &high)?.to_vec(&stream)?, [3, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`count`](Self::count). [`Error::OutOfMemory`] says how much memory was needed.
    pub fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Ranges<K, V>, Error> {
        let low: DeviceSlice<'a, K> = low.into();
        let _span = gpu_primitives::span!(stream, "multimap::range", low.len());
        self.lsm.stack(stream)?.ranges_of_every(stream, Intervals { low, high: high.into() })
    }

    /// Combines the values in each interval from `low` to `high`, both inclusive, in the order of [`range`](Self::range): their sum,
    /// the largest one, or by any other [`Monoid`]. An interval without pairs gives the identity. Waits, as `range` does.
    ///
    /// # Errors
    /// The errors of [`range`](Self::range).
    pub fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, K>>,
        high: impl Into<DeviceSlice<'a, K>>,
        operation: impl Monoid<V>,
    ) -> Result<DeviceVec<V>, Error> {
        self.range(stream, low, high)?.reduce(stream, operation)
    }

    /// Finds, for each of `keys`, the smallest key greater than it, with the latest of its values. Does not wait.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Neighbour<K, V>, Error> {
        self.lsm.successor(stream, keys)
    }

    /// Finds, for each of `keys`, the largest key less than it, with the latest of its values. Does not wait.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, K>>,
    ) -> Result<Neighbour<K, V>, Error> {
        self.lsm.predecessor(stream, keys)
    }
}

gpu_dictionary::methods_of_sets! {
    /// A key can be there more than once.
    GpuMultimap<K, ()>: [K: Key], K, Options
}
