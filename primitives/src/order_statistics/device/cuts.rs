//! How numbers and their positions are cut into digits, and what ranks mean.

use crate::sort::ShortCode;
use crate::top_k::device::code::DIGIT_BITS;
use crate::top_k::device::histogram::BINS;
use bytemuck::{Pod, Zeroable};

/// The most ranks that are searched for at the same time.
pub(crate) const MAX_RANKS: usize = 64;

/// The slot of a bin in which no rank lies.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// How numbers are cut into digits. It is a kernel argument.
///
/// The first digit is the highest [`DIGIT_BITS`] bits of the code. The other digits are shorter: in a *bin*, a digit comes
/// after the number of the *slot* that the digits before have led to. After the code come the bits of the position, so that
/// no two elements are equal.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Cuts {
    code_bits: u32,
    position_bits: u32,
    /// The bits of a digit after the first one.
    width: u32,
}

/// A digit, and how a number is written while it is in question: the slot, followed by the bits that were not looked at.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// The digit is one of the position. The code has been looked at, and the number is the slot alone.
    pub of_position: bool,
    shift: u32,
    bits: u32,
}

impl Cuts {
    /// Codes of `code_bits` bits, of `len` elements of which `ranks` are wanted: at most [`MAX_RANKS`].
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(code_bits: u32, len: usize, ranks: usize) -> Self {
        assert!(ranks <= MAX_RANKS, "{ranks} ranks");
        let slot_bits = ranks.next_power_of_two().trailing_zeros();
        let position_bits = usize::BITS - len.saturating_sub(1).leading_zeros();
        Self { code_bits, position_bits, width: DIGIT_BITS - slot_bits }
    }

    /// Returns the number of digits of the code.
    #[inline(always)]
    fn of_code(self) -> u32 {
        1 + self.code_bits.saturating_sub(DIGIT_BITS).div_ceil(self.width)
    }

    /// Returns the number of digits.
    #[inline(always)]
    pub(crate) fn levels(self) -> u32 {
        self.of_code() + self.position_bits.div_ceil(self.width)
    }

    /// Returns digit number `level`, which exists.
    #[inline(always)]
    pub(crate) fn cut(self, level: u32) -> Cut {
        let of_code = self.of_code();
        let (of_position, end, width) = if level == 0 {
            (false, self.code_bits, DIGIT_BITS)
        } else if level < of_code {
            (false, self.code_bits - DIGIT_BITS - (level - 1) * self.width, self.width)
        } else {
            (true, self.position_bits - (level - of_code) * self.width, self.width)
        };
        let shift = end.saturating_sub(width);
        Cut { of_position, shift, bits: end - shift }
    }
}

impl Cut {
    /// Returns the bin of a number: its slot and its digit.
    #[inline(always)]
    pub(crate) fn bin<C: ShortCode>(self, number: C, position: u64) -> usize {
        let bin = if self.of_position {
            number.halves()[0] << self.bits | position >> self.shift & ((1 << self.bits) - 1)
        } else {
            number.bits_from(self.shift).halves()[0]
        };
        bin as usize % BINS
    }

    /// Returns the number as it is written after this digit has led to `slot`.
    #[inline(always)]
    pub(crate) fn recode<C: ShortCode>(self, number: C, slot: u32) -> C {
        if self.of_position {
            return C::of_halves([slot as u64, 0]);
        }
        let [low, high] = number.cut(self.shift).halves();
        let slot = (slot as u128) << self.shift;
        C::of_halves([slot as u64 | low, (slot >> 64) as u64 | high])
    }
}

/// The ranks that are wanted. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Wanted {
    /// The number of ranks, at most [`MAX_RANKS`].
    pub(crate) count: u32,
    /// Not 0 if the ranks are given as the bits of fractions.
    pub(crate) fractions: u32,
}

impl Wanted {
    /// Returns the rank that a word means, among `len` elements. If there is none, it is `len` or more.
    #[inline(always)]
    pub(crate) fn rank(self, word: u64, len: u64) -> u64 {
        if self.fractions != 0 { rank_of_fraction(word, len) } else { word }
    }
}

/// Returns the rank that a fraction means, given by its bits: the whole part of `fraction * (len - 1)`. No element has rank
/// `u64::MAX`.
#[inline(always)]
pub(crate) fn rank_of_fraction(bits: u64, len: u64) -> u64 {
    if len == 0 {
        return u64::MAX;
    }
    let rank = (f64::from_bits(bits) * (len - 1) as f64) as u64;
    // Long inputs are rounded up.
    if rank < len { rank } else { len - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows one number through all digits, alone in its slot.
    #[test]
    fn digits_cover_numbers_and_positions() {
        for bits in [1, 8, 11, 12, 16, 32, 64, 100, 128] {
            for (len, ranks) in [(0, 1), (1, 1), (2, 2), (1000, 16), ((1 << 32) + 5, 64)] {
                let cuts = Cuts::new(bits, len, ranks);
                let number = 0x0123_4567_89AB_CDEF_1032_5476_98BA_DCFEu128 & (u128::MAX >> (128 - bits));
                let position = len.saturating_sub(1) as u64;
                let slot = ranks as u32 - 1;
                let (mut left, mut code, mut place) = (number, 0u128, 0u64);
                for level in 0..cuts.levels() {
                    let cut = cuts.cut(level);
                    let before = if level == 0 { 0 } else { slot as usize };
                    let digit = cut.bin(left, position) - (before << cut.bits);
                    assert!(digit < 1 << cut.bits, "{bits} bits, digit {level}");
                    if cut.of_position {
                        place = place << cut.bits | digit as u64;
                    } else {
                        code = code << cut.bits | digit as u128;
                    }
                    left = cut.recode(left, slot);
                }
                assert_eq!((code, place), (number, position), "{bits} bits, {len} elements");
            }
        }
    }

    #[test]
    fn fractions_are_ranks() {
        for (fraction, len, rank) in [(0.0, 5, 0), (0.5, 5, 2), (0.5, 4, 1), (0.7, 11, 7), (1.0, 11, 10), (0.99, 1, 0)]
        {
            assert_eq!(rank_of_fraction(f64::to_bits(fraction), len), rank, "{fraction} of {len}");
        }
        assert_eq!(rank_of_fraction(1f64.to_bits(), u64::MAX), u64::MAX - 1);
        assert_eq!(rank_of_fraction(0f64.to_bits(), 0), u64::MAX);
    }
}
