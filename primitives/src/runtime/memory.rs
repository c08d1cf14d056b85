//! Device memory: the bytes of a stream's device, and the vector that owns some of them.

use super::cpu::CpuLane;
use super::device::Device;
use super::error::Error;
use super::lanes::{LaneKind, Use, Users};
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::step::Step;
use super::stream::{Queue, Stream};
use crate::kernel::{Reach, View};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use core::ptr::NonNull;
use std::backtrace::Backtrace;

/// Bytes on the device, in the stream's order. No bytes are no work.
impl Queue {
    /// Allocates bytes; at least one.
    pub(super) fn allocate(&self, bytes: usize) -> Result<NonNull<u8>, Error> {
        debug_assert_ne!(bytes, 0);
        if let Some(recording) = &mut *self.recording() {
            return recording.allocate(bytes);
        }
        let out_of_memory = || {
            let (free, total) = self.device.memory_free().unwrap_or((0, 0));
            Error::OutOfMemory { requested: bytes, free, total }
        };
        if self.is_made_to_fail() {
            return Err(out_of_memory());
        }
        let address = match &self.lane.kind {
            LaneKind::Cpu(lane) => {
                lane.device().allocate(bytes).ok().and_then(NonNull::new).ok_or_else(out_of_memory)?
            }
            LaneKind::Cuda(stream) => stream.allocate(bytes)?,
        };
        self.device.count_allocation(bytes);
        Ok(address)
    }

    /// Frees what [`allocate`](Self::allocate) gave on a stream of the same device.
    ///
    /// # Safety
    /// What uses the memory comes earlier in the stream's order.
    pub(super) unsafe fn free(&self, address: NonNull<u8>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if let Some(recording) = &mut *self.recording() {
            // SAFETY: the caller's promise.
            return unsafe { recording.free(address, bytes) };
        }
        match &self.lane.kind {
            LaneKind::Cpu(lane) => {
                let by = lane.is_queued().then(Backtrace::force_capture);
                // SAFETY: the caller's promise. Freeing cannot fail, and other work that does is told to who waits for it.
                let _ = unsafe { lane.submit(Step::Free { address: address.as_ptr(), bytes, by }) };
            }
            // SAFETY: the caller's promise.
            LaneKind::Cuda(stream) => unsafe { stream.free(address) },
        }
        self.device.count_free(bytes);
    }

    /// Sets bytes to zero.
    ///
    /// # Safety
    /// They are memory of the device, and may be written in the stream's order. So for all that follow.
    pub(super) unsafe fn zero(&self, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: the caller's promise. So for all that follow.
            LaneKind::Cpu(lane) => unsafe { self.submit_or_note(lane, Step::Zero { to, bytes }) },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.zero(to, bytes) },
        }
    }

    /// Copies from the host, whose memory may be used again when this returns.
    ///
    /// # Safety
    /// As [`zero`](Self::zero), and the host memory is valid.
    pub(super) unsafe fn upload(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let data = unsafe { core::slice::from_raw_parts(from, bytes) };
        let kept = self.recording().as_mut().map(|recording| recording.keep(data)).transpose()?;
        match (&self.lane.kind, kept) {
            // SAFETY: as above, and what is kept is memory of the device.
            (_, Some(kept)) => unsafe { self.copy(kept, to, bytes) },
            // SAFETY: as above.
            (LaneKind::Cuda(stream), None) => unsafe { stream.upload(from, to, bytes) },
            // SAFETY: as above.
            (LaneKind::Cpu(lane), None) if lane.is_queued() => unsafe {
                lane.submit(Step::Upload { data: data.into(), to })
            },
            // SAFETY: as above; it is done when this returns.
            (LaneKind::Cpu(lane), None) => unsafe { lane.submit(Step::UploadLater { from, to, bytes }) },
        }
    }

    /// Copies from the host.
    ///
    /// # Safety
    /// As [`zero`](Self::zero), and the host memory is valid and unchanged until the stream has passed the copy.
    pub(super) unsafe fn upload_later(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        self.refuse_while_recording("a copy of page-locked memory")?;
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: the caller's promise.
            LaneKind::Cpu(lane) => unsafe { lane.submit(Step::UploadLater { from, to, bytes }) },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.upload_later(from, to, bytes) },
        }
    }

    /// Copies elements of so many bytes to the host.
    ///
    /// # Safety
    /// As [`zero`](Self::zero), for reading; the host memory is valid and not used until the stream has passed the copy.
    pub(super) unsafe fn download_later(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        element_bytes: usize,
    ) -> Result<(), Error> {
        self.refuse_while_recording("reading back")?;
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: the caller's promise.
            LaneKind::Cpu(lane) => unsafe { lane.submit(Step::Download { from, to, bytes, element_bytes }) },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.download_later(from, to, bytes) },
        }
    }

    /// Copies on the device.
    ///
    /// # Safety
    /// As [`zero`](Self::zero), for both sides, which do not overlap.
    pub(super) unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        match &self.lane.kind {
            // SAFETY: the caller's promise.
            LaneKind::Cpu(lane) => unsafe { self.submit_or_note(lane, Step::Copy { from, to, bytes }) },
            // SAFETY: as above.
            LaneKind::Cuda(stream) => unsafe { stream.copy(from, to, bytes) },
        }
    }

    /// A step of the CPU device: submitted now, unless it is to be recorded.
    ///
    /// # Safety
    /// As for the step.
    unsafe fn submit_or_note(&self, lane: &CpuLane, step: Step) -> Result<(), Error> {
        if let Some(recording) = &mut *self.recording() {
            recording.note(step);
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { lane.submit(step) }
    }

    /// Waits until everything on the stream is done.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        self.refuse_while_recording("a wait for the device")?;
        match &self.lane.kind {
            LaneKind::Cpu(lane) => lane.finish(),
            LaneKind::Cuda(stream) => stream.synchronize(),
        }
    }
}

