//! Keys that can be sorted by their bits.

use super::RadixCode;
use crate::code::{Sign, U256};
use crate::form::Param;
#[cfg(not(target_arch = "nvptx64"))]
use crate::hole::{Hole, OperatorBody};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::computed::{Unary, body};
#[cfg(not(target_arch = "nvptx64"))]
use crate::host::recorded::Recipe;
#[cfg(not(target_arch = "nvptx64"))]
use crate::operator::Recorded;
use crate::operator::operator;
use bytemuck::Pod;
#[cfg(not(target_arch = "nvptx64"))]
use core::any::type_name;
use core::marker::PhantomData;

/// A key that can be sorted by its bits.
///
/// Numbers sort by value. Signed numbers have the negative ones first; floats use the total order of `total_cmp` (-NaN,
/// -∞ … -0, +0 … +∞, NaN). A key type of your own has a number as its code. If it is compared field by field, derive it:
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::Record;
/// use gpu_primitives::sort::{self, RadixKey};
/// use gpu_primitives::{Device, Error};
///
/// /// Sorts by `major`, then by `minor`.
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, RadixKey)]
/// struct Version {
///     major: u32,
///     minor: u32,
/// }
///
/// let stream = Device::default()?.stream()?;
/// let [a, b] = [Version { major: 2, minor: 0 }, Version { major: 1, minor: 9 }];
/// let mut keys = stream.upload(&[a, b])?;
/// sort::keys_in_place(&stream, &mut keys, sort::Options::new())?;
/// assert_eq!(keys.to_vec(&stream)?, [b, a]);
/// # Ok::<(), Error>(())
/// ```
///
/// For another order, write the code yourself. Put [`#[operator]`](crate::operator) on the implementation: it records the
/// function for GPUs.
///
/// ```
/// # use bytemuck::{Pod, Zeroable};
/// # use gpu_primitives::operator::{Record, operator};
/// # use gpu_primitives::sort::RadixKey;
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
/// # struct Version {
/// #     major: u32,
/// #     minor: u32,
/// # }
/// #[operator]
/// impl RadixKey for Version {
///     type Code = u64;
///     fn code(key: Self) -> u64 {
///         (key.major as u64) << 32 | !key.minor as u64 // the highest `minor` first
///     }
/// }
/// ```
///
/// More bits than the code has do not compile:
///
/// ```compile_fail,E0080
/// # use bytemuck::{Pod, Zeroable};
/// # use gpu_primitives::operator::{Record, operator};
/// # use gpu_primitives::sort::{self, RadixKey};
/// # use gpu_primitives::{Device, Error};
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// # struct Version(u32);
/// #[operator]
/// impl RadixKey for Version {
///     type Code = u32;
///     const BITS: u32 = 200; // from 1 to 32
///     fn code(key: Self) -> u32 {
///         key.0
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// sort::keys_in_place(&stream, &mut stream.upload(&[Version(2)])?, sort::Options::new())?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// The code orders as the key does, and depends on the key alone. A code that does not gives some order, but never an
/// out-of-bounds access.
pub trait RadixKey: Pod {
    /// The type of the codes: `u32`, `u64`, `u128` or [`U256`].
    type Code: RadixCode;
    /// The number of bits of a code: from 1 to those of its type. Anything else does not compile. Higher bits of what
    /// [`code`](Self::code) returns are cut off.
    const BITS: u32 = Self::Code::BITS;
    /// How a number's own bits become its code.
    #[doc(hidden)]
    const NUMBER: Option<Number<Self>> = None;

    /// Returns a number that orders as the key does.
    fn code(key: Self) -> Self::Code;

    /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// How the bits of a number of type `K` become its code. Only this crate can make one, so no other type can claim to be a
/// number.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Number<K> {
    sign: Sign,
    of: PhantomData<K>,
}

impl<K> Number<K> {
    const fn new(sign: Sign) -> Self {
        Self { sign, of: PhantomData }
    }

