//! Streams and memory of other libraries.

use super::cuda::CudaStream;
use super::device::{Backend, Device};
use super::lanes::{Lane, LaneKind};
use super::memory::DeviceVec;
use super::slice::{DeviceSlice, DeviceSliceMut};
use super::stream::Stream;
use crate::host::device_kind::DeviceKind;
use crate::host::error::Error;
use bytemuck::Pod;
use core::any::Any;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

/// What keeps a stream of another library from being destroyed.
pub(crate) trait Keeper: Any + Send + Sync {
    /// Returns whether nothing else uses the stream.
    #[cfg_attr(not(any(feature = "cudarc", feature = "cust")), allow(dead_code))]
    fn is_alone(&self) -> bool;
}

/// The caller keeps the stream.
impl Keeper for () {
    fn is_alone(&self) -> bool {
        false
    }
}

impl Stream {
    /// Wraps a stream that another library created (a `CUstream` or `cudaStream_t`), to work in its order.
    ///
    /// # Safety
    /// `raw` is a stream, and stays one until the returned value, its clones, and all vectors and events made with them
    /// are dropped.
    ///
    /// # Errors
    /// [`Error::NotCuda`] for the CPU device; [`Error::WrongContext`] if the stream belongs to another GPU, or to another
    /// context than the device's; [`Error::InvalidOption`] for the stream that is another one on each thread.
    pub unsafe fn borrow_cuda_stream(device: &Device, raw: *mut c_void) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::wrap(device, raw, Box::new(())) }
    }

    /// Makes later work on this stream wait for an event of another library (a `CUevent` or `cudaEvent_t`). The call itself does not wait.
    ///
    /// # Safety
    /// `raw` is an event of a context of this process, and stays one until this returns.
    ///
    /// # Errors
    /// [`Error::NotCuda`] for the CPU device; [`Error::NotRecordable`] if the stream is recording; driver errors.
    pub unsafe fn wait_cuda_event(&self, raw: *mut c_void) -> Result<(), Error> {
        self.refuse_recording("a wait for an event")?;
        let LaneKind::Cuda(stream) = &self.lane().kind else {
            return Err(Error::NotCuda { device: self.device().kind() });
        };
        // SAFETY: guaranteed by the caller.
        unsafe { stream.wait_raw(raw) }
    }

    /// [`borrow_cuda_stream`](Self::borrow_cuda_stream) with a value that keeps the stream.
    ///
    /// # Safety
    /// `raw` is a stream, and stays one as long as the keeper lives.
    pub(super) unsafe fn wrap(device: &Device, raw: *mut c_void, keeper: Box<dyn Keeper>) -> Result<Self, Error> {
        let Backend::Cuda(gpu) = device.backend() else { return Err(Error::NotCuda { device: device.kind() }) };
        // SAFETY: guaranteed by the caller.
        let stream = unsafe { CudaStream::borrow(gpu, raw, keeper)? };
        Ok(Self::of(device, Lane::new(LaneKind::Cuda(Arc::new(stream))), None))
    }
}

/// Memory of another library, lent to a stream for reading. Goes wherever a [`DeviceSlice`] goes, as `&lent`.
///
/// Other streams can use it too: they are ordered as with a [`DeviceVec`]. When it is dropped, the lender is told that the work
/// has been submitted (`G` does that), so the lender can go on at once. Nobody waits.
///
/// If it is leaked ([`mem::forget`](core::mem::forget)), the lender does not learn of the work. Where the value has only borrowed
/// the memory, the call that returns it is therefore `unsafe`. [`Stream::lend`] keeps the value to itself, and a tensor of DLPack
/// is leaked with it.
#[must_use = "the memory is lent as long as this value lives"]
pub struct Lent<T: Pod, G> {
    memory: DeviceVec<T>, // is dropped first, so that the work of all streams comes before what the guard does
    #[cfg_attr(not(any(feature = "cust", feature = "dlpack")), expect(dead_code))]
    guard: G,
}

/// Memory of another library, lent to a stream for reading and writing. Goes wherever a [`DeviceSliceMut`] goes, as
/// `&mut lent`. Otherwise like [`Lent`].
#[must_use = "the memory is lent as long as this value lives"]
pub struct LentMut<T: Pod, G> {
    memory: DeviceVec<T>,
    #[cfg_attr(not(any(feature = "cust", feature = "dlpack")), expect(dead_code))]
    guard: G,
}

/// What gives memory back to a library that does not know streams: it waits for the work on the memory first.
#[cfg(any(feature = "cust", feature = "dlpack"))]
pub struct Waiting<G> {
    stream: Stream,
    is_waited_for: bool,
    owner: Option<G>, // is dropped last
}

