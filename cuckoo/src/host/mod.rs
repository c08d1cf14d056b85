//! The host side of the table.

#![deny(unsafe_op_in_unsafe_fn)]

mod additions;
mod build;
mod claim;
mod file;
mod fill;
mod growth;
mod hasher;
mod insert;
mod options;
mod pairs;
mod place;
mod plain;
mod query;
mod repeats;
mod storage;
mod table;
mod traits;
mod undo;
mod update;
mod whole;
mod work;

pub use options::{Options, WhenFull};
pub use plain::PlainCuckoo;
pub use table::{GpuCuckoo, Stats};
