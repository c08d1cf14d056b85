//! Recorded comparisons: of numbers, tuples and arrays, and the methods of [`Ordering`].

use crate::graph::{Id, Op};
use crate::record::Twin;
use crate::scalar::Scalar;
use crate::twin::{and, constant, not, or, select};
use crate::value::Value;
use std::cmp::Ordering;

/// What stands for an [`Ordering`] in a recorded function.
#[derive(Clone, Copy, Debug)]
pub struct OrderingValue {
    /// -1, 0 or 1.
    sign: Value<i8>,
}

impl OrderingValue {
    pub(crate) fn constant(ordering: Ordering) -> Self {
        Self { sign: constant(ordering as i8) }
    }

    /// Returns `self`, or `other` if `self` is equal.
    pub fn then(self, other: Self) -> Self {
        select(self.is_eq(), other, self)
    }

    /// Returns less for greater and greater for less.
    pub fn reverse(self) -> Self {
        Self { sign: Value::operation(Op::Neg, [self.sign]) }
    }

    /// Returns whether this is less.
    pub fn is_lt(self) -> Value<bool> {
        self.sign.lt(constant(0))
    }

    /// Returns whether this is less or equal.
    pub fn is_le(self) -> Value<bool> {
        self.sign.le(constant(0))
    }

    /// Returns whether this is greater.
    pub fn is_gt(self) -> Value<bool> {
        constant(0).lt(self.sign)
    }

    /// Returns whether this is greater or equal.
    pub fn is_ge(self) -> Value<bool> {
        constant(0).le(self.sign)
    }

    /// Returns whether this is equal.
    pub fn is_eq(self) -> Value<bool> {
        Comparable::eq(self.sign, constant(0))
    }

    /// Returns whether this is not equal.
    pub fn is_ne(self) -> Value<bool> {
        not(self.is_eq())
    }
}

impl Twin for OrderingValue {
    fn nodes(&self, nodes: &mut Vec<Id>) {
        self.sign.nodes(nodes);
    }

    fn from_nodes(nodes: &mut dyn Iterator<Item = Id>) -> Self {
        Self { sign: Value::from_nodes(nodes) }
    }
}

/// What stands for a type with `==` and `<` in a recorded function.
#[diagnostic::on_unimplemented(
    message = "an operator cannot compare `{Self}`",
    note = "numbers, bool, and tuples and arrays of them can be compared: compare the fields of a struct, one by one or as a tuple"
)]
pub trait Comparable: Twin {
    /// Records `self == other`.
    fn eq(self, other: Self) -> Value<bool>;
    /// Records `self < other`.
    fn lt(self, other: Self) -> Value<bool>;
    /// Records `self <= other`.
    fn le(self, other: Self) -> Value<bool>;
    /// Records `self != other`.
    fn ne(self, other: Self) -> Value<bool> {
        not(self.eq(other))
    }
}

impl<T: Scalar> Comparable for Value<T> {
    fn eq(self, other: Self) -> Value<bool> {
        Self::comparison(Op::Eq, self, other)
    }

    fn lt(self, other: Self) -> Value<bool> {
        Self::comparison(Op::Lt, self, other)
    }

    fn le(self, other: Self) -> Value<bool> {
        Self::comparison(Op::Le, self, other)
    }

    fn ne(self, other: Self) -> Value<bool> {
        Self::comparison(Op::Ne, self, other)
    }
}

impl Comparable for OrderingValue {
    fn eq(self, other: Self) -> Value<bool> {
        self.sign.eq(other.sign)
    }

    fn lt(self, other: Self) -> Value<bool> {
        self.sign.lt(other.sign)
    }

    fn le(self, other: Self) -> Value<bool> {
        self.sign.le(other.sign)
    }
}

/// Lexicographic order: the first elements that differ decide. A NaN differs from everything and is less than nothing,
/// so it makes `<` and `<=` false, as in Rust.
impl<V: Comparable, const N: usize> Comparable for [V; N] {
    fn eq(self, other: Self) -> Value<bool> {
        self.into_iter().zip(other).fold(constant(true), |equal, (a, b)| and(equal, a.eq(b)))
    }

    fn lt(self, other: Self) -> Value<bool> {
        let first = self.iter().zip(&other).take(N.saturating_sub(1)).map(|(a, b)| (a.lt(*b), a.eq(*b))).collect();
        let last = self.last().zip(other.last()).map_or_else(|| constant(false), |(a, b)| a.lt(*b));
        lexicographic(first, last)
    }

    fn le(self, other: Self) -> Value<bool> {
        let first = self.iter().zip(&other).take(N.saturating_sub(1)).map(|(a, b)| (a.lt(*b), a.eq(*b))).collect();
        let last = self.last().zip(other.last()).map_or_else(|| constant(true), |(a, b)| a.le(*b));
        lexicographic(first, last)
    }
}

/// Returns `last`, unless an earlier pair of elements decides: each is given by whether it is less and equal.
fn lexicographic(first: Vec<(Value<bool>, Value<bool>)>, last: Value<bool>) -> Value<bool> {
    first.into_iter().rev().fold(last, |rest, (less, equal)| or(less, and(equal, rest)))
}

macro_rules! tuples {
    ($($($type:ident $index:tt)*, $last:ident $end:tt;)*) => { $(
        impl<$($type: Comparable,)* $last: Comparable> Comparable for ($($type,)* $last,) {
            fn eq(self, other: Self) -> Value<bool> {
                let equal = self.$end.eq(other.$end);
                $(let equal = and(equal, self.$index.eq(other.$index));)*
                equal
            }

            fn lt(self, other: Self) -> Value<bool> {
                let first = vec![$((self.$index.lt(other.$index), self.$index.eq(other.$index))),*];
                lexicographic(first, self.$end.lt(other.$end))
            }

            fn le(self, other: Self) -> Value<bool> {
                let first = vec![$((self.$index.lt(other.$index), self.$index.eq(other.$index))),*];
                lexicographic(first, self.$end.le(other.$end))
            }
        }
    )* };
}

tuples! {
    , A 0;
    A 0, B 1;
    A 0 B 1, C 2;
    A 0 B 1 C 2, D 3;
    A 0 B 1 C 2 D 3, E 4;
    A 0 B 1 C 2 D 3 E 4, F 5;
}

/// Records `a.cmp(&b)`.
#[doc(hidden)]
pub fn cmp<V: Comparable>(a: V, b: V) -> OrderingValue {
    let unequal = select(a.lt(b), constant(-1), constant(1));
    OrderingValue { sign: select(a.eq(b), constant(0), unequal) }
}
