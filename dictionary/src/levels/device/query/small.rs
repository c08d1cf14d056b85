//! Lookups and counts with few queries: a warp answers a query, and each of its lanes searches one level.
//!
//! A thread that answers a query on its own goes from level to level, and waits for memory at every step: some
//! microseconds for eight levels. Many threads hide that from each other; few cannot. The lanes of a warp search all levels
//! at once, so a query waits as long as for one level.

use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::table::THREADS;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::{FULL, LANES, ballot, lane_id, shuffle_idx, warp_id};
use gpu_primitives::block::warp::{broadcast, inclusive_scan};
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::scan::Sum;
use gpu_primitives::view::{Global, GlobalMut};

/// Queries per block: one per warp.
pub const FEW_QUERIES: usize = (THREADS / LANES) as usize;

/// The most overlapping elements of an interval that is counted here: one per lane.
const FEW_ELEMENTS: u32 = LANES;

/// Returns the number of blocks per multiprocessor; 0 leaves it to `ptxas`, which would spill registers for wide keys.
const fn min_blocks<C>() -> u32 {
    if size_of::<C>() > 16 { 2 } else { 0 }
}

/// Returns the query of this warp.
#[inline(always)]
unsafe fn query() -> usize {
    thread::block_idx_x() as usize * FEW_QUERIES + warp_id() as usize
}

/// Looks up keys: see [`LookupKeys`](super::lookup::LookupKeys). The outcome is the same.
///
/// Cost: four accesses one after the other, for the entry of a level, the directory, the keys, and the value. All levels
/// are searched, also those that are older than the key.
///
/// # Safety
/// The launch has a warp per key. `found` is as long as `keys`. `values` is as long as `keys`, or empty. While the kernel
/// runs, nobody changes the levels or writes the keys, and nobody else uses the outputs.
#[kernel(listed, threads = THREADS, min_blocks = min_blocks::<C>(), native = crate::levels::native::lookup_few)]
pub unsafe fn lookup_few<C: KeyCode, V: Pod>(
    levels: Levels<C, V>,
    keys: Global<C>,
    values: GlobalMut<V>,
    found: GlobalMut<u8>,
) {
    let at = query();
    if at >= keys.len() {
        return;
    }
    let code = levels.sign().encode(keys.get(at));
    let slot = lane_id();
    let mut is_here = false;
    let mut value = None;
    if levels.occupied() >> slot & 1 == 1 {
        let level = levels.level(slot);
        if let Some(position) = level.newest(code) {
            is_here = true;
            if !level.is_dead(position) {
                value = Some(level.value(position));
            }
        }
    }
    // Lower slots are newer levels.
    let holders = ballot(FULL, is_here);
    let newest = if holders == 0 { 0 } else { holders.trailing_zeros() };
    if slot == newest {
        found.set(at, u8::from(value.is_some()));
        if size_of::<V>() > 0 && !values.is_empty() {
            values.set(at, value.unwrap_or(V::zeroed()));
        }
    }
}

/// Counts the live keys in each interval from `low` to `high`, both inclusive, that has at most 32 (`FEW_ELEMENTS`)
/// overlapping elements. `left` receives 0 for these. For the others it receives the number of overlapping elements, and
/// `counts` a zero.
///
/// Each lane finds the window of one level. The elements of all windows are numbered, the newest first, and each lane loads
/// one of them. An element is live if no element with a smaller number has its key, and if it is not a tombstone.
/// The warp compares all pairs of elements: the keys of eight elements, the usual case of a short interval, take eight
/// steps.
///
/// Cost: about six accesses one after the other, and one step per overlapping element.
///
/// # Safety
/// The launch has a warp per interval. The other arrays are as long as `low`. While the kernel runs, nobody changes the
/// levels or writes the intervals, and nobody else uses the outputs.
#[kernel(listed, threads = THREADS, min_blocks = min_blocks::<C>(), native = crate::levels::native::count_few)]
pub unsafe fn count_few<C: KeyCode>(
    levels: Levels<C, ()>,
    low: Global<C>,
    high: Global<C>,
    counts: GlobalMut<u64>,
    left: GlobalMut<u64>,
) {
    let at = query();
    if at >= low.len() {
        return;
    }
    let (low, high) = (levels.sign().encode(low.get(at)), levels.sign().encode(high.get(at)));
    let lane = lane_id();
    let (mut start, mut len) = (0, 0);
    if levels.occupied() >> lane & 1 == 1 && low <= high {
        let level = levels.level(lane);
        start = level.count_before(low, false);
        len = level.count_before(high, true) - start;
    }
    let up_to_here = inclusive_scan(len as u64, Sum);
    let total = broadcast(up_to_here, LANES - 1);
    if total > FEW_ELEMENTS as u64 {
        if lane == 0 {
            counts.set(at, 0);
            left.set(at, total);
        }
        return;
    }
    let (ends, total) = (up_to_here as u32, total as u32);

    // The first lane whose window ends after this lane's number: how many end before it.
    let mut slot = 0;
    let mut step = LANES / 2;
    while step > 0 {
        if shuffle_idx(FULL, ends, slot + step - 1) <= lane {
            slot += step;
        }
        step /= 2;
    }
    let (end, start) = (shuffle_idx(FULL, ends, slot), shuffle_idx(FULL, start, slot));
    let (mut own, mut is_live) = (C::MIN, false);
    if lane < total {
        let level = levels.level(slot);
        // The last element of a window is the newest one of its key.
        let position = start + (end - 1 - lane);
        own = level.keys().get(position as usize);
        is_live = !level.is_dead(position);
    }
    let mut newer = 0;
    while newer < total {
        let key = broadcast(own, newer);
        is_live &= !(newer < lane && key == own);
        newer += 1;
    }
    let count = ballot(FULL, is_live).count_ones();
    if lane == 0 {
        counts.set(at, count as u64);
        left.set(at, 0);
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: LookupFew<C, V>;
    for C in [u32, u64, u128, U256]: CountFew<C>;
}
