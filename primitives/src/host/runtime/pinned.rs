//! Page-locked host memory, and copies that run while the program continues.

use super::cpu::Landing;
use super::device::{Backend, Device};
use super::event::Event;
use super::host_memory::host_memory;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::error::{Error, expect_len};
use bytemuck::Pod;
use core::fmt;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr::{NonNull, slice_from_raw_parts_mut};

/// Page-locked host memory, created by [`Device::pinned`]. A GPU copies from and to it at full speed, while the program
/// continues. It derefs to a slice. For the CPU device it is ordinary memory.
///
/// Page-locked memory is not available to the rest of the system, and allocating and freeing it is slow: create few
/// buffers and reuse them.
///
/// Elements are aligned to at most 256 bytes, like those of device memory. Others do not compile:
///
/// ```compile_fail,E0080
/// # use gpu_primitives::{Device, Error};
/// # use bytemuck::{Pod, Zeroable};
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[repr(C, align(4096))]
/// struct Page([u8; 4096]);
///
/// let pages = Device::cpu().pinned::<Page>(3)?; // the driver promises no such alignment
/// # Ok::<(), Error>(())
/// ```
///
/// ```
/// use gpu_primitives::{Device, Error};
///
/// let device = Device::default()?;
/// let stream = device.stream()?;
/// let vector = stream.upload(&[1u32, 2, 3])?;
///
/// let pending = stream.download_pinned(&vector, device.pinned(3)?)?;
/// // … other work …
/// let elements = pending.wait()?;
/// assert_eq!(*elements, [1, 2, 3]);
/// # Ok::<(), Error>(())
/// ```
pub struct PinnedVec<T: Pod> {
    address: NonNull<T>,
    len: usize,
    device: Device,
}

// SAFETY: it owns its elements, like a `Box<[T]>`.
unsafe impl<T: Pod + Send> Send for PinnedVec<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for PinnedVec<T> {}

impl<T: Pod> PinnedVec<T> {
    pub(super) fn new(device: &Device, len: usize) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= 256, "page-locked memory is aligned to 256 bytes, like device memory") };
        let bytes = device.bytes_of::<T>(len)?;
        let address = match device.backend() {
            Backend::Cpu(_) => {
                let mut elements = Vec::new();
                elements.try_reserve_exact(len).map_err(|_| {
                    let (free, total) = host_memory();
                    Error::OutOfMemory { requested: bytes, free, total }
                })?;
                elements.resize(len, T::zeroed());
                NonNull::from(Box::leak(elements.into_boxed_slice())).cast()
            }
            Backend::Planned(_) => return Err(Error::OnlyPlanned { what: "page-locked memory" }),
            Backend::Cuda(_) if bytes == 0 => NonNull::dangling(),
            Backend::Cuda(gpu) => {
                let address = gpu.allocate_pinned(bytes)?;
                let (at, alignment) = (address.addr().get(), align_of::<T>());
                if !at.is_multiple_of(alignment) {
                    // SAFETY: allocated above, and nothing uses it.
                    unsafe { gpu.free_pinned(address) };
                    return Err(Error::Misaligned { what: "the driver's page-locked memory", address: at, alignment });
                }
                address.cast()
            }
        };
        Ok(Self { address, len, device: device.clone() })
    }

    /// Returns the device it was created for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl<T: Pod> Drop for PinnedVec<T> {
    fn drop(&mut self) {
        match self.device.backend() {
            Backend::Cpu(_) => {
                let elements = slice_from_raw_parts_mut(self.address.as_ptr(), self.len);
                // SAFETY: created from a box of this many elements.
                drop(unsafe { Box::from_raw(elements) });
            }
            Backend::Cuda(_) if self.len * size_of::<T>() == 0 => {}
            Backend::Planned(_) => {}
            // SAFETY: allocated by this device; a running copy would own the vector.
            Backend::Cuda(gpu) => unsafe { gpu.free_pinned(self.address.cast()) },
        }
    }
}