/// Memory with the stream that it belongs to: its home, in whose order it is freed.
pub(super) struct Allocation {
    home: Stream,
    address: NonNull<u8>,
    /// 0 if there is nothing to free.
    bytes: usize,
    users: Users,
}

// SAFETY: an address on the device; what happens there is ordered by streams.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(home: &Stream, address: NonNull<u8>, bytes: usize) -> Self {
        Self { home: home.clone(), address, bytes, users: Users::new(home.lane()) }
    }

    pub(super) fn device(&self) -> &Device {
        self.home.device()
    }

    /// Lets a stream of the device use the memory, after the work of other streams that conflicts with it.
    pub(super) fn open_to(&self, stream: &Stream, how: Use) -> Result<(), Error> {
        if self.bytes == 0 { Ok(()) } else { self.users.touch(self.home.lane(), stream.lane(), how) }
    }

    /// Remembers that a stream of the device uses the memory from now on, in an order that others see to: it is not freed
    /// before that is over.
    pub(super) fn note_use(&self, stream: &Stream) {
        if self.bytes > 0 {
            self.users.note(self.home.lane(), stream.lane());
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.users.leave_to(self.home.lane());
        // SAFETY: allocated with so many bytes; the home stream comes after every use.
        unsafe { self.home.queue().free(self.address, self.bytes) };
    }
}

