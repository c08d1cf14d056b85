//! The kernel that sorts each tile separately.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::chunk::{Crossings, sort_chunk};
use super::crossing::{Crossing, passes};
use super::cut::Edge;
use super::heads::{self, HEAD_WORDS, Heads};
use super::items::Items;
use super::merge::{CoRank, Merge, NONE, Vote, split, vote_words};
use super::pass::merge_shared;
use super::shape::Shape;
use crate::arch::warp::{FULL, any, lane_id};
use crate::arch::{Rmw, thread};
use crate::compare::KeyOrder;
use crate::form::kernel;
use crate::input::{Prefix, SegmentOffsets};
use crate::pairs::PairsMut;
use crate::shape::is_for_use;
use crate::view::{Global, Shared, SharedMemory, shared_bytes};
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
    output: PairsMut<K, V>,
    temporary: PairsMut<K, V>,
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

    heads::clear::<THREADS>(head_words, len);
    if me == 0 {
        round_count.set(0, 0);
    }
    // The last item stands in for missing ones: the comparator never sees a key that is not in the input.
    let input = Items { keys: input_keys, values: input_values }.slice(start as usize, len as usize);
    let skipped = me.min(len - 1);
    let column = input.slice(skipped as usize, (len - skipped) as usize);
    shared.fill::<THREADS, ITEMS>(|j| column.get((j * THREADS).min(len - 1 - skipped) as usize));
    thread::sync_threads();
    heads::mark::<THREADS>(head_words, offsets, (left_edge.offset, right_edge.offset), start, len);
    thread::sync_threads();

    let heads = Heads::summarize(head_words);
    let chunk = me * ITEMS as u32;
    let mask = heads.mask(chunk, ITEMS as u32);
    sort_own::<K, V, C, ITEMS>(shared, chunk, mask, compare);
    let crossing = Crossings::of_chunk::<ITEMS>(heads, chunk, mask);
    note_rounds(round_count, passes(crossing.outgoing.end.saturating_sub(chunk).div_ceil(ITEMS as u32)));
    thread::sync_threads();

    let rounds = round_count.get(0);
    let mut round = 0;
    while round < rounds {
        merge_round::<K, V, C, THREADS, ITEMS>(shared, vote, crossing, round, compare);
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
    let (output, temporary) = (Items::from(output), Items::from(temporary));
    if left_end == 0 && right_start == NONE {
        shared.write::<THREADS, ITEMS>(output, start, len);
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

/// Sorts the pieces of segments in the thread's chunk, which begin where `mask` has a bit set.
///
/// # Safety
/// All lanes of the warp call this. The chunk begins at `chunk`, and no other thread uses it at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn sort_own<K: Pod, V: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    shared: Items<Shared<K>, Shared<V>>,
    chunk: u32,
    mask: u32,
    compare: C,
) {
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

/// Notes the most rounds that a thread of the block needs.
///
/// # Safety
/// All threads of the block call this, and then the barrier. The word was 0 before the last one.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn note_rounds(round_count: Shared<u32>, own: u32) {
    let mut rounds = 0;
    while any(FULL, own > rounds) {
        rounds += 1;
    }
    if lane_id() == 0 && rounds > 0 {
        round_count.atomic_rmw(Rmw::Max, 0, rounds);
    }
}

/// Merges, for each thread, its part of the segment that comes in from the left and of the one that goes out to the right: groups of
/// `2^round` chunks. If the comparator is no order, so that the parts do not fit together, all items stay where they are.
///
/// # Safety
/// All threads of the block call this, after a barrier. The segments are those of the thread's chunk.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn merge_round<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    shared: Items<Shared<K>, Shared<V>>,
    vote: Vote<THREADS>,
    Crossings { incoming, outgoing }: Crossings,
    round: u32,
    compare: C,
) {
    let me = thread::thread_idx_x();
    let chunk = me * ITEMS as u32;
    let chunk_end = chunk + ITEMS as u32;
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
        shared.set_chunk(chunk, &merged);
    }
    thread::sync_threads();
}
