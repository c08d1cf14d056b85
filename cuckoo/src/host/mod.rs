//! The host side.

mod build;
mod launch;
mod options;
mod table;
mod update;

pub use options::{Options, WhenFull};
pub use table::{GpuCuckoo, Stats};
