//! The kernel that finds the largest elements of many rows, one block each.

use super::code::{Coding, Digit, Position};
use super::histogram::Histogram;
use super::kernel::load_input;
use super::layout::{Row, RowLayout, Wanted};
use super::sift::Sifted;
use super::tile::{Candidates, Counts, Marks, ROWS, run_len, striped};
use crate::arch::thread;
use crate::arch::warp::{LANES, warp_id};
use crate::block::scan;
use crate::form::kernel;
use crate::input::Input;
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::view::{Shared, SharedMemory, shared_bytes};

/// The threads per block.
const THREADS: u32 = 512;

/// Returns how many numbers in question a block holds in shared memory.
#[must_use]
pub const fn room<C>() -> usize {
    8192 / size_of::<C>()
}

/// Returns the shared memory of a block.
#[must_use]
const fn shared<C: ShortCode>() -> usize {
    Histogram::<THREADS>::bytes()
        + shared_bytes::<C>(room::<C>())
        + shared_bytes::<u32>(room::<C>())
        + shared_bytes::<u32>((THREADS / LANES) as usize)
}

/// The row of a block.
#[derive(Clone, Copy)]
struct RowInput<I> {
    input: I,
    coding: Coding,
    row: Row,
}

/// Numbers in shared memory, with their positions in the row.
#[derive(Clone, Copy)]
struct SharedRow<C> {
    codes: Shared<C>,
    positions: Shared<u32>,
}

impl<C: ShortCode> SharedRow<C> {
    /// Loads the `len` numbers of a warp's run from `start` on; zeros where there are none.
    ///
    /// # Safety
    /// They were written before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<const VEC: usize>(self, start: usize, len: usize) -> [[C; VEC]; ROWS] {
        let mut codes = [[C::zeroed(); VEC]; ROWS];
        for row in 0..ROWS {
            for i in 0..VEC {
                let at = striped::<VEC>(row) + i;
                if at < len {
                    codes[row][i] = self.codes.get(start + at);
                }
            }
        }
        codes
    }
}

/// Finds the largest elements of rows, one block per row.
///
/// The block counts the highest digits of its row, as the kernel for a single input does: only those that may still matter.
/// Then it goes over the row again, and moves the elements that are not below the digit that the wanted ones go down to
/// into shared memory, in order. If they are too many, it goes over the row again with the next digit. The last digit
/// leaves exactly the wanted elements. Up to [`room`] of them are then ordered by counting, for each, those before it.
///
/// If the list of candidates of a [sifted](super::sift) row is enough, the block ends at once. Sifted rows are ordered by
/// the [kernel](super::order) that orders the candidates.
///
/// Cost: every element is read twice, and once more for each of the next digits for which too many are left: 64 rows of
/// 2^17 keys of 4 bytes are 32 MiB, 8 µs per read at 4.1 TB/s, and the second read finds them in the cache. With fewer rows
/// than multiprocessors, the others are idle.
///
/// # Safety
/// The launch has one block per row. Rows have fewer than 2^32 - 1 elements. `selected` has room for the most wanted elements per row. If
/// the rows are sifted, earlier launches have finished their lists. While the kernel runs, nothing writes the inputs, and
/// nothing else uses `selected`.
// One block per multiprocessor tells the assembler not to save registers.
#[kernel(
    listed = super::instances::SELECT_ROWS_PTX,
    threads = THREADS,
    shared = shared::<C>(),
    min_blocks = 1,
    native = crate::top_k::native::select_rows
)]
pub unsafe fn select_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    input: I,
    coding: Coding,
    bits: u32,
    layout: RowLayout,
    wanted: Wanted,
    selected: Candidates<C, u32>,
    sifted: Sifted,
) {
    let mut memory = SharedMemory::new();
    let (own, row) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    let per_row = wanted.most();
    let selection = Selection {
        histogram: Histogram::<THREADS>::take(&mut memory),
        held: SharedRow { codes: memory.take::<C>(room::<C>()), positions: memory.take::<u32>(room::<C>()) },
        warp_totals: memory.take::<u32>((THREADS / LANES) as usize),
        source: RowInput { input, coding, row: layout.row(row, input.count()) },
        selected: selected.row(row, per_row),
    };
    if sifted.row(row).is_enough() {
        return;
    }
    let wanted = wanted.of(row).min(selection.source.row.len);
    let mut at = wanted + own;
    while at < per_row {
        selection.selected.set(at, C::zeroed(), u32::NONE);
        at += THREADS as usize;
    }
    if wanted == 0 {
        return;
    }
    let histogram = selection.histogram;
    histogram.clear();
    thread::sync_threads();
    selection.source.count::<C, VEC>(histogram, Digit::of(bits, 0), wanted as u64);

    let (mut prefix, mut above) = ([0; 2], 0);
    // The number of elements in shared memory, once they are there.
    let mut held_len = None;
    let levels = Digit::levels(bits);
    let mut level = 0;
    while level < levels {
        let (digit, is_last) = (Digit::of(bits, level), level + 1 == levels);
        thread::sync_threads();
        let pick = histogram.pick_own(wanted as u64 - above);
        thread::sync_threads();
        histogram.clear();
        thread::sync_threads();
        prefix = digit.append(prefix, pick.digit);
        above += pick.above;
        let kept = (above + pick.count) as usize;
        let moves = is_last || held_len.is_none() && kept <= room::<C>();
        let limit = if is_last { wanted as u64 - above } else { u64::MAX };
        let next = if is_last { digit } else { Digit::of(bits, level + 1) };
        let pass = Pass { digit, next, is_last, prefix: C::of_halves(prefix), limit, moves, held_len };
        selection.narrow::<VEC>(pass);
        if moves {
            held_len = Some(kept);
        }
        level += 1;
    }

    if per_row <= room::<C>() && !sifted.is_there() {
        order::<C>(selection.held, selection.selected);
    }
}

