//! The traits, for dictionaries whose own methods have the same names and signatures; and methods, for those that have the traits.

/// Implements [`Dictionary`](crate::Dictionary), [`Updatable`](crate::Updatable) and [`Upsertable`](crate::Upsertable) by the type's
/// own methods. Its statistics convert into [`Stats`](crate::Stats). With `ordered`, it is also [`Ordered`](crate::Ordered).
#[doc(hidden)]
#[macro_export]
macro_rules! forward_traits {
    (impl<K: [$($key:tt)+], V: [$($value:tt)+]> for $name:ident, $label:literal, $options:ty) => {
        impl<K: $($key)+, V: $($value)+> $crate::Dictionary for $name<K, V> {
            type Key = K;
            type Value = V;
            type Options = $options;

            const NAME: &'static str = $label;

            fn new(stream: &$crate::__private::Stream, options: $options) -> Result<Self, $crate::__private::Error> {
                Self::new(stream, options)
            }

            fn bulk_build<'a>(
                stream: &$crate::__private::Stream,
                pairs: (impl Into<$crate::__private::DeviceSlice<'a, K>>, impl Into<$crate::__private::DeviceSlice<'a, V>>),
                options: $options,
            ) -> Result<Self, $crate::__private::Error> {
                Self::bulk_build(stream, pairs, options)
            }

            fn options(&self) -> $options {
                self.options()
            }

            fn try_clone(&self, stream: &$crate::__private::Stream) -> Result<Self, $crate::__private::Error> {
                self.try_clone(stream)
            }

            fn lookup<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, K>>) -> Result<$crate::Lookup<V>, $crate::__private::Error> {
                self.lookup(stream, keys)
            }

            fn contains<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, K>>) -> Result<$crate::__private::DeviceVec<u8>, $crate::__private::Error> {
                self.contains(stream, keys)
            }

            fn len(&self, stream: &$crate::__private::Stream) -> Result<usize, $crate::__private::Error> {
                self.len(stream)
            }

            fn is_empty(&self, stream: &$crate::__private::Stream) -> Result<bool, $crate::__private::Error> {
                self.is_empty(stream)
            }

            fn export(&self, stream: &$crate::__private::Stream) -> Result<$crate::Contents<K, V>, $crate::__private::Error> {
                self.export(stream)
            }

            fn save(&self, stream: &$crate::__private::Stream, writer: impl ::std::io::Write) -> Result<(), $crate::__private::Error> {
                self.save(stream, writer)
            }

            fn load(stream: &$crate::__private::Stream, reader: impl ::std::io::Read) -> Result<Self, $crate::__private::Error> {
                Self::load(stream, reader)
            }

            fn stats(&self, stream: &$crate::__private::Stream) -> Result<$crate::Stats, $crate::__private::Error> {
                self.stats(stream).map(::core::convert::Into::into)
            }
        }

        impl<K: $($key)+, V: $($value)+> $crate::Updatable for $name<K, V> {
            fn insert<'a>(
                &mut self,
                stream: &$crate::__private::Stream,
                pairs: (impl Into<$crate::__private::DeviceSlice<'a, K>>, impl Into<$crate::__private::DeviceSlice<'a, V>>),
            ) -> Result<(), $crate::__private::Error> {
                self.insert(stream, pairs)
            }

            fn delete<'a>(&mut self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, K>>) -> Result<(), $crate::__private::Error> {
                self.delete(stream, keys)
            }

            fn update<'a>(
                &mut self,
                stream: &$crate::__private::Stream,
                insert: (impl Into<$crate::__private::DeviceSlice<'a, K>>, impl Into<$crate::__private::DeviceSlice<'a, V>>),
                delete: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<(), $crate::__private::Error> {
                self.update(stream, insert, delete)
            }

            fn clear(&mut self, stream: &$crate::__private::Stream) -> Result<(), $crate::__private::Error> {
                self.clear(stream)
            }
        }

        impl<K: $($key)+, V: $($value)+> $crate::Upsertable for $name<K, V> {
            fn upsert<'a>(
                &mut self,
                stream: &$crate::__private::Stream,
                pairs: (impl Into<$crate::__private::DeviceSlice<'a, K>>, impl Into<$crate::__private::DeviceSlice<'a, V>>),
                operation: impl $crate::Upsertion<V>,
            ) -> Result<(), $crate::__private::Error> {
                self.upsert(stream, pairs, operation)
            }
        }
    };
    (ordered impl<K: [$($key:tt)+], V: [$($value:tt)+]> for $name:ident, $label:literal, $options:ty) => {
        $crate::forward_traits!(impl<K: [$($key)+], V: [$($value)+]> for $name, $label, $options);

        impl<K: $($key)+, V: $($value)+> $crate::Ordered for $name<K, V> {
            fn count<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::__private::DeviceVec<u64>, $crate::__private::Error> {
                self.count(stream, low, high)
            }

            fn range<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::Ranges<K, V>, $crate::__private::Error> {
                self.range(stream, low, high)
            }

            fn reduce<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                operation: impl $crate::__private::Monoid<V>,
            ) -> Result<$crate::__private::DeviceVec<V>, $crate::__private::Error> {
                self.reduce(stream, low, high, operation)
            }

            fn successor<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, K>>) -> Result<$crate::Neighbour<K, V>, $crate::__private::Error> {
                self.successor(stream, keys)
            }

            fn predecessor<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, K>>) -> Result<$crate::Neighbour<K, V>, $crate::__private::Error> {
                self.predecessor(stream, keys)
            }
        }
    };
}

