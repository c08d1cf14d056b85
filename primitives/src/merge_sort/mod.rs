//! Merge sort of keys, or of keys with values, by any order.
//!
//! For keys that sort by their bits, [`sort`](crate::sort) is faster. This sort takes any
//! [`Compare`](crate::compare::Compare), with or without state.
//!
//! - **Stable, deterministic**: equal keys keep their order; the same input gives the same bytes on every run and device.
//!   A comparator that is not a strict weak order gives some permutation of the input.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Passes**: one that sorts tiles of 1920 items (1152 if they have more than 8 bytes, 640 if more than 24), and then
//!   one per factor of up to 32, since up to 32 runs are merged at once. Each reads and writes every item once: 4 passes
//!   for up to 2^25 pairs of 32 bits, 5 for up to 2^30.
//! - **Sizes**: keys have 1 to 32 bytes. Values have any size. Those of 4 and 8 bytes (with keys of over 8 bytes, those of
//!   4) are moved with the keys; others are moved by index and gathered at the end: then there are at most 2^32 - 1 items.
//! - **Memory**: above one tile, a second buffer for keys and values, and 8 bytes per tile of about 2500 items and merged
//!   run, freed in stream order.
//! - **Sources**: computed inputs are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! ```
//! use gpu_primitives::compare::{Greater, Less};
//! use gpu_primitives::{Device, Error, merge_sort};
//!
//! let stream = Device::default()?.stream()?;
//! let mut keys = stream.upload(&[3u32, 1, 4, 1, 5])?;
//! let mut values = stream.upload(&[0u32, 1, 2, 3, 4])?;
//! merge_sort::pairs_in_place(&stream, (&mut keys, &mut values), Less)?;
//! assert_eq!(keys.to_vec(&stream)?, [1, 1, 3, 4, 5]);
//! assert_eq!(values.to_vec(&stream)?, [1, 3, 0, 2, 4]);
//! merge_sort::keys_in_place(&stream, &mut keys, Greater)?;
//! assert_eq!(keys.to_vec(&stream)?, [5, 4, 3, 1, 1]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::sort;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{keys, keys_in_place, pairs, pairs_in_place};
