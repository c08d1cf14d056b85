//! The kernel that merges levels and keeps the live elements: for counts, ranges, cleanups, exports, and merges with
//! tombstones.
//!
//! # Tiles
//! The *overlapping elements* of an interval are the elements of all levels within it. All intervals, one after the
//! other, each with its overlapping elements in merged order, make one long sequence. It is cut into tiles, one per
//! block. An interval with fewer elements than a quarter of a tile's room is never cut: a cut that would fall into it
//! is moved to its beginning. So a tile has at most a third more than its nominal length, which is three quarters of
//! the room. Longer intervals are cut anywhere, by [splitting](block::split) the windows of the levels.
//!
//! The block loads its elements, one *piece* per interval and level, oldest first, and merges the pieces of each
//! interval pairwise in shared memory. Then an element is live if the next one has a different key, because the newest
//! comes last, and if it is not a tombstone. The live elements are counted, or they are compacted and written after
//! those of earlier tiles, whose number a [look-back](crate::block::lookback) gives.
//!
//! # Cost
//! Reads every overlapping element once, and writes every live one once. The merge takes one round per factor of two in
//! the number of levels.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use super::cut::{Cut, find_cuts};
use super::find::{Found, Levels};
use super::groups::{Table, merge_groups};
use super::payload::{Marked, MarkedLong, MarkedNone, Payload};
use super::table::{Entry, MAX_LEVELS};
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, warp_id};
use crate::arch::{Order, Scope, anew, thread};
use crate::block::lookback::{Ticket, exchange, take_ticket};
use crate::block::runs::{self as block, Items, first_half};
use crate::block::{scan, warp};
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::scan::{Min, Sum};
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// Threads per block. Two blocks share a multiprocessor, with 80 registers per thread.
pub(super) const THREADS: u32 = 384;

/// Mode: count the live elements of each interval.
pub const COUNT: u32 = 0;
/// Mode: write the live elements.
pub const EMIT: u32 = 1;
/// Mode: write all elements, live or stale, with their marks.
pub const KEEP: u32 = 2;

/// Returns how many elements a tile has room for: whole lines of 32, and enough fewer than the threads could take that
/// they suffice for up to 32 pieces. See [`block::room`].
#[must_use]
pub const fn room(items: usize) -> usize {
    block::room(THREADS, items, MAX_LEVELS.ilog2())
}

/// Returns the nominal length of a tile of intervals. Intervals longer than the rest of the room may be cut.
#[must_use]
pub const fn nominal(items: usize) -> usize {
    room(items) / 4 * 3
}

/// The least weight of an interval, in elements per piece. It limits the number of pieces in a tile.
pub(super) const LEAST_PER_PIECE: usize = 2;

/// Returns the most pieces that a tile may have: those of the uncut intervals, and of up to two cut ones.
const fn most_pieces(items: usize) -> usize {
    room(items) / LEAST_PER_PIECE + 2 * MAX_LEVELS
}

/// Returns the shared memory of a block in bytes.
#[must_use]
pub const fn shared<C: Pod, P: Pod>(items: usize) -> usize {
    Items::<C, P>::bytes(2 * room(items))
        + shared_bytes::<u16>(most_pieces(items) + 1)
        + shared_bytes::<u32>(most_pieces(items))
        + shared_bytes::<u32>(2 * MAX_LEVELS)
        + shared_bytes::<Entry>(MAX_LEVELS)
        + shared_bytes::<u64>(8)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
        + 2 * shared_bytes::<u32>(THREADS as usize)
        + 2 * shared_bytes::<u64>(MAX_LEVELS)
        + block::Table::bytes(THREADS)
}

/// Returns the number of blocks per multiprocessor. On some GPUs, counting wide keys takes more registers than two
/// blocks have.
const fn min_blocks<C>(mode: u32) -> u32 {
    if mode == COUNT && size_of::<C>() > 4 { 1 } else { 2 }
}

/// Returns element `at` of the array at an address.
///
/// # Safety
/// The element is device memory whose address was exposed, aligned for `T`. Nobody writes it while the kernel runs.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn at_address<T: Pod>(address: u64, at: u32) -> T {
    let elements: Global<T> = Global::from_raw(core::ptr::with_exposed_provenance(address as usize), at as usize + 1);
    elements.get(at as usize)
}

