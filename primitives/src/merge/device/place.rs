//! The kernel that merges few items in one launch.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::runs::{RunLimits, Runs, run_at};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, all, lane_id, sync_warp, warp_id};
use crate::block::warp;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::monoid::Sum;
use crate::transfer::Line;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block.
pub const PLACE_THREADS: u32 = 256;
/// The maximum number of runs: a warp has two lanes for each.
pub const MAX_PLACED: usize = 16;
/// The number of items of a narrow window.
const NARROW: u32 = 63;

/// Returns the shared memory of a block: the address of the keys and the length of each run; the number of the block's
/// own run, the block's start in it and the address of its values; and each warp's windows in all runs.
const fn place_shared() -> usize {
    shared_bytes::<u64>(MAX_PLACED)
        + shared_bytes::<u32>(MAX_PLACED)
        + shared_bytes::<u64>(3)
        + 2 * shared_bytes::<u32>((PLACE_THREADS / LANES) as usize * MAX_PLACED)
}

/// Returns how many of `count` sorted items come before something. Each step probes seven items, since independent
/// loads take no longer than one.
///
/// # Safety
/// `count` is below 2^30; there are that many items, and nothing writes them during the call.
#[inline(always)]
unsafe fn count_before<K: Pod>(items: Global<K>, count: u32, comes_before: impl Fn(K) -> bool) -> u32 {
    let bits = 32 - count.leading_zeros();
    let last = count.saturating_sub(1);
    let mut low = 0;
    // Eight times this width exceeds the count.
    let mut width = if count == 0 { 0 } else { 1 << (3 * ((bits - 1) / 3)) };
    while width > 0 {
        let mut pivots = [K::zeroed(); 7];
        for t in 0..7 {
            // All seven are loaded; probes beyond the end load the last item. So no load waits for a decision about
            // another.
            let at = low + (t as u32 + 1) * width - 1;
            pivots[t] = items.get(if at < last { at } else { last } as usize);
        }
        let mut steps = 0;
        for t in 0..7 {
            let is_there = low + (t as u32 + 1) * width <= count;
            steps += (is_there & comes_before(pivots[t])) as u32;
        }
        low += steps * width;
        width /= 8;
    }
    low
}

/// Searches several windows of sorted items at once. Moves each `low` up to the first item of its window that does not
/// come before something. `width` is a power of two, greater than half the longest window.
///
/// # Safety
/// Each of `items` has at least `high` items, and at least one. Nothing writes them during the call.
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

/// Takes one step of [`bisect`], in windows that all have `WIDTH` items.
///
/// # Safety
/// Each of `items` has `WIDTH` items from its `low` on. Nothing writes them during the call.
#[inline(always)]
unsafe fn step_up<K: Pod, const N: usize, const WIDTH: usize>(
    items: [Global<K>; N],
    low: &mut [u32; N],
    comes_before: impl Fn(usize, K) -> bool,
) {
    let mut pivots = [K::zeroed(); N];
    for j in 0..N {
        pivots[j] = items[j].get(low[j] as usize + (WIDTH - 1));
    }
    for j in 0..N {
        low[j] += if comes_before(j, pivots[j]) { WIDTH as u32 } else { 0 };
    }
}

/// The windows in which the items of a warp are searched.
#[derive(Clone, Copy)]
struct Windows<K> {
    /// The number of runs.
    runs: u32,
    /// The addresses of their items.
    addresses: Shared<u64>,
    /// Their lengths.
    lens: Shared<u32>,
    /// The starts of their windows.
    lows: Shared<u32>,
    /// The ends of their windows.
    highs: Shared<u32>,
    /// Whether all windows have [`NARROW`] existing items, whatever their ends are.
    are_narrow: bool,
    /// The number of the warp's own run, which is not searched.
    own: u32,
    /// The items of the warp's own run.
    own_run: Global<K>,
}

impl<K: Pod> Windows<K> {
    /// Returns a run, of which `count` items are accessed; for zero items, returns some valid items.
    ///
    /// # Safety
    /// If `count` is not 0, run `index` exists and has that many items; its address was written before the last
    /// barrier.
    #[inline(always)]
    unsafe fn run(self, index: u32, count: u32) -> Global<K> {
        if count == 0 { self.own_run } else { run_at::<K>(self.addresses.get(index as usize), count) }
    }

