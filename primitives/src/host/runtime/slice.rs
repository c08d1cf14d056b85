//! Slices of device memory: parts of vectors, or memory of other libraries.

use super::device::Device;
use super::foreign::expect_same_device;
use super::host_memory::host_memory;
use super::lanes::Use;
use super::memory::{Allocation, DeviceVec};
use super::stream::Stream;
use crate::host::error::{Error, expect_len};
use crate::host::runtime::call::{Reach, View};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, Range, RangeBounds};

/// A read-only slice of device memory: the device's `&[T]`.
#[derive(Clone, Copy)]
pub struct DeviceSlice<'a, T> {
    address: *const T,
    len: usize,
    owner: Owner<'a>,
    elements: PhantomData<&'a [T]>,
}

/// A mutable slice of device memory: the device's `&mut [T]`.
///
/// As with `&mut`, nothing else can use the elements while it lives:
///
/// ```compile_fail,E0502
/// # use gpu_primitives::{Device, Error};
/// let stream = Device::cpu().stream()?;
/// let mut vector = stream.upload(&[1u32, 2, 3, 4])?;
/// let mut low = vector.slice_mut(..2)?;
/// low.copy_from(&stream, vector.slice(2..)?)?; // use `split_at_mut`
/// # Ok::<(), Error>(())
/// ```
pub struct DeviceSliceMut<'a, T> {
    address: *mut T,
    len: usize,
    owner: Owner<'a>,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: this is an address on the device, borrowed like a reference.
unsafe impl<T: Sync> Send for DeviceSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for DeviceSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for DeviceSliceMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for DeviceSliceMut<'_, T> {}

/// The owner of the memory.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Vector(&'a Allocation),
    /// A vector of which other threads may use other parts.
    Parts(&'a Allocation),
    /// A vector whose uses the caller orders.
    Unordered(&'a Allocation),
    /// Another library, which manages lifetime and ordering.
    Foreign(&'a Device),
}

impl<'a> Owner<'a> {
    fn device(self) -> &'a Device {
        match self {
            Self::Vector(memory) | Self::Parts(memory) | Self::Unordered(memory) => memory.device(),
            Self::Foreign(device) => device,
        }
    }

    /// Returns the same memory, with its uses ordered by the caller.
    fn unordered(self) -> Self {
        match self {
            Self::Vector(memory) | Self::Parts(memory) => Self::Unordered(memory),
            other => other,
        }
    }

    /// Returns the same memory, which is used part by part from now on.
    fn divided(self) -> Self {
        match self {
            Self::Vector(memory) => Self::Parts(memory),
            other => other,
        }
    }

    /// Lets `stream` use the memory.
    fn open_to(self, stream: &Stream, how: Use) -> Result<(), Error> {
        expect_same_device("the memory", self.device(), stream.device())?;
        match self {
            Self::Vector(memory) => memory.open_to(stream, how),
            Self::Parts(memory) => memory.open_to(stream, Use::Part),
            Self::Unordered(memory) => memory.note_use(stream),
            Self::Foreign(_) => Ok(()),
        }
    }
}

/// The accessors that both kinds of slice share.
macro_rules! facts {
    () => {
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
            self.owner.device()
        }
    };
}

impl<'a, T: Pod> DeviceSlice<'a, T> {
    pub(super) fn of(memory: &'a Allocation, address: *const T, len: usize) -> Self {
        Self { address, len, owner: Owner::Vector(memory), elements: PhantomData }
    }

    /// Creates a slice of memory that another library owns.
    ///
    /// # Safety
    /// `address` points to `len` elements in memory of `device`, aligned for `T`, and all their bytes have been
    /// written. During `'a`, and until all work that was given the slice is done, the memory stays allocated and
    /// nothing else writes it. For the CPU device it is host memory.
    #[must_use]
    pub unsafe fn from_raw_parts(device: &'a Device, address: *const T, len: usize) -> Self {
        Self { address, len, owner: Owner::Foreign(device), elements: PhantomData }
    }

    facts!();

