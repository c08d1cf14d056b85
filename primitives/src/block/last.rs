//! The last block to finish, which sees what the others have written.

use crate::arch::{Order, Scope, thread};
use crate::view::{GlobalMut, Shared};

/// Counts this block as finished, and returns whether it is the last one of `blocks`, to all of its threads. That block sees
/// what all of them have written before, and has set the counter to zero again.
///
/// # Safety
/// All threads of the block must call this once. `finished` is one word, which is zero before the first of the blocks; `flag` is
/// one word of shared memory that nothing else uses.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn is_last(finished: GlobalMut<u64>, blocks: u32, flag: Shared<u32>) -> bool {
    // What the threads of the block have written comes before the addition, which releases it.
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        let is_last = finished.atomic_add(0, 1, Scope::Gpu, Order::AcqRel) + 1 == blocks as u64;
        if is_last {
            finished.atomic_store(0, 0, Scope::Gpu, Order::Relaxed);
        }
        flag.set(0, is_last as u32);
    }
    thread::sync_threads();
    let is_last = flag.get(0) != 0;
    if is_last {
        thread::fence(Scope::Gpu);
    }
    is_last
}
