//! The kernels of the segmented sort: cut the input into tiles, sort every tile, merge what is longer than a tile.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::items::Items;
use super::merge::{CoRank, Merge, NONE, Vote, split, split_by_warp, vote_words};
use super::shape::Shape;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, shuffle_idx, warp_id};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::compare::{Compare, IgnoreLowBit, Less};
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};
use core::mem::MaybeUninit;

/// Threads of a block that looks at offsets.
pub(super) const CUT_THREADS: u32 = 256;
/// Offsets that one thread looks at.
const CUT_ROWS: usize = 4;
/// Offsets that one block looks at.
pub(super) const CUT_TILE: usize = CUT_THREADS as usize * CUT_ROWS;
/// Edges that a thread writes alone; longer rows of them are written by its warp.
const FEW: u32 = 4;

/// Where the words of the status lie. All are zero at first, and only grow.
pub(super) mod status {
    /// `!index` of the first offset that decreases or leaves the input; 0 if there is none.
    pub(in super::super) const BAD_OFFSET: usize = 0;
    /// The most pieces that a segment has been cut into.
    pub(in super::super) const PIECES: usize = 1;
    /// One more than the pass that found the comparator to be no order; 0 if none has.
    pub(in super::super) const BROKEN_PASS: usize = 2;
    /// How many words there are.
    pub(in super::super) const WORDS: usize = 4;
}

/// An edge between two tiles: the position, and the first offset that is not below it.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Edge {
    /// The first item after the edge.
    pub position: u32,
    /// Index of the first offset at or after the position; one past the last offset if there is none.
    pub offset: u32,
}

/// Cuts the input into tiles, at ends of segments where one is near.
///
/// Edge `t` lies at `t * stride`, or at the next offset if that is at most `SLACK` away: so short segments are never cut.
/// Every edge belongs to the one pair of neighbouring offsets that it lies between, and the thread of that pair writes it;
/// there is no search. The offsets are checked on the way, and the number of pieces of each segment is found.
///
/// Launch with one block per `CUT_TILE` of `offsets.len() + 1`. `edges` has one more than the tiles of `len` items;
/// `status` has been zero. Reads 4 bytes per segment.
#[kernel(threads = CUT_THREADS)]
pub unsafe fn cut_segments<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    offsets: Global<u32>,
    edges: GlobalMut<Edge>,
    status: GlobalMut<u32>,
    len: u32,
) {
    let shape = Shape::<THREADS, ITEMS, SLACK>;
    let count = offsets.len();
    let start = thread::block_idx_x() as usize * CUT_TILE + thread::thread_idx_x() as usize;
    let mut before = [0; CUT_ROWS];
    let mut here = [0; CUT_ROWS];
    for row in 0..CUT_ROWS {
        let i = start + row * CUT_THREADS as usize;
        if i <= count {
            before[row] = if i > 0 { offsets.get(i - 1) } else { 0 };
            here[row] = if i < count { offsets.get(i) } else { before[row] };
        }
    }
    for row in 0..CUT_ROWS {
        let i = start + row * CUT_THREADS as usize;
        let (before, here) = (before[row], here[row]);
        // The edges in `before + 1 ..= here`; what lies beyond the last offset belongs to the thread after it.
        let (mut from, mut to) = (1, 0);
        if i <= count {
            if here < before || here > len {
                status.atomic_rmw(Rmw::Max, status::BAD_OFFSET, !(i as u32), Scope::Gpu, Order::Relaxed);
            } else {
                from = if i == 0 { 0 } else { shape.nominal_tile(before) + 1 };
                to = if i < count { shape.nominal_tile(here) } else { shape.tiles(len) };
                let pieces = shape.pieces(before, here);
                if i > 0 && pieces > 1 {
                    status.atomic_rmw(Rmw::Max, status::PIECES, pieces, Scope::Gpu, Order::Relaxed);
                }
            }
        }
        // Before the first offset and after the last one there is nothing to do: those tiles are empty.
        let snap = i == 0 || i >= count;
        let many = to + 1 > from + FEW;
        if !many {
            let mut tile = from;
            while tile <= to {
                edges.set(tile as usize, shape.edge(tile, here, i as u32, snap));
                tile += 1;
            }
        }
        let mut pending = ballot(FULL, many);
        while pending != 0 {
            let lane = pending.trailing_zeros();
            pending &= pending - 1;
            let last = shuffle_idx(FULL, to, lane);
            let offset = shuffle_idx(FULL, i as u32, lane);
            let here = shuffle_idx(FULL, here, lane);
            let snap = shuffle_idx(FULL, u32::from(snap), lane) != 0;
            let mut tile = shuffle_idx(FULL, from, lane) + lane_id();
            while tile <= last {
                edges.set(tile as usize, shape.edge(tile, here, offset, snap));
                tile += LANES;
            }
        }
    }
}