#[cfg(any(feature = "cust", feature = "dlpack"))]
impl<G> Waiting<G> {
    pub(crate) fn new(stream: &Stream, owner: G) -> Self {
        Self { stream: stream.clone(), is_waited_for: true, owner: Some(owner) }
    }
}

#[cfg(any(feature = "cust", feature = "dlpack"))]
impl<G> Drop for Waiting<G> {
    fn drop(&mut self) {
        if self.is_waited_for {
            // Another error means that the device is lost, and nothing uses the memory any more.
            if let Err(Error::HostCallInKernel) = self.stream.synchronize() {
                core::mem::forget(self.owner.take()); // inside a kernel nobody can wait
            }
        }
    }
}

#[cfg(any(feature = "cust", feature = "dlpack"))]
impl<T: Pod, G> Lent<T, Waiting<G>> {
    /// Gives the memory back without waiting for the work on it.
    ///
    /// # Safety
    /// Whatever uses the memory next comes later in the order of the stream that it was lent to.
    pub unsafe fn give_back_in_order(mut self) {
        self.guard.is_waited_for = false;
    }
}

#[cfg(any(feature = "cust", feature = "dlpack"))]
impl<T: Pod, G> LentMut<T, Waiting<G>> {
    /// Gives the memory back without waiting for the work on it.
    ///
    /// # Safety
    /// Whatever uses the memory next comes later in the order of the stream that it was lent to.
    pub unsafe fn give_back_in_order(mut self) {
        self.guard.is_waited_for = false;
    }
}

/// The address of memory that another library has, and what to do when it is no longer used.
pub(crate) struct Foreign<G> {
    /// The name of the memory in errors.
    pub what: &'static str,
    pub address: usize,
    pub len: usize,
    pub guard: G,
}

impl<G> Foreign<G> {
    /// # Safety
    /// The address is that of `len` elements on the stream's device. They stay allocated as long as the guard lives, and in the
    /// order of the stream thereafter. Until then nothing else writes them.
    pub unsafe fn lend<T: Pod>(self, stream: &Stream) -> Result<Lent<T, G>, Error> {
        // SAFETY: guaranteed by the caller.
        let (memory, guard) = unsafe { self.open(stream)? };
        Ok(Lent { memory, guard })
    }

    /// # Safety
    /// Same as [`lend`](Self::lend), and nothing else reads them either.
    pub unsafe fn lend_mut<T: Pod>(self, stream: &Stream) -> Result<LentMut<T, G>, Error> {
        // SAFETY: guaranteed by the caller.
        let (memory, guard) = unsafe { self.open(stream)? };
        Ok(LentMut { memory, guard })
    }

    unsafe fn open<T: Pod>(self, stream: &Stream) -> Result<(DeviceVec<T>, G), Error> {
        let Self { what, address, len, guard } = self;
        stream.device().bytes_of::<T>(len)?;
        if len > 0 {
            expect_address::<T>(what, address)?;
        }
        // SAFETY: guaranteed by the caller.
        Ok((unsafe { DeviceVec::of_foreign(stream, core::ptr::with_exposed_provenance_mut(address), len) }, guard))
    }
}

/// What both kinds have.
macro_rules! facts {
    () => {
        /// Returns the number of elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.memory.len()
        }

        /// Returns whether there are no elements.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.memory.is_empty()
        }

        /// Returns the device that holds the memory.
        #[must_use]
        pub fn device(&self) -> &Device {
            self.memory.device()
        }

        /// Returns the elements, for reading.
        #[must_use]
        pub fn as_slice(&self) -> DeviceSlice<'_, T> {
            self.memory.as_slice()
        }

        /// Returns a part of it, for reading.
        ///
        /// # Errors
        /// Returns [`Error::RangeOutside`] if the range is out of bounds.
        pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
            self.memory.slice(range)
        }

        /// Returns the elements as a host vector. Waits for the stream.
        ///
        /// # Errors
        /// Same as [`DeviceSlice::to_vec`].
        pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, Error> {
            self.memory.to_vec(stream)
        }
    };
}

impl<T: Pod, G> Lent<T, G> {
    facts!();
}

impl<T: Pod, G> LentMut<T, G> {
    facts!();

    /// Returns the elements, for writing.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        self.memory.as_mut_slice()
    }

    /// Returns a part of it, for writing.
    ///
    /// # Errors
    /// Returns [`Error::RangeOutside`] if the range is out of bounds.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>, Error> {
        self.memory.slice_mut(range)
    }
}

