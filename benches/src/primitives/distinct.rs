//! The different keys of unsorted numbers, by a sort and by a hash table.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::{runs, transfer};
use rayon::slice::ParallelSliceMut;

/// The number of different keys.
const KEYS: u32 = 1 << 16;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut host: Vec<u32> = random_u32(len as u64, len).iter().map(|number| (number % KEYS) * 65_521).collect();
    let input = stream.upload(&host)?;
    let (mut keys, mut counts) = (stream.zeroed::<u32>(len)?, stream.zeroed::<u32>(len)?);
    host.par_sort_unstable();
    let expected = || host.chunk_by(|a, b| a == b);
    let different = expected().count();

    time(session, "distinct_u32_65536", len, 4.0, || runs::distinct(stream, &input, &mut keys).map(drop))?;
    expect("different keys", &keys.slice(..different)?.to_vec(stream)?, expected().map(|run| run[0]))?;

    // The same keys are found again.
    transfer::fill(stream, &mut keys, 0)?;
    time(session, "distinct_counts_hashed_u32_65536", len, 4.0, || {
        runs::distinct_counts_hashed(stream, &input, (&mut keys, &mut counts), KEYS as usize).map(drop)
    })?;
    expect("different keys by hash", &keys.slice(..different)?.to_vec(stream)?, expected().map(|run| run[0]))?;
    let counts = counts.slice(..different)?.to_vec(stream)?;
    expect("counts of different keys", &counts, expected().map(|run| run.len() as u32))
}
