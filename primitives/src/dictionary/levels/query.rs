//! The host side of all queries except those on intervals.

#![deny(unsafe_op_in_unsafe_fn)]

use super::level::{Level, bits, carried_mut, count_live, nothing_mut, values_for, with_carrier};
use super::stack::Stack;
use super::table::THREADS;
use super::{FindNeighbours, Levels, LookupKeys};
use crate::dictionary::{Key, Lookup};
use crate::kernel::View;
use crate::sort::assert_code_layout;
use crate::{DeviceSlice, DeviceVec, Error, Stream};
use bytemuck::Pod;

/// The neighbours of keys, on the device, in the order of the keys that were asked for.
#[derive(Debug)]
pub struct Neighbour<K: Pod, V: Pod> {
    /// The neighbours, where there are any.
    pub keys: DeviceVec<K>,
    /// The values of the neighbours. Empty if values are zero-sized.
    pub values: DeviceVec<V>,
    /// 1 for each key that has a neighbour, 0 for each that has none.
    pub found: DeviceVec<u8>,
}

impl<K: Pod, V: Pod> Neighbour<K, V> {
    /// Copies the pairs to the host. Waits for the stream.
    ///
    /// # Errors
    /// Any error of a copy to the host.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<(K, V)>>, Error> {
        let (found, keys) = (self.found.to_vec(stream)?, self.keys.to_vec(stream)?);
        let values = if size_of::<V>() == 0 { vec![V::zeroed(); keys.len()] } else { self.values.to_vec(stream)? };
        let pairs = keys.into_iter().zip(values);
        Ok(found.into_iter().zip(pairs).map(|(found, pair)| (found != 0).then_some(pair)).collect())
    }
}

impl<K: Key, V: Pod> Stack<K, V> {
    /// Looks up keys. Does not wait.
    ///
    /// # Errors
    /// Any allocation or launch error.
    pub fn lookup(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Lookup<V>, Error> {
        let mut values = stream.uninit::<V>(values_for::<V>(keys.len()))?;
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            with_carrier!(V, W => {
                let kernel = LookupKeys::<K::Code, W>::new(
                    self.carried_view::<W>(stream)?,
                    bits(stream, keys)?,
                    carried_mut(values.raw_view_mut(stream)?),
                    found.raw_view_mut(stream)?,
                );
                // SAFETY: there is a thread per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            });
        }
        Ok(Lookup { values, found })
    }

    /// Returns which keys are present: 1 or 0 for each. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn contains(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u8>, Error> {
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            let kernel = LookupKeys::<K::Code, ()>::new(
                self.carried_view::<()>(stream)?,
                bits(stream, keys)?,
                nothing_mut(),
                found.raw_view_mut(stream)?,
            );
            // SAFETY: there is a thread per key, and the output is as long as the keys.
            unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
        }
        Ok(found)
    }

