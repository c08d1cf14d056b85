//! The kernels that sort rows of equal length: many at once, each by itself.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::block::{BlockItems, block_shared, sort_items};
use super::digits::Digits;
use super::kernel::{HISTOGRAM_THREADS, HISTOGRAM_TILE, PARTS, count_digits, pass_shared, take_tile};
use super::shape::{BLOCK_THREADS, block_items};
use super::tile::{Place, Tile, distribute_tile};
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::arch::{Order, Scope, thread};
use crate::block::radix::RADIX;
use crate::block::warp;
use crate::buckets::Buckets;
use crate::form::{Param, kernel};
use crate::monoid::Sum;
use crate::pairs::PairsMut;
use crate::sort::RadixCode;
use crate::view::{Global, GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block of a pass.
pub(crate) const ROW_THREADS: u32 = 256;
/// The blocks of a pass that must fit on a multiprocessor.
const ROW_BLOCKS: u32 = 2;

/// Returns the items per thread of a pass. Rows often have a power of two of items, and so have tiles: a row then has no tile that is
/// partly empty.
#[must_use]
pub(crate) const fn row_items<K>() -> usize {
    if size_of::<K>() <= 4 { 32 } else { 16 }
}

/// How rows of equal length are divided among blocks, as a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowParts {
    /// The items of a row.
    pub len: u64,
    /// The blocks of a row.
    pub parts: u64,
}

// SAFETY: `repr(C)`, plain data without padding.
unsafe impl Param for RowParts {}

impl RowParts {
    /// Returns the row of a block, and which part of it.
    #[inline(always)]
    fn of(self, block: u32) -> (usize, usize) {
        ((block / self.parts as u32) as usize, (block % self.parts as u32) as usize)
    }
}

/// Counts the digits of each row, for all passes in one read. The last block of a row turns the counts into first positions, with an
/// exclusive scan per pass, one warp each.
///
/// Cost: reads every key once, and writes 1 KiB per row and pass.
///
/// # Safety
/// The launch has `rows.parts` blocks per row, at least one, and there are no other keys. A row has fewer than 2^32 keys. `positions`
/// has 256 zeros per row and pass, those of a row in a row, and `finished` has a zero per row. While the kernel runs, nothing writes
/// the keys, and nothing else uses the other buffers.
#[kernel(
    listed,
    threads = HISTOGRAM_THREADS,
    min_blocks = 2,
    native = crate::sort::native::rows::row_histogram,
    shared = shared_bytes::<u32>(<Digits as Buckets<K>>::MAX_PASSES * RADIX * PARTS) + shared_bytes::<u32>(1)
)]
pub unsafe fn row_histogram<K: RadixCode>(
    keys: Global<K>,
    rows: RowParts,
    digits: Digits,
    positions: GlobalMut<u32>,
    finished: GlobalMut<u32>,
) {
    let mut memory = SharedMemory::new();
    let local = memory.take::<u32>(<Digits as Buckets<K>>::MAX_PASSES * RADIX * PARTS);
    let is_last = memory.take::<u32>(1);
    let thread = thread::thread_idx_x() as usize;
    let counters = digits.passes() as usize * RADIX;
    let (row, part) = rows.of(thread::block_idx_x());
    let keys = keys.slice(row * rows.len as usize, rows.len as usize);
    let positions = positions.slice(row * counters, counters);

    let mut i = thread;
    while i < counters * PARTS {
        local.set(i, 0);
        i += HISTOGRAM_THREADS as usize;
    }
    thread::sync_threads();
    let stride = rows.parts as usize * HISTOGRAM_TILE;
    count_digits(keys, (part * HISTOGRAM_TILE, stride), digits, digits.passes(), local);
    let mut i = thread;
    while i < counters {
        let mut count = 0;
        for part in 0..PARTS {
            count += local.get(i * PARTS + part);
        }
        if count != 0 {
            positions.atomic_add(i, count, Scope::Gpu, Order::Relaxed);
        }
        i += HISTOGRAM_THREADS as usize;
    }
    // Makes this block's counts visible to any block that sees it counted as finished.
    thread::fence(Scope::Gpu);
    thread::sync_threads();
    if thread == 0 {
        let before = finished.atomic_add(row, 1, Scope::Gpu, Order::AcqRel);
        is_last.set(0, (before + 1 == rows.parts as u32) as u32);
    }
    thread::sync_threads();
    if is_last.get(0) == 0 {
        return;
    }
    thread::fence(Scope::Gpu);
    let mut pass = warp_id();
    while pass < digits.passes() {
        let first = pass as usize * RADIX + lane_id() as usize;
        // All of them are on the way together.
        let mut totals = [0; RADIX / LANES as usize];
        for step in 0..totals.len() {
            totals[step] = positions.atomic_load(first + step * LANES as usize, Scope::Gpu, Order::Relaxed);
        }
        let mut before = 0;
        for step in 0..totals.len() {
            let upto = before + warp::inclusive_scan(totals[step], Sum);
            positions.atomic_store(first + step * LANES as usize, upto - totals[step], Scope::Gpu, Order::Relaxed);
            before = warp::broadcast(upto, LANES - 1);
        }
        pass += HISTOGRAM_THREADS / LANES;
    }
}

