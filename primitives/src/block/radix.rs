//! Ranking by buckets: finds the position of each item when the tile is sorted, stably, by a bucket number below 256.
//!
//! A group of `ROW` lanes owns `ROW * ITEMS` consecutive items, row by row: item `j` of a lane comes before item `j` of the next
//! lane, and all of row `j` before row `j + 1`. Every group counts its buckets in its own counters. A scan over buckets and
//! groups turns the counts into positions. Then the items of each row take their positions; lanes with equal buckets do so in lane
//! order.
//!
//! A group is [half a warp](HALF), whose words have room for a position and for a bit of each lane ([`rank`]), or a whole warp
//! ([`rank_by_warps`]). Half-warps take fewer accesses per item, and have twice as many counters to add up. So they are for tiles with
//! many items per thread.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::scan;
use crate::arch::warp::{self, FULL, LANES, warp_id};
use crate::arch::{Rmw, thread};
use crate::monoid::Sum;
use crate::view::Shared;

/// The number of buckets.
pub const RADIX: usize = 256;

/// The lanes of half a warp.
pub const HALF: u32 = LANES / 2;

/// Returns the position in the tile of this thread's first item. The others follow at a distance of `ROW`.
#[inline(always)]
#[must_use]
pub fn first_item<const ROW: u32, const ITEMS: usize>() -> u32 {
    let thread = thread::thread_idx_x();
    thread / ROW * (ROW * ITEMS as u32) + thread % ROW
}

/// The shared memory of a ranking by groups of `ROW` lanes: [`HALF`] or [`LANES`].
#[derive(Clone, Copy)]
pub struct RankMemory<const ROW: u32> {
    /// Per group and bucket: first a count, then the next free position. A half-warp also has the bits of its lanes there, in the
    /// upper half of the word, while it ranks a row. A tile has fewer than 65,536 items, so a position needs only the lower half.
    counters: Shared<u32>,
    /// Per warp and bucket, if warps are the groups: the lanes of the current row that have the bucket. Zero between rows.
    peers: Shared<u32>,
    /// One word per warp.
    scratch: Shared<u32>,
}

impl<const ROW: u32> RankMemory<ROW> {
    /// Returns the number of words that a block of `threads` threads needs.
    #[must_use]
    pub const fn words(threads: u32) -> usize {
        (threads / HALF) as usize * RADIX + (threads / LANES) as usize
    }

    /// Zeroes the memory in `words` and returns it. A barrier must follow. If `any_order` is set, zeroes only what
    /// [`rank_in_any_order`] needs.
    ///
    /// # Safety
    /// All threads of the block must call this; `words` has [`words`](Self::words) elements.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn cleared<const THREADS: u32>(words: Shared<u32>, any_order: bool) -> Self {
        let counters = (THREADS / ROW) as usize * RADIX;
        let all = (THREADS / HALF) as usize * RADIX;
        let end = if any_order { RADIX } else { all };
        let mut i = thread::thread_idx_x() as usize;
        while i < end {
            words.set(i, 0);
            i += THREADS as usize;
        }
        Self {
            counters: words.slice(0, counters),
            peers: words.slice(counters, all - counters),
            scratch: words.slice(all, (THREADS / LANES) as usize),
        }
    }

    /// Returns the group's counter of a bucket: after [`place`], and before positions are taken, the first position of its items.
    ///
    /// # Safety
    /// The bucket is below [`RADIX`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn first_place(self, bucket: u32) -> usize {
        self.own().get(bucket as usize) as usize
    }

    /// Returns the counters of this thread's group.
    ///
    /// # Safety
    /// The thread is in the block that the memory was made for.
    #[inline(always)]
    unsafe fn own(self) -> Shared<u32> {
        self.counters.slice((thread::thread_idx_x() / ROW) as usize * RADIX, RADIX)
    }
}

/// Counts the buckets of the group's items in its own counters. A barrier must follow.
///
/// `bucket` returns the bucket of the lane's item in a row. Computing it again costs less than keeping it in registers.
///
/// # Safety
/// All threads of the block must call this; buckets are below [`RADIX`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn count<const ROW: u32, const ITEMS: usize>(bucket: impl Fn(usize) -> u32, memory: RankMemory<ROW>) {
    let mine = memory.own();
    for j in 0..ITEMS {
        mine.atomic_add(bucket(j) as usize, 1);
    }
}

