//! Finds the last one of equal keys in a batch, without sorting it.
//!
//! A temporary hash table with open addressing holds one position per key. It has two entries of 4 bytes per position
//! of the batch, so that of a batch of 2^20 keys stays in the L2 cache.

use super::probe::{THREADS, index};
use crate::hash::Hash;
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Rmw, Scope};
use gpu_primitives::block::warp::shuffle_up;
use gpu_primitives::kernel::kernel;
use gpu_primitives::{Global, GlobalMut, warp};

/// The number of entries per position. A half-full table has short probe sequences.
#[cfg(not(target_arch = "nvptx64"))]
pub const ENTRIES_PER_POSITION: usize = 2;

/// Returns the first entry that a key may have.
#[inline(always)]
fn home<C: KeyCode>(hash: Hash, key: C, entries: usize) -> usize {
    ((hash.choices(key).spread() as u64 * entries as u64) >> 32) as usize
}

/// Returns the entry after this one, cyclically.
#[inline(always)]
fn after(entry: usize, entries: usize) -> usize {
    if entry + 1 == entries { 0 } else { entry + 1 }
}

/// Finds the last position of every key.
///
/// An entry is 0 or a position plus one. A taken entry keeps its key: a thread with the same key only raises the
/// position. The threads take the positions from the end, so most threads with an equal key find that a later one was
/// there before them, and only read. Within a warp, a thread gives way if its neighbour has a later position of the same
/// key. So a batch of one key costs little more than one of different keys.
///
/// Cost per key: its bytes; about 1.5 entries and as many other keys, from L2; one atomic in L2.
///
/// # Safety
/// - The launch has at least one thread per key. There are fewer than 2^32 - 1 keys.
/// - `entries` has more elements than there are keys, all zero before.
/// - `repeats` has one element, to which the number of keys that are not the only one of their kind is added, less one
///   for each kind: the number of keys minus the number of different ones.
/// - While the kernel runs, nobody writes the keys, and nobody else uses the outputs.
#[kernel(threads = THREADS)]
pub unsafe fn mark_last<C: KeyCode>(keys: Global<C>, hash: Hash, entries: GlobalMut<u32>, repeats: GlobalMut<u64>) {
    let i = index();
    let exists = i < keys.len();
    let position = if exists { keys.len() - 1 - i } else { 0 };
    let key = if exists { keys.get(position) } else { C::MIN };
    // The lane below has the next position.
    let next = shuffle_up(key, 1);
    let gives_way = warp::lane_id() != 0 && next == key;
    let mut is_repeat = exists;
    if exists && !gives_way {
        let mine = position as u32 + 1;
        let mut entry = home(hash, key, entries.len());
        // Ends: there are more entries than keys.
        loop {
            let mut there = entries.atomic_load(entry, Scope::Gpu, Order::Relaxed);
            if there == 0 {
                there = entries.compare_exchange(entry, 0, mine, Scope::Gpu, Order::Relaxed);
                if there == 0 {
                    is_repeat = false;
                    break;
                }
            }
            if keys.get(there as usize - 1) == key {
                if there < mine {
                    entries.atomic_rmw(Rmw::Max, entry, mine, Scope::Gpu, Order::Relaxed);
                }
                break;
            }
            entry = after(entry, entries.len());
        }
    }
    let repeats_here = warp::ballot(warp::FULL, is_repeat).count_ones();
    if warp::lane_id() == 0 && repeats_here != 0 {
        repeats.atomic_add(0, repeats_here as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Returns whether `position` is the last one of its key.
///
/// # Safety
/// `entries` is empty if all keys are different; otherwise it is what [`MarkLast`] wrote for these keys and this hash.
/// `key` is the key at `position`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn is_last<C: KeyCode>(keys: Global<C>, hash: Hash, entries: Global<u32>, position: usize, key: C) -> bool {
    if entries.is_empty() {
        return true;
    }
    let mut entry = home(hash, key, entries.len());
    // Ends: every key has an entry.
    loop {
        let there = entries.get(entry) as usize;
        if there == position + 1 {
            return true;
        }
        if there != 0 && keys.get(there - 1) == key {
            return false;
        }
        entry = after(entry, entries.len());
    }
}
