//! What each operation gives, on the host.

use crate::Kind;
use crate::fold::operand_kind;
use crate::graph::{Graph, Id, Node, Op};
use crate::scalar::Scalar;
use crate::total;

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Those of operators: every input has a result.
    Operator,
    /// Those of PTX: some inputs have no defined result. Such a result is [`UNDEFINED`] here, so that a lowered graph
    /// that lets it through does not agree with the recorded one.
    Ptx,
}

/// A pattern that no correct result is likely to have.
const UNDEFINED: u128 = 0x5eed_5eed_5eed_5eed_5eed_5eed_5eed_5eed;

/// Gives the type of a kind to an expression.
macro_rules! by_kind {
    ($kind:expr, $type:ident => $body:expr, $($variant:ident $rust:ty),*) => {
        match $kind {
            $(Kind::$variant => { type $type = $rust; $body })*
            other => unreachable!("an operation on {other:?}"),
        }
    };
}

macro_rules! integers {
    ($kind:expr, $type:ident => $body:expr) => {
        by_kind!($kind, $type => $body, U8 u8, U16 u16, U32 u32, U64 u64, U128 u128, I8 i8, I16 i16, I32 i32, I64 i64, I128 i128)
    };
}

macro_rules! dividing {
    ($kind:expr, $type:ident => $body:expr) => {
        by_kind!($kind, $type => $body, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)
    };
}

macro_rules! floats {
    ($kind:expr, $type:ident => $body:expr) => {
        by_kind!($kind, $type => $body, F32 f32, F64 f64)
    };
}

macro_rules! numbers {
    ($kind:expr, $type:ident => $body:expr) => {
        if $kind.is_float() { floats!($kind, $type => $body) } else { integers!($kind, $type => $body) }
    };
}

/// Computes one operation. `kind` is the result's and `of` that of the operands; all values are zero-extended bits.
pub(crate) fn apply(op: Op, kind: Kind, of: Kind, [a, b, c]: [u128; 3], rules: Rules) -> u128 {
    if rules == Rules::Ptx && is_undefined(op, kind, of, a, b) {
        return UNDEFINED & kind.mask();
    }
    match op {
        Op::Add => numbers!(of, T => binary::<T>(total::add, a, b)),
        Op::Sub => numbers!(of, T => binary::<T>(total::sub, a, b)),
        Op::Mul => numbers!(of, T => binary::<T>(total::mul, a, b)),
        Op::Div if of.is_float() => floats!(of, T => binary::<T>(total::div, a, b)),
        Op::Div => dividing!(of, T => binary::<T>(total::div, a, b)),
        Op::Rem => dividing!(of, T => binary::<T>(total::rem, a, b)),
        Op::Neg => by_kind!(of, T => total::neg(T::decode(a)).encode(), I8 i8, I16 i16, I32 i32, I64 i64, I128 i128),
        Op::And => a & b,
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::Not if of == Kind::Bool => a ^ 1,
        Op::Not => a ^ of.mask(),
        Op::Shl => integers!(of, T => total::shl(T::decode(a), b as u32).encode()),
        Op::Shr => integers!(of, T => total::shr(T::decode(a), b as u32).encode()),
        Op::Min => numbers!(of, T => binary::<T>(total::min, a, b)),
        Op::Max => numbers!(of, T => binary::<T>(total::max, a, b)),
        Op::Eq | Op::Ne | Op::Lt | Op::Le => u128::from(compare(op, of, a, b)),
        Op::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Op::Cast => cast(of, kind, a),
        Op::Bits => a,
        Op::Sqrt => floats!(of, T => T::decode(a).sqrt().encode()),
        Op::Floor => floats!(of, T => T::decode(a).floor().encode()),
        Op::Ceil => floats!(of, T => T::decode(a).ceil().encode()),
        Op::Trunc => floats!(of, T => T::decode(a).trunc().encode()),
        Op::RoundTiesEven => floats!(of, T => T::decode(a).round_ties_even().encode()),
        Op::MulAdd => floats!(of, T => T::decode(a).mul_add(T::decode(b), T::decode(c)).encode()),
        Op::CountOnes => integers!(of, T => u128::from(T::decode(a).count_ones())),
        Op::LeadingZeros => integers!(of, T => u128::from(T::decode(a).leading_zeros())),
        Op::ReverseBits => integers!(of, T => T::decode(a).reverse_bits().encode()),
        Op::SwapBytes => integers!(of, T => T::decode(a).swap_bytes().encode()),
        Op::MulHigh => (a * b) >> 64,
        Op::Pack => a | b << 32,
        #[cfg(feature = "half")]
        Op::FromF16 => cast(Kind::F16, Kind::F32, a & 0xffff),
        #[cfg(feature = "half")]
        Op::ToF16 => cast(Kind::F32, Kind::F16, a),
        Op::Constant(bits) => bits,
        Op::Argument { .. } | Op::State { .. } | Op::Word { .. } | Op::Load { .. } => {
            unreachable!("{op:?} is read, not computed")
        }
    }
}

