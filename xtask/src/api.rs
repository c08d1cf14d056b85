//! `cargo xtask api`: lists the public items of every published library, one per line, so that a change of the interface shows
//! in the commit that makes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::workspace::{Package, Workspace};

/// The folder of the lists, from the root of the workspace.
const FOLDER: &str = "api";

/// The toolchain that writes rustdoc's JSON.
fn toolchain() -> String {
    std::env::var("KERNEL_BUILDER_TOOLCHAIN").unwrap_or_else(|_| String::from("nightly"))
}

/// Writes or checks the lists of the libraries.
pub fn run(check: bool) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let mut differences = 0;
    for package in workspace.packages.iter().filter(|package| package.is_library()) {
        let path = workspace.workspace_root.join(FOLDER).join(format!("{}.txt", package.name));
        let text = list(&workspace.target_directory, package)?;
        if !check {
            fs::create_dir_all(workspace.workspace_root.join(FOLDER)).map_err(Error::io("create", FOLDER))?;
            fs::write(&path, text).map_err(Error::io("write", &path))?;
            continue;
        }
        let old = fs::read_to_string(&path).unwrap_or_default();
        for (sign, line) in changes(&old, &text) {
            println!("{}: {sign}{line}", package.name);
            differences += 1;
        }
    }
    if differences == 0 { Ok(()) } else { Err(Error::ApiDiffers { count: differences }) }
}

/// Returns the public items of a package with the features of its documentation, one per line.
fn list(target: &Path, package: &Package) -> Result<String, Error> {
    let name = package.name.as_str();
    let features = package.documented_features();
    let features = features.map_or_else(|| "--all-features".into(), |list| format!("--features={}", list.join(",")));
    let arguments = ["rustdoc", "--quiet", "--lib", &features, "--package", name, "--target-dir"];
    let folder = target.join("api");
    let status = Command::new("cargo")
        .arg(format!("+{}", toolchain()))
        .args(arguments)
        .arg(&folder)
        .args(["--", "-Zunstable-options", "--output-format", "json", "--cap-lints", "allow"])
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .status()
        .map_err(Error::io("run", "cargo"))?;
    if !status.success() {
        return Err(Error::Cargo { arguments: arguments.join(" "), status: status.to_string() });
    }
    let json = folder.join("doc").join(format!("{}.json", name.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|source| Error::Api { package: name.into(), what: source.to_string() })?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Returns the lines that only one of two lists has.
fn changes<'a>(old: &'a str, new: &'a str) -> Vec<(char, &'a str)> {
    let only = |these: &'a str, others: &str, sign| -> Vec<(char, &'a str)> {
        let others: BTreeSet<&str> = others.lines().collect();
        these.lines().filter(|line| !others.contains(line)).map(|line| (sign, line)).collect()
    };
    [only(old, new, '-'), only(new, old, '+')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_named() {
        assert_eq!(changes("a\nb\n", "a\nc\nd\n"), [('-', "b"), ('+', "c"), ('+', "d")]);
        assert_eq!(changes("a\n", "a\n"), []);
    }
}
