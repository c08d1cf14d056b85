//! Comparative benchmarks: timing by device events, peers in the same run, tables.

pub mod cuckoo;
pub mod data;
pub mod lsm;
pub mod measure;
pub mod peers;
pub mod primitives;
pub mod quickstart;

/// What can go wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device or a primitive failed.
    #[error(transparent)]
    Device(#[from] gpu_primitives::Error),
    /// A timed result was wrong, so its time means nothing.
    #[error("{what}: the result is wrong at index {index}")]
    WrongResult {
        /// The row.
        what: &'static str,
        /// The first wrong element.
        index: usize,
    },
    /// A suite of rows that does not exist.
    #[error("there is no suite {asked:?}: it is one of {known}")]
    UnknownSuite {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// The peer program could not be compiled or run.
    #[error("the peer program: {what}")]
    Peer {
        /// What happened.
        what: String,
    },
}
