//! The kernel that merges segments longer than a tile, pass by pass.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::crossing::Crossing;
use super::cut::{Edge, status};
use super::items::Items;
use super::merge::{CoRank, Merge, NONE, Vote, split, split_by_warp, vote_words};
use super::shape::Shape;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::compare::KeyOrder;
use crate::form::kernel;
use crate::input::SegmentOffsets;
use crate::pairs::PairsMut;
use crate::shape::is_for_use;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;
use core::mem::MaybeUninit;

/// The pass number of the repair.
pub(crate) const REPAIR: u32 = !0;

/// Returns the shared memory of a block that merges: the items, the vote, and the two ends of its part.
#[must_use]
pub const fn merge_shared<K, V>(threads: u32, items: usize) -> usize {
    let capacity = threads as usize * items;
    shared_bytes::<K>(capacity + 1)
        + shared_bytes::<V>(capacity)
        + shared_bytes::<u32>(vote_words(threads))
        + shared_bytes::<u32>(2)
}

/// Merges the pieces of segments that span tiles, one pass: adjacent groups of `2^pass` pieces.
///
/// As within a tile, groups count from each segment's own first tile, so a segment of `t` tiles takes `log2(t)` passes.
/// Each pass moves the whole segment from one memory to the other. [`SortSegments`](crate::segmented_sort::SortSegments) has put it where the
/// last pass ends in the output. Finished segments, and everything that is not cut, are not touched.
///
/// A block produces the part of a merge that falls into one tile: of the segment that comes in from the left (blocks
/// `0 .. tiles`), or of the segment that starts there and goes out to the right (the other blocks). Two warps search
/// for the start and the end of the part, 32 probes at a time.
///
/// If the comparator is not an order, the two ends may not fit together. Then the block records this in `status`, and
/// later passes do nothing. A last launch with `pass` `REPAIR` moves the affected segments to the output from where
/// they were complete.
///
/// Cost: the segments that take part are read and written once.
///
/// # Safety
/// The launch has two blocks per tile, and comes after [`SortSegments`](crate::segmented_sort::SortSegments) with the same arguments and
/// after the passes below `pass`. `REPAIR` comes after all passes that the longest segment needs. `status` is as
/// [`CutSegments`](crate::segmented_sort::CutSegments) and those passes left it. The temporary slices are as long as `keys` if any
/// segment spans tiles. While the kernel runs, nothing writes `offsets` or `edges`, and nothing else uses the other
/// buffers.
#[kernel(
    listed = super::instances::MERGE_SEGMENTS_PTX, listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = merge_shared::<K, V>(THREADS, ITEMS),
    min_blocks = 512 / THREADS,
    native = crate::segmented_sort::native::merge_segments
)]
pub unsafe fn merge_segments<
    K: Pod,
    V: Pod,
    C: KeyOrder<K>,
    const THREADS: u32,
    const ITEMS: usize,
    const SLACK: u32,
>(
    offsets: SegmentOffsets<u32>,
    edges: Global<Edge>,
    status: GlobalMut<u32>,
    output: PairsMut<K, V>,
    temporary: PairsMut<K, V>,
    compare: C,
    pass: u32,
) {
    const { assert!(THREADS >= 2 * LANES, "the ends of a part are found by two warps") };
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    let mut memory = SharedMemory::new();
    let capacity = THREADS as usize * ITEMS;
    let shared = Items { keys: memory.take::<K>(capacity + 1), values: memory.take::<V>(capacity) };
    let vote = Vote::<THREADS>::new(memory.take(vote_words(THREADS)));
    let ends = memory.take::<u32>(2);

    let me = thread::thread_idx_x();
    // A pass may see what another block of the same pass has just written; it continues all the same.
    let broken = status.atomic_load(status::BROKEN_PASS, Scope::Gpu, Order::Relaxed);
    let (output, temporary) = (Items::from(output), Items::from(temporary));
    let items = output.keys.len() as u32;
    let Some(part) = Part::of_block(shape, offsets.get(), edges, items, pass, broken) else { return };
    let Part { out, runs, pass, .. } = part;
    let (source, target) = if part.in_temporary { (temporary, output) } else { (output, temporary) };

    // The clamps have no effect if the offsets are in order; otherwise they keep the part within the runs.
    let len = part.out_end.min(runs.b_end).saturating_sub(out).min(capacity as u32);
    if len == 0 {
        return;
    }
    let target = target.slice(out as usize, len as usize);
    if part.is_moved {
        let mut at = me;
        while at < len {
            let (key, value) = source.get((out + at) as usize);
            target.set(at as usize, key, value);
            at += THREADS;
        }
        return;
    }

    let done = out.saturating_sub(runs.a);
    if warp_id() < 2 {
        let found =
            split_by_warp(source.keys.as_const(), runs, if warp_id() == 0 { done } else { done + len }, compare);
        if lane_id() == 0 {
            ends.set(warp_id() as usize, found);
        }
    }
    thread::sync_threads();
    let (low, high) = (ends.get(0), ends.get(1));
    if high < low || high - low > len {
        if me == 0 {
            status.atomic_rmw(Rmw::Max, status::BROKEN_PASS, pass + 1, Scope::Gpu, Order::Relaxed);
        }
        return;
    }
    // The part of A, then the part of B.
    let from_a = high - low;
    let (a, b) = (runs.a + low, runs.b + (done - low));
    shared.fill::<THREADS, ITEMS>(|j| {
        let at = (j * THREADS + me).min(len - 1);
        source.get(if at < from_a { a + at } else { b + (at - from_a) } as usize)
    });
    thread::sync_threads();
    merge_two::<K, V, C, THREADS, ITEMS>(shared, vote, CoRank { a: 0, a_end: from_a, b: from_a, b_end: len }, compare);
    shared.write::<THREADS, ITEMS>(target, 0, len);
}