    /// Finds, for each of `keys`, the smallest key greater than it or, with `below`, the largest key less than it. Does
    /// not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn neighbours(&self, stream: &Stream, keys: DeviceSlice<'_, K>, below: bool) -> Result<Neighbour<K, V>, Error> {
        let len = keys.len();
        let mut out_keys = stream.uninit::<K>(len)?;
        let mut values = stream.uninit::<V>(values_for::<V>(len))?;
        let mut found = stream.uninit::<u8>(len)?;
        if len > 0 {
            with_carrier!(V, W => {
                let kernel = FindNeighbours::<K::Code, W>::new(
                    self.carried_view::<W>(stream)?,
                    bits(stream, keys)?,
                    u32::from(below),
                    carried_mut(out_keys.raw_view_mut(stream)?),
                    carried_mut(values.raw_view_mut(stream)?),
                    found.raw_view_mut(stream)?,
                );
                // SAFETY: there is a thread per key, and the outputs are as long as the keys.
                unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
            });
        }
        Ok(Neighbour { keys: out_keys, values, found })
    }

    /// Returns the number of keys, as a single element on the device. Does not wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn live_len(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        if let Some(level) = self.distinct_level() {
            return stream.upload(&[level.len() as u64]);
        }
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        count_live(stream, &levels)
    }

    /// Returns all live pairs in key order, and their number. The vectors may be longer. Waits for the stream.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<(DeviceVec<K>, DeviceVec<V>, usize), Error> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let (codes, values, len) = Level::live_as(stream, &levels, K::SIGN)?;
        const { assert_code_layout::<K>() };
        let (home, address, capacity) = codes.into_raw();
        // SAFETY: this is the same memory. A key and its code have the same size, and the kernel has written keys.
        let keys = unsafe { DeviceVec::from_raw(&home, address.cast(), capacity) };
        Ok((keys, values, len))
    }

    /// Returns whether any level may have tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.oldest_first().any(|(_, level)| level.has_tombstones())
    }

    /// Returns the levels as an argument for a kernel of your own: see [`Levels`]. The kernel sees a value as its
    /// carrier `W`: an unsigned integer of the same size, or `()`. Builds the missing parts of the index. Does not
    /// wait.
    ///
    /// # Errors
    /// The errors of [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If the size of `W` differs from the size of the values.
    pub fn view<W: Pod>(&self, stream: &Stream) -> Result<View<'_, Levels<K::Code, W>>, Error> {
        assert_eq!(size_of::<W>(), size_of::<V>(), "the carrier has the size of the values");
        self.carried_view(stream)
    }
}

/// Defines the queries of a dictionary whose levels are in its field `stack`. Use it inside the dictionary's `impl`,
/// with the types of its keys and values, and a sentence for the documentation that says when `count` waits.
#[doc(hidden)]
#[macro_export]
macro_rules! queries_of_levels {
    ($key:ident, $value:ident, $count_waits:literal) => {
        /// Looks up keys. Does not wait.
        ///
        /// # Errors
        /// [`Error::OutOfMemory`]($crate::Error::OutOfMemory), or any launch error. All queries can return these.
        pub fn lookup<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::Lookup<$value>, $crate::Error> {
            self.stack.lookup(stream, keys.into())
        }

        /// Returns which keys are present: 1 or 0 for each. Does not wait.
        ///
        /// # Errors
        /// The errors of [`lookup`](Self::lookup).
        pub fn contains<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::DeviceVec<u8>, $crate::Error> {
            self.stack.contains(stream, keys.into())
        }

        /// Counts the keys in each interval from `low` to `high`, both inclusive. An interval that ends before it
        /// begins is empty.
        #[doc = $count_waits]
        ///
        /// # Errors
        /// [`Error::LengthMismatch`]($crate::Error::LengthMismatch) if `low` and `high` differ in length, or the errors
        /// of [`lookup`](Self::lookup).
        pub fn count<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, $key>>,
            high: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::DeviceVec<u64>, $crate::Error> {
            self.stack.count(stream, $crate::dictionary::levels::Intervals { low: low.into(), high: high.into() })
        }

        /// Returns the pairs in each interval from `low` to `high`, both inclusive, in key order. Waits for the stream,
        /// to learn how much memory the results need.
        ///
        /// # Errors
        /// The errors of [`count`](Self::count). [`Error::OutOfMemory`]($crate::Error::OutOfMemory) says how much
        /// memory was needed.
        pub fn range<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, $key>>,
            high: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Ranges<$key, $value>, $crate::Error> {
            self.stack.ranges(stream, $crate::dictionary::levels::Intervals { low: low.into(), high: high.into() })
        }

        /// Finds, for each of `keys`, the smallest key greater than it. Does not wait.
        ///
        /// # Errors
        /// The errors of [`lookup`](Self::lookup).
        pub fn successor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<$key, $value>, $crate::Error> {
            self.stack.neighbours(stream, keys.into(), false)
        }

        /// Finds, for each of `keys`, the largest key less than it. Does not wait.
        ///
        /// # Errors
        /// The errors of [`lookup`](Self::lookup).
        pub fn predecessor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<$key, $value>, $crate::Error> {
            self.stack.neighbours(stream, keys.into(), true)
        }
    };
}
