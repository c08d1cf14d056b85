//! The kernel that sorts each tile separately.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::chunk::{ChunkSegment, sort_chunk};
use super::crossing::{Crossing, passes};
use super::cut::Edge;
use super::heads::{HEAD_WORDS, Heads};
use super::items::Items;
use super::merge::{CoRank, Merge, NONE, Vote, split, vote_words};
use super::pass::merge_shared;
use super::shape::Shape;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id};
use crate::arch::{Rmw, thread};
use crate::compare::KeyOrder;
use crate::form::kernel;
use crate::input::{Prefix, SegmentOffsets};
use crate::shape::is_for_use;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;
use core::mem::MaybeUninit;

/// Returns the shared memory of a block that sorts: the items, the head bits, the vote, and the number of rounds.
#[must_use]
pub const fn sort_shared<K, V>(threads: u32, items: usize) -> usize {
    merge_shared::<K, V>(threads, items) + shared_bytes::<u32>(HEAD_WORDS) + shared_bytes::<u32>(1)
}

/// Returns the number of sorting blocks that must fit on a multiprocessor at once. With items of two words the kernel
/// would use slightly more than 64 registers; with values of four words the assembler would spill rather than use more
/// than 80. Other cases are left to the assembler.
#[must_use]
pub const fn sort_blocks<K, V>(threads: u32) -> u32 {
    match (size_of::<K>(), size_of::<V>()) {
        (0..=4, 0..=4) => 1024 / threads,
        (_, 16) => 640 / threads,
        _ => 0,
    }
}

/// Sorts each tile separately: each segment, or the piece of it that lies in the tile.
///
/// A thread takes `ITEMS` consecutive items, its *chunk*, and sorts the pieces of segments in it by odd-even
/// transposition in registers. Only neighbours of the same segment are swapped, and only if the right one is less, so
/// the sort is stable. Then the pieces of segments that span chunks are merged in rounds, in shared memory. The rounds
/// count from each segment's own first chunk, not from the tile's. So a segment of `c` chunks takes `log2(c)` rounds
/// wherever it lies, and short segments cost one or two rounds. A chunk takes part in at most two merges: that of the
/// segment that comes in from the left, and that of the segment that goes out to the right. Of the second it produces
/// the first outputs, so one search per thread and round is enough.
///
/// Segments that span tiles are written to where the merge passes will end in the output: see
/// [`MergeSegments`](crate::segmented_sort::MergeSegments).
///
/// Cost: every item is read and written once. The work is `ITEMS / 2` exchanges per item, and one search and `ITEMS`
/// merge steps per thread and round.
///
/// # Safety
/// The launch has one block per tile. `edges` is what [`CutSegments`](crate::segmented_sort::CutSegments) of the same shape has written
/// for these offsets and the same number of items, fewer than 2^32. The slices of keys and, unless they are zero-sized,
/// those of values have equal lengths; the temporary ones may be empty if no segment spans tiles. The input may be the
/// output; otherwise no two buffers overlap. While the kernel runs, nothing else writes the inputs, `offsets` or
/// `edges`, or uses the other buffers.
///
/// The offsets do not decrease and do not exceed the input. Alternatively, edges that `CutSegments` has left out are
/// zero, and the temporary slices are as long as the others. Then what is written is unspecified, but nothing outside
/// of the buffers is accessed.
#[kernel(
    listed = super::instances::SORT_SEGMENTS_PTX, listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = sort_shared::<K, V>(THREADS, ITEMS),
    min_blocks = sort_blocks::<K, V>(THREADS),
    native = crate::segmented_sort::native::sort_segments
)]
pub unsafe fn sort_segments<
    K: Pod,
    V: Pod,
    C: KeyOrder<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const SLACK: u32,