    /// Returns how signs are interpreted.
    #[must_use]
    pub const fn sign(&self) -> Sign {
        self.sign
    }
}

/// Returns the number of bits of a key's code.
#[doc(hidden)]
#[must_use]
pub const fn bits_of<K: RadixKey>() -> u32 {
    const {
        assert!(
            K::BITS >= 1 && K::BITS <= <K::Code as RadixCode>::BITS,
            "`RadixKey::BITS` is the number of bits of a code: from 1 to those of its type"
        );
    }
    K::BITS
}

/// Returns the code of a key, which has no more than its [`BITS`](RadixKey::BITS).
#[doc(hidden)]
#[inline(always)]
pub fn code_of<K: RadixKey>(key: K) -> K::Code {
    K::code(key).cut(bits_of::<K>())
}

/// Returns how the bits of a number become its code; for other keys, those of the code.
#[doc(hidden)]
#[must_use]
pub const fn sign_of<K: RadixKey>() -> Sign {
    match K::NUMBER {
        Some(number) => number.sign,
        None => Sign::NONE,
    }
}

/// A key that its code gives back: the key of a dictionary of levels, which stores codes instead of keys.
///
/// All numbers are such keys, and so are structs that derive [`RadixKey`](derive@crate::sort::RadixKey). Where you write
/// [`RadixKey::code`] yourself, write its inverse too, with [`#[operator]`](crate::operator) on the implementation.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::sort::{self, FromCode, RadixKey};
/// use gpu_primitives::{Device, Error};
///
/// /// Sorts by tenant, then by time.
/// #[repr(C, packed(4))]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
/// struct Event {
///     time: i64,
///     tenant: u32,
/// }
///
/// #[operator]
/// impl RadixKey for Event {
///     type Code = u128;
///     const BITS: u32 = 96;
///     fn code(key: Self) -> u128 {
///         (key.tenant as u128) << 64 | (key.time as u64 ^ 1 << 63) as u128
///     }
/// }
///
/// #[operator]
/// impl FromCode for Event {
///     fn from_code(code: u128) -> Self {
///         Event { time: (code as u64 ^ 1 << 63) as i64, tenant: (code >> 64) as u32 }
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let events = [Event { time: -5, tenant: 7 }, Event { time: 9, tenant: 0 }];
/// let mut codes = stream.uninit::<u128>(2)?;
/// sort::encode(&stream, &stream.upload(&events)?, &mut codes)?;
/// let mut again = stream.uninit::<Event>(2)?;
/// sort::decode(&stream, &codes, &mut again)?;
/// assert_eq!(again.to_vec(&stream)?, events);
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// `from_code(code(key))` is `key`, byte for byte. So different keys have different codes. If this does not hold, a
/// dictionary returns other keys than were inserted, but never accesses memory out of bounds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of an ordered dictionary",
    note = "keys are numbers of 8 to 128 bits, and types of your own with a code of up to 256 bits that gives the key back",
    note = "for a type of your own, derive `Record` and `RadixKey`, or implement `RadixKey` and `FromCode` with `#[operator]`"
)]
pub trait FromCode: RadixKey {
    /// Returns the key with this code. For a number that is not a code, returns any key.
    fn from_code(code: Self::Code) -> Self;

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
    /// The type of the numbers: `u32`, `u64`, `u128` or [`U256`].
    type Code: RadixCode;

    /// Returns a number that orders as the key does.
    fn code(&self, key: K) -> Self::Code;

