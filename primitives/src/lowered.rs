//! What is below the doors of this library, for the dictionaries of this project: memory and primitives for types that are known by
//! their sizes alone.
//!
//! # Stability
//! None. The dictionaries and this crate are released together, so what is here may change or disappear in any version, and no
//! changelog says so. It is not shown in the documentation. A program has the typed functions: those of [`sort`](crate::sort),
//! [`merge`](crate::merge) and [`select`](crate::select), and [`DeviceVec`](crate::DeviceVec) with its slices.
//!
//! # Contents
//! - `AnySlice`, `AnySliceMut`, `AnyVec`: memory of the device whose elements have a size, and no type.
//! - `Place`: where memory is, on the device or in the host memory that it reads over the link.
//! - `sort`, `merge`, `select`: these primitives for such memory.
//! - `bits_of`, `code_of`: the codes of keys.
//! - `expect_host`: refuses calls from inside a kernel on the CPU.

#[doc(hidden)]
pub use crate::key::{bits_of, code_of};

#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::runtime::column::{AnySlice, AnySliceMut, AnyVec};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::runtime::cpu::expect_host;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::host::runtime::host_blocks::Place;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::merge::host::lowered as merge;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::select::host::lowered as select;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::sort::host::lowered as sort;