impl<'a, T: Pod, G> From<&'a Lent<T, G>> for DeviceSlice<'a, T> {
    fn from(lent: &'a Lent<T, G>) -> Self {
        lent.as_slice()
    }
}

impl<'a, T: Pod, G> From<&'a LentMut<T, G>> for DeviceSlice<'a, T> {
    fn from(lent: &'a LentMut<T, G>) -> Self {
        lent.as_slice()
    }
}

impl<'a, T: Pod, G> From<&'a mut LentMut<T, G>> for DeviceSliceMut<'a, T> {
    fn from(lent: &'a mut LentMut<T, G>) -> Self {
        lent.as_mut_slice()
    }
}

impl<T: Pod, G> fmt::Debug for Lent<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({:?})", self.as_slice())
    }
}

impl<T: Pod, G> fmt::Debug for LentMut<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LentMut({:?})", self.as_slice())
    }
}

/// Memory of another library that is known by its address. What can be checked has been checked: the address is not 0, it is
/// aligned for `T`, and the bytes can be counted. On a GPU, the driver also says that the memory belongs to the device and has
/// that many bytes.
///
/// ```
/// use gpu_primitives::{Device, Error, RawMemory, sort};
///
/// let device = Device::cpu();
/// let stream = device.stream()?;
/// let mut numbers = [3u32, 1, 2];
/// let memory = RawMemory::new(&device, numbers.as_mut_ptr(), 3)?;
/// // SAFETY: the array lives longer than what is lent, and nothing else uses it.
/// let mut lent = unsafe { memory.lend_mut(&stream)? };
/// sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
/// drop(lent);
/// assert_eq!(numbers, [1, 2, 3]);
///
/// let odd = numbers.as_mut_ptr().wrapping_byte_add(1);
/// assert!(matches!(RawMemory::new(&device, odd, 2), Err(Error::Misaligned { .. })));
/// # Ok::<(), Error>(())
/// ```
pub struct RawMemory<T> {
    device: Device,
    address: usize,
    len: usize,
    elements: PhantomData<*mut T>,
}

impl<T: Pod> RawMemory<T> {
    const WHAT: &'static str = "the memory at the address";

    /// Checks an address of `len` elements. On the CPU device it is an address on the host.
    ///
    /// # Errors
    /// [`Error::Misaligned`]; [`Error::InvalidOption`] if the address is 0, or unknown to the driver; [`Error::WrongDevice`] and
    /// [`Error::WrongContext`]; [`Error::LengthMismatch`] if the memory has fewer elements; [`Error::OutOfMemory`] if no memory
    /// can have that many; driver errors.
    pub fn new(device: &Device, address: *mut T, len: usize) -> Result<Self, Error> {
        let bytes = device.bytes_of::<T>(len)?;
        let address = address.expose_provenance();
        if bytes > 0 {
            expect_address::<T>(Self::WHAT, address)?;
            if let Backend::Cuda(gpu) = device.backend() {
                let found = gpu.memory_at(Self::WHAT, address)?;
                if found < bytes {
                    let found = found / size_of::<T>();
                    return Err(Error::LengthMismatch { what: Self::WHAT, expected: len, found });
                }
            }
        }
        Ok(Self { device: device.clone(), address, len, elements: PhantomData })
    }

    /// Lends the memory to a stream, for reading.
    ///
    /// # Safety
    /// During `'a`, and, even if the result is leaked, until all work that uses it is done, the memory stays allocated, and nothing else writes it. All of its
    /// bytes have been written. Work of other libraries on the memory that is not done comes earlier in the order of the stream.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] and [`Error::WrongContext`].
    pub unsafe fn lend<'a>(self, stream: &Stream) -> Result<Lent<T, PhantomData<&'a ()>>, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.on(stream)?.lend(stream) }
    }

    /// Lends the memory to a stream, for reading and writing.
    ///
    /// # Safety
    /// Same as [`lend`](Self::lend), but nothing else uses the memory at all. Its bytes need not have been written, except on
    /// the CPU device.
    ///
    /// # Errors
    /// Same as [`lend`](Self::lend).
    pub unsafe fn lend_mut<'a>(self, stream: &Stream) -> Result<LentMut<T, PhantomData<&'a ()>>, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.on(stream)?.lend_mut(stream) }
    }

    /// Returns the memory as a vector, for what is made of vectors. Dropping it frees nothing.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error, RawMemory};
    ///
    /// let device = Device::cpu();
    /// let stream = device.stream()?;
    /// let mut numbers = [1u32, 2, 3];
    /// let memory = RawMemory::new(&device, numbers.as_mut_ptr(), 3)?;
    /// // SAFETY: the array lives longer than the vector, and nothing writes it.
    /// let vector = unsafe { memory.into_vec(&stream)? };
    /// assert_eq!(vector.to_vec(&stream)?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Safety
    /// Same as [`lend`](Self::lend), until the vector has been dropped and all work that uses it is done. The vector is not written, and not
    /// given to [`DeviceVec::into_raw`].
    ///
    /// # Errors
    /// Same as [`lend`](Self::lend).
    pub unsafe fn into_vec(self, stream: &Stream) -> Result<DeviceVec<T>, Error> {
        expect_same_device(Self::WHAT, &self.device, stream.device())?;
        // SAFETY: guaranteed by the caller; the address has been checked.
        Ok(unsafe { DeviceVec::of_foreign(stream, core::ptr::with_exposed_provenance_mut(self.address), self.len) })
    }

    fn on<'a>(self, stream: &Stream) -> Result<Foreign<PhantomData<&'a ()>>, Error> {
        expect_same_device(Self::WHAT, &self.device, stream.device())?;
        Ok(Foreign { what: Self::WHAT, address: self.address, len: self.len, guard: PhantomData })
    }
}

