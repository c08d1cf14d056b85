//! Scalars in registers and in the kernel's parameters.

use super::{Low, Lowering};
use crate::Kind;
use crate::graph::{Id, Op};
use crate::ptx::{Width, Word};

impl Lowering<'_> {
    /// Returns a scalar of an argument.
    pub(super) fn argument(&mut self, argument: u32, offset: u32, kind: Kind) -> Low {
        let operands = self.operands;
        let words = operands.arguments.get(argument as usize).map_or(&[][..], Vec::as_slice);
        self.assemble(kind, offset as usize, |lowering, offset, bytes| match bytes {
            8 => lowering.whole_register(argument, words, offset),
            _ => Some(lowering.part_of_registers(argument, words, offset, bytes)),
        })
    }

    /// Returns a scalar of the state.
    pub(super) fn state(&mut self, offset: u32, kind: Kind) -> Low {
        let state = self.operands.state.as_ref().expect("a place where the operator's state is");
        let base = state.offset;
        self.assemble(kind, offset as usize, |lowering, offset, bytes| {
            let load = |lowering: &mut Self, offset: usize, bytes: usize| {
                let kind = if bytes == 8 { Kind::U64 } else { Kind::U32 };
                lowering.graph.add(Op::Load { offset: offset as u32, bytes: bytes as u32 }, kind, &[])
            };
            if (base + offset).is_multiple_of(bytes) {
                return Some(load(lowering, offset, bytes));
            }
            // A misaligned scalar is loaded byte by byte.
            (bytes <= 4).then(|| {
                (0..bytes).fold(lowering.graph.constant(Kind::U32, 0), |low, byte| {
                    let high = load(lowering, offset + byte, 1);
                    lowering.join(low, high, byte)
                })
            })
        })
    }

    /// Puts a scalar together. `read(offset, bytes)` gives 1, 2, 4 or 8 bytes, zero-extended; it may refuse 8.
    fn assemble(
        &mut self,
        kind: Kind,
        offset: usize,
        mut read: impl FnMut(&mut Self, usize, usize) -> Option<Id>,
    ) -> Low {
        let mut long = |lowering: &mut Self, offset: usize| {
            read(lowering, offset, 8).unwrap_or_else(|| {
                let halves = [0, 4].map(|half| read(lowering, offset + half, 4).expect("4 bytes"));
                lowering.graph.add(Op::Pack, Kind::U64, &halves)
            })
        };
        match kind.size() {
            16 => Low::Pair([0, 8].map(|half| long(self, offset + half))),
            8 => {
                let bits = long(self, offset);
                Low::One(self.scalar_of(kind, bits))
            }
            bytes => {
                let bits = read(self, offset, bytes).expect("up to 4 bytes");
                Low::One(self.scalar_of(kind, bits))
            }
        }
    }

    /// Returns a register.
    fn register(&mut self, argument: u32, index: usize, width: Width) -> Id {
        let kind = if width == Width::B64 { Kind::U64 } else { Kind::U32 };
        self.graph.add(Op::Word { argument, word: index as u32 }, kind, &[])
    }

    /// Returns the register that holds exactly these 8 bytes.
    fn whole_register(&mut self, argument: u32, words: &[Word], offset: usize) -> Option<Id> {
        let index = words.iter().position(|word| word.offset == offset && word.bytes == 8)?;
        Some(self.register(argument, index, words[index].width))
    }

    /// Returns up to 4 bytes from the registers that hold them, as a `U32`.
    fn part_of_registers(&mut self, argument: u32, words: &[Word], offset: usize, bytes: usize) -> Id {
        let mut result = self.graph.constant(Kind::U32, 0);
        let mut done = 0;
        while done < bytes {
            let byte = offset + done;
            let index = words
                .iter()
                .position(|word| (word.offset..word.offset + word.bytes).contains(&byte))
                .unwrap_or_else(|| panic!("no register holds byte {byte} of argument {argument}"));
            let word = &words[index];
            let skipped = byte - word.offset;
            let taken = (word.bytes - skipped).min(bytes - done);
            let register = self.register(argument, index, word.width);
            let shifted = self.shift(Op::Shr, register, 8 * skipped as u32);
            let mut part = self.graph.add(Op::Cast, Kind::U32, &[shifted]);
            if taken < (word.width.bytes() - skipped).min(4) {
                let mask = self.graph.constant(Kind::U32, (1 << (8 * taken)) - 1);
                part = self.graph.add(Op::And, Kind::U32, &[part, mask]);
            }
            result = self.join(result, part, done);
            done += taken;
        }
        result
    }

    /// Puts a number above the lowest bytes of another.
    fn join(&mut self, low: Id, high: Id, bytes: usize) -> Id {
        let high = self.shift(Op::Shl, high, 8 * bytes as u32);
        self.graph.add(Op::Or, Kind::U32, &[low, high])
    }

    /// Returns the value of each register of the result.
    pub(super) fn results(&mut self) -> Vec<Id> {
        let leaves = &self.function.result().leaves;
        // Up to 8 bytes each: their offset, their size and their bits.
        let mut parts: Vec<(usize, usize, Id)> = Vec::new();
        for (leaf, root) in leaves.iter().zip(&self.function.roots) {
            match self.values[root.index()] {
                Low::One(id) => parts.push((leaf.offset, leaf.kind.size(), self.bits_of(leaf.kind, id))),
                Low::Pair([low, high]) => {
                    parts.push((leaf.offset, 8, low));
                    parts.push((leaf.offset + 8, 8, high));
                }
            }
        }
        let words = &self.operands.result;
        for (offset, size, _) in &parts {
            let covered =
                |byte: usize| words.iter().any(|word| (word.offset..word.offset + word.bytes).contains(&byte));
            let missing = (*offset..offset + size).find(|byte| !covered(*byte));
            assert!(missing.is_none(), "no register takes byte {missing:?} of the result");
        }
        words.iter().map(|word| self.result(word, &parts)).collect()
    }

    fn result(&mut self, word: &Word, parts: &[(usize, usize, Id)]) -> Id {
        if word.width != Width::B64 {
            return self.result_bytes(word.offset, word.bytes.min(4), parts);
        }
        if let Some((_, _, bits)) = parts.iter().find(|part| part.0 == word.offset && part.1 == 8 && word.bytes == 8) {
            return *bits;
        }
        let low = self.result_bytes(word.offset, word.bytes.min(4), parts);
        let high = self.result_bytes(word.offset + 4, word.bytes.saturating_sub(4), parts);
        self.graph.add(Op::Pack, Kind::U64, &[low, high])
    }

    /// Returns up to 4 bytes of the result. Bytes that no scalar has are 0.
    fn result_bytes(&mut self, offset: usize, bytes: usize, parts: &[(usize, usize, Id)]) -> Id {
        let mut result = self.graph.constant(Kind::U32, 0);
        for (start, size, bits) in parts {
            let (begin, end) = (offset.max(*start), (offset + bytes).min(start + size));
            if begin >= end {
                continue;
            }
            let shifted = self.shift(Op::Shr, *bits, 8 * (begin - start) as u32);
            let mut part = self.graph.add(Op::Cast, Kind::U32, &[shifted]);
            if end < start + size && end - begin < 4 {
                let mask = self.graph.constant(Kind::U32, (1 << (8 * (end - begin))) - 1);
                part = self.graph.add(Op::And, Kind::U32, &[part, mask]);
            }
            result = self.join(result, part, begin - offset);
        }
        result
    }
}
