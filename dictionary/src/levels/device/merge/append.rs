//! The kernel that appends pairs to a buffer.

use crate::levels::device::table::THREADS;
use gpu_primitives::arch::thread;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{Global, GlobalMut};

/// Copies the words of keys and of values: one launch instead of two copies, because small insertions cost as much as their
/// launches.
///
/// Cost: reads and writes each word once, in coalesced accesses.
///
/// # Safety
/// - The launch has at least one thread per word of the keys, and per word of the values.
/// - There are as many words to write as to read.
/// - While the kernel runs, nobody writes what it reads, and nobody else uses what it writes.
#[kernel(listed, threads = THREADS, native = crate::levels::native::append_pairs)]
pub unsafe fn append_pairs(keys: Global<u32>, values: Global<u32>, to_keys: GlobalMut<u32>, to_values: GlobalMut<u32>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < to_keys.len() {
        to_keys.set(at, keys.get(at));
    }
    if at < to_values.len() {
        to_values.set(at, values.get(at));
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    AppendPairs;
}
