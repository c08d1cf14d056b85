//! The kernels that narrow an input down to its largest elements.

use super::code::{Coding, Digit, Position};
use super::histogram::{BINS, Histogram, Pick};
use super::layout::RowLayout;
use super::numbers::Numbers;
use super::sift::Sifted;
use super::tile::{self, Candidates, Counts, Marks, ROWS, SumCounts, run_len, striped};
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::block::lookback::{self, Ticket, TicketSlot};
use crate::block::scan;
use crate::form::{Buffer, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// The blocks that must fit on a multiprocessor: with more registers each, too few loads would be in flight.
pub(crate) const MIN_BLOCKS: u32 = 3;

/// The warps per block.
pub(crate) const WARPS: usize = (THREADS / LANES) as usize;

/// Returns the elements of a tile.
#[must_use]
pub const fn tile_len(vec: usize) -> usize {
    WARPS * run_len(vec)
}

/// Returns the numbers of a warp's run as they are loaded from the input.
///
/// # Safety
/// Same as [`tile::load`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn load_input<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const ROWS: usize>(
    input: I,
    coding: Coding,
    start: usize,
    len: usize,
) -> [[C; VEC]; ROWS] {
    let keys = tile::load::<C::Repr, I, VEC, ROWS>(input, start, len);
    let mut codes = [[C::zeroed(); VEC]; ROWS];
    for row in 0..ROWS {
        for i in 0..VEC {
            codes[row][i] = coding.encode(keys[row][i]);
        }
    }
    codes
}

/// Counts the highest digits, as far down as the `wanted` largest numbers go.
///
/// A block counts in shared memory. It does so only for digits that the wanted numbers may still have: once `wanted`
/// numbers of its own have a digit of at least `d`, smaller ones do not matter. That bound is found after the first tile,
/// and again after 2, 4, 8, … tiles. So for few wanted numbers nearly all are only loaded and compared, and it does not
/// matter how many of them have the same digit.
///
/// If the list of candidates of a [sifted](super::sift) input is enough, nothing is counted.
///
/// Cost: every element is read once. 2^27 keys of 4 bytes take 131 µs at 4.1 TB/s.
///
/// # Safety
/// The launch has any number of blocks, each of which takes fewer than 2^32 elements. `wanted` is not 0. `counts` has one
/// element per digit. While the kernel runs, nothing writes the input, and nothing else uses the counts.
#[kernel(
    listed = super::instances::COUNT_DIGITS_PTX,
    threads = THREADS,
    shared = Histogram::<THREADS>::bytes(),
    min_blocks = MIN_BLOCKS,
    native = crate::top_k::native::digits::count_digits
)]
pub unsafe fn count_digits<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    input: I,
    coding: Coding,
    digit: Digit,
    wanted: u64,
    counts: GlobalMut<u64>,
    sifted: Sifted,
) {
    if sifted.is_enough() {
        return;
    }
    let histogram = Histogram::<THREADS>::take(&mut SharedMemory::new());
    histogram.clear();
    thread::sync_threads();

    let len = input.count();
    let mut start = thread::block_idx_x() as usize * tile_len(VEC);
    let (mut least, mut tiles, mut next_look) = (0, 0, 1);
    while start < len {
        let first = start + warp_id() as usize * run_len(VEC);
        let run = len.saturating_sub(first).min(run_len(VEC));
        let codes = load_input::<C, I, VEC, ROWS>(input, coding, first.min(len), run);
        let mut digits = [[0; VEC]; ROWS];
        for row in 0..ROWS {
            for i in 0..VEC {
                digits[row][i] = digit.get(codes[row][i]);
            }
        }
        if least == 0 && run == run_len(VEC) {
            histogram.add_all(digits);
        } else {
            for row in 0..ROWS {
                for i in 0..VEC {
                    let is_there = striped::<VEC>(row) + i < run;
                    histogram.add(digits[row][i], is_there & (digits[row][i] >= least));
                }
            }
        }
        tiles += 1;
        if tiles == next_look {
            thread::sync_threads();
            least = histogram.least_needed(wanted);
            next_look *= 2;
        }
        start += thread::grid_dim_x() as usize * tile_len(VEC);
    }
    thread::sync_threads();
    least = histogram.least_needed(wanted);
    histogram.flush(least, counts);
}

/// What is known after some digits. Nothing before the first: all zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Step {
    /// The digits, highest first, that the wanted numbers go down to.
    pub(crate) prefix: [u64; 2],
    /// The numbers above it, fewer than wanted.
    pub(crate) above: u64,
    /// Where the numbers in question are: 0 in the input, 1 and 2 in the spare memory.
    pub(crate) source: u64,
    /// How many there are in the spare memory.
    pub(crate) len: u64,
}

