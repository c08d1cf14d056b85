//! The methods of the traits as methods of the type, so that a program need not import the traits.

use super::LargeValues;
use crate::{Contents, Dictionary, Lookup, Neighbour, Ordered, Ranges, Stats, Updatable, Upsertable, Upsertion};
use bytemuck::Pod;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::io::{Read, Write};

impl<D: Dictionary<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Creates an empty dictionary: see [`Dictionary::new`].
    ///
    /// # Errors
    /// Those of the method of the trait; so it is for all methods here.
    pub fn new(stream: &Stream, options: D::Options) -> Result<Self, Error> {
        Dictionary::new(stream, options)
    }

    /// Builds a dictionary from these pairs: see [`Dictionary::bulk_build`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, D::Key>>, impl Into<DeviceSlice<'a, V>>),
        options: D::Options,
    ) -> Result<Self, Error> {
        Dictionary::bulk_build(stream, pairs, options)
    }

    /// Returns the options of the dictionary of the indices.
    #[must_use]
    pub fn options(&self) -> D::Options {
        Dictionary::options(self)
    }

    /// Makes a copy that can be queried and updated independently: see [`Dictionary::try_clone`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        Dictionary::try_clone(self, stream)
    }

    /// Looks up keys: see [`Dictionary::lookup`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn lookup<'a>(&self, stream: &Stream, keys: impl Into<DeviceSlice<'a, D::Key>>) -> Result<Lookup<V>, Error> {
        Dictionary::lookup(self, stream, keys)
    }

    /// Returns which keys are present: 1 or 0 for each.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn contains<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<DeviceVec<u8>, Error> {
        Dictionary::contains(self, stream, keys)
    }

    /// Returns the exact number of keys. May wait.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn len(&self, stream: &Stream) -> Result<usize, Error> {
        Dictionary::len(self, stream)
    }

    /// Returns whether the dictionary has no keys. May wait.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn is_empty(&self, stream: &Stream) -> Result<bool, Error> {
        Dictionary::is_empty(self, stream)
    }

    /// Returns all pairs in key order. Waits.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn export(&self, stream: &Stream) -> Result<Contents<D::Key, V>, Error> {
        Dictionary::export(self, stream)
    }

    /// Returns all pairs in key order, on the host. Waits.
    ///
    /// # Errors
    /// The errors of [`export`](Self::export).
    pub fn iter(&self, stream: &Stream) -> Result<impl Iterator<Item = (D::Key, V)> + use<D, V>, Error> {
        Ok(self.export(stream)?.to_vec(stream)?.into_iter())
    }

    /// Writes the dictionary to a file: see [`Dictionary::save`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn save(&self, stream: &Stream, writer: impl Write) -> Result<(), Error> {
        Dictionary::save(self, stream, writer)
    }

    /// Reads a dictionary written by [`save`](Self::save): see [`Dictionary::load`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error> {
        Dictionary::load(stream, reader)
    }

    /// Returns statistics of the dictionary: see [`Dictionary::stats`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn stats(&self, stream: &Stream) -> Result<Stats, Error> {
        Dictionary::stats(self, stream)
    }
}

impl<D: Updatable<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Inserts pairs: see [`Updatable::insert`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, D::Key>>, impl Into<DeviceSlice<'a, V>>),
    ) -> Result<(), Error> {
        Updatable::insert(self, stream, pairs)
    }

    /// Deletes keys: see [`Updatable::delete`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, D::Key>>) -> Result<(), Error> {
        Updatable::delete(self, stream, keys)
    }

    /// Inserts pairs and deletes keys in one call: see [`Updatable::update`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, D::Key>>, impl Into<DeviceSlice<'a, V>>),
        delete: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<(), Error> {
        Updatable::update(self, stream, insert, delete)
    }

    /// Combines values with those that are present: see [`Upsertable::upsert`].
    ///
    /// An operation takes elements of up to 32 bytes, so the values may not be longer. Waits. Needs a temporary dictionary of the
    /// keys, which says which of them are equal, and three copies of the values.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, D::Key>>, impl Into<DeviceSlice<'a, V>>),
        operation: impl Upsertion<V>,
    ) -> Result<(), Error> {
        Upsertable::upsert(self, stream, pairs, operation)
    }

    /// Removes everything. May wait.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn clear(&mut self, stream: &Stream) -> Result<(), Error> {
        Updatable::clear(self, stream)
    }
}

/// Sets: keys without values.
impl<D: Updatable<Value = u32>> LargeValues<D, ()> {
    /// Builds a set of these keys: [`bulk_build`](Self::bulk_build) without values.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Self::bulk_build).
    pub fn build_set<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, D::Key>>,
        options: D::Options,
    ) -> Result<Self, Error> {
        Self::bulk_build(stream, (keys.into(), &stream.uninit::<()>(0)?), options)
    }

    /// Inserts keys: [`insert`](Self::insert) without values.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_keys<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, D::Key>>) -> Result<(), Error> {
        self.insert(stream, (keys.into(), &stream.uninit::<()>(0)?))
    }
}

impl<D: Ordered<Value = u32>, V: Pod> LargeValues<D, V> {
    /// Counts the keys in each interval from `low` to `high`, both inclusive: see [`Ordered::count`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, D::Key>>,
        high: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<DeviceVec<u64>, Error> {
        Ordered::count(self, stream, low, high)
    }

    /// Returns the pairs in each interval from `low` to `high`, both inclusive: see [`Ordered::range`].
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, D::Key>>,
        high: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<Ranges<D::Key, V>, Error> {
        Ordered::range(self, stream, low, high)
    }

    /// Combines the values in each interval from `low` to `high`, both inclusive: see [`Ordered::reduce`]. An operation takes
    /// elements of up to 32 bytes, so the values may not be longer.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, D::Key>>,
        high: impl Into<DeviceSlice<'a, D::Key>>,
        operation: impl Monoid<V>,
    ) -> Result<DeviceVec<V>, Error> {
        Ordered::reduce(self, stream, low, high, operation)
    }

    /// Finds, for each of `keys`, the smallest key greater than it.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<Neighbour<D::Key, V>, Error> {
        Ordered::successor(self, stream, keys)
    }

    /// Finds, for each of `keys`, the largest key less than it.
    ///
    /// # Errors
    /// Those of the method of the trait.
    pub fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, D::Key>>,
    ) -> Result<Neighbour<D::Key, V>, Error> {
        Ordered::predecessor(self, stream, keys)
    }
}
