//! What all dictionaries can do, and what only some can.

use super::levels::{Neighbour, Ranges};
use super::{Contents, Key, Lookup, Stats};
use crate::{DeviceSlice, DeviceVec, Error, Stream};
use bytemuck::Pod;
use core::fmt::Debug;
use std::io::{Read, Write};

/// A dictionary on the device: what all of them can do.
///
/// The structures have methods of the same names, which may need less: where a length is known to the host, no stream. Those of
/// this trait are for programs that shall run with any of them. What a structure can do beside this is [`Updatable`] and
/// [`Ordered`]; what it cannot do does not compile.
///
/// - **Keys**: every value of the type can be one. Two are the same if their bits are.
/// - **Equal keys** in one call: the last one counts.
/// - **Values** of no size are not given: the slice of values is empty then, and the dictionary is a set.
/// - **Failures**: a call that fails leaves the dictionary as it was.
/// - **Streams**: calls may take different streams. A query sees all updates that were called before it.
///
/// ```
/// use gpu_primitives::dictionary::{Dictionary, Updatable};
/// use gpu_primitives::{Error, Stream};
///
/// /// Replaces the keys of one batch by those of the next.
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
    /// The keys.
    type Key: Key;
    /// The values: of 0, 4 or 8 bytes.
    type Value: Pod;
    /// What may be chosen when one is made.
    type Options: Clone + Default + Debug;

    /// What people call it.
    const NAME: &'static str;

    /// An empty one.
    ///
    /// # Errors
    /// Options that cannot be; [`Error::OutOfMemory`]; what a launch can give.
    fn new(stream: &Stream, options: &Self::Options) -> Result<Self, Error>;

    /// The dictionary of these pairs.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not a value for each key (for values of no size, if there are any);
    /// [`Error::TooLong`] for more than it can hold; as [`new`](Self::new).
    fn bulk_build<'a>(
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
        values: impl Into<DeviceSlice<'a, Self::Value>>,
        options: &Self::Options,
    ) -> Result<Self, Error>;

    /// Looks keys up.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; what a launch can give. So for all queries.
    fn lookup<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Lookup<Self::Value>, Error>;

    /// Tells which keys are there: 1 or 0 for each.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    fn contains<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u8>, Error>;

    /// How many keys there are, exactly. May wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    fn len(&self, stream: &Stream) -> Result<usize, Error>;

    /// Whether there is no key. May wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    fn is_empty(&self, stream: &Stream) -> Result<bool, Error>;

    /// All pairs, in the order of the keys. Waits.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    fn export(&self, stream: &Stream) -> Result<Contents<Self::Key, Self::Value>, Error>;

    /// Writes the dictionary to a file, which [`load`](Self::load) reads again, on any device. Waits.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails; as [`lookup`](Self::lookup).
    fn save(&self, stream: &Stream, writer: impl Write) -> Result<(), Error>;

    /// Reads what [`save`](Self::save) has written, to its end and no further. Everything is checked: what it loads is a whole
    /// dictionary, or nothing. Waits.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the file is damaged, cut off, or one of another structure or of other keys or values, with what
    /// is wrong and where; [`Error::Io`] if reading fails; [`Error::OutOfMemory`].
    fn load(stream: &Stream, reader: impl Read) -> Result<Self, Error>;

    /// How much it holds. May wait for a number, but does not go through the elements.
    ///
    /// # Errors
    /// As a copy to the host.
    fn stats(&self, stream: &Stream) -> Result<Stats, Error>;
}

/// A dictionary that can be changed.
///
/// What came last counts: the later call, and within a call the last insertion of a key. What one call inserts and deletes is
/// deleted.
pub trait Updatable: Dictionary {
    /// Inserts pairs, or replaces the values of keys that are there. May wait.
    ///
    /// # Errors
    /// As [`bulk_build`](Dictionary::bulk_build).
    fn insert<'a>(
        &mut self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
        values: impl Into<DeviceSlice<'a, Self::Value>>,
    ) -> Result<(), Error>;

    /// Deletes keys; those that are not there are no error. May wait.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    fn delete<'a>(&mut self, stream: &Stream, keys: impl Into<DeviceSlice<'a, Self::Key>>) -> Result<(), Error>;

    /// Inserts pairs and deletes keys at once. What is in both is deleted. May wait.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    fn update<'a>(
        &mut self,
        stream: &Stream,
        insert: (impl Into<DeviceSlice<'a, Self::Key>>, impl Into<DeviceSlice<'a, Self::Value>>),
        delete: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<(), Error>;

    /// Removes everything. May wait.
    ///
    /// # Errors
    /// As [`new`](Dictionary::new).
    fn clear(&mut self, stream: &Stream) -> Result<(), Error>;
}

