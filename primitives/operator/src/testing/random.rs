//! Random operators: any operation on anything, over operands in registers of any shape.

use super::inputs::Random;
use super::operands::{Mixed, Packed, Small, Wide};
use crate::graph::{Id, Op};
use crate::ptx::State;
use crate::recording::{Recording, with_graph};
use crate::{Function, Kind, Layout, Operands, Record, Twin, Width, Word};

const KINDS: [Kind; 13] = [
    Kind::Bool,
    Kind::U8,
    Kind::U16,
    Kind::U32,
    Kind::U64,
    Kind::U128,
    Kind::I8,
    Kind::I16,
    Kind::I32,
    Kind::I64,
    Kind::I128,
    Kind::F32,
    Kind::F64,
];

/// Returns a random function, and operands for it.
pub(super) fn operator(random: &mut Random) -> (Function, Operands) {
    let mut pool = Pool { nodes: Vec::new(), random };
    let mut recording = Recording::new("random");
    for _ in 0..1 + pool.random.below(3) {
        let choice = pool.random.below(8);
        pool.argument(&mut recording, choice);
    }
    let has_state = pool.random.below(2) == 0;
    match (has_state, pool.random.below(2)) {
        (true, 0) => recording.state::<Mixed>().nodes(&mut pool.nodes),
        (true, _) => recording.state::<Packed>().nodes(&mut pool.nodes),
        _ => {}
    }
    for _ in 0..5 + pool.random.below(40) {
        pool.step();
    }
    let function = match pool.random.below(8) {
        0 => pool.finish::<bool>(recording),
        1 => pool.finish::<u32>(recording),
        2 => pool.finish::<Mixed>(recording),
        3 => pool.finish::<Small>(recording),
        4 => pool.finish::<Packed>(recording),
        5 => pool.finish::<Wide>(recording),
        6 => pool.finish::<[u32; 3]>(recording),
        _ => pool.finish::<f64>(recording),
    };
    let operands = shape(&function, random);
    (function, operands)
}

/// Puts the operands of a function into registers.
fn shape(function: &Function, random: &mut Random) -> Operands {
    let mut words = |layout: &Layout, name: String| match random.below(5) {
        0 => (0..layout.size).map(|byte| Word::new(format!("%{name}_{byte}"), Width::B16, byte, 1)).collect(),
        1 => Word::list(layout.size, Width::B16, |index| format!("%{name}_{index}")),
        2 | 3 => Word::list(layout.size, Width::B32, |index| format!("%{name}_{index}")),
        _ => Word::list(layout.size, Width::B64, |index| format!("%{name}_{index}")),
    };
    let arguments = function.arguments().iter().enumerate();
    let arguments = arguments.map(|(number, layout)| words(layout, format!("a{number}"))).collect();
    let result = words(function.result(), "result".to_owned());
    let state = function.state().map(|_| State { parameter: "state".to_owned(), offset: 4 * random.below(8) });
    Operands { arguments, result, state }
}

/// The values of an operator so far.
struct Pool<'a> {
    nodes: Vec<Id>,
    random: &'a mut Random,
}

