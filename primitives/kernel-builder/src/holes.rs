//! Holes in kernels: lines like `hole.less.b32x1.b64x2 %r7, %rd1, %rd2, %rd3, %rd4;`, which gpu-primitives replaces by an
//! operator's body when it loads the kernel. No assembler knows them, so a sample takes their place for checks.

use std::borrow::Cow;

/// Returns the text with a small body in the place of each hole: unsigned order by words, sums of words, copies.
pub fn fill_with_samples(ptx: &str) -> Cow<'_, str> {
    if !ptx.contains("hole.") {
        return Cow::Borrowed(ptx);
    }
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match line.trim_start().strip_prefix("hole.").and_then(sample) {
            Some(body) => text.push_str(&body),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    Cow::Owned(text)
}

/// Returns a body for `function.result.argument registers;`. A number after the function says how many results are in a row.
fn sample(hole: &str) -> Option<String> {
    let (name, registers) = hole.trim_end().strip_suffix(';')?.split_once(' ')?;
    let mut parts = name.split('.');
    let (name, result, argument) = (parts.next()?, shape(parts.next()?)?, shape(parts.next()?)?);
    let function = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let row = if function == name { None } else { Some(name[function.len()..].parse::<usize>().ok()?) };
    let registers: Vec<&str> = registers.split(',').map(str::trim).collect();
    let (results, arguments) = registers.split_at_checked(row.unwrap_or(1) * result.words)?;
    let bits = argument.bits;
    let mut body = String::from("{ .reg .pred %sample<2>; ");
    match (function, arguments.split_at_checked(argument.words)?) {
        ("less", (a, b)) => {
            body += &format!("setp.lt.u{bits} %sample0, {}, {}; ", a[0], b.first()?);
            for (a, b) in a.iter().zip(b).skip(1) {
                body += &format!("setp.eq.u{bits} %sample1, {a}, {b}; and.pred %sample0, %sample0, %sample1; ");
                body += &format!("setp.lt.u{bits} %sample1, {a}, {b}; or.pred %sample0, %sample0, %sample1; ");
            }
            body += &format!("selp.u32 {}, 1, 0, %sample0; ", results[0]);
        }
        ("equal", (a, b)) => {
            body += &format!("setp.eq.u{bits} %sample0, {}, {}; ", a[0], b.first()?);
            for (a, b) in a.iter().zip(b).skip(1) {
                body += &format!("setp.eq.u{bits} %sample1, {a}, {b}; and.pred %sample0, %sample0, %sample1; ");
            }
            body += &format!("selp.u32 {}, 1, 0, %sample0; ", results[0]);
        }
        ("load", ([index], offset)) => {
            // An access to global memory, like that of a slice.
            body += &format!(".reg .b64 %address; shl.b64 %address, {index}, 3; ");
            if let [offset] = offset {
                body += &format!("add.u64 %address, %address, {offset}; ");
            }
            let (bits, mut at) = (result.bits, 0);
            // A row is read in accesses of up to 16 bytes.
            let most = if row.is_some() && !results.len().is_multiple_of(3) { 128 / bits as usize } else { 1 };
            for registers in results.chunks(most) {
                body += &match registers {
                    [register] => format!("ld.global.b{bits} {register}, [%address+{at}]; "),
                    all => format!("ld.global.v{}.b{bits} {{{}}}, [%address+{at}]; ", all.len(), all.join(", ")),
                };
                at += registers.len() as u32 * bits / 8;
            }
        }
        ("combine", (a, b)) => {
            for ((result, a), b) in results.iter().zip(a).zip(b) {
                body += &format!("add.u{bits} {result}, {a}, {b}; ");
            }
        }
        ("test", (a, _)) => {
            body += &format!("setp.ne.u{bits} %sample0, {}, 0; selp.u32 {}, 1, 0, %sample0; ", a[0], results[0]);
        }
        (_, (a, _)) => {
            for (result_register, a) in results.iter().zip(a.iter().cycle()) {
                body += &match (result.bits, bits) {
                    (to, from) if to == from => format!("mov.b{to} {result_register}, {a}; "),
                    (to, from) => format!("cvt.u{to}.u{from} {result_register}, {a}; "),
                };
            }
        }
    }
    Some(body + "}")
}

/// The registers of a result or an argument.
struct Shape {
    bits: u32,
    words: usize,
}

/// Reads `b64x2`. Fewer than 32 bits are in a register of 32.
fn shape(text: &str) -> Option<Shape> {
    let (bits, words) = text.strip_prefix('b')?.split_once('x')?;
    Some(Shape { bits: bits.parse::<u32>().ok()?.max(32), words: words.parse().ok().filter(|&words| words > 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hole_gets_a_sample() {
        assert!(matches!(fill_with_samples("\tret;\n"), Cow::Borrowed(_)));
        for (hole, inside) in [
            ("hole.less.b32x1.b64x2 %r1, %rd1, %rd2, %rd3, %rd4;", "setp.lt.u64 %sample1, %rd2, %rd4;"),
            ("hole.less.b32x1.b8x1 %r1, %r2, %r3;", "setp.lt.u32 %sample0, %r2, %r3;"),
            ("hole.combine.b32x3.b32x3 %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9;", "add.u32 %r3, %r6, %r9;"),
            ("hole.test.b32x1.b64x1 %r1, %rd1;", "setp.ne.u64 %sample0, %rd1, 0;"),
            ("hole.code.b64x2.b32x1 %rd1, %rd2, %r1;", "cvt.u64.u32 %rd2, %r1;"),
            ("hole.equal.b32x1.b64x2 %r1, %rd1, %rd2, %rd3, %rd4;", "setp.eq.u64 %sample1, %rd2, %rd4;"),
            ("hole.load.b32x3.b64x1 %r1, %r2, %r3, %rd1;", "ld.global.b32 %r3, [%address+8];"),
            (
                "hole.load4.b32x1.b64x1 %r1, %r2, %r3, %r4, %rd1, %rd2;",
                "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%address+0];",
            ),
            ("hole.load2.b64x1.b64x1 %rd1, %rd2, %rd3, %rd4;", "ld.global.v2.b64 {%rd1, %rd2}, [%address+0];"),
            ("hole.bucket.b32x1.b32x1 %r1, %r2;", "mov.b32 %r1, %r2;"),
        ] {
            let text = fill_with_samples(hole);
            assert!(text.contains(inside) && !text.contains("hole."), "{text}");
        }
        assert_eq!(fill_with_samples("hole.less %r1;"), "hole.less %r1;\n", "left to the assembler to reject");
    }
}
