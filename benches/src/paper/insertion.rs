//! The insertion table and the two figures: batches of each size, each timed, until all elements are there.

use super::published::Published;
use super::{EFFECTIVE_RATE, INSERTION, INSERTION_TIME, Scaled, keep_overall};
use crate::Error;
use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::measure::{harmonic_mean, million_per_second};
use crate::oracle::Oracle;
use crate::record::{RATE, Record};
use crate::session::Session;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Batch sizes of the table, as powers of two.
const BATCHES: RangeInclusive<u32> = 15..=27;
/// The batch size of the first figure.
const TIME_BATCH: u32 = 19;
/// Batch sizes of the second figure.
const RATE_BATCHES: [u32; 5] = [15, 17, 19, 21, 23];
/// Points of a line of the second figure.
const POINTS: usize = 64;

/// How many steps [`table`] counts.
#[must_use]
pub fn steps() -> usize {
    BATCHES.count()
}

/// What is inserted, and what must be there then.
pub struct Data {
    /// The pairs.
    pub pairs: Pairs<u32, u32>,
    /// What must be there.
    pub oracle: Oracle<u32, u32>,
}

impl Data {
    /// The elements of the paper's table.
    ///
    /// # Errors
    /// What the device gives.
    pub fn new(session: &Session, scaled: Scaled) -> Result<Self, Error> {
        let pairs = Pairs::<u32, u32>::new(&session.stream, Distribution::Uniform.keys(scaled.size(27)), 0)?;
        let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
        Ok(Self { pairs, oracle })
    }
}

/// Measures all batch sizes and gives the harmonic mean of their means.
///
/// # Errors
/// What the dictionary gives; a wrong result; [`Error::Interrupted`].
pub fn table<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    scaled: Scaled,
    data: &Data,
) -> Result<f64, Error> {
    let (n, published) = (data.pairs.len(), Published::load());
    let mut means = Vec::new();
    for log in BATCHES.rev() {
        session.step(format!("{}, insertion, {}", C::NAME, scaled.batch(log)))?;
        let batch = scaled.size(log);
        let mut runs = Vec::new();
        // On a GPU the first one fills the memory pool.
        let warm_ups = usize::from(session.is_gpu());
        for run in 0..warm_ups + session.runs {
            let is_last = run + 1 == warm_ups + session.runs;
            let times = sequence::<C>(session, data, batch, is_last)?;
            if run >= warm_ups {
                runs.push(times);
            }
        }
        // For each number of batches that are there the middle one of its times.
        let times: Vec<Duration> = (0..n / batch)
            .map(|index| {
                let mut times: Vec<Duration> = runs.iter().map(|run| run[index]).collect();
                times.sort_unstable();
                times[times.len() / 2]
            })
            .collect();
        let rates = |times: &[Duration]| -> Vec<f64> {
            times.iter().map(|time| million_per_second(batch, (*time).max(Duration::from_nanos(1)))).collect()
        };
        let all = rates(&times);
        let mean = harmonic_mean(&all);
        let of_runs: Vec<f64> = runs.iter().map(|run| harmonic_mean(&rates(run))).collect();
        let keep = |statistic: &str, value: f64, of_runs: &[f64]| {
            let row = format!("insertion {statistic}");
            let record = Record::new(INSERTION, C::NAME, row, scaled.batch(log), n).value(value, RATE).spread(of_runs);
            session.keep(published.beside(Record { work: batch as u64, ..record }, &format!("b = 2^{log}")));
        };
        keep("min", all.iter().copied().fold(f64::MAX, f64::min), &[]);
        keep("max", all.iter().copied().fold(0.0, f64::max), &[]);
        keep("mean", mean, &of_runs);
        means.push(mean);
        if log == TIME_BATCH {
            for (index, time) in times.iter().enumerate() {
                let parameter = format!("{}, r = {index}", scaled.batch(log));
                let record = Record::new(INSERTION_TIME, C::NAME, "insertion of a batch", parameter, index * batch);
                session.keep(record.value(time.as_secs_f64() * 1e3, "ms"));
            }
        }
        if RATE_BATCHES.contains(&log) {
            keep_effective_rate::<C>(session, &scaled.batch(log), batch, &times);
        }
    }
    Ok(keep_overall(session, INSERTION, C::NAME, "insertion mean", n, &means))
}

/// The elements that are there divided by the time that all of them took, at some of the sizes.
fn keep_effective_rate<C: Contender>(session: &Session, parameter: &str, batch: usize, times: &[Duration]) {
    let mut sum = Duration::from_nanos(1);
    for (index, time) in times.iter().enumerate() {
        sum += *time;
        let is_point = (index + 1) * POINTS / times.len() > index * POINTS / times.len();
        if is_point {
            let resident = (index + 1) * batch;
            let record = Record::new(EFFECTIVE_RATE, C::NAME, "effective insertion rate", parameter, resident);
            session.keep(record.value(million_per_second(resident, sum), RATE));
        }
    }
}

/// Inserts everything, a batch at a time, and gives the time of each. The result is checked if `check` says so.
fn sequence<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    data: &Data,
    batch: usize,
    check: bool,
) -> Result<Vec<Duration>, Error> {
    let stream = &session.stream;
    let mut contender = C::empty(stream, batch)?;
    let mut events = vec![stream.record()?];
    for slice in data.pairs.batches(data.pairs.len(), batch) {
        Session::go_on()?;
        contender.insert(stream, slice?)?;
        events.push(stream.record()?);
    }
    let times: Result<Vec<Duration>, gpu_primitives::Error> =
        events.windows(2).map(|pair| pair[1].elapsed(&pair[0])).collect();
    if check {
        data.oracle.check("insertion", &contender.contents(stream)?)?;
    }
    Ok(times?)
}
