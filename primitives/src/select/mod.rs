//! Selection: keeps the items that pass a test, in order, or partitions items into those that pass and the rest.
//!
//! - **Stable, deterministic**: items keep their order, also the rest of a partition; the same input gives the same
//!   output.
//! - **Synchronisation**: none, except for [`segmented`] and [`segmented_pairs`], which wait for the check of the
//!   [offsets](crate::Offsets). Counts stay on the device as a [`DeviceValue`](crate::DeviceValue) until you read them.
//! - **Memory**: a selection reads each item once and writes each kept item once. A partition reads the keys a second
//!   time, to find where the rest begins. Scratch memory of 16 bytes per tile is kept with the stream. A partition
//!   needs another 8 bytes per tile, and a segmented compaction about 4 bits per item, in stream order.
//! - **Sources**: [`select()`] and [`positions`] evaluate a source as they read it. For the others, computed inputs are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! Items of the common sizes are moved as they are read: keys of 4 and 8 bytes alone, by selections and partitions also with
//! values of 4 bytes, by selections also with values of 8, and keys of 1 and 2 bytes. (By flags: keys of 4 bytes, alone or
//! with values of 4, and keys of 8 bytes.) For others, the indices of the kept items are found first, and the items are
//! gathered by them.
//!
//! ```
//! use gpu_primitives::select::{self, Masked};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let input = stream.upload(&[3u32, 1, 4, 1, 5, 9, 2, 6])?;
//! let mut output = stream.zeroed::<u32>(8)?;
//! let count = select::select(&stream, &input, &mut output, Masked::equal(1, 0))?;
//! let count = count.get(&stream)? as usize; // waits
//! assert_eq!(output.slice(..count)?.to_vec(&stream)?, [4, 2, 6]);
//!
//! select::partition(&stream, &input, &mut output, Masked::equal(1, 0))?;
//! assert_eq!(output.to_vec(&stream)?, [4, 2, 6, 3, 1, 1, 5, 9]);
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
pub(crate) use device::predicate::HolePredicate;
pub use device::predicate::{Masked, Predicate};
pub use device::segments::Offset;

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::flagged_any;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::segments::{segmented, segmented_pairs};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{
    by_bits, collect_positions, flagged, flagged_pairs, partition, partition_pairs, positions, select, select_pairs,
};
