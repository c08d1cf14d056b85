//! Every operation of the vocabulary for every type, and random functions made of them, to compare the native function, the
//! interpreter and a GPU.
//!
//! [`differential_module`] gives a PTX module with one kernel per function, and the [`Case`]s to compare it with: run each
//! kernel on [`Case::inputs`], and each result must [agree](Case::agrees) with [`Case::native`].

mod cases;
mod inputs;
mod kernels;
#[cfg(test)]
mod lowered;
mod operands;
#[cfg(test)]
mod ptxas;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;
/// Random functions, written by `writer`. They are in a file, since the compiler must see them.
#[cfg(feature = "half")]
#[rustfmt::skip]
#[allow(unused, unused_comparisons, invalid_nan_comparisons, clippy::all, clippy::pedantic, clippy::restriction)]
mod written;

use crate::function::read_scalar;
use crate::{Function, Kind, Recorded};
use inputs::Random;

/// The computation of a result from the operands and the state, as bytes.
type Native = fn(&[&[u8]], &[u8]) -> Vec<u8>;

/// One operation of one type, or a random function.
#[derive(Debug)]
pub struct Case {
    entry: String,
    function: Function,
    native: Native,
    state: Vec<u8>,
}

impl Case {
    fn new(entry: String, recorded: &Recorded, native: Native) -> Self {
        Self::of(entry, &recorded.functions()[0], native)
    }

    fn of(entry: String, function: &Function, native: Native) -> Self {
        let mut random = Random::new(entry.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
        let state = function.state().map_or_else(Vec::new, |layout| random.bytes(layout));
        Self { entry, function: function.clone(), native, state }
    }

    /// Returns the name of the kernel.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Returns the recorded function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the size in bytes of each operand, 0 for those that the operation does not have.
    pub fn operand_sizes(&self) -> [usize; 3] {
        let mut sizes = [0; 3];
        for (size, layout) in sizes.iter_mut().zip(self.function.arguments()) {
            *size = layout.size;
        }
        sizes
    }

    /// Returns the size of the result in bytes.
    pub fn result_size(&self) -> usize {
        self.function.result().size
    }

    /// Returns the bytes of the state, at most 64: nothing if the function reads none.
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// Computes the result with the native function.
    pub fn native(&self, operands: &[&[u8]]) -> Vec<u8> {
        (self.native)(operands, &self.state)
    }

    /// Computes the result with the interpreter.
    pub fn interpreted(&self, operands: &[&[u8]]) -> Vec<u8> {
        self.function.interpret(operands, &self.state)
    }

    /// Returns whether two results are the same: each scalar is equal, or both are NaNs.
    pub fn agrees(&self, a: &[u8], b: &[u8]) -> bool {
        let same = |leaf: &crate::Leaf| {
            let [a, b] = [a, b].map(|bytes| &bytes[leaf.offset..][..leaf.kind.size()]);
            a == b || is_nan(leaf.kind, a) && is_nan(leaf.kind, b)
        };
        a.len() == b.len() && self.function.result().leaves.iter().all(same)
    }

    /// Returns arrays of operands, as many of each: for scalars, extreme ones with each other, then `random` random ones. The
    /// array of an operand that the function does not have is empty.
    pub fn inputs(&self, random: usize) -> [Vec<u8>; 3] {
        let mut generator = Random::new(self.entry.len() as u64);
        let layouts = self.function.arguments();
        if !self.is_random() {
            let kinds: Vec<Kind> = layouts.iter().map(|layout| layout.leaves[0].kind).collect();
            return inputs::inputs(&kinds, random, &mut generator);
        }
        let mut arrays: [Vec<u8>; 3] = Default::default();
        for _ in 0..random {
            arrays.iter_mut().zip(layouts).for_each(|(array, layout)| array.extend(generator.bytes(layout)));
        }
        arrays
    }

    /// Returns whether this is a random function.
    pub fn is_random(&self) -> bool {
        self.entry.starts_with("written_")
    }

    /// Returns how many operands [`inputs`](Self::inputs) has of each.
    pub fn input_count(&self, inputs: &[Vec<u8>; 3]) -> usize {
        inputs[0].len() / self.operand_sizes()[0]
    }

    /// Returns the operands at a position of [`inputs`](Self::inputs).
    pub fn operands_at<'a>(&self, inputs: &'a [Vec<u8>; 3], position: usize) -> Vec<&'a [u8]> {
        let sizes = self.operand_sizes().into_iter().filter(|size| *size > 0);
        sizes.zip(inputs).map(|(size, bytes)| &bytes[position * size..][..size]).collect()
    }
}

/// Returns every case, and a PTX module with a kernel for each.
///
/// A kernel's parameters are the addresses of the arrays of the three operands, of the array of results, and their
/// length, each a `u64`, and 64 bytes that begin with the state. Thread `blockIdx.x * blockDim.x + threadIdx.x` computes one result.
pub fn differential_module() -> (String, Vec<Case>) {
    let mut cases = cases::all();
    #[cfg(feature = "half")]
    written::append(&mut cases);
    let functions = cases.iter().map(|case| (case.entry.as_str(), &case.function));
    (kernels::module(functions), cases)
}

fn is_nan(kind: Kind, bytes: &[u8]) -> bool {
    let bits = || read_scalar(bytes, 0, kind);
    match kind {
        Kind::F32 => f32::from_bits(bits() as u32).is_nan(),
        Kind::F64 => f64::from_bits(bits() as u64).is_nan(),
        #[cfg(feature = "half")]
        Kind::F16 => half::f16::from_bits(bits() as u16).is_nan(),
        #[cfg(feature = "half")]
        Kind::Bf16 => half::bf16::from_bits(bits() as u16).is_nan(),
        _ => false,
    }
}