/// What thread `b` learns about bucket `b`.
#[derive(Clone, Copy)]
pub struct BucketCount {
    /// The number of items of the tile in the bucket.
    pub count: u32,
    /// The number of items of the tile in lower buckets.
    pub before: u32,
}

/// Turns the counts of all groups into the first position of each bucket and group in the sorted tile. A barrier must
/// follow.
///
/// Thread `b < 256` calls `publish` with the tile's count of bucket `b`, before anything waits.
///
/// # Safety
/// All threads of the block, at least 256, must call this, after [`count`] and a barrier.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn place<const THREADS: u32, const ROW: u32>(
    memory: RankMemory<ROW>,
    publish: impl FnOnce(u32),
) -> BucketCount {
    let bucket = thread::thread_idx_x() as usize;
    let mut count = 0;
    if bucket < RADIX {
        for row in 0..(THREADS / ROW) as usize {
            count += memory.counters.get(row * RADIX + bucket);
        }
        publish(count);
    }
    let before = scan::exclusive_scan::<u32, Sum, THREADS>(count, Sum, memory.scratch).before;
    if bucket < RADIX {
        let mut place = before;
        for row in 0..(THREADS / ROW) as usize {
            let at = row * RADIX + bucket;
            let items = memory.counters.get(at);
            memory.counters.set(at, place);
            place += items;
        }
    }
    BucketCount { count, before }
}

/// Returns the position of each item in the sorted tile. If the counters are zero, returns its position among the items
/// of its bucket in its group instead, and counts them.
///
/// Per row, the lanes of a bucket set their bits in the half-warp's word of the bucket. Each of them then reads who they are, and
/// the position of the first one. The last one stores the position that follows.
///
/// # Safety
/// All threads of the block must call this: either after [`place`] and a barrier, with the same buckets as [`count`],
/// or with zeroed memory. The tile has fewer than 65,536 items.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn rank<const ITEMS: usize>(bucket: impl Fn(usize) -> u32, memory: RankMemory<HALF>) -> Ranks<ITEMS> {
    let words = memory.own();
    let own_bit = 1 << (HALF + thread::thread_idx_x() % HALF);
    let lower_bits = (own_bit - 1) & FULL << HALF;
    let mut ranks = Ranks { pairs: [0; ITEMS] };
    for j in 0..ITEMS {
        let bucket = bucket(j) as usize;
        words.atomic_rmw(Rmw::Or, bucket, own_bit);
        warp::sync_warp(FULL);
        let word = words.atomic_load(bucket);
        let place = (word & !(FULL << HALF)) + (word & lower_bits).count_ones();
        ranks.add(j, place);
        // All lanes must have read the word.
        warp::sync_warp(FULL);
        if word & !(own_bit | (own_bit - 1)) == 0 {
            words.atomic_store(bucket, place + 1);
        }
        // The next row must see the bits cleared and the position advanced.
        warp::sync_warp(FULL);
    }
    ranks
}

/// [`rank`] for groups that are whole warps: the positions are in other words than the bits.
///
/// Per row, the lanes of a bucket find each other by setting their bits in one word. The highest of these lanes takes positions for
/// all of them from the warp's counter.
///
/// # Safety
/// As for [`rank`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn rank_by_warps<const ITEMS: usize>(
    bucket: impl Fn(usize) -> u32,
    memory: RankMemory<LANES>,
) -> Ranks<ITEMS> {
    let places = memory.own();
    let peers = memory.peers.slice(warp_id() as usize * RADIX, RADIX);
    let mut ranks = Ranks { pairs: [0; ITEMS] };
    for j in 0..ITEMS {
        let bucket = bucket(j) as usize;
        peers.atomic_rmw(Rmw::Or, bucket, warp::lane_mask_eq());
        warp::sync_warp(FULL);
        let same = peers.atomic_load(bucket);
        let leader = 31 - same.leading_zeros();
        let before = (same & warp::lane_mask_lt()).count_ones();
        let mut place = 0;
        if same & warp::lane_mask_gt() == 0 {
            // The leader is the last of its peers, so it counts them all.
            place = places.atomic_add(bucket, before + 1);
        }
        ranks.add(j, warp::shuffle_idx(FULL, place, leader) + before);
        // All lanes took part in the shuffle, so all have read the word by now.
        if same & warp::lane_mask_gt() == 0 {
            peers.atomic_store(bucket, 0);
        }
        // The next row must see the word zeroed and the counter advanced.
        warp::sync_warp(FULL);
    }
    ranks
}

