//! The queries of dictionaries that are made of levels, as methods of theirs.

/// Gives a dictionary the queries that all dictionaries of levels answer in the same way: as methods of its own, so that a program
/// need not import a trait. They ask the [`Stack`](crate::levels::Stack) that the type's method `stack` returns, for a stream.
///
/// Before the name of a method stands what is special about it: it becomes part of the documentation.
#[doc(hidden)]
#[macro_export]
macro_rules! queries_of_levels {
    (
        $package:ident::$name:ident, $label:literal;
        $(#[$lookup:meta])* lookup;
        $(#[$count:meta])* count;
        $(#[$range_into:meta])* range_into;
        $(#[$view:meta])* view -> $view_type:ident;
    ) => {
        impl<K: $crate::Key, V: $crate::Value> $name<K, V> {
            /// Looks up keys. Does not wait.
            ///
            $(#[$lookup])*
            ///
            /// # Errors
            /// [`Error::OutOfMemory`](gpu_primitives::Error::OutOfMemory), or any launch error. All queries can return these. After an
            /// error the dictionary is unchanged.
            pub fn lookup<'a>(
                &self,
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::Lookup<V>, $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, K> = keys.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::lookup"), keys.len());
                self.stack(stream)?.lookup(stream, keys)
            }

            /// Returns which keys are present: 1 or 0 for each. Does not wait.
            ///
            /// # Errors
            /// The errors of [`lookup`](Self::lookup).
            pub fn contains<'a>(
                &self,
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::__private::DeviceVec<u8>, $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, K> = keys.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::contains"), keys.len());
                self.stack(stream)?.contains(stream, keys)
            }

            /// Counts the keys in each interval from `low` to `high`, both inclusive. An interval that ends before it begins is
            /// empty.
            ///
            $(#[$count])*
            ///
            /// # Errors
            /// [`Error::LengthMismatch`](gpu_primitives::Error::LengthMismatch) if `low` and `high` differ in length, or the errors of
            /// [`lookup`](Self::lookup).
            pub fn count<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::__private::DeviceVec<u64>, $crate::__private::Error> {
                let low: $crate::__private::DeviceSlice<'a, K> = low.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::count"), low.len());
                self.stack(stream)?.count(stream, $crate::levels::Intervals { low, high: high.into() })
            }

            /// Counts the keys in each interval into given memory: see [`count`](Self::count). Never waits, so it can be recorded in a
            /// graph. Intervals that overlap are counted one by one.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`](gpu_primitives::Error::LengthMismatch) if the lengths differ, or the errors of
            /// [`lookup`](Self::lookup).
            pub fn count_into<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                counts: impl Into<$crate::__private::DeviceSliceMut<'a, u64>>,
            ) -> Result<(), $crate::__private::Error> {
                let low: $crate::__private::DeviceSlice<'a, K> = low.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::count_into"), low.len());
                let intervals = $crate::levels::Intervals { low, high: high.into() };
                self.stack(stream)?.count_into(stream, intervals, counts.into())
            }

            /// Returns the pairs in each interval from `low` to `high`, both inclusive, in key order. Waits for the stream, to
            /// learn how many there are.
            ///
            /// # Errors
            /// The errors of [`count`](Self::count). [`Error::OutOfMemory`](gpu_primitives::Error::OutOfMemory) says how much memory
            /// was needed.
            pub fn range<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::Ranges<K, V>, $crate::__private::Error> {
                let low: $crate::__private::DeviceSlice<'a, K> = low.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::range"), low.len());
                self.stack(stream)?.ranges(stream, $crate::levels::Intervals { low, high: high.into() })
            }

            /// Writes the pairs in each interval into given room: see [`range`](Self::range). Never waits, so it can be recorded in a
            /// graph.
            ///
            /// `offsets` receives where the pairs of each interval begin, and finally where the last ones end. Returns how many
            /// pairs there must be room for. If there is less room, what is written is not specified.
            ///
            $(#[$range_into])*
            ///
            /// ```
            #[doc = concat!("use ", stringify!($package), "::{", stringify!($name), ", Options};")]
            /// use gpu_primitives::{Device, Error};
            ///
            /// let stream = Device::default()?.stream()?;
            /// let pairs = (&stream.upload(&[1, 2, 3, 5])?, &stream.upload(&[10, 20, 30, 50])?);
            #[doc = concat!("let prices = ", stringify!($name), "::<u32, u32>::bulk_build(&stream, pairs, Options::new())?;")]
            /// let (low, high) = (stream.upload(&[2, 4])?, stream.upload(&[3, 9])?);
            /// let (mut keys, mut values) = (stream.zeroed(100)?, stream.zeroed(100)?);
            /// let mut offsets = stream.zeroed(3)?;
            /// let needed = prices.range_into(&stream, &low, &high, &mut offsets, (&mut keys, &mut values))?;
            /// assert!(needed.get(&stream)? <= 100);
            /// assert_eq!(offsets.to_vec(&stream)?, [0, 2, 3]);
            /// assert_eq!(values.to_vec(&stream)?[..3], [20, 30, 50]);
            /// # Ok::<(), Error>(())
            /// ```
            ///
            /// # Errors
            /// - [`Error::LengthMismatch`](gpu_primitives::Error::LengthMismatch) if `low` and `high` differ in length, if there is not
            ///   one more offset than intervals, or if there is not room for as many values as keys; for zero-sized values, if there is
            ///   room for any.
            /// - The errors of [`lookup`](Self::lookup).
            pub fn range_into<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                offsets: impl Into<$crate::__private::DeviceSliceMut<'a, u64>>,
                pairs: (
                    impl Into<$crate::__private::DeviceSliceMut<'a, K>>,
                    impl Into<$crate::__private::DeviceSliceMut<'a, V>>,
                ),
            ) -> Result<$crate::__private::DeviceValue<u64>, $crate::__private::Error> {
                let low: $crate::__private::DeviceSlice<'a, K> = low.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::range_into"), low.len());
                let intervals = $crate::levels::Intervals { low, high: high.into() };
                let (keys, values) = (pairs.0.into(), pairs.1.into());
                let to = $crate::levels::RangesMut { offsets: offsets.into(), keys, values };
                self.stack(stream)?.ranges_into(stream, intervals, to)
            }

            /// Combines the values in each interval from `low` to `high`, both inclusive, in key order: their sum, the largest one, or
            /// by any other [`Monoid`](gpu_primitives::monoid::Monoid). An interval without keys gives the identity. Waits, as
            /// [`range`](Self::range) does.
            ///
            /// ```
            #[doc = concat!("use ", stringify!($package), "::{", stringify!($name), ", Options};")]
            /// use gpu_primitives::scan::{Max, Sum};
            /// use gpu_primitives::{Device, Error};
            ///
            /// let stream = Device::default()?.stream()?;
            /// let pairs = (&stream.upload(&[1, 2, 3, 5])?, &stream.upload(&[10, 40, 30, 20])?);
            #[doc = concat!("let prices = ", stringify!($name), "::<u32, u32>::bulk_build(&stream, pairs, Options::new())?;")]
            /// let (low, high) = (stream.upload(&[2, 4, 6])?, stream.upload(&[3, 5, 9])?);
            /// assert_eq!(prices.reduce(&stream, &low, &high, Sum)?.to_vec(&stream)?, [70, 20, 0]);
            /// assert_eq!(prices.reduce(&stream, &low, &high, Max)?.to_vec(&stream)?, [40, 20, 0]);
            /// # Ok::<(), Error>(())
            /// ```
            ///
            /// # Errors
            /// The errors of [`range`](Self::range).
            pub fn reduce<'a>(
                &self,
                stream: &$crate::__private::Stream,
                low: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                high: impl Into<$crate::__private::DeviceSlice<'a, K>>,
                operation: impl $crate::__private::Monoid<V>,
            ) -> Result<$crate::__private::DeviceVec<V>, $crate::__private::Error> {
                let low: $crate::__private::DeviceSlice<'a, K> = low.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::reduce"), low.len());
                self.stack(stream)?.reduce(stream, $crate::levels::Intervals { low, high: high.into() }, operation)
            }

            /// Finds, for each of `keys`, the smallest key greater than it. Does not wait.
            ///
            /// # Errors
            /// The errors of [`lookup`](Self::lookup).
            pub fn successor<'a>(
                &self,
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::Neighbour<K, V>, $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, K> = keys.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::successor"), keys.len());
                self.stack(stream)?.neighbours(stream, keys, false)
            }

            /// Finds, for each of `keys`, the largest key less than it. Does not wait.
            ///
            /// # Errors
            /// The errors of [`lookup`](Self::lookup).
            pub fn predecessor<'a>(
                &self,
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, K>>,
            ) -> Result<$crate::Neighbour<K, V>, $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, K> = keys.into();
                let _span = $crate::__private::span!(stream, concat!($label, "::predecessor"), keys.len());
                self.stack(stream)?.neighbours(stream, keys, true)
            }

            /// Returns a copy of all pairs in key order, on the device. Waits for the stream.
            ///
            /// # Errors
            /// The errors of [`lookup`](Self::lookup).
            pub fn export(&self, stream: &$crate::__private::Stream) -> Result<$crate::Contents<K, V>, $crate::__private::Error> {
                self.stack(stream)?.export(stream)
            }

            /// Returns all pairs in key order, on the host. Waits for the stream.
            ///
            /// # Errors
            /// The errors of [`lookup`](Self::lookup).
            pub fn iter(
                &self,
                stream: &$crate::__private::Stream,
            ) -> Result<impl Iterator<Item = (K, V)> + use<K, V>, $crate::__private::Error> {
                Ok(self.export(stream)?.to_vec(stream)?.into_iter())
            }

            #[doc = concat!("Returns the dictionary as an argument for a kernel of your own, which looks up single keys with [`",
                stringify!($view_type), "::get`]. The")]
            /// kernel sees a key as the unsigned integer with the same bits. It sees a value as its
            /// [carrier](gpu_dictionary::Value::Carrier): an unsigned integer of the same size, or `()`. Does not wait.
            ///
            $(#[$view])*
            #[allow(clippy::type_complexity, reason = "a view of a view type: an alias would hide which")]
            pub fn view(
                &self,
                stream: &$crate::__private::Stream,
            ) -> Result<$crate::__private::View<'_, $view_type<K::Code, V::Carrier>>, $crate::__private::Error> {
                self.stack(stream)?.view(stream)
            }
        }
    };
}
