//! How kernels find the bin of an element.

use super::sample::NONE;
use crate::arch::thread;
use crate::compare::{HoleOrder, KeyOrder as _};
use crate::form::{Buffer, Holes, Param};
use crate::hole::{Hole, RegisterRepr};
use crate::view::{Global, Shared};
use bytemuck::{Pod, Zeroable};

/// Says which bin an element falls into.
pub trait Bins<H>: Param {
    /// The elements of shared memory that a block has for it.
    const STAGED: usize = 0;

    /// Whether there may be more bins than a block has counters.
    const MAY_BE_MANY: bool = true;

    /// Fills the shared memory.
    ///
    /// # Safety
    /// All threads of the block call this, before a barrier. `staged` has [`STAGED`](Self::STAGED) elements.
    #[inline(always)]
    unsafe fn stage(&self, staged: Shared<H>) {
        let _ = staged;
    }

    /// Returns the bin of an element. One that there is no count for means none.
    ///
    /// # Safety
    /// `staged` is as [`stage`](Self::stage) left it.
    unsafe fn bin(&self, item: H, staged: Shared<H>) -> u32;

    /// Writes the bins of elements.
    ///
    /// # Safety
    /// Nothing writes the memory of the bins.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn bins(&self, items: &[H], bins: &mut [u32]);
}

/// One bin per byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ByteBins;

impl Bins<u8> for ByteBins {
    const MAY_BE_MANY: bool = false;

    #[inline(always)]
    unsafe fn bin(&self, item: u8, _: Shared<u8>) -> u32 {
        item as u32
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn bins(&self, items: &[u8], bins: &mut [u32]) {
        bins.iter_mut().zip(items).for_each(|(bin, &item)| *bin = item as u32);
    }
}

/// The bins of a [`Bucket`](crate::histogram::Bucket) that is not known when the kernel is compiled.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HoleBins(Hole);

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HoleBins {
    const HOLES: Holes = Holes::FIRST;
}

#[cfg(not(target_arch = "nvptx64"))]
impl HoleBins {
    /// Returns the bins of elements `T`, for kernels that hold them in a type of the same size or a larger one.
    pub(crate) fn of<T: Pod, B: crate::histogram::Bucket<T>>(bucket: B) -> Self {
        Self(Hole::new(bucket, crate::buckets::HoleBuckets::filling::<T, B>()))
    }
}

impl<H: RegisterRepr> Bins<H> for HoleBins {
    #[inline(always)]
    unsafe fn bin(&self, item: H, _: Shared<H>) -> u32 {
        H::bucket(&self.0, item)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn bins(&self, items: &[H], bins: &mut [u32]) {
        // SAFETY: it is made of a `Bucket` of elements that an `H` holds.
        unsafe { self.0.each(items, bins) };
    }
}

/// Bins between levels: bin `b` is from level `b` up to level `b + 1`, which is excluded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RangeBins<H> {
    /// The order of the levels.
    pub order: HoleOrder,
    /// The levels, in this order.
    pub levels: Global<H>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<H: Pod> Param for RangeBins<H> {
    const HOLES: Holes = HoleOrder::HOLES;

    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.levels.buffers("levels", visit);
    }
}

impl<H: RegisterRepr> RangeBins<H> {
    /// Returns the bin of an element, for levels that `get` reads: one less than the number of levels that are not greater.
    #[inline(always)]
    fn search(&self, item: H, get: impl Fn(usize) -> H) -> u32 {
        let (mut low, mut high) = (0, self.levels.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = self.order.less(item, get(middle));
            (low, high) = if is_below { (low, middle) } else { (middle + 1, high) };
        }
        (low as u32).wrapping_sub(1)
    }
}

impl<H: RegisterRepr> Bins<H> for RangeBins<H> {
    /// Up to 1024 bins have their levels in shared memory.
    const STAGED: usize = 1025;

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn stage(&self, staged: Shared<H>) {
        if self.levels.len() <= Self::STAGED {
            let mut i = thread::thread_idx_x() as usize;
            while i < self.levels.len() {
                staged.set(i, self.levels.get(i));
                i += thread::block_dim_x() as usize;
            }
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn bin(&self, item: H, staged: Shared<H>) -> u32 {
        const { assert!(NONE == 0u32.wrapping_sub(1), "an element below the first level has no bin") };
        if self.levels.len() <= Self::STAGED {
            self.search(item, |i| staged.get(i))
        } else {
            self.search(item, |i| self.levels.get(i))
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn bins(&self, items: &[H], bins: &mut [u32]) {
        // SAFETY: guaranteed by the caller.
        let levels = unsafe { self.levels.as_slice() };
        bins.iter_mut().zip(items).for_each(|(bin, &item)| *bin = self.search(item, |i| levels[i]));
    }
}
