//! The errors of the benchmarks.

use std::path::PathBuf;

/// An error of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device or a primitive failed.
    #[error(transparent)]
    Device(#[from] gpu_primitives::Error),
    /// A timed result was wrong, so its time is meaningless.
    #[error("{what}: the result is wrong at index {index}")]
    WrongResult {
        /// The row.
        what: String,
        /// The first wrong element.
        index: usize,
    },
    /// A structure of a comparison failed.
    #[error("{name}: {source}")]
    Structure {
        /// The name of the structure.
        name: String,
        /// What failed.
        source: Box<Error>,
    },
    /// The device does not have enough memory for this size.
    #[error(
        "{elements} elements need about {} of device memory, but {} of {} are free: use fewer (--size, --scale)",
        gibibytes(*needed), gibibytes(*free), gibibytes(*total)
    )]
    NoRoom {
        /// The requested number of elements.
        elements: usize,
        /// The most bytes that the measurements need.
        needed: usize,
        /// The number of free bytes.
        free: usize,
        /// The total number of bytes.
        total: usize,
    },
    /// The arguments are invalid.
    #[error("{0}")]
    Arguments(String),
    /// The suite of rows does not exist.
    #[error("unknown suite {asked:?}: use one of {known}")]
    UnknownSuite {
        /// The requested suite.
        asked: String,
        /// The existing suites.
        known: String,
    },
    /// The peer program could not be compiled or run.
    #[error("the peer program failed: {what}")]
    Peer {
        /// The reason.
        what: String,
    },
    /// A file or folder cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file of measurements cannot be parsed.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// Ctrl-C was pressed.
    #[error("interrupted")]
    Interrupted,
    /// A generated file does not match the measurements.
    #[error("{} is out of date: run `cargo run --release -- results`", path.display())]
    Stale {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// Names the structure whose result was wrong, or which failed. Leaves other errors as they are.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        match self {
            Self::WrongResult { .. } | Self::Device(_) => Self::Structure { name: name.into(), source: Box::new(self) },
            other => other,
        }
    }

    /// Returns a function for `map_err`: the error of trying `action` with this file.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

fn gibibytes(bytes: usize) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}
