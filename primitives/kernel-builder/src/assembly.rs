//! One run of cargo: compiles a kernel crate to assembly, which for rustc's GPU target is PTX.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::CrateInfo;
use crate::core_source::CoreSource;
use crate::error::tail;
use crate::toolchain::Toolchain;
use crate::{Error, TARGET};

/// The profile settings that compile the crate and its dependencies to one self-contained module. They are passed on
/// the command line, because profiles in a dependency's `Cargo.toml` are ignored and the user's may differ.
const PROFILE: [&str; 7] = [
    "lto=\"fat\"",
    "codegen-units=1",
    "panic=\"abort\"",
    "opt-level=3",
    "debug=false",
    "incremental=false",
    "overflow-checks=false",
];

/// The cfg that is set for the requested crate, but not for its dependencies.
const ENTRIES: &str = "ptx_entries";

/// What to compile, with which toolchain, and where.
pub(crate) struct Assembly<'a> {
    pub crate_dir: &'a Path,
    pub info: &'a CrateInfo,
    pub toolchain: &'a Toolchain,
    pub core: &'a CoreSource,
    pub target_dir: Option<&'a Path>,
}

impl Assembly<'_> {
    /// Returns the rustc flags that affect the PTX.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if self.core.folder().is_some() {
            // A failed bounds check stops the kernel at once, without formatting a message. This needs a `core` that is
            // compiled with the same flag.
            flags.extend(["-Zunstable-options".into(), "-Cpanic=immediate-abort".into()]);
        }
        flags.push(format!("-Ctarget-cpu={}", self.info.config.arch));
        // Register arrays need their loops unrolled, and Rust has no `#pragma unroll`.
        flags.push("-Cllvm-args=-unroll-threshold=4000".into());
        flags
    }

    /// Compiles the crate and returns the PTX of the whole module, and the rules of a makefile that name the files read for it.
    pub fn compile(&self) -> Result<(String, String), Error> {
        let workspace = self.workspace_root()?;
        let target_dir = match self.target_dir {
            Some(folder) => std::path::absolute(folder).map_err(Error::io("use", folder))?,
            None => default_target_dir(&workspace),
        };
        self.forget_previous(&target_dir)?;

        let mut cargo = self.toolchain.cargo();
        cargo.arg("rustc").arg("--manifest-path").arg(self.manifest_path()?);
        cargo.args(["--lib", "--release", "--target", TARGET]).arg("--target-dir").arg(&target_dir);
        for setting in PROFILE {
            cargo.arg("--config").arg(format!("profile.release.{setting}"));
        }
        if self.core.folder().is_some() {
            cargo.arg("-Zbuild-std=core");
        }
        if let CoreSource::Folder(folder) = self.core {
            // The name says that this is for cargo's tests, but it is the only way to set the folder of the sources,
            // and it has been stable for years.
            cargo.env("__CARGO_TESTS_ONLY_SRC_ROOT", folder);
        }
        let config = &self.info.config;
        if !config.default_features {
            cargo.arg("--no-default-features");
        }
        if !config.features.is_empty() {
            cargo.arg("--features").arg(config.features.join(","));
        }
        // A static library is the only kind of output that is complete and needs no linker.
        cargo.args(["--crate-type", "staticlib", "--", "--emit=asm"]);
        // Arguments after `--` apply only to this crate, so a dependency that checks it does not emit its entries.
        cargo.arg(format!("--cfg={ENTRIES}"));
        cargo.env("CARGO_ENCODED_RUSTFLAGS", self.encoded_flags(&workspace));
        // Keeps the assembly under `target_dir` even if the user's configuration puts such files elsewhere.
        cargo.env("CARGO_BUILD_BUILD_DIR", &target_dir);

        let output = cargo.output().map_err(Error::io("run", "cargo"))?;
        if !output.status.success() {
            return Err(Error::Compile {
                package: self.info.package.clone(),
                status: output.status.to_string(),
                stderr_tail: tail(&String::from_utf8_lossy(&output.stderr), 60),
            });
        }
        let mut found = self.assembly_files(&target_dir);
        match found.pop() {
            Some(path) if found.is_empty() => {
                let read = |path: PathBuf| fs::read_to_string(&path).map_err(Error::io("read", path));
                let rules = target_dir.join(TARGET).join("release").join(format!("lib{}.d", self.info.library));
                Ok((read(path)?, read(rules)?))
            }
            last => {
                found.extend(last);
                Err(Error::NoAssembly { package: self.info.package.clone(), folder: target_dir, found })
            }
        }
    }

    /// Removes the files of earlier runs of this crate (not of `core`), so that exactly one assembly file, the right
    /// one, exists afterwards. cargo keeps one per set of flags and features, and does not report their names.
    fn forget_previous(&self, target_dir: &Path) -> Result<(), Error> {
        if !target_dir.exists() {
            return Ok(());
        }
        for path in self.assembly_files(target_dir) {
            fs::remove_file(&path).map_err(Error::io("remove", path))?;
        }
        let mut cargo = self.toolchain.cargo();
        cargo.arg("clean").arg("--manifest-path").arg(self.manifest_path()?);
        cargo.args(["--release", "--target", TARGET, "--package", &self.info.package]);
        cargo.arg("--target-dir").arg(target_dir).env("CARGO_BUILD_BUILD_DIR", target_dir);
        let output = cargo.output().map_err(Error::io("run", "cargo"))?;
        if !output.status.success() {
            return Err(Error::Compile {
                package: self.info.package.clone(),
                status: format!("cargo clean: {}", output.status),
                stderr_tail: tail(&String::from_utf8_lossy(&output.stderr), 20),
            });
        }
        Ok(())
    }

    /// Returns the assembly files of the crate, wherever this version of cargo puts them.
    fn assembly_files(&self, target_dir: &Path) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![target_dir.join(TARGET)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "s") {
                    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    // `name-0123abcd.s`. A crate whose name begins with ours has more text before the hyphen.
                    if stem.split('-').next() == Some(&self.info.library) {
                        found.push(path);
                    }
                }
            }
        }
        found.sort();
        found
    }

    fn manifest_path(&self) -> Result<PathBuf, Error> {
        let path = self.crate_dir.join("Cargo.toml");
        std::path::absolute(&path).map_err(Error::io("use", path))
    }

    fn workspace_root(&self) -> Result<PathBuf, Error> {
        let mut cargo = self.toolchain.cargo();
        cargo.args(["locate-project", "--workspace", "--message-format", "plain", "--manifest-path"]);
        let output = cargo.arg(self.manifest_path()?).output().map_err(Error::io("run", "cargo"))?;
        let manifest = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        match manifest.parent() {
            Some(root) if output.status.success() => Ok(root.into()),
            _ => Err(Error::Compile {
                package: self.info.package.clone(),
                status: format!("cargo locate-project: {}", output.status),
                stderr_tail: tail(&String::from_utf8_lossy(&output.stderr), 20),
            }),
        }
    }

    /// Returns the flags, with those that keep the folders of this machine out of the PTX.
    fn encoded_flags(&self, workspace: &Path) -> OsString {
        let mut flags: Vec<OsString> = self.flags().into_iter().map(OsString::from).collect();
        flags.push(format!("--check-cfg=cfg({ENTRIES})").into());
        let cargo_home = env::var_os("CARGO_HOME").or_else(|| {
            let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"))?;
            Some(Path::new(&home).join(".cargo").into_os_string())
        });
        // The last match wins, so the workspace comes last.
        let folders = [
            (cargo_home.as_ref().map(Path::new), "/cargo"),
            (self.core.folder(), "/rustc/library"),
            (Some(workspace), "/workspace"),
        ];
        for (folder, name) in folders {
            if let Some(folder) = folder {
                let mut flag = OsString::from("--remap-path-prefix=");
                flag.push(folder);
                flag.push("=");
                flag.push(name);
                flags.push(flag);
            }
        }
        flags.join("\x1f".as_ref())
    }
}

/// Returns `target/ptx`: separate from the host's folder, so that two cargos do not wait for each other's lock.
fn default_target_dir(workspace: &Path) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    workspace.join(target).join("ptx")
}
