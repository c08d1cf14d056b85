//! Orders for merges, searches and segmented sorts.

use crate::code::Sign;
use crate::form::Param;
use bytemuck::{Pod, Zeroable};

/// A strict weak order. It may carry state, which is passed to the GPU as a kernel argument.
///
/// # Contract
/// `less` is irreflexive and transitive, and "neither is less" is transitive too. A comparator that breaks this
/// contract yields some permutation or some position in range, but never an out-of-bounds access.
pub trait Compare<T>: Param {
    /// Returns whether `a` comes before `b`.
    fn less(&self, a: T, b: T) -> bool;
}

/// The natural order of numbers. Floats use the total order of `total_cmp` (-NaN, -∞ … -0, +0 … +∞, NaN).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Less;

/// The reverse of the natural order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Greater;

/// The natural order of keys without their lowest bit, which may carry a flag that does not affect the order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct IgnoreLowBit;

impl Compare<u32> for IgnoreLowBit {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a >> 1) < (b >> 1)
    }
}

impl Compare<u64> for IgnoreLowBit {
    #[inline(always)]
    fn less(&self, a: u64, b: u64) -> bool {
        (a >> 1) < (b >> 1)
    }
}

const FLOAT_32: Sign = Sign::sign_and_magnitude(32);
const FLOAT_64: Sign = Sign::sign_and_magnitude(64);

macro_rules! orders {
    ($($type:ty: $a:ident, $b:ident => $less:expr;)*) => { $(
        impl Compare<$type> for Less {
            #[inline(always)]
            fn less(&self, $a: $type, $b: $type) -> bool {
                $less
            }
        }
        impl Compare<$type> for Greater {
            #[inline(always)]
            fn less(&self, $b: $type, $a: $type) -> bool {
                $less
            }
        }
    )* };
}

orders! {
    u8: a, b => a < b;
    u16: a, b => a < b;
    u32: a, b => a < b;
    u64: a, b => a < b;
    u128: a, b => a < b;
    i8: a, b => a < b;
    i16: a, b => a < b;
    i32: a, b => a < b;
    i64: a, b => a < b;
    i128: a, b => a < b;
    f32: a, b => FLOAT_32.encode(a.to_bits()) < FLOAT_32.encode(b.to_bits());
    f64: a, b => FLOAT_64.encode(a.to_bits()) < FLOAT_64.encode(b.to_bits());
}

#[cfg(test)]
mod tests {
    use super::{Compare, Greater, Less};

    #[test]
    fn floats_are_in_total_order() {
        let numbers = [f32::NAN, -f32::NAN, 0.0, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE];
        for a in numbers {
            for b in numbers {
                assert_eq!(Less.less(a, b), a.total_cmp(&b).is_lt(), "{a} {b}");
                assert_eq!(Greater.less(a, b), a.total_cmp(&b).is_gt(), "{a} {b}");
                let (a, b) = (f64::from(a), f64::from(b));
                assert_eq!(Less.less(a, b), a.total_cmp(&b).is_lt(), "{a} {b}");
            }
        }
    }
}
