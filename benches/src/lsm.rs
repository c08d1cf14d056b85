//! The measurements of the LSM: updates, queries and cleanup, with 32-bit keys and values. Every timed result is
//! checked.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::oracle::{Intervals, Lookups, Oracle, Successors};
use crate::paper::{Scaled, insertion};
use crate::record::{Record, power};
use crate::rows::{self, At};
use crate::session::{Session, logarithms};
use crate::{Error, Run, beyond, buffer, upserts};
use gpu_lsm::GpuLsm;

/// The section of the records.
pub const SECTION: &str = "lsm";

/// The number of timed runs per row, on a GPU and on a CPU.
const RUNS: (usize, usize) = (9, 3);

/// The measured dictionary.
pub(crate) type Lsm = GpuLsm<u32, u32>;

/// What to measure.
pub struct Options<'a> {
    /// The name of the device; `None` for the default device.
    pub device: Option<&'a str>,
    /// The number of elements of most rows, a power of two; `None` for 2^24 on a GPU and 2^16 on a CPU.
    pub size: Option<usize>,
    /// Whether to measure the insertion table, which takes longer.
    pub insertions: bool,
    /// Whether to measure a dictionary with most of its levels in host memory, with 128 times as many elements on a GPU.
    pub beyond: bool,
}

/// Measures every row.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(options: &Options<'_>) -> Result<Run, Error> {
    let mut session = Session::open(options.device, RUNS.0)?;
    if !session.is_gpu() {
        session.runs = RUNS.1;
    }
    let size = options.size.unwrap_or(if session.is_gpu() { 1 << 24 } else { 1 << 16 });
    let log_size = logarithms(&[size], 12..=26)?[0];
    let large = if session.is_gpu() { 8 } else { 1 };
    session.expect_room((1 << log_size) * large, 64)?;
    let further = usize::from(options.insertions) * insertion::steps() + usize::from(options.beyond) * beyond::STEPS;
    session.expect_steps(14 + buffer::STEPS + further);
    let outcome = measure(&session, log_size, large, options.insertions).and_then(|()| {
        let batch = if session.is_gpu() { 1 << log_size } else { 1 << (log_size - 7) };
        if options.beyond { beyond::measure(&session, batch, 1 << log_size) } else { Ok(()) }
    });
    Ok(Run { recording: session.finish(), outcome })
}

/// Measures every row. The bulk build has `large` times as many elements, and the cleanup half of that.
fn measure(session: &Session, log_size: u32, large: usize, insertions: bool) -> Result<(), Error> {
    let stream = &session.stream;
    let n = 1usize << log_size;
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    // With these batch sizes, all elements are 256, 64 and 16 batches.
    let batches = [log_size - 8, log_size - 6, log_size - 4];
    for log_batch in batches {
        session.step(format!("insertion of batches of 2^{log_batch}"))?;
        let parameter = format!("b = 2^{log_batch}");
        rows::insert_all::<Lsm>(
            At { session, section: SECTION, parameter: &parameter, n },
            &pairs,
            n,
            1 << log_batch,
            &oracle,
        )?;
    }

    buffer::measure(session, &pairs, &oracle)?;

    session.step("lookups in one level")?;
    let one_level = Lsm::build(stream, pairs.slice(0..n)?, n)?;
    lookups(session, &one_level, n, n, "one level")?;
    successors(session, &one_level, &oracle, n, "one level")?;
    drop(one_level);
    for log_batch in [batches[0], batches[2]] {
        let batch = 1usize << log_batch;
        let resident = n - batch;
        session.step(format!("lookups with batches of 2^{log_batch}"))?;
        let mut lsm = Lsm::empty(stream, batch)?;
        for slice in pairs.batches(resident, batch) {
            Contender::insert(&mut lsm, stream, slice?)?;
        }
        let parameter = format!("full, b = 2^{log_batch}");
        lookups(session, &lsm, resident, n, &parameter)?;
        let oracle = Oracle::new(&pairs.keys.host[..resident], &pairs.values.host[..resident]);
        successors(session, &lsm, &oracle, n, &parameter)?;
        if log_batch == batches[2] {
            for expected in [8, 1024] {
                session.step(format!("intervals of {expected} keys"))?;
                let queries = (resident / expected.min(64)).clamp(1, 1 << 20);
                let intervals = Intervals::of_width(stream, &oracle, expected, queries)?;
                let parameter = format!("L = {expected}, b = 2^{log_batch}");
                let at = At { session, section: SECTION, parameter: &parameter, n: resident };
                rows::intervals(at, &lsm, &intervals, &oracle)?;
            }
        }
    }
    upserts::upserts(session, &pairs, 1 << batches[2], &oracle)?;
    upserts::large_values(session, &pairs, 1 << batches[2])?;
    upserts::small_calls(session, &pairs, 1 << batches[0])?;
    memory(session, &pairs, 1 << batches[0])?;
    drop((pairs, oracle));

    session.step("bulk build")?;
    bulk_build::<Lsm>(session, SECTION, n * large)?;
    for stale in [10, 50] {
        session.step(format!("cleanup of {stale} % stale elements"))?;
        cleanup(session, SECTION, (n * large).div_ceil(2), 64, stale)?;
    }
    if insertions {
        let scaled = Scaled::to(n * large);
        insertion::table::<Lsm>(session, scaled, &insertion::Data::new(session, scaled)?, usize::MAX)?;
    }
    Ok(())
}