    /// Returns the device address of the first element.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.address
    }

    /// Returns a part of it.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self, Error> {
        let range = resolve(range, self.len)?;
        Ok(Self { address: self.address.wrapping_add(range.start), len: range.len(), ..*self })
    }

    /// Returns the same elements without automatic ordering: a stream that uses the slice does not wait for the work of
    /// other streams on the same elements. The vector is still freed only after all work that uses the slice.
    ///
    /// # Safety
    /// Until the work that was given the slice is done, no other stream writes the elements, unless
    /// [events](Stream::wait) order the two.
    #[must_use]
    pub unsafe fn unordered(self) -> Self {
        Self { owner: self.owner.unordered(), ..self }
    }

    /// Returns the same bytes as elements of another type of the same size. Returns `None` if the sizes differ, or if
    /// the memory is misaligned for the other type.
    ///
    /// ```
    /// # use gpu_primitives::{Device, Error};
    /// let stream = Device::cpu().stream()?;
    /// let floats = stream.upload(&[1.0f32, -0.0])?;
    /// let bits = floats.as_slice().cast::<u32>().expect("both have 4 bytes");
    /// assert_eq!(bits.to_vec(&stream)?, [0x3f80_0000, 0x8000_0000]);
    /// assert!(floats.as_slice().cast::<u64>().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn cast<W: Pod>(self) -> Option<DeviceSlice<'a, W>> {
        let is_aligned = self.len == 0 || self.address.addr().is_multiple_of(align_of::<W>());
        let fits = size_of::<T>() == size_of::<W>() && is_aligned;
        let Self { address, len, owner, .. } = self;
        fits.then(|| DeviceSlice { address: address.cast(), len, owner, elements: PhantomData })
    }

    /// Returns the bytes of the elements.
    #[must_use]
    pub fn bytes(self) -> DeviceSlice<'a, u8> {
        let Self { address, len, owner, .. } = self;
        DeviceSlice { address: address.cast(), len: len * size_of::<T>(), owner, elements: PhantomData }
    }

    /// Splits the slice: the elements before `mid`, and the rest.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn split_at(&self, mid: usize) -> Result<(Self, Self), Error> {
        Ok((self.slice(..mid)?, self.slice(mid..)?))
    }

    /// Returns a view that kernels on `stream` can read through.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and other driver errors.
    pub fn view(&self, stream: &Stream) -> Result<View<'a, Global<T>>, Error> {
        let memory = self.raw_view(stream)?;
        // SAFETY: the memory is borrowed as long as the view lives.
        Ok(unsafe { View::new(memory, Reach::made_for(stream)) })
    }

    /// [`view`](Self::view) for this crate: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view(&self, stream: &Stream) -> Result<Global<T>, Error> {
        self.owner.open_to(stream, Use::Read)?;
        // SAFETY: device memory holds that many elements, and the caller keeps it allocated.
        Ok(unsafe { Global::from_raw(self.address, self.len) })
    }

    /// Returns the elements as a host vector. Waits for the stream.
    ///
    /// # Errors
    /// Same as [`copy_to_host`](Self::copy_to_host), and [`Error::OutOfMemory`] if the host has too little memory.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
        let mut elements = Vec::new();
        elements.try_reserve_exact(self.len).map_err(|_| {
            let (free, total) = host_memory();
            Error::OutOfMemory { requested: self.len.saturating_mul(size_of::<T>()), free, total }
        })?;
        // SAFETY: the elements were reserved, and `read` writes all of them.
        unsafe {
            self.read(stream, elements.as_mut_ptr())?;
            elements.set_len(self.len);
        }
        Ok(elements)
    }

    /// Copies the elements to the host. Waits for the stream.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::WrongDevice`]; [`Error::UninitialisedRead`] on the checked CPU device;
    /// [`Error::KernelCrashed`] and other driver errors.
    pub fn copy_to_host(&self, stream: &Stream, into: &mut [T]) -> Result<(), Error> {
        expect_len("the host slice", self.len, into.len())?;
        // SAFETY: the host slice has as many elements.
        unsafe { self.read(stream, into.as_mut_ptr()) }
    }

    /// Copies the elements to the host and waits.
    ///
    /// # Safety
    /// `to` has room for all elements.
    unsafe fn read(&self, stream: &Stream, to: *mut T) -> Result<(), Error> {
        let from = self.raw_view(stream)?.as_ptr().cast();
        let queue = stream.queue();
        // SAFETY: the elements and the destination stay borrowed until the copy is done.
        let copy = unsafe { queue.download_later(from, to.cast(), self.len * size_of::<T>(), size_of::<T>())? };
        queue.wait_for(copy)
    }
}

impl<'a, T: Pod> DeviceSliceMut<'a, T> {
    pub(super) fn of(memory: &'a Allocation, address: *mut T, len: usize) -> Self {
        Self { address, len, owner: Owner::Vector(memory), elements: PhantomData }
    }

