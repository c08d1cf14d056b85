//! The kernel that numbers the items of each segment.

use crate::arch::thread;
use crate::form::kernel;
use crate::input::SegmentOffsets;
use crate::view::{Global, GlobalMut};

/// The threads per block.
const THREADS: u32 = 256;
/// The consecutive items per thread: a sector of 32 bytes.
const ITEMS: usize = 8;
/// The items per block.
pub(crate) const NUMBER_TILE: usize = THREADS as usize * ITEMS;

/// Writes each item's position within its segment. What is written for items outside of all segments is unspecified.
///
/// A thread finds the segment of its first item by bisection, and then goes on from there.
///
/// Cost: 4 bytes are written per item, and the offsets are read.
///
/// # Safety
/// The launch has one block per [`NUMBER_TILE`] items. While the kernel runs, nothing writes the offsets, and nothing else
/// uses the output.
#[kernel(listed, threads = THREADS, native = crate::segmented_sort::native::number_items)]
pub unsafe fn number_items(offsets: SegmentOffsets<u32>, output: GlobalMut<u32>) {
    let thread = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let mut at = thread * ITEMS;
    let end = (at + ITEMS).min(output.len());
    if at >= end {
        return;
    }
    let offsets = offsets.get();
    let mut passed = passed_by(offsets, 0, at);
    while at < end {
        if passed < offsets.len() && offsets.get(passed) as usize <= at {
            passed = passed_by(offsets, passed, at);
        }
        let start = if passed > 0 { offsets.get(passed - 1) } else { 0 };
        output.set(at, (at as u32).wrapping_sub(start));
        at += 1;
    }
}

/// Returns the number of offsets that are not above an item; it is at least `from`.
///
/// # Safety
/// Nothing writes the offsets during the call.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn passed_by(offsets: Global<u32>, from: usize, item: usize) -> usize {
    let (mut low, mut high) = (from, offsets.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if offsets.get(middle) as usize <= item {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    NumberItems;
}
