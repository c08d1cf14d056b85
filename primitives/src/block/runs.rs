//! The merge of many sorted pieces within a block.
//!
//! The pieces lie one after the other in shared memory. They are merged pairwise, round by round, from one half of the
//! memory into the other. A value moves with its key: if both have 4 bytes, they form one 8-byte word that is read and
//! written at once.
//!
//! In a round, each thread produces up to `ITEMS` outputs of one pair. If the length of a pair is not a multiple of
//! `ITEMS`, its last thread produces fewer. So a block handles `THREADS` minus the number of pairs, times `ITEMS`,
//! items: see [`room`]. Which threads work on which pair is computed once for all rounds.
//!
//! The cost per item and round is one dependent read and one write of shared memory, about 20 instructions, and
//! `1 / ITEMS` of the search for the thread's position in its pair.

use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, shuffle_idx, shuffle_xor};
use crate::block::merge::{Chain, Pieces, path};
use crate::block::warp::{self, map_words};
use crate::compare::KeyOrder;
use crate::monoid::Sum;
use crate::view::{Global, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The maximum number of pieces: one per lane.
pub const MAX_PIECES: usize = LANES as usize;

/// Combines one value per lane, within groups of `1 << log_lanes` lanes.
///
/// # Safety
/// All lanes of the warp must call this, with the same `log_lanes`, at most 5.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn group_reduce<T: Pod>(value: T, log_lanes: u32, combine: impl Fn(T, T) -> T) -> T {
    let mut result = value;
    let mut step = 0;
    while step < log_lanes {
        result = combine(result, map_words(result, |_, word| shuffle_xor(FULL, word, 1 << step)));
        step += 1;
    }
    result
}

/// Returns the sum of one number per lane, within groups of `1 << log_lanes` lanes.
///
/// # Safety
/// All lanes of the warp must call this.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn sum(number: u64, log_lanes: u32) -> u64 {
    group_reduce(number, log_lanes, |a, b| a + b)
}

/// Returns how many of `len` items come before a pivot, where `before` tells it for each item. The result is probably
/// within `reach` of `guess`, which is the index of an item.
///
/// It probes the guess and a position on each side of it, then the quarters of the remaining range. That keeps three
/// loads in flight and needs no branches, so that lanes with different runs take the same steps.
#[inline(always)]
pub(crate) fn count_before(len: u32, guess: u32, reach: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, len);
    let right = if len - 1 - guess > reach { guess + reach } else { len - 1 };
    let mut probes = [guess.saturating_sub(reach), guess, right];
    while low < high {
        // A comparator that contradicts itself may say no before yes. Then the count is still some position in range.
        let count = u32::from(before(probes[0])) + u32::from(before(probes[1])) + u32::from(before(probes[2]));
        let left = if count == 1 {
            probes[0]
        } else if count == 2 {
            probes[1]
        } else {
            probes[2]
        };
        let right = if count == 0 {
            probes[0]
        } else if count == 1 {
            probes[1]
        } else {
            probes[2]
        };
        low = if count == 0 { low } else { left + 1 };
        high = if count == 3 { high } else { right };
        let quarter = high.wrapping_sub(low) / 4;
        probes = [low + quarter, low + high.wrapping_sub(low) / 2, high.wrapping_sub(1 + quarter)];
    }
    low
}

/// Up to this many items are taken one by one, which is faster than searching.
pub(crate) const FEW: u64 = 12;

/// A range that does not fit 32 bits is handled in parts: it is the widest, and its pivots lie in the part that fits.
pub(crate) const MOST: u64 = 1 << 26;

