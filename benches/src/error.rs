//! What can go wrong in a benchmark.

use std::path::PathBuf;

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
        what: String,
        /// The first wrong element.
        index: usize,
    },
    /// A size for which the device has not enough memory.
    #[error(
        "{elements} elements need about {} of device memory, but {} of {} are free: ask for fewer (--size, --scale)",
        gibibytes(*needed), gibibytes(*free), gibibytes(*total)
    )]
    NoRoom {
        /// The elements that were asked for.
        elements: usize,
        /// The bytes that measuring them takes at most.
        needed: usize,
        /// Bytes that are free.
        free: usize,
        /// All bytes there are.
        total: usize,
    },
    /// Arguments that do not go together.
    #[error("{0}")]
    Arguments(String),
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
    /// A file or folder that cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of measurements that is not understood.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The person at the terminal pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The page is not what the measurements give.
    #[error("{} is not what the measurements give: run `cargo run --release -- results`", path.display())]
    Stale {
        /// The page.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err`: the error of trying `action` with this file.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

fn gibibytes(bytes: usize) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}
