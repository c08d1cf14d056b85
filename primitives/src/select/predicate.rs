//! What a selection asks of each item.

use crate::kernel::{Buffer, Param};
use crate::view::Global;
use bytemuck::Pod;
use core::ops::BitAnd;

/// A question about an item. It may carry state, which travels to the GPU as a kernel argument.
///
/// # Contract
/// The answer depends on the item and the state alone. A predicate that breaks this makes some selection, never an access
/// out of bounds. It is asked about items of the input alone, about each once or twice.
pub trait Predicate<T>: Param {
    /// Whether the item passes.
    fn test(&self, item: T) -> bool;
}

/// Passes items with given bits: `item & mask == expected`, or the opposite.
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
    /// `item & mask == expected`.
    #[must_use]
    pub const fn equal(mask: T, expected: T) -> Self {
        Self { mask, expected, differ: 0 }
    }

    /// `item & mask != expected`.
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

/// How a kernel decides about items: what [`Predicate`] is to users, with the item's index, rows at once, and by-products.
///
/// # Safety
/// For all methods: the buffers that it carries are as its type asks for, and nobody else writes them while the kernel
/// runs. Indices are those of items, and lie within [`range`](Self::range); that of a [`row`](Self::row) is a multiple
/// of `VEC`, and all its items lie there. A run is one of a tile's; all lanes of the warp that has it call
/// [`record`](Self::record) and [`record_place`](Self::record_place), no other warp does, and each of them once.
#[doc(hidden)]
pub trait Keep<K>: Param {
    /// Blocks of 256 threads that must fit on a multiprocessor, as in a kernel's settings.
    const MIN_BLOCKS: u32 = 0;

    /// The indices that are looked at, of `len` items: from, to.
    #[inline(always)]
    unsafe fn range(&self, len: usize) -> (usize, usize) {
        (0, len)
    }

    /// Whether item `index` stays.
    unsafe fn item(&self, index: usize, item: K) -> bool;

    /// Whether the items from `index` stay, one bit each.
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

    /// Told about every run of a warp: its number, the lane's bits, the items kept in each row in lower lanes and in all
    /// lanes (a byte each). The answer goes to [`record_place`](Self::record_place). All lanes of the warp call it.
    #[inline(always)]
    unsafe fn record<const ROWS: usize>(&self, run: usize, flags: u32, in_row: u64, row_totals: u64) -> u32 {
        let _ = (run, flags, in_row, row_totals);
        0
    }

    /// Told about the run again when its place is known: the items kept before it.
    #[inline(always)]
    unsafe fn record_place<const ROWS: usize>(&self, run: usize, note: u32, before: usize) {
        let _ = (run, note, before);
    }
}

/// Decides by a predicate.
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

/// Decides by a byte per item, of which there are as many as items: zero drops it.
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
