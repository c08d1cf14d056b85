//! Runs of eight equal neighbours.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::equality::Same;
use gpu_primitives::scan::Sum;
use gpu_primitives::{runs, scan};

/// The length of a run.
const RUN: usize = 8;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host: Vec<u32> = (0..len).map(|i| (i / RUN) as u32).collect();
    let values = random_u32(len as u64, len);
    let (keys, on_device) = (stream.upload(&host)?, stream.upload(&values)?);
    let (mut heads, mut numbers) = (stream.zeroed::<u32>(len)?, stream.zeroed::<u32>(len)?);
    let count = len.div_ceil(RUN);
    let sums = || values.chunks(RUN).map(|run| run.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number)));
    let expected_heads = || 0..count as u32;

    // Each key is read, and one of eight is written.
    time(session, "unique_u32_runs_of_8", len, 4.5, || runs::unique(stream, &keys, &mut heads, Same).map(drop))?;
    expect("unique keys", &heads.slice(..count)?.to_vec(stream)?, expected_heads())?;

    time(session, "run_length_encode_u32_runs_of_8", len, 5.0, || {
        runs::run_length_encode(stream, &keys, (&mut heads, &mut numbers), Same).map(drop)
    })?;
    let lengths = host.chunks(RUN).map(|run| run.len() as u32);
    expect("lengths of runs", &numbers.slice(..count)?.to_vec(stream)?, lengths)?;

    time(session, "reduce_by_key_u32_runs_of_8", len, 9.0, || {
        runs::reduce_by_key(stream, (&keys, &on_device), (&mut heads, &mut numbers), Same, Sum).map(drop)
    })?;
    expect("sums by key", &numbers.slice(..count)?.to_vec(stream)?, sums())?;
    expect("keys of sums", &heads.slice(..count)?.to_vec(stream)?, expected_heads())?;

    time(session, "exclusive_sum_by_key_u32_runs_of_8", len, 12.0, || {
        scan::exclusive_by_key(stream, (&keys, &on_device), &mut numbers, Same, Sum, 0)
    })?;
    let running = values
        .chunks(RUN)
        .flat_map(|run| run.iter().scan(0u32, |sum, &number| Some(std::mem::replace(sum, sum.wrapping_add(number)))));
    expect("sums within keys", &numbers.to_vec(stream)?, running)
}
