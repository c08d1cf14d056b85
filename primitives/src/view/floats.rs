//! Atomics on floats.

use super::{GlobalMut, Shared};
use crate::arch::memory;
use crate::arch::{Order, Rmw, Scope};

macro_rules! float_atomics {
    ($($float:ty as $bits:ty, $signed:ty;)*) => { $(
        /// Atomics on floats. The minimum and the maximum follow the order of `total_cmp`: they are one atomic instruction on
        /// the float's bits, which are ordered like a signed number if the float is positive, and backwards if not.
        impl GlobalMut<$float> {
            /// Adds `value` to element `index` and returns the previous value. The order of additions, and so the
            /// rounding, depends on timing. A GPU flushes subnormal numbers to zero in `f32` sums.
            ///
            /// # Safety
            /// `index < self.len()`, and any other thread that accesses the element at the same time does so atomically.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_add(self, index: usize, value: $float, scope: Scope, order: Order) -> $float {
                memory::global_float_add(self.base, self.len, index, value, scope, order)
            }

            /// Replaces element `index` by the larger of it and `value`, and returns the previous value.
            ///
            /// # Safety
            /// Same as [`atomic_add`](Self::atomic_add).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_max(self, index: usize, value: $float, scope: Scope, order: Order) -> $float {
                let bits = value.to_bits();
                <$float>::from_bits(if value.is_sign_positive() {
                    memory::global_rmw(
                        self.base.cast::<$signed>(), self.len, Rmw::Max, index, bits as $signed, scope, order,
                    ) as $bits
                } else {
                    memory::global_rmw(self.base.cast::<$bits>(), self.len, Rmw::Min, index, bits, scope, order)
                })
            }

            /// Replaces element `index` by the smaller of it and `value`, and returns the previous value.
            ///
            /// # Safety
            /// Same as [`atomic_add`](Self::atomic_add).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_min(self, index: usize, value: $float, scope: Scope, order: Order) -> $float {
                let bits = value.to_bits();
                <$float>::from_bits(if value.is_sign_positive() {
                    memory::global_rmw(
                        self.base.cast::<$signed>(), self.len, Rmw::Min, index, bits as $signed, scope, order,
                    ) as $bits
                } else {
                    memory::global_rmw(self.base.cast::<$bits>(), self.len, Rmw::Max, index, bits, scope, order)
                })
            }
        }

        /// Block-scope atomics on floats, as those on [`GlobalMut`]. They are relaxed.
        impl Shared<$float> {
            /// Adds `value` to element `index` and returns the previous value. The order of additions, and so the
            /// rounding, depends on timing.
            ///
            /// # Safety
            /// `index < self.len()`, and any other thread that accesses the element at the same time does so atomically.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_add(self, index: usize, value: $float) -> $float {
                let words = self.base.cast::<$bits>();
                let mut old = memory::shared_atomic_load(words, self.len, index);
                loop {
                    let new = (<$float>::from_bits(old) + value).to_bits();
                    let found = memory::shared_compare_exchange(words, self.len, index, old, new);
                    if found == old {
                        return <$float>::from_bits(old);
                    }
                    old = found;
                }
            }

            /// Replaces element `index` by the larger of it and `value`, and returns the previous value.
            ///
            /// # Safety
            /// Same as [`atomic_add`](Self::atomic_add).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_max(self, index: usize, value: $float) -> $float {
                let bits = value.to_bits();
                <$float>::from_bits(if value.is_sign_positive() {
                    memory::shared_rmw(self.base.cast::<$signed>(), self.len, Rmw::Max, index, bits as $signed) as $bits
                } else {
                    memory::shared_rmw(self.base.cast::<$bits>(), self.len, Rmw::Min, index, bits)
                })
            }

            /// Replaces element `index` by the smaller of it and `value`, and returns the previous value.
            ///
            /// # Safety
            /// Same as [`atomic_add`](Self::atomic_add).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub unsafe fn atomic_min(self, index: usize, value: $float) -> $float {
                let bits = value.to_bits();
                <$float>::from_bits(if value.is_sign_positive() {
                    memory::shared_rmw(self.base.cast::<$signed>(), self.len, Rmw::Min, index, bits as $signed) as $bits
                } else {
                    memory::shared_rmw(self.base.cast::<$bits>(), self.len, Rmw::Max, index, bits)
                })
            }
        }
    )* };
}

float_atomics! {
    f32 as u32, i32;
    f64 as u64, i64;
}
