//! Peers: programs in any language that measure the same rows.
//!
//! A peer speaks a small line protocol. Before anything is measured it is started with the argument `rows`. It prints the
//! names of the rows that it knows, one per line, and ends:
//!
//! ```text
//! # name: what it is called in the report
//! row
//! ```
//!
//! A name that does not [exist](crate::names) is an error. After our own measurements the peer is started without
//! arguments. Its standard input says what the keys and values of a comparison are, and has one line per row that was
//! measured here, with the fields separated by tabs:
//!
//! ```text
//! # keys: uniform
//! # key_bits: 32
//! # value_bytes: 4
//! section   row   parameter   elements   operations of one run
//! ```
//!
//! It answers on its standard output, for the rows that it knows and in any order:
//!
//! ```text
//! # name: what it is called in the report
//! # keys: uniform
//! # key_bits: 32
//! # value_bytes: 4
//! row   parameter   elements   milliseconds of one run, the median
//! ```
//!
//! The three lines say what the peer measured in a comparison. One that is missing means `uniform`, 32 or 4. If they are not
//! what was asked for, its rows are left out. Two more fields of a row may follow: the shortest and the longest run. The last
//! field of a row may be `queued=` and the milliseconds of one of many calls that queue on the device
//! ([the two ways of timing](crate::measure)). Other
//! lines that begin with `#` are comments. Rows that were not asked for are left out, and counted in a message. Messages go to
//! the standard error. A peer makes its own data, as the row says ([`crate::names`]), and checks its own results: a rate
//! of a wrong result is worth nothing. A peer that prints nothing for too long is ended; a comment is a sign of life.
//!
//! `benches/peers` has three of them: `std.cpp`, in plain C++; `cub.cu`, which uses CUB and Thrust from the CUDA toolkit; and
//! `torch_cupy.py`, for PyTorch and CuPy.

use crate::Error;
use crate::data::Distribution;
use crate::record::{RATE, Record};
use crate::session::Session;
use crate::{compare, names, view::pivot::distinct};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The source of CUB's program. It is embedded, so that a machine with `nvcc` but without this repository can compile it.
const CUB: &str = include_str!("../peers/cub.cu");

/// The times that a peer may state, in milliseconds. Others are mistakes, and their rates may be infinite.
const TIMES: RangeInclusive<f64> = 1e-9..=1e12;

/// The most time that a compiler may take.
const COMPILATION: Duration = Duration::from_secs(1800);

/// How often a wait for a peer looks whether Ctrl-C was pressed.
const GLANCE: Duration = Duration::from_millis(100);

/// A program that measures the same rows.
#[derive(Clone, Debug)]
pub struct Peer {
    program: PathBuf,
    silence: Duration,
    rows: Vec<String>,
}

/// What a peer is told about the keys and values of a comparison, and what it says that it has measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The distribution of the keys.
    pub keys: Distribution,
    /// The size of a key in bits.
    pub key_bits: usize,
    /// The size of a value in bytes.
    pub value_bytes: usize,
}

impl Default for Told {
    fn default() -> Self {
        Self { keys: Distribution::Uniform, key_bits: 32, value_bytes: 4 }
    }
}

impl Told {
    /// Returns the head of a peer's input.
    fn lines(self) -> String {
        let Self { keys, key_bits, value_bytes } = self;
        format!("# keys: {}\n# key_bits: {key_bits}\n# value_bytes: {value_bytes}\n", keys.name())
    }

    fn in_words(self) -> String {
        let Self { keys, key_bits, value_bytes } = self;
        format!("{} keys of {key_bits} bits with values of {value_bytes} bytes", keys.name())
    }
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
    /// The time of one of several calls that queue on the device, if it was measured.
    pub queued: Option<f64>,
}

impl Peer {
    /// Asks a program which rows it knows. It is ended if it prints nothing for as long as `silence`.
    ///
    /// # Errors
    /// [`Error::Peer`] if it cannot be run, if it names no row, or if it names one that does not exist;
    /// [`Error::Interrupted`].
    pub fn open(program: impl Into<PathBuf>, silence: Duration) -> Result<Self, Error> {
        let program = program.into();
        let failed = |what: String| Err(Error::Peer { what: format!("{}: {what}", program.display()) });
        let text = converse(Command::new(&program).arg("rows"), &program, "", silence)?;
        let rows: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(str::to_owned)
            .collect();
        if rows.is_empty() {
            return failed("with the argument `rows`, it must print the names of the rows that it knows".into());
        }
        if let Some(unknown) = rows.iter().find(|row| names::explain(row).is_none()) {
            let nearest = names::nearest(unknown);
            return failed(format!("there is no row {unknown:?}; the most similar one is {nearest:?}"));
        }
        Ok(Self { program, silence, rows })
    }

