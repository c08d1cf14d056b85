//! The kernel that puts the few best numbers of a row in order, in one block.

use super::code::{Coding, Position};
use super::histogram::{Cutoff, Histogram};
use super::layout::Wanted;
use super::sift::Sifted;
use super::tile::Candidates;
use crate::arch::thread;
use crate::arch::warp::{FULL, ballot, lane_id, lane_mask_lt, shuffle_idx};
use crate::form::{Buffer, Param, kernel};
use crate::sort::ShortCode;
use crate::view::{GlobalMut, Shared, SharedMemory, shared_bytes};

/// The threads of the block.
const THREADS: u32 = 512;

/// Returns how many numbers the block sorts at once: a power of two.
const fn room<C>() -> usize {
    if size_of::<C>() == 4 { 4096 } else { 2048 }
}

/// Returns how many numbers the block can put in order. In addition to them, there is room for another one per thread.
#[must_use]
pub const fn orderable<C>() -> usize {
    room::<C>() / 2
}

/// Returns the candidates per thread that fit into 64 bytes of registers.
#[must_use]
pub const fn per_thread<C>() -> usize {
    64 / size_of::<C>()
}

/// Returns how many candidates the block can hold.
#[must_use]
pub const fn listable<C>() -> usize {
    THREADS as usize * per_thread::<C>()
}

/// Returns the shared memory of the block. The counts of digits lie in the same place as the numbers that are sorted.
const fn shared<C>() -> usize {
    let (counts, sorted) =
        (Histogram::<THREADS>::bytes(), shared_bytes::<C>(room::<C>()) + shared_bytes::<u32>(room::<C>()));
    (if counts > sorted { counts } else { sorted }) + shared_bytes::<u32>(1)
}

/// Where keys that are numbers go. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NumberKeys {
    /// Their bytes. Empty if they are written otherwise.
    bytes: GlobalMut<u8>,
}

// SAFETY: `repr(C)`, and a `Param`.
unsafe impl Param for NumberKeys {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.bytes.buffers(name, visit);
    }
}

impl NumberKeys {
    /// No keys.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn none() -> Self {
        Self { bytes: GlobalMut::empty() }
    }

    /// Keys that have all bits of the numbers that stand for them.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(bytes: GlobalMut<u8>) -> Self {
        Self { bytes }
    }

    /// Writes a key, unless they are written otherwise. Keys need no alignment, and they are few: byte by byte.
    ///
    /// # Safety
    /// There are so many keys, of the size of `C`, and no other thread has this one.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn set<C: ShortCode>(self, at: usize, bits: C) {
        if self.bytes.is_empty() {
            return;
        }
        let halves = bits.halves();
        for i in 0..size_of::<C>() {
            self.bytes.set(at * size_of::<C>() + i, (halves[i / 8] >> (i % 8 * 8)) as u8);
        }
    }

    /// [`set`](Self::set) for a native body.
    ///
    /// # Safety
    /// Same as [`set`](Self::set).
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) unsafe fn set_natively<C: ShortCode>(self, at: usize, bits: C) {
        if !self.bytes.is_empty() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.bytes.as_mut_ptr().cast::<C>().add(at).write_unaligned(bits) };
        }
    }
}

/// Numbers in shared memory, with their indices in a list of candidates.
#[derive(Clone, Copy)]
struct SharedCandidates<C, P> {
    codes: Shared<C>,
    indices: Shared<u32>,
    /// The number of numbers.
    filled: Shared<u32>,
    list: Candidates<C, P>,
}

impl<C: ShortCode, P: Position> SharedCandidates<C, P> {
    /// The index of what fills the memory up. It comes after all numbers.
    const FILLER: u32 = u32::MAX;

    /// Returns the position of a number.
    ///
    /// # Safety
    /// `index` is that of a number of the list, or [`FILLER`](Self::FILLER).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn position(self, index: u32) -> P {
        if index == Self::FILLER { P::NONE } else { self.list.positions.get(index as usize) }
    }

    /// Appends the numbers of the lanes for which `is_in` holds, in any order.
    ///
    /// # Safety
    /// All lanes of the warp must call this, between barriers; there is room.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn append(self, code: C, index: u32, is_in: bool) {
        let all = ballot(FULL, is_in);
        if all == 0 {
            return;
        }
        let mut first = 0;
        if lane_id() == 0 {
            first = self.filled.atomic_add(0, all.count_ones());
        }
        let place = shuffle_idx(FULL, first, 0) + (all & lane_mask_lt()).count_ones();
        if is_in {
            self.codes.set(place as usize, code);
            self.indices.set(place as usize, index);
        }
    }

    /// Sorts the first `len` numbers: the largest first, and of equal ones the one with the lowest position.
    ///
    /// A bitonic sort, after the memory is filled up to a power of two. It is not stable, but no two numbers have the same
    /// position. Positions are only loaded to compare equal numbers.
    ///
    /// # Safety
    /// All threads of the block must call this, after a barrier. The last access is followed by one.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn sort(self, len: usize) {
        let (own, all) = (thread::thread_idx_x() as usize, len.next_power_of_two());
        let mut at = len + own;
        while at < all {
            self.codes.set(at, C::zeroed());
            self.indices.set(at, Self::FILLER);
            at += THREADS as usize;
        }
        thread::sync_threads();
        let mut run = 2;
        while run <= all {
            let mut distance = run / 2;
            while distance > 0 {
                let mut pair = own;
                while pair < all / 2 {
                    let low = 2 * pair - (pair & (distance - 1));
                    self.put_in_order(low, low + distance, low & run == 0);
                    pair += THREADS as usize;
                }
                thread::sync_threads();
                distance /= 2;
            }
            run *= 2;
        }
    }

    /// Exchanges two numbers unless the one at `low` comes first, or comes last if `is_descending` is false.
    ///
    /// # Safety
    /// Both exist, and nothing else uses them at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_in_order(self, low: usize, high: usize, is_descending: bool) {
        let (a, b) = (self.codes.get(low), self.codes.get(high));
        let (a_index, b_index) = (self.indices.get(low), self.indices.get(high));
        let is_first = if a == b { self.position(a_index) < self.position(b_index) } else { a > b };
        if is_first != is_descending {
            self.codes.set(low, b);
            self.codes.set(high, a);
            self.indices.set(low, b_index);
            self.indices.set(high, a_index);
        }
    }
}