    /// Creates a slice of memory that another library owns.
    ///
    /// # Safety
    /// Same as [`DeviceSlice::from_raw_parts`], but nothing else may use the memory at all during that time. Its bytes
    /// need not have been written, except on the CPU device.
    #[must_use]
    pub unsafe fn from_raw_parts(device: &'a Device, address: *mut T, len: usize) -> Self {
        Self { address, len, owner: Owner::Foreign(device), elements: PhantomData }
    }

    facts!();

    /// Returns the device address of the first element.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.address
    }

    /// Reborrows the elements for a shorter time, to pass them on and keep the slice.
    #[must_use]
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut { address: self.address, len: self.len, owner: self.owner, elements: PhantomData }
    }

    /// Returns the same elements without automatic ordering: see [`DeviceSlice::unordered`].
    ///
    /// # Safety
    /// Until the work that was given the slice is done, no other stream uses the elements, unless
    /// [events](Stream::wait) order the two.
    #[must_use]
    pub unsafe fn unordered(self) -> Self {
        Self { owner: self.owner.unordered(), ..self }
    }

    /// Returns the same elements, for reading.
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice { address: self.address, len: self.len, owner: self.owner, elements: PhantomData }
    }

    /// Returns a part of it, for reading.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
        self.as_slice().slice(range)
    }

    /// Returns a part of it. Call [`reborrow`](Self::reborrow) first to keep the whole slice.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice_mut(self, range: impl RangeBounds<usize>) -> Result<Self, Error> {
        let range = resolve(range, self.len)?;
        Ok(Self { address: self.address.wrapping_add(range.start), len: range.len(), ..self })
    }

    /// Returns the same bytes as elements of another type: see [`DeviceSlice::cast`].
    #[must_use]
    pub fn cast<W: Pod>(self) -> Option<DeviceSliceMut<'a, W>> {
        let is_aligned = self.len == 0 || self.address.addr().is_multiple_of(align_of::<W>());
        let fits = size_of::<T>() == size_of::<W>() && is_aligned;
        let Self { address, len, owner, .. } = self;
        fits.then(|| DeviceSliceMut { address: address.cast(), len, owner, elements: PhantomData })
    }

    /// Returns the bytes of the elements.
    #[must_use]
    pub fn bytes(self) -> DeviceSliceMut<'a, u8> {
        let Self { address, len, owner, .. } = self;
        DeviceSliceMut { address: address.cast(), len: len * size_of::<T>(), owner, elements: PhantomData }
    }

    /// Splits the slice: the elements before `mid`, and the rest. Call [`reborrow`](Self::reborrow) first to keep the
    /// whole slice.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn split_at_mut(self, mid: usize) -> Result<(Self, Self), Error> {
        let Range { start, end } = resolve(mid.., self.len)?;
        let owner = self.owner.divided();
        let tail = Self { address: self.address.wrapping_add(start), len: end - start, owner, ..self };
        Ok((Self { len: mid, owner, ..self }, tail))
    }

    /// Returns a view that kernels on `stream` can read and write through.
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and other driver errors.
    pub fn view_mut(&mut self, stream: &Stream) -> Result<View<'_, GlobalMut<T>>, Error> {
        let memory = self.raw_view_mut(stream)?;
        // SAFETY: the memory is borrowed as long as the view lives.
        Ok(unsafe { View::new(memory, Reach::made_for(stream)) })
    }

    /// [`view_mut`](Self::view_mut) for this crate: the caller keeps the memory alive until its work is done.
    pub(crate) fn raw_view_mut(&mut self, stream: &Stream) -> Result<GlobalMut<T>, Error> {
        self.owner.open_to(stream, Use::Write)?;
        // SAFETY: device memory holds that many elements, and the caller keeps it allocated.
        Ok(unsafe { GlobalMut::from_raw(self.address, self.len) })
    }

    /// Returns the elements as a host vector. Waits for the stream.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::to_vec`].
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
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], and other driver errors.
    pub fn copy_from_host(&mut self, stream: &Stream, data: &[T]) -> Result<(), Error> {
        expect_len("the host slice", self.len, data.len())?;
        let to = self.raw_view_mut(stream)?.as_const().as_ptr().cast_mut();
        // SAFETY: both have that many elements, and this slice may be written.
        unsafe { stream.queue().upload(data.as_ptr().cast(), to.cast(), size_of_val(data)) }
    }

    /// Copies elements from memory of the same device. Does not wait.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::WrongDevice`], and other driver errors.
    pub fn copy_from<'b>(&mut self, stream: &Stream, from: impl Into<DeviceSlice<'b, T>>) -> Result<(), Error> {
        let from = from.into();
        expect_len("the source of the copy", self.len, from.len)?;
        let from = from.raw_view(stream)?.as_ptr();
        let to = self.raw_view_mut(stream)?.as_const().as_ptr().cast_mut();
        // SAFETY: both have that many elements. One is borrowed mutably, so they do not overlap.
        unsafe { stream.queue().copy(from.cast(), to.cast(), self.len * size_of::<T>()) }
    }
}

