//! The bodies of the merge's kernels for the CPU. See [`kernel`](super::device::kernel), [`runs`](super::device::runs) and
//! [`place`](super::device::place) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

pub(crate) mod splits;

use super::device::kernel::MergeTiles;
use super::device::place::PlaceRuns;
use super::device::runs::{RunsTiles, TABLE_WORDS, tile_len};
use super::device::tile::TileSplits;
use crate::compare::KeyOrder;
use crate::kernel::Team;
use crate::pairs::PairsMut;
use bytemuck::Pod;

/// Merges each tile by a walk through both sides.
///
/// # Safety
/// The contract of [`merge_tiles`](super::device::kernel::MergeTiles).
pub(super) unsafe fn merge_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    kernel: MergeTiles<K, V, C, THREADS, ITEMS>,
    team: Team,
) {
    let MergeTiles { a, b, out, compare, splits: TileSplits { boundaries: splits, verdicts }, .. } = kernel;
    let (PairsMut { keys: out_keys, values: out_values }, a_values, b_values) = (out, a.values, b.values);
    let tile = THREADS as usize * ITEMS;
    // SAFETY: nothing writes these, nor the numbers of keys.
    let (a, b, splits) = unsafe { (a.keys.get().as_slice(), b.keys.get().as_slice(), splits.as_slice()) };
    // SAFETY: the same.
    let (a_values, b_values, verdicts) = unsafe { (a_values.as_slice(), b_values.as_slice(), verdicts.as_slice()) };
    let is_contradictory = verdicts.iter().any(|&verdict| verdict != 0);
    let total = a.len() + b.len();
    // SAFETY: it is called with the positions of one tile, which the outputs have and no other tile writes.
    let write = |at: usize, key: K, value: Option<&V>| unsafe {
        out_keys.as_mut_ptr().add(at).write(key);
        if let Some(value) = value.filter(|_| size_of::<V>() > 0) {
            out_values.as_mut_ptr().add(at).write(*value);
        }
    };
    let work = |index: usize| {
        let (start, end) = (index * tile, total.min((index + 1) * tile));
        let boundary = |at: usize, position: usize| {
            let share = if is_contradictory { position } else { splits[at] as usize };
            share.clamp(position.saturating_sub(b.len()), position.min(a.len()))
        };
        let (a_start, a_end) = (boundary(index, start), boundary(index + 1, end));
        let (b_start, b_end) = (start - a_start, end - a_end);
        if a_end < a_start || b_end < b_start {
            // The comparator has contradicted itself, and no verdict tells. Items are taken in the order of the sides, by
            // this tile alone: every output is written.
            for at in start..end {
                let (keys, values, from) = if at < a.len() { (a, a_values, at) } else { (b, b_values, at - a.len()) };
                write(at, keys[from], values.get(from));
            }
            return;
        }
        let (mut i, mut j, mut at) = (a_start, b_start, start);
        while i < a_end && j < b_end {
            let takes_b = compare.less(b[j], a[i]);
            // Selected, not branched to: which side comes next cannot be predicted.
            let key = if takes_b { b[j] } else { a[i] };
            let (values, from) = if takes_b { (b_values, j) } else { (a_values, i) };
            write(at, key, values.get(from));
            (i, j, at) = (i + usize::from(!takes_b), j + usize::from(takes_b), at + 1);
        }
        for (keys, values, rest) in [(a, a_values, i..a_end), (b, b_values, j..b_end)] {
            for from in rest {
                write(at, keys[from], values.get(from));
                at += 1;
            }
        }
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.each(total.div_ceil(tile), work) };
}

/// Merges each tile in rounds, two pieces at a time.
///
/// # Safety
/// The contract of [`runs_tiles`](super::device::runs::RunsTiles).
pub(super) unsafe fn runs_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    kernel: RunsTiles<K, V, C, THREADS, ITEMS>,
    team: Team,
) {
    let RunsTiles { runs, rounds, out, compare, splits, verdicts, .. } = kernel;
    let PairsMut { keys: out_keys, values: out_values } = out;
    let tile = tile_len(THREADS, ITEMS, rounds);
    // SAFETY: nothing writes these.
    let (splits, verdicts) = unsafe { (splits.as_slice(), verdicts.as_slice()) };
    let runs = runs as usize;
    let len_of = |run: usize| splits[3 * run + 2] as usize;
    let tiles = out_keys.len().div_ceil(tile);
    // A comparator that contradicts itself may also give boundaries that no verdict tells. Then no tile relies on them:
    // two tiles would write the same outputs.
    let share = |at: usize, run: usize| (splits[TABLE_WORDS + at * runs + run] as usize).min(len_of(run));
    let is_contradictory = verdicts.iter().any(|&verdict| verdict != 0)
        || (0..tiles).any(|at| (0..runs).any(|run| share(at + 1, run) < share(at, run)));
    let work = |index: usize| {
        // What the tile takes of each run.
        let mut shares: Vec<(usize, usize)> = (0..runs).map(|run| (share(index, run), share(index + 1, run))).collect();
        if is_contradictory {
            let mut before = 0;
            for (run, share) in shares.iter_mut().enumerate() {
                let within = |position: usize| position.saturating_sub(before).min(len_of(run));
                *share = (within(index * tile), within((index + 1) * tile));
                before += len_of(run);
            }
        }
        let start = shares.iter().map(|(low, _)| low).sum::<usize>();
        let mut items: Vec<(K, V)> = Vec::with_capacity(shares.iter().map(|(low, high)| high - low).sum());
        let mut ends = Vec::with_capacity(runs);
        for (run, &(low, high)) in shares.iter().enumerate() {
            let keys = std::ptr::with_exposed_provenance::<K>(splits[3 * run] as usize);
            let values = std::ptr::with_exposed_provenance::<V>(splits[3 * run + 1] as usize);
            items.extend((low..high).map(|at| {
                // SAFETY: the table has the addresses of the runs, which have this item.
                unsafe { (keys.add(at).read(), if size_of::<V>() > 0 { values.add(at).read() } else { V::zeroed() }) }
            }));
            ends.push(items.len());
        }
        let merged = merge_pieces(items, ends, |a, b| compare.less(a.0, b.0));
        let room = out_keys.len().saturating_sub(start);
        for (i, (key, value)) in merged.into_iter().take(room).enumerate() {
            // SAFETY: the output has this position, and no other tile writes it.
            unsafe {
                out_keys.as_mut_ptr().add(start + i).write(key);
                if size_of::<V>() > 0 {
                    out_values.as_mut_ptr().add(start + i).write(value);
                }
            }
        }
    };
    // SAFETY: the body captures arguments, plain data and locks. Each call writes outputs of its own.
    unsafe { team.each(tiles, work) };
}

