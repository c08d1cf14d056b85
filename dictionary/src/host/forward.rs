//! The traits, for dictionaries whose own methods have the same names and signatures.

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
