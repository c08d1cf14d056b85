//! [`PtxBuilder`]: compiles a kernel crate to a folder of PTX.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::assembly::Assembly;
use crate::config::CrateInfo;
use crate::core_source::{CoreSource, RUST_SRC};
use crate::kernels::split;
use crate::manifest::{MANIFEST, Manifest};
use crate::sources::expect_hashed;
use crate::sources::text_hash;
use crate::toolchain::{ACTIVE, Toolchain};
use crate::{CoreChoice, DEFAULT_TOOLCHAIN, Error, TARGET, source_hash};

/// The environment variable that names the toolchain.
const TOOLCHAIN: &str = "KERNEL_BUILDER_TOOLCHAIN";

/// The file in a folder for PTX that says that none was built. `instances!` then registers nothing for GPUs.
const CPU_ALONE: &str = "CPU_ALONE";

/// Compiles one kernel crate to PTX.
///
/// Unset options are taken from `[package.metadata.ptx]` of the crate's `Cargo.toml`. For checked-in PTX, set nothing
/// but the folders here, because [`verify`](crate::verify) sees only the `Cargo.toml`.
#[derive(Clone, Debug)]
pub struct PtxBuilder {
    crate_dir: PathBuf,
    toolchain: Option<String>,
    core: CoreChoice,
    arch: Option<String>,
    features: Option<Vec<String>>,
    default_features: Option<bool>,
    out_dir: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    or_cpu_alone: bool,
}

/// The result of a build.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built {
    /// The folder with the PTX and the `MANIFEST`.
    pub out_dir: PathBuf,
    /// The kernels by name.
    pub kernels: Vec<BuiltKernel>,
    /// The contents of the `MANIFEST`.
    pub manifest: Manifest,
}

/// One built kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltKernel {
    /// The name of the entry.
    pub name: String,
    /// Its PTX file.
    pub path: PathBuf,
}

impl PtxBuilder {
    /// Creates a builder for the crate in `crate_dir`, the folder of its `Cargo.toml`.
    pub fn new(crate_dir: impl Into<PathBuf>) -> Self {
        Self {
            crate_dir: crate_dir.into(),
            toolchain: None,
            core: CoreChoice::default(),
            arch: None,
            features: None,
            default_features: None,
            out_dir: None,
            target_dir: None,
            or_cpu_alone: false,
        }
    }

    /// Sets the oldest GPU generation that the PTX runs on, such as `sm_70`.
    #[must_use]
    pub fn arch(mut self, arch: impl Into<String>) -> Self {
        self.arch = Some(arch.into());
        self
    }

    /// Sets the toolchain, as rustup names it. `KERNEL_BUILDER_TOOLCHAIN` overrides it. The default is `nightly`.
    #[must_use]
    pub fn toolchain(mut self, toolchain: impl Into<String>) -> Self {
        self.toolchain = Some(toolchain.into());
        self
    }

    /// Sets which `core` to prefer.
    #[must_use]
    pub fn core(mut self, choice: CoreChoice) -> Self {
        self.core = choice;
        self
    }

