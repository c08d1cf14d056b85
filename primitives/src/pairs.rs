//! Keys with their values: what most kernels read and write.
//!
//! # Values without a size
//! Keys alone are pairs whose values are `()`. They have no memory, and a view of them may have any length, such as none. Reading
//! one is no access, and neither is writing one: [the views](crate::view#elements-without-a-size) see to that, so no kernel
//! distinguishes keys from pairs to be correct. Kernels ask for the size only to leave out loops and barriers.

use crate::form::{Buffer, Param, ReadParam};
use crate::view::{Global, GlobalMut};
use bytemuck::Pod;

/// Keys and values that a kernel reads.
#[repr(C)]
#[derive(Debug)]
pub struct Pairs<K, V> {
    /// The keys.
    pub keys: Global<K>,
    /// As many values.
    pub values: Global<V>,
}

/// Keys and values that a kernel writes.
#[repr(C)]
#[derive(Debug)]
pub struct PairsMut<K, V> {
    /// The keys.
    pub keys: GlobalMut<K>,
    /// As many values.
    pub values: GlobalMut<V>,
}

// Derived impls would require `Copy` of the type parameters.
impl<K, V> Clone for Pairs<K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Pairs<K, V> {}
impl<K, V> Clone for PairsMut<K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for PairsMut<K, V> {}

// SAFETY: `repr(C)`: two views.
unsafe impl<K: Pod, V: Pod> Param for Pairs<K, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<K: Pod, V: Pod> ReadParam for Pairs<K, V> {}

// SAFETY: `repr(C)`: two views.
unsafe impl<K: Pod, V: Pod> Param for PairsMut<K, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

impl<K: Pod, V: Pod> Pairs<K, V> {
    /// Returns the `len` pairs from `start` on.
    ///
    /// # Safety
    /// There are at least `start + len` pairs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Reads pair `at`.
    ///
    /// # Safety
    /// There are more than `at` pairs. Nothing writes this one at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, at: usize) -> (K, V) {
        (self.keys.get(at), self.values.get(at))
    }
}

impl<K: Pod, V: Pod> PairsMut<K, V> {
    /// Returns the `len` pairs from `start` on.
    ///
    /// # Safety
    /// There are at least `start + len` pairs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        Self { keys: self.keys.slice(start, len), values: self.values.slice(start, len) }
    }

    /// Writes pair `at`.
    ///
    /// # Safety
    /// There are more than `at` pairs. No other thread uses this one at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, at: usize, key: K, value: V) {
        self.keys.set(at, key);
        self.values.set(at, value);
    }
}
