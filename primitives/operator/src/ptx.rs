//! Writing a lowered function as PTX.

use crate::Kind;
use crate::graph::{Graph, Id, Node, Op};
use crate::lower::Lowered;
use std::fmt::Write;

/// Where a body finds its operands: which registers hold each argument and the result, and where the state is.
#[derive(Clone, Debug, Default)]
pub struct Operands {
    /// The registers of each argument. Registers of arguments that the function does not use may be left out.
    pub arguments: Vec<Vec<Word>>,
    /// The registers of the result. The bits beyond the result's bytes are set to 0: a `bool` in a 32-bit register is 0
    /// or 1.
    pub result: Vec<Word>,
    /// The operator's state, for functions that read it.
    pub state: Option<State>,
}

/// A register that holds some bytes of an operand, the first in its lowest bits.
#[derive(Clone, Debug)]
pub struct Word {
    /// The register's name in the surrounding PTX.
    pub register: String,
    /// The register's width.
    pub width: Width,
    /// The operand's byte in the register's lowest bits.
    pub offset: usize,
    /// How many bytes of the operand the register holds. In an argument, the bits above them may be anything.
    pub bytes: usize,
}

impl Word {
    /// Returns a register that holds `bytes` bytes of an operand, from byte `offset`.
    pub fn new(register: impl Into<String>, width: Width, offset: usize, bytes: usize) -> Self {
        debug_assert!(bytes <= width.bytes(), "a register holds no more than its width");
        Self { register: register.into(), width, offset, bytes }
    }

    /// Returns registers of one width that hold an operand of `size` bytes one after the other, named by their number.
    pub fn list(size: usize, width: Width, register: impl Fn(usize) -> String) -> Vec<Self> {
        let step = width.bytes();
        let word = |index: usize| Self::new(register(index), width, index * step, step.min(size - index * step));
        (0..size.div_ceil(step)).map(word).collect()
    }
}

/// The width of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

impl Width {
    /// Returns the width in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::B16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
        }
    }
}

/// The operator's state among the parameters of the kernel.
#[derive(Clone, Debug)]
pub struct State {
    /// The name of the kernel's parameter.
    pub parameter: String,
    /// The byte of the parameter at which the state begins.
    pub offset: usize,
}

/// Writes the body.
pub(crate) fn write(lowered: &Lowered, operands: &Operands) -> String {
    let graph = &lowered.graph;
    let mut writer =
        Writer { graph, operands, names: vec![String::new(); graph.len()], counts: [0; 4], lines: String::new() };
    for (id, node) in graph.nodes() {
        writer.node(id, node);
    }
    for (word, id) in operands.result.iter().zip(&lowered.results) {
        let (register, value) = (&word.register, &writer.names[id.index()]);
        let line = match word.width {
            Width::B16 if graph.value(*id).is_some() => format!("mov.b16 {register}, {value};"),
            Width::B16 => format!("cvt.u16.u32 {register}, {value};"),
            Width::B32 => format!("mov.b32 {register}, {value};"),
            Width::B64 => format!("mov.b64 {register}, {value};"),
        };
        writer.line(&line);
    }
    let mut body = String::from("{\n");
    for (class, count) in CLASSES.iter().zip(writer.counts) {
        if count > 0 {
            let (prefix, kind) = class;
            let _ = writeln!(body, "\t.reg .{kind} {prefix}<{count}>;");
        }
    }
    body.push_str(&writer.lines);
    body.push('}');
    body
}

/// The registers' prefixes and types: predicates, 16, 32 and 64 bits.
const CLASSES: [(&str, &str); 4] = [("%op_p", "pred"), ("%op_h", "b16"), ("%op_r", "b32"), ("%op_d", "b64")];

