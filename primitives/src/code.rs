//! Numbers as unsigned integers that sort like them.
//!
//! A number is reinterpreted as an unsigned integer with the same bits. A [`Sign`] converts these bits to a *code* that
//! orders as the number does, and back: every code is the code of exactly one number.

use crate::operator::Record;
use bytemuck::{Pod, Zeroable};

/// An unsigned integer that holds the bits of a number.
pub trait Bits: Pod + Ord {
    /// Returns the integer with the given bits flipped.
    #[must_use]
    fn flip(self, bits: u64) -> Self;
    /// Returns the integer with the given bits flipped if its highest bit is set.
    #[must_use]
    fn flip_if_negative(self, bits: u64) -> Self;
}

macro_rules! bits {
    ($($unsigned:ty, $signed:ty;)*) => { $(
        impl Bits for $unsigned {
            #[inline(always)]
            fn flip(self, bits: u64) -> Self {
                self ^ bits as Self
            }
            #[inline(always)]
            fn flip_if_negative(self, bits: u64) -> Self {
                self ^ (((self as $signed) >> (<$unsigned>::BITS - 1)) as Self & bits as Self)
            }
        }
    )* };
}

bits! {
    u32, i32;
    u64, i64;
}

/// The masks apply to the upper half, which has the sign.
impl Bits for u128 {
    #[inline(always)]
    fn flip(self, bits: u64) -> Self {
        self ^ (bits as Self) << 64
    }
    #[inline(always)]
    fn flip_if_negative(self, bits: u64) -> Self {
        let upper = (self >> 64) as u64;
        (upper.flip_if_negative(bits) as Self) << 64 | (self as u64) as Self
    }
}

/// A number of 256 bits, in two halves.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Record)]
pub struct U256 {
    /// The upper half, which is compared first.
    pub high: u128,
    /// The lower half.
    pub low: u128,
}

/// The masks apply to the upper half, which has the sign.
impl Bits for U256 {
    #[inline(always)]
    fn flip(self, bits: u64) -> Self {
        Self { high: self.high.flip(bits), ..self }
    }
    #[inline(always)]
    fn flip_if_negative(self, bits: u64) -> Self {
        Self { high: self.high.flip_if_negative(bits), ..self }
    }
}

/// How signs are interpreted: masks that make the bits of a number sort like an unsigned number. It is a kernel
/// argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Record)]
pub struct Sign {
    /// Bits that are flipped in every number.
    pub(crate) always: u64,
    /// Bits that are also flipped if the highest bit is set.
    pub(crate) negative: u64,
}

impl Sign {
    /// Unsigned.
    pub const NONE: Self = Self { always: 0, negative: 0 };

    /// Returns the code of a number that is given by its bits.
    #[inline(always)]
    pub fn encode<B: Bits>(self, key: B) -> B {
        key.flip_if_negative(self.negative).flip(self.always)
    }

    /// Returns the bits of the number with this [code](Self::encode).
    #[inline(always)]
    pub fn decode<B: Bits>(self, code: B) -> B {
        code.flip(self.always).flip_if_negative(self.negative)
    }

    /// Signed integers of so many bits: negative numbers come first.
    pub(crate) const fn two_s_complement(bits: u32) -> Self {
        Self { always: 1 << (bits - 1), negative: 0 }
    }

    /// Floats of so many bits, in the order of `total_cmp`.
    pub(crate) const fn sign_and_magnitude(bits: u32) -> Self {
        Self { always: 1 << (bits - 1), negative: u64::MAX >> (65 - bits) }
    }
}
