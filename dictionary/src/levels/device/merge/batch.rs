//! The kernel that merges a batch into a level of distinct keys and drops stale elements.
//!
//! # Algorithm
//! A two-way merge by tiles. In the merged order an element is live if the next one has a different key, because the
//! newest comes last, and if it is not a tombstone. A thread sees this while it merges its items. For the last item of
//! a tile, the first items after the tile on both sides decide. The live items are counted. A
//! [look-back](gpu_primitives::block::lookback) gives the number of live items before the tile, and the block writes its own
//! after them.
//!
//! # Cost
//! Reads every element once, and writes it once if it is live.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use crate::KeyCode;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::{FULL, LANES, all, lane_id};
use gpu_primitives::block::lookback::LookBack;
use gpu_primitives::block::scan;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::{Buffer, Param, kernel};
use gpu_primitives::kernel::{Pairs, PairsMut};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::merge::{Tile, Walk};
use gpu_primitives::monoid::Sum;
use gpu_primitives::sort::Sign;
use gpu_primitives::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};

/// Threads per block.
const THREADS: u32 = 256;

/// Returns the number of items per thread: an odd number, to avoid bank conflicts.
#[must_use]
pub const fn batch_items<C, V>() -> usize {
    match size_of::<C>() {
        0..=4 if size_of::<V>() <= 4 => 15,
        0..=8 => 9,
        9..=16 => 5,
        _ => 3,
    }
}

/// Returns the number of items per tile.
#[must_use]
pub const fn batch_tile(items: usize) -> usize {
    THREADS as usize * items
}

/// The batch, as a kernel argument: elements, and one bit per element that is set for tombstones. There may be no bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Batch<C, V> {
    pub(crate) elements: Pairs<C, V>,
    pub(crate) marks: Global<u32>,
}

// SAFETY: `repr(C)`: views.
unsafe impl<C: Pod, V: Pod> Param for Batch<C, V> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.elements.buffers(name, visit);
        self.marks.buffers(name, visit);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<C: Pod, V: Pod> Batch<C, V> {
    /// Returns a view of a batch.
    pub fn view<'a>(elements: View<'a, Pairs<C, V>>, marks: View<'a, Global<u32>>) -> View<'a, Self> {
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe { View::new(Self { elements: elements.into_param(), marks: marks.into_param() }, Reach::none()) }
    }
}

impl<C: Pod, V: Pod> Batch<C, V> {
    /// Returns whether the element at a position is a tombstone.
    ///
    /// # Safety
    /// The position is within the batch.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn is_dead(self, position: usize) -> bool {
        !self.marks.is_empty() && self.marks.get(position / 32) >> (position % 32) & 1 == 1
    }
}

/// The shared memory of a block.
#[derive(Clone, Copy)]
struct Workspace<C, const ITEMS: usize> {
    keys: Shared<C>,
    /// Where the items come from, in their order: positions in the tile.
    sources: Shared<u16>,
    warp_totals: Shared<u32>,
}

impl<C: KeyCode, const ITEMS: usize> Workspace<C, ITEMS> {
    const BYTES: usize = shared_bytes::<C>(batch_tile(ITEMS))
        + shared_bytes::<u16>(batch_tile(ITEMS))
        + shared_bytes::<u32>((THREADS / LANES) as usize);

    /// Takes the memory.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self {
            keys: memory.take(batch_tile(ITEMS)),
            sources: memory.take(batch_tile(ITEMS)),
            warp_totals: memory.take((THREADS / LANES) as usize),
        }
    }

    /// Merges the keys of a tile and writes where each item comes from. Returns which of the thread's items are live: one
    /// bit each.
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. `part` is a tile of the level and the batch, whose keys were
    /// loaded before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn merge<V: Pod>(self, own: u32, part: Tile, level: Global<C>, batch: Batch<C, V>) -> u32 {
        let count = part.count;
        // The items that follow the tile on both sides.
        let (a_next, b_next) = (part.a_start + part.a_len as usize, part.b_start + part.b_len as usize);
        let batch_keys = batch.elements.keys;
        let first = if own * (ITEMS as u32) < count { own * ITEMS as u32 } else { count };
        let mut walk = Walk::new(self.keys, part, first, C::ORDER);
        let mut live = 0;
        if all(FULL, walk.is_inner(ITEMS as u32)) {
            let mut takes_a = walk.takes_a_inside(C::ORDER);
            for i in 0..ITEMS {
                let (source, key) = walk.item(takes_a);
                walk.step_inside(self.keys, takes_a);
                takes_a = walk.takes_a_inside(C::ORDER);
                self.sources.set(first as usize + i, source as u16);
                live |= u32::from(walk.item(takes_a).1 != key) << i;
            }
        } else {
            let mut takes_a = walk.takes_a_by_known(C::ORDER);
            for i in 0..ITEMS {
                let (source, key) = walk.item(takes_a);
                walk.step(self.keys, takes_a);
                takes_a = walk.takes_a_by_known(C::ORDER);
                let at = first + i as u32;
                if at < count {
                    self.sources.set(at as usize, source as u16);
                    live |= u32::from(walk.item(takes_a).1 != key) << i;
                }
            }
        }
        // The last item of the tile, whose next one is on neither side.
        if first < count && count - first <= ITEMS as u32 {
            let key = self.keys.get(self.sources.get(count as usize - 1) as usize);
            let is_followed = (a_next < level.len() && level.get(a_next) == key)
                || (b_next < batch_keys.len() && batch_keys.get(b_next) == key);
            let bit = 1 << (count - 1 - first);
            live = if is_followed { live & !bit } else { live | bit };
        }
        if !batch.marks.is_empty() {
            for i in 0..ITEMS {
                if live >> i & 1 == 1 {
                    let source = self.sources.get(first as usize + i) as u32;
                    if source >= part.a_len && batch.is_dead(part.b_start + (source - part.a_len) as usize) {
                        live &= !(1 << i);
                    }
                }
            }
        }
        live
    }

    /// Moves the sources of the live items together: those of this thread to `before` and on. `live` has a bit for each
    /// of the thread's items.
    ///
    /// # Safety
    /// All threads of the block call it, after [`merge`](Self::merge); `own` is the thread. No two threads have live
    /// items with the same new index. A barrier must follow.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn compact(self, own: u32, live: u32, before: u32) {
        let mut sources = [0; ITEMS];
        for i in 0..ITEMS {
            if live >> i & 1 == 1 {
                sources[i] = self.sources.get(own as usize * ITEMS + i);
            }
        }
        thread::sync_threads();
        let mut index = before;
        for i in 0..ITEMS {
            if live >> i & 1 == 1 {
                self.sources.set(index as usize, sources[i]);
                index += 1;
            }
        }
    }
}

