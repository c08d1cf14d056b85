//! The scalar types that operators compute with.

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `bool`, one byte that is 0 or 1.
    Bool,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `u128`.
    U128,
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `i128`.
    I128,
    /// `half::f16`.
    #[cfg(feature = "half")]
    F16,
    /// `half::bf16`.
    #[cfg(feature = "half")]
    Bf16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl Kind {
    /// Returns the number of bits, 8 for `bool`.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 8,
            Self::U16 | Self::I16 => 16,
            #[cfg(feature = "half")]
            Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 => 64,
            Self::U128 | Self::I128 => 128,
        }
    }

    /// Returns the number of bytes.
    pub const fn size(self) -> usize {
        self.bits() as usize / 8
    }

    /// Returns whether this is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::I128)
    }

    /// Returns whether this is a float.
    pub const fn is_float(self) -> bool {
        self.is_half() || matches!(self, Self::F32 | Self::F64)
    }

    /// Returns whether this is an integer.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Returns whether this is a float of 16 bits, which is computed as `f32`.
    pub(crate) const fn is_half(self) -> bool {
        #[cfg(feature = "half")]
        return matches!(self, Self::F16 | Self::Bf16);
        #[cfg(not(feature = "half"))]
        false
    }

    /// Returns whether this is an integer of 128 bits.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::U128 | Self::I128)
    }

    /// Returns a number whose lowest [`bits`](Self::bits) are set.
    pub(crate) const fn mask(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }
}
