//! Insertion in place: replaces or combines the values of keys that are present, and claims free slots for new ones.

use super::last::Entries;
use super::marks::Marks;
use super::probe::{THREADS, index};
use crate::seek::{Seek, Sought};
use crate::view::{TableMut, value_index};
use bytemuck::{Pod, Zeroable};
use gpu_dictionary::WordCode as KeyCode;
use gpu_primitives::arch::{Order, Scope};
use gpu_primitives::block::warp::{broadcast, shuffle_down};
use gpu_primitives::kernel::{Pairs, PairsMut, kernel};
use gpu_primitives::monoid::Combine;
use gpu_primitives::view::shared_bytes;
use gpu_primitives::{Global, GlobalMut, SharedMemory, thread, warp};

/// What became of a pair; the discriminant is stored in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// Another pair with the same key has taken part in its place.
    Superseded,
    /// Its key was present, and its value has changed. If another pair with the same key has [`Yielded`](Self::Yielded),
    /// the key was absent.
    Merged,
    /// Its key was absent, and has a slot now.
    Claimed,
    /// Its key was absent, and has a slot now. Another pair with the same key has written the value.
    Yielded,
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
    /// Pairs that are recorded in the entries, because another pair with the same key has written the value.
    Repeats,
}

impl Claims {
    #[cfg(not(target_arch = "nvptx64"))]
    pub const ALL: usize = 3;
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
/// The threads need no locks: see [`Seek`]. Of several pairs with the same key, one takes part: the first whose thread
/// [marks](Marks) the slot, or records itself in the entries if the key has no slot. Only its thread uses the value of
/// the slot. The other pairs are recorded in the entries and counted, so that [`Raise`](super::Raise) and
/// [`Settle`](super::Settle) can find the last one and write its value, or [`Revert`](super::Revert) can take back what was
/// done to their key. If only the last one counts, a thread gives way to a neighbour in its warp with the same key and a later
/// position, before it touches memory.
///
/// Floor per pair of 4 + 4 bytes, buckets of 8, load up to 0.8: 8 bytes read, 5 written, in order; 1.1 sectors of keys and
/// one of values read, and one or both of them written; one mark, of which 2^20 pairs keep theirs in L2: about 140 bytes,
/// 36 us per 2^20 pairs at 4.1 TB/s. A small batch waits for four accesses one after the other: the key, its bucket and
/// mark at once, the slot, the mark. The history costs less than the sector of a second pass over the table, which would
/// replace values only once the call cannot fail any more.
///
/// # Safety
/// - The launch has at least one thread per pair.
/// - `count` is empty, or has one element: the number of pairs to insert, from the first one on, at most all.
/// - `marks` is empty if all keys are different; otherwise there is a mark for every bucket, and no slot is marked.
/// - Unless `marks` is empty, there are more entries than pairs, all free before. The base plus the number of pairs is less
///   than 2^32.
/// - `history` is empty, or at least as long as `pairs`. It receives the [`Fate`] of every pair, and the old values of
///   those merged.
/// - `overflow` has room for as many pairs as there can be, at the position `counts` says.
/// - `counts` has the counters of [`Claims`].
/// - While the kernel runs, nobody writes the inputs, and nobody else uses the other buffers.
// Without the number of blocks, ptxas saves registers by storing some.
#[kernel(
    listed = super::CLAIM_PTX,
    threads = THREADS,
    shared = shared_bytes::<u32>(1),
    min_blocks = 4,
    native = crate::native::claim::claim
)]
pub unsafe fn claim<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: TableMut<C, V, WIDTH>,
    pairs: Pairs<C, V>,
    count: Global<u64>,
    marks: Marks,
    entries: Entries,
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
    let exists = i < len;
    let mut fate = Fate::Superseded;
    let (mut key, mut value) = (C::MIN, V::zeroed());
    if exists {
        (key, value) = (keys.get(i), values.get(i));
    }
    // The lane above has the next position.
    let next = shuffle_down(key, 1);
    let gives_way = marks.may_give_way() && warp::lane_id() != warp::LANES - 1 && i + 1 < len && next == key;
    let mut is_repeat = false;
    if exists {
        let mut old = V::zeroed();
        if !gives_way {
            (fate, old) = insert_one(table, marks, key, value, operation);
            is_repeat = matches!(fate, Fate::Superseded | Fate::Yielded);
            if !marks.is_empty() && (is_repeat || fate == Fate::Overflowed) {
                let is_first = entries.record(keys, i, key).is_none();
                if fate == Fate::Overflowed && !is_first {
                    (fate, is_repeat) = (Fate::Superseded, true);
                }
            }
        }
        if !history.keys.is_empty() {
            history.set(i, fate as u8, old);
        }
    }

    let new = warp::ballot(warp::FULL, matches!(fate, Fate::Claimed | Fate::Yielded | Fate::Overflowed));
    let overflowed = warp::ballot(warp::FULL, fate == Fate::Overflowed);
    let repeats = warp::ballot(warp::FULL, is_repeat);
    let mut start = 0;
    if warp::lane_id() == 0 {
        if new != 0 {
            new_here.atomic_add(0, new.count_ones());
        }
        if overflowed != 0 {
            let count = overflowed.count_ones() as u64;
            start = counts.atomic_add(Claims::Overflowed as usize, count, Scope::Gpu, Order::Relaxed);
        }
        if repeats != 0 {
            counts.atomic_add(Claims::Repeats as usize, repeats.count_ones() as u64, Scope::Gpu, Order::Relaxed);
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
/// A thread may find a key that another thread has just placed, and mark its slot first. Then it takes the key for an old
/// one, and the other thread [yields](Fate::Yielded). Nothing depends on the order in which they see key and mark.
///
/// # Safety
/// The caller is a kernel that changes the table only in this way. Unless no two threads have the same key, there is a mark
/// for every bucket.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn insert_one<C: KeyCode, V: Pod, const WIDTH: usize, O: Combine<V>>(
    table: TableMut<C, V, WIDTH>,
    marks: Marks,
    key: C,
    value: V,
    operation: O,
) -> (Fate, V) {
    let choices = table.map.hash.choices(key);
    // Most keys are in their first bucket. Its mark is on the way while the bucket is.
    let first = choices.get(0);
    let guess = if marks.is_empty() { 0 } else { marks.load(first) };
    let Sought { outcome, bucket, slot } = table.seek(key, choices);
    if outcome == Seek::Full {
        return (Fate::Overflowed, V::zeroed());
    }
    let is_new = outcome == Seek::Claimed;
    if !marks.is_empty() && !marks.mark(bucket, slot, if bucket == first { guess } else { 0 }) {
        return (if is_new { Fate::Yielded } else { Fate::Superseded }, V::zeroed());
    }
    let mut old = V::zeroed();
    if size_of::<V>() > 0 {
        let at = value_index::<C, V>(WIDTH, bucket) + slot as usize;
        if is_new {
            table.values.set(at, value);
        } else {
            old = table.values.get(at);
            table.values.set(at, operation.combine(old, value));
        }
    }
    (if is_new { Fate::Claimed } else { Fate::Merged }, old)
}