/// A vector in device memory.
///
/// It belongs to the stream that it was made with, its home. It may be used on every stream of the device: what one stream
/// does with it waits, on the device, for what others did before, as far as one of the two writes. Dropping it does not wait:
/// it is freed in its home's order, after the work of all other streams that used it.
///
/// ```
/// use gpu_primitives::{Device, Error};
///
/// let stream = Device::default()?.stream()?;
/// let mut squares = stream.upload(&[0u32, 1, 4, 9, 16])?;
/// squares.slice_mut(..2)?.copy_from_host(&stream, &[100, 101])?;
/// assert_eq!(squares.to_vec(&stream)?, [100, 101, 4, 9, 16]);
/// assert_eq!(squares.slice(3..)?.to_vec(&stream)?, [9, 16]);
/// assert!(squares.slice(3..6).is_err());
/// # Ok::<(), Error>(())
/// ```
pub struct DeviceVec<T: Pod> {
    memory: Allocation,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Pod> DeviceVec<T> {
    pub(super) fn new(home: &Stream, len: usize) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= 256, "device memory is aligned to 256 bytes") };
        let bytes = home.device().bytes_of::<T>(len)?;
        let address = if bytes == 0 { NonNull::<T>::dangling().cast() } else { home.queue().allocate(bytes)? };
        Ok(Self::from_allocation(home, address, bytes, len))
    }

    fn from_allocation(home: &Stream, address: NonNull<u8>, bytes: usize, len: usize) -> Self {
        Self { memory: Allocation::new(home, address, bytes), len, element: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory it is.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// All of it, for reading.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::of(&self.memory, self.memory.address.as_ptr().cast(), self.len)
    }

    /// All of it, for writing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::of(&self.memory, self.memory.address.as_ptr().cast(), self.len)
    }

    /// A part of it, for reading.
    ///
    /// # Errors
    /// [`Error::RangeOutside`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
        self.as_slice().slice(range)
    }

    /// A part of it, for writing.
    ///
    /// # Errors
    /// [`Error::RangeOutside`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>, Error> {
        self.as_mut_slice().slice_mut(range)
    }

    /// The view that a kernel on `stream` reads it by.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and other failures of the driver.
    pub fn view(&self, stream: &Stream) -> Result<View<'_, Global<T>>, Error> {
        self.as_slice().view(stream)
    }

    /// The view that a kernel on `stream` writes it by.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn view_mut(&mut self, stream: &Stream) -> Result<View<'_, GlobalMut<T>>, Error> {
        // The slice made here ends with the call; the borrow does not.
        let memory = self.raw_view_mut(stream)?;
        // SAFETY: the vector is borrowed as long as the view.
        Ok(unsafe { View::new(memory, Reach::none()) })
    }

    /// [`view`](Self::view), for this crate, which keeps the memory until it is done with it.
    pub(crate) fn raw_view(&self, stream: &Stream) -> Result<Global<T>, Error> {
        self.as_slice().raw_view(stream)
    }

    /// [`view_mut`](Self::view_mut), for this crate, which keeps the memory until it is done with it.
    pub(crate) fn raw_view_mut(&mut self, stream: &Stream) -> Result<GlobalMut<T>, Error> {
        self.as_mut_slice().raw_view_mut(stream)
    }

    /// The elements. Waits for the stream.
    ///
    /// # Errors
    /// As [`DeviceSlice::copy_to_host`].
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        self.as_slice().to_vec(stream)
    }

    /// Copies the elements to the host. Waits for the stream.
    ///
    /// # Errors
    /// As [`DeviceSlice::copy_to_host`].
    pub fn copy_to_host(&self, stream: &Stream, into: &mut [T]) -> Result<(), Error> {
        self.as_slice().copy_to_host(stream, into)
    }

    /// Overwrites it with the elements, which may be used again when this returns. Waits only if they are page-locked.
    ///
    /// # Errors
    /// As [`DeviceSliceMut::copy_from_host`].
    pub fn copy_from_host(&mut self, stream: &Stream, data: &[T]) -> Result<(), Error> {
        self.as_mut_slice().copy_from_host(stream, data)
    }

    /// Overwrites it with elements of the same device. Does not wait.
    ///
    /// # Errors
    /// As [`DeviceSliceMut::copy_from`].
    pub fn copy_from<'a>(&mut self, stream: &Stream, from: impl Into<DeviceSlice<'a, T>>) -> Result<(), Error> {
        self.as_mut_slice().copy_from(stream, from)
    }

    /// A copy, whose home is `stream`. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::WrongDevice`], and other failures of the driver.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut copy = stream.uninit(self.len)?;
        copy.copy_from(stream, self)?;
        Ok(copy)
    }

    /// Gives up the memory: its home, its address and the number of elements. It counts as used until
    /// [`from_raw`](Self::from_raw) takes it back. Does not wait; work of other streams has been put before what comes
    /// later on the home stream.
    #[must_use = "the memory is freed by nobody else"]
    pub fn into_raw(mut self) -> (Stream, *mut T, usize) {
        let parts = (self.memory.home.clone(), self.memory.address.as_ptr().cast(), self.len);
        self.memory.bytes = 0;
        parts
    }

    /// Takes back what [`into_raw`](Self::into_raw) gave. `home` may be another stream of the same device.
    ///
    /// # Safety
    /// Address and length are as given, and not taken back twice. Work on the memory by other streams than `home` comes
    /// before what `home` does from now on.
    #[must_use]
    pub unsafe fn from_raw(home: &Stream, address: *mut T, len: usize) -> Self {
        // SAFETY: `into_raw` gave the address of an allocation, or a dangling one.
        let address = unsafe { NonNull::new_unchecked(address.cast()) };
        Self::from_allocation(home, address, len * size_of::<T>(), len)
    }
}

