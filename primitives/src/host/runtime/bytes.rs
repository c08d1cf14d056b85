//! Bytes on a stream's device, in stream order: allocated, freed, zeroed, copied.

use super::counters::Counted;
use super::cpu::{CpuLane, Landing};
use super::device::Backend;
use super::host_blocks::Place;
use super::host_memory::host_memory;
use super::lanes::{LaneKind, Timeline};
use super::left;
use super::step::Step;
use super::stream::Queue;
use crate::host::error::Error;
use core::ptr::NonNull;
use std::backtrace::Backtrace;
use std::sync::Arc;

/// Operations on device bytes, in stream order. An operation on zero bytes does nothing.
impl Queue {
    /// Allocates `bytes` bytes; at least one.
    #[track_caller]
    pub(super) fn allocate(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        debug_assert_ne!(bytes, 0);
        self.lane.kind.expect_host()?;
        self.lane.records_here()?;
        if let Some(recording) = &mut *self.recording() {
            return recording.allocate(bytes);
        }
        let out_of_memory = || self.out_of_memory(bytes);
        if self.is_made_to_fail() {
            return Err(out_of_memory());
        }
        let address = match &self.lane.kind {
            LaneKind::Cpu(lane) => {
                lane.device().allocate(bytes, Place::Device).ok().and_then(NonNull::new).ok_or_else(out_of_memory)?
            }
            LaneKind::Cuda(stream) => stream.allocate(bytes)?,
            LaneKind::Planned(plan) => plan.allocate(bytes).ok_or_else(out_of_memory)?,
        };
        self.device.count_allocation(bytes);
        Ok(address)
    }

    /// Allocates `bytes` bytes of page-locked host memory, at least one, for kernels: see [`host_blocks`](super::host_blocks).
    #[track_caller]
    pub(super) fn allocate_on_host(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        debug_assert_ne!(bytes, 0);
        self.lane.kind.expect_host()?;
        self.lane.records_here()?;
        // A graph would have to keep it, and to free it in an order that the host follows.
        self.refuse_while_recording("an allocation of host memory")?;
        let out_of_memory = || {
            let (free, total) = host_memory();
            Error::OutOfMemory { requested: bytes, free, total }
        };
        if self.is_made_to_fail() {
            return Err(out_of_memory());
        }
        let blocks = self.device.host_blocks();
        let (address, bytes) = match (&self.lane.kind, self.device.backend()) {
            (LaneKind::Cpu(lane), _) => {
                let address = lane.device().allocate(bytes, Place::Host).ok().and_then(NonNull::new);
                (address.ok_or_else(out_of_memory)?, bytes)
            }
            (LaneKind::Cuda(stream), Backend::Cuda(gpu)) => blocks.allocate(gpu, stream, bytes)?,
            (LaneKind::Planned(plan), _) => (plan.allocate(bytes).ok_or_else(out_of_memory)?, bytes),
            (LaneKind::Cuda(_), _) => unreachable!("a stream of a GPU belongs to one"),
        };
        blocks.add(address, bytes);
        Ok(address)
    }

    /// Frees a block of host memory that is no longer in use.
    ///
    /// # Safety
    /// The block is one of [`allocate_on_host`](Self::allocate_on_host) on a stream of this device, with these bytes. All uses of it come
    /// earlier in the stream's order.
    unsafe fn free_on_host(&self, address: NonNull<u8>, bytes: usize) {
        match (&self.lane.kind, self.device.backend()) {
            // SAFETY: guaranteed by the caller.
            (LaneKind::Cpu(lane), _) => unsafe { Self::submit_free(lane, address, bytes, Place::Host) },
            (LaneKind::Cuda(stream), Backend::Cuda(gpu)) => {
                // SAFETY: guaranteed by the caller.
                unsafe { self.device.host_blocks().keep(gpu, stream, address, bytes) };
            }
            _ => {}
        }
    }

    /// Frees memory of the CPU device in the order of a stream.
    ///
    /// # Safety
    /// Same as [`free`](Self::free).
    unsafe fn submit_free(lane: &CpuLane, address: NonNull<u8>, bytes: usize, place: Place) {
        let by = lane.is_queued().then(|| Arc::new(Backtrace::force_capture()));
        // SAFETY: guaranteed by the caller. Freeing cannot fail; errors of other work go to the call that waits for that work.
        let _ = unsafe { lane.submit(Step::Free { address: address.as_ptr(), bytes, place, by }) };
    }

    /// Returns the error for memory that is not there.
    pub(super) fn out_of_memory(&self, requested: usize) -> Error {
        let (free, total) = self.device.memory_free().unwrap_or((0, 0));
        Error::OutOfMemory { requested, free, total }
    }

    /// Frees memory that [`allocate`](Self::allocate) or [`allocate_on_host`](Self::allocate_on_host) returned on a stream of the same device.
    ///
    /// # Safety
    /// All uses of the memory come earlier in the stream's order.
    pub(super) unsafe fn free(&self, address: NonNull<u8>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Some(recording) = &mut *self.recording() {
            // SAFETY: guaranteed by the caller.
            return unsafe { recording.free(address, bytes) };
        }
        if let Some(block) = self.device.host_blocks().remove(address) {
            // SAFETY: guaranteed by the caller; the block has these bytes.
            return unsafe { self.free_on_host(address, block) };
        }
        match &self.lane.kind {
            // SAFETY: guaranteed by the caller.
            LaneKind::Cpu(lane) => unsafe { Self::submit_free(lane, address, bytes, Place::Device) },
            // SAFETY: guaranteed by the caller.
            LaneKind::Cuda(stream) => unsafe { stream.free(address) },
            LaneKind::Planned(_) => {}
        }
        self.device.count_free(bytes);
    }

