//! Views of memory for kernels: a pointer and a length. They are `Copy`, unchecked on the GPU and checked on the CPU.
//!
//! # Elements without a size
//! Elements such as `()` have no memory. A view of them may have any address and any length, and all of them are there: reading
//! one gives the only value, writing one does nothing, and a slice of the view may have any bounds. So a kernel for keys with
//! values is a kernel for keys alone, too.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::memory::{self, Word};
use crate::arch::{Cache, Order, Rmw, Scope};
use bytemuck::Pod;
use core::marker::PhantomData;

mod floats;

/// A buffer in device memory that the kernel reads.
#[repr(C)]
#[derive(Debug)]
pub struct Global<T> {
    base: *const T,
    len: usize,
}

/// A buffer in device memory that the kernel reads and writes.
#[repr(C)]
#[derive(Debug)]
pub struct GlobalMut<T> {
    base: *mut T,
    len: usize,
}

/// A region of the block's shared memory.
#[derive(Debug)]
pub struct Shared<T> {
    base: *mut T,
    len: usize,
}

// Derived impls would require `T: Copy`.
impl<T> Clone for Global<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Global<T> {}
impl<T> Clone for GlobalMut<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for GlobalMut<T> {}
impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

// SAFETY: a view is only an address; the contract of the kernel that uses it governs every access.
unsafe impl<T: Pod> Send for Global<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Global<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Send for GlobalMut<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for GlobalMut<T> {}

/// Returns whether `N` elements are loaded or stored in one access.
const fn is_one_access<T, const N: usize>() -> bool {
    matches!(size_of::<[T; N]>(), 4 | 8 | 16)
}

/// The length accessors that all views share.
macro_rules! length {
    () => {
        /// Returns the number of elements.
        #[inline(always)]
        #[must_use]
        pub const fn len(self) -> usize {
            self.len
        }

        /// Returns whether there are no elements.
        #[inline(always)]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.len == 0
        }
    };
}

impl<T> Global<T> {
    /// Returns a view of no elements.
    #[must_use]
    pub const fn empty() -> Self {
        Self { base: core::ptr::dangling(), len: 0 }
    }
}

impl<T: Pod> Global<T> {
    /// Creates a view of `len` elements that start at `base`.
    ///
    /// # Safety
    /// They lie in memory of the device that the kernel runs on, are aligned for `T`, and stay valid while the kernel
    /// runs.
    #[inline(always)]
    pub const unsafe fn from_raw(base: *const T, len: usize) -> Self {
        Self { base, len }
    }

    length!();

    /// Returns the address of the first element.
    #[inline(always)]
    #[must_use]
    pub const fn as_ptr(self) -> *const T {
        self.base
    }

    /// Returns the elements as a slice, for the native body of a kernel.
    ///
    /// # Safety
    /// The view is of memory of the CPU device, and is used only there. While the slice exists, the memory stays
    /// allocated and nothing writes the elements.
    #[cfg(not(target_arch = "nvptx64"))]
    #[must_use]
    pub unsafe fn as_slice<'a>(self) -> &'a [T] {
        // SAFETY: guaranteed by the caller. An empty view may have no address.
        if self.len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(self.base, self.len) } }
    }

    /// Returns a view of the `len` elements that start at `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`, unless elements have no size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        memory::expect_part(false, self.base, self.len, start, len);
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes the element at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        self.load(index, Cache::Default)
    }

    /// Reads element `index`, with a cache hint.
    ///
    /// # Safety
    /// Same as [`get`](Self::get). With [`Cache::ReadOnly`], nothing writes the element while the kernel runs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, index: usize, cache: Cache) -> T {
        if const { size_of::<T>() == 0 } { T::zeroed() } else { memory::global_load(self.base, self.len, index, cache) }
    }

    /// Reads element `index` of a view whose address was shifted, so that several pieces of memory share one row of indices.
    /// The address of such a view may lie in any buffer, or in none. The checked CPU device therefore compares only the
    /// element with what the launch was given.
    ///
    /// # Safety
    /// Same as [`get`](Self::get).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get_shifted(self, index: usize) -> T {
        if const { size_of::<T>() == 0 } {
            T::zeroed()
        } else {
            memory::global_load_shifted(self.base, self.len, index)
        }
    }

    /// Reads the `N` elements from `index`: in one access if they take 4, 8 or 16 bytes, otherwise one by one.
    ///
    /// # Safety
    /// Same as [`load`](Self::load), for each element. If it is one access, its address is a multiple of its size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec<const N: usize>(self, index: usize, cache: Cache) -> [T; N] {
        if const { is_one_access::<T, N>() } {
            return memory::global_load_vec(self.base, self.len, index, cache);
        }
        let mut values = [T::zeroed(); N];
        for i in 0..N {
            values[i] = self.load(index + i, cache);
        }
        values
    }
}

