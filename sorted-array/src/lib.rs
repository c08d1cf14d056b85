//! A sorted array as a GPU dictionary: the fastest ordered queries and the least memory; every update writes the array anew.
//! Composed from [`gpu_primitives`].
//!
//! ```
//! use gpu_primitives::{Device, Error};
//! use gpu_sorted_array::GpuSortedArray;
//!
//! let stream = Device::default()?.stream()?;
//! let (keys, values) = (stream.upload(&[3, 1, 4, 1])?, stream.upload(&[30, 10, 40, 11])?);
//! let mut array = GpuSortedArray::<u32, u32>::bulk_build(&stream, &keys, &values)?;
//! assert_eq!(array.len(), 3); // of equal keys the last one counts
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
//! Those of all dictionaries, [`Dictionary`](gpu_primitives::dictionary::Dictionary) and its fellows: what came last counts, what
//! is inserted and deleted by one call is deleted, every value of the key type can be a key, and a call that fails leaves the
//! array as it was.
//!
//! # Structure
//! One level of those that [`gpu_primitives::dictionary::levels`] describes, without tombstones and with every key once: sorted
//! keys, their values, and a directory that the first query builds. An update sorts what it is given and merges it with the
//! array into a new one, from which stale elements are left out on the way.

mod array;
mod file;
mod traits;

pub use array::GpuSortedArray;
pub use gpu_primitives::dictionary::levels::{Level, Levels as SortedArrayView, Neighbour, Ranges};
pub use gpu_primitives::dictionary::{Contents, Key, Lookup, Stats};
