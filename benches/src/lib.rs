//! Comparative benchmarks: timing by device events, peers in the same run, every result checked; tables, plots and files.

pub mod both;
pub mod check;
pub mod compare;
pub mod contender;
pub mod cuckoo;
pub mod data;
mod error;
pub mod lsm;
mod machine;
pub mod measure;
pub mod oracle;
pub mod output;
pub mod paper;
pub mod peers;
pub mod primitives;
pub mod record;
pub mod report;
pub mod results;
pub mod rows;
pub mod session;
pub mod sorted_array;
pub mod view;

pub use error::Error;

/// What a command has measured, and how it ended: what was measured before a failure is kept.
pub struct Run {
    /// The measurements.
    pub recording: record::Recording,
    /// Whether that is all of them.
    pub outcome: Result<(), Error>,
}
