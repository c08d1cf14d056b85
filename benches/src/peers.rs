//! The peer: CUB from the CUDA toolkit, in a separate program that prints its rates.

use crate::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's source. It is embedded, so that a machine with `nvcc` but without this repository can compile it.
const SOURCE: &str = include_str!("../peers/cub.cu");

/// One row of the peer's output.
pub struct PeerRow {
    /// The row's name, as in our table.
    pub name: String,
    /// The number of elements.
    pub len: usize,
    /// The rate in millions of elements per second.
    pub million_per_second: f64,
}

/// Runs the peer: the given executable, or one compiled with `nvcc`. Returns no rows without either.
///
/// # Errors
/// If the peer cannot be compiled or run, or if its output cannot be parsed.
pub fn measure(executable: Option<&str>) -> Result<Vec<PeerRow>, Error> {
    let executable = match executable {
        Some(path) => PathBuf::from(path),
        None => match compile()? {
            Some(path) => path,
            None => {
                eprintln!("nvcc not found, so the table has no peer: pass --peer, or put nvcc on the PATH");
                return Ok(Vec::new());
            }
        },
    };
    let text = output(&mut Command::new(&executable), &executable)?;
    text.lines().filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// Compiles the peer into the temporary folder. Returns `None` if there is no compiler.
fn compile() -> Result<Option<PathBuf>, Error> {
    let compiler = std::env::var("NVCC").unwrap_or_else(|_| String::from("nvcc"));
    if Command::new(&compiler).arg("--version").output().is_err() {
        return Ok(None);
    }
    let folder = std::env::temp_dir();
    let (source, executable) = (folder.join("gpu-benches-cub.cu"), folder.join("gpu-benches-cub"));
    std::fs::write(&source, SOURCE).map_err(|error| Error::Peer { what: format!("{}: {error}", source.display()) })?;
    let mut command = Command::new(&compiler);
    command.args(["-O3", "-std=c++17", "-arch=native", "--extended-lambda", "-o"]).arg(&executable).arg(&source);
    output(&mut command, Path::new(&compiler))?;
    Ok(Some(executable))
}

/// Returns the output of a command, or the reason why it failed.
fn output(command: &mut Command, program: &Path) -> Result<String, Error> {
    let failed = |what: String| Error::Peer { what: format!("{}: {what}", program.display()) };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a row: `name,elements,milliseconds`.
fn parse(line: &str) -> Result<PeerRow, Error> {
    let bad = || Error::Peer { what: format!("not a row: {line:?}") };
    let fields: Vec<&str> = line.split(',').collect();
    let [name, len, milliseconds] = fields[..] else { return Err(bad()) };
    let len: usize = len.parse().map_err(|_| bad())?;
    let milliseconds: f64 = milliseconds.parse().map_err(|_| bad())?;
    if milliseconds <= 0.0 {
        return Err(bad());
    }
    Ok(PeerRow { name: name.into(), len, million_per_second: len as f64 / milliseconds / 1e3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let row = parse("exclusive_sum_u32,1048576,0.5").unwrap();
        assert_eq!((row.name.as_str(), row.len), ("exclusive_sum_u32", 1 << 20));
        assert!((row.million_per_second - 2097.152).abs() < 1e-9);
        for bad in ["", "a,b", "a,1,x", "a,1,0", "a,1,1,1"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_missing_peer_is_named() {
        let error = measure(Some("/no/such/peer")).err().unwrap().to_string();
        assert!(error.contains("/no/such/peer"), "{error}");
    }
}