    /// Records the function for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

macro_rules! numbers {
    ($($key:ty as $code:ty, $bits:literal, $number:expr, $of:ident => $to_code:expr, $back:ident => $to_key:expr;)*) => { $(
        #[operator]
        impl RadixKey for $key {
            type Code = $code;
            const BITS: u32 = $bits;
            const NUMBER: Option<Number<Self>> = match $number {
                Some(sign) => Some(Number::new(sign)),
                None => None,
            };
            #[inline(always)]
            fn code($of: Self) -> $code {
                $to_code
            }
        }

        #[operator]
        impl FromCode for $key {
            #[inline(always)]
            fn from_code($back: $code) -> Self {
                $to_key
            }
        }
    )* };
}

numbers! {
    u8 as u32, 8, Some(Sign::NONE), key => key as u32, code => code as u8;
    i8 as u32, 8, Some(Sign::two_s_complement(8)), key => (key as u8) as u32 ^ 0x80, code => (code ^ 0x80) as i8;
    u16 as u32, 16, Some(Sign::NONE), key => key as u32, code => code as u16;
    i16 as u32, 16, Some(Sign::two_s_complement(16)),
        key => (key as u16) as u32 ^ 0x8000, code => (code ^ 0x8000) as i16;
    u32 as u32, 32, Some(Sign::NONE), key => key, code => code;
    i32 as u32, 32, Some(Sign::two_s_complement(32)),
        key => key as u32 ^ 0x8000_0000, code => (code ^ 0x8000_0000) as i32;
    f32 as u32, 32, Some(Sign::sign_and_magnitude(32)), key => {
        let bits = key.to_bits();
        if bits >> 31 == 0 { bits ^ 0x8000_0000 } else { !bits }
    }, code => f32::from_bits(if code >> 31 == 0 { !code } else { code ^ 0x8000_0000 });
    u64 as u64, 64, Some(Sign::NONE), key => key, code => code;
    i64 as u64, 64, Some(Sign::two_s_complement(64)),
        key => key as u64 ^ 0x8000_0000_0000_0000, code => (code ^ 0x8000_0000_0000_0000) as i64;
    f64 as u64, 64, Some(Sign::sign_and_magnitude(64)), key => {
        let bits = key.to_bits();
        if bits >> 63 == 0 { bits ^ 0x8000_0000_0000_0000 } else { !bits }
    }, code => f64::from_bits(if code >> 63 == 0 { !code } else { code ^ 0x8000_0000_0000_0000 });
    u128 as u128, 128, Some(Sign::NONE), key => key, code => code;
    U256 as U256, 256, Some(Sign::NONE), key => key, code => code;
    // The sign of 128 bits is that of their upper half.
    i128 as u128, 128, Some(Sign::two_s_complement(64)),
        key => key as u128 ^ (1u128 << 127), code => (code ^ (1u128 << 127)) as i128;
}

#[cfg(all(feature = "half", not(target_arch = "nvptx64")))]
numbers! {
    half::f16 as u32, 16, None, key => {
        let bits = key.to_bits() as u32;
        if bits >> 15 == 0 { bits ^ 0x8000 } else { bits ^ 0xFFFF }
    }, code => half::f16::from_bits((if code >> 15 == 0 { code ^ 0xFFFF } else { code ^ 0x8000 }) as u16);
    half::bf16 as u32, 16, None, key => {
        let bits = key.to_bits() as u32;
        if bits >> 15 == 0 { bits ^ 0x8000 } else { bits ^ 0xFFFF }
    }, code => half::bf16::from_bits((if code >> 15 == 0 { code ^ 0xFFFF } else { code ^ 0x8000 }) as u16);
}

/// A function from keys to their codes: a [`Hole`] whose results are a source.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoleCode(Hole);

#[cfg(not(target_arch = "nvptx64"))]
impl HoleCode {
    /// Returns the code of keys of this type.
    pub(crate) fn of_key<K: RadixKey>() -> Self {
        Self(Hole::new(CodeOf::<K>::new(), Self::key_filling::<K>()))
    }

    /// Describes what fills the hole for keys of this type.
    pub(crate) fn key_filling<K: RadixKey>() -> &'static OperatorBody {
        body::<CodeOf<K>>()
    }

    /// Returns the code that orders keys as `by` does.
    pub(crate) fn of<K: Pod, B: SortBy<K>>(by: B) -> Self {
        Self(Hole::new(by, Self::filling::<K, B>()))
    }

