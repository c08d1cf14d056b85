//! The heads of segments in a tile.

// Unrolled loops index register arrays by their counters; iterators would force the arrays into memory.
#![allow(clippy::needless_range_loop)]

use super::edges::{Offsets, THREADS};
use crate::arch::warp::{LANES, lane_id};
use crate::arch::{Cache, Rmw, thread};
use crate::block::exchange::WarpExchange;
use crate::block::warp;
use crate::equality::HoleEquality;
use crate::form::{Buffer, Holes, Param, kernel};
use crate::hole::RegisterRepr;
use crate::input::{Input, SourceArg};
use crate::view::{Global, GlobalMut, Shared, SharedMemory};

/// A block's memory for the heads of its tile: one byte per element, 1 for a head.
#[derive(Clone, Copy)]
pub struct HeadMemory<const VEC: usize, const ROWS: usize> {
    /// This warp's part of the bytes.
    pub exchange: WarpExchange<u8, VEC, ROWS>,
    /// All bytes, four in a word.
    words: Shared<u32>,
}

impl<const VEC: usize, const ROWS: usize> HeadMemory<VEC, ROWS> {
    /// Takes the beginning of the block's shared memory.
    ///
    /// # Safety
    /// Nothing was taken of `memory`, and the kernel's shared memory has a byte per element of the tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take(memory: &mut SharedMemory, threads: u32) -> Self {
        let tile = threads as usize * VEC * ROWS;
        // The same memory: bytes that the warps read, and words that all threads mark.
        let words = SharedMemory::new().take(tile / 4);
        Self { exchange: WarpExchange::new(memory.take(tile)), words }
    }
}

/// The part of the elements that a block and its warp work on.
#[derive(Clone, Copy)]
pub struct Part {
    /// The tile.
    pub tile: usize,
    /// The first element of the warp, at most the number of elements.
    pub start: usize,
    /// The number of elements of the warp.
    pub run: usize,
}

/// Says where segments begin.
///
/// # Safety
/// For all functions: all threads of the block call them, in the order `clear`, barrier, `find`, `mark`.
pub trait Heads: Param {
    /// It compares keys by an operator, which takes registers.
    const COMPARES: bool = false;

    /// Prepares the memory.
    ///
    /// # Safety
    /// See the trait.
    #[inline(always)]
    unsafe fn clear<const VEC: usize, const ROWS: usize>(&self, memory: HeadMemory<VEC, ROWS>) {
        let _ = memory;
    }

    /// Returns what [`mark`](Self::mark) needs to know of a tile.
    ///
    /// # Safety
    /// See the trait.
    #[inline(always)]
    unsafe fn find(&self, tile: usize) -> (usize, usize) {
        let _ = tile;
        (0, 0)
    }

    /// Marks the heads. Then each warp can read those of its elements.
    ///
    /// # Safety
    /// See the trait. `found` is what [`find`](Self::find) returned for the tile.
    unsafe fn mark<const VEC: usize, const ROWS: usize>(
        &self,
        memory: HeadMemory<VEC, ROWS>,
        part: Part,
        found: (usize, usize),
    );

    /// Returns the heads of a tile, of which `count` elements exist: one byte per element, 1 for a head.
    ///
    /// # Safety
    /// The tile has elements, and nothing writes what the heads are read from.
    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, tile: usize, tile_len: usize, count: usize) -> Vec<u8>;
}

/// Segments that begin where offsets say.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffsetHeads {
    /// The offsets.
    pub offsets: Offsets,
    /// What [`FindEdges`](super::edges::FindEdges) has found for the tiles.
    pub edges: Global<u64>,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl Param for OffsetHeads {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.offsets.buffers(name, visit);
        self.edges.buffers("edges", visit);
    }
}

impl Heads for OffsetHeads {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn clear<const VEC: usize, const ROWS: usize>(&self, memory: HeadMemory<VEC, ROWS>) {
        let mut at = 4 * thread::thread_idx_x() as usize;
        while at < memory.words.len() {
            memory.words.store_vec(at, [0; 4]);
            at += 4 * thread::block_dim_x() as usize;
        }
    }

    /// The first offset after the tile's start, and the first after its end.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn find(&self, tile: usize) -> (usize, usize) {
        (self.edges.get(tile) as usize, self.edges.get(tile + 1) as usize)
    }

    /// Neighbouring threads read neighbouring offsets. At most four of them mark the same word, unless segments are empty.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mark<const VEC: usize, const ROWS: usize>(
        &self,
        memory: HeadMemory<VEC, ROWS>,
        part: Part,
        (first, end): (usize, usize),
    ) {
        let tile_len = 4 * memory.words.len();
        let start = (part.tile * tile_len) as u64;
        // The offset before the first one may be the tile's start itself.
        let mut i = first.saturating_sub(1) + thread::thread_idx_x() as usize;
        while i < end {
            let at = self.offsets.get(i).wrapping_sub(start);
            if at < tile_len as u64 {
                memory.words.atomic_rmw(Rmw::Or, at as usize / 4, 1 << (8 * (at as u32 % 4)));
            }
            i += thread::block_dim_x() as usize;
        }
        thread::sync_threads();
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, tile: usize, tile_len: usize, _: usize) -> Vec<u8> {
        let mut heads = vec![0; tile_len];
        // SAFETY: guaranteed by the caller.
        let (first, end) = unsafe { self.find(tile) };
        for i in first.saturating_sub(1)..end {
            // SAFETY: `find` returns indices of offsets.
            let at = unsafe { self.offsets.read(i) }.wrapping_sub((tile * tile_len) as u64);
            if at < tile_len as u64 {
                heads[at as usize] = 1;
            }
        }
        heads
    }
}

