//! A GPU stream: all work that runs in order, including launches.

use super::device::{CudaDevice, call};
use super::driver::{Driver, Status};
use super::event::CudaEvent;
use super::sys::{CUcontext, CUdeviceptr, CUfunction, CUlaunchAttribute, CUlaunchConfig, CUstream};
use crate::host::error::Error;
use crate::host::runtime::dependent_launch;
use crate::host::runtime::device::lock;
use crate::host::runtime::foreign::Keeper;
use crate::host::runtime::launch::KernelType;
use crate::host::runtime::loading::Next;
use core::ffi::{c_uint, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};

/// The stream does not wait for the legacy default stream, nor the other way round.
const NON_BLOCKING: c_uint = 1;
/// The handle that is another stream on each thread, which has no order that threads share.
const PER_THREAD: usize = 2;

/// A driver stream, created here or borrowed from another library.
pub(in crate::host::runtime) struct CudaStream {
    device: Arc<CudaDevice>,
    raw: CUstream,
    owner: Owner,
    /// Whether other libraries may add work.
    is_shared: AtomicBool,
    /// The amount of work that this library has submitted.
    submitted: AtomicU64,
    /// The shape of the last launch.
    last_shape: Mutex<dependent_launch::Shape>,
    recent: Mutex<Recent>,
}

