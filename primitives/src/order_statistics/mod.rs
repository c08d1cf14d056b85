//! Elements by their rank: the k-th smallest, the median, quantiles.
//!
//! - **Rank**: the place of an element in the sorted input, from 0. So rank 0 is the smallest element. The input is not
//!   sorted, and not changed.
//! - **Order**: that of [`RadixKey`](crate::sort::RadixKey): numbers by value, floats as `total_cmp` orders them, types of
//!   your own by their code. Of equal elements, the one with the lowest position has the lowest rank, as in a stable sort.
//! - **Quantiles**: elements of the input; nothing is interpolated. Fraction `f` of `n` elements is the one with rank
//!   `f * (n - 1)`, rounded down. The median of an even number is the lower one of the two in the middle.
//! - **Deterministic**: the same input gives the same bytes on every run and every device.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: reads each element twice. What has the same highest 11 bits as a wanted element is read again per digit of
//!   11 bits or fewer; if that is more than a sixteenth of the input, the whole input is read. Temporary memory: twice the codes
//!   and positions of a sixteenth of the input, freed in stream order. More than 256 ranks in one call sort the input.
//!
//! ```
//! use gpu_primitives::{Device, Error, order_statistics};
//!
//! let stream = Device::default()?.stream()?;
//! let input = stream.upload(&[2.5f32, -1.0, 7.0, 2.5, 0.0])?;
//! assert_eq!(order_statistics::median(&stream, &input)?.get(&stream)?, 2.5);
//!
//! let (mut keys, mut positions) = (stream.uninit::<f32>(2)?, stream.uninit::<u32>(2)?);
//! order_statistics::select_kth(&stream, &input, &[0, 3], (&mut keys, &mut positions))?;
//! assert_eq!(keys.to_vec(&stream)?, [-1.0, 2.5]);
//! assert_eq!(positions.to_vec(&stream)?, [1, 3]);
//!
//! let mut quartiles = stream.uninit::<f32>(3)?;
//! order_statistics::quantiles(&stream, &input, &[0.25, 0.5, 0.75], &mut quartiles)?;
//! assert_eq!(quartiles.to_vec(&stream)?, [0.0, 2.5, 2.5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Rows
//!
//! [`segmented_median`], [`segmented_quantiles`] and [`segmented_select_kth`] do it for many rows in one call: those of a
//! matrix, or segments at offsets.
//!
//! ```
//! use gpu_primitives::order_statistics::{self, Rows};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::default()?.stream()?;
//! let samples = stream.upload(&[9u32, 1, 5, 3, 2, 8])?;
//! let (mut medians, mut positions) = (stream.uninit::<u32>(2)?, stream.uninit::<u32>(2)?);
//! order_statistics::segmented_median(&stream, &samples, Rows::of_len(3), (&mut medians, &mut positions))?;
//! assert_eq!(medians.to_vec(&stream)?, [5, 3]);
//! assert_eq!(positions.to_vec(&stream)?, [2, 0]); // in the row
//! # Ok::<(), Error>(())
//! ```

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::top_k::Position;
#[cfg(not(target_arch = "nvptx64"))]
pub use crate::top_k::{Output, Rows};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::rows::{segmented_median, segmented_quantiles, segmented_select_kth};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{median, quantiles, select_kth};