/// The memory of a search digit by digit. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Search<C, P> {
    /// What is known before each digit, and after the last one.
    pub(crate) steps: GlobalMut<Step>,
    /// The numbers with each digit: [`BINS`] for each, and once more.
    pub(crate) counts: GlobalMut<u64>,
    pub(crate) first_spare: Candidates<C, P>,
    pub(crate) second_spare: Candidates<C, P>,
    /// The wanted numbers, in the end.
    pub(crate) selected: Candidates<C, P>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<C: Pod, P: Pod> Param for Search<C, P> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.steps.buffers(name, visit);
        self.counts.buffers(name, visit);
        self.first_spare.buffers(name, visit);
        self.second_spare.buffers(name, visit);
        self.selected.buffers(name, visit);
    }
}

/// What a launch does, once the digit that the wanted numbers go down to is known.
#[derive(Clone, Copy)]
struct Plan<C, P> {
    digit: Digit,
    /// The digit after it, whose values are counted.
    next: Digit,
    is_last: bool,
    /// The digits of the smallest wanted number.
    prefix: C,
    /// Whether numbers are moved, and where.
    moves: bool,
    target: Candidates<C, P>,
    /// How many of the numbers with the prefix are kept.
    limit: u64,
}

impl<C: ShortCode, P: Position> Search<C, P> {
    /// Returns the counts of a digit.
    ///
    /// # Safety
    /// There is such a digit.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn counts(self, level: u32) -> GlobalMut<u64> {
        self.counts.slice(level as usize * BINS, BINS)
    }

    /// Returns what is known before a digit.
    ///
    /// # Safety
    /// An earlier launch has written it, unless this is the first digit.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn before(self, level: u32) -> Step {
        if level == 0 { Step::zeroed() } else { self.steps.get(level as usize) }
    }

    /// Returns what to do with `len` numbers, of whose digit number `level` the wanted value is picked. The first block notes what is
    /// then known.
    ///
    /// # Safety
    /// All threads of the block must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn plan(self, (bits, level): (u32, u32), before: Step, len: usize, pick: Pick) -> Plan<C, P> {
        let (digit, is_last) = (Digit::of(bits, level), level + 1 == Digit::levels(bits));
        let prefix = digit.append(before.prefix, pick.digit);
        let above = before.above + pick.above;
        let kept = above + pick.count;
        let moves = is_last || kept < len as u64 && kept <= self.first_spare.codes.len() as u64;
        let to_first = before.source != 1;
        if thread::block_idx_x() == 0 && thread::thread_idx_x() == 0 {
            let source = if !moves {
                before.source
            } else if to_first {
                1
            } else {
                2
            };
            let len = if moves { kept } else { before.len };
            self.steps.set(level as usize + 1, Step { prefix, above, source, len });
        }
        Plan {
            digit,
            next: if is_last { digit } else { Digit::of(bits, level + 1) },
            is_last,
            prefix: C::of_halves(prefix),
            moves,
            target: if is_last {
                self.selected
            } else if to_first {
                self.first_spare
            } else {
                self.second_spare
            },
            limit: if is_last { self.selected.codes.len() as u64 - above } else { u64::MAX },
        }
    }
}

/// Where the numbers of a tile go: the shared memory of a block that moves numbers in order, and the look-back over tiles.
#[derive(Clone, Copy)]
struct Places {
    warp_totals: Shared<u32>,
    of_tile: Shared<Counts>,
    scratch: GlobalMut<u64>,
    tiles: u32,
}

impl Places {
    /// Returns the counts before this warp's run, which has `own`, a word of counts. Most tiles have none, and do not wait.
    ///
    /// # Safety
    /// All threads of the block must call this, with a barrier before the next call.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn before(self, ticket: Ticket, own: u32) -> Counts {
        let block = scan::scan_warps::<u32, Sum, THREADS>(own, Sum, self.warp_totals);
        let total = Counts::of_word(block.total);
        if warp_id() == 0 {
            if block.total != 0 || ticket.is_awaited() {
                let place = lookback::exchange(self.scratch, ticket, self.tiles, total, SumCounts);
                if lane_id() == 0 {
                    self.of_tile.set(0, place);
                }
            } else if lane_id() == 0 {
                lookback::announce(self.scratch, ticket, total);
            }
        }
        thread::sync_threads();
        if own == 0 {
            return Counts { greater: 0, ties: 0 };
        }
        let (tile, run) = (self.of_tile.get(0), Counts::of_word(block.before));
        Counts { greater: tile.greater + run.greater, ties: tile.ties + run.ties }
    }
}

/// Returns the shared memory of a block that narrows.
const fn narrow_shared() -> usize {
    Histogram::<THREADS>::bytes() + shared_bytes::<u32>(WARPS) + shared_bytes::<Counts>(1) + TicketSlot::BYTES
}

