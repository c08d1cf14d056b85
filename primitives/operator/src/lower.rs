//! From recorded operations to those that a GPU has instructions for.
//!
//! A lowered graph has values of kind `Bool`, `U32`, `I32`, `U64`, `I64`, `F32` and `F64` only:
//!
//! - Integers of 8 and 16 bits are 32-bit numbers of the same value, and 16-bit floats are `U32` with their bits.
//! - Integers of 128 bits are pairs of `U64`.
//! - Operands are registers and loads, from which the scalars are extracted.
//! - What PTX leaves open (division by 0, shifts beyond the width, NaN to integer) is decided by a select.
//!
//! The interpreter runs lowered graphs too, so that this step is tested on the host.

mod cast;
mod wide;
mod words;

use crate::Kind;
use crate::function::Function;
use crate::graph::{Graph, Id, Node, Op};
use crate::ptx::Operands;

/// A lowered function.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) graph: Graph,
    /// The value of each register of the result: `U32` or `U64`.
    pub(crate) results: Vec<Id>,
}

/// The lowered form of a recorded node.
#[derive(Clone, Copy, Debug)]
enum Low {
    One(Id),
    /// The lower and the upper half of 128 bits.
    Pair([Id; 2]),
}

impl Low {
    fn one(self) -> Id {
        match self {
            Self::One(id) => id,
            Self::Pair(_) => unreachable!("128 bits in the place of one register"),
        }
    }

    fn pair(self) -> [Id; 2] {
        match self {
            Self::Pair(halves) => halves,
            Self::One(_) => unreachable!("one register in the place of 128 bits"),
        }
    }
}

struct Lowering<'a> {
    function: &'a Function,
    operands: &'a Operands,
    graph: Graph,
    /// The lowered form of each recorded node so far.
    values: Vec<Low>,
}

impl Lowered {
    pub(crate) fn new(function: &Function, operands: &Operands) -> Self {
        let mut lowering = Lowering { function, operands, graph: Graph::default(), values: Vec::new() };
        for (_, node) in function.graph.nodes() {
            let value = lowering.node(node);
            lowering.values.push(value);
        }
        let results = lowering.results();
        let (graph, results) = lowering.graph.compact(&results);
        Self { graph, results }
    }
}

/// Returns the kind that stands for a kind of at most 64 bits in a lowered graph.
fn machine(kind: Kind) -> Kind {
    match kind {
        Kind::U8 | Kind::U16 => Kind::U32,
        Kind::I8 | Kind::I16 => Kind::I32,
        #[cfg(feature = "half")]
        Kind::F16 | Kind::Bf16 => Kind::U32,
        other => other,
    }
}

