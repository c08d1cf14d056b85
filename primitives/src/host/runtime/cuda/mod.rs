//! NVIDIA GPUs, through the driver API.
//!
//! - [`sys`]: the types and constants of the driver API, and its library.
//! - [`driver`]: the functions of `libcuda`, resolved on first use.
//! - [`device`]: a GPU with its context and memory pool, and its state after a crash.
//! - [`module`]: kernels, compiled from PTX by the driver on their first launch.
//! - [`stream`]: all work that runs in order, including launches.
//! - [`event`]: positions in that order. [`graph`]: work that is recorded once and launched many times.
//!
//! Device addresses are pointers here, as in the rest of the crate. The host never dereferences them.

mod device;
mod driver;
mod event;
mod graph;
#[cfg(target_os = "linux")]
mod mapping;
mod module;
mod pinned;
mod stream;
mod sys;
#[cfg(test)]
mod tests;

pub(super) use device::{CudaDevice, find};
pub(super) use driver::device_count;
pub(super) use event::CudaEvent;
pub(super) use graph::{CudaCapture, CudaGraph};
pub(super) use stream::CudaStream;
