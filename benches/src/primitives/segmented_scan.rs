//! The exclusive sums of segments of equal lengths.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::scan::{self, Sum};

/// The lengths of the segments.
const LENGTHS: [usize; 3] = [8, 64, 1024];

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    for length in LENGTHS {
        // The last segment may be shorter.
        let offsets: Vec<u32> = (0..len).step_by(length).chain([len]).map(|offset| offset as u32).collect();
        let offsets = stream.upload(&offsets)?;
        let bytes = 8.0 + 4.0 / length as f64;
        time(session, format!("segmented_exclusive_sum_u32_L{length}"), len, bytes, || {
            scan::segmented_exclusive(stream, &input, &offsets, &mut output, Sum)
        })?;
        let sums = host.chunks(length).flat_map(|segment| {
            segment.iter().scan(0u32, |sum, &number| Some(std::mem::replace(sum, sum.wrapping_add(number))))
        });
        expect("sums of segments", &output.to_vec(stream)?, sums)?;
    }
    Ok(())
}
