//! The functions of the driver library, resolved on first use.
//!
//! A status is a number, since a driver newer than this crate may have codes that an enum here would not. A missing
//! library or function is an error, not a panic.

use super::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUfunction_attribute, CUgraph,
    CUgraphExec, CUjit_option, CUlaunchConfig, CUlibrary, CUlibraryOption, CUmemPool_attribute, CUmemoryPool, CUmodule,
    CUpointer_attribute, CUstream, CUstreamCaptureMode,
};
use crate::host::error::Error;
use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use core::mem::transmute_copy;
use std::sync::OnceLock;

/// The oldest CUDA version that has all functions below, in the driver's format and as major and minor version.
const NEEDED: (c_int, (u32, u32)) = (11040, (11, 4));

/// The return value of a driver function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Status(c_uint);

impl Status {
    pub(super) const SUCCESS: Self = Self(0);
    pub(super) const OUT_OF_MEMORY: Self = Self(2);
    pub(super) const NO_DEVICE: Self = Self(100);
    pub(super) const NOT_FOUND: Self = Self(500);
    pub(super) const NOT_READY: Self = Self(600);

    /// Returns whether the error destroyed the context: all later calls fail.
    pub(super) fn is_fatal(self) -> bool {
        matches!(
            self.0,
            // Uncorrectable memory error, NVLink error, contained memory error.
            214 | 220 | 226
            // Illegal address, timeout, destroyed context, assertion.
            | 700 | 702 | 709 | 710
            // Stack error, illegal instruction, misaligned address, invalid address space, invalid counter, failure.
            | 714..=719
        )
    }

    /// Returns whether the driver failed to compile or load the PTX: image, binary, PTX, compiler, version, source.
    pub(super) fn is_about_ptx(self) -> bool {
        matches!(self.0, 200 | 209 | 218 | 221..=223 | 300)
    }
}

/// Declares the table of functions: name, symbol in the library, arguments. Old drivers may lack the optional ones.
macro_rules! functions {
    (
        $($name:ident = $symbol:literal ($($argument:ty),*);)*
        $(@optional $newer:ident = $newer_symbol:literal ($($newer_argument:ty),*);)*
    ) => {
        /// The driver functions that this crate calls.
        #[allow(non_snake_case, reason = "the names under which the driver's manual has them")]
        pub(super) struct Driver {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> Status,)*
            $(pub(super) $newer: Option<unsafe extern "C" fn($($newer_argument),*) -> Status>,)*
            /// The newest version of CUDA that it supports, as it counts them: 12030 is 12.3.
            pub(super) version: c_int,
        }

        impl Driver {
            fn load(version: c_int) -> Result<Self, Unusable> {
                // SAFETY: these are the signatures in the driver's manual, unchanged since the version checked for.
                Ok(unsafe { Self { $($name: symbol($symbol)?,)* $($newer: symbol($newer_symbol).ok(),)* version } })
            }
        }
    };
}

