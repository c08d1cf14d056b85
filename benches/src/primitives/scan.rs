//! The exclusive sum of 32-bit and of 64-bit numbers.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::scan;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    time(session, "exclusive_sum_u32", len, 8.0, || scan::exclusive_sum(stream, &input, &mut output))?;
    let sums = host.iter().scan(0u32, |sum, &number| {
        let before = *sum;
        *sum = before.wrapping_add(number);
        Some(before)
    });
    expect("exclusive sum", &output.to_vec(stream)?, sums)
}

pub(super) fn measure_u64(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host: Vec<u64> = random_u32(len as u64, len).into_iter().map(|number| u64::from(number) << 20).collect();
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u64>(len)?;
    time(session, "exclusive_sum_u64", len, 16.0, || scan::exclusive_sum(stream, &input, &mut output))?;
    let sums = host.iter().scan(0u64, |sum, &number| Some(std::mem::replace(sum, sum.wrapping_add(number))));
    expect("exclusive sum of u64", &output.to_vec(stream)?, sums)
}
