//! Orders for merges, searches and segmented sorts.

use crate::code::U256;
use crate::form::{Holes, Param};
use crate::hole::{Hole, RegisterRepr};
use crate::operator::operator;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{
    hole::{Calls, OperatorBody},
    operator::Recorded,
};
use bytemuck::{Pod, Zeroable};

/// A strict weak order. It may carry state, which is passed to the GPU as a kernel argument: at most 64 bytes.
///
/// Put [`#[operator]`](crate::operator) on an implementation. It records the function for GPUs.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use gpu_primitives::compare::Compare;
/// use gpu_primitives::operator::{Record, operator};
/// use gpu_primitives::{Device, Error, merge};
///
/// /// The order of numbers that begins at `start` and comes around.
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable, Record)]
/// struct From {
///     start: u32,
/// }
///
/// #[operator]
/// impl Compare<u32> for From {
///     fn less(&self, a: u32, b: u32) -> bool {
///         a - self.start < b - self.start // the arithmetic of operators wraps
///     }
/// }
///
/// let stream = Device::default()?.stream()?;
/// let (a, b) = (stream.upload(&[7u32, 9, 3])?, stream.upload(&[8u32, 1])?);
/// let mut merged = stream.uninit::<u32>(5)?;
/// merge::keys(&stream, &a, &b, &mut merged, From { start: 5 })?;
/// assert_eq!(merged.to_vec(&stream)?, [7, 8, 9, 1, 3]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Contract
/// `less` is irreflexive and transitive, and "neither is less" is transitive too. A comparator that breaks this
/// contract yields some permutation or some position in range, but never an out-of-bounds access.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of elements of type `{T}`",
    note = "`Less` and `Greater` order numbers",
    note = "`gpu_primitives::operator::order!` makes an order of a closure",
    note = "or put `#[operator]` on an implementation of the trait"
)]
pub trait Compare<T>: Param {
    /// Returns whether `a` comes before `b`.
    fn less(&self, a: T, b: T) -> bool;

    /// Records the order for GPUs: [`#[operator]`](crate::operator) writes this function.
    #[cfg(not(target_arch = "nvptx64"))]
    fn recorded() -> Recorded;
}

/// An order as kernels use it: a [`HoleOrder`], or one that is known when the kernel is compiled.
pub trait KeyOrder<K>: Param {
    /// Returns whether `a` comes before `b`.
    fn less(&self, a: K, b: K) -> bool;

    /// Sorts keys stably, and moves one word for each along. An order that contradicts itself gives some permutation.
    #[cfg(not(target_arch = "nvptx64"))]
    fn sort(&self, keys: &mut [K], words: &mut [u32])
    where
        K: Copy,
    {
        let mut items: Vec<(K, u32)> = keys.iter().copied().zip(words.iter().copied()).collect();
        merge_sort(&mut items, |a, b| self.less(a.0, b.0));
        for (((key, word), to_key), to_word) in items.into_iter().zip(keys).zip(words) {
            (*to_key, *to_word) = (key, word);
        }
    }
}

/// Sorts items stably. Unlike the sort of the standard library, it does not panic if the order contradicts itself.
#[cfg(not(target_arch = "nvptx64"))]
fn merge_sort<T: Copy>(items: &mut Vec<T>, is_less: impl Fn(&T, &T) -> bool) {
    /// Runs of this length are sorted by insertion.
    const RUN: usize = 8;
    for run in items.chunks_mut(RUN) {
        for end in 1..run.len() {
            let item = run[end];
            let mut at = end;
            while at > 0 && is_less(&item, &run[at - 1]) {
                run[at] = run[at - 1];
                at -= 1;
            }
            run[at] = item;
        }
    }
    let mut merged = items.clone();
    let mut run = RUN;
    while run < items.len() {
        for (from, to) in items.chunks(2 * run).zip(merged.chunks_mut(2 * run)) {
            let (a, b) = from.split_at(run.min(from.len()));
            let (mut i, mut j, mut at) = (0, 0, 0);
            while i < a.len() && j < b.len() {
                let takes_b = is_less(&b[j], &a[i]);
                // Selected, not branched to: which side comes next cannot be predicted.
                to[at] = if takes_b { b[j] } else { a[i] };
                (i, j, at) = (i + usize::from(!takes_b), j + usize::from(takes_b), at + 1);
            }
            to[at..at + a.len() - i].copy_from_slice(&a[i..]);
            to[at + a.len() - i..].copy_from_slice(&b[j..]);
        }
        core::mem::swap(items, &mut merged);
        run *= 2;
    }
}

