//! The types in which kernels exist, as sizes and layouts.
//!
//! Kernels are compiled for a few sizes. Elements that an operator computes with are in registers as a [`RegisterRepr`]: the
//! smallest type that has room for them.

use crate::hole::RegisterRepr;
use bytemuck::Pod;
use std::alloc::Layout;

/// [`expect_repr`] for two types.
pub(crate) const fn expect_both<K, V>() {
    expect_repr::<K>();
    expect_repr::<V>();
}

/// Returns an element in the type that holds it, with zeros behind it.
pub(crate) fn widened<T: Pod, H: RegisterRepr>(element: T) -> H {
    let mut held = H::zeroed();
    bytemuck::bytes_of_mut(&mut held)[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&element));
    held
}

/// Returns a [widened] element in the type that holds it.
pub(crate) fn narrowed<H: RegisterRepr>(wide: [u64; 4]) -> H {
    bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&wide)[..size_of::<H>()])
}

/// Checks that there is a type that holds such elements. In a constant, others do not compile.
pub(crate) const fn expect_repr<T>() {
    let _ = repr_layout(size_of::<T>());
}

/// Returns the layout of the type that holds elements of a size: `u32`, `u64`, `[u32; 3]`, `[u64; 2]` or `[u64; 4]`.
pub(crate) const fn repr_layout(size: usize) -> Layout {
    match size {
        1..=4 => Layout::new::<u32>(),
        5..=8 => Layout::new::<u64>(),
        9..=12 => Layout::new::<[u32; 3]>(),
        13..=16 => Layout::new::<[u64; 2]>(),
        17..=32 => Layout::new::<[u64; 4]>(),
        _ => panic!(
            "an operator's elements have 1 to 32 bytes: sort larger ones by a key, with the element as the value"
        ),
    }
}

/// [`repr_layout`], with `u8` and `u16` for elements of one and two bytes.
pub(crate) const fn repr_layout_or_bytes(size: usize) -> Layout {
    match size {
        1 => Layout::new::<u8>(),
        2 => Layout::new::<u16>(),
        _ => repr_layout(size),
    }
}

/// Returns the bytes of the type that holds elements of a size: see [`repr_layout`].
pub(crate) const fn repr_size(size: usize) -> usize {
    repr_layout(size).size()
}

/// [`repr_size`], with one and two bytes for elements of that size.
pub(crate) const fn repr_size_or_bytes(size: usize) -> usize {
    repr_layout_or_bytes(size).size()
}
