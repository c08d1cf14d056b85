//! The kernel that copies the elements of intervals from a level in which all elements are live.
//!
//! # Algorithm
//! Write down each interval as a *marker* followed by its elements. All intervals together make one sequence, which is
//! cut into equal tiles, one per block. So every block has the same work, however many intervals are empty and however
//! long others are. The block records, for each marker in its tile, where the elements of its interval begin. A prefix
//! maximum then gives every output its interval.
//!
//! # Cost
//! Reads and writes every element once; reads 16 bytes per interval.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use crate::KeyCode;
use crate::levels::device::search::last_not_after;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::LANES;
use gpu_primitives::block::scan;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::scan::Max;
use gpu_primitives::sort::Sign;
use gpu_primitives::view::{Global, GlobalMut, SharedMemory, shared_bytes};

/// Threads per block.
const THREADS: u32 = 256;

/// Outputs and markers per thread: an odd number, to avoid bank conflicts.
const ITEMS: usize = 15;

/// Outputs and markers per tile.
pub const COPY_TILE: usize = THREADS as usize * ITEMS;

/// Returns the shared memory of a block in bytes.
const fn shared() -> usize {
    shared_bytes::<u32>(COPY_TILE)
        + shared_bytes::<u32>(COPY_TILE + 1)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
}

/// Returns the number of blocks per multiprocessor; 0 leaves it to `ptxas`, which would spill registers for wide keys.
const fn min_blocks<C>() -> u32 {
    if size_of::<C>() > 8 { 1 } else { 0 }
}

/// Copies windows of a level's keys and values, one after the other. A window is two words in `windows`: a start and a
/// length. The elements of window `i` go to `offsets[i]` and on. One more offset says where the last window ends. Keys
/// are decoded by `sign`. If the elements do not all fit into the outputs, nothing is written.
///
/// # Safety
/// - The launch has at least one block per 3840 (`COPY_TILE`) outputs and windows.
/// - The windows are within the level, which has fewer than 2^32 keys and, unless values are zero-sized, as many
///   values.
/// - The offsets are the exclusive sum of the lengths of the windows.
/// - The output of the values has room for as many elements as that of the keys, unless values are zero-sized.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the outputs.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared(),
    min_blocks = min_blocks::<C>(),
    native = crate::levels::native::copy_windows
)]
pub unsafe fn copy_windows<C: KeyCode, V: Pod>(
    keys: Global<C>,
    values: Global<V>,
    sign: Sign,
    windows: Global<u32>,
    offsets: Global<u64>,
    out_keys: GlobalMut<C>,
    out_values: GlobalMut<V>,
) {
    let mut memory = SharedMemory::new();
    // For each output, the last marker before it, relative to the first marker that has outputs here.
    let markers = memory.take::<u32>(COPY_TILE);
    // For each marker, what to add to the index of an output to get its position in the level.
    let moves = memory.take::<u32>(COPY_TILE + 1);
    let warp_maxima = memory.take::<u32>((THREADS / LANES) as usize);

    let own = thread::thread_idx_x();
    let intervals = offsets.len() as u64 - 1;
    let length = offsets.get(intervals as usize) + intervals;
    let begin = thread::block_idx_x() as u64 * COPY_TILE as u64;
    if begin >= length || length - intervals > out_keys.len() as u64 {
        return;
    }
    let end = if length - begin < COPY_TILE as u64 { length } else { begin + COPY_TILE as u64 };
    // The number of markers before the tile, and before its end. The first `i` markers and the elements between them
    // end at position `i + offsets[i - 1]`.
    let position = |at: u64| if at == 0 { 0 } else { at + offsets.get(at as usize - 1) };
    let [first, last] = last_not_after(intervals + 1, [begin, end], position);
    // The rest of the tile is outputs.
    let start = begin - first;
    let count = (end - last - start) as u32;

    for i in 0..ITEMS {
        markers.set((own + i as u32 * THREADS) as usize, 0);
    }
    thread::sync_threads();
    // Index 0 is the marker before the tile, whose elements may continue into it.
    let mut index = own;
    while index as u64 <= last - first {
        let marker = first + index as u64;
        if marker > 0 {
            let offset = offsets.get(marker as usize - 1);
            moves.set(index as usize, windows.get(2 * (marker as usize - 1)).wrapping_sub(offset as u32));
            // Of the markers with the same offset, all but the last have empty intervals.
            if index > 0 && offset < offsets.get(marker as usize) && offset - start < count as u64 {
                markers.set((offset - start) as usize, index);
            }
        }
        index += THREADS;
    }
    thread::sync_threads();
    let mut latest = [0; ITEMS];
    let mut running = 0;
    for i in 0..ITEMS {
        let marker = markers.get(own as usize * ITEMS + i);
        running = if marker > running { marker } else { running };
        latest[i] = running;
    }
    let before = scan::exclusive_scan::<u32, Max, THREADS>(running, Max, warp_maxima).before;
    for i in 0..ITEMS {
        markers.set(own as usize * ITEMS + i, if latest[i] > before { latest[i] } else { before });
    }
    thread::sync_threads();

    let has_values = size_of::<V>() > 0;
    let (out_keys, out_values) = (
        out_keys.slice(start as usize, count as usize),
        if has_values { out_values.slice(start as usize, count as usize) } else { out_values },
    );
    // All loads are in flight before the first one is waited for.
    let mut loaded = [(C::MIN, V::zeroed()); ITEMS];
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < count {
            let moved = moves.get(markers.get(at as usize) as usize);
            let source = moved.wrapping_add(start as u32).wrapping_add(at) as usize;
            loaded[i] = (keys.get(source), if has_values { values.get(source) } else { V::zeroed() });
        }
    }
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < count {
            out_keys.set(at as usize, sign.decode(loaded[i].0));
            if has_values {
                out_values.set(at as usize, loaded[i].1);
            }
        }
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: CopyWindows<C, V>;
}
