//! The kernels that move memory.
//!
//! The floor is the memory rate itself. Copying takes one access of 16 bytes per thread: with many small blocks the loads of
//! some overlap the stores of others, which was measured to be faster than several loads per thread before the first store
//! (4.18 against 3.97 TB/s on an H200, where the driver's own copy has 4.12).

use crate::arch::thread;
use crate::kernel::kernel;
use crate::view::{Global, GlobalMut};
use bytemuck::{Pod, Zeroable};

/// Threads of a block.
pub(super) const THREADS: u32 = 256;
/// Stores of a thread that only writes.
const ROWS: usize = 4;
/// Elements of a block that only writes.
pub(super) const FILL_TILE: usize = THREADS as usize * ROWS;
/// Elements of a block that copies.
pub(super) const COPY_TILE: usize = THREADS as usize;

/// Sixteen bytes, aligned: the widest access.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Line(pub [u32; 4]);

/// Bytes before the first and after the last whole line: at most 15 each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Edges {
    /// Bytes before the lines.
    pub head: u32,
    /// Bytes after the lines.
    pub tail: u32,
}

/// The index of the edge byte that a thread of block 0 serves: threads 0..16 the head, 16..32 the tail.
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

/// Copies bytes whose addresses agree modulo 16: whole lines, and at both ends single bytes.
///
/// Moves `2 * 16` bytes per line.
///
/// # Safety
/// The launch has at least one block per 256 lines, and at least one. `from` and `to` are all the bytes, as many of
/// both, `from_lines` and `to_lines` the whole lines among them, and `edges` says how many bytes lie before and after
/// these. The memory of `from` and `to` does not overlap. Nobody writes the one, and nobody else uses the other, while
/// the kernel runs.
#[kernel(threads = THREADS)]
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
/// The launch has at least one block per 256 elements. `from` is as long as `to` and does not overlap it. Nobody writes
/// the one, and nobody else uses the other, while the kernel runs.
#[kernel(threads = THREADS)]
pub unsafe fn copy_elements<T: Pod>(from: Global<T>, to: GlobalMut<T>) {
    let index = thread::block_idx_x() as usize * COPY_TILE + thread::thread_idx_x() as usize;
    if index < to.len() {
        to.set(index, from.get(index));
    }
}

/// Writes the same 16 bytes to every line, and their bytes to the edges.
///
/// `line` is the filled value repeated. Elements are aligned to their size, which divides 16, so the pattern starts anew at
/// every line, and byte `i` of memory gets byte `address % 16` of it.
///
/// # Safety
/// The launch has at least one block per 1024 lines, and at least one. `to` are all the bytes, `to_lines` the whole
/// lines among them, and `edges` says how many bytes lie before and after these. Nobody else uses the memory while the
/// kernel runs.
#[kernel(threads = THREADS)]
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
        // Selected without a run-time index, which would send the pattern to memory.
        let mut word = line.0[0];
        for i in 1..4 {
            if i == byte / 4 {
                word = line.0[i];
            }
        }
        to.set(index, (word >> (8 * (byte % 4))) as u8);
    }
}

/// An integer that counts.
pub trait Index: Pod {
    /// `start + index`, wrapping.
    fn offset(start: Self, index: usize) -> Self;
}

macro_rules! index {
    ($($type:ty)*) => { $(
        impl Index for $type {
            #[inline(always)]
            fn offset(start: Self, index: usize) -> Self {
                start.wrapping_add(index as Self)
            }
        }
    )* };
}

index!(u8 u16 u32 u64 i8 i16 i32 i64);

/// Writes `start`, `start + 1`, …
///
/// # Safety
/// The launch has at least one block per 1024 elements. Nobody else uses the memory while the kernel runs.
#[kernel(threads = THREADS)]
pub unsafe fn iota<T: Index>(to: GlobalMut<T>, start: T) {
    let first = thread::block_idx_x() as usize * FILL_TILE + thread::thread_idx_x() as usize;
    for row in 0..ROWS {
        let index = first + row * THREADS as usize;
        if index < to.len() {
            to.set(index, T::offset(start, index));
        }
    }
}

crate::instances! {
    in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    copy_lines: CopyLines;
    copy_u8: CopyElements<u8>;
    copy_u16: CopyElements<u16>;
    copy_u32: CopyElements<u32>;
    copy_u64: CopyElements<u64>;
    fill_lines: FillLines;
    iota_u8: Iota<u8>;
    iota_u16: Iota<u16>;
    iota_u32: Iota<u32>;
    iota_u64: Iota<u64>;
    iota_i8: Iota<i8>;
    iota_i16: Iota<i16>;
    iota_i32: Iota<i32>;
    iota_i64: Iota<i64>;
}
