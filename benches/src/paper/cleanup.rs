//! Cleanups, and lookups before and after one.

use super::published::Published;
use super::{CLEANUP, CLEANUP_AND_LOOKUPS, Scaled};
use crate::Error;
use crate::contender::Contender;
use crate::data::random_below_at;
use crate::lsm::{self, Stale};
use crate::measure::Clock;
use crate::oracle::Lookups;
use crate::record::Record;
use crate::session::Session;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::time::Duration;

/// The number of steps that [`measure`] counts.
pub const STEPS: usize = 5;

/// The batch sizes and numbers of batches of the cleanups, as powers of two, and the percentages of stale elements.
const CLEANUPS: [(u32, u32, usize); 4] = [(20, 6, 10), (20, 6, 50), (19, 7, 10), (19, 7, 50)];
/// The cleanup with lookups before and after it, and the number of lookups, as a power of two.
const WITH_LOOKUPS: (u32, u32, usize) = (18, 7, 10);
const LOOKUPS: u32 = 25;

/// Measures the cleanups.
pub fn measure(session: &Session, scaled: Scaled) -> Result<(), Error> {
    let published = Published::load();
    let paper = |log_batch: u32, log_batches: u32, percent: usize| {
        format!("b = 2^{log_batch}, r = {}, {percent} % stale", (1 << log_batches) - 1)
    };
    for (log_batch, log_batches, percent) in CLEANUPS {
        let parameter = paper(log_batch, log_batches, percent);
        session.step(format!("cleanup, {parameter}"))?;
        lsm::cleanup(session, CLEANUP, scaled.size(log_batch + log_batches), 1 << log_batches, percent)?;
        session.revise(|records| {
            if let Some(record) = records.pop() {
                records.push(published.beside(record, &parameter));
            }
        });
    }

    let (log_batch, log_batches, percent) = WITH_LOOKUPS;
    session.step("lookups before and after a cleanup")?;
    let stream = &session.stream;
    let stale = Stale::new(session, scaled.size(log_batch + log_batches), 1 << log_batches, percent)?;
    let pairs = &stale.oracle.pairs;
    let places = (0..scaled.size(LOOKUPS)).into_par_iter().map(|index| random_below_at(14, pairs.len(), index));
    let lookups = Lookups::new(stream, places.map(|place| (pairs[place].0, Some(pairs[place].1))))?;
    let mut lsm = stale.lsm(session)?;
    let time = |lsm: &gpu_lsm::GpuLsm<u32, u32>| -> Result<Duration, Error> {
        let (answer, times) = session.time(|| Contender::lookup(lsm, stream, lookups.keys.all()))?;
        lookups.check("lookups around a cleanup", &answer(stream)?)?;
        Ok(times.median())
    };
    let before = time(&lsm)?;
    let ((), cleanup) = Clock::Device.time(stream, || Ok::<_, Error>(lsm.cleanup(stream)?))?;
    let after = time(&lsm)?;

    let here = format!("b = 2^{}, r = {}, {percent} % stale", stale.batch.ilog2(), (1 << log_batches) - 1);
    let keep = |row: &str, value: f64, unit: &str| {
        let record = Record::new(CLEANUP_AND_LOOKUPS, "LSM", row, here.as_str(), stale.pairs.len());
        session.keep(published.beside(record.value(value, unit), &paper(log_batch, log_batches, percent)));
    };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    keep("lookups before it", milliseconds(before), "ms");
    keep("cleanup", milliseconds(cleanup), "ms");
    keep("lookups after it", milliseconds(after), "ms");
    let ratio = before.as_secs_f64() / (cleanup + after).as_secs_f64();
    keep("lookups before it / (cleanup + lookups after it)", ratio, "x");
    Ok(())
}
