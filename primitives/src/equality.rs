//! Equalities, for runs of equal elements.

use crate::form::{Holes, Param};
use crate::hole::{Hole, RegisterRepr};
use crate::operator::operator;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{
    hole::{Calls, OperatorBody},
    operator::Recorded,
};
use bytemuck::{Pod, Zeroable};

/// Says which elements are equal. It may carry state, which is passed to the GPU as a kernel argument: at most 64 bytes.
/// Put [`#[operator]`](crate::operator) on an implementation: it records the function for GPUs. For one-liners, there is
/// [`equality!`](macro@crate::operator::equality).
///
/// ```
/// use gpu_primitives::equality::{Equality, Same};
/// use gpu_primitives::operator::equality;
///
/// assert!(Same.equal(2u32, 2) && !Same.equal(2.0f32, f32::NAN));
/// assert!(equality!(|a: u32, b: u32| a / 10 == b / 10).equal(12, 17));
/// ```
///
/// # Contract
/// It is reflexive, symmetric and transitive. One that is not yields some runs, but never an out-of-bounds access.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an equality of elements of type `{T}`",
    note = "`Same` compares numbers",
    note = "`gpu_primitives::operator::equality!` makes an equality of a closure",
    note = "or put `#[operator]` on an implementation of the trait"
)]
pub trait Equality<T>: Param {
    /// Returns whether the elements are equal.
    fn equal(&self, a: T, b: T) -> bool;

    /// Records the equality for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// The `==` of numbers: of floats, -0 equals +0, and NaN equals nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Same;

macro_rules! same {
    ($($type:ty)*) => { $(
        #[operator]
        impl Equality<$type> for Same {
            #[inline(always)]
            fn equal(&self, a: $type, b: $type) -> bool {
                a == b
            }
        }
    )* };
}

same!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

#[cfg(all(feature = "half", not(target_arch = "nvptx64")))]
same!(half::f16 half::bf16);

/// An equality that is not known when a kernel is compiled: a [`Hole`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleEquality(Hole);

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HoleEquality {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleEquality {
    /// Returns an equality of elements `T`, for kernels that hold them in a type of the same size or a larger one.
    pub(crate) fn of<T: Pod, E: Equality<T>>(equality: E) -> Self {
        Self(Hole::new(equality, Self::filling::<T, E>()))
    }

    /// Describes what fills the hole.
    pub(crate) fn filling<T: Pod, E: Equality<T>>() -> &'static OperatorBody {
        /// # Safety
        /// The state is an `E`, the arguments begin with a `T` each, and the results have room for a byte.
        unsafe fn native<T: Pod, E: Equality<T>>(state: *const u8, calls: &Calls) {
            // SAFETY: guaranteed by the caller; an `E` and a `T` are plain data.
            unsafe {
                let equality = *state.cast::<E>();
                calls.binary(|a: T, b: T| u8::from(equality.equal(a, b)));
            }
        }
        /// # Safety
        /// The state is an `E`, and the elements begin with a `T` each.
        unsafe fn relation<T: Pod, E: Equality<T>>(state: *const u8, a: *const u8, b: *const u8) -> bool {
            // SAFETY: guaranteed by the caller; an `E` and a `T` are plain data.
            unsafe { (*state.cast::<E>()).equal(a.cast::<T>().read_unaligned(), b.cast::<T>().read_unaligned()) }
        }
        const {
            &OperatorBody {
                relation: Some(relation::<T, E>),
                ..OperatorBody::new::<E, T, bool, 2>("equal", E::recorded, native::<T, E>)
            }
        }
    }
}

impl HoleEquality {
    /// Returns whether the elements are equal.
    #[inline(always)]
    pub fn equal<H: RegisterRepr>(&self, a: H, b: H) -> bool {
        // SAFETY: it is made of an `Equality`, and the host launches a kernel with it only for elements of that type.
        unsafe { H::equal(&self.0, a, b) }
    }

    /// Writes whether each element equals the one after it: 1 or 0.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn neighbours<H: RegisterRepr>(&self, elements: &[H], are_equal: &mut [u8]) {
        // SAFETY: same as above.
        unsafe { self.0.neighbours(elements, are_equal) }
    }
}
