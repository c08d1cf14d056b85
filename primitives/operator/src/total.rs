//! The arithmetic of operators, as the CPU runs it.
//!
//! `#[operator]` rewrites the arithmetic of a function to calls of these functions, so that no input panics and the
//! CPU gives what a GPU gives. The crate's documentation lists the rules.

/// Numbers that add, subtract and multiply. Integers wrap; floats round to nearest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic in an operator",
    note = "compute with its fields, or call an `#[operator]` function that does"
)]
pub trait Arithmetic: Copy {
    /// Returns `self + other`.
    fn add(self, other: Self) -> Self;
    /// Returns `self - other`.
    fn sub(self, other: Self) -> Self;
    /// Returns `self * other`.
    fn mul(self, other: Self) -> Self;
}

/// Numbers that divide. An integer divided by 0 is 0.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no division in an operator",
    note = "128-bit integers and structs cannot be divided"
)]
pub trait Divide: Copy {
    /// Returns `self / other`.
    fn div(self, other: Self) -> Self;
}

/// Integers with a remainder. The remainder of a division by 0 is the dividend.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no remainder in an operator",
    note = "integers of up to 64 bits have one"
)]
pub trait Remainder: Copy {
    /// Returns `self % other`.
    fn rem(self, other: Self) -> Self;
}

/// Numbers with a sign. The smallest integer is its own negation.
#[diagnostic::on_unimplemented(message = "`{Self}` has no unary `-` in an operator")]
pub trait Negate: Copy {
    /// Returns `-self`.
    fn neg(self) -> Self;
}

/// Types with `&`, `|`, `^` and `!`.
#[diagnostic::on_unimplemented(message = "`{Self}` has no bit operations in an operator")]
pub trait Bitwise: Copy {}

/// Integers that can be shifted. The amount is taken modulo the width.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be shifted in an operator")]
pub trait Shift: Copy {
    /// Returns `self << amount`.
    fn shl(self, amount: u32) -> Self;
    /// Returns `self >> amount`.
    fn shr(self, amount: u32) -> Self;
}

/// Integers that a shift can shift by.
#[diagnostic::on_unimplemented(message = "an operator cannot shift by `{Self}`")]
pub trait Amount: Copy {
    /// Returns the lowest 32 bits.
    fn amount(self) -> u32;
}

/// Numbers with a minimum and a maximum.
#[diagnostic::on_unimplemented(message = "`{Self}` has no `min` and `max` in an operator")]
pub trait Extreme: Copy + PartialOrd {
    /// Returns the smaller number.
    fn min(self, other: Self) -> Self;
    /// Returns the larger number.
    fn max(self, other: Self) -> Self;
}

/// Numbers with an absolute value. That of the smallest integer is itself.
#[diagnostic::on_unimplemented(message = "`{Self}` has no `abs` in an operator")]
pub trait Absolute: Copy {
    /// Returns the absolute value.
    fn abs(self) -> Self;
}

/// Returns `a + b`; integers wrap.
#[inline(always)]
pub fn add<T: Arithmetic>(a: T, b: T) -> T {
    a.add(b)
}

/// Returns `a - b`; integers wrap.
#[inline(always)]
pub fn sub<T: Arithmetic>(a: T, b: T) -> T {
    a.sub(b)
}

/// Returns `a * b`; integers wrap.
#[inline(always)]
pub fn mul<T: Arithmetic>(a: T, b: T) -> T {
    a.mul(b)
}

/// Returns `a / b`; 0 for integers if `b` is 0.
#[inline(always)]
pub fn div<T: Divide>(a: T, b: T) -> T {
    a.div(b)
}

/// Returns `a % b`; `a` if `b` is 0.
#[inline(always)]
pub fn rem<T: Remainder>(a: T, b: T) -> T {
    a.rem(b)
}

/// Returns `-a`; integers wrap.
#[inline(always)]
pub fn neg<T: Negate>(a: T) -> T {
    a.neg()
}

/// Returns `a << amount`, the amount modulo the width.
#[inline(always)]
pub fn shl<T: Shift, A: Amount>(a: T, amount: A) -> T {
    a.shl(amount.amount())
}

/// Returns `a >> amount`, the amount modulo the width.
#[inline(always)]
pub fn shr<T: Shift, A: Amount>(a: T, amount: A) -> T {
    a.shr(amount.amount())
}

/// Returns the smaller number. A NaN is ignored, and -0 is smaller than +0.
#[inline(always)]
pub fn min<T: Extreme>(a: T, b: T) -> T {
    a.min(b)
}

/// Returns the larger number. A NaN is ignored, and +0 is larger than -0.
#[inline(always)]
pub fn max<T: Extreme>(a: T, b: T) -> T {
    a.max(b)
}

