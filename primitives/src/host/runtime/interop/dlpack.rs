//! Tensors of other frameworks, by DLPack: of PyTorch, CuPy, JAX, candle and others.
//!
//! A tensor goes in by [`Stream::lend_dlpack`] and [`Stream::lend_dlpack_mut`], and a vector goes out by
//! [`DeviceVec::into_dlpack`]. Nothing is copied. A tensor of one type of elements, without gaps, is a slice, whatever its shape.
//!
//! ```
//! use gpu_primitives::{Device, sort};
//!
//! let stream = Device::cpu().stream()?;
//! # let tensor = stream.upload(&[3.0f32, 1.0, 2.0])?.into_dlpack(&stream)?;
//! // `tensor` is a `dlpark::versioned::Dlpack`, from `dlpark::python` for example.
//! // SAFETY: the framework told us the truth about the tensor, has made it ready for the stream, and does not use it now.
//! let mut lent = unsafe { stream.lend_dlpack_mut::<f32, _>(tensor)? };
//! sort::keys_in_place(&stream, &mut lent, sort::Options::new())?;
//! assert_eq!(lent.to_vec(&stream)?, [1.0, 2.0, 3.0]);
//!
//! let ranks = stream.upload(&[2u32, 0, 1])?;
//! let tensor = ranks.into_dlpack(&stream)?; // for a framework that works on the same stream
//! assert_eq!(tensor.validate()?.shape(), [3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Streams
//! DLPack tensors have no stream. The Python protocol does: the consumer passes its stream to `__dlpack__`, and the producer makes
//! the tensor ready in that stream's order. [`Stream::dlpack_stream`] returns the number to pass. The other way round, wrap the
//! number that `__dlpack__` was given with [`Stream::borrow_cuda_stream`], and pass that stream to [`DeviceVec::into_dlpack`].
//!
//! # Lifetimes
//! A tensor that is lent is given back to the framework when it is dropped. The framework may use the memory again at once,
//! so dropping waits for the work on it. Work on the framework's own stream need not be waited for: see
//! [`Lent::give_back_in_order`].

use crate::host::runtime::foreign::Foreign;
use crate::host::runtime::{Device, DeviceKind, DeviceVec, Error, Lent, LentMut, Stream, Waiting};
use bytemuck::Pod;
use dlpark::ffi::{DLDevice, DLDeviceType, DLManagedTensorVersioned};
use dlpark::metadata::Fixed;
use dlpark::{DlpackElement, DlpackFlags, Managed, ManagedTensorBase, TensorRef};

impl Stream {
    /// Returns the number of the stream in the Python protocol, for `__dlpack__(stream=…)`: 1 for the default stream, otherwise
    /// the driver's handle; `None` on the CPU.
    ///
    /// ```
    /// use gpu_primitives::{Device, Error};
    ///
    /// assert_eq!(Device::cpu().stream()?.dlpack_stream(), None);
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn dlpack_stream(&self) -> Option<isize> {
        self.cuda_stream().map(|raw| if raw.is_null() { 1 } else { raw.expose_provenance() as isize })
    }

    /// Lends a tensor to the stream, for reading.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] if the tensor has elements of another type, or gaps between them; [`Error::WrongDevice`];
    /// [`Error::Misaligned`]. The tensor is given back.
    ///
    /// # Safety
    /// The tensor describes memory as DLPack demands. What the framework has submitted on it comes earlier in the order of the
    /// stream, or is done. As long as the tensor is lent, nothing else writes the memory.
    pub unsafe fn lend_dlpack<T: Pod + DlpackElement, M: ManagedTensorBase>(
        &self,
        tensor: Managed<M>,
    ) -> Result<Lent<T, Waiting<Managed<M>>>, Error> {
        let (address, len) = elements::<T>(&tensor.validate().map_err(invalid)?, self.device())?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.foreign(tensor, address, len).lend(self) }
    }

    /// Lends a tensor to the stream, for reading and writing.
    ///
    /// # Errors
    /// Same as [`lend_dlpack`](Self::lend_dlpack), and [`Error::InvalidOption`] if the tensor is read-only.
    ///
    /// # Safety
    /// Same as for [`lend_dlpack`](Self::lend_dlpack), but nothing else uses the memory at all.
    pub unsafe fn lend_dlpack_mut<T: Pod + DlpackElement, M: ManagedTensorBase>(
        &self,
        tensor: Managed<M>,
    ) -> Result<LentMut<T, Waiting<Managed<M>>>, Error> {
        if tensor.flags().contains(DlpackFlags::READ_ONLY) {
            let (asked, allowed) = ("read-only".into(), "writable, if it is lent for writing");
            return Err(Error::InvalidOption { what: "the tensor", asked, allowed });
        }
        let (address, len) = elements::<T>(&tensor.validate().map_err(invalid)?, self.device())?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.foreign(tensor, address, len).lend_mut(self) }
    }

    fn foreign<M: ManagedTensorBase>(
        &self,
        tensor: Managed<M>,
        address: usize,
        len: usize,
    ) -> Foreign<Waiting<Managed<M>>> {
        Foreign { what: "the tensor", address, len, guard: Waiting::new(self, tensor) }
    }
}

