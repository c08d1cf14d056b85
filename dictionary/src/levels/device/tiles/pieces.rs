//! The pieces of a tile: where each one lies in its level, and in the tile.
//!
//! There is one piece per interval and level. The pieces of an interval come oldest first. A tile has *few* pieces if a
//! warp can handle one per lane. Then the first warp writes their table alone, and the quick [merge](block::merge) and
//! load apply. Whole levels always have few pieces. Otherwise all threads of the block write the table.

use super::cuts::{Cut, Cuts, Tile};
use super::workspace::Workspace;
use super::{LEAST_PER_PIECE, THREADS, room};
use crate::KeyCode;
use crate::levels::device::find::Found;
use crate::levels::device::payload::Payload;
use crate::levels::device::table::MAX_LEVELS;
use bytemuck::{Pod, Zeroable};
use gpu_primitives::arch::warp::{FULL, LANES, any, lane_id, warp_id};
use gpu_primitives::arch::{opaque, thread};
use gpu_primitives::block::{runs as block, scan, warp};
use gpu_primitives::monoid::{Combine, Sum};
use gpu_primitives::view::{Shared, SharedMemory, shared_bytes};

/// Returns the most pieces that a tile may have: those of the uncut intervals, and of up to two cut ones.
const fn most_pieces(items: usize) -> usize {
    room(items) / LEAST_PER_PIECE + 2 * MAX_LEVELS
}

/// Returns whether a warp can handle one piece per lane.
#[inline(always)]
const fn is_few(pieces: u32) -> bool {
    pieces as usize <= MAX_LEVELS
}

/// Takes the smaller of two codes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Smaller;

impl<C: KeyCode> Combine<C> for Smaller {
    #[inline(always)]
    fn identity(&self) -> C {
        C::MAX
    }

    #[inline(always)]
    fn combine(&self, a: C, b: C) -> C {
        if b < a { b } else { a }
    }
}

/// The table of pieces in shared memory.
#[derive(Clone, Copy)]
pub struct PieceTable {
    /// Where each piece begins in the tile; one more entry says where the last one ends.
    offsets: Shared<u16>,
    /// For each piece, what to add to an index in the tile to get the position in the level.
    starts: Shared<u32>,
    /// For many pieces: how much the tile's beginning cuts off the window of each level in the first interval.
    skipped: Shared<u32>,
    /// For many pieces: how much the tile's end leaves of the window of each level in the last interval.
    left: Shared<u32>,
    /// For few pieces: the addresses of their keys, shifted so that they can be indexed by the index in the tile.
    key_addresses: Shared<u64>,
    /// The same for their values.
    value_addresses: Shared<u64>,
    /// For few pieces: the table for their merge.
    few: block::Table,
}

impl PieceTable {
    /// Returns the size in bytes.
    pub const fn bytes(items: usize) -> usize {
        shared_bytes::<u16>(most_pieces(items) + 1)
            + shared_bytes::<u32>(most_pieces(items))
            + 2 * shared_bytes::<u32>(MAX_LEVELS)
            + 2 * shared_bytes::<u64>(MAX_LEVELS)
            + block::Table::bytes(THREADS)
    }

    /// Takes memory for the table.
    ///
    /// # Safety
    /// Same as [`SharedMemory::take`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn take(memory: &mut SharedMemory, items: usize) -> Self {
        Self {
            offsets: memory.take(most_pieces(items) + 1),
            starts: memory.take(most_pieces(items)),
            skipped: memory.take(MAX_LEVELS),
            left: memory.take(MAX_LEVELS),
            key_addresses: memory.take(MAX_LEVELS),
            value_addresses: memory.take(MAX_LEVELS),
            few: block::Table::take(memory, THREADS),
        }
    }

    /// Writes where a piece begins, in the tile and in its level.
    ///
    /// # Safety
    /// The table has room for the piece. No other thread uses its entries before a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn set(self, piece: u32, offset: u32, start: u32) {
        self.offsets.set(piece as usize, offset as u16);
        self.starts.set(piece as usize, start.wrapping_sub(offset));
    }
}

/// The pieces of a tile.
#[derive(Clone, Copy)]
pub struct Pieces {
    table: PieceTable,
    /// The number of pieces.
    len: u32,
    /// The logarithm of the number of pieces per interval.
    pub log_per_interval: u32,
    /// The number of intervals that the tile has a part of.
    pub intervals: u32,
    /// The number of elements in all pieces.
    pub count: u32,
}

/// All methods require that the table was written before the last barrier, as [`Workspace::find_pieces`] does.
impl Pieces {
    /// Returns the table for the quick merge, if there are few pieces, and the logarithm of their number.
    #[inline(always)]
    pub fn few(self) -> Option<(block::Table, u32)> {
        if is_few(self.len) { Some((self.table.few, self.len.next_power_of_two().ilog2())) } else { None }
    }

