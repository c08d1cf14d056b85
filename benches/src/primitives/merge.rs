//! Merges of sorted halves, and of eight sorted runs.

use super::time;
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::IgnoreLowBit;
use gpu_primitives::{DeviceVec, merge};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSliceMut;

/// The number of runs of a merge of many runs.
const RUNS: usize = 8;

/// Returns the part of a key that the merges compare.
fn order(key: u32) -> u32 {
    key >> 1
}

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut host = random_u32(len as u64, len);
    let places = stream.upload(&(0..len as u32).collect::<Vec<_>>())?;

    let half = len / 2;
    host[..half].par_sort_by_key(|&key| order(key));
    host[half..].par_sort_by_key(|&key| order(key));
    let keys_in = stream.upload(&host)?;
    let (a_keys, b_keys) = (keys_in.slice(..half)?, keys_in.slice(half..)?);
    let (a_values, b_values) = (places.slice(..half)?, places.slice(half..)?);
    let mut keys_alone = stream.uninit::<u32>(len)?;
    time(session, "merge_keys_cmp", len, 8.0, || merge::keys(stream, a_keys, b_keys, &mut keys_alone, IgnoreLowBit))?;
    let mut keys_out = stream.uninit::<u32>(len)?;
    let mut values_out = stream.uninit::<u32>(len)?;
    time(session, "merge_pairs_cmp", len, 16.0, || {
        merge::pairs(stream, (a_keys, a_values), (b_keys, b_values), (&mut keys_out, &mut values_out), IgnoreLowBit)
    })?;
    let keys_out = keys_out.to_vec(stream)?;
    expect_merged("merged pairs", &host, &keys_out, &values_out.to_vec(stream)?)?;
    super::expect("merged keys", &keys_alone.to_vec(stream)?, keys_out.into_iter())?;

    // The parts of a sorted half do not overlap each other. The parts of random numbers all overlap.
    merge_runs(session, "merge_8way_apart", &mut host, &places)?;
    merge_runs(session, "merge_8way_pairs", &mut random_u32(len as u64 + 1, len), &places)
}

/// Sorts eight equal parts of `host` and merges them.
fn merge_runs(
    session: &Session,
    name: &'static str,
    host: &mut [u32],
    places: &DeviceVec<u32>,
) -> Result<(), crate::Error> {
    let (stream, len) = (&session.stream, host.len());
    let run_len = len.div_ceil(RUNS);
    host.par_chunks_mut(run_len).for_each(|run| run.par_sort_by_key(|&key| order(key)));
    let keys = stream.upload(host)?;
    let mut keys_out = stream.uninit::<u32>(len)?;
    let mut values_out = stream.uninit::<u32>(len)?;
    let mut runs = Vec::new();
    for start in (0..len).step_by(run_len) {
        let range = start..(start + run_len).min(len);
        runs.push((keys.slice(range.clone())?, places.slice(range)?));
    }
    time(session, name, len, 16.0, || {
        merge::runs_pairs(stream, &runs, (&mut keys_out, &mut values_out), IgnoreLowBit)
    })?;
    expect_merged("pairs of eight runs", host, &keys_out.to_vec(stream)?, &values_out.to_vec(stream)?)
}

/// Checks the stable merge of consecutive runs, where the values are the positions of the keys: every position occurs
/// once, with its key, in key order, and equal keys in the order of their positions.
fn expect_merged(what: &'static str, host: &[u32], keys: &[u32], places: &[u32]) -> Result<(), crate::Error> {
    let mut seen = vec![false; host.len()];
    let mut last = None;
    for (index, (&key, &place)) in keys.iter().zip(places).enumerate() {
        let is_new = host.get(place as usize) == Some(&key) && !std::mem::replace(&mut seen[place as usize], true);
        if !is_new || last >= Some((order(key), place)) {
            return Err(crate::Error::WrongResult { what: what.into(), index });
        }
        last = Some((order(key), place));
    }
    Ok(())
}
