//! Associative operations with an identity, for scans and reductions.

use crate::form::{Holes, Param};
use crate::hole::{Hole, RegisterRepr};
use crate::operator::operator;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{
    hole::{Calls, Folds, OperatorBody},
    operator::Recorded,
};
use bytemuck::{Pod, Zeroable};

/// An associative operation with an identity. It may carry state, which is passed to the GPU as a kernel argument: at
/// most 64 bytes. Put [`#[operator]`](crate::operator) on an implementation: it records the operation for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::scan::{self, Monoid};
/// use gpu_primitives::{Device, Error};
///
/// /// The smallest and the largest number.
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Record)]
/// struct Span {
///     low: i32,
///     high: i32,
/// }
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Union;
///
/// #[operator]
/// impl Monoid<Span> for Union {
///     fn identity(&self) -> Span {
///         Span { low: i32::MAX, high: i32::MIN }
///     }
///
///     fn combine(&self, a: Span, b: Span) -> Span {
///         Span { low: a.low.min(b.low), high: a.high.max(b.high) }
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let mut spans = stream.upload(&[5, 3, 9, 4].map(|x| Span { low: x, high: x }))?;
/// scan::inclusive_in_place(&stream, &mut spans, Union)?;
/// assert_eq!(spans.to_vec(&stream)?[3], Span { low: 3, high: 9 });
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// `combine(a, combine(b, c))` equals `combine(combine(a, b), c)` (for floating-point sums, up to rounding), and
/// combining with `identity()` on either side changes nothing. The operation need not be commutative. An operation that
/// breaks this contract yields some values, but never an out-of-bounds access.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation that combines elements of type `{T}`",
    note = "`Sum`, `Max` and `Min` combine numbers",
    note = "`gpu_primitives::operator::monoid!` makes an operation of an identity and a closure",
    note = "or put `#[operator]` on an implementation of the trait"
)]
pub trait Monoid<T>: Param {
    /// Whether the operation is associative to the last bit, as those of integers are, and those of floats in general are not.
    /// Then the CPU device combines in the shape that is fastest, and not in that of a GPU. A wrong answer costs no more than
    /// equal results on all devices.
    const EXACT: bool = false;

    /// Whether the order of the elements makes no difference to the last bit, either. Then a reduction need not keep it, which
    /// takes half the time for large elements. It counts only with [`EXACT`](Self::EXACT). A wrong answer gives wrong results.
    const COMMUTATIVE: bool = false;

    /// Returns the identity element.
    fn identity(&self) -> T;

    /// Combines `a` with `b`, in this order.
    fn combine(&self, a: T, b: T) -> T;

    /// Records the operation for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// An associative operation as kernels use it: a [`HoleMonoid`], or one that is known when the kernel is compiled.
pub trait Combine<T>: Param {
    /// Returns the identity element.
    fn identity(&self) -> T;

    /// Combines `a` with `b`, in this order.
    fn combine(&self, a: T, b: T) -> T;

    /// Returns whether the operation is [exact](Monoid::EXACT).
    #[cfg(not(target_arch = "nvptx64"))]
    fn is_exact(&self) -> bool {
        false
    }

    /// Combines each value of `a` with that of `b`.
    #[cfg(not(target_arch = "nvptx64"))]
    fn combine_each(&self, a: &[T], b: &[T], combined: &mut [T])
    where
        T: Copy,
    {
        combined.iter_mut().zip(a.iter().zip(b)).for_each(|(combined, (&a, &b))| *combined = self.combine(a, b));
    }

    /// Combines values one after the other, from `total` on.
    #[cfg(not(target_arch = "nvptx64"))]
    fn fold(&self, total: T, values: &[T]) -> T
    where
        T: Copy,
    {
        values.iter().fold(total, |total, &value| self.combine(total, value))
    }

    /// Replaces each value by the combination of those before it, from `total` on; with `inclusive`, by the combination up
    /// to and including it. Returns the combination of all.
    #[cfg(not(target_arch = "nvptx64"))]
    fn scan(&self, mut total: T, values: &mut [T], inclusive: bool) -> T
    where
        T: Copy,
    {
        for value in values {
            let before = total;
            total = self.combine(total, *value);
            *value = if inclusive { total } else { before };
        }
        total
    }
}

/// An operation that is not known when a kernel is compiled: a [`Hole`], and the identity element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleMonoid<H> {
    hole: Hole,
    identity: H,
}

// SAFETY: `repr(C)`, a parameter and plain data.
unsafe impl<H: Pod> Param for HoleMonoid<H> {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl<H: RegisterRepr> HoleMonoid<H> {
    /// Returns an operation on elements `T`, for kernels that hold them in an `H`, which is no smaller.
    #[must_use]
    pub fn of<T: Pod, M: Monoid<T>>(operation: M) -> Self {
        let identity = crate::host::repr::widened(operation.identity());
        Self { hole: Hole::new(operation, Self::filling::<T, M>()), identity }
    }

