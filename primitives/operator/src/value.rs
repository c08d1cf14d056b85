//! Recorded numbers.

use crate::Kind;
use crate::graph::{Id, Op};
use crate::recording::with_graph;
use crate::scalar::{CastTo, Scalar};
use std::marker::PhantomData;

/// A number of type `T` in a recorded function. Its methods are those of `T` that operators have; each records what it
/// is asked to do.
#[derive(Debug)]
pub struct Value<T> {
    id: Id,
    kind: PhantomData<T>,
}

impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Value<T> {}

impl<T> Value<T> {
    pub(crate) fn new(id: Id) -> Self {
        Self { id, kind: PhantomData }
    }

    pub(crate) fn id(self) -> Id {
        self.id
    }
}

impl<T: Scalar> Value<T> {
    /// Records a constant.
    pub(crate) fn constant(value: T) -> Self {
        Self::new(with_graph(|graph| graph.constant(T::KIND, value.encode())))
    }

    /// Records an operation with operands and a result of this type. 16-bit floats compute as `f32`.
    pub(crate) fn operation<const N: usize>(op: Op, operands: [Self; N]) -> Self {
        if !T::KIND.is_half() {
            return Self::record(op, operands.map(Value::id));
        }
        let widened = operands.map(|operand| Value::<f32>::record(Op::Cast, [operand.id]));
        Self::record(Op::Cast, [Value::<f32>::record(op, widened.map(Value::id)).id])
    }

    /// Records a comparison of operands of this type.
    pub(crate) fn comparison(op: Op, a: Self, b: Self) -> Value<bool> {
        if !T::KIND.is_half() {
            return Value::record(op, [a.id, b.id]);
        }
        let [a, b] = [a, b].map(|operand| Value::<f32>::record(Op::Cast, [operand.id]));
        Value::record(op, [a.id, b.id])
    }

    /// Records an operation on nodes whose result is of this type.
    pub(crate) fn record<const N: usize>(op: Op, inputs: [Id; N]) -> Self {
        Self::new(with_graph(|graph| graph.add(op, T::KIND, &inputs)))
    }

    /// Converts as `as` does.
    pub(crate) fn cast<To: Scalar>(self) -> Value<To>
    where
        T: CastTo<To>,
    {
        self.convert()
    }

    /// [`cast`](Self::cast) between integers whose types the compiler does not know to be castable.
    pub(crate) fn convert<To: Scalar>(self) -> Value<To> {
        debug_assert!(To::KIND != Kind::Bool || T::KIND == Kind::Bool, "no cast to bool");
        Value::record(Op::Cast, [self.id])
    }

    /// Returns the same bits as another type of the same width.
    pub(crate) fn reinterpret<To: Scalar>(self) -> Value<To> {
        debug_assert_eq!(T::KIND.bits(), To::KIND.bits(), "the widths of two types");
        Value::record(Op::Bits, [self.id])
    }
}
