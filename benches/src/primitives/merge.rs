//! Merges of sorted halves, and of eight sorted runs.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::IgnoreLowBit;
use gpu_primitives::merge;

/// Runs of the merge of many.
const RUNS: usize = 8;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut host = random_u32(len as u64, len);
    let order = |key: &u32| key >> 1;
    let values: Vec<u32> = (0..len as u32).collect();

    let half = len / 2;
    host[..half].sort_by_key(order);
    host[half..].sort_by_key(order);
    let (keys_in, values_in) = (stream.upload(&host)?, stream.upload(&values)?);
    let (a_keys, b_keys) = (keys_in.slice(..half)?, keys_in.slice(half..)?);
    let (a_values, b_values) = (values_in.slice(..half)?, values_in.slice(half..)?);
    let mut keys_out = stream.uninit::<u32>(len)?;
    let mut values_out = stream.uninit::<u32>(len)?;
    time(session, "merge_keys_cmp", len, 8.0, || merge::keys(stream, a_keys, b_keys, &mut keys_out, IgnoreLowBit))?;
    let expected = merged(&host, half);
    expect("merged keys", &keys_out.to_vec(stream)?, expected.iter().map(|&at| host[at as usize]))?;
    time(session, "merge_pairs_cmp", len, 16.0, || {
        merge::pairs(stream, (a_keys, a_values), (b_keys, b_values), (&mut keys_out, &mut values_out), IgnoreLowBit)
    })?;
    expect("merged keys of pairs", &keys_out.to_vec(stream)?, expected.iter().map(|&at| host[at as usize]))?;
    expect("merged values", &values_out.to_vec(stream)?, expected.into_iter())?;

    let run_len = len.div_ceil(RUNS);
    host.chunks_mut(run_len).for_each(|run| run.sort_by_key(order));
    let keys_in = stream.upload(&host)?;
    let mut runs = Vec::new();
    for start in (0..len).step_by(run_len) {
        let range = start..(start + run_len).min(len);
        runs.push((keys_in.slice(range.clone())?, values_in.slice(range)?));
    }
    time(session, "merge_8way_pairs", len, 16.0, || {
        merge::runs_pairs(stream, &runs, (&mut keys_out, &mut values_out), IgnoreLowBit)
    })?;
    let expected = merged(&host, run_len);
    expect("8-way merged keys", &keys_out.to_vec(stream)?, expected.iter().map(|&at| host[at as usize]))?;
    expect("8-way merged values", &values_out.to_vec(stream)?, expected.into_iter())
}

/// Where the items of the stable merge of consecutive runs lie. (A stable sort finds runs and merges them.)
fn merged(keys: &[u32], run_len: usize) -> Vec<u32> {
    assert!(keys.chunks(run_len).all(|run| run.is_sorted_by_key(|key| key >> 1)));
    let mut places: Vec<u32> = (0..keys.len() as u32).collect();
    places.sort_by_key(|&place| keys[place as usize] >> 1);
    places
}
