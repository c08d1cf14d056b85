//! Values that are only carried along, never looked at: types of the same size and alignment share one instance.
//!
//! A kernel that moves values does not care whether 4 bytes are a `u32`, an `f32` or a struct, so there is PTX for `u32` and
//! `u64` alone, and the host lends it views of other types.

use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// The type that carries values of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// `u32`: 4 bytes, aligned to 4.
    Word,
    /// `u64`: 8 bytes, aligned to 8.
    Double,
    /// The type itself.
    Own,
}

impl Carrier {
    /// The carrier of `T`.
    pub(crate) const fn of<T>() -> Self {
        match (size_of::<T>(), align_of::<T>()) {
            (4, 4) => Self::Word,
            (8, 8) => Self::Double,
            _ => Self::Own,
        }
    }
}

/// The same memory, seen as its carrier. `U` has the size and the alignment of `T`, else it panics.
pub(crate) const fn carried<T: Pod, U: Pod>(view: Global<T>) -> Global<U> {
    assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() == align_of::<U>(), "the carrier has another layout");
    // SAFETY: plain data of the same size and alignment.
    unsafe { Global::from_raw(view.as_ptr().cast(), view.len()) }
}

/// [`carried`] for memory that is written.
pub(crate) const fn carried_mut<T: Pod, U: Pod>(view: GlobalMut<T>) -> GlobalMut<U> {
    let read = carried::<T, U>(view.as_const());
    // SAFETY: as above.
    unsafe { GlobalMut::from_raw(read.as_ptr().cast_mut(), read.len()) }
}

/// The view for values that are not there.
pub(crate) fn absent() -> Global<()> {
    // SAFETY: no elements.
    unsafe { Global::from_raw(core::ptr::NonNull::dangling().as_ptr(), 0) }
}

/// [`absent`] for memory that is written.
pub(crate) fn absent_mut() -> GlobalMut<()> {
    // SAFETY: no elements.
    unsafe { GlobalMut::from_raw(core::ptr::NonNull::dangling().as_ptr(), 0) }
}
