//! The kernel that combines the values of each run of equal keys.

use super::open::{Join, Open};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, lane_id, sync_warp, warp_id};
use crate::block::exchange::WarpExchange;
use crate::block::lookback::TicketSlot;
use crate::block::{lookback, scan, warp};
use crate::equality::HoleEquality;
use crate::form::{Buffer, Holes, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Count, Input, SourceArg};
use crate::monoid::{Combine, HoleMonoid};
use crate::select::device::tile::write_run;
use crate::shape::is_for_use;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// What tells where runs begin.
pub trait Heads: Param {
    /// What it has for each value.
    type Item: Pod;

    /// Whether the items of the heads are written, compacted.
    const IS_WRITTEN: bool;

    /// Returns the number of items.
    ///
    /// # Safety
    /// Same as [`Count::get`].
    unsafe fn count(&self) -> usize;

    /// Returns the items.
    fn items(&self) -> Global<Self::Item>;

    /// Returns whether a run begins with `item`, which follows `previous`.
    fn begins(&self, previous: Self::Item, item: Self::Item) -> bool;

    /// Returns where the items of the heads are written.
    fn output(&self) -> GlobalMut<Self::Item>;

    /// Returns for each of `count` items from `start` on whether a run begins with it: 1 or 0, and 0 up to `len`.
    ///
    /// # Safety
    /// The items exist, and nothing writes them.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, start: usize, count: usize, len: usize) -> Vec<u8>;
}

/// Keys: a run begins where a key differs from the previous one. The keys of the heads are written.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Keys<K> {
    /// When keys are equal.
    pub equality: HoleEquality,
    /// One key for each value.
    pub input: Global<K>,
    /// Has room for all keys.
    pub output: GlobalMut<K>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<K: Pod> Param for Keys<K> {
    const HOLES: Holes = HoleEquality::HOLES;

    fn buffers(&self, _: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.input.buffers("keys", visit);
        self.output.buffers("output_keys", visit);
    }
}

impl<K: RegisterRepr> Heads for Keys<K> {
    type Item = K;
    const IS_WRITTEN: bool = true;

    #[inline(always)]
    unsafe fn count(&self) -> usize {
        self.input.len()
    }

    #[inline(always)]
    fn items(&self) -> Global<K> {
        self.input
    }

    #[inline(always)]
    fn begins(&self, previous: K, item: K) -> bool {
        !self.equality.equal(previous, item)
    }

    #[inline(always)]
    fn output(&self) -> GlobalMut<K> {
        self.output
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, start: usize, count: usize, len: usize) -> Vec<u8> {
        let first = start.saturating_sub(1);
        // SAFETY: guaranteed by the caller.
        let keys = unsafe { self.input.slice(first, start - first + count).as_slice() };
        let mut heads = vec![0; len];
        let compared = &mut heads[usize::from(start == 0)..count];
        self.equality.neighbours(keys, compared);
        compared.iter_mut().for_each(|is_equal| *is_equal ^= 1);
        if start == 0 {
            heads[0] = 1;
        }
        heads
    }
}

/// One byte for each value: 1 where a run begins, otherwise 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Marked {
    /// The bytes.
    pub marks: Global<u8>,
    /// The number of bytes to look at.
    pub count: Count,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl Param for Marked {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.marks.buffers("marks", visit);
        self.count.buffers(name, visit);
    }
}

impl Heads for Marked {
    type Item = u8;
    const IS_WRITTEN: bool = false;

    #[inline(always)]
    unsafe fn count(&self) -> usize {
        self.count.get()
    }

    #[inline(always)]
    fn items(&self) -> Global<u8> {
        self.marks
    }

    #[inline(always)]
    fn begins(&self, _: u8, item: u8) -> bool {
        item != 0
    }

