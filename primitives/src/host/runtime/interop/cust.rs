//! Contexts, streams and buffers of cust.
//!
//! ```no_run
//! use cust::memory::DeviceBuffer;
//! use cust::stream::{Stream as CustStream, StreamFlags};
//! use gpu_primitives::{Device, Stream, sort};
//! use std::sync::Arc;
//!
//! let context = cust::quick_init()?;
//! let cust = Arc::new(CustStream::new(StreamFlags::NON_BLOCKING, None)?);
//! let mut scores = DeviceBuffer::from_slice(&[0.5f32, -1.0, 2.5])?;
//!
//! let stream = Stream::from_cust(&Device::from_cust(&context)?, &cust)?;
//! stream.lend(&mut scores, |scores| sort::keys_in_place(&stream, scores, sort::Options::new()))?; // waits
//!
//! assert_eq!(scores.as_host_vec()?, [-1.0, 0.5, 2.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Order
//! Work runs on the caller's stream. The safe functions of cust take it that nothing uses a buffer when they are called, so
//! [`Stream::lend`] waits for the work when the closure has returned. Whoever goes on with the buffer on the same stream need not
//! wait: see [`Stream::lend_until_dropped`] and [`Lent::give_back_in_order`], which are unsafe.
//!
//! To use a part of a buffer, lend the buffer and take a slice inside the closure. A `DeviceSlice` of cust does not borrow its
//! buffer, so it can be lent only by its address, with [`RawMemory`], which is unsafe.
//!
//! # Contexts
//! A `Context` of cust is the primary context of its GPU, which is the one of [`Device::cuda`]. For a context of
//! `cust::context::legacy`, use [`Device::borrow_cuda_context`]. This crate never resets or destroys a context.
//!
//! cust works in the current context of the thread, and a call of this crate makes its own context current. With several contexts,
//! set the one that you mean before you call cust.

use crate::host::runtime::foreign::{Foreign, Keeper};
use crate::host::runtime::{self, Device, Error, Lend, Lent, LentMut, RawMemory, Stream, Waiting};
use ::cust::context::Context;
use ::cust::memory::{DeviceBuffer, DeviceCopy};
use bytemuck::Pod;
use core::marker::PhantomData;
use std::sync::Arc;

impl Device {
    /// Returns the device of a context. It keeps the context until it and everything made with it are dropped.
    ///
    /// # Errors
    /// Same as [`Device::cuda`].
    pub fn from_cust(context: &Context) -> Result<Self, Error> {
        // SAFETY: the clone keeps it.
        unsafe { Self::adopt(context.as_raw().cast(), Box::new(context.clone())) }
    }
}

impl Keeper for Arc<::cust::stream::Stream> {
    fn is_alone(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

impl Stream {
    /// Returns the stream that works in the order of a stream of cust, on its device. It is the same one for the same stream, and
    /// keeps that until it and everything made with it are dropped, or another stream is wrapped.
    ///
    /// # Errors
    /// [`Error::WrongContext`] if the stream belongs to another GPU, or to another context than the device's; driver errors.
    pub fn from_cust(device: &Device, stream: &Arc<::cust::stream::Stream>) -> Result<Self, Error> {
        // SAFETY: the keeper keeps it.
        unsafe { Self::adopt(device, stream.as_inner().cast(), Arc::clone(stream)) }
    }

    /// Drops what is kept of a stream of cust, unless something else uses it. Only a context that was
    /// [borrowed by its handle](Device::borrow_cuda_context) needs it, before that is destroyed.
    pub fn release_cust(device: &Device, stream: &Arc<::cust::stream::Stream>) {
        Self::release(device, stream.as_inner().cast());
    }

    /// Returns the stream of cust that this stream works in the order of; `None` if [`from_cust`](Self::from_cust) did not make
    /// it.
    #[must_use]
    pub fn cust(&self) -> Option<&Arc<::cust::stream::Stream>> {
        self.keeper()
    }
}

/// What tells that a buffer of cust is borrowed.
type Borrowed<'a> = PhantomData<&'a ()>;

/// Returns the memory, if it belongs to the stream's device and context.
fn foreign<'a, T: Pod + DeviceCopy>(
    stream: &Stream,
    buffer: &DeviceBuffer<T>,
) -> Result<Foreign<Waiting<Borrowed<'a>>>, Error> {
    let (address, len) = (buffer.as_device_ptr().as_mut_ptr(), buffer.len());
    RawMemory::new(stream.device(), address, len)?;
    let guard = Waiting::new(stream, PhantomData);
    Ok(Foreign { what: "the memory of cust", address: address.expose_provenance(), len, guard })
}

impl<'a, T: Pod + DeviceCopy> Lend<'a> for &'a DeviceBuffer<T> {
    type Slice<'s> = runtime::DeviceSlice<'s, T>;
    type Lent = Lent<T, Waiting<Borrowed<'a>>>;

    unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error> {
        // SAFETY: the memory is borrowed for `'a`, and the guard, which the caller drops, waits for the work.
        unsafe { foreign(stream, self)?.lend(stream) }
    }

    fn slice(lent: &mut Self::Lent) -> runtime::DeviceSlice<'_, T> {
        lent.as_slice()
    }
}

impl<'a, T: Pod + DeviceCopy> Lend<'a> for &'a mut DeviceBuffer<T> {
    type Slice<'s> = runtime::DeviceSliceMut<'s, T>;
    type Lent = LentMut<T, Waiting<Borrowed<'a>>>;

    unsafe fn lend_until_dropped(self, stream: &'a Stream) -> Result<Self::Lent, Error> {
        // SAFETY: as above; the memory is borrowed mutably.
        unsafe { foreign(stream, self)?.lend_mut(stream) }
    }

    fn slice(lent: &mut Self::Lent) -> runtime::DeviceSliceMut<'_, T> {
        lent.as_mut_slice()
    }
}
