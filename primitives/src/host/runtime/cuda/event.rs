//! Events in the order of a GPU stream.

use super::device::call;
use super::driver::Status;
use super::stream::CudaStream;
use super::sys::CUevent;
use crate::host::error::Error;
use core::ffi::c_uint;
use core::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

const WITH_TIME: c_uint = 0;
const WITHOUT_TIME: c_uint = 2;

/// A recorded event.
pub(in crate::host::runtime) struct CudaEvent {
    stream: Arc<CudaStream>,
    raw: CUevent,
}

// SAFETY: the handle may be used from any thread.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Records an event at the stream's current position, with the time when the stream reaches it.
    pub(in crate::host::runtime) fn record(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        Self::record_with(stream, WITH_TIME)
    }

    /// Records an event without a time, which is cheaper.
    pub(in crate::host::runtime) fn record_untimed(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        Self::record_with(stream, WITHOUT_TIME)
    }

    fn record_with(stream: &Arc<CudaStream>, flags: c_uint) -> Result<Self, Error> {
        stream.device().enter()?;
        let mut raw: CUevent = null_mut();
        // SAFETY: the pointer is valid.
        unsafe { call!(stream, cuEventCreate(&mut raw, flags)) }?;
        let event = Self { stream: Arc::clone(stream), raw };
        // SAFETY: event and stream are alive and belong to the same context.
        unsafe { call!(stream, cuEventRecord(raw, stream.handle())) }?;
        Ok(event)
    }

    /// Returns whether the event was recorded on this stream.
    pub(in crate::host::runtime) fn is_of(&self, stream: &Arc<CudaStream>) -> bool {
        Arc::ptr_eq(&self.stream, stream)
    }

    pub(in crate::host::runtime) fn handle(&self) -> CUevent {
        self.raw
    }

    /// Waits until the stream has passed the event.
    pub(in crate::host::runtime) fn synchronize(&self) -> Result<(), Error> {
        self.stream.device().enter()?;
        // SAFETY: the event lives as long as `self`.
        unsafe { call!(self.stream, cuEventSynchronize(self.raw)) }
    }

    /// Returns whether the stream has passed the event.
    pub(in crate::host::runtime) fn is_done(&self) -> Result<bool, Error> {
        self.stream.device().enter()?;
        // SAFETY: the event lives as long as `self`.
        let status = unsafe { (self.stream.driver().cuEventQuery)(self.raw) };
        if status == Status::NOT_READY {
            return Ok(false);
        }
        self.stream.check("cuEventQuery", status).map(|()| true)
    }

    /// Returns the time from one event to the other. Both have been passed, both have times, and they belong to one
    /// device.
    pub(in crate::host::runtime) fn elapsed(&self, since: &Self) -> Result<Duration, Error> {
        self.stream.device().enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive, the pointer is valid.
        unsafe { call!(self.stream, cuEventElapsedTime(&mut milliseconds, since.raw, self.raw)) }?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.stream.device().try_enter() {
            // SAFETY: nothing else has the handle; the driver keeps what streams still wait for.
            let _ = unsafe { (self.stream.driver().cuEventDestroy)(self.raw) };
        }
    }
}
