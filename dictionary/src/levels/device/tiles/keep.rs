//! The kernel that merges whole levels and keeps all elements, live or stale, with their marks.

use super::cuts::Cuts;
use super::workspace::Workspace;
use super::{BLOCKS_AT_ONCE, THREADS, items};
use crate::KeyCode;
use crate::levels::device::find::Levels;
use crate::levels::device::payload::{Marked, MarkedLong, MarkedNone, OPERAND, Payload, TOMBSTONE};
use gpu_primitives::arch::warp::{FULL, LANES, ballot, lane_id};
use gpu_primitives::arch::{opaque, thread};
use gpu_primitives::code::U256;
use gpu_primitives::kernel::PairsMut;
use gpu_primitives::kernel::kernel;
use gpu_primitives::view::{GlobalMut, SharedMemory};

/// Merges whole levels, and writes all elements and their marks: one bit per element, set for tombstones. If `marks` has room
/// for another bit per element, those of operands follow.
///
/// # Safety
/// - The launch has one block per tile.
/// - `levels` shows at least one level. `cuts` has at least as many pieces as there are levels, and at most 32.
/// - `cuts` was made from the arguments that [`Cuts::by_splits`] asks for, for these levels. The tile length is a multiple
///   of 32, not 0, and at most `room(ITEMS)`.
/// - `out` has as many elements as the levels, and `marks` a bit or two for each, in words of 32 elements.
/// - While the kernel runs, nobody changes the levels or writes what `cuts` shows, and nobody else uses the outputs.
#[kernel(
    listed,
    threads = THREADS,
    shared = Workspace::<C, P, ITEMS>::BYTES,
    min_blocks = BLOCKS_AT_ONCE,
    native = crate::levels::native::merge_marked
)]
pub unsafe fn merge_marked<C: KeyCode, P: Payload, const ITEMS: usize>(
    levels: Levels<C, P::Value>,
    cuts: Cuts,
    out: PairsMut<C, P::Value>,
    marks: GlobalMut<u32>,
) {
    let own = thread::thread_idx_x();
    let tiles = cuts.tiles();
    let workspace = Workspace::<C, P, ITEMS>::start(&mut SharedMemory::new(), own, levels);
    thread::sync_threads();

    let words = out.keys.len().div_ceil(LANES as usize);
    let own = opaque(own);
    let tile = tiles.nth::<ITEMS>(thread::block_idx_x());
    let pieces = workspace.find_pieces(own, cuts, tile);
    workspace.load(own, pieces);
    workspace.merge(pieces);
    for i in 0..ITEMS {
        let at = own + i as u32 * THREADS;
        let position = tile.begin + at as u64;
        let mut kind = 0;
        if at < pieces.count {
            let (key, payload) = workspace.items.get(at as usize);
            kind = payload.kind();
            out.set(position as usize, key, payload.value());
        }
        let marked = [ballot(FULL, kind & TOMBSTONE != 0), ballot(FULL, kind & OPERAND != 0)];
        if at < pieces.count && lane_id() == 0 {
            let word = (position / LANES as u64) as usize;
            marks.set(word, marked[0]);
            if marks.len() > words {
                marks.set(words + word, marked[1]);
            }
        }
    }
}

gpu_primitives::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    for C in [u32, u64, u128, U256], P in [MarkedNone, Marked, MarkedLong]: MergeMarked<C, P, { items::<C, P>() }>;
}
