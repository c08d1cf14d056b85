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
//! Reads every element once, and writes it once if it is live. The values are in flight while the keys are merged.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use super::elements::{Elements, ElementsMut};
use super::look_back::LookBack;
use crate::KeyCode;
use bytemuck::Pod;
use gpu_primitives::arch::thread;
use gpu_primitives::arch::warp::LANES;
use gpu_primitives::block::scan;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::{Buffer, Param, kernel};
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
pub const fn renew_items<C, V>() -> usize {
    match size_of::<C>() {
        0..=4 if size_of::<V>() <= 4 => 15,
        0..=8 => 9,
        9..=16 => 5,
        _ => 3,
    }
}

/// Returns the number of items per tile.
#[must_use]
pub const fn renew_tile(items: usize) -> usize {
    THREADS as usize * items
}

/// The batch, as a kernel argument: elements, and one bit per element that is set for tombstones. There may be no bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Batch<C, V> {
    pub(super) elements: Elements<C, V>,
    pub(super) marks: Global<u32>,
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
    pub fn view<'a>(elements: View<'a, Elements<C, V>>, marks: View<'a, Global<u32>>) -> View<'a, Self> {
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
struct Workspace<C, V, const ITEMS: usize> {
    keys: Shared<C>,
    values: Shared<V>,
    /// The positions of the live items in the tile.
    sources: Shared<u16>,
    warp_totals: Shared<u32>,
}

impl<C: KeyCode, V: Pod, const ITEMS: usize> Workspace<C, V, ITEMS> {
    const BYTES: usize = shared_bytes::<C>(renew_tile(ITEMS))
        + shared_bytes::<V>(renew_tile(ITEMS))
        + shared_bytes::<u16>(renew_tile(ITEMS))
        + shared_bytes::<u32>((THREADS / LANES) as usize);

    /// Takes the memory.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self {
            keys: memory.take(renew_tile(ITEMS)),
            values: memory.take(renew_tile(ITEMS)),
            sources: memory.take(renew_tile(ITEMS)),
            warp_totals: memory.take((THREADS / LANES) as usize),
        }
    }

    /// Merges the keys of a tile. Returns where each of the thread's items comes from, and which of them are live: one
    /// bit each.
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. `part` is a tile of the level and the batch, whose keys were
    /// loaded before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn merge(self, own: u32, part: Tile, level: Global<C>, batch: Batch<C, V>) -> ([u32; ITEMS], u32) {
        let count = part.count;
        // The items that follow the tile on both sides.
        let (a_next, b_next) = (part.a_start + part.a_len as usize, part.b_start + part.b_len as usize);
        let batch_keys = batch.elements.keys;
        let first = if own * (ITEMS as u32) < count { own * ITEMS as u32 } else { count };
        let mut walk = Walk::new(self.keys, part, first, C::ORDER);
        let mut takes_a = walk.takes_a_by_known(C::ORDER);
        let mut sources = [0; ITEMS];
        let mut live = 0;
        for i in 0..ITEMS {
            let (source, key) = walk.item(takes_a);
            let is_batch = !takes_a;
            walk.step(self.keys, takes_a);
            takes_a = walk.takes_a_by_known(C::ORDER);
            sources[i] = source;
            let at = first + i as u32;
            let mut is_newest = walk.item(takes_a).1 != key;
            if at + 1 == count {
                let is_followed = (a_next < level.len() && level.get(a_next) == key)
                    || (b_next < batch_keys.len() && batch_keys.get(b_next) == key);
                is_newest = !is_followed;
            }
            let is_dead = is_batch && at < count && batch.is_dead(part.b_start + (source - part.a_len) as usize);
            live |= u32::from(at < count && is_newest && !is_dead) << i;
        }
        (sources, live)
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
/// - The launch has one block per tile of `renew_tile(ITEMS)` elements. There is at least one element.
/// - `splits` and `verdicts` are what [`Splits`](gpu_primitives::merge::Splits) has found for the keys
///   of the level and the batch, such tiles and the order of `C`.
/// - Unless values are zero-sized, there are as many values as keys, in the level and in the batch.
/// - The batch has no marks, or one bit per element.
/// - `out` has room for all elements.
/// - `scratch` comes from the stream's look-back words, for one `u64` per tile.
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the outputs or `scratch`.
#[kernel(
    threads = THREADS,
    shared = Workspace::<C, V, ITEMS>::BYTES + LookBack::BYTES,
    min_blocks = min_blocks::<C, V>(),
    native = super::native::renew_level
)]
pub unsafe fn renew_level<C: KeyCode, V: Pod, const ITEMS: usize>(
    level: Elements<C, V>,
    batch: Batch<C, V>,
    sign: Sign,
    splits: Global<u64>,
    verdicts: Global<u64>,
    out: ElementsMut<C, V>,
    live_count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let tile = renew_tile(ITEMS);
    let has_values = size_of::<V>() > 0;
    let own = thread::thread_idx_x();
    let total = level.keys.len() + batch.elements.keys.len();
    let mut memory = SharedMemory::new();
    let workspace = Workspace::<C, V, ITEMS>::take(&mut memory);
    let look_back = LookBack::start(&mut memory, own, scratch, total.div_ceil(tile) as u32);
    thread::sync_threads();

    let ticket = look_back.ticket();
    let part = Tile::nth(ticket.tile as usize, tile, level.keys.len(), total, splits, verdicts);
    let count = part.count;
    part.of_sides(level.keys, batch.elements.keys).load::<THREADS, ITEMS>(workspace.keys, count);
    let from = part.of_sides(level.values, batch.elements.values);
    // The values are in flight while the keys are merged.
    let mut in_flight = [V::zeroed(); ITEMS];
    if has_values {
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                in_flight[i] = from.get(at as usize);
            }
        }
    }
    thread::sync_threads();

    let (sources, live) = workspace.merge(own, part, level.keys, batch);
    let local = scan::exclusive_scan::<u32, Sum, THREADS>(live.count_ones(), Sum, workspace.warp_totals);
    look_back.announce(own, ticket, local.total);
    let mut index = local.before;
    for i in 0..ITEMS {
        if live >> i & 1 == 1 {
            workspace.sources.set(index as usize, sources[i] as u16);
            index += 1;
        }
    }
    if has_values {
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < count {
                workspace.values.set(at as usize, in_flight[i]);
            }
        }
    }
    look_back.find_base(ticket, local.total);
    thread::sync_threads();

    let base = look_back.base();
    if look_back.is_last(ticket) && own == 0 {
        live_count.set(0, base + local.total as u64);
    }
    let out = out.slice(base as usize, local.total as usize);
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < local.total {
            let source = workspace.sources.get(at as usize) as usize;
            let value = if has_values { workspace.values.get(source) } else { V::zeroed() };
            out.set(at as usize, sign.decode(workspace.keys.get(source)), value);
        }
    }
}

gpu_primitives::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], V in [(), u32, u64]: RenewLevel<C, V, { renew_items::<C, V>() }>;
}
