//! Kernels that apply a recorded function to arrays.

use crate::{Function, Layout, Operands, State, Width, Word};
use std::fmt::Write;

const HEADER: &str = ".version 7.8\n.target sm_70\n.address_size 64\n\n";

/// Returns a module with one kernel for each function.
pub(super) fn module<'a>(functions: impl Iterator<Item = (&'a str, &'a Function)>) -> String {
    let mut text = String::from(HEADER);
    for (entry, function) in functions {
        text.push_str(&kernel(entry, function));
    }
    text
}

/// Returns the registers of an operand, each of which can be loaded and stored as a whole.
fn words(layout: &Layout, name: &str) -> Vec<Word> {
    let register = |index: usize| format!("%{name}_{index}");
    match layout.align {
        1 => (0..layout.size).map(|byte| Word::new(register(byte), Width::B16, byte, 1)).collect(),
        2 => Word::list(layout.size, Width::B16, register),
        4 => Word::list(layout.size, Width::B32, register),
        _ => Word::list(layout.size, Width::B64, register),
    }
}

fn kernel(entry: &str, function: &Function) -> String {
    let names = ["a", "b", "c"];
    let arguments: Vec<_> = function.arguments().iter().zip(names).map(|(layout, name)| words(layout, name)).collect();
    let state = State { parameter: format!("{entry}_s"), offset: 0 };
    let operands = Operands { arguments, result: words(function.result(), "o"), state: Some(state) };
    let mut text = format!(".visible .entry {entry}(\n");
    let parameters: Vec<_> = ["a", "b", "c", "o", "n"].iter().map(|n| format!("\t.param .u64 {entry}_{n}")).collect();
    let _ = writeln!(text, "{},\n\t.param .align 16 .b8 {entry}_s[64]\n)\n{{", parameters.join(",\n"));
    text.push_str("\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>, %ap, %bp, %cp, %op;\n");
    for word in operands.arguments.iter().flatten().chain(&operands.result) {
        let _ = writeln!(text, "\t.reg .b{} {};", 8 * word.width.bytes(), word.register);
    }
    text.push_str("\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\tmov.u32 %r3, %tid.x;\n");
    text.push_str("\tmul.wide.u32 %rd1, %r1, %r2;\n\tcvt.u64.u32 %rd2, %r3;\n\tadd.s64 %rd1, %rd1, %rd2;\n");
    let _ = writeln!(text, "\tld.param.u64 %rd3, [{entry}_n];\n\tsetp.ge.u64 %p1, %rd1, %rd3;\n\t@%p1 ret;");
    for ((words, layout), name) in operands.arguments.iter().zip(function.arguments()).zip(names) {
        address(&mut text, entry, name, layout.size);
        for word in words {
            let bits = 8 * word.bytes;
            let _ = writeln!(text, "\tld.global.b{bits} {}, [%{name}p+{}];", word.register, word.offset);
        }
    }
    text.push_str(&function.ptx(&operands));
    text.push('\n');
    address(&mut text, entry, "o", function.result().size);
    for word in &operands.result {
        let _ = writeln!(text, "\tst.global.b{} [%op+{}], {};", 8 * word.bytes, word.offset, word.register);
    }
    text.push_str("\tret;\n}\n\n");
    text
}

/// Computes the address of an element.
fn address(text: &mut String, entry: &str, name: &str, size: usize) {
    let _ = writeln!(text, "\tld.param.u64 %{name}p, [{entry}_{name}];\n\tcvta.to.global.u64 %{name}p, %{name}p;");
    let _ = writeln!(text, "\tmad.lo.u64 %{name}p, %rd1, {size}, %{name}p;");
}

/// Returns a module with a kernel around each body, to be assembled only.
#[cfg(test)]
pub(super) fn probes<'a>(functions: impl Iterator<Item = (&'a Function, &'a Operands)>) -> String {
    let mut text = String::from(HEADER);
    for (number, (function, operands)) in functions.enumerate() {
        let _ = writeln!(text, ".visible .entry random_{number}(\n\t.param .align 16 .b8 state[256],");
        let _ = writeln!(text, "\t.param .u64 from,\n\t.param .u64 to\n)\n{{");
        let words: Vec<&Word> = operands.arguments.iter().flatten().collect();
        for word in words.iter().copied().chain(&operands.result) {
            let _ = writeln!(text, "\t.reg .b{} {};", 8 * word.width.bytes(), word.register);
        }
        text.push_str("\t.reg .b64 %from, %to;\n\tld.param.u64 %from, [from];\n\tld.param.u64 %to, [to];\n");
        for (index, word) in words.iter().enumerate() {
            let _ = writeln!(text, "\tld.global.b{} {}, [%from+{}];", 8 * word.width.bytes(), word.register, 8 * index);
        }
        // Twice, as a kernel may have several holes.
        let body = function.ptx(operands);
        let _ = writeln!(text, "{body}\n{body}");
        for (index, word) in operands.result.iter().enumerate() {
            let _ = writeln!(text, "\tst.global.b{} [%to+{}], {};", 8 * word.width.bytes(), 8 * index, word.register);
        }
        text.push_str("\tret;\n}\n\n");
    }
    text
}
