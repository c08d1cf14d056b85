//! A device that only plans: it has neither memory nor kernels, and counts what would be allocated.

#[cfg(feature = "dlpack")]
use super::device::Backend;
use super::device::{Device, Limits, MAX_BLOCKS};
use crate::host::device_kind::DeviceKind;
use crate::host::error::Error;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What a device that only plans stands for.
#[derive(Debug)]
pub(super) struct PlannedDevice {
    pub limits: Limits,
    /// The first address that nothing was given.
    next: AtomicUsize,
}

/// All device memory is aligned to this.
const ALIGNMENT: usize = 256;

impl PlannedDevice {
    pub fn new(limits: Limits) -> Self {
        Self { limits, next: AtomicUsize::new(ALIGNMENT) }
    }

    /// Returns the kind of device that it stands for: host code decides by it.
    pub fn kind(&self) -> DeviceKind {
        match self.limits.compute_capability {
            Some(_) => DeviceKind::Cuda { ordinal: 0 },
            None => DeviceKind::Cpu,
        }
    }

    /// Returns an address that no other memory of the device has. Nothing can be read or written there.
    pub fn allocate(&self, bytes: usize) -> Option<NonNull<u8>> {
        let room = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let most = isize::MAX as usize;
        let next = |at: usize| at.checked_add(room).filter(|&end| end <= most);
        let address = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        NonNull::new(core::ptr::without_provenance_mut(address))
    }
}

impl Device {
    /// Creates a device that only plans, for a device with these limits. Memory is counted and not allocated, and launches and
    /// copies do nothing. So it tells how much memory a call takes, on any machine, for inputs of any length: see
    /// [`memory_for`](Self::memory_for).
    ///
    /// What would have to wait for a result is [`Error::OnlyPlanned`], and so are graphs and events.
    #[must_use]
    pub fn planned(limits: Limits) -> Self {
        Self::of_plan(PlannedDevice::new(limits))
    }

    /// Checks that the device has memory; the error calls what needs it `what`.
    #[cfg(feature = "dlpack")]
    pub(super) fn expect_memory(&self, what: &'static str) -> Result<(), Error> {
        match self.backend() {
            Backend::Planned(_) => Err(Error::OnlyPlanned { what }),
            _ => Ok(()),
        }
    }

    /// Returns how much more memory of this device was in use at once while `work` was done than before: what it allocated for
    /// results and for a while. The memory that a stream keeps for the look-back of its kernels is part of it, if this is the
    /// first work on the stream that needs as much.
    ///
    /// This is exact if nothing else uses the device meanwhile. It resets [`peak_memory`](Self::peak_memory).
    ///
    /// ```
    /// use gpu_primitives::sort::{self, Options};
    /// use gpu_primitives::{Device, Error, Limits};
    ///
    /// // An H200, which need not be there.
    /// let stream = Device::planned(Limits::of_gpu((9, 0), 132)).stream()?;
    /// let (keys, mut sorted) = (stream.uninit::<u32>(1 << 30)?, stream.uninit::<u32>(1 << 30)?);
    /// let bytes = stream.device().memory_for(|| sort::keys(&stream, &keys, &mut sorted, Options::new()))?;
    /// assert!(bytes > 4 << 30); // a second buffer, and the words of the look-back
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`.
    pub fn memory_for<R>(&self, work: impl FnOnce() -> Result<R, Error>) -> Result<usize, Error> {
        let before = self.memory_used();
        self.reset_peak_memory();
        let result = work()?;
        let bytes = self.peak_memory().saturating_sub(before);
        drop(result);
        Ok(bytes)
    }
}

impl Limits {
    /// Returns the limits of a GPU of this compute capability, with so many multiprocessors, at least one: for a device that
    /// [only plans](Device::planned). For a GPU that is there, take its [own](Device::limits).
    #[must_use]
    pub const fn of_gpu(compute_capability: (u32, u32), multiprocessors: u32) -> Self {
        let shared_bytes_per_block = match compute_capability {
            (8, 0 | 7) => 163,
            (8, _) | (12, _) => 99,
            (9.., _) => 227,
            (7, 5) => 64,
            _ => 96,
        } * 1024;
        let compute_capability = Some(compute_capability);
        let multiprocessors = if multiprocessors == 0 { 1 } else { multiprocessors };
        Self { max_blocks: MAX_BLOCKS, shared_bytes_per_block, multiprocessors, compute_capability }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allocated_and_nothing_can_be_read() {
        let device = Device::planned(Limits::of_gpu((9, 0), 132));
        let stream = device.stream().unwrap();
        // More than any machine has.
        let huge = stream.zeroed::<u64>(1 << 50).unwrap();
        assert_eq!((device.memory_used(), huge.len()), (1 << 53, 1 << 50));
        assert!(matches!(huge.slice(..4).unwrap().to_vec(&stream), Err(Error::OnlyPlanned { .. })));
        assert!(matches!(stream.record(), Err(Error::OnlyPlanned { .. })));
        assert!(matches!(stream.capture(|_| Ok(())), Err(Error::OnlyPlanned { .. })));
        assert!(matches!(device.pinned::<u8>(4), Err(Error::OnlyPlanned { .. })));
        drop(huge);
        stream.synchronize().unwrap();
        assert_eq!(device.memory_used(), 0);
        let all = stream.uninit::<u8>(isize::MAX as usize);
        assert!(matches!(all, Err(Error::OutOfMemory { .. })));
    }
}
