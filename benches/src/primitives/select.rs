//! Selection and partition of random numbers, half of which pass.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::select::{self, Masked};

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let odd = Masked::equal(1, 1);
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.zeroed::<u32>(len)?;
    let mut count = None;
    time(session, "select_if_50pct", len, 6.0, || {
        count = Some(select::select(stream, &input, &mut output, odd)?);
        Ok(())
    })?;
    let (passing, rest): (Vec<u32>, Vec<u32>) = host.iter().partition(|&number| number % 2 == 1);
    let untouched = std::iter::repeat_n(0, rest.len());
    expect("selection", &output.to_vec(stream)?, passing.iter().copied().chain(untouched))?;
    let counts = count.map(|count| count.as_slice().to_vec(stream)).transpose()?.unwrap_or_default();
    expect("count of the selection", &counts, std::iter::once(passing.len() as u64))?;

    time(session, "partition_two_buckets", len, 8.0, || select::partition(stream, &input, &mut output, odd).map(drop))?;
    expect("partition", &output.to_vec(stream)?, passing.iter().chain(&rest).copied())
}
