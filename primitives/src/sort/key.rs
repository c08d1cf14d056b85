//! How keys become digits.

use super::{Buckets, Purity};
use crate::compare::Compare;
use crate::dictionary::KeyCode;
use crate::kernel::Param;
#[cfg(not(target_arch = "nvptx64"))]
use crate::view::{Global, GlobalMut};
use bytemuck::{Pod, Zeroable};

/// A key that sorts by its bits.
///
/// Numbers sort as numbers: signed ones with the negative ones first, floats in the total order of `total_cmp` (-NaN, -∞ …
/// -0, +0 … +∞, NaN). A key of your own is its own [`RadixCode`]:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::sort::{RadixCode, RadixKey, Sign};
///
/// /// Ordered by `major`, then by `minor`.
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
/// A code of another size than its key does not compile, wherever it is sorted:
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
///     type Code = u64; // has 8 bytes, and the key has 4
/// }
///
/// let stream = Device::cpu().stream()?;
/// let mut keys = stream.upload(&[Short(1), Short(2)])?;
/// sort::keys_in_place(&stream, &mut keys, sort::Options::new())?;
/// # Ok::<(), Error>(())
/// ```
pub trait RadixKey: Pod {
    /// The type that the kernels see: of the same size, and aligned to no more. All numbers of a width share one.
    type Code: RadixCode;
    /// How the code's sign is to be read.
    const SIGN: Sign = Sign::NONE;
}

/// Keys and their codes can stand for each other in memory.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const fn assert_code_layout<K: RadixKey>() {
    assert!(size_of::<K>() == size_of::<K::Code>(), "the `Code` of a `RadixKey` has the size of the key");
    assert!(align_of::<K::Code>() <= align_of::<K>(), "the `Code` of a `RadixKey` is aligned to no more than the key");
}

/// The same memory as the keys' codes. Does not compile if a code has another size than its key, or a stricter alignment.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn as_codes<K: RadixKey>(keys: Global<K>) -> Global<K::Code> {
    const { assert_code_layout::<K>() };
    // SAFETY: plain data of the same size, aligned to no more.
    unsafe { Global::from_raw(keys.as_ptr().cast(), keys.len()) }
}

/// The same for memory that is written.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn as_codes_mut<K: RadixKey>(keys: GlobalMut<K>) -> GlobalMut<K::Code> {
    // SAFETY: it may be written, and what is written are codes.
    unsafe { GlobalMut::from_raw(as_codes(keys.as_const()).as_ptr().cast_mut(), keys.len()) }
}

/// What the kernels sort: something with digits.
///
/// # Contract
/// Keys are ordered by their digits, the most significant first; keys that are equal in all digits are equal in order. The same
/// key has the same digits whenever they are asked for, and [`is_below`](Self::is_below) agrees with them. An implementation that
/// breaks this gives some order, and may lose items and repeat others.
pub trait RadixCode: Pod {
    /// Bits of the code: at most 128.
    const BITS: u32;
    /// Whether the contract of [`digits`](Self::digits) can be relied on.
    const PURITY: Purity = Purity::UNKNOWN;
    /// The bits from `shift` on, at least the next 8 of them. `shift` is below [`BITS`](Self::BITS); bits beyond are zero.
    fn digits(self, shift: u32, sign: Sign) -> u32;
    /// Whether it is ordered before another key by these digits. What is provided compares them one by one.
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

/// How signs are read: masks that make the bits of a number order as an unsigned number does. An argument of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Sign {
    /// Bits that flip in every number.
    always: u64,
    /// Bits that flip in addition where the uppermost bit is set.
    negative: u64,
}

impl Sign {
    /// Unsigned.
    pub const NONE: Self = Self { always: 0, negative: 0 };

    /// The code that orders as the key does: see [`Key`](crate::dictionary::Key).
    #[inline(always)]
    pub(crate) fn encode<C: KeyCode>(self, key: C) -> C {
        key.flip_if_negative(self.negative).flip(self.always)
    }

    /// The key of a [code](Self::encode).
    #[inline(always)]
    pub(crate) fn decode<C: KeyCode>(self, code: C) -> C {
        code.flip(self.always).flip_if_negative(self.negative)
    }

    const fn two_s_complement(bits: u32) -> Self {
        Self { always: 1 << (bits - 1), negative: 0 }
    }

    const fn sign_and_magnitude(bits: u32) -> Self {
        Self { always: 1 << (bits - 1), negative: u64::MAX >> (65 - bits) }
    }
}

impl RadixCode for u32 {
    const BITS: u32 = 32;
    // SAFETY: the digits follow from the key and the sign.
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
    // SAFETY: the digits follow from the key and the sign.
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

/// The digits of all passes: an argument of the kernels. Only this crate makes it: kernels rely on the masks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    sign: Sign,
    /// The bits that count, of those up to the 64th.
    mask: u64,
    /// The lowest bit that counts.
    shift: u32,
    passes: u32,
    /// The bits of the last pass's digit; the others have 8.
    last_mask: u32,
    /// All ones to sort downwards.
    flip: u32,
}

// SAFETY: `repr(C)`, plain data without padding.
unsafe impl Param for Digits {}

impl Digits {
    /// The digits of the bits `start..end`, at least one.
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

    /// How many there are.
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
