//! Events: positions in the order of a stream.

use super::cpu::CpuMark;
use super::cuda::CudaEvent;
use super::device::Device;
use super::foreign::expect_same_device;
use crate::host::error::Error;
use core::ffi::c_void;
use core::fmt;
use std::time::Duration;

/// A position in the order of a stream, recorded by [`Stream::record`](crate::Stream::record). Another stream can wait
/// for it ([`Stream::wait`](crate::Stream::wait)), and two events measure time.
///
/// ```
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let start = stream.record()?;
/// let zeros = stream.zeroed::<u32>(1000)?;
/// let end = stream.record()?;
/// println!("{:?}", end.elapsed(&start)?);
/// # Ok::<(), Error>(())
/// ```
pub struct Event {
    pub(super) device: Device,
    pub(super) mark: Mark,
}

pub(super) enum Mark {
    Cpu(CpuMark),
    Cuda(CudaEvent),
}

impl Event {
    /// Waits until the stream has passed the event.
    ///
    /// # Errors
    /// [`Error::KernelCrashed`] and other driver errors.
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.mark {
            Mark::Cpu(mark) => mark.finish(),
            Mark::Cuda(event) => event.synchronize(),
        }
    }

    /// Returns whether the stream has passed the event. Does not wait.
    ///
    /// # Errors
    /// Same as [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool, Error> {
        match &self.mark {
            Mark::Cpu(mark) => mark.is_passed(),
            Mark::Cuda(event) => event.is_done(),
        }
    }

    /// Returns the driver's handle (a `CUevent` or `cudaEvent_t`), so that another library can wait for the event; `None` on the CPU. The
    /// handle is valid as long as the event. The other way round, see [`Stream::wait_cuda_event`](crate::Stream::wait_cuda_event).
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    ///
    /// let event = Device::cpu().stream()?.record()?;
    /// assert_eq!(event.cuda_event(), None);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn cuda_event(&self) -> Option<*mut c_void> {
        match &self.mark {
            Mark::Cuda(event) => Some(event.handle().cast()),
            Mark::Cpu(_) => None,
        }
    }

    /// Returns the time on the device from `since` to this event; zero if this event came first. Waits for both.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if the events belong to two devices; the errors of [`synchronize`](Self::synchronize).
    pub fn elapsed(&self, since: &Self) -> Result<Duration, Error> {
        expect_same_device("the earlier event", &since.device, &self.device)?;
        since.synchronize()?;
        self.synchronize()?;
        match (&self.mark, &since.mark) {
            (Mark::Cpu(end), Mark::Cpu(start)) => {
                let times = end.time().zip(start.time());
                Ok(times.map_or(Duration::ZERO, |(end, start)| end.saturating_duration_since(start)))
            }
            (Mark::Cuda(end), Mark::Cuda(start)) => end.elapsed(start),
            _ => unreachable!("both belong to the same device"),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("device", &self.device).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_cpu_are_passed_when_made() {
        let stream = Device::cpu().stream().unwrap();
        let start = stream.record().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let end = stream.record().unwrap();
        assert!(start.is_done().unwrap());
        end.synchronize().unwrap();
        assert!(end.elapsed(&start).unwrap() >= Duration::from_millis(2));
        assert_eq!(start.elapsed(&end).unwrap(), Duration::ZERO);
        stream.wait(&end).unwrap();
        assert!(end.cuda_event().is_none());
        // SAFETY: a stream of the CPU does not look at the handle.
        let not_cuda = unsafe { stream.wait_cuda_event(core::ptr::null_mut()) };
        assert!(matches!(not_cuda, Err(Error::NotCuda { .. })));
    }
}
