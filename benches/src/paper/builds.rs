//! Bulk builds, and a sort for comparison.

use super::BUILD;
use super::insertion::Data;
use super::published::Published;
use crate::Error;
use crate::contender::Contender;
use crate::record::Record;
use crate::session::Session;
use gpu_cuckoo::GpuCuckoo;
use gpu_lsm::GpuLsm;
use gpu_primitives::sort;
use gpu_sorted_array::GpuSortedArray;

/// The number of steps that [`measure`] counts.
pub const STEPS: usize = 4;

/// Measures the bulk build of each dictionary, and the sort of the same pairs.
pub fn measure(session: &Session, data: &Data) -> Result<(), Error> {
    build::<GpuLsm<u32, u32>>(session, data)?;
    build::<GpuSortedArray<u32, u32>>(session, data)?;
    build::<GpuCuckoo<u32, u32>>(session, data)?;

    session.step("sort of pairs")?;
    let (stream, n) = (&session.stream, data.pairs.len());
    let (keys, values) = (&data.pairs.keys.device, &data.pairs.values.device);
    let (mut sorted_keys, mut sorted_values) = (stream.uninit::<u32>(n)?, stream.uninit::<u32>(n)?);
    let ((), times) = session.time(|| {
        Ok(sort::pairs(stream, (keys, values), (&mut sorted_keys, &mut sorted_values), sort::Options::new())?)
    })?;
    let record = Record::new(BUILD, "gpu-primitives", "sort of pairs", "", n).rate(n, &times);
    session.keep(Published::load().beside(record, ""));
    let found: Vec<(u32, u32)> = sorted_keys.to_vec(stream)?.into_iter().zip(sorted_values.to_vec(stream)?).collect();
    data.oracle.check("sort of pairs", &found)
}

fn build<C: Contender<Key = u32, Value = u32>>(session: &Session, data: &Data) -> Result<(), Error> {
    session.step(format!("{}, bulk build", C::NAME))?;
    let (stream, n) = (&session.stream, data.pairs.len());
    let pairs = data.pairs.slice(0..n)?;
    let (built, times) = session.time(|| C::build(stream, pairs, n))?;
    let record = Record::new(BUILD, C::NAME, "bulk build", "", n).rate(n, &times);
    session.keep(Published::load().beside(record, ""));
    data.oracle.check("bulk build", &built.contents(stream)?)
}
