//! Finds and calls the nightly toolchain, even from inside another cargo.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::error::tail;
use crate::{Error, TARGET};

/// Set while kernels are compiled, so that the kernel crate's own build script does not start another build.
pub(crate) const ACTIVE: &str = "KERNEL_BUILDER_ACTIVE";

/// An installed nightly.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    pub name: String,
    /// The output of `rustc --version`.
    pub version: String,
}

impl Toolchain {
    pub fn find(name: &str) -> Result<Self, Error> {
        let mut toolchain = Self { name: name.into(), version: String::new() };
        toolchain.version = toolchain.ask(&["--version"])?;
        // A compiler built from source calls itself `-dev`, and has the nightly features, too.
        if !toolchain.version.contains("-nightly") && !toolchain.version.contains("-dev") {
            return Err(Error::NotNightly { toolchain: name.into(), version: toolchain.version });
        }
        Ok(toolchain)
    }

    /// Returns the folder of the installed GPU target, which may not exist.
    pub fn target_libdir(&self) -> Result<PathBuf, Error> {
        self.ask(&["--print", "target-libdir", "--target", TARGET]).map(PathBuf::from)
    }

    /// Returns the folder of rust-src, which may not exist.
    pub fn rust_src(&self) -> Result<PathBuf, Error> {
        self.ask(&["--print", "sysroot"]).map(|sysroot| PathBuf::from(sysroot).join("lib/rustlib/src/rust/library"))
    }

    /// Returns this toolchain's `cargo`, without the variables that an outer cargo has set.
    pub fn cargo(&self) -> Command {
        self.command("cargo")
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, Error> {
        let no_toolchain = |detail| Error::NoToolchain { toolchain: self.name.clone(), detail };
        let output =
            self.command("rustc").args(arguments).output().map_err(|error| no_toolchain(format!("rustc: {error}")))?;
        let Output { status, stdout, stderr } = output;
        if !status.success() {
            return Err(no_toolchain(complaint(&String::from_utf8_lossy(&stderr))));
        }
        Ok(String::from_utf8_lossy(&stdout).trim().into())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(belongs_to_outer_cargo) {
                command.env_remove(name);
            }
        }
        command.arg(format!("+{}", self.name)).env(ACTIVE, "1");
        command
    }
}

/// Returns the error line of rustup's or rustc's output. A backtrace may follow it.
fn complaint(stderr: &str) -> String {
    let error = stderr.lines().find_map(|line| line.trim().strip_prefix("error:"));
    error.map_or_else(|| tail(stderr, 5), |error| error.trim().into())
}

/// Returns whether a variable was set by an outer cargo (of a build script or of `cargo xtask`), or configures another
/// build: otherwise its flags, compiler and target would be used for the GPU.
fn belongs_to_outer_cargo(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "CARGO",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "CARGO_MAKEFLAGS",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_DIR",
        "CARGO_TARGET_TMPDIR",
        "DEBUG",
        "HOST",
        "MAKEFLAGS",
        "NUM_JOBS",
        "OPT_LEVEL",
        "OUT_DIR",
        "PROFILE",
        "RUSTC",
        "RUSTC_LINKER",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
        "TARGET",
    ];
    const PREFIXES: [&str; 10] = [
        "CARGO_BIN_",
        "CARGO_BUILD_",
        "CARGO_CFG_",
        "CARGO_CRATE_",
        "CARGO_FEATURE_",
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_PROFILE_",
        "CARGO_UNSTABLE_",
        "DEP_",
    ];
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_cargo_is_forgotten_and_the_users_settings_are_not() {
        for name in ["CARGO", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "CARGO_TARGET_NVPTX64_NVIDIA_CUDA_RUSTFLAGS"] {
            assert!(belongs_to_outer_cargo(name), "{name}");
        }
        for name in
            ["CARGO_HOME", "RUSTUP_HOME", "CARGO_NET_OFFLINE", "CARGO_HTTP_PROXY", "PATH", "KERNEL_BUILDER_RUST_SRC"]
        {
            assert!(!belongs_to_outer_cargo(name), "{name}");
        }
    }

    #[test]
    fn the_complaint_is_the_line_with_the_error() {
        assert_eq!(
            complaint("info: syncing\nerror: toolchain 'x' is not installed\n  0: backtrace\n"),
            "toolchain 'x' is not installed"
        );
        assert_eq!(complaint("something else\n"), "something else");
    }

    #[test]
    fn a_toolchain_that_is_not_there_is_named_with_what_to_install() {
        let message = Toolchain::find("no-such-toolchain-0").unwrap_err().to_string();
        assert!(message.contains("`no-such-toolchain-0`") && message.contains("rustup toolchain install"), "{message}");
    }
}
