//! The code that loads elements of a [source](crate::host::source): PTX, written when a kernel is loaded.

use crate::input::row_alignment;
use crate::operator::{Function, Operands, State, Width, Word};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Code that is being written.
///
/// The source is among the kernel's arguments: its state at the beginning, and the addresses of the memory that it reads
/// at [`SourceArg::LEAVES`](crate::input::SourceArg::LEAVES).
///
/// It loads one element, or a row of neighbours. What the elements of a row have in memory is loaded together, in accesses of up
/// to 16 bytes, when the first of them asks for it.
pub struct LoadCode {
    lines: String,
    /// How many registers of 32 and of 64 bits there are.
    registers: [usize; 2],
    /// How many predicates there are.
    predicates: usize,
    parameter: &'static str,
    source: usize,
    index: String,
    /// How much further the first element is.
    offset: u64,
    /// The number of elements of the row; none, if it is one element at any address.
    row: Option<usize>,
    /// The element of the row that is being computed.
    lane: usize,
    /// What the row has in each slice.
    loaded: HashMap<usize, Vec<Word>>,
}

impl LoadCode {
    /// Begins the code for a row of elements, or for one element. The index of the first is in the register `index`. The source
    /// begins at byte `source` of the parameter.
    pub(crate) fn new(parameter: &'static str, source: usize, index: &str, row: Option<usize>) -> Self {
        let (lines, registers, index) = (String::new(), [0; 2], index.to_owned());
        Self {
            lines,
            registers,
            predicates: 0,
            parameter,
            source,
            index,
            offset: 0,
            row,
            lane: 0,
            loaded: HashMap::new(),
        }
    }

    /// Begins `offset` elements further on.
    pub(crate) fn skip(&mut self, offset: u64) {
        self.offset += offset;
    }

    /// Begins further on, by the elements that the register says.
    pub(crate) fn skip_by(&mut self, register: &str) {
        let (sum, index) = (self.register(Width::B64), self.index.clone());
        self.line(&format!("add.u64 {sum}, {index}, {register};"));
        self.index = sum;
    }

    /// Goes on with an element of the row.
    pub(crate) fn select(&mut self, lane: usize) {
        self.lane = lane;
    }

    /// Returns the element's index, as a number of 64 bits.
    pub(crate) fn index(&mut self) -> Vec<Word> {
        let mut register = self.index.clone();
        let further = self.offset + self.lane as u64;
        if further > 0 {
            register = self.register(Width::B64);
            let index = self.index.clone();
            self.line(&format!("add.u64 {register}, {index}, {further};"));
        }
        vec![Word::new(register, Width::B64, 0, 8)]
    }

    /// Loads the element from a slice of elements of this size and alignment. The slice's address is number `leaf`.
    pub(crate) fn element(&mut self, leaf: usize, size: usize, align: usize) -> Vec<Word> {
        if !self.loaded.contains_key(&leaf) {
            let words = self.elements(leaf, size, align);
            self.loaded.insert(leaf, words);
        }
        let first = self.lane * size;
        // In a row, an element may be aligned to more than its type.
        let step = if self.row.is_some() {
            align.max(row_alignment(size).min(row_alignment(self.bytes(size))))
        } else {
            align
        };
        // A register has what was loaded into it, or a part of that.
        let step = step.min(self.loaded[&leaf][0].bytes);
        let mut element = Vec::new();
        for at in (first..first + size).step_by(step) {
            let word = self.loaded[&leaf].iter().find(|word| (word.offset..word.offset + word.bytes).contains(&at));
            let word = word.expect("all bytes of the row are loaded").clone();
            let register = if word.bytes == step {
                word.register
            } else {
                let register = self.register(Width::B32);
                let (from, bits) = (word.register, 8 * (at - word.offset));
                self.line(&format!("bfe.u32 {register}, {from}, {bits}, {};", 8 * step));
                register
            };
            element.push(Word::new(register, word.width, at - first, step));
        }
        element
    }

    /// Returns the bytes of the row's elements of this size.
    fn bytes(&self, size: usize) -> usize {
        self.row.unwrap_or(1) * size
    }

