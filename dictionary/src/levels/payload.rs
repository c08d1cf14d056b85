//! The data that travels with a key while levels are merged.

use bytemuck::{Pod, Zeroable};
use core::fmt::Debug;

/// The data that travels with a key during a merge: its value and, if there are tombstones, whether it is one.
pub trait Payload: Pod + Debug {
    /// The type of the value.
    type Value: Pod;
    /// Whether there can be tombstones.
    const HAS_MARKS: bool;
    /// Creates a payload.
    fn new(value: Self::Value, is_dead: bool) -> Self;
    /// Returns the value.
    fn value(self) -> Self::Value;
    /// Returns whether the element is a tombstone.
    fn is_dead(self) -> bool;
}

macro_rules! plain {
    ($($value:ty),*) => { $(
        impl Payload for $value {
            type Value = Self;
            const HAS_MARKS: bool = false;
            #[inline(always)]
            fn new(value: Self, _: bool) -> Self {
                value
            }
            #[inline(always)]
            fn value(self) -> Self {
                self
            }
            #[inline(always)]
            fn is_dead(self) -> bool {
                false
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
            is_dead: $word,
            value: $value,
        }
        impl Payload for $name {
            type Value = $value;
            const HAS_MARKS: bool = true;
            #[inline(always)]
            fn new(value: $value, is_dead: bool) -> Self {
                Self { is_dead: is_dead.into(), value }
            }
            #[inline(always)]
            fn value(self) -> $value {
                self.value
            }
            #[inline(always)]
            fn is_dead(self) -> bool {
                self.is_dead != 0
            }
        }
    )* };
}

marked! {
    /// No value, and a tombstone mark.
    MarkedNone((), u32);
    /// A 4-byte value, and a tombstone mark.
    Marked(u32, u32);
    /// An 8-byte value, and a tombstone mark.
    MarkedLong(u64, u64);
}
