//! How the sequence of overlapping elements is cut into tiles.

use super::{nominal, room};
use crate::levels::device::search::last_not_after;
use gpu_primitives::kernel::{Buffer, Param};
#[cfg(not(target_arch = "nvptx64"))]
use gpu_primitives::kernel::{Reach, View};
use gpu_primitives::view::Global;

/// How the tiles are cut, as a kernel argument. There are two ways: [by intervals](Self::by_intervals) and
/// [by splits](Self::by_splits).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cuts {
    windows: Global<u32>,
    positions: Global<u64>,
    splits: Global<u64>,
    total: u64,
    tile: u32,
    log_pieces: u32,
}

// SAFETY: `repr(C)`: views and plain data.
unsafe impl Param for Cuts {
    fn buffers(&self, name: &'static str, visit: &mut dyn FnMut(&'static str, Buffer)) {
        self.windows.buffers(name, visit);
        self.positions.buffers(name, visit);
        self.splits.buffers(name, visit);
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Cuts {
    /// Cuts the sequence of the elements of many intervals.
    ///
    /// `windows` is what [`FindWindows`](crate::levels::device::intervals::windows::FindWindows) has written for the levels and `log_pieces`.
    /// `positions` is the exclusive sum of the weights it has written, which ends with the sum of all. `tile` is the
    /// nominal length of a tile.
    pub fn by_intervals<'a>(
        windows: View<'a, Global<u32>>,
        positions: View<'a, Global<u64>>,
        tile: usize,
        log_pieces: u32,
    ) -> View<'a, Self> {
        // SAFETY: the views borrow the memory for the lifetime of the result.
        unsafe {
            let cuts = Self {
                windows: windows.into_param(),
                positions: positions.into_param(),
                splits: Global::empty(),
                total: 0,
                tile: tile as u32,
                log_pieces,
            };
            View::new(cuts, Reach::none())
        }
    }

    /// Cuts whole levels, which have `total` elements: one interval of everything.
    ///
    /// `splits` is what [`RunsSplits`](gpu_primitives::merge::RunsSplits) has found for the
    /// keys of the levels, oldest first, tiles of `tile` elements and no slack.
    pub fn by_splits(splits: View<'_, Global<u64>>, total: usize, tile: usize, log_pieces: u32) -> View<'_, Self> {
        // SAFETY: the view borrows the memory for the lifetime of the result.
        unsafe {
            let cuts = Self {
                windows: Global::empty(),
                positions: Global::empty(),
                splits: splits.into_param(),
                total: total as u64,
                tile: tile as u32,
                log_pieces,
            };
            View::new(cuts, Reach::none())
        }
    }

    /// Returns the windows and the positions, for a native body.
    ///
    /// # Safety
    /// Nobody writes them while they are used.
    pub unsafe fn intervals<'a>(self) -> (&'a [u32], &'a [u64]) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.windows.as_slice(), self.positions.as_slice()) }
    }

    /// Returns the splits and the length of a tile, for a native body.
    ///
    /// # Safety
    /// Nobody writes the splits while they are used.
    pub unsafe fn splits<'a>(self) -> (&'a [u64], usize) {
        // SAFETY: guaranteed by the caller.
        (unsafe { self.splits.as_slice() }, self.tile as usize)
    }

    /// Returns the number of tiles of a sequence of `len` elements.
    pub fn tiles_of(self, len: u64) -> u64 {
        len.div_ceil(u64::from(self.tile))
    }
}

impl Cuts {
    /// Returns whether the tiles are cut by splits of whole levels.
    #[inline(always)]
    pub fn is_whole(self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the logarithm of the number of pieces of an interval: one per level, and empty ones up to a power of two.
    #[inline(always)]
    pub fn log_pieces(self) -> u32 {
        self.log_pieces
    }

    /// Returns the number of pieces of an interval.
    #[inline(always)]
    pub fn pieces(self) -> u32 {
        1 << self.log_pieces
    }

    /// Returns the tiles.
    ///
    /// # Safety
    /// The tile length is not 0. Nobody writes `positions`.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn tiles(self) -> Tiles {
        let len = if self.is_whole() { self.total } else { self.positions.get(self.positions.len() - 1) };
        Tiles { cuts: self, len, count: len.div_ceil(self.tile as u64) as u32 }
    }

