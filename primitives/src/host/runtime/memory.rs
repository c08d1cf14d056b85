//! The vector in device memory, and the memory that it owns.

use super::device::Device;
use super::host_blocks::Place;
use super::lanes::{LaneKind, Use, Users};
use super::left;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::error::Error;
use crate::host::runtime::call::{Reach, View};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::fmt;
use core::marker::PhantomData;
use core::num::NonZero;
use core::ops::RangeBounds;
use core::ptr::NonNull;

/// Memory and its home stream: it is freed in the order of that stream.
pub(super) struct Allocation {
    home: Stream,
    address: NonNull<u8>,
    /// 0 if there is nothing to free.
    bytes: usize,
    /// Whether another library frees it.
    is_foreign: bool,
    users: Users,
}

// SAFETY: this is an address on the device; streams order all accesses to it.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    fn new(home: &Stream, address: NonNull<u8>, bytes: usize) -> Self {
        Self { home: home.clone(), address, bytes, is_foreign: false, users: Users::new(home.lane()) }
    }

    /// Returns the same memory, to be freed in place of this.
    fn take(&mut self) -> Self {
        let users = core::mem::replace(&mut self.users, Users::new(self.home.lane()));
        Self { home: self.home.clone(), users, ..*self }
    }

    pub(super) fn device(&self) -> &Device {
        self.home.device()
    }

    /// Lets a stream of the device use the memory, after conflicting work of other streams.
    pub(super) fn open_to(&self, stream: &Stream, how: Use) -> Result<(), Error> {
        if self.bytes == 0 { Ok(()) } else { self.users.touch(self.home.lane(), stream.lane(), how) }
    }

    /// Records that a stream of the device uses the memory from now on, in an order that the caller ensures. The memory
    /// is not freed before that work is done.
    pub(super) fn note_use(&self, stream: &Stream) -> Result<(), Error> {
        if self.bytes == 0 { Ok(()) } else { self.users.note(self.home.lane(), stream.lane()) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if matches!(self.home.lane().kind, LaneKind::Cpu(_)) && left::leave(|| self.take()) {
            return;
        }
        self.users.leave_to(self.home.lane());
        if !self.is_foreign {
            // SAFETY: allocated with this many bytes; the home stream has been ordered after every use.
            unsafe { self.home.queue().free(self.address, self.bytes) };
        }
    }
}

/// A vector in device memory.
///
/// It belongs to the stream that created it, its home stream, but may be used on every stream of the device. Work of
/// one stream waits, on the device, for earlier work of other streams on the same vector if either of the two writes
/// it. Dropping the vector does not wait: it is freed in the order of its home stream, after the work of all other
/// streams that used it.
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

/// The address of vectors without memory, aligned for all types.
const NO_MEMORY: NonNull<u8> = NonNull::without_provenance(NonZero::new(256).unwrap());

impl<T: Pod> DeviceVec<T> {
    #[track_caller]
    pub(super) fn new(home: &Stream, place: Place, len: usize) -> Result<Self, Error> {
        const { assert!(align_of::<T>() <= 256, "device memory is aligned to 256 bytes") };
        let bytes = home.device().bytes_of::<T>(len)?;
        let address = match place {
            _ if bytes == 0 => NO_MEMORY,
            Place::Device => home.queue().allocate(bytes)?,
            Place::Host => home.queue().allocate_on_host(bytes)?,
        };
        Ok(Self::from_allocation(home, address, bytes, len))
    }

    fn from_allocation(home: &Stream, address: NonNull<u8>, bytes: usize, len: usize) -> Self {
        Self { memory: Allocation::new(home, address, bytes), len, element: PhantomData }
    }

    /// Wraps memory that another library frees. When the vector is dropped, later work of `home` comes after all work that
    /// uses it.
    ///
    /// # Safety
    /// The address is that of `len` elements on the device of `home`, which stay allocated as long as the vector, and in the
    /// order of `home` thereafter. The bytes fit into an `isize`.
    pub(super) unsafe fn of_foreign(home: &Stream, address: *mut T, len: usize) -> Self {
        let address = NonNull::new(address.cast()).filter(|_| len > 0).unwrap_or(NO_MEMORY);
        let mut vector = Self::from_allocation(home, address, len * size_of::<T>(), len);
        vector.memory.is_foreign = true;
        vector
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device that holds the memory.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Returns the whole vector as a slice, for reading.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::of(&self.memory, self.memory.address.as_ptr().cast(), self.len)
    }

