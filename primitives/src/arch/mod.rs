//! The device functions: everything that differs between GPU and CPU, and nothing else.
//!
//! Each function has two implementations with the same meaning. In `nvptx.rs` it is one PTX instruction or LLVM
//! intrinsic. In `host.rs` it calls the CPU executor, which runs every GPU thread as a coroutine. Kernels use these
//! functions through [`thread`], [`warp`] and the views of [`crate::view`]. The raw memory accesses are in [`memory`].
//!
//! Grids and blocks are one-dimensional. A warp has 32 lanes.

#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(target_arch = "nvptx64")]
mod nvptx;

#[cfg(not(target_arch = "nvptx64"))]
use host as target;
#[cfg(target_arch = "nvptx64")]
use nvptx as target;

pub use crate::model::{Cache, Order, Rmw, Scope};

/// Whether the operators of kernels are recorded text, which answers alike every time. On the CPU they are the caller's
/// functions, which may change their minds from one call to the next.
pub const IS_RECORDED: bool = cfg!(target_arch = "nvptx64");

/// Returns `value`, hidden from the optimizer: the compiler cannot reuse what it computed from `value` before.
///
/// Without this, a condition or an address that several phases of a kernel need would be computed once and kept in
/// registers from the first phase to the last.
#[inline(always)]
#[must_use]
pub fn opaque(value: u32) -> u32 {
    target::opaque(value)
}

/// The position of a thread in its block and grid, and the block's barrier.
pub mod thread {
    use super::target;

    /// Returns the index of the thread in its block.
    #[inline(always)]
    pub fn thread_idx_x() -> u32 {
        target::thread_idx_x()
    }

    /// Returns the index of the block in the grid.
    #[inline(always)]
    pub fn block_idx_x() -> u32 {
        target::block_idx_x()
    }

    /// Returns the number of threads per block.
    #[inline(always)]
    pub fn block_dim_x() -> u32 {
        target::block_dim_x()
    }

    /// Returns the number of blocks in the grid.
    #[inline(always)]
    pub fn grid_dim_x() -> u32 {
        target::grid_dim_x()
    }

    /// Waits at the block's barrier until all threads of the block have arrived. Each of them then sees what the
    /// others wrote before.
    ///
    /// # Safety
    /// Every thread of the block must call this, at the same point of the program.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync_threads() {
        target::sync_threads();
    }

    /// Hints that the thread polls memory and waits for another thread. Call it in the polling loop.
    #[inline(always)]
    pub fn spin_hint() {
        target::spin_hint();
    }

    /// Aborts the kernel with a fault. Use it for impossible states, not for bad input.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn trap() -> ! {
        target::trap()
    }

    /// Orders this thread's accesses before the fence with those after it, as seen by other threads in `scope`
    /// (acquire-release).
    #[inline(always)]
    pub fn fence(scope: super::Scope) {
        target::fence(scope);
    }
}

/// The operations of a warp, the 32 threads that execute together: votes, shuffles, masks.
///
/// Every collective takes the mask of its participating lanes.
///
/// # Safety
/// For all collectives: the calling lane must be in `mask`, and all lanes of `mask` must call the same operation with
/// the same mask, at the same point of the program.
pub mod warp {
    use super::target;

    /// The number of lanes of a warp.
    pub const LANES: u32 = 32;
    /// The mask of all lanes.
    pub const FULL: u32 = !0;

    /// Returns the index of the thread in its warp.
    #[inline(always)]
    pub fn lane_id() -> u32 {
        target::lane_id()
    }

    /// Returns the index of the warp in its block.
    #[inline(always)]
    pub fn warp_id() -> u32 {
        target::thread_idx_x() / LANES
    }

    /// Returns the mask of the lanes below this one.
    #[inline(always)]
    pub fn lane_mask_lt() -> u32 {
        (1 << lane_id()) - 1
    }

    /// Returns the mask of this lane and those below it.
    #[inline(always)]
    pub fn lane_mask_le() -> u32 {
        lane_mask_lt() | lane_mask_eq()
    }

    /// Returns the mask of this lane.
    #[inline(always)]
    pub fn lane_mask_eq() -> u32 {
        1 << lane_id()
    }

    /// Returns the mask of this lane and those above it.
    #[inline(always)]
    pub fn lane_mask_ge() -> u32 {
        !lane_mask_lt()
    }

    /// Returns the mask of the lanes above this one.
    #[inline(always)]
    pub fn lane_mask_gt() -> u32 {
        !lane_mask_le()
    }

    /// Waits until all lanes of `mask` have arrived. Each of them then sees what the others wrote before.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync_warp(mask: u32) {
        target::sync_warp(mask);
    }

    /// Returns the lanes of `mask` whose predicate holds.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
        target::ballot(mask, predicate)
    }

    /// Returns whether the predicate holds on any lane of `mask`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn any(mask: u32, predicate: bool) -> bool {
        target::any(mask, predicate)
    }

    /// Returns whether the predicate holds on all lanes of `mask`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn all(mask: u32, predicate: bool) -> bool {
        target::all(mask, predicate)
    }

    /// Returns the lanes of `mask` that hold the same value as this one.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
        target::match_any(mask, value)
    }

    /// [`match_any`] for 64-bit values.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
        target::match_any_u64(mask, value)
    }

    /// Returns the value of lane `source` (modulo 32).
    ///
    /// # Safety
    /// See the [module](self). `source` must be a lane of `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_idx(mask: u32, value: u32, source: u32) -> u32 {
        target::shuffle_idx(mask, value, source)
    }

    /// Returns the value of the lane `delta` below this one, or this lane's own value if there is no such lane.
    ///
    /// # Safety
    /// See the [module](self). The source lane, if it exists, must be in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
        target::shuffle_up(mask, value, delta)
    }

    /// Returns the value of the lane `delta` above this one, or this lane's own value if there is no such lane.
    ///
    /// # Safety
    /// See the [module](self). The source lane, if it exists, must be in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
        target::shuffle_down(mask, value, delta)
    }

    /// Returns the value of the lane whose index is this lane's index xor `lanes` (1 to 31).
    ///
    /// # Safety
    /// See the [module](self). The source lane must be in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
        target::shuffle_xor(mask, value, lanes)
    }
}

/// The raw memory accesses. The views of [`crate::view`] wrap and document them.
///
/// All take the buffer's base, its length and an index, so that the CPU can check bounds that the GPU does not check.
pub mod memory {
    pub(crate) use super::target::{
        expect_part, global_atomic_load, global_atomic_load_vec, global_atomic_store, global_compare_exchange,
        global_float_add, global_load, global_load_shifted, global_load_vec, global_rmw, global_store,
        global_store_vec, shared_atomic_load, shared_atomic_store, shared_base, shared_compare_exchange, shared_load,
        shared_load_vec, shared_rmw, shared_store, shared_store_vec,
    };

    /// The types that atomics support: `u32`, `u64`, `i32`, `i64`.
    pub trait Word: bytemuck::Pod + Ord + super::target::AtomicWord {}
    impl Word for u32 {}
    impl Word for u64 {}
    impl Word for i32 {}
    impl Word for i64 {}
}
