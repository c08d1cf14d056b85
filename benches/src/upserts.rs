//! The measurements of upserts into the LSM, and of values that it holds by index.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::lsm::SECTION;
use crate::measure::Clock;
use crate::oracle::{Lookups, Oracle};
use crate::record::{Record, power};
use crate::rows::{self, At};
use crate::session::Session;
use crate::{Error, check};
use gpu_dictionary::LargeValues;
use gpu_lsm::{GpuLsm, Options};
use gpu_primitives::scan::Sum;

/// Checks a result.
fn expect_equal<T: PartialEq>(what: &str, found: &[T], expected: &[T]) -> Result<(), Error> {
    check::equal(what, found.iter(), expected.iter(), |found, expected| found == expected)
}

/// Measures upserts of all pairs in batches, and lookups while the levels have values that are not combined.
pub(crate) fn upserts(
    session: &Session,
    pairs: &Pairs<u32, u32>,
    batch: usize,
    oracle: &Oracle<u32, u32>,
) -> Result<(), Error> {
    let (stream, n) = (&session.stream, pairs.len());
    let upsert = |len: usize| {
        let mut lsm = GpuLsm::<u32, u32>::new(stream, Options::new().batch_size(batch).buffer(0))?;
        for slice in pairs.batches(len, batch) {
            let slice = slice?;
            lsm.upsert(stream, (slice.keys.device, slice.values.device), Sum)?;
        }
        Ok(lsm)
    };
    session.step(format!("upserts of batches of {}", power(batch)))?;
    let parameter = format!("b = {}", power(batch));
    let at = At { session, section: SECTION, parameter: &parameter, n };
    let (filled, times) = session.time(|| upsert(n))?;
    at.keep::<GpuLsm<u32, u32>>("upsert (sum), all batches", n, &times);
    oracle.check("upsert", &filled.contents(stream)?)?;
    drop(filled);

    let resident = n - batch;
    let (full, parameter) = (upsert(resident)?, format!("full of upserts, b = {}", power(batch)));
    let at = At { session, section: SECTION, parameter: &parameter, n: resident };
    rows::lookup(at, "lookup, all present", &full, &Lookups::present(stream, resident, n)?)?;
    Ok(())
}

/// A value of 24 bytes.
type Large = [u64; 3];

/// Measures insertions and lookups of values of 24 bytes.
pub(crate) fn large_values(session: &Session, pairs: &Pairs<u32, u32>, batch: usize) -> Result<(), Error> {
    let (stream, n) = (&session.stream, pairs.len());
    session.step("values of 24 bytes")?;
    let host: Vec<Large> = (0..n as u64).map(|i| [i, i * i, !i]).collect();
    let values = stream.upload(&host)?;
    let fill = || {
        let options = Options::new().batch_size(batch).buffer(0);
        let mut large = LargeValues::<GpuLsm<u32, u32>, Large>::new(stream, options)?;
        for start in (0..n).step_by(batch) {
            let range = start..(start + batch).min(n);
            let keys = pairs.slice(range.clone())?.keys.device;
            large.insert(stream, (keys, values.slice(range)?))?;
        }
        Ok(large)
    };
    let keep = |row: &str, times| {
        let record = Record::new(SECTION, "LSM, values of 24 bytes", row, format!("b = {}", power(batch)), n);
        session.keep(record.rate(n, &times));
    };
    let (filled, times) = session.time(fill)?;
    keep("insert, all batches", times);
    let (found, times) = session.time(|| Ok(filled.lookup(stream, pairs.keys.all().device)?))?;
    keep("lookup, all present", times);
    let found = found.values.to_vec(stream)?;
    expect_equal("lookup of values of 24 bytes", &found, &host)
}

/// Measures calls of few keys, in microseconds, and snapshots.
pub(crate) fn small_calls(session: &Session, pairs: &Pairs<u32, u32>, batch: usize) -> Result<(), Error> {
    const CALLS: usize = 100;
    let (stream, n) = (&session.stream, pairs.len());
    session.step("small calls")?;
    let resident = n - batch;
    let mut lsm = GpuLsm::<u32, u32>::new(stream, Options::new().batch_size(batch).buffer(0))?;
    for slice in pairs.batches(resident, batch) {
        Contender::insert(&mut lsm, stream, slice?)?;
    }
    let parameter = format!("full, b = {}", power(batch));
    let keep = |row: String, times: crate::measure::Times, calls: usize| {
        let record = Record::new(SECTION, "LSM", row, parameter.as_str(), resident);
        session.keep(record.value(times.median().as_secs_f64() * 1e6 / calls as f64, "µs"));
    };
    for keys in [1, 32, 1024] {
        let asked = pairs.slice(0..keys)?.keys.device;
        // One after the other: the time from one to the next.
        let (found, times) = session.time(|| {
            let mut last = None;
            for _ in 0..CALLS {
                last = Some(lsm.lookup(stream, asked)?);
            }
            Ok(last)
        })?;
        keep(format!("lookup of {keys}"), times, CALLS);
        let found = found.map(|found| found.values.to_vec(stream)).transpose()?.unwrap_or_default();
        expect_equal("a small lookup", &found, &pairs.values.host[..keys])?;
    }
    // Intervals of about eight of the resident keys, which are uniform in 32 bits.
    let width = (8.0 * 2f64.powi(32) / resident as f64) as u32;
    let low: Vec<u32> = (0..1024).map(|i| (i as u32).wrapping_mul(0x9e37_79b1) & !(1 << 31)).collect();
    let high: Vec<u32> = low.iter().map(|low| low + width).collect();
    let (low, high) = (stream.upload(&low)?, stream.upload(&high)?);
    let mut counts = stream.uninit::<u64>(1024)?;
    let ((), times) = session.time(|| {
        for _ in 0..CALLS {
            lsm.count_into(stream, &low, &high, &mut counts)?;
        }
        Ok(())
    })?;
    keep("count of 1024 intervals, not waiting".to_owned(), times, CALLS);
    let (waited, times) = session.time(|| Ok(lsm.count(stream, &low, &high)?))?;
    keep("count of 1024 intervals, waiting".to_owned(), times, 1);
    expect_equal("counts", &counts.to_vec(stream)?, &waited.to_vec(stream)?)?;
    let (_, times) = session.time_fresh(Clock::Host, 3, session.runs, || Ok(()), |()| Ok(lsm.snapshot()))?;
    keep(format!("snapshot of {} levels", lsm.stats(stream)?.levels), times, 1);
    Ok(())
}
