//! Counting digits in a block, and the digit that the wanted numbers go down to.

use super::code::{DIGIT_BITS, Digit};
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, shuffle_idx};
use crate::arch::{Order, Scope};
use crate::block::scan;
use crate::monoid::Sum;
use crate::sort::ShortCode;
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};
use bytemuck::Zeroable;

/// The number of digits.
pub(crate) const BINS: usize = 1 << DIGIT_BITS;

/// The counts of a block's digits, in shared memory, and what is needed to add them up.
#[derive(Clone, Copy)]
pub(crate) struct Histogram<const THREADS: u32> {
    bins: Shared<u32>,
    warp_totals: Shared<u64>,
    /// For numbers of this block alone.
    own_totals: Shared<u32>,
    found: Shared<u64>,
}

/// The digit that the wanted numbers go down to.
#[derive(Clone, Copy)]
pub(crate) struct Pick {
    pub digit: u32,
    /// The number of numbers with a larger digit: fewer than wanted.
    pub above: u64,
    /// The number of numbers with this digit: with those above, at least as many as wanted, if there are.
    pub count: u64,
}

/// A number that separates the wanted numbers from the others.
#[derive(Clone, Copy)]
pub(crate) struct Cutoff {
    pub least: [u64; 2],
    /// The number of numbers that are not below it.
    pub kept: u64,
}

impl<const THREADS: u32> Histogram<THREADS> {
    /// The bins per thread.
    const PER_THREAD: usize = BINS / THREADS as usize;

    /// Returns the shared memory that it takes.
    pub const fn bytes() -> usize {
        let warps = (THREADS / LANES) as usize;
        shared_bytes::<u32>(BINS) + shared_bytes::<u64>(warps) + shared_bytes::<u32>(warps) + shared_bytes::<u64>(3)
    }

    /// Takes its shared memory.
    ///
    /// # Safety
    /// The kernel's shared memory has room for it.
    #[inline(always)]
    pub unsafe fn take(memory: &mut SharedMemory) -> Self {
        let warps = (THREADS / LANES) as usize;
        Self {
            bins: memory.take(BINS),
            warp_totals: memory.take(warps),
            own_totals: memory.take(warps),
            found: memory.take(3),
        }
    }

