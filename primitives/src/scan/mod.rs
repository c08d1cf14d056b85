//! Scan: the running combination of a sequence, exclusive or inclusive, in one pass over memory. Scans by key and segmented
//! scans restart it at each run of equal keys, or at each segment.
//!
//! - **Stable, deterministic**: elements are combined in order, with a grouping that depends only on the length and the
//!   type. The same input gives the same bytes on every run and every device, also for floating-point sums. (Their
//!   rounding differs from that of a sequential loop, which groups differently.)
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: reads and writes each element once. Scratch memory of about 8 bytes per tile and word of the type,
//!   kept with the stream and reused.
//!
//! ```
//! use gpu_primitives::scan::{self, Max};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let input = stream.upload(&[3u32, 1, 4, 1, 5])?;
//! let mut output = stream.zeroed::<u32>(5)?;
//! scan::inclusive(&stream, &input, &mut output, Max)?;
//! assert_eq!(output.to_vec(&stream)?, [3, 3, 4, 4, 5]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use crate::monoid::{Max, Min, Monoid, Sum};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::by_key::{
    exclusive_by_key, inclusive_by_key, row_exclusive, row_inclusive, segmented_exclusive, segmented_inclusive,
};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::inclusive_any;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{exclusive, exclusive_in_place, exclusive_sum, inclusive, inclusive_in_place, inclusive_sum};
