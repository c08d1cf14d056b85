//! Fill and copy: kernels that only move memory, at full bandwidth.
//!
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: no scratch memory. Each byte is written once (and read once, by a copy), in accesses of 16 bytes where
//!   the addresses allow it.
//!
//! ```
//! use gpu_primitives::{Device, Error, transfer};
//!
//! let stream = Device::cpu().stream()?;
//! let a = stream.upload(&[10u32, 11, 12, 13, 14])?;
//! let mut b = stream.uninit::<u32>(5)?;
//! transfer::copy(&stream, &a, &mut b)?;
//! assert_eq!(b.to_vec(&stream)?, [10, 11, 12, 13, 14]);
//! transfer::fill(&stream, &mut b, 7)?;
//! assert_eq!(b.to_vec(&stream)?, [7; 5]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub(crate) use device::Line;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use device::{GATHER_TILE, GatherWords, LEAVE};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{copy, fill};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{copy_columns, fill_column};
