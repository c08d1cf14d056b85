//! What is known of a node before it is computed.

use crate::Kind;
use crate::graph::{Graph, Id, Node, Op};
use crate::interpret::{Rules, apply};

/// What a node is known to be.
pub(crate) enum Folded {
    /// A constant, by its bits.
    Constant(u128),
    /// Another node.
    Node(Id),
}

/// Returns what the node is known to be. The rules hold bit for bit, also for floats.
pub(crate) fn fold(graph: &Graph, node: &Node) -> Option<Folded> {
    let inputs = node.inputs();
    if inputs.is_empty() {
        return None;
    }
    let known: Vec<Option<u128>> = inputs.iter().map(|id| graph.value(*id)).collect();
    if known.iter().all(Option::is_some) {
        let mut values = [0; 3];
        for (value, known) in values.iter_mut().zip(&known) {
            *value = known.unwrap_or_default();
        }
        let of = operand_kind(graph, node);
        return Some(Folded::Constant(apply(node.op, node.kind, of, values, Rules::Operator)));
    }
    match node.op {
        Op::Select => select(graph, node.kind, inputs, known[0]),
        Op::Cast | Op::Bits if graph.kind(inputs[0]) == node.kind => Some(Folded::Node(inputs[0])),
        // `u32` to `i32` and back, and the same of floats.
        Op::Cast | Op::Bits => {
            let inner = graph.node(inputs[0]);
            let origin = *inner.inputs().first()?;
            let same_width = inner.kind.bits() == node.kind.bits() && graph.kind(origin) == node.kind;
            let moves = matches!(inner.op, Op::Bits)
                || matches!(inner.op, Op::Cast) && node.kind.is_integer() && inner.kind.is_integer();
            let back = node.op == inner.op || node.kind.is_integer() && inner.kind.is_integer();
            (same_width && moves && back).then_some(Folded::Node(origin))
        }
        Op::Not => {
            let inner = graph.node(inputs[0]);
            (inner.op == Op::Not).then(|| Folded::Node(inner.inputs()[0]))
        }
        _ if inputs.len() == 2 => binary(node, [inputs[0], inputs[1]], [known[0], known[1]], graph),
        _ => None,
    }
}

/// Returns the kind that the operation computes with: the result's for most, the inputs' for comparisons and casts.
pub(crate) fn operand_kind(graph: &Graph, node: &Node) -> Kind {
    match (node.op, node.inputs()) {
        (Op::Select, _) | (_, []) => node.kind,
        (_, [first, ..]) => graph.kind(*first),
    }
}

fn select(graph: &Graph, kind: Kind, inputs: &[Id], condition: Option<u128>) -> Option<Folded> {
    let [_, yes, no] = *inputs else { return None };
    match condition {
        Some(0) => Some(Folded::Node(no)),
        Some(_) => Some(Folded::Node(yes)),
        None if yes == no => Some(Folded::Node(yes)),
        None if kind == Kind::Bool && graph.value(yes) == Some(1) && graph.value(no) == Some(0) => {
            Some(Folded::Node(inputs[0]))
        }
        None => None,
    }
}

fn binary(node: &Node, [a, b]: [Id; 2], known: [Option<u128>; 2], graph: &Graph) -> Option<Folded> {
    let of = graph.kind(a);
    if of.is_float() {
        return None;
    }
    let ones = if of == Kind::Bool { 1 } else { of.mask() };
    let zero = Some(0);
    if known[1] == zero && matches!(node.op, Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::Shr)
        || known[1] == Some(1) && matches!(node.op, Op::Mul | Op::Div)
        || known[1] == Some(ones) && node.op == Op::And
        || a == b && matches!(node.op, Op::And | Op::Or | Op::Min | Op::Max)
    {
        return Some(Folded::Node(a));
    }
    if known[0] == zero && matches!(node.op, Op::Add | Op::Or | Op::Xor)
        || known[0] == Some(1) && node.op == Op::Mul
        || known[0] == Some(ones) && node.op == Op::And
    {
        return Some(Folded::Node(b));
    }
    if known.contains(&zero) && matches!(node.op, Op::And | Op::Mul) {
        return Some(Folded::Constant(0));
    }
    if known.contains(&Some(ones)) && node.op == Op::Or {
        return Some(Folded::Constant(ones));
    }
    if a == b {
        return match node.op {
            Op::Eq | Op::Le => Some(Folded::Constant(1)),
            Op::Ne | Op::Lt => Some(Folded::Constant(0)),
            Op::Xor | Op::Sub => Some(Folded::Constant(0)),
            _ => None,
        };
    }
    None
}
