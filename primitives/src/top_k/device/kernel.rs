//! The kernels that narrow an input down to its largest elements.

use super::code::{Coding, Digit, Position};
use super::histogram::Histogram;
use super::layout::RowLayout;
use super::sift::Sifted;
use super::tile::{self, Candidates, Counts, Marks, ROWS, SumCounts, run_len, striped};
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::block::lookback::{self, TicketSlot};
use crate::block::scan;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
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
pub(crate) unsafe fn load_input<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    input: I,
    coding: Coding,
    start: usize,
    len: usize,
) -> [[C; VEC]; ROWS] {
    let keys = tile::load::<C::Repr, I, VEC>(input, start, len);
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
        let codes = load_input::<C, I, VEC>(input, coding, first.min(len), run);
        for row in 0..ROWS {
            for i in 0..VEC {
                let found = digit.get(codes[row][i]);
                histogram.add(found, (striped::<VEC>(row) + i < run) & (found >= least));
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
/// The launch has any number of blocks. `before` is not read for level 0. `counts` are those of the numbers with the prefix
/// in `before`, by digit number `level`, of numbers of `bits` bits; `next_counts` has as many zeros, unless this is the last digit. `after` has one
/// element. Spare memory 1 and 2 have the same length; if `before` says that numbers are in one, it has them. `selected`
/// has `wanted` elements, at least one. `scratch` comes from the stream's look-back words, for one [`Counts`] per tile of
/// the input and of the spare memory. While the kernel runs, nothing writes the inputs, and nothing else uses the other
/// buffers.
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
    before: Global<Step>,
    after: GlobalMut<Step>,
    counts: Global<u64>,
    next_counts: GlobalMut<u64>,
    first_spare: Candidates<C, P>,
    second_spare: Candidates<C, P>,
    selected: Candidates<C, P>,
    scratch: GlobalMut<u64>,
    sifted: Sifted,
) {
    if sifted.is_enough() {
        return;
    }
    let mut memory = SharedMemory::new();
    let histogram = Histogram::<THREADS>::take(&mut memory);
    let warp_totals = memory.take::<u32>(WARPS);
    let tile_place = memory.take::<Counts>(1);
    let tickets = TicketSlot::take(&mut memory);

    let (digit, is_last) = (Digit::of(bits, level), level + 1 == Digit::levels(bits));
    let wanted = selected.codes.len() as u64;
    let before = if level == 0 { Step::zeroed() } else { before.get(0) };
    let from_input = before.source == 0;
    let len = if from_input { input.count() } else { before.len as usize };
    let tiles = len.div_ceil(tile_len(VEC)) as u32;
    // One block is needed even for no tiles: it says what is known.
    let blocks = thread::grid_dim_x().min(tiles.max(1));
    if thread::block_idx_x() >= blocks {
        return;
    }
    histogram.clear();
    thread::sync_threads();
    let pick = histogram.pick(|bin| counts.get(bin), wanted - before.above);
    let prefix = digit.append(before.prefix, pick.digit);
    let above = before.above + pick.above;
    let kept = above + pick.count;
    let moves = is_last || kept < len as u64 && kept <= first_spare.codes.len() as u64;
    let to_first = before.source != 1;
    if thread::block_idx_x() == 0 && thread::thread_idx_x() == 0 {
        let source = if !moves {
            before.source
        } else if to_first {
            1
        } else {
            2
        };
        after.set(0, Step { prefix, above, source, len: if moves { kept } else { before.len } });
    }
    let source = if before.source == 1 { first_spare } else { second_spare };
    let target = if is_last {
        selected
    } else if to_first {
        first_spare
    } else {
        second_spare
    };
    let limit = if is_last { wanted - above } else { u64::MAX };
    let prefix = C::of_halves(prefix);
    let next = if is_last { digit } else { Digit::of(bits, level + 1) };

    loop {
        // Each block takes one more, which tells it that there are no more tiles.
        let ticket = tickets.next(scratch, tiles + blocks);
        if ticket.tile >= tiles {
            break;
        }
        let first = ticket.tile as usize * tile_len(VEC) + warp_id() as usize * run_len(VEC);
        let (start, run) = (first.min(len), len.saturating_sub(first).min(run_len(VEC)));
        let codes = if from_input {
            load_input::<C, I, VEC>(input, coding, start, run)
        } else {
            tile::load::<C, Global<C>, VEC>(source.codes.as_const(), start, run)
        };
        let marks = Marks::<VEC>::of(codes, run, digit, prefix);
        if !is_last {
            for row in 0..ROWS {
                for i in 0..VEC {
                    histogram.add(next.get(codes[row][i]), marks.is_tie(row, i));
                }
            }
        }
        if moves {
            let own = marks.count();
            let block = scan::scan_warps::<u32, Sum, THREADS>(own, Sum, warp_totals);
            let total = Counts::of_word(block.total);
            if warp_id() == 0 {
                if block.total != 0 || ticket.is_awaited() {
                    let place = lookback::exchange(scratch, ticket, tiles, total, SumCounts);
                    if lane_id() == 0 {
                        tile_place.set(0, place);
                    }
                } else if lane_id() == 0 {
                    lookback::announce(scratch, ticket, total);
                }
            }
            thread::sync_threads();
            if own != 0 {
                let (tile, run) = (tile_place.get(0), Counts::of_word(block.before));
                let before = Counts { greater: tile.greater + run.greater, ties: tile.ties + run.ties };
                marks.place(before, limit, |at, place| {
                    let at = start + at;
                    if from_input {
                        target.set(place, coding.encode(input.item(at)), P::of(at));
                    } else {
                        target.set(place, source.codes.get(at), source.positions.get(at));
                    }
                });
            }
        }
        // The next tile reuses the shared memory.
        thread::sync_threads();
    }
    if !is_last {
        histogram.flush(0, next_counts);
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
