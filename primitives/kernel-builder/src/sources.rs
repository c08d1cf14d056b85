//! The hash of a kernel crate's sources, by which a test on stable finds out that the PTX is out of date.
//!
//! The hash covers the text, so a changed comment requires a rebuild, too. A rebuild costs one command, and no change
//! that matters is ever missed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Error;
use crate::config::{Config, CrateInfo};

/// Returns the SHA-256, in hexadecimal, of every `.rs` file that can affect the PTX of the crate in `crate_dir`: those
/// under `src/` without the `host-only` ones, and those that `also-hash` names.
///
/// The hash does not depend on line endings or on the workspace's folder. Needs no nightly.
pub fn source_hash(crate_dir: impl AsRef<Path>) -> Result<String, Error> {
    let crate_dir = crate_dir.as_ref();
    let mut hasher = Sha256::new();
    for (label, path) in source_files(crate_dir, &Config::read(crate_dir)?)? {
        let contents = unix_line_endings(fs::read(&path).map_err(Error::io("read", &path))?);
        // Lengths first, so that moving bytes between a name and a file, or between two files, changes the hash.
        for part in [label.as_bytes(), contents.as_slice()] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// Returns the SHA-256 of one text, in hexadecimal, with line endings normalised as in [`source_hash`].
pub(crate) fn text_hash(text: &[u8]) -> String {
    hex(&Sha256::digest(unix_line_endings(text.to_vec())))
}

/// Returns the files to hash in a stable order, with names that are the same on every machine.
fn source_files(crate_dir: &Path, config: &Config) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut files = BTreeMap::new();
    add_crate(crate_dir, "", config, &mut files)?;
    for other in &config.also_hash {
        let path = crate_dir.join(other);
        if !path.exists() {
            let manifest = crate_dir.join("Cargo.toml");
            return Err(Error::NoSuchSource { manifest, key: "also-hash", value: other.clone(), path });
        }
        let label = format!("{}/", other.trim_end_matches('/'));
        if path.join("Cargo.toml").is_file() {
            // The other crate declares its own host-only files. Its `also-hash` is not followed: a crate lists
            // everything it consists of, as with dependencies.
            add_crate(&path, &label, &CrateInfo::read(&path)?.config, &mut files)?;
        } else if path.is_dir() {
            add_folder(&path, &label, &|_| false, &mut files)?;
        } else {
            files.insert(other.clone(), path);
        }
    }
    Ok(files)
}

fn add_crate(
    crate_dir: &Path,
    label: &str,
    config: &Config,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Error> {
    for name in &config.host_only {
        let path = crate_dir.join("src").join(name);
        if !path.exists() && !path.with_extension("rs").exists() {
            // A misspelt name would exclude nothing, and go unnoticed.
            let manifest = crate_dir.join("Cargo.toml");
            return Err(Error::NoSuchSource { manifest, key: "host-only", value: name.clone(), path });
        }
    }
    let host_only = |relative: &str| {
        config.host_only.iter().any(|name| {
            let name = name.trim_end_matches('/');
            relative == name
                || relative.strip_suffix(".rs") == Some(name)
                || relative.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    add_folder(&crate_dir.join("src"), &format!("{label}src/"), &host_only, files)
}

fn add_folder(
    root: &Path,
    label: &str,
    skip: &dyn Fn(&str) -> bool,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), Error> {
    let mut folders = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let entry = entry.map_err(Error::io("read", &folder))?;
            let relative = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let path = entry.path();
            if skip(&relative) {
                continue;
            }
            if path.is_dir() {
                folders.push((path, format!("{relative}/")));
            } else if relative.ends_with(".rs") {
                files.insert(format!("{label}{relative}"), path);
            }
        }
    }
    Ok(())
}

fn unix_line_endings(mut text: Vec<u8>) -> Vec<u8> {
    let mut previous_kept = 0;
    for read in 0..text.len() {
        if text[read] == b'\r' && text.get(read + 1) == Some(&b'\n') {
            continue;
        }
        text[previous_kept] = text[read];
        previous_kept += 1;
    }
    text.truncate(previous_kept);
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn kernel_crate() -> Scratch {
        let scratch = Scratch::new();
        scratch.write(
            "k/Cargo.toml",
            "[package]\nname = \"k\"\n[package.metadata.ptx]\nhost-only = [\"runtime\", \"io\"]\nalso-hash = [\"../other\"]\n",
        );
        scratch.write("k/src/lib.rs", "mod scan;\n");
        scratch.write("k/src/deep/scan.rs", "fn scan() {}\n");
        scratch.write("k/src/runtime/mod.rs", "host\n");
        scratch.write("k/src/io.rs", "host\n");
        scratch
            .write("other/Cargo.toml", "[package]\nname = \"o\"\n[package.metadata.ptx]\nhost-only = [\"host.rs\"]\n");
        scratch.write("other/src/lib.rs", "device\n");
        scratch.write("other/src/host.rs", "host\n");
        scratch
    }

    fn hash(scratch: &Scratch) -> String {
        source_hash(scratch.path().join("k")).unwrap()
    }

    #[test]
    fn device_code_counts_and_host_code_does_not() {
        let scratch = kernel_crate();
        let before = hash(&scratch);
        for host in ["k/src/runtime/mod.rs", "k/src/runtime/new.rs", "k/src/io.rs", "other/src/host.rs", "k/src/x.txt"]
        {
            scratch.write(host, "changed\n");
            assert_eq!(hash(&scratch), before, "{host}");
        }
        for device in ["k/src/lib.rs", "k/src/deep/scan.rs", "k/src/new.rs", "k/src/runtimes.rs", "other/src/lib.rs"] {
            let before = hash(&scratch);
            scratch.write(device, "changed\n");
            assert_ne!(hash(&scratch), before, "{device}");
        }
    }

    #[test]
    fn neither_the_folder_nor_line_endings_matter() {
        let (a, b) = (kernel_crate(), kernel_crate());
        b.write("k/src/lib.rs", "mod scan;\r\n");
        assert_eq!(hash(&a), hash(&b));
    }

    #[test]
    fn a_lone_carriage_return_stays() {
        assert_eq!(unix_line_endings(b"a\r\n\rb\r".to_vec()), b"a\n\rb\r");
        assert_eq!(unix_line_endings(Vec::new()), b"");
    }

    #[test]
    fn moving_bytes_between_files_changes_the_hash() {
        let scratch = kernel_crate();
        scratch.write("k/src/a.rs", "xy");
        scratch.write("k/src/b.rs", "z");
        let before = hash(&scratch);
        scratch.write("k/src/a.rs", "x");
        scratch.write("k/src/b.rs", "yz");
        assert_ne!(hash(&scratch), before);
    }

    #[test]
    fn misspelt_paths_are_named() {
        let scratch = kernel_crate();
        for (key, value) in [("also-hash", "../nowhere"), ("host-only", "runtme")] {
            scratch.write(
                "k/Cargo.toml",
                &format!("[package]\nname = \"k\"\n[package.metadata.ptx]\n{key} = [\"{value}\"]\n"),
            );
            let message = source_hash(scratch.path().join("k")).unwrap_err().to_string();
            assert!(message.contains(key) && message.contains(value), "{message}");
        }
    }

    #[test]
    fn sha256_is_sha256() {
        assert_eq!(text_hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
