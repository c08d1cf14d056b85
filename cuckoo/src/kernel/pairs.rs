//! Lists of pairs as kernel arguments.

use bytemuck::Pod;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::{DeviceSlice, DeviceVec, Error, Stream};
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

#[cfg(not(target_arch = "nvptx64"))]
impl<C: Pod, V: Pod> Pairs<C, V> {
    /// Returns these pairs as an argument for kernels on `stream`.
    pub fn view<'a>(
        stream: &Stream,
        (keys, values): (DeviceSlice<'a, C>, DeviceSlice<'a, V>),
    ) -> Result<View<'a, Self>, Error> {
        let (keys, values) = (keys.view(stream)?, values.view(stream)?);
        // SAFETY: the result borrows the same memory as the two views.
        Ok(unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, Reach::none()) })
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: Pod, V: Pod> PairsMut<C, V> {
    /// Returns this room for pairs as an argument for kernels on `stream`.
    pub fn view<'a>(
        stream: &Stream,
        (keys, values): (&'a mut DeviceVec<C>, &'a mut DeviceVec<V>),
    ) -> Result<View<'a, Self>, Error> {
        let (keys, values) = (keys.view_mut(stream)?, values.view_mut(stream)?);
        // SAFETY: the result borrows the same memory as the two views.
        Ok(unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, Reach::none()) })
    }
}
