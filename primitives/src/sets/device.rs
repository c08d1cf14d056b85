//! The kernel of set operations.

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id};
use crate::block::lookback::LookBack;
use crate::block::scan;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::input::PrefixPairs;
use crate::merge::{Tile, TileSplits, Walk};
use crate::monoid::Sum;
use crate::pairs::PairsMut;
use crate::view::{Global, GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::{Pod, Zeroable};

/// The threads per block.
pub(super) const THREADS: u32 = 256;

/// Returns the items per thread: about 15 KiB of keys; odd, to avoid bank conflicts.
#[must_use]
pub const fn items<K>() -> usize {
    match size_of::<K>() {
        0..=4 => 15,
        5..=8 => 9,
        _ => 5,
    }
}

/// Which items are kept. An item is *matched* if the other side has as many equal items as come before it on its own side,
/// and one more. It is a kernel argument: 0 or 1 each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Keep {
    /// The matched items of the first side.
    pub(super) matched: u32,
    /// The other items of the first side.
    pub(super) unmatched: u32,
    /// The items of the second side that are not matched.
    pub(super) second: u32,
}

impl Keep {
    /// Returns 1 if an item is kept, otherwise 0.
    #[inline(always)]
    fn item(self, is_first: bool, is_matched: bool) -> u32 {
        match (is_first, is_matched) {
            (true, true) => self.matched,
            (true, false) => self.unmatched,
            (false, true) => 0,
            (false, false) => self.second,
        }
    }
}

/// Returns the shared memory of a block: the keys, the positions of the items in merged order and of the kept ones, one
/// count per warp, where the tile's items go, and the ticket.
#[must_use]
pub const fn shared<K>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    shared_bytes::<K>(tile)
        + 2 * shared_bytes::<u16>(tile)
        + shared_bytes::<u32>((threads / LANES) as usize)
        + shared_bytes::<u64>(1)
        + LookBack::BYTES
}

/// One side of the operation: the whole sequence, and the part of it that the tile has in shared memory.
#[derive(Clone, Copy)]
struct Side<K> {
    all: Global<K>,
    /// The first item of the part.
    start: usize,
    part: Shared<K>,
}