/// Splits sorted runs, one per lane of a group of `1 << log_lanes`, after the first `needed` items of their stable
/// merge, or up to `slack` more or fewer. Returns to each lane how many of these items come from its run. Splits after
/// no items and after all items are exact.
///
/// Each lane knows that its share lies between `low` and `high`. In each turn, the lane with the widest range names a
/// pivot, and every lane counts how many of its items come before it. The sum is the pivot's rank. If it is less than
/// what is needed, the pivot and everything before it are inside; otherwise the pivot and everything after it are
/// outside.
///
/// The pivot is chosen where the boundary would be if the runs were alike, alternately a little to either side. So two
/// pivots usually leave a window as wide as the square root of the last one. If two pivots have not reduced the window
/// to a quarter, the next one is the middle: for any keys, the number of turns is at most a small multiple of the sum
/// of the runs' logarithms. The lanes also search for the pivot near where they expect it. When only a few items are
/// still needed, they are taken one by one. For eight runs of 2^21 random keys, this takes about 7 turns, 30 dependent
/// loads, most of them near the previous one, and 6 single items. With some slack it ends after 5 turns.
///
/// The shares always add up, for any comparator, since they are counted that way.
///
/// # Safety
/// All lanes of the warp must call this. The lanes of a group pass the same `needed`, at most the sum of the runs'
/// lengths.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn split<K: Pod, C: KeyOrder<K>>(
    run: Global<K>,
    needed: u64,
    slack: u64,
    log_lanes: u32,
    compare: C,
) -> u64 {
    // The number of items still to be found beyond the lanes' `low`.
    let mut needed = needed;
    let lane = lane_id() & ((1 << log_lanes) - 1);
    let first_lane = lane_id() - lane;
    let mut low = 0u64;
    let mut high = run.len() as u64;
    if slack > 0 && needed == sum(high, log_lanes) {
        low = high;
        needed = 0;
    }
    let few = if slack > FEW { slack } else { FEW };
    // The number of open items in the last two turns, the most recent first.
    let mut opens = [f32::INFINITY; 2];
    let mut aims_high = true;
    while any(FULL, needed > few) {
        let width = if high - low < u32::MAX as u64 { (high - low) as u32 } else { u32::MAX };
        let open = group_reduce((high - low) as f32, log_lanes, |a, b| a + b);
        let size = if (width as u64) < MOST { width } else { MOST as u32 };
        let widest = group_reduce((size << 5) | lane, log_lanes, |a, b| if a > b { a } else { b });
        let pivot_lane = widest & (LANES - 1);
        // About half the square root: the expected random difference between runs.
        let margin = (1u32 << ((u32::BITS - width.leading_zeros()) / 2)) / 2;
        let expected = (width as f32 * (needed as f32 / open)) as u32;
        let aim = match (4.0 * open > opens[1], aims_high) {
            (true, _) => width / 2,
            (_, true) => expected.saturating_add(margin),
            _ => expected.saturating_sub(margin),
        };
        let guess = if aim < width { aim } else { width.saturating_sub(1) };
        let rest = run.slice(low as usize, (high - low) as usize);
        let key = if width > 0 { rest.get(guess as usize) } else { K::zeroed() };
        let pivot = warp::broadcast(key, first_lane + pivot_lane);
        let mut share = 0u64;
        if lane == pivot_lane {
            share = guess as u64;
        } else if width > 0 {
            let is_earlier = lane < pivot_lane;
            let before = |at: u64| {
                let key = rest.get(at as usize);
                let (a, b) = if is_earlier { (pivot, key) } else { (key, pivot) };
                compare.less(a, b) != is_earlier
            };
            let mut skipped = 0;
            let mut left = high - low;
            while left > u32::MAX as u64 {
                if before(skipped + left / 2) {
                    skipped += left / 2 + 1;
                    left -= left / 2 + 1;
                } else {
                    left /= 2;
                }
            }
            if left > 0 {
                let guess = if (guess as u64) < left { guess } else { left as u32 - 1 };
                // Two runs differ more from each other than one differs from its expectation, and the slowest lane
                // determines the time.
                let reach = 4 * margin;
                share = skipped + count_before(left as u32, guess, reach, |at| before(skipped + at as u64)) as u64;
            } else {
                share = skipped;
            }
        }
        let rank = sum(share, log_lanes);
        opens = [open, opens[0]];
        let is_inside = rank < needed;
        aims_high = is_inside;
        if needed <= few {
            // This boundary is almost found; it waits for those of the other groups.
        } else if needed.abs_diff(rank) <= slack {
            low += share;
            needed = 0;
        } else if is_inside {
            low += share + u64::from(lane == pivot_lane);
            needed -= rank + 1;
        } else {
            high = low + share;
        }
    }
    let mut head = if low < high { run.get(low as usize) } else { K::zeroed() };
    while any(FULL, needed > slack) {
        // The lane whose next item comes first, among those that have one; on a tie, the lower lane.
        let mut key = head;
        let mut first = if low < high { lane } else { LANES };
        let mut step = 0;
        while step < log_lanes {
            let other_key = map_words(key, |_, word| shuffle_xor(FULL, word, 1 << step));
            let other = shuffle_xor(FULL, first, 1 << step);
            let (a, b) = if other < first { (key, other_key) } else { (other_key, key) };
            if (other < LANES) & ((first == LANES) | (compare.less(a, b) != (other < first))) {
                (key, first) = (other_key, other);
            }
            step += 1;
        }
        // If the comparator contradicts itself, the lanes may disagree.
        let first = shuffle_idx(FULL, first, first_lane);
        if needed > slack {
            needed -= 1;
            if first == lane {
                low += 1;
                if low < high {
                    head = run.get(low as usize);
                }
            }
        }
    }
    low
}