impl<T> fmt::Debug for RawMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, kind) = (core::any::type_name::<T>(), self.device.kind());
        write!(f, "RawMemory<{name}>(len {}, at {:#x} on {kind})", self.len, self.address)
    }
}

/// Checks the address of at least one element.
fn expect_address<T>(what: &'static str, address: usize) -> Result<(), Error> {
    if address == 0 {
        return Err(Error::InvalidOption { what, asked: "at address 0".into(), allowed: "at the address of memory" });
    }
    let alignment = align_of::<T>();
    if address.is_multiple_of(alignment) { Ok(()) } else { Err(Error::Misaligned { what, address, alignment }) }
}

/// Checks that an object is on the device that it is used with.
pub(super) fn expect_same_device(what: &'static str, found: &Device, expected: &Device) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(match (found.kind(), expected.kind()) {
        (DeviceKind::Cuda { ordinal: found }, DeviceKind::Cuda { ordinal }) if found == ordinal => {
            Error::WrongContext { what, ordinal }
        }
        (found, expected) => Error::WrongDevice { what, found, expected },
    })
}

/// Memory of another library that can be lent to a [`Stream`]: a reference to a slice, for reading, or a mutable one, for reading
/// and writing. Tuples of up to four of them are lent together.
pub trait Lend<'a> {
    /// What the stream gets: a [`DeviceSlice`] or a [`DeviceSliceMut`], or a tuple of them.
    type Slice<'s>;
    /// What tells the owner that the work has been submitted, when it is dropped.
    type Lent;

    /// Does what [`Stream::lend_until_dropped`] says.
    ///
    /// # Safety
    /// Same as [`Stream::lend_until_dropped`].
    #[doc(hidden)]
    unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error>;

    /// Returns the memory.
    #[doc(hidden)]
    fn slice(lent: &mut Self::Lent) -> Self::Slice<'_>;
}

macro_rules! lend_together {
    ($($memory:ident $at:tt),+) => {
        impl<'a, $($memory: Lend<'a>),+> Lend<'a> for ($($memory,)+) {
            type Slice<'s> = ($($memory::Slice<'s>,)+);
            type Lent = ($($memory::Lent,)+);

            unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error> {
                // SAFETY: guaranteed by the caller.
                Ok(($(unsafe { self.$at.lend_until_dropped(stream)? },)+))
            }

            fn slice(lent: &mut Self::Lent) -> Self::Slice<'_> {
                ($($memory::slice(&mut lent.$at),)+)
            }
        }
    };
}

lend_together!(A 0, B 1);
lend_together!(A 0, B 1, C 2);
lend_together!(A 0, B 1, C 2, D 3);

