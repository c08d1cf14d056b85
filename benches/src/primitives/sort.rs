//! The radix sort.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::counted;
use gpu_primitives::{reduce, transfer};
use rayon::slice::ParallelSliceMut;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let (keys, values) = (stream.upload(&host)?, stream.upload(&(0..len as u32).collect::<Vec<_>>())?);
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
    time(session, "sort_pairs_u32_u32", len, 68.0, || {
        sort::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), Options::new())
    })?;
    let mut expected: Vec<u64> = host.iter().zip(0u64..).map(|(&key, i)| u64::from(key) << 32 | i).collect();
    expected.par_sort_unstable();
    expect("sort pairs", &keys_out.to_vec(stream)?, expected.iter().map(|x| (x >> 32) as u32))?;
    expect("sort pairs", &values_out.to_vec(stream)?, expected.iter().map(|&x| x as u32))?;

    time(session, "sort_keys_u32", len, 36.0, || sort::keys(stream, &keys, &mut keys_out, Options::new()))?;
    expect("sort keys", &keys_out.to_vec(stream)?, expected.iter().map(|x| (x >> 32) as u32))?;

    // The length is that of the slice, but only the device knows.
    let count = reduce::sum(stream, &stream.upload(&[len as u64])?)?;
    transfer::fill(stream, &mut keys_out, 0)?;
    time(session, "sort_keys_u32_device_length", len, 36.0, || {
        sort::keys(stream, counted(&keys, &count), &mut keys_out, Options::new())
    })?;
    expect("sort of a length on the device", &keys_out.to_vec(stream)?, expected.iter().map(|x| (x >> 32) as u32))
}

pub(super) fn measure_u64(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let words = random_u32(len as u64, 2 * len);
    let host: Vec<u64> = words.chunks_exact(2).map(|x| u64::from(x[0]) << 32 | u64::from(x[1])).collect();
    let keys = stream.upload(&host)?;
    let mut keys_out = stream.uninit::<u64>(len)?;
    time(session, "sort_keys_u64", len, 136.0, || sort::keys(stream, &keys, &mut keys_out, Options::new()))?;
    let values = stream.upload(&(0..len as u32).collect::<Vec<_>>())?;
    let (mut pair_keys, mut values_out) = (stream.uninit::<u64>(len)?, stream.uninit::<u32>(len)?);
    time(session, "sort_pairs_u64_u32", len, 200.0, || {
        sort::pairs(stream, (&keys, &values), (&mut pair_keys, &mut values_out), Options::new())
    })?;
    let mut expected: Vec<(u64, u32)> = host.into_iter().zip(0..).collect();
    expected.par_sort_unstable();
    expect("sort 64-bit keys", &keys_out.to_vec(stream)?, expected.iter().map(|pair| pair.0))?;
    expect("keys of 64-bit pairs", &pair_keys.to_vec(stream)?, expected.iter().map(|pair| pair.0))?;
    expect("values of 64-bit pairs", &values_out.to_vec(stream)?, expected.iter().map(|pair| pair.1))
}
