//! Permutations that sort: by keys, and by two columns.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::DeviceVec;
use gpu_primitives::sort::{self, Options, SortColumn};
use rayon::slice::ParallelSliceMut;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let (first, second) = (random_u32(len as u64, len), random_u32(len as u64 + 1, len));
    // Many rows are equal in the first of two columns.
    let group: Vec<u32> = first.iter().map(|number| number % 1024).collect();
    let keys = stream.upload(&first)?;
    let mut order: Option<DeviceVec<u32>> = None;
    time(session, "argsort_u32", len, 68.0, || {
        order = Some(sort::argsort(stream, &keys, Options::new())?);
        Ok(())
    })?;
    let mut expected: Vec<u64> = first.iter().zip(0u64..).map(|(&key, i)| u64::from(key) << 32 | i).collect();
    expected.par_sort_unstable();
    let found = order.take().map(|order| order.to_vec(stream)).transpose()?.unwrap_or_default();
    expect("order of keys", &found, expected.iter().map(|&pair| pair as u32))?;

    let columns = (stream.upload(&group)?, stream.upload(&second)?);
    time(session, "sort_by_two_columns_u32", len, 200.0, || {
        order = Some(sort::by_columns(stream, &[SortColumn::new(&columns.0), SortColumn::new(&columns.1)])?);
        Ok(())
    })?;
    let mut expected: Vec<(u32, u32, u32)> =
        group.iter().zip(&second).zip(0..).map(|((&a, &b), row)| (a, b, row)).collect();
    expected.par_sort_unstable();
    let found = order.take().map(|order| order.to_vec(stream)).transpose()?.unwrap_or_default();
    expect("order by two columns", &found, expected.iter().map(|row| row.2))
}
