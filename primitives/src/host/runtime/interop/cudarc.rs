//! Memory, streams and contexts of cudarc.
//!
//! Two lines sort somebody's `CudaSlice`, on the stream that it was made on:
//!
//! ```no_run
//! use gpu_primitives::{Stream, sort};
//! # use cudarc::driver::CudaContext;
//!
//! # let cuda = CudaContext::new(0)?.default_stream();
//! let mut scores = cuda.clone_htod(&[0.5f32, -1.0, 2.5])?;
//!
//! let stream = Stream::from_cudarc(&cuda)?;
//! stream.lend(&mut scores, |scores| sort::keys_in_place(&stream, scores, sort::Options::new()))?;
//!
//! assert_eq!(cuda.clone_dtoh(&scores)?, [-1.0, 0.5, 2.5]); // in the order of the stream
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Order
//! Work runs on the caller's stream. cudarc records events at the uses of a `CudaSlice` when its context has several streams.
//! Lending waits for these events on the device, and when the closure returns, the event of this use is recorded. So other
//! streams of cudarc see the result without further ado. If event tracking is off, the caller orders streams, as with cudarc
//! alone. Nobody waits.
//!
//! # Temporary memory
//! A stream keeps the temporary memory of its primitives. [`Stream::from_cudarc`] returns the same stream for the same
//! `CudaStream` every time, so nothing is lost by calling it before each primitive. A stream that nothing else uses is dropped
//! when another one is wrapped.
//!
//! # Contexts
//! The primary context of a GPU, which `CudaContext::new` returns, is the one of [`Device::cuda`]. Any other context is a
//! device of its own. This crate never resets or destroys a context.

use crate::host::runtime::foreign::{Foreign, Keeper};
use crate::host::runtime::{Device, DeviceSlice, DeviceSliceMut, Error, Lend, Lent, LentMut, Stream};
use ::cudarc::driver::sys::CUstream;
use ::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, DriverError, SyncOnDrop,
};
use bytemuck::Pod;
use core::ffi::c_void;
use core::mem::ManuallyDrop;
use std::sync::Arc;

impl Device {
    /// Returns the device of a context. It keeps the context until it and everything made with it are dropped.
    ///
    /// ```no_run
    /// # use cudarc::driver::CudaContext;
    /// use gpu_primitives::Device;
    ///
    /// let context = CudaContext::new(0)?;
    /// assert_eq!(Device::from_cudarc(&context)?, Device::cuda(0)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`Device::cuda`].
    pub fn from_cudarc(context: &Arc<CudaContext>) -> Result<Self, Error> {
        // SAFETY: the keeper keeps it.
        unsafe { Self::adopt(context.cu_ctx().cast(), Box::new(Arc::clone(context))) }
    }
}

/// What keeps a `CudaStream`.
struct Kept {
    stream: Arc<CudaStream>,
    /// Whether the device keeps the context, too: any but the primary one.
    is_context_kept: bool,
}

impl Keeper for Kept {
    fn is_alone(&self) -> bool {
        if !self.stream.cu_stream().is_null() {
            return Arc::strong_count(&self.stream) == 1;
        }
        // The default stream has a new `CudaStream` for every caller who asks for it. It is in use as long as its context is.
        Arc::strong_count(self.stream.context()) <= 1 + usize::from(self.is_context_kept)
    }
}

impl Stream {
    /// Returns the stream that works in the order of a `CudaStream`. It is the same one for the same `CudaStream`, and keeps
    /// that until it and everything made with it are dropped.
    ///
    /// If the `CudaStream` was made by `wrap_borrowed_stream`, call [`release_cudarc`](Self::release_cudarc) before the owner
    /// destroys the stream.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] for the stream that is another one on each thread; the errors of [`Device::cuda`].
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Self, Error> {
        if let Some(adopted) = Self::adopted(|kept: &Kept| kept.stream == *stream) {
            return Ok(adopted);
        }
        let device = Device::from_cudarc(stream.context())?;
        let is_context_kept = device != Device::cuda(stream.context().ordinal())?;
        // SAFETY: the keeper keeps it.
        unsafe { Self::adopt(&device, raw(stream.cu_stream()), Kept { stream: Arc::clone(stream), is_context_kept }) }
    }

