//! Every operation of the vocabulary for every type, to compare the native function, the interpreter and a GPU.
//!
//! [`differential_module`] gives a PTX module with one kernel per operation and type, and the [`Case`]s to compare it
//! with: run each kernel on [`Case::inputs`], and each result must [agree](Case::agrees) with [`Case::native`].

mod cases;
mod inputs;
mod kernels;
#[cfg(test)]
mod lowered;
#[cfg(test)]
mod ptxas;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use crate::function::read_scalar;
use crate::{Function, Kind, Recorded, Scalar};
use inputs::Random;

/// One operation of one type.
#[derive(Debug)]
pub struct Case {
    entry: String,
    function: Function,
    native: fn(&[&[u8]]) -> Vec<u8>,
}

impl Case {
    fn new(entry: String, recorded: &Recorded, native: fn(&[&[u8]]) -> Vec<u8>) -> Self {
        Self { entry, function: recorded.functions()[0].clone(), native }
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

    /// Computes the result with the native function.
    pub fn native(&self, operands: &[&[u8]]) -> Vec<u8> {
        (self.native)(operands)
    }

    /// Computes the result with the interpreter.
    pub fn interpreted(&self, operands: &[&[u8]]) -> Vec<u8> {
        self.function.interpret(operands, &[])
    }

    /// Returns whether two results are the same: equal, or two NaNs.
    pub fn agrees(&self, a: &[u8], b: &[u8]) -> bool {
        let kind = self.function.result().leaves[0].kind;
        a == b || is_nan(kind, a) && is_nan(kind, b)
    }

    /// Returns arrays of operands, as many of each: extreme ones with each other, then `random` random ones. The array of
    /// an operand that the operation does not have is empty.
    pub fn inputs(&self, random: usize) -> [Vec<u8>; 3] {
        let kinds: Vec<Kind> = self.function.arguments().iter().map(|layout| layout.leaves[0].kind).collect();
        inputs::inputs(&kinds, random, &mut Random::new(self.entry.len() as u64))
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
/// length, each a `u64`. Thread `blockIdx.x * blockDim.x + threadIdx.x` computes one result.
pub fn differential_module() -> (String, Vec<Case>) {
    let cases = cases::all();
    let functions = cases.iter().map(|case| (case.entry.as_str(), &case.function));
    (kernels::module(functions), cases)
}

fn is_nan(kind: Kind, bytes: &[u8]) -> bool {
    let bits = || read_scalar(bytes, 0, kind);
    match kind {
        Kind::F32 => f32::decode(bits()).is_nan(),
        Kind::F64 => f64::decode(bits()).is_nan(),
        #[cfg(feature = "half")]
        Kind::F16 => half::f16::decode(bits()).is_nan(),
        #[cfg(feature = "half")]
        Kind::Bf16 => half::bf16::decode(bits()).is_nan(),
        _ => false,
    }
}

/// Reads an operand.
fn read<T: Scalar>(bytes: &[u8]) -> T {
    T::decode(read_scalar(bytes, 0, T::KIND))
}

/// Returns the bytes of a result.
fn bytes<T: Scalar>(value: T) -> Vec<u8> {
    value.encode().to_le_bytes()[..T::KIND.size()].to_vec()
}