/// A segment that goes across an edge between tiles.
#[derive(Clone, Copy)]
struct Crossing {
    start: u32,
    end: u32,
    /// Merge passes that it needs.
    passes: u32,
}

impl Crossing {
    /// The one across `edge`, if there is any.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn at<const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
        shape: Shape<THREADS, ITEMS, SLACK>,
        offsets: Global<u32>,
        len: u32,
        edge: Edge,
    ) -> Option<Self> {
        if edge.offset == 0 || edge.offset as usize >= offsets.len() {
            return None;
        }
        let start = offsets.get(edge.offset as usize - 1);
        let end = offsets.get(edge.offset as usize).min(len);
        if start < edge.position && edge.position < end {
            Some(Self { start, end, passes: passes(shape.pieces(start, end)) })
        } else {
            None
        }
    }
}

/// Rounds of merging that pieces need.
#[inline(always)]
pub(super) const fn passes(pieces: u32) -> u32 {
    u32::BITS - pieces.saturating_sub(1).leading_zeros()
}

/// Shared memory of a block that sorts: the items, the head bits, the vote, and the number of rounds.
#[must_use]
pub const fn sort_shared<K, V>(threads: u32, items: usize) -> usize {
    merge_shared::<K, V>(threads, items) + shared_bytes::<u32>(HEAD_WORDS) + shared_bytes::<u32>(1)
}

/// Blocks that sort which fit on a multiprocessor at once: with items of two words the registers would go just beyond 64.
/// Wider ones are left to the compiler.
#[must_use]
pub const fn sort_blocks<K, V>(threads: u32) -> u32 {
    if size_of::<K>() <= 4 && size_of::<V>() <= 4 { 1024 / threads } else { 0 }
}

/// Shared memory of a block that merges: the items, the vote, and the two ends of its part.
#[must_use]
pub const fn merge_shared<K, V>(threads: u32, items: usize) -> usize {
    let capacity = threads as usize * items;
    shared_bytes::<K>(capacity + 1)
        + shared_bytes::<V>(capacity)
        + shared_bytes::<u32>(vote_words(threads))
        + shared_bytes::<u32>(2)
}

/// Words of head bits: one per 32 items, at most 2048 items.
const HEAD_WORDS: usize = 64;

/// Which items of a tile are the first of a segment: one bit each, and a bit per word that has any.
#[derive(Clone, Copy)]
struct Heads {
    words: Shared<u32>,
    summary: u64,
}

impl Heads {
    /// The bits `from .. from + count`, `count` at most 32.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mask(self, from: u32, count: u32) -> u32 {
        let word = (from / 32) as usize;
        let two = u64::from(self.words.get(word)) | u64::from(self.words.get(word + 1)) << 32;
        (two >> (from % 32)) as u32 & (!0 >> (32 - count))
    }

    /// The last head at or before `at`. There is one, at 0.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn last(self, at: u32) -> u32 {
        let mut word = at / 32;
        let mut bits = self.words.get(word as usize) & (!0 >> (31 - at % 32));
        if bits == 0 {
            word = 63 - (self.summary & ((1 << word) - 1)).leading_zeros();
            bits = self.words.get(word as usize);
        }
        word * 32 + 31 - bits.leading_zeros()
    }

    /// The first head at or after `at`. There is one, since all bits from the tile's end on are set.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn next(self, at: u32) -> u32 {
        let mut word = at / 32;
        let mut bits = self.words.get(word as usize) & (!0 << (at % 32));
        if bits == 0 {
            word = (self.summary & (!1 << word)).trailing_zeros();
            bits = self.words.get(word as usize);
        }
        word * 32 + bits.trailing_zeros()
    }
}

