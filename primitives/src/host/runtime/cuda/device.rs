//! A GPU: its context, its memory pool, and its state after a crash.

use super::driver::{Driver, Status, device_count};
use super::module::Modules;
use super::pinned::Locked;
use super::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUmemPool_attribute, CUmemoryPool, CUpointer_attribute,
};
use crate::host::device_kind::DeviceKind;
use crate::host::error::Error;
use crate::host::runtime::dependent_launch;
use crate::host::runtime::device::{Limits, MAX_BLOCKS};
use core::any::Any;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use std::sync::{Mutex, OnceLock};

/// The kind of memory that is on a GPU.
const DEVICE_MEMORY: c_uint = 2;

/// Calls a driver function and turns its status into a result, with the `check` of the device or stream `$on`. This is
/// an unsafe operation: the caller guarantees that the arguments are valid for the function.
macro_rules! call {
    ($on:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $on.check(stringify!($function), ($on.driver().$function)($($argument),*))
    };
}
pub(super) use call;

/// A GPU with a context: its primary context, which is retained until the process ends, or the context of another library,
/// which is never reset or destroyed here.
///
/// The CUDA runtime and most libraries use the primary context too, so memory and streams can be shared with them.
/// Memory comes from the device's default pool, which is set to keep freed memory: releasing it to the system and
/// allocating it again costs far more than everything else in an allocation.
pub(in crate::host::runtime) struct CudaDevice {
    driver: &'static Driver,
    ordinal: usize,
    name: String,
    limits: Limits,
    context: CUcontext,
    /// What keeps the context of another library; `None` for the primary context.
    keeper: Option<Box<dyn Any + Send + Sync>>,
    pool: CUmemoryPool,
    modules: Modules,
    /// Page-locked memory that the driver has not allocated itself.
    pub(super) locked: Locked,
    /// The number of recording streams. Locked while waiting for the whole device.
    recordings: Mutex<usize>,
    /// Why the context was destroyed, once it is.
    lost: OnceLock<String>,
}

// SAFETY: the handles may be used from any thread; the driver does its own locking.
unsafe impl Send for CudaDevice {}
// SAFETY: as above.
unsafe impl Sync for CudaDevice {}

impl CudaDevice {
    /// Opens a GPU with its primary context. Each call creates a new value: the caller ensures that there is one per GPU.
    pub(in crate::host::runtime) fn open(ordinal: usize) -> Result<Self, Error> {
        let available = device_count();
        let missing = || Error::NoSuchDevice { asked: ordinal, available };
        let driver = Driver::get().map_err(|error| match error {
            Error::NoSuchDevice { .. } => missing(),
            other => other,
        })?;
        if ordinal >= available {
            return Err(missing());
        }
        let mut device: CUdevice = 0;
        let index = c_int::try_from(ordinal).map_err(|_| missing())?;
        // SAFETY: the pointer is valid.
        driver.check("cuDeviceGet", unsafe { (driver.cuDeviceGet)(&mut device, index) })?;
        let mut context: CUcontext = null_mut();
        // SAFETY: the pointer is valid.
        let status = unsafe { (driver.cuDevicePrimaryCtxRetain)(&mut context, device) };
        driver.check("cuDevicePrimaryCtxRetain", status)?;
        Self::with(driver, ordinal, device, context, None).inspect_err(|_| {
            // SAFETY: the context was retained above, and nothing uses it yet.
            unsafe { (driver.cuDevicePrimaryCtxRelease)(device) };
        })
    }

