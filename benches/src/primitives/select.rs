//! Selection and partition of random numbers: half of them pass, or a third goes to each of three parts.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::multisplit;
use gpu_primitives::operator::bucket;
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
    expect("partition", &output.to_vec(stream)?, passing.iter().chain(&rest).copied())?;

    let flags: Vec<u8> = host.iter().map(|number| (number % 2) as u8).collect();
    let flags = stream.upload(&flags)?;
    time(session, "select_flagged_50pct", len, 7.0, || select::flagged(stream, &input, &flags, &mut output).map(drop))?;
    expect("flagged numbers", &output.slice(..passing.len())?.to_vec(stream)?, passing.iter().copied())?;

    time(session, "partition_three_way", len, 8.0, || {
        multisplit::keys(stream, &input, &mut output, 3, bucket!(|x: u32| x / 0x5555_5556)).map(drop)
    })?;
    let part = |wanted: u32| host.iter().copied().filter(move |number| number / 0x5555_5556 == wanted);
    expect("three parts", &output.to_vec(stream)?, part(0).chain(part(1)).chain(part(2)))
}