impl<K: Pod> Side<K> {
    /// Returns item `index`.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn get(self, index: usize) -> K {
        let at = index.wrapping_sub(self.start);
        if at < self.part.len() { self.part.get(at) } else { self.all.get(index) }
    }

    /// Returns the first item that is equal to item `index`, which is `key`: by steps that double, then by bisection.
    ///
    /// # Safety
    /// The item exists.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn first_equal<C: KeyOrder<K>>(self, index: usize, key: K, compare: C) -> usize {
        let (mut low, mut high, mut step) = (0, index, 1);
        while low < high && step != 0 {
            let probe = high.saturating_sub(step);
            if compare.less(self.get(probe), key) {
                low = probe + 1;
                step = 0;
            } else {
                high = probe;
                step *= 2;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if compare.less(self.get(middle), key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Keeps some items of two sorted sides, in merged order, in tiles of `THREADS * ITEMS` items.
///
/// The block loads its pieces of both sides into shared memory, and each thread merges `ITEMS` of them, as in a merge of two
/// sequences. An item's rank `r` is the number of equal items before it on its own side. The thread counts it along; it has
/// to search only for its first item of each side, and only if that is equal to the one before. In the merged order, equal
/// items of the first side come first. So at an item of the first side, the next item of the second side is the first that
/// may be equal to it, and the item is matched if the one `r` after that is equal. At an item of the second side, the last
/// item of the first side is the last that may be equal, and the item is matched if the one `r` before that is. Items
/// beyond the tile are read from global memory, which happens at the edges of tiles and for long rows of equal items.
///
/// The positions of the kept items are compacted in shared memory, a look-back over tiles tells where they go, and they
/// are written in order, coalesced.
///
/// Cost: every key is read once, every kept item is written once; values are read for kept items only. A union of 2^27 keys
/// of 4 bytes moves 1 GiB: 262 µs at 4.1 TB/s. Each item takes three comparisons.
///
/// # Safety
/// The launch has at least one block per tile. `splits` are what the partition of a merge has written for these sides,
/// this tile size and the same `compare`. Unless values are zero-sized, there are as many as keys, also in the output, and
/// on a side of which nothing is kept there may be none. `count` has one element. `scratch` comes from the stream's
/// look-back words, for one `u64` per tile. While the kernel runs, nothing writes the inputs, and nothing else uses the
/// other buffers; no output overlaps another buffer.
#[kernel(listed, threads = THREADS, shared = shared::<K>(THREADS, ITEMS), native = super::native::set_tiles)]
pub unsafe fn set_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    a: PrefixPairs<K, V>,
    b: PrefixPairs<K, V>,
    out: PairsMut<K, V>,
    compare: C,
    keep: Keep,
    splits: TileSplits,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let (a_values, b_values) = (a.values, b.values);
    let (a_keys, b_keys) = (a.keys.get(), b.keys.get());
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let keys = memory.take::<K>(tile);
    let merged = memory.take::<u16>(tile);
    let compacted = memory.take::<u16>(tile);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let tile_place = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let total = a_keys.len() + b_keys.len();
    let part = Tile::nth(look_back.tile(), tile, a_keys.len(), total, splits.boundaries, splits.verdicts);
    let Tile { a_start, a_len, b_start, b_len, .. } = part;
    if part.count == 0 {
        // The device has fewer items than the launch has room for. No tile with items waits for this one.
        if look_back.tile() == 0 && thread::thread_idx_x() == 0 {
            count.set(0, 0);
        }
        return;
    }
    part.of_sides(a_keys, b_keys).load::<THREADS, ITEMS>(keys, part.count);
    thread::sync_threads();

    let a = Side { all: a_keys, start: a_start, part: keys.slice(0, a_len as usize) };
    let b = Side { all: b_keys, start: b_start, part: keys.slice(a_len as usize, b_len as usize) };
    let own = thread::thread_idx_x() as usize;
    let first = if own * ITEMS < part.count as usize { (own * ITEMS) as u32 } else { part.count };
    let mut walk = Walk::new(keys, part, first, compare);
    // Where the equal items of the last item of each side begin; `NONE` before the first.
    const NONE: usize = usize::MAX;
    let (mut a_run, mut b_run) = (NONE, NONE);
    let mut kept = 0u32;
    let mut i = 0;
    while i < ITEMS as u32 && first + i < part.count {
        let takes_a = walk.takes_a(compare);
        let (source, key) = walk.item(takes_a);
        let (a_index, b_index) = (a_start + walk.a as usize, b_start + (walk.b - a_len) as usize);
        let side = if takes_a { a } else { b };
        let (index, run) = if takes_a { (a_index, a_run) } else { (b_index, b_run) };
        let starts = index == 0 || compare.less(side.get(index - 1), key);
        let run = match (starts, run) {
            (true, _) => index,
            (false, NONE) => side.first_equal(index, key, compare),
            (false, run) => run,
        };
        let rank = index - run;
        let (is_there, partner) = if takes_a {
            (rank < b_keys.len() - b_index, b_index + rank)
        } else {
            (rank < a_index, a_index.wrapping_sub(rank + 1))
        };
        let mut is_matched = false;
        if is_there {
            let other = if takes_a { b } else { a }.get(partner);
            let (low, high) = if takes_a { (key, other) } else { (other, key) };
            is_matched = !compare.less(low, high);
        }
        kept |= keep.item(takes_a, is_matched) << i;
        merged.set((first + i) as usize, source as u16);
        if takes_a {
            a_run = run;
        } else {
            b_run = run;
        }
        walk.step(keys, takes_a);
        i += 1;
    }

    let block = scan::exclusive_scan::<u32, Sum, THREADS>(kept.count_ones(), Sum, warp_totals);
    look_back.announce(block.total as u64);
    let mut place = block.before as usize;
    while kept != 0 {
        compacted.set(place, merged.get((first + kept.trailing_zeros()) as usize));
        place += 1;
        kept &= kept - 1;
    }
    look_back.look_back(block.total as u64, Sum, |before| {
        if lane_id() == 0 {
            tile_place.set(0, before);
            if part.start + part.count as usize == total {
                // There is room for what sorted sides can give. More is left out.
                let all = before + block.total as u64;
                let room = out.keys.len() as u64;
                count.set(0, if all < room { all } else { room });
            }
        }
    });
    thread::sync_threads();

    let start = tile_place.get(0) as usize;
    let mut at = own;
    while at < block.total as usize && start + at < out.keys.len() {
        let source = compacted.get(at) as usize;
        out.keys.set(start + at, keys.get(source));
        if size_of::<V>() > 0 {
            let value = if source < a_len as usize {
                a_values.get(a_start + source)
            } else {
                b_values.get(b_start + source - a_len as usize)
            };
            out.values.set(start + at, value);
        }
        at += THREADS as usize;
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family set_tiles(K, V, ITEMS) {
        for K in [u32, u64], V in [(), u32, u64], ITEMS = items::<K>(): SetTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
        for K in [[u32; 3], [u64; 2]], V in [(), u32], ITEMS = items::<K>():
            SetTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
        for K in [[u64; 4]], V in [u32], ITEMS = items::<K>(): SetTiles<K, V, HoleOrder, { THREADS }, ITEMS>;
    }
}