    /// Drops what is kept of a `CudaStream`, unless something else uses it.
    ///
    /// # Errors
    /// Same as [`from_cudarc`](Self::from_cudarc).
    pub fn release_cudarc(stream: &Arc<CudaStream>) -> Result<(), Error> {
        Self::release(&Device::from_cudarc(stream.context())?, raw(stream.cu_stream()));
        Ok(())
    }

    /// Returns the `CudaStream` that this stream works in the order of; `None` if [`from_cudarc`](Self::from_cudarc) did not
    /// make it.
    #[must_use]
    pub fn cudarc(&self) -> Option<&Arc<CudaStream>> {
        self.keeper::<Kept>().map(|kept| &kept.stream)
    }

    /// Shows a vector or slice to cudarc while `work` runs, for reading. Work of cudarc on this stream comes after earlier work on
    /// the elements, and work on the elements that follows the call comes after the work of cudarc, on whichever stream. Does
    /// not wait.
    ///
    /// ```no_run
    /// # use cudarc::driver::CudaContext;
    /// use gpu_primitives::Stream;
    ///
    /// let cuda = CudaContext::new(0)?.new_stream()?;
    /// let stream = Stream::from_cudarc(&cuda)?;
    /// let numbers = stream.upload(&[1u32, 2, 3])?;
    /// let host = stream.cudarc_view(&numbers, |numbers| cuda.clone_dtoh(&numbers))??;
    /// assert_eq!(host, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongDevice`] and [`Error::WrongContext`]; [`Error::InvalidOption`] if the stream is not one of cudarc; driver
    /// errors.
    pub fn cudarc_view<'a, T: Pod, R>(
        &self,
        slice: impl Into<DeviceSlice<'a, T>>,
        work: impl FnOnce(CudaView<'_, T>) -> R,
    ) -> Result<R, Error> {
        let slice = slice.into();
        let address = slice.raw_view(self)?.as_ptr().expose_provenance();
        // SAFETY: the elements are borrowed until this function returns, and they are no longer shown then.
        let shown = unsafe { Shown::new(self, address, slice.len())? };
        Ok(work(shown.0.as_view()))
    }

    /// Shows a vector or slice to cudarc while `work` runs, for reading and writing. Otherwise like
    /// [`cudarc_view`](Self::cudarc_view).
    ///
    /// # Errors
    /// Same as [`cudarc_view`](Self::cudarc_view).
    pub fn cudarc_view_mut<'a, T: Pod, R>(
        &self,
        slice: impl Into<DeviceSliceMut<'a, T>>,
        work: impl FnOnce(CudaViewMut<'_, T>) -> R,
    ) -> Result<R, Error> {
        let mut slice = slice.into();
        let address = slice.raw_view_mut(self)?.as_const().as_ptr().expose_provenance();
        // SAFETY: as above; the elements are mutably borrowed.
        let mut shown = unsafe { Shown::<T>::new(self, address, slice.len())? };
        Ok(work(shown.0.as_view_mut()))
    }

    /// Returns the `CudaStream`, or an error if there is none.
    fn expect_cudarc(&self) -> Result<&Arc<CudaStream>, Error> {
        self.cudarc().ok_or_else(|| Error::InvalidOption {
            what: "the stream for memory of cudarc",
            asked: "one that cudarc does not know".into(),
            allowed: "a stream of `Stream::from_cudarc`",
        })
    }
}

fn raw(stream: CUstream) -> *mut c_void {
    stream.cast()
}

fn driver_error(error: DriverError) -> Error {
    Error::Driver { call: "cudarc", code: format!("{:?}", error.0), message: error.to_string() }
}

