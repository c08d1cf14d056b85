//! One value in device memory.

use super::error::Error;
use super::memory::DeviceVec;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use bytemuck::Pod;

/// A value that the device computes and that may stay there: a count, a position, a verdict.
///
/// Kernels read it through [`as_slice`](Self::as_slice) without the host ever knowing it; [`get`](Self::get) waits.
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
    /// A value that a kernel is about to write.
    pub(crate) fn uninit(stream: &Stream) -> Result<Self, Error> {
        Ok(Self { memory: stream.uninit(1)? })
    }

    /// A value that the host knows.
    ///
    /// # Errors
    /// What an upload can give.
    pub fn new(stream: &Stream, value: T) -> Result<Self, Error> {
        Ok(Self { memory: stream.upload(&[value])? })
    }

    /// The value. Waits for the stream.
    ///
    /// # Errors
    /// As [`DeviceSlice::copy_to_host`].
    pub fn get(&self, stream: &Stream) -> Result<T, Error> {
        let mut host = [T::zeroed()];
        self.memory.copy_to_host(stream, &mut host)?;
        Ok(host[0])
    }

    /// The value as a slice of one element, for use on the device. Does not wait.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.memory.as_slice()
    }

    /// The value as a slice of one element, for writing on the device. Does not wait.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        self.memory.as_mut_slice()
    }
}
