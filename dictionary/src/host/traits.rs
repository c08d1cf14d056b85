//! The traits of all dictionaries, and those of only some.

use crate::{Contents, Key, Lookup, Neighbour, Ranges, Stats};
use bytemuck::Pod;
use core::fmt::Debug;
use gpu_primitives::monoid::Monoid;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
use std::io::{Read, Write};

/// A dictionary on the device: the operations that all dictionaries support.
///
/// The structures have methods of the same names that take the same arguments, so a program that uses one of them needs no trait.
/// Use this trait for code that works with any dictionary. [`Updatable`] and [`Ordered`] are the operations
/// that only some dictionaries support. Using an unsupported operation is a compile error.
///
/// - **Keys**: every value of the key type is a valid key. Two keys are equal if their bits are equal.
/// - **Equal keys** in one call: the last one wins.
/// - **Pairs** are passed as a tuple of two slices: the keys, and as many values.
/// - **Zero-sized values** are not passed: the slice of values is empty, and the dictionary is a set.
/// - **Failures**: a failed call leaves the dictionary unchanged.
/// - **Streams**: calls may use different streams. A query sees all updates that were called before it.
///
/// # Examples
/// ```
/// use gpu_dictionary::{Dictionary, Updatable};
/// use gpu_primitives::{Error, Stream};
///
/// /// Replaces the keys of one batch by the keys of the next.
/// fn slide<D: Updatable<Key = u32, Value = u32>>(
///     dictionary: &mut D,
///     stream: &Stream,
///     old: &[u32],
///     new: &[u32],
/// ) -> Result<usize, Error> {
///     let (old, new) = (stream.upload(old)?, stream.upload(new)?);
///     dictionary.update(stream, (&new, &new), &old)?;
///     dictionary.len(stream)
/// }
/// ```
pub trait Dictionary: Sized {
    /// The type of the keys.
    type Key: Key;
    /// The type of the values. The structures themselves take values of 0, 4 or 8 bytes ([`Value`](crate::Value));
    /// [`LargeValues`](crate::LargeValues) adds those of any size.
    type Value: Pod;
    /// The options for creating a dictionary.
    type Options: DictionaryOptions;

    /// The name of the structure, for people to read.
    const NAME: &'static str;

    /// Creates an empty dictionary.
    ///
    /// # Errors
    /// - Invalid options.
    /// - [`Error::OutOfMemory`].
    /// - Any launch error.
    fn new(stream: &Stream, options: Self::Options) -> Result<Self, Error>;

    /// Builds a dictionary from these pairs.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if `values` is not
    ///   empty.
    /// - [`Error::TooLong`] for more elements than the dictionary can hold.
    /// - The errors of [`new`](Self::new).
    fn bulk_build<'a>(
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        options: Self::Options,
    ) -> Result<Self, Error>;

    /// Returns the options that the dictionary has. A new one with them behaves in the same way.
    fn options(&self) -> Self::Options;

    /// Makes a copy that can be queried and updated independently. Structures whose parts never change share them with
    /// the copy, which is then cheap; others copy everything.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any error of a copy.
    fn try_clone(&self, stream: &Stream) -> Result<Self, Error>;

    /// Looks up keys.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or any launch error. All queries can return these.
    fn lookup<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Lookup<Self::Value>, Error>;

    /// Returns which keys are present: 1 or 0 for each.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    fn contains<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u8>, Error>;

    /// Returns the exact number of keys. May wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    fn len(&self, stream: &Stream) -> Result<usize, Error>;

    /// Returns whether the dictionary has no keys. May wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    fn is_empty(&self, stream: &Stream) -> Result<bool, Error>;

    /// Returns all pairs in key order. Waits.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    fn export(&self, stream: &Stream) -> Result<Contents<Self::Key, Self::Value>, Error>;

    /// Writes the dictionary to a file. [`load`](Self::load) reads the file on any device. Waits.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails, or the errors of [`lookup`](Self::lookup).
    fn save(&self, stream: &Stream, writer: impl Write) -> Result<(), Error>;

    /// Reads a dictionary written by [`save`](Self::save). Reads exactly to the end of the dictionary. Checks
    /// everything: it returns a complete dictionary or an error. Waits.
    ///
    /// # Errors
    /// - [`Error::InvalidFile`] if the file is damaged, truncated, or holds another structure or other key or value
    ///   types. The error says what is wrong and where.
    /// - [`Error::Io`] if reading fails.
    /// - [`Error::OutOfMemory`].
    fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error>;

    /// Returns statistics of the dictionary. May wait for a number, but does not scan the elements.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    fn stats(&self, stream: &Stream) -> Result<Stats, Error>;
}