>(
    offsets: SegmentOffsets<u32>,
    edges: Global<Edge>,
    input_keys: Prefix<K>,
    input_values: Global<V>,
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
    temporary_keys: GlobalMut<K>,
    temporary_values: GlobalMut<V>,
    compare: C,
) {
    const { assert!(THREADS as usize * ITEMS + 32 <= 32 * HEAD_WORDS, "the head bits have 64 words") };
    const { assert!(ITEMS < 32 && (SLACK as usize) < THREADS as usize * ITEMS / 2) };
    let (offsets, input_keys) = (offsets.get(), input_keys.get());
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    let mut memory = SharedMemory::new();
    let capacity = THREADS as usize * ITEMS;
    let shared = Items { keys: memory.take::<K>(capacity + 1), values: memory.take::<V>(capacity) };
    let vote = Vote::<THREADS>::new(memory.take(vote_words(THREADS)));
    let head_words = memory.take::<u32>(HEAD_WORDS);
    let round_count = memory.take::<u32>(1);

    let me = thread::thread_idx_x();
    let tile = thread::block_idx_x() as usize;
    let items = input_keys.len() as u32;
    let left_edge = edges.get(tile);
    let right_edge = edges.get(tile + 1);
    // The clamps have no effect if the offsets are in order; otherwise they keep the tile within its bounds.
    let start = left_edge.position.min(items);
    let len = right_edge.position.min(items).saturating_sub(start).min(capacity as u32);
    if len == 0 {
        return;
    }

    // The head bits: bit 0 and all bits from the tile's end on; then the offsets.
    let mut word = me;
    while word < HEAD_WORDS as u32 {
        let below = (32 * word).min(len);
        let inside = (len - below).min(32);
        let beyond = if inside == 32 { 0 } else { !0 << inside };
        head_words.set(word as usize, beyond | u32::from(word == 0));
        word += THREADS;
    }
    if me == 0 {
        round_count.set(0, 0);
    }
    let input = Items { keys: input_keys, values: input_values }.slice(start as usize, len as usize);
    let output = Items { keys, values };
    let temporary = Items { keys: temporary_keys, values: temporary_values };
    {
        // The last item stands in for missing ones: the comparator never sees a key that is not in the input.
        let mut row_keys = [K::zeroed(); ITEMS];
        let mut row_values = [V::zeroed(); ITEMS];
        let skipped = me.min(len - 1);
        let column = input.slice(skipped as usize, (len - skipped) as usize);
        for j in 0..ITEMS {
            (row_keys[j], row_values[j]) = column.get((j as u32 * THREADS).min(len - 1 - skipped) as usize);
        }
        let column = shared.slice(me as usize, capacity - me as usize);
        for j in 0..ITEMS {
            column.set(j * THREADS as usize, row_keys[j], row_values[j]);
        }
        if me == 0 {
            shared.keys.set(capacity, row_keys[0]);
        }
    }
    thread::sync_threads();
    let mut i = left_edge.offset as usize + me as usize;
    while i < (right_edge.offset as usize).min(offsets.len()) {
        let head = offsets.get(i).wrapping_sub(start);
        if head < len {
            head_words.atomic_rmw(Rmw::Or, (head / 32) as usize, 1 << (head % 32));
        }
        i += THREADS as usize;
    }
    thread::sync_threads();

    let low = ballot(FULL, head_words.get(lane_id() as usize) != 0);
    let high = ballot(FULL, head_words.get((lane_id() + LANES) as usize) != 0);
    let heads = Heads { words: head_words, summary: u64::from(high) << 32 | u64::from(low) };
    let chunk = me * ITEMS as u32;
    let chunk_end = chunk + ITEMS as u32;
    let mask = heads.mask(chunk, ITEMS as u32);
    {
        let own = shared.slice(chunk as usize, ITEMS);
        let mut chunk_keys = [K::zeroed(); ITEMS];
        let mut chunk_values = [V::zeroed(); ITEMS];
        for j in 0..ITEMS {
            (chunk_keys[j], chunk_values[j]) = own.get(j);
        }
        sort_chunk(&mut chunk_keys, &mut chunk_values, mask, compare);
        for j in 0..ITEMS {
            own.set(j, chunk_keys[j], chunk_values[j]);
        }
    }

    // The segment that comes in from the left, and the one that goes out to the right.
    let incoming = if mask & 1 == 0 {
        ChunkSegment { start: heads.last(chunk), end: heads.next(chunk + 1) }
    } else {
        ChunkSegment { start: chunk, end: chunk }
    };
    let outgoing = if mask != 0 {
        ChunkSegment { start: chunk + 31 - mask.leading_zeros(), end: heads.next(chunk_end) }
    } else {
        ChunkSegment { start: chunk_end, end: chunk_end }
    };
    {
        let pieces = outgoing.end.saturating_sub(chunk).div_ceil(ITEMS as u32);
        let own = passes(pieces);
        let mut rounds = 0;
        while any(FULL, own > rounds) {
            rounds += 1;
        }
        if lane_id() == 0 && rounds > 0 {
            round_count.atomic_rmw(Rmw::Max, 0, rounds);
        }
    }
    thread::sync_threads();

    let rounds = round_count.get(0);
    let mut round = 0;
    while round < rounds {
        let left = incoming.merge_of::<ITEMS>(me, round);
        let mut right = outgoing.merge_of::<ITEMS>(me, round);
        let goes_left = left.b < left.b_end;
        let goes_right = right.b < right.b_end;
        let mut merged = [const { MaybeUninit::<(K, V)>::uninit() }; ITEMS];
        let (mut first, mut last) = (NONE, NONE);
        if goes_left || goes_right {
            // What lies between the two is already in place, and goes first.
            if !goes_right {
                right = CoRank { a: chunk, a_end: chunk_end, b: 0, b_end: 0 };
            }
            let in_place = if goes_right { right.a } else { chunk_end };
            right.a = if goes_left { incoming.end.min(chunk_end) } else { chunk };
            let after = Merge::new(shared.keys, right, in_place);
            let mut merge = after;
            // A bit for the output at which the thread switches from one merge to the other.
            let mut switch = 0;
            if goes_left {
                let done = chunk - left.a;
                let taken = split(shared.keys, left, done, compare);
                let rest = CoRank { a: left.a + taken, b: left.b + (done - taken), ..left };
                merge = Merge::new(shared.keys, rest, 0);
                switch = if incoming.end < chunk_end { 1 << (incoming.end - chunk) } else { 0 };
                if done > 0 {
                    first = merge.position();
                }
            }
            for j in 0..ITEMS {
                if switch >> j & 1 == 1 {
                    merge = after;
                }
                merged[j].write(merge.next(shared, compare));
            }
            last = merge.position();
        }
        vote.cast(first, last);
        thread::sync_threads();
        if (goes_left || goes_right) && vote.agreed() {
            let own = shared.slice(chunk as usize, ITEMS);
            for j in 0..ITEMS {
                let (key, value) = merged[j].assume_init();
                own.set(j, key, value);
            }
        }
        thread::sync_threads();
        round += 1;
    }

    // A segment that needs an odd number of passes starts in the temporary memory.
    let mut left_end = 0;
    let mut right_start = NONE;
    if let Some(crossing) = Crossing::at(shape, offsets, items, left_edge)
        && crossing.passes % 2 == 1
    {
        left_end = crossing.end.saturating_sub(start);
    }
    if let Some(crossing) = Crossing::at(shape, offsets, items, right_edge)
        && crossing.passes % 2 == 1
    {
        right_start = crossing.start.saturating_sub(start);
    }
    if left_end == 0 && right_start == NONE {
        let rest = len.saturating_sub(me);
        let column = output.slice((start + me.min(len)) as usize, rest as usize);
        let items = shared.slice(me as usize, capacity - me as usize);
        for j in 0..ITEMS {
            if (j as u32 * THREADS) < rest {
                let (key, value) = items.get(j * THREADS as usize);
                column.set(j * THREADS as usize, key, value);
            }
        }
    } else {
        let mut at = me;
        while at < len {
            let (key, value) = shared.get(at as usize);
            let target = if at < left_end || at >= right_start { temporary } else { output };
            target.set((start + at) as usize, key, value);
            at += THREADS;
        }
    }
}