    /// Returns how many items of other runs come before an item of the warp. `N` runs are searched at once: their loads
    /// do not depend on each other.
    ///
    /// # Safety
    /// The addresses, lengths and windows of [`MAX_PLACED`] runs were written, and the warp has synchronized since
    /// then. The windows lie within their runs; those of the own run and of missing runs begin and end at 0. The own
    /// run is not empty. If `are_narrow` is set, every run has [`NARROW`] items from the start of its window, and so
    /// has the own run.
    #[inline(always)]
    unsafe fn count_before<const N: usize>(self, comes_before: impl Fn(u32, K) -> bool) -> u32 {
        const { assert!(MAX_PLACED.is_multiple_of(N)) };
        let mut count = 0;
        let mut group = 0;
        while group < self.runs {
            let mut items = [self.own_run; N];
            let mut low = [0; N];
            let comes_before = |j: usize, other| comes_before(group + j as u32, other);
            for j in 0..N {
                low[j] = self.lows.get(group as usize + j);
            }
            if self.are_narrow {
                for j in 0..N {
                    let run = group + j as u32;
                    if run < self.runs {
                        items[j] = self.run(run, self.lens.get(run as usize));
                    }
                }
                step_up::<K, N, 32>(items, &mut low, comes_before);
                step_up::<K, N, 16>(items, &mut low, comes_before);
                step_up::<K, N, 8>(items, &mut low, comes_before);
                step_up::<K, N, 4>(items, &mut low, comes_before);
                step_up::<K, N, 2>(items, &mut low, comes_before);
                step_up::<K, N, 1>(items, &mut low, comes_before);
            } else {
                let mut high = [0; N];
                let mut widths = 0;
                for j in 0..N {
                    let run = group + j as u32;
                    high[j] = self.highs.get(run as usize);
                    items[j] = self.run(run, high[j]);
                    widths |= high[j] - low[j];
                }
                let width = if widths == 0 { 0 } else { 1 << (31 - widths.leading_zeros()) };
                bisect(items, &mut low, high, width, comes_before);
            }
            for j in 0..N {
                // The search in the own run and in missing runs does not count.
                let run = group + j as u32;
                count += if run < self.runs && run != self.own { low[j] } else { 0 };
            }
            group += N as u32;
        }
        count
    }
}

/// A value of 0, 4, 8 or 16 bytes. All threads have values of the same size, so that a branch costs less than a kernel
/// for each size.
struct Value {
    short: u32,
    long: u64,
    line: Line,
}

impl Value {
    /// Loads value `index` of a run.
    ///
    /// # Safety
    /// `address` is that of `len` values of so many bytes, more than `index`. Nothing writes them during the call.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(address: u64, bytes: u32, index: usize, len: u32) -> Self {
        let mut value = Self { short: 0, long: 0, line: Line([0; 4]) };
        match bytes {
            4 => value.short = run_at::<u32>(address, len).get(index),
            8 => value.long = run_at::<u64>(address, len).get(index),
            16 => value.line = run_at::<Line>(address, len).get(index),
            _ => {}
        }
        value
    }

    /// Stores the value at a place.
    ///
    /// # Safety
    /// `out` has the bytes of a value at this place, aligned to its size. Nothing else uses them during the call.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(self, out: GlobalMut<u8>, bytes: u32, place: usize) {
        let address = out.as_const().as_ptr().cast_mut();
        let len = if bytes == 0 { 0 } else { out.len() / bytes as usize };
        match bytes {
            4 => GlobalMut::from_raw(address.cast(), len).set(place, self.short),
            8 => GlobalMut::from_raw(address.cast(), len).set(place, self.long),
            16 => GlobalMut::from_raw(address.cast(), len).set(place, self.line),
            _ => {}
        }
    }
}

