//! The kernel that merges levels and keeps what is live: counts, ranges, cleanups, exports, and merges with tombstones.
//!
//! # Tiles
//! The *candidates* of an interval are the elements of all levels within it. Intervals one after the other, each with its
//! candidates in the order of the merge, make one long sequence, which is cut into tiles, one per block. Intervals with fewer
//! candidates than half a tile are never cut: a cut that would fall into one is moved to its beginning, so that a tile has at
//! most twice the nominal length. Longer ones are cut anywhere, by [splitting](block::split) the levels' windows.
//!
//! The block loads its candidates, a *piece* per interval and level, the oldest first, and merges the pieces of each interval
//! pairwise in shared memory. Then an element is live if the next one has another key, since the newest comes last, and if it
//! is no tombstone. What is live is counted, or moved together and written behind what earlier tiles have written, which a
//! [look-back](crate::block::lookback) tells.
//!
//! # Cost
//! Every candidate is read once; what is live is written once. The merge takes a round per factor of two in the number of levels.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::find::Levels;
use super::table::MAX_LEVELS;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, warp_id};
use crate::arch::{Order, Scope, thread};
use crate::block::lookback::{Ticket, exchange, take_ticket};
use crate::block::merge::{Pieces, path};
use crate::block::runs::{self as block, Items, first_half};
use crate::block::{scan, warp};
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::scan::{Min, Sum};
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// What a tile does with its elements: count the live ones of each interval,
pub const COUNT: u32 = 0;
/// write them,
pub const EMIT: u32 = 1;
/// or write all elements, dead or alive, with their marks.
pub const KEEP: u32 = 2;

/// What travels with a key while it is merged: its value, and whether it is a tombstone, if there are any.
pub trait Payload: Pod {
    /// The value.
    type Value: Pod;
    /// Whether there are tombstones.
    const HAS_MARKS: bool;
    /// A payload.
    fn new(value: Self::Value, is_dead: bool) -> Self;
    /// Its value.
    fn value(self) -> Self::Value;
    /// Whether it is a tombstone.
    fn is_dead(self) -> bool;
}

macro_rules! plain {
    ($($value:ty),*) => { $(
        impl Payload for $value {
            type Value = Self;
            const HAS_MARKS: bool = false;
            #[inline(always)]
            fn new(value: Self, _: bool) -> Self {
                value
            }
            #[inline(always)]
            fn value(self) -> Self {
                self
            }
            #[inline(always)]
            fn is_dead(self) -> bool {
                false
            }
        }
    )* };
}

plain!((), u32, u64);

macro_rules! marked {
    ($($(#[$doc:meta])* $name:ident($value:ty, $word:ty);)*) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable)]
        pub struct $name {
            is_dead: $word,
            value: $value,
        }
        impl Payload for $name {
            type Value = $value;
            const HAS_MARKS: bool = true;
            #[inline(always)]
            fn new(value: $value, is_dead: bool) -> Self {
                Self { is_dead: is_dead.into(), value }
            }
            #[inline(always)]
            fn value(self) -> $value {
                self.value
            }
            #[inline(always)]
            fn is_dead(self) -> bool {
                self.is_dead != 0
            }
        }
    )* };
}

marked! {
    /// No value, and a mark.
    MarkedNone((), u32);
    /// A value of 4 bytes, and a mark.
    Marked(u32, u32);
    /// A value of 8 bytes, and a mark.
    MarkedLong(u64, u64);
}

/// Candidates that a tile has room for.
#[must_use]
pub const fn room(items: usize) -> usize {
    THREADS as usize * items
}

/// Pieces that a tile may have: intervals that are not cut count for as many candidates as they have pieces, at least; and
/// two may be cut.
const fn most_pieces(items: usize) -> usize {
    room(items) + 2 * MAX_LEVELS
}

/// Shared memory of a block.
#[must_use]
pub const fn shared<C: Pod, P: Pod>(items: usize) -> usize {
    Items::<C, P>::bytes(2 * room(items))
        + shared_bytes::<u16>(most_pieces(items) + 1)
        + shared_bytes::<u32>(most_pieces(items))
        + shared_bytes::<u32>(MAX_LEVELS)
        + shared_bytes::<u32>(2 * MAX_LEVELS)
        + shared_bytes::<u64>(8)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
}

/// Where a tile begins or ends: before interval `interval`, or within it, after `rank` of its candidates.
#[derive(Clone, Copy)]
struct Cut {
    interval: u64,
    rank: u64,
}

/// Finds the cut at a place of the sequence.
///
/// # Safety
/// All lanes of the warp call it; `weights` has the places of all intervals and the end.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn find_cut(weights: Global<u64>, place: u64, tile: u64) -> Cut {
    let intervals = weights.len() as u64 - 1;
    // The last interval that begins at the place or before it: between `low` and `high`, which is not one.
    let (mut low, mut high) = (0, intervals + 1);
    while high - low > 1 {
        let step = (high - low).div_ceil(LANES as u64);
        let probe = low + lane_id() as u64 * step;
        let begins_before = probe < high && weights.get(probe as usize) <= place;
        let count = ballot(FULL, begins_before).count_ones() as u64;
        low += (count - 1) * step;
        high = if high - low < step { high } else { low + step };
    }
    if low == intervals {
        return Cut { interval: intervals, rank: 0 };
    }
    let begin = weights.get(low as usize);
    let len = weights.get(low as usize + 1) - begin;
    Cut { interval: low, rank: if len > tile { place - begin } else { 0 } }
}

