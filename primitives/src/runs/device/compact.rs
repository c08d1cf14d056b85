//! The kernel that keeps one item of each run.

use super::neighbours;
use super::run_outputs::{Lengths, Marks, RunOutputs, Tally, Values};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::block::lookback::LookBack;
use crate::block::scan;
use crate::equality::HoleEquality;
use crate::form::kernel;
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::monoid::Combine;
use crate::select::device::tile::{Places, Ranks, run_len, write_run};
use crate::shape::is_for_use;
use crate::view::{GlobalMut, SharedMemory, shared_bytes};

/// Returns the items per access: accesses of 16 bytes, but not more than 4 items.
#[must_use]
pub const fn vector<K>() -> usize {
    match size_of::<K>() {
        1 | 2 | 4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Returns the rows of a warp: with [`vector`], a thread has 128 bytes of items of 4, 8 and 16 bytes. Shared memory is short
/// for items of 32 bytes.
#[must_use]
pub const fn rows<K>() -> usize {
    if size_of::<K>() > 16 { 5 } else { 8 }
}

/// Returns the blocks that must fit on a multiprocessor. Without a bound, the assembler spills some registers rather than use
/// more, or takes so many that few blocks load at once.
#[must_use]
pub const fn blocks<K, X: RunOutputs>() -> u32 {
    match size_of::<K>() {
        ..=4 if !X::POSITIONS => 4,
        ..=8 => 3,
        _ => 2,
    }
}

/// Returns the number of positions that are kept in shared memory.
const fn positions<X: RunOutputs>(items: usize) -> usize {
    if X::POSITIONS { items } else { 0 }
}

/// Returns the shared memory of a block: the items, the positions of those that are kept, one tally per warp, the tally of
/// the tiles before, and the ticket.
#[must_use]
pub const fn shared<K, X: RunOutputs>(threads: u32, vec: usize, rows: usize) -> usize {
    let items = threads as usize * vec * rows;
    shared_bytes::<K>(items)
        + shared_bytes::<u16>(positions::<X>(items))
        + shared_bytes::<<X::Tally as Tally>::Short>((threads / LANES) as usize)
        + shared_bytes::<X::Tally>(1)
        + LookBack::BYTES
}

/// Keeps the first item of each run of equal ones, or the last one, in tiles of `THREADS * VEC * ROWS` items, in one pass.
///
/// It is a selection whose test compares neighbours. A warp loads its rows, flags the items that differ from their
/// neighbour, stores the items in shared memory and counts. One tally per warp goes through shared memory, and thread 0
/// announces that of the tile. Then each warp compacts its run in place, the first warp looks back, and each warp writes its
/// run. What is written in addition needs the positions of the kept items at most, 16 bits each. They are compacted like the
/// items.
///
/// A run may begin in one tile and end in another. Its length is written by the warp that finds the next run. So the tally
/// of a tile tells how many items its last run has so far, in addition to the number of runs.
///
/// Cost: every item is read once, every kept item is written once; a shuffle per row for the neighbours, 10 for the ranks;
/// the look-back. 2^26 items of 4 bytes in runs of 8 move 288 MiB: 74 µs at 4.1 TB/s; with lengths of 4 bytes 320 MiB, 82 µs.
///
/// # Safety
/// The launch has one block per tile. The output has room for all items; `count` has one element. `scratch` comes from the
/// stream's look-back words, for one tally per tile. The buffers of `beside` satisfy the requirements of its type; with
/// lengths, the first items are kept. While the kernel runs, nothing writes the inputs, and nothing else uses the other
/// buffers; no output overlaps another buffer.
#[kernel(
    listed, listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<K, X>(THREADS, VEC, ROWS),
    min_blocks = blocks::<K, X>(),
    native = crate::runs::native::compact_runs
)]
pub unsafe fn compact_runs<
    K: RegisterRepr,
    I: Input<K>,
    X: RunOutputs,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    input: I,
    equality: HoleEquality,
    last: u32,
    output: GlobalMut<K>,
    beside: X,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let (warps, run_len) = ((THREADS / LANES) as usize, run_len(VEC, ROWS));
    let items = memory.take::<K>(warps * run_len);
    let positions = memory.take::<u16>(positions::<X>(warps * run_len));
    let warp_tallies = memory.take::<<X::Tally as Tally>::Short>(warps);
    let place = memory.take::<X::Tally>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let (len, first) = (input.count(), look_back.tile() * warps * run_len);
    if first >= len {
        // The host did not know the length. No tile waits for those after the last item.
        if first == 0 && thread::thread_idx_x() == 0 {
            count.set(0, 0);
        }
        return;
    }

    let start = first + warp_id() as usize * run_len;
    let stage = items.slice(warp_id() as usize * run_len, run_len);
    let rows = neighbours::load::<K, I, VEC, ROWS>(input, len, start, equality, last != 0, stage);
    let flags = rows.flags;
    // Items of several words wait in registers: on their way through shared memory, the compiler would keep them in local
    // memory.
    let is_wide = size_of::<K>() > 8;
    if !is_wide {
        rows.park(stage);
    }
    let ranks = Ranks::of::<VEC, ROWS>(flags);
    let kept = ranks.total::<ROWS>();
    let (join, join_warps) = X::Tally::join();
    let tally = X::Tally::of::<VEC>(flags, kept, len.saturating_sub(start).min(run_len));
    let block = scan::scan_warps::<_, _, THREADS>(tally, join_warps, warp_tallies);
    let total = X::Tally::long(block.total);
    look_back.announce(total);
    beside.flag::<VEC, ROWS>(start, len, flags);
    let places = Places::<VEC, ROWS, false> { flags, ranks, before: 0, total: 0 };
    let positions = if X::POSITIONS { positions.slice(warp_id() as usize * run_len, run_len) } else { positions };
    if is_wide {
        const { assert!(!X::POSITIONS || size_of::<K>() <= 8, "positions are those of short items") };
        sync_warp(FULL);
        places.scatter(rows.items, stage);
    } else if X::POSITIONS {
        places.compact_and(stage, |position, place| positions.set(place, position as u16));
    } else {
        places.compact(stage);
    }
    look_back.look_back(total, join, |before| {
        let all = join.combine(before, total);
        if lane_id() == 0 {
            place.set(0, before);
            if first + warps * run_len >= len {
                count.set(0, all.kept());
                beside.close(all);
            }
        }
    });
    thread::sync_threads();

    let before = join.combine(place.get(0), X::Tally::long(block.before));
    write_run(stage, output.slice(before.kept() as usize, kept as usize), lane_id(), LANES);
    beside.write(start, before, kept, positions);
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family compact_runs(K, VEC, ROWS) {
        for K in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]], VEC = vector::<K>(), ROWS = rows::<K>(), X in [(), Marks]: CompactRuns<K, SourceArg, X, 256, VEC, ROWS>;
    }
    family compact_lengths(K, C, VEC, ROWS) {
        for K in [u32, u64], C in [u32, u64], VEC = vector::<K>(), ROWS = 8:
            CompactRuns<K, SourceArg, Lengths<C>, 256, VEC, ROWS>;
    }
    family compact_pairs(K, V, VEC, ROWS) {
        for K in [u32, u64], V in [u32, u64], VEC = vector::<K>(), ROWS = 8:
            CompactRuns<K, SourceArg, Values<V>, 256, VEC, ROWS>;
    }
}