    /// Uses the context of another library, which is not the primary one. Each call creates a new value: the caller ensures
    /// that there is one per context.
    ///
    /// # Safety
    /// The handle is a context of the GPU, and stays one as long as the value lives, which has the keeper.
    pub(in crate::host::runtime) unsafe fn adopt(
        found: &Found,
        context: *mut c_void,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, Error> {
        Self::with(Driver::get()?, found.ordinal, found.device, context.cast(), Some(keeper))
    }

    fn with(
        driver: &'static Driver,
        ordinal: usize,
        device: CUdevice,
        context: CUcontext,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Result<Self, Error> {
        let name = device_name(driver, device)?;
        if attribute(driver, device, CUdevice_attribute::MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(Error::DeviceUnsupported { device: name, needs: "memory pools" });
        }
        let limits = limits(driver, device)?;

        let mut pool: CUmemoryPool = null_mut();
        // SAFETY: the pointer is valid.
        let status = unsafe { (driver.cuDeviceGetDefaultMemPool)(&mut pool, device) };
        driver.check("cuDeviceGetDefaultMemPool", status)?;
        let shares_addresses =
            attribute(driver, device, CUdevice_attribute::CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)? != 0;
        let (modules, locked) = (Modules::default(), Locked::new(shares_addresses));
        let (recordings, lost) = (Mutex::default(), OnceLock::new());
        let this = Self { driver, ordinal, name, limits, context, keeper, pool, modules, locked, recordings, lost };
        this.prepare_pool()?;
        Ok(this)
    }

    fn prepare_pool(&self) -> Result<(), Error> {
        self.enter()?;
        let (mut threshold, mut may_wait) = (u64::MAX, 0i32);
        let keeps_freed_memory = (&raw mut threshold).cast::<c_void>();
        // Otherwise an allocation may take memory that another stream frees later, and silently make its stream wait for that one.
        let streams_stay_independent = (&raw mut may_wait).cast::<c_void>();
        // SAFETY: the first attribute is a 64-bit number, the second one a 32-bit number.
        unsafe {
            call!(self, cuMemPoolSetAttribute(self.pool, CUmemPool_attribute::RELEASE_THRESHOLD, keeps_freed_memory))?;
            let reuse = CUmemPool_attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES;
            call!(self, cuMemPoolSetAttribute(self.pool, reuse, streams_stay_independent))
        }
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(in crate::host::runtime) fn context(&self) -> CUcontext {
        self.context
    }

    /// Returns whether kernels can be launched before the one before them has ended: see [`dependent_launch`].
    pub(super) fn can_launch_early(&self) -> bool {
        self.limits.compute_capability >= Some(dependent_launch::OLDEST_CAPABILITY)
            && self.driver.version >= dependent_launch::OLDEST_DRIVER
    }

    pub(super) fn pool(&self) -> CUmemoryPool {
        self.pool
    }

    pub(super) fn recordings(&self) -> &Mutex<usize> {
        &self.recordings
    }

    pub(super) fn modules(&self) -> &Modules {
        &self.modules
    }

    pub(super) fn modules_mut(&mut self) -> &mut Modules {
        &mut self.modules
    }

    pub(in crate::host::runtime) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(in crate::host::runtime) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::host::runtime) fn limits(&self) -> Limits {
        self.limits
    }

    /// Prepares the calling thread for calls on this device, or returns an error if the device is lost.
    ///
    /// It asks the driver which context is current, since other libraries may have changed it. The answer comes from a
    /// thread-local variable of the driver and costs a few nanoseconds.
    pub(super) fn enter(&self) -> Result<(), Error> {
        if let Some(cause) = self.lost.get() {
            return Err(Error::DeviceLost { cause: cause.clone() });
        }
        let mut current: CUcontext = null_mut();
        // SAFETY: the pointer is valid.
        unsafe { call!(self, cuCtxGetCurrent(&mut current)) }?;
        if current != self.context {
            // SAFETY: the context is retained as long as `self` lives.
            unsafe { call!(self, cuCtxSetCurrent(self.context)) }?;
        }
        Ok(())
    }

    /// [`enter`](Self::enter) for destructors: returns whether calling the driver makes sense.
    pub(super) fn try_enter(&self) -> bool {
        self.enter().is_ok()
    }

    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), Error> {
        self.check_with(call, status, Vec::new)
    }

    /// Turns a status into a result. The first call that sees a crash marks the device as lost and returns the names of
    /// the kernels that may have caused it.
    pub(super) fn check_with(
        &self,
        call: &'static str,
        status: Status,
        suspects: impl FnOnce() -> Vec<&'static str>,
    ) -> Result<(), Error> {
        if status == Status::SUCCESS {
            return Ok(());
        }
        let (code, message) = self.driver.describe(status);
        if !status.is_fatal() {
            return Err(Error::Driver { call, code, message });
        }
        let crash = Error::KernelCrashed { kernels: suspects(), message: format!("{code}: {message}, told by {call}") };
        match self.lost.set(crash.to_string()) {
            Ok(()) => Err(crash),
            // Another thread was first; there is only one crash, and it has been reported.
            Err(_) => Err(Error::DeviceLost { cause: self.lost.get().cloned().unwrap_or_default() }),
        }
    }

    /// Returns the bytes that can be allocated, including those that the pool keeps, and the total bytes of the device.
    pub(in crate::host::runtime) fn memory_free(&self) -> Result<(usize, usize), Error> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are valid.
        unsafe { call!(self, cuMemGetInfo(&mut free, &mut total)) }?;
        let reserved = self.pool_attribute(CUmemPool_attribute::RESERVED_MEM_CURRENT)?;
        let used = self.pool_attribute(CUmemPool_attribute::USED_MEM_CURRENT)?;
        Ok((free.saturating_add(reserved.saturating_sub(used)), total))
    }

