//! The kernels that leave out nearly all numbers that are not wanted, in one read of the input.
//!
//! A sample gives a *threshold*: at least as many numbers as are wanted are not below it. One read of the input then moves
//! the numbers that are not below it to a short list of candidates. That list is in no particular order. This does not
//! matter: a candidate's position is part of it, and of equal numbers the one with the lowest position comes first.
//!
//! If there are more candidates than the list has room for, it is useless, and the numbers are found digit by digit. Only
//! the device knows which of the two it is. So the kernels of both ways are launched, and the others end at once.

use super::code::{Coding, Position};
use super::histogram::Histogram;
use super::kernel::{THREADS, WARPS, load_input, tile_len};
use super::layout::{Row, RowLayout};
use super::tile::{Candidates, Counts, Marks, ROWS, run_len, striped};
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::arch::{Order, Scope, thread};
use crate::block::warp;
use crate::form::{Buffer, Param, kernel};
use crate::input::Input;
use crate::sort::ShortCode;
use crate::view::{Global, GlobalMut, SharedMemory};

/// The blocks of [`sift`] that must fit on a multiprocessor: the loads of a block are in flight while others compare.
pub(crate) const SIFT_BLOCKS: u32 = 5;

/// The lanes of a warp that share a maximum.
const GROUP: u32 = 8;

/// The maxima of a block of the sample.
pub(crate) const BLOCK_MAXIMA: usize = (THREADS / GROUP) as usize;

/// The maxima of a warp of the sample.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const MAXIMA_PER_RUN: usize = (LANES / GROUP) as usize;

/// The threads of the block that finds the threshold.
const FINDERS: u32 = 512;

/// The maxima per thread of that block.
const PER_FINDER: usize = 16;

/// The most maxima that a sample may have.
pub(crate) const MAX_MAXIMA: usize = FINDERS as usize * PER_FINDER;

/// The threshold and the number of candidates, in global memory. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sifted {
    /// The number of candidates so far, and the two halves of the threshold. Empty if the input is not sifted.
    words: GlobalMut<u64>,
    /// The candidates that there is room for.
    room: u64,
}

// SAFETY: `repr(C)`, a `Param` and plain data.
unsafe impl Param for Sifted {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

impl Sifted {
    /// The words that a row takes.
    pub(crate) const WORDS: usize = 3;

    /// Creates a state with this memory, which has room for so many candidates per row: no words if the input is not sifted.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(words: GlobalMut<u64>, room: usize) -> Self {
        Self { words, room: room as u64 }
    }

    /// Returns the state of a row. An input that is not sifted has none.
    ///
    /// # Safety
    /// There are so many rows.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn row(self, row: usize) -> Self {
        if self.words.is_empty() {
            self
        } else {
            Self { words: self.words.slice(row * Self::WORDS, Self::WORDS), ..self }
        }
    }

    /// Returns the candidates that a row has room for.
    #[inline(always)]
    pub(crate) fn room(self) -> usize {
        self.room as usize
    }

    /// Returns whether the input is sifted.
    #[inline(always)]
    pub(crate) fn is_there(self) -> bool {
        !self.words.is_empty()
    }

    /// Starts with a list that is of no use.
    ///
    /// # Safety
    /// Same as [`start`](Self::start).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn start_full(self) {
        self.words.set(0, self.room + 1);
    }

    /// Starts with a threshold, and without candidates. If too many are expected, it is full from the beginning.
    ///
    /// # Safety
    /// One thread calls this, and nothing else uses the words.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn start(self, threshold: [u64; 2], expected: u64) {
        self.words.set(0, if expected > 2 * self.room { self.room + 1 } else { 0 });
        self.words.set(1, threshold[0]);
        self.words.set(2, threshold[1]);
    }

    /// Returns the threshold.
    ///
    /// # Safety
    /// An earlier launch has found it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(crate) unsafe fn threshold<C: ShortCode>(self) -> C {
        C::of_halves([self.words.get(1), self.words.get(2)])
    }

    /// Returns the number of candidates so far. If it is above the room, there are more candidates than were counted.
    ///
    /// # Safety
    /// The words exist.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn kept(self) -> u64 {
        self.words.atomic_load(0, Scope::Gpu, Order::Relaxed)
    }

    /// Takes the next `count` places, and returns the first of them to all lanes; nothing if there is no room for them, or
    /// was not before.
    ///
    /// # Safety
    /// All lanes of the warp must call this, with the same count. The words exist.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn take(self, count: u64) -> Option<u64> {
        let mut first = 0;
        if lane_id() == 0 {
            first = self.words.atomic_add(0, count, Scope::Gpu, Order::Relaxed);
        }
        let first = warp::broadcast(first, 0);
        if first + count <= self.room { Some(first) } else { None }
    }

    /// Returns the number of rows.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn rows(self) -> usize {
        self.words.len() / Self::WORDS
    }

    /// [`take`](Self::take) for a native body.
    ///
    /// # Safety
    /// The words exist.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) unsafe fn take_natively(self, count: u64) -> Option<u64> {
        // SAFETY: the word exists, and all accesses of the kernel are atomic.
        let kept = unsafe { std::sync::atomic::AtomicU64::from_ptr(self.words.as_mut_ptr()) };
        let first = kept.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        (first + count <= self.room).then_some(first)
    }

    /// Returns the number of candidates if [`is_enough`](Self::is_enough), for a native body.
    ///
    /// # Safety
    /// An earlier launch has finished the list.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) unsafe fn enough_natively(self) -> Option<usize> {
        if self.words.is_empty() {
            return None;
        }
        // SAFETY: the word exists, and nothing writes it any more.
        let kept = unsafe { self.words.as_mut_ptr().read() };
        (kept <= self.room).then_some(kept as usize)
    }

    /// Returns whether the input was sifted, and all candidates are in the list.
    ///
    /// # Safety
    /// An earlier launch has finished the list.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn is_enough(self) -> bool {
        !self.words.is_empty() && self.kept() <= self.room
    }
}