/// The pieces of a tile.
#[derive(Clone, Copy)]
struct Table {
    /// Where each piece begins in the tile, and after the last one where it ends.
    offsets: Shared<u16>,
    /// What to add to an index in the tile for the place in the level.
    starts: Shared<u32>,
    pieces: u32,
}

impl Table {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn offset(self, piece: u32) -> u32 {
        self.offsets.get(piece as usize) as u32
    }

    /// The last group of `1 << log_width` pieces that begins at `at` or before it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn group(self, at: u32, log_width: u32) -> u32 {
        let (mut low, mut high) = (0, self.pieces >> log_width);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.offset(middle << log_width) <= at {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Merges the pieces of each interval: see [`block::merge`], of which this is the form for many short groups. A thread makes
/// `ITEMS` outputs, which may belong to several pairs.
///
/// # Safety
/// As [`block::merge`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn merge_groups<C: KeyCode, P: Pod, const ITEMS: usize>(
    both: Items<C, P>,
    table: Table,
    rounds: u32,
    count: u32,
) {
    let room = room(ITEMS);
    let own = thread::thread_idx_x() * ITEMS as u32;
    let last = count - 1;
    let mut from = first_half(rounds, room);
    let mut round = 0;
    while round < rounds {
        let items = both.slice(from, room);
        let merged = both.slice(room - from, room);
        if own < count {
            let mut pair = table.group(own, round + 1);
            let start = table.offset(pair << (round + 1));
            let mut a_end = table.offset((2 * pair + 1) << round);
            let mut end = table.offset((pair + 1) << (round + 1));
            let diagonal = own - start;
            let pieces = Pieces { a: start, a_len: a_end - start, b: a_end, b_len: end - a_end };
            let share = path(|at| items.key(at as usize), pieces, diagonal, C::ORDER);
            let mut a = start + share;
            let mut b = a_end + diagonal - share;
            let (mut key_a, mut payload_a) = items.get(a.min(last) as usize);
            let (mut key_b, mut payload_b) = items.get(b.min(last) as usize);
            for i in 0..ITEMS as u32 {
                let at = own + i;
                if at < count {
                    if at == end {
                        while at == end {
                            pair += 1;
                            a = end;
                            a_end = table.offset((2 * pair + 1) << round);
                            end = table.offset((pair + 1) << (round + 1));
                        }
                        b = a_end;
                        (key_a, payload_a) = items.get(a as usize);
                        (key_b, payload_b) = items.get(b.min(last) as usize);
                    }
                    let takes_a = a < a_end && (b >= end || key_a <= key_b);
                    let (source, key, payload) = if takes_a { (a, key_a, payload_a) } else { (b, key_b, payload_b) };
                    merged.set(at as usize, key, payload);
                    let next = items.get((source + 1).min(last) as usize);
                    if takes_a {
                        a += 1;
                        (key_a, payload_a) = next;
                    } else {
                        b += 1;
                        (key_b, payload_b) = next;
                    }
                }
            }
        }
        thread::sync_threads();
        from = room - from;
        round += 1;
    }
}

/// Merges what intervals take of the levels, and counts or writes it: see the [module](self).
///
/// Tiles are cut by `weights`, the places of the intervals in the sequence as [`FindWindows`](super::FindWindows) and a sum give
/// them, and `windows`; or, if these are empty, by `splits` for one interval of everything, as a partition of the levels, the
/// oldest first, gives them: `tile` is nominal in the first case and exact in the second, with `total` elements.
///
/// - `COUNT`: `counts`, zero before, gets the live elements of each interval. Any number of blocks.
/// - `EMIT`: what is live goes to `out_keys` and `out_values`, and `counts` gets the index of the first one of each interval, and
///   in the end the number of all. One block per tile.
/// - `KEEP`: everything goes there, and the marks to `out_marks`. One block per tile.
#[kernel(threads = THREADS, shared = shared::<C, P>(ITEMS), min_blocks = 3)]
pub unsafe fn level_tiles<C: KeyCode, P: Payload, const MODE: u32, const ITEMS: usize>(
    levels: Levels<C, P::Value>,
    log_pieces: u32,
    windows: Global<u32>,
    weights: Global<u64>,
    splits: Global<u64>,
    total: u64,
    tile: u32,
    out_keys: GlobalMut<C>,
    out_values: GlobalMut<P::Value>,
    out_marks: GlobalMut<u32>,
    counts: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let room = room(ITEMS);
    let mut memory = SharedMemory::new();
    let both = Items::<C, P>::take(&mut memory, 2 * room);
    let offsets = memory.take::<u16>(most_pieces(ITEMS) + 1);
    let starts = memory.take::<u32>(most_pieces(ITEMS));
    let slots = memory.take::<u32>(MAX_LEVELS);
    // How much of the first and of the last interval's windows is cut off.
    let skips = memory.take::<u32>(2 * MAX_LEVELS);
    let words = memory.take::<u64>(8);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);

