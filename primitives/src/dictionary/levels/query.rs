//! The queries on the host, but for those of intervals.

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

/// The nearest keys, on the device, in the order of the keys that were asked for.
#[derive(Debug)]
pub struct Neighbour<K: Pod, V: Pod> {
    /// The keys, where there are any.
    pub keys: DeviceVec<K>,
    /// Their values. Empty if values have no size.
    pub values: DeviceVec<V>,
    /// 1 where there is one, else 0.
    pub found: DeviceVec<u8>,
}

impl<K: Pod, V: Pod> Neighbour<K, V> {
    /// The pairs on the host. Waits for the stream.
    ///
    /// # Errors
    /// What a copy to the host can give.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<Option<(K, V)>>, Error> {
        let (found, keys) = (self.found.to_vec(stream)?, self.keys.to_vec(stream)?);
        let values = if size_of::<V>() == 0 { vec![V::zeroed(); keys.len()] } else { self.values.to_vec(stream)? };
        let pairs = keys.into_iter().zip(values);
        Ok(found.into_iter().zip(pairs).map(|(found, pair)| (found != 0).then_some(pair)).collect())
    }
}

impl<K: Key, V: Pod> Stack<K, V> {
    /// Looks keys up. Does not wait.
    ///
    /// # Errors
    /// What an allocation or a launch can give.
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
                // SAFETY: a thread per key, and as many outputs.
                unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
            });
        }
        Ok(Lookup { values, found })
    }

    /// Tells which keys are there: 1 or 0. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn contains(&self, stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<DeviceVec<u8>, Error> {
        let mut found = stream.uninit::<u8>(keys.len())?;
        if !keys.is_empty() {
            let kernel = LookupKeys::<K::Code, ()>::new(
                self.carried_view::<()>(stream)?,
                bits(stream, keys)?,
                nothing_mut(),
                found.raw_view_mut(stream)?,
            );
            // SAFETY: a thread per key, and as many outputs.
            unsafe { stream.launch(kernel, keys.len().div_ceil(THREADS as usize))? };
        }
        Ok(found)
    }

    /// Finds the smallest key above each, or with `below` the largest one below. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
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
                // SAFETY: a thread per key, and as many outputs.
                unsafe { stream.launch(kernel, len.div_ceil(THREADS as usize))? };
            });
        }
        Ok(Neighbour { keys: out_keys, values, found })
    }

    /// How many keys there are: a number on the device, the only element. Does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn live_len(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        if let Some(level) = self.distinct_level() {
            return stream.upload(&[level.len() as u64]);
        }
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        count_live(stream, &levels)
    }

    /// All live pairs in the order of the keys, and how many there are: the vectors may be longer. Waits for the stream.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn export(&self, stream: &Stream) -> Result<(DeviceVec<K>, DeviceVec<V>, usize), Error> {
        let levels: Vec<&Level<K, V>> = self.oldest_first().map(|(_, level)| level).collect();
        let (codes, values, len) = Level::live_as(stream, &levels, K::SIGN)?;
        const { assert_code_layout::<K>() };
        let (home, address, capacity) = codes.into_raw();
        // SAFETY: the same memory; a key and its code have the same size, and the kernel has written keys.
        let keys = unsafe { DeviceVec::from_raw(&home, address.cast(), capacity) };
        Ok((keys, values, len))
    }

    /// Whether some level may have tombstones.
    #[must_use]
    pub fn has_tombstones(&self) -> bool {
        self.oldest_first().any(|(_, level)| level.has_tombstones())
    }

    /// The levels as an argument of a kernel of your own: see [`Levels`]. Values are seen as their carrier `W`, an unsigned
    /// number of the same size, or `()`. Builds what is missing of the index; does not wait.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    ///
    /// # Panics
    /// If `W` has another size than the values.
    pub fn view<W: Pod>(&self, stream: &Stream) -> Result<View<'_, Levels<K::Code, W>>, Error> {
        assert_eq!(size_of::<W>(), size_of::<V>(), "the carrier has the size of the values");
        self.carried_view(stream)
    }
}

/// The queries of a dictionary whose levels are in its field `stack`: its own methods, named within its `impl`, with the types of
/// its keys and values, and what its documentation says about when `count` waits.
#[doc(hidden)]
#[macro_export]
macro_rules! queries_of_levels {
    ($key:ident, $value:ident, $count_waits:literal) => {
        /// Looks keys up. Does not wait.
        ///
        /// # Errors
        /// [`Error::OutOfMemory`]($crate::Error::OutOfMemory), what a launch can give. So for all queries.
        pub fn lookup<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::Lookup<$value>, $crate::Error> {
            self.stack.lookup(stream, keys.into())
        }

        /// Tells which keys are there: 1 or 0 for each. Does not wait.
        ///
        /// # Errors
        /// As [`lookup`](Self::lookup).
        pub fn contains<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::DeviceVec<u8>, $crate::Error> {
            self.stack.contains(stream, keys.into())
        }

        /// Counts the keys of each interval from `low` to `high`, both included; one that ends before it begins has none.
        #[doc = $count_waits]
        ///
        /// # Errors
        /// [`Error::LengthMismatch`]($crate::Error::LengthMismatch) if there are not as many ends as beginnings; as
        /// [`lookup`](Self::lookup).
        pub fn count<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, $key>>,
            high: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::DeviceVec<u64>, $crate::Error> {
            self.stack.count(stream, $crate::dictionary::levels::Intervals { low: low.into(), high: high.into() })
        }

        /// Gives the pairs of each interval from `low` to `high`, both included, in the order of the keys. Waits for the
        /// stream, to know how much memory they need.
        ///
        /// # Errors
        /// As [`count`](Self::count); [`Error::OutOfMemory`]($crate::Error::OutOfMemory) says how much was needed.
        pub fn range<'a>(
            &self,
            stream: &$crate::Stream,
            low: impl Into<$crate::DeviceSlice<'a, $key>>,
            high: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Ranges<$key, $value>, $crate::Error> {
            self.stack.ranges(stream, $crate::dictionary::levels::Intervals { low: low.into(), high: high.into() })
        }

        /// Finds the smallest key above each. Does not wait.
        ///
        /// # Errors
        /// As [`lookup`](Self::lookup).
        pub fn successor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<$key, $value>, $crate::Error> {
            self.stack.neighbours(stream, keys.into(), false)
        }

        /// Finds the largest key below each. Does not wait.
        ///
        /// # Errors
        /// As [`lookup`](Self::lookup).
        pub fn predecessor<'a>(
            &self,
            stream: &$crate::Stream,
            keys: impl Into<$crate::DeviceSlice<'a, $key>>,
        ) -> Result<$crate::dictionary::levels::Neighbour<$key, $value>, $crate::Error> {
            self.stack.neighbours(stream, keys.into(), true)
        }
    };
}
