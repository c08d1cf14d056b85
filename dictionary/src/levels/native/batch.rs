//! Merges a batch into a level of distinct keys: see [`batch`](crate::levels::device::merge::batch).

use super::level::gallop;
use crate::KeyCode;
use crate::levels::device::merge::batch::MergeBatch;
use bytemuck::Pod;
use gpu_primitives::kernel::Team;
use std::ops::Range;

/// Each worker counts the live elements between two keys, then writes them after those of the parts before.
///
/// The keys of the batch are searched for in the level. What is between them is copied.
///
/// # Safety
/// The contract of [`merge_batch`](MergeBatch).
pub unsafe fn merge_batch<C: KeyCode, V: Pod, const ITEMS: usize>(kernel: MergeBatch<C, V, ITEMS>, team: Team) {
    let MergeBatch { level, batch, sign, out, live_count, .. } = kernel;
    // SAFETY: nobody writes the inputs.
    let (keys, values) = unsafe { (level.keys.as_slice(), level.values.as_slice()) };
    // SAFETY: the same.
    let (batch, batch_values, marks) =
        unsafe { (batch.elements.keys.as_slice(), batch.elements.values.as_slice(), batch.marks.as_slice()) };
    let parts = parts(keys, batch, marks, team);
    let work = |part: usize| {
        let Part { level, batch: own, start, .. } = parts[part].clone();
        let mut at = start;
        for_each_run(keys, level, batch, own, |old, new| {
            // SAFETY: the output has room for all elements, and parts write different ones.
            unsafe {
                for (i, &key) in keys[old.clone()].iter().enumerate() {
                    out.keys.as_mut_ptr().add(at + i).write(sign.decode(key));
                }
                if size_of::<V>() > 0 {
                    let from = &values[old.clone()];
                    out.values.as_mut_ptr().add(at).copy_from_nonoverlapping(from.as_ptr(), from.len());
                }
                at += old.len();
                if let Some(new) = new.filter(|&new| !is_dead(marks, new)) {
                    out.keys.as_mut_ptr().add(at).write(sign.decode(batch[new]));
                    if size_of::<V>() > 0 {
                        out.values.as_mut_ptr().add(at).write(batch_values[new]);
                    }
                    at += 1;
                }
            }
        });
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(parts.len(), work) };
    let live = parts.last().map_or(0, |part| part.start + part.live);
    // SAFETY: there is one count.
    unsafe { live_count.as_mut_ptr().write(live as u64) };
}

/// What lies between two keys.
#[derive(Clone)]
struct Part {
    /// The elements of the level.
    level: Range<usize>,
    /// The elements of the batch.
    batch: Range<usize>,
    /// Where the live elements go.
    start: usize,
    /// The number of live elements.
    live: usize,
}

#[inline(always)]
fn is_dead(marks: &[u32], at: usize) -> bool {
    !marks.is_empty() && marks[at / 32] >> (at % 32) & 1 == 1
}

/// Divides the level and the batch between keys of the level, and counts the live elements.
fn parts<C: KeyCode>(keys: &[C], batch: &[C], marks: &[u32], team: Team) -> Vec<Part> {
    let count = team.parts(keys.len() + batch.len());
    let cut = |part: usize| {
        let at = keys.len() * part / count;
        let before = match keys.get(at) {
            Some(&key) if part > 0 => batch.partition_point(|&other| other < key),
            _ if part > 0 => batch.len(),
            _ => 0,
        };
        (at, before)
    };
    let mut cuts: Vec<(usize, usize)> = (0..=count).map(cut).collect();
    // If the batch does not ascend, the parts have its elements once all the same.
    for i in 1..cuts.len() {
        cuts[i].1 = cuts[i].1.max(cuts[i - 1].1);
    }
    let part = |ends: &[(usize, usize)]| {
        let (level, batch) = (ends[0].0..ends[1].0, ends[0].1..ends[1].1);
        Part { level, batch, start: 0, live: 0 }
    };
    let mut parts: Vec<Part> = cuts.windows(2).map(part).collect();
    let to_parts = parts.as_mut_ptr();
    let work = |part: usize| {
        // SAFETY: there is such a part, and no other call uses it.
        let part = unsafe { &mut *to_parts.add(part) };
        for_each_run(keys, part.level.clone(), batch, part.batch.clone(), |old, new| {
            part.live += old.len() + usize::from(new.is_some_and(|new| !is_dead(marks, new)));
        });
    };
    // SAFETY: the body captures plain data. Each call changes a part of its own.
    unsafe { team.each(count, work) };
    let mut start = 0;
    for part in &mut parts {
        part.start = start;
        start += part.live;
    }
    parts
}

/// Calls `visit` with elements of the level that are kept, and with the newest element of the batch that has the next key, if
/// there is one.
#[inline(always)]
fn for_each_run<C: KeyCode>(
    keys: &[C],
    level: Range<usize>,
    batch: &[C],
    own: Range<usize>,
    mut visit: impl FnMut(Range<usize>, Option<usize>),
) {
    let keys = &keys[..level.end];
    let (mut old, mut new) = (level.start, own.start);
    while new < own.end {
        let key = batch[new];
        // The last one with the key is the newest.
        while new + 1 < own.end && batch[new + 1] == key {
            new += 1;
        }
        let end = gallop(keys, old, |other| other < key);
        visit(old..end, Some(new));
        old = end + usize::from(keys.get(end) == Some(&key));
        new += 1;
    }
    visit(old..keys.len(), None);
}
