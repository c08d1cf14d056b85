//! The measurements of the primitives: our rate, the peer's in the same run, and the memory rate.
//!
//! One file per primitive measures its rows. Every timed result is checked.

mod histogram;
mod merge;
mod merge_sort;
mod multisplit;
mod reduce;
mod runs;
mod scan;
mod search;
mod segmented_sort;
mod select;
mod sort;
mod top_k;
mod transfer;
mod transform;

use crate::Error;
use crate::peers;
use crate::record::{Record, Recording, power};
use crate::session::Session;
use crate::view::{Block, Table, number, optional, ratio, spread};

/// The section of the records.
pub const SECTION: &str = "primitives";

/// The number of timed runs per row.
const RUNS: usize = 15;

/// The size on a CPU, as a power of two.
const CPU_SIZE: u32 = 20;

/// The rows of one primitive.
struct Suite {
    /// The name for `--only`.
    name: &'static str,
    /// Measures the rows at one size.
    measure: fn(&Session, usize) -> Result<(), Error>,
    /// The sizes on a GPU, as powers of two.
    gpu_sizes: &'static [u32],
}

const SUITES: &[Suite] = &[
    Suite { name: "transfer", measure: transfer::measure, gpu_sizes: &[15, 16, 18, 20, 21, 24, 26, 27] },
    Suite { name: "scan", measure: scan::measure, gpu_sizes: &[15, 16, 18, 20, 21, 24, 26, 27] },
    Suite { name: "sort", measure: sort::measure, gpu_sizes: &[15, 16, 18, 20, 21, 24, 27] },
    Suite { name: "sort_u64", measure: sort::measure_u64, gpu_sizes: &[26] },
    Suite { name: "merge", measure: merge::measure, gpu_sizes: &[21, 24, 27] },
    Suite { name: "multisplit", measure: multisplit::measure, gpu_sizes: &[20, 27] },
    Suite { name: "select", measure: select::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "segmented_sort", measure: segmented_sort::measure, gpu_sizes: &[24] },
    Suite { name: "reduce", measure: reduce::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "segmented_reduce", measure: reduce::measure_segments, gpu_sizes: &[26] },
    Suite { name: "runs", measure: runs::measure, gpu_sizes: &[26] },
    Suite { name: "scan_u64", measure: scan::measure_u64, gpu_sizes: &[26] },
    Suite { name: "histogram", measure: histogram::measure, gpu_sizes: &[27] },
    Suite { name: "transform", measure: transform::measure, gpu_sizes: &[27] },
    Suite { name: "top_k", measure: top_k::measure, gpu_sizes: &[24, 27] },
    Suite { name: "merge_sort", measure: merge_sort::measure, gpu_sizes: &[24] },
    Suite { name: "search", measure: search::measure, gpu_sizes: &[21, 24, 27] },
];

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// The sizes as powers of two; if empty, sizes that suit the device.
    pub log_sizes: &'a [u32],
    /// A peer program that is already compiled.
    pub peer: Option<&'a str>,
    /// The suites to measure; if empty, all.
    pub only: &'a [String],
}

/// Measures every row on the device, and runs the peer program if there is one.
///
/// # Errors
/// Any error before the first measurement, such as an unknown suite. Later errors are in
/// [`Run::outcome`](crate::Run::outcome), next to the measurements so far.
pub fn run(options: &Options<'_>) -> Result<crate::Run, Error> {
    if let Some(unknown) = options.only.iter().find(|name| SUITES.iter().all(|suite| suite.name != **name)) {
        let known = SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownSuite { asked: unknown.clone(), known });
    }
    let session = Session::open(options.device, RUNS)?;
    let suites =
        || SUITES.iter().filter(|suite| options.only.is_empty() || options.only.iter().any(|it| it == suite.name));
    let sizes = |suite: &Suite| match options.log_sizes {
        [] if session.is_gpu() => suite.gpu_sizes.to_vec(),
        [] => vec![CPU_SIZE],
        asked => asked.to_vec(),
    };
    session.expect_steps(suites().map(|suite| sizes(suite).len()).sum());
    let measure = || {
        for suite in suites() {
            for log in sizes(suite) {
                session.step(format!("{} of 2^{log}", suite.name))?;
                (suite.measure)(&session, 1 << log)?;
            }
        }
        if session.is_gpu() { beside_peer(&session, options.peer) } else { Ok(()) }
    };
    let outcome = measure();
    Ok(crate::Run { recording: session.finish(), outcome })
}

/// Measures every suite at one size, as a part of another command.
///
/// # Errors
/// Any device error; [`Error::WrongResult`]; [`Error::Interrupted`].
pub fn measure_all(session: &Session, len: usize) -> Result<(), Error> {
    for suite in SUITES {
        session.step(format!("{} of {}", suite.name, power(len)))?;
        (suite.measure)(session, len)?;
    }
    Ok(())
}

/// The number of steps that [`measure_all`] counts.
#[must_use]
pub fn steps() -> usize {
    SUITES.len()
}

/// Runs the peer and adds its numbers to our records.
fn beside_peer(session: &Session, executable: Option<&str>) -> Result<(), Error> {
    let peers = peers::measure(executable)?;
    session.revise(|records| {
        for record in records.iter_mut().filter(|record| record.section == SECTION) {
            let peer = peers.iter().find(|peer| peer.name == record.row && peer.len as u64 == record.n);
            *record = record.clone().beside("CUB", peer.map(|peer| peer.million_per_second));
        }
    });
    Ok(())
}

/// Returns the table of the primitives.
#[must_use]
pub fn table(recording: &Recording) -> Block {
    let has_peer = recording.section(SECTION).any(|record| record.peer_value.is_some());
    let columns = ["row", "n", "M/s", "GB/s", "spread"]
        .into_iter()
        .chain(has_peer.then_some(["peer M/s", "ratio"]).into_iter().flatten());
    let mut table = Table::new(1, columns);
    for record in recording.section(SECTION) {
        let gigabytes = record.bytes.map(|bytes| record.value * bytes / 1e3);
        let mut row = vec![
            record.row.clone(),
            power(record.n as usize),
            number(record.value),
            optional(gigabytes),
            spread(record),
        ];
        if has_peer {
            row.extend([optional(record.peer_value), ratio(record.ratio())]);
        }
        table.push(row);
    }
    Block::Table(table)
}

/// Times `operation` and records the row. `bytes` is what must move per element: each input read once, each output
/// written once.
fn time(
    session: &Session,
    name: impl Into<String>,
    len: usize,
    bytes: f64,
    mut operation: impl FnMut() -> Result<(), gpu_primitives::Error>,
) -> Result<(), Error> {
    let ((), times) = session.time(|| Ok(operation()?))?;
    session.keep(Record::new(SECTION, "gpu-primitives", name, "", len).rate(len, &times).bytes(bytes));
    Ok(())
}

/// Checks a timed result.
fn expect<T: PartialEq>(what: &str, found: &[T], expected: impl Iterator<Item = T>) -> Result<(), Error> {
    crate::check::equal(what, found.iter(), expected, |found, expected| **found == *expected)
}
