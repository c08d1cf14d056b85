//! The test that the checked-in PTX is up to date with its sources. Needs no nightly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::manifest::Manifest;
use crate::sources::text_hash;
use crate::{Config, Error, source_hash};

/// Checks that the PTX in `<crate_dir>/ptx` was built from the crate's current sources and settings, and was not
/// edited.
///
/// Use it in a test of the kernel crate:
///
/// ```ignore
/// #[test]
/// fn ptx_is_up_to_date() {
///     if let Err(error) = gpu_kernel_builder::verify(env!("CARGO_MANIFEST_DIR")) {
///         panic!("{error}");
///     }
/// }
/// ```
pub fn verify(crate_dir: impl AsRef<Path>) -> Result<(), Error> {
    let crate_dir = crate_dir.as_ref();
    let ptx_dir = crate_dir.join("ptx");
    let manifest = Manifest::read(&ptx_dir)?;

    let found = source_hash(crate_dir)?;
    if found != manifest.sources {
        return Err(Error::StaleSources { crate_dir: crate_dir.into(), recorded: manifest.sources, found });
    }
    let config = Config::read(crate_dir)?;
    for (key, recorded, found) in
        [("arch", manifest.arch, config.arch.clone()), ("features", manifest.features, config.features_line())]
    {
        if recorded != found {
            return Err(Error::StaleConfig { crate_dir: crate_dir.into(), key, recorded, found });
        }
    }

    let present = ptx_hashes(&ptx_dir)?;
    let mut problems = Vec::new();
    for (name, hash) in &manifest.kernels {
        match present.get(name) {
            None => problems.push(format!("{name}.ptx is missing")),
            Some(found) if found != hash => problems.push(format!("{name}.ptx was changed")),
            Some(_) => {}
        }
    }
    for name in present.keys().filter(|name| !manifest.kernels.contains_key(*name)) {
        problems.push(format!("{name}.ptx is not in the MANIFEST"));
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::TamperedPtx { ptx_dir, problems }) }
}

/// Returns the hash of every PTX file in a folder, by the name of its kernel.
fn ptx_hashes(ptx_dir: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut hashes = BTreeMap::new();
    for entry in fs::read_dir(ptx_dir).map_err(Error::io("read", ptx_dir))? {
        let path = entry.map_err(Error::io("read", ptx_dir))?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            hashes.insert(name, text_hash(&fs::read(&path).map_err(Error::io("read", &path))?));
        }
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn built_crate() -> Scratch {
        let scratch = Scratch::new();
        scratch.write("Cargo.toml", "[package]\nname = \"k\"\n");
        scratch.write("src/lib.rs", "fn kernel() {}\n");
        scratch.write("ptx/k.ptx", "ptx\n");
        let manifest = Manifest {
            arch: "sm_70".into(),
            features: "default".into(),
            sources: source_hash(scratch.path()).unwrap(),
            kernels: [("k".to_owned(), text_hash(b"ptx\n"))].into(),
            ..Manifest::default()
        };
        scratch.write("ptx/MANIFEST", &manifest.to_string());
        scratch
    }

    fn complaint(scratch: &Scratch) -> String {
        verify(scratch.path()).unwrap_err().to_string()
    }

    #[test]
    fn what_was_just_built_passes() {
        let scratch = built_crate();
        verify(scratch.path()).unwrap();
        scratch.write("ptx/k.ptx", "ptx\r\n");
        verify(scratch.path()).expect("other line endings make no difference");
    }

    #[test]
    fn changed_sources_ask_for_a_rebuild() {
        let scratch = built_crate();
        scratch.write("src/lib.rs", "fn kernel() { other() }\n");
        let message = complaint(&scratch);
        assert!(message.contains("kernel sources changed after the PTX was built: run `cargo xtask ptx`"), "{message}");
    }

    #[test]
    fn changed_settings_ask_for_a_rebuild() {
        for (setting, key) in [("arch = \"sm_80\"", "arch"), ("features = [\"wide\"]", "features")] {
            let scratch = built_crate();
            scratch.write("Cargo.toml", &format!("[package]\nname = \"k\"\n[package.metadata.ptx]\n{setting}\n"));
            let message = complaint(&scratch);
            assert!(message.contains(key) && message.contains("cargo xtask ptx"), "{message}");
        }
    }

    #[test]
    fn edited_missing_and_superfluous_ptx_are_named() {
        let scratch = built_crate();
        scratch.write("ptx/k.ptx", "edited\n");
        assert!(complaint(&scratch).contains("k.ptx was changed"));
        fs::remove_file(scratch.path().join("ptx/k.ptx")).unwrap();
        scratch.write("ptx/old.ptx", "old\n");
        let message = complaint(&scratch);
        assert!(message.contains("k.ptx is missing, old.ptx is not in the MANIFEST"), "{message}");
    }

    #[test]
    fn ptx_that_was_never_built_is_said_so() {
        let scratch = Scratch::new();
        scratch.write("Cargo.toml", "[package]\nname = \"k\"\n");
        assert!(complaint(&scratch).contains("never built"));
    }
}