/// Who destroys a stream.
enum Owner {
    This,
    /// Another library. The value keeps it from doing so.
    Other(#[cfg_attr(not(any(feature = "cudarc", feature = "cust")), expect(dead_code))] Box<dyn Keeper>),
}

// SAFETY: the handle may be used from any thread; the driver orders the calls.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    fn new(device: &Arc<CudaDevice>, raw: CUstream, owner: Owner) -> Self {
        let (is_shared, submitted) = (AtomicBool::new(matches!(owner, Owner::Other(_))), AtomicU64::new(0));
        let last_shape = Mutex::default();
        Self { device: Arc::clone(device), raw, owner, is_shared, submitted, last_shape, recent: Mutex::default() }
    }

    pub(in crate::host::runtime) fn create(device: &Arc<CudaDevice>) -> Result<Self, Error> {
        device.enter()?;
        let mut raw: CUstream = null_mut();
        // SAFETY: the pointer is valid.
        unsafe { call!(device, cuStreamCreate(&mut raw, NON_BLOCKING)) }?;
        Ok(Self::new(device, raw, Owner::This))
    }

    /// Wraps a stream that another library created and destroys.
    ///
    /// # Safety
    /// The handle is a stream, and stays one as long as the value lives, which has the keeper.
    pub(in crate::host::runtime) unsafe fn borrow(
        device: &Arc<CudaDevice>,
        raw: *mut c_void,
        keeper: Box<dyn Keeper>,
    ) -> Result<Self, Error> {
        if raw.addr() == PER_THREAD {
            return Err(Error::InvalidOption {
                what: "the stream of another library",
                asked: "the default stream of each thread".into(),
                allowed: "the same stream on all threads",
            });
        }
        device.enter()?;
        let raw: CUstream = raw.cast();
        let mut context: CUcontext = null_mut();
        // SAFETY: the handle is a stream, and the pointer is valid.
        unsafe { call!(device, cuStreamGetCtx(raw, &mut context)) }?;
        if context != device.context() {
            return Err(Error::WrongContext { what: "the stream", ordinal: device.ordinal() });
        }
        Ok(Self::new(device, raw, Owner::Other(keeper)))
    }

    /// Returns what keeps the stream of another library.
    #[cfg(any(feature = "cudarc", feature = "cust"))]
    pub(in crate::host::runtime) fn keeper(&self) -> Option<&dyn Keeper> {
        match &self.owner {
            Owner::This => None,
            Owner::Other(keeper) => Some(&**keeper),
        }
    }

    pub(super) fn device(&self) -> &Arc<CudaDevice> {
        &self.device
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.device.driver()
    }

    /// Returns the handle for other libraries, which may add work to the stream from now on.
    pub(in crate::host::runtime) fn share(&self) -> *mut c_void {
        self.is_shared.store(true, Ordering::Release);
        self.raw.cast()
    }

    /// Returns how much work the stream has been given; `None` if that is unknown.
    pub(in crate::host::runtime) fn position(&self) -> Option<u64> {
        (!self.is_shared.load(Ordering::Acquire)).then(|| self.submitted.load(Ordering::Acquire))
    }

    /// Counts work after the driver has accepted it. If it were counted earlier, an event recorded in between would not
    /// cover it.
    fn count(&self, result: Result<(), Error>) -> Result<(), Error> {
        self.submitted.fetch_add(1, Ordering::Release);
        result
    }

    pub(in crate::host::runtime) fn handle(&self) -> CUstream {
        self.raw
    }

    /// Turns a status into a result; a crash is attributed to the kernels of this stream.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), Error> {
        self.device.check_with(call, status, || self.recent_kernels())
    }

    /// Allocates `bytes` (not 0) in the stream's order.
    pub(in crate::host::runtime) fn allocate(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        self.device.enter()?;
        let mut address: CUdeviceptr = 0;
        // SAFETY: the pointer is valid; pool and stream are alive and belong to one device.
        let mut attempt =
            || unsafe { (self.driver().cuMemAllocFromPoolAsync)(&mut address, bytes, self.device.pool(), self.raw) };
        let mut status = attempt();
        if status == Status::OUT_OF_MEMORY && self.reclaim_memory()? {
            status = attempt();
        }
        if status == Status::OUT_OF_MEMORY {
            let (free, total) = self.device.memory_free().unwrap_or((0, 0));
            return Err(Error::OutOfMemory { requested: bytes, free, total });
        }
        self.count(self.check("cuMemAllocFromPoolAsync", status))?;
        let address = core::ptr::with_exposed_provenance_mut(address as usize);
        Ok(NonNull::new(address).expect("the driver never allocates at address 0"))
    }

    /// Waits for pending frees in other streams, and lets the pool release its fragmented memory. Returns whether it
    /// did so: it does not while any stream records, since the driver would refuse, which would invalidate the
    /// recording.
    fn reclaim_memory(&self) -> Result<bool, Error> {
        let recordings = lock(self.device.recordings());
        if *recordings > 0 {
            return Ok(false);
        }
        // SAFETY: the pool is alive.
        unsafe {
            call!(self, cuCtxSynchronize())?;
            call!(self, cuMemPoolTrimTo(self.device.pool(), 0))?;
        }
        Ok(true)
    }

    /// Frees memory in the stream's order.
    ///
    /// # Safety
    /// The memory came from [`allocate`](Self::allocate) on this device, and all uses of it come earlier in the
    /// stream's order.
    pub(in crate::host::runtime) unsafe fn free(&self, address: NonNull<u8>) {
        if self.device.try_enter() {
            // A failure cannot be reported here; the next call that can report errors will see a crash again.
            // SAFETY: guaranteed by the caller.
            let _ = unsafe { (self.driver().cuMemFreeAsync)(device_pointer(address.as_ptr()), self.raw) };
        }
    }

    /// Zeroes bytes.
    ///
    /// # Safety
    /// The bytes belong to this device and may be written in the stream's order.
    pub(in crate::host::runtime) unsafe fn zero(&self, to: *mut u8, bytes: usize) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        self.count(unsafe { call!(self, cuMemsetD8Async(device_pointer(to), 0, bytes, self.raw)) })
    }

    /// Copies from the host. The host memory may be reused when this returns.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero). The host memory is valid.
    pub(in crate::host::runtime) unsafe fn upload(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: guaranteed by the caller; the host memory is not reused before it has been read.
        unsafe { self.upload_later(from, to, bytes)? };
        // Ordinary memory has been copied by now; page-locked memory is read when the stream reaches the copy.
        if self.device.is_known_host_memory(from) { self.synchronize() } else { Ok(()) }
    }

    /// Copies from the host, possibly after this has returned.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero). The host memory is valid and unchanged until the stream has passed the copy.
    pub(in crate::host::runtime) unsafe fn upload_later(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        self.count(unsafe { call!(self, cuMemcpyHtoDAsync(device_pointer(to), from.cast(), bytes, self.raw)) })
    }

    /// Copies to the host, possibly after this has returned.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero), for reading. The host memory is valid, and unused until the stream has passed the
    /// copy.
    pub(in crate::host::runtime) unsafe fn download_later(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        self.count(unsafe { call!(self, cuMemcpyDtoHAsync(to.cast(), device_pointer(from), bytes, self.raw)) })
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// Same as [`zero`](Self::zero), for both ranges. They do not overlap.
    pub(in crate::host::runtime) unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        self.count(unsafe { call!(self, cuMemcpyDtoDAsync(device_pointer(to), device_pointer(from), bytes, self.raw)) })
    }

    /// Waits until all work on the stream is done.
    pub(in crate::host::runtime) fn synchronize(&self) -> Result<(), Error> {
        self.device.enter()?;
        let launched = lock(&self.recent).launched;
        // SAFETY: the stream lives as long as `self`.
        unsafe { call!(self, cuStreamSynchronize(self.raw)) }?;
        lock(&self.recent).forget(launched);
        Ok(())
    }

    /// Makes later work on this stream wait for the event.
    pub(in crate::host::runtime) fn wait(&self, event: &CudaEvent) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: both handles are alive; the driver keeps what it needs of the event.
        self.count(unsafe { call!(self, cuStreamWaitEvent(self.raw, event.handle(), 0)) })
    }

    /// Lets later work wait for an event of another library.
    ///
    /// # Safety
    /// It is an event.
    pub(in crate::host::runtime) unsafe fn wait_raw(&self, event: *mut c_void) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller; the driver keeps what it needs of the event.
        self.count(unsafe { call!(self, cuStreamWaitEvent(self.raw, event.cast(), 0)) })
    }

    /// Waits after a launch if requested, so that a crash names its kernel.
    pub(in crate::host::runtime) fn wait_if_asked(&self) -> Result<(), Error> {
        if *SYNCHRONOUS { self.synchronize() } else { Ok(()) }
    }

    /// Returns the most recent kernels that are not known to have succeeded.
    pub(super) fn recent_kernels(&self) -> Vec<&'static str> {
        lock(&self.recent).names()
    }

    /// Records the kernels that a graph has launched.
    pub(super) fn note_graph(&self, names: &[&'static str]) {
        self.submitted.fetch_add(1, Ordering::Release);
        self.note_kernels(names);
    }

    /// Records launched kernels.
    fn note_kernels(&self, names: &[&'static str]) {
        let mut recent = lock(&self.recent);
        names.iter().for_each(|name| recent.add(name));
    }

    /// Gives a launch to the driver.
    ///
    /// # Safety
    /// That of [`launch`](Self::launch). A kernel that is launched early waits for the one before it.
    unsafe fn submit(
        &self,
        function: CUfunction,
        threads: u32,
        dependent_launch::Shape { blocks, shared_bytes }: dependent_launch::Shape,
        arguments: *mut *mut c_void,
        is_early: bool,
    ) -> Status {
        let (driver, stream) = (self.driver(), self.raw);
        // SAFETY: guaranteed by the caller.
        unsafe {
            match driver.cuLaunchKernelEx.filter(|_| is_early) {
                Some(launch) => {
                    let attributes = [CUlaunchAttribute::PROGRAMMATIC_STREAM_SERIALIZATION];
                    let config = CUlaunchConfig {
                        blocks: [blocks, 1, 1],
                        threads: [threads, 1, 1],
                        shared_bytes,
                        stream,
                        attributes: attributes.as_ptr(),
                        attribute_count: attributes.len() as c_uint,
                    };
                    launch(&config, function, arguments, null_mut())
                }
                None => {
                    let launch = driver.cuLaunchKernel;
                    launch(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, arguments, null_mut())
                }
            }
        }
    }

    /// Launches a kernel: before the one before it has ended, if `is_early` and that is possible and useful.
    ///
    /// # Safety
    /// The kernel's contract holds; `blocks` is from 1 to the device's limit.
    pub(in crate::host::runtime) unsafe fn launch(
        &self,
        kernel: &KernelType,
        arguments: *mut (),
        blocks: u32,
        is_early: bool,
        next: Option<Next>,
    ) -> Result<(), Error> {
        self.device.enter()?;
        // SAFETY: guaranteed by the caller.
        let operators = unsafe { kernel.filled(arguments) };
        let function = self.device.function(kernel.target, operators, next)?;
        // The struct is the only parameter of the entry. A struct without fields means no parameter.
        let mut argument = arguments.cast::<c_void>();
        let arguments = if kernel.layout.size() == 0 { null_mut() } else { &raw mut argument };
        let shared_bytes = kernel.shared_bytes as c_uint;
        let shape = dependent_launch::Shape { blocks, shared_bytes };
        let before = core::mem::replace(&mut *lock(&self.last_shape), shape);
        let is_early =
            is_early && function.waits_first && shape.is_early_after(before, self.device.limits().multiprocessors);
        // SAFETY: guaranteed by the caller; the argument is the kernel's own struct. A kernel that is launched early waits first.
        let status = unsafe { self.submit(function.raw, kernel.threads, shape, arguments, is_early) };
        self.count(self.check("cuLaunchKernel", status)).map_err(|error| match error {
            Error::Driver { call, code, message } => {
                let (name, threads) = (function.name, kernel.threads);
                let shape = format!("{blocks} blocks of {threads} threads, {shared_bytes} bytes of shared memory each");
                Error::Driver { call, code, message: format!("{message} (kernel `{name}`: {shape})") }
            }
            other => other,
        })?;
        self.note_kernels(&[function.name]);
        Ok(())
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if matches!(self.owner, Owner::This) && self.device.try_enter() {
            // SAFETY: nothing else has the handle. Running work continues to its end.
            let _ = unsafe { (self.driver().cuStreamDestroy)(self.raw) };
        }
    }
}

/// Whether to wait for every launch, so that a crash names its kernel: `GPU_PRIMITIVES_SYNC=1`.
static SYNCHRONOUS: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("GPU_PRIMITIVES_SYNC").is_some_and(|v| v == "1"));

