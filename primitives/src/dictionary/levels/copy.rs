//! The kernel that copies what intervals have, from a level in which everything is live.
//!
//! # Algorithm
//! An interval and its elements, one after the other, make a sequence of *markers* and elements, which is cut into equal tiles,
//! one per block: however many intervals are empty, and however long others are, every block has the same work. The block
//! notes for each marker in its tile where its interval's elements begin, and a maximum over what comes before tells every
//! output its interval.
//!
//! # Cost
//! Reads and writes every element once; 16 bytes are read per interval.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::cut::last_not_after;
use crate::arch::thread;
use crate::arch::warp::LANES;
use crate::block::scan;
use crate::dictionary::KeyCode;
use crate::kernel::kernel;
use crate::scan::Max;
use crate::sort::Sign;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Threads of a block.
const THREADS: u32 = 256;

/// Outputs and markers per thread: an odd number, for the banks.
const ITEMS: usize = 15;

/// Outputs and markers of a tile.
pub const COPY_TILE: usize = THREADS as usize * ITEMS;

/// Shared memory of a block.
const fn shared() -> usize {
    shared_bytes::<u32>(COPY_TILE)
        + shared_bytes::<u32>(COPY_TILE + 1)
        + shared_bytes::<u32>((THREADS / LANES) as usize)
}

/// Copies `windows`, two words each, a beginning and a length, of a level's keys and values one after the other: those of
/// window `i` go to `offsets[i]` and on. One more offset says where the last one ends. Keys are decoded by `sign`.
///
/// # Safety
/// The launch has one block per 3840 (`COPY_TILE`) outputs and windows, and no more. The windows lie in the level,
/// which has fewer than 2^32 keys and, unless they have no size, as many values. The offsets are the exclusive sum of
/// the windows' lengths. The outputs have room for all elements of the windows. Nobody writes the inputs, and nobody
/// else uses the outputs, while the kernel runs.
#[kernel(threads = THREADS, shared = shared())]
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
    // For each output the last marker before it, counted from the first one that has outputs here.
    let markers = memory.take::<u32>(COPY_TILE);
    // For each marker what to add to an output's index for the place in the level.
    let moves = memory.take::<u32>(COPY_TILE + 1);
    let warp_maxima = memory.take::<u32>((THREADS / LANES) as usize);

    let own = thread::thread_idx_x();
    let intervals = offsets.len() as u64 - 1;
    let length = offsets.get(intervals as usize) + intervals;
    let begin = thread::block_idx_x() as u64 * COPY_TILE as u64;
    let end = if length - begin < COPY_TILE as u64 { length } else { begin + COPY_TILE as u64 };
    // Markers before the tile, and before its end: the number of markers up to that of interval `i - 1` and its place add up
    // to `i + offsets[i - 1]`.
    let place = |at: u64| if at == 0 { 0 } else { at + offsets.get(at as usize - 1) };
    let [first, last] = last_not_after(intervals + 1, [begin, end], place);
    // The rest are outputs.
    let start = begin - first;
    let count = (end - last - start) as u32;

    for i in 0..ITEMS {
        markers.set((own + i as u32 * THREADS) as usize, 0);
    }
    thread::sync_threads();
    // The first one is that which began before the tile and may go on in it.
    let mut index = own;
    while index as u64 <= last - first {
        let marker = first + index as u64;
        if marker > 0 {
            let offset = offsets.get(marker as usize - 1);
            moves.set(index as usize, windows.get(2 * (marker as usize - 1)).wrapping_sub(offset as u32));
            // Of those at one place, all but the last are empty.
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
    // All loads are under way before the first is waited for.
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

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    levels_copy_u32: CopyWindows<u32, ()>;
    levels_copy_u32_u32: CopyWindows<u32, u32>;
    levels_copy_u32_u64: CopyWindows<u32, u64>;
    levels_copy_u64: CopyWindows<u64, ()>;
    levels_copy_u64_u32: CopyWindows<u64, u32>;
    levels_copy_u64_u64: CopyWindows<u64, u64>;
}
