//! Multisplit: distributes items to up to 256 buckets in one pass.
//!
//! - **Stable, deterministic**: items of a bucket keep their order; the same input gives the same bytes on every run.
//! - **Synchronisation**: none; the bucket offsets stay on the device.
//! - **Memory**: look-back words of 1 KiB per tile, 2 % of the input; for keys and values that a [source](crate::source) computes, as many
//!   as these are: they are written there first.
//! - **Sizes**: keys of 4 and 8 bytes, alone or with values of 4, are moved as they are. For others, bucket numbers and
//!   indices are moved, and keys and values gathered at the end.
//! - **Cost**: one read of the keys to count them, then one read and one write of everything.
//!
//! It uses the kernels of the radix sort, which runs one multisplit per digit.
//!
//! ```
//! use gpu_primitives::multisplit::{self, Shift};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let input = stream.upload(&[25u32, 3, 17, 9, 1])?;
//! let mut output = stream.uninit::<u32>(5)?;
//! let offsets = multisplit::keys(&stream, &input, &mut output, 4, Shift::by(3))?; // buckets of 8 numbers each
//! assert_eq!(output.to_vec(&stream)?, [3, 1, 9, 17, 25]);
//! assert_eq!(offsets.to_vec(&stream)?, [0, 2, 3, 4, 5]);
//! # Ok::<(), Error>(())
//! ```

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;

pub use crate::buckets::{Bucket, Shift};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::groups::{GroupKey, Groups, group_by, group_offsets};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{MAX_BUCKETS, keys, pairs};
