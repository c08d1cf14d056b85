//! The functions that `#[operator]` puts in the place of Rust's operators.

use crate::graph::Op;
use crate::ordering::Comparable;
use crate::record::{Record, Twin};
use crate::recording::with_graph;
use crate::scalar::{CastTo, Float, Integer, Scalar};
use crate::total::{Arithmetic, Bitwise, Divide, Negate, Remainder, Shift};
use crate::value::Value;

pub use crate::ordering::cmp;
pub use crate::record::zero;

/// Records a literal or a loop counter.
pub fn constant<T: Scalar>(value: T) -> Value<T> {
    Value::constant(value)
}

/// Records a constant that a path names.
pub fn lift<T: Record>(value: T) -> T::Value {
    value.lift()
}

/// Records `if condition { yes } else { no }`. Both sides are computed.
pub fn select<V: Twin>(condition: Value<bool>, yes: V, no: V) -> V {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    yes.nodes(&mut left);
    no.nodes(&mut right);
    let nodes = left
        .into_iter()
        .zip(right)
        .map(|(yes, no)| with_graph(|graph| graph.add(Op::Select, graph.kind(yes), &[condition.id(), yes, no])));
    V::from_nodes(&mut nodes.into_iter())
}

/// Records `a as To`.
pub fn cast<To: Scalar, From: CastTo<To>>(a: Value<From>) -> Value<To> {
    a.cast()
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $bound:ident $op:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name<T: Scalar + $bound>(a: Value<T>, b: Value<T>) -> Value<T> {
            Value::operation(Op::$op, [a, b])
        }
    )* };
}

binary! {
    /// Records `a + b`.
    add Arithmetic Add;
    /// Records `a - b`.
    sub Arithmetic Sub;
    /// Records `a * b`.
    mul Arithmetic Mul;
    /// Records `a / b`.
    div Divide Div;
    /// Records `a % b`.
    rem Remainder Rem;
    /// Records `a & b`.
    bitand Bitwise And;
    /// Records `a | b`.
    bitor Bitwise Or;
    /// Records `a ^ b`.
    bitxor Bitwise Xor;
}

/// Numbers with a recorded unary `-`.
pub trait NegateValue: Scalar + Negate {
    /// Records `-value`.
    fn negate(value: Value<Self>) -> Value<Self>;
}

macro_rules! negate {
    ($($type:ty)*, $value:ident => $body:expr) => { $(
        impl NegateValue for $type {
            fn negate($value: Value<Self>) -> Value<Self> {
                $body
            }
        }
    )* };
}

negate!(i8 i16 i32 i64 i128, value => Value::operation(Op::Neg, [value]));
negate!(f32 f64, value => flip_sign(value));
#[cfg(feature = "half")]
negate!(half::f16 half::bf16, value => flip_sign(value));

/// Flips the sign bit, which Rust's `-` does for a NaN too.
fn flip_sign<T: Float>(value: Value<T>) -> Value<T> {
    bitxor(value.to_bits(), constant(T::SIGN_BIT)).reinterpret()
}

/// Records `-a`.
pub fn neg<T: NegateValue>(a: Value<T>) -> Value<T> {
    T::negate(a)
}

/// Records `!a`.
pub fn not<T: Scalar + Bitwise>(a: Value<T>) -> Value<T> {
    Value::operation(Op::Not, [a])
}

/// Records `a && b`.
pub fn and(a: Value<bool>, b: Value<bool>) -> Value<bool> {
    bitand(a, b)
}

/// Records `a || b`.
pub fn or(a: Value<bool>, b: Value<bool>) -> Value<bool> {
    bitor(a, b)
}

/// Records `a << amount`.
pub fn shl<T: Scalar + Shift, A: Integer>(a: Value<T>, amount: Value<A>) -> Value<T> {
    Value::record(Op::Shl, [a.id(), amount.convert::<u32>().id()])
}

/// Records `a >> amount`.
pub fn shr<T: Scalar + Shift, A: Integer>(a: Value<T>, amount: Value<A>) -> Value<T> {
    Value::record(Op::Shr, [a.id(), amount.convert::<u32>().id()])
}

/// Records `a == b`.
pub fn eq<V: Comparable>(a: V, b: V) -> Value<bool> {
    a.eq(b)
}

/// Records `a != b`.
pub fn ne<V: Comparable>(a: V, b: V) -> Value<bool> {
    a.ne(b)
}

/// Records `a < b`.
pub fn lt<V: Comparable>(a: V, b: V) -> Value<bool> {
    a.lt(b)
}

/// Records `a <= b`.
pub fn le<V: Comparable>(a: V, b: V) -> Value<bool> {
    a.le(b)
}

/// Records `a > b`.
pub fn gt<V: Comparable>(a: V, b: V) -> Value<bool> {
    b.lt(a)
}

/// Records `a >= b`.
pub fn ge<V: Comparable>(a: V, b: V) -> Value<bool> {
    b.le(a)
}