/// Merges pieces that follow each other, each up to its end, in rounds. Of equal items, those of earlier pieces come
/// first.
pub(crate) fn merge_pieces<T: Copy>(
    mut items: Vec<T>,
    mut ends: Vec<usize>,
    is_less: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut merged = Vec::with_capacity(items.len());
    while ends.len() > 1 {
        merged.clear();
        let mut start = 0;
        let mut merged_ends = Vec::with_capacity(ends.len().div_ceil(2));
        for pair in ends.chunks(2) {
            let (middle, end) = (pair[0], *pair.last().expect("chunks are not empty"));
            let (mut a, mut b) = (start, middle);
            while a < middle && b < end {
                let takes_b = is_less(&items[b], &items[a]);
                merged.push(items[if takes_b { b } else { a }]);
                (a, b) = (a + usize::from(!takes_b), b + usize::from(takes_b));
            }
            merged.extend_from_slice(&items[a..middle]);
            merged.extend_from_slice(&items[b..end]);
            merged_ends.push(end);
            start = end;
        }
        ends = merged_ends;
        std::mem::swap(&mut items, &mut merged);
    }
    items
}

/// Each worker merges the items between two keys, in rounds.
///
/// # Safety
/// The contract of [`place_runs`](super::device::place::PlaceRuns).
pub(super) unsafe fn place_runs<K: Pod, C: KeyOrder<K>>(kernel: PlaceRuns<K, C>, team: Team) {
    let PlaceRuns { keys, limits, values, value_bytes, runs, out_keys, out_values, compare, .. } = kernel;
    let bytes = value_bytes as usize;
    // SAFETY: nothing writes the runs, nor their lengths.
    let keys = |run| unsafe { limits.first(keys.get(run), run).as_slice() };
    let runs: Vec<(&[K], *const u8)> = (0..runs).map(|run| (keys(run), values.get(run).as_ptr())).collect();
    let Some((longest, _)) = runs.iter().max_by_key(|(keys, _)| keys.len()) else { return };
    let parts = team.parts(runs.iter().map(|(keys, _)| keys.len()).sum());
    // For each part and run, where the part begins: at the first item that does not come before its first key, which is
    // one of the longest run. Equal items are in the same part.
    let boundary = |part: usize| -> Vec<usize> {
        let first = |keys: &[K]| {
            let key = longest[longest.len() * part / parts];
            keys.partition_point(|&other| compare.less(other, key))
        };
        runs.iter()
            .map(|(keys, _)| match part {
                0 => 0,
                part if part == parts => keys.len(),
                _ => first(keys),
            })
            .collect()
    };
    let mut boundaries: Vec<Vec<usize>> = (0..=parts).map(boundary).collect();
    // A comparator that contradicts itself may put them in any order.
    let mut least = vec![0; runs.len()];
    for starts in &mut boundaries {
        for (start, least) in starts.iter_mut().zip(&mut least) {
            *start = (*start).max(*least);
            *least = *start;
        }
    }
    let work = |part: usize| {
        let mut items: Vec<(K, *const u8)> = Vec::new();
        let mut ends = Vec::with_capacity(runs.len());
        for (run, &(keys, values)) in runs.iter().enumerate() {
            let range = boundaries[part][run]..boundaries[part + 1][run];
            items.extend(range.map(|at| (keys[at], values.wrapping_add(at * bytes))));
            ends.push(items.len());
        }
        let start = boundaries[part].iter().sum::<usize>();
        for (i, (key, value)) in merge_pieces(items, ends, |a, b| compare.less(a.0, b.0)).into_iter().enumerate() {
            let at = start + i;
            // SAFETY: the output is as long as all runs, there are as many values as keys, and no other part has this
            // position.
            unsafe {
                out_keys.as_mut_ptr().add(at).write(key);
                let to = out_values.as_mut_ptr().add(at * bytes);
                // The usual sizes as single accesses.
                match bytes {
                    0 => {}
                    4 => to.cast::<[u8; 4]>().write(*value.cast()),
                    8 => to.cast::<[u8; 8]>().write(*value.cast()),
                    _ => to.copy_from_nonoverlapping(value, bytes),
                }
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(parts, work) };
}
