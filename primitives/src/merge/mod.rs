//! Merge: combines sorted sequences into one. It is stable and takes any order.
//!
//! It merges two sequences ([`keys()`], [`pairs`]), or up to 32 at once ([`runs_keys`], [`runs_pairs`]), in one pass
//! over memory. The sequences may have any length, including zero, and lie in different buffers.
//!
//! - **Stable, deterministic**: among items that compare equal, those of the earlier sequence come first, in their own
//!   order.
//! - **Order**: a [`Compare`](crate::compare::Compare), which may carry state. If an input is not sorted by it, or the
//!   comparator is not a strict weak order, the output is some permutation of the input.
//! - **Sizes**: keys have 1 to 32 bytes. Values have any size. Those of 4 and 8 bytes (with keys of over 8 bytes, those of
//!   4) are moved with the keys; others are moved by index and gathered at the end, which takes memory for them.
//! - **Synchronisation**: none; the result is ready in stream order.
//! - **Memory**: reads and writes each item once. Scratch memory of 8 bytes per tile of a few thousand items (per tile
//!   and run, for many runs), allocated and freed in stream order.
//! - **Sources**: computed inputs are evaluated into temporary memory first, in [one more pass](crate::source#calls-that-need-their-elements-in-memory).
//!
//! ```
//! use gpu_primitives::compare::{Greater, Less};
//! use gpu_primitives::{Device, Error, merge};
//!
//! let stream = Device::cpu().stream()?;
//! let (a, b) = (stream.upload(&[1u32, 4, 6])?, stream.upload(&[2u32, 4, 5, 9])?);
//! let mut out = stream.uninit::<u32>(7)?;
//! merge::keys(&stream, &a, &b, &mut out, Less)?;
//! assert_eq!(out.to_vec(&stream)?, [1, 2, 4, 4, 5, 6, 9]);
//!
//! let runs = [[9u32, 3], [8, 2], [7, 1]].map(|run| stream.upload(&run).unwrap());
//! let slices: Vec<_> = runs.iter().map(|run| run.as_slice()).collect();
//! let mut out = stream.uninit::<u32>(6)?;
//! merge::runs_keys(&stream, &slices, &mut out, Greater)?;
//! assert_eq!(out.to_vec(&stream)?, [9, 8, 7, 3, 2, 1]);
//! # Ok::<(), Error>(())
//! ```

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub(crate) use device::kernel::{Boundary, PARTITION_THREADS};
pub use device::place::MAX_PLACED;
pub use device::runs::MAX_RUNS;
pub(crate) use device::runs::{SLACK, run_at, tile_len};
pub(crate) use device::shape::{RUNS_THREADS, runs_items};
pub(crate) use device::tile::TileSplits;
pub use device::tile::{Joined, Tile, Walk};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::lowered::placed;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::place;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use host::splits::partition;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::splits::{RunsSplits, Splits};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{keys, pairs, runs_keys, runs_pairs, small_runs_keys, small_runs_pairs};
