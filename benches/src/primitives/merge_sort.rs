//! The merge sort of keys and of pairs.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::Less;
use gpu_primitives::merge_sort;
use rayon::slice::ParallelSliceMut;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let numbers: Vec<u32> = (0..len as u32).collect();
    let (keys, values) = (stream.upload(&host)?, stream.upload(&numbers)?);
    let (mut sorted, mut places) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
    time(session, "merge_sort_pairs_comparator", len, 16.0, || {
        merge_sort::pairs(stream, (&keys, &values), (&mut sorted, &mut places), Less)
    })?;
    let mut keys_alone = stream.uninit::<u32>(len)?;
    time(session, "merge_sort_keys", len, 8.0, || merge_sort::keys(stream, &keys, &mut keys_alone, Less))?;
    let mut expected: Vec<(u32, u32)> = host.into_iter().zip(numbers).collect();
    expected.par_sort_unstable();
    expect("merge-sorted keys alone", &keys_alone.to_vec(stream)?, expected.iter().map(|pair| pair.0))?;
    expect("merge-sorted keys", &sorted.to_vec(stream)?, expected.iter().map(|pair| pair.0))?;
    expect("merge-sorted values", &places.to_vec(stream)?, expected.iter().map(|pair| pair.1))
}
