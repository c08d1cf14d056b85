//! A sorted array as a GPU dictionary, built from [`gpu_primitives`]. It has the fastest ordered queries and uses the
//! least memory, but every update rewrites the whole array.
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sorted_array::{GpuSortedArray, Options};
//!
//! let stream = Device::default()?.stream()?;
//! let (keys, values) = (stream.upload(&[3, 1, 4, 1])?, stream.upload(&[30, 10, 40, 11])?);
//! let mut array = GpuSortedArray::<u32, u32>::bulk_build(&stream, (&keys, &values), Options::new())?;
//! assert_eq!(array.len(&stream)?, 3); // of equal keys, the last one wins
//! array.update(&stream, (&stream.upload(&[5])?, &stream.upload(&[50])?), &stream.upload(&[4])?)?;
//!
//! let found = array.lookup(&stream, &stream.upload(&[1, 2, 4])?)?;
//! assert_eq!(found.to_vec(&stream)?, [Some(11), None, None]);
//! let ranges = array.range(&stream, &stream.upload(&[2])?, &stream.upload(&[9])?)?;
//! assert_eq!(ranges.to_vec(&stream)?, [[(3, 30), (5, 50)]]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Semantics
//! The semantics of all dictionaries, as described by [`Dictionary`](gpu_dictionary::Dictionary) and
//! [`Updatable`](gpu_dictionary::Updatable). The latest write wins. If one call both inserts and deletes a
//! key, the deletion wins. Every value of the key type is a valid key. A failed call leaves the array unchanged.
//!
//! # Structure
//! A single level, as [`gpu_dictionary::levels`] describes it, without tombstones or duplicate keys: the
//! sorted keys, their values, and a directory built by the first query. An update sorts its input and merges it with
//! the array into a new array. The merge drops stale elements.

#![cfg_attr(target_arch = "nvptx64", no_std)]

#[cfg(not(target_arch = "nvptx64"))]
mod array;
#[cfg(not(target_arch = "nvptx64"))]
mod durable;
#[cfg(not(target_arch = "nvptx64"))]
mod file;
#[cfg(not(target_arch = "nvptx64"))]
mod options;
#[cfg(not(target_arch = "nvptx64"))]
mod query;
#[cfg(not(target_arch = "nvptx64"))]
mod traits;

pub use gpu_dictionary::levels::Levels as SortedArrayView;

#[cfg(not(target_arch = "nvptx64"))]
pub use array::GpuSortedArray;
#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_dictionary::levels::{Level, Neighbour, Parts, Ranges};
#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_dictionary::{Contents, Key, Lookup, Snapshot, Stats, Value, value};
#[cfg(not(target_arch = "nvptx64"))]
pub use options::Options;
