//! Values that only travel: kernels are instantiated for their size, not for their type.

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

/// Runs an expression with two views of values (one to read, one to write) as views of their carrier: the unsigned type of
/// the same size, where there is one and the memory is aligned for it.
macro_rules! carried {
    ($value:ty, $from:expr, $to:expr, |$carried_from:ident, $carried_to:ident| $body:expr) => {{
        let (from, to) = ($from, $to);
        let addresses = from.as_ptr().addr() | to.as_const().as_ptr().addr();
        macro_rules! with {
            ($carrier:ty) => {{
                // SAFETY: the sizes are equal, and the addresses are multiples of the size.
                #[allow(
                    clippy::undocumented_unsafe_blocks,
                    reason = "it is, above; the lint does not look into macros"
                )]
                let ($carried_from, $carried_to) = unsafe {
                    (
                        $crate::runtime::carrier::reinterpret::<$value, $carrier>(from),
                        $crate::runtime::carrier::reinterpret_mut::<$value, $carrier>(to),
                    )
                };
                $body
            }};
        }
        match size_of::<$value>() {
            0 => with!(()),
            4 if addresses.is_multiple_of(4) => with!(u32),
            8 if addresses.is_multiple_of(8) => with!(u64),
            16 if addresses.is_multiple_of(16) => with!($crate::transfer::Line),
            _ => with!($value),
        }
    }};
}

pub(crate) use carried;
