//! The kernels of the merge of many runs.

// Register arrays are indexed by the counters of unrolled loops: iterators over them would put them into memory.
#![allow(clippy::needless_range_loop)]

use super::kernel::{Boundary, PARTITION_THREADS, is_contradictory, write_verdict};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, any, ballot, lane_id, shuffle_xor, warp_id};
use crate::block::merge::{Chain, Pieces, path};
use crate::block::warp::{self, map_words};
use crate::compare::{Compare, IgnoreLowBit, Less};
use crate::kernel::{Buffer, Param, kernel};
use crate::scan::Sum;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The most runs that one pass merges: a lane each.
pub const MAX_RUNS: usize = LANES as usize;

/// The runs to merge, as a kernel's argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Runs<T> {
    views: [Global<T>; MAX_RUNS],
}

// SAFETY: `repr(C)` array of views.
unsafe impl<T: Pod> Param for Runs<T> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        for view in self.views {
            if !view.is_empty() {
                view.buffers(name, visit);
            }
        }
    }
}

impl<T: Pod> Runs<T> {
    /// The runs; those that are not there are empty.
    #[must_use]
    pub const fn new(views: [Global<T>; MAX_RUNS]) -> Self {
        Self { views }
    }

    /// Run `index`. A chain of selections: a run-time index would put the array into memory.
    #[inline(always)]
    fn get(self, index: u32) -> Global<T> {
        let mut view = self.views[0];
        for i in 1..MAX_RUNS {
            if index as usize == i {
                view = self.views[i];
            }
        }
        view
    }

    /// Writes the address and the length of run `index` to its place in two tables: one store per run, of which a thread
    /// makes one. Selections would take more registers than the rest of the kernel has.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write(self, index: u32, addresses: Shared<u64>, lens: Shared<u64>) {
        for i in 0..MAX_RUNS {
            if index as usize == i {
                addresses.set(i, self.views[i].as_ptr().expose_provenance() as u64);
                lens.set(i, self.views[i].len() as u64);
            }
        }
    }
}

/// The sum over a group of `1 << log_lanes` lanes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn group_sum(value: u64, log_lanes: u32) -> u64 {
    let mut sum = value;
    let mut step = 0;
    while step < log_lanes {
        sum = sum.wrapping_add(map_words(sum, |_, word| shuffle_xor(FULL, word, 1 << step)));
        step += 1;
    }
    sum
}

/// For each boundary between tiles of `tile` outputs and each run: how many of the outputs before it come from that run.
///
/// A group of `1 << log_lanes` lanes looks for one boundary, a lane per run. A lane knows that its share lies between `low`
/// and `high`; each step it looks at the item in the middle, and the lanes tell each other their items and widths. Among
/// what is left, at least the first halves of the runs whose middle comes no later precede or equal a lane's middle, and at
/// most those runs whole and the first halves of the others precede it. If the former are more than are still needed, the
/// middle is outside, and `high` comes down; if the latter are fewer, it is inside, and `low` goes up. The latest middle or
/// else the earliest one is always decided, and usually most are, so there are few more steps than in a binary search,
/// one dependent load each.
///
/// A comparator that contradicts itself may decide none: then one lane is moved all the same, so that this ends. Shares that
/// do not add up, or that decrease from one boundary to the next, make the block's verdict 1.
///
/// `splits` has `runs` words per boundary, `verdicts` a word per block; launch with a block per `(256 >> log_lanes) - 1`
/// tiles. `1 <= runs <= 1 << log_lanes`; `total` is the sum of the runs' lengths.
#[kernel(threads = PARTITION_THREADS, shared = shared_bytes::<u64>(PARTITION_THREADS as usize) + shared_bytes::<u32>(1))]
pub unsafe fn runs_partition<K: Pod, C: Compare<K>>(
    keys: Runs<K>,
    runs: u32,
    total: u64,
    compare: C,
    tile: u32,
    log_lanes: u32,
    splits: GlobalMut<u64>,
    verdicts: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let found = memory.take::<u64>(PARTITION_THREADS as usize);
    let word = memory.take::<u32>(1);

    let tiles = total.div_ceil(tile as u64) as usize;
    let boundary = Boundary::of_thread(log_lanes, tiles);
    let position = boundary.index as u64 * tile as u64;
    // How many are still to be found beyond the lanes' `low`.
    let mut needed = if position < total { position } else { total };

    let lanes = 1u32 << log_lanes;
    let lane = lane_id() & (lanes - 1);
    let first_lane = lane_id() - lane;
    let group_mask = (u32::MAX >> (LANES - lanes)) << first_lane;
    let run = keys.get(lane);
    let mut low = 0u64;
    let mut high = if lane < runs { run.len() as u64 } else { 0 };
    while any(FULL, low < high) {
        let width = high - low;
        let middle = low + width / 2;
        let key = if width > 0 { run.get(middle as usize) } else { K::zeroed() };
        let mut at_least = width / 2 + 1;
        let mut at_most = width / 2;
        let mut other = 0;
        while other < lanes {
            let other_key = warp::broadcast(key, first_lane + other);
            let other_width = warp::broadcast(width, first_lane + other);
            if other_width > 0 && other != lane {
                let precedes = if other < lane { !compare.less(key, other_key) } else { compare.less(other_key, key) };
                at_least += if precedes { other_width / 2 + 1 } else { 0 };
                at_most += if precedes { other_width } else { other_width / 2 };
            }
            other += 1;
        }
        let mut grown = 0;
        let is_outside = width > 0 && at_least > needed;
        let is_inside = width > 0 && !is_outside && at_most < needed;
        if is_inside {
            grown = middle + 1 - low;
            low = middle + 1;
        }
        let decided = ballot(FULL, is_outside || is_inside) & group_mask;
        let open = ballot(FULL, width > 0) & group_mask;
        let is_forced = decided == 0 && open.trailing_zeros() == lane_id();
        if is_outside || is_forced {
            high = middle;
        }
        needed = needed.wrapping_sub(group_sum(grown, log_lanes));
    }

    if thread::thread_idx_x() == 0 {
        word.set(0, 0);
    }
    found.set(thread::thread_idx_x() as usize, low);
    if lane < runs && boundary.is_own() {
        splits.set(boundary.index * runs as usize + lane as usize, low);
    }
    thread::sync_threads();
    let mut contradiction = needed != 0;
    if boundary.has_next() {
        contradiction |= found.get((thread::thread_idx_x() + lanes) as usize) < low;
    }
    write_verdict(contradiction, word, verdicts);
}

