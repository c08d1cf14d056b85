//! `cargo xtask packages`: checks that every library crate can be published.
//!
//! Each crate must describe itself, contain its licences, and be small enough for the registry. Cargo then compiles each
//! of them from its package alone.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use serde::Deserialize;

use crate::error::{Error, MIB};
use crate::workspace::cargo_output;

/// The largest package that the registry accepts.
const LIMIT: u64 = 10 * MIB;
/// Files that every package must contain.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The part of `cargo metadata` that says how a package describes itself.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Manifest>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    readme: Option<String>,
    repository: Option<String>,
    homepage: Option<String>,
    documentation: Option<String>,
    rust_version: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    /// An empty list if the package is not published.
    publish: Option<Vec<String>>,
    metadata: Option<serde_json::Value>,
}

/// Checks all packages that are published.
pub fn run() -> Result<(), Error> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let json = cargo_output(&arguments)?;
    let metadata: Metadata =
        serde_json::from_slice(&json).map_err(|source| Error::CargoJson { arguments: arguments.join(" "), source })?;
    let published: Vec<&Manifest> = metadata.packages.iter().filter(|package| package.is_published()).collect();

    let mut problems: Vec<String> = published.iter().flat_map(|package| package.problems()).collect();
    let mut arguments = vec!["package", "--allow-dirty"];
    for package in &published {
        arguments.extend(["--package", &package.name]);
        let list = ["package", "--allow-dirty", "--list", "--package", &package.name];
        let files = String::from_utf8_lossy(&cargo_output(&list)?).into_owned();
        problems.extend(missing_files(&package.name, &files));
    }
    if !problems.is_empty() {
        problems.iter().for_each(|problem| println!("{problem}"));
        return Err(Error::BadPackages { count: problems.len() });
    }
    // Cargo takes packages of one name and version for the same, also if their contents have changed since the last run. In a
    // folder that is new each time, it cannot find the old ones.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let target = metadata.target_directory.join(format!("packages-{since}"));
    let folder = target.display().to_string();
    arguments.extend(["--target-dir", &folder]);
    let result = cargo_output(&arguments).and_then(|_| check_sizes(&target, &published));
    let _ = fs::remove_dir_all(&target);
    forget(&published);
    result
}

/// Checks that the packages are small enough for the registry.
fn check_sizes(target: &Path, published: &[&Manifest]) -> Result<(), Error> {
    for package in published {
        let name = format!("{}.crate", package.folder());
        let size = size_of(&target.join("package").join(&name))?;
        println!("{:>8} KiB  {name}", size / 1024);
        if size > LIMIT {
            return Err(Error::PackageTooBig { name, size, limit: LIMIT });
        }
    }
    Ok(())
}

/// Removes the sources that cargo has unpacked from the packages: nobody will use them again.
fn forget(published: &[&Manifest]) {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let Some(Ok(registries)) = home.map(|home| fs::read_dir(home.join("registry/src"))) else { return };
    // The folder of a local registry begins with a hyphen: it has no host.
    for registry in registries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with('-')) {
        for package in published {
            let _ = fs::remove_dir_all(registry.path().join(package.folder()));
        }
        // Only if nothing is left in it.
        let _ = fs::remove_dir(registry.path());
    }
}

fn size_of(path: &Path) -> Result<u64, Error> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(Error::io("read", path))
}

impl Manifest {
    /// The name of the package's folder and archive.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// Returns what the package does not say about itself, or says wrongly.
    fn problems(&self) -> Vec<String> {
        let is_given = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
        let docs_rs = self.metadata.as_ref().and_then(|metadata| metadata.get("docs")?.get("rs"));
        let has_features = docs_rs.is_some_and(|it| it.get("all-features").or(it.get("features")).is_some());
        let checks = [
            (is_given(&self.description), "no description"),
            (self.license.as_deref() == Some("MIT OR Apache-2.0"), "no licence, or another one"),
            (self.readme.as_deref() == Some("README.md"), "no readme"),
            (is_given(&self.rust_version), "no rust-version"),
            ((1..=5).contains(&self.keywords.len()), "not 1 to 5 keywords"),
            (self.keywords.iter().all(|word| word.len() <= 20), "a keyword of more than 20 characters"),
            ((1..=5).contains(&self.categories.len()), "not 1 to 5 categories"),
            (has_features, "no features for docs.rs"),
            // The project has no address.
            (self.repository.is_none() && self.homepage.is_none(), "an address that may not exist"),
            (self.documentation.is_none(), "an address of the documentation: leave it to the registry"),
        ];
        let broken = checks.iter().filter(|(holds, _)| !holds);
        broken.map(|(_, what)| format!("{}: {what}", self.name)).collect()
    }
}

/// Returns which files a package lacks, given the list of its files.
fn missing_files(name: &str, files: &str) -> Vec<String> {
    let is_missing = |file: &&&str| !files.lines().any(|line| line == **file);
    FILES.iter().filter(is_missing).map(|file| format!("{name}: {file} is not in the package")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(change: impl FnOnce(&mut serde_json::Value)) -> Manifest {
        let mut json = serde_json::json!({
            "name": "k", "version": "1.0.0", "description": "d", "license": "MIT OR Apache-2.0", "readme": "README.md",
            "repository": null, "homepage": null, "documentation": null, "rust_version": "1.95", "keywords": ["gpu"],
            "categories": ["algorithms"], "publish": null, "metadata": {"docs": {"rs": {"all-features": true}}}
        });
        change(&mut json);
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_a_package_does_not_say_is_named() {
        assert_eq!(manifest(|_| ()).problems(), [""; 0]);
        for (field, value, problem) in [
            ("description", serde_json::Value::Null, "k: no description"),
            ("keywords", serde_json::json!(["a", "b", "c", "d", "e", "f"]), "k: not 1 to 5 keywords"),
            ("repository", "somewhere".into(), "k: an address that may not exist"),
            ("metadata", serde_json::Value::Null, "k: no features for docs.rs"),
        ] {
            assert_eq!(manifest(|json| json[field] = value).problems(), [problem]);
        }
    }

    #[test]
    fn unpublished_packages_and_missing_files() {
        assert!(
            manifest(|_| ()).is_published() && !manifest(|json| json["publish"] = serde_json::json!([])).is_published()
        );
        let found = missing_files("k", "Cargo.toml\nLICENSE-MIT\nREADME.md\nsrc/lib.rs\n");
        assert_eq!(found, ["k: LICENSE-APACHE is not in the package"]);
    }
}
