//! The measurements of the cuckoo hash table: build and lookups, with 32-bit keys and values. Every timed result is
//! checked.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::oracle::{Lookups, Oracle};
use crate::rows::{self, At};
use crate::session::Session;
use crate::{Error, Run};
use gpu_cuckoo::{GpuCuckoo, Options as TableOptions};

/// The section of the records.
pub const SECTION: &str = "cuckoo";

type Cuckoo = GpuCuckoo<u32, u32>;

/// Measures every row. `device` is the name of the device; `None` for the default device. `log_sizes` are the sizes as
/// powers of two; if empty, sizes that suit the device.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(device: Option<&str>, log_sizes: &[u32]) -> Result<Run, Error> {
    let (session, log_sizes) = Session::open_for_sizes(device, log_sizes)?;
    session.expect_steps(2 * log_sizes.len());
    let outcome = log_sizes.iter().try_for_each(|&log| measure(&session, 1 << log));
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
        let options = TableOptions::new().load_factor(load);
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
