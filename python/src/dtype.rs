//! The types of elements, and how a call finds the Rust type.

use crate::error::type_error;
use pyo3::prelude::*;

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

use DType::*;

/// Names as in NumPy and torch.
const NAMES: [(&str, DType); 13] = [
    ("bool", Bool),
    ("int8", I8),
    ("int16", I16),
    ("int32", I32),
    ("int64", I64),
    ("uint8", U8),
    ("uint16", U16),
    ("uint32", U32),
    ("uint64", U64),
    ("float16", F16),
    ("bfloat16", BF16),
    ("float32", F32),
    ("float64", F64),
];

impl DType {
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, dtype)| *dtype == self).map_or("?", |(name, _)| name)
    }

    pub fn parse(name: &str) -> PyResult<Self> {
        let found = NAMES.iter().find(|(other, _)| *other == name).map(|(_, dtype)| *dtype);
        found.ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            type_error(format!("the dtype {name} is not supported; convert to one of {}", names.join(", ")))
        })
    }

    /// Returns the type of a DLPack code with so many bits.
    pub fn of_dlpack(code: u8, bits: u8, lanes: u16) -> Option<Self> {
        Some(match (code, bits, lanes) {
            (0, 8, 1) => I8,
            (0, 16, 1) => I16,
            (0, 32, 1) => I32,
            (0, 64, 1) => I64,
            (1, 8, 1) => U8,
            (1, 16, 1) => U16,
            (1, 32, 1) => U32,
            (1, 64, 1) => U64,
            (2, 16, 1) => F16,
            (2, 32, 1) => F32,
            (2, 64, 1) => F64,
            (4, 16, 1) => BF16,
            (6, 8, 1) => Bool,
            _ => return None,
        })
    }

    /// Returns the code and the bits of DLPack.
    pub fn dlpack(self) -> (u8, u8) {
        let code = match self {
            I8 | I16 | I32 | I64 => 0,
            U8 | U16 | U32 | U64 => 1,
            F16 | F32 | F64 => 2,
            BF16 => 4,
            Bool => 6,
        };
        (code, 8 * self.size() as u8)
    }

    /// Returns the bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }
}

/// Runs code with the Rust type of a dtype. Bools are bytes.
macro_rules! each_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dtype::DType::U8 | $crate::dtype::DType::Bool => {
                type $T = u8;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

/// Runs code with an unsigned type of that many bytes, for elements that are only moved.
macro_rules! each_size {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

/// Runs code with an unsigned type of 4 or 8 bytes, for elements that are only compared by their bits.
macro_rules! each_long {
    ($dtype:expr, $what:expr, $T:ident => $body:expr) => {
        match $dtype.size() {
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            _ => Err($crate::error::type_error(format!("{} need 4 or 8 bytes", $what))),
        }
    };
}

/// Runs code with the Rust type of a number of 4 or 8 bytes; others are an error that calls the argument `$what`.
macro_rules! each_word {
    ($dtype:expr, $what:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err($crate::error::type_error(format!(
                "{} have the dtype {}; they can be int32, uint32, int64, uint64, float32 or float64",
                $what,
                other.name()
            ))),
        }
    };
}

pub(crate) use {each_long, each_size, each_type, each_word};
