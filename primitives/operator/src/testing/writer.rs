//! Writes random functions in Rust, of everything that `#[operator]` takes: the file `written.rs`.
//!
//! The compiler must see the functions, so the file is checked in. To write another one, set `GPU_OPERATOR_SEED` to a number
//! and run the test `the_written_functions_are_those_of_the_seed`: it writes the file, and asks to run the tests again.

use super::inputs::Random;
use crate::Kind;
use std::fmt::Write as _;

/// The seed of the file that is checked in.
const SEED: u64 = 7;
/// How many functions there are without state, and with a state of each type.
const FUNCTIONS: usize = 120;
const WITH_STATE: usize = 15;

const KINDS: [Kind; 15] = [
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
    Kind::F16,
    Kind::Bf16,
];

/// The types that are made of several scalars: their name, and their scalars as they are read.
const COMPOSITES: [(&str, &[(&str, Kind)]); 9] = [
    ("[u8; 3]", &[("[0]", Kind::U8), ("[1]", Kind::U8), ("[2]", Kind::U8)]),
    ("[u16; 5]", &[("[0]", Kind::U16), ("[3]", Kind::U16), ("[4]", Kind::U16)]),
    ("[u32; 3]", &[("[0]", Kind::U32), ("[1]", Kind::U32), ("[2]", Kind::U32)]),
    ("[i64; 2]", &[("[0]", Kind::I64), ("[1]", Kind::I64)]),
    ("[f64; 2]", &[("[0]", Kind::F64), ("[1]", Kind::F64)]),
    ("Mixed", &[(".long", Kind::U64), (".float", Kind::F32), (".short[0]", Kind::I16), (".short[1]", Kind::I16)]),
    ("Small", &[(".0", Kind::U8), (".1[0]", Kind::I8), (".1[1]", Kind::I8)]),
    ("Packed", &[(".byte", Kind::U8), (".long", Kind::I64), (".double", Kind::F64), (".word", Kind::U32)]),
    ("Wide", &[(".first", Kind::U128), (".second", Kind::I128)]),
];

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::U8 => "u8",
        Kind::U16 => "u16",
        Kind::U32 => "u32",
        Kind::U64 => "u64",
        Kind::U128 => "u128",
        Kind::I8 => "i8",
        Kind::I16 => "i16",
        Kind::I32 => "i32",
        Kind::I64 => "i64",
        Kind::I128 => "i128",
        Kind::F16 => "f16",
        Kind::Bf16 => "bf16",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
    }
}

fn is_unsigned(kind: Kind) -> bool {
    kind.is_integer() && !kind.is_signed()
}

/// The unsigned integer of the same width.
fn bits_of(kind: Kind) -> Kind {
    match kind.bits() {
        8 => Kind::U8,
        16 => Kind::U16,
        32 => Kind::U32,
        64 => Kind::U64,
        _ => Kind::U128,
    }
}

/// Returns whether `as` goes from one kind to the other.
fn can_cast(from: Kind, to: Kind) -> bool {
    let is_half = |kind| matches!(kind, Kind::F16 | Kind::Bf16);
    match (from, to) {
        _ if is_half(from) || is_half(to) => false,
        (_, Kind::Bool) => from == Kind::Bool,
        (Kind::Bool, _) => to.is_integer(),
        _ => !(from.is_wide() && to.is_float() || from.is_float() && to.is_wide()),
    }
}

/// An expression. The bits of a float that was moved are known, even if it is a NaN; those of a computed NaN are not.
#[derive(Clone)]
struct Expression {
    text: String,
    is_moved: bool,
}

/// A variable in scope, or a scalar of one.
#[derive(Clone)]
struct Variable {
    text: String,
    kind: Kind,
    is_moved: bool,
    is_mutable: bool,
}

/// A function that others can call.
struct Callable {
    name: String,
    arguments: Vec<Kind>,
    result: Kind,
}

struct Writer {
    random: Random,
    variables: Vec<Variable>,
    /// Arrays that a counter can index, with the kind and the number of their elements.
    arrays: Vec<(String, Kind, usize)>,
    callables: Vec<Callable>,
    /// How many names were given so far.
    names: usize,
    /// How many more operations the function may have.
    left: usize,
}

