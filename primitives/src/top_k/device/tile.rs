//! A block's tile: loading it, marking the numbers that are still in question, and moving them in order.
//!
//! A tile has a run of `32 * VEC * ROWS` consecutive elements per warp. A row is one coalesced access: `VEC` adjacent
//! elements per lane. The order is run, row, lane, `i`.

use super::code::{Digit, Position};
use crate::arch::warp::{FULL, LANES, ballot, lane_id};
use crate::block::warp;
use crate::form::{Buffer, Param};
use crate::input::Input;
use crate::monoid::{Combine, Sum};
use crate::sort::ShortCode;
use crate::view::GlobalMut;
use bytemuck::{Pod, Zeroable};

/// The rows of a tile of the kernels for one input.
pub(crate) const ROWS: usize = 3;

/// Returns the elements of a warp in a tile of [`ROWS`] rows.
#[must_use]
pub const fn run_len(vec: usize) -> usize {
    run_of(vec, ROWS)
}

/// Returns the elements of a warp.
#[must_use]
pub const fn run_of(vec: usize, rows: usize) -> usize {
    LANES as usize * vec * rows
}

/// Numbers and their positions in the input. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Candidates<C, P> {
    pub(crate) codes: GlobalMut<C>,
    pub(crate) positions: GlobalMut<P>,
}

// SAFETY: `repr(C)`, and both fields are `Param`s.
unsafe impl<C: Pod, P: Pod> Param for Candidates<C, P> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.codes.buffers(name, visit);
        self.positions.buffers(name, visit);
    }
}

impl<C: Pod, P: Pod> Candidates<C, P> {
    /// Returns those of a row, if each row has `len`.
    ///
    /// # Safety
    /// There are so many rows.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn row(self, row: usize, len: usize) -> Self {
        self.part(row * len, len)
    }

    /// Returns those from `start` on, `len` of them.
    ///
    /// # Safety
    /// There are so many.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn part(self, start: usize, len: usize) -> Self {
        Self { codes: self.codes.slice(start, len), positions: self.positions.slice(start, len) }
    }
}

/// Numbers that are in, and numbers that may be.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Counts {
    /// Those above the prefix.
    pub(crate) greater: u64,
    /// Those with the prefix.
    pub(crate) ties: u64,
}

/// The sum of counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct SumCounts;

impl Combine<Counts> for SumCounts {
    #[inline(always)]
    fn identity(&self) -> Counts {
        Counts { greater: 0, ties: 0 }
    }

    #[inline(always)]
    fn combine(&self, a: Counts, b: Counts) -> Counts {
        Counts { greater: a.greater + b.greater, ties: a.ties + b.ties }
    }
}

/// Two counts of a tile in one word.
const TIE: u32 = 1 << 16;

impl Counts {
    /// Returns the counts that are in one word.
    #[inline(always)]
    pub(crate) fn of_word(word: u32) -> Self {
        Self { greater: (word % TIE) as u64, ties: (word / TIE) as u64 }
    }
}

/// Returns the position in the run of the lane's first element of a row.
#[inline(always)]
pub(crate) fn striped<const VEC: usize>(row: usize) -> usize {
    (row * LANES as usize + lane_id() as usize) * VEC
}

/// Returns the lane's bits of the first `len` numbers of a run.
#[inline(always)]
pub(crate) fn first_of_run<const VEC: usize, const ROWS: usize>(len: usize) -> u32 {
    if len == run_of(VEC, ROWS) {
        return u32::MAX >> (32 - VEC * ROWS);
    }
    let mut bits = 0;
    for row in 0..ROWS {
        for i in 0..VEC {
            bits |= u32::from(striped::<VEC>(row) + i < len) << (row * VEC + i);
        }
    }
    bits
}

/// Returns the position in the run of the lane's number with this bit.
#[inline(always)]
pub(crate) fn place_in_run<const VEC: usize>(bit: u32) -> usize {
    striped::<VEC>(bit as usize / VEC) + bit as usize % VEC
}

/// Loads the `len` elements of a warp's run from `start` on; zeros where there are none.
///
/// # Safety
/// The input has these elements, and `len` is at most [`run_of`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn load<T: Pod, I: Input<T>, const VEC: usize, const ROWS: usize>(
    input: I,
    start: usize,
    len: usize,
) -> [[T; VEC]; ROWS] {
    let mut items = [[T::zeroed(); VEC]; ROWS];
    if len == run_of(VEC, ROWS) && input.lead::<VEC>() == start % VEC {
        for row in 0..ROWS {
            items[row] = input.row(start + striped::<VEC>(0), row * LANES as usize * VEC);
        }
    } else {
        for row in 0..ROWS {
            for i in 0..VEC {
                let at = striped::<VEC>(row) + i;
                if at < len {
                    items[row][i] = input.item(start + at);
                }
            }
        }
    }
    items
}

