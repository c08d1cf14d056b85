//! The search kernels.
//!
//! # The index
//! A binary search in 2^24 elements takes 24 dependent loads. About ten of them are far from the previous one: each
//! fetches 32 bytes, of which 4 are used. The index reduces this to one such access per factor of 8. Level 1 holds the
//! last of every 8 elements, level 2 the last of every 64, and so on, up to a level that fits in a block's shared
//! memory. A search starts there and descends. At each level it reads one node of 8 adjacent keys and counts those
//! before the needle. For 2^24 elements of 32 bits, that takes 12 steps in shared memory and 4 accesses of 32 bytes;
//! the upper three hit the L2 cache.
//!
//! Levels are padded to whole nodes by repeating the last key.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::shape::{sorted_items, vector};
use crate::arch::{Cache, thread};
use crate::block::merge::Chain;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::merge::{Tile, TileSplits, Walk};
use crate::sealed::Sealed;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The threads per block.
pub(crate) const THREADS: u32 = 256;
/// The keys per node.
pub(crate) const NODE: usize = 8;
pub(crate) const LOG_NODE: u32 = NODE.ilog2();
/// The bytes of the top level, in shared memory.
const TOP_BYTES: usize = 16 * 1024;
/// The number of searches that a thread runs at once.
const WAYS: usize = 2;
/// The number of needles in a block's step.
pub(crate) const STEP: usize = THREADS as usize * WAYS;

/// A type for positions in the output: `u32` or `u64`.
pub trait IndexOut: Pod + Sealed {
    /// The largest position that the type can hold.
    const LIMIT: usize;
    /// Converts a position to this type.
    fn from_position(position: usize) -> Self;
}

impl IndexOut for u32 {
    const LIMIT: usize = u32::MAX as usize;
    #[inline(always)]
    fn from_position(position: usize) -> Self {
        position as Self
    }
}

impl IndexOut for u64 {
    const LIMIT: usize = usize::MAX;
    #[inline(always)]
    fn from_position(position: usize) -> Self {
        position as Self
    }
}

/// Returns the number of keys of level `level` of the index over `len` elements, without padding.
#[inline(always)]
pub(crate) const fn level_len(len: usize, level: u32) -> usize {
    let stride = LOG_NODE * level;
    (len >> stride) + (len & ((1 << stride) - 1) != 0) as usize
}

/// Returns the same, padded to whole nodes.
#[inline(always)]
pub(crate) const fn padded_len(len: usize, level: u32) -> usize {
    level_len(len, level).next_multiple_of(NODE)
}

/// Returns the maximum number of keys of the top level.
#[must_use]
pub(crate) const fn top_limit<K>() -> usize {
    assert!(size_of::<K>() <= TOP_BYTES / NODE, "keys of a search have at most 2 KiB");
    TOP_BYTES / if size_of::<K>() == 0 { 1 } else { size_of::<K>() }
}

/// Returns the level that fits in shared memory; 0 is the haystack itself.
#[must_use]
pub(crate) fn top_level<K>(len: usize) -> u32 {
    let mut level = 0;
    while level_len(len, level) > top_limit::<K>() {
        level += 1;
    }
    level
}

/// Returns the number of keys of all levels except the haystack.
#[must_use]
pub(crate) fn index_len(len: usize, top: u32) -> usize {
    (1..=top).map(|level| padded_len(len, level)).sum()
}

/// Returns whether an element comes before the bound. Elements less than the needle do, and for an upper bound also
/// equal elements.
#[inline(always)]
pub(crate) fn precedes<K: Pod, C: KeyOrder<K>>(compare: C, key: K, needle: K, upper: bool) -> bool {
    let (a, b) = if upper { (needle, key) } else { (key, needle) };
    compare.less(a, b) != upper
}

