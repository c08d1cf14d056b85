//! Why a task failed.

use std::path::{Path, PathBuf};

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Building or reading PTX.
    #[error(transparent)]
    Ptx(#[from] gpu_kernel_builder::Error),

    /// A file, folder or program could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    /// cargo answered with an error, which it has printed itself.
    #[error("`cargo {arguments}` failed ({status})")]
    Cargo { arguments: String, status: String },

    /// cargo answered with something unknown.
    #[error("cannot understand what `cargo {arguments}` says: {source}")]
    CargoJson { arguments: String, source: serde_json::Error },

    /// `-p` named a package without kernels.
    #[error("no kernel crate is called `{name}`; those with [package.metadata.ptx] are: {}", known.join(", "))]
    UnknownPackage { name: String, known: Vec<String> },

    /// No package has kernels.
    #[error("no package of this workspace has [package.metadata.ptx] in its Cargo.toml")]
    NoKernelCrates,

    /// `ptx --check` found differences.
    #[error("the checked-in PTX is not what its sources compile to ({count} differences): run `cargo xtask ptx`{hint}")]
    PtxDiffers { count: usize, hint: String },

    /// `ptx-lint` found something.
    #[error("{count} findings in {kernels} kernels")]
    Findings { count: usize, kernels: usize },

    /// The bundle is too big to send.
    #[error(
        "the bundle has {} MiB, more than the {} MiB it may have; the biggest files are:{}",
        total / MIB, limit / MIB,
        biggest.iter().map(|(path, size)| format!("\n  {:>6} KiB  {}", size / 1024, path.display())).collect::<String>()
    )]
    BundleTooBig { total: u64, limit: u64, biggest: Vec<(PathBuf, u64)> },

    /// There was nothing to put in the bundle.
    #[error("no test executables were built, so there is nothing to bundle")]
    EmptyBundle,
}

/// Bytes in a MiB.
pub const MIB: u64 = 1024 * 1024;

impl Error {
    /// For `map_err`: `fs::read(p).map_err(Error::io("read", p))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
