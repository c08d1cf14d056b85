//! The kernel that keeps the numbers in which wanted ranks lie, digit by digit.

use super::cuts::{Cuts, NO_SLOT, Wanted};
use super::pick::{Picked, Picker};
use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::arch::{Order, Scope, opaque, thread};
use crate::block::warp;
use crate::form::{Buffer, Param, kernel};
use crate::input::Input;
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::top_k::device::code::Coding;
use crate::top_k::device::histogram::{BINS, Histogram};
use crate::top_k::device::numbers::Numbers;
use crate::top_k::device::tile::{Candidates, first_of_run, place_in_run, run_of};
use crate::view::{GlobalMut, SharedMemory};
use bytemuck::{Pod, Zeroable};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The blocks that must fit on a multiprocessor: with more, registers are spilled.
pub(crate) const MIN_BLOCKS: u32 = 2;

/// The rows of a warp's run: as many accesses of 16 bytes are in flight per thread.
const ROWS: usize = 4;

/// Returns the elements of a tile.
#[must_use]
pub const fn tile_len(vec: usize) -> usize {
    (THREADS / LANES) as usize * run_of(vec, ROWS)
}

/// What is known after some digits. Nothing before the first: all zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Step {
    /// Where the numbers in question are: 0 in the input, 1 and 2 in the spare memory; [`DONE`](Self::DONE).
    pub(crate) source: u32,
    /// The digits that are part of the numbers there. Those of the input have none.
    pub(crate) base: u32,
}

impl Step {
    /// The positions of all ranks are known.
    pub(crate) const DONE: u32 = 3;
}

/// The memory of a search. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Search<C> {
    /// One per digit, and one more.
    pub(crate) steps: GlobalMut<Step>,
    /// The numbers in each bin: [`BINS`] per digit.
    pub(crate) counts: GlobalMut<u64>,
    /// How many numbers were moved to spare memory: one per digit.
    pub(crate) moved: GlobalMut<u64>,
    /// The ranks among the numbers in question: all of them per digit, and once more.
    pub(crate) ranks: GlobalMut<u64>,
    /// The slot of each bin: [`BINS`] per digit after which the numbers were not moved.
    pub(crate) slots: GlobalMut<u32>,
    pub(crate) first_spare: Candidates<C, u64>,
    pub(crate) second_spare: Candidates<C, u64>,
    /// The positions of the elements with these ranks: one of both has them, and the other is empty.
    pub(crate) narrow: GlobalMut<u32>,
    pub(crate) wide: GlobalMut<u64>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<C: Pod> Param for Search<C> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.steps.buffers(name, visit);
        self.counts.buffers(name, visit);
        self.moved.buffers(name, visit);
        self.ranks.buffers(name, visit);
        self.slots.buffers(name, visit);
        self.first_spare.buffers(name, visit);
        self.second_spare.buffers(name, visit);
        self.narrow.buffers(name, visit);
        self.wide.buffers(name, visit);
    }
}

impl<C: ShortCode> Search<C> {
    /// Writes the position of a rank.
    ///
    /// # Safety
    /// There is such a rank, and nothing else uses its position.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn found(self, rank: usize, position: u64) {
        if self.wide.is_empty() {
            self.narrow.set(rank, position as u32);
        } else {
            self.wide.set(rank, position);
        }
    }

    /// Returns the number as it is written before digit `level`, if it is still in question. `number` has the digits before
    /// `base`.
    ///
    /// # Safety
    /// Earlier launches have written the slots of the digits `base .. level`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn followed(self, cuts: Cuts, base: u32, level: u32, number: C, position: u64) -> Option<C> {
        let (mut number, mut earlier) = (number, base);
        while earlier < level {
            let cut = cuts.cut(earlier);
            let slot = self.slots.get(earlier as usize * BINS + cut.bin(number, position));
            if slot == NO_SLOT {
                return None;
            }
            number = cut.recode(number, slot);
            earlier += 1;
        }
        Some(number)
    }
}

