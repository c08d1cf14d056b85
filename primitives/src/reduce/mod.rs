//! Reduction: the combination of a whole sequence, or of each of its segments; its extremes, and what passes a test.
//!
//! - **Deterministic**: elements are combined in order, with a grouping that depends only on the length and the type. The
//!   same input gives the same bytes on every run and every device, also for floating-point sums. The operation need not be
//!   commutative.
//! - **Synchronisation**: none; the result stays on the device as a [`DeviceValue`](crate::DeviceValue) until you read it.
//! - **Sizes**: elements have 1 to 32 bytes.
//! - **Memory**: reads each element once. Scratch memory of one element per tile of a few thousand, in stream order.
//!
//! ```
//! use gpu_primitives::operator::monoid;
//! use gpu_primitives::reduce::{self, Max};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::default()?.stream()?;
//! let input = stream.upload(&[3u32, 1, 4, 1, 5])?;
//! assert_eq!(reduce::sum(&stream, &input)?.get(&stream)?, 14);
//! assert_eq!(reduce::reduce(&stream, &input, Max)?.get(&stream)?, 5);
//! let product = reduce::reduce(&stream, &input, monoid!(1, |a: u32, b: u32| a * b))?;
//! assert_eq!(product.get(&stream)?, 60);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::monoid::{Max, Min, Monoid, Sum};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::arg::{Ranked, argmax, argmin};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::min_max::{MinMax, min_max};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::passing::{NOT_FOUND, all, any, count_if, find_first};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::segmented::{rows, segmented};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{reduce, sum};
