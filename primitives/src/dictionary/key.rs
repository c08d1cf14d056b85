//! The keys of dictionaries.

use crate::arch::memory::Word;
use crate::compare::{Compare, Less};
use crate::sort::{RadixCode, RadixKey};

/// A dictionary key: a 32-bit or 64-bit number. Every value of the type is a valid key.
///
/// Two keys are equal if their bits are equal. Floats are ordered as by `total_cmp`: -0 comes before +0 and is a
/// different key. NaNs with different bits are different keys.
pub trait Key: RadixKey<Code: KeyCode> {
    /// Returns the unsigned integer that orders as the key does.
    fn code(self) -> Self::Code;
    /// Returns the key of a [`code`](Self::code).
    fn from_code(code: Self::Code) -> Self;
    /// Whether keys and their codes have the same bits.
    const IS_CODE: bool;
}

/// A key as kernels see it: an unsigned integer.
pub trait KeyCode: RadixCode + RadixKey<Code = Self> + Word + core::fmt::Debug + core::fmt::Display {
    /// The type of the natural order of codes, which is [`Less`].
    type Order: Compare<Self>;
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
    /// Returns the code with the given bits flipped.
    fn flip(self, bits: u64) -> Self;
    /// Returns the code with the given bits flipped if its uppermost bit is set.
    fn flip_if_negative(self, bits: u64) -> Self;
}

macro_rules! codes {
    ($($code:ty, $signed:ty, $factor:expr;)*) => { $(
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
            #[inline(always)]
            fn flip(self, bits: u64) -> Self {
                self ^ bits as Self
            }
            #[inline(always)]
            fn flip_if_negative(self, bits: u64) -> Self {
                self ^ (((self as $signed) >> (<$code>::BITS - 1)) as Self & bits as Self)
            }
        }
    )* };
}

codes! {
    u32, i32, 0x9e37_79b1;
    u64, i64, 0x9e37_79b9_7f4a_7c15;
}

macro_rules! keys {
    ($($key:ty: $code:ty, $is_code:expr, |$a:ident| $to:expr, |$b:ident| $from:expr;)*) => { $(
        impl Key for $key {
            const IS_CODE: bool = $is_code;
            #[inline(always)]
            fn code(self) -> $code {
                let $a = self;
                $to
            }
            #[inline(always)]
            fn from_code($b: $code) -> Self {
                $from
            }
        }
    )* };
}

/// The sign bits.
const SIGN_32: u32 = 1 << 31;
const SIGN_64: u64 = 1 << 63;

keys! {
    u32: u32, true, |key| key, |code| code;
    u64: u64, true, |key| key, |code| code;
    i32: u32, false, |key| key as u32 ^ SIGN_32, |code| (code ^ SIGN_32) as i32;
    i64: u64, false, |key| key as u64 ^ SIGN_64, |code| (code ^ SIGN_64) as i64;
    f32: u32, false,
        |key| key.to_bits() ^ if key.is_sign_negative() { u32::MAX } else { SIGN_32 },
        |code| f32::from_bits(code ^ if code & SIGN_32 == 0 { u32::MAX } else { SIGN_32 });
    f64: u64, false,
        |key| key.to_bits() ^ if key.is_sign_negative() { u64::MAX } else { SIGN_64 },
        |code| f64::from_bits(code ^ if code & SIGN_64 == 0 { u64::MAX } else { SIGN_64 });
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
