//! The kernel of set operations.

use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id};
use crate::block::lookback::LookBack;
use crate::block::scan;
use crate::compare::{HoleOrder, KeyOrder};
use crate::form::kernel;
use crate::input::Prefix;
use crate::merge::{Tile, Walk};
use crate::monoid::Sum;
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

/// Returns the shared memory of a block: the keys, the positions of the kept ones, one count per warp, where the tile's items
/// go, and the ticket.
#[must_use]
pub const fn shared<K>(threads: u32, items: usize) -> usize {
    let tile = threads as usize * items;
    shared_bytes::<K>(tile)
        + shared_bytes::<u16>(tile)
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

/// The items that a thread merges: one bit each, the first item in the lowest.
#[derive(Clone, Copy)]
struct Items {
    /// The first item of each side that the thread may take.
    a_first: usize,
    b_first: usize,
    /// Those of the first side.
    from_a: u32,
    /// Those that are equal to the item before them on their own side.
    repeated: u32,
    /// Those that are matched.
    matched: u32,
}

impl Items {
    /// Returns how many items of each side come before item `i`.
    #[inline(always)]
    fn before(self, i: u32) -> (u32, u32) {
        let from_a = (self.from_a & ((1 << i) - 1)).count_ones();
        (from_a, i - from_a)
    }

    /// Decides again whether the items in `unclear` are matched, wherever their equal items are. Those that are repeated must be
    /// among them, so that ranks are counted along.
    ///
    /// # Safety
    /// The sides have these items.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn clear<K: Pod, C: KeyOrder<K>>(&mut self, mut unclear: u32, a: Side<K>, b: Side<K>, compare: C) {
        // Where the equal items of the last repeated item of each side begin.
        let (mut a_run, mut b_run) = (0, 0);
        while unclear != 0 {
            let i = unclear.trailing_zeros();
            unclear &= unclear - 1;
            let (bit, (a_before, b_before)) = (1 << i, self.before(i));
            let (a_index, b_index) = (self.a_first + a_before as usize, self.b_first + b_before as usize);
            let takes_a = self.from_a & bit != 0;
            let (side, index) = if takes_a { (a, a_index) } else { (b, b_index) };
            let key = side.get(index);
            let mut rank = 0;
            if self.repeated & bit != 0 {
                let earlier = if takes_a { self.from_a } else { !self.from_a } & (bit - 1);
                let run = if earlier == 0 {
                    side.first_equal(index, key, compare)
                } else if self.repeated & (1 << (31 - earlier.leading_zeros())) == 0 {
                    index - 1
                } else if takes_a {
                    a_run
                } else {
                    b_run
                };
                if takes_a {
                    a_run = run;
                } else {
                    b_run = run;
                }
                rank = index - run;
            }
            let is_matched = if takes_a {
                rank < b.all.len() - b_index && !compare.less(key, b.get(b_index + rank))
            } else {
                rank < a_index && !compare.less(a.get(a_index - 1 - rank), key)
            };
            self.matched = if is_matched { self.matched | bit } else { self.matched & !bit };
        }
    }

    /// Returns which items are kept.
    #[inline(always)]
    fn kept(self, keep: Keep) -> u32 {
        let all = |keeps: u32| 0u32.wrapping_sub(keeps);
        let first = (self.matched & all(keep.matched)) | (!self.matched & all(keep.unmatched));
        (self.from_a & first) | (!self.from_a & !self.matched & all(keep.second))
    }
}

/// Merges `ITEMS` items from output `first` of the tile on, or those that there are, and decides which of them are matched.
///
/// # Safety
/// The sides are those of the tile, whose keys are in shared memory, and `first` is at most `part.count`, which is not 0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn merge_items<K: Pod, C: KeyOrder<K>, const ITEMS: usize>(
    keys: Shared<K>,
    part: Tile,
    (a, b): (Side<K>, Side<K>),
    first: u32,
    compare: C,
) -> Items {
    let mut walk = Walk::new(keys, part, first, compare);
    let (a_first, b_first) = (part.a_start + walk.a as usize, part.b_start + (walk.b - part.a_len) as usize);
    let mut items = Items { a_first, b_first, from_a: 0, repeated: 0, matched: 0 };
    // The last item of each side, if there is one.
    let (mut has_a, mut has_b) = (a_first > 0, b_first > 0);
    let mut last_a = if has_a { a.get(a_first - 1) } else { K::zeroed() };
    let mut last_b = if has_b { b.get(b_first - 1) } else { K::zeroed() };
    let mut unclear = 0;
    for i in 0..ITEMS {
        let takes_a = walk.takes_a(compare);
        let (_, key) = walk.item(takes_a);
        let (has_last, last) = if takes_a { (has_a, last_a) } else { (has_b, last_b) };
        let is_repeated = has_last & !compare.less(last, key);
        // The first item of the other side that may be equal. The tile may not have it.
        let is_inside = walk.b < part.count;
        let (is_there, low, high) = if takes_a { (is_inside, key, walk.item(false).1) } else { (has_a, last_a, key) };
        let is_matched = is_there & !compare.less(low, high);
        items.from_a |= u32::from(takes_a) << i;
        items.repeated |= u32::from(is_repeated) << i;
        items.matched |= u32::from(is_matched) << i;
        unclear |= u32::from(is_repeated | (takes_a & !is_inside)) << i;
        if takes_a {
            (has_a, last_a) = (true, key);
        } else {
            (has_b, last_b) = (true, key);
        }
        walk.step(keys, takes_a);
    }
    let here = part.count - first;
    let exist = if here < ITEMS as u32 { (1 << here) - 1 } else { u32::MAX };
    items.clear(unclear & exist, a, b, compare);
    items
}

