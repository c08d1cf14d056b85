//! Set operations on two sorted sequences without equal keys, which have a quarter of their keys in common.

use super::{expect, time_work};
use crate::data::random_u32;
use crate::session::Session;
use gpu_primitives::compare::Less;
use gpu_primitives::sets;

/// The distance of the keys of a side, on average. The keys at the same position are equal with a chance of one in as many.
const STEP: u32 = 4;

/// Measures with `len` keys on each side. The rate counts both.
pub(super) fn measure(session: &Session, len: usize) -> Result<(), crate::Error> {
    let stream = &session.stream;
    let [first, second] = [0, 1].map(|seed| -> Vec<u32> {
        let numbers = random_u32(len as u64 + seed, len);
        (0..).zip(numbers).map(|(index, number): (u32, u32)| STEP * index + number % STEP).collect()
    });
    let (a, b) = (stream.upload(&first)?, stream.upload(&second)?);
    let mut out = stream.uninit::<u32>(2 * len)?;
    let sides = || first.iter().copied().zip(second.iter().copied());
    // Each key is read, and what is in the result is written.
    let bytes = |found: usize| 4.0 + 4.0 * found as f64 / (2 * len) as f64;

    let expected: Vec<u32> = sides().filter(|(a, b)| a == b).map(|(a, _)| a).collect();
    time_work(session, "set_intersection_u32", len, 2 * len, bytes(expected.len()), || {
        sets::intersection(stream, &a, &b, &mut out, Less).map(drop)
    })?;
    expect("intersection", &out.slice(..expected.len())?.to_vec(stream)?, expected.into_iter())?;

    let both = |(a, b): (u32, u32)| [Some(a.min(b)), (a != b).then_some(a.max(b))];
    let expected: Vec<u32> = sides().flat_map(both).flatten().collect();
    time_work(session, "set_union_u32", len, 2 * len, bytes(expected.len()), || {
        sets::union(stream, &a, &b, &mut out, Less).map(drop)
    })?;
    expect("union", &out.slice(..expected.len())?.to_vec(stream)?, expected.into_iter())?;

    let expected: Vec<u32> = sides().filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    time_work(session, "set_difference_u32", len, 2 * len, bytes(expected.len()), || {
        sets::difference(stream, &a, &b, &mut out, Less).map(drop)
    })?;
    expect("difference", &out.slice(..expected.len())?.to_vec(stream)?, expected.into_iter())
}
