//! The keys of dictionaries.

use crate::PlainKey;
use core::fmt::Debug;
use gpu_primitives::arch::memory::Word;
use gpu_primitives::code::{Bits, Sign};
use gpu_primitives::compare::{Compare, KeyOrder, Less};
use gpu_primitives::lowered::code_of;
use gpu_primitives::sort::{FromCode, RadixCode, U256};

/// A key of an ordered dictionary: every type whose code gives the key back, which is all that [`FromCode`] asks for.
///
/// - Numbers of 8, 16, 32, 64 and 128 bits: `u8`, `i8` to `u128`, `i128`, `f32` and `f64`; with the feature `half` of
///   gpu-primitives also its 16-bit floats. Every value of the type is a valid key. Floats are ordered as by `total_cmp`:
///   -0 comes before +0 and is a different key. NaNs with different bits are different keys.
/// - Types of your own with a code of up to 256 bits. Derive [`RadixKey`](derive@gpu_primitives::sort::RadixKey), or
///   implement [`RadixKey`](gpu_primitives::sort::RadixKey) and [`FromCode`]: the same code serves the sort and the
///   dictionaries.
///
/// Dictionaries store the codes. 32-, 64- and 128-bit numbers are converted while kernels read and write them. For other
/// keys, every call runs one more small kernel for the keys that it takes, and one for those that it returns.
///
/// A type without a code does not compile:
///
/// ```compile_fail,E0277
/// fn takes_keys<K: gpu_dictionary::Key>() {}
/// takes_keys::<[u64; 5]>();
/// ```
pub trait Key: FromCode<Code: KeyCode> {
    /// Whether kernels take keys as they are: as unsigned integers with the same bits.
    const IS_PLAIN: bool = Self::NUMBER.is_some() && size_of::<Self>() == size_of::<Self::Code>();
    /// How kernels convert what they take to codes. Keys that are not [plain](Self::IS_PLAIN) come as codes.
    const SIGN: Sign = match Self::NUMBER {
        Some(number) if Self::IS_PLAIN => number.sign(),
        _ => Sign::NONE,
    };
    /// Whether keys and their codes have the same bits.
    const IS_CODE: bool = Self::IS_PLAIN && matches!(Self::SIGN, Sign::NONE);

    /// Returns the unsigned integer that orders as the key does.
    #[inline(always)]
    fn code(self) -> Self::Code {
        code_of(self)
    }
}

impl<K: FromCode<Code: KeyCode>> Key for K {}

/// A key that is a number of 32 or 64 bits: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`. Hash tables take no others, because
/// threads compare and replace a key in one atomic access.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of 32 or 64 bits",
    note = "the keys of a hash table are `u32`, `i32`, `f32`, `u64`, `i64`, `f64`",
    note = "ordered dictionaries, such as `GpuLsm` and `GpuSortedArray`, take other keys too"
)]
pub trait WordKey: Key<Code: WordCode> + PlainKey + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word_keys {
    ($($key:ty),*) => { $(
        impl sealed::Sealed for $key {}
        impl WordKey for $key {}
    )* };
}

word_keys!(u32, i32, f32, u64, i64, f64);

/// A key as kernels see it: an unsigned integer.
pub trait KeyCode: RadixCode + FromCode<Code = Self> + Bits + Debug {
    /// The type of the natural order of codes, which is [`Less`].
    type Order: Compare<Self> + KeyOrder<Self>;
    /// The natural order of codes.
    const ORDER: Self::Order;
    /// The smallest code.
    const MIN: Self;
    /// The largest code.
    const MAX: Self;
    /// Returns the lower 128 bits: the lower 64, and those above.
    fn to_words(self) -> [u64; 2];
    /// Makes a code of its lower 128 bits. Drops the bits that do not fit; higher bits are 0.
    fn from_words(words: [u64; 2]) -> Self;
    /// Returns the number of bits that `self - first` takes. `self` must be at least `first`.
    fn distance_bits(self, first: Self) -> u32;
    /// Returns `(self - first) >> shift`, or the largest number if that takes more than 64 bits. `self` must be at least
    /// `first`, and `shift` less than the number of bits.
    fn bucket(self, first: Self, shift: u32) -> u64;
    /// Returns a number below 32 that depends on every bit of the code.
    fn fingerprint(self) -> u32;
}

