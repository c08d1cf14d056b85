//! Devices: a GPU or the CPU, selected at run time.

use super::counters::Tally;
use super::cpu::{CpuDevice, CpuOptions};
use super::cuda::{self, CudaDevice};
use super::host_blocks::HostBlocks;
use super::host_memory::host_memory;
use super::pinned::PinnedVec;
use super::plan::PlannedDevice;
use super::stream::Stream;
use crate::host::device_kind::DeviceKind;
use crate::host::error::Error;
use bytemuck::Pod;
use core::any::Any;
use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// The maximum number of blocks in a grid, on every GPU that can run this crate's kernels.
pub(super) const MAX_BLOCKS: u32 = i32::MAX as u32;
/// The shared memory per block on the CPU: the maximum of all GPUs, so that whatever runs on a GPU also runs here.
const CPU_SHARED_BYTES: usize = 227 * 1024;
/// The oldest compute capability that is selected automatically. This crate's own PTX targets it.
const OLDEST_CAPABILITY: (u32, u32) = (7, 0);

/// A device that runs kernels and holds buffers: a GPU, or the CPU in its place. Clones refer to the same device.
///
/// ```
/// use gpu_primitives::{Device, DeviceKind, Error};
///
/// let device = Device::default()?; // a GPU if there is one
/// println!("{}: {:?}", device.name(), device.limits());
///
/// let cpu = Device::parse("cpu")?; // `cpu-checked` finds faults in kernels, and needs the feature `checked`
/// assert_eq!(cpu.kind(), DeviceKind::Cpu);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    used: AtomicUsize,
    peak: AtomicUsize,
    host_blocks: HostBlocks,
    #[cfg_attr(not(feature = "counters"), expect(dead_code))]
    tally: Tally,
}

/// The implementation behind a device.
pub(super) enum Backend {
    Cpu(Arc<CpuDevice>),
    Cuda(Arc<CudaDevice>),
    Planned(Arc<PlannedDevice>),
}

/// The limits of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of blocks in a grid.
    pub max_blocks: u32,
    /// The maximum bytes of shared memory per block.
    pub shared_bytes_per_block: usize,
    /// The number of multiprocessors; on the CPU, the number of threads that run blocks.
    pub multiprocessors: u32,
    /// The compute capability of a GPU, such as `(9, 0)`.
    pub compute_capability: Option<(u32, u32)>,
}

impl Device {
    /// Opens the device named by the environment variable `GPU_PRIMITIVES_DEVICE`, in the syntax of
    /// [`parse`](Self::parse). If the variable is not set, opens GPU 0 if it works, otherwise the CPU.
    ///
    /// # Errors
    /// Same as [`parse`](Self::parse), if the variable is set. Same as [`cuda`](Self::cuda) without the feature `cpu`.
    #[allow(clippy::should_implement_trait, reason = "it can fail, which `Default` cannot say")]
    pub fn default() -> Result<Self, Error> {
        if let Some(name) = std::env::var_os("GPU_PRIMITIVES_DEVICE") {
            return Self::parse(&name.to_string_lossy());
        }
        let gpu = Self::cuda(0);
        if !cfg!(feature = "cpu") {
            return gpu;
        }
        let works = |gpu: &Self| gpu.limits().compute_capability >= Some(OLDEST_CAPABILITY);
        Ok(gpu.ok().filter(works).unwrap_or_else(Self::cpu))
    }