impl<T: Pod> Deref for PinnedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: it has this many elements, all written when it was created.
        unsafe { core::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for PinnedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for PinnedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A host buffer in use by a copy. [`wait`](Self::wait) returns it. Dropping the value waits too.
#[must_use = "dropping it waits for the copy and frees the buffer"]
pub struct Pending<B> {
    buffer: Option<B>,
    /// The copy, if it was queued and has an error of its own.
    copy: Option<Landing>,
    done: Event,
}

impl<B> Pending<B> {
    /// Waits for the copy and returns the buffer.
    ///
    /// # Errors
    /// [`Error::UninitialisedRead`] and [`Error::KernelFault`] on the checked CPU device; [`Error::KernelCrashed`] and other
    /// driver errors. The buffer is lost in that case.
    pub fn wait(mut self) -> Result<B, Error> {
        match self.copy.take() {
            Some(copy) => copy.wait()?,
            None => self.done.synchronize()?,
        }
        Ok(self.buffer.take().expect("only `wait`, which takes the value, takes the buffer"))
    }

    /// Returns whether the copy is done, so that [`wait`](Self::wait) would return immediately.
    ///
    /// # Errors
    /// [`Error::KernelCrashed`] and other driver errors.
    pub fn is_done(&self) -> Result<bool, Error> {
        self.done.is_done()
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        if self.done.synchronize().is_err() {
            // The copy may still be running. A leak is harmless; a write to freed memory is not.
            mem::forget(buffer);
        }
    }
}

impl<B> fmt::Debug for Pending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("done", &self.done).finish_non_exhaustive()
    }
}

/// Copies that run while the program continues.
impl Stream {
    /// Copies device memory into the buffer. Does not wait; [`Pending::wait`] returns the buffer.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_host`].
    pub fn download_pinned<'a, T: Pod>(
        &self,
        from: impl Into<DeviceSlice<'a, T>>,
        mut into: PinnedVec<T>,
    ) -> Result<Pending<PinnedVec<T>>, Error> {
        let from = from.into();
        expect_len("the page-locked buffer", from.len(), into.len())?;
        let from = from.raw_view(self)?.as_ptr().cast();
        let (to, bytes) = (into.as_mut_ptr().cast(), size_of_val(&*into));
        // SAFETY: both have that many elements, and the buffer is kept until the copy is done.
        let copy = unsafe { self.queue().download_later(from, to, bytes, size_of::<T>())? };
        self.pending(into, copy)
    }

    /// Copies the buffer into device memory. Does not wait; [`Pending::wait`] returns the buffer.
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_host`].
    pub fn upload_pinned<'a, T: Pod>(
        &self,
        from: PinnedVec<T>,
        into: impl Into<DeviceSliceMut<'a, T>>,
    ) -> Result<Pending<PinnedVec<T>>, Error> {
        let mut into = into.into();
        expect_len("the page-locked buffer", into.len(), from.len())?;
        let to = into.raw_view_mut(self)?.as_const().as_ptr().cast_mut();
        // SAFETY: both have that many elements, and the buffer is kept until the copy is done.
        unsafe { self.queue().upload_later(from.as_ptr().cast(), to.cast(), size_of_val(&*from))? };
        self.pending(from, None)
    }

    /// Keeps the buffer until the stream has passed all work that is on it now.
    fn pending<B>(&self, buffer: B, copy: Option<Landing>) -> Result<Pending<B>, Error> {
        match self.record() {
            Ok(done) => Ok(Pending { buffer: Some(buffer), copy, done }),
            Err(error) => {
                if self.synchronize().is_err() {
                    mem::forget(buffer);
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let device = Device::cpu_checked();
        let stream = device.stream().unwrap();
        let mut buffer = device.pinned::<u32>(4).unwrap();
        assert_eq!(*buffer, [0; 4]);
        buffer.copy_from_slice(&[1, 2, 3, 4]);
        let mut vector = stream.uninit::<u32>(6).unwrap();
        let pending = stream.upload_pinned(buffer, vector.slice_mut(1..5).unwrap()).unwrap();
        assert!(pending.is_done().unwrap());
        let buffer = pending.wait().unwrap();
        assert!(matches!(
            stream.download_pinned(vector.slice(..4).unwrap(), buffer),
            Err(Error::UninitialisedRead { index: 0 })
        ));
        let buffer = device.pinned::<u32>(3).unwrap();
        let buffer = stream.download_pinned(vector.slice(2..5).unwrap(), buffer).unwrap().wait().unwrap();
        assert_eq!(*buffer, [2, 3, 4]);
        drop(stream.download_pinned(vector.slice(2..5).unwrap(), buffer).unwrap());
    }

    #[test]
    fn lengths_must_agree() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let mut vector = stream.zeroed::<u8>(3).unwrap();
        let mismatch = |error| matches!(error, Error::LengthMismatch { expected: 3, found: 2, .. });
        assert!(mismatch(stream.download_pinned(&vector, device.pinned(2).unwrap()).unwrap_err()));
        assert!(mismatch(stream.upload_pinned(device.pinned(2).unwrap(), &mut vector).unwrap_err()));
    }

    #[test]
    fn nothing_is_no_trouble() {
        let device = Device::cpu();
        assert!(device.pinned::<u64>(0).unwrap().is_empty());
        assert_eq!(device.pinned::<()>(3).unwrap().len(), 3);
        assert!(matches!(device.pinned::<u64>(usize::MAX), Err(Error::OutOfMemory { .. })));
    }
}