    /// Loads what the row has in a slice.
    fn elements(&mut self, leaf: usize, size: usize, align: usize) -> Vec<Word> {
        let (base, address) = (self.register(Width::B64), self.register(Width::B64));
        let at = self.source + crate::input::SourceArg::LEAVES + 16 * leaf;
        let (parameter, index) = (self.parameter, self.index.clone());
        self.line(&format!("ld.param.b64 {base}, [{parameter}+{at}];"));
        self.line(&format!("cvta.to.global.u64 {base}, {base};"));
        if size.is_power_of_two() {
            // Assemblers make one instruction less of it than of a multiplication.
            self.line(&format!("shl.b64 {address}, {index}, {};", size.trailing_zeros()));
            self.line(&format!("add.u64 {address}, {address}, {base};"));
        } else {
            self.line(&format!("mad.lo.u64 {address}, {index}, {size}, {base};"));
        }
        let (bytes, skipped) = (self.bytes(size), self.offset as usize * size);
        let access = row_alignment(bytes);
        if self.row.is_none() || access < 4 {
            return self.pieces("ld.global", &address, skipped, bytes, align, None);
        }
        // A word holds elements of less than 4 bytes together.
        let width = if align >= 8 { Width::B64 } else { Width::B32 };
        let mut words = Vec::new();
        for first in (0..bytes).step_by(access) {
            let registers: Vec<String> = (0..access / width.bytes()).map(|_| self.register(width)).collect();
            let (bits, at) = (8 * width.bytes(), skipped + first);
            self.line(&match &registers[..] {
                [register] => format!("ld.global.u{bits} {register}, [{address}+{at}];"),
                all => format!("ld.global.v{}.u{bits} {{{}}}, [{address}+{at}];", all.len(), all.join(", ")),
            });
            for (number, register) in registers.into_iter().enumerate() {
                words.push(Word::new(register, width, first + number * width.bytes(), width.bytes()));
            }
        }
        words
    }

    /// Loads a constant of this size and alignment, which is at byte `offset` of the source's state.
    pub(crate) fn constant(&mut self, offset: usize, size: usize, align: usize) -> Vec<Word> {
        self.pieces("ld.param", self.parameter, self.source + offset, size, align, None)
    }

