//! Associative operations with an identity, for scans and reductions.

use crate::form::Param;
use bytemuck::{Pod, Zeroable};

/// An associative operation with an identity. It may carry state, which is passed to the GPU as a kernel argument.
///
/// # Contract
/// `combine(a, combine(b, c))` equals `combine(combine(a, b), c)` (for floating-point sums, up to rounding), and
/// combining with `identity()` on either side changes nothing. The operation need not be commutative. An operation that
/// breaks this contract yields some values, but never an out-of-bounds access.
pub trait Monoid<T>: Param {
    /// Returns the identity element.
    fn identity(&self) -> T;
    /// Combines `a` with `b`, in this order.
    fn combine(&self, a: T, b: T) -> T;
}

/// Addition. Integers wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Sum;

/// The maximum. For floats, NaNs are ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Max;

/// The minimum. For floats, NaNs are ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Min;

macro_rules! integer_operators {
    ($($type:ty)*) => { $(
        impl Monoid<$type> for Sum {
            #[inline(always)]
            fn identity(&self) -> $type {
                0
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.wrapping_add(b)
            }
        }
        impl Monoid<$type> for Max {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::MIN
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.max(b)
            }
        }
        impl Monoid<$type> for Min {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::MAX
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.min(b)
            }
        }
    )* };
}

macro_rules! float_operators {
    ($($type:ty)*) => { $(
        impl Monoid<$type> for Sum {
            #[inline(always)]
            fn identity(&self) -> $type {
                0.0
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a + b
            }
        }
        impl Monoid<$type> for Max {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::NEG_INFINITY
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                if b > a || a.is_nan() { b } else { a }
            }
        }
        impl Monoid<$type> for Min {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::INFINITY
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                if b < a || a.is_nan() { b } else { a }
            }
        }
    )* };
}

integer_operators!(u8 u16 u32 u64 i8 i16 i32 i64);
float_operators!(f32 f64);
