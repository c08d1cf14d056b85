//! What travels with a key while levels are merged.

use bytemuck::{Pod, Zeroable};

/// What travels with a key while it is merged: its value, and whether it is a tombstone, if there are any.
pub trait Payload: Pod {
    /// The value.
    type Value: Pod;
    /// Whether there are tombstones.
    const HAS_MARKS: bool;
    /// A payload.
    fn new(value: Self::Value, is_dead: bool) -> Self;
    /// Its value.
    fn value(self) -> Self::Value;
    /// Whether it is a tombstone.
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
    /// No value, and a mark.
    MarkedNone((), u32);
    /// A value of 4 bytes, and a mark.
    Marked(u32, u32);
    /// A value of 8 bytes, and a mark.
    MarkedLong(u64, u64);
}
