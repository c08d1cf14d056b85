//! The kernel that finds a threshold for each of many rows.

use super::code::Coding;
use super::histogram::Histogram;
use super::layout::{Row, RowLayout};
use super::sift::{Sifted, sampled};
use crate::arch::thread;
use crate::arch::warp::{LANES, lane_id, warp_id};
use crate::form::kernel;
use crate::input::Input;
use crate::sort::ShortCode;
use crate::view::SharedMemory;
use bytemuck::Zeroable;

/// The threads per block.
const THREADS: u32 = 512;

/// The warps per block.
pub(crate) const WARPS: usize = (THREADS / LANES) as usize;

/// The runs that a warp loads at once.
const AT_ONCE: usize = 8;

/// Returns the elements of a sampled run: one access of a warp.
pub(crate) const fn run_len(vec: usize) -> usize {
    LANES as usize * vec
}

/// Finds a threshold for each row, one block per row: a number such that at least `wanted` elements of the row are not below
/// it, and not many times more.
///
/// The block samples up to `runs` runs, and takes the maximum of each lane's `VEC` adjacent elements. Every maximum is an
/// element of its own, so that the threshold is one that at least `wanted` maxima reach, found as for a single input. With
/// one run of `s` sampled, some `s * wanted` elements reach it. Rows that are too short for a sample, and those with too many
/// equal elements, get a list that is full from the beginning.
///
/// Cost: one of `s` elements is read, with [`AT_ONCE`] accesses of a warp in flight, and up to three digits of about 1 µs
/// each: 5 µs for a row were expected, 8 µs were measured under a profiler on an H200. 512 rows take four waves of blocks.
///
/// # Safety
/// The launch has one block per row. `PER * WARPS` is at least `runs`, and `wanted` is not 0. Numbers have `bits` bits.
/// `sifted` has its words. While the kernel runs, nothing writes the inputs, and nothing else uses `sifted`.
// One block per multiprocessor tells the assembler not to save registers.
#[kernel(
    listed = super::instances::SAMPLE_ROWS_PTX,
    threads = THREADS,
    shared = Histogram::<THREADS>::bytes(),
    min_blocks = 1,
    native = crate::top_k::native::sample_rows
)]
pub unsafe fn sample_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const PER: usize>(
    input: I,
    coding: Coding,
    bits: u32,
    layout: RowLayout,
    wanted: u64,
    runs: u32,
    sifted: Sifted,
) {
    let histogram = Histogram::<THREADS>::take(&mut SharedMemory::new());
    let row = thread::block_idx_x() as usize;
    let sifted = sifted.row(row);
    let Row { first, len } = layout.row(row, input.count());
    let whole = len / run_len(VEC);
    let runs = whole.min(runs as usize);
    if (runs * LANES as usize) < wanted as usize {
        if thread::thread_idx_x() == 0 {
            sifted.start_full();
        }
        return;
    }
    let stride = whole / runs;
    let mut maxima = [C::zeroed(); PER];
    for group in 0..PER.div_ceil(AT_ONCE) {
        if group * AT_ONCE * WARPS < runs {
            let mut keys = [[C::Repr::zeroed(); VEC]; AT_ONCE];
            for i in 0..AT_ONCE {
                // A run that is not there reads the last one again: no jump comes between the accesses.
                let run = ((group * AT_ONCE + i) * WARPS + warp_id() as usize).min(runs - 1);
                let start = first + (run * stride + sampled(run, stride as u32)) * run_len(VEC);
                keys[i] = load::<C::Repr, I, VEC>(input, start);
            }
            for i in 0..AT_ONCE {
                let number = group * AT_ONCE + i;
                if number < PER {
                    for j in 0..VEC {
                        let code = coding.encode::<C>(keys[i][j]);
                        if code > maxima[number] {
                            maxima[number] = code;
                        }
                    }
                }
            }
        }
    }
    let cutoff = histogram.cutoff(maxima, runs * LANES as usize, bits, wanted, wanted / 4);
    if thread::thread_idx_x() == 0 {
        sifted.start(cutoff.least, cutoff.kept * stride as u64);
    }
}

/// Loads the lane's elements of the run that begins at `start`.
///
/// # Safety
/// The input has the run.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn load<T: bytemuck::Pod, I: Input<T>, const VEC: usize>(input: I, start: usize) -> [T; VEC] {
    let at = lane_id() as usize * VEC;
    if input.lead::<VEC>() == start % VEC {
        return input.row(start + at, 0);
    }
    let mut items = [T::zeroed(); VEC];
    for i in 0..VEC {
        items[i] = input.item(start + at + i);
    }
    items
}
