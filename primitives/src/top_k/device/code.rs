//! Keys as numbers whose largest are wanted, digit by digit, and positions.

use crate::code::Sign;
use crate::sealed::Sealed;
use crate::sort::ShortCode;
use bytemuck::{Pod, Zeroable};

/// The bits of a digit.
pub(crate) const DIGIT_BITS: u32 = 11;

/// How keys become numbers of which the largest are wanted. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Coding {
    sign: Sign,
    /// The bits of a code.
    mask: [u64; 2],
    /// The bits that are flipped because the smallest keys are wanted.
    flip: [u64; 2],
}

impl Coding {
    /// Codes of `bits` bits.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(sign: Sign, bits: u32, smallest: bool) -> Self {
        let all = if bits < 128 { (1u128 << bits) - 1 } else { u128::MAX };
        let mask = all.halves();
        Self { sign, mask, flip: if smallest { mask } else { [0; 2] } }
    }

    /// Returns the number of a key.
    #[inline(always)]
    pub(crate) fn encode<C: ShortCode>(self, key: C::Repr) -> C {
        let [low, high] = self.sign.encode(C::of_repr(key)).halves();
        C::of_halves([low & self.mask[0] ^ self.flip[0], high & self.mask[1] ^ self.flip[1]])
    }

    /// Returns the bits of the key with this number. The key is a number that has all bits of `C`.
    #[inline(always)]
    pub(crate) fn decode<C: ShortCode>(self, number: C) -> C {
        let [low, high] = number.halves();
        self.sign.decode(C::of_halves([low ^ self.flip[0], high ^ self.flip[1]]))
    }
}

/// A digit of a number.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Digit {
    /// The lowest bit.
    pub(crate) shift: u32,
    /// The number of bits: 1 to [`DIGIT_BITS`].
    bits: u32,
}

impl Digit {
    /// Returns digit `level` of numbers of `bits` bits; digit 0 has the highest bits.
    #[inline(always)]
    pub(crate) const fn of(bits: u32, level: u32) -> Self {
        let end = bits - DIGIT_BITS * level;
        let shift = end.saturating_sub(DIGIT_BITS);
        Self { shift, bits: end - shift }
    }

    /// Returns the number of digits of numbers of `bits` bits.
    #[inline(always)]
    pub(crate) const fn levels(bits: u32) -> u32 {
        bits.div_ceil(DIGIT_BITS)
    }

    /// Returns the digit of a number.
    #[inline(always)]
    pub(crate) fn get<C: ShortCode>(self, code: C) -> u32 {
        code.bits_from(self.shift).halves()[0] as u32 & ((1 << self.bits) - 1)
    }

    /// Returns the bit after the highest one.
    #[inline(always)]
    pub(crate) const fn end(self) -> u32 {
        self.shift + self.bits
    }

    /// Returns the smallest number whose bits down to this digit are `prefix`.
    #[inline(always)]
    pub(crate) fn least(self, [low, high]: [u64; 2]) -> [u64; 2] {
        (((high as u128) << 64 | low as u128) << self.shift).halves()
    }

    /// Returns the bits of a number down to this digit, where those down to the digit before are `prefix`.
    #[inline(always)]
    pub(crate) fn append(self, [low, high]: [u64; 2], digit: u32) -> [u64; 2] {
        let carried = low >> (64 - self.bits);
        [low << self.bits | digit as u64, high << self.bits | carried]
    }
}

/// A position in the input: `u32` or `u64`.
pub trait Position: Pod + Ord + Sealed {
    /// No position: what follows if there are fewer elements than wanted.
    const NONE: Self;

    /// Returns the position as this type.
    #[doc(hidden)]
    fn of(index: usize) -> Self;

    /// Returns the position as an index.
    #[doc(hidden)]
    fn index(self) -> usize;
}

macro_rules! positions {
    ($($type:ty)*) => { $(
        impl Position for $type {
            const NONE: Self = Self::MAX;

            #[inline(always)]
            fn of(index: usize) -> Self {
                index as Self
            }

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }
    )* };
}

positions!(u32 u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_cover_a_number() {
        for bits in [1, 8, 11, 12, 16, 32, 64, 100, 128] {
            let number = 0x0123_4567_89AB_CDEF_1032_5476_98BA_DCFEu128 & (u128::MAX >> (128 - bits));
            let mut prefix = [0; 2];
            for level in 0..Digit::levels(bits) {
                let digit = Digit::of(bits, level);
                prefix = digit.append(prefix, digit.get(number));
                assert_eq!(u128::of_halves(prefix), number >> digit.shift, "{bits} bits, digit {level}");
                let least = number >> digit.shift << digit.shift;
                assert_eq!(u128::of_halves(digit.least(prefix)), least, "{bits} bits, digit {level}");
                assert_eq!(digit.end(), bits - DIGIT_BITS * level);
            }
            assert_eq!(u128::of_halves(prefix), number);
        }
    }
}
