//! Selection: keeps the items that pass a test, in order, or partitions items into those that pass and the rest.
//!
//! - **Stable, deterministic**: items keep their order, also the rest of a partition; the same input gives the same
//!   output.
//! - **Synchronisation**: none, except for [`segments`] and [`segments_pairs`], which wait for the check of the
//!   offsets. Counts stay on the device as a [`DeviceValue`](crate::DeviceValue) until you read them.
//! - **Memory**: a selection reads each item once and writes each kept item once. A partition reads the keys a second
//!   time, to find where the rest begins. Scratch memory of 16 bytes per tile is kept with the stream. A partition
//!   needs another 8 bytes per tile, and a segmented compaction about 4 bits per item, in stream order.
//!
//! On a GPU, [`Masked`] predicates are available for keys of type `u32` and `u64`, and flags for any keys of 4 or 8
//! bytes, with values of 4 or 8 bytes or none. For other predicates and keys, [instantiate](crate::instances) the
//! kernels [`SelectTiles`], [`CountTiles`] and [`PartitionTiles`] in your own crate.
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

mod kernel;
mod predicate;
mod segments;
mod tile;

#[cfg(not(target_arch = "nvptx64"))]
mod host;

pub use kernel::{CountTiles, PartitionTiles, SelectTiles};
#[doc(hidden)]
pub use predicate::{By, Flags, Keep};
pub use predicate::{Masked, Predicate};
pub use segments::Offset;
#[doc(hidden)]
pub use segments::{CheckOffsets, MoveOffsets, NoteShape, Within};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::segments::{segments, segments_pairs, segments_pairs_unchecked, segments_unchecked};
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use host::{Shape, partition_shaped, segments::segments_shaped, select_shaped};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{flagged, flagged_pairs, partition, partition_pairs, select, select_pairs};
