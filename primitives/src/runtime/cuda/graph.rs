//! Work of a GPU that is recorded once and launched again and again.

use super::device::{CudaDevice, call};
use super::stream::CudaStream;
use super::sys::{CUgraph, CUgraphExec, CUstreamCaptureMode};
use crate::runtime::device::lock;
use crate::runtime::error::Error;
use core::ptr::null_mut;
use std::sync::Arc;

/// The other modes refuse calls that might wait for a stream that records. Here nothing waits for it, and a kernel may be
/// loaded by the very launch that is recorded.
const MODE: CUstreamCaptureMode = CUstreamCaptureMode::RELAXED;

/// A stream that records what it is given instead of doing it. Dropping this ends that, too.
pub(in crate::runtime) struct CudaCapture {
    stream: Arc<CudaStream>,
    ended: bool,
}

impl CudaCapture {
    pub(in crate::runtime) fn begin(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        stream.device().enter()?;
        let mut recordings = lock(stream.device().recordings());
        // SAFETY: the stream lives as long as `self`.
        unsafe { call!(stream, cuStreamBeginCapture(stream.handle(), MODE)) }?;
        *recordings += 1;
        Ok(Self { stream: Arc::clone(stream), ended: false })
    }

    /// Ends the recording: what was recorded can be launched from now on.
    pub(in crate::runtime) fn end(mut self) -> Result<CudaGraph, Error> {
        let drawing = self.stop()?;
        let mut raw: CUgraphExec = null_mut();
        // SAFETY: the pointer is valid; the drawing lives until the end of this function, which is all that is needed.
        unsafe { call!(self.stream, cuGraphInstantiateWithFlags(&mut raw, drawing.raw, 0)) }?;
        Ok(CudaGraph { device: self.stream.device(), raw, kernels: self.stream.recent_kernels() })
    }

    fn stop(&mut self) -> Result<Drawing, Error> {
        self.ended = true;
        let mut recordings = lock(self.stream.device().recordings());
        *recordings -= 1; // and nobody waits for the device before the driver knows it, too
        self.stream.device().enter()?;
        let mut drawing = Drawing { device: self.stream.device(), raw: null_mut() };
        // SAFETY: the pointer is valid, and the recording has not been ended yet. In this mode any thread may do it.
        unsafe { call!(self.stream, cuStreamEndCapture(self.stream.handle(), &mut drawing.raw)) }?;
        Ok(drawing)
    }
}

impl Drop for CudaCapture {
    fn drop(&mut self) {
        if !self.ended {
            // What was recorded is of no use any more, nor is the news that it failed.
            let _ = self.stop();
        }
    }
}

/// What was recorded, before the driver makes something of it that can be launched.
struct Drawing {
    device: &'static CudaDevice,
    /// Null if there is none.
    raw: CUgraph,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        if !self.raw.is_null() && self.device.try_enter() {
            // SAFETY: nobody else has the handle, and what was made of it stands for itself.
            let _ = unsafe { (self.device.driver().cuGraphDestroy)(self.raw) };
        }
    }
}

/// Recorded work that can be launched. The driver lets one launch of it begin when the one before has ended.
pub(in crate::runtime) struct CudaGraph {
    device: &'static CudaDevice,
    raw: CUgraphExec,
    /// The latest kernels of the recording, for the message about a crash.
    kernels: Vec<&'static str>,
}

// SAFETY: a handle that any thread may use; launching asks for `&mut`, so one at a time does.
unsafe impl Send for CudaGraph {}
// SAFETY: nothing can be done with a shared reference.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// Puts the work onto a stream of the same device.
    ///
    /// # Safety
    /// The contracts of all recorded launches and copies hold, with the stream in the place of the one that recorded.
    pub(in crate::runtime) unsafe fn launch(&mut self, stream: &CudaStream) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: the caller's promise.
        unsafe { call!(stream, cuGraphLaunch(self.raw, stream.handle())) }?;
        stream.note_graph(&self.kernels);
        stream.wait_if_asked()
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.device.try_enter() {
            // SAFETY: nobody else has the handle. A launch that is under way goes on to its end.
            let _ = unsafe { (self.device.driver().cuGraphExecDestroy)(self.raw) };
        }
    }
}
