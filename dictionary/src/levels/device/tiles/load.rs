//! Loads the pieces of a tile into shared memory.

// Register arrays are indexed by the counters of unrolled loops: iterators would move the arrays to memory.
#![allow(clippy::needless_range_loop)]

use super::pieces::Pieces;
use super::workspace::Workspace;
use super::{THREADS, room};
use crate::KeyCode;
use crate::levels::device::payload::{PUT, Payload};
use bytemuck::{Pod, Zeroable};
use gpu_primitives::arch::thread;
use gpu_primitives::block::runs::first_half;
use gpu_primitives::view::Global;

/// Returns element `at` of the array at an address.
///
/// # Safety
/// The element is device memory whose address was exposed, aligned for `T`. Nobody writes it while the kernel runs.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn at_address<T: Pod>(address: u64, at: u32) -> T {
    let elements: Global<T> = Global::from_raw(core::ptr::with_exposed_provenance(address as usize), at as usize + 1);
    elements.get_shifted(at as usize)
}

impl<C: KeyCode, P: Payload, const ITEMS: usize> Workspace<C, P, ITEMS> {
    /// Loads the elements of the pieces, where the merge expects them. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block call it; `own` is the thread. The pieces are those that
    /// [`find_pieces`](Self::find_pieces) has returned.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn load(self, own: u32, pieces: Pieces) {
        // All loads are in flight before the first one is waited for.
        let mut loaded = [(C::MIN, P::zeroed()); ITEMS];
        let few = if P::HAS_MARKS { None } else { pieces.few() };
        if let Some((table, _)) = few {
            let ends = table.ends();
            for i in 0..ITEMS {
                let at = own + i as u32 * THREADS;
                let piece = ends.piece(at);
                if at < pieces.count {
                    let has_values = size_of::<P::Value>() > 0;
                    let value =
                        if has_values { at_address(pieces.value_address(piece), at) } else { Zeroable::zeroed() };
                    loaded[i] = (at_address(pieces.key_address(piece), at), P::new(value, PUT));
                }
            }
        }
        let mut piece = 0;
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < pieces.count && few.is_none() {
                piece = pieces.piece(at, piece);
                let level = self.levels.get(pieces.level(piece));
                let position = pieces.position(piece, at);
                let kind = if P::HAS_MARKS { level.kind(position) } else { PUT };
                loaded[i] = (level.keys().get(position as usize), P::new(level.value(position), kind));
            }
        }
        let room = room(ITEMS);
        let unmerged = self.items.slice(first_half(pieces.log_per_interval, room), room);
        for i in 0..ITEMS {
            let at = own + i as u32 * THREADS;
            if at < pieces.count {
                unmerged.set(at as usize, loaded[i].0, loaded[i].1);
            }
        }
        thread::sync_threads();
    }
}