    /// Describes what fills the hole.
    pub(crate) fn filling<T: Pod, M: Monoid<T>>() -> &'static OperatorBody {
        /// # Safety
        /// The state is an `M`, the arguments begin with a `T` each, and the results have room for one.
        unsafe fn native<T: Pod, M: Monoid<T>>(state: *const u8, calls: &Calls) {
            // SAFETY: guaranteed by the caller; an `M` and a `T` are plain data.
            unsafe {
                let operation = *state.cast::<M>();
                calls.binary(|a: T, b: T| operation.combine(a, b));
            }
        }
        /// # Safety
        /// The state is an `M`, the elements begin with a `T` each, and the total is one.
        unsafe fn fold<T: Pod, M: Monoid<T>>(
            state: *const u8,
            elements: *const u8,
            step: usize,
            len: usize,
            total: *mut u8,
        ) {
            // SAFETY: guaranteed by the caller; an `M` and a `T` are plain data.
            unsafe {
                let operation = *state.cast::<M>();
                let mut sum = total.cast::<T>().read_unaligned();
                if step == size_of::<T>() {
                    for i in 0..len {
                        sum = operation.combine(sum, elements.cast::<T>().add(i).read_unaligned());
                    }
                } else {
                    for i in 0..len {
                        sum = operation.combine(sum, elements.add(i * step).cast::<T>().read_unaligned());
                    }
                }
                total.cast::<T>().write_unaligned(sum);
            }
        }
        /// # Safety
        /// The state is an `M`, the elements begin with a `T` each, and the total is one.
        unsafe fn scan<T: Pod, M: Monoid<T>>(
            state: *const u8,
            elements: *mut u8,
            step: usize,
            len: usize,
            total: *mut u8,
            inclusive: bool,
        ) {
            // SAFETY: guaranteed by the caller; an `M` and a `T` are plain data.
            unsafe {
                let operation = *state.cast::<M>();
                let mut sum = total.cast::<T>().read_unaligned();
                for i in 0..len {
                    let element = elements.add(i * step).cast::<T>();
                    let before = sum;
                    sum = operation.combine(sum, element.read_unaligned());
                    element.write_unaligned(if inclusive { sum } else { before });
                }
                total.cast::<T>().write_unaligned(sum);
            }
        }
        const {
            &OperatorBody {
                folds: Some(Folds {
                    exact: M::EXACT,
                    commutes: M::EXACT && M::COMMUTATIVE,
                    fold: fold::<T, M>,
                    scan: scan::<T, M>,
                }),
                ..OperatorBody::new::<M, T, T, 2>("combine", M::recorded, native::<T, M>)
            }
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleMonoid<[u64; 4]> {
    /// Returns whether elements may be combined in any order: the operation is exact, and [commutative](Monoid::COMMUTATIVE).
    pub(crate) fn commutes(&self) -> bool {
        self.hole.commutes()
    }

    /// Returns the same operation for kernels that hold the elements in an `H`. The widest type stands for all others in code
    /// that does not know the elements.
    pub(crate) fn held_in<H: RegisterRepr>(&self) -> HoleMonoid<H> {
        HoleMonoid { hole: self.hole, identity: crate::host::repr::narrowed(self.identity) }
    }
}

impl<H: RegisterRepr> Combine<H> for HoleMonoid<H> {
    #[inline(always)]
    fn identity(&self) -> H {
        self.identity
    }

    #[inline(always)]
    fn combine(&self, a: H, b: H) -> H {
        // SAFETY: it is made of a `Monoid`, and the host launches a kernel with it only for elements of that type.
        unsafe { H::combine(&self.hole, a, b) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn is_exact(&self) -> bool {
        self.hole.is_exact()
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn combine_each(&self, a: &[H], b: &[H], combined: &mut [H]) {
        // SAFETY: same as above.
        unsafe { self.hole.each_pair(a, b, combined) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn fold(&self, total: H, values: &[H]) -> H {
        // SAFETY: same as above.
        unsafe { self.hole.fold(total, values) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn scan(&self, total: H, values: &mut [H], inclusive: bool) -> H {
        // SAFETY: same as above.
        unsafe { self.hole.scan(total, values, inclusive) }
    }
}

/// Addition. Integers wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Sum;

/// The maximum. For floats, NaNs are ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Max;

/// The minimum. For floats, NaNs are ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Min;

macro_rules! integer_operators {
    ($($type:ty)*) => { $(
        #[operator]
        impl Monoid<$type> for Sum {
            const EXACT: bool = true;
            const COMMUTATIVE: bool = true;

            #[inline(always)]
            fn identity(&self) -> $type {
                0
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.wrapping_add(b)
            }
        }
        #[operator]
        impl Monoid<$type> for Max {
            const EXACT: bool = true;
            const COMMUTATIVE: bool = true;

            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::MIN
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.max(b)
            }
        }
        #[operator]
        impl Monoid<$type> for Min {
            const EXACT: bool = true;
            const COMMUTATIVE: bool = true;

            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::MAX
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a.min(b)
            }
        }
    )* };
}

macro_rules! float_operators {
    ($($type:ty, $zero:expr;)*) => { $(
        #[operator]
        impl Monoid<$type> for Sum {
            #[inline(always)]
            fn identity(&self) -> $type {
                $zero
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                a + b
            }
        }
        #[operator]
        impl Monoid<$type> for Max {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::NEG_INFINITY
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                if b > a || a.is_nan() { b } else { a }
            }
        }
        #[operator]
        impl Monoid<$type> for Min {
            #[inline(always)]
            fn identity(&self) -> $type {
                <$type>::INFINITY
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                if b < a || a.is_nan() { b } else { a }
            }
        }
    )* };
}

macro_rules! known {
    ($($operation:ty: $($type:ty)*;)*) => { $($(
        impl Combine<$type> for $operation {
            #[inline(always)]
            fn identity(&self) -> $type {
                Monoid::identity(self)
            }
            #[inline(always)]
            fn combine(&self, a: $type, b: $type) -> $type {
                Monoid::combine(self, a, b)
            }
        }
    )*)* };
}

integer_operators!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);
float_operators!(f32, 0.0; f64, 0.0;);

#[cfg(all(feature = "half", not(target_arch = "nvptx64")))]
mod halves {
    use super::*;
    use half::{bf16, f16};

    float_operators!(f16, f16::ZERO; bf16, bf16::ZERO;);
}

// For kernels that count.
known! {
    Sum: u32 u64 i32 i64 f32 f64;
    Max: u32 u64;
    Min: u32 u64;
}