/// Finds the next digit of the smallest wanted number, keeps the numbers that are not below it, in order, and counts the
/// digits after it.
///
/// Every block finds the digit from the counts of all blocks: the digit down to which there are enough numbers. Then it
/// takes tiles in the order of tickets. Numbers above the prefix are in, numbers with the prefix are still in question.
/// Both are moved to the spare memory, in the order of their positions, by a look-back over tiles. Most tiles have none,
/// and do not wait. If they are too many for the spare memory, or nothing would be left out, they stay where they are,
/// and are only counted. After the last digit, numbers with the prefix are equal, and as many of them are kept as are
/// wanted: those with the lowest positions.
///
/// Blocks for which there are no tiles end at once. So do all of them if the list of candidates of a
/// [sifted](super::sift) input is enough.
///
/// Cost: the numbers that were in question are read once, those that are kept are written once with their positions. The
/// second read of an input of 2^27 keys of 4 bytes takes 131 µs at 4.1 TB/s; the others are short.
///
/// # Safety
/// The launch has any number of blocks. The memory of `search` has the length that it says for numbers of `bits` bits. What is known
/// before digit number `level`, and the counts of that digit of the numbers with the prefix, come from earlier launches; the counts
/// after it are zeros. Both spare memories have the same length; if what is known says that numbers are in one, it has them. There is
/// room for as many selected numbers as are wanted, at least one. `scratch` comes from the stream's look-back words, for one
/// [`Counts`] per tile of the input and of the spare memory. While the kernel runs, nothing writes the inputs, and nothing else uses
/// the other buffers.
#[kernel(
    listed = super::instances::NARROW_PTX,
    threads = THREADS,
    shared = narrow_shared(),
    min_blocks = MIN_BLOCKS,
    native = crate::top_k::native::digits::narrow
)]
pub unsafe fn narrow<C: ShortCode, I: Input<C::Repr>, P: Position, const VEC: usize>(
    input: I,
    coding: Coding,
    bits: u32,
    level: u32,
    search: Search<C, P>,
    scratch: GlobalMut<u64>,
    sifted: Sifted,
) {
    if sifted.is_enough() {
        return;
    }
    let mut memory = SharedMemory::new();
    let histogram = Histogram::<THREADS>::take(&mut memory);
    let (warp_totals, of_tile) = (memory.take::<u32>(WARPS), memory.take::<Counts>(1));
    let tickets = TicketSlot::take(&mut memory);

    let before = search.before(level);
    let list = if before.source == 1 { search.first_spare } else { search.second_spare };
    let numbers = Numbers { input, coding, first: 0, list, is_list: before.source != 0 };
    let len = if numbers.is_list { before.len as usize } else { input.count() };
    let tiles = len.div_ceil(tile_len(VEC)) as u32;
    // One block is needed even for no tiles: it says what is known.
    let blocks = thread::grid_dim_x().min(tiles.max(1));
    if thread::block_idx_x() >= blocks {
        return;
    }
    histogram.clear();
    thread::sync_threads();
    let counts = search.counts(level);
    let pick = histogram.pick(|bin| counts.get(bin), search.selected.codes.len() as u64 - before.above);
    let plan = search.plan((bits, level), before, len, pick);
    let places = Places { warp_totals, of_tile, scratch, tiles };

    loop {
        // Each block takes one more, which tells it that there are no more tiles.
        let ticket = tickets.next(scratch, tiles + blocks);
        if ticket.tile >= tiles {
            break;
        }
        let first = ticket.tile as usize * tile_len(VEC) + warp_id() as usize * run_len(VEC);
        let (start, run) = (first.min(len), len.saturating_sub(first).min(run_len(VEC)));
        let codes = numbers.load::<VEC, ROWS>(start, run);
        let marks = Marks::<VEC, ROWS>::of(codes, run, plan.digit, plan.prefix);
        if !plan.is_last {
            for row in 0..ROWS {
                for i in 0..VEC {
                    histogram.add(plan.next.get(codes[row][i]), marks.is_tie(row, i));
                }
            }
        }
        if plan.moves {
            let own = marks.count();
            let before = places.before(ticket, own);
            if own != 0 {
                marks.place(before, plan.limit, |at, place| {
                    let (code, position) = numbers.get(start + at);
                    plan.target.set(place, code, position);
                });
            }
        }
        // The next tile reuses the shared memory.
        thread::sync_threads();
    }
    if !plan.is_last {
        histogram.flush(0, search.counts(level + 1));
    }
}

/// Writes the elements at some positions: element `i` is that at `positions[i]`, unless that is [`Position::NONE`].
///
/// Cost: `positions.len()` elements are read at random, and written in order.
///
/// # Safety
/// The launch has at least one thread per position; there are as many outputs. The input has these elements. Position `i`
/// counts from the start of the row that it belongs to: rows have `per_row` positions each, at least 1. While the kernel
/// runs, nothing writes the inputs, and nothing else uses the output.
#[kernel(listed = super::instances::GATHER_KEYS_PTX, threads = THREADS, native = crate::top_k::native::digits::gather_keys)]
pub unsafe fn gather_keys<H: RegisterRepr, P: Position>(
    input: SourceArg,
    positions: Global<P>,
    output: GlobalMut<H>,
    per_row: u64,
    layout: RowLayout,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < output.len() {
        let position = positions.get(at);
        if position != P::NONE {
            let row = layout.row(at / per_row as usize, Input::<H>::count(&input));
            output.set(at, input.item(row.first + position.index()));
        }
    }
}
