//! Page-locked memory of the host.
//!
//! The driver allocates and clears pages one after the other: 0.43 s per GiB on a server with an H200. Pages that all cores have cleared
//! are registered with the driver ten times faster, huge ones in 0.04 s per GiB, and kernels reach the same rates with them. So large blocks
//! are mapped here and registered, where this is possible: on Linux, if kernels may use the addresses of the host for such memory. All
//! other blocks come from the driver.

use super::device::{CudaDevice, call};
use super::driver::Status;
#[cfg(target_os = "linux")]
use super::mapping::{self, Mapping};
use crate::host::error::Error;
use crate::host::runtime::device::lock;
use crate::host::runtime::host_memory;
use core::ffi::c_uint;
use core::ptr::{NonNull, null_mut};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Flag of allocations and of registrations: every context may copy from and to the memory.
const PORTABLE: c_uint = 1;
/// The bytes of the smallest block that is registered.
const LEAST: usize = 4 << 20;

/// No memory is mapped elsewhere.
#[cfg(not(target_os = "linux"))]
type Mapping = core::convert::Infallible;

/// The registered blocks of a device.
pub(super) struct Locked {
    /// Whether kernels find registered memory at its address of the host.
    shares_addresses: bool,
    /// The blocks, by address.
    blocks: Mutex<BTreeMap<usize, Mapping>>,
}

impl Locked {
    pub(super) fn new(shares_addresses: bool) -> Self {
        Self { shares_addresses, blocks: Mutex::default() }
    }
}

impl CudaDevice {
    /// Allocates page-locked memory of the host, zeroed. `bytes` is not 0.
    pub(in crate::host::runtime) fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        self.enter()?;
        if let Some(address) = self.register_pinned(bytes)? {
            return Ok(address);
        }
        let mut address = null_mut();
        // SAFETY: the pointer is valid.
        let status = unsafe { (self.driver().cuMemHostAlloc)(&mut address, bytes, PORTABLE) };
        if status == Status::OUT_OF_MEMORY {
            return Err(out_of_memory(bytes));
        }
        self.check("cuMemHostAlloc", status)?;
        let address: NonNull<u8> = NonNull::new(address.cast()).ok_or_else(|| out_of_memory(bytes))?;
        // SAFETY: this many bytes were allocated.
        unsafe { address.write_bytes(0, bytes) };
        Ok(address)
    }

    /// Maps and registers a large block. Returns `None` if the driver has to allocate the block.
    #[cfg(target_os = "linux")]
    fn register_pinned(&self, bytes: usize) -> Result<Option<NonNull<u8>>, Error> {
        if bytes < LEAST || !self.locked.shares_addresses {
            return Ok(None);
        }
        // The system would map more than there is, and end the process when it is written to.
        if bytes > host_memory().0 {
            return Err(out_of_memory(bytes));
        }
        let Some(mut mapping) = mapping::map(bytes) else { return Ok(None) };
        let address = NonNull::from(&mut *mapping).cast::<u8>();
        // SAFETY: the region is mapped, and stays so until it has been unregistered.
        let status = unsafe { (self.driver().cuMemHostRegister)(address.as_ptr().cast(), bytes, PORTABLE) };
        if status != Status::SUCCESS {
            return Ok(None);
        }
        lock(&self.locked.blocks).insert(address.addr().get(), mapping);
        Ok(Some(address))
    }

    #[cfg(not(target_os = "linux"))]
    fn register_pinned(&self, _: usize) -> Result<Option<NonNull<u8>>, Error> {
        Ok(None)
    }

    /// Frees page-locked memory.
    ///
    /// # Safety
    /// The memory came from [`allocate_pinned`](Self::allocate_pinned), and nothing uses it any more.
    pub(in crate::host::runtime) unsafe fn free_pinned(&self, address: NonNull<u8>) {
        let mapping = lock(&self.locked.blocks).remove(&address.addr().get());
        let is_entered = self.try_enter();
        // A failure cannot be reported here, and leaks the memory at worst: it stays mapped if it may be registered still.
        let Some(mapping) = mapping else {
            if is_entered {
                // SAFETY: guaranteed by the caller.
                let _ = unsafe { (self.driver().cuMemFreeHost)(address.as_ptr().cast()) };
            }
            return;
        };
        // SAFETY: guaranteed by the caller.
        let is_free = is_entered && unsafe { call!(self, cuMemHostUnregister(address.as_ptr().cast())) }.is_ok();
        if !is_free {
            core::mem::forget(mapping);
        }
    }
}

fn out_of_memory(requested: usize) -> Error {
    let (free, total) = host_memory();
    Error::OutOfMemory { requested, free, total }
}
