//! The table of the primitives: our rate, the peer's in the same run, and the share of the memory rate.
//!
//! One file per primitive measures its rows; each checks every result that it times.

mod merge;
mod multisplit;
mod scan;
mod search;
mod segmented_sort;
mod select;
mod sort;
mod transfer;

use crate::measure::{median, million_per_second};
use crate::peers::{self, PeerRow};
use gpu_primitives::{Device, DeviceKind, Error as DeviceError, Stream};
use std::time::Duration;

/// Timed runs of a row.
const REPETITIONS: usize = 15;

/// One measured row.
pub struct Row {
    /// The name, as the peer program prints it.
    pub name: String,
    /// Elements.
    pub len: usize,
    /// Bytes that must move per element: each input read once, each output written once.
    pub bytes: f64,
    /// The median time.
    pub time: Duration,
}

/// What the rows are measured with: a stream, and where they go.
pub struct Table<'a> {
    /// The stream of all work.
    pub stream: &'a Stream,
    rows: Vec<Row>,
}

impl Table<'_> {
    /// Times `operation` and adds the row.
    ///
    /// # Errors
    /// What the operation gives.
    pub fn time(
        &mut self,
        name: impl Into<String>,
        len: usize,
        bytes: f64,
        operation: impl FnMut() -> Result<(), DeviceError>,
    ) -> Result<(), crate::Error> {
        let time = median(self.stream, REPETITIONS, operation)?;
        self.rows.push(Row { name: name.into(), len, bytes, time });
        Ok(())
    }
}

/// Measures the rows of one primitive at one size; a size that a row does not fit is left out.
type Measure = fn(&mut Table<'_>, usize) -> Result<(), crate::Error>;

/// The measurements, by the name that `--only` takes.
const SUITES: &[(&str, Measure)] = &[
    ("transfer", transfer::measure),
    ("scan", scan::measure),
    ("sort", sort::measure),
    ("merge", merge::measure),
    ("multisplit", multisplit::measure),
    ("select", select::measure),
    ("segmented_sort", segmented_sort::measure),
    ("search", search::measure),
];

/// What to measure.
pub struct Options<'a> {
    /// The device's name; else as `Device::default` finds it.
    pub device: Option<&'a str>,
    /// Sizes as powers of two; else those of the device.
    pub log_sizes: &'a [u32],
    /// A peer program that is compiled already.
    pub peer: Option<&'a str>,
    /// The suites to measure; else all.
    pub only: &'a [String],
}

/// Measures every row on the device, next to the peer program if it can be had, and prints the table.
///
/// # Errors
/// What the device gives; a wrong result; a suite that does not exist.
pub fn run(options: &Options<'_>) -> Result<(), crate::Error> {
    if let Some(unknown) = options.only.iter().find(|name| SUITES.iter().all(|(suite, _)| suite != name)) {
        let known = SUITES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        return Err(crate::Error::UnknownSuite { asked: unknown.clone(), known });
    }
    let device = options.device.map_or_else(Device::default, Device::parse)?;
    let stream = device.stream()?;
    let gpu = matches!(device.kind(), DeviceKind::Cuda { .. });
    let default_sizes: &[u32] = if gpu { &[15, 16, 18, 20, 21, 24, 26, 27] } else { &[20] };
    let log_sizes = if options.log_sizes.is_empty() { default_sizes } else { options.log_sizes };

    let mut table = Table { stream: &stream, rows: Vec::new() };
    for (name, measure) in SUITES {
        if options.only.is_empty() || options.only.iter().any(|asked| asked == name) {
            for &log in log_sizes {
                measure(&mut table, 1 << log)?;
            }
        }
    }
    let peer_rows = if gpu { peers::measure(options.peer)? } else { Vec::new() };

    println!("device: {}", device.name());
    println!("{:<28} {:>10} {:>12} {:>10} {:>10} {:>8}", "row", "n", "M/s", "GB/s", "peer M/s", "ratio");
    for row in &table.rows {
        let rate = million_per_second(row.len, row.time);
        let gigabytes = rate * row.bytes / 1e3;
        let peer = peer_rows.iter().find(|peer: &&PeerRow| peer.name == row.name && peer.len == row.len);
        let (peer_rate, ratio) = peer.map_or((String::from("-"), String::from("-")), |peer| {
            (format!("{:.0}", peer.million_per_second), format!("{:.3}", rate / peer.million_per_second))
        });
        println!("{:<28} {:>10} {rate:>12.0} {gigabytes:>10.0} {peer_rate:>10} {ratio:>8}", row.name, row.len);
    }
    Ok(())
}

/// Every timed result is checked.
fn expect<T: PartialEq>(
    what: &'static str,
    found: &[T],
    expected: impl Iterator<Item = T>,
) -> Result<(), crate::Error> {
    match found.iter().zip(expected).position(|(found, expected)| *found != expected) {
        Some(index) => Err(crate::Error::WrongResult { what, index }),
        None => Ok(()),
    }
}