/// Sorts every tile by itself: each segment, or the piece of it that lies in the tile.
///
/// A thread takes `ITEMS` consecutive items, its *chunk*, and sorts the pieces of segments in it by odd-even
/// transposition in registers, where only neighbours of one segment change places, and only if the right one is less: that
/// is stable. Then the pieces of segments that go across chunks are merged in rounds, in shared memory. The rounds count
/// from each segment's own first chunk, not from the tile's, so that a segment of `c` chunks takes `log2(c)` rounds
/// wherever it lies, and short segments cost one round or two. A chunk takes part in at most two merges, that of the
/// segment which comes in from the left and that of the one which goes out to the right; of the second it makes the first
/// outputs, so one search per thread and round is enough.
///
/// Segments that go across tiles are written where the merge passes will end in the output: see [`MergeTiles`].
///
/// Launch with one block per tile, after [`CutSegments`] of the same shape. The slices have equal lengths; the input may be
/// the output. The temporary slices may be empty if no segment goes across tiles.
///
/// Cost: every item is read and written once. Work of `ITEMS / 2` exchanges per item, and one search and `ITEMS` steps of
/// merging per thread and round.
#[kernel(threads = THREADS, shared = sort_shared::<K, V>(THREADS, ITEMS), min_blocks = sort_blocks::<K, V>(THREADS))]
pub unsafe fn sort_tiles<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    offsets: Global<u32>,
    edges: Global<Edge>,
    input_keys: Global<K>,
    input_values: Global<V>,
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
    temporary_keys: GlobalMut<K>,
    temporary_values: GlobalMut<V>,
    compare: C,
) {
    const { assert!(THREADS as usize * ITEMS + 32 <= 32 * HEAD_WORDS, "the head bits have 64 words") };
    const { assert!(ITEMS < 32 && (SLACK as usize) < THREADS as usize * ITEMS / 2) };
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
    // The clamps do nothing for offsets in order; for others they keep the tile within its bounds.
    let start = left_edge.position.min(items);
    let len = right_edge.position.min(items).saturating_sub(start).min(capacity as u32);
    if len == 0 {
        return;
    }

    // The head bits: 0, and everything from the tile's end on; then the offsets.
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
        // The last item again in place of those that are missing: the comparator sees no key that was not given.
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
            // What lies between the two is in place already, and goes first.
            if !goes_right {
                right = CoRank { a: chunk, a_end: chunk_end, b: 0, b_end: 0 };
            }
            let in_place = if goes_right { right.a } else { chunk_end };
            right.a = if goes_left { incoming.end.min(chunk_end) } else { chunk };
            let after = Merge::new(shared.keys, right, in_place);
            let mut merge = after;
            // A bit for the output before which the thread goes over from the one merge to the other.
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

/// Sorts the runs of a chunk, which begin where `heads` has a bit: odd-even transposition, as many phases as the longest run
/// of the warp has items.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn sort_chunk<K: Pod, V: Pod, C: Compare<K>, const ITEMS: usize>(
    keys: &mut [K; ITEMS],
    values: &mut [V; ITEMS],
    heads: u32,
    compare: C,
) {
    // A run of `m` items has `m - 1` joints, and needs `m` phases; shifting takes one joint off each run.
    let mut joints = !heads & ((1 << ITEMS) - 2);
    let mut pairs_of_phases = 0;
    while any(FULL, joints != 0) {
        // The number is small, and the shift gives 0, but the compiler does not know: else it would test each bit once,
        // outside of the loop, and keep a register for each.
        let heads = heads ^ pairs_of_phases >> 16;
        for parity in 0..2 {
            let mut right = 1 + parity;
            while right < ITEMS {
                let left = right - 1;
                // Selections, not a branch.
                let swap = compare.less(keys[right], keys[left]) & (heads >> right & 1 == 0);
                (keys[left], keys[right]) = select(swap, keys[left], keys[right]);
                (values[left], values[right]) = select(swap, values[left], values[right]);
                right += 2;
            }
        }
        joints &= joints << 1;
        if pairs_of_phases > 0 {
            joints &= joints << 1;
        }
        pairs_of_phases += 1;
    }
}

