//! The host side of the table.

#![deny(unsafe_op_in_unsafe_fn)]

mod additions;
mod build;
mod file;
mod hasher;
mod insert;
mod options;
mod pairs;
mod plain;
mod query;
mod storage;
mod table;
mod traits;
mod update;
mod whole;
mod work;

pub use options::{Options, WhenFull};
pub use plain::PlainCuckoo;
pub use table::{GpuCuckoo, Stats};
