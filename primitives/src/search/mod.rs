//! Search: finds the positions of needles in a sorted haystack.
//!
//! [`lower_bound`] returns the number of elements less than the needle, [`upper_bound`] the number of elements not
//! greater than it. [`equal_range`] returns both: the elements between them are equal to the needle. The needles may be
//! in any order. If they are sorted, [`lower_bound_sorted`] and [`upper_bound_sorted`] walk through both sequences
//! once, in step.
//!
//! - **Order**: a [`Compare`](crate::compare::Compare), which may carry state. If the haystack is not sorted by it, or
//!   the comparator is not a strict weak order, the results are some positions from 0 to the haystack's length.
//! - **Positions**: `u32` or `u64`, according to the output's type.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: for many unsorted needles, an index of one seventh of the haystack, which every call rebuilds; for few
//!   needles, none; for sorted needles, 8 bytes per tile of a few thousand elements. It is allocated and freed in
//!   stream order.
//! - **Sources**: needles that are computed are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! ```
//! use gpu_primitives::compare::Less;
//! use gpu_primitives::{Device, Error, search};
//!
//! let stream = Device::cpu().stream()?;
//! let haystack = stream.upload(&[10u32, 20, 20, 30])?;
//! let needles = stream.upload(&[20u32, 5, 99])?;
//! let mut lower = stream.uninit::<u32>(3)?;
//! let mut upper = stream.uninit::<u32>(3)?;
//! search::equal_range(&stream, &haystack, &needles, &mut lower, &mut upper, Less)?;
//! assert_eq!(lower.to_vec(&stream)?, [1, 0, 4]);
//! assert_eq!(upper.to_vec(&stream)?, [3, 0, 4]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use device::kernel::IndexOut;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{equal_range, lower_bound, lower_bound_sorted, upper_bound, upper_bound_sorted};
