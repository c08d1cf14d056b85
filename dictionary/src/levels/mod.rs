//! Sorted levels, newest first, and the queries on them: the core of the ordered dictionaries.
//!
//! A level is a sorted array of key codes with their values, and with one bit per element if it has tombstones.
//! Elements with the same key are adjacent, the newest *last*. So a stable sort of a batch, and a stable merge of
//! levels from oldest to newest, keep the elements in order of age. An element is *live* if it is the newest element
//! with its key in all levels, and not a tombstone.
//!
//! # Index
//! Every level has a directory. The range of its keys is divided into equal buckets. If the keys are spread evenly, a
//! bucket has four to eight elements, or more if a [`Stack`] is set to use less memory. An 8-byte entry says where a
//! bucket begins and which of 32 fingerprints occur in it. A lookup reads one entry per level, and reads the keys only
//! if the entry has the key's fingerprint. So, seven times out of eight, a level without the key costs one 32-byte
//! access. Where keys are clustered, buckets are large and are searched by bisection: a lookup is never slower than a
//! binary search.
//!
//! The directory of a level is built by the first query that needs it. Levels that are merged away before any query
//! cost nothing.

pub(crate) mod device;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) mod native;

pub use device::find::Levels;
pub use device::payload::{Marked, MarkedLong, MarkedNone, Payload};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::all_values::AllValues;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::buffer::{AnyBuffer, Operations};
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub use host::file::Stored;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::intervals::{Intervals, Ranges, RangesMut};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::level::AnyLevel;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::operation::Operation;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::query::Neighbour;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::stack::AnyStack;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::typed::{Level, Parts, Stack};
#[cfg(not(target_arch = "nvptx64"))]
pub use host::types::Types;