/// A tile of a row.
#[derive(Clone, Copy)]
struct RowTile<V> {
    number: u32,
    values: Global<V>,
    bases: Global<u32>,
}

impl<V: Pod> Place<V> for RowTile<V> {
    #[inline(always)]
    unsafe fn number(self) -> u32 {
        self.number
    }

    #[inline(always)]
    unsafe fn values(self, _: usize) -> Global<V> {
        self.values
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn first(self, bucket: usize) -> u64 {
        self.bases.get(bucket) as u64
    }

    /// No items of a row follow.
    #[inline(always)]
    unsafe fn pass_on(self, _: usize, _: u64) {}
}

/// Distributes the items of each row by one digit, stably: see [`bucket_pass`](super::kernel::bucket_pass). A tile belongs to one row,
/// and looks back at the tiles of that row alone. Tickets count through the rows, so a tile waits only for lower tickets.
///
/// Cost: `2 * (size_of::<K>() + size_of::<V>())` bytes per item; 1 KiB of look-back words per tile, written twice and read at least
/// once.
///
/// # Safety
/// The launch has one block per tile of `ROW_THREADS * ITEMS` items of a row, `rows.parts` per row, and there are no other items. A row
/// has fewer than 2^30 items. Outputs and inputs have the same length, but values that are zero-sized. `positions` is what
/// [`row_histogram`] has written for these rows and digits. `lookback` has 256 zeros per tile and one more.
///
/// While the kernel runs, nothing writes the inputs or the positions, and nothing else uses the other buffers. No output overlaps
/// another buffer.
#[kernel(
    listed,
    threads = ROW_THREADS,
    shared = pass_shared::<K, V>(ROW_THREADS, ITEMS),
    min_blocks = ROW_BLOCKS,
    native = crate::sort::native::rows::row_pass
)]
pub unsafe fn row_pass<K: RadixCode, V: Pod, const ITEMS: usize>(
    keys_in: Global<K>,
    keys_out: GlobalMut<K>,
    values_in: Global<V>,
    values_out: GlobalMut<V>,
    rows: RowParts,
    digits: Digits,
    pass: u32,
    positions: Global<u32>,
    lookback: GlobalMut<u32>,
) {
    let any_order = size_of::<V>() == 0 && Buckets::<K>::is_any_order(&digits, pass);
    let (ticket, ranking) = take_tile::<ROW_THREADS>(lookback, any_order);
    let (row, number) = rows.of(ticket.get(0));
    let (len, tile_len) = (rows.len as usize, ROW_THREADS as usize * ITEMS);
    let (first, start) = (row * len, number * tile_len);
    let valid = (len - start).min(tile_len);
    let words = rows.parts as usize * RADIX;
    let tile = Tile {
        keys_in: keys_in.slice(first + start, valid),
        to: PairsMut {
            keys: keys_out.slice(first, len),
            values: if size_of::<V>() == 0 { values_out } else { values_out.slice(first, len) },
        },
        buckets: digits,
        pass,
        place: RowTile {
            number: number as u32,
            values: if size_of::<V>() == 0 { values_in } else { values_in.slice(first + start, valid) },
            bases: positions.slice((row * digits.passes() as usize + pass as usize) * RADIX, RADIX),
        },
        lookback: lookback.slice(row * words, words),
        ranking,
    };
    distribute_tile::<K, V, Digits, _, ROW_THREADS, ITEMS>(tile, any_order);
}

/// Sorts rows of `row_len` items, one block each, in registers and shared memory: one read and one write of everything, and one
/// launch. The output may be the same memory as the input.
///
/// # Safety
/// The launch has one block per row, and there are no other items. A row has at most `BLOCK_THREADS * ITEMS` items. The slices are
/// those of [`sort_block`](super::block::sort_block).
#[kernel(
    listed,
    threads = BLOCK_THREADS,
    shared = block_shared::<K, V>(BLOCK_THREADS, ITEMS),
    min_blocks = 1,
    native = crate::sort::native::rows::sort_rows
)]
pub unsafe fn sort_rows<K: RadixCode, V: Pod, const ITEMS: usize>(
    keys_in: Global<K>,
    keys_out: GlobalMut<K>,
    values_in: Global<V>,
    values_out: GlobalMut<V>,
    digits: Digits,
    row_len: u32,
) {
    let (start, len) = (thread::block_idx_x() as usize * row_len as usize, row_len as usize);
    let row = BlockItems { keys_in, keys_out, values_in, values_out, start, len };
    sort_items::<K, V, Digits, BLOCK_THREADS, ITEMS>(row, digits, digits.passes());
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family row_passes(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32], ITEMS = row_items::<K>():
            RowHistogram<K>, RowPass<K, V, ITEMS>;
    }
    family sort_rows(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32], ITEMS = block_items::<K, V>(): SortRows<K, V, ITEMS>;
    }
}
