//! Keys as unsigned integers and values as their carriers, in device memory: the same bytes under another type.

use crate::{Key, Value};
use bytemuck::Pod;
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};

/// Memory of the caller, or a copy of it in another form.
#[derive(Debug)]
pub enum Input<'a, T: Pod> {
    /// The caller's memory.
    Same(DeviceSlice<'a, T>),
    /// A copy.
    Copy(DeviceVec<T>),
}

impl<T: Pod> Input<'_, T> {
    /// Returns the elements.
    #[must_use]
    pub fn slice(&self) -> DeviceSlice<'_, T> {
        match self {
            Self::Same(slice) => *slice,
            Self::Copy(vector) => vector.as_slice(),
        }
    }
}

/// Returns keys as the unsigned integers with the same bits.
#[must_use]
pub fn bits<K: Key>(keys: DeviceSlice<'_, K>) -> DeviceSlice<'_, K::Code> {
    keys.cast().expect("a key and its code have the same size and alignment")
}

/// Returns values as their carriers. Copies values that are misaligned for their carrier. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`] for the copy, or any error of a copy.
pub fn carried<'a, V: Value>(stream: &Stream, values: DeviceSlice<'a, V>) -> Result<Input<'a, V::Carrier>, Error> {
    if let Some(carried) = values.cast() {
        return Ok(Input::Same(carried));
    }
    // Vectors are aligned for all types.
    let mut aligned = stream.uninit::<V>(values.len())?;
    aligned.copy_from(stream, values)?;
    Ok(Input::Copy(recast(aligned)))
}

/// Returns a vector as one of another type of the same size: values and their carriers, or keys and their bits.
///
/// # Panics
/// If the types differ in size, as they do for a [`Value`] whose carrier has another size.
#[must_use]
pub fn recast<T: Pod, W: Pod>(vector: DeviceVec<T>) -> DeviceVec<W> {
    vector.cast().unwrap_or_else(|_| {
        panic!("`{}` and `{}` differ in size", core::any::type_name::<T>(), core::any::type_name::<W>())
    })
}
