//! Histograms of 256 bins of equal width: of small numbers, and of numbers of the full range.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::histogram;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let mut counts = stream.uninit::<u32>(256)?;
    let expected = |host: &[u32], shift: u32| {
        let mut counts = vec![0u32; 256];
        for number in host {
            counts[(number >> shift) as usize] += 1;
        }
        counts
    };

    let host: Vec<u32> = random_u32(len as u64, len).iter().map(|number| number % 256).collect();
    let input = stream.upload(&host)?;
    time(session, "histogram_256_even_bytes_in_u32", len, 4.0, || {
        histogram::even(stream, &input, &mut counts, 0, 256)
    })?;
    expect("histogram of bytes", &counts.to_vec(stream)?, expected(&host, 0).into_iter())?;

    // As many bins as bits allow, so that the upper level is a number: 2^31 of 2^32.
    let host: Vec<u32> = random_u32(len as u64, len).iter().map(|number| number >> 1).collect();
    let input = stream.upload(&host)?;
    time(session, "histogram_256_even_full_range_u32", len, 4.0, || {
        histogram::even(stream, &input, &mut counts, 0, 1 << 31)
    })?;
    expect("histogram", &counts.to_vec(stream)?, expected(&host, 23).into_iter())
}
