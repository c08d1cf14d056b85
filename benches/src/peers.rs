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
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The source of CUB's program. It is embedded, so that a machine with `nvcc` but without this repository can compile it.
const CUB: &str = include_str!("../peers/cub.cu");

/// The times that a peer may state, in milliseconds. Others are mistakes, and their rates may be infinite.
const TIMES: RangeInclusive<f64> = 1e-9..=1e12;

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
        let (name, rows) = answer(&text)?;
        let stem =
            || self.program.file_stem().map_or_else(|| "peer".into(), |stem| stem.to_string_lossy().into_owned());
        Ok((name.unwrap_or_else(stem), rows))
    }
}

/// Parses a whole answer: the peer's name, if it says it, and its rows.
fn answer(text: &str) -> Result<(Option<String>, Vec<PeerRow>), Error> {
    let name = text.lines().find_map(|line| line.strip_prefix("# name: ")).map(str::trim).map(str::to_owned);
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(parse);
    Ok((name.filter(|name| !name.is_empty()), rows.collect::<Result<_, _>>()?))
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
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // On a thread of its own: a program may answer before it has read all of its input, and both pipes are short.
        // A program that does not read its input may have ended already.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a row of an answer.
fn parse(line: &str) -> Result<PeerRow, Error> {
    let bad =
        || Error::Peer { what: format!("not `row, parameter, elements, milliseconds`, separated by tabs: {line:?}") };
    let time = |text: &&str| text.trim().parse::<f64>().ok().filter(|time| TIMES.contains(time)).ok_or_else(bad);
    let fields: Vec<&str> = line.split('\t').collect();
    let (row, parameter, elements, times) = match fields[..] {
        [row, parameter, elements, ref times @ ..] if [1, 3].contains(&times.len()) => {
            (row, parameter, elements, times)
        }
        _ => return Err(bad()),
    };
    let median = time(&times[0])?;
    let milliseconds = if times.len() == 3 { [median, time(&times[1])?, time(&times[2])?] } else { [median; 3] };
    if !(milliseconds[1] <= median && median <= milliseconds[2]) {
        return Err(bad());
    }
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
        let bad =
            ["", "a,1,2", "a\t\tx\t1", "a\t\t1\t0", "a\t\t1\tNaN", "a\t\t1\t1\t1", "a\t\t1\t1e-320", "a\t\t1\t2\t3\t4"];
        for bad in bad {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    /// Answers with random changes: a row is what its line says, or the answer is refused. `GPU_PRIMITIVES_FUZZ=SECONDS` runs
    /// it for this time, and `GPU_PRIMITIVES_SEED=SEED` runs one round alone.
    #[test]
    fn fuzz_answers() {
        let valid = "# name: std, g++ -O3\nsort\tu32\t1048576\t3.25\t3.2\t4\n# a comment\n\nlookup, all present\tL = 8\t65536\t0.5\n";
        let parts = [
            "\t",
            "\n",
            "\r\n",
            "#",
            "# name: ",
            "-1",
            "1e-400",
            "1e400",
            "NaN",
            "inf",
            "18446744073709551616",
            "é",
            "0",
        ];
        let number = |name: &str| Some(std::env::var(name).ok()?.parse::<u64>().expect("a number"));
        let (time, only) = (number("GPU_PRIMITIVES_FUZZ"), number("GPU_PRIMITIVES_SEED"));
        let started = std::time::Instant::now();
        let (mut parsed, mut refused) = (0, 0);
        for seed in only.map_or(0..u64::MAX, |seed| seed..seed + 1) {
            let is_due = time.map_or(seed < 20_000, |time| started.elapsed().as_secs() < time);
            if only.is_none() && !is_due {
                break;
            }
            // A linear congruence, whose upper bits are random enough.
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut below = |limit: usize| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 33) as usize % limit
            };
            let mut bytes = valid.as_bytes().to_vec();
            for _ in 0..1 + below(3) {
                let at = below(bytes.len().max(1));
                match below(5) {
                    0 if at < bytes.len() => bytes[at] = below(256) as u8,
                    1 => bytes.truncate(at),
                    2 => _ = bytes.drain(at..(at + below(8)).min(bytes.len())),
                    _ => _ = bytes.splice(at..at, parts[below(parts.len())].bytes()),
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            match answer(&text) {
                Err(error) => {
                    assert!(error.to_string().contains("separated by tabs"), "seed {seed}: {error}");
                    refused += 1;
                }
                Ok((_, rows)) => {
                    parsed += 1;
                    for row in rows {
                        let [median, low, high] = row.milliseconds;
                        assert!(
                            0.0 < low && low <= median && median <= high && high.is_finite(),
                            "seed {seed}: {row:?}"
                        );
                        assert!((u64::MAX as f64 / low / 1e3).is_finite(), "seed {seed}: the rate of {row:?}");
                        let PeerRow { row: name, parameter, elements, .. } = &row;
                        let again = format!("{name}\t{parameter}\t{elements}\t{median}\t{low}\t{high}");
                        assert_eq!(parse(&again).unwrap(), row, "seed {seed}");
                    }
                }
            }
        }
        println!("{parsed} answers were parsed, {refused} refused");
    }

    /// A peer that answers at length before it reads its input, which is longer than a pipe.
    #[cfg(unix)]
    #[test]
    fn a_peer_that_answers_before_it_reads() {
        use std::os::unix::fs::PermissionsExt;
        let program = std::env::temp_dir().join(format!("gpu-benches-eager-peer-{}", std::process::id()));
        let script = "#!/bin/sh\ni=0\nwhile [ $i -lt 3000 ]; do echo '# a comment that fills the pipe of the answer, line by line'; i=$((i+1)); done\ncat > /dev/null\necho 'copy\t\t8\t2'\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let peer = Peer::new(&program);
        std::thread::spawn(move || {
            loop {
                match peer.ask(&"a line that fills the pipe of the input\n".repeat(5000)) {
                    // Another test is starting a process, which has not yet closed the file that was just written.
                    Err(error) if error.to_string().contains("busy") => std::thread::yield_now(),
                    answered => return sender.send(answered),
                }
            }
        });
        let answered = receiver.recv_timeout(std::time::Duration::from_secs(30));
        std::fs::remove_file(&program).unwrap();
        let (_, rows) = answered.expect("an answer, and no deadlock").unwrap();
        assert_eq!(rows.len(), 1);
    }

    #[test]
    fn a_missing_peer_is_named() {
        let error = Peer::new("/no/such/peer").ask("").err().unwrap().to_string();
        assert!(error.contains("/no/such/peer"), "{error}");
    }
}
