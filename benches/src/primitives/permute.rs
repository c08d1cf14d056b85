//! Gathers from random positions, scatters to the positions of a permutation, and copies of ranges.

use super::{expect, time};
use crate::data::{random_below, random_u32};
use crate::session::Session;
use gpu_primitives::{permute, ranges};

pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let host = random_u32(len as u64, len);
    let input = stream.upload(&host)?;
    let mut output = stream.zeroed::<u32>(len)?;

    let from: Vec<u32> = random_below(len as u64 + 1, len).take(len).map(|position| position as u32).collect();
    let positions = stream.upload(&from)?;
    time(session, "gather_u32", len, 12.0, || permute::gather(stream, &input, &positions, &mut output).map(drop))?;
    expect("gather", &output.to_vec(stream)?, from.iter().map(|&position| host[position as usize]))?;

    let to = permutation(len);
    let positions = stream.upload(&to)?;
    time(session, "scatter_u32", len, 12.0, || permute::scatter(stream, &input, &positions, &mut output).map(drop))?;
    let found = output.to_vec(stream)?;
    expect("scatter", &host, to.iter().map(|&position| found[position as usize]))?;
    copies(session, &host)
}

/// The length of the ranges that are copied.
const RANGE: usize = 1024;

/// Copies ranges from one end of a slice to the other.
fn copies(session: &Session, host: &[u32]) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let count = host.len() / RANGE;
    let whole = count * RANGE;
    let input = stream.upload(host)?;
    let starts: Vec<u64> = (0..count).map(|range| (range * RANGE) as u64).collect();
    let places: Vec<u64> = starts.iter().rev().copied().collect();
    let [starts, places, lengths] = [starts, places, vec![RANGE as u64; count]].map(|numbers| stream.upload(&numbers));
    let (starts, places, lengths) = (starts?, places?, lengths?);
    let mut output = stream.zeroed::<u32>(whole)?;
    time(session, "copy_ranges_of_1024_u32", whole, 8.0, || {
        ranges::copy(stream, &input, &starts, &mut output, &places, &lengths).map(drop)
    })?;
    let expected = host[..whole].chunks_exact(RANGE).rev().flatten().copied();
    expect("copies of ranges", &output.to_vec(stream)?, expected)
}

/// Returns all positions, each once, in an order that jumps.
fn permutation(len: usize) -> Vec<u32> {
    // An odd multiple modulo a power of two is a permutation.
    let size = len.next_power_of_two();
    let place = |index: usize| index.wrapping_mul(0x9E37_79B1).wrapping_add(12_345) & (size - 1);
    (0..size).map(place).filter(|place| *place < len).map(|place| place as u32).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_position_occurs_once() {
        for len in [1, 2, 1000, 1024] {
            let mut positions = super::permutation(len);
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..len as u32), "{len}");
        }
    }
}