    /// Describes what fills the hole for an order by a number.
    pub(crate) fn filling<K: Pod, B: SortBy<K>>() -> &'static OperatorBody {
        body::<CodeBy<K, B>>()
    }

    /// Returns the function.
    pub(crate) fn hole(&self) -> &Hole {
        &self.0
    }
}

/// An order by a number as a function of one element.
#[cfg(not(target_arch = "nvptx64"))]
#[repr(transparent)]
#[derive(Clone, Copy)]
struct CodeBy<K, B>(B, PhantomData<K>);

#[cfg(not(target_arch = "nvptx64"))]
impl<K: Pod, B: SortBy<K>> Unary for CodeBy<K, B> {
    type Item = K;
    type Output = B::Code;
    const RECIPE: Recipe = Recipe::new::<B, K, B::Code>("code", B::recorded, const { &[size_of::<K>()] });

    #[inline(always)]
    fn call(&self, key: K) -> B::Code {
        self.0.code(key)
    }
}

/// The code of a key as a function of one element. It has no state.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct CodeOf<K>(PhantomData<fn(K)>);

#[cfg(not(target_arch = "nvptx64"))]
impl<K> CodeOf<K> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<K: RadixKey> Unary for CodeOf<K> {
    type Item = K;
    type Output = K::Code;
    const RECIPE: Recipe = code_recipe::<K>();

    #[inline(always)]
    fn call(&self, key: K) -> K::Code {
        code_of(key)
    }
}

/// The key of a code as a function of one element. It has no state.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub(crate) struct KeyOf<K>(PhantomData<fn() -> K>);

#[cfg(not(target_arch = "nvptx64"))]
impl<K> KeyOf<K> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<K: FromCode> Unary for KeyOf<K> {
    type Item = K::Code;
    type Output = K;
    const RECIPE: Recipe = key_recipe::<K>();

    #[inline(always)]
    fn call(&self, code: K::Code) -> K {
        K::from_code(code)
    }
}

/// Describes the code of keys. It is no function of an operator with state, even if the key is one.
#[cfg(not(target_arch = "nvptx64"))]
const fn code_recipe<K: RadixKey>() -> Recipe {
    let (recorded, arguments) = (<K as RadixKey>::recorded, const { &[size_of::<K>()] });
    let recipe = Recipe::new::<PhantomData<fn(K) -> K::Code>, K, K::Code>("code", recorded, arguments);
    let bits = bits_of::<K>();
    // A function whose bits are all of interest is left as it is.
    let cut = if bits < <K::Code as RadixCode>::BITS && K::NUMBER.is_none() { Some(bits) } else { None };
    Recipe { type_name: type_name::<K>, bits: cut, ..recipe }
}

