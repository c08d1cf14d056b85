//! Work on the memory, streams and contexts of other libraries, each behind a feature of its name.
//!
//! | feature | library | in | out |
//! | --- | --- | --- | --- |
//! | `cudarc` | cudarc 0.19 | `CudaContext`, `CudaStream`, `CudaSlice`, `CudaView`, `CudaViewMut` | `CudaStream`, `CudaView`, `CudaViewMut` |
//! | `cust` | cust 0.3 | `Context`, `Stream`, `DeviceBuffer` | `Stream` |
//! | `dlpack` | dlpark 0.10 | tensors | tensors |
//!
//! A stream of the other library is wrapped once ([`Stream`](crate::Stream)), and memory is lent to it while a closure runs
//! ([`Stream::lend`](crate::Stream::lend)). What is lent goes wherever a slice goes. Nothing is copied. With cudarc, nobody waits.
//!
//! Without a feature, there are raw handles: [`Device::borrow_cuda_context`](crate::Device::borrow_cuda_context),
//! [`Stream::borrow_cuda_stream`](crate::Stream::borrow_cuda_stream) and
//! [`DeviceSlice::from_raw_parts`](crate::DeviceSlice::from_raw_parts). [`RawMemory`](crate::RawMemory) checks an address as far as
//! the driver can tell.

#[cfg(feature = "cudarc")]
pub mod cudarc;
#[cfg(feature = "cust")]
pub mod cust;
#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(any(feature = "cudarc", feature = "cust"))]
mod streams;
