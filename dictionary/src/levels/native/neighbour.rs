//! The next live keys: see [`neighbour`](crate::levels::device::query::neighbour).

use super::level::{CHUNK, NativeLevel, gallop, newest_first};
use super::lookup::{Answers, Codes, QUERY};
use super::{chunks, divide};
use crate::KeyCode;
use crate::levels::device::query::neighbour::FindNeighbours;
use bytemuck::Pod;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// # Safety
/// The contract of [`find_neighbours`](FindNeighbours).
pub unsafe fn find_neighbours<C: KeyCode, V: Pod>(kernel: FindNeighbours<C, V>, team: Team) {
    let FindNeighbours { levels, keys, below, out_keys, out_values, found, .. } = kernel;
    let sign = levels.sign();
    // SAFETY: nobody changes the levels or writes the keys.
    let (levels, keys) = unsafe { (newest_first(levels), keys.as_slice()) };
    let work = |range: Range<usize>| {
        for chunk in chunks(range, CHUNK) {
            let answers = nearest(&levels, &Codes::new(&keys[chunk.clone()], sign), below != 0);
            // SAFETY: the outputs are as long as the keys, and each query is in one chunk.
            unsafe { answers.write(&levels, chunk.clone(), out_values, found) };
            for (i, at) in chunk.enumerate() {
                let key = match answers.found >> i & 1 {
                    1 => sign.decode(levels[answers.levels[i] as usize].keys[answers.positions[i] as usize]),
                    _ => C::MIN,
                };
                // SAFETY: the same.
                unsafe { out_keys.as_mut_ptr().add(at).write(key) };
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { divide(team, keys.len(), QUERY * levels.len().max(1), work) };
}

/// Finds the next live element above each code, or below it.
///
/// Each round finds the next element, live or not, of all queries that have no answer yet.
fn nearest<C: KeyCode>(levels: &[NativeLevel<'_, C>], codes: &Codes<C>, below: bool) -> Answers {
    let mut answers = Answers::NONE;
    let mut limits = [C::MIN; CHUNK];
    let mut queries = [0u8; CHUNK];
    let mut open = codes.as_slice().len();
    limits[..open].copy_from_slice(codes.as_slice());
    queries.iter_mut().zip(0..).for_each(|(query, i)| *query = i);
    while open > 0 {
        let mut best = [(C::MIN, usize::MAX, 0); CHUNK];
        let mut counts = [0; CHUNK];
        for (index, level) in levels.iter().enumerate() {
            level.count_before(&limits[..open], !below, &mut counts);
            for (best, &count) in best[..open].iter_mut().zip(&counts) {
                // If the level has no such element, the index is out of range.
                let at = if below { (count as usize).wrapping_sub(1) } else { count as usize };
                let Some(&key) = level.keys.get(at) else { continue };
                let is_nearer = if below { key > best.0 } else { key < best.0 };
                if best.1 == usize::MAX || is_nearer {
                    *best = (key, index, at);
                }
            }
        }
        let mut still_open = 0;
        for i in 0..open {
            let (key, index, at) = best[i];
            let Some(level) = levels.get(index) else { continue };
            // The newest element with the key is the last of its run.
            let last = if below { at } else { gallop(level.keys, at, |other| other == key) - 1 } as u32;
            let query = queries[i] as usize;
            if level.is_dead(last) {
                (limits[still_open], queries[still_open]) = (key, query as u8);
                still_open += 1;
            } else {
                (answers.levels[query], answers.positions[query]) = (index as u8, last);
                answers.found |= 1 << query;
            }
        }
        open = still_open;
    }
    answers
}
