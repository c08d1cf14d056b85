//! Rows of one length: their sorts, their largest numbers, their sums, and those of a part of each.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::order_statistics::Rows;
use gpu_primitives::scan::Sum;
use gpu_primitives::sort::{self, Options};
use gpu_primitives::source::strided;
use gpu_primitives::{reduce, scan, top_k};
use rayon::iter::ParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// The lengths of the rows that are sorted, and whose largest numbers are found.
const LONG: [usize; 2] = [32_768, 131_072];
/// How many of the largest are found.
const K: usize = 64;
/// The length of the rows that are added up, and that of the part of a row.
const SHORT: usize = 1024;
const PART: usize = 1000;

/// Measures as many whole rows as `len` elements have: none, if they are fewer than a row has.
pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    for row_len in LONG.into_iter().filter(|row_len| *row_len <= len) {
        sorts(session, len / row_len, row_len)?;
    }
    if len >= SHORT { sums(session, len / SHORT) } else { Ok(()) }
}

/// Sorts rows of floats, and finds their largest.
fn sorts(session: &Session, rows: usize, row_len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let len = rows * row_len;
    let host: Vec<f32> = random_u32(len as u64, len).into_iter().map(|number| (number >> 8) as f32 - 5e6).collect();
    let input = stream.upload(&host)?;
    let mut sorted = stream.uninit::<f32>(len)?;
    time(session, format!("sort_rows_of_{row_len}_f32"), len, 8.0, || {
        sort::row_keys(stream, &input, row_len, &mut sorted, Options::new())
    })?;
    let mut expected = host.clone();
    expected.par_chunks_exact_mut(row_len).for_each(|row| row.sort_unstable_by(f32::total_cmp));
    expect("sorted rows", &sorted.to_vec(stream)?, expected.iter().copied())?;

    let (mut keys, mut positions) = (stream.uninit::<f32>(rows * K)?, stream.uninit::<u32>(rows * K)?);
    time(session, format!("top_{K}_of_rows_of_{row_len}_f32"), len, 4.0, || {
        top_k::segmented_largest(stream, &input, Rows::of_len(row_len), K, (&mut keys, &mut positions))
    })?;
    let largest = expected.chunks_exact(row_len).flat_map(|row| row.iter().rev().take(K).copied());
    expect("largest floats of rows", &keys.to_vec(stream)?, largest)?;
    let positions = positions.to_vec(stream)?;
    let found = positions.iter().enumerate().map(|(i, &position)| host[i / K * row_len + position as usize]);
    expect("positions in rows", &keys.to_vec(stream)?, found)
}

/// Adds up rows: all of them, their beginnings, and as running sums.
fn sums(session: &Session, rows: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let len = rows * SHORT;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut sums = stream.uninit::<u32>(rows)?;
    let sum = |row: &[u32]| row.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number));
    time(session, format!("sum_rows_of_{SHORT}_u32"), len, 4.0, || {
        reduce::rows(stream, &input, SHORT, &mut sums, Sum)
    })?;
    expect("sums of rows", &sums.to_vec(stream)?, host.chunks_exact(SHORT).map(sum))?;

    time(session, format!("sum_strided_rows_of_{PART}_u32"), len, 4.0 * PART as f64 / SHORT as f64, || {
        reduce::rows(stream, strided(&input, PART, SHORT), PART, &mut sums, Sum)
    })?;
    expect("sums of parts of rows", &sums.to_vec(stream)?, host.chunks_exact(SHORT).map(|row| sum(&row[..PART])))?;

    let mut running = stream.uninit::<u32>(len)?;
    time(session, format!("running_sum_rows_of_{SHORT}_u32"), len, 8.0, || {
        scan::row_inclusive(stream, &input, SHORT, &mut running, Sum)
    })?;
    let running_sums = |row: &[u32]| -> Vec<u32> {
        let next = |sum: &mut u32, &number: &u32| {
            *sum = sum.wrapping_add(number);
            Some(*sum)
        };
        row.iter().scan(0, next).collect()
    };
    let expected: Vec<u32> = host.par_chunks_exact(SHORT).flat_map_iter(running_sums).collect();
    expect("running sums of rows", &running.to_vec(stream)?, expected.into_iter())
}
