//! The kernel of histograms.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::bins::{Bins, ByteBins, HoleBins, RangeBins};
use super::sample::NONE;
use crate::arch::memory::Word;
use crate::arch::warp::{FULL, LANES, lane_id, lane_mask_lt, match_any, warp_id};
use crate::arch::{Order, Scope, thread};
use crate::form::{Buffer, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::sealed::Sealed;
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// The threads per block.
pub(crate) const THREADS: u32 = 512;

/// The accesses of a thread in flight.
pub(crate) const AT_ONCE: usize = 2;

/// The counters of a block in shared memory: 32 KiB.
pub(crate) const COUNTERS: usize = 1 << 13;

/// A count: `u32` or `u64`.
pub trait Count: Word + From<u32> + Sealed {}

impl Count for u32 {}
impl Count for u64 {}

/// The counts that a kernel adds to: `u32` or `u64`, one of which there are none. A block adds few sums, and beyond the counters
/// in shared memory the atomic itself takes far longer than to ask which. So no kernel exists for each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub short: GlobalMut<u32>,
    pub long: GlobalMut<u64>,
}

// SAFETY: `repr(C)`: two views.
unsafe impl Param for Counts {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.short.buffers(name, visit);
        self.long.buffers(name, visit);
    }
}

impl Counts {
    /// Returns the number of counts.
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Adds to a count.
    ///
    /// # Safety
    /// There is such a count, and counts are only accessed atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn add(self, bin: usize, number: u32) {
        if self.long.is_empty() {
            self.short.atomic_add(bin, number, Scope::Gpu, Order::Relaxed);
        } else {
            self.long.atomic_add(bin, number as u64, Scope::Gpu, Order::Relaxed);
        }
    }
}

/// Some GPUs would spill registers for elements of two bytes, of which sixteen are in flight, to have a fourth block.
const fn min_blocks<H>() -> u32 {
    if size_of::<H>() == 2 { 3 } else { 0 }
}

/// Adds the number of elements in each bin to the counts.
///
/// Blocks go over the input with accesses of 16 bytes, two per thread in flight. A block counts in its own shared memory and
/// adds the sums to the counts at the end. There are 8192 counters: up to 256 bins have 32 each, one per lane. The counters of
/// a lane lie in a bank of their own, so the lanes of a warp never wait for each other, whatever the data. With more bins,
/// fewer lanes share a copy, up to 8192 bins. Beyond that, elements are counted in global memory, except those of [`Frequent`] bins.
/// The lanes of a warp that have the same bin then add together, so that equal elements do not wait in line.
///
/// Cost: each element is read once. 2^27 bytes take 33 µs at 4.1 TB/s, 2^27 elements of 4 bytes 131 µs. Beyond that, one atomic
/// in shared memory per element, which bounds the rate for bytes.
///
/// # Safety
/// The launch has any number of blocks, at least one, each of which takes fewer than 2^32 elements. `bins` satisfies the
/// requirements of its type. While the kernel runs, nothing writes the input and the memory of `bins`, and the counts are only
/// accessed atomically.
#[kernel(
    listed,
    threads = THREADS,
    shared = shared_bytes::<u32>(COUNTERS) + shared_bytes::<H>(B::STAGED),
    min_blocks = min_blocks::<H>(),
    native = crate::histogram::native::count_bins
)]
pub unsafe fn count_bins<H: RegisterRepr, I: Input<H>, B: Bins<H>, const VEC: usize>(
    input: I,
    bins: B,
    counts: Counts,
) {
    let mut memory = SharedMemory::new();
    let counters = memory.take::<u32>(COUNTERS);
    let staged = memory.take::<H>(B::STAGED);
    bins.stage(staged);
    if B::MAY_BE_MANY && counts.len() > COUNTERS {
        let mut frequent = Frequent::new(counters);
        frequent.clear();
        thread::sync_threads();
        each::<H, I, VEC>(input, |item, is_there| {
            let bin = bins.bin(item, staged);
            let is_counted = is_there & ((bin as usize) < counts.len());
            let same = match_any(FULL, if is_counted { bin } else { NONE });
            if is_counted && same & lane_mask_lt() == 0 {
                frequent.add(bin, same.count_ones(), counts);
            }
        });
        thread::sync_threads();
        return frequent.finish(counts);
    }

    let local = Local::new(counters, counts.len() as u32);
    local.clear();
    thread::sync_threads();
    each::<H, I, VEC>(input, |item, is_there| {
        let bin = bins.bin(item, staged);
        if is_there & (bin < local.bins) {
            local.count(bin);
        }
    });
    thread::sync_threads();
    let mut bin = thread::thread_idx_x();
    while bin < local.bins {
        let sum = local.sum(bin);
        if sum > 0 {
            counts.add(bin as usize, sum);
        }
        bin += THREADS;
    }
}

