//! The same elements on the host and on the device, as input for structures of either.

use crate::Error;
use crate::data::{Datum, Number};
use bytemuck::Pod;
use gpu_primitives::{DeviceSlice, DeviceVec, Stream};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::ops::Range;

/// Elements on the host and on the device.
pub struct Both<T: Pod> {
    /// The elements on the host.
    pub host: Vec<T>,
    /// The elements on the device. Empty for zero-sized elements, as dictionaries require.
    pub device: DeviceVec<T>,
}

impl<T: Pod> Both<T> {
    /// Uploads elements.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(stream: &Stream, host: Vec<T>) -> Result<Self, Error> {
        let device = if size_of::<T>() == 0 { stream.uninit(0)? } else { stream.upload(&host)? };
        Ok(Self { host, device })
    }

    /// Returns the elements of a range.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Result<Slice<'_, T>, Error> {
        let device = if size_of::<T>() == 0 { self.device.as_slice() } else { self.device.slice(range.clone())? };
        Ok(Slice { host: &self.host[range], device })
    }

    /// Returns all elements.
    #[must_use]
    pub fn all(&self) -> Slice<'_, T> {
        Slice { host: &self.host, device: self.device.as_slice() }
    }
}

/// Some elements on the host and on the device.
#[derive(Clone, Copy)]
pub struct Slice<'a, T> {
    /// The elements on the host.
    pub host: &'a [T],
    /// The elements on the device.
    pub device: DeviceSlice<'a, T>,
}

/// Pairs of keys and values.
pub struct Pairs<K: Number, V: Datum> {
    /// The keys.
    pub keys: Both<K>,
    /// The values, one per key.
    pub values: Both<V>,
}

impl<K: Number, V: Datum> Pairs<K, V> {
    /// Creates pairs of these keys. The key at position `i` gets the value of index `first_index + i`.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(stream: &Stream, keys: Vec<K>, first_index: usize) -> Result<Self, Error> {
        let values = (first_index..first_index + keys.len()).into_par_iter().map(|index| V::of(index as u64)).collect();
        Ok(Self { keys: Both::new(stream, keys)?, values: Both::new(stream, values)? })
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.host.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pairs of a range.
    ///
    /// # Errors
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Result<PairSlice<'_, K, V>, Error> {
        Ok(PairSlice { keys: self.keys.slice(range.clone())?, values: self.values.slice(range)? })
    }

    /// Returns the first `len` pairs in batches of `batch`.
    pub fn batches(&self, len: usize, batch: usize) -> impl Iterator<Item = Result<PairSlice<'_, K, V>, Error>> {
        (0..len).step_by(batch).map(move |start| self.slice(start..(start + batch).min(len)))
    }
}

/// Some pairs.
#[derive(Clone, Copy)]
pub struct PairSlice<'a, K, V> {
    /// The keys.
    pub keys: Slice<'a, K>,
    /// The values, one per key.
    pub values: Slice<'a, V>,
}
