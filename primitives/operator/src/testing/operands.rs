//! Operands as bytes, and the types that random functions take besides numbers.

use crate::function::read_scalar;
use crate::{Record, Scalar};
use bytemuck::{Pod, Zeroable};

/// A value that is read from bytes and written as bytes.
pub(super) trait Operand: Copy {
    fn of(bytes: &[u8]) -> Self;
    fn bytes(self) -> Vec<u8>;
}

impl<T: Scalar> Operand for T {
    fn of(bytes: &[u8]) -> Self {
        T::decode(read_scalar(bytes, 0, T::KIND))
    }

    fn bytes(self) -> Vec<u8> {
        self.encode().to_le_bytes()[..T::KIND.size()].to_vec()
    }
}

macro_rules! plain {
    ($($type:ty)*) => { $(
        impl Operand for $type {
            fn of(bytes: &[u8]) -> Self {
                bytemuck::pod_read_unaligned(bytes)
            }

            fn bytes(self) -> Vec<u8> {
                bytemuck::bytes_of(&self).to_vec()
            }
        }
    )* };
}

plain!([u8; 3] [u16; 5] [u32; 3] [i64; 2] [f64; 2] Mixed Small Packed Wide);

/// 16 bytes of several types.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(super) struct Mixed {
    pub(super) long: u64,
    pub(super) float: f32,
    pub(super) short: [i16; 2],
}

/// Three bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(super) struct Small(pub(super) u8, pub(super) [i8; 2]);

/// 21 bytes, aligned to nothing.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(super) struct Packed {
    pub(super) byte: u8,
    pub(super) long: i64,
    pub(super) double: f64,
    pub(super) word: u32,
}

/// 32 bytes in two numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable, Record)]
pub(super) struct Wide {
    pub(super) first: u128,
    pub(super) second: i128,
}