/// An order that is not known when a kernel is compiled: a [`Hole`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleOrder(Hole);

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HoleOrder {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleOrder {
    /// Returns an order of keys `T`, for kernels that hold them in a type of the same size or a larger one.
    pub(crate) fn of<T: Pod, C: Compare<T>>(order: C) -> Self {
        Self(Hole::new(order, Self::filling::<T, C>()))
    }

    /// Describes what fills the hole.
    pub(crate) fn filling<T: Pod, C: Compare<T>>() -> &'static OperatorBody {
        /// # Safety
        /// The state is a `C`, the arguments begin with a `T` each, and the results have room for a byte.
        unsafe fn native<T: Pod, C: Compare<T>>(state: *const u8, calls: &Calls) {
            // SAFETY: guaranteed by the caller; a `C` and a `T` are plain data.
            unsafe {
                let order = *state.cast::<C>();
                calls.binary(|a: T, b: T| u8::from(order.less(a, b)));
            }
        }
        /// # Safety
        /// The state is a `C`, and the elements begin with a `T` each.
        unsafe fn relation<T: Pod, C: Compare<T>>(state: *const u8, a: *const u8, b: *const u8) -> bool {
            // SAFETY: guaranteed by the caller; a `C` and a `T` are plain data.
            unsafe { (*state.cast::<C>()).less(a.cast::<T>().read_unaligned(), b.cast::<T>().read_unaligned()) }
        }
        /// # Safety
        /// The state is a `C`, each element begins with a `T`, and has a word.
        unsafe fn sort<T: Pod, C: Compare<T>>(
            state: *const u8,
            elements: *mut u8,
            step: usize,
            len: usize,
            words: *mut u32,
        ) {
            // SAFETY: guaranteed by the caller; a `C` and a `T` are plain data.
            unsafe {
                let order = *state.cast::<C>();
                let element = |i: usize| elements.add(i * step).cast::<T>();
                let mut items: Vec<(T, u32)> =
                    (0..len).map(|i| (element(i).read_unaligned(), words.add(i).read())).collect();
                merge_sort(&mut items, |a, b| order.less(a.0, b.0));
                for (i, (key, word)) in items.into_iter().enumerate() {
                    // What is beyond the key in its element is 0 everywhere.
                    element(i).write_unaligned(key);
                    words.add(i).write(word);
                }
            }
        }
        const {
            &OperatorBody {
                relation: Some(relation::<T, C>),
                sort: Some(sort::<T, C>),
                ..OperatorBody::new::<C, T, bool, 2>("less", C::recorded, native::<T, C>)
            }
        }
    }
}

impl<H: RegisterRepr> KeyOrder<H> for HoleOrder {
    #[inline(always)]
    fn less(&self, a: H, b: H) -> bool {
        // SAFETY: an order is made of a `Compare`, and the host launches a kernel with it only for keys of that type.
        unsafe { H::less(&self.0, a, b) }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn sort(&self, keys: &mut [H], words: &mut [u32]) {
        // SAFETY: same as above.
        unsafe { self.0.sort(keys, words) }
    }
}

/// The natural order of numbers. Floats use the total order of `total_cmp` (-NaN, -∞ … -0, +0 … +∞, NaN).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Less;

/// The reverse of the natural order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Greater;

/// The natural order of keys without their lowest bit, which may carry a flag that does not affect the order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct IgnoreLowBit;

#[operator]
impl Compare<u32> for IgnoreLowBit {
    #[inline(always)]
    fn less(&self, a: u32, b: u32) -> bool {
        (a >> 1) < (b >> 1)
    }
}

#[operator]
impl Compare<u64> for IgnoreLowBit {
    #[inline(always)]
    fn less(&self, a: u64, b: u64) -> bool {
        (a >> 1) < (b >> 1)
    }
}

macro_rules! orders {
    ($($type:ty: $a:ident, $b:ident => $less:expr;)*) => { $(
        #[operator]
        impl Compare<$type> for Less {
            #[inline(always)]
            fn less(&self, $a: $type, $b: $type) -> bool {
                $less
            }
        }
        impl KeyOrder<$type> for Less {
            #[inline(always)]
            fn less(&self, a: $type, b: $type) -> bool {
                Compare::less(self, a, b)
            }
        }
        #[operator]
        impl Compare<$type> for Greater {
            #[inline(always)]
            fn less(&self, $b: $type, $a: $type) -> bool {
                $less
            }
        }
    )* };
}

orders! {
    u8: a, b => a < b;
    u16: a, b => a < b;
    u32: a, b => a < b;
    u64: a, b => a < b;
    u128: a, b => a < b;
    U256: a, b => (a.high, a.low) < (b.high, b.low);
    i8: a, b => a < b;
    i16: a, b => a < b;
    i32: a, b => a < b;
    i64: a, b => a < b;
    i128: a, b => a < b;
    f32: a, b => a.total_cmp(&b).is_lt();
    f64: a, b => a.total_cmp(&b).is_lt();
}

#[cfg(all(feature = "half", not(target_arch = "nvptx64")))]
orders! {
    half::f16: a, b => a.total_cmp(&b).is_lt();
    half::bf16: a, b => a.total_cmp(&b).is_lt();
}

#[cfg(test)]
mod tests {
    use super::{Compare as _, Greater, Less};

    #[test]
    fn floats_are_in_total_order() {
        let numbers = [f32::NAN, -f32::NAN, 0.0, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE];
        for a in numbers {
            for b in numbers {
                assert_eq!(Less.less(a, b), a.total_cmp(&b).is_lt(), "{a} {b}");
                assert_eq!(Greater.less(a, b), a.total_cmp(&b).is_gt(), "{a} {b}");
                let (a, b) = (f64::from(a), f64::from(b));
                assert_eq!(Less.less(a, b), a.total_cmp(&b).is_lt(), "{a} {b}");
            }
        }
    }
}