/// Returns a position for each item such that the tile is sorted, where items of one bucket may be in any order, and
/// what thread `b` learns about bucket `b`.
///
/// The warps share their counters, and the order in which atomic additions reach one is the order of its items. This
/// takes half as many accesses of shared memory as [`count`], [`place`] and [`rank`].
///
/// Thread `b < 256` calls `publish` with the tile's count of bucket `b`, before anything waits.
///
/// # Safety
/// All threads of the block, at least 256, must call this, with zeroed memory; buckets are below [`RADIX`]. `firsts`
/// has [`RADIX`] words outside of this memory. The tile has fewer than 65,536 items.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn rank_in_any_order<const THREADS: u32, const ROW: u32, const ITEMS: usize>(
    bucket: impl Fn(usize) -> u32,
    memory: RankMemory<ROW>,
    firsts: Shared<u32>,
    publish: impl FnOnce(u32),
) -> (Ranks<ITEMS>, BucketCount) {
    let mut ranks = Ranks { pairs: [0; ITEMS] };
    for j in 0..ITEMS {
        ranks.add(j, memory.counters.atomic_add(bucket(j) as usize, 1));
    }
    thread::sync_threads();
    let own = thread::thread_idx_x() as usize;
    let mut count = 0;
    if own < RADIX {
        count = memory.counters.get(own);
        publish(count);
    }
    let before = scan::exclusive_scan::<u32, Sum, THREADS>(count, Sum, memory.scratch).before;
    if own < RADIX {
        firsts.set(own, before);
    }
    thread::sync_threads();
    for j in 0..ITEMS {
        ranks.add(j, firsts.get(bucket(j) as usize));
    }
    (ranks, BucketCount { count, before })
}

/// The positions of a lane's items, two per register: a tile has fewer than 65,536 items.
#[derive(Clone, Copy)]
pub struct Ranks<const ITEMS: usize> {
    /// Item `j` is half of word `j / 2`. The upper half of the array is never accessed and takes no registers.
    pairs: [u32; ITEMS],
}

impl<const ITEMS: usize> Ranks<ITEMS> {
    /// Adds to the position of item `j`. The sum stays below 65,536.
    #[inline(always)]
    fn add(&mut self, j: usize, rank: u32) {
        self.pairs[j / 2] += rank << (16 * (j % 2));
    }

    /// Returns the position of item `j`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, j: usize) -> usize {
        (self.pairs[j / 2] >> (16 * (j % 2)) & 0xFFFF) as usize
    }
}

/// The buckets of a lane's items, four per register.
#[derive(Clone, Copy)]
pub struct PackedBuckets<const ITEMS: usize> {
    /// Item `j` is a byte of word `j / 4`. The rest of the array is never accessed and takes no registers.
    quads: [u32; ITEMS],
}

impl<const ITEMS: usize> PackedBuckets<ITEMS> {
    /// All zero. Each item may be set once.
    #[inline(always)]
    #[must_use]
    #[allow(clippy::new_without_default, reason = "not a value to be made by generic code")]
    pub const fn new() -> Self {
        Self { quads: [0; ITEMS] }
    }

    /// Sets the bucket of item `j`.
    #[inline(always)]
    pub fn set(&mut self, j: usize, bucket: u32) {
        self.quads[j / 4] |= bucket << (8 * (j % 4));
    }

    /// Returns the bucket of item `j`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, j: usize) -> usize {
        (self.quads[j / 4] >> (8 * (j % 4)) & 0xFF) as usize
    }
}