/// The code of a [`WordKey`]: an unsigned integer that threads access atomically.
pub trait WordCode: KeyCode + Word {
    /// Extends the code to 64 bits.
    fn to_u64(self) -> u64;
    /// Makes a code of the lower bits; drops the upper bits that do not fit.
    fn from_u64(bits: u64) -> Self;
}

/// An odd number near 2^64 divided by the golden ratio: the upper bits of a product with it depend on all bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

macro_rules! word_codes {
    ($($code:ty, $factor:expr;)*) => { $(
        impl KeyCode for $code {
            type Order = Less;
            const ORDER: Less = Less;
            const MIN: Self = 0;
            const MAX: Self = <$code>::MAX;
            #[inline(always)]
            fn to_words(self) -> [u64; 2] {
                [self as u64, 0]
            }
            #[inline(always)]
            fn from_words(words: [u64; 2]) -> Self {
                words[0] as Self
            }
            #[inline(always)]
            fn distance_bits(self, first: Self) -> u32 {
                <$code>::BITS - self.wrapping_sub(first).leading_zeros()
            }
            #[inline(always)]
            fn bucket(self, first: Self, shift: u32) -> u64 {
                (self.wrapping_sub(first) >> shift) as u64
            }
            #[inline(always)]
            fn fingerprint(self) -> u32 {
                (self.wrapping_mul($factor) >> (<$code>::BITS - 5)) as u32
            }
        }

        impl WordCode for $code {
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_u64(bits: u64) -> Self {
                bits as Self
            }
        }
    )* };
}

word_codes! {
    u32, 0x9e37_79b1;
    u64, FACTOR;
}

impl KeyCode for u128 {
    type Order = Less;
    const ORDER: Less = Less;
    const MIN: Self = 0;
    const MAX: Self = u128::MAX;
    #[inline(always)]
    fn to_words(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }
    #[inline(always)]
    fn from_words(words: [u64; 2]) -> Self {
        (words[1] as u128) << 64 | words[0] as u128
    }
    #[inline(always)]
    fn distance_bits(self, first: Self) -> u32 {
        u128::BITS - self.wrapping_sub(first).leading_zeros()
    }
    #[inline(always)]
    fn bucket(self, first: Self, shift: u32) -> u64 {
        let [bucket, beyond] = (self.wrapping_sub(first) >> shift).to_words();
        if beyond == 0 { bucket } else { u64::MAX }
    }
    #[inline(always)]
    fn fingerprint(self) -> u32 {
        // Each half spreads over the upper bits before the halves are mixed.
        let [low, high] = self.to_words();
        ((low.wrapping_mul(FACTOR) ^ high).wrapping_mul(FACTOR) >> (u64::BITS - 5)) as u32
    }
}

impl KeyCode for U256 {
    type Order = Less;
    const ORDER: Less = Less;
    const MIN: Self = U256 { high: 0, low: 0 };
    const MAX: Self = U256 { high: u128::MAX, low: u128::MAX };
    #[inline(always)]
    fn to_words(self) -> [u64; 2] {
        self.low.to_words()
    }
    #[inline(always)]
    fn from_words(words: [u64; 2]) -> Self {
        Self { high: 0, low: u128::from_words(words) }
    }
    #[inline(always)]
    fn distance_bits(self, first: Self) -> u32 {
        let U256 { high, low } = distance(self, first);
        if high != 0 { 2 * u128::BITS - high.leading_zeros() } else { u128::BITS - low.leading_zeros() }
    }
    #[inline(always)]
    fn bucket(self, first: Self, shift: u32) -> u64 {
        let U256 { high, low } = distance(self, first);
        let (high, low) = match shift {
            0 => (high, low),
            1..128 => (high >> shift, low >> shift | high << (128 - shift)),
            _ => (0, high >> (shift - 128)),
        };
        let [bucket, beyond] = low.to_words();
        if high == 0 && beyond == 0 { bucket } else { u64::MAX }
    }
    #[inline(always)]
    fn fingerprint(self) -> u32 {
        let [low, high] = self.high.to_words();
        let mixed = (low.wrapping_mul(FACTOR) ^ high).wrapping_mul(FACTOR);
        (self.low ^ (mixed as u128) << 64).fingerprint()
    }
}