/// The two, changed over if `swap` says so.
#[inline(always)]
fn select<T: Copy>(swap: bool, left: T, right: T) -> (T, T) {
    (if swap { right } else { left }, if swap { left } else { right })
}

/// A segment of a tile that goes across chunks.
#[derive(Clone, Copy)]
struct ChunkSegment {
    start: u32,
    end: u32,
}

impl ChunkSegment {
    /// What chunk `chunk` of the segment takes part in: the two neighbouring groups of `2^round` pieces that are merged.
    #[inline(always)]
    fn merge_of<const ITEMS: usize>(self, chunk: u32, round: u32) -> CoRank {
        let first = self.start / ITEMS as u32;
        let group = chunk.saturating_sub(first) >> (round + 1) << (round + 1);
        let border = |piece: u32| if piece == 0 { self.start } else { ((first + piece) * ITEMS as u32).min(self.end) };
        let middle = border(group + (1 << round));
        CoRank { a: border(group), a_end: middle, b: middle, b_end: border(group + (2 << round)) }
    }
}

/// One pass of merging the pieces of segments that go across tiles: neighbouring groups of `2^pass` pieces.
///
/// As within a tile, groups count from each segment's own first tile, so a segment of `t` tiles takes `log2(t)` passes.
/// Each pass moves the whole segment from one memory to the other, and [`SortTiles`] has put it where the last pass ends
/// in the output; segments that are done, and all that is not cut, stay where they are and are not touched.
///
/// A block makes the part of a merge that falls into one tile: of the segment that comes in from the left (blocks
/// `0 .. tiles`), or of the one that goes out to the right and starts there (the rest). Two warps search where the part
/// begins and ends, 32 probes at a time.
///
/// If the comparator is no order, the two ends may not fit together. Then the block says so in `status`, later passes do
/// nothing, and a last launch with `pass` `REPAIR` moves the segments concerned to the output from where they were
/// complete.
///
/// Launch with two blocks per tile, after [`SortTiles`] with the same arguments.
///
/// Cost: the segments that take part are read and written once.
#[kernel(threads = THREADS, shared = merge_shared::<K, V>(THREADS, ITEMS), min_blocks = 512 / THREADS)]
pub unsafe fn merge_tiles<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize, const SLACK: u32>(
    offsets: Global<u32>,
    edges: Global<Edge>,
    status: GlobalMut<u32>,
    keys: GlobalMut<K>,
    values: GlobalMut<V>,
    temporary_keys: GlobalMut<K>,
    temporary_values: GlobalMut<V>,
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
    // A pass may see what another block of it has just written, and goes on all the same.
    let broken = status.atomic_load(status::BROKEN_PASS, Scope::Gpu, Order::Relaxed);
    let repair = pass == REPAIR;
    if repair && broken == 0 || !repair && broken != 0 && broken <= pass {
        return;
    }
    let items = keys.len() as u32;
    let tiles = thread::grid_dim_x() / 2;
    let outgoing = thread::block_idx_x() >= tiles;
    let tile = if outgoing { thread::block_idx_x() - tiles } else { thread::block_idx_x() };
    let edge = edges.get(tile as usize + usize::from(outgoing));
    let Some(segment) = Crossing::at(shape, offsets, items, edge) else { return };
    let first_tile = shape.nominal_tile(segment.start);
    if outgoing && first_tile != tile {
        return;
    }
    let pass = if repair { broken - 1 } else { pass };
    if pass >= segment.passes {
        return;
    }
    let in_temporary = (segment.passes - pass) % 2 == 1;
    if repair && !in_temporary {
        return;
    }
    let output = Items { keys, values };
    let temporary = Items { keys: temporary_keys, values: temporary_values };
    let (source, target) = if in_temporary { (temporary, output) } else { (output, temporary) };

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

    // The clamps do nothing for offsets in order; for others they keep the part within the runs.
    let len = out_end.min(runs.b_end).saturating_sub(out).min(capacity as u32);
    if len == 0 {
        return;
    }
    let target = target.slice(out as usize, len as usize);
    if repair || runs.b >= runs.b_end {
        // The last group of an odd number has no partner: it moves as it is.
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
    {
        let mut row_keys = [K::zeroed(); ITEMS];
        let mut row_values = [V::zeroed(); ITEMS];
        for j in 0..ITEMS {
            let at = (j as u32 * THREADS + me).min(len - 1);
            let from = if at < from_a { a + at } else { b + (at - from_a) } as usize;
            (row_keys[j], row_values[j]) = source.get(from);
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

    let chunk = me * ITEMS as u32;
    let mut merged = [const { MaybeUninit::<(K, V)>::uninit() }; ITEMS];
    let (mut first, mut last) = (NONE, NONE);
    if chunk < len {
        let runs = CoRank { a: 0, a_end: from_a, b: from_a, b_end: len };
        let taken = split(shared.keys, runs, chunk, compare);
        let rest = CoRank { a: taken, b: from_a + (chunk - taken), ..runs };
        let mut merge = Merge::new(shared.keys, rest, 0);
        if chunk > 0 {
            first = merge.position();
        }
        for j in 0..ITEMS {
            // Behind the end of the part it takes what comes after the first run: at most the last item of this chunk.
            merged[j].write(merge.next(shared, compare));
        }
        last = merge.position();
    }
    vote.cast(first, last);
    thread::sync_threads();
    if vote.agreed() && chunk < len {
        let own = shared.slice(chunk as usize, ITEMS);
        for j in 0..ITEMS {
            let (key, value) = merged[j].assume_init();
            own.set(j, key, value);
        }
    }
    thread::sync_threads();
    let rest = len.saturating_sub(me);
    let column = target.slice(me.min(len) as usize, rest as usize);
    let items = shared.slice(me as usize, capacity - me as usize);
    for j in 0..ITEMS {
        if (j as u32 * THREADS) < rest {
            let (key, value) = items.get(j * THREADS as usize);
            column.set(j * THREADS as usize, key, value);
        }
    }
}

/// The number of the pass that repairs.
pub(super) const REPAIR: u32 = !0;

/// The instances of one order.
macro_rules! instances_of {
    ($compare:ty; $($sort:ident, $merge:ident: $key:ty, $value:ty, $items:literal, $slack:literal;)*) => {
        crate::instances! {
            in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
            $(
                $sort: SortTiles<$key, $value, $compare, 128, $items, $slack>;
                $merge: MergeTiles<$key, $value, $compare, 128, $items, $slack>;
            )*
        }
    };
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    cut_segments_15: CutSegments<128, 15, 128>;
    cut_segments_9: CutSegments<128, 9, 96>;
}
instances_of! {
    Less;
    segsort_u32, segmerge_u32: u32, (), 15, 128;
    segsort_u32_u32, segmerge_u32_u32: u32, u32, 15, 128;
    segsort_u32_u64, segmerge_u32_u64: u32, u64, 9, 96;
    segsort_u64, segmerge_u64: u64, (), 15, 128;
    segsort_u64_u32, segmerge_u64_u32: u64, u32, 9, 96;
    segsort_u64_u64, segmerge_u64_u64: u64, u64, 9, 96;
}
instances_of! {
    IgnoreLowBit;
    segsort_low_u32, segmerge_low_u32: u32, (), 15, 128;
    segsort_low_u32_u32, segmerge_low_u32_u32: u32, u32, 15, 128;
    segsort_low_u32_u64, segmerge_low_u32_u64: u32, u64, 9, 96;
    segsort_low_u64, segmerge_low_u64: u64, (), 15, 128;
    segsort_low_u64_u32, segmerge_low_u64_u32: u64, u32, 9, 96;
    segsort_low_u64_u64, segmerge_low_u64_u64: u64, u64, 9, 96;
}
