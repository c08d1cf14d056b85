//! Keys that can be sorted by their bits, and their digits.

use super::{Buckets, Purity};
use crate::code::{Bits, Sign};
use crate::compare::Compare;
#[cfg(not(target_arch = "nvptx64"))]
use crate::compare::{Greater, HoleOrder};
use crate::form::{Holes, Param};
use crate::hole::{Held, Hole};
use crate::operator::{Record, operator};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{
    hole::{Calls, Filling},
    operator::Recorded,
};
use bytemuck::{Pod, Zeroable};

/// A key that can be sorted by its bits.
///
/// Numbers sort by value. Signed numbers have the negative ones first; floats use the total order of `total_cmp` (-NaN,
/// -∞ … -0, +0 … +∞, NaN). A key type of your own has a number as its code. Put [`#[operator]`](crate::operator) on the
/// implementation: it records the function for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::sort::{self, RadixKey};
/// use gpu_primitives::{Device, Error};
///
/// /// Sorts by `major`, then by `minor`.
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
/// struct Version {
///     major: u32,
///     minor: u32,
/// }
///
/// #[operator]
/// impl RadixKey for Version {
///     type Code = u64;
///     fn code(key: Self) -> u64 {
///         (key.major as u64) << 32 | key.minor as u64
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let [a, b] = [Version { major: 2, minor: 0 }, Version { major: 1, minor: 9 }];
/// let mut keys = stream.upload(&[a, b])?;
/// sort::keys_in_place(&stream, &mut keys, sort::Options::new())?;
/// assert_eq!(keys.to_vec(&stream)?, [b, a]);
/// # Ok::<(), Error>(())
/// ```
pub trait RadixKey: Pod {
    /// The type of the codes: `u32`, `u64` or `u128`.
    type Code: RadixCode;
    /// The number of bits of a code. Higher bits are zero.
    const BITS: u32 = Self::Code::BITS;
    /// How a number's own bits become its code.
    #[doc(hidden)]
    const NUMBER: Option<Sign> = None;

    /// Returns a number that orders as the key does.
    fn code(key: Self) -> Self::Code;

    /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// An order of keys by a number computed from each. It may carry state, which is passed to the GPU as a kernel argument:
/// at most 64 bytes. Put [`#[operator]`](crate::operator) on an implementation: it records the function for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::sort::{self, Options, SortBy};
/// use gpu_primitives::{Device, Error};
///
/// /// Orders numbers by their remainder.
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// struct Modulo {
///     divisor: u32,
/// }
///
/// #[operator]
/// impl SortBy<u32> for Modulo {
///     type Code = u32;
///     fn code(&self, key: u32) -> u32 {
///         key % self.divisor
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let keys = stream.upload(&[15u32, 7, 20, 2])?;
/// let mut sorted = stream.uninit::<u32>(4)?;
/// sort::keys_by(&stream, &keys, &mut sorted, Modulo { divisor: 10 }, Options::new().bits(0..8))?;
/// assert_eq!(sorted.to_vec(&stream)?, [20, 2, 15, 7]);
/// # Ok::<(), Error>(())
/// ```
pub trait SortBy<K>: Param {
    /// The type of the numbers: `u32`, `u64` or `u128`.
    type Code: RadixCode;

    /// Returns a number that orders as the key does.
    fn code(&self, key: K) -> Self::Code;

    /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// A number that the kernels sort: `u32`, `u64` or `u128`.
pub trait RadixCode: Bits + sealed::Sealed {
    /// The number of bits.
    const BITS: u32;

    /// Returns the bits from `shift` on: at least the next 8. `shift` is below [`BITS`](Self::BITS); bits beyond the
    /// code are zero.
    #[doc(hidden)]
    fn digits(self, shift: u32, sign: Sign) -> u32;

    /// Evaluates a function whose result is such a number.
    ///
    /// # Safety
    /// The hole was made of such a function for elements that are held in an `H`.
    #[doc(hidden)]
    unsafe fn of<H: Held>(hole: &Hole, key: H) -> Self;

    /// The type in which kernels load such a number.
    #[doc(hidden)]
    type Held: Held;

    /// Returns the number that was loaded.
    #[doc(hidden)]
    fn of_held(held: Self::Held) -> Self;

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

    /// Returns the order of such numbers that begins with the largest, for kernels that load them.
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

impl RadixCode for u32 {
    const BITS: u32 = 32;

    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        sign.encode(self) >> shift
    }

    #[inline(always)]
    unsafe fn of<H: Held>(hole: &Hole, key: H) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { H::code_32(hole, key) }
    }

    type Held = u32;

    #[inline(always)]
    fn of_held(held: u32) -> Self {
        held
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> Self {
        self >> shift
    }

    #[inline(always)]
    fn halves(self) -> [u64; 2] {
        [u64::from(self), 0]
    }

    #[inline(always)]
    fn of_halves(halves: [u64; 2]) -> Self {
        halves[0] as u32
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder {
        HoleOrder::of::<Self, Greater>(Greater)
    }
}

impl RadixCode for u64 {
    const BITS: u32 = 64;

    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        (sign.encode(self) >> shift) as u32
    }

    #[inline(always)]
    unsafe fn of<H: Held>(hole: &Hole, key: H) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { H::code_64(hole, key) }
    }

    type Held = u64;

