//! The metadata of this workspace, and calls of cargo.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::Error;

/// The part of `cargo metadata` that the tasks need.
#[derive(Deserialize)]
pub struct Workspace {
    pub packages: Vec<Package>,
    pub workspace_root: PathBuf,
    pub target_directory: PathBuf,
}

/// One member of the workspace.
#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    manifest_path: PathBuf,
    metadata: Option<serde_json::Value>,
    /// An empty list if the package is not published.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

/// One library, executable, test or benchmark.
#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    pub kind: Vec<String>,
}

impl Workspace {
    /// Writes a page that a task makes, from the root of the workspace; or compares it with the one that is there.
    pub fn write_page(&self, page: &'static str, text: &str, task: &'static str, check: bool) -> Result<(), Error> {
        let path = self.workspace_root.join(page);
        if !check {
            return fs::write(&path, text).map_err(Error::io("write", &path));
        }
        let present = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        if present == text { Ok(()) } else { Err(Error::PageDiffers { page, task }) }
    }

    pub fn load() -> Result<Self, Error> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1"];
        let json = cargo_output(&arguments)?;
        serde_json::from_slice(&json).map_err(|source| Error::CargoJson { arguments: arguments.join(" "), source })
    }

    /// Returns the packages with `[package.metadata.ptx]`: all of them, or the named ones. They are in the order of the
    /// workspace's members, which should list dependencies first.
    pub fn kernel_crates(&self, names: &[String]) -> Result<Vec<&Package>, Error> {
        let all: Vec<&Package> = self.packages.iter().filter(|package| package.has_kernels()).collect();
        let known = || all.iter().map(|package| package.name.clone()).collect();
        if let Some(name) = names.iter().find(|name| all.iter().all(|package| package.name != **name)) {
            return Err(Error::UnknownPackage { name: name.clone(), known: known() });
        }
        if all.is_empty() {
            return Err(Error::NoKernelCrates);
        }
        Ok(all.into_iter().filter(|package| names.is_empty() || names.contains(&package.name)).collect())
    }
}

impl Package {
    /// Returns the folder of the package's `Cargo.toml`.
    pub fn dir(&self) -> PathBuf {
        self.manifest_path.parent().map(PathBuf::from).unwrap_or_default()
    }

    pub fn has_kernels(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.get("ptx").is_some())
    }

    /// Returns whether the package is used only to compile kernels, not to run them.
    pub fn is_build_tool(&self) -> bool {
        ["gpu-kernel-builder", "xtask"].contains(&self.name.as_str()) || self.has_target("proc-macro")
    }

    /// Returns the features that docs.rs turns on; `None` for all.
    pub fn documented_features(&self) -> Option<Vec<String>> {
        let features = self.metadata.as_ref()?.get("docs")?.get("rs")?.get("features")?.as_array()?;
        Some(features.iter().filter_map(|feature| feature.as_str().map(str::to_owned)).collect())
    }

    /// Returns whether the package is a library that is published, and no macro.
    pub fn is_library(&self) -> bool {
        let is_published = self.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        is_published && self.targets.iter().any(Target::is_library)
    }

    pub fn has_target(&self, kind: &str) -> bool {
        self.targets.iter().any(|target| target.is(kind))
    }
}

impl Target {
    pub fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }

    /// Returns whether the target is a library.
    pub fn is_library(&self) -> bool {
        self.is("lib") || self.is("rlib")
    }
}

/// Runs cargo and returns its standard output. Its messages go to the terminal.
pub fn cargo_output(arguments: &[impl AsRef<str>]) -> Result<Vec<u8>, Error> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(&cargo).args(&arguments).stderr(Stdio::inherit()).output().map_err(Error::io("run", &cargo))?;
    if !output.status.success() {
        return Err(Error::Cargo { arguments: arguments.join(" "), status: output.status.to_string() });
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        serde_json::from_str(
            r#"{"workspace_root": "/w", "target_directory": "/w/target", "packages": [
                {"id": "1", "name": "kernels", "manifest_path": "/w/kernels/Cargo.toml", "metadata": {"ptx": {}},
                 "targets": [{"name": "kernels", "kind": ["lib"]}]},
                {"id": "2", "name": "macro", "manifest_path": "/w/macro/Cargo.toml", "metadata": null,
                 "targets": [{"name": "macro", "kind": ["proc-macro"]}]}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn kernel_crates_are_those_that_say_so() {
        let workspace = workspace();
        let found = workspace.kernel_crates(&[]).unwrap();
        assert_eq!(found.iter().map(|package| package.dir()).collect::<Vec<_>>(), [PathBuf::from("/w/kernels")]);
        assert!(workspace.packages[1].is_build_tool() && !workspace.packages[0].is_build_tool());
    }

    #[test]
    fn an_unknown_package_is_answered_with_the_known_ones() {
        let message = workspace().kernel_crates(&["macro".into()]).err().unwrap().to_string();
        assert!(message.contains("`macro`") && message.contains("are: kernels"), "{message}");
    }
}
