//! Combines operands: see [`combine`](crate::levels::device::merge::combine).

use super::divide;
use super::level::gallop;
use crate::KeyCode;
use crate::levels::device::merge::combine::CombineRuns;
use crate::levels::device::payload::{NOTHING, OPERAND, PUT, Payload, TOMBSTONE};
use gpu_primitives::kernel::{RegisterRepr, Team};
use gpu_primitives::monoid::{Combine, HoleMonoid};
use gpu_primitives::view::{Global, GlobalMut};
use std::ops::Range;

/// # Safety
/// The contract of [`combine_runs`](CombineRuns).
pub unsafe fn combine_runs<C: KeyCode, P: Payload<Value: RegisterRepr>, const ITEMS: usize>(
    kernel: CombineRuns<C, P, ITEMS>,
    team: Team,
) {
    let CombineRuns { keys, values, marks, only_operands, operation, .. } = kernel;
    // SAFETY: guaranteed by the caller.
    unsafe { combine(keys, values, marks, only_operands != 0, operation, team) };
}

/// Combines the elements of each key, and writes the new kinds to memory of its own. Then writes the marks: two parts may have
/// elements in one word of them.
///
/// # Safety
/// The contract of [`combine_runs`](CombineRuns).
unsafe fn combine<C: KeyCode, V: RegisterRepr>(
    keys: Global<C>,
    values: GlobalMut<V>,
    marks: GlobalMut<u32>,
    only_operands: bool,
    operation: HoleMonoid<V>,
    team: Team,
) {
    // SAFETY: nobody writes the keys.
    let keys = unsafe { keys.as_slice() };
    let words = keys.len().div_ceil(32);
    let kind_of = |at: usize| {
        if only_operands {
            return OPERAND;
        }
        // SAFETY: there are two bits per element, which are not written before all are read.
        let [dead, operand] = [0, words].map(|array| unsafe { marks.as_mut_ptr().add(array + at / 32).read() });
        (dead >> (at % 32) & 1) | (OPERAND * (operand >> (at % 32) & 1))
    };
    let mut kinds = vec![0u8; keys.len()];
    let to_kinds = kinds.as_mut_ptr();
    let work = |range: Range<usize>| {
        let mut at = range.start;
        // The part before has the key that it begins.
        if at > 0 && at < range.end && keys[at] == keys[at - 1] {
            at = gallop(keys, at, |other| other == keys[range.start]);
        }
        while at < range.end {
            let mut end = at + 1;
            let mut kind = kind_of(at);
            if end < keys.len() && keys[end] == keys[at] {
                end = gallop(keys, end, |other| other == keys[at]);
                // SAFETY: there are as many values as keys. No other part has elements of this key.
                let values = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().add(at), end - at) };
                let value;
                (value, kind) = if only_operands {
                    (operation.fold(values[0], &values[1..]), OPERAND)
                } else {
                    old_to_new(values, at, kind_of, operation)
                };
                let (last, stale) = values.split_last_mut().expect("there are several");
                *last = value;
                stale.fill(operation.identity());
                // SAFETY: there is a kind per element. No other part has elements of this key.
                unsafe { to_kinds.add(at).write_bytes(NOTHING as u8, stale.len()) };
            }
            // SAFETY: the same.
            unsafe { to_kinds.add(end - 1).write(kind as u8) };
            at = end;
        }
    };
    // SAFETY: the body captures arguments and plain data. A key is combined by the part where it begins.
    unsafe { divide(team, keys.len(), 1, work) };
    // SAFETY: there are two words of marks per 32 elements.
    unsafe { write_marks(&kinds, marks, team) };
}

/// Combines elements with one key, from old to new. Returns the value and the kind.
fn old_to_new<V: RegisterRepr>(
    values: &[V],
    start: usize,
    kind_of: impl Fn(usize) -> u32,
    operation: HoleMonoid<V>,
) -> (V, u32) {
    let (mut value, mut kind) = (values[0], kind_of(start));
    for (i, &newer) in values.iter().enumerate().skip(1) {
        (value, kind) = match (kind, kind_of(start + i)) {
            (_, NOTHING) => (value, kind),
            (TOMBSTONE, OPERAND) => (newer, PUT),
            (PUT | OPERAND, OPERAND) => (operation.combine(value, newer), kind),
            (_, newer_kind) => (newer, newer_kind),
        };
    }
    (value, kind)
}

/// Writes the marks of all elements.
///
/// # Safety
/// There are two words of marks per 32 elements, and nobody else uses them.
unsafe fn write_marks(kinds: &[u8], marks: GlobalMut<u32>, team: Team) {
    let words = kinds.len().div_ceil(32);
    let work = |range: Range<usize>| {
        for (word, kinds) in kinds.chunks(32).enumerate().skip(range.start).take(range.len()) {
            let mut marked = [0; 2];
            for (i, &kind) in kinds.iter().enumerate() {
                marked[0] |= u32::from(kind & 1) << i;
                marked[1] |= u32::from(kind >> 1 & 1) << i;
            }
            // SAFETY: guaranteed by the caller; each word is in one part.
            unsafe {
                marks.as_mut_ptr().add(word).write(marked[0]);
                marks.as_mut_ptr().add(words + word).write(marked[1]);
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes words of its own.
    unsafe { divide(team, words, 32, work) };
}