/// Describes the inverse of the code.
#[cfg(not(target_arch = "nvptx64"))]
const fn key_recipe<K: FromCode>() -> Recipe {
    let arguments = const { &[size_of::<K::Code>()] };
    let recorded = <K as FromCode>::recorded;
    let recipe = Recipe::new::<PhantomData<fn(K::Code) -> K>, K::Code, K>("from_code", recorded, arguments);
    Recipe { type_name: type_name::<K>, ..recipe }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Record;
    use bytemuck::Zeroable;
    use std::fmt::Debug;

    /// Checks that codes give their keys back and order as the keys do, and that GPUs are given the same functions.
    fn check<K: FromCode + PartialEq + Debug>(ascending: &[K]) {
        let (code, back) = (<K as RadixKey>::recorded(), <K as FromCode>::recorded());
        let (code, back) = (code.function("code").unwrap(), back.function("from_code").unwrap());
        let mut last = None;
        for &key in ascending {
            let number = K::code(key);
            assert_eq!(K::from_code(number), key);
            assert!(last < Some(number), "{key:?} does not come after the key before it");
            last = Some(number);
            let (key, number) = (bytemuck::bytes_of(&key), bytemuck::bytes_of(&number));
            assert_eq!(code.interpret(&[key], &[]), number);
            assert_eq!(back.interpret(&[number], &[]), key);
        }
    }

    #[test]
    fn numbers_have_codes_that_give_them_back() {
        check(&[0u8, 1, u8::MAX]);
        check(&[i8::MIN, -1, 0, 1, i8::MAX]);
        check(&[0u16, 1, u16::MAX]);
        check(&[i16::MIN, -1, 0, 1, i16::MAX]);
        check(&[0u32, 1, u32::MAX]);
        check(&[i32::MIN, -1, 0, 1, i32::MAX]);
        check(&[0u64, 1, u64::MAX]);
        check(&[i64::MIN, -1, 0, 1, i64::MAX]);
        check(&[0, 1, u128::from(u64::MAX), 1 << 64, u128::MAX]);
        check(&[i128::MIN, -(1 << 64), -1, 0, 1, 1 << 64, i128::MAX]);
        let number = |high, low| U256 { high, low };
        check(&[number(0, 0), number(0, 1), number(0, u128::MAX), number(1, 0), number(u128::MAX, u128::MAX)]);
        check(&[f32::NEG_INFINITY, -1.5, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 1.5, f32::INFINITY]);
        check(&[f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY]);
        assert!(f32::code(-0.0) < f32::code(0.0) && f64::code(-0.0) < f64::code(0.0));
    }

    #[cfg(feature = "half")]
    #[test]
    fn short_floats_have_codes_that_give_them_back() {
        use half::{bf16, f16};
        check(&[f16::NEG_INFINITY, f16::NEG_ONE, f16::ZERO, f16::EPSILON, f16::ONE, f16::INFINITY]);
        check(&[bf16::NEG_INFINITY, bf16::NEG_ONE, bf16::ZERO, bf16::EPSILON, bf16::ONE, bf16::INFINITY]);
    }

    #[repr(C, packed(2))]
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, crate::sort::RadixKey)]
    struct Mixed {
        price: f32,
        name: [u8; 3],
        level: i8,
        time: i64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, crate::sort::RadixKey)]
    struct Pair(i16, u8, u8);

    /// 216 bits: the number of 128 bits lies across the halves of the code.
    #[repr(C, packed)]
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, crate::sort::RadixKey)]
    struct Wide {
        kind: u8,
        id: u128,
        time: i64,
        page: [u8; 2],
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record, crate::sort::RadixKey)]
    struct Position {
        offset: f64,
    }

    /// Derived keys are compared field by field, in the order of their declaration.
    #[test]
    fn derived_keys_have_codes_that_give_them_back() {
        let mut keys = Vec::new();
        for price in [f32::NEG_INFINITY, -2.5, 0.0, 1e-20, f32::MAX] {
            for name in [[0, 0, 0], [0, 0, 255], [0, 1, 0], [97, 0, 1], [255; 3]] {
                for level in [i8::MIN, -1, 0, i8::MAX] {
                    keys.extend([i64::MIN, -1, 0, 1 << 40].map(|time| Mixed { price, name, level, time }));
                }
            }
        }
        check(&keys);
        assert_eq!((Mixed::BITS, Pair::BITS, Position::BITS, Wide::BITS), (128, 32, 64, 216));
        check(&[Pair(-300, 9, 9), Pair(-1, 0, 255), Pair(-1, 1, 0), Pair(0, 0, 0), Pair(300, 0, 0)]);
        check(&[-1e300, -1.0, 0.0, 1e-300, 1.0].map(|offset| Position { offset }));

        let mut keys = Vec::new();
        for kind in [0, 7, 255] {
            for id in [0, 1, 1 << 40, u128::MAX / 3, u128::MAX] {
                for time in [i64::MIN, -1, 0, 1 << 33, i64::MAX] {
                    keys.extend([[0, 0], [0, 255], [9, 9]].map(|page| Wide { kind, id, time, page }));
                }
            }
        }
        check(&keys);
    }
}