/// Merges the parts of the levels within intervals, and counts or writes the elements.
///
/// There are two ways to cut the tiles. For intervals, they are cut by `windows` and `weights`, which are the positions
/// of the intervals in the sequence, as [`FindWindows`](super::FindWindows) and a sum give them. `tile` is then the
/// nominal length. If both are empty, there is one interval of everything, and the tiles are cut by `splits`, as a
/// partition of the levels, oldest first, gives them. `tile` is then the exact length, and `total` the number of
/// elements.
///
/// - `COUNT`: adds the number of live elements of each interval to `counts`, which is zero before.
/// - `EMIT`: writes the live elements to `out_keys` and `out_values`. `counts` receives the index of the first one of
///   each interval, and finally the number of all.
/// - `KEEP`: writes all elements there, and the marks to `out_marks`.
///
/// # Safety
/// `levels` shows at least one level, and `1 << log_pieces` is at least their number and at most 32. `tile` is not 0.
/// The tiles are cut in one of two ways:
/// - `windows` is what `FindWindows` has written for these levels and this `log_pieces`, and `weights` is the exclusive
///   sum of the weights it has written, which ends with the sum of all. `tile` is at most `nominal(ITEMS)`.
/// - Both are empty, and `splits` is what [`RunsPartition`](crate::merge::RunsPartition) has written after its table
///   for the keys of these levels, oldest first, such tiles and no slack. `tile` is at most `room(ITEMS)`, and `total`
///   is the number of elements in all levels. `KEEP` requires this way, and that `tile` is a multiple of 32.
///
/// The launch and the buffers that are used depend on the mode; other buffers may be empty:
/// - `COUNT`: any number of blocks. `counts` has one element per interval.
/// - `EMIT`: one block per tile. `counts` has one element per interval and one more. `out_keys` has room for all live
///   elements, and so has `out_values` unless values are zero-sized. `scratch` comes from the stream's look-back words,
///   for one `u64` per tile.
/// - `KEEP`: one block per tile. `out_keys` has room for `total` elements, and so has `out_values` unless values are
///   zero-sized. `out_marks` has room for as many bits.
///
/// While the kernel runs, nobody changes the levels or writes the other inputs, and nobody else uses the outputs or
/// `scratch`.
#[kernel(threads = THREADS, shared = shared::<C, P>(ITEMS), min_blocks = min_blocks::<C>(MODE))]
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
    // How much is cut off the windows of the first interval, and how much is left of those of the last.
    let skips = memory.take::<u32>(2 * MAX_LEVELS);
    // The entries of the levels, oldest first.
    let entries = memory.take::<Entry>(MAX_LEVELS);
    let words = memory.take::<u64>(8);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    // For each thread, which of its elements are live, and how many live elements precede them.
    let thread_live = memory.take::<u32>(THREADS as usize);
    let thread_before = memory.take::<u32>(THREADS as usize);
    // If there are few pieces: their addresses, shifted so that they can be indexed by the position in the tile.
    let key_addresses = memory.take::<u64>(MAX_LEVELS);
    let value_addresses = memory.take::<u64>(MAX_LEVELS);
    let short = block::Table::take(&mut memory, THREADS);

    let own = thread::thread_idx_x();
    let pieces = 1u32 << log_pieces;
    let is_whole = weights.is_empty();
    let length = if is_whole { total } else { weights.get(weights.len() - 1) };
    let tiles = length.div_ceil(tile as u64) as u32;
    if own < LANES && levels.occupied() >> own & 1 == 1 {
        entries.set((levels.occupied() >> own >> 1).count_ones() as usize, levels.level(own).entry);
    }
    let level_of = |lane: u32| Found::<C, P::Value>::new(entries.get(lane as usize));
    let level_count = levels.occupied().count_ones();

    let mut ticket = Ticket { tile: thread::block_idx_x(), tag: 0 };
    if MODE == EMIT && own == 0 {
        let taken = take_ticket(scratch, tiles);
        words.set(0, taken.tile as u64 | (taken.tag as u64) << 32);
    }
    thread::sync_threads();
    if MODE == EMIT {
        ticket = Ticket { tile: words.get(0) as u32, tag: (words.get(0) >> 32) as u32 };
    }
    while ticket.tile < tiles {
        // The values that the loops derive from `own` are not worth keeping in registers from tile to tile.
        let own = anew(own);
        // Every warp finds where the tile begins and ends, instead of waiting for one warp to do it.
        let place = ticket.tile as u64 * tile as u64;
        let end = if length - place < tile as u64 { length } else { place + tile as u64 };
        let [first, last] = if is_whole {
            [Cut { interval: 0, rank: place }, Cut { interval: 0, rank: end }]
        } else {
            find_cuts(weights, [place, end], (room - nominal(ITEMS)) as u64)
        };
        // The number of intervals that the tile has a part of, and of their pieces.
        let intervals = (last.interval - first.interval) as u32 + u32::from(last.rank > 0);
        let piece_count = intervals << log_pieces;
        let is_short = piece_count as usize <= MAX_LEVELS;
        // Wait until the shared memory of the previous tile is no longer used.
        thread::sync_threads();

        if warp_id() == 0 {
            // How much is cut off the windows of the first interval, and left of those of the last: one lane per level.
            let lane = lane_id() & (pieces - 1);
            let is_level = lane < level_count;
            let level = level_of(if is_level { lane } else { 0 });
            let window = |interval: u64| {
                if is_whole || !is_level {
                    return (0, if is_level { level.entry.len } else { 0 });
                }
                let at = 2 * (interval as usize * pieces as usize + lane as usize);
                (windows.get(at), windows.get(at + 1))
            };
            let split = |cut: Cut, boundary: u32| {
                if is_whole {
                    let at = boundary as usize * level_count as usize + lane as usize;
                    return if is_level { splits.get(at) as u32 } else { 0 };
                }
                let (start, len) = window(cut.interval);
                block::split(level.keys().slice(start as usize, len as usize), cut.rank, 0, log_pieces, C::ORDER) as u32
            };
            let skipped = if first.rank > 0 { split(first, ticket.tile) } else { 0 };
            let mut left = 0;
            let mut next = u64::MAX;
            let mut has_next = false;
            if last.rank > 0 {
                left = split(last, ticket.tile + 1);
                let (start, len) = window(last.interval);
                if left < len {
                    next = level.keys().get((start + left) as usize).to_u64();
                }
                // The smallest key that follows the tile in its last interval.
                has_next = any(FULL, left < len);
                next = warp::reduce(next, Min);
            }
            if lane_id() == 0 {
                words.set(5, next);
                words.set(6, u64::from(has_next));
            }
            if is_short {
                let interval = lane_id() >> log_pieces;
                let (mut start, mut len) = (0, 0);
                if interval < intervals {
                    (start, len) = window(first.interval + interval as u64);
                    if interval == intervals - 1 && last.rank > 0 {
                        len = left;
                    }
                    if interval == 0 {
                        start += skipped;
                        len -= skipped;
                    }
                }
                let offset = short.write::<ITEMS>(len, piece_count.next_power_of_two().ilog2());
                let at = lane_id() as usize;
                offsets.set(at, offset as u16);
                starts.set(at, start.wrapping_sub(offset));
                if lane_id() == LANES - 1 {
                    offsets.set(MAX_LEVELS, (offset + len) as u16);
                }
                let moved = start as i64 - offset as i64;
                let address = |base: u64, size: usize| base.wrapping_add_signed(moved * size as i64);
                key_addresses.set(at, address(level.entry.keys, size_of::<C>()));
                value_addresses.set(at, address(level.entry.values, size_of::<P::Value>()));
            } else {
                skips.set(lane_id() as usize, skipped);
                skips.set(MAX_LEVELS + lane_id() as usize, left);
            }
        }
        thread::sync_threads();
        if !is_short {
            // Each thread writes the table entries of consecutive pieces.
            let share = piece_count.div_ceil(THREADS);
            let (mut piece, end) = ((own * share).min(piece_count), ((own + 1) * share).min(piece_count));
            let window_of = |piece: u32| {
                let lane = (piece & (pieces - 1)) as usize;
                if lane as u32 >= level_count {
                    return (0, 0);
                }
                let at = 2 * (first.interval as usize * pieces as usize + piece as usize);
                let (mut start, mut len) = (windows.get(at), windows.get(at + 1));
                if last.rank > 0 && piece >> log_pieces == intervals - 1 {
                    len = skips.get(MAX_LEVELS + lane);
                }
                if piece >> log_pieces == 0 {
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
            let mut offset = prefix.before;
            while piece < end {
                let (start, len) = window_of(piece);
                offsets.set(piece as usize, offset as u16);
                starts.set(piece as usize, start.wrapping_sub(offset));
                offset += len;
                piece += 1;
            }
            if own == 0 {
                offsets.set(piece_count as usize, prefix.total as u16);
            }
            thread::sync_threads();
        }
        let table = Table { offsets, starts, pieces: piece_count };
        let count = table.offset(if is_short { MAX_LEVELS as u32 } else { piece_count });

        // All loads are in flight before the first one is waited for.
        let mut loaded = [(C::MIN, P::zeroed()); ITEMS];
        if is_short && !P::HAS_MARKS {
            let ends = short.ends();
            for i in 0..ITEMS {
                let at = own + i as u32 * THREADS;
                let piece = ends.piece(at) as usize;
                if at < count {
                    let has_values = MODE != COUNT && size_of::<P::Value>() > 0;
                    let value =
                        if has_values { at_address(value_addresses.get(piece), at) } else { Zeroable::zeroed() };
                    loaded[i] = (at_address(key_addresses.get(piece), at), P::new(value, false));
                }
            }
        }
        let mut piece = 0;
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count && (P::HAS_MARKS || !is_short) {
                piece = table.piece(at, piece);
                let level = level_of(piece & (pieces - 1));
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
            if is_short {
                let log_all = piece_count.next_power_of_two().ilog2();
                block::merge::<C, P, C::Order, THREADS, ITEMS, false>(
                    both,
                    room,
                    short,
                    log_all,
                    log_pieces,
                    count,
                    C::ORDER,
                );
            } else {
                merge_groups::<C, P, ITEMS>(both, room, table, log_pieces, count);
            }
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

        // Finds the live elements. Each thread examines consecutive ones.
        let begin = own * ITEMS as u32;
        let mut live = 0u32;
        if begin < count {
            let mut interval = table.group(begin, log_pieces);
            let mut end = table.offset((interval + 1) << log_pieces);
            let (mut key, mut payload) = both.get(begin as usize);
            for i in 0..ITEMS as u32 {
                let at = begin + i;
                if at < count {
                    let (next_key, next_payload) = both.get((at + 1).min(count - 1) as usize);
                    let mut is_newest = next_key != key;
                    if at + 1 == end {
                        let is_last = interval == intervals - 1 && words.get(6) != 0;
                        is_newest = !is_last || words.get(5) != key.to_u64();
                        while at + 1 == end && interval < intervals - 1 {
                            interval += 1;
                            end = table.offset((interval + 1) << log_pieces);
                        }
                    }
                    live |= u32::from(is_newest && !payload.is_dead()) << i;
                    (key, payload) = (next_key, next_payload);
                }
            }
        }
        let local = scan::exclusive_scan::<u32, Sum, THREADS>(live.count_ones(), Sum, warp_totals);
        thread_live.set(own as usize, live);
        thread_before.set(own as usize, local.before);
        // Returns how many live elements precede an index.
        let before = |at: u32| {
            let thread = at / ITEMS as u32;
            if thread >= THREADS {
                return local.total;
            }
            let earlier = thread_live.get(thread as usize) & ((1 << (at % ITEMS as u32)) - 1);
            thread_before.get(thread as usize) + earlier.count_ones()
        };
        // If all elements are live, they are already compact.
        let is_all = local.total == count;
        if MODE == EMIT && !is_all {
            let compacted = both.slice(room, room);
            let mut index = local.before;
            for i in 0..ITEMS as u32 {
                if live >> i & 1 == 1 {
                    let (key, payload) = both.get((begin + i) as usize);
                    compacted.set(index as usize, key, payload);
                    index += 1;
                }
            }
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
            let low = before(table.offset(interval << log_pieces));
            let index = (first.interval + interval as u64) as usize;
            if MODE == EMIT {
                let begins_here = interval > 0 || first.rank == 0;
                if begins_here {
                    counts.set(index, base + low as u64);
                }
            } else {
                let high = before(table.offset((interval + 1) << log_pieces));
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
        let compacted = both.slice(if is_all { 0 } else { room }, room);
        let (out_keys, out_values) = (
            out_keys.slice(base as usize, local.total as usize),
            if size_of::<P::Value>() > 0 { out_values.slice(base as usize, local.total as usize) } else { out_values },
        );
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < local.total {
                let (key, payload) = compacted.get(at as usize);
                out_keys.set(at as usize, levels.sign().decode(key));
                if size_of::<P::Value>() > 0 {
                    out_values.set(at as usize, payload.value());
                }
            }
        }
        return;
    }
}

/// Returns the number of items per thread: an odd number, to avoid bank conflicts. Counting takes some more registers,
/// because a block goes from tile to tile.
#[must_use]
pub const fn items<C, P>(mode: u32) -> usize {
    match size_of::<C>() + size_of::<P>() {
        5..=8 if mode == COUNT => 9,
        0..=8 => 13,
        9..=12 => 9,
        13..=16 => 7,
        _ => 5,
    }
}

/// Names the kernels for a key type and a payload type.
macro_rules! tiles {
    ($($code:ty, $payload:ty: $($mode:ident $name:ident),*;)*) => {
        crate::instances! {
            in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
            $($($name: LevelTiles<$code, $payload, $mode, { items::<$code, $payload>($mode) }>;)*)*
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
