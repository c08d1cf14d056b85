//! The vocabulary of device code: all that differs between GPU and CPU, and nothing else.
//!
//! Each word exists twice, with one meaning: in `nvptx.rs` as one PTX instruction or LLVM intrinsic, in `cpu.rs` spoken to
//! the CPU executor, which runs every GPU thread as a coroutine. Kernels use the words through [`thread`], [`warp`] and
//! the views of [`crate::view`]; the raw words are in [`memory`].
//!
//! Grids and blocks have one dimension, warps 32 lanes.

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(target_arch = "nvptx64")]
mod nvptx;

#[cfg(not(target_arch = "nvptx64"))]
use cpu as word;
#[cfg(target_arch = "nvptx64")]
use nvptx as word;

/// How far an atomic operation or fence is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// All threads on this GPU.
    Gpu,
    /// All threads on all GPUs and the host.
    System,
}

/// How an atomic operation orders the accesses around it. Loads take `Relaxed` or `Acquire`, stores `Relaxed` or
/// `Release`; read-modify-writes take any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Atomic, but orders nothing else.
    Relaxed,
    /// Later accesses stay after it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Both.
    AcqRel,
}

/// A hint to the caches. It never changes what is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Keep it as usual.
    Default,
    /// Used once: evict it first.
    Streaming,
    /// No thread of the kernel writes it: the read-only path may serve it. For loads; stores treat it as `Default`.
    ReadOnly,
}

/// A read-modify-write operation on a [`memory::Word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rmw {
    /// Wrapping addition.
    Add,
    /// The smaller of the two.
    Min,
    /// The larger of the two.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The new value.
    Exchange,
}

/// The same number, though the compiler cannot know: what is computed from it is computed anew.
///
/// Conditions and addresses that several phases of a kernel compute alike would otherwise be computed once and kept in
/// registers from the first phase to the last.
#[inline(always)]
#[must_use]
pub fn anew(value: u32) -> u32 {
    word::anew(value)
}

/// Where a thread is in its block and grid, and the barrier of the block.
pub mod thread {
    use super::word;

    /// Index of the thread in its block.
    #[inline(always)]
    pub fn thread_idx_x() -> u32 {
        word::thread_idx_x()
    }

    /// Index of the block in the grid.
    #[inline(always)]
    pub fn block_idx_x() -> u32 {
        word::block_idx_x()
    }

    /// Threads of a block.
    #[inline(always)]
    pub fn block_dim_x() -> u32 {
        word::block_dim_x()
    }

    /// Blocks of the grid.
    #[inline(always)]
    pub fn grid_dim_x() -> u32 {
        word::grid_dim_x()
    }

    /// The barrier of the block: all its threads arrive before any goes on, and what they wrote is seen by all.
    ///
    /// # Safety
    /// Every thread of the block calls it, at the same place of the program.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync_threads() {
        word::sync_threads();
    }

    /// Says that the thread waits for another one, inside a loop that polls memory.
    #[inline(always)]
    pub fn spin_hint() {
        word::spin_hint();
    }

    /// Ends the kernel as a fault: for a state that cannot be, not for bad input.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn trap() -> ! {
        word::trap()
    }

    /// Orders the accesses of this thread before and after it, as other threads in `scope` see them (acquire-release).
    #[inline(always)]
    pub fn fence(scope: super::Scope) {
        word::fence(scope);
    }
}

/// The 32 threads that step together: votes, shuffles, masks.
///
/// Every collective takes the mask of the lanes that take part.
///
/// # Safety
/// For all collectives: the calling lane is in `mask`, and all lanes of `mask` call the same operation with the same
/// mask, at the same place of the program.
pub mod warp {
    use super::word;

    /// Lanes of a warp.
    pub const LANES: u32 = 32;
    /// All lanes.
    pub const FULL: u32 = !0;

    /// Index of the thread in its warp.
    #[inline(always)]
    pub fn lane_id() -> u32 {
        word::lane_id()
    }

    /// Index of the warp in its block.
    #[inline(always)]
    pub fn warp_id() -> u32 {
        word::thread_idx_x() / LANES
    }

    /// The lanes below this one.
    #[inline(always)]
    pub fn lane_mask_lt() -> u32 {
        (1 << lane_id()) - 1
    }

    /// This lane and those below it.
    #[inline(always)]
    pub fn lane_mask_le() -> u32 {
        lane_mask_lt() | lane_mask_eq()
    }

    /// This lane.
    #[inline(always)]
    pub fn lane_mask_eq() -> u32 {
        1 << lane_id()
    }

    /// This lane and those above it.
    #[inline(always)]
    pub fn lane_mask_ge() -> u32 {
        !lane_mask_lt()
    }

    /// The lanes above this one.
    #[inline(always)]
    pub fn lane_mask_gt() -> u32 {
        !lane_mask_le()
    }

    /// The barrier of the lanes in `mask`; what they wrote is seen by all of them.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn sync_warp(mask: u32) {
        word::sync_warp(mask);
    }

    /// The lanes of `mask` whose predicate holds.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
        word::ballot(mask, predicate)
    }

    /// Whether the predicate holds on any lane of `mask`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn any(mask: u32, predicate: bool) -> bool {
        word::any(mask, predicate)
    }

    /// Whether the predicate holds on all lanes of `mask`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn all(mask: u32, predicate: bool) -> bool {
        word::all(mask, predicate)
    }

    /// The lanes of `mask` that hold the same value as this one.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn match_any(mask: u32, value: u32) -> u32 {
        word::match_any(mask, value)
    }

    /// [`match_any`] for 64-bit values.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
        word::match_any_u64(mask, value)
    }

    /// The value of lane `source` (modulo 32).
    ///
    /// # Safety
    /// See the [module](self); `source` is a lane of `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_idx(mask: u32, value: u32, source: u32) -> u32 {
        word::shuffle_idx(mask, value, source)
    }

    /// The value of the lane `delta` below; lanes that have none below get their own value back.
    ///
    /// # Safety
    /// See the [module](self); the lane read, where there is one, is in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_up(mask: u32, value: u32, delta: u32) -> u32 {
        word::shuffle_up(mask, value, delta)
    }

    /// The value of the lane `delta` above; lanes that have none above get their own value back.
    ///
    /// # Safety
    /// See the [module](self); the lane read, where there is one, is in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_down(mask: u32, value: u32, delta: u32) -> u32 {
        word::shuffle_down(mask, value, delta)
    }

    /// The value of the lane whose index differs from this one's by the bits of `lanes` (1 to 31).
    ///
    /// # Safety
    /// See the [module](self); the lane read is in `mask`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn shuffle_xor(mask: u32, value: u32, lanes: u32) -> u32 {
        word::shuffle_xor(mask, value, lanes)
    }
}

/// The raw words of memory, behind the views of [`crate::view`], which document them.
///
/// All take the buffer's base, its length and an index, so that the CPU can check what the GPU does not.
pub mod memory {
    pub(crate) use super::word::{
        expect_part, global_atomic_load, global_atomic_store, global_compare_exchange, global_load, global_load_vec,
        global_rmw, global_store, global_store_vec, shared_atomic_load, shared_atomic_store, shared_base,
        shared_compare_exchange, shared_load, shared_load_vec, shared_rmw, shared_store, shared_store_vec,
    };

    /// What atomics work on: `u32`, `u64`, `i32`, `i64`.
    pub trait Word: bytemuck::Pod + Ord + super::word::AtomicWord {}
    impl Word for u32 {}
    impl Word for u64 {}
    impl Word for i32 {}
    impl Word for i64 {}
}
