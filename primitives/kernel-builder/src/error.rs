//! The errors of the builder. Each one says what was requested, what was found and what to do.

use std::path::{Path, PathBuf};

use crate::{PINNED_TOOLCHAIN, TARGET};

/// Why PTX could not be built, or why it is out of date.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, folder or program could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, as a verb: `read`, `write`, `run`.
        action: &'static str,
        /// The file, folder or program.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// The crate's `Cargo.toml` cannot be parsed.
    #[error("{}: {reason}", path.display())]
    Config {
        /// The `Cargo.toml`.
        path: PathBuf,
        /// The problem.
        reason: String,
    },

    /// A path that `[package.metadata.ptx]` names does not exist.
    #[error("{}: `{key}` names `{value}`, but {} does not exist", manifest.display(), path.display())]
    NoSuchSource {
        /// The `Cargo.toml`.
        manifest: PathBuf,
        /// The key in `[package.metadata.ptx]`.
        key: &'static str,
        /// The path as written there.
        value: String,
        /// The resolved path.
        path: PathBuf,
    },

    /// The toolchain is not installed or does not run.
    #[error(
        "the toolchain `{toolchain}` cannot be run: {detail}\n\
         install it with `rustup toolchain install {PINNED_TOOLCHAIN} --component rust-src`, and name it in \
         KERNEL_BUILDER_TOOLCHAIN if it is not your `nightly`"
    )]
    NoToolchain {
        /// The requested toolchain.
        toolchain: String,
        /// The error when it was run.
        detail: String,
    },

    /// The toolchain is stable or beta.
    #[error(
        "the toolchain `{toolchain}` is {version}, but compiling kernels needs a nightly: \
         `rustup toolchain install {PINNED_TOOLCHAIN} --component rust-src`, then set KERNEL_BUILDER_TOOLCHAIN={PINNED_TOOLCHAIN}"
    )]
    NotNightly {
        /// The requested toolchain.
        toolchain: String,
        /// Its version line.
        version: String,
    },

    /// There is no `core` for the GPU.
    #[error(
        "the toolchain `{toolchain}` has no `core` for {TARGET}: no installed target in {}, no rust-src in {}, \
         and KERNEL_BUILDER_RUST_SRC is not set\n\
         do one of:\n  rustup component add rust-src --toolchain {toolchain}\n  \
         rustup target add {TARGET} --toolchain {toolchain}\n  \
         KERNEL_BUILDER_RUST_SRC=<the `library` folder of Rust's sources>",
        target_libdir.display(),
        rust_src.display()
    )]
    NoCore {
        /// The toolchain.
        toolchain: String,
        /// Where an installed target would be.
        target_libdir: PathBuf,
        /// Where rust-src would be.
        rust_src: PathBuf,
    },

    /// `KERNEL_BUILDER_RUST_SRC` names a folder that is not Rust's `library`.
    #[error(
        "KERNEL_BUILDER_RUST_SRC is {}, which has no core/src/lib.rs: name the `library` folder of Rust's sources \
         (the one with `core`, `alloc` and `std` in it)",
        path.display()
    )]
    BadRustSrc {
        /// The value of the variable.
        path: PathBuf,
    },

    /// The crate does not compile.
    #[error("compiling `{package}` for {TARGET} failed ({status}):\n{stderr_tail}")]
    Compile {
        /// The kernel crate.
        package: String,
        /// The exit status of cargo.
        status: String,
        /// The last lines of the output of cargo and rustc.
        stderr_tail: String,
    },

    /// The compiler has read a file for the GPU that is host code by its name.
    #[error(
        "{} is compiled for the GPU, but files and folders called `host` or `native` are host code, \
         which does not count when PTX is checked for being up to date: \
         write `#[cfg(not(target_arch = \"nvptx64\"))]` before its `mod`, or give it another name",
        path.display()
    )]
    HostCodeCompiled {
        /// The file.
        path: PathBuf,
    },

    /// cargo succeeded, but there is not exactly one assembly file.
    #[error(
        "compiling `{package}` left {} assembly files under {}, but exactly one was expected{}: \
         remove that folder and build again",
        found.len(),
        folder.display(),
        found.iter().map(|path| format!("\n  {}", path.display())).collect::<String>()
    )]
    NoAssembly {
        /// The kernel crate.
        package: String,
        /// The searched folder.
        folder: PathBuf,
        /// The assembly files in it.
        found: Vec<PathBuf>,
    },

    /// The PTX does not have the form that the compiler usually writes.
    #[error("cannot parse the PTX ({reason}) at: {near}")]
    MalformedPtx {
        /// The problem.
        reason: &'static str,
        /// The beginning of the text that cannot be parsed.
        near: String,
    },

    /// A `__launch_bounds_…` static is invalid.
    #[error(
        "the launch bounds of kernel `{kernel}` are invalid: {reason}; \
         expected `pub static __launch_bounds_{kernel}: [u32; 2] = [threads, min_blocks]` next to its entry"
    )]
    LaunchBounds {
        /// The kernel.
        kernel: String,
        /// The problem.
        reason: String,
    },

    /// The crate has no kernels.
    #[error(
        "`{package}` has no kernels: when compiled for {TARGET} with features {features:?}, it contains no \
         `#[unsafe(no_mangle)] extern \"ptx-kernel\" fn`"
    )]
    NoKernels {
        /// The crate.
        package: String,
        /// The features it was compiled with.
        features: Vec<String>,
    },

    /// The `MANIFEST` cannot be parsed.
    #[error("{}: {reason}; run `cargo xtask ptx` to rewrite it", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },

    /// The sources are newer than the PTX.
    #[error(
        "{}: kernel sources changed after the PTX was built: run `cargo xtask ptx` \
         (the hash of the sources was {recorded}, and is now {found})",
        crate_dir.display()
    )]
    StaleSources {
        /// The kernel crate.
        crate_dir: PathBuf,
        /// The hash in the `MANIFEST`.
        recorded: String,
        /// The hash of the current sources.
        found: String,
    },

    /// The crate's settings differ from those its PTX was built with.
    #[error(
        "{}: the PTX was built with {key} = {recorded}, but Cargo.toml now has {found}: run `cargo xtask ptx`",
        crate_dir.display()
    )]
    StaleConfig {
        /// The kernel crate.
        crate_dir: PathBuf,
        /// The setting.
        key: &'static str,
        /// Its value in the `MANIFEST`.
        recorded: String,
        /// Its value in `Cargo.toml`.
        found: String,
    },

    /// The PTX files are not those that the `MANIFEST` lists.
    #[error(
        "{}: the PTX was changed after it was built: {}; do not edit generated files, run `cargo xtask ptx`",
        ptx_dir.display(),
        problems.join(", ")
    )]
    TamperedPtx {
        /// The folder with the PTX.
        ptx_dir: PathBuf,
        /// One phrase per file.
        problems: Vec<String>,
    },

    /// `ptxas` was not found.
    #[error(
        "ptxas was found neither in PTXAS nor in PATH nor in python3's site-packages\n\
         install it with `pip install \"nvidia-cuda-nvcc==13.0.*\"`, or set PTXAS to the program"
    )]
    NoPtxas,
}

