//! The `k` largest or smallest elements, and where they are.
//!
//! With all `k` of an input's `n` elements in order, this is also a partial sort: it moves the first `k` elements of the
//! sorted input, and does not sort the rest.
//!
//! - **Order**: that of [`RadixKey`](crate::sort::RadixKey): numbers by value, floats as `total_cmp` orders them, types of
//!   your own by their code. The best element comes first; of equal ones, the one with the lowest position.
//! - **Deterministic**: the same input gives the same bytes on every run and every device. Equal elements at the border are
//!   chosen by their positions, too.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: for small `k`, reads each element once, and a sample of them before. For larger `k`, and for inputs with too
//!   many equal elements at the border, reads each element twice; what can still be among the `k` after the highest 11 bits
//!   are known is read again per 11 bits. Temporary memory for the larger of `k` and a sixteenth of the input: twice their
//!   codes and positions, freed in stream order.
//!
//! ```
//! use gpu_primitives::{Device, Error, top_k};
//!
//! let stream = Device::default()?.stream()?;
//! let input = stream.upload(&[2.5f32, -1.0, 7.0, 2.5, 0.0])?;
//! let (mut keys, mut positions) = (stream.uninit::<f32>(3)?, stream.uninit::<u32>(3)?);
//! top_k::largest(&stream, &input, (&mut keys, &mut positions))?;
//! assert_eq!(keys.to_vec(&stream)?, [7.0, 2.5, 2.5]);
//! assert_eq!(positions.to_vec(&stream)?, [2, 0, 3]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Rows
//!
//! [`segmented_largest`] finds the largest elements of many rows in one call, for example the best tokens of each sequence
//! of a batch:
//!
//! ```
//! use gpu_primitives::top_k::{self, Rows};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::default()?.stream()?;
//! let logits = stream.upload(&[0.5f32, 2.0, -1.0, 3.5, 0.0, 3.5])?; // two rows of three
//! let (mut best, mut tokens) = (stream.uninit::<f32>(4)?, stream.uninit::<u32>(4)?);
//! top_k::segmented_largest(&stream, &logits, Rows::of_len(3), 2, (&mut best, &mut tokens))?;
//! assert_eq!(best.to_vec(&stream)?, [2.0, 0.5, 3.5, 3.5]);
//! assert_eq!(tokens.to_vec(&stream)?, [1, 0, 0, 2]);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`RowCounts`] are for rows of which the device says how many elements are wanted, another number of each.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use device::code::Position;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{Output, RowCounts, Rows, largest, segmented_largest, segmented_smallest, smallest};
