//! Expression graphs: every node is computed once, from nodes before it.

use crate::Kind;
use crate::fold;
use std::collections::HashMap;

/// The position of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) u32);

impl Id {
    /// Fills the unused inputs of a node.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node computes. The first group appears in recorded graphs, the second only in graphs lowered to what a GPU
/// has instructions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// The scalar at a byte offset of an argument.
    Argument {
        argument: u32,
        offset: u32,
    },
    /// The scalar at a byte offset of the state.
    State {
        offset: u32,
    },
    /// A constant, by its bits.
    Constant(u128),
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// Of integers: floats flip the sign bit instead.
    Neg,
    And,
    Or,
    Xor,
    Not,
    /// By an amount of kind `U32`.
    Shl,
    /// By an amount of kind `U32`; arithmetic for signed integers.
    Shr,
    Min,
    Max,
    Eq,
    Ne,
    Lt,
    Le,
    /// The second input if the first is true, else the third.
    Select,
    /// Rust's `as`.
    Cast,
    /// The same bits as another kind of the same width.
    Bits,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    RoundTiesEven,
    /// The first input times the second plus the third, rounded once.
    MulAdd,
    CountOnes,
    LeadingZeros,
    ReverseBits,
    SwapBytes,

    /// A register of an operand, zero-extended.
    Word {
        argument: u32,
        word: u32,
    },
    /// Bytes of the state, zero-extended.
    Load {
        offset: u32,
        bytes: u32,
    },
    /// The upper half of the product of two `U64`.
    MulHigh,
    /// A `U64` of a lower and an upper `U32`.
    Pack,
    /// The `F32` with the value of the `f16` in the lowest bits of a `U32`.
    #[cfg(feature = "half")]
    FromF16,
    /// The bits of the `f16` next to an `F32`, as a `U32`.
    #[cfg(feature = "half")]
    ToF16,
}

impl Op {
    /// Returns how many nodes the operation takes.
    pub(crate) fn arity(self) -> usize {
        match self {
            Self::Argument { .. } | Self::State { .. } | Self::Constant(_) | Self::Word { .. } | Self::Load { .. } => 0,
            Self::Neg | Self::Not | Self::Cast | Self::Bits | Self::Sqrt => 1,
            Self::Floor | Self::Ceil | Self::Trunc | Self::RoundTiesEven => 1,
            Self::CountOnes | Self::LeadingZeros | Self::ReverseBits | Self::SwapBytes => 1,
            #[cfg(feature = "half")]
            Self::FromF16 | Self::ToF16 => 1,
            Self::Select | Self::MulAdd => 3,
            _ => 2,
        }
    }

    /// Returns whether the order of the two inputs does not matter, bit for bit. A float operation is not listed: of
    /// two NaNs it may pass on either.
    fn commutes(self, kind: Kind) -> bool {
        matches!(self, Self::Add | Self::Mul | Self::And | Self::Or | Self::Xor | Self::Min | Self::Max)
            && !kind.is_float()
            || matches!(self, Self::Eq | Self::Ne | Self::MulHigh)
    }
}

/// One operation and where its inputs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) op: Op,
    /// The kind of the result.
    pub(crate) kind: Kind,
    inputs: [Id; 3],
}

impl Node {
    /// Returns the nodes that this one takes.
    pub(crate) fn inputs(&self) -> &[Id] {
        &self.inputs[..self.op.arity()]
    }
}

/// The most nodes of a graph. Assemblers need minutes for fewer.
const MAX_NODES: usize = 1 << 20;

/// Nodes in an order in which each comes after its inputs. Equal nodes exist once, and what is known is folded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
}

impl Graph {
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn kind(&self, id: Id) -> Kind {
        self.node(id).kind
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the bits of a constant.
    pub(crate) fn value(&self, id: Id) -> Option<u128> {
        match self.node(id).op {
            Op::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    pub(crate) fn constant(&mut self, kind: Kind, bits: u128) -> Id {
        self.insert(Node { op: Op::Constant(bits & kind.mask()), kind, inputs: [Id::NONE; 3] })
    }

    /// Adds an operation, or finds the node that already gives its result.
    pub(crate) fn add(&mut self, op: Op, kind: Kind, inputs: &[Id]) -> Id {
        assert_eq!(inputs.len(), op.arity(), "the inputs of {op:?}");
        let mut all = [Id::NONE; 3];
        all[..inputs.len()].copy_from_slice(inputs);
        // Constants go last.
        if op.commutes(kind) && (self.value(all[0]).is_some(), all[0]) > (self.value(all[1]).is_some(), all[1]) {
            all.swap(0, 1);
        }
        let node = Node { op, kind, inputs: all };
        match fold::fold(self, &node) {
            Some(fold::Folded::Constant(bits)) => self.constant(kind, bits),
            Some(fold::Folded::Node(id)) => id,
            None => self.insert(node),
        }
    }

    fn insert(&mut self, node: Node) -> Id {
        *self.known.entry(node).or_insert_with(|| {
            assert!(
                self.nodes.len() < MAX_NODES,
                "an operator has at most {MAX_NODES} operations: its loops are unrolled, so use shorter ones"
            );
            self.nodes.push(node);
            Id((self.nodes.len() - 1) as u32)
        })
    }

    /// Returns for each node whether one of the roots needs it.
    pub(crate) fn live(&self, roots: &[Id]) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        for root in roots {
            live[root.index()] = true;
        }
        for index in (0..self.nodes.len()).rev() {
            if live[index] {
                for input in self.nodes[index].inputs() {
                    live[input.index()] = true;
                }
            }
        }
        live
    }

    /// Returns the graph without the nodes that no root needs, and the roots in it.
    pub(crate) fn compact(&self, roots: &[Id]) -> (Self, Vec<Id>) {
        let live = self.live(roots);
        let mut compacted = Self::default();
        let mut positions = vec![Id::NONE; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().filter(|(index, _)| live[*index]) {
            let mut moved = *node;
            for input in &mut moved.inputs[..node.op.arity()] {
                *input = positions[input.index()];
            }
            positions[index] = compacted.insert(moved);
        }
        (compacted, roots.iter().map(|root| positions[root.index()]).collect())
    }

    /// Returns whether the inputs of a recorded node are of the kinds that its operation takes.
    pub(crate) fn has_fitting_inputs(&self, node: &Node) -> bool {
        let kinds: Vec<Kind> = node.inputs().iter().map(|input| self.kind(*input)).collect();
        match (node.op, &kinds[..]) {
            (Op::Select, [condition, yes, no]) => *condition == Kind::Bool && [*yes, *no] == [node.kind; 2],
            (Op::Shl | Op::Shr, [number, amount]) => *number == node.kind && *amount == Kind::U32,
            (Op::Eq | Op::Ne | Op::Lt | Op::Le, [a, b]) => a == b && node.kind == Kind::Bool,
            (Op::CountOnes | Op::LeadingZeros, [number]) => number.is_integer() && node.kind == Kind::U32,
            (Op::Bits, [from]) => from.bits() == node.kind.bits(),
            (Op::Cast, _) => true,
            (_, kinds) => kinds.iter().all(|kind| *kind == node.kind),
        }
    }

    /// Returns every node with its position, in order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Id, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (Id(index as u32), node))
    }
}
