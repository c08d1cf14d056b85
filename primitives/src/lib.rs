//! GPU primitives with kernels written in Rust. One source runs on NVIDIA GPUs (as PTX) and on the CPU.
//!
//! [`Device::default`] selects a GPU if there is one, otherwise the CPU. Everything else is the same on both:
//!
//! ```
//! use gpu_primitives::{Device, Error, scan};
//!
//! let stream = Device::default()?.stream()?;
//! let input = stream.upload(&[3u32, 1, 4, 1, 5])?;
//! let mut output = stream.zeroed::<u32>(5)?;
//! scan::exclusive_sum(&stream, &input, &mut output)?;
//! assert_eq!(output.to_vec(&stream)?, [0, 3, 4, 8, 9]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Layers
//! - [`arch`]: the device functions, implemented once in PTX and once on the CPU executor. Kernels use [`thread`],
//!   [`warp`] and the views [`Global`], [`GlobalMut`] and [`Shared`].
//! - [`kernel`]: turns one generic function into a kernel for both targets.
//! - [`operator`]: functions that are written in Rust once and put into kernels when these are loaded.
//! - [`compare`], [`equality`](mod@equality), [`monoid`](mod@monoid), [`map`](mod@map), [`code`]: orders, equalities, associative
//!   operations, functions, and numbers as unsigned integers that sort like them.
//! - [`source`]: what primitives read: slices, and elements that are computed as they are read.
//! - [`block`]: block-wide collectives, built from the device functions.
//! - `runtime` (re-exported here): [`Device`], [`Stream`], [`DeviceVec`] and its slices, [`Error`].
//! - one module per primitive: [`sort`], [`host_sort`], [`merge_sort`], [`top_k`], [`order_statistics`], [`merge`], [`sets`], [`search`],
//!   [`scan`], [`reduce`], [`runs`], [`histogram`], [`multisplit`], [`select`], [`bits`], [`transform`], [`permute`], [`ranges`],
//!   [`transfer`].
//! - [`lowered`]: what only the dictionaries of this project need. It may change in any version.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        abi_ptx,
        asm_experimental_arch,
        core_intrinsics,
        gpu_intrinsics,
        gpu_launch_sized_workgroup_mem,
        link_llvm_intrinsics,
        stdarch_nvptx
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
// Device functions are unsafe as a whole. Each function states its contract once (who may call it, which indices are in
// range); an unsafe block around every line would add nothing.
#![allow(unsafe_op_in_unsafe_fn)]

extern crate self as gpu_primitives;

pub mod arch;
pub mod bits;
pub mod block;
mod buckets;
pub mod code;
pub mod compare;
pub mod equality;
mod form;
pub mod histogram;
mod hole;
#[cfg(not(target_arch = "nvptx64"))]
mod host;
mod input;
pub mod kernel;
mod key;
pub mod lowered;
pub mod map;
pub mod merge;
pub mod merge_sort;
mod model;
pub mod monoid;
pub mod multisplit;
pub mod operator;
pub mod order_statistics;
mod pairs;
pub mod permute;
pub mod reduce;
pub mod runs;
pub mod scan;
mod sealed;
pub mod search;
mod segmented_sort;
mod segments;
pub mod select;
pub mod sets;
mod shape;
pub mod sort;
pub mod top_k;
pub mod transfer;
pub mod transform;
pub mod view;

pub use arch::{thread, warp};
pub use gpu_primitives_kernel_macro::instances;
pub use view::{Global, GlobalMut, Shared, SharedMemory};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::host_sort;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::preload::Operator;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::ranges;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::runtime::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::source;
#[cfg(all(feature = "testing", not(target_arch = "nvptx64")))]
pub use host::testing;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide.md")]
struct Guide;