struct Writer<'a> {
    graph: &'a Graph,
    operands: &'a Operands,
    /// The register or the immediate of each node.
    names: Vec<String>,
    /// How many registers there are of each class.
    counts: [usize; 4],
    lines: String,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.lines, "\t{text}");
    }

    fn register(&mut self, class: usize) -> String {
        let number = self.counts[class];
        self.counts[class] += 1;
        format!("{}{number}", CLASSES[class].0)
    }

    fn node(&mut self, id: Id, node: &Node) {
        let inputs: Vec<&str> = node.inputs().iter().map(|input| self.names[input.index()].as_str()).collect();
        let of = node.inputs().first().map_or(node.kind, |first| self.graph.kind(*first));
        self.names[id.index()] = match node.op {
            Op::Constant(bits) => immediate(node.kind, bits),
            // A register holds bits, of whatever type.
            Op::Bits => inputs[0].to_owned(),
            Op::Cast if node.kind.bits() == of.bits() && node.kind.is_integer() && of.is_integer() => {
                inputs[0].to_owned()
            }
            _ => {
                let inputs = inputs.join(", ");
                let class = match (node.kind, node.kind.bits()) {
                    (Kind::Bool, _) => 0,
                    (_, 64) => 3,
                    _ => 2,
                };
                let target = self.register(class);
                self.instruction(node, of, &target, &inputs);
                target
            }
        };
    }

    fn instruction(&mut self, node: &Node, of: Kind, target: &str, inputs: &str) {
        let line = match node.op {
            Op::Word { argument, word } => {
                let word = &self.operands.arguments[argument as usize][word as usize];
                let operation = match word.width {
                    Width::B16 => "cvt.u32.u16",
                    Width::B32 => "mov.b32",
                    Width::B64 => "mov.b64",
                };
                format!("{operation} {target}, {};", word.register)
            }
            Op::Load { offset, bytes } => {
                let state = self.operands.state.as_ref().expect("checked when the load was made");
                let offset = state.offset + offset as usize;
                format!("ld.param.b{} {target}, [{}+{offset}];", 8 * bytes, state.parameter)
            }
            Op::Pack => format!("mov.b64 {target}, {{{inputs}}};"),
            Op::SwapBytes => format!("prmt.b32 {target}, {inputs}, 0, 0x0123;"),
            #[cfg(feature = "half")]
            Op::FromF16 => {
                let half = self.register(1);
                self.line(&format!("cvt.u16.u32 {half}, {inputs};"));
                format!("cvt.f32.f16 {target}, {half};")
            }
            #[cfg(feature = "half")]
            Op::ToF16 => {
                let half = self.register(1);
                self.line(&format!("cvt.rn.f16.f32 {half}, {inputs};"));
                format!("cvt.u32.u16 {target}, {half};")
            }
            Op::Select => {
                let (condition, sides) = inputs.split_once(", ").expect("three inputs");
                format!("selp.b{} {target}, {sides}, {condition};", node.kind.bits())
            }
            op => format!("{} {target}, {inputs};", opcode(op, node.kind, of)),
        };
        self.line(&line);
    }
}

/// Returns the name of an instruction.
fn opcode(op: Op, kind: Kind, of: Kind) -> String {
    let float = of.is_float();
    let bits = match of {
        Kind::Bool => "pred".to_owned(),
        _ => format!("b{}", of.bits()),
    };
    let typed = type_name(of);
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div if float => {
            let name = [(Op::Add, "add"), (Op::Sub, "sub"), (Op::Mul, "mul"), (Op::Div, "div")];
            let name = name.iter().find(|(other, _)| *other == op).map_or("", |(_, name)| name);
            format!("{name}.rn.{typed}")
        }
        Op::Add => format!("add.{typed}"),
        Op::Sub => format!("sub.{typed}"),
        Op::Mul => format!("mul.lo.{typed}"),
        Op::MulHigh => format!("mul.hi.{typed}"),
        Op::Div => format!("div.{typed}"),
        Op::Rem => format!("rem.{typed}"),
        Op::Neg => format!("neg.{typed}"),
        Op::And => format!("and.{bits}"),
        Op::Or => format!("or.{bits}"),
        Op::Xor => format!("xor.{bits}"),
        Op::Not => format!("not.{bits}"),
        Op::Shl => format!("shl.{bits}"),
        Op::Shr => format!("shr.{typed}"),
        Op::Min => format!("min.{typed}"),
        Op::Max => format!("max.{typed}"),
        Op::Eq => format!("setp.eq.{typed}"),
        // Unordered: a NaN differs from everything.
        Op::Ne if float => format!("setp.neu.{typed}"),
        Op::Ne => format!("setp.ne.{typed}"),
        Op::Lt => format!("setp.lt.{typed}"),
        Op::Le => format!("setp.le.{typed}"),
        Op::Sqrt => format!("sqrt.rn.{typed}"),
        Op::MulAdd => format!("fma.rn.{typed}"),
        Op::Floor => format!("cvt.rmi.{typed}.{typed}"),
        Op::Ceil => format!("cvt.rpi.{typed}.{typed}"),
        Op::Trunc => format!("cvt.rzi.{typed}.{typed}"),
        Op::RoundTiesEven => format!("cvt.rni.{typed}.{typed}"),
        Op::CountOnes => format!("popc.{bits}"),
        Op::LeadingZeros => format!("clz.{bits}"),
        Op::ReverseBits => format!("brev.{bits}"),
        Op::Cast => {
            let rounding = match (float, kind.is_float()) {
                (true, false) => ".rzi",
                (false, true) => ".rn",
                (true, true) if kind.bits() < of.bits() => ".rn",
                _ => "",
            };
            // An integer grows by its own sign.
            let target = match (float, kind) {
                (false, Kind::I64 | Kind::U64) => {
                    if of.is_signed() {
                        "s64"
                    } else {
                        "u64"
                    }
                }
                (false, Kind::I32 | Kind::U32) => "u32",
                _ => type_name(kind),
            };
            format!("cvt{rounding}.{target}.{typed}")
        }
        _ => unreachable!("{op:?} has an instruction of its own form"),
    }
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::U32 => "u32",
        Kind::I32 => "s32",
        Kind::U64 => "u64",
        Kind::I64 => "s64",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::Bool => "pred",
        _ => unreachable!("{kind:?} is lowered to another kind"),
    }
}

