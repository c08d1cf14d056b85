//! A single value in device memory.

use super::memory::DeviceVec;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::error::Error;
use bytemuck::Pod;

/// A single value that the device computes and that may stay there: a count, a position, a flag.
///
/// Kernels read it through [`as_slice`](Self::as_slice), without a copy to the host. [`get`](Self::get) waits.
///
/// ```
/// use gpu_primitives::select::{self, Masked};
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::cpu().stream()?;
/// let input = stream.upload(&[1u32, 2, 3, 4, 5])?;
/// let mut odd = stream.zeroed::<u32>(5)?;
/// let count = select::select(&stream, &input, &mut odd, Masked::equal(1, 1))?; // returns at once
/// assert_eq!(count.get(&stream)?, 3); // waits
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceValue<T: Pod> {
    memory: DeviceVec<T>,
}

impl<T: Pod> DeviceValue<T> {
    /// Creates a value that a kernel is about to write.
    pub(crate) fn uninit(stream: &Stream) -> Result<Self, Error> {
        Ok(Self { memory: stream.uninit(1)? })
    }

    /// Creates a value from the host.
    ///
    /// # Errors
    /// Same as [`Stream::upload`].
    pub fn new(stream: &Stream, value: T) -> Result<Self, Error> {
        Ok(Self { memory: stream.upload(&[value])? })
    }

    /// Returns the value. Waits for the stream.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_host`].
    pub fn get(&self, stream: &Stream) -> Result<T, Error> {
        let mut host = [T::zeroed()];
        self.memory.copy_to_host(stream, &mut host)?;
        Ok(host[0])
    }

    /// Returns the value as a slice of one element, for use on the device. Does not wait.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.memory.as_slice()
    }

    /// Returns the value as a mutable slice of one element, for use on the device. Does not wait.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        self.memory.as_mut_slice()
    }
}
