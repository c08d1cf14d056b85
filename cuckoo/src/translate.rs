//! A kernel that uses a table as your own kernel would. Only a test uses it.

use crate::CuckooView;
use gpu_primitives::kernel::kernel;
use gpu_primitives::{GlobalMut, thread};

/// Threads per block.
pub const THREADS: u32 = 128;

/// Replaces each number by its value in the table, up to `steps` times, until it is not a key.
///
/// # Safety
/// The launch has at least one thread per number. While the kernel runs, nobody changes the table and nobody else uses
/// the numbers.
#[kernel(listed, threads = THREADS, native = crate::native::own::translate)]
pub unsafe fn translate(table: CuckooView<u32, u32>, steps: u32, numbers: GlobalMut<u32>) {
    let i = (thread::block_idx_x() * THREADS + thread::thread_idx_x()) as usize;
    if i < numbers.len() {
        let mut number = numbers.get(i);
        let mut step = 0;
        while step < steps
            && let Some(next) = table.get(number)
        {
            number = next;
            step += 1;
        }
        numbers.set(i, number);
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    Translate;
}