    /// Compiles CUB's program with `nvcc` into the temporary folder: with the CUB of the toolkit, or with the headers in
    /// another folder. Returns `None` if there is no compiler.
    ///
    /// # Errors
    /// [`Error::Peer`] if it cannot be compiled; the errors of [`open`](Self::open).
    pub fn cub(headers: Option<&Path>, silence: Duration) -> Result<Option<Self>, Error> {
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
        // A compiler says nothing while it works.
        if let Some(headers) = headers {
            command.arg("-I").arg(headers);
        }
        converse(&mut command, Path::new(&compiler), "", COMPILATION)?;
        Self::open(program, silence).map(Some)
    }

    /// Runs the program with these lines as its input.
    fn ask(&self, lines: &str) -> Result<Answer, Error> {
        let text = converse(&mut Command::new(&self.program), &self.program, lines, self.silence)?;
        let mut answer = answer(&text)?;
        let stem =
            || self.program.file_stem().map_or_else(|| "peer".into(), |stem| stem.to_string_lossy().into_owned());
        answer.name.get_or_insert_with(stem);
        Ok(answer)
    }
}

/// The answer of a peer.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    /// Its name, if it says it.
    name: Option<String>,
    /// What it measured.
    measured: Told,
    /// Its rows.
    rows: Vec<PeerRow>,
}

/// Parses a whole answer.
fn answer(text: &str) -> Result<Answer, Error> {
    let said =
        |what: &str| text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(what)?.strip_prefix(": "));
    let bad = |what: &str, value: &str| Error::Peer { what: format!("not a value of `# {what}:`: {value:?}") };
    let number = |what: &str, missing: usize| {
        said(what).map_or(Ok(missing), |value| value.trim().parse().map_err(|_| bad(what, value)))
    };
    let keys = said("keys").map_or(Ok(Distribution::Uniform), |value| {
        clap::ValueEnum::from_str(value.trim(), false).map_err(|_| bad("keys", value))
    })?;
    let measured = Told { keys, key_bits: number("key_bits", 32)?, value_bytes: number("value_bytes", 4)? };
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(parse);
    let name = said("name").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(Answer { name, measured, rows: rows.collect::<Result<_, _>>()? })
}

/// Asks a peer for the rows of a section that were measured here. The comparison gets records of the peer; elsewhere, each
/// of our records gets the number of the fastest peer. Rows of other keys or values than `told` are left out with a message.
///
/// # Errors
/// [`Error::Peer`] if the program cannot be run, is silent for too long, or gives an answer that cannot be parsed;
/// [`Error::Interrupted`].
pub fn measure(session: &Session, peer: &Peer, section: &str, told: Told) -> Result<(), Error> {
    let asked: Vec<Record> =
        session.records(|record| record.section == section && record.unit == RATE && peer.rows.contains(&record.row));
    let line =
        |record: &Record| format!("{section}\t{}\t{}\t{}\t{}\n", record.row, record.parameter, record.n, record.work);
    if asked.is_empty() {
        return Ok(());
    }
    let Answer { name, measured, rows } = peer.ask(&(told.lines() + &distinct(asked.iter().map(line)).concat()))?;
    let name = name.unwrap_or_default();
    if section == compare::SECTION && measured != told {
        let (measured, told) = (measured.in_words(), told.in_words());
        eprintln!("{name} is left out of the comparison: it measured {measured}, and this run {told}");
        return Ok(());
    }
    let answers = |record: &Record, row: &PeerRow| {
        (record.row.as_str(), record.parameter.as_str(), record.n)
            == (row.row.as_str(), row.parameter.as_str(), row.elements)
    };
    let (rows, unasked): (Vec<PeerRow>, Vec<PeerRow>) =
        rows.into_iter().partition(|row| asked.iter().any(|record| answers(record, row)));
    if let Some(first) = unasked.first() {
        let PeerRow { row, elements, .. } = first;
        eprintln!("{name}: {} rows were not asked for and are left out, such as {row} of {elements}", unasked.len());
    }
    for row in &rows {
        let Some(record) = asked.iter().find(|record| answers(record, row)) else { continue };
        let rate = |time: f64| record.work as f64 / time / 1e3;
        let ([median, low, high], queued) = (row.milliseconds.map(rate), row.queued.map(rate));
        if section == compare::SECTION {
            let of_peer =
                Record::new(section, &name, &row.row, &row.parameter, row.elements as usize).value(median, RATE);
            let of_peer = if low == high { of_peer } else { of_peer.spread(&[low, high]) };
            session.keep(Record { work: record.work, queued, ..of_peer });
        } else {
            session.revise(|records| {
                for record in records.iter_mut().filter(|record| record.section == section && answers(record, row)) {
                    if record.peer_value.is_none_or(|best| best < median) {
                        *record = record.clone().beside(&name, Some(median));
                    }
                    if queued.is_some_and(|queued| record.queued_peer_value.is_none_or(|best| best < queued)) {
                        *record = record.clone().beside_queued(&name, queued);
                    }
                }
            });
        }
    }
    Ok(())
}