functions! {
    cuInit = "cuInit" (c_uint);
    cuGetErrorName = "cuGetErrorName" (Status, *mut *const c_char);
    cuGetErrorString = "cuGetErrorString" (Status, *mut *const c_char);

    cuDeviceGet = "cuDeviceGet" (*mut CUdevice, c_int);
    cuDeviceGetCount = "cuDeviceGetCount" (*mut c_int);
    cuDeviceGetName = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    cuDeviceGetAttribute = "cuDeviceGetAttribute" (*mut c_int, CUdevice_attribute, CUdevice);
    cuDeviceGetDefaultMemPool = "cuDeviceGetDefaultMemPool" (*mut CUmemoryPool, CUdevice);
    cuDevicePrimaryCtxGetState = "cuDevicePrimaryCtxGetState" (CUdevice, *mut c_uint, *mut c_int);
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2" (CUdevice);

    cuCtxGetDevice = "cuCtxGetDevice" (*mut CUdevice);
    cuCtxGetCurrent = "cuCtxGetCurrent" (*mut CUcontext);
    cuCtxSetCurrent = "cuCtxSetCurrent" (CUcontext);
    cuCtxSynchronize = "cuCtxSynchronize" ();

    cuMemPoolSetAttribute = "cuMemPoolSetAttribute" (CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolGetAttribute = "cuMemPoolGetAttribute" (CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolTrimTo = "cuMemPoolTrimTo" (CUmemoryPool, usize);
    cuMemGetInfo = "cuMemGetInfo_v2" (*mut usize, *mut usize);
    cuMemAllocFromPoolAsync = "cuMemAllocFromPoolAsync" (*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
    cuMemFreeAsync = "cuMemFreeAsync" (CUdeviceptr, CUstream);
    cuMemHostAlloc = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    cuMemFreeHost = "cuMemFreeHost" (*mut c_void);
    cuMemHostRegister = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    cuMemHostUnregister = "cuMemHostUnregister" (*mut c_void);
    cuPointerGetAttributes = "cuPointerGetAttributes" (c_uint, *mut CUpointer_attribute, *mut *mut c_void, CUdeviceptr);

    cuMemsetD8Async = "cuMemsetD8Async" (CUdeviceptr, u8, usize, CUstream);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (CUdeviceptr, CUdeviceptr, usize, CUstream);

    cuStreamCreate = "cuStreamCreate" (*mut CUstream, c_uint);
    cuStreamDestroy = "cuStreamDestroy_v2" (CUstream);
    cuStreamGetCtx = "cuStreamGetCtx" (CUstream, *mut CUcontext);
    cuStreamSynchronize = "cuStreamSynchronize" (CUstream);
    cuStreamWaitEvent = "cuStreamWaitEvent" (CUstream, CUevent, c_uint);

    cuEventCreate = "cuEventCreate" (*mut CUevent, c_uint);
    cuEventDestroy = "cuEventDestroy_v2" (CUevent);
    cuEventRecord = "cuEventRecord" (CUevent, CUstream);
    cuEventQuery = "cuEventQuery" (CUevent);
    cuEventSynchronize = "cuEventSynchronize" (CUevent);
    cuEventElapsedTime = "cuEventElapsedTime" (*mut f32, CUevent, CUevent);

    cuStreamBeginCapture = "cuStreamBeginCapture_v2" (CUstream, CUstreamCaptureMode);
    cuStreamEndCapture = "cuStreamEndCapture" (CUstream, *mut CUgraph);
    cuGraphInstantiateWithFlags = "cuGraphInstantiateWithFlags" (*mut CUgraphExec, CUgraph, c_ulonglong);
    cuGraphLaunch = "cuGraphLaunch" (CUgraphExec, CUstream);
    cuGraphExecDestroy = "cuGraphExecDestroy" (CUgraphExec);
    cuGraphDestroy = "cuGraphDestroy" (CUgraph);

    cuModuleLoadDataEx = "cuModuleLoadDataEx" (*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void);
    cuModuleUnload = "cuModuleUnload" (CUmodule);
    cuModuleGetFunction = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    cuFuncSetAttribute = "cuFuncSetAttribute" (CUfunction, CUfunction_attribute, c_int);
    cuLaunchKernel = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void
    );
    @optional cuLibraryLoadData = "cuLibraryLoadData" (
        *mut CUlibrary, *const c_void, *mut CUjit_option, *mut *mut c_void, c_uint, *mut CUlibraryOption, *mut *mut c_void, c_uint
    );
    @optional cuLibraryGetModule = "cuLibraryGetModule" (*mut CUmodule, CUlibrary);
    @optional cuLibraryUnload = "cuLibraryUnload" (CUlibrary);
    @optional cuLaunchKernelEx = "cuLaunchKernelEx" (*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void);
}

/// Why the driver cannot be used; determined once and returned to every caller.
#[derive(Clone, Debug)]
enum Unusable {
    Missing,
    TooOld(c_int),
    MissingSymbol(&'static str),
    NoDevice,
    Failed { call: &'static str, code: String, message: String },
}

impl Driver {
    /// Returns the initialised driver.
    pub(super) fn get() -> Result<&'static Self, Error> {
        static DRIVER: OnceLock<Result<Driver, Unusable>> = OnceLock::new();
        DRIVER.get_or_init(Self::start).as_ref().map_err(|unusable| match unusable.clone() {
            Unusable::Missing => Error::DriverMissing,
            Unusable::TooOld(found) => Error::DriverTooOld { found: version(found), needed: NEEDED.1 },
            Unusable::MissingSymbol(call) => Error::Driver {
                call,
                code: "missing symbol".into(),
                message: "libcuda does not have the function: reinstall the NVIDIA driver, or use the CPU device"
                    .into(),
            },
            Unusable::NoDevice => Error::NoSuchDevice { asked: 0, available: 0 },
            Unusable::Failed { call, code, message } => Error::Driver { call, code, message },
        })
    }

    fn start() -> Result<Self, Unusable> {
        if sys::library().is_none() {
            return Err(Unusable::Missing);
        }
        // SAFETY: this is the signature in the driver's manual.
        let get_version: unsafe extern "C" fn(*mut c_int) -> Status = unsafe { symbol("cuDriverGetVersion")? };
        let mut found = 0;
        // SAFETY: this function may be called before `cuInit`; the pointer is valid.
        if unsafe { get_version(&mut found) } != Status::SUCCESS || found < NEEDED.0 {
            return Err(Unusable::TooOld(found));
        }
        let driver = Self::load(found)?;
        // SAFETY: takes no pointers.
        match unsafe { (driver.cuInit)(0) } {
            Status::SUCCESS => Ok(driver),
            Status::NO_DEVICE => Err(Unusable::NoDevice),
            status => {
                let (code, message) = driver.describe(status);
                Err(Unusable::Failed { call: "cuInit", code, message })
            }
        }
    }

    /// Returns the driver's name and description of a status.
    pub(super) fn describe(&self, status: Status) -> (String, String) {
        let text = |function: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = core::ptr::null();
            // SAFETY: the pointer is valid; on success the driver returns a string that lives as long as the library.
            unsafe {
                (function(status, &mut text) == Status::SUCCESS && !text.is_null())
                    .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let code = text(self.cuGetErrorName).unwrap_or_else(|| format!("error {}", status.0));
        (code, text(self.cuGetErrorString).unwrap_or_else(|| "the driver has no words for it".into()))
    }

    /// Turns a status into a result, for calls that cannot be the first to see a crash.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), Error> {
        if status == Status::SUCCESS {
            return Ok(());
        }
        let (code, message) = self.describe(status);
        Err(Error::Driver { call, code, message })
    }
}

/// Returns the number of GPUs that the driver sees; 0 without a driver.
pub(in crate::host::runtime) fn device_count() -> usize {
    let Ok(driver) = Driver::get() else { return 0 };
    let mut count = 0;
    // SAFETY: the pointer is valid.
    let status = unsafe { (driver.cuDeviceGetCount)(&mut count) };
    if status == Status::SUCCESS { usize::try_from(count).unwrap_or(0) } else { 0 }
}

/// Returns a function of the library.
///
/// # Safety
/// `F` is the function's type.
unsafe fn symbol<F: Copy>(name: &'static str) -> Result<F, Unusable> {
    const { assert!(size_of::<F>() == size_of::<*const ()>()) };
    let address = address(name)?;
    // SAFETY: the caller guarantees the function's type, and it has the size of an address.
    Ok(unsafe { transmute_copy(&address) })
}

/// Finds a function, whatever its type. Compiled once, not for every type.
fn address(name: &'static str) -> Result<*const (), Unusable> {
    let library = sys::library().ok_or(Unusable::Missing)?;
    // SAFETY: any symbol has an address.
    let symbol = unsafe { library.get::<*const ()>(name) };
    match symbol {
        Ok(symbol) if !symbol.is_null() => Ok(*symbol),
        _ => Err(Unusable::MissingSymbol(name)),
    }
}

fn version(number: c_int) -> (u32, u32) {
    let number = number.unsigned_abs();
    (number / 1000, number % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(version(NEEDED.0), NEEDED.1);
        assert_eq!(version(13000), (13, 0));
    }

    #[test]
    fn a_crash_is_told_from_a_refusal() {
        assert!(Status(700).is_fatal() && Status(719).is_fatal());
        assert!(!Status::OUT_OF_MEMORY.is_fatal() && !Status::NOT_READY.is_fatal() && !Status(701).is_fatal());
    }
}
