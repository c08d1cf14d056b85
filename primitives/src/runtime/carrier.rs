//! Values that kernels only move: kernels are instantiated for the size of the values, not for their type.
//!
//! A kernel that moves values does not depend on whether 4 bytes are a `u32`, an `f32` or a struct. So PTX exists only
//! for a few types, the *carriers*. The host passes views of other types as views of the carrier of the same size.

use super::column::Column;
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// Reinterprets a view as a view of another type.
///
/// # Safety
/// Both types have the same size, and the memory is aligned for the other one.
pub(crate) unsafe fn reinterpret<A: Pod, B: Pod>(view: Global<A>) -> Global<B> {
    debug_assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: these are the same bytes, and both types are plain data.
    unsafe { Global::from_raw(view.as_ptr().cast(), view.len()) }
}

/// Reinterprets a mutable view as a view of another type.
///
/// # Safety
/// Same as [`reinterpret`].
pub(crate) unsafe fn reinterpret_mut<A: Pod, B: Pod>(view: GlobalMut<A>) -> GlobalMut<B> {
    debug_assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: these are the same bytes, and both types are plain data.
    unsafe { GlobalMut::from_raw(view.as_const().as_ptr().cast_mut().cast(), view.len()) }
}

/// Views of values of one type.
pub(crate) trait Carry {
    /// The type of the values.
    type Value: Pod;
    /// The same views, with another value type.
    type As<W: Pod>;

    /// Returns the bitwise OR of all addresses: it is a multiple of a power of two if all addresses are.
    fn addresses(&self) -> usize;

    /// Reinterprets the views as views of another type.
    ///
    /// # Safety
    /// Same as [`reinterpret`].
    unsafe fn reinterpret<W: Pod>(&self) -> Self::As<W>;

    /// Returns the values as their carrier `W`, if it has the same size and they are aligned for it.
    fn carried<W: Pod>(&self) -> Option<Self::As<W>> {
        let fits = size_of::<Self::Value>() == size_of::<W>() && self.addresses().is_multiple_of(align_of::<W>());
        // SAFETY: size and alignment were just checked.
        fits.then(|| unsafe { self.reinterpret() })
    }
}

impl<T: Pod> Carry for Global<T> {
    type Value = T;
    type As<W: Pod> = Global<W>;

    fn addresses(&self) -> usize {
        self.as_ptr().addr()
    }

    unsafe fn reinterpret<W: Pod>(&self) -> Global<W> {
        // SAFETY: guaranteed by the caller.
        unsafe { reinterpret(*self) }
    }
}

impl<T: Pod> Carry for GlobalMut<T> {
    type Value = T;
    type As<W: Pod> = GlobalMut<W>;

    fn addresses(&self) -> usize {
        self.as_const().addresses()
    }

    unsafe fn reinterpret<W: Pod>(&self) -> GlobalMut<W> {
        // SAFETY: guaranteed by the caller.
        unsafe { reinterpret_mut(*self) }
    }
}

impl<A: Carry, B: Carry<Value = A::Value>> Carry for (A, B) {
    type Value = A::Value;
    type As<W: Pod> = (A::As<W>, B::As<W>);

    fn addresses(&self) -> usize {
        self.0.addresses() | self.1.addresses()
    }

    unsafe fn reinterpret<W: Pod>(&self) -> Self::As<W> {
        // SAFETY: the caller's guarantee covers both.
        unsafe { (self.0.reinterpret(), self.1.reinterpret()) }
    }
}

/// Evaluates an expression with [views](Carry) of a value type as views of the first carrier that fits, or another one
/// with the views as they are: `carried!(V => u32 | u64, (from, to), |(from, to)| …, else |(from, to)| …)`.
macro_rules! carried {
    ($value:ty => $($carrier:ty)|+, $views:expr, |$carried:pat_param| $body:expr, else |$other:pat_param| $otherwise:expr) => {{
        let views = $views;
        $(
            // The sizes are first compared as constants, so that only code that can run is compiled.
            if const { size_of::<$value>() == size_of::<$carrier>() }
                && let Some($carried) = $crate::runtime::carrier::Carry::carried::<$carrier>(&views)
            {
                $body
            } else
        )+
        {
            let $other = views;
            $otherwise
        }
    }};
}

/// Evaluates an expression with the types of keys and values that kernels with an order have, by their sizes:
/// `ordered!((key, value) => (H, W), …)`. Values of other sizes are [not moved](is_moved_with).
macro_rules! ordered {
    ($sizes:expr => ($key:ident, $value:ident), $body:expr) => {{
        let (key, value): (usize, usize) = $sizes;
        $crate::sized!(key => $key in u32 | u64, $crate::sized!(
            value => $value in () | u32 | u64, $body,
            else unreachable!("values of {value} bytes are moved by their indices")
        ), else $crate::sized!(key => $key in [u32; 3] | [u64; 2], $crate::sized!(
            value => $value in () | u32, $body,
            else unreachable!("values of {value} bytes are moved by their indices")
        ), else {
            assert_eq!((key, value), (32, 4), "the bytes of a key and of a value that kernels with an order have");
            type $key = [u64; 4];
            type $value = u32;
            $body
        }))
    }};
}

/// Returns whether kernels with an order move these values with keys that are held in `key` bytes. They exist for values of 4
/// and 8 bytes; with keys of over 8 bytes, for values of 4; and keys of up to 16 bytes need none.
pub(crate) fn is_moved_with(key: usize, values: Column) -> bool {
    match values.size() {
        0 => key <= 16,
        4 => values.fits::<u32>(),
        8 => key <= 8 && values.fits::<u64>(),
        _ => false,
    }
}

pub(crate) use carried;
pub(crate) use ordered;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_the_size_and_the_alignment() {
        let words = [0u32; 4];
        let at = |byte: usize| words.as_ptr().wrapping_byte_add(byte).cast::<[u16; 2]>();
        // SAFETY: within the array, and aligned to two bytes.
        let [aligned, misaligned] = [0, 2].map(|byte| unsafe { Global::from_raw(at(byte), 3) });
        assert_eq!(
            aligned.carried::<u32>().map(|carried| (carried.as_ptr(), carried.len())),
            Some((words.as_ptr(), 3))
        );
        assert!(aligned.carried::<u64>().is_none());
        assert!(misaligned.carried::<u32>().is_none());
        assert!((aligned, misaligned).carried::<u32>().is_none());
        let names = [aligned, misaligned]
            .map(|view| carried!([u16; 2] => u64 | u32, view, |view| type_of(view), else |view| type_of(view)));
        assert_eq!(names, ["u32", "[u16; 2]"]);
    }

    fn type_of<T: Pod>(_: Global<T>) -> &'static str {
        std::any::type_name::<T>()
    }
}