impl<T> GlobalMut<T> {
    /// Returns a view of no elements.
    #[must_use]
    pub const fn empty() -> Self {
        Self { base: core::ptr::dangling_mut(), len: 0 }
    }
}

impl<T: Pod> GlobalMut<T> {
    /// Creates a view of `len` elements that start at `base`.
    ///
    /// # Safety
    /// Same as [`Global::from_raw`], and nothing else uses the memory while the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(base: *mut T, len: usize) -> Self {
        Self { base, len }
    }

    length!();

    /// Returns a read-only view of the same buffer.
    #[inline(always)]
    #[must_use]
    pub const fn as_const(self) -> Global<T> {
        Global { base: self.base, len: self.len }
    }

    /// Returns the address of the first element.
    #[inline(always)]
    #[must_use]
    pub const fn as_mut_ptr(self) -> *mut T {
        self.base
    }

    /// Returns a view of the `len` elements that start at `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`, unless elements have no size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        memory::expect_part(false, self.base, self.len, start, len);
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes the element at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        self.as_const().get(index)
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread reads or writes the element at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, value: T) {
        self.store(index, value, Cache::Default);
    }

    /// Writes element `index`, with a cache hint.
    ///
    /// # Safety
    /// Same as [`set`](Self::set).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, index: usize, value: T, cache: Cache) {
        if const { size_of::<T>() > 0 } {
            memory::global_store(self.base, self.len, index, value, cache);
        }
    }

    /// Writes the `N` elements from `index`: in one access if they take 4, 8 or 16 bytes, otherwise one by one.
    ///
    /// # Safety
    /// Same as [`set`](Self::set), for each element. If it is one access, its address is a multiple of its size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec<const N: usize>(self, index: usize, values: [T; N], cache: Cache) {
        if const { is_one_access::<T, N>() } {
            return memory::global_store_vec(self.base, self.len, index, values, cache);
        }
        for i in 0..N {
            self.store(index + i, values[i], cache);
        }
    }
}

impl<T: Word> GlobalMut<T> {
    /// Reads element `index` atomically (`Relaxed` or `Acquire`).
    ///
    /// # Safety
    /// `index < self.len()`, and any other thread that accesses the element at the same time does so atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_load(self, index: usize, scope: Scope, order: Order) -> T {
        memory::global_atomic_load(self.base, self.len, index, scope, order)
    }

    /// Reads the `N` elements from `index`: in one access if they take 16 bytes, otherwise one by one. Each element is
    /// read atomically (`Relaxed`, seen by the whole GPU), but not all of them at the same moment.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load), for each element. If it is one access, its address is a multiple of
    /// its size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_load_vec<const N: usize>(self, index: usize) -> [T; N] {
        if const { size_of::<[T; N]>() == 16 } {
            return memory::global_atomic_load_vec(self.base, self.len, index);
        }
        let mut values = [T::zeroed(); N];
        for i in 0..N {
            values[i] = self.atomic_load(index + i, Scope::Gpu, Order::Relaxed);
        }
        values
    }

    /// Writes element `index` atomically (`Relaxed` or `Release`).
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_store(self, index: usize, value: T, scope: Scope, order: Order) {
        memory::global_atomic_store(self.base, self.len, index, value, scope, order);
    }

    /// Applies `operation` to element `index` and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_rmw(self, operation: Rmw, index: usize, value: T, scope: Scope, order: Order) -> T {
        memory::global_rmw(self.base, self.len, operation, index, value, scope, order)
    }

    /// Adds `value` to element `index` (wrapping) and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_add(self, index: usize, value: T, scope: Scope, order: Order) -> T {
        self.atomic_rmw(Rmw::Add, index, value, scope, order)
    }

    /// Writes `new` to element `index` if it holds `expected`, and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compare_exchange(self, index: usize, expected: T, new: T, scope: Scope, order: Order) -> T {
        memory::global_compare_exchange(self.base, self.len, index, expected, new, scope, order)
    }
}