    /// Loads the element whose index is in `row` from a slice of elements of this size and alignment. The slice's address is number
    /// `leaf`, and its length is at byte `offset` of the source's state. Beyond the length, the element is 0.
    pub(crate) fn element_at(
        &mut self,
        row: &[Word],
        leaf: usize,
        offset: usize,
        size: usize,
        align: usize,
    ) -> Vec<Word> {
        let [row] = row else { unreachable!("an index is one register") };
        let mut index = row.register.clone();
        if row.width == Width::B32 {
            let wide = self.register(Width::B64);
            self.line(&format!("cvt.u64.u32 {wide}, {index};"));
            index = wide;
        }
        let (len, base, address) = (self.register(Width::B64), self.register(Width::B64), self.register(Width::B64));
        let (parameter, at) = (self.parameter, self.source + crate::input::SourceArg::LEAVES + 16 * leaf);
        let state = self.source + offset;
        let is_inside = format!("%in_p{}", self.predicates);
        self.predicates += 1;
        self.line(&format!("ld.param.b64 {len}, [{parameter}+{state}];"));
        self.line(&format!("setp.lt.u64 {is_inside}, {index}, {len};"));
        self.line(&format!("ld.param.b64 {base}, [{parameter}+{at}];"));
        self.line(&format!("cvta.to.global.u64 {base}, {base};"));
        self.line(&format!("mad.lo.u64 {address}, {index}, {size}, {base};"));
        self.pieces("ld.global", &address, 0, size, align, Some(&is_inside))
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

    /// Moves an element to the registers of its result.
    pub(crate) fn store(&mut self, element: &[Word], width: Width, results: &[&str]) {
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
    }

    /// Ends the code.
    pub(crate) fn finish(self) -> String {
        let mut body = String::from("{\n");
        for (count, (prefix, bits)) in self.registers.iter().zip([("%in_r", 32), ("%in_d", 64)]) {
            if *count > 0 {
                let _ = writeln!(body, "\t.reg .b{bits} {prefix}<{count}>;");
            }
        }
        if self.predicates > 0 {
            let _ = writeln!(body, "\t.reg .pred %in_p<{}>;", self.predicates);
        }
        body + &self.lines + "}"
    }

    /// Loads `size` bytes in pieces of the alignment: if the predicate holds, else zeros.
    fn pieces(
        &mut self,
        load: &str,
        base: &str,
        offset: usize,
        size: usize,
        align: usize,
        only_if: Option<&str>,
    ) -> Vec<Word> {
        let step = align.min(8);
        let width = if step == 8 { Width::B64 } else { Width::B32 };
        let mut words = Vec::new();
        for at in (0..size).step_by(step) {
            let register = self.register(width);
            let load = format!("{load}.u{} {register}, [{base}+{}];", 8 * step, offset + at);
            if let Some(predicate) = only_if {
                self.line(&format!("mov.b{} {register}, 0;", 8 * width.bytes()));
                self.line(&format!("@{predicate} {load}"));
            } else {
                self.line(&load);
            }
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

    fn text(mut code: LoadCode, rows: &[&[&str]], leaf: usize, size: usize, align: usize, width: Width) -> String {
        for (lane, results) in rows.iter().enumerate() {
            code.select(lane);
            let words = code.element(leaf, size, align);
            code.store(&words, width, results);
        }
        code.finish()
    }

    #[test]
    fn narrow_pieces_are_packed() {
        let text = text(LoadCode::new("p0", 32, "%rd1", None), &[&["%r1", "%r2"]], 1, 3, 1, Width::B32);
        for line in ["ld.global.u8 %in_r2, [%in_d1+2];", "shl.b32 %in_r4, %in_r2, 16;", "mov.b32 %r2, 0;"] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn elements_beyond_a_slice_are_not_loaded() {
        let mut code = LoadCode::new("p0", 32, "%rd1", Some(2));
        for (lane, result) in ["%rd2", "%rd3"].into_iter().enumerate() {
            code.select(lane);
            let row = code.element(0, 4, 4);
            let words = code.element_at(&row, 1, 8, 8, 8);
            code.store(&words, Width::B64, &[result]);
        }
        let text = code.finish();
        for line in [
            "\t.reg .pred %in_p<2>;",
            "ld.global.v2.u32 {%in_r0, %in_r1}, [%in_d1+0];",
            "ld.param.b64 %in_d3, [p0+40];",
            "setp.lt.u64 %in_p0, %in_d2, %in_d3;",
            "@%in_p1 ld.global.u64",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// Every element of a row consists of all its bytes, none of which is in two registers.
    #[test]
    fn elements_of_rows_are_whole() {
        for row in [None, Some(1), Some(2), Some(4), Some(16)] {
            for (size, align) in (1..=32usize).flat_map(|size| [1, 2, 4, 8, 16].map(|align| (size, align))) {
                if size % align > 0 {
                    continue;
                }
                let mut code = LoadCode::new("p0", 32, "%rd1", row);
                for lane in 0..row.unwrap_or(1) {
                    code.select(lane);
                    let words = code.element(0, size, align);
                    let mut next = 0;
                    for word in &words {
                        assert!(word.offset == next && word.bytes <= word.width.bytes(), "{size} {align} {row:?}");
                        next += word.bytes;
                    }
                    assert_eq!(next, size, "{align} {row:?}");
                }
            }
        }
    }

    #[test]
    fn rows_are_loaded_together() {
        let words: &[&[&str]] = &[&["%r1"], &["%r2"], &["%r3"], &["%r4"]];
        for (size, align, lines) in [
            (4, 4, &["ld.global.v4.u32 {%in_r0, %in_r1, %in_r2, %in_r3}, [%in_d1+0];", "mov.b32 %r4, %in_r3;"][..]),
            (2, 2, &["ld.global.v2.u32 {%in_r0, %in_r1}, [%in_d1+0];", "bfe.u32 %in_r3, %in_r0, 16, 16;"]),
            (1, 1, &["ld.global.u32 %in_r0, [%in_d1+0];", "bfe.u32 %in_r4, %in_r0, 24, 8;"]),
            (3, 1, &["ld.global.u32 %in_r2, [%in_d1+8];"]),
        ] {
            let text = text(LoadCode::new("p0", 32, "%rd1", Some(4)), words, 0, size, align, Width::B32);
            for line in lines {
                assert!(text.contains(line), "{line} in {text}");
            }
        }
        let longs: &[&[&str]] = &[&["%rd2"], &["%rd3"]];
        let text = text(LoadCode::new("p0", 32, "%rd1", Some(2)), longs, 0, 8, 8, Width::B64);
        assert!(text.contains("ld.global.v2.u64 {%in_d2, %in_d3}, [%in_d1+0];"), "{text}");
    }
}
