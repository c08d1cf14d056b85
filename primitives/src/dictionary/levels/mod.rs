//! Sorted levels, newest first, and what is asked of them: the body of the ordered dictionaries.
//!
//! A level is a sorted array of key codes, with their values, and with a bit per element if it has tombstones. Elements of one
//! key lie side by side, the newest *last*, so that a stable sort of a batch and a stable merge of levels, the older first, keep
//! the order of time without further ado. An element is *live* if it is the newest of its key in all levels and no tombstone.
//!
//! # Index
//! Every level has a directory: the range of its keys is cut into equal buckets, of four to eight elements each if keys are
//! spread evenly (or more, if a [`Stack`] is to take less memory), and an entry of 8 bytes says where a bucket begins and which of 32 fingerprints occur in it. A lookup reads
//! one entry per level and goes on to the keys only if the fingerprint is there, so that a level without the key costs one
//! access of 32 bytes seven times out of eight. Where keys are crowded, buckets are large and are searched by bisection: the
//! directory never makes it worse than a binary search.
//!
//! The directory of a level is built by the first query after the level came to be, so that levels which are merged away
//! before anybody asks cost nothing.

mod copy;
mod cut;
mod directory;
mod find;
mod groups;
mod lookup;
mod neighbour;
mod payload;
mod renew;
mod table;
mod tiles;
mod windows;

#[cfg(not(target_arch = "nvptx64"))]
mod intervals;
#[cfg(not(target_arch = "nvptx64"))]
mod level;
#[cfg(not(target_arch = "nvptx64"))]
mod query;
#[cfg(not(target_arch = "nvptx64"))]
mod stack;

pub use copy::CopyWindows;
pub use directory::BuildDirectory;
pub use find::Levels;
pub use lookup::LookupKeys;
pub use neighbour::FindNeighbours;
pub use payload::{Marked, MarkedLong, MarkedNone, Payload};
pub use renew::RenewLevel;
pub use table::EncodeKeys;
pub use tiles::{COUNT, EMIT, KEEP, LevelTiles};
pub use windows::FindWindows;

#[cfg(not(target_arch = "nvptx64"))]
pub use intervals::{Intervals, Ranges};
#[cfg(not(target_arch = "nvptx64"))]
pub use level::Level;
#[cfg(not(target_arch = "nvptx64"))]
pub use query::Neighbour;
#[cfg(not(target_arch = "nvptx64"))]
pub use stack::Stack;