/// Returns `low` if `a` is smaller, then `high` if that is larger. A NaN stays a NaN.
#[inline(always)]
pub fn clamp<T: Extreme>(a: T, low: T, high: T) -> T {
    let raised = if a < low { low } else { a };
    if raised > high { high } else { raised }
}

/// Returns the absolute value; the smallest integer stays as it is.
#[inline(always)]
pub fn abs<T: Absolute>(a: T) -> T {
    a.abs()
}

macro_rules! integers {
    ($($type:ident)*) => { $(
        impl Arithmetic for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
        impl Bitwise for $type {}
        impl Shift for $type {
            #[inline(always)]
            fn shl(self, amount: u32) -> Self {
                self.wrapping_shl(amount)
            }
            #[inline(always)]
            fn shr(self, amount: u32) -> Self {
                self.wrapping_shr(amount)
            }
        }
        impl Amount for $type {
            #[inline(always)]
            fn amount(self) -> u32 {
                self as u32
            }
        }
        impl Extreme for $type {
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }
    )* };
}

macro_rules! divisions {
    ($($type:ident)*) => { $(
        impl Divide for $type {
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
        }
        impl Remainder for $type {
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
        }
    )* };
}

macro_rules! signed {
    ($($type:ident)*) => { $(
        impl Negate for $type {
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
        }
        impl Absolute for $type {
            #[inline(always)]
            fn abs(self) -> Self {
                self.wrapping_abs()
            }
        }
    )* };
}

macro_rules! float {
    ($($type:ty)*) => { $(
        impl Arithmetic for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
        }
        impl Divide for $type {
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
        }
        impl Negate for $type {
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
        }
        impl Extreme for $type {
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                if self < other || other.is_nan() || (self == other && self.is_sign_negative()) { self } else { other }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other || other.is_nan() || (self == other && other.is_sign_negative()) { self } else { other }
            }
        }
    )* };
}

integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
divisions!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
signed!(i8 i16 i32 i64 i128 isize);
float!(f32 f64);
#[cfg(feature = "half")]
float!(half::f16 half::bf16);

impl Bitwise for bool {}

impl Absolute for f32 {
    #[inline(always)]
    fn abs(self) -> Self {
        f32::abs(self)
    }
}

impl Absolute for f64 {
    #[inline(always)]
    fn abs(self) -> Self {
        f64::abs(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{abs, add, clamp, div, max, min, mul, neg, rem, shl, shr, sub};

    #[test]
    fn integers_wrap() {
        assert_eq!((add(250u8, 10), sub(1u8, 2), mul(i32::MIN, -1), neg(i64::MIN)), (4, 255, i32::MIN, i64::MIN));
        assert_eq!((abs(i8::MIN), abs(-5i8), abs(i128::MIN)), (i8::MIN, 5, i128::MIN));
    }

    #[test]
    fn division_by_zero_has_a_result() {
        assert_eq!((div(7u32, 0), rem(7u32, 0), div(-7i64, 0), rem(-7i64, 0)), (0, 7, 0, -7));
        assert_eq!((div(i16::MIN, -1), rem(i16::MIN, -1)), (i16::MIN, 0));
        assert_eq!((div(-7, 2), rem(-7, 2)), (-3, -1));
        assert!(div(1.0f32, 0.0) == f32::INFINITY && div(0.0f64, 0.0).is_nan());
    }

    #[test]
    fn amounts_are_taken_modulo_the_width() {
        assert_eq!((shl(3u8, 9), shr(-8i8, 1u64), shl(1u128, 128), shr(6u32, -31)), (6, -4, 1, 3));
    }

    #[test]
    fn extremes_ignore_nan_and_order_zeros() {
        for (a, b) in [(0.0f32, -0.0), (-0.0, 0.0)] {
            assert!(min(a, b).is_sign_negative() && max(a, b).is_sign_positive());
        }
        assert_eq!((min(f32::NAN, 1.0), min(1.0, f32::NAN), max(f64::NAN, -2.0)), (1.0, 1.0, -2.0));
        assert!(min(f32::NAN, f32::NAN).is_nan());
        assert_eq!((min(-3, 2), max(-3, 2), min(1.5, 2.5)), (-3, 2, 1.5));
    }

    #[test]
    fn clamp_takes_any_bounds() {
        assert_eq!((clamp(5, 1, 3), clamp(0, 1, 3), clamp(2, 1, 3)), (3, 1, 2));
        assert_eq!((clamp(5, 9, 3), clamp(1, 9, 3)), (3, 3));
        assert!(clamp(f32::NAN, 0.0, 1.0).is_nan());
    }
}