/// Finds the bins of one digit in which the wanted ranks lie, keeps the numbers in these bins, and counts their next digits.
///
/// Every block finds the bins from the counts of all blocks: up to as many as there are ranks. They become the *slots* of
/// the numbers in question, in order. A number is rewritten: its slot, followed by the bits that were not looked at. So
/// [`BINS`] counts are enough for the next digit of all slots, and all slots are searched at the same time, in order: a rank
/// is always one among all numbers in question.
///
/// A warp loads a run and looks up the slots. Numbers in question are moved to spare memory, with their positions, in any
/// order: the warp takes places with one atomic addition. If they are too many for the spare memory, or nothing would be left
/// out, they stay where they are; the next digits then look up all slots since the last move.
///
/// The digits of the position come after those of the code. So of equal numbers the first has the lowest rank, and in the
/// end there is one number per slot. As soon as this is so, its position is the result, and the launches for further digits
/// end at once.
///
/// Cost: the numbers in question are read once, those that are kept are read again and written once. The input of 2^27 keys
/// of 4 bytes takes 131 µs at 4.1 TB/s; a well-spread one leaves 1 of 2048 per rank. In the worst case, each digit reads the
/// whole input.
///
/// # Safety
/// The launch has any number of blocks. Each of `search`'s buffers has the length that it says, for the digits of `cuts` and
/// for `wanted.count` ranks; `narrow` or `wide` has one position per rank. The counts of digit `level`, and the step and the
/// ranks before it, come from earlier launches: for digit 0, the counts of the input, and the ranks of the call. The other
/// counts and `moved` are zero. Both spare memories have the same length. While the kernel runs, nothing writes the input, and
/// nothing else uses the buffers.
#[kernel(
    listed = super::instances::KEEP_RANKS_PTX,
    threads = THREADS,
    shared = Histogram::<THREADS>::bytes() + Picker::bytes(),
    min_blocks = MIN_BLOCKS,
    native = crate::order_statistics::native::keep_ranks
)]
pub unsafe fn keep_ranks<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    input: I,
    coding: Coding,
    cuts: Cuts,
    level: u32,
    wanted: Wanted,
    search: Search<C>,
) {
    let this = level as usize;
    let before = if level == 0 { Step::zeroed() } else { search.steps.get(this) };
    if before.source == Step::DONE {
        if thread::block_idx_x() == 0 && thread::thread_idx_x() == 0 {
            search.steps.set(this + 1, before);
        }
        return;
    }
    let room = search.first_spare.codes.len();
    let all = input.count();
    let len = if before.source == 0 { all } else { (search.moved.get(before.base as usize - 1) as usize).min(room) };
    // One block is needed even for no tiles: it says what is known.
    if thread::block_idx_x() as usize >= len.div_ceil(tile_len(VEC)).max(1) {
        return;
    }
    let mut memory = SharedMemory::new();
    let (histogram, picker) = (Histogram::<THREADS>::take(&mut memory), Picker::take(&mut memory));
    histogram.clear();
    let picked = search.pick(picker, level, wanted, all as u64);
    let is_last = level + 1 == cuts.levels() || picked.kept == picked.slots as u64;
    let moves = !is_last && picked.kept < len as u64 && picked.kept <= room as u64;
    if thread::block_idx_x() == 0 {
        search.note(picker, level, before, is_last, moves);
    }
    let list = if before.source == 1 { search.first_spare } else { search.second_spare };
    let numbers = Numbers { input, coding, first: 0, list, is_list: before.source != 0 };
    let pass = Pass {
        numbers,
        search,
        cuts,
        level,
        base: before.base,
        picker,
        picked,
        histogram,
        target: if before.source == 1 { search.second_spare } else { search.first_spare },
        is_last,
        moves,
    };
    let mut start = thread::block_idx_x() as usize * tile_len(VEC) + warp_id() as usize * run_of(VEC, ROWS);
    while start < len {
        let run = (len - start).min(run_of(VEC, ROWS));
        if pass.only_counts() {
            pass.count::<VEC>(start, run);
        } else {
            let marked = pass.mark::<VEC>(start, run);
            // Most runs of an input have none.
            if ballot(FULL, marked != 0) != 0 {
                pass.keep::<VEC>(start, marked, wanted.count as usize, all as u64);
            }
        }
        start += thread::grid_dim_x() as usize * tile_len(VEC);
    }
    if !is_last {
        thread::sync_threads();
        histogram.flush(0, search.counts.slice((this + 1) * BINS, BINS));
    }
}

