//! Radix sort of keys, or of keys with values, of any length.
//!
//! - **Stable, deterministic**: equal keys keep their order; the same input gives the same bytes on every run.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: a second buffer for keys and values (except in the double-buffered form, and for inputs that one block
//!   sorts). Above 2^16 elements also look-back words of 1 KiB per tile and pass: 6 % of the input for 32-bit pairs.
//! - **Sizes**: numbers are sorted as they are, with values of 4, 8 or 16 bytes (128-bit numbers: of 4). For other keys, and
//!   for values of other sizes, codes and indices are sorted, and keys and values gathered at the end. Codes of 256 bits are
//!   sorted by [`merge_sort`](crate::merge_sort), which takes fewer passes.
//! - **Cost**: one read of the keys, then one read and one write of everything per 8 bits of the key. Up to 2^16
//!   elements it takes two launches.
//!
//! ```
//! use gpu_primitives::sort::{self, Options};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let mut keys = stream.upload(&[2.5f32, -1.0, 0.0, 2.5])?;
//! let mut values = stream.upload(&[10u32, 11, 12, 13])?;
//! sort::pairs_in_place(&stream, (&mut keys, &mut values), Options::new())?;
//! assert_eq!(keys.to_vec(&stream)?, [-1.0, 0.0, 2.5, 2.5]);
//! assert_eq!(values.to_vec(&stream)?, [11, 12, 10, 13]);
//!
//! let order = sort::argsort(&stream, &keys, Options::new().descending())?;
//! assert_eq!(order.to_vec(&stream)?, [2, 3, 1, 0]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::buckets::{Buckets, Purity};
pub use crate::code::{Sign, U256};
pub use crate::key::{FromCode, RadixCode, RadixKey, ShortCode, SortBy};
#[doc(hidden)]
pub use crate::key::{Number, bits_of, code_of, sign_of};
pub(crate) use device::digits::Digits;
pub use device::kernel::{BucketHistogram, BucketPass};
#[doc(hidden)]
pub use device::shape::{LargePass, SmallPass, items};
pub use gpu_operator_macro::RadixKey;
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use host::lowered;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::chunks::SortedRuns;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::codes::{decode, encode};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::descending_codes;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    Options, Side, argsort, keys, keys_by, keys_double_buffered, keys_in_place, pairs, pairs_by, pairs_by_digits,
    pairs_double_buffered, pairs_in_place,
};
