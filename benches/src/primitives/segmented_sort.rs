//! The segmented sort of pairs, with random segment boundaries.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::Less;
use gpu_primitives::sort;

/// The mean lengths of the segments.
const LENGTHS: [usize; 3] = [8, 64, 1024];

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host_keys = random_u32(len as u64, len);
    let host_values: Vec<u32> = (0..len as u32).collect();
    let (keys, values) = (stream.upload(&host_keys)?, stream.upload(&host_values)?);
    let (mut sorted_keys, mut sorted_values) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
    for mean in LENGTHS {
        let mut host_offsets: Vec<u32> = random_u32(7, (len / mean).saturating_sub(1))
            .into_iter()
            .map(|cut| cut % (len as u32 + 1))
            .chain([0, len as u32])
            .collect();
        host_offsets.sort_unstable();
        let offsets = stream.upload(&host_offsets)?;
        time(session, format!("segmented_sort_pairs_L{mean}"), len, 16.0, || {
            sort::segmented_pairs(stream, (&keys, &values), &offsets, (&mut sorted_keys, &mut sorted_values), Less)
        })?;
        let mut pairs: Vec<(u32, u32)> = host_keys.iter().copied().zip(host_values.iter().copied()).collect();
        for ends in host_offsets.windows(2) {
            // The values ascend, so sorting the pairs gives the stable order of the keys.
            pairs[ends[0] as usize..ends[1] as usize].sort_unstable();
        }
        expect("keys of a segmented sort", &sorted_keys.to_vec(stream)?, pairs.iter().map(|pair| pair.0))?;
        expect("values of a segmented sort", &sorted_values.to_vec(stream)?, pairs.iter().map(|pair| pair.1))?;
    }
    Ok(())
}
