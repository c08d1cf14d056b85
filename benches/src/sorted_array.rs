//! The measurements of the sorted array: queries, insertion and the lower bound of its time, with 32-bit keys and
//! values. Every timed result is checked.

use crate::both::Pairs;
use crate::contender::Contender;
use crate::data::Distribution;
use crate::oracle::{Intervals, Lookups, Oracle};
use crate::record::{Record, power};
use crate::rows::{self, At};
use crate::session::Session;
use crate::{Error, Run};
use gpu_primitives::compare::Less;
use gpu_primitives::{merge, sort};
use gpu_sorted_array::GpuSortedArray;

/// The section of the records.
pub const SECTION: &str = "sorted array";

type Array = GpuSortedArray<u32, u32>;

/// Measures every row. `device` is the name of the device; `None` for the default device. `sizes` are powers
/// of two; if there are none, they suit the device. Intervals are measured at the first size only. All sizes have the same
/// batch, a sixteenth of the first one.
///
/// # Errors
/// Any error before the first measurement. Later errors are in [`Run::outcome`], next to the measurements so far.
pub fn run(device: Option<&str>, sizes: &[usize]) -> Result<Run, Error> {
    let (session, log_sizes) = Session::open_for_sizes(device, sizes)?;
    session.expect_steps(2 * log_sizes.len() + 2);
    let measure = || {
        for (index, &log) in log_sizes.iter().enumerate() {
            queries(&session, 1 << log, index == 0)?;
        }
        for &log in &log_sizes {
            insertion(&session, 1 << log, 1 << (log_sizes[0] - 4))?;
        }
        Ok(())
    };
    let outcome = measure();
    Ok(Run { recording: session.finish(), outcome })
}

fn queries(session: &Session, n: usize, with_intervals: bool) -> Result<(), Error> {
    let stream = &session.stream;
    session.step(format!("build and lookups of {}", power(n)))?;
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    let at = At { session, section: SECTION, parameter: "", n };
    let array = rows::build::<Array>(at, pairs.slice(0..n)?, n, &oracle)?;
    rows::bytes(at, "bytes per element, without an index", &array, n)?;
    rows::lookup(at, "lookup, all present", &array, &Lookups::present(stream, n, n)?)?;
    rows::lookup(at, "lookup, all absent", &array, &Lookups::absent(stream, n)?)?;
    rows::bytes(at, "bytes per element", &array, n)?;
    if with_intervals {
        for expected in [8, 1024] {
            session.step(format!("intervals of {expected} keys"))?;
            let intervals = Intervals::of_width(stream, &oracle, expected, (n / expected.min(64)).clamp(1, 1 << 20))?;
            rows::intervals(At { parameter: &format!("L = {expected}"), ..at }, &array, &intervals, &oracle)?;
        }
    }
    Ok(())
}

/// Measures the insertion of one batch into an array of `n` elements. Also measures its two necessary parts: the sort
/// of the batch, and the merge of the batch with the array.
fn insertion(session: &Session, n: usize, batch: usize) -> Result<(), Error> {
    let stream = &session.stream;
    session.step(format!("insertion of {} into {}", power(batch), power(n)))?;
    let pairs = Pairs::<u32, u32>::new(stream, Distribution::Uniform.keys(n + batch), 0)?;
    let oracle = Oracle::new(&pairs.keys.host, &pairs.values.host);
    let parameter = format!("b = {}", power(batch));
    let (old, new) = (pairs.slice(0..n)?, pairs.slice(n..n + batch)?);
    let (filled, times) = session.time_fresh(
        Array::CLOCK,
        session.warm_ups,
        session.runs,
        || Array::build(stream, old, batch),
        |mut array| {
            Contender::insert(&mut array, stream, new)?;
            Ok(array)
        },
    )?;
    At { session, section: SECTION, parameter: &parameter, n }.keep::<Array>("insert", batch, &times);
    oracle.check("insert", &Contender::contents(&filled, stream)?)?;
    drop(filled);

    let mut sorted = (stream.uninit::<u32>(batch)?, stream.uninit::<u32>(batch)?);
    let ((), times) = session.time(|| {
        let options = sort::Options::new();
        Ok(sort::pairs(stream, (new.keys.device, new.values.device), (&mut sorted.0, &mut sorted.1), options)?)
    })?;
    let floor = |row| Record::new(SECTION, "gpu-primitives", row, parameter.as_str(), n);
    session.keep(floor("sort of the batch").rate(batch, &times));
    let new_oracle = Oracle::new(new.keys.host, new.values.host);
    let found: Vec<(u32, u32)> = sorted.0.to_vec(stream)?.into_iter().zip(sorted.1.to_vec(stream)?).collect();
    new_oracle.check("sort of the batch", &found)?;

    let old_oracle = Oracle::new(old.keys.host, old.values.host);
    let (keys, values): (Vec<u32>, Vec<u32>) = old_oracle.pairs.into_iter().unzip();
    let (keys, values) = (stream.upload(&keys)?, stream.upload(&values)?);
    let mut merged = (stream.uninit::<u32>(n + batch)?, stream.uninit::<u32>(n + batch)?);
    let ((), times) = session.time(|| {
        let (a, b) = ((keys.as_slice(), values.as_slice()), (sorted.0.as_slice(), sorted.1.as_slice()));
        Ok(merge::pairs(stream, a, b, (&mut merged.0, &mut merged.1), Less)?)
    })?;
    session.keep(floor("merge of the batch with the array").rate(batch, &times));
    let found: Vec<(u32, u32)> = merged.0.to_vec(stream)?.into_iter().zip(merged.1.to_vec(stream)?).collect();
    oracle.check("merge of the batch with the array", &found)
}
