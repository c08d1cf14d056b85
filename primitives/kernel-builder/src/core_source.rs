//! The source of `core` for the GPU.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::toolchain::Toolchain;

/// The environment variable that names Rust's `library` folder.
pub(crate) const RUST_SRC: &str = "KERNEL_BUILDER_RUST_SRC";

/// Which `core` to prefer. `KERNEL_BUILDER_RUST_SRC` overrides it.
///
/// With rust-src, the PTX is the same wherever the toolchain and the crate lie. With the folder that the variable names,
/// it is not: cargo hashes the folder's path into the names of functions, and the compiler orders functions by name. So
/// PTX that is checked in and compared needs rust-src.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoreChoice {
    /// An installed target (`rustup target add nvptx64-nvidia-cuda`), else rust-src. The fastest choice.
    #[default]
    Installed,
    /// rust-src (`rustup component add rust-src`), else an installed target. `core` is compiled together with the
    /// kernels, with panics that abort at once, so kernels have no panic paths. Use it for PTX that is checked in and
    /// compared.
    Source,
}

/// The chosen `core`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreSource {
    Installed,
    /// rust-src, which cargo finds by itself.
    RustSrc(PathBuf),
    /// A folder that must be passed to cargo.
    Folder(PathBuf),
}

impl CoreSource {
    pub fn find(toolchain: &Toolchain, choice: CoreChoice) -> Result<Self, Error> {
        let folder = env::var_os(RUST_SRC).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        Self::choose(&toolchain.name, choice, folder, toolchain.target_libdir()?, toolchain.rust_src()?)
    }

    fn choose(
        toolchain: &str,
        choice: CoreChoice,
        folder: Option<PathBuf>,
        target_libdir: PathBuf,
        rust_src: PathBuf,
    ) -> Result<Self, Error> {
        if let Some(path) = folder {
            // cargo runs in another folder, so the path must be absolute.
            return match fs::canonicalize(&path) {
                Ok(absolute) if has_core(&absolute) => Ok(Self::Folder(absolute)),
                _ => Err(Error::BadRustSrc { path }),
            };
        }
        let installed = has_compiled_core(&target_libdir);
        match choice {
            CoreChoice::Installed if installed => Ok(Self::Installed),
            _ if has_core(&rust_src) => Ok(Self::RustSrc(rust_src)),
            _ if installed => Ok(Self::Installed),
            _ => Err(Error::NoCore { toolchain: toolchain.into(), target_libdir, rust_src }),
        }
    }

    /// Returns the word for the `MANIFEST`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::RustSrc(_) | Self::Folder(_) => "source",
        }
    }

    /// Returns the folder that `core` is compiled from.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Installed => None,
            Self::RustSrc(folder) | Self::Folder(folder) => Some(folder),
        }
    }
}

fn has_core(library: &Path) -> bool {
    library.join("core/src/lib.rs").is_file()
}

fn has_compiled_core(libdir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(libdir) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// Chooses among those of the three folders that exist.
    fn choose(choice: CoreChoice, target: bool, rust_src: bool, folder: Option<bool>) -> Result<&'static str, Error> {
        let scratch = Scratch::new();
        if target {
            scratch.write("target/libcore-0123.rlib", "");
        }
        if rust_src {
            scratch.write("rust-src/core/src/lib.rs", "");
        }
        if folder == Some(true) {
            scratch.write("folder/core/src/lib.rs", "");
        }
        let path = |name: &str| scratch.path().join(name);
        CoreSource::choose("nightly", choice, folder.map(|_| path("folder")), path("target"), path("rust-src")).map(
            |found| match found {
                CoreSource::Installed => "installed",
                CoreSource::RustSrc(_) => "rust-src",
                CoreSource::Folder(_) => "folder",
            },
        )
    }

    #[test]
    fn the_order_is_as_documented() {
        use CoreChoice::*;
        assert_eq!(choose(Installed, true, true, None).unwrap(), "installed");
        assert_eq!(choose(Installed, false, true, None).unwrap(), "rust-src");
        assert_eq!(choose(Source, true, true, None).unwrap(), "rust-src");
        assert_eq!(choose(Source, true, false, None).unwrap(), "installed");
        assert_eq!(choose(Installed, false, false, Some(true)).unwrap(), "folder");
        assert_eq!(choose(Installed, true, true, Some(true)).unwrap(), "folder");
    }

    #[test]
    fn none_found_says_what_to_install_and_a_wrong_folder_is_named() {
        assert!(matches!(choose(CoreChoice::Source, false, false, None), Err(Error::NoCore { .. })));
        let message = choose(CoreChoice::Source, true, true, Some(false)).unwrap_err().to_string();
        assert!(message.contains("KERNEL_BUILDER_RUST_SRC") && message.contains("`library` folder"), "{message}");
    }
}