/// Ends a program when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Neither fails for a program that has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of a command with this input, or the reason why it failed. It is ended when it has printed nothing for
/// as long as `silence`.
fn converse(command: &mut Command, program: &Path, input: &str, silence: Duration) -> Result<String, Error> {
    let failed = |what: String| Error::Peer { what: format!("{}: {what}", program.display()) };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(command.spawn().map_err(|error| failed(error.to_string()))?);
    let child = &mut running.0;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // On threads of their own: a program may answer before it has read all of its input, and the pipes are short. The threads
    // are not waited for: a pipe stays open as long as any process that the program has started.
    let input = input.to_owned();
    std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.map(|mut stderr| stderr.read_to_end(&mut text));
        sender.send(text)
    });
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut stdout = stdout.map(BufReader::new);
        let mut next = || {
            let mut line = Vec::new();
            let read = stdout.as_mut()?.read_until(b'\n', &mut line);
            read.ok().filter(|read| *read > 0).map(|_| line)
        };
        while let Some(line) = next() {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let silent = || failed(format!("it printed nothing for {} s and was ended", silence.as_secs_f64()));
    let mut text = Vec::new();
    while let Some(line) = receive(&lines, silence)?.ok_or_else(silent)? {
        text.extend(line);
    }
    let start = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) => break status,
            None if start.elapsed() > silence => return Err(silent()),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
        Session::go_on()?;
    };
    if !status.success() {
        let said = messages.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
        return Err(failed(format!("{status}: {}", String::from_utf8_lossy(&said).trim())));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Waits for the next line: `Some(None)` if there are no more, `None` if there was none for as long as `silence`.
fn receive(lines: &Receiver<Vec<u8>>, silence: Duration) -> Result<Option<Option<Vec<u8>>>, Error> {
    let start = Instant::now();
    loop {
        let left = silence.saturating_sub(start.elapsed());
        match lines.recv_timeout(left.min(GLANCE)) {
            Ok(line) => return Ok(Some(Some(line))),
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(None)),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => Session::go_on()?,
        }
    }
}