/// What a lane's numbers are, compared with a prefix: a bit `row * VEC + i` for each.
#[derive(Clone, Copy)]
pub(crate) struct Marks<const VEC: usize, const ROWS: usize> {
    greater: u32,
    ties: u32,
}

impl<const VEC: usize, const ROWS: usize> Marks<VEC, ROWS> {
    /// Compares the bits from `digit` on of the first `len` numbers of the run with the prefix.
    #[inline(always)]
    pub fn of<C: ShortCode>(codes: [[C; VEC]; ROWS], len: usize, digit: Digit, prefix: C) -> Self {
        let (mut greater, mut ties) = (0, 0);
        for row in 0..ROWS {
            for i in 0..VEC {
                let bits = codes[row][i].bits_from(digit.shift);
                let is_there = striped::<VEC>(row) + i < len;
                greater |= u32::from(is_there & (bits > prefix)) << (row * VEC + i);
                ties |= u32::from(is_there & (bits == prefix)) << (row * VEC + i);
            }
        }
        Self { greater, ties }
    }

    /// Marks the first `len` numbers of the run that are not below the threshold: as numbers that are in.
    #[inline(always)]
    pub fn at_least<C: ShortCode>(codes: [[C; VEC]; ROWS], len: usize, threshold: C) -> Self {
        let mut marked = 0;
        for row in 0..ROWS {
            for i in 0..VEC {
                marked |= u32::from(codes[row][i] >= threshold) << (row * VEC + i);
            }
        }
        // Only the last run of an input.
        if len < run_of(VEC, ROWS) {
            for row in 0..ROWS {
                for i in 0..VEC {
                    marked &= !(u32::from(striped::<VEC>(row) + i >= len) << (row * VEC + i));
                }
            }
        }
        Self { greater: marked, ties: 0 }
    }

    /// Returns whether a number has the prefix.
    #[inline(always)]
    pub fn is_tie(self, row: usize, i: usize) -> bool {
        self.ties >> (row * VEC + i) & 1 != 0
    }

    /// Returns the counts of the warp, in one word, to all lanes.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn count(self) -> u32 {
        // Most warps have none.
        if ballot(FULL, self.greater | self.ties != 0) == 0 {
            return 0;
        }
        warp::reduce(self.greater.count_ones() + TIE * self.ties.count_ones(), Sum)
    }

    /// Calls `put(at, place)` for the marked numbers, but only for those with the prefix that have fewer than `limit` such
    /// before them. `at` is the position in the run, and the place is the number of kept ones before; `before` counts those
    /// before the run.
    ///
    /// Most runs have no or few marked numbers. So the loops are not unrolled, and `put` loads the numbers again: they take
    /// no registers while a tile waits.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn place(self, before: Counts, limit: u64, mut put: impl FnMut(usize, usize)) {
        // Within the run, 32 bits are enough.
        let ties_left = limit.saturating_sub(before.ties);
        let ties_left = if ties_left < TIE as u64 { ties_left as u32 } else { TIE };
        let first = before.greater + if before.ties < limit { before.ties } else { limit };
        let (mut greater_before, mut ties_before) = (0, 0);
        let mut row = 0;
        while row < ROWS {
            let mask = (1 << VEC) - 1;
            let (greater, ties) = (self.greater >> (row * VEC) & mask, self.ties >> (row * VEC) & mask);
            let own = greater.count_ones() + TIE * ties.count_ones();
            let up_to = warp::inclusive_scan(own, Sum);
            let mut greater_here = greater_before + (up_to - own) % TIE;
            let mut ties_here = ties_before + (up_to - own) / TIE;
            let mut marked = greater | ties;
            while marked != 0 {
                let i = marked.trailing_zeros();
                marked &= marked - 1;
                let is_tie = ties >> i & 1;
                if is_tie == 0 || ties_here < ties_left {
                    let place = greater_here + if ties_here < ties_left { ties_here } else { ties_left };
                    put(striped::<VEC>(row) + i as usize, (first + place as u64) as usize);
                }
                greater_here += 1 - is_tie;
                ties_here += is_tie;
            }
            let total = warp::broadcast(up_to, LANES - 1);
            greater_before += total % TIE;
            ties_before += total / TIE;
            row += 1;
        }
    }
}

impl<C: ShortCode, P: Position> Candidates<C, P> {
    /// Writes a number and its position. A place that does not exist is left out, so that a code function that is not a
    /// function does no harm.
    ///
    /// # Safety
    /// Nothing else uses the place at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn set(self, place: usize, code: C, position: P) {
        if place < self.codes.len() {
            self.codes.set(place, code);
            self.positions.set(place, position);
        }
    }
}
