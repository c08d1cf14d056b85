//! The tables of lookups, counts and ranges: the LSM and the sorted array with different numbers of batches and the
//! same queries.

use super::published::Published;
use super::{INTERVALS, LOOKUP, Scaled, keep_overall, summarise};
use crate::Error;
use crate::both::Pairs;
use crate::contender::{Contender, OrderedContender};
use crate::data::{Distribution, random_below};
use crate::measure::{Times, harmonic_mean, million_per_second};
use crate::oracle::{Intervals, Lookups, Oracle};
use crate::record::{RATE, Record};
use crate::session::Session;
use gpu_cuckoo::GpuCuckoo;
use gpu_lsm::GpuLsm;
use gpu_sorted_array::GpuSortedArray;
use std::ops::RangeInclusive;

type Lsm = GpuLsm<u32, u32>;
type Array = GpuSortedArray<u32, u32>;
type Cuckoo = GpuCuckoo<u32, u32>;

/// The batch sizes of the lookups, as powers of two.
const LOOKUP_BATCHES: RangeInclusive<u32> = 16..=24;
/// The batch sizes of the counts and ranges.
const INTERVAL_BATCHES: RangeInclusive<u32> = 16..=20;
/// How many numbers of batches are tried at most with one batch size, in addition to the last two: for lookups, and for
/// intervals.
const LOOKUP_STATES: usize = 32;
const INTERVAL_STATES: usize = 16;
/// The number of keys in an interval, and the most intervals per call, as a power of two before scaling: the answers
/// must fit into memory.
const LENGTHS: [(usize, u32); 2] = [(8, 20), (1024, 15)];

/// The number of steps that [`lookups`] counts.
pub fn lookup_steps() -> usize {
    LOOKUP_BATCHES.count() + 1
}

/// The number of steps that [`intervals`] counts.
pub fn interval_steps() -> usize {
    INTERVAL_BATCHES.count()
}

/// Returns the numbers of batches to try, from 1 to `all`: one in each of `most` equal parts, and the last two, which
/// have the most levels and the fewest. The others are chosen at random, because round numbers have few levels.
fn states(all: usize, most: usize) -> Vec<usize> {
    let mut states: Vec<usize> = if all <= most {
        (1..=all).collect()
    } else {
        let part = |index: usize| index * all / most;
        let chosen = random_below(13, 1 << 32).take(most).enumerate();
        chosen.map(|(index, random)| part(index) + 1 + random % (part(index + 1) - part(index))).collect()
    };
    states.extend([all.max(2) - 1, all]);
    states.sort_unstable();
    states.dedup();
    states
}

/// The two dictionaries while they grow.
struct Growing<'a> {
    session: &'a Session,
    pairs: &'a Pairs<u32, u32>,
    batch: usize,
    lsm: Lsm,
    array: Array,
    resident: usize,
}

impl<'a> Growing<'a> {
    fn new(session: &'a Session, pairs: &'a Pairs<u32, u32>, batch: usize) -> Result<Self, Error> {
        let (lsm, array) = (Lsm::empty(&session.stream, batch)?, Array::empty(&session.stream, batch)?);
        Ok(Self { session, pairs, batch, lsm, array, resident: 0 })
    }

    /// Inserts up to this number of batches.
    fn to(&mut self, batches: usize) -> Result<(), Error> {
        let (stream, end) = (&self.session.stream, batches * self.batch);
        Contender::insert(&mut self.array, stream, self.pairs.slice(self.resident..end)?)?;
        for start in (self.resident..end).step_by(self.batch) {
            Contender::insert(&mut self.lsm, stream, self.pairs.slice(start..start + self.batch)?)?;
        }
        self.resident = end;
        Ok(())
    }
}

/// The rates of one row, one for each number of batches.
struct Rates {
    subject: &'static str,
    row: String,
    rates: Vec<f64>,
    /// The rates of the slowest and the fastest runs.
    slow: Vec<f64>,
    fast: Vec<f64>,
}