impl<C: ShortCode> Search<C> {
    /// Finds the bins of a digit in which the wanted ranks lie, among `all` elements of the input. The first block notes the ranks
    /// among the elements that are kept.
    ///
    /// # Safety
    /// All threads of the block must call this once. The counts are those of this digit.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn pick(self, picker: Picker, level: u32, wanted: Wanted, all: u64) -> Picked {
        let (ranks, this) = (wanted.count as usize, level as usize);
        let counts = self.counts.slice(this * BINS, BINS);
        let rank = |at: usize| {
            let word = self.ranks.get(this * ranks + at);
            if level == 0 { wanted.rank(word, all) } else { word }
        };
        picker.pick(counts.as_const(), ranks, rank, |at, rank| {
            if thread::block_idx_x() == 0 {
                self.ranks.set((this + 1) * ranks + at, rank);
                if level == 0 && rank == u64::MAX {
                    self.found(at, u64::MAX);
                }
            }
        })
    }

    /// Writes what is known after a digit: where the numbers in question are, and the slots, if they stay there.
    ///
    /// # Safety
    /// All threads of one block must call this, after the bins were picked.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn note(self, picker: Picker, level: u32, before: Step, is_last: bool, moves: bool) {
        let this = level as usize;
        if thread::thread_idx_x() == 0 {
            let after = if is_last {
                Step { source: Step::DONE, ..before }
            } else if moves {
                Step { source: if before.source == 1 { 2 } else { 1 }, base: level + 1 }
            } else {
                before
            };
            self.steps.set(this + 1, after);
        }
        let mut bin = thread::thread_idx_x() as usize;
        while !moves && !is_last && bin < BINS {
            self.slots.set(this * BINS + bin, picker.slots.get(bin));
            bin += THREADS as usize;
        }
    }
}

/// One look at the numbers in question, when the bins of a digit are known.
#[derive(Clone, Copy)]
struct Pass<C, I> {
    numbers: Numbers<C, I, u64>,
    search: Search<C>,
    cuts: Cuts,
    level: u32,
    /// The digits that are part of the numbers.
    base: u32,
    picker: Picker,
    picked: Picked,
    histogram: Histogram<THREADS>,
    /// Where numbers are moved.
    target: Candidates<C, u64>,
    is_last: bool,
    moves: bool,
}

impl<C: ShortCode, I: Input<C::Repr>> Pass<C, I> {
    /// Returns whether the numbers in question stay in the input, and only their next digits are counted: often they are most of
    /// the input.
    #[inline(always)]
    fn only_counts(self) -> bool {
        !self.numbers.is_list && !self.moves && !self.is_last
    }

