//! The kernel that keeps the numbers in which wanted ranks lie, digit by digit.

use super::cuts::{Cuts, NO_SLOT, Wanted};
use super::pick::Picker;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::arch::{Order, Scope, opaque, thread};
use crate::block::warp;
use crate::form::{Buffer, Param, kernel};
use crate::input::Input;
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::top_k::device::code::Coding;
use crate::top_k::device::histogram::{BINS, Histogram};
use crate::top_k::device::tile::{Candidates, ROWS, run_len};
use crate::view::{GlobalMut, SharedMemory};
use bytemuck::{Pod, Zeroable};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The blocks that must fit on a multiprocessor.
pub(crate) const MIN_BLOCKS: u32 = 2;

/// The elements of a warp's run. Its parts are as long as those of top-k, so that as many bytes are in flight.
const RUN: usize = 2 * run_len(4);

/// The elements of a tile.
pub(crate) const TILE: usize = (THREADS / LANES) as usize * RUN;

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
    let (is_first_block, this) = (thread::block_idx_x() == 0, level as usize);
    let before = if level == 0 { Step::zeroed() } else { search.steps.get(this) };
    if before.source == Step::DONE {
        if is_first_block && thread::thread_idx_x() == 0 {
            search.steps.set(this + 1, before);
        }
        return;
    }
    let (from_input, room) = (before.source == 0, search.first_spare.codes.len());
    let all = input.count();
    let len = if from_input { all } else { (search.moved.get(before.base as usize - 1) as usize).min(room) };
    // One block is needed even for no tiles: it says what is known.
    if thread::block_idx_x() as usize >= len.div_ceil(TILE).max(1) {
        return;
    }
    let mut memory = SharedMemory::new();
    let (histogram, picker) = (Histogram::<THREADS>::take(&mut memory), Picker::take(&mut memory));
    histogram.clear();
    let ranks = wanted.count as usize;
    let counts = search.counts.slice(this * BINS, BINS);
    let rank = |at: usize| {
        let word = search.ranks.get(this * ranks + at);
        if level == 0 { wanted.rank(word, all as u64) } else { word }
    };
    let picked = picker.pick(counts.as_const(), ranks, rank, |at, rank| {
        if is_first_block {
            search.ranks.set((this + 1) * ranks + at, rank);
            if level == 0 && rank == u64::MAX {
                search.found(at, u64::MAX);
            }
        }
    });
    let is_last = level + 1 == cuts.levels() || picked.kept == picked.slots as u64;
    let moves = !is_last && picked.kept < len as u64 && picked.kept <= room as u64;
    let (source, target, moved_to) = if before.source == 1 {
        (search.first_spare, search.second_spare, 2)
    } else {
        (search.second_spare, search.first_spare, 1)
    };
    if is_first_block {
        if thread::thread_idx_x() == 0 {
            let base = if moves { level + 1 } else { before.base };
            let stays = if moves { moved_to } else { before.source };
            search.steps.set(this + 1, Step { source: if is_last { Step::DONE } else { stays }, base });
        }
        let mut bin = thread::thread_idx_x() as usize;
        while !moves && !is_last && bin < BINS {
            search.slots.set(this * BINS + bin, picker.slots.get(bin));
            bin += THREADS as usize;
        }
    }

    let (cut, next) = (cuts.cut(level), cuts.cut(if is_last { level } else { level + 1 }));
    let load = |at: usize| if from_input { coding.encode(input.item(at)) } else { source.codes.get(at) };
    let position = |at: usize| if from_input { at as u64 } else { source.positions.get(at) };
    let is_plain = before.base == level && !cut.of_position;
    // The compiler does not know how often these loops run, and so does not unroll them.
    let (parts, rows) = (opaque((RUN / run_len(VEC)) as u32) as usize, opaque((ROWS * VEC) as u32) as usize);
    let mut start = thread::block_idx_x() as usize * TILE + warp_id() as usize * RUN;
    while start < len {
        let (mut marked, mut part) = (0u32, 0);
        while part < parts {
            let first = start + part * run_len(VEC) + lane_id() as usize;
            let mut here = 0;
            if is_plain {
                let mut numbers = [[C::zeroed(); VEC]; ROWS];
                for row in 0..ROWS {
                    for i in 0..VEC {
                        let at = first + (row * VEC + i) * LANES as usize;
                        if at < len {
                            numbers[row][i] = load(at);
                        }
                    }
                }
                for row in 0..ROWS {
                    for i in 0..VEC {
                        let is_there = first + (row * VEC + i) * (LANES as usize) < len;
                        let bin = cut.bin(numbers[row][i], 0);
                        let is_near = is_there & (bin >= picked.first) & (bin <= picked.last);
                        if is_near && picker.slots.get(bin) != NO_SLOT {
                            here |= 1 << (row * VEC + i);
                        }
                    }
                }
            } else {
                let mut row = 0;
                while row < rows {
                    let at = first + row * LANES as usize;
                    if at < len
                        && let position = position(at)
                        && let Some(number) = search.followed(cuts, before.base, level, load(at), position)
                        && picker.slots.get(cut.bin(number, position)) != NO_SLOT
                    {
                        here |= 1 << row;
                    }
                    row += 1;
                }
            }
            marked |= here << (part * ROWS * VEC);
            part += 1;
        }

        // Most runs of an input have none.
        if ballot(FULL, marked != 0) != 0 {
            let mut place = 0;
            if moves {
                let up_to = warp::inclusive_scan(marked.count_ones(), Sum);
                let total = warp::broadcast(up_to, LANES - 1);
                if lane_id() == 0 {
                    place = search.moved.atomic_add(this, total as u64, Scope::Gpu, Order::Relaxed);
                }
                place = warp::broadcast(place, 0) + (up_to - marked.count_ones()) as u64;
            }
            while ballot(FULL, marked != 0) != 0 {
                let (is_active, mut bin) = (marked != 0, 0);
                if is_active {
                    // They are loaded again: they take no registers while a run waits.
                    let at = start + lane_id() as usize + marked.trailing_zeros() as usize * LANES as usize;
                    marked &= marked - 1;
                    let position = position(at);
                    if let Some(number) = search.followed(cuts, before.base, level, load(at), position) {
                        let slot = picker.slots.get(cut.bin(number, position));
                        let number = cut.recode(number, slot);
                        bin = next.bin(number, position) as u32;
                        if moves {
                            target.set(place as usize, number, position);
                            place += 1;
                        }
                        let mut rank = 0;
                        while is_last && rank < ranks {
                            if picker.of_ranks.get(rank) == slot && position < all as u64 {
                                search.found(rank, position);
                            }
                            rank += 1;
                        }
                    }
                }
                if !is_last {
                    histogram.add(bin, is_active);
                }
            }
        }
        start += thread::grid_dim_x() as usize * TILE;
    }
    if !is_last {
        thread::sync_threads();
        histogram.flush(0, search.counts.slice((this + 1) * BINS, BINS));
    }
}
