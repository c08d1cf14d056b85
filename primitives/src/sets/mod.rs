//! Set operations on sorted sequences: union, intersection, difference, symmetric difference.
//!
//! Sequences may have equal items, and then the operations are those of multisets, as `std::set_union` and its kin in C++
//! define them. If an item is `k` times in the first sequence and `m` times in the second, the result has it
//!
//! | operation | times | which |
//! | --- | --- | --- |
//! | [`union`] | `max(k, m)` | all of the first, then the last `m - k` of the second, if it has more |
//! | [`intersection`] | `min(k, m)` | the first ones of the first |
//! | [`difference`] | `max(k - m, 0)` | the last ones of the first |
//! | [`symmetric_difference`] | `k - m` or `m - k` | the last ones of the one that has more |
//!
//! - **Sorted**: both inputs are sorted by the order, a [`Compare`](crate::compare::Compare), and so is the result. Items
//!   are equal if neither is less. If an input is not sorted, the result is some selection of the items.
//! - **Stable, deterministic**: the same inputs give the same bytes on every run and device.
//! - **Synchronisation**: none. The number of items of the result stays on the device as a
//!   [`DeviceValue`](crate::DeviceValue) until you read it.
//! - **Sizes**: keys have 1 to 32 bytes. Values have any size. Those of 4 and 8 bytes (with keys of over 8 bytes, those of
//!   4) are moved with the keys; others are moved by index and gathered at the end, which takes memory for them.
//! - **Memory**: reads each key once, and writes each item of the result once. Scratch memory of 8 bytes per tile of a few
//!   thousand items, allocated and freed in stream order; that of the look-back is kept with the stream.
//! - **Sources**: computed inputs are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! ```
//! use gpu_primitives::compare::Less;
//! use gpu_primitives::{Device, Error, sets};
//!
//! let stream = Device::default()?.stream()?;
//! let (a, b) = (stream.upload(&[1u32, 2, 2, 5])?, stream.upload(&[2u32, 4, 5])?);
//! let mut out = stream.uninit::<u32>(7)?;
//! let count = sets::union(&stream, &a, &b, &mut out, Less)?.get(&stream)? as usize; // waits
//! assert_eq!(out.slice(..count)?.to_vec(&stream)?, [1, 2, 2, 4, 5]);
//! let count = sets::intersection(&stream, &a, &b, &mut out, Less)?.get(&stream)? as usize;
//! assert_eq!(out.slice(..count)?.to_vec(&stream)?, [2, 5]);
//! let count = sets::difference(&stream, &a, &b, &mut out, Less)?.get(&stream)? as usize;
//! assert_eq!(out.slice(..count)?.to_vec(&stream)?, [1, 2]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    difference, difference_pairs, intersection, intersection_pairs, symmetric_difference, symmetric_difference_pairs,
    union, union_pairs,
};
