//! Appends to lists: the threads of a block reserve positions with one atomic per block.

use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::block::warp::broadcast;
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{GlobalMut, Shared, SharedMemory, thread, warp};

/// The shared memory of an [`Appender`] in bytes.
pub const fn appender_shared() -> usize {
    shared_bytes::<u32>(2)
}

/// The indices of the words: how many threads of the block append, and where the block's positions begin.
const WANTED: usize = 0;
const START: usize = 1;

/// Reserves positions in a list for the threads of a block.
#[derive(Clone, Copy)]
pub struct Appender {
    words: Shared<u32>,
}

impl Appender {
    /// Takes the shared memory.
    ///
    /// # Safety
    /// All threads of the block call it. The block has [`appender_shared`] bytes left.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn new(memory: &mut SharedMemory) -> Self {
        let words = memory.take::<u32>(2);
        if thread::thread_idx_x() == 0 {
            words.set(WANTED, 0);
        }
        thread::sync_threads();
        Self { words }
    }

    /// Reserves a position for each thread that wants one, and adds their number to `count`, the length of the list.
    /// Returns the thread's position.
    ///
    /// # Safety
    /// All threads of the block call it. `count` has one element, which stays below 2^32. While the kernel runs, it is
    /// only used in this way.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn reserve(self, count: GlobalMut<u64>, wants: bool) -> usize {
        let wanting = warp::ballot(warp::FULL, wants);
        let mut offset = 0;
        if warp::lane_id() == 0 && wanting != 0 {
            offset = self.words.atomic_add(WANTED, wanting.count_ones());
        }
        offset = broadcast(offset, 0) + (wanting & warp::lane_mask_lt()).count_ones();
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            let wanted = self.words.get(WANTED) as u64;
            let start = if wanted == 0 { 0 } else { count.atomic_add(0, wanted, Scope::Gpu, Order::Relaxed) };
            self.words.set(START, start as u32);
            self.words.set(WANTED, 0);
        }
        thread::sync_threads();
        self.words.get(START) as usize + offset as usize
    }
}
