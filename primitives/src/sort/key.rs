//! Conversion of keys to digits.

use super::{Buckets, Purity};
use crate::code::Sign;
use crate::compare::Compare;
use crate::form::Param;
#[cfg(not(target_arch = "nvptx64"))]
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// A key that can be sorted by its bits.
///
/// Numbers sort by value. Signed numbers have the negative ones first; floats use the total order of `total_cmp` (-NaN,
/// -∞ … -0, +0 … +∞, NaN). A key type of your own is its own [`RadixCode`]:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::sort::{RadixCode, RadixKey, Sign};
///
/// /// Sorts by `major`, then by `minor`.
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// struct Version {
///     major: u32,
///     minor: u32,
/// }
///
/// impl RadixCode for Version {
///     const BITS: u32 = 64;
///     fn digits(self, shift: u32, _: Sign) -> u32 {
///         ((u64::from(self.major) << 32 | u64::from(self.minor)) >> shift) as u32
///     }
/// }
///
/// impl RadixKey for Version {
///     type Code = Self;
/// }
/// # use gpu_primitives::{Device, Error, sort};
/// # let stream = Device::cpu().stream()?;
/// # let [a, b] = [Version { major: 2, minor: 0 }, Version { major: 1, minor: 9 }];
/// # let mut keys = stream.upload(&[a, b])?;
/// # sort::keys_in_place(&stream, &mut keys, sort::Options::new())?;
/// # assert_eq!(keys.to_vec(&stream)?, [b, a]);
/// # Ok::<(), Error>(())
/// ```
///
/// A code whose size differs from that of its key does not compile, wherever it is sorted:
///
/// ```compile_fail,E0080
/// # use bytemuck::{Pod, Zeroable};
/// # use gpu_primitives::sort::{self, RadixKey};
/// # use gpu_primitives::{Device, Error};
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Short(u32);
///
/// impl RadixKey for Short {
///     type Code = u64; // 8 bytes, but the key has 4
/// }
///
/// let stream = Device::cpu().stream()?;
/// let mut keys = stream.upload(&[Short(1), Short(2)])?;
/// sort::keys_in_place(&stream, &mut keys, sort::Options::new())?;
/// # Ok::<(), Error>(())
/// ```
pub trait RadixKey: Pod {
    /// The type that the kernels use: same size, and no stricter alignment. All numbers of the same width share one
    /// code.
    type Code: RadixCode;
    /// How to interpret the sign of the code.
    const SIGN: Sign = Sign::NONE;
}

/// Checks that keys and their codes have compatible layouts in memory.
#[cfg(not(target_arch = "nvptx64"))]
const fn assert_code_layout<K: RadixKey>() {
    assert!(size_of::<K>() == size_of::<K::Code>(), "the `Code` of a `RadixKey` has the size of the key");
    assert!(align_of::<K::Code>() <= align_of::<K>(), "the `Code` of a `RadixKey` is aligned to no more than the key");
}

/// Reinterprets keys as their codes. Does not compile if a code differs in size from its key, or has a stricter
/// alignment.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn as_codes<K: RadixKey>(keys: Global<K>) -> Global<K::Code> {
    const { assert_code_layout::<K>() };
    // SAFETY: plain data of the same size, with no stricter alignment.
    unsafe { Global::from_raw(keys.as_ptr().cast(), keys.len()) }
}

/// Reinterprets writable keys as their codes.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn as_codes_mut<K: RadixKey>(keys: GlobalMut<K>) -> GlobalMut<K::Code> {
    // SAFETY: the memory is writable, and only codes are written to it.
    unsafe { GlobalMut::from_raw(as_codes(keys.as_const()).as_ptr().cast_mut(), keys.len()) }
}

/// A key as the kernels sort it: a value with digits.
///
/// # Contract
/// Keys are ordered by their digits, the most significant digit first. Keys with equal digits are equal in order. The
/// same key always has the same digits, and [`is_below`](Self::is_below) agrees with them. An implementation that
/// breaks this contract yields some order, and may lose some items and repeat others.
pub trait RadixCode: Pod {
    /// The number of bits of the code: at most 128.
    const BITS: u32;
    /// Whether the kernels can rely on the contract of [`digits`](Self::digits).
    const PURITY: Purity = Purity::UNKNOWN;
    /// Returns the bits from `shift` on: at least the next 8. `shift` is below [`BITS`](Self::BITS); bits beyond the
    /// code are zero.
    fn digits(self, shift: u32, sign: Sign) -> u32;
    /// Returns whether this key comes before another one by these digits. The default implementation compares digit by
    /// digit.
    #[inline(always)]
    fn is_below(self, other: Self, digits: &Digits) -> bool {
        let mut pass = digits.passes;
        while pass > 0 {
            pass -= 1;
            let (own, others) = (digits.bucket(self, pass), digits.bucket(other, pass));
            if own != others {
                return own < others;
            }
        }
        false
    }
}

impl RadixCode for u32 {
    const BITS: u32 = 32;
    // SAFETY: the digits depend only on the key and the sign.
    const PURITY: Purity = unsafe { Purity::promised() };
    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        sign.encode(self) >> shift
    }

    #[inline(always)]
    fn is_below(self, other: Self, digits: &Digits) -> bool {
        let number = |key| (digits.sign.encode(key) ^ digits.flip) & digits.mask as u32;
        number(self) < number(other)
    }
}

impl RadixCode for u64 {
    const BITS: u32 = 64;
    // SAFETY: the digits depend only on the key and the sign.
    const PURITY: Purity = unsafe { Purity::promised() };
    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        (sign.encode(self) >> shift) as u32
    }

    #[inline(always)]
    fn is_below(self, other: Self, digits: &Digits) -> bool {
        let flip = (digits.flip as i32) as u64;
        let number = |key| (digits.sign.encode(key) ^ flip) & digits.mask;
        number(self) < number(other)
    }
}

macro_rules! keys {
    ($($key:ty as $code:ty, $sign:expr;)*) => { $(
        impl RadixKey for $key {
            type Code = $code;
            const SIGN: Sign = $sign;
        }
    )* };
}

keys! {
    u32 as u32, Sign::NONE;
    i32 as u32, Sign::two_s_complement(32);
    f32 as u32, Sign::sign_and_magnitude(32);
    u64 as u64, Sign::NONE;
    i64 as u64, Sign::two_s_complement(64);
    f64 as u64, Sign::sign_and_magnitude(64);
}

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

// SAFETY: `repr(C)`, plain data without padding.
unsafe impl Param for Digits {}

impl Digits {
    /// The digits of the bits `start..end`; at least one bit.
    pub(super) const fn new(sign: Sign, start: u32, end: u32, descending: bool) -> Self {
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
    pub(super) const fn passes(&self) -> u32 {
        self.passes
    }
}

impl<K: RadixCode> Compare<K> for Digits {
    #[inline(always)]
    fn less(&self, a: K, b: K) -> bool {
        a.is_below(b, self)
    }
}

impl<K: RadixCode> Buckets<K> for Digits {
    const MAX_PASSES: usize = {
        assert!(K::BITS <= 128, "a `RadixCode` has at most 128 bits");
        K::BITS.div_ceil(8) as usize
    };
    const PURITY: Purity = K::PURITY;

    #[inline(always)]
    fn bucket(&self, key: K, pass: u32) -> u32 {
        (key.digits(self.shift + 8 * pass, self.sign) ^ self.flip) & <Self as Buckets<K>>::last(self, pass)
    }

    #[inline(always)]
    fn last(&self, pass: u32) -> u32 {
        if pass + 1 == self.passes { self.last_mask } else { 0xFF }
    }
}