/// Returns which of `stride` runs is taken as sample number `sample`. It varies, so that a sample does not fall into step
/// with a period of the input.
#[inline(always)]
pub(crate) fn sampled(sample: usize, stride: u32) -> usize {
    ((sample as u32).wrapping_mul(0x9E37_79B1) >> 16) as usize % stride as usize
}

/// Finds the largest numbers of groups of the input.
///
/// Of each `stride` runs of a warp, one is sampled. Runs are dealt to the warps in turn. A group is what [`GROUP`] lanes of
/// a warp read. Its maximum is 0 if it is empty.
///
/// Cost: one element of `stride` is read. For 2^24 keys of 4 bytes, a warp reads one run of 1.5 KiB, and the latency of
/// memory counts: about 3 µs. For 2^27 it reads six: 16 MiB in all, 4 µs at 4.1 TB/s.
///
/// # Safety
/// The launch has any number of blocks. `maxima` has [`BLOCK_MAXIMA`] elements per block. `stride` is not 0. While the
/// kernel runs, nothing writes the input, and nothing else uses `maxima`.
#[kernel(listed = super::instances::SAMPLE_MAXIMA_PTX, threads = THREADS, native = crate::top_k::native::sample_maxima)]
pub unsafe fn sample_maxima<C: ShortCode, I: Input<C::Repr>, const VEC: usize>(
    input: I,
    coding: Coding,
    stride: u32,
    maxima: GlobalMut<C>,
) {
    let len = input.count();
    let own = thread::block_idx_x() as usize * WARPS + warp_id() as usize;
    let (mut sample, mut largest) = (own, C::zeroed());
    while sample * stride as usize * run_len(VEC) < len {
        let start = (sample * stride as usize + sampled(sample, stride)) * run_len(VEC);
        let run = len.saturating_sub(start).min(run_len(VEC));
        let codes = load_input::<C, I, VEC, ROWS>(input, coding, start.min(len), run);
        for row in 0..ROWS {
            for i in 0..VEC {
                if (striped::<VEC>(row) + i < run) & (codes[row][i] > largest) {
                    largest = codes[row][i];
                }
            }
        }
        sample += thread::grid_dim_x() as usize * WARPS;
    }
    let mut distance = GROUP / 2;
    while distance > 0 {
        let other = warp::shuffle_down(largest, distance);
        if other > largest {
            largest = other;
        }
        distance /= 2;
    }
    if lane_id().is_multiple_of(GROUP) {
        maxima.set(own * (LANES / GROUP) as usize + (lane_id() / GROUP) as usize, largest);
    }
}