/// Returns how many items a block takes from `1 << rounds` pieces: a multiple of 32.
#[must_use]
#[inline(always)]
pub const fn room(threads: u32, items: usize, rounds: u32) -> usize {
    // At least the loss of eight pieces: with five blocks, a multiprocessor's shared memory is full.
    let pairs = if rounds > 3 { (1 << rounds) / 2 } else { 4 };
    ((threads as usize - pairs) * items) / LANES as usize * LANES as usize
}

/// Keys and values in shared memory.
#[derive(Clone, Copy)]
pub struct Items<K, V> {
    keys: Shared<K>,
    values: Shared<V>,
    /// Both in one word, where they fit: the key in the lower half.
    words: Shared<u64>,
}

/// Returns whether a key and its value form one word.
const fn is_word<K, V>() -> bool {
    size_of::<K>() == 4 && size_of::<V>() == 4
}

impl<K: Pod, V: Pod> Items<K, V> {
    /// Returns the bytes for `len` items.
    #[must_use]
    pub const fn bytes(len: usize) -> usize {
        if is_word::<K, V>() { shared_bytes::<u64>(len) } else { shared_bytes::<K>(len) + shared_bytes::<V>(len) }
    }

    /// Takes memory for `len` items.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    pub unsafe fn take(memory: &mut SharedMemory, len: usize) -> Self {
        if is_word::<K, V>() {
            let words = memory.take::<u64>(len);
            Self { keys: memory.take::<K>(0), values: memory.take::<V>(0), words }
        } else {
            let keys = memory.take::<K>(len);
            let values = memory.take::<V>(len);
            Self { keys, values, words: memory.take::<u64>(0) }
        }
    }

    /// Returns `len` items from `start` on.
    ///
    /// # Safety
    /// `start + len` is at most the length.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        if is_word::<K, V>() {
            Self { words: self.words.slice(start, len), ..self }
        } else {
            Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len), ..self }
        }
    }

    /// Returns item `at`.
    ///
    /// # Safety
    /// `at` is within the length and the item was written; see [`Shared::get`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, at: usize) -> (K, V) {
        if is_word::<K, V>() {
            let word = self.words.get(at);
            // SAFETY: both have 4 bytes, and all bit patterns are valid.
            (core::mem::transmute_copy(&(word as u32)), core::mem::transmute_copy(&((word >> 32) as u32)))
        } else {
            (self.keys.get(at), self.values.get(at))
        }
    }

    /// Returns the key of item `at`.
    ///
    /// # Safety
    /// Same as [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn key(self, at: usize) -> K {
        if is_word::<K, V>() { self.get(at).0 } else { self.keys.get(at) }
    }

    /// Writes item `at`.
    ///
    /// # Safety
    /// `at` is within the length, and no other thread uses the item before a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, at: usize, key: K, value: V) {
        if is_word::<K, V>() {
            // SAFETY: both have 4 bytes and no padding.
            let (key, value): (u32, u32) = (core::mem::transmute_copy(&key), core::mem::transmute_copy(&value));
            self.words.set(at, key as u64 | (value as u64) << 32);
        } else {
            self.keys.set(at, key);
            self.values.set(at, value);
        }
    }
}

