//! The kernel that finds the few largest elements of rows in one launch.

use super::best::Best;
use super::code::Coding;
use super::layout::{RowLayout, Wanted};
use super::numbers::Numbers;
use super::order::NumberKeys;
use super::tile::Candidates;
use crate::arch::thread;
use crate::block::last::is_last;
use crate::form::{Buffer, Param, kernel};
use crate::input::Input;
use crate::sort::ShortCode;
use crate::view::{GlobalMut, SharedMemory, shared_bytes};
use bytemuck::Pod;

/// The rows of a tile: as many loads of 16 bytes are in flight per thread.
pub(crate) const ROWS: usize = 4;

/// The threads for which a multiprocessor must have registers.
pub(crate) const RESIDENT: u32 = 512;

/// The parts of a row, each of which a block reads. It is a kernel argument.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parts<C> {
    /// The parts of a row, at least 1.
    per_row: u64,
    /// One zero per row, which is zero again afterwards. None if rows have one part.
    finished: GlobalMut<u64>,
    /// The best numbers of each part: room for as many as are wanted at most, part by part and row by row.
    lists: Candidates<C, u32>,
}

// SAFETY: `repr(C)`, plain data and `Param`s.
unsafe impl<C: Pod> Param for Parts<C> {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.finished.buffers(name, visit);
        self.lists.buffers(name, visit);
    }
}

impl<C: ShortCode> Parts<C> {
    /// So many parts per row.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new(per_row: usize, finished: GlobalMut<u64>, lists: Candidates<C, u32>) -> Self {
        Self { per_row: per_row as u64, finished, lists }
    }

    /// Returns the numbers of each part of a row of `len` numbers: whole tiles. The last parts may have fewer, or none.
    #[inline(always)]
    fn len(self, len: usize, tile_len: usize) -> usize {
        len.div_ceil(self.per_row as usize).next_multiple_of(tile_len)
    }
}

/// Finds the largest elements of rows, and puts them in order. A block reads each part of a row. The last block of a row to
/// finish goes over the best elements of all parts in the same way.
///
/// A block holds the [best] elements so far in shared memory. Of the first tile, it compares the largest elements of the threads
/// with each other: that gives a threshold which the wanted elements reach, and few others. Of further tiles, it takes what is
/// larger than the smallest of the best elements. What is taken is ranked by counting, for each, those that come before it.
///
/// Parts are read in order, and the lists of the parts are in the order of the row. So of equal elements, the first are taken.
///
/// Cost: every element is read once: 64 rows of 2^17 keys of 4 bytes are 32 MiB, 8 µs at 4.1 TB/s. Beyond that it is latency, for
/// 64 wanted elements some 4 µs per block: 1 µs until the first elements are there, and 1 µs to compare the largest of 256
/// threads.
///
/// [best]: super::best
///
/// # Safety
/// The launch has a block for each part of each row. Of no row more than `THREADS` elements are wanted. Rows have fewer than
/// 2^32 - 1 elements. There are as many positions per row as are wanted at most, and keys, if they are written. While the kernel
/// runs, nothing writes the inputs, and nothing else uses the other buffers.
#[kernel(
    listed = super::instances::BEST_OF_ROWS_PTX,
    threads = THREADS,
    shared = Best::<C, THREADS>::bytes() + shared_bytes::<u32>(1),
    min_blocks = RESIDENT / THREADS,
    native = crate::top_k::native::best_of_rows
)]
pub unsafe fn best_of_rows<C: ShortCode, I: Input<C::Repr>, const VEC: usize, const THREADS: u32>(
    input: I,
    coding: Coding,
    layout: RowLayout,
    wanted: Wanted,
    parts: Parts<C>,
    positions: GlobalMut<u32>,
    keys: NumberKeys,
) {
    let mut memory = SharedMemory::new();
    let (best, flag) = (Best::<C, THREADS>::take(&mut memory), memory.take::<u32>(1));
    let per_row = parts.per_row as usize;
    let (row_number, part) = (thread::block_idx_x() as usize / per_row, thread::block_idx_x() as usize % per_row);
    let (row, most) = (layout.row(row_number, input.count()), wanted.most());
    let positions = positions.slice(row_number * most, most);
    let wanted = wanted.of(row_number).min(row.len) as u32;
    if wanted == 0 {
        if part == 0 {
            best.write(0, positions, coding, keys, 0);
        }
        return;
    }
    let tile_len = Best::<C, THREADS>::tile_len(VEC, ROWS);
    let part_len = parts.len(row.len, tile_len);
    let list = if per_row == 1 { parts.lists } else { parts.lists.row(row_number, per_row * most) };
    let mut numbers = Numbers { input, coding, first: row.first, list, is_list: false };
    let of_part = |part: usize| (part * part_len).min(row.len) as u32;
    let (mut at, mut end, mut held) = (of_part(part), of_part(part + 1), 0);
    loop {
        while at < end {
            let next = end.min(at.saturating_add(tile_len as u32));
            held = best.add::<I, VEC, ROWS>(numbers, (at, next), held, wanted);
            at = next;
        }
        if per_row == 1 || numbers.is_list {
            break;
        }
        // All parts before this one have as many as are wanted.
        best.store(held, list.part(part * wanted as usize, held as usize));
        if !is_last(parts.finished.slice(row_number, 1), per_row as u32, flag) {
            return;
        }
        numbers.is_list = true;
        let (whole, rest) = (row.len / part_len, row.len % part_len);
        (at, end, held) = (0, whole as u32 * wanted + wanted.min(rest as u32), 0);
    }
    best.write(held, positions, coding, keys, row_number * most);
}