impl<T: Pod> Shared<T> {
    length!();

    /// Returns a view of the `len` elements that start at `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`, unless elements have no size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        memory::expect_part(true, self.base, self.len, start, len);
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes the element at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        if const { size_of::<T>() == 0 } { T::zeroed() } else { memory::shared_load(self.base, self.len, index) }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread reads or writes the element at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, value: T) {
        if const { size_of::<T>() > 0 } {
            memory::shared_store(self.base, self.len, index, value);
        }
    }

    /// Reads the `N` elements from `index`: in one access if they take 4, 8 or 16 bytes, otherwise one by one.
    ///
    /// # Safety
    /// Same as [`get`](Self::get), for each element. If it is one access, its address is a multiple of its size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load_vec<const N: usize>(self, index: usize) -> [T; N] {
        if const { is_one_access::<T, N>() } {
            return memory::shared_load_vec(self.base, self.len, index);
        }
        let mut values = [T::zeroed(); N];
        for i in 0..N {
            values[i] = self.get(index + i);
        }
        values
    }

    /// Writes the `N` elements from `index`: in one access if they take 4, 8 or 16 bytes, otherwise one by one.
    ///
    /// # Safety
    /// Same as [`set`](Self::set), for each element. If it is one access, its address is a multiple of its size.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store_vec<const N: usize>(self, index: usize, values: [T; N]) {
        if const { is_one_access::<T, N>() } {
            return memory::shared_store_vec(self.base, self.len, index, values);
        }
        for i in 0..N {
            self.set(index + i, values[i]);
        }
    }
}

/// Block-scope atomics. They are relaxed: block barriers order all other accesses.
impl<T: Word> Shared<T> {
    /// Reads element `index` atomically.
    ///
    /// # Safety
    /// `index < self.len()`, and any other thread that accesses the element at the same time does so atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_load(self, index: usize) -> T {
        memory::shared_atomic_load(self.base, self.len, index)
    }

    /// Writes element `index` atomically.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_store(self, index: usize, value: T) {
        memory::shared_atomic_store(self.base, self.len, index, value);
    }

    /// Applies `operation` to element `index` and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_rmw(self, operation: Rmw, index: usize, value: T) -> T {
        memory::shared_rmw(self.base, self.len, operation, index, value)
    }

    /// Adds `value` to element `index` (wrapping) and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_add(self, index: usize, value: T) -> T {
        self.atomic_rmw(Rmw::Add, index, value)
    }

    /// Writes `new` to element `index` if it holds `expected`, and returns the previous value.
    ///
    /// # Safety
    /// Same as [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compare_exchange(self, index: usize, expected: T, new: T) -> T {
        memory::shared_compare_exchange(self.base, self.len, index, expected, new)
    }
}

/// Divides the block's shared memory into regions, each aligned to 16 bytes.
///
/// Every `SharedMemory` starts at the same address. The regions of a second one overlap those of the first: this is how
/// one phase of a kernel reuses the memory of another (with a barrier in between).
#[derive(Debug)]
pub struct SharedMemory {
    taken: usize,
    not_send: PhantomData<*mut ()>,
}

impl SharedMemory {
    /// Starts at the beginning of the block's shared memory.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::new_without_default, reason = "not a value to be made by generic code")]
    pub const fn new() -> Self {
        Self { taken: 0, not_send: PhantomData }
    }

    /// Takes the next `len` elements.
    ///
    /// # Safety
    /// The kernel's shared memory holds all regions taken: the sum of their [`shared_bytes`]. To be sure, compute the
    /// kernel's `shared = ` setting from a layout type.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take<T: Pod>(&mut self, len: usize) -> Shared<T> {
        const { assert!(align_of::<T>() <= 16, "shared memory is aligned to 16 bytes") };
        let base = memory::shared_base(self.taken, shared_bytes::<T>(len)).cast::<T>();
        self.taken += shared_bytes::<T>(len);
        Shared { base, len }
    }
}

/// Returns the bytes of shared memory that a region of `len` elements takes.
#[inline(always)]
#[must_use]
pub const fn shared_bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(16)
}