    /// Zeroes bytes.
    ///
    /// # Safety
    /// The bytes belong to the device and may be written in the stream's order.
    pub(super) unsafe fn zero(&self, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: guaranteed by the caller.
            LaneKind::Cpu(lane) => unsafe { self.submit_or_note(lane, Step::Zero { to, bytes })? },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.zero(to, bytes)? },
            LaneKind::Planned(_) => {}
        }
        self.count(Counted::Zeroed(bytes));
        Ok(())
    }

    /// Zeroes bytes that were just [allocated](Self::allocate), and that nothing has used. On the CPU device they are zero.
    ///
    /// # Safety
    /// The requirements of [`zero`](Self::zero).
    pub(super) unsafe fn zero_new(&self, to: *mut u8, bytes: usize) -> Result<(), Error> {
        match &self.lane.kind {
            // The checked device has to know. In a graph, each launch zeroes them again.
            LaneKind::Cpu(lane) if !lane.is_queued() && !self.is_recording() => {
                self.count(Counted::Zeroed(bytes));
                Ok(())
            }
            // SAFETY: guaranteed by the caller.
            _ => unsafe { self.zero(to, bytes) },
        }
    }

    /// Copies from the host. The host memory may be reused when this returns.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero). The host memory is valid.
    pub(super) unsafe fn upload(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        let data = unsafe { core::slice::from_raw_parts(from, bytes) };
        let kept = self.recording().as_mut().map(|recording| recording.keep(data)).transpose()?;
        match (&self.lane.kind, kept) {
            // SAFETY: same as above; the kept copy is memory of the device.
            (_, Some(kept)) => unsafe { self.copy(kept, to, bytes)? },
            (LaneKind::Cuda(stream), None) if self.device.host_blocks().holds(to) => {
                // From host to host, without the link.
                stream.synchronize()?;
                // SAFETY: as above; no work uses the memory now.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
            }
            // SAFETY: as above.
            (LaneKind::Cuda(stream), None) => unsafe { stream.upload(from, to, bytes)? },
            (LaneKind::Planned(_), None) => {}
            // SAFETY: as above.
            (LaneKind::Cpu(lane), None) if lane.is_queued() => unsafe {
                lane.submit(Step::Upload { data: data.into(), to })?;
            },
            // SAFETY: same as above; the copy is done when this returns.
            (LaneKind::Cpu(lane), None) => unsafe { lane.submit(Step::UploadLater { from, to, bytes })? },
        }
        self.count(Counted::Uploaded(bytes));
        Ok(())
    }

    /// Copies from the host.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero). The host memory is valid and unchanged until the stream has passed the copy.
    pub(super) unsafe fn upload_later(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        self.refuse_while_recording("a copy of page-locked memory")?;
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: guaranteed by the caller.
            LaneKind::Cpu(lane) => unsafe { lane.submit(Step::UploadLater { from, to, bytes })? },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.upload_later(from, to, bytes)? },
            LaneKind::Planned(_) => {}
        }
        self.count(Counted::Uploaded(bytes));
        Ok(())
    }

    /// Copies elements of `element_bytes` bytes each to the host. Pass the result to [`wait_for`](Self::wait_for), which says
    /// how the copy went.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero), for reading. The host memory is valid, and unused until the stream has passed the
    /// copy.
    pub(super) unsafe fn download_later(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        element_bytes: usize,
    ) -> Result<Option<Landing>, Error> {
        self.refuse_while_recording("reading back")?;
        if bytes == 0 {
            return Ok(None);
        }
        let landing = match &self.lane.kind {
            // SAFETY: guaranteed by the caller.
            LaneKind::Cpu(lane) => unsafe { lane.submit_download(Step::Download { from, to, bytes, element_bytes })? },
            LaneKind::Cuda(stream) if self.device.host_blocks().holds(from) => {
                // From host to host, without the link.
                stream.synchronize()?;
                // SAFETY: as above; work that has written the memory is done.
                unsafe { to.copy_from_nonoverlapping(from, bytes) };
                None
            }
            LaneKind::Cuda(stream) => {
                // SAFETY: as above.
                unsafe { stream.download_later(from, to, bytes)? };
                None
            }
            LaneKind::Planned(_) => return Err(Error::OnlyPlanned { what: "reading back" }),
        };
        self.count(Counted::Downloaded(bytes));
        Ok(landing)
    }

    /// Waits for a copy to the host, and returns its own error.
    pub(super) fn wait_for(&self, copy: Option<Landing>) -> Result<(), Error> {
        match copy {
            Some(landing) => {
                left::drop_left();
                landing.wait()
            }
            None => self.synchronize(),
        }
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero), for both ranges. They do not overlap.
    pub(super) unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: guaranteed by the caller.
            LaneKind::Cpu(lane) => unsafe { self.submit_or_note(lane, Step::Copy { from, to, bytes })? },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.copy(from, to, bytes)? },
            LaneKind::Planned(_) => {}
        }
        self.count(Counted::Copied(bytes));
        Ok(())
    }

    /// Submits a step to the CPU device, or records it if the stream is recording.
    ///
    /// # Safety
    /// Same as for the step itself.
    unsafe fn submit_or_note(&self, lane: &CpuLane, step: Step) -> Result<(), Error> {
        if let Some(recording) = &mut *self.recording() {
            recording.note(step);
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { lane.submit(step) }
    }

    /// Waits until all work on the stream is done.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        self.refuse_while_recording("a wait for the device")?;
        left::drop_left();
        match &self.lane.kind {
            LaneKind::Cpu(lane) => lane.finish(),
            LaneKind::Cuda(stream) => stream.synchronize(),
            LaneKind::Planned(_) => Ok(()),
        }
    }
}
