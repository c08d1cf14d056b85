//! The driver's copy, our copy, our fill.

use super::{Table, expect};
use crate::data::random_u32;
use gpu_primitives::transfer;

pub(super) fn measure(table: &mut Table<'_>, len: usize) -> Result<(), crate::Error> {
    let stream = table.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    table.time("memcpy", len, 8.0, || output.copy_from(stream, &input))?;

    transfer::fill(stream, &mut output, 0)?;
    table.time("copy", len, 8.0, || transfer::copy(stream, &input, &mut output))?;
    expect("copy", &output.to_vec(stream)?, host.iter().copied())?;

    table.time("fill", len, 4.0, || transfer::fill(stream, &mut output, 7))?;
    expect("fill", &output.to_vec(stream)?, std::iter::repeat_n(7, len))
}