impl Writer {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())].clone()
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn integer_kind(&mut self) -> Kind {
        self.pick(&KINDS[1..11])
    }

    fn literal(&mut self, kind: Kind) -> Expression {
        let of = name(kind);
        let text = match kind {
            Kind::Bool => self.pick(&["true", "false"]).to_owned(),
            Kind::F16 | Kind::Bf16 => format!("{of}::{}", self.pick(&["ONE", "ZERO", "NEG_ONE", "INFINITY", "MAX"])),
            Kind::F32 | Kind::F64 => match self.random.below(4) {
                0 => format!("{of}::{}", self.pick(&["INFINITY", "MAX", "MIN_POSITIVE", "EPSILON", "NAN"])),
                1 => format!("(-{}{of})", self.pick(&["0.0", "1.0", "2.75", "1000000.0"])),
                _ => format!("{}{of}", self.pick(&["0.0", "0.5", "1.0", "3.0", "1e-3", "16777216.0"])),
            },
            _ => match self.random.below(5) {
                0 => format!("{of}::{}", self.pick(&["MAX", "MIN"])),
                1 if kind.is_signed() => format!("(-{}{of})", self.random.below(100)),
                2 => format!("{:#x}{of}", self.random.scalar(kind) & kind.mask() >> 1),
                _ => format!("{}{of}", self.pick(&[0, 1, 2, 3, 5, 7, 8, 10, 31, 33, 63, 64, 100, 127])),
            },
        };
        Expression { text, is_moved: true }
    }

    /// A variable or a literal; of floats one that was moved, if asked.
    fn atom(&mut self, kind: Kind, must_be_moved: bool) -> Expression {
        let fits = |variable: &&Variable| variable.kind == kind && (variable.is_moved || !must_be_moved);
        let variables: Vec<Variable> = self.variables.iter().filter(fits).cloned().collect();
        if !variables.is_empty() && self.random.below(5) != 0 {
            let Variable { text, is_moved, .. } = self.pick(&variables);
            return Expression { text, is_moved };
        }
        if kind == Kind::Bool && self.random.below(8) != 0 {
            let variables = self.variables.clone();
            let Variable { text, kind, .. } = self.pick(&variables);
            let (op, literal) = (self.pick(&["<", ">=", "=="]), self.literal(kind).text);
            return Expression { text: format!("({text} {op} {literal})"), is_moved: true };
        }
        let others: Vec<Variable> = self.variables.iter().filter(|other| can_cast(other.kind, kind)).cloned().collect();
        if !others.is_empty() && !must_be_moved && self.random.below(3) != 0 {
            let other = self.pick(&others);
            return Expression { text: format!("({} as {})", other.text, name(kind)), is_moved: !kind.is_float() };
        }
        self.literal(kind)
    }

    fn expression(&mut self, kind: Kind, depth: usize) -> Expression {
        if depth == 0 || self.left == 0 {
            return self.atom(kind, false);
        }
        self.left -= 1;
        match self.random.below(14) {
            0 => self.atom(kind, false),
            1 => {
                let condition = self.expression(Kind::Bool, depth - 1).text;
                let (yes, no) = (self.expression(kind, depth - 1), self.expression(kind, depth - 1));
                let text = format!("(if {condition} {{ {} }} else {{ {} }})", yes.text, no.text);
                Expression { text, is_moved: yes.is_moved && no.is_moved }
            }
            2 => self.matched(kind, depth - 1),
            3 => {
                let (other, variable) = (self.pick(&KINDS), self.fresh());
                let value = self.expression(other, depth - 1);
                let known = self.variables.len();
                let is_moved = value.is_moved;
                self.variables.push(Variable { text: variable.clone(), kind: other, is_moved, is_mutable: false });
                let result = self.expression(kind, depth - 1);
                self.variables.truncate(known);
                let text = format!("{{ let {variable} = {}; {} }}", value.text, result.text);
                Expression { text: format!("({text})"), is_moved: result.is_moved }
            }
            4 => {
                let fits = |index: &usize| self.callables[*index].result == kind;
                let indices: Vec<usize> = (0..self.callables.len()).filter(fits).collect();
                if indices.is_empty() {
                    return self.operation(kind, depth - 1);
                }
                let index = self.pick(&indices);
                let arguments = self.callables[index].arguments.clone();
                let arguments: Vec<String> =
                    arguments.into_iter().map(|argument| self.expression(argument, depth - 1).text).collect();
                let text = format!("{}({})", self.callables[index].name, arguments.join(", "));
                Expression { text, is_moved: !kind.is_float() }
            }
            _ => self.operation(kind, depth - 1),
        }
    }

    fn matched(&mut self, kind: Kind, depth: usize) -> Expression {
        let of = self.integer_kind();
        let value = self.expression(of, depth).text;
        let arms: Vec<Expression> = (0..4).map(|_| self.expression(kind, depth)).collect();
        let is_moved = arms.iter().all(|arm| arm.is_moved);
        let [a, b, c, d] = [0, 1, 2, 3].map(|arm: usize| &arms[arm].text);
        let text = match self.random.below(3) {
            0 => {
                let flag = self.expression(Kind::Bool, depth).text;
                format!(
                    "match ({value}, {flag}) {{ (0, true) => {a}, (1..=99, _) => {b}, (_, false) => {c}, _ => {d} }}"
                )
            }
            1 => {
                let variable = self.fresh();
                format!(
                    "match {value} {{ 0 | 7 => {a}, 8..=63 => {b}, {variable} if {variable} > 70 => {c}, _ => {d} }}"
                )
            }
            _ => format!("match {value} {{ {of}::MAX => {a}, 2 | 64.. => {b}, 1 => {c}, _ => {d} }}", of = name(of)),
        };
        Expression { text: format!("({text})"), is_moved }
    }

    fn operation(&mut self, kind: Kind, depth: usize) -> Expression {
        match kind {
            Kind::Bool => Expression { text: self.condition(depth), is_moved: true },
            _ if kind.is_float() => self.float(kind, depth),
            _ => Expression { text: self.integer(kind, depth), is_moved: true },
        }
    }

    fn integer(&mut self, kind: Kind, depth: usize) -> String {
        let of = name(kind);
        let a = self.expression(kind, depth).text;
        let choice = self.random.below(20);
        match choice {
            0..=4 => {
                let (op, b) = (self.pick(&["+", "-", "*", "&", "|", "^"]), self.expression(kind, depth).text);
                format!("({a} {op} {b})")
            }
            5 | 6 if !kind.is_wide() => {
                let (op, b) = (self.pick(&["/", "%"]), self.expression(kind, depth).text);
                format!("({a} {op} {b})")
            }
            7 => {
                let (op, by) = (self.pick(&["<<", ">>"]), self.integer_kind());
                format!("({a} {op} {})", self.expression(by, depth).text)
            }
            8 if kind.is_signed() => {
                let form = self.pick(&["(-A)", "A.abs()", "A.signum()"]);
                form.replace('A', &a)
            }
            8 | 9 => {
                let form = self.pick(&["(!A)", "A.wrapping_neg()", "A.swap_bytes()", "A.reverse_bits()"]);
                form.replace('A', &a)
            }
            10 | 11 => {
                let method = self.pick(&[
                    "min",
                    "max",
                    "wrapping_add",
                    "wrapping_sub",
                    "wrapping_mul",
                    "saturating_add",
                    "saturating_sub",
                ]);
                format!("{a}.{method}({})", self.expression(kind, depth).text)
            }
            12 => {
                let (low, high) = (self.expression(kind, depth).text, self.expression(kind, depth).text);
                format!("{a}.clamp({low}, {high})")
            }
            13 => {
                let method = self.pick(&["rotate_left", "rotate_right", "wrapping_shl", "wrapping_shr"]);
                format!("{a}.{method}({})", self.expression(Kind::U32, depth).text)
            }
            14 if kind == Kind::U32 => {
                let of = self.integer_kind();
                let method = self.pick(&["count_ones", "leading_zeros", "trailing_zeros"]);
                format!("{}.{method}()", self.expression(of, depth).text)
            }
            14 | 15 if is_unsigned(kind) => {
                let signed = KINDS[1..11].iter().filter(|of| of.bits() == kind.bits()).copied().collect::<Vec<_>>();
                let of = self.pick(&signed);
                let (a, b) = (self.expression(of, depth).text, self.expression(of, depth).text);
                format!("{a}.abs_diff({b})")
            }
            16 if matches!(kind, Kind::U16 | Kind::U32 | Kind::U64) => {
                let float = self.pick(match kind {
                    Kind::U16 => &[Kind::F16, Kind::Bf16][..],
                    Kind::U32 => &[Kind::F32],
                    _ => &[Kind::F64],
                });
                format!("{}.to_bits()", self.atom(float, true).text)
            }
            17 if kind.bits() > 8 => {
                let smaller = |of: &&Kind| is_unsigned(**of) && of.bits() < kind.bits();
                let smaller = KINDS.iter().filter(smaller).copied().collect::<Vec<_>>();
                let from = self.pick(&smaller);
                format!("{of}::from({})", self.expression(from, depth).text)
            }
            _ => {
                let from = KINDS.iter().filter(|from| can_cast(**from, kind)).copied().collect::<Vec<_>>();
                let from = self.pick(&from);
                format!("({} as {of})", self.expression(from, depth).text)
            }
        }
    }

    fn float(&mut self, kind: Kind, depth: usize) -> Expression {
        let (of, is_half) = (name(kind), kind.bits() == 16);
        let a = self.expression(kind, depth);
        let computed = |text: String| Expression { text, is_moved: false };
        match self.random.below(14) {
            0..=3 => {
                let (op, b) = (self.pick(&["+", "-", "*", "/"]), self.expression(kind, depth).text);
                computed(format!("({} {op} {b})", a.text))
            }
            4 => Expression { text: format!("(-{})", a.text), is_moved: a.is_moved },
            5 => {
                let (method, b) = (self.pick(&["min", "max"]), self.expression(kind, depth).text);
                computed(format!("{}.{method}({b})", a.text))
            }
            6 => {
                let (low, high) = (self.expression(kind, depth).text, self.expression(kind, depth).text);
                computed(format!("{}.clamp({low}, {high})", a.text))
            }
            7 => {
                let sign = self.atom(kind, true).text;
                Expression { text: format!("{}.copysign({sign})", a.text), is_moved: a.is_moved }
            }
            8 => {
                let bits = self.expression(bits_of(kind), depth).text;
                Expression { text: format!("{of}::from_bits({bits})"), is_moved: true }
            }
            9 => computed(format!("{}.signum()", a.text)),
            _ if is_half => computed(format!("{of}::from_f32({})", self.expression(Kind::F32, depth).text)),
            10 => Expression { text: format!("{}.abs()", a.text), is_moved: a.is_moved },
            11 => {
                let method = self.pick(&["sqrt", "floor", "ceil", "trunc", "round_ties_even", "recip"]);
                computed(format!("{}.{method}()", a.text))
            }
            12 => {
                let (b, c) = (self.expression(kind, depth).text, self.expression(kind, depth).text);
                computed(format!("{}.mul_add({b}, {c})", a.text))
            }
            _ if kind == Kind::F32 && self.random.below(3) == 0 => {
                let half = self.pick(&[Kind::F16, Kind::Bf16]);
                computed(format!("{}.to_f32()", self.expression(half, depth).text))
            }
            _ => {
                let from = KINDS.iter().filter(|from| can_cast(**from, kind)).copied().collect::<Vec<_>>();
                let from = self.pick(&from);
                computed(format!("({} as {of})", self.expression(from, depth).text))
            }
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let kind = self.pick(&KINDS);
        let of = |writer: &mut Self, kind: Kind| writer.expression(kind, depth).text;
        match self.random.below(10) {
            0..=2 => {
                let (op, a, b) = (self.pick(&["==", "!=", "<", "<=", ">", ">="]), of(self, kind), of(self, kind));
                format!("({a} {op} {b})")
            }
            3 => {
                let (other, op) = (self.pick(&KINDS), self.pick(&["==", "!=", "<", "<=", ">", ">="]));
                let [a, c] = [(); 2].map(|()| of(self, kind));
                let [b, d] = [(); 2].map(|()| of(self, other));
                format!("(({a}, {b}) {op} ({c}, {d}))")
            }
            4 => {
                let (op, [a, b, c, d]) = (self.pick(&["==", "<", ">="]), [(); 4].map(|()| of(self, kind)));
                format!("([{a}, {b}] {op} [{c}, {d}])")
            }
            5 => {
                let (op, [a, b]) = (self.pick(&["&&", "||", "&", "|", "^"]), [(); 2].map(|()| of(self, Kind::Bool)));
                format!("({a} {op} {b})")
            }
            6 => format!("(!{})", of(self, Kind::Bool)),
            7 => {
                let kind = self.integer_kind();
                let other = self.integer_kind();
                let ([a, b], [c, d]) = ([(); 2].map(|()| of(self, kind)), [(); 2].map(|()| of(self, other)));
                let end = self.pick(&["is_lt()", "is_ge()", "is_eq()", "reverse().is_gt()", "is_ne()"]);
                format!("{a}.cmp(&{b}).then({c}.cmp(&{d})).{end}")
            }
            8 => {
                let kind = self.pick(&KINDS[11..]);
                match self.random.below(3) {
                    0 => {
                        let (a, b) = (self.atom(kind, true).text, self.atom(kind, true).text);
                        format!("{a}.total_cmp(&{b}).is_lt()")
                    }
                    1 => {
                        let method = self.pick(&["is_sign_negative", "is_sign_positive"]);
                        format!("{}.{method}()", self.atom(kind, true).text)
                    }
                    _ => {
                        let method = self.pick(&["is_nan", "is_finite", "is_infinite"]);
                        format!("{}.{method}()", of(self, kind))
                    }
                }
            }
            _ => {
                let kind = self.integer_kind();
                let method =
                    if kind.is_signed() { self.pick(&["is_negative", "is_positive"]) } else { "is_power_of_two" };
                format!("{}.{method}()", of(self, kind))
            }
        }
    }

    /// Writes the statements of a function.
    fn statements(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.random.below(4) {
            let kind = self.pick(&KINDS);
            match self.random.below(8) {
                0 => {
                    let (other, open, close) = match self.random.below(2) {
                        0 => (self.pick(&KINDS), '(', ')'),
                        _ => (kind, '[', ']'),
                    };
                    let (a, b) = (self.expression(kind, 2), self.expression(other, 2));
                    let [x, y] = [(); 2].map(|()| self.fresh());
                    let _ = writeln!(text, "    let {open}{x}, {y}{close} = {open}{}, {}{close};", a.text, b.text);
                    for (name, kind, value) in [(x, kind, a), (y, other, b)] {
                        let is_moved = value.is_moved;
                        self.variables.push(Variable { text: name, kind, is_moved, is_mutable: false });
                    }
                }
                1 | 2 => text += &self.looped(),
                3 => {
                    let mutable: Vec<usize> =
                        (0..self.variables.len()).filter(|index| self.variables[*index].is_mutable).collect();
                    if mutable.is_empty() {
                        continue;
                    }
                    let index = self.pick(&mutable);
                    let Variable { text: variable, kind, .. } = self.variables[index].clone();
                    let op = match kind {
                        Kind::Bool => self.pick(&["=", "&=", "|=", "^="]),
                        _ if kind.is_float() => self.pick(&["=", "+=", "-=", "*=", "/="]),
                        _ => self.pick(&["=", "+=", "-=", "*=", "&=", "|=", "^="]),
                    };
                    let _ = writeln!(text, "    {variable} {op} {};", self.expression(kind, 2).text);
                }
                4 => {
                    let value = self.expression(kind, 3).text;
                    let variable = self.fresh();
                    let _ = writeln!(text, "    let mut {variable}: {} = {value};", name(kind));
                    let is_moved = !kind.is_float();
                    self.variables.push(Variable { text: variable, kind, is_moved, is_mutable: true });
                }
                _ => {
                    let (value, variable) = (self.expression(kind, 3), self.fresh());
                    let _ = writeln!(text, "    let {variable} = {};", value.text);
                    let is_moved = value.is_moved;
                    self.variables.push(Variable { text: variable, kind, is_moved, is_mutable: false });
                }
            }
        }
        text
    }

    /// Writes a loop over a variable of its own, with a counter and an array if there is one.
    fn looped(&mut self) -> String {
        let kind = self.integer_kind();
        let (start, variable, of) = (self.expression(kind, 2).text, self.fresh(), name(kind));
        let mut count = 1 + self.random.below(4);
        let mut step = format!("(i as {of})");
        if !self.arrays.is_empty() {
            let arrays = self.arrays.clone();
            let (array, element, len) = self.pick(&arrays);
            count = count.min(len);
            if can_cast(element, kind) {
                step = format!("({array}[i] as {of})");
            }
        }
        let known = self.variables.len();
        self.variables.push(Variable { text: variable.clone(), kind, is_moved: true, is_mutable: true });
        let value = self.expression(kind, 2).text;
        let (op, range) = (self.pick(&["+", "-", "*", "^"]), self.pick(&["0..N", "(0..N).rev()", "0..=N - 1"]));
        let range = range.replace('N', &count.to_string());
        let mut text = format!("    let mut {variable} = {start};\n    for i in {range} {{\n");
        let _ = writeln!(text, "        {variable} = {value} {op} {step};");
        if self.random.below(2) == 0 {
            let _ = writeln!(text, "        if i % 2 == 1 {{ {variable} += {step}; }} else {{ {variable} ^= 5; }}");
        }
        let _ = writeln!(text, "        {variable} = {variable} << i;\n    }}");
        self.variables.truncate(known);
        self.variables.push(Variable { text: variable, kind, is_moved: true, is_mutable: true });
        text
    }

    /// Makes the scalars of a value known.
    fn add_scalars(&mut self, value: &str, scalars: &[(&str, Kind)]) {
        for &(path, kind) in scalars {
            let text = format!("{value}{path}");
            self.variables.push(Variable { text, kind, is_moved: true, is_mutable: false });
        }
    }

    fn result(&mut self, of: &str) -> String {
        let mut value = |kind: Kind| self.expression(kind, 3).text;
        match of {
            "[u8; 3]" => format!("[{}; 3]", value(Kind::U8)),
            "[u16; 5]" => format!("[{}, {}, 3, 65535, {}]", value(Kind::U16), value(Kind::U16), value(Kind::U16)),
            "[u32; 3]" => format!("[{}, {}, {}]", value(Kind::U32), value(Kind::U32), value(Kind::U32)),
            "[i64; 2]" => format!("[{}, {}]", value(Kind::I64), value(Kind::I64)),
            "[f64; 2]" => format!("[{}, {}]", value(Kind::F64), value(Kind::F64)),
            "Mixed" => format!(
                "Mixed {{ float: {}, long: {}, short: [{}, {}] }}",
                value(Kind::F32),
                value(Kind::U64),
                value(Kind::I16),
                value(Kind::I16)
            ),
            "Small" => format!("Small({}, [{}, {}])", value(Kind::U8), value(Kind::I8), value(Kind::I8)),
            "Packed" => format!(
                "Packed {{ byte: {}, long: {}, double: {}, word: {} }}",
                value(Kind::U8),
                value(Kind::I64),
                value(Kind::F64),
                value(Kind::U32)
            ),
            "Wide" => format!("Wide {{ first: {}, second: {} }}", value(Kind::U128), value(Kind::I128)),
            scalar => value(*KINDS.iter().find(|kind| name(**kind) == scalar).expect("a scalar")),
        }
    }

    /// Writes a function. Returns its text and the number of its arguments.
    fn function(&mut self, own_name: &str, state: Option<&str>) -> (String, usize) {
        self.variables.clear();
        self.arrays.clear();
        self.names = 0;
        self.left = 8 + self.random.below(16);
        let (mut parameters, mut kinds, mut first) = (Vec::new(), Vec::new(), String::new());
        for argument in ["a", "b", "c"].into_iter().take(1 + self.random.below(3)) {
            if self.random.below(3) > 0 {
                let kind = self.pick(&KINDS);
                parameters.push(format!("{argument}: {}", name(kind)));
                self.add_scalars(argument, &[("", kind)]);
                kinds.push(kind);
                continue;
            }
            let (of, scalars) = self.pick(&COMPOSITES);
            parameters.push(format!("{argument}: {of}"));
            if of == "Packed" {
                // Methods borrow, which the fields of a packed struct cannot be.
                for (path, kind) in scalars {
                    let variable = format!("{argument}_{}", &path[1..]);
                    let _ = writeln!(first, "    let {variable} = {argument}{path};");
                    self.add_scalars(&variable, &[("", *kind)]);
                }
            } else {
                self.add_scalars(argument, scalars);
            }
            if of.starts_with('[') {
                let len = of.trim_end_matches(']').rsplit(' ').next().and_then(|len| len.parse().ok());
                self.arrays.push((argument.to_owned(), scalars[0].1, len.expect("a length")));
            }
        }
        if let Some(state) = state {
            let scalars = COMPOSITES.iter().find(|(of, _)| *of == state).expect("a composite type").1;
            for (path, kind) in scalars {
                let variable = format!("state_{}", path[1..].replace(['[', ']'], ""));
                let _ = writeln!(first, "    let {variable} = self{path};");
                self.add_scalars(&variable, &[("", *kind)]);
            }
        }
        let scalar = self.pick(&KINDS);
        let result = if self.random.below(4) == 0 { self.pick(&COMPOSITES).0 } else { name(scalar) };
        let statements = self.statements();
        self.left += 10;
        let value = self.result(result);
        let (count, this) = (parameters.len(), if state.is_some() { "self, " } else { "" });
        let parameters = parameters.join(", ");
        let text = format!("fn {own_name}({this}{parameters}) -> {result} {{\n{first}{statements}    {value}\n}}\n");
        if kinds.len() == count && result == name(scalar) && state.is_none() {
            self.callables.push(Callable { name: own_name.to_owned(), arguments: kinds, result: scalar });
        }
        (text, count)
    }
}