impl<'a> DeviceSlice<'a, u8> {
    /// Returns `len` elements of another type that begin here. Returns `None` if there are too few bytes, or if the memory is
    /// misaligned for the type.
    pub(super) fn elements<T: Pod>(self, len: usize) -> Option<DeviceSlice<'a, T>> {
        let is_aligned = len == 0 || self.address.addr().is_multiple_of(align_of::<T>());
        let fits = is_aligned && len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= self.len);
        let Self { address, owner, .. } = self;
        fits.then(|| DeviceSlice { address: address.cast(), len, owner, elements: PhantomData })
    }
}

impl<'a> DeviceSliceMut<'a, u8> {
    /// Returns `len` elements of another type: see [`DeviceSlice::elements`].
    pub(super) fn elements<T: Pod>(self, len: usize) -> Option<DeviceSliceMut<'a, T>> {
        let is_aligned = len == 0 || self.address.addr().is_multiple_of(align_of::<T>());
        let fits = is_aligned && len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= self.len);
        let Self { address, owner, .. } = self;
        fits.then(|| DeviceSliceMut { address: address.cast(), len, owner, elements: PhantomData })
    }
}

impl<'a, T: Pod> From<&'a DeviceVec<T>> for DeviceSlice<'a, T> {
    fn from(vector: &'a DeviceVec<T>) -> Self {
        vector.as_slice()
    }
}

impl<'a, T: Pod> From<&DeviceSlice<'a, T>> for DeviceSlice<'a, T> {
    fn from(slice: &DeviceSlice<'a, T>) -> Self {
        *slice
    }
}

impl<'a, T: Pod> From<&'a DeviceSliceMut<'_, T>> for DeviceSlice<'a, T> {
    fn from(slice: &'a DeviceSliceMut<'_, T>) -> Self {
        slice.as_slice()
    }
}

/// Stands for the memory of devices in the error of a call that is given memory of the host.
#[doc(hidden)]
#[derive(Debug)]
pub struct MemoryOfDevices(());

/// Says what is in the memory of devices. Arrays, slices and vectors of the host are not: nothing implements this trait, which only
/// makes the compiler say so. The memory is the parameter, and not `Self`, because the compiler would prefer to report `Into` then.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Host}` is in the memory of the host, and the call takes memory of a device",
    label = "elements of the host",
    note = "copy them to the device first: `&stream.upload(…)?`; `&mut stream.uninit(len)?` is memory to write"
)]
pub trait Has<Host: ?Sized> {}

/// Conversions that no type has, whose error says what to do.
macro_rules! not_on_device {
    ($([$($generics:tt)*] $host:ty;)*) => { $(
        impl<'a, T: Pod, $($generics)*> From<&'a $host> for DeviceSlice<'a, T>
        where
            MemoryOfDevices: Has<$host>,
        {
            fn from(_: &'a $host) -> Self {
                unreachable!("memory of the host is not on a device")
            }
        }

        impl<'a, T: Pod, $($generics)*> From<&'a mut $host> for DeviceSliceMut<'a, T>
        where
            MemoryOfDevices: Has<$host>,
        {
            fn from(_: &'a mut $host) -> Self {
                unreachable!("memory of the host is not on a device")
            }
        }
    )* };
}

not_on_device! {
    [] [T];
    [] Vec<T>;
    [const N: usize] [T; N];
}

impl<'a, T: Pod> From<&'a mut DeviceVec<T>> for DeviceSliceMut<'a, T> {
    fn from(vector: &'a mut DeviceVec<T>) -> Self {
        vector.as_mut_slice()
    }
}

impl<'a, T: Pod> From<&'a mut DeviceSliceMut<'_, T>> for DeviceSliceMut<'a, T> {
    fn from(slice: &'a mut DeviceSliceMut<'_, T>) -> Self {
        slice.reborrow()
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.owner.device().kind();
        write!(f, "DeviceSlice<{}>(len {}, on {device})", core::any::type_name::<T>(), self.len)
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.owner.device().kind();
        write!(f, "DeviceSliceMut<{}>(len {}, on {device})", core::any::type_name::<T>(), self.len)
    }
}

