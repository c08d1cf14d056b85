//! NVIDIA GPUs, through the driver API.
//!
//! - [`sys`]: the types and numbers of the driver API, and its library.
//! - [`driver`]: the functions of `libcuda`, found when first needed.
//! - [`device`]: a GPU with its context and memory pool, and what becomes of it after a crash.
//! - [`module`]: kernels, compiled from PTX by the driver when first launched.
//! - [`stream`]: everything that happens in order, launches included.
//! - [`event`]: marks in that order. [`graph`]: work that is recorded once and launched again and again.
//!
//! Addresses of device memory are pointers here, as in the rest of the crate; they are never followed on the host.

mod device;
mod driver;
mod event;
mod graph;
mod module;
mod stream;
mod sys;
#[cfg(test)]
mod tests;

pub(super) use device::CudaDevice;
pub(super) use driver::device_count;
pub(super) use event::CudaEvent;
pub(super) use graph::{CudaCapture, CudaGraph};
pub(super) use stream::CudaStream;