/// Returns the file of a seed.
pub(super) fn file(seed: u64) -> String {
    let mut writer = Writer {
        random: Random::new(seed),
        variables: Vec::new(),
        arrays: Vec::new(),
        callables: Vec::new(),
        names: 0,
        left: 0,
    };
    let mut text = format!(
        "// Written by `writer.rs` from the seed {seed}. Do not edit.\n\nuse super::Case;\nuse super::operands::{{Mixed, Operand, \
         Packed, Small, Wide}};\nuse crate::operator;\nuse half::{{bf16, f16}};\n"
    );
    let mut cases = String::new();
    let operands =
        |count: usize| (0..count).map(|number| format!("Operand::of(o[{number}])")).collect::<Vec<_>>().join(", ");
    for number in 0..FUNCTIONS {
        let own_name = format!("w{number}");
        let (function, count) = writer.function(&own_name, None);
        let _ = write!(text, "\n#[operator]\n{function}");
        let _ = writeln!(
            cases,
            "    cases.push(Case::new(\"written_{number}\".to_owned(), &{own_name}::recorded(), |o, _| {own_name}({}).bytes()));",
            operands(count)
        );
    }
    for (group, state) in ["Mixed", "Packed"].into_iter().enumerate() {
        let _ = writeln!(text, "\n#[operator]\nimpl {state} {{");
        let _ = writeln!(cases, "    let recorded = {state}::recorded();");
        for number in (0..WITH_STATE).map(|number| FUNCTIONS + group * WITH_STATE + number) {
            let own_name = format!("w{number}");
            let (function, count) = writer.function(&own_name, Some(state));
            let _ = write!(text, "{function}");
            let _ = writeln!(
                cases,
                "    cases.push(Case::of(\"written_{number}\".to_owned(), recorded.function(\"{own_name}\").unwrap(), \
                 |o, s| <{state} as Operand>::of(s).{own_name}({}).bytes()));",
                operands(count)
            );
        }
        let _ = writeln!(text, "}}");
    }
    let _ = write!(text, "\n/// Appends the functions.\npub(super) fn append(cases: &mut Vec<Case>) {{\n{cases}}}\n");
    text
}

#[test]
fn the_written_functions_are_those_of_the_seed() {
    let asked = std::env::var("GPU_OPERATOR_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let expected = file(asked.unwrap_or(SEED));
    let found = include_str!("written.rs");
    if asked.is_some() && found != expected {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/written.rs");
        std::fs::write(path, expected).expect("a file that can be written");
        panic!("{path} is written anew: run the tests again");
    }
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "`writer.rs` writes another file: run this test with GPU_OPERATOR_SEED={SEED}");
    }
    assert_eq!(
        found.len(),
        expected.len(),
        "`writer.rs` writes another file: run this test with GPU_OPERATOR_SEED={SEED}"
    );
}