/// Returns whether PTX leaves the result open.
fn is_undefined(op: Op, kind: Kind, of: Kind, a: u128, b: u128) -> bool {
    match op {
        Op::Div | Op::Rem if of.is_integer() => {
            let smallest = of.is_signed() && a == 1 << (of.bits() - 1);
            b == 0 || smallest && b == of.mask()
        }
        Op::Shl | Op::Shr => b >= u128::from(of.bits()),
        // A NaN becomes 0 only if both types have 32 bits.
        Op::Cast if of.is_float() && kind.is_integer() => {
            let is_nan = floats!(of, T => T::decode(a).is_nan());
            is_nan && (of.bits() == 64 || kind.bits() == 64)
        }
        _ => false,
    }
}

fn binary<T: Scalar>(f: fn(T, T) -> T, a: u128, b: u128) -> u128 {
    f(T::decode(a), T::decode(b)).encode()
}

fn compare(op: Op, of: Kind, a: u128, b: u128) -> bool {
    fn of_type<T: Scalar>(op: Op, a: u128, b: u128) -> bool {
        let (a, b) = (T::decode(a), T::decode(b));
        match op {
            Op::Eq => a == b,
            Op::Ne => a != b,
            Op::Lt => a < b,
            _ => a <= b,
        }
    }
    match of {
        Kind::Bool => of_type::<bool>(op, a, b),
        _ => numbers!(of, T => of_type::<T>(op, a, b)),
    }
}

/// Rust's `as`, and the conversions of 16-bit floats.
fn cast(from: Kind, to: Kind, a: u128) -> u128 {
    #[cfg(feature = "half")]
    match (from, to) {
        (Kind::F16, Kind::F32) => return half::f16::decode(a).to_f32().encode(),
        (Kind::Bf16, Kind::F32) => return half::bf16::decode(a).to_f32().encode(),
        (Kind::F32, Kind::F16) => return half::f16::from_f32(f32::decode(a)).encode(),
        (Kind::F32, Kind::Bf16) => return half::bf16::from_f32(f32::decode(a)).encode(),
        _ => {}
    }
    match (from, to) {
        _ if from == to => a,
        (Kind::Bool, _) => a,
        (Kind::F32, Kind::F64) => f64::from(f32::decode(a)).encode(),
        (Kind::F64, Kind::F32) => (f64::decode(a) as f32).encode(),
        (_, Kind::F32) if from.is_integer() => integers!(from, T => (T::decode(a) as f32).encode()),
        (_, Kind::F64) if from.is_integer() => integers!(from, T => (T::decode(a) as f64).encode()),
        (Kind::F32, _) if to.is_integer() => integers!(to, T => (f32::decode(a) as T).encode()),
        (Kind::F64, _) if to.is_integer() => integers!(to, T => (f64::decode(a) as T).encode()),
        _ if from.is_integer() && to.is_integer() => {
            #[allow(clippy::unnecessary_cast, reason = "one of the types is `i128` itself")]
            let extended = integers!(from, T => T::decode(a) as i128);
            extended as u128 & to.mask()
        }
        _ => unreachable!("a cast from {from:?} to {to:?}"),
    }
}

/// Computes the nodes that the roots need and returns the roots' values. `read` gives the nodes without inputs.
pub(crate) fn evaluate(graph: &Graph, roots: &[Id], rules: Rules, read: impl Fn(&Node) -> u128) -> Vec<u128> {
    let live = graph.live(roots);
    let mut values = vec![0; graph.len()];
    for (id, node) in graph.nodes().filter(|(id, _)| live[id.index()]) {
        let mut inputs = [0; 3];
        for (value, input) in inputs.iter_mut().zip(node.inputs()) {
            *value = values[input.index()];
        }
        values[id.index()] = match node.op {
            Op::Constant(bits) => bits,
            _ if node.inputs().is_empty() => read(node),
            op => apply(op, node.kind, operand_kind(graph, node), inputs, rules),
        };
    }
    roots.iter().map(|root| values[root.index()]).collect()
}
