//! Plain types as keys.

use crate::Bytes;
use bytemuck::Pod;

/// A key of a hash table that compares bytes, which is gpu-cuckoo's `PlainCuckoo`: plain data of 1 to 32 bytes.
///
/// Implemented for the numbers, and for arrays of keys with up to 32 bytes. [`plain_key!`](macro@crate::plain_key) implements it
/// for a type of your own.
///
/// Longer keys are rejected where they are used, by `cargo check`:
///
/// ```compile_fail,E0277
/// fn takes_keys<K: gpu_dictionary::PlainKey>() {}
/// takes_keys::<[u64; 5]>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of a `PlainCuckoo`",
    note = "keys are plain data of 1 to 32 bytes: numbers, and arrays of them",
    note = "if that is a type of your own, write `gpu_dictionary::plain_key!({Self});`"
)]
pub trait PlainKey: Pod {
    /// The number of its bytes. Use [`plain_key!`](macro@crate::plain_key), which writes it.
    #[doc(hidden)]
    type Size: KeySize;
}

/// A size that a key can have.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a key of a `PlainCuckoo` has 1 to 32 bytes",
    note = "`{Self}` is the size of this type"
)]
pub trait KeySize {}

/// The size of an element of which `LEN` make a key.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a key of a `PlainCuckoo` has 1 to 32 bytes",
    note = "this array has {LEN} elements, and `{Self}` is the size of each"
)]
pub trait Repeat<const LEN: usize>: KeySize {
    /// The size of all.
    type Size: KeySize;
}

macro_rules! sizes {
    ($($size:literal: $($len:literal)*;)*) => { $(
        impl KeySize for Bytes<$size> {}
        $(impl Repeat<$len> for Bytes<$size> {
            type Size = Bytes<{ $size * $len }>;
        })*
    )* };
}

sizes! {
    1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32;
    2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16;
    3: 1 2 3 4 5 6 7 8 9 10;
    4: 1 2 3 4 5 6 7 8;
    5: 1 2 3 4 5 6;
    6: 1 2 3 4 5;
    7: 1 2 3 4;
    8: 1 2 3 4;
    9: 1 2 3;
    10: 1 2 3;
    11: 1 2; 12: 1 2; 13: 1 2; 14: 1 2; 15: 1 2; 16: 1 2;
    17: 1; 18: 1; 19: 1; 20: 1; 21: 1; 22: 1; 23: 1; 24: 1;
    25: 1; 26: 1; 27: 1; 28: 1; 29: 1; 30: 1; 31: 1; 32: 1;
}

/// Implements [`PlainKey`] for plain data of 1 to 32 bytes. A type of another size does not compile.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Cell {
///     layer: u32,
///     position: [i32; 3],
/// }
///
/// gpu_dictionary::plain_key!(Cell);
/// ```
///
/// ```compile_fail,E0277
/// # use bytemuck::{Pod, Zeroable};
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Path {
///     nodes: [u32; 9],
/// }
///
/// gpu_dictionary::plain_key!(Path); // 36 bytes
/// ```
#[macro_export]
macro_rules! plain_key {
    ($($type:ty),+ $(,)?) => { $(
        impl $crate::PlainKey for $type {
            type Size = $crate::Bytes<{ ::core::mem::size_of::<$type>() }>;
        }
    )+ };
}

plain_key!(u8, i8, u16, i16, u32, i32, f32, u64, i64, f64, u128, i128, usize, isize);

impl<T: PlainKey<Size: Repeat<LEN>>, const LEN: usize> PlainKey for [T; LEN]
where
    [T; LEN]: Pod,
{
    type Size = <T::Size as Repeat<LEN>>::Size;
}