    #[inline(always)]
    fn output(&self) -> GlobalMut<u8> {
        GlobalMut::empty()
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, start: usize, count: usize, len: usize) -> Vec<u8> {
        // SAFETY: guaranteed by the caller.
        let mut heads = unsafe { self.marks.slice(start, count).as_slice() }.to_vec();
        if start == 0 {
            heads[0] = 1;
        }
        heads.resize(len, 0);
        heads
    }
}

/// Returns the elements per access: accesses of 16 bytes by the wider type.
#[must_use]
pub const fn vector<S: Heads, V>() -> usize {
    let widest = if size_of::<S::Item>() > size_of::<V>() { size_of::<S::Item>() } else { size_of::<V>() };
    match widest {
        0..=4 => 4,
        5..=8 => 2,
        _ => 1,
    }
}

/// Returns the rows of a warp. They are odd, which the exchange requires. Keys and values share the memory of a block, and
/// values of 32 bytes take much of it.
#[must_use]
pub const fn rows<S: Heads, V>() -> usize {
    if S::IS_WRITTEN || size_of::<V>() > 16 { 5 } else { 7 }
}

/// Returns the shared memory of a block: keys or marks, values, one state per warp, the state before the tile, and the
/// ticket.
#[must_use]
pub const fn shared<S: Heads, V>(threads: u32, vec: usize, rows: usize) -> usize {
    let items = threads as usize * vec * rows;
    shared_bytes::<S::Item>(items)
        + shared_bytes::<V>(items)
        + shared_bytes::<Open<V>>((threads / LANES) as usize)
        + shared_bytes::<Open<V>>(1)
        + TicketSlot::BYTES
}

/// Returns the blocks that must fit on a multiprocessor. Without a bound, the assembler spills some registers rather than use
/// more.
#[must_use]
pub const fn blocks<V, I: Input<V>>() -> u32 {
    match size_of::<V>() {
        ..=4 if I::IS_VIEW => 4,
        ..=8 => 3,
        _ => 2,
    }
}

/// A warp's part of an exchange: consecutive items in each lane, and room to compact them.
#[derive(Clone, Copy)]
struct Part<T, const VEC: usize, const ROWS: usize> {
    exchange: WarpExchange<T, VEC, ROWS>,
    /// The same memory.
    run: Shared<T>,
}

impl<T: Pod, const VEC: usize, const ROWS: usize> Part<T, VEC, ROWS> {
    /// # Safety
    /// Same as [`WarpExchange::new`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn new(memory: Shared<T>) -> Self {
        let len = WarpExchange::<T, VEC, ROWS>::LEN;
        Self { exchange: WarpExchange::new(memory), run: memory.slice(warp_id() as usize * len, len) }
    }

    /// Reads the lane's items, and waits until all lanes have read theirs: the memory can be used for something else.
    ///
    /// # Safety
    /// All lanes of the warp must call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn take(self) -> [[T; VEC]; ROWS] {
        let mut rows = [[T::zeroed(); VEC]; ROWS];
        for row in 0..ROWS {
            rows[row] = self.exchange.blocked_row(row);
        }
        sync_warp(FULL);
        rows
    }

    /// Moves the lane's items whose bit is set in `flags` to the positions from `rank` on.
    ///
    /// # Safety
    /// All lanes of the warp must call this, with positions of their own.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn compact(self, flags: u32, mut rank: usize) {
        let items = self.take();
        for row in 0..ROWS {
            for i in 0..VEC {
                if flags >> (row * VEC + i) & 1 != 0 {
                    self.run.set(rank, items[row][i]);
                    rank += 1;
                }
            }
        }
    }
}