/// A block's counters of some bins, where there are more bins than counters. A bin has one place, which belongs to the first bin that
/// comes to it. Bins with many elements come early. So most of their elements are counted here, and the global counters
/// of these bins are not what all blocks wait for. A thread that rarely meets such a bin stops looking for them.
struct Frequent {
    owners: Shared<u32>,
    numbers: Shared<u32>,
    /// How often this thread may still miss.
    patience: i32,
}

impl Frequent {
    const PLACES: usize = COUNTERS / 2;

    /// A hit makes up for so many misses: below a fifth of hits, a thread gives up.
    const HIT: i32 = 4;
    const PATIENCE: i32 = 32;

    /// # Safety
    /// There are [`COUNTERS`] counters.
    #[inline(always)]
    unsafe fn new(counters: Shared<u32>) -> Self {
        let (owners, numbers) = (counters.slice(0, Self::PLACES), counters.slice(Self::PLACES, Self::PLACES));
        Self { owners, numbers, patience: Self::PATIENCE }
    }

    /// # Safety
    /// All threads of the block call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn clear(&self) {
        let mut place = thread::thread_idx_x() as usize;
        while place < Self::PLACES {
            self.owners.set(place, NONE);
            self.numbers.set(place, 0);
            place += THREADS as usize;
        }
    }

    /// Adds to the count of a bin, which is not [`NONE`].
    ///
    /// # Safety
    /// The counters were cleared before the last barrier. There is such a count, and counts are only accessed atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn add(&mut self, bin: u32, number: u32, counts: Counts) {
        if self.patience < 0 {
            return counts.add(bin as usize, number);
        }
        let place = bin as usize % Self::PLACES;
        let mut owner = self.owners.atomic_load(place);
        if owner == NONE {
            owner = self.owners.compare_exchange(place, NONE, bin);
        }
        if owner == NONE || owner == bin {
            self.numbers.atomic_add(place, number);
            self.patience = (self.patience + Self::HIT).min(Self::PATIENCE);
        } else {
            counts.add(bin as usize, number);
            self.patience -= 1;
        }
    }

    /// Adds what was counted here to the counts.
    ///
    /// # Safety
    /// All threads of the block call this, after a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn finish(&self, counts: Counts) {
        let mut place = thread::thread_idx_x() as usize;
        while place < Self::PLACES {
            let number = self.numbers.get(place);
            if number > 0 {
                counts.add(self.owners.get(place) as usize, number);
            }
            place += THREADS as usize;
        }
    }
}

/// A block's counters: up to 32 copies, side by side for each bin.
#[derive(Clone, Copy)]
struct Local {
    counters: Shared<u32>,
    bins: u32,
    /// The number of copies is a power of two: this is its logarithm.
    copies_log: u32,
}

impl Local {
    /// `bins` is at most [`COUNTERS`], and at least 1.
    #[inline(always)]
    fn new(counters: Shared<u32>, bins: u32) -> Self {
        // The largest power of two for which all copies fit.
        let copies_log = (COUNTERS as u32).ilog2() - (32 - (bins - 1).leading_zeros());
        Self { counters, bins, copies_log: copies_log.min(LANES.ilog2()) }
    }

    /// Returns the counter of this lane, or of the lane `other` above it, for a bin.
    #[inline(always)]
    fn at(self, bin: u32, other: u32) -> usize {
        let copies = 1 << self.copies_log;
        (bin << self.copies_log | (lane_id() + other) & (copies - 1)) as usize
    }

