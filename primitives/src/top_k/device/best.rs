//! The best elements of a row, held in shared memory while its tiles are read.

use super::code::{Coding, Position};
use super::numbers::Numbers;
use super::order::NumberKeys;
use super::tile::{Candidates, first_of_run, run_of, striped};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::block::{scan, warp};
use crate::input::Input;
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// The candidates per thread.
const PER_THREAD: usize = 2;

/// The codes that are read at once. The last ones may lie beyond all.
const BEYOND: usize = 4;

/// Returns how many candidates there is room for. Half of them may be the best so far.
const fn room(threads: u32) -> usize {
    PER_THREAD * threads as usize
}

/// The best numbers so far: the largest first, and of equal ones the one with the lowest position. Candidates are appended to
/// them, and then all are ranked.
#[derive(Clone, Copy)]
pub(super) struct Best<C, const THREADS: u32> {
    codes: Shared<C>,
    positions: Shared<u32>,
    threshold: Shared<C>,
    warp_totals: Shared<u32>,
}

impl<C: ShortCode, const THREADS: u32> Best<C, THREADS> {
    /// The warps of the block.
    const WARPS: usize = (THREADS / LANES) as usize;

    /// Returns the elements of a tile.
    pub const fn tile_len(vec: usize, rows: usize) -> usize {
        Self::WARPS * run_of(vec, rows)
    }

    /// Returns the shared memory that it takes.
    pub const fn bytes() -> usize {
        shared_bytes::<C>(room(THREADS) + BEYOND)
            + shared_bytes::<u32>(room(THREADS))
            + shared_bytes::<C>(1)
            + shared_bytes::<u32>(Self::WARPS)
    }