impl Lowering<'_> {
    fn node(&mut self, node: &Node) -> Low {
        let kind = node.kind;
        let inputs: Vec<Low> = node.inputs().iter().map(|input| self.values[input.index()]).collect();
        let of = match node.inputs() {
            [] => kind,
            [first, ..] => self.function.graph.kind(*first),
        };
        match node.op {
            Op::Argument { argument, offset } => self.argument(argument, offset, kind),
            Op::State { offset } => self.state(offset, kind),
            Op::Constant(bits) => self.literal(kind, bits),
            Op::Cast => self.cast(of, kind, inputs[0]),
            Op::Select if kind.is_wide() => {
                let (yes, no) = (inputs[1].pair(), inputs[2].pair());
                let [low, high] = [0, 1].map(|half| self.select(inputs[0].one(), yes[half], no[half]));
                Low::Pair([low, high])
            }
            Op::Select => Low::One(self.select(inputs[0].one(), inputs[1].one(), inputs[2].one())),
            op if of.is_wide() => self.wide(op, of, &inputs),
            Op::Bits => {
                let bits = self.bits_of(of, inputs[0].one());
                Low::One(self.scalar_of(kind, bits))
            }
            op => {
                let inputs: Vec<Id> = inputs.into_iter().map(Low::one).collect();
                Low::One(self.scalar(op, of, &inputs))
            }
        }
    }

    /// Lowers an operation on a scalar of at most 64 bits.
    fn scalar(&mut self, op: Op, of: Kind, inputs: &[Id]) -> Id {
        let kind = machine(of);
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Neg => {
                let result = self.graph.add(op, kind, inputs);
                self.normalise(of, result)
            }
            Op::Not if of.is_integer() && !of.is_signed() && of.bits() < 32 => {
                let mask = self.graph.constant(kind, of.mask());
                self.graph.add(Op::Xor, kind, &[inputs[0], mask])
            }
            Op::Div | Op::Rem if of.is_integer() => self.divide(op, of, inputs[0], inputs[1]),
            Op::Shl | Op::Shr => {
                let width = self.graph.constant(Kind::U32, u128::from(of.bits() - 1));
                let amount = self.graph.add(Op::And, Kind::U32, &[inputs[1], width]);
                let result = self.graph.add(op, kind, &[inputs[0], amount]);
                if op == Op::Shl { self.normalise(of, result) } else { result }
            }
            Op::Eq | Op::Ne | Op::Lt | Op::Le if of == Kind::Bool => self.compare_bools(op, inputs[0], inputs[1]),
            Op::Eq | Op::Ne | Op::Lt | Op::Le => self.graph.add(op, Kind::Bool, inputs),
            Op::CountOnes => {
                let bits = self.bits_of(of, inputs[0]);
                self.graph.add(Op::CountOnes, Kind::U32, &[bits])
            }
            Op::LeadingZeros => {
                let bits = self.bits_of(of, inputs[0]);
                let count = self.graph.add(Op::LeadingZeros, Kind::U32, &[bits]);
                let extra = self.graph.constant(Kind::U32, u128::from(machine(of).bits() - of.bits()));
                self.graph.add(Op::Sub, Kind::U32, &[count, extra])
            }
            Op::ReverseBits => {
                let bits = self.bits_of(of, inputs[0]);
                let unsigned = self.graph.kind(bits);
                let reversed = self.graph.add(Op::ReverseBits, unsigned, &[bits]);
                let reversed = self.shift(Op::Shr, reversed, unsigned.bits() - of.bits());
                self.scalar_of(of, reversed)
            }
            Op::SwapBytes => {
                let bits = self.bits_of(of, inputs[0]);
                let swapped = self.swap_bytes(of, bits);
                self.scalar_of(of, swapped)
            }
            // These keep small integers small.
            _ => self.graph.add(op, kind, inputs),
        }
    }

    /// Lowers a constant.
    fn literal(&mut self, kind: Kind, bits: u128) -> Low {
        if kind.is_wide() {
            let halves = [bits, bits >> 64].map(|half| self.graph.constant(Kind::U64, half));
            return Low::Pair(halves);
        }
        let sign = if kind.is_signed() { bits & 1 << (kind.bits() - 1) } else { 0 };
        Low::One(self.graph.constant(machine(kind), bits | sign.wrapping_neg()))
    }

    /// Brings a 32-bit result back into the range of an integer of 8 or 16 bits.
    fn normalise(&mut self, kind: Kind, id: Id) -> Id {
        if kind.bits() >= 32 || kind == Kind::Bool {
            return id;
        }
        if kind.is_signed() {
            let up = self.shift(Op::Shl, id, 32 - kind.bits());
            return self.shift(Op::Shr, up, 32 - kind.bits());
        }
        let mask = self.graph.constant(Kind::U32, kind.mask());
        self.graph.add(Op::And, Kind::U32, &[id, mask])
    }

    /// Returns a scalar's bits, zero-extended: a `U32`, or a `U64` of 64 bits.
    fn bits_of(&mut self, kind: Kind, id: Id) -> Id {
        match kind {
            Kind::Bool => {
                let [one, zero] = [1, 0].map(|value| self.graph.constant(Kind::U32, value));
                self.graph.add(Op::Select, Kind::U32, &[id, one, zero])
            }
            Kind::F32 => self.graph.add(Op::Bits, Kind::U32, &[id]),
            Kind::F64 => self.graph.add(Op::Bits, Kind::U64, &[id]),
            Kind::I64 => self.graph.add(Op::Cast, Kind::U64, &[id]),
            Kind::I8 | Kind::I16 | Kind::I32 => {
                let bits = self.graph.add(Op::Cast, Kind::U32, &[id]);
                let mask = self.graph.constant(Kind::U32, kind.mask());
                self.graph.add(Op::And, Kind::U32, &[bits, mask])
            }
            _ => id,
        }
    }

    /// Returns the scalar with these bits, which are zero-extended.
    fn scalar_of(&mut self, kind: Kind, bits: Id) -> Id {
        match kind {
            Kind::Bool => {
                let zero = self.graph.constant(Kind::U32, 0);
                self.graph.add(Op::Ne, Kind::Bool, &[bits, zero])
            }
            Kind::F32 | Kind::F64 => self.graph.add(Op::Bits, kind, &[bits]),
            Kind::I64 => self.graph.add(Op::Cast, Kind::I64, &[bits]),
            Kind::I8 | Kind::I16 | Kind::I32 => {
                let signed = self.graph.add(Op::Cast, Kind::I32, &[bits]);
                self.normalise(kind, signed)
            }
            _ => bits,
        }
    }

    fn shift(&mut self, op: Op, id: Id, amount: u32) -> Id {
        let kind = self.graph.kind(id);
        let amount = self.graph.constant(Kind::U32, u128::from(amount));
        self.graph.add(op, kind, &[id, amount])
    }

    fn select(&mut self, condition: Id, yes: Id, no: Id) -> Id {
        let kind = self.graph.kind(yes);
        if kind != Kind::Bool {
            return self.graph.add(Op::Select, kind, &[condition, yes, no]);
        }
        let opposite = self.graph.add(Op::Not, Kind::Bool, &[condition]);
        let first = self.graph.add(Op::And, Kind::Bool, &[condition, yes]);
        let second = self.graph.add(Op::And, Kind::Bool, &[opposite, no]);
        self.graph.add(Op::Or, Kind::Bool, &[first, second])
    }

    fn compare_bools(&mut self, op: Op, a: Id, b: Id) -> Id {
        let first = match op {
            Op::Lt | Op::Le => self.graph.add(Op::Not, Kind::Bool, &[a]),
            _ => a,
        };
        match op {
            Op::Lt => self.graph.add(Op::And, Kind::Bool, &[first, b]),
            Op::Le => self.graph.add(Op::Or, Kind::Bool, &[first, b]),
            Op::Ne => self.graph.add(Op::Xor, Kind::Bool, &[a, b]),
            _ => {
                let differ = self.graph.add(Op::Xor, Kind::Bool, &[a, b]);
                self.graph.add(Op::Not, Kind::Bool, &[differ])
            }
        }
    }

    /// Divides by 1 where PTX would not say what comes out, and puts in what an operator gives.
    fn divide(&mut self, op: Op, of: Kind, a: Id, b: Id) -> Id {
        let kind = machine(of);
        let [zero, one] = [0, 1].map(|value| self.graph.constant(kind, value));
        let by_zero = self.graph.add(Op::Eq, Kind::Bool, &[b, zero]);
        let mut divisor = self.select(by_zero, one, b);
        let by_minus_one = of.is_signed().then(|| {
            let minus_one = self.graph.constant(kind, kind.mask());
            let by_minus_one = self.graph.add(Op::Eq, Kind::Bool, &[b, minus_one]);
            divisor = self.select(by_minus_one, one, divisor);
            by_minus_one
        });
        let mut result = self.graph.add(op, kind, &[a, divisor]);
        if op == Op::Rem {
            return self.select(by_zero, a, result);
        }
        if let Some(by_minus_one) = by_minus_one {
            let negated = self.graph.add(Op::Neg, kind, &[a]);
            let negated = self.normalise(of, negated);
            result = self.select(by_minus_one, negated, result);
        }
        self.select(by_zero, zero, result)
    }

    fn swap_bytes(&mut self, of: Kind, bits: Id) -> Id {
        match of.bits() {
            8 => bits,
            16 => {
                let swapped = self.graph.add(Op::SwapBytes, Kind::U32, &[bits]);
                self.shift(Op::Shr, swapped, 16)
            }
            32 => self.graph.add(Op::SwapBytes, Kind::U32, &[bits]),
            _ => {
                let upper = self.shift(Op::Shr, bits, 32);
                let [low, high] = [bits, upper].map(|half| {
                    let half = self.graph.add(Op::Cast, Kind::U32, &[half]);
                    self.graph.add(Op::SwapBytes, Kind::U32, &[half])
                });
                self.graph.add(Op::Pack, Kind::U64, &[high, low])
            }
        }
    }
}