    /// Opens a device by name: `cpu`, `cpu-checked`, `cuda` (the first GPU) or `cuda:N`.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] for any other name; [`Error::NeedsFeature`] for `cpu` without the feature `cpu`, and for
    /// `cpu-checked` without the feature `checked`; the errors of [`cuda`](Self::cuda).
    pub fn parse(name: &str) -> Result<Self, Error> {
        match name {
            "cpu" if !cfg!(feature = "cpu") => Err(Error::NeedsFeature { what: "the device cpu", feature: "cpu" }),
            "cpu" => Ok(Self::cpu()),
            "cpu-checked" if !cfg!(any(feature = "checked", test)) => {
                Err(Error::NeedsFeature { what: "the device cpu-checked", feature: "checked" })
            }
            "cpu-checked" => Ok(Self::cpu_checked()),
            "cuda" => Self::cuda(0),
            _ => match name.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(ordinal)) => Self::cuda(ordinal),
                _ => Err(Error::UnknownDevice { asked: name.to_owned() }),
            },
        }
    }

    /// Returns the CPU device, with all its cores. This is always the same device.
    #[must_use]
    pub fn cpu() -> Self {
        static CPU: LazyLock<Device> = LazyLock::new(|| Device::cpu_with(CpuOptions::default()));
        CPU.clone()
    }

    /// Creates a CPU device that checks every memory access of every kernel. It is slow and meant for tests. Each call
    /// creates a new device.
    #[must_use]
    pub fn cpu_checked() -> Self {
        Self::cpu_with(CpuOptions { checked: true, ..CpuOptions::default() })
    }

    /// Creates a CPU device with options. Each call creates a new device.
    #[must_use]
    pub fn cpu_with(options: CpuOptions) -> Self {
        Self::new(Backend::Cpu(Arc::new(CpuDevice::new(options))))
    }

    /// Opens the GPU with this number. Repeated calls return the same device, which stays open until the process ends.
    ///
    /// Memory comes from the GPU's default pool, which is set to keep freed memory for later allocations. Other
    /// programs cannot use that memory in the meantime, but an allocation that runs out of memory releases it before it
    /// tries again.
    ///
    /// The device uses the GPU's primary context. The CUDA runtime uses the same context, so memory and streams can be
    /// shared with other libraries. Calls of this crate leave the context current on the calling thread.
    ///
    /// # Errors
    /// [`Error::DriverMissing`] or [`Error::DriverTooOld`] without a usable driver, [`Error::NoSuchDevice`],
    /// [`Error::DeviceUnsupported`], and other driver errors.
    pub fn cuda(ordinal: usize) -> Result<Self, Error> {
        static OPEN: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());
        let mut open = lock(&OPEN);
        if let Some(device) = open.get(&ordinal) {
            return Ok(device.clone());
        }
        let device = Self::new(Backend::Cuda(Arc::new(CudaDevice::open(ordinal)?)));
        open.insert(ordinal, device.clone());
        Ok(device)
    }

    /// Wraps a context that another library created (a `CUcontext`). The context is never reset or destroyed by this crate.
    ///
    /// The primary context of a GPU gives the device that [`cuda`](Self::cuda) returns. Any other context is a device of its
    /// own: memory, streams and loaded kernels belong to it, and cannot be used with another device of the same GPU. Repeated
    /// calls return the same device while it is in use. When nothing uses it any more, its kernels are unloaded.
    ///
    /// # Safety
    /// `raw` is a context. It stays one until the device, its clones, and everything made with them are dropped. Streams of other
    /// libraries that were wrapped for the device have been released by then.
    ///
    /// # Errors
    /// Same as [`cuda`](Self::cuda).
    pub unsafe fn borrow_cuda_context(raw: *mut c_void) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::adopt(raw, Box::new(())) }
    }

    /// [`borrow_cuda_context`](Self::borrow_cuda_context) with a value that keeps the context.
    ///
    /// # Safety
    /// `raw` is a context, and stays one as long as the keeper lives.
    pub(crate) unsafe fn adopt(raw: *mut c_void, keeper: Box<dyn Any + Send + Sync>) -> Result<Self, Error> {
        static ADOPTED: Mutex<Vec<(usize, Weak<Inner>)>> = Mutex::new(Vec::new());
        // SAFETY: guaranteed by the caller.
        let found = unsafe { cuda::find(raw)? };
        if found.is_primary {
            return Self::cuda(found.ordinal);
        }
        let mut adopted = lock(&ADOPTED);
        adopted.retain(|(_, device)| device.strong_count() > 0);
        let is_same = |(context, _): &&(usize, Weak<Inner>)| *context == raw.addr();
        if let Some(inner) = adopted.iter().find(is_same).and_then(|(_, device)| device.upgrade()) {
            return Ok(Self { inner });
        }
        // SAFETY: guaranteed by the caller.
        let device = Self::new(Backend::Cuda(Arc::new(unsafe { CudaDevice::adopt(&found, raw, keeper)? })));
        adopted.push((raw.addr(), Arc::downgrade(&device.inner)));
        Ok(device)
    }

    /// Returns the driver's handle of the context (a `CUcontext`); `None` on the CPU. The handle is valid as long as the
    /// device.
    #[must_use]
    pub fn cuda_context(&self) -> Option<*mut c_void> {
        match self.backend() {
            Backend::Cuda(gpu) => Some(gpu.context().cast()),
            Backend::Cpu(_) | Backend::Planned(_) => None,
        }
    }

    /// Returns the number of GPUs; 0 without a usable driver.
    #[must_use]
    pub fn cuda_count() -> usize {
        cuda::device_count()
    }

    fn new(backend: Backend) -> Self {
        let (used, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self {
            inner: Arc::new(Inner { backend, used, peak, host_blocks: HostBlocks::default(), tally: Tally::default() }),
        }
    }

    pub(super) fn of_plan(plan: PlannedDevice) -> Self {
        Self::new(Backend::Planned(Arc::new(plan)))
    }

    #[cfg(feature = "counters")]
    pub(super) fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    pub(super) fn host_blocks(&self) -> &HostBlocks {
        &self.inner.host_blocks
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// Returns the kind of device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        match self.backend() {
            Backend::Cpu(cpu) if cpu.options().checked => DeviceKind::CpuChecked,
            Backend::Cpu(_) => DeviceKind::Cpu,
            Backend::Cuda(gpu) => DeviceKind::Cuda { ordinal: gpu.ordinal() },
            Backend::Planned(plan) => plan.kind(),
        }
    }

    /// Returns a human-readable name, such as `NVIDIA H200` or `CPU, 8 cores`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.backend() {
            Backend::Cpu(cpu) if cpu.options().checked => "CPU, checked".to_owned(),
            Backend::Cpu(cpu) => match workers(cpu.options()) {
                1 => "CPU, 1 core".to_owned(),
                cores => format!("CPU, {cores} cores"),
            },
            Backend::Cuda(gpu) => gpu.name().to_owned(),
            Backend::Planned(plan) => format!("planned, {} multiprocessors", plan.limits.multiprocessors),
        }
    }

    /// Returns the limits of a launch.
    #[must_use]
    pub fn limits(&self) -> Limits {
        match self.backend() {
            Backend::Cpu(cpu) => Limits {
                max_blocks: MAX_BLOCKS,
                shared_bytes_per_block: CPU_SHARED_BYTES,
                multiprocessors: u32::try_from(workers(cpu.options())).unwrap_or(u32::MAX),
                compute_capability: None,
            },
            Backend::Cuda(gpu) => gpu.limits(),
            Backend::Planned(plan) => plan.limits,
        }
    }

    /// Returns the free and the total device memory in bytes. For a CPU device with a memory limit, the total is that
    /// limit.
    ///
    /// # Errors
    /// Driver errors.
    pub fn memory_free(&self) -> Result<(usize, usize), Error> {
        match self.backend() {
            Backend::Cpu(cpu) => Ok(match cpu.options().memory_limit {
                Some(limit) => (limit.saturating_sub(cpu.used()), limit),
                None => host_memory(),
            }),
            Backend::Cuda(gpu) => gpu.memory_free(),
            Backend::Planned(_) => {
                let most = isize::MAX as usize;
                Ok((most.saturating_sub(self.memory_used()), most))
            }
        }
    }

    /// Returns the bytes that this device's vectors and the scratch memory of its streams use now.
    #[must_use]
    pub fn memory_used(&self) -> usize {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes of page-locked host memory that this device's vectors use now: the levels of a dictionary that has a budget of
    /// device memory, for example. Vectors of [`pinned`](Self::pinned) memory do not count.
    #[must_use]
    pub fn host_memory_used(&self) -> usize {
        self.host_blocks().used()
    }

    /// Returns the maximum of [`memory_used`](Self::memory_used) since the device was opened or the peak was last
    /// reset.
    #[must_use]
    pub fn peak_memory(&self) -> usize {
        self.inner.peak.load(Ordering::Relaxed)
    }

    /// Resets [`peak_memory`](Self::peak_memory) to the memory in use now.
    pub fn reset_peak_memory(&self) {
        self.inner.peak.store(self.memory_used(), Ordering::Relaxed);
    }

    pub(super) fn count_allocation(&self, bytes: usize) {
        let used = self.inner.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.inner.peak.fetch_max(used, Ordering::Relaxed);
    }

    pub(super) fn count_free(&self, bytes: usize) {
        self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Creates a stream. On a GPU it runs concurrently with all other streams, including the default stream.
    ///
    /// # Errors
    /// Driver errors.
    pub fn stream(&self) -> Result<Stream, Error> {
        Stream::new(self)
    }

    /// Allocates `len` zeroed elements of page-locked host memory. A GPU copies from and to it at full speed, while the
    /// program continues.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], and other driver errors.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedVec<T>, Error> {
        PinnedVec::new(self, len)
    }

    /// Returns the size of `len` elements in bytes, or an error if no allocation can be that large.
    pub(super) fn bytes_of<T>(&self, len: usize) -> Result<usize, Error> {
        match len.checked_mul(size_of::<T>()) {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(bytes),
            bytes => {
                let (free, total) = self.memory_free().unwrap_or((0, 0));
                Err(Error::OutOfMemory { requested: bytes.unwrap_or(usize::MAX), free, total })
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Only the device of another library's context is ever dropped.
        if let Backend::Cuda(gpu) = &self.backend {
            self.host_blocks.release_all(gpu);
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}: {})", self.kind(), self.name())
    }
}

/// Locks a mutex and ignores poisoning. The values behind this crate's mutexes are consistent at all times, so a panic
/// in a thread that held one is no reason to panic here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of threads that run blocks.
fn workers(options: &CpuOptions) -> usize {
    // Asked once: every launch needs it, and the answer comes from files of the system.
    static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    options.workers.unwrap_or_else(|| *CORES).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        for name in ["cpu", "cpu-checked"] {
            assert_eq!(Device::parse(name).unwrap().kind().to_string(), name);
        }
        for name in ["", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda0", " cpu"] {
            let error = Device::parse(name).unwrap_err();
            assert!(matches!(&error, Error::UnknownDevice { asked } if asked == name), "{error}");
        }
        assert_eq!(DeviceKind::Cuda { ordinal: 3 }.to_string(), "cuda:3");
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error() {
        let count = Device::cuda_count();
        match Device::cuda(count).unwrap_err() {
            Error::NoSuchDevice { asked, available } => assert_eq!((asked, available), (count, count)),
            error => {
                assert_eq!(count, 0);
                assert!(matches!(error, Error::DriverMissing | Error::DriverTooOld { .. }), "{error}");
            }
        }
        assert!(Device::default().is_ok());
    }

    #[test]
    fn equality_is_identity() {
        assert_eq!(Device::cpu(), Device::cpu());
        assert_ne!(Device::cpu_checked(), Device::cpu_checked());
        if Device::cuda_count() > 0 {
            assert_eq!(Device::cuda(0).unwrap(), Device::cuda(0).unwrap());
        }
    }

    #[test]
    fn devices_and_their_things_travel_between_threads() {
        fn travels<T: Send + Sync>() {}
        travels::<Device>();
        travels::<Stream>();
        travels::<PinnedVec<u32>>();
        travels::<crate::Event>();
        travels::<crate::Graph>();
        travels::<crate::DeviceVec<u32>>();
        travels::<crate::DeviceSlice<'_, u32>>();
        travels::<crate::DeviceSliceMut<'_, u32>>();
    }

    #[test]
    fn the_host_says_how_much_memory_it_has() {
        let (free, total) = Device::cpu().memory_free().unwrap();
        assert!(0 < free && free <= total);
    }

    #[test]
    fn too_many_bytes_to_count_are_out_of_memory() {
        let device = Device::cpu();
        assert_eq!(device.bytes_of::<u32>(3).unwrap(), 12);
        for len in [usize::MAX, usize::MAX / 4, isize::MAX as usize / 4 + 1] {
            assert!(
                matches!(device.bytes_of::<u32>(len), Err(Error::OutOfMemory { requested, .. }) if requested >= len)
            );
        }
    }
}
