//! Insertion in place: replaces or combines the values of keys that are present, and claims free slots for new ones.

use super::last::is_last;
use super::pairs::{Pairs, PairsMut};
use super::probe::{THREADS, index};
use crate::view::{Bucket, CuckooView, TableMut, key_index, value_index};
use bytemuck::{Pod, Zeroable};
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::block::warp::broadcast;
use gpu_primitives::kernel::kernel;
use gpu_primitives::monoid::Combine;
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, SharedMemory, thread, warp};

/// What became of a pair; the discriminant is stored in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// A later pair has the same key.
    Superseded,
    /// Its key was present, and its value has changed.
    Merged,
    /// Its key was absent, and has a slot now.
    Claimed,
    /// Its key was absent, and all of its buckets are full.
    Overflowed,
}

/// The counters of [`Claim`]; the discriminant is the index.
#[derive(Clone, Copy, Debug)]
pub enum Claims {
    /// Keys that were absent, with a slot or without.
    New,
    /// Keys without a slot: the length of the overflow.
    Overflowed,
}

impl Claims {
    #[cfg(not(target_arch = "nvptx64"))]
    pub const ALL: usize = 2;
}

/// The operation of an insertion: the new value replaces the old one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Latest;

impl<V: Pod> Combine<V> for Latest {
    #[inline(always)]
    fn identity(&self) -> V {
        V::zeroed()
    }

    #[inline(always)]
    fn combine(&self, _: V, new: V) -> V {
        new
    }
}

/// Inserts pairs without displacing any others. The value of a key that is present is combined with the new one. A new
/// key claims the first free slot of its buckets. If they are all full, the pair is appended to the overflow.
///
/// The threads need no locks. Only the last pair of a key is inserted, so no two threads look for the same key, and only
/// one thread uses the value of a slot. A slot is claimed by a compare-and-exchange of its key. Free slots become taken
/// and never free again, so a bucket that was seen full stays full: a key goes to a later bucket only if the earlier ones
/// have no free slot, and a bucket with an empty slot still ends every search.
///
/// Floor per pair of 4 + 4 bytes, buckets of 8, load up to 0.8: 8 bytes read, 1 to 5 written, in order; 1.1 sectors of keys
/// and one of values read, and one or both of them written: about 140 bytes. The history costs less than the sector of a
/// second pass over the table, which would replace values only once the call cannot fail any more.
///
/// # Safety
/// - The launch has at least one thread per pair.
/// - `count` is empty, or has one element: the number of pairs to insert, from the first one on, at most all.
/// - `entries` is empty if all keys are different; otherwise [`MarkLast`](super::MarkLast) wrote it for these keys with the
///   hash of the table.
/// - `history` is empty, or as long as `pairs`. It receives the [`Fate`] of every pair, and the old values of those merged.
/// - `overflow` has room for as many pairs as there can be, at the position `counts` says.
/// - `counts` has the counters of [`Claims`].
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the other buffers.
#[kernel(threads = THREADS, shared = shared_bytes::<u32>(1))]
pub unsafe fn claim<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: TableMut<C, V, WIDTH>,
    pairs: Pairs<C, V>,
    count: Global<u64>,
    entries: Global<u32>,
    operation: O,
    history: PairsMut<u8, V>,
    overflow: PairsMut<C, V>,
    counts: GlobalMut<u64>,
) {
    let mut memory = SharedMemory::new();
    let new_here = memory.take::<u32>(1);
    if thread::thread_idx_x() == 0 {
        new_here.set(0, 0);
    }
    thread::sync_threads();

    let Pairs { keys, values } = pairs;
    let i = index();
    let len = if count.is_empty() { keys.len() } else { count.get(0) as usize };
    let mut fate = Fate::Superseded;
    let (mut key, mut value) = (C::MIN, V::zeroed());
    if i < len {
        key = keys.get(i);
        if size_of::<V>() > 0 {
            value = values.get(i);
        }
        let mut old = V::zeroed();
        if is_last(keys, table.map.hash, entries, i, key) {
            (fate, old) = insert_one(table, key, value, operation);
        }
        if !history.keys.is_empty() {
            history.set(i, fate as u8, old);
        }
    }

    let new = warp::ballot(warp::FULL, matches!(fate, Fate::Claimed | Fate::Overflowed));
    let overflowed = warp::ballot(warp::FULL, fate == Fate::Overflowed);
    let mut start = 0;
    if warp::lane_id() == 0 {
        if new != 0 {
            new_here.atomic_add(0, new.count_ones());
        }
        if overflowed != 0 {
            let count = overflowed.count_ones() as u64;
            start = counts.atomic_add(Claims::Overflowed as usize, count, Scope::Gpu, Order::Relaxed);
        }
    }
    start = broadcast(start, 0);
    if fate == Fate::Overflowed {
        let rank = (overflowed & warp::lane_mask_lt()).count_ones();
        overflow.set(start as usize + rank as usize, key, value);
    }
    thread::sync_threads();
    if thread::thread_idx_x() == 0 && new_here.get(0) != 0 {
        counts.atomic_add(Claims::New as usize, new_here.get(0) as u64, Scope::Gpu, Order::Relaxed);
    }
}

