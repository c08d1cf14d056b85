//! Lists of pairs as kernel arguments.

use bytemuck::Pod;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
use gpu_primitives::{Global, GlobalMut};

/// Pairs to read: keys, and as many values. Zero-sized values have no memory.
#[repr(C)]
#[derive(Debug)]
pub struct Pairs<C, V> {
    pub keys: Global<C>,
    pub values: Global<V>,
}

/// Room for pairs to write.
#[repr(C)]
#[derive(Debug)]
pub struct PairsMut<C, V> {
    pub keys: GlobalMut<C>,
    pub values: GlobalMut<V>,
}

// Derived impls would require `Copy` of the type parameters.
impl<C, V> Clone for Pairs<C, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, V> Copy for Pairs<C, V> {}
impl<C, V> Clone for PairsMut<C, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<C, V> Copy for PairsMut<C, V> {}

// SAFETY: a `repr(C)` struct of views.
unsafe impl<C: Pod, V: Pod> Param for Pairs<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<C: Pod, V: Pod> ReadParam for Pairs<C, V> {}

// SAFETY: a `repr(C)` struct of views.
unsafe impl<C: Pod, V: Pod> Param for PairsMut<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

impl<C: Pod, V: Pod> PairsMut<C, V> {
    /// Writes pair `index`.
    ///
    /// # Safety
    /// The index is within the list, and no other thread uses this pair.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, key: C, value: V) {
        self.keys.set(index, key);
        if size_of::<V>() > 0 {
            self.values.set(index, value);
        }
    }
}
