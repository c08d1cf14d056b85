//! The digits of a code that the passes of a sort look at, and the orders that they give.

use crate::code::{Sign, U256};
use crate::compare::Compare;
use crate::form::Param;
use crate::operator::{Record, operator};
use crate::sort::{Buckets, Purity, RadixCode};
use bytemuck::{Pod, Zeroable};

/// The digits of all passes, as a kernel argument. Only this crate can create it, because kernels rely on the masks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    sign: Sign,
    /// The bits to compare, among the lowest 64.
    mask: u64,
    /// The lowest bit to compare.
    shift: u32,
    passes: u32,
    /// The mask of the last pass's digit; all other digits have 8 bits.
    last_mask: u32,
    /// All ones for a descending sort.
    flip: u32,
}

// SAFETY: `repr(C)`, plain data without padding. It is not `Pod`: safe code must not make one of any bytes.
unsafe impl Param for Digits {}

impl Digits {
    /// The digits of the bits `start..end`; at least one bit.
    pub(crate) const fn new(sign: Sign, start: u32, end: u32, descending: bool) -> Self {
        let passes = (end - start).div_ceil(8);
        let last = end - start - 8 * (passes - 1);
        const fn below(bit: u32) -> u64 {
            if bit < 64 { (1 << bit) - 1 } else { u64::MAX }
        }
        let mask = below(end) & !below(start);
        let flip = if descending { !0 } else { 0 };
        Self { sign, mask, shift: start, passes, last_mask: (1 << last) - 1, flip }
    }

    /// Returns the number of passes.
    pub(crate) const fn passes(&self) -> u32 {
        self.passes
    }

    /// Returns the number of bits to compare.
    const fn bits(&self) -> u32 {
        8 * (self.passes - 1) + self.last_mask.count_ones()
    }

    /// Returns whether the order of keys with `bits` bits is that of their numbers.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn is_natural(&self, bits: u32) -> bool {
        self.sign == Sign::NONE && self.flip == 0 && self.bits() == bits
    }

    /// Returns the order of 256-bit numbers by these digits.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn order_of_long(&self) -> ByLongDigits {
        let end = self.shift + self.bits();
        let below = |bit: u32| if bit < 128 { (1u128 << bit) - 1 } else { u128::MAX };
        let bits = |base: u32| below(end.saturating_sub(base)) & !below(self.shift.saturating_sub(base));
        ByLongDigits { mask: U256 { high: bits(128), low: bits(0) }, flip: (self.flip as i32) as u128 }
    }

    /// Returns the order of keys by these digits.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn order(&self) -> ByDigits {
        ByDigits { sign: self.sign, mask: self.mask, flip: (self.flip as i32) as u64 }
    }
}

/// The order of keys by their [`Digits`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(crate) struct ByDigits {
    sign: Sign,
    /// The bits to compare.
    mask: u64,
    /// All ones for a descending sort.
    flip: u64,
}

#[operator]
impl Compare<u32> for ByDigits {
    fn less(&self, a: u32, b: u32) -> bool {
        let (always, negative) = ((self.sign.always ^ self.flip) as u32, self.sign.negative as u32);
        let a = a ^ (if a >> 31 == 0 { always } else { always ^ negative });
        let b = b ^ (if b >> 31 == 0 { always } else { always ^ negative });
        (a & self.mask as u32) < (b & self.mask as u32)
    }
}

#[operator]
impl Compare<u64> for ByDigits {
    fn less(&self, a: u64, b: u64) -> bool {
        let (always, negative) = (self.sign.always ^ self.flip, self.sign.negative);
        let a = a ^ (if a >> 63 == 0 { always } else { always ^ negative });
        let b = b ^ (if b >> 63 == 0 { always } else { always ^ negative });
        (a & self.mask) < (b & self.mask)
    }
}

/// The order of 256-bit numbers by their [`Digits`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(crate) struct ByLongDigits {
    /// The bits to compare.
    mask: U256,
    /// All ones for a descending sort.
    flip: u128,
}

#[operator]
impl Compare<U256> for ByLongDigits {
    fn less(&self, a: U256, b: U256) -> bool {
        let (high, low, flip) = (self.mask.high, self.mask.low, self.flip);
        ((a.high ^ flip) & high, (a.low ^ flip) & low) < ((b.high ^ flip) & high, (b.low ^ flip) & low)
    }
}

impl<K: RadixCode> Buckets<K> for Digits {
    const MAX_PASSES: usize = K::BITS.div_ceil(8) as usize;
    // SAFETY: the digits depend only on the key and the arguments, and the masks keep them in range.
    const PURITY: Purity = unsafe { Purity::promised() };

    #[inline(always)]
    fn bucket(&self, key: K, pass: u32) -> u32 {
        (key.digits(self.shift + 8 * pass, self.sign) ^ self.flip) & <Self as Buckets<K>>::last(self, pass)
    }

    #[inline(always)]
    fn last(&self, pass: u32) -> u32 {
        if pass + 1 == self.passes { self.last_mask } else { 0xFF }
    }

    /// The later passes put keys in order, unless they are equal. The first pass has no order to keep, unless there are
    /// bits that are not compared: keys that differ in these stay in the order of the input.
    #[inline(always)]
    fn is_any_order(&self, pass: u32) -> bool {
        pass == 0 && self.bits() == K::BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_compared_by_the_bits_asked_for() {
        let number = |high, low| U256 { high, low };
        let numbers = [(0, 1), (0, 1 << 64), (5, 0), (1 << 64, 5), (u128::MAX, 6), (3, 3)].map(|(a, b)| number(a, b));
        for (start, end) in [(0, 256), (0, 64), (64, 128), (1, 2), (60, 130), (128, 129), (192, 256), (255, 256)] {
            // The bits in question, the highest first.
            let bits = |of: U256| {
                let bit = |at: u32| (if at < 128 { of.low >> at } else { of.high >> (at - 128) }) as u32 & 1;
                (start..end).rev().map(bit).collect::<Vec<_>>()
            };
            let [up, down] = [false, true].map(|descending| Digits::new(Sign::NONE, start, end, descending));
            for a in numbers {
                let digit = |at: u32| up.bucket(a, (at - start) / 8) >> ((at - start) % 8) & 1;
                assert!((start..end).rev().map(digit).eq(bits(a)), "{a:?}, bits {start}..{end}");
                for b in numbers {
                    assert_eq!(up.order_of_long().less(a, b), bits(a) < bits(b), "{a:?} {b:?}, bits {start}..{end}");
                    assert_eq!(down.order_of_long().less(a, b), bits(a) > bits(b), "{a:?} {b:?}, bits {start}..{end}");
                }
            }
        }
    }
}