    fn pool_attribute(&self, attribute: CUmemPool_attribute) -> Result<usize, Error> {
        let mut value = 0u64;
        // SAFETY: the sizes of a pool are 64-bit numbers.
        unsafe { call!(self, cuMemPoolGetAttribute(self.pool, attribute, (&raw mut value).cast::<c_void>())) }?;
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    }

    /// Returns the bytes of the device's memory from an address to the end of its allocation.
    pub(in crate::host::runtime) fn memory_at(&self, what: &'static str, address: usize) -> Result<usize, Error> {
        self.enter()?;
        let (mut kind, mut ordinal, mut context) = (0 as c_uint, -1 as c_int, null_mut::<c_void>());
        let (mut start, mut bytes) = (0 as CUdeviceptr, 0usize);
        let mut attributes = [
            CUpointer_attribute::MEMORY_TYPE,
            CUpointer_attribute::DEVICE_ORDINAL,
            CUpointer_attribute::CONTEXT,
            CUpointer_attribute::RANGE_START_ADDR,
            CUpointer_attribute::RANGE_SIZE,
        ];
        let mut values = [
            (&raw mut kind).cast::<c_void>(),
            (&raw mut ordinal).cast(),
            (&raw mut context).cast(),
            (&raw mut start).cast(),
            (&raw mut bytes).cast(),
        ];
        // SAFETY: there are as many values as attributes, of their types; any address may be queried.
        unsafe {
            let (count, address) = (attributes.len() as c_uint, address as CUdeviceptr);
            call!(self, cuPointerGetAttributes(count, attributes.as_mut_ptr(), values.as_mut_ptr(), address))
        }?;
        if kind == 0 {
            let (asked, allowed) = (format!("at {address:#x}, which the driver does not know"), "memory of the driver");
            return Err(Error::InvalidOption { what, asked, allowed });
        }
        match usize::try_from(ordinal) {
            Ok(ordinal) if kind == DEVICE_MEMORY && ordinal != self.ordinal => Err(Error::WrongDevice {
                what,
                found: DeviceKind::Cuda { ordinal },
                expected: DeviceKind::Cuda { ordinal: self.ordinal },
            }),
            // Memory of a pool belongs to no context.
            _ if !context.is_null() && context != self.context.cast() => {
                Err(Error::WrongContext { what, ordinal: self.ordinal })
            }
            _ => Ok((start as usize).saturating_add(bytes).saturating_sub(address)),
        }
    }

