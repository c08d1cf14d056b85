//! The keys of dictionaries.

use core::fmt::{Debug, Display};
use gpu_primitives::arch::memory::Word;
use gpu_primitives::code::{Bits, Sign};
use gpu_primitives::compare::{Compare, KeyOrder, Less};
use gpu_primitives::sort::{RadixCode, RadixKey};

/// A dictionary key: a 32-bit or 64-bit number. Every value of the type is a valid key.
///
/// Two keys are equal if their bits are equal. Floats are ordered as by `total_cmp`: -0 comes before +0 and is a
/// different key. NaNs with different bits are different keys.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of a dictionary",
    note = "keys are numbers of 32 or 64 bits: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`"
)]
pub trait Key: RadixKey<Code: KeyCode> {
    /// How the key's bits become its code.
    const SIGN: Sign = match Self::NUMBER {
        Some(sign) => sign,
        None => Sign::NONE,
    };
    /// Whether keys and their codes have the same bits.
    const IS_CODE: bool = matches!(Self::SIGN, Sign::NONE);

    /// Returns the unsigned integer that orders as the key does.
    #[inline(always)]
    fn code(self) -> Self::Code {
        Self::SIGN.encode(bytemuck::cast(self))
    }

    /// Returns the key of a [`code`](Self::code).
    #[inline(always)]
    fn from_code(code: Self::Code) -> Self {
        bytemuck::cast(Self::SIGN.decode(code))
    }
}

impl Key for u32 {}
impl Key for i32 {}
impl Key for f32 {}
impl Key for u64 {}
impl Key for i64 {}
impl Key for f64 {}

/// A key as kernels see it: an unsigned integer.
pub trait KeyCode: RadixCode + RadixKey<Code = Self> + Bits + Word + Debug + Display {
    /// The type of the natural order of codes, which is [`Less`].
    type Order: Compare<Self> + KeyOrder<Self>;
    /// The natural order of codes.
    const ORDER: Self::Order;
    /// The smallest code.
    const MIN: Self;
    /// The largest code.
    const MAX: Self;
    /// Extends the code to 64 bits.
    fn to_u64(self) -> u64;
    /// Makes a code of the lower bits; drops the upper bits that do not fit.
    fn from_u64(bits: u64) -> Self;
    /// Returns `(self - first) >> shift`. `self` must be at least `first`, and `shift` less than the number of bits.
    fn bucket(self, first: Self, shift: u32) -> Self;
    /// Returns a number below 32 that depends on every bit of the code.
    fn fingerprint(self) -> u32;
}

macro_rules! codes {
    ($($code:ty, $factor:expr;)*) => { $(
        impl KeyCode for $code {
            type Order = Less;
            const ORDER: Less = Less;
            const MIN: Self = 0;
            const MAX: Self = <$code>::MAX;
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_u64(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn bucket(self, first: Self, shift: u32) -> Self {
                self.wrapping_sub(first) >> shift
            }
            #[inline(always)]
            fn fingerprint(self) -> u32 {
                (self.wrapping_mul($factor) >> (<$code>::BITS - 5)) as u32
            }
        }
    )* };
}

codes! {
    u32, 0x9e37_79b1;
    u64, 0x9e37_79b9_7f4a_7c15;
}

#[cfg(test)]
mod tests {
    use super::Key;

    fn check<K: Key + core::fmt::Debug + PartialEq>(ascending: &[K]) {
        for pair in ascending.windows(2) {
            assert!(pair[0].code() < pair[1].code(), "{pair:?}");
        }
        for &key in ascending {
            assert_eq!(K::from_code(key.code()), key);
        }
    }

    #[test]
    fn codes_order_as_keys_do() {
        check(&[0u32, 1, u32::MAX]);
        check(&[i32::MIN, -1, 0, 1, i32::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[f32::NEG_INFINITY, -1.5, -0.0, 0.0, f32::MIN_POSITIVE, 1.5, f32::INFINITY]);
        check(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY]);
        assert!((-f32::NAN).code() < f32::NEG_INFINITY.code() && f32::INFINITY.code() < f32::NAN.code());
    }
}