    /// Sets all counts to 0.
    ///
    /// # Safety
    /// All threads of the block must call this, with barriers before and after.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn clear(self) {
        let mut bin = thread::thread_idx_x() as usize;
        while bin < BINS {
            self.bins.set(bin, 0);
            bin += THREADS as usize;
        }
    }

    /// Counts the digit of each lane that is active. If all of them have the same one, it is counted once: many equal
    /// digits would otherwise wait for each other.
    ///
    /// # Safety
    /// All lanes of the warp must call this, between barriers that separate it from the other calls.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add(self, digit: u32, is_active: bool) {
        let active = ballot(FULL, is_active);
        if active == 0 {
            return;
        }
        let first = active.trailing_zeros();
        let same = ballot(FULL, is_active & (digit == shuffle_idx(FULL, digit, first)));
        if same == active {
            if lane_id() == first {
                self.bins.atomic_add(digit as usize, active.count_ones());
            }
        } else if is_active {
            self.bins.atomic_add(digit as usize, 1);
        }
    }

    /// Counts digits of all lanes. If all of them are the same, they are counted once.
    ///
    /// # Safety
    /// Same as [`add`](Self::add).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add_all<const VEC: usize, const ROWS: usize>(self, digits: [[u32; VEC]; ROWS]) {
        let first = shuffle_idx(FULL, digits[0][0], 0);
        let mut are_same = true;
        for row in 0..ROWS {
            for i in 0..VEC {
                are_same &= digits[row][i] == first;
            }
        }
        if ballot(FULL, are_same) == FULL {
            if lane_id() == 0 {
                self.bins.atomic_add(first as usize, LANES * (VEC * ROWS) as u32);
            }
        } else {
            for row in 0..ROWS {
                for i in 0..VEC {
                    self.bins.atomic_add(digits[row][i] as usize, 1);
                }
            }
        }
    }

    /// Returns the digit that the `wanted` largest numbers of this block go down to.
    ///
    /// # Safety
    /// Same as [`pick`](Self::pick).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn pick_own(self, wanted: u64) -> Pick {
        // A block counts fewer than 2^32 numbers.
        let sums = scan::exclusive_scan::<u32, Sum, THREADS>(Self::sum(|bin| self.bins.get(bin)), Sum, self.own_totals);
        self.pick_from(|bin| self.bins.get(bin) as u64, wanted, sums.before as u64, sums.total as u64)
    }

    /// Returns a digit such that the block need not count smaller ones: at least `wanted` of the numbers that it has counted
    /// have this digit or a larger one. As long as it has counted fewer, every number may be wanted: 0.
    ///
    /// # Safety
    /// Same as [`pick`](Self::pick).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn least_needed(self, wanted: u64) -> u32 {
        let pick = self.pick_own(wanted);
        if pick.above + pick.count < wanted { 0 } else { pick.digit }
    }

    /// Returns the digit that the `wanted` largest numbers go down to, where `count` counts digits. If there are fewer
    /// numbers, that is the smallest digit that occurs; 0 if there are none.
    ///
    /// # Safety
    /// All threads of the block must call this, with a barrier before it and another one before the next call.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn pick(self, count: impl Fn(usize) -> u64, wanted: u64) -> Pick {
        let sums = scan::exclusive_scan::<u64, Sum, THREADS>(Self::sum(&count), Sum, self.warp_totals);
        self.pick_from(count, wanted, sums.before, sums.total)
    }

    /// Returns the largest digit of the thread: thread 0 has the largest ones.
    #[inline(always)]
    fn last() -> usize {
        BINS - 1 - thread::thread_idx_x() as usize * Self::PER_THREAD
    }

    /// Returns the sum of the thread's counts.
    #[inline(always)]
    fn sum<N: core::ops::AddAssign + Zeroable>(count: impl Fn(usize) -> N) -> N {
        let mut own = N::zeroed();
        for i in 0..Self::PER_THREAD {
            own += count(Self::last() - i);
        }
        own
    }

    /// [`pick`](Self::pick), where the threads before this one have counted `before` numbers, and all of them `total`.
    ///
    /// # Safety
    /// Same as [`pick`](Self::pick).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn pick_from(self, count: impl Fn(usize) -> u64, wanted: u64, before: u64, total: u64) -> Pick {
        let (last, own) = (Self::last(), Self::sum(&count));
        let wanted = if wanted < total { wanted } else { total };
        let is_empty = total == 0 && thread::thread_idx_x() == THREADS - 1;
        if is_empty || before < wanted && wanted <= before + own {
            let mut above = before;
            let mut bin = last;
            // The sum reaches `wanted` within the thread's bins.
            while bin > last + 1 - Self::PER_THREAD && above + count(bin) < wanted {
                above += count(bin);
                bin -= 1;
            }
            // If there are not more than wanted, all are taken.
            self.found.set(0, bin as u64);
            self.found.set(1, above);
            self.found.set(2, count(bin));
        }
        thread::sync_threads();
        Pick { digit: self.found.get(0) as u32, above: self.found.get(1), count: self.found.get(2) }
    }

    /// Returns a number such that at least `wanted` of the block's numbers are not below it. It goes over their digits, from
    /// the highest, until there are no more than `slack` others, or no more digits. Number `i` of a thread is number
    /// `i * THREADS + thread` of the block.
    ///
    /// # Safety
    /// All threads of the block must call this, with a barrier before the memory is used again. The block has `len` numbers
    /// of `bits` bits, at least `wanted`, which is not 0.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn cutoff<C: ShortCode, const PER: usize>(
        self,
        codes: [C; PER],
        len: usize,
        bits: u32,
        wanted: u64,
        slack: u64,
    ) -> Cutoff {
        let (mut prefix, mut above, mut level) = ([0; 2], 0, 0);
        loop {
            let digit = Digit::of(bits, level);
            self.clear();
            thread::sync_threads();
            for i in 0..PER {
                let first = i * THREADS as usize;
                // Most of the room for numbers is empty.
                if first < len {
                    let is_there = first + (thread::thread_idx_x() as usize) < len;
                    let is_tie = level == 0 || codes[i].bits_from(digit.end()) == C::of_halves(prefix);
                    self.add(digit.get(codes[i]), is_there & is_tie);
                }
            }
            thread::sync_threads();
            let pick = self.pick_own(wanted - above);
            prefix = digit.append(prefix, pick.digit);
            above += pick.above;
            level += 1;
            let kept = above + pick.count;
            if level == Digit::levels(bits) || kept <= wanted + slack {
                return Cutoff { least: digit.least(prefix), kept };
            }
        }
    }

    /// Adds the counts of the digits from `first` on to those of all blocks.
    ///
    /// # Safety
    /// All threads of the block must call this, after a barrier; `to` has [`BINS`] counts.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn flush(self, first: u32, to: GlobalMut<u64>) {
        let mut bin = first as usize + thread::thread_idx_x() as usize;
        while bin < BINS {
            let count = self.bins.get(bin);
            if count > 0 {
                to.atomic_add(bin, count as u64, Scope::Gpu, Order::Relaxed);
            }
            bin += THREADS as usize;
        }
    }
}