/// Returns the heads among the lane's items: bit `row * VEC + i` for each. The warp has `run` items, from `start` on, and
/// `outside` comes before them.
///
/// # Safety
/// All lanes of the warp must call this, after the items were loaded.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn heads_of<S: Heads, const VEC: usize, const ROWS: usize>(
    heads: S,
    part: Part<S::Item, VEC, ROWS>,
    outside: S::Item,
    start: usize,
    run: usize,
) -> u32 {
    const { assert!(VEC * ROWS < 32, "the heads of a lane are the bits of a word") };
    let first = lane_id() as usize * VEC * ROWS;
    let mut previous = if lane_id() == 0 { outside } else { part.run.get(first - 1) };
    let mut flags = 0;
    for row in 0..ROWS {
        let items = part.exchange.blocked_row(row);
        for i in 0..VEC {
            flags |= (heads.begins(previous, items[i]) as u32) << (row * VEC + i);
            previous = items[i];
        }
    }
    // The first item begins a run. Missing ones begin none.
    flags |= (start + first == 0) as u32;
    flags & ((1 << run.saturating_sub(first).min(VEC * ROWS)) - 1)
}

/// Combines the values of each run, in tiles of `THREADS * VEC * ROWS` values, in one pass.
///
/// Keys and values are loaded and exchanged as in the scan, so that each lane has consecutive ones. A part of the input is
/// described by the number of runs that begin in it and the total of the run that is open at its end. Such parts are
/// joined by an associative operation: over a lane's values, the lanes, the warps, and the tiles by [`lookback`].
///
/// A run's total is written where the next run begins. Each warp compacts its totals in shared memory before it knows what
/// comes before the tile: that concerns only the first total of the tile, and the place of all. So little is left to do
/// after the look-back.
///
/// Cost: every key and value is read once, every total and its key is written once. 2^26 pairs of 4 and 4 bytes in runs of
/// 8 move 576 MiB: 147 µs at 4.1 TB/s. Beyond that, two combinations per value, and 15 shuffles per lane for values of 4
/// bytes.
///
/// # Safety
/// The launch has one block per tile of the values. There are as many items of `heads` as values. The outputs have room for
/// one element per value; `count` has one element. `scratch` comes from the stream's look-back words, for one [`Open`]
/// per tile. While the kernel runs, nothing writes the inputs, and nothing else uses the other buffers; no output overlaps
/// another buffer.
#[kernel(
    listed, listed_if = is_for_use(THREADS),
    threads = THREADS,
    shared = shared::<S, V>(THREADS, VEC, ROWS),
    min_blocks = blocks::<V, I>(),
    native = crate::runs::native::reduce_runs
)]
pub unsafe fn reduce_runs<
    S: Heads,
    V: Pod,
    I: Input<V>,
    Op: Combine<V>,
    const THREADS: u32,
    const VEC: usize,
    const ROWS: usize,
