//! The kernel that writes the live elements of each interval.

use super::cuts::Cuts;
use super::live::LiveTable;
use super::workspace::Workspace;
use super::{BLOCKS_AT_ONCE, THREADS, items};
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::payload::{Marked, MarkedLong, MarkedNone, Payload};
use gpu_primitives::arch::warp::lane_id;
use gpu_primitives::arch::{opaque, thread};
use gpu_primitives::block::lookback::LookBack;
use gpu_primitives::code::U256;
use gpu_primitives::kernel::PairsMut;
use gpu_primitives::kernel::kernel;
use gpu_primitives::monoid::Sum;
use gpu_primitives::view::{GlobalMut, SharedMemory, shared_bytes};

/// Merges the parts of the levels within intervals, and writes the live elements, interval by interval. `offsets`
/// receives the index of the first one of each interval, and finally the number of all. Keys are decoded.
///
/// If there are more tiles than blocks, nothing is written. Of a tile whose live elements do not all fit into `out`, no
/// element is written.
///
/// # Safety
/// - The launch may have any number of blocks.
/// - `levels` shows at least one level. `cuts` has at least as many pieces per interval as there are levels, and at most
///   32.
/// - `cuts` was made from the arguments that [`Cuts::by_intervals`] asks for, for these levels, with a tile length from 1
///   to `nominal(ITEMS)`; or from those that [`Cuts::by_splits`] asks for, with a tile length from 1 to `room(ITEMS)`.
/// - `offsets` has one element per interval and one more.
/// - `scratch` comes from the stream's look-back words, for one `u64` per block.
/// - While the kernel runs, nobody changes the levels or writes what `cuts` shows, and nobody else uses the outputs or
///   `scratch`.
#[kernel(
    listed,
    threads = THREADS,
    shared = Workspace::<C, P, ITEMS>::BYTES + LiveTable::BYTES + shared_bytes::<u64>(1) + LookBack::BYTES,
    min_blocks = BLOCKS_AT_ONCE,
    native = crate::levels::native::emit_live
)]
pub unsafe fn emit_live<C: KeyCode, P: Payload, const ITEMS: usize>(
    levels: Levels<C, P::Value>,
    cuts: Cuts,
    out: PairsMut<C, P::Value>,
    offsets: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let own = thread::thread_idx_x();
    let mut memory = SharedMemory::new();
    let tiles = cuts.tiles();
    if tiles.count > thread::grid_dim_x() || thread::block_idx_x() >= tiles.count {
        return;
    }
    let workspace = Workspace::<C, P, ITEMS>::start(&mut memory, own, levels);
    let live_table = LiveTable::take(&mut memory);
    let base = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, tiles.count);

    let own = opaque(own);
    let tile = tiles.nth::<ITEMS>(look_back.tile() as u32);
    let pieces = workspace.find_pieces(own, cuts, tile);
    workspace.load(own, pieces);
    workspace.merge(pieces);
    let live = workspace.find_live(own, pieces, live_table);
    let compacted = workspace.compact(own, pieces, live);
    look_back.exchange(live.total as u64, Sum, |before| {
        if lane_id() == 0 {
            base.set(0, before);
        }
    });
    thread::sync_threads();

    let base = base.get(0);
    let mut interval = own;
    while interval < tile.intervals {
        let begins_here = interval > 0 || tile.first.rank == 0;
        if begins_here {
            let begin = live.before(pieces.interval(interval));
            offsets.set((tile.first.interval + interval as u64) as usize, base + begin as u64);
        }
        interval += THREADS;
    }
    if look_back.is_last() && own == 0 {
        offsets.set(offsets.len() - 1, base + live.total as u64);
    }
    if base + live.total as u64 > out.keys.len() as u64 {
        return;
    }
    let out = out.slice(base as usize, live.total as usize);
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        if at < live.total {
            let (key, payload) = compacted.get(at as usize);
            out.set(at as usize, levels.sign().decode(key), payload.value());
        }
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], P in [(), u32, u64, MarkedNone, Marked, MarkedLong]: EmitLive<C, P, { items::<C, P>() }>;
}