/// Keeps some items of two sorted sides, in merged order, in tiles of `THREADS * ITEMS` items.
///
/// The block loads its pieces of both sides into shared memory, and each thread merges `ITEMS` of them, as in a merge of two
/// sequences. An item's rank `r` is the number of equal items before it on its own side. In the merged order, equal
/// items of the first side come first. So at an item of the first side, the next item of the second side is the first that
/// may be equal to it, and the item is matched if the one `r` after that is equal. At an item of the second side, the last
/// item of the first side is the last that may be equal, and the item is matched if the one `r` before that is.
///
/// First all ranks are taken to be 0: then the thread has both items in registers. It notes which items this is wrong for, as
/// bits: those that are equal to the one before them, and those whose other side ends with the tile. They are looked at again, in
/// a loop of their own, which reads beyond the tile where it must. There, ranks are counted along: a thread searches only for the
/// rank of its first item of each side. Which side an item came from is a bit, too, so its position is a count of bits.
///
/// The positions of the kept items are compacted in shared memory, a look-back over tiles tells where they go, and they
/// are written in order, coalesced.
///
/// Cost: every key is read once, every kept item is written once; values are read for kept items only. A union of 2^27 keys
/// of 4 bytes moves 1 GiB: 262 µs at 4.1 TB/s. Each item takes three comparisons.
///
/// # Safety
/// The launch has at least one block per tile. `splits` and `verdicts` are what the partition of a merge has written for these sides,
/// this tile size and the same `compare`. Unless values are zero-sized, there are as many as keys, also in the output, and
/// on a side of which nothing is kept there may be none. `count` has one element. `scratch` comes from the stream's
/// look-back words, for one `u64` per tile. While the kernel runs, nothing writes the inputs, and nothing else uses the
/// other buffers; no output overlaps another buffer.
#[kernel(listed, threads = THREADS, shared = shared::<K>(THREADS, ITEMS), native = super::native::set_tiles)]
pub unsafe fn set_tiles<K: Pod, V: Pod, C: KeyOrder<K>, const THREADS: u32, const ITEMS: usize>(
    a_keys: Prefix<K>,
    a_values: Global<V>,
    b_keys: Prefix<K>,
    b_values: Global<V>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    compare: C,
    keep: Keep,
    splits: Global<u64>,
    verdicts: Global<u64>,
    count: GlobalMut<u64>,
    scratch: GlobalMut<u64>,
) {
    let (a_keys, b_keys) = (a_keys.get(), b_keys.get());
    let tile = THREADS as usize * ITEMS;
    let mut memory = SharedMemory::new();
    let keys = memory.take::<K>(tile);
    let compacted = memory.take::<u16>(tile);
    let warp_totals = memory.take::<u32>((THREADS / LANES) as usize);
    let tile_place = memory.take::<u64>(1);
    let look_back = LookBack::begin(&mut memory, scratch, thread::grid_dim_x());
    let total = a_keys.len() + b_keys.len();
    let part = Tile::nth(look_back.tile(), tile, a_keys.len(), total, splits, verdicts);
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
    let items = merge_items::<K, C, ITEMS>(keys, part, (a, b), first, compare);
    let here = part.count - first;
    let mut kept = items.kept(keep) & if here < ITEMS as u32 { (1 << here) - 1 } else { (1 << ITEMS) - 1 };

    let block = scan::exclusive_scan::<u32, Sum, THREADS>(kept.count_ones(), Sum, warp_totals);
    look_back.announce(block.total as u64);
    let (a_place, b_place) = ((items.a_first - a_start) as u32, (items.b_first - b_start) as u32 + a_len);
    let mut place = block.before as usize;
    while kept != 0 {
        let i = kept.trailing_zeros();
        let (a_before, b_before) = items.before(i);
        let is_from_a = items.from_a >> i & 1 != 0;
        compacted.set(place, if is_from_a { a_place + a_before } else { b_place + b_before } as u16);
        place += 1;
        kept &= kept - 1;
    }
    look_back.look_back(block.total as u64, Sum, |before| {
        if lane_id() == 0 {
            tile_place.set(0, before);
            if part.start + part.count as usize == total {
                // There is room for what sorted sides can give. More is left out.
                let all = before + block.total as u64;
                let room = out_keys.len() as u64;
                count.set(0, if all < room { all } else { room });
            }
        }
    });
    thread::sync_threads();

    let start = tile_place.get(0) as usize;
    let mut at = own;
    while at < block.total as usize && start + at < out_keys.len() {
        let source = compacted.get(at) as usize;
        out_keys.set(start + at, keys.get(source));
        if size_of::<V>() > 0 {
            let value = if source < a_len as usize {
                a_values.get(a_start + source)
            } else {
                b_values.get(b_start + source - a_len as usize)
            };
            out_values.set(start + at, value);
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