    let own = thread::thread_idx_x();
    let pieces = 1u32 << log_pieces;
    let is_whole = weights.is_empty();
    let length = if is_whole { total } else { weights.get(weights.len() - 1) };
    let tiles = length.div_ceil(tile as u64) as u32;
    // The oldest level first.
    if own < LANES && levels.occupied() >> own & 1 == 1 {
        slots.set((levels.occupied() >> own >> 1).count_ones() as usize, own);
    }
    let level_count = levels.occupied().count_ones();

    let mut ticket = Ticket { tile: thread::block_idx_x(), tag: 0 };
    if MODE == EMIT {
        if own == 0 {
            let taken = take_ticket(scratch, tiles);
            words.set(0, taken.tile as u64 | (taken.tag as u64) << 32);
        }
        thread::sync_threads();
        ticket = Ticket { tile: words.get(0) as u32, tag: (words.get(0) >> 32) as u32 };
    }
    while ticket.tile < tiles {
        thread::sync_threads();
        let place = ticket.tile as u64 * tile as u64;
        // Two warps find where the tile begins and ends.
        if warp_id() < 2 {
            let end = warp_id() as u64;
            let cut = if is_whole {
                Cut { interval: 0, rank: place }
            } else {
                let place = place + end * tile as u64;
                find_cut(weights, if place < length { place } else { length }, tile as u64)
            };
            let mut skipped = 0;
            let mut next = None;
            if is_whole {
                if lane_id() < level_count {
                    let at = (ticket.tile as u64 + end) * level_count as u64 + lane_id() as u64;
                    skipped = splits.get(at as usize) as u32;
                    let level = levels.level(slots.get(lane_id() as usize));
                    if skipped < level.entry.len {
                        next = Some(level.keys().get(skipped as usize));
                    }
                }
            } else if cut.rank > 0 {
                let mut run = Global::from_raw(core::ptr::NonNull::dangling().as_ptr(), 0);
                let lane = lane_id() & (pieces - 1);
                if lane < level_count {
                    let window = 2 * (cut.interval as usize * pieces as usize + lane as usize);
                    let level = levels.level(slots.get(lane as usize));
                    run = level.keys().slice(windows.get(window) as usize, windows.get(window + 1) as usize);
                }
                skipped = block::split(run, cut.rank, log_pieces, C::ORDER) as u32;
                if (skipped as usize) < run.len() {
                    next = Some(run.get(skipped as usize));
                }
            }
            // The smallest key that follows the end, in the same interval.
            let has_next = any(FULL, next.is_some());
            let next = warp::reduce(next.map_or(u64::MAX, C::to_u64), Min);
            skips.set((end * MAX_LEVELS as u64) as usize + lane_id() as usize, skipped);
            if lane_id() == 0 {
                words.set(1 + 2 * end as usize, cut.interval);
                words.set(2 + 2 * end as usize, cut.rank);
                if end == 1 {
                    words.set(5, next);
                    words.set(6, u64::from(has_next && (is_whole || cut.rank > 0)));
                }
            }
        }
        thread::sync_threads();
        let (first, first_rank) = (words.get(1), words.get(2));
        let (last, last_rank) = (words.get(3), words.get(4));
        // Intervals that the tile has a part of.
        let is_cut = is_whole || last_rank > 0;
        let intervals = (last - first) as u32 + u32::from(is_cut);
        let piece_count = intervals << log_pieces;

        // Each thread writes the table of consecutive pieces.
        let share = piece_count.div_ceil(THREADS);
        let (mut piece, end) = ((own * share).min(piece_count), ((own + 1) * share).min(piece_count));
        let window_of = |piece: u32| {
            let lane = (piece & (pieces - 1)) as usize;
            if lane as u32 >= level_count {
                return (0, 0);
            }
            let (mut start, mut len) = if is_whole {
                (0, levels.level(slots.get(lane)).entry.len)
            } else {
                let at = 2 * (first as usize * pieces as usize + piece as usize);
                (windows.get(at), windows.get(at + 1))
            };
            if is_cut && piece >> log_pieces == intervals - 1 {
                len = skips.get(MAX_LEVELS + lane);
            }
            if piece >> log_pieces == 0 && (is_whole || first_rank > 0) {
                start += skips.get(lane);
                len -= skips.get(lane);
            }
            (start, len)
        };
        let mut len = 0;
        for i in piece..end {
            len += window_of(i).1;
        }
        let prefix = scan::exclusive_scan::<u32, Sum, THREADS>(len, Sum, warp_totals);
        let count = prefix.total;
        let mut offset = prefix.before;
        while piece < end {
            let (start, len) = window_of(piece);
            offsets.set(piece as usize, offset as u16);
            starts.set(piece as usize, start.wrapping_sub(offset));
            offset += len;
            piece += 1;
        }
        if own == 0 {
            offsets.set(piece_count as usize, count as u16);
        }
        thread::sync_threads();
        let table = Table { offsets, starts, pieces: piece_count };

        // Load, all loads under way before the first is waited for.
        let mut loaded = [(C::MIN, P::zeroed()); ITEMS];
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                let piece = table.group(at, 0);
                let level = levels.level(slots.get((piece & (pieces - 1)) as usize));
                let place = table.starts.get(piece as usize).wrapping_add(at);
                let value = if MODE == COUNT { Zeroable::zeroed() } else { level.value(place) };
                loaded[i] = (level.keys().get(place as usize), P::new(value, P::HAS_MARKS && level.is_dead(place)));
            }
        }
        let unmerged = both.slice(first_half(log_pieces, room), room);
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                unmerged.set(at as usize, loaded[i].0, loaded[i].1);
            }
        }
        thread::sync_threads();
        if count > 0 {
            merge_groups::<C, P, ITEMS>(both, table, log_pieces, count);
        }

        if MODE == KEEP {
            for i in 0..ITEMS {
                let at = own + i as u32 * THREADS;
                let is_there = at < count;
                let mut is_dead = false;
                if is_there {
                    let (key, payload) = both.get(at as usize);
                    is_dead = payload.is_dead();
                    out_keys.set((place + at as u64) as usize, key);
                    if size_of::<P::Value>() > 0 {
                        out_values.set((place + at as u64) as usize, payload.value());
                    }
                }
                let marks = ballot(FULL, is_dead);
                if is_there && lane_id() == 0 {
                    out_marks.set(((place + at as u64) / 32) as usize, marks);
                }
            }
            return;
        }

        // Which elements are live: a thread looks at consecutive ones.
        let begin = own * ITEMS as u32;
        let mut live = 0u32;
        if begin < count {
            let mut interval = table.group(begin, log_pieces);
            let mut end = table.offset((interval + 1) << log_pieces);
            let mut key = both.key(begin as usize);
            for i in 0..ITEMS as u32 {
                let at = begin + i;
                if at < count {
                    while at >= end {
                        interval += 1;
                        end = table.offset((interval + 1) << log_pieces);
                    }
                    let mut is_newest = true;
                    if at + 1 < end {
                        let next = both.key(at as usize + 1);
                        is_newest = next != key;
                        if is_newest && !(P::HAS_MARKS && both.get(at as usize).1.is_dead()) {
                            live |= 1 << i;
                        }
                        key = next;
                    } else {
                        if interval == intervals - 1 && words.get(6) != 0 {
                            is_newest = words.get(5) != key.to_u64();
                        }
                        if is_newest && !(P::HAS_MARKS && both.get(at as usize).1.is_dead()) {
                            live |= 1 << i;
                        }
                        if at + 1 < count {
                            key = both.key(at as usize + 1);
                        }
                    }
                }
            }
        }
        let local = scan::exclusive_scan::<u32, Sum, THREADS>(live.count_ones(), Sum, warp_totals);
        // How many live elements come before each: over what the pieces' starts were.
        let before = starts;
        let compacted = both.slice(room, room);
        for i in 0..ITEMS as u32 {
            let at = begin + i;
            if at < count {
                let index = local.before + (live & ((1 << i) - 1)).count_ones();
                before.set(at as usize, index);
                if MODE == EMIT && live >> i & 1 == 1 {
                    let (key, payload) = both.get(at as usize);
                    compacted.set(index as usize, key, payload);
                }
            }
        }
        if own == 0 {
            before.set(count as usize, local.total);
        }
        if MODE == EMIT && warp_id() == 0 {
            let prefix = exchange(scratch, ticket, tiles, local.total as u64, Sum);
            if lane_id() == 0 {
                words.set(7, prefix);
            }
        }
        thread::sync_threads();
        let base = if MODE == EMIT { words.get(7) } else { 0 };
        let mut interval = own;
        while interval < intervals {
            let low = before.get(table.offset(interval << log_pieces) as usize);
            let index = (first + interval as u64) as usize;
            if MODE == EMIT {
                let begins_here = interval > 0 || if is_whole { place == 0 } else { first_rank == 0 };
                if begins_here {
                    counts.set(index, base + low as u64);
                }
            } else {
                let high = before.get(table.offset((interval + 1) << log_pieces) as usize);
                if high > low {
                    counts.atomic_add(index, (high - low) as u64, Scope::Gpu, Order::Relaxed);
                }
            }
            interval += THREADS;
        }
        if MODE == COUNT {
            ticket.tile += thread::grid_dim_x();
            continue;
        }
        if ticket.tile == tiles - 1 && own == 0 {
            counts.set(counts.len() - 1, base + local.total as u64);
        }
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < local.total {
                let (key, payload) = compacted.get(at as usize);
                out_keys.set((base + at as u64) as usize, levels.sign().decode(key));
                if size_of::<P::Value>() > 0 {
                    out_values.set((base + at as u64) as usize, payload.value());
                }
            }
        }
        return;
    }
}