fn device_pointer(address: *const u8) -> CUdeviceptr {
    address.expose_provenance() as CUdeviceptr
}

/// The kernels of a stream that are not known to have succeeded: those launched since the last wait.
#[derive(Default)]
struct Recent {
    /// The most recent ones, oldest first.
    names: VecDeque<&'static str>,
    /// The number of launches so far.
    launched: u64,
}

impl Recent {
    const KEPT: usize = 8;

    fn add(&mut self, name: &'static str) {
        if self.names.len() == Self::KEPT {
            self.names.pop_front();
        }
        self.names.push_back(name);
        self.launched += 1;
    }

    /// Drops the first `launched` launches, which have ended; later ones of other threads may not have.
    fn forget(&mut self, launched: u64) {
        let later = usize::try_from(self.launched - launched).unwrap_or(usize::MAX);
        while self.names.len() > later {
            self.names.pop_front();
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.names.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_launches_are_remembered_until_they_are_waited_for() {
        let mut recent = Recent::default();
        recent.add("first");
        for _ in 0..7 {
            recent.add("middle");
        }
        recent.add("last");
        assert_eq!(recent.names(), ["middle", "middle", "middle", "middle", "middle", "middle", "middle", "last"]);
        recent.forget(8);
        assert_eq!(recent.names(), ["last"]);
        recent.forget(9);
        assert!(recent.names().is_empty());
    }
}
