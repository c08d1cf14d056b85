//! The measurements of the LSM's buffer: insertions that nobody asks about, and insertions and lookups in turn.

use crate::Error;
use crate::both::Pairs;
use crate::contender::Contender;
use crate::lsm::{Lsm, SECTION};
use crate::measure::Clock;
use crate::oracle::{Lookups, Oracle};
use crate::record::{Record, power};
use crate::rows::At;
use crate::session::Session;
use gpu_lsm::Options;

/// The batch sizes, as powers of two.
const BATCHES: [u32; 5] = [10, 13, 16, 18, 20];
/// The buffers: none, and the default.
const BUFFERS: [usize; 2] = [0, 1 << 22];

/// The number of steps that [`measure`] counts.
pub(crate) const STEPS: usize = 2;

/// Measures insertions of all pairs, with the last flush inside the time, and insertions and lookups in turn.
pub(crate) fn measure(session: &Session, pairs: &Pairs<u32, u32>, oracle: &Oracle<u32, u32>) -> Result<(), Error> {
    session.step("insertions into a buffer")?;
    let (stream, n) = (&session.stream, pairs.len());
    let options = |batch: usize, buffer: usize| Options::new().batch_size(batch).buffer(buffer);
    let parameter = |batch: usize, buffer: usize| match buffer {
        0 => format!("b = {}, no buffer", power(batch)),
        _ => format!("b = {}, buffer of {}", power(batch), power(buffer)),
    };
    for batch in BATCHES.map(|log| 1usize << log).into_iter().filter(|batch| 4 * batch <= n) {
        for buffer in BUFFERS {
            let (filled, times) = session.time_fresh(
                Lsm::CLOCK,
                session.warm_ups,
                session.runs,
                || Ok(Lsm::new(stream, options(batch, buffer))?),
                |mut lsm| {
                    for slice in pairs.batches(n, batch) {
                        Contender::insert(&mut lsm, stream, slice?)?;
                    }
                    lsm.flush(stream)?;
                    Ok(lsm)
                },
            )?;
            let parameter = parameter(batch, buffer);
            At { session, section: SECTION, parameter: &parameter, n }.keep::<Lsm>("insert and flush", n, &times);
            oracle.check("insert and flush", &filled.contents(stream)?)?;
        }
    }

    session.step("insertions and lookups in turn")?;
    let batch = (1usize << 16).min(n / 16);
    let lookups = Lookups::present(stream, batch, batch)?;
    for buffer in BUFFERS {
        let (found, times) = session.time_fresh(
            Clock::Device,
            session.warm_ups,
            session.runs,
            || Ok(Lsm::new(stream, options(batch, buffer))?),
            |mut lsm| {
                let mut found = None;
                for slice in pairs.batches(n, batch) {
                    Contender::insert(&mut lsm, stream, slice?)?;
                    found = Some(Contender::lookup(&lsm, stream, lookups.keys.all())?);
                }
                Ok(found)
            },
        )?;
        let rounds = (n / batch) as f64;
        let row = format!("insertion of {0} and lookup of {0}", power(batch));
        let record = Record::new(SECTION, Lsm::NAME, row, parameter(batch, buffer), n);
        session.keep(record.value(times.median().as_secs_f64() * 1e6 / rounds, "µs"));
        let found = found.map(|found| found(stream)).transpose()?;
        lookups.check("lookups in turn with insertions", &found.unwrap_or_default())?;
    }
    Ok(())
}