/// Inserts one pair without displacing any other. Returns what became of it, and the old value if there was one.
///
/// # Safety
/// The caller is a kernel that changes the table only in this way, and no two threads have the same key.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn insert_one<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: TableMut<C, V, WIDTH>,
    key: C,
    value: V,
    operation: O,
) -> (Fate, V) {
    let map = table.map;
    let choices = map.hash.choices(key);
    // Looks for the key, and for the first bucket with a free slot on the way.
    let mut free_choice = map.hash.hashes;
    let (mut empties, mut deads) = (0, 0);
    let mut choice = 0;
    while choice < map.hash.hashes {
        let bucket = choices.get(choice);
        let keys = Bucket::<C, WIDTH>::load_atomic(table.keys, key_index::<C, V>(WIDTH, bucket));
        let slots = keys.slots_with(key);
        if slots != 0 {
            let mut old = V::zeroed();
            if size_of::<V>() > 0 {
                let at = value_index::<C, V>(WIDTH, bucket) + slots.trailing_zeros() as usize;
                old = table.values.get(at);
                table.values.set(at, operation.combine(old, value));
            }
            return (Fate::Merged, old);
        }
        let empties_here = keys.slots_with(map.empty.of(bucket));
        if free_choice == map.hash.hashes {
            (empties, deads) = (empties_here, keys.slots_with(map.dead.of(bucket)));
            if empties | deads != 0 {
                free_choice = choice;
            }
        }
        if empties_here != 0 {
            break;
        }
        choice += 1;
    }

    // The slots that were free may have been claimed since. No others have become free.
    choice = free_choice;
    while choice < map.hash.hashes {
        let bucket = choices.get(choice);
        let at = key_index::<C, V>(WIDTH, bucket);
        let mut free = empties | deads;
        while free != 0 {
            let slot = free.trailing_zeros();
            let marker = if (empties >> slot) & 1 != 0 { map.empty.of(bucket) } else { map.dead.of(bucket) };
            if table.keys.compare_exchange(at + slot as usize, marker, key, Scope::Gpu, Order::Relaxed) == marker {
                if size_of::<V>() > 0 {
                    table.values.set(value_index::<C, V>(WIDTH, bucket) + slot as usize, value);
                }
                return (Fate::Claimed, V::zeroed());
            }
            free &= free - 1;
        }
        choice += 1;
        if choice < map.hash.hashes {
            let bucket = choices.get(choice);
            let keys = Bucket::<C, WIDTH>::load_atomic(table.keys, key_index::<C, V>(WIDTH, bucket));
            (empties, deads) = (keys.slots_with(map.empty.of(bucket)), keys.slots_with(map.dead.of(bucket)));
        }
    }
    (Fate::Overflowed, V::zeroed())
}

/// Counts the different keys that are absent from the table.
///
/// Floor: as for [`Find`](super::Find), without its outputs.
///
/// # Safety
/// The launch has at least one thread per key. `entries` is as for [`Claim`]. `absent` has one element, to which the
/// number is added. While the kernel runs, nobody changes the table or writes the inputs, and nobody else uses the output.
#[kernel(threads = THREADS)]
pub unsafe fn count_absent<C: KeyCode, V: Pod, const WIDTH: usize>(
    table: CuckooView<C, V, WIDTH>,
    keys: Global<C>,
    entries: Global<u32>,
    absent: GlobalMut<u64>,
) {
    let i = index();
    let mut is_absent = false;
    if i < keys.len() {
        let key = keys.get(i);
        is_absent = is_last(keys, table.map.hash, entries, i, key) && table.find(key).is_none();
    }
    let absent_here = warp::ballot(warp::FULL, is_absent).count_ones();
    if warp::lane_id() == 0 && absent_here != 0 {
        absent.atomic_add(0, absent_here as u64, Scope::Gpu, Order::Relaxed);
    }
}