/// A dictionary that knows the order of its keys. Floats are ordered as by `total_cmp`.
pub trait Ordered: Dictionary {
    /// Counts the keys of each interval from `low` to `high`, both included; one that ends before it begins has none.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not as many ends as beginnings; as [`lookup`](Dictionary::lookup).
    fn count<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<DeviceVec<u64>, Error>;

    /// Gives the pairs of each interval from `low` to `high`, both included, in the order of the keys. Waits, to know how
    /// much memory they need.
    ///
    /// # Errors
    /// As [`count`](Self::count); [`Error::OutOfMemory`] says how much was needed.
    fn range<'a>(
        &self,
        stream: &Stream,
        low: impl Into<DeviceSlice<'a, Self::Key>>,
        high: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Ranges<Self::Key, Self::Value>, Error>;

    /// Finds the smallest key above each.
    ///
    /// # Errors
    /// As [`lookup`](Dictionary::lookup).
    fn successor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error>;

    /// Finds the largest key below each.
    ///
    /// # Errors
    /// As [`lookup`](Dictionary::lookup).
    fn predecessor<'a>(
        &self,
        stream: &Stream,
        keys: impl Into<DeviceSlice<'a, Self::Key>>,
    ) -> Result<Neighbour<Self::Key, Self::Value>, Error>;
}

/// Methods of the traits above that do what the structure's own methods of the same names and arguments do: named within
/// an `impl` of a trait.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate_to_own_methods {
    ($($method:ident),* $(,)?) => { $($crate::delegate_to_own_methods! { @$method })* };
    (@lookup) => {
        fn lookup<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::dictionary::Lookup<Self::Value>, $crate::Error> {
            self.lookup(stream, keys)
        }
    };
    (@contains) => {
        fn contains<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::DeviceVec<u8>, $crate::Error> {
            self.contains(stream, keys)
        }
    };
    (@len) => {
        fn len(&self, stream: &$crate::Stream) -> Result<usize, $crate::Error> {
            self.len(stream)
        }
    };
    (@is_empty) => {
        fn is_empty(&self, stream: &$crate::Stream) -> Result<bool, $crate::Error> {
            self.is_empty(stream)
        }
    };
    (@export) => {
        fn export(
            &self,
            stream: &$crate::Stream,
        ) -> Result<$crate::dictionary::Contents<Self::Key, Self::Value>, $crate::Error> {
            self.export(stream)
        }
    };
    (@save) => {
        fn save(&self, stream: &$crate::Stream, writer: impl std::io::Write) -> Result<(), $crate::Error> {
            self.save(stream, writer)
        }
    };
    (@load) => {
        fn load(stream: &$crate::Stream, reader: impl std::io::Read) -> Result<Self, $crate::Error> {
            Self::load(stream, reader)
        }
    };
    (@insert) => {
        fn insert<'a>(
            &mut self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
            values: impl Into<$crate::DeviceSlice<'a, Self::Value>>,
        ) -> Result<(), $crate::Error> {
            self.insert(stream, keys, values)
        }
    };
    (@delete) => {
        fn delete<'a>(
            &mut self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<(), $crate::Error> {
            self.delete(stream, keys)
        }
    };
    (@update) => {
        fn update<'a>(
            &mut self,
            stream: &$crate::Stream,
            insert: (
                impl Into<$crate::DeviceSlice<'a, Self::Key>>,
                impl Into<$crate::DeviceSlice<'a, Self::Value>>,
            ),
            delete: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<(), $crate::Error> {
            self.update(stream, insert, delete)
        }
    };
    (@count) => {
        fn count<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
            high: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::DeviceVec<u64>, $crate::Error> {
            self.count(stream, low, high)
        }
    };
    (@range) => {
        fn range<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
            high: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::dictionary::levels::Ranges<Self::Key, Self::Value>, $crate::Error> {
            self.range(stream, low, high)
        }
    };
    (@successor) => {
        fn successor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<Self::Key, Self::Value>, $crate::Error> {
            self.successor(stream, keys)
        }
    };
    (@predecessor) => {
        fn predecessor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, Self::Key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<Self::Key, Self::Value>, $crate::Error> {
            self.predecessor(stream, keys)
        }
    };
}
