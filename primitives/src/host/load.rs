//! The code that loads an element of a [source](crate::host::source): PTX, written when a kernel is loaded.

use crate::operator::{Function, Operands, State, Width, Word};
use std::fmt::Write as _;

/// Code that is being written.
///
/// The source is among the kernel's arguments: its state at the beginning, and the addresses of the memory that it reads
/// at [`SourceArg::LEAVES`](crate::input::SourceArg::LEAVES).
pub struct LoadCode {
    lines: String,
    /// How many registers of 32 and of 64 bits there are.
    registers: [usize; 2],
    parameter: &'static str,
    source: usize,
    index: String,
}

impl LoadCode {
    /// Begins the code for the element whose index is in the register `index`. The source begins at byte `source` of the
    /// parameter.
    pub(crate) fn new(parameter: &'static str, source: usize, index: &str) -> Self {
        Self { lines: String::new(), registers: [0; 2], parameter, source, index: index.to_owned() }
    }

    /// Returns the element's index, as a number of 64 bits.
    pub(crate) fn index(&self) -> Vec<Word> {
        vec![Word::new(self.index.clone(), Width::B64, 0, 8)]
    }

    /// Loads the element from a slice of elements of this size and alignment. The slice's address is number `leaf`.
    pub(crate) fn element(&mut self, leaf: usize, size: usize, align: usize) -> Vec<Word> {
        let (base, address) = (self.register(Width::B64), self.register(Width::B64));
        let at = self.source + crate::input::SourceArg::LEAVES + 16 * leaf;
        let (parameter, index) = (self.parameter, self.index.clone());
        self.line(&format!("ld.param.b64 {base}, [{parameter}+{at}];"));
        self.line(&format!("cvta.to.global.u64 {base}, {base};"));
        self.line(&format!("mad.lo.u64 {address}, {index}, {size}, {base};"));
        self.pieces("ld.global", &address, 0, size, align)
    }

    /// Loads a constant of this size and alignment, which is at byte `offset` of the source's state.
    pub(crate) fn constant(&mut self, offset: usize, size: usize, align: usize) -> Vec<Word> {
        self.pieces("ld.param", self.parameter, self.source + offset, size, align)
    }

    /// Calls a function whose state begins at byte `offset` of the source's state.
    pub(crate) fn call(&mut self, function: &Function, arguments: Vec<Vec<Word>>, offset: usize) -> Vec<Word> {
        let result = function.result();
        let width = if result.size.is_multiple_of(8) { Width::B64 } else { Width::B32 };
        let registers: Vec<String> = (0..result.size.div_ceil(width.bytes())).map(|_| self.register(width)).collect();
        let result = Word::list(result.size, width, |word| registers[word].clone());
        let state = State { parameter: self.parameter.to_owned(), offset: self.source + offset };
        let body = function.ptx(&Operands { arguments, result: result.clone(), state: Some(state) });
        self.line(&body);
        result
    }

    /// Ends the code: moves the element to the registers of the result.
    pub(crate) fn finish(mut self, element: &[Word], width: Width, results: &[&str]) -> String {
        let bits = 8 * width.bytes();
        for (number, result) in results.iter().enumerate() {
            let first = number * width.bytes();
            let mut is_first = true;
            for word in element.iter().filter(|word| (first..first + width.bytes()).contains(&word.offset)) {
                let mut from = word.register.clone();
                // The bits above the word's bytes are 0.
                if word.width != width {
                    let wide = self.register(width);
                    let (of, register) = (8 * word.width.bytes(), &word.register);
                    self.line(&format!("cvt.u{bits}.u{of} {wide}, {register};"));
                    from = wide;
                }
                let shift = 8 * (word.offset - first);
                if is_first {
                    debug_assert_eq!(shift, 0, "words follow each other");
                    self.line(&format!("mov.b{bits} {result}, {from};"));
                } else {
                    let shifted = self.register(width);
                    self.line(&format!("shl.b{bits} {shifted}, {from}, {shift};"));
                    self.line(&format!("or.b{bits} {result}, {result}, {shifted};"));
                }
                is_first = false;
            }
            if is_first {
                self.line(&format!("mov.b{bits} {result}, 0;"));
            }
        }
        let mut body = String::from("{\n");
        for (count, (prefix, bits)) in self.registers.iter().zip([("%in_r", 32), ("%in_d", 64)]) {
            if *count > 0 {
                let _ = writeln!(body, "\t.reg .b{bits} {prefix}<{count}>;");
            }
        }
        body + &self.lines + "}"
    }

    /// Loads `size` bytes in pieces of the alignment.
    fn pieces(&mut self, load: &str, base: &str, offset: usize, size: usize, align: usize) -> Vec<Word> {
        let step = align.min(8);
        let width = if step == 8 { Width::B64 } else { Width::B32 };
        let mut words = Vec::new();
        for at in (0..size).step_by(step) {
            let register = self.register(width);
            self.line(&format!("{load}.u{} {register}, [{base}+{}];", 8 * step, offset + at));
            words.push(Word::new(register, width, at, step));
        }
        words
    }

    fn register(&mut self, width: Width) -> String {
        let (class, prefix) = if width == Width::B64 { (1, "%in_d") } else { (0, "%in_r") };
        self.registers[class] += 1;
        format!("{prefix}{}", self.registers[class] - 1)
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.lines, "\t{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_pieces_are_packed() {
        let mut code = LoadCode::new("p0", 32, "%rd1");
        let words = code.element(1, 3, 1);
        let text = code.finish(&words, Width::B32, &["%r1", "%r2"]);
        for line in ["ld.global.u8 %in_r2, [%in_d1+2];", "shl.b32 %in_r4, %in_r2, 16;", "mov.b32 %r2, 0;"] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
