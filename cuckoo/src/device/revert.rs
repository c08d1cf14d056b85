//! Takes back what an insertion has done to keys that occur more than once.

use super::claim::Fate;
use super::last::Entries;
use super::probe::{THREADS, erase_one, hold, index};
use super::settle::took_part;
use crate::view::{TableMut, value_index};
use bytemuck::Pod;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::kernel::{PairsMut, kernel};
use gpu_primitives::{Global, GlobalMut, warp};

/// Restores the old values of keys that are recorded in the entries, and deletes those that were absent. Sets `reverted` to 1
/// for the pairs with these keys, and to 0 for the others. The pairs then count as [`Fate::Superseded`].
///
/// Floor per pair of 4 + 4 bytes: 6 bytes in order and an entry, which stays in L2 up to 2^21 pairs. For the keys that are
/// recorded also the sectors of a lookup and of the value.
///
/// # Safety
/// - The launch has at least one thread per key, and `reverted` has an element for each.
/// - [`Claim`](super::Claim) wrote the history and the entries for these keys, and recorded all pairs that did not take part.
///   The keys are in the table.
/// - `erased` has one element, to which the number of deleted keys is added.
/// - While the kernel runs, nobody writes the keys, and nobody else uses the other buffers.
#[kernel(listed = super::REVERT_PTX, threads = THREADS, native = crate::native::settle::revert)]
pub unsafe fn revert<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: TableMut<C, V, WIDTH>,
    keys: Global<C>,
    history: PairsMut<u8, V>,
    entries: Entries,
    reverted: GlobalMut<u8>,
    erased: GlobalMut<u64>,
) {
    let i = index();
    let mut is_erased = false;
    if i < keys.len() {
        let (key, fate) = (keys.get(i), history.keys.get(i));
        let is_reverted = !took_part(fate) || entries.has(keys, key);
        if is_reverted && fate == Fate::Merged as u8 {
            // If another thread deletes the key meanwhile, it was absent, and the value is of no importance.
            if size_of::<V>() > 0
                && let Some(place) = hold(table, key)
            {
                let at = value_index::<C, V>(WIDTH, place.bucket) + place.slot as usize;
                table.values.set(at, history.values.get(i));
            }
        } else if is_reverted && fate != Fate::Superseded as u8 {
            is_erased = erase_one(table, key);
        }
        if is_reverted {
            history.keys.set(i, Fate::Superseded as u8);
        }
        reverted.set(i, is_reverted as u8);
    }
    let erased_here = warp::ballot(warp::FULL, is_erased).count_ones();
    if warp::lane_id() == 0 && erased_here != 0 {
        erased.atomic_add(0, erased_here as u64, Scope::Gpu, Order::Relaxed);
    }
}
