//! Radix sort of keys, or of keys with values, of any length.
//!
//! - **Stable, deterministic**: equal keys keep their order; the same input gives the same bytes on every run.
//! - **Synchronisation**: none, except for [segments](#segments); the result is ready in stream order.
//! - **Memory**: a second buffer for keys and values (except in the double-buffered form, and for inputs that one block
//!   sorts). Above 2^16 elements also look-back words of 1 KiB per tile and pass: 6 % of the input for 32-bit pairs.
//! - **Sizes**: numbers are sorted as they are, with values of 4, 8 or 16 bytes (128-bit numbers: of 4). For other keys, and
//!   for values of other sizes, codes and indices are sorted, and keys and values gathered at the end. Codes of 256 bits are
//!   sorted by [`merge_sort`](crate::merge_sort), which takes fewer passes.
//! - **Sources**: what is not sorted in place may be [computed](crate::source), keys as well as values. It is first written to temporary memory,
//!   of its size, and then read there like a slice.
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
//!
//! # Segments
//! Calls that begin with `segmented` sort each segment of a sequence separately: keys alone or keys with values. Segment `i`
//! holds the items `offsets[i]..offsets[i + 1]`. One call may mix segments of all lengths, including empty ones and one that
//! is the whole input. Items before the first offset and after the last one belong to no segment: they are neither read nor
//! written.
//!
//! They sort by merging, not by digits:
//!
//! - **Stable, deterministic**: equal keys keep their order; the same input gives the same bytes on every run and
//!   device.
//! - **Order**: any [`Compare`](crate::compare::Compare), with or without state. One that is not a strict weak order
//!   gives some permutation of each segment.
//! - **Synchronisation**: the offsets are checked on the device before anything is written, and the call waits for the
//!   result of the check. The sorted output is ready in stream order. With
//!   [`Offsets::unchecked`](crate::Offsets::unchecked) the call does not wait.
//! - **Memory**: 8 bytes per tile of 600 to 1,800 items. If a segment spans tiles, also temporary memory for all
//!   keys and values, freed in stream order. Without the check, always.
//!
//! ```
//! use gpu_primitives::compare::Less;
//! use gpu_primitives::{Device, Error, sort};
//!
//! let stream = Device::cpu().stream()?;
//! let keys = stream.upload(&[5u32, 1, 3, 2, 9, 2, 0])?;
//! let names = stream.upload(&[0u32, 1, 2, 3, 4, 5, 6])?;
//! let offsets = stream.upload(&[0u32, 3, 3, 7])?; // three segments, the second one empty
//! let mut sorted_keys = stream.uninit::<u32>(7)?;
//! let mut sorted_names = stream.uninit::<u32>(7)?;
//! sort::segmented_pairs(&stream, (&keys, &names), &offsets, (&mut sorted_keys, &mut sorted_names), Less)?;
//! assert_eq!(sorted_keys.to_vec(&stream)?, [1, 3, 5, 0, 2, 2, 9]);
//! assert_eq!(sorted_names.to_vec(&stream)?, [1, 2, 0, 6, 3, 5, 4]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::buckets::{Buckets, Purity};
pub use crate::code::{Sign, U256};
#[doc(hidden)]
pub use crate::key::Number;
pub use crate::key::{FromCode, RadixCode, RadixKey, ShortCode, SortBy};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use crate::key::{bits_of, code_of, sign_of};
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::segmented_sort::{
    segmented_argsort, segmented_keys, segmented_keys_in_place, segmented_pairs, segmented_pairs_in_place,
};
pub(crate) use device::digits::Digits;
pub use device::kernel::{BucketHistogram, BucketPass};
#[doc(hidden)]
pub use device::shape::{LargePass, SmallPass, items};
pub use gpu_operator_macro::RadixKey;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::chunks::SortedRuns;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::codes::{decode, encode};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::columns::{SortColumn, by_columns};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::descending_codes;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::rows::{row_argsort, row_keys, row_keys_in_place, row_pairs, row_pairs_in_place};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    Options, Side, argsort, keys, keys_by, keys_double_buffered, keys_in_place, pairs, pairs_by, pairs_by_digits,
    pairs_double_buffered, pairs_in_place, rank,
};