/// Whether values travel with the keys.
const fn has_values<V>() -> bool {
    size_of::<V>() != 0
}

/// Shared memory of a block: tables of the pieces, the keys twice, where they came from twice; the values lie over the
/// second half of the keys.
#[must_use]
pub const fn tile_shared<K, V>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    let sources = if has_values::<V>() { shared_bytes::<u16>(2 * tile) } else { 0 };
    let wider = if size_of::<K>() > size_of::<V>() { size_of::<K>() } else { size_of::<V>() };
    shared_bytes::<u32>(MAX_RUNS + 1)
        + 3 * shared_bytes::<u64>(MAX_RUNS)
        + shared_bytes::<u32>(2 * Chain::words(threads))
        + sources
        + tile * (size_of::<K>() + wider)
}

/// With items of 12 bytes and more `ptxas` would rather spill than use more than 40 registers, unless it is told that five blocks
/// are enough.
#[must_use]
pub const fn min_blocks<K, V>() -> u32 {
    if size_of::<K>() + size_of::<V>() >= 12 { 5 } else { 0 }
}

/// The pieces of a tile, one after the other.
#[derive(Clone, Copy)]
struct Table {
    /// Where each piece begins, and after the last one where it ends.
    offsets: Shared<u32>,
}

impl Table {
    /// The piece that item `at` lies in, no earlier than `piece`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn piece(self, at: u32, mut piece: u32) -> u32 {
        while self.offsets.get(piece as usize + 1) <= at {
            piece += 1;
        }
        piece
    }
}

/// A piece's run, moved so that the items of the tile have the indices that they have there: by its table entry.
#[inline(always)]
unsafe fn run_at<T: Pod>(address: u64, count: u32) -> Global<T> {
    Global::from_raw(core::ptr::with_exposed_provenance(address as usize), count as usize)
}