/// Puts the best numbers of each row in order, one block per row: those of the list of candidates if that has all of them,
/// otherwise those that were selected. Writes their positions, or [`Position::NONE`] where there are fewer than wanted; and the
/// keys, if they are numbers.
///
/// If there are more than wanted, the block first finds the smallest wanted number, digit by digit, with the list in
/// registers. Then it collects the numbers that are not below it in shared memory, and sorts them. Equal ones may be too
/// many for that. Then it sorts what it has, keeps the wanted ones, and goes on. Of equal numbers, the one with the lowest
/// position comes first. So the order of the list does not matter.
///
/// Cost: latency only. Each digit takes about 1 µs. A sort of 128 numbers has 28 steps between barriers, about 2 µs; one of
/// 2048 has 66 steps, about 7 µs. Expected in all for 100 of 3,200 candidates of 4 bytes: 7 µs; measured: 11 µs
/// under a profiler on an H200.
///
/// # Safety
/// The launch has one block per row, and `PER` is [`per_thread`]. There are as many positions per row as are wanted at most, 1 to
/// [`orderable`], and as many selected numbers; numbers have `bits` bits. Earlier launches have finished the lists of at most [`listable`] candidates,
/// and have selected the numbers of those that are not enough. While the kernel runs, nothing else uses the buffers.
// One block per multiprocessor tells the assembler not to save registers.
#[kernel(listed = super::instances::ORDER_BEST_PTX, threads = THREADS, shared = shared::<C>(), min_blocks = 1, native = crate::top_k::native::digits::order_best)]
pub unsafe fn order_best<C: ShortCode, P: Position, const PER: usize>(
    bits: u32,
    wanted: Wanted,
    sifted: Sifted,
    candidates: Candidates<C, P>,
    selected: Candidates<C, P>,
    positions: GlobalMut<P>,
    coding: Coding,
    keys: NumberKeys,
) {
    let (own, row) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
    let (room_of_row, wanted) = (wanted.most(), wanted.of(row));
    let (positions, selected) = (positions.slice(row * room_of_row, room_of_row), selected.row(row, room_of_row));
    let (sifted, candidates) = (sifted.row(row), candidates.row(row, sifted.room()));
    let from_list = sifted.is_enough();
    let list = if from_list { candidates } else { selected };
    let len = if wanted == 0 || !from_list { wanted } else { sifted.kept() as usize };

    let mut memory = SharedMemory::new();
    let filled = memory.take::<u32>(1);
    let held = SharedCandidates { codes: memory.take(room::<C>()), indices: memory.take(room::<C>()), filled, list };
    // A list is no longer than the registers of a block hold.
    let mut codes = [C::zeroed(); PER];
    for i in 0..PER {
        let at = i * THREADS as usize + own;
        if at < len {
            codes[i] = list.codes.get(at);
        }
    }
    let mut cutoff = Cutoff { least: [0; 2], kept: len as u64 };
    if len > wanted {
        let histogram = Histogram::<THREADS>::take(&mut SharedMemory::new());
        cutoff = histogram.cutoff(codes, len, bits, wanted as u64, 0);
        // The counts are no longer needed.
        thread::sync_threads();
    }
    let least = C::of_halves(cutoff.least);
    if own == 0 {
        filled.set(0, 0);
    }
    thread::sync_threads();
    let mut best = 0;
    if cutoff.kept as usize <= room::<C>() {
        for i in 0..PER {
            if i * (THREADS as usize) < len {
                let at = i * THREADS as usize + own;
                held.append(codes[i], at as u32, (at < len) & (codes[i] >= least));
            }
        }
        thread::sync_threads();
        best = filled.get(0) as usize;
        held.sort(best);
    } else {
        let mut first = 0;
        while first < len {
            if own == 0 {
                filled.set(0, best as u32);
            }
            thread::sync_threads();
            while first < len && best + THREADS as usize <= room::<C>() {
                let at = first + own;
                let code = if at < len { list.codes.get(at) } else { C::zeroed() };
                held.append(code, at as u32, (at < len) & (code >= least));
                first += THREADS as usize;
                thread::sync_threads();
                best = filled.get(0) as usize;
                thread::sync_threads();
            }
            held.sort(best);
            best = best.min(wanted);
        }
    }
    let best = best.min(wanted);
    let mut at = own;
    while at < room_of_row {
        let position = if at < best { held.position(held.indices.get(at)) } else { P::NONE };
        positions.set(at, position);
        if position != P::NONE {
            keys.set::<C>(row * room_of_row + at, coding.decode(held.codes.get(at)));
        }
        at += THREADS as usize;
    }
}
