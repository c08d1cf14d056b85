//! The bodies of the kernels of runs for the CPU. See [`compact`](super::device::compact), [`reduce`](super::device::reduce) and
//! [`expand`](super::device::expand) for what they do and for their contracts.

#![deny(unsafe_op_in_unsafe_fn)]

use super::device::compact::CompactRuns;
use super::device::expand::{ExpandRuns, SplitRuns};
use super::device::hashed::{CountDistinct, EMPTY};
use super::device::open::{Join, Open};
use super::device::reduce::{Heads, ReduceRuns};
use super::device::run_outputs::RunOutputs;
use crate::block::native::{Tile, WARP, scan_lanes, tile_prefixes};
use crate::hole::RegisterRepr;
use crate::input::Input;
use crate::kernel::Team;
use crate::monoid::Combine;
use crate::segments::native::{invert, pieces};
use crate::select::native::{compact, write_kept};
use crate::sort::ShortCode;
use bytemuck::Pod;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// # Safety
/// The contract of [`compact_runs`](super::device::compact::CompactRuns).
pub(super) unsafe fn compact_runs<
    K: RegisterRepr,
    I: Input<K>,
    X: RunOutputs,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: CompactRuns<K, I, X, THREADS, VEC, ROWS>,
    team: Team,
) {
    let CompactRuns { input, equality, last, output, beside, count, .. } = kernel;
    // SAFETY: nothing writes the length.
    let len = unsafe { input.count() };
    let test = |range: Range<usize>, flags: &mut [u8]| {
        // The items of the range, and the neighbour outside.
        let (first, end) =
            if last != 0 { (range.start, len.min(range.end + 1)) } else { (range.start.saturating_sub(1), range.end) };
        let mut room = Vec::new();
        // SAFETY: the items exist, and nothing writes what the input reads.
        let items = unsafe { input.elements(first, end - first, &mut room) };
        // The first item of the input begins a run, and the last one ends one.
        let compared = match last {
            0 => usize::from(range.start == 0)..flags.len(),
            _ => 0..flags.len() - usize::from(range.end == len),
        };
        equality.neighbours(items, &mut flags[compared.clone()]);
        invert(&mut flags[compared]);
        if last != 0 && range.end == len {
            flags[range.len() - 1] = 1;
        } else if last == 0 && range.start == 0 {
            flags[0] = 1;
        }
    };
    let write = |range: Range<usize>, flags: &[u8], places: Range<usize>| {
        let mut room = Vec::new();
        // SAFETY: the same; the output has room for all items, and each place is written by one call.
        unsafe {
            let items = input.elements(range.start, range.len(), &mut room);
            write_kept(items, &flags[range.clone()], output.as_mut_ptr().add(places.start), places.len());
            beside.write_natively(range, flags, places);
        }
    };
    // SAFETY: the functions capture arguments, and places are written once.
    let (flags, total) = unsafe { compact(team, len, &test, &write) };
    // SAFETY: there is one count. The flags are those of all items.
    unsafe {
        count.as_mut_ptr().write(total as u64);
        beside.close_natively(&flags, total);
    }
}

