//! The insertion table and the two figures: for each batch size, batches are inserted and timed until all elements are
//! inserted.

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

/// The batch sizes of the table, as powers of two.
const BATCHES: RangeInclusive<u32> = 15..=27;
/// The batch size of the first figure.
const TIME_BATCH: u32 = 19;
/// The batch sizes of the second figure.
const RATE_BATCHES: [u32; 5] = [15, 17, 19, 21, 23];
/// The number of points per line of the second figure.
const POINTS: usize = 64;

/// The number of steps that [`table`] counts.
#[must_use]
pub fn steps() -> usize {
    BATCHES.count()
}

/// The pairs to insert, and the expected contents.
pub struct Data {
    /// The pairs.
    pub pairs: Pairs<u32, u32>,
    /// The expected contents.
    pub oracle: Oracle<u32, u32>,
}

impl Data {
    /// Creates the elements of the paper's table.
    ///
    /// # Errors
    /// Any device error.
    pub fn new(session: &Session, scaled: Scaled) -> Result<Self, Error> {
        let pairs = Pairs::<u32, u32>::new(&session.stream, Distribution::Uniform.keys(scaled.size(27)), 0)?;
        let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
        Ok(Self { pairs, oracle })
    }
}

/// Measures all batch sizes, each with at most `most` batches. Returns the harmonic mean of their means.
///
/// # Errors
/// The errors of the dictionary; [`Error::WrongResult`]; [`Error::Interrupted`].
pub fn table<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    scaled: Scaled,
    data: &Data,
    most: usize,
) -> Result<f64, Error> {
    let published = Published::load();
    let mut means = Vec::new();
    for log in BATCHES.rev() {
        session.step(format!("{}, insertion, {}", C::NAME, scaled.batch(log)))?;
        let batch = scaled.size(log);
        let n = data.pairs.len().min(batch.saturating_mul(most));
        let mut runs = Vec::new();
        // On a GPU, the first run fills the memory pool.
        let warm_ups = usize::from(session.is_gpu());
        for run in 0..warm_ups + session.runs {
            let is_last = run + 1 == warm_ups + session.runs;
            let times = sequence::<C>(session, data, n, batch, is_last)?;
            if run >= warm_ups {
                runs.push(times);
            }
        }
        // The median time for each number of resident batches.
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
    Ok(keep_overall(session, INSERTION, C::NAME, "insertion mean", data.pairs.len(), &means))
}

/// Records the effective rate at some of the sizes: the resident elements divided by the time of all insertions so far.
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

/// Inserts the first `n` pairs batch by batch. Returns the time of each batch. Checks the result if `check` is set.
fn sequence<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    data: &Data,
    n: usize,
    batch: usize,
    check: bool,
) -> Result<Vec<Duration>, Error> {
    let stream = &session.stream;
    let mut contender = C::empty(stream, batch)?;
    let mut events = vec![stream.record()?];
    for slice in data.pairs.batches(n, batch) {
        Session::go_on()?;
        contender.insert(stream, slice?)?;
        events.push(stream.record()?);
    }
    let times: Result<Vec<Duration>, gpu_primitives::Error> =
        events.windows(2).map(|pair| pair[1].elapsed(&pair[0])).collect();
    if check {
        let contents = contender.contents(stream)?;
        if n == data.pairs.len() {
            data.oracle.check("insertion", &contents)?;
        } else {
            Oracle::new(&data.pairs.keys.host[..n], &data.pairs.values.host[..n]).check("insertion", &contents)?;
        }
    }
    Ok(times?)
}