    #[inline(always)]
    fn of_held(held: u64) -> Self {
        held
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> Self {
        self >> shift
    }

    #[inline(always)]
    fn halves(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline(always)]
    fn of_halves(halves: [u64; 2]) -> Self {
        halves[0]
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder {
        HoleOrder::of::<Self, Greater>(Greater)
    }
}

impl RadixCode for u128 {
    const BITS: u32 = 128;

    #[inline(always)]
    fn digits(self, shift: u32, sign: Sign) -> u32 {
        (sign.encode(self) >> shift) as u32
    }

    #[inline(always)]
    unsafe fn of<H: Held>(hole: &Hole, key: H) -> Self {
        // SAFETY: guaranteed by the caller.
        let [lower, upper] = unsafe { H::code_128(hole, key) };
        (upper as u128) << 64 | lower as u128
    }

    type Held = [u64; 2];

    #[inline(always)]
    fn of_held(held: [u64; 2]) -> Self {
        Self::of_halves(held)
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

    #[cfg(not(target_arch = "nvptx64"))]
    fn descending() -> HoleOrder {
        HoleOrder::of::<Self, Greater>(Greater)
    }
}

macro_rules! numbers {
    ($($key:ty as $code:ty, $bits:literal, $number:expr, $of:ident => $to_code:expr;)*) => { $(
        #[operator]
        impl RadixKey for $key {
            type Code = $code;
            const BITS: u32 = $bits;
            const NUMBER: Option<Sign> = $number;
            #[inline(always)]
            fn code($of: Self) -> $code {
                $to_code
            }
        }
    )* };
}

numbers! {
    u8 as u32, 8, Some(Sign::NONE), key => key as u32;
    i8 as u32, 8, Some(Sign::two_s_complement(8)), key => (key as u8) as u32 ^ 0x80;
    u16 as u32, 16, Some(Sign::NONE), key => key as u32;
    i16 as u32, 16, Some(Sign::two_s_complement(16)), key => (key as u16) as u32 ^ 0x8000;
    u32 as u32, 32, Some(Sign::NONE), key => key;
    i32 as u32, 32, Some(Sign::two_s_complement(32)), key => key as u32 ^ 0x8000_0000;
    f32 as u32, 32, Some(Sign::sign_and_magnitude(32)), key => {
        let bits = key.to_bits();
        if bits >> 31 == 0 { bits ^ 0x8000_0000 } else { !bits }
    };
    u64 as u64, 64, Some(Sign::NONE), key => key;
    i64 as u64, 64, Some(Sign::two_s_complement(64)), key => key as u64 ^ 0x8000_0000_0000_0000;
    f64 as u64, 64, Some(Sign::sign_and_magnitude(64)), key => {
        let bits = key.to_bits();
        if bits >> 63 == 0 { bits ^ 0x8000_0000_0000_0000 } else { !bits }
    };
    u128 as u128, 128, Some(Sign::NONE), key => key;
    // The sign of 128 bits is that of their upper half.
    i128 as u128, 128, Some(Sign::two_s_complement(64)), key => key as u128 ^ (1u128 << 127);
}

#[cfg(all(feature = "half", not(target_arch = "nvptx64")))]
numbers! {
    half::f16 as u32, 16, None, key => {
        let bits = key.to_bits() as u32;
        if bits >> 15 == 0 { bits ^ 0x8000 } else { bits ^ 0xFFFF }
    };
    half::bf16 as u32, 16, None, key => {
        let bits = key.to_bits() as u32;
        if bits >> 15 == 0 { bits ^ 0x8000 } else { bits ^ 0xFFFF }
    };
}

/// A function from keys to their codes that is not known when a kernel is compiled: a [`Hole`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleCode(pub(super) Hole);

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HoleCode {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleCode {
    /// Returns the code of keys of this type.
    pub(crate) fn of_key<K: RadixKey>() -> Self {
        Self(Hole::new((), Self::key_filling::<K>()))
    }

    /// Describes what fills the hole for keys of this type.
    pub(crate) fn key_filling<K: RadixKey>() -> &'static Filling {
        /// # Safety
        /// The argument begins with a `K`, and the results have room for its code.
        unsafe fn native<K: RadixKey>(_: *const u8, calls: &Calls) {
            // SAFETY: guaranteed by the caller; a `K` is plain data.
            unsafe { calls.unary(|key: K| K::code(key)) };
        }
        const { &Filling::new::<K, K>("code", K::recorded, native::<K>) }
    }

    /// Returns the code that orders keys as `by` does.
    pub(crate) fn of<K: Pod, B: SortBy<K>>(by: B) -> Self {
        Self(Hole::new(by, Self::filling::<K, B>()))
    }

    /// Describes what fills the hole for an order by a number.
    pub(crate) fn filling<K: Pod, B: SortBy<K>>() -> &'static Filling {
        /// # Safety
        /// The state is a `B`, the argument begins with a `K`, and the results have room for its code.
        unsafe fn native<K: Pod, B: SortBy<K>>(state: *const u8, calls: &Calls) {
            // SAFETY: guaranteed by the caller; a `B` and a `K` are plain data.
            unsafe {
                let by = *state.cast::<B>();
                calls.unary(|key: K| by.code(key));
            }
        }
        const { &Filling::new::<B, K>("code", B::recorded, native::<K, B>) }
    }
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

// SAFETY: `repr(C)`, plain data without padding. It is not `Pod`: safe code must not make one of any bytes.
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

    /// The digits of bucket numbers, which are below 256.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) const fn of_buckets() -> Self {
        Self::new(Sign::NONE, 0, 8, false)
    }

    /// Returns the number of passes.
    pub(super) const fn passes(&self) -> u32 {
        self.passes
    }

    /// Returns the order of keys by these digits.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) const fn order(&self) -> ByDigits {
        ByDigits { sign: self.sign, mask: self.mask, flip: (self.flip as i32) as u64 }
    }
}

/// The order of keys by their [`Digits`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(super) struct ByDigits {
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
}