/// One more look at the numbers in question, when one more digit of the smallest wanted one is known.
#[derive(Clone, Copy)]
struct Pass<C> {
    digit: Digit,
    /// The digit after it, whose values are counted.
    next: Digit,
    /// There is no such digit.
    is_last: bool,
    /// The bits down to the digit.
    prefix: C,
    /// How many of the numbers with this prefix are wanted.
    limit: u64,
    /// The numbers in question are moved.
    moves: bool,
    /// The number of elements in shared memory, if they are there.
    held_len: Option<usize>,
}

/// What a block selects from, and where it moves numbers.
#[derive(Clone, Copy)]
struct Selection<C, I> {
    histogram: Histogram<THREADS>,
    held: SharedRow<C>,
    warp_totals: Shared<u32>,
    source: RowInput<I>,
    selected: Candidates<C, u32>,
}

impl<C: ShortCode, I: Input<C::Repr>> Selection<C, I> {
    /// Goes over the numbers in question: counts the next digit of those with the prefix, and moves those that are not below it, to
    /// shared memory or to the selected ones.
    ///
    /// # Safety
    /// All threads of the block must call this, with barriers before and after. The counts are zero.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn narrow<const VEC: usize>(self, pass: Pass<C>) {
        let len = pass.held_len.unwrap_or(self.source.row.len);
        let mut before = Counts { greater: 0, ties: 0 };
        let mut first = 0;
        while first < len {
            let start = (first + warp_id() as usize * run_len(VEC)).min(len);
            let run = (len - start).min(run_len(VEC));
            let codes = match pass.held_len {
                None => self.source.load::<C, VEC>(start, run),
                Some(_) => self.held.load::<VEC>(start, run),
            };
            let marks = Marks::<VEC, ROWS>::of(codes, run, pass.digit, pass.prefix);
            if !pass.is_last {
                for row in 0..ROWS {
                    for i in 0..VEC {
                        self.histogram.add(pass.next.get(codes[row][i]), marks.is_tie(row, i));
                    }
                }
            }
            if pass.moves {
                before = self.move_marked(pass, marks, start, before);
                // The next tile reuses the shared memory.
                thread::sync_threads();
            }
            first += (THREADS / LANES) as usize * run_len(VEC);
        }
    }

    /// Moves the marked numbers of a tile, of whose runs this warp's begins at `start`. Returns the counts with those of the tile.
    ///
    /// # Safety
    /// All threads of the block must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn move_marked<const VEC: usize>(
        self,
        pass: Pass<C>,
        marks: Marks<VEC, ROWS>,
        start: usize,
        before: Counts,
    ) -> Counts {
        let own = marks.count();
        let block = scan::scan_warps::<u32, Sum, THREADS>(own, Sum, self.warp_totals);
        if own != 0 {
            let run = Counts::of_word(block.before);
            let run = Counts { greater: before.greater + run.greater, ties: before.ties + run.ties };
            marks.place(run, pass.limit, |at, place| {
                let at = start + at;
                let (code, position) = if pass.held_len.is_none() {
                    (self.source.coding.encode(self.source.input.item(self.source.row.first + at)), at as u32)
                } else {
                    (self.held.codes.get(at), self.held.positions.get(at))
                };
                if pass.is_last {
                    self.selected.set(place, code, position);
                } else if place < room::<C>() {
                    self.held.codes.set(place, code);
                    self.held.positions.set(place, position);
                }
            });
        }
        let tile = Counts::of_word(block.total);
        Counts { greater: before.greater + tile.greater, ties: before.ties + tile.ties }
    }
}

