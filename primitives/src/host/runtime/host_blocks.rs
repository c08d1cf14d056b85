//! Page-locked host memory in the order of streams: memory of the host that kernels use like memory of the device.
//!
//! A vector in host memory is a [`DeviceVec`](super::memory::DeviceVec) like any other. Kernels of a GPU read and write page-locked memory over
//! the link, at the address that it has on the host: all devices of this library have unified addressing. So views, copies, the order of
//! streams and kernels are those of device memory. For the CPU device it is memory of the CPU that does not count towards its limit.
//!
//! # When a block is free
//! A block must not be used by anybody else while work that is on a stream may still use it.
//! - A vector is freed in the order of its home stream, which follows all other streams that have used it, as for device memory: see
//!   [`Allocation`](super::memory). So all uses come before the moment of the free in the order of the home stream.
//! - The driver frees page-locked memory at once, not in the order of a stream. So an event is recorded on the home stream at that moment, and
//!   the block is *kept* with the event. It leaves for the driver only when the event has passed, and is reused by others only then; by an
//!   allocation on the same stream at once, because later work of that stream comes after the event in any case, and work of other streams
//!   on the new vector follows its home.
//! - If no event can be recorded, the home stream is waited for. If that fails, too, the device is lost, and the block is leaked.
//! - The CPU device frees host memory as it frees device memory: by a step in the order of the stream.
//!
//! Recorded work never frees host memory, because no vector in host memory can be allocated on a stream that records.
//!
//! # What is kept
//! Page-locking takes a second for a few GiB. So blocks come in few sizes, eight to each power of two, and blocks that were freed are kept for
//! later allocations: in all no more than there are in use, so that half of the page-locked memory is in use at least.

use super::cuda::{CudaDevice, CudaEvent, CudaStream};
use super::device::lock;
use crate::host::error::Error;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Where the elements of a vector are.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the memory of the device.
    #[default]
    Device,
    /// In page-locked memory of the host.
    Host,
}

/// The host memory that vectors of a device are in.
#[derive(Default)]
pub(super) struct HostBlocks {
    /// The blocks in use, by address: their bytes.
    used: Mutex<BTreeMap<usize, usize>>,
    used_bytes: AtomicUsize,
    /// Whether there ever was a block, so that freeing device memory takes no lock if not.
    is_any: AtomicBool,
    /// Blocks of page-locked memory that were freed, the oldest first.
    kept: Mutex<Vec<Kept>>,
}

/// A block that was freed at an event.
struct Kept {
    address: NonNull<u8>,
    bytes: usize,
    freed: CudaEvent,
}

// SAFETY: the block is used by nobody after the event, and whoever takes it away owns it.
unsafe impl Send for Kept {}

/// Blocks of this size and smaller ones have sizes that are powers of two.
const SMALL: usize = 1 << 20;
/// The smallest block: a page.
const LEAST: usize = 1 << 12;
/// As much as this may always be kept.
const KEPT: usize = 64 << 20;

