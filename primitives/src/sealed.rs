//! Numbers that kernels are compiled for: nobody adds others.

use crate::code::U256;

/// A number that kernels are compiled for. Traits with this bound cannot be implemented outside of this crate.
pub trait Sealed {}

macro_rules! sealed {
    ($($number:ty)*) => { $(impl Sealed for $number {})* };
}

sealed!(u8 u16 u32 u64 u128 i8 i16 i32 i64 U256);
