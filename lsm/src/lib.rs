//! A dynamic dictionary on the GPU: the log-structured merge tree of *GPU LSM: A Dynamic Dictionary Data Structure for
//! the GPU* (Ashkiani et al.), built from [`gpu_primitives`].
//!
//! ```
//! use gpu_lsm::GpuLsm;
//! use gpu_primitives::{Device, Error};
//!
//! let device = Device::default()?;
//! let stream = device.stream()?;
//! let mut lsm = GpuLsm::<u32, u32>::with_batch_size(1024)?;
//! lsm.insert(&stream, (&stream.upload(&[3, 1, 4])?, &stream.upload(&[30, 10, 40])?))?;
//! lsm.delete(&stream, &stream.upload(&[4])?)?;
//!
//! let found = lsm.lookup(&stream, &stream.upload(&[1, 2, 4])?)?;
//! assert_eq!(found.to_vec(&stream)?, [Some(10), None, None]);
//! let counts = lsm.count(&stream, &stream.upload(&[0])?, &stream.upload(&[9])?)?;
//! assert_eq!(counts.to_vec(&stream)?, [2]);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Semantics
//! Updates are applied in *batches*. A call with more operations than fit into one batch is split into several. The
//! latest write wins: a newer batch overrides an older one, and within a batch the last insertion of a key overrides
//! the earlier ones. If one call both inserts and deletes a key, the deletion wins. Deleting an absent key is allowed.
//! Every value of the key type is a valid key.
//!
//! Queries borrow the dictionary and updates borrow it mutably, so they cannot overlap on the host. To query while
//! updates go on, take a [snapshot](GpuLsm::snapshot), which is cheap. On the device they
//! run in the order of the calls, regardless of the streams they are given.
//!
//! A failed update leaves the dictionary unchanged.
//!
//! # Durability
//! [`GpuLsm::checkpoint`] saves the dictionary in a folder, and [`GpuLsm::recover`] reads it after a crash;
//! [`GpuLsm::recover_or_new`] also starts with an empty one where there never was a checkpoint. Only new
//! levels are written. [`GpuLsm::save`] and [`GpuLsm::load`] write and read a single file.
//!
//! # Structure
//! With a batch size of `b`, level `i` holds at most `b · 2^i` elements. The binary digits of the number of batches say
//! which levels exist. A new batch is sorted. Then it is merged, in *one* pass, with the levels that the carry runs
//! through, into the first free level. A deletion inserts a tombstone. A level is exactly as long as its contents: a
//! batch that is not full makes a shorter level, and there is no padding.
//!
//! The paper marks tombstones in the lowest bit of the key, which halves the key space. Here, a level that has
//! tombstones stores one extra bit per element; other levels store none. So every key is usable and a batch need not be
//! encoded before it is sorted. No key has to be rejected either, which would force the host to wait for the device.

#![cfg_attr(target_arch = "nvptx64", no_std)]

#[cfg(not(target_arch = "nvptx64"))]
mod any;
#[cfg(not(target_arch = "nvptx64"))]
mod budget;
#[cfg(not(target_arch = "nvptx64"))]
mod cadence;
#[cfg(not(target_arch = "nvptx64"))]
mod checkpoint;
#[cfg(not(target_arch = "nvptx64"))]
mod file;
#[cfg(not(target_arch = "nvptx64"))]
mod levels;
#[cfg(not(target_arch = "nvptx64"))]
mod lsm;
#[cfg(not(target_arch = "nvptx64"))]
mod multimap;
#[cfg(not(target_arch = "nvptx64"))]
mod options;
#[cfg(not(target_arch = "nvptx64"))]
mod policy;
#[cfg(not(target_arch = "nvptx64"))]
mod query;
#[cfg(not(target_arch = "nvptx64"))]
mod store;
#[cfg(not(target_arch = "nvptx64"))]
mod traits;

pub use gpu_dictionary::levels::Levels as LsmView;

#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_dictionary::levels::{AllValues, Level, Neighbour, Parts, Ranges};
#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_dictionary::{Contents, Key, Lookup, Snapshot, Value, value};
#[cfg(not(target_arch = "nvptx64"))]
pub use lsm::GpuLsm;
#[cfg(not(target_arch = "nvptx64"))]
pub use multimap::GpuMultimap;
#[cfg(not(target_arch = "nvptx64"))]
pub use options::{Options, suggest_batch_size};
#[cfg(not(target_arch = "nvptx64"))]
pub use policy::{CleanupPolicy, Stats};