/// Items per thread.
#[must_use]
pub const fn items<C, P>() -> usize {
    match size_of::<C>() + size_of::<P>() {
        0..=8 => 11,
        9..=12 => 7,
        13..=16 => 5,
        _ => 3,
    }
}

/// Names the kernels of one kind of key and payload.
macro_rules! tiles {
    ($($code:ty, $payload:ty: $($mode:ident $name:ident),*;)*) => {
        crate::instances! {
            in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
            $($($name: LevelTiles<$code, $payload, $mode, { items::<$code, $payload>() }>;)*)*
        }
    };
}

tiles! {
    u32, (): COUNT levels_count_u32, EMIT levels_emit_u32;
    u32, u32: EMIT levels_emit_u32_u32;
    u32, u64: EMIT levels_emit_u32_u64;
    u32, MarkedNone: COUNT levels_count_u32_marked, EMIT levels_emit_u32_marked, KEEP levels_keep_u32;
    u32, Marked: EMIT levels_emit_u32_u32_marked, KEEP levels_keep_u32_u32;
    u32, MarkedLong: EMIT levels_emit_u32_u64_marked, KEEP levels_keep_u32_u64;
    u64, (): COUNT levels_count_u64, EMIT levels_emit_u64;
    u64, u32: EMIT levels_emit_u64_u32;
    u64, u64: EMIT levels_emit_u64_u64;
    u64, MarkedNone: COUNT levels_count_u64_marked, EMIT levels_emit_u64_marked, KEEP levels_keep_u64;
    u64, Marked: EMIT levels_emit_u64_u32_marked, KEEP levels_keep_u64_u32;
    u64, MarkedLong: EMIT levels_emit_u64_u64_marked, KEEP levels_keep_u64_u64;
}