/// The part of a segment's output that a block writes in a pass.
struct Part {
    out: u32,
    out_end: u32,
    /// The two groups of pieces that are merged.
    runs: CoRank,
    /// The part is moved as it is: it is repaired, or is in the last group of an odd number, which has no partner.
    is_moved: bool,
    /// The groups are in the temporary memory, and the part goes to the output.
    in_temporary: bool,
    /// The pass; in a repair, the last one that was complete.
    pass: u32,
}

impl Part {
    /// Returns the part of this block, if it has one. `broken` is the status.
    ///
    /// # Safety
    /// The contract of [`merge_segments`](MergeSegments): nothing writes the offsets or the edges.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn of_block<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
        shape: Shape<THREADS, ITEMS, SLACK>,
        offsets: Global<u32>,
        edges: Global<Edge>,
        items: u32,
        pass: u32,
        broken: u32,
    ) -> Option<Self> {
        let repair = pass == REPAIR;
        if repair && broken == 0 || !repair && broken != 0 && broken <= pass {
            return None;
        }
        let tiles = thread::grid_dim_x() / 2;
        let outgoing = thread::block_idx_x() >= tiles;
        let tile = if outgoing { thread::block_idx_x() - tiles } else { thread::block_idx_x() };
        let edge = edges.get(tile as usize + usize::from(outgoing));
        let segment = Crossing::at(shape, offsets, items, edge)?;
        let first_tile = shape.nominal_tile(segment.start);
        if outgoing && first_tile != tile {
            return None;
        }
        let pass = if repair { broken - 1 } else { pass };
        if pass >= segment.passes {
            return None;
        }
        let in_temporary = (segment.passes - pass) % 2 == 1;
        if repair && !in_temporary {
            return None;
        }
        let (out, out_end) = if outgoing {
            (segment.start, edge.position)
        } else {
            (edge.position, segment.end.min(edges.get(tile as usize + 1).position))
        };
        let piece = tile.saturating_sub(first_tile);
        let pieces = shape.pieces(segment.start, segment.end);
        // In 64 bits: past the last piece these may be large.
        let group = u64::from(piece >> (pass + 1)) << (pass + 1);
        let border = |piece: u64| {
            if piece == 0 {
                segment.start
            } else if piece >= u64::from(pieces) {
                segment.end
            } else {
                (first_tile + piece as u32) * shape.stride()
            }
        };
        let middle = border(group + (1 << pass));
        let runs = CoRank { a: border(group), a_end: middle, b: middle, b_end: border(group + (2 << pass)) };
        Some(Self { out, out_end, runs, is_moved: repair || runs.b >= runs.b_end, in_temporary, pass })
    }
}

/// Merges two runs that fill a tile from its beginning on. If the comparator is no order, so that the parts of the threads do not fit
/// together, all items stay where they are.
///
/// # Safety
/// All threads of the block call this, after a barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn merge_two<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    shared: Items<Shared<K>, Shared<V>>,
    vote: Vote<THREADS>,
    runs: CoRank,
    compare: C,
) {
    let chunk = thread::thread_idx_x() * ITEMS as u32;
    let mut merged = [const { MaybeUninit::<(K, V)>::uninit() }; ITEMS];
    let (mut first, mut last) = (NONE, NONE);
    if chunk < runs.b_end {
        let taken = split(shared.keys, runs, chunk, compare);
        let rest = CoRank { a: taken, b: runs.b + (chunk - taken), ..runs };
        let mut merge = Merge::new(shared.keys, rest, 0);
        if chunk > 0 {
            first = merge.position();
        }
        for j in 0..ITEMS {
            // Past the end of the part, it takes what comes after the first run: at most the last item of this chunk.
            merged[j].write(merge.next(shared, compare));
        }
        last = merge.position();
    }
    vote.cast(first, last);
    thread::sync_threads();
    if vote.agreed() && chunk < runs.b_end {
        shared.set_chunk(chunk, &merged);
    }
    thread::sync_threads();
}
