//! What a scan combines with.

use crate::kernel::Param;
use bytemuck::{Pod, Zeroable};

/// An associative operation with an identity. It may carry state, which travels to the GPU as a kernel argument.
///
/// # Contract
/// `combine(a, combine(b, c))` equals `combine(combine(a, b), c)` (for floating-point sums: up to rounding), and
/// `identity()` changes nothing on either side. It need not be commutative. An operation that breaks this gives some
/// values, never an access out of bounds.
pub trait Monoid<T>: Param {
    /// The value that changes nothing.
    fn identity(&self) -> T;
    /// `a` and then `b`.
    fn combine(&self, a: T, b: T) -> T;
}

/// Addition; wrapping for integers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Sum;

/// The larger one. For floats, a NaN is passed over.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Max;

/// The smaller one. For floats, a NaN is passed over.
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