>(
    heads: S,
    values: I,
    totals: GlobalMut<V>,
    op: Op,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let (warps, run_len) = ((THREADS / LANES) as usize, WarpExchange::<V, VEC, ROWS>::LEN);
    let item_part = Part::<S::Item, VEC, ROWS>::new(memory.take(warps * run_len));
    let value_part = Part::<V, VEC, ROWS>::new(memory.take(warps * run_len));
    let warp_states = memory.take::<Open<V>>(warps);
    let place = memory.take::<Open<V>>(1);
    let slot = TicketSlot::take(&mut memory);

    let tiles = thread::grid_dim_x();
    // Not a `LookBack`, which reads its ticket again: there are too few registers for that here.
    let ticket = slot.next(scratch, tiles);
    let (len, first) = (values.count().min(heads.count()), ticket.tile as usize * warps * run_len);
    if first >= len {
        // The host did not know the length. No tile waits for those after the last value.
        if first == 0 && thread::thread_idx_x() == 0 {
            count.set(0, 0);
        }
        return;
    }

    let start = (first + warp_id() as usize * run_len).min(len);
    let run = (len - start).min(run_len);
    // Missing keys read as the one before the run, so that the equality sees only keys of the input.
    let outside = heads.items().get(start.saturating_sub(1));
    let items = heads.items().slice(start, run);
    let has_values = WarpExchange::<V, VEC, ROWS>::has_rows(&values, start, run);
    if has_values && WarpExchange::<S::Item, VEC, ROWS>::is_whole(items) {
        // Both are read at once.
        let items = WarpExchange::<_, VEC, ROWS>::rows(items);
        let values = WarpExchange::<V, VEC, ROWS>::rows_of(values, start);
        item_part.exchange.put_rows(items);
        value_part.exchange.put_rows(values);
    } else {
        item_part.exchange.load(items, outside);
        value_part.exchange.load_from(values, start, run, op.identity());
    }
    sync_warp(FULL);

    let flags = heads_of(heads, item_part, outside, start, run);
    let mut total = op.identity();
    for row in 0..ROWS {
        let items = value_part.exchange.blocked_row(row);
        for i in 0..VEC {
            let together = op.combine(total, items[i]);
            total = if flags >> (row * VEC + i) & 1 != 0 { items[i] } else { together };
        }
    }
    let join = Join(op);
    let up_to = warp::inclusive_scan(Open::new(flags.count_ones() as u64, total), join);
    let below = warp::shuffle_up(up_to, 1);
    let below = if lane_id() == 0 { join.identity() } else { below };
    let kept = warp::broadcast(up_to.heads() as u32, LANES - 1);
    let block = scan::scan_warps::<Open<V>, _, THREADS>(up_to, join, warp_states);
    if thread::thread_idx_x() == 0 {
        lookback::announce(scratch, ticket, block.total);
    }

    if S::IS_WRITTEN {
        item_part.compact(flags, below.heads() as usize);
    }
    let items = value_part.take();
    let mut rank = below.heads() as usize;
    let mut total = join.combine(block.before, below).total;
    for row in 0..ROWS {
        for i in 0..VEC {
            let together = op.combine(total, items[row][i]);
            let begins = flags >> (row * VEC + i) & 1 != 0;
            if begins {
                value_part.run.set(rank, total);
                rank += 1;
            }
            total = if begins { items[row][i] } else { together };
        }
    }

    if warp_id() == 0 {
        let before = lookback::look_back(scratch, ticket, tiles, block.total, join);
        let all = join.combine(before, block.total);
        if lane_id() == 0 {
            place.set(0, before);
            if first + warps * run_len >= len {
                count.set(0, all.heads());
                totals.set(all.heads() as usize - 1, all.total);
            }
        }
    }
    thread::sync_threads();

    let (tile_before, kept) = (place.get(0), kept as usize);
    let before = (tile_before.heads() + block.before.heads()) as usize;
    if S::IS_WRITTEN {
        write_run(item_part.run, heads.output().slice(before, kept), lane_id(), LANES);
    }
    // The first run that ends in the tile began before it. The very first run ends nothing.
    let total = op.combine(tile_before.total, value_part.run.get(0));
    sync_warp(FULL);
    if lane_id() == 0 && kept > 0 && block.before.heads() == 0 {
        value_part.run.set(0, total);
    }
    sync_warp(FULL);
    let skipped = (before == 0 && kept > 0) as usize;
    let ended = totals.slice((before + skipped).saturating_sub(1), kept - skipped);
    write_run(value_part.run.slice(skipped, kept - skipped), ended, lane_id(), LANES);
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Two inputs at once leave a source too few registers for four blocks: values in memory have kernels of their own, which are
    // 6 % faster.
    family reduce_by_keys(K, V, VEC, ROWS) {
        for K in [u32, u64], V in [u32, u64], VEC = vector::<Keys<K>, V>(), ROWS = 5, I in [Global<V>, SourceArg]:
            ReduceRuns<Keys<K>, V, I, HoleMonoid<V>, 256, VEC, ROWS>;
    }
    family reduce_marked(V, VEC, ROWS) {
        for V in [u32, u64, [u32; 3], [u64; 2], [u64; 4]], VEC = vector::<Marked, V>(), ROWS = rows::<Marked, V>(),
            I in [Global<V>, SourceArg]: ReduceRuns<Marked, V, I, HoleMonoid<V>, 256, VEC, ROWS>;
    }
}
