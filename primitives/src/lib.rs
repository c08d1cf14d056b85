//! GPU primitives whose kernels are Rust: one source for NVIDIA GPUs (as PTX) and for the CPU.
//!
//! [`Device::default`] takes the GPU if there is one, else the CPU; everything else is the same on both:
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
//! - [`arch`]: the vocabulary of device code, once as PTX and once spoken to the CPU executor; [`thread`], [`warp`] and
//!   the views [`Global`], [`GlobalMut`] and [`Shared`] are what kernels are written with.
//! - [`kernel`]: the form that turns one generic function into a kernel for both.
//! - [`block`]: collectives of a block, built from those words.
//! - `runtime` (re-exported here): [`Device`], [`Stream`], [`DeviceVec`] and its slices, [`Error`].
//! - one module per primitive: [`sort`], [`merge`], [`scan`], [`segmented_sort`], [`multisplit`], [`select`], [`search`],
//!   [`transfer`]; [`compare`] has the orders.

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
// Device functions are unsafe as a whole: their contract (who calls them, which indices are in range) is stated once, on
// the function, and a block around each line would repeat it without saying more.
#![allow(unsafe_op_in_unsafe_fn)]

extern crate self as gpu_primitives;

pub mod arch;
pub mod block;
pub mod compare;
pub mod dictionary;
pub mod kernel;
pub mod merge;
pub mod multisplit;
pub mod scan;
pub mod search;
pub mod segmented_sort;
pub mod select;
pub mod sort;
pub mod transfer;
pub mod view;

#[cfg(not(target_arch = "nvptx64"))]
#[deny(unsafe_op_in_unsafe_fn)]
mod runtime;

pub use arch::{thread, warp};
pub use view::{Global, GlobalMut, Shared, SharedMemory};

#[cfg(not(target_arch = "nvptx64"))]
pub use runtime::*;

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
