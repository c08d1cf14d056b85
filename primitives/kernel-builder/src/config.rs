//! `[package.metadata.ptx]` in the crate's `Cargo.toml`: the settings that the builder and the test share.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// How a kernel crate is compiled and which of its files are hashed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Config {
    /// The oldest GPU generation that the PTX runs on.
    pub arch: String,
    /// Cargo features to compile with.
    pub features: Vec<String>,
    /// Whether the crate's default features are enabled.
    pub default_features: bool,
    /// Other crates (folders with a `Cargo.toml`), folders or files, relative to the crate, whose code is part of the
    /// PTX.
    pub also_hash: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        // sm_70 is the oldest generation with independent thread scheduling and scoped memory operations, which kernels
        // with `__syncwarp`-style functions need. Newer drivers still accept it for every GPU.
        Self { arch: "sm_70".into(), features: Vec::new(), default_features: true, also_hash: Vec::new() }
    }
}

/// The parts of a `Cargo.toml` that matter here.
#[derive(Deserialize)]
struct CargoToml {
    package: Package,
    lib: Option<Lib>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    ptx: Option<Config>,
}

#[derive(Deserialize)]
struct Lib {
    name: Option<String>,
}

/// A crate as its `Cargo.toml` describes it.
#[derive(Clone, Debug)]
pub(crate) struct CrateInfo {
    pub package: String,
    /// The name of the library: the names of the files that rustc writes begin with it.
    pub library: String,
    pub config: Config,
}

impl CrateInfo {
    pub fn read(crate_dir: &Path) -> Result<Self, Error> {
        let path = crate_dir.join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        Self::parse(&text).map_err(|reason| Error::Config { path, reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let CargoToml { package, lib } = toml::from_str(text).map_err(|error| error.to_string())?;
        let library = lib.and_then(|lib| lib.name).unwrap_or_else(|| package.name.replace('-', "_"));
        Ok(Self { package: package.name, library, config: package.metadata.ptx.unwrap_or_default() })
    }
}

impl Config {
    /// Reads `[package.metadata.ptx]` of the crate in `crate_dir`. Returns the defaults if it has none.
    pub fn read(crate_dir: impl AsRef<Path>) -> Result<Self, Error> {
        CrateInfo::read(crate_dir.as_ref()).map(|info| info.config)
    }

    /// Returns the features as one stable word for the `MANIFEST`.
    pub(crate) fn features_line(&self) -> String {
        let mut features = self.features.clone();
        features.sort();
        if self.default_features {
            features.insert(0, "default".into());
        }
        if features.is_empty() { "none".into() } else { features.join(",") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_metadata_gets_the_defaults() {
        let info = CrateInfo::parse("[package]\nname = \"my-kernels\"\nversion.workspace = true\n").unwrap();
        assert_eq!(
            (info.package.as_str(), info.library.as_str(), info.config),
            ("my-kernels", "my_kernels", Config::default())
        );
    }

    #[test]
    fn every_key_is_read() {
        let info = CrateInfo::parse(
            "[package]\nname = \"a\"\n[lib]\nname = \"b\"\n[package.metadata.ptx]\narch = \"sm_80\"\nfeatures = [\"x\"]\n\
             default-features = false\nalso-hash = [\"../c\"]\n",
        )
        .unwrap();
        assert_eq!(info.library, "b");
        assert_eq!(info.config.arch, "sm_80");
        assert_eq!(info.config.features_line(), "x");
        assert_eq!(info.config.also_hash, ["../c"]);
    }

    #[test]
    fn a_misspelt_key_is_an_error_that_names_it() {
        let reason = CrateInfo::parse("[package]\nname = \"a\"\n[package.metadata.ptx]\nalso_hash = []\n").unwrap_err();
        assert!(reason.contains("also_hash") && reason.contains("also-hash"), "{reason}");
    }

    #[test]
    fn the_features_line_does_not_depend_on_their_order() {
        let line = |features: &[&str], default_features| {
            let features = features.iter().map(|f| f.to_string()).collect();
            Config { features, default_features, ..Config::default() }.features_line()
        };
        assert_eq!(line(&["b", "a"], true), "default,a,b");
        assert_eq!(line(&["a", "b"], true), "default,a,b");
        assert_eq!(line(&[], false), "none");
    }
}
