//! The measurements of the primitives: our rate, the peer's in the same run, and the memory rate.
//!
//! One file per primitive measures its rows. Every timed result is checked.

mod bits;
mod columns;
mod differences;
mod distinct;
mod histogram;
mod merge;
mod merge_sort;
mod multisplit;
mod order_statistics;
mod permute;
mod reduce;
mod row_top_k;
mod rows;
mod runs;
mod scan;
mod search;
mod segmented_scan;
mod segmented_sort;
mod select;
mod sets;
mod sort;
mod top_k;
mod transfer;
mod transform;

use crate::command::Peers;
use crate::data::random_u32;
use crate::peers::{self, Peer, Told};
use crate::record::{Record, Recording, power};
use crate::report::ahead;
use crate::session::Session;
use crate::view::pivot::distinct;
use crate::view::{Block, NONE, Table, number, optional, ratio, spread};
use crate::{Error, names};
use std::path::Path;

/// The section of the records.
pub const SECTION: &str = "primitives";

/// The row whose rate is that of the memory.
const COPY: &str = "memcpy";

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
    Suite { name: "sort", measure: sort::measure, gpu_sizes: &[15, 16, 17, 18, 20, 21, 24, 27] },
    Suite { name: "sort_u64", measure: sort::measure_u64, gpu_sizes: &[26] },
    Suite { name: "merge", measure: merge::measure, gpu_sizes: &[21, 24, 27] },
    Suite { name: "multisplit", measure: multisplit::measure, gpu_sizes: &[20, 27] },
    Suite { name: "select", measure: select::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "bits", measure: bits::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "segmented_sort", measure: segmented_sort::measure, gpu_sizes: &[24] },
    Suite { name: "reduce", measure: reduce::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "segmented_reduce", measure: reduce::measure_segments, gpu_sizes: &[26] },
    Suite { name: "runs", measure: runs::measure, gpu_sizes: &[26] },
    Suite { name: "scan_u64", measure: scan::measure_u64, gpu_sizes: &[26] },
    Suite { name: "histogram", measure: histogram::measure, gpu_sizes: &[27] },
    Suite { name: "transform", measure: transform::measure, gpu_sizes: &[27] },
    Suite { name: "top_k", measure: top_k::measure, gpu_sizes: &[24, 27] },
    Suite { name: "order_statistics", measure: order_statistics::measure, gpu_sizes: &[24, 27] },
    Suite { name: "merge_sort", measure: merge_sort::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "search", measure: search::measure, gpu_sizes: &[21, 24, 27] },
    Suite { name: "sets", measure: sets::measure, gpu_sizes: &[20, 24, 26] },
    Suite { name: "permute", measure: permute::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "differences", measure: differences::measure, gpu_sizes: &[20, 24, 27] },
    Suite { name: "segmented_scan", measure: segmented_scan::measure, gpu_sizes: &[26] },
    Suite { name: "columns", measure: columns::measure, gpu_sizes: &[24, 27] },
    Suite { name: "distinct", measure: distinct::measure, gpu_sizes: &[27] },
    Suite { name: "rows", measure: rows::measure, gpu_sizes: &[17, 21, 23, 26] },
    Suite { name: "row_top_k", measure: row_top_k::measure, gpu_sizes: &[24] },
];

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// The numbers of elements; if empty, sizes that suit the device.
    pub sizes: &'a [usize],
    /// Peer programs; if empty, CUB if there is `nvcc` and the device is a GPU.
    pub peers: &'a Peers,
    /// A folder with the headers of another version of CUB.
    pub cub: Option<&'a Path>,
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
    let sizes = |suite: &Suite| match options.sizes {
        [] if session.is_gpu() => suite.gpu_sizes.iter().map(|log| 1 << log).collect(),
        [] => vec![1 << CPU_SIZE],
        asked => asked.to_vec(),
    };
    let mut peers = options.peers.open()?;
    if peers.is_empty() && session.is_gpu() {
        peers.extend(Peer::cub(options.cub, options.peers.silence())?);
    }
    session.expect_steps(suites().map(|suite| sizes(suite).len()).sum());
    let measure = || {
        for suite in suites() {
            for len in sizes(suite) {
                session.step(format!("{} of {}", suite.name, power(len)))?;
                (suite.measure)(&session, len)?;
            }
        }
        peers.iter().try_for_each(|peer| peers::measure(&session, peer, SECTION, Told::default()))
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

/// Returns the table of the primitives. The rates of a reference at its largest size stand in a column of their own.
#[must_use]
pub fn table(recording: &Recording, reference: Option<&[Record]>) -> Block {
    let has_peer = recording.section(SECTION).any(|record| record.peer_value.is_some());
    // What is compared comes first, so that it is seen on a narrow screen.
    let has_queued = recording.section(SECTION).any(|record| record.queued.or(record.queued_peer_value).is_some());
    let columns = ["row", "n", "M/s"]
        .into_iter()
        .chain(reference.map(|_| "H200 M/s"))
        .chain(has_peer.then_some(["peer M/s", "ratio"]).into_iter().flatten())
        .chain(has_queued.then_some("queued M/s"))
        .chain((has_queued && has_peer).then_some(["peer queued M/s", "queued ratio"]).into_iter().flatten())
        .chain(has_peer.then_some("fastest peer"))
        .chain(["GB/s", "of a copy", "spread"]);
    let mut table = Table::new(1, columns);
    let column = |table: &Table, name: &str| table.columns.iter().position(|column| column == name);
    let (ours, peers) = (column(&table, "M/s"), column(&table, "peer M/s"));
    let (ours_queued, peers_queued) = (column(&table, "queued M/s"), column(&table, "peer queued M/s"));
    for record in recording.section(SECTION) {
        let gigabytes = record.bytes.map(|bytes| record.value * bytes / 1e3);
        let mut row = vec![names::title(&record.row), power(record.n as usize), number(record.value)];
        if let Some(reference) = reference {
            let largest = reference.iter().filter(|other| other.row == record.row).max_by_key(|other| other.n);
            row.push(optional(largest.map(|largest| largest.value)));
        }
        if has_peer {
            row.extend([optional(record.peer_value), ratio(record.ratio())]);
        }
        if has_queued {
            row.push(optional(record.queued));
        }
        if has_queued && has_peer {
            row.extend([optional(record.queued_peer_value), ratio(record.queued_ratio())]);
        }
        if has_peer {
            let peers = [&record.peer, &record.queued_peer].into_iter().flatten().cloned();
            row.push(Some(distinct(peers).join(", ")).filter(|names| !names.is_empty()).unwrap_or_else(|| NONE.into()));
        }
        let share = share_of_copy(recording, record);
        row.extend([
            optional(gigabytes),
            share.map_or_else(|| NONE.into(), |share| format!("{:.0} %", 100.0 * share)),
            spread(record),
        ]);
        table.hint(&record.row);
        let queued = record.as_queued().and_then(|queued| ahead(&queued, ours_queued, peers_queued));
        table.best.push(ahead(record, ours, peers).into_iter().chain(queued).collect());
        table.push(row);
    }
    Block::Table(table)
}

/// Returns the bytes per second that a row must move, divided by those of the driver's copy of as many elements. If that
/// size of copy was not measured, the largest one counts.
#[must_use]
pub fn share_of_copy(recording: &Recording, record: &Record) -> Option<f64> {
    let copies = || recording.section(SECTION).filter(|copy| copy.row == COPY);
    let copy = copies().find(|copy| copy.n == record.n).or_else(|| copies().max_by_key(|copy| copy.n))?;
    Some(record.value * record.bytes? / (copy.value * copy.bytes?))
}

/// Times `operation` and records the row. `bytes` is what must move per element: each input read once, each output
/// written once.
fn time(
    session: &Session,
    name: impl Into<String>,
    len: usize,
    bytes: f64,
    operation: impl FnMut() -> Result<(), gpu_primitives::Error>,
) -> Result<(), Error> {
    time_work(session, name, len, len, bytes, operation)
}

/// Like [`time`], for operations whose rate counts other elements than those that give the row its size.
fn time_work(
    session: &Session,
    name: impl Into<String>,
    len: usize,
    work: usize,
    bytes: f64,
    mut operation: impl FnMut() -> Result<(), gpu_primitives::Error>,
) -> Result<(), Error> {
    let ((), times) = session.time(|| Ok(operation()?))?;
    let queued = session.queued(times.median(), || Ok(operation()?))?;
    let record = Record::new(SECTION, "gpu-primitives", name, "", len).rate(work, &times).queued(queued);
    session.keep(record.bytes(bytes));
    Ok(())
}

/// Returns the offsets of segments whose boundaries are random: `len / mean` of them.
fn random_offsets(len: usize, mean: usize) -> Vec<u32> {
    let cuts = random_u32(7, (len / mean).saturating_sub(1)).into_iter().map(|cut| cut % (len as u32 + 1));
    let mut offsets: Vec<u32> = cuts.chain([0, len as u32]).collect();
    offsets.sort_unstable();
    offsets
}

/// Checks a timed result.
fn expect<T: PartialEq>(what: &str, found: &[T], expected: impl Iterator<Item = T>) -> Result<(), Error> {
    crate::check::equal(what, found.iter(), expected, |found, expected| **found == *expected)
}
