//! The numbers that keys are sorted by.

use crate::code::{Bits, Sign, U256};
#[cfg(not(target_arch = "nvptx64"))]
use crate::compare::{Greater, HoleOrder};
use crate::hole::RegisterRepr;
use crate::sealed::Sealed;

/// A number that keys are sorted by: `u32`, `u64`, `u128` or [`U256`].
pub trait RadixCode: Bits + Sealed {
    /// The number of bits.
    const BITS: u32;

    /// Returns the bits from `shift` on: at least the next 8. `shift` is below [`BITS`](Self::BITS); bits beyond the
    /// code are zero.
    #[doc(hidden)]
    fn digits(self, shift: u32, sign: Sign) -> u32;

    /// Returns the lowest `bits` bits.
    #[doc(hidden)]
    #[must_use]
    fn cut(self, bits: u32) -> Self;
}

/// A number of up to 128 bits: `u32`, `u64` or `u128`.
pub trait ShortCode: RadixCode {
    /// The type in which kernels load such a number.
    #[doc(hidden)]
    type Repr: RegisterRepr;

    /// Returns the number that was loaded.
    #[doc(hidden)]
    fn of_repr(repr: Self::Repr) -> Self;

    /// Returns the bits from `shift` on. `shift` is below [`BITS`](Self::BITS).
    #[doc(hidden)]
    #[must_use]
    fn bits_from(self, shift: u32) -> Self;

    /// Returns the lower and the upper 64 bits.
    #[doc(hidden)]
    fn halves(self) -> [u64; 2];

    /// Returns the number with these bits. Those beyond the type are left out.
    #[doc(hidden)]
    fn of_halves(halves: [u64; 2]) -> Self;

    /// Returns the next larger number; 0 after the largest.
    #[doc(hidden)]
    #[must_use]
    fn successor(self) -> Self;

    /// Returns the order of such numbers that begins with the largest, for kernels that load them.
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder;
}

/// Numbers that kernels load as they are.
macro_rules! loaded_as_they_are {
    ($($code:ident)*) => { $(
        impl RadixCode for $code {
            const BITS: u32 = $code::BITS;

            #[inline(always)]
            fn digits(self, shift: u32, sign: Sign) -> u32 {
                (sign.encode(self) >> shift) as u32
            }

            #[inline(always)]
            fn cut(self, bits: u32) -> Self {
                if bits < $code::BITS { self & ((1 << bits) - 1) } else { self }
            }
        }

        impl ShortCode for $code {
            type Repr = $code;

            #[inline(always)]
            fn of_repr(repr: $code) -> Self {
                repr
            }

            #[inline(always)]
            fn bits_from(self, shift: u32) -> Self {
                self >> shift
            }

            #[inline(always)]
            fn halves(self) -> [u64; 2] {
                [self as u64, 0]
            }

            #[inline(always)]
            fn of_halves(halves: [u64; 2]) -> Self {
                halves[0] as $code
            }

            #[inline(always)]
            fn successor(self) -> Self {
                self.wrapping_add(1)
            }

            #[cfg(not(target_arch = "nvptx64"))]
            fn descending() -> HoleOrder {
                HoleOrder::of::<Self, Greater>(Greater)
            }
        }
    )* };
}

loaded_as_they_are! {
    u32 u64
}

impl RadixCode for u128 {
    const BITS: u32 = 128;

    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        (sign.encode(self) >> shift) as u32
    }

    #[inline(always)]
    fn cut(self, bits: u32) -> Self {
        if bits < 128 { self & ((1 << bits) - 1) } else { self }
    }
}

impl ShortCode for u128 {
    type Repr = [u64; 2];

    #[inline(always)]
    fn of_repr(repr: [u64; 2]) -> Self {
        Self::of_halves(repr)
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> Self {
        self >> shift
    }

    #[inline(always)]
    fn halves(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }

    #[inline(always)]
    fn of_halves(halves: [u64; 2]) -> Self {
        (halves[1] as u128) << 64 | halves[0] as u128
    }

    #[inline(always)]
    fn successor(self) -> Self {
        self.wrapping_add(1)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder {
        HoleOrder::of::<Self, Greater>(Greater)
    }
}

impl RadixCode for U256 {
    const BITS: u32 = 256;

    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        let Self { high, low } = sign.encode(self);
        match shift {
            0 => low as u32,
            1..128 => (low >> shift | high << (128 - shift)) as u32,
            _ => (high >> (shift - 128)) as u32,
        }
    }

    #[inline(always)]
    fn cut(self, bits: u32) -> Self {
        Self { high: self.high.cut(bits.saturating_sub(128)), low: self.low.cut(bits) }
    }
}
