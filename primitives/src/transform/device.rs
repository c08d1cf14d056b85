//! The kernel of transformations.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use crate::arch::thread;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::view::GlobalMut;

/// The threads per block.
pub(super) const THREADS: u32 = 256;

/// The elements per thread.
const ITEMS: usize = 8;

/// The elements of a block.
pub(super) const TILE: usize = THREADS as usize * ITEMS;

/// Writes the elements of a source to memory.
///
/// Neighbouring threads read neighbouring elements, and each thread has eight in flight. Reading from all slices of a
/// source at once keeps the memory busy.
///
/// Cost: what the source reads, and each element is written once. `a * x + y` of 2^27 floats moves 1.5 GiB: 393 µs at
/// 4.1 TB/s.
///
/// # Safety
/// The launch has one block per tile of [`TILE`] elements. `output` is no shorter than the source. Memory that the source
/// reads is not written, except for element `i` of a slice that begins where `output` begins.
#[kernel(listed, threads = THREADS, native = super::native::transform_tiles)]
pub unsafe fn transform_tiles<H: RegisterRepr>(input: SourceArg, output: GlobalMut<H>) {
    let len = Input::<H>::count(&input);
    let start = thread::block_idx_x() as usize * TILE + thread::thread_idx_x() as usize;
    let mut items = [H::zeroed(); ITEMS];
    // The last block is a loop of its own, so that the others need no comparison per element.
    if (thread::block_idx_x() as usize + 1) * TILE <= len {
        for i in 0..ITEMS {
            items[i] = input.item(start + i * THREADS as usize);
        }
        for i in 0..ITEMS {
            output.set(start + i * THREADS as usize, items[i]);
        }
    } else {
        let mut at = start;
        while at < len {
            output.set(at, Input::<H>::item(&input, at));
            at += THREADS as usize;
        }
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family transform_tiles(H) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]]: TransformTiles<H>;
    }
}