    /// # Safety
    /// All threads of the block call this.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn clear(self) {
        let mut i = thread::thread_idx_x();
        while i < self.bins << self.copies_log {
            self.counters.set(i as usize, 0);
            i += THREADS;
        }
    }

    /// # Safety
    /// `bin` is less than the number of bins, and the counters were cleared before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn count(self, bin: u32) {
        self.counters.atomic_add(self.at(bin, 0), 1);
    }

    /// Returns the sum of the copies. Neighbouring lanes read different copies, and so different banks.
    ///
    /// # Safety
    /// `bin` is less than the number of bins, and all threads have counted before the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn sum(self, bin: u32) -> u32 {
        let mut sum = 0;
        let mut copy = 0;
        while copy < 1 << self.copies_log {
            sum += self.counters.get(self.at(bin, copy));
            copy += 1;
        }
        sum
    }
}

/// Calls `visit` with all elements of the grid's input, each on one thread. The lanes of a warp call it together; where a lane
/// has no element, the second argument is false.
///
/// # Safety
/// All threads of the grid call this, and the input can be read.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn each<H: RegisterRepr, I: Input<H>, const VEC: usize>(input: I, mut visit: impl FnMut(H, bool)) {
    let len = input.count();
    let (thread, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    let (threads, blocks) = (THREADS as usize, thread::grid_dim_x() as usize);
    let lead = input.lead::<VEC>().min(len);
    if lead >= VEC {
        // No rows, or fewer elements than one: one by one, four in flight.
        const GROUP: usize = 2 * AT_ONCE;
        let mut start = block * threads * GROUP;
        while start < len {
            let mut items = [H::zeroed(); GROUP];
            for i in 0..GROUP {
                let at = start + i * threads + thread;
                if at < len {
                    items[i] = input.item(at);
                }
            }
            for i in 0..GROUP {
                visit(items[i], start + i * threads + thread < len);
            }
            start += blocks * threads * GROUP;
        }
        return;
    }
    // Rows from the first aligned address on. The elements before and after them are fewer than a warp has lanes.
    let whole = (len - lead) / VEC;
    let tile = threads * AT_ONCE;
    let mut start = block * tile;
    while start + tile <= whole {
        let mut items = [[H::zeroed(); VEC]; AT_ONCE];
        for i in 0..AT_ONCE {
            items[i] = input.row(lead + (start + thread) * VEC, i * threads * VEC);
        }
        for i in 0..AT_ONCE {
            for j in 0..VEC {
                visit(items[i][j], true);
            }
        }
        start += blocks * tile;
    }
    // The last tile, if it is not complete, is a loop of its own, so that the others need no comparisons.
    let end = (start + tile).min(whole);
    while start < end {
        let at = start + thread;
        let is_there = at < end;
        let items = input.row::<VEC>(lead + if is_there { at } else { start } * VEC, 0);
        for j in 0..VEC {
            visit(items[j], is_there);
        }
        start += threads;
    }
    if VEC > 1 && block == 0 && warp_id() == 0 {
        let at = if thread < lead { thread } else { whole * VEC + thread };
        visit(if at < len { input.item(at) } else { H::zeroed() }, at < len);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    // Accesses of 16 bytes, if the elements divide them.
    family count_bytes(H, VEC) {
        for H in [u8], VEC = 16: CountBins<H, SourceArg, ByteBins, VEC>;
    }
    family count_bins(H, VEC) {
        for H in [u8], VEC = 16: CountBins<H, SourceArg, HoleBins, VEC>;
        for H in [u16], VEC = 8: CountBins<H, SourceArg, HoleBins, VEC>;
        for H in [u32], VEC = 4: CountBins<H, SourceArg, HoleBins, VEC>;
        for H in [u64], VEC = 2: CountBins<H, SourceArg, HoleBins, VEC>;
        for H in [[u32; 3], [u64; 2], [u64; 4]], VEC = 1:
            CountBins<H, SourceArg, HoleBins, VEC>;
    }
    family count_ranges(H, VEC) {
        for H in [u8], VEC = 16: CountBins<H, SourceArg, RangeBins<H>, VEC>;
        for H in [u16], VEC = 8: CountBins<H, SourceArg, RangeBins<H>, VEC>;
        for H in [u32], VEC = 4: CountBins<H, SourceArg, RangeBins<H>, VEC>;
        for H in [u64], VEC = 2: CountBins<H, SourceArg, RangeBins<H>, VEC>;
    }
}
