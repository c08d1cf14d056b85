//! GPU work that is recorded once and launched many times.

use super::device::{CudaDevice, call};
use super::stream::CudaStream;
use super::sys::{CUgraph, CUgraphExec, CUstreamCaptureMode};
use crate::host::error::Error;
use crate::host::runtime::device::lock;
use core::ptr::null_mut;
use std::sync::Arc;

/// The other modes reject calls that might wait for a recording stream. Here nothing waits for it, and the launch that
/// is being recorded may itself load a kernel.
const MODE: CUstreamCaptureMode = CUstreamCaptureMode::RELAXED;

/// A stream that records work instead of executing it. Dropping this value ends the recording too.
pub(in crate::host::runtime) struct CudaCapture {
    stream: Arc<CudaStream>,
    ended: bool,
}

impl CudaCapture {
    pub(in crate::host::runtime) fn begin(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        stream.device().enter()?;
        let mut recordings = lock(stream.device().recordings());
        // SAFETY: the stream lives as long as `self`.
        unsafe { call!(stream, cuStreamBeginCapture(stream.handle(), MODE)) }?;
        *recordings += 1;
        Ok(Self { stream: Arc::clone(stream), ended: false })
    }

    /// Ends the recording and makes the recorded work launchable.
    pub(in crate::host::runtime) fn end(mut self) -> Result<CudaGraph, Error> {
        let drawing = self.stop()?;
        let mut raw: CUgraphExec = null_mut();
        // SAFETY: the pointer is valid; the drawing lives until the end of this function, which is long enough.
        unsafe { call!(self.stream, cuGraphInstantiateWithFlags(&mut raw, drawing.raw, 0)) }?;
        Ok(CudaGraph { device: Arc::clone(self.stream.device()), raw, kernels: self.stream.recent_kernels() })
    }

    fn stop(&mut self) -> Result<Drawing, Error> {
        self.ended = true;
        let mut recordings = lock(self.stream.device().recordings());
        *recordings -= 1; // and nobody waits for the device before the driver knows it, too
        self.stream.device().enter()?;
        let mut drawing = Drawing { device: Arc::clone(self.stream.device()), raw: null_mut() };
        // SAFETY: the pointer is valid, and the recording has not been ended yet. In this mode any thread may end it.
        unsafe { call!(self.stream, cuStreamEndCapture(self.stream.handle(), &mut drawing.raw)) }?;
        Ok(drawing)
    }
}

impl Drop for CudaCapture {
    fn drop(&mut self) {
        if !self.ended {
            // Neither the recorded work nor a failure matters any more.
            let _ = self.stop();
        }
    }
}

/// The recorded work, before the driver makes it launchable.
struct Drawing {
    device: Arc<CudaDevice>,
    /// Null if there is none.
    raw: CUgraph,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        if !self.raw.is_null() && self.device.try_enter() {
            // SAFETY: nothing else has the handle, and the graph made from it is independent.
            let _ = unsafe { (self.device.driver().cuGraphDestroy)(self.raw) };
        }
    }
}

/// Launchable recorded work. The driver starts a launch only when the previous one has ended.
pub(in crate::host::runtime) struct CudaGraph {
    device: Arc<CudaDevice>,
    raw: CUgraphExec,
    /// The most recent kernels of the recording, for crash messages.
    kernels: Vec<&'static str>,
}

// SAFETY: any thread may use the handle; launching takes `&mut`, so one thread at a time does.
unsafe impl Send for CudaGraph {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// Puts the work on a stream of the same device.
    ///
    /// # Safety
    /// The contracts of all recorded launches and copies hold, with this stream in place of the one that recorded.
    pub(in crate::host::runtime) unsafe fn launch(&mut self, stream: &CudaStream) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        unsafe { call!(stream, cuGraphLaunch(self.raw, stream.handle())) }?;
        stream.note_graph(&self.kernels);
        stream.wait_if_asked()
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if self.device.try_enter() {
            // SAFETY: nothing else has the handle. A running launch continues to its end.
            let _ = unsafe { (self.device.driver().cuGraphExecDestroy)(self.raw) };
        }
    }
}