/// Parses a row of an answer.
fn parse(line: &str) -> Result<PeerRow, Error> {
    let bad =
        || Error::Peer { what: format!("not `row, parameter, elements, milliseconds`, separated by tabs: {line:?}") };
    let time = |text: &&str| text.trim().parse::<f64>().ok().filter(|time| TIMES.contains(time)).ok_or_else(bad);
    let mut fields: Vec<&str> = line.split('\t').collect();
    let queued = fields.pop_if(|last| last.starts_with("queued="));
    let queued = queued.map(|field| time(&&field["queued=".len()..])).transpose()?;
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
    Ok(PeerRow { row: row.into(), parameter: parameter.into(), elements, milliseconds, queued })
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
            queued: None,
        };
        assert_eq!(row, expected);
        assert_eq!(parse("copy\t\t8\t2").unwrap().milliseconds, [2.0; 3]);
        let both = parse("copy\t\t8\t2\tqueued=1.5").unwrap();
        assert_eq!((both.milliseconds, both.queued), ([2.0; 3], Some(1.5)));
        assert_eq!(parse("copy\t\t8\t2\t1\t3\tqueued=1.5").unwrap().queued, Some(1.5));
        assert!(parse("copy\t\t8\tqueued=1.5").is_err() && parse("copy\t\t8\t2\tqueued=no").is_err());
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
        let valid = "# name: std, g++ -O3\n# keys: zipf\n# key_bits: 64\nsort\tu32\t1048576\t3.25\t3.2\t4\n# a comment\n\nlookup, all present\tL = 8\t65536\t0.5\tqueued=0.4\n";
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
                    let said = error.to_string();
                    assert!(
                        said.contains("separated by tabs") || said.contains("not a value of"),
                        "seed {seed}: {said}"
                    );
                    refused += 1;
                }
                Ok(Answer { rows, .. }) => {
                    parsed += 1;
                    for row in rows {
                        let [median, low, high] = row.milliseconds;
                        assert!(
                            0.0 < low && low <= median && median <= high && high.is_finite(),
                            "seed {seed}: {row:?}"
                        );
                        assert!((u64::MAX as f64 / low / 1e3).is_finite(), "seed {seed}: the rate of {row:?}");
                        let PeerRow { row: name, parameter, elements, queued, .. } = &row;
                        let queued = queued.map_or_else(String::new, |time| format!("\tqueued={time}"));
                        let again = format!("{name}\t{parameter}\t{elements}\t{median}\t{low}\t{high}{queued}");
                        assert_eq!(parse(&again).unwrap(), row, "seed {seed}");
                    }
                }
            }
        }
        println!("{parsed} answers were parsed, {refused} refused");
    }

    #[test]
    fn an_answer_says_what_was_measured() {
        let default = answer("copy\t\t8\t2\n").unwrap();
        assert_eq!((default.name, default.measured), (None, Told::default()));
        let told = Told { keys: Distribution::Zipf, key_bits: 64, value_bytes: 8 };
        let echo = answer(&format!("# name: x\n{}copy\t\t8\t2\n", told.lines())).unwrap();
        assert_eq!((echo.name.as_deref(), echo.measured, echo.rows.len()), (Some("x"), told, 1));
        for bad in ["# keys: odd\n", "# key_bits: many\n"] {
            assert!(answer(bad).unwrap_err().to_string().contains("not a value of"), "{bad}");
        }
    }

    /// Writes a shell script, and asks it for its rows.
    #[cfg(unix)]
    fn open_script(name: &str, script: &str, silence: Duration) -> (PathBuf, Result<Peer, Error>) {
        use std::os::unix::fs::PermissionsExt;
        let program = std::env::temp_dir().join(format!("gpu-benches-{name}-peer-{}", std::process::id()));
        std::fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        loop {
            match Peer::open(&program, silence) {
                // Another test is starting a process, which has not yet closed the file that was just written.
                Err(error) if error.to_string().contains("busy") => std::thread::yield_now(),
                opened => return (program, opened),
            }
        }
    }

    /// A peer that answers at length before it reads its input, which is longer than a pipe.
    #[cfg(unix)]
    #[test]
    fn a_peer_that_answers_before_it_reads() {
        let script = "[ \"$1\" = rows ] && echo copy && exit\ni=0\nwhile [ $i -lt 3000 ]; do echo '# a comment that fills the pipe of the answer, line by line'; i=$((i+1)); done\ncat > /dev/null\necho 'copy\t\t8\t2'\n";
        let (program, peer) = open_script("eager", script, Duration::from_secs(30));
        let answered = peer.unwrap().ask(&"a line that fills the pipe of the input\n".repeat(5000));
        std::fs::remove_file(&program).unwrap();
        assert_eq!(answered.unwrap().rows.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_silent_peer_is_ended() {
        // The shell's child keeps the pipe of the answer open.
        let (program, peer) = open_script(
            "silent",
            "[ \"$1\" = rows ] && echo copy && exit\nsleep 20\necho never\n",
            Duration::from_millis(500),
        );
        let start = Instant::now();
        let said = peer.unwrap().ask("").unwrap_err().to_string();
        std::fs::remove_file(&program).unwrap();
        assert!(said.contains("printed nothing for 0.5 s") && said.contains("silent-peer"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(10), "it was waited for");
    }

    #[cfg(unix)]
    #[test]
    fn a_peer_that_knows_other_rows_is_named() {
        for (name, script, word) in [
            ("misspelling", "echo sort_key_u32\n", "the most similar one is \"sort_keys_u32\""),
            ("mute", "cat > /dev/null\n", "argument `rows`"),
            ("failing", "echo no device >&2\nexit 3\n", "no device"),
        ] {
            let (program, peer) = open_script(name, script, Duration::from_secs(30));
            std::fs::remove_file(&program).unwrap();
            let said = peer.unwrap_err().to_string();
            assert!(said.contains(word) && said.contains(&format!("{name}-peer")), "{said}");
        }
    }

    #[test]
    fn a_missing_peer_is_named() {
        let error = Peer::open("/no/such/peer", Duration::from_secs(1)).err().unwrap().to_string();
        assert!(error.contains("/no/such/peer"), "{error}");
    }
}