    /// Returns the window of a piece, counted from the first piece of the first interval: its start in the level, and
    /// its length.
    ///
    /// # Safety
    /// The tiles are cut by intervals, and there is such a piece.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn window(self, piece: usize) -> (u32, u32) {
        (self.windows.get(2 * piece), self.windows.get(2 * piece + 1))
    }

    /// Returns how many elements of a level come before tile `tile`. `level` is one of `levels`, from the oldest.
    ///
    /// # Safety
    /// The tiles are cut by splits of as many levels. There are at least `tile` tiles.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn split(self, tile: u32, level: u32, levels: u32) -> u32 {
        self.splits.get(tile as usize * levels as usize + level as usize) as u32
    }

    /// Finds the cuts at two positions of the sequence. A cut falls within an interval only if the interval is longer
    /// than `longest`.
    ///
    /// # Safety
    /// All lanes of the warp call it with the same arguments. The tiles are cut by intervals.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn at_positions(self, positions: [u64; 2], longest: u64) -> [Cut; 2] {
        let intervals = self.positions;
        let found = last_not_after(intervals.len() as u64, positions, |at| intervals.get(at as usize));
        let cut = |which: usize| {
            let interval = found[which];
            let mut rank = 0;
            if interval + 1 < intervals.len() as u64 {
                let begin = intervals.get(interval as usize);
                let len = intervals.get(interval as usize + 1) - begin;
                rank = if len > longest { positions[which] - begin } else { 0 };
            }
            Cut { interval, rank }
        };
        [cut(0), cut(1)]
    }
}

/// Where a tile begins or ends: before interval `interval`, or within it, after `rank` of its overlapping elements.
#[derive(Clone, Copy)]
pub struct Cut {
    /// The interval.
    pub interval: u64,
    /// The number of elements of the interval that come before the cut.
    pub rank: u64,
}

/// The tiles of a sequence.
#[derive(Clone, Copy)]
pub struct Tiles {
    cuts: Cuts,
    /// The length of the sequence.
    len: u64,
    /// The number of tiles.
    pub count: u32,
}

impl Tiles {
    /// Returns a tile. Every warp finds where it begins and ends, instead of waiting for one warp to do it.
    ///
    /// # Safety
    /// All lanes of the warp call it with the same arguments. There is such a tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn nth<const ITEMS: usize>(self, index: u32) -> Tile {
        let Self { cuts, len, .. } = self;
        let begin = index as u64 * cuts.tile as u64;
        let end = if len - begin < cuts.tile as u64 { len } else { begin + cuts.tile as u64 };
        let [first, last] = if cuts.is_whole() {
            [Cut { interval: 0, rank: begin }, Cut { interval: 0, rank: end }]
        } else {
            cuts.at_positions([begin, end], (room(ITEMS) - nominal(ITEMS)) as u64)
        };
        let intervals = (last.interval - first.interval) as u32 + u32::from(last.rank > 0);
        Tile { index, begin, first, last, intervals, pieces: intervals << cuts.log_pieces }
    }
}

/// A tile of the sequence.
#[derive(Clone, Copy)]
pub struct Tile {
    /// Its index among the tiles.
    pub index: u32,
    /// Its nominal position in the sequence. If the tiles are cut by splits, the exact one.
    pub begin: u64,
    /// Where it begins.
    pub first: Cut,
    /// Where it ends.
    pub last: Cut,
    /// The number of intervals that it has a part of.
    pub intervals: u32,
    /// The number of pieces of these intervals.
    pub pieces: u32,
}
