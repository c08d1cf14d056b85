//! The values of dictionaries, and the types that carry them through kernels.
//!
//! A kernel that moves values does not depend on whether 4 bytes are a `u32`, an `f32` or a struct. So kernels exist
//! for a few types, the *carriers*, and every value type names the carrier of its size.

use crate::levels::{Marked, MarkedLong, MarkedNone, Payload};
use bytemuck::Pod;

/// A value of a dictionary: plain data of 0, 4 or 8 bytes. Zero-sized values make the dictionary a set.
///
/// Implemented for `()`, for the numbers, and for arrays of numbers of these sizes. [`value!`](macro@crate::value) implements
/// it for a type of your own.
///
/// A type of another size is rejected where it is used, by `cargo check`:
///
/// ```compile_fail,E0277
/// fn takes_values<V: gpu_dictionary::Value>() {}
/// takes_values::<[u64; 3]>(); // 24 bytes
/// ```
///
/// So is, where a dictionary is made, a type whose carrier has another size. The macro does not write such an implementation:
///
/// ```compile_fail,E0080
/// use bytemuck::{Pod, Zeroable};
/// use gpu_dictionary::levels::Stack;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Unit;
///
/// impl gpu_dictionary::Value for Unit {
///     type Carrier = u32;
/// }
///
/// let stack = Stack::<u32, Unit>::new();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value of a dictionary",
    note = "values are plain data of 0, 4 or 8 bytes; if that is a type of your own, write `gpu_dictionary::value!({Self});`",
    note = "values of any other size go into a `gpu_dictionary::LargeValues`"
)]
pub trait Value: Pod {
    /// The carrier of the same size.
    type Carrier: Carrier;
}

/// Checks, while the program is compiled, that a value is as large as its carrier. Kernels write the one where the host has
/// allocated the other, so everything that holds values calls this when it is made.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub const fn assert_carried<V: Value>() {
    const {
        assert!(
            size_of::<V>() == size_of::<V::Carrier>(),
            "the carrier of a dictionary's value has another size: implement `Value` by `gpu_dictionary::value!`"
        );
    }
}

/// A type that carries values of its size through kernels: `()`, `u32` or `u64`. There are no others.
pub trait Carrier: Payload<Value = Self> + Copy + Ord {
    /// The carrier with a mark.
    type Marked: Payload<Value = Self>;
}

impl Carrier for () {
    type Marked = MarkedNone;
}

impl Carrier for u32 {
    type Marked = Marked;
}

impl Carrier for u64 {
    type Marked = MarkedLong;
}

/// A number of bytes: the sizes for which there is a carrier implement [`HasCarrier`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Bytes<const SIZE: usize>;

/// A size for which there is a carrier.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this type is not a value of a dictionary",
    note = "values of a dictionary have 0, 4 or 8 bytes: `{Self}` is the size of this type",
    note = "values of any other size go into a `gpu_dictionary::LargeValues`"
)]
pub trait HasCarrier {
    /// The carrier.
    type Carrier: Carrier;
}

impl HasCarrier for Bytes<0> {
    type Carrier = ();
}

impl HasCarrier for Bytes<4> {
    type Carrier = u32;
}

impl HasCarrier for Bytes<8> {
    type Carrier = u64;
}

/// Implements [`Value`] for plain data of 0, 4 or 8 bytes. A type of another size does not compile.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Position {
///     page: u16,
///     line: u16,
/// }
///
/// gpu_dictionary::value!(Position);
/// ```
///
/// ```compile_fail,E0277
/// # use bytemuck::{Pod, Zeroable};
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Box3 {
///     corners: [f32; 6],
/// }
///
/// gpu_dictionary::value!(Box3); // 24 bytes
/// ```
#[macro_export]
macro_rules! value {
    ($($type:ty),+ $(,)?) => { $(
        impl $crate::Value for $type {
            type Carrier = <$crate::Bytes<{ ::core::mem::size_of::<$type>() }> as $crate::HasCarrier>::Carrier;
        }
    )+ };
}

value!((), u32, i32, f32, u64, i64, f64);
value!([u8; 4], [i8; 4], [u16; 2], [i16; 2], [u32; 1], [i32; 1], [f32; 1]);
value!([u8; 8], [i8; 8], [u16; 4], [i16; 4], [u32; 2], [i32; 2], [f32; 2], [u64; 1], [i64; 1], [f64; 1]);

/// Returns how many values go with `len` keys: zero-sized values are not stored.
#[must_use]
pub const fn values_for<V>(len: usize) -> usize {
    if size_of::<V>() == 0 { 0 } else { len }
}