/// Writes the levels of the index, one after the other.
///
/// # Safety
/// The launch has at least one thread per key of the index. The haystack is not empty, and `index` has the padded keys
/// of levels 1 to some top level, as counted by `index_len`. While the kernel runs, nothing writes the haystack, and
/// nothing else uses the index.
#[kernel(listed, threads = THREADS, native = crate::search::native::build_index)]
pub unsafe fn build_index<K: Pod>(haystack: Global<K>, index: GlobalMut<K>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < index.len() {
        let mut level = 1;
        let mut place = at;
        while place >= padded_len(haystack.len(), level) {
            place -= padded_len(haystack.len(), level);
            level += 1;
        }
        let last = ((place + 1) << (LOG_NODE * level)) - 1;
        index.set(at, haystack.get(if last < haystack.len() { last } else { haystack.len() - 1 }));
    }
}

/// Loads a whole node, in accesses of `VEC` keys. The first `NODE / VEC` entries are valid.
///
/// # Safety
/// `node` has [`NODE`] keys, and nothing writes them during the call. It is aligned as [`Global::load_vec`] requires.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn load_node<K: Pod, const VEC: usize>(node: Global<K>) -> [[K; VEC]; NODE] {
    let mut keys = [[K::zeroed(); VEC]; NODE];
    for i in 0..NODE / VEC {
        keys[i] = node.load_vec::<VEC>(i * VEC, Cache::Default);
    }
    keys
}

/// Counts the keys of a node that come before the bound.
#[inline(always)]
fn count_node<K: Pod, C: KeyOrder<K>, const VEC: usize>(
    keys: [[K; VEC]; NODE],
    needle: K,
    compare: C,
    upper: bool,
) -> usize {
    let mut count = 0;
    for i in 0..NODE / VEC {
        for j in 0..VEC {
            count += u32::from(precedes(compare, keys[i][j], needle, upper));
        }
    }
    count as usize
}

/// Counts the same in a node that is incomplete or misaligned.
///
/// # Safety
/// Nothing writes the node during the call.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn count_singly<K: Pod, C: KeyOrder<K>>(node: Global<K>, needle: K, compare: C, upper: bool) -> usize {
    let mut count = 0;
    let mut i = 0;
    while i < node.len() {
        count += u32::from(precedes(compare, node.get(i), needle, upper));
        i += 1;
    }
    count as usize
}

