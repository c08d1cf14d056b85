//! The segmented sort of pairs and of keys: with random segment boundaries, and of rows of equal lengths.

use super::{expect, random_offsets, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::Less;
use gpu_primitives::sort::{self, Options};

/// The mean lengths of the segments.
const LENGTHS: [usize; 3] = [8, 64, 1024];
/// The lengths of the rows.
const ROWS: [usize; 2] = [8, 64];

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host_keys = random_u32(len as u64, len);
    let host_values: Vec<u32> = (0..len as u32).collect();
    let (keys, values) = (stream.upload(&host_keys)?, stream.upload(&host_values)?);
    let (mut sorted_keys, mut sorted_values) = (stream.uninit::<u32>(len)?, stream.uninit::<u32>(len)?);
    let mut keys_alone = stream.uninit::<u32>(len)?;
    // The values ascend, so sorting the pairs gives the stable order of the keys.
    let sorted = |offsets: &[u32]| {
        let mut pairs: Vec<(u32, u32)> = host_keys.iter().copied().zip(host_values.iter().copied()).collect();
        offsets.windows(2).for_each(|ends| pairs[ends[0] as usize..ends[1] as usize].sort_unstable());
        pairs
    };
    for mean in LENGTHS {
        let host_offsets = random_offsets(len, mean);
        let offsets = stream.upload(&host_offsets)?;
        time(session, format!("segmented_sort_pairs_L{mean}"), len, 16.0, || {
            sort::segmented_pairs(stream, (&keys, &values), &offsets, (&mut sorted_keys, &mut sorted_values), Less)
        })?;
        time(session, format!("segmented_sort_keys_L{mean}"), len, 8.0, || {
            sort::segmented_keys(stream, &keys, &offsets, &mut keys_alone, Less)
        })?;
        let pairs = sorted(&host_offsets);
        expect("keys of a segmented sort", &sorted_keys.to_vec(stream)?, pairs.iter().map(|pair| pair.0))?;
        expect("values of a segmented sort", &sorted_values.to_vec(stream)?, pairs.iter().map(|pair| pair.1))?;
        expect("a segmented sort of keys", &keys_alone.to_vec(stream)?, pairs.iter().map(|pair| pair.0))?;
    }
    for length in ROWS {
        // Whole rows alone.
        let whole = len / length * length;
        let (keys, values) = (keys.slice(..whole)?, values.slice(..whole)?);
        let (mut row_keys, mut row_values) = (stream.uninit::<u32>(whole)?, stream.uninit::<u32>(whole)?);
        let mut alone = stream.uninit::<u32>(whole)?;
        time(session, format!("segmented_sort_pairs_equal_L{length}"), whole, 16.0, || {
            sort::row_pairs(stream, (keys, values), length, (&mut row_keys, &mut row_values), Options::new())
        })?;
        time(session, format!("segmented_sort_keys_equal_L{length}"), whole, 8.0, || {
            sort::row_keys(stream, keys, length, &mut alone, Options::new())
        })?;
        let offsets: Vec<u32> = (0..=whole).step_by(length).map(|offset| offset as u32).collect();
        let mut pairs = sorted(&offsets);
        pairs.truncate(whole);
        expect("keys of sorted rows", &row_keys.to_vec(stream)?, pairs.iter().map(|pair| pair.0))?;
        expect("values of sorted rows", &row_values.to_vec(stream)?, pairs.iter().map(|pair| pair.1))?;
        expect("sorted rows of keys", &alone.to_vec(stream)?, pairs.iter().map(|pair| pair.0))?;
    }
    Ok(())
}
