//! The exclusive sum.

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
