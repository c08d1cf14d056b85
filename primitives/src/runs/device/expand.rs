//! The kernels that repeat elements.

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id};
use crate::block::exchange::WarpExchange;
use crate::block::{scan, warp};
use crate::form::kernel;
use crate::input::Count;
use crate::monoid::Max;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block.
pub(crate) const THREADS: u32 = 256;
/// The elements per access to shared memory, and the accesses per thread. They are odd, which the exchange requires.
const VEC: usize = 4;
const ROWS: usize = 5;
/// The runs and outputs of a tile, together.
pub(crate) const TILE: usize = THREADS as usize * VEC * ROWS;

/// The shared memory of a block: a run for each output, and one for each warp.
const SHARED: usize = shared_bytes::<u32>(TILE) + shared_bytes::<u32>((THREADS / LANES) as usize);

/// Returns how many outputs there are: what the runs yield, as far as there is room.
///
/// # Safety
/// There are `runs` ends.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn outputs(ends: Global<u64>, runs: usize, room: usize) -> usize {
    if runs == 0 { 0 } else { ends.get(runs - 1).min(room as u64) as usize }
}

/// Divides the work into tiles, and writes the number of outputs without the limit of the room.
///
/// The work is to emit each output, and to leave each run after its last output, in the order in which one thread would do
/// it. Tile `t` begins with step `t * TILE`. `splits[t]` is the number of runs that were left before. The number of outputs
/// before follows from that. So no tile has more than its share of runs or of outputs, whatever the lengths: there may be
/// many empty runs, and one may be very long.
///
/// Cost: a binary search per tile.
///
/// # Safety
/// The launch has at least one thread per element of `splits`. The first elements of `ends`, as many as there are runs, do
/// not decrease. `total` has one element. While the kernel runs, nothing writes `ends`, and nothing else uses the outputs.
#[kernel(listed, threads = THREADS, native = crate::runs::native::split_runs)]
pub unsafe fn split_runs(ends: Global<u64>, runs: Count, room: u64, splits: GlobalMut<u64>, total: GlobalMut<u64>) {
    let tile = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let runs = runs.get();
    let outputs = outputs(ends, runs, room as usize);
    if tile == 0 {
        total.set(0, if runs == 0 { 0 } else { ends.get(runs - 1) });
    }
    if tile < splits.len() {
        let step = tile * TILE;
        // Run `r` is left by step `r + end of r`.
        let (mut low, mut high) = (0, runs);
        while low < high {
            let middle = low + (high - low) / 2;
            if middle + (ends.get(middle).min(outputs as u64) as usize) < step {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        splits.set(tile, low as u64);
    }
}

/// Writes each element as often as its run is long, as far as there is room. An element is some words.
///
/// The tile's runs mark the outputs where they begin, in shared memory, and a running maximum tells each output its run. Then
/// neighbouring threads write neighbouring words. They read the same element or neighbouring ones.
///
/// Cost: each output is written once, each element and each end is read once. 2^26 elements of 4 bytes in runs of 8 move
/// 352 MiB: 90 µs at 4.1 TB/s. Beyond that, four accesses to shared memory per output.
///
/// # Safety
/// The launch has one block per tile; `splits` and `ends` are those of [`SplitRuns`]. `elements` has `words` words for each
/// run, at least one, and `output` has `words` words for each of `room` outputs. While the kernel runs, nothing writes the
/// inputs, and nothing else uses the output.
#[kernel(listed, threads = THREADS, shared = SHARED, native = crate::runs::native::expand_runs)]
pub unsafe fn expand_runs<W: Pod>(
    elements: Global<W>,
    words: u32,
    ends: Global<u64>,
    runs: Count,
    room: u64,
    splits: Global<u64>,
    output: GlobalMut<W>,
) {
    let mut memory = SharedMemory::new();
    let memory_of_runs = memory.take::<u32>(TILE);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let tile = thread::block_idx_x() as usize;
    let runs = runs.get();
    let steps = outputs(ends, runs, room as usize) + runs;
    if tile * TILE >= steps {
        return;
    }
    let (first_run, last_run) = (splits.get(tile) as usize, splits.get(tile + 1) as usize);
    let first = tile * TILE - first_run;
    let end = steps.min((tile + 1) * TILE) - last_run;

    let exchange = WarpExchange::<u32, VEC, ROWS>::new(memory_of_runs);
    for row in 0..ROWS {
        exchange.set_blocked_row(row, [0; VEC]);
    }
    thread::sync_threads();
    let mut run = first_run + thread::thread_idx_x() as usize;
    while run <= last_run && run < runs {
        let start = if run == 0 { 0 } else { ends.get(run - 1) };
        let (from, to) = (start.max(first as u64), ends.get(run).min(end as u64));
        // Empty runs have no output, and the others begin at different ones.
        if from < to {
            memory_of_runs.set(from as usize - first, (run - first_run) as u32);
        }
        run += THREADS as usize;
    }
    thread::sync_threads();

    let mut own = 0;
    for row in 0..ROWS {
        let items = exchange.blocked_row(row);
        for i in 0..VEC {
            own = own.max(items[i]);
        }
    }
    let up_to = warp::inclusive_scan(own, Max);
    let below = warp::shuffle_up(up_to, 1);
    let block = scan::scan_warps::<u32, Max, THREADS>(up_to, Max, warp_totals);
    let mut running = if lane_id() == 0 { block.before } else { block.before.max(below) };
    for row in 0..ROWS {
        let mut items = exchange.blocked_row(row);
        for i in 0..VEC {
            running = running.max(items[i]);
            items[i] = running;
        }
        exchange.set_blocked_row(row, items);
    }
    thread::sync_threads();

    let len = (end - first) as u32 * words;
    let elements = elements.slice(first_run * words as usize, elements.len() - first_run * words as usize);
    let output = output.slice(first * words as usize, len as usize);
    let mut at = thread::thread_idx_x();
    while at < len {
        let mut group = [W::zeroed(); VEC];
        for i in 0..VEC {
            let word = at + i as u32 * THREADS;
            if word < len {
                let (place, part) = if words == 1 { (word, 0) } else { (word / words, word % words) };
                group[i] = elements.get(memory_of_runs.get(place as usize) as usize * words as usize + part as usize);
            }
        }
        for i in 0..VEC {
            let word = at + i as u32 * THREADS;
            if word < len {
                output.set(word as usize, group[i]);
            }
        }
        at += VEC as u32 * THREADS;
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    SplitRuns;
    for W in [u8, u16, u32, u64]: ExpandRuns<W>;
}
