//! The host side: devices, streams, memory and errors.

mod bits;
mod bytes;
pub(crate) mod call;
pub(crate) mod column;
mod counters;
pub(crate) mod cpu;
mod cuda;
mod dependent_launch;
mod device;
mod event;
pub(crate) mod fill;
mod foreign;
mod graph;
pub(crate) mod host_blocks;
mod host_memory;
pub mod interop;
mod lanes;
mod launch;
mod left;
pub(crate) mod loading;
mod memory;
#[cfg(feature = "nvtx")]
mod nvtx;
pub(crate) mod offsets;
pub(crate) mod pairs;
mod pinned;
mod plan;
mod scratch;
mod slice;
mod spans;
mod step;
mod stream;
mod sync;
mod value;

pub use crate::host::device_kind::DeviceKind;
pub(crate) use crate::host::error::expect_room;
pub use crate::host::error::{Error, expect_len};
pub use crate::host::executor::{Access, Elsewhere, Fault, FaultKind};
pub use bits::Bits;
#[cfg(feature = "counters")]
pub use counters::Counters;
pub use cpu::{CpuOptions, Schedule};
pub use device::{Device, Limits};
pub use event::Event;
#[cfg(any(feature = "cust", feature = "dlpack"))]
pub use foreign::Waiting;
pub use foreign::{Lend, Lent, LentMut, RawMemory};
pub use graph::Graph;
pub(crate) use host_memory::host_memory;
pub use loading::Loading;
pub use memory::DeviceVec;
#[cfg(feature = "nvtx")]
#[doc(hidden)]
pub use nvtx::NvtxRange;
pub use offsets::Offsets;
pub use pinned::{Pending, PinnedVec};
pub use slice::{DeviceSlice, DeviceSliceMut};
#[doc(hidden)]
pub use spans::Span;
pub use stream::Stream;
#[cfg(feature = "tracing")]
#[doc(hidden)]
pub use tracing;
pub use value::DeviceValue;
