//! Keys and values in device memory, in the form in which kernels take them: keys as unsigned integers, values as their
//! carriers. Most are the same bytes under another type; others are converted.

use crate::{Key, Value, WordKey};
use bytemuck::Pod;
use gpu_primitives::{DeviceSlice, DeviceSliceMut, DeviceVec, Error, Stream, sort};

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
pub fn bits<K: WordKey>(keys: DeviceSlice<'_, K>) -> DeviceSlice<'_, K::Code> {
    same_bits(keys)
}

fn same_bits<K: Key>(keys: DeviceSlice<'_, K>) -> DeviceSlice<'_, K::Code> {
    keys.cast().expect("a plain key and its code have the same size and alignment")
}

/// Returns keys as kernels on levels take them: [plain](Key::IS_PLAIN) ones as the unsigned integers with the same bits,
/// others as their codes. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`] for the codes, or any launch error.
pub fn encode_query<'a, K: Key>(stream: &Stream, keys: DeviceSlice<'a, K>) -> Result<Input<'a, K::Code>, Error> {
    if K::IS_PLAIN { Ok(Input::Same(same_bits(keys))) } else { encoded(stream, keys) }
}

/// Returns the codes of keys. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`] for the codes, or any launch error.
pub fn codes<'a, K: Key>(stream: &Stream, keys: DeviceSlice<'a, K>) -> Result<Input<'a, K::Code>, Error> {
    if K::IS_CODE { Ok(Input::Same(same_bits(keys))) } else { encoded(stream, keys) }
}

fn encoded<'a, K: Key>(stream: &Stream, keys: DeviceSlice<'_, K>) -> Result<Input<'a, K::Code>, Error> {
    let mut codes = stream.uninit(keys.len())?;
    sort::encode(stream, keys, &mut codes)?;
    Ok(Input::Copy(codes))
}

/// Returns the keys of codes. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`] for the keys, or any launch error.
pub fn keys_of<K: Key>(stream: &Stream, codes: DeviceVec<K::Code>) -> Result<DeviceVec<K>, Error> {
    if K::IS_CODE { Ok(recast(codes)) } else { decoded(stream, codes) }
}

/// Returns the keys that kernels on levels have written: the inverse of [`encode_query`]. Does not wait.
///
/// # Errors
/// [`Error::OutOfMemory`] for the keys, or any launch error.
pub fn decode_result<K: Key>(stream: &Stream, written: DeviceVec<K::Code>) -> Result<DeviceVec<K>, Error> {
    if K::IS_PLAIN { Ok(recast(written)) } else { decoded(stream, written) }
}

fn decoded<K: Key>(stream: &Stream, codes: DeviceVec<K::Code>) -> Result<DeviceVec<K>, Error> {
    let mut keys = stream.uninit(codes.len())?;
    sort::decode(stream, &codes, &mut keys)?;
    Ok(keys)
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

/// Keys that a kernel writes into the caller's memory, in the form of [`decode_result`]: in place if that is the form of the keys,
/// and otherwise elsewhere first.
#[derive(Debug)]
pub struct WrittenKeys<'a, K: Key> {
    keys: DeviceSliceMut<'a, K>,
    elsewhere: Option<DeviceVec<K::Code>>,
}

impl<'a, K: Key> WrittenKeys<'a, K> {
    /// Prepares the memory. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for keys that are written elsewhere, or any launch error.
    pub fn new(stream: &Stream, keys: DeviceSliceMut<'a, K>) -> Result<Self, Error> {
        // All of them are converted in the end, also those that the kernel does not write.
        let elsewhere = if K::IS_PLAIN { None } else { Some(stream.zeroed(keys.len())?) };
        Ok(Self { keys, elsewhere })
    }

    /// Returns the memory that the kernel writes.
    #[must_use]
    pub fn slice(&mut self) -> DeviceSliceMut<'_, K::Code> {
        match &mut self.elsewhere {
            Some(codes) => codes.as_mut_slice(),
            None => self.keys.reborrow().cast().expect("a plain key and its code have the same size and alignment"),
        }
    }

    /// Returns the caller's memory, with the keys in it. Does not wait.
    ///
    /// # Errors
    /// Any launch error.
    pub fn finish(mut self, stream: &Stream) -> Result<DeviceSliceMut<'a, K>, Error> {
        if let Some(codes) = self.elsewhere {
            sort::decode(stream, &codes, self.keys.reborrow())?;
        }
        Ok(self.keys)
    }
}

/// Values that a kernel writes into the caller's memory as their carriers: in place if they are aligned, and otherwise
/// elsewhere first.
#[derive(Debug)]
pub struct WrittenValues<'a, V: Value> {
    values: DeviceSliceMut<'a, V>,
    elsewhere: Option<DeviceVec<V::Carrier>>,
}

impl<'a, V: Value> WrittenValues<'a, V> {
    /// Prepares the memory. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for values that are written elsewhere.
    pub fn new(stream: &Stream, mut values: DeviceSliceMut<'a, V>) -> Result<Self, Error> {
        let is_aligned = values.reborrow().cast::<V::Carrier>().is_some();
        let elsewhere = if is_aligned { None } else { Some(stream.zeroed(values.len())?) };
        Ok(Self { values, elsewhere })
    }

    /// Returns the memory that the kernel writes.
    #[must_use]
    pub fn slice(&mut self) -> DeviceSliceMut<'_, V::Carrier> {
        match &mut self.elsewhere {
            Some(carriers) => carriers.as_mut_slice(),
            None => self.values.reborrow().cast().expect("a value and its carrier have the same size"),
        }
    }

    /// Returns the caller's memory, with the values in it. Does not wait.
    ///
    /// # Errors
    /// Any error of a copy.
    pub fn finish(mut self, stream: &Stream) -> Result<DeviceSliceMut<'a, V>, Error> {
        if let Some(carriers) = self.elsewhere {
            self.values.copy_from(stream, recast::<_, V>(carriers).as_slice())?;
        }
        Ok(self.values)
    }
}
