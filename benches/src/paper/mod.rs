//! Every experiment of section 5 of the paper, with the paper's numbers next to ours.

mod builds;
mod cleanup;
pub mod insertion;
mod published;
mod queries;
pub mod report;

use crate::measure::harmonic_mean;
use crate::record::Record;
use crate::session::Session;
use crate::{Error, Run};
use published::Published;

/// What the names of all sections of the paper begin with.
pub const PREFIX: &str = "paper ";
/// The section of the insertion table.
pub const INSERTION: &str = "paper insertion";
/// The time of each insertion.
pub const INSERTION_TIME: &str = "paper insertion time";
/// The effective insertion rate while the dictionary grows.
pub const EFFECTIVE_RATE: &str = "paper effective rate";
/// Bulk builds.
pub const BUILD: &str = "paper build";
/// Lookups.
pub const LOOKUP: &str = "paper lookup";
/// Counts and ranges.
pub const INTERVALS: &str = "paper intervals";
/// Cleanups.
pub const CLEANUP: &str = "paper cleanup";
/// Lookups before and after a cleanup.
pub const CLEANUP_AND_LOOKUPS: &str = "paper cleanup and lookups";
/// The summary: ratios over all batch sizes.
pub const SUMMARY: &str = "paper summary";

/// The largest divisor of the sizes, as a power of two: it makes a batch of 2^15 two elements.
pub const MOST_SCALE: u32 = 14;

/// The number of elements of the paper, as a power of two.
pub const LOG_SIZE: u32 = 27;

/// The paper's sizes, all divided by the same power of two.
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    shift: u32,
}

impl Scaled {
    /// Divides the sizes by `1 << shift`.
    #[must_use]
    pub fn by(shift: u32) -> Self {
        Self { shift: shift.min(MOST_SCALE) }
    }

    /// Scales the sizes so that about `len` elements are inserted.
    #[must_use]
    pub fn to(len: usize) -> Self {
        Self::by(27u32.saturating_sub(len.ilog2()))
    }

    /// Returns the scaled size of `1 << log`.
    #[must_use]
    pub fn size(self, log: u32) -> usize {
        1 << (log - self.shift)
    }

    /// Returns the scaled `b = 2^log` as text.
    #[must_use]
    pub fn batch(self, log: u32) -> String {
        format!("b = 2^{}", log - self.shift)
    }
}

/// The experiments, which can be run separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// The insertion table and the two figures.
    Insertion,
    /// Bulk builds.
    Build,
    /// The lookup table.
    Lookup,
    /// The table of counts and ranges.
    Intervals,
    /// Cleanups, and lookups before and after one.
    Cleanup,
}

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// All sizes are divided by `1 << scale`.
    pub scale: u32,
    /// The most batches of each size in the insertion table; `None` for all.
    pub most_batches: Option<u32>,
    /// The experiments to run; if empty, all.
    pub only: &'a [Experiment],
}

/// Runs the experiments.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(options: &Options<'_>) -> Result<Run, Error> {
    let scaled = Scaled::by(options.scale);
    let mut session = Session::open(options.device, 1)?;
    // The pairs and the dictionary at 8 bytes per element, the same again for a merge and for the sort of a batch, and
    // the contents.
    session.expect_room(scaled.size(27), 64)?;
    // The warm-up run includes what a dictionary builds for its first query.
    (session.warm_ups, session.runs) = (1, if session.is_gpu() { 3 } else { 1 });
    session.tell("scale", format!("sizes of the paper divided by 2^{}", scaled.shift));
    if let Some(most) = options.most_batches {
        session.tell("insertion", format!("only the first {most} batches of each size"));
    }
    let asked = |experiment: Experiment| options.only.is_empty() || options.only.contains(&experiment);
    let steps = [
        (Experiment::Insertion, 2 * insertion::steps()),
        (Experiment::Build, builds::STEPS),
        (Experiment::Lookup, queries::lookup_steps()),
        (Experiment::Intervals, queries::interval_steps()),
        (Experiment::Cleanup, cleanup::STEPS),
    ];
    session.expect_steps(steps.iter().filter(|(experiment, _)| asked(*experiment)).map(|(_, steps)| steps).sum());
    let outcome = experiments(&session, scaled, options.most_batches, asked);
    Ok(Run { recording: session.finish(), outcome })
}

fn experiments(
    session: &Session,
    scaled: Scaled,
    most_batches: Option<u32>,
    asked: impl Fn(Experiment) -> bool,
) -> Result<(), Error> {
    let most = most_batches.map_or(usize::MAX, |most| most as usize);
    if asked(Experiment::Insertion) || asked(Experiment::Build) {
        let data = insertion::Data::new(session, scaled)?;
        if asked(Experiment::Insertion) {
            let lsm = insertion::table::<gpu_lsm::GpuLsm<u32, u32>>(session, scaled, &data, most)?;
            let array = insertion::table::<gpu_sorted_array::GpuSortedArray<u32, u32>>(session, scaled, &data, most)?;
            summarise(session, "insertion: LSM / sorted array", lsm / array);
        }
        if asked(Experiment::Build) {
            builds::measure(session, &data)?;
        }
    }
    if asked(Experiment::Lookup) {
        queries::lookups(session, scaled)?;
    }
    if asked(Experiment::Intervals) {
        queries::intervals(session, scaled)?;
    }
    if asked(Experiment::Cleanup) {
        cleanup::measure(session, scaled)?;
    }
    Ok(())
}

fn summarise(session: &Session, row: &str, ratio: f64) {
    let record = Record::new(SUMMARY, "", row, "all b", 0).value(ratio, "x");
    session.keep(Published::load().beside(record, "all b"));
}

/// Records the harmonic mean of the means over all batch sizes, and returns it.
fn keep_overall(session: &Session, section: &str, subject: &str, row: &str, n: usize, means: &[f64]) -> f64 {
    let mean = harmonic_mean(means);
    let record = Record::new(section, subject, row, "all b", n).value(mean, crate::record::RATE);
    session.keep(Published::load().beside(record, "all b"));
    mean
}
