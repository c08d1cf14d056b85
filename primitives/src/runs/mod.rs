//! Runs of equal neighbours: keep one element of each, encode and decode them, combine the values of each, and compare
//! neighbours.
//!
//! A run is a maximal sequence of neighbours that are equal by an [`Equality`](crate::equality::Equality). Sort first if
//! equal elements are not neighbours; [`distinct`] and its kin do that.
//!
//! - **Stable, deterministic**: runs keep their order. The totals of [`reduce_by_key`] are combined in order, with a
//!   grouping that depends only on the input's length, its types and where runs begin. The same input gives the same bytes
//!   on every run and every device, also for floating-point sums.
//! - **Synchronisation**: none. The number of runs stays on the device as a [`DeviceValue`](crate::DeviceValue) until you
//!   read it, or becomes the length of a [source](crate::host::source::counted).
//! - **Outputs** have room for one element per element of the input. What follows the last run is not changed.
//! - **Sizes**: elements that are compared or combined have 1 to 32 bytes. Values that are only moved have any size.
//! - **Memory**: one pass over memory for the common sizes. Each function says what others need.
//! - **Sources**: keys and lengths are evaluated as they are read. The inputs of [`distinct`] and its relatives and of [`adjacent_difference`], values of
//!   [`unique_by_key`] and elements of [`run_length_decode`] that are computed are evaluated into temporary memory first, in
//!   [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! ```
//! use gpu_primitives::equality::Same;
//! use gpu_primitives::monoid::Sum;
//! use gpu_primitives::operator::{equality, map};
//! use gpu_primitives::source::counted;
//! use gpu_primitives::{Device, Error, runs};
//!
//! let stream = Device::default()?.stream()?;
//! let keys = stream.upload(&[7u32, 7, 7, 2, 2, 7])?;
//! let values = stream.upload(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! let mut heads = stream.uninit::<u32>(6)?;
//! let mut lengths = stream.uninit::<u32>(6)?;
//! let mut totals = stream.uninit::<f64>(6)?;
//!
//! let count = runs::reduce_by_key(&stream, (&keys, &values), (&mut heads, &mut totals), Same, Sum)?;
//! assert_eq!(count.get(&stream)?, 3);
//! assert_eq!(heads.slice(..3)?.to_vec(&stream)?, [7, 2, 7]);
//! assert_eq!(totals.slice(..3)?.to_vec(&stream)?, [6.0, 9.0, 6.0]);
//!
//! let count = runs::run_length_encode(&stream, &keys, (&mut heads, &mut lengths), Same)?;
//! assert_eq!(lengths.slice(..3)?.to_vec(&stream)?, [3, 2, 1]);
//! let mut decoded = stream.uninit::<u32>(6)?;
//! let total = runs::run_length_decode(&stream, (&heads, counted(&lengths, &count)), &mut decoded)?;
//! assert_eq!(total.get(&stream)?, 6);
//! assert_eq!(decoded.to_vec(&stream)?, [7, 7, 7, 2, 2, 7]);
//!
//! // Runs of neighbours in the same ten.
//! let ages = stream.upload(&[21u32, 25, 38, 31, 44])?;
//! let mut tens = stream.uninit::<u32>(5)?;
//! let count = runs::unique(&stream, &ages, &mut tens, equality!(|a: u32, b: u32| a / 10 == b / 10))?;
//! assert_eq!(count.get(&stream)?, 3);
//! assert_eq!(tens.slice(..3)?.to_vec(&stream)?, [21, 38, 44]);
//!
//! let mut steps = stream.uninit::<u32>(5)?;
//! runs::adjacent_difference(&stream, &ages, &mut steps, map!(|now: u32, before: u32| -> u32 { now.wrapping_sub(before) }))?;
//! assert_eq!(steps.to_vec(&stream)?[..3], [21, 4, 13]);
//! # Ok::<(), Error>(())
//! ```

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    Length, Which, adjacent_difference, adjacent_difference_in_place, distinct, distinct_counts,
    distinct_counts_hashed, distinct_inverse, reduce_by_key, run_length_decode, run_length_encode, unique,
    unique_by_key, unique_last,
};
