//! Segmented sort: sorts each segment of a sequence separately, keys alone or keys with values.
//!
//! Segment `i` holds the items `offsets[i] .. offsets[i + 1]`. One call may mix segments of all lengths, including
//! empty ones and one that is the whole input. Items before the first offset and after the last one belong to no
//! segment: they are neither read nor written.
//!
//! - **Stable, deterministic**: equal keys keep their order; the same input gives the same bytes on every run and
//!   device.
//! - **Order**: any [`Compare`](crate::compare::Compare), with or without state. One that is not a strict weak order
//!   gives some permutation of each segment.
//! - **Synchronisation**: the offsets are checked on the device before anything is written, and the call waits for the
//!   result of the check. The sorted output is ready in stream order. The `_unchecked` calls do not wait.
//! - **Memory**: 8 bytes per tile of 600 to 1,800 items. If a segment spans tiles, also temporary memory for all
//!   keys and values, freed in stream order.
//!
//! ```
//! use gpu_primitives::compare::Less;
//! use gpu_primitives::{Device, Error, segmented_sort};
//!
//! let stream = Device::cpu().stream()?;
//! let offsets = stream.upload(&[0u32, 3, 3, 7])?; // three segments, the second one empty
//! let keys = stream.upload(&[5u32, 1, 3, 2, 9, 2, 0])?;
//! let names = stream.upload(&[0u32, 1, 2, 3, 4, 5, 6])?;
//! let mut sorted_keys = stream.uninit::<u32>(7)?;
//! let mut sorted_names = stream.uninit::<u32>(7)?;
//! segmented_sort::pairs(&stream, &offsets, (&keys, &names), (&mut sorted_keys, &mut sorted_names), Less)?;
//! assert_eq!(sorted_keys.to_vec(&stream)?, [1, 3, 5, 0, 2, 2, 9]);
//! assert_eq!(sorted_names.to_vec(&stream)?, [1, 2, 0, 6, 3, 5, 4]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[doc(hidden)]
pub use device::shape::Shape;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use host::pairs_shaped;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    argsort, argsort_unchecked, keys, keys_in_place, keys_in_place_unchecked, keys_unchecked, pairs, pairs_in_place,
    pairs_in_place_unchecked, pairs_unchecked,
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::{gather_values, moves_values, run_len, sort_promised, sort_runs};