/// Measures lookups of `queries` keys: of the first `resident` keys, and of absent keys. The first lookup builds an
/// index.
fn lookups(session: &Session, lsm: &Lsm, resident: usize, queries: usize, parameter: &str) -> Result<(), Error> {
    let stream = &session.stream;
    let at = At { session, section: SECTION, parameter, n: resident };
    let present = Lookups::present(stream, resident, queries)?;
    let (first, times) =
        session.time_fresh(Lsm::CLOCK, 0, 1, || Ok(()), |()| Contender::lookup(lsm, stream, present.keys.all()))?;
    at.keep::<Lsm>("first lookup, with the index", queries, &times);
    present.check("first lookup", &first(stream)?)?;
    rows::lookup(at, "lookup, all present", lsm, &present)?;
    rows::lookup(at, "lookup, all absent", lsm, &Lookups::absent(stream, queries)?)?;
    Ok(())
}

/// Measures the search for the next larger key, `queries` times.
fn successors(
    session: &Session,
    lsm: &Lsm,
    oracle: &Oracle<u32, u32>,
    queries: usize,
    parameter: &str,
) -> Result<(), Error> {
    let at = At { session, section: SECTION, parameter, n: oracle.pairs.len() };
    rows::successors(at, lsm, &Successors::new(&session.stream, oracle, queries)?)
}

/// Measures the bulk build of `n` different keys in random order.
///
/// # Errors
/// The errors of the dictionary; [`Error::WrongResult`].
pub fn bulk_build<C: Contender<Key = u32, Value = u32>>(
    session: &Session,
    section: &str,
    n: usize,
) -> Result<(), Error> {
    let pairs = Pairs::<u32, u32>::new(&session.stream, Distribution::Uniform.keys(n), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    let at = At { session, section, parameter: "", n };
    rows::build::<C>(at, pairs.slice(0..n)?, n, &oracle)?;
    Ok(())
}

/// A dictionary of all but one of `batches` batches, where `batches` batches are `n` elements. A given percentage of
/// the elements is stale: the last insertions repeat the first keys.
pub(crate) struct Stale {
    /// The inserted pairs.
    pub pairs: Pairs<u32, u32>,
    /// The number of elements per batch.
    pub batch: usize,
    /// The expected contents.
    pub oracle: Oracle<u32, u32>,
}

impl Stale {
    pub(crate) fn new(session: &Session, n: usize, batches: usize, percent: usize) -> Result<Self, Error> {
        let batch = n / batches;
        let resident = (batches - 1) * batch;
        let fresh = resident * (100 - percent) / 100;
        let mut keys: Vec<u32> = Distribution::Uniform.keys(fresh);
        keys.extend_from_within(..resident - fresh);
        let pairs = Pairs::new(&session.stream, keys, 0)?;
        let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
        Ok(Self { pairs, batch, oracle })
    }

    pub(crate) fn lsm(&self, session: &Session) -> Result<Lsm, Error> {
        let mut lsm = Lsm::empty(&session.stream, self.batch)?;
        for slice in self.pairs.batches(self.pairs.len(), self.batch) {
            Contender::insert(&mut lsm, &session.stream, slice?)?;
        }
        Ok(lsm)
    }
}

/// Measures a cleanup of `batches - 1` batches, where `batches` batches are `n` elements, of which `percent` percent
/// are stale.
///
/// # Errors
/// The errors of the dictionary; [`Error::WrongResult`].
pub fn cleanup(session: &Session, section: &str, n: usize, batches: usize, percent: usize) -> Result<(), Error> {
    let stale = Stale::new(session, n, batches, percent)?;
    let resident = stale.pairs.len();
    let parameter = format!("b = {}, r = {}, {percent} % stale", power(stale.batch), batches - 1);
    let at = At { session, section, parameter: &parameter, n: resident };
    rows::cleanup::<Lsm>(at, resident, &stale.oracle, || stale.lsm(session))
}

fn memory(session: &Session, pairs: &Pairs<u32, u32>, batch: usize) -> Result<(), Error> {
    let (device, stream, n) = (&session.device, &session.stream, pairs.len());
    session.step("memory")?;
    stream.synchronize()?;
    let before = device.memory_used();
    device.reset_peak_memory();
    let mut lsm = Lsm::empty(stream, batch)?;
    for slice in pairs.batches(n, batch) {
        Contender::insert(&mut lsm, stream, slice?)?;
    }
    stream.synchronize()?;
    let peak = device.peak_memory() - before;
    let parameter = format!("b = {}", power(batch));
    let record = Record::new(SECTION, Lsm::NAME, "bytes per element, at most", parameter.as_str(), n);
    session.keep(record.value(peak as f64 / n as f64, "B"));
    rows::bytes(At { session, section: SECTION, parameter: &parameter, n }, "bytes per element, at rest", &lsm, n)
}