/// Merges tiles of `THREADS * ITEMS` outputs from many runs.
///
/// The block loads its piece of each run into shared memory, one after the other, and merges neighbours pairwise, `rounds`
/// times, from one half of the memory into the other; where each item came from goes along. The values, which have
/// travelled meanwhile, then follow the keys.
///
/// In a round a thread makes `ITEMS` outputs, which may belong to several pairs.
///
/// Launch with one block per tile, after [`RunsPartition`] with the same tile; `1 << rounds` is at least `runs`. Where the
/// comparator contradicts itself, between tiles or within one, the items are taken in the order of the runs.
#[kernel(threads = THREADS, shared = tile_shared::<K, V>(THREADS, ITEMS), min_blocks = min_blocks::<K, V>())]
pub unsafe fn runs_tiles<K: Pod, V: Pod, C: Compare<K>, const THREADS: u32, const ITEMS: usize>(
    keys: Runs<K>,
    values: Runs<V>,
    runs: u32,
    rounds: u32,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    compare: C,
    splits: Global<u64>,
    verdicts: Global<u64>,
) {
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let both = memory.take::<K>(2 * tile);
    let mut overlay = SharedMemory::new();
    overlay.take::<K>(tile);
    let merged_values = overlay.take::<V>(tile);
    // What follows lies behind the larger of the two.
    let mut memory = if size_of::<K>() > size_of::<V>() { memory } else { overlay };
    let table = Table { offsets: memory.take::<u32>(MAX_RUNS + 1) };
    let key_addresses = memory.take::<u64>(MAX_RUNS);
    let value_addresses = memory.take::<u64>(MAX_RUNS);
    let lens = memory.take::<u64>(MAX_RUNS);
    let chains = memory.take::<u32>(2 * Chain::words(THREADS));
    let sources = memory.take::<u16>(if has_values::<V>() { 2 * tile } else { 0 });

    let block = thread::block_idx_x() as usize;
    let start = block * tile;
    let count = if out_keys.len() - start < tile { (out_keys.len() - start) as u32 } else { tile as u32 };
    if warp_id() == 0 {
        let lane = lane_id();
        if has_values::<V>() {
            values.write(lane, value_addresses, lens);
        }
        keys.write(lane, key_addresses, lens);
        let (mut low, mut high) = (0, 0);
        let len = if lane < runs { lens.get(lane as usize) } else { 0 };
        if is_contradictory(verdicts) {
            let before = warp::inclusive_scan(len, Sum) - len;
            low = (start as u64).saturating_sub(before).min(len);
            high = (start as u64 + count as u64).saturating_sub(before).min(len);
        } else if lane < runs {
            low = splits.get(block * runs as usize + lane as usize);
            high = splits.get((block + 1) * runs as usize + lane as usize);
        }
        let piece = (high - low) as u32;
        let end = warp::inclusive_scan(piece, Sum);
        table.offsets.set(lane as usize, end - piece);
        if lane == LANES - 1 {
            table.offsets.set(MAX_RUNS, end);
        }
        let lane = lane as usize;
        let moved = low.wrapping_sub((end - piece) as u64);
        key_addresses.set(lane, key_addresses.get(lane).wrapping_add(moved.wrapping_mul(size_of::<K>() as u64)));
        if has_values::<V>() {
            let address = value_addresses.get(lane);
            value_addresses.set(lane, address.wrapping_add(moved.wrapping_mul(size_of::<V>() as u64)));
        }
    }
    thread::sync_threads();

    let is_full = count as usize == tile;
    let own = thread::thread_idx_x();
    // The rounds go to and fro, and end in the first half.
    let mut from = if rounds % 2 == 0 { 0 } else { tile };
    let mut to = tile - from;
    if is_full {
        let mut items = [K::zeroed(); ITEMS];
        let mut piece = 0;
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            piece = table.piece(at, piece);
            items[i] = run_at::<K>(key_addresses.get(piece as usize), count).get(at as usize);
        }
        let loaded = both.slice(from, tile);
        for i in 0..ITEMS {
            loaded.set((own + i as u32 * THREADS) as usize, items[i]);
        }
    } else {
        let mut piece = 0;
        let mut at = own;
        while at < count {
            piece = table.piece(at, piece);
            both.set(from + at as usize, run_at::<K>(key_addresses.get(piece as usize), count).get(at as usize));
            at += THREADS;
        }
    }
    let mut under_way = [V::zeroed(); ITEMS];
    if has_values::<V>() && is_full {
        let mut piece = 0;
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            piece = table.piece(at, piece);
            under_way[i] = run_at::<V>(value_addresses.get(piece as usize), count).get(at as usize);
        }
    }
    thread::sync_threads();

    let first = if (own as usize) * ITEMS < count as usize { own * ITEMS as u32 } else { count };
    let mut fits = true;
    let mut round = 0;
    while round < rounds {
        let keys_from = both.slice(from, tile);
        let keys_to = both.slice(to, tile);
        let width = 2u32 << round;
        let offset = |piece: u32| table.offsets.get(piece as usize);
        // The pair that the first output lies in.
        let mut pair = 0;
        let mut step = LANES / 2;
        while step >= width {
            if offset(pair + step) <= first {
                pair += step;
            }
            step /= 2;
        }
        let mut a = offset(pair);
        let mut a_end = offset(pair + width / 2);
        let mut b = a_end;
        let mut pair_end = offset(pair + width);
        let diagonal = first - a;
        let pieces = Pieces { a, a_len: a_end - a, b, b_len: pair_end - b };
        let share = path(keys_from, pieces, diagonal, compare);
        a += share;
        b += diagonal - share;
        // Between pairs there is nothing to disagree about.
        const BETWEEN: u32 = u32::MAX - 1;
        let begins = if diagonal == 0 || first == count { BETWEEN } else { a };
        let last = count - 1;
        let mut key_a = keys_from.get(a.min(last) as usize);
        let mut key_b = keys_from.get(b.min(last) as usize);
        let end = if count - first < ITEMS as u32 { count } else { first + ITEMS as u32 };
        let mut at = first;
        while at < end {
            if at == pair_end {
                while at == pair_end {
                    pair += width;
                    a = pair_end;
                    a_end = offset(pair + width / 2);
                    b = a_end;
                    pair_end = offset(pair + width);
                }
                key_a = keys_from.get(a.min(last) as usize);
                key_b = keys_from.get(b.min(last) as usize);
            }
            let takes_a = a < a_end && (b >= pair_end || !compare.less(key_b, key_a));
            let (source, key) = if takes_a { (a, key_a) } else { (b, key_b) };
            keys_to.set(at as usize, key);
            if has_values::<V>() {
                let origin = if round == 0 { source as u16 } else { sources.get(from + source as usize) };
                sources.set(to + at as usize, origin);
            }
            let next = keys_from.get((source + 1).min(last) as usize);
            if takes_a {
                a += 1;
                key_a = next;
            } else {
                b += 1;
                key_b = next;
            }
            at += 1;
        }
        let words = Chain::words(THREADS);
        let chain = Chain::new(chains.slice((round % 2) as usize * words, words));
        chain.post(begins, if at == pair_end { BETWEEN } else { a });
        thread::sync_threads();
        fits &= chain.holds(BETWEEN);
        (from, to) = (to, from);
        round += 1;
    }

    let out_keys = out_keys.slice(start, count as usize);
    if !fits {
        let mut piece = 0;
        let mut at = own;
        while at < count {
            piece = table.piece(at, piece);
            out_keys.set(at as usize, run_at::<K>(key_addresses.get(piece as usize), count).get(at as usize));
            if has_values::<V>() {
                let value = run_at::<V>(value_addresses.get(piece as usize), count).get(at as usize);
                out_values.slice(start, count as usize).set(at as usize, value);
            }
            at += THREADS;
        }
        return;
    }
    if has_values::<V>() {
        if is_full {
            for i in 0..ITEMS {
                merged_values.set((own + i as u32 * THREADS) as usize, under_way[i]);
            }
        } else {
            let mut piece = 0;
            let mut at = own;
            while at < count {
                piece = table.piece(at, piece);
                let value = run_at::<V>(value_addresses.get(piece as usize), count).get(at as usize);
                merged_values.set(at as usize, value);
                at += THREADS;
            }
        }
        thread::sync_threads();
        let out_values = out_values.slice(start, count as usize);
        if is_full && rounds > 0 {
            for i in 0..ITEMS {
                let at = (own + i as u32 * THREADS) as usize;
                out_keys.set(at, both.get(at));
                out_values.set(at, merged_values.get(sources.get(at) as usize));
            }
        } else {
            let mut at = own as usize;
            while at < count as usize {
                out_keys.set(at, both.get(at));
                let source = if rounds > 0 { sources.get(at) as usize } else { at };
                out_values.set(at, merged_values.get(source));
                at += THREADS as usize;
            }
        }
    } else {
        let mut at = own as usize;
        while at < count as usize {
            out_keys.set(at, both.get(at));
            at += THREADS as usize;
        }
    }
}

crate::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, Less, runs_partition_u32;
    (): runs_u32;
    u32: runs_u32_u32;
    u64: runs_u32_u64;
}
crate::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u32, IgnoreLowBit, runs_partition_u32_low;
    (): runs_u32_low;
    u32: runs_u32_u32_low;
    u64: runs_u32_u64_low;
}
crate::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, Less, runs_partition_u64;
    (): runs_u64;
    u32: runs_u64_u32;
    u64: runs_u64_u64;
}
crate::merge_runs_instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    u64, IgnoreLowBit, runs_partition_u64_low;
    (): runs_u64_low;
    u32: runs_u64_u32_low;
    u64: runs_u64_u64_low;
}