impl Error {
    /// Returns whether the toolchain that compiles kernels is missing, in whole or in part.
    pub(crate) fn is_missing_toolchain(&self) -> bool {
        matches!(self, Self::NoToolchain { .. } | Self::NotNightly { .. } | Self::NoCore { .. })
    }

    /// Returns a function for `map_err`: `fs::read(p).map_err(Error::io("read", p))`.
    pub(crate) fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Returns the last `lines` lines of `text`, which usually name the problem.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_core_says_where_it_looked_and_what_to_install() {
        let message =
            Error::NoCore { toolchain: "nightly".into(), target_libdir: "/t/lib".into(), rust_src: "/t/src".into() }
                .to_string();
        for needed in [
            "/t/lib",
            "/t/src",
            "rustup component add rust-src --toolchain nightly",
            "rustup target add nvptx64-nvidia-cuda --toolchain nightly",
            "KERNEL_BUILDER_RUST_SRC",
        ] {
            assert!(message.contains(needed), "{needed} is not in: {message}");
        }
    }

    #[test]
    fn a_missing_toolchain_says_which_to_install() {
        let message = Error::NoToolchain { toolchain: "nightly".into(), detail: "not installed".into() }.to_string();
        assert!(message.contains("rustup toolchain install nightly-2026-05-20"), "{message}");
        assert!(message.contains("KERNEL_BUILDER_TOOLCHAIN"), "{message}");
    }

    #[test]
    fn stale_sources_name_the_command() {
        let message =
            Error::StaleSources { crate_dir: "lsm".into(), recorded: "aa".into(), found: "bb".into() }.to_string();
        assert!(message.contains("kernel sources changed after the PTX was built: run `cargo xtask ptx`"), "{message}");
    }

    #[test]
    fn no_assembly_counts_and_lists_what_was_found() {
        let error = |found| Error::NoAssembly { package: "k".into(), folder: "t".into(), found }.to_string();
        assert!(error(vec![]).contains("left 0 assembly files"));
        assert!(error(vec!["t/a.s".into(), "t/b.s".into()]).contains("\n  t/b.s"));
    }

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
        assert_eq!(tail("", 5), "");
    }
}