/// The pieces of a tile, one after the other.
#[derive(Clone, Copy)]
pub struct Table {
    /// The start of each piece, followed by the end of the last one.
    offsets: Shared<u32>,
    /// The first thread of each pair, for all rounds: with `1 << d` pairs, that of pair `j` is at `(1 << d) + j`.
    first_threads: Shared<u32>,
    chains: Shared<u32>,
}

impl Table {
    /// Returns the bytes of shared memory.
    #[must_use]
    pub const fn bytes(threads: u32) -> usize {
        shared_bytes::<u32>(MAX_PIECES + 1)
            + shared_bytes::<u32>(MAX_PIECES)
            + shared_bytes::<u32>(2 * Chain::words(threads))
    }

    /// Takes memory for the table.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    pub unsafe fn take(memory: &mut SharedMemory, threads: u32) -> Self {
        Self {
            offsets: memory.take::<u32>(MAX_PIECES + 1),
            first_threads: memory.take::<u32>(MAX_PIECES),
            chains: memory.take::<u32>(2 * Chain::words(threads)),
        }
    }

    /// Writes the table from the lengths of the pieces, one per lane of one warp, and returns the start of each. A
    /// barrier must come before it is read.
    ///
    /// # Safety
    /// All lanes of exactly one warp must call this. Pieces from `1 << log_pieces` on are empty.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn write<const ITEMS: usize>(self, len: u32, log_pieces: u32) -> u32 {
        let lane = lane_id();
        let end = warp::inclusive_scan(len, Sum);
        self.offsets.set(lane as usize, end - len);
        if lane == LANES - 1 {
            self.offsets.set(MAX_PIECES, end);
        }
        let mut width = 1;
        let mut pair_len = len;
        let mut pairs = 1u32 << log_pieces;
        while pairs > 1 {
            // The lanes at multiples of the width hold the lengths of their pairs.
            pair_len += warp::shuffle_down(pair_len, width);
            width *= 2;
            pairs /= 2;
            let leads = lane & (width - 1) == 0;
            let threads = if leads { pair_len.div_ceil(ITEMS as u32) } else { 0 };
            let before = warp::inclusive_scan(threads, Sum) - threads;
            if leads && lane / width < pairs {
                self.first_threads.set((pairs + lane / width) as usize, before);
            }
        }
        end - len
    }

    /// Returns the number of items of all pieces.
    ///
    /// # Safety
    /// The table was written, and a barrier followed.
    #[inline(always)]
    #[must_use]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn count(self) -> u32 {
        self.offsets.get(MAX_PIECES)
    }

    /// Returns the ends of the pieces, one per lane: a fast way to find the piece of each item in a row.
    ///
    /// # Safety
    /// The table was written, and a barrier followed.
    #[inline(always)]
    #[must_use]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn ends(self) -> Ends {
        Ends { own: self.offsets.get(lane_id() as usize + 1) }
    }

    /// Returns the piece that contains item `at`, starting the search at `piece`.
    ///
    /// # Safety
    /// The table was written, and a barrier followed; there are more than `at` items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn piece(self, at: u32, mut piece: u32) -> u32 {
        while self.offsets.get(piece as usize + 1) <= at {
            piece += 1;
        }
        piece
    }
}

/// The ends of the pieces, one per lane.
#[derive(Clone, Copy)]
pub struct Ends {
    own: u32,
}

impl Ends {
    /// Returns the piece that contains item `at`, or the last piece. The lanes of the warp have consecutive items, and
    /// the first of them is a multiple of 32.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[must_use]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn piece(self, at: u32) -> u32 {
        let first = at & !(LANES - 1);
        let mut piece = ballot(FULL, self.own <= first).count_ones();
        // The pieces that end within the row.
        let mut ending = ballot(FULL, self.own > first && self.own < first + LANES);
        while ending != 0 {
            piece += u32::from(shuffle_idx(FULL, self.own, ending.trailing_zeros()) <= at);
            ending &= ending - 1;
        }
        piece.min(LANES - 1)
    }
}