impl Pool<'_> {
    fn argument(&mut self, recording: &mut Recording, choice: usize) {
        match choice {
            0 => recording.argument::<Mixed>().nodes(&mut self.nodes),
            1 => recording.argument::<Small>().nodes(&mut self.nodes),
            2 => recording.argument::<Packed>().nodes(&mut self.nodes),
            3 => recording.argument::<Wide>().nodes(&mut self.nodes),
            4 => recording.argument::<[u32; 3]>().nodes(&mut self.nodes),
            5 => recording.argument::<(bool, f32)>().nodes(&mut self.nodes),
            6 => recording.argument::<[f64; 2]>().nodes(&mut self.nodes),
            _ => recording.argument::<[u16; 5]>().nodes(&mut self.nodes),
        }
    }

    fn add(&mut self, op: Op, kind: Kind, inputs: &[Id]) -> Id {
        let id = with_graph(|graph| graph.add(op, kind, inputs));
        self.nodes.push(id);
        id
    }

    fn any(&mut self) -> (Id, Kind) {
        let id = self.nodes[self.random.below(self.nodes.len())];
        (id, with_graph(|graph| graph.kind(id)))
    }

    /// Returns a value of a kind: one that there is, or a cast, or a constant.
    fn of(&mut self, kind: Kind) -> Id {
        for _ in 0..6 {
            let (id, other) = self.any();
            if other == kind {
                return id;
            }
        }
        let (id, from) = self.any();
        if can_cast(from, kind) {
            return self.add(Op::Cast, kind, &[id]);
        }
        let bits = self.random.scalar(kind);
        with_graph(|graph| graph.constant(kind, bits))
    }

    /// Adds one operation.
    fn step(&mut self) {
        let (a, kind) = self.any();
        let same = self.of(kind);
        let arithmetic = [Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max];
        let bits = [Op::And, Op::Or, Op::Xor];
        let comparisons = [Op::Eq, Op::Ne, Op::Lt, Op::Le];
        match self.random.below(10) {
            0 | 1 if kind != Kind::Bool => {
                let op = arithmetic[self.random.below(5)];
                self.add(op, kind, &[a, same]);
            }
            2 if !kind.is_float() => {
                let op = bits[self.random.below(3)];
                self.add(op, kind, &[a, same]);
            }
            3 => {
                let op = comparisons[self.random.below(4)];
                self.add(op, Kind::Bool, &[a, same]);
            }
            4 => {
                let condition = self.of(Kind::Bool);
                self.add(Op::Select, kind, &[condition, a, same]);
            }
            5 => {
                let to = KINDS[self.random.below(KINDS.len())];
                if can_cast(kind, to) {
                    self.add(Op::Cast, to, &[a]);
                }
            }
            6 if kind.is_integer() => {
                let amount = self.of(Kind::U32);
                let op = [Op::Shl, Op::Shr][self.random.below(2)];
                self.add(op, kind, &[a, amount]);
            }
            7 if kind != Kind::Bool && !kind.is_wide() => {
                let op = if kind.is_integer() { [Op::Div, Op::Rem][self.random.below(2)] } else { Op::Div };
                self.add(op, kind, &[a, same]);
            }
            8 if kind.is_float() => {
                let op = [Op::Sqrt, Op::Floor, Op::Ceil, Op::Trunc, Op::RoundTiesEven][self.random.below(5)];
                self.add(op, kind, &[a]);
                let (to, back) = if kind == Kind::F32 { (Kind::U32, Kind::F32) } else { (Kind::U64, Kind::F64) };
                let moved = self.add(Op::Bits, to, &[a]);
                self.add(Op::Bits, back, &[moved]);
                self.add(Op::MulAdd, kind, &[a, same, a]);
            }
            8 if kind.is_integer() => match self.random.below(5) {
                0 => drop(self.add(Op::CountOnes, Kind::U32, &[a])),
                1 => drop(self.add(Op::LeadingZeros, Kind::U32, &[a])),
                2 => drop(self.add(Op::ReverseBits, kind, &[a])),
                3 => drop(self.add(Op::SwapBytes, kind, &[a])),
                _ if kind.is_signed() => drop(self.add(Op::Neg, kind, &[a])),
                _ => {}
            },
            9 if !kind.is_float() => drop(self.add(Op::Not, kind, &[a])),
            _ => {}
        }
    }

    fn finish<R: Record>(&mut self, recording: Recording) -> Function {
        let nodes: Vec<Id> = Layout::of::<R>().leaves.iter().map(|leaf| self.of(leaf.kind)).collect();
        recording.finish::<R>(R::Value::from_nodes(&mut nodes.into_iter()))
    }
}

/// Returns whether operators cast from one kind to the other.
fn can_cast(from: Kind, to: Kind) -> bool {
    match (from, to) {
        _ if from == to => true,
        (_, Kind::Bool) => false,
        (Kind::Bool, _) => to.is_integer(),
        _ => !(from.is_wide() && to.is_float() || from.is_float() && to.is_wide()),
    }
}