/// Returns the bytes of a page-locked block for `bytes`.
fn block_bytes(bytes: usize) -> usize {
    if bytes <= SMALL {
        return bytes.max(LEAST).next_power_of_two();
    }
    let step = 1 << (bytes.ilog2() - 3);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

impl HostBlocks {
    /// Returns the bytes of the blocks in use.
    pub(super) fn used(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Notes that a block is in use.
    pub(super) fn add(&self, address: NonNull<u8>, bytes: usize) {
        lock(&self.used).insert(address.addr().get(), bytes);
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.is_any.store(true, Ordering::Release);
    }

    /// Notes that a block is no longer in use. Returns its bytes, or `None` if there is no block at this address: then it is that of device
    /// memory.
    pub(super) fn remove(&self, address: NonNull<u8>) -> Option<usize> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let bytes = lock(&self.used).remove(&address.addr().get())?;
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(bytes)
    }

    /// Returns whether an address is in a block that is in use.
    pub(super) fn holds(&self, address: *const u8) -> bool {
        self.is_any.load(Ordering::Acquire)
            && lock(&self.used)
                .range(..=address.addr())
                .next_back()
                .is_some_and(|(start, bytes)| address.addr() - start < *bytes)
    }

    /// Returns page-locked memory for `bytes` bytes, which work on the stream may use from now on, and the bytes of its block.
    pub(super) fn allocate(
        &self,
        gpu: &CudaDevice,
        stream: &Arc<CudaStream>,
        bytes: usize,
    ) -> Result<(NonNull<u8>, usize), Error> {
        let bytes = block_bytes(bytes);
        if let Some(block) = self.reuse(stream, bytes) {
            return Ok((block, bytes));
        }
        match gpu.allocate_pinned(bytes) {
            Err(Error::OutOfMemory { .. }) => {
                self.release_all(gpu);
                gpu.allocate_pinned(bytes)
            }
            allocated => allocated,
        }
        .map(|address| (address, bytes))
    }

    /// Takes a block of this size that was kept: one that work on the stream may use from now on.
    fn reuse(&self, stream: &Arc<CudaStream>, bytes: usize) -> Option<NonNull<u8>> {
        let mut kept = lock(&self.kept);
        let is_free = |block: &Kept| block.freed.is_of(stream) || block.freed.is_done().unwrap_or(false);
        let found = kept.iter().position(|block| block.bytes == bytes && is_free(block))?;
        Some(kept.remove(found).address)
    }

    /// Takes back a block that is no longer in use.
    ///
    /// # Safety
    /// The block came from [`allocate`](Self::allocate) of the same device, with these bytes. All uses of it come before later work of the
    /// stream.
    pub(super) unsafe fn keep(&self, gpu: &CudaDevice, stream: &Arc<CudaStream>, address: NonNull<u8>, bytes: usize) {
        match CudaEvent::record_untimed(stream) {
            Ok(freed) => lock(&self.kept).push(Kept { address, bytes, freed }),
            // SAFETY: all uses are over.
            Err(_) if stream.synchronize().is_ok() => unsafe { gpu.free_pinned(address) },
            Err(_) => return, // the device is lost
        }
        for block in self.excess() {
            // SAFETY: the event has passed, and nobody else has the block.
            unsafe { gpu.free_pinned(block.address) };
        }
    }

    /// Takes the oldest blocks, if more is kept than is worth it and if they are free.
    fn excess(&self) -> Vec<Kept> {
        let most = self.used().max(KEPT);
        let mut kept = lock(&self.kept);
        let mut bytes: usize = kept.iter().map(|block| block.bytes).sum();
        kept.extract_if(.., |block| {
            let is_excess = bytes > most && block.freed.is_done().unwrap_or(false);
            bytes -= if is_excess { block.bytes } else { 0 };
            is_excess
        })
        .collect()
    }

    /// Returns all kept blocks to the system, after the work that still uses them.
    pub(super) fn release_all(&self, gpu: &CudaDevice) {
        let kept = core::mem::take(&mut *lock(&self.kept));
        for block in kept {
            if block.freed.synchronize().is_ok() {
                // SAFETY: the event has passed, and nobody else has the block.
                unsafe { gpu.free_pinned(block.address) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::runtime::cpu::CpuOptions;
    use crate::host::runtime::device::Device;
    use crate::host::runtime::memory::DeviceVec;

    #[test]
    fn blocks_have_few_sizes() {
        assert_eq!([1, 4096, 4097, 1 << 20].map(block_bytes), [4096, 4096, 8192, 1 << 20]);
        assert_eq!([(1 << 20) + 1, (9 << 20) - 1, 9 << 20].map(block_bytes), [9 << 17, 9 << 20, 9 << 20]);
        for bytes in [1, 5000, 1 << 20, 12_345_678, 1 << 33] {
            let block = block_bytes(bytes);
            assert!(bytes <= block && block_bytes(block) == block, "{bytes}: {block}");
            assert!(bytes < SMALL || block - bytes <= bytes / 8, "{bytes}: {block}");
        }
    }

    #[test]
    fn host_memory_is_used_like_device_memory_and_counts_apart() {
        for checked in [false, true] {
            let device = Device::cpu_with(CpuOptions { memory_limit: Some(100), checked, ..CpuOptions::default() });
            let stream = device.stream().unwrap();
            let numbers: Vec<u32> = (0..1000).collect();
            let mut far = stream.uninit_in::<u32>(Place::Host, 1000).unwrap();
            far.copy_from_host(&stream, &numbers).unwrap();
            assert_eq!(far.to_vec(&stream).unwrap(), numbers);
            assert_eq!((device.memory_used(), device.host_memory_used()), (0, 4000));
            let mut near = stream.uninit::<u32>(10).unwrap();
            near.copy_from(&stream, far.slice(5..15).unwrap()).unwrap();
            assert_eq!(near.to_vec(&stream).unwrap(), numbers[5..15]);
            assert_eq!((device.memory_used(), device.host_memory_used()), (40, 4000));
            // Taken apart and put together, it is still host memory.
            let (home, address, len) = far.into_raw();
            assert_eq!(device.host_memory_used(), 4000);
            // SAFETY: returned by `into_raw` above.
            let far = unsafe { DeviceVec::from_raw(&home, address, len) };
            assert_eq!(far.to_vec(&stream).unwrap(), numbers);
            drop(far);
            assert_eq!((device.memory_used(), device.host_memory_used()), (40, 0));
            assert_eq!(stream.uninit_in::<()>(Place::Host, 7).unwrap().len(), 7);
            assert_eq!(stream.uninit_in::<u64>(Place::Host, 0).unwrap().to_vec(&stream).unwrap(), []);
            assert!(matches!(stream.uninit_in::<u64>(Place::Host, usize::MAX), Err(Error::OutOfMemory { .. })));
        }
    }

    /// A vector that is dropped while another stream still reads it is there until that has happened.
    #[test]
    fn host_memory_is_freed_in_the_order_of_streams() {
        let device = Device::cpu_checked();
        let (home, other) = (device.stream().unwrap(), device.stream().unwrap());
        let mut far = home.uninit_in::<u32>(Place::Host, 100).unwrap();
        far.copy_from_host(&home, &[7; 100]).unwrap();
        let mut copy = other.uninit::<u32>(100).unwrap();
        copy.copy_from(&other, &far).unwrap(); // queued: there are two streams
        drop(far);
        let mut next = home.uninit_in::<u32>(Place::Host, 100).unwrap();
        next.copy_from_host(&home, &[8; 100]).unwrap();
        assert_eq!(copy.to_vec(&other).unwrap(), [7; 100]);
        assert_eq!(next.to_vec(&home).unwrap(), [8; 100]);
    }

    #[test]
    fn host_memory_can_be_made_to_fail_and_is_not_recorded() {
        let device = Device::cpu_checked();
        let stream = device.stream().unwrap();
        stream.fail_allocation_after(Some(0));
        assert!(matches!(stream.uninit_in::<u8>(Place::Host, 3), Err(Error::OutOfMemory { requested: 3, .. })));
        assert!(stream.uninit_in::<u8>(Place::Host, 3).is_ok());
        assert!(matches!(
            stream.uninit_in::<u8>(Place::Host, 3).unwrap().to_vec(&stream),
            Err(Error::UninitialisedRead { .. })
        ));
        let recorded = stream.capture(|stream| stream.uninit_in::<u8>(Place::Host, 3).map(drop));
        assert!(matches!(recorded, Err(Error::NotRecordable { .. })));
    }
}