/// Returns where [`merge`] first reads from, in two halves of `room` items: the rounds alternate and end in the first
/// half.
#[must_use]
#[inline(always)]
pub const fn first_half(rounds: u32, room: usize) -> usize {
    if rounds.is_multiple_of(2) { 0 } else { room }
}

/// Merges groups of `1 << rounds` of the `1 << log_pieces` pieces. Returns whether the threads' parts fit together. If
/// not, the comparator contradicts itself, and the memory holds neither a permutation nor a sorted sequence. With
/// `CHECKED` false this is not checked: the comparator is known to be an order.
///
/// The items lie at [`first_half`], and there are `count` of them, at least one. Afterwards they are at 0.
///
/// # Safety
/// All threads of the block must call this. `both` has twice `room` items, and `count` is at most
/// `room(THREADS, ITEMS, log_pieces)`. The table was [written](Table::write) with the same number of pieces and items,
/// and a barrier followed.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn merge<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize, const CHECKED: bool>(
    both: Items<K, V>,
    room: usize,
    table: Table,
    log_pieces: u32,
    rounds: u32,
    count: u32,
    compare: C,
) -> bool {
    // Between pairs there is nothing to check.
    const BETWEEN: u32 = u32::MAX - 1;
    let own = thread::thread_idx_x();
    let last = count - 1;
    let mut from = first_half(rounds, room);
    let mut fits = true;
    let mut round = 0;
    while round < rounds {
        let items = both.slice(from, room);
        let merged = both.slice(room - from, room);
        let pairs = 1u32 << (log_pieces - 1 - round);
        // The last pair that begins at or before this thread: empty pairs begin where the next one does.
        let mut pair = 0;
        let mut step = pairs / 2;
        while step > 0 {
            if table.first_threads.get((pairs + pair + step) as usize) <= own {
                pair += step;
            }
            step /= 2;
        }
        let piece = (pair << (round + 1)) as usize;
        let start = table.offsets.get(piece);
        let a_end = table.offsets.get(piece + (1 << round));
        let end = table.offsets.get(piece + (2 << round));
        let skipped = (own - table.first_threads.get((pairs + pair) as usize)) * ITEMS as u32;
        let diagonal = if skipped < end - start { skipped } else { end - start };
        let left = end - start - diagonal;
        let pieces = Pieces { a: start, a_len: a_end - start, b: a_end, b_len: end - a_end };
        let share = path(|at| items.key(at as usize), pieces, diagonal, compare);
        let mut a = start + share;
        let mut b = a_end + diagonal - share;
        let begins = if diagonal == 0 || left == 0 { BETWEEN } else { a };
        let (mut key_a, mut value_a) = items.get(a.min(last) as usize);
        let (mut key_b, mut value_b) = items.get(b.min(last) as usize);
        let first = start + diagonal;
        // The last thread of a pair continues beyond its end and drops what it reads: all threads take the same steps.
        for i in 0..ITEMS as u32 {
            // No branch around the comparison, which the compiler does not remove.
            let takes_a = (a < a_end) & ((b >= end) | !compare.less(key_b, key_a));
            let (source, key, value) = if takes_a { (a, key_a, value_a) } else { (b, key_b, value_b) };
            if i < left {
                merged.set((first + i) as usize, key, value);
            }
            let next = items.get((source + 1).min(last) as usize);
            if takes_a {
                a += 1;
                (key_a, value_a) = next;
            } else {
                b += 1;
                (key_b, value_b) = next;
            }
        }
        if CHECKED {
            let words = Chain::words(THREADS);
            let chain = Chain::new(table.chains.slice((round % 2) as usize * words, words));
            chain.post(begins, if left <= ITEMS as u32 { BETWEEN } else { a });
            thread::sync_threads();
            fits &= chain.holds(BETWEEN);
        } else {
            thread::sync_threads();
        }
        from = room - from;
        round += 1;
    }
    fits
}
