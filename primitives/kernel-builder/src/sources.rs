//! The hash of a kernel crate's sources, by which a test on stable finds out that the PTX is out of date.
//!
//! The hash covers the text, so a changed comment requires a rebuild, too. A rebuild costs one command, and no change
//! that matters is ever missed.
//!
//! Host code does not count. It is what lies in files and folders that are called `host` or `native`, in `main.rs` and in `bin/`. A
//! build fails if the compiler has read such a file: see [`expect_hashed`].

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Error;
use crate::config::Config;

/// Returns the SHA-256, in hexadecimal, of every `.rs` file that can affect the PTX of the crate in `crate_dir`: those
/// under `src/` that are not host code by their name, and those that `also-hash` names.
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
    add_crate(crate_dir, "", &mut files)?;
    for other in &config.also_hash {
        let path = crate_dir.join(other);
        if !path.exists() {
            let manifest = crate_dir.join("Cargo.toml");
            return Err(Error::NoSuchSource { manifest, key: "also-hash", value: other.clone(), path });
        }
        let label = format!("{}/", other.trim_end_matches('/'));
        if path.join("Cargo.toml").is_file() {
            // Its own `also-hash` is not followed: a crate lists everything it consists of, as with dependencies.
            add_crate(&path, &label, &mut files)?;
        } else if path.is_dir() {
            add_folder(&path, &label, &|_| false, &mut files)?;
        } else {
            files.insert(other.clone(), path);
        }
    }
    Ok(files)
}

fn add_crate(crate_dir: &Path, label: &str, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    add_folder(&crate_dir.join("src"), &format!("{label}src/"), &is_host, files)
}

/// Returns whether a path under `src/` is host code by its name.
fn is_host(relative: &str) -> bool {
    relative == "main.rs"
        || relative == "bin"
        || relative.split('/').any(|part| matches!(part.strip_suffix(".rs").unwrap_or(part), "host" | "native"))
}

/// Checks that the hash covers what the compiler has read: the files in `dep_info`, as far as they belong to this crate and those in
/// `also-hash`. Otherwise PTX could be out of date, and nobody would know.
pub(crate) fn expect_hashed(crate_dir: &Path, config: &Config, dep_info: &str) -> Result<(), Error> {
    let folders = config.also_hash.iter().map(|other| crate_dir.join(other)).chain([crate_dir.to_path_buf()]);
    let folders: Vec<_> = folders.filter_map(|folder| folder.join("src").canonicalize().ok()).collect();
    for read in files_in(dep_info) {
        let relative = folders.iter().find_map(|folder| read.strip_prefix(folder).ok());
        let relative = relative.map(|path| path.to_string_lossy().replace('\\', "/"));
        if relative.is_some_and(|relative| is_host(&relative)) {
            return Err(Error::HostCodeCompiled { path: read });
        }
    }
    Ok(())
}

/// Returns the files after the colon of the first rule of a makefile, in which spaces are escaped.
fn files_in(dep_info: &str) -> impl Iterator<Item = PathBuf> {
    const SPACE: char = '\u{1}';
    let rule = dep_info.lines().next().unwrap_or_default();
    let rule = rule.split_once(": ").map_or("", |(_, files)| files).replace("\\ ", &SPACE.to_string());
    let files: Vec<_> = rule.split_whitespace().map(|file| PathBuf::from(file.replace(SPACE, " "))).collect();
    files.into_iter()
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
        scratch.write("k/Cargo.toml", "[package]\nname = \"k\"\n[package.metadata.ptx]\nalso-hash = [\"../other\"]\n");
        scratch.write("k/src/lib.rs", "mod scan;\n");
        scratch.write("k/src/deep/scan.rs", "fn scan() {}\n");
        scratch.write("k/src/host/mod.rs", "host\n");
        scratch.write("k/src/scan/native.rs", "host\n");
        scratch.write("other/Cargo.toml", "[package]\nname = \"o\"\n");
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
        for host in [
            "k/src/host/mod.rs",
            "k/src/host/deep/new.rs",
            "k/src/scan/native.rs",
            "k/src/main.rs",
            "k/src/bin/tool.rs",
            "other/src/host.rs",
            "k/src/x.txt",
        ] {
            scratch.write(host, "changed\n");
            assert_eq!(hash(&scratch), before, "{host}");
        }
        for device in ["k/src/lib.rs", "k/src/deep/scan.rs", "k/src/hosts.rs", "k/src/x/main.rs", "other/src/lib.rs"] {
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
        scratch
            .write("k/Cargo.toml", "[package]\nname = \"k\"\n[package.metadata.ptx]\nalso-hash = [\"../nowhere\"]\n");
        let message = source_hash(scratch.path().join("k")).unwrap_err().to_string();
        assert!(message.contains("also-hash") && message.contains("../nowhere"), "{message}");
    }

    #[test]
    fn host_code_that_the_compiler_has_read() {
        let scratch = kernel_crate();
        let k = scratch.path().join("k").canonicalize().unwrap();
        let config = Config::read(&k).unwrap();
        let check = |files: &[&str]| {
            let files: Vec<_> =
                files.iter().map(|file| k.join(file).display().to_string().replace(' ', "\\ ")).collect();
            expect_hashed(&k, &config, &format!("/out/lib k.a: {}\n\nother: {}\n", files.join(" "), files[0]))
        };
        check(&["src/lib.rs", "src/deep/scan.rs"]).unwrap();
        // Other crates follow other rules.
        check(&["../registry/src/host.rs"]).unwrap();
        let other = k.parent().unwrap().join("other/src/host.rs").display().to_string();
        for file in ["src/host/mod.rs", "src/scan/native.rs", "src/a folder/host.rs", &other] {
            let message = check(&["src/lib.rs", file]).unwrap_err().to_string();
            assert!(message.contains(file), "{message}");
        }
    }

    #[test]
    fn sha256_is_sha256() {
        assert_eq!(text_hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