impl<I> RowInput<I> {
    /// Loads the `len` numbers of a warp's run from `start` on.
    ///
    /// # Safety
    /// The row has them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load<C: ShortCode, const VEC: usize>(self, start: usize, len: usize) -> [[C; VEC]; ROWS]
    where
        I: Input<C::Repr>,
    {
        load_input::<C, I, VEC, ROWS>(self.input, self.coding, self.row.first + start, len)
    }

    /// Counts a digit, as far down as the `wanted` largest numbers go.
    ///
    /// # Safety
    /// All threads of the block must call this, with barriers before and after.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn count<C: ShortCode, const VEC: usize>(self, histogram: Histogram<THREADS>, digit: Digit, wanted: u64)
    where
        I: Input<C::Repr>,
    {
        let (mut first, mut least, mut tiles, mut next_look) = (0, 0, 0, 1);
        let len = self.row.len;
        while first < len {
            let start = (first + warp_id() as usize * run_len(VEC)).min(len);
            let run = (len - start).min(run_len(VEC));
            let codes = self.load::<C, VEC>(start, run);
            for row in 0..ROWS {
                for i in 0..VEC {
                    let found = digit.get(codes[row][i]);
                    histogram.add(found, (striped::<VEC>(row) + i < run) & (found >= least));
                }
            }
            first += (THREADS / LANES) as usize * run_len(VEC);
            tiles += 1;
            if tiles == next_look && first < len {
                thread::sync_threads();
                least = histogram.least_needed(wanted);
                next_look *= 2;
            }
        }
    }
}

/// Orders the selected numbers, the largest first; equal ones stay in order.
///
/// # Safety
/// All threads of the block must call this. The numbers fit into the memory of `held`, which nothing else uses, and were
/// written by this block.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn order<C: ShortCode>(held: SharedRow<C>, selected: Candidates<C, u32>) {
    let (own, len) = (thread::thread_idx_x() as usize, selected.codes.len());
    thread::sync_threads();
    let mut at = own;
    while at < len {
        held.codes.set(at, selected.codes.get(at));
        held.positions.set(at, selected.positions.get(at));
        at += THREADS as usize;
    }
    thread::sync_threads();
    let mut at = own;
    while at < len {
        let code = held.codes.get(at);
        let (mut place, mut other) = (0, 0);
        while other < len {
            let other_code = held.codes.get(other);
            place += usize::from((other_code > code) | (other_code == code) & (other < at));
            other += 1;
        }
        selected.set(place, code, held.positions.get(at));
        at += THREADS as usize;
    }
}
