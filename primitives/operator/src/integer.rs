//! The methods of recorded integers.

use crate::graph::Op;
use crate::ordering::Comparable;
use crate::scalar::{Integer, Scalar, SignedInteger, UnsignedInteger};
use crate::total::{Absolute, Extreme};
use crate::twin::{self, NegateValue, add, and, bitand, bitor, bitxor, constant, select, shl, shr, sub};
use crate::value::Value;

impl<T: Scalar + Extreme> Value<T> {
    /// Returns the smaller number. A NaN is ignored, and -0 is smaller than +0.
    pub fn min(self, other: Self) -> Self {
        Self::operation(Op::Min, [self, other])
    }

    /// Returns the larger number. A NaN is ignored, and +0 is larger than -0.
    pub fn max(self, other: Self) -> Self {
        Self::operation(Op::Max, [self, other])
    }

    /// Returns `low` if the number is smaller, then `high` if that is larger.
    pub fn clamp(self, low: Self, high: Self) -> Self {
        let raised = select(self.lt(low), low, self);
        select(high.lt(raised), high, raised)
    }
}

/// Numbers with a recorded absolute value and sign.
pub trait SignValue: NegateValue {
    /// Records `value.abs()`.
    fn absolute(value: Value<Self>) -> Value<Self>;
    /// Records `value.signum()`.
    fn sign(value: Value<Self>) -> Value<Self>;
}

macro_rules! signs {
    ($($type:ty)*) => { $(
        impl SignValue for $type {
            fn absolute(value: Value<Self>) -> Value<Self> {
                select(value.lt(constant(0)), twin::neg(value), value)
            }

            fn sign(value: Value<Self>) -> Value<Self> {
                select(constant(0).lt(value), constant(1), select(value.lt(constant(0)), constant(-1), constant(0)))
            }
        }
    )* };
}

signs!(i8 i16 i32 i64 i128);

impl<T: SignValue> Value<T> {
    /// Returns the absolute value; the smallest integer stays as it is.
    pub fn abs(self) -> Self
    where
        T: Absolute,
    {
        T::absolute(self)
    }

    /// Returns -1, 0 or 1 for an integer; 1 or -1, by the sign, for a float that is no NaN.
    pub fn signum(self) -> Self {
        T::sign(self)
    }
}

impl<T: Integer> Value<T> {
    fn unsigned(self) -> Value<T::Unsigned> {
        self.convert()
    }

    /// Returns `self + other`, wrapping.
    pub fn wrapping_add(self, other: Self) -> Self {
        add(self, other)
    }

    /// Returns `self - other`, wrapping.
    pub fn wrapping_sub(self, other: Self) -> Self {
        sub(self, other)
    }

    /// Returns `self * other`, wrapping.
    pub fn wrapping_mul(self, other: Self) -> Self {
        twin::mul(self, other)
    }

    /// Returns `-self`, wrapping.
    pub fn wrapping_neg(self) -> Self {
        sub(Value::record(Op::Cast, [constant(0u8).id()]), self)
    }

    /// Returns `self << amount`, the amount modulo the width.
    pub fn wrapping_shl(self, amount: Value<u32>) -> Self {
        shl(self, amount)
    }

    /// Returns `self >> amount`, the amount modulo the width.
    pub fn wrapping_shr(self, amount: Value<u32>) -> Self {
        shr(self, amount)
    }

    /// Returns `self + other`, or the closest number that the type has.
    pub fn saturating_add(self, other: Self) -> Self {
        let sum = add(self, other);
        if !T::KIND.is_signed() {
            return select(sum.lt(self), constant(T::MAX), sum);
        }
        let overflow = bitand(bitxor(self, sum), bitxor(other, sum));
        self.saturated(overflow, sum)
    }

    /// Returns `self - other`, or the closest number that the type has.
    pub fn saturating_sub(self, other: Self) -> Self {
        let difference = sub(self, other);
        if !T::KIND.is_signed() {
            return select(self.lt(other), constant(T::MIN), difference);
        }
        let overflow = bitand(bitxor(self, other), bitxor(self, difference));
        self.saturated(overflow, difference)
    }

    /// Returns the result of signed arithmetic, or the limit on the side of `self` if `overflow` is negative.
    fn saturated(self, overflow: Self, result: Self) -> Self {
        let zero = Value::record(Op::Cast, [constant(0u8).id()]);
        select(overflow.lt(zero), select(self.lt(zero), constant(T::MIN), constant(T::MAX)), result)
    }

    /// Returns the distance between two numbers.
    pub fn abs_diff(self, other: Self) -> Value<T::Unsigned> {
        let (a, b) = (self.unsigned(), other.unsigned());
        select(self.lt(other), sub(b, a), sub(a, b))
    }

    /// Returns how many bits are set.
    pub fn count_ones(self) -> Value<u32> {
        Value::record(Op::CountOnes, [self.id()])
    }

    /// Returns how many bits above the highest set one there are.
    pub fn leading_zeros(self) -> Value<u32> {
        Value::record(Op::LeadingZeros, [self.id()])
    }

    /// Returns how many bits below the lowest set one there are.
    pub fn trailing_zeros(self) -> Value<u32> {
        self.reverse_bits().leading_zeros()
    }

    /// Returns the number with its bits in the opposite order.
    pub fn reverse_bits(self) -> Self {
        Value::record(Op::ReverseBits, [self.id()])
    }

    /// Returns the number with its bytes in the opposite order.
    pub fn swap_bytes(self) -> Self {
        Value::record(Op::SwapBytes, [self.id()])
    }

    /// Returns the number with its bits moved up and those that fall off put in at the bottom.
    pub fn rotate_left(self, amount: Value<u32>) -> Self {
        let bits = self.unsigned();
        let rest = sub(constant(T::KIND.bits()), amount);
        bitor(shl(bits, amount), shr(bits, rest)).convert()
    }

    /// Returns the number with its bits moved down and those that fall off put in at the top.
    pub fn rotate_right(self, amount: Value<u32>) -> Self {
        let bits = self.unsigned();
        let rest = sub(constant(T::KIND.bits()), amount);
        bitor(shr(bits, amount), shl(bits, rest)).convert()
    }
}

impl<T: UnsignedInteger> Value<T> {
    /// Returns whether exactly one bit is set.
    pub fn is_power_of_two(self) -> Value<bool> {
        Comparable::eq(self.count_ones(), constant(1))
    }
}

impl<T: SignedInteger> Value<T> {
    /// Returns whether the number is less than 0.
    pub fn is_negative(self) -> Value<bool> {
        self.lt(Value::record(Op::Cast, [constant(0u8).id()]))
    }

    /// Returns whether the number is greater than 0.
    pub fn is_positive(self) -> Value<bool> {
        and(twin::not(self.is_negative()), self.ne(Value::record(Op::Cast, [constant(0u8).id()])))
    }
}

macro_rules! lossless {
    ($($from:ident => $($to:ident)*;)*) => { $($(
        impl From<Value<$from>> for Value<$to> {
            fn from(value: Value<$from>) -> Self {
                value.convert()
            }
        }
    )*)* };
}

lossless! {
    bool => u8 u16 u32 u64 u128 i8 i16 i32 i64 i128;
    u8 => u16 u32 u64 u128 i16 i32 i64 i128 f32 f64;
    u16 => u32 u64 u128 i32 i64 i128 f32 f64;
    u32 => u64 u128 i64 i128 f64;
    u64 => u128 i128;
    i8 => i16 i32 i64 i128 f32 f64;
    i16 => i32 i64 i128 f32 f64;
    i32 => i64 i128 f64;
    i64 => i128;
    f32 => f64;
}