    /// Returns the address of the keys of a piece, shifted: the index of an element is that in the tile.
    ///
    /// # Safety
    /// There are few pieces.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn key_address(self, piece: u32) -> u64 {
        self.table.key_addresses.get(piece as usize)
    }

    /// Returns the address of the values of a piece, shifted in the same way.
    ///
    /// # Safety
    /// There are few pieces.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn value_address(self, piece: u32) -> u64 {
        self.table.value_addresses.get(piece as usize)
    }

    /// Returns where a piece begins in the tile or, for one past the last piece, where the last one ends.
    ///
    /// # Safety
    /// There is such a piece.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn offset(self, piece: u32) -> u32 {
        self.table.offsets.get(piece as usize) as u32
    }

    /// Returns where the elements of an interval of the tile begin or, for one past the last interval, where the last
    /// ones end.
    ///
    /// # Safety
    /// The tile has a part of such an interval.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn interval(self, interval: u32) -> u32 {
        self.offset(interval << self.log_per_interval)
    }

    /// Returns the position in its level of element `at` of the tile, which is in `piece`.
    ///
    /// # Safety
    /// There is such a piece.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn position(self, piece: u32, at: u32) -> u32 {
        self.table.starts.get(piece as usize).wrapping_add(at)
    }

    /// Returns the level of a piece.
    #[inline(always)]
    pub fn level(self, piece: u32) -> u32 {
        piece & ((1 << self.log_per_interval) - 1)
    }

    /// Returns the piece that contains element `at`, which is `piece` or a later one.
    ///
    /// # Safety
    /// There is such a piece.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn piece(self, at: u32, piece: u32) -> u32 {
        // If pieces are long, it is often the same piece or the next.
        if self.offset(piece + 1) > at {
            return piece;
        }
        if piece + 2 <= self.len && self.offset(piece + 2) > at {
            return piece + 1;
        }
        self.group(at, 0)
    }

    /// Returns the last group of `1 << log_width` pieces that begins at or before `at`.
    ///
    /// # Safety
    /// The number of pieces is a multiple of the group's.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn group(self, at: u32, log_width: u32) -> u32 {
        let (mut low, mut high) = (0, self.len >> log_width);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.offset(middle << log_width) <= at {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A level as a lane of the first warp sees it: one lane per level, in groups of one lane per piece of an interval.
#[derive(Clone, Copy)]
struct Lane<C, V> {
    cuts: Cuts,
    /// The lane in its group.
    lane: u32,
    /// Whether the lane has a level. If not, `level` is another lane's.
    has_level: bool,
    level: Found<C, V>,
}

/// What the cuts leave of a level's windows in the first and in the last interval of the tile.
#[derive(Clone, Copy)]
struct Trim {
    /// How many elements of the first window come before the tile.
    skipped: u32,
    /// How many elements of the last window come before the tile's end, if it falls within the interval.
    left: u32,
}

impl<C: KeyCode, V: Pod> Lane<C, V> {
    /// Returns the window of the level in an interval: its start and its length.
    ///
    /// # Safety
    /// There is such an interval.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn window(&self, interval: u64) -> (u32, u32) {
        if self.cuts.is_whole() || !self.has_level {
            return (0, if self.has_level { self.level.entry.len } else { 0 });
        }
        self.cuts.window(interval as usize * self.cuts.pieces() as usize + self.lane as usize)
    }

    /// Returns how many elements of the level's window come before a cut, which is the beginning of tile `tile`.
    ///
    /// # Safety
    /// All lanes of the warp call it with the same arguments. The cut is one of the tile's, within an interval.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn split(&self, cut: Cut, tile: u32, levels: u32) -> u32 {
        if self.cuts.is_whole() {
            return if self.has_level { self.cuts.split(tile, self.lane, levels) } else { 0 };
        }
        let (start, len) = self.window(cut.interval);
        let keys = self.level.keys().slice(start as usize, len as usize);
        block::split(keys, cut.rank, 0, self.cuts.log_pieces(), C::ORDER) as u32
    }
}

