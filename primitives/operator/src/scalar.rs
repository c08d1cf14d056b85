//! The Rust types behind each [`Kind`].

use crate::Kind;
use crate::record::Record;
use crate::total::{Arithmetic, Bitwise, Shift};
use crate::value::Value;

/// A type of one number, or `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of an operator",
    note = "an operator's numbers are bool, u8 to u128, i8 to i128, f32 and f64",
    note = "a `usize` is for loop counters and indices: write `i as u32` to compute with it"
)]
pub trait Scalar: Record<Value = Value<Self>> + Copy + PartialOrd + sealed::Sealed {
    /// The type's kind.
    const KIND: Kind;
    /// Returns the number's bits, zero-extended.
    #[doc(hidden)]
    fn encode(self) -> u128;
    /// Returns the number with these bits.
    #[doc(hidden)]
    fn decode(bits: u128) -> Self;
}

/// An integer.
pub trait Integer: Scalar + Arithmetic + Bitwise + Shift {
    /// The unsigned type of this width.
    type Unsigned: Integer;
    /// The smallest number.
    const MIN: Self;
    /// The largest number.
    const MAX: Self;
}

/// A signed integer.
pub trait SignedInteger: Integer {}

/// An unsigned integer.
pub trait UnsignedInteger: Integer {}

/// A float.
pub trait Float: Scalar + Arithmetic {
    /// The unsigned integer of this width, which holds the float's bits.
    type Bits: Integer;
    /// The signed integer of this width.
    type Signed: SignedInteger;
    /// The bits of infinity.
    const INFINITY_BITS: Self::Bits;
    /// The bits of `NAN`.
    const NAN_BITS: Self::Bits;
    /// The bits of one.
    const ONE_BITS: Self::Bits;
    /// The bits of -0.
    const SIGN_BIT: Self::Bits;
    /// Every bit but the sign.
    const MAGNITUDE: Self::Bits;
}

/// `f32` or `f64`: floats with the operations that a 16-bit float does not have.
pub trait FullFloat: Float {}

/// A scalar that `as` turns into `To`.
#[diagnostic::on_unimplemented(
    message = "an operator cannot cast `{Self}` to `{To}`",
    note = "between 128-bit integers and floats, cast through a 64-bit integer"
)]
pub trait CastTo<To: Scalar>: Scalar {}

mod sealed {
    /// Kept to this crate: the graph knows a fixed set of scalars.
    pub trait Sealed {}
}

macro_rules! integers {
    ($($type:ident, $kind:ident, $unsigned:ident, $sign:ident;)*) => { $(
        impl sealed::Sealed for $type {}
        impl Scalar for $type {
            const KIND: Kind = Kind::$kind;
            fn encode(self) -> u128 {
                u128::from(self as $unsigned)
            }
            fn decode(bits: u128) -> Self {
                bits as Self
            }
        }
        impl Integer for $type {
            type Unsigned = $unsigned;
            const MIN: Self = <$type>::MIN;
            const MAX: Self = <$type>::MAX;
        }
        impl $sign for $type {}
    )* };
}

integers! {
    u8, U8, u8, UnsignedInteger;
    u16, U16, u16, UnsignedInteger;
    u32, U32, u32, UnsignedInteger;
    u64, U64, u64, UnsignedInteger;
    u128, U128, u128, UnsignedInteger;
    i8, I8, u8, SignedInteger;
    i16, I16, u16, SignedInteger;
    i32, I32, u32, SignedInteger;
    i64, I64, u64, SignedInteger;
    i128, I128, u128, SignedInteger;
}

macro_rules! floats {
    ($($type:ty, $kind:ident, $bits:ty, $signed:ty, $infinity:expr, $nan:expr, $one:expr;)*) => { $(
        impl sealed::Sealed for $type {}
        impl Scalar for $type {
            const KIND: Kind = Kind::$kind;
            fn encode(self) -> u128 {
                u128::from(self.to_bits())
            }
            fn decode(bits: u128) -> Self {
                Self::from_bits(bits as $bits)
            }
        }
        impl Float for $type {
            type Bits = $bits;
            type Signed = $signed;
            const INFINITY_BITS: $bits = $infinity.to_bits();
            const NAN_BITS: $bits = $nan.to_bits();
            const ONE_BITS: $bits = $one.to_bits();
            const SIGN_BIT: $bits = 1 << (<$bits>::BITS - 1);
            const MAGNITUDE: $bits = <$bits>::MAX >> 1;
        }
    )* };
}

floats! {
    f32, F32, u32, i32, f32::INFINITY, f32::NAN, 1.0f32;
    f64, F64, u64, i64, f64::INFINITY, f64::NAN, 1.0f64;
}
#[cfg(feature = "half")]
floats! {
    half::f16, F16, u16, i16, half::f16::INFINITY, half::f16::NAN, half::f16::ONE;
    half::bf16, Bf16, u16, i16, half::bf16::INFINITY, half::bf16::NAN, half::bf16::ONE;
}

impl FullFloat for f32 {}
impl FullFloat for f64 {}

impl sealed::Sealed for bool {}
impl Scalar for bool {
    const KIND: Kind = Kind::Bool;
    fn encode(self) -> u128 {
        u128::from(self)
    }
    fn decode(bits: u128) -> Self {
        bits & 1 != 0
    }
}

macro_rules! casts {
    ($($from:ty => $($to:ty)*;)*) => { $($(impl CastTo<$to> for $from {})*)* };
}

casts! {
    bool => bool u8 u16 u32 u64 u128 i8 i16 i32 i64 i128;
    u8 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    u16 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    u32 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    u64 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    u128 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128;
    i8 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    i16 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    i32 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    i64 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64;
    i128 => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128;
    f32 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
    f64 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
}
