//! A cuckoo hash table as a GPU dictionary: the fastest lookups, no order, built in bulk. Composed from [`gpu_primitives`].
//!
//! - [`GpuCuckoo`]: the table. Keys are numbers of 32 or 64 bits, all of whose values can be keys; values are plain data of 0, 4
//!   or 8 bytes.
//! - [`CuckooView`]: the table inside a kernel of your own.
//! - [`Options`]: load, number of hash functions, width of the buckets, and what happens when there is no room.
//!
//! ```
//! use gpu_cuckoo::{GpuCuckoo, Options};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let keys = stream.upload(&[7u32, 0, u32::MAX, 7])?;
//! let values = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let mut table = GpuCuckoo::bulk_build(&stream, &keys, &values, Options::new())?;
//! assert_eq!(table.len(&stream)?, 3); // of equal keys the last one counts
//!
//! let asked = stream.upload(&[7u32, 8])?;
//! assert_eq!(table.lookup(&stream, &asked)?.to_vec(&stream)?, [Some(4.0), None]);
//! table.delete(&stream, &asked)?;
//! assert_eq!(table.contains(&stream, &asked)?.to_vec(&stream)?, [0, 0]);
//! # Ok::<(), Error>(())
//! ```

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]
// Device functions are unsafe as a whole: their contract is stated once, on the function.
#![allow(unsafe_op_in_unsafe_fn)]

mod kernel;
mod map;
#[doc(hidden)]
pub mod translate;

#[cfg(not(target_arch = "nvptx64"))]
mod host;

pub use map::CuckooView;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::{GpuCuckoo, Options, Stats, WhenFull};