impl<C: KeyCode, P: Payload, const ITEMS: usize> Workspace<C, P, ITEMS> {
    /// Finds the pieces of a tile, and the key that follows it. Ends with a barrier.
    ///
    /// # Safety
    /// All threads of the block call it with the same arguments, except `own`, which is the thread. The levels are those
    /// that the tiles are cut from. A barrier came after the last use of the memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn find_pieces(self, own: u32, cuts: Cuts, tile: Tile) -> Pieces {
        let is_few = is_few(tile.pieces);
        if warp_id() == 0 {
            let lane = lane_id() & (cuts.pieces() - 1);
            let has_level = lane < self.levels.len;
            let level = self.levels.get(if has_level { lane } else { 0 });
            let lane = Lane { cuts, lane, has_level, level };
            let trim = self.trim(lane, tile);
            if is_few {
                self.write_few(lane, tile, trim);
            } else {
                self.pieces.skipped.set(lane_id() as usize, trim.skipped);
                self.pieces.left.set(lane_id() as usize, trim.left);
            }
        }
        thread::sync_threads();
        if !is_few {
            self.write_many(own, cuts, tile);
            thread::sync_threads();
        }
        let end = if is_few { MAX_LEVELS } else { tile.pieces as usize };
        Pieces {
            table: self.pieces,
            len: tile.pieces,
            log_per_interval: cuts.log_pieces(),
            intervals: tile.intervals,
            count: self.pieces.offsets.get(end) as u32,
        }
    }

    /// Cuts the windows of the first and the last interval, one level per lane, and sets the key after the tile.
    ///
    /// # Safety
    /// All lanes of exactly one warp call it. The other requirements are those of [`find_pieces`](Self::find_pieces).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn trim(self, lane: Lane<C, P::Value>, tile: Tile) -> Trim {
        let Tile { index, first, last, .. } = tile;
        let (mut skipped, mut left) = (0, 0);
        // First the cut at the end, then the one at the beginning. The bound is hidden, so that the search is compiled once;
        // for keys of 256 bits, some GPUs have too few registers for that.
        let mut cuts = if size_of::<C>() > 16 { 2 } else { opaque(2) };
        while cuts > 0 {
            cuts -= 1;
            (skipped, left) = (0, skipped);
            let cut = if cuts > 0 { last } else { first };
            if cut.rank > 0 {
                skipped = lane.split(cut, index + cuts, self.levels.len);
            }
        }
        let mut next = C::MAX;
        let mut has_next = false;
        if last.rank > 0 {
            let (start, len) = lane.window(last.interval);
            if left < len {
                next = lane.level.keys().get((start + left) as usize);
            }
            has_next = any(FULL, left < len);
            next = warp::reduce(next, Smaller);
        }
        if lane_id() == 0 {
            self.next_key.set(next, has_next);
        }
        Trim { skipped, left }
    }

    /// Writes the table of few pieces, one per lane.
    ///
    /// # Safety
    /// All lanes of exactly one warp call it. The other requirements are those of [`find_pieces`](Self::find_pieces).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write_few(self, lane: Lane<C, P::Value>, tile: Tile, trim: Trim) {
        let table = self.pieces;
        let interval = lane_id() >> lane.cuts.log_pieces();
        let (mut start, mut len) = (0, 0);
        if interval < tile.intervals {
            (start, len) = lane.window(tile.first.interval + interval as u64);
            if interval == tile.intervals - 1 && tile.last.rank > 0 {
                len = trim.left;
            }
            if interval == 0 {
                start += trim.skipped;
                len -= trim.skipped;
            }
        }
        let offset = table.few.write::<ITEMS>(len, tile.pieces.next_power_of_two().ilog2());
        table.set(lane_id(), offset, start);
        if lane_id() == LANES - 1 {
            table.offsets.set(MAX_LEVELS, (offset + len) as u16);
        }
        let shift = start as i64 - offset as i64;
        let address = |base: u64, size: usize| base.wrapping_add_signed(shift * size as i64);
        table.key_addresses.set(lane_id() as usize, address(lane.level.entry.keys, size_of::<C>()));
        table.value_addresses.set(lane_id() as usize, address(lane.level.entry.values, size_of::<P::Value>()));
    }

    /// Writes the table of many pieces. Each thread writes the entries of consecutive ones.
    ///
    /// # Safety
    /// The requirements of [`find_pieces`](Self::find_pieces). What [`trim`](Self::trim) has returned was stored before
    /// the last barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn write_many(self, own: u32, cuts: Cuts, tile: Tile) {
        let table = self.pieces;
        let share = tile.pieces.div_ceil(THREADS);
        let (mut piece, end) = ((own * share).min(tile.pieces), ((own + 1) * share).min(tile.pieces));
        let window = |piece: u32| {
            let level = piece & (cuts.pieces() - 1);
            let interval = piece >> cuts.log_pieces();
            if level >= self.levels.len {
                return (0, 0);
            }
            let first_piece = tile.first.interval as usize * cuts.pieces() as usize;
            let (mut start, mut len) = cuts.window(first_piece + piece as usize);
            if tile.last.rank > 0 && interval == tile.intervals - 1 {
                len = table.left.get(level as usize);
            }
            if interval == 0 {
                start += table.skipped.get(level as usize);
                len -= table.skipped.get(level as usize);
            }
            (start, len)
        };
        let mut len = 0;
        for i in piece..end {
            len += window(i).1;
        }
        let prefix = scan::exclusive_scan::<u32, Sum, THREADS>(len, Sum, self.warp_totals);
        let mut offset = prefix.before;
        while piece < end {
            let (start, len) = window(piece);
            table.set(piece, offset, start);
            offset += len;
            piece += 1;
        }
        if own == 0 {
            table.offsets.set(tile.pieces as usize, prefix.total as u16);
        }
    }
}