    /// Returns whether the driver knows the host memory (page-locked or managed), so that it may read it after the copy
    /// call has returned.
    pub(super) fn is_known_host_memory(&self, address: *const u8) -> bool {
        let mut kind: c_uint = 0;
        let mut value = (&raw mut kind).cast::<c_void>();
        let mut attribute = CUpointer_attribute::MEMORY_TYPE;
        // SAFETY: this is one attribute, a 32-bit number; any address may be queried.
        let status = unsafe {
            (self.driver.cuPointerGetAttributes)(1, &mut attribute, &mut value, address.addr() as CUdeviceptr)
        };
        // An unknown address has no kind. If the driver cannot tell, assume the worst.
        status != Status::SUCCESS || kind != 0
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Only the device of another library's context is ever dropped, and that library may go on with the context.
        if self.keeper.is_some() && self.try_enter() {
            // SAFETY: every stream holds the device, so there is none left to launch a kernel. The driver waits for those that
            // still run.
            unsafe { self.unload() };
        }
    }
}

/// The GPU that a context belongs to.
pub(in crate::host::runtime) struct Found {
    pub(in crate::host::runtime) ordinal: usize,
    pub(in crate::host::runtime) is_primary: bool,
    device: CUdevice,
}

/// Returns the GPU of a context, and makes the context current.
///
/// # Safety
/// The handle is a context.
pub(in crate::host::runtime) unsafe fn find(context: *mut c_void) -> Result<Found, Error> {
    let driver = Driver::get()?;
    let context: CUcontext = context.cast();
    let mut device: CUdevice = 0;
    // SAFETY: guaranteed by the caller; the pointer is valid.
    unsafe {
        driver.check("cuCtxSetCurrent", (driver.cuCtxSetCurrent)(context))?;
        driver.check("cuCtxGetDevice", (driver.cuCtxGetDevice)(&mut device))?;
    }
    let available = device_count();
    let is_this = |&ordinal: &usize| {
        let (mut other, index) = (-1, c_int::try_from(ordinal).unwrap_or(-1));
        // SAFETY: the pointer is valid.
        unsafe { (driver.cuDeviceGet)(&mut other, index) == Status::SUCCESS && other == device }
    };
    let asked = usize::try_from(device).unwrap_or(usize::MAX);
    let ordinal = (0..available).find(is_this).ok_or(Error::NoSuchDevice { asked, available })?;

    let (mut flags, mut is_active) = (0, 0);
    // SAFETY: the pointers are valid.
    let status = unsafe { (driver.cuDevicePrimaryCtxGetState)(device, &mut flags, &mut is_active) };
    driver.check("cuDevicePrimaryCtxGetState", status)?;
    let mut primary: CUcontext = null_mut();
    if is_active != 0 {
        // There is no other way to ask for the handle.
        // SAFETY: the pointer is valid; what is retained is released.
        unsafe {
            driver.check("cuDevicePrimaryCtxRetain", (driver.cuDevicePrimaryCtxRetain)(&mut primary, device))?;
            driver.check("cuDevicePrimaryCtxRelease", (driver.cuDevicePrimaryCtxRelease)(device))?;
        }
    }
    Ok(Found { ordinal, is_primary: primary == context, device })
}

fn device_name(driver: &Driver, device: CUdevice) -> Result<String, Error> {
    let mut name = [0u8; 256];
    // SAFETY: the buffer has the length that is passed, and the driver terminates the name with a zero.
    let status = unsafe { (driver.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
    driver.check("cuDeviceGetName", status)?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn limits(driver: &Driver, device: CUdevice) -> Result<Limits, Error> {
    let major = attribute(driver, device, CUdevice_attribute::COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(driver, device, CUdevice_attribute::COMPUTE_CAPABILITY_MINOR)?;
    Ok(Limits {
        max_blocks: MAX_BLOCKS,
        shared_bytes_per_block: attribute(driver, device, CUdevice_attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            as usize,
        multiprocessors: attribute(driver, device, CUdevice_attribute::MULTIPROCESSOR_COUNT)?,
        compute_capability: Some((major, minor)),
    })
}

fn attribute(driver: &Driver, device: CUdevice, which: CUdevice_attribute) -> Result<u32, Error> {
    let mut value: c_int = 0;
    // SAFETY: the pointer is valid.
    let status = unsafe { (driver.cuDeviceGetAttribute)(&mut value, which, device) };
    driver.check("cuDeviceGetAttribute", status)?;
    Ok(u32::try_from(value).unwrap_or(0))
}