/// Merges sorted runs by computing the position of each item.
///
/// Each thread has one item. Its position is its index in its own run, plus, for each other run, the number of items
/// that come before it: equal items of earlier runs come before it, those of later runs do not. So no two items have
/// the same position if the comparator is a strict weak order. A warp has 32 adjacent items of a run. Its lanes, two for each run, first find what comes before the first
/// and before the last of these items. Then each thread searches between the two, which is about 32 items if the runs
/// are alike.
///
/// The cost is a short search per item and run, where merging would take a logarithm of the number of runs. But it is a
/// single launch, without a preceding search for boundaries. That pays off while there are few items and runs. In that
/// case, latency dominates, so each search step probes several items. There are also few blocks, so registers are spent
/// on loads in flight rather than on more warps.
///
/// # Safety
/// The launch has one block per 256 items of each run, the last block of a run possibly with fewer. Other blocks, after
/// these, do nothing. `1 <= runs <= 16`. The runs have fewer than 2^31 items together and fewer than 2^30 each and, unless values
/// are zero-sized, as many values as keys. The output has room for all runs and does not overlap them. While the
/// kernel runs, nothing writes the runs, and nothing else uses the output.
///
/// `value_bytes` is 0, 4, 8 or 16, and values are aligned to it.
///
/// The runs are sorted by `compare`, which is a strict weak order. Otherwise two threads may write the same position,
/// and some positions may be left unwritten, but nothing outside of the output is written.
#[kernel(listed, threads = PLACE_THREADS, shared = place_shared(), min_blocks = 1, native = crate::merge::native::place_runs)]
pub unsafe fn place_runs<K: Pod, C: KeyOrder<K>>(
    keys: Runs<K>,
    limits: RunLimits,
    values: Runs<u8>,
    value_bytes: u32,
    runs: u32,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<u8>,
    compare: C,
) {
    const { assert!(2 * MAX_PLACED == LANES as usize) };
    let mut memory = SharedMemory::new();
    let addresses = memory.take::<u64>(MAX_PLACED);
    let lens = memory.take::<u32>(MAX_PLACED);
    let facts = memory.take::<u64>(3);
    let (places, first) = ((PLACE_THREADS / LANES) as usize * MAX_PLACED, warp_id() as usize * MAX_PLACED);
    let lows = memory.take::<u32>(places).slice(first, MAX_PLACED);
    let highs = memory.take::<u32>(places).slice(first, MAX_PLACED);

    let lane = lane_id();
    if warp_id() == 0 {
        let run = limits.first_in::<K, MAX_PLACED>(keys.get_of_first::<MAX_PLACED>(lane), lane);
        let len = if lane < runs { run.len() as u32 } else { 0 };
        let blocks = len.div_ceil(PLACE_THREADS);
        let end = warp::inclusive_scan(blocks, Sum);
        let block = thread::block_idx_x();
        if lane == LANES - 1 && block >= end {
            // The device has fewer items than the launch has room for. No run is that long.
            facts.set(0, 0);
            facts.set(1, 1 << 30);
        }
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
    let windows = Windows { runs, addresses, lens, lows, highs, are_narrow: false, own, own_run };
    let comes_before =
        |key: K, run: u32, other: K| compare.less(other, key) | ((run < own) & !compare.less(key, other));

    let end = if len - first < LANES { len } else { first + LANES };
    let index = first + lane;
    let at = if index < end { index } else { end - 1 } as usize;
    let key = own_run.get(at);
    let value = Value::load(facts.get(2), value_bytes, at, len);

    // The windows of the warp's items, empty in the own run and in missing runs. The lower lanes find the starts, the
    // upper lanes the ends.
    let (searched, is_lower) = (lane % MAX_PLACED as u32, lane < MAX_PLACED as u32);
    let edge = own_run.get(if is_lower { first } else { end - 1 } as usize);
    let count = if searched == own { 0 } else { lens.get(searched as usize) };
    let low = count_before(windows.run(searched, count), count, |other| comes_before(edge, searched, other));
    let high = warp::shuffle_down(low, MAX_PLACED as u32);
    // Narrow windows are made equally wide, if the runs are long enough: what comes before a window comes before the
    // warp's items, and what comes after it does not.
    let is_narrow = high.wrapping_sub(low) <= NARROW && lens.get(searched as usize) >= NARROW;
    let are_narrow = all(FULL, !is_lower || searched >= runs || is_narrow);
    if is_lower {
        let low =
            if are_narrow && searched < runs && searched != own && count - low < NARROW { count - NARROW } else { low };
        lows.set(lane as usize, low);
        highs.set(lane as usize, high);
    }
    sync_warp(FULL);

    let windows = Windows { are_narrow, ..windows };
    let comes_before = |run: u32, other: K| comes_before(key, run, other);
    let others =
        if runs <= 4 { windows.count_before::<4>(comes_before) } else { windows.count_before::<8>(comes_before) };
    let place = index + others;
    if index < end {
        out_keys.set(place as usize, key);
        value.store(out_values, value_bytes, place as usize);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family place_runs(K) {
        for K in [u32, u64]: PlaceRuns<K, HoleOrder>;
    }
}
