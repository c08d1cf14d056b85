//! A blocked Bloom filter: a set that may say "present" for a key it does not have, and never says "absent" for one it has.
//!
//! - [`BloomFilter`]: the filter. Keys are plain data of 1 to 32 bytes: all numbers, the keys of the dictionaries, structs.
//! - [`Options`]: the number of keys, and the bits per key or the wanted rate of false positives.
//! - [`FilterView`]: the filter inside a kernel of your own.
//!
//! A filter takes 1 to 2 bytes per key, however long the keys are. Keys are inserted and asked for in bulk, and cannot be deleted.
//!
//! ```
//! use gpu_dictionary::filter::{BloomFilter, Options};
//! use gpu_primitives::{Device, Error};
//!
//! let stream = Device::cpu().stream()?;
//! let members = stream.upload(&(0..10_000u32).collect::<Vec<_>>())?;
//! let mut filter = BloomFilter::build(&stream, &members, Options::new().false_positive_rate(0.001))?;
//! assert_eq!(filter.count(&stream, &members)?.get(&stream)?, 10_000); // no false negatives
//!
//! let others = stream.upload(&(1_000_000..1_100_000u32).collect::<Vec<_>>())?;
//! assert!(filter.count(&stream, &others)?.get(&stream)? < 200); // about 100 false positives
//! filter.insert(&stream, &others)?;
//! assert_eq!(filter.count(&stream, &others)?.get(&stream)?, 100_000);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//! - **Deterministic**: the bits are a function of the options and of the set of keys, on all devices. Neither the order of the
//!   keys nor their division into calls matters.
//! - **Failures**: a failed call leaves the filter unchanged.
//! - **Synchronisation**: insertions and queries do not wait.
//! - **Streams**: calls may use different streams. A query sees all insertions that were called before it.

pub(crate) mod device;
pub(crate) mod hash;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;
pub(crate) mod view;

pub use view::FilterView;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::options::Options;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{BloomFilter, Stats};