/// Finds the positions of needles in any order, using the index.
///
/// Blocks take steps of 512 needles in turn, so that the top level is loaded only a few times per multiprocessor. Each
/// thread searches for two needles at once.
///
/// # Safety
/// The launch has any number of blocks. The haystack is not empty. `top` is the level that is searched in shared
/// memory, and its keys fit there (`top_limit`). `index` holds exactly the levels up to it, as written by
/// [`BuildIndex`], at a multiple of 16 bytes. `VEC` divides 8. `out` is as long as the needles. While the kernel runs,
/// nothing else uses `out`, and nothing writes the other buffers.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared_bytes::<K>(top_limit::<K>()),
    native = crate::search::native::search_indexed
)]
pub unsafe fn search_indexed<K: Pod, C: KeyOrder<K>, I: IndexOut, const VEC: usize>(
    haystack: Global<K>,
    index: Global<K>,
    needles: Global<K>,
    out: GlobalMut<I>,
    compare: C,
    upper: u32,
    top: u32,
) {
    let upper = upper != 0;
    let len = haystack.len();
    let top_len = level_len(len, top);
    let fences: Shared<K> = SharedMemory::new().take::<K>(top_limit::<K>());
    let top_start = index.len() - if top > 0 { padded_len(len, top) } else { 0 };
    let mut at = thread::thread_idx_x() as usize;
    while at < top_len {
        fences.set(at, if top > 0 { index.get(top_start + at) } else { haystack.get(at) });
        at += THREADS as usize;
    }
    thread::sync_threads();

    let is_aligned = haystack.as_ptr().addr() % size_of::<[K; VEC]>().max(1) == 0;
    let stride = thread::grid_dim_x() as usize * STEP;
    let mut step = thread::block_idx_x() as usize * STEP;
    while step < needles.len() {
        let first = step + thread::thread_idx_x() as usize;
        let last_needle = needles.len() - 1;
        let mut needle = [K::zeroed(); WAYS];
        for i in 0..WAYS {
            let at = first + i * THREADS as usize;
            needle[i] = needles.get(if at < last_needle { at } else { last_needle });
        }
        // The same steps for every needle: the bound lies within `width` keys from `place`.
        let mut place = [0usize; WAYS];
        let mut width = top_len as u32;
        while width > 1 {
            let half = width / 2;
            for i in 0..WAYS {
                if precedes(compare, fences.get(place[i] + half as usize - 1), needle[i], upper) {
                    place[i] += half as usize;
                }
            }
            width -= half;
        }
        for i in 0..WAYS {
            if precedes(compare, fences.get(place[i]), needle[i], upper) {
                place[i] += 1;
            }
        }
        // Descend the levels. Positions beyond the last key also lead to the last node: in the haystack its keys are
        // counted again.
        let mut level = top;
        let mut start = top_start;
        while level > 1 {
            let last_node = level_len(len, level) - 1;
            level -= 1;
            start -= padded_len(len, level);
            let mut nodes = [[[K::zeroed(); VEC]; NODE]; WAYS];
            for i in 0..WAYS {
                place[i] = place[i].min(last_node) * NODE;
                nodes[i] = load_node(index.slice(start + place[i], NODE));
            }
            for i in 0..WAYS {
                place[i] += count_node(nodes[i], needle[i], compare, upper);
            }
        }
        if level == 1 {
            let last_node = level_len(len, 1) - 1;
            let mut is_whole = is_aligned;
            for i in 0..WAYS {
                place[i] = place[i].min(last_node) * NODE;
                is_whole &= place[i] + NODE <= len;
            }
            if is_whole {
                let mut nodes = [[[K::zeroed(); VEC]; NODE]; WAYS];
                for i in 0..WAYS {
                    nodes[i] = load_node(haystack.slice(place[i], NODE));
                }
                for i in 0..WAYS {
                    place[i] += count_node(nodes[i], needle[i], compare, upper);
                }
            } else {
                for i in 0..WAYS {
                    let node = haystack.slice(place[i], NODE.min(len - place[i]));
                    place[i] += count_singly(node, needle[i], compare, upper);
                }
            }
        }
        for i in 0..WAYS {
            let at = first + i * THREADS as usize;
            if at < needles.len() {
                out.set(at, I::from_position(place[i]));
            }
        }
        step += stride;
    }
}

/// Finds the positions of a few needles by binary search.
///
/// # Safety
/// The launch has at least one thread per needle. `out` is as long as the needles. While the kernel runs, nothing else
/// uses `out`, and nothing writes the haystack or the needles.
#[kernel(listed, threads = THREADS, native = crate::search::native::search_directly)]
pub unsafe fn search_directly<K: Pod, C: KeyOrder<K>, I: IndexOut>(
    haystack: Global<K>,
    needles: Global<K>,
    out: GlobalMut<I>,
    compare: C,
    upper: u32,
) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    if at < needles.len() {
        let needle = needles.get(at);
        let mut place = 0;
        let mut width = haystack.len();
        while width > 1 {
            let half = width / 2;
            if precedes(compare, haystack.get(place + half - 1), needle, upper != 0) {
                place += half;
            }
            width -= half;
        }
        if width == 1 && precedes(compare, haystack.get(place), needle, upper != 0) {
            place += 1;
        }
        out.set(at, I::from_position(place));
    }
}

/// Returns the shared memory of a block that searches for sorted needles.
#[must_use]
pub const fn sorted_shared<K>(items: usize) -> usize {
    let tile = THREADS as usize * items;
    shared_bytes::<K>(tile) + shared_bytes::<u32>(tile) + shared_bytes::<u32>(Chain::words(THREADS))
}

