//! Predicates for selections.

use crate::form::{Buffer, Param};
use crate::view::Global;
use bytemuck::Pod;
use core::ops::BitAnd;

/// A test for items. It may carry state, which is passed to the GPU as a kernel argument.
///
/// # Contract
/// The result depends only on the item and the state. A predicate that breaks this contract yields some selection, but
/// never an out-of-bounds access. It is only called with items of the input, once or twice for each.
pub trait Predicate<T>: Param {
    /// Returns whether the item passes.
    fn test(&self, item: T) -> bool;
}

/// Tests the bits of an item: `item & mask == expected`, or the opposite.
///
/// ```
/// use gpu_primitives::select::{Masked, Predicate};
///
/// assert!(Masked::equal(0xf0u32, 0x30).test(0x1234));
/// assert!(!Masked::differ(0xf0u32, 0x30).test(0x1234));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masked<T> {
    mask: T,
    expected: T,
    differ: u32,
}

impl<T: Pod> Masked<T> {
    /// Passes if `item & mask == expected`.
    #[must_use]
    pub const fn equal(mask: T, expected: T) -> Self {
        Self { mask, expected, differ: 0 }
    }

    /// Passes if `item & mask != expected`.
    #[must_use]
    pub const fn differ(mask: T, expected: T) -> Self {
        Self { mask, expected, differ: 1 }
    }
}

// SAFETY: `repr(C)` and plain data.
unsafe impl<T: Pod> Param for Masked<T> {}

impl<T: Pod + BitAnd<Output = T> + PartialEq> Predicate<T> for Masked<T> {
    #[inline(always)]
    fn test(&self, item: T) -> bool {
        (item & self.mask == self.expected) != (self.differ != 0)
    }
}

/// The kernels' form of a [`Predicate`]: it also gets the item's index, tests rows at once, and may record by-products.
///
/// # Safety
/// For all methods: the buffers it carries satisfy the requirements of its type, and nothing else writes them while the
/// kernel runs. Indices are those of items and lie within [`range`](Self::range). The index of a [`row`](Self::row) is
/// a multiple of `VEC`, and all items of the row lie within the range. A run is one of a tile's runs: all lanes of the
/// warp that owns it call [`record`](Self::record) and [`record_place`](Self::record_place) once each, and no other
/// warp does.
#[doc(hidden)]
pub trait Keep<K>: Param {
    /// The number of blocks of 256 threads that must fit on a multiprocessor, as in a kernel's settings.
    const MIN_BLOCKS: u32 = 0;

    /// Returns the range of indices to look at, out of `len` items: start and end.
    #[inline(always)]
    unsafe fn range(&self, len: usize) -> (usize, usize) {
        (0, len)
    }

    /// Returns whether item `index` is kept.
    unsafe fn item(&self, index: usize, item: K) -> bool;

    /// Returns which of the items from `index` on are kept, one bit each.
    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, items: [K; VEC]) -> u32
    where
        K: Pod,
    {
        let mut bits = 0;
        for i in 0..VEC {
            bits |= (self.item(index + i, items[i]) as u32) << i;
        }
        bits
    }

    /// Called for every run of a warp, by all its lanes. Gets the run's number, the lane's bits and, per row, the
    /// number of items kept in lower lanes and in all lanes (one byte each). The result is passed to
    /// [`record_place`](Self::record_place).
    #[inline(always)]
    unsafe fn record<const ROWS: usize>(&self, run: usize, flags: u32, in_row: u64, row_totals: u64) -> u32 {
        let _ = (run, flags, in_row, row_totals);
        0
    }

    /// Called for the run again when its position is known: the number of items kept before it.
    #[inline(always)]
    unsafe fn record_place<const ROWS: usize>(&self, run: usize, note: u32, before: usize) {
        let _ = (run, note, before);
    }
}

/// Keeps items by a predicate.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct By<P>(pub P);

// SAFETY: `repr(C)` around a `Param`.
unsafe impl<P: Param> Param for By<P> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.0.buffers(name, visit);
    }
}

impl<K, P: Predicate<K>> Keep<K> for By<P> {
    #[inline(always)]
    unsafe fn item(&self, _: usize, item: K) -> bool {
        self.0.test(item)
    }
}

/// Keeps items by one byte each: zero drops the item. There are as many bytes as items.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Flags(pub Global<u8>);

// SAFETY: `repr(C)` around a view.
unsafe impl Param for Flags {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.0.buffers(name, visit);
    }
}

impl<K> Keep<K> for Flags {
    #[inline(always)]
    unsafe fn item(&self, index: usize, _: K) -> bool {
        self.0.get(index) != 0
    }

    #[inline(always)]
    unsafe fn row<const VEC: usize>(&self, index: usize, _: [K; VEC]) -> u32
    where
        K: Pod,
    {
        let mut bits = 0;
        if VEC == 4 && self.0.as_ptr().addr().is_multiple_of(4) {
            let flags = self.0.load_vec::<4>(index, crate::arch::Cache::Default);
            for i in 0..4 {
                bits |= ((flags[i] != 0) as u32) << i;
            }
        } else {
            for i in 0..VEC {
                bits |= ((self.0.get(index + i) != 0) as u32) << i;
            }
        }
        bits
    }
}
