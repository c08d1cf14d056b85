//! Keys with optional values.

use crate::view::{Global, GlobalMut, Shared};
use bytemuck::Pod;

/// Keys and values in one kind of memory. Zero-sized values are not accessed.
#[derive(Clone, Copy)]
pub(crate) struct Items<K, V> {
    pub keys: K,
    pub values: V,
}

macro_rules! reading {
    ($view:ident) => {
        impl<K: Pod, V: Pod> Items<$view<K>, $view<V>> {
            /// Returns the `len` items from `start`.
            ///
            /// # Safety
            /// The items exist.
            #[inline(always)]
            pub(crate) unsafe fn slice(self, start: usize, len: usize) -> Self {
                Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
            }

            /// Returns item `index`.
            ///
            /// # Safety
            /// The item exists, and no other thread writes it at the same time.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn get(self, index: usize) -> (K, V) {
                (self.keys.get(index), self.value(index))
            }

            /// Returns value `index`.
            ///
            /// # Safety
            /// Same as [`get`](Self::get).
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn value(self, index: usize) -> V {
                if size_of::<V>() == 0 { V::zeroed() } else { self.values.get(index) }
            }
        }
    };
}

macro_rules! writing {
    ($view:ident) => {
        impl<K: Pod, V: Pod> Items<$view<K>, $view<V>> {
            /// Writes item `index`.
            ///
            /// # Safety
            /// The item exists, and no other thread uses it at the same time.
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            pub(crate) unsafe fn set(self, index: usize, key: K, value: V) {
                self.keys.set(index, key);
                if size_of::<V>() > 0 {
                    self.values.set(index, value);
                }
            }
        }
    };
}

reading!(Global);
reading!(GlobalMut);
reading!(Shared);
writing!(GlobalMut);
writing!(Shared);
