//! Reductions: of all numbers, and of segments.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::operator::predicate;
use gpu_primitives::scan::Sum;
use gpu_primitives::{DeviceValue, reduce};

/// The length of the segments: of each, or on average.
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
    expect("sum", &found, std::iter::once(host.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number))))?;

    let mut ends: Option<DeviceValue<[u32; 2]>> = None;
    time(session, "min_max_u32", len, 4.0, || {
        ends = Some(reduce::min_max(stream, &input)?);
        Ok(())
    })?;
    let found = ends.map(|ends| ends.get(stream)).transpose()?;
    let expected = host.iter().min().zip(host.iter().max()).map(|(&min, &max)| [min, max]);
    expect("least and greatest", found.as_slice(), expected.into_iter())?;
    if len > 0 { first(session, len) } else { Ok(()) }
}

/// Finds a number that is there once, after a hundredth of all.
fn first(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let place = len / 100;
    let host: Vec<u32> = (0..len).map(|i| u32::from(i == place)).collect();
    let input = stream.upload(&host)?;
    let mut found: Option<DeviceValue<u64>> = None;
    time(session, "find_first_u32_at_1pct", len, 0.04, || {
        found = Some(reduce::find_first(stream, &input, predicate!(|number: u32| number == 1))?);
        Ok(())
    })?;
    let found = found.map(|found| found.get(stream)).transpose()?;
    expect("the first that passes", found.as_slice(), std::iter::once(place as u64))
}

pub(super) fn measure_segments(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    // The last of the equal segments may be shorter.
    let equal: Vec<u32> = (0..len).step_by(SEGMENT).chain([len]).map(|offset| offset as u32).collect();
    for (name, offsets) in [
        ("segmented_reduce_sum_u32_L64", equal),
        ("segmented_reduce_sum_u32_random_L64", super::random_offsets(len, SEGMENT)),
    ] {
        let on_device = stream.upload(&offsets)?;
        let mut sums = stream.uninit::<u32>(offsets.len() - 1)?;
        time(session, name, len, 4.0 + 8.0 / SEGMENT as f64, || {
            reduce::segmented(stream, &input, &on_device, &mut sums, Sum)
        })?;
        let sum = |segment: &[u32]| segment.iter().fold(0, |sum: u32, &number| sum.wrapping_add(number));
        let expected = offsets.windows(2).map(|ends| sum(&host[ends[0] as usize..ends[1] as usize]));
        expect("sums of segments", &sums.to_vec(stream)?, expected)?;
    }
    Ok(())
}