fn immediate(kind: Kind, bits: u128) -> String {
    match kind {
        Kind::F32 => format!("0f{bits:08X}"),
        Kind::F64 => format!("0d{bits:016X}"),
        Kind::I32 => format!("{}", bits as u32 as i32),
        Kind::I64 => format!("{}", bits as u64 as i64),
        Kind::U64 => format!("0x{bits:X}"),
        _ => format!("{bits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Operands, State, Width, Word};
    use crate::{Record, operator};
    use bytemuck::{Pod, Zeroable};

    #[repr(C)]
    #[derive(Clone, Copy, Pod, Zeroable, Record)]
    struct Scaled {
        factor: f32,
        bias: u16,
        shift: u8,
        mode: u8,
    }

    #[operator]
    impl Scaled {
        fn apply(self, x: f32) -> u16 {
            (x * self.factor) as u16 + self.bias
        }
    }

    #[operator]
    fn swapped(pair: [u32; 2]) -> [u32; 2] {
        [pair[1], pair[0]]
    }

    fn body(function: &crate::Function, operands: &Operands) -> String {
        function.ptx(operands).replace("\n\t", " ").replace('\n', " ")
    }

    #[test]
    fn state_is_loaded_from_the_parameters() {
        let operands = Operands {
            arguments: vec![vec![Word::new("%f1", Width::B32, 0, 4)]],
            result: vec![Word::new("%rs1", Width::B16, 0, 2)],
            state: Some(State { parameter: "kernel_param_3".to_owned(), offset: 8 }),
        };
        let text = body(&Scaled::recorded().functions()[0], &operands);
        assert!(text.contains("ld.param.b32 %op_r0, [kernel_param_3+8];"), "{text}");
        assert!(text.contains("ld.param.b16 %op_r1, [kernel_param_3+12];"), "{text}");
        assert!(!text.contains("+14]"), "a field that is not used is not loaded: {text}");
        assert!(text.contains("mul.rn.f32"), "{text}");
        assert!(text.contains("cvt.u16.u32 %rs1, %op_r"), "{text}");
    }

    #[test]
    fn a_result_may_be_in_the_registers_of_an_argument() {
        let words = Word::list(8, Width::B32, |index| format!("%r{index}"));
        let operands = Operands { arguments: vec![words.clone()], result: words, state: None };
        let text = body(&swapped::recorded().functions()[0], &operands);
        // Both are read before either is written.
        let read = text.find("mov.b32 %op_r1, %r1;").expect("a read");
        assert!(read < text.find("mov.b32 %r0, %op_r1;").expect("a write"), "{text}");
    }

    #[test]
    #[should_panic(expected = "no register holds byte 4 of argument 0")]
    fn missing_registers_are_noticed() {
        let word = || vec![Word::new("%r1", Width::B32, 0, 4)];
        let operands = Operands { arguments: vec![word()], result: word(), state: None };
        let _ = swapped::recorded().functions()[0].ptx(&operands);
    }
}
