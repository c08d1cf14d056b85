//! Recorded functions.

use crate::Kind;
use crate::graph::{Graph, Id, Op};
use crate::interpret::{Rules, evaluate};
use crate::lower::Lowered;
use crate::ptx::{self, Operands};
use crate::record::Layout;

/// The functions of one `#[operator]`.
#[derive(Clone, Debug)]
pub struct Recorded {
    functions: Vec<Function>,
}

impl Recorded {
    /// Collects functions.
    #[doc(hidden)]
    pub fn new(functions: impl Into<Vec<Function>>) -> Self {
        Self { functions: functions.into() }
    }

    /// Returns the functions, in the order in which they were written.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the function of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// A recorded function: an expression of its arguments and of the operator's state.
#[derive(Clone, Debug)]
pub struct Function {
    name: &'static str,
    arguments: Vec<Layout>,
    state: Option<Layout>,
    result: Layout,
    pub(crate) graph: Graph,
    /// The node of each of the result's scalars.
    pub(crate) roots: Vec<Id>,
}

impl Function {
    pub(crate) fn new(
        name: &'static str,
        arguments: Vec<Layout>,
        state: Option<Layout>,
        result: Layout,
        graph: Graph,
        roots: Vec<Id>,
    ) -> Self {
        Self { name, arguments, state, result, graph, roots }
    }

    /// Returns the function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the types of the arguments, without the state.
    pub fn arguments(&self) -> &[Layout] {
        &self.arguments
    }

    /// Returns the type of the state, if the function reads it.
    pub fn state(&self) -> Option<&Layout> {
        self.state.as_ref()
    }

    /// Returns the type of the result.
    pub fn result(&self) -> &Layout {
        &self.result
    }

    /// Returns the function whose result has only these bits of each scalar, in the order of the result's scalars.
    ///
    /// # Panics
    /// If the result is not made of as many unsigned integers.
    #[doc(hidden)]
    #[must_use]
    pub fn masked(&self, masks: &[u128]) -> Self {
        assert_eq!(masks.len(), self.roots.len(), "`{}`: a mask for each scalar of the result", self.name);
        let mut masked = self.clone();
        for (root, mask) in masked.roots.iter_mut().zip(masks) {
            let kind = masked.graph.kind(*root);
            assert!(kind.is_integer() && !kind.is_signed(), "`{}` has a result of {kind:?}", self.name);
            let mask = masked.graph.constant(kind, *mask);
            *root = masked.graph.add(Op::And, kind, &[*root, mask]);
        }
        masked
    }

    /// Returns the number of operations, constants and operands in the expression.
    pub fn nodes(&self) -> usize {
        self.graph.len()
    }

    /// Computes the result on the host. Arguments, state and result are the bytes of their types; `state` is not read
    /// if the function has none.
    ///
    /// # Panics
    /// If the number of arguments or a size in bytes is wrong.
    ///
    /// # Examples
    /// ```
    /// use gpu_operator::operator;
    ///
    /// #[operator]
    /// fn middle(a: u32, b: u32) -> u32 {
    ///     a / 2 + b / 2 + (a & b & 1)
    /// }
    ///
    /// let recorded = middle::recorded();
    /// let function = recorded.function("middle").unwrap();
    /// let result = function.interpret(&[&7u32.to_ne_bytes(), &u32::MAX.to_ne_bytes()], &[]);
    /// assert_eq!(result, middle(7, u32::MAX).to_ne_bytes());
    /// ```
    pub fn interpret(&self, arguments: &[&[u8]], state: &[u8]) -> Vec<u8> {
        self.check(arguments, state);
        let values = evaluate(&self.graph, &self.roots, Rules::Operator, |node| match node.op {
            Op::Argument { argument, offset } => read_scalar(arguments[argument as usize], offset as usize, node.kind),
            Op::State { offset } => read_scalar(state, offset as usize, node.kind),
            _ => unreachable!("a recorded graph has no {:?}", node.op),
        });
        let mut result = vec![0; self.result.size];
        for (leaf, value) in self.result.leaves.iter().zip(values) {
            let size = leaf.kind.size();
            result[leaf.offset..leaf.offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        result
    }

    /// Writes the function as PTX: a body in braces, with registers of its own, that reads and writes the registers
    /// that `operands` names. It needs PTX ISA 7.8 and a GPU of generation `sm_70` or newer.
    ///
    /// # Panics
    /// If the words do not cover the bytes of an operand, or if the function reads state and there is none.
    ///
    /// # Examples
    /// ```
    /// use gpu_operator::{Operands, Width, Word, operator};
    ///
    /// #[operator]
    /// fn later(a: u64, b: u64) -> bool {
    ///     a > b
    /// }
    ///
    /// let operands = Operands {
    ///     arguments: vec![
    ///         vec![Word::new("%rd1", Width::B64, 0, 8)],
    ///         vec![Word::new("%r2", Width::B32, 0, 4), Word::new("%r3", Width::B32, 4, 4)],
    ///     ],
    ///     result: vec![Word::new("%r4", Width::B32, 0, 1)],
    ///     state: None,
    /// };
    /// let body = later::recorded().functions()[0].ptx(&operands);
    /// assert!(body.contains("setp.lt.u64"));
    /// assert!(body.contains("mov.b32 %r4,"));
    /// ```
    pub fn ptx(&self, operands: &Operands) -> String {
        ptx::write(&self.lower(operands), operands)
    }

    /// Turns the expression into operations that a GPU has instructions for.
    pub(crate) fn lower(&self, operands: &Operands) -> Lowered {
        Lowered::new(self, operands)
    }

    fn check(&self, arguments: &[&[u8]], state: &[u8]) {
        assert_eq!(arguments.len(), self.arguments.len(), "`{}`: the number of arguments", self.name);
        for (bytes, layout) in arguments.iter().zip(&self.arguments) {
            assert_eq!(bytes.len(), layout.size, "`{}`: the bytes of an argument of type {}", self.name, layout.name);
        }
        if let Some(layout) = &self.state {
            assert_eq!(state.len(), layout.size, "`{}`: the bytes of the state {}", self.name, layout.name);
        }
    }
}

/// Reads a scalar's bits.
pub(crate) fn read_scalar(bytes: &[u8], offset: usize, kind: Kind) -> u128 {
    let mut bits = [0; 16];
    bits[..kind.size()].copy_from_slice(&bytes[offset..offset + kind.size()]);
    u128::from_le_bytes(bits)
}