/// Returns the number of blocks per multiprocessor. With more, `ptxas` would spill registers.
const fn min_blocks<C, V>() -> u32 {
    if size_of::<C>() > 16 || size_of::<V>() > 4 { 2 } else { 3 }
}

/// Merges a batch into a level of distinct keys without tombstones. Writes the live elements of both to `out`, decoded by
/// `sign`, and their number to the only element of `live_count`.
///
/// # Safety
/// - The launch has one block per tile of `batch_tile(ITEMS)` elements. There is at least one element.
/// - `splits` and `verdicts` are what [`Splits`](gpu_primitives::merge::Splits) has found for the keys
///   of the level and the batch, such tiles and the order of `C`.
/// - Unless values are zero-sized, there are as many values as keys, in the level and in the batch.
/// - The batch has no marks, or one bit per element.
/// - `out` has room for all elements.
/// - `scratch` comes from the stream's look-back words, for one `u64` per tile.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the outputs or `scratch`.
#[kernel(
    listed,
    threads = THREADS,
    shared = Workspace::<C, ITEMS>::BYTES + shared_bytes::<u64>(1) + LookBack::BYTES,
    min_blocks = min_blocks::<C, V>(),
    native = crate::levels::native::merge_batch
)]
pub unsafe fn merge_batch<C: KeyCode, V: Pod, const ITEMS: usize>(
    level: Pairs<C, V>,
    batch: Batch<C, V>,
    sign: Sign,
    splits: Global<u64>,
    verdicts: Global<u64>,
    out: PairsMut<C, V>,
    live_count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let tile = batch_tile(ITEMS);
    let own = thread::thread_idx_x();
    let total = level.keys.len() + batch.elements.keys.len();
    let mut memory = SharedMemory::new();
    let workspace = Workspace::<C, ITEMS>::take(&mut memory);
    let base = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, total.div_ceil(tile) as u32);

    let part = Tile::nth(look_back.tile(), tile, level.keys.len(), total, splits, verdicts);
    let count = part.count;
    part.of_sides(level.keys, batch.elements.keys).load::<THREADS, ITEMS>(workspace.keys, count);
    thread::sync_threads();

    let live = workspace.merge(own, part, level.keys, batch);
    let local = scan::exclusive_scan::<u32, Sum, THREADS>(live.count_ones(), Sum, workspace.warp_totals);
    look_back.announce(local.total as u64);
    if local.total < count {
        workspace.compact(own, live, local.before);
    }
    look_back.look_back(local.total as u64, Sum, |before| {
        if lane_id() == 0 {
            base.set(0, before);
        }
    });
    thread::sync_threads();

    let base = base.get(0);
    if look_back.is_last() && own == 0 {
        live_count.set(0, base + local.total as u64);
    }
    let out = out.slice(base as usize, local.total as usize);
    // Neighbours in the output are neighbours on their sides. So the values need no shared memory.
    let from = part.of_sides(level.values, batch.elements.values);
    let is_whole = local.total as usize == tile;
    let mut values = [V::zeroed(); ITEMS];
    if size_of::<V>() > 0 {
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if is_whole || at < local.total {
                values[i] = from.get(workspace.sources.get(at as usize) as usize);
            }
        }
    }
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if is_whole || at < local.total {
            let source = workspace.sources.get(at as usize) as usize;
            out.set(at as usize, sign.decode(workspace.keys.get(source)), values[i]);
        }
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: MergeBatch<C, V, { batch_items::<C, V>() }>;
}
