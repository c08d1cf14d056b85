//! Reductions: of all numbers, and of segments.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::scan::Sum;
use gpu_primitives::{DeviceValue, reduce};

/// The length of the segments.
const SEGMENT: usize = 64;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut sum: Option<DeviceValue<u32>> = None;
    time(session, "reduce_sum_u32", len, 4.0, || {
        sum = Some(reduce::sum(stream, &input)?);
        Ok(())
    })?;
    let found = sum.map(|sum| sum.as_slice().to_vec(stream)).transpose()?.unwrap_or_default();
    expect("sum", &found, std::iter::once(host.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number))))
}

pub(super) fn measure_segments(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let segments = len / SEGMENT;
    let offsets: Vec<u32> = (0..=segments).map(|segment| (segment * SEGMENT) as u32).collect();
    let offsets = stream.upload(&offsets)?;
    let mut sums = stream.uninit::<u32>(segments)?;
    time(session, "segmented_reduce_sum_u32_L64", len, 4.0 + 8.0 / SEGMENT as f64, || {
        reduce::segmented(stream, &input, &offsets, &mut sums, Sum)
    })?;
    let expected =
        host.chunks_exact(SEGMENT).map(|chunk| chunk.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number)));
    expect("sums of segments", &sums.to_vec(stream)?, expected)
}
