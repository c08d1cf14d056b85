//! `cargo xtask ptx`: compiles the kernel crates, or checks that the checked-in PTX is up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gpu_kernel_builder::{CoreChoice, MANIFEST, Manifest, PtxBuilder};

use crate::error::Error;
use crate::workspace::{Package, Workspace};

pub fn run(check: bool, packages: &[String]) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let (mut differences, mut hint) = (0, String::new());
    for package in workspace.kernel_crates(packages)? {
        eprintln!("compiling the kernels of {}", package.name);
        let builder = PtxBuilder::new(package.dir())
            // Checked-in PTX must not depend on which other components are installed.
            .core(CoreChoice::Source)
            .target_dir(workspace.target_directory.join("ptx"));
        if check {
            let found = check_package(&workspace, package, builder)?;
            for difference in &found.differences {
                println!("{}: {difference}", package.name);
            }
            differences += found.differences.len();
            hint = found.hint.unwrap_or(hint);
        } else {
            let built = builder.build()?;
            if built.manifest.core != "source" {
                eprintln!(
                    "warning: compiled without rust-src, with the installed target's `core`: \
                     the PTX may have panic paths and will differ from PTX built with rust-src"
                );
            }
            println!("{}: {} kernels, {}", package.name, built.kernels.len(), built.manifest.toolchain);
        }
    }
    if differences > 0 { Err(Error::PtxDiffers { count: differences, hint }) } else { Ok(()) }
}

struct Checked {
    differences: Vec<String>,
    /// A possible reason for differences that is not in the sources.
    hint: Option<String>,
}

fn check_package(workspace: &Workspace, package: &Package, builder: PtxBuilder) -> Result<Checked, Error> {
    let fresh = workspace.target_directory.join("ptx-check").join(&package.name);
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(Error::io("empty", &fresh))?;
    }
    let built = builder.out_dir(&fresh).build()?;
    let checked_in = package.dir().join("ptx");
    let hint = Manifest::read(&checked_in).ok().and_then(|old| {
        let same = old.toolchain == built.manifest.toolchain && old.core == built.manifest.core;
        (!same).then(|| {
            format!(
                "\nnote: it was built with {} ({} core), and now with {} ({} core), so some bytes may differ",
                old.toolchain, old.core, built.manifest.toolchain, built.manifest.core
            )
        })
    });
    Ok(Checked { differences: compare(&checked_in, &fresh)?, hint })
}

/// Returns one phrase for each file that differs between the two folders.
fn compare(checked_in: &Path, fresh: &Path) -> Result<Vec<String>, Error> {
    let (old, new) = (read_folder(checked_in)?, read_folder(fresh)?);
    let mut differences = Vec::new();
    for (name, text) in &new {
        match old.get(name) {
            None => differences.push(format!("{name} is missing")),
            Some(old) if old != text => differences.push(format!("{name} differs")),
            Some(_) => {}
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        differences.push(format!("{name} is superfluous"));
    }
    Ok(differences)
}

/// Reads the PTX and the `MANIFEST` in a folder, which may not exist yet.
fn read_folder(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == MANIFEST || name.ends_with(".ptx") {
            files.insert(name, fs::read(&path).map_err(Error::io("read", path))?);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_difference_is_named() {
        let folder = std::env::temp_dir().join(format!("xtask-compare-{}", std::process::id()));
        for (path, text) in [
            ("old/same.ptx", "a"),
            ("new/same.ptx", "a"),
            ("old/changed.ptx", "a"),
            ("new/changed.ptx", "b"),
            ("new/added.ptx", "a"),
            ("old/gone.ptx", "a"),
            ("old/README.md", "not ours"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let differences = compare(&folder.join("old"), &folder.join("new")).unwrap();
        let nothing_yet = compare(&folder.join("none"), &folder.join("new")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(differences, ["added.ptx is missing", "changed.ptx differs", "gone.ptx is superfluous"]);
        assert_eq!(nothing_yet.len(), 3);
    }
}