impl Rates {
    fn new<C: Contender>(row: impl Into<String>) -> Self {
        Self { subject: C::NAME, row: row.into(), rates: Vec::new(), slow: Vec::new(), fast: Vec::new() }
    }

    fn add(&mut self, queries: usize, times: &Times) {
        self.rates.push(million_per_second(queries, times.median()));
        self.slow.push(million_per_second(queries, times.longest()));
        self.fast.push(million_per_second(queries, times.shortest()));
    }

    /// Records the minimum, the maximum and the mean. Returns the mean.
    fn keep(&self, session: &Session, section: &str, scaled: Scaled, log_batch: u32) -> f64 {
        let (published, n) = (Published::load(), scaled.size(24));
        let keep = |statistic: &str, value: f64, spread: &[f64]| {
            let row = format!("{} {statistic}", self.row);
            let record = Record::new(section, self.subject, row, scaled.batch(log_batch), n).value(value, RATE);
            let record = Record { runs: session.runs as u32, ..record.spread(spread) };
            session.keep(published.beside(record, &format!("b = 2^{log_batch}")));
        };
        let mean = harmonic_mean(&self.rates);
        keep("min", self.rates.iter().copied().fold(f64::MAX, f64::min), &[]);
        keep("max", self.rates.iter().copied().fold(0.0, f64::max), &[]);
        keep("mean", mean, &[harmonic_mean(&self.slow), harmonic_mean(&self.fast)]);
        mean
    }
}

/// Times lookups and checks the answers.
fn lookup<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    contender: &C,
    lookups: &Lookups<u32, u32>,
    rates: &mut Rates,
) -> Result<(), Error> {
    let stream = &session.stream;
    let (answer, times) = session.time(|| contender.lookup(stream, lookups.keys.all()))?;
    rates.add(lookups.keys.host.len(), &times);
    lookups.check(&rates.row, &answer(stream)?)
}

/// Measures the table of the lookups: as many lookups as elements, of absent keys and of present keys.
pub fn lookups(session: &Session, scaled: Scaled) -> Result<(), Error> {
    let (stream, n) = (&session.stream, scaled.size(24));
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    let mut means = [const { Vec::new() }; 4];
    for log in LOOKUP_BATCHES.rev() {
        session.step(format!("lookups, {}", scaled.batch(log)))?;
        let batch = scaled.size(log);
        let mut growing = Growing::new(session, &pairs, batch)?;
        let mut rates = [
            Rates::new::<Lsm>("lookup none"),
            Rates::new::<Array>("lookup none"),
            Rates::new::<Lsm>("lookup all"),
            Rates::new::<Array>("lookup all"),
        ];
        for state in states(n / batch, LOOKUP_STATES) {
            growing.to(state)?;
            let resident = growing.resident;
            let absent = Lookups::absent(stream, resident)?;
            lookup(session, &growing.lsm, &absent, &mut rates[0])?;
            lookup(session, &growing.array, &absent, &mut rates[1])?;
            drop(absent);
            let present = Lookups::present(stream, resident, resident)?;
            lookup(session, &growing.lsm, &present, &mut rates[2])?;
            lookup(session, &growing.array, &present, &mut rates[3])?;
        }
        for (rates, means) in rates.iter().zip(&mut means) {
            means.push(rates.keep(session, LOOKUP, scaled, log));
        }
    }
    let names = [(Lsm::NAME, "none"), (Array::NAME, "none"), (Lsm::NAME, "all"), (Array::NAME, "all")];
    let overall: Vec<f64> = names
        .iter()
        .zip(&means)
        .map(|((subject, which), means)| {
            keep_overall(session, LOOKUP, subject, &format!("lookup {which} mean"), n, means)
        })
        .collect();
    summarise(session, "lookup none: sorted array / LSM", overall[1] / overall[0]);
    summarise(session, "lookup all: sorted array / LSM", overall[3] / overall[2]);

    session.step("lookups in the cuckoo table")?;
    let cuckoo = Cuckoo::build(stream, pairs.slice(0..n)?, n)?;
    let queries = [("none", Lookups::absent(stream, n)?), ("all", Lookups::present(stream, n, n)?)];
    for (which, lookups) in &queries {
        let mut rates = Rates::new::<Cuckoo>(format!("lookup {which}"));
        lookup(session, &cuckoo, lookups, &mut rates)?;
        keep_overall(session, LOOKUP, Cuckoo::NAME, &format!("lookup {which} mean"), n, &rates.rates);
    }
    Ok(())
}

