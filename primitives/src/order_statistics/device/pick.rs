//! The bins in which the wanted ranks lie.

use super::cuts::{MAX_RANKS, NO_SLOT};
use super::kernel::THREADS;
use crate::arch::thread;
use crate::arch::warp::LANES;
use crate::block::scan;
use crate::monoid::Sum;
use crate::top_k::device::histogram::BINS;
use crate::view::{Global, Shared, SharedMemory, shared_bytes};

/// The bins per thread.
const PER_THREAD: usize = BINS / THREADS as usize;

/// The lowest bit of the number of slots, where it shares a word with a number of elements.
const SLOTS: u32 = 48;

/// The wanted bins, in shared memory, and what is needed to find them.
#[derive(Clone, Copy)]
pub(crate) struct Picker {
    /// The slot of each bin.
    pub slots: Shared<u32>,
    /// The slot of each rank; [`NO_SLOT`] if there are not so many elements.
    pub of_ranks: Shared<u32>,
    warp_totals: Shared<u64>,
    ends: Shared<u32>,
}

/// What is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Picked {
    /// The number of bins in which ranks lie.
    pub slots: u32,
    /// The number of elements in these bins.
    pub kept: u64,
    /// The first and the last of these bins. The first one is larger if there is none.
    pub first: usize,
    pub last: usize,
}

impl Picker {
    /// Returns the shared memory that it takes.
    pub const fn bytes() -> usize {
        shared_bytes::<u32>(BINS)
            + shared_bytes::<u32>(MAX_RANKS)
            + shared_bytes::<u64>((THREADS / LANES) as usize)
            + shared_bytes::<u32>(2)
    }

    /// Takes its shared memory.
    ///
    /// # Safety
    /// The kernel's shared memory has room for it.
    #[inline(always)]
    pub unsafe fn take(memory: &mut SharedMemory) -> Self {
        Self {
            slots: memory.take(BINS),
            of_ranks: memory.take(MAX_RANKS),
            warp_totals: memory.take((THREADS / LANES) as usize),
            ends: memory.take(2),
        }
    }

    /// Finds the bins in which `count` ranks lie, and numbers them in order: these are the slots. `rank` returns a rank
    /// among the elements that are counted. For each rank, one thread calls `note` with its number and its rank among the
    /// elements of the wanted bins; `u64::MAX` if there are not so many elements.
    ///
    /// A thread has eight adjacent bins, and looks at all ranks.
    ///
    /// # Safety
    /// All threads of the block must call this once, with the same arguments. There are [`BINS`] counts, and at most
    /// [`MAX_RANKS`] ranks.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn pick(
        self,
        counts: Global<u64>,
        count: usize,
        rank: impl Fn(usize) -> u64,
        note: impl Fn(usize, u64),
    ) -> Picked {
        let thread = thread::thread_idx_x() as usize;
        let first = thread * PER_THREAD;
        let (mut own, mut sum) = ([0; PER_THREAD], 0);
        for i in 0..PER_THREAD {
            own[i] = counts.get(first + i);
            sum += own[i];
        }
        if thread < MAX_RANKS {
            self.of_ranks.set(thread, NO_SLOT);
        }
        if thread == 0 {
            self.ends.set(0, 1);
            self.ends.set(1, 0);
        }
        let sums = scan::exclusive_scan::<u64, Sum, THREADS>(sum, Sum, self.warp_totals);
        let (mut wanted, mut at) = (0u32, 0);
        while at < count {
            let rank = rank(at);
            if rank >= sums.before && rank - sums.before < sum {
                wanted |= 1 << bin_of(own, rank - sums.before).0;
            }
            at += 1;
        }
        let mut kept = 0;
        for i in 0..PER_THREAD {
            kept += if wanted >> i & 1 != 0 { own[i] } else { 0 };
        }
        // The next scan uses the same memory.
        thread::sync_threads();
        let both = (wanted.count_ones() as u64) << SLOTS | kept;
        let both = scan::exclusive_scan::<u64, Sum, THREADS>(both, Sum, self.warp_totals);
        let (slot, kept_before) = ((both.before >> SLOTS) as u32, both.before & ((1 << SLOTS) - 1));
        let slots = (both.total >> SLOTS) as u32;
        for i in 0..PER_THREAD {
            let is_wanted = wanted >> i & 1 != 0;
            self.slots.set(first + i, if is_wanted { slot + (wanted & ((1 << i) - 1)).count_ones() } else { NO_SLOT });
        }
        if wanted != 0 {
            if slot == 0 {
                self.ends.set(0, first as u32 + wanted.trailing_zeros());
            }
            if slot + wanted.count_ones() == slots {
                self.ends.set(1, first as u32 + wanted.ilog2());
            }
        }
        at = 0;
        while at < count {
            let rank = rank(at);
            if rank >= sums.before && rank - sums.before < sum {
                let (bin, rest) = bin_of(own, rank - sums.before);
                let mut rank = kept_before + rest;
                for i in 0..PER_THREAD {
                    rank += if (i as u32) < bin && wanted >> i & 1 != 0 { own[i] } else { 0 };
                }
                self.of_ranks.set(at, slot + (wanted & ((1 << bin) - 1)).count_ones());
                note(at, rank);
            } else if rank >= sums.total && thread == 0 {
                note(at, u64::MAX);
            }
            at += 1;
        }
        thread::sync_threads();
        let (first, last) = (self.ends.get(0) as usize, self.ends.get(1) as usize);
        Picked { slots, kept: both.total & ((1 << SLOTS) - 1), first, last }
    }
}

/// Returns the bin of a thread in which a rank lies, and the rank in it. The bins have more elements.
#[inline(always)]
fn bin_of(counts: [u64; PER_THREAD], rank: u64) -> (u32, u64) {
    let (mut start, mut bin, mut rest) = (0, 0, 0);
    for i in 0..PER_THREAD {
        if rank >= start && rank - start < counts[i] {
            (bin, rest) = (i as u32, rank - start);
        }
        start += counts[i];
    }
    (bin, rest)
}
