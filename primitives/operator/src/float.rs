//! The methods of recorded floats.

use crate::graph::Op;
use crate::integer::SignValue;
use crate::ordering::{Comparable, OrderingValue, cmp};
use crate::recording::with_graph;
use crate::scalar::{Float, FullFloat, Integer};
use crate::total::Divide;
use crate::twin::{bitand, bitor, bitxor, constant, div, not, select, shr};
use crate::value::Value;

macro_rules! signs {
    ($($type:ty)*) => { $(
        impl SignValue for $type {
            fn absolute(value: Value<Self>) -> Value<Self> {
                value.magnitude()
            }

            fn sign(value: Value<Self>) -> Value<Self> {
                let one = constant(<$type as Float>::ONE_BITS).reinterpret::<Self>();
                select(value.is_nan(), value, one.copysign(value))
            }
        }
    )* };
}

signs!(f32 f64);
#[cfg(feature = "half")]
signs!(half::f16 half::bf16);

impl<T: Float> Value<T> {
    /// Returns the float's bits.
    ///
    /// Which NaN arithmetic gives is up to the assembler, which may choose otherwise in the next kernel. The same operator must
    /// have the same result in all kernels, so the bits of a computed NaN are always those of `NAN`.
    pub fn to_bits(self) -> Value<T::Bits> {
        let bits = self.reinterpret();
        // 16-bit floats are computed as `f32`, and a NaN is rounded to the one that the hardware has.
        if self.is_moved() || T::KIND.is_half() { bits } else { select(self.is_nan(), constant(T::NAN_BITS), bits) }
    }

    /// Returns whether the float comes from elsewhere bit for bit.
    fn is_moved(self) -> bool {
        with_graph(|graph| {
            let is_moved = |id| {
                let op = graph.node(id).op;
                matches!(op, Op::Argument { .. } | Op::State { .. } | Op::Constant(_) | Op::Bits)
            };
            let node = graph.node(self.id());
            is_moved(self.id()) || node.op == Op::Select && node.inputs()[1..].iter().all(|side| is_moved(*side))
        })
    }

    /// Returns the float with these bits.
    pub fn from_bits(bits: Value<T::Bits>) -> Self {
        bits.reinterpret()
    }

    /// Returns the float without its sign.
    fn magnitude(self) -> Self {
        bitand(self.to_bits(), constant(T::MAGNITUDE)).reinterpret()
    }

    /// Returns whether this is a NaN.
    pub fn is_nan(self) -> Value<bool> {
        self.ne(self)
    }

    /// Returns whether this is neither infinite nor a NaN.
    pub fn is_finite(self) -> Value<bool> {
        self.magnitude().to_bits().lt(constant(T::INFINITY_BITS))
    }

    /// Returns whether this is infinite.
    pub fn is_infinite(self) -> Value<bool> {
        Comparable::eq(self.magnitude().to_bits(), constant(T::INFINITY_BITS))
    }

    /// Returns whether the sign bit is set.
    pub fn is_sign_negative(self) -> Value<bool> {
        not(self.is_sign_positive())
    }

    /// Returns whether the sign bit is clear.
    pub fn is_sign_positive(self) -> Value<bool> {
        self.to_bits().lt(constant(T::SIGN_BIT))
    }

    /// Returns the float with the sign of another.
    pub fn copysign(self, sign: Self) -> Self {
        let sign = bitand(sign.to_bits(), constant(T::SIGN_BIT));
        bitor(self.magnitude().to_bits(), sign).reinterpret()
    }

    /// Compares in the total order: -NaN, -∞ … -0, +0 … +∞, NaN.
    pub fn total_cmp(self, other: Self) -> OrderingValue {
        // The lower bits of negative numbers are flipped.
        let ordered = |value: Self| {
            let bits = value.reinterpret::<T::Signed>();
            let sign: Value<<T::Signed as Integer>::Unsigned> = shr(bits, constant(T::KIND.bits() - 1)).convert();
            bitxor(bits, shr(sign, constant(1)).convert::<T::Signed>())
        };
        cmp(ordered(self), ordered(other))
    }
}

impl<T: FullFloat> Value<T> {
    /// Returns the square root, rounded to nearest.
    pub fn sqrt(self) -> Self {
        Self::operation(Op::Sqrt, [self])
    }

    /// Returns `self * factor + summand`, rounded once.
    pub fn mul_add(self, factor: Self, summand: Self) -> Self {
        Self::operation(Op::MulAdd, [self, factor, summand])
    }

    /// Returns the largest integer that is not larger.
    pub fn floor(self) -> Self {
        Self::operation(Op::Floor, [self])
    }

    /// Returns the smallest integer that is not smaller.
    pub fn ceil(self) -> Self {
        Self::operation(Op::Ceil, [self])
    }

    /// Returns the integer part.
    pub fn trunc(self) -> Self {
        Self::operation(Op::Trunc, [self])
    }

    /// Returns the nearest integer, the even one of two.
    pub fn round_ties_even(self) -> Self {
        Self::operation(Op::RoundTiesEven, [self])
    }

    /// Returns `1 / self`.
    pub fn recip(self) -> Self
    where
        T: Divide,
    {
        div(constant(T::ONE_BITS).reinterpret(), self)
    }
}

#[cfg(feature = "half")]
macro_rules! halves {
    ($($type:ty)*) => { $(
        impl Value<$type> {
            /// Returns the same number as an `f32`.
            pub fn to_f32(self) -> Value<f32> {
                Value::record(Op::Cast, [self.id()])
            }

            /// Rounds an `f32` to nearest, ties to even.
            pub fn from_f32(value: Value<f32>) -> Self {
                Value::record(Op::Cast, [value.id()])
            }
        }
    )* };
}

#[cfg(feature = "half")]
halves!(half::f16 half::bf16);
