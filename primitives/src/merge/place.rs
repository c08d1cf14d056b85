//! The kernel that merges few items: in one launch.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::runs::{Runs, run_at};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::block::warp;
use crate::compare::{Compare, Less};
use crate::kernel::kernel;
use crate::scan::Sum;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// Threads of a block.
pub const PLACE_THREADS: u32 = 256;
/// The most runs.
pub const MAX_PLACED: usize = 16;
/// Runs that a thread searches at once: their loads do not depend on each other.
const AT_ONCE: usize = 8;

/// Shared memory of a block: of each run where its keys are and how many; of the own one its number, where the block begins in
/// it, and where its values are; and of each warp the windows in all runs.
const fn place_shared() -> usize {
    shared_bytes::<u64>(MAX_PLACED)
        + shared_bytes::<u32>(MAX_PLACED)
        + shared_bytes::<u64>(3)
        + 2 * shared_bytes::<u32>((PLACE_THREADS / LANES) as usize * MAX_PLACED)
}

/// Searches several windows of sorted items at once, for a key each: moves each `low` up to the first item of its window that
/// does not come before the key. `width` is a power of two, and above the half of the longest window. The items are there up to
/// `high`, and one at least.
#[inline(always)]
unsafe fn bisect<K: Pod, const N: usize>(
    items: [Global<K>; N],
    low: &mut [u32; N],
    high: [u32; N],
    mut width: u32,
    comes_before: impl Fn(usize, K) -> bool,
) {
    while width > 0 {
        let mut pivots = [K::zeroed(); N];
        for j in 0..N {
            // All are loaded, the last one if it is beyond the window, so that none waits for a decision about another.
            let last = high[j].saturating_sub(1);
            let at = low[j] + width - 1;
            pivots[j] = items[j].get(if at < last { at } else { last } as usize);
        }
        for j in 0..N {
            let goes_up = (low[j] + width <= high[j]) & comes_before(j, pivots[j]);
            low[j] += if goes_up { width } else { 0 };
        }
        width /= 2;
    }
}

/// The first step of a bisection of so many items.
#[inline(always)]
const fn first_width(items: u32) -> u32 {
    if items == 0 { 0 } else { 1 << (31 - items.leading_zeros()) }
}

/// Merges sorted runs by finding the place of each item.
///
/// A thread has one item. Its place is its index in its own run, and from each other run the number of items that come before
/// it: in earlier runs those that are equal come before it, in later ones they do not. So no two items have the same place, if
/// the comparator is a strict weak order: only our own ones are used here. A warp has 32 neighbours of a run: its lanes find, a
/// run each, what comes before the first of them and before the last; then each thread has to search between these, which is
/// about 32 items if the runs are alike.
///
/// The cost is a bisection of some items per item and run, where merging would take a logarithm of the runs; but it is a single
/// launch, without a search for boundaries before it. That is worth it while there are few items and runs. There are few blocks
/// then, so registers are spent on loads under way rather than on more warps.
///
/// `1 <= runs <= 16`; launch with a block per 256 items of each run, the last one perhaps with fewer. The output is as long as all
/// runs, which have less than 2^31 items, and other memory than they.
#[kernel(threads = PLACE_THREADS, shared = place_shared(), min_blocks = 1)]
pub unsafe fn place_runs<K: Pod, V: Pod, C: Compare<K>>(
    keys: Runs<K>,
    values: Runs<V>,
    runs: u32,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    compare: C,
) {
    const { assert!(MAX_PLACED <= LANES as usize && MAX_PLACED.is_multiple_of(AT_ONCE)) };
    let mut memory = SharedMemory::new();
    let addresses = memory.take::<u64>(MAX_PLACED);
    let lens = memory.take::<u32>(MAX_PLACED);
    let facts = memory.take::<u64>(3);
    let (windows, lanes) = ((PLACE_THREADS / LANES) as usize * MAX_PLACED, (warp_id() as usize) * MAX_PLACED);
    let lows = memory.take::<u32>(windows).slice(lanes, MAX_PLACED);
    let highs = memory.take::<u32>(windows).slice(lanes, MAX_PLACED);

    let lane = lane_id();
    if warp_id() == 0 {
        let run = keys.get_of_first::<MAX_PLACED>(lane);
        let len = if lane < runs { run.len() as u32 } else { 0 };
        let blocks = len.div_ceil(PLACE_THREADS);
        let end = warp::inclusive_scan(blocks, Sum);
        let block = thread::block_idx_x();
        if end - blocks <= block && block < end {
            facts.set(0, lane as u64);
            facts.set(1, ((block - (end - blocks)) * PLACE_THREADS) as u64);
            facts.set(2, values.get_of_first::<MAX_PLACED>(lane).as_ptr().expose_provenance() as u64);
        }
        if lane < MAX_PLACED as u32 {
            addresses.set(lane as usize, run.as_ptr().expose_provenance() as u64);
            lens.set(lane as usize, len);
        }
    }
    thread::sync_threads();
    let own = facts.get(0) as u32;
    let len = lens.get(own as usize);
    let first = facts.get(1) as u32 + warp_id() * LANES;
    if first >= len {
        return;
    }
    let own_run = run_at::<K>(addresses.get(own as usize), len);
    // The items of a run of which so many are looked at; of none, some that are there.
    let run = |index: u32, count: u32| {
        if count == 0 { own_run } else { run_at::<K>(addresses.get(index as usize), count) }
    };
    let comes_before =
        |key: K, run: u32, other: K| compare.less(other, key) | ((run < own) & !compare.less(key, other));

    let end = if len - first < LANES { len } else { first + LANES };
    let index = first + lane;
    let at = if index < end { index } else { end - 1 } as usize;
    let key = own_run.get(at);
    let value = if size_of::<V>() > 0 { run_at::<V>(facts.get(2), len).get(at) } else { V::zeroed() };
    let edges = [own_run.get(first as usize), own_run.get(end as usize - 1)];

    // The windows of the warp's items, none in the own run and in those that are not there.
    if lane < MAX_PLACED as u32 {
        let count = if lane == own { 0 } else { lens.get(lane as usize) };
        let mut found = [0; 2];
        let comes_before = |j: usize, other| comes_before(edges[j], lane, other);
        bisect([run(lane, count); 2], &mut found, [count; 2], first_width(count), comes_before);
        lows.set(lane as usize, found[0]);
        highs.set(lane as usize, found[1]);
    }
    sync_warp(FULL);

    let mut place = index;
    let mut group = 0;
    while group < runs {
        let mut items = [own_run; AT_ONCE];
        let mut low = [0; AT_ONCE];
        let mut high = [0; AT_ONCE];
        let mut widths = 0;
        for j in 0..AT_ONCE {
            low[j] = lows.get(group as usize + j);
            high[j] = highs.get(group as usize + j);
            items[j] = run(group + j as u32, high[j]);
            widths |= high[j] - low[j];
        }
        bisect(items, &mut low, high, first_width(widths), |j, other| comes_before(key, group + j as u32, other));
        for j in 0..AT_ONCE {
            place += low[j];
        }
        group += AT_ONCE as u32;
    }
    if index < end {
        out_keys.set(place as usize, key);
        if size_of::<V>() > 0 {
            out_values.set(place as usize, value);
        }
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    place_u32: PlaceRuns<u32, (), Less>;
    place_u32_u32: PlaceRuns<u32, u32, Less>;
    place_u32_u64: PlaceRuns<u32, u64, Less>;
    place_u64: PlaceRuns<u64, (), Less>;
    place_u64_u32: PlaceRuns<u64, u32, Less>;
    place_u64_u64: PlaceRuns<u64, u64, Less>;
}
