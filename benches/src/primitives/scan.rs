//! The exclusive sum.

use super::{Table, expect};
use crate::data::random_u32;
use gpu_primitives::scan;

pub(super) fn measure(table: &mut Table<'_>, len: usize) -> Result<(), crate::Error> {
    let stream = table.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.uninit::<u32>(len)?;
    table.time("exclusive_sum_u32", len, 8.0, || scan::exclusive_sum(stream, &input, &mut output))?;
    let sums = host.iter().scan(0u32, |sum, &number| {
        let before = *sum;
        *sum = before.wrapping_add(number);
        Some(before)
    });
    expect("exclusive sum", &output.to_vec(stream)?, sums)
}
