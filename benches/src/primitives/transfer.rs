//! The driver's copy, our copy and our fill.

use super::{expect, time};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::transfer;

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    time(session, "memcpy", len, 8.0, || output.copy_from(stream, &input))?;

    transfer::fill(stream, &mut output, 0)?;
    time(session, "copy", len, 8.0, || transfer::copy(stream, &input, &mut output))?;
    expect("copy", &output.to_vec(stream)?, host.iter().copied())?;

    time(session, "fill", len, 4.0, || transfer::fill(stream, &mut output, 7))?;
    expect("fill", &output.to_vec(stream)?, std::iter::repeat_n(7, len))
}