    /// Takes its shared memory.
    ///
    /// # Safety
    /// The kernel's shared memory has room for it.
    #[inline(always)]
    pub unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self {
            codes: memory.take(room(THREADS) + BEYOND),
            positions: memory.take(room(THREADS)),
            threshold: memory.take(1),
            warp_totals: memory.take(Self::WARPS),
        }
    }

    /// Adds the numbers of a tile to the best ones, of which there are `held`, and returns how many there are now: `wanted`, or
    /// all if these are fewer. Numbers that come later in the row are added later.
    ///
    /// Most numbers are only loaded and compared: with the smallest of the best ones, or in the first tile with a threshold.
    /// The others are appended in the order of their positions, as many as there is room for, and ranked. If some are left, those
    /// that are still good enough come next.
    ///
    /// # Safety
    /// All threads of the block must call this, with the same arguments. `wanted` is from 1 to `THREADS`; the numbers from `start`
    /// to `end` exist, at most a tile of them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add<I: Input<C::Repr>, const VEC: usize, const ROWS: usize>(
        self,
        numbers: Numbers<C, I, u32>,
        (start, end): (u32, u32),
        held: u32,
        wanted: u32,
    ) -> u32 {
        let run = run_of(VEC, ROWS) as u32;
        let start = start.saturating_add(warp_id() * run).min(end);
        let (start, len) = (start as usize, (end - start).min(run) as usize);
        let codes = numbers.load::<VEC, ROWS>(start, len);
        let mut left = first_of_run::<VEC, ROWS>(len);
        let mut least = if held == 0 {
            self.threshold(largest(codes, left), wanted)
        } else if held == wanted {
            self.codes.get(wanted as usize - 1)
        } else {
            C::zeroed()
        };
        let mut held = held;
        // A later number must be larger than the smallest of the best ones.
        let mut is_above = held == wanted;
        loop {
            if is_above && least == C::of_halves([u64::MAX; 2]) {
                return held;
            }
            let at_least = if is_above { least.successor() } else { least };
            let marked = Marked::<VEC, ROWS>::of(codes, left, at_least);
            // The words of the warps may still be read.
            thread::sync_threads();
            let block = scan::scan_warps::<u32, Sum, THREADS>(marked.in_warp(), Sum, self.warp_totals);
            let (found, limit) = (block.total, room(THREADS) as u32 - held);
            if found == 0 {
                return held;
            }
            left &= !marked.place(block.before, limit, |row, i, place| {
                let at = start + striped::<VEC>(row) + i;
                let position = numbers.position(at);
                self.codes.set((held + place) as usize, codes[row][i]);
                self.positions.set((held + place) as usize, position);
            });
            held = self.rank(held + found.min(limit), wanted);
            if found <= limit {
                return held;
            }
            // There were more than wanted.
            (least, is_above) = (self.codes.get(wanted as usize - 1), true);
        }
    }

    /// Returns a number that at least `wanted` numbers are not below, where each thread tells the largest of its own; 0 if there
    /// are not so many threads that have one.
    ///
    /// # Safety
    /// All threads of the block must call this while nothing is held.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn threshold(self, largest: C, wanted: u32) -> C {
        let own = thread::thread_idx_x();
        thread::sync_threads();
        self.codes.set(own as usize, largest);
        thread::sync_threads();
        if self.before::<true>(own, largest, THREADS) == wanted - 1 {
            self.threshold.set(0, largest);
        }
        thread::sync_threads();
        self.threshold.get(0)
    }

    /// Puts the first `len` numbers in order, and returns how many of them are kept: `wanted`, or all.
    ///
    /// # Safety
    /// All threads of the block must call this. There are so many numbers; equal ones are in the order of their positions.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn rank(self, len: u32, wanted: u32) -> u32 {
        let own = thread::thread_idx_x();
        if own < BEYOND as u32 {
            self.codes.set((len + own) as usize, C::zeroed());
        }
        thread::sync_threads();
        let (mut codes, mut positions, mut places) = ([C::zeroed(); PER_THREAD], [0; PER_THREAD], [0; PER_THREAD]);
        for n in 0..PER_THREAD {
            let at = n as u32 * THREADS + own;
            // The lanes of a warp go over the numbers together.
            if at - lane_id() < len {
                codes[n] = self.codes.get(at.min(len) as usize);
                places[n] = self.before::<false>(at, codes[n], len);
                if at < len {
                    positions[n] = self.positions.get(at as usize);
                }
            }
        }
        thread::sync_threads();
        for n in 0..PER_THREAD {
            if n as u32 * THREADS + own < len && places[n] < wanted {
                self.codes.set(places[n] as usize, codes[n]);
                self.positions.set(places[n] as usize, positions[n]);
            }
        }
        thread::sync_threads();
        len.min(wanted)
    }

    /// Returns how many of the first `len` numbers come before the one at `at`: larger ones, and equal ones at lower indices.
    /// `IS_WHOLE` says that there is a number for each thread.
    ///
    /// Whether an index is lower is the same for all lanes, except among the numbers of the warp itself. So one comparison
    /// is enough for nearly all numbers.
    ///
    /// # Safety
    /// All lanes of the warp must call this, with adjacent indices. Nothing writes the numbers, nor the few beyond them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn before<const IS_WHOLE: bool>(self, at: u32, code: C, len: u32) -> u32 {
        let first = at - lane_id();
        let last = (first + LANES).min(len);
        let (mut count, mut other) = (0, 0);
        while other < first {
            let others = self.access(other);
            for i in 0..BEYOND {
                count += u32::from(others[i] >= code);
            }
            other += BEYOND as u32;
        }
        while other < last {
            let others = self.access(other);
            for i in 0..BEYOND {
                let index = other + i as u32;
                let is_before = (others[i] > code) | (others[i] == code) & (index < at);
                count += u32::from(is_before & (IS_WHOLE | (index < len)));
            }
            other += BEYOND as u32;
        }
        while other < len {
            let others = self.access(other);
            for i in 0..BEYOND {
                count += u32::from(others[i] > code);
            }
            other += BEYOND as u32;
        }
        count
    }

    /// Returns a few adjacent codes, in accesses of 16 bytes.
    ///
    /// # Safety
    /// They were written before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn access(self, at: u32) -> [C; BEYOND] {
        let at = at as usize;
        match size_of::<C>() {
            4 => self.codes.load_vec::<4>(at),
            8 => {
                let (a, b) = (self.codes.load_vec::<2>(at), self.codes.load_vec::<2>(at + 2));
                [a[0], a[1], b[0], b[1]]
            }
            _ => [self.codes.get(at), self.codes.get(at + 1), self.codes.get(at + 2), self.codes.get(at + 3)],
        }
    }

    /// Writes the first `held` numbers and their positions to a list.
    ///
    /// # Safety
    /// All threads of the block must call this. The list has room for them, and nothing else uses it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, held: u32, list: Candidates<C, u32>) {
        let mut at = thread::thread_idx_x() as usize;
        while at < held as usize {
            list.set(at, self.codes.get(at), self.positions.get(at));
            at += THREADS as usize;
        }
    }

    /// Writes the positions of the first `held` numbers, and [`Position::NONE`] after them; and the keys from `first` on, if they
    /// are numbers.
    ///
    /// # Safety
    /// All threads of the block must call this. There are so many keys, and nothing else uses them and the positions.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn write(self, held: u32, positions: GlobalMut<u32>, coding: Coding, keys: NumberKeys, first: usize) {
        let mut at = thread::thread_idx_x() as usize;
        while at < positions.len() {
            if at < held as usize {
                positions.set(at, self.positions.get(at));
                keys.set::<C>(first + at, coding.decode(self.codes.get(at)));
            } else {
                positions.set(at, u32::NONE);
            }
            at += THREADS as usize;
        }
    }
}

