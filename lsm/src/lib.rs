//! A dynamic dictionary on the GPU: the log-structured merge tree of *GPU LSM: A Dynamic Dictionary Data Structure for
//! the GPU* (Ashkiani et al.), composed from [`gpu_primitives`].
//!
//! ```
//! use gpu_lsm::GpuLsm;
//! use gpu_primitives::{Device, Error};
//!
//! let device = Device::default()?;
//! let stream = device.stream()?;
//! let mut lsm = GpuLsm::<u32, u32>::new(1024)?;
//! lsm.insert(&stream, &stream.upload(&[3, 1, 4])?, &stream.upload(&[30, 10, 40])?)?;
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
//! Updates come in *batches*; a call with more operations than a batch has is cut into several. What came last counts: the
//! newest batch, and within a batch the last insertion of a key. What is inserted and deleted by one call is deleted. Deleting
//! what is not there is allowed. Every value of the key type can be a key.
//!
//! Queries borrow the dictionary, updates borrow it mutably, so that they do not overlap on the host. On the device they happen
//! in the order of the calls, whichever streams they are given.
//!
//! A failed update leaves the dictionary as it was.
//!
//! # Structure
//! With a batch size of `b`, level `i` holds at most `b · 2^i` elements, and the levels that there are follow the binary digits
//! of the number of batches. A new batch is sorted; together with the levels that the carry runs through it is merged in *one* pass
//! into the first free one. A deletion is the insertion of a tombstone. Levels are as long as what they hold: a batch that is
//! not full is shorter, and there is no padding.
//!
//! Where the paper keeps a tombstone's mark in the lowest bit of the key and so loses half of the keys, here levels that
//! have tombstones, and only those, have a bit per element beside them: all keys can be used, a batch need not be
//! encoded before it is sorted, and no key has to be refused, which would take the host to wait for the device.

#[cfg(not(target_arch = "nvptx64"))]
mod file;
#[cfg(not(target_arch = "nvptx64"))]
mod lsm;
#[cfg(not(target_arch = "nvptx64"))]
mod policy;
#[cfg(not(target_arch = "nvptx64"))]
mod traits;

#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_primitives::dictionary::levels::{Level, Levels as LsmView, Neighbour, Ranges};
#[cfg(not(target_arch = "nvptx64"))]
pub use gpu_primitives::dictionary::{Contents, Key, Lookup};
#[cfg(not(target_arch = "nvptx64"))]
pub use lsm::{GpuLsm, suggest_batch_size};
#[cfg(not(target_arch = "nvptx64"))]
pub use policy::{CleanupPolicy, Stats};
#[cfg(not(target_arch = "nvptx64"))]
pub use traits::Options;
