//! The measurements of an LSM that is larger than its budget of device memory: its largest levels are in page-locked
//! memory of the host.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::lsm::{Lsm, SECTION};
use crate::measure::{Clock, Times};
use crate::oracle::Lookups;
use crate::record::{Record, power};
use crate::rows::{self, At};
use crate::session::Session;
use crate::{Error, check};
use gpu_lsm::Options;

/// The dictionary has so many times as many bytes as its budget.
const TIMES: usize = 8;
/// The number of batches. All levels are full then, and those of the oldest 112 batches do not fit into the budget.
const BATCHES: usize = 127;

/// The number of steps that [`measure`] counts.
pub(crate) const STEPS: usize = 3;

/// Measures insertions until the dictionary has eight times the bytes of its budget, in batches of `batch` elements; then lookups of
/// `queries` keys, more insertions, and a cleanup.
///
/// The contents are too many for an oracle. They are checked by the number of keys and by the answers of all timed lookups.
pub(crate) fn measure(session: &Session, batch: usize, queries: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let n = BATCHES * batch;
    let budget = (BATCHES + 1) * batch / TIMES * (size_of::<u32>() + size_of::<u32>());
    let parameter = format!("b = {}, r = {BATCHES}, budget of 1/{TIMES}", power(batch));
    let at = At { session, section: SECTION, parameter: &parameter, n };
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;

    session.step("growth beyond the budget")?;
    let mut lsm = Lsm::new(stream, Options::new().batch_size(batch).device_memory(budget))?;
    let times = once(session, || insert(&mut lsm, session, &pairs, n, batch))?;
    at.keep::<Lsm>("insert beyond the budget", n, &times);
    expect_len(&lsm, session, n)?;
    let stats = lsm.stats(stream)?;
    for (row, bytes) in [("bytes on the host", stats.host_bytes), ("bytes on the device", stats.bytes)] {
        let record = Record::new(SECTION, Lsm::NAME, row, parameter.as_str(), n);
        session.keep(record.value(bytes as f64 / n as f64, "B"));
    }

    session.step("lookups beyond the budget")?;
    let present = Lookups::present(stream, n, queries)?;
    let absent = Lookups::absent(stream, queries)?;
    rows::lookup(at, "lookup beyond the budget, all present", &lsm, &present)?;
    rows::lookup(at, "lookup beyond the budget, all absent", &lsm, &absent)?;

    // Pages of the host are locked already for most of the levels that these merges make.
    session.step("updates beyond the budget")?;
    let more = BATCHES.div_ceil(2) * batch;
    let times = once(session, || insert(&mut lsm, session, &pairs, more, batch))?;
    at.keep::<Lsm>("insert again beyond the budget", more, &times);
    let times = once(session, || Ok(lsm.cleanup(stream)?))?;
    at.keep::<Lsm>("cleanup beyond the budget", n + more, &times);
    expect_len(&lsm, session, n)?;
    rows::lookup(at, "lookup beyond the budget, one level, all present", &lsm, &present)?;
    Ok(())
}

/// Times an operation that cannot be repeated.
fn once(session: &Session, mut operation: impl FnMut() -> Result<(), Error>) -> Result<Times, Error> {
    Ok(session.time_fresh(Clock::Device, 0, 1, || Ok(()), |()| operation())?.1)
}

/// Inserts the first `len` pairs, one batch per call.
fn insert(lsm: &mut Lsm, session: &Session, pairs: &Pairs<u32, u32>, len: usize, batch: usize) -> Result<(), Error> {
    for slice in pairs.batches(len, batch) {
        Contender::insert(lsm, &session.stream, slice?)?;
    }
    Ok(())
}

/// Checks the number of keys.
fn expect_len(lsm: &Lsm, session: &Session, expected: usize) -> Result<(), Error> {
    check::equal("number of keys", [lsm.len(&session.stream)?], [expected], |len, expected| len == expected)
}
