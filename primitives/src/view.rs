//! Views of memory, as kernels see it: a pointer and a length, copied freely, unchecked on the GPU, checked on the CPU.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::memory::{self, Word};
use crate::arch::{Cache, Order, Rmw, Scope};
use bytemuck::Pod;
use core::marker::PhantomData;

/// A buffer in device memory that this kernel reads.
#[repr(C)]
#[derive(Debug)]
pub struct Global<T> {
    base: *const T,
    len: usize,
}

/// A buffer in device memory that this kernel reads and writes.
#[repr(C)]
#[derive(Debug)]
pub struct GlobalMut<T> {
    base: *mut T,
    len: usize,
}

/// A piece of the block's shared memory.
#[derive(Debug)]
pub struct Shared<T> {
    base: *mut T,
    len: usize,
}

// Derives would ask for `T: Copy`.
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

// SAFETY: a view is an address; what happens there is governed by the contract of the kernel that uses it.
unsafe impl<T: Pod> Send for Global<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Global<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Send for GlobalMut<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for GlobalMut<T> {}

/// Whether `N` elements are loaded or stored at once.
const fn is_one_access<T, const N: usize>() -> bool {
    matches!(size_of::<[T; N]>(), 4 | 8 | 16)
}

/// The accesses that reading views share. `$load` and friends are the raw words of the memory in question.
macro_rules! length {
    () => {
        /// Number of elements.
        #[inline(always)]
        #[must_use]
        pub const fn len(self) -> usize {
            self.len
        }

        /// Whether there is no element.
        #[inline(always)]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.len == 0
        }
    };
}

impl<T: Pod> Global<T> {
    /// The view of `len` elements from `base`.
    ///
    /// # Safety
    /// They are device memory of the device that the kernel runs on, aligned for `T`, and stay so while it runs.
    #[inline(always)]
    pub const unsafe fn from_raw(base: *const T, len: usize) -> Self {
        Self { base, len }
    }

    length!();

    /// The address of the first element.
    #[inline(always)]
    #[must_use]
    pub const fn as_ptr(self) -> *const T {
        self.base
    }

    /// The `len` elements from `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        self.load(index, Cache::Default)
    }

    /// Element `index`, with a hint to the caches.
    ///
    /// # Safety
    /// As [`get`](Self::get); with [`Cache::ReadOnly`] nobody writes the element during the kernel.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, index: usize, cache: Cache) -> T {
        memory::global_load(self.base, self.len, index, cache)
    }

    /// The `N` elements from `index`, in one access if they are 4, 8 or 16 bytes; else one by one.
    ///
    /// # Safety
    /// As [`load`](Self::load) for all of them, and where it is one access, its address is a multiple of its size.
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

impl<T: Pod> GlobalMut<T> {
    /// The view of `len` elements from `base`.
    ///
    /// # Safety
    /// As [`Global::from_raw`], and nobody else uses the memory while the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(base: *mut T, len: usize) -> Self {
        Self { base, len }
    }

    length!();

    /// The same buffer, for reading.
    #[inline(always)]
    #[must_use]
    pub const fn as_const(self) -> Global<T> {
        Global { base: self.base, len: self.len }
    }

    /// The `len` elements from `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        self.as_const().get(index)
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread reads or writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, value: T) {
        self.store(index, value, Cache::Default);
    }

    /// Writes element `index`, with a hint to the caches.
    ///
    /// # Safety
    /// As [`set`](Self::set).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn store(self, index: usize, value: T, cache: Cache) {
        memory::global_store(self.base, self.len, index, value, cache);
    }

    /// Writes the `N` elements from `index`, in one access if they are 4, 8 or 16 bytes; else one by one.
    ///
    /// # Safety
    /// As [`set`](Self::set) for all of them, and where it is one access, its address is a multiple of its size.
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
    /// `index < self.len()`; threads that use it meanwhile do so atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_load(self, index: usize, scope: Scope, order: Order) -> T {
        memory::global_atomic_load(self.base, self.len, index, scope, order)
    }

    /// Writes element `index` atomically (`Relaxed` or `Release`).
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_store(self, index: usize, value: T, scope: Scope, order: Order) {
        memory::global_atomic_store(self.base, self.len, index, value, scope, order);
    }

    /// Applies `operation` to element `index` and gives what was there before.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_rmw(self, operation: Rmw, index: usize, value: T, scope: Scope, order: Order) -> T {
        memory::global_rmw(self.base, self.len, operation, index, value, scope, order)
    }

    /// Adds to element `index` (wrapping) and gives what was there before.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_add(self, index: usize, value: T, scope: Scope, order: Order) -> T {
        self.atomic_rmw(Rmw::Add, index, value, scope, order)
    }

    /// Writes `new` to element `index` if it holds `expected`; gives what it held.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compare_exchange(self, index: usize, expected: T, new: T, scope: Scope, order: Order) -> T {
        memory::global_compare_exchange(self.base, self.len, index, expected, new, scope, order)
    }
}