/// Returns the address and the number of the elements.
fn elements<T: DlpackElement>(tensor: &TensorRef<'_>, device: &Device) -> Result<(usize, usize), Error> {
    let found = tensor.device();
    let fits = match (found.device_type, device.kind()) {
        (DLDeviceType::CPU, DeviceKind::Cpu | DeviceKind::CpuChecked) => true,
        (DLDeviceType::CUDA, DeviceKind::Cuda { ordinal }) => usize::try_from(found.device_id) == Ok(ordinal),
        (DLDeviceType::CUDAMANAGED, DeviceKind::Cuda { .. }) => true,
        _ => false,
    };
    let what = "the tensor";
    if !fits {
        return Err(match (found.device_type, usize::try_from(found.device_id)) {
            (DLDeviceType::CPU, _) => Error::WrongDevice { what, found: DeviceKind::Cpu, expected: device.kind() },
            (DLDeviceType::CUDA, Ok(ordinal)) => {
                Error::WrongDevice { what, found: DeviceKind::Cuda { ordinal }, expected: device.kind() }
            }
            _ => Error::InvalidOption {
                what: "the tensor's device",
                asked: format!("type {}, number {}", found.device_type.0, found.device_id),
                allowed: "the CPU or a GPU of CUDA",
            },
        });
    }
    if !tensor.dtype().is::<T>() {
        let (asked, allowed) = (format!("{:?}", tensor.dtype()), core::any::type_name::<T>());
        return Err(Error::InvalidOption { what: "the type of the tensor's elements", asked, allowed });
    }
    if !tensor.is_compact().map_err(invalid)? {
        let asked = format!("strides {:?} of shape {:?}", tensor.strides(), tensor.shape());
        let allowed = "without gaps, in the order of rows: make a contiguous copy first";
        return Err(Error::InvalidOption { what, asked, allowed });
    }
    let len = tensor.num_elements();
    if len == 0 {
        // A tensor without elements may have no memory.
        return Ok((align_of::<T>(), 0));
    }
    let data = tensor.data_ptr().expose_provenance();
    let start = usize::try_from(tensor.byte_offset()).ok().and_then(|offset| data.checked_add(offset));
    let end = start.and_then(|start| start.checked_add(len.checked_mul(size_of::<T>())?));
    match (start, end) {
        (Some(start), Some(end)) if data != 0 && isize::try_from(end - start).is_ok() => Ok((start, len)),
        _ => {
            let asked = format!("{len} elements at address {data:#x}, after {} bytes", tensor.byte_offset());
            Err(Error::InvalidOption {
                what: "the tensor's memory",
                asked,
                allowed: "within the address space, and not null",
            })
        }
    }
}

fn invalid(error: dlpark::tensor::Error) -> Error {
    Error::InvalidOption { what: "the tensor", asked: error.to_string(), allowed: "as DLPack demands" }
}

impl<T: Pod + DlpackElement + Send> DeviceVec<T> {
    /// Makes a tensor of the vector, with one dimension, for a framework that works in the order of `consumer`. On a GPU it does not
    /// wait: later work on that stream comes after earlier work on the vector. On the CPU, where frameworks know no streams, all
    /// work on the vector is done when this returns.
    ///
    /// When the framework deletes the tensor, the vector is freed after all work that `consumer` has been given by then.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] and [`Error::WrongContext`]; [`Error::OnlyPlanned`]; the errors of earlier work on the checked CPU
    /// device; driver errors. The vector is dropped.
    pub fn into_dlpack(mut self, consumer: &Stream) -> Result<Managed<DLManagedTensorVersioned>, Error> {
        self.device().expect_memory("a tensor")?;
        let data = self.raw_view_mut(consumer)?.as_const().as_ptr().cast_mut();
        let is_shared = consumer.cuda_stream().is_some(); // which tells the stream that others add work
        if !is_shared {
            consumer.synchronize()?;
        }
        let device = match self.device().kind() {
            DeviceKind::Cpu | DeviceKind::CpuChecked => DLDevice::CPU,
            DeviceKind::Cuda { ordinal } => DLDevice::cuda(i32::try_from(ordinal).unwrap_or(i32::MAX)),
        };
        let prepared = Fixed::new([self.len()], [1i64]).prepare_as::<DLManagedTensorVersioned>().map_err(|error| {
            Error::InvalidOption {
                what: "the shape of a tensor",
                asked: error.to_string(),
                allowed: "as DLPack demands",
            }
        })?;
        let mut tensor = prepared.initialize(Box::new(self));
        tensor.set_device(device).set_dtype(T::DTYPE).set_data(data.cast());
        // SAFETY: the tensor owns the vector, which has that many elements of the type.
        Ok(unsafe { tensor.finish() })
    }
}
