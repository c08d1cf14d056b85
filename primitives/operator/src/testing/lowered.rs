//! Running a lowered function on the host, by the rules of PTX.

use crate::graph::Op;
use crate::interpret::{Rules, evaluate};
use crate::lower::Lowered;
use crate::{Function, Kind, Operands, Word};

/// What stands in the bits of a register that no one promises anything about.
const ANYTHING: u64 = 0xa5c3_96f0_5a3c_690f;

/// A function lowered for some operands.
pub(super) struct Program<'a> {
    function: &'a Function,
    operands: &'a Operands,
    lowered: Lowered,
}

impl<'a> Program<'a> {
    pub(super) fn new(function: &'a Function, operands: &'a Operands) -> Self {
        let lowered = function.lower(operands);
        for (id, node) in lowered.graph.nodes() {
            let kinds = [Kind::Bool, Kind::U32, Kind::I32, Kind::U64, Kind::I64, Kind::F32, Kind::F64];
            assert!(kinds.contains(&node.kind), "{id:?} of {} has the kind {:?}", function.name(), node.kind);
        }
        Self { function, operands, lowered }
    }

    /// Computes the result as the body that is written for the operands does.
    pub(super) fn run(&self, arguments: &[&[u8]], state: &[u8]) -> Vec<u8> {
        let Self { function, operands, lowered } = self;
        let values = evaluate(&lowered.graph, &lowered.results, Rules::Ptx, |node| match node.op {
            Op::Word { argument, word } => {
                register(&operands.arguments[argument as usize][word as usize], arguments[argument as usize])
            }
            Op::Load { offset, bytes } => {
                let mut bits = [0; 16];
                bits[..bytes as usize].copy_from_slice(&state[offset as usize..][..bytes as usize]);
                u128::from_le_bytes(bits)
            }
            op => unreachable!("{op:?} in a lowered graph"),
        });
        let mut result = vec![0; function.result().size];
        for (word, value) in operands.result.iter().zip(values) {
            result[word.offset..][..word.bytes].copy_from_slice(&value.to_le_bytes()[..word.bytes]);
            assert_eq!(value >> (8 * word.bytes), 0, "the bits above the result of {}", function.name());
        }
        result
    }
}

/// Returns a register's bits, zero-extended.
fn register(word: &Word, argument: &[u8]) -> u128 {
    let mut bits = ANYTHING.to_le_bytes();
    bits[..word.bytes].copy_from_slice(&argument[word.offset..][..word.bytes]);
    let bits = u64::from_le_bytes(bits);
    u128::from(bits & u64::MAX >> (64 - 8 * word.width.bytes()))
}
