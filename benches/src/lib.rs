//! Comparative benchmarks. Operations are timed by device events, peers are measured in the same run, and every result
//! is checked. The results are written as tables, plots and files.

mod alike;
pub mod baseline;
mod beyond;
pub mod both;
mod buffer;
pub mod check;
pub mod command;
pub mod compare;
pub mod contender;
pub mod cuckoo;
pub mod data;
mod error;
pub mod lsm;
mod machine;
pub mod measure;
pub mod names;
pub mod oracle;
pub mod output;
pub mod paper;
pub mod peers;
pub mod primitives;
pub mod record;
pub mod reference;
pub mod report;
pub mod results;
pub mod rows;
pub mod session;
pub mod sorted_array;
pub mod tables;
mod upserts;
pub mod view;

pub use error::Error;

/// The measurements of a command, and how it ended. After a failure, the measurements before it are kept.
pub struct Run {
    /// The measurements.
    pub recording: record::Recording,
    /// The error that stopped the command, if there was one.
    pub outcome: Result<(), Error>,
}
