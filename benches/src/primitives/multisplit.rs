//! The multisplit. It must move each pair once, so compare it with the copy.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::multisplit::{self, Shift};
use rayon::slice::ParallelSliceMut;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let (keys, values) = (stream.upload(&host)?, stream.upload(&(0..len as u32).collect::<Vec<_>>())?);
    let (mut keys_out, mut values_out) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
    for log in [3, 5, 8] {
        let shift = Shift::by(32 - log);
        time(session, format!("multisplit_pairs_{}", 1 << log), len, 16.0, || {
            multisplit::pairs(stream, (&keys, &values), (&mut keys_out, &mut values_out), 1 << log, shift).map(drop)
        })?;
        let mut expected: Vec<u32> = (0..len as u32).collect();
        expected.par_sort_by_key(|&i| host[i as usize] >> (32 - log));
        expect("multisplit", &values_out.to_vec(stream)?, expected.iter().copied())?;
        expect("multisplit", &keys_out.to_vec(stream)?, expected.iter().map(|&i| host[i as usize]))?;
    }
    Ok(())
}
