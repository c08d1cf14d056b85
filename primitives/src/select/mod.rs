//! Selection: keep the items that pass a test, in order; or split them into those that pass and the rest.
//!
//! - **Stable, deterministic**: items keep their order, also the rest of a partition; the same input gives the same output.
//! - **Synchronisation**: none, except [`segments`] and [`segments_pairs`], which wait for the verdict about the offsets.
//!   Counts stay on the device as a [`DeviceValue`](crate::DeviceValue) until somebody asks for them.
//! - **Memory**: a selection reads each item once and writes what stays once. A partition reads the keys a second time, to
//!   know where the rest begins. Scratch of 16 bytes per tile, kept with the stream; a partition takes 8 bytes per tile and
//!   a segmented compaction about 4 bits per item more, in stream order.
//!
//! On a GPU, [`Masked`] predicates and flags are there for keys of type `u32` and `u64` (flags: any of 4 or 8 bytes), with
//! values of 4 or 8 bytes or none. Other predicates and keys are instances of the kernels [`SelectTiles`], [`CountTiles`]
//! and [`PartitionTiles`] that a crate of your own [names](crate::instances).
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

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
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
