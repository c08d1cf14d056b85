//! The kernels that move memory.
//!
//! Memory bandwidth is the limit. A copy uses one access of 16 bytes per thread: with many small blocks, the loads of
//! some overlap the stores of others. This measured faster than several loads per thread before the first store (4.18
//! against 3.97 TB/s on an H200, where the driver's own copy reaches 4.12).

use crate::arch::thread;
use crate::form::kernel;
use crate::view::{Global, GlobalMut};
use bytemuck::{Pod, Zeroable};

/// The threads per block.
pub(super) const THREADS: u32 = 256;
/// The stores per thread of a kernel that only writes.
const ROWS: usize = 4;
/// The elements per block of a kernel that only writes.
pub(super) const FILL_TILE: usize = THREADS as usize * ROWS;
/// The elements per block of a copy.
pub(super) const COPY_TILE: usize = THREADS as usize;

/// Sixteen aligned bytes: the widest access.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Line(pub [u32; 4]);

/// The bytes before the first and after the last whole line: at most 15 each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Edges {
    /// The number of bytes before the lines.
    pub head: u32,
    /// The number of bytes after the lines.
    pub tail: u32,
}

/// Returns the index of the edge byte that a thread of block 0 handles: threads 0..16 the head, 16..32 the tail.
#[inline(always)]
fn edge_byte(edges: Edges, len: usize) -> Option<usize> {
    let i = thread::thread_idx_x();
    if thread::block_idx_x() != 0 || i >= 32 {
        None
    } else if i < 16 {
        (i < edges.head).then_some(i as usize)
    } else {
        (i - 16 < edges.tail).then_some(len - edges.tail as usize + (i - 16) as usize)
    }
}

/// Copies bytes whose addresses agree modulo 16: whole lines, and single bytes at both ends.
///
/// Moves `2 * 16` bytes per line.
///
/// # Safety
/// The launch has at least one block per 256 lines, and at least one. `from` and `to` are all the bytes and have the
/// same length. `from_lines` and `to_lines` are the whole lines among them, and `edges` is the number of bytes before
/// and after these. `from` and `to` do not overlap. While the kernel runs, nothing writes `from`, and nothing else uses
/// `to`.
#[kernel(listed, threads = THREADS, native = super::native::copy_lines)]
pub unsafe fn copy_lines(
    from: Global<u8>,
    to: GlobalMut<u8>,
    from_lines: Global<Line>,
    to_lines: GlobalMut<Line>,
    edges: Edges,
) {
    let index = thread::block_idx_x() as usize * COPY_TILE + thread::thread_idx_x() as usize;
    if index < to_lines.len() {
        to_lines.set(index, from_lines.get(index));
    }
    if let Some(index) = edge_byte(edges, to.len()) {
        to.set(index, from.get(index));
    }
}

/// Copies elements whose addresses do not agree modulo 16, one by one.
///
/// # Safety
/// The launch has at least one block per 256 elements. `from` is as long as `to` and does not overlap it. While the
/// kernel runs, nothing writes `from`, and nothing else uses `to`.
#[kernel(listed, threads = THREADS, native = super::native::copy_elements)]
pub unsafe fn copy_elements<T: Pod>(from: Global<T>, to: GlobalMut<T>) {
    let index = thread::block_idx_x() as usize * COPY_TILE + thread::thread_idx_x() as usize;
    if index < to.len() {
        to.set(index, from.get(index));
    }
}

/// Writes the same 16 bytes to every line, and their bytes to the edges.
///
/// `line` is the value, repeated. The element size divides 16, so the pattern is the same in every line, and each byte
/// of memory gets byte `address % 16` of it.
///
/// # Safety
/// The launch has at least one block per 1024 lines, and at least one. `to` is all the bytes, `to_lines` the whole
/// lines among them, and `edges` the number of bytes before and after these. Nothing else uses the memory while the
/// kernel runs.
#[kernel(listed, threads = THREADS, native = super::native::fill_lines)]
pub unsafe fn fill_lines(to: GlobalMut<u8>, to_lines: GlobalMut<Line>, line: Line, edges: Edges) {
    let start = thread::block_idx_x() as usize * FILL_TILE + thread::thread_idx_x() as usize;
    for row in 0..ROWS {
        let index = start + row * THREADS as usize;
        if index < to_lines.len() {
            to_lines.set(index, line);
        }
    }
    if let Some(index) = edge_byte(edges, to.len()) {
        let byte = (to.as_const().as_ptr().addr() + index) % 16;
        // Selected without a run-time index, which would force the pattern into memory.
        let mut word = line.0[0];
        for i in 1..4 {
            if i == byte / 4 {
                word = line.0[i];
            }
        }
        to.set(index, (word >> (8 * (byte % 4))) as u8);
    }
}

/// The words per thread of [`GatherWords`].
const GATHER_ROWS: usize = 4;
/// The words per block of [`GatherWords`].
pub(crate) const GATHER_TILE: usize = THREADS as usize * GATHER_ROWS;
/// The index of [`GatherWords`] that leaves a place as it is: no source is so long.
pub(crate) const LEAVE: u32 = u32::MAX;

/// Copies elements of some words: element `indices[i]` of the source to place `i`, or element `i` if there are no indices.
/// If the source's elements have fewer words, zeros follow; if they have more, the rest is left out.
///
/// Cost: each word of the target is written once, in coalesced accesses, and read once, in runs of an element. With
/// indices, an element costs at least a sector of 32 bytes to read.
///
/// # Safety
/// The launch has one block per [`GATHER_TILE`] words of the target. Both word counts are at least 1, and the target and the
/// source have whole elements. Without indices, the source has as many elements as the target. Otherwise there is one index per
/// element of the target; if the source has no such element, as for [`LEAVE`], the place stays as it is. Source and target do not
/// overlap. While the kernel runs, nothing writes the source, and nothing else uses the target.
#[kernel(listed, threads = THREADS, native = super::native::gather_words)]
pub unsafe fn gather_words<W: Pod>(
    from: Global<W>,
    from_words: u32,
    to: GlobalMut<W>,
    to_words: u32,
    indices: Global<u32>,
) {
    // One division of 64 bits per thread; those of the rows have 32 bits.
    let first = thread::block_idx_x() as usize * GATHER_TILE;
    let (element, word) = (first / to_words as usize, (first % to_words as usize) as u32);
    for row in 0..GATHER_ROWS {
        let offset = row as u32 * THREADS + thread::thread_idx_x();
        let at = first + offset as usize;
        if at < to.len() {
            let place = element + ((word + offset) / to_words) as usize;
            let part = (word + offset) % to_words;
            let source = if indices.is_empty() { place } else { indices.get(place) as usize };
            // LEAVE is beyond every source. So is, perhaps, an index that nobody has written: operators that change their minds and wrong
            // offsets leave such.
            let start = source * from_words as usize;
            if indices.is_empty() || start < from.len() {
                let is_there = part < from_words;
                to.set(at, if is_there { from.get(start + part as usize) } else { W::zeroed() });
            }
        }
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    CopyLines;
    for T in [u8, u16, u32, u64]: CopyElements<T>;
    FillLines;
    for W in [u8, u16, u32, u64]: GatherWords<W>;
}