    /// Sets the features.
    #[must_use]
    pub fn features(mut self, features: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.features = Some(features.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether the crate's default features are enabled.
    #[must_use]
    pub fn default_features(mut self, on: bool) -> Self {
        self.default_features = Some(on);
        self
    }

    /// Sets the folder for the PTX. The default is `<crate>/ptx`. A build removes all other PTX files from it.
    #[must_use]
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// Lets a [build script](Self::build_for_build_script) go on without PTX if the toolchain or `rust-src` is missing. Then
    /// cargo shows a warning, and the crate's kernels run on the CPU alone: on a GPU they give `Error::NoInstance`.
    #[must_use]
    pub fn or_cpu_alone(mut self) -> Self {
        self.or_cpu_alone = true;
        self
    }

    /// Sets cargo's folder for intermediate files. The default is `target/ptx` in the workspace. Do not use the folder
    /// of a running cargo, which holds its lock.
    #[must_use]
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.target_dir = Some(folder.into());
        self
    }

    /// Returns whether this process runs inside a build of PTX. A build script of the kernel crate then has nothing to
    /// do.
    pub fn is_nested() -> bool {
        env::var_os(ACTIVE).is_some() || env::var("TARGET").is_ok_and(|target| target == TARGET)
    }

    /// Compiles the crate and writes one `NAME.ptx` per kernel and the `MANIFEST`. Does not touch files whose contents
    /// stay the same.
    pub fn build(&self) -> Result<Built, Error> {
        let mut info = CrateInfo::read(&self.crate_dir)?;
        self.override_config(&mut info);
        let toolchain = Toolchain::find(&self.toolchain_name())?;
        let core = CoreSource::find(&toolchain, self.core)?;
        // Hash first: if a file is saved while rustc runs, the PTX counts as out of date, not as current.
        let sources = source_hash(&self.crate_dir)?;
        let assembly = Assembly {
            crate_dir: &self.crate_dir,
            info: &info,
            toolchain: &toolchain,
            core: &core,
            target_dir: self.target_dir.as_deref(),
        };
        let header =
            ["Generated by gpu-kernel-builder: do not edit.".into(), format!("Toolchain: {}", toolchain.version)];
        let (ptx, dep_info) = assembly.compile()?;
        expect_hashed(&self.crate_dir, &info.config, &dep_info)?;
        let mut kernels = split(&ptx, &header)?;
        let elsewhere = kernels_of_dependencies(&self.crate_dir, &info);
        kernels.retain(|kernel| !elsewhere.contains(&kernel.name));
        if kernels.is_empty() {
            return Err(Error::NoKernels { package: info.package, features: info.config.features });
        }
        let manifest = Manifest {
            toolchain: toolchain.version.clone(),
            core: core.word().into(),
            arch: info.config.arch.clone(),
            features: info.config.features_line(),
            flags: assembly.flags().join(" "),
            sources,
            kernels: kernels.iter().map(|kernel| (kernel.name.clone(), text_hash(kernel.ptx.as_bytes()))).collect(),
        };

        let out_dir = self.out_dir.clone().unwrap_or_else(|| self.crate_dir.join("ptx"));
        fs::create_dir_all(&out_dir).map_err(Error::io("create", &out_dir))?;
        remove_stale(&out_dir, &manifest)?;
        if out_dir.join(CPU_ALONE).exists() {
            fs::remove_file(out_dir.join(CPU_ALONE)).map_err(Error::io("remove", out_dir.join(CPU_ALONE)))?;
        }
        let mut written = Vec::new();
        for kernel in kernels {
            let path = out_dir.join(format!("{}.ptx", kernel.name));
            write_if_changed(&path, &kernel.ptx)?;
            written.push(BuiltKernel { name: kernel.name, path });
        }
        write_if_changed(&out_dir.join(MANIFEST), &manifest.to_string())?;
        Ok(Built { out_dir, kernels: written, manifest })
    }

    /// [`build`](Self::build) for a `build.rs`: writes to `OUT_DIR/ptx` by default, and tells cargo when to run the
    /// script again. Does nothing and returns `None` if the script itself runs as part of such a build.
    pub fn build_for_build_script(&self) -> Result<Option<Built>, Error> {
        for line in self.rerun_lines()? {
            println!("{line}");
        }
        if Self::is_nested() {
            return Ok(None);
        }
        let mut builder = self.clone();
        if let Some(out_dir) = env::var_os("OUT_DIR").map(PathBuf::from) {
            builder.out_dir.get_or_insert_with(|| out_dir.join("ptx"));
            builder.target_dir.get_or_insert_with(|| out_dir.join("ptx-target"));
        }
        match builder.build() {
            Err(error) if self.or_cpu_alone && error.is_missing_toolchain() => {
                println!("cargo:warning=built for the CPU alone: {}", error.to_string().replace('\n', " "));
                builder.leave_to_cpu().map(|()| None)
            }
            built => built.map(Some),
        }
    }

    /// Writes a folder without PTX, with the mark that `instances!` looks for.
    fn leave_to_cpu(&self) -> Result<(), Error> {
        let folder = self.out_dir.clone().unwrap_or_else(|| self.crate_dir.join("ptx"));
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        remove_stale(&folder, &Manifest::default())?;
        write_if_changed(&folder.join(CPU_ALONE), "No PTX was built.\n")
    }

    fn rerun_lines(&self) -> Result<Vec<String>, Error> {
        let info = CrateInfo::read(&self.crate_dir)?;
        let mut paths = vec![self.crate_dir.join("Cargo.toml"), self.crate_dir.join("src")];
        for other in &info.config.also_hash {
            let path = self.crate_dir.join(other);
            // The crate's folder may contain a `target` folder, which changes all the time.
            paths.push(if path.join("Cargo.toml").is_file() { path.join("src") } else { path });
        }
        let mut lines: Vec<String> =
            paths.iter().map(|path| format!("cargo:rerun-if-changed={}", path.display())).collect();
        lines.extend([TOOLCHAIN, RUST_SRC].map(|name| format!("cargo:rerun-if-env-changed={name}")));
        Ok(lines)
    }

    fn toolchain_name(&self) -> String {
        let said = env::var(TOOLCHAIN).ok().filter(|name| !name.is_empty());
        said.or_else(|| self.toolchain.clone()).unwrap_or_else(|| DEFAULT_TOOLCHAIN.into())
    }

    fn override_config(&self, info: &mut CrateInfo) {
        if let Some(arch) = &self.arch {
            info.config.arch.clone_from(arch);
        }
        if let Some(features) = &self.features {
            info.config.features.clone_from(features);
        }
        if let Some(on) = self.default_features {
            info.config.default_features = on;
        }
    }
}

/// Returns the kernels of the crates in `also-hash` that have PTX. Their entries are compiled into this crate's module,
/// because a static library exports what its dependencies export, but they are not this crate's kernels.
fn kernels_of_dependencies(crate_dir: &Path, info: &CrateInfo) -> BTreeSet<String> {
    let manifests = info.config.also_hash.iter().map(|other| Manifest::read(crate_dir.join(other).join("ptx")));
    manifests.flatten().flat_map(|manifest| manifest.kernels.into_keys()).collect()
}

fn remove_stale(out_dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    for entry in fs::read_dir(out_dir).map_err(Error::io("read", out_dir))? {
        let path = entry.map_err(Error::io("read", out_dir))?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "ptx") && !manifest.kernels.contains_key(&stem) {
            fs::remove_file(&path).map_err(Error::io("remove", path))?;
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn stale_ptx_goes_and_other_files_stay() {
        let scratch = Scratch::new();
        for name in ["old.ptx", "kept.ptx", "README.md"] {
            scratch.write(name, "");
        }
        let kernels = [("kept".to_owned(), String::new())].into();
        remove_stale(scratch.path(), &Manifest { kernels, ..Manifest::default() }).unwrap();
        let left = |name: &str| scratch.path().join(name).exists();
        assert!(!left("old.ptx") && left("kept.ptx") && left("README.md"));
    }

    #[test]
    fn a_folder_for_the_cpu_alone_has_a_mark_and_no_ptx() {
        let scratch = Scratch::new();
        scratch.write("old.ptx", "");
        PtxBuilder::new("").out_dir(scratch.path()).leave_to_cpu().unwrap();
        assert!(scratch.path().join(CPU_ALONE).exists() && !scratch.path().join("old.ptx").exists());
    }

    #[test]
    fn a_build_script_runs_again_when_sources_or_settings_change() {
        let scratch = Scratch::new();
        scratch.write(
            "k/Cargo.toml",
            "[package]\nname = \"k\"\n[package.metadata.ptx]\nalso-hash = [\"../o\", \"a.rs\"]\n",
        );
        scratch.write("o/Cargo.toml", "");
        let lines = PtxBuilder::new(scratch.path().join("k")).rerun_lines().unwrap().join("\n");
        for needed in ["k/Cargo.toml", "k/src", "k/../o/src", "k/a.rs", TOOLCHAIN, RUST_SRC] {
            assert!(lines.contains(needed), "{needed} is not in {lines}");
        }
    }

    #[test]
    fn what_is_said_to_the_builder_wins_over_cargo_toml() {
        let scratch = Scratch::new();
        scratch.write("Cargo.toml", "[package]\nname = \"k\"\n[package.metadata.ptx]\narch = \"sm_75\"\n");
        let mut info = CrateInfo::read(scratch.path()).unwrap();
        PtxBuilder::new(scratch.path()).features(["a"]).default_features(false).override_config(&mut info);
        assert_eq!((info.config.arch.as_str(), info.config.features_line().as_str()), ("sm_75", "a"));
        PtxBuilder::new(scratch.path()).arch("sm_90").override_config(&mut info);
        assert_eq!(info.config.arch, "sm_90");
    }

    #[test]
    fn kernels_that_a_dependency_has_ptx_of_are_not_ours() {
        let scratch = Scratch::new();
        scratch.write(
            "k/Cargo.toml",
            "[package]\nname = \"k\"\n[package.metadata.ptx]\nalso-hash = [\"../o\", \"../p\"]\n",
        );
        scratch.write("o/ptx/MANIFEST", "sources = a\nkernel theirs 00\n");
        let crate_dir = scratch.path().join("k");
        let info = CrateInfo::read(&crate_dir).unwrap();
        assert_eq!(kernels_of_dependencies(&crate_dir, &info), ["theirs".to_owned()].into());
    }
}