/// Returns `code - first`.
#[inline(always)]
fn distance(code: U256, first: U256) -> U256 {
    let borrow = (code.low < first.low) as u128;
    U256 { high: code.high.wrapping_sub(first.high).wrapping_sub(borrow), low: code.low.wrapping_sub(first.low) }
}

#[cfg(test)]
mod tests {
    use super::{Key, KeyCode, U256};
    use core::fmt::Debug;

    fn check<K: Key + Debug + PartialEq>(ascending: &[K]) {
        for pair in ascending.windows(2) {
            assert!(pair[0].code() < pair[1].code(), "{pair:?}");
        }
        for &key in ascending {
            assert_eq!(K::from_code(key.code()), key);
            if K::IS_PLAIN {
                assert_eq!(bytemuck::cast::<K, K::Code>(key), K::SIGN.decode(key.code()), "{key:?}");
            }
        }
    }

    #[test]
    fn codes_order_as_keys_do() {
        check(&[0u8, 1, u8::MAX]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[0u16, 1, u16::MAX]);
        check(&[i16::MIN, -1, 0, 1, i16::MAX]);
        check(&[0u32, 1, u32::MAX]);
        check(&[i32::MIN, -1, 0, 1, i32::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[0, 1, u128::from(u64::MAX), 1 << 64, u128::MAX]);
        check(&[i128::MIN, -(1 << 64), -1, 0, 1, 1 << 64, i128::MAX]);
        check(&[(0, 0), (0, 1), (0, u128::MAX), (1, 0), (u128::MAX, 0)].map(|(high, low)| U256 { high, low }));
        check(&[f32::NEG_INFINITY, -1.5, -0.0, 0.0, f32::MIN_POSITIVE, 1.5, f32::INFINITY]);
        check(&[f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY]);
        assert!((-f32::NAN).code() < f32::NEG_INFINITY.code() && f32::INFINITY.code() < f32::NAN.code());
    }

    #[test]
    fn buckets_of_far_keys_are_the_last() {
        assert_eq!(u128::MAX.bucket(0, 64), u64::MAX);
        assert_eq!((1u128 << 100).bucket(0, 36), u64::MAX, "2^64 does not fit");
        assert_eq!(((1u128 << 100) - 1).bucket(0, 36), u64::MAX);
        assert_eq!((7u128 << 100).bucket(5u128 << 100, 100), 2);
        assert_eq!((7u128 << 100).distance_bits(5u128 << 100), 102);
        assert_eq!(u32::MAX.bucket(1, 0), u64::from(u32::MAX) - 1);
        // The same distances, at any place of 256 bits.
        for shift in [0, 1, 64, 127, 128, 129, 192, 245] {
            let place = |number: u128| U256 {
                high: if shift < 128 { number.checked_shr(128 - shift).unwrap_or(0) } else { number << (shift - 128) },
                low: number.checked_shl(shift).unwrap_or(0),
            };
            let [first, last] = [5, 1029].map(place);
            assert_eq!(last.bucket(first, shift), 1024, "{shift}");
            assert_eq!(last.bucket(first, shift + 3), 128, "{shift}");
            assert_eq!(last.distance_bits(first), shift + 11, "{shift}");
            assert_eq!(U256::MAX.bucket(first, 191), u64::MAX, "{shift}");
        }
        let [first, last] = [(6, u128::MAX), (7, 0)].map(|(high, low)| U256 { high, low });
        assert_eq!((last.bucket(first, 0), last.distance_bits(first)), (1, 1), "the lower half borrows");
    }

    /// Keys that differ in a few bits only, wherever these are, have different fingerprints about as often as random ones.
    #[test]
    fn fingerprints_depend_on_all_bits() {
        for shift in 0..=120 {
            let seen = (0..256u128).fold(0u32, |seen, key| seen | 1 << (key << shift).fingerprint());
            assert!(seen.count_ones() >= 24, "bits {shift} on: {seen:032b}");
            let upper = |key: u128| U256 { high: key << shift, low: 7 };
            let seen = (0..256).fold(0u32, |seen, key| seen | 1 << upper(key).fingerprint());
            assert!(seen.count_ones() >= 24, "bits {} on: {seen:032b}", shift + 128);
        }
    }
}
