//! Filling the holes of a kernel: its PTX with an operator's body in the place of each hole.

use crate::hole::{Filling, MAX_STATE};
use crate::operator::{Function, Operands, State, Width, Word};

/// An operator among the arguments of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Filled {
    pub filling: &'static Filling,
    /// Where the operator's state is, in bytes from the beginning of the arguments.
    pub offset: usize,
}

/// The name of the only parameter of a kernel, as `gpu-kernel-builder` writes it.
const PARAMETER: &str = "p0";

/// Returns the text of a kernel with its holes filled, or what is wrong with it.
pub(crate) fn fill(ptx: String, filled: Option<Filled>) -> Result<String, String> {
    let Some(filled) = filled else { return Ok(ptx) };
    let function = filled.filling.record();
    // `#[operator]` cannot record more, but a function that was written by hand might.
    if let Some(state) = function.state().filter(|state| state.size > MAX_STATE) {
        return Err(format!("the state `{}` has {} bytes, but at most {MAX_STATE} are passed", state.name, state.size));
    }
    let mut text = String::with_capacity(2 * ptx.len());
    for line in ptx.lines() {
        match line.trim_start().strip_prefix("hole.") {
            Some(hole) => text.push_str(&body(hole, filled.offset, &function)?),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    Ok(text)
}

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

/// Returns the body for a hole, which is written `function.result.argument registers;`.
fn body(hole: &str, state: usize, function: &Function) -> Result<String, String> {
    let malformed = || format!("`hole.{hole}` is not a hole");
    let (name, registers) =
        hole.trim_end().strip_suffix(';').and_then(|hole| hole.split_once(' ')).ok_or_else(malformed)?;
    let mut parts = name.split('.');
    let (Some(name), Some(result), Some(argument), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    let (result, argument) = (shape(result).ok_or_else(malformed)?, shape(argument).ok_or_else(malformed)?);
    if function.name() != name {
        return Err(format!("no operator was given for `hole.{hole}`"));
    }
    let registers: Vec<&str> = registers.split(',').map(str::trim).collect();
    if registers.len() != result.words + argument.words * function.arguments().len() {
        return Err(malformed());
    }
    let (results, arguments) = registers.split_at(result.words);
    let words = |size: usize, shape: Shape, registers: &[&str]| {
        // Beyond the type's own size, a register holds nothing of it.
        Word::list(size.min(shape.words * shape.width.bytes()), shape.width, |word| registers[word].to_owned())
    };
    let arguments = function.arguments().iter().zip(arguments.chunks(argument.words));
    let written = words(function.result().size, result, results);
    let zeros = &results[written.len()..];
    let operands = Operands {
        arguments: arguments.map(|(layout, registers)| words(layout.size, argument, registers)).collect(),
        result: written,
        state: Some(State { parameter: PARAMETER.to_owned(), offset: state }),
    };
    let mut body = function.ptx(&operands);
    for register in zeros {
        let bits = 8 * result.width.bytes();
        body.push_str(&format!("\nmov.b{bits} {register}, 0;"));
    }
    Ok(body)
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
    use crate::compare::{HoleOrder, Less};

    fn order() -> Option<Filled> {
        Some(Filled { filling: HoleOrder::filling::<u32, Less>(), offset: 0 })
    }

    #[test]
    fn a_hole_becomes_the_body() {
        let text = fill("a;\n\thole.less.b32x1.b32x1 %r3, %r1, %r2;\nb;\n".to_owned(), order()).unwrap();
        assert!(text.starts_with("a;\n{\n") && text.ends_with("}\nb;\n"), "{text}");
        assert!(text.contains("setp.lt.u32") && text.contains("%r3"), "{text}");
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
