//! Segment offsets, and where tiles begin among them.

use crate::arch::Cache;
use crate::arch::thread;
use crate::arch::warp::{FULL, LANES, ballot, lane_id, warp_id};
use crate::form::{Buffer, Param, kernel};
use crate::view::{Global, GlobalMut};

/// The threads per block.
pub(crate) const THREADS: u32 = 256;

/// Segment offsets of 32 or 64 bits, as words, so that kernels exist once for both.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Offsets {
    words: Global<u32>,
    /// Offsets have two words, not one.
    is_wide: u32,
}

// SAFETY: `repr(C)`, and all fields are `Param`s.
unsafe impl Param for Offsets {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.words.buffers(name, visit);
    }
}

impl Offsets {
    /// Offsets of 4 or 8 bytes.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(crate) fn new<O: crate::select::Offset>(offsets: Global<O>) -> Self {
        const { assert!(matches!(size_of::<O>(), 4 | 8)) };
        // SAFETY: this is the same memory, in words.
        let words = unsafe { Global::from_raw(offsets.as_ptr().cast(), offsets.len() * size_of::<O>() / 4) };
        Self { words, is_wide: u32::from(size_of::<O>() == 8) }
    }

    /// Returns their number.
    #[inline(always)]
    #[must_use]
    pub const fn len(self) -> usize {
        self.words.len() >> self.is_wide
    }

    /// Returns offset `index`, in a native body.
    ///
    /// # Safety
    /// Same as [`get`](Self::get).
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    pub(crate) unsafe fn read(self, index: usize) -> u64 {
        let words = self.words.as_ptr();
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.is_wide != 0 { words.cast::<u64>().add(index).read() } else { u64::from(words.add(index).read()) }
        }
    }

    /// Returns offset `index`.
    ///
    /// # Safety
    /// `index` is less than their number, and nothing writes them at the same time.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn get(self, index: usize) -> u64 {
        if self.is_wide != 0 {
            let [low, high] = self.words.load_vec::<2>(2 * index, Cache::Default);
            low as u64 | (high as u64) << 32
        } else {
            self.words.get(index) as u64
        }
    }
}

/// Finds, for each tile and for the end of the last one, the first offset that is greater than the tile's start.
///
/// A warp searches one tile: 32 offsets at once, so that a million of them take four steps. Whatever the offsets are, a later
/// tile never finds an earlier one: both take the same steps up to the first offset that is between their starts.
///
/// Cost: some reads of 4 or 8 bytes per tile.
///
/// # Safety
/// The launch has a warp per edge. While the kernel runs, nothing writes the offsets, and nothing else uses the edges.
#[kernel(listed, threads = THREADS, native = crate::segments::native::find_edges)]
pub unsafe fn find_edges(offsets: Offsets, edges: GlobalMut<u64>, tile_len: u64) {
    let tile = thread::block_idx_x() as usize * (THREADS / LANES) as usize + warp_id() as usize;
    if tile >= edges.len() {
        return;
    }
    let start = tile as u64 * tile_len;
    let (mut low, mut high) = (0, offsets.len());
    while low < high {
        let step = (high - low).div_ceil(LANES as usize);
        // The lanes look at the last offset of a part each.
        let at = low + (lane_id() as usize + 1) * step - 1;
        let is_before = at < high && offsets.get(at) <= start;
        let parts = (!ballot(FULL, is_before)).trailing_zeros() as usize;
        let end = low + (parts + 1) * step - 1;
        low = (low + parts * step).min(high);
        high = end.min(high);
    }
    if lane_id() == 0 {
        edges.set(tile, low as u64);
    }
}

crate::instances! {
    static in concat!(env!("CARGO_MANIFEST_DIR"), "/ptx");
    FindEdges;
}