impl Stream {
    /// Lends memory of another library to the stream while `work` runs: `stream.lend(&mut scores, |scores| …)`. Shared references
    /// are lent for reading, mutable ones for reading and writing, and tuples together: `stream.lend((&from, &mut to), |(from,
    /// to)| …)`.
    ///
    /// The work on the stream comes after what the other library has submitted on the memory. Other streams can use the memory in
    /// `work`, too: they are ordered as with a [`DeviceVec`]. When `work` returns, the other library is told that it can go on.
    /// Whether that waits is up to the library; see [`interop`](crate::interop).
    ///
    /// # Errors
    /// [`Error::WrongContext`] or [`Error::WrongDevice`] if the memory belongs to another context or device;
    /// [`Error::InvalidOption`] if the stream does not belong to the other library and that library needs it;
    /// [`Error::Misaligned`]; driver errors; the errors of `work`.
    pub fn lend<'a, M: Lend<'a>, R, E: From<Error>>(
        &'a self,
        memory: M,
        work: impl FnOnce(M::Slice<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        // SAFETY: it is dropped at the end of this function.
        let mut lent = unsafe { memory.lend_until_dropped(self)? };
        work(M::slice(&mut lent))
    }

    /// Lends memory of another library to the stream until the result is dropped, for what does not fit into the closure of
    /// [`lend`](Self::lend).
    ///
    /// # Safety
    /// The result is dropped, and not leaked, before the memory is used in any other way, or freed. The borrow of the memory may
    /// end earlier: [`mem::forget`](core::mem::forget) is safe.
    ///
    /// # Errors
    /// Same as [`lend`](Self::lend).
    pub unsafe fn lend_until_dropped<'a, M: Lend<'a>>(&'a self, memory: M) -> Result<M::Lent, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { memory.lend_until_dropped(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Sets a flag when it is dropped.
    struct Told<'a>(&'a Cell<bool>);

    impl Drop for Told<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    fn foreign<'a, T>(data: &mut [T], told: &'a Cell<bool>) -> Foreign<Told<'a>> {
        let address = data.as_mut_ptr().expose_provenance();
        Foreign { what: "the array", address, len: data.len(), guard: Told(told) }
    }

    #[test]
    fn lent_memory_is_used_like_a_vector_and_not_freed() {
        let device = Device::cpu_with(crate::CpuOptions::default());
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        let (mut data, told) = ([3u32, 1, 2], Cell::new(false));
        // SAFETY: the array lives longer than what is lent, and nothing else uses it.
        let mut lent = unsafe { foreign(&mut data, &told).lend_mut::<u32>(&stream).unwrap() };
        crate::sort::keys_in_place(&stream, &mut lent, crate::sort::Options::new()).unwrap();
        assert_eq!(lent.to_vec(&other).unwrap(), [1, 2, 3]);
        lent.slice_mut(..1).unwrap().copy_from_host(&stream, &[9]).unwrap();
        assert!(!told.get());
        drop(lent);
        assert!(told.get());
        assert_eq!((data, device.memory_used()), ([9, 2, 3], device.memory_used()));

        // SAFETY: as above.
        let lent = unsafe { foreign(&mut data, &told).lend::<u32>(&stream).unwrap() };
        let sum = crate::reduce::sum(&stream, &lent).unwrap().get(&stream).unwrap();
        assert_eq!((sum, lent.len(), lent.slice(1..).unwrap().len()), (14, 3, 2));
    }

    #[test]
    fn raw_memory_is_checked() {
        let (device, elsewhere) = (Device::cpu(), Device::cpu_checked());
        let mut data = [1u32, 2, 3];
        let address = data.as_mut_ptr();
        let null = core::ptr::null_mut::<u32>();
        assert!(matches!(RawMemory::new(&device, null, 1), Err(Error::InvalidOption { .. })));
        assert!(RawMemory::new(&device, null, 0).is_ok());
        let odd = RawMemory::new(&device, address.wrapping_byte_add(2), 1);
        assert!(matches!(odd, Err(Error::Misaligned { alignment: 4, .. })));
        assert!(matches!(RawMemory::new(&device, address, usize::MAX / 2), Err(Error::OutOfMemory { .. })));
        let memory = RawMemory::new(&device, address, 3).unwrap();
        // SAFETY: it is not lent.
        let lent = unsafe { memory.lend(&elsewhere.stream().unwrap()) };
        assert!(matches!(lent, Err(Error::WrongDevice { .. })));
        let stream = device.stream().unwrap();
        // SAFETY: the array lives longer, and nothing else uses it.
        let lent = unsafe { RawMemory::new(&device, address, 3).unwrap().lend(&stream).unwrap() };
        assert_eq!(lent.to_vec(&stream).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn lent_memory_must_be_aligned() {
        let stream = Device::cpu().stream().unwrap();
        let (mut data, told) = ([0u64; 2], Cell::new(false));
        let mut odd = foreign(&mut data, &told);
        odd.address += 1;
        // SAFETY: nothing is lent.
        let error = unsafe { odd.lend::<u32>(&stream) }.unwrap_err();
        assert!(matches!(error, Error::Misaligned { what: "the array", alignment: 4, .. }), "{error}");
        assert!(told.get(), "the owner has it back");
    }
}
