//! Arrays of values that dictionaries refer to by index.

use crate::values_for;
use bytemuck::Pod;
use gpu_primitives::operator::map;
use gpu_primitives::source::{self, Source};
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, expect_len, permute, transform};
use std::sync::Arc;

/// An array of values that only grows at its end. Clones share it; one that adds values has its own.
#[derive(Debug)]
pub struct Column<T: Pod> {
    array: Arc<DeviceVec<T>>,
    /// The number of places in use. The array may be longer.
    len: usize,
}

impl<T: Pod> Clone for Column<T> {
    fn clone(&self) -> Self {
        Self { array: Arc::clone(&self.array), len: self.len }
    }
}

/// Checks that there is exactly one value per key or, for zero-sized values, none.
///
/// # Errors
/// [`Error::LengthMismatch`].
pub fn expect_values<V>(keys: usize, found: usize) -> Result<(), Error> {
    expect_len("the values of a dictionary", values_for::<V>(keys), found)
}

/// Returns the indices of `len` values from `start` on.
///
/// # Errors
/// [`Error::TooLong`] if they do not fit into 32 bits; [`Error::OutOfMemory`]; any launch error.
pub fn indices(stream: &Stream, start: usize, len: usize) -> Result<DeviceVec<u32>, Error> {
    let limit = u32::MAX as usize;
    if start + len > limit {
        return Err(Error::TooLong {
            what: "the values of a dictionary, with those that were replaced",
            len: start + len,
            limit,
        });
    }
    let mut indices = stream.uninit(len)?;
    transform::sequence(stream, &mut indices, start as u32)?;
    Ok(indices)
}

// All errors are those of allocations, copies and launches.
#[allow(clippy::missing_errors_doc, reason = "hidden")]
impl<T: Pod> Column<T> {
    /// Returns a column without values.
    pub fn empty(stream: &Stream) -> Result<Self, Error> {
        Ok(Self::from(stream.uninit(0)?))
    }

    /// Copies values into a new array with some room.
    pub fn with_room(stream: &Stream, values: DeviceSlice<'_, T>, room: usize) -> Result<Self, Error> {
        // The array counts as written right after this call, but recorded work would write it only later.
        stream.refuse_recording("an update of a dictionary")?;
        let mut array = stream.uninit(room.max(values.len()))?;
        array.slice_mut(..values.len())?.copy_from(stream, values)?;
        Ok(Self { array: Arc::new(array), len: values.len() })
    }

    /// Returns a new column: the values at these indices, others after them, and room for as many as `room` says in all.
    pub fn compacted(
        &self,
        stream: &Stream,
        live: &DeviceVec<u32>,
        more: DeviceSlice<'_, T>,
        room: usize,
    ) -> Result<Self, Error> {
        let kept = values_for::<T>(live.len());
        let len = kept + more.len();
        let mut array = stream.uninit(len.max(room))?;
        self.gather(stream, live, array.slice_mut(..kept)?)?;
        array.slice_mut(kept..len)?.copy_from(stream, more)?;
        Ok(Self { array: Arc::new(array), len })
    }

    /// Returns whether to [compact](Self::compacted) the column rather than to move it to a longer array: there is no room for
    /// `more` values, and indices refer to less than half of those that are there. `live` says to how many; it may wait.
    pub fn is_to_be_compacted(&self, more: usize, live: impl FnOnce() -> Result<usize, Error>) -> Result<bool, Error> {
        Ok(self.len + more > self.array.len() && live()? < self.len / 2)
    }

    /// Returns the values with others after them: in the same array if it has room, and no clone shares it.
    pub fn with(&mut self, stream: &Stream, more: DeviceSlice<'_, T>) -> Result<Self, Error> {
        stream.refuse_recording("an update of a dictionary")?;
        let len = self.len + more.len();
        match Arc::get_mut(&mut self.array) {
            Some(array) if len <= array.len() => {
                array.slice_mut(self.len..len)?.copy_from(stream, more)?;
                Ok(Self { array: Arc::clone(&self.array), len })
            }
            _ => {
                let mut longer = Self::with_room(stream, self.values()?, len.max(2 * self.len))?;
                let array = Arc::get_mut(&mut longer.array).expect("it is new");
                array.slice_mut(self.len..len)?.copy_from(stream, more)?;
                Ok(Self { len, ..longer })
            }
        }
    }

    /// Returns the number of values, with those that no index refers to any more.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.array.len() * size_of::<T>()
    }

    /// Returns all values.
    pub fn values(&self) -> Result<DeviceSlice<'_, T>, Error> {
        self.array.slice(..self.len)
    }

    /// Writes the values at some indices. What has no index keeps its value.
    pub fn gather<'a>(
        &'a self,
        stream: &Stream,
        at: impl Source<'a, u32>,
        to: DeviceSliceMut<'a, T>,
    ) -> Result<(), Error> {
        if size_of::<T>() > 0 {
            permute::gather(stream, self.values()?, at, to)?;
        }
        Ok(())
    }

    /// Returns the values at some indices.
    pub fn at(&self, stream: &Stream, indices: &DeviceVec<u32>) -> Result<DeviceVec<T>, Error> {
        let mut values = stream.uninit(values_for::<T>(indices.len()))?;
        self.gather(stream, indices, values.as_mut_slice())?;
        Ok(values)
    }

    /// Returns the values at the indices that were found, and zeros for the others.
    pub fn where_found(
        &self,
        stream: &Stream,
        indices: &DeviceVec<u32>,
        found: &DeviceVec<u8>,
    ) -> Result<DeviceVec<T>, Error> {
        let mut values = stream.zeroed(values_for::<T>(indices.len()))?;
        let masked = map!(|index: u32, found: u8| -> u32 { if found != 0 { index } else { u32::MAX } });
        self.gather(stream, source::map2(indices, found, masked), values.as_mut_slice())?;
        Ok(values)
    }
}

impl<T: Pod> From<DeviceVec<T>> for Column<T> {
    fn from(array: DeviceVec<T>) -> Self {
        let len = array.len();
        Self { array: Arc::new(array), len }
    }
}