/// First finds what each thread and each tile has, then what comes before each tile, then goes over the values again.
///
/// # Safety
/// The contract of [`reduce_runs`](super::device::reduce::ReduceRuns).
pub(super) unsafe fn reduce_runs<
    S: Heads,
    V: Pod,
    I: Input<V>,
    Op: Combine<V>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    kernel: ReduceRuns<S, V, I, Op, THREADS, VEC, ROWS>,
    team: Team,
) {
    let ReduceRuns { heads, values, totals, op, count, .. } = kernel;
    let (threads, items) = (THREADS as usize, VEC * ROWS);
    let tile_len = threads * items;
    // SAFETY: nothing writes the lengths.
    let len = unsafe { values.count().min(heads.count()) };
    if len == 0 {
        // SAFETY: there is one count.
        unsafe { count.as_mut_ptr().write(0) };
        return;
    }
    let join = Join(op);
    let tiles = len.div_ceil(tile_len);
    // SAFETY: the items exist, and nothing writes them.
    let heads_of =
        |tile: usize| unsafe { heads.of_tile(tile * tile_len, (len - tile * tile_len).min(tile_len), tile_len) };
    // For each thread, what it has and what the lanes before it have.
    let lanes_of = |elements: &[V], heads: &[u8]| -> Vec<Open<V>> {
        let mut lanes = Vec::with_capacity(threads);
        for thread in 0..threads {
            let (mut total, mut begin) = (op.identity(), 0);
            for (piece, is_head) in pieces(heads, thread * items..(thread + 1) * items) {
                total = if is_head {
                    op.fold(elements[piece.start], &elements[piece.start + 1..piece.end])
                } else {
                    op.fold(total, &elements[piece])
                };
                begin += u64::from(is_head);
            }
            lanes.push(Open::new(begin, total));
        }
        for warp in lanes.chunks_mut(WARP) {
            scan_lanes(warp, join);
        }
        lanes
    };

    let mut lanes = vec![join.identity(); tiles * threads];
    let to_lanes = lanes.as_mut_ptr();
    let combine = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: nothing writes the values.
        let lanes = lanes_of(unsafe { loaded.load(values, len, tile * tile_len, tile_len, op) }, &heads_of(tile));
        // SAFETY: each tile has its own lanes.
        unsafe { to_lanes.add(tile * threads).copy_from_nonoverlapping(lanes.as_ptr(), threads) };
    };
    // SAFETY: the body captures arguments and plain data. Each call writes lanes of its own.
    unsafe { team.each(tiles, combine) };

    let mut tile_totals = vec![join.identity(); tiles];
    for (tile, total) in tile_totals.iter_mut().enumerate() {
        for warp in lanes[tile * threads..][..threads].chunks(WARP) {
            *total = join.combine(*total, warp[WARP - 1]);
        }
    }
    let last_tile = tile_totals[tiles - 1];
    let prefixes = tile_prefixes(tile_totals, join);
    let write = |tile: usize| {
        let mut loaded = Tile::new();
        // SAFETY: nothing writes the values.
        let elements = unsafe { loaded.load(values, len, tile * tile_len, tile_len, op) };
        let (flags, lanes) = (heads_of(tile), &lanes[tile * threads..][..threads]);
        let (before_tile, mut before_warp) = (prefixes[tile], join.identity());
        let mut rank = before_tile.heads() as usize;
        for thread in 0..threads {
            let below = if thread % WARP == 0 { join.identity() } else { lanes[thread - 1] };
            let mut total = join.combine(before_warp, below).total;
            for (piece, is_head) in pieces(&flags, thread * items..(thread + 1) * items) {
                if !is_head {
                    total = op.fold(total, &elements[piece]);
                    continue;
                }
                // The first run that ends in the tile began before it.
                if rank == before_tile.heads() as usize {
                    total = op.combine(before_tile.total, total);
                }
                // SAFETY: the outputs have room for as many runs as values, and no other tile writes these. The very first
                // run ends nothing.
                unsafe {
                    if rank > 0 {
                        totals.as_mut_ptr().add(rank - 1).write(total);
                    }
                    if S::IS_WRITTEN {
                        let item = heads.items().as_ptr().add(tile * tile_len + piece.start).read();
                        heads.output().as_mut_ptr().add(rank).write(item);
                    }
                }
                rank += 1;
                total = op.fold(elements[piece.start], &elements[piece.start + 1..piece.end]);
            }
            if thread % WARP == WARP - 1 {
                before_warp = join.combine(before_warp, lanes[thread]);
            }
        }
    };
    // SAFETY: the body captures arguments and plain data. Each call writes outputs of its own.
    unsafe { team.each(tiles, write) };
    let all = join.combine(prefixes[tiles - 1], last_tile);
    // SAFETY: there is one count, and at least one run.
    unsafe {
        count.as_mut_ptr().write(all.heads());
        totals.as_mut_ptr().add(all.heads() as usize - 1).write(all.total);
    }
}