impl<T: Pod> fmt::Debug for DeviceVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceVec<{}>(len {}, on {})", core::any::type_name::<T>(), self.len, self.device().kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuOptions;

    fn limited(bytes: usize) -> Device {
        Device::cpu_with(CpuOptions { memory_limit: Some(bytes), ..CpuOptions::default() })
    }

    #[test]
    fn what_goes_up_comes_down() {
        for device in [Device::cpu(), Device::cpu_checked()] {
            let stream = device.stream().unwrap();
            let data: Vec<u32> = (0..1000).collect();
            let mut vector = stream.upload(&data).unwrap();
            assert_eq!(vector.to_vec(&stream).unwrap(), data);
            let copy = vector.try_clone(&stream).unwrap();
            vector.copy_from_host(&stream, &[9; 1000]).unwrap();
            assert_eq!(copy.to_vec(&stream).unwrap(), data);
            vector.slice_mut(10..20).unwrap().copy_from(&stream, copy.slice(500..510).unwrap()).unwrap();
            assert_eq!(
                vector.to_vec(&stream).unwrap()[9..21],
                [9, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 9]
            );
            assert_eq!(stream.zeroed::<u64>(3).unwrap().to_vec(&stream).unwrap(), [0; 3]);
            stream.synchronize().unwrap();
        }
    }

    #[test]
    fn nothing_is_no_trouble() {
        let stream = Device::cpu_checked().stream().unwrap();
        let mut empty = stream.upload::<u64>(&[]).unwrap();
        assert!(empty.is_empty() && stream.zeroed::<u8>(0).unwrap().is_empty());
        assert_eq!(empty.to_vec(&stream).unwrap(), []);
        assert_eq!(empty.slice(..).unwrap().len(), 0);
        assert_eq!(empty.raw_view(&stream).unwrap().as_ptr().addr() % 8, 0);
        empty.copy_from_host(&stream, &[]).unwrap();
        assert_eq!(empty.try_clone(&stream).unwrap().len(), 0);
        // Elements without size are as good as none.
        let units = stream.upload(&[(); 5]).unwrap();
        assert_eq!(units.to_vec(&stream).unwrap().len(), 5);
        assert_eq!(stream.device().memory_used(), 0);
        assert_eq!(stream.device().peak_memory(), 0);
    }

    #[test]
    fn memory_is_counted() {
        let device = Device::cpu_checked();
        let stream = device.stream().unwrap();
        let first = stream.zeroed::<u32>(100).unwrap();
        let second = stream.zeroed::<u64>(100).unwrap();
        assert_eq!((device.memory_used(), device.peak_memory()), (1200, 1200));
        drop(second);
        assert_eq!((device.memory_used(), device.peak_memory()), (400, 1200));
        device.reset_peak_memory();
        assert_eq!(device.peak_memory(), 400);
        let (home, address, len) = first.into_raw();
        assert_eq!(device.memory_used(), 400);
        // SAFETY: given a line above.
        let first = unsafe { DeviceVec::from_raw(&home, address, len) };
        assert_eq!(first.to_vec(&stream).unwrap(), [0; 100]);
        drop(first);
        assert_eq!(device.memory_used(), 0);
    }

    #[test]
    fn too_much_is_an_error_and_changes_nothing() {
        let device = limited(1000);
        let stream = device.stream().unwrap();
        let vector = stream.zeroed::<u8>(600).unwrap();
        match stream.zeroed::<u8>(600).unwrap_err() {
            Error::OutOfMemory { requested, free, total } => {
                assert_eq!((requested, total, free <= 400), (600, 1000, true))
            }
            other => panic!("{other}"),
        }
        assert!(matches!(stream.uninit::<u64>(usize::MAX), Err(Error::OutOfMemory { .. })));
        assert_eq!((device.memory_used(), device.peak_memory()), (600, 600));
        drop(vector);
        assert!(stream.zeroed::<u8>(600).is_ok());
    }

    #[test]
    fn the_checked_device_tells_what_was_never_written() {
        let stream = Device::cpu_checked().stream().unwrap();
        let mut vector = stream.uninit::<u32>(10).unwrap();
        assert!(matches!(vector.to_vec(&stream), Err(Error::UninitialisedRead { index: 0 })));
        vector.slice_mut(..4).unwrap().copy_from_host(&stream, &[1, 2, 3, 4]).unwrap();
        assert_eq!(vector.slice(1..4).unwrap().to_vec(&stream).unwrap(), [2, 3, 4]);
        assert!(matches!(vector.slice(1..).unwrap().to_vec(&stream), Err(Error::UninitialisedRead { index: 3 })));
        // A copy is as unwritten as what it was copied from.
        let copy = vector.try_clone(&stream).unwrap();
        assert!(matches!(copy.to_vec(&stream), Err(Error::UninitialisedRead { index: 4 })));
    }
}
