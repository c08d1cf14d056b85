//! Pairs on the host: keys as the unsigned integers with the same bits, and values as their carriers.
//!
//! Pairs have as many values as keys, even if values are zero-sized.

use crate::kernel::PairsMut;
use bytemuck::Pod;
use gpu_dictionary::cast::{Input, bits, carried};
use gpu_dictionary::{Value, WordKey as Key, values_for};
use gpu_primitives::kernel::View;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len, sort};

/// Keys and as many values, to read.
pub type PairSlices<'a, C, V> = (DeviceSlice<'a, C>, DeviceSlice<'a, V>);

/// Keys and as many values.
#[derive(Debug)]
pub struct PairVec<C: Pod, V: Pod> {
    pub keys: DeviceVec<C>,
    pub values: DeviceVec<V>,
}

impl<C: Pod, V: Pod> PairVec<C, V> {
    /// Allocates room for `len` pairs.
    pub fn uninit(stream: &Stream, len: usize) -> Result<Self, Error> {
        Ok(Self { keys: stream.uninit(len)?, values: stream.uninit(len)? })
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns all pairs, to read.
    pub fn slices(&self) -> PairSlices<'_, C, V> {
        (self.keys.as_slice(), self.values.as_slice())
    }

    /// Returns the first `len` pairs, to read.
    pub fn first(&self, len: usize) -> Result<PairSlices<'_, C, V>, Error> {
        Ok((self.keys.slice(..len)?, self.values.slice(..len)?))
    }

    /// Returns the room for pairs as an argument for kernels on `stream`.
    pub fn view_mut(&mut self, stream: &Stream) -> Result<View<'_, PairsMut<C, V>>, Error> {
        PairsMut::view(stream, (&mut self.keys, &mut self.values))
    }

    /// Copies pairs of the host to the first positions. Waits.
    pub fn fill_from_host(&mut self, stream: &Stream, pairs: Vec<(C, V)>) -> Result<(), Error> {
        let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        self.keys.slice_mut(..keys.len())?.copy_from_host(stream, &keys)?;
        self.values.slice_mut(..values.len())?.copy_from_host(stream, &values)
    }

    /// Copies pairs to the positions from `at` on.
    pub fn copy_from(&mut self, stream: &Stream, at: usize, (keys, values): PairSlices<'_, C, V>) -> Result<(), Error> {
        let range = at..at + keys.len();
        self.keys.slice_mut(range.clone())?.copy_from(stream, keys)?;
        self.values.slice_mut(range)?.copy_from(stream, values)
    }
}

/// Pairs of the caller, in the form that the table uses.
pub struct Given<'a, K: Key, V: Value> {
    keys: DeviceSlice<'a, K::Code>,
    values: Input<'a, V::Carrier>,
}

impl<'a, K: Key, V: Value> Given<'a, K, V> {
    /// Takes pairs of the caller. Zero-sized values are not given: there must be none.
    ///
    /// # Errors
    /// - [`Error::LengthMismatch`] if there is not exactly one value per key; for zero-sized values, if there are any.
    /// - [`Error::OutOfMemory`] for a copy of misaligned values.
    pub fn new(stream: &Stream, keys: DeviceSlice<'a, K>, values: DeviceSlice<'a, V>) -> Result<Self, Error> {
        expect_len("the slice of values", values_for::<V>(keys.len()), values.len())?;
        let values = if const { size_of::<V>() == 0 } {
            // As many as keys. They take no memory.
            Input::Copy(stream.uninit(keys.len())?)
        } else {
            carried(stream, values)?
        };
        Ok(Self { keys: bits(keys), values })
    }

    /// Returns the pairs.
    pub fn slices(&self) -> PairSlices<'_, K::Code, V::Carrier> {
        (self.keys, self.values.slice())
    }
}

/// Sorts pairs by key, in the order of `K`. Pairs with equal keys keep their order. Does not wait.
pub fn sort_by_key<K: Key, V: Pod>(
    stream: &Stream,
    from: PairSlices<'_, K::Code, V>,
    to: &mut PairVec<K::Code, V>,
) -> Result<(), Error> {
    const SAME: &str = "a key and its code have the same size and alignment";
    let from_keys: DeviceSlice<'_, K> = from.0.cast().expect(SAME);
    let to_keys: DeviceSliceMut<'_, K> = to.keys.as_mut_slice().cast().expect(SAME);
    sort::pairs(stream, (from_keys, from.1), (to_keys, &mut to.values), sort::Options::new())
}
