//! Kernels that read dictionaries, as a user would write them.

#![allow(unsafe_op_in_unsafe_fn)]

use gpu_dictionary::filter::FilterView;
use gpu_dictionary::levels::Levels;
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, thread};

/// Joins two dictionaries: sums the values of both for each key. One thread per key.
///
/// # Safety
/// There must be one sum per key, and at least one thread per key.
#[kernel(threads = 64)]
pub unsafe fn join(left: Levels<u32, u32>, right: Levels<u32, u32>, keys: Global<u32>, sums: GlobalMut<u64>) {
    let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if at < keys.len() {
        let key = keys.get(at);
        let (left, right) = (left.get(key), right.get(key));
        sums.set(at, left.unwrap_or(0) as u64 + right.unwrap_or(0) as u64);
    }
}

/// Sums the values of the keys that are present. Thread `i` takes the keys `i`, `i + n` and so on, where `n` is the
/// number of sums.
///
/// # Safety
/// The launch must have at least one thread per sum. While the kernel runs, nothing changes the dictionary or the keys,
/// and nothing else uses the sums.
#[kernel(threads = 64)]
pub unsafe fn sum_values(dictionary: Levels<u32, u32>, keys: Global<u32>, sums: GlobalMut<u64>) {
    let thread = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if thread < sums.len() {
        let mut sum = 0;
        let mut at = thread;
        while at < keys.len() {
            if let Some(value) = dictionary.get(keys.get(at)) {
                sum += value as u64;
            }
            at += sums.len();
        }
        sums.set(thread, sum);
    }
}

/// Writes 1 for each key that a filter may contain, and 0 for the others. One thread per key.
///
/// # Safety
/// There must be one result per key, and at least one thread per key.
#[kernel(threads = 64)]
pub unsafe fn passing(filter: FilterView<[u32; 3]>, keys: Global<[u32; 3]>, passes: GlobalMut<u32>) {
    let at = (thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize;
    if at < keys.len() {
        passes.set(at, filter.contains(keys.get(at)) as u32);
    }
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    join: Join;
    passing: Passing;
    sum_values: SumValues;
}