/// The options that all dictionaries share. Each dictionary has more of its own.
///
/// # Examples
/// ```
/// use gpu_dictionary::{Dictionary, DictionaryOptions};
/// use gpu_primitives::{Error, Stream};
///
/// /// Creates a dictionary for up to a million keys that arrive a few thousand at a time.
/// fn create<D: Dictionary>(stream: &Stream) -> Result<D, Error> {
///     D::new(stream, D::Options::default().expected_keys(1_000_000).expected_operations(5_000))
/// }
/// ```
pub trait DictionaryOptions: Clone + Default + Debug {
    /// Sets how many keys the dictionary will hold. This is a hint: a dictionary that allocates ahead makes room for as
    /// many; others ignore it.
    #[must_use]
    fn expected_keys(self, keys: usize) -> Self;

    /// Sets how many operations an update will have. This is a hint: a dictionary that collects operations in batches
    /// chooses their size by it; others ignore it.
    #[must_use]
    fn expected_operations(self, operations: usize) -> Self;
}

/// A dictionary that can be updated.
///
/// The latest write wins: a later call overrides an earlier one, and within a call the last insertion of a key
/// overrides the earlier ones. If one call both inserts and deletes a key, the deletion wins.
pub trait Updatable: Dictionary {
    /// Inserts pairs. Replaces the values of keys that are already present. May wait.
    ///
    /// # Errors
    /// The errors of [`bulk_build`](Dictionary::bulk_build).
    fn insert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
    ) -> Result<(), Error>;

    /// Deletes keys. Ignores absent keys. May wait.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, Self::Key>>) -> Result<(), Error>;

    /// Inserts pairs and deletes keys in one call. If a key is in both, the deletion wins. May wait.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        delete: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<(), Error>;

    /// Removes everything. May wait.
    ///
    /// # Errors
    /// The errors of [`new`](Dictionary::new).
    fn clear(&mut self, stream: &Stream) -> Result<(), Error>;
}

/// An operation that combines values in a dictionary: an associative one that is plain data. Every
/// [`Monoid`] of the library is one, and so is each of your own that implements `Pod`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine values of type `{V}`",
    note = "an operation implements `Monoid<{V}>`, with `#[operator]`, and `bytemuck::Pod`"
)]
pub trait Upsertion<V>: Monoid<V> + Pod + Send + Sync {}

impl<V, M: Monoid<V> + Pod + Send + Sync> Upsertion<V> for M {}

/// A dictionary whose values can be combined with new ones.
pub trait Upsertable: Updatable {
    /// Combines values with those that are present: the value of a key becomes `operation.combine(present, new)`, and the
    /// new value if the key is absent. Equal keys of a call are combined in order. May wait.
    ///
    /// The operation must be associative. One that is not gives some values.
    ///
    /// # Errors
    /// The errors of [`insert`](Updatable::insert).
    fn upsert<'a>(
        &mut self,
        stream: &Stream,
        pairs: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        operation: impl Upsertion<Self::Value>,
    ) -> Result<(), Error>;
}

/// A dictionary that keeps its keys in order. Floats are ordered as by `total_cmp`.
pub trait Ordered: Dictionary {
    /// Counts the keys in each interval from `low` to `high`, both inclusive. An interval that ends before it begins is
    /// empty.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `low` and `high` differ in length, or the errors of [`lookup`](Dictionary::lookup).
    fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u64>, Error>;

    /// Returns the pairs in each interval from `low` to `high`, both inclusive, in key order. Waits, to learn how much
    /// memory the results need.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count). [`Error::OutOfMemory`] says how much memory was needed.
    fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Ranges<Self::Key, Self::Value>, Error>;

    /// Combines the values in each interval from `low` to `high`, both inclusive, in key order: the sum, the largest one, or
    /// any other [`Monoid`]. An interval without keys gives the identity. Waits, as [`range`](Self::range) does.
    ///
    /// # Errors
    /// The errors of [`range`](Self::range).
    fn reduce<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
        operation: impl Monoid<Self::Value>,
    ) -> Result<DeviceVec<Self::Value>, Error>;

    /// Finds, for each of `keys`, the smallest key greater than it.
    ///
    /// # Errors
    /// The errors of [`lookup`](Dictionary::lookup).
    fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error>;

    /// Finds, for each of `keys`, the largest key less than it.
    ///
    /// # Errors
    /// The errors of [`lookup`](Dictionary::lookup).
    fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error>;
}
