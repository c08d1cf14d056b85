//! The errors of the tasks.

use std::path::{Path, PathBuf};

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Building or reading PTX failed.
    #[error(transparent)]
    Ptx(#[from] gpu_kernel_builder::Error),

    /// A file, folder or program could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    /// cargo failed. It has printed the error itself.
    #[error("`cargo {arguments}` failed ({status})")]
    Cargo { arguments: String, status: String },

    /// The output of cargo cannot be parsed.
    #[error("cannot parse the output of `cargo {arguments}`: {source}")]
    CargoJson { arguments: String, source: serde_json::Error },

    /// `-p` named a package without kernels.
    #[error("`{name}` is not a kernel crate; the crates with [package.metadata.ptx] are: {}", known.join(", "))]
    UnknownPackage { name: String, known: Vec<String> },

    /// No package has kernels.
    #[error("no package of this workspace has [package.metadata.ptx] in its Cargo.toml")]
    NoKernelCrates,

    /// `ptx --check` found differences.
    #[error("the checked-in PTX is out of date ({count} differences): run `cargo xtask ptx`{hint}")]
    PtxDiffers { count: usize, hint: String },

    /// A page that a task writes is another one.
    #[error("{page} is out of date: run `cargo xtask {task}`")]
    PageDiffers { page: &'static str, task: &'static str },

    /// `book` has findings.
    #[error("{count} problems in the pages")]
    BrokenPages { count: usize },

    /// `packages` has findings.
    #[error("{count} problems in the packages")]
    BadPackages { count: usize },

    /// A package is larger than the registry accepts.
    #[error("{name} has {size} bytes, but the registry accepts at most {limit}: leave files out")]
    PackageTooBig { name: String, size: u64, limit: u64 },

    /// The public items of a package cannot be listed.
    #[error("cannot list the public items of {package}: {what}")]
    Api { package: String, what: String },

    /// `api --check` found differences.
    #[error(
        "{count} lines of the public interface differ: if that is meant, run `cargo xtask api` and note it in CHANGELOG.md"
    )]
    ApiDiffers { count: usize },

    /// `ptx-lint` has findings.
    #[error("{count} findings in {kernels} kernels")]
    Findings { count: usize, kernels: usize },

    /// The bundle is too large to send.
    #[error(
        "the bundle has {} MiB, but at most {} MiB are allowed; the largest files are:{}",
        total / MIB, limit / MIB,
        biggest.iter().map(|(path, size)| format!("\n  {:>6} KiB  {}", size / 1024, path.display())).collect::<String>()
    )]
    BundleTooBig { total: u64, limit: u64, biggest: Vec<(PathBuf, u64)> },

    /// The bundle is empty.
    #[error("no test executables were built, so there is nothing to bundle")]
    EmptyBundle,
}

/// The number of bytes in a MiB.
pub const MIB: u64 = 1024 * 1024;

impl Error {
    /// Returns a function for `map_err`: `fs::read(p).map_err(Error::io("read", p))`.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
