//! Values that only travel: kernels are instantiated for their size, not for their type.
//!
//! A kernel that moves values does not care whether 4 bytes are a `u32`, an `f32` or a struct, so there is PTX for few types,
//! the *carriers*, and the host lends it views of other types as views of the carrier of that size.

use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// The same memory as another type.
///
/// # Safety
/// Both types have the same size, and the memory is aligned for the other one.
pub(crate) unsafe fn reinterpret<A: Pod, B: Pod>(view: Global<A>) -> Global<B> {
    debug_assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: the same bytes, of plain data.
    unsafe { Global::from_raw(view.as_ptr().cast(), view.len()) }
}

/// The same memory as another type.
///
/// # Safety
/// As [`reinterpret`].
pub(crate) unsafe fn reinterpret_mut<A: Pod, B: Pod>(view: GlobalMut<A>) -> GlobalMut<B> {
    debug_assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: the same bytes, of plain data.
    unsafe { GlobalMut::from_raw(view.as_const().as_ptr().cast_mut().cast(), view.len()) }
}

/// Views of values of one type.
pub(crate) trait Carry {
    /// The type of the values.
    type Value: Pod;
    /// The same views of values of another type.
    type As<W: Pod>;

    /// The bits of all addresses: they are a multiple of a power of two if all addresses are.
    fn addresses(&self) -> usize;

    /// The same memory as another type.
    ///
    /// # Safety
    /// As [`reinterpret`].
    unsafe fn reinterpret<W: Pod>(&self) -> Self::As<W>;

    /// The values as their carrier `W`, if it has their size and they lie where it may lie.
    fn carried<W: Pod>(&self) -> Option<Self::As<W>> {
        let fits = size_of::<Self::Value>() == size_of::<W>() && self.addresses().is_multiple_of(align_of::<W>());
        // SAFETY: that is what was asked.
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
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise is about both.
        unsafe { (self.0.reinterpret(), self.1.reinterpret()) }
    }
}

impl<A: Carry> Carry for Vec<A> {
    type Value = A::Value;
    type As<W: Pod> = Vec<A::As<W>>;

    fn addresses(&self) -> usize {
        self.iter().fold(0, |bits, views| bits | views.addresses())
    }

    unsafe fn reinterpret<W: Pod>(&self) -> Self::As<W> {
        // SAFETY: the caller's promise is about all of them.
        self.iter().map(|views| unsafe { views.reinterpret() }).collect()
    }
}

/// Runs an expression with [views](Carry) of values of some type as views of the first carrier that fits, or else as they are:
/// `carried!(V => u32 | u64, (from, to), |(from, to)| …)`. Without a list, two views and all sizes that a sort has.
macro_rules! carried {
    ($value:ty => $($carrier:ty)|+, $views:expr, |$carried:pat_param| $body:expr) => {{
        let views = $views;
        $(
            // The sizes are compared as a constant first, so that only what can run is compiled.
            if const { size_of::<$value>() == size_of::<$carrier>() }
                && let Some($carried) = $crate::runtime::carrier::Carry::carried::<$carrier>(&views)
            {
                $body
            } else
        )+
        {
            let $carried = views;
            $body
        }
    }};
    ($value:ty, $from:expr, $to:expr, |$carried_from:ident, $carried_to:ident| $body:expr) => {
        $crate::runtime::carrier::carried!(
            $value => () | u32 | u64 | $crate::transfer::Line,
            ($from, $to),
            |($carried_from, $carried_to)| $body
        )
    };
}

pub(crate) use carried;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_the_size_and_the_alignment() {
        let words = [0u32; 4];
        let at = |byte: usize| words.as_ptr().wrapping_byte_add(byte).cast::<[u16; 2]>();
        // SAFETY: within the array, and aligned for two bytes.
        let [aligned, astray] = [0, 2].map(|byte| unsafe { Global::from_raw(at(byte), 3) });
        assert_eq!(
            aligned.carried::<u32>().map(|carried| (carried.as_ptr(), carried.len())),
            Some((words.as_ptr(), 3))
        );
        assert!(aligned.carried::<u64>().is_none());
        assert!(astray.carried::<u32>().is_none());
        assert!((aligned, astray).carried::<u32>().is_none());
        assert!(vec![aligned, aligned].carried::<u32>().is_some());
        let names = [aligned, astray].map(|view| carried!([u16; 2] => u64 | u32, view, |view| type_of(view)));
        assert_eq!(names, ["u32", "[u16; 2]"]);
    }

    fn type_of<T: Pod>(_: Global<T>) -> &'static str {
        std::any::type_name::<T>()
    }
}