impl<T: Pod> Shared<T> {
    length!();

    /// The `len` elements from `start`.
    ///
    /// # Safety
    /// `start + len <= self.len()`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn slice(self, start: usize, len: usize) -> Self {
        Self { base: self.base.wrapping_add(start), len }
    }

    /// Element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> T {
        memory::shared_load(self.base, self.len, index)
    }

    /// Writes element `index`.
    ///
    /// # Safety
    /// `index < self.len()`, and no other thread reads or writes it meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn set(self, index: usize, value: T) {
        memory::shared_store(self.base, self.len, index, value);
    }

    /// The `N` elements from `index`, in one access if they are 4, 8 or 16 bytes; else one by one.
    ///
    /// # Safety
    /// As [`get`](Self::get) for all of them, and where it is one access, its address is a multiple of its size.
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

    /// Writes the `N` elements from `index`, in one access if they are 4, 8 or 16 bytes; else one by one.
    ///
    /// # Safety
    /// As [`set`](Self::set) for all of them, and where it is one access, its address is a multiple of its size.
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

/// Atomics of the block: relaxed, since the block's barrier orders everything else.
impl<T: Word> Shared<T> {
    /// Reads element `index` atomically.
    ///
    /// # Safety
    /// `index < self.len()`; threads that use it meanwhile do so atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_load(self, index: usize) -> T {
        memory::shared_atomic_load(self.base, self.len, index)
    }

    /// Writes element `index` atomically.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_store(self, index: usize, value: T) {
        memory::shared_atomic_store(self.base, self.len, index, value);
    }

    /// Applies `operation` to element `index` and gives what was there before.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_rmw(self, operation: Rmw, index: usize, value: T) -> T {
        memory::shared_rmw(self.base, self.len, operation, index, value)
    }

    /// Adds to element `index` (wrapping) and gives what was there before.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn atomic_add(self, index: usize, value: T) -> T {
        self.atomic_rmw(Rmw::Add, index, value)
    }

    /// Writes `new` to element `index` if it holds `expected`; gives what it held.
    ///
    /// # Safety
    /// As [`atomic_load`](Self::atomic_load).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn compare_exchange(self, index: usize, expected: T, new: T) -> T {
        memory::shared_compare_exchange(self.base, self.len, index, expected, new)
    }
}

/// Carves the block's shared memory into pieces, each aligned to 16 bytes.
///
/// All carvings start at the same place: a second `SharedMemory` lays its pieces over those of the first, which is how
/// one phase of a kernel reuses the memory of another (with a barrier in between).
#[derive(Debug)]
pub struct SharedMemory {
    taken: usize,
    not_send: PhantomData<*mut ()>,
}

impl SharedMemory {
    /// All of the block's shared memory.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::new_without_default, reason = "not a value to be made by generic code")]
    pub const fn new() -> Self {
        Self { taken: 0, not_send: PhantomData }
    }

    /// The next `len` elements.
    ///
    /// # Safety
    /// The kernel's shared memory holds all pieces taken: [`shared_bytes`] of each, added up. A layout type that the
    /// kernel's `shared = ` setting is computed from is the way to be sure.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take<T: Pod>(&mut self, len: usize) -> Shared<T> {
        const { assert!(align_of::<T>() <= 16, "shared memory is aligned to 16 bytes") };
        let base = memory::shared_base(self.taken, shared_bytes::<T>(len)).cast::<T>();
        self.taken += shared_bytes::<T>(len);
        Shared { base, len }
    }
}

/// The bytes that a piece of `len` elements takes of a block's shared memory.
#[inline(always)]
#[must_use]
pub const fn shared_bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(16)
}