    /// Returns the number as it is written after the digit, if it lies in a wanted bin.
    ///
    /// # Safety
    /// The bins were picked, and earlier launches have written the slots before.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn kept(self, number: C, position: u64) -> Option<C> {
        let number = self.search.followed(self.cuts, self.base, self.level, number, position)?;
        let cut = self.cuts.cut(self.level);
        let slot = self.picker.slots.get(cut.bin(number, position));
        if slot == NO_SLOT { None } else { Some(cut.recode(number, slot)) }
    }

    /// Counts the next digits of those numbers of a run that lie in wanted bins.
    ///
    /// # Safety
    /// All lanes of the warp must call this. There are `len` numbers of the input from `start` on, at most a run of them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn count<const VEC: usize>(self, start: usize, len: usize) {
        let next = self.cuts.cut(self.level + 1);
        // The compiler does not know how often this loop runs, and so does not unroll it.
        let (mut row, rows) = (0, opaque(ROWS as u32));
        while row < rows {
            let (first, len) = self.row::<VEC>(row, start, len);
            let codes = self.numbers.load::<VEC, 1>(first, len)[0];
            for i in 0..VEC {
                let at = place_in_run::<VEC>(i as u32);
                let position = (first + at) as u64;
                let number = if at < len { self.kept(codes[i], position) } else { None };
                let bin = if let Some(number) = number { next.bin(number, position) } else { 0 };
                self.histogram.add(bin as u32, number.is_some());
            }
            row += 1;
        }
    }

    /// Returns where a row of a run begins, and the length of the row.
    #[inline(always)]
    fn row<const VEC: usize>(self, row: u32, start: usize, len: usize) -> (usize, usize) {
        let (before, row_len) = (row as usize * run_of(VEC, 1), run_of(VEC, 1));
        (start + before.min(len), len.saturating_sub(before).min(row_len))
    }

    /// Returns the lane's numbers of a run that lie in wanted bins, one bit for each.
    ///
    /// # Safety
    /// There are `len` numbers from `start` on, at most a run of them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mark<const VEC: usize>(self, start: usize, len: usize) -> u32 {
        let (cut, mut marked) = (self.cuts.cut(self.level), 0);
        if self.base == self.level && !cut.of_position {
            let codes = self.numbers.load::<VEC, ROWS>(start, len);
            for row in 0..ROWS {
                for i in 0..VEC {
                    let bin = cut.bin(codes[row][i], 0);
                    let is_near = (bin >= self.picked.first) & (bin <= self.picked.last);
                    if is_near && self.picker.slots.get(bin) != NO_SLOT {
                        marked |= 1 << (row * VEC + i);
                    }
                }
            }
            return marked & first_of_run::<VEC, ROWS>(len);
        }
        // The compiler does not know how often this loop runs, and so does not unroll it.
        let (mut row, rows) = (0, opaque(ROWS as u32));
        while row < rows {
            let (first, len) = self.row::<VEC>(row, start, len);
            let codes = self.numbers.load::<VEC, 1>(first, len)[0];
            for i in 0..VEC {
                let at = place_in_run::<VEC>(i as u32);
                if at < len && self.kept(codes[i], self.numbers.position(first + at)).is_some() {
                    marked |= 1 << (row * VEC as u32 + i as u32);
                }
            }
            row += 1;
        }
        marked
    }

    /// Keeps the marked numbers of a run: counts their next digits, and moves them. After the last digit, their positions are
    /// results.
    ///
    /// # Safety
    /// All lanes of the warp must call this. The marked numbers are there, and there are so many ranks.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn keep<const VEC: usize>(self, start: usize, mut marked: u32, ranks: usize, all: u64) {
        let (cut, next) =
            (self.cuts.cut(self.level), self.cuts.cut(if self.is_last { self.level } else { self.level + 1 }));
        let mut place = 0;
        if self.moves {
            let up_to = warp::inclusive_scan(marked.count_ones(), Sum);
            let total = warp::broadcast(up_to, LANES - 1);
            if lane_id() == 0 {
                place = self.search.moved.atomic_add(self.level as usize, total as u64, Scope::Gpu, Order::Relaxed);
            }
            place = warp::broadcast(place, 0) + (up_to - marked.count_ones()) as u64;
        }
        while ballot(FULL, marked != 0) != 0 {
            let (is_active, mut bin) = (marked != 0, 0);
            if is_active {
                // They are loaded again: they take no registers while a run waits.
                let at = start + place_in_run::<VEC>(marked.trailing_zeros());
                marked &= marked - 1;
                let (number, position) = self.numbers.get(at);
                if let Some(number) = self.search.followed(self.cuts, self.base, self.level, number, position) {
                    let slot = self.picker.slots.get(cut.bin(number, position));
                    let number = cut.recode(number, slot);
                    bin = next.bin(number, position) as u32;
                    if self.moves {
                        self.target.set(place as usize, number, position);
                        place += 1;
                    }
                    let mut rank = 0;
                    while self.is_last && rank < ranks {
                        if self.picker.of_ranks.get(rank) == slot && position < all {
                            self.search.found(rank, position);
                        }
                        rank += 1;
                    }
                }
            }
            if !self.is_last {
                self.histogram.add(bin, is_active);
            }
        }
    }
}