/// Returns the stream of cudarc that memory of a context is lent to.
fn lent_to<'a>(stream: &'a Stream, context: &Arc<CudaContext>) -> Result<&'a CudaStream, Error> {
    let cuda = stream.expect_cudarc()?;
    if context.cu_ctx() != cuda.context().cu_ctx() {
        let (what, ordinal) = ("the memory of cudarc", cuda.context().ordinal());
        return Err(Error::WrongContext { what, ordinal });
    }
    Ok(cuda)
}

/// Returns the memory, unless waiting for earlier work on it has failed.
fn foreign<'a>(
    stream: &CudaStream,
    (address, guard): (u64, SyncOnDrop<'a>),
    len: usize,
) -> Result<Foreign<SyncOnDrop<'a>>, Error> {
    stream.context().check_err().map_err(driver_error)?;
    Ok(Foreign { what: "the memory of cudarc", address: address as usize, len, guard })
}

macro_rules! lend {
    ($($type:ty),*) => { $(
        impl<'a, T: Pod> Lend<'a> for &'a $type {
            type Slice<'s> = DeviceSlice<'s, T>;
            type Lent = Lent<T, SyncOnDrop<'a>>;

            unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error> {
                let cuda = lent_to(stream, ::cudarc::driver::DeviceSlice::stream(self).context())?;
                let foreign = foreign(cuda, self.device_ptr(cuda), self.len())?;
                // SAFETY: the slice is borrowed for `'a`, and frees its memory after the event that the guard records. The
                // caller drops the guard.
                unsafe { foreign.lend(stream) }
            }

            fn slice(lent: &mut Self::Lent) -> DeviceSlice<'_, T> {
                lent.as_slice()
            }
        }
    )* };
}

macro_rules! lend_mut {
    ($($type:ty),*) => { $(
        impl<'a, T: Pod> Lend<'a> for &'a mut $type {
            type Slice<'s> = DeviceSliceMut<'s, T>;
            type Lent = LentMut<T, SyncOnDrop<'a>>;

            unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error> {
                let cuda = lent_to(stream, ::cudarc::driver::DeviceSlice::stream(self).context())?;
                let len = self.len();
                let foreign = foreign(cuda, self.device_ptr_mut(cuda), len)?;
                // SAFETY: as above; the slice is borrowed mutably.
                unsafe { foreign.lend_mut(stream) }
            }

            fn slice(lent: &mut Self::Lent) -> DeviceSliceMut<'_, T> {
                lent.as_mut_slice()
            }
        }
    )* };
}

lend!(CudaSlice<T>, CudaView<'_, T>, CudaViewMut<'_, T>);
lend_mut!(CudaSlice<T>, CudaViewMut<'_, T>);

/// Elements that cudarc may use. It owns nothing: see `drop`. Whoever has it must drop it.
struct Shown<T>(ManuallyDrop<CudaSlice<T>>);

impl<T: Pod> Shown<T> {
    /// # Safety
    /// The elements are open to the stream, and borrowed until the value is dropped.
    unsafe fn new(stream: &Stream, address: usize, len: usize) -> Result<Self, Error> {
        let cuda = stream.expect_cudarc()?;
        // The next call panics if an event cannot be created.
        cuda.context().new_event(None).map_err(driver_error)?;
        // SAFETY: guaranteed by the caller; the memory is given back by `drop`, and nothing moves it out before.
        let mut slice = ManuallyDrop::new(unsafe { cuda.upgrade_device_ptr(address as u64, len) });
        drop(slice.device_ptr_mut(cuda)); // so that other streams of cudarc wait for what this stream has been given so far
        Ok(Self(slice))
    }
}

impl<T> Drop for Shown<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses it any more.
        let slice = unsafe { ManuallyDrop::take(&mut self.0) };
        // Later work on the stream comes after all uses of the slice. The memory is not freed.
        let _ = slice.leak();
    }
}
