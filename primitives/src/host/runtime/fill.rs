//! OperatorBody the holes of a kernel: its PTX with an operator's body in the place of each hole.

use crate::form::Holes;
use crate::hole::{Body, OperatorBody};
use crate::host::error::Error;
use crate::host::load::LoadCode;
use crate::operator::{Function, Operands, State, Width, Word};
use std::any::TypeId;
use std::collections::HashMap;

/// The operators among the arguments of a kernel, and where they are, in bytes from the beginning.
#[derive(Clone, Copy, Default)]
pub(crate) struct Operators([Option<(&'static OperatorBody, usize)>; Holes::MAX]);

impl Operators {
    /// Looks up the operator of each hole.
    pub fn new(holes: Holes, filling: impl Fn(usize) -> &'static OperatorBody) -> Self {
        let mut operators = Self::default();
        for (operator, &offset) in operators.0.iter_mut().zip(holes.offsets()) {
            *operator = Some((filling(offset), offset));
        }
        operators
    }

    /// Returns the same operators for the holes of another kernel, if it has as many.
    pub fn moved_to(self, holes: Holes) -> Option<Self> {
        let count = self.0.iter().flatten().count();
        let mut moved = Self::default();
        for ((to, from), &offset) in moved.0.iter_mut().zip(self.0).zip(holes.offsets()) {
            *to = from.map(|(filling, _)| (filling, offset));
        }
        (count == holes.offsets().len()).then_some(moved)
    }

    /// Records the functions that are not recorded yet. This runs code of their authors, so the caller holds no lock.
    ///
    /// # Errors
    /// [`Error::Unrecordable`].
    pub fn record(self) -> Result<(), Error> {
        self.0.into_iter().flatten().try_for_each(|(filling, _)| record(filling))
    }

    /// Returns what tells these operators from others.
    pub fn ids(self) -> [Option<TypeId>; Holes::MAX] {
        self.0.map(|operator| operator.map(|(filling, _)| (filling.operator)()))
    }
}

/// Records the functions of an operator that are not recorded yet: see [`Operators::record`].
///
/// # Errors
/// [`Error::Unrecordable`].
pub(crate) fn record(filling: &OperatorBody) -> Result<(), Error> {
    match filling.body {
        Body::Recorded(recipe) => recipe.function().map(drop),
        Body::Load(write) => write(&mut LoadCode::new(PARAMETER, 0, "%index", None)).map(drop),
    }
}

/// The name of the only parameter of a kernel, as `gpu-kernel-builder` writes it.
const PARAMETER: &str = "p0";

/// An operator, ready to be written.
enum Part {
    Function(&'static Function),
    Load(fn(&mut LoadCode) -> Result<Vec<Word>, Error>),
}

/// Returns the text of a kernel with its holes filled, or what is wrong with it.
pub(crate) fn fill(ptx: String, operators: Operators) -> Result<String, String> {
    let mut parts = Vec::new();
    for (filling, offset) in operators.0.into_iter().flatten() {
        let part = match filling.body {
            Body::Load(write) => Part::Load(write),
            Body::Recorded(recipe) => Part::Function(recipe.function().map_err(|error| error.to_string())?),
        };
        parts.push((filling.function, offset, part));
    }
    if parts.is_empty() {
        return Ok(ptx);
    }
    let constants = constants(&ptx);
    let mut text = String::with_capacity(2 * ptx.len());
    for line in ptx.lines() {
        match line.trim_start().strip_prefix("hole.") {
            Some(hole) => {
                let line = Line::parse(hole)?;
                let part = parts.iter().find(|(function, ..)| *function == line.function);
                let (_, offset, part) = part.ok_or_else(|| format!("no operator was given for `hole.{hole}`"))?;
                text.push_str(&match part {
                    Part::Function(function) => line.call(*offset, function)?,
                    Part::Load(write) => line.load(*offset, *write, &constants)?,
                });
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    Ok(text)
}

/// Returns the registers that have a constant, which nothing uses but the holes that load: the offsets of rows.
fn constants(ptx: &str) -> HashMap<&str, u64> {
    let mut constants = HashMap::new();
    let is_load = |line: &str| line.trim_start().starts_with("hole.load");
    for line in ptx.lines().filter(|line| is_load(line)) {
        let offset = line.trim_end().trim_end_matches(';').rsplit(',').next().map_or("", str::trim);
        constants.insert(offset, None);
    }
    for line in ptx.lines().filter(|line| !is_load(line)) {
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || "_%$".contains(c);
        let moved = line.trim().strip_prefix("mov.b64").and_then(|line| line.trim_end_matches(';').split_once(','));
        for name in line.split(|c: char| !is_in_name(c)).filter(|name| name.starts_with('%')) {
            if let Some(known) = constants.get_mut(name) {
                let value = moved.filter(|(to, _)| to.trim() == name).and_then(|(_, value)| value.trim().parse().ok());
                // Another value, or another use: not a constant.
                match (value, *known) {
                    (Some(value), None) => *known = Some(value),
                    _ => *known = Some(NOT_CONSTANT),
                }
            }
        }
    }
    let constants = constants.into_iter().filter_map(|(name, value)| Some((name, value?)));
    constants.filter(|&(_, value)| value < NOT_CONSTANT).collect()
}

/// More than any offset.
const NOT_CONSTANT: u64 = 1 << 24;

/// Returns whether a kernel has holes for a function of elements of `bytes` bytes.
pub(crate) fn has_hole_for(ptx: &str, function: &str, bytes: usize) -> bool {
    let holes = ptx.lines().filter_map(|line| line.trim_start().strip_prefix("hole.")?.split_once(' '));
    // An element is held in the smallest type with room for it. Not all kernels exist for types of one and two bytes.
    let shapes: &[&str] = match bytes {
        1 => &["b8x1", "b32x1"],
        2 => &["b16x1", "b32x1"],
        3..=4 => &["b32x1"],
        5..=8 => &["b64x1"],
        9..=12 => &["b32x3"],
        13..=16 => &["b64x2"],
        _ => &["b64x4"],
    };
    let mut names = holes.map(|(name, _)| name);
    names
        .next()
        .and_then(|name| name.strip_prefix(function)?.rsplit_once('.'))
        .is_some_and(|(_, shape)| shapes.contains(&shape))
}

/// A hole, which is written `function.result.argument registers;`. A number after the function says that
/// there are so many results, in a row.
struct Line<'a> {
    text: &'a str,
    function: &'a str,
    row: Option<usize>,
    result: Shape,
    argument: Shape,
    results: Vec<&'a str>,
    arguments: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let parse = || {
            let (name, registers) = text.trim_end().strip_suffix(';')?.split_once(' ')?;
            let mut parts = name.split('.');
            let (name, result, argument) = (parts.next()?, shape(parts.next()?)?, shape(parts.next()?)?);
            let function = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
            let row = if function == name { None } else { Some(name[function.len()..].parse().ok()?) };
            let words = row.unwrap_or(1) * result.words;
            let mut results: Vec<&str> = registers.split(',').map(str::trim).collect();
            if parts.next().is_some() || results.len() < words {
                return None;
            }
            let arguments = results.split_off(words);
            Some(Self { text, function, row, result, argument, results, arguments })
        };
        parse().ok_or_else(|| format!("`hole.{text}` is not a hole"))
    }

    fn malformed(&self) -> String {
        format!("`hole.{}` is not a hole", self.text)
    }

    /// Returns the body of a function whose state begins at byte `state` of the arguments.
    fn call(&self, state: usize, function: &Function) -> Result<String, String> {
        if self.row.is_some() || self.arguments.len() != self.argument.words * function.arguments().len() {
            return Err(self.malformed());
        }
        let words = |size: usize, shape: Shape, registers: &[&str]| {
            // Beyond the type's own size, a register holds nothing of it.
            Word::list(size.min(shape.words * shape.width.bytes()), shape.width, |word| registers[word].to_owned())
        };
        let arguments = function.arguments().iter().zip(self.arguments.chunks(self.argument.words));
        let written = words(function.result().size, self.result, &self.results);
        let zeros = &self.results[written.len()..];
        let operands = Operands {
            arguments: arguments.map(|(layout, registers)| words(layout.size, self.argument, registers)).collect(),
            result: written,
            state: Some(State { parameter: PARAMETER.to_owned(), offset: state }),
        };
        let mut body = function.ptx(&operands);
        for register in zeros {
            let bits = 8 * self.result.width.bytes();
            body.push_str(&format!("\nmov.b{bits} {register}, 0;"));
        }
        Ok(body)
    }

    /// Returns the code that loads elements of a source, which begins at byte `source` of the arguments. The arguments are the index
    /// of an element and, for a row, the offset from there.
    fn load(
        &self,
        source: usize,
        write: fn(&mut LoadCode) -> Result<Vec<Word>, Error>,
        constants: &HashMap<&str, u64>,
    ) -> Result<String, String> {
        let (index, offset) = match self.arguments[..] {
            [index] if self.row.is_none() => (index, None),
            [index, offset] if self.row.is_some() => (index, Some(offset)),
            _ => return Err(self.malformed()),
        };
        let mut code = LoadCode::new(PARAMETER, source, index, self.row);
        match offset.map(|offset| (offset, constants.get(offset))) {
            Some((_, Some(&offset))) => code.skip(offset),
            Some((register, None)) => code.skip_by(register),
            None => {}
        }
        for (lane, results) in self.results.chunks(self.result.words).enumerate() {
            code.select(lane);
            let words = write(&mut code).map_err(|error| error.to_string())?;
            code.store(&words, self.result.width, results);
        }
        Ok(code.finish())
    }
}

/// The registers of an argument or of a result.
#[derive(Clone, Copy)]
struct Shape {
    width: Width,
    words: usize,
}

/// Reads `b64x2`. Elements of fewer than 32 bits have a register of 32.
fn shape(text: &str) -> Option<Shape> {
    let (bits, words) = text.strip_prefix('b')?.split_once('x')?;
    let width = match bits {
        "8" | "16" | "32" => Width::B32,
        "64" => Width::B64,
        _ => return None,
    };
    Some(Shape { width, words: words.parse().ok().filter(|words| (1..=4).contains(words))? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::compare::{HoleOrder, Less};
    use crate::host::preload::instances;
    use crate::host::source::{Source, constant, counting, map, map2, map3, strided};
    use crate::monoid::{HoleMonoid, Sum};
    use crate::operator::map;

    fn order() -> Operators {
        Operators::new(Holes::FIRST, |_| HoleOrder::filling::<u32, Less>())
    }

    #[test]
    fn a_hole_becomes_the_body() {
        let text = fill("a;\n\thole.less.b32x1.b32x1 %r3, %r1, %r2;\nb;\n".to_owned(), order()).unwrap();
        assert!(text.starts_with("a;\n{\n") && text.ends_with("}\nb;\n"), "{text}");
        assert!(text.contains("setp.lt.u32") && text.contains("%r3"), "{text}");
    }

    #[test]
    fn offsets_of_rows_are_constants_where_nothing_else_uses_them() {
        let row = "\thole.load2.b64x1.b64x1 %rd1, %rd2, %rd3, %rd4;\n";
        let constant = "\tmov.b64 \t%rd4, 128;\n";
        assert_eq!(constants(&format!("{constant}{row}{row}")).get("%rd4"), Some(&128));
        for other in ["", "\tmov.b64 \t%rd4, %rd5;\n", "\tadd.s64 \t%rd4, %rd4, 1;\n", "\tmov.b64 \t%rd4, 64;\n"] {
            let ptx = if other.is_empty() { row.to_owned() } else { format!("{constant}{row}{other}") };
            assert_eq!(constants(&ptx).get("%rd4"), None, "{ptx}");
        }
        // The index is no offset, even if it is a constant; nor is a register whose name is longer.
        assert!(constants(&format!("\tmov.b64 \t%rd3, 128;\n{row}")).is_empty());
        assert_eq!(constants(&format!("{constant}\tmov.b64 \t%rd40, 64;\n{row}")).len(), 1);
    }

    #[test]
    fn a_hole_is_for_a_function_and_a_size() {
        let ptx = "ret;\n\thole.less.b32x1.b64x2 %r1,%rd1,%rd2,%rd3,%rd4;\n";
        for (function, bytes, is_for) in
            [("less", 16, true), ("less", 13, true), ("less", 8, false), ("test", 16, false)]
        {
            assert_eq!(has_hole_for(ptx, function, bytes), is_for, "{function} {bytes}");
        }
        assert!(!has_hole_for("ret;\n", "less", 4));
    }

    /// What a GPU's assembler makes of kernels that read from sources of all kinds.
    #[test]
    fn sources_are_assembled() {
        let Some(ptxas) = std::env::var_os("PTXAS") else { return };
        let stream = Device::cpu().stream().unwrap();
        let bytes = stream.zeroed::<[u8; 3]>(8).unwrap();
        let (words, longs) = (stream.zeroed::<u32>(8).unwrap(), stream.zeroed::<[u64; 3]>(8).unwrap());
        let mut texts = Vec::new();
        macro_rules! check {
            ($($kernel:literal: $source:expr;)*) => { $(
                let fused = $source.into_parts().unwrap().lower().open(&stream).unwrap().fused();
                let instance = instances().find(|instance| instance.name() == $kernel).expect($kernel);
                // The source is the first argument.
                let filling = |offset| if offset == 0 { fused.filling() } else { HoleMonoid::<u32>::filling::<u32, Sum>() };
                texts.push(fill(instance.ptx(), Operators::new(instance.holes(), filling)).unwrap());
            )* };
        }
        check! {
            "transform_tiles_u32": bytes.as_slice();
            "transform_tiles_u8": map(&words, map!(|x: u32| -> u8 { x as u8 }));
            "transform_tiles_u16": constant(5u16, 8);
            "transform_tiles_u32x3": constant([1u32, 2, 3], 8);
            "transform_tiles_u64": counting(3u64, 8);
            "transform_tiles_u64x4": longs.as_slice();
            "transform_tiles_u64x2": map3(
                map(&bytes, map!(|x: [u8; 3]| -> f32 { x[0] as f32 / x[2] as f32 })),
                counting(0i16, 8),
                map(&longs, map!(mask: u64 = 7; |x: [u64; 3]| -> u64 { x[1] & mask })),
                map!(factor: f32 = 2.0; |a: f32, b: i16, c: u64| -> [u64; 2] { [(a * factor) as u64, c ^ b as u64] })
            );
            "reduce_tiles_u32_source_arg_hole_monoid_u32_4_9": map2(&words, &words, map!(|a: u32, b: u32| -> u32 { a * b }));
            "scan_tiles_u32_source_arg_hole_monoid_u32_256_4_9": counting(1u32, 8);
            "reduce_tiles_u32_source_arg_hole_monoid_u32_4_9": strided(&words, 3, 5);
        }
        for (number, text) in texts.iter().enumerate() {
            let file = std::env::temp_dir().join(format!("gpu-primitives-source-{}-{number}.ptx", std::process::id()));
            std::fs::write(&file, text).unwrap();
            for gpu in ["sm_75", "sm_90", "sm_120"] {
                let mut assembler = std::process::Command::new(&ptxas);
                let output =
                    assembler.arg(format!("-arch={gpu}")).args(["-o", "/dev/null"]).arg(&file).output().unwrap();
                assert!(output.status.success(), "{gpu}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
            }
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn what_is_not_a_hole_is_an_error() {
        for (line, message) in [
            ("hole.less.b32x1 %r3, %r1, %r2;", "is not a hole"),
            ("hole.less.b32x1.b32x1 %r3, %r1;", "is not a hole"),
            ("hole.less.b32x1.b32x9 %r3, %r1, %r2;", "is not a hole"),
            ("hole.more.b32x1.b32x1 %r3, %r1, %r2;", "no operator was given"),
        ] {
            assert!(fill(line.to_owned(), order()).unwrap_err().contains(message), "{line}");
        }
    }
}
