//! The data that travels with a key while levels are merged, and what an element can be.

use bytemuck::{Pod, Zeroable};
use core::fmt::Debug;

/// A value, which replaces older ones.
pub(crate) const PUT: u32 = 0;
/// A tombstone: the key is absent, whatever is older.
pub(crate) const TOMBSTONE: u32 = 1;
/// A value that is combined with what is older.
pub(crate) const OPERAND: u32 = 2;
/// Nothing: the newer elements of the key in the same level include it.
pub(crate) const NOTHING: u32 = 3;
/// The bits of the kinds above.
pub(crate) const KIND: u32 = 3;

/// The data that travels with a key during a merge: its value and, if not all elements are values, its kind.
///
/// Kernels rely on what it says of itself, so there are no others than those of this crate:
///
/// ```compile_fail,E0277
/// use bytemuck::{Pod, Zeroable};
/// use gpu_dictionary::levels::Payload;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, Pod, Zeroable)]
/// struct Own(u32);
///
/// impl Payload for Own {
///     type Value = Self;
///     const HAS_MARKS: bool = false;
///     fn new(value: Self, _: u32) -> Self {
///         value
///     }
///     fn value(self) -> Self {
///         self
///     }
///     fn kind(self) -> u32 {
///         3
///     }
/// }
/// ```
pub trait Payload: Pod + Debug + sealed::Sealed {
    /// The type of the value.
    type Value: Pod;
    /// Whether there can be tombstones or operands.
    const HAS_MARKS: bool;
    /// Creates a payload.
    fn new(value: Self::Value, kind: u32) -> Self;
    /// Returns the value.
    fn value(self) -> Self::Value;
    /// Returns the kind.
    fn kind(self) -> u32;

    /// Returns whether the element is a tombstone.
    #[inline(always)]
    fn is_dead(self) -> bool {
        self.kind() == TOMBSTONE
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($value:ty),*) => { $(
        impl sealed::Sealed for $value {}
        impl Payload for $value {
            type Value = Self;
            const HAS_MARKS: bool = false;
            #[inline(always)]
            fn new(value: Self, _: u32) -> Self {
                value
            }
            #[inline(always)]
            fn value(self) -> Self {
                self
            }
            #[inline(always)]
            fn kind(self) -> u32 {
                PUT
            }
        }
    )* };
}

plain!((), u32, u64);

macro_rules! marked {
    ($($(#[$doc:meta])* $name:ident($value:ty, $word:ty);)*) => { $(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable)]
        pub struct $name {
            kind: $word,
            value: $value,
        }
        impl sealed::Sealed for $name {}
        impl Payload for $name {
            type Value = $value;
            const HAS_MARKS: bool = true;
            #[inline(always)]
            fn new(value: $value, kind: u32) -> Self {
                Self { kind: kind.into(), value }
            }
            #[inline(always)]
            fn value(self) -> $value {
                self.value
            }
            #[inline(always)]
            fn kind(self) -> u32 {
                self.kind as u32
            }
        }
    )* };
}

marked! {
    /// No value, and a kind.
    MarkedNone((), u32);
    /// A 4-byte value, and its kind.
    Marked(u32, u32);
    /// An 8-byte value, and its kind.
    MarkedLong(u64, u64);
}
