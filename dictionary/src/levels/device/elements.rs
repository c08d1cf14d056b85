//! Keys with their values, as one kernel argument.

use bytemuck::Pod;
use gpu_primitives::kernel::{Buffer, Param, ReadParam};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::view::{Global, GlobalMut};

/// Keys and values that a kernel reads. If values are zero-sized, there are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Elements<C, V> {
    /// The codes of the keys.
    pub keys: Global<C>,
    /// The values.
    pub values: Global<V>,
}

// SAFETY: `repr(C)`: two views.
unsafe impl<C: Pod, V: Pod> Param for Elements<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

// SAFETY: the type offers no way to write.
unsafe impl<C: Pod, V: Pod> ReadParam for Elements<C, V> {}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: Pod, V: Pod> Elements<C, V> {
    /// Returns a view of keys and values.
    pub fn view<'a>(keys: View<'a, Global<C>>, values: View<'a, Global<V>>) -> View<'a, Self> {
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, Reach::none()) }
    }
}

/// Keys and values that a kernel writes. If values are zero-sized, there are none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ElementsMut<C, V> {
    pub(crate) keys: GlobalMut<C>,
    pub(crate) values: GlobalMut<V>,
}

// SAFETY: `repr(C)`: two views.
unsafe impl<C: Pod, V: Pod> Param for ElementsMut<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
        self.values.buffers(name, visit);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: Pod, V: Pod> ElementsMut<C, V> {
    /// Returns a view of keys and values.
    pub fn view<'a>(keys: View<'a, GlobalMut<C>>, values: View<'a, GlobalMut<V>>) -> View<'a, Self> {
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe { View::new(Self { keys: keys.into_param(), values: values.into_param() }, Reach::none()) }
    }
}

impl<C: Pod, V: Pod> ElementsMut<C, V> {
    /// Returns `len` elements from `start` on.
    ///
    /// # Safety
    /// There are at least `start + len` elements.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        let values = if size_of::<V>() > 0 { self.values.slice(start, len) } else { self.values };
        Self { keys: self.keys.slice(start, len), values }
    }

    /// Writes element `at`.
    ///
    /// # Safety
    /// There are more than `at` elements. No other thread uses this one at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, at: usize, key: C, value: V) {
        self.keys.set(at, key);
        if size_of::<V>() > 0 {
            self.values.set(at, value);
        }
    }
}
