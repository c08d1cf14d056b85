//! The kernel that counts the live elements of each interval.

use super::THREADS;
use super::cuts::Cuts;
use super::live::LiveTable;
use super::workspace::Workspace;
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::payload::{MarkedNone, Payload};
use gpu_primitives::arch::{Order, Scope, opaque, thread};
use gpu_primitives::code::U256;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{GlobalMut, SharedMemory};

/// Returns the number of items per thread: see [`items`](super::items). Counting takes some more registers, because a
/// block goes from tile to tile.
#[must_use]
pub const fn count_items<C, P>() -> usize {
    match size_of::<C>() + size_of::<P>() {
        0..=4 => 13,
        5..=12 => 9,
        _ => super::items::<C, P>(),
    }
}

/// Returns the number of blocks per multiprocessor. On some GPUs, counting wide keys takes more registers than two
/// blocks have.
const fn min_blocks<C>() -> u32 {
    if size_of::<C>() > 4 { 1 } else { 2 }
}

/// Merges the parts of the levels within intervals, and adds the number of live elements of each interval to `counts`.
/// A block counts many tiles, one after the other.
///
/// # Safety
/// - The launch may have any number of blocks.
/// - `levels` shows at least one level. `cuts` has at least as many pieces per interval as there are levels, and at most
///   32.
/// - `cuts` was made from the arguments that [`Cuts::by_intervals`] asks for, for these levels, with a tile length from 1
///   to `nominal(ITEMS)`; or from those that [`Cuts::by_splits`] asks for, with a tile length from 1 to `room(ITEMS)`.
/// - `counts` has one element per interval, zero before.
/// - While the kernel runs, nobody changes the levels or writes what `cuts` shows, and nobody else uses `counts`.
#[kernel(
    listed,
    threads = THREADS,
    shared = Workspace::<C, P, ITEMS>::BYTES + LiveTable::BYTES,
    min_blocks = min_blocks::<C>(),
    native = crate::levels::native::count_live
)]
pub unsafe fn count_live<C: KeyCode, P: Payload<Value = ()>, const ITEMS: usize>(
    levels: Levels<C, ()>,
    cuts: Cuts,
    counts: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let tiles = cuts.tiles();
    let workspace = Workspace::<C, P, ITEMS>::start(&mut memory, thread::thread_idx_x(), levels);
    let live_table = LiveTable::take(&mut memory);
    thread::sync_threads();

    let mut index = thread::block_idx_x();
    while index < tiles.count {
        // The values that the loops derive from `own` are not worth keeping in registers from tile to tile.
        let own = opaque(thread::thread_idx_x());
        let tile = tiles.nth::<ITEMS>(index);
        // Wait until the shared memory of the previous tile is no longer used.
        thread::sync_threads();
        let pieces = workspace.find_pieces(own, cuts, tile);
        workspace.load(own, pieces);
        workspace.merge(pieces);
        let live = workspace.find_live(own, pieces, live_table);
        thread::sync_threads();

        let mut interval = own;
        while interval < tile.intervals {
            let begin = live.before(pieces.interval(interval));
            let end = live.before(pieces.interval(interval + 1));
            if end > begin {
                let at = (tile.first.interval + interval as u64) as usize;
                counts.atomic_add(at, (end - begin) as u64, Scope::Gpu, Order::Relaxed);
            }
            interval += THREADS;
        }
        index += thread::grid_dim_x();
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], P in [(), MarkedNone]: CountLive<C, P, { count_items::<C, P>() }>;
}
