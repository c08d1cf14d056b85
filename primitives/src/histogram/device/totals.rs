//! The kernels that add up the elements of each bin, and that find the first one.

use super::kernel::{THREADS, each};
use crate::arch::warp::{FULL, LANES, lane_id, lane_mask_lt, match_any};
use crate::arch::{Order, Rmw, Scope, thread};
use crate::form::kernel;
use crate::input::{Input, SourceArg};
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// The words of a block's shared memory: 48 KiB.
const WORDS: usize = 3 << 12;

/// The most bins that a block keeps in shared memory: each takes three words.
const BINS: usize = WORDS / 3;

/// The first element of a bin without elements.
pub(crate) const NO_ELEMENT: u32 = u32::MAX;

/// The words of some bins in shared memory, in up to 32 copies, one for each lane. The copies of a bin lie side by side, so that the lanes of
/// a warp with equal bins do not meet in a bank.
#[derive(Clone, Copy)]
struct Copies {
    words: Shared<u32>,
    bins: u32,
    /// The number of copies is a power of two: this is its logarithm.
    log: u32,
}

impl Copies {
    /// `bins` is at least 1, and there is room for `each` words of them.
    #[inline(always)]
    fn new(words: Shared<u32>, bins: u32, each: u32) -> Self {
        // The largest power of two for which all copies fit, but no more than there are lanes.
        let copies = words.len() as u32 / each / bins;
        Self { words, bins, log: if copies >= LANES { LANES.ilog2() } else { 31 - copies.leading_zeros() } }
    }

    #[inline(always)]
    fn copies(self) -> u32 {
        1 << self.log
    }

    /// Returns the place of a word of a bin in this lane's copy, or in that of the lane `other` above it.
    #[inline(always)]
    fn at(self, bin: u32, word: u32, other: u32) -> usize {
        ((word * self.bins + bin) << self.log | (lane_id() + other) & (self.copies() - 1)) as usize
    }

    /// Sets the first `each` words of all bins to zero.
    ///
    /// # Safety
    /// All threads of the block call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn clear(self, each: u32) {
        let mut i = thread::thread_idx_x();
        while i < (self.bins * each) << self.log {
            self.words.set(i as usize, 0);
            i += THREADS;
        }
    }
}

/// Adds to a number of 128 bits in two words, the lower one first.
///
/// # Safety
/// There is such a number, and the words are only accessed atomically.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn add(totals: GlobalMut<u64>, bin: usize, number: u128) {
    let low = number as u64;
    let before = totals.atomic_add(2 * bin, low, Scope::Gpu, Order::Relaxed);
    // A sum that wraps is less than what was added. Each time, one is carried: so the words are right when all have been added.
    let high = ((number >> 64) as u64).wrapping_add((before.wrapping_add(low) < low) as u64);
    if high != 0 {
        totals.atomic_add(2 * bin + 1, high, Scope::Gpu, Order::Relaxed);
    }
}

/// Adds up the elements of each bin. An element is a bin, and the lower and the upper half of an integer of 64 bits, whose sign
/// is the bit `sign`, if that is not 0.
///
/// A block adds in shared memory: three words of 32 bits for each bin, and up to 32 copies of them, as many as there is room for. An
/// atomic addition returns what was there, which says whether to carry to the next word. For small numbers the upper words do not
/// change, and an element takes one atomic. In the end the block adds its sums to the totals. Beyond 4096 bins, elements are added to
/// the totals one by one.
///
/// Cost: each element is read once. 2^27 elements of 8 bytes with bins of 4 take 393 µs at 4.1 TB/s. Beyond that, one to three atomics in shared
/// memory per element.
///
/// # Safety
/// The launch has any number of blocks, at least one, each of which takes fewer than 2^32 elements. `totals` has two words for
/// each bin, all zero. While the kernel runs, nothing writes the input, and nothing else uses the totals.
#[kernel(listed, threads = THREADS, shared = shared_bytes::<u32>(WORDS), native = crate::histogram::native::totals::sum_bins)]
pub unsafe fn sum_bins<I: Input<[u32; 3]>>(input: I, totals: GlobalMut<u64>, sign: u32) {
    let words = SharedMemory::new().take::<u32>(WORDS);
    let bins = totals.len() / 2;
    // All bits above those of a negative number are set.
    let above = |high: u32| if high & sign != 0 { u32::MAX } else { 0 };
    if bins > BINS {
        return each::<[u32; 3], I, 1>(input, |[bin, low, high], is_there| {
            if is_there & ((bin as usize) < bins) {
                let above = above(high) as u64;
                let number = low as u128 | (high as u128) << 32 | ((above << 32 | above) as u128) << 64;
                add(totals, bin as usize, number);
            }
        });
    }

    let local = Copies::new(words, bins as u32, 3);
    local.clear(3);
    thread::sync_threads();
    each::<[u32; 3], I, 1>(input, |[bin, low, high], is_there| {
        if is_there & (bin < local.bins) {
            let mut above = above(high);
            let mut high = high;
            if low != 0 {
                let before = words.atomic_add(local.at(bin, 0, 0), low);
                let carry = (before.wrapping_add(low) < low) as u32;
                high = high.wrapping_add(carry);
                above = above.wrapping_add((high < carry) as u32);
            }
            if high != 0 {
                let before = words.atomic_add(local.at(bin, 1, 0), high);
                above = above.wrapping_add((before.wrapping_add(high) < high) as u32);
            }
            if above != 0 {
                words.atomic_add(local.at(bin, 2, 0), above);
            }
        }
    });
    thread::sync_threads();
    let mut bin = thread::thread_idx_x();
    while bin < local.bins {
        let (mut low, mut high, mut above) = (0u64, 0u64, 0u32);
        let mut copy = 0;
        while copy < local.copies() {
            low += words.get(local.at(bin, 0, copy)) as u64;
            high += words.get(local.at(bin, 1, copy)) as u64;
            above = above.wrapping_add(words.get(local.at(bin, 2, copy)));
            copy += 1;
        }
        let lower = low as u128 + ((high as u128) << 32);
        // The sum has 96 bits.
        let above = above.wrapping_add((lower >> 64) as u32);
        let upper = if sign != 0 { above as i32 as i64 as u64 } else { above as u64 };
        let number = lower as u64 as u128 | (upper as u128) << 64;
        if number != 0 {
            add(totals, bin as usize, number);
        }
        bin += THREADS;
    }
}