/// Each part counts for itself. The slots are filled one after the other.
///
/// # Safety
/// The contract of [`count_distinct`](super::device::hashed::CountDistinct).
pub(super) unsafe fn count_distinct<K: ShortCode>(kernel: CountDistinct<K>, team: Team) {
    let CountDistinct { keys, sign, codes, counts, is_full, .. } = kernel;
    // SAFETY: nothing writes the keys.
    let keys = unsafe { keys.as_slice() };
    let slots = codes.len() - 1;
    let all = Mutex::new(HashMap::<u64, u64>::new());
    let count: &dyn Fn(usize, Range<usize>) = &|_, range| {
        let mut own = HashMap::<u64, u64>::new();
        for &key in &keys[range] {
            *own.entry(sign.encode(key).halves()[0]).or_insert(0) += 1;
            // `EMPTY` may be among them, which takes none of the slots.
            if own.len() > slots + 1 {
                break;
            }
        }
        let mut all = all.lock().expect("nothing panics while it has the lock");
        for (code, count) in own {
            *all.entry(code).or_insert(0) += count;
        }
    };
    // SAFETY: the body captures arguments, plain data and locks.
    unsafe { team.divide(keys.len(), count) };
    let mut all = all.into_inner().expect("all parts have returned");
    // SAFETY: the buffers have these slots, and nothing else uses them.
    unsafe {
        counts.as_mut_ptr().write(all.remove(&EMPTY).unwrap_or(0));
        is_full.as_mut_ptr().write((all.len() > slots) as u32);
        for (slot, (code, count)) in all.into_iter().take(slots).enumerate() {
            codes.as_mut_ptr().add(1 + slot).write(code);
            counts.as_mut_ptr().add(1 + slot).write(count);
        }
    }
}

/// # Safety
/// The contract of [`split_runs`](super::device::expand::SplitRuns).
pub(super) unsafe fn split_runs(kernel: SplitRuns, _: Team) {
    let SplitRuns { ends, runs, total, .. } = kernel;
    // SAFETY: there are as many ends as runs, and one total.
    unsafe {
        let last = ends.as_slice()[..runs.get()].last();
        total.as_mut_ptr().write(last.copied().unwrap_or(0));
    }
}

/// Each worker writes a part of the outputs.
///
/// # Safety
/// The contract of [`expand_runs`](super::device::expand::ExpandRuns).
pub(super) unsafe fn expand_runs<W: Pod>(kernel: ExpandRuns<W>, team: Team) {
    let ExpandRuns { elements, words, ends, runs, room, output, .. } = kernel;
    let words = words as usize;
    // SAFETY: nothing writes these, and there are as many ends as runs.
    let (elements, ends) = unsafe { (elements.as_slice(), &ends.as_slice()[..runs.get()]) };
    let outputs = ends.last().map_or(0, |&end| end.min(room)) as usize;
    let expand = |_: usize, range: Range<usize>| {
        let mut run = ends.partition_point(|&end| end <= range.start as u64);
        let mut at = range.start;
        // The ends do not decrease, unless the sum of the lengths has wrapped.
        while at < range.end && run < ends.len() {
            let end = range.end.min(ends[run] as usize).max(at);
            let element = &elements[run * words..][..words];
            // SAFETY: there is room for these outputs, and no other call has them.
            let to = unsafe { std::slice::from_raw_parts_mut(output.as_mut_ptr().add(at * words), (end - at) * words) };
            match element {
                &[word] => to.fill(word),
                _ => to.chunks_mut(words).for_each(|to| to.copy_from_slice(element)),
            }
            (run, at) = (run + 1, end);
        }
    };
    // SAFETY: the body captures arguments. Each call writes outputs of its own.
    unsafe { team.divide(outputs, expand) };
}