/// Finds the positions of sorted needles: a merge that records, for each needle, how many elements of the haystack came
/// before it.
///
/// For a lower bound the needles are the first side, so that they come before equal elements. For an upper bound they
/// are the second side.
///
/// # Safety
/// The launch has one block per tile of `256 * ITEMS` needles and elements. `splits` are what
/// [`MergePartition`](crate::merge::MergePartition) has written for the two sides in this order, for this tile size and
/// the same `compare`. `out` is as long as the needles. While the kernel runs, nothing else uses `out`, and nothing
/// writes the other buffers.
#[kernel(listed, threads = THREADS, shared = sorted_shared::<K>(ITEMS), native = crate::search::native::search_sorted)]
pub unsafe fn search_sorted<K: Pod, C: KeyOrder<K>, I: IndexOut, const ITEMS: usize>(
    haystack: Global<K>,
    needles: Global<K>,
    out: GlobalMut<I>,
    compare: C,
    upper: u32,
    splits: TileSplits,
) {
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let keys = memory.take::<K>(tile);
    let places = memory.take::<u32>(tile);
    let chain = Chain::new(memory.take::<u32>(Chain::words(THREADS)));

    let upper = upper != 0;
    let (side_a, side_b) = if upper { (haystack, needles) } else { (needles, haystack) };
    let (nth, total) = (thread::block_idx_x() as usize, haystack.len() + needles.len());
    let part = Tile::nth(nth, tile, side_a.len(), total, splits.boundaries, splits.verdicts);
    let Tile { count, a_start, a_len, b_start, b_len, .. } = part;
    let own = thread::thread_idx_x() as usize;
    part.of_sides(side_a, side_b).load::<THREADS, ITEMS>(keys, count);
    thread::sync_threads();

    let first = if own * ITEMS < count as usize { (own * ITEMS) as u32 } else { count };
    let mut walk = Walk::new(keys, part, first, compare);
    let share = walk.a;
    for i in 0..ITEMS {
        let takes_a = walk.takes_a(compare);
        if first as usize + i < count as usize && takes_a != upper {
            // The needle's index among the tile's needles, and the number of elements before it. The store is atomic,
            // since a comparator that contradicts itself may let several threads take the same needle.
            let (needle, place) = if upper { (walk.b - a_len, walk.a) } else { (walk.a, walk.b - a_len) };
            places.atomic_store(needle as usize, place);
        }
        walk.step(keys, takes_a);
    }
    chain.post(share, walk.a);
    thread::sync_threads();

    let fits = chain.holds(a_len);
    let (needle_start, needle_len, hay_start) =
        if upper { (b_start, b_len, a_start) } else { (a_start, a_len, b_start) };
    let out = out.slice(needle_start, needle_len as usize);
    let mut at = own;
    while at < needle_len as usize {
        // A comparator that contradicts itself may have skipped needles: write some position in range.
        let place = if fits { places.get(at) as usize } else { 0 };
        out.set(at, I::from_position(hay_start + place));
        at += THREADS as usize;
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family search_directly(K, I) {
        for K in [u32, u64, [u32; 3], [u64; 2], [u64; 4]], I in [u32, u64]: SearchDirectly<K, HoleOrder, I>;
    }
    family search_indexed(K, I, VEC) {
        for K in [u32, u64], I in [u32, u64], VEC = vector::<K>(): SearchIndexed<K, HoleOrder, I, VEC>, BuildIndex<K>;
        for K in [[u32; 3], [u64; 2]], I in [u32], VEC = vector::<K>():
            SearchIndexed<K, HoleOrder, I, VEC>, BuildIndex<K>;
    }
    family search_sorted(K, I, ITEMS) {
        for K in [u32, u64], I in [u32, u64], ITEMS = sorted_items::<K>(): SearchSorted<K, HoleOrder, I, ITEMS>;
        for K in [[u32; 3], [u64; 2], [u64; 4]], I in [u32], ITEMS = sorted_items::<K>():
            SearchSorted<K, HoleOrder, I, ITEMS>;
    }
}