/// Returns the indices of a range if they lie within `len` elements.
fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>, Error> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len { Ok(start..end) } else { Err(Error::RangeOutside { start, end, len }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(resolve(.., 5).unwrap(), 0..5);
        assert_eq!(resolve(2..=4, 5).unwrap(), 2..5);
        assert_eq!(resolve(5.., 5).unwrap(), 5..5);
        assert_eq!(resolve((Bound::Excluded(1), Bound::Unbounded), 5).unwrap(), 2..5);
        for (start, end) in [(0, 6), (6, 6), (4, 3), (usize::MAX, usize::MAX)] {
            let error = resolve(start..end, 5).unwrap_err();
            assert!(matches!(error, Error::RangeOutside { start: s, end: e, len: 5 } if (s, e) == (start, end)));
        }
        assert!(resolve(..=usize::MAX, 5).is_err());
    }

    #[test]
    fn parts_of_vectors() {
        let stream = Device::cpu_checked().stream().unwrap();
        let mut vector = stream.upload(&[0u16, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        let (low, high) = vector.as_slice().split_at(3).unwrap();
        assert_eq!(low.to_vec(&stream).unwrap(), [0, 1, 2]);
        assert_eq!(high.slice(1..3).unwrap().to_vec(&stream).unwrap(), [4, 5]);
        assert!(vector.as_slice().split_at(9).is_err());
        let mut copy = stream.zeroed::<u16>(3).unwrap();
        copy.copy_from(&stream, DeviceSlice::from(&low)).unwrap();
        assert_eq!(copy.to_vec(&stream).unwrap(), [0, 1, 2]);

        let mut whole = vector.as_mut_slice();
        let (mut low, high) = whole.reborrow().split_at_mut(4).unwrap();
        low.copy_from(&stream, &high).unwrap();
        assert!(whole.reborrow().split_at_mut(9).is_err());
        let mut tail = whole.reborrow().slice_mut(6..).unwrap();
        tail.copy_from_host(&stream, &[60, 70]).unwrap();
        let mut host = [0; 3];
        whole.slice(4..7).unwrap().copy_to_host(&stream, &mut host).unwrap();
        assert_eq!(host, [4, 5, 60]);
        assert_eq!(vector.to_vec(&stream).unwrap(), [4, 5, 6, 7, 4, 5, 60, 70]);
    }

    #[test]
    fn lengths_must_agree() {
        let stream = Device::cpu().stream().unwrap();
        let mut vector = stream.upload(&[1u8, 2, 3]).unwrap();
        let other = stream.upload(&[1u8, 2]).unwrap();
        let is_mismatch = |result| matches!(result, Err(Error::LengthMismatch { expected: 3, found: 2, .. }));
        assert!(is_mismatch(vector.copy_from_host(&stream, &[1, 2])));
        assert!(is_mismatch(vector.copy_to_host(&stream, &mut [1, 2])));
        assert!(is_mismatch(vector.copy_from(&stream, &other)));
        assert_eq!(vector.to_vec(&stream).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn devices_must_agree() {
        let (here, there) = (Device::cpu().stream().unwrap(), Device::cpu_checked().stream().unwrap());
        let mut vector = here.upload(&[1u8, 2, 3]).unwrap();
        let other = there.upload(&[1u8, 2, 3]).unwrap();
        let wrong = (crate::host::runtime::DeviceKind::Cpu, crate::host::runtime::DeviceKind::CpuChecked);
        let is_wrong =
            |error: Error| matches!(error, Error::WrongDevice { found, expected, .. } if (found, expected) == wrong);
        assert!(is_wrong(vector.view(&there).unwrap_err()));
        assert!(is_wrong(vector.view_mut(&there).unwrap_err()));
        assert!(is_wrong(vector.to_vec(&there).unwrap_err()));
        assert!(is_wrong(vector.try_clone(&there).unwrap_err()));
        assert!(matches!(vector.copy_from(&here, &other), Err(Error::WrongDevice { .. })));
    }

    #[test]
    fn memory_of_others() {
        let device = Device::cpu();
        let stream = device.stream().unwrap();
        let mut host = [1u32, 2, 3];
        // SAFETY: the array outlives the slice, and nothing else uses it in the meantime.
        let mut slice = unsafe { DeviceSliceMut::from_raw_parts(&device, host.as_mut_ptr(), 3) };
        slice.reborrow().slice_mut(1..).unwrap().copy_from_host(&stream, &[20, 30]).unwrap();
        assert_eq!(slice.to_vec(&stream).unwrap(), [1, 20, 30]);
        assert_eq!(host, [1, 20, 30]);
    }
}