/// Counts the elements of each bin, and finds the first one of each. An element is its bin, in the upper half, and its index.
///
/// A block has counters in shared memory, in up to 32 copies, and the least index of each bin so far. It looks at this before it changes
/// it: after the first elements that is rare. Beyond 4096 bins, both are in global memory.
///
/// Cost: each element is read once. 2^27 elements of 4 bytes take 131 µs at 4.1 TB/s. Beyond that, one atomic and one load in shared memory per
/// element.
///
/// # Safety
/// The launch has any number of blocks, at least one, each of which takes fewer than 2^32 elements. `counts` and `firsts` have an element
/// for each bin, 0 and [`NO_ELEMENT`]. While the kernel runs, nothing writes the input, and nothing else uses the other buffers.
#[kernel(listed, threads = THREADS, shared = shared_bytes::<u32>(WORDS), native = crate::histogram::native::totals::find_bins)]
pub unsafe fn find_bins<I: Input<u64>>(input: I, counts: GlobalMut<u32>, firsts: GlobalMut<u32>) {
    let mut memory = SharedMemory::new();
    let (words, own) = (memory.take::<u32>(WORDS - BINS), memory.take::<u32>(BINS));
    let bins = counts.len();
    let found = |bin: u32, count: u32, first: u32| {
        counts.atomic_add(bin as usize, count, Scope::Gpu, Order::Relaxed);
        if first < firsts.atomic_load(bin as usize, Scope::Gpu, Order::Relaxed) {
            firsts.atomic_rmw(Rmw::Min, bin as usize, first, Scope::Gpu, Order::Relaxed);
        }
    };
    if bins > BINS {
        return each::<u64, I, 2>(input, |element, is_there| {
            let (bin, index) = ((element >> 32) as u32, element as u32);
            let is_counted = is_there & ((bin as usize) < bins);
            let same = match_any(FULL, if is_counted { bin } else { NO_ELEMENT });
            // The lanes of a warp do not have their elements in order.
            if is_counted {
                let count = if same & lane_mask_lt() == 0 { same.count_ones() } else { 0 };
                found(bin, count, index);
            }
        });
    }

    let local = Copies::new(words, bins as u32, 1);
    local.clear(1);
    let mut bin = thread::thread_idx_x();
    while bin < local.bins {
        own.set(bin as usize, NO_ELEMENT);
        bin += THREADS;
    }
    thread::sync_threads();
    each::<u64, I, 2>(input, |element, is_there| {
        let (bin, index) = ((element >> 32) as u32, element as u32);
        if is_there & (bin < local.bins) {
            words.atomic_add(local.at(bin, 0, 0), 1);
            if index < own.atomic_load(bin as usize) {
                own.atomic_rmw(Rmw::Min, bin as usize, index);
            }
        }
    });
    thread::sync_threads();
    let mut bin = thread::thread_idx_x();
    while bin < local.bins {
        let mut count = 0;
        let mut copy = 0;
        while copy < local.copies() {
            count += words.get(local.at(bin, 0, copy));
            copy += 1;
        }
        if count != 0 {
            found(bin, count, own.get(bin as usize));
        }
        bin += THREADS;
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    SumBins<SourceArg>;
    FindBins<SourceArg>;
}
