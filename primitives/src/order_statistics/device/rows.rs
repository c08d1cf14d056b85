//! The kernel that finds ranks in rows: a block per rank.

use super::cuts::rank_of_fraction;
use super::kernel::THREADS;
use crate::arch::thread;
use crate::form::kernel;
use crate::input::Input;
use crate::sort::ShortCode;
use crate::top_k::device::code::{Coding, Digit, Position};
use crate::top_k::device::histogram::Histogram;
use crate::top_k::device::layout::{Row, RowLayout};
use crate::view::{Global, GlobalMut, SharedMemory};

/// The loads of a thread that are in flight at the same time.
const ROWS: usize = 4;

/// The bits of a number that are known: those down to a digit.
#[derive(Clone, Copy)]
struct Known {
    prefix: [u64; 2],
    /// The lowest bit that is known.
    shift: u32,
    /// Whether anything is known.
    is_any: bool,
}

impl Known {
    const NOTHING: Self = Self { prefix: [0; 2], shift: 0, is_any: false };

    /// Returns whether a number has these bits.
    #[inline(always)]
    fn fits<C: ShortCode>(self, number: C) -> bool {
        !self.is_any || number.bits_from(self.shift) == C::of_halves(self.prefix)
    }

    /// Returns what is known with one more digit.
    #[inline(always)]
    fn with(self, digit: Digit, value: u32) -> Self {
        Self { prefix: digit.append(self.prefix, value), shift: digit.shift, is_any: true }
    }
}

/// Finds the position of one rank in one row.
///
/// A block counts the digits of the row's numbers, 11 bits at a time, from the highest. It goes down from the largest number:
/// codes and positions are complemented, so that the smallest come first. Only numbers with the digits that are known so
/// far are counted. After the code, the digits of the position are counted, so that in the end one number is left. As soon as
/// this is so, the block looks for its position.
///
/// Cost: the row is read once per digit until one number is left, and once more: for random numbers of 32 bits, 3 times for
/// a row of up to a thousand elements, 4 times for a million; and 2 to 4 times more if all are equal. Each digit takes some
/// 2 µs in addition. A row of up to some 100,000 bytes is read from the cache after the first time.
///
/// # Safety
/// The launch has one block per position; `per_row` positions belong to a row, at least one. Rows have fewer than 2^32 - 1
/// elements. There is one rank per position, or `per_row` fractions, given by their bits. `coding` complements. While the
/// kernel runs, nothing writes the inputs, and nothing else uses the positions.
#[kernel(
    listed = super::instances::SELECT_IN_ROWS_PTX,
    threads = THREADS,
    shared = Histogram::<THREADS>::bytes(),
    native = crate::order_statistics::native::select_in_rows
)]
pub unsafe fn select_in_rows<C: ShortCode, I: Input<C::Repr>>(
    input: I,
    coding: Coding,
    bits: u32,
    layout: RowLayout,
    per_row: u64,
    ranks: Global<u32>,
    fractions: Global<u64>,
    positions: GlobalMut<u32>,
) {
    let (block, own) = (thread::block_idx_x() as usize, thread::thread_idx_x() as usize);
    let row = block / per_row as usize;
    let Row { first: start, len } = layout.row(row, input.count());
    let rank = if ranks.is_empty() {
        rank_of_fraction(fractions.get(block % per_row as usize), len as u64)
    } else {
        ranks.get(block) as u64
    };
    if rank >= len as u64 {
        if own == 0 {
            positions.set(block, u32::NONE);
        }
        return;
    }
    let histogram = Histogram::<THREADS>::take(&mut SharedMemory::new());
    let last = len as u32 - 1;
    let position_bits = u32::BITS - last.leading_zeros();
    let of_code = Digit::levels(bits);
    let levels = of_code + Digit::levels(position_bits);
    let (mut code, mut place) = (Known::NOTHING, Known::NOTHING);
    let (mut wanted, mut level) = (rank + 1, 0);
    loop {
        let is_code = level < of_code;
        let digit = if is_code { Digit::of(bits, level) } else { Digit::of(position_bits, level - of_code) };
        histogram.clear();
        thread::sync_threads();
        let mut base = 0;
        while base < len {
            let mut numbers = [C::zeroed(); ROWS];
            for i in 0..ROWS {
                let at = base + i * THREADS as usize + own;
                if at < len {
                    numbers[i] = coding.encode(input.item(start + at));
                }
            }
            for i in 0..ROWS {
                let at = base + i * THREADS as usize + own;
                let from_last = last.wrapping_sub(at as u32);
                let value = if is_code { digit.get(numbers[i]) } else { digit.get(from_last) };
                histogram.add(value, (at < len) & code.fits(numbers[i]) & place.fits(from_last));
            }
            base += ROWS * THREADS as usize;
        }
        thread::sync_threads();
        let pick = histogram.pick_own(wanted);
        wanted -= pick.above;
        if is_code {
            code = code.with(digit, pick.digit);
        } else {
            place = place.with(digit, pick.digit);
        }
        level += 1;
        if pick.count <= 1 || level == levels {
            break;
        }
        thread::sync_threads();
    }
    let mut at = own;
    while at < len {
        let number: C = coding.encode(input.item(start + at));
        if code.fits(number) & place.fits(last - at as u32) {
            positions.set(block, at as u32);
        }
        at += THREADS as usize;
    }
}
