//! The differences of neighbours.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::operator::map;
use gpu_primitives::runs;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    time(session, "adjacent_difference_u32", len, 8.0, || {
        runs::adjacent_difference(
            stream,
            &input,
            &mut output,
            map!(|number: u32, before: u32| -> u32 { number.wrapping_sub(before) }),
        )
    })?;
    let differences = host.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
    expect("differences", &output.to_vec(stream)?, host.first().copied().into_iter().chain(differences))
}
