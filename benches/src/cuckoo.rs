//! The measurements of the cuckoo hash table: builds, lookups and updates, with 32-bit keys and values. Every timed
//! result is checked.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::measure::Clock;
use crate::oracle::{Lookups, Oracle};
use crate::rows::{self, At};
use crate::session::Session;
use crate::{Error, Run};
use gpu_cuckoo::{GpuCuckoo, Options as TableOptions};
use gpu_primitives::operator::map;
use gpu_primitives::scan::Sum;

/// The section of the records.
pub const SECTION: &str = "cuckoo";

/// The sizes of the batches that a growing table takes, as powers of two.
const BATCHES: [u32; 3] = [16, 18, 20];

type Cuckoo = GpuCuckoo<u32, u32>;

/// Measures every row. `device` is the name of the device; `None` for the default device. `sizes` are powers
/// of two; if there are none, they suit the device.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(device: Option<&str>, sizes: &[usize]) -> Result<Run, Error> {
    let (session, log_sizes) = Session::open_for_sizes(device, sizes)?;
    session.expect_steps((2 + 1 + BATCHES.len() + 4) * log_sizes.len());
    let outcome = log_sizes.iter().try_for_each(|&log| {
        measure(&session, 1 << log)?;
        measure_updates(&session, 1 << log)
    });
    Ok(Run { recording: session.finish(), outcome })
}

fn measure(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    let (present, absent) = (Lookups::present(stream, n, n)?, Lookups::absent(stream, n)?);
    for load in [0.8, 0.95] {
        let parameter = format!("load {load}");
        session.step(&parameter)?;
        let at = At { session, section: SECTION, parameter: &parameter, n };
        let options = TableOptions::new().seed(0).load_factor(load);
        let (table, times) = session
            .time(|| Ok(Cuckoo::bulk_build(stream, (&pairs.keys.device, &pairs.values.device), options.clone())?))?;
        at.keep::<Cuckoo>("bulk build", n, &times);
        oracle.check("bulk build", &Contender::contents(&table, stream)?)?;
        rows::lookup(at, "lookup, all present", &table, &present)?;
        rows::lookup(at, "lookup, all absent", &table, &absent)?;
        rows::bytes(at, "bytes per element", &table, n)?;
    }
    Ok(())
}

fn measure_updates(session: &Session, n: usize) -> Result<(), Error> {
    let stream = &session.stream;
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    let (keys, values) = (&pairs.keys.device, &pairs.values.device);

    session.step("equal keys")?;
    let at = At { session, section: SECTION, parameter: "one key", n };
    let equal = stream.upload(&vec![7u32; n])?;
    let (table, times) =
        session.time(|| Ok(Cuckoo::bulk_build(stream, (&equal, values), TableOptions::new().seed(0))?))?;
    at.keep::<Cuckoo>("bulk build", n, &times);
    let last = pairs.values.host[n - 1..].to_vec();
    Oracle::new(&[7], &last).check("bulk build of equal keys", &Contender::contents(&table, stream)?)?;
    drop((table, equal));

    for log_batch in BATCHES {
        let parameter = format!("growing, batches of 2^{log_batch}");
        session.step(&parameter)?;
        let at = At { session, section: SECTION, parameter: &parameter, n };
        rows::insert_all::<Cuckoo>(at, &pairs, n, 1 << log_batch, &oracle)?;
    }

    let at = At { session, section: SECTION, parameter: "load 0.8", n };
    let fresh = || Ok(Cuckoo::bulk_build(stream, (keys, values), TableOptions::new().seed(0))?);
    let time = |operation: &dyn Fn(&mut Cuckoo) -> Result<(), Error>| {
        session.time_fresh(Clock::Device, session.warm_ups, session.runs, fresh, |mut table| {
            operation(&mut table)?;
            Ok(table)
        })
    };
    session.step("upsert")?;
    let (table, times) = time(&|table| Ok(table.upsert(stream, (keys, values), Sum)?))?;
    at.keep::<Cuckoo>("upsert, all present", n, &times);
    let mut doubled = Oracle { pairs: oracle.pairs.clone() };
    // What the table had of a key, and all values of the key in the batch.
    let mut sums = std::collections::HashMap::<u32, u32>::new();
    for (&key, &value) in pairs.keys.host.iter().zip(&pairs.values.host) {
        let sum = sums.entry(key).or_default();
        *sum = sum.wrapping_add(value);
    }
    for (key, value) in &mut doubled.pairs {
        *value = value.wrapping_add(sums[key]);
    }
    doubled.check("upsert", &Contender::contents(&table, stream)?)?;

    session.step("insert, all present")?;
    let (table, times) = time(&|table| Ok(table.insert(stream, (keys, values))?))?;
    at.keep::<Cuckoo>("insert, all present", n, &times);
    oracle.check("insert", &Contender::contents(&table, stream)?)?;

    session.step("remove")?;
    let (table, times) = time(&|table| Ok(table.remove(stream, keys).map(drop)?))?;
    at.keep::<Cuckoo>("remove, all present", n, &times);
    Oracle::<u32, u32> { pairs: Vec::new() }.check("remove", &Contender::contents(&table, stream)?)?;

    session.step("retain")?;
    let is_odd = map!(|key: u32, value: u32| -> u8 { ((key ^ value) & 1) as u8 });
    let (table, times) = time(&|table| Ok(table.retain(stream, is_odd)?))?;
    at.keep::<Cuckoo>("retain, half of them", n, &times);
    let left = oracle.pairs.iter().copied().filter(|(key, value)| (key ^ value) & 1 == 1).collect();
    Oracle { pairs: left }.check("retain", &Contender::contents(&table, stream)?)
}