    /// Returns the whole vector as a slice, for writing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::of(&self.memory, self.memory.address.as_ptr().cast(), self.len)
    }

    /// Returns a part of it, for reading.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
        self.as_slice().slice(range)
    }

    /// Returns a part of it, for writing.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>, Error> {
        self.as_mut_slice().slice_mut(range)
    }

    /// Returns a view that kernels on `stream` can read through.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and other driver errors.
    pub fn view(&self, stream: &Stream) -> Result<View<'_, Global<T>>, Error> {
        self.as_slice().view(stream)
    }

    /// Returns a view that kernels on `stream` can read and write through.
    ///
    /// # Errors
    /// Same as [`view`](Self::view).
    pub fn view_mut(&mut self, stream: &Stream) -> Result<View<'_, GlobalMut<T>>, Error> {
        // The slice created here ends with the call; the borrow does not.
        let memory = self.raw_view_mut(stream)?;
        // SAFETY: the vector is borrowed as long as the view lives.
        Ok(unsafe { View::new(memory, Reach::made_for(stream)) })
    }

    /// [`view`](Self::view) for this crate: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view(&self, stream: &Stream) -> Result<Global<T>, Error> {
        self.as_slice().raw_view(stream)
    }

    /// [`view_mut`](Self::view_mut) for this crate: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view_mut(&mut self, stream: &Stream) -> Result<GlobalMut<T>, Error> {
        self.as_mut_slice().raw_view_mut(stream)
    }

    /// Returns the elements as a host vector. Waits for the stream.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_host`].
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        self.as_slice().to_vec(stream)
    }

    /// Copies the elements to the host. Waits for the stream.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_host`].
    pub fn copy_to_host(&self, stream: &Stream, into: &mut [T]) -> Result<(), Error> {
        self.as_slice().copy_to_host(stream, into)
    }

    /// Copies `data` from the host. `data` may be reused when this returns. Waits only if `data` is page-locked.
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_host`].
    pub fn copy_from_host(&mut self, stream: &Stream, data: &[T]) -> Result<(), Error> {
        self.as_mut_slice().copy_from_host(stream, data)
    }

    /// Copies elements from memory of the same device. Does not wait.
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from`].
    pub fn copy_from<'a>(&mut self, stream: &Stream, from: impl Into<DeviceSlice<'a, T>>) -> Result<(), Error> {
        self.as_mut_slice().copy_from(stream, from)
    }

    /// Creates a copy whose home is `stream`. Does not wait.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::WrongDevice`], and other driver errors.
    pub fn try_clone(&self, stream: &Stream) -> Result<Self, Error> {
        let mut copy = stream.uninit(self.len)?;
        copy.copy_from(stream, self)?;
        Ok(copy)
    }

    /// Releases ownership of the memory and returns its home stream, its address and the number of elements. The memory
    /// counts as used until [`from_raw`](Self::from_raw) takes it back. Does not wait: later work on the home stream is
    /// ordered after the earlier work of other streams.
    #[must_use = "the memory is freed by nobody else"]
    pub fn into_raw(mut self) -> (Stream, *mut T, usize) {
        let len = self.memory.bytes.checked_div(size_of::<T>()).unwrap_or(self.len);
        let parts = (self.memory.home.clone(), self.memory.address.as_ptr().cast(), len);
        self.memory.bytes = 0;
        parts
    }

    /// Shortens the vector to its first `len` elements; does nothing if it has no more. The memory stays allocated.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns the same bytes as elements of another type of the same size: see [`DeviceSlice::cast`].
    ///
    /// # Errors
    /// Returns the vector itself if the sizes differ, or if the memory is misaligned for the other type.
    pub fn cast<W: Pod>(self) -> Result<DeviceVec<W>, Self> {
        if size_of::<T>() != size_of::<W>() || !self.memory.address.addr().get().is_multiple_of(align_of::<W>()) {
            return Err(self);
        }
        Ok(DeviceVec { memory: self.memory, len: self.len, element: PhantomData })
    }

    /// Returns the bytes of the elements.
    pub(super) fn into_bytes(self) -> DeviceVec<u8> {
        DeviceVec { len: self.len * size_of::<T>(), memory: self.memory, element: PhantomData }
    }

    /// Takes back memory that [`into_raw`](Self::into_raw) released. `home` may be another stream of the same device.
    ///
    /// # Safety
    /// Address and length are those that `into_raw` returned, and are not taken back twice. Work of other streams on
    /// the memory comes before all later work of `home`.
    #[must_use]
    pub unsafe fn from_raw(home: &Stream, address: *mut T, len: usize) -> Self {
        // SAFETY: `into_raw` returned the address of an allocation, or a dangling one; neither is null.
        let address = unsafe { NonNull::new_unchecked(address.cast()) };
        Self::from_allocation(home, address, len * size_of::<T>(), len)
    }
}