/// Some of a warp's numbers.
#[derive(Clone, Copy)]
struct Marked<const VEC: usize, const ROWS: usize> {
    /// A bit for each number of the lane, row by row.
    bits: u32,
    /// Their numbers in each row, a byte for each: of the lane, of the lanes up to this one, and of the warp.
    own: u32,
    up_to: u32,
    all: u32,
}

impl<const VEC: usize, const ROWS: usize> Marked<VEC, ROWS> {
    /// Marks those of the numbers in `left` that are not below the threshold.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn of<C: ShortCode>(codes: [[C; VEC]; ROWS], left: u32, threshold: C) -> Self {
        const { assert!(ROWS <= 4 && VEC * (LANES as usize) < 256, "the numbers of each row fit into a byte") };
        let (mut bits, mut own) = (0, 0);
        for row in 0..ROWS {
            let mut of_row = 0;
            for i in 0..VEC {
                of_row |= u32::from(codes[row][i] >= threshold) << i;
            }
            of_row &= left >> (row * VEC);
            bits |= of_row << (row * VEC);
            own |= of_row.count_ones() << (8 * row);
        }
        // Most warps have none.
        if ballot(FULL, bits != 0) == 0 {
            return Self { bits, own, up_to: 0, all: 0 };
        }
        let up_to = warp::inclusive_scan(own, Sum);
        Self { bits, own, up_to, all: warp::broadcast(up_to, LANES - 1) }
    }

    /// Returns how many the warp has.
    #[inline(always)]
    fn in_warp(self) -> u32 {
        let mut sum = 0;
        for row in 0..ROWS {
            sum += self.all >> (8 * row) & 0xFF;
        }
        sum
    }

    /// Calls `put(row, i, place)` for those that have fewer than `limit` before them, in the order of the input: `before` in the
    /// warps before this one, and the others in this one. Returns their bits.
    #[inline(always)]
    fn place(self, before: u32, limit: u32, mut put: impl FnMut(usize, usize, u32)) -> u32 {
        let (mut before, mut placed) = (before, 0);
        for row in 0..ROWS {
            let mut place = before + ((self.up_to - self.own) >> (8 * row) & 0xFF);
            for i in 0..VEC {
                let bit = 1 << (row * VEC + i);
                if self.bits & bit != 0 {
                    if place < limit {
                        put(row, i, place);
                        placed |= bit;
                    }
                    place += 1;
                }
            }
            before += self.all >> (8 * row) & 0xFF;
        }
        placed
    }
}

/// Returns the largest of the lane's numbers; 0 if there is none. Those that are not there are 0, too.
#[inline(always)]
fn largest<C: ShortCode, const VEC: usize, const ROWS: usize>(codes: [[C; VEC]; ROWS], there: u32) -> C {
    let mut largest = C::zeroed();
    for row in 0..ROWS {
        for i in 0..VEC {
            if (there >> (row * VEC + i) & 1 != 0) & (codes[row][i] > largest) {
                largest = codes[row][i];
            }
        }
    }
    largest
}
