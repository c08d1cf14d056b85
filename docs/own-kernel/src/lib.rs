//! A kernel that gpu-primitives does not have: a histogram of bytes.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{SharedMemory, shared_bytes};
use gpu_primitives::{Global, GlobalMut, thread};

/// The threads per block. There is one counter for each.
pub const THREADS: u32 = 256;

/// Counts how often each byte occurs.
///
/// Each block counts in shared memory and adds its counts to the result at the end.
///
/// # Safety
/// `counts` has 256 elements. While the kernel runs, nothing writes `bytes`, and nothing else uses `counts`.
#[kernel(threads = THREADS, shared = shared_bytes::<u32>(256))]
pub unsafe fn count_bytes(bytes: Global<u8>, counts: GlobalMut<u32>) {
    let mut memory = SharedMemory::new();
    let own = memory.take::<u32>(256);
    let thread = thread::thread_idx_x();
    own.set(thread as usize, 0);
    thread::sync_threads();

    let mut at = (thread::block_idx_x() * THREADS + thread) as usize;
    while at < bytes.len() {
        own.atomic_add(bytes.get(at) as usize, 1);
        at += (thread::grid_dim_x() * THREADS) as usize;
    }
    thread::sync_threads();
    counts.atomic_rmw(Rmw::Add, thread as usize, own.get(thread as usize), Scope::Gpu, Order::Relaxed);
}

gpu_primitives::instances! {
    in concat!(env!("OUT_DIR"), "/ptx");
    CountBytes;
}