impl DeviceVec<u8> {
    /// Returns the bytes as `len` elements of another type, all that there are.
    ///
    /// # Panics
    /// If there is another number of bytes. (Vectors are aligned for all types.)
    pub(super) fn into_elements<T: Pod>(self, len: usize) -> DeviceVec<T> {
        const { assert!(align_of::<T>() <= 256, "device memory is aligned to 256 bytes") };
        let is_aligned = self.memory.address.addr().get().is_multiple_of(align_of::<T>());
        assert!(is_aligned && self.len == len * size_of::<T>(), "{len} elements of another type are other bytes");
        DeviceVec { memory: self.memory, len, element: PhantomData }
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
        // Zero-sized elements take no memory.
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
        // SAFETY: returned by `into_raw` above.
        let first = unsafe { DeviceVec::from_raw(&home, address, len) };
        assert_eq!(first.to_vec(&stream).unwrap(), [0; 100]);
        drop(first);
        assert_eq!(device.memory_used(), 0);
    }

    #[test]
    fn a_shortened_vector_still_owns_all_of_its_memory() {
        let device = limited(1000);
        let stream = device.stream().unwrap();
        let mut vector = stream.upload(&[1u32, 2, 3, 4]).unwrap();
        vector.truncate(9);
        assert_eq!(vector.len(), 4);
        vector.truncate(2);
        assert_eq!(vector.to_vec(&stream).unwrap(), [1, 2]);
        assert_eq!(device.memory_used(), 16);
        let (home, address, len) = vector.into_raw();
        assert_eq!(len, 4, "as allocated");
        // SAFETY: returned by `into_raw` above.
        drop(unsafe { DeviceVec::from_raw(&home, address, len) });
        assert_eq!(device.memory_used(), 0);
    }

    #[test]
    fn casts_keep_the_bytes_and_the_memory() {
        let device = limited(1000);
        let stream = device.stream().unwrap();
        let pairs = stream.upload(&[[1u16, 2], [3, 4], [5, 6]]).unwrap();
        let words = pairs.cast::<u32>().expect("4 bytes each, and a vector is aligned for all types");
        assert_eq!(words.to_vec(&stream).unwrap(), [0x2_0001, 0x4_0003, 0x6_0005]);
        let words = words.cast::<u64>().expect_err("8 bytes are not 4");
        assert_eq!((words.len(), device.memory_used()), (3, 12));
        // An empty vector has no memory, but an address that suits every type.
        assert!(stream.uninit::<[u8; 16]>(0).unwrap().cast::<u128>().is_ok());

        let mut halves = stream.upload(&[7u16, 1, 2]).unwrap();
        // SAFETY: two of the elements, as one that is aligned like them.
        let odd = unsafe {
            let first = halves.slice(1..).unwrap().as_ptr().cast::<[u16; 2]>();
            DeviceSlice::from_raw_parts(&device, first, 1)
        };
        assert!(odd.cast::<u32>().is_none(), "misaligned");
        assert!(odd.slice(..0).unwrap().cast::<u32>().is_some(), "no elements are never misaligned");
        assert!(halves.as_mut_slice().cast::<i16>().is_some());
        assert!(halves.as_mut_slice().cast::<u32>().is_none());
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
        // A copy of unwritten elements is unwritten too.
        let copy = vector.try_clone(&stream).unwrap();
        assert!(matches!(copy.to_vec(&stream), Err(Error::UninitialisedRead { index: 4 })));
    }
}