/// Times counts and ranges and checks the answers.
fn count_and_range<C: OrderedContender<Key = u32, Value = u32>>(
    session: &Session,
    contender: &C,
    intervals: &Intervals<u32>,
    oracle: &Oracle<u32, u32>,
    [count, range]: &mut [Rates; 2],
) -> Result<(), Error> {
    let stream = &session.stream;
    let (low, high) = (intervals.low.all(), intervals.high.all());
    let (answer, times) = session.time(|| contender.count(stream, low, high))?;
    count.add(low.host.len(), &times);
    intervals.check_counts(&count.row, &answer(stream)?)?;
    let (answer, times) = session.time(|| contender.range(stream, low, high))?;
    range.add(low.host.len(), &times);
    intervals.check_ranges(&range.row, oracle, &answer(stream)?)
}

/// Measures the table of the counts and ranges.
pub fn intervals(session: &Session, scaled: Scaled) -> Result<(), Error> {
    let (stream, n) = (&session.stream, scaled.size(24));
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    // For each length: counts and ranges of the LSM and of the array.
    let both = |len: usize| {
        let rows = || [format!("count L = {len}"), format!("range L = {len}")];
        [rows().map(Rates::new::<Lsm>), rows().map(Rates::new::<Array>)]
    };
    let mut means: Vec<(&'static str, String, Vec<f64>)> = LENGTHS
        .iter()
        .flat_map(|&(len, _)| both(len))
        .flatten()
        .map(|rates| (rates.subject, rates.row, Vec::new()))
        .collect();
    for log in INTERVAL_BATCHES.rev() {
        session.step(format!("counts and ranges, {}", scaled.batch(log)))?;
        let batch = scaled.size(log);
        let mut growing = Growing::new(session, &pairs, batch)?;
        let mut oracle = Oracle::<u32, u32>::new(&[], &[]);
        let mut rates = LENGTHS.map(|(len, _)| both(len));
        for state in states(n / batch, INTERVAL_STATES) {
            let new = growing.resident..state * batch;
            oracle.insert(&pairs.keys.host[new.clone()], &pairs.values.host[new]);
            growing.to(state)?;
            for ((len, log_most), [lsm, array]) in LENGTHS.into_iter().zip(&mut rates) {
                let intervals = Intervals::of_keys(stream, &oracle, len, growing.resident.min(scaled.size(log_most)))?;
                count_and_range(session, &growing.lsm, &intervals, &oracle, lsm)?;
                count_and_range(session, &growing.array, &intervals, &oracle, array)?;
            }
        }
        for (rates, means) in rates.iter().flatten().flatten().zip(&mut means) {
            means.2.push(rates.keep(session, INTERVALS, scaled, log));
        }
    }
    for (subject, row, means) in &means {
        keep_overall(session, INTERVALS, subject, &format!("{row} mean"), n, means);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_all_or_some_of_each_part() {
        assert_eq!(states(1, 32), [1]);
        assert_eq!(states(4, 32), [1, 2, 3, 4]);
        let some = states(256, 32);
        assert!((32..=34).contains(&some.len()) && some.ends_with(&[255, 256]), "{some:?}");
        assert!((0..32).all(|part| some.iter().any(|state| (state - 1) / 8 == part)), "{some:?}");
        // Not only round numbers.
        assert!(some.iter().filter(|state| **state % 2 == 1).count() > 8, "{some:?}");
    }
}
