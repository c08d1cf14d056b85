//! The methods of sets: dictionaries of keys without values.

/// Gives a dictionary whose values are `()` the methods that take keys alone. It has `bulk_build` and `insert`. What stands before the
/// type becomes part of the documentation of `build_set`.
#[doc(hidden)]
#[macro_export]
macro_rules! methods_of_sets {
    ($(#[$build_set:meta])* $set:ty: [$($parameters:tt)*], $key:ty, $options:ty) => {
        /// Sets: keys without values.
        impl<$($parameters)*> $set {
            /// Builds a set of these keys: [`bulk_build`](Self::bulk_build) without values.
            ///
            $(#[$build_set])*
            ///
            /// # Errors
            /// The errors of [`bulk_build`](Self::bulk_build).
            pub fn build_set<'a>(
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>,
                options: $options,
            ) -> Result<Self, $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, $key> = keys.into();
                Self::bulk_build(stream, (keys, &stream.uninit::<()>(0)?), options)
            }

            /// Inserts keys: [`insert`](Self::insert) without values.
            ///
            /// # Errors
            /// The errors of [`insert`](Self::insert).
            pub fn insert_keys<'a>(
                &mut self,
                stream: &$crate::__private::Stream,
                keys: impl Into<$crate::__private::DeviceSlice<'a, $key>>,
            ) -> Result<(), $crate::__private::Error> {
                let keys: $crate::__private::DeviceSlice<'a, $key> = keys.into();
                self.insert(stream, (keys, &stream.uninit::<()>(0)?))
            }
        }
    };
}
