//! `cargo xtask gpu-bundle`: collects in one folder everything that a machine with an NVIDIA driver and without Rust
//! needs to test and measure this workspace.

mod artifacts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bundle::artifacts::{Artifact, executables};
use crate::error::{Error, MIB};
use crate::workspace::{Package, Workspace, cargo_output};

/// The package with the benchmarks.
const BENCHES: &str = "gpu-benches";

/// The maximum size of the folder, which is sent to other machines.
const LIMIT: u64 = 40 * MIB;

/// The arguments of every cargo call. They make small executables. A separate target folder keeps these settings from
/// rebuilding the usual one.
const SETTINGS: [&str; 6] = [
    "--release",
    "--message-format=json-render-diagnostics",
    "--config",
    "profile.release.strip=true",
    "--config",
    "profile.bench.strip=true",
];

pub fn run(out: &Path) -> Result<(), Error> {
    let workspace = Workspace::load()?;
    let out = workspace.workspace_root.join(out);
    let target_dir = workspace.target_directory.join("bundle");
    let target_dir = target_dir.to_string_lossy();
    let cargo = |arguments: &[&str]| -> Result<Vec<Artifact>, Error> {
        // `cargo bench` is always a release build and rejects `--release`.
        let settings = SETTINGS.iter().copied().filter(|word| arguments[0] != "bench" || *word != "--release");
        let all: Vec<&str> = arguments.iter().copied().chain(settings).chain(["--target-dir", &target_dir]).collect();
        executables(&cargo_output(&all)?, &all.join(" "))
    };

    let mut arguments = vec!["test", "--workspace", "--tests", "--no-run"];
    for tool in workspace.packages.iter().filter(|package| package.is_build_tool()) {
        arguments.extend(["--exclude", &tool.name]);
    }
    let mut files = tests(&workspace, cargo(&arguments)?);
    if files.is_empty() {
        return Err(Error::EmptyBundle);
    }
    let mut bench_list = String::new();
    match workspace.packages.iter().find(|package| package.name == BENCHES) {
        Some(package) => {
            let mut built = Vec::new();
            if package.has_target("bin") {
                built.extend(cargo(&["build", "-p", BENCHES, "--bins"])?);
            }
            if package.has_target("bench") {
                built.extend(cargo(&["bench", "-p", BENCHES, "--benches", "--no-run"])?);
            }
            let (benches, list) = benches(package, built);
            files.extend(benches);
            bench_list = list;
        }
        None => eprintln!("no package `{BENCHES}`: the bundle has no benchmarks"),
    }

    write(&out, &files, &bench_list)?;
    let sizes = sizes(&out)?;
    let total: u64 = sizes.iter().map(|(_, size)| size).sum();
    if total > LIMIT {
        let biggest = sizes.into_iter().take(8).collect();
        return Err(Error::BundleTooBig { total, limit: LIMIT, biggest });
    }
    println!("{}: {} executables, {:.1} MiB", out.display(), files.len(), total as f64 / MIB as f64);
    Ok(())
}

/// An executable and its path in the bundle.
type Placed = (PathBuf, PathBuf);

/// Returns the tests of libraries and the integration tests, named after package and target. Leaves out the tests of
/// the benchmark program, which need it where cargo built it.
fn tests(workspace: &Workspace, built: Vec<Artifact>) -> Vec<Placed> {
    let mut placed = Vec::new();
    for artifact in built.into_iter().filter(|artifact| artifact.is_test) {
        let Some(package) = workspace.packages.iter().find(|package| package.id == artifact.package_id) else {
            continue;
        };
        let name = if artifact.target.is_library() {
            format!("{}--lib", package.name)
        } else if artifact.target.is("test") && package.name != BENCHES {
            format!("{}--{}", package.name, artifact.target.name)
        } else {
            continue;
        };
        placed.push((artifact.executable, Path::new("tests").join(name)));
    }
    placed
}

/// Returns the programs and benchmarks, and the list of their command lines.
fn benches(package: &Package, built: Vec<Artifact>) -> (Vec<Placed>, String) {
    let (mut placed, mut list) = (Vec::new(), String::new());
    for artifact in built.into_iter().filter(|artifact| artifact.package_id == package.id) {
        let name = &artifact.target.name;
        let place = Path::new("benches").join(name);
        if placed.iter().any(|(_, taken)| *taken == place) {
            // cargo builds the programs again for the benchmarks, which may run them.
            continue;
        }
        if artifact.target.is("bench") {
            // Without `--bench`, a benchmark harness runs as a test and measures nothing.
            list += &format!("{name} --bench\n");
        } else if artifact.target.is("bin") && !artifact.is_test {
            list += &format!("{name}\n");
        } else {
            continue;
        }
        placed.push((artifact.executable, place));
    }
    (placed, list)
}

fn write(out: &Path, files: &[Placed], bench_list: &str) -> Result<(), Error> {
    if out.exists() {
        // Empty the folder only if it looks like a bundle, because `--out` may name anything.
        if !out.join("run.sh").is_file() && fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
            let source = std::io::Error::other("it is not a bundle: it is not empty and has no run.sh");
            return Err(Error::Io { action: "empty", path: out.into(), source });
        }
        fs::remove_dir_all(out).map_err(Error::io("empty", out))?;
    }
    for folder in ["tests", "benches"] {
        let folder = out.join(folder);
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    }
    for (from, to) in files {
        fs::copy(from, out.join(to)).map_err(Error::io("copy", from))?;
    }
    pack(out)?;
    let write = |name: &str, text: &str| fs::write(out.join(name), text).map_err(Error::io("write", out.join(name)));
    write("benches.txt", bench_list)?;
    write("run.sh", include_str!("run.sh"))?;
    make_executable(&out.join("run.sh"))
}

/// The executables in the bundle, which `run.sh` unpacks.
const PACKED: &str = "executables.tar.xz";

/// Packs the executables. Each one embeds the PTX of all kernels. With a compression window that reaches from one
/// executable to the next, they take a twentieth of the space that they take when packed one by one.
fn pack(out: &Path) -> Result<(), Error> {
    const FOLDERS: [&str; 2] = ["tests", "benches"];
    let status = Command::new("tar")
        .arg("--use-compress-program=xz -T1 --lzma2=preset=1,dict=128MiB")
        .args(["-cf", PACKED])
        .args(FOLDERS)
        .current_dir(out)
        .status()
        .map_err(Error::io("run tar in", out))?;
    if !status.success() {
        let source = std::io::Error::other(format!("tar and xz: {status}"));
        return Err(Error::Io { action: "pack", path: out.into(), source });
    }
    for folder in FOLDERS {
        fs::remove_dir_all(out.join(folder)).map_err(Error::io("remove", out.join(folder)))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(Error::io("make executable", path))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// Returns every file of a folder with its size, the largest first.
fn sizes(root: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let (mut sizes, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Error::io("read", &folder))? {
            let entry = entry.map_err(Error::io("read", &folder))?;
            let metadata = entry.metadata().map_err(Error::io("read", entry.path()))?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                sizes.push((path.strip_prefix(root).map(PathBuf::from).unwrap_or(path), metadata.len()));
            }
        }
    }
    sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(sizes)
}