/// Gives a dictionary that is made of other ones the methods of the traits as methods of its own, so that a program need not import
/// the traits. After the type with its key, value and options come the bounds that it has each trait with, and those of sets.
#[doc(hidden)]
#[macro_export]
macro_rules! methods_of_traits {
    (
        $name:ident[$($parameter:ident),*], $key:ty, $value:ty, $options:ty;
        Dictionary[$($dictionary:tt)*]
        Updatable[$($updatable:tt)*]
        Upsertable[$($upsertable:tt)*]
        Ordered[$($ordered:tt)*]
        set $set:ty: [$($of_sets:tt)*]
    ) => {
        impl<$($dictionary)*> $name<$($parameter),*> {
            /// Creates an empty dictionary: see [`Dictionary::new`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn new(stream: &$crate::__private::Stream, options: $options) -> Result<Self, $crate::__private::Error> {
                $crate::Dictionary::new(stream, options)
            }

            /// Builds a dictionary from these pairs: see [`Dictionary::bulk_build`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn bulk_build<'a>(stream: &$crate::__private::Stream, pairs: (impl Into<$crate::__private::DeviceSlice<'a, $key>>, impl Into<$crate::__private::DeviceSlice<'a, $value>>), options: $options) -> Result<Self, $crate::__private::Error> {
                $crate::Dictionary::bulk_build(stream, pairs, options)
            }

            /// Returns the options: see [`Dictionary::options`].
            #[must_use]
            pub fn options(&self) -> $options {
                $crate::Dictionary::options(self)
            }

            /// Makes a copy that can be queried and updated independently: see [`Dictionary::try_clone`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn try_clone(&self, stream: &$crate::__private::Stream) -> Result<Self, $crate::__private::Error> {
                $crate::Dictionary::try_clone(self, stream)
            }

            /// Looks up keys: see [`Dictionary::lookup`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn lookup<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::Lookup<$value>, $crate::__private::Error> {
                $crate::Dictionary::lookup(self, stream, keys)
            }

            /// Returns which keys are present, 1 or 0 for each: see [`Dictionary::contains`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn contains<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::__private::DeviceVec<u8>, $crate::__private::Error> {
                $crate::Dictionary::contains(self, stream, keys)
            }

            /// Returns the exact number of keys: see [`Dictionary::len`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn len(&self, stream: &$crate::__private::Stream) -> Result<usize, $crate::__private::Error> {
                $crate::Dictionary::len(self, stream)
            }

            /// Returns whether there are no keys: see [`Dictionary::is_empty`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn is_empty(&self, stream: &$crate::__private::Stream) -> Result<bool, $crate::__private::Error> {
                $crate::Dictionary::is_empty(self, stream)
            }

            /// Returns all pairs in key order: see [`Dictionary::export`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn export(&self, stream: &$crate::__private::Stream) -> Result<$crate::Contents<$key, $value>, $crate::__private::Error> {
                $crate::Dictionary::export(self, stream)
            }

            /// Returns all pairs in key order, on the host. Waits.
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn iter(&self, stream: &$crate::__private::Stream) -> Result<impl Iterator<Item = ($key, $value)> + use<$($parameter),*>, $crate::__private::Error> {
                Ok($crate::Dictionary::export(self, stream)?.to_vec(stream)?.into_iter())
            }

            /// Writes the dictionary to a file: see [`Dictionary::save`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn save(&self, stream: &$crate::__private::Stream, writer: impl ::std::io::Write) -> Result<(), $crate::__private::Error> {
                $crate::Dictionary::save(self, stream, writer)
            }

            /// Reads a dictionary that [`save`](Self::save) has written: see [`Dictionary::load`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn load(stream: &$crate::__private::Stream, reader: impl ::std::io::Read) -> Result<Self, $crate::__private::Error> {
                $crate::Dictionary::load(stream, reader)
            }

            /// Returns statistics: see [`Dictionary::stats`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn stats(&self, stream: &$crate::__private::Stream) -> Result<$crate::Stats, $crate::__private::Error> {
                $crate::Dictionary::stats(self, stream)
            }
        }

        impl<$($updatable)*> $name<$($parameter),*> {
            /// Inserts pairs: see [`Updatable::insert`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn insert<'a>(&mut self, stream: &$crate::__private::Stream, pairs: (impl Into<$crate::__private::DeviceSlice<'a, $key>>, impl Into<$crate::__private::DeviceSlice<'a, $value>>)) -> Result<(), $crate::__private::Error> {
                $crate::Updatable::insert(self, stream, pairs)
            }

            /// Deletes keys: see [`Updatable::delete`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn delete<'a>(&mut self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<(), $crate::__private::Error> {
                $crate::Updatable::delete(self, stream, keys)
            }

            /// Inserts pairs and deletes keys in one call: see [`Updatable::update`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn update<'a>(&mut self, stream: &$crate::__private::Stream, insert: (impl Into<$crate::__private::DeviceSlice<'a, $key>>, impl Into<$crate::__private::DeviceSlice<'a, $value>>), delete: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<(), $crate::__private::Error> {
                $crate::Updatable::update(self, stream, insert, delete)
            }

            /// Removes everything: see [`Updatable::clear`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn clear(&mut self, stream: &$crate::__private::Stream) -> Result<(), $crate::__private::Error> {
                $crate::Updatable::clear(self, stream)
            }
        }

        impl<$($upsertable)*> $name<$($parameter),*> {
            /// Inserts pairs, and combines the values of keys that are present: see [`Upsertable::upsert`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn upsert<'a>(&mut self, stream: &$crate::__private::Stream, pairs: (impl Into<$crate::__private::DeviceSlice<'a, $key>>, impl Into<$crate::__private::DeviceSlice<'a, $value>>), operation: impl $crate::Upsertion<$value>) -> Result<(), $crate::__private::Error> {
                $crate::Upsertable::upsert(self, stream, pairs, operation)
            }
        }

        impl<$($ordered)*> $name<$($parameter),*> {
            /// Counts the keys in each interval from `low` to `high`, both inclusive: see [`Ordered::count`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn count<'a>(&self, stream: &$crate::__private::Stream, low: impl Into<$crate::__private::DeviceSlice<'a, $key>>, high: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::__private::DeviceVec<u64>, $crate::__private::Error> {
                $crate::Ordered::count(self, stream, low, high)
            }

            /// Returns the pairs in each interval from `low` to `high`, both inclusive: see [`Ordered::range`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn range<'a>(&self, stream: &$crate::__private::Stream, low: impl Into<$crate::__private::DeviceSlice<'a, $key>>, high: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::Ranges<$key, $value>, $crate::__private::Error> {
                $crate::Ordered::range(self, stream, low, high)
            }

            /// Combines the values in each interval from `low` to `high`, both inclusive: see [`Ordered::reduce`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn reduce<'a>(&self, stream: &$crate::__private::Stream, low: impl Into<$crate::__private::DeviceSlice<'a, $key>>, high: impl Into<$crate::__private::DeviceSlice<'a, $key>>, operation: impl $crate::__private::Monoid<$value>) -> Result<$crate::__private::DeviceVec<$value>, $crate::__private::Error> {
                $crate::Ordered::reduce(self, stream, low, high, operation)
            }

            /// Finds, for each of `keys`, the smallest key greater than it: see [`Ordered::successor`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn successor<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::Neighbour<$key, $value>, $crate::__private::Error> {
                $crate::Ordered::successor(self, stream, keys)
            }

            /// Finds, for each of `keys`, the largest key less than it: see [`Ordered::predecessor`].
            ///
            /// # Errors
            /// Those of the method of the trait.
            pub fn predecessor<'a>(&self, stream: &$crate::__private::Stream, keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>) -> Result<$crate::Neighbour<$key, $value>, $crate::__private::Error> {
                $crate::Ordered::predecessor(self, stream, keys)
            }
        }

        $crate::methods_of_sets!($set: [$($of_sets)*], $key, $options);
    };
}