/// Segments of equal keys: one begins at each key that does not equal the one before it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KeyHeads<K> {
    /// The keys, no fewer than elements.
    pub keys: Global<K>,
    /// Which keys are equal.
    pub equality: HoleEquality,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl<K: RegisterRepr> Param for KeyHeads<K> {
    const HOLES: Holes = Holes::NONE.and(core::mem::offset_of!(Self, equality), HoleEquality::HOLES);

    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.keys.buffers(name, visit);
    }
}

impl<K: RegisterRepr> Heads for KeyHeads<K> {
    const COMPARES: bool = true;

    /// A row is one coalesced access. A key is compared with that of the lane below, which a shuffle brings; only the first
    /// of the run is read again.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mark<const VEC: usize, const ROWS: usize>(
        &self,
        memory: HeadMemory<VEC, ROWS>,
        part: Part,
        _: (usize, usize),
    ) {
        let Part { start, run, .. } = part;
        let keys = self.keys.slice(start, run);
        let bytes = memory.exchange;
        let is_first = start == 0;
        if run == WarpExchange::<u8, VEC, ROWS>::LEN && keys.as_ptr().addr().is_multiple_of(size_of::<[K; VEC]>()) {
            let before = self.keys.get(start.saturating_sub(1));
            let mut rows = [[K::zeroed(); VEC]; ROWS];
            for row in 0..ROWS {
                rows[row] = keys.load_vec((row * LANES as usize + lane_id() as usize) * VEC, Cache::Default);
            }
            let lane_below = lane_id().wrapping_sub(1) % LANES;
            let mut above = before;
            for row in 0..ROWS {
                let below = warp::broadcast(rows[row][VEC - 1], lane_below);
                let mut previous = if lane_id() == 0 { above } else { below };
                above = below;
                let mut heads = [0; VEC];
                for i in 0..VEC {
                    heads[i] = !self.equality.equal(previous, rows[row][i]) as u8;
                    previous = rows[row][i];
                }
                if row == 0 && is_first && lane_id() == 0 {
                    heads[0] = 1;
                }
                bytes.set_striped_row(row, heads);
            }
        } else {
            let mut at = lane_id() as usize;
            while at < WarpExchange::<u8, VEC, ROWS>::LEN {
                let mut is_head = false;
                if at < run {
                    let index = start + at;
                    is_head = (index == 0)
                        | !self.equality.equal(self.keys.get(index.saturating_sub(1)), self.keys.get(index));
                }
                bytes.set(at, is_head as u8);
                at += LANES as usize;
            }
        }
        bytes.sync();
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, tile: usize, tile_len: usize, count: usize) -> Vec<u8> {
        let start = tile * tile_len;
        let first = start.saturating_sub(1);
        // SAFETY: guaranteed by the caller.
        let keys = unsafe { self.keys.slice(first, start - first + count).as_slice() };
        let mut heads = vec![0; tile_len];
        // The first tile has no key before it: its first one is a head.
        self.equality.neighbours(keys, &mut heads[usize::from(start == 0)..count]);
        heads[usize::from(start == 0)..count].iter_mut().for_each(|is_equal| *is_equal ^= 1);
        if start == 0 {
            heads[0] = 1;
        }
        heads
    }
}

/// Segments that begin where bytes are not 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadFlags {
    /// One byte per element.
    pub flags: Global<u8>,
}

// SAFETY: `repr(C)` around a parameter.
unsafe impl Param for HeadFlags {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.flags.buffers(name, visit);
    }
}

impl Heads for HeadFlags {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn mark<const VEC: usize, const ROWS: usize>(
        &self,
        memory: HeadMemory<VEC, ROWS>,
        part: Part,
        _: (usize, usize),
    ) {
        memory.exchange.load(self.flags.slice(part.start, part.run), 0);
        memory.exchange.sync();
    }

    #[cfg(not(target_arch = "nvptx64"))]
    unsafe fn of_tile(&self, tile: usize, tile_len: usize, count: usize) -> Vec<u8> {
        // SAFETY: guaranteed by the caller.
        let mut heads = unsafe { self.flags.slice(tile * tile_len, count).as_slice() }.to_vec();
        heads.resize(tile_len, 0);
        heads
    }
}

/// Writes for each key whether it begins a run of equal keys: 1 or 0. For keys that kernels do not read as they are.
///
/// Where only the device knows the number of keys, those that are missing begin no run.
///
/// # Safety
/// The launch has at least one thread per flag, and there are no fewer flags than keys. `equality` is one of keys that are held
/// in an `H`. While the kernel runs, nothing writes the keys, and nothing else uses the flags.
#[kernel(listed, threads = THREADS, native = crate::segments::native::flag_heads)]
pub unsafe fn flag_heads<H: RegisterRepr, I: Input<H>>(keys: I, equality: HoleEquality, flags: GlobalMut<u8>) {
    let at = thread::block_idx_x() as usize * THREADS as usize + thread::thread_idx_x() as usize;
    let count = keys.count();
    if at < count {
        let is_equal = equality.equal(keys.item(at.saturating_sub(1)), keys.item(at));
        flags.set(at, ((at == 0) | !is_equal) as u8);
    } else if at < flags.len() {
        flags.set(at, 0);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    family flag_heads(H) {
        for H in [u8, u16, u32, u64, [u32; 3], [u64; 2], [u64; 4]]: FlagHeads<H, SourceArg>;
    }
}
