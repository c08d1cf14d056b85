//! Peers: programs in any language that measure the same rows.
//!
//! A peer speaks a small line protocol. It is started without arguments. Its standard input has one line per row that was
//! measured here, with the fields separated by tabs:
//!
//! ```text
//! section   row   parameter   elements   operations of one run
//! ```
//!
//! It answers on its standard output, for the rows that it knows and in any order:
//!
//! ```text
//! # name: what it is called in the report
//! row   parameter   elements   milliseconds of one run, the median
//! ```
//!
//! Two more fields may follow: the shortest and the longest run. Other lines that begin with `#` are comments. Rows that
//! were not asked for are left out. Messages go to the standard error. A peer makes its own data, as the row says
//! ([names](crate::names)), and checks its own results: a rate of a wrong result is worth nothing.
//!
//! `benches/peers` has two of them: `std.cpp`, in plain C++, and `cub.cu`, which uses CUB from the CUDA toolkit.

use crate::Error;
use crate::record::{RATE, Record};
use crate::session::Session;
use crate::{compare, view::pivot::distinct};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The source of CUB's program. It is embedded, so that a machine with `nvcc` but without this repository can compile it.
const CUB: &str = include_str!("../peers/cub.cu");

/// A program that measures the same rows.
#[derive(Clone, Debug)]
pub struct Peer {
    program: PathBuf,
}

/// One row of a peer's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerRow {
    /// The row's name.
    pub row: String,
    /// The parameters.
    pub parameter: String,
    /// The number of elements.
    pub elements: u64,
    /// The time of one run in milliseconds: the median, the shortest and the longest one.
    pub milliseconds: [f64; 3],
}

impl Peer {
    /// Names a program.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// Compiles CUB's program with `nvcc` into the temporary folder: with the CUB of the toolkit, or with the headers in
    /// another folder. Returns `None` if there is no compiler.
    ///
    /// # Errors
    /// [`Error::Peer`] if it cannot be compiled.
    pub fn cub(headers: Option<&Path>) -> Result<Option<Self>, Error> {
        let compiler = std::env::var("NVCC").unwrap_or_else(|_| String::from("nvcc"));
        if Command::new(&compiler).arg("--version").output().is_err() {
            eprintln!("nvcc not found, so the table has no peer: pass --peer, or put nvcc on the PATH");
            return Ok(None);
        }
        let folder = std::env::temp_dir();
        let (source, program) = (folder.join("gpu-benches-cub.cu"), folder.join("gpu-benches-cub"));
        std::fs::write(&source, CUB).map_err(|error| Error::Peer { what: format!("{}: {error}", source.display()) })?;
        let mut command = Command::new(&compiler);
        command.args(["-O3", "-std=c++17", "-arch=native", "--extended-lambda", "-o"]).arg(&program).arg(&source);
        if let Some(headers) = headers {
            command.arg("-I").arg(headers);
        }
        output(&mut command, Path::new(&compiler), "")?;
        Ok(Some(Self { program }))
    }

    /// Runs the program with these lines as its input. Returns its name and its rows.
    fn ask(&self, lines: &str) -> Result<(String, Vec<PeerRow>), Error> {
        let text = output(&mut Command::new(&self.program), &self.program, lines)?;
        let name = text.lines().find_map(|line| line.strip_prefix("# name: ")).map(str::trim).map(str::to_owned);
        let stem =
            || self.program.file_stem().map_or_else(|| "peer".into(), |stem| stem.to_string_lossy().into_owned());
        let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(parse);
        Ok((name.unwrap_or_else(stem), rows.collect::<Result<_, _>>()?))
    }
}

/// Asks a peer for the rows of a section that were measured here. The comparison gets records of the peer; elsewhere, each
/// of our records gets the number of the fastest peer.
///
/// # Errors
/// [`Error::Peer`] if the program cannot be run, or if its output cannot be parsed.
pub fn measure(session: &Session, peer: &Peer, section: &str) -> Result<(), Error> {
    let asked: Vec<Record> = session.records(|record| record.section == section && record.unit == RATE);
    let line =
        |record: &Record| format!("{section}\t{}\t{}\t{}\t{}\n", record.row, record.parameter, record.n, record.work);
    if asked.is_empty() {
        return Ok(());
    }
    let (name, rows) = peer.ask(&distinct(asked.iter().map(line)).concat())?;
    let answers = |record: &Record, row: &PeerRow| {
        (record.row.as_str(), record.parameter.as_str(), record.n)
            == (row.row.as_str(), row.parameter.as_str(), row.elements)
    };
    for row in &rows {
        let Some(record) = asked.iter().find(|record| answers(record, row)) else { continue };
        let [median, low, high] = row.milliseconds.map(|time| record.work as f64 / time / 1e3);
        if section == compare::SECTION {
            let of_peer =
                Record::new(section, &name, &row.row, &row.parameter, row.elements as usize).value(median, RATE);
            let of_peer = if low == high { of_peer } else { of_peer.spread(&[low, high]) };
            session.keep(Record { work: record.work, ..of_peer });
        } else {
            session.revise(|records| {
                let ours = records.iter_mut().filter(|record| record.section == section && answers(record, row));
                for record in ours.filter(|record| record.peer_value.is_none_or(|best| best < median)) {
                    *record = record.clone().beside(&name, Some(median));
                }
            });
        }
    }
    Ok(())
}

/// Returns the output of a command with this input, or the reason why it failed.
fn output(command: &mut Command, program: &Path, input: &str) -> Result<String, Error> {
    let failed = |what: String| Error::Peer { what: format!("{}: {what}", program.display()) };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    // A program that does not read its input may have ended already.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a row of an answer.
fn parse(line: &str) -> Result<PeerRow, Error> {
    let bad =
        || Error::Peer { what: format!("not `row, parameter, elements, milliseconds`, separated by tabs: {line:?}") };
    let time =
        |text: &&str| text.trim().parse::<f64>().ok().filter(|time| *time > 0.0 && time.is_finite()).ok_or_else(bad);
    let fields: Vec<&str> = line.split('\t').collect();
    let (row, parameter, elements, times) = match fields[..] {
        [row, parameter, elements, ref times @ ..] if [1, 3].contains(&times.len()) => {
            (row, parameter, elements, times)
        }
        _ => return Err(bad()),
    };
    let median = time(&times[0])?;
    let milliseconds = if times.len() == 3 { [median, time(&times[1])?, time(&times[2])?] } else { [median; 3] };
    let elements = elements.trim().parse().map_err(|_| bad())?;
    Ok(PeerRow { row: row.into(), parameter: parameter.into(), elements, milliseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let row = parse("lookup, all present\tL = 8\t1048576\t0.5\t0.4\t0.7").unwrap();
        let expected = PeerRow {
            row: "lookup, all present".into(),
            parameter: "L = 8".into(),
            elements: 1 << 20,
            milliseconds: [0.5, 0.4, 0.7],
        };
        assert_eq!(row, expected);
        assert_eq!(parse("copy\t\t8\t2").unwrap().milliseconds, [2.0; 3]);
        for bad in ["", "a,1,2", "a\t\tx\t1", "a\t\t1\t0", "a\t\t1\tNaN", "a\t\t1\t1\t1"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_missing_peer_is_named() {
        let error = Peer::new("/no/such/peer").ask("").err().unwrap().to_string();
        assert!(error.contains("/no/such/peer"), "{error}");
    }
}
