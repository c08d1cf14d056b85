//! Integers of 128 bits, as pairs of 64.

use super::{Low, Lowering};
use crate::Kind;
use crate::graph::{Id, Op};

impl Lowering<'_> {
    /// Lowers an operation on 128-bit operands.
    pub(super) fn wide(&mut self, op: Op, of: Kind, inputs: &[Low]) -> Low {
        let a = inputs[0].pair();
        match op {
            Op::Add => Low::Pair(self.wide_add(a, inputs[1].pair())),
            Op::Sub => Low::Pair(self.wide_sub(a, inputs[1].pair())),
            Op::Mul => Low::Pair(self.wide_mul(a, inputs[1].pair())),
            Op::Neg => {
                let zero = self.graph.constant(Kind::U64, 0);
                Low::Pair(self.wide_sub([zero, zero], a))
            }
            Op::And | Op::Or | Op::Xor => {
                let b = inputs[1].pair();
                Low::Pair([0, 1].map(|half| self.u64(op, a[half], b[half])))
            }
            Op::Not => Low::Pair(a.map(|half| self.graph.add(Op::Not, Kind::U64, &[half]))),
            Op::Shl | Op::Shr => Low::Pair(self.wide_shift(op, of, a, inputs[1].one())),
            Op::Min | Op::Max => {
                let b = inputs[1].pair();
                let less = if op == Op::Min { self.wide_less(of, a, b) } else { self.wide_less(of, b, a) };
                Low::Pair([0, 1].map(|half| self.select(less, a[half], b[half])))
            }
            Op::Eq => Low::One(self.wide_equal(a, inputs[1].pair())),
            Op::Ne => {
                let equal = self.wide_equal(a, inputs[1].pair());
                Low::One(self.graph.add(Op::Not, Kind::Bool, &[equal]))
            }
            Op::Lt => Low::One(self.wide_less(of, a, inputs[1].pair())),
            Op::Le => {
                let greater = self.wide_less(of, inputs[1].pair(), a);
                Low::One(self.graph.add(Op::Not, Kind::Bool, &[greater]))
            }
            Op::Bits => inputs[0],
            Op::CountOnes => {
                let counts = a.map(|half| self.graph.add(Op::CountOnes, Kind::U32, &[half]));
                Low::One(self.graph.add(Op::Add, Kind::U32, &counts))
            }
            Op::LeadingZeros => {
                let [low, high] = a.map(|half| self.graph.add(Op::LeadingZeros, Kind::U32, &[half]));
                let [zero, width] =
                    [(Kind::U64, 0), (Kind::U32, 64)].map(|(kind, value)| self.graph.constant(kind, value));
                let beyond = self.graph.add(Op::Add, Kind::U32, &[low, width]);
                let is_low = self.graph.add(Op::Eq, Kind::Bool, &[a[1], zero]);
                Low::One(self.select(is_low, beyond, high))
            }
            Op::ReverseBits => {
                let [low, high] = a.map(|half| self.graph.add(Op::ReverseBits, Kind::U64, &[half]));
                Low::Pair([high, low])
            }
            Op::SwapBytes => {
                let [low, high] = a.map(|half| self.swap_bytes(Kind::U64, half));
                Low::Pair([high, low])
            }
            _ => unreachable!("{op:?} of 128 bits"),
        }
    }

    fn u64(&mut self, op: Op, a: Id, b: Id) -> Id {
        self.graph.add(op, Kind::U64, &[a, b])
    }

    /// Returns 1 if `a < b`, else 0.
    fn carry(&mut self, a: Id, b: Id) -> Id {
        let less = self.graph.add(Op::Lt, Kind::Bool, &[a, b]);
        let [one, zero] = [1, 0].map(|value| self.graph.constant(Kind::U64, value));
        self.select(less, one, zero)
    }

    fn wide_add(&mut self, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
        let low = self.u64(Op::Add, a[0], b[0]);
        let carry = self.carry(low, a[0]);
        let high = self.u64(Op::Add, a[1], b[1]);
        [low, self.u64(Op::Add, high, carry)]
    }

    fn wide_sub(&mut self, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
        let low = self.u64(Op::Sub, a[0], b[0]);
        let borrow = self.carry(a[0], b[0]);
        let high = self.u64(Op::Sub, a[1], b[1]);
        [low, self.u64(Op::Sub, high, borrow)]
    }

    fn wide_mul(&mut self, a: [Id; 2], b: [Id; 2]) -> [Id; 2] {
        let low = self.u64(Op::Mul, a[0], b[0]);
        let mut high = self.u64(Op::MulHigh, a[0], b[0]);
        for (left, right) in [(a[0], b[1]), (a[1], b[0])] {
            let product = self.u64(Op::Mul, left, right);
            high = self.u64(Op::Add, high, product);
        }
        [low, high]
    }

    fn wide_equal(&mut self, a: [Id; 2], b: [Id; 2]) -> Id {
        let equal = [0, 1].map(|half| self.graph.add(Op::Eq, Kind::Bool, &[a[half], b[half]]));
        self.graph.add(Op::And, Kind::Bool, &equal)
    }

    fn wide_less(&mut self, of: Kind, a: [Id; 2], b: [Id; 2]) -> Id {
        let low = self.graph.add(Op::Lt, Kind::Bool, &[a[0], b[0]]);
        let equal = self.graph.add(Op::Eq, Kind::Bool, &[a[1], b[1]]);
        let kind = if of.is_signed() { Kind::I64 } else { Kind::U64 };
        let [above, below] = [a[1], b[1]].map(|half| self.graph.add(Op::Cast, kind, &[half]));
        let high = self.graph.add(Op::Lt, Kind::Bool, &[above, below]);
        let decided_low = self.graph.add(Op::And, Kind::Bool, &[equal, low]);
        self.graph.add(Op::Or, Kind::Bool, &[high, decided_low])
    }

    /// Shifts both halves by the amount modulo 64 and moves a whole half if the amount is 64 or more.
    fn wide_shift(&mut self, op: Op, of: Kind, a: [Id; 2], amount: Id) -> [Id; 2] {
        let [below_64, bit_64, width, zero] = [63, 64, 64, 0].map(|value| self.graph.constant(Kind::U32, value));
        let inner = self.graph.add(Op::And, Kind::U32, &[amount, below_64]);
        let moved = self.graph.add(Op::And, Kind::U32, &[amount, bit_64]);
        let far = self.graph.add(Op::Ne, Kind::Bool, &[moved, zero]);
        // Bits that cross from one half to the other: none if the inner amount is 0, when 64 would be too far.
        let none = self.graph.add(Op::Eq, Kind::Bool, &[inner, zero]);
        let rest = self.graph.add(Op::Sub, Kind::U32, &[width, inner]);
        let rest = self.graph.add(Op::And, Kind::U32, &[rest, below_64]);
        let nothing = self.graph.constant(Kind::U64, 0);
        if op == Op::Shl {
            let [low, high] = a.map(|half| self.u64(Op::Shl, half, inner));
            let crossing = self.u64(Op::Shr, a[0], rest);
            let crossing = self.select(none, nothing, crossing);
            let high = self.u64(Op::Or, high, crossing);
            return [self.select(far, nothing, low), self.select(far, low, high)];
        }
        let low = self.u64(Op::Shr, a[0], inner);
        let crossing = self.u64(Op::Shl, a[1], rest);
        let crossing = self.select(none, nothing, crossing);
        let low = self.u64(Op::Or, low, crossing);
        let (high, fill) = if of.is_signed() {
            let signed = self.graph.add(Op::Cast, Kind::I64, &[a[1]]);
            let high = self.graph.add(Op::Shr, Kind::I64, &[signed, inner]);
            let fill = self.shift(Op::Shr, signed, 63);
            (self.graph.add(Op::Cast, Kind::U64, &[high]), self.graph.add(Op::Cast, Kind::U64, &[fill]))
        } else {
            (self.u64(Op::Shr, a[1], inner), nothing)
        };
        [self.select(far, high, low), self.select(far, fill, high)]
    }
}
