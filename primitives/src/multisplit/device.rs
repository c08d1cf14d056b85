//! The kernel that computes bucket numbers.

use crate::arch::thread;
use crate::buckets::Buckets;
use crate::buckets::HoleBuckets;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::view::{Global, GlobalMut};

/// The threads per block.
pub(super) const THREADS: u32 = 256;

/// Writes the bucket of each key, for keys of sizes that the passes do not move.
///
/// # Safety
/// The launch has at least one thread per key, and there are as many numbers. `buckets` was made of a function for keys
/// that are held in an `H`. While the kernel runs, nothing writes the keys, and nothing else uses the numbers.
#[kernel(listed, threads = THREADS, native = super::native::number_keys)]
pub unsafe fn number_keys<H: RegisterRepr>(keys: Global<H>, buckets: HoleBuckets, numbers: GlobalMut<u32>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < keys.len() {
        numbers.set(at, buckets.bucket(keys.get(at), 0));
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family number_keys(H) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]]: NumberKeys<H>;
    }
}