/// Finds the threshold: a number such that at least `wanted` of the maxima are not below it, and not many more.
///
/// Every maximum is an element of its own, so at least `wanted` elements are not below the threshold. If fewer groups
/// have elements, the threshold is 0.
///
/// One block holds the maxima in registers. It goes over their digits, from the highest, until few beyond the wanted ones
/// are left. If so many maxima are equal to the threshold that the candidates will not find room, the list of candidates
/// is full from the beginning.
///
/// Cost: one block that reads up to 32 KiB (keys of 4 bytes), and three digits of about 1 µs each: about 5 µs.
///
/// # Safety
/// The launch has one block. There are `wanted` to [`MAX_MAXIMA`] maxima, of numbers of `bits` bits; of `stride` elements
/// of the input, one was sampled. `wanted` is not 0. `sifted` has its words. While the kernel runs, nothing writes the
/// maxima, and nothing else uses `sifted`.
// One block per multiprocessor tells the assembler not to save registers.
#[kernel(
    listed = super::instances::FIND_THRESHOLD_PTX,
    threads = FINDERS,
    shared = Histogram::<FINDERS>::bytes(),
    min_blocks = 1,
    native = crate::top_k::native::digits::find_threshold
)]
pub unsafe fn find_threshold<C: ShortCode>(maxima: Global<C>, bits: u32, wanted: u64, stride: u32, sifted: Sifted) {
    let histogram = Histogram::<FINDERS>::take(&mut SharedMemory::new());
    let (own, len) = (thread::thread_idx_x() as usize, maxima.len());
    let mut codes = [C::zeroed(); PER_FINDER];
    for i in 0..PER_FINDER {
        let at = i * FINDERS as usize + own;
        if at < len {
            codes[i] = maxima.get(at);
        }
    }
    let cutoff = histogram.cutoff(codes, len, bits, wanted, wanted / 4);
    if own == 0 {
        sifted.start(cutoff.least, cutoff.kept * stride as u64);
    }
}

/// Moves the numbers of each row that are not below its threshold to a list of candidates, with their positions in the row.
///
/// A warp loads a run and compares it. Most runs have no candidates, and the warp goes on: no barrier, and no shared
/// memory. Otherwise the warp takes places at the end of the list with one atomic addition. If the list is full, the warp
/// ends: the list is of no use.
///
/// Cost: every element is read once. 2^27 keys of 4 bytes take 131 µs at 4.1 TB/s, 2^24 take 16 µs; for 100 wanted ones and
/// a sample of one in 32, there are some 3,200 candidates, with as many atomic additions. Few registers, so that
/// [`SIFT_BLOCKS`] blocks keep 60 KiB per multiprocessor in flight.
///
/// # Safety
/// The launch has `blocks_per_row` blocks per row, at least 1. An earlier launch has found the thresholds. The lists of
/// candidates have the room that `sifted` says. While the kernel runs, nothing writes the inputs, and nothing else uses
/// `sifted` and the candidates.
#[kernel(listed = super::instances::SIFT_PTX, threads = THREADS, min_blocks = SIFT_BLOCKS, native = crate::top_k::native::sift)]
pub unsafe fn sift<C: ShortCode, I: Input<C::Repr>, P: Position, const VEC: usize>(
    input: I,
    coding: Coding,
    layout: RowLayout,
    blocks_per_row: u32,
    sifted: Sifted,
    candidates: Candidates<C, P>,
) {
    let row = (thread::block_idx_x() / blocks_per_row) as usize;
    let (sifted, candidates) = (sifted.row(row), candidates.row(row, sifted.room()));
    // The lanes of a warp must agree.
    if warp::broadcast(sifted.kept(), 0) > sifted.room {
        return;
    }
    let threshold = sifted.threshold::<C>();
    let Row { first, len } = layout.row(row, input.count());
    let block = thread::block_idx_x() as usize % blocks_per_row as usize;
    let mut start = first + block * tile_len(VEC) + warp_id() as usize * run_len(VEC);
    let end = first + len;
    while start < end {
        let run = (end - start).min(run_len(VEC));
        let codes = load_input::<C, I, VEC, ROWS>(input, coding, start, run);
        let marks = Marks::<VEC, ROWS>::at_least(codes, run, threshold);
        let count = marks.count() as u64;
        if count != 0 {
            let Some(place) = sifted.take(count) else { return };
            marks.place(Counts { greater: place, ties: 0 }, u64::MAX, |at, place| {
                candidates.set(place, coding.encode(input.item(start + at)), P::of(start + at - first));
            });
        }
        start += blocks_per_row as usize * tile_len(VEC);
    }
}
